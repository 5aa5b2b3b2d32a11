/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock and unlock of a free lock, in a cluster and at a plain server; see cluster.h. One
 * thread has all clients, which take turns in blocks of some milliseconds. A second
 * client of the plain server shows the noise; hiredis alone, by the same scripts with the
 * same arguments, shows what the servers themselves add. Where the kernel puts client and
 * server makes a factor of two in time, and it may put the servers differently: so they
 * are all bound, first to one CPU, then the client to one and the servers to another.
 */
#include "cluster.h"

#include "bench.h"
#include "process.h"
#include "scripts.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIMES = 25, WARM_UP = 10, ID_SIZE = 128 };
enum { PLAIN, AGAIN, CLUSTER, RAW_PLAIN, RAW_CLUSTER, SIDES };
enum { TIME, CLIENT_CPU, SERVER_CPU, FIGURES };

static const char *const labels[SIDES] = { "plain server", "plain server, again",
                                           "cluster", "plain server, hiredis alone",
                                           "cluster, hiredis alone" };

struct raw {
    redisContext *conn;
    lock_keys_t keys;
    struct command acquire, release;
    char uuid[RLK_UUID_LEN + 1];
    unsigned long count;
};

struct side_of_pair {
    rlock_mutex_t mutex;
    struct raw raw;
    pid_t server;
    double *values[FIGURES]; /* us, of a block's turn */
};

/* ---- hiredis alone */

static void open_raw(struct raw *raw, const char *url, const char *name,
                     const char *layout)
{
    setenv("RLOCK_URL", url, 1);
    raw->conn = redis_open();
    make_uuid(raw->uuid);
    make_keys(raw->keys, name);
    command_load(&raw->acquire, raw->conn, RLK_MUTEX_ACQUIRE, raw->keys);
    command_load(&raw->release, raw->conn, RLK_MUTEX_RELEASE, raw->keys);
    struct command *const both[] = { &raw->acquire, &raw->release };
    for (int i = 0; i < 2; i++) {
        both[i]->argc--; /* the layout of a plain server */
        command_add(both[i], layout);
    }
}

static void raw_pair(struct raw *raw)
{
    struct command a = raw->acquire, r = raw->release;
    char id[ID_SIZE];

    snprintf(id, sizeof(id), "%s:1:%lu:m3000", raw->uuid, ++raw->count);
    const char *const args[] = {
        id, raw->uuid, "30000", "3000", NEVER_TOO_LATE, "0", "0"
    };
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
        command_add(&a, args[i]);
    freeReplyObject(redis_call(raw->conn, a.argc, a.argv, a.len));
    command_add(&r, id);
    command_add(&r, "0");
    command_add(&r, raw->keys[RLK_KEY_CHANNEL]);
    freeReplyObject(redis_call(raw->conn, r.argc, r.argv, r.len));
}

/* ---- a round */

static void pair(struct side_of_pair *side)
{
    if (side->raw.conn) {
        raw_pair(&side->raw);
        return;
    }
    check(rlock_mutex_lock(&side->mutex), "rlock_mutex_lock");
    check(rlock_mutex_unlock(&side->mutex), "rlock_mutex_unlock");
}

static void run_block(struct side_of_pair *side, size_t round)
{
    double server = process_cpu_us(side->server), cpu = process_cpu_us(getpid());
    int64_t begin = now_ns();

    for (int i = 0; i < TIMES; i++)
        pair(side);
    side->values[TIME][round] += (double)(now_ns() - begin) / 1e3 / TIMES / 2;
    side->values[CLIENT_CPU][round] += (process_cpu_us(getpid()) - cpu) / TIMES / 2;
    side->values[SERVER_CPU][round] +=
        (process_cpu_us(side->server) - server) / TIMES / 2;
}

/* A palindrome, which begins with another client each time. */
static void run_round(struct side_of_pair *sides, size_t round)
{
    for (int i = 0; i < SIDES; i++)
        for (int k = 0; k < FIGURES; k++)
            sides[i].values[k][round] = 0;
    for (size_t turn = 0; turn < 2 * SIDES; turn++) {
        size_t step = turn < SIDES ? turn : 2 * SIDES - 1 - turn;
        run_block(&sides[(round + step) % SIDES], round);
    }
}

/* ---- begin and end */

static void open_sides(struct side_of_pair sides[SIDES], size_t rounds)
{
    char url[URL_MAX], node_url[URL_MAX], name[LOCK_NAME_SIZE];

    servers_cluster_url(url, "");
    snprintf(node_url, sizeof(node_url), "redis://127.0.0.1:%u", (unsigned)nodes[1].port);
    for (int i = 0; i < SIDES; i++) {
        bool of_cluster = i == CLUSTER || i == RAW_CLUSTER;
        servers_name(name, 1, i);
        sides[i].server = test_server_pid(of_cluster ? &nodes[1].server : &plain[0]);
        if (i >= RAW_PLAIN)
            open_raw(&sides[i].raw, of_cluster ? node_url : plain[0].tcp_url, name,
                     of_cluster ? RLK_LAYOUT_SHARDED : RLK_LAYOUT);
        else
            mutex_at(&sides[i].mutex, client_at(of_cluster ? url : plain[0].tcp_url),
                     name);
        for (int k = 0; k < FIGURES; k++)
            if (!(sides[i].values[k] = calloc(rounds, sizeof(double))))
                die("out of memory");
    }
}

/* ---- where they run */

/* The n-th CPU that this process may use; -1: there is none. */
static int cpu_at(const cpu_set_t *all, int n)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, all) && n-- == 0)
            return cpu;
    return -1;
}

/* The main thread of the process; 0: this one. */
static void bind_to(pid_t pid, int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(pid, sizeof(set), &set) != 0)
        die("cannot choose the CPU of a process");
}

/* ---- all rounds */

static void say(struct side_of_pair sides[SIDES], size_t rounds, const char *where)
{
    double **by = sides[PLAIN].values, **cluster = sides[CLUSTER].values;
    double **raw = sides[RAW_PLAIN].values, **raw_cluster = sides[RAW_CLUSTER].values;

    printf("\nlock and unlock of a free lock, %s, %zu rounds, medians in us: time, CPU "
           "of the client, of the server\n",
           where, rounds);
    for (int i = 0; i < SIDES; i++)
        printf("  %-32s %8.2f %8.2f %8.2f\n", labels[i],
               median_of(sides[i].values[TIME], rounds),
               median_of(sides[i].values[CLIENT_CPU], rounds),
               median_of(sides[i].values[SERVER_CPU], rounds));
    say_ratio("cluster by plain: time", cluster[TIME], by[TIME], rounds, "<= 1.05");
    say_ratio("  CPU of the client", cluster[CLIENT_CPU], by[CLIENT_CPU], rounds, "");
    say_ratio("  CPU of the server", cluster[SERVER_CPU], by[SERVER_CPU], rounds, "");
    say_ratio("plain, again, by plain: time", sides[AGAIN].values[TIME], by[TIME], rounds,
              "");
    say_ratio("hiredis alone, cluster by plain: time", raw_cluster[TIME], raw[TIME],
              rounds, "");
    say_ratio("  CPU of the server", raw_cluster[SERVER_CPU], raw[SERVER_CPU], rounds,
              "");
}

static void run_rounds(struct side_of_pair sides[SIDES], size_t rounds, const char *where)
{
    for (size_t i = 0; i < WARM_UP; i++)
        run_round(sides, 0);
    for (size_t i = 0; i < rounds; i++)
        run_round(sides, i);
    say(sides, rounds, where);
}

void bench_pair(size_t rounds)
{
    static struct side_of_pair sides[SIDES];
    cpu_set_t all;

    if (sched_getaffinity(0, sizeof(all), &all) != 0)
        die("no CPU");
    int first = cpu_at(&all, 0), second = cpu_at(&all, 1);
    bind_to(0, first); /* with all threads that it will have */
    servers_start_plain(1);
    servers_start_cluster(false);
    open_sides(sides, rounds);
    run_rounds(sides, rounds, "all on one CPU");
    if (second < 0)
        return;
    bind_to(sides[PLAIN].server, second);
    bind_to(sides[CLUSTER].server, second);
    run_rounds(sides, rounds, "client and servers on a CPU each");
}
