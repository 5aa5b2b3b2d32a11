/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job queue between processes, with room for a few jobs. Producers wait while it is
 * full, workers while it is empty: conditions on an rlock mutex. Any of them may be
 * killed at any point. The queue is a file; here it is mapped by processes of one host,
 * but the lock and the conditions would work between hosts, too.
 *
 *     11_job_queue
 *
 * Two producers make jobs, three workers do them, and the master kills a worker now and
 * then, and starts another one. What a killed worker had taken is put back. A signal that
 * went to a killed worker wakes another one: no job is left lying there.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when a job is not done.
 */
#include <rlock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROOM = 4,
    PRODUCERS = 2,
    WORKERS = 3,
    JOBS = 60, /* of each producer */
    ALL = PRODUCERS * JOBS,
    KILLS = 4,
    LEASE_MS = 1000, /* how long the mutex outlives its holder */
    WORK_NS = 2000000
};

struct job {
    enum { NONE, READY, TAKEN, DONE } state;
    pid_t worker; /* TAKEN */
};

static struct queue {
    struct job job[ALL]; /* the job of number i */
    int in_queue;        /* READY */
    int done;
} * queue;

static rlock_mutex_t lock;
static rlock_cond_t filled, emptied; /* a job is ready; there is room */
static rlock_cond_t progress;        /* a job is done */

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

/* What follows from the states of the jobs. */
static void repair(void)
{
    queue->in_queue = queue->done = 0;
    for (int i = 0; i < ALL; i++) {
        queue->in_queue += queue->job[i].state == READY;
        queue->done += queue->job[i].state == DONE;
    }
}

/* After a lock or a wait: the process that held the mutex before may have died inside. */
static void look_after(int rc, const char *what)
{
    if (rc == EOWNERDEAD) {
        repair();
        rc = rlock_mutex_consistent(&lock);
    }
    must(rc, what);
}

static void enter(void)
{
    look_after(rlock_mutex_lock(&lock), "lock");
}

static void leave(void)
{
    must(rlock_mutex_unlock(&lock), "unlock");
}

static void wait_for(rlock_cond_t *cond)
{
    look_after(rlock_cond_wait(cond, &lock), "wait");
}

/* ---- the parties */

static void produce(int first)
{
    for (int i = first; i < first + JOBS; i++) {
        enter();
        while (queue->in_queue >= ROOM)
            wait_for(&emptied);
        queue->job[i].state = READY;
        queue->in_queue++;
        must(rlock_cond_signal(&filled), "signal");
        leave();
    }
}

/* The number of a job that this worker takes; -1: all are done. */
static int take(void)
{
    int i = 0;

    enter();
    while (queue->in_queue == 0 && queue->done < ALL)
        wait_for(&filled);
    while (i < ALL && queue->job[i].state != READY)
        i++;
    if (i < ALL) {
        queue->job[i].worker = getpid();
        queue->job[i].state = TAKEN;
        queue->in_queue--;
        must(rlock_cond_signal(&emptied), "signal");
    }
    leave();
    return i < ALL ? i : -1;
}

static void finish(int i)
{
    enter();
    queue->job[i].state = DONE;
    queue->done++;
    must(rlock_cond_signal(&progress), "signal");
    if (queue->done == ALL)
        must(rlock_cond_broadcast(&filled), "broadcast");
    leave();
}

static void work(int unused)
{
    int i;

    (void)unused;
    while ((i = take()) >= 0) {
        nanosleep(&(struct timespec){ .tv_nsec = WORK_NS }, NULL);
        finish(i);
    }
}

static pid_t start(void (*run)(int), int argument)
{
    pid_t pid = fork();

    if (pid == 0) {
        run(argument);
        exit(0);
    }
    must(pid < 0 ? EAGAIN : 0, "fork");
    return pid;
}

/* ---- the master */

/* What the dead worker had taken is to be done by another one. */
static void put_back(pid_t worker)
{
    enter();
    for (int i = 0; i < ALL; i++) {
        if (queue->job[i].state == TAKEN && queue->job[i].worker == worker) {
            queue->job[i].state = READY;
            queue->in_queue++;
            must(rlock_cond_signal(&filled), "signal");
        }
    }
    leave();
}

/* Kills a worker whenever another part of the jobs is done. */
static void kill_some(pid_t worker[WORKERS])
{
    for (int kills = 1; kills <= KILLS; kills++) {
        enter();
        while (queue->done < ALL * kills / (KILLS + 1))
            wait_for(&progress);
        leave();
        pid_t victim = worker[kills % WORKERS];
        kill(victim, SIGKILL);
        waitpid(victim, NULL, 0);
        put_back(victim);
        worker[kills % WORKERS] = start(work, 0);
    }
}

static void make_handles(void)
{
    rlock_mutexattr_t attr;
    char name[64];

    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setlease(&attr, LEASE_MS);
    rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST);
    snprintf(name, sizeof(name), "jobs/%d", (int)getpid());
    must(rlock_mutex_init(&lock, &attr, name), "mutex");
    rlock_mutexattr_destroy(&attr);
    must(rlock_cond_init(&filled, NULL, name), "condition");
    must(rlock_cond_init(&emptied, NULL, NULL), "condition"); /* inherited over fork */
    must(rlock_cond_init(&progress, NULL, NULL), "condition");
}

int main(void)
{
    pid_t worker[WORKERS];
    int status, failed = 0;

    queue = mmap(NULL, sizeof(*queue), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    must(queue == MAP_FAILED ? ENOMEM : 0, "mmap");
    make_handles();
    for (int i = 0; i < WORKERS; i++)
        worker[i] = start(work, 0);
    for (int i = 0; i < PRODUCERS; i++)
        start(produce, i * JOBS);
    kill_some(worker);
    while (wait(&status) > 0)
        failed |= status;
    printf("%d of %d jobs done, %d workers killed\n", queue->done, ALL, KILLS);
    return failed == 0 && queue->done == ALL ? 0 : 1;
}
