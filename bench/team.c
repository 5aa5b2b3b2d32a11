/* SPDX-License-Identifier: Apache-2.0 */
/* See team.h. Parent and workers share a board: the parent writes when a round is to
 * begin and end and posts each worker's `go`; each worker adds to its slot and posts
 * `done`. A worker that fails ends, which the parent notices; when the parent ends the
 * kernel ends the workers. */
#include "team.h"

#include "bench.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CACHE_LINE = 64, ANSWER_TIMEOUT_S = 30 };

#define SETTLE_NS (NS_PER_S / 50) /* from `go` to the start, so that all are ready */

struct slot {
    _Alignas(CACHE_LINE) sem_t go;
    uint64_t pairs, waits;
    int64_t cpu_ns, timed_ns, longest_ns;
    long switches;
};

struct board {
    sem_t done;
    int64_t start, stop; /* CLOCK_MONOTONIC */
    bool quit;
    struct slot slots[TEAM_MAX];
};

struct team {
    size_t size;
    double seconds; /* measured since the last team_take() */
    struct board *board;
    pid_t pids[TEAM_MAX];
};

/* ---- a worker */

static void sleep_until(int64_t ns)
{
    struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        continue;
}

static int64_t cpu_ns(const struct rusage *usage)
{
    int64_t us = ((int64_t)usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000 +
                 usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
    return us * 1000;
}

static void note_time(int64_t ns, struct slot *slot)
{
    slot->timed_ns += ns;
    if (ns > slot->longest_ns)
        slot->longest_ns = ns;
}

static void run_round(const struct contender *contender, void *state, struct slot *slot,
                      const struct board *board)
{
    struct rusage before, after;
    uint64_t pairs = 0, waits = contender->waits ? contender->waits(state) : 0;

    sleep_until(board->start);
    getrusage(RUSAGE_SELF, &before);
    for (;;) {
        uint64_t n = contender->run(state);
        bool over = now_ns() >= board->stop;
        if (contender->timed_ns)
            note_time(contender->timed_ns(state), slot);
        if (!over || contender->timed_ns)
            pairs += n; /* a run that was cut off counts if it has a time of its own */
        if (over)
            break;
    }
    getrusage(RUSAGE_SELF, &after);
    slot->pairs += pairs;
    slot->waits += contender->waits ? contender->waits(state) - waits : 0;
    slot->cpu_ns += cpu_ns(&after) - cpu_ns(&before);
    slot->switches += after.ru_nvcsw - before.ru_nvcsw;
}

static void work(const struct contender *contender, const char *name, struct board *board,
                 struct slot *slot)
{
    void *state = contender->open(name);
    sem_post(&board->done);
    for (;;) {
        semaphore_wait(&slot->go);
        if (board->quit)
            break;
        run_round(contender, state, slot, board);
        sem_post(&board->done);
    }
    contender->close(state);
    _exit(0); /* the parent's buffers are not this process's to write */
}

/* ---- the parent */

/* Waits until all workers have posted. */
static void await_all(struct team *team, double seconds)
{
    for (size_t i = 0; i < team->size; i++) {
        if (!semaphore_wait_for(&team->board->done, ANSWER_TIMEOUT_S + seconds))
            die("a worker does not answer");
    }
}

static void on_child(int signal)
{
    (void)signal;
    static const char text[] = "bench: a worker failed\n";
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);
            (void)n;
            _exit(2);
        }
    }
}

struct team *team_start(const struct contender *contender, size_t size, const char *name)
{
    struct team *team = calloc(1, sizeof(*team));

    if (!team || size > TEAM_MAX)
        die("no team of %zu", size);
    team->size = size;
    team->board = memory_shared(sizeof(*team->board));
    sem_init(&team->board->done, 1, 0);
    signal(SIGCHLD, on_child);
    for (size_t i = 0; i < size; i++) {
        struct slot *slot = &team->board->slots[i];
        sem_init(&slot->go, 1, 0);
        team->pids[i] = process_fork();
        if (team->pids[i] == 0) {
            signal(SIGCHLD, SIG_DFL);
            work(contender, name, team->board, slot);
        }
    }
    await_all(team, 0);
    return team;
}

static void go(struct team *team)
{
    for (size_t i = 0; i < team->size; i++)
        sem_post(&team->board->slots[i].go);
}

void team_run(struct team *team, double seconds)
{
    team->board->start = now_ns() + SETTLE_NS;
    team->board->stop = team->board->start + (int64_t)(seconds * (double)NS_PER_S);
    go(team);
    await_all(team, seconds);
    team->seconds += seconds;
}

void team_take(struct team *team, struct result *ret_result)
{
    struct result result = { .seconds = team->seconds, .unluckiest = UINT64_MAX };
    double timed_ns = 0;

    for (size_t i = 0; i < team->size; i++) {
        struct slot *slot = &team->board->slots[i];
        result.pairs += slot->pairs;
        result.waits += slot->waits;
        result.cpu_ns += (double)slot->cpu_ns;
        result.switches += (double)slot->switches;
        timed_ns += (double)slot->timed_ns;
        if ((double)slot->longest_ns > result.longest_ns)
            result.longest_ns = (double)slot->longest_ns;
        if (slot->pairs > result.luckiest)
            result.luckiest = slot->pairs;
        if (slot->pairs < result.unluckiest)
            result.unluckiest = slot->pairs;
        slot->pairs = slot->waits = 0;
        slot->cpu_ns = slot->timed_ns = slot->longest_ns = 0;
        slot->switches = 0;
    }
    if (timed_ns > 0)
        result.seconds = timed_ns / (double)NS_PER_S;
    team->seconds = 0;
    *ret_result = result;
}

void team_stop(struct team *team)
{
    team->board->quit = true;
    go(team);
    for (size_t i = 0; i < team->size; i++) /* on_child() may have been first */
        if (process_reap(team->pids[i]) != 0)
            die("a worker failed at its end");
    memory_free(team->board, sizeof(*team->board));
    free(team);
}
