/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hand-overs: processes that lock and unlock one name.
 *
 * Each side has a team of processes and a name of its own. The teams take turns; the
 * processes of the others sleep. A ratio is taken in each round.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMBERS_MAX = 16,
    ROUNDS = 300,
    QUICK_ROUNDS = 30,
    SLICE_MS = 60,
    SLICES_MAX = 100,
    SETTLE_MS = 5,
    WARM_UP = 3,
    NOBODY = -1
};
enum { TIME, CLIENT_CPU, SERVER_CPU, FIGURES };

static const char *const figure_names[FIGURES] = { "time for each, us",
                                                   "CPU of the clients, us",
                                                   "CPU of the server, us" };

struct stage {
    int members;      /* of a team */
    _Atomic int side; /* whose turn it is */
    _Atomic long pairs[SIDES][MEMBERS_MAX];
    sem_t go[SIDES], rests; /* posted once for each member */
    pid_t pids[SIDES][MEMBERS_MAX];
};

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static void be_member(struct stage *stage, int side, int i)
{
    struct library lib;
    rlock_mutex_t m;
    char name[64];

    side_load(&lib, side);
    snprintf(name, sizeof(name), "bench-handoff%d-%d", stage->members, side);
    library_mutex(&lib, &m, library_client(&lib, NULL), name, false);
    for (;;) {
        sem_post(&stage->rests);
        semaphore_wait(&stage->go[side]);
        while (atomic_load_explicit(&stage->side, memory_order_relaxed) == side) {
            library_check(&lib, lib.mutex_lock(&m), "lock");
            atomic_fetch_add_explicit(&stage->pairs[side][i], 1, memory_order_relaxed);
            library_check(&lib, lib.mutex_unlock(&m), "unlock");
        }
    }
}

/* What a team has done, and used, so far. */
struct account {
    int64_t ns;
    long pairs;
    double cpu[FIGURES];
};

static struct account account_of(const struct stage *stage, redisContext *conn, int side)
{
    struct account a = { .cpu[SERVER_CPU] = server_cpu_us(conn), .ns = now_ns() };
    for (int i = 0; i < stage->members; i++) {
        a.pairs += atomic_load(&stage->pairs[side][i]);
        a.cpu[CLIENT_CPU] += process_cpu_us(stage->pids[side][i]);
    }
    return a;
}

static void run_slice(struct stage *stage, redisContext *conn, int side,
                      double ret_figures[FIGURES])
{
    atomic_store(&stage->side, side);
    for (int i = 0; i < stage->members; i++)
        sem_post(&stage->go[side]);
    pause_ms(SETTLE_MS);
    struct account begin = account_of(stage, conn, side);
    struct account end = begin;
    for (int slices = 0; end.pairs == begin.pairs; slices++) { /* on a busy machine */
        if (slices == SLICES_MAX)
            die("nobody gets the lock any more");
        pause_ms(SLICE_MS);
        end = account_of(stage, conn, side);
    }
    atomic_store(&stage->side, NOBODY);
    for (int i = 0; i < stage->members; i++)
        semaphore_wait(&stage->rests);
    double pairs = (double)(end.pairs - begin.pairs);
    ret_figures[TIME] = (double)(end.ns - begin.ns) / 1e3 / pairs;
    for (int k = CLIENT_CPU; k < FIGURES; k++)
        ret_figures[k] = (end.cpu[k] - begin.cpu[k]) / pairs;
}

/* A palindrome, which begins with another side each time. */
static void run_round(struct stage *stage, redisContext *conn,
                      double *values[FIGURES][SIDES], size_t round)
{
    double figures[FIGURES];
    for (int side = 0; side < SIDES; side++)
        for (int k = 0; k < FIGURES; k++)
            values[k][side][round] = 0;
    for (size_t turn = 0; turn < 2 * SIDES; turn++) {
        size_t step = turn < SIDES ? turn : 2 * SIDES - 1 - turn;
        int side = (int)((round + step) % SIDES);
        run_slice(stage, conn, side, figures);
        for (int k = 0; k < FIGURES; k++)
            values[k][side][round] += figures[k] / 2;
    }
}

static void start_teams(struct stage *stage)
{
    if (sem_init(&stage->rests, 1, 0) != 0)
        die("no semaphore");
    for (int side = 0; side < SIDES; side++) {
        if (sem_init(&stage->go[side], 1, 0) != 0)
            die("no semaphore");
        for (int i = 0; i < stage->members; i++) {
            pid_t pid = process_fork(); /* the child shares the stage */
            if (pid == 0)
                be_member(stage, side, i);
            stage->pids[side][i] = pid;
            semaphore_wait(&stage->rests); /* so that it finds its own mailbox */
        }
    }
}

static void measure(int members, size_t rounds)
{
    struct stage *stage = memory_shared(sizeof(*stage));
    redisContext *conn = redis_open();
    double *values[FIGURES][SIDES];
    char title[64];

    stage->members = members;
    atomic_store(&stage->side, NOBODY);
    start_teams(stage);
    for (int k = 0; k < FIGURES; k++)
        for (int side = 0; side < SIDES; side++)
            if (!(values[k][side] = calloc(rounds, sizeof(double))))
                die("out of memory");
    for (size_t i = 0; i < WARM_UP; i++)
        run_round(stage, conn, values, i);
    for (size_t i = 0; i < rounds; i++)
        run_round(stage, conn, values, i);
    snprintf(title, sizeof(title), "hand-overs of %d processes", members);
    table_head(title, rounds);
    for (int k = 0; k < FIGURES; k++)
        table_row(figure_names[k], values[k], rounds, k == TIME ? "<= 1.01" : "");
    redisFree(conn);
}

void versus_handoff(bool quick)
{
    static const int sizes[] = { 2, MEMBERS_MAX };
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        pid_t pid = process_fork(); /* with it its teams end */
        if (pid == 0) {
            measure(sizes[i], quick ? QUICK_ROUNDS : ROUNDS);
            _exit(0);
        }
        if (process_reap(pid) != 0)
            die("hand-overs of %d processes failed", sizes[i]);
    }
}
