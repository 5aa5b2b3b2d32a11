/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The map of a cluster: from the bytes of a node's reply to a client that sends by the
 * map; see cluster.h. The reply is made up, in the form of Redis 7: each master has a
 * replica. Measured are the first map of a client, which makes its nodes, the same map
 * once more, and one in which all hash slots have moved. The bytes come in pieces as from
 * a socket.
 */
#include "cluster.h"

#include "bench.h"
#include "client/client.h"
#include "client/cluster_impl.h"
#include "net/conn_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES_MAX = 8 << 20,
    PIECE = 16384,
    REPLY_LIMIT = 64 << 20,
    ROUNDS_MAX = 400,
    ROOM = 1000 /* bytes of a range at most */
};
enum { FIRST, SAME, MOVED, CASES };

struct shape {
    const char *label;
    unsigned masters, ranges;
    const char *target;
};
static const struct shape shapes[] = {
    { "16 masters", 16, 16, "< 1 ms" },
    { "16 masters, each hash slot a range", 16, RLK_HASH_SLOTS, "" },
    { "1,000 masters", 1000, 1000, "< 5 ms" },
    { "1,000 masters, 4,000 ranges", 1000, 4000, "" },
    { "1,000 masters, each hash slot a range", 1000, RLK_HASH_SLOTS, "" },
};

/* ---- the reply */

static char bytes[BYTES_MAX];
static size_t used;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list args;

    if (used > BYTES_MAX - ROOM)
        die("the reply is too long");
    va_start(args, format);
    used += (size_t)vsnprintf(bytes + used, ROOM, format, args);
    va_end(args);
}

static void put_node(unsigned master, unsigned port)
{
    char host[32];

    snprintf(host, sizeof(host), "10.0.%u.%u", master / 250, master % 250);
    put("*4\r\n$%zu\r\n%s\r\n:%u\r\n$40\r\n%040u\r\n*0\r\n", strlen(host), host, port,
        master * 2 + port % 2);
}

/* Range i is at master i + shift, by turns. */
static void make_reply(const struct shape *shape, unsigned shift)
{
    used = 0;
    put("*%u\r\n", shape->ranges);
    for (unsigned i = 0; i < shape->ranges; i++) {
        unsigned master = (i + shift) % shape->masters;
        put("*4\r\n:%u\r\n:%u\r\n", i * RLK_HASH_SLOTS / shape->ranges,
            (i + 1) * RLK_HASH_SLOTS / shape->ranges - 1);
        put_node(master, 6379);
        put_node(master, 6380);
    }
}

/* ---- one map */

static struct rlk_reply *read_reply(struct rlk_conn *conn)
{
    struct rlk_reply *reply = NULL;
    enum rlk_parsed parsed = RLK_PARSED_PARTIAL;

    for (size_t at = 0; at < used && parsed == RLK_PARSED_PARTIAL; at += PIECE) {
        size_t len = used - at < PIECE ? used - at : PIECE;
        redisReaderFeed(conn->reader, bytes + at, len);
        conn->partial_len += len;
        parsed = rlk_conn_parse(conn, &reply);
    }
    if (parsed != RLK_PARSED_REPLY)
        die("the reply was not read");
    return reply;
}

/* ms */
static double install(struct rlk_conn *conn, struct rlock_client *client)
{
    struct rlk_cluster_map *map = NULL;
    int64_t begin = now_ns();
    struct rlk_reply *reply = read_reply(conn);

    check(rlk_cluster_map_parse(&map, reply, "10.0.0.0"), "rlk_cluster_map_parse");
    check(rlk_cluster_apply(client->route.cluster, map), "rlk_cluster_apply");
    rlk_cluster_map_free(map);
    rlk_reply_free(reply);
    return (double)(now_ns() - begin) / 1e6;
}

static struct rlk_conn *make_conn(void)
{
    struct rlk_conn *conn = calloc(1, sizeof(*conn));

    if (!conn || rlk_conn_reset_reader(conn) != 0)
        die("out of memory");
    conn->label = "bench";
    conn->reply_limit = REPLY_LIMIT;
    conn->fd = conn->watcher = -1;
    conn->state = RLK_CONN_READY;
    return conn;
}

/* ---- all of them */

static void run_once(const struct shape *shape, double ret_ms[CASES])
{
    rlock_client_t *client = NULL;
    struct rlk_conn *conn = make_conn();

    /* nobody listens there, and nobody is asked */
    check(rlock_client_open(&client, "redis-cluster://127.0.0.1:1", NULL), "open");
    make_reply(shape, 0);
    ret_ms[FIRST] = install(conn, client);
    ret_ms[SAME] = install(conn, client);
    make_reply(shape, 1);
    ret_ms[MOVED] = install(conn, client);
    check(rlock_client_close(client), "rlock_client_close");
    rlk_conn_free(conn);
}

void bench_map(size_t rounds)
{
    static double ms[CASES][ROUNDS_MAX];
    double once[CASES];

    if (rounds > ROUNDS_MAX)
        die("at most %d rounds", ROUNDS_MAX);
    printf("\nmap of a cluster, each master with a replica, %zu rounds, ms: median "
           "(worst)\n  %-40s %8s %16s %16s %16s\n",
           rounds, "", "bytes", "first", "the same again", "all moved");
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        for (size_t k = 0; k < rounds; k++) {
            run_once(&shapes[i], once);
            for (int c = 0; c < CASES; c++)
                ms[c][k] = once[c];
        }
        printf("  %-40s %8zu", shapes[i].label, used);
        for (int c = 0; c < CASES; c++) {
            double worst = 0;
            for (size_t k = 0; k < rounds; k++)
                worst = ms[c][k] > worst ? ms[c][k] : worst;
            printf(" %8.3f (%5.2f)", median_of(ms[c], rounds), worst);
        }
        printf(" %s\n", shapes[i].target);
    }
}
