/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's faults of the server's clock and data, and the marks in the server's
 * files. */
#include "nemesis/marks.h"

#include "faultscene.h"

#include "suite.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* ---- the server's clock */

static int64_t server_time_ms(void)
{
    const redisReply *reply = test_redis_do(fs_redis, "TIME");
    return strtoll(reply->element[0]->str, NULL, 10) * 1000 +
           strtoll(reply->element[1]->str, NULL, 10) / 1000;
}

static int64_t server_offset_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return server_time_ms() - (int64_t)ts.tv_sec * 1000 - ts.tv_nsec / FS_NS_PER_MS;
}

static void check_offset(int64_t wanted)
{
    int64_t offset = server_offset_ms();
    ck_assert_int_ge(offset, wanted - 1);
    ck_assert_int_lt(offset, wanted + test_ms(FS_SOON_MS));
}

enum { FAR_MS = 1000000 };

START_TEST(steps_of_the_clock_stay_and_add_up)
{
    struct nem_step steps[] = { fs_step(NEM_CLOCK_FORWARD, FS_WINDOW_MS, FAR_MS),
                                fs_step(NEM_CLOCK_BACK, 1, -3 * FAR_MS) };
    fs_begin(&steps[0]);
    fs_finish();
    fs_check_record(&steps[0]);
    check_offset(FAR_MS);
    fs_begin(&steps[1]);
    fs_finish();
    check_offset(-2 * FAR_MS);
    ck_assert_int_eq(fs_records[1].amount, -3 * FAR_MS);
}
END_TEST

START_TEST(clock_is_never_further_off_than_a_day)
{
    struct nem_step step = fs_step(NEM_CLOCK_FORWARD, 1, NEM_OFFSET_MAX_MS + 1L);
    fs_begin(&step);
    fs_finish();
    ck_assert_int_eq(fs_records[0].amount, 0);
    check_offset(0);
}
END_TEST

/* Tokens begin at the server's time when their counter is lost. */
START_TEST(data_is_lost_only_when_the_clock_has_caught_up)
{
    struct nem_step steps[] = { fs_step(NEM_CLOCK_BACK, 0, -FS_WINDOW_MS),
                                fs_step(NEM_FLUSHALL, 0, 0) };
    steps[1].begin_ms = 1;
    int64_t before = server_time_ms();
    fs_begin_plan(steps, 2, NULL);
    fs_finish();
    ck_assert_int_eq(fs_records[1].kind, NEM_FLUSHALL);
    ck_assert_int_ge(fs_records[1].begin - fs_records[0].begin,
                     FS_WINDOW_MS * FS_NS_PER_MS);
    ck_assert_int_ge(server_time_ms(), before);
}
END_TEST

/* ---- the server's data */

START_TEST(flushall_loses_all_within_the_epoch)
{
    struct nem_step step = fs_step(NEM_FLUSHALL, 0, 0);
    test_redis_do(fs_client, "SET", "k", "v");
    fs_run_through(&step);
    ck_assert(!test_redis_exists(fs_client, "k"));
    ck_assert(!fs_archive_has(0, "SET"));
}
END_TEST

/* Whether the step has looked more than this many times. */
static bool has_looked(void *arg)
{
    return test_redis_calls(fs_redis, "del") > *(const long long *)arg;
}

static void deletes(struct nem_step *step, const char *key)
{
    static const char *const keys[] = { "nemesis1", "nemesis11", "rlock:{nemesis1}:queue",
                                        "rlock:{nemesis1}:present" };
    step->lock = 1;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(keys[i], key) != 0)
            test_redis_do(fs_redis, "SET", keys[i], "v");
    }
    fs_begin(step);
    long long looks = 0;
    ck_assert(test_wait_until(has_looked, &looks, FS_SOON_MS));
    int64_t looked = fs_now();
    looks = test_redis_calls(fs_redis, "del") + 1;
    ck_assert(test_wait_until(has_looked, &looks, FS_SOON_MS));
    test_redis_do(fs_redis, "SET", key, "v"); /* the step waits for it */
    fs_finish();
    ck_assert_int_gt(fs_records[0].begin, looked); /* the time of the looks is no part of
                                                      the fault */
    ck_assert_uint_eq(fs_record_count, 1);
    ck_assert_uint_eq(fs_records[0].lock, 1);
    ck_assert_str_eq(fs_records[0].what, key);
    ck_assert_int_lt(fs_records[0].end - fs_records[0].begin,
                     step->length_ms * FS_NS_PER_MS);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_int_eq(test_redis_exists(fs_redis, keys[i]), strcmp(keys[i], key) != 0);
}

START_TEST(deleted_lock_is_the_one_that_was_named)
{
    struct nem_step step = fs_step(NEM_DELETE_LOCK, FS_SOON_MS, 0);
    deletes(&step, "nemesis1");
}
END_TEST

START_TEST(deleted_companion_is_the_one_that_was_named)
{
    struct nem_step step = fs_step(NEM_DELETE_COMPANION, FS_SOON_MS, 2);
    deletes(&step, "rlock:{nemesis1}:present");
}
END_TEST

START_TEST(deletion_of_what_is_not_there_ends)
{
    struct nem_step step = fs_step(NEM_DELETE_LOCK, 50, 0);
    step.lock = 1;
    fs_begin(&step);
    fs_finish();
    fs_check_record(&step);
    ck_assert_str_eq(fs_records[0].what, "");
}
END_TEST

enum { KEYS = 30 };

static void make_keys(void)
{
    for (int i = 0; i < KEYS; i++) {
        char key[64];
        snprintf(key, sizeof(key), i % 2 ? "nemesis%d" : "rlock:{nemesis%d}:queue", i);
        test_redis_do(fs_redis, "SET", key, "v", "PX", "3600000");
        snprintf(key, sizeof(key), "redisson_lock_token:{nemesis%d}", i);
        test_redis_do(fs_redis, "SET", key, "1");
    }
}

static bool is_recorded(const char *key)
{
    for (size_t i = 0; i < fs_record_count; i++) {
        if (strcmp(fs_records[i].what, key) == 0)
            return true;
    }
    return false;
}

START_TEST(eviction_names_each_key_that_is_gone)
{
    struct nem_step step = fs_step(NEM_EVICT, FS_SOON_MS, 0);
    make_keys();
    fs_begin(&step);
    fs_finish();
    ck_assert_uint_ge(fs_record_count, 1);
    for (int i = 0; i < KEYS; i++) {
        char key[64];
        snprintf(key, sizeof(key), i % 2 ? "nemesis%d" : "rlock:{nemesis%d}:queue", i);
        ck_assert_int_eq(test_redis_exists(fs_redis, key), !is_recorded(key));
        snprintf(key, sizeof(key), "redisson_lock_token:{nemesis%d}", i);
        ck_assert(test_redis_exists(fs_redis, key)); /* the key has no TTL */
    }
    for (size_t i = 0; i < fs_record_count; i++) {
        const char *at = strstr(fs_records[i].what, "nemesis");
        ck_assert(at && atoi(at + strlen("nemesis")) == fs_records[i].lock);
    }
    ck_assert_int_eq(test_redis_info(fs_redis, "maxmemory"), 0);
    ck_assert_str_eq(
        test_redis_do(fs_redis, "CONFIG", "GET", "maxmemory-policy")->element[1]->str,
        "noeviction");
    test_redis_do(fs_client, "SET", "k", "v");
}
END_TEST

/* ---- marks */

static size_t read_marks(struct nem_mark *marks, size_t most)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/marks", fs_dir);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t count = fread(marks, sizeof(*marks), most, file);
    fclose(file);
    return count;
}

static bool has_marks(void *arg)
{
    return fs_file_size("marks") >= *(size_t *)arg * sizeof(struct nem_mark);
}

START_TEST(marks_go_on_over_restarts_and_refusals)
{
    static struct nem_mark marks[100000];
    struct nem_step steps[] = { fs_step(NEM_MAXMEMORY, 50, 0),
                                fs_step(NEM_SERVER_EMPTY, 50, 0) };
    struct nem_marks *m = nem_marks_start(nem_faults_server(fs_faults), fs_dir, 1);
    size_t wanted = 10;
    ck_assert(test_wait_until(has_marks, &wanted, FS_SOON_MS));
    for (int i = 0; i < 2; i++) {
        fs_begin(&steps[i]);
        fs_finish();
        wanted = fs_file_size("marks") / sizeof(marks[0]) + 10;
        ck_assert(test_wait_until(has_marks, &wanted, FS_SOON_MS));
    }
    nem_marks_stop(m);
    size_t count = read_marks(marks, sizeof(marks) / sizeof(marks[0]));
    ck_assert_uint_ge(count, 30);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_gt(marks[i].n, i ? marks[i - 1].n : 0);
        ck_assert_int_ge(marks[i].answered, marks[i].sent);
        if (i > 0 && marks[i - 1].answered != INT64_MAX)
            ck_assert_int_ge(marks[i].sent, marks[i - 1].answered);
    }
    ck_assert_uint_gt(marks[count - 1].n, count); /* some were refused */
    nem_faults_stop(fs_faults);
    fs_faults = NULL;
    ck_assert(fs_archive_has(0, NEM_MARK_KEY));
    ck_assert(fs_archive_has(1, NEM_MARK_KEY));
}
END_TEST

START_TEST(mark_is_in_the_file_between_what_was_sent_before_and_after)
{
    struct nem_mark mark;
    size_t wanted = 1;
    test_redis_do(fs_redis, "SET", "before", "v");
    struct nem_marks *m =
        nem_marks_start(nem_faults_server(fs_faults), fs_dir, FS_SOON_MS);
    ck_assert(test_wait_until(has_marks, &wanted, FS_SOON_MS));
    test_redis_do(fs_redis, "SET", "after", "v");
    nem_marks_stop(m); /* does not wait for the next mark */
    ck_assert_uint_eq(read_marks(&mark, 1), 1);
    ck_assert_uint_eq(mark.n, 1);
    ck_assert_int_lt(mark.answered, INT64_MAX);
    nem_faults_stop(fs_faults);
    fs_faults = NULL;
    char command[128];
    snprintf(command, sizeof(command),
             "cat %s/aof.0/*.aof | tr -d '\\r' | tr '\\n' ' '"
             " | grep -q 'before .*nemesis:mark $1 1 .*after'",
             fs_dir);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void add_data(Suite *suite)
{
    TCase *tc = tcase_create("data");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, steps_of_the_clock_stay_and_add_up);
    tcase_add_test(tc, clock_is_never_further_off_than_a_day);
    tcase_add_test(tc, data_is_lost_only_when_the_clock_has_caught_up);
    tcase_add_test(tc, flushall_loses_all_within_the_epoch);
    tcase_add_test(tc, deleted_lock_is_the_one_that_was_named);
    tcase_add_test(tc, deleted_companion_is_the_one_that_was_named);
    tcase_add_test(tc, deletion_of_what_is_not_there_ends);
    tcase_add_test(tc, eviction_names_each_key_that_is_gone);
    suite_add_tcase(suite, tc);
}

static void add_marks(Suite *suite)
{
    TCase *tc = tcase_create("marks");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, marks_go_on_over_restarts_and_refusals);
    tcase_add_test(tc, mark_is_in_the_file_between_what_was_sent_before_and_after);
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("nemesis_data");
    add_data(suite);
    add_marks(suite);
    return test_run_suite(suite);
}
