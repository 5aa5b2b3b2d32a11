/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's kills at chosen moments: processes that kill themselves, and the process
 * that is about to recover another one. */
#include "faultscene.h"

#include "suite.h"

#include <check.h>
#include <stdio.h>

/* A text in every request about a process's client, and in no other. */
#define CLIENT "a-client-that-died"

static struct {
    char text[64]; /* the actions, a letter and a process each */
    int64_t at[16];
    unsigned count; /* atomic */
    unsigned asked;
} done;

static void did(char letter, unsigned process)
{
    done.at[done.count] = fs_now();
    snprintf(done.text + 3 * done.count, 4, "%c%u ", letter, process);
    __atomic_add_fetch(&done.count, 1, __ATOMIC_SEQ_CST);
}

static bool has_done(void *arg)
{
    return __atomic_load_n(&done.count, __ATOMIC_SEQ_CST) >= *(const unsigned *)arg;
}

static void do_kill(void *arg, unsigned process)
{
    (void)arg;
    did('k', process);
}

static void do_restart(void *arg, unsigned process)
{
    (void)arg;
    did('r', process);
}

static void do_fall(void *arg, unsigned process, enum nem_kind kind, enum nem_type type)
{
    (void)arg;
    did(kind == NEM_KILL_KEPT && type == NEM_RWLOCK ? 'f' : '?', process);
}

static bool has_fallen(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return ++done.asked == 3;
}

static bool never(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return false;
}

static const char *client_of(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return CLIENT;
}

static const struct nem_workers workers_that_fall = {
    .kill = do_kill,
    .restart = do_restart,
    .fall = do_fall,
    .fallen = has_fallen,
    .client = client_of,
};

static const struct nem_workers workers_that_hold_on = {
    .kill = do_kill,
    .restart = do_restart,
    .fall = do_fall,
    .fallen = never,
};

static const struct nem_workers workers_of_old = {
    .kill = do_kill,
    .restart = do_restart,
};

/* ---- processes that kill themselves */

static void fall(const struct nem_workers *who, const char *text, unsigned hits)
{
    struct nem_step step = fs_step(NEM_KILL_KEPT, FS_WINDOW_MS, NEM_RWLOCK);
    step.target = 1;
    fs_begin_plan(&step, 1, who);
    fs_finish();
    fs_check_record(&step);
    ck_assert_str_eq(done.text, text);
    ck_assert_uint_eq(fs_records[0].hits, hits);
    int64_t dead = fs_records[0].begin + INT64_C(1000) * fs_records[0].took_us;
    ck_assert_int_gt(dead, done.at[0]);
    ck_assert_int_lt(dead - 1000, fs_records[0].end); /* took_us is in us, rounded up */
}

START_TEST(process_that_kills_itself_is_restarted_at_the_end)
{
    fall(&workers_that_fall, "f1 r1 ", 1);
}
END_TEST

START_TEST(process_that_does_not_kill_itself_is_killed)
{
    fall(&workers_that_hold_on, "f1 k1 r1 ", 0);
}
END_TEST

START_TEST(process_that_cannot_kill_itself_is_killed)
{
    fall(&workers_of_old, "k1 r1 ", 0);
}
END_TEST

/* ---- kills during a recovery */

static struct nem_step step;

/* Process 0 is killed; process 1 sends a request about it. */
static void kill_burier(int64_t amount)
{
    unsigned one = 1, two = 2;
    step = fs_step(NEM_KILL_BURIER, FS_WINDOW_MS, amount);
    fs_begin_plan(&step, 1, &workers_that_fall);
    ck_assert(test_wait_until(has_done, &one, FS_SOON_MS));
    test_redis_send(fs_neighbour, "SET", "k", CLIENT);
    ck_assert(test_wait_until(has_done, &two, FS_SOON_MS));
}

static bool is_set(void *arg)
{
    (void)arg;
    return test_redis_exists(fs_redis, "k");
}

static void check_burier(void)
{
    fs_finish();
    ck_assert_str_eq(done.text, "k0 k1 r0 r1 ");
    ck_assert_uint_eq(fs_record_count, 2);
    ck_assert_int_eq(fs_records[0].kind, NEM_KILL);
    ck_assert_uint_eq(fs_records[0].target, 1);
    ck_assert_int_le(fs_records[0].begin, done.at[1]);
    ck_assert_int_ge(fs_records[0].end, done.at[3]);
    ck_assert_int_eq(fs_records[1].kind, NEM_KILL_BURIER);
    ck_assert_uint_eq(fs_records[1].target, 0);
    ck_assert_int_eq(fs_records[1].amount, step.amount);
    ck_assert_uint_eq(fs_records[1].hits, 1);
    ck_assert_str_eq(test_redis_str(fs_redis, "GET", "k"), CLIENT);
}

START_TEST(recovering_process_is_killed_before_the_recovery_is_done)
{
    kill_burier(0);
    ck_assert(test_wait_until(is_set, NULL, FS_SOON_MS));
    ck_assert_int_ge(fs_now(), done.at[1]);
    check_burier();
}
END_TEST

START_TEST(what_it_asked_for_may_be_done_very_late)
{
    kill_burier(1);
    ck_assert(test_wait_until(is_set, NULL, FS_SOON_MS));
    int64_t set = fs_now();
    check_burier();
    ck_assert_int_ge(set, fs_records[1].begin + step.length_ms * FS_NS_PER_MS);
}
END_TEST

START_TEST(kill_of_a_recovering_process_is_a_plain_kill_without_recovery)
{
    step = fs_step(NEM_KILL_BURIER, FS_WINDOW_MS, 0);
    fs_begin_plan(&step, 1, &workers_that_fall);
    do
        test_redis_do(fs_neighbour, "SET", "k", "something else");
    while (!fs_is_over());
    fs_finish();
    fs_check_record(&step);
    ck_assert_str_eq(done.text, "k0 r0 ");
    ck_assert_uint_eq(fs_records[0].hits, 0);
}
END_TEST

/* Another fault affects it: it is not killed as well, and its request is executed. */
START_TEST(stopped_process_is_not_killed_as_the_recovering_one)
{
    struct nem_step steps[2] = { fs_step(NEM_KILL, 2L * FS_WINDOW_MS, 0),
                                 fs_step(NEM_KILL_BURIER, FS_WINDOW_MS, 0) };
    unsigned two = 2;
    steps[0].target = 1;
    fs_begin_plan(steps, 2, &workers_that_fall);
    ck_assert(test_wait_until(has_done, &two, FS_SOON_MS));
    test_redis_do(fs_neighbour, "SET", "k", CLIENT);
    fs_finish();
    ck_assert_uint_eq(fs_record_count, 2);
    ck_assert_str_eq(done.text, "k1 k0 r0 r1 ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nemesis_kills");
    TCase *tc = tcase_create("kills");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, process_that_kills_itself_is_restarted_at_the_end);
    tcase_add_test(tc, process_that_does_not_kill_itself_is_killed);
    tcase_add_test(tc, process_that_cannot_kill_itself_is_killed);
    tcase_add_test(tc, recovering_process_is_killed_before_the_recovery_is_done);
    tcase_add_test(tc, what_it_asked_for_may_be_done_very_late);
    tcase_add_test(tc, kill_of_a_recovering_process_is_a_plain_kill_without_recovery);
    tcase_add_test(tc, stopped_process_is_not_killed_as_the_recovering_one);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
