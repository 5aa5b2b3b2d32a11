/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that end while their threads hold locks, wait and have registered
 * destructors; and loading and unloading of the shared library. */
#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* BOUND_MS: how long exit() may take, without the delays of a busy host. */
enum { BOUND_MS = 1000, LEASE_MS = 600000, LOCKS = 100, LOADS = 100 };

static struct worker w;
static rlock_client_t *party; /* of the test's own process */

/* Leases of ten minutes: a lock that comes free in a test was given up. */
static void set_up(void)
{
    scene_open();
    scene_worker(&w, scene_server.url, SCENE_TIMES(.lease = LEASE_MS), "n", "");
    party = scene_client(scene_server.url, NULL);
}

static void tear_down(void)
{
    worker_end(&w);
    ck_assert_int_eq(rlock_client_close(party), 0);
    scene_close();
}

/* Asserts that the worker ends by itself, with status 0. Returns how long that took. */
static int64_t ends(struct worker *worker)
{
    int64_t start = test_now_ms();
    /* waits for the end of the output; stdin stays open until then */
    worker_news(worker, "nothing that it says", SCENE_SOON_MS);
    int status = test_program_wait(&worker->program, SCENE_SOON_MS);
    ck_assert_msg(status == 0, "wait status %d", status);
    return test_now_ms() - start;
}

static int64_t leaves(const char *command)
{
    worker_send(&w, command);
    return ends(&w);
}

static void assert_free_for_others(const char *name)
{
    rlock_mutex_t m;
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SCENE_SOON_MS));
    scene_mutex(&m, party, name);
    ck_assert_int_eq(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}

/* ---- while others hold and wait */

static const struct {
    const char *before, *leave;
    bool gives_up; /* whether the hold of the leaving thread t is given up */
} ways[] = {
    { "ok", "return", false },
    { "ok", "quit", false },
    { "ok", "on t leave exit", true },
    { "ok", "on t leave cancelled", true },
    { "leave-at LOST", "on late lock late 60", false },
    { "atexit unlock m", "on t leave exit", false },
    { "ok", "on t leave quick_exit", false },
    { "ok", "on t leave _exit", false },
    { "leave-on-term", NULL, false },
};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

/* Starts threads that hold, threads that wait in this process and at the server, and
 * threads that run. */
static void crowd(const char *file)
{
    scene_says(&w, "ok", "init x x");
    scene_says(&w, "ok", "init y y fair=1");
    scene_says(&w, "ok", "init z z rwlock=1");
    scene_says(&w, "ok", "init late late");
    scene_says(&w, "ok", "on t lock m");
    scene_says(&w, "ok", "on h1 lock x");
    scene_says(&w, "ok", "on h2 rdlock z");
    scene_says(&w, "ok", "async r1 hammer y 1000000000 %s", file);
    scene_says(&w, "ok", "async r2 hammer y 1000000000 %s", file);
    scene_says(&w, "ok", "async w1 lock m");
    scene_says(&w, "ok", "async w2 lock x");
    scene_says(&w, "ok", "async w3 lock z");
    ck_assert(scene_wait_queued("z", 1, SCENE_SOON_MS));
}

START_TEST(exit_while_others_hold_and_wait_neither_hangs_nor_crashes)
{
    char file[TEST_PATH_MAX];
    snprintf(file, sizeof(file), "%s/sum", scene_server.dir);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof(int64_t)), 0);
    close(fd);
    for (long runs = test_count(100, 3); runs > 0; runs--) {
        worker_end(&w);
        scene_worker(&w, scene_server.url, SCENE_TIMES(.lease = LEASE_MS), "n", "");
        if (strcmp(ways[_i].before, "ok") != 0)
            scene_says(&w, "ok", "%s", ways[_i].before);
        crowd(file);
        if (ways[_i].leave) {
            worker_send(&w, ways[_i].leave);
        } else { /* leaves from a signal handler, during a wait */
            worker_send(&w, "lock x");
            ck_assert_int_eq(kill(w.program.pid, SIGTERM), 0);
        }
        ends(&w);
        if (ways[_i].gives_up)
            assert_free_for_others("n");
        test_redis_do(scene_redis, "FLUSHALL");
    }
}
END_TEST

/* The worker's main thread neither runs nor is woken. */
static bool sleeps(void *worker)
{
    char path[TEST_PATH_MAX], state = '?';
    snprintf(path, sizeof(path), "/proc/%d/stat",
             (int)((const struct worker *)worker)->program.pid);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
    fclose(f);
    return state == 'S';
}

static bool sleeps_for_a_while(void *worker)
{
    return test_stays(sleeps, worker, 50);
}

START_TEST(exit_in_a_signal_handler_during_a_wait_releases_the_holds_of_the_thread)
{
    scene_says(&w, "ok", "leave-on-term");
    scene_says(&w, "ok", "init x x");
    scene_hold_by_hand("x", LEASE_MS);
    scene_says(&w, "ok", "lock m");
    worker_send(&w, "lock x");
    ck_assert(scene_wait_queued("x", 1, SCENE_SOON_MS));
    ck_assert(test_wait_until(sleeps_for_a_while, &w, SCENE_SOON_MS));
    ck_assert_int_eq(kill(w.program.pid, SIGTERM), 0);
    ends(&w);
    ck_assert(!test_redis_exists(scene_redis, "n"));
}
END_TEST

/* Repeated, because the signal may come at any point of the section. */
START_TEST(exit_in_a_signal_handler_inside_a_section_does_not_hang)
{
    for (long runs = test_count(100, 10); runs > 0; runs--) {
        worker_end(&w);
        scene_worker(&w, scene_server.url, SCENE_TIMES(.lease = LEASE_MS), "n", "");
        scene_says(&w, "ok", "leave-on-term");
        scene_says(&w, "ok", "on t lock m");
        worker_send(&w, "spin");
        ck_assert_ptr_nonnull(worker_news(&w, "done spin", SCENE_SOON_MS));
        ck_assert_int_eq(kill(w.program.pid, SIGTERM), 0);
        ends(&w);
        test_redis_do(scene_redis, "FLUSHALL");
    }
}
END_TEST

/* ---- what is released */

static const struct {
    const char *options, *verb;
} kinds[] = {
    { "", "lock" }, { "fair=1", "lock" }, { "rwlock=1", "lock" }, { "rwlock=1", "rdlock" }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

START_TEST(own_hold_is_free_when_the_process_has_ended)
{
    scene_says(&w, "ok", "init k own %s", kinds[_i].options);
    scene_says(&w, "ok", "%s k", kinds[_i].verb);
    scene_says(&w, "ok", "%s k", kinds[_i].verb); /* two levels */
    leaves("quit");
    ck_assert(!test_redis_exists(scene_redis, "own"));
}
END_TEST

START_TEST(all_own_holds_of_all_clients_are_free)
{
    for (int i = 0; i < LOCKS; i++) {
        if (i % (LOCKS / 4) == 0)
            scene_says(&w, "ok", "open %s lease=%d", scene_server.url, LEASE_MS);
        scene_says(&w, "ok", "init k own%d fair=%d", i, i % 2);
        scene_says(&w, "ok", "lock k");
    }
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), LOCKS);
    leaves("quit");
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), 0);
}
END_TEST

START_TEST(holds_of_threads_that_still_run_stay_until_their_lease_ends)
{
    char before[SCENE_ID_MAX], after[SCENE_ID_MAX];
    scene_says(&w, "ok", "init k theirs");
    scene_says(&w, "ok", "on t lock k");
    scene_says(&w, "ok", "lock m");
    ck_assert(scene_holder("theirs", before));
    leaves("quit");
    ck_assert(!test_redis_exists(scene_redis, "n"));
    ck_assert(scene_holder("theirs", after));
    ck_assert_str_eq(before, after);
    ck_assert_int_gt(scene_pttl("theirs"), 0);
}
END_TEST

static bool four_wait(void *worker)
{
    return strstr(worker_ask(worker, "stats", SCENE_SOON_MS), " waiters_now=4 ") != NULL;
}

START_TEST(threads_of_the_ending_process_do_not_get_its_lock)
{
    enum rlk_script_id release = _i == 0 ? RLK_MUTEX_RELEASE : RLK_RWLOCK_RELEASE;
    scene_says(&w, "ok", "open %s lease=%d", test_proxy_url(scene_proxy), LEASE_MS);
    scene_says(&w, "ok", "init k own %s", _i == 0 ? "" : "rwlock=1");
    scene_says(&w, "ok", "lock k");
    for (int i = 0; i < 4; i++)
        scene_says(&w, "ok", "async t%d lock k", i);
    ck_assert(test_wait_until(four_wait, &w, SCENE_SOON_MS));
    /* time for the waiting threads to send requests before the release */
    SCENE_RULE(release, .on = TEST_ON_REQUEST, .action = TEST_DELAY, .delay_ms = 200);
    leaves("quit");
    ck_assert(!test_redis_exists(scene_redis, "own"));
}
END_TEST

START_TEST(queued_threads_of_an_ended_process_cost_at_most_a_grant)
{
    scene_says(&w, "ok", "init k own fair=1");
    scene_says(&w, "ok", "lock k");
    for (int i = 0; i < 4; i++)
        scene_says(&w, "ok", "async t%d lock k", i);
    ck_assert(scene_wait_queued("own", 4, SCENE_SOON_MS));
    leaves("quit");
    assert_free_for_others("own");
}
END_TEST

START_TEST(lock_of_a_thread_that_ended_just_before_is_free)
{
    scene_says(&w, "ok", "on t lock m");
    scene_says(&w, "ok", "end t");
    leaves("quit");
    ck_assert(!test_redis_exists(scene_redis, "n"));
}
END_TEST

START_TEST(next_locker_of_a_robust_lock_gets_EOWNERDEAD)
{
    struct worker next;
    const char *options = _i ? "robust=1 fair=1" : "robust=1";
    scene_says(&w, "ok", "init k own %s", options);
    scene_says(&w, "ok", "lock k");
    leaves("quit");
    scene_worker(&next, scene_server.url, NULL, "n", "");
    scene_says(&next, "ok", "init k own %s", options);
    scene_says(&next, "EOWNERDEAD", "lock k");
    scene_says(&next, "ok", "consistent k");
    scene_says(&next, "ok", "unlock k");
    scene_says(&next, "ok", "lock k");
    worker_end(&next);
}
END_TEST

START_TEST(quick_exit_releases_nothing)
{
    scene_says(&w, "ok", "lock m");
    leaves(_i ? "leave _exit" : "leave quick_exit");
    ck_assert(test_redis_exists(scene_redis, "n"));
}
END_TEST

/* ---- bounds */

START_TEST(exit_is_bounded_when_the_server_is_silent_or_gone)
{
    for (int i = 0; i < 3; i++) { /* of all clients together */
        scene_says(&w, "ok", "open %s", scene_server.url);
        scene_says(&w, "ok", "init k own%d", i);
        scene_says(&w, "ok", "lock k");
    }
    if (_i)
        test_server_kill(&scene_server);
    else
        test_server_pause(&scene_server);
    int64_t took = leaves("quit");
    if (_i)
        test_server_restart(&scene_server);
    else
        test_server_resume(&scene_server);
    ck_assert_int_le(took, BOUND_MS + test_ms(500));
    ck_assert_int_ge(took, BOUND_MS / 2); /* it tries */
}
END_TEST

START_TEST(client_of_a_silent_server_does_not_delay_the_others)
{
    scene_says(&w, "ok", "lock m");
    scene_says(&w, "ok", "open %s", test_proxy_url(scene_proxy));
    scene_says(&w, "ok", "init k silent");
    scene_says(&w, "ok", "lock k");
    TEST_RULE(scene_proxy, .on = TEST_ON_REPLY, .action = TEST_DROP);
    leaves("quit");
    ck_assert(!test_redis_exists(scene_redis, "n"));
}
END_TEST

/* ---- the program's own handlers */

START_TEST(exit_handler_may_still_unlock)
{
    static const char *const leave[] = { "quit", "return", "on t leave exit" };
    bool thread = _i == 2;
    struct worker early;
    worker_start(&early, NULL);
    scene_says(&early, "ok", "atexit unlock e"); /* before the library's first use */
    scene_says(&early, "ok", "open %s lease=%d", scene_server.url, LEASE_MS);
    scene_says(&early, "ok", "init e early");
    scene_says(&early, "ok", "init l late");
    scene_says(&early, "ok", "%slock e", thread ? "on t " : "");
    scene_says(&early, "ok", "%slock l", thread ? "on t " : "");
    scene_says(&early, "ok", "atexit unlock l");
    worker_send(&early, leave[_i]);
    for (int i = 0; i < 2; i++) {
        const char *done = worker_news(&early, "done atexit", SCENE_SOON_MS);
        ck_assert_ptr_nonnull(done);
        ck_assert_str_eq(done, "done atexit ok");
    }
    ck_assert_ptr_null(worker_news(&early, "event OWNER_DIED", SCENE_SOON_MS));
    ends(&early);
    ck_assert(!test_redis_exists(scene_redis, "early"));
    ck_assert(!test_redis_exists(scene_redis, "late"));
    worker_end(&early);
}
END_TEST

START_TEST(no_event_and_no_line_comes_behind_the_exit_handlers)
{
    long lease = test_ms(500);
    scene_says(&w, "ok", "logger");
    scene_says(&w, "ok", "init k theirs");
    scene_says(&w, "ok", "linger %ld", 3 * lease);
    scene_says(&w, "ok", "lock m");
    scene_says(&w, "ok", "on t lock k %ld", lease);
    worker_send(&w, "quit");
    ck_assert_ptr_nonnull(worker_news(&w, "done linger", SCENE_SOON_MS));
    w.news_count = 0; /* drops earlier events */
    test_server_kill(&scene_server);
    ck_assert_ptr_nonnull(worker_news(&w, "end linger", SCENE_SOON_MS));
    ck_assert_msg(w.news_count == 0, "\"%s\"", w.news[0]);
    ends(&w);
    test_server_restart(&scene_server);
}
END_TEST

/* ---- the main thread alone */

START_TEST(main_thread_may_end_while_others_run_on)
{
    scene_says(&w, "ok", "lock m");
    scene_says(&w, "ok", "init k theirs");
    scene_says(&w, "ok", "on t2 lock k");
    scene_says(&w, "ok", "async t1 lock m");
    worker_send(&w, "leave pthread_exit");
    ck_assert_ptr_nonnull(worker_news(&w, "event OWNER_DIED n", SCENE_SOON_MS));
    const char *done = worker_news(&w, "done t1", SCENE_SOON_MS);
    ck_assert_ptr_nonnull(done);
    ck_assert_str_eq(done, "done t1 ok");
    ck_assert(test_redis_exists(scene_redis, "theirs"));
    ck_assert_int_eq(kill(w.program.pid, 0), 0);
}
END_TEST

/* ---- dlopen */

static bool shared_library(char *path, size_t size)
{
    test_build_path(path, size, ".libs/librlock.so");
    if (access(path, R_OK) == 0)
        return true;
    printf("skipped: dlopen: there is no %s\n", path);
    fflush(stdout);
    return false;
}

static const char *const loads[] = { "nothing", "open", "held", "threads" };

START_TEST(loading_and_unloading_100_times_is_harmless)
{
    char library[PATH_MAX], loader[PATH_MAX], line[256], number[16];
    struct test_program p;

    if (!shared_library(library, sizeof(library)))
        return;
    test_build_path(loader, sizeof(loader), "tests/loader");
    snprintf(number, sizeof(number), "%d", LOADS);
    const char *const argv[] = { loader, library,   scene_server.url,
                                 number, loads[_i], NULL };
    test_program_start(&p, argv, NULL);
    ck_assert(test_program_read(&p, line, sizeof(line), 60000));
    ck_assert_str_eq(line, "ok");
    int status = test_program_wait(&p, SCENE_SOON_MS);
    ck_assert_msg(status == 0, "wait status %d", status);
    /* held by its main thread; the other threads' holds end with their leases */
    ck_assert(!test_redis_exists(scene_redis, "held0"));
    ck_assert(!test_redis_exists(scene_redis, "held99"));
    test_program_end(&p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("process exit");
    TCase *crowds = scene_tcase(suite, "crowds", set_up, tear_down);
    tcase_add_loop_test(crowds, exit_while_others_hold_and_wait_neither_hangs_nor_crashes,
                        0, WAYS);
    tcase_add_test(
        crowds, exit_in_a_signal_handler_during_a_wait_releases_the_holds_of_the_thread);
    tcase_add_test(crowds, exit_in_a_signal_handler_inside_a_section_does_not_hang);
    TCase *released = scene_tcase(suite, "released", set_up, tear_down);
    tcase_add_loop_test(released, own_hold_is_free_when_the_process_has_ended, 0, KINDS);
    tcase_add_test(released, all_own_holds_of_all_clients_are_free);
    tcase_add_test(released, holds_of_threads_that_still_run_stay_until_their_lease_ends);
    tcase_add_loop_test(released, threads_of_the_ending_process_do_not_get_its_lock, 0,
                        2);
    tcase_add_test(released, queued_threads_of_an_ended_process_cost_at_most_a_grant);
    tcase_add_test(released, lock_of_a_thread_that_ended_just_before_is_free);
    tcase_add_loop_test(released, next_locker_of_a_robust_lock_gets_EOWNERDEAD, 0, 2);
    tcase_add_loop_test(released, quick_exit_releases_nothing, 0, 2);
    TCase *bounds = scene_tcase(suite, "bounds", set_up, tear_down);
    tcase_add_loop_test(bounds, exit_is_bounded_when_the_server_is_silent_or_gone, 0, 2);
    tcase_add_test(bounds, client_of_a_silent_server_does_not_delay_the_others);
    TCase *handlers = scene_tcase(suite, "handlers", set_up, tear_down);
    tcase_add_loop_test(handlers, exit_handler_may_still_unlock, 0, 3);
    tcase_add_test(handlers, no_event_and_no_line_comes_behind_the_exit_handlers);
    tcase_add_test(handlers, main_thread_may_end_while_others_run_on);
    TCase *dl = scene_tcase(suite, "dlopen", set_up, tear_down);
    tcase_add_loop_test(dl, loading_and_unloading_100_times_is_harmless, 0,
                        sizeof(loads) / sizeof(loads[0]));
    return test_run_suite(suite);
}
