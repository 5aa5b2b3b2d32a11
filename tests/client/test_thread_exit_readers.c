/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that end while they read: alone, beside other readers, and as writers who read,
 * too. How threads end: test_thread_exit.c. */
#include "fixture.h"

enum { SOON_MS = 10000, READERS = 8 };

static rlock_rwlock_t l, theirs;

/* Leases of ten minutes: a lock that comes free in a test was given up. */
static void set_up(void)
{
    fixture_open();
    reopen_with("?lease=600000");
    l = rwlock_of(client, "n");
    theirs = rwlock_of(fixture_other(), "n");
}

static void others_may_write(void)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    OK(rlock_rwlock_clockwrlock(&theirs, CLOCK_MONOTONIC, &at));
    OK(rlock_rwlock_unlock(&theirs));
}

static int run_read_twice(void *rwlock)
{
    int rc = rlock_rwlock_rdlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_rdlock(rwlock);
}

static int run_read_fixed(void *rwlock)
{
    return rlock_rwlock_rdlock_lease(rwlock, 600000);
}

static int run_write_and_read(void *rwlock)
{
    int rc = rlock_rwlock_wrlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_rdlock(rwlock);
}

static int run_downgraded(void *rwlock)
{
    int rc = rlock_rwlock_wrlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_downgrade(rwlock);
}

static const struct {
    int (*run)(void *);
    rlock_mode_t mode;
} holders[] = {
    { run_rdlock, RLOCK_MODE_READ },     { run_read_twice, RLOCK_MODE_READ },
    { run_read_fixed, RLOCK_MODE_READ }, { run_write_and_read, RLOCK_MODE_EXCLUSIVE },
    { run_downgraded, RLOCK_MODE_READ },
};

START_TEST(ended_thread_gives_up_what_it_reads_and_writes)
{
    struct actor a;
    actor_start(&a);
    OK(actor_does(&a, holders[_i].run, &l));
    EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
    actor_end(&a);
    const struct told *died = event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS);
    ck_assert_ptr_nonnull(died);
    ck_assert_str_eq(died->name, "n");
    ck_assert_int_eq(died->type, RLOCK_TYPE_RWLOCK);
    ck_assert_int_eq(died->mode, holders[_i].mode);
    ck_assert_uint_eq(died->token, 0);
    ck_assert_int_eq(died->remaining_ms, 0);
    ck_assert(pthread_equal(died->thread, a.thread));
    others_may_write();
    ck_assert_uint_eq(stats_of(client).owners_died, 1);
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}
END_TEST

START_TEST(threads_that_share_the_hold_continue_reading)
{
    struct actor a, b;
    actor_start(&a);
    actor_start(&b);
    /* the thread that ends is the one that made the hold, or the one that joined it */
    OK(actor_does(_i ? &a : &b, run_rdlock, &l));
    OK(actor_does(_i ? &b : &a, run_rdlock, &l));
    ck_assert_uint_eq(stats_of(client).holds_now, 1);
    actor_end(&a);
    const struct told *died = event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS);
    ck_assert_ptr_nonnull(died);
    ck_assert(pthread_equal(died->thread, a.thread));
    ck_assert_int_eq(actor_does(&b, run_rwstate, &l), RLOCK_SAFE);
    ck_assert_int_eq(actor_does(&b, run_rwholdcount, &l), 1);
    EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
    /* only the ended thread's share is gone: another thread may join */
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_unlock(&l));
    OK(actor_does(&b, run_rwunlock, &l));
    others_may_write();
    actor_end(&b);
    ck_assert_uint_eq(stats_of(client).owners_died, 1);
    ck_assert_ptr_null(event_of(RLOCK_EVENT_OWNER_DIED, 0));
}
END_TEST

START_TEST(lock_is_free_when_all_its_readers_have_ended)
{
    struct actor readers[READERS];
    for (int i = 0; i < READERS; i++) {
        actor_start(&readers[i]);
        OK(actor_does(&readers[i], run_rdlock, &l));
    }
    for (int i = 0; i < READERS; i++) {
        EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
        actor_end(&readers[i]);
    }
    for (int i = 0; i < READERS; i++)
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS));
    others_may_write();
    ck_assert_uint_eq(stats_of(client).owners_died, READERS);
}
END_TEST

START_TEST(writer_of_the_same_process_gets_it)
{
    struct actor a;
    struct task writer;
    actor_start(&a);
    OK(actor_does(&a, run_rdlock, &l));
    task_start(&writer, run_wrlock, &l);
    ck_assert(wait_waiters(client, 1));
    actor_end(&a);
    ck_assert(task_ends(&writer, SOON_MS));
    OK(task_join(&writer)); /* the writer ends with its lock, too */
    others_may_write();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("thread exit of readers");
    TCase *tc = tcase_create("readers");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, ended_thread_gives_up_what_it_reads_and_writes, 0,
                        sizeof(holders) / sizeof(holders[0]));
    tcase_add_loop_test(tc, threads_that_share_the_hold_continue_reading, 0, 2);
    tcase_add_test(tc, lock_is_free_when_all_its_readers_have_ended);
    tcase_add_test(tc, writer_of_the_same_process_gets_it);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
