/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of a dead process become free at once on its host (rules G9 to G13, G15). All
 * leases are too long to end within a test: workers are killed while others wait. `v` is
 * killed; `w` waits.
 */
#include "scene.h"

#include "crash/livefile.h"
#include "program.h"
#include "state/intent.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG_MS = 120000, MANY = 20, EVERY_MS = 100 };

static struct worker v, w, x;
static const char *dir;

static void open_scene(void)
{
    scene_open();
    dir = test_rundir_own();
    memset(&v, 0, sizeof(v));
    memset(&w, 0, sizeof(w));
    memset(&x, 0, sizeof(x));
}

static void close_scene(void)
{
    worker_end(&v);
    worker_end(&w);
    worker_end(&x);
    scene_close();
}

static void start_as(struct worker *who, const char *options)
{
    scene_worker(who, scene_server.url, SCENE_TIMES(.lease = test_ms(LONG_MS)), "N",
                 options);
}

/* Starts w, and v, which is killed, both with this kind of handle. w looks at all files
 * when it begins; v begins later, so that w has to find its file in another way. */
static void start_two(const char *options)
{
    start_as(&w, options);
    start_as(&v, options);
}

/* The new lease has just begun: the holder did not wait for the end of the old one. */
static void assert_lease_is_long(void)
{
    ck_assert_int_gt(scene_pttl("N"), test_ms(LONG_MS) / 2);
}

static bool is_kept(void *id)
{
    scene_says(&v, "ok", "on t lock m");
    scene_says(&v, "ok", "on t unlock m");
    return scene_holder("N", id);
}

/* v retains the lock, and no thread is inside. This works as soon as v's mailbox is in
 * use. */
static void keep_in_v(const char *options)
{
    char id[SCENE_ID_MAX];
    worker_start(&v, NULL);
    scene_says(&v, "ok 1", "open %s retain=%ld lease=%ld", scene_server.url,
               test_ms(LONG_MS), test_ms(LONG_MS));
    scene_says(&v, "ok", "init m N %s", options);
    ck_assert(test_wait_until(is_kept, id, SCENE_SOON_MS));
}

/* ---- a holder */

static void next_has_it(const char *options, const char *lock, const char *wait)
{
    start_two(options);
    scene_worker_does(&v, lock);
    assert_lease_is_long();
    scene_worker_queues(&w, "N", wait);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    scene_says(&w, "ok SAFE", "on t state m");
    scene_says(&w, "ok", "on t unlock m");
    scene_nothing_is_left("N");
}

START_TEST(next_has_the_mutex_of_a_killed_one_at_once)
{
    next_has_it("", "lock", "lock");
}
END_TEST

START_TEST(next_has_the_fair_lock_of_a_killed_one_at_once)
{
    next_has_it("fair=1", "lock", "lock");
}
END_TEST

START_TEST(next_writes_after_a_killed_writer)
{
    next_has_it("rwlock=1", "lock", "lock");
}
END_TEST

START_TEST(next_reads_after_a_killed_writer)
{
    next_has_it("rwlock=1", "lock", "rdlock");
}
END_TEST

START_TEST(next_writes_after_a_killed_reader)
{
    next_has_it("rwlock=1", "rdlock", "lock");
}
END_TEST

/* rule: G11 */
START_TEST(a_killed_reader_takes_nobody_elses_read_with_it)
{
    start_as(&x, "rwlock=1");
    start_two("rwlock=1");
    scene_worker_does(&v, "rdlock");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&w, "N", "lock");
    worker_kill(&v);
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS)); /* recovered */
    ck_assert(!worker_news(&w, "done t", 0));
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

START_TEST(token_of_the_next_is_greater)
{
    start_two("fencing=1");
    scene_worker_does(&v, "lock");
    long long before = worker_number(&v, "on t token m");
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    ck_assert_int_gt(worker_number(&w, "on t token m"), before);
}
END_TEST

START_TEST(holder_that_was_dead_before_anybody_came_is_found)
{
    start_two("");
    scene_worker_does(&v, "lock");
    worker_kill(&v);
    ck_assert_int_eq(test_rundir_count(dir),
                     2); /* w does not wait, so it does not look */
    scene_says(&w, "ok", "on t lock m");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
}
END_TEST

static bool can_be_taken(void *arg)
{
    (void)arg;
    return worker_says(&x, "on t trylock m", "ok");
}

/* rule: G9 */
START_TEST(new_client_recovers_what_an_earlier_process_left)
{
    start_as(&v, "");
    scene_worker_does(&v, "lock");
    worker_kill(&v);
    start_as(&x, "");
    ck_assert(test_wait_until(can_be_taken, NULL, SCENE_SOON_MS));
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
}
END_TEST

START_TEST(wait_for_a_lock_to_be_free_ends)
{
    start_two("");
    scene_worker_does(&v, "lock");
    scene_says(&w, "ok", "async t waitfree N %ld", test_ms(LONG_MS));
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

START_TEST(retained_lock_of_a_killed_process_is_freed)
{
    start_as(&w, "");
    keep_in_v("");
    worker_kill(&v);
    scene_says(&w, "ok", "on t lock m");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
}
END_TEST

/* ---- more of it */

START_TEST(all_locks_of_a_killed_one_are_free)
{
    char name[32];
    start_two("");
    for (int i = 0; i < MANY; i++) {
        scene_says(&v, "ok", "init h%d many%d", i, i);
        scene_says(&v, "ok", "lock h%d", i);
    }
    scene_says(&w, "ok", "init first many%d", MANY / 2);
    scene_says(&w, "ok", "async t lock first");
    snprintf(name, sizeof(name), "many%d", MANY / 2);
    ck_assert(scene_wait_queued(name, 1, SCENE_SOON_MS));
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        ck_assert_int_eq(test_redis_int(scene_redis, "EXISTS", name), i == MANY / 2);
    }
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
}
END_TEST

/* Empties the intent table of v's file, as if there had been no room for intents. */
static void empty_table(void)
{
    char path[512], zeros[RLK_SLOTS_FIRST * sizeof(struct rlk_intent)] = "";
    const uint32_t full = 1;
    DIR *list = opendir(dir);
    const struct dirent *entry;

    while ((entry = readdir(list)) != NULL) {
        if (strlen(entry->d_name) != RLK_UUID_LEN)
            continue;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pwrite(fd, zeros, sizeof(zeros), RLK_LIVEFILE_HEADER),
                         (ssize_t)sizeof(zeros));
        ck_assert_int_eq(pwrite(fd, &full, sizeof(full), RLK_LIVEFILE_FULL_AT),
                         (ssize_t)sizeof(full));
        close(fd);
    }
    closedir(list);
}

/* rule: G10 */
START_TEST(lock_beyond_the_intent_table_is_freed_for_waiters)
{
    start_two("");
    scene_says(&v, "ok", "init m2 unwanted");
    scene_says(&v, "ok", "on t lock m2");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    empty_table();
    worker_kill(&v);
    scene_worker_ends(&w, "t", "ok");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    ck_assert(test_redis_exists(scene_redis, "unwanted")); /* until its lease ends */
}
END_TEST

START_TEST(places_of_a_killed_waiter_are_gone)
{
    start_two("fair=1");
    start_as(&x, "fair=1");
    scene_worker_does(&x, "lock");
    scene_worker_waits(&v, "N", 1);
    scene_worker_waits(&w, "N", 2);
    worker_kill(&v);
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    ck_assert_int_eq(scene_queue_len("N"), 1);
    scene_says(&x, "ok", "on t unlock m");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

/* rule: G10 */
START_TEST(one_of_many_waiters_recovers_and_reports_it_once)
{
    enum { WAITERS = 5 };
    static struct worker waiters[WAITERS];
    long long burials = 0;
    int died = 0;

    start_as(&v, "");
    scene_worker_does(&v, "lock");
    for (int i = 0; i < WAITERS; i++) {
        memset(&waiters[i], 0, sizeof(waiters[i]));
        start_as(&waiters[i], "");
        scene_worker_waits(&waiters[i], "N", i + 1);
    }
    worker_kill(&v);
    for (int i = 0; i < WAITERS; i++) { /* each holder lets the next one have it */
        int at = 0;
        while (!worker_news(&waiters[at], "done t ok", EVERY_MS))
            at = (at + 1) % WAITERS;
        scene_says(&waiters[at], "ok", "on t unlock m");
    }
    for (int i = 0; i < WAITERS; i++) {
        burials += scene_stat(&waiters[i], "burials");
        died += worker_news(&waiters[i], "event OWNER_DIED N", 0) != NULL;
    }
    for (int i = 0; i < WAITERS; i++) /* those that are left look at these files, too */
        worker_end(&waiters[i]);
    ck_assert_int_eq(burials, 1);
    ck_assert_int_eq(died, 1);
}
END_TEST

START_TEST(process_without_the_crash_guard_neither_recovers_nor_is_recovered)
{
    start_two("");
    worker_start(&x, NULL);
    scene_says(&x, "ok 1", "open %s?guard=0 lease=%ld", scene_server.url,
               test_ms(LONG_MS));
    scene_says(&x, "ok", "init m N");
    ck_assert_int_eq(test_rundir_count(dir), 2);
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    worker_kill(&x);
    worker_kill(&v); /* when its file is gone, w has looked */
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    assert_lease_is_long();
    ck_assert(!worker_news(&w, "done t", 0));
}
END_TEST

/* rule: G14 */
START_TEST(stopped_process_is_not_recovered)
{
    start_two("");
    start_as(&x, "");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    worker_stop(&v);
    worker_kill(&x);
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    ck_assert(!worker_news(&w, "done t", 0));
    worker_cont(&v);
    scene_says(&v, "ok SAFE", "on t state m");
    scene_says(&v, "ok", "on t unlock m");
    scene_worker_ends(&w, "t", "ok");
}
END_TEST

START_TEST(what_other_threads_had_at_exit_is_free)
{
    start_two("");
    scene_says(&v, "ok", "on other lock m");
    scene_worker_waits(&w, "N", 1);
    worker_send(&v, "quit");
    scene_worker_ends(&w, "t", "ok");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
}
END_TEST

START_TEST(exit_without_anything_held_leaves_no_file)
{
    start_two("");
    scene_worker_does(&v, "lock");
    scene_says(&v, "ok", "on t unlock m");
    worker_send(&v, "quit");
    ck_assert(test_rundir_wait(dir, 1, SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&w, "burials"), 0);
}
END_TEST

/* ---- robust locks (G13) */

static void robust_next(const char *kind, const char *prepare, const char *code)
{
    char options[64];
    snprintf(options, sizeof(options), "robust=1%s", kind);
    start_two(options);
    scene_worker_does(&v, "lock");
    if (prepare)
        scene_says(&v, "ok", "on t %s", prepare);
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", code);
    if (strcmp(code, "EOWNERDEAD") == 0)
        scene_says(&w, "ok", "on t consistent m");
    scene_says(&w, "ok", "on t unlock m");
    scene_says(&w, "ok", "on t lock m");
    scene_says(&w, "ok", "on t unlock m");
}

/* rule: G13 */
START_TEST(process_killed_inside_is_EOWNERDEAD)
{
    robust_next("", NULL, "EOWNERDEAD");
}
END_TEST

/* Without a waiter: a process that tries again and again, like a program that finds out
 * whether locks are robust here, learns of the death. */
START_TEST(process_killed_inside_is_EOWNERDEAD_to_a_trylock)
{
    const char *code = "EBUSY";
    start_two("robust=1");
    scene_worker_does(&v, "lock");
    scene_says(&w, "EBUSY", "on t trylock m");
    worker_kill(&v);
    int64_t end = test_now_ms() + test_ms(SCENE_SOON_MS);
    while (code && strcmp(code, "EBUSY") == 0 && test_now_ms() < end) {
        code = worker_ask(&w, "on t trylock m", SCENE_SOON_MS);
        test_pause_ms(1);
    }
    ck_assert_ptr_nonnull(code);
    ck_assert_str_eq(code, "EOWNERDEAD");
}
END_TEST

START_TEST(process_killed_inside_a_fair_lock_is_EOWNERDEAD)
{
    robust_next(" fair=1", NULL, "EOWNERDEAD");
}
END_TEST

START_TEST(a_waiter_that_is_killed_is_no_owner)
{
    start_two("robust=1");
    start_as(&x, "robust=1");
    scene_worker_does(&x, "lock");
    scene_worker_waits(&v, "N", 1);
    scene_worker_waits(&w, "N", 2);
    worker_kill(&v);
    ck_assert(test_rundir_wait(dir, 2, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    scene_worker_ends(&w, "t", "ok");
    ck_assert_str_ne(scene_mark("N"), "");
}
END_TEST

/* rule: G8, G13 */
START_TEST(process_killed_with_a_retained_lock_is_no_dead_owner)
{
    start_as(&w, "robust=1");
    keep_in_v("robust=1");
    worker_kill(&v);
    scene_says(&w, "ok", "on t lock m");
    scene_says(&w, "ok", "on t unlock m");
}
END_TEST

START_TEST(process_killed_inside_a_retaken_lock_is_EOWNERDEAD)
{
    start_as(&w, "robust=1");
    keep_in_v("robust=1");
    scene_says(&v, "ok", "on t lock m");
    worker_kill(&v);
    scene_says(&w, "EOWNERDEAD", "on t lock m");
    scene_says(&w, "ok", "on t consistent m");
    scene_says(&w, "ok", "on t unlock m");
}
END_TEST

START_TEST(news_of_a_death_outlive_a_second_one)
{
    start_two("robust=1");
    start_as(&x, "robust=1");
    scene_worker_does(&x, "lock");
    worker_kill(&x);
    scene_says(&v, "EOWNERDEAD", "on t lock m");
    scene_worker_waits(&w, "N", 1);
    worker_kill(&v);
    scene_worker_ends(&w, "t", "EOWNERDEAD");
}
END_TEST

/* ---- */

int main(void)
{
    Suite *s = suite_create("recovery");
    TCase *tc = scene_tcase(s, "holders", open_scene, close_scene);
    tcase_add_test(tc, next_has_the_mutex_of_a_killed_one_at_once);
    tcase_add_test(tc, next_has_the_fair_lock_of_a_killed_one_at_once);
    tcase_add_test(tc, next_writes_after_a_killed_writer);
    tcase_add_test(tc, next_reads_after_a_killed_writer);
    tcase_add_test(tc, next_writes_after_a_killed_reader);
    tcase_add_test(tc, a_killed_reader_takes_nobody_elses_read_with_it);
    tcase_add_test(tc, token_of_the_next_is_greater);
    tcase_add_test(tc, holder_that_was_dead_before_anybody_came_is_found);
    tcase_add_test(tc, new_client_recovers_what_an_earlier_process_left);
    tcase_add_test(tc, wait_for_a_lock_to_be_free_ends);
    tcase_add_test(tc, retained_lock_of_a_killed_process_is_freed);
    tc = scene_tcase(s, "more", open_scene, close_scene);
    tcase_add_test(tc, all_locks_of_a_killed_one_are_free);
    tcase_add_test(tc, lock_beyond_the_intent_table_is_freed_for_waiters);
    tcase_add_test(tc, places_of_a_killed_waiter_are_gone);
    tcase_add_test(tc, one_of_many_waiters_recovers_and_reports_it_once);
    tcase_add_test(tc, process_without_the_crash_guard_neither_recovers_nor_is_recovered);
    tcase_add_test(tc, stopped_process_is_not_recovered);
    tcase_add_test(tc, what_other_threads_had_at_exit_is_free);
    tcase_add_test(tc, exit_without_anything_held_leaves_no_file);
    tc = scene_tcase(s, "robust", open_scene, close_scene);
    tcase_add_test(tc, process_killed_inside_is_EOWNERDEAD);
    tcase_add_test(tc, process_killed_inside_is_EOWNERDEAD_to_a_trylock);
    tcase_add_test(tc, process_killed_inside_a_fair_lock_is_EOWNERDEAD);
    tcase_add_test(tc, a_waiter_that_is_killed_is_no_owner);
    tcase_add_test(tc, process_killed_with_a_retained_lock_is_no_dead_owner);
    tcase_add_test(tc, process_killed_inside_a_retaken_lock_is_EOWNERDEAD);
    tcase_add_test(tc, news_of_a_death_outlive_a_second_one);
    return test_run_suite(s);
}
