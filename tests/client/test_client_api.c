/* SPDX-License-Identifier: Apache-2.0 */
/* Clients: opening, closing, the default client, interrupt, statistics, leaks. */
#include "net/script.h"

#include "fixture.h"
#include "proxy.h"

#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 5000, ROUNDS = 1000, WARM_UP = 50 };

static rlock_mutex_t m, theirs;
static char url[TEST_URL_MAX + 64];

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
    snprintf(url, sizeof(url), "%s", server.url);
    unsetenv("RLOCK_URL");
}

static void tear_down(void)
{
    unsetenv("RLOCK_URL");
    OK(rlock_client_close(NULL));
    OK(rlock_client_setdefault(NULL, NULL));
    fixture_close();
}

/* ---- open */

static const struct {
    const char *url;
    int code;
} bad_urls[] = {
    { "http://localhost", EINVAL },
    { "localhost:6379", EINVAL },
    { "redis://", EINVAL },
    { "redis://localhost:0", EINVAL },
    { "redis://localhost:99999", EINVAL },
    { "redis://localhost?lease=49", EINVAL },
    { "redis://localhost?lease=abc", EINVAL },
    { "redis://localhost?presence=99", EINVAL },
    { "redis://localhost?mutextype=strange", EINVAL },
    { "redis://localhost?unknown=1", EINVAL },
    { "unix://", EINVAL },
    { "rediss://localhost?cafile=", TEST_TLS ? EINVAL : ENOTSUP },
};

START_TEST(bad_url_is_refused_and_the_result_untouched)
{
    rlock_client_t *c = client;
    EXPECT(rlock_client_open(&c, bad_urls[_i].url, NULL), bad_urls[_i].code);
    ck_assert_str_ne(rlock_errmsg(), "");
    EXPECT(rlock_client_setdefault(bad_urls[_i].url, NULL), bad_urls[_i].code);
    ck_assert_ptr_eq(c, client);
}
END_TEST

START_TEST(open_without_a_place_for_the_result_is_EINVAL)
{
    EXPECT(rlock_client_open(NULL, url, NULL), EINVAL);
}
END_TEST

START_TEST(password_is_in_no_message)
{
    rlock_client_t *c = NULL;
    char with[TEST_URL_MAX + 64];
    EXPECT(rlock_client_open(&c, "redis://me:seCret@h?unknown=seCret", NULL), EINVAL);
    ck_assert_ptr_null(strstr(rlock_errmsg(), "seCret"));
    snprintf(with, sizeof(with), "redis://me:seCret@127.0.0.1:%u", (unsigned)server.port);
    OK(rlock_client_open(&c, with, NULL));
    EXPECT(rlock_client_ping(c), EACCES);
    ck_assert_str_ne(rlock_errmsg(), "");
    ck_assert_ptr_null(strstr(rlock_errmsg(), "seCret"));
    rlock_mutex_t locked_out = mutex_of(c, "n");
    EXPECT(rlock_mutex_trylock(&locked_out), EACCES);
    EXPECT(rlock_mutex_lock(&locked_out), EACCES);
    OK(rlock_client_close(c));
}
END_TEST

START_TEST(open_succeeds_while_the_server_is_away)
{
    rlock_client_t *c = NULL;
    OK(rlock_client_open(&c, "unix:///nonexistent?commandtimeout=50", NULL));
    EXPECT(rlock_client_ping(c), ENOTCONN);
    rlock_mutex_t away = mutex_of(c, "n");
    EXPECT(rlock_mutex_trylock(&away), ENOTCONN);
    struct timespec at = test_in_ms(CLOCK_REALTIME, 50);
    EXPECT(rlock_mutex_timedlock(&away, &at), ENOTCONN);
    EXPECT(rlock_waitfree(c, "n", &at), ENOTCONN);
    OK(rlock_client_close(c));
}
END_TEST

START_TEST(ping_of_a_silent_server_is_ENOTCONN_in_time)
{
    OK(rlock_client_ping(client));
    rlock_client_t *hasty = open_with("?commandtimeout=100");
    OK(rlock_client_ping(hasty));
    test_server_pause(&server);
    int64_t start = test_now_ms();
    EXPECT(rlock_client_ping(hasty), ENOTCONN);
    ck_assert_int_le(test_now_ms() - start, 100 + test_ms(200));
    test_server_resume(&server);
    OK(rlock_client_ping(hasty));
    close_client(hasty);
}
END_TEST

/* ---- close */

START_TEST(close_is_EBUSY_while_a_lock_is_held)
{
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_client_close(client), EBUSY);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_client_ping(client));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(close_is_EBUSY_while_a_lock_is_waited_for)
{
    struct task task;
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    EXPECT(rlock_client_close(client), EBUSY);
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
}
END_TEST

static int close_inside(const rlock_info_t *info, void *arg)
{
    int *rc = arg;
    (void)info;
    *rc = rlock_client_close(client);
    return 0;
}

START_TEST(close_is_EBUSY_inside_a_call)
{
    int rc = 0;
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_list(client, "*", close_inside, &rc));
    ck_assert_int_eq(rc, EBUSY);
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_client_ping(client));
}
END_TEST

START_TEST(close_of_none_is_EINVAL)
{
    static char nobody;
    rlock_client_t *c = other;
    close_client(other);
    other = NULL;
    EXPECT(rlock_client_close(c), EINVAL);
    EXPECT(rlock_client_ping(c), EINVAL);
    EXPECT(rlock_client_close((rlock_client_t *)(void *)&nobody), EINVAL);
    rlock_stats_t stats;
    EXPECT(rlock_client_getstats(c, &stats), EINVAL);
    EXPECT(rlock_client_getstats(client, NULL), EINVAL);
    EXPECT(rlock_inspect(c, "n", &(rlock_info_t *){ NULL }), EINVAL);
}
END_TEST

START_TEST(closed_client_leaves_no_connection)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    close_client(client);
    close_client(other);
    client = other = NULL;
    for (int tries = 0; test_redis_info(redis, "connected_clients") > 1 && tries < 1000;
         tries++)
        test_pause_ms(1);
    ck_assert_int_eq(test_redis_info(redis, "connected_clients"), 1);
}
END_TEST

/* ---- the default client */

START_TEST(default_client_is_opened_at_first_use_by_RLOCK_URL)
{
    static rlock_mutex_t plain = RLOCK_MUTEX_INITIALIZER("default");
    rlock_stats_t stats;
    setenv("RLOCK_URL", url, 1);
    OK(rlock_client_getstats(NULL, &stats));
    ck_assert_uint_eq(stats.connects, 0);
    EXPECT(rlock_client_interrupt(NULL), EINVAL);
    OK(rlock_mutex_lock(&plain));
    ck_assert(test_redis_exists(redis, "default"));
    EXPECT(rlock_client_setdefault(url, NULL), EBUSY);
    EXPECT(rlock_client_close(NULL), EBUSY);
    OK(rlock_mutex_unlock(&plain));
    OK(rlock_client_ping(NULL));
    ck_assert_uint_eq(stats_of(NULL).acquisitions, 1);
    OK(rlock_client_close(NULL));
    OK(rlock_client_close(NULL)); /* nothing is open */
    OK(rlock_mutex_lock(&plain)); /* the next use opens it again */
    OK(rlock_mutex_unlock(&plain));
    ck_assert_uint_eq(stats_of(NULL).acquisitions, 1);
}
END_TEST

START_TEST(setdefault_says_how_it_is_opened)
{
    rlock_clientattr_t attr;
    rlock_mutex_t plain;
    setenv("RLOCK_URL", "unix:///nonexistent", 1);
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setlease(&attr, 60000));
    OK(rlock_client_setdefault(url, &attr));
    OK(rlock_clientattr_destroy(&attr)); /* the client has a copy */
    OK(rlock_mutex_init(&plain, NULL, "default"));
    OK(rlock_mutex_lock(&plain));
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "default"), 30000);
    OK(rlock_mutex_unlock(&plain));
}
END_TEST

static atomic_bool pinged_enough;

static int run_pings(void *arg)
{
    int rc = 0;
    (void)arg;
    while (rc == 0 && !atomic_load(&pinged_enough)) {
        rc = rlock_client_ping(NULL);
        test_pause_ms(1); /* else calls would always be under way */
    }
    return rc;
}

START_TEST(default_client_may_be_closed_whenever_no_call_is_under_way)
{
    enum { THREADS = 2 };
    struct task tasks[THREADS];
    long closes = test_count(100, 20);
    OK(rlock_client_setdefault(url, NULL));
    for (int i = 0; i < THREADS; i++)
        task_start(&tasks[i], run_pings, NULL);
    while (closes > 0) {
        int rc = rlock_client_close(NULL);
        ck_assert(rc == 0 || rc == EBUSY);
        closes -= rc == 0;
        test_pause_ms(rc == 0 ? 0 : 1);
    }
    atomic_store(&pinged_enough, true);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&tasks[i]));
}
END_TEST

static rlock_mutex_t shared_plain = RLOCK_MUTEX_INITIALIZER("default");

START_TEST(many_threads_open_one_default_client)
{
    enum { THREADS = 16 };
    struct task tasks[THREADS];
    OK(rlock_client_setdefault(url, NULL));
    for (int i = 0; i < THREADS; i++)
        task_start(&tasks[i], run_pair, &shared_plain);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&tasks[i]));
    ck_assert_uint_eq(stats_of(NULL).acquisitions, THREADS);
}
END_TEST

START_TEST(two_clients_are_two_holders)
{
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    ck_assert_int_eq(count_of(&theirs), 0);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_trylock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* ---- interrupt */

static int run_waitfree(void *c)
{
    return rlock_waitfree(c, "n", NULL);
}

static int run_normal_twice(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(20000));
    int rc = rlock_mutex_lock(mutex);
    if (rc != 0)
        return rc;
    rc = rlock_mutex_timedlock(mutex, &at); /* waits for its own hold */
    int unlocked = rlock_mutex_unlock(mutex);
    return unlocked != 0 ? unlocked : rc;
}

START_TEST(interrupt_ends_waits_with_ECANCELED)
{
    enum { THREADS = 5 };
    struct task tasks[THREADS], watcher, itself;
    rlock_mutex_t normal = typed_mutex(client, "self", RLOCK_MUTEX_NORMAL);
    OK(rlock_mutex_lock(&theirs));
    for (int i = 0; i < THREADS; i++)
        task_start(&tasks[i], run_pair, &m);
    task_start(&watcher, run_waitfree, client);
    task_start(&itself, run_normal_twice, &normal);
    ck_assert(wait_waiters(client, THREADS + 1));
    ck_assert(wait_key("self", true, SOON_MS));
    OK(rlock_client_interrupt(client));
    for (int i = 0; i < THREADS; i++) {
        ck_assert(task_ends(&tasks[i], SOON_MS));
        EXPECT(task_join(&tasks[i]), ECANCELED);
    }
    EXPECT(task_join(&watcher), ECANCELED);
    ck_assert(task_ends(&itself, SOON_MS));
    EXPECT(task_join(&itself), ECANCELED);
    ck_assert(!test_redis_exists(redis, "rlock:{n}:queue"));
    /* calls that begin after the interrupt end, too */
    EXPECT(rlock_mutex_lock(&m), ECANCELED);
    EXPECT(rlock_waitfree(client, "n", NULL), ECANCELED);
    EXPECT(rlock_mutex_trylock(&m), EBUSY);
    ck_assert(!test_redis_exists(redis, "rlock:{n}:queue"));
    OK(rlock_mutex_unlock(&theirs));
    /* a call that need not wait succeeds */
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_waitfree(client, "n", NULL));
}
END_TEST

START_TEST(interrupt_loses_no_hold)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_client_interrupt(client));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_extend(&m, 60000));
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

static atomic_bool handled;

static void on_signal(int number)
{
    (void)number;
    rlock_client_interrupt(client);
    atomic_store(&handled, true);
}

/* ThreadSanitizer keeps a signal that comes just before a thread sleeps, until it is
 * awake again; the next one it delivers. */
static bool handles_signal(void *thread)
{
    if (!atomic_load(&handled))
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return atomic_load(&handled);
}

START_TEST(interrupt_may_be_called_by_a_signal_handler)
{
    struct task task;
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, &old);
    atomic_store(&handled, false);
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    /* the thread that waits gets the signal itself */
    ck_assert(test_wait_until(handles_signal, &task.thread, SOON_MS));
    ck_assert(task_ends(&task, SOON_MS));
    EXPECT(task_join(&task), ECANCELED);
    OK(rlock_mutex_unlock(&theirs));
    sigaction(SIGUSR1, &old, NULL);
}
END_TEST

/* ---- statistics */

START_TEST(statistics_count_what_happened)
{
    struct task task;
    struct timespec past = { 0, 0 }, soon;
    rlock_stats_t zero = { 0 };

    reopen_with("?presence=30000"); /* the client learns of its grant by the message */
    m = mutex_of(client, "n");
    for (int i = 0; i < 3; i++)
        OK(rlock_mutex_lock(&m));
    rlock_stats_t s = stats_of(client);
    ck_assert_uint_eq(s.holds_now, 1);
    ck_assert_uint_eq(s.acquisitions, 1);
    for (int i = 0; i < 3; i++)
        OK(rlock_mutex_unlock(&m));
    s = stats_of(client);
    ck_assert_uint_eq(s.holds_now, 0);
    ck_assert_uint_eq(s.reentries, 2);
    ck_assert_uint_eq(s.releases, 1);
    ck_assert_uint_eq(s.round_trips, 2);
    ck_assert_uint_ge(s.connects, 2);
    ck_assert_uint_eq(s.connect_failures, 0);
    ck_assert_uint_eq(s.reconnects, 0);

    OK(rlock_mutex_lock(&theirs));
    EXPECT(rlock_mutex_timedlock(&m, &past), ETIMEDOUT);
    soon = test_in_ms(CLOCK_REALTIME, test_ms(100));
    EXPECT(rlock_mutex_timedlock(&m, &soon), ETIMEDOUT);
    s = stats_of(client);
    ck_assert_uint_eq(s.timeouts, 2);
    ck_assert_uint_eq(s.cancels, 1);
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    ck_assert(wait_key("rlock:{n}:queue", true, SOON_MS));
    ck_assert_uint_eq(stats_of(client).waiters_now, 1);
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
    s = stats_of(client);
    ck_assert_uint_eq(s.grants, 1);
    ck_assert_uint_ge(s.messages, 1);
    ck_assert_uint_eq(s.waiters_now, 0);
    ck_assert_uint_eq(s.acquisitions, 2);
    ck_assert_uint_eq(s.unknown_outcomes, 0);
    ck_assert_uint_eq(s.losses, 0);
    ck_assert_int_eq(memcmp(s.rlk_reserved, zero.rlk_reserved, sizeof(s.rlk_reserved)),
                     0);
    OK(rlock_mutex_lock(&m));
    OK(rlock_force_unlock(other, "n"));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_uint_eq(stats_of(client).losses, 1);
}
END_TEST

START_TEST(waits_counts_calls_that_had_to_wait)
{
    struct task task;
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m); /* waits at the server */
    ck_assert(wait_key("rlock:{n}:queue", true, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
    ck_assert_uint_eq(stats_of(client).waits, 1);
    OK(rlock_mutex_lock(&m));
    task_start(&task, run_pair, &m); /* waits for a thread of this process */
    ck_assert(wait_waiters(client, 1));
    OK(rlock_mutex_unlock(&m));
    OK(task_join(&task));
    ck_assert_uint_eq(stats_of(client).waits, 2);
}
END_TEST

static rlock_client_t *behind; /* behind the proxy */

static bool has_a_message(void *arg)
{
    (void)arg;
    return stats_of(behind).messages > 0;
}

/* The call did not sleep: the grant came before the reply that says "queued". */
START_TEST(waits_counts_a_call_that_was_queued_and_found_its_grant)
{
    struct task task;
    proxy = test_proxy_start(&server);
    fixture_load_scripts();
    behind = open_at(test_proxy_url(proxy), "");
    rlock_mutex_t ours = mutex_of(behind, "n");
    OK(rlock_mutex_lock(&theirs));
    int rule = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1,
                         .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha);
    task_start(&task, run_pair, &ours);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(test_wait_until(has_a_message, NULL, SOON_MS));
    test_proxy_release(proxy, rule);
    OK(task_join(&task));
    ck_assert_uint_eq(stats_of(behind).grants, 1);
    ck_assert_uint_eq(stats_of(behind).waits, 1);
    close_client(behind);
    test_proxy_stop(proxy);
}
END_TEST

START_TEST(garbage_in_the_mailbox_is_counted_and_does_nothing)
{
    const redisReply *channels =
        test_redis_do(redis, "PUBSUB", "CHANNELS", "rlock:client:*");
    char names[2][64];
    ck_assert_uint_eq(channels->elements, 2);
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof(names[i]), "%s", channels->element[i]->str);
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < 2; i++) {
        const char *uuid = strrchr(names[i], ':') + 1;
        char text[128];
        test_redis_do(redis, "PUBLISH", names[i], "garbage");
        test_redis_do(redis, "PUBLISH", names[i], "9 grant 0 0 1 1 x 5 n");
        test_redis_do(redis, "PUBLISH", names[i], "1 grant 0 0 1 1 x:1:1:m3000 5 n");
        snprintf(text, sizeof(text), "1 lost %s:9:9:m3000 n", uuid);
        test_redis_do(redis, "PUBLISH", names[i], text);
        snprintf(text, sizeof(text), "1 wanted %s:9:9:m3000 n", uuid);
        test_redis_do(redis, "PUBLISH", names[i], text);
    }
    for (int tries = 0; stats_of(client).messages < 2 && tries < 2000; tries++)
        test_pause_ms(1);
    ck_assert_uint_ge(stats_of(client).messages_ignored, 2);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- leaks */

static int entries_of(const char *path)
{
    DIR *dir = opendir(path);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void open_use_close(void)
{
    rlock_client_t *c = NULL;
    OK(rlock_client_open(&c, url, NULL));
    rlock_mutex_t mutex = mutex_of(c, "n");
    OK(rlock_mutex_lock(&mutex));
    OK(rlock_mutex_unlock(&mutex));
    OK(rlock_client_close(c));
}

START_TEST(client_opened_and_closed_often_leaks_nothing)
{
    for (int i = 0; i < WARM_UP; i++)
        open_use_close();
    int fds = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
    size_t bytes = mallinfo2().uordblks;
    for (int i = 0; i < ROUNDS; i++)
        open_use_close();
    ck_assert_int_eq(entries_of("/proc/self/fd"), fds);
    ck_assert_int_eq(entries_of("/proc/self/task"), threads);
    /* the threads' caches of freed blocks vary; a leak of the smallest block in each
     * round would exceed this */
    ck_assert_uint_le(mallinfo2().uordblks, bytes + 16 * ROUNDS);
}
END_TEST

#define CASE(name, ...)                                                                  \
    do {                                                                                 \
        const TTest *const tests[] = { __VA_ARGS__ };                                    \
        TCase *tc = tcase_create(name);                                                  \
        tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);                    \
        tcase_add_checked_fixture(tc, set_up, tear_down);                                \
        tcase_set_timeout(tc, 120);                                                      \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)                    \
            tcase_add_test(tc, tests[i]);                                                \
        suite_add_tcase(suite, tc);                                                      \
    } while (0)

int main(void)
{
    Suite *suite = suite_create("client api");
    TCase *loops = tcase_create("urls");
    tcase_add_unchecked_fixture(loops, fixture_start, fixture_stop);
    tcase_add_checked_fixture(loops, set_up, tear_down);
    tcase_add_loop_test(loops, bad_url_is_refused_and_the_result_untouched, 0,
                        sizeof(bad_urls) / sizeof(bad_urls[0]));
    suite_add_tcase(suite, loops);
    CASE("open", open_without_a_place_for_the_result_is_EINVAL, password_is_in_no_message,
         open_succeeds_while_the_server_is_away,
         ping_of_a_silent_server_is_ENOTCONN_in_time);
    CASE("close", close_is_EBUSY_while_a_lock_is_held,
         close_is_EBUSY_while_a_lock_is_waited_for, close_is_EBUSY_inside_a_call,
         close_of_none_is_EINVAL, closed_client_leaves_no_connection);
    CASE("default client", default_client_is_opened_at_first_use_by_RLOCK_URL,
         setdefault_says_how_it_is_opened, many_threads_open_one_default_client,
         default_client_may_be_closed_whenever_no_call_is_under_way,
         two_clients_are_two_holders);
    CASE("interrupt", interrupt_ends_waits_with_ECANCELED, interrupt_loses_no_hold,
         interrupt_may_be_called_by_a_signal_handler);
    CASE("statistics", statistics_count_what_happened,
         waits_counts_calls_that_had_to_wait,
         waits_counts_a_call_that_was_queued_and_found_its_grant,
         garbage_in_the_mailbox_is_counted_and_does_nothing);
    CASE("leaks", client_opened_and_closed_often_leaks_nothing);
    return test_run_suite(suite);
}
