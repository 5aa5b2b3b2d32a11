/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G11 */
/* The script that recovers the locks of a dead client (rule G11), sent by hand: A is
 * dead, the others live. What it leaves of A is in test_recovery_marks.c. */
#include "acl_line.h"
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 300, NAMED = 2500 };

#define ROBUST_A UUID_A ":1:7:m3000b"
#define ROBUST_B UUID_B ":1:7:m3000b"

/* Recovers over the connection `r`, and closes it. */
static struct answer bury_by(struct test_redis *r, const char *ids)
{
    struct test_redis *all = redis;
    redis = r;
    struct answer a = bury(ids);
    test_redis_close(redis);
    redis = all;
    return a;
}

/* ---- a holder */

static void is_given_to(const char *dead, const char *next)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(dead), "held");
    SAYS(acquire(next), "queued");
    SAYS(bury(""), "released"); /* though the intent table had no room for it */
    ck_assert(is_held_by(next) || reads_now(next));
    ck_assert(strncmp(message(b), "1 grant ", 8) == 0);
    ck_assert(test_redis_exists(redis, CANCELLED));
    assert_ttls();
    test_redis_close(b);
}

/* rule: G11 */
START_TEST(mutex_of_a_dead_client_goes_to_the_next_waiter)
{
    is_given_to(A, B);
}
END_TEST

/* rule: G11 */
START_TEST(fair_lock_of_a_dead_client_goes_to_the_next_waiter)
{
    is_given_to(FAIR_A, FAIR_B);
}
END_TEST

/* rule: G11 */
START_TEST(write_lock_of_a_dead_client_goes_to_a_writer)
{
    is_given_to(WRITE_A, WRITE_B);
}
END_TEST

/* rule: G11 */
START_TEST(write_lock_of_a_dead_client_goes_to_a_reader)
{
    is_given_to(WRITE_A, READ_B);
}
END_TEST

/* rule: G11 */
START_TEST(read_lock_of_a_dead_client_goes_to_a_writer)
{
    is_given_to(READ_A, WRITE_B);
}
END_TEST

/* Readers and a writer wait behind A; `next` gets the lock. */
static const struct order {
    const char *prefer, *dead, *next;
} orders[] = {
    { "16", WRITE_A, READ_C }, { "16", READ_A, WRITE_B }, { "0", WRITE_A, READ_C },
    { "1", WRITE_A, WRITE_B }, { "2", WRITE_A, WRITE_B },
};

/* rule: G11 */
START_TEST(recovery_chooses_the_same_next_holder_as_a_release)
{
    const struct order *o = &orders[_i];
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    prefer = o->prefer;
    SAYS(acquire(o->dead), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(bury(""), "released");
    ck_assert_int_eq(is_held_by(WRITE_B), o->next[0] == UUID_B[0]);
    ck_assert_int_eq(reads_now(READ_C), o->next[0] == UUID_C[0]);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: G11 */
START_TEST(dead_client_that_downgraded_is_recovered_as_a_reader)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(downgrade(WRITE_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(bury("1:4:w3000 1 "), "released");
    ck_assert_int_eq(end_of(WRITE_A), -1);
    assert_fit(READ_B);
    SAYS(bury("1:4:w3000 1 "), "gone");
}
END_TEST

/* rule: G11 */
START_TEST(lock_without_waiters_is_freed_and_redisson_is_notified)
{
    struct test_redis *channel = channel_listener(CHANNEL);
    SAYS(acquire(A), "held");
    SAYS(bury("1:1:m3000 1 "), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert_str_eq(message(channel), "0");
    test_redis_close(channel);
}
END_TEST

/* rule: G11 */
START_TEST(second_recovery_finds_nothing)
{
    struct test_redis *b = listener(UUID_B), *channel = channel_listener(CHANNEL);
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    SAYS(bury("1:1:m3000 1 "), "released");
    message(b);
    SAYS(bury("1:1:m3000 1 "), "gone");
    ck_assert(is_held_by(B));
    ck_assert(no_message(b));
    ck_assert(no_message(channel));
    test_redis_close(b);
    test_redis_close(channel);
}
END_TEST

/* rule: G11 */
START_TEST(recovery_leaves_the_next_holder_alone)
{
    const char *const holders[] = { B, FAIR_B, WRITE_B, READ_B };
    for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
        test_redis_do(redis, "FLUSHALL");
        SAYS(acquire(holders[i]), "held");
        long long left = test_redis_int(redis, "PTTL", "n");
        SAYS(bury("1:1:m3000 1 1:1:r3000 1 1:4:w3000 1 1:1:f3000 1 "), "gone");
        ck_assert(is_held_by(holders[i]) || reads_now(holders[i]));
        ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), left - 1000);
    }
}
END_TEST

/* rule: G11 */
START_TEST(recovery_leaves_a_redisson_holder_alone)
{
    test_redis_do(redis, "HSET", "n", UUID_B ":1", "1");
    test_redis_do(redis, "PEXPIRE", "n", "30000");
    SAYS(bury("1:1:m3000 1 "), "gone");
    ck_assert(test_redis_exists(redis, "n"));
}
END_TEST

/* rule: G11 */
START_TEST(other_readers_stay_and_the_lock_ends_with_their_leases)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_A2), "held");
    SAYS(acquire(READ_B), "held");
    set_end(READ_B, server_ms() + 5000);
    /* READ_A2 is released, too, though it is not named */
    SAYS(bury("1:1:r3000 1 "), "released");
    ck_assert(!reads_now(READ_A));
    ck_assert(!reads_now(READ_A2));
    ck_assert(reads_now(READ_B));
    assert_fit(READ_B);
}
END_TEST

/* The named reader stands behind more readers than the script looks at. */
/* rule: G11 */
START_TEST(named_reader_is_found_among_any_number)
{
    char id[64];
    SAYS(acquire(READ_A), "held");
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), UUID_B ":%d:1:r3000", i);
        set_end(id, server_ms() + 10000);
    }
    SAYS(bury(""), "gone");
    ck_assert(reads_now(READ_A));
    SAYS(bury("1:1:r3000 1 "), "released");
    ck_assert(!reads_now(READ_A));
    ck_assert_int_eq(count_reading(), MANY);
    assert_fit(id);
}
END_TEST

static void keep(const char *id)
{
    char until[32];
    snprintf(until, sizeof(until), "%lld", server_ms() + 20000);
    test_redis_do(redis, "ZADD", KEEPERS, until, id);
    test_redis_do(redis, "PEXPIRE", KEEPERS, "60000");
}

/* rule: G11 */
START_TEST(dead_client_is_not_recalled_for_a_writer)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_A2), "held");
    SAYS(acquire(READ_B), "held");
    keep(READ_A);
    keep(READ_A2);
    keep(READ_B);
    SAYS(bury("1:1:r3000 1 "), "released");
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", KEEPERS), 1);
    ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", KEEPERS, READ_B));
}
END_TEST

/* rule: G11 */
START_TEST(queue_places_of_a_dead_client_are_removed)
{
    SAYS(acquire(B), "held");
    SAYS(acquire(A), "queued");
    SAYS(acquire(A2), "queued");
    SAYS(acquire(C), "queued");
    SAYS(acquire(READ_A), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(bury("1:1:m3000 0 "), "gone");
    ck_assert_int_eq(count_waiting(QUEUE), 1);
    ck_assert_int_eq(count_waiting(RQUEUE), 1);
    ck_assert(test_redis_str(redis, "ZSCORE", QUEUE, C));
    ck_assert(test_redis_str(redis, "ZSCORE", RQUEUE, READ_C));
}
END_TEST

/* rule: G11 */
START_TEST(all_named_tickets_are_removed)
{
    char *ids = calloc(NAMED, 24), *at = ids;
    ck_assert_ptr_nonnull(ids);
    SAYS(acquire(B), "held");
    put_waiters(QUEUE, UUID_A, 'm', 1, NAMED);
    put_waiter(QUEUE, C, NAMED + 1);
    for (int i = 1; i <= NAMED; i++)
        at += sprintf(at, "%s 0 ", waiter_id(UUID_A, i, 'm') + strlen(UUID_A ":"));
    SAYS(bury(ids), "gone");
    ck_assert_int_eq(count_waiting(QUEUE), 1);
    free(ids);
}
END_TEST

/* rule: G11 */
START_TEST(presence_of_a_dead_client_ends_and_others_remain)
{
    SAYS(acquire(B), "held");
    SAYS(acquire(A), "queued");
    SAYS(acquire(C), "queued");
    SAYS(bury("1:1:m3000 0 "), "gone");
    ck_assert_int_eq(atoll(test_redis_str(redis, "ZSCORE", PRESENT, UUID_A)), 0);
    ck_assert_int_gt(atoll(test_redis_str(redis, "ZSCORE", PRESENT, UUID_C)),
                     server_ms());
    assert_ttls();
}
END_TEST

/* rule: G11 */
START_TEST(recovery_adds_no_presence_where_there_is_none)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(A), "held");
    put_waiter(QUEUE, B, 5); /* the key of presence is lost: B counts as present */
    SAYS(bury("1:1:m3000 1 "), "released");
    ck_assert(is_held_by(B));
    ck_assert(!test_redis_exists(redis, PRESENT));
    test_redis_close(b);
}
END_TEST

/* rule: G11 */
START_TEST(readers_queued_behind_a_dead_waiting_writer_are_granted)
{
    struct test_redis *c = listener(UUID_C), *a = listener(UUID_A);
    SAYS(acquire(READ_B), "held");
    SAYS(acquire(WRITE_A), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(bury("1:4:w3000 0 "), "gone");
    ck_assert(reads_now(READ_C));
    test_redis_close(a);
    test_redis_close(c);
}
END_TEST

/* A waiter that an empty key of presence does not name counts as present
 * (lib/presence.lua). */
/* rule: G11 */
START_TEST(recovery_does_not_renew_the_presence_of_a_stopped_waiter)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(A), "held");
    SAYS(acquire(A2), "queued"); /* this makes A present */
    put_waiter(QUEUE, B, 5);     /* B is not present */
    SAYS(bury("1:1:m3000 1 1:2:m3000 0 "), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(no_message(b));
    test_redis_close(b);
}
END_TEST

/* rule: G11 */
START_TEST(grants_beyond_the_limit_of_one_script_are_made_by_the_next)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    put_present(UUID_B);
    put_waiters(RQUEUE, UUID_B, 'r', 1, MANY);
    struct answer a = bury("1:4:w3000 1 ");
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_int_ne(a.rmore, 0);
    refresh_on(READ_C, a.more, a.rmore);
    ck_assert_int_eq(count_reading(), MANY);
    test_redis_close(b);
}
END_TEST

/* ---- types, memory, permissions */

/* rule: G11 */
START_TEST(foreign_keys_are_refused_before_any_write)
{
    const char *const keys[] = { "n",       QUEUE,   RQUEUE, PRESENT, READERS,
                                 CANCELLED, KEEPERS, DIRTY,  TOKEN };
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        test_redis_do(redis, "FLUSHALL");
        SAYS(acquire(A), "held");
        test_redis_do(redis, "DEL", keys[i]);
        test_redis_do(redis, "RPUSH", keys[i], "foreign");
        test_redis_do(redis, "EXPIRE", keys[i], "100");
        char before[128];
        snprintf(before, sizeof(before), "%s", digest());
        struct answer a = bury("1:1:m3000 1 ");
        ck_assert_msg(strstr(a.error, "WRONGTYPE"), "%s: %s", keys[i], WHAT(a));
        ck_assert_str_eq(digest(), before);
    }
}
END_TEST

static struct answer bury_with_memory_full(const char *ids)
{
    test_redis_config(redis, "maxmemory-policy", "noeviction");
    test_redis_config(redis, "maxmemory", "1");
    struct answer a = bury(ids);
    test_redis_config(redis, "maxmemory", "0");
    return a;
}

/* rule: G11 */
START_TEST(recovery_runs_when_server_memory_is_full)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    SAYS(bury_with_memory_full("1:1:m3000 1 "), "released");
    ck_assert(is_held_by(B));
    ck_assert(test_redis_exists(redis, CANCELLED));
    test_redis_close(b);
}
END_TEST

/* rule: G11 */
START_TEST(client_is_marked_dead_when_memory_is_full_and_no_lock_is_named)
{
    put_present(UUID_A); /* so that there is something to write before the marker */
    SAYS(bury_with_memory_full(""), "gone");
    ck_assert(test_redis_exists(redis, CANCELLED));
}
END_TEST

/* Connects as a user that may do what doc/ACL.md says, with any key. */
static struct test_redis *user_of_the_document(void)
{
    static struct acl_line line;
    const char *argv[ACL_WORDS_MAX + 8] = { "ACL", "SETUSER", "worker", "reset",
                                            "on",  ">pass",   "~*",     "&*" };
    int n = 8;
    acl_read_line(&line, ACL_DOC, 0);
    for (int i = 0; i < line.count; i++)
        if (line.words[i][0] == '+')
            argv[n++] = line.words[i];
    argv[n] = NULL;
    test_redis_do_argv(redis, argv);
    test_redis_do(redis, "ACL", "LOG", "RESET");
    struct test_redis *r = test_redis_connect(server.path);
    test_redis_do(r, "AUTH", "worker", "pass");
    return r;
}

/* The dead client holds, reads, or is queued. */
/* rule: G11 */
START_TEST(user_that_may_lock_may_recover)
{
    static const char *const ids[] = { ROBUST_A, WRITE_A, READ_A };
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(ids[_i]), "held");
    if (_i == 2) {
        SAYS(acquire(READ_B), "held");
        keep(READ_A);
    } else {
        SAYS(acquire(A2), "queued");
        SAYS(acquire(READ_A2), "queued");
        SAYS(acquire(_i ? READ_B : ROBUST_B), "queued");
    }
    SAYS(bury_by(user_of_the_document(), "1:7:m3000b 0 1:9:r3000 0 "), "released");
    ck_assert(is_held_by(ROBUST_B) || reads_now(READ_B));
    ck_assert_uint_eq(test_redis_do(redis, "ACL", "LOG")->elements, 0);
    test_redis_close(b);
}
END_TEST

/* rule: G11 */
START_TEST(user_that_cannot_read_the_holder_recovers_the_named_locks)
{
    SAYS(acquire(A), "held");
    SAYS(bury_by(byhand_user_without("hgetall"), "1:2:m3000 1 "), "gone");
    ck_assert(is_held_by(A));
    SAYS(bury_by(byhand_user_without("hgetall"), "1:2:m3000 1 1:1:m3000 1 "), "released");
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

int main(void)
{
    enum { ORDERS = sizeof(orders) / sizeof(orders[0]) };
    Suite *s = suite_create("recovery scripts");
    TEST_ADD(byhand_tcase(s, "holders"), mutex_of_a_dead_client_goes_to_the_next_waiter,
             fair_lock_of_a_dead_client_goes_to_the_next_waiter,
             write_lock_of_a_dead_client_goes_to_a_writer,
             write_lock_of_a_dead_client_goes_to_a_reader,
             read_lock_of_a_dead_client_goes_to_a_writer,
             dead_client_that_downgraded_is_recovered_as_a_reader,
             lock_without_waiters_is_freed_and_redisson_is_notified,
             second_recovery_finds_nothing, recovery_leaves_the_next_holder_alone,
             recovery_leaves_a_redisson_holder_alone,
             other_readers_stay_and_the_lock_ends_with_their_leases,
             named_reader_is_found_among_any_number,
             dead_client_is_not_recalled_for_a_writer,
             queue_places_of_a_dead_client_are_removed, all_named_tickets_are_removed,
             presence_of_a_dead_client_ends_and_others_remain,
             recovery_adds_no_presence_where_there_is_none,
             readers_queued_behind_a_dead_waiting_writer_are_granted,
             recovery_does_not_renew_the_presence_of_a_stopped_waiter,
             grants_beyond_the_limit_of_one_script_are_made_by_the_next);
    TEST_ADD(byhand_tcase(s, "limits"), foreign_keys_are_refused_before_any_write,
             recovery_runs_when_server_memory_is_full,
             client_is_marked_dead_when_memory_is_full_and_no_lock_is_named,
             user_that_cannot_read_the_holder_recovers_the_named_locks);
    TCase *tc = byhand_tcase(s, "one by one");
    tcase_add_loop_test(tc, recovery_chooses_the_same_next_holder_as_a_release, 0,
                        ORDERS);
    tcase_add_loop_test(tc, user_that_may_lock_may_recover, 0, 3);
    return test_run_suite(s);
}
