/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G8 */
/*
 * The intents in a client's live file (rules G7, G8): what other processes find if the
 * client dies at that moment. A proxy holds a request that has been sent and is not
 * answered, and meanwhile the test reads the file. `m` and the like are handles of
 * `client`, `theirs` is a handle of `other`.
 */
#include "client/client.h" /* before the fixture, which has a variable of that name */

#include "fixture.h"

#include "livefile_view.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SOON_MS = 10000,
    LONG_MS = 120000,
    PAIRS = 2000,
    MANY = 5000,
    RETAIN_MS = 60000,
    CROWD_MS = 1000
};
#define DIRTY "rlock:{n}:dirty"

static struct livefile_view file;
static struct actor a, b;
static rlock_mutex_t m, robust, fenced, theirs;
static rlock_fair_t fair;
static rlock_rwlock_t rw;

static unsigned inside_of(unsigned i)
{
    struct rlk_intent slot = livefile_view_intent(&file, i);
    return slot.inside;
}

static rlock_mutex_t robust_mutex(rlock_client_t *c)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    return mutex;
}

static void make_handles(void)
{
    rlock_mutexattr_t attr;
    m = mutex_of(client, "n");
    robust = robust_mutex(client);
    fenced = fenced_mutex(client, "n");
    rw = rwlock_with(client, "n", RLOCK_RWLOCK_PREFER_WRITER_NP, 0);
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_fair_init(&fair, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    livefile_view_open(&file, getenv("RLOCK_RUNDIR"), client->uuid);
}

static void open_client(const char *parameters)
{
    char all[160];
    if (client) {
        close_client(client);
        livefile_view_close(&file);
    }
    snprintf(all, sizeof(all), "?lease=%ld%s", test_ms(LONG_MS), parameters);
    client = open_at(test_proxy_url(proxy), all);
    make_handles();
}

static void set_up(void)
{
    test_rundir_own();
    fixture_open_proxied();
    open_client("");
    other = open_with("");
    theirs = mutex_of(other, "n");
    actor_start(&a);
    actor_start(&b);
}

static void tear_down(void)
{
    test_proxy_remove_all(proxy);
    actor_end(&a);
    actor_end(&b);
    ck_assert(livefile_view_wait(&file, "n", -1));
    fixture_close_proxied();
    livefile_view_close(&file);
}

/* Holds all later requests of this script. */
static int hold_requests(enum rlk_script_id script)
{
    return TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                     .contains = rlk_scripts[script].sha);
}

static void wait_held(int rule)
{
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
}

static void assert_inside(int wanted, int at)
{
    int inside = livefile_view_inside(&file, "n");
    ck_assert_msg(inside == wanted, "line %d: inside is %d, not %d", at, inside, wanted);
}
/* -1: there is no intent. */
#define INSIDE(wanted) assert_inside((wanted), __LINE__)

/* ---- when there is an intent, and what it says */

static int lock_fair(void *arg)
{
    return rlock_fair_lock(arg);
}

static int unlock_fair(void *arg)
{
    return rlock_fair_unlock(arg);
}

static const struct {
    void *handle;
    int (*lock)(void *arg), (*unlock)(void *arg);
    int acquire, release; /* enum rlk_script_id */
    int kind;
    const char *id_end; /* the id after thread and acquisition; presence is 3000 */
} rows[] = {
    { &m, run_lock, run_unlock, RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE, RLK_KIND_MUTEX,
      ":m3000" },
    { &m, run_trylock, run_unlock, RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE, RLK_KIND_MUTEX,
      ":m3000" },
    { &robust, run_lock, run_unlock, RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE, RLK_KIND_MUTEX,
      ":m3000b" },
    { &fenced, run_lock, run_unlock, RLK_MUTEX_ACQUIRE, RLK_MUTEX_RELEASE, RLK_KIND_MUTEX,
      ":M3000" },
    { &fair, lock_fair, unlock_fair, RLK_FAIR_ACQUIRE, RLK_FAIR_RELEASE, RLK_KIND_FAIR,
      ":f3000" },
    { &rw, run_wrlock, run_rwunlock, RLK_RWLOCK_WRITE, RLK_RWLOCK_RELEASE,
      RLK_KIND_RWLOCK, ":w3000" },
    { &rw, run_rdlock, run_rwunlock, RLK_RWLOCK_READ, RLK_RWLOCK_RELEASE, RLK_KIND_RWLOCK,
      ":r3000" },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The holder's id at the server. */
static const char *holder(void)
{
    static char id[RLK_ID_SIZE];
    const redisReply *r = test_redis_do(redis, "ZRANGE", "rlock:{n}:readers", "0", "0");
    if (r->elements == 0)
        r = test_redis_do(redis, "HKEYS", "n");
    id[0] = '\0';
    for (size_t i = 0; i < r->elements; i++)
        if (strncmp(r->element[i]->str, client->uuid, RLK_UUID_LEN) == 0)
            snprintf(id, sizeof(id), "%s", r->element[i]->str);
    ck_assert_str_ne(id, "");
    return id;
}

static const char *id_in_slot(void)
{
    static char text[RLK_ID_SIZE];
    struct rlk_intent slot = livefile_view_intent_of(&file, "n");
    struct rlk_id id = { .thread = slot.thread,
                         .acquisition = slot.acquisition,
                         .grant_ms = slot.grant_ms,
                         .letter = (char)slot.letter };
    memcpy(id.flags, slot.flags, sizeof(id.flags));
    rlk_id_write(text, client->uuid, &id);
    return text;
}

/* rule: G7 */
START_TEST(intent_is_written_before_the_acquire_is_sent)
{
    int rule = hold_requests((enum rlk_script_id)rows[_i].acquire);
    INSIDE(-1);
    actor_begin(&a, rows[_i].lock, rows[_i].handle);
    wait_held(rule);
    INSIDE(RLK_INSIDE_NEVER);
    test_proxy_remove(proxy, rule);
    OK(actor_rc(&a));
    INSIDE(RLK_INSIDE);
    struct rlk_intent slot = livefile_view_intent_of(&file, "n");
    ck_assert_int_eq(slot.kind, rows[_i].kind);
    ck_assert_uint_eq(slot.name_len, 1);
    if (slot.kind == RLK_KIND_RWLOCK)
        ck_assert_uint_eq(slot.prefer, RLOCK_RWLOCK_PREFER_WRITER_NP);
    ck_assert_str_eq(id_in_slot(), holder());
    const char *end = strrchr(holder(), ':');
    ck_assert_str_eq(end, rows[_i].id_end);
    OK(actor_does(&a, rows[_i].unlock, rows[_i].handle));
}
END_TEST

/* rule: G7 */
START_TEST(intent_stays_until_the_release_is_confirmed)
{
    int rule = hold_requests((enum rlk_script_id)rows[_i].release);
    OK(actor_does(&a, rows[_i].lock, rows[_i].handle));
    actor_begin(&a, rows[_i].unlock, rows[_i].handle);
    wait_held(rule);
    INSIDE(RLK_INSIDE_LEFT);
    test_proxy_remove(proxy, rule);
    OK(actor_rc(&a));
    INSIDE(-1);
    ck_assert_uint_eq(livefile_view_used(&file), 0);
}
END_TEST

static int lock_for_a_moment(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(100));
    return rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at);
}

START_TEST(failed_acquire_leaves_no_intent)
{
    OK(rlock_mutex_lock(&theirs));
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    INSIDE(-1);
    EXPECT(lock_for_a_moment(&m), ETIMEDOUT);
    ck_assert(livefile_view_wait(&file, "n", -1)); /* the cancel may have been late */
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(100));
    EXPECT(rlock_waitfree(client, "n", &at), ETIMEDOUT);
    ck_assert_uint_eq(livefile_view_used(&file), 0);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* rule: G7 */
START_TEST(intent_stays_until_the_cancel_is_confirmed)
{
    int rule = hold_requests(RLK_MUTEX_CANCEL);
    /* a thread that is delayed for 100 ms leaves the cancel to the watchdog, which
     * releases */
    int releases = hold_requests(RLK_MUTEX_RELEASE);
    OK(rlock_mutex_lock(&theirs));
    EXPECT(actor_does(&a, lock_for_a_moment, &m), ETIMEDOUT);
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    while (test_proxy_hits(proxy, rule) == 0 && test_proxy_hits(proxy, releases) == 0) {
        ck_assert_int_lt(test_now_ms(), end);
        test_pause_ms(1);
    }
    INSIDE(RLK_INSIDE_NEVER);
    test_proxy_remove(proxy, rule);
    test_proxy_remove(proxy, releases);
    ck_assert(livefile_view_wait(&file, "n", -1));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* The server has marked the next id as cancelled, so the lock is taken with the id after
 * it. */
START_TEST(renamed_id_is_renamed_in_its_intent)
{
    char next[RLK_ID_SIZE], uuid[RLK_UUID_LEN + 1], until[32];
    struct rlk_id id;

    OK(actor_does(&a, run_lock, &m));
    snprintf(uuid, sizeof(uuid), "%s", client->uuid);
    const char *now = holder();
    ck_assert(rlk_id_parse(&id, uuid, now, strlen(now)));
    OK(actor_does(&a, run_unlock, &m));
    id.acquisition++;
    rlk_id_write(next, uuid, &id);
    long long seconds =
        test_redis_int(redis, "EVAL", "return tonumber(redis.call('TIME')[1])", "0");
    snprintf(until, sizeof(until), "%lld000", seconds + 3600);
    test_redis_do(redis, "ZADD", "rlock:{n}:cancelled", until, next);
    OK(actor_does(&a, run_lock, &m));
    ck_assert_str_eq(id_in_slot(), holder());
    ck_assert_str_ne(id_in_slot(), next);
    INSIDE(RLK_INSIDE);
    ck_assert_uint_eq(livefile_view_used(&file), 1);
    OK(actor_does(&a, run_unlock, &m));
}
END_TEST

static int extend(void *rwlock)
{
    return rlock_rwlock_extend(rwlock, test_ms(LONG_MS));
}

START_TEST(readers_that_share_an_id_have_one_intent)
{
    OK(actor_does(&a, run_rdlock, &rw));
    OK(actor_does(&b, run_rdlock, &rw));
    ck_assert_uint_eq(livefile_view_used(&file), 1);
    INSIDE(RLK_INSIDE);
    OK(actor_does(&a, extend, &rw)); /* by an id of its own from now on */
    ck_assert_uint_eq(livefile_view_used(&file), 2);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(inside_of(i), RLK_INSIDE);
    OK(actor_does(&a, run_rwunlock, &rw));
    INSIDE(RLK_INSIDE);
    OK(actor_does(&b, run_rwunlock, &rw));
    ck_assert_uint_eq(livefile_view_used(&file), 0);
}
END_TEST

/* ---- a full intent table */

static rlock_mutex_t *locks;
static bool seen[MANY];

static void lock_nth(int i)
{
    char name[32];
    snprintf(name, sizeof(name), "many%d", i);
    locks[i] = mutex_of(client, name);
    OK(rlock_mutex_lock(&locks[i]));
}

/* Counts the intents, and notes their names. Each name is in the table at most once. */
static unsigned look_at_all(void)
{
    unsigned count = 0;
    memset(seen, 0, sizeof(seen));
    for (unsigned i = 0; i < RLK_SLOTS_MAX + 64; i++) {
        struct rlk_intent slot = livefile_view_intent(&file, i);
        int n;
        if (slot.state != RLK_SLOT_VALID)
            continue;
        ck_assert_int_eq(sscanf(slot.name, "many%d", &n), 1);
        ck_assert(n >= 0 && n < MANY && !seen[n]);
        ck_assert_uint_eq(slot.inside, RLK_INSIDE);
        seen[n] = true;
        count++;
    }
    return count;
}

static long memory(void)
{
    struct stat st;
    ck_assert_int_eq(fstat(file.fd, &st), 0);
    return (long)st.st_blocks * 512;
}

static void start_many(void)
{
    close_client(client);
    livefile_view_close(&file);
    client = open_with("?lease=600000"); /* without the proxy, for speed */
    make_handles();
    locks = calloc(MANY, sizeof(*locks));
    ck_assert_ptr_nonnull(locks);
}

START_TEST(intents_are_allocated_as_needed)
{
    const long page = 4096, slot = sizeof(struct rlk_intent);
    start_many();
    ck_assert_int_le(memory(), RLK_LIVEFILE_HEADER + RLK_SLOTS_FIRST * slot + page);
    for (int i = 0; i < 3 * RLK_SLOTS_FIRST; i++)
        lock_nth(i);
    ck_assert_uint_eq(look_at_all(), 3 * RLK_SLOTS_FIRST);
    ck_assert_int_ge(memory(), RLK_LIVEFILE_HEADER + 3 * RLK_SLOTS_FIRST * slot);
    ck_assert_int_lt(memory(), RLK_LIVEFILE_HEADER + RLK_SLOTS_MAX * slot / 2);
    for (int i = 0; i < 3 * RLK_SLOTS_FIRST; i++)
        OK(rlock_mutex_unlock(&locks[i]));
    ck_assert_uint_eq(look_at_all(), 0);
    free(locks);
}
END_TEST

START_TEST(lock_works_without_an_intent)
{
    if (test_ms(1) >= 10 && !test_is_full()) {
        printf("skipped: lock_works_without_an_intent: Valgrind is too slow\n");
        return;
    }
    start_many();
    int last = MANY - 2;
    for (int i = 0; i < last; i++)
        lock_nth(i);
    ck_assert_uint_eq(look_at_all(), RLK_SLOTS_MAX);
    for (int i = 0; i < RLK_SLOTS_MAX; i++)
        ck_assert_msg(seen[i], "%d has no intent", i);
    ck_assert_int_eq(state_of(&locks[last - 1]), RLOCK_SAFE);
    ck_assert(test_redis_exists(redis, "many4997"));
    OK(rlock_mutex_unlock(&locks[last - 1])); /* it had no intent */
    ck_assert(!test_redis_exists(redis, "many4997"));
    ck_assert_uint_eq(look_at_all(), RLK_SLOTS_MAX);
    /* a free intent is used again */
    OK(rlock_mutex_unlock(&locks[100]));
    OK(rlock_mutex_unlock(&locks[4000]));
    ck_assert_uint_eq(look_at_all(), RLK_SLOTS_MAX - 2);
    for (int i = last; i < MANY; i++)
        lock_nth(i);
    ck_assert_uint_eq(look_at_all(), RLK_SLOTS_MAX);
    ck_assert(seen[last] && seen[last + 1]);
    for (int i = 0; i < MANY; i++)
        if (i != 100 && i != 4000 && i != last - 1)
            OK(rlock_mutex_unlock(&locks[i]));
    ck_assert_uint_eq(look_at_all(), 0);
    free(locks);
}
END_TEST

/* ---- whether a thread is inside (G8) */

/* rule: G8 */
START_TEST(intent_says_inside_until_the_outermost_unlock)
{
    for (int i = 0; i < 3; i++) {
        OK(rlock_mutex_lock(&m));
        INSIDE(RLK_INSIDE);
    }
    for (int i = 0; i < 2; i++) {
        OK(rlock_mutex_unlock(&m));
        INSIDE(RLK_INSIDE);
    }
    OK(rlock_mutex_unlock(&m));
    INSIDE(-1);
}
END_TEST

static bool is_kept(void *arg)
{
    (void)arg;
    OK(rlock_mutex_lock(&robust));
    OK(rlock_mutex_unlock(&robust));
    return livefile_view_inside(&file, "n") == RLK_INSIDE_LEFT;
}

/* By the fast path, as soon as it is open: without the server. */
/* rule: G8 */
START_TEST(retained_hold_is_inside_only_between_lock_and_unlock)
{
    open_client("&retain=60000&presence=30000");
    ck_assert(test_wait_until(is_kept, NULL, SOON_MS));
    rlock_stats_t before = stats_of(client);
    for (int i = 0; i < PAIRS; i++) {
        OK(i % 2 ? rlock_mutex_trylock(&robust) : rlock_mutex_lock(&robust));
        ck_assert_uint_eq(inside_of(0), RLK_INSIDE);
        OK(rlock_mutex_unlock(&robust));
        ck_assert_uint_eq(inside_of(0), RLK_INSIDE_LEFT);
    }
    rlock_stats_t after = stats_of(client);
    ck_assert_uint_eq(after.local_handovers - before.local_handovers, PAIRS);
    ck_assert_uint_lt(after.round_trips - before.round_trips, PAIRS / 4);
    INSIDE(RLK_INSIDE_LEFT);
    OK(rlock_mutex_lock(&robust)); /* re-entry */
    OK(rlock_mutex_lock(&robust));
    OK(rlock_mutex_unlock(&robust));
    INSIDE(RLK_INSIDE);
    OK(rlock_mutex_unlock(&robust));
    INSIDE(RLK_INSIDE_LEFT);
    struct task task;
    int rule = hold_requests(RLK_MUTEX_RELEASE);
    task_start(&task, run_pair, &theirs); /* another client wants it */
    wait_held(rule);
    INSIDE(RLK_INSIDE_LEFT);
    test_proxy_remove(proxy, rule);
    OK(task_join(&task));
    ck_assert(livefile_view_wait(&file, "n", -1));
}
END_TEST

static bool is_clean(void *arg)
{
    (void)arg;
    return !test_redis_exists(redis, DIRTY);
}

/* After a while the server takes a retained hold for unused (K11). It has to learn of a
 * critical section before the file does, otherwise a death in between would not count as
 * the death of an owner. */
/* rule: G8 */
START_TEST(long_retained_hold_is_inside_once_the_server_knows)
{
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "&retain=60000&presence=%ld", test_ms(600));
    open_client(parameters);
    ck_assert(test_wait_until(is_kept, NULL, SOON_MS));
    ck_assert(test_wait_until(is_clean, NULL, SOON_MS));
    INSIDE(RLK_INSIDE_LEFT);
    int rule = hold_requests(RLK_MUTEX_RENEW);
    actor_begin(&a, run_lock, &robust);
    wait_held(rule);
    INSIDE(RLK_INSIDE_LEFT);
    test_proxy_remove(proxy, rule);
    OK(actor_rc(&a));
    INSIDE(RLK_INSIDE);
    ck_assert(test_redis_exists(redis, DIRTY));
    OK(actor_does(&a, run_unlock, &robust));
    INSIDE(RLK_INSIDE_LEFT);
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* The hold goes to another thread of the process, without the server: now that thread is
 * inside. */
/* rule: G8 */
START_TEST(thread_that_is_handed_a_hold_is_inside)
{
    struct actor *in = &a, *next = &b;
    open_client("&handoffms=60000&handoffcount=1000000");
    OK(actor_does(in, run_lock, &robust));
    rlock_stats_t before = stats_of(client);
    for (int i = 0; i < 20; i++) {
        actor_begin(next, run_lock, &robust);
        ck_assert(wait_waiters(client, 1));
        if (i % 2)
            test_pause_ms(2); /* a long waiter is handed it, others take it */
        OK(actor_does(in, run_unlock, &robust));
        OK(actor_rc(next));
        INSIDE(RLK_INSIDE);
        struct actor *was = in;
        in = next;
        next = was;
    }
    ck_assert_uint_eq(livefile_view_used(&file), 1);
    ck_assert_uint_gt(stats_of(client).local_handovers, before.local_handovers);
    OK(actor_does(in, run_unlock, &robust));
    INSIDE(-1);
}
END_TEST

static int caught[2]; /* a pipe: a byte written to it ends the handler */

static void stay_in_handler(int signal)
{
    char byte;
    (void)signal;
    while (read(caught[0], &byte, 1) != 1)
        continue;
}

/* The hold is handed over while a signal handler keeps the next thread, which might die
 * there. */
/* rule: G8 */
START_TEST(thread_that_declines_a_handed_hold_is_not_inside)
{
    struct sigaction action = { .sa_handler = stay_in_handler };
    open_client("&handoffms=60000&handoffcount=1000000");
    ck_assert_int_eq(pipe(caught), 0);
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    OK(actor_does(&a, run_lock, &robust));
    rlock_stats_t before = stats_of(client);
    actor_begin(&b, run_lock, &robust);
    ck_assert(wait_waiters(client, 1));
    test_pause_ms(2); /* a long waiter is handed the hold */
    INSIDE(RLK_INSIDE);
    ck_assert_int_eq(pthread_kill(b.thread, SIGUSR1), 0);
    OK(actor_does(&a, run_unlock, &robust));
    INSIDE(RLK_INSIDE_LEFT);
    ck_assert_int_eq(write(caught[1], "x", 1), 1);
    OK(actor_rc(&b));
    INSIDE(RLK_INSIDE);
    ck_assert_uint_gt(stats_of(client).local_handovers, before.local_handovers);
    OK(actor_does(&b, run_unlock, &robust));
    close(caught[0]);
    close(caught[1]);
}
END_TEST

static int run_consistent(void *mutex)
{
    return rlock_mutex_consistent(mutex);
}

/* Reads the intents like a process that found this one dead now. */
static bool somebody_is_inside(void)
{
    const struct rlk_intent *table = client->registry.slots.table;
    for (int i = 0; i < RLK_SLOTS_FIRST; i++)
        if (table[i].state == RLK_SLOT_VALID && table[i].inside == RLK_INSIDE)
            return true;
    return false;
}

static int crowd(void *mutex)
{
    int64_t end = test_now_ms() + CROWD_MS;
    int unsaid = 0;

    while (test_now_ms() < end) {
        if (rlock_mutex_lock(mutex) != 0)
            return -1;
        unsaid += !somebody_is_inside();
        if (rlock_mutex_unlock(mutex) != 0)
            return -1;
    }
    return unsaid;
}

/* One thread leaves by the fast path while another one comes, and then hands the hold to
 * a third one that has slept for long: this happens once in some thousands of pairs. */
/* rule: G8 */
START_TEST(each_of_many_threads_is_recorded_as_inside)
{
    enum { THREADS = 2 };
    struct task tasks[THREADS];
    open_client("&handoffms=60000&handoffcount=1000000");
    for (int i = 0; i < THREADS; i++)
        task_start(&tasks[i], crowd, &robust);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(task_join(&tasks[i]), 0);
}
END_TEST

/* What the lock protects is as the dead owner left it, until the next holder makes it
 * consistent. */
/* rule: G8 */
START_TEST(holder_with_EOWNERDEAD_is_inside_until_it_makes_the_lock_consistent)
{
    rlock_mutex_t their_robust = robust_mutex(other);
    OK(rlock_mutex_lock(&their_robust));
    test_redis_do(redis, "DEL", "n"); /* as if the holder had died */
    EXPECT(actor_does(&a, run_lock, &robust), EOWNERDEAD);
    INSIDE(RLK_INSIDE);
    if (_i == 1)
        OK(actor_does(&a, run_consistent, &robust));
    INSIDE(RLK_INSIDE);
    int rule = hold_requests(RLK_MUTEX_RELEASE);
    actor_begin(&a, run_unlock, &robust);
    wait_held(rule);
    INSIDE(_i == 1 ? RLK_INSIDE_LEFT : RLK_INSIDE);
    test_proxy_remove(proxy, rule);
    OK(actor_rc(&a));
    INSIDE(-1);
    int rc = rlock_mutex_unlock(&their_robust);
    ck_assert_int_eq(rc, ESTALE);
}
END_TEST

/* Its critical section did not end with an unlock. */
/* rule: G8 */
START_TEST(thread_that_ended_inside_is_recorded_as_inside)
{
    OK(actor_does(&a, run_lock, &robust));
    int rule = hold_requests(RLK_MUTEX_RELEASE);
    actor_end(&a);
    wait_held(rule);
    INSIDE(RLK_INSIDE);
    test_proxy_remove(proxy, rule);
    ck_assert(livefile_view_wait(&file, "n", -1));
    actor_start(&a);
}
END_TEST

static int lock_for_long_enough(void *mutex)
{
    return rlock_mutex_lock_lease(mutex, test_ms(100));
}

static bool is_lost(void *mutex)
{
    return state_of(mutex) == RLOCK_LOST;
}

/* The thread does not know of the loss yet. */
/* rule: G8 */
START_TEST(lost_hold_is_inside_until_it_is_released)
{
    int rule = hold_requests(RLK_MUTEX_RELEASE);
    OK(lock_for_long_enough(&robust));
    ck_assert(test_wait_until(is_lost, &robust, SOON_MS));
    wait_held(rule);
    INSIDE(RLK_INSIDE);
    test_proxy_remove(proxy, rule);
    ck_assert(livefile_view_wait(&file, "n", -1));
    EXPECT(rlock_mutex_unlock(&robust), ESTALE);
}
END_TEST

/* rule: G8 */
START_TEST(downgraded_hold_is_recorded_as_inside)
{
    char id[RLK_ID_SIZE];
    OK(rlock_rwlock_wrlock(&rw));
    snprintf(id, sizeof(id), "%s", id_in_slot());
    OK(rlock_rwlock_downgrade(&rw));
    INSIDE(RLK_INSIDE);
    ck_assert_str_eq(id_in_slot(), id);
    ck_assert_str_eq(id_in_slot(), holder());
    OK(rlock_rwlock_rdunlock(&rw));
    INSIDE(-1);
}
END_TEST

/* ---- */

static TCase *tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("intents");
    TCase *tc = tcase(suite, "intents");
    tcase_add_loop_test(tc, intent_is_written_before_the_acquire_is_sent, 0, ROWS);
    tcase_add_loop_test(tc, intent_stays_until_the_release_is_confirmed, 0, ROWS);
    tcase_add_test(tc, failed_acquire_leaves_no_intent);
    tcase_add_test(tc, intent_stays_until_the_cancel_is_confirmed);
    tcase_add_test(tc, renamed_id_is_renamed_in_its_intent);
    tcase_add_test(tc, readers_that_share_an_id_have_one_intent);
    tc = tcase(suite, "many");
    tcase_add_test(tc, intents_are_allocated_as_needed);
    tcase_add_test(tc, lock_works_without_an_intent);
    tc = tcase(suite, "inside");
    tcase_add_test(tc, intent_says_inside_until_the_outermost_unlock);
    tcase_add_test(tc, retained_hold_is_inside_only_between_lock_and_unlock);
    tcase_add_test(tc, long_retained_hold_is_inside_once_the_server_knows);
    tcase_add_test(tc, thread_that_is_handed_a_hold_is_inside);
    tcase_add_test(tc, thread_that_declines_a_handed_hold_is_not_inside);
    tcase_add_test(tc, each_of_many_threads_is_recorded_as_inside);
    tcase_add_loop_test(
        tc, holder_with_EOWNERDEAD_is_inside_until_it_makes_the_lock_consistent, 0, 2);
    tcase_add_test(tc, thread_that_ended_inside_is_recorded_as_inside);
    tcase_add_test(tc, lost_hold_is_inside_until_it_is_released);
    tcase_add_test(tc, downgraded_hold_is_recorded_as_inside);
    return test_run_suite(suite);
}
