/* SPDX-License-Identifier: Apache-2.0 */
/* One client: configuration, identity, parts and end. client_table.c knows which
 * clients exist. Thread: any. */
#include "client/client_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "client/renewer.h"
#include "net/conf.h"
#include "net/sentinel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DRAIN_LOOK_MS = 50,
    MOVING_SKEW_MS = 50 /* the initial value with Sentinel and in a cluster */
};

/* ---- memory */

/* What a child retains of its parent's client: memory that the child must not use,
 * because other threads of the parent may have been changing it, but that leak
 * checkers must still find. Allocated in the parent, because the child of a _Fork
 * cannot allocate. */
struct rlk_heritage {
    struct rlk_heritage *older;
    struct rlk_registry registry;
    struct rlk_route route;
    struct rlk_peer_watch peer_watch;
};
static struct rlk_heritage *inherited __attribute__((used)); /* read by the child only */

static void inherit(struct rlock_client *client)
{
    struct rlk_heritage *heritage = client->heritage;

    if (!heritage)
        return;
    client->heritage = NULL;
    memcpy(&heritage->registry, &client->registry, sizeof(client->registry));
    memcpy(&heritage->route, &client->route, sizeof(client->route));
    memcpy(&heritage->peer_watch, &client->peer_watch, sizeof(client->peer_watch));
    memset(&heritage->registry.random, 0, sizeof(heritage->registry.random)); /* T13 */
    heritage->older = inherited;
    inherited = heritage;
}

void rlk_client_retain(struct rlock_client *client)
{
    atomic_fetch_add(&client->memory_refs, 1);
}

void rlk_client_release(struct rlock_client *client)
{
    if (atomic_fetch_sub(&client->memory_refs, 1) > 1)
        return;
    rlk_registry_destroy(&client->registry);
    rlk_livefile_free(client);
    rlk_sentinel_book_free(client->config.endpoint.book);
    rlk_url_config_clear(&client->config);
    free(client->heritage);
    free(client);
}

static void registry_retain(struct rlk_registry *reg)
{
    rlk_client_retain(RLK_CLIENT_OF(reg));
}

static void registry_release(struct rlk_registry *reg)
{
    rlk_client_release(RLK_CLIENT_OF(reg));
}

/* ---- identity */

static int make_uuid(char uuid[RLK_UUID_LEN + 1])
{
    unsigned char b[16];
    if (!rlk_random_bytes(b, sizeof(b)))
        return rlk_error_of_step(errno, "cannot get random numbers (getrandom)");
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4, RFC 9562 */
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(uuid, RLK_UUID_LEN + 1,
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
             b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
             b[13], b[14], b[15]);
    return 0;
}

/* rlock:<uuid>:<host>:<pid>:<program>; Redis refuses bytes outside '!'..'~'. */
static void make_conn_name(struct rlock_client *client)
{
    char host[65] = "";
    gethostname(host, sizeof(host) - 1);
    snprintf(client->conn_name, sizeof(client->conn_name), "rlock:%s:%.64s:%ld:%.64s",
             client->uuid, host, (long)getpid(), program_invocation_short_name);
    for (char *p = client->conn_name; *p; p++)
        if (*p < '!' || *p > '~')
            *p = '_';
}

/* ---- configuration */

static int copy_text(char **ret_copy, const char *text)
{
    if (!text[0])
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : rlk_error_set(ENOMEM, "out of memory");
}

void rlk_client_attr_init(rlock_clientattr_t *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->rlk_lease_ms = 30000;
    attr->rlk_presence_ms = 3000;
    attr->rlk_commandtimeout_ms = 3000;
    attr->rlk_connecttimeout_ms = 3000;
    attr->rlk_maxconnections = 16;
    attr->rlk_mutextype = RLOCK_MUTEX_RECURSIVE;
    attr->rlk_handoff_ms = RLK_HANDOFF_MS;
    attr->rlk_handoff_count = RLK_HANDOFF_COUNT;
    attr->rlk_guard = RLOCK_GUARD_ON;
    attr->rlk_maxskew_ms = RLK_SKEW_UNSET;
}

/* rule: P17 */
/* D of the shortest lease, which is that of a grant, has to be in the future. (What
 * nobody has set is less for a short lease: hold_facts.c.) */
static int settle_skew(struct rlk_config *config)
{
    long least =
        config->lease_ms < config->presence_ms ? config->lease_ms : config->presence_ms;

    if (config->max_skew_ms == RLK_SKEW_UNSET) {
        bool moves =
            config->endpoint.sentinels.count > 0 || config->endpoint.cluster.count > 0;
        config->max_skew_ms = moves ? MOVING_SKEW_MS : 0;
        config->skew_is_initial = true;
        return 0;
    }
    if (config->max_skew_ms * RLK_CLIENT_SKEW_PARTS < least)
        return 0;
    return rlk_error_set(EINVAL,
                         "maxskew (%ld ms) is not less than a sixth of lease (%ld ms) "
                         "and presence (%ld ms)",
                         config->max_skew_ms, config->lease_ms, config->presence_ms);
}

int rlk_client_bad_lease(const struct rlock_client *client, long lease_ms)
{
    return rlk_error_set(
        EINVAL, "maxskew (%ld ms) is not less than a sixth of the lock's lease (%ld ms)",
        client->config.max_skew_ms, lease_ms);
}

int rlk_client_configure(struct rlk_config *config, const char *url,
                         const rlock_clientattr_t *attr)
{
    rlock_clientattr_t defaults RLK_UNINITIALIZED;
    int rc;

    if (!attr) {
        rlk_client_attr_init(&defaults);
        attr = &defaults;
    }
    config->lease_ms = (long)attr->rlk_lease_ms;
    config->presence_ms = (long)attr->rlk_presence_ms;
    config->command_timeout_ms = (long)attr->rlk_commandtimeout_ms;
    config->connect_timeout_ms = (long)attr->rlk_connecttimeout_ms;
    config->max_connections = attr->rlk_maxconnections;
    config->mutex_type = attr->rlk_mutextype;
    config->handoff_ms = (long)attr->rlk_handoff_ms;
    config->handoff_count = attr->rlk_handoff_count;
    config->retain_ms = (long)attr->rlk_retain_ms;
    config->guard = attr->rlk_guard;
    config->wait.replicas = attr->rlk_replicas;
    config->wait.aof = attr->rlk_waitaof;
    config->max_skew_ms = (long)attr->rlk_maxskew_ms;
    rc = copy_text(&config->endpoint.user, attr->rlk_user);
    if (rc == 0)
        rc = copy_text(&config->endpoint.password, attr->rlk_password);
    if (rc == 0)
        rc = rlk_url_tls_take(&config->endpoint.tls, attr->rlk_texts);
    if (rc == 0)
        rc = rlk_url_sentinel_take(&config->endpoint.sentinels, attr->rlk_texts);
    if (rc == 0)
        rc = rlk_url_cluster_take(&config->endpoint.cluster, attr->rlk_texts);
    if (rc != 0)
        return rc;
    if (!url || !url[0]) {
        rc = rlk_conf_parse(config);
    } else {
        config->source = RLK_SOURCE_PROGRAM;
        rc = rlk_url_parse(config, url);
    }
    return rc != 0 ? rc : settle_skew(config);
}

/* ---- start */

static int make_tls(struct rlock_client *client)
{
    struct rlk_endpoint *endpoint = &client->config.endpoint;

    if (!endpoint->tls.on)
        return 0;
    rlk_tls_set_exit(rlk_client_exit_tls);
    return rlk_tls_store_create(&endpoint->tls_store, endpoint, client->tls_parent);
}

/* Called when no connection is left. */
static void end_tls(struct rlock_client *client)
{
    rlk_tls_store_free(client->config.endpoint.tls_store);
    client->config.endpoint.tls_store = NULL;
}

static int make_book(struct rlock_client *client)
{
    struct rlk_endpoint *endpoint = &client->config.endpoint;

    if (endpoint->sentinels.count > 0 && !endpoint->book)
        endpoint->book = rlk_sentinel_book_create();
    return endpoint->sentinels.count > 0 && !endpoint->book ? ENOMEM : 0;
}

int rlk_client_start(struct rlock_client *client, bool is_default)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_target *target = &client->route.target;
    int rc = make_uuid(client->uuid);

    if (rc != 0)
        return rc;
    if (!client->heritage)
        client->heritage = calloc(1, sizeof(*client->heritage));
    if (!client->heritage)
        return ENOMEM;
    make_conn_name(client);
    reg->watchdog = reg->subscriber = NULL;
    reg->client_number = is_default ? 0 : client->number;
    reg->uuid = client->uuid;
    reg->counters = &client->counters;
    reg->presence_ns = client->config.presence_ms * RLK_NS_PER_MS;
    reg->skew_ns = client->config.max_skew_ms * RLK_NS_PER_MS;
    reg->skew_is_initial = client->config.skew_is_initial;
    reg->retain = registry_retain;
    reg->release = registry_release;
    rc = rlk_registry_init(reg);
    if (rc != 0)
        return rc;
    rc = make_tls(client);
    if (rc == 0)
        rc = make_book(client);
    if (rc == 0)
        rc = rlk_target_init(target, client, &client->config.endpoint);
    if (rc == 0 && client->config.endpoint.cluster.count > 0)
        rc = rlk_cluster_create(&client->route.cluster, client);
    if (rc == 0) { /* before the first request */
        rlk_livefile_start(client);
        rlk_peer_watch_start(client, &rlk_renewer_of_recovery);
    }
    if (rc == 0)
        rc = rlk_watchdog_join(target);
    if (rc == 0) {
        rc = rlk_subscriber_join(target);
        if (rc == 0)
            return 0;
        rlk_registry_part_from_threads(reg);
        rlk_watchdog_leave(target);
        rlk_peer_watch_end(client);
    }
    rlk_livefile_leave(client, true);
    rlk_livefile_free(client);
    rlk_cluster_free(client->route.cluster);
    client->route.cluster = NULL;
    rlk_target_end(target);
    end_tls(client);
    rlk_registry_destroy(reg);
    return rc;
}

/* ---- end */

void rlk_client_drain(struct rlock_client *client, int64_t mono_end)
{
    struct rlk_registry *reg = &client->registry;

    rlk_registry_lock(reg);
    while (!rlk_registry_settled_locked(reg, rlk_clock_boot()) &&
           rlk_clock_mono() < mono_end) {
        /* The watchdog must not oversleep the releases that are due now. */
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        /* No event reports that the server goes away. */
        int64_t look_at = rlk_clock_mono() + DRAIN_LOOK_MS * RLK_NS_PER_MS;
        if (reg->background_count > 0)
            rlk_sync_cond_wait(&reg->background_done, &reg->mu,
                               look_at < mono_end ? look_at : mono_end);
    }
    rlk_registry_unlock(reg);
}

static void wipe(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
}

void rlk_client_shut(struct rlock_client *client)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_target *target = &client->route.target;

    if (!client->running) {
        rlk_client_release(client);
        return;
    }
    /* rule: G15 */
    /* Unfinished releases get one command timeout. */
    rlk_client_drain(client, rlk_clock_mono() + rlk_client_command_timeout(client));
    rlk_cluster_leave(client->route.cluster);
    rlk_registry_part_from_threads(reg);
    rlk_subscriber_leave(target);
    rlk_watchdog_leave(target);
    rlk_sync_mutex_lock(&reg->mu);
    bool settled = reg->background_count == 0; /* including those that failed */
    rlk_sync_mutex_unlock(&reg->mu);
    rlk_livefile_leave(client, settled);
    rlk_livefile_end(client);
    /* On a busy machine the kernel may need half a second for this, and the process may
     * be killed meanwhile: its file is gone by now. */
    rlk_peer_watch_end(client);
    /* From here on, abandoned releases stay in the live file for recovery. */
    rlk_sync_mutex_lock(&reg->mu);
    rlk_registry_shut_locked(reg);
    rlk_sync_mutex_unlock(&reg->mu);
    rlk_cluster_free(client->route.cluster);
    rlk_target_end(target);
    end_tls(client);
    wipe(client->config.endpoint.password);
    wipe(client->config.endpoint.sentinels.password);
    rlk_client_release(client);
}

void rlk_client_disown(struct rlock_client *client, bool tls_is_whole)
{
    struct rlk_tls_store *store = client->config.endpoint.tls_store;

    /* rule: T13 */
    /* rule: K12, G6 */
    inherit(client);
    memset(&client->registry, 0, sizeof(client->registry));
    memset(&client->counters, 0, sizeof(client->counters));
    memset(&client->round_trips, 0, sizeof(client->round_trips));
    memset(&client->route, 0, sizeof(client->route));
    memset(&client->peer_watch, 0, sizeof(client->peer_watch));
    client->peer_watch.inotify_fd = -1; /* 0 would be the program's descriptor */
    rlk_livefile_forget(client);
    rlk_tls_store_disown(store);
    client->config.endpoint.tls_store = NULL;
    if (store || !tls_is_whole)
        client->tls_parent = tls_is_whole ? store : NULL;
    rlk_sentinel_book_forget(client->config.endpoint.book);
    client->memory_refs = 1;
    client->interrupted = false;
    client->users = 0;
    client->running = client->starting = false;
}
