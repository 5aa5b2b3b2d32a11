/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients: opening and closing them, and the table by which handles find theirs. The
 * table's mutex `mu` nests in nothing and is held across no I/O; a client that is in use
 * (`users`) is not closed. Thread: any.
 */
#include "client.h"

#include "deadline.h"
#include "descriptor.h"
#include "error.h"
#include "fork.h"
#include "log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* protects all below */
static struct rlock_client **table;          /* open clients by ascending number */
static size_t table_count, table_size;
static uint64_t last_number;
static struct rlock_client *default_client;
static bool default_opening; /* one thread opens it, the others wait */
static char *default_url;
static rlock_clientattr_t *default_attr;
static struct rlk_cond changed; /* default_opening */
static rlk_once_t once = RLK_ONCE_INIT;
static int once_rc;
static struct rlock_client *_Atomic default_for_signals; /* as default_client */

/* ---- threads that end */

static void give_up_part(struct rlk_part *part, bool at_exit)
{
    struct rlk_hold *hold = part->hold;
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    bool open = rlk_client_keep(client) == 0;

    rlk_mutex_lock(&reg->mu);
    if (hold->state == RLK_HOLD_INSIDE) { /* so the client is open */
        int64_t now = rlk_now_boot();
        RLK_COUNT(client->counters.owners_died);
        hold->lost_after = now - hold->since;
        hold->owner_ended = true;
        if (at_exit)
            hold->lock->ending = rlk_thread_mine();
        else
            rlk_part_news_locked(part, RLK_NEWS_DIED);
        rlk_part_leave_locked(part);
        rlk_hold_end_unused_locked(hold, now);
        rlk_registry_unlock(reg);
    } else {
        rlk_part_leave_locked(part);
        rlk_mutex_unlock(&reg->mu);
        rlk_client_release(client); /* a lost hold's */
    }
    if (open)
        rlk_client_put(client);
}

static void give_up_parts(struct rlk_thread *thread, bool at_exit)
{
    struct rlk_list *l;
    while ((l = rlk_list_first(&thread->holds)) != NULL)
        give_up_part(RLK_CONTAINER_OF(l, struct rlk_part, thread_link), at_exit);
}

static void thread_ended(struct rlk_thread *thread)
{
    give_up_parts(thread, false);
}

/* ---- processes that end */

enum { EXIT_MS = 1000 };

/* Waits until what the watchdog has to release is released, or until then. */
static void drain_until(struct rlk_registry *reg, int64_t mono_end)
{
    rlk_registry_lock(reg);
    while (reg->background_count > 0 && rlk_now_mono() < mono_end) {
        /* the sleep must not keep the watchdog from what became due */
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        if (reg->background_count > 0)
            rlk_cond_wait(&reg->background_done, &reg->mu, mono_end);
    }
    rlk_registry_unlock(reg);
}

/* The open client that comes after this number, kept; NULL: there is none. */
static struct rlock_client *keep_after(uint64_t number)
{
    struct rlock_client *client = NULL;

    rlk_mutex_lock(&mu);
    for (size_t i = 0; i < table_count && !client; i++)
        if (table[i]->number > number && table[i]->running)
            client = table[i];
    if (client)
        client->users++;
    rlk_mutex_unlock(&mu);
    return client;
}

/* exit(), or the return from main: what the exiting thread holds is released, so that
 * others need not wait for its lease; the watchdog sends all of it at once. It finishes
 * what it has to release by then, for threads that ended, too. What other threads hold
 * they may still use until the very end: their leases end it. Runs behind the program's
 * own handlers, which may have unlocked it before. */
__attribute__((destructor)) static void process_ends(void)
{
    struct rlk_thread *thread = rlk_thread_mine();
    struct rlock_client *client;
    int64_t end = rlk_now_mono() + EXIT_MS * RLK_NS_PER_MS;

    rlk_log_end();
    if (rlk_fork_in_child())
        return;
    struct rlk_cancel cancel = rlk_cancel_disable();
    if (thread)
        give_up_parts(thread, true);
    for (uint64_t number = 0; (client = keep_after(number)) != NULL;
         rlk_client_put(client)) {
        number = client->number;
        drain_until(&client->registry, end);
    }
    rlk_cancel_restore(cancel);
}

/* ---- forks */

/* The table is whole in the child; what hangs on it is not looked at there. */
static void prepare_fork(void)
{
    rlk_mutex_lock(&mu);
    rlk_fd_hold();
    rlk_log_hold();
}

static void forked_parent(void)
{
    rlk_log_unhold();
    rlk_fd_unhold();
    rlk_mutex_unlock(&mu);
}

/* A client in a child: its configuration, and nothing else. The parent's memory is left
 * as it is: other threads may have been in the midst of anything. */
static void disown(struct rlock_client *client)
{
    client->inherited[0] = client->registry.table;
    client->inherited[1] = client->pool;
    client->inherited[2] = client->watch.conn;
    client->inherited[3] = client->subscription.conn;
    memset(&client->registry, 0, sizeof(client->registry));
    client->registry.watchdog_fd = client->registry.subscriber_fd = -1;
    memset(&client->counters, 0, sizeof(client->counters));
    memset(&client->watch, 0, sizeof(client->watch));
    memset(&client->subscription, 0, sizeof(client->subscription));
    client->pool = NULL;
    client->memory_refs = 1;
    client->interrupted = false;
    client->users = 0;
    client->running = client->starting = false;
}

static void forked_child(bool late)
{
    if (late) {
        /* held at the moment of the fork: then the table was being changed */
        bool whole = rlk_mutex_trylock(&mu);
        mu = (struct rlk_mutex)RLK_MUTEX_INIT;
        rlk_log_forget();
        if (!whole) {
            table = NULL;
            table_count = table_size = 0;
            default_client = NULL;
            atomic_store(&default_for_signals, NULL);
        }
    }
    rlk_fd_forget(late);
    rlk_thread_forget();
    rlk_watchdog_forget();
    rlk_subscriber_forget();
    rlk_cond_init(&changed);
    default_opening = false;
    for (size_t i = 0; i < table_count; i++)
        disown(table[i]);
    if (!late)
        forked_parent();
}

static void init(void)
{
    static const struct rlk_fork_hooks hooks = { prepare_fork, forked_parent,
                                                 forked_child };
    rlk_thread_set_exit(thread_ended);
    once_rc = rlk_cond_init(&changed);
    if (once_rc == 0)
        once_rc = rlk_fork_init(&hooks);
}

/* Before the program has handlers of its own: those that take a lock before a fork and
 * drop it behind must not find our mutexes taken. */
__attribute__((constructor)) static void process_begins(void)
{
    rlk_once(&once, init);
}

/* ---- memory */

void rlk_client_retain(struct rlock_client *client)
{
    atomic_fetch_add(&client->memory_refs, 1);
}

void rlk_client_release(struct rlock_client *client)
{
    if (atomic_fetch_sub(&client->memory_refs, 1) > 1)
        return;
    rlk_registry_destroy(&client->registry);
    rlk_config_clear(&client->config);
    free(client);
}

static void registry_retain(struct rlk_registry *reg)
{
    rlk_client_retain(RLK_CLIENT_OF(reg));
}

/* ---- identity */

static int make_uuid(char uuid[RLK_UUID_LEN + 1])
{
    unsigned char b[16];
    size_t have = 0;
    while (have < sizeof(b)) {
        ssize_t n = getrandom(b + have, sizeof(b) - have, 0);
        if (n < 0 && errno != EINTR)
            return ENOMEM;
        if (n > 0)
            have += (size_t)n;
    }
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

/* ---- open */

static int copy_text(char **ret_copy, const char *text)
{
    if (!text[0])
        return 0;
    *ret_copy = strdup(text);
    return *ret_copy ? 0 : rlk_error_set(ENOMEM, "out of memory");
}

static int configure(struct rlock_client *client, const char *url,
                     const rlock_clientattr_t *attr)
{
    struct rlk_config *config = &client->config;
    rlock_clientattr_t defaults RLK_UNINITIALIZED;
    int rc;

    if (!attr) {
        rlock_clientattr_init(&defaults);
        attr = &defaults;
    }
    config->lease_ms = (long)attr->rlk_lease_ms;
    config->presence_ms = (long)attr->rlk_presence_ms;
    config->command_timeout_ms = (long)attr->rlk_commandtimeout_ms;
    config->connect_timeout_ms = (long)attr->rlk_connecttimeout_ms;
    config->max_connections = attr->rlk_maxconnections;
    config->mutex_type = attr->rlk_mutextype;
    client->event_fn = attr->rlk_event_fn;
    client->event_arg = attr->rlk_event_arg;
    rc = copy_text(&config->target.user, attr->rlk_user);
    if (rc == 0)
        rc = copy_text(&config->target.password, attr->rlk_password);
    if (rc != 0)
        return rc;
    if (!url)
        url = getenv("RLOCK_URL");
    return rlk_url_parse(config, url && url[0] ? url : "redis://127.0.0.1:6379");
}

static int make_pool(struct rlock_client *client)
{
    struct rlk_pool_options options = {
        .conn = {
            .target = &client->config.target,
            .name = client->conn_name,
            .keepalive_ms = client->config.presence_ms,
            .reply_limit = (size_t)64 << 20, /* CLIENT LIST, a page of waiters */
        },
        .max_connections = client->config.max_connections,
        .connect_timeout_ns = client->config.connect_timeout_ms * RLK_NS_PER_MS,
        .connects = &client->counters.connects,
        .connect_failures = &client->counters.connect_failures,
    };
    return rlk_pool_create(&client->pool, &options);
}

/* Enters the client into the table. */
static int enter(struct rlock_client *client)
{
    int rc = 0;

    rlk_mutex_lock(&mu);
    if (table_count == table_size) {
        size_t size = table_size ? 2 * table_size : 8;
        struct rlock_client **bigger =
            realloc(table, size * sizeof(struct rlock_client *));
        if (bigger) {
            table = bigger;
            table_size = size;
        } else {
            rc = ENOMEM;
        }
    }
    if (rc == 0) { /* another thread may have opened a later one meanwhile */
        size_t i = table_count++;
        for (; i > 0 && table[i - 1]->number > client->number; i--)
            table[i] = table[i - 1];
        table[i] = client;
    }
    rlk_mutex_unlock(&mu);
    return rc;
}

/* Locks: holds mu. */
static void remove_locked(struct rlock_client *client)
{
    size_t i = 0;
    while (i < table_count && table[i] != client)
        i++;
    if (i == table_count)
        return;
    table_count--;
    memmove(&table[i], &table[i + 1], (table_count - i) * sizeof(struct rlock_client *));
    if (table_count == 0) { /* nothing is left behind when the last client is closed */
        free(table);
        table = NULL;
        table_size = 0;
    }
}

/* Gives a client its identity, and what it does with it. On failure it is as before. */
static int start(struct rlock_client *client, bool is_default)
{
    struct rlk_registry *reg = &client->registry;
    int rc = make_uuid(client->uuid);

    if (rc != 0)
        return rc;
    make_conn_name(client);
    reg->watchdog_fd = reg->subscriber_fd = -1;
    reg->client_number = is_default ? 0 : client->number;
    reg->uuid = client->uuid;
    reg->counters = &client->counters;
    reg->presence_ns = client->config.presence_ms * RLK_NS_PER_MS;
    reg->retain = registry_retain;
    rc = rlk_registry_init(reg);
    if (rc != 0)
        return rc;
    rc = make_pool(client);
    if (rc == 0)
        rc = rlk_watchdog_join(client);
    if (rc == 0) {
        rc = rlk_subscriber_join(client);
        if (rc == 0)
            return 0;
        rlk_watchdog_leave(client);
    }
    reg->watchdog_fd = reg->subscriber_fd = -1;
    rlk_pool_free(client->pool);
    client->pool = NULL;
    rlk_registry_destroy(reg);
    return rc;
}

static int open_client(struct rlock_client **ret_client, const char *url,
                       const rlock_clientattr_t *attr, bool is_default)
{
    struct rlock_client *client = calloc(1, sizeof(*client));

    if (!client)
        return rlk_error_set(ENOMEM, "out of memory");
    client->memory_refs = 1;
    int rc = configure(client, url, attr);
    if (rc == 0) {
        rlk_mutex_lock(&mu);
        client->number = ++last_number;
        rlk_mutex_unlock(&mu);
        rc = start(client, is_default);
    }
    if (rc == 0) {
        client->running = true;
        rc = enter(client);
        if (rc != 0) {
            rlk_subscriber_leave(client);
            rlk_watchdog_leave(client);
            rlk_pool_free(client->pool);
        }
    }
    if (rc != 0) {
        rlk_client_release(client);
        return rlk_error_default(rc);
    }
    *ret_client = client;
    return 0;
}

/* ---- close */

/* Gives unfinished releases one command timeout. */
static void drain(struct rlock_client *client)
{
    drain_until(&client->registry, rlk_now_mono() + rlk_client_command_timeout(client));
}

/* The client is in no table any more, and nobody uses it. */
static void shut(struct rlock_client *client)
{
    struct rlk_registry *reg = &client->registry;

    if (!client->running) {
        rlk_client_release(client);
        return;
    }
    drain(client);
    /* a thread that still drains a lost hold must not write to a descriptor that is
     * closed */
    reg->watchdog_fd = reg->subscriber_fd = -1;
    rlk_subscriber_leave(client);
    rlk_watchdog_leave(client);
    rlk_mutex_lock(&reg->mu);
    rlk_registry_shut_locked(reg);
    rlk_mutex_unlock(&reg->mu);
    rlk_pool_free(client->pool);
    client->pool = NULL;
    if (client->config.target.password)
        explicit_bzero(client->config.target.password,
                       strlen(client->config.target.password));
    rlk_client_release(client);
}

/* ---- the table */

/* Locks: holds mu. */
static struct rlock_client *find_number(uint64_t number)
{
    size_t low = 0, high = table_count;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (table[mid]->number < number)
            low = mid + 1;
        else
            high = mid;
    }
    return low < table_count && table[low]->number == number ? table[low] : NULL;
}

/* Locks: holds mu. */
static bool is_open_locked(const struct rlock_client *client)
{
    for (size_t i = 0; i < table_count; i++)
        if (table[i] == client)
            return true;
    return false;
}

int rlk_client_check_process(void)
{
    rlk_once(&once, init);
    rlk_fork_settle();
    return once_rc;
}

/* Opens the default client if need be. Locks: holds mu, dropped while opening. */
static int need_default_locked(void)
{
    struct rlock_client *client = NULL;

    while (default_opening)
        rlk_cond_wait(&changed, &mu, RLK_NEVER);
    if (default_client)
        return 0;
    default_opening = true;
    rlk_mutex_unlock(&mu);
    int rc = open_client(&client, default_url, default_attr, true);
    rlk_mutex_lock(&mu);
    default_opening = false;
    if (rc == 0) {
        default_client = client;
        atomic_store(&default_for_signals, client);
    }
    rlk_cond_broadcast(&changed);
    return rc;
}

/* In a child: starts a client of the parent's, under the same number, if need be. Locks:
 * holds mu, dropped while starting. The caller is among its users. */
static int need_running_locked(struct rlock_client *client)
{
    while (client->starting)
        rlk_cond_wait(&changed, &mu, RLK_NEVER);
    if (client->running)
        return 0;
    client->starting = true;
    bool is_default = client == default_client;
    rlk_mutex_unlock(&mu);
    int rc = start(client, is_default);
    rlk_mutex_lock(&mu);
    client->starting = false;
    client->running = rc == 0;
    rlk_cond_broadcast(&changed);
    return rlk_error_default(rc);
}

int rlk_client_get(uint64_t number, struct rlock_client **ret_client)
{
    struct rlock_client *client = NULL;
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_mutex_lock(&mu);
    if (number == 0) {
        if (!default_client)
            rc = need_default_locked();
        if (rc == 0)
            client = default_client;
    } else {
        client = find_number(number);
        if (!client)
            rc = rlk_error_set(EINVAL, "the client of this handle is closed");
    }
    if (client) {
        client->users++;
        if (!client->running)
            rc = need_running_locked(client);
        if (rc == 0)
            *ret_client = client;
        else
            client->users--;
    }
    rlk_mutex_unlock(&mu);
    return rc;
}

int rlk_client_peek(uint64_t number, struct rlock_client **ret_client)
{
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_mutex_lock(&mu);
    *ret_client = number == 0 ? default_client : find_number(number);
    if (*ret_client)
        (*ret_client)->users++;
    rlk_mutex_unlock(&mu);
    return 0;
}

int rlk_client_get_pointer(const struct rlock_client *client,
                           struct rlock_client **ret_client)
{
    uint64_t number = 0;
    int rc = rlk_client_check_process();

    if (rc == 0 && client && !rlk_client_is_open(client, &number))
        rc = rlk_error_set(EINVAL, "no such client is open");
    return rc != 0 ? rc : rlk_client_get(number, ret_client);
}

int rlk_client_peek_pointer(const struct rlock_client *client,
                            struct rlock_client **ret_client)
{
    uint64_t number = 0;
    int rc = rlk_client_check_process();

    if (rc == 0 && client && !rlk_client_is_open(client, &number))
        rc = rlk_error_set(EINVAL, "no such client is open");
    return rc != 0 ? rc : rlk_client_peek(number, ret_client);
}

int rlk_client_keep(struct rlock_client *client)
{
    int rc = 0;

    rlk_mutex_lock(&mu);
    if (is_open_locked(client))
        client->users++;
    else
        rc = EINVAL;
    rlk_mutex_unlock(&mu);
    return rc;
}

void rlk_client_put(struct rlock_client *client)
{
    rlk_mutex_lock(&mu);
    if (client->users >
        0) /* 0: a callback forked within the call, and this is the child */
        client->users--;
    rlk_mutex_unlock(&mu);
}

struct rlock_client *rlk_client_signal_default(void)
{
    return atomic_load(&default_for_signals);
}

bool rlk_client_is_open(const struct rlock_client *client, uint64_t *ret_number)
{
    rlk_mutex_lock(&mu);
    bool open = is_open_locked(client);
    if (open)
        *ret_number = client->number;
    rlk_mutex_unlock(&mu);
    return open;
}

/* ---- what clientapi.c exports */

int rlk_client_open(struct rlock_client **ret_client, const char *url,
                    const rlock_clientattr_t *attr)
{
    int rc = rlk_client_check_process();
    return rc != 0 ? rc : open_client(ret_client, url, attr, false);
}

int rlk_client_close(struct rlock_client *client)
{
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_mutex_lock(&mu);
    if (!client)
        client = default_client;
    if (!client) { /* the default client was never opened: nothing to close */
        rlk_mutex_unlock(&mu);
        return 0;
    }
    if (!is_open_locked(client)) {
        rc = rlk_error_set(EINVAL, "no such client is open");
    } else if (client->users > 0) {
        rc = rlk_error_set(EBUSY, "a thread is inside a function of the client");
    } else if (client->running) {
        /* mu keeps new users out, so what the registry says stays true */
        rlk_mutex_lock(&client->registry.mu);
        if (rlk_registry_busy_locked(&client->registry))
            rc = rlk_error_set(EBUSY, "a lock of the client is held or waited for");
        rlk_mutex_unlock(&client->registry.mu);
    }
    if (rc == 0) {
        remove_locked(client);
        if (client == default_client) {
            default_client = NULL;
            atomic_store(&default_for_signals, NULL);
        }
    }
    rlk_mutex_unlock(&mu);
    if (rc == 0)
        shut(client);
    return rc;
}

int rlk_client_set_default(const char *url, const rlock_clientattr_t *attr)
{
    rlock_clientattr_t *attr_copy = NULL;
    char *url_copy = NULL;
    struct rlock_client *probe;
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    /* what would fail at first use fails here */
    probe = calloc(1, sizeof(*probe));
    if (!probe)
        return rlk_error_set(ENOMEM, "out of memory");
    rc = configure(probe, url, attr);
    rlk_config_clear(&probe->config);
    free(probe);
    if (rc != 0)
        return rc;
    if (url && !(url_copy = strdup(url)))
        return rlk_error_set(ENOMEM, "out of memory");
    if (attr) {
        attr_copy = malloc(sizeof(*attr_copy));
        if (!attr_copy) {
            free(url_copy);
            return rlk_error_set(ENOMEM, "out of memory");
        }
        memcpy(attr_copy, attr, sizeof(*attr_copy));
    }
    rlk_mutex_lock(&mu);
    if (default_client || default_opening) {
        rc = rlk_error_set(EBUSY, "the default client is open already");
    } else {
        char *old_url = default_url;
        rlock_clientattr_t *old_attr = default_attr;
        default_url = url_copy;
        default_attr = attr_copy;
        url_copy = old_url;
        attr_copy = old_attr;
    }
    rlk_mutex_unlock(&mu);
    if (url_copy)
        explicit_bzero(url_copy, strlen(url_copy));
    free(url_copy);
    if (attr_copy)
        explicit_bzero(attr_copy, sizeof(*attr_copy));
    free(attr_copy);
    return rc;
}
