/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=K16,W25 */
/* A process retains a write lock, and its threads hand it off (rules K16, W25, H11), with
 * a server and the client of another process. Retention without readers is in
 * test_retain.c, with as_rwlock.h. */
#include "fixture.h"
#include "net/script.h"

#include <stdio.h>
#include <stdlib.h>

enum { SOON_MS = 10000, ACTORS = 4 };

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"

static rlock_rwlock_t l, theirs;
static struct actor actor[ACTORS];

static void write_once(void)
{
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_unlock(&l));
}

static bool is_kept(void)
{
    return test_redis_exists(redis, "n");
}

static void set_up(void)
{
    fixture_open();
    fixture_load_scripts();
    theirs = rwlock_of(fixture_other(), "n");
    reopen_with("?retain=60000&presence=30000");
    l = rwlock_of(client, "n");
    for (int i = 0; i < ACTORS; i++)
        actor_start(&actor[i]);
}

static void tear_down(void)
{
    for (int i = 0; i < ACTORS; i++)
        actor_end(&actor[i]);
    fixture_close();
}

static int run_write_pair(void *lock)
{
    int rc = rlock_rwlock_wrlock(lock);
    return rc == 0 ? rlock_rwlock_unlock(lock) : rc;
}

/* Requests without those of the watchdog. */
static long long asked(void)
{
    rlock_stats_t stats = stats_of(client);
    return (long long)(stats.round_trips - stats.renewals);
}

static void keep_behind_proxy(long presence_ms)
{
    char parameters[100];
    snprintf(parameters, sizeof(parameters), "?retain=60000&presence=%ld", presence_ms);
    close_client(client);
    proxy = test_proxy_start(&server);
    client = open_at(test_proxy_url(proxy), parameters);
    l = rwlock_of(client, "n");
}

static bool has_asked_since(void *round_trips)
{
    return stats_of(client).round_trips > *(uint64_t *)round_trips;
}

static bool is_renewed(void *renewals)
{
    return stats_of(client).renewals > *(uint64_t *)renewals;
}

static bool is_told(void *messages)
{
    return stats_of(client).messages > *(uint64_t *)messages;
}

/* rule: K16 */
START_TEST(writer_and_reader_of_one_process_release_for_each_other)
{
    for (int i = 0; i < 5; i++) {
        write_once();
        ck_assert(is_kept());
        OK(_i ? rlock_rwlock_tryrdlock(&l) : rlock_rwlock_rdlock(&l));
        OK(rlock_rwlock_unlock(&l));
        ck_assert(is_kept());
        OK(_i ? rlock_rwlock_trywrlock(&l) : rlock_rwlock_wrlock(&l));
        OK(rlock_rwlock_unlock(&l));
    }
    ck_assert_uint_eq(stats_of(client).losses, 0);
    ck_assert_uint_eq(stats_of(client).waits, 0);
}
END_TEST

/* A try releases the holds that its process retains, also two of them, and tries again:
 * no thread is inside. */
static int run_try_read_once(void *lock)
{
    int rc = rlock_rwlock_tryrdlock(lock);
    return rc == 0 ? rlock_rwlock_unlock(lock) : rc;
}

/* rule: K16 */
START_TEST(trywrlock_replaces_the_retained_read_holds_of_its_process)
{
    enum { ROUNDS = 20 };
    for (int round = 0; round < ROUNDS; round++) {
        /* at the same time, each with a hold of its own */
        for (int i = 0; i < ACTORS; i++)
            actor_begin(&actor[i], run_try_read_once, &l);
        for (int i = 0; i < ACTORS; i++)
            OK(actor_rc(&actor[i]));
        OK(rlock_rwlock_trywrlock(&l));
        OK(rlock_rwlock_unlock(&l));
    }
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
}
END_TEST

/* rule: K16 */
START_TEST(try_does_not_return_EBUSY_while_another_thread_releases)
{
    keep_behind_proxy(30000);
    write_once();
    int rule = TEST_RULE(proxy, .contains = rlk_scripts[RLK_RWLOCK_RELEASE].sha,
                         .on = TEST_ON_REQUEST, .action = TEST_HOLD, .count = 1);
    actor_begin(&actor[0], run_try_read_once, &l); /* releases the retained hold */
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    uint64_t before = stats_of(client).round_trips;
    actor_begin(&actor[1], run_try_read_once, &l);
    /* the answer was busy */
    ck_assert(test_wait_until(has_asked_since, &before, SOON_MS));
    test_proxy_release(proxy, rule);
    OK(actor_rc(&actor[0]));
    OK(actor_rc(&actor[1]));
}
END_TEST

/* The held reply carries the token of the grant, or the first of a block (H11, W18). */
/* rule: H11 */
START_TEST(late_renewal_reply_does_not_change_the_token_of_a_later_reader)
{
    uint64_t first, section, reading, later;
    keep_behind_proxy(900);
    rlock_rwlock_t fenced = rwlock_with(client, "n", -1, 1);
    OK(rlock_rwlock_wrlock(&fenced));
    OK(rlock_rwlock_gettoken(&fenced, &first));
    OK(rlock_rwlock_unlock(&fenced));
    OK(rlock_rwlock_wrlock(&fenced));
    OK(rlock_rwlock_gettoken(&fenced, &section));
    ck_assert_uint_gt(section, first);
    int rule = TEST_RULE(proxy, .contains = rlk_scripts[RLK_RWLOCK_RENEW].sha,
                         .on = TEST_ON_REPLY, .action = TEST_HOLD);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    OK(rlock_rwlock_downgrade(&fenced));
    OK(rlock_rwlock_gettoken(&fenced, &reading));
    ck_assert_uint_eq(reading, section);
    uint64_t renewals = stats_of(client).renewals;
    test_proxy_remove(proxy, rule);
    ck_assert(test_wait_until(is_renewed, &renewals, SOON_MS));
    OK(rlock_rwlock_gettoken(&fenced, &later));
    ck_assert_uint_eq(later, section);
    ck_assert_uint_eq(strtoull(test_redis_str(redis, "HGET", "n", "token"), NULL, 10),
                      section);
    OK(rlock_rwlock_unlock(&fenced));
}
END_TEST

/* rule: K16 */
START_TEST(reader_elsewhere_gets_a_retained_write_lock_at_once)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS / 2));
    for (int i = 0; i < 10; i++) {
        write_once();
        ck_assert(is_kept());
        OK(rlock_rwlock_clockrdlock(&theirs, CLOCK_MONOTONIC, &at));
        OK(rlock_rwlock_unlock(&theirs));
    }
}
END_TEST

/* rule: K16 */
START_TEST(threads_hand_off_a_write_lock)
{
    OK(actor_does(&actor[0], run_wrlock, &l));
    long long before = asked();
    actor_begin(&actor[1], run_wrlock, &l);
    ck_assert(wait_waiters(client, 1));
    test_pause_ms(20);
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_rc(&actor[1]));
    ck_assert_int_eq((int)(asked() - before), 0);
    EXPECT(rlock_rwlock_tryrdlock(&theirs), EBUSY);
    OK(actor_does(&actor[1], run_rwunlock, &l));
}
END_TEST

/* _i 0: a reader waits elsewhere, 1: a writer waits elsewhere, 2: a reader waits here. */
/* rule: W25 */
START_TEST(threads_do_not_hand_off_past_waiters_at_the_server)
{
    rlock_rwlock_t *who = _i == 2 ? &l : &theirs;
    uint64_t messages = stats_of(client).messages;
    OK(actor_does(&actor[0], run_wrlock, &l));
    actor_begin(&actor[1], run_wrlock, &l);
    ck_assert(wait_waiters(client, 1));
    actor_begin(&actor[2], _i == 1 ? run_write_pair : run_rdlock, who);
    ck_assert(wait_size(_i == 1 ? QUEUE : RQUEUE, 1));
    ck_assert(test_wait_until(is_told, &messages, SOON_MS));
    test_pause_ms(20);
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_rc(&actor[2]));
    if (_i != 1) {
        ck_assert(!actor_done(&actor[1], 20));
        OK(actor_does(&actor[2], run_rwunlock, who));
    }
    OK(actor_rc(&actor[1]));
    OK(actor_does(&actor[1], run_rwunlock, &l));
}
END_TEST

/* rule: W25 */
START_TEST(without_retention_each_writer_asks_the_server)
{
    rlock_rwlock_t plain = l;
    plain.rlk.rlk_retain_ms = 1; /* 0 ms */
    OK(actor_does(&actor[0], run_wrlock, &plain));
    actor_begin(&actor[1], run_wrlock, &plain);
    ck_assert(wait_waiters(client, 1));
    long long before = asked();
    OK(actor_does(&actor[0], run_rwunlock, &plain));
    OK(actor_rc(&actor[1]));
    ck_assert_int_eq((int)(asked() - before), 2);
    OK(actor_does(&actor[1], run_rwunlock, &plain));
    ck_assert(!is_kept());
}
END_TEST

static uint64_t token(rlock_rwlock_t *lock)
{
    uint64_t number = 0;
    OK(rlock_rwlock_gettoken(lock, &number));
    return number;
}

/* rule: H11 */
START_TEST(tokens_grow_and_a_downgrade_does_not_change_its_own)
{
    rlock_rwlock_t f = rwlock_with(client, "n", -1, 1);
    rlock_rwlock_t f_theirs = rwlock_with(other, "n", -1, 1);
    uint64_t last = 0, before = stats_of(client).local_handovers;
    for (int i = 0; i < 2500; i++) {
        OK(rlock_rwlock_wrlock(&f));
        ck_assert_uint_gt(token(&f), last);
        last = token(&f);
        OK(rlock_rwlock_unlock(&f));
    }
    ck_assert_uint_eq(stats_of(client).local_handovers, before + 2499);
    OK(rlock_rwlock_wrlock(&f));
    ck_assert_uint_gt(token(&f), last);
    last = token(&f);
    OK(rlock_rwlock_downgrade(&f));
    ck_assert_uint_eq(token(&f), last);
    OK(rlock_rwlock_rdlock(&f_theirs));
    ck_assert_uint_eq(token(&f_theirs), last);
    OK(rlock_rwlock_unlock(&f));
    OK(rlock_rwlock_unlock(&f_theirs));
    OK(rlock_rwlock_wrlock(&f_theirs));
    ck_assert_uint_gt(token(&f_theirs), last);
    OK(rlock_rwlock_unlock(&f_theirs));
}
END_TEST

/* All readers of a reading have its token, newcomers too. */
/* rule: W26 */
START_TEST(joining_reader_has_the_token_of_the_reading)
{
    rlock_rwlock_t f = rwlock_with(client, "n", -1, 1);
    OK(rlock_rwlock_rdlock(&f));
    uint64_t first = token(&f);
    OK(rlock_rwlock_unlock(&f));
    OK(rlock_rwlock_rdlock(&f));
    ck_assert_uint_eq(token(&f), first);
    OK(rlock_rwlock_unlock(&f));
    OK(rlock_rwlock_wrlock(&theirs));
    OK(rlock_rwlock_unlock(&theirs));
    OK(rlock_rwlock_rdlock(&f));
    ck_assert_uint_gt(token(&f), first);
    OK(rlock_rwlock_unlock(&f));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock: retained to write");
    TCase *tc = tcase_create("write");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, writer_and_reader_of_one_process_release_for_each_other, 0,
                        2);
    tcase_add_test(tc, trywrlock_replaces_the_retained_read_holds_of_its_process);
    tcase_add_test(tc, try_does_not_return_EBUSY_while_another_thread_releases);
    tcase_add_test(tc, late_renewal_reply_does_not_change_the_token_of_a_later_reader);
    tcase_add_test(tc, reader_elsewhere_gets_a_retained_write_lock_at_once);
    tcase_add_test(tc, threads_hand_off_a_write_lock);
    tcase_add_loop_test(tc, threads_do_not_hand_off_past_waiters_at_the_server, 0, 3);
    tcase_add_test(tc, without_retention_each_writer_asks_the_server);
    tcase_add_test(tc, tokens_grow_and_a_downgrade_does_not_change_its_own);
    tcase_add_test(tc, joining_reader_has_the_token_of_the_reading);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
