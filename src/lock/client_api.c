/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_client_*, rlock_clientattr_*, and the calls that need no client. Thread: any. */
#include "lock/acquire.h"
#include "lock/attr.h"
#include "lock/call.h"
#include "lock/handle.h"
#include "state/fastpath.h"

#include "base/fork.h"
#include "base/log.h"
#include "client/rpc.h"

#include <stddef.h>

_Static_assert(sizeof(rlock_clientattr_t) == 4096, "part of the ABI");
_Static_assert(sizeof(rlock_stats_t) == 4096, "part of the ABI");
_Static_assert(offsetof(rlock_stats_t, messages_ignored) == 23 * 8, "part of the ABI");
_Static_assert(offsetof(rlock_stats_t, wait_time) == 30 * 8, "part of the ABI");
_Static_assert(offsetof(rlock_stats_t, rlk_reserved) == 203 * 8, "part of the ABI");

/* ---- attributes */

bool rlk_client_api_attr_good(const rlock_clientattr_t *attr)
{
    if (!rlk_error_argument_there("the attributes object", attr))
        return false;
    if (attr->rlk_magic != RLK_MAGIC_CLIENTATTR)
        rlk_error_set(EINVAL, "the attributes object is not initialised, was destroyed, "
                              "or is not for a client");
    return attr->rlk_magic == RLK_MAGIC_CLIENTATTR;
}

#define ATTR_CALL(attr, condition, ...)                                                  \
    do {                                                                                 \
        struct rlk_call call = rlk_call_enter();                                         \
        int rc = 0;                                                                      \
        if (!rlk_client_api_attr_good(attr) || !(condition))                             \
            rc = EINVAL;                                                                 \
        else                                                                             \
            __VA_ARGS__;                                                                 \
        return rlk_call_leave(call, rc);                                                 \
    } while (0)

int rlock_clientattr_init(rlock_clientattr_t *attr)
{
    struct rlk_call call = rlk_call_enter();
    if (attr) {
        rlk_client_attr_init(attr);
        attr->rlk_magic = RLK_MAGIC_CLIENTATTR;
    }
    return rlk_call_leave(
        call, rlk_error_argument_there("the attributes object", attr) ? 0 : EINVAL);
}

int rlock_clientattr_destroy(rlock_clientattr_t *attr)
{
    ATTR_CALL(attr, true, explicit_bzero(attr, sizeof(*attr)));
}

#define LONG_ATTR(name, field, min, max)                                                 \
    int rlock_clientattr_set##name(rlock_clientattr_t *attr, long ms)                    \
    {                                                                                    \
        ATTR_CALL(attr, rlk_error_argument_in(#name " (ms)", ms, min, max),              \
                  attr->field = ms);                                                     \
    }                                                                                    \
    int rlock_clientattr_get##name(const rlock_clientattr_t *attr, long *ret_ms)         \
    {                                                                                    \
        ATTR_CALL(attr, rlk_error_argument_there("ret_ms", ret_ms),                      \
                  *ret_ms = (long)attr->field);                                          \
    }

LONG_ATTR(lease, rlk_lease_ms, RLK_LEASE_MIN_MS, RLK_LEASE_MAX_MS)
LONG_ATTR(presence, rlk_presence_ms, RLK_PRESENCE_MIN_MS, RLK_PRESENCE_MAX_MS)
LONG_ATTR(commandtimeout, rlk_commandtimeout_ms, RLK_TIMEOUT_MIN_MS, RLK_TIMEOUT_MAX_MS)
LONG_ATTR(connecttimeout, rlk_connecttimeout_ms, RLK_TIMEOUT_MIN_MS, RLK_TIMEOUT_MAX_MS)
LONG_ATTR(handoffms, rlk_handoff_ms, 0, RLK_HANDOFF_MAX_MS)
LONG_ATTR(retain, rlk_retain_ms, 0, RLK_RETAIN_MAX_MS)
LONG_ATTR(maxskew, rlk_maxskew_ms, RLK_SKEW_UNSET, RLK_SKEW_MAX_MS)

int rlock_clientattr_sethandoffcount(rlock_clientattr_t *attr, int count)
{
    ATTR_CALL(attr,
              rlk_error_argument_in("handoffcount", count, 0, RLK_HANDOFF_MAX_COUNT),
              attr->rlk_handoff_count = count);
}

int rlock_clientattr_gethandoffcount(const rlock_clientattr_t *attr, int *ret_count)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_count", ret_count),
              *ret_count = attr->rlk_handoff_count);
}

int rlock_clientattr_setmaxconnections(rlock_clientattr_t *attr, int count)
{
    ATTR_CALL(attr,
              rlk_error_argument_in("maxconnections", count, 1, RLK_CONNECTIONS_MAX),
              attr->rlk_maxconnections = count);
}

int rlock_clientattr_getmaxconnections(const rlock_clientattr_t *attr, int *ret_count)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_count", ret_count),
              *ret_count = attr->rlk_maxconnections);
}

int rlock_clientattr_setmutextype(rlock_clientattr_t *attr, int type)
{
    ATTR_CALL(attr,
              rlk_error_argument_in("mutextype", type, RLOCK_MUTEX_NORMAL,
                                    RLOCK_MUTEX_ADAPTIVE_NP),
              attr->rlk_mutextype = type);
}

int rlock_clientattr_getmutextype(const rlock_clientattr_t *attr, int *ret_type)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_type", ret_type),
              *ret_type = attr->rlk_mutextype);
}

int rlock_clientattr_setguard(rlock_clientattr_t *attr, int guard)
{
    ATTR_CALL(attr,
              rlk_error_argument_in("guard", guard, RLOCK_GUARD_OFF, RLOCK_GUARD_ALWAYS),
              attr->rlk_guard = guard);
}

int rlock_clientattr_getguard(const rlock_clientattr_t *attr, int *ret_guard)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_guard", ret_guard),
              *ret_guard = attr->rlk_guard);
}

int rlock_clientattr_setreplicas(rlock_clientattr_t *attr, int replicas)
{
    ATTR_CALL(attr,
              rlk_error_argument_in("replicas", replicas, 0, RLK_CONFIRM_REPLICAS_MAX),
              attr->rlk_replicas = replicas);
}

int rlock_clientattr_getreplicas(const rlock_clientattr_t *attr, int *ret_replicas)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_replicas", ret_replicas),
              *ret_replicas = attr->rlk_replicas);
}

int rlock_clientattr_setwaitaof(rlock_clientattr_t *attr, int waitaof)
{
    ATTR_CALL(attr, rlk_error_argument_in("waitaof", waitaof, 0, 1),
              attr->rlk_waitaof = waitaof);
}

int rlock_clientattr_getwaitaof(const rlock_clientattr_t *attr, int *ret_waitaof)
{
    ATTR_CALL(attr, rlk_error_argument_there("ret_waitaof", ret_waitaof),
              *ret_waitaof = attr->rlk_waitaof);
}

static int set_credentials(rlock_clientattr_t *attr, const char *user,
                           const char *password)
{
    size_t user_len = user ? strlen(user) : 0,
           password_len = password ? strlen(password) : 0;

    if (user_len >= sizeof(attr->rlk_user) || password_len >= sizeof(attr->rlk_password))
        return rlk_error_set(ENAMETOOLONG, "user or password is too long");
    if (user_len > 0 && !password)
        return rlk_error_set(EINVAL, "user without password");
    memset(attr->rlk_user, 0, sizeof(attr->rlk_user));
    explicit_bzero(attr->rlk_password, sizeof(attr->rlk_password));
    if (user_len > 0)
        memcpy(attr->rlk_user, user, user_len);
    if (password_len > 0)
        memcpy(attr->rlk_password, password, password_len);
    return 0;
}

int rlock_clientattr_setcredentials(rlock_clientattr_t *attr, const char *user,
                                    const char *password)
{
    ATTR_CALL(attr, true, rc = set_credentials(attr, user, password));
}

int rlock_clientattr_seteventcallback(rlock_clientattr_t *attr, rlock_event_fn fn,
                                      void *arg)
{
    ATTR_CALL(attr, true, attr->rlk_event_fn = fn, attr->rlk_event_arg = arg);
}

/* ---- clients */

int rlock_client_open(rlock_client_t **ret_client, const char *url,
                      const rlock_clientattr_t *attr)
{
    struct rlk_call call = rlk_call_enter();
    bool fit = rlk_error_argument_there("ret_client", ret_client) &&
               (!attr || rlk_client_api_attr_good(attr));
    int rc = fit ? rlk_client_open(ret_client, url, attr) : EINVAL;
    return rlk_call_leave(call, rc);
}

int rlock_client_close(rlock_client_t *client)
{
    struct rlk_call call = rlk_call_enter();
    return rlk_call_leave(call, rlk_client_close(client));
}

int rlock_client_setdefault(const char *url, const rlock_clientattr_t *attr)
{
    struct rlk_call call = rlk_call_enter();
    int rc = !attr || rlk_client_api_attr_good(attr) ? rlk_client_set_default(url, attr)
                                                     : EINVAL;
    return rlk_call_leave(call, rc);
}

static int ping(struct rlock_client *client)
{
    static const char *const argv[] = { "PING" };
    static const size_t len[] = { 4 };
    int64_t until = rlk_clock_boot() + rlk_client_command_timeout(client);
    struct rlk_answer answer;
    int rc = ENOTCONN;

    /* a connection that was closed while idle is tried again, on a new one */
    for (int tries = 0; tries < 2; tries++) {
        struct rlk_target *target;
        struct rlk_conn *conn;
        struct rlk_reply *reply = NULL;
        rc = rlk_rpc_borrow(client, until, &target, &conn);
        if (rc != 0)
            return rc;
        rlk_script_command(conn, 1, argv, len, until, &answer, &reply);
        rlk_rpc_put(target, conn);
        rlk_reply_free(reply);
        rc = answer.outcome == RLK_DONE ? 0 : answer.code;
        if (answer.outcome == RLK_DONE || answer.outcome == RLK_REFUSED ||
            rlk_clock_boot() >= until)
            break;
    }
    return rc;
}

/* A buffer in the caller's memory. */
struct buffer {
    char *at;
    size_t size;
};

static int put_server(const struct rlk_config *config, struct buffer url,
                      struct buffer source)
{
    size_t url_size = strlen(config->url) + 1, source_size = strlen(config->source) + 1;

    if (url_size > url.size)
        return rlk_error_set(
            ENAMETOOLONG, "the buffer is too small: the URL needs %zu bytes", url_size);
    if (source_size > source.size)
        return rlk_error_set(
            ENAMETOOLONG,
            "the buffer is too small: the source of the URL needs %zu bytes",
            source_size);
    memcpy(url.at, config->url, url_size);
    memcpy(source.at, config->source, source_size);
    return 0;
}

static int get_server(const struct rlock_client *client, struct buffer url,
                      struct buffer source)
{
    struct rlock_client *used = NULL;
    struct rlk_config config;
    int rc = rlk_client_peek_pointer(client, &used);

    if (rc != 0)
        return rc;
    if (used) {
        rc = put_server(&used->config, url, source);
        rlk_client_put(used);
        return rc;
    }
    rc = rlk_client_configure_default(&config);
    if (rc == 0)
        rc = put_server(&config, url, source);
    rlk_url_config_clear(&config);
    return rc;
}

int rlock_client_getserver(const rlock_client_t *client, char *url, size_t url_size,
                           char *source, size_t source_size)
{
    struct rlk_call call = rlk_call_enter();
    bool fit = rlk_error_argument_there("url", url) &&
               rlk_error_argument_there("source", source);
    int rc = fit ? get_server(client, (struct buffer){ url, url_size },
                              (struct buffer){ source, source_size })
                 : EINVAL;
    return rlk_call_leave(call, rc);
}

int rlock_client_ping(rlock_client_t *client)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used;
    int rc = rlk_client_get_pointer(client, &used);

    if (rc == 0) {
        rc = ping(used);
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}

int rlock_client_interrupt(rlock_client_t *client)
{
    /* Async-signal-safe: no mutex and no message, only an atomic flag and a write to an
     * eventfd. That write would be a cancellation point. */
    struct rlk_cancel cancel = rlk_sync_cancel_disable();
    int saved_errno = errno;
    if (rlk_fork_in_child())
        rlk_fork_settle();
    struct rlk_client_signal_call signal_call;
    client = rlk_client_signal_begin(client, &signal_call);
    if (client) {
        atomic_store(&client->interrupted, true);
        struct rlk_bell *watchdog = client->registry.watchdog;
        if (watchdog)
            rlk_bell_ring(watchdog);
    }
    rlk_client_signal_end(&signal_call);
    errno = saved_errno;
    rlk_sync_cancel_restore(cancel);
    return client ? 0 : EINVAL;
}

/* Since when a server that has locks is known to be away; 0: none is. */
static int64_t away_since(struct rlock_client *client)
{
    struct rlk_route *route = &client->route;
    struct rlk_target *target = &route->target;
    int64_t since = atomic_load(&target->subscription.away_since);

    for (size_t i = 0; route->cluster && (target = rlk_cluster_at(route->cluster, i));
         i++) {
        int64_t its = atomic_load(&target->subscription.away_since);
        if (its != 0 && (since == 0 || its < since))
            since = its;
    }
    return since;
}

/* The end of an outage takes the same mutex, so its time counts once: as going on, or as
 * over. */
static void copy_outages_locked(struct rlock_client *client, rlock_stats_t *stats)
{
    uint64_t ns = atomic_load(&client->counters.outage_ns);
    int64_t since = away_since(client);

    if (since != 0)
        ns += (uint64_t)(rlk_clock_boot() - since);
    stats->outages = atomic_load(&client->counters.outages);
    stats->outage_us = ns / 1000;
}

static void copy_stats(struct rlock_client *client, rlock_stats_t *stats)
{
    if (client->running) { /* false: a forked child has not used the client yet */
        rlk_registry_lock(&client->registry);
        rlk_fastpath_close_all_locked(&client->registry); /* this adds what the threads
                                                             have counted */
        stats->holds_now = client->registry.holds_now;
        stats->waiters_now = client->registry.waiters_now;
        rlk_histogram_show(&client->registry.waited, &stats->wait_time);
        rlk_histogram_show(&client->registry.waited_in_vain, &stats->failed_wait_time);
        rlk_histogram_show(&client->registry.held, &stats->hold_time);
        copy_outages_locked(client, stats);
        rlk_registry_unlock(&client->registry);
    }
#define COPY(counter) stats->counter = atomic_load(&client->counters.counter)
    COPY(acquisitions);
    COPY(reentries);
    COPY(releases);
    COPY(waits);
    COPY(grants);
    COPY(grants_orphaned);
    COPY(local_handovers);
    COPY(timeouts);
    COPY(cancels);
    COPY(round_trips);
    COPY(renewals);
    COPY(renewal_failures);
    COPY(refreshes);
    COPY(losses);
    COPY(owners_died);
    COPY(connects);
    COPY(connect_failures);
    COPY(reconnects);
    COPY(unknown_outcomes);
    COPY(background_releases);
    COPY(messages);
    COPY(messages_ignored);
    COPY(risks);
    COPY(refusals);
    COPY(script_loads);
    COPY(events);
    COPY(burials);
#undef COPY
    rlk_histogram_show(&client->round_trips, &stats->round_trip_time);
}

int rlock_client_getstats(const rlock_client_t *client, rlock_stats_t *ret_stats)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used = NULL;
    int rc = rlk_error_argument_there("ret_stats", ret_stats) ? 0 : EINVAL;

    if (rc == 0)
        rc = rlk_client_peek_pointer(client, &used);
    if (rc == 0)
        memset(ret_stats, 0, sizeof(*ret_stats));
    if (rc == 0 && used) {
        copy_stats(used, ret_stats);
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}

/* ---- no client */

const char *rlock_strerror(int code)
{
    return rlk_error_text(code);
}

const char *rlock_errmsg(void)
{
    return rlk_error_message();
}

const char *rlock_version(void)
{
    return RLOCK_VERSION;
}

int rlock_getrundir(char *buf, size_t size)
{
    struct rlk_call call = rlk_call_enter();
    char path[RLK_RUNDIR_SIZE];
    int rc = rlk_error_argument_there("buf", buf) ? rlk_rundir_find(path, NULL) : EINVAL;

    if (rc == 0 && strlen(path) >= size)
        rc = rlk_error_set(
            ENAMETOOLONG, "the buffer is too small: the directory's path needs %zu bytes",
            strlen(path) + 1);
    if (rc == 0)
        memcpy(buf, path, strlen(path) + 1);
    return rlk_call_leave(call, rc);
}

void rlock_setlogger(void (*log)(int level, const char *line, void *arg), void *arg,
                     int max_level)
{
    struct rlk_call call = rlk_call_enter();
    rlk_fork_settle();
    rlk_log_set(log, arg, max_level);
    rlk_call_leave(call, 0);
}
