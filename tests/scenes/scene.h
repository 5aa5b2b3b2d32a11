/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of locking share: one server, a proxy in front of it, a plain
 * connection, clients of the library in this process and in workers, and looks at what
 * the server holds. Ids and tickets are text, as the server has them. Thread: a test's
 * main thread.
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

/* Of the kind of lock that the program is built for (as_fair.h, as_rwlock.h): whether
 * each of its threads waits at the server, the letter in its ids, the mode of its
 * holders, the option by which a worker's init makes it, and the last arguments of its
 * acquire. */
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
/* Checked fixtures: the server is empty but for the scripts, the proxy has no rules. */
void scene_open(void);
void scene_close(void);

/* A test case of the suite with these fixtures; a test's own `open` and `close` call
 * those above. */
TCase *scene_tcase(Suite *suite, const char *name, void (*open)(void),
                   void (*close)(void));

/* ---- clients; times in ms as they are, 0: the default */

struct scene_times {
    long lease, presence, command;
};
#define SCENE_TIMES(...) (&(const struct scene_times){ __VA_ARGS__ })

/* Its mailbox is subscribed when this returns. */
rlock_client_t *scene_client(const char *url, const struct scene_times *times);
/* The same without waiting, so that no server is needed. */
rlock_client_t *scene_open_client(const char *url, const struct scene_times *times);
/* A handle of that client, recursive. */
void scene_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
void scene_fenced_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
void scene_robust_mutex(rlock_mutex_t *m, rlock_client_t *client, const char *name);
/* A read-write lock of that client. */
void scene_rwlock(rlock_rwlock_t *l, rlock_client_t *client, const char *name);

/* A worker with a client and a handle "m" of the program's kind; `options` as of the
 * worker's init, or "". Its mailbox is subscribed when this returns, and it has read so,
 * upon which it looks after all that it waits for: not later, then. */
void scene_worker(struct worker *w, const char *url, const struct scene_times *times,
                  const char *name, const char *options);
/* The same with variables for its environment, as "LD_PRELOAD=...". */
void scene_worker_env(struct worker *w, const char *url, const struct scene_times *times,
                      const char *name, const char *options, const char *const env[]);
/* worker_ask with printf's formats; fails the test unless the answer begins with
 * `wanted`. */
__attribute__((format(printf, 3, 4))) void
scene_says(struct worker *w, const char *wanted, const char *format, ...);
/* Begins `lock m` in the worker's thread t and waits until it is queued as the n-th. */
void scene_worker_waits(struct worker *w, const char *name, long n);
/* The same for `<verb> m` of a read-write lock: until one more is queued to read, or to
 * write. */
void scene_worker_queues(struct worker *w, const char *name, const char *verb);
/* It was told that it has lost the lock, and so is its unlock. */
void scene_worker_lost(struct worker *w, const char *name);
/* `<verb> m` in its thread t, which is "ok". */
void scene_worker_does(struct worker *w, const char *verb);
/* It says that the lock is its own, but not for longer than the server will have it so.
 */
void scene_worker_has_no_more_than(struct worker *w, long long ms);
/* What the worker's thread was told to do ends with this code, soon. */
void scene_worker_ends(struct worker *w, const char *thread, const char *code);
/* Both end, and the server is empty: a test whose times did not suffice begins anew. */
void scene_anew(struct worker *a, struct worker *b);
/* What its client has counted: a field of rlock_stats_t. */
long long scene_stat(struct worker *w, const char *field);
/* Waits until a cancel of the worker's thread has come to the rule. It has 100 ms beyond
 * the caller's deadline, also on a machine that stands still for so long; where they were
 * over before it could leave, there is none to be seen: false, and the thread has ended
 * with ETIMEDOUT. The test begins anew then. */
bool scene_cancel_left(struct worker *w, const char *thread, int rule);
/* The news "done t ok" within `ms`. */
bool scene_worker_got(struct worker *w, long ms);

/* ---- what the server holds */

/* The key of a companion, as "queue". */
const char *scene_key(char *buf, const char *name, const char *suffix);
/* The owner-died mark; "": there is none. Valid until the next call. */
const char *scene_mark(const char *name);
/* The holder's id; false: nobody holds it. */
bool scene_holder(const char *name, char id[SCENE_ID_MAX]);
/* The one id that holds it, to write or to read. */
void scene_only_holder(const char *name, char id[SCENE_ID_MAX]);
/* Nobody holds it or waits for it, SCENE_LEFT_MS from now at the latest, and nobody comes
 * to: no hold that nobody knows. Leases are longer. */
void scene_nothing_is_left(const char *name);
/* The id of the i-th waiter from 0, and its ticket; false: there is none. */
bool scene_waiter(const char *name, long i, char id[SCENE_ID_MAX], char ticket[32]);
long long scene_pttl(const char *name);
long long scene_queue_len(const char *name);
/* The i-th member, from 0, of a companion that is a sorted set; and how many there are.
 */
bool scene_member(const char *name, const char *suffix, long i, char id[SCENE_ID_MAX],
                  char score[32]);
long scene_count(const char *name, const char *suffix);
/* A reader's own end by the server's clock, in ms; 0: it is not there. What is left of
 * it; negative: it is over or not there. */
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
/* Until the holder is another than `id`, who may be nobody. */
bool scene_wait_holder_gone(const char *name, const char *id, long ms);
/* Until so many mailboxes or more are listened to. */
bool scene_wait_mailboxes(long n, long ms);

/* Holds the lock by hand, for `ttl_ms`, as another rlock client with the same kind of
 * lock. */
void scene_hold_by_hand(const char *name, long ttl_ms);
/* Releases it by the script, as its holder would. */
void scene_release_by_hand(const char *name);

/* Runs a script by hand with the keys of `name`; the layout number is put in front of the
 * arguments. Returns `what` of the first id, or the error's text. */
const char *scene_call_argv(enum rlk_script_id script, const char *name,
                            const char *const argv[]);
#define scene_call(script, name, ...)                                                    \
    scene_call_argv((script), (name), TEST_ARGV(__VA_ARGS__))

/* The SHA of a script, for the proxy's rules. */
const char *scene_sha(enum rlk_script_id script);
/* Adds a rule about the requests of one script. */
#define SCENE_RULE(script_, ...)                                                         \
    TEST_RULE(scene_proxy, .contains = scene_sha(script_), __VA_ARGS__)
/* Holds the next request of a script; lets it go, and waits until the server has answered
 * it; loses the replies to the next `count` (0: to all). */
int scene_hold_first(enum rlk_script_id script);
void scene_let_go(int rule);
int scene_drop_replies(enum rlk_script_id script, unsigned count);

#endif
