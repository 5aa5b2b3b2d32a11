/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_two_grants,rwlock_two_grants */
/*
 * T1 (doc/design/protocol.md): of two grants of one lock to threads of one process, the
 * newer counts. A loss of data makes the second grant: the server forgets that it gave
 * the lock to one thread, and gives it to another. The first thread's message comes late.
 * rulescene.h says what `self`, `m` and `x` are.
 */
#include "rulescene.h"

enum { LONG_LEASE_MS = 20000, STAYS_MS = 150 };

static bool has_read_that_it_waits(void *arg)
{
    return scene_stat(&x, "waits") >= *(long long *)arg;
}

/* Waits until the n-th of x's calls has read that it is queued. That the server has
 * queued it, perhaps a while before, is not enough: an acquire that is repeated after the
 * grant would find the lock its own. */
static void x_knows_that_it_waits(long long n)
{
    ck_assert(test_wait_until(has_read_that_it_waits, &n, SCENE_SOON_MS));
}

/* The server grants the lock to x's thread t, and the proxy holds the message back. Then
 * the server forgets that, and gives the lock to x's thread u, which calls `verb`.
 * Returns the rule that holds the message. */
static int grant_to_t_and_then_to_u(const char *verb)
{
    start_x(SCENE_TIMES(.presence = LONG_LEASE_MS));
    scene_worker_waits(&x, "N", 1);
    x_knows_that_it_waits(1);
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, grant, 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "RENAME", "N", "aside");
    scene_says(&x, "ok", "on u %s m", verb);
    return grant;
}

/* t, which asked the server again, waits for u. */
static void t_is_queued_behind_u(const char *unlock)
{
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    scene_says(&x, "ok SAFE", "on u state m");
    scene_says(&x, "ok", "on u %s m", unlock);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert(!worker_news(&x, "event LOST", 0));
}

/* rule: T1 */
START_TEST(older_of_two_grants_of_a_process_takes_nothing)
{
    test_proxy_remove(scene_proxy, grant_to_t_and_then_to_u("trylock"));
    t_is_queued_behind_u("unlock");
}
END_TEST

#ifdef AS_RWLOCK
/* rule: T1 */
START_TEST(older_of_two_grants_of_a_process_takes_nothing_from_readers)
{
    test_proxy_remove(scene_proxy, grant_to_t_and_then_to_u("tryrdlock"));
    t_is_queued_behind_u("rdunlock");
}
END_TEST
#endif

/* A try of t is answered only after u was granted the lock, too. */
/* rule: T1 */
START_TEST(older_grant_of_a_try_takes_nothing)
{
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    start_x(NULL);
    int reply = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                           .count = 1);
    scene_says(&x, "ok", "async t trylock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, reply, 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "RENAME", "N", "aside");
    scene_says(&x, "ok", "on u trylock m");
    test_proxy_remove(scene_proxy, reply);
    scene_worker_ends(&x, "t", "EBUSY");
    scene_says(&x, "ok SAFE", "on u state m");
    scene_says(&x, "ok", "on u unlock m");
    ck_assert(!worker_news(&x, "event LOST", 0));
}
END_TEST

/* t's cancel finds that t has the lock. t hears that only after u has it. */
/* rule: T1 */
START_TEST(older_grant_of_a_cancel_takes_nothing)
{
    enum { DEADLINE_MS = 400 };
    start_x(SCENE_TIMES(.presence = LONG_LEASE_MS));
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    int reply = 0;
    for (bool held = false; !held;) {
        reply = SCENE_RULE(RLK_MUTEX_CANCEL, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                           .count = 1);
        long long waits = scene_stat(&x, "waits");
        scene_says(&x, "ok", "async t timedlock m %ld", test_ms(DEADLINE_MS));
        x_knows_that_it_waits(waits + 1);
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
        bool left = scene_cancel_left(&x, "t", reply);
        held = left && test_redis_exists(scene_redis, "N"); /* it left after the grant */
        if (!held) {
            test_proxy_remove(scene_proxy, reply);
            if (left)
                scene_worker_ends(&x, "t", "ETIMEDOUT");
            ck_assert_int_eq(rlock_mutex_lock(&m), 0);
        }
    }
    test_redis_do(scene_redis, "RENAME", "N", "aside");
    scene_says(&x, "ok", "on u trylock m");
    test_proxy_remove(scene_proxy, reply);
    scene_worker_ends(&x, "t", "ETIMEDOUT");
    test_proxy_remove(scene_proxy, grant);
    scene_says(&x, "ok SAFE", "on u state m");
    scene_says(&x, "ok", "on u unlock m");
    ck_assert(!worker_news(&x, "event LOST", 0));
    scene_nothing_is_left("N");
}
END_TEST

#ifndef AS_FAIR
/* t stands still until its deadline has passed, and hears of its grant then. */
/* rule: T1 */
START_TEST(older_of_two_grants_of_a_process_is_not_passed_on)
{
    enum { DEADLINE_MS = 1000, MORE_MS = 50 };
    start_x(SCENE_TIMES(.presence = LONG_LEASE_MS));
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async t timedlock m %ld", test_ms(DEADLINE_MS));
    x_knows_that_it_waits(1);
    scene_says(&x, "ok", "async v lock m");
    int grant = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                          .contains = "1 grant");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, grant, 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "RENAME", "N", "aside");
    scene_says(&x, "ok", "on u trylock m");
    worker_stop(&x);
    test_pause_ms((long)(begin + test_ms(DEADLINE_MS) + MORE_MS - test_now_ms()));
    test_proxy_remove(scene_proxy, grant);
    /* x reads the grant before t wakes, or afterwards: both are possible */
    test_pause_ms(MORE_MS);
    worker_cont(&x);
    /* before u unlocks: afterwards, nothing would distinguish the grant from a new one */
    x_reads_its_mail();
    scene_worker_ends(&x, "t", "ETIMEDOUT");
    scene_says(&x, "ok SAFE", "on u state m");
    scene_says(&x, "ok", "on u unlock m");
    scene_worker_ends(&x, "v", "ok");
    scene_says(&x, "ok", "on v unlock m");
    ck_assert(!worker_news(&x, "event LOST", 0));
}
END_TEST
#endif

/* rule: T1 */
START_TEST(grant_that_the_server_knows_is_used)
{
    int grant = grant_to_t_and_then_to_u("trylock");
    test_redis_do(scene_redis, "RENAME", "aside", "N");
    test_proxy_remove(scene_proxy, grant);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert(worker_news(&x, "event LOST", SCENE_SOON_MS));
    scene_says(&x, "ESTALE", "on u unlock m");
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("two grants");
    TCase *t1 = scene_tcase(s, "T1", open_scene_and_hold, close_scene);
    tcase_add_test(t1, older_of_two_grants_of_a_process_takes_nothing);
#ifdef AS_RWLOCK
    tcase_add_test(t1, older_of_two_grants_of_a_process_takes_nothing_from_readers);
#endif
#ifndef AS_FAIR
    tcase_add_test(t1, older_of_two_grants_of_a_process_is_not_passed_on);
#endif
    tcase_add_test(t1, older_grant_of_a_try_takes_nothing);
    tcase_add_test(t1, older_grant_of_a_cancel_takes_nothing);
    tcase_add_test(t1, grant_that_the_server_knows_is_used);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
