/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G9,G10 */
/*
 * Deaths that are found and recovered though something fails (rules G9, G10, G12): the
 * kernel reports none, the recovering process dies, is refused or finds the server gone,
 * or requests come late. Leases are too long to end within a test. `v` is killed; `w`
 * waits. A process that begins before v has not listed v's file, and so has to find it
 * later. `self` is a client of this process, whose system calls can be made to fail.
 */
#include "scene.h"

#include "crash/livefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LONG_MS = 120000, MARK_AT = RLK_LIVEFILE_HEADER - 64, LINE = 64, QUIET_MS = 50 };

static struct worker v, w, x;
static const char *dir;

/* ---- the library's system calls, replaced here */

static atomic_bool no_inotify, no_watch;
static atomic_int inotify_calls, watches_refused;

int inotify_init1(int flags)
{
    inotify_calls++;
    if (no_inotify) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_inotify_init1, flags);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (no_watch) {
        watches_refused++;
        errno = ENOSPC;
        return -1;
    }
    return (int)syscall(SYS_inotify_add_watch, fd, path, mask);
}

/* ---- the scene */

static void open_scene(void)
{
    scene_open();
    dir = test_rundir_own();
    memset(&v, 0, sizeof(v));
    memset(&w, 0, sizeof(w));
    memset(&x, 0, sizeof(x));
    no_inotify = no_watch = false;
}

static void close_scene(void)
{
    test_proxy_remove_all(scene_proxy);
    worker_end(&v);
    worker_end(&w);
    worker_end(&x);
    scene_close();
}

/* Starts a worker that waits for a reply for as long as a test may hold one. */
static void start_at(struct worker *who, const char *url, const char *name)
{
    scene_worker(who, url,
                 SCENE_TIMES(.lease = test_ms(LONG_MS), .command = test_ms(LONG_MS)),
                 name, "");
}

static void start(struct worker *who)
{
    start_at(who, scene_server.url, "N");
}

static void *lock_it(void *mutex)
{
    return (void *)(intptr_t)rlock_mutex_lock(mutex);
}

/* v holds "N"; a thread of this process waits for it, and gets it when v is killed.
 * `meanwhile` runs while the thread waits, `then` after that. */
static void wait_here(void (*meanwhile)(void), void (*then)(void))
{
    rlock_client_t *self = scene_client(scene_server.url, NULL);
    rlock_mutex_t m;
    pthread_t thread;
    void *rc;

    scene_mutex(&m, self, "N");
    start(&v);
    scene_says(&v, "ok", "on t lock m");
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_it, &m), 0);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    if (meanwhile)
        meanwhile();
    worker_kill(&v);
    ck_assert_int_eq(pthread_join(thread, &rc), 0);
    ck_assert_ptr_null(rc);
    /* the hold of that thread, which has ended */
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    if (then)
        then();
    ck_assert_int_eq(rlock_client_close(self), 0);
}

/* ---- looking */

static bool has_looked(void *arg)
{
    (void)arg;
    return inotify_calls > 0;
}

static void until_it_looks(void)
{
    ck_assert(test_wait_until(has_looked, NULL, SCENE_SOON_MS));
}

/* rule: G9 */
START_TEST(files_are_polled_in_turn_without_inotify)
{
    no_inotify = true;
    wait_here(until_it_looks, NULL);
}
END_TEST

/* rule: G9 */
START_TEST(files_are_polled_in_turn_when_no_watch_can_be_added)
{
    no_watch = true;
    watches_refused = 0;
    wait_here(until_it_looks, NULL);
    ck_assert_int_lt(watches_refused, 100); /* the attempts are limited */
}
END_TEST

static void remake_directory(void)
{
    char command[512];
    until_it_looks();
    snprintf(command, sizeof(command),
             "mv %s %s.old && mkdir -m 700 %s && mv %s.old/* %s", dir, dir, dir, dir,
             dir);
    ck_assert_int_eq(system(command), 0);
}

/* rule: G9 */
START_TEST(recreated_directory_is_watched_again)
{
    wait_here(remake_directory, NULL);
}
END_TEST

/* Counts the inotify descriptors of this process. */
static int count_inotify(void)
{
    char path[64], target[64];
    int count = 0;
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        count += strcmp(target, "anon_inode:inotify") == 0;
    }
    return count;
}

static void has_one(void)
{
    until_it_looks();
    ck_assert_int_eq(count_inotify(), 1);
}

/* The kernel reports the death of a process that began after the first look. */
static void one_dies_meanwhile(void)
{
    until_it_looks();
    start_at(&w, scene_server.url, "other");
    scene_says(&w, "ok", "on t lock m");
    worker_kill(&w);
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    ck_assert(!test_redis_exists(scene_redis, "other"));
}

/* rule: G9 */
START_TEST(death_is_reported_by_inotify)
{
    wait_here(one_dies_meanwhile, NULL);
}
END_TEST

static bool has_none(void *arg)
{
    (void)arg;
    return count_inotify() == 0;
}

static void soon_has_none(void)
{
    ck_assert(test_wait_until(has_none, NULL, SCENE_SOON_MS));
}

/* rule: G9 */
START_TEST(process_without_a_waiter_gets_no_event)
{
    wait_here(has_one, soon_has_none);
}
END_TEST

/* ---- recovery */

/* rule: G10 */
START_TEST(another_process_continues_when_the_recovering_one_is_killed)
{
    start_at(&x, test_proxy_url(scene_proxy), "N");
    start_at(&w, test_proxy_url(scene_proxy), "N");
    start_at(&v, test_proxy_url(scene_proxy), "N");
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    int held = scene_hold_first(RLK_LOCK_BURY);
    worker_kill(&v);
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    scene_worker_waits(&x, "N", 2);
    worker_kill(&w);
    scene_worker_ends(&x, "t", "ok");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&x, "burials"), 2);
    scene_let_go(held); /* it finds nothing to release */
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* rule: G10 */
START_TEST(silent_server_is_asked_when_it_answers_again)
{
    start(&w);
    start(&v);
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    test_server_pause(&scene_server);
    worker_kill(&v);
    test_pause_ms(test_ms(100));
    test_server_resume(&scene_server);
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* rule: G12 */
START_TEST(requests_of_a_dead_client_are_refused_as_long_as_they_may_travel)
{
    enum { ITS_MS = 60000, OWN_MS = 1000 };
    char key[SCENE_KEY_MAX], id[SCENE_ID_MAX];
    const char *url = scene_server.url;
    scene_worker(&w, url, SCENE_TIMES(.command = test_ms(OWN_MS)), "N", "");
    scene_worker(&v, url, SCENE_TIMES(.command = test_ms(ITS_MS)), "N", "");
    scene_says(&v, "ok", "on t lock m");
    ck_assert(scene_holder("N", id));
    id[RLK_UUID_LEN] = '\0';
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    scene_key(key, "N", "cancelled");
    const char *end = test_redis_str(scene_redis, "ZSCORE", key, id);
    ck_assert_ptr_nonnull(end);
    ck_assert_int_gt(atoll(end), scene_now_ms() + test_ms(ITS_MS));
    scene_says(&w, "ok", "on t unlock m");
}
END_TEST

/* rule: G10 */
START_TEST(lost_recovery_reply_is_requested_again)
{
    start_at(&v, test_proxy_url(scene_proxy), "N");
    scene_says(&v, "ok", "on t lock m");
    scene_worker(&w, test_proxy_url(scene_proxy), SCENE_TIMES(.lease = test_ms(LONG_MS)),
                 "N", ""); /* w asks again after a second */
    scene_worker_waits(&w, "N", 1);
    scene_drop_replies(RLK_LOCK_BURY, 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
}
END_TEST

/* rule: G10 */
START_TEST(server_without_the_recovery_script_is_sent_it)
{
    start(&w);
    start(&v);
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    test_redis_do(scene_redis, "SCRIPT", "FLUSH");
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* rule: G10 */
START_TEST(server_without_memory_runs_the_recovery)
{
    start(&w);
    start(&v);
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    test_redis_do(scene_redis, "CONFIG", "SET", "maxmemory", "1");
    worker_kill(&v);
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "CONFIG", "SET", "maxmemory", "0");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* A process without the permission leaves the file to processes that have it. */
/* rule: G10 */
START_TEST(refused_process_leaves_the_live_file_to_others)
{
    char url[TEST_URL_MAX + 64];
    const char *news;
    test_redis_do(scene_redis, "ACL", "SETUSER", "poor", "on", ">word", "~*", "&*",
                  "+@all", "-zrem");
    snprintf(url, sizeof(url), "redis://poor:word@127.0.0.1:%u",
             (unsigned)scene_server.port);
    start_at(&x, scene_server.tcp_url, "N");
    start_at(&w, url, "N");
    start_at(&v, scene_server.tcp_url, "N");
    scene_says(&w, "ok", "logger");
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    do
        news = worker_news(&w, "log 4", SCENE_SOON_MS);
    while (news && !strstr(news, "of a dead process at "));
    ck_assert_ptr_nonnull(news);
    ck_assert_int_eq(test_rundir_count(dir), 3);
    /* nor does it try again and again, though inotify reports that it closed the file */
    while ((news = worker_news(&w, "log 4", QUIET_MS)) != NULL)
        ck_assert_ptr_null(strstr(news, "of a dead process"));
    scene_says(&x, "ok", "async t lock m");
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&x, "burials"), 1);
    scene_worker_ends(&w, "t", "ok");
    test_redis_do(scene_redis, "ACL", "DELUSER", "poor");
}
END_TEST

/* rule: G12 */
START_TEST(request_sent_before_a_death_comes_too_late)
{
    start_at(&v, test_proxy_url(scene_proxy), "ghost");
    start_at(&w, test_proxy_url(scene_proxy), "N");
    start_at(&x, test_proxy_url(scene_proxy), "N");
    scene_says(&x, "ok", "on t lock m");
    int held = scene_hold_first(RLK_MUTEX_ACQUIRE);
    scene_says(&v, "ok", "async t lock m");
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    worker_kill(&v);
    scene_says(&w, "ok", "async t timedlock m %ld", test_ms(LONG_MS));
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    scene_let_go(held);
    ck_assert(!test_redis_exists(scene_redis, "ghost"));
    scene_says(&x, "ok", "on t unlock m");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* ---- files of others */

/* The file of the client that is to die, which is the only one. */
static void file_of_the_dead(char path[512])
{
    DIR *list = opendir(dir);
    const struct dirent *entry;
    path[0] = '\0';
    while ((entry = readdir(list)) != NULL)
        if (strlen(entry->d_name) == 36)
            snprintf(path, 512, "%s/%s", dir, entry->d_name);
    closedir(list);
    ck_assert_str_ne(path, "");
}

static void mark_of(const char *path, char mark[LINE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pread(fd, mark, LINE, MARK_AT), LINE);
    close(fd);
    mark[LINE - 1] = '\0';
}

static bool is_marked(void *path)
{
    char mark[LINE];
    mark_of(path, mark);
    return strncmp(mark, "dead ", 5) == 0;
}

/* Makes the mark on the dead client's file look more than two days old. */
static void set_back(const char *path)
{
    char mark[LINE] = "";
    snprintf(mark, sizeof(mark), "dead %lld\n", 1600000000LL);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, mark, sizeof(mark), MARK_AT), (ssize_t)sizeof(mark));
    close(fd);
}

/* rule: G10 */
START_TEST(live_file_of_another_server_is_left_to_its_clients_for_two_days)
{
    char url[TEST_URL_MAX + 16], path[512], mark[LINE];
    snprintf(url, sizeof(url), "%s?db=1", scene_server.url);
    start(&v);
    file_of_the_dead(path);
    worker_kill(&v);
    start_at(&x, url, "other"); /* x looks when it begins */
    ck_assert(test_wait_until(is_marked, path, SCENE_SOON_MS));
    mark_of(path, mark);
    ck_assert_int_gt(atoll(mark + 5), 1600000000);
    worker_end(&x);
    set_back(path);
    start_at(&x, url, "other");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* No client may release the lock: the attempts do not go on for ever. */
/* rule: G10 */
START_TEST(refused_live_file_is_removed_after_two_days)
{
    char url[TEST_URL_MAX + 64], path[512];
    test_redis_do(scene_redis, "ACL", "SETUSER", "poor", "on", ">word", "~*", "&*",
                  "+@all", "-zrem");
    snprintf(url, sizeof(url), "redis://poor:word@127.0.0.1:%u",
             (unsigned)scene_server.port);
    start_at(&v, scene_server.tcp_url, "N");
    file_of_the_dead(path);
    scene_says(&v, "ok", "on t lock m");
    worker_kill(&v);
    start_at(&x, url, "other");
    ck_assert(test_wait_until(is_marked, path, SCENE_SOON_MS));
    ck_assert(test_redis_exists(scene_redis, "N"));
    worker_end(&x);
    set_back(path);
    start_at(&x, url, "other");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    ck_assert_int_ne(access(path, F_OK), 0);
    test_redis_do(scene_redis, "ACL", "DELUSER", "poor");
}
END_TEST

static bool is_gone(void *path)
{
    return access(path, F_OK) != 0;
}

static void put_file(const char *name, const char *text, bool old)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    if (old) {
        const struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
        ck_assert_int_eq(futimens(fd, times), 0);
    }
    close(fd);
}

#define FOREIGN "11111111-2222-4333-8444-555555555555"
#define LATER "11111111-2222-4333-8444-666666666666"
#define LINKED "11111111-2222-4333-8444-777777777777"
#define PIPE "11111111-2222-4333-8444-888888888888"
#define BEGUN ".11111111-2222-4333-8444-999999999999"
#define BEGINS ".11111111-2222-4333-8444-aaaaaaaaaaaa"

/* rule: G3 */
START_TEST(foreign_files_are_left_alone)
{
    const char *const stay[] = { "README", FOREIGN, LATER, LINKED, PIPE, BEGINS };
    char path[256];
    put_file("README", "ours\n", true);
    put_file(FOREIGN, "anything\n", true);
    put_file(LATER, "rlock-guard 2 " LATER "\nserver x\n", true);
    put_file(BEGUN, "", true);
    put_file(BEGINS, "", false);
    snprintf(path, sizeof(path), "%s/%s", dir, LINKED);
    ck_assert_int_eq(symlink("README", path), 0);
    snprintf(path, sizeof(path), "%s/%s", dir, PIPE);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    start(&w);
    snprintf(path, sizeof(path), "%s/%s", dir, BEGUN);
    ck_assert(test_wait_until(is_gone, path, SCENE_SOON_MS));
    start(&v);
    scene_says(&v, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    for (size_t i = 0; i < sizeof(stay) / sizeof(stay[0]); i++) {
        struct stat st;
        snprintf(path, sizeof(path), "%s/%s", dir, stay[i]);
        ck_assert_int_eq(lstat(path, &st), 0);
    }
}
END_TEST

/* Files that belong to no client, and cost only looks. */
static void put_many(int count)
{
    char name[64];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "11111111-2222-4333-8444-%012d", i);
        put_file(name, "anything\n", true);
    }
}

static bool no_more_calls(void *before)
{
    return inotify_calls == *(int *)before;
}

/* Before, an attempt was made each second. */
static bool tries_no_more(void *arg)
{
    int before = inotify_calls;
    (void)arg;
    return test_stays(no_more_calls, &before, 2500);
}

static void soon_tries_no_more(void)
{
    ck_assert(test_wait_until(tries_no_more, NULL, SCENE_SOON_MS));
}

/* rule: G9 */
START_TEST(polling_in_turn_ends_when_no_waiter_is_left)
{
    put_many(40);
    no_inotify = true;
    wait_here(until_it_looks, soon_tries_no_more);
}
END_TEST

static bool still_has_one(void *arg)
{
    (void)arg;
    return count_inotify() == 1;
}

/* The next listing comes after 400 times 400 times 200 us: half a minute. */
static void still_looks(void)
{
    ck_assert(test_stays(still_has_one, NULL, 4000));
}

/* rule: G9 */
START_TEST(long_listings_are_repeated_rarely)
{
    put_many(400);
    wait_here(until_it_looks, still_looks);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery, faults");
    TCase *tc = scene_tcase(s, "looking", open_scene, close_scene);
    tcase_add_test(tc, files_are_polled_in_turn_without_inotify);
    tcase_add_test(tc, files_are_polled_in_turn_when_no_watch_can_be_added);
    tcase_add_test(tc, recreated_directory_is_watched_again);
    tcase_add_test(tc, death_is_reported_by_inotify);
    tcase_add_test(tc, process_without_a_waiter_gets_no_event);
    tcase_add_test(tc, polling_in_turn_ends_when_no_waiter_is_left);
    tcase_add_test(tc, long_listings_are_repeated_rarely);
    tc = scene_tcase(s, "recovery", open_scene, close_scene);
    tcase_add_test(tc, another_process_continues_when_the_recovering_one_is_killed);
    tcase_add_test(tc, silent_server_is_asked_when_it_answers_again);
    tcase_add_test(tc, requests_of_a_dead_client_are_refused_as_long_as_they_may_travel);
    tcase_add_test(tc, lost_recovery_reply_is_requested_again);
    tcase_add_test(tc, server_without_the_recovery_script_is_sent_it);
    tcase_add_test(tc, server_without_memory_runs_the_recovery);
    tcase_add_test(tc, refused_process_leaves_the_live_file_to_others);
    tcase_add_test(tc, request_sent_before_a_death_comes_too_late);
    tc = scene_tcase(s, "files", open_scene, close_scene);
    tcase_add_test(tc, live_file_of_another_server_is_left_to_its_clients_for_two_days);
    tcase_add_test(tc, refused_live_file_is_removed_after_two_days);
    tcase_add_test(tc, foreign_files_are_left_alone);
    return test_run_suite(s);
}
