/* SPDX-License-Identifier: Apache-2.0 */
/* What a server reports about itself in INFO and CONFIG GET, and what that means for
 * locks. INFO comes first: it is refused less often and shows no secrets. HELLO is
 * used if INFO has no version. Thread: any. Blocks: network. */
#include "admin/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIT_MAJOR 6 /* ACLs, and SCAN with TYPE */

enum { FULL_PERCENT = 90, BUFFER_MIN = 1 << 20 };

/* The settings for CONFIG GET. It requests no others, because it would also show
 * passwords. */
static const char *const config_names[] = {
    "appendonly",
    "appendfsync",
    "save",
    "stop-writes-on-bgsave-error",
    "maxmemory",
    "maxmemory-policy",
    "maxclients",
    "min-replicas-to-write",
    "timeout",
    "min-replicas-max-lag",
    "cluster-enabled",
    "client-output-buffer-limit",
    /* of nodes of a cluster */
    "cluster-require-full-coverage",
    "cluster-allow-pubsubshard-when-down",
    "cluster-node-timeout",
};
enum { CONFIG_OF_SERVERS = 12 };
_Static_assert(sizeof(config_names) / sizeof(config_names[0]) == RLK_CONFIG_COUNT,
               "one place for each");

#define UNSEEN " is unknown: the server refuses INFO and CONFIG GET."

/* ---- requests */

void rlk_diagnose_copy(char ret_value[RLK_FACT_SIZE], const char *from)
{
    size_t i = 0;

    for (; i + 1 < RLK_FACT_SIZE && from[i] && from[i] != '\r' && from[i] != '\n'; i++)
        ret_value[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    ret_value[i] = '\0';
}

static int ask_config(struct rlk_diagnosis *d)
{
    int rc = 0;

    int count = d->at ? RLK_CONFIG_COUNT : CONFIG_OF_SERVERS;

    d->config_there = true;
    for (int i = 0; rc == 0 && d->config_there && i < count; i++) {
        const char *const argv[] = { "CONFIG", "GET", config_names[i], NULL };
        struct rlk_reply *reply;
        size_t len;
        rc = rlk_diagnose_command(d, argv, RLK_REPLY_ARRAY, &reply);
        if (rc != 0)
            break;
        d->config_there = reply != NULL;
        const char *value = reply ? rlk_reply_text_at(reply, 1, &len) : NULL;
        if (value) {
            d->config[i].known = true;
            rlk_diagnose_copy(d->config[i].value, value);
        }
        rlk_reply_free(reply);
    }
    return rc;
}

/* ---- values */

bool rlk_diagnose_find(const char *text, const char *name, char ret_value[RLK_FACT_SIZE])
{
    size_t len = strlen(name);

    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, name, len) == 0 && at[len] == ':') {
            rlk_diagnose_copy(ret_value, at + len + 1);
            return true;
        }
    }
    return false;
}

bool rlk_diagnose_in_info(const struct rlk_diagnosis *d, const char *name,
                          char ret_value[RLK_FACT_SIZE])
{
    return rlk_diagnose_find(d->info, name, ret_value);
}

static bool in_config(const struct rlk_diagnosis *d, const char *name,
                      char ret_value[RLK_FACT_SIZE])
{
    for (int i = 0; i < RLK_CONFIG_COUNT; i++) {
        if (!d->config[i].known || strcmp(config_names[i], name) != 0)
            continue;
        memcpy(ret_value, d->config[i].value, RLK_FACT_SIZE);
        return true;
    }
    return false;
}

/* A value by its name in INFO, or in CONFIG if INFO lacks it; either name may be NULL. */
static bool fact(const struct rlk_diagnosis *d, const char *info, const char *config,
                 char ret_value[RLK_FACT_SIZE])
{
    return (info && rlk_diagnose_in_info(d, info, ret_value)) ||
           (config && in_config(d, config, ret_value));
}

/* As fact(), for a number; "yes" and "no" are 1 and 0. -1: unknown. */
long long rlk_diagnose_number(const struct rlk_diagnosis *d, const char *info,
                              const char *config)
{
    char value[RLK_FACT_SIZE], *end;

    if (!fact(d, info, config, value))
        return -1;
    if (strcmp(value, "yes") == 0)
        return 1;
    if (strcmp(value, "no") == 0)
        return 0;
    long long n = strtoll(value, &end, 10);
    return end == value || n < 0 ? -1 : n;
}

bool rlk_diagnose_is(const struct rlk_diagnosis *d, const char *info, const char *is)
{
    char value[RLK_FACT_SIZE];
    return rlk_diagnose_in_info(d, info, value) && strcmp(value, is) == 0;
}

/* From INFO, else from HELLO. Returns the server's name, or NULL: neither says that it
 * is Redis or Valkey. */
static const char *find_version(const struct rlk_diagnosis *d,
                                char ret_version[RLK_FACT_SIZE])
{
    if (rlk_diagnose_in_info(d, "valkey_version", ret_version))
        return "Valkey";
    if (rlk_diagnose_in_info(d, "redis_version", ret_version))
        return "Redis";
    memcpy(ret_version, d->hello_version, RLK_FACT_SIZE);
    return strcmp(d->hello_name, "valkey") == 0  ? "Valkey"
           : strcmp(d->hello_name, "redis") == 0 ? "Redis"
                                                 : NULL;
}

int rlk_diagnose_load(struct rlk_diagnosis *d)
{
    static const char *const argv[] = { "INFO", NULL };
    struct rlk_reply *reply;
    size_t len;

    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_STRING, &reply);
    if (rc != 0)
        return rc;
    if (reply) {
        d->info = strdup(rlk_reply_string(reply, &len));
        rlk_reply_free(reply);
        if (!d->info)
            return ENOMEM;
    }
    char unused[RLK_FACT_SIZE];
    if (!find_version(d, unused))
        rc = rlk_diagnose_hello(d);
    return rc == 0 ? ask_config(d) : rc;
}

void rlk_diagnose_forget(struct rlk_diagnosis *d)
{
    free(d->info);
    d->info = NULL;
    d->hello_name[0] = d->hello_version[0] = '\0';
    memset(d->config, 0, sizeof(d->config));
}

long rlk_diagnose_version(const struct rlk_diagnosis *d)
{
    enum { PARTS = 3, PART_MAX = 100 };
    char value[RLK_FACT_SIZE], *at = value;
    long version = 0;

    if (!find_version(d, value))
        return 0;
    for (int i = 0; i < PARTS; i++) {
        long part = strtol(at, &at, 10);
        version = version * PART_MAX + (part < 0 ? 0 : part % PART_MAX);
        at += *at == '.';
    }
    return version;
}

bool rlk_diagnose_full(const struct rlk_diagnosis *d)
{
    long long max = rlk_diagnose_number(d, "maxmemory", "maxmemory");
    return max > 0 && rlk_diagnose_number(d, "used_memory", NULL) >= max;
}

/* ---- which server */

static int tell_version(struct rlk_diagnosis *d)
{
    char value[RLK_FACT_SIZE];
    const char *name = find_version(d, value);

    if (!name && d->hello_name[0])
        return rlk_diagnose_tell(
            d, LOG_WARNING, "version",
            "The server calls itself %s %s, and is neither Redis nor Valkey. Locks are "
            "made for these two and tested with them; miniredis and fakeredis are for "
            "the tests of programs.",
            d->hello_name, d->hello_version);
    if (!name)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "version",
            "The version is unknown: the server shows it neither by INFO nor by HELLO.");
    if (strtol(value, NULL, 10) < FIT_MAJOR)
        return rlk_diagnose_tell(d, LOG_ERR, "version",
                                 "%s %s is too old: locks are made for Redis %d.0 and "
                                 "later, and for Valkey. Use a newer server.",
                                 name, value, FIT_MAJOR);
    return rlk_diagnose_tell(d, LOG_INFO, "version", "%s %s is new enough.", name, value);
}

static int tell_cluster(struct rlk_diagnosis *d)
{
    long long on = rlk_diagnose_number(d, "cluster_enabled", "cluster-enabled");

    if (on < 0 && !d->at)
        return rlk_diagnose_tell(d, LOG_NOTICE, "cluster",
                                 "Whether it is a cluster's node" UNSEEN);
    if (on == 0 && !d->at)
        return rlk_diagnose_tell(d, LOG_INFO, "cluster",
                                 "The server is not a node of a cluster.");
    if (d->at)
        return rlk_diagnose_cluster_node(d);
    return rlk_diagnose_tell(d, LOG_ERR, "cluster",
                             "The server is a node of a cluster: a lock whose hash slot "
                             "belongs to another node fails with EPROTO. Use a URL that "
                             "begins with redis-cluster://.");
}

/* ---- what survives */

static int tell_aof(struct rlk_diagnosis *d)
{
    char fsync[RLK_FACT_SIZE];

    if (rlk_diagnose_is(d, "aof_last_write_status", "err"))
        return rlk_diagnose_tell(
            d, LOG_ERR, "persistence",
            "The last write to the append-only file failed, and the server refuses to "
            "write (MISCONF): no lock can be taken. Check its disk.");
    if (!in_config(d, "appendfsync", fsync))
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "persistence",
            "Locks are written to an append-only file and survive a restart; how soon "
            "they are on disk is unknown (appendfsync; CONFIG GET is refused).");
    if (strcmp(fsync, "always") == 0)
        return rlk_diagnose_tell(d, LOG_INFO, "persistence",
                                 "Each lock is on disk before it is confirmed "
                                 "(appendonly, appendfsync always): a restart forgets "
                                 "none.");
    if (strcmp(fsync, "everysec") == 0)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "persistence",
            "Locks are on disk within a second or two (appendfsync everysec): a restart "
            "of the server forgets none, a crash of its machine forgets those of the "
            "last moment, and two may then hold one lock. appendfsync always would keep "
            "them, at a cost for each step.");
    return rlk_diagnose_tell(
        d, LOG_WARNING, "persistence",
        "Locks are in an append-only file that the system writes at times of its choice "
        "(appendfsync %s): a crash of the server's machine may forget those of the last "
        "half minute, and two may then hold one lock. Set appendfsync to everysec or "
        "always.",
        fsync);
}

static int tell_snapshots(struct rlk_diagnosis *d)
{
    char save[RLK_FACT_SIZE];
    bool known = in_config(d, "save", save);

    if (known && save[0] == '\0')
        return rlk_diagnose_tell(
            d, LOG_WARNING, "persistence",
            "The server saves nothing: a restart forgets all locks, and others can take "
            "a lock that is still held, until its holder's next renewal finds out. Set "
            "appendonly to yes, or let the protected resource check fencing tokens.");
    return rlk_diagnose_tell(
        d, LOG_WARNING, "persistence",
        "The server has no append-only file%s: a crash forgets the locks that were taken "
        "since the last snapshot, and others can take them while they are still held. "
        "Set appendonly to yes, or let the protected resource check fencing tokens.",
        known ? ", only snapshots"
              : "; whether it makes snapshots is unknown (CONFIG GET is refused)");
}

static int tell_persistence(struct rlk_diagnosis *d)
{
    long long aof = rlk_diagnose_number(d, "aof_enabled", "appendonly");
    int rc = 0;

    if (rlk_diagnose_is(d, "rdb_last_bgsave_status", "err"))
        rc = rlk_diagnose_tell(
            d,
            rlk_diagnose_number(d, NULL, "stop-writes-on-bgsave-error") == 0 ? LOG_NOTICE
                                                                             : LOG_ERR,
            "persistence",
            "The last snapshot failed: with stop-writes-on-bgsave-error the server "
            "refuses to write (MISCONF), and no lock can be taken. Check its disk.");
    if (rc != 0)
        return rc;
    if (aof < 0)
        return rlk_diagnose_tell(d, LOG_NOTICE, "persistence",
                                 "Whether locks survive a restart" UNSEEN);
    return aof > 0 ? tell_aof(d) : tell_snapshots(d);
}

/* ---- memory */

static int tell_eviction(struct rlk_diagnosis *d)
{
    char policy[RLK_FACT_SIZE];
    long long max = rlk_diagnose_number(d, "maxmemory", "maxmemory");

    if (max < 0 || !fact(d, "maxmemory_policy", "maxmemory-policy", policy))
        return rlk_diagnose_tell(d, LOG_NOTICE, "eviction",
                                 "Whether keys are evicted" UNSEEN);
    if (strcmp(policy, "noeviction") == 0)
        return rlk_diagnose_tell(d, LOG_INFO, "eviction",
                                 "Nothing is evicted (maxmemory-policy noeviction).");
    if (max == 0)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "eviction",
            "maxmemory-policy is %s, but there is no maxmemory, so nothing is evicted. "
            "If one is set, set noeviction with it: locks would be evicted.",
            policy);
    return rlk_diagnose_tell(
        d, LOG_ERR, "eviction",
        "maxmemory-policy is %s: when memory is full, the server evicts keys%s, also "
        "locks that are held, and others can take them. Set noeviction, or use a server "
        "for locks alone.",
        policy, strncmp(policy, "volatile", 8) == 0 ? " with a TTL, as leases have" : "");
}

static int tell_memory(struct rlk_diagnosis *d)
{
    char policy[RLK_FACT_SIZE];
    long long max = rlk_diagnose_number(d, "maxmemory", "maxmemory");
    long long used = rlk_diagnose_number(d, "used_memory", NULL);

    if (max < 0 || (max > 0 && used < 0))
        return rlk_diagnose_tell(d, LOG_NOTICE, "memory",
                                 "How full the memory is" UNSEEN);
    if (max == 0)
        return rlk_diagnose_tell(d, LOG_INFO, "memory",
                                 "Memory has no limit but the machine's (maxmemory 0): "
                                 "the server refuses no lock for lack of it.");
    double percent = 100.0 * (double)used / (double)max;
    if (percent < FULL_PERCENT)
        return rlk_diagnose_tell(d, LOG_INFO, "memory", "%.0f %% of maxmemory are used.",
                                 percent);
    if (fact(d, "maxmemory_policy", "maxmemory-policy", policy) &&
        strcmp(policy, "noeviction") != 0)
        return rlk_diagnose_tell(d, LOG_WARNING, "memory",
                                 "%.0f %% of maxmemory are used, and keys are evicted: "
                                 "make room, or raise maxmemory.",
                                 percent);
    return rlk_diagnose_tell(
        d, used >= max ? LOG_ERR : LOG_WARNING, "memory",
        "%.0f %% of maxmemory are used: %s held locks are still renewed and released. "
        "Make room, or raise maxmemory.",
        percent,
        used >= max ? "the server refuses new locks (OOM);"
                    : "when it is full, the server refuses new locks (OOM);");
}

/* ---- connections */

static int tell_connections(struct rlk_diagnosis *d)
{
    long long now = rlk_diagnose_number(d, "connected_clients", NULL);
    long long max = rlk_diagnose_number(d, "maxclients", "maxclients");
    long long idle = rlk_diagnose_number(d, NULL, "timeout");
    bool full = (double)now * 100 >= (double)max * FULL_PERCENT;
    int rc;

    if (now < 0 || max <= 0)
        rc = rlk_diagnose_tell(d, LOG_NOTICE, "connections",
                               "How many connections are left is unknown: the server "
                               "does not show it by INFO or CONFIG GET.");
    else
        rc = rlk_diagnose_tell(d, full ? LOG_WARNING : LOG_INFO, "connections",
                               "%lld of %lld connections are taken%s", now, max,
                               full ? ": when none is left, holders cannot reconnect and "
                                      "lose their leases. Raise maxclients."
                                    : ".");
    if (rc == 0 && idle > 0)
        rc = rlk_diagnose_tell(
            d, LOG_NOTICE, "connections",
            "The server closes connections that are idle for %lld s (timeout): clients "
            "reconnect, which takes a moment each time. 0 avoids it.",
            idle);
    return rc;
}

/* For subscribers: "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608
 * 60". */
static int tell_buffers(struct rlk_diagnosis *d)
{
    static const char class[] = "pubsub ";
    char limits[RLK_FACT_SIZE], *end;
    const char *at = NULL;

    if (in_config(d, "client-output-buffer-limit", limits))
        at = strstr(limits, class);
    if (!at)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "buffers",
            "How much may be queued for a mailbox is unknown: the server does not show "
            "client-output-buffer-limit by CONFIG GET.");
    long long hard = strtoll(at + strlen(class), &end, 10), soft = strtoll(end, NULL, 10);
    long long least = soft > 0 && (hard <= 0 || soft < hard) ? soft : hard;
    if (least <= 0 || least >= BUFFER_MIN)
        return rlk_diagnose_tell(d, LOG_INFO, "buffers",
                                 "Mailboxes have room (client-output-buffer-limit pubsub "
                                 "%lld %lld).",
                                 hard, soft);
    return rlk_diagnose_tell(
        d, LOG_WARNING, "buffers",
        "client-output-buffer-limit pubsub is %lld %lld bytes: a burst of messages makes "
        "the server disconnect mailboxes, and waiters find their grants by polling. Set "
        "a MiB or more.",
        hard, soft);
}

int rlk_diagnose_server(struct rlk_diagnosis *d)
{
    static int (*const topics[])(struct rlk_diagnosis *) = {
        tell_version,  tell_cluster, rlk_diagnose_replicas, tell_persistence,
        tell_eviction, tell_memory,  tell_connections,      tell_buffers,
    };
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(topics) / sizeof(topics[0]); i++)
        rc = topics[i](d);
    return rc;
}
