/* SPDX-License-Identifier: Apache-2.0 */
/* The server's replicas: how many there are, whether locks wait for them, and whether
 * their clocks are right. Thread: any. Blocks: network. */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "client/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* min-replicas-to-write applies to scripts, too: seen with 6.2.14 and later; not with
 * 6.0.0 to 6.2.5, which refuse SET but not EVAL. */
#define BOUND_SCRIPTS 60214

enum { REPLICAS_MAX = 16, ADDRESS_SIZE = 128, REPLY_MAX = 1 << 16, SKEW_NOISE_MS = 50 };

/* rule: P15 */
/* For a client with replicas=N. `count` are connected; `min`: min-replicas-to-write. */
static int tell_wait(struct rlk_diagnosis *d, long long count, long long min)
{
    long wanted = d->client->config.wait.replicas;

    if (wanted > count)
        return rlk_diagnose_tell(
            d, LOG_ERR, "replicas",
            "Connected replicas: %lld, and this client wants %ld to confirm each lock: "
            "none can be taken (ENOTCONN). Bring the replicas back, or lower replicas=.",
            count, wanted);
    if (wanted < count)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "replicas",
            "This client wants %ld of %lld replicas to confirm each lock: a failover to "
            "another one may lose it, and two hold it. replicas=%lld would wait for all.",
            wanted, count, count);
    if (min < wanted)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "replicas",
            "All replicas (%lld) confirm each lock of this client, but a master that is "
            "cut off from them continues to take writes of others. Set "
            "min-replicas-to-write to %ld%s.",
            count, wanted, min < 0 ? " (CONFIG GET is refused: it may be set)" : "");
    return rlk_diagnose_tell(
        d, LOG_INFO, "replicas",
        "All replicas (%lld) confirm each lock of this client, and the server takes no "
        "writes with fewer (min-replicas-to-write %lld): a failover to one of them loses "
        "no lock.",
        count, min);
}

/* ---- clocks */

/* The text behind "name=" in a line of INFO such as
 * "ip=10.0.0.2,port=6379,state=online". */
static bool get_part(const char *line, const char *name, char *buf, size_t size)
{
    size_t len = strlen(name);

    for (const char *at = line; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            snprintf(buf, size, "%.*s", (int)strcspn(at + len + 1, ","), at + len + 1);
            return true;
        }
    }
    return false;
}

/* How far the clock of the server at that address is ahead of this host's, us; what its
 * TIME says, by a connection of its own with the client's credentials. False: it cannot
 * be reached. */
static bool read_clock(struct rlk_diagnosis *d, char *host, unsigned port,
                       int64_t *ret_offset)
{
    struct rlk_endpoint endpoint = d->client->config.endpoint;
    struct rlk_conn_options options = {
        .endpoint = &endpoint,
        .name = d->client->conn_name,
        .keepalive_ms = d->client->config.presence_ms,
        .reply_limit = REPLY_MAX,
    };
    int64_t until = rlk_inspect_until(d->client);
    struct rlk_conn *conn;

    endpoint.sentinels.count = 0; /* it is no question to them */
    endpoint.cluster.count = 0;
    endpoint.host = host;
    endpoint.path = NULL;
    endpoint.port = (uint16_t)port;
    endpoint.db = 0;
    snprintf(endpoint.label, sizeof(endpoint.label), "%.100s:%u", host, port);
    if (rlk_conn_start(&conn, &options, until) != 0)
        return false;
    bool good = rlk_conn_wait_ready(conn, until) == RLK_CONN_READY;
    if (good)
        *ret_offset = rlk_conn_clock_offset_us(conn);
    rlk_conn_free(conn);
    return good;
}

static bool read_own_clock(struct rlk_diagnosis *d, int64_t *ret_offset)
{
    struct rlk_target *target;
    struct rlk_conn *conn;

    rlk_error_keep(true);
    bool good = rlk_diagnose_borrow(d, rlk_inspect_until(d->client), &target, &conn) == 0;
    if (good) {
        *ret_offset = rlk_conn_clock_offset_us(conn);
        rlk_rpc_put(target, conn);
    }
    rlk_error_keep(false);
    return good;
}

/* rule: P17 */
static int tell_replica(struct rlk_diagnosis *d, const char *line, int64_t own)
{
    char host[ADDRESS_SIZE], port[8];
    int64_t theirs;

    if (!get_part(line, "ip", host, sizeof(host)) ||
        !get_part(line, "port", port, sizeof(port)))
        return 0;
    unsigned number = (unsigned)strtoul(port, NULL, 10);
    if (!read_clock(d, host, number, &theirs))
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "skew",
            "The clock of the replica at %s:%u is unknown: it cannot "
            "be reached from here.",
            host, number);
    long long ms = (theirs - own) / 1000, off = ms < 0 ? -ms : ms;
    bool far = ms > d->client->config.max_skew_ms && ms > SKEW_NOISE_MS;
    rlk_diagnose_clock(d, theirs);
    if (d->at && !far) /* told with the clocks of all nodes */
        return 0;
    return rlk_diagnose_tell(
        d, far ? LOG_WARNING : LOG_INFO, "skew",
        "The clock of the replica at %s:%u is %lld ms %s the server's%s", host, number,
        off, ms < 0 ? "behind" : "ahead of",
        far ? ": after a failover to it, leases end so much earlier. Synchronize the "
              "clocks, or set maxskew."
            : ".");
}

static int tell_skew(struct rlk_diagnosis *d)
{
    char name[24], line[RLK_FACT_SIZE];
    int64_t own = 0;
    int rc = 0;

    bool known = read_own_clock(d, &own);
    for (int i = 0; rc == 0 && known && i < REPLICAS_MAX; i++) {
        snprintf(name, sizeof(name), "slave%d", i);
        if (!rlk_diagnose_in_info(d, name, line))
            break;
        rc = tell_replica(d, line, own);
    }
    return rc;
}

/* ---- how many */

/* For a server that is a master. */
static int tell_followers(struct rlk_diagnosis *d)
{
    long long count = rlk_diagnose_number(d, "connected_slaves", NULL);
    long long good = rlk_diagnose_number(d, "min_slaves_good_slaves", NULL);
    long long min = rlk_diagnose_number(d, NULL, "min-replicas-to-write");
    long long lag = rlk_diagnose_number(d, NULL, "min-replicas-max-lag");

    if (count < 0)
        count = 0;
    if (good < 0)
        good = count;
    if (lag == 0) /* then the limit is off */
        min = 0;
    long version = rlk_diagnose_version(d);
    if (min > 0 && version != 0 && version < BOUND_SCRIPTS)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "replicas",
            "min-replicas-to-write is %lld, but a Redis this old does not apply it to "
            "scripts, of which every step of a lock is one: a master that is cut off "
            "from its replicas (%lld now) continues to grant locks, and after a failover "
            "two hold one. Use Redis 6.2.14 or later, or let the protected resource "
            "check fencing tokens.",
            min, good);
    if (min > good)
        return rlk_diagnose_tell(
            d, LOG_ERR, "replicas",
            "Connected replicas: %lld, and min-replicas-to-write is %lld: the server "
            "refuses to write (NOREPLICAS), and no lock can be taken. Bring the replicas "
            "back, or lower it.",
            good, min);
    if (d->client->config.wait.replicas > 0)
        return tell_wait(d, count, min);
    if (count == 0 && d->at)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "replicas",
            "The master has no replica: when it fails, its hash slots are served by no "
            "node until it is back, and with cluster-require-full-coverage yes none is. "
            "Give it one (CLUSTER REPLICATE).");
    if (count == 0)
        return rlk_diagnose_tell(d, LOG_INFO, "replicas",
                                 "The server is a master without replicas: no failover "
                                 "can lose a lock, and no server can take its place.");
    if (min > 0)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "replicas",
            "Replicas (%lld) follow this master, which takes writes while enough of them "
            "(%lld) are no more than %lld s behind: a failover may lose the locks of "
            "this time, because no request waits for replicas. Let the protected "
            "resource check fencing tokens.",
            count, min, lag);
    return rlk_diagnose_tell(
        d, LOG_WARNING, "replicas",
        "Replicas (%lld) follow this master, and no request waits for them: a failover "
        "may lose locks that were confirmed, and two hold one. %s, and let the protected "
        "resource check fencing tokens.",
        count,
        min == 0 ? "Set min-replicas-to-write to 1 or more"
                 : "See that min-replicas-to-write is set (CONFIG GET is refused)");
}

int rlk_diagnose_replicas(struct rlk_diagnosis *d)
{
    char role[RLK_FACT_SIZE];

    if (!rlk_diagnose_in_info(d, "role", role))
        return rlk_diagnose_tell(d, LOG_NOTICE, "replicas",
                                 "Whether it is a master and has replicas is unknown: "
                                 "the server does not show it by INFO.");
    if (strcmp(role, "master") == 0) {
        int rc = tell_followers(d);
        return rc != 0 ? rc : tell_skew(d);
    }
    return rlk_diagnose_tell(
        d, LOG_ERR, "replicas",
        "The server is a replica%s: no lock can be taken here. Use its master's address.",
        rlk_diagnose_is(d, "master_link_status", "down") ? ", and cut off from its master"
                                                         : "");
}
