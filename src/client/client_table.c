/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients exist: open and close, the table in which handles find their client, the
 * default client, and all clients in a forked child. The table's mutex `mu` nests in
 * nothing and is held across no I/O. A client in use (`users`) is not closed. Thread:
 * any.
 */
#include "client/client_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/rpc.h"
#include "state/handoff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* of all data below; nests in nothing */
static struct rlock_client **table;          /* open clients by ascending number */
static size_t table_count, table_size;
static uint64_t last_number;
static struct rlock_client *default_client;
static bool default_opening; /* one thread opens it, the others wait */
/* The set of clients is being changed: a child must not trust its copy. */
static atomic_bool changing;
static char *default_url;
static rlock_clientattr_t *default_attr;
static struct rlk_cond changed; /* signalled when default_opening or draining ends */
static rlk_once_t once = RLK_ONCE_INIT;
static int once_rc;
static struct rlock_client *_Atomic default_for_signals; /* a copy of default_client */
/* Calls from signal handlers under way, counted by the phase in which they began. A
 * thread that waits for them ends the phase first, so that it does not wait for later
 * calls. */
static _Atomic unsigned signal_calls[2], signal_phase;
static bool draining; /* one thread waits for them */

/* ---- forks */

/* The table is consistent in the child; the child does not use the clients in it. */
static void prepare_fork(void)
{
    rlk_sync_mutex_lock(&mu);
    rlk_tls_hold(); /* first, because a thread inside OpenSSL may open a file */
    rlk_fd_hold();
    rlk_log_hold();
}

static void forked_parent(void)
{
    rlk_log_unhold();
    rlk_fd_unhold();
    rlk_tls_unhold();
    rlk_sync_mutex_unlock(&mu);
}

static void forked_child(bool late)
{
    /* rule: T13 */
    if (late) {
        mu = (struct rlk_mutex)RLK_MUTEX_INIT; /* most often another thread of the parent
                                                  held it for a read */
        rlk_log_forget();
        if (atomic_exchange(&changing, false)) {
            table = NULL;
            table_count = table_size = 0;
            default_client = NULL;
            atomic_store(&default_for_signals, NULL);
        }
    }
    rlk_fd_forget(late);
    rlk_tls_forget(late);
    rlk_thread_forget();
    rlk_watchdog_forget();
    rlk_subscriber_forget();
    rlk_sync_cond_init(&changed);
    default_opening = draining = false;
    for (int i = 0; i < 2;
         i++) /* the counts of the parent's threads; this thread is in no such call */
        atomic_store(&signal_calls[i], 0);
    for (size_t i = 0; i < table_count; i++)
        rlk_client_disown(table[i]);
    if (!late)
        forked_parent();
}

static void init(void)
{
    static const struct rlk_fork_hooks hooks = { prepare_fork, forked_parent,
                                                 forked_child };
    rlk_thread_set_exit(rlk_client_thread_ended);
    once_rc = rlk_sync_cond_init(&changed);
    if (once_rc == 0)
        once_rc = rlk_fork_init(&hooks);
}

/* Registered before the program's handlers: those that take a lock before a fork and
 * drop it after must not find the library's mutexes taken. */
__attribute__((constructor)) static void process_begins(void)
{
    rlk_sync_once(&once, init);
}

/* ---- the table */

/* Adds the client to the table. */
static int enter(struct rlock_client *client)
{
    int rc = 0;

    rlk_sync_mutex_lock(&mu);
    atomic_store(&changing, true);
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
    if (rc == 0) { /* another thread may have added a later one meanwhile */
        size_t i = table_count++;
        for (; i > 0 && table[i - 1]->number > client->number; i--)
            table[i] = table[i - 1];
        table[i] = client;
    }
    atomic_store(&changing, false);
    rlk_sync_mutex_unlock(&mu);
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
    atomic_store(&changing, true);
    table_count--;
    memmove(&table[i], &table[i + 1], (table_count - i) * sizeof(struct rlock_client *));
    if (table_count == 0) { /* no memory stays allocated when the last client is closed */
        free(table);
        table = NULL;
        table_size = 0;
    }
    if (client == default_client) {
        default_client = NULL;
        atomic_store(&default_for_signals, NULL);
    }
    atomic_store(&changing, false);
}

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

struct rlock_client *rlk_client_keep_after(uint64_t number)
{
    struct rlock_client *client = NULL;

    rlk_sync_mutex_lock(&mu);
    for (size_t i = 0; i < table_count && !client; i++)
        if (table[i]->number > number && table[i]->running)
            client = table[i];
    if (client)
        client->users++;
    rlk_sync_mutex_unlock(&mu);
    return client;
}

/* ---- open */

static int open_client(struct rlock_client **ret_client, const char *url,
                       const rlock_clientattr_t *attr, bool is_default)
{
    struct rlock_client *client = calloc(1, sizeof(*client));

    if (!client)
        return rlk_error_set(ENOMEM, "out of memory");
    client->memory_refs = 1;
    int rc = rlk_client_configure(&client->config, url, attr);
    if (attr) {
        client->event_fn = attr->rlk_event_fn;
        client->event_arg = attr->rlk_event_arg;
    }
    if (rc == 0) {
        rlk_sync_mutex_lock(&mu);
        client->number = ++last_number;
        rlk_sync_mutex_unlock(&mu);
        rc = rlk_client_start(client, is_default);
    }
    if (rc == 0) {
        client->running = true;
        rc = rlk_rpc_check_aof(client);
        if (rc == 0)
            rc = enter(client);
        if (rc != 0) {
            rlk_client_shut(client);
            return rlk_error_default(rc);
        }
    }
    if (rc != 0) {
        rlk_client_release(client);
        return rlk_error_default(rc);
    }
    *ret_client = client;
    return 0;
}

/* ---- by handle and by pointer */

int rlk_client_check_process(void)
{
    /* rule: T13 */
    rlk_sync_once(&once, init);
    rlk_fork_settle();
    return once_rc;
}

/* Opens the default client if necessary. Locks: holds mu, and drops it while opening. */
static int need_default_locked(void)
{
    struct rlock_client *client = NULL;

    while (default_opening)
        rlk_sync_cond_wait(&changed, &mu, RLK_NEVER);
    if (default_client)
        return 0;
    default_opening = true;
    rlk_sync_mutex_unlock(&mu);
    int rc = open_client(&client, default_url, default_attr, true);
    rlk_sync_mutex_lock(&mu);
    default_opening = false;
    if (rc == 0) {
        default_client = client;
        atomic_store(&default_for_signals, client);
    }
    rlk_sync_cond_broadcast(&changed);
    return rc;
}

/* In a child: starts a client of the parent's under the same number if necessary.
 * Locks: holds mu, and drops it while starting. The caller must be among the users. */
static int need_running_locked(struct rlock_client *client)
{
    while (client->starting)
        rlk_sync_cond_wait(&changed, &mu, RLK_NEVER);
    if (client->running)
        return 0;
    client->starting = true;
    bool is_default = client == default_client;
    rlk_sync_mutex_unlock(&mu);
    int rc = rlk_client_start(client, is_default);
    rlk_sync_mutex_lock(&mu);
    client->starting = false;
    client->running = rc == 0;
    rlk_sync_cond_broadcast(&changed);
    return rlk_error_default(rc);
}

int rlk_client_get(uint64_t number, struct rlock_client **ret_client)
{
    struct rlock_client *client = NULL;
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_sync_mutex_lock(&mu);
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
    rlk_sync_mutex_unlock(&mu);
    return rc;
}

int rlk_client_peek(uint64_t number, struct rlock_client **ret_client)
{
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_sync_mutex_lock(&mu);
    *ret_client = number == 0 ? default_client : find_number(number);
    if (*ret_client)
        (*ret_client)->users++;
    rlk_sync_mutex_unlock(&mu);
    return 0;
}

/* Copies what rlk_client_set_default stored: opening may read a file, which must not
 * happen with mu held. Both NULL if nothing was stored. Returns 0 or ENOMEM. */
static int copy_default(char **ret_url, rlock_clientattr_t **ret_attr)
{
    char *url = NULL;
    rlock_clientattr_t *attr = NULL;

    rlk_sync_mutex_lock(&mu);
    if (default_url)
        url = strdup(default_url);
    if (default_attr)
        attr = malloc(sizeof(*attr));
    if (attr)
        memcpy(attr, default_attr, sizeof(*attr));
    bool whole = !default_url == !url && !default_attr == !attr;
    rlk_sync_mutex_unlock(&mu);
    *ret_url = url;
    *ret_attr = attr;
    return whole ? 0 : rlk_error_set(ENOMEM, "out of memory");
}

static void drop_default(char *url, rlock_clientattr_t *attr)
{
    if (url)
        explicit_bzero(url, strlen(url));
    free(url);
    if (attr)
        explicit_bzero(attr, sizeof(*attr));
    free(attr);
}

int rlk_client_configure_default(struct rlk_config *config)
{
    rlock_clientattr_t *attr;
    char *url;

    memset(config, 0, sizeof(*config));
    int rc = copy_default(&url, &attr);
    if (rc == 0)
        rc = rlk_client_configure(config, url, attr);
    drop_default(url, attr);
    return rc;
}

/* Errors in the URL are reported when the client is opened. */
static int default_mutex_type(void)
{
    struct rlk_config config;
    int rc = rlk_client_configure_default(&config);
    int type = rc == 0 ? config.mutex_type : RLOCK_MUTEX_RECURSIVE;

    rlk_url_config_clear(&config);
    rlk_error_clear();
    return type;
}

int rlk_client_mutex_type(uint64_t number)
{
    struct rlock_client *client = NULL;
    int type = RLOCK_MUTEX_RECURSIVE;

    if (rlk_client_peek(number, &client) == 0 && client) {
        type = client->config.mutex_type;
        rlk_client_put(client);
    } else if (number == 0) {
        type = default_mutex_type();
    }
    return type;
}

/* The number of an open client; 0 for NULL, the default client. */
static int number_of(const struct rlock_client *client, uint64_t *ret_number)
{
    int rc = rlk_client_check_process();

    *ret_number = 0;
    if (rc == 0 && client && !rlk_client_is_open(client, ret_number))
        rc = rlk_error_set(EINVAL, "the client is not open");
    return rc;
}

int rlk_client_get_pointer(const struct rlock_client *client,
                           struct rlock_client **ret_client)
{
    uint64_t number;
    int rc = number_of(client, &number);
    return rc != 0 ? rc : rlk_client_get(number, ret_client);
}

int rlk_client_peek_pointer(const struct rlock_client *client,
                            struct rlock_client **ret_client)
{
    uint64_t number;
    int rc = number_of(client, &number);
    return rc != 0 ? rc : rlk_client_peek(number, ret_client);
}

int rlk_client_keep(struct rlock_client *client)
{
    int rc = 0;

    rlk_sync_mutex_lock(&mu);
    if (is_open_locked(client))
        client->users++;
    else
        rc = rlk_error_set(EINVAL, "the client is not open");
    rlk_sync_mutex_unlock(&mu);
    return rc;
}

void rlk_client_put(struct rlock_client *client)
{
    rlk_sync_mutex_lock(&mu);
    /* users is 0 if a callback forked within the call, and this is the child. */
    if (client->users > 0)
        client->users--;
    rlk_sync_mutex_unlock(&mu);
}

struct rlock_client *rlk_client_signal_begin(struct rlock_client *client,
                                             struct rlk_client_signal_call *ret_call)
{
    rlk_sync_signals_block(&ret_call->mask);
    ret_call->phase = atomic_load(&signal_phase);
    atomic_fetch_add(&signal_calls[ret_call->phase], 1);
    return client ? client : atomic_load(&default_for_signals);
}

void rlk_client_signal_end(const struct rlk_client_signal_call *call)
{
    atomic_fetch_sub(&signal_calls[call->phase], 1);
    rlk_sync_signals_restore(&call->mask);
}

/* Waits for calls that may have found a client which is no longer in the table. Waits
 * for each phase in turn, because a call may have read the phase before it ended and
 * counted itself later. Calls that begin meanwhile count in the other phase. Locks:
 * holds mu, and drops it while waiting. */
static void drain_signal_calls_locked(void)
{
    while (draining)
        rlk_sync_cond_wait(&changed, &mu, RLK_NEVER);
    draining = true;
    rlk_sync_mutex_unlock(&mu);
    for (int i = 0; i < 2; i++) {
        unsigned next = 1 - atomic_load(&signal_phase);
        while (atomic_load(&signal_calls[next]) > 0)
            rlk_sync_pause(); /* these calls take no mutex and end within moments */
        atomic_store(&signal_phase, next);
    }
    rlk_sync_mutex_lock(&mu);
    draining = false;
    rlk_sync_cond_broadcast(&changed);
}

bool rlk_client_is_open(const struct rlock_client *client, uint64_t *ret_number)
{
    rlk_sync_mutex_lock(&mu);
    bool open = is_open_locked(client);
    if (open)
        *ret_number = client->number;
    rlk_sync_mutex_unlock(&mu);
    return open;
}

/* ---- what client_api.c exports */

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
    rlk_sync_mutex_lock(&mu);
    if (!client)
        client = default_client;
    if (!client) { /* the default client was never opened */
        rlk_sync_mutex_unlock(&mu);
        return 0;
    }
    if (!is_open_locked(client)) {
        rc = rlk_error_set(EINVAL, "the client is not open");
    } else if (client->users > 0) {
        rc = rlk_error_set(EBUSY, "a thread is inside a call of the client");
    } else if (client->running) {
        /* mu keeps new users out, so the registry's answer stays true. */
        rlk_sync_mutex_lock(&client->registry.mu);
        if (rlk_registry_busy_locked(&client->registry))
            rc = rlk_error_set(EBUSY, "a lock of the client is held or waited for");
        else /* retained holds are released; rlk_client_shut waits for that */
            rlk_handoff_end_all_locked(&client->registry, rlk_clock_boot());
        rlk_sync_mutex_unlock(&client->registry.mu);
    }
    if (rc == 0) {
        remove_locked(client);
        drain_signal_calls_locked();
    }
    rlk_sync_mutex_unlock(&mu);
    if (rc == 0)
        rlk_client_shut(client);
    return rc;
}

int rlk_client_set_default(const char *url, const rlock_clientattr_t *attr)
{
    rlock_clientattr_t *attr_copy = NULL;
    char *url_copy = NULL;
    struct rlk_config probe = { .url = NULL };
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    /* An error of the first use is found here. */
    rc = rlk_client_configure(&probe, url, attr);
    rlk_url_config_clear(&probe);
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
    rlk_sync_mutex_lock(&mu);
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
    rlk_sync_mutex_unlock(&mu);
    drop_default(url_copy, attr_copy);
    return rc;
}
