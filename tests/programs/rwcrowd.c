/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose threads read and write under one read-write lock and log the events
 * (rwlog.h):
 *
 *   rwcrowd URL NAME LOG FIRST KIND LEASE_MS JOB...
 *
 * KIND is an argument of rlock_rwlockattr_setkind_np, LEASE_MS the length of fixed
 * leases. Each JOB is a thread: a letter and the number of sections that it enters (0:
 * until the log says stop). The first one has the number FIRST in the log.
 *   r   reads hand in hand: for up to 20 ms it does not leave while it is the last reader
 *       of this kind
 *   q   reads
 *   s   reads, and stays inside until the log says open
 *   w   writes
 *   m   all in turn: reads and writes by every call, re-entries, fixed leases,
 *       downgrades; tries and deadlines that fail are repeated
 *   t   like w and r with random deadlines, and stays for a while; each call is a section
 * All begin when the log says go. A writer writes the same number twice, one after the
 * other. Prints one line: "sections N writes N torn N lost N failed N". Uses <rlock.h>
 * only.
 */
#include "rwlog.h"

#include <rlock.h>

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JOBS_MAX = 32, ARGUMENTS = 7, BUSY_MAX_US = 1000 };
enum { HAND_IN_HAND_MS = 20, SOON_MS = 30, DEADLINE_MS = 150, STAY_MAX_MS = 20 };
enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

struct job {
    pthread_t thread;
    char verb;
    long rounds, who;
    unsigned seed;
};

static struct {
    rlock_client_t *client;
    rlock_rwlock_t lock;
    long lease_ms;
    struct rwlog *log;
    struct job jobs[JOBS_MAX];
    atomic_long sections, writes, torn, lost, failed;
} c;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * MS_PER_S + t.tv_nsec / NS_PER_MS;
}

static struct timespec in_ms(long ms)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += ms % MS_PER_S * NS_PER_MS;
    t.tv_sec += ms / MS_PER_S + t.tv_nsec / (MS_PER_S * NS_PER_MS);
    t.tv_nsec %= MS_PER_S * NS_PER_MS;
    return t;
}

static void pause_us(long us)
{
    nanosleep(&(struct timespec){ us / 1000000, us % 1000000 * 1000 }, NULL);
}

static long choose(struct job *job, long below)
{
    return rand_r(&job->seed) % below;
}

static void fail(const char *what, int rc)
{
    fprintf(stderr, "rwcrowd: %s: %s (%s)\n", what, rlock_strerror(rc), rlock_errmsg());
    atomic_fetch_add(&c.failed, 1);
}

/* ---- the log */

static void note_entry(const struct job *job, enum rwlog_kind kind)
{
    uint64_t token = 0;
    int rc = rlock_rwlock_gettoken(&c.lock, &token);
    if (rc != 0)
        fail("gettoken", rc);
    rwlog_add(c.log, kind, job->who, token);
    atomic_fetch_add(&c.sections, 1);
}

static void leave(const struct job *job)
{
    rwlog_add(c.log, RWLOG_LEAVES, job->who, 0);
    int rc = rlock_rwlock_unlock(&c.lock);
    if (rc == ESTALE)
        atomic_fetch_add(&c.lost, 1);
    else if (rc != 0)
        fail("unlock", rc);
}

/* Logs the result of a call that wanted the lock; returns whether it got the lock. A call
 * with a deadline may return ENOTCONN when another thread's request for the process is
 * still unanswered. */
static bool note_answer(const struct job *job, enum rwlog_kind kind, int rc, int refusal)
{
    if (rc == 0) {
        note_entry(job, kind);
        return true;
    }
    rwlog_add(c.log, RWLOG_OUT, job->who, 0);
    if (rc != refusal && !(rc == ENOTCONN && refusal == ETIMEDOUT))
        fail("lock", rc);
    return false;
}

/* ---- what is protected */

/* Whether a process was killed while it changed the data. */
static bool is_left_behind(void)
{
    uint64_t pid = atomic_load(&c.log->writer);
    return pid != 0 && kill((pid_t)pid, 0) != 0;
}

/* Checks that both numbers are equal and do not change. After the kill of a writer they
 * may differ. */
static uint64_t look(void)
{
    uint64_t first = atomic_load(&c.log->first), second = atomic_load(&c.log->second);
    sched_yield();
    if (first != atomic_load(&c.log->first) || second != atomic_load(&c.log->second) ||
        (first != second && !is_left_behind()))
        atomic_fetch_add(&c.torn, 1);
    return first;
}

static uint64_t change(void)
{
    uint64_t number = look() + 1;
    atomic_store(&c.log->writer, (uint64_t)getpid());
    atomic_store(&c.log->first, number);
    sched_yield();
    atomic_store(&c.log->second, number);
    atomic_store(&c.log->writer, 0);
    atomic_fetch_add(&c.writes, 1);
    return number;
}

/* ---- everything in turn */

/* Locks in a random way; returns whether it got the lock. */
static bool enter_somehow(struct job *job, bool reading)
{
    enum { PLAIN, LEASED, TRIED, TIMED, FORMS };
    enum rwlog_kind kind = reading ? RWLOG_READS : RWLOG_WRITES;
    rlock_rwlock_t *l = &c.lock;
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    struct timespec end = in_ms(choose(job, SOON_MS));
    switch (choose(job, FORMS)) {
    case LEASED:
        return note_answer(job, kind,
                           reading ? rlock_rwlock_rdlock_lease(l, c.lease_ms)
                                   : rlock_rwlock_wrlock_lease(l, c.lease_ms),
                           0);
    case TRIED:
        return note_answer(
            job, kind, reading ? rlock_rwlock_tryrdlock(l) : rlock_rwlock_trywrlock(l),
            EBUSY);
    case TIMED:
        return note_answer(job, kind,
                           reading ? rlock_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &end)
                                   : rlock_rwlock_clockwrlock(l, CLOCK_MONOTONIC, &end),
                           ETIMEDOUT);
    default:
        return note_answer(job, kind,
                           reading ? rlock_rwlock_rdlock(l) : rlock_rwlock_wrlock(l), 0);
    }
}

static void expect(const char *what, int rc, int wanted)
{
    if (rc != wanted)
        fail(what, rc);
}

static void read_section(struct job *job)
{
    look();
    if (choose(job, 4) != 0)
        return;
    expect("rdlock again", rlock_rwlock_rdlock(&c.lock), 0);
    expect("trywrlock of a reader", rlock_rwlock_trywrlock(&c.lock), EBUSY);
    expect("wrlock of a reader", rlock_rwlock_wrlock(&c.lock), EDEADLK);
    look();
    expect("rdunlock", rlock_rwlock_rdunlock(&c.lock), 0);
    look();
}

/* Reads on after writing. No other thread may write in between, or the number would
 * change. */
static void go_on_reading(struct job *job, uint64_t number)
{
    rwlog_add(c.log, RWLOG_DOWNGRADES, job->who, 0);
    if (choose(job, 2) == 0) {
        expect("downgrade", rlock_rwlock_downgrade(&c.lock), 0);
    } else {
        expect("rdlock of a writer", rlock_rwlock_rdlock(&c.lock), 0);
        expect("wrunlock", rlock_rwlock_wrunlock(&c.lock), 0);
    }
    for (int i = 0; i < 3; i++) {
        pause_us(choose(job, BUSY_MAX_US));
        if (look() != number)
            atomic_fetch_add(&c.torn, 1);
    }
}

static void write_section(struct job *job)
{
    uint64_t number = change();
    long more = choose(job, 4);
    if (more == 0) {
        go_on_reading(job, number);
    } else if (more == 1) {
        expect("wrlock again", rlock_rwlock_wrlock(&c.lock), 0);
        expect("rdlock of a writer", rlock_rwlock_rdlock(&c.lock), 0);
        expect("rdunlock", rlock_rwlock_rdunlock(&c.lock), 0);
        change();
        expect("wrunlock", rlock_rwlock_wrunlock(&c.lock), 0);
        change();
    }
}

static void do_mixed(struct job *job)
{
    bool reading;
    do
        reading = choose(job, 5) < 3;
    while (!enter_somehow(job, reading));
    if (reading)
        read_section(job);
    else
        write_section(job);
    leave(job);
}

/* ---- one thing only */

static bool is_over(const atomic_bool *sign)
{
    return atomic_load(sign) || atomic_load(&c.log->stop);
}

/* Leaves the readers hand in hand, unless no other of them would stay. Returns whether it
 * left. */
static bool let_go(void)
{
    long inside = atomic_load(&c.log->inside);
    while (inside > 1)
        if (atomic_compare_exchange_weak(&c.log->inside, &inside, inside - 1))
            return true;
    return false;
}

static void do_read(struct job *job)
{
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    if (!note_answer(job, RWLOG_READS, rlock_rwlock_rdlock(&c.lock), 0))
        return;
    atomic_fetch_add(&c.log->inside, 1);
    look();
    pause_us(choose(job, BUSY_MAX_US));
    int64_t end = now_ms() + HAND_IN_HAND_MS;
    bool gone;
    while (!(gone = let_go()) && now_ms() < end && !atomic_load(&c.log->stop))
        pause_us(BUSY_MAX_US / 10);
    if (!gone)
        atomic_fetch_sub(&c.log->inside, 1);
    leave(job);
}

static void do_read_quickly(struct job *job)
{
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    if (!note_answer(job, RWLOG_READS, rlock_rwlock_rdlock(&c.lock), 0))
        return;
    look();
    pause_us(choose(job, BUSY_MAX_US));
    leave(job);
}

static void do_stay(struct job *job)
{
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    if (!note_answer(job, RWLOG_READS, rlock_rwlock_rdlock(&c.lock), 0))
        return;
    atomic_fetch_add(&c.log->inside, 1);
    while (!is_over(&c.log->open)) {
        look();
        pause_us(BUSY_MAX_US);
    }
    atomic_fetch_sub(&c.log->inside, 1);
    leave(job);
}

static void do_write(struct job *job)
{
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    if (!note_answer(job, RWLOG_WRITES, rlock_rwlock_wrlock(&c.lock), 0))
        return;
    change();
    pause_us(choose(job, BUSY_MAX_US));
    leave(job);
}

static void note_late(int64_t late)
{
    long most = atomic_load(&c.log->late_ms);
    while (late > most)
        if (atomic_compare_exchange_weak(&c.log->late_ms, &most, (long)late))
            return;
}

static void do_timed(struct job *job)
{
    bool reading = choose(job, 2) == 0;
    long ms = choose(job, DEADLINE_MS);
    int64_t begin = now_ms();
    struct timespec end = in_ms(ms);
    rwlog_add(c.log, RWLOG_ASKS, job->who, 0);
    int rc = reading ? rlock_rwlock_clockrdlock(&c.lock, CLOCK_MONOTONIC, &end)
                     : rlock_rwlock_clockwrlock(&c.lock, CLOCK_MONOTONIC, &end);
    int64_t took = now_ms() - begin;
    note_late(took - ms);
    if (rc == ETIMEDOUT && took < ms - 1)
        fail("too early", rc);
    if (!note_answer(job, reading ? RWLOG_READS : RWLOG_WRITES, rc, ETIMEDOUT))
        return;
    if (reading)
        look();
    else
        change();
    pause_us(1000 * choose(job, STAY_MAX_MS));
    leave(job);
}

static void *run(void *arg)
{
    static void (*const verbs[])(
        struct job *) = { ['r'] = do_read,  ['s'] = do_stay,  ['q'] = do_read_quickly,
                          ['w'] = do_write, ['m'] = do_mixed, ['t'] = do_timed };
    struct job *job = arg;
    while (!is_over(&c.log->go))
        pause_us(BUSY_MAX_US);
    for (long i = 0; job->rounds == 0 || i < job->rounds; i++) {
        if (atomic_load(&c.log->stop) || atomic_load(&c.failed) > 0)
            break;
        verbs[(unsigned char)job->verb](job);
    }
    return NULL;
}

static int open_lock(char **argv)
{
    rlock_rwlockattr_t attr;
    int rc = rlock_client_open(&c.client, argv[1], NULL);
    if (rc == 0)
        rc = rlock_rwlockattr_init(&attr);
    if (rc == 0)
        rc = rlock_rwlockattr_setclient(&attr, c.client);
    if (rc == 0)
        rc = rlock_rwlockattr_setfencing(&attr, 1);
    if (rc == 0)
        rc = rlock_rwlockattr_setkind_np(&attr, (int)strtol(argv[5], NULL, 10));
    return rc == 0 ? rlock_rwlock_init(&c.lock, &attr, argv[2]) : rc;
}

int main(int argc, char **argv)
{
    int count = argc - ARGUMENTS;
    if (count < 1 || count > JOBS_MAX)
        return EXIT_FAILURE;
    c.log = rwlog_map(argv[3]);
    c.lease_ms = strtol(argv[6], NULL, 10);
    int rc = c.log ? open_lock(argv) : errno;
    if (rc != 0) {
        fail("cannot begin", rc);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < count; i++) {
        struct job *job = &c.jobs[i];
        const char *text = argv[ARGUMENTS + i];
        job->verb = text[0];
        if (!strchr("rqswmt", job->verb) || job->verb == '\0')
            return EXIT_FAILURE;
        job->rounds = strtol(text + 1, NULL, 10);
        job->who = strtol(argv[4], NULL, 10) + i;
        job->seed = (unsigned)now_ms() + (unsigned)job->who;
        if (pthread_create(&job->thread, NULL, run, job) != 0)
            return EXIT_FAILURE;
    }
    for (int i = 0; i < count; i++)
        pthread_join(c.jobs[i].thread, NULL);
    rc = rlock_client_close(c.client);
    if (rc != 0) /* EBUSY: the client believes that a thread still holds or waits */
        fail("close", rc);
    printf("sections %ld writes %ld torn %ld lost %ld failed %ld\n",
           atomic_load(&c.sections), atomic_load(&c.writes), atomic_load(&c.torn),
           atomic_load(&c.lost), atomic_load(&c.failed));
    return EXIT_SUCCESS;
}
