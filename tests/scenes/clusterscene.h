/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster: three masters, each with a third of the hash slots, and a replica of each.
 * Nodes may be killed, stopped, made masters, and hash slots moved; the next test gets
 * the cluster as it was. Thread: a test's main thread.
 */
#ifndef TEST_CLUSTERSCENE_H
#define TEST_CLUSTERSCENE_H

#include "cluster.h"
#include "fixture.h"

enum {
    CLUSTER_MASTERS = TEST_CLUSTER_MASTERS,
    CLUSTER_NODES = TEST_CLUSTER_NODES, /* the replica of node i is node i +
                                           CLUSTER_MASTERS */
    CLUSTER_TIMEOUT_MS = 1500, /* of a node that does not answer the others, while a
                                  failure is expected */
    CLUSTER_SOON_MS = 30000
};

extern struct test_node nodes[CLUSTER_NODES];
extern struct test_redis *at_node[CLUSTER_NODES];

/* Unchecked fixture. */
void cluster_start(void);
void cluster_stop(void);
/* Checked fixture: all nodes run, are empty, and agree on the first layout. `redis` is a
 * connection to node 0. cluster_close closes `client` and `other`, if they are open. */
void cluster_open(void);
void cluster_close(void);
TCase *cluster_tcase(Suite *suite, const char *name);

/* redis-cluster:// with the first `count` nodes, and parameters: "" or "?...", in one of
 * a few buffers used in turn. */
const char *cluster_url(int count, const char *parameters);
/* Opens a client that records its events, and gets the answer to a ping: of the first
 * three nodes, or at a URL. */
rlock_client_t *cluster_client(const char *parameters);
rlock_client_t *cluster_open_at(const char *url);
/* The k-th name "L<number>" of this master's hash slots, in one of a few buffers used in
 * turn. */
const char *cluster_name(int master, int k);
unsigned cluster_hash_slot(const char *name);
/* The master that has the hash slot at first. */
int cluster_master_of(unsigned hash_slot);

/* Waits until a node, or all, see the cluster in order. */
void cluster_await_ok(void);
/* Whether the node is a master, by its own word. */
bool cluster_is_master(int node);
/* From now on the nodes notice soon that one of them does not answer. Before, they would
 * not: on a machine that stands still they would begin a failover that no test expects.
 */
void cluster_expect_failure(void);
/* Makes the replica of a master a master; returns when it is one. `how`: NULL, "FORCE" or
 * "TAKEOVER". */
void cluster_failover(int master, const char *how);
/* Connects to a node again, which has been restarted. */
void cluster_reconnect(int node);

/* The steps of moving a hash slot. */
void cluster_begin_move(unsigned hash_slot, int from, int to);
/* Moves these keys, or (NULL) all that are there. */
void cluster_move_keys(unsigned hash_slot, int from, int to, const char *const keys[]);
/* Moves up to so many keys by one command, and returns how many. */
long cluster_move_batch(unsigned hash_slot, int from, int to, int most);
void cluster_end_move(unsigned hash_slot, int from, int to);
/* Moves it back; returns when all nodes see the first layout, or after some seconds. That
 * is quicker than to begin again, as the next test would. */
void cluster_move_back(unsigned hash_slot, int from, int to);
/* The hash slot stays where it was. Removes all keys of both nodes. */
void cluster_call_off_move(unsigned hash_slot, int from, int to);

#endif
