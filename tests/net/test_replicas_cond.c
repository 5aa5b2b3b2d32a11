/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of clients with replicas=N: a signal counts when so many replicas have
 * confirmed it; until then it is repeated, by the call and then by the watchdog. */
#include "condtask.h"
#include "replicascene.h"

#include <syslog.h>

enum { STAYS_MS = 100 };

static struct condtask sleeper, second;
static rlock_cond_t theirs;

static int signal_by(rlock_cond_t *cond, bool all)
{
    return all ? rlock_cond_broadcast(cond) : rlock_cond_signal(cond);
}

static bool sleeps(void *arg)
{
    const struct condtask *t = arg;
    return !atomic_load(&t->task.done);
}

static void let_go(struct condtask *t)
{
    rlock_cond_t mine;

    cond_of(&mine, client, RLOCK_OUTAGE_WAIT);
    OK(rlock_cond_broadcast(&mine));
    condtask_ends(t);
}

/* rule: P11 */
START_TEST(signal_is_at_all_replicas_when_it_returns)
{
    open_other("?replicas=2");
    cond_of(&theirs, other, RLOCK_OUTAGE_WAIT);
    condtask_start(&sleeper, client, redis, 1);
    for (int i = 0; i < REPLICAS; i++)
        condtask_waiting(at_replica[i], 1);
    long long before = waits();
    OK(signal_by(&theirs, _i == 1));
    for (int i = 0; i < REPLICAS; i++)
        ck_assert_int_eq(test_redis_int(at_replica[i], "ZCOUNT", CONDTASK_KEY,
                                        "100000000000000", "+inf"),
                         0);
    ck_assert_int_gt(waits(), before);
    ck_assert_uint_eq(stats_of(other).signals_deferred, 0);
    condtask_ends(&sleeper);
}
END_TEST

/* rule: P11 */
START_TEST(signal_of_a_client_without_replicas_never_waits)
{
    long long before = waits();

    cond_of(&theirs, client, RLOCK_OUTAGE_WAIT);
    OK(rlock_cond_signal(&theirs));
    OK(rlock_cond_broadcast(&theirs));
    ck_assert_int_eq(waits(), before);
    ck_assert(!test_redis_exists(redis, "rlock:{c}:condleft"));
}
END_TEST

/* A master that was left alone knows nothing of those who wait at the new one. */
/* rule: P11 */
START_TEST(signal_that_finds_nobody_is_confirmed_too)
{
    open_other("?replicas=2&commandtimeout=%ld", test_ms(300));
    cond_of(&theirs, other, RLOCK_OUTAGE_FAIL);
    OK(signal_by(&theirs, _i == 1));
    cut_off(1);
    wait_replicas(1);
    EXPECT(signal_by(&theirs, _i == 1), ENOTCONN);
    says("1 of 2 replicas");
    ck_assert_uint_eq(stats_of(other).signals_deferred, 0);
    follow(1);
    await_all_replicas();
    OK(signal_by(&theirs, _i == 1));
}
END_TEST

/* rule: V17 */
START_TEST(signal_that_too_few_replicas_confirm_goes_on_in_the_background)
{
    open_other("?replicas=2&commandtimeout=%ld", test_ms(300));
    cond_of(&theirs, other, RLOCK_OUTAGE_WAIT);
    condtask_start(&sleeper, client, redis, 1);
    cut_off(1);
    wait_replicas(1);
    OK(signal_by(&theirs, _i == 1));
    ck_assert_uint_eq(stats_of(other).signals_deferred, 1);
    condtask_ends(&sleeper); /* a needless wake-up is none */
    if (_i == 0) {           /* the signal is repeated */
        condtask_start(&second, client, redis, 1);
        condtask_ends(&second);
    }
    follow(1);
    await_all_replicas();
    OK(rlock_client_close(other)); /* waits until it is confirmed */
    other = NULL;
    condtask_start(&second, client, redis, 1);
    ck_assert(test_stays(sleeps, &second, STAYS_MS));
    let_go(&second);
}
END_TEST

/* rule: V1 */
START_TEST(join_that_is_refused_for_want_of_replicas_is_repeated)
{
    cond_of(&theirs, fixture_other(), RLOCK_OUTAGE_WAIT);
    sleeper.mutex = mutex_of(client, "m");
    cond_of(&sleeper.cond, client, RLOCK_OUTAGE_WAIT);
    struct actor actor;
    actor_start(&actor);
    OK(actor_does(&actor, run_lock, &sleeper.mutex));
    test_redis_config(redis, "min-replicas-to-write", "3");
    actor_begin(&actor, condtask_run, &sleeper); /* takes a second level */
    ck_assert(!actor_done(&actor, STAYS_MS));
    ck_assert(test_redis_exists(redis, "m"));
    test_redis_config(redis, "min-replicas-to-write", "0");
    condtask_waiting(redis, 1);
    OK(rlock_cond_signal(&theirs));
    ck_assert_int_eq(actor_rc(&actor), 0);
    OK(actor_does(&actor, run_unlock, &sleeper.mutex));
    actor_end(&actor);
}
END_TEST

/* rule: P11 */
START_TEST(signal_may_have_to_be_on_disk)
{
    if (test_redis_try(redis, "COMMAND", "INFO", "waitaof")->element[0]->type !=
        REDIS_REPLY_ARRAY) {
        puts("skipped: signal_may_have_to_be_on_disk: no WAITAOF");
        return;
    }
    test_redis_config(redis, "appendonly", "yes");
    test_redis_config(redis, "appendfsync", "always");
    for (int i = 0; i < REPLICAS; i++)
        test_redis_config(at_replica[i], "appendonly", "yes");
    open_other("?replicas=2&waitaof=1");
    cond_of(&theirs, other, RLOCK_OUTAGE_FAIL);
    condtask_start(&sleeper, client, redis, 1);
    long long before = test_redis_calls(redis, "waitaof");
    OK(signal_by(&theirs, _i == 1));
    ck_assert_int_gt(test_redis_calls(redis, "waitaof"), before);
    condtask_ends(&sleeper);
    for (int i = 0; i < REPLICAS; i++)
        test_redis_config(at_replica[i], "appendonly", "no");
    test_redis_config(redis, "appendonly", "no");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("replicas_cond");
    TCase *tc = replicas_tcase(suite, "signals");

    tcase_add_loop_test(tc, signal_is_at_all_replicas_when_it_returns, 0, 2);
    tcase_add_test(tc, signal_of_a_client_without_replicas_never_waits);
    tcase_add_loop_test(tc, signal_that_finds_nobody_is_confirmed_too, 0, 2);
    tcase_add_loop_test(
        tc, signal_that_too_few_replicas_confirm_goes_on_in_the_background, 0, 2);
    tcase_add_test(tc, join_that_is_refused_for_want_of_replicas_is_repeated);
    tcase_add_loop_test(tc, signal_may_have_to_be_on_disk, 0, 2);
    return test_run_suite(suite);
}
