/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a master that sentinels name: ask, connect, see that it is a master; if it
 * is none, pause and ask again, until the deadline. Entered by the thread that owns the
 * connection; never blocks.
 */
#include "net/conn_open.h"

#include "base/clock.h"
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ASK_MS = 300, /* at most; after each ask without any answer twice as long */
    ASK_MIN_MS = 50,
    ASK_DOUBLED_MAX = 5,
    PAUSE_MS = 100,
    PAUSE_JITTER_MS = 50
};

/* The server that a sentinel named: the URL's endpoint with another host. */
struct rlk_conn_master {
    struct rlk_endpoint endpoint;
    struct rlk_sentinel_address address;
    struct rlk_sentinel_chosen chosen;
    const struct rlk_endpoint *of; /* the URL's */
};

void rlk_conn_sentinel_forget(struct rlk_conn_master *master)
{
    free(master);
}

static const struct rlk_endpoint *url_endpoint(const struct rlk_conn *conn)
{
    return conn->master ? conn->master->of : conn->opening->options.endpoint;
}

/* rule: P7 */
static int64_t ask_until(const struct rlk_conn_opening *o, int64_t now)
{
    unsigned doubled =
        o->silent_asks < ASK_DOUBLED_MAX ? o->silent_asks : ASK_DOUBLED_MAX;
    int64_t most = ASK_MS * RLK_NS_PER_MS << doubled;
    int64_t share = rlk_clock_add(o->deadline, -now) / 2;

    if (share < ASK_MIN_MS * RLK_NS_PER_MS)
        share = ASK_MIN_MS * RLK_NS_PER_MS;
    int64_t until = now + (share < most ? share : most);
    return until < o->deadline ? until : o->deadline;
}

static bool begin(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;

    o->due = o->deadline;
    rlk_error_clear();
    int64_t until = ask_until(o, rlk_clock_boot());
    enum rlk_sentinel_how how =
        o->options.in_loop ? RLK_SENTINEL_IN_LOOP : RLK_SENTINEL_FOR_CALLER;
    int rc = rlk_sentinel_ask_start(&o->ask, url_endpoint(conn), until, how);
    if (rc == 0)
        return true;
    rlk_error_default(rc);
    rlk_conn_explain(conn, "cannot ask the sentinels of %s: %s",
                     url_endpoint(conn)->label, rlk_error_message());
    rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, rc);
    return false;
}

static bool turn_to(struct rlk_conn *conn, const struct rlk_sentinel_chosen *chosen)
{
    const struct rlk_sentinel_address *address = &chosen->master.address;
    const struct rlk_endpoint *of = url_endpoint(conn);
    struct rlk_conn_master *m = conn->master ? conn->master : calloc(1, sizeof(*m));
    char label[sizeof(m->endpoint.label)];

    if (!m) {
        rlk_conn_explain(conn, "out of memory");
        rlk_conn_opening_give_up(conn, RLK_FAIL_LOCAL, ENOMEM);
        return false;
    }
    conn->master = m;
    m->of = of;
    m->address = *address;
    m->chosen = *chosen;
    m->endpoint = *of;
    m->endpoint.host = m->address.host;
    m->endpoint.port = m->address.port;
    rlk_url_label(label, sizeof(label), address->host, address->port);
    snprintf(m->endpoint.label, sizeof(m->endpoint.label), "master %.40s (%.77s)",
             of->sentinels.master, label);
    conn->label = m->endpoint.label;
    conn->opening->options.endpoint = &m->endpoint;
    return true;
}

static void begin_pause(struct rlk_conn_opening *o)
{
    int64_t now = rlk_clock_boot();

    o->due = o->deadline;
    o->retry_at = now + (PAUSE_MS + now / 1000 % PAUSE_JITTER_MS) * RLK_NS_PER_MS;
    o->phase = RLK_PHASE_PAUSE;
}

/* Returns whether there is more to do now. */
static bool found_none(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    char text[sizeof(conn->text)];
    enum rlk_failure why =
        rlk_sentinel_choice_none(o->ask, url_endpoint(conn), text, sizeof(text));

    if (rlk_sentinel_choice_silent(o->ask))
        o->silent_asks++;
    /* What was learned before says more than silence. */
    if (!conn->text[0] || !rlk_sentinel_choice_silent(o->ask))
        rlk_conn_explain(conn, "%s", text);
    if (why == RLK_FAIL_NOT_SENT && !rlk_sentinel_ask_failed(o->ask)) {
        begin_pause(o);
        return true;
    }
    rlk_conn_opening_give_up(conn, why, ENOTCONN);
    return false;
}

/* rule: P9 */
/* Whether the answers name a master. If no sentinel names a usable one, and none says
 * that it is down, it is the present one, as long as the client has a connection to it:
 * so it is no old master that came back. */
static bool choose(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;
    const struct rlk_endpoint *of = url_endpoint(conn);
    unsigned edition = rlk_sentinel_book_edition(of->book);

    if (rlk_sentinel_choice(o->ask, of, &o->chosen))
        return true;
    o->chosen = (struct rlk_sentinel_chosen){ .agreed = true, .edition = edition };
    return !rlk_sentinel_choice_down(o->ask) &&
           rlk_sentinel_book_alive(of->book, rlk_clock_boot(), &o->chosen.master);
}

bool rlk_conn_sentinel_ask(struct rlk_conn *conn)
{
    struct rlk_conn_opening *o = conn->opening;

    if ((!o->ask && !begin(conn)) || !rlk_sentinel_ask_step(o->ask))
        return false;
    if (!choose(conn)) {
        bool more = found_none(conn);
        if (conn->opening) {
            rlk_sentinel_ask_free(o->ask);
            o->ask = NULL;
        }
        return more;
    }
    rlk_sentinel_ask_free(o->ask);
    o->ask = NULL;
    rlk_error_clear(); /* of a sentinel that was not needed */
    if (!turn_to(conn, &o->chosen))
        return false;
    rlk_resolve_free(o->job);
    o->job = NULL;
    o->next = NULL;
    o->phase = RLK_PHASE_RESOLVE;
    o->chosen_at = rlk_clock_boot();
    o->due = o->chosen_at + rlk_clock_add(o->deadline, -o->chosen_at) / 2;
    return true;
}

void rlk_conn_sentinel_wrong(struct rlk_conn *conn)
{
    rlk_sentinel_book_wrong(url_endpoint(conn)->book, &conn->opening->chosen,
                            rlk_clock_boot());
}

void rlk_conn_sentinel_again(struct rlk_conn *conn)
{
    rlk_conn_sentinel_wrong(conn);
    begin_pause(conn->opening);
}

void rlk_conn_sentinel_overtaken(struct rlk_conn *conn)
{
    begin_pause(conn->opening);
}

/* False: another connection has proved another master since the choice. */
static bool prove(struct rlk_conn *conn)
{
    struct rlk_conn_master *m = conn->master;

    conn->unproven = false;
    return !m->of->book || rlk_sentinel_book_proved(m->of->book, &m->chosen, conn->moves,
                                                    &conn->moves_seen);
}

bool rlk_conn_sentinel_ready(struct rlk_conn *conn)
{
    struct rlk_sentinel_chosen *chosen = &conn->master->chosen;

    chosen->peer.len = sizeof(chosen->peer.storage);
    if (getpeername(conn->fd, (struct sockaddr *)&chosen->peer.storage,
                    &chosen->peer.len) != 0)
        chosen->peer.len = 0;
    conn->unproven = !conn->opening->hello.is_master;
    return conn->unproven || prove(conn);
}

/* rule: P7 */
bool rlk_conn_prove(struct rlk_conn *conn)
{
    bool good = !conn->unproven || prove(conn);

    if (!good)
        rlk_conn_kill(conn, RLK_FAIL_NOT_SENT, "the server is no longer a master");
    return good;
}
