/* SPDX-License-Identifier: Apache-2.0 */
/* Locks in a cluster of three masters and three replicas. */
/* program: claims=P16,P18,P23,P25 */
#include "acl_line.h"
#include "clusterscene.h"
#include "worker.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 20000 };

/* Whether the node has the lock. */
static bool is_at(int node, const char *name)
{
    return test_redis_int(at_node[node], "EXISTS", name) == 1;
}

/* ---- routes */

/* rule: P18 */
START_TEST(lock_is_at_the_node_of_its_hash_slot)
{
    client = cluster_client("");
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        const char *name = cluster_name(i, 0);
        rlock_mutex_t m = mutex_of(client, name);
        OK(rlock_mutex_lock(&m));
        ck_assert(is_at(i, name));
        OK(rlock_mutex_unlock(&m));
        ck_assert(!is_at(i, name));
    }
}
END_TEST

START_TEST(one_seed_is_enough_and_a_dead_seed_does_no_harm)
{
    char url[128];

    client = cluster_open_at(cluster_url(1, ""));
    snprintf(url, sizeof(url), "redis-cluster://127.0.0.1:1,127.0.0.1:%u",
             (unsigned)nodes[2].port);
    other = cluster_open_at(url);
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        rlock_mutex_t m = mutex_of(client, cluster_name(i, 1)),
                      n = mutex_of(other, cluster_name(i, 1));
        OK(rlock_mutex_lock(&m));
        EXPECT(rlock_mutex_trylock(&n), EBUSY);
        OK(rlock_mutex_unlock(&m));
        OK(rlock_mutex_lock(&n));
        OK(rlock_mutex_unlock(&n));
    }
}
END_TEST

START_TEST(waiter_gets_the_lock_from_another_client)
{
    char command[256];
    struct worker w;

    client = cluster_client("");
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        const char *name = cluster_name(i, 2);
        rlock_mutex_t m = mutex_of(client, name);
        OK(rlock_mutex_lock(&m));
        worker_start(&w, NULL);
        snprintf(command, sizeof(command), "open %s",
                 cluster_url(CLUSTER_MASTERS, "?presence=3000"));
        ck_assert(worker_says(&w, command, "ok"));
        snprintf(command, sizeof(command), "init m %s", name);
        ck_assert(worker_says(&w, command, "ok"));
        ck_assert(worker_says(&w, "async t lock m", "ok"));
        ck_assert(!worker_news(&w, "done t", 200));
        int64_t begin = test_now_ms();
        OK(rlock_mutex_unlock(&m));
        ck_assert(worker_news(&w, "done t", SOON_MS));
        ck_assert_int_lt(test_now_ms() - begin, test_ms(900)); /* by message, no poll */
        worker_end(&w);
    }
}
END_TEST

static bool is_asked_about(void *arg)
{
    const unsigned long long *before = arg;
    return stats_of(client).renewals > *before;
}

/* rule: P16, P23 */
START_TEST(new_master_is_asked_at_once_about_what_is_held)
{
    client = cluster_client("?lease=600000");
    rlock_mutex_t m = mutex_of(client, cluster_name(0, 4)),
                  n = mutex_of(client, cluster_name(0, 5));
    OK(rlock_mutex_lock(&m));
    unsigned long long before = stats_of(client).renewals;
    cluster_failover(0, NULL);
    OK(rlock_mutex_lock(&n)); /* so the client learns of the move */
    ck_assert(test_wait_until(is_asked_about, &before, SOON_MS));
    ck_assert_int_eq(
        (int)test_redis_int(at_node[CLUSTER_MASTERS], "EXISTS", cluster_name(0, 5)), 1);
    OK(rlock_mutex_unlock(&n));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

/* ---- users */

enum { SHARDED_SINCE = 70000, FIRST_LINE = 0, LINE_OF_CLUSTERS = 3 };

/* Gives the user the words of a line of the document. */
static void set_user(struct test_redis *r, int line)
{
    const char *argv[ACL_WORDS_MAX + 4] = { "ACL", "SETUSER", "worker" };
    struct acl_line acl;
    int argc = 3;

    acl_read_line(&acl, ACL_DOC, line);
    for (int i = 0; i < acl.count; i++)
        argv[argc++] = strcmp(acl.words[i], ">PASSWORD") == 0 ? ">pw" : acl.words[i];
    test_redis_do_argv(r, argv);
}

START_TEST(user_of_the_document_locks_and_waits_in_a_cluster)
{
    char url[256], key[32];

    if (test_server_version() < SHARDED_SINCE) {
        puts("skipped: user_of_the_document_locks_and_waits_in_a_cluster: this server "
             "does not know all words");
        return;
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        set_user(at_node[i], FIRST_LINE);
        set_user(at_node[i], LINE_OF_CLUSTERS);
    }
    snprintf(url, sizeof(url), "redis-cluster://worker:pw@127.0.0.1:%u",
             (unsigned)nodes[0].port);
    client = cluster_open_at(url);
    other = cluster_open_at(url);
    for (int k = 0; k < 3 * CLUSTER_MASTERS; k++) {
        struct task waiter;
        snprintf(key, sizeof(key), "jobs:%d", k);
        rlock_mutex_t m = mutex_of(client, key), n = mutex_of(other, key);
        OK(rlock_mutex_lock(&m));
        task_start(&waiter, run_pair, &n);
        ck_assert(wait_waiters(other, 1));
        OK(rlock_mutex_unlock(&m));
        ck_assert(task_ends(&waiter, SOON_MS));
        OK(task_join(&waiter));
    }
    ck_assert_uint_eq(stats_of(client).refusals + stats_of(other).refusals, 0);
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "ACL", "DELUSER", "worker");
}
END_TEST

/* ---- administration */

static int count_locks(const rlock_info_t *info, void *arg)
{
    unsigned *seen = arg;

    for (int i = 0; i < CLUSTER_MASTERS; i++)
        if (strcmp(info->name, cluster_name(i, 3)) == 0)
            *seen |= 1u << i;
    return 0;
}

/* rule: P25 */
START_TEST(listing_shows_the_locks_of_all_masters_and_force_takes_one_away)
{
    rlock_mutex_t m[CLUSTER_MASTERS];
    rlock_info_t *info = NULL;
    unsigned seen = 0;

    client = cluster_client("");
    other = cluster_client("");
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        m[i] = mutex_of(client, cluster_name(i, 3));
        OK(rlock_mutex_lock(&m[i]));
    }
    OK(rlock_list(other, "L*", count_locks, &seen));
    ck_assert_uint_eq(seen, (1u << CLUSTER_MASTERS) - 1);
    OK(rlock_inspect(other, cluster_name(2, 3), &info));
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_str_ne(info->holders[0].client, ""); /* CLIENT LIST of that node names it */
    rlock_info_free(info);
    OK(rlock_force_unlock(other, cluster_name(2, 3)));
    EXPECT(rlock_mutex_unlock(&m[2]), ESTALE);
    for (int i = 0; i < 2; i++)
        OK(rlock_mutex_unlock(&m[i]));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster");
    TCase *tc = cluster_tcase(s, "routes");
    tcase_add_test(tc, lock_is_at_the_node_of_its_hash_slot);
    tcase_add_test(tc, one_seed_is_enough_and_a_dead_seed_does_no_harm);
    tcase_add_test(tc, waiter_gets_the_lock_from_another_client);
    tcase_add_test(tc, new_master_is_asked_at_once_about_what_is_held);
    tcase_add_test(tc, user_of_the_document_locks_and_waits_in_a_cluster);
    tcase_add_test(tc, listing_shows_the_locks_of_all_masters_and_force_takes_one_away);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
