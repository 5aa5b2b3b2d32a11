/* SPDX-License-Identifier: Apache-2.0 */
/* What rlock_inspect, rlock_list, `rlock show` and `rlock release` say of conditions. The
 * test of JSON reads it by python3. */
#include "cli.h"
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAITERS = 3, KEY_MAX = 256 };

#define HOSTILE "a\n\"\xff\\\x1b[2J'"
#define HOSTILE_HEX "610a22ff5c1b5b324a27"
#define HOSTILE_SHOWN "a\\x0a\\x22\\xff\\x5c\\x1b[2J'"

static struct cli c;
static char url[TEST_URL_MAX + 16];
static const char *env[] = { url, NULL };
static rlock_mutex_t m;
static rlock_cond_t cond;
static struct task tasks[WAITERS];
static int waiters;

static void set_up(void)
{
    fixture_open();
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
    m = mutex_of(client, "m");
    waiters = 0;
}

static void tear_down(void)
{
    cli_stop(&c);
    fixture_close();
}

/* Runs rlock with these arguments. Returns its exit code; c has what it printed. */
#define RLOCK(...) rlock(CLI_ARGV("rlock", __VA_ARGS__))
static int rlock(const char *const argv[])
{
    cli_stop(&c);
    return cli_does(&c, argv, env);
}

static int wait_here(void *arg)
{
    int rc = rlock_mutex_lock(&m);
    if (rc == 0)
        rc = rlock_cond_wait(arg, &m);
    return rc != 0 ? rc : rlock_mutex_unlock(&m);
}

/* Threads of this process wait for the condition of this name, one after the other. */
static void wait_for(const char *name)
{
    char key[KEY_MAX];
    rlock_condattr_t attr;

    OK(rlock_condattr_init(&attr));
    OK(rlock_condattr_setclient(&attr, client));
    OK(rlock_cond_init(&cond, &attr, name));
    OK(rlock_condattr_destroy(&attr));
    snprintf(key, sizeof(key), "rlock:{%s}:cond", name);
    while (waiters < WAITERS) {
        task_start(&tasks[waiters++], wait_here, &cond);
        ck_assert(wait_size(key, waiters));
    }
}

static void wake(void)
{
    OK(rlock_cond_broadcast(&cond));
    for (int i = 0; i < waiters; i++)
        OK(task_join(&tasks[i]));
}

static void printed(const char *text)
{
    ck_assert_msg(strstr(c.out.text, text), "stdout: %s", c.out.text);
}

/* ---- rlock_inspect, rlock_list */

static rlock_info_t *inspected(const char *name)
{
    rlock_info_t *info;
    OK(rlock_inspect(client, name, &info));
    ck_assert_str_eq(info->name, name);
    return info;
}

START_TEST(inspection_tells_waiters_in_order_and_where_they_are)
{
    char process[32];

    wait_for(_i == 0 ? "n" : HOSTILE);
    rlock_info_t *info = inspected(_i == 0 ? "n" : HOSTILE);
    snprintf(process, sizeof(process), ":%d:", (int)getpid());
    ck_assert_int_eq(info->type, RLOCK_TYPE_COND);
    ck_assert_uint_eq(info->token, 0);
    ck_assert_uint_eq(info->holder_count, 0);
    ck_assert_uint_eq(info->waiter_count, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        const rlock_party_t *waiter = &info->waiters[i];
        ck_assert_ptr_nonnull(strstr(waiter->client, process));
        ck_assert_ptr_nonnull(strstr(waiter->owner, ":c"));
        ck_assert_int_ge(waiter->since_ms, 0);
        ck_assert_int_gt(waiter->lease_left_ms, 0);
        if (i > 0)
            ck_assert_int_le(waiter->since_ms, info->waiters[i - 1].since_ms);
    }
    rlock_info_free(info);
    wake();
    EXPECT(rlock_inspect(client, "n", &info), ENOENT);
}
END_TEST

START_TEST(inspection_tells_the_lock_of_the_name_if_there_is_one)
{
    rlock_mutex_t n = mutex_of(fixture_other(), "n");

    wait_for("n");
    OK(rlock_mutex_lock(&n));
    rlock_info_t *info = inspected("n");
    ck_assert_int_eq(info->type, RLOCK_TYPE_MUTEX);
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_uint_eq(info->waiter_count, 0);
    rlock_info_free(info);
    OK(rlock_mutex_unlock(&n));
    info = inspected("n");
    ck_assert_int_eq(info->type, RLOCK_TYPE_COND);
    rlock_info_free(info);
    wake();
}
END_TEST

START_TEST(inspection_of_foreign_data_at_the_conditions_key_is_EPROTO)
{
    rlock_info_t *info;

    test_redis_do(redis, "SET", "rlock:{n}:cond", "x");
    EXPECT(rlock_inspect(client, "n", &info), EPROTO);
    ck_assert_int_eq(RLOCK("show", "n"), 76);
}
END_TEST

static int count(const rlock_info_t *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

START_TEST(list_has_no_conditions)
{
    int listed = 0;

    wait_for("n");
    OK(rlock_list(client, _i == 0 ? "n" : "*", count, &listed));
    ck_assert_int_eq(listed, 0);
    ck_assert_int_eq(RLOCK("list"), 0);
    ck_assert_str_eq(c.out.text, "");
    wake();
}
END_TEST

/* ---- rlock */

START_TEST(show_tells_waiters_in_order)
{
    char process[32];

    wait_for(HOSTILE);
    snprintf(process, sizeof(process), ":%d:", (int)getpid());
    ck_assert_int_eq(RLOCK("show", HOSTILE), 0);
    printed("name:    " HOSTILE_SHOWN "\ntype:    condition\ntoken:   -\nholders: 0\n");
    const char *at = strstr(c.out.text, "waiters: 3\n");
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_msg(at, "stdout: %s", c.out.text);
        at = strstr(at + 1, process);
    }
    ck_assert_ptr_nonnull(at);
    wake();
    ck_assert_int_eq(RLOCK("show", HOSTILE), 1);
    ck_assert_ptr_nonnull(strstr(c.err.text, "or waits for it"));
}
END_TEST

START_TEST(json_has_the_waiters_of_a_condition)
{
    char wanted[256];

    cli_stop(&c);
    if (cli_does(&c, CLI_ARGV("sh", "-c", "command -v python3"), env) != 0) {
        printf("skipped: json_has_the_waiters_of_a_condition: no python3\n");
        return;
    }
    wait_for(HOSTILE);
    cli_stop(&c);
    ck_assert_int_eq(
        cli_does(
            &c,
            CLI_ARGV("sh", "-c",
                     "\"$0\" show --json \"$1\" | python3 -ISc 'import json,sys\n"
                     "d=json.load(sys.stdin)\n"
                     "print(d[\"name_hex\"],d[\"type\"],d[\"token\"],d[\"holders\"])\n"
                     "for p in d[\"waiters\"]:"
                     " print(p[\"client\"].split(\":\")[1],p[\"mode\"],"
                     " 0 <= p[\"age_ms\"] < 600000,"
                     " 0 < p[\"lease_left_ms\"] < 600000)'",
                     cli_path(), HOSTILE),
            env),
        0);
    int len = snprintf(wanted, sizeof(wanted), HOSTILE_HEX " condition None []\n");
    for (int i = 0; i < WAITERS; i++)
        len += snprintf(wanted + len, sizeof(wanted) - (size_t)len,
                        "%d exclusive True True\n", (int)getpid());
    ck_assert_str_eq(c.out.text, wanted);
    wake();
}
END_TEST

START_TEST(release_of_a_condition_takes_nothing)
{
    wait_for("n");
    ck_assert_int_eq(RLOCK("release", "--force", "--yes", "n"), 1);
    ck_assert_ptr_nonnull(strstr(c.err.text, "nobody holds \"n\""));
    ck_assert(wait_size("rlock:{n}:cond", WAITERS));
    wake();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_cond");
    TCase *tc = tcase_create("conditions");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, inspection_tells_waiters_in_order_and_where_they_are, 0, 2);
    tcase_add_test(tc, inspection_tells_the_lock_of_the_name_if_there_is_one);
    tcase_add_test(tc, inspection_of_foreign_data_at_the_conditions_key_is_EPROTO);
    tcase_add_loop_test(tc, list_has_no_conditions, 0, 2);
    tcase_add_test(tc, show_tells_waiters_in_order);
    tcase_add_test(tc, json_has_the_waiters_of_a_condition);
    tcase_add_test(tc, release_of_a_condition_takes_nothing);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
