/* SPDX-License-Identifier: Apache-2.0 */
/*
 * S1, S3 and L7 of the read-write lock between real processes: readers together, writers
 * alone, in every form of request, and whichever process is killed. What happened is
 * judged by rwhistory.h, and by the data that the lock protects.
 */
#include "rwscene.h"

#include <stdio.h>

enum {
    PROCESSES = 8,
    THREADS = 4,
    SECTIONS = 1650, /* of each of the 32 threads: 52,800 */
    SECTIONS_QUICK = 60,
    SECTIONS_KILLED = 400,
    SECTIONS_KILLED_QUICK = 40,
    KILLS = 6,
    KILLS_QUICK = 2,
    LEASE_MS = 1000, /* how long a killed holder blocks the lock */
    LATE_MS = 500,   /* 100 ms, and more for a busy machine */
    TIMEOUTS = 50,
    TIMEOUTS_QUICK = 10,
    SERVED_MS = 60000
};

static struct rwhistory *history;

static void open_scene(void)
{
    rw_open();
    history = rwhistory_new();
}

static void close_scene(void)
{
    rwhistory_free(history);
    rw_close();
}

static void no_fault(void)
{
    rwhistory_read_all(history, rw_log);
    const char *why = rwhistory_fault(history);
    ck_assert_msg(!why, "%s", why);
}

static long all_of(enum rwlog_kind kind)
{
    return rwhistory_count(history, kind, 0, RWHISTORY_WHO_MAX);
}

static void check_totals(const struct rw_totals *t)
{
    ck_assert_int_eq(t->torn, 0);
    ck_assert_int_eq(t->lost, 0);
    ck_assert_int_eq(t->failed, 0);
}

/* rule: S1 */
START_TEST(readers_of_8_processes_are_inside_at_once_and_a_writer_is_not)
{
    struct rw_totals totals;
    for (long i = 0; i < PROCESSES; i++)
        rw_start(&(struct rw_options){ 0 }, "s1", "s1", "s1", "s1");
    rw_go();
    ck_assert(rw_wait_inside((long)PROCESSES * THREADS, SCENE_SOON_MS));
    for (long i = 0; i < 2; i++)
        rw_start(&(struct rw_options){ 0 }, "w1");
    ck_assert(rw_wait_queued(2, 0, SCENE_SOON_MS));
    ck_assert_uint_eq(atomic_load(&rw_log->first), 0);
    ck_assert_int_eq(atomic_load(&rw_log->inside), PROCESSES * THREADS);
    atomic_store(&rw_log->open, true);
    ck_assert(rw_join(&totals, SCENE_SOON_MS));
    no_fault();
    check_totals(&totals);
    ck_assert_int_eq(rwhistory_most_readers(history), PROCESSES * THREADS);
    ck_assert_uint_eq(atomic_load(&rw_log->first), 2);
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}
END_TEST

static void start_mixed(const struct rw_options *options, long sections)
{
    char job[16];
    snprintf(job, sizeof(job), "m%ld", sections);
    for (long i = 0; i < PROCESSES; i++)
        rw_start(options, job, job, job, job);
}

/* rule: S1, S3 */
START_TEST(no_thread_meets_a_writer_and_tokens_grow_in_all_forms_of_lock)
{
    struct rw_totals totals;
    long sections = test_count(SECTIONS, SECTIONS_QUICK);
    start_mixed(&(struct rw_options){ .section_ms = test_ms(10000) }, sections);
    rw_go();
    ck_assert(rw_join(&totals, SCENE_SOON_MS));
    no_fault();
    printf("%ld sections, %ld written, %ld downgrades, %ld refused or timed out; "
           "%ld at once\n",
           totals.sections, totals.writes, all_of(RWLOG_DOWNGRADES), all_of(RWLOG_OUT),
           rwhistory_most_readers(history));
    check_totals(&totals);
    ck_assert_int_eq(totals.sections, PROCESSES * THREADS * sections);
    ck_assert_uint_eq(atomic_load(&rw_log->first), (uint64_t)totals.writes);
    ck_assert_uint_eq(atomic_load(&rw_log->second), (uint64_t)totals.writes);
    ck_assert_int_gt(all_of(RWLOG_DOWNGRADES), 0);
    ck_assert_int_gt(rwhistory_most_readers(history), 1);
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}
END_TEST

/* Killed waiters stay in the queues until another client comes by. */
static bool is_clean_again(void *arg)
{
    rlock_rwlock_t *lock = arg;
    return rlock_rwlock_wrlock(lock) == 0 && rlock_rwlock_unlock(lock) == 0 &&
           rw_wait_clean(0);
}

static void come_by(const char *url)
{
    rlock_rwlock_t lock;
    rlock_client_t *client = scene_open_client(url, NULL);
    rw_init(&lock, client, RLOCK_RWLOCK_PHASE_FAIR_NP);
    ck_assert(test_wait_until(is_clean_again, &lock, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_client_close(client), 0);
}

struct mark {
    uint64_t events;
};

static bool log_has_grown(void *arg)
{
    const struct mark *mark = arg;
    return atomic_load(&rw_log->next) >= mark->events;
}

/* rule: S1, S3 */
START_TEST(no_thread_meets_a_writer_when_processes_are_killed_and_restarted)
{
    enum { EVENTS_BETWEEN = 200 };
    struct rw_totals totals;
    struct rw_options options = { .lease = test_ms(LEASE_MS),
                                  .presence = test_ms(LEASE_MS),
                                  .section_ms = test_ms(LEASE_MS) };
    long kills = test_count(KILLS, KILLS_QUICK);
    start_mixed(&options, test_count(SECTIONS_KILLED, SECTIONS_KILLED_QUICK));
    rw_go();
    for (long i = 0; i < kills; i++) {
        struct mark mark = { atomic_load(&rw_log->next) + EVENTS_BETWEEN };
        ck_assert(test_wait_until(log_has_grown, &mark, SERVED_MS));
        rw_kill(&rw_parties[i]);
        if (i % 2 == 0)
            rw_restart_argv(&rw_parties[i], &options, TEST_ARGV("m40", "m40", "m40"));
    }
    ck_assert(rw_join(&totals, SCENE_SOON_MS));
    no_fault();
    printf("%ld sections, %ld written, %ld killed\n", totals.sections, totals.writes,
           kills);
    check_totals(&totals);
    ck_assert_int_eq(all_of(RWLOG_DEAD), kills * THREADS);
    ck_assert_uint_ge(atomic_load(&rw_log->first), (uint64_t)totals.writes);
    come_by(scene_server.url);
}
END_TEST

/* rule: L7 */
START_TEST(every_call_returns_at_its_deadline_and_no_waiter_is_left)
{
    char job[16];
    struct rw_totals totals;
    snprintf(job, sizeof(job), "t%ld", test_count(TIMEOUTS, TIMEOUTS_QUICK));
    for (long i = 0; i < PROCESSES; i++)
        rw_start(&(struct rw_options){ 0 }, job, job, job, job);
    rw_go();
    ck_assert(rw_join(&totals, SCENE_SOON_MS));
    no_fault();
    long late = atomic_load(&rw_log->late_ms), out = all_of(RWLOG_OUT);
    printf("%ld entered, %ld timed out, at most %ld ms late\n", totals.sections, out,
           late);
    check_totals(&totals);
    ck_assert_int_gt(totals.sections, 0);
    ck_assert_int_gt(out, 0);
    ck_assert_int_le(late, test_ms(LATE_MS));
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rwlock crowd");
    TCase *s1 = scene_tcase(s, "S1", open_scene, close_scene);
    tcase_add_test(s1, readers_of_8_processes_are_inside_at_once_and_a_writer_is_not);
    tcase_add_test(s1, no_thread_meets_a_writer_and_tokens_grow_in_all_forms_of_lock);
    tcase_add_test(s1, no_thread_meets_a_writer_when_processes_are_killed_and_restarted);
    test_long_tcase(s1);

    TCase *l7 = scene_tcase(s, "L7", open_scene, close_scene);
    tcase_add_test(l7, every_call_returns_at_its_deadline_and_no_waiter_is_left);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
