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
    SKEW_PARTS = 6,       /* of a lease: maxskew is less than one of them */
    SENTINEL_SKEW_MS = 50 /* the initial value with Sentinel */
};

/* ---- memory */

/* What a child retains of its parent's client: memory that the child must not use,
 * because other threads of the parent may have been changing it, but that leak
 * checkers must still find. Allocated in the parent, because the child of a _Fork
 * cannot allocate. */
struct rlk_heritage {
    struct rlk_heritage *older;
    struct rlk_registry registry;
    struct rlk_watch watch;
    struct rlk_peer_watch peer_watch;
    struct rlk_subscription subscription;
    struct rlk_monitor monitor;
    struct rlk_pool *pool;
};
static struct rlk_heritage *inherited __attribute__((used)); /* read by the child only */

static void inherit(struct rlock_client *client)
{
    struct rlk_heritage *heritage = client->heritage;

    if (!heritage)
        return;
    client->heritage = NULL;
    memcpy(&heritage->registry, &client->registry, sizeof(client->registry));
    memcpy(&heritage->watch, &client->watch, sizeof(client->watch));
    memcpy(&heritage->peer_watch, &client->peer_watch, sizeof(client->peer_watch));
    memcpy(&heritage->subscription, &client->subscription, sizeof(client->subscription));
    memcpy(&heritage->monitor, &client->monitor, sizeof(client->monitor));
    memset(&heritage->registry.random, 0, sizeof(heritage->registry.random)); /* T13 */
    heritage->pool = client->pool;
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
    rlk_sentinel_book_free(client->config.target.book);
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
        config->max_skew_ms = config->target.sentinels.count > 0 ? SENTINEL_SKEW_MS : 0;
        config->skew_is_initial = true;
        return 0;
    }
    if (config->max_skew_ms * SKEW_PARTS < least)
        return 0;
    return rlk_error_set(EINVAL,
                         "maxskew (%ld ms) is not less than a sixth of lease (%ld ms) "
                         "and presence (%ld ms)",
                         config->max_skew_ms, config->lease_ms, config->presence_ms);
}

int rlk_client_check_lease(const struct rlock_client *client, long lease_ms)
{
    const struct rlk_config *config = &client->config;

    /* rule: P17 */
    if (config->skew_is_initial || config->max_skew_ms * SKEW_PARTS < lease_ms)
        return 0;
    return rlk_error_set(
        EINVAL, "maxskew (%ld ms) is not less than a sixth of the lock's lease (%ld ms)",
        config->max_skew_ms, lease_ms);
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
    rc = copy_text(&config->target.user, attr->rlk_user);
    if (rc == 0)
        rc = copy_text(&config->target.password, attr->rlk_password);
    if (rc == 0)
        rc = rlk_url_tls_take(&config->target.tls, attr->rlk_texts);
    if (rc == 0)
        rc = rlk_url_sentinel_take(&config->target.sentinels, attr->rlk_texts);
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
    struct rlk_target *target = &client->config.target;

    if (!target->tls.on)
        return 0;
    rlk_tls_set_exit(rlk_client_exit_tls);
    return rlk_tls_store_create(&target->tls_store, target, client->tls_parent);
}

/* Called when no connection is left. */
static void end_tls(struct rlock_client *client)
{
    rlk_tls_store_free(client->config.target.tls_store);
    client->config.target.tls_store = NULL;
}

static int make_book(struct rlock_client *client)
{
    struct rlk_target *target = &client->config.target;

    if (target->sentinels.count > 0 && !target->book)
        target->book = rlk_sentinel_book_create();
    return target->sentinels.count > 0 && !target->book ? ENOMEM : 0;
}

/* rule: P9 */
/* The two threads leave the old master at once, and not only when they look next. */
static void tell_of_move(struct rlk_moves *moves)
{
    struct rlk_registry *reg =
        &RLK_CONTAINER_OF(moves, struct rlock_client, moves)->registry;

    rlk_registry_lock(reg);
    reg->watchdog_dirty = reg->subscriber_dirty = true;
    rlk_registry_unlock(reg);
}

static int make_pool(struct rlock_client *client)
{
    struct rlk_pool_options options = {
        .conn = {
            .target = &client->config.target,
            .name = client->conn_name,
            .keepalive_ms = client->config.presence_ms,
            .reply_limit = (size_t)64 << 20, /* CLIENT LIST, a page of waiters */
            .moves = &client->moves,
        },
        .max_connections = client->config.max_connections,
        .connect_timeout_ns = client->config.connect_timeout_ms * RLK_NS_PER_MS,
        .connects = &client->counters.connects,
        .connect_failures = &client->counters.connect_failures,
    };
    return rlk_pool_create(&client->pool, &options);
}

int rlk_client_start(struct rlock_client *client, bool is_default)
{
    struct rlk_registry *reg = &client->registry;
    int rc = make_uuid(client->uuid);

    if (rc != 0)
        return rc;
    if (!client->heritage)
        client->heritage = calloc(1, sizeof(*client->heritage));
    if (!client->heritage)
        return ENOMEM;
    make_conn_name(client);
    client->moves.tell = tell_of_move;
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
        rc = make_pool(client);
    if (rc == 0) { /* before the first request */
        rlk_livefile_start(client);
        rlk_peer_watch_start(client, &rlk_renewer_of_recovery);
    }
    if (rc == 0)
        rc = rlk_watchdog_join(client);
    if (rc == 0) {
        rc = rlk_subscriber_join(client);
        if (rc == 0)
            return 0;
        rlk_registry_part_from_threads(reg);
        rlk_watchdog_leave(client);
        rlk_peer_watch_end(client);
    }
    rlk_livefile_leave(client, true);
    rlk_livefile_free(client);
    rlk_pool_free(client->pool);
    client->pool = NULL;
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

    if (!client->running) {
        rlk_client_release(client);
        return;
    }
    /* rule: G15 */
    /* Unfinished releases get one command timeout. */
    rlk_client_drain(client, rlk_clock_mono() + rlk_client_command_timeout(client));
    rlk_registry_part_from_threads(reg);
    rlk_subscriber_leave(client);
    rlk_watchdog_leave(client);
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
    rlk_pool_free(client->pool);
    client->pool = NULL;
    end_tls(client);
    wipe(client->config.target.password);
    wipe(client->config.target.sentinels.password);
    rlk_client_release(client);
}

void rlk_client_disown(struct rlock_client *client, bool tls_is_whole)
{
    struct rlk_tls_store *store = client->config.target.tls_store;

    /* rule: T13 */
    /* rule: K12, G6 */
    inherit(client);
    memset(&client->registry, 0, sizeof(client->registry));
    memset(&client->counters, 0, sizeof(client->counters));
    memset(&client->round_trips, 0, sizeof(client->round_trips));
    memset(&client->watch, 0, sizeof(client->watch));
    memset(&client->peer_watch, 0, sizeof(client->peer_watch));
    client->peer_watch.inotify_fd = -1; /* 0 would be the program's descriptor */
    rlk_livefile_forget(client);
    memset(&client->subscription, 0, sizeof(client->subscription));
    memset(&client->monitor, 0, sizeof(client->monitor));
    client->pool = NULL;
    rlk_tls_store_disown(store);
    client->config.target.tls_store = NULL;
    if (store || !tls_is_whole)
        client->tls_parent = tls_is_whole ? store : NULL;
    rlk_sentinel_book_forget(client->config.target.book);
    client->memory_refs = 1;
    client->interrupted = false;
    client->users = 0;
    client->running = client->starting = false;
}
