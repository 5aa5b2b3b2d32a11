/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: of a free lock and of one that another thread holds, with both clocks, in
 * the past, and with an invalid time. */
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

static void try_mutex(void)
{
    struct timespec soon = in_ms(CLOCK_REALTIME, 100), past = { 1, 0 }, none = { 1, -1 };
    struct timespec mono = in_ms(CLOCK_MONOTONIC, 100), many = { 1, 1000000000 };
    say_mutex("trylock", pthread_mutex_trylock(&m));
    say_mutex("timedlock", pthread_mutex_timedlock(&m, &soon));
    say_mutex("timedlock, past", pthread_mutex_timedlock(&m, &past));
    say_mutex("timedlock, -1 ns", pthread_mutex_timedlock(&m, &none));
    say_mutex("timedlock, 1e9 ns", pthread_mutex_timedlock(&m, &many));
    say_mutex("clocklock", pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &mono));
    soon = in_ms(CLOCK_REALTIME, 100);
    say_mutex("clocklock, real time", pthread_mutex_clocklock(&m, CLOCK_REALTIME, &soon));
    say_mutex("clocklock, other clock",
              pthread_mutex_clocklock(&m, CLOCK_PROCESS_CPUTIME_ID, &soon));
}

/* The writer waits last: over a network its request may be withdrawn up to 100 ms after
 * its deadline, and readers that come later wait behind it until then. */
static void try_rwlock(void)
{
    struct timespec past = { 1, 0 }, at = in_ms(CLOCK_REALTIME, 100);
    say_rwlock("tryrdlock", pthread_rwlock_tryrdlock(&l));
    say_rwlock("trywrlock", pthread_rwlock_trywrlock(&l));
    say_rwlock("timedrdlock", pthread_rwlock_timedrdlock(&l, &at));
    say_rwlock("timedrdlock, past", pthread_rwlock_timedrdlock(&l, &past));
    say_rwlock("timedwrlock, past", pthread_rwlock_timedwrlock(&l, &past));
    at = in_ms(CLOCK_MONOTONIC, 100);
    say_rwlock("clockrdlock", pthread_rwlock_clockrdlock(&l, CLOCK_MONOTONIC, &at));
    at = in_ms(CLOCK_REALTIME, 100);
    say_rwlock("timedwrlock", pthread_rwlock_timedwrlock(&l, &at));
    at = in_ms(CLOCK_MONOTONIC, 100);
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
