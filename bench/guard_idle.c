/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the crash guard costs a process that waits for nothing, while others that use its
 * directory open clients, close them and are killed: how often its threads are woken.
 *
 * All idle processes are there at the same time, some with the guard on and some with it
 * off. Half of each have waited for a lock once. Of these, the processes with the guard
 * looked for deaths while they waited, and have stopped before the measurement begins.
 * For comparison, other processes wait all the time. The benchmark counts the voluntary
 * context switches of all threads and the processor time, by /proc. Its time is a
 * multiple of the time between two PINGs of a client's mailbox, which wake all idle
 * clients. Whether a client sleeps once more until the answer is there is chance, so
 * there are several of each kind.
 */
#include "burden.h"

#include "bench.h"
#include "guarded.h"
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SECONDS = 12,
    QUICK_SECONDS = 6,
    EACH = 4,
    PATIENCE_S = 15,
    LOOK_MS = 10,
    PAUSE_MS = 20, /* between two processes that come and go */
    SHORT_WAIT_MS = 300
};

#define HELD_NAME "bench-idle"

struct idle {
    const char *label, *target;
    bool guard, has_waited, waits;
    pid_t pids[EACH];
    double switches, cpu_ns; /* of all processes of this kind */
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

/* ---- the processes that use the library */

static void mutex_of(rlock_mutex_t *mutex, rlock_client_t *client, const char *name)
{
    rlock_mutexattr_t attr;
    check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
    check(rlock_mutexattr_setclient(&attr, client), "rlock_mutexattr_setclient");
    check(rlock_mutex_init(mutex, &attr, name), "rlock_mutex_init");
}

static void wait_in_vain(rlock_client_t *client)
{
    rlock_mutex_t mutex;
    struct timespec until;

    mutex_of(&mutex, client, HELD_NAME);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += SHORT_WAIT_MS * 1000000L;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    int rc = rlock_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
    if (rc != ETIMEDOUT)
        die("the lock of another process: %d", rc);
}

static void wait_for_ever(rlock_client_t *client)
{
    rlock_mutex_t mutex;
    mutex_of(&mutex, client, HELD_NAME);
    int rc = rlock_mutex_lock(&mutex);
    die("the lock of another process: %d", rc);
}

static void idle_away(const struct idle *self, sem_t *ready)
{
    rlock_client_t *client = client_open(self->guard);
    if (self->has_waited)
        wait_in_vain(client);
    sem_post(ready);
    if (self->waits)
        wait_for_ever(client);
    for (;;)
        pause();
}

/* Holds a lock of that name until it is killed. */
static void hold_on(const char *name, sem_t *ready)
{
    rlock_mutex_t mutex;
    mutex_of(&mutex, client_open(true), name);
    check(rlock_mutex_lock(&mutex), "rlock_mutex_lock");
    sem_post(ready);
    for (;;)
        pause();
}

/* A process that comes and goes: it takes a lock, and dies with it or not. */
static void come_and_go(const char *name, bool dies)
{
    rlock_client_t *client = client_open(true);
    rlock_mutex_t mutex;

    mutex_of(&mutex, client, name);
    check(rlock_mutex_lock(&mutex), "rlock_mutex_lock");
    if (dies)
        raise(SIGKILL);
    check(rlock_mutex_unlock(&mutex), "rlock_mutex_unlock");
    check(rlock_client_close(client), "rlock_client_close");
    _exit(0);
}

/* ---- what /proc says of a process */

/* Sums the number behind `field` in a file of each thread of the process; without a
 * field, the file's first number. */
static double sum_of_threads(pid_t pid, const char *file, const char *field)
{
    char path[512], line[256];
    double sum = 0;
    struct dirent *task;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        die("%s is not there", path);
    while ((task = readdir(tasks)) != NULL) {
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%s/%s", (int)pid, task->d_name, file);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f)) {
            if (strncmp(line, field, strlen(field)) != 0)
                continue;
            sum += strtod(line + strlen(field), NULL);
            break;
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return sum;
}

static void count(struct idle *idle, double sign)
{
    for (size_t i = 0; i < EACH; i++) {
        pid_t pid = idle->pids[i];
        idle->switches +=
            sign * sum_of_threads(pid, "status", "voluntary_ctxt_switches:");
        idle->cpu_ns += sign * sum_of_threads(pid, "schedstat", "");
    }
}

static bool has_inotify(pid_t pid)
{
    char path[512], target[64];
    bool found = false;
    struct dirent *fd;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    if (!fds)
        die("%s is not there", path);
    while ((fd = readdir(fds)) != NULL) {
        ssize_t n = readlinkat(dirfd(fds), fd->d_name, target, sizeof(target) - 1);
        if (n > 0)
            target[n] = '\0';
        found = found || (n > 0 && strstr(target, "inotify"));
    }
    closedir(fds);
    return found;
}

/* ---- the process that arranges it */

static void await(sem_t *ready, const char *what)
{
    if (!semaphore_wait_for(ready, PATIENCE_S))
        die("%s", what);
}

/* Checks that the processes that wait look for deaths, and that the others do not. */
static void await_looking(pid_t pid, bool looks)
{
    int64_t until = now_ns() + PATIENCE_S * NS_PER_S;
    while (has_inotify(pid) != looks) {
        if (now_ns() > until)
            die(looks ? "one that waits does not look for deaths"
                      : "one that is idle looks for deaths still");
        sleep_ms(LOOK_MS);
    }
}

static pid_t start_holder(const char *name, sem_t *ready)
{
    pid_t pid = process_fork();
    if (pid == 0)
        hold_on(name, ready);
    await(ready, "the holder did not get the lock");
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    process_reap(pid);
}

/* Starts and ends other processes until then. Returns how many. */
static unsigned let_others_come_and_go(int64_t until)
{
    unsigned others = 0;
    char name[64];

    while (now_ns() < until) {
        snprintf(name, sizeof(name), HELD_NAME "-%u", others);
        bool dies = others++ % 2 == 0;
        pid_t pid = process_fork();
        if (pid == 0)
            come_and_go(name, dies);
        int status = process_reap(pid);
        if (dies ? !WIFSIGNALED(status) : status != 0)
            die("one of the others failed");
        sleep_ms(PAUSE_MS);
    }
    return others;
}

static void start(struct idle *idle, sem_t *ready)
{
    for (size_t i = 0; i < EACH; i++) {
        idle->pids[i] = process_fork();
        if (idle->pids[i] == 0)
            idle_away(idle, ready);
        await(ready, "one that is to be idle did not start");
    }
}

static void print(FILE *table, const struct idle *idle, bool first)
{
    fprintf(table, "%-22s %-18s %9.2f %9.0f  %s\n", first ? "idle, per process" : "",
            idle->label, idle->switches / EACH, idle->cpu_ns / 1e3 / EACH,
            idle->target ? idle->target : "");
}

void run_guard_idle(FILE *table, bool quick)
{
    static struct idle idle[] = {
        { .label = "guard off" },
        { .label = "guard on", .guard = true, .target = "as off" },
        { .label = "off, has waited", .has_waited = true },
        { .label = "on, has waited",
          .guard = true,
          .has_waited = true,
          .target = "as off" },
        { .label = "off, waits", .waits = true },
        { .label = "on, waits", .guard = true, .waits = true },
    };
    const size_t count_of_idle = sizeof(idle) / sizeof(idle[0]);
    int seconds = quick ? QUICK_SECONDS : SECONDS;
    sem_t *ready = memory_shared(sizeof(*ready));

    if (!guard_is_possible(table, "guard_idle"))
        return;
    sem_init(ready, 1, 0);
    pid_t holder = start_holder(HELD_NAME, ready);
    for (size_t i = 0; i < count_of_idle; i++)
        start(&idle[i], ready);
    for (size_t i = 0; i < count_of_idle * EACH; i++)
        await_looking(idle[i / EACH].pids[i % EACH],
                      idle[i / EACH].waits && idle[i / EACH].guard);
    for (size_t i = 0; i < count_of_idle; i++)
        count(&idle[i], -1);
    unsigned others = let_others_come_and_go(now_ns() + seconds * NS_PER_S);
    for (size_t i = 0; i < count_of_idle; i++)
        count(&idle[i], 1);
    fprintf(table,
            "\nidle for %d s, while %u others opened a client in the directory and "
            "every second one was killed\n%-22s %-18s %9s %9s  %s\n",
            seconds, others, "scenario", "of", "wake-ups", "cpu us", "target");
    for (size_t i = 0; i < count_of_idle; i++) {
        print(table, &idle[i], i == 0);
        for (size_t j = 0; j < EACH; j++)
            end(idle[i].pids[j]);
    }
    end(holder);
    fflush(table);
}
