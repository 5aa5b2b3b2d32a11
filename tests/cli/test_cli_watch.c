/* SPDX-License-Identifier: Apache-2.0 */
/* `rlock watch`: its lines in a pipe, and its view on a terminal, seen as a terminal
 * would show it (screen.h). */
#include "cli.h"
#include "fixture.h"
#include "screen.h"
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 24, COLUMNS = 80, CROWD = 40, LEFT = 30, AT_ONCE_MS = 5000 };
enum { OTHERS = 50000 }; /* keys that are not locks */

#define HOSTILE "x\x1b[2J\ny\xff"
#define HOSTILE_SHOWN "x\\x1b[2J\\x0ay\\xff"
#define WATCH "rlock", "watch", "--interval", "0.1"

/* Prints whether the terminal is left as it was, and how rlock ended. The pid is for
 * signals; the shell outlives those that the terminal sends to both. */
#define WRAPPED                                                                          \
    "trap : INT HUP\n"                                                                   \
    "before=$(stty -g)\n"                                                                \
    "sh -c 'echo pid $$ .; exec \"$0\" watch --interval 0.1' \"$0\"\n"                   \
    "code=$?\n"                                                                          \
    "if [ \"$before\" = \"$(stty -g)\" ]; then echo SAME-$code.; else echo CHANGED; fi"

static struct cli c;
static struct worker worker;
static char url[TEST_URL_MAX + 64];
static const char *env[] = { url, NULL };

static void set_up(void)
{
    fixture_open();
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
}

static void tear_down(void)
{
    cli_stop(&c);
    worker_end(&worker);
    fixture_close();
}

/* ---- in a pipe */

static size_t told; /* bytes of the output that the test has looked at */

static void start_plain(void)
{
    cli_start(&c, CLI_ARGV(WATCH), env);
    told = 0;
}

static bool has_line(void *arg)
{
    (void)arg;
    cli_collect(&c);
    return strchr(c.out.text + told, '\n') != NULL;
}

/* The next line reports this event, lock and type. */
static void tells(const char *event, const char *name, const char *type)
{
    char wanted[256];

    snprintf(wanted, sizeof(wanted), "\t%s\t%s\t%s\t", event, name, type);
    bool has = test_wait_until(has_line, NULL, CLI_WAIT_MS);
    ck_assert_msg(has, "no %s of %s", event, name);
    const char *line = c.out.text + told, *fields = strchr(line, '\t');
    int len = (int)strcspn(line, "\n");
    ck_assert_msg(fields && strncmp(fields, wanted, strlen(wanted)) == 0,
                  "%s of %s expected: %.*s", event, name, len, line);
    told += (size_t)len + 1;
}

START_TEST(plain_tells_each_change_once)
{
    rlock_mutex_t n = mutex_of(client, "n"), hostile = mutex_of(client, HOSTILE),
                  first = mutex_of(client, "a"), last = mutex_of(client, "z");

    OK(rlock_mutex_lock(&n));
    OK(rlock_mutex_lock(&first)); /* from now on no line is about these two */
    OK(rlock_mutex_lock(&last));
    start_plain();
    tells("held", "a", "mutex");
    tells("held", "n", "mutex");
    tells("held", "z", "mutex");
    OK(rlock_mutex_lock(&hostile));
    tells("taken", HOSTILE_SHOWN, "mutex");
    OK(rlock_mutex_unlock(&hostile));
    tells("released", HOSTILE_SHOWN, "mutex");
    worker_start(&worker, server.url);
    ck_assert(worker_says(&worker, "init 1 n", "ok"));
    ck_assert(worker_says(&worker, "async t lock 1", "ok"));
    ck_assert(wait_size("rlock:{n}:queue", 1));
    OK(rlock_mutex_unlock(&n));
    tells("passed", "n", "mutex");
    ck_assert(worker_says(&worker, "on t unlock 1", "ok"));
    tells("released", "n", "mutex");
    OK(rlock_mutex_unlock(&first));
    tells("released", "a", "mutex");
    OK(rlock_mutex_unlock(&last));
    tells("released", "z", "mutex");
    kill(c.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGTERM);
}
END_TEST

START_TEST(plain_output_shows_readers_that_come_and_go)
{
    rlock_rwlock_t r = rwlock_of(client, "r"), theirs = rwlock_of(fixture_other(), "r");

    OK(rlock_rwlock_rdlock(&r));
    start_plain();
    tells("held", "r", "rwlock");
    OK(rlock_rwlock_rdlock(&theirs));
    tells("joined", "r", "rwlock");
    OK(rlock_rwlock_unlock(&r));
    tells("left", "r", "rwlock");
    OK(rlock_rwlock_unlock(&theirs));
    tells("released", "r", "rwlock");
}
END_TEST

START_TEST(plain_tells_a_lock_that_its_client_took_again)
{
    rlock_mutex_t n = mutex_of(client, "n");
    bool seen = false;

    OK(rlock_mutex_lock(&n));
    start_plain();
    tells("held", "n", "mutex");
    cli_forget(&c);
    while (!seen) { /* a look may come in between: then it is released, and held */
        OK(rlock_mutex_unlock(&n));
        OK(rlock_mutex_lock(&n));
        ck_assert(cli_says(&c, "\tn\tmutex\t"));
        seen = strstr(c.out.text, "\tretaken\tn\tmutex\t") != NULL;
        ck_assert_msg(seen || strstr(c.out.text, "\treleased\tn\t"), "%s", c.out.text);
        ck_assert(seen || cli_says(&c, "\ttaken\tn\t"));
        cli_forget(&c);
    }
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(plain_goes_on_when_the_server_is_back)
{
    start_plain();
    test_server_kill(&server);
    ck_assert(cli_says(&c, "\tunreachable\t\t\t"));
    test_server_restart(&server);
    ck_assert(cli_says(&c, "\treachable\t\t\t"));
    ck_assert_int_eq(cli_ends(&c, 0), CLI_STILL_RUNS);
}
END_TEST

START_TEST(plain_ends_when_nobody_reads)
{
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    cli_start(&c,
              CLI_ARGV("sh", "-c", "\"$0\" watch --interval 0.1 | head -n 1", cli_path()),
              env);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, "\theld\tn\t"));
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(refused_credentials_are_77)
{
    const char *with_user[] = { url, "RLOCK_USER=nobody", "RLOCK_PASSWORD=x", NULL };

    if (_i == 0)
        cli_start(&c, CLI_ARGV(WATCH), with_user);
    else
        cli_start_pty(&c, CLI_ARGV(WATCH), with_user, ROWS, COLUMNS);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 77);
    ck_assert(cli_complains(&c, "cannot list the locks"));
}
END_TEST

/* ---- its load on the server */

static int scans; /* the proxy's rule that counts scans */

static bool has_scanned(void *count)
{
    return test_proxy_hits(proxy, scans) >= *(unsigned *)count;
}

START_TEST(a_long_way_to_the_server_makes_looks_no_rarer)
{
    enum { WAY_MS = 100, LOOKS = 5, BOUND_MS = 10000 }; /* 20 times as long: 16 s */
    unsigned looks = LOOKS;
    proxy = test_proxy_start(&server);
    scans = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = "SCAN");
    TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_DELAY, .delay_ms = WAY_MS);
    snprintf(url, sizeof(url), "RLOCK_URL=%s", test_proxy_url(proxy));
    start_plain();
    ck_assert(test_wait_until(has_scanned, &looks, BOUND_MS));
    cli_stop(&c);
    test_proxy_stop(proxy);
    proxy = NULL;
}
END_TEST

/* How many times a command was called since the last CONFIG RESETSTAT. */
static long long calls_of(const char *command, long long *ret_us)
{
    char key[64];
    long long calls = 0;

    snprintf(key, sizeof(key), "cmdstat_%s:", command);
    const char *at = strstr(test_redis_str(redis, "INFO", "commandstats"), key);
    if (at)
        sscanf(at + strlen(key), "calls=%lld,usec=%lld", &calls, ret_us);
    return calls;
}

static void make_others(void)
{
    char script[128];

    snprintf(script, sizeof(script),
             "for i = 1, %d do redis.call('SET', 'other' .. i, '') end", OTHERS);
    test_redis_do(redis, "EVAL", script, "0");
}

static bool has_walked(void *calls)
{
    long long us;
    return calls_of("scan", &us) > *(long long *)calls;
}

static int none(const rlock_info_t *each, void *arg)
{
    (void)each;
    (void)arg;
    return 0;
}

START_TEST(plain_takes_a_twentieth_of_the_server_and_says_so)
{
    enum { US_PER_MS = 1000, PART = 10 }; /* with some tolerance */
    long long us = 0;

    make_others();
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    OK(rlock_list(client, "none*", none, NULL));
    long long two_looks = 2 * calls_of("scan", &us);
    ck_assert_int_gt(two_looks, 2);
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    int64_t begin = test_now_ms();
    start_plain();
    ck_assert(test_wait_until(has_walked, &two_looks, 3 * CLI_WAIT_MS));
    int64_t took_us = (test_now_ms() - begin) * US_PER_MS;
    calls_of("scan", &us);
    ck_assert_msg(us * PART < took_us, "%lld us of %lld", us, (long long)took_us);
    ck_assert(cli_complains(&c, "of the server's time: one every "));
    ck_assert(cli_complains(&c, "not every 0.1 s"));
    ck_assert_str_eq(c.out.text, "");
}
END_TEST

START_TEST(a_name_is_watched_without_a_walk)
{
    rlock_mutex_t n = mutex_of(client, "n");
    long long us;

    OK(rlock_mutex_lock(&n));
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    cli_start(&c, CLI_ARGV(WATCH, "n"), env);
    told = 0;
    tells("held", "n", "mutex");
    OK(rlock_mutex_unlock(&n));
    tells("released", "n", "mutex");
    ck_assert_int_eq(calls_of("scan", &us), 0);
    ck_assert_int_gt(calls_of("evalsha", &us), 0);
}
END_TEST

static const char *const poor[] = { "TERM=dumb", "TERM=", "TERM=no-such-terminal" };

START_TEST(a_terminal_without_a_cursor_gets_lines)
{
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    cli_start_pty(&c, CLI_ARGV("env", poor[_i], cli_path(), "watch"), env, ROWS, COLUMNS);
    ck_assert(cli_says(&c, "\theld\tn\tmutex\t"));
    cli_type(&c, "\3");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGINT);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

/* ---- on a terminal */

#ifdef HAVE_NCURSES

static struct screen screen;

/* Brings `screen` up to date. */
static void feed_screen(void)
{
    cli_collect(&c);
    screen_feed(&screen, c.out.text, c.out.len);
    cli_forget(&c);
}

static bool shows_now(void *text)
{
    feed_screen();
    return screen_find(&screen, text) >= 0;
}

static bool hides_now(void *text)
{
    return !shows_now(text);
}

static void dump(const char *why, const char *text)
{
    fprintf(stderr, "%s \"%s\" on the screen:\n", why, text);
    for (int i = 0; i < screen.rows; i++)
        fprintf(stderr, "|%.*s|\n", screen.columns, screen.cells[i]);
}

static void shows(const char *text)
{
    if (!test_wait_until(shows_now, (void *)(uintptr_t)text, CLI_WAIT_MS)) {
        dump("no", text);
        ck_abort_msg("the screen does not show %s", text);
    }
    ck_assert_str_eq(screen.unknown, "");
}

static void hides(const char *text)
{
    if (!test_wait_until(hides_now, (void *)(uintptr_t)text, CLI_WAIT_MS)) {
        dump("still", text);
        ck_abort_msg("the screen still shows %s", text);
    }
}

static pid_t pid; /* of rlock below the shell */

static void start_view(int rows, int columns)
{
    screen_init(&screen, rows, columns);
    cli_start_pty(&c, CLI_ARGV("sh", "-c", WRAPPED, cli_path()), env, rows, columns);
    ck_assert(cli_says(&c, "pid "));
    ck_assert(cli_says(&c, " ."));
    pid = (pid_t)atoi(strstr(c.out.text, "pid ") + strlen("pid "));
    shows("q quit");
    ck_assert(screen.alternate);
    ck_assert(screen.hidden_cursor);
}

/* The terminal is as it was, and rlock ended with this code. */
static void left_with(int code)
{
    char text[32];

    snprintf(text, sizeof(text), "SAME-%d.", code);
    shows(text);
    ck_assert(!screen.alternate);
    ck_assert(!screen.hidden_cursor);
}

static void resize(int rows, int columns)
{
    feed_screen();
    screen_resize(&screen, rows, columns);
    cli_resize(&c, rows, columns);
}

START_TEST(view_shows_holders_and_waiters_and_what_changes)
{
    rlock_mutex_t n = mutex_of(client, "orders"),
                  theirs = mutex_of(fixture_other(), "orders"),
                  second = mutex_of(client, "users");
    struct actor actor;

    OK(rlock_mutex_lock(&n));
    OK(rlock_mutex_lock(&second));
    actor_start(&actor);
    actor_begin(&actor, run_lock, &theirs);
    ck_assert(wait_size("rlock:{orders}:queue", 1));
    start_view(ROWS, COLUMNS);
    shows("2 locks held");
    shows("waits 1");
    shows("users"); /* the last line to be drawn */
    int row = screen_find(&screen, "orders");
    ck_assert_int_eq(row, 2);
    ck_assert_ptr_nonnull(strstr(screen.cells[row], "holds"));
    ck_assert_ptr_nonnull(strstr(screen.cells[row], "exclusive"));
    ck_assert_ptr_nonnull(strstr(screen.cells[row + 1], "waits 1"));
    ck_assert_int_eq(screen_find(&screen, "users"), row + 2);
    OK(rlock_mutex_unlock(&n));
    hides("waits 1");
    OK(rlock_mutex_unlock(&second));
    hides("users");
    shows("1 lock held");
    ck_assert_int_eq(actor_rc(&actor), 0);
    ck_assert_int_eq(actor_does(&actor, run_unlock, &theirs), 0);
    actor_end(&actor);
    hides("orders");
    shows("0 locks held");
    cli_type(&c, "q");
    left_with(0);
}
END_TEST

START_TEST(view_draws_no_bytes_of_a_hostile_name)
{
    rlock_mutex_t n = mutex_of(client, HOSTILE);

    OK(rlock_mutex_lock(&n));
    start_view(ROWS, 100);
    shows(HOSTILE_SHOWN);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(view_follows_the_terminals_size)
{
    static const int sizes[][2] = { { 1, 1 }, { 3, 10 }, { 2, 200 }, { 60, 5 } };
    rlock_mutex_t n = mutex_of(client, "orders");

    OK(rlock_mutex_lock(&n));
    start_view(ROWS, COLUMNS);
    shows("orders");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        resize(sizes[i][0], sizes[i][1]);
        if (sizes[i][1] > 20)
            shows("1 lock held");
        cli_forget(&c);
        ck_assert(cli_says(&c, "\033[")); /* it goes on drawing */
        ck_assert_int_eq(cli_ends(&c, 0), CLI_STILL_RUNS);
    }
    resize(60, 200);
    shows("LEASE");
    shows("orders");
    shows("q quit");
    ck_assert_int_eq(screen_find(&screen, "q quit"), 59);
    ck_assert_int_eq(screen_find(&screen, "orders"), 2);
    resize(6, 40);
    shows("q quit");
    ck_assert_int_eq(screen_find(&screen, "q quit"), 5);
    cli_type(&c, "q");
    left_with(0);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

/* A narrow terminal does not cut off first what identifies a client. */
START_TEST(narrow_view_shows_the_pid)
{
    static const char *const names[] = { "orders", "orders-of-all-customers-and-years" };
    char wanted[32];
    rlock_mutex_t n = mutex_of(client, names[_i]);

    OK(rlock_mutex_lock(&n));
    snprintf(wanted, sizeof(wanted), ":%d", (int)getpid());
    for (int columns = 60; columns > 50; columns--) {
        start_view(ROWS, columns);
        shows(wanted);
        const char *pid_at = strstr(screen.cells[2], wanted);
        ck_assert_msg(pid_at && strchr(" :", pid_at[strlen(wanted)]), "%.*s", columns,
                      screen.cells[2]);
        cli_type(&c, "q");
        left_with(0);
        cli_stop(&c);
    }
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(view_scrolls)
{
    char name[16];
    rlock_mutex_t m[CROWD];

    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "lock%02d", i);
        m[i] = mutex_of(client, name);
        OK(rlock_mutex_lock(&m[i]));
    }
    start_view(13, COLUMNS); /* ten of them fit */
    shows("1-10 of 40");
    ck_assert_int_eq(screen_find(&screen, "lock00"), 2);
    ck_assert_int_eq(screen_find(&screen, "lock10"), -1);
    static const struct {
        const char *keys, *footer, *first;
    } steps[] = {
        { "j", "2-11 of 40", "lock01" },         { "\033OB", "3-12 of 40", "lock02" },
        { "k", "2-11 of 40", "lock01" },         { "\033OA", "1-10 of 40", "lock00" },
        { "k\033[6~", "11-20 of 40", "lock10" }, { " ", "21-30 of 40", "lock20" },
        { "\033[5~", "11-20 of 40", "lock10" },  { "G", "31-40 of 40", "lock30" },
        { "jj ", "31-40 of 40", "lock30" },      { "\033OH", "1-10 of 40", "lock00" },
        { "\033OF", "31-40 of 40", "lock30" },   { "b", "21-30 of 40", "lock20" },
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        cli_type(&c, steps[i].keys);
        shows(steps[i].footer);
        ck_assert_int_eq(screen_find(&screen, steps[i].first), 2);
    }
    cli_type(&c, "G");
    shows("31-40 of 40");
    for (int i = 0; i < LEFT; i++)
        OK(rlock_mutex_unlock(&m[i]));
    shows("10 locks held");
    shows("lock39"); /* no empty page when the list gets shorter */
    ck_assert_int_eq(screen_find(&screen, "lock30"), 2);
    for (int i = LEFT; i < CROWD; i++)
        OK(rlock_mutex_unlock(&m[i]));
    shows("0 locks held");
    hides("of 40");
}
END_TEST

static const int signals[] = { SIGTERM, SIGHUP, SIGINT };

START_TEST(a_signal_leaves_the_terminal_as_it_was)
{
    start_view(ROWS, COLUMNS);
    kill(pid, signals[_i]);
    left_with(128 + signals[_i]);
}
END_TEST

START_TEST(ctrl_c_leaves_the_terminal_as_it_was)
{
    start_view(ROWS, COLUMNS);
    cli_type(&c, "\3");
    left_with(128 + SIGINT);
}
END_TEST

START_TEST(view_says_that_the_server_is_away_and_goes_on)
{
    rlock_mutex_t n = mutex_of(client, "orders");

    start_view(ROWS, COLUMNS);
    shows("0 locks held");
    test_server_kill(&server);
    shows("SERVER AWAY since");
    test_server_restart(&server);
    hides("SERVER AWAY");
    OK(rlock_mutex_lock(&n));
    shows("orders");
    OK(rlock_mutex_unlock(&n));
    hides("orders");
    cli_type(&c, "q");
    left_with(0);
}
END_TEST

START_TEST(view_says_that_looks_are_rarer_than_asked_for)
{
    start_view(ROWS, 100);
    shows("0 locks held");
    ck_assert_int_eq(screen_find(&screen, "to spare the server"), -1);
    make_others();
    shows("0 locks held, a look every ");
    shows(" s to spare the server");
    cli_type(&c, "q");
    left_with(0);
}
END_TEST

/* Stops the server, while the view waits for the reply to a look. */
static void start_silent_view(void)
{
    size_t len = strlen(url);

    snprintf(url + len, sizeof(url) - len, "?commandtimeout=15000");
    start_view(ROWS, COLUMNS);
    shows("0 locks held");
    test_server_pause(&server);
    shows("0 locks held, asking for");
}

static bool counts_on(void *arg)
{
    static const char text[] = "asking for ";
    (void)arg;
    feed_screen();
    int row = screen_find(&screen, text);
    return row >= 0 && atoi(strstr(screen.cells[row], text) + strlen(text)) >= 3;
}

START_TEST(view_counts_the_seconds_without_an_answer)
{
    rlock_mutex_t n = mutex_of(client, "orders");

    start_silent_view();
    ck_assert(test_wait_until(counts_on, NULL, CLI_WAIT_MS));
    ck_assert_int_eq(screen_find(&screen, "SERVER AWAY"), -1);
    test_server_resume(&server);
    hides("asking for");
    shows("0 locks held");
    OK(rlock_mutex_lock(&n)); /* a standstill is not load on the server */
    shows("orders");
    OK(rlock_mutex_unlock(&n));
    cli_type(&c, "q");
    left_with(0);
}
END_TEST

START_TEST(q_works_while_the_server_does_not_answer)
{
    start_silent_view();
    int64_t begin = test_now_ms();
    cli_type(&c, "q");
    left_with(0);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(AT_ONCE_MS));
    test_server_resume(&server);
}
END_TEST

/* A shell stops and continues it, as a person at a terminal does. */
#define STOPPED                                                                          \
    "set -m\n"                                                                           \
    "before=$(stty -g)\n"                                                                \
    "\"$0\" watch --interval 0.1\n"                                                      \
    "if [ \"$before\" = \"$(stty -g)\" ]; then echo STOPPED-$?.; read go; fi\n"          \
    "fg\n"                                                                               \
    "code=$?\n"                                                                          \
    "if [ \"$before\" = \"$(stty -g)\" ]; then echo SAME-$code.; else echo CHANGED; fi"

START_TEST(ctrl_z_gives_the_terminal_back_and_fg_draws_again)
{
    screen_init(&screen, ROWS, COLUMNS);
    cli_start_pty(&c, CLI_ARGV("sh", "-c", STOPPED, cli_path()), env, ROWS, COLUMNS);
    shows("0 locks held");
    cli_type(&c, "\032");
    shows("STOPPED");
    ck_assert(!screen.alternate);
    screen_init(&screen, ROWS, COLUMNS);
    cli_type(&c, "\n");
    shows("0 locks held");
    shows("q quit");
    ck_assert(screen.alternate);
    cli_type(&c, "q");
    left_with(0);
}
END_TEST

#endif

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("cli_watch");
    TCase *tc = add_case(suite, "plain");
    tcase_add_test(tc, plain_tells_each_change_once);
    tcase_add_test(tc, plain_output_shows_readers_that_come_and_go);
    tcase_add_test(tc, plain_tells_a_lock_that_its_client_took_again);
    tcase_add_test(tc, plain_goes_on_when_the_server_is_back);
    tcase_add_test(tc, plain_ends_when_nobody_reads);
    tcase_add_loop_test(tc, refused_credentials_are_77, 0, 2);
    tcase_add_loop_test(tc, a_terminal_without_a_cursor_gets_lines, 0, 3);
    tcase_add_test(tc, a_name_is_watched_without_a_walk);
    tcase_add_test(tc, a_long_way_to_the_server_makes_looks_no_rarer);
    tc = add_case(suite, "spares");
    tcase_add_test(tc, plain_takes_a_twentieth_of_the_server_and_says_so);
#ifdef HAVE_NCURSES
    tc = add_case(suite, "view");
    tcase_add_test(tc, view_shows_holders_and_waiters_and_what_changes);
    tcase_add_test(tc, view_draws_no_bytes_of_a_hostile_name);
    tcase_add_test(tc, view_follows_the_terminals_size);
    tcase_add_loop_test(tc, narrow_view_shows_the_pid, 0, 2);
    tcase_add_test(tc, view_scrolls);
    tcase_add_loop_test(tc, a_signal_leaves_the_terminal_as_it_was, 0, 3);
    tcase_add_test(tc, ctrl_c_leaves_the_terminal_as_it_was);
    tcase_add_test(tc, view_says_that_the_server_is_away_and_goes_on);
    tcase_add_test(tc, view_says_that_looks_are_rarer_than_asked_for);
    tcase_add_test(tc, view_counts_the_seconds_without_an_answer);
    tcase_add_test(tc, q_works_while_the_server_does_not_answer);
    tcase_add_test(tc, ctrl_z_gives_the_terminal_back_and_fg_draws_again);
#else
    printf("skipped: view: built without ncurses\n");
#endif
    return test_run_suite(suite);
}
