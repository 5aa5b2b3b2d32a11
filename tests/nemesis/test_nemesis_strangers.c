/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's faults of strangers, of the workers' rights, and of their descriptors. */
#include "faultscene.h"

#include "suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID "aaaaaaaa-0000-4000-8000-000000000001"
#define MAILBOX "rlock:client:" UUID
#define HOLDER UUID ":1:1234567890123456:m1000"
#define WAITER UUID ":2:2234567890123456:m1000"
#define TICKET "1700000000000000"

static void set_up_lock(void)
{
    test_redis_do(fs_redis, "HSET", "nemesis0", HOLDER, "1", "mode", "rlock:mutex",
                  "since", TICKET);
    test_redis_do(fs_redis, "ZADD", "rlock:{nemesis0}:queue", TICKET, WAITER);
}

static struct nem_step step_of(enum nem_kind kind, long ms, int64_t amount)
{
    struct nem_step step = fs_step(kind, ms, amount);
    step.target = NEM_ALL;
    return step;
}

/* ---- forge */

struct seen {
    unsigned holder, waiter, made_up, malformed, own_ticket;
};

static void see(struct seen *seen, const char *text)
{
    seen->holder += strstr(text, HOLDER) != NULL;
    seen->waiter += strstr(text, WAITER) != NULL;
    seen->made_up += strstr(text, UUID ":" NEM_FORGED_THREAD ":") != NULL;
    seen->malformed += strncmp(text, "1 ", 2) != 0;
    seen->own_ticket += strstr(text, WAITER " " TICKET " ") != NULL;
}

START_TEST(forged_messages_name_real_and_invented_ids_but_no_real_ticket)
{
    struct nem_step step = step_of(NEM_FORGE, 20 * FS_WINDOW_MS, 5);
    struct seen seen = { 0 };
    const redisReply *reply;
    set_up_lock();
    test_redis_do(fs_neighbour, "SUBSCRIBE", MAILBOX);
    fs_begin(&step);
    while (!(seen.holder && seen.waiter && seen.made_up && seen.malformed) &&
           (reply = test_redis_recv(fs_neighbour, FS_SOON_MS)))
        see(&seen, reply->element[2]->str);
    ck_assert(seen.holder && seen.waiter && seen.made_up && seen.malformed);
    ck_assert_uint_eq(seen.own_ticket, 0);
    fs_finish();
    ck_assert_uint_gt(fs_records[fs_record_count - 1].hits, 0);
    /* the forging user may not write */
    ck_assert_int_eq(test_redis_int(fs_redis, "HLEN", "nemesis0"), 3);
    ck_assert_int_eq(test_redis_int(fs_redis, "DBSIZE"), 2);
}
END_TEST

START_TEST(long_messages_have_more_than_a_MiB)
{
    struct nem_step step = step_of(NEM_LONG_MESSAGES, FS_WINDOW_MS, 0);
    test_redis_do(fs_neighbour, "SUBSCRIBE", MAILBOX);
    fs_begin(&step);
    const redisReply *reply = test_redis_recv(fs_neighbour, FS_SOON_MS);
    ck_assert_ptr_nonnull(reply);
    ck_assert_uint_gt(reply->element[2]->len, 1U << 20);
    fs_finish();
    ck_assert_uint_gt(fs_records[fs_record_count - 1].hits, 0);
}
END_TEST

/* ---- hostile */

static bool is_junk(void *arg)
{
    const redisReply *token = test_redis_do(fs_redis, "HGET", arg, "token");
    return token->type == REDIS_REPLY_STRING && strcmp(token->str, TICKET) != 0;
}

START_TEST(hostile_user_writes_to_the_keys_that_are_sacrificed_and_sweeps_them)
{
    struct nem_step step = step_of(NEM_HOSTILE, 20 * FS_WINDOW_MS, 0);
    char name[] = NEM_SACRIFICE "0";
    set_up_lock();
    fs_begin(&step);
    test_redis_do(fs_redis, "HSET", name, HOLDER, "1", "token", TICKET);
    ck_assert(test_wait_until(is_junk, name, FS_SOON_MS));
    fs_finish();
    ck_assert_uint_gt(fs_records[fs_record_count - 1].hits, 0);
    ck_assert_int_eq(test_redis_int(fs_redis, "DBSIZE"), 2);
    ck_assert_int_eq(test_redis_int(fs_redis, "HLEN", "nemesis0"), 3);
}
END_TEST

/* ---- force */

static bool is_taken_away(void *arg)
{
    return !test_redis_exists(fs_redis, arg);
}

START_TEST(force_takes_a_lock_away_and_says_which)
{
    struct nem_step step = step_of(NEM_FORCE, 3 * FS_WINDOW_MS, 0);
    char name[] = "nemesis0";
    unsigned forced = 0;
    set_up_lock();
    test_redis_do(fs_redis, "DEL", "rlock:{nemesis0}:queue");
    int64_t before = fs_now();
    fs_begin(&step);
    ck_assert(test_wait_until(is_taken_away, name, FS_SOON_MS));
    int64_t after = fs_now();
    fs_finish();
    for (size_t i = 0; i < fs_record_count; i++)
        if (fs_records[i].lock == 0) {
            forced++;
            ck_assert_int_ge(fs_records[i].begin, before);
            ck_assert_int_le(fs_records[i].begin, after);
            ck_assert_int_eq(fs_records[i].kind, NEM_FORCE);
        }
    ck_assert_uint_eq(forced, 1);
    ck_assert_uint_eq(fs_records[fs_record_count - 1].lock, NEM_ALL);
    ck_assert_uint_eq(fs_records[fs_record_count - 1].hits, 1);
}
END_TEST

/* ---- acl */

static bool may_all(void)
{
    static const char script[] = "redis.call('ZADD', KEYS[2], '1', 'm')\n"
                                 "redis.call('HSET', KEYS[1], 'f', '1')\n"
                                 "redis.call('PEXPIRE', KEYS[1], '1000')\n"
                                 "return redis.call('INCR', KEYS[3])\n";
    const redisReply *reply =
        test_redis_try(fs_client, "EVAL", script, "3", "nemesis0",
                       "rlock:{nemesis0}:queue", "redisson_lock_token:{nemesis0}");
    ck_assert_ptr_nonnull(reply);
    return reply->type == REDIS_REPLY_INTEGER;
}

static bool may_not(void *arg)
{
    (void)arg;
    return !may_all();
}

START_TEST(users_right_is_taken_and_given_back)
{
    struct nem_step step = step_of(NEM_ACL, FS_WINDOW_MS, _i);
    ck_assert_ptr_nonnull(nem_right((unsigned)_i));
    test_redis_do(fs_client, "AUTH", NEM_USER, nem_faults_password(fs_faults));
    ck_assert(may_all());
    fs_begin(&step);
    ck_assert(test_wait_until(may_not, NULL, FS_SOON_MS));
    fs_finish();
    ck_assert(may_all());
}
END_TEST

START_TEST(there_are_no_more_rights)
{
    ck_assert_ptr_null(nem_right(5));
}
END_TEST

/* ---- descriptors */

static struct {
    unsigned closed, opened; /* amount and process, or 0 */
    int64_t opened_at;
} done;

static void do_close(void *arg, unsigned process, unsigned what)
{
    (void)arg;
    done.closed = 10 * process + what;
}

static void do_open(void *arg, unsigned process, unsigned what)
{
    (void)arg;
    done.opened = 10 * process + what;
    done.opened_at = fs_now();
}

START_TEST(descriptors_are_closed_and_opened_and_that_is_felt_for_a_second)
{
    static const struct nem_workers workers = { .close_low = do_close,
                                                .open_low = do_open };
    struct nem_step step = fs_step(NEM_DESCRIPTORS, FS_WINDOW_MS, 3);
    step.target = 1;
    fs_begin_plan(&step, 1, &workers);
    fs_finish();
    ck_assert_uint_eq(done.closed, 13);
    ck_assert_uint_eq(done.opened, 13);
    ck_assert_int_ge(fs_records[0].end - done.opened_at,
                     NEM_NOTICED_MS * (int64_t)FS_NS_PER_MS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nemesis's strangers");
    TCase *tc = tcase_create("strangers");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, forged_messages_name_real_and_invented_ids_but_no_real_ticket);
    tcase_add_test(tc, long_messages_have_more_than_a_MiB);
    tcase_add_test(tc,
                   hostile_user_writes_to_the_keys_that_are_sacrificed_and_sweeps_them);
    tcase_add_test(tc, force_takes_a_lock_away_and_says_which);
    tcase_add_loop_test(tc, users_right_is_taken_and_given_back, 0, 5);
    tcase_add_test(tc, there_are_no_more_rights);
    tcase_add_test(tc, descriptors_are_closed_and_opened_and_that_is_felt_for_a_second);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
