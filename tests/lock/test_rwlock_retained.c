/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=K12,K13,K14 */
/* A process reads without asking the server, and retains its read holds (rules K14, K15),
 * with a server, the client of another process, and processes that fork, stop and die.
 * Retained write locks are in test_rwlock_retained_write.c. */
#include "fixture.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SOON_MS = 10000,
    RETAIN_MS = 60000,
    SHORT_MS = 300,
    PRESENCE_MS = 1800,
    ID_SIZE = 128,
    ACTORS = 4
};

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"
#define READERS "rlock:{n}:readers"
#define KEEPERS "rlock:{n}:keepers"

static rlock_rwlock_t l, theirs;
static struct actor actor[ACTORS];

static void read_once(void)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_unlock(&l));
}

static bool is_kept(void)
{
    return test_redis_exists(redis, "n");
}

static void keep_with(long retain_ms, long presence_ms)
{
    char parameters[100];
    snprintf(parameters, sizeof(parameters), "?retain=%ld&presence=%ld", retain_ms,
             presence_ms);
    reopen_with(parameters);
    l = rwlock_of(client, "n");
}

/* Makes the same client, behind the proxy. */
static void keep_behind_proxy(long presence_ms)
{
    char parameters[100];
    snprintf(parameters, sizeof(parameters), "?retain=%d&presence=%ld", RETAIN_MS,
             presence_ms);
    close_client(client);
    proxy = test_proxy_start(&server);
    client = open_at(test_proxy_url(proxy), parameters);
    l = rwlock_of(client, "n");
}

static void set_up(void)
{
    fixture_open();
    fixture_load_scripts();
    theirs = rwlock_of(fixture_other(), "n");
    keep_with(RETAIN_MS, 30000);
    for (int i = 0; i < ACTORS; i++)
        actor_start(&actor[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < ACTORS; i++)
        if (actor[i].thread)
            actor_end(&actor[i]);
    fixture_close();
    test_proxy_stop(proxy);
    proxy = NULL;
}

static int run_write_pair(void *lock)
{
    int rc = rlock_rwlock_wrlock(lock);
    return rc == 0 ? rlock_rwlock_unlock(lock) : rc;
}

static int run_tryrdlock(void *lock)
{
    return rlock_rwlock_tryrdlock(lock);
}

/* Requests without those of the watchdog. */
static long long asked(void)
{
    rlock_stats_t stats = stats_of(client);
    return (long long)(stats.round_trips - stats.renewals);
}

static void expect_kept(void)
{
    read_once();
    ck_assert(is_kept());
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", KEEPERS), 1);
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}

/* ---- K14 */

/* rule: K14 */
START_TEST(reading_again_needs_no_server)
{
    expect_kept();
    rlock_stats_t stats = stats_of(client);
    long long before = asked();
    for (int i = 0; i < 100; i++) {
        read_once();
        OK(rlock_rwlock_tryrdlock(&l));
        OK(rlock_rwlock_rdlock(&l)); /* re-entry */
        OK(rlock_rwlock_unlock(&l));
        OK(rlock_rwlock_unlock(&l));
    }
    ck_assert_int_eq((int)(asked() - before), 0);
    ck_assert_uint_eq(stats_of(client).acquisitions, stats.acquisitions + 200);
    ck_assert_uint_eq(stats_of(client).local_handovers, stats.local_handovers + 200);
    ck_assert(is_kept());
}
END_TEST

/* Counted by the server. The library asks once a second, for all that it retains. */
/* rule: K14 */
START_TEST(reading_again_sends_no_command)
{
    expect_kept();
    long long before = test_redis_calls(redis, "evalsha");
    uint64_t renewals = stats_of(client).renewals;
    for (int i = 0; i < 1000; i++)
        read_once();
    ck_assert_int_le((int)(test_redis_calls(redis, "evalsha") - before),
                     (int)(stats_of(client).renewals - renewals) + 1);
}
END_TEST

/* rule: K14 */
START_TEST(threads_share_a_read_hold_without_the_server)
{
    OK(rlock_rwlock_rdlock(&l));
    long long before = asked();
    for (int i = 0; i < ACTORS; i++)
        OK(actor_does(&actor[i], i == 1 ? run_tryrdlock : run_rdlock, &l));
    ck_assert_int_eq((int)(asked() - before), 0);
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 1);
    OK(rlock_rwlock_unlock(&l));
    for (int i = 0; i < ACTORS; i++)
        OK(actor_does(&actor[i], run_rwunlock, &l));
    ck_assert_int_eq((int)(asked() - before), 0);
    ck_assert(is_kept());
}
END_TEST

/* rule: K14 */
START_TEST(without_retention_every_new_reader_asks_the_server)
{
    rlock_rwlock_t plain = l;
    plain.rlk.rlk_retain_ms = 1; /* 0 ms */
    OK(rlock_rwlock_rdlock(&l));
    long long before = asked();
    OK(actor_does(&actor[0], run_rdlock, &plain));
    ck_assert_int_eq((int)(asked() - before), 1);
    OK(rlock_rwlock_unlock(&l));
    OK(actor_does(&actor[0], run_rwunlock, &plain));
    ck_assert(!is_kept());
    ck_assert(!test_redis_exists(redis, KEEPERS));
}
END_TEST

/* A thread whose handle retains nothing may share what another handle retains, if the
 * server agrees, and ends the retention. */
/* rule: K14 */
START_TEST(requester_shares_the_retained_read_hold)
{
    rlock_rwlock_t plain = l;
    plain.rlk.rlk_retain_ms = 1; /* 0 ms */
    for (int i = 0; i < 3; i++) {
        expect_kept();
        OK(i == 1 ? rlock_rwlock_tryrdlock(&plain) : rlock_rwlock_rdlock(&plain));
        ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 1);
        ck_assert_uint_eq(stats_of(client).holds_now, 1);
        OK(rlock_rwlock_unlock(&plain));
        ck_assert_uint_eq(stats_of(client).holds_now, 0);
        ck_assert(!is_kept());
    }
}
END_TEST

/* The recall is lost, but the reply to a new reader says that a writer waits. */
/* rule: K14 */
START_TEST(reply_to_a_new_reader_reports_a_writer)
{
    keep_behind_proxy(30000);
    TEST_RULE(proxy, .contains = "1 wanted ", .on = TEST_ON_MESSAGE, .action = TEST_DROP);
    rlock_rwlock_t plain = l;
    plain.rlk.rlk_retain_ms = 1; /* 0 ms */
    OK(rlock_rwlock_rdlock(&l));
    actor_begin(&actor[0], run_write_pair, &theirs);
    ck_assert(wait_size(QUEUE, 1));
    EXPECT(actor_does(&actor[1], run_tryrdlock, &plain), EBUSY);
    EXPECT(actor_does(&actor[1], run_tryrdlock, &l), EBUSY);
    OK(rlock_rwlock_unlock(&l));
    OK(actor_rc(&actor[0]));
}
END_TEST

/* Ten times, within the time of a few polls. */
/* rule: K14 */
START_TEST(writer_gets_a_retained_read_lock_at_once)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS / 2));
    for (int i = 0; i < 10; i++) {
        expect_kept();
        OK(rlock_rwlock_clockwrlock(&theirs, CLOCK_MONOTONIC, &at));
        OK(rlock_rwlock_unlock(&theirs));
    }
    ck_assert_uint_ge(stats_of(client).messages, 10);
}
END_TEST

static bool gets_it(void *lock)
{
    return rlock_rwlock_trywrlock(lock) == 0;
}

/* rule: K15 */
START_TEST(trywrlock_recalls_a_retained_read_lock)
{
    expect_kept();
    EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
    ck_assert(test_wait_until(gets_it, &theirs, SOON_MS / 2));
    OK(rlock_rwlock_unlock(&theirs));
}
END_TEST

/* rule: K15 */
START_TEST(waitfree_recalls_a_retained_read_lock)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS / 2));
    expect_kept();
    OK(rlock_waitfree(other, "n", &at));
    ck_assert(!is_kept());
}
END_TEST

/* rule: K14 */
START_TEST(readers_elsewhere_do_not_end_a_retained_read_hold)
{
    expect_kept();
    uint64_t messages = stats_of(client).messages;
    for (int i = 0; i < 10; i++) {
        OK(rlock_rwlock_rdlock(&theirs));
        read_once();
        OK(rlock_rwlock_unlock(&theirs));
    }
    ck_assert_uint_eq(stats_of(client).messages, messages);
    ck_assert(is_kept());
}
END_TEST

static bool is_told(void *messages)
{
    return stats_of(client).messages > *(uint64_t *)messages;
}

/* Readers inside finish, and may read again. New readers queue behind the writer. */
/* rule: K14 */
START_TEST(new_readers_queue_once_a_writer_waits)
{
    uint64_t messages = stats_of(client).messages;
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock, &l));
    actor_begin(&actor[3], run_wrlock, &theirs);
    ck_assert(wait_size(QUEUE, 1));
    ck_assert(test_wait_until(is_told, &messages, SOON_MS));
    test_pause_ms(20);
    EXPECT(rlock_rwlock_tryrdlock(&l), EBUSY);
    actor_begin(&actor[2], run_rdlock, &l);
    ck_assert(wait_size(RQUEUE, 1));
    OK(actor_does(&actor[0], run_rdlock, &l)); /* re-entry */
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_rc(&actor[3])); /* though a reader waits */
    ck_assert(!actor_done(&actor[2], 20));
    OK(actor_does(&actor[3], run_rwunlock, &theirs));
    OK(actor_rc(&actor[2]));
    OK(actor_does(&actor[2], run_rwunlock, &l));
}
END_TEST

static struct {
    atomic_bool over;
    atomic_long sections;
    bool hurry;
} flood;

static int run_flood(void *lock)
{
    while (!atomic_load(&flood.over)) {
        int rc = rlock_rwlock_rdlock(lock);
        if (rc != 0)
            return rc;
        if (!flood.hurry)
            test_pause_ms(2); /* so that the readers overlap */
        flood.sections++;
        rc = rlock_rwlock_unlock(lock);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* _i 1: the recall is lost, so that the next poll must report the writer (H8). */
/* rule: K14 */
START_TEST(overlapping_readers_do_not_starve_a_writer)
{
    struct task tasks[4];
    struct timespec at;
    keep_behind_proxy(_i ? PRESENCE_MS : 30000);
    int rule = TEST_RULE(proxy, .contains = "1 wanted ", .on = TEST_ON_MESSAGE,
                         .action = _i ? TEST_DROP : TEST_WATCH);
    memset(&flood, 0, sizeof(flood));
    for (int i = 0; i < 4; i++)
        task_start(&tasks[i], run_flood, &l);
    while (flood.sections < 100)
        test_pause_ms(2);
    for (int i = 0; i < 3; i++) {
        at = test_in_ms(CLOCK_MONOTONIC, test_ms(_i ? 3000 : SOON_MS));
        OK(rlock_rwlock_clockwrlock(&theirs, CLOCK_MONOTONIC, &at));
        OK(rlock_rwlock_unlock(&theirs));
        long now = flood.sections;
        while (flood.sections < now + 20)
            test_pause_ms(2);
    }
    atomic_store(&flood.over, true);
    for (int i = 0; i < 4; i++)
        OK(task_join(&tasks[i]));
    ck_assert_uint_gt(test_proxy_hits(proxy, rule), 0);
    ck_assert_uint_gt(stats_of(client).local_handovers, 50);
}
END_TEST

/* The writer is a thread of the readers' process. */
/* rule: K14 */
START_TEST(overlapping_readers_do_not_starve_a_writer_of_their_process)
{
    struct task tasks[3];
    memset(&flood, 0, sizeof(flood));
    flood.hurry = true;
    for (int i = 0; i < 3; i++)
        task_start(&tasks[i], run_flood, &l);
    for (int i = 0; i < 20; i++) {
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
        OK(rlock_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &at));
        OK(rlock_rwlock_unlock(&l));
        long now = flood.sections;
        while (flood.sections < now + 20)
            test_pause_ms(1);
    }
    atomic_store(&flood.over, true);
    for (int i = 0; i < 3; i++)
        OK(task_join(&tasks[i]));
    ck_assert_uint_eq(stats_of(client).losses, 0);
}
END_TEST

/* No thread is inside, and the recall is lost: the writer waits for a third of a
 * presence, and no longer (K5). */
/* rule: K14 */
START_TEST(lost_recall_is_found_by_the_next_refresh)
{
    keep_behind_proxy(PRESENCE_MS);
    int rule = TEST_RULE(proxy, .contains = "1 wanted ", .on = TEST_ON_MESSAGE,
                         .action = TEST_DROP);
    for (int i = 0; i < 3; i++) {
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(3000));
        expect_kept();
        OK(rlock_rwlock_clockwrlock(&theirs, CLOCK_MONOTONIC, &at));
        OK(rlock_rwlock_unlock(&theirs));
    }
    ck_assert_uint_eq(test_proxy_hits(proxy, rule), 3);
}
END_TEST

/* While no thread is inside, the lock's TTL is that of a grant (K5), and the retention
 * ends after a time (K9). */
/* rule: K14 */
START_TEST(read_lock_is_retained_for_a_limited_time)
{
    keep_with(test_ms(SHORT_MS), PRESENCE_MS);
    expect_kept();
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), PRESENCE_MS);
    ck_assert(wait_key("n", false, SOON_MS));
    ck_assert(!test_redis_exists(redis, KEEPERS));
    ck_assert_uint_eq(stats_of(client).losses, 0);
    expect_kept(); /* and it is retained again */
}
END_TEST

static bool is_asked(void *before)
{
    return stats_of(client).renewals >= *(uint64_t *)before + 6;
}

/* rule: K14 */
START_TEST(retained_read_lock_is_refreshed_and_lasts)
{
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    uint64_t before = stats_of(client).renewals;
    ck_assert(test_wait_until(is_asked, &before, SOON_MS));
    long long requests = asked();
    read_once();
    ck_assert_int_eq((int)(asked() - requests), 0);
}
END_TEST

/* rule: K14 */
START_TEST(reader_of_a_retained_hold_has_the_whole_lease)
{
    long ms = 0;
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    OK(rlock_rwlock_rdlock(&l));
    for (int i = 0; i < 1000 && ms <= 20000; i++) {
        OK(rlock_rwlock_getremaining(&l, &ms));
        test_pause_ms(10);
    }
    ck_assert_int_gt(ms, 20000);
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

/* ---- how it ends */

/* rule: K8 */
START_TEST(forced_or_deleted_read_lock_is_acquired_again)
{
    keep_with(RETAIN_MS, PRESENCE_MS);
    expect_kept();
    if (_i) {
        OK(rlock_force_unlock(other, "n"));
        ck_assert(!test_redis_exists(redis, KEEPERS));
        ck_assert(!is_kept());
    } else {
        test_redis_do(redis, "DEL", "n", READERS);
    }
    for (int i = 0; i < 1000 && stats_of(client).losses == 0; i++)
        test_pause_ms(10);
    ck_assert_uint_eq(stats_of(client).losses, 1);
    ck_assert(!event_seen(RLOCK_EVENT_LOST)); /* no thread held it */
    expect_kept();
}
END_TEST

/* rule: K9 */
START_TEST(destroy_and_close_release_a_retained_read_lock)
{
    expect_kept();
    OK(rlock_rwlock_destroy(&l));
    ck_assert(is_kept());
    l = rwlock_of(client, "n");
    OK(rlock_rwlock_rdlock(&l));
    EXPECT(rlock_rwlock_destroy(&l), EBUSY);
    OK(rlock_rwlock_unlock(&l));
    close_client(client);
    client = NULL;
    ck_assert(!is_kept());
    ck_assert(!test_redis_exists(redis, KEEPERS));
    keep_with(RETAIN_MS, 30000);
}
END_TEST

/* rule: K14 */
START_TEST(fixed_lease_has_a_hold_of_its_own)
{
    expect_kept();
    OK(rlock_rwlock_rdlock_lease(&l, 60000));
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 2);
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", KEEPERS), 1);
    OK(rlock_rwlock_unlock(&l));
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 1);
    long long before = asked();
    read_once();
    ck_assert_int_eq((int)(asked() - before), 0);
}
END_TEST

/* A thread that extends to a fixed lease retains nothing. */
/* rule: K14 */
START_TEST(hold_that_became_fixed_is_not_retained)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_extend(&l, 60000));
    OK(rlock_rwlock_unlock(&l));
    ck_assert(!is_kept());
}
END_TEST

/* Starts a process that retains a read hold. */
static void start_keeper(struct worker *w)
{
    char open[300];
    worker_start(w, NULL);
    snprintf(open, sizeof(open), "open unix://%s retain=%d presence=%d", server.path,
             RETAIN_MS, PRESENCE_MS);
    ck_assert(worker_says(w, open, "ok"));
    ck_assert(worker_says(w, "init l n rwlock=1", "ok"));
    for (int i = 0; i < 1000 && !is_kept(); i++) { /* until its mailbox is heard */
        ck_assert(worker_says(w, "rdlock l", "ok"));
        ck_assert(worker_says(w, "unlock l", "ok"));
    }
    ck_assert(is_kept());
}

/* rule: K12 */
START_TEST(child_of_a_fork_has_no_retained_hold)
{
    struct worker w;
    char keeper[ID_SIZE];
    if (!test_can_fork("child_of_a_fork_has_no_retained_hold"))
        return;
    start_keeper(&w);
    const redisReply *keepers = test_redis_do(redis, "ZRANGE", KEEPERS, "0", "-1");
    ck_assert_uint_eq(keepers->elements, 1);
    snprintf(keeper, sizeof(keeper), "%s", keepers->element[0]->str);
    ck_assert(worker_says(&w, "fork tryrdlock l", "ok"));
    ck_assert_ptr_nonnull(worker_news(&w, "done fork ok", SOON_MS));
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 2);
    ck_assert(worker_says(&w, "rdlock l", "ok")); /* the parent still has its hold */
    ck_assert(worker_says(&w, "unlock l", "ok"));
    /* the child retains its own hold, if its mailbox was heard by then */
    ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", KEEPERS, keeper));
    worker_end(&w);
}
END_TEST

/* A process that is stopped or killed while no thread is inside delays others for a
 * presence. */
/* rule: K13 */
START_TEST(stopped_process_with_a_retained_lock_costs_a_presence)
{
    struct worker w;
    struct timespec at;
    start_keeper(&w);
    if (_i)
        worker_kill(&w);
    else
        worker_stop(&w);
    at = test_in_ms(CLOCK_MONOTONIC, PRESENCE_MS + test_ms(3000));
    OK(rlock_rwlock_clockwrlock(&theirs, CLOCK_MONOTONIC, &at));
    OK(rlock_rwlock_unlock(&theirs));
    if (!_i)
        worker_cont(&w);
    worker_end(&w);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock: retained");
    TCase *tc = tcase_create("read");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, reading_again_needs_no_server);
    tcase_add_test(tc, reading_again_sends_no_command);
    tcase_add_test(tc, threads_share_a_read_hold_without_the_server);
    tcase_add_test(tc, without_retention_every_new_reader_asks_the_server);
    tcase_add_test(tc, requester_shares_the_retained_read_hold);
    tcase_add_test(tc, reply_to_a_new_reader_reports_a_writer);
    tcase_add_test(tc, writer_gets_a_retained_read_lock_at_once);
    tcase_add_test(tc, trywrlock_recalls_a_retained_read_lock);
    tcase_add_test(tc, waitfree_recalls_a_retained_read_lock);
    tcase_add_test(tc, readers_elsewhere_do_not_end_a_retained_read_hold);
    tcase_add_test(tc, new_readers_queue_once_a_writer_waits);
    tcase_add_loop_test(tc, overlapping_readers_do_not_starve_a_writer, 0, 2);
    tcase_add_test(tc, overlapping_readers_do_not_starve_a_writer_of_their_process);
    tcase_add_test(tc, lost_recall_is_found_by_the_next_refresh);
    tcase_add_test(tc, read_lock_is_retained_for_a_limited_time);
    tcase_add_test(tc, retained_read_lock_is_refreshed_and_lasts);
    tcase_add_test(tc, reader_of_a_retained_hold_has_the_whole_lease);
    tcase_add_loop_test(tc, forced_or_deleted_read_lock_is_acquired_again, 0, 2);
    tcase_add_test(tc, destroy_and_close_release_a_retained_read_lock);
    tcase_add_test(tc, fixed_lease_has_a_hold_of_its_own);
    tcase_add_test(tc, hold_that_became_fixed_is_not_retained);
    tcase_add_test(tc, child_of_a_fork_has_no_retained_hold);
    tcase_add_loop_test(tc, stopped_process_with_a_retained_lock_costs_a_presence, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
