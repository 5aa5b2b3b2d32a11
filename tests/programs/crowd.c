/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with any number of threads that want one fair lock, and request it on
 * command:
 *
 *   crowd URL NAME LOG
 *
 * One command a line on stdin, one answer a line on stdout, "ok ..." or "failed: ...".
 * Threads have numbers from 0 and are started by their first command.
 *
 *   ask FROM N WAIT_MS HOLD_US   each of the threads FROM to FROM+N-1 requests the lock,
 *                       without a deadline or (WAIT_MS above 0) with one, holds it for
 *                       HOLD_US, and releases it
 *   loop FROM N HOLD_US each does so again and again
 *   stop                the loops end with their next turn
 *   keep FROM N         each takes its own lock, NAME-<thread>, and holds it
 *   let FROM N          ... and releases it
 *   idle                answered when no thread has work any more
 *   losses              "ok N": the client's losses so far
 *
 * The threads log what they do in LOG, each line in one write, so that all processes may
 * share it: "<CLOCK_BOOTTIME ns> <pid> <thread> <what> <number>":
 *
 *   asks 0, got TOKEN, gives 0 (before the release), gave CODE, fails CODE
 *
 * Uses <rlock.h> only.
 */
#include <rlock.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 256, ARGUMENTS = 4, US_PER_S = 1000000, MS_PER_S = 1000 };
enum { NS_PER_US = 1000, NS_PER_MS = 1000000, STACK_SIZE = 512 << 10 };

enum job_kind { NOTHING, ASK, LOOP, KEEP, LET };

struct job {
    enum job_kind kind;
    long wait_ms, hold_us;
};

struct member {
    long number;
    rlock_fair_t own; /* the lock of "keep" */
    pthread_cond_t told;
    struct job job; /* guarded by mu */
};

static struct {
    const char *name;
    int log;
    rlock_client_t *client;
    rlock_fair_t lock;
    atomic_bool stopping;
    struct member **members; /* only the main thread uses this array */
    long count, size;
} crowd;

/* Guards the jobs; not held while a job runs. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static long busy;

static void note(const struct member *m, const char *what, uint64_t number)
{
    char line[LINE_SIZE];
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    int n = snprintf(line, sizeof(line), "%lld%09ld %d %ld %s %" PRIu64 "\n",
                     (long long)ts.tv_sec, ts.tv_nsec, (int)getpid(), m->number, what,
                     number);
    if (write(crowd.log, line, (size_t)n) != n)
        abort();
}

static void hold_for(long us)
{
    struct timespec left = { us / US_PER_S, us % US_PER_S * NS_PER_US };
    while (us > 0 && nanosleep(&left, &left) != 0)
        continue;
}

static int lock_until(long wait_ms)
{
    struct timespec ts;
    if (wait_ms <= 0)
        return rlock_fair_lock(&crowd.lock);
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += wait_ms / MS_PER_S;
    ts.tv_nsec += wait_ms % MS_PER_S * NS_PER_MS;
    if (ts.tv_nsec >= NS_PER_MS * MS_PER_S) {
        ts.tv_nsec -= NS_PER_MS * MS_PER_S;
        ts.tv_sec++;
    }
    return rlock_fair_clocklock(&crowd.lock, CLOCK_MONOTONIC, &ts);
}

static bool ask_once(const struct member *m, const struct job *job)
{
    uint64_t token = 0;
    note(m, "asks", 0);
    int rc = lock_until(job->wait_ms);
    if (rc == 0)
        rc = rlock_fair_gettoken(&crowd.lock, &token);
    if (rc != 0) {
        note(m, "fails", (uint64_t)rc);
        return false;
    }
    note(m, "got", token);
    hold_for(job->hold_us);
    note(m, "gives", 0);
    rc = rlock_fair_unlock(&crowd.lock);
    note(m, "gave", (uint64_t)rc);
    return rc == 0;
}

static int init_lock(rlock_fair_t *lock, const char *name)
{
    rlock_mutexattr_t attr;
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, crowd.client);
    if (rc == 0)
        rc = rlock_mutexattr_setfencing(&attr, 1);
    return rc == 0 ? rlock_fair_init(lock, &attr, name) : rc;
}

static void keep(struct member *m)
{
    char name[RLOCK_NAME_MAX + 1];
    uint64_t token = 0;
    snprintf(name, sizeof(name), "%s-%ld", crowd.name, m->number);
    int rc = init_lock(&m->own, name);
    if (rc == 0)
        rc = rlock_fair_lock(&m->own);
    if (rc == 0)
        rc = rlock_fair_gettoken(&m->own, &token);
    note(m, rc == 0 ? "got" : "fails", rc == 0 ? token : (uint64_t)rc);
}

static void do_job(struct member *m, const struct job *job)
{
    if (job->kind == ASK)
        ask_once(m, job);
    else if (job->kind == LOOP)
        while (!atomic_load(&crowd.stopping) && ask_once(m, job))
            continue;
    else if (job->kind == KEEP)
        keep(m);
    else if (job->kind == LET)
        note(m, "gave", (uint64_t)rlock_fair_unlock(&m->own));
}

static void *run(void *arg)
{
    struct member *m = arg;
    pthread_mutex_lock(&mu);
    for (;;) {
        while (m->job.kind == NOTHING)
            pthread_cond_wait(&m->told, &mu);
        struct job job = m->job;
        pthread_mutex_unlock(&mu);
        do_job(m, &job);
        pthread_mutex_lock(&mu);
        m->job.kind = NOTHING;
        if (--busy == 0)
            pthread_cond_broadcast(&idle);
    }
    return NULL;
}

/* Starts threads up to this number, and returns its member. */
static struct member *member(long number)
{
    while (crowd.count <= number) {
        if (crowd.count == crowd.size) {
            long size = 2 * crowd.size + 1;
            void *bigger = realloc(crowd.members, (size_t)size * sizeof(struct member *));
            if (!bigger)
                return NULL;
            crowd.members = bigger;
            crowd.size = size;
        }
        struct member *m = calloc(1, sizeof(*m));
        pthread_t thread;
        pthread_attr_t small; /* hundreds of stacks must fit into a 32-bit address
                                 space */
        if (!m)
            return NULL;
        m->number = crowd.count;
        pthread_cond_init(&m->told, NULL);
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, STACK_SIZE);
        int rc = pthread_create(&thread, &small, run, m);
        pthread_attr_destroy(&small);
        if (rc != 0) {
            free(m);
            return NULL;
        }
        pthread_detach(thread);
        crowd.members[crowd.count++] = m;
    }
    return crowd.members[number];
}

static const char *give_jobs(long from, long n, struct job job)
{
    const char *answer = "ok";
    if (n < 1 || !member(from + n - 1))
        return "failed: no such thread";
    pthread_mutex_lock(&mu);
    for (long i = from; i < from + n; i++) {
        struct member *m = crowd.members[i];
        if (m->job.kind != NOTHING) {
            answer = "failed: the thread is busy";
            break;
        }
        m->job = job;
        busy++;
        pthread_cond_signal(&m->told);
    }
    pthread_mutex_unlock(&mu);
    return answer;
}

static void wait_idle(void)
{
    pthread_mutex_lock(&mu);
    while (busy > 0)
        pthread_cond_wait(&idle, &mu);
    pthread_mutex_unlock(&mu);
}

static const char *say_losses(char *answer)
{
    rlock_stats_t stats;
    if (rlock_client_getstats(crowd.client, &stats) != 0)
        return "failed: no statistics";
    snprintf(answer, LINE_SIZE, "ok %" PRIu64, stats.losses);
    return answer;
}

static const char *obey(const char *line, char *answer)
{
    static const char *const verbs[] = {
        [ASK] = "ask", [LOOP] = "loop", [KEEP] = "keep", [LET] = "let"
    };
    char verb[16] = "";
    long a = 0, b = 0, c = 0, d = 0;
    sscanf(line, "%15s %ld %ld %ld %ld", verb, &a, &b, &c, &d);
    for (enum job_kind kind = ASK; kind <= LET; kind++) {
        if (strcmp(verb, verbs[kind]) != 0)
            continue;
        if (kind == LOOP)
            return give_jobs(a, b, (struct job){ kind, 0, c });
        return give_jobs(a, b, (struct job){ kind, c, d });
    }
    if (strcmp(verb, "stop") == 0) {
        atomic_store(&crowd.stopping, true);
        return "ok";
    }
    if (strcmp(verb, "idle") == 0) {
        wait_idle();
        return "ok";
    }
    return strcmp(verb, "losses") == 0 ? say_losses(answer) : "failed: unknown command";
}

int main(int argc, char **argv)
{
    char line[LINE_SIZE], answer[LINE_SIZE];
    if (argc != ARGUMENTS)
        return EXIT_FAILURE;
    crowd.name = argv[2];
    crowd.log = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int rc = crowd.log >= 0 ? rlock_client_open(&crowd.client, argv[1], NULL) : errno;
    if (rc == 0)
        rc = init_lock(&crowd.lock, crowd.name);
    if (rc != 0) {
        fprintf(stderr, "crowd: %s\n", rlock_errmsg());
        return EXIT_FAILURE;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin))
        puts(obey(line, answer));
    _exit(EXIT_SUCCESS); /* threads may still run */
}
