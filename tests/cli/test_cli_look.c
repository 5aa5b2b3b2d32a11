/* SPDX-License-Identifier: Apache-2.0 */
/* `rlock list`, `show`, `wait`: what they print, their exit codes, and that they leave
 * the locks as they are. The tests of JSON read it by python3. */
#include "cli.h"
#include "fixture.h"
#include "worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAITERS = 3, FIELDS = 7, SOON_MS = 700, FIELD_MAX = 256, NO_SERVER_MS = 4000 };

#define HOSTILE "a\n\"\xff\\\x1b[2J'"
#define HOSTILE_HEX "610a22ff5c1b5b324a27"
#define HOSTILE_SHOWN "a\\x0a\\x22\\xff\\x5c\\x1b[2J'"
#define UTF8 "b\xc3\xbcro"
/* CSI, as one character; U+00A0; the two separators of lines */
#define CONTROLS "c\xc2\x9b\x32J\xc2\xa0\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa"
#define CONTROLS_JSON "\"c\\u009b2J\xc2\xa0\\u2028\\u2029\xe2\x80\xaa\""
#define HOLDER "7c9ad6a5-7c1f-4ee0-a6cd-fd3d1f1cd1d3:52"
#define CHANNEL "redisson_lock__channel:{n}"

static struct cli c;
static struct worker workers[WAITERS];
static char url[TEST_URL_MAX + 16];
static const char *env[] = { url, NULL };

static void set_up(void)
{
    fixture_open();
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
}

static void tear_down(void)
{
    cli_stop(&c);
    for (int i = 0; i < WAITERS; i++)
        worker_end(&workers[i]);
    fixture_close();
}

/* Runs rlock with these arguments. Returns its exit code; c has what it printed. */
#define RLOCK(...) rlock(CLI_ARGV("rlock", __VA_ARGS__))
static int rlock(const char *const argv[])
{
    cli_stop(&c);
    return cli_does(&c, argv, env);
}

/* The same for a shell script, in which $0 is rlock. */
static int shell(const char *script)
{
    cli_stop(&c);
    return cli_does(&c, CLI_ARGV("sh", "-c", script, cli_path()), env);
}

static void printed(const char *text)
{
    ck_assert_str_eq(c.out.text, text);
}

static void complained(const char *text)
{
    ck_assert_msg(strstr(c.err.text, text), "stderr: %s", c.err.text);
}

/* `client` holds "n", and the workers queue for it one after the other. */
static void queue_up(void)
{
    for (int i = 0; i < WAITERS; i++) {
        worker_start(&workers[i], server.url);
        ck_assert(worker_says(&workers[i], "init 1 n", "ok"));
        ck_assert(worker_says(&workers[i], "async t lock 1", "ok"));
        ck_assert(wait_size("rlock:{n}:queue", i + 1));
    }
}

/* Whether one more waiter has got the lock. A mutex promises no order among them. */
static bool one_has_it(void *has_had_it)
{
    bool *had = has_had_it;
    for (int i = 0; i < WAITERS; i++)
        if (!had[i] && worker_news(&workers[i], "done t ok", 1)) {
            had[i] = true;
            ck_assert(worker_says(&workers[i], "on t unlock 1", "ok"));
            return true;
        }
    return false;
}

static void let_go(rlock_mutex_t *m)
{
    bool had[WAITERS];
    int waiting = 0;
    for (int i = 0; i < WAITERS; i++) {
        had[i] = workers[i].program.pid == 0;
        waiting += !had[i];
    }
    OK(rlock_mutex_unlock(m));
    for (; waiting > 0; waiting--)
        ck_assert(test_wait_until(one_has_it, had, CLI_WAIT_MS));
}

/* The hold has no TTL: it lasts for ever. */
static void hold_by_hand(void)
{
    test_redis_do(redis, "HSET", "n", HOLDER, "1");
}

/* ---- list */

START_TEST(list_of_none_is_empty_and_0)
{
    ck_assert_int_eq(RLOCK("list"), 0);
    printed("");
    ck_assert_str_eq(c.err.text, "");
    ck_assert_int_eq(RLOCK("list", "--json"), 0);
    printed("[]\n");
    cli_stop(&c);
    cli_start_pty(&c, CLI_ARGV("rlock", "list"), env, 24, 80);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    printed("none is held\r\n");
}
END_TEST

/* The fields of the next line, which must be FIELDS; false: there is none. */
static bool next_line(const char **at, char fields[FIELDS][FIELD_MAX])
{
    if (**at == '\0')
        return false;
    for (int i = 0; i < FIELDS; i++) {
        size_t len = strcspn(*at, "\t\n");
        ck_assert_uint_lt(len, FIELD_MAX);
        memcpy(fields[i], *at, len);
        fields[i][len] = '\0';
        ck_assert_int_eq((*at)[len], i + 1 < FIELDS ? '\t' : '\n');
        *at += len + 1;
    }
    return true;
}

START_TEST(list_in_a_pipe_has_seven_fields_sorted_by_name)
{
    char fields[FIELDS][FIELD_MAX], who[32];
    rlock_mutex_t n = mutex_of(client, "n"), a = mutex_of(client, "a");
    rlock_rwlock_t r = rwlock_of(client, "r"), s = rwlock_of(fixture_other(), "r");

    OK(rlock_mutex_lock(&n));
    OK(rlock_rwlock_rdlock(&r));
    OK(rlock_rwlock_rdlock(&s));
    OK(rlock_mutex_lock_lease(&a, 200500));
    queue_up();
    snprintf(who, sizeof(who), ":%d:", (int)getpid());
    ck_assert_int_eq(RLOCK("list"), 0);
    const char *at = c.out.text;
    static const char *const wanted[][4] = { { "a", "mutex", "1", "0" },
                                             { "n", "mutex", "1", "3" },
                                             { "r", "rwlock", "2", "0" } };
    for (int i = 0; i < 3; i++) {
        ck_assert(next_line(&at, fields));
        ck_assert_str_eq(fields[0], wanted[i][0]);
        ck_assert_str_eq(fields[1], wanted[i][1]);
        ck_assert_str_eq(fields[2], wanted[i][2]);
        ck_assert_ptr_nonnull(strstr(fields[3], who));
        ck_assert_ptr_nonnull(strstr(fields[4], " s"));
        if (i == 0)
            ck_assert_int_eq(strncmp(fields[5], "3 min ", 6), 0);
        else
            ck_assert_ptr_nonnull(strstr(fields[5], " s"));
        ck_assert_str_eq(fields[6], wanted[i][3]);
    }
    ck_assert(!next_line(&at, fields));
    OK(rlock_mutex_unlock(&a));
    OK(rlock_rwlock_unlock(&r));
    OK(rlock_rwlock_unlock(&s));
    let_go(&n);
}
END_TEST

START_TEST(list_takes_a_pattern)
{
    rlock_mutex_t one = mutex_of(client, "orders:1"), two = mutex_of(client, "users:1");

    OK(rlock_mutex_lock(&one));
    OK(rlock_mutex_lock(&two));
    ck_assert_int_eq(RLOCK("list", "orders:*"), 0);
    ck_assert_int_eq(strncmp(c.out.text, "orders:1\t", 9), 0);
    ck_assert_ptr_null(strstr(c.out.text, "users"));
    ck_assert_int_eq(RLOCK("list", "nothing*"), 0);
    printed("");
    OK(rlock_mutex_unlock(&one));
    OK(rlock_mutex_unlock(&two));
}
END_TEST

START_TEST(list_within_a_time_prints_a_part_and_is_75)
{
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    ck_assert_int_eq(RLOCK("list", "--within", "1m"), 0);
    ck_assert_int_eq(strncmp(c.out.text, "n\t", 2), 0);
    OK(rlock_mutex_unlock(&n));
    /* a listing of all these takes seconds */
    test_redis_do(redis, "EVAL",
                  "for i = 1, 300000 do redis.call('SET', 'other' .. i, '') end", "0");
    int64_t begin = test_now_ms();
    ck_assert_int_eq(RLOCK("list", "--within", "0.1s"), 75);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(3000));
    printed("");
    complained("there may be other locks");
    ck_assert_int_eq(RLOCK("list", "--within", "100ms", "--json"), 75);
    printed("[]\n");
}
END_TEST

START_TEST(list_on_a_terminal_is_aligned_and_fits_its_width)
{
    enum { COLUMNS = 70, LONG = 150 };
    char name[LONG + 1] = { 0 };
    memset(name, 'x', LONG);
    rlock_mutex_t n = mutex_of(client, "n"), l = mutex_of(client, name);

    OK(rlock_mutex_lock(&n));
    OK(rlock_mutex_lock(&l));
    cli_start_pty(&c, CLI_ARGV("rlock", "list"), env, 24, COLUMNS);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    long type_at = -1;
    int rows = 0;
    for (char *line = strtok(c.out.text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        ck_assert_uint_le(strlen(line), COLUMNS);
        const char *type = strstr(line, rows == 0 ? "TYPE" : "mutex");
        ck_assert_ptr_nonnull(type);
        if (rows == 0)
            type_at = type - line;
        ck_assert_int_eq(type - line, type_at);
        ck_assert_int_eq(line[type_at - 1], ' ');
        if (rows == 2)
            ck_assert_ptr_nonnull(strstr(line, "xxx..."));
        rows++;
    }
    ck_assert_int_eq(rows, 3);
    ck_assert_int_eq(RLOCK("list", "x*"), 0);
    ck_assert_int_eq(strncmp(c.out.text, name, LONG), 0);
    OK(rlock_mutex_unlock(&n));
    OK(rlock_mutex_unlock(&l));
}
END_TEST

START_TEST(list_says_when_its_output_is_lost)
{
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    ck_assert_int_eq(shell("\"$0\" list >/dev/full"), 70);
    complained("stdout");
    OK(rlock_mutex_unlock(&n));
}
END_TEST

/* ---- JSON */

static bool has_python(const char *test)
{
    if (shell("command -v python3 >/dev/null") == 0)
        return true;
    printf("skipped: %s: no python3\n", test);
    return false;
}

#define PYTHON " | python3 -ISc 'import json,sys\nd=json.load(sys.stdin)\n"

START_TEST(json_of_hostile_names_is_valid_and_loses_nothing)
{
    rlock_mutex_t hostile = mutex_of(client, HOSTILE), utf8 = mutex_of(client, UTF8);
    rlock_mutex_t controls = mutex_of(client, CONTROLS);

    if (!has_python("json_of_hostile_names"))
        return;
    OK(rlock_mutex_lock(&hostile));
    OK(rlock_mutex_lock(&utf8));
    ck_assert_int_eq(shell("\"$0\" list --json" PYTHON
                           "for l in d: print(ascii(l[\"name\"]),"
                           " l.get(\"name_hex\"))'"),
                     0);
    printed("'a\\n\"\\xff\\\\\\x1b[2J\\'' " HOSTILE_HEX "\n'b\\xfcro' None\n");
    ck_assert_int_eq(RLOCK("list"), 0);
    ck_assert_int_eq(strncmp(c.out.text, HOSTILE_SHOWN "\t", strlen(HOSTILE_SHOWN) + 1),
                     0);
    ck_assert_int_eq(RLOCK("show", HOSTILE), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, "name:    " HOSTILE_SHOWN "\n"));
    OK(rlock_mutex_lock(&controls));
    ck_assert_int_eq(RLOCK("show", "--json", CONTROLS), 0);
    ck_assert_msg(strstr(c.out.text, CONTROLS_JSON), "%s", c.out.text);
    ck_assert_ptr_null(strstr(c.out.text, "name_hex"));
    OK(rlock_mutex_unlock(&controls));
    OK(rlock_mutex_unlock(&hostile));
    OK(rlock_mutex_unlock(&utf8));
}
END_TEST

START_TEST(json_has_token_holder_and_waiters_in_order)
{
    char wanted[512];
    rlock_mutex_t n = fenced_mutex(client, "n");

    if (!has_python("json_has_token"))
        return;
    OK(rlock_mutex_lock(&n));
    queue_up();
    ck_assert_int_eq(
        shell("\"$0\" show --json n" PYTHON
              "print(d[\"name\"],d[\"type\"],d[\"token\"])\n"
              "for p in d[\"holders\"]+d[\"waiters\"]:"
              " print(p[\"client\"].split(\":\")[1],p[\"mode\"],"
              " 0 <= p[\"age_ms\"] < 600000, 0 < p[\"lease_left_ms\"] < 600000)'"),
        0);
    snprintf(wanted, sizeof(wanted),
             "n mutex %llu\n%d exclusive True True\n%d exclusive True True\n"
             "%d exclusive True True\n%d exclusive True True\n",
             (unsigned long long)token_of(&n), (int)getpid(), (int)workers[0].program.pid,
             (int)workers[1].program.pid, (int)workers[2].program.pid);
    printed(wanted);
    let_go(&n);
}
END_TEST

/* ---- show */

START_TEST(show_tells_holder_and_waiters_in_order)
{
    char who[32], line[64];
    rlock_mutex_t n = fenced_mutex(client, "n");

    OK(rlock_mutex_lock(&n));
    queue_up();
    ck_assert_int_eq(RLOCK("show", "n"), 0);
    snprintf(line, sizeof(line), "\ntoken:   %llu\n", (unsigned long long)token_of(&n));
    ck_assert_int_eq(strncmp(c.out.text, "name:    n\ntype:    mutex\n", 25), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, line));
    snprintf(who, sizeof(who), ":%d:", (int)getpid());
    const char *at = strstr(c.out.text, "holders: 1\n");
    ck_assert_ptr_nonnull(at);
    at = strstr(at, who);
    ck_assert_ptr_nonnull(at);
    at = strstr(at, "waiters: 3\n");
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_ptr_nonnull(at);
        snprintf(who, sizeof(who), ":%d:", (int)workers[i].program.pid);
        at = strstr(at, who);
    }
    ck_assert_ptr_nonnull(at);
    let_go(&n);
}
END_TEST

START_TEST(lease_that_never_ends_is_reported_as_never_and_null)
{
    char fields[FIELDS][FIELD_MAX];

    hold_by_hand();
    ck_assert_int_eq(RLOCK("show", "n"), 0);
    ck_assert_msg(strstr(c.out.text, "  never  "), "%s", c.out.text);
    ck_assert_int_eq(RLOCK("list"), 0);
    const char *at = c.out.text;
    ck_assert(next_line(&at, fields));
    ck_assert_str_eq(fields[5], "never");
    ck_assert_int_eq(RLOCK("show", "--json", "n"), 0);
    ck_assert_msg(strstr(c.out.text, "\"lease_left_ms\": null\n"), "%s", c.out.text);
}
END_TEST

START_TEST(show_of_nobody_is_1)
{
    ck_assert_int_eq(RLOCK("show", "n"), 1);
    printed("");
    complained("nobody holds \"n\"");
    ck_assert_int_eq(RLOCK("show", "--json", "n"), 1);
    printed("");
}
END_TEST

START_TEST(show_of_foreign_data_is_76)
{
    test_redis_do(redis, "HSET", "n", "field", "x");
    ck_assert_int_eq(RLOCK("show", "n"), 76);
    printed("");
}
END_TEST

/* ---- arguments, and servers that cannot be reached */

static const char *const bad[][4] = {
    { "list", "a", "b" },
    { "list", "--nothing" },
    { "show" },
    { "show", "a", "b" },
    { "show", "rlock:x" },
    { "wait" },
    { "wait", "--wait", "x", "n" },
    { "wait", "--wait=-1", "n" },
    { "wait", "--wait", "nan", "n" },
    { "watch", "--interval", "0" },
    { "watch", "a", "b" },
    { "release", "--force" },
    { "watch", "--interval", "0x1" },
    { "list", "--within", "0" },
};

START_TEST(bad_arguments_are_64)
{
    const char *const *b = bad[_i];

    ck_assert_int_eq(
        rlock((const char *const[]){ "rlock", b[0], b[1], b[2], b[3], NULL }), 64);
    ck_assert_str_ne(c.err.text, "");
    printed("");
}
END_TEST

START_TEST(bounds_of_seconds_are_reported_in_digits)
{
    ck_assert_int_eq(RLOCK("wait", "--wait=-1", "n"), 64);
    complained("\"-1\" is not a duration from 0s to 31536000s, as 500ms, 60s or 2m\n");
    ck_assert_int_eq(RLOCK("watch", "--interval", "1e9"), 64);
    complained("\"1e9\" is not a duration from 100ms to 86400s, as 500ms, 60s or 2m\n");
}
END_TEST

/* This is not the same as no password: then the server's default user would be used. */
START_TEST(password_file_without_a_password_is_64)
{
    static const char *const empty[] = { "", "\n", "\r\nsecret\n" };
    const char *what = empty[_i][0] ? "no password in the first line" : "no line in it";

    cli_start(&c, CLI_ARGV("rlock", "list", "--password-file", "-"), env);
    ck_assert(cli_type(&c, empty[_i]));
    cli_close_in(&c);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 64);
    complained(what);
    ck_assert_ptr_null(strstr(c.err.text, "secret"));
    ck_assert_int_eq(RLOCK("list", "--password-file", "/nowhere/at/all"), 64);
}
END_TEST

static const char *const asking[][4] = { { "list" },
                                         { "list", "--json" },
                                         { "show", "n" },
                                         { "wait", "n" },
                                         { "wait", "--wait", "3600", "n" },
                                         { "release", "--force", "--yes", "n" } };

static int ask(const char *const a[4])
{
    return rlock((const char *const[]){ "rlock", a[0], a[1], a[2], a[3], NULL });
}

START_TEST(no_server_is_69)
{
    snprintf(url, sizeof(url), "RLOCK_URL=unix://%s/none?commandtimeout=300", server.dir);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(ask(asking[_i]), 69);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(NO_SERVER_MS));
    printed("");
    ck_assert_str_ne(c.err.text, "");
}
END_TEST

START_TEST(refused_credentials_are_77)
{
    const char *with_user[] = { url, "RLOCK_USER=nobody", "RLOCK_PASSWORD=x", NULL };
    const char *const *a = asking[_i];

    cli_stop(&c);
    ck_assert_int_eq(
        cli_does(&c, (const char *const[]){ "rlock", a[0], a[1], a[2], a[3], NULL },
                 with_user),
        77);
    printed("");
}
END_TEST

/* ---- wait */

START_TEST(wait_for_a_free_lock_is_0)
{
    ck_assert_int_eq(RLOCK("wait", "n"), 0);
    ck_assert_int_eq(RLOCK("wait", "--wait", "0", "n"), 0);
}
END_TEST

static bool is_listening(void *where)
{
    const redisReply *reply = test_redis_do(where, "PUBSUB", "NUMSUB", CHANNEL);
    return reply->elements == 2 && reply->element[1]->integer > 0;
}

START_TEST(wait_ends_soon_after_the_release_and_takes_nothing)
{
    rlock_mutex_t n = mutex_of(client, "n"), theirs = mutex_of(fixture_other(), "n");

    OK(rlock_mutex_lock(&n));
    cli_start(&c, CLI_ARGV("rlock", "wait", "n"), env);
    ck_assert(test_wait_until(is_listening, redis, CLI_WAIT_MS));
    ck_assert_int_eq(cli_ends(&c, 0), CLI_STILL_RUNS);
    OK(rlock_mutex_unlock(&n));
    OK(rlock_mutex_trylock(&theirs)); /* rlock wait takes no place in the queue */
    OK(rlock_mutex_unlock(&theirs));
    ck_assert_int_eq(cli_ends(&c, SOON_MS), 0);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(wait_gives_up_at_its_deadline_with_75)
{
    enum { WAIT_MS = 300 };
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    int64_t begin = test_now_ms();
    ck_assert_int_eq(RLOCK("wait", "--wait", "300ms", "n"), 75);
    ck_assert_int_ge(test_now_ms() - begin, WAIT_MS);
    complained("\"n\" is still held");
    ck_assert_int_eq(RLOCK("wait", "--wait", "0", "n"), 75);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(wait_ends_by_a_signal)
{
    rlock_mutex_t n = mutex_of(client, "n");

    OK(rlock_mutex_lock(&n));
    cli_start(&c, CLI_ARGV("rlock", "wait", "n"), env);
    ck_assert(test_wait_until(is_listening, redis, CLI_WAIT_MS));
    kill(c.pid, SIGTERM);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGTERM);
    OK(rlock_mutex_unlock(&n));
}
END_TEST

START_TEST(wait_outlasts_a_short_outage)
{
    hold_by_hand();
    cli_start(&c, CLI_ARGV("rlock", "wait", "n"), env);
    ck_assert(test_wait_until(is_listening, redis, CLI_WAIT_MS));
    test_server_restart(&server); /* without its keys */
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
}
END_TEST

/* One server is gone and the other one is silent, at the same time: it takes 10 s. */
START_TEST(wait_gives_up_with_69_when_the_server_stays_away)
{
    static struct cli silent;
    struct test_server second;
    char second_url[sizeof(url)];
    const char *second_env[] = { second_url, NULL };

    test_server_start(&second, NULL);
    snprintf(second_url, sizeof(second_url), "RLOCK_URL=%s", second.url);
    hold_by_hand();
    cli_start(&c, CLI_ARGV("rlock", "wait", "n"), env);
    ck_assert(test_wait_until(is_listening, redis, CLI_WAIT_MS));
    struct test_redis *there = test_redis_connect(second.path);
    test_redis_do(there, "HSET", "n", HOLDER, "1");
    cli_start(&silent, CLI_ARGV("rlock", "wait", "n"), second_env);
    ck_assert(test_wait_until(is_listening, there, CLI_WAIT_MS));
    int64_t begin = test_now_ms();
    test_server_pause(&second);
    test_server_kill(&server);
    ck_assert_int_eq(cli_ends(&c, 2 * CLI_WAIT_MS), 69);
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, 5000);
    ck_assert_int_lt(took, test_ms(18000));
    ck_assert_int_eq(cli_ends(&silent, 2 * CLI_WAIT_MS), 69);
    took = test_now_ms() - begin;
    ck_assert_int_ge(took, 5000);
    ck_assert_int_lt(took, test_ms(18000));
    cli_stop(&silent);
    test_redis_close(there);
    test_server_stop(&second);
}
END_TEST

static bool still_runs(void *arg)
{
    return cli_ends(arg, 0) == CLI_STILL_RUNS;
}

/* The second command has less time: it ends after 1 s, before the first one gives up
 * after 3 s, though it began later. */
START_TEST(wait_bounds_the_first_answer_too)
{
    enum { LATER_MS = 500 };
    static struct cli patient;

    test_server_pause(&server);
    cli_start(&patient, CLI_ARGV("rlock", "wait", "n"), env);
    ck_assert(test_stays(still_runs, &patient, LATER_MS));
    ck_assert_int_eq(RLOCK("wait", "--wait", "0.5", "n"), 69);
    ck_assert(still_runs(&patient));
    ck_assert_int_eq(cli_ends(&patient, CLI_WAIT_MS), 69);
    cli_stop(&patient);
}
END_TEST

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
    Suite *suite = suite_create("cli_look");
    TCase *tc = add_case(suite, "list");
    tcase_add_test(tc, list_of_none_is_empty_and_0);
    tcase_add_test(tc, list_in_a_pipe_has_seven_fields_sorted_by_name);
    tcase_add_test(tc, list_takes_a_pattern);
    tcase_add_test(tc, list_within_a_time_prints_a_part_and_is_75);
    tcase_add_test(tc, list_on_a_terminal_is_aligned_and_fits_its_width);
    tcase_add_test(tc, list_says_when_its_output_is_lost);
    tc = add_case(suite, "json");
    tcase_add_test(tc, json_of_hostile_names_is_valid_and_loses_nothing);
    tcase_add_test(tc, json_has_token_holder_and_waiters_in_order);
    tc = add_case(suite, "show");
    tcase_add_test(tc, show_tells_holder_and_waiters_in_order);
    tcase_add_test(tc, lease_that_never_ends_is_reported_as_never_and_null);
    tcase_add_test(tc, show_of_nobody_is_1);
    tcase_add_test(tc, show_of_foreign_data_is_76);
    tc = add_case(suite, "codes");
    tcase_add_loop_test(tc, bad_arguments_are_64, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tc, bounds_of_seconds_are_reported_in_digits);
    tcase_add_loop_test(tc, password_file_without_a_password_is_64, 0, 3);
    tcase_add_loop_test(tc, no_server_is_69, 0, sizeof(asking) / sizeof(asking[0]));
    tcase_add_loop_test(tc, refused_credentials_are_77, 0,
                        sizeof(asking) / sizeof(asking[0]));
    tc = add_case(suite, "wait");
    tcase_add_test(tc, wait_for_a_free_lock_is_0);
    tcase_add_test(tc, wait_ends_soon_after_the_release_and_takes_nothing);
    tcase_add_test(tc, wait_gives_up_at_its_deadline_with_75);
    tcase_add_test(tc, wait_ends_by_a_signal);
    tcase_add_test(tc, wait_outlasts_a_short_outage);
    tcase_add_test(tc, wait_gives_up_with_69_when_the_server_stays_away);
    tcase_add_test(tc, wait_bounds_the_first_answer_too);
    return test_run_suite(suite);
}
