/* SPDX-License-Identifier: Apache-2.0 */
/* See team.h. Parent and workers share a board: the parent writes when a round is to
 * begin and end and posts each worker's `go`; each worker adds to its own counts and
 * posts `done`. A worker is a thread of one of the processes. A process that fails ends,
 * which the parent notices; when the parent ends, the kernel ends the processes. */
#include "team.h"

#include "bench.h"
#include "peer.h"
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CACHE_LINE = 64, ANSWER_TIMEOUT_S = 60, STACK_SIZE = 256 * 1024 };

#define SETTLE_NS (NS_PER_S / 50) /* from `go` to the start, so that all are ready */

struct slot {
    _Alignas(CACHE_LINE) sem_t go;
    uint64_t pairs, waits;
    int64_t cpu_ns, timed_ns, longest_ns;
    long switches;
    struct histogram latencies;
};

struct board {
    sem_t done;
    int64_t start, stop; /* CLOCK_MONOTONIC */
    bool quit;
    struct slot slots[];
};

struct team {
    struct crew *crew;           /* of a peer: then only the figures below are used */
    size_t size, processes;      /* workers of all processes */
    double seconds, crew_cpu_ns; /* since the last team_take() */
    struct board *board;
    pid_t *pids;
};

/* A worker: a thread of a process. */
struct worker {
    const struct contender *contender;
    void *state;
    struct board *board;
    struct slot *slot;
    bool first; /* of its process, for which it speaks */
    pthread_t thread;
};

/* ---- a worker */

static void sleep_until(int64_t ns)
{
    struct timespec ts = { .tv_sec = ns / NS_PER_S, .tv_nsec = (long)(ns % NS_PER_S) };
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

static void run_round(const struct worker *w)
{
    const struct contender *contender = w->contender;
    struct slot *slot = w->slot;
    struct rusage before, after;
    uint64_t pairs = 0, waits = 0;

    sleep_until(w->board->start);
    if (w->first) {
        waits = contender->waits ? contender->waits(w->state) : 0;
        getrusage(RUSAGE_SELF, &before);
    }
    for (;;) {
        uint64_t n = contender->run(w->state);
        bool over = now_ns() >= w->board->stop;
        if (contender->timed_ns)
            note_time(contender->timed_ns(w->state), slot);
        if (!over || contender->timed_ns)
            pairs += n; /* a run that was cut off counts if it has a time of its own */
        if (over)
            break;
    }
    slot->pairs += pairs;
    if (w->first) {
        getrusage(RUSAGE_SELF, &after);
        slot->waits += contender->waits ? contender->waits(w->state) - waits : 0;
        slot->cpu_ns += cpu_ns(&after) - cpu_ns(&before);
        slot->switches += after.ru_nvcsw - before.ru_nvcsw;
    }
}

static void *work(void *arg)
{
    const struct worker *w = arg;

    histogram_own = &w->slot->latencies;
    sem_post(&w->board->done);
    for (;;) {
        semaphore_wait(&w->slot->go);
        if (w->board->quit)
            return NULL;
        run_round(w);
        sem_post(&w->board->done);
    }
}

/* The first worker is the process's own thread. */
static void run_process(const struct contender *contender, const char *name,
                        struct board *board, struct slot *slots, size_t threads)
{
    struct worker *workers = calloc(threads, sizeof(*workers));
    void *state = contender->open(name);
    pthread_attr_t attr;

    if (!workers)
        die("out of memory");
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    for (size_t i = threads; i-- > 0;) {
        workers[i] = (struct worker){ .contender = contender,
                                      .state = state,
                                      .board = board,
                                      .slot = &slots[i],
                                      .first = i == 0 };
        if (i > 0 && pthread_create(&workers[i].thread, &attr, work, &workers[i]) != 0)
            die("no thread");
    }
    pthread_attr_destroy(&attr);
    work(&workers[0]);
    for (size_t i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
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

static size_t board_size(size_t workers)
{
    return sizeof(struct board) + workers * sizeof(struct slot);
}

static void start_processes(struct team *team, const struct contender *contender,
                            size_t threads, const char *name)
{
    team->board = memory_shared(board_size(team->size));
    sem_init(&team->board->done, 1, 0);
    for (size_t i = 0; i < team->size; i++)
        sem_init(&team->board->slots[i].go, 1, 0);
    if (contender->prepare)
        contender->prepare();
    for (size_t i = 0; i < team->processes; i++) {
        team->pids[i] = process_fork();
        if (team->pids[i] == 0) {
            signal(SIGCHLD, SIG_DFL);
            run_process(contender, name, team->board, &team->board->slots[i * threads],
                        threads);
        }
    }
    await_all(team, 0);
}

struct team *team_start(const struct contender *contender, struct shape shape,
                        const char *name)
{
    struct team *team = calloc(1, sizeof(*team));
    size_t threads = shape.threads > 0 ? shape.threads : 1;

    if (!team)
        die("out of memory");
    team->processes = shape.processes > 0 ? shape.processes : 1;
    team->size = team->processes * threads;
    team->pids = calloc(team->processes, sizeof(*team->pids));
    if (!team->pids || team->size > TEAM_MAX)
        die("no team of %zu", team->size);
    signal(SIGCHLD, on_child);
    if (contender->peer)
        team->crew = crew_start(contender->peer, team->size, name);
    else
        start_processes(team, contender, threads, name);
    return team;
}

static void go(struct team *team)
{
    for (size_t i = 0; i < team->size; i++)
        sem_post(&team->board->slots[i].go);
}

void team_run(struct team *team, double seconds)
{
    team->seconds += seconds;
    if (team->crew) {
        crew_run(team->crew, seconds, &team->crew_cpu_ns);
        return;
    }
    team->board->start = now_ns() + SETTLE_NS;
    team->board->stop = team->board->start + (int64_t)(seconds * (double)NS_PER_S);
    go(team);
    await_all(team, seconds);
}

void result_count(struct result *result, uint64_t pairs)
{
    result->pairs += pairs;
    if (pairs > result->luckiest)
        result->luckiest = pairs;
    if (pairs < result->unluckiest)
        result->unluckiest = pairs;
}

static void take_slot(struct slot *slot, struct result *result, double *timed_ns)
{
    result_count(result, slot->pairs);
    result->waits += slot->waits;
    result->cpu_ns += (double)slot->cpu_ns;
    result->switches += (double)slot->switches;
    *timed_ns += (double)slot->timed_ns;
    if ((double)slot->longest_ns > result->longest_ns)
        result->longest_ns = (double)slot->longest_ns;
    histogram_merge(&result->latencies, &slot->latencies);
    slot->pairs = slot->waits = 0;
    slot->cpu_ns = slot->timed_ns = slot->longest_ns = 0;
    slot->switches = 0;
    slot->latencies = (struct histogram){ 0 };
}

void team_take(struct team *team, struct result *ret_result)
{
    struct result *result = ret_result;
    double timed_ns = 0;

    *result = (struct result){ .seconds = team->seconds, .unluckiest = UINT64_MAX };
    if (team->crew) {
        crew_take(team->crew, result);
        result->cpu_ns = team->crew_cpu_ns;
    } else {
        for (size_t i = 0; i < team->size; i++)
            take_slot(&team->board->slots[i], result, &timed_ns);
    }
    if (timed_ns > 0)
        result->seconds = timed_ns / (double)NS_PER_S;
    team->seconds = team->crew_cpu_ns = 0;
}

void team_stop(struct team *team)
{
    if (team->crew) {
        crew_stop(team->crew);
    } else {
        team->board->quit = true;
        go(team);
        for (size_t i = 0; i < team->processes; i++) /* on_child() may have been first */
            if (process_reap(team->pids[i]) != 0)
                die("a worker failed at its end");
        memory_free(team->board, board_size(team->size));
    }
    free(team->pids);
    free(team);
}
