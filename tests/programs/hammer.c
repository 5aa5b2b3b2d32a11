/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that wants one lock all the time and checks that it is alone in it:
 *
 *   hammer URL NAME THREADS ROUNDS FILE LEASE_MS [fair|rwlock]
 *
 * The lock is a mutex, a fair lock, or a read-write lock that is taken to write. Each of
 * the threads takes it ROUNDS times. In the critical section a thread reads two counters
 * in FILE (struct page, then one word for each section), yields, and writes them back one
 * after the other: a second holder would make them differ. It stores its fencing token at
 * the place that the counter names, so that the order of tokens can be compared with the
 * order of holders. The mark AT_INSIDE is the pid of the holder, also after it was
 * killed.
 *
 * Prints one line: "sections N overlaps N torn N lost N failed N". Uses <rlock.h> only.
 */
#include <rlock.h>

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS_MAX = 64, PAGE_SIZE = 4096, ARGUMENTS = 7 };

/* Offsets in FILE. */
enum { AT_FIRST = 0, AT_INSIDE = 1024, AT_SECOND = 3072, AT_TOKENS = PAGE_SIZE };

static struct {
    enum { MUTEX, FAIR, RWLOCK } kind;
    union {
        rlock_mutex_t mutex;
        rlock_fair_t fair;
        rlock_rwlock_t rwlock;
    } lock;
    long rounds;
    int fd;
    atomic_long sections, overlaps, torn, lost, failed;
} h;

static int take(void)
{
    return h.kind == RWLOCK ? rlock_rwlock_wrlock(&h.lock.rwlock)
           : h.kind == FAIR ? rlock_fair_lock(&h.lock.fair)
                            : rlock_mutex_lock(&h.lock.mutex);
}

static int give_back(void)
{
    return h.kind == RWLOCK ? rlock_rwlock_unlock(&h.lock.rwlock)
           : h.kind == FAIR ? rlock_fair_unlock(&h.lock.fair)
                            : rlock_mutex_unlock(&h.lock.mutex);
}

static int get_token(uint64_t *ret_token)
{
    return h.kind == RWLOCK ? rlock_rwlock_gettoken(&h.lock.rwlock, ret_token)
           : h.kind == FAIR ? rlock_fair_gettoken(&h.lock.fair, ret_token)
                            : rlock_mutex_gettoken(&h.lock.mutex, ret_token);
}

static uint64_t load(off_t at)
{
    uint64_t value = 0;
    if (pread(h.fd, &value, sizeof(value), at) < 0)
        abort();
    return value;
}

static void store(off_t at, uint64_t value)
{
    if (pwrite(h.fd, &value, sizeof(value), at) != (ssize_t)sizeof(value))
        abort();
}

/* Whether the process marked as inside is alive, and so shares the lock with the calling
 * one. A process without memory is dead, even if it can still be waited for. */
static bool is_alive(uint64_t pid)
{
    char path[64];
    unsigned long pages = 0;

    snprintf(path, sizeof(path), "/proc/%" PRIu64 "/statm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%lu", &pages) != 1)
        pages = 0;
    fclose(file);
    return pages > 0;
}

static void critical_section(void)
{
    uint64_t inside = load(AT_INSIDE), first = load(AT_FIRST), second = load(AT_SECOND);
    bool left_behind = inside != 0 && !is_alive(inside);
    uint64_t token = 0;

    if (inside != 0 && !left_behind)
        atomic_fetch_add(&h.overlaps, 1);
    store(AT_INSIDE, (uint64_t)getpid());
    if (first != second && !left_behind)
        atomic_fetch_add(&h.torn, 1);
    if (get_token(&token) != 0)
        atomic_fetch_add(&h.failed, 1);
    sched_yield();
    /* before the counter changes: if this process is killed in between, the next holder
     * overwrites the token */
    store(AT_TOKENS + (off_t)(first * sizeof(token)), token);
    store(AT_FIRST, first + 1);
    sched_yield();
    store(AT_SECOND, first + 1);
    store(AT_INSIDE, 0);
    atomic_fetch_add(&h.sections, 1);
}

static void *run(void *arg)
{
    (void)arg;
    for (long i = 0; i < h.rounds; i++) {
        if (take() != 0) {
            atomic_fetch_add(&h.failed, 1);
            break;
        }
        critical_section();
        int rc = give_back();
        if (rc != 0)
            atomic_fetch_add(rc == ESTALE ? &h.lost : &h.failed, 1);
    }
    return NULL;
}

static int init_exclusive(rlock_client_t *client, const char *name, long lease_ms)
{
    rlock_mutexattr_t attr;
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutexattr_setlease(&attr, lease_ms);
    if (rc == 0)
        rc = rlock_mutexattr_setfencing(&attr, 1);
    if (rc == 0)
        rc = h.kind == FAIR ? rlock_fair_init(&h.lock.fair, &attr, name)
                            : rlock_mutex_init(&h.lock.mutex, &attr, name);
    return rc;
}

static int init_rwlock(rlock_client_t *client, const char *name, long lease_ms)
{
    rlock_rwlockattr_t attr;
    int rc = rlock_rwlockattr_init(&attr);
    if (rc == 0)
        rc = rlock_rwlockattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_rwlockattr_setlease(&attr, lease_ms);
    if (rc == 0)
        rc = rlock_rwlockattr_setfencing(&attr, 1);
    if (rc == 0)
        rc = rlock_rwlock_init(&h.lock.rwlock, &attr, name);
    return rc;
}

static void open_lock(const char *url, const char *name, long lease_ms)
{
    rlock_client_t *client = NULL;
    int rc = rlock_client_open(&client, url, NULL);
    if (rc == 0)
        rc = h.kind == RWLOCK ? init_rwlock(client, name, lease_ms)
                              : init_exclusive(client, name, lease_ms);
    if (rc != 0) {
        fprintf(stderr, "hammer: %s\n", rlock_errmsg());
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MAX];
    if (argc == ARGUMENTS + 1 && strcmp(argv[ARGUMENTS], "fair") == 0)
        h.kind = FAIR;
    else if (argc == ARGUMENTS + 1 && strcmp(argv[ARGUMENTS], "rwlock") == 0)
        h.kind = RWLOCK;
    else if (argc != ARGUMENTS)
        return EXIT_FAILURE;
    long count = strtol(argv[3], NULL, 10);
    h.rounds = strtol(argv[4], NULL, 10);
    h.fd = open(argv[5], O_RDWR | O_CLOEXEC);
    if (h.fd < 0 || count < 1 || count > THREADS_MAX)
        return EXIT_FAILURE;
    open_lock(argv[1], argv[2], strtol(argv[6], NULL, 10));
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, NULL) != 0)
            return EXIT_FAILURE;
    for (long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("sections %ld overlaps %ld torn %ld lost %ld failed %ld\n",
           atomic_load(&h.sections), atomic_load(&h.overlaps), atomic_load(&h.torn),
           atomic_load(&h.lost), atomic_load(&h.failed));
    return EXIT_SUCCESS;
}
