/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deaths of who had much, or many kinds of locks, and deaths among many (rules G7, G9 to
 * G12): who reads and who writes under one lock, a process full of locks, one whose
 * threads were at anything, several deaths and who tells of them.
 */
#include "deathscene.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- readers and writers */

/* v last: the others look at all files when they begin. */
static void start_three(const char *options)
{
    death_start(&w, "N", options);
    death_start(&x, "N", options);
    death_start(&v, "N", options);
}

/* rule: G11 */
START_TEST(g11_all_readers_may_die)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "rdlock");
    scene_says(&v, "ok", "on other rdlock m");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&w, "N", "lock");
    death_strike();
    death_wait_files(2);
    death_waits_still(&w);
    worker_kill(&x);
    death_has_it(&w);
    death_wait_files(1);
    ck_assert_int_eq(scene_count("N", "readers"), 0);
}
END_TEST

/* rule: G11 */
START_TEST(g11_all_who_read_go_on_when_a_writer_dies)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "lock");
    scene_worker_queues(&w, "N", "rdlock");
    scene_worker_queues(&x, "N", "rdlock");
    death_strike();
    death_has_it(&w);
    death_has_it(&x);
}
END_TEST

/* rule: G11 */
START_TEST(g11_a_writer_that_dies_while_it_waits_is_in_nobodys_way)
{
    start_three("rwlock=1");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&v, "N", "lock");
    scene_worker_queues(&w, "N", "rdlock"); /* behind it */
    death_strike();
    death_has_it(&w);
    death_is_safe(&x);
}
END_TEST

/* rule: G11 */
START_TEST(g11_who_is_preferred_is_next)
{
    char options[32];
    snprintf(options, sizeof(options), "rwlock=1 kind=%d",
             _i ? RLOCK_RWLOCK_PREFER_WRITER_NP : RLOCK_RWLOCK_PHASE_FAIR_NP);
    start_three(options);
    scene_worker_does(&v, "lock");
    scene_worker_queues(&w, "N", "lock");
    scene_worker_queues(&x, "N", "rdlock");
    death_strike();
    death_has_it(_i ? &w : &x);
    death_waits_still(_i ? &x : &w);
}
END_TEST

/* rule: G11 */
START_TEST(g11_who_reads_after_it_has_written_may_die)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "lock");
    scene_says(&v, "ok", "on t downgrade m");
    scene_worker_does(&x, "rdlock");
    scene_worker_queues(&w, "N", "lock");
    scene_says(&x, "ok", "on t unlock m");
    death_strike();
    death_has_it(&w);
}
END_TEST

/* With a lease of its own it does not read by the hold of the other threads any more.
 * Nobody waits: then all would be given back that it had of this lock. */
/* rule: G11 */
START_TEST(g11_who_reads_with_a_lease_of_its_own_may_die)
{
    start_three("rwlock=1");
    scene_worker_does(&v, "rdlock");
    scene_says(&v, "ok", "on other rdlock m");
    scene_says(&v, "ok", "on t extend m %ld", test_ms(DEATH_LEASE_MS));
    ck_assert_int_eq(scene_count("N", "readers"), 2);
    scene_says(&v, "ok", "on other unlock m");
    death_strike();
    death_look(2);
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
START_TEST(g11_what_is_kept_to_read_or_write_is_free)
{
    char url[TEST_URL_MAX + 64];
    snprintf(url, sizeof(url), "%s?retain=%ld", test_proxy_url(scene_proxy),
             test_ms(DEATH_LEASE_MS));
    death_start_at(&v, url, "N", "rwlock=1");
    death_start(&w, "N", "rwlock=1");
    ck_assert(test_wait_until(is_kept, _i ? &v : NULL, SCENE_SOON_MS));
    death_strike();
    scene_worker_does(&w, "lock");
    death_wait_files(1);
}
END_TEST

/* rule: G11 */
START_TEST(g11_tokens_of_the_next_are_greater)
{
    start_three(_i ? "rwlock=1 fencing=1" : "fair=1 fencing=1");
    scene_worker_does(&v, "lock");
    long long before = worker_number(&v, "on t token m");
    scene_worker_queues(&w, "N", "lock");
    death_strike();
    death_has_it(&w);
    ck_assert_int_gt(worker_number(&w, "on t token m"), before);
}
END_TEST

/* ---- who tells of it */

/* v has a lock of each kind, and w waits for each. */
/* rule: G11 */
START_TEST(g11_each_is_told_with_its_type_its_mode_and_whose_it_was)
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

    death_start(&v, "N", "");
    death_start(&w, "N", "");
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&v, "ok", "init h%d %s %s", i, locks[i].name, locks[i].options);
        scene_says(&w, "ok", "init h%d %s %s", i, locks[i].name, locks[i].options);
        scene_says(&v, "ok", "%s h%d", locks[i].verb, i);
        scene_says(&w, "ok", "async t%d lock h%d", i, i);
        ck_assert(scene_wait_queued(locks[i].name, 1, SCENE_SOON_MS));
    }
    int pid = (int)v.program.pid;
    death_strike();
    for (int i = 0; i < LOCKS; i++) {
        snprintf(wanted, sizeof(wanted), "t%d", i);
        scene_worker_ends(&w, wanted, "ok");
        snprintf(wanted, sizeof(wanted),
                 "event OWNER_DIED %s 0 0 %s process %d (worker) of this host died while "
                 "holding it",
                 locks[i].name, locks[i].told, pid);
        ck_assert(worker_news(&w, wanted, SCENE_SOON_MS));
    }
    ck_assert_ptr_null(death_event(&w));
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
START_TEST(g10_log_says_who_died_and_how_much_was_given_back)
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
    death_strike();
    has_line("log 4", text);
    ck_assert(strstr(w.line, ": 2"));
}
END_TEST

/* rule: G10 */
START_TEST(g10_nothing_is_told_of_who_had_nothing)
{
    start_three("fair=1");
    scene_says(&w, "ok", "logger");
    scene_worker_does(&x, "lock");
    scene_worker_waits(&v, "N", 1);
    scene_worker_waits(&w, "N", 2);
    death_strike();
    death_wait_files(2);
    has_line("log 7", "locks released"); /* for who wants to know all */
    ck_assert_int_eq(scene_stat(&w, "burials"), 1);
    ck_assert_ptr_null(death_event(&w));
    ck_assert(!worker_news(&w, "log 4", 0));
}
END_TEST

/* ---- many */

/* So many threads of w have got what they waited for, and so many deaths are told. */
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
    ck_assert_ptr_null(death_event(&w));
}

/* rule: G10 */
START_TEST(g10_all_that_one_had_is_had_by_who_waited)
{
    enum { MANY = 50 };
    char name[32];
    death_start(&v, "N", "");
    death_start(&w, "N", "");
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        scene_says(&v, "ok", "init h%d %s", i, name);
        scene_says(&w, "ok", "init h%d %s", i, name);
        scene_says(&v, "ok", "lock h%d", i);
        scene_says(&w, "ok", "async t%d lock h%d", i, i);
        ck_assert(scene_wait_queued(name, 1, SCENE_SOON_MS));
    }
    death_strike();
    w_has_news(MANY, MANY);
    death_wait_files(1);
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
START_TEST(g10_a_thousand_and_more_are_given_back)
{
    enum { HOARD = 1200 };
    death_start(&v, "N", "");
    scene_says(&v, "ok", "hoard hoard %d", HOARD);
    ck_assert_int_eq(count_hoard(HOARD), HOARD);
    death_start(&w, "hoard600", "");
    scene_worker_waits(&w, "hoard600", 1);
    death_strike();
    w_has_news(1, HOARD);
    death_wait_files(1);
    ck_assert_int_eq(count_hoard(HOARD), 1);
}
END_TEST

static bool is_waiting(void *who)
{
    return scene_stat(who, "waiters_now") > 0;
}

/* rule: G7 */
START_TEST(g7_what_the_table_has_no_room_for_ends_with_its_lease_unless_one_waits)
{
    enum { ROOM = 8, HOARD = 12, SLOT = 256, HEADER = 4096 };
    const struct rlimit limit = { HEADER + ROOM * SLOT, HEADER + ROOM * SLOT };

    worker_start(&v, NULL);
    ck_assert_int_eq(prlimit(v.program.pid, RLIMIT_FSIZE, &limit, NULL), 0);
    scene_says(&v, "ok 1", "open %s lease=%ld", test_proxy_url(scene_proxy),
               test_ms(DEATH_LEASE_MS));
    scene_says(&v, "ok", "hoard hoard %d", HOARD);
    death_start(&w, "hoard11", "");
    scene_says(&w, "ok", _i ? "async t waitfree hoard11 %ld" : "async t lock m",
               test_ms(DEATH_LEASE_MS));
    ck_assert(test_wait_until(is_waiting, &w, SCENE_SOON_MS));
    death_strike();
    death_has_it(&w);
    death_wait_files(1);
    for (int i = ROOM; i < HOARD - 1; i++) {
        char name[32];
        snprintf(name, sizeof(name), "hoard%d", i);
        ck_assert_int_gt(scene_pttl(name), test_ms(DEATH_LEASE_MS) / 2);
    }
    ck_assert_int_eq(count_hoard(ROOM), 0);
}
END_TEST

/* A file of 64 bits for "hammer". */
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

/* Threads of v lock and unlock without end, some of one lock, and wait for each other,
 * pass it on, keep it, give it back. */
/* rule: G8 */
START_TEST(g8_whatever_its_threads_were_at_is_free)
{
    enum { THREADS = 6, LOCKS = 3 };
    static const char *const options[LOCKS] = { "robust=1", "fair=1", "rwlock=1" };
    char url[TEST_URL_MAX + 64], path[TEST_PATH_MAX];

    make_sum(path);
    snprintf(url, sizeof(url), "%s?retain=%d", test_proxy_url(scene_proxy),
             _i % 2 ? 1000 : 0);
    death_start_at(&v, url, "N", "");
    death_start(&w, "N", "");
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&v, "ok", "init h%d busy%d %s", i, i, options[i]);
        scene_says(&w, "ok", "init h%d busy%d %s", i, i, options[i]);
    }
    for (int i = 0; i < THREADS; i++)
        scene_says(&v, "ok", "async t%d hammer h%d 1000000000 %s", i, i % LOCKS, path);
    ck_assert(test_wait_until(is_busy, &v, SCENE_SOON_MS));
    death_strike();
    for (int i = 0; i < LOCKS; i++) {
        scene_says(&w, "", "lock h%d", i);
        ck_assert(strstr(w.answer, "ok") || (i == 0 && strstr(w.answer, "EOWNERDEAD")));
    }
    for (int i = 0; i < LOCKS; i++)
        scene_says(&w, "ok", "unlock h%d", i);
    death_look(1);
}
END_TEST

/* ---- several */

static int told; /* of so many deaths, w and x together */

static bool is_told(void *deaths)
{
    while (death_event(&w) || death_event(&x))
        told++;
    return told >= *(int *)deaths;
}

/* A callback may be called after what it tells of was seen. */
static bool told_of_deaths(int deaths)
{
    told = 0;
    return test_wait_until(is_told, &deaths, SCENE_SOON_MS) && told == deaths;
}

/* rule: G10 */
START_TEST(g10_one_of_sixteen_threads_of_two_processes_buries)
{
    enum { THREADS = 8 };
    start_three("fair=1");
    scene_worker_does(&v, "lock");
    for (int i = 0; i < THREADS; i++) {
        scene_says(&w, "ok", "async t%d lock m", i);
        scene_says(&x, "ok", "async t%d lock m", i);
    }
    ck_assert(scene_wait_queued("N", 2 * THREADS, SCENE_SOON_MS));
    death_strike();
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
    death_wait_files(2);
}
END_TEST

/* Three die at once. */
/* rule: G10 */
START_TEST(g10_each_of_several_who_die_is_buried_once)
{
    enum { DEAD = 3 };
    static struct worker dead[DEAD];

    for (int i = 0; i < DEAD; i++) {
        char name[16];
        snprintf(name, sizeof(name), "dead%d", i);
        memset(&dead[i], 0, sizeof(dead[i]));
        death_start(&dead[i], name, "");
        scene_worker_does(&dead[i], "lock");
    }
    death_start(&w, "dead0", "");
    death_start(&x, "dead1", "");
    scene_worker_waits(&w, "dead0", 1);
    scene_worker_waits(&x, "dead1", 1);
    for (int i = 0; i < DEAD; i++)
        kill(dead[i].program.pid, SIGKILL);
    death_has_it(&w);
    death_has_it(&x);
    death_wait_files(2);
    ck_assert(scene_wait_free("dead2", SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&w, "burials") + scene_stat(&x, "burials"), DEAD);
    ck_assert(told_of_deaths(DEAD));
    for (int i = 0; i < DEAD; i++)
        worker_end(&dead[i]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("deaths, many");
    TCase *tc = scene_tcase(s, "rwlock", death_open, death_close);
    tcase_add_test(tc, g11_all_readers_may_die);
    tcase_add_test(tc, g11_all_who_read_go_on_when_a_writer_dies);
    tcase_add_test(tc, g11_a_writer_that_dies_while_it_waits_is_in_nobodys_way);
    tcase_add_loop_test(tc, g11_who_is_preferred_is_next, 0, 2);
    tcase_add_test(tc, g11_who_reads_after_it_has_written_may_die);
    tcase_add_test(tc, g11_who_reads_with_a_lease_of_its_own_may_die);
    tcase_add_loop_test(tc, g11_what_is_kept_to_read_or_write_is_free, 0, 2);
    tcase_add_loop_test(tc, g11_tokens_of_the_next_are_greater, 0, 2);
    tc = scene_tcase(s, "told", death_open, death_close);
    tcase_add_test(tc, g11_each_is_told_with_its_type_its_mode_and_whose_it_was);
    tcase_add_test(tc, g10_log_says_who_died_and_how_much_was_given_back);
    tcase_add_test(tc, g10_nothing_is_told_of_who_had_nothing);
    tc = scene_tcase(s, "many", death_open, death_close);
    tcase_add_test(tc, g10_all_that_one_had_is_had_by_who_waited);
    tcase_add_test(tc, g10_a_thousand_and_more_are_given_back);
    tcase_add_test(
        tc, g7_what_the_table_has_no_room_for_ends_with_its_lease_unless_one_waits);
    tcase_add_loop_test(tc, g8_whatever_its_threads_were_at_is_free, 0,
                        (int)test_count(20, 2));
    tc = scene_tcase(s, "several", death_open, death_close);
    tcase_add_test(tc, g10_one_of_sixteen_threads_of_two_processes_buries);
    tcase_add_test(tc, g10_each_of_several_who_die_is_buried_once);
    return test_run_suite(s);
}
