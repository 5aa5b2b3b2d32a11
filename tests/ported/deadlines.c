/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: of a free lock and of one that another thread holds, with both clocks, in
 * the past, and with an invalid time. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
static sem_t asked, answered;
enum { NOTHING, MUTEX, READS, WRITES, END };
static int wanted;

/* Holds the locks while the main thread needs them held. */
static void *holder(void *arg)
{
    int has = NOTHING, rc = 0;
    (void)arg;
    while (has != END) {
        sem_wait(&asked);
        if (has == MUTEX)
            rc |= pthread_mutex_unlock(&m);
        else if (has != NOTHING)
            rc |= pthread_rwlock_unlock(&l);
        has = wanted;
        if (has == MUTEX)
            rc |= pthread_mutex_lock(&m);
        else if (has == READS)
            rc |= pthread_rwlock_rdlock(&l);
        else if (has == WRITES)
            rc |= pthread_rwlock_wrlock(&l);
        if (rc != 0)
            abort();
        sem_post(&answered);
    }
    return NULL;
}

static void hold(const char *what, int which)
{
    wanted = which;
    sem_post(&asked);
    sem_wait(&answered);
    printf("%s\n", what);
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Prints the result, and releases the lock if the call got it. */
static void say_mutex(const char *what, int rc)
{
    printf("  %s: %s\n", what, strerror(rc));
    if (rc == 0)
        pthread_mutex_unlock(&m);
}

static void say_rwlock(const char *what, int rc)
{
    printf("  %s: %s\n", what, strerror(rc));
    if (rc == 0)
        pthread_rwlock_unlock(&l);
}

/* How far the deadlines lie ahead: of calls that must wait in vain, and of those that get
 * the lock. */
enum { IN_VAIN_MS = 100, IN_TIME_MS = 10000 };

/* Over a network the request of a call behind its deadline has 100 ms. On a machine that
 * stands still for longer the call ends with ETIMEDOUT although the lock is free: it may
 * try as often as this. */
enum { PAST_TRIES = 10 };

/* Sets rc to the result of a call behind its deadline. */
#define TRY_PAST(rc, call)                                                               \
    do {                                                                                 \
        int tries = PAST_TRIES;                                                          \
        do                                                                               \
            (rc) = (call);                                                               \
        while ((rc) == ETIMEDOUT && --tries > 0);                                        \
    } while (0)

static void try_mutex(void)
{
    long ms = wanted == NOTHING ? IN_TIME_MS : IN_VAIN_MS;
    struct timespec at, past = { 1, 0 }, none = { 1, -1 }, many = { 1, 1000000000 };
    int rc;

    say_mutex("trylock", pthread_mutex_trylock(&m));
    at = in_ms(CLOCK_REALTIME, ms);
    say_mutex("timedlock", pthread_mutex_timedlock(&m, &at));
    TRY_PAST(rc, pthread_mutex_timedlock(&m, &past));
    say_mutex("timedlock, past", rc);
    say_mutex("timedlock, -1 ns", pthread_mutex_timedlock(&m, &none));
    say_mutex("timedlock, 1e9 ns", pthread_mutex_timedlock(&m, &many));
    at = in_ms(CLOCK_MONOTONIC, ms);
    say_mutex("clocklock", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &at));
    at = in_ms(CLOCK_REALTIME, ms);
    say_mutex("clocklock, real time", pthread_mutex_clocklock(&m, CLOCK_REALTIME, &at));
    say_mutex("clocklock, other clock",
              pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &at));
}

/* The writer waits last: over a network its request may be withdrawn up to 100 ms after
 * its deadline, and readers that come later wait behind it until then. */
static void try_rwlock(void)
{
    long read_ms = wanted == WRITES ? IN_VAIN_MS : IN_TIME_MS;
    long write_ms = wanted == NOTHING ? IN_TIME_MS : IN_VAIN_MS;
    struct timespec at, past = { 1, 0 };
    int rc;

    say_rwlock("tryrdlock", pthread_rwlock_tryrdlock(&l));
    say_rwlock("trywrlock", pthread_rwlock_trywrlock(&l));
    at = in_ms(CLOCK_REALTIME, read_ms);
    say_rwlock("timedrdlock", pthread_rwlock_timedrdlock(&l, &at));
    TRY_PAST(rc, pthread_rwlock_timedrdlock(&l, &past));
    say_rwlock("timedrdlock, past", rc);
    TRY_PAST(rc, pthread_rwlock_timedwrlock(&l, &past));
    say_rwlock("timedwrlock, past", rc);
    at = in_ms(CLOCK_MONOTONIC, read_ms);
    say_rwlock("clockrdlock", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &at));
    at = in_ms(CLOCK_REALTIME, write_ms);
    say_rwlock("timedwrlock", pthread_rwlock_timedwrlock(&l, &at));
    at = in_ms(CLOCK_MONOTONIC, write_ms);
    say_rwlock("clockwrlock", pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &at));
    say_rwlock("clockrdlock, other clock",
               pthread_rwlock_clockrdlock(&l, CLOCK_PROCESS_CPUTIME_ID, &at));
    say_rwlock("clockwrlock, other clock",
               pthread_rwlock_clockwrlock(&l, CLOCK_PROCESS_CPUTIME_ID, &at));
}

int main(void)
{
    struct timespec none = { 1, -1 };
    pthread_t thread;

    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    if (pthread_create(&thread, NULL, holder, NULL) != 0)
        abort();
    hold("free", NOTHING);
    try_mutex();
    try_rwlock();
    hold("held", MUTEX);
    try_mutex();
    hold("read", READS);
    try_rwlock();
    hold("written", WRITES);
    try_rwlock();
    say_rwlock("timedrdlock, -1 ns", pthread_rwlock_timedrdlock(&l, &none));
    say_rwlock("timedwrlock, -1 ns", pthread_rwlock_timedwrlock(&l, &none));
    hold("end", END);
    pthread_join(thread, NULL);
    return 0;
}
