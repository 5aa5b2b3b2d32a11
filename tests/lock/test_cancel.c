/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_cancel,rwlock_cancel */
/* Cancellation: no function is a cancellation point, whatever the cancellation type is. A
 * request takes effect after the call, and leaves nothing half done. */
#include "calls.h"
#include "fixture.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

enum { SOON_MS = 10000, STAYS_MS = 50, AT_ONCE_MS = 3000, STACK_SIZE = 256 * 1024 };

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    fixture_load_scripts();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    ck_assert_int_eq(pthread_create(&thread, &attr, run, arg), 0);
    pthread_attr_destroy(&attr);
    return thread;
}

/* Asserts that the lock is free within a time far below the lease. */
static void obtainable_at_once(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(AT_ONCE_MS));
    OK(rlock_mutex_timedlock(mutex, &at));
    OK(rlock_mutex_unlock(mutex));
}

static struct calls calls_with(void (*after)(struct calls *calls))
{
    return (struct calls){ .client = client,
                           .url = server.url,
                           .theirs = "n",
                           .free_one = "of the calls",
                           .wait_ms = test_ms(20),
                           .after = after };
}

static void expect_good(const struct calls *calls)
{
    ck_assert_msg(!calls->wrong, "%s: %s", calls->wrong, rlock_strerror(calls->rc));
}

/* ---- waits */

enum form {
    LOCK,
    TIMED,
    CLOCK,
    WAITFREE,
    OWN_FORMS,
    READ = OWN_FORMS,
    TIMED_READ,
    WRITE
};
#if defined(AS_FAIR) || defined(AS_RWLOCK)
enum { FORMS = OWN_FORMS };
#else
enum { FORMS = WRITE + 1 };
#endif
enum { KINDS = 4 }; /* deferred or asynchronous; at the server or in this process */

struct waiter {
    int form;
    bool async;
    long ms; /* until its deadline */
    rlock_mutex_t mutex;
    rlock_rwlock_t rwlock;
    atomic_int rc;         /* -1: the call has not returned */
    atomic_int cleaned_up; /* the code of the clean-up's unlock; -1: it did not run */
    unsigned held;         /* the hold count in the clean-up handler */
};

static bool is_rwlock(const struct waiter *w)
{
    return w->form >= OWN_FORMS;
}

static int wait_with(struct waiter *w)
{
    struct timespec real = test_in_ms(CLOCK_REALTIME, w->ms);
    struct timespec mono = test_in_ms(CLOCK_MONOTONIC, w->ms);

    switch (w->form) {
    case LOCK:
        return rlock_mutex_lock(&w->mutex);
    case TIMED:
        return rlock_mutex_timedlock(&w->mutex, &real);
    case CLOCK:
        return rlock_mutex_clocklock(&w->mutex, CLOCK_MONOTONIC, &mono);
    case WAITFREE:
        return rlock_waitfree(client, "n", &real);
    case READ:
        return rlock_rwlock_rdlock(&w->rwlock);
    case TIMED_READ:
        return rlock_rwlock_timedrdlock(&w->rwlock, &real);
    default:
        return rlock_rwlock_wrlock(&w->rwlock);
    }
}

static void clean_up(void *arg)
{
    struct waiter *w = arg;
    int rc = is_rwlock(w) ? rlock_rwlock_getholdcount(&w->rwlock, &w->held)
                          : rlock_mutex_getholdcount(&w->mutex, &w->held);
    if (rc == 0 && w->held > 0 && !w->async)
        rc = is_rwlock(w) ? rlock_rwlock_unlock(&w->rwlock)
                          : rlock_mutex_unlock(&w->mutex);
    atomic_store(&w->cleaned_up, rc);
}

static void *run_waiter(void *arg)
{
    struct waiter *w = arg;

    if (w->async)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_cleanup_push(clean_up, w);
    int rc = wait_with(w);
    atomic_store(&w->rc, rc);
    pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static struct waiter waiter_of(int i)
{
    struct waiter w = { .form = i / KINDS, .async = i & 1, .ms = test_ms(60000) };
    atomic_store(&w.rc, -1);
    atomic_store(&w.cleaned_up, -1);
    w.mutex = m;
    w.rwlock = rwlock_of(client, "rw");
    return w;
}

static bool is_at_it(void *arg)
{
    struct waiter *w = arg;
    return stats_of(client).waiters_now == 1 && atomic_load(&w->rc) == -1 &&
           atomic_load(&w->cleaned_up) == -1;
}

/* An asynchronous request unwinds frames of the library together with the call.
 * AddressSanitizer still marks their memory as frames in use. */
static bool can_unwind(const char *test, bool async)
{
#ifdef __SANITIZE_ADDRESS__
    if (async) {
        printf("skipped: %s, asynchronously: AddressSanitizer loses the stack\n", test);
        fflush(stdout);
        return false;
    }
#endif
    (void)test;
    (void)async;
    return true;
}

START_TEST(cancelled_waiter_stays_in_the_call_until_it_returns)
{
    struct waiter w = waiter_of(_i);
    if (!can_unwind("cancelled_waiter_stays_in_the_call_until_it_returns", w.async))
        return;
    bool local = _i & 2;
    rlock_mutex_t *blocker = local ? &m : &theirs;
    rlock_rwlock_t rwblocker = rwlock_of(local ? client : other, "rw");
    bool holds = w.form != WAITFREE;
    void *result = NULL;

    OK(is_rwlock(&w) ? rlock_rwlock_wrlock(&rwblocker) : rlock_mutex_lock(blocker));
    pthread_t thread = start(run_waiter, &w);
    ck_assert(wait_waiters(client, 1));
    ck_assert_int_eq(pthread_cancel(thread), 0);
    ck_assert(test_stays(is_at_it, &w, STAYS_MS));
    OK(is_rwlock(&w) ? rlock_rwlock_unlock(&rwblocker) : rlock_mutex_unlock(blocker));
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    OK(atomic_load(&w.cleaned_up));
    ck_assert_uint_eq(w.held, holds ? 1 : 0);
    /* a deferred request acted after the call; an asynchronous one before the thread
     * stored the code */
    ck_assert_int_eq(atomic_load(&w.rc), w.async ? -1 : 0);
    ck_assert_uint_eq(stats_of(client).owners_died, w.async && holds ? 1 : 0);
    ck_assert(wait_key(is_rwlock(&w) ? "rw" : "n", false, AT_ONCE_MS));
    ck_assert(wait_waiters(client, 0));
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}
END_TEST

START_TEST(cancelled_waiter_waits_until_its_deadline)
{
    struct waiter w = waiter_of(_i);
    void *result = NULL;

    w.ms = 200;
    OK(rlock_mutex_lock(&theirs));
    int64_t begun = test_now_ms();
    pthread_t thread = start(run_waiter, &w);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    pthread_join(thread, &result);
    int64_t took = test_now_ms() - begun;
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert_int_eq(atomic_load(&w.rc), ETIMEDOUT);
    ck_assert_uint_eq(w.held, 0);
    ck_assert_int_ge(took, w.ms - 1);
}
END_TEST

/* ---- calls */

struct watched {
    struct calls calls;
    int state, type;
    bool pending;
    atomic_bool ended;
};

static void look_at_cancellation(struct calls *calls)
{
    struct watched *w = calls->arg;
    int state = -1, type = -1, ignored;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if ((state != w->state || type != w->type) && !calls->odd)
        calls->odd = calls->now;
    pthread_setcanceltype(type, &ignored);
    pthread_setcancelstate(state, &ignored);
}

static void *run_calls(void *arg)
{
    struct watched *w = arg;

    pthread_setcancelstate(w->state, NULL);
    pthread_setcanceltype(w->type, NULL);
    if (w->pending)
        pthread_cancel(pthread_self());
    calls_of_all(&w->calls);
    atomic_store(&w->ended, true);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return NULL;
}

/* Watches every function on a thread with this cancellation state and type. */
static void watch_calls(int state, int type)
{
    struct watched w = { .calls = calls_with(look_at_cancellation),
                         .state = state,
                         .type = type };
    bool acts = state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_ASYNCHRONOUS;

    w.calls.arg = &w;
    w.pending = !acts; /* a request would act at once there */
    atomic_store(&w.ended, false);
    OK(rlock_mutex_lock(&theirs));
    pthread_join(start(run_calls, &w), NULL);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_msg(atomic_load(&w.ended), "cancelled in %s", w.calls.now);
    ck_assert_msg(!w.calls.odd, "%s has changed the state or the type", w.calls.odd);
    expect_good(&w.calls);
    ck_assert_int_gt(w.calls.count, 100);
}

START_TEST(no_function_is_a_cancellation_point_and_none_changes_state_or_type)
{
    static const int states[] = { PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE };
    static const int types[] = { PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS };
    watch_calls(states[_i & 1], types[_i >> 1]);
}
END_TEST

/* ---- at any moment */

enum { AT_A_TIME = 8, MOMENT_US = 3000, OPS = 5, NO_KEY = -2 };

struct victim {
    pthread_t thread;
    rlock_mutex_t mutex;
    unsigned seed;
    bool async;
    int64_t end_ms;
};

static atomic_long counter, sections;
static atomic_int odd_code;

static unsigned next_of(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

/* The section itself is not cancelled, so that a request cuts off only the library's
 * work. */
static void in_the_section(void)
{
    int state, type, ignored;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    long seen = atomic_load_explicit(&counter, memory_order_relaxed);
    sched_yield();
    atomic_store_explicit(&counter, seen + 1, memory_order_relaxed);
    atomic_fetch_add(&sections, 1);
    pthread_setcancelstate(state, &ignored);
    /* last: for a request that acts here, glibc sets the thread's result */
    pthread_setcanceltype(type, &ignored);
}

static int take(struct victim *v, unsigned op)
{
    struct timespec real = test_in_ms(CLOCK_REALTIME, 2);
    struct timespec mono = test_in_ms(CLOCK_MONOTONIC, 2);

    switch (op) {
    case 0:
        return rlock_mutex_timedlock(&v->mutex, &real);
    case 1:
        return rlock_mutex_clocklock(&v->mutex, CLOCK_MONOTONIC, &mono);
    case 2:
        return rlock_mutex_trylock(&v->mutex);
    default:
        return rlock_mutex_lock(&v->mutex);
    }
}

static void *run_victim(void *arg)
{
    struct victim *v = arg;

    if (v->async)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    while (test_now_ms() < v->end_ms) {
        unsigned op = next_of(&v->seed) % OPS;
        int rc = take(v, op);
        if (rc == 0) {
            if (next_of(&v->seed) % 2)
                pthread_testcancel();
            if (op == 3 && (rc = rlock_mutex_lock(&v->mutex)) == 0)
                rc = rlock_mutex_unlock(&v->mutex);
            in_the_section();
            if (next_of(&v->seed) % 2)
                pthread_testcancel();
            if (rc == 0)
                rc = rlock_mutex_unlock(&v->mutex);
        } else if (rc == EBUSY || rc == ETIMEDOUT || (op < 2 && rc == ENOTCONN)) {
            rc = 0; /* so near a deadline may pass before the server answers */
        }
        if (rc != 0)
            atomic_store(&odd_code, rc);
        pthread_testcancel();
    }
    return NULL; /* the thread was not cancelled in time */
}

static void sleep_us(long us)
{
    struct timespec ts = { 0, us * 1000 };
    nanosleep(&ts, NULL);
}

static void cancel_some(struct victim *v, unsigned *seed, bool async)
{
    for (int i = 0; i < AT_A_TIME; i++) {
        v[i].mutex = i % 2 ? m : theirs;
        v[i].seed = next_of(seed);
        v[i].async = async;
        v[i].end_ms = test_now_ms() + test_ms(SOON_MS);
        v[i].thread = start(run_victim, &v[i]);
    }
    sleep_us((long)(next_of(seed) % MOMENT_US));
    for (int i = 0; i < AT_A_TIME; i++) {
        sleep_us((long)(next_of(seed) % (MOMENT_US / AT_A_TIME)));
        ck_assert_int_eq(pthread_cancel(v[i].thread), 0);
    }
    for (int i = 0; i < AT_A_TIME; i++) {
        void *result = NULL;
        pthread_join(v[i].thread, &result);
        ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    }
}

static bool nothing_is_held(void *arg)
{
    (void)arg;
    return stats_of(client).holds_now == 0 && stats_of(other).holds_now == 0;
}

START_TEST(cancelled_at_any_moment_all_is_whole)
{
    if (!can_unwind("cancelled_at_any_moment_all_is_whole", _i))
        return;
    struct victim victims[AT_A_TIME];
    unsigned seed = (unsigned)getpid();
    long rounds = test_count(5000, 160) / AT_A_TIME;
    struct calls calls = calls_with(NULL);

    printf("seed %u\n", seed);
    OK(rlock_mutex_lock(&theirs)); /* this binds every symbol before the threads start */
    calls_of_all(&calls);
    OK(rlock_mutex_unlock(&theirs));
    for (long i = 0; i < rounds; i++)
        cancel_some(victims, &seed, _i);
    /* the lock is free at once, and never had two holders */
    obtainable_at_once(&m);
    obtainable_at_once(&theirs);
    OK(atomic_load(&odd_code));
    ck_assert_int_eq(atomic_load(&counter), atomic_load(&sections));
    ck_assert_uint_eq(stats_of(client).losses + stats_of(other).losses, 0);
    /* nothing remains, neither here nor at the server */
    ck_assert(test_wait_until(nothing_is_held, NULL, AT_ONCE_MS));
    ck_assert(wait_waiters(client, 0) && wait_waiters(other, 0));
    ck_assert(wait_key("n", false, AT_ONCE_MS));
    ck_assert(wait_key("rlock:{n}:queue", false, AT_ONCE_MS));
    long long left = test_redis_int(redis, "PTTL", "rlock:{n}:present");
    ck_assert(left == NO_KEY || left > 0); /* the presence expires by itself */
    /* no mutex of the library is left locked */
    calls = calls_with(NULL);
    OK(rlock_mutex_lock(&theirs));
    calls_of_all(&calls);
    OK(rlock_mutex_unlock(&theirs));
    expect_good(&calls);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cancel");
    TCase *tc = tcase_create("cancel");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, cancelled_waiter_stays_in_the_call_until_it_returns, 0,
                        FORMS * KINDS);
    tcase_add_loop_test(tc, cancelled_waiter_waits_until_its_deadline, TIMED * KINDS,
                        TIMED * KINDS + 1);
    tcase_add_loop_test(tc, cancelled_waiter_waits_until_its_deadline, CLOCK * KINDS,
                        CLOCK * KINDS + 1);
    tcase_add_loop_test(
        tc, no_function_is_a_cancellation_point_and_none_changes_state_or_type, 0, 4);
    suite_add_tcase(suite, tc);
    tc = tcase_create("moments");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    test_long_tcase(tc);
    tcase_add_loop_test(tc, cancelled_at_any_moment_all_is_whole, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
