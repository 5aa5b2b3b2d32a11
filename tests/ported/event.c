/* SPDX-License-Identifier: Apache-2.0 */
/* Processes wait for events of one another: each event has a count in shared memory, a
 * waiter names the count that it has seen, and all are woken when the count grows. Waits
 * have deadlines. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    WAITERS = 4,
    EVENTS = 10,
    LONG_S = 60,
    SHORT_NS = 20000000,
    NS_PER_S = 1000000000
};

struct event {
    pthread_mutex_t lock;
    pthread_cond_t changed, seen;
    int count, waiting;
};

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static struct timespec in(clockid_t clock, long s, long ns)
{
    struct timespec at;

    clock_gettime(clock, &at);
    at.tv_sec += s;
    at.tv_nsec += ns;
    if (at.tv_nsec >= NS_PER_S) {
        at.tv_nsec -= NS_PER_S;
        at.tv_sec++;
    }
    return at;
}

/* Waits until the count is greater than `seen`; returns it. */
static int await(struct event *e, int seen)
{
    struct timespec at = in(CLOCK_MONOTONIC, LONG_S, 0);

    must(pthread_mutex_lock(&e->lock));
    e->waiting++;
    must(pthread_cond_signal(&e->seen));
    while (e->count <= seen)
        must(pthread_cond_timedwait(&e->changed, &e->lock, &at));
    int count = e->count;
    must(pthread_mutex_unlock(&e->lock));
    return count;
}

/* Waits until all wait, then raises the count. */
static void raise_count(struct event *e)
{
    struct timespec at = in(CLOCK_REALTIME, LONG_S, 0);

    must(pthread_mutex_lock(&e->lock));
    while (e->waiting < WAITERS)
        must(pthread_cond_clockwait(&e->seen, &e->lock, CLOCK_REALTIME, &at));
    e->waiting = 0;
    e->count++;
    must(pthread_cond_broadcast(&e->changed));
    must(pthread_mutex_unlock(&e->lock));
}

static int follow(struct event *e)
{
    int seen = 0, in_order = 1;

    while (seen < EVENTS) {
        int count = await(e, seen);
        in_order &= count == seen + 1;
        seen = count;
    }
    return in_order;
}

static void make(struct event *e)
{
    pthread_mutexattr_t mutexattr;
    pthread_condattr_t condattr;
    clockid_t clock = CLOCK_REALTIME;

    must(pthread_mutexattr_init(&mutexattr));
    must(pthread_mutexattr_setpshared(&mutexattr, PTHREAD_PROCESS_SHARED));
    must(pthread_mutex_init(&e->lock, &mutexattr));
    must(pthread_mutexattr_destroy(&mutexattr));
    must(pthread_condattr_init(&condattr));
    must(pthread_condattr_setpshared(&condattr, PTHREAD_PROCESS_SHARED));
    must(pthread_cond_init(&e->seen, &condattr));
    must(pthread_condattr_setclock(&condattr, CLOCK_MONOTONIC));
    must(pthread_condattr_getclock(&condattr, &clock));
    printf("monotonic: %d\n", clock == CLOCK_MONOTONIC);
    must(pthread_cond_init(&e->changed, &condattr));
    must(pthread_condattr_destroy(&condattr));
}

static void time_out(struct event *e)
{
    struct timespec soon = in(CLOCK_MONOTONIC, 0, SHORT_NS), past = { .tv_sec = 1 };

    must(pthread_mutex_lock(&e->lock));
    printf("timed out: %d\n",
           pthread_cond_timedwait(&e->changed, &e->lock, &soon) == ETIMEDOUT);
    printf("in the past: %d\n",
           pthread_cond_clockwait(&e->changed, &e->lock, CLOCK_REALTIME, &past) ==
               ETIMEDOUT);
    past.tv_nsec = NS_PER_S;
    printf("no time: %d\n",
           pthread_cond_timedwait(&e->changed, &e->lock, &past) == EINVAL);
    must(pthread_mutex_unlock(&e->lock));
    fflush(stdout);
}

int main(void)
{
    int status, in_order = 1;
    struct event *e =
        mmap(NULL, sizeof(*e), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (e == MAP_FAILED)
        abort();
    make(e);
    time_out(e);
    for (int i = 0; i < WAITERS; i++) {
        pid_t pid = fork();
        if (pid < 0)
            abort();
        if (pid == 0)
            _exit(follow(e));
    }
    for (int i = 0; i < EVENTS; i++)
        raise_count(e);
    while (wait(&status) > 0)
        in_order &= WIFEXITED(status) && WEXITSTATUS(status) == 1;
    printf("%d events, in order: %d\n", e->count, in_order);
    must(pthread_cond_destroy(&e->changed));
    must(pthread_cond_destroy(&e->seen));
    must(pthread_mutex_destroy(&e->lock));
    return 0;
}
