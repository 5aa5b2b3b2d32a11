/* SPDX-License-Identifier: Apache-2.0 */
/* A client: configuration, identity, registry, pool, and its parts of the library's
 * two threads. The composition root. Also the table of clients, in which handles find
 * their client. */
#ifndef RLK_CLIENT_H
#define RLK_CLIENT_H

#include "base/epoch.h"
#include "client/loop.h"
#include "client/route.h"
#include "crash/livefile.h"
#include "crash/peer_watch.h"
#include "net/url.h"
#include "state/registry.h"

#include <rlock.h>

struct rlk_heritage; /* client.c */

enum { RLK_CONN_NAME_SIZE = 256 };
#define RLK_CLIENT_NS_PER_MS INT64_C(1000000)

struct rlock_client {
    /* immutable after open, except the identity: a child has its own */
    uint64_t number; /* never reused in this process or its children */
    struct rlk_config config;
    char uuid[RLK_UUID_LEN + 1];
    char conn_name[RLK_CONN_NAME_SIZE];
    rlock_event_fn event_fn;
    void *event_arg;
    struct rlk_tls_store *tls_parent; /* in a forked child: the parent's; or NULL */

    struct rlk_registry registry;     /* has a mutex of its own */
    struct rlk_counters counters;     /* atomic */
    struct rlk_histogram round_trips; /* shared by all threads */
    _Atomic unsigned memory_refs; /* of the open client, lost holds, a running callback */
    _Atomic bool interrupted;

    /* changed with the table's mutex */
    struct rlock_client *_Atomic next; /* in the table */
    _Atomic int users;    /* calls under way; these are counted without the mutex */
    _Atomic bool running; /* false in a child that has not used the client yet: then only
                             the configuration is valid */
    bool starting;        /* a thread is starting it */
    struct rlk_heritage *heritage; /* memory for what a child finds here, while running */

    struct rlk_route route;                               /* with its servers */
    struct rlk_log_pace news_paces[RLK_HOLD_EVENT_KINDS]; /* of lines; the subscriber's */
    struct rlk_peer_watch peer_watch;                     /* the watchdog thread's */
    struct rlk_livefile livefile;                         /* the live file */
};

/* The work of rlock_client_open, _close and _setdefault (client NULL: the default
 * client). */
int rlk_client_open(struct rlock_client **ret_client, const char *url,
                    const rlock_clientattr_t *attr);
int rlk_client_close(struct rlock_client *client);
int rlk_client_set_default(const char *url, const rlock_clientattr_t *attr);

/* Sets the default values of attributes. */
void rlk_client_attr_init(rlock_clientattr_t *attr);

/* ---- the table. Locks: may take its mutex. */

/* Call before any state of the library is used: in a child, makes the state the
 * child's own. Returns 0, ENOMEM or EAGAIN. */
int rlk_client_check_process(void);

/* The client of a hold cannot be closed until rlk_client_put. EINVAL: it is closed
 * already. */
int rlk_client_keep(struct rlock_client *client);

/* The client of a handle, which cannot be closed until rlk_client_put. Number 0 is the
 * default client and is opened if necessary; a child's client is started. Returns 0,
 * EINVAL (closed), or the code of opening. */
int rlk_client_get(uint64_t number, struct rlock_client **ret_client);
/* As rlk_client_get, by pointer; NULL: the default client. EINVAL: no such client. */
int rlk_client_get_pointer(const struct rlock_client *client,
                           struct rlock_client **ret_client);
/* As rlk_client_get, but neither opens nor starts the client: *ret_client is then
 * NULL. */
int rlk_client_peek(uint64_t number, struct rlock_client **ret_client);
int rlk_client_peek_pointer(const struct rlock_client *client,
                            struct rlock_client **ret_client);
void rlk_client_put(struct rlock_client *client);
/* The type of mutexes without a type of their own: RLOCK_MUTEX_*. For a default client
 * that is not open, the type that it would have; does not open it. */
int rlk_client_mutex_type(uint64_t number);
/* The configuration with which the default client would be opened; clear it, also on
 * failure. Returns 0, EINVAL, ENOTSUP, ENOMEM, EMFILE or ENFILE. Blocks: may read
 * files. */
int rlk_client_configure_default(struct rlk_config *config);
enum { RLK_CLIENT_SKEW_PARTS = 6 /* of a lease: maxskew is less than one of them */ };
/* Says that the client's maxskew is too great for this lease. Returns EINVAL. */
int rlk_client_bad_lease(const struct rlock_client *client, long lease_ms);
/* Whether a lock of this client may have this lease: 0, or EINVAL with the thread's
 * message. */
static inline int rlk_client_check_lease(const struct rlock_client *client, long lease_ms)
{
    const struct rlk_config *config = &client->config;

    /* rule: P17 */
    if (config->skew_is_initial || config->max_skew_ms * RLK_CLIENT_SKEW_PARTS < lease_ms)
        return 0;
    return rlk_client_bad_lease(client, lease_ms);
}

/* For a call from a signal handler: `client`, or for NULL the default client, or NULL
 * if that is not open. Until rlk_client_signal_end the client is not closed, and the
 * thread runs no other signal handler, which might fork: the child would go on with
 * what it read in the parent. Async-signal-safe. */
struct rlk_client_signal_call {
    sigset_t mask; /* the thread's previous mask */
    struct rlk_epoch epoch;
};
struct rlock_client *rlk_client_signal_begin(struct rlock_client *client,
                                             struct rlk_client_signal_call *ret_call);
void rlk_client_signal_end(const struct rlk_client_signal_call *call);
bool rlk_client_is_open(const struct rlock_client *client, uint64_t *ret_number);

/* The memory of a client outlives its close while lost holds refer to it. */
void rlk_client_retain(struct rlock_client *client);
void rlk_client_release(struct rlock_client *client);

/* Notes that the server answered at `now` a request that left at `sent`. */
static inline void rlk_client_answered(struct rlock_client *client, int64_t sent,
                                       int64_t now)
{
    rlk_histogram_add_shared(&client->round_trips, now - sent);
    atomic_store_explicit(&client->registry.heard_at, now, memory_order_relaxed);
}

#define RLK_CLIENT_OF(reg) RLK_CONTAINER_OF(reg, struct rlock_client, registry)

/* Whether the client cannot reach its server any more, because exit() has ended the use
 * of OpenSSL. Then the two threads skip the client, so that the program gets no events
 * while it exits. */
static inline bool rlk_client_is_over(const struct rlock_client *client)
{
    return client->config.endpoint.tls_store && rlk_tls_ended();
}

/* Whether scripts may use sharded channels (P21). */
static inline bool rlk_client_is_sharded(const struct rlock_client *client)
{
    return atomic_load_explicit(&client->route.sharded, memory_order_relaxed);
}

static inline int64_t rlk_client_command_timeout(const struct rlock_client *client)
{
    return client->config.command_timeout_ms * RLK_CLIENT_NS_PER_MS;
}

/* The lifetime of a marker: longer than every request that may still be on its way
 * (T3). */
static inline int64_t rlk_client_marker_ms(const struct rlock_client *client)
{
    /* The clock offset, from which not-after is computed, may be late by the time of a
     * handshake. */
    return 2 * (int64_t)client->config.command_timeout_ms +
           client->config.connect_timeout_ms + 1000;
}

#endif
