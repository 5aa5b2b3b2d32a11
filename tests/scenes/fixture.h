/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the public functions share: a server, a plain connection to it, two
 * clients, other threads, recorded events. Helpers of tests/helpers use nothing of the
 * library; these do.
 */
#ifndef TEST_FIXTURE_H
#define TEST_FIXTURE_H

#include "proxy.h"
#include "redis.h"
#include "rundir.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <rlock.h>
#include <stdatomic.h>
#include <stdbool.h>

extern struct test_server server;
extern struct test_redis *redis;
extern rlock_client_t *client; /* of every test */
extern rlock_client_t *other;  /* another party; NULL until fixture_other */

/* Unchecked fixture. */
void fixture_start(void);
void fixture_stop(void);

/* Loads all scripts into the server, so that each request is one command. */
void fixture_load_scripts(void);
/* Checked fixture: an empty server and `client`. The end expects that nothing is held. */
void fixture_open(void);
void fixture_close(void);
/* The same with a proxy and the scripts loaded, but no client yet. */
extern struct test_proxy *proxy;
void fixture_open_proxied(void);
void fixture_close_proxied(void);

/* Opens another client with the fixture's event callback: "" or "?lease=100&...". Its
 * mailbox is subscribed when this returns. */
rlock_client_t *open_with(const char *parameters);
/* The same at another address, as a proxy's. */
rlock_client_t *open_at(const char *url, const char *parameters);
/* Replaces `client` by one with these parameters. */
void reopen_with(const char *parameters);
void close_client(rlock_client_t *c);
/* Makes `other` if need be. */
rlock_client_t *fixture_other(void);

/* Asserts that `rc` is `code`; on failure shows what the library said. */
void expect(int rc, int code, const char *what, int line);
#define EXPECT(call, code) expect((call), (code), #call, __LINE__)
#define OK(call) expect((call), 0, #call, __LINE__)

/* A handle of client `c` with default attributes but the type (-1: untouched). */
rlock_mutex_t mutex_of(rlock_client_t *c, const char *name);
rlock_mutex_t typed_mutex(rlock_client_t *c, const char *name, int type);
rlock_mutex_t fenced_mutex(rlock_client_t *c, const char *name);
int count_of(const rlock_mutex_t *m);
rlock_state_t state_of(const rlock_mutex_t *m);
uint64_t token_of(const rlock_mutex_t *m);
long remaining_of(const rlock_mutex_t *m);
rlock_stats_t stats_of(rlock_client_t *c);
/* A read-write lock of client `c`; of another kind (-1: untouched), with fencing or not.
 */
rlock_rwlock_t rwlock_of(rlock_client_t *c, const char *name);
rlock_rwlock_t rwlock_with(rlock_client_t *c, const char *name, int kind, int fencing);

/* ---- other threads: they return results, the main thread asserts */

struct task {
    pthread_t thread;
    int (*run)(void *arg);
    void *arg;
    atomic_bool done;
    int rc;
};
void task_start(struct task *task, int (*run)(void *arg), void *arg);
/* False when it has not ended within test_ms(ms). */
bool task_ends(struct task *task, long ms);
int task_join(struct task *task);
/* Starts, joins. */
int in_thread(int (*run)(void *arg), void *arg);

/* For these: the argument is a handle. */
int run_lock(void *mutex);
int run_unlock(void *mutex);
int run_trylock(void *mutex);
int run_pair(void *mutex); /* lock, unlock */

int run_rdlock(void *rwlock);
int run_wrlock(void *rwlock);
int run_rwunlock(void *rwlock);
/* For these, too: what the functions of these names tell, or minus the code. */
int run_rwstate(void *rwlock);
int run_rwholdcount(void *rwlock);
int run_rwremaining(void *rwlock);

/* A thread that does one thing after the other, and keeps what it holds in between. */
struct actor {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    int (*run)(void *arg); /* what it is doing; guarded by mu */
    void *arg;
    bool over;
    int rc;
};
void actor_start(struct actor *actor);
/* One thing after the other: actor_rc, or actor_done, before the next. */
void actor_begin(struct actor *actor, int (*run)(void *arg), void *arg);
/* False when it is still at it after test_ms(ms). */
bool actor_done(struct actor *actor, long ms);
/* What it came to; asserts that it comes to an end. */
int actor_rc(struct actor *actor);
/* Both. */
int actor_does(struct actor *actor, int (*run)(void *arg), void *arg);
/* Its thread ends, as it is. */
void actor_end(struct actor *actor);

/* Waits until so many threads of the client wait. */
bool wait_waiters(rlock_client_t *c, unsigned long n);
/* The same for threads that wait for "n", which another thread of the client holds: until
 * their places are fixed. Those of a fair lock have them at the server. */
bool wait_in_line(rlock_client_t *c, unsigned long n);
/* Waits until the sorted set has so many members. */
bool wait_size(const char *key, int size);
/* Waits until the key is there, or not. */
bool wait_key(const char *key, bool there, long ms);

/* ---- events of clients opened by the functions above */

struct told {
    rlock_event_kind_t kind;
    rlock_type_t type;
    rlock_mode_t mode;
    char name[RLOCK_NAME_MAX + 1], reason[128];
    uint64_t token;
    pthread_t thread;
    long remaining_ms;
};
/* The next event of this kind since the test began or since the last one of this kind
 * that was returned; NULL: none within test_ms(ms). */
const struct told *event_of(rlock_event_kind_t kind, long ms);
bool event_seen(rlock_event_kind_t kind);

#endif
