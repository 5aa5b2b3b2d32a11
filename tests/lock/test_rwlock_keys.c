/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W27 */
/*
 * The scripts of the read-write lock, sent by hand: keys that are missing or of another
 * type, full memory, other kinds of locks on the name, and forcing or inspecting a lock.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FENCED_READ_A UUID_A ":1:6:R3000"
#define MUTEX_A UUID_A ":1:1:m3000"
#define MUTEX_B UUID_B ":1:1:m3000"

enum { KEYS = 9, CALL_FORCE = 15, CALLS = 17, MODES = 3 };

static const char *const key_names[KEYS] = { "n",       QUEUE, RQUEUE, PRESENT, READERS,
                                             CANCELLED, DIRTY, TOKEN,  KEEPERS };
enum {
    KEY_N,
    KEY_QUEUE,
    KEY_RQUEUE,
    KEY_PRESENT,
    KEY_READERS,
    KEY_CANCELLED,
    KEY_TOKEN = 7
};
enum { NOBODY, WRITER, READER }; /* the holder of N */

/* B holds the lock, unless the mode is NOBODY. C waits, to write and to read. */
static void set_key(int key, int mode)
{
    switch (key) {
    case KEY_N:
        test_redis_do(redis, "HSET", "n", "since", "1", "mode",
                      mode == WRITER ? "rlock:write" : "rlock:read");
        if (mode == WRITER)
            test_redis_do(redis, "HSET", "n", WRITE_B, "1");
        test_redis_do(redis, "PEXPIRE", "n", "50000");
        break;
    case KEY_QUEUE:
        put_waiter(QUEUE, WRITE_C, 5);
        break;
    case KEY_RQUEUE:
        put_waiter(RQUEUE, READ_C, 5);
        put_waiter(RQUEUE, "~", 5);
        break;
    case KEY_PRESENT:
        put_present(UUID_C);
        break;
    case KEY_READERS:
        set_end(READ_B, server_ms() + 50000);
        set_end(READ_A2, 1000); /* dead */
        test_redis_do(redis, "PEXPIRE", READERS, "110000");
        break;
    case KEY_CANCELLED:
        test_redis_do(redis, "ZADD", CANCELLED, "9999999999999", UUID_C ":9:9:r3000");
        test_redis_do(redis, "PEXPIRE", CANCELLED, "50000");
        break;
    case 6:
        test_redis_do(redis, "SET", DIRTY, UUID_C ":1:1:w3000#1", "PX", "50000");
        break;
    case KEY_TOKEN:
        test_redis_do(redis, "SET", TOKEN, "5");
        break;
    default:
        test_redis_do(redis, "ZADD", KEEPERS, "9999999999999", READ_B "k");
        test_redis_do(redis, "ZADD", KEEPERS, "5", READ_A2 "k");
        test_redis_do(redis, "PEXPIRE", KEEPERS, "110000");
    }
}

/* Calls one of the scripts, for the reader or the writer that B may be. */
static struct answer call_of(int which)
{
    switch (which) {
    case 0:
        return acquire(READ_A);
    case 1:
        return acquire_fenced(FENCED_READ_A);
    case 2:
        return try_acquire(READ_A);
    case 3:
        return share(READ_A, READ_B);
    case 4:
        return acquire(WRITE_A);
    case 5:
        return release(READ_B);
    case 6:
        return release(WRITE_B);
    case 7:
        return release_marked(READ_A, "7000");
    case 8:
        return renew(READ_B, "60000");
    case 9:
        return renew(WRITE_B, "60000");
    case 10:
        return cancel(READ_A);
    case 11:
        return cancel(WRITE_C);
    case 12:
        return refresh(READ_C);
    case 13:
        return refresh(READ_A);
    case 14:
        return downgrade(WRITE_B);
    case CALL_FORCE:
        return force("", "1");
    default:
        return RUN(RLK_LOCK_BURY, UUID_B, "7000", CHANNEL, prefer,
                   "1:1:r3000 0 1:4:w3000 1 ");
    }
}

/* _i: the call, and whether C listens. */
/* rule: W27 */
START_TEST(every_combination_of_missing_keys_is_valid)
{
    struct test_redis *c = _i % 2 ? listener(UUID_C) : NULL;
    for (int mode = WRITER; mode <= READER; mode++) {
        for (int present = 0; present < 1 << KEYS; present++) {
            if (!test_is_full() && present >> KEY_CANCELLED &&
                present >> KEY_CANCELLED != 15)
                continue; /* keys that the scripts of readers and writers have not made */
            test_redis_do(redis, "FLUSHALL");
            for (int key = 0; key < KEYS; key++)
                if (present & 1 << key)
                    set_key(key, mode);
            struct answer a = call_of(_i / 2);
            ck_assert_msg(!a.error[0], "mode %d, keys %x: %s", mode, (unsigned)present,
                          a.error);
            const char *bad = without_ttl();
            ck_assert_msg(!bad[0], "mode %d, keys %x: %s", mode, (unsigned)present, bad);
        }
    }
    test_redis_close(c);
}
END_TEST

/* The digest leaves TTLs out. */
static long long ttl_of(const char *key)
{
    return test_redis_int(redis, "PTTL", key);
}

/* _i: the call. Each key in turn is a string or a list, with and without a TTL. */
/* rule: W27 */
START_TEST(key_of_another_type_is_an_error_and_changes_nothing)
{
    struct test_redis *c = listener(UUID_C);
    char before[64], type[16];
    for (int i = 0; i < MODES * KEYS * 4; i++) {
        int mode = i % MODES, key = i / MODES % KEYS, form = i / MODES / KEYS;
        bool string = form & 1, lasting = form & 2;
        if (key == KEY_TOKEN && string)
            continue; /* the key is a string anyway */
        test_redis_do(redis, "FLUSHALL");
        for (int k = mode == NOBODY ? KEY_QUEUE : KEY_N; k < KEYS; k++)
            if (k != key)
                set_key(k, mode);
        if (string)
            test_redis_do(redis, "SET", key_names[key], "x");
        else
            test_redis_do(redis, "RPUSH", key_names[key], "x");
        if (!lasting)
            test_redis_do(redis, "PEXPIRE", key_names[key], "900000");
        strcpy(before, digest());
        strcpy(type, test_redis_str(redis, "TYPE", key_names[key]));
        struct answer a = call_of(_i);
        if (a.error[0]) {
            ck_assert_msg(strcmp(digest(), before) == 0, "mode %d, key %s: %s", mode,
                          key_names[key], a.error);
            ck_assert(no_message(c));
        } else { /* this branch of the script does not use the key */
            ck_assert_msg(key > KEY_RQUEUE, "mode %d, key %s: %s", mode, key_names[key],
                          WHAT(a));
            const char *now = test_redis_str(redis, "TYPE", key_names[key]);
            ck_assert_msg(strcmp(now, type) == 0 || (key == 6 && _i == CALL_FORCE),
                          "mode %d, key %s: now %s", mode, key_names[key], now);
            test_redis_close(c);
            c = listener(UUID_C);
        }
        long long left = ttl_of(key_names[key]);
        ck_assert_msg(key == 6 || (lasting ? left == -1 : left > 800000),
                      "mode %d, key %s: PTTL %lld", mode, key_names[key], left);
    }
    test_redis_close(c);
}
END_TEST

/* rule: W27 */
START_TEST(inspection_of_keys_of_another_type_is_an_error)
{
    for (int key = KEY_N; key <= KEY_RQUEUE; key++) {
        test_redis_do(redis, "FLUSHALL");
        test_redis_do(redis, "SET", key_names[key], "x");
        const redisReply *r = run_raw(RLK_LOCK_INSPECT, TEST_ARGV("10", "0", "0"));
        ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
        ck_assert_str_eq(test_redis_str(redis, "GET", key_names[key]), "x");
    }
}
END_TEST

/* ---- full memory */

static void fill_memory(void)
{
    test_redis_config(redis, "maxmemory-policy", "noeviction");
    test_redis_config(redis, "maxmemory", "1");
}

/* rule: W27 */
START_TEST(hold_is_renewed_and_released_when_memory_is_full)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(acquire(READ_C), "queued");
    SAYS(acquire(WRITE_B), "queued");
    fill_memory();
    SAYS(renew(WRITE_A, "60000"), "held");
    SAYS(cancel(READ_C), "removed");
    SAYS(refresh(READ_B), "queued");
    if (_i)
        SAYS(downgrade(WRITE_A), "held");
    else
        SAYS(release(WRITE_A), "released");
    ck_assert(reads_now(READ_B));
    ck_assert_ptr_nonnull(message(b));
    SAYS(renew(READ_B, "90000"), "held");
    assert_fit(READ_B);
    if (_i)
        SAYS(release_marked(WRITE_A, "7000"), "released");
    SAYS(release(READ_B), "released");
    ck_assert(is_held_by(WRITE_B));
    SAYS(release(WRITE_B), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    assert_ttls();
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* rule: W27 */
START_TEST(waiting_readers_are_granted_an_expired_lock_when_memory_is_full)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    expire();
    fill_memory();
    SAYS(refresh(READ_C), "gone");
    ck_assert(reads_now(READ_B));
    ck_assert_ptr_nonnull(message(b));
    assert_fit(READ_B);
    test_redis_close(b);
}
END_TEST

/* rule: W27 */
START_TEST(acquires_are_refused_and_change_nothing_when_memory_is_full)
{
    char before[64];
    if (_i)
        SAYS(acquire(READ_B), "held");
    strcpy(before, digest());
    fill_memory();
    struct answer answers[] = { acquire(READ_A), acquire_fenced(FENCED_READ_A),
                                acquire(WRITE_A) };
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        ck_assert_str_ne(answers[i].error, "");
        ck_assert_str_eq(digest(), before);
    }
}
END_TEST

/* ---- other kinds of locks */

/* Makes another holder: a mutex, a fair lock, Redisson's lock and its read-write lock. */
static void hold_otherwise(int which)
{
    if (which < 2) {
        SAYS(acquire(which ? FAIR_A : MUTEX_A), "held");
        return;
    }
    test_redis_do(redis, "HSET", "n", "7c9a:52", "1");
    if (which == 3)
        test_redis_do(redis, "HSET", "n", "mode", "read");
    if (which == 4)
        test_redis_do(redis, "HSET", "n", "mode", "write");
    test_redis_do(redis, "PEXPIRE", "n", "30000");
}

/* rule: S5 */
START_TEST(lock_of_another_type_counts_as_held)
{
    char before[64];
    hold_otherwise(_i);
    strcpy(before, digest());
    int foreign = _i < 2 ? 0 : 4;
    SAYS(try_acquire(READ_B), "busy");
    SAYS(try_acquire(WRITE_B), "busy");
    ck_assert_int_eq(try_acquire(READ_B).flags, foreign);
    SAYS(release(READ_B), "notmine");
    SAYS(renew(READ_B, "60000"), "gone");
    SAYS(downgrade(WRITE_B), "gone");
    ck_assert_str_eq(digest(), before);
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_B), "queued");
    SAYS(share(UUID_B ":2:2:r3000", READ_B), "queued");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(refresh(READ_B), "queued");
    ck_assert_int_eq(refresh(WRITE_B).flags, 3 + foreign);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 0);
    expire();
    SAYS(refresh(WRITE_B), "queued"); /* this poll of B lets its own reader in */
    ck_assert(reads_now(READ_B));
    test_redis_close(b);
}
END_TEST

/* _i: mutex or fair. */
/* rule: S5 */
START_TEST(release_goes_to_waiters_of_other_types_in_their_mode)
{
    const char *other = _i ? FAIR_B : MUTEX_B;
    const char *mode = _i ? "rlock:fair" : "rlock:mutex";
    for (int reading = 0; reading < 2; reading++) {
        const char *holder = reading ? READ_A : WRITE_A;
        struct test_redis *b = listener(UUID_B);
        SAYS(acquire(holder), "held");
        SAYS(acquire(other), "queued");
        SAYS(release(holder), "released");
        ck_assert(is_held_by(other));
        ck_assert_str_eq(field("mode"), mode);
        ck_assert_ptr_nonnull(strstr(message(b), " 1 1 ")); /* as to a single holder */
        SAYS(try_acquire(READ_C), "busy");
        SAYS(release(other), "released");
        assert_ttls();
        test_redis_close(b);
    }
}
END_TEST

/* rule: S5 */
START_TEST(release_by_other_types_goes_to_waiting_writers)
{
    const char *other = _i ? FAIR_A : MUTEX_A;
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(other), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(release(other), "released");
    ck_assert(is_held_by(WRITE_B));
    ck_assert_str_eq(field("mode"), "rlock:write");
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 3000);
    ck_assert_ptr_nonnull(message(b));
    SAYS(downgrade(WRITE_B), "held"); /* a writer as any other */
    assert_fit(WRITE_B);
    test_redis_close(b);
}
END_TEST

/* rule: S5 */
START_TEST(waiter_of_another_type_counts_as_a_writer)
{
    const char *other = _i ? FAIR_B : MUTEX_B;
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(other), "queued");
    SAYS(try_acquire(READ_C), "busy");
    SAYS(acquire(READ_C), "queued");
    SAYS(release(READ_A), "released");
    ck_assert(is_held_by(other));
    test_redis_close(b);
}
END_TEST

/* rule: S5 */
START_TEST(redisson_waiters_are_notified_when_no_waiter_takes_the_lock)
{
    struct test_redis *channel = channel_listener(CHANNEL);
    for (int marked = 0; marked < 2; marked++) {
        const char *life = marked ? "7000" : "0";
        SAYS(acquire(READ_A), "held");
        SAYS(acquire(READ_B), "held");
        SAYS(release_marked(READ_A, life), "released");
        ck_assert(no_message(channel));
        SAYS(release_marked(READ_B, life), "released");
        ck_assert_str_eq(message(channel), "0");
        test_redis_do(redis, "DEL", CANCELLED);
        SAYS(acquire(WRITE_A), "held");
        SAYS(release_marked(WRITE_A, life), "released");
        ck_assert_str_eq(message(channel), "0");
        test_redis_do(redis, "DEL", CANCELLED);
    }
    test_redis_close(channel);
}
END_TEST

/* ---- force */

/* rule: T10 */
START_TEST(force_names_a_reading_by_its_start_and_notifies_all_readers)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    char since[32];
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(acquire(READ_A2), "held");
    snprintf(since, sizeof(since), "%s", field("since"));
    SAYS(force("", "1"), "gone");
    SAYS(force(READ_A, since), "gone"); /* no reader can be forced alone */
    ck_assert(no_message(a));
    SAYS(force("", since), "released");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(!test_redis_exists(redis, READERS));
    ck_assert_str_eq(message(b), "1 lost " READ_B " n");
    ck_assert_int_eq(strncmp(message(a), "1 lost " UUID_A, 43), 0);
    ck_assert_int_eq(strncmp(message(a), "1 lost " UUID_A, 43), 0);
    ck_assert(no_message(a) && no_message(b));
    SAYS(renew(READ_A, "60000"), "gone");
    SAYS(acquire(READ_B), "held"); /* of a later reading */
    SAYS(force("", since), "gone");
    ck_assert(reads_now(READ_B));
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* _i 0: a reading, 1: a writing. */
/* rule: T10 */
START_TEST(forced_lock_is_handed_over)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    char since[32];
    const char *holder = _i ? WRITE_A : READ_A;
    SAYS(acquire(holder), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(READ_C), "queued");
    snprintf(since, sizeof(since), "%s", field("since"));
    SAYS(force(_i ? holder : "", since), "released");
    ck_assert_int_eq(is_held_by(WRITE_B), !_i); /* W11 */
    ck_assert_int_eq(reads_now(READ_C), _i);
    ck_assert_ptr_nonnull(message(_i ? c : b));
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* rule: T10 */
START_TEST(downgraded_hold_is_forced_as_a_reading)
{
    struct test_redis *a = listener(UUID_A);
    char since[32];
    SAYS(acquire(WRITE_A), "held");
    SAYS(downgrade(WRITE_A), "held");
    snprintf(since, sizeof(since), "%s", field("since"));
    SAYS(force(WRITE_A, since), "gone");
    SAYS(force("", since), "released");
    ck_assert_str_eq(message(a), "1 lost " WRITE_A " n");
    test_redis_close(a);
}
END_TEST

START_TEST(force_tells_256_readers_at_most)
{
    enum { MANY = 300, TOLD = 256 };
    struct test_redis *a = listener(UUID_A);
    SAYS(acquire(READ_A), "held");
    test_redis_do(redis, "EVAL",
                  "for i = 1, 300 do\n"
                  "redis.call('ZADD', KEYS[1], 9999999999999,\n"
                  "  '" UUID_A ":' .. i .. ':2:r3000') end",
                  "1", READERS);
    char since[32];
    snprintf(since, sizeof(since), "%s", field("since"));
    SAYS(force("", since), "released");
    for (int i = 0; i < TOLD; i++)
        ck_assert_ptr_nonnull(message(a));
    ck_assert(no_message(a));
    test_redis_close(a);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("read-write keys");
    TCase *tc = add_case(suite, "tables");
    tcase_add_loop_test(tc, every_combination_of_missing_keys_is_valid, 0, 2 * CALLS);
    tcase_add_loop_test(tc, key_of_another_type_is_an_error_and_changes_nothing, 0,
                        CALLS);
    tcase_add_test(tc, inspection_of_keys_of_another_type_is_an_error);

    tc = add_case(suite, "full memory");
    tcase_add_loop_test(tc, hold_is_renewed_and_released_when_memory_is_full, 0, 2);
    tcase_add_test(tc, waiting_readers_are_granted_an_expired_lock_when_memory_is_full);
    tcase_add_loop_test(tc, acquires_are_refused_and_change_nothing_when_memory_is_full,
                        0, 2);

    tc = add_case(suite, "other kinds");
    tcase_add_loop_test(tc, lock_of_another_type_counts_as_held, 0, 5);
    tcase_add_loop_test(tc, release_goes_to_waiters_of_other_types_in_their_mode, 0, 2);
    tcase_add_loop_test(tc, release_by_other_types_goes_to_waiting_writers, 0, 2);
    tcase_add_loop_test(tc, waiter_of_another_type_counts_as_a_writer, 0, 2);
    tcase_add_test(tc, redisson_waiters_are_notified_when_no_waiter_takes_the_lock);

    tc = add_case(suite, "force");
    tcase_add_test(tc, force_names_a_reading_by_its_start_and_notifies_all_readers);
    tcase_add_loop_test(tc, forced_lock_is_handed_over, 0, 2);
    tcase_add_test(tc, downgraded_hold_is_forced_as_a_reading);
    tcase_add_test(tc, force_tells_256_readers_at_most);
    return test_run_suite(suite);
}
