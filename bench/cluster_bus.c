/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hand-overs cost on the cluster's bus, with sharded mailboxes and the classic way,
 * in a cluster of three masters with a replica each; see cluster.h. The classic way is
 * that of a user who may not SSUBSCRIBE. Bytes are those that the kernel has sent by the
 * sockets of the buses: all messages of the nodes, gossip included. What the nodes say of
 * themselves when nobody contends is measured first.
 */
#include "cluster.h"

#include "bench.h"
#include "helpers/redis.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 400, SLICE_MS = 500, IDLE_MS = 5000, LOCKS_FEW = 3 };
enum { SHARDED, CLASSIC, SIDES };
enum { BYTES, PUBLISHED, EXTRAS };
enum { BUS, NET, MESSAGES, RATE, WAITED, SERVER_CPU, FIGURES };

static double values[SIDES][FIGURES][ROUNDS_MAX];
static uint16_t ports[NODES_MAX];
static size_t sockets; /* of all buses; the same all the time */

/* ---- what the nodes send */

static double field_of(const char *text, const char *field)
{
    const char *at = strstr(text, field);

    return at ? strtod(at + strlen(field), NULL) : 0;
}

/* Messages of both ways, of all nodes, each copy counted. */
static double published(void)
{
    double sum = 0;

    for (int i = 0; i < NODES_MAX; i++) {
        struct test_redis *r = test_redis_connect(nodes[i].server.path);
        const char *text = test_redis_str(r, "CLUSTER", "INFO");
        sum += field_of(text, "messages_publish_sent:") +
               field_of(text, "messages_publishshard_sent:");
        test_redis_close(r);
    }
    return sum;
}

static void read_extra(double counts[EXTRAS])
{
    size_t now;

    sockets_sent(ports, NODES_MAX, &counts[BYTES], &now);
    if (sockets != 0 && now != sockets)
        die("the nodes have opened or closed a connection of their bus");
    sockets = now;
    counts[PUBLISHED] = published();
}

/* Bytes a second. */
static double idle_rate(void)
{
    double begin[EXTRAS], end[EXTRAS];
    int64_t at = now_ns();

    read_extra(begin);
    test_pause_ms(IDLE_MS);
    read_extra(end);
    return (end[BYTES] - begin[BYTES]) / ((double)(now_ns() - at) / (double)NS_PER_S);
}

/* ---- two users */

static void make_user(void)
{
    for (int i = 0; i < NODES_MAX; i++) {
        struct test_redis *r = test_redis_connect(nodes[i].server.path);
        test_redis_do(r, "ACL", "SETUSER", "classic", "on", ">classic", "~*", "&*",
                      "+@all", "-ssubscribe");
        test_redis_close(r);
    }
}

static void set_sides(struct side sides[SIDES])
{
    sides[SHARDED] = (struct side){ .label = "sharded mailboxes" };
    sides[CLASSIC] = (struct side){ .label = "the classic way" };
    for (int i = 0; i < SIDES; i++) {
        sides[i].url_count = 1;
        sides[i].server_count = NODES_MAX;
        servers_cluster_url(sides[i].urls[0], i == CLASSIC ? "classic:classic@" : "");
        for (int k = 0; k < NODES_MAX; k++)
            sides[i].servers[k] = &nodes[k].server;
    }
}

/* ---- rounds */

static void take_round(size_t round, const struct work works[SIDES], double idle)
{
    for (int i = 0; i < SIDES; i++) {
        const struct work *w = &works[i];
        if (w->pairs == 0)
            die("nobody gets a lock any more");
        values[i][BUS][round] = w->extra[BYTES] / w->pairs;
        values[i][NET][round] = (w->extra[BYTES] - idle * w->seconds) / w->pairs;
        values[i][MESSAGES][round] = w->extra[PUBLISHED] / w->pairs;
        values[i][RATE][round] = w->pairs / w->seconds;
        values[i][WAITED][round] = 100 * w->waited / w->pairs;
        values[i][SERVER_CPU][round] = w->server_us / w->pairs;
    }
}

static void say(const struct side sides[SIDES], int locks, size_t rounds, double idle)
{
    printf("\nbus of %d nodes, %d processes, %d locks, %zu rounds, medians for each "
           "lock; %.0f bytes/s when nobody contends\n",
           NODES_MAX, TEAM_SIZE, locks, rounds, idle);
    printf("  %-28s %10s %10s %10s %10s %10s %10s\n", "", "bytes", "less idle",
           "messages", "locks/s", "waited, %", "server us");
    for (int i = 0; i < SIDES; i++) {
        printf("  %-28s", sides[i].label);
        for (int k = 0; k < FIGURES; k++)
            printf(" %10.*f", k == MESSAGES || k == SERVER_CPU ? 2 : 0,
                   median_of(values[i][k], rounds));
        putchar('\n');
    }
    say_ratio("sharded by classic: bytes", values[SHARDED][BUS], values[CLASSIC][BUS],
              rounds, "<= 0.10");
    say_ratio("  less those of idle nodes", values[SHARDED][NET], values[CLASSIC][NET],
              rounds, "");
    say_ratio("  messages", values[SHARDED][MESSAGES], values[CLASSIC][MESSAGES], rounds,
              "");
}

static void measure(const struct side sides[SIDES], int locks, size_t rounds)
{
    struct work works[SIDES_MAX];
    struct teams *teams = teams_start(sides, SIDES, locks, read_extra);

    teams_warm_up(teams, SLICE_MS);
    double idle = idle_rate();
    for (size_t i = 0; i < rounds; i++) {
        teams_round(teams, i, SLICE_MS, works);
        take_round(i, works, idle);
    }
    say(sides, locks, rounds, idle);
    teams_stop(teams);
}

void bench_bus(size_t rounds)
{
    static struct side sides[SIDES_MAX];

    if (rounds > ROUNDS_MAX)
        die("at most %d rounds", ROUNDS_MAX);
    servers_start_cluster(true);
    make_user();
    for (int i = 0; i < NODES_MAX; i++)
        ports[i] = nodes[i].bus;
    set_sides(sides);
    measure(sides, LOCKS_MAX, rounds);
    measure(sides, LOCKS_FEW, rounds);
}
