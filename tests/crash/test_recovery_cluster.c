/* SPDX-License-Identifier: Apache-2.0 */
/* Dead processes of a cluster's clients. `v` is killed; the others know the cluster by
 * nodes that v does not name. Leases are so long that only a recovery ends them within a
 * test. */
#include "cli.h"
#include "clusterscene.h"
#include "livefile_view.h"
#include "port.h"
#include "worker.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LONG "?lease=600000&presence=30000"

enum { MARK_AT = RLK_LIVEFILE_HEADER - 64 };

static struct worker v, w;
static rlock_mutex_t awaited[CLUSTER_MASTERS];
static bool client_holds; /* `client` has these locks */
static struct cli daemon_program;
static const char *dir;

static void open_all(void)
{
    cluster_open();
    dir = test_rundir_own();
    memset(&v, 0, sizeof(v));
    memset(&w, 0, sizeof(w));
    memset(&daemon_program, 0, sizeof(daemon_program));
}

static void close_all(void)
{
    cli_stop(&daemon_program);
    worker_end(&v);
    worker_end(&w);
    for (int i = 0; client_holds && i < CLUSTER_MASTERS; i++)
        OK(rlock_mutex_unlock(&awaited[i]));
    cluster_close();
}

__attribute__((format(printf, 2, 3))) static void obeys(struct worker *who,
                                                        const char *format, ...)
{
    char command[256];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    ck_assert_msg(worker_says(who, command, "ok"), "%s: %s", command, who->answer);
}

/* A URL with this node alone. */
static const char *seed(int node)
{
    static char url[CLUSTER_NODES][128];

    snprintf(url[node], sizeof(url[node]), "redis-cluster://127.0.0.1:%u" LONG,
             (unsigned)nodes[node].port);
    return url[node];
}

/* v holds a lock of each master, and waits for another one of each, which `client` holds;
 * by node 0 alone. */
static void begin_v(void)
{
    client = cluster_client("?lease=600000&guard=0");
    worker_start(&v, seed(0));
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        awaited[i] = mutex_of(client, cluster_name(i, 1));
        OK(rlock_mutex_lock(&awaited[i]));
        client_holds = true;
        obeys(&v, "init h%d %s", i, cluster_name(i, 0));
        obeys(&v, "lock h%d", i);
        obeys(&v, "init w%d %s", i, cluster_name(i, 1));
        obeys(&v, "async t%d lock w%d", i, i);
    }
}

struct queued {
    int master, k, count;
};

static bool is_queued(void *arg)
{
    const struct queued *q = arg;
    char key[64];

    snprintf(key, sizeof(key), "rlock:{%s}:queue", cluster_name(q->master, q->k));
    return test_redis_int(at_node[q->master], "ZCARD", key) == q->count;
}

/* Waits until so many wait for the k-th lock of each master. */
static void await_queued(int k, int count)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        struct queued q = { i, k, count };
        ck_assert(test_wait_until(is_queued, &q, CLUSTER_SOON_MS));
    }
}

/* w waits for the locks that v holds, by another node alone. */
static void begin_w(const char *url, const char *const *env)
{
    worker_start_env(&w, url, env);
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        obeys(&w, "init m%d %s", i, cluster_name(i, 0));
        obeys(&w, "async t%d lock m%d", i, i);
    }
    await_queued(0, 1);
}

static void w_has_all(void)
{
    char tag[24];

    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        snprintf(tag, sizeof(tag), "done t%d", i);
        const char *news = worker_news(&w, tag, CLUSTER_SOON_MS);
        ck_assert_msg(news && strstr(news, " ok"), "%s: %s", tag, news ? news : "-");
    }
}

/* ---- one cluster */

/* rule: P25 */
START_TEST(process_with_other_seeds_recovers_holder_and_waiter_at_all_masters)
{
    begin_v();
    await_queued(1, 1);
    begin_w(seed(_i), NULL);
    worker_kill(&v);
    w_has_all();
    await_queued(1, 0); /* nothing is left of v's waiting threads, long before they would
                           count as gone */
    ck_assert(test_rundir_wait(dir, 1, CLUSTER_SOON_MS));
}
END_TEST

/* rule: P25 */
START_TEST(new_process_with_other_seeds_recovers_what_an_earlier_one_left)
{
    begin_v();
    await_queued(1, 1);
    worker_kill(&v);
    worker_start(&w, seed(2));
    ck_assert(test_rundir_wait(dir, 1, CLUSTER_SOON_MS));
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        ck_assert_int_eq((int)test_redis_int(at_node[i], "EXISTS", cluster_name(i, 0)),
                         0);
}
END_TEST

/* rule: P25 */
START_TEST(rlock_guard_with_other_seeds_recovers_although_it_has_no_lock)
{
    static const char *const no_guard[] = { "RLOCK_RUNDIR=", NULL };
    char variable[TEST_PATH_MAX + 32];
    const char *const env[] = { variable, NULL };
    char path[PATH_MAX];

    test_build_path(path, sizeof(path), "guardd/rlock-guard");
    snprintf(variable, sizeof(variable), "RLOCK_RUNDIR=%s", dir);
    cli_start(&daemon_program, CLI_ARGV(path, "--url", seed(1)), env);
    ck_assert(cli_complains(&daemon_program, "rlock-guard: watching "));
    begin_v();
    begin_w(seed(2), no_guard);
    worker_kill(&v);
    w_has_all();
    ck_assert(test_rundir_wait(dir, 1, CLUSTER_SOON_MS));
}
END_TEST

/* ---- another cluster */

static struct test_server lone;
static int lone_bus;

static bool is_up(void *arg)
{
    return strstr(test_redis_str(arg, "CLUSTER", "INFO"), "cluster_state:ok") != NULL;
}

/* A cluster of one node. */
static void start_lone(void)
{
    char path[TEST_PATH_MAX + 16], bus[8], shard[TEST_CLUSTER_SHARD_LEN];
    uint16_t bus_port;

    test_server_start(&lone, NULL);
    lone_bus = test_port_reserve("127.0.0.1", &bus_port);
    snprintf(path, sizeof(path), "%s/nodes.conf", lone.dir);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%040d 127.0.0.1:%u@%u%s myself,master - 0 0 1 connected 0-16383\n", 7777,
            (unsigned)lone.port, (unsigned)bus_port, test_cluster_shard(1, shard));
    fprintf(f, "vars currentEpoch 1 lastVoteEpoch 0\n");
    fclose(f);
    test_server_restart_args(&lone, TEST_ARGV("--cluster-enabled", "yes",
                                              test_server_bus_option(bus_port, bus), bus,
                                              "--cluster-node-timeout", "600000"));
    struct test_redis *r = test_redis_connect(lone.path);
    ck_assert(test_wait_until(is_up, r, CLUSTER_SOON_MS));
    test_redis_close(r);
}

static void stop_lone(void)
{
    test_server_stop(&lone);
    close(lone_bus);
}

/* Whether a client has found v dead, and left its file to others. */
static bool is_marked(void *arg)
{
    const struct livefile_view *file = arg;
    char mark[8] = "";

    return pread(file->fd, mark, 5, MARK_AT) == 5 && strcmp(mark, "dead ") == 0;
}

/* rule: P25 */
START_TEST(process_of_another_cluster_leaves_the_file_to_those_of_its_own)
{
    struct livefile_view file;
    char url[128];

    start_lone();
    begin_v();
    livefile_view_open(&file, dir, NULL);
    snprintf(url, sizeof(url), "redis-cluster://127.0.0.1:%u" LONG, (unsigned)lone.port);
    worker_start(&w, url);
    obeys(&w, "init m %s", cluster_name(0, 0));
    obeys(&w, "lock m");
    rlock_client_t *waiting = open_unseen(url, "");
    rlock_mutex_t m = mutex_of(waiting, cluster_name(0, 0));
    struct task task;
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(waiting, 1));
    worker_kill(&v);
    ck_assert(test_wait_until(is_marked, &file, CLUSTER_SOON_MS));
    ck_assert(livefile_view_exists(dir, file.uuid));
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        ck_assert_int_eq((int)test_redis_int(at_node[i], "EXISTS", cluster_name(i, 0)),
                         1);
    other = cluster_open_at(seed(5));
    ck_assert(livefile_view_wait_gone(dir, file.uuid));
    obeys(&w, "unlock m");
    ck_assert(task_ends(&task, CLUSTER_SOON_MS));
    OK(task_join(&task));
    close_client(waiting);
    livefile_view_close(&file);
    worker_end(&w);
    stop_lone();
}
END_TEST

/* ---- the file */

/* rule: P25 */
START_TEST(live_file_names_the_nodes_once_they_are_known)
{
    struct livefile_view file;

    client = open_unseen(seed(1), "");
    livefile_view_open(&file, dir, NULL);
    ck_assert_ptr_null(strstr(file.head, "\nnodes "));
    livefile_view_close(&file);
    OK(rlock_client_ping(client));
    livefile_view_open(&file, dir, NULL);
    const char *line = livefile_view_line(&file, "nodes");
    size_t known = 0;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        known += strstr(line, nodes[i].id) != NULL;
        ck_assert(i >= CLUSTER_MASTERS || strstr(line, nodes[i].id));
    } /* a replica is in the map when it has got something from its master */
    ck_assert_uint_eq(strlen(line), known * TEST_CLUSTER_ID_SIZE - 1);
    livefile_view_close(&file);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery cluster");
    TCase *tc = tcase_create("recovery");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, open_all, close_all);
    tcase_add_loop_test(
        tc, process_with_other_seeds_recovers_holder_and_waiter_at_all_masters, 2, 4);
    tcase_add_test(tc, new_process_with_other_seeds_recovers_what_an_earlier_one_left);
    tcase_add_test(tc, rlock_guard_with_other_seeds_recovers_although_it_has_no_lock);
    tcase_add_test(tc, process_of_another_cluster_leaves_the_file_to_those_of_its_own);
    tcase_add_test(tc, live_file_names_the_nodes_once_they_are_known);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
