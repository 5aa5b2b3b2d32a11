/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which clients exist: open and close, the table in which handles find their client, the
 * default client, and all clients in a forked child. The table's mutex `mu` nests in
 * nothing and is held across no I/O. A client in use (`users`) is not closed. Thread:
 * any.
 *
 * The table is a list. Who changes it holds mu; calls that look for their client do not.
 * Such a look is a reader of base/epoch.h, and a client that left the table is freed only
 * when all looks that may have found it have ended.
 */
#include "client/client_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/fork.h"
#include "base/log.h"
#include "client/rpc.h"
#include "net/resolve.h"
#include "state/handoff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* of all data below; nests in nothing */
static struct rlock_client *_Atomic first;   /* the open clients by ascending number */
static uint64_t last_number;
static struct rlock_client *_Atomic default_client;
static bool default_opening; /* one thread opens it, the others wait */
/* The set of clients is being changed: a child must not trust its copy. */
static atomic_bool changing;
static struct rlk_client_default settings;
static struct rlk_cond changed; /* signalled when default_opening or draining ends */
static rlk_once_t once = RLK_ONCE_INIT;
static int once_rc;
static atomic_bool begun; /* init has run */
static bool draining;     /* one thread waits for looks to end */

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
            atomic_store(&first, NULL);
            atomic_store(&default_client, NULL);
        }
    }
    rlk_fd_forget(late);
    bool tls_is_whole = rlk_tls_forget(late);
    rlk_thread_forget();
    rlk_resolve_forget();
    rlk_watchdog_forget();
    rlk_subscriber_forget();
    rlk_sync_cond_init(&changed);
    default_opening = draining = false;
    rlk_epoch_forget();
    for (struct rlock_client *client = first; client; client = client->next)
        rlk_client_disown(client, tls_is_whole);
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
    atomic_store_explicit(&begun, true, memory_order_release);
}

/* Registered before the program's handlers: those that take a lock before a fork and
 * drop it after must not find the library's mutexes taken. */
__attribute__((constructor)) static void process_begins(void)
{
    rlk_sync_once(&once, init);
}

/* ---- the table */

/* Adds the client to the table. */
static void enter(struct rlock_client *client)
{
    struct rlock_client *_Atomic *at = &first;

    rlk_sync_mutex_lock(&mu);
    atomic_store(&changing, true);
    while (*at && (*at)->number < client->number) /* it may be late */
        at = &(*at)->next;
    atomic_store(&client->next, *at);
    atomic_store(at, client);
    atomic_store(&changing, false);
    rlk_sync_mutex_unlock(&mu);
}

/* Locks: holds mu. */
static void remove_locked(struct rlock_client *client)
{
    struct rlock_client *_Atomic *at = &first;

    while (*at && *at != client)
        at = &(*at)->next;
    if (!*at)
        return;
    atomic_store(&changing, true);
    atomic_store(at, client->next); /* who looks at the client goes on from it */
    if (client == default_client)
        atomic_store(&default_client, NULL);
    atomic_store(&changing, false);
}

/* Locks: holds mu, or is in a look. */
static struct rlock_client *find_number(uint64_t number)
{
    struct rlock_client *client = first;

    while (client && client->number < number)
        client = client->next;
    return client && client->number == number ? client : NULL;
}

/* Number 0 is the default client. NULL: none. Locks: as find_number. */
static inline struct rlock_client *find(uint64_t number)
{
    return number == 0 ? default_client : find_number(number);
}

/* Locks: as find_number. */
static bool is_open(const struct rlock_client *wanted)
{
    const struct rlock_client *client = first;

    while (client && client != wanted)
        client = client->next;
    return client != NULL;
}

/* ---- users */

/* users of a client that is being closed, or is closed. Who holds mu meets it only
 * outside of the table. */
enum { CLOSED = -1 };

/* Counts one more user. False: the client is CLOSED. */
static bool use(struct rlock_client *client)
{
    int users = client->users;

    while (users != CLOSED)
        if (atomic_compare_exchange_weak(&client->users, &users, users + 1))
            return true;
    return false;
}

void rlk_client_put(struct rlock_client *client)
{
    int users = client->users;

    /* users is 0 if a callback forked within the call, and this is the child. */
    while (users > 0 && !atomic_compare_exchange_weak(&client->users, &users, users - 1))
        ;
}

struct rlock_client *rlk_client_keep_after(uint64_t number)
{
    struct rlock_client *client = NULL;

    rlk_sync_mutex_lock(&mu);
    for (struct rlock_client *next = first; next && !client; next = next->next)
        if (next->number > number && next->running && use(next))
            client = next;
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
        enter(client); /* a child of a fork finds it, and gives it up */
        /* The default client is opened within a lock call, whose deadline counts. */
        rc = is_default ? 0 : rlk_rpc_check_aof(client);
        if (rc != 0) {
            rlk_error_keep(true);
            rlk_client_close(client); /* EBUSY: the process is exiting */
            rlk_error_keep(false);
            return rlk_error_default(rc);
        }
    } else {
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
    if (!atomic_load_explicit(&begun, memory_order_acquire))
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
    int rc = open_client(&client, settings.url, settings.attr, true);
    rlk_sync_mutex_lock(&mu);
    default_opening = false;
    if (rc == 0)
        atomic_store(&default_client, client);
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

/* Finds the client and counts a user, or returns NULL: there is no such client, or it may
 * be about to be closed. */
static struct rlock_client *get_at_once(uint64_t number)
{
    struct rlk_epoch look = rlk_epoch_enter();
    struct rlock_client *client = find(number);

    if (client && !use(client))
        client = NULL;
    rlk_epoch_leave(look);
    return client;
}

/* Opens the default client, or starts one in a child, if necessary. client: what
 * get_at_once found. */
static __attribute__((noinline)) int get_or_start(uint64_t number,
                                                  struct rlock_client *client,
                                                  struct rlock_client **ret_client)
{
    int rc = 0;

    rlk_sync_mutex_lock(&mu);
    if (!client) {
        if (number == 0 && !default_client)
            rc = need_default_locked();
        client = find(number);
        if (rc == 0 && (!client || !use(client)))
            rc = rlk_error_set(EINVAL, "the client of this handle is closed");
        if (rc != 0)
            client = NULL;
    }
    if (client && !client->running) {
        rc = need_running_locked(client);
        if (rc != 0)
            rlk_client_put(client);
    }
    rlk_sync_mutex_unlock(&mu);
    if (rc == 0)
        *ret_client = client;
    return rc;
}

int rlk_client_get(uint64_t number, struct rlock_client **ret_client)
{
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    struct rlock_client *client = get_at_once(number);
    if (!client || !client->running)
        return get_or_start(number, client, ret_client);
    *ret_client = client;
    return 0;
}

int rlk_client_peek(uint64_t number, struct rlock_client **ret_client)
{
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    rlk_sync_mutex_lock(&mu);
    *ret_client = find(number);
    if (*ret_client && !use(*ret_client))
        *ret_client = NULL;
    rlk_sync_mutex_unlock(&mu);
    return 0;
}

int rlk_client_configure_default(struct rlk_config *config)
{
    struct rlk_client_default copy;

    memset(config, 0, sizeof(*config));
    rlk_sync_mutex_lock(&mu);
    int rc = rlk_client_default_copy(&copy, settings.url, settings.attr);
    rlk_sync_mutex_unlock(&mu);
    if (rc == 0) /* may read a file */
        rc = rlk_client_configure(config, copy.url, copy.attr);
    rlk_client_default_clear(&copy);
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
    struct rlk_epoch look = rlk_epoch_enter();
    bool kept = is_open(client) && use(client);

    rlk_epoch_leave(look);
    if (!kept) { /* the thread that closes it may find a lock held */
        rlk_sync_mutex_lock(&mu);
        kept = is_open(client) && use(client);
        rlk_sync_mutex_unlock(&mu);
    }
    return kept ? 0 : rlk_error_set(EINVAL, "the client is not open");
}

struct rlock_client *rlk_client_signal_begin(struct rlock_client *client,
                                             struct rlk_client_signal_call *ret_call)
{
    rlk_sync_signals_block(&ret_call->mask);
    ret_call->epoch = rlk_epoch_enter();
    return client ? client : atomic_load(&default_client);
}

void rlk_client_signal_end(const struct rlk_client_signal_call *call)
{
    rlk_epoch_leave(call->epoch);
    rlk_sync_signals_restore(&call->mask);
}

/* Waits for looks that may have found a client which is no longer in the table. Locks:
 * holds mu, and drops it while waiting. */
static void drain_looks_locked(void)
{
    while (draining)
        rlk_sync_cond_wait(&changed, &mu, RLK_NEVER);
    draining = true;
    rlk_sync_mutex_unlock(&mu);
    rlk_epoch_wait();
    rlk_sync_mutex_lock(&mu);
    draining = false;
    rlk_sync_cond_broadcast(&changed);
}

bool rlk_client_is_open(const struct rlock_client *client, uint64_t *ret_number)
{
    rlk_sync_mutex_lock(&mu);
    bool open = is_open(client);
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
    int nobody = 0;
    if (!is_open(client)) {
        rc = rlk_error_set(EINVAL, "the client is not open");
    } else if (!atomic_compare_exchange_strong(&client->users, &nobody, CLOSED)) {
        rc = rlk_error_set(EBUSY, "a thread is inside a call of the client");
    } else if (client->running) {
        /* CLOSED keeps new users out, so the registry's answer stays true. */
        rlk_sync_mutex_lock(&client->registry.mu);
        if (rlk_registry_busy_locked(&client->registry))
            rc = rlk_error_set(EBUSY, "a lock of the client is held or waited for");
        else /* retained holds are released; rlk_client_shut waits for that */
            rlk_handoff_end_all_locked(&client->registry, rlk_clock_boot());
        rlk_sync_mutex_unlock(&client->registry.mu);
        if (rc != 0)
            atomic_store(&client->users, 0);
    }
    if (rc == 0) {
        remove_locked(client);
        drain_looks_locked();
    }
    rlk_sync_mutex_unlock(&mu);
    if (rc == 0)
        rlk_client_shut(client);
    return rc;
}

int rlk_client_set_default(const char *url, const rlock_clientattr_t *attr)
{
    struct rlk_client_default wanted;
    struct rlk_config probe = { .url = NULL };
    int rc = rlk_client_check_process();

    if (rc != 0)
        return rc;
    /* An error of the first use is found here. */
    rc = rlk_client_configure(&probe, url, attr);
    rlk_url_config_clear(&probe);
    if (rc == 0)
        rc = rlk_client_default_copy(&wanted, url, attr);
    if (rc != 0)
        return rc;
    rlk_sync_mutex_lock(&mu);
    if (default_client || default_opening) {
        rc = rlk_error_set(EBUSY, "the default client is open already");
    } else {
        struct rlk_client_default old = settings;
        settings = wanted;
        wanted = old;
    }
    rlk_sync_mutex_unlock(&mu);
    rlk_client_default_clear(&wanted);
    return rc;
}
