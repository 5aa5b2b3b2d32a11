/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a lock whose hash slot is being moved, key by key, and is left half-way: the
 * lock's own key and that of its readers are at different nodes. */
/* program: slow */
#include "clusterscene.h"

#include "net/key.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 30000, LEASE_MS = 1500, LONG_MS = 120000 };

static rlock_rwlock_t mine, theirs;
static struct actor reader; /* a thread of `other` */
static const char *name;
static char readers[RLK_KEY_SIZE];
static unsigned hash_slot;

static void open_clients(long lease_ms, const char *more)
{
    char parameters[48];

    cluster_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld%s", test_ms(lease_ms), more);
    client = cluster_client(parameters);
    other = cluster_client(parameters);
    name = cluster_name(0, 0);
    hash_slot = cluster_hash_slot(name);
    readers[rlk_key_write(readers, RLK_KEY_READERS, name, strlen(name))] = '\0';
    mine = rwlock_of(client, name);
    theirs = rwlock_of(other, name);
    actor_start(&reader);
}

static void set_up(void)
{
    open_clients(LEASE_MS, "");
}

static void set_up_long(void)
{
    open_clients(LONG_MS, "");
}

static void set_up_replicas(void)
{
    open_clients(LEASE_MS, "&replicas=1");
}

static void tear_down(void)
{
    cluster_move_back(hash_slot, 0, 1);
    actor_end(&reader);
    cluster_close();
}

static void move(const char *key)
{
    const char *const keys[] = { key, NULL };

    cluster_move_keys(hash_slot, 0, 1, keys);
}

static void finish_move(void)
{
    cluster_move_keys(hash_slot, 0, 1, NULL);
    cluster_end_move(hash_slot, 0, 1);
}

/* Whether the node that is getting the hash slot has the key. */
static bool has_arrived(const char *key)
{
    test_redis_do(at_node[1], "ASKING");
    return test_redis_int(at_node[1], "EXISTS", key) == 1;
}

static int state_of_mine(void)
{
    return run_rwstate(&mine);
}

/* Both hold the lock for longer than a lease. */
static void stay(void)
{
    int64_t end = test_now_ms() + test_ms(LEASE_MS) * 5 / 4;

    while (test_now_ms() < end) {
        ck_assert_int_eq(state_of_mine(), RLOCK_SAFE);
        test_pause_ms(20);
    }
    ck_assert_int_eq(actor_does(&reader, run_rwstate, &theirs), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}

/* ---- leases */

/* rule: P20 */
START_TEST(readers_keep_their_leases_wherever_the_two_keys_are)
{
    const char *first = _i == 0 ? name : readers, *second = _i == 0 ? readers : name;

    OK(rlock_rwlock_rdlock(&mine));
    OK(actor_does(&reader, run_rdlock, &theirs));
    cluster_begin_move(hash_slot, 0, 1);
    if (_i == 0)
        stay();
    move(first);
    stay();
    ck_assert(has_arrived(first) && !has_arrived(second));
    if (_i == 0) {
        move(second);
        stay();
    }
    OK(rlock_rwlock_unlock(&mine));
    OK(actor_does(&reader, run_rwunlock, &theirs));
    finish_move();
    OK(rlock_rwlock_wrlock(&mine));
    OK(rlock_rwlock_unlock(&mine));
}
END_TEST

/* rule: P12, P20 */
START_TEST(readers_keep_leases_that_replicas_confirm)
{
    OK(rlock_rwlock_rdlock(&mine));
    OK(actor_does(&reader, run_rdlock, &theirs));
    cluster_begin_move(hash_slot, 0, 1);
    move(name);
    stay();
    /* the replica of the node that has the ends is silent */
    test_server_pause(&nodes[CLUSTER_MASTERS].server);
    bool lost = event_of(RLOCK_EVENT_LOST, SOON_MS) != NULL;
    test_server_resume(&nodes[CLUSTER_MASTERS].server);
    ck_assert(lost);
    finish_move();
}
END_TEST

/* rule: P20 */
START_TEST(reader_with_a_lease_of_its_own_may_extend_it_half_way)
{
    OK(rlock_rwlock_rdlock(&mine));
    cluster_begin_move(hash_slot, 0, 1);
    move(name);
    OK(rlock_rwlock_extend(&mine, test_ms(LONG_MS)));
    int left = run_rwremaining(&mine);
    ck_assert_int_gt(left, (int)test_ms(LONG_MS) / 2);
    ck_assert(has_arrived(name));
    test_redis_do(at_node[1], "ASKING");
    ck_assert_int_ge((int)test_redis_int(at_node[1], "PTTL", name), left - 1000);
    OK(rlock_rwlock_unlock(&mine));
    finish_move();
}
END_TEST

/* rule: P20 */
START_TEST(reader_whose_end_was_taken_away_is_told_LOST)
{
    OK(rlock_rwlock_rdlock(&mine));
    cluster_begin_move(hash_slot, 0, 1);
    move(name);
    test_redis_do(at_node[0], "DEL", readers);
    ck_assert(event_of(RLOCK_EVENT_LOST, SOON_MS) != NULL);
    EXPECT(rlock_rwlock_unlock(&mine), ESTALE);
    finish_move();
}
END_TEST

/* rule: P20, W19 */
START_TEST(writer_that_reads_from_now_on_keeps_the_lock)
{
    OK(rlock_rwlock_wrlock(&mine));
    cluster_begin_move(hash_slot, 0, 1);
    move(name);
    OK(rlock_rwlock_downgrade(&mine));
    int64_t end = test_now_ms() + test_ms(LEASE_MS) * 5 / 4;
    while (test_now_ms() < end) {
        ck_assert_int_eq(state_of_mine(), RLOCK_SAFE);
        test_pause_ms(20);
    }
    finish_move();
    OK(actor_does(&reader, run_rdlock, &theirs)); /* the server knows that it reads */
    ck_assert_int_eq(state_of_mine(), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(actor_does(&reader, run_rwunlock, &theirs));
    OK(rlock_rwlock_unlock(&mine));
}
END_TEST

/* ---- releases */

/* rule: P20, W7 */
START_TEST(writer_gets_the_lock_of_readers_that_left_half_way)
{
    struct task writer;

    OK(rlock_rwlock_rdlock(&mine));
    task_start(&writer, run_wrlock, &theirs);
    ck_assert(wait_waiters(other, 1));
    cluster_begin_move(hash_slot, 0, 1);
    move(_i == 0 ? name : readers);
    OK(rlock_rwlock_unlock(&mine));
    ck_assert(!task_ends(&writer, 100));
    ck_assert_int_eq(has_arrived(name), _i == 0); /* nobody ends the reading here */
    finish_move();
    /* long before its lease would have ended */
    ck_assert(task_ends(&writer, SOON_MS));
    OK(task_join(&writer));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

static bool reads(void *arg)
{
    (void)arg;
    return test_redis_int(at_node[1], "EXISTS", readers) == 1;
}

/* rule: P20 */
START_TEST(reader_that_leaves_half_way_ends_no_other_reading)
{
    struct task writer;

    OK(rlock_rwlock_rdlock(&mine));
    OK(actor_does(&reader, run_rdlock, &theirs));
    cluster_begin_move(hash_slot, 0, 1);
    move(readers);
    OK(rlock_rwlock_unlock(&mine));
    finish_move();
    task_start(&writer, run_wrlock, &mine);
    ck_assert(wait_waiters(client, 1));
    ck_assert(!task_ends(&writer, 100));
    ck_assert(test_wait_until(reads, NULL, SOON_MS));
    OK(actor_does(&reader, run_rwunlock, &theirs));
    ck_assert(task_ends(&writer, SOON_MS));
    OK(task_join(&writer));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster readers");
    TCase *tc = tcase_create("leases");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, readers_keep_their_leases_wherever_the_two_keys_are, 0, 2);
    tcase_add_test(tc, reader_with_a_lease_of_its_own_may_extend_it_half_way);
    tcase_add_test(tc, reader_whose_end_was_taken_away_is_told_LOST);
    tcase_add_test(tc, writer_that_reads_from_now_on_keeps_the_lock);
    suite_add_tcase(s, tc);
    tc = tcase_create("replicas");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up_replicas, tear_down);
    tcase_add_test(tc, readers_keep_leases_that_replicas_confirm);
    suite_add_tcase(s, tc);
    tc = tcase_create("releases");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up_long, tear_down);
    tcase_add_loop_test(tc, writer_gets_the_lock_of_readers_that_left_half_way, 0, 2);
    tcase_add_test(tc, reader_that_leaves_half_way_ends_no_other_reading);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
