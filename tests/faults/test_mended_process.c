/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defects that a review found in how the library uses its own process: threads, memory,
 * the default client, the child of a fork. Each test fails without its fix.
 */
#include "state/thread.h"

#include "fixture.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool stop;

/* ---- fork */

enum { FORKS = 50, FORKS_QUICK = 15, CHILD_MS = 20000, NEVER_RETURNED = 100 };

static int run_pings(void *arg)
{
    int rc = 0;
    while (rc == 0 && !atomic_load(&stop))
        rc = rlock_client_ping(arg);
    return rc;
}

/* Uses the table of clients for most of its time. */
static int run_getstats(void *arg)
{
    rlock_stats_t stats;
    int rc = 0;
    while (rc == 0 && !atomic_load(&stop))
        rc = rlock_client_getstats(arg, &stats);
    return rc;
}

static int never(const rlock_info_t *info, void *arg)
{
    (void)info;
    (void)arg;
    return NEVER_RETURNED;
}

/* Runs in the child. Returns 0, or which call gave a wrong code. */
static int first_wrong_call(void)
{
    struct timespec past = { 0 };
    rlock_mutexattr_t attr;
    rlock_client_t *named = NULL;
    rlock_info_t *info;
    rlock_stats_t stats;
    if (rlock_mutexattr_init(&attr) != 0)
        return 1;
    const int codes[][2] = {
        { rlock_client_getstats(client, &stats), 0 },
        { rlock_client_ping(client), 0 },
        { rlock_inspect(client, "N", &info), ENOENT },
        { rlock_force_unlock(client, "N"), ENOENT },
        { rlock_list(client, NULL, never, NULL), 0 },
        { rlock_waitfree(client, "N", &past), 0 },
        { rlock_mutexattr_setclient(&attr, client), 0 },
        { rlock_client_setdefault(server.url, NULL), 0 },
        { rlock_client_open(&named, server.url, NULL), 0 },
        { rlock_client_interrupt(client), 0 },
        { rlock_client_close(client), 0 },
        { rlock_client_ping(client), EINVAL },
        { rlock_client_ping(named), 0 },
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i][0] != codes[i][1])
            return 2 + (int)i;
    return 0;
}

struct child {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct child *c = arg;
    return waitpid(c->pid, &c->status, WNOHANG) == c->pid;
}

START_TEST(calls_that_name_a_client_work_in_a_child_whatever_the_parent_does)
{
    struct task pings, stats;
    bool ended = true;
    if (!test_can_fork_amid_threads(
            "calls_that_name_a_client_work_in_a_child_whatever_the_parent_does"))
        return;
    atomic_store(&stop, false);
    task_start(&pings, run_pings, client);
    task_start(&stats, run_getstats, client);
    for (long i = test_count(FORKS, FORKS_QUICK); i > 0 && ended; i--) {
        struct child c = { fork(), -1 };
        if (c.pid == 0) {
            /* by exec, so that no leak checker searches a copy of the parent's memory */
            char code[16];
            snprintf(code, sizeof(code), "exit %d", first_wrong_call());
            execl("/bin/sh", "sh", "-c", code, (char *)NULL);
            abort();
        }
        ck_assert_int_gt(c.pid, 0);
        ended = test_wait_until(has_ended, &c, CHILD_MS);
        if (!ended) {
            kill(c.pid, SIGKILL);
            waitpid(c.pid, &c.status, 0);
        }
        ck_assert(ended);
        ck_assert(WIFEXITED(c.status));
        ck_assert_int_eq(WEXITSTATUS(c.status), 0);
    }
    atomic_store(&stop, true);
    OK(task_join(&pings));
    OK(task_join(&stats));
}
END_TEST

/* ---- the default client */

static bool is_lost(void *arg)
{
    return state_of(arg) == RLOCK_LOST;
}

/* The calling thread loses a hold of the default client, which is closed then. */
static void lose_and_close(rlock_mutex_t *m)
{
    char url[TEST_URL_MAX + 32];
    snprintf(url, sizeof(url), "%s?lease=%ld", server.url, test_ms(300));
    OK(rlock_client_setdefault(url, NULL));
    OK(rlock_mutex_lock(m));
    OK(rlock_mutex_lock(m));
    test_redis_do(redis, "DEL", "N"); /* the next renewal finds that */
    ck_assert(test_wait_until(is_lost, m, 5000));
    OK(rlock_client_close(NULL));
}

static void drain(rlock_mutex_t *m)
{
    ck_assert_int_eq(state_of(m), RLOCK_LOST);
    ck_assert_int_eq(count_of(m), 2);
    EXPECT(rlock_mutex_lock(m), ESTALE);
    EXPECT(rlock_mutex_unlock(m), ESTALE);
    EXPECT(rlock_mutex_unlock(m), ESTALE);
    ck_assert_int_eq(state_of(m), RLOCK_UNHELD);
    EXPECT(rlock_mutex_unlock(m), EPERM);
    OK(rlock_mutex_lock(m));
    ck_assert_int_eq(state_of(m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(m));
    OK(rlock_client_close(NULL));
}

START_TEST(a_hold_that_was_lost_is_reported_after_the_default_client_was_closed)
{
    rlock_mutex_t m = RLOCK_RECURSIVE_MUTEX_INITIALIZER_NP("N");
    lose_and_close(&m);
    drain(&m);
}
END_TEST

START_TEST(a_hold_that_was_lost_is_reported_when_the_default_client_is_open_again)
{
    rlock_mutex_t m = RLOCK_RECURSIVE_MUTEX_INITIALIZER_NP("N");
    lose_and_close(&m);
    OK(rlock_client_ping(NULL));
    OK(in_thread(run_pair, &m));
    drain(&m);
}
END_TEST

/* ---- many holds */

enum { HOLDS = 2000, LEASE_MS = 3000, OUTAGE_MS = 2000 };

/* The last event about each hold; the library's thread writes. */
enum said { SAID_NOTHING, SAID_AT_RISK, SAID_LOST };
static _Atomic int said[HOLDS];
static atomic_int at_risk_count, out_of_order;

static void note(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (!event->name[0])
        return;
    long i = strtol(event->name, NULL, 10);
    int before = said[i];
    if (event->kind == RLOCK_EVENT_AT_RISK) {
        said[i] = SAID_AT_RISK;
        atomic_fetch_add(&at_risk_count, 1);
        atomic_fetch_add(&out_of_order, before != SAID_NOTHING);
    } else if (event->kind == RLOCK_EVENT_SAFE_AGAIN) {
        said[i] = SAID_NOTHING;
        atomic_fetch_add(&out_of_order, before != SAID_AT_RISK);
    } else if (event->kind == RLOCK_EVENT_LOST) {
        said[i] = SAID_LOST;
        atomic_fetch_add(&out_of_order, before != SAID_AT_RISK);
    }
}

static bool is_settled(void *arg)
{
    (void)arg;
    for (int i = 0; i < HOLDS; i++)
        if (said[i] == SAID_AT_RISK)
            return false;
    return true;
}

static long cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (long)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static rlock_client_t *open_noting(void)
{
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setlease(&attr, test_ms(LEASE_MS)));
    OK(rlock_clientattr_seteventcallback(&attr, note, NULL));
    OK(rlock_client_open(&c, server.url, &attr));
    return c;
}

static rlock_mutex_t hold[HOLDS];

static int lock_many(rlock_client_t *many)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < HOLDS; i++) {
        char name[16];
        snprintf(name, sizeof(name), "%d", i);
        hold[i] = mutex_of(many, name);
        rc = rlock_mutex_lock(&hold[i]);
    }
    return rc;
}

/* The processor time that this process uses while the server is stopped for this long. */
static long burnt_in(long ms)
{
    long begin = cpu_ms();
    test_pause_ms(test_ms(ms)); /* the length of the outage */
    return cpu_ms() - begin;
}

START_TEST(many_holds_that_are_due_at_a_stopped_server_burn_no_time)
{
    int wrong = 0;
    rlock_client_t *many = open_noting();
    OK(lock_many(many));
    test_server_pause(&server);
    long burnt = burnt_in(OUTAGE_MS);
    test_server_resume(&server);
    ck_assert_int_lt(burnt, test_ms(OUTAGE_MS / 2));
    ck_assert(test_wait_until(is_settled, NULL, 2 * LEASE_MS));
    for (int i = HOLDS - 1; i >= 0; i--) { /* the newest is found first */
        int lost = state_of(&hold[i]) == RLOCK_LOST;
        wrong += rlock_mutex_unlock(&hold[i]) != (lost ? ESTALE : 0);
        wrong += lost != (said[i] == SAID_LOST);
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(out_of_order, 0);
    ck_assert_int_gt(at_risk_count, HOLDS / 2);
    OK(rlock_client_close(many));
}
END_TEST

static atomic_bool all_locked;

/* A thread that ends with all its locks held. */
static int run_lock_many(void *many)
{
    int rc = lock_many(many);
    atomic_store(&all_locked, true);
    while (rc == 0 && !atomic_load(&stop))
        test_pause_ms(1);
    return rc;
}

static bool are_all_locked(void *arg)
{
    (void)arg;
    return atomic_load(&all_locked);
}

static bool so_many_are_released(void *arg)
{
    return stats_of(client).background_releases == *(const uint64_t *)arg;
}

START_TEST(many_locks_of_a_thread_that_ends_at_a_stopped_server_burn_no_time)
{
    struct task thread;
    uint64_t one = 1, all = HOLDS + 1;
    atomic_store(&stop, false);
    atomic_store(&all_locked, false);
    reopen_with("?lease=60000");
    rlock_mutex_t m = mutex_of(client, "first");
    OK(in_thread(run_lock, &m)); /* the watchdog connects */
    ck_assert(test_wait_until(so_many_are_released, &one, 5000));
    task_start(&thread, run_lock_many, client);
    ck_assert(test_wait_until(are_all_locked, NULL, 10000));
    test_server_pause(&server);
    atomic_store(&stop, true);
    OK(task_join(&thread));
    long burnt = burnt_in(OUTAGE_MS / 2);
    test_server_resume(&server);
    ck_assert_int_lt(burnt, test_ms(OUTAGE_MS / 4));
    ck_assert(test_wait_until(so_many_are_released, &all, 10000));
    ck_assert_uint_eq(stats_of(client).owners_died, all);
}
END_TEST

/* ---- threads */

/* How many times the threads of this name went to sleep; -1: there is none. */
static long sleeps_of(const char *name)
{
    long sum = 0, found = 0;
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        char path[300], line[128], comm[64] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
        FILE *f = d->d_name[0] != '.' ? fopen(path, "r") : NULL;
        while (f && fgets(line, sizeof(line), f)) {
            long n;
            sscanf(line, "Name: %63s", comm);
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 &&
                strcmp(comm, name) == 0) {
                found++;
                sum += n;
            }
        }
        if (f)
            fclose(f);
    }
    closedir(dir);
    return found > 0 ? sum : -1;
}

START_TEST(an_uncontended_pair_wakes_no_thread_of_the_library)
{
    enum { PAIRS = 2000, MOST = 20 };
    rlock_mutex_t m = mutex_of(client, "N");
    OK(run_pair(&m)); /* connects */
    long watch = sleeps_of("rlock-watch"), sub = sleeps_of("rlock-sub");
    ck_assert_int_ge(watch, 0);
    ck_assert_int_ge(sub, 0);
    for (int i = 0; i < PAIRS; i++)
        OK(run_pair(&m));
    /* the subscription is pinged now and then */
    ck_assert_int_lt(sleeps_of("rlock-watch") - watch, test_ms(MOST));
    ck_assert_int_lt(sleeps_of("rlock-sub") - sub, test_ms(MOST));
}
END_TEST

enum { THREADS = 1000, AT_ONCE = 10 };

struct visit {
    struct task task;
    rlock_mutex_t mutex;
    const void *record;
};

static int run_visit(void *arg)
{
    struct visit *v = arg;
    int rc = run_pair(&v->mutex);
    v->record = rlk_thread_record;
    return rc;
}

/* Threads come and go, AT_ONCE at a time. Returns how many records they had. */
static int visits(int threads)
{
    static const void *records[THREADS];
    static struct visit v[AT_ONCE];
    int count = 0;
    for (int i = 0; i < threads; i += AT_ONCE) {
        for (int j = 0; j < AT_ONCE; j++) {
            char name[16];
            snprintf(name, sizeof(name), "V%d", i + j);
            v[j].mutex = mutex_of(client, name);
            task_start(&v[j].task, run_visit, &v[j]);
        }
        for (int j = 0; j < AT_ONCE; j++) {
            int at = 0;
            OK(task_join(&v[j].task));
            ck_assert_ptr_nonnull(v[j].record);
            while (at < count && records[at] != v[j].record)
                at++;
            if (at == count)
                records[count++] = v[j].record;
        }
    }
    return count;
}

/* Bytes that are allocated now; 0 where that is not known. */
static size_t allocated(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

START_TEST(threads_that_come_and_go_leave_neither_records_nor_memory_behind)
{
    enum { FIRST = 400, FEW = 50, GROWTH_MAX = 64 * 1024, TOOLS_SCALE = 10 };
    bool slow = test_ms(1) >= TOOLS_SCALE; /* a tool has a heap of its own */
    visits(slow ? FEW : FIRST);            /* more names than are kept */
    size_t before = allocated();
    ck_assert_int_le(visits(slow ? 2 * FEW : THREADS), 2 * AT_ONCE);
    size_t after = allocated();
    ck_assert_uint_lt(after, before + GROWTH_MAX);
}
END_TEST

START_TEST(a_closed_client_without_a_password_leaves_no_memory_behind)
{
    enum { CLIENTS = 50, GROWTH_MAX = 64 * 1024 };
    size_t before = 0;
    for (int i = 0; i < 2 * CLIENTS; i++) {
        rlock_client_t *c = NULL;
        if (i == CLIENTS)
            before = allocated();
        OK(rlock_client_open(&c, server.url, NULL));
        rlock_mutex_t m = mutex_of(c, "N");
        OK(run_pair(&m));
        OK(in_thread(run_pair, &m));
        OK(rlock_client_close(c));
    }
    size_t after = allocated();
    ck_assert_uint_lt(after, before + GROWTH_MAX);
}
END_TEST

static TCase *tcase(Suite *s, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open, fixture_close);
    suite_add_tcase(s, tc);
    return tc;
}

int main(void)
{
    Suite *s = suite_create("mended_process");

    TCase *process = tcase(s, "process");
    tcase_add_test(process,
                   calls_that_name_a_client_work_in_a_child_whatever_the_parent_does);
    tcase_add_test(process,
                   a_hold_that_was_lost_is_reported_after_the_default_client_was_closed);
    tcase_add_test(
        process, a_hold_that_was_lost_is_reported_when_the_default_client_is_open_again);

    TCase *thrift = tcase(s, "thrift");
    tcase_add_test(thrift, many_holds_that_are_due_at_a_stopped_server_burn_no_time);
    tcase_add_test(thrift,
                   many_locks_of_a_thread_that_ends_at_a_stopped_server_burn_no_time);
    tcase_add_test(thrift, an_uncontended_pair_wakes_no_thread_of_the_library);
    tcase_add_test(thrift,
                   threads_that_come_and_go_leave_neither_records_nor_memory_behind);
    tcase_add_test(thrift, a_closed_client_without_a_password_leaves_no_memory_behind);
    return test_run_suite(s);
}
