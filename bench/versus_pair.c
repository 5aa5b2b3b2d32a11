/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lock and unlock of a free lock, and a try on a robust one that another process holds.
 *
 * As in guard_cost.c, one thread has a client of each build, and a second client of the
 * older build. They take turns in blocks of 2 ms or so. A ratio is taken in each round;
 * the ratio of the older build's two clients is the noise of the other ratio. Figures:
 * time by the clock, CPU of this process with all threads, CPU of the server.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4000, QUICK_ROUNDS = 400, TIMES = 25, WARM_UP = 5 };
enum { TIME, CLIENT_CPU, SERVER_CPU, FIGURES };

static const char *const figure_names[FIGURES] = { "time, us", "CPU of the client, us",
                                                   "CPU of the server, us" };

struct side {
    struct library lib;
    rlock_client_t *client;
    rlock_mutex_t mutex;
    double *values[FIGURES]; /* us, of a block's turn */
};

struct setting {
    const char *title, *name, *target;
    bool tries;
};

static void do_once(struct side *side, bool tries)
{
    const struct library *lib = &side->lib;
    if (tries) {
        int rc = lib->mutex_trylock(&side->mutex);
        if (rc != EBUSY)
            die("%s: a try: %s", lib->label, lib->strerror(rc));
        return;
    }
    library_check(lib, lib->mutex_lock(&side->mutex), "lock");
    library_check(lib, lib->mutex_unlock(&side->mutex), "unlock");
}

static void run_block(struct side *side, redisContext *conn, bool tries, size_t round)
{
    double server = server_cpu_us(conn), cpu = process_cpu_us(getpid());
    int64_t begin = now_ns();
    for (int i = 0; i < TIMES; i++)
        do_once(side, tries);
    side->values[TIME][round] += (double)(now_ns() - begin) / 1e3 / TIMES / 2;
    side->values[CLIENT_CPU][round] += (process_cpu_us(getpid()) - cpu) / TIMES / 2;
    side->values[SERVER_CPU][round] += (server_cpu_us(conn) - server) / TIMES / 2;
}

/* A palindrome, which begins with another client each time. */
static void run_round(struct side *sides, redisContext *conn, bool tries, size_t round)
{
    for (int i = 0; i < SIDES; i++)
        for (int k = 0; k < FIGURES; k++)
            sides[i].values[k][round] = 0;
    for (size_t turn = 0; turn < 2 * SIDES; turn++) {
        size_t step = turn < SIDES ? turn : 2 * SIDES - 1 - turn;
        run_block(&sides[(round + step) % SIDES], conn, tries, round);
    }
}

/* Another process, which stays alive, holds the lock. */
static pid_t start_holder(const char *name)
{
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        die("no pipe");
    pid_t pid = process_fork();
    if (pid == 0) {
        struct library lib;
        rlock_mutex_t m;
        library_load(&lib, versus_labels[NOW], versus_paths[NOW]);
        library_mutex(&lib, &m, library_client(&lib, NULL), name, true);
        library_check(&lib, lib.mutex_lock(&m), "lock");
        if (write(ready[1], "x", 1) != 1)
            _exit(2);
        for (;;)
            pause();
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        die("the holder has ended");
    close(ready[0]);
    return pid;
}

static void measure(const struct setting *setting, bool quick)
{
    static struct side sides[SIDES];
    size_t rounds = quick ? QUICK_ROUNDS : ROUNDS;
    char name[64];

    if (setting->tries)
        start_holder(setting->name); /* it ends with this process */
    redisContext *conn = redis_open();
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &sides[i];
        if (i == AGAIN)
            side->lib = sides[BEFORE].lib;
        else
            side_load(&side->lib, i);
        if (setting->tries)
            snprintf(name, sizeof(name), "%s", setting->name);
        else
            snprintf(name, sizeof(name), "%s%d", setting->name, i);
        side->client = library_client(&side->lib, NULL);
        library_mutex(&side->lib, &side->mutex, side->client, name, setting->tries);
        for (int k = 0; k < FIGURES; k++)
            if (!(side->values[k] = calloc(ROUNDS, sizeof(double))))
                die("out of memory");
    }
    for (size_t i = 0; i < WARM_UP; i++)
        run_round(sides, conn, setting->tries, i);
    for (size_t i = 0; i < rounds; i++)
        run_round(sides, conn, setting->tries, i);
    table_head(setting->title, rounds);
    for (int k = 0; k < FIGURES; k++)
        table_row(figure_names[k],
                  (double *const[]){ sides[BEFORE].values[k], sides[NOW].values[k],
                                     sides[AGAIN].values[k] },
                  rounds, k == TIME ? setting->target : "");
}

void versus_pair(bool quick)
{
    static const struct setting pair = { .title = "lock and unlock of a free lock",
                                         .name = "bench-versus-",
                                         .target = "<= 1.01" };
    measure(&pair, quick);
}

void versus_try(bool quick)
{
    static const struct setting busy = {
        .title = "a try on a robust lock that another process holds",
        .name = "bench-versus-robust",
        .target = "<= 1.02",
        .tries = true
    };
    measure(&busy, quick);
}
