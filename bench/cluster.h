/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bench/cluster share. One process starts all servers; others contend.
 *   cluster.c          the parts, one after the other
 *   cluster_servers.c  the nodes of a cluster, and plain servers
 *   cluster_pair.c     a pair of lock and unlock
 *   cluster_teams.c    many processes that contend, side by side
 *   cluster_handoff.c  their hand-overs, by plain servers and by a cluster
 *   cluster_bus.c      what these send between the nodes
 *   cluster_sockets.c  bytes of the kernel's sockets
 *   cluster_map.c      the map of a large cluster
 *   cluster_memory.c   a client's memory for each node
 */
#ifndef BENCH_CLUSTER_H
#define BENCH_CLUSTER_H

#include "server.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { MASTERS = 3, NODES_MAX = 2 * MASTERS, URL_MAX = 256, LOCK_NAME_SIZE = 32 };

/* ---- servers */

struct node {
    struct test_server server;
    uint16_t port, bus;
    int bus_fd; /* reserves the port of its bus */
};
/* The masters first, each with a third of the hash slots; then the replica of each. */
extern struct node nodes[NODES_MAX];
extern struct test_server plain[MASTERS];

void servers_start_plain(int count);
/* `replicas`: each master has one. Returns when all nodes see the cluster in order. */
void servers_start_cluster(bool replicas);
/* Harmless when they do not run. */
void servers_stop(void);

/* The URL of the cluster; user: "" or "name:password@". */
void servers_cluster_url(char url[URL_MAX], const char *user);
/* The k-th name whose hash slot this master has. */
void servers_name(char name[LOCK_NAME_SIZE], int master, int k);

/* ---- clients */

/* A code other than 0 ends the process. */
void check(int rc, const char *what);
/* A client that has an answer from a server. */
rlock_client_t *client_at(const char *url);
void mutex_at(rlock_mutex_t *m, rlock_client_t *client, const char *name);

/* ---- figures */

/* Prints the median of the ratios within the rounds, the bounds in which it is with 95 %,
 * and the smallest and the greatest. */
void say_ratio(const char *label, const double *values, const double *base, size_t rounds,
               const char *target);
double median_of(const double *values, size_t rounds);

/* ---- many processes */

enum { TEAM_SIZE = 64, LOCKS_MAX = 64, SIDES_MAX = 3 };

/* One of those that are compared: processes that contend for locks of some servers. */
struct side {
    const char *label;
    char urls[MASTERS][URL_MAX]; /* lock k is at server k % url_count */
    int url_count;
    const struct test_server *servers[NODES_MAX]; /* whose CPU counts */
    int server_count;
};
/* What a side did in a slice, and used. */
struct work {
    double seconds, pairs, waited; /* waited: of these, locks from another's release */
    double client_us, server_us;   /* CPU */
    double extra[2];               /* what `read_extra` reads */
};

struct teams;
/* Forks all processes. Each side has `locks` locks. `read_extra`, if not NULL, reads two
 * counts, which only grow. */
struct teams *teams_start(const struct side *sides, int count, int locks,
                          void (*read_extra)(double counts[2]));
/* Rounds until each process has had its time with each lock: by then it has all the
 * connections and mailboxes that it needs. */
void teams_warm_up(struct teams *teams, long ms);
/* A round: each side has two slices, of `ms` each; the first one of the round differs. */
void teams_round(struct teams *teams, size_t round, long ms,
                 struct work ret_works[SIDES_MAX]);
void teams_stop(struct teams *teams);

/* ---- sockets */

/* The bytes that sockets have sent in all, those with one of these TCP ports at either
 * end, and the number of these sockets. The headers of TCP and IP do not count. */
void sockets_sent(const uint16_t *ports, int count, double *ret_bytes,
                  size_t *ret_sockets);

/* ---- the parts */

void bench_pair(size_t rounds);
void bench_handoff(size_t rounds);
void bench_bus(size_t rounds);
void bench_map(size_t rounds);
void bench_memory(size_t rounds);

#endif
