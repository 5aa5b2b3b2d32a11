/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_by_hand,rwlock_by_hand */
/* The scripts of the mutex, sent by hand (for other types see as_fair.h, as_rwlock.h):
 * acquire, renew, release, cancel, tokens, and what all scripts do with foreign data and
 * full memory. The hand-over is in test_scripts_handover.c. */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

START_TEST(sha_is_that_of_the_text)
{
    const struct rlk_script *s = &rlk_scripts[_i];
    ck_assert_str_eq(test_redis_str(redis, "SCRIPT", "LOAD", s->text), s->sha);
    const redisReply *reply =
        test_redis_try(redis, "EVALSHA", "0123456789012345678901234567890123456789", "0");
    ck_assert_int_eq(strncmp(reply->str, "NOSCRIPT", 8), 0);
}
END_TEST

/* ---- acquire */

START_TEST(acquire_takes_a_free_lock)
{
    struct answer a = acquire(A);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.left, 30000);
    ck_assert_int_eq(a.fate[0].remaining, 30000);
    ck_assert_int_eq(a.flags, 0);
    ck_assert_str_eq(a.fate[0].token, "");
    ck_assert_str_eq(field(A), "1");
    ck_assert_str_eq(field("mode"), MODE);
    ck_assert_int_eq(atoll(field("since")), a.now);
    ck_assert_int_eq((int)test_redis_int(redis, "HLEN", "n"), 3);
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 1);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 30000);
    assert_ttls();
}
END_TEST

/* The time that is left after an acquire by the present holder, of a hold with 5 s
 * left. */
#ifdef AS_RWLOCK /* where an acquire extends the lease, as a renewal would (T4) */
enum { AGAIN_MS = 30000 };
#else
enum { AGAIN_MS = 5000 };
#endif

START_TEST(acquire_again_by_the_same_id_changes_nothing)
{
    SAYS(acquire(A), "held");
    test_redis_do(redis, "PEXPIRE", "n", "5000");
    test_redis_do(redis, "ZADD", CANCELLED, "9999999999999",
                  A); /* its own hold is checked first */
    test_redis_do(redis, "PEXPIRE", CANCELLED, "9000");
    char before[64];
    snprintf(before, sizeof(before), "%s", digest());
    struct answer again = acquire(A);
    ck_assert_str_eq(WHAT(again), "held");
    ck_assert_int_gt(again.fate[0].remaining, AGAIN_MS - test_ms(2000));
    ck_assert_int_le(again.fate[0].remaining, AGAIN_MS);
    ck_assert_str_eq(digest(), before);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), AGAIN_MS - test_ms(2000));
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), AGAIN_MS);
}
END_TEST

START_TEST(held_lock_queues_each_requester_once)
{
    SAYS(acquire(A), "held");
    struct answer first = acquire(B), again = acquire(B);
    ck_assert_str_eq(WHAT(first), "queued");
    ck_assert_int_eq(first.flags, 1);
    ck_assert_int_gt(first.left, 0);
    ck_assert_int_eq(first.fate[0].ticket, first.now);
    ck_assert_int_eq(again.fate[0].ticket, first.fate[0].ticket);
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", QUEUE), 1);
    ck_assert_int_ge(test_redis_int(redis, "ZSCORE", PRESENT, UUID_B),
                     again.now / 1000 + 2999);
    ck_assert(is_held_by(A));
    assert_ttls();
}
END_TEST

START_TEST(tickets_grow_strictly_and_have_no_exponent)
{
    enum { MANY = 300 };
    long long last = 0;
    char id[64], far[32];

    SAYS(acquire(A), "held");
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof(id), UUID_B ":1:%d:" LETTER "3000", i + 1);
        if (i == MANY / 2) { /* an entry from the future, as after a step of the clock */
            snprintf(far, sizeof(far), "%lld", last + 1000000000);
            test_redis_do(redis, "ZADD", QUEUE, far, C);
            last += 1000000000;
        }
        struct answer a = acquire(id);
        ck_assert_str_eq(WHAT(a), "queued");
        ck_assert_int_gt(a.fate[0].ticket, last);
        if (i >= MANY / 2)
            ck_assert_int_eq(a.fate[0].ticket, last + 1);
        last = a.fate[0].ticket;
        ck_assert_int_eq(test_redis_int(redis, "ZSCORE", QUEUE, id), last);
    }
    ck_assert_ptr_null(strchr(test_redis_str(redis, "ZSCORE", QUEUE, id), 'e'));
}
END_TEST

/* rule: T1 */
START_TEST(rejoining_gives_a_new_ticket)
{
    SAYS(acquire(A), "held");
    long long first = acquire(B).fate[0].ticket;
    test_redis_do(redis, "ZREM", QUEUE, B);
    SAYS(refresh(B), "gone");
    ck_assert_int_gt(acquire(B).fate[0].ticket, first);
}
END_TEST

START_TEST(marked_id_is_refused)
{
    SAYS(cancel(A), "removed");
    SAYS(acquire(A), "refused");
    SAYS(try_acquire(A), "refused");
    SAYS(acquire_fenced(A), "refused");
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(!test_redis_exists(redis, QUEUE));
    SAYS(acquire(A2), "held");
    SAYS(acquire(A), "refused");
}
END_TEST

/* rule: T3 */
START_TEST(late_request_is_refused_with_the_server_time)
{
    char past[32];
    struct answer now = refresh(A);
    snprintf(past, sizeof(past), "%lld", now.now - 1);
    for (int held = 0; held < 2; held++) {
        struct answer a = acquire_until(A, past, "0");
        ck_assert_str_eq(WHAT(a), "late");
        ck_assert_int_ge(a.now, now.now);
        SAYS(acquire_until(A, past, "1"), "late");
        ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), held);
        if (!held)
            SAYS(acquire(B), "held");
    }
    /* but a request of the present holder is served */
    SAYS(acquire_until(B, past, "0"), "held");
}
END_TEST

START_TEST(try_never_queues)
{
    SAYS(acquire(A), "held");
    struct answer a = try_acquire(B);
    ck_assert_str_eq(WHAT(a), "busy");
    ck_assert_int_eq(a.flags, 0);
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 1);
    expire();
    SAYS(try_acquire(B), "held");
}
END_TEST

/* A try that finds the lock held gets the same flags as a request that would queue. */
START_TEST(try_reports_all_flags_of_a_held_lock)
{
    acquire(A);
    struct answer a = try_acquire(B);
    ck_assert_int_eq(a.flags, 0);
    ck_assert_int_gt(a.left, 0);
    SAYS(try_acquire(A), "held"); /* as after a lost answer */
    test_redis_do(redis, "PERSIST", "n");
    ck_assert_int_gt(try_acquire(B).left, 0);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 0);
    test_redis_do(redis, "SET", DIRTY, "not recoverable");
    SAYS(try_acquire(B), "unrecoverable");
    test_redis_do(redis, "DEL", DIRTY, "n");
    test_redis_do(redis, "HSET", "n", UUID_C ":1", "1");
    test_redis_do(redis, "PEXPIRE", "n", "30000");
    a = try_acquire(B);
    ck_assert_str_eq(WHAT(a), "busy");
    ck_assert_int_eq(a.flags, 4);
    test_redis_do(redis, "DEL", "n");
    acquire(A);
    acquire(C);
    ck_assert_int_eq(try_acquire(B).flags, 1);
}
END_TEST

START_TEST(waiter_that_takes_a_free_lock_leaves_the_queue)
{
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    SAYS(acquire(C), "queued");
    expire();
    struct answer a = acquire(B);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags, 1); /* C still waits */
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", QUEUE), 1);
    SAYS(release(B), "released");
    SAYS(acquire(C), "held");
    ck_assert_int_eq((int)test_redis_int(redis, "EXISTS", QUEUE), 0);
}
END_TEST

enum { UNHEARD = 16 };

#ifdef AS_RWLOCK /* whose cancel reports a foreign holder, too */
enum { CANCEL_FLAGS = 6 };
#else
enum { CANCEL_FLAGS = 2 };
#endif

START_TEST(flags_report_waiters_and_foreign_holders)
{
    test_redis_do(redis, "HSET", "n", "7c9a:52", "2");
    test_redis_do(redis, "PEXPIRE", "n", "20000");
    ck_assert_int_eq(try_acquire(A).flags, 4);
    ck_assert_int_eq(acquire(A).flags, 5);
    test_redis_do(redis, "ZADD", RQUEUE, "5", UUID_C ":1:1:r3000");
    ck_assert_int_eq(try_acquire(B).flags, 7);
    ck_assert_int_eq(refresh(A).flags, 7 + UNHEARD);
    struct test_redis *mailbox = test_redis_connect(server.path);
    test_redis_do(mailbox, "SUBSCRIBE", "rlock:client:" UUID_A);
    ck_assert_int_eq(refresh(A).flags, 7);
    test_redis_close(mailbox);
    ck_assert_int_eq(cancel(A).flags, CANCEL_FLAGS);
    test_redis_do(redis, "HSET", "n", "mode", "write"); /* Redisson's read-write lock */
    ck_assert_int_eq(try_acquire(B).flags, 6);
    test_redis_do(redis, "HSET", "n", "mode", "rlock:fair");
    ck_assert_int_eq(try_acquire(B).flags, 2);
}
END_TEST

START_TEST(redisson_holder_is_held_and_left_alone)
{
    test_redis_do(redis, "HSET", "n", "7c9a:52", "2");
    test_redis_do(redis, "PEXPIRE", "n", "20000");
    SAYS(acquire(A), "queued");
    SAYS(try_acquire(B), "busy");
    SAYS(release(A2), "notmine");
    SAYS(renew(A2, "60000"), "gone");
    SAYS(refresh(A), "queued");
    SAYS(cancel(A), "removed");
    ck_assert_str_eq(field("7c9a:52"), "2");
    ck_assert_int_eq((int)test_redis_int(redis, "HLEN", "n"), 1);
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 20000);
}
END_TEST

/* ---- renew */

/* rule: T4 */
START_TEST(renewal_raises_and_never_shortens)
{
    SAYS(acquire(A), "held");
    struct answer a = renew(A, "60000");
    ck_assert_int_eq(a.fate[0].remaining, 60000);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 30000);
    a = renew(A, "100");
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_gt(a.fate[0].remaining, 30000);
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 30000);
    test_redis_do(redis, "PERSIST", "n"); /* as somebody else might do */
    SAYS(renew(A, "5000"), "held");
    assert_ttls();
}
END_TEST

/* rule: S2 */
START_TEST(renewal_of_another_id_or_of_a_free_lock_changes_nothing)
{
    SAYS(renew(A, "60000"), "gone");
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
    SAYS(acquire(B), "held");
    SAYS(renew(A, "60000"), "gone");
    SAYS(renew("mode", "60000"),
         "held"); /* no id: the sender controls the server anyway */
    SAYS(acquire(A), "queued");
    test_redis_do(redis, "PEXPIRE", "n", "30000");
    SAYS(renew(A, "60000"), "gone");
    ck_assert_int_le(test_redis_int(redis, "PTTL", "n"), 30000);
    ck_assert(is_held_by(B));
}
END_TEST

/* ---- release and cancel */

/* rule: S2 */
START_TEST(release_by_another_id_touches_nothing)
{
    char before[64];
    SAYS(acquire(B), "held");
    SAYS(acquire(C), "queued");
    snprintf(before, sizeof(before), "%s", digest());
    struct answer a = release(A);
    ck_assert_str_eq(WHAT(a), "notmine");
    ck_assert_int_gt(a.left, 0);
    ck_assert_int_eq(a.flags, 1);
    ck_assert_str_eq(digest(), before);
}
END_TEST

START_TEST(release_frees_and_tells_redisson)
{
    struct test_redis *channel = channel_listener(CHANNEL);
    for (int marked = 0; marked < 2; marked++) {
        const char *id = marked ? A2 : A;
        SAYS(acquire(id), "held");
        struct answer a = release_marked(id, marked ? "7000" : "0");
        ck_assert_str_eq(WHAT(a), "released");
        ck_assert_int_eq(a.left, -2);
        ck_assert(!test_redis_exists(redis, "n"));
        ck_assert_str_eq(message(channel), "0");
        ck_assert(test_redis_exists(redis, CANCELLED) == (marked == 1));
    }
    assert_ttls();
    SAYS(release(A), "notmine");
    ck_assert(no_message(channel));
    test_redis_close(channel);
}
END_TEST

/* rule: T3 */
START_TEST(marked_release_refuses_the_ghost)
{
    SAYS(acquire(A), "held");
    SAYS(release_marked(A, "7000"), "released");
    SAYS(acquire(A), "refused");
    ck_assert_int_gt(test_redis_int(redis, "PTTL", CANCELLED), 7000 - test_ms(3000));
    /* an older marker's end is not brought forward */
    SAYS(cancel_marked(B, "100"), "removed");
    ck_assert_int_gt(test_redis_int(redis, "PTTL", CANCELLED), 7000 - test_ms(3000));
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", CANCELLED), 2);
}
END_TEST

START_TEST(markers_that_ended_are_dropped)
{
    for (int i = 0; i < 100; i++) {
        char id[64];
        snprintf(id, sizeof(id), UUID_A ":9:%d:m3000", i);
        test_redis_do(redis, "ZADD", CANCELLED, "1000", id);
    }
    test_redis_do(redis, "PEXPIRE", CANCELLED, "60000");
    SAYS(cancel(A), "removed");
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", CANCELLED), 1);
    SAYS(acquire(A), "refused");
}
END_TEST

/* rule: T7 */
START_TEST(cancel_says_removed_or_yours)
{
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    struct answer a = cancel(B);
    ck_assert_str_eq(WHAT(a), "removed");
    ck_assert(!test_redis_exists(redis, QUEUE));
    SAYS(cancel(B), "removed");
    a = cancel(A);
    ck_assert_str_eq(WHAT(a), "yours");
    ck_assert_int_gt(a.fate[0].remaining, 0); /* T8 */
    ck_assert_int_le(a.fate[0].remaining, 30000);
    ck_assert(is_held_by(A));
    SAYS(release(A), "released");
    SAYS(acquire(A), "refused");
    assert_ttls();
}
END_TEST

START_TEST(release_of_a_waiter_takes_it_out_of_the_queue)
{
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    test_redis_do(redis, "ZADD", RQUEUE, "5", UUID_C ":1:1:r3000");
    SAYS(release_marked(B, "7000"), "notmine");
    /* the last argument is for the read-write lock's script only */
    SAYS(RUN(RLK_MUTEX_RELEASE, READ_C, "7000", CHANNEL, prefer), "notmine");
    ck_assert(!test_redis_exists(redis, QUEUE));
    ck_assert(!test_redis_exists(redis, RQUEUE));
    SAYS(acquire(B), "refused");
    ck_assert(is_held_by(A));
}
END_TEST

/* ---- TTLs, missing keys */

static void set_key(int key)
{
    switch (key) {
    case 0:
        test_redis_do(redis, "HSET", "n", B, "1", "mode", MODE, "since", "1");
        test_redis_do(redis, "PEXPIRE", "n", "50000");
        break;
    case 1:
        test_redis_do(redis, "ZADD", QUEUE, "5", C, "6", A);
        test_redis_do(redis, "PEXPIRE", QUEUE, "50000");
        break;
    case 2:
        test_redis_do(redis, "ZADD", RQUEUE, "5", UUID_C ":1:1:r3000");
        test_redis_do(redis, "PEXPIRE", RQUEUE, "50000");
        break;
    case 3:
        test_redis_do(redis, "ZADD", PRESENT, "9999999999999", UUID_C, "9999999999999",
                      UUID_A);
        test_redis_do(redis, "PEXPIRE", PRESENT, "50000");
        break;
    case 4:
        test_redis_do(redis, "ZADD", READERS, "5", UUID_C ":1:1:r3000");
        test_redis_do(redis, "PEXPIRE", READERS, "50000");
        break;
    case 5:
        test_redis_do(redis, "ZADD", CANCELLED, "9999999999999", UUID_C ":9:9:m3000");
        test_redis_do(redis, "PEXPIRE", CANCELLED, "50000");
        break;
    case 6:
        test_redis_do(redis, "SET", DIRTY, UUID_C ":1:1:m3000#1", "PX", "50000");
        break;
    default:
        test_redis_do(redis, "SET", TOKEN, "5");
    }
}

enum { KEYS = 8, CALLS = 10 };

/* One call of each script that can change something, in the order of this list. */
static struct answer call_of(int which)
{
    switch (which) {
    case 0:
        return acquire(A);
    case 1:
        return acquire_fenced(A);
    case 2:
        return try_acquire(A);
    case 3:
        return release(B);
    case 4:
        return release_marked(A, "7000");
    case 5:
        return renew(B, "60000");
    case 6:
        return cancel(A);
    case 7:
        return cancel(B);
    case 8:
        return refresh(A);
    default:
        return force(B, "1");
    }
}

/* Whether call `which` may have handed a free lock to readers. */
static bool may_let_readers_in(int which, int present)
{
#ifdef AS_RWLOCK
    (void)which;
    return present & 1 << 2;
#else
    return present & 1 << 2 && which == CALLS - 1; /* a force looks at no type */
#endif
}

/* Asserts rule W13 for C, which listens: it does not wait for a free lock. */
static void assert_nobody_waits_in_vain(int which, int present)
{
#ifdef AS_RWLOCK
    /* a renew hands nothing over, nor does a force that found nobody to force */
    if (which == 5 || (which == 9 && !(present & 1)) || test_redis_exists(redis, "n"))
        return;
    ck_assert_msg(!test_redis_str(redis, "ZSCORE", QUEUE, C) &&
                      !test_redis_str(redis, "ZSCORE", RQUEUE, READ_C),
                  "call %d, keys %x", which, (unsigned)present);
#else
    (void)which;
    (void)present;
#endif
}

START_TEST(every_combination_of_missing_keys_is_valid)
{
    struct test_redis *mailbox = _i % 2 ? listener(UUID_C) : NULL;
    for (int present = 0; present < 1 << KEYS; present++) {
        test_redis_do(redis, "FLUSHALL");
        for (int key = 0; key < KEYS; key++)
            if (present & 1 << key)
                set_key(key);
        struct answer a = call_of(_i / 2);
        ck_assert_msg(!a.error[0], "call %d, keys %x: %s", _i / 2, (unsigned)present,
                      a.error);
        const char *bad = without_ttl();
        ck_assert_msg(!bad[0], "call %d, keys %x: %s", _i / 2, (unsigned)present, bad);
        if (test_redis_exists(redis, "n") && !(may_let_readers_in(_i / 2, present) &&
                                               strcmp(field("mode"), "rlock:read") == 0))
            ck_assert_str_eq(field("mode"), MODE);
        if (mailbox)
            assert_nobody_waits_in_vain(_i / 2, present);
    }
    test_redis_close(mailbox);
}
END_TEST

/* ---- foreign data */

static const char *const key_names[KEYS] = { "n",     QUEUE,     RQUEUE, PRESENT,
                                             READERS, CANCELLED, DIRTY,  TOKEN };

START_TEST(wrong_type_gives_an_error_and_changes_nothing)
{
    int call = _i / KEYS, key = _i % KEYS;
    struct test_redis *mailbox = listener(UUID_C);
    char before[64], type[16];

    for (int held = 0; held < 2; held++) {
        for (int string = 0; string < 2; string++) {
            test_redis_do(redis, "FLUSHALL");
            for (int i = held ? 0 : 1; i < KEYS; i++)
                set_key(i);
            test_redis_do(redis, "DEL", key_names[key]);
            if (string)
                test_redis_do(redis, "SET", key_names[key], "x", "PX", "50000");
            else
                test_redis_do(redis, "RPUSH", key_names[key], "x");
            test_redis_do(redis, "PEXPIRE", key_names[key], "50000");
            strcpy(before, digest());
            strcpy(type, test_redis_str(redis, "TYPE", key_names[key]));
            struct answer a = call_of(call);
            if (a.error[0]) {
                ck_assert_msg(strcmp(digest(), before) == 0, "call %d, key %s: %s", call,
                              key_names[key], a.error);
                ck_assert(no_message(mailbox));
            } else {
                /* this branch of the script does not use the key */
                ck_assert_msg(key >= 3, "call %d, key %s: %s", call, key_names[key],
                              WHAT(a));
                const char *now = test_redis_str(redis, "TYPE", key_names[key]);
                ck_assert_msg(strcmp(now, type) == 0 || (key == 6 && call == 9),
                              "call %d, key %s: now %s", call, key_names[key], now);
                mailbox = (test_redis_close(mailbox), listener(UUID_C));
            }
        }
    }
    test_redis_close(mailbox);
}
END_TEST

/* ---- full memory */

static void fill_memory(void)
{
    test_redis_config(redis, "maxmemory-policy", "noeviction");
    test_redis_config(redis, "maxmemory", "1");
}

START_TEST(release_renew_and_cancel_work_when_memory_is_full)
{
    struct test_redis *mailbox = listener(UUID_B);
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    SAYS(acquire(C), "queued");
    fill_memory();
    SAYS(renew(A, "60000"), "held");
    ck_assert_int_gt(test_redis_int(redis, "PTTL", "n"), 30000);
    SAYS(refresh(C), "queued");
    SAYS(cancel(C), "removed");
    SAYS(release_marked(A, "7000"), "released");
    ck_assert_ptr_nonnull(message(mailbox));
    ck_assert(is_held_by(B));
    SAYS(release(B), "released");
    assert_ttls();
    test_redis_close(mailbox);
}
END_TEST

START_TEST(expired_lock_is_handed_over_when_memory_is_full)
{
    struct test_redis *mailbox = listener(UUID_B);
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    expire();
    fill_memory();
    SAYS(refresh_after("0"), "");
    ck_assert_ptr_nonnull(message(mailbox));
    ck_assert(is_held_by(B));
    test_redis_close(mailbox);
}
END_TEST

START_TEST(acquire_is_refused_untouched_when_memory_is_full)
{
    fill_memory();
    struct answer a = acquire(A);
    int code;
    ck_assert_str_ne(a.error, "");
    ck_assert_int_eq(rlk_script_sort_error(a.error, strlen(a.error), &code), RLK_RETRY);
    ck_assert_int_eq(code, ENOTCONN);
    a = acquire_fenced(FENCED_A);
    ck_assert_str_ne(a.error, "");
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scripts");
    TEST_ADD(byhand_tcase(suite, "acquire"), acquire_takes_a_free_lock,
             acquire_again_by_the_same_id_changes_nothing,
             held_lock_queues_each_requester_once,
             tickets_grow_strictly_and_have_no_exponent, rejoining_gives_a_new_ticket,
             marked_id_is_refused, late_request_is_refused_with_the_server_time,
             try_never_queues, try_reports_all_flags_of_a_held_lock,
             waiter_that_takes_a_free_lock_leaves_the_queue,
             flags_report_waiters_and_foreign_holders,
             redisson_holder_is_held_and_left_alone);
    TEST_ADD(byhand_tcase(suite, "renew"), renewal_raises_and_never_shortens,
             renewal_of_another_id_or_of_a_free_lock_changes_nothing);
    TEST_ADD(byhand_tcase(suite, "release and cancel"),
             release_by_another_id_touches_nothing, release_frees_and_tells_redisson,
             marked_release_refuses_the_ghost, markers_that_ended_are_dropped,
             cancel_says_removed_or_yours, release_of_a_waiter_takes_it_out_of_the_queue);
    TEST_ADD(byhand_tcase(suite, "full memory"),
             release_renew_and_cancel_work_when_memory_is_full,
             expired_lock_is_handed_over_when_memory_is_full,
             acquire_is_refused_untouched_when_memory_is_full);

    TCase *tc = byhand_tcase(suite, "tables");
    tcase_add_loop_test(tc, sha_is_that_of_the_text, 0, RLK_SCRIPT_COUNT);
    tcase_add_loop_test(tc, every_combination_of_missing_keys_is_valid, 0, 2 * CALLS);
    tcase_add_loop_test(tc, wrong_type_gives_an_error_and_changes_nothing, 0,
                        CALLS * KEYS);

    return test_run_suite(suite);
}
