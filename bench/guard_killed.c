/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the SIGKILL of a lock's holder to the return of a waiter's lock.
 *
 * For each death there is a new waiter, which has never seen a death before, and a new
 * holder, or several readers. Once the waiter is in the queue, a time passes that is
 * different for each death: the waiter may only just have begun to look for deaths, or
 * have looked for long. Then the holders are killed. The result is the time
 * (CLOCK_MONOTONIC) from before the first kill() to after the waiter's lock(). The
 * process that arranges this never uses the library, so that its children can use it: it
 * looks at the queue over hiredis.
 */
#include "burden.h"

#include "bench.h"
#include "guarded.h"
#include "process.h"
#include "sample.h"
#include "scripts.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    DEATHS = 100,
    QUICK_DEATHS = 20,
    UNGUARDED_DEATHS = 10,
    UNGUARDED_QUICK_DEATHS = 3,
    HOLDERS_MAX = 3,
    SHORT_LEASE_MS = 600,
    PATIENCE_S = 20, /* shorter than the lease */
    LOOK_NS = 200000,
    PAUSE_STEP = 37, /* coprime to PAUSES: all pauses come, in disorder */
    PAUSES = 100,    /* ms */
    MIB = 1024 * 1024
};

#define NAME "bench-killed"

enum kind { MUTEX, FAIR, WRITER, READERS };

/* Where a process runs, if not where this one does. */
struct place {
    const char *url, *rundir, *netns; /* NULL: here */
};

struct trial {
    const char *label, *target;
    enum kind kind;
    size_t mib; /* that each holder has resident in addition */
    bool unguarded;
    struct place holder, waiter;
};

/* What the processes share. */
struct stage {
    sem_t held;     /* posted by each holder */
    sem_t go, done; /* the waiter's */
    int64_t locked_ns;
};

/* The lock of any kind. */
struct lock {
    enum kind kind;
    rlock_client_t *client;
    rlock_mutex_t mutex;
    rlock_fair_t fair;
    rlock_rwlock_t rwlock;
};

/* ---- the processes that use the library */

static void go_to(const struct place *place)
{
    if (place->url)
        setenv("RLOCK_URL", place->url, 1);
    if (place->rundir)
        setenv("RLOCK_RUNDIR", place->rundir, 1);
    if (!place->netns)
        return;
    int fd = open(place->netns, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        die("cannot enter %s", place->netns);
    close(fd);
}

static void lock_open(struct lock *lock, const struct trial *trial)
{
    long lease_ms = trial->unguarded ? SHORT_LEASE_MS : 0;
    rlock_mutexattr_t attr;
    rlock_rwlockattr_t rwattr;

    lock->kind = trial->kind;
    lock->client = client_open(!trial->unguarded);
    check(rlock_mutexattr_init(&attr), "rlock_mutexattr_init");
    check(rlock_mutexattr_setclient(&attr, lock->client), "rlock_mutexattr_setclient");
    check(rlock_mutexattr_setlease(&attr, lease_ms), "rlock_mutexattr_setlease");
    check(rlock_rwlockattr_init(&rwattr), "rlock_rwlockattr_init");
    check(rlock_rwlockattr_setclient(&rwattr, lock->client), "setclient");
    check(rlock_rwlockattr_setlease(&rwattr, lease_ms), "rlock_rwlockattr_setlease");
    if (lock->kind == MUTEX)
        check(rlock_mutex_init(&lock->mutex, &attr, NAME), "rlock_mutex_init");
    else if (lock->kind == FAIR)
        check(rlock_fair_init(&lock->fair, &attr, NAME), "rlock_fair_init");
    else
        check(rlock_rwlock_init(&lock->rwlock, &rwattr, NAME), "rlock_rwlock_init");
}

static void lock_take(struct lock *lock, bool to_read)
{
    if (lock->kind == MUTEX)
        check(rlock_mutex_lock(&lock->mutex), "rlock_mutex_lock");
    else if (lock->kind == FAIR)
        check(rlock_fair_lock(&lock->fair), "rlock_fair_lock");
    else if (to_read)
        check(rlock_rwlock_rdlock(&lock->rwlock), "rlock_rwlock_rdlock");
    else
        check(rlock_rwlock_wrlock(&lock->rwlock), "rlock_rwlock_wrlock");
}

static void lock_give_back(struct lock *lock)
{
    if (lock->kind == MUTEX)
        check(rlock_mutex_unlock(&lock->mutex), "rlock_mutex_unlock");
    else if (lock->kind == FAIR)
        check(rlock_fair_unlock(&lock->fair), "rlock_fair_unlock");
    else
        check(rlock_rwlock_unlock(&lock->rwlock), "rlock_rwlock_unlock");
}

static void be_waiter(const struct trial *trial, struct stage *stage)
{
    struct lock lock;

    go_to(&trial->waiter);
    lock_open(&lock, trial);
    sem_post(&stage->done);
    semaphore_wait(&stage->go);
    lock_take(&lock, false);
    stage->locked_ns = now_ns();
    sem_post(&stage->done);
    lock_give_back(&lock);
    check(rlock_client_close(lock.client), "rlock_client_close");
    _exit(0);
}

/* Memory that the kernel has to take from it page by page. */
static void be_large(size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    if (size == 0)
        return;
    volatile char *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("out of memory");
    madvise((void *)memory, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += page)
        memory[i] = 1;
}

static void be_holder(const struct trial *trial, struct stage *stage)
{
    struct lock lock;

    be_large(trial->mib * MIB);
    go_to(&trial->holder);
    lock_open(&lock, trial);
    lock_take(&lock, true);
    sem_post(&stage->held);
    for (;;)
        pause();
}

/* ---- the process that arranges it */

struct theatre {
    const struct trial *trial;
    struct stage *stage;
    redisContext *conn;
    lock_keys_t keys;
    pid_t holders[HOLDERS_MAX];
    size_t holder_count;
};

static void await(sem_t *sem, const char *what)
{
    if (!semaphore_wait_for(sem, PATIENCE_S))
        die("%s", what);
}

static void await_queued(struct theatre *theatre)
{
    int64_t until = now_ns() + PATIENCE_S * NS_PER_S;
    for (;;) {
        redisReply *reply = redis_words(
            theatre->conn,
            (const char *const[]){ "ZCARD", theatre->keys[RLK_KEY_QUEUE], NULL });
        bool queued = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
        freeReplyObject(reply);
        if (queued)
            return;
        if (now_ns() > until)
            die("the waiter did not queue");
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

static void start(struct theatre *theatre, const struct trial *trial)
{
    *theatre =
        (struct theatre){ .trial = trial,
                          .stage = memory_shared(sizeof(struct stage)),
                          .conn = redis_open(),
                          .holder_count = trial->kind == READERS ? HOLDERS_MAX : 1 };
    make_keys(theatre->keys, NAME);
    delete_keys(theatre->conn, theatre->keys);
    sem_init(&theatre->stage->held, 1, 0);
    sem_init(&theatre->stage->go, 1, 0);
    sem_init(&theatre->stage->done, 1, 0);
}

static void stop(struct theatre *theatre)
{
    delete_keys(theatre->conn, theatre->keys);
    redisFree(theatre->conn);
    memory_free(theatre->stage, sizeof(struct stage));
}

static double death_ms(struct theatre *theatre, size_t number)
{
    struct stage *stage = theatre->stage;
    long pause_ms = (long)(number * PAUSE_STEP % PAUSES);

    for (size_t i = 0; i < theatre->holder_count; i++) {
        theatre->holders[i] = process_fork();
        if (theatre->holders[i] == 0)
            be_holder(theatre->trial, stage);
        await(&stage->held, "a holder did not get the lock");
    }
    pid_t waiter = process_fork();
    if (waiter == 0)
        be_waiter(theatre->trial, stage);
    await(&stage->done, "the waiter did not start");
    sem_post(&stage->go);
    await_queued(theatre);
    nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
    int64_t killed_ns = now_ns();
    for (size_t i = 0; i < theatre->holder_count; i++)
        kill(theatre->holders[i], SIGKILL);
    await(&stage->done, "the waiter did not get the lock");
    for (size_t i = 0; i < theatre->holder_count; i++)
        process_reap(theatre->holders[i]);
    if (process_reap(waiter) != 0)
        die("the waiter failed");
    return (double)(stage->locked_ns - killed_ns) / 1e6;
}

static void print_head(FILE *table, const char *what, double limit_ms)
{
    char within[32];
    snprintf(within, sizeof(within), "in %.0f ms", limit_ms);
    fprintf(table, "\n%s\n%-22s %-22s %9s %9s %9s %12s  %s\n", what, "scenario", "of",
            "median", "p95", "worst", within, "target");
    fflush(table);
}

/* Returns how many deaths took longer. */
static size_t run_trial(FILE *table, const struct trial *trial, const char *scenario,
                        size_t deaths, double limit_ms)
{
    struct theatre theatre;
    double ms[DEATHS];

    start(&theatre, trial);
    death_ms(&theatre, 0); /* so that the server learns the scripts */
    for (size_t i = 0; i < deaths; i++)
        ms[i] = death_ms(&theatre, i);
    stop(&theatre);
    sample_sort(ms, deaths);
    size_t within = sample_within(ms, deaths, limit_ms);
    fprintf(table, "%-22s %-22s %9.2f %9.2f %9.2f %5zu of %3zu  %s\n", scenario,
            trial->label, sample_quantile(ms, deaths, 0.5),
            sample_quantile(ms, deaths, 0.95), ms[deaths - 1], within, deaths,
            trial->target ? trial->target : "");
    fflush(table);
    return deaths - within;
}

static const struct trial trials[] = {
    { .label = "mutex", .target = "all", .kind = MUTEX },
    { .label = "fair lock", .target = "all", .kind = FAIR },
    { .label = "a writer", .target = "all", .kind = WRITER },
    { .label = "three readers", .target = "all", .kind = READERS },
    { .label = "mutex, 90 MiB", .target = "all", .kind = MUTEX, .mib = 90 },
    { .label = "mutex, 256 MiB", .kind = MUTEX, .mib = 256 },
    { .label = "guard off, lease 600", .kind = MUTEX, .unguarded = true }
};

void run_guard_killed(FILE *table, bool quick)
{
    const double limit_ms = 50;

    if (!guard_is_possible(table, "guard_killed"))
        return;
    print_head(table, "from the SIGKILL of the holder to its waiter's lock, ms",
               limit_ms);
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        size_t deaths = quick ? QUICK_DEATHS : DEATHS;
        if (trials[i].unguarded)
            deaths = quick ? UNGUARDED_QUICK_DEATHS : UNGUARDED_DEATHS;
        run_trial(table, &trials[i], i == 0 ? "holder killed, ms" : "", deaths, limit_ms);
    }
}

/* ---- two hosts, of which the holder's has no waiter, but rlock-guard */

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

void run_guard_hosts(FILE *table, bool quick)
{
    const double limit_ms = 100;
    struct trial trial = {
        .label = "mutex, other host",
        .target = "all",
        .kind = MUTEX,
        .holder = { env("RLOCK_BENCH_HOSTS_URL"), env("RLOCK_BENCH_HOLDER_RUNDIR"),
                    env("RLOCK_BENCH_HOLDER_NETNS") },
        .waiter = { env("RLOCK_BENCH_HOSTS_URL"), env("RLOCK_BENCH_WAITER_RUNDIR"),
                    env("RLOCK_BENCH_WAITER_NETNS") }
    };

    if (!trial.holder.url || !trial.holder.rundir || !trial.holder.netns ||
        !trial.waiter.rundir || !trial.waiter.netns) {
        fprintf(table,
                "skipped: guard_hosts: bench/hosts makes what it needs, as root\n");
        return;
    }
    print_head(table, "from the SIGKILL of the holder to the lock on another host, ms",
               limit_ms);
    size_t late = run_trial(table, &trial, "rlock-guard, ms",
                            quick ? QUICK_DEATHS : DEATHS, limit_ms);
    if (late > 0)
        die("%zu were later", late);
}
