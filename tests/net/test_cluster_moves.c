/* SPDX-License-Identifier: Apache-2.0 */
/* What moves in a cluster: masters that hand over or die, hash slots that go to another
 * node, nodes that restart. */
/* program: slow */
#include "clusterscene.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 30000, LEASE_MS = 6000 };

static const char *lease(long ms)
{
    static char text[32];

    snprintf(text, sizeof(text), "?lease=%ld", test_ms(ms));
    return text;
}

/* Two clients; the first has the lock of each node, and a thread of the second waits for
 * the first of them. */
static rlock_mutex_t mine[CLUSTER_MASTERS], theirs;
static struct task waiter;

static void open_holders(const char *parameters)
{
    cluster_open();
    client = cluster_client(parameters);
    other = cluster_client(parameters);
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        mine[i] = mutex_of(client, cluster_name(i, 0));
        OK(rlock_mutex_lock(&mine[i]));
    }
    theirs = mutex_of(other, cluster_name(0, 0));
    task_start(&waiter, run_pair, &theirs);
    ck_assert(wait_waiters(other, 1));
}

static void set_up(void)
{
    open_holders(lease(LEASE_MS));
}

static void await_replica(int master)
{
    char ms[16];

    snprintf(ms, sizeof(ms), "%ld", test_ms(SOON_MS));
    test_redis_do(at_node[master], "SET", cluster_name(master, 9), "1");
    ck_assert_int_ge((int)test_redis_int(at_node[master], "WAIT", "1", ms), 1);
}

/* Nothing was lost, and the waiter gets the lock. */
static void all_is_well(void)
{
    ck_assert(!task_ends(&waiter, 0));
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        OK(rlock_mutex_unlock(&mine[i]));
    ck_assert(task_ends(&waiter, SOON_MS));
    OK(task_join(&waiter));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}

static bool is_renewed(void *arg)
{
    const unsigned long long *before = arg;
    return stats_of(client).renewals > *before + 2 * CLUSTER_MASTERS;
}

static void await_renewals(void)
{
    unsigned long long before = stats_of(client).renewals;
    ck_assert(test_wait_until(is_renewed, &before, SOON_MS));
}

/* ---- failovers */

/* rule: P23 */
START_TEST(holder_and_waiter_follow_a_master_that_hands_over)
{
    cluster_failover(0, NULL);
    await_renewals();
    ck_assert_int_eq(
        (int)test_redis_int(at_node[CLUSTER_MASTERS], "EXISTS", cluster_name(0, 0)), 1);
    all_is_well();
}
END_TEST

/* rule: P16, P23 */
START_TEST(holder_and_waiter_survive_a_master_that_dies)
{
    await_replica(0);
    cluster_expect_failure();
    test_server_kill(&nodes[0].server);
    int64_t begin = test_now_ms();
    while (!cluster_is_master(CLUSTER_MASTERS)) {
        ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
        test_pause_ms(10);
    }
    await_renewals();
    all_is_well();
}
END_TEST

/* rule: P16 */
START_TEST(lock_that_a_failover_has_lost_is_told_LOST)
{
    test_server_pause(&nodes[CLUSTER_MASTERS].server); /* gets nothing any more */
    rlock_mutex_t late = mutex_of(client, cluster_name(0, 1));
    OK(rlock_mutex_lock(&late));
    test_server_kill(&nodes[0].server); /* and nothing is left in a socket's buffer */
    test_server_resume(&nodes[CLUSTER_MASTERS].server);
    cluster_failover(0, "TAKEOVER");
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    rlock_state_t state = state_of(&late);
    int rc = rlock_mutex_unlock(&late);
    bool told = lost != NULL;
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        (void)rlock_mutex_unlock(&mine[i]);
    ck_assert(task_ends(&waiter, SOON_MS));
    task_join(&waiter);
    /* what was in the buffer of a socket of the replica's may have come, all the same */
    ck_assert(told || state == RLOCK_SAFE);
    EXPECT(rc, told && state == RLOCK_LOST ? ESTALE : 0);
}
END_TEST

/* ---- hash slots */

/* rule: P23 */
START_TEST(holder_and_waiter_follow_a_hash_slot_that_moves)
{
    unsigned hash_slot = cluster_hash_slot(cluster_name(0, 0));

    cluster_begin_move(hash_slot, 0, 1);
    cluster_move_keys(hash_slot, 0, 1, NULL);
    cluster_end_move(hash_slot, 0, 1);
    await_renewals();
    ck_assert_int_eq((int)test_redis_int(at_node[1], "EXISTS", cluster_name(0, 0)), 1);
    all_is_well();
}
END_TEST

/* rule: P18 */
START_TEST(client_learns_of_a_move_by_MOVED_and_asks_for_the_map_once)
{
    unsigned hash_slot = cluster_hash_slot(cluster_name(0, 3));
    rlock_mutex_t m = mutex_of(client, cluster_name(0, 3));

    cluster_begin_move(hash_slot, 0, 2);
    cluster_end_move(hash_slot, 0, 2);
    int64_t begin = test_now_ms();
    OK(rlock_mutex_lock(&m));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(400));
    ck_assert_int_eq((int)test_redis_int(at_node[2], "EXISTS", cluster_name(0, 3)), 1);
    /* a call that asks once follows, too */
    rlock_info_t *info;
    OK(rlock_inspect(other, cluster_name(0, 3), &info));
    ck_assert_int_eq((int)info->holder_count, 1);
    rlock_info_free(info);
    OK(rlock_mutex_unlock(&m));
    all_is_well();
}
END_TEST

START_TEST(hash_slot_that_no_node_has_is_ENOTCONN_and_waited_for)
{
    char text[16];
    const char *name = cluster_name(1, 4);
    rlock_mutex_t m = mutex_of(client, name);
    struct task task;

    snprintf(text, sizeof(text), "%u", cluster_hash_slot(name));
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "CLUSTER", "DELSLOTS", text);
    struct timespec soon = test_in_ms(CLOCK_REALTIME, 500);
    EXPECT(rlock_mutex_timedlock(&m, &soon), ENOTCONN);
    task_start(&task, run_pair, &m);
    ck_assert(!task_ends(&task, 300));
    test_redis_do(at_node[1], "CLUSTER", "ADDSLOTS", text);
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    all_is_well();
}
END_TEST

/* ---- restarts */

START_TEST(nodes_that_restart_one_after_the_other_lose_nothing)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        test_server_shutdown(&nodes[i].server);
        test_server_restart(&nodes[i].server);
        cluster_reconnect(i);
        cluster_await_ok();
    }
    all_is_well();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster moves");
    TCase *tc = tcase_create("moves");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, cluster_close);
    tcase_add_test(tc, holder_and_waiter_follow_a_master_that_hands_over);
    tcase_add_test(tc, holder_and_waiter_follow_a_hash_slot_that_moves);
    tcase_add_test(tc, client_learns_of_a_move_by_MOVED_and_asks_for_the_map_once);
    tcase_add_test(tc, hash_slot_that_no_node_has_is_ENOTCONN_and_waited_for);
    if (test_is_full()) { /* nodes that die: it takes minutes */
        tcase_add_test(tc, holder_and_waiter_survive_a_master_that_dies);
        tcase_add_test(tc, lock_that_a_failover_has_lost_is_told_LOST);
        tcase_add_test(tc, nodes_that_restart_one_after_the_other_lose_nothing);
    }
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
