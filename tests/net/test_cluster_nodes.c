/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that come and go: a client keeps none that has no hash slots any more. The maps
 * are made here; the nodes are addresses of one server, which therefore has all locks
 * whatever the map says. Nodes without hash slots stay for a moment here, not for
 * seconds. */
#include "base/clock.h"
#include "client/client.h" /* before fixture.h, which declares a variable `client` */
#include "client/cluster_impl.h"
#include "client/masters.h"

#include "fixture.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ADDRESSES = 15, /* of the server: 127.0.0.1 and so on */
    ROUNDS = 4,
    CHANGES = 2 * ADDRESSES, /* in a round; half of the addresses do not answer */
    KEEP_MS = 30,
    SOON_MS = 20000,
    SLACK = 64, /* bytes, of an allocation */
    ROUGHLY =
        32768, /* bytes; the nodes of the later rounds would have three times as many */
    THREADS = 4,
    STRESS_CHANGES = 200,
    PAUSE_MS = 10
};

static struct rlk_cluster *cluster;

static void start(void)
{
    test_server_start(&server,
                      TEST_ARGV("--bind", "127.0.0.1", "127.0.0.2", "127.0.0.3",
                                "127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7",
                                "127.0.0.8", "127.0.0.9", "127.0.0.10", "127.0.0.11",
                                "127.0.0.12", "127.0.0.13", "127.0.0.14", "127.0.0.15"));
}

/* The lower half of the hash slots is at the first host, the upper half at the second. */
static void set_map(const char *first, const char *second)
{
    struct rlk_cluster_map *map = calloc(1, sizeof(*map));

    ck_assert_ptr_nonnull(map);
    map->masters = calloc(2, sizeof(*map->masters));
    ck_assert_ptr_nonnull(map->masters);
    map->master_count = 2;
    map->masters[0].host = strdup(first);
    map->masters[1].host = strdup(second);
    map->masters[0].port = map->masters[1].port = server.port;
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++)
        map->owner[i] = i < RLK_HASH_SLOTS / 2 ? 1 : 2;
    OK(rlk_cluster_apply(cluster, map));
    rlk_cluster_map_free(map);
}

/* The address of a node: the server's, or (beyond ADDRESSES) one that does not answer. */
static const char *host(int k)
{
    static char texts[4][24];
    static unsigned next;
    char *text = texts[next++ % 4];

    if (k < ADDRESSES)
        snprintf(text, sizeof(texts[0]), "127.0.0.%d", k + 1);
    else
        snprintf(text, sizeof(texts[0]), "127.0.1.%d", k);
    return text;
}

static void set_up(void)
{
    char url[128];

    test_rundir_own_if_any();
    redis = test_redis_connect(server.path);
    test_redis_do(redis, "FLUSHALL");
    snprintf(url, sizeof(url), "redis-cluster://127.0.0.1:%u", (unsigned)server.port);
    client = open_unseen(url, "");
    cluster = client->route.cluster;
    cluster->keep_ns = test_ms(KEEP_MS) * RLK_NS_PER_MS;
    set_map(host(0), host(0));
}

static void tear_down(void)
{
    if (client)
        close_client(client);
    client = NULL;
    test_redis_close(redis);
}

static bool has_nodes(void *arg)
{
    const size_t *wanted = arg;
    return rlk_cluster_count(cluster) == *wanted;
}

static bool await_nodes(size_t wanted)
{
    return test_wait_until(has_nodes, &wanted, SOON_MS);
}

static void lock_once(const char *name)
{
    rlock_mutex_t m = mutex_of(client, name);

    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}

/* ---- memory */

/* All hash slots go from address to address; then the first one has them again. Those
 * that do not answer are new ones in each round. */
static void make_a_round(int round)
{
    for (int k = 0; k < ADDRESSES; k++) {
        set_map(host(k), host(k));
        lock_once("n");
        const char *silent = host(ADDRESSES * (round + 1) + k);
        set_map(silent, silent);
    }
    set_map(host(0), host(0));
    lock_once("n");
    ck_assert(await_nodes(1));
}

/* rule: P23 */
START_TEST(nodes_that_are_gone_leave_no_memory_behind)
{
    mallopt(M_ARENA_MAX, 1); /* the numbers are of the first one */
    make_a_round(0);
    size_t count = atomic_load(&cluster->count), bytes = mallinfo2().uordblks;
    for (int i = 1; i < ROUNDS; i++)
        make_a_round(i);
    /* how many there were at a time depends on the machine */
    size_t more = atomic_load(&cluster->count) - count;
    ck_assert_uint_le(count + more, CHANGES + 1);
    ck_assert_uint_le(mallinfo2().uordblks,
                      bytes + more * (sizeof(struct rlk_node) + SLACK) + ROUGHLY);
}
END_TEST

START_TEST(node_whose_address_comes_back_is_used_again)
{
    rlock_mutex_t m = mutex_of(client, "n");

    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < 3; i++) {
        set_map(host(1), host(2));
        ck_assert(await_nodes(2));
        lock_once("a");
        lock_once("b");
        set_map(host(0), host(0));
        ck_assert(await_nodes(1));
    }
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

/* ---- users */

/* rule: P23 */
START_TEST(node_that_a_call_uses_is_not_let_go)
{
    struct rlk_masters masters;
    rlock_mutex_t m = mutex_of(client, "n");

    set_map(host(3), host(3));
    OK(rlk_masters_get(client, rlk_clock_boot() + RLK_NS_PER_S, &masters));
    ck_assert_uint_eq(masters.count, 1);
    set_map(host(4), host(4)); /* it goes, but later than the other one could */
    set_map(host(0), host(0));
    ck_assert(await_nodes(2));
    ck_assert_str_eq(masters.each[0]->endpoint->host, host(3));
    rlk_masters_put(&masters);
    ck_assert(await_nodes(1));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static atomic_bool enough;

/* Locks both a name of the lower hash slots and one of the upper ones. */
static int run_on(void *arg)
{
    static const char *const names[] = { "foo", "bar", "{user1000}.following", "a" };
    const int *number = arg;
    int rc = 0;

    for (int i = *number; rc == 0 && !atomic_load(&enough); i++) {
        rlock_mutex_t m = mutex_of(client, names[i % 4]);
        rc = rlock_mutex_lock(&m);
        if (rc == 0)
            rc = rlock_mutex_unlock(&m);
    }
    return rc;
}

/* rule: P23 */
START_TEST(calls_under_way_outlast_every_change_of_the_map)
{
    struct task tasks[THREADS];
    int numbers[THREADS];

    atomic_store(&enough, false);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        task_start(&tasks[i], run_on, &numbers[i]);
    }
    for (int i = 0; i < STRESS_CHANGES; i++) {
        set_map(host(i % ADDRESSES), host(i * 7 % ADDRESSES));
        test_pause_ms(PAUSE_MS);
    }
    atomic_store(&enough, true);
    for (int i = 0; i < THREADS; i++) {
        ck_assert(task_ends(&tasks[i], SOON_MS));
        OK(task_join(&tasks[i]));
    }
    set_map(host(0), host(0));
    ck_assert(await_nodes(1));
}
END_TEST

START_TEST(client_closes_while_nodes_are_let_go)
{
    for (int i = 0; i < ADDRESSES; i++) {
        for (int k = 0; k <= i; k++) {
            set_map(host(k + ADDRESSES), host(k));
            lock_once("foo"); /* in the upper half; the other host does not answer */
        }
        close_client(client);
        client = NULL;
        test_redis_close(redis);
        set_up();
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cluster nodes");
    TCase *tc = tcase_create("nodes");
    tcase_add_unchecked_fixture(tc, start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, nodes_that_are_gone_leave_no_memory_behind);
    tcase_add_test(tc, node_whose_address_comes_back_is_used_again);
    tcase_add_test(tc, node_that_a_call_uses_is_not_let_go);
    tcase_add_test(tc, calls_under_way_outlast_every_change_of_the_map);
    tcase_add_test(tc, client_closes_while_nodes_are_let_go);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
