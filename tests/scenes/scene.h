/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene for tests of locking: one server, a proxy in front of it, a plain connection,
 * clients in this process and in workers, and functions that inspect the data at the
 * server. Ids and tickets are text, as at the server. Thread: a test's main thread.
 */
#ifndef TEST_SCENE_H
#define TEST_SCENE_H

#include "proxy.h"
#include "redis.h"
#include "rundir.h"
#include "server.h"
#include "suite.h"
#include "wait.h"
#include "worker.h"

#include "net/script.h"

#include <check.h>
#include <rlock.h>

/* The type of lock that the program is built for (as_fair.h, as_rwlock.h): whether each
 * waiting thread has its own ticket at the server, the letter in ids, the mode of
 * holders, the option of a worker's init, and the last arguments of the acquire
 * script. */
#if defined(AS_RWLOCK)
enum { SCENE_IN_ORDER = 0 };
#define SCENE_LETTER "w"
#define SCENE_MODE "rlock:write"
#define SCENE_KIND " rwlock=1"
#define SCENE_ACQUIRE_MORE "16", "0", "0"
#elif defined(AS_FAIR)
enum { SCENE_IN_ORDER = 1 };
#define SCENE_LETTER "f"
#define SCENE_MODE "rlock:fair"
#define SCENE_KIND " fair=1"
#define SCENE_ACQUIRE_MORE "0"
#else
enum { SCENE_IN_ORDER = 0 };
#define SCENE_LETTER "m"
#define SCENE_MODE "rlock:mutex"
#define SCENE_KIND ""
#define SCENE_ACQUIRE_MORE NULL
#endif

enum {
    SCENE_ID_MAX = 128,
    SCENE_KEY_MAX = 256,
    SCENE_SOON_MS = 10000,
    SCENE_LEFT_MS = 1000
};

extern struct test_server scene_server;
extern struct test_redis *scene_redis; /* straight to the server */
extern struct test_proxy *scene_proxy;

/* Unchecked fixtures. */
void scene_start(void);
void scene_stop(void);
/* Checked fixtures. The server has the scripts and no data, the proxy has no rules. */
void scene_open(void);
void scene_close(void);

/* Adds a test case with these fixtures. A program's own `open` and `close` call
 * scene_open and scene_close. */
TCase *scene_tcase(Suite *suite, const char *name, void (*open)(void),
                   void (*close)(void));

/* ---- clients; times are in ms and not scaled, 0 is the default */

struct scene_times {
    long lease, presence, command;
};
#define SCENE_TIMES(...) (&(const struct scene_times){ __VA_ARGS__ })

/* Opens a client. Its mailbox is subscribed when this returns. */
rlock_client_t *scene_client(const char *url, const struct scene_times *times);
/* The same without waiting for the mailbox; needs no server. */
rlock_client_t *scene_open_client(const char *url, const struct scene_times *times);
/* A recursive handle of that client. */
void scene_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
void scene_fenced_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
void scene_robust_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
/* A read-write lock of that client. */
void scene_rwlock(rlock_rwlock_t *l, rlock_client_t *client, const char *name);

/* Starts a worker with a client and a handle "m" of the program's type of lock; `options`
 * are those of the worker's init, or "". When this returns, its mailbox is subscribed and
 * the worker has read the confirmation, so that the polls that follow a subscription are
 * over. */
void scene_worker(struct worker *w, const char *url, const struct scene_times *times,
                  const char *name, const char *options);
/* The same with variables for its environment, for instance "LD_PRELOAD=...". */
void scene_worker_env(struct worker *w, const char *url, const struct scene_times *times,
                      const char *name, const char *options, const char *const env[]);
/* worker_ask with a printf format; asserts that the answer begins with `wanted`. */
__attribute__((format(printf, 3, 4))) void
scene_says(struct worker *w, const char *wanted, const char *format, ...);
/* Begins `lock m` in the worker's thread t and waits until it is queued as the n-th. */
void scene_worker_waits(struct worker *w, const char *name, long n);
/* The same for `<verb> m` of a read-write lock: waits until the queue of readers or of
 * writers has one more. */
void scene_worker_queues(struct worker *w, const char *name, const char *verb);
/* Asserts that the worker gets the event LOST, and ESTALE from its unlock. */
void scene_worker_lost(struct worker *w, const char *name);
/* Asserts that `<verb> m` in its thread t is "ok". */
void scene_worker_does(struct worker *w, const char *verb);
/* Asserts that the worker holds the lock, for at most `ms` more: the time left at the
 * server. */
void scene_worker_has_no_more_than(struct worker *w, long long ms);
/* Asserts that the call of the worker's thread soon ends with this code. */
void scene_worker_ends(struct worker *w, const char *thread, const char *code);
/* The same within `ms`, unscaled. */
void scene_worker_ends_in(struct worker *w, const char *thread, const char *code,
                          long long ms);
/* Ends both workers and empties the server, for a test that must start again because the
 * machine was too slow for its times. */
void scene_anew(struct worker *a, struct worker *b);
/* A counter of its client: a field of rlock_stats_t. */
long long scene_stat(struct worker *w, const char *field);
/* Waits until the cancel of the worker's thread has reached the rule. A cancel may be
 * sent until 100 ms after the deadline of the call. False: the machine stood still for
 * that long and no cancel was sent; the thread has ended with ETIMEDOUT, and the test
 * must start again (scene_anew). */
bool scene_cancel_left(struct worker *w, const char *thread, int rule);
/* Whether the worker reports "done t ok" within `ms`. */
bool scene_worker_got(struct worker *w, long ms);

/* ---- the data at the server */

/* The key of a companion, for instance of "queue". */
const char *scene_key(char *buf, const char *name, const char *suffix);
/* The owner-died mark; "": none. Valid until the next call. */
const char *scene_mark(const char *name);
/* The id of the holder; false: the lock is free. */
bool scene_holder(const char *name, char id[SCENE_ID_MAX]);
/* The id of the only holder, a writer or a reader. Asserts that there is one. */
void scene_only_holder(const char *name, char id[SCENE_ID_MAX]);
/* Asserts that within SCENE_LEFT_MS the lock has neither holder nor waiter, and that none
 * appears: no hold is left behind. Leases are longer than that. */
void scene_nothing_is_left(const char *name);
/* The id and the ticket of the i-th waiter, from 0; false: there is none. */
bool scene_waiter(const char *name, long i, char id[SCENE_ID_MAX], char ticket[32]);
long long scene_pttl(const char *name);
long long scene_queue_len(const char *name);
/* The i-th member, from 0, of a companion that is a sorted set; the number of members. */
bool scene_member(const char *name, const char *suffix, long i, char id[SCENE_ID_MAX],
                  char score[32]);
long scene_count(const char *name, const char *suffix);
/* The end of a reader by the server's clock, in ms; 0: there is no such reader. The time
 * until then; negative: it has passed, or there is no such reader. */
long long scene_reader_end(const char *name, const char *id);
long long scene_reader_left(const char *name, const char *id);
/* The server's clock in ms. */
long long scene_now_ms(void);
void scene_wait_past(long long now_ms);
/* The client's part of an id. */
const char *scene_uuid(char *buf, const char *id);

bool scene_wait_queued(const char *name, long n, long ms);
bool scene_wait_count(const char *name, const char *suffix, long n, long ms);
bool scene_wait_free(const char *name, long ms);
bool scene_wait_held(const char *name, long ms);
/* Waits until `id` is no longer the holder. */
bool scene_wait_holder_gone(const char *name, const char *id, long ms);
/* Waits until at least n mailboxes have a subscriber. */
bool scene_wait_mailboxes(long n, long ms);

/* Makes another rlock client hold the lock for `ttl_ms`, by writing the keys. */
void scene_hold_by_hand(const char *name, long ttl_ms);
/* Releases that hold by the script, as its client would. */
void scene_release_by_hand(const char *name);

/* Runs a script with the keys of `name`, the layout number and these arguments. Returns
 * `what` of the first id, or the text of the error. */
const char *scene_call_argv(enum rlk_script_id script, const char *name,
                            const char *const argv[]);
#define scene_call(script, name, ...)                                                    \
    scene_call_argv((script), (name), TEST_ARGV(__VA_ARGS__))

/* The SHA of a script, for the proxy's rules. */
const char *scene_sha(enum rlk_script_id script);
/* Adds a rule about the requests of one script. */
#define SCENE_RULE(script_, ...)                                                         \
    TEST_RULE(scene_proxy, .contains = scene_sha(script_), __VA_ARGS__)
/* Holds the next request of a script. Lets it go and waits until the server has replied.
 * Drops the replies to the next `count` requests (0: to all). */
int scene_hold_first(enum rlk_script_id script);
void scene_let_go(int rule);
int scene_drop_replies(enum rlk_script_id script, unsigned count);

#endif
