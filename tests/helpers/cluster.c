/* SPDX-License-Identifier: Apache-2.0 */
/* State: in the caller's nodes. */
#include "cluster.h"

#include "die.h"
#include "port.h"

#include <stdio.h>
#include <unistd.h>

enum { OWN_PORT_SINCE = 70000, SHARDS_SINCE = 70200, BUS_OFFSET = 10000, ARGS_MAX = 64 };

const unsigned test_cluster_first[TEST_CLUSTER_MASTERS + 1] = { 0, 5461, 10923,
                                                                TEST_HASH_SLOTS };

const char *test_cluster_shard(int shard, char buf[TEST_CLUSTER_SHARD_LEN])
{
    buf[0] = '\0';
    if (test_server_version() >= SHARDS_SINCE)
        snprintf(buf, TEST_CLUSTER_SHARD_LEN, ",,shard-id=%040d", shard);
    return buf;
}

static void write_line(FILE *f, const struct test_node nodes[], int i, bool self)
{
    const struct test_node *node = &nodes[i];
    bool is_master = i < TEST_CLUSTER_MASTERS;
    const char *master = is_master ? "-" : nodes[i - TEST_CLUSTER_MASTERS].id;
    int shard = i % TEST_CLUSTER_MASTERS + 1;
    char shard_id[TEST_CLUSTER_SHARD_LEN];

    fprintf(f, "%s 127.0.0.1:%u@%u%s %s%s %s 0 0 %d connected", node->id,
            (unsigned)node->port, (unsigned)node->announced_bus,
            test_cluster_shard(shard, shard_id), self ? "myself," : "",
            is_master ? "master" : "slave", master, shard);
    if (is_master)
        fprintf(f, " %u-%u", test_cluster_first[i], test_cluster_first[i + 1] - 1);
    fputc('\n', f);
}

static void write_file(const struct test_node nodes[], int i)
{
    char path[TEST_PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/nodes.conf", nodes[i].server.dir);
    FILE *f = fopen(path, "we");
    if (!f)
        test_die("cannot write %s", path);
    for (int k = 0; k < TEST_CLUSTER_NODES; k++)
        write_line(f, nodes, k, k == i);
    fprintf(f, "vars currentEpoch %d lastVoteEpoch 0\n", TEST_CLUSTER_MASTERS);
    fclose(f);
}

static void launch(struct test_node *node, const char *const more[])
{
    char bus[8], announced[8];
    const char *args[ARGS_MAX] = { "--cluster-enabled", "yes" };
    size_t count = 2;

    args[count++] = test_server_bus_option(node->bus, bus);
    args[count++] = bus;
    if (node->announced_bus != node->bus) {
        snprintf(announced, sizeof(announced), "%u", (unsigned)node->announced_bus);
        args[count++] = "--cluster-announce-bus-port";
        args[count++] = announced;
    }
    for (size_t i = 0; more && more[i]; i++) {
        if (count + 1 == ARGS_MAX)
            test_die("too many options of a node");
        args[count++] = more[i];
    }
    args[count] = NULL;
    test_server_restart_args(&node->server, args);
}

static void reserve(struct test_node *node, int i)
{
    test_server_start(&node->server, NULL);
    node->bus_fd = test_port_reserve("127.0.0.1", &node->bus);
    node->announced_bus = node->bus;
    node->port = test_server_version() >= OWN_PORT_SINCE
                     ? node->server.port
                     : (uint16_t)(node->bus - BUS_OFFSET);
    snprintf(node->id, sizeof(node->id), "%040d", i + 1);
}

void test_cluster_reserve(struct test_node nodes[TEST_CLUSTER_NODES])
{
    for (int i = 0; i < TEST_CLUSTER_NODES; i++)
        reserve(&nodes[i], i);
}

void test_cluster_launch(struct test_node nodes[TEST_CLUSTER_NODES],
                         const char *const args[])
{
    for (int i = 0; i < TEST_CLUSTER_NODES; i++)
        write_file(nodes, i);
    for (int i = 0; i < TEST_CLUSTER_NODES; i++)
        launch(&nodes[i], args);
}

void test_cluster_stop(struct test_node nodes[TEST_CLUSTER_NODES])
{
    for (int i = 0; i < TEST_CLUSTER_NODES; i++) {
        test_server_stop(&nodes[i].server);
        close(nodes[i].bus_fd);
    }
}
