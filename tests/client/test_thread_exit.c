/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_thread_exit,rwlock_thread_exit */
/* Threads that end in any way while they hold locks: the locks are given up. A thread
 * whose destructors still unlock them reports no death. */
#include "state/thread.h"

#include "fixture.h"

#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How C++ registers destructors of a thread's objects; the C library has it for C11,
 * too. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *dso);
extern void *__dso_handle;

enum { SOON_MS = 10000, LOCKS = 20 };

static rlock_mutex_t m, theirs;

/* Leases of ten minutes: a lock that comes free in a test was given up. */
static void set_up(void)
{
    fixture_open();
    reopen_with("?lease=600000");
    m = fenced_mutex(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static void others_get_it(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    OK(rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at));
    OK(rlock_mutex_unlock(mutex));
}

/* ---- the log */

static pthread_mutex_t log_mu = PTHREAD_MUTEX_INITIALIZER;
static char given_up[512];
static int given_up_level, given_up_count;

static void on_line(int level, const char *line, void *arg)
{
    (void)arg;
    if (!strstr(line, "abandoned"))
        return;
    pthread_mutex_lock(&log_mu);
    snprintf(given_up, sizeof(given_up), "%s", line);
    given_up_level = level;
    given_up_count++;
    pthread_mutex_unlock(&log_mu);
}

static bool lines_are(void *arg)
{
    pthread_mutex_lock(&log_mu);
    bool right = given_up_count == *(const int *)arg;
    pthread_mutex_unlock(&log_mu);
    return right;
}

static bool wait_lines(int count)
{
    return test_wait_until(lines_are, &count, SOON_MS);
}

static void listen_to_log(void)
{
    given_up_count = 0;
    rlock_setlogger(on_line, NULL, 4);
}

/* ---- ways to end */

enum way { RETURN, EXIT, CANCEL, CANCEL_ASYNC, DETACHED, PENDING, WAYS };

struct ending {
    enum way way;
    rlock_mutex_t *mutexes;
    int count, levels;
    pthread_t thread;
    uint64_t token;
    int rc;
    sem_t holds;
    struct rlk_thread *record;
};

static void *hold_and_end(void *arg)
{
    struct ending *e = arg;
    int ignored;

    e->thread = pthread_self();
    if (e->way == CANCEL_ASYNC)
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &ignored);
    for (int i = 0; i < e->count && e->rc == 0; i++)
        for (int level = 0; level < e->levels && e->rc == 0; level++)
            e->rc = rlock_mutex_lock(&e->mutexes[i]);
    if (e->rc == 0)
        rlock_mutex_gettoken(&e->mutexes[0], &e->token);
    e->record = rlk_thread_record;
    sem_post(&e->holds);
    if (e->way == EXIT)
        pthread_exit(NULL);
    if (e->way == PENDING)
        pthread_cancel(pthread_self()); /* stays pending: no cancellation point follows */
    if (e->way == CANCEL)
        /* ThreadSanitizer loses a thread that is cancelled in a system call */
        for (;; sched_yield())
            pthread_testcancel();
    if (e->way == CANCEL_ASYNC)
        for (volatile bool spin = true; spin;)
            ;
    return NULL;
}

/* Starts a thread that takes `levels` levels of each lock and ends. */
static void end_thread(struct ending *e, enum way way, rlock_mutex_t *mutexes, int count,
                       int levels)
{
    pthread_attr_t attr;
    pthread_t thread;

    *e = (struct ending){
        .way = way, .mutexes = mutexes, .count = count, .levels = levels
    };
    sem_init(&e->holds, 0, 0);
    pthread_attr_init(&attr);
    if (way == DETACHED)
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    ck_assert_int_eq(pthread_create(&thread, &attr, hold_and_end, e), 0);
    pthread_attr_destroy(&attr);
    ck_assert_int_eq(sem_wait(&e->holds), 0); /* a semaphore, which helgrind knows */
    if (way == CANCEL || way == CANCEL_ASYNC)
        ck_assert_int_eq(pthread_cancel(thread), 0);
    if (way != DETACHED) {
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        sem_destroy(&e->holds);
    }
    OK(e->rc);
}

/* ---- exclusive locks */

START_TEST(ended_thread_gives_its_lock_up_with_an_event_and_a_log_line)
{
    struct ending e;
    listen_to_log();
    end_thread(&e, (enum way)_i, &m, 1, 3);
    const struct told *died = event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS);
    ck_assert_ptr_nonnull(died);
    ck_assert_str_eq(died->name, "n");
    ck_assert_int_eq(died->type, RLOCK_TYPE_MUTEX);
    ck_assert_int_eq(died->mode, RLOCK_MODE_EXCLUSIVE);
    ck_assert_uint_ne(e.token, 0);
    ck_assert_uint_eq(died->token, e.token);
    ck_assert(pthread_equal(died->thread, e.thread));
    ck_assert_int_eq(died->remaining_ms, 0);
    ck_assert_ptr_nonnull(strstr(died->reason, "thread ended"));
    ck_assert(wait_lines(1));
    ck_assert_int_eq(given_up_level, 3);
    ck_assert_ptr_nonnull(strstr(given_up, "\"n\""));
    others_get_it(&theirs);
    others_get_it(&m);
    rlock_stats_t stats = stats_of(client);
    ck_assert_uint_eq(stats.owners_died, 1);
    ck_assert_uint_eq(stats.holds_now, 0);
    ck_assert_uint_eq(stats.losses, 0);
    ck_assert_ptr_null(event_of(RLOCK_EVENT_OWNER_DIED, 0));
}
END_TEST

START_TEST(ended_thread_gives_up_all_its_locks)
{
    rlock_mutex_t mutexes[LOCKS];
    struct ending e;
    listen_to_log();
    for (int i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "n%d", i);
        mutexes[i] = mutex_of(i % 2 ? client : other, name);
    }
    end_thread(&e, (enum way)_i, mutexes, LOCKS, 2);
    for (int i = 0; i < LOCKS; i++) {
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS));
        others_get_it(&mutexes[i]);
    }
    ck_assert(wait_lines(LOCKS));
    ck_assert_uint_eq(stats_of(client).owners_died, LOCKS / 2);
    ck_assert_uint_eq(stats_of(other).owners_died, LOCKS / 2);
    /* close succeeds: the client counts no thread as inside */
    close_client(other);
    other = NULL;
}
END_TEST

START_TEST(waiting_threads_of_all_clients_get_it)
{
    struct actor holder;
    struct task here, there;
    actor_start(&holder);
    OK(actor_does(&holder, run_lock, &m));
    task_start(&here, run_pair, &m);
    task_start(&there, run_pair, &theirs);
    ck_assert(wait_waiters(client, 1));
    ck_assert(wait_waiters(other, 1));
    actor_end(&holder);
    ck_assert(task_ends(&here, SOON_MS));
    ck_assert(task_ends(&there, SOON_MS));
    OK(task_join(&here));
    OK(task_join(&there));
}
END_TEST

#ifndef AS_RWLOCK
static bool so_many_queued(void *n)
{
    return test_redis_int(redis, "ZCARD", "rlock:{n}:queue") == *(const int *)n;
}

/* The release passes over as many deaf waiters as one script may, and says so. The
 * watchdog continues behind them, though no thread of this client waits. */
START_TEST(lock_goes_to_the_waiter_behind_many_unheard_ones)
{
    enum { DEAF = 70, PRESENCE_MS = 30000 };
    static const char uuid[] = "00000000-0000-4000-8000-00000000000d";
    rlock_client_t *patient = open_with("?presence=30000"); /* its polls are 10 s apart */
    rlock_mutex_t waiter = mutex_of(patient, "n");
    struct actor holder;
    struct task task;
    char id[64], ticket[16];
    actor_start(&holder);
    OK(actor_does(&holder, run_lock, &m));
    for (int i = 1; i <= DEAF; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:m3000", uuid, i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(redis, "ZADD", "rlock:{n}:queue", ticket, id);
    }
    test_redis_do(redis, "ZADD", "rlock:{n}:present", "99999999999999", uuid);
    task_start(&task, run_pair, &waiter);
    ck_assert(test_wait_until(so_many_queued, &(int){ DEAF + 1 }, SOON_MS));
    actor_end(&holder);
    ck_assert(task_ends(&task, PRESENCE_MS / 6));
    OK(task_join(&task));
    test_redis_do(redis, "DEL", "rlock:{n}:queue");
    close_client(patient);
}
END_TEST
#endif

static bool no_renewals(void *arg)
{
    return stats_of(client).renewals == *(const uint64_t *)arg;
}

START_TEST(hold_of_an_ended_thread_is_not_renewed_while_it_cannot_be_released)
{
    char parameters[64];
    struct ending e;
    long lease = test_ms(300);
    snprintf(parameters, sizeof(parameters), "?lease=%ld", lease);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    test_redis_do(redis, "ACL", "SETUSER", "default", "-del");
    end_thread(&e, RETURN, &m, 1, 1);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS));
    uint64_t renewals = stats_of(client).renewals;
    ck_assert(test_stays(no_renewals, &renewals, 3 * lease));
    ck_assert(!test_redis_exists(redis, "n"));
    /* the release is repeated, and answered once, when the lease is over */
    ck_assert_uint_le(stats_of(client).background_releases, 1);
    test_redis_do(redis, "ACL", "SETUSER", "default", "+del");
}
END_TEST

#ifndef AS_RWLOCK
static rlock_mutex_t robust_mutex(rlock_client_t *c)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t robust;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&robust, &attr, "n"));
    return robust;
}

START_TEST(next_locker_of_a_robust_lock_gets_EOWNERDEAD)
{
    rlock_mutex_t mine = robust_mutex(client), yours = robust_mutex(other);
    struct ending e;
    end_thread(&e, (enum way)_i, &mine, 1, 2);
    EXPECT(rlock_mutex_lock(&yours), EOWNERDEAD);
    OK(rlock_mutex_consistent(&yours));
    OK(rlock_mutex_unlock(&yours));
    OK(rlock_mutex_lock(&mine));
    OK(rlock_mutex_unlock(&mine));
}
END_TEST
#endif

/* ---- holds that are lost */

static bool is_lost(void *mutex)
{
    rlock_state_t state;
    return rlock_mutex_getstate(mutex, &state) == 0 && state == RLOCK_LOST;
}

static int run_lose(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    if (rc == 0)
        rc = rlock_mutex_extend(mutex, 50);
    return rc != 0 ? rc : test_wait_until(is_lost, mutex, SOON_MS) ? 0 : EBUSY;
}

START_TEST(lost_hold_of_an_ended_thread_is_reported_as_LOST_alone)
{
    struct actor loser;
    actor_start(&loser);
    OK(actor_does(&loser, run_lose, &m));
    if (_i) { /* the client may be closed before the thread ends */
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
        close_client(client);
        client = NULL;
    }
    actor_end(&loser);
    if (!_i) {
        others_get_it(&m);
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
        ck_assert_uint_eq(stats_of(client).owners_died, 0);
    }
    others_get_it(&theirs);
    ck_assert(!event_seen(RLOCK_EVENT_OWNER_DIED));
}
END_TEST

/* ---- clients that are closed */

static atomic_int gate; /* of the callback: 0 not reached, 1 closed, 2 open */

static void blocks(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind != RLOCK_EVENT_LOST)
        return;
    atomic_store(&gate, 1);
    while (atomic_load(&gate) == 1)
        test_pause_ms(1);
}

static bool gate_is_reached(void *arg)
{
    (void)arg;
    return atomic_load(&gate) == 1;
}

static int run_close(void *c)
{
    return rlock_client_close(c);
}

static bool goes_on(void *arg)
{
    const struct task *task = arg;
    return !atomic_load(&task->done);
}

START_TEST(event_of_a_client_closed_at_once_is_delivered)
{
    rlock_clientattr_t attr;
    rlock_client_t *slow = NULL;
    struct task closing;
    struct ending e;

    atomic_store(&gate, 0);
    listen_to_log();
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_seteventcallback(&attr, blocks, NULL));
    OK(rlock_client_open(&slow, server.url, &attr));
    rlock_mutex_t lost = mutex_of(slow, "lost");
    OK(rlock_mutex_lock_lease(&lost, 50));
    ck_assert(test_wait_until(gate_is_reached, NULL, SOON_MS));
    end_thread(&e, RETURN, &m, 1, 1);
    task_start(&closing, run_close, client);
    bool closes = wait_key("n", false, SOON_MS) && test_stays(goes_on, &closing, 100);
    atomic_store(&gate, 2);
    ck_assert(closes);
    OK(task_join(&closing));
    client = NULL;
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, 0));
    ck_assert(wait_lines(1));
    EXPECT(rlock_mutex_unlock(&lost), ESTALE);
    close_client(slow);
}
END_TEST

/* ---- destructors of the program */

static pthread_key_t early_key, late_key;
static atomic_int destructor_rc;
static _Thread_local int destructor_rounds;

static void unlock_it(void *mutex)
{
    atomic_store(&destructor_rc, rlock_mutex_unlock(mutex));
}

static void unlock_it_early(void *mutex)
{
    unlock_it(mutex);
}

static void unlock_it_in_round_2(void *mutex)
{
    if (++destructor_rounds == 1)
        pthread_setspecific(late_key, mutex);
    else
        unlock_it(mutex);
}

static void unlock_it_late(void *mutex)
{
    unlock_it(mutex);
}

static int run_with_early_key(void *mutex)
{
    pthread_setspecific(early_key, mutex);
    return rlock_mutex_lock(mutex);
}

static int run_with_late_key(void *mutex)
{
    pthread_setspecific(late_key, mutex);
    return rlock_mutex_lock(mutex);
}

static int run_with_cxa(void *mutex)
{
    int rc = __cxa_thread_atexit_impl(unlock_it, mutex, &__dso_handle);
    return rc != 0 ? ENOMEM : rlock_mutex_lock(mutex);
}

/* Asserts that the lock is free when the thread has ended, and that its end is no
 * death. */
static void unlocks_at_its_end(int (*run)(void *))
{
    atomic_store(&destructor_rc, -1);
    OK(in_thread(run, &m));
    OK(atomic_load(&destructor_rc));
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert_uint_eq(stats_of(client).owners_died, 0);
    ck_assert(!event_seen(RLOCK_EVENT_OWNER_DIED));
}

START_TEST(destructor_of_a_key_older_than_the_librarys_may_unlock)
{
    ck_assert_int_eq(pthread_key_create(&early_key, unlock_it_early), 0);
    unlocks_at_its_end(run_with_early_key);
    pthread_key_delete(early_key);
}
END_TEST

START_TEST(destructor_of_a_key_younger_than_the_librarys_may_unlock)
{
    OK(in_thread(run_pair, &m)); /* creates the library's key */
    ck_assert_int_eq(
        pthread_key_create(&late_key, _i ? unlock_it_in_round_2 : unlock_it_late), 0);
    unlocks_at_its_end(run_with_late_key);
    pthread_key_delete(late_key);
}
END_TEST

START_TEST(destructor_as_of_cxx_may_unlock)
{
    unlocks_at_its_end(run_with_cxa);
}
END_TEST

static void lock_it(void *mutex)
{
    atomic_store(&destructor_rc, rlock_mutex_lock(mutex));
}

static int run_lock_at_end(void *mutex)
{
    return pthread_setspecific(late_key, mutex) != 0 ? ENOMEM : run_pair(mutex);
}

START_TEST(lock_that_a_destructor_takes_is_given_up)
{
    OK(in_thread(run_pair, &m));
    ck_assert_int_eq(pthread_key_create(&late_key, lock_it), 0);
    OK(in_thread(run_lock_at_end, &m));
    OK(atomic_load(&destructor_rc));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS));
    others_get_it(&theirs);
    pthread_key_delete(late_key);
}
END_TEST

/* ---- many threads */

START_TEST(short_lived_threads_leak_no_record)
{
    enum { SOME = 8 };
    /* Under Valgrind, the process that the tests are forked from has left some records.
     */
    const long most = test_ms(1) >= 10 ? SOME : 1;
    struct rlk_thread *records[SOME];
    struct ending e;
    long count = test_count(1000, 200), used = 0;

    for (long i = 0; i < count; i++) {
        long k = 0;
        end_thread(&e, (enum way)(i % 2), &m, 1, 1);
        ck_assert_ptr_nonnull(e.record);
        while (k < used && records[k] != e.record)
            k++;
        ck_assert_int_lt(k, most);
        records[k] = e.record;
        used += k == used;
    }
    others_get_it(&m);
    ck_assert_uint_eq(stats_of(client).owners_died, (uint64_t)count);
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("thread exit");
    TCase *ends = add_case(suite, "ends");
    tcase_add_loop_test(ends, ended_thread_gives_its_lock_up_with_an_event_and_a_log_line,
                        0, WAYS);
    tcase_add_loop_test(ends, ended_thread_gives_up_all_its_locks, 0, WAYS);
    tcase_add_test(ends, waiting_threads_of_all_clients_get_it);
#ifndef AS_RWLOCK
    tcase_add_test(ends, lock_goes_to_the_waiter_behind_many_unheard_ones);
    tcase_add_loop_test(ends, next_locker_of_a_robust_lock_gets_EOWNERDEAD, 0, WAYS);
#endif
    TCase *lost = add_case(suite, "lost");
    tcase_add_loop_test(lost, lost_hold_of_an_ended_thread_is_reported_as_LOST_alone, 0,
                        2);
    tcase_add_test(lost, event_of_a_client_closed_at_once_is_delivered);
    TCase *destructors = add_case(suite, "destructors");
    tcase_add_test(destructors, destructor_of_a_key_older_than_the_librarys_may_unlock);
    tcase_add_loop_test(destructors,
                        destructor_of_a_key_younger_than_the_librarys_may_unlock, 0, 2);
    tcase_add_test(destructors, destructor_as_of_cxx_may_unlock);
    tcase_add_test(destructors, lock_that_a_destructor_takes_is_given_up);
    TCase *refused = add_case(suite, "refused");
    tcase_add_test(refused,
                   hold_of_an_ended_thread_is_not_renewed_while_it_cannot_be_released);
    TCase *many = add_case(suite, "many");
    tcase_add_test(many, short_lived_threads_leak_no_record);
    return test_run_suite(suite);
}
