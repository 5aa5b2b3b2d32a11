/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See monitor.h. A connection that is ready sends SENTINEL SENTINELS, the two questions
 * for the master and SUBSCRIBE in one piece, so that no switch falls between the last
 * two. The first reply brings sentinels that the URL does not list.
 *
 * A sentinel that lies can make the client leave its master, and come back to it. Each
 * time in vain, the client waits twice as long before it leaves again.
 */
#include "client/monitor.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "client/client.h"
#include "net/conn_group.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    CONNECT_MS = 3000,
    ANSWER_MS = 5000,
    PING_MS = 10000,
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 10000,
    LOOK_MS = 10000, /* for another sentinel, while there is only one */
    PAUSE_FIRST_MS = 1000,
    PAUSE_MAX_MS = 30000,
    PAUSE_OVER_MS =
        300000,        /* a master that is left no sooner again is left as at first */
    PAUSE_MIN_MS = 100 /* between two moves that are counted (conn.c) */
};

#define CHANNEL "+switch-master"

/* The replies to what a connection sends first. */
enum { REPLY_OTHERS, REPLY_MASTER, REPLY_ADDRESS };

static const struct rlk_endpoint *endpoint_of(const struct rlock_client *client)
{
    return &client->config.endpoint;
}

/* ---- life */

void rlk_monitor_start(struct rlock_client *client)
{
    struct rlk_monitor *m = &client->route.monitor;

    *m = (struct rlk_monitor){ .on = endpoint_of(client)->sentinels.count > 0,
                               .set_fd = -1,
                               .pause_ms = PAUSE_FIRST_MS };
    /* Clients begin at different sentinels. */
    for (const char *c = client->uuid; *c; c++)
        m->first = m->first * 31 + (unsigned char)*c;
    for (int i = 0; i < RLK_MONITOR_SEATS; i++) {
        m->seats[i].fd = -1;
        m->seats[i].backoff_ms = BACKOFF_FIRST_MS;
    }
}

static void drop(struct rlk_monitor *m, struct rlk_monitor_seat *seat)
{
    rlk_conn_group_leave(m->set_fd, &seat->fd);
    rlk_conn_free(seat->conn);
    seat->conn = NULL;
    seat->state = RLK_MONITOR_DOWN;
}

void rlk_monitor_stop(struct rlock_client *client)
{
    struct rlk_monitor *m = &client->route.monitor;

    if (!m->on)
        return;
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        drop(m, &m->seats[i]);
    if (m->set_fd >= 0)
        rlk_fd_close(m->set_fd);
    m->set_fd = -1;
    m->on = false;
}

int rlk_monitor_fd(const struct rlock_client *client)
{
    return client->route.monitor.on ? client->route.monitor.set_fd : -1;
}

/* ---- the connection of a seat */

static void fail(struct rlk_monitor *m, struct rlk_monitor_seat *seat, int64_t now)
{
    rlk_log(RLK_LOG_DEBUG, "rlock: connection to %s replaced: %s", seat->endpoint.label,
            seat->conn ? rlk_conn_error_text(seat->conn) : "out of memory");
    drop(m, seat);
    seat->retry_at = now + seat->backoff_ms * RLK_NS_PER_MS;
    seat->backoff_ms =
        seat->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : seat->backoff_ms * 2;
}

static bool is_taken(const struct rlk_monitor *m,
                     const struct rlk_sentinel_address *sentinel)
{
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        if (m->seats[i].state != RLK_MONITOR_DOWN &&
            rlk_sentinel_same(&m->seats[i].sentinel, sentinel))
            return true;
    return false;
}

/* Finds a sentinel to which no seat is connected, one of the URL at first: one that was
 * learned may be the same as one of these, by another name, or not exist. False: there is
 * none. */
static bool find_sentinel(struct rlock_client *client, struct rlk_monitor_seat *seat,
                          struct rlk_sentinel_address *ret_sentinel)
{
    struct rlk_monitor *m = &client->route.monitor;
    struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX];
    size_t count = rlk_sentinel_book_list(endpoint_of(client), list);
    size_t listed = endpoint_of(client)->sentinels.count;

    for (size_t i = 0; i < count; i++) {
        size_t at = seat->next++ % count;
        const struct rlk_sentinel_address *s =
            &list[at < listed ? (m->first + at) % listed : at];
        if (is_taken(&client->route.monitor, s))
            continue;
        *ret_sentinel = *s;
        return true;
    }
    return false;
}

static void open_seat(struct rlock_client *client, struct rlk_monitor_seat *seat,
                      int64_t now)
{
    struct rlk_monitor *m = &client->route.monitor;

    seat->alone = !find_sentinel(client, seat, &seat->sentinel);
    if (seat->alone) {
        seat->retry_at = now + LOOK_MS * RLK_NS_PER_MS;
        return;
    }
    rlk_sentinel_endpoint(&seat->endpoint, endpoint_of(client), &seat->sentinel);
    struct rlk_conn_options options = rlk_sentinel_options(&seat->endpoint, true);
    options.keepalive_ms = PING_MS;
    seat->state = RLK_MONITOR_OPENING;
    seat->replies = 0;
    seat->answer = (struct rlk_sentinel_answer){ .said = RLK_SENTINEL_SILENT };
    seat->ping_at = RLK_NEVER;
    seat->answer_due = now + CONNECT_MS * RLK_NS_PER_MS;
    if (rlk_conn_start(&seat->conn, &options, seat->answer_due) != 0) {
        seat->conn = NULL;
        fail(m, seat, now);
    }
}

static int send_words(struct rlk_conn *conn, const char *verb, const char *word)
{
    const char *const argv[] = { verb, word };
    const size_t len[] = { strlen(verb), word ? strlen(word) : 0 };

    return rlk_conn_append(conn, word ? 2 : 1, argv, len);
}

static void begin(struct rlock_client *client, struct rlk_monitor_seat *seat, int64_t now)
{
    const char *master = endpoint_of(client)->sentinels.master;

    seat->state = RLK_MONITOR_ASKING;
    seat->answer_due = now + ANSWER_MS * RLK_NS_PER_MS;
    if (rlk_sentinel_append(seat->conn, "SENTINELS", master) != 0 ||
        rlk_sentinel_append_ask(seat->conn, master) != 0 ||
        send_words(seat->conn, "SUBSCRIBE", CHANNEL) != 0)
        rlk_conn_kill(seat->conn, RLK_FAIL_LOCAL, "out of memory");
}

static void ping_if_due(struct rlk_monitor_seat *seat, int64_t now)
{
    if (seat->state != RLK_MONITOR_UP || now < seat->ping_at)
        return;
    seat->ping_at = RLK_NEVER;
    seat->answer_due = now + ANSWER_MS * RLK_NS_PER_MS;
    if (send_words(seat->conn, "PING", NULL) != 0)
        rlk_conn_kill(seat->conn, RLK_FAIL_LOCAL, "out of memory");
}

/* ---- replies and messages */

/* Adds the sentinel that was asked: it does not name itself. */
static void learn(struct rlock_client *client, const struct rlk_monitor_seat *seat,
                  const struct rlk_reply *reply, int64_t now)
{
    struct rlk_sentinel_address list[RLK_SENTINEL_LEARNED_MAX];
    size_t count;

    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY)
        return;
    count = rlk_sentinel_reply_others(reply, list);
    if (count == RLK_SENTINEL_LEARNED_MAX)
        count--;
    list[count++] = seat->sentinel;
    rlk_sentinel_book_learn(endpoint_of(client)->book, list, count);
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        if (client->route.monitor.seats[i].alone)
            client->route.monitor.seats[i].retry_at = now;
}

/* A sentinel names this master. */
static void hear(struct rlock_client *client, const struct rlk_sentinel_address *address)
{
    struct rlk_sentinel_master present;

    if (!rlk_sentinel_book_present(endpoint_of(client)->book, &present) ||
        rlk_sentinel_book_is(endpoint_of(client)->book, address))
        return;
    client->route.monitor.told = true;
    client->route.monitor.named = *address;
}

/* A switch may have been announced while no seat was connected. After a failover that was
 * requested, a client may have found the old master at the new epoch. */
static void take_master(struct rlock_client *client,
                        const struct rlk_sentinel_answer *answer)
{
    struct rlk_sentinel_master present;

    if (answer->said == RLK_SENTINEL_FOUND &&
        rlk_sentinel_book_present(endpoint_of(client)->book, &present) &&
        answer->master.epoch >= present.epoch)
        hear(client, &answer->master.address);
}

static bool text_is(const struct rlk_reply *reply, size_t i, const char *text)
{
    size_t len;
    const char *at = rlk_reply_text_at(reply, i, &len);

    return at && len == strlen(text) && memcmp(at, text, len) == 0;
}

/* rule: P9 */
static void take_message(struct rlock_client *client, const struct rlk_reply *reply)
{
    struct rlk_sentinel_address address;
    size_t len;
    const char *text = rlk_reply_text_at(reply, 2, &len);

    if (text && text_is(reply, 0, "message") && text_is(reply, 1, CHANNEL) &&
        rlk_sentinel_reply_switch(text, len, endpoint_of(client)->sentinels.master,
                                  &address))
        hear(client, &address);
}

static void take_reply(struct rlock_client *client, struct rlk_monitor_seat *seat,
                       const struct rlk_reply *reply, int64_t now)
{
    unsigned number = seat->replies;

    seat->ping_at = now + PING_MS * RLK_NS_PER_MS;
    seat->answer_due = RLK_NEVER;
    if (seat->state == RLK_MONITOR_UP) {
        take_message(client, reply);
        if (text_is(reply, 0, "pong")) { /* it does not close what it has accepted */
            seat->backoff_ms = BACKOFF_FIRST_MS;
            seat->next = 0;
        }
        return;
    }
    seat->replies++;
    if (number == REPLY_OTHERS) {
        learn(client, seat, reply, now);
    } else if (number == REPLY_MASTER) {
        rlk_sentinel_reply_master(&seat->answer, reply);
    } else if (number == REPLY_ADDRESS) {
        rlk_sentinel_reply_address(&seat->answer, reply);
        take_master(client, &seat->answer);
    } else if (text_is(reply, 0, "subscribe")) {
        seat->state = RLK_MONITOR_UP;
    } else {
        rlk_conn_kill(seat->conn, RLK_FAIL_PROTOCOL,
                      "the sentinel refuses SUBSCRIBE to " CHANNEL);
    }
}

static void serve(struct rlock_client *client, struct rlk_monitor_seat *seat, int64_t now)
{
    struct rlk_monitor *m = &client->route.monitor;
    struct rlk_reply *reply;

    rlk_conn_group_leave(m->set_fd, &seat->fd);
    rlk_conn_step(seat->conn);
    if (seat->state == RLK_MONITOR_OPENING &&
        rlk_conn_state(seat->conn) == RLK_CONN_READY)
        begin(client, seat, now);
    ping_if_due(seat, now);
    rlk_conn_step(seat->conn); /* sends */
    while ((reply = rlk_conn_take_reply(seat->conn)) != NULL) {
        take_reply(client, seat, reply, now);
        rlk_reply_give_back(seat->conn, reply);
    }
    if (now >= seat->answer_due)
        rlk_conn_kill(seat->conn, RLK_FAIL_UNKNOWN, "no reply in time");
    if (rlk_conn_state(seat->conn) == RLK_CONN_DEAD ||
        !rlk_conn_group_join(m->set_fd, seat->conn, &seat->fd))
        fail(m, seat, now);
}

static void step_seat(struct rlock_client *client, struct rlk_monitor_seat *seat,
                      int64_t now)
{
    if (seat->state == RLK_MONITOR_DOWN && now >= seat->retry_at)
        open_seat(client, seat, now);
    if (seat->state != RLK_MONITOR_DOWN)
        serve(client, seat, now);
}

static int64_t seat_due(const struct rlk_monitor_seat *seat)
{
    if (seat->state == RLK_MONITOR_DOWN)
        return seat->retry_at;
    int64_t due = rlk_conn_due(seat->conn);
    if (seat->answer_due < due)
        due = seat->answer_due;
    return seat->ping_at < due ? seat->ping_at : due;
}

/* ---- leaving the master */

static void leave(struct rlock_client *client, const struct rlk_sentinel_address *present)
{
    char from[RLK_SENTINEL_LABEL_SIZE], to[RLK_SENTINEL_LABEL_SIZE];
    struct rlk_registry *reg = &client->registry;

    rlk_url_label(from, sizeof(from), present->host, present->port);
    rlk_url_label(to, sizeof(to), client->route.monitor.named.host,
                  client->route.monitor.named.port);
    rlk_log(RLK_LOG_INFO, "rlock: %s moves from %s to %s", endpoint_of(client)->label,
            from, to);
    rlk_registry_lock(reg);
    reg->watchdog_dirty = true;
    rlk_registry_unlock(reg);
    rlk_sentinel_book_told(endpoint_of(client)->book);
}

/* rule: P9 */
/* Leaves the present master if a sentinel named another one. Returns when to call again.
 */
static int64_t leave_if_told(struct rlock_client *client, int64_t now)
{
    struct rlk_monitor *m = &client->route.monitor;
    struct rlk_sentinel_master present;

    if (!m->told)
        return RLK_NEVER;
    if (!rlk_sentinel_book_present(endpoint_of(client)->book, &present) ||
        rlk_sentinel_book_is(endpoint_of(client)->book, &m->named)) {
        m->told = false;
        return RLK_NEVER;
    }
    bool in_vain = rlk_sentinel_same(&m->left, &present.address) &&
                   now < m->leave_at + PAUSE_OVER_MS * RLK_NS_PER_MS;
    if (in_vain && now < m->leave_at)
        return m->leave_at;
    if (!rlk_conn_count_move(&client->route.target.moves,
                             atomic_load(&client->route.target.moves.count)))
        return now + PAUSE_MIN_MS * RLK_NS_PER_MS;
    m->pause_ms = !in_vain                         ? PAUSE_FIRST_MS
                  : m->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS
                                                   : m->pause_ms * 2;
    m->leave_at = now + m->pause_ms * RLK_NS_PER_MS;
    m->left = present.address;
    m->told = false;
    leave(client, &present.address);
    return RLK_NEVER;
}

/* The set, or another one if the program has closed it. False: there is none. */
static bool need_set(struct rlk_monitor *m)
{
    if (m->set_fd >= 0 && rlk_fd_is_ours(m->set_fd))
        return true;
    if (m->set_fd >= 0)
        rlk_fd_close(m->set_fd);
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        m->seats[i].fd = -1;
    m->set_fd = rlk_conn_group_open();
    m->due = 0;
    return m->set_fd >= 0;
}

static bool has_input(const struct rlk_monitor *m)
{
    struct pollfd p = { .fd = m->set_fd, .events = POLLIN };

    return poll(&p, 1, 0) != 0;
}

int64_t rlk_monitor_step(struct rlock_client *client, int64_t now)
{
    struct rlk_monitor *m = &client->route.monitor;
    int64_t next = RLK_NEVER;

    if (!m->on)
        return RLK_NEVER;
    if (!need_set(m))
        return now + BACKOFF_FIRST_MS * RLK_NS_PER_MS;
    /* The thread may be here for the mailbox. */
    if (now < m->due && !has_input(m))
        return m->due;
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        step_seat(client, &m->seats[i], now);
    for (int i = 0; i < RLK_MONITOR_SEATS; i++)
        if (seat_due(&m->seats[i]) < next)
            next = seat_due(&m->seats[i]);
    int64_t due = leave_if_told(client, now);
    m->due = due < next ? due : next;
    return m->due;
}
