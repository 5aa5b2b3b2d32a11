/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-overs of 64 processes on 64 locks: at one plain server, at three masters of a
 * cluster, and at three plain servers among which the clients share the locks out
 * themselves. The last one shows what three servers cost that are no cluster; see
 * cluster.h.
 */
#include "cluster.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS_MAX = 400, SLICE_MS = 500, LOCKS_FEW = 3 };
enum { ONE, CLUSTER, THREE, SIDES };
enum { RATE, SERVER_CPU, CLIENT_CPU, WAITED, FIGURES };

static double values[SIDES][FIGURES][ROUNDS_MAX];

static void set_sides(struct side sides[SIDES])
{
    sides[ONE] = (struct side){ .label = "one plain server",
                                .url_count = 1,
                                .servers = { &plain[0] },
                                .server_count = 1 };
    sides[CLUSTER] = (struct side){ .label = "cluster, three masters",
                                    .url_count = 1,
                                    .server_count = MASTERS };
    sides[THREE] = (struct side){ .label = "three plain servers",
                                  .url_count = MASTERS,
                                  .server_count = MASTERS };
    snprintf(sides[ONE].urls[0], URL_MAX, "%s", plain[0].tcp_url);
    servers_cluster_url(sides[CLUSTER].urls[0], "");
    for (int i = 0; i < MASTERS; i++) {
        sides[CLUSTER].servers[i] = &nodes[i].server;
        sides[THREE].servers[i] = &plain[i];
        snprintf(sides[THREE].urls[i], URL_MAX, "%s", plain[i].tcp_url);
    }
}

static void take_round(size_t round, const struct work works[SIDES])
{
    for (int i = 0; i < SIDES; i++) {
        const struct work *w = &works[i];
        if (w->pairs == 0)
            die("nobody gets a lock any more");
        values[i][RATE][round] = w->pairs / w->seconds;
        values[i][SERVER_CPU][round] = w->server_us / w->pairs;
        values[i][CLIENT_CPU][round] = w->client_us / w->pairs;
        values[i][WAITED][round] = 100 * w->waited / w->pairs;
    }
}

static void say(const struct side sides[SIDES], int locks, size_t rounds)
{
    printf("\n%d processes, %d locks, %zu rounds, medians\n  %-28s %10s %10s %10s %10s\n",
           TEAM_SIZE, locks, rounds, "", "locks/s", "waited, %", "server us",
           "client us");
    for (int i = 0; i < SIDES; i++)
        printf("  %-28s %10.0f %10.1f %10.2f %10.2f\n", sides[i].label,
               median_of(values[i][RATE], rounds), median_of(values[i][WAITED], rounds),
               median_of(values[i][SERVER_CPU], rounds),
               median_of(values[i][CLIENT_CPU], rounds));
    say_ratio("cluster by one: locks/s", values[CLUSTER][RATE], values[ONE][RATE], rounds,
              "");
    say_ratio("  CPU of the servers for a lock", values[CLUSTER][SERVER_CPU],
              values[ONE][SERVER_CPU], rounds, "<= 1.10");
    say_ratio("cluster by three: locks/s", values[CLUSTER][RATE], values[THREE][RATE],
              rounds, "");
    say_ratio("  CPU of the servers for a lock", values[CLUSTER][SERVER_CPU],
              values[THREE][SERVER_CPU], rounds, "");
}

static void measure(const struct side sides[SIDES], int locks, size_t rounds)
{
    struct work works[SIDES_MAX];
    struct teams *teams = teams_start(sides, SIDES, locks, NULL);

    teams_warm_up(teams, SLICE_MS);
    for (size_t i = 0; i < rounds; i++) {
        teams_round(teams, i, SLICE_MS, works);
        take_round(i, works);
    }
    say(sides, locks, rounds);
    teams_stop(teams);
}

void bench_handoff(size_t rounds)
{
    static struct side sides[SIDES_MAX];

    if (rounds > ROUNDS_MAX)
        die("at most %d rounds", ROUNDS_MAX);
    servers_start_plain(MASTERS);
    servers_start_cluster(false);
    set_sides(sides);
    measure(sides, LOCKS_MAX, rounds);
    measure(sides, LOCKS_FEW, rounds);
}
