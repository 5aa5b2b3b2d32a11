/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a held lock: the heap of its client, and the memory of the server.
 *
 * Each reading is that of a new process, which holds many locks, whose names have 32
 * bytes as in burden.c. It begins and ends with the server's memory at rest: the server
 * changes the size of its table of keys in the background.
 */
#include "versus.h"

#include "bench.h"
#include "process.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_LEN = 32,
    HELD = 10000,
    ROUNDS = 5,
    QUICK_ROUNDS = 1,
    LOOK_MS = 100,
    LOOKS = 200,
    RESTS_FOR = 5, /* looks */
    RESTS_WITHIN = 4096
};
enum { HEAP, SERVER, FIGURES };

static const char *const figure_names[FIGURES] = { "heap of the client, bytes",
                                                   "memory of the server" };

static size_t heap_used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static double server_memory(redisContext *conn)
{
    char text[64];
    redis_info(conn, "memory", "used_memory", text, sizeof(text));
    return strtod(text, NULL);
}

static double server_at_rest(redisContext *conn)
{
    double last = server_memory(conn);
    for (int looks = 0, rests = 0; looks < LOOKS; looks++) {
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
        double used = server_memory(conn);
        rests = fabs(used - last) < RESTS_WITHIN ? rests + 1 : 0;
        last = used;
        if (rests == RESTS_FOR)
            return used;
    }
    die("the server's memory does not come to rest");
}

/* In a process that has used no build. */
static void read_figures(int side, double ret_figures[FIGURES])
{
    struct library lib;
    rlock_mutex_t *mutexes = memory_shared(HELD * sizeof(*mutexes));
    redisContext *conn = redis_open();
    char name[NAME_LEN + 1];

    mallopt(M_ARENA_MAX, 1); /* one heap for all threads: mallinfo2() reports one heap */
    side_load(&lib, side);
    rlock_client_t *client = library_client(&lib, NULL);
    double server = server_at_rest(conn);
    size_t heap = heap_used();
    for (size_t i = 0; i < HELD; i++) {
        snprintf(name, sizeof(name), "order-%0*zu", NAME_LEN - 6, i);
        library_mutex(&lib, &mutexes[i], client, name, false);
        library_check(&lib, lib.mutex_lock(&mutexes[i]), "lock");
    }
    ret_figures[HEAP] = (double)(heap_used() - heap) / HELD;
    ret_figures[SERVER] = (server_at_rest(conn) - server) / HELD;
    for (size_t i = HELD; i-- > 0;) /* the newest first, which is found soonest */
        library_check(&lib, lib.mutex_unlock(&mutexes[i]), "unlock");
    library_check(&lib, lib.client_close(client), "rlock_client_close");
}

void versus_memory(bool quick)
{
    static double values[FIGURES][SIDES][ROUNDS];
    size_t rounds = quick ? QUICK_ROUNDS : ROUNDS;
    double *figures = memory_shared(FIGURES * sizeof(*figures));

    for (size_t i = 0; i < rounds * SIDES; i++) {
        size_t round = i / SIDES;
        int side = (int)((round + i) % SIDES);
        pid_t pid = process_fork();
        if (pid == 0) {
            read_figures(side, figures);
            _exit(0);
        }
        if (process_reap(pid) != 0)
            die("a holder failed");
        for (int k = 0; k < FIGURES; k++)
            values[k][side][round] = figures[k];
    }
    table_head("memory of a held lock, name of 32 bytes", rounds);
    for (int k = 0; k < FIGURES; k++)
        table_row(
            figure_names[k],
            (double *const[]){ values[k][BEFORE], values[k][NOW], values[k][AGAIN] },
            rounds, "<= 1.01");
}
