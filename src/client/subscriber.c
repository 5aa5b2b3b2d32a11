/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscriber thread. For each client it has one connection that subscribes to the
 * mailbox; while a waiter sees a foreign holder, it also subscribes to channels of
 * Redisson locks. Messages are hints: the registry decides by the waiter's ticket what to
 * believe. After every (re)subscription all waiters check the server again, because
 * messages published meanwhile are lost (L3). A silent subscription is pinged, because a
 * vanished peer sends nothing.
 *
 * In a cluster each node that is used and has hash slots has such a connection; the
 * client's own target has none.
 *
 * The loop (see loop.h) calls step() for each target whenever its socket, a timer or
 * another thread requires it. Event callbacks run here, too, with no mutex held; a
 * callback may close the client that it is called for.
 */
#include "client/subscriber.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "client/client.h"
#include "client/events.h"
#include "client/leader.h"
#include "net/mailbox.h"
#include "net/server_error.h"
#include "state/handoff.h"

#include <string.h>

enum { BACKOFF_FIRST_MS = 20, BACKOFF_MAX_MS = 1000, REASON_SIZE = 300 };

static int64_t step(struct rlk_loop_member *member, int64_t now);
static int fd(struct rlk_loop_member *member, short *ret_events);
static int other_fd(struct rlk_loop_member *member);
static void left(struct rlk_loop_member *member);

static struct rlk_loop loop = {
    .thread_name = "rlock-sub",
    .step = step,
    .fd = fd,
    .other_fd = other_fd,
    .left = left,
};
static rlk_once_t once = RLK_ONCE_INIT;
static int loop_rc;

static void init(void)
{
    loop_rc = rlk_loop_init(&loop);
}

static struct rlk_target *target_of(struct rlk_loop_member *member)
{
    return RLK_CONTAINER_OF(member, struct rlk_target, subscription.member);
}

/* Whether the target does what is done once for a client. */
static bool is_own(const struct rlk_target *target)
{
    return target == &target->client->route.target;
}

/* Whether locks may be at the target. */
static bool has_locks(const struct rlk_target *target)
{
    const struct rlk_route *route = &target->client->route;

    return !rlk_route_is_cluster(route) ||
           (!rlk_route_is_nowhere(route, target) && rlk_cluster_serves(target));
}

/* Whether this lock is. */
static bool has_lock(const struct rlk_lock *lock, void *target)
{
    struct rlk_target *at = target;

    return rlk_route_to(&at->client->route, lock) == at;
}

int rlk_subscriber_join(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;

    rlk_sync_once(&once, init);
    if (loop_rc != 0)
        return loop_rc;
    sub->state = RLK_SUB_DOWN;
    sub->backoff_ms = BACKOFF_FIRST_MS;
    sub->answer_due = sub->ping_at = RLK_NEVER;
    sub->watch_fd = -1;
    if (!is_own(target))
        return rlk_loop_join(&loop, &sub->member);
    client->registry.leader_fd = -1;
    rlk_monitor_start(client);
    int rc = rlk_loop_join(&loop, &sub->member);
    if (rc == 0)
        client->registry.subscriber = &loop.bell;
    return rc;
}

void rlk_subscriber_leave(struct rlk_target *target)
{
    rlk_loop_leave(&loop, &target->subscription.member);
}

void rlk_subscriber_send_off(struct rlk_target *target)
{
    rlk_loop_send_off(&loop, &target->subscription.member);
}

bool rlk_subscriber_has_left(struct rlk_target *target)
{
    return rlk_loop_has_left(&loop, &target->subscription.member);
}

/* Other threads may read the atomic fields, which stand before all others. */
void rlk_subscriber_reset(struct rlk_subscription *sub)
{
    const size_t from = offsetof(struct rlk_subscription, member);

    atomic_store(&sub->subscribed, false);
    atomic_store(&sub->hears, false);
    atomic_store(&sub->unheard_at, 0);
    atomic_store(&sub->away_since, 0);
    memset((char *)sub + from, 0, sizeof(*sub) - from);
}

void rlk_subscriber_look(struct rlock_client *client)
{
    rlk_registry_lock(&client->registry);
    client->registry.subscriber_dirty = true;
    rlk_registry_unlock(&client->registry);
}

bool rlk_subscriber_is_self(void)
{
    return rlk_loop_is_self(&loop);
}

void rlk_subscriber_forget(void)
{
    rlk_loop_forget(&loop);
}

static int fd(struct rlk_loop_member *member, short *ret_events)
{
    struct rlk_target *target = target_of(member);
    struct rlk_subscription *sub = &target->subscription;

    *ret_events = POLLIN;
    if (rlk_client_is_over(target->client))
        return -1;
    if (sub->mode != RLK_SUB_OWN)
        return sub->mode == RLK_SUB_LENT ? sub->watch_fd : -1;
    if (!sub->conn)
        return -1;
    *ret_events = rlk_conn_events(sub->conn);
    return rlk_conn_fd(sub->conn);
}

static int other_fd(struct rlk_loop_member *member)
{
    const struct rlk_target *target = target_of(member);

    return !is_own(target) || rlk_client_is_over(target->client)
               ? -1
               : rlk_monitor_fd(target->client);
}

/* ---- the connection */

static void drop_conn(struct rlk_subscription *sub)
{
    rlk_reply_free(sub->left_over);
    sub->left_over = NULL;
    rlk_conn_free(sub->conn);
    sub->conn = NULL;
    sub->state = RLK_SUB_DOWN;
}

static void fail(struct rlk_target *target, int64_t now)
{
    struct rlk_subscription *sub = &target->subscription;

    drop_conn(sub);
    /* rule: P18 */
    if (rlk_route_is_cluster(&target->client->route)) {
        rlk_cluster_failed(target);
        rlk_cluster_reload(target->client->route.cluster);
    }
    atomic_store(&sub->hears, false);
    atomic_store(&sub->subscribed, false);
    sub->answer_due = sub->ping_at = RLK_NEVER;
    /* Jitter from the clock's low bits: clients that were cut off together do not
     * return together. */
    int64_t jitter = now / 1000 % (sub->backoff_ms + 1);
    sub->retry_at = now + (sub->backoff_ms / 2 + jitter / 2 + 1) * RLK_NS_PER_MS;
    sub->backoff_ms =
        sub->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : sub->backoff_ms * 2;
}

/* Returns 0, or why there is no connection. */
static int open_conn(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    unsigned moves = atomic_load(&target->moves.count);
    if (sub->address_moves != moves)
        sub->address_len = 0;
    sub->address_moves = moves;
    struct rlk_conn_options options = {
        .endpoint = target->endpoint,
        .name = client->conn_name,
        .in_loop = true,
        .keepalive_ms = client->config.presence_ms,
        .reply_limit = 1 << 20,
        .skip_over = RLK_MAIL_SIZE_MAX, /* otherwise a long forged message would end the
                                           connection */
        .last_address = &sub->address,
        .last_address_len = &sub->address_len,
        .moves = &target->moves,
        .moves_seen = moves,
    };
    int64_t deadline = now + client->config.connect_timeout_ms * RLK_NS_PER_MS;

    int rc = rlk_conn_start(&sub->conn, &options, deadline);
    if (rc != 0) {
        sub->conn = NULL;
        fail(target, now);
        return rc;
    }
    sub->state = RLK_SUB_OPENING;
    sub->asked_at = now;
    rlk_registry_unanswered(&client->registry, now);
    sub->answer_due = deadline;
    return 0;
}

static int send_words(struct rlk_subscription *sub, const char *verb, const char *word,
                      size_t len)
{
    const char *argv[] = { verb, word };
    size_t lens[] = { strlen(verb), len };
    return rlk_conn_append(sub->conn, word ? 2 : 1, argv, lens);
}

/* Subscribes to the mailbox, and to the channels that waiters need. */
static int join_all(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    char mailbox[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];

    memcpy(mailbox, RLK_MAILBOX_PREFIX, sizeof(RLK_MAILBOX_PREFIX) - 1);
    memcpy(mailbox + sizeof(RLK_MAILBOX_PREFIX) - 1, client->uuid, RLK_UUID_LEN);
    int rc = send_words(sub, "SUBSCRIBE", mailbox, sizeof(mailbox) - 1);
    if (rc == 0)
        rc = rlk_subscriber_channel_rejoin(target);
    if (rlk_route_is_cluster(&client->route))
        rlk_shardmail_rejoin(target);
    sub->state = RLK_SUB_JOINING;
    sub->asked_at = now;
    sub->answer_due = now + rlk_client_command_timeout(client);
    return rc;
}

/* ---- replies */

static bool word_is(const struct rlk_reply *reply, const char *word)
{
    size_t len;
    if (!reply || rlk_reply_type(reply) != RLK_REPLY_STRING)
        return false;
    const char *text = rlk_reply_string(reply, &len);
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* rule: P19, P21 */
/* Whether the error is about a sharded channel whose hash slot is, or goes, elsewhere.
 * After any other one the client uses no such channels any more; unless Redisson's
 * channel was refused, which says nothing of the mailboxes. */
static bool is_shard_refusal(struct rlk_target *target, const struct rlk_reply *reply)
{
    static const char *const passing[] = { "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN" };
    struct rlk_route *route = &target->client->route;
    size_t len;
    const char *text = rlk_reply_string(reply, &len);

    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        if (!rlk_server_error_begins(text, len, passing[i]))
            continue;
        rlk_cluster_reload(route->cluster);
        return true; /* while it is used, it is asked for again */
    }
    if (rlk_server_error_of_channel(text, len))
        return false;
    atomic_store(&route->shard_refused, true);
    atomic_store(&route->sharded, false);
    return false;
}

/* An error, or a reply that no subscription gives. Its text comes from the server:
 * only printable bytes are shown, and not many. Returns as take_reply does. */
static bool refused(struct rlk_target *target, const struct rlk_reply *reply, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    bool error = rlk_reply_type(reply) == RLK_REPLY_ERROR;
    char text[RLK_SERVER_ERROR_SIZE] = "unexpected reply to SUBSCRIBE";
    char more[RLK_LOG_MORE_SIZE];
    size_t len;

    if (error) {
        const char *said = rlk_reply_string(reply, &len);
        rlk_server_error_describe(text, sizeof(text), "SUBSCRIBE", NULL, NULL, 0, said,
                                  len);
    }
    /* rule: P21 */
    if (error && sub->state == RLK_SUB_UP && rlk_route_is_cluster(&client->route) &&
        is_shard_refusal(target, reply))
        return true;
    RLK_COUNT(client->counters.refusals);
    if (rlk_log_now(&sub->pace, now, 1, more))
        rlk_log(RLK_LOG_ERR, "rlock: subscription refused at %s: %s%s",
                target->endpoint->label, text, more);
    /* A channel of Redisson's may be refused: its lock is polled, and the mailbox
     * stays. */
    if (sub->state == RLK_SUB_UP && error) {
        /* If this was the reply to a PING, the PING is answered. */
        sub->answer_due = RLK_NEVER;
        sub->ping_at = now + client->config.presence_ms * RLK_NS_PER_MS;
        return true;
    }
    rlk_conn_kill(sub->conn, RLK_FAIL_UNKNOWN, text); /* the event's reason */
    return false;
}

/* rule: P9 */
/* What an old master grants is nothing. After the mailbox is subscribed at the new one,
 * all waiters ask. */
static bool is_of_old_master(const struct rlk_target *target)
{
    return target->endpoint->sentinels.count > 0 &&
           rlk_conn_moved(target->subscription.conn);
}

static bool is_mailbox(const char *channel)
{
    return strncmp(channel, RLK_MAILBOX_PREFIX, sizeof(RLK_MAILBOX_PREFIX) - 1) == 0;
}

/* The server has confirmed the subscription of a sharded channel, or ended it. */
static void take_sharded(struct rlk_target *target, const char *channel, size_t len,
                         bool joined)
{
    struct rlock_client *client = target->client;

    if (is_mailbox(channel)) {
        if (rlk_shardmail_said(target, channel, len, joined) && !joined)
            rlk_cluster_reload(client->route.cluster);
    } else if (joined) {
        rlk_subscriber_take_channel(client, channel, len); /* it may be free */
    } else {
        rlk_subscriber_channel_left(client, channel, len);
    }
}

/* Returns false when the subscription is useless. */
static bool take_reply(struct rlk_target *target, const struct rlk_reply *reply,
                       int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    const struct rlk_reply *kind = rlk_reply_at(reply, 0),
                           *channel = rlk_reply_at(reply, 1),
                           *payload = rlk_reply_at(reply, 2);
    bool in_cluster = rlk_route_is_cluster(&client->route);
    size_t channel_len, payload_len;

    atomic_store_explicit(&client->registry.heard_at, now, memory_order_relaxed);
    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY)
        return refused(target, reply, now);
    sub->ping_at = now + client->config.presence_ms * RLK_NS_PER_MS;
    if ((word_is(kind, "message") || word_is(kind, "smessage")) && channel && payload &&
        rlk_reply_type(channel) == RLK_REPLY_STRING) {
        const char *name = rlk_reply_string(channel, &channel_len);
        /* "" if it was too long */
        const char *text = rlk_reply_string(payload, &payload_len);
        bool is_mail = is_mailbox(name);
        if (is_mail && !is_of_old_master(target))
            rlk_subscriber_take_mail(client, text, payload_len);
        else if (is_mail)
            RLK_COUNT(client->counters.messages_ignored);
        else
            rlk_subscriber_take_channel(client, name, channel_len);
        return true;
    }
    if (in_cluster && channel && rlk_reply_type(channel) == RLK_REPLY_STRING &&
        (word_is(kind, "ssubscribe") || word_is(kind, "sunsubscribe"))) {
        const char *name = rlk_reply_string(channel, &channel_len);
        take_sharded(target, name, channel_len, word_is(kind, "ssubscribe"));
    } else if (word_is(kind, "pong")) {
        sub->answer_due = RLK_NEVER;
    } else if (word_is(kind, "subscribe") && channel &&
               rlk_reply_type(channel) == RLK_REPLY_STRING) {
        const char *name = rlk_reply_string(channel, &channel_len);
        if (sub->state == RLK_SUB_JOINING && is_mailbox(name)) {
            sub->state = RLK_SUB_UP;
            sub->answer_due = RLK_NEVER;
            sub->up_at = rlk_clock_boot();
            sub->backoff_ms = BACKOFF_FIRST_MS;
        } else {
            /* check again: it may be free */
            rlk_subscriber_take_channel(client, name, channel_len);
        }
    }
    return true;
}

/* Returns as take_reply does. To a leader it also returns false when it left a reply
 * to the thread: a refusal is logged, and the logger must not run where the program
 * takes a lock. */
static bool take_replies(struct rlk_target *target, int64_t now, bool leads)
{
    struct rlk_subscription *sub = &target->subscription;
    struct rlk_reply *reply = sub->left_over;
    bool useful = true;

    sub->left_over = NULL;
    while (useful && (reply || (reply = rlk_conn_take_reply(sub->conn)) != NULL)) {
        if (leads && rlk_reply_type(reply) != RLK_REPLY_ARRAY) {
            sub->left_over = reply;
            return false;
        }
        useful = take_reply(target, reply, now);
        rlk_reply_give_back(sub->conn, reply);
        reply = NULL;
    }
    return useful;
}

bool rlk_subscriber_read(struct rlk_target *target)
{
    struct rlk_subscription *sub = &target->subscription;

    rlk_conn_step(sub->conn);
    return take_replies(target, rlk_clock_boot(), true) &&
           rlk_conn_state(sub->conn) != RLK_CONN_DEAD;
}

/* ---- the loop's calls */

/* rule: P28 */
/* How long the connection was silent before it was closed; 0: it was in use. */
static int64_t rested(const struct rlk_target *target, bool was_up, int64_t now)
{
    const struct rlock_client *client = target->client;
    const struct rlk_subscription *sub = &target->subscription;

    if (!was_up || sub->ping_at == RLK_NEVER)
        return 0;
    return now - sub->ping_at + client->config.presence_ms * RLK_NS_PER_MS;
}

/* rule: L3 */
/* Reads the input. False: a callback closed the client. */
static bool listen_on(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    bool was_up = sub->state == RLK_SUB_UP, useful = true, silent = false;
    int64_t heard_at = client->registry.heard_at;

    rlk_conn_step(sub->conn);
    if (sub->state == RLK_SUB_OPENING && rlk_conn_state(sub->conn) == RLK_CONN_READY) {
        RLK_COUNT(client->counters.connects);
        useful = join_all(target, now) == 0;
        rlk_conn_step(sub->conn);
    }
    useful = useful && take_replies(target, now, false);
    if (now >= sub->answer_due) {
        silent = true;
        rlk_conn_kill(sub->conn, RLK_FAIL_UNKNOWN, "no reply from the server");
    }
    if (sub->state == RLK_SUB_UP && !was_up) {
        bool again = sub->been_up;
        if (again)
            RLK_COUNT(client->counters.reconnects);
        sub->been_up = true;
        sub->ping_at = now + client->config.presence_ms * RLK_NS_PER_MS;
        rlk_registry_lock(&client->registry);
        rlk_registry_recheck_some_locked(&client->registry, has_lock, target);
        rlk_handoff_ask_all_locked(&client->registry);
        rlk_registry_unlock(&client->registry);
        bool told_down = sub->told_down, open = rlk_events_up(target, again);
        if (told_down)
            return open;
    }
    if (useful && rlk_conn_state(sub->conn) != RLK_CONN_DEAD)
        return true;
    if (sub->state == RLK_SUB_OPENING)
        RLK_COUNT(client->counters.connect_failures);
    if (silent)
        rlk_registry_unanswered(&client->registry, sub->asked_at);
    char reason[REASON_SIZE];
    const char *text = rlk_conn_error_text(sub->conn);
    size_t len = strnlen(text, sizeof(reason) - 1);
    memcpy(reason, text, len);
    reason[len] = '\0';
    if (useful && !silent && !sub->leaving)
        rlk_events_explain_rest(target, rested(target, was_up, now), reason,
                                sizeof(reason));
    if (!useful)
        sub->backoff_ms = BACKOFF_MAX_MS; /* refused: frequent tries are useless */
    fail(target, now);
    rlk_registry_lock(&client->registry);
    rlk_handoff_ask_all_locked(&client->registry);
    rlk_registry_unlock(&client->registry);
    if (!sub->leaving)
        return rlk_events_down(target, reason, heard_at != 0 && silent ? heard_at : now);
    sub->leaving = false;
    rlk_log(RLK_LOG_DEBUG, "rlock: mailbox connection to %s replaced: %s",
            target->endpoint->label, reason);
    return true;
}

static void ping_if_due(struct rlk_target *target, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    if (sub->state != RLK_SUB_UP || now < sub->ping_at)
        return;
    sub->ping_at = RLK_NEVER;
    sub->asked_at = now;
    sub->answer_due = now + rlk_client_command_timeout(client);
    if (send_words(sub, "PING", NULL, 0) != 0)
        rlk_conn_kill(sub->conn, RLK_FAIL_LOCAL, "out of memory");
}

/* Whether the subscription is at another server than the one that gets the requests. A
 * replica accepts subscriptions as a master does. There the client would hear what the
 * master's scripts publish, even messages that they take back because the mailbox has
 * no subscriber, and the master would not see the subscription. */
static bool is_elsewhere(struct rlk_target *target)
{
    struct rlk_subscription *sub = &target->subscription;
    return rlk_conn_moved(sub->conn) ||
           (sub->state == RLK_SUB_UP && atomic_load(&sub->unheard_at) > sub->up_at);
}

/* Leaves such a server, but not too often. Returns when to look again. */
static int64_t leave_elsewhere(struct rlk_target *target, int64_t now)
{
    struct rlk_subscription *sub = &target->subscription;

    if (!sub->conn || !is_elsewhere(target))
        return RLK_NEVER;
    if (now < sub->leave_at)
        return sub->leave_at;
    sub->leave_at = now + BACKOFF_MAX_MS * RLK_NS_PER_MS;
    sub->address_len = 0;
    sub->leaving = true;
    rlk_conn_kill(sub->conn, RLK_FAIL_NOT_SENT,
                  "the mailbox was subscribed at a server that does not have the locks");
    return RLK_NEVER;
}

/* rule: P9 */
/* Tells the opening connections of a client of Sentinel whether its master lives. */
static void note_life(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    int64_t until = 0;

    if (!target->endpoint->book)
        return;
    if (sub->conn && sub->state == RLK_SUB_UP && !rlk_conn_moved(sub->conn))
        until = sub->answer_due != RLK_NEVER
                    ? sub->answer_due
                    : rlk_clock_add(sub->ping_at, rlk_client_command_timeout(client));
    rlk_sentinel_book_heard(target->endpoint->book, until);
}

/* Returns when to call again; 0: a callback closed the client. */
static int64_t step_conn(struct rlk_target *target, int64_t now)
{
    struct rlk_subscription *sub = &target->subscription;

    if (sub->state == RLK_SUB_DOWN && now >= sub->retry_at) {
        int rc = open_conn(target, now);
        if (rc != 0 && !rlk_events_down(target, rlk_error_text(rc), now))
            return 0;
    }
    int64_t leave_due = leave_elsewhere(target, now);
    if (sub->conn && !listen_on(target, now))
        return 0;
    if (sub->conn && sub->state >= RLK_SUB_JOINING) {
        ping_if_due(target, now);
        int rc = rlk_subscriber_channel_follow(target);
        if (rc == 0 && rlk_route_is_cluster(&target->client->route))
            rc = rlk_shardmail_follow(target, sub->conn, now);
        if (rc != 0)
            rlk_conn_kill(sub->conn, RLK_FAIL_LOCAL, "out of memory");
        /* Sends, and handles replies that were read meanwhile, because poll does not
         * report them any more. */
        if ((rlk_conn_unsent(sub->conn) > 0 ||
             rlk_conn_state(sub->conn) == RLK_CONN_DEAD) &&
            !listen_on(target, now))
            return 0;
    }
    if (!sub->conn)
        return sub->retry_at;
    atomic_store(&sub->subscribed, sub->state == RLK_SUB_UP);
    atomic_store(&sub->hears, sub->state == RLK_SUB_UP && sub->answer_due == RLK_NEVER);
    int64_t due = rlk_conn_due(sub->conn);
    if (sub->answer_due < due)
        due = sub->answer_due;
    if (sub->ping_at < due)
        due = sub->ping_at;
    if (leave_due < due)
        due = leave_due;
    if (!rlk_route_is_cluster(&target->client->route) || sub->state < RLK_SUB_JOINING)
        return due;
    int64_t mail_due = rlk_shardmail_due(target);
    return mail_due < due ? mail_due : due;
}

/* rule: P23 */
/* Leaves a node that has no locks any more. False: a callback closed the client. */
static bool let_go(struct rlk_target *target)
{
    struct rlk_subscription *sub = &target->subscription;

    if (sub->conn)
        drop_conn(sub);
    rlk_registry_lock(&target->client->registry);
    rlk_shardmail_clear(&target->shardmail);
    rlk_registry_unlock(&target->client->registry);
    sub->answer_due = sub->ping_at = RLK_NEVER;
    sub->retry_at = 0;
    sub->backoff_ms = BACKOFF_FIRST_MS;
    atomic_store(&sub->hears, false);
    atomic_store(&sub->subscribed, false);
    return rlk_events_left(target);
}

static int64_t step(struct rlk_loop_member *member, int64_t now)
{
    struct rlk_target *target = target_of(member);
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    int64_t monitor_due = RLK_NEVER;

    if (rlk_client_is_over(client))
        return RLK_NEVER;
    if (is_own(target)) {
        if (!rlk_events_news(client))
            return 0;
        monitor_due = rlk_monitor_step(client, now);
    }
    if (!has_locks(target))
        return let_go(target) ? RLK_NEVER : 0;
    bool work_due =
        sub->mode == RLK_SUB_LENT && (now >= sub->due || is_elsewhere(target));
    if (rlk_leader_take_over(target, work_due)) {
        int64_t due = step_conn(target, now);
        if (due == 0)
            return 0;
        note_life(target);
        sub->due = due;
        if (sub->conn)
            rlk_leader_lend(target);
    }
    if (sub->mode == RLK_SUB_RECALLED || monitor_due < sub->due)
        return monitor_due;
    return sub->due;
}

/* Events from before the close are still reported, unless the client's own callback
 * closed it. */
static void left(struct rlk_loop_member *member)
{
    struct rlk_target *target = target_of(member);
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;

    if (is_own(target)) {
        if (member->attached && !rlk_events_news(client))
            return;
        rlk_monitor_stop(client);
    }
    drop_conn(sub);
    sub->mode = RLK_SUB_OWN;
    rlk_leader_end(target);
}
