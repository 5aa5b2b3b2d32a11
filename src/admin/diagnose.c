/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_client_diagnose: whether a server is fit for locks. This file has the call,
 * its requests, and what is measured: round trips, the clock, scripts, the delivery of
 * a message. Thread: any. Blocks: network, up to the command timeout for each request. */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/rpc.h"
#include "lock/call.h"
#include "net/server_error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WORDS_MAX = 8,
    TRIES_MAX = 2, /* an unused connection may be broken */
    SAMPLES = 9,
    STEP_NS = 1000000, /* between two checks for a message */
    CLOCK_OFF_MS = 1000,
    SHARE_MAX = 10 /* a round trip should take at most this part of the time that it must
                      fit in */
};

/* ---- findings and requests */

int rlk_diagnose_tell(struct rlk_diagnosis *d, int severity, const char *topic,
                      const char *format, ...)
{
    char text[RLK_FINDING_SIZE];
    rlock_finding_t finding = { severity, topic, text };
    unsigned generation = rlk_fork_generation();
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (d->notes)
        return rlk_diagnose_note(d, severity, topic, format, text);
    int rc = d->each(&finding, d->arg);
    if (rlk_fork_since(generation) && rc == 0)
        rc = rlk_error_set(ECANCELED,
                           "the callback forked; the diagnosis ends in the child");
    return rc;
}

int rlk_diagnose_borrow(struct rlk_diagnosis *d, int64_t until,
                        struct rlk_target **ret_target, struct rlk_conn **ret_conn)
{
    if (!d->at)
        return rlk_rpc_borrow(d->client, until, ret_target, ret_conn);
    *ret_target = d->at;
    return rlk_rpc_borrow_at(d->at, until, ret_conn);
}

void rlk_diagnose_name(const struct rlk_diagnosis *d, char buf[RLK_PROBE_NAME_SIZE])
{
    enum { TRIES = 100000 };

    memcpy(buf, d->client->uuid, RLK_UUID_LEN + 1);
    for (int i = 0; d->at && i < TRIES; i++) {
        snprintf(buf + RLK_UUID_LEN, RLK_PROBE_NAME_SIZE - RLK_UUID_LEN, "-%d", i);
        if (rlk_route_to_name(&d->client->route, buf, strlen(buf)) == d->at)
            return;
    }
}

int rlk_diagnose_ask(struct rlk_diagnosis *d, const char *const *argv,
                     struct rlk_reply **ret_reply, struct rlk_timing *ret_timing)
{
    int64_t until = rlk_inspect_until(d->client), sent;
    size_t len[WORDS_MAX];
    int argc = 0, rc = ENOTCONN;

    for (; argv[argc]; argc++)
        len[argc] = strlen(argv[argc]);
    for (int tries = 0; rc == ENOTCONN && tries < TRIES_MAX; tries++) {
        struct rlk_target *target;
        struct rlk_conn *conn;
        if (tries > 0 && rlk_clock_boot() >= until)
            break;
        rc = rlk_diagnose_borrow(d, until, &target, &conn);
        if (rc != 0)
            break;
        int64_t real = rlk_clock_real();
        if (rlk_conn_call(conn, argc, argv, len, until, ret_reply, &sent) !=
            RLK_FAIL_NONE) {
            rc = rlk_conn_error_code(conn);
            rc = rlk_error_set(rc ? rc : ENOTCONN, "%s", rlk_conn_error_text(conn));
        } else if (ret_timing) {
            *ret_timing = (struct rlk_timing){ real, rlk_clock_boot() - sent };
        }
        rlk_rpc_put(target, conn);
    }
    return rc;
}

int rlk_diagnose_command(struct rlk_diagnosis *d, const char *const *argv,
                         enum rlk_reply_type type, struct rlk_reply **ret_reply)
{
    struct rlk_reply *reply = NULL;
    char text[RLK_SERVER_ERROR_SIZE];
    size_t len;

    *ret_reply = NULL;
    int rc = rlk_diagnose_ask(d, argv, &reply, NULL);
    if (rc != 0)
        return rc;
    if (rlk_reply_type(reply) == type) {
        *ret_reply = reply;
        return 0;
    }
    if (rlk_reply_type(reply) != RLK_REPLY_ERROR) {
        rc = rlk_error_set(EPROTO, "unexpected reply to %s", argv[0]);
    } else {
        const char *said = rlk_reply_string(reply, &len);
        if (rlk_script_sort_error(said, len, &rc) == RLK_RETRY) {
            rlk_server_error_describe(text, sizeof(text), argv[0], NULL, NULL, 0, said,
                                      len);
            rlk_error_set(rc, "%s", text);
        } else {
            rc = 0;
        }
    }
    rlk_reply_free(reply);
    return rc;
}

/* ---- round trips and the clock */

struct sample {
    int64_t took;   /* ns */
    int64_t offset; /* the server's clock minus this host's, ns */
};

static bool parse_time(const struct rlk_reply *reply, int64_t *ret_ns)
{
    size_t len;
    const char *s = rlk_reply_text_at(reply, 0, &len);
    const char *us = rlk_reply_text_at(reply, 1, &len);
    int64_t seconds = s ? strtoll(s, NULL, 10) : 0;

    if (!us || seconds <= 0 || seconds > INT64_MAX / RLK_NS_PER_S / 2)
        return false;
    *ret_ns = seconds * RLK_NS_PER_S + strtoll(us, NULL, 10) % 1000000 * 1000;
    return true;
}

static int take_sample(struct rlk_diagnosis *d, struct sample *ret_sample)
{
    static const char *const argv[] = { "TIME", NULL };
    struct rlk_reply *reply = NULL;
    struct rlk_timing timing;
    char text[RLK_SERVER_ERROR_SIZE];
    int64_t server;
    size_t len;

    int rc = rlk_diagnose_ask(d, argv, &reply, &timing);
    if (rc != 0)
        return rc;
    if (parse_time(reply, &server)) {
        ret_sample->took = timing.took;
        ret_sample->offset = server - timing.sent_real - timing.took / 2;
    } else if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        const char *said = rlk_reply_string(reply, &len);
        rlk_script_sort_error(said, len, &rc);
        rlk_server_error_describe(text, sizeof(text), argv[0], NULL, NULL, 0, said, len);
        rlk_error_set(rc, "%s", text);
    } else {
        rc = rlk_error_set(EPROTO, "unexpected reply to TIME");
    }
    rlk_reply_free(reply);
    return rc;
}

static int by_time(const void *a, const void *b)
{
    int64_t x = ((const struct sample *)a)->took, y = ((const struct sample *)b)->took;
    return (x > y) - (x < y);
}

/* Sorted by duration: the shortest gives the best clock offset. */
static int take_samples(struct rlk_diagnosis *d, struct sample samples[SAMPLES])
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < SAMPLES; i++)
        rc = take_sample(d, &samples[i]);
    if (rc == 0)
        qsort(samples, SAMPLES, sizeof(*samples), by_time);
    return rc;
}

/* With three significant digits, down to us. */
static const char *as_ms(char buf[RLK_LOG_NUMBER_SIZE], int64_t ns)
{
    int digits = ns < RLK_NS_PER_MS         ? 3
                 : ns < 10 * RLK_NS_PER_MS  ? 2
                 : ns < 100 * RLK_NS_PER_MS ? 1
                                            : 0;
    return rlk_log_number(buf, ns, RLK_NS_PER_MS, digits);
}

static int tell_round_trip(struct rlk_diagnosis *d, int64_t took)
{
    const struct rlk_config *config = &d->client->config;
    struct {
        const char *name;
        int64_t ms;
    } bounds[] = {
        { "presence", config->presence_ms },
        { "command timeout", config->command_timeout_ms },
        { "time between two renewals", config->lease_ms / RLK_RENEWALS_PER_LEASE },
    };
    size_t least = 0;
    char ms[RLK_LOG_NUMBER_SIZE];

    for (size_t i = 1; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (bounds[i].ms < bounds[least].ms)
            least = i;
    if (took * SHARE_MAX <= bounds[least].ms * RLK_NS_PER_MS)
        return rlk_diagnose_tell(
            d, LOG_INFO, "round trip",
            "A round trip takes %s ms (median of %d), short beside the %s of %lld ms.",
            as_ms(ms, took), SAMPLES, bounds[least].name, (long long)bounds[least].ms);
    return rlk_diagnose_tell(
        d, LOG_WARNING, "round trip",
        "A round trip takes %s ms (median of %d), more than a tenth of the %s (%lld "
        "ms): a short delay more, and waiters count as gone or leases are lost. Use a "
        "nearer server, or a longer lease, presence and command timeout.",
        as_ms(ms, took), SAMPLES, bounds[least].name, (long long)bounds[least].ms);
}

static int tell_clock(struct rlk_diagnosis *d, const struct sample *best)
{
    int64_t off = best->offset < 0 ? -best->offset : best->offset;
    const char *way = best->offset < 0 ? "behind" : "ahead of";
    char ms[RLK_LOG_NUMBER_SIZE], error[RLK_LOG_NUMBER_SIZE];

    if (off < CLOCK_OFF_MS * RLK_NS_PER_MS)
        return rlk_diagnose_tell(
            d, LOG_INFO, "clock",
            "The server's clock is %s ms %s this host's, give or take %s ms. Locks "
            "compare no clocks, so an offset does not matter; a step of the server's "
            "clock would end leases early or late.",
            as_ms(ms, off), way, as_ms(error, best->took / 2));
    return rlk_diagnose_tell(
        d, LOG_WARNING, "clock",
        "The server's clock is %s ms %s this host's. An offset does not matter to "
        "locks, but one of the clocks is wrong, and if the server's is put right by a "
        "step, leases end early or late: let it be slewed (chrony, ntpd).",
        as_ms(ms, off), way);
}

/* ---- scripts and messages */

/* Whether a script may write after TIME, as all lock scripts do. A refused key and a
 * replica's reply say nothing about it. */
static int look_for_whole_scripts(struct rlk_diagnosis *d, bool *ret_found)
{
    char name[RLK_PROBE_NAME_SIZE];
    const char *const argv[] = { "EVAL",
                                 "redis.call('TIME') return redis.call('DEL', KEYS[1])",
                                 "1", name, NULL };
    struct rlk_reply *reply = NULL;
    size_t len;

    rlk_diagnose_name(d, name);
    int rc = rlk_diagnose_ask(d, argv, &reply, NULL);
    if (rc != 0)
        return rc;
    const char *text = rlk_reply_string(reply, &len);
    *ret_found =
        rlk_reply_type(reply) == RLK_REPLY_ERROR && rlk_server_error_of_writes(text, len);
    rlk_reply_free(reply);
    return 0;
}

static int tell_scripts(struct rlk_diagnosis *d)
{
    static const char *const argv[] = { "EVAL", "return 1", "0", NULL };
    struct rlk_reply *reply;

    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_INTEGER, &reply);
    if (rc != 0)
        return rc;
    bool runs = reply != NULL, whole = false;
    rlk_reply_free(reply);
    if (runs)
        rc = look_for_whole_scripts(d, &whole);
    if (rc != 0)
        return rc;
    if (whole)
        return rlk_diagnose_tell(
            d, LOG_ERR, "scripts",
            "The server lets no script write after TIME, as every step of a lock does "
            "(lua-replicate-commands no): no lock can be taken here. Set "
            "lua-replicate-commands to yes.");
    if (runs)
        return rlk_diagnose_tell(d, LOG_INFO, "scripts",
                                 "The server runs scripts, of which every step of a lock "
                                 "is one.");
    return rlk_diagnose_tell(d, LOG_ERR, "scripts",
                             "The server refuses EVAL. Every step of a lock is a script, "
                             "so none can be taken here: allow EVAL and EVALSHA.");
}

/* Checks again and again, up to the command timeout. It sleeps in between, because
 * these facts wake no thread: the subscriber sets an atomic flag and a counter, and a
 * diagnosis is not worth a broadcast for each message. */
static bool comes_true(struct rlk_diagnosis *d,
                       bool (*is)(struct rlock_client *client, uint64_t before),
                       uint64_t before)
{
    static const struct timespec step = { .tv_nsec = STEP_NS };
    int64_t until = rlk_inspect_until(d->client);

    while (!is(d->client, before)) {
        if (rlk_clock_boot() >= until)
            return false;
        nanosleep(&step, NULL);
    }
    return true;
}

static bool is_subscribed(struct rlock_client *client, uint64_t before)
{
    (void)before;
    return atomic_load(&rlk_route_to_any(&client->route)->subscription.subscribed);
}

static bool has_heard(struct rlock_client *client, uint64_t before)
{
    return atomic_load(&client->counters.messages_ignored) != before;
}

#define POLLS                                                                            \
    "Locks work, but waiters find their grants by polling, up to a third of the "        \
    "presence (%ld ms) late: "

/* Sends the client's mailbox a message of an unknown form, which is counted. */
static int tell_messages(struct rlk_diagnosis *d)
{
    char mailbox[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];
    const char *const argv[] = { "PUBLISH", mailbox, "0 diagnose", NULL };
    long late_ms = d->client->config.presence_ms / 3;
    struct rlk_reply *reply;

    if (rlk_subscriber_is_self())
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "messages",
            "Whether messages arrive cannot be checked from an event callback: its "
            "thread is the thread that reads them.");
    snprintf(mailbox, sizeof(mailbox), RLK_MAILBOX_PREFIX "%s", d->client->uuid);
    bool subscribed = comes_true(d, is_subscribed, 0);
    if (!subscribed && rlk_diagnose_full(d)) /* Redis 8.6.3 refuses SUBSCRIBE then */
        return rlk_diagnose_tell(
            d, LOG_WARNING, "messages",
            "The client's mailbox is not subscribed, and the server's memory is full: "
            "some versions then refuse SUBSCRIBE (OOM). " POLLS
            "make room, or raise maxmemory.",
            late_ms);
    if (!subscribed)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "messages",
            "The client's mailbox is not subscribed. " POLLS
            "it needs SUBSCRIBE to rlock:client:*, a connection of its own, and a "
            "descriptor for it in this process; the log says what was missing.",
            late_ms);
    uint64_t before = atomic_load(&d->client->counters.messages_ignored);
    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_INTEGER, &reply);
    if (rc != 0)
        return rc;
    bool sent = reply != NULL;
    rlk_reply_free(reply);
    if (!sent)
        return rlk_diagnose_tell(d, LOG_WARNING, "messages",
                                 "The server refuses PUBLISH to a mailbox. " POLLS
                                 "allow PUBLISH to rlock:client:*.",
                                 late_ms);
    if (!comes_true(d, has_heard, before))
        return rlk_diagnose_tell(
            d, LOG_WARNING, "messages",
            "A message to the client's mailbox did not arrive. " POLLS
            "look for a proxy or a replica between that drops messages.",
            late_ms);
    return rlk_diagnose_tell(
        d, LOG_INFO, "messages",
        "Messages reach this client's mailbox, so waiters are woken at once.");
}

/* ---- the crash guard */

static int tell_guard(struct rlk_diagnosis *d)
{
    const struct rlk_livefile *livefile = &d->client->livefile;

    if (livefile->dir[0])
        return rlk_diagnose_tell(
            d, LOG_INFO, "guard",
            "The crash guard is on, in %s: when this process is killed, other processes "
            "of this host that use it release its locks at once.",
            livefile->dir);
    if (livefile->off)
        return rlk_diagnose_tell(
            d, LOG_INFO, "guard",
            "The crash guard is turned off: %s. The locks of a process that is killed "
            "become free when their leases end.",
            livefile->why);
    return rlk_diagnose_tell(
        d, LOG_NOTICE, "guard",
        "There is no crash guard: %s. The locks of a process that is killed become free "
        "when their leases end; see rlock_getrundir(3) for the directory that it needs.",
        livefile->why);
}

/* ---- the call */

/* What may differ from server to server. */
static int look_at_server(struct rlk_diagnosis *d)
{
    struct sample samples[SAMPLES];

    int rc = take_samples(d, samples);
    if (rc == 0)
        rc = rlk_diagnose_load(d);
    if (rc == 0)
        rc = rlk_diagnose_server(d);
    if (rc == 0)
        rc = tell_clock(d, &samples[0]);
    if (rc == 0)
        rc = tell_round_trip(d, samples[SAMPLES / 2].took);
    if (rc == 0)
        rc = rlk_diagnose_acl(d);
    if (rc == 0)
        rc = rlk_diagnose_tls(d);
    if (rc == 0)
        rc = rlk_diagnose_access(d);
    if (rc == 0)
        rc = tell_scripts(d);
    if (rc == 0)
        rc = rlk_diagnose_leases(d);
    return rc;
}

static int diagnose(struct rlk_diagnosis *d)
{
    int rc = rlk_diagnose_sentinel(d);

    if (rc == 0)
        rc = rlk_diagnose_reach(d);
    if (rc == 0)
        rc = d->client->route.cluster ? rlk_diagnose_cluster(d, look_at_server)
                                      : look_at_server(d);
    if (rc == 0)
        rc = tell_messages(d);
    if (rc == 0)
        rc = tell_guard(d);
    rlk_diagnose_forget(d);
    if (rc == 0)
        rlk_error_clear();
    return rc;
}

int rlock_client_diagnose(rlock_client_t *client,
                          int (*each)(const rlock_finding_t *finding, void *arg),
                          void *arg)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_diagnosis d = { .each = each, .arg = arg };
    int rc = rlk_error_argument_there("each", each)
                 ? rlk_client_get_pointer(client, &d.client)
                 : EINVAL;

    if (rc == 0) {
        rc = diagnose(&d);
        rlk_client_put(d.client);
    }
    return rlk_call_leave(call, rc);
}
