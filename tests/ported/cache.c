/* SPDX-License-Identifier: Apache-2.0 */
/* A cache that many threads read and some write, for every kind of read-write lock, and a
 * cache in memory that two processes share. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 3, WRITERS = 2, READS = 20, WRITES = 5, ENTRIES = 8 };

struct cache {
    pthread_rwlock_t lock;
    long version, entry[ENTRIES];
};

static struct cache *cache;
static atomic_long torn;

static void must(int rc)
{
    if (rc != 0)
        abort();
}

static struct timespec in_a_minute(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    at.tv_sec += 60;
    return at;
}

/* Uses all ways to lock in turn: they have the same effect. */
static void take_to_read(int i)
{
    struct timespec real = in_a_minute(CLOCK_REALTIME);
    struct timespec mono = in_a_minute(CLOCK_MONOTONIC);
    if (i % 4 == 0 && pthread_rwlock_tryrdlock(&cache->lock) == 0)
        return;
    if (i % 4 == 1)
        must(pthread_rwlock_timedrdlock(&cache->lock, &real));
    else if (i % 4 == 2)
        must(pthread_rwlock_clockrdlock(&cache->lock, CLOCK_MONOTONIC, &mono));
    else
        must(pthread_rwlock_rdlock(&cache->lock));
}

static void take_to_write(int i)
{
    struct timespec real = in_a_minute(CLOCK_REALTIME);
    struct timespec mono = in_a_minute(CLOCK_MONOTONIC);
    if (i % 4 == 0 && pthread_rwlock_trywrlock(&cache->lock) == 0)
        return;
    if (i % 4 == 1)
        must(pthread_rwlock_timedwrlock(&cache->lock, &real));
    else if (i % 4 == 2)
        must(pthread_rwlock_clockwrlock(&cache->lock, CLOCK_MONOTONIC, &mono));
    else
        must(pthread_rwlock_wrlock(&cache->lock));
}

static void *reader(void *arg)
{
    (void)arg;
    for (int i = 0; i < READS; i++) {
        take_to_read(i);
        for (int n = 0; n < ENTRIES; n++)
            if (cache->entry[n] != cache->version)
                atomic_fetch_add(&torn, 1);
        must(pthread_rwlock_unlock(&cache->lock));
    }
    return NULL;
}

static void *writer(void *arg)
{
    (void)arg;
    for (int i = 0; i < WRITES; i++) {
        take_to_write(i);
        cache->version++;
        for (int n = 0; n < ENTRIES; n++)
            cache->entry[n]++;
        must(pthread_rwlock_unlock(&cache->lock));
    }
    return NULL;
}

/* As in other people's code: a macro, and a blank before the arguments. */
#define LOCK_OF(c) ((c)->lock)

static void begin(int kind, int pshared)
{
    pthread_rwlockattr_t attr;
    int got = -1, got_pshared = -1;

    must(pthread_rwlockattr_init(&attr));
    must(pthread_rwlockattr_setkind_np(&attr, kind));
    must(pthread_rwlockattr_getkind_np(&attr, &got));
    must(pthread_rwlockattr_setpshared(&attr, pshared));
    must(pthread_rwlockattr_getpshared(&attr, &got_pshared));
    printf("kind %d, shared %d\n", got, got_pshared);
    must(pthread_rwlock_init(&LOCK_OF((cache)), &attr)); /* clang-format off */
    must(pthread_rwlockattr_destroy(&attr));
    cache->version = 0;
    memset(cache->entry, 0, sizeof(cache->entry));
}

static void end(void)
{
    printf("version %ld, torn %ld\n", cache->version, atomic_load(&torn));
    must(pthread_rwlock_destroy(&cache->lock));
}

static void processes(void)
{
    int status = 0;

    begin(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, PTHREAD_PROCESS_SHARED);
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        writer(NULL);
        reader(NULL);
        _exit(atomic_load(&torn) == 0 ? 0 : 1);
    }
    writer(NULL);
    reader(NULL);
    waitpid(pid, &status, 0);
    printf("the other process: %d\n", status);
    end();
}

static void threads(int kind)
{
    pthread_t thread[READERS + WRITERS];

    begin(kind, PTHREAD_PROCESS_PRIVATE);
    for (int i = 0; i < READERS + WRITERS; i++)
        must(pthread_create(&thread[i], NULL, i < READERS ? reader : writer, NULL));
    for (int i = 0; i < READERS + WRITERS; i++)
        must(pthread_join(thread[i], NULL));
    end();
}

int main(void)
{
    cache = mmap(NULL, sizeof(*cache), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (cache == MAP_FAILED)
        abort();
    processes();
    threads(PTHREAD_RWLOCK_PREFER_READER_NP);
    threads(PTHREAD_RWLOCK_PREFER_WRITER_NP);
    threads(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    threads(PTHREAD_RWLOCK_DEFAULT_NP);
    return 0;
}
