/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ask: a connection to each sentinel, all at once. It is over when each has answered
 * or failed, or at its limit. When more than half have answered, the others get as long
 * again and a little more: so a sentinel whose host is down does not cost each connect
 * the whole limit. While no master is proven, and after a switch was announced, it waits
 * for all sentinels of the URL. One that was learned counts only when it has answered
 * before.
 *
 * Thread: the owner's. Blocks: no.
 */
#include "net/sentinel.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "net/conn_group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_LIMIT = 1 << 16, GRACE_MS = 20 };

struct party {
    struct rlk_endpoint endpoint; /* refers to `answer` */
    struct rlk_sentinel_answer answer;
    struct rlk_conn *conn; /* NULL: it has answered or failed */
    int seat;
    size_t number;                       /* in the URL, if it is listed */
    struct rlk_sentinel_socket socket;   /* where it answered last */
    bool known;                          /* it had one when the ask began */
    bool asked, has_master, has_address; /* the replies that have come */
    bool counts; /* the ask waits for it: it is listed, or has answered before */
};

struct rlk_sentinel_ask {
    char *master; /* its name */
    int fd;
    int64_t started, limit;
    bool hurries; /* more than half have answered */
    bool cut;
    enum rlk_sentinel_how how;
    struct rlk_sentinel_book *book; /* of the endpoint */
    const char *password;           /* the sentinels'; or NULL */
    size_t count, answered, open;
    size_t counted, counted_answered; /* of those that count */
    size_t listed_open;
    struct party parties[]; /* as many as count */
};

/* ---- connections to sentinels */

/* rule: P10 */
void rlk_sentinel_endpoint(struct rlk_endpoint *ret_endpoint,
                           const struct rlk_endpoint *of,
                           struct rlk_sentinel_address *sentinel)
{
    char label[sizeof(ret_endpoint->label) - sizeof("sentinel ")];

    *ret_endpoint = (struct rlk_endpoint){
        .host = sentinel->host,
        .port = sentinel->port,
        .user = of->sentinels.user,
        .password = of->sentinels.password,
        .tls = of->tls,
        .tls_store = of->tls_store,
    };
    rlk_url_label(label, sizeof(label), sentinel->host, sentinel->port);
    snprintf(ret_endpoint->label, sizeof(ret_endpoint->label), "sentinel %s", label);
}

struct rlk_conn_options rlk_sentinel_options(const struct rlk_endpoint *sentinel,
                                             bool in_loop)
{
    return (struct rlk_conn_options){
        .endpoint = sentinel,
        .only_ping = true, /* sentinels do not know TIME */
        .in_loop = in_loop,
        .reply_limit = REPLY_LIMIT,
    };
}

int rlk_sentinel_append(struct rlk_conn *conn, const char *verb, const char *master)
{
    const char *const argv[] = { "SENTINEL", verb, master };
    const size_t len[] = { strlen(argv[0]), strlen(verb), strlen(master) };

    return rlk_conn_append(conn, 3, argv, len);
}

int rlk_sentinel_append_ask(struct rlk_conn *conn, const char *master)
{
    int rc = rlk_sentinel_append(conn, "MASTER", master);

    return rc == 0 ? rlk_sentinel_append(conn, "GET-MASTER-ADDR-BY-NAME", master) : rc;
}

/* ---- one sentinel */

/* Keeps the address at which the sentinel answered, and forgets one where it does not. */
static void note_socket(struct rlk_sentinel_ask *ask, const struct party *p)
{
    bool learned = p->asked && p->socket.len > 0, lost = p->known && p->socket.len == 0;

    if (p->answer.listed && (learned || lost))
        rlk_sentinel_book_connected(ask->book, p->number, &p->socket);
}

static void part(struct rlk_sentinel_ask *ask, struct party *p)
{
    if (p->has_master && !p->has_address)
        rlk_sentinel_reply_address(&p->answer, NULL);
    rlk_conn_group_leave(ask->fd, &p->seat);
    rlk_conn_free(p->conn);
    p->conn = NULL;
    note_socket(ask, p);
    ask->open--;
    ask->listed_open -= p->answer.listed;
    if (!p->answer.listed && ask->book)
        rlk_sentinel_book_asked(ask->book, &p->answer.sentinel, p->has_master);
}

/* rule: P10 */
/* A text of a sentinel must not show the password that it got. */
static void take_reply(struct rlk_sentinel_ask *ask, struct party *p,
                       const struct rlk_reply *reply)
{
    if (p->has_master) {
        rlk_sentinel_reply_address(&p->answer, reply);
        p->has_address = true;
        part(ask, p);
        return;
    }
    rlk_sentinel_reply_master(&p->answer, reply);
    if (rlk_url_quotes(p->answer.text, ask->password))
        snprintf(p->answer.text, sizeof(p->answer.text), "(text withheld)");
    p->has_master = true;
    ask->answered++;
    ask->counted_answered += p->counts;
}

static void fail(struct rlk_sentinel_ask *ask, struct party *p)
{
    enum rlk_failure why = rlk_conn_failure(p->conn);

    if (rlk_clock_boot() >= ask->limit) /* its own deadline */
        ask->cut = true;
    if (p->has_master) {
        part(ask, p);
        return;
    }
    p->answer.said = why == RLK_FAIL_ACCESS     ? RLK_SENTINEL_DENIED
                     : why == RLK_FAIL_PROTOCOL ? RLK_SENTINEL_STRANGE
                                                : RLK_SENTINEL_SILENT;
    snprintf(p->answer.text, sizeof(p->answer.text), "%.*s",
             (int)sizeof(p->answer.text) - 1, rlk_conn_error_text(p->conn));
    part(ask, p);
}

static void step_party(struct rlk_sentinel_ask *ask, struct party *p)
{
    struct rlk_reply *reply;

    rlk_conn_group_leave(ask->fd, &p->seat);
    rlk_conn_step(p->conn);
    if (rlk_conn_state(p->conn) == RLK_CONN_READY && !p->asked) {
        p->asked = true;
        if (rlk_sentinel_append_ask(p->conn, ask->master) != 0)
            rlk_conn_kill(p->conn, RLK_FAIL_LOCAL, "out of memory");
        rlk_conn_step(p->conn);
    }
    while (p->conn && (reply = rlk_conn_take_reply(p->conn)) != NULL) {
        take_reply(ask, p, reply);
        rlk_reply_free(reply);
    }
    if (!p->conn)
        return;
    if (rlk_conn_state(p->conn) == RLK_CONN_DEAD) {
        fail(ask, p);
    } else if (!rlk_conn_group_join(ask->fd, p->conn, &p->seat)) {
        rlk_conn_kill(p->conn, RLK_FAIL_LOCAL, "out of memory");
        fail(ask, p);
    }
}

static void start_party(struct rlk_sentinel_ask *ask, struct party *p,
                        const struct rlk_endpoint *of)
{
    rlk_sentinel_endpoint(&p->endpoint, of, &p->answer.sentinel);
    struct rlk_conn_options options =
        rlk_sentinel_options(&p->endpoint, ask->how == RLK_SENTINEL_IN_LOOP);

    p->seat = -1;
    if (p->answer.listed) {
        p->socket = rlk_sentinel_book_socket(ask->book, p->number);
        p->known = p->socket.len > 0;
        options.last_address = &p->socket.storage;
        options.last_address_len = &p->socket.len;
    }
    snprintf(p->answer.text, sizeof(p->answer.text), "out of memory");
    p->counts =
        p->answer.listed || rlk_sentinel_book_is_useful(of->book, &p->answer.sentinel);
    ask->counted += p->counts;
    if (rlk_conn_start(&p->conn, &options, ask->limit) != 0) {
        p->conn = NULL;
        return;
    }
    ask->open++;
    ask->listed_open += p->answer.listed;
    step_party(ask, p);
}

/* ---- the ask */

int rlk_sentinel_ask_start(struct rlk_sentinel_ask **ret_ask,
                           const struct rlk_endpoint *endpoint, int64_t until,
                           enum rlk_sentinel_how how)
{
    struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX];
    size_t count = rlk_sentinel_book_list(endpoint, list);
    struct rlk_sentinel_ask *ask = calloc(1, sizeof(*ask) + count * sizeof(struct party));

    if (!ask)
        return rlk_error_set(ENOMEM, "out of memory");
    ask->master = endpoint->sentinels.master;
    ask->password = endpoint->sentinels.password;
    ask->book = endpoint->book;
    ask->started = rlk_clock_boot();
    ask->limit = until;
    ask->how = how;
    ask->fd = rlk_conn_group_open();
    if (ask->fd < 0) {
        int code = errno;
        free(ask);
        return rlk_error_of_step(code, "cannot create an event set (epoll_create1)");
    }
    for (; ask->count < count; ask->count++) {
        struct party *p = &ask->parties[ask->count];
        p->answer.sentinel = list[ask->count];
        p->answer.listed = ask->count < endpoint->sentinels.count;
        p->number = ask->count;
        start_party(ask, p, endpoint);
    }
    *ret_ask = ask;
    return 0;
}

void rlk_sentinel_ask_free(struct rlk_sentinel_ask *ask)
{
    if (!ask)
        return;
    for (size_t i = 0; i < ask->count; i++)
        rlk_conn_free(ask->parties[i].conn);
    rlk_fd_close(ask->fd);
    free(ask);
}

int rlk_sentinel_ask_fd(const struct rlk_sentinel_ask *ask)
{
    return ask->fd;
}

int64_t rlk_sentinel_ask_due(const struct rlk_sentinel_ask *ask)
{
    int64_t due = ask->limit;

    for (size_t i = 0; i < ask->count; i++) {
        const struct party *p = &ask->parties[i];
        if (p->conn && rlk_conn_due(p->conn) < due)
            due = rlk_conn_due(p->conn);
    }
    return due;
}

static void hurry(struct rlk_sentinel_ask *ask, int64_t now)
{
    int64_t end = 2 * now - ask->started + GRACE_MS * RLK_NS_PER_MS;

    if (ask->how == RLK_SENTINEL_ALL || ask->hurries ||
        ask->counted_answered * 2 <= ask->counted ||
        (ask->listed_open > 0 && rlk_sentinel_book_expects(ask->book)))
        return;
    ask->hurries = true;
    if (end < ask->limit)
        ask->limit = end;
}

bool rlk_sentinel_ask_step(struct rlk_sentinel_ask *ask)
{
    for (size_t i = 0; i < ask->count; i++)
        if (ask->parties[i].conn)
            step_party(ask, &ask->parties[i]);
    int64_t now = rlk_clock_boot();
    hurry(ask, now);
    if (ask->open == 0)
        return true;
    if (now < ask->limit)
        return false;
    ask->cut = true;
    for (size_t i = 0; i < ask->count; i++) {
        struct party *p = &ask->parties[i];
        if (!p->conn)
            continue;
        if (!p->has_master)
            snprintf(p->answer.text, sizeof(p->answer.text), "%s: no reply in time",
                     p->endpoint.label);
        part(ask, p);
    }
    return true;
}

size_t rlk_sentinel_ask_count(const struct rlk_sentinel_ask *ask)
{
    return ask->count;
}

const struct rlk_sentinel_answer *
rlk_sentinel_ask_answer(const struct rlk_sentinel_ask *ask, size_t i)
{
    return &ask->parties[i].answer;
}

bool rlk_sentinel_ask_failed(const struct rlk_sentinel_ask *ask)
{
    return ask->answered == 0 && !ask->cut;
}
