/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that faults.c and the files of its kinds share. All of it belongs to the
 * thread that calls nem_faults_run, which never blocks for longer than one request. */
#ifndef NEM_FAULTS_IMPL_H
#define NEM_FAULTS_IMPL_H

#include "faults.h"

#include "cluster.h"
#include "program.h"
#include "redis.h"

#include <limits.h>

enum { NEM_RULES_EACH = 2 };
#define NEM_NS_PER_MS INT64_C(1000000)

/* Two network namespaces with a veth pair between them for each process: the driver, its
 * server and its workers are in `near`, the proxies listen in `far`. */
struct nem_net {
    bool on;
    int home, near, far;           /* the namespaces; `home` is the original one */
    int near_control, far_control; /* sockets for ioctl */
};

enum { NEM_SERVERS = 3, NEM_INFO_MAX = 4096, NEM_NONE = UINT16_MAX };
#define NEM_MASTER "nemesis" /* the sentinels' name of the master */

/* faults_topology.c: a master with two replicas, and three sentinels. */
struct nem_topology {
    struct test_server data[NEM_SERVERS], sentinels[NEM_SERVERS];
    unsigned master; /* the index of the last one that was elected */
};

/* faults_nodes.c: a cluster. Two nodes are a shard: a master and its replica, which
 * change places. The bus of each node is behind a proxy. */
struct nem_nodes {
    struct test_node node[TEST_CLUSTER_NODES];
    struct test_proxy *bus[TEST_CLUSTER_NODES];
    unsigned master[TEST_CLUSTER_MASTERS]; /* the node that is the master of the shard */
    unsigned aim;                          /* the shard that the present fault affects */
    unsigned hash_slot[NEM_LOCKS_MAX];
    unsigned shard[NEM_LOCKS_MAX]; /* that has the lock */
};

struct nem_faults {
    char dir[PATH_MAX];
    unsigned processes;
    enum nem_servers servers;
    struct test_server server;    /* with a ledger, else not started: see */
    struct nem_topology topology; /* nem_faults_server */
    struct nem_nodes nodes;
    uint16_t tls_port;
    int tls_holder; /* keeps the port reserved; -1: no TLS */
    struct test_clock clock;
    struct nem_net net;
    unsigned links;              /* of each process: one to each server; 0: none */
    struct test_proxy **proxies; /* by processes, and of each by servers */
    const struct nem_workers *workers;
    struct nem_active *active; /* due, by begin_ms */
    unsigned epoch;
    char password[NEM_PASSWORD_LEN + 1];
    long gone_ms;      /* the time in which a process must end that was asked to */
    long stuck_ms;     /* the time in which a step must end after its length */
    int64_t offset_ms; /* the shift of the server's clock */
    int64_t peak_ms;   /* the latest time that the server's clock has shown */
    int log;           /* the file `faults` */
};

/* A step from when it is due until it has ended. */
struct nem_active {
    struct nem_active *next;
    const struct nem_step *step;
    struct nem_fault record;
    bool begun, ending;
    int64_t end_at; /* when its length is over */
    /* for the kind's own use */
    unsigned stage;
    int64_t until;
    uint16_t also; /* another process that it affected; NEM_ALL: none */
    struct nem_fault also_record;
    int *rules;            /* NEM_RULES_EACH of each link, 0: none */
    unsigned *connections; /* of each link, 0: all of it */
    int bus_rules[TEST_CLUSTER_NODES];
    bool alarmed; /* a master was taken for failed */
    struct test_redis *redis, *messages;
    struct test_program stranger;
    unsigned master; /* a failover: the old one; of a cluster: a node */
    int64_t look_at;
};

/* The functions of a kind. Only `begin` is required. */
struct nem_action {
    /* whether it may begin */
    bool (*ready)(struct nem_faults *f);
    void (*begin)(struct nem_faults *f, struct nem_active *a);
    /* polled during the step; true: its work is done */
    bool (*during)(struct nem_faults *f, struct nem_active *a);
    /* polled from the step's end on; true: nothing of the fault is left */
    bool (*end)(struct nem_faults *f, struct nem_active *a);
};

/* With links, all processes name the same server, as the processes of a host do, so that
 * the crash guard works between them. Each reaches it by its own link (link.c). */
#define NEM_NO_HOST "192.0.2.1" /* RFC 5737: an address that no host has */
/* How many replicas of Sentinel's master confirm a lock: all that may be promoted. */
#define NEM_REPLICAS_TEXT "2"

/* faults_start.c: the only server, or several, and the links to them. */
void nem_server_start(struct nem_faults *f, const char *const more[]);
void nem_servers_start(struct nem_faults *f, const char *const more[]);

/* By kind; zero for the kinds of other files. */
extern const struct nem_action nem_process_actions[NEM_KINDS];
extern const struct nem_action nem_link_actions[NEM_KINDS];
extern const struct nem_action nem_stranger_actions[NEM_KINDS];
extern const struct nem_action nem_server_actions[NEM_KINDS];
extern const struct nem_action nem_data_actions[NEM_KINDS];
extern const struct nem_action nem_failover_actions[NEM_KINDS];
extern const struct nem_action nem_cluster_actions[NEM_KINDS];
extern const struct nem_action nem_reshard_actions[NEM_KINDS];

/* CLOCK_BOOTTIME, ns. */
int64_t nem_now(void);
/* Appends to <dir>/faults. */
void nem_record(struct nem_faults *f, const struct nem_fault *record);
/* Runs argv[0], which is looked up in PATH and /sbin, with `input` as its stdin (NULL:
 * none). False: it failed. */
bool nem_run_program(const char *const argv[], const char *input);

/* Whether the server's clock shows a later time than ever before, and a later one than
 * all tokens. Tokens begin at its time, so they then grow even after all data is lost. */
bool nem_clock_has_caught_up(struct nem_faults *f);

/* Removes the rules of the step, and counts how many times they were applied. Returns
 * true. */
bool nem_lift(struct nem_faults *f, struct nem_active *a);

/* Moves the server's append-only files to <dir>/aof.<epoch>. The server must not run. */
void nem_archive(struct nem_faults *f);

/* Starts all six with these arguments for the data servers; returns when the sentinels
 * know each other and the replicas. */
void nem_topology_start(struct nem_topology *t, const char *const args[]);
void nem_topology_stop(struct nem_topology *t);
/* The server that a sentinel names as the master; NEM_NONE: none of these. */
unsigned nem_topology_named(const struct nem_topology *t, unsigned sentinel);
/* Whether both others follow this master, and all sentinels know it. All servers must
 * run. */
bool nem_topology_is_whole(const struct nem_topology *t, unsigned master);
/* Waits for that; aborts when it does not come. */
void nem_topology_await(struct nem_topology *t);
/* Makes the others replicas of this master where they are not. */
void nem_topology_join(const struct nem_topology *t, unsigned master);
/* Whether the sentinels elect another master when the present one does not answer. */
void nem_topology_expect(const struct nem_topology *t, bool failure);
/* Two servers may replicate each other at last: a sentinel that has not heard of the
 * failover yet makes the new master a replica of the old one. Ends that as an operator
 * would; no data differ. */
void nem_topology_end_ring(const struct nem_topology *t, unsigned master);
/* Whether a sentinel leads a failover. */
bool nem_topology_fails_over(const struct nem_topology *t);
/* Whether a sentinel is in TILT mode, in which it does nothing. */
bool nem_topology_tilts(const struct nem_topology *t);
/* Prints what each of them says to stderr. */
void nem_topology_tell(const struct nem_topology *t);
/* Tells this sentinel to elect another one. */
void nem_topology_fail_over(const struct nem_topology *t, unsigned sentinel);

/* Starts all six with these arguments, and their proxies; returns when they agree. */
void nem_nodes_start(struct nem_nodes *n, const char *const args[]);
void nem_nodes_stop(struct nem_nodes *n);
/* The other node of the same shard. */
unsigned nem_node_beside(unsigned node);
/* Whether the node says that it is a master. It must run. */
bool nem_node_is_master(const struct nem_nodes *n, unsigned node);
/* Whether SIGTERM ends it: not while it writes its first append-only file. */
bool nem_node_may_end(const struct nem_nodes *n, unsigned node);
/* Whether all nodes agree about masters and replicas as `master` says, and all replicas
 * are in step. All must run. */
bool nem_nodes_are_whole(const struct nem_nodes *n);
/* Whether a node takes one of the masters for failed. All must run. */
bool nem_nodes_fear(const struct nem_nodes *n);
/* Waits until they are whole; aborts when that does not come. */
void nem_nodes_await(struct nem_nodes *n);
/* Whether nodes promote a replica when its master does not answer. Not told to the node
 * `except`, which may not run (NEM_NONE: told to all). */
void nem_nodes_expect(const struct nem_nodes *n, bool failure, unsigned except);
/* Orders CLUSTER FAILOVER; `how`: NULL, or "TAKEOVER". False: the node refuses. */
bool nem_node_fail_over(const struct nem_nodes *n, unsigned node, const char *how);
/* Stops what the replica gets from its master, or lets it go on. */
void nem_node_sever(const struct nem_nodes *n, unsigned replica, bool severed);
/* Whether all nodes see the hash slot at this node. */
bool nem_nodes_see(const struct nem_nodes *n, unsigned hash_slot, unsigned node);
/* Which of the first hash slots a master has, bit by bit: as the messages of its bus
 * begin, behind its name. */
enum { NEM_MAP = 128 };
void nem_node_map(const struct nem_nodes *n, unsigned node, unsigned char map[NEM_MAP]);
/* Whether the replica of a shard has all that its master has written by now. */
bool nem_shard_is_in_step(const struct nem_nodes *n, unsigned shard);
/* The step's record gets all locks of a shard; NEM_NONE: all of all shards. */
void nem_nodes_mark(const struct nem_nodes *n, struct nem_fault *record, unsigned shard);
/* Chooses the shard of a step that begins. */
void nem_nodes_aim(struct nem_nodes *n, struct nem_active *a);
/* Prints what each of them says to stderr. */
void nem_nodes_tell(const struct nem_nodes *n);

/* Moves the calling thread into `near`; `on`: whether that was permitted. */
void nem_net_open(struct nem_net *net, unsigned processes);
void nem_net_close(struct nem_net *net);
/* Moves the calling thread into that namespace. */
void nem_net_enter(const struct nem_net *net, int ns);
/* The address of a process's pair in `far`. */
void nem_net_address(char *text, size_t size, unsigned process);
/* Sets one end of a process's pair up or down. */
void nem_net_set(const struct nem_net *net, unsigned process, bool near_end, bool up);

#endif
