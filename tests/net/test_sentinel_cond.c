/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow */
/* Conditions when sentinels make another server the master: it may have forgotten the
 * last signals, so every wait ends, and signals go on there. */
#include "condtask.h"
#include "sentinelscene.h"

enum { WAITERS = 3, ITEMS = 20 };

static struct condtask sleepers[WAITERS];
static rlock_client_t *third;

static void set_up(void)
{
    topology_open();
}

static void tear_down(void)
{
    if (other)
        close_client(other);
    if (third)
        close_client(third);
    other = third = NULL;
    test_redis_close(redis);
}

/* A sentinel refuses while it knows of no replica that is good enough. */
static bool agrees(void *r)
{
    return test_redis_try(r, "SENTINEL", "FAILOVER", "mymaster")->type ==
           REDIS_REPLY_STATUS;
}

static void hand_over(int old)
{
    struct test_redis *r = test_redis_connect(topology.sentinels[0].path);

    ck_assert(test_wait_until(agrees, r, CONDTASK_SOON_MS));
    test_redis_close(r);
    ck_assert(topology_switched(0, old, CONDTASK_SOON_MS));
}

static void kill_master(int old)
{
    topology_expect_failure();
    test_server_kill(&topology.data[old]);
    ck_assert(topology_switched(0, old, CONDTASK_SOON_MS));
}

/* rule: V2 */
START_TEST(waits_end_when_another_server_is_the_master)
{
    int old = topology_master(0);

    other = topology_client("");
    for (int i = 0; i < WAITERS; i++)
        condtask_start(&sleepers[i], other, redis, i + 1);
    await_replicas(redis, 2);
    if (_i == 0)
        kill_master(old);
    else
        hand_over(old);
    for (int i = 0; i < WAITERS; i++)
        condtask_ends(&sleepers[i]);
    ck_assert_uint_eq(stats_of(other).cond_waits, WAITERS);
    ck_assert_uint_eq(stats_of(other).cond_needless + stats_of(other).cond_wakeups,
                      WAITERS);
}
END_TEST

/* A queue of items: `made` under the mutex, then a signal. */
struct queue {
    rlock_mutex_t mutex;
    rlock_cond_t cond;
    int *items;
};

static int make_items(void *arg)
{
    struct queue *q = arg;

    for (int i = 0; i < ITEMS; i++) {
        int rc = rlock_mutex_lock(&q->mutex);
        if (rc != 0)
            return rc;
        ++*q->items;
        rc = rlock_cond_signal(&q->cond);
        int end = rlock_mutex_unlock(&q->mutex);
        if (rc != 0 || (end != 0 && end != ESTALE))
            return rc != 0 ? rc : end;
        test_pause_ms(100); /* so that items are made all the time */
    }
    return 0;
}

static int take_items(void *arg)
{
    struct queue *q = arg;

    for (int taken = 0; taken < ITEMS; taken++) {
        int rc = rlock_mutex_lock(&q->mutex);
        while (rc == 0 && *q->items == 0) {
            rc = rlock_cond_wait(&q->cond, &q->mutex);
            if (rc == ESTALE) /* without the mutex */
                rc = rlock_mutex_lock(&q->mutex);
        }
        if (rc != 0)
            return rc;
        --*q->items;
        rc = rlock_mutex_unlock(&q->mutex);
        if (rc != 0 && rc != ESTALE)
            return rc;
    }
    return 0;
}

/* rule: V2 */
START_TEST(no_item_is_left_behind_by_a_failover)
{
    int old = topology_master(0), items = 0;
    const char *parameters = _i == 0 ? "" : "?replicas=1";
    struct queue maker, taker;
    struct task makes, takes;

    other = topology_client(parameters);
    third = topology_client(parameters);
    maker = (struct queue){ .mutex = mutex_of(other, "m"), .items = &items };
    taker = (struct queue){ .mutex = mutex_of(third, "m"), .items = &items };
    cond_of(&maker.cond, other, RLOCK_OUTAGE_WAIT);
    cond_of(&taker.cond, third, RLOCK_OUTAGE_WAIT);
    task_start(&takes, take_items, &taker);
    condtask_waiting(redis, 1);
    task_start(&makes, make_items, &maker);
    if (_i == 0)
        hand_over(old);
    else
        kill_master(old);
    ck_assert(task_ends(&makes, 2 * CONDTASK_SOON_MS));
    OK(task_join(&makes));
    ck_assert(task_ends(&takes, CONDTASK_SOON_MS));
    OK(task_join(&takes));
    ck_assert_int_eq(items, 0);
}
END_TEST

static void start(void)
{
    topology_start(NULL);
}

int main(void)
{
    Suite *suite = suite_create("sentinel_cond");
    TCase *tc = tcase_create("failover");

    tcase_add_unchecked_fixture(tc, start, topology_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    test_long_tcase(tc);
    tcase_add_loop_test(tc, waits_end_when_another_server_is_the_master, 0, 2);
    tcase_add_loop_test(tc, no_item_is_left_behind_by_a_failover, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
