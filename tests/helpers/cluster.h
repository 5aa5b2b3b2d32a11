/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a cluster: three masters, each with a third of the hash slots, and a
 * replica of each. They find each other, and their hash slots, in the files that nodes of
 * a cluster keep: no time is spent on meeting. Thread: one at a time.
 */
#ifndef TEST_CLUSTER_H
#define TEST_CLUSTER_H

#include "server.h"

enum {
    TEST_CLUSTER_MASTERS = 3,
    TEST_CLUSTER_NODES = 6, /* the replica of node i is node i + TEST_CLUSTER_MASTERS */
    TEST_CLUSTER_ID_SIZE = 41,
    TEST_CLUSTER_SHARD_LEN = 64,
    TEST_HASH_SLOTS = 16384
};

struct test_node {
    struct test_server server;
    uint16_t port, bus;
    uint16_t announced_bus; /* where the other nodes reach its bus; at first `bus` */
    int bus_fd;             /* reserves the port of its bus */
    char id[TEST_CLUSTER_ID_SIZE];
};

/* Each third of the hash slots begins here; the last entry is behind all of them. */
extern const unsigned test_cluster_first[TEST_CLUSTER_MASTERS + 1];

/* Returns what stands behind a node's address in such a file, "" before Redis 7.2: the
 * shard's id, from 1 on. */
const char *test_cluster_shard(int shard, char buf[TEST_CLUSTER_SHARD_LEN]);

/* Reserves directories and ports of all nodes. They do not run as nodes yet. */
void test_cluster_reserve(struct test_node nodes[TEST_CLUSTER_NODES]);
/* Starts all nodes, with the first layout. They must be empty: a node with keys of
 * another one's hash slots would take these. `args`: more options of all nodes. */
void test_cluster_launch(struct test_node nodes[TEST_CLUSTER_NODES],
                         const char *const args[]);
/* Stops all nodes, and frees what was reserved. */
void test_cluster_stop(struct test_node nodes[TEST_CLUSTER_NODES]);

#endif
