/* SPDX-License-Identifier: Apache-2.0 */
/* `rlock release`: from which holders it takes a lock, and from which not. */
#include "cli.h"
#include "fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define QUESTION "[y/N] "

static struct cli c;
static char url[TEST_URL_MAX + 16];
static const char *env[] = { url, NULL };
static rlock_mutex_t mine, theirs;

static void set_up(void)
{
    fixture_open();
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
    mine = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static void tear_down(void)
{
    cli_stop(&c);
    fixture_close();
}

/* The client whose lock was taken learns of it. */
static void was_taken(rlock_mutex_t *m)
{
    EXPECT(rlock_mutex_unlock(m), ESTALE);
    ck_assert(!test_redis_exists(redis, "n"));
}

static void is_held_still(rlock_mutex_t *m)
{
    ck_assert(test_redis_exists(redis, "n"));
    OK(rlock_mutex_unlock(m));
}

static void ask(void)
{
    cli_start_pty(&c, CLI_ARGV("rlock", "release", "--force", "n"), env, 24, 80);
    ck_assert(cli_says(&c, QUESTION));
}

START_TEST(without_force_it_explains_and_does_nothing)
{
    OK(rlock_mutex_lock(&mine));
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "release", "--yes", "n"), env), 64);
    ck_assert_ptr_nonnull(strstr(c.err.text, "the holder gets no warning"));
    is_held_still(&mine);
}
END_TEST

START_TEST(without_a_terminal_it_wants_yes_and_does_nothing)
{
    OK(rlock_mutex_lock(&mine));
    /* a session of its own has no terminal, wherever the tests run */
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("setsid", "-w", cli_path(), "release", "--force", "n"),
                 env),
        64);
    ck_assert_ptr_nonnull(strstr(c.err.text, "--yes"));
    is_held_still(&mine);
}
END_TEST

START_TEST(with_yes_the_lock_is_taken_and_the_former_holder_named)
{
    char who[32];

    OK(rlock_mutex_lock(&mine));
    snprintf(who, sizeof(who), ":%d:", (int)getpid());
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("rlock", "release", "--force", "--yes", "n"), env), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, who));
    ck_assert_ptr_nonnull(strstr(c.out.text, "was taken"));
    was_taken(&mine);
}
END_TEST

START_TEST(lease_that_never_ends_is_reported)
{
    test_redis_do(redis, "HSET", "n", "7c9ad6a5-7c1f-4ee0-a6cd-fd3d1f1cd1d3:52", "1");
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("rlock", "release", "--force", "--yes", "n"), env), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, ":52, exclusive, for -, its lease never"));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(of_nobody_it_is_1)
{
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("rlock", "release", "--force", "--yes", "n"), env), 1);
    ck_assert_ptr_nonnull(strstr(c.err.text, "nobody holds \"n\""));
    cli_stop(&c);
    cli_start_pty(&c, CLI_ARGV("rlock", "release", "--force", "n"), env, 24, 80);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    ck_assert_ptr_null(strstr(c.out.text, QUESTION));
}
END_TEST

START_TEST(of_nobody_it_clears_a_mark_with_yes_alone)
{
    test_redis_do(redis, "SET", "rlock:{n}:dirty", "not recoverable");
    cli_start_pty(&c, CLI_ARGV("rlock", "release", "--force", "n"), env, 24, 80);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    ck_assert(test_redis_exists(redis, "rlock:{n}:dirty"));
    cli_stop(&c);
    ck_assert_int_eq(
        cli_does(&c, CLI_ARGV("rlock", "release", "--force", "--yes", "n"), env), 0);
    ck_assert_ptr_nonnull(strstr(c.out.text, "its mark was cleared"));
    ck_assert(!test_redis_exists(redis, "rlock:{n}:dirty"));
}
END_TEST

static const char *const yes[] = { "y\n", "Y\n", "yes\n" };

START_TEST(yes_on_the_terminal_takes_it)
{
    char who[32];

    OK(rlock_mutex_lock(&mine));
    ask();
    snprintf(who, sizeof(who), ":%d:", (int)getpid());
    ck_assert_ptr_nonnull(strstr(c.out.text, who));
    cli_type(&c, yes[_i]);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    was_taken(&mine);
}
END_TEST

START_TEST(answer_typed_before_the_question_does_not_count)
{
    OK(rlock_mutex_lock(&mine));
    cli_start_pty(&c,
                  CLI_ARGV("sh", "-c",
                           "echo ready; read x; exec \"$0\" release --force n",
                           cli_path()),
                  env, 24, 80);
    ck_assert(cli_says(&c, "ready"));
    cli_type(&c, "x\ny\n"); /* the shell reads one line */
    ck_assert(cli_says(&c, QUESTION));
    cli_type(&c, "n\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    is_held_still(&mine);
}
END_TEST

static const char *const no[] = { "n\n", "\n", "yess\n", "ny\n", "\4" };

START_TEST(anything_else_leaves_it)
{
    OK(rlock_mutex_lock(&mine));
    ask();
    cli_type(&c, no[_i]);
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    is_held_still(&mine);
}
END_TEST

START_TEST(ctrl_c_leaves_it)
{
    OK(rlock_mutex_lock(&mine));
    ask();
    cli_type(&c, "\3");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), -SIGINT);
    is_held_still(&mine);
}
END_TEST

START_TEST(question_goes_to_the_terminal_when_stdin_is_none)
{
    OK(rlock_mutex_lock(&mine));
    cli_start_pty(&c,
                  CLI_ARGV("sh", "-c", "\"$0\" release --force n </dev/null >/dev/null",
                           cli_path()),
                  env, 24, 80);
    ck_assert(cli_says(&c, QUESTION));
    cli_type(&c, "y\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 0);
    was_taken(&mine);
}
END_TEST

START_TEST(holder_that_came_meanwhile_needs_a_new_confirmation)
{
    OK(rlock_mutex_lock(&mine));
    ask();
    OK(rlock_mutex_unlock(&mine));
    OK(rlock_mutex_lock(&theirs));
    cli_forget(&c);
    cli_type(&c, "y\n");
    ck_assert(cli_says(&c, "the holder has changed"));
    ck_assert(cli_says(&c, QUESTION));
    ck_assert(test_redis_exists(redis, "n"));
    cli_type(&c, _i == 0 ? "n\n" : "y\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), _i == 0 ? 1 : 0);
    if (_i == 0)
        is_held_still(&theirs);
    else
        was_taken(&theirs);
}
END_TEST

START_TEST(a_new_hold_of_the_same_holder_is_asked_about)
{
    OK(rlock_mutex_lock(&mine));
    ask();
    OK(rlock_mutex_unlock(&mine));
    OK(rlock_mutex_lock(&mine));
    cli_forget(&c);
    cli_type(&c, "y\n");
    ck_assert(cli_says(&c, "the holder has changed"));
    ck_assert(cli_says(&c, QUESTION));
    cli_type(&c, "n\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    is_held_still(&mine);
}
END_TEST

START_TEST(a_lock_that_came_free_meanwhile_is_1)
{
    OK(rlock_mutex_lock(&mine));
    ask();
    OK(rlock_mutex_unlock(&mine));
    cli_type(&c, "y\n");
    ck_assert_int_eq(cli_ends(&c, CLI_WAIT_MS), 1);
    ck_assert_ptr_nonnull(strstr(c.out.text, "nobody holds"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cli_release");
    TCase *tc = tcase_create("release");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, without_force_it_explains_and_does_nothing);
    tcase_add_test(tc, without_a_terminal_it_wants_yes_and_does_nothing);
    tcase_add_test(tc, with_yes_the_lock_is_taken_and_the_former_holder_named);
    tcase_add_test(tc, lease_that_never_ends_is_reported);
    tcase_add_test(tc, of_nobody_it_is_1);
    tcase_add_test(tc, of_nobody_it_clears_a_mark_with_yes_alone);
    tcase_add_loop_test(tc, yes_on_the_terminal_takes_it, 0, 3);
    tcase_add_test(tc, answer_typed_before_the_question_does_not_count);
    tcase_add_loop_test(tc, anything_else_leaves_it, 0, 5);
    tcase_add_test(tc, ctrl_c_leaves_it);
    tcase_add_test(tc, question_goes_to_the_terminal_when_stdin_is_none);
    tcase_add_loop_test(tc, holder_that_came_meanwhile_needs_a_new_confirmation, 0, 2);
    tcase_add_test(tc, a_new_hold_of_the_same_holder_is_asked_about);
    tcase_add_test(tc, a_lock_that_came_free_meanwhile_is_1);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
