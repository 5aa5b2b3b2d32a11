/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=L7 */
/*
 * The watchdog stands still: it gets no processor, or hangs in something. Callers still
 * get right answers, because they look at the clock themselves. This program's poll()
 * holds the thread back when it goes to sleep, until the end of the test. `m` is a handle
 * of `client`, `theirs` of `other`, whose watchdog is the same thread.
 */
#include "fixture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    LEASE_MS = 400,
    LONG_LEASE_MS = 30000,
    SOON_MS = 10000,
    STAYS_MS = 150,
    LATE_MS = 90, /* of the 100 that a cancel has */
    TRIES = 5
};

static pthread_mutex_t gate_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opens = PTHREAD_COND_INITIALIZER;
static bool shut;
static atomic_int kept_back;

static const char *_Atomic gate_for = "rlock-watch";

static void keep_back_here(void)
{
    pthread_mutex_lock(&gate_mu);
    atomic_fetch_add(&kept_back, shut);
    while (shut)
        pthread_cond_wait(&gate_opens, &gate_mu);
    pthread_mutex_unlock(&gate_mu);
}

static void keep_back(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strcmp(name, gate_for) == 0)
        keep_back_here();
}

#ifdef SYS_ppoll_time64 /* 32 bits, but for those of time_t */
#define PPOLL SYS_ppoll_time64
#else
#define PPOLL SYS_ppoll
#endif

/* Replaces the C library's function for the library that is linked into this program. */
int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct timespec ts = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
    keep_back();
    return (int)syscall(PPOLL, fds, n, timeout_ms < 0 ? NULL : &ts, NULL, 0);
}

static void set_gate(bool value)
{
    pthread_mutex_lock(&gate_mu);
    shut = value;
    pthread_cond_broadcast(&gate_opens);
    pthread_mutex_unlock(&gate_mu);
}

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    char parameters[64];
    fixture_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(LEASE_MS));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
    atomic_store(&kept_back, 0);
}

static void tear_down(void)
{
    set_gate(false);
    fixture_close();
}

static bool is_kept_back(void *arg)
{
    (void)arg;
    return atomic_load(&kept_back) > 0;
}

/* The watchdog does what is due now, and then nothing more. Work that falls due brings it
 * there. */
static void wedge(void)
{
    rlock_mutex_t bait = mutex_of(client, "bait");
    set_gate(true);
    OK(rlock_mutex_lock_lease(&bait, LEASE_MS / 2));
    ck_assert(test_wait_until(is_kept_back, NULL, SOON_MS));
    rlock_mutex_unlock(&bait); /* its lease may be over */
}

static bool is_past(void *arg)
{
    return test_now_ms() > *(int64_t *)arg;
}

/* Takes m at two levels, and waits until the lease is over, which no thread renews. */
static void outlive_the_lease(void)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&m));
    int64_t end = test_now_ms() + test_ms(LEASE_MS);
    ck_assert(test_wait_until(is_past, &end, 2 * LEASE_MS));
}

/* ---- the holder */

static int call_lock(void)
{
    return rlock_mutex_lock(&m);
}

static int call_trylock(void)
{
    return rlock_mutex_trylock(&m);
}

static int call_clocklock(void)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, SOON_MS);
    return rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at);
}

static int call_extend(void)
{
    return rlock_mutex_extend(&m, LONG_LEASE_MS);
}

static int call_getstate(void)
{
    return state_of(&m) == RLOCK_LOST ? ESTALE : 0;
}

static int call_getremaining(void)
{
    return remaining_of(&m) == 0 ? ESTALE : 0;
}

static int call_unlock(void)
{
    return rlock_mutex_unlock(&m);
}

static int (*const calls[])(void) = { call_lock,   call_trylock,  call_clocklock,
                                      call_extend, call_getstate, call_getremaining,
                                      call_unlock };
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* rule: S4 */
START_TEST(every_call_finds_by_itself_that_the_lease_is_over)
{
    wedge();
    outlive_the_lease();
    EXPECT(calls[_i](), ESTALE);
    if (calls[_i] != call_unlock)
        EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), EPERM);
}
END_TEST

/* rule: S4 */
START_TEST(loss_is_reported_as_soon_as_a_call_finds_it)
{
    wedge();
    outlive_the_lease();
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    ck_assert_int_eq(state_of(&m), RLOCK_LOST);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert(lost && strcmp(lost->name, "n") == 0);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static int run_clocklock(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    int rc = rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at);
    return rc == 0 ? rlock_mutex_unlock(mutex) : rc;
}

/* Another thread of the holder's process waits, too: it finds the loss at D. */
/* rule: S4 */
START_TEST(waiting_thread_finds_the_loss_of_another)
{
    static struct task waiter;
    wedge();
    OK(rlock_mutex_lock(&m));
    task_start(&waiter, run_clocklock, &m);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, 5 * LEASE_MS);
    if (lost && strcmp(lost->name, "n") != 0) /* of the bait, which may be over first */
        lost = event_of(RLOCK_EVENT_LOST, 5 * LEASE_MS);
    ck_assert(lost && strcmp(lost->name, "n") == 0);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    set_gate(false);
    OK(task_join(&waiter));
}
END_TEST

START_TEST(a_hold_with_time_left_is_renewed_when_the_watchdog_goes_on)
{
    wedge();
    OK(rlock_mutex_lock(&m));
    set_gate(false);
    int64_t end = test_now_ms() + 3 * test_ms(LEASE_MS);
    ck_assert(test_wait_until(is_past, &end, 4 * LEASE_MS));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- others */

/* rule: L7 */
START_TEST(locks_are_acquired_tried_and_released_with_a_wedged_watchdog)
{
    struct timespec at;
    int64_t late = LATE_MS;
    /* again if it was too late for its cancel, which the watchdog then has */
    for (int i = 0; late >= LATE_MS; i++) {
        ck_assert_int_lt(i, TRIES);
        set_gate(false);
        ck_assert(wait_size("rlock:{n}:queue", 0));
        ck_assert(wait_key("n", false, SOON_MS));
        atomic_store(&kept_back, 0);
        wedge();
        OK(rlock_mutex_lock(&theirs));
        EXPECT(rlock_mutex_trylock(&m), EBUSY);
        int64_t end = test_now_ms() + STAYS_MS;
        at = test_in_ms(CLOCK_MONOTONIC, STAYS_MS);
        EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), ETIMEDOUT);
        late = test_now_ms() - end;
        OK(rlock_mutex_unlock(&theirs));
    }
    OK(rlock_mutex_trylock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* rule: L1 */
START_TEST(release_is_handed_over_with_a_wedged_watchdog)
{
    static struct task waiter;
    wedge();
    OK(rlock_mutex_lock(&theirs));
    task_start(&waiter, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&waiter));
}
END_TEST

/* If no client releases a lock, no thread of this process takes it over meanwhile
 * (doc/DESIGN.md, "Limits"). */
/* rule: L4 */
START_TEST(expired_lease_is_taken_over_when_the_watchdog_continues)
{
    static struct task waiter;
    wedge();
    test_redis_do(redis, "HSET", "n", "somebody:1", "1");
    test_redis_do(redis, "PEXPIRE", "n", "100");
    task_start(&waiter, run_pair, &m);
    ck_assert(wait_key("n", false, SOON_MS));
    set_gate(false);
    OK(task_join(&waiter));
}
END_TEST

/* ---- a callback does not hold it up */

static void on_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind == RLOCK_EVENT_LOST)
        keep_back_here();
}

START_TEST(a_callback_that_hangs_holds_up_no_renewal)
{
    rlock_clientattr_t attr;
    rlock_client_t *hung = NULL;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setlease(&attr, test_ms(LEASE_MS)));
    OK(rlock_clientattr_seteventcallback(&attr, on_event, NULL));
    OK(rlock_client_open(&hung, server.url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    rlock_mutex_t kept = mutex_of(hung, "kept"), lost = mutex_of(hung, "lost");
    OK(rlock_mutex_lock(&kept));
    OK(rlock_mutex_lock_lease(&lost, LEASE_MS / 2));
    gate_for = "";
    set_gate(true);
    ck_assert(test_wait_until(is_kept_back, NULL, SOON_MS));
    int64_t end = test_now_ms() + 3 * test_ms(LEASE_MS);
    ck_assert(test_wait_until(is_past, &end, 4 * LEASE_MS));
    ck_assert_int_eq(state_of(&kept), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&kept));
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    set_gate(false);
    close_client(hung);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wedged");
    TCase *tc = tcase_create("wedged");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, every_call_finds_by_itself_that_the_lease_is_over, 0, CALLS);
    tcase_add_test(tc, loss_is_reported_as_soon_as_a_call_finds_it);
    tcase_add_test(tc, waiting_thread_finds_the_loss_of_another);
    tcase_add_test(tc, a_hold_with_time_left_is_renewed_when_the_watchdog_goes_on);
    tcase_add_test(tc, locks_are_acquired_tried_and_released_with_a_wedged_watchdog);
    tcase_add_test(tc, release_is_handed_over_with_a_wedged_watchdog);
    tcase_add_test(tc, expired_lease_is_taken_over_when_the_watchdog_continues);
    tcase_add_test(tc, a_callback_that_hangs_holds_up_no_renewal);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
