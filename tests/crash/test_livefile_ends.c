/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G6,G15 */
/* How a client's live file goes (rules G6, G15): at the close of the client and at the
 * end of its process, but not with a child. And the deaths of other processes do not wake
 * a process that waits for nothing (G9). */
#include "client/client.h" /* before the fixture, which has a variable of that name */

#include "fixture.h"

#include "forked.h"
#include "livefile_view.h"
#include "worker.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { SOON_MS = 10000, LONG_MS = 120000, QUIET_MS = 50, DEATHS = 20 };

static const char *dir;
static struct livefile_view file;

/* Replaces the library's system call: before Linux 5.14 it does not know this advice. */
static bool old_kernel;

int madvise(void *at, size_t len, int advice)
{
    if (old_kernel && advice == MADV_POPULATE_WRITE) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, len, advice);
}

/* Such a kernel does not keep a file locked for its mapping either: the library is shown
 * a file that is not locked. */
static bool forgets_locks;

int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (forgets_locks && path[0] == '.' && (flags & O_ACCMODE) == O_RDONLY)
        return (int)syscall(SYS_openat, at, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

/* The kernel may need long to close an inotify descriptor. */
static const char *_Atomic seen_at_close; /* of a client's live file */
static _Atomic bool was_there, was_closed;

static bool is_inotify(int fd)
{
    char link[64], path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(path, link, sizeof(link) - 1);
    link[len > 0 ? len : 0] = '\0';
    return strstr(link, "inotify") != NULL;
}

/* Passed on to the next one, as ThreadSanitizer wants to see each close. */
int close(int fd)
{
    static int (*_Atomic next)(int);
    if (!next)
        next = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (seen_at_close && is_inotify(fd)) {
        was_closed = true;
        was_there = livefile_view_exists(dir, seen_at_close);
    }
    return next(fd);
}

static void set_up(void)
{
    seen_at_close = NULL;
    old_kernel = forgets_locks = false;
    dir = test_rundir_own();
    file.fd = -1;
    fixture_open();
}

static void tear_down(void)
{
    fixture_close();
    if (file.fd >= 0)
        livefile_view_close(&file);
}

/* ---- how it goes */

/* rule: G15 */
START_TEST(close_removes_the_live_file)
{
    other = open_with("");
    ck_assert_int_eq(test_rundir_count(dir), 2);
    livefile_view_open(&file, dir, client->uuid);
    close_client(client);
    client = NULL;
    ck_assert(!livefile_view_exists(dir, file.uuid));
    ck_assert(!livefile_view_is_locked(&file));
    livefile_view_close(&file);
    livefile_view_open(&file, dir, NULL);
    ck_assert(livefile_view_is_locked(&file)); /* the other client's */
}
END_TEST

/* The release could not be sent: the lock is still held at the server. */
/* rule: G15 */
START_TEST(close_leaves_the_live_file_for_recovery_when_a_hold_is_abandoned)
{
    rlock_mutex_t m;
    struct actor holder;
    char parameters[64];
    long timeout = test_ms(100);

    old_kernel = _i == 1;
    other = open_with("");
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld",
             test_ms(LONG_MS), timeout);
    reopen_with(parameters);
    m = mutex_of(client, "n");
    livefile_view_open(&file, dir, client->uuid);
    actor_start(&holder);
    OK(actor_does(&holder, run_lock, &m));
    test_server_pause(&server);
    actor_end(&holder);
    close_client(client);
    client = NULL;
    test_server_resume(&server);
    ck_assert(livefile_view_exists(dir, file.uuid));
    ck_assert(!livefile_view_is_locked(&file));
    ck_assert_int_eq(livefile_view_inside(&file, "n"), RLK_INSIDE);
    m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(livefile_view_wait_gone(dir, file.uuid));
    ck_assert(livefile_view_wait_recoveries(other, 1));
}
END_TEST

static bool has_lost(void *arg)
{
    (void)arg;
    return stats_of(client).losses == 1;
}

/* A renewal was executed whose reply did not arrive: the server holds the lock for longer
 * than the client can know. */
/* rule: G15 */
START_TEST(close_leaves_the_live_file_for_recovery_when_a_lost_hold_may_still_exist)
{
    rlock_mutex_t m;
    struct actor holder;
    char parameters[64], longer[32];

    other = open_with("");
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld",
             test_ms(600), test_ms(100));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    livefile_view_open(&file, dir, client->uuid);
    actor_start(&holder);
    OK(actor_does(&holder, run_lock, &m));
    snprintf(longer, sizeof(longer), "%ld", test_ms(LONG_MS));
    test_redis_do(redis, "PEXPIRE", "n", longer);
    test_server_pause(&server);
    ck_assert(test_wait_until(has_lost, NULL, test_ms(LONG_MS)));
    actor_end(&holder);
    close_client(client);
    client = NULL;
    ck_assert(livefile_view_exists(dir, file.uuid));
    test_server_resume(&server);
    m = mutex_of(other, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(livefile_view_wait_recoveries(other, 1));
}
END_TEST

/* rule: G1 */
START_TEST(no_crash_guard_where_a_mapping_retains_no_file_lock)
{
    forgets_locks = true;
    reopen_with("");
    forgets_locks = false;
    ck_assert_int_eq(test_rundir_count(dir), 0);
    rlock_mutex_t m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static struct worker w;

/* Starts w as the only client. */
static void start_worker(void)
{
    char url[TEST_URL_MAX + 64];
    close_client(client);
    client = NULL;
    snprintf(url, sizeof(url), "%s?lease=%ld", server.url, test_ms(LONG_MS));
    worker_start(&w, url);
    ck_assert(worker_says(&w, "init m n", "ok"));
    livefile_view_open(&file, dir, NULL);
}

static void quit(const char *command)
{
    worker_send(&w, command);
    ck_assert_int_eq(test_program_wait(&w.program, SOON_MS), 0);
    worker_end(&w);
}

static const struct {
    const char *before[4];
    const char *end;
    bool held; /* at the server, after the end */
    bool file;
} ends[] = {
    { { NULL }, "quit", false, false },
    { { "lock m", "unlock m" }, "return", false, false },
    { { "lock m" }, "quit", false, false },
    { { "on t lock m" }, "quit", true, true },
    { { "on t lock m", "on t unlock m" }, "quit", false, false },
    { { "on t lock m", "end t" }, "quit", false, false },
    { { "lock m" }, "leave _exit", true, true },
    { { NULL }, "leave _exit", false, true },
    { { "lock m" }, "leave quick_exit", true, true },
};

/* rule: G15 */
START_TEST(exit_removes_the_live_file_unless_a_hold_is_left)
{
    start_worker();
    for (int i = 0; ends[_i].before[i]; i++)
        ck_assert(worker_says(&w, ends[_i].before[i], "ok"));
    quit(ends[_i].end);
    ck_assert(!livefile_view_is_locked(&file));
    ck_assert_int_eq(livefile_view_exists(dir, file.uuid), ends[_i].file);
    ck_assert_int_eq(test_redis_exists(redis, "n"), ends[_i].held);
    if (ends[_i].held)
        ck_assert_int_eq(livefile_view_inside(&file, "n"), RLK_INSIDE);
}
END_TEST

/* ---- a child */

static int is_another_client(struct forked_report *report, void *arg)
{
    rlock_mutex_t *m = arg;
    (void)report;
    MUST(rlock_mutex_unlock(m) == EPERM); /* the parent's, through its fast path */
    MUST(rlock_client_ping(client) == 0);
    MUST(test_rundir_count(dir) == 2);
    return 0;
}

static rlock_mutex_t robust_mutex(rlock_client_t *c, const char *name)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&m, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return m;
}

/* The memory that the parent writes its intents to does not exist in the child. */
/* rule: G6 */
START_TEST(forked_child_has_a_live_file_of_its_own)
{
    struct forked child;
    NEEDS_FORK("forked_child_has_a_live_file_of_its_own");
    reopen_with("?retain=60000");
    rlock_mutex_t m = robust_mutex(client, "n");
    for (int i = 0; i < 3; i++) {
        OK(rlock_mutex_lock(&m));
        if (i < 2)
            OK(rlock_mutex_unlock(&m));
    }
    livefile_view_open(&file, dir, NULL);
    forked_start_by(&child, fork, is_another_client, &m,
                    _i == 0 ? FORKED_KILL : FORKED_VANISH);
    ck_assert_int_eq(forked_line(&child, SOON_MS), 0);
    ck_assert(forked_ends(&child, SOON_MS));
    ck_assert(livefile_view_is_locked(&file));
    ck_assert_int_eq(livefile_view_inside(&file, "n"), RLK_INSIDE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(livefile_view_inside(&file, "n"), RLK_INSIDE_LEFT);
}
END_TEST

/* ---- a process that waits for nothing is not woken */

static int inotify_count(void)
{
    char target[64];
    int count = 0;
    DIR *fds = opendir("/proc/self/fd");
    const struct dirent *entry;

    while ((entry = readdir(fds)) != NULL) {
        ssize_t n = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        count += strstr(target, "inotify") != NULL;
    }
    closedir(fds);
    return count;
}

static bool has_inotify(void *count)
{
    return inotify_count() == *(int *)count;
}

static bool wait_inotify(int count)
{
    return test_wait_until(has_inotify, &count, SOON_MS);
}

/* rule: G9 */
START_TEST(inotify_exists_while_a_thread_waits_and_shortly_after)
{
    struct task task;
    rlock_mutex_t m = mutex_of(client, "n"), theirs;
    other = open_with("");
    theirs = mutex_of(other, "n");
    OK(rlock_mutex_lock(&theirs));
    ck_assert_int_eq(inotify_count(), 0);
    task_start(&task, run_pair, &m);
    ck_assert(wait_inotify(1));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
    ck_assert(wait_inotify(0));
}
END_TEST

static long long wakes(void)
{
    char path[64], text[256];
    long long count = -1;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;

    while ((entry = readdir(tasks)) != NULL) {
        bool mine = false;
        snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", entry->d_name);
        FILE *status = fopen(path, "re");
        while (status && fgets(text, sizeof(text), status)) {
            mine = mine || strcmp(text, "Name:\trlock-watch\n") == 0;
            if (mine)
                (void)sscanf(text, "voluntary_ctxt_switches: %lld", &count);
        }
        if (status)
            fclose(status);
    }
    closedir(tasks);
    ck_assert_int_ge(count, 0);
    return count;
}

static bool no_more_wakes(void *before)
{
    return wakes() == *(long long *)before;
}

/* Whether the process has done all that it does by itself. */
static bool is_at_rest(void *before)
{
    *(long long *)before = wakes();
    return test_stays(no_more_wakes, before, QUIET_MS);
}

static void make_many(struct worker dying[2])
{
    char command[TEST_URL_MAX + 8];

    snprintf(command, sizeof(command), "open %s", server.url);
    for (int i = 0; i < 2; i++) {
        worker_start(&dying[i], NULL);
        for (int n = 0; n < DEATHS / 2; n++)
            ck_assert(worker_says(&dying[i], command, "ok"));
    }
    ck_assert_int_eq(test_rundir_count(dir), DEATHS + 1);
    for (int i = 0; i < 2; i++)
        worker_stop(&dying[i]); /* so that neither recovers the other */
}

static void kill_many(struct worker dying[2])
{
    for (int i = 0; i < 2; i++) {
        worker_kill(&dying[i]);
        worker_end(&dying[i]);
    }
}

static bool were_woken(void *before)
{
    return wakes() > *(long long *)before;
}

START_TEST(deaths_of_others_wake_only_waiting_processes)
{
    enum { SLEEP_MS = 1000, NEAR_MS = 20 }; /* it wakes by itself once in SLEEP_MS */
    struct worker dying[2];
    long long before;
    make_many(dying);
    ck_assert(test_wait_until(is_at_rest, &before, SOON_MS));
    ck_assert(test_wait_until(were_woken, &before, SOON_MS));
    before = wakes();
    int64_t begin = test_now_ms();
    kill_many(dying);
    test_pause_ms(QUIET_MS);
    long long more = wakes() - before;
    ck_assert_int_le(more, (test_now_ms() - begin + NEAR_MS) / SLEEP_MS);
    ck_assert_int_eq(test_rundir_count(dir), DEATHS + 1);
}
END_TEST

static rlock_client_t *open_always(void)
{
    rlock_clientattr_t attr;
    rlock_client_t *c;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setguard(&attr, RLOCK_GUARD_ALWAYS));
    OK(rlock_client_open(&c, server.url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    return c;
}

START_TEST(standing_watch_is_woken)
{
    long long before;
    struct worker dying[2];
    close_client(client);
    client = open_always();
    ck_assert(wait_inotify(1));
    make_many(dying);
    ck_assert(test_wait_until(is_at_rest, &before, SOON_MS));
    kill_many(dying);
    ck_assert(livefile_view_wait_recoveries(client, DEATHS));
    ck_assert(test_wait_until(were_woken, &before, SOON_MS)); /* counted when asleep */
    ck_assert(test_rundir_wait(dir, 1, SOON_MS));
    ck_assert_int_eq(inotify_count(), 1);
}
END_TEST

/* rule: G9 */
START_TEST(closing_the_client_closes_its_inotify)
{
    close_client(client);
    client = open_always();
    ck_assert(wait_inotify(1));
    close_client(client);
    client = NULL;
    ck_assert_int_eq(inotify_count(), 0);
}
END_TEST

/* rule: G15 */
START_TEST(live_file_goes_before_a_close_that_may_take_long)
{
    char uuid[sizeof(client->uuid)];
    close_client(client);
    client = open_always();
    ck_assert(wait_inotify(1));
    memcpy(uuid, client->uuid, sizeof(uuid));
    ck_assert(livefile_view_exists(dir, uuid));
    seen_at_close = uuid;
    close_client(client);
    client = NULL;
    seen_at_close = NULL;
    ck_assert(was_closed && !was_there);
}
END_TEST

/* Most waits are for a holder that lives. */
START_TEST(a_short_wait_begins_nothing)
{
    enum { TRIES = 100, SHORT_US = 8000 };
    struct task task;
    other = open_with("?guard=0"); /* this client does not watch either */
    rlock_mutex_t m, theirs = mutex_of(other, "n");

    for (int i = 0; i < TRIES; i++) { /* until one wait was this short */
        reopen_with("");
        m = mutex_of(client, "n");
        OK(rlock_mutex_lock(&theirs));
        task_start(&task, run_pair, &m);
        ck_assert(wait_size("rlock:{n}:queue", 1));
        OK(rlock_mutex_unlock(&theirs));
        OK(task_join(&task));
        rlock_stats_t stats = stats_of(client);
        ck_assert_uint_eq(stats.wait_time.count, 1);
        if (stats.wait_time.max_us > SHORT_US)
            continue;
        ck_assert_int_eq(inotify_count(), 0);
        return;
    }
    printf("skipped: a_short_wait_begins_nothing: no wait was short\n");
}
END_TEST

/* ---- */

static TCase *tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("livefile ends");
    TCase *tc = tcase(suite, "ends");
    tcase_add_test(tc, no_crash_guard_where_a_mapping_retains_no_file_lock);
    tcase_add_test(tc, close_removes_the_live_file);
    tcase_add_loop_test(
        tc, close_leaves_the_live_file_for_recovery_when_a_hold_is_abandoned, 0, 2);
    tcase_add_test(
        tc, close_leaves_the_live_file_for_recovery_when_a_lost_hold_may_still_exist);
    tcase_add_loop_test(tc, exit_removes_the_live_file_unless_a_hold_is_left, 0,
                        sizeof(ends) / sizeof(ends[0]));
    tcase_add_loop_test(tc, forked_child_has_a_live_file_of_its_own, 0, 2);
    tc = tcase(suite, "wakes");
    tcase_add_test(tc, inotify_exists_while_a_thread_waits_and_shortly_after);
    tcase_add_test(tc, live_file_goes_before_a_close_that_may_take_long);
    tcase_add_test(tc, closing_the_client_closes_its_inotify);
    tcase_add_test(tc, deaths_of_others_wake_only_waiting_processes);
    tcase_add_test(tc, standing_watch_is_woken);
    tcase_add_test(tc, a_short_wait_begins_nothing);
    return test_run_suite(suite);
}
