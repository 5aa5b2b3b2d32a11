/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster of three shards, each a master and a replica. Nodes do not notice that one of
 * them does not answer, except while a fault wants them to: a machine that stands still
 * for a moment causes no failover. Nodes keep their data, as a node that restarts as a
 * master must. They reach each other's bus by proxies, and clients and replicas reach
 * them directly.
 */
#include "faults_impl.h"

#include "die.h"
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ARGS_MAX = 64, AGREE_MS = 60000, CALM_MS = 60000, TEXT_MAX = 8192, BITS = 8 };
enum { LOOKS = 20 }; /* in 1 ms each, at a replica that may be behind */
#define CALM_TEXT "60000"

unsigned nem_node_beside(unsigned node)
{
    return (node + TEST_CLUSTER_MASTERS) % TEST_CLUSTER_NODES;
}

/* ---- looks */

/* What the node says to two words; "": it does not answer. */
static void ask(const struct nem_nodes *n, unsigned node, const char *word,
                const char *what, char text[TEXT_MAX])
{
    struct test_redis *r = test_redis_connect(n->node[node].server.path);
    const redisReply *reply = test_redis_try(r, word, what);
    bool good = reply && reply->type != REDIS_REPLY_ERROR && reply->str;
    snprintf(text, TEXT_MAX, "%s", good ? reply->str : "");
    test_redis_close(r);
}

bool nem_node_may_end(const struct nem_nodes *n, unsigned node)
{
    char text[TEXT_MAX];
    ask(n, node, "INFO", "persistence", text);
    return strstr(text, "aof_rewrite_in_progress:0") &&
           strstr(text, "aof_rewrite_scheduled:0");
}

bool nem_node_is_master(const struct nem_nodes *n, unsigned node)
{
    char text[TEXT_MAX];
    ask(n, node, "CLUSTER", "NODES", text);
    return strstr(text, "myself,master") != NULL;
}

/* The line about a node in CLUSTER NODES, as a copy; "": none. */
static void line_about(const struct nem_nodes *n, const char *text, unsigned node,
                       char line[TEXT_MAX])
{
    const char *at = text;
    line[0] = '\0';
    while (at && strncmp(at, n->node[node].id, TEST_CLUSTER_ID_SIZE - 1) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (at)
        snprintf(line, TEXT_MAX, "%.*s", (int)strcspn(at, "\n"), at);
}

/* Whether this view of the cluster has the masters that are named, and nothing amiss. */
static bool agrees(const struct nem_nodes *n, const char *view)
{
    char line[TEXT_MAX], follows[TEST_CLUSTER_ID_SIZE + 16];
    if (strstr(view, "fail") || strstr(view, "disconnected") || strstr(view, "handshake"))
        return false;
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        unsigned master = n->master[i];
        line_about(n, view, master, line);
        if (!strstr(line, "master -"))
            return false;
        snprintf(follows, sizeof(follows), "slave %s", n->node[master].id);
        line_about(n, view, nem_node_beside(master), line);
        if (!strstr(line, follows))
            return false;
    }
    return true;
}

bool nem_nodes_fear(const struct nem_nodes *n)
{
    char text[TEXT_MAX], line[TEXT_MAX];
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        ask(n, i, "CLUSTER", "NODES", text);
        for (unsigned k = 0; k < TEST_CLUSTER_MASTERS; k++) {
            line_about(n, text, n->master[k], line);
            if (strstr(line, ",fail "))
                return true;
        }
    }
    return false;
}

static bool is_linked(const struct nem_nodes *n, unsigned node, const char *info)
{
    const char *good = strstr(info, "min_slaves_good_slaves:"); /* if it must have one */
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++)
        if (n->master[i] == node)
            return strstr(info, "role:master") && strstr(info, "state=online") &&
                   (!good || strncmp(good, "min_slaves_good_slaves:1", 24) == 0);
    return strstr(info, "role:slave") && strstr(info, "master_link_status:up");
}

static long long offset_of(const struct nem_nodes *n, unsigned node, const char *field)
{
    char text[TEXT_MAX];
    ask(n, node, "INFO", "replication", text);
    const char *at = strstr(text, field);
    return at ? atoll(at + strlen(field)) : -1;
}

bool nem_shard_is_in_step(const struct nem_nodes *n, unsigned shard)
{
    unsigned master = n->master[shard], replica = nem_node_beside(master);
    long long written = offset_of(n, master, "master_repl_offset:");
    for (int i = 0; i < LOOKS; i++) {
        if (offset_of(n, replica, "slave_repl_offset:") >= written)
            return true;
        test_pause_ms(1);
    }
    return false;
}

/* All must know the latest epoch: a node that draws the next one while a move ends might
 * draw one that another node has, too, and the hash slot might belong to none. */
bool nem_nodes_are_whole(const struct nem_nodes *n)
{
    char text[TEXT_MAX], epoch[32] = "";
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        ask(n, i, "CLUSTER", "INFO", text);
        const char *at = strstr(text, "cluster_current_epoch:");
        if (!strstr(text, "cluster_state:ok") || !at)
            return false;
        if (i == 0)
            snprintf(epoch, sizeof(epoch), "%.*s", (int)strcspn(at, "\r"), at);
        else if (strncmp(at, epoch, strlen(epoch)) != 0 || at[strlen(epoch)] != '\r')
            return false;
        ask(n, i, "CLUSTER", "NODES", text);
        if (!agrees(n, text))
            return false;
        ask(n, i, "INFO", "replication", text);
        if (!is_linked(n, i, text))
            return false;
    }
    /* a replica that is online may get nothing for a second after its first copy */
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++)
        if (!nem_shard_is_in_step(n, i))
            return false;
    return true;
}

/* Whether the line of CLUSTER NODES lists the hash slot: "... connected 0-5460 7000". */
static bool lists(const char *line, unsigned hash_slot)
{
    const char *at = strstr(line, " connected");
    for (at = at ? strchr(at + 1, ' ') : NULL; at; at = strchr(at + 1, ' ')) {
        unsigned first, last;
        int count = sscanf(at, " %u-%u", &first, &last);
        if (count >= 1 && hash_slot >= first && hash_slot <= (count == 2 ? last : first))
            return true;
    }
    return false;
}

void nem_node_map(const struct nem_nodes *n, unsigned node, unsigned char map[NEM_MAP])
{
    char text[TEXT_MAX], line[TEXT_MAX];
    ask(n, node, "CLUSTER", "NODES", text);
    line_about(n, text, node, line);
    memset(map, 0, NEM_MAP);
    for (unsigned i = 0; i < NEM_MAP * BITS; i++)
        if (lists(line, i))
            map[i / BITS] |= (unsigned char)(1U << i % BITS);
}

bool nem_nodes_see(const struct nem_nodes *n, unsigned hash_slot, unsigned node)
{
    char text[TEXT_MAX], line[TEXT_MAX];
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        ask(n, i, "CLUSTER", "NODES", text);
        line_about(n, text, node, line);
        if (!lists(line, hash_slot))
            return false;
    }
    return true;
}

void nem_nodes_tell(const struct nem_nodes *n)
{
    char text[TEXT_MAX];
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        fprintf(stderr, "node %u, port %u, bus %u:\n", i, (unsigned)n->node[i].port,
                (unsigned)n->node[i].announced_bus);
        if (test_server_pid(&n->node[i].server) <= 0) {
            fprintf(stderr, "does not run\n");
            continue;
        }
        ask(n, i, "CLUSTER", "NODES", text);
        fprintf(stderr, "%s", text);
        ask(n, i, "INFO", "replication", text);
        fprintf(stderr, "%s", text);
    }
}

/* ---- orders */

void nem_nodes_expect(const struct nem_nodes *n, bool failure, unsigned except)
{
    char ms[16];
    snprintf(ms, sizeof(ms), "%ld",
             failure ? test_ms(NEM_NODE_TIMEOUT_MS) : (long)CALM_MS);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        if (i == except)
            continue;
        struct test_redis *r = test_redis_connect(n->node[i].server.path);
        test_redis_config(r, "cluster-node-timeout", ms);
        test_redis_close(r);
    }
}

bool nem_node_fail_over(const struct nem_nodes *n, unsigned node, const char *how)
{
    struct test_redis *r = test_redis_connect(n->node[node].server.path);
    const redisReply *reply = how ? test_redis_try(r, "CLUSTER", "FAILOVER", how)
                                  : test_redis_try(r, "CLUSTER", "FAILOVER");
    bool obeys = reply && reply->type != REDIS_REPLY_ERROR;
    test_redis_close(r);
    return obeys;
}

/* No such user exists at the master, so the replica is refused. */
void nem_node_sever(const struct nem_nodes *n, unsigned replica, bool severed)
{
    struct test_redis *r = test_redis_connect(n->node[replica].server.path);
    test_redis_config(r, "masteruser", severed ? "nemesis-nobody" : "");
    test_redis_config(r, "masterauth", severed ? "nemesis-nobody" : "");
    test_redis_close(r);
    if (!severed)
        return;
    r = test_redis_connect(n->node[nem_node_beside(replica)].server.path);
    (void)test_redis_try(r, "CLIENT", "KILL", "TYPE", "replica");
    test_redis_close(r);
}

/* ---- locks */

void nem_nodes_mark(const struct nem_nodes *n, struct nem_fault *record, unsigned shard)
{
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++)
        if (shard == NEM_NONE || n->shard[i] == shard)
            record->locks[i / BITS] |= (uint8_t)(1U << i % BITS);
}

void nem_nodes_aim(struct nem_nodes *n, struct nem_active *a)
{
    n->aim = a->record.index % TEST_CLUSTER_MASTERS;
    a->master = n->master[n->aim];
    if (a->step->kind != NEM_RESHARD && a->step->kind != NEM_RESHARD_HALFWAY)
        nem_nodes_mark(n, &a->record, n->aim);
}

/* Who has which lock at first. */
static void learn_locks(struct nem_nodes *n)
{
    struct test_redis *r = test_redis_connect(n->node[0].server.path);
    for (unsigned i = 0; i < NEM_LOCKS_MAX; i++) {
        char name[32];
        snprintf(name, sizeof(name), "nemesis%u", i);
        n->hash_slot[i] = (unsigned)test_redis_int(r, "CLUSTER", "KEYSLOT", name);
        while (n->hash_slot[i] >= test_cluster_first[n->shard[i] + 1])
            n->shard[i]++;
    }
    test_redis_close(r);
}

/* ---- start and stop */

static bool is_ready(void *arg)
{
    return nem_nodes_are_whole(arg);
}

void nem_nodes_await(struct nem_nodes *n)
{
    if (test_wait_until(is_ready, n, AGREE_MS))
        return;
    nem_nodes_tell(n);
    test_die("the nodes do not agree");
}

/* Thread: a proxy's. */
static int dial_bus(void *arg)
{
    const struct test_node *node = arg;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(node->bus) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS)
        return fd;
    close(fd);
    return -1;
}

void nem_nodes_start(struct nem_nodes *n, const char *const args[])
{
    const char *all[ARGS_MAX] = { "--cluster-node-timeout",
                                  CALM_TEXT,
                                  "--cluster-replica-validity-factor",
                                  "0",
                                  "--repl-diskless-sync-delay",
                                  "0",
                                  "--appendonly",
                                  "yes",
                                  "--appendfsync",
                                  "no" };
    size_t count = 10;
    memset(n, 0, sizeof(*n));
    for (size_t i = 0; args && args[i] && count + 1 < ARGS_MAX; i++)
        all[count++] = args[i];
    test_cluster_reserve(n->node);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        n->bus[i] =
            test_proxy_start_raw(&n->node[i].server, "127.0.0.1", dial_bus, &n->node[i]);
        n->node[i].announced_bus = test_proxy_port(n->bus[i]);
    }
    test_cluster_launch(n->node, all);
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++)
        n->master[i] = i;
    learn_locks(n);
    nem_nodes_await(n);
}

void nem_nodes_stop(struct nem_nodes *n)
{
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++)
        test_proxy_stop(n->bus[i]);
    test_cluster_stop(n->node);
}
