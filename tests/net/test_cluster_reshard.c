/* SPDX-License-Identifier: Apache-2.0 */
/* A hash slot with many keys is moved while locks of all types in it are held and waited
 * for, and is left half-way for some leases. */
/* program: slow claims=P24 */
#include "clusterscene.h"

#include <stdio.h>

enum {
    SOON_MS = 60000,
    LEASE_MS = 3000,
    LONG_MS = 30000, /* a server that has many keys to move at once stands still */
    MANY = 1000000,
    LESS = 100000,
    FEW = 2000,
    FILL = 10000, /* keys written by one script */
    BATCH = 500   /* keys moved by one command */
};

static const char tag[] = "{reshard}";

static long key_count, lease_ms;

/* ---- keys */

/* Numbered keys of the hash slot, in a few scripts: none keeps the node for long. */
static void fill(int node)
{
    static const char text[] =
        "for i = ARGV[2], ARGV[3] do redis.call('SET', ARGV[1] .. i, 'x') end";
    char first[24], last[24];

    for (long at = 0; at < key_count; at += FILL) {
        long end = at + FILL < key_count ? at + FILL : key_count;
        snprintf(first, sizeof(first), "%ld", at);
        snprintf(last, sizeof(last), "%ld", end - 1);
        test_redis_do(at_node[node], "EVAL", text, "1", tag, tag, first, last);
    }
}

/* ---- holders and waiters */

static rlock_mutex_t mutex, their_mutex;
static rlock_fair_t fair, their_fair;
static rlock_rwlock_t reader, writer, their_writer, their_reader;
static struct task waiters[4];

static void make_fair(rlock_fair_t *lock, rlock_client_t *c)
{
    rlock_mutexattr_t attr;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_fair_init(lock, &attr, "{reshard}f"));
    OK(rlock_mutexattr_destroy(&attr));
}

static void hold_all(void)
{
    mutex = mutex_of(client, "{reshard}m");
    make_fair(&fair, client);
    reader = rwlock_of(client, "{reshard}r");
    writer = rwlock_of(client, "{reshard}w");
    OK(rlock_mutex_lock(&mutex));
    OK(rlock_fair_lock(&fair));
    OK(rlock_rwlock_rdlock(&reader));
    OK(rlock_rwlock_wrlock(&writer));
}

static int run_write_pair(void *lock)
{
    int rc = run_wrlock(lock);
    return rc == 0 ? run_rwunlock(lock) : rc;
}

static int run_read_pair(void *lock)
{
    int rc = run_rdlock(lock);
    return rc == 0 ? run_rwunlock(lock) : rc;
}

static int run_fair_pair(void *lock)
{
    int rc = rlock_fair_lock(lock);
    return rc == 0 ? rlock_fair_unlock(lock) : rc;
}

static void wait_for_all(void)
{
    their_mutex = mutex_of(other, "{reshard}m");
    make_fair(&their_fair, other);
    their_writer = rwlock_of(other, "{reshard}r");
    their_reader = rwlock_of(other, "{reshard}w");
    task_start(&waiters[0], run_pair, &their_mutex);
    task_start(&waiters[1], run_fair_pair, &their_fair);
    task_start(&waiters[2], run_write_pair, &their_writer);
    task_start(&waiters[3], run_read_pair, &their_reader);
    ck_assert(wait_waiters(other, 4));
}

static void all_are_safe(void)
{
    rlock_state_t state = RLOCK_UNHELD;

    ck_assert_int_eq(state_of(&mutex), RLOCK_SAFE);
    OK(rlock_fair_getstate(&fair, &state));
    ck_assert_int_eq(state, RLOCK_SAFE);
    ck_assert_int_eq(run_rwstate(&reader), RLOCK_SAFE);
    ck_assert_int_eq(run_rwstate(&writer), RLOCK_SAFE);
    for (int i = 0; i < 4; i++)
        ck_assert(!task_ends(&waiters[i], 0));
}

/* For so many quarters of a lease. */
static void stay(int quarters)
{
    int64_t end = test_now_ms() + test_ms(lease_ms) * quarters / 4;

    while (test_now_ms() < end) {
        all_are_safe();
        test_pause_ms(20);
    }
}

static void release_all(void)
{
    OK(rlock_mutex_unlock(&mutex));
    OK(rlock_fair_unlock(&fair));
    OK(rlock_rwlock_unlock(&reader));
    OK(rlock_rwlock_unlock(&writer));
    for (int i = 0; i < 4; i++) {
        ck_assert(task_ends(&waiters[i], SOON_MS));
        OK(task_join(&waiters[i]));
    }
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}

static void open_with_lease(long ms)
{
    char parameters[32];

    lease_ms = ms;
    cluster_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(ms));
    client = cluster_client(parameters);
    other = cluster_client("");
}

static void set_up(void)
{
    key_count = test_is_full() ? MANY : FEW;
    open_with_lease(LEASE_MS);
}

static void set_up_at_once(void)
{
    key_count = test_is_full() ? LESS : FEW;
    open_with_lease(test_is_full() ? LONG_MS : LEASE_MS);
}

/* ---- the move */

/* rule: P20 */
START_TEST(move_of_a_full_hash_slot_costs_nobody_the_lock)
{
    unsigned hash_slot = cluster_hash_slot(tag);
    int from = cluster_master_of(hash_slot);
    int to = (from + 1) % CLUSTER_MASTERS;
    /* of each lock another key is at the other node first */
    const char *const first[] = { "{reshard}m", "rlock::{reshard}f:queue", "{reshard}r",
                                  "rlock::{reshard}w:rqueue", NULL };

    hold_all();
    wait_for_all();
    fill(from);
    cluster_begin_move(hash_slot, from, to);
    cluster_move_keys(hash_slot, from, to, first);
    for (long moved = 0; moved < key_count / 2;) {
        moved += cluster_move_batch(hash_slot, from, to, BATCH);
        all_are_safe();
    }
    stay(test_is_full() ? 8 : 5);
    while (cluster_move_batch(hash_slot, from, to, BATCH) > 0)
        all_are_safe();
    cluster_end_move(hash_slot, from, to);
    all_are_safe();
    release_all();
    ck_assert_int_ge((int)test_redis_int(at_node[to], "DBSIZE"), (int)key_count);
}
END_TEST

/* ---- a node that moves a hash slot at once */

static bool moves_at_once(int node)
{
    const redisReply *reply =
        test_redis_try(at_node[node], "CLUSTER", "GETSLOTMIGRATIONS");

    return reply && reply->type != REDIS_REPLY_ERROR;
}

static bool has_moved(void *arg)
{
    const int *from = arg;

    all_are_safe();
    const redisReply *reply = test_redis_try(at_node[*from], "EXISTS", tag);
    return reply && reply->type == REDIS_REPLY_ERROR;
}

/* rule: P24 */
START_TEST(move_at_once_costs_nobody_the_lock)
{
    unsigned hash_slot = cluster_hash_slot(tag);
    int from = cluster_master_of(hash_slot), to = (from + 1) % CLUSTER_MASTERS;
    char text[16];

    if (!moves_at_once(from)) {
        printf(
            "skipped: move_at_once_costs_nobody_the_lock: this server moves hash slots "
            "key by key\n");
        return;
    }
    hold_all();
    wait_for_all();
    fill(from);
    snprintf(text, sizeof(text), "%u", hash_slot);
    test_redis_do(at_node[from], "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", text, text,
                  "NODE", nodes[to].id);
    ck_assert(test_wait_until(has_moved, &from, SOON_MS));
    stay(test_is_full() ? 1 : 5);
    release_all();
    ck_assert_int_ge((int)test_redis_int(at_node[to], "DBSIZE"), (int)key_count);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster reshard");
    TCase *tc = tcase_create("reshard");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, cluster_close);
    tcase_add_test(tc, move_of_a_full_hash_slot_costs_nobody_the_lock);
    suite_add_tcase(s, tc);
    tc = tcase_create("at once");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up_at_once, cluster_close);
    tcase_add_test(tc, move_at_once_costs_nobody_the_lock);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
