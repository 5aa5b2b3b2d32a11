/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the server is something else than Redis or Valkey: a proxy that passes on only
 * some commands, or a server made for tests, whose leases may never end. Judged by what
 * it does, not by the name that it reports. Thread: any. Blocks: network.
 */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum {
    SOON_PART = 2,        /* of the command timeout: an earlier refusal was not silence */
    LEASE_MS = 50,        /* of the key that should end */
    LEASE_LATE_MS = 1000, /* after this time it has not ended */
    LEASE_STEP_NS = 5000000,
    GONE = -2 /* from PTTL */
};

/* ---- a proxy */

/* Whether a connection that begins with PING alone gets a reply. Leaves the thread's
 * message as it is. */
static bool answers_ping(struct rlk_diagnosis *d)
{
    const struct rlk_conn_options options = {
        .endpoint = &d->client->config.endpoint,
        .keepalive_ms = d->client->config.presence_ms,
        .reply_limit = RLK_FINDING_SIZE,
        .only_ping = true,
    };
    int64_t until = rlk_inspect_until(d->client);
    struct rlk_conn *conn;
    bool answers = false;

    rlk_error_keep(true);
    if (rlk_conn_start(&conn, &options, until) == 0) {
        answers = rlk_conn_wait_ready(conn, until) == RLK_CONN_READY;
        rlk_conn_free(conn);
    }
    rlk_error_keep(false);
    return answers;
}

static int ask_time(struct rlk_diagnosis *d)
{
    static const char *const argv[] = { "TIME", NULL };
    struct rlk_reply *reply = NULL;
    int rc = rlk_diagnose_ask(d, argv, &reply, NULL);

    rlk_reply_free(reply);
    return rc;
}

int rlk_diagnose_reach(struct rlk_diagnosis *d)
{
    int64_t soon = rlk_clock_boot() + rlk_client_command_timeout(d->client) / SOON_PART;
    int rc = ask_time(d);

    if (rc != ENOTCONN || rlk_clock_boot() > soon || !answers_ping(d))
        return rc;
    rc = ask_time(d); /* the server may have been away for a moment */
    if (rc != ENOTCONN)
        return rc;
    return rlk_error_set(
        EPROTO,
        "%s answers PING and closes the connection upon CLIENT SETNAME or TIME, as a "
        "proxy does that passes some commands on and not others (twemproxy, which is "
        "nutcracker): locks need the server itself; use its address",
        d->client->config.endpoint.label);
}

/* ---- its name */

int rlk_diagnose_hello(struct rlk_diagnosis *d)
{
    static const char *const argv[] = { "HELLO", "2", NULL };
    struct rlk_reply *reply;

    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_ARRAY, &reply);
    if (rc != 0 || !reply)
        return rc;
    for (size_t i = 0; i + 1 < rlk_reply_count(reply); i += 2) {
        size_t len;
        const char *name = rlk_reply_text_at(reply, i, &len);
        const char *value = rlk_reply_text_at(reply, i + 1, &len);
        if (name && value && strcmp(name, "server") == 0)
            rlk_diagnose_copy(d->hello_name, value);
        else if (name && value && strcmp(name, "version") == 0)
            rlk_diagnose_copy(d->hello_version, value);
    }
    rlk_reply_free(reply);
    return 0;
}

/* ---- its leases */

/* A reply that is an integer, or a status, which counts as 0. False: another reply. */
static int ask_number(struct rlk_diagnosis *d, const char *const *argv, bool *ret_is,
                      int64_t *ret_number)
{
    struct rlk_reply *reply;

    int rc = rlk_diagnose_ask(d, argv, &reply, NULL);
    if (rc != 0)
        return rc;
    *ret_is = rlk_reply_type(reply) == RLK_REPLY_INTEGER ||
              rlk_reply_type(reply) == RLK_REPLY_STATUS;
    *ret_number = rlk_reply_integer(reply);
    rlk_reply_free(reply);
    return 0;
}

/* Looks until the key is gone; *ret_left: its last PTTL, GONE if it is gone. Uses the
 * server's clock alone, so the delay of replies does not matter. It sleeps between two
 * looks, because the expiry of a key wakes no client: servers publish it only where they
 * are configured so, and this checks servers that may not. */
static int see_it_end(struct rlk_diagnosis *d, const char *key, bool *ret_told,
                      int64_t *ret_left)
{
    static const struct timespec step = { .tv_nsec = LEASE_STEP_NS };
    const char *const argv[] = { "PTTL", key, NULL };
    int64_t late = rlk_clock_boot() + LEASE_LATE_MS * RLK_NS_PER_MS, asked_at;
    int rc;

    do {
        nanosleep(&step, NULL);
        asked_at = rlk_clock_boot();
        rc = ask_number(d, argv, ret_told, ret_left);
    } while (rc == 0 && *ret_told && *ret_left != GONE && asked_at < late);
    return rc;
}

int rlk_diagnose_leases(struct rlk_diagnosis *d)
{
    static atomic_uint count; /* gives concurrent calls different keys */
    char key[RLK_KEY_SIZE], name[RLK_PROBE_NAME_SIZE], ms[16];
    const char *const set[] = { "SET", key, "", "PX", ms, NULL }, *const del[] = { "DEL",
                                                                                   key,
                                                                                   NULL };
    int64_t left = 0;
    bool told = false, unused;

    rlk_diagnose_name(d, name);
    snprintf(key, sizeof(key), "rlock:{%s}:probe:%u", name, atomic_fetch_add(&count, 1));
    snprintf(ms, sizeof(ms), "%d", LEASE_MS);
    int rc = ask_number(d, set, &told, &left);
    if (rc == 0 && told) {
        rc = see_it_end(d, key, &told, &left);
        int64_t ignored;
        if (rc == 0 && left != GONE)
            rc = ask_number(d, del, &unused, &ignored);
    }
    if (rc != 0)
        return rc;
    if (!told)
        return rlk_diagnose_tell(d, LOG_NOTICE, "leases",
                                 "Whether leases end was not checked: the server refuses "
                                 "SET or PTTL of the probe's key, rlock:{...}:probe.");
    if (left == GONE)
        return rlk_diagnose_tell(d, LOG_INFO, "leases",
                                 "Leases end by themselves: a key that was to live for "
                                 "%d ms is gone.",
                                 LEASE_MS);
    return rlk_diagnose_tell(
        d, LOG_ERR, "leases",
        "This is a test server: leases never end. A key that was to live for %d ms was "
        "still there after %d ms, so a dead holder's lock never becomes free. miniredis, "
        "for one, lets time pass only on request (FastForward). Test programs with it, "
        "but not their crashes.",
        LEASE_MS, LEASE_LATE_MS);
}
