/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of a hash slot that is being moved from one node to another, key by key, and is
 * left half-way for some leases. */
/* program: claims=P19,P20 */
#include "clusterscene.h"

#include <stdio.h>

enum { SOON_MS = 30000, LEASE_MS = 1500 };

static rlock_mutex_t mine, theirs;
static struct task waiter;

static void set_up(void)
{
    char parameters[32];

    cluster_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(LEASE_MS));
    client = cluster_client(parameters);
    other = cluster_client("");
    mine = mutex_of(client, cluster_name(0, 0));
    theirs = mutex_of(other, cluster_name(0, 0));
    OK(rlock_mutex_lock(&mine));
}

/* Whether the key is at a node that is getting its hash slot. */
static bool is_on_its_way(int to, const char *key)
{
    test_redis_do(at_node[to], "ASKING");
    return test_redis_int(at_node[to], "EXISTS", key) == 1;
}

/* The lock is held for so many leases. */
static void stay(int leases)
{
    int64_t end = test_now_ms() + leases * test_ms(LEASE_MS);

    while (test_now_ms() < end) {
        ck_assert_int_eq(state_of(&mine), RLOCK_SAFE);
        test_pause_ms(20);
    }
}

/* With `leases` at each of two stages. */
static void move_half_way(int leases)
{
    const char *name = cluster_name(0, 0), *const keys[] = { name, NULL };
    unsigned hash_slot = cluster_hash_slot(name);

    cluster_begin_move(hash_slot, 0, 1);
    stay(leases);
    cluster_move_keys(hash_slot, 0, 1, keys);
    ck_assert(is_on_its_way(1, name));
    stay(leases);
    ck_assert(is_on_its_way(1, name));
    OK(rlock_mutex_unlock(&mine));
    ck_assert(!is_on_its_way(1, name));
}

static void finish_move(void)
{
    unsigned hash_slot = cluster_hash_slot(cluster_name(0, 0));

    cluster_move_keys(hash_slot, 0, 1, NULL);
    cluster_end_move(hash_slot, 0, 1);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}

/* rule: P19, P20 */
START_TEST(holder_keeps_his_lock_and_may_unlock_it)
{
    move_half_way(2);
    finish_move();
    OK(rlock_mutex_lock(&mine));
    OK(rlock_mutex_unlock(&mine));
}
END_TEST

static rlock_mutex_t robust_mutex(rlock_client_t *c)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&m, &attr, cluster_name(0, 1)));
    OK(rlock_mutexattr_destroy(&attr));
    return m;
}

/* Its mark is in another key. */
/* rule: P20 */
START_TEST(robust_lock_is_kept_and_its_unlock_is_no_death)
{
    const char *name = cluster_name(0, 1), *const keys[] = { name, NULL };
    unsigned hash_slot = cluster_hash_slot(name);
    rlock_mutex_t robust = robust_mutex(client), next = robust_mutex(other);

    OK(rlock_mutex_unlock(&mine));
    mine = robust;
    OK(rlock_mutex_lock(&mine));
    cluster_begin_move(hash_slot, 0, 1);
    cluster_move_keys(hash_slot, 0, 1, keys);
    stay(1);
    OK(rlock_mutex_unlock(&mine));
    ck_assert(!is_on_its_way(1, name));
    cluster_move_keys(hash_slot, 0, 1, NULL);
    cluster_end_move(hash_slot, 0, 1);
    OK(rlock_mutex_lock(&next));
    OK(rlock_mutex_unlock(&next));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

/* rule: P20 */
START_TEST(waiter_gets_the_lock_when_the_move_is_over)
{
    task_start(&waiter, run_pair, &theirs);
    ck_assert(wait_waiters(other, 1));
    move_half_way(0);
    ck_assert(!task_ends(&waiter, 100));
    finish_move();
    ck_assert(task_ends(&waiter, SOON_MS));
    OK(task_join(&waiter));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster halfway");
    TCase *tc = tcase_create("halfway");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, cluster_close);
    tcase_add_test(tc, holder_keeps_his_lock_and_may_unlock_it);
    tcase_add_test(tc, robust_lock_is_kept_and_its_unlock_is_no_death);
    tcase_add_test(tc, waiter_gets_the_lock_when_the_move_is_over);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
