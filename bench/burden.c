/* SPDX-License-Identifier: Apache-2.0 */
/* See burden.h. Each burden is measured in a process of its own, so that the heap has
 * nothing else in it; names have 32 bytes, as in the project's targets. The handles are
 * the program's memory and lie outside of that heap. */
#include "burden.h"

#include "bench.h"
#include "process.h"
#include "redis.h"

#include <malloc.h>
#include <pthread.h>
#include <rlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    NAME_LEN = 32,
    HELD = 100000,
    HELD_S = 300,
    HELD_QUICK_S = 45, /* four renewals of each */
    LOOK_MS = 100,
    MEMORY_HELD = 10000,
    MEMORY_WAITERS = 1000,
    MEMORY_CLIENTS = 50,
    STACK_SIZE = 128 * 1024
};

#define SLOW_US "1000" /* a slower script is in the server's log of slow commands */

static void check(int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s", what, rlock_errmsg());
}

static void print(FILE *table, const char *label, double value, int digits,
                  const char *unit, const char *target)
{
    fprintf(table, "%-52s %12.*f %-14s %s\n", label, digits, value, unit, target);
    fflush(table);
}

static size_t heap_used(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static double server_number(redisContext *conn, const char *section, const char *field)
{
    char text[64];
    redis_info(conn, section, field, text, sizeof(text));
    return strtod(text, NULL);
}

static double server_memory(redisContext *conn)
{
    return server_number(conn, "memory", "used_memory");
}

static double server_cpu_s(redisContext *conn)
{
    return server_number(conn, "cpu", "used_cpu_sys") +
           server_number(conn, "cpu", "used_cpu_user");
}

static double own_cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* `count` handles, held by the calling thread. */
static rlock_mutex_t *hold(size_t count)
{
    rlock_mutex_t *mutexes = memory_shared(count * sizeof(*mutexes));
    char name[NAME_LEN + 1];

    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "order-%0*zu", NAME_LEN - 6, i);
        check(rlock_mutex_init(&mutexes[i], NULL, name), "rlock_mutex_init");
        check(rlock_mutex_lock(&mutexes[i]), "rlock_mutex_lock");
    }
    return mutexes;
}

/* The newest first, which the thread finds soonest. */
static void give_back(rlock_mutex_t *mutexes, size_t count)
{
    while (count-- > 0)
        check(rlock_mutex_unlock(&mutexes[count]), "rlock_mutex_unlock");
}

/* ---- the renewal of many */

static uint64_t renewals(uint64_t *losses)
{
    rlock_stats_t stats;
    check(rlock_client_getstats(NULL, &stats), "rlock_client_getstats");
    *losses = stats.losses;
    return stats.renewals;
}

/* The longest script in the server's log of slow commands, in ms; 0: none was slow. */
static double slowest_ms(redisContext *conn)
{
    double slowest = 0;
    redisReply *log =
        redis_words(conn, (const char *const[]){ "SLOWLOG", "GET", "1000", NULL });
    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        if (entry->elements > 3 && entry->element[3]->elements > 0 &&
            strncmp(entry->element[3]->element[0]->str, "EVAL", 4) == 0 &&
            (double)entry->element[2]->integer / 1e3 > slowest)
            slowest = (double)entry->element[2]->integer / 1e3;
    }
    freeReplyObject(log);
    return slowest;
}

/* Of the server's configuration: what it is, what it is to be. */
static void config_get(redisContext *conn, const char *name, char *buf, size_t size)
{
    redisReply *reply =
        redis_words(conn, (const char *const[]){ "CONFIG", "GET", name, NULL });
    if (reply->elements != 2)
        die("the server has no %s", name);
    snprintf(buf, size, "%s", reply->element[1]->str);
    freeReplyObject(reply);
}

static void config_set(redisContext *conn, const char *name, const char *value)
{
    freeReplyObject(
        redis_words(conn, (const char *const[]){ "CONFIG", "SET", name, value, NULL }));
}

static void run_held(FILE *table, bool quick)
{
    redisContext *conn = redis_open();
    int seconds = quick ? HELD_QUICK_S : HELD_S;
    uint64_t losses, first, before, most = 0;
    char slow_us[32], slow_kept[32];

    int64_t start = now_ns();
    rlock_mutex_t *mutexes = hold(HELD);
    double taking = (double)(now_ns() - start) / (double)NS_PER_S;
    config_get(conn, "slowlog-log-slower-than", slow_us, sizeof(slow_us));
    config_get(conn, "slowlog-max-len", slow_kept, sizeof(slow_kept));
    config_set(conn, "slowlog-log-slower-than", SLOW_US);
    config_set(conn, "slowlog-max-len", "1000");
    freeReplyObject(redis_words(conn, (const char *const[]){ "SLOWLOG", "RESET", NULL }));
    double client = own_cpu_s(), server = server_cpu_s(conn);
    first = before = renewals(&losses);
    start = now_ns();
    while (now_ns() < start + seconds * NS_PER_S) {
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
        uint64_t now = renewals(&losses);
        if (now - before > most)
            most = now - before;
        before = now;
    }
    double elapsed = (double)(now_ns() - start) / (double)NS_PER_S;
    double mean = (double)(before - first) / elapsed * LOOK_MS / 1e3;
    client = (own_cpu_s() - client) / elapsed;
    server = (server_cpu_s(conn) - server) / elapsed;
    fprintf(table, "\n%d locks held for %d s by one process, lease 30 s\n", HELD,
            seconds);
    print(table, "taken in", taking, 1, "s", "");
    print(table, "leases lost", (double)losses, 0, "", "0");
    print(table, "renewals a second", (double)(before - first) / elapsed, 0, "", "");
    print(table, "CPU of the client", client * 100, 1, "% of a core", "< 10 %");
    print(table, "CPU of the server", server * 100, 1, "% of a core", "< 10 %");
    print(table, "longest script (0: below 1)", slowest_ms(conn), 2, "ms", "<= 5 ms");
    print(table, "most renewals in 100 ms, by the mean", (double)most / mean, 1, "",
          "spread");
    config_set(conn, "slowlog-log-slower-than", slow_us);
    config_set(conn, "slowlog-max-len", slow_kept);
    give_back(mutexes, HELD);
}

/* ---- memory */

struct crowd {
    rlock_fair_t fair;
    sem_t started, go;
};

/* Makes the C library allocate its memory for each thread before the first measurement.
 */
static void *wait_for_it(void *arg)
{
    struct crowd *crowd = arg;
    void *volatile block = malloc(1);
    free(block);
    sem_post(&crowd->started);
    semaphore_wait(&crowd->go);
    check(rlock_fair_lock(&crowd->fair), "rlock_fair_lock");
    check(rlock_fair_unlock(&crowd->fair), "rlock_fair_unlock");
    return NULL;
}

static void await_waiters(size_t count)
{
    rlock_stats_t stats;
    do {
        nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
        check(rlock_client_getstats(NULL, &stats), "rlock_client_getstats");
    } while (stats.waiters_now < count);
}

static void measure_waiters(FILE *table, redisContext *conn)
{
    static struct crowd crowd;
    static pthread_t threads[MEMORY_WAITERS];
    char name[NAME_LEN + 1];
    pthread_attr_t attr;

    snprintf(name, sizeof(name), "crowd-%0*d", NAME_LEN - 6, 0);
    check(rlock_fair_init(&crowd.fair, NULL, name), "rlock_fair_init");
    check(rlock_fair_lock(&crowd.fair), "rlock_fair_lock");
    sem_init(&crowd.started, 0, 0);
    sem_init(&crowd.go, 0, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    for (size_t i = 0; i < MEMORY_WAITERS; i++)
        if (pthread_create(&threads[i], &attr, wait_for_it, &crowd) != 0)
            die("no thread");
    for (size_t i = 0; i < MEMORY_WAITERS; i++)
        semaphore_wait(&crowd.started);
    size_t heap = heap_used();
    double server = server_memory(conn);
    for (size_t i = 0; i < MEMORY_WAITERS; i++) {
        sem_post(&crowd.go);
        await_waiters(i + 1); /* one after the other: connections are not counted */
    }
    print(table, "client's heap, per waiting thread",
          (double)(heap_used() - heap) / MEMORY_WAITERS, 0, "bytes", "<= 1024");
    print(table, "server's memory, per waiting thread (fair)",
          (server_memory(conn) - server) / MEMORY_WAITERS, 0, "bytes", "");
    check(rlock_fair_unlock(&crowd.fair), "rlock_fair_unlock");
    for (size_t i = 0; i < MEMORY_WAITERS; i++)
        pthread_join(threads[i], NULL);
}

static void run_memory(FILE *table, bool quick)
{
    static rlock_client_t *clients[MEMORY_CLIENTS];
    redisContext *conn = redis_open();
    (void)quick;

    mallopt(M_ARENA_MAX, 1); /* one heap for all threads: mallinfo2() reports one heap */
    fprintf(table, "\nmemory, names of %d bytes\n", NAME_LEN);
    check(rlock_client_ping(NULL), "rlock_client_ping");
    size_t heap = heap_used();
    double server = server_memory(conn);
    rlock_mutex_t *mutexes = hold(MEMORY_HELD);
    print(table, "client's heap, per held lock",
          (double)(heap_used() - heap) / MEMORY_HELD, 0, "bytes", "<= 512");
    print(table, "server's memory, per held lock",
          (server_memory(conn) - server) / MEMORY_HELD, 0, "bytes", "");
    measure_waiters(table, conn);
    heap = heap_used();
    server = server_memory(conn);
    for (size_t i = 0; i < MEMORY_CLIENTS; i++) {
        check(rlock_client_open(&clients[i], NULL, NULL), "rlock_client_open");
        check(rlock_client_ping(clients[i]), "rlock_client_ping");
    }
    print(table, "client's heap, per open client",
          (double)(heap_used() - heap) / MEMORY_CLIENTS, 0, "bytes", "");
    print(table, "server's memory, per open client",
          (server_memory(conn) - server) / MEMORY_CLIENTS, 0, "bytes", "");
    give_back(mutexes, MEMORY_HELD);
}

/* ---- in a process of its own */

void burden_run(const struct burden *burden, FILE *table, bool quick)
{
    fflush(table);
    pid_t pid = process_fork();
    if (pid == 0) {
        burden->run(table, quick);
        fflush(table);
        _exit(0);
    }
    if (process_reap(pid) != 0)
        die("%s failed", burden->word);
}

const struct burden burdens[] = {
    { "held100000", run_held },        { "memory", run_memory },
    { "guard_pair", run_guard_pair },  { "guard_kept", run_guard_kept },
    { "guard_idle", run_guard_idle },  { "guard_killed", run_guard_killed },
    { "guard_hosts", run_guard_hosts }
};
const size_t burden_count = sizeof(burdens) / sizeof(burdens[0]);
