/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_destroy,rwlock_destroy */
/* When a handle may be destroyed, and which calls may race with that. Answers to bad
 * handles are in test_handle.c. */
#include "fixture.h"
#include "worker.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(AS_RWLOCK)
#define WORKER_KIND " rwlock=1"
#elif defined(AS_FAIR)
#define WORKER_KIND " fair=1"
#else
#define WORKER_KIND ""
#endif

static rlock_mutex_t m;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
}

/* ---- destroy */

START_TEST(destroy_of_what_this_thread_holds_is_EBUSY_and_the_handle_still_works)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock_lease(&m, 0)); /* a second level */
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    ck_assert_int_eq(count_of(&m), 2);
    OK(rlock_mutex_unlock(&m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_destroy(&m));
}
END_TEST

START_TEST(destroy_of_what_another_thread_holds_is_EBUSY_and_the_handle_still_works)
{
    struct actor a;
    actor_start(&a);
    OK(actor_does(&a, run_lock, &m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    OK(actor_does(&a, run_unlock, &m));
    OK(rlock_mutex_trylock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_destroy(&m));
    actor_end(&a);
}
END_TEST

static void assert_EBUSY_while_it_waits(int (*take)(void *arg))
{
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    struct actor a;

    actor_start(&a);
    OK(rlock_mutex_lock(&theirs));
    actor_begin(&a, take, &m);
    ck_assert(wait_waiters(client, 1));
    /* though only the other party holds the lock */
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    OK(rlock_mutex_unlock(&theirs));
    OK(actor_rc(&a));
    OK(actor_does(&a, run_unlock, &m));
    OK(rlock_mutex_destroy(&m));
    actor_end(&a);
}

START_TEST(destroy_while_a_thread_of_this_process_waits_is_EBUSY)
{
    assert_EBUSY_while_it_waits(run_lock);
}
END_TEST

#ifdef AS_RWLOCK
START_TEST(destroy_while_a_thread_of_this_process_waits_to_read_is_EBUSY)
{
    assert_EBUSY_while_it_waits(run_rdlock);
}
END_TEST

START_TEST(destroy_while_a_thread_of_this_process_reads_is_EBUSY)
{
    struct actor a;
    actor_start(&a);
    OK(rlock_rwlock_rdlock(&m));
    OK(actor_does(&a, run_rdlock, &m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    OK(rlock_rwlock_unlock(&m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    OK(actor_does(&a, run_rwunlock, &m));
    OK(rlock_mutex_destroy(&m));
    actor_end(&a);
}
END_TEST
#endif

START_TEST(destroy_of_what_only_another_process_holds_is_0)
{
    struct worker w;
    worker_start(&w, server.url);
    ck_assert(worker_says(&w, "init m n" WORKER_KIND, "ok"));
    ck_assert(worker_says(&w, "lock m", "ok"));
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    OK(rlock_mutex_destroy(&m));
    ck_assert(test_redis_exists(redis, "n")); /* the lock is still held */
    ck_assert(worker_says(&w, "unlock m", "ok"));
    worker_end(&w);
}
END_TEST

START_TEST(destroy_twice_is_EINVAL)
{
    OK(rlock_mutex_destroy(&m));
    EXPECT(rlock_mutex_destroy(&m), EINVAL);
    EXPECT(rlock_mutex_lock(&m), EINVAL);
    EXPECT(rlock_mutex_unlock(&m), EINVAL);
}
END_TEST

/* ---- races */

enum { NAMES = 3, USERS = 3, MAKERS = 3 };

static struct {
    pthread_t thread[USERS + MAKERS];
    rlock_mutex_t handle[NAMES];
    long counter[NAMES]; /* each guarded by its lock */
    long rounds;
    atomic_long sections;
    atomic_int wrong;
} race;

static void name_of(char name[16], int i)
{
    snprintf(name, 16, "n%d", i);
}

static void wants(int rc, int a, int b)
{
    if (rc != a && rc != b)
        atomic_store(&race.wrong, rc != 0 ? rc : -1);
}

/* The section of a lock that this thread holds. */
static void add_one(int which)
{
    long counter = race.counter[which];
    sched_yield();
    race.counter[which] = counter + 1;
    atomic_fetch_add(&race.sections, 1);
}

static void *use_names(void *arg)
{
    (void)arg;
    for (long i = 0; i < race.rounds; i++) {
        int which = (int)(i % NAMES);
        wants(rlock_mutex_lock(&race.handle[which]), 0, 0);
        add_one(which);
        wants(rlock_mutex_unlock(&race.handle[which]), 0, 0);
    }
    return NULL;
}

/* Makes and destroys handles of its own with the same names. */
static void *make_names(void *arg)
{
    (void)arg;
    for (long i = 0; i < race.rounds; i++) {
        rlock_mutexattr_t attr;
        rlock_mutex_t mine;
        char name[16];
        name_of(name, (int)(i % NAMES));
        wants(rlock_mutexattr_init(&attr), 0, 0);
        wants(rlock_mutexattr_setclient(&attr, client), 0, 0);
        wants(rlock_mutex_init(&mine, &attr, name), 0, 0);
        int rc = rlock_mutex_trylock(&mine);
        wants(rc, 0, EBUSY);
        if (rc == 0) {
            wants(rlock_mutex_destroy(&mine), EBUSY, EBUSY);
            add_one((int)(i % NAMES));
            wants(rlock_mutex_unlock(&mine), 0, 0);
        }
        rc = rlock_mutex_destroy(&mine);
        wants(rc, 0, EBUSY);
        if (rc == EBUSY) { /* the handle still works */
            wants(rlock_mutex_lock(&mine), 0, 0);
            add_one((int)(i % NAMES));
            wants(rlock_mutex_unlock(&mine), 0, 0);
        }
    }
    return NULL;
}

START_TEST(init_and_destroy_of_names_that_others_lock_disturb_nobody)
{
    long sections = 0;
    memset(&race, 0, sizeof(race));
    race.rounds = test_count(2000, 60);
    for (int i = 0; i < NAMES; i++) {
        char name[16];
        name_of(name, i);
        race.handle[i] = mutex_of(client, name);
    }
    for (int i = 0; i < USERS + MAKERS; i++)
        OK(pthread_create(&race.thread[i], NULL, i < USERS ? use_names : make_names,
                          NULL));
    for (int i = 0; i < USERS + MAKERS; i++)
        pthread_join(race.thread[i], NULL);
    OK(atomic_load(&race.wrong));
    for (int i = 0; i < NAMES; i++) {
        sections += race.counter[i];
        OK(rlock_mutex_destroy(&race.handle[i]));
    }
    ck_assert_int_eq(sections, atomic_load(&race.sections));
}
END_TEST

/* How long destroy waits before it races with lock, in us; set between races. */
static long ahead_us;

static int run_destroy_behind(void *mutex)
{
    if (ahead_us > 0)
        usleep((useconds_t)ahead_us);
    return rlock_mutex_destroy(mutex);
}

START_TEST(racing_lock_and_destroy_return_matching_codes)
{
    struct actor a;
    long firsts = 0;

    ahead_us = 0;
    actor_start(&a);
    for (long i = test_count(2000, 150); i > 0; i--) {
        m = mutex_of(client, "n");
        rlock_mutex_t copy = m;
        actor_begin(&a, run_destroy_behind, &m);
        int rc = rlock_mutex_lock(&m), destroyed = actor_rc(&a);
        /* the lock came too late: give it a longer start the next time */
        if (rc == EINVAL) {
            OK(destroyed);
            ahead_us += 20 * test_ms(1);
        } else {
            ahead_us = ahead_us > 10 * test_ms(1) ? ahead_us - 10 * test_ms(1) : 0;
            OK(rc);
            if (destroyed == EBUSY)
                OK(rlock_mutex_unlock(&m));
            else { /* destroyed after lock looked at the handle, and before it queued */
                OK(destroyed);
                EXPECT(rlock_mutex_unlock(&m), EINVAL);
                OK(rlock_mutex_unlock(&copy));
            }
            firsts++;
        }
    }
    ck_assert_int_gt(firsts, 0);
    actor_end(&a);
}
END_TEST

static int run_destroy_when_free(void *mutex)
{
    int rc;
    while ((rc = rlock_mutex_destroy(mutex)) == EBUSY)
        sched_yield();
    return rc;
}

START_TEST(destroy_waits_for_no_more_than_the_unlock)
{
    struct actor a;
    actor_start(&a);
    for (long i = test_count(1000, 100); i > 0; i--) {
        m = mutex_of(client, "n");
        OK(rlock_mutex_lock(&m));
        actor_begin(&a, run_destroy_when_free, &m);
        OK(rlock_mutex_unlock(&m));
        OK(actor_rc(&a));
        EXPECT(rlock_mutex_lock(&m), EINVAL);
    }
    actor_end(&a);
}
END_TEST

/* As POSIX allows for mutexes: the next holder may destroy the lock and free its memory,
 * though the previous holder's unlock has not returned yet. */
START_TEST(handle_may_be_freed_by_the_next_holder)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct actor a;

    actor_start(&a);
    for (long i = test_count(2000, 150); i > 0; i--) {
        rlock_mutex_t *mapped =
            mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(mapped, MAP_FAILED);
        *mapped = mutex_of(client, "n");
        OK(actor_does(&a, run_lock, mapped));
        actor_begin(&a, run_unlock, mapped);
        OK(rlock_mutex_lock(mapped));
        OK(rlock_mutex_unlock(mapped));
        OK(rlock_mutex_destroy(mapped));
        munmap(mapped, page);
        OK(actor_rc(&a));
    }
    actor_end(&a);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("destroy");
    TCase *tc = tcase_create("destroy");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc,
                   destroy_of_what_this_thread_holds_is_EBUSY_and_the_handle_still_works);
    tcase_add_test(
        tc, destroy_of_what_another_thread_holds_is_EBUSY_and_the_handle_still_works);
    tcase_add_test(tc, destroy_while_a_thread_of_this_process_waits_is_EBUSY);
#ifdef AS_RWLOCK
    tcase_add_test(tc, destroy_while_a_thread_of_this_process_waits_to_read_is_EBUSY);
    tcase_add_test(tc, destroy_while_a_thread_of_this_process_reads_is_EBUSY);
#endif
    tcase_add_test(tc, destroy_of_what_only_another_process_holds_is_0);
    tcase_add_test(tc, destroy_twice_is_EINVAL);
    suite_add_tcase(suite, tc);

    tc = tcase_create("races");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, init_and_destroy_of_names_that_others_lock_disturb_nobody);
    tcase_add_test(tc, racing_lock_and_destroy_return_matching_codes);
    tcase_add_test(tc, destroy_waits_for_no_more_than_the_unlock);
    tcase_add_test(tc, handle_may_be_freed_by_the_next_holder);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
