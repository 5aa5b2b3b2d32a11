/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene for tests of the public functions: a server, a plain connection to it, up to
 * two clients, other threads, and recorded events. Unlike tests/helpers it uses the
 * library. Thread: a test's main thread, unless a comment says otherwise.
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
extern rlock_client_t *client; /* open in every test */
extern rlock_client_t *other;  /* the second client; NULL until fixture_other */

/* Unchecked fixture. */
void fixture_start(void);
void fixture_stop(void);

/* Loads all scripts into the server, so that each request is a single command. */
void fixture_load_scripts(void);
/* Checked fixture: an empty server and `client`. fixture_close asserts that no lock is
 * held. */
void fixture_open(void);
void fixture_close(void);
/* The same with a proxy and with the scripts loaded, but without a client. */
extern struct test_proxy *proxy;
void fixture_open_proxied(void);
void fixture_close_proxied(void);

/* Adds a test case with fixture_start and fixture_stop, and these checked fixtures. */
TCase *fixture_tcase(Suite *suite, const char *name, void (*open)(void),
                     void (*close)(void));

/* Opens a client that records its events; parameters: "" or "?lease=100&...". Its mailbox
 * is subscribed when this returns. */
rlock_client_t *open_with(const char *parameters);
/* The same at another URL, for instance a proxy's. */
rlock_client_t *open_at(const char *url, const char *parameters);
/* The same without waiting for anything. */
rlock_client_t *open_unseen(const char *url, const char *parameters);
/* Replaces `client` by one with these parameters. */
void reopen_with(const char *parameters);
void close_client(rlock_client_t *c);
/* `other`, which the first call opens. */
rlock_client_t *fixture_other(void);

/* Asserts that `rc` is `code`; a failure shows rlock_errmsg(). */
void expect(int rc, int code, const char *what, int line);
#define EXPECT(call, code) expect((call), (code), #call, __LINE__)
#define OK(call) expect((call), 0, #call, __LINE__)

/* Handles of client `c`: with default attributes, with a type (-1: the default), with
 * fencing. */
rlock_mutex_t mutex_of(rlock_client_t *c, const char *name);
rlock_mutex_t typed_mutex(rlock_client_t *c, const char *name, int type);
rlock_mutex_t fenced_mutex(rlock_client_t *c, const char *name);
int count_of(const rlock_mutex_t *m);
rlock_state_t state_of(const rlock_mutex_t *m);
uint64_t token_of(const rlock_mutex_t *m);
long remaining_of(const rlock_mutex_t *m);
rlock_stats_t stats_of(rlock_client_t *c);
/* A read-write lock of client `c`; with a preference (-1: the default) and with or
 * without fencing. */
rlock_rwlock_t rwlock_of(rlock_client_t *c, const char *name);
rlock_rwlock_t rwlock_with(rlock_client_t *c, const char *name, int kind, int fencing);

/* ---- other threads: they return results, and the main thread asserts */

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
/* Starts a task and joins it. */
int in_thread(int (*run)(void *arg), void *arg);

/* Functions for tasks and actors. The argument is a handle. */
int run_lock(void *mutex);
int run_unlock(void *mutex);
int run_trylock(void *mutex);
int run_pair(void *mutex); /* lock, unlock */

int run_rdlock(void *rwlock);
int run_wrlock(void *rwlock);
int run_rwunlock(void *rwlock);
/* The value that the function of this name reports, or minus its code. */
int run_rwstate(void *rwlock);
int run_rwholdcount(void *rwlock);
int run_rwremaining(void *rwlock);

/* A thread that runs one function after the other and holds its locks in between. */
struct actor {
    pthread_t thread;
    pthread_mutex_t mu;
    pthread_cond_t cond;
    int (*run)(void *arg); /* the current function; guarded by mu */
    void *arg;
    bool over;
    int rc;
};
void actor_start(struct actor *actor);
/* Begins a function. Call actor_rc or actor_done before the next one. */
void actor_begin(struct actor *actor, int (*run)(void *arg), void *arg);
/* False when the function still runs after test_ms(ms). */
bool actor_done(struct actor *actor, long ms);
/* The result of the function; asserts that it ends. */
int actor_rc(struct actor *actor);
/* actor_begin and actor_rc. */
int actor_does(struct actor *actor, int (*run)(void *arg), void *arg);
/* Ends the thread, whatever it holds. */
void actor_end(struct actor *actor);

/* Waits until n threads of the client wait. */
bool wait_waiters(rlock_client_t *c, unsigned long n);
/* The same for threads that wait for the lock "n" of another thread of the client: until
 * their places are fixed, which are at the server for a fair lock. */
bool wait_in_line(rlock_client_t *c, unsigned long n);
/* Waits until the sorted set has `size` members. */
bool wait_size(const char *key, int size);
/* Waits until the key exists, or no longer exists. */
bool wait_key(const char *key, bool there, long ms);

/* ---- events of the clients that the functions above open */

struct told {
    rlock_event_kind_t kind;
    rlock_type_t type;
    rlock_mode_t mode;
    char name[RLOCK_NAME_MAX + 1], reason[128];
    uint64_t token;
    pthread_t thread;
    long remaining_ms;
};
/* The next event of this kind, after the last one of this kind that was returned; NULL:
 * no such event within test_ms(ms). */
const struct told *event_of(rlock_event_kind_t kind, long ms);
bool event_seen(rlock_event_kind_t kind);

#endif
