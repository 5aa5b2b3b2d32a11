/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* L5 with many waiters: a thousand threads of ten processes, and more threads of one
 * process than one refresh can name. */
#include "gathering.h"
#include "history.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROCESSES = 10,
    THREADS = 100,
    FEW_THREADS = 10, /* where threads are slow and big */
    MANY = 600,       /* one refresh names 512 */
    MANY_FEW = 60,
    KEPT = 20,
    REQUESTS_PER_S = 50,
    WATCH_MS = 12000,
    WATCH_QUICK_MS = 2000,
    /* a longer stall of the process may cost a place, as L5 allows */
    PRESENCE_MS = 2000,
    PRESENCE_MAX_MS = 6000, /* where everything is slow */
    SERVED_MS = 30000
};

static struct member members[PROCESSES];
static long member_count, threads; /* who = member * threads + thread */
static struct history *history;
static struct place *places; /* by who */

static void open_scene(void)
{
    gather_open();
    memset(members, 0, sizeof(members));
    history = history_new();
    member_count = 0;
    places = NULL;
}

static void close_scene(void)
{
    for (long i = 0; i < member_count; i++)
        member_end(&members[i]);
    history_free(history);
    free(places);
    gather_close();
}

static void start_members(long count, const char *parameters)
{
    for (; member_count < count; member_count++)
        member_start(&members[member_count], parameters);
}

/* Makes every thread ask, one process after the other in turn, each behind all earlier
 * ones. The test holds the lock. */
static void all_ask(long threads_each)
{
    threads = threads_each;
    places = calloc((size_t)(member_count * threads), sizeof(*places));
    ck_assert_ptr_nonnull(places);
    ck_assert_int_eq(rlock_fair_lock(&gather_lock), 0);
    for (long t = 0; t < threads; t++) {
        for (long p = 0; p < member_count; p++) {
            long who = p * threads + t;
            ck_assert(member_asks(&members[p], t, 0, 0, &places[who]));
            history_ask(history, who, places[who].ticket);
        }
    }
    ck_assert_int_eq(gather_queued(), member_count * threads);
}

/* The test releases the lock, which then goes through all threads. */
static void all_are_served(void)
{
    struct event e;
    long long scripts = gather_scripts_run();
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_fair_unlock(&gather_lock), 0);
    for (long p = 0; p < member_count; p++)
        member_tell(&members[p], "idle");
    long took = (long)(test_now_ms() - begin);
    scripts = gather_scripts_run() - scripts;
    while (gather_event(&e)) {
        long p = 0;
        while (p < member_count && members[p].pid != e.pid)
            p++;
        ck_assert_int_lt(p, member_count);
        ck_assert_msg(strcmp(e.what, "fails") != 0, "lock: %d", (int)e.number);
        ck_assert(strcmp(e.what, "gave") != 0 || e.number == 0);
        if (strcmp(e.what, "got") == 0 && e.thread < threads)
            history_grant(history, p * threads + e.thread, e.number);
    }
    const char *why = history_fault(history);
    ck_assert_msg(!why, "%s", why);
    long served = member_count * threads;
    printf("%ld served in %ld ms by %lld scripts\n", served, took, scripts);
    ck_assert_int_lt(took, test_ms(SERVED_MS));
    /* One release each: all threads knew their places recently enough to believe a grant
     * without asking again. On a slow machine, leases are renewed and grants grow old on
     * the way. */
    if (took < PRESENCE_MS)
        ck_assert_int_lt(scripts, served + served / 2);
}

/* ---- a thousand */

/* rule: L5 */
START_TEST(thousand_waiting_threads_cost_little_and_are_served_in_order)
{
    start_members(PROCESSES, "");
    all_ask(gather_scaled(THREADS, FEW_THREADS, "threads of each process"));
    long ms = test_count(WATCH_MS, WATCH_QUICK_MS);

    long long scripts = gather_scripts_run();
    long long reads = test_redis_info(gather_redis, "total_reads_processed");
    int64_t begin = test_now_ms();
    test_pause_ms(ms); /* the time to be measured */
    long took = (long)(test_now_ms() - begin);
    reads = test_redis_info(gather_redis, "total_reads_processed") - reads;
    scripts = gather_scripts_run() - scripts;
    printf("%ld waiting: %lld scripts and %lld reads in %ld ms\n", member_count * threads,
           scripts, reads, took);
    ck_assert_int_gt(scripts, 0); /* otherwise nothing was measured */
    ck_assert_int_lt(scripts * 1000, REQUESTS_PER_S * took);
    ck_assert_int_lt(reads * 1000, REQUESTS_PER_S * took);

    ck_assert_int_eq(gather_queued(), member_count * threads);
    all_are_served();
    gather_expect_tidy();
}
END_TEST

/* ---- many threads of one process */

static long presence_ms(void)
{
    long ms = test_ms(PRESENCE_MS);
    return ms < PRESENCE_MAX_MS ? ms : PRESENCE_MAX_MS;
}

static void pause_for_some_presences(void)
{
    test_pause_ms(presence_ms() * test_count(6, 3) / 2);
}

static void many_ask(void)
{
    char parameters[64];
    snprintf(parameters, sizeof(parameters), "?presence=%ld&lease=%ld", presence_ms(),
             presence_ms());
    start_members(1, parameters);
    long count = gather_scaled(MANY, MANY_FEW, "threads");
    member_tell(&members[0], "keep %ld %d", count, KEPT);
    member_tell(&members[0], "idle");
    all_ask(count);
}

/* rule: L5 */
START_TEST(threads_beyond_the_limit_of_a_refresh_stay_in_their_places)
{
    size_t before_count, after_count;
    many_ask();
    struct place *before = gather_queue(&before_count);
    pause_for_some_presences();
    struct place *after = gather_queue(&after_count);
    ck_assert_uint_eq(before_count, after_count);
    for (size_t i = 0; i < before_count; i++) {
        ck_assert_str_eq(before[i].id, after[i].id);
        ck_assert(before[i].ticket == after[i].ticket);
    }
    free(before);
    free(after);
    all_are_served();
}
END_TEST

static bool are_let(void *unused)
{
    char key[32];
    (void)unused;
    for (long i = threads; i < threads + KEPT; i++) {
        snprintf(key, sizeof(key), GATHER_LOCK "-%ld", i);
        if (test_redis_exists(gather_redis, key))
            return false;
    }
    return true;
}

/* rule: L5 */
START_TEST(holds_are_renewed_while_many_threads_of_their_process_wait)
{
    many_ask();
    pause_for_some_presences(); /* as long as several leases */
    ck_assert_int_eq(member_tell(&members[0], "losses"), 0);
    member_tell(&members[0], "let %ld %d", threads, KEPT);
    /* waits for the release of these locks, which is not to be counted */
    ck_assert(test_wait_until(are_let, NULL, SERVED_MS));
    all_are_served(); /* which asserts that each "gave" is 0 */
}
END_TEST

/* Begins a new history with the queue's new tickets, of ids that asked before. */
static void asked_anew(void)
{
    size_t count;
    struct place *queue = gather_queue(&count);
    history_free(history);
    history = history_new();
    for (size_t i = 0; i < count; i++) {
        long who = 0;
        while (who < threads && strcmp(places[who].id, queue[i].id) != 0)
            who++;
        ck_assert_int_lt(who, threads);
        history_ask(history, who, queue[i].ticket);
    }
    free(queue);
}

/* rule: L5 */
START_TEST(lost_queue_is_rebuilt_by_all_threads)
{
    many_ask();
    test_redis_do(gather_redis, "DEL", GATHER_QUEUE);
    ck_assert(gather_wait_queued(threads, 2 * PRESENCE_MS));
    asked_anew();
    all_are_served();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("fair crowd");
    TCase *tc = tcase_create("L5");
    tcase_add_unchecked_fixture(tc, gather_start, gather_stop);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    tcase_add_test(tc, thousand_waiting_threads_cost_little_and_are_served_in_order);
    tcase_add_test(tc, threads_beyond_the_limit_of_a_refresh_stay_in_their_places);
    tcase_add_test(tc, holds_are_renewed_while_many_threads_of_their_process_wait);
    tcase_add_test(tc, lost_queue_is_rebuilt_by_all_threads);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
