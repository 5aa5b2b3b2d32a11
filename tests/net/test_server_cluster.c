/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node of a cluster (doc/FAULTS.md, 1e). The node has the lower half of the hash slots;
 * the other node, which cannot be reached, has the upper half. Locks in the node's half
 * work as on any server. A call for another lock fails with the name of the server's
 * error, or waits where that may help.
 */
#include "port.h"
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MS = 250, SLACK_MS = 150, HALF = 8192 };

static const char self_id[] = "1111111111111111111111111111111111111111";
static const char other_id[] = "2222222222222222222222222222222222222222";

static struct test_server node;
static struct test_redis *redis;
static rlock_client_t *client;
static struct worker x;
static int bus = -1;

/* ---- the node, one for all tests */

static void write_nodes(unsigned bus_port)
{
    char path[TEST_PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s/nodes.conf", node.dir);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%s 127.0.0.1:%u@%u myself,master - 0 0 1 connected 0-%d\n", self_id,
            (unsigned)node.port, bus_port, HALF - 1);
    fprintf(f, "%s 127.0.0.1:1@2 master - 0 0 2 connected %d-16383\n", other_id, HALF);
    fprintf(f, "vars currentEpoch 2 lastVoteEpoch 0\n");
    fclose(f);
}

static bool is_up(void *arg)
{
    return strstr(test_redis_str(arg, "CLUSTER", "INFO"), "cluster_state:ok") != NULL;
}

static void start_node(void)
{
    uint16_t bus_port;
    char port[8];
    test_server_start(&node, NULL);
    bus = test_port_reserve("127.0.0.1", &bus_port);
    write_nodes(bus_port);
    const char *option = test_server_bus_option(bus_port, port);
    test_server_restart_args(&node, TEST_ARGV("--cluster-enabled", "yes", option, port,
                                              "--cluster-node-timeout", "600000",
                                              "--cluster-require-full-coverage", "no"));
    struct test_redis *r = test_redis_connect(node.path);
    ck_assert(test_wait_until(is_up, r, 20000)); /* the node itself waits for 2 s */
    test_redis_close(r);
}

static void stop_node(void)
{
    test_server_stop(&node);
    close(bus);
}

static void open_node(void)
{
    char command[256];
    memset(&x, 0, sizeof(x));
    test_rundir_own_if_any(); /* no other test's dead process matters here */
    redis = test_redis_connect(node.path);
    test_redis_do(redis, "FLUSHALL");
    client = scene_open_client(node.url, SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    worker_start(&x, NULL);
    snprintf(command, sizeof(command), "open %s presence=%ld", node.url, test_ms(300));
    ck_assert(worker_says(&x, command, "ok"));
}

static void close_node(void)
{
    worker_end(&x);
    ck_assert_int_eq(rlock_client_close(client), 0);
    test_redis_close(redis);
}

/* ---- names and hash slots */

static long long slot_of(const char *name)
{
    return test_redis_int(redis, "CLUSTER", "KEYSLOT", name);
}

/* The first name "L<number>" in this node's half, or in the other node's. */
static const char *a_name(char buf[16], bool ours)
{
    for (int n = 0;; n++) {
        snprintf(buf, 16, "L%d", n);
        if ((slot_of(buf) < HALF) == ours)
            return buf;
    }
}

static const char *number(char buf[24], long long value)
{
    snprintf(buf, 24, "%lld", value);
    return buf;
}

static void check_try(rlock_mutex_t *m, int code, const char *word)
{
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_trylock(m), code);
    ck_assert_msg(strstr(rlock_errmsg(), word), "%s", rlock_errmsg());
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
}

/* ---- tests */

START_TEST(a_lock_of_another_nodes_slot_is_EPROTO_and_says_MOVED)
{
    char name[16];
    rlock_mutex_t m;
    scene_mutex(&m, client, a_name(name, false));
    check_try(&m, EPROTO, "MOVED");
    ck_assert_int_eq(rlock_mutex_lock(&m), EPROTO);
    ck_assert_msg(strstr(rlock_errmsg(), "redis-cluster://"), "%s", rlock_errmsg());
}
END_TEST

START_TEST(a_slot_that_no_node_serves_is_waited_for)
{
    char name[16], slot[24];
    rlock_mutex_t m;
    scene_mutex(&m, client, a_name(name, true));
    number(slot, slot_of(name));
    test_redis_do(redis, "CLUSTER", "DELSLOTS", slot);
    scene_says(&x, "ok", "init m %s", name);
    scene_says(&x, "ok", "async t lock m");
    check_try(&m, ENOTCONN, "CLUSTERDOWN");
    ck_assert(!worker_news(&x, "done t", 0));
    test_redis_do(redis, "CLUSTER", "ADDSLOTS", slot);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_trylock(&m), EBUSY);
}
END_TEST

START_TEST(a_slot_that_has_moved_to_another_node_is_EPROTO_and_says_ASK)
{
    char name[16], slot[24];
    rlock_mutex_t m;
    scene_mutex(&m, client, a_name(name, true));
    number(slot, slot_of(name));
    test_redis_do(redis, "CLUSTER", "SETSLOT", slot, "MIGRATING", other_id);
    check_try(&m, EPROTO, "ASK");
    test_redis_do(redis, "CLUSTER", "SETSLOT", slot, "STABLE");
    ck_assert_int_eq(rlock_mutex_trylock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

START_TEST(a_slot_of_which_some_keys_have_moved_is_waited_for)
{
    if (test_server_version() < 70000) {
        puts("skipped: a_slot_of_which_some_keys_have_moved_is_waited_for: this server "
             "says ASK");
        return;
    }
    char name[16], slot[24];
    rlock_mutex_t m;
    scene_mutex(&m, client, a_name(name, true));
    number(slot, slot_of(name));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0); /* one key exists, the others do not */
    test_redis_do(redis, "CLUSTER", "SETSLOT", slot, "MIGRATING", other_id);
    rlock_client_t *second =
        scene_open_client(node.url, SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    rlock_mutex_t n;
    scene_mutex(&n, second, name);
    check_try(&n, ENOTCONN, "TRYAGAIN");
    scene_says(&x, "ok", "init m %s", name);
    scene_says(&x, "ok", "async t lock m");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(!worker_news(&x, "done t", 0));
    test_redis_do(redis, "CLUSTER", "SETSLOT", slot, "STABLE");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_client_close(second), 0);
}
END_TEST

static const char *const names[] = { "plain", "a b",   ":",      "a:b",    "{a}", "{b}",
                                     "{c}",   "a{b}c", "x{tag}", "{tag}x", "*",   "[a]" };

START_TEST(all_keys_of_a_lock_are_in_one_slot_whatever_its_name)
{
    int ours = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rlock_mutex_t m;
        scene_fenced_mutex(&m, client, names[i]);
        int rc = rlock_mutex_trylock(&m);
        if (rc == 0) {
            ours++;
            ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
            continue;
        }
        ck_assert_int_eq(rc, EPROTO);
        ck_assert_msg(strstr(rlock_errmsg(), "MOVED"), "%s: %s", names[i],
                      rlock_errmsg());
    }
    ck_assert_int_gt(ours, 0);
}
END_TEST

START_TEST(locks_of_its_slots_are_handed_over)
{
    static const char *const kinds[] = { "", "fair=1", "rwlock=1" };
    char name[16];
    a_name(name, true);
    for (int i = 0; i < 3; i++) {
        struct worker y = { 0 };
        worker_start(&y, NULL);
        scene_says(&y, "ok", "open %s presence=%ld", node.url, test_ms(300));
        scene_says(&y, "ok", "init m %s %s", name, kinds[i]);
        scene_says(&x, "ok", "init m%d %s %s", i, name, kinds[i]);
        for (int round = 0; round < 20; round++) {
            scene_says(&x, "ok", "on t lock m%d", i);
            scene_says(&y, "ok", "async t lock m");
            scene_says(&x, "ok", "on t unlock m%d", i);
            ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
            scene_says(&y, "ok", "on t unlock m");
        }
        worker_end(&y);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server cluster");
    TCase *tc = tcase_create("cluster");
    tcase_add_unchecked_fixture(tc, start_node, stop_node);
    tcase_add_checked_fixture(tc, open_node, close_node);
    tcase_add_test(tc, a_lock_of_another_nodes_slot_is_EPROTO_and_says_MOVED);
    tcase_add_test(tc, a_slot_that_no_node_serves_is_waited_for);
    tcase_add_test(tc, a_slot_that_has_moved_to_another_node_is_EPROTO_and_says_ASK);
    tcase_add_test(tc, a_slot_of_which_some_keys_have_moved_is_waited_for);
    tcase_add_test(tc, all_keys_of_a_lock_are_in_one_slot_whatever_its_name);
    tcase_add_test(tc, locks_of_its_slots_are_handed_over);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
