/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths of processes with many locks, or with many kinds of locks, and deaths among many
 * processes (rules G7, G9 to G12): readers and writers under one lock, a process full of
 * locks, one whose threads were doing anything, several deaths, and which process reports
 * them.
 */
#include "recoveryscene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- readers and writers */

/* v begins last, because the others look at all files when they begin. */
static void start_three(const char *options)
{
    recovery_start(&w, "N", options);
    recovery_start(&x, "N", options);
    recovery_start(&v, "N", options);
}

/* rule: G11 */
START_TEST(locks_of_all_dead_readers_are_freed)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "rdlock");
    scene_says(&v, "ok", "on other rdlock m");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&w, "N", "lock");
    recovery_kill_v();
    recovery_wait_files(2);
    recovery_still_waits(&w);
    worker_kill(&x);
    recovery_has_it(&w);
    recovery_wait_files(1);
    ck_assert_int_eq(scene_count("N", "readers"), 0);
}
END_TEST

/* rule: G11 */
START_TEST(readers_continue_when_a_waiting_writer_dies)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "lock");
    scene_worker_queues(&w, "N", "rdlock");
    scene_worker_queues(&x, "N", "rdlock");
    recovery_kill_v();
    recovery_has_it(&w);
    recovery_has_it(&x);
}
END_TEST

/* rule: G11 */
START_TEST(writer_that_died_waiting_blocks_no_one)
{
    start_three("rwlock=1");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&v, "N", "lock");
    scene_worker_queues(&w, "N", "rdlock"); /* behind v */
    recovery_kill_v();
    recovery_has_it(&w);
    recovery_is_safe(&x);
}
END_TEST

/* rule: G11 */
START_TEST(preferred_mode_is_next_after_recovery)
{
    char options[32];
    snprintf(options, sizeof(options), "rwlock=1 kind=%d",
             _i ? RLOCK_RWLOCK_PREFER_WRITER_NP : RLOCK_RWLOCK_PHASE_FAIR_NP);
    start_three(options);
    scene_worker_does(&v, "lock");
    scene_worker_queues(&w, "N", "lock");
    scene_worker_queues(&x, "N", "rdlock");
    recovery_kill_v();
    recovery_has_it(_i ? &w : &x);
    recovery_still_waits(_i ? &x : &w);
}
END_TEST

/* rule: G11 */
START_TEST(dead_client_that_reads_after_a_downgrade_is_recovered)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "lock");
    scene_says(&v, "ok", "on t downgrade m");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&w, "N", "lock");
    scene_says(&x, "ok", "on t unlock m");
    recovery_kill_v();
    recovery_has_it(&w);
}
END_TEST

/* With a lease of its own the thread no longer reads by the hold of the other threads. No
 * process waits for the lock: otherwise all that v had of it would be released. */
/* rule: G11 */
START_TEST(dead_reader_with_its_own_lease_is_recovered)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "rdlock");
    scene_says(&v, "ok", "on other rdlock m");
    scene_says(&v, "ok", "on t extend m %ld", test_ms(RECOVERY_LEASE_MS));
    ck_assert_int_eq(scene_count("N", "readers"), 2);
    scene_says(&v, "ok", "on other unlock m");
    recovery_kill_v();
    recovery_look(2);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}
END_TEST

static bool is_kept(void *writes)
{
    scene_says(&v, "ok", "on t %s m", writes ? "lock" : "rdlock");
    scene_says(&v, "ok", "on t unlock m");
    return test_redis_exists(scene_redis, "N");
}

/* rule: G11 */
START_TEST(retained_holds_of_a_dead_client_are_freed)
{
    char url[TEST_URL_MAX + 64];
    snprintf(url, sizeof(url), "%s?retain=%ld", test_proxy_url(scene_proxy),
             test_ms(RECOVERY_LEASE_MS));
    recovery_start_at(&v, url, "N", "rwlock=1");
    recovery_start(&w, "N", "rwlock=1");
    ck_assert(test_wait_until(is_kept, _i ? &v : NULL, SCENE_SOON_MS));
    recovery_kill_v();
    scene_worker_does(&w, "lock");
    recovery_wait_files(1);
}
END_TEST

/* rule: G11 */
START_TEST(next_holder_after_recovery_has_a_greater_token)
{
    start_three(_i ? "rwlock=1 fencing=1" : "fair=1 fencing=1");
    scene_worker_does(&v, "lock");
    long long before = worker_number(&v, "on t token m");
    scene_worker_queues(&w, "N", "lock");
    recovery_kill_v();
    recovery_has_it(&w);
    ck_assert_int_gt(worker_number(&w, "on t token m"), before);
}
END_TEST

/* ---- which process reports it */

/* v has a lock of each kind, and w waits for each. */
/* rule: G11 */
START_TEST(recovery_event_names_type_mode_and_former_holder)
{
    static const struct {
        const char *name, *options, *verb, *told;
    } locks[] = {
        { "A", "", "lock", "mutex exclusive" },
        { "B", "fair=1", "lock", "fair exclusive" },
        { "C", "rwlock=1", "lock", "rwlock exclusive" },
        { "D", "rwlock=1", "rdlock", "rwlock read" },
    };
    enum { LOCKS = sizeof(locks) / sizeof(locks[0]) };
    char wanted[256];

    recovery_start(&v, "N", "");
    recovery_start(&w, "N", "");
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&v, "ok", "init h%d %s %s", i, locks[i].name, locks[i].options);
        scene_says(&w, "ok", "init h%d %s %s", i, locks[i].name, locks[i].options);
        scene_says(&v, "ok", "%s h%d", locks[i].verb, i);
        scene_says(&w, "ok", "async t%d lock h%d", i, i);
        ck_assert(scene_wait_queued(locks[i].name, 1, SCENE_SOON_MS));
    }
    int pid = (int)v.program.pid;
    recovery_kill_v();
    for (int i = 0; i < LOCKS; i++) {
        snprintf(wanted, sizeof(wanted), "t%d", i);
        scene_worker_ends(&w, wanted, "ok");
        snprintf(wanted, sizeof(wanted),
                 "event OWNER_DIED %s 0 0 %s process %d (worker) of this host died while "
                 "holding it",
                 locks[i].name, locks[i].told, pid);
        ck_assert(worker_news(&w, wanted, SCENE_SOON_MS));
    }
    ck_assert_ptr_null(recovery_event(&w));
}
END_TEST

static void has_line(const char *level, const char *text)
{
    const char *line;
    do
        line = worker_news(&w, level, SCENE_SOON_MS);
    while (line && !strstr(line, text));
    ck_assert_ptr_nonnull(line);
}

/* rule: G10 */
START_TEST(log_names_the_dead_process_and_counts_its_locks)
{
    char text[256];
    start_three("");
    scene_says(&w, "ok", "logger");
    scene_says(&v, "ok", "init m2 other");
    scene_says(&v, "ok", "lock m2");
    scene_worker_does(&v, "lock");
    scene_worker_waits(&w, "N", 1);
    snprintf(text, sizeof(text), "process %d (worker) of this host died; ",
             (int)v.program.pid);
    recovery_kill_v();
    has_line("log 4", text);
    ck_assert(strstr(w.line, ": 2"));
}
END_TEST

/* rule: G10 */
START_TEST(death_of_a_process_without_locks_causes_no_event)
{
    start_three("fair=1");
    scene_says(&w, "ok", "logger");
    scene_worker_does(&x, "lock");
    scene_worker_waits(&v, "N", 1);
    scene_worker_waits(&w, "N", 2);
    recovery_kill_v();
    recovery_wait_files(2);
    has_line("log 7", "locks released"); /* at the most verbose level */
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
    ck_assert_ptr_null(recovery_event(&w));
    ck_assert(!worker_news(&w, "log 4", 0));
}
END_TEST

/* ---- many */

/* Waits until `got` threads of w have their locks, and `died` deaths are reported. */
static void w_has_news(int got, int died)
{
    while (got > 0 || died > 0) {
        const char *news = worker_news(&w, "", SCENE_SOON_MS);
        ck_assert_ptr_nonnull(news);
        got -= strncmp(news, "done t", 6) == 0 && strstr(news, " ok");
        died -= strncmp(news, "event OWNER_DIED", 16) == 0;
    }
    ck_assert_int_eq(got, 0);
    ck_assert_int_eq(died, 0);
    ck_assert_ptr_null(recovery_event(&w));
}

/* rule: G10 */
START_TEST(all_locks_of_a_dead_process_go_to_their_waiters)
{
    enum { MANY = 50 };
    char name[32];
    recovery_start(&v, "N", "");
    recovery_start(&w, "N", "");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        scene_says(&v, "ok", "init h%d %s", i, name);
        scene_says(&w, "ok", "init h%d %s", i, name);
        scene_says(&v, "ok", "lock h%d", i);
        scene_says(&w, "ok", "async t%d lock h%d", i, i);
        ck_assert(scene_wait_queued(name, 1, SCENE_SOON_MS));
    }
    recovery_kill_v();
    w_has_news(MANY, MANY);
    recovery_wait_files(1);
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
}
END_TEST

/* How many of "hoard0", "hoard1" ... are held. */
static int count_hoard(int most)
{
    static const char text[] = "local n = 0 for i = 0, tonumber(ARGV[1]) - 1 do "
                               "n = n + redis.call('EXISTS', 'hoard' .. i) end return n";
    char number[16];
    snprintf(number, sizeof(number), "%d", most);
    return (int)test_redis_int(scene_redis, "EVAL", text, "0", number);
}

/* rule: G10 */
START_TEST(more_than_a_thousand_locks_are_recovered)
{
    enum { HOARD = 1200 };
    recovery_start(&v, "N", "");
    scene_says(&v, "ok", "hoard hoard %d", HOARD);
    ck_assert_int_eq(count_hoard(HOARD), HOARD);
    recovery_start(&w, "hoard600", "");
    scene_worker_waits(&w, "hoard600", 1);
    recovery_kill_v();
    w_has_news(1, HOARD);
    recovery_wait_files(1);
    ck_assert_int_eq(count_hoard(HOARD), 1);
}
END_TEST

static bool is_waiting(void *who)
{
    return scene_stat(who, "waiters_now") > 0;
}

/* rule: G7 */
START_TEST(lock_beyond_the_intent_table_ends_with_its_lease_unless_awaited)
{
    enum { ROOM = 8, HOARD = 12, SLOT = 256, HEADER = 4096 };
    const struct rlimit limit = { HEADER + ROOM * SLOT, HEADER + ROOM * SLOT };

    worker_start(&v, NULL);
    ck_assert_int_eq(prlimit(v.program.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    scene_says(&v, "ok 1", "open %s lease=%ld", test_proxy_url(scene_proxy),
               test_ms(RECOVERY_LEASE_MS));
    scene_says(&v, "ok", "hoard hoard %d", HOARD);
    recovery_start(&w, "hoard11", "");
    scene_says(&w, "ok", _i ? "async t waitfree hoard11 %ld" : "async t lock m",
               test_ms(RECOVERY_LEASE_MS));
    ck_assert(test_wait_until(is_waiting, &w, SCENE_SOON_MS));
    recovery_kill_v();
    recovery_has_it(&w);
    recovery_wait_files(1);
    for (int i = ROOM; i < HOARD - 1; i++) {
        char name[32];
        snprintf(name, sizeof(name), "hoard%d", i);
        ck_assert_int_gt(scene_pttl(name), test_ms(RECOVERY_LEASE_MS) / 2);
    }
    ck_assert_int_eq(count_hoard(ROOM), 0);
}
END_TEST

/* Makes a file with a number of 64 bits for "hammer". */
static void make_sum(char path[TEST_PATH_MAX])
{
    int64_t zero = 0;
    snprintf(path, TEST_PATH_MAX, "%s/sum", scene_server.dir);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&zero, sizeof(zero), 1, file), 1);
    ck_assert_int_eq(fclose(file), 0);
}

static bool is_busy(void *who)
{
    return scene_stat(who, "acquisitions") + scene_stat(who, "reentries") > 20;
}

/* Threads of v lock and unlock without end, some of them the same lock: they wait for
 * each other, hand it over, retain it, release it. */
/* rule: G8 */
START_TEST(locks_are_freed_whatever_the_dead_threads_were_doing)
{
    enum { THREADS = 6, LOCKS = 3 };
    static const char *const options[LOCKS] = { "robust=1", "fair=1", "rwlock=1" };
    char url[TEST_URL_MAX + 64], path[TEST_PATH_MAX];

    make_sum(path);
    snprintf(url, sizeof(url), "%s?retain=%d", test_proxy_url(scene_proxy),
             _i % 2 ? 1000 : 0);
    recovery_start_at(&v, url, "N", "");
    recovery_start(&w, "N", "");
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&v, "ok", "init h%d busy%d %s", i, i, options[i]);
        scene_says(&w, "ok", "init h%d busy%d %s", i, i, options[i]);
    }
    for (int i = 0; i < THREADS; i++)
        scene_says(&v, "ok", "async t%d hammer h%d 1000000000 %s", i, i % LOCKS, path);
    ck_assert(test_wait_until(is_busy, &v, SCENE_SOON_MS));
    recovery_kill_v();
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&w, "", "lock h%d", i);
        ck_assert(strstr(w.answer, "ok") || (i == 0 && strstr(w.answer, "EOWNERDEAD")));
    }
    for (int i = 0; i < LOCKS; i++)
        scene_says(&w, "ok", "unlock h%d", i);
    recovery_look(1);
}
END_TEST

/* ---- several deaths */

static int told; /* deaths that w and x together have reported */

static bool is_told(void *deaths)
{
    while (recovery_event(&w) || recovery_event(&x))
        told++;
    return told >= *(int *)deaths;
}

/* The callback may come later than the effect that it reports. */
static bool told_of_deaths(int deaths)
{
    told = 0;
    return test_wait_until(is_told, &deaths, SCENE_SOON_MS) && told == deaths;
}

/* rule: G10 */
START_TEST(one_of_sixteen_threads_of_two_processes_recovers)
{
    enum { THREADS = 8 };
    start_three("fair=1");
    scene_worker_does(&v, "lock");
    for (int i = 0; i < THREADS; i++) {
        scene_says(&w, "ok", "async t%d lock m", i);
        scene_says(&x, "ok", "async t%d lock m", i);
    }
    ck_assert(scene_wait_queued("N", 2 * THREADS, SCENE_SOON_MS));
    recovery_kill_v();
    for (int got = 0, at = 0; got < 2 * THREADS; at++) {
        struct worker *who = at % 2 ? &w : &x;
        const char *news = worker_news(who, "done t", 10);
        if (!news)
            continue;
        ck_assert_str_eq(news + strlen("done t0"), " ok");
        scene_says(who, "ok", "on t%c unlock m", news[strlen("done t")]);
        got++;
    }
    ck_assert_int_eq(scene_stat(&w, "burials") + scene_stat(&x, "burials"), 1);
    ck_assert(told_of_deaths(1));
    recovery_wait_files(2);
}
END_TEST

/* Three processes die at once. */
/* rule: G10 */
START_TEST(each_of_several_dead_processes_is_recovered_once)
{
    enum { DEAD = 3 };
    static struct worker dead[DEAD];

    for (int i = 0; i < DEAD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "dead%d", i);
        memset(&dead[i], 0, sizeof(dead[i]));
        recovery_start(&dead[i], name, "");
        scene_worker_does(&dead[i], "lock");
    }
    recovery_start(&w, "dead0", "");
    recovery_start(&x, "dead1", "");
    scene_worker_waits(&w, "dead0", 1);
    scene_worker_waits(&x, "dead1", 1);
    for (int i = 0; i < DEAD; i++)
        kill(dead[i].program.pid, SIGKILL);
    recovery_has_it(&w);
    recovery_has_it(&x);
    recovery_wait_files(2);
    ck_assert(scene_wait_free("dead2", SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&w, "burials") + scene_stat(&x, "burials"), DEAD);
    ck_assert(told_of_deaths(DEAD));
    for (int i = 0; i < DEAD; i++)
        worker_end(&dead[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("recovery, many");
    TCase *tc = scene_tcase(s, "rwlock", recovery_open, recovery_close);
    tcase_add_test(tc, locks_of_all_dead_readers_are_freed);
    tcase_add_test(tc, readers_continue_when_a_waiting_writer_dies);
    tcase_add_test(tc, writer_that_died_waiting_blocks_no_one);
    tcase_add_loop_test(tc, preferred_mode_is_next_after_recovery, 0, 2);
    tcase_add_test(tc, dead_client_that_reads_after_a_downgrade_is_recovered);
    tcase_add_test(tc, dead_reader_with_its_own_lease_is_recovered);
    tcase_add_loop_test(tc, retained_holds_of_a_dead_client_are_freed, 0, 2);
    tcase_add_loop_test(tc, next_holder_after_recovery_has_a_greater_token, 0, 2);
    tc = scene_tcase(s, "told", recovery_open, recovery_close);
    tcase_add_test(tc, recovery_event_names_type_mode_and_former_holder);
    tcase_add_test(tc, log_names_the_dead_process_and_counts_its_locks);
    tcase_add_test(tc, death_of_a_process_without_locks_causes_no_event);
    tc = scene_tcase(s, "many", recovery_open, recovery_close);
    tcase_add_test(tc, all_locks_of_a_dead_process_go_to_their_waiters);
    tcase_add_test(tc, more_than_a_thousand_locks_are_recovered);
    tcase_add_test(tc, lock_beyond_the_intent_table_ends_with_its_lease_unless_awaited);
    tcase_add_loop_test(tc, locks_are_freed_whatever_the_dead_threads_were_doing, 0,
                        (int)test_count(20, 2));
    tc = scene_tcase(s, "several", recovery_open, recovery_close);
    tcase_add_test(tc, one_of_sixteen_threads_of_two_processes_recovers);
    tcase_add_test(tc, each_of_several_dead_processes_is_recovered_once);
    return test_run_suite(s);
}
