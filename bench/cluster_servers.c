/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster.h. The nodes find each other, and their hash slots, in the files that nodes
 * of a cluster keep. */
#include "cluster.h"

#include "bench.h"
#include "helpers/redis.h"
#include "net/key.h"
#include "port.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ID_SIZE = 41, SOON_MS = 30000, PORT_SIZE = 8 };

struct node nodes[NODES_MAX];
struct test_server plain[MASTERS];

static const unsigned first_of[MASTERS + 1] = { 0, 5461, 10923, RLK_HASH_SLOTS };
static int node_count;

/* ---- files */

static void make_id(char id[ID_SIZE], int i)
{
    snprintf(id, ID_SIZE, "%040d", i + 1);
}

static void write_line(FILE *f, int i, bool self)
{
    char id[ID_SIZE], master[ID_SIZE] = "-";
    bool is_master = i < MASTERS;

    make_id(id, i);
    if (!is_master)
        make_id(master, i - MASTERS);
    fprintf(f, "%s 127.0.0.1:%u@%u %s%s %s 0 0 %d connected", id, (unsigned)nodes[i].port,
            (unsigned)nodes[i].bus, self ? "myself," : "", is_master ? "master" : "slave",
            master, i % MASTERS + 1);
    if (is_master)
        fprintf(f, " %u-%u", first_of[i], first_of[i + 1] - 1);
    fputc('\n', f);
}

static void write_file(int i)
{
    char path[TEST_PATH_MAX + 16];

    snprintf(path, sizeof(path), "%.*s/nodes.conf", TEST_DIR_MAX, nodes[i].server.dir);
    FILE *f = fopen(path, "we");
    if (!f)
        die("cannot write %s", path);
    for (int k = 0; k < node_count; k++)
        write_line(f, k, k == i);
    fprintf(f, "vars currentEpoch %d lastVoteEpoch 0\n", MASTERS);
    fclose(f);
}

/* ---- servers */

static void reserve(struct node *node)
{
    char bus[PORT_SIZE];

    test_server_start(&node->server, NULL);
    node->bus_fd = test_port_reserve("127.0.0.1", &node->bus);
    node->port = strcmp(test_server_bus_option(node->bus, bus), "--port") == 0
                     ? (uint16_t)(node->bus - 10000)
                     : node->server.port;
}

static void launch(struct node *node)
{
    char bus[PORT_SIZE];
    const char *option = test_server_bus_option(node->bus, bus);

    test_server_restart_args(&node->server,
                             TEST_ARGV("--cluster-enabled", "yes", option, bus));
}

static bool has(struct test_redis *r, const char *const command[], const char *text)
{
    return strstr(test_redis_str_argv(r, command), text) != NULL;
}

static bool is_in_order(void *arg)
{
    bool good = true;
    (void)arg;

    for (int i = 0; good && i < node_count; i++) {
        struct test_redis *r = test_redis_connect(nodes[i].server.path);
        good = has(r, TEST_ARGV("CLUSTER", "INFO"), "cluster_state:ok") &&
               !has(r, TEST_ARGV("CLUSTER", "NODES"), "fail");
        if (good && i >= MASTERS)
            good = has(r, TEST_ARGV("INFO", "replication"), "master_link_status:up");
        test_redis_close(r);
    }
    return good;
}

void servers_start_plain(int count)
{
    for (int i = 0; i < count; i++)
        test_server_start(&plain[i], NULL);
}

void servers_start_cluster(bool replicas)
{
    node_count = replicas ? 2 * MASTERS : MASTERS;
    for (int i = 0; i < node_count; i++)
        reserve(&nodes[i]);
    for (int i = 0; i < node_count; i++)
        write_file(i);
    for (int i = 0; i < node_count; i++)
        launch(&nodes[i]);
    if (!test_wait_until(is_in_order, NULL, SOON_MS))
        die("the cluster is not in order");
}

void servers_stop(void)
{
    for (int i = 0; i < node_count; i++) {
        test_server_stop(&nodes[i].server);
        close(nodes[i].bus_fd);
    }
    node_count = 0;
    for (int i = 0; i < MASTERS; i++)
        test_server_stop(&plain[i]);
}

void servers_cluster_url(char url[URL_MAX], const char *user)
{
    snprintf(url, URL_MAX, "redis-cluster://%s127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u",
             user, (unsigned)nodes[0].port, (unsigned)nodes[1].port,
             (unsigned)nodes[2].port);
}

void servers_name(char name[LOCK_NAME_SIZE], int master, int k)
{
    for (int n = 0;; n++) {
        int len = snprintf(name, LOCK_NAME_SIZE, "bench-cluster-%d", n);
        unsigned hash_slot = rlk_key_hash_slot(name, (size_t)len);
        if (hash_slot >= first_of[master] && hash_slot < first_of[master + 1] && k-- == 0)
            return;
    }
}
