/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's faults of a cluster: shards get other masters, nodes restart, hash slots
 * move, and in the end all nodes agree. */
#include "faults_impl.h"

#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_MS = 300, LOCK = 3, SOON_MS = 10000, KEY_MAX = 64 };

static char dir[] = "/tmp/rlknemXXXXXX";
static struct nem_faults *faults;

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    faults = nem_faults_start_servers(dir, 1, NEM_CLUSTER_REPLICAS, NULL);
}

static void stop(void)
{
    char command[64];
    nem_faults_stop(faults);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

/* ---- looks */

static struct nem_nodes *nodes(void)
{
    return &faults->nodes;
}

/* The last record that was written. */
static struct nem_fault last_record(void)
{
    char path[64];
    struct nem_fault record = { 0 };
    snprintf(path, sizeof(path), "%s/faults", dir);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -(long)sizeof(record), SEEK_END), 0);
    ck_assert_uint_eq(fread(&record, sizeof(record), 1, file), 1);
    fclose(file);
    return record;
}

static bool has_lock(const struct nem_fault *record, unsigned lock)
{
    return (record->locks[lock / 8] >> lock % 8 & 1) != 0;
}

static struct test_redis *to_master_of(unsigned lock)
{
    const struct nem_nodes *n = nodes();
    return test_redis_connect(n->node[n->master[n->shard[lock]]].server.path);
}

static const char *key_of(char key[KEY_MAX], unsigned lock, int i)
{
    snprintf(key, KEY_MAX, i == 0 ? "nemesis%u" : "rlock:{nemesis%u}:%d", lock, i);
    return key;
}

/* Two keys of each of the first locks; the replicas have them when this returns. */
static void write_keys(void)
{
    char key[KEY_MAX];
    for (unsigned lock = 0; lock < 9; lock++) {
        struct test_redis *r = to_master_of(lock);
        for (int i = 0; i < 2; i++)
            test_redis_do(r, "SET", key_of(key, lock, i), "1");
        ck_assert_int_eq(test_redis_int(r, "WAIT", "1", "10000"), 1);
        test_redis_close(r);
    }
}

/* All keys are at the masters that the nemesis believes to have them. */
static void check_keys(void)
{
    char key[KEY_MAX];
    for (unsigned lock = 0; lock < 9; lock++) {
        struct test_redis *r = to_master_of(lock);
        for (int i = 0; i < 2; i++)
            ck_assert(test_redis_exists(r, key_of(key, lock, i)));
        test_redis_close(r);
    }
    ck_assert(nem_nodes_are_whole(nodes()));
}

/* Carries out one step, whose index is 0: so it is about shard 0. */
static struct nem_fault run(enum nem_kind kind, long length_ms, int64_t amount,
                            unsigned lock)
{
    struct nem_step step = { .kind = kind,
                             .length_ms = test_ms(length_ms),
                             .target = NEM_ALL,
                             .lock = (uint16_t)lock,
                             .amount = amount };
    struct nem_plan plan = { &step, 1 };
    write_keys();
    nem_faults_run(faults, &plan, NULL);
    check_keys();
    struct nem_fault record = last_record();
    ck_assert_int_eq(record.kind, (int32_t)kind);
    return record;
}

static void is_about_shard_0(const struct nem_fault *record)
{
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        ck_assert_int_eq(has_lock(record, i), nodes()->shard[i] == 0);
}

/* ---- masters */

static void gets_another_master(enum nem_kind kind, long length_ms, int64_t amount)
{
    unsigned old = nodes()->master[0];
    struct nem_fault record = run(kind, length_ms, amount, NEM_ALL);
    is_about_shard_0(&record);
    ck_assert_uint_eq(record.hits, 1);
    ck_assert_uint_gt(record.took_us, 0);
    ck_assert_uint_eq(nodes()->master[0], nem_node_beside(old));
    ck_assert(nem_node_is_master(nodes(), nodes()->master[0]));
    ck_assert(!nem_node_is_master(nodes(), old));
}

START_TEST(shard_has_another_master_and_the_old_one_follows_it)
{
    gets_another_master(NEM_FAILOVER, 0, 0);
    if (!test_is_full())
        return;
    gets_another_master(NEM_MASTER_KILL, LENGTH_MS, 0);
    gets_another_master(NEM_MASTER_STOP, LENGTH_MS, 0);
    gets_another_master(NEM_TAKEOVER, 0, 0);
    gets_another_master(NEM_TAKEOVER, LENGTH_MS, 1);
    gets_another_master(NEM_BUS_CUT, 4 * NEM_NODE_TIMEOUT_MS, 0);
}
END_TEST

START_TEST(bus_that_is_cut_for_a_moment_costs_no_master)
{
    unsigned old = nodes()->master[0];
    struct nem_fault record = run(NEM_BUS_CUT, LENGTH_MS, 0, NEM_ALL);
    is_about_shard_0(&record);
    ck_assert_uint_eq(record.hits, 0);
    ck_assert_uint_eq(nodes()->master[0], old);
    record = run(NEM_BUS_CUT, LENGTH_MS, 1, NEM_ALL);
    ck_assert(has_lock(&record, 0) && has_lock(&record, NEM_LOCKS_MAX - 1));
    ck_assert_uint_eq(nodes()->master[0], old);
}
END_TEST

/* ---- restarts */

START_TEST(node_restarts_with_its_data_and_stays_what_it_was)
{
    unsigned old = nodes()->master[0], node = _i ? nem_node_beside(old) : old;
    pid_t pid = test_server_pid(&nodes()->node[node].server);
    struct nem_fault record = run(NEM_NODE_RESTART, 0, _i, NEM_ALL);
    is_about_shard_0(&record);
    ck_assert_int_ne(test_server_pid(&nodes()->node[node].server), pid);
    ck_assert_uint_eq(nodes()->master[0], old);
}
END_TEST

START_TEST(rolling_restart_renews_all_nodes_and_loses_nothing)
{
    pid_t pids[TEST_CLUSTER_NODES];
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++)
        pids[i] = test_server_pid(&nodes()->node[i].server);
    struct nem_fault record = run(NEM_ROLLING_RESTART, 0, 0, NEM_ALL);
    ck_assert_uint_ge(record.hits, TEST_CLUSTER_MASTERS);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        ck_assert_int_ne(test_server_pid(&nodes()->node[i].server), pids[i]);
        ck_assert(has_lock(&record, i));
    }
}
END_TEST

/* ---- hash slots */

static void moves(enum nem_kind kind, long length_ms, int64_t amount)
{
    struct nem_nodes *n = nodes();
    unsigned from = n->shard[LOCK];
    struct nem_fault record = run(kind, length_ms, amount, LOCK);
    ck_assert_uint_ne(n->shard[LOCK], from);
    ck_assert_uint_eq(record.hits, 2); /* keys */
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        ck_assert_int_eq(has_lock(&record, i), n->hash_slot[i] == n->hash_slot[LOCK]);
    ck_assert(nem_nodes_see(n, n->hash_slot[LOCK], n->master[n->shard[LOCK]]));
    ck_assert_int_ge(record.end - record.begin,
                     test_ms(length_ms) * (int64_t)NEM_NS_PER_MS);
}

START_TEST(hash_slot_moves_with_all_its_keys)
{
    moves(NEM_RESHARD, 0, 0);
    for (long amount = 0; amount < 3; amount++)
        moves(NEM_RESHARD_HALFWAY, LENGTH_MS, amount);
}
END_TEST

/* ---- links */

START_TEST(process_has_a_link_to_each_node)
{
    char text[NEM_LINK_MAX], port[16];
    nem_faults_link(faults, 0, text);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        snprintf(port, sizeof(port), "%u>", (unsigned)nodes()->node[i].port);
        const char *at = strstr(text, port);
        ck_assert_ptr_nonnull(at);
        struct test_redis *r =
            test_redis_connect_port((unsigned)atoi(strchr(at, ':') + 1));
        ck_assert_ptr_nonnull(
            strstr(test_redis_str(r, "CLUSTER", "MYID"), nodes()->node[i].id));
        test_redis_close(r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nemesis: cluster");
    TCase *tc = tcase_create("cluster");
    tcase_add_checked_fixture(tc, start, stop);
    tcase_add_test(tc, shard_has_another_master_and_the_old_one_follows_it);
    tcase_add_test(tc, hash_slot_moves_with_all_its_keys);
    tcase_add_test(tc, process_has_a_link_to_each_node);
    if (test_is_full()) { /* some seconds each */
        tcase_add_test(tc, bus_that_is_cut_for_a_moment_costs_no_master);
        tcase_add_loop_test(tc, node_restarts_with_its_data_and_stays_what_it_was, 0, 2);
        tcase_add_test(tc, rolling_restart_renews_all_nodes_and_loses_nothing);
    }
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
