/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G16 */
/*
 * Which process recovers (rules G9, G10, G16): recovering processes that are stopped,
 * end, give up or lack the permission; servers that are away or have lost their data;
 * other servers and hosts; kernels that report nothing. A client that begins looks at all
 * files, and so recovers without waiting for a lock: it comes through the proxy, which
 * holds its request. `self` is a client of this process, whose system calls can be made
 * to fail.
 */
#include "recoveryscene.h"

#include "client/client.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

enum { LEFT_MS = 3000 /* until a recovery that failed is tried again */ };

/* ---- the library's system calls, replaced here */

static atomic_bool no_inotify, opens_it_to_all;
static atomic_int inotify_calls;

int inotify_init1(int flags)
{
    inotify_calls++;
    if (opens_it_to_all)
        chmod(recovery_dir, 0777);
    if (no_inotify) {
        errno = EMFILE;
        return -1;
    }
    return (int)syscall(SYS_inotify_init1, flags);
}

/* ---- a recovering process that does not finish */

/* v holds "N" and is dead. w recovers it, but its request is held. */
static int w_buries_in_vain(void)
{
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    recovery_kill_v();
    int held = scene_hold_first(RLK_LOCK_BURY);
    recovery_start(&w, "other", "");
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    return held;
}

/* x has the lock, and still has it when the held request arrives. */
static void comes_too_late(int held)
{
    scene_let_go(held);
    recovery_is_safe(&x);
    scene_says(&x, "ok", "on t unlock m");
    scene_says(&x, "ok", "on t lock m");
}

/* rule: G10 */
START_TEST(closing_client_leaves_recovery_to_other_clients)
{
    int held = w_buries_in_vain();
    recovery_start(&x, "N", "");
    scene_worker_waits(&x, "N", 1);
    scene_says(&w, "ok", "destroy m");
    scene_says(&w, "ok", "close");
    recovery_has_it(&x);
    recovery_wait_files(1);
    comes_too_late(held);
}
END_TEST

/* rule: G10 */
START_TEST(child_of_a_recovering_process_retains_no_live_file)
{
    if (!test_can_fork("child_of_a_recovering_process_retains_no_live_file"))
        return;
    int held = w_buries_in_vain();
    scene_says(&w, "ok", "async c fork waitfree N %ld", test_ms(RECOVERY_LEASE_MS));
    ck_assert(scene_wait_mailboxes(2, SCENE_SOON_MS)); /* the child has its own client */
    scene_says(&w, "ok", "destroy m");
    scene_says(&w, "ok", "close");
    recovery_start(&x, "N", "");
    scene_says(&x, "ok", "on t lock m");
    comes_too_late(held);
}
END_TEST

/* rule: G14 */
START_TEST(leases_decide_while_the_recovering_process_is_stopped)
{
    scene_worker(&v, test_proxy_url(scene_proxy), SCENE_TIMES(.lease = test_ms(500)), "N",
                 "");
    scene_worker_does(&v, "lock");
    recovery_kill_v();
    int held = scene_hold_first(RLK_LOCK_BURY);
    recovery_start(&w, "other", "");
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    worker_stop(&w);
    recovery_start(&x, "N", "");
    scene_worker_does(&x, "lock");
    ck_assert_int_eq(test_rundir_count(recovery_dir), 3);
    worker_cont(&w);
    comes_too_late(held);
    recovery_wait_files(2);
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
    ck_assert_ptr_null(recovery_event(&w)); /* v held nothing any more */
}
END_TEST

/* rule: G10 */
START_TEST(work_of_a_killed_recovering_process_is_not_repeated)
{
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    scene_says(&v, "ok", "init m2 M");
    scene_says(&v, "ok", "lock m2");
    recovery_kill_v();
    int held = SCENE_RULE(RLK_LOCK_BURY, .on = TEST_ON_REQUEST, .action = TEST_HOLD,
                          .skip = 1, .count = 1);
    recovery_start(&w, "other", "");
    ck_assert(worker_news(&w, "event OWNER_DIED", SCENE_SOON_MS));
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    worker_kill(&w);
    recovery_start(&x, "N", "");
    scene_worker_does(&x, "lock");
    recovery_wait_files(1);
    ck_assert(worker_news(&x, "event OWNER_DIED", SCENE_SOON_MS));
    ck_assert_ptr_null(recovery_event(&x));
    ck_assert(!test_redis_exists(scene_redis, "M"));
    ck_assert_int_eq(scene_stat(&x, "burials"), 2); /* v, and w, which held nothing */
    comes_too_late(held);
}
END_TEST

/* rule: G10 */
START_TEST(recovery_continues_when_no_waiter_is_left)
{
    recovery_start(&w, "N", "");
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    int held = scene_hold_first(RLK_LOCK_BURY);
    recovery_kill_v();
    scene_says(&w, "ok", "async t timedlock m %ld", test_ms(800));
    ck_assert(test_proxy_wait_hits(scene_proxy, held, 1, SCENE_SOON_MS));
    scene_worker_ends(&w, "t", "ETIMEDOUT");
    scene_let_go(held);
    recovery_wait_files(1);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}
END_TEST

/* Whether no process has v's file locked. */
static bool is_left(void *arg)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    char path[512];
    (void)arg;
    snprintf(path, sizeof(path), "%s/%s", recovery_dir, recovery_uuid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_OFD_GETLK, &lock), 0);
    close(fd);
    return lock.l_type == F_UNLCK;
}

/* rule: G10 */
START_TEST(process_without_a_reply_leaves_recovery_to_others)
{
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    recovery_kill_v();
    int lost = SCENE_RULE(RLK_LOCK_BURY, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_worker(&w, test_proxy_url(scene_proxy), SCENE_TIMES(.command = test_ms(400)),
                 "other", "");
    ck_assert(test_proxy_wait_hits(scene_proxy, lost, 1, SCENE_SOON_MS));
    ck_assert(!is_left(NULL));
    ck_assert(test_wait_until(is_left, NULL, SCENE_SOON_MS));
    test_proxy_remove(scene_proxy, lost);
    recovery_start(&x, "N", "");
    scene_worker_does(&x, "lock");
    recovery_wait_files(2);
    ck_assert_int_eq(scene_stat(&x, "burials"), 1);
}
END_TEST

/* ---- servers */

/* Neither of the two may release the lock, and each learns it when the other one leaves
 * the file. */
/* rule: G10 */
START_TEST(process_without_permission_retries_at_intervals)
{
    char url[TEST_URL_MAX + 64];
    int64_t begun = test_now_ms();
    test_redis_do(scene_redis, "ACL", "SETUSER", "poor", "on", ">word", "~*", "&*",
                  "+@all", "-zrem");
    snprintf(url, sizeof(url), "redis://poor:word@127.0.0.1:%u",
             (unsigned)scene_server.port);
    recovery_start_at(&v, scene_server.tcp_url, "N", "");
    recovery_start_at(&w, url, "N", "");
    recovery_start_at(&x, url, "N", "");
    scene_says(&w, "ok", "logger");
    scene_says(&x, "ok", "logger");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    scene_worker_waits(&x, "N", 2);
    recovery_kill_v();
    ck_assert(
        worker_news(&w, "log 4 rlock: cannot release \"N\" of a dead", SCENE_SOON_MS));
    ck_assert(
        worker_news(&x, "log 4 rlock: cannot release \"N\" of a dead", SCENE_SOON_MS));
    test_redis_do(scene_redis, "ACL", "SETUSER", "poor", "+zrem");
    recovery_has_it(&w);
    long long most = 2 + (test_now_ms() - begun) / LEFT_MS;
    ck_assert_int_le(scene_stat(&w, "refusals"), most);
    ck_assert_int_le(scene_stat(&x, "refusals"), most);
    recovery_wait_files(2);
    test_redis_do(scene_redis, "ACL", "DELUSER", "poor");
}
END_TEST

static void cut_off(void)
{
    test_proxy_set_mode(scene_proxy, TEST_PROXY_DOWN);
    test_proxy_cut(scene_proxy, 0, false);
}

static bool has_failed(void *who)
{
    return scene_stat(who, "connect_failures") > 2;
}

static void v_dies_in_an_outage(void)
{
    recovery_start(&v, "N", "");
    recovery_start(&w, "N", "");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    cut_off();
    recovery_kill_v();
    ck_assert(test_wait_until(has_failed, &w, SCENE_SOON_MS));
    ck_assert_int_eq(test_rundir_count(recovery_dir), 2);
    recovery_still_waits(&w);
}

/* rule: G10 */
START_TEST(recovery_runs_when_an_unreachable_server_returns)
{
    v_dies_in_an_outage();
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    recovery_has_it(&w);
    recovery_wait_files(1);
    ck_assert_ptr_nonnull(worker_news(&w, "event OWNER_DIED", SCENE_SOON_MS));
}
END_TEST

/* rule: G10 */
START_TEST(lock_that_the_server_has_lost_causes_no_event)
{
    v_dies_in_an_outage();
    test_server_restart(&scene_server);
    test_redis_close(scene_redis);
    scene_redis = test_redis_connect(scene_server.path);
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    recovery_has_it(&w);
    recovery_wait_files(1);
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
    ck_assert_ptr_null(recovery_event(&w));
}
END_TEST

/* rule: G10 */
START_TEST(dead_client_of_another_database_is_left_alone)
{
    char url[TEST_URL_MAX + 16];
    snprintf(url, sizeof(url), "%s?db=1", test_proxy_url(scene_proxy));
    recovery_start_at(&v, url, "N", "");
    recovery_start(&w, "N", "");
    recovery_start(&x, "N", "");
    scene_worker_does(&v, "lock");
    scene_worker_does(&x, "lock");
    scene_worker_waits(&w, "N", 1);
    recovery_kill_v();
    worker_kill(&x);
    recovery_has_it(&w); /* w has looked at v's file as well by then */
    scene_says(&w, "ok", "on t unlock m");
    recovery_look(2);
    test_redis_do(scene_redis, "SELECT", "1");
    ck_assert(test_redis_exists(scene_redis, "N"));
    recovery_start_at(&x, url, "N", "");
    scene_says(&x, "ok", "on t lock m");
    recovery_wait_files(2);
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
    ck_assert_int_eq(scene_stat(&x, "burials"), 1);
}
END_TEST

/* rule: G10 */
START_TEST(waiter_on_another_host_is_granted_by_recovery_on_this_one)
{
    char elsewhere[256], env[300];
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", recovery_dir);
    snprintf(env, sizeof(env), "RLOCK_RUNDIR=%s", elsewhere);
    ck_assert_int_eq(mkdir(elsewhere, 0700), 0);
    const char *const its[] = { env, NULL };
    recovery_start(&v, "N", "");
    scene_worker_env(&x, test_proxy_url(scene_proxy), NULL, "N", "", its);
    scene_worker_does(&v, "lock");
    scene_worker_waits(&x, "N", 1);
    recovery_kill_v();
    ck_assert_int_eq(test_rundir_count(recovery_dir), 1); /* x does not see v's file */
    ck_assert_int_eq(test_rundir_count(elsewhere), 1);
    recovery_still_waits(&x);
    recovery_start(&w, "other", "");
    recovery_has_it(&x);
    recovery_wait_files(1);
}
END_TEST

/* rule: G10 */
START_TEST(busy_server_is_asked_at_intervals)
{
    enum { TIMES = 5, AT_LEAST_MS = 150 };
    recovery_start(&v, "N", "");
    recovery_start(&w, "N", "");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    int busy = SCENE_RULE(RLK_LOCK_BURY, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                          .count = TIMES, .text = "-BUSY Redis is busy\r\n");
    int64_t begun = test_now_ms();
    recovery_kill_v();
    recovery_has_it(&w);
    ck_assert_int_ge(test_now_ms() - begun, AT_LEAST_MS);
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, busy), TIMES);
}
END_TEST

/* More waiters are in front, and gone, than one run of a script looks at. */
/* rule: G11 */
START_TEST(recovery_continues_the_hand_over)
{
    enum { GONE = 200 };
    char key[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    const char *const elsewhere[] = { "RLOCK_RUNDIR=", NULL };
    recovery_start(&v, "N", "");
    scene_worker_env(&x, test_proxy_url(scene_proxy),
                     SCENE_TIMES(.presence = RECOVERY_PRESENCE_MS), "N", "", elsewhere);
    scene_worker_does(&v, "lock");
    scene_worker_waits(&x, "N", 1);
    scene_key(key, "N", "queue");
    for (int i = 1; i <= GONE; i++) {
        snprintf(id, sizeof(id), "00000000-0000-4000-8000-%012d:1:1:m3000", i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(scene_redis, "ZADD", key, ticket, id);
    }
    recovery_kill_v();
    recovery_start(&w, "other", "");
    recovery_has_it(&x);
    ck_assert_int_eq(scene_queue_len("N"), 0);
}
END_TEST

/* ---- what the kernel reports */

/* Causes as many notices as the kernel queues for a process that does not read them. */
static bool flood(void)
{
    enum { MOST = 100000 };
    char path[2][300], line[32] = "";
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
    if (file && !fgets(line, sizeof(line), file))
        line[0] = '\0';
    if (file)
        fclose(file);
    long most = atol(line);
    if (most <= 0 || most > MOST)
        return false;
    snprintf(path[0], sizeof(path[0]), "%s/a", recovery_dir);
    snprintf(path[1], sizeof(path[1]), "%s/b", recovery_dir);
    for (long i = 0; i < most + 10; i++) /* two by turns, because equal ones are merged */
        close(open(path[i % 2], O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return true;
}

/* rule: G9 */
START_TEST(all_live_files_are_checked_after_the_inotify_queue_overflowed)
{
    struct worker holder;
    recovery_start(&w, "N", "");
    recovery_start(&holder, "N", "");
    scene_worker_does(&holder, "lock");
    scene_worker_waits(&w, "N", 1);
    recovery_start(&x, "x", "");
    worker_kill(&x);
    recovery_wait_files(2); /* w looks, and has listed neither x nor v */
    recovery_start(&v, "M", "");
    scene_worker_does(&v, "lock");
    worker_stop(&w);
    bool is_full = flood();
    recovery_kill_v();
    worker_cont(&w);
    if (!is_full)
        printf("skipped: "
               "all_live_files_are_checked_after_the_inotify_queue_overflowed: "
               "it keeps too many\n");
    ck_assert(scene_wait_free("M", SCENE_SOON_MS));
    scene_says(&holder, "ok", "on t unlock m");
    recovery_has_it(&w);
    worker_end(&holder);
}
END_TEST

/* The lowest descriptor that the process could open. */
static rlim_t free_descriptor(pid_t pid)
{
    char path[64], target[8];
    for (unsigned fd = 0;; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)pid, fd);
        if (readlink(path, target, sizeof(target)) < 0)
            return fd;
    }
}

static bool is_told(void *who)
{
    const struct worker *worker = who;
    char path[64], target[64];
    for (unsigned fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%u", (int)worker->program.pid, fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        if (n > 0 && strncmp(target, "anon_inode:inotify", (size_t)n) == 0)
            return true;
    }
    return false;
}

/* This many descriptors are left, before or after inotify was asked to report deaths. */
static const struct shortage {
    unsigned left;
    bool is_told;
} shortages[] = { { 0, false }, { 0, true }, { 1, true } };

/* rule: G9 */
START_TEST(watching_starts_when_a_descriptor_becomes_free)
{
    struct rlimit before, few;
    recovery_start(&w, "N", "");
    recovery_start(&v, "N", "");
    scene_says(&w, "ok", "on t lock m"); /* opens its connections */
    scene_says(&w, "ok", "on t unlock m");
    scene_worker_does(&v, "lock");
    if (shortages[_i].is_told) {
        scene_worker_waits(&w, "N", 1);
        ck_assert(test_wait_until(is_told, &w, SCENE_SOON_MS));
        test_pause_ms(200); /* w has looked at all that it listed twice */
    }
    ck_assert_int_eq(prlimit(w.program.pid, RLIMIT_NOFILE, NULL, &before), 0);
    few = before;
    few.rlim_cur = free_descriptor(w.program.pid) + shortages[_i].left;
    ck_assert_int_eq(prlimit(w.program.pid, RLIMIT_NOFILE, &few, NULL), 0);
    if (!shortages[_i].is_told)
        scene_worker_waits(&w, "N", 1);
    recovery_kill_v();
    test_pause_ms(200);
    ck_assert_int_eq(test_rundir_count(recovery_dir), 2);
    ck_assert_int_eq(prlimit(w.program.pid, RLIMIT_NOFILE, &before, NULL), 0);
    recovery_has_it(&w);
}
END_TEST

/* ---- always */

static rlock_client_t *open_always_beside(unsigned others)
{
    rlock_clientattr_t attr;
    rlock_client_t *self = NULL;
    rlock_clientattr_init(&attr);
    ck_assert_int_eq(rlock_clientattr_setguard(&attr, RLOCK_GUARD_ALWAYS), 0);
    ck_assert_int_eq(rlock_client_open(&self, test_proxy_url(scene_proxy), &attr), 0);
    rlock_clientattr_destroy(&attr);
    ck_assert(scene_wait_mailboxes((long)(1 + others), SCENE_SOON_MS));
    return self;
}

static rlock_client_t *open_always(void)
{
    return open_always_beside(0);
}

static bool has_looked(void *arg)
{
    (void)arg;
    return inotify_calls > 0;
}

/* It tries each second. */
static bool has_tried_thrice(void *arg)
{
    (void)arg;
    return inotify_calls >= 3;
}

static void v_is_buried_by(rlock_client_t *self)
{
    rlock_stats_t stats;
    ck_assert(test_wait_until(has_looked, NULL, SCENE_SOON_MS));
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    recovery_kill_v();
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    recovery_wait_files(1);
    ck_assert_int_eq(rlock_client_getstats(self, &stats), 0);
    ck_assert_uint_eq(stats.burials, 1);
    ck_assert_int_eq(rlock_client_close(self), 0);
}

static void open_always_scene(void)
{
    recovery_open();
    no_inotify = opens_it_to_all = false;
    inotify_calls = 0;
}

/* rule: G16 */
START_TEST(standing_watch_needs_no_waiter)
{
    v_is_buried_by(open_always());
}
END_TEST

/* rule: G16 */
START_TEST(standing_watch_delivers_no_event)
{
    no_inotify = true;
    v_is_buried_by(open_always());
}
END_TEST

/* rule: G16 */
START_TEST(standing_watch_continues_when_it_is_set_again)
{
    no_inotify = true;
    rlock_client_t *self = open_always();
    ck_assert(test_wait_until(has_tried_thrice, NULL, SCENE_SOON_MS));
    no_inotify = false;
    inotify_calls = 0;
    v_is_buried_by(self);
}
END_TEST

/* rule: G16 */
START_TEST(standing_watch_follows_a_recreated_directory)
{
    char old[300];
    rlock_client_t *self = open_always();
    ck_assert(test_wait_until(has_looked, NULL, SCENE_SOON_MS));
    snprintf(old, sizeof(old), "%s.old", recovery_dir);
    inotify_calls = 0;
    ck_assert_int_eq(rename(recovery_dir, old), 0);
    ck_assert_int_eq(mkdir(recovery_dir, 0700), 0);
    ck_assert(test_wait_until(has_looked, NULL, SCENE_SOON_MS));
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    recovery_kill_v();
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    recovery_wait_files(0);
    ck_assert_int_eq(rlock_client_close(self), 0);
}
END_TEST

/* The lock is free; only the reply takes longer than a wait that leads to a look. */
/* rule: G9 */
START_TEST(process_without_a_waiter_does_not_watch)
{
    enum { DELAY_MS = 50 };
    rlock_client_t *self = scene_client(test_proxy_url(scene_proxy), NULL);
    rlock_mutex_t m;

    int slow = SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DELAY,
                          .delay_ms = DELAY_MS);
    scene_mutex(&m, self, "N");
    int64_t begun = test_now_ms();
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_ge(test_now_ms() - begun, DELAY_MS - 1);
    ck_assert_uint_ge(test_proxy_hits(scene_proxy, slow), 1);
    ck_assert_uint_eq(self->registry.waits_begun, 0); /* nor by the watchdog */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_mutex_destroy(&m), 0);
    ck_assert_int_eq(rlock_client_close(self), 0);
    ck_assert_int_eq(inotify_calls, 0);
}
END_TEST

static atomic_bool is_refused;

static void note_refusal(int level, const char *line, void *arg)
{
    (void)arg;
    if (level == LOG_WARNING && strstr(line, "rlock: crash guard stopped: ") &&
        strstr(line, "it is world-writable"))
        is_refused = true;
}

static bool has_heard(void *arg)
{
    (void)arg;
    return is_refused;
}

/* The directory is not looked at, and the log says so. When its mode is right again, v is
 * recovered. */
static void is_not_looked_at_until_mended(rlock_client_t *self)
{
    recovery_kill_v();
    ck_assert(test_wait_until(has_heard, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(test_rundir_count(recovery_dir), 2);
    ck_assert(test_redis_exists(scene_redis, "N"));
    opens_it_to_all = false;
    ck_assert_int_eq(chmod(recovery_dir, 0700), 0);
    recovery_wait_files(1);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_client_close(self), 0);
    rlock_setlogger(NULL, NULL, 0);
}

/* rule: G5 */
START_TEST(world_writable_directory_is_no_longer_watched)
{
    rlock_client_t *self = open_always();
    ck_assert(test_wait_until(has_looked, NULL, SCENE_SOON_MS));
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    is_refused = false;
    rlock_setlogger(note_refusal, NULL, LOG_WARNING);
    ck_assert_int_eq(chmod(recovery_dir, 0777), 0);
    is_not_looked_at_until_mended(self);
}
END_TEST

/* The directory becomes world-writable between the call of inotify and the first look. */
/* rule: G5 */
START_TEST(directory_that_became_world_writable_is_no_longer_watched)
{
    recovery_start(&v, "N", "");
    scene_worker_does(&v, "lock");
    is_refused = false;
    rlock_setlogger(note_refusal, NULL, LOG_WARNING);
    opens_it_to_all = true;
    rlock_client_t *self = open_always_beside(1);
    ck_assert(test_wait_until(has_heard, NULL, SCENE_SOON_MS)); /* even without a death */
    is_not_looked_at_until_mended(self);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery, processes");
    TCase *tc = scene_tcase(s, "vain", recovery_open, recovery_close);
    tcase_add_test(tc, closing_client_leaves_recovery_to_other_clients);
    tcase_add_test(tc, child_of_a_recovering_process_retains_no_live_file);
    tcase_add_test(tc, leases_decide_while_the_recovering_process_is_stopped);
    tcase_add_test(tc, work_of_a_killed_recovering_process_is_not_repeated);
    tcase_add_test(tc, recovery_continues_when_no_waiter_is_left);
    tcase_add_test(tc, process_without_a_reply_leaves_recovery_to_others);
    tc = scene_tcase(s, "servers", recovery_open, recovery_close);
    tcase_add_test(tc, process_without_permission_retries_at_intervals);
    tcase_add_test(tc, recovery_runs_when_an_unreachable_server_returns);
    tcase_add_test(tc, lock_that_the_server_has_lost_causes_no_event);
    tcase_add_test(tc, dead_client_of_another_database_is_left_alone);
    tcase_add_test(tc, waiter_on_another_host_is_granted_by_recovery_on_this_one);
    tcase_add_test(tc, busy_server_is_asked_at_intervals);
    tcase_add_test(tc, recovery_continues_the_hand_over);
    tc = scene_tcase(s, "kernel", recovery_open, recovery_close);
    tcase_add_test(tc, all_live_files_are_checked_after_the_inotify_queue_overflowed);
    tcase_add_loop_test(tc, watching_starts_when_a_descriptor_becomes_free, 0,
                        sizeof(shortages) / sizeof(shortages[0]));
    tc = scene_tcase(s, "always", open_always_scene, recovery_close);
    tcase_add_test(tc, standing_watch_needs_no_waiter);
    tcase_add_test(tc, standing_watch_delivers_no_event);
    tcase_add_test(tc, standing_watch_continues_when_it_is_set_again);
    tcase_add_test(tc, standing_watch_follows_a_recreated_directory);
    tcase_add_test(tc, process_without_a_waiter_does_not_watch);
    tcase_add_test(tc, world_writable_directory_is_no_longer_watched);
    tcase_add_test(tc, directory_that_became_world_writable_is_no_longer_watched);
    return test_run_suite(s);
}
