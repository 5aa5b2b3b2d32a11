/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=V1,V3,V6,V7,V8 */
/*
 * The scripts of conditions, sent by hand: who is woken by a signal and by a broadcast,
 * what becomes of a signal whose waiter does not return, and that an id joins once. The
 * condition and its mutex have one name.
 *
 * Clients A, B and C wait with one id each; a client listens if it has a mailbox.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COND "rlock:{n}:cond"
#define CONDPRESENT "rlock:{n}:condpresent"
#define CONDLEFT "rlock:{n}:condleft"
#define WAIT_A UUID_A ":1:7:c3000"
#define WAIT_A2 UUID_A ":2:8:c3000"
#define WAIT_B UUID_B ":1:7:c3000"
#define WAIT_C UUID_C ":1:7:c3000"
#define LOCAL "1:7:c3000" /* the id of a wait without the uuid */
#define PRESENCE "3000"
#define LIFE "7000"

enum { PRESENCE_MS = 3000, LOOKS = 64, STEP = 1024, MESSAGE_MAX = 256 };

static const char *uuid_of(const char *id)
{
    static char uuid[64];
    snprintf(uuid, sizeof(uuid), "%.36s", id);
    return uuid;
}

static struct answer join_with(const char *id, const char *again, const char *done,
                               const char *left)
{
    return RUN(RLK_COND_WAIT, id, uuid_of(id), PRESENCE, NEVER, again, LIFE, done, left);
}

static struct answer join(const char *id)
{
    return join_with(id, "0", "", "");
}

static struct answer join_again(const char *id)
{
    return join_with(id, "1", "", "");
}

static struct answer join_and_release(const char *id, const char *mutex)
{
    return RUN(RLK_COND_RELEASE, id, uuid_of(id), PRESENCE, NEVER, LIFE, "", "", mutex,
               "0", CHANNEL);
}

static struct answer poll(const char *uuid, const char *waits, const char *back)
{
    return RUN(RLK_COND_REFRESH, uuid, PRESENCE, waits, back, LIFE, "", "");
}

static struct answer settle(const char *uuid, const char *done, const char *left)
{
    return RUN(RLK_COND_REFRESH, uuid, PRESENCE, "", "", LIFE, done, left);
}

static struct answer cancel_wait(const char *id, const char *pass)
{
    return RUN(RLK_COND_CANCEL, id, uuid_of(id), LIFE, pass);
}

static struct answer bury_client(const char *uuid)
{
    return RUN(RLK_COND_BURY, uuid, LIFE);
}

/* The reply of a signal by client C, or by another. */
static struct {
    long long more, bar;
    char own[512]; /* the caller's ids, a blank after each */
    size_t count;
} woken;

static void wake_by(const char *uuid, const char *count, const char *bar)
{
    const redisReply *r =
        run_raw(RLK_COND_SIGNAL, TEST_ARGV(uuid, count, bar, LIFE, "", ""));
    ck_assert_msg(r->type == REDIS_REPLY_ARRAY, "%s", r->str);
    ck_assert_uint_ge(r->elements, 3);
    woken.more = r->element[1]->integer;
    woken.bar = r->element[2]->integer;
    woken.own[0] = '\0';
    woken.count = (r->elements - 3) / 2;
    for (size_t i = 3; i < r->elements && i < 20; i += 2)
        snprintf(woken.own + strlen(woken.own), 64, "%s ", r->element[i]->str);
}

static void signal_one(void)
{
    wake_by(UUID_C, "1", "0");
}

static void broadcast(void)
{
    wake_by(UUID_C, "0", "0");
}

static double score(const char *id)
{
    const char *text = test_redis_str(redis, "ZSCORE", COND, id);
    return text ? atof(text) : 0;
}

static bool waits(const char *id)
{
    return score(id) >= 1e14;
}

static bool is_signalled(const char *id)
{
    return score(id) > 0 && score(id) < 1e14;
}

static bool is_absent(const char *id)
{
    return !test_redis_str(redis, "ZSCORE", COND, id);
}

/* The next message of the mailbox tells the id, and nothing else. */
static void assert_told(struct test_redis *mailbox, const char *id)
{
    char expected[256];
    const char *text = message(mailbox);

    ck_assert_ptr_nonnull(text);
    snprintf(expected, sizeof(expected), "1 woken 1 %s ", id);
    ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0, "%s", text);
    ck_assert_str_eq(text + strlen(text) - 2, " n");
}

static void expire_signal(const char *id)
{
    test_redis_do(redis, "ZADD", COND, "XX", "1000", id);
}

static void make_absent(const char *uuid)
{
    test_redis_do(redis, "ZADD", CONDPRESENT, "1000", uuid);
}

/* ---- joining */

/* rule: V1 */
START_TEST(join_waits_with_a_ticket_and_a_presence)
{
    struct answer a = join(WAIT_A);
    ck_assert_str_eq(WHAT(a), "waiting");
    ck_assert_int_ge(a.fate[0].ticket, a.now);
    ck_assert(score(WAIT_A) == (double)a.fate[0].ticket);
    ck_assert_int_ge(test_redis_int(redis, "ZSCORE", CONDPRESENT, UUID_A),
                     a.now / 1000 + PRESENCE_MS - 1);
    assert_ttls();
}
END_TEST

START_TEST(tickets_grow_and_do_not_repeat)
{
    long long a = join(WAIT_A).fate[0].ticket, b;
    test_redis_do(redis, "ZADD", COND, "XX", "1999999999999999", WAIT_A);
    b = join(WAIT_B).fate[0].ticket;
    ck_assert_int_eq(b, 2000000000000000);
    ck_assert_int_gt(b, a);
    ck_assert_int_gt(join(WAIT_C).fate[0].ticket, b);
}
END_TEST

START_TEST(repeated_join_has_the_same_ticket)
{
    long long ticket = join(WAIT_A).fate[0].ticket;
    struct answer a = join_again(WAIT_A);
    ck_assert_str_eq(WHAT(a), "waiting");
    ck_assert_int_eq(a.fate[0].ticket, ticket);
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", COND), 1);
}
END_TEST

/* rule: V6 */
START_TEST(join_that_comes_late_after_its_repetition_does_not_wait)
{
    SAYS(join_again(WAIT_A), "waiting");
    SAYS(settle(UUID_A, LOCAL, ""), ""); /* woken, and back */
    SAYS(join(WAIT_A), "gone");
    ck_assert(is_absent(WAIT_A));
    assert_ttls();
}
END_TEST

/* rule: V6 */
START_TEST(join_that_comes_late_after_its_cancel_does_not_wait)
{
    SAYS(cancel_wait(WAIT_A, "0"), "gone");
    SAYS(join(WAIT_A), "gone");
    ck_assert(is_absent(WAIT_A));
}
END_TEST

/* rule: V6 */
START_TEST(join_beyond_its_limit_does_not_wait)
{
    struct answer a = RUN(RLK_COND_WAIT, WAIT_A, UUID_A, PRESENCE, "1000", _i ? "1" : "0",
                          LIFE, "", "");
    ck_assert_str_eq(WHAT(a), "late");
    ck_assert(is_absent(WAIT_A));
    SAYS(join_again(WAIT_A), "waiting"); /* with a newer clock */
}
END_TEST

START_TEST(repeated_join_of_a_signalled_id_says_so)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join_again(WAIT_A), "woken");
    ck_assert(is_signalled(WAIT_A));
}
END_TEST

START_TEST(join_of_a_dead_client_is_refused)
{
    SAYS(bury_client(UUID_A), "gone");
    SAYS(join(WAIT_A), "gone");
}
END_TEST

START_TEST(join_does_not_touch_a_key_of_another_type)
{
    static const char *const keys[] = { COND, CONDPRESENT, CONDLEFT };
    test_redis_do(redis, "SET", keys[_i], "foreign");
    ck_assert_ptr_nonnull(strstr(join(WAIT_A).error, "WRONGTYPE"));
    ck_assert_ptr_nonnull(strstr(join_and_release(WAIT_A, A).error, "WRONGTYPE"));
    ck_assert_ptr_nonnull(strstr(cancel_wait(WAIT_A, "0").error, "WRONGTYPE"));
    ck_assert_ptr_nonnull(strstr(poll(UUID_A, LOCAL " ", "").error, "WRONGTYPE"));
    ck_assert_ptr_nonnull(strstr(bury_client(UUID_A).error, "WRONGTYPE"));
    ck_assert_int_eq(
        run_raw(RLK_COND_SIGNAL, TEST_ARGV(UUID_C, "1", "0", LIFE, "", ""))->type,
        REDIS_REPLY_ERROR);
    ck_assert_int_eq(test_redis_int(redis, "DBSIZE"), 1);
    ck_assert_int_eq(test_redis_int(redis, "PTTL", keys[_i]), -1);
}
END_TEST

/* ---- joining and releasing in one step */

/* rule: V1 */
START_TEST(one_step_joins_and_releases)
{
    SAYS(acquire(A), "held");
    struct answer a = join_and_release(WAIT_A, A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_uint_eq(a.count, 2);
    ck_assert_str_eq(a.fate[1].what, "waiting");
    ck_assert(score(WAIT_A) == (double)a.fate[1].ticket);
    ck_assert(!test_redis_exists(redis, "n"));
    assert_ttls();
}
END_TEST

/* rule: V1 */
START_TEST(one_step_hands_the_mutex_to_its_next_waiter)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    struct answer a = join_and_release(WAIT_A, A);
    ck_assert_str_eq(WHAT(a), "released");
    ck_assert_str_eq(a.fate[1].what, "waiting");
    ck_assert(is_held_by(B));
    ck_assert(strncmp(message(b), "1 grant ", 8) == 0);
    test_redis_close(b);
}
END_TEST

/* rule: V1 */
START_TEST(repeated_step_does_not_wait_again_after_a_broadcast)
{
    SAYS(acquire(A), "held");
    SAYS(join_and_release(WAIT_A, A), "released");
    broadcast();
    struct answer a = join_and_release(WAIT_A, A);
    ck_assert_str_eq(WHAT(a), "notmine");
    ck_assert_str_eq(a.fate[1].what, "gone");
    ck_assert(is_absent(WAIT_A));
}
END_TEST

/* rule: V1 */
START_TEST(repeated_step_finds_that_it_waits)
{
    SAYS(acquire(A), "held");
    long long ticket = join_and_release(WAIT_A, A).fate[1].ticket;
    SAYS(acquire(B), "held");
    struct answer a = join_and_release(WAIT_A, A);
    ck_assert_str_eq(WHAT(a), "notmine");
    ck_assert_str_eq(a.fate[1].what, "waiting");
    ck_assert_int_eq(a.fate[1].ticket, ticket);
    ck_assert(is_held_by(B));
}
END_TEST

/* rule: V1 */
START_TEST(step_without_the_mutex_joins_nothing)
{
    SAYS(acquire(B), "held");
    struct answer a = join_and_release(WAIT_A, A);
    ck_assert_str_eq(WHAT(a), "notmine");
    ck_assert_str_eq(a.fate[1].what, "gone");
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_held_by(B));
}
END_TEST

/* rule: V6 */
START_TEST(step_beyond_its_limit_does_nothing)
{
    SAYS(acquire(A), "held");
    struct answer a = RUN(RLK_COND_RELEASE, WAIT_A, UUID_A, PRESENCE, "1000", LIFE, "",
                          "", A, "0", CHANNEL);
    ck_assert_str_eq(a.fate[1].what, "late");
    ck_assert(is_held_by(A));
    ck_assert(is_absent(WAIT_A));
}
END_TEST

/* rule: V1 */
START_TEST(step_that_finds_foreign_data_does_nothing)
{
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    test_redis_do(redis, "SET", RQUEUE, "foreign");
    ck_assert_ptr_nonnull(strstr(join_and_release(WAIT_A, A).error, "WRONGTYPE"));
    ck_assert(is_held_by(A));
    ck_assert(is_absent(WAIT_A));
}
END_TEST

/* ---- signals */

/* rule: V3 */
START_TEST(signal_wakes_the_first_by_ticket)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    signal_one();
    ck_assert_int_eq(woken.more, 0);
    ck_assert(is_signalled(WAIT_A));
    ck_assert(waits(WAIT_B));
    long long now = server_ms();
    ck_assert(score(WAIT_A) > (double)(now + PRESENCE_MS));
    ck_assert(score(WAIT_A) <= (double)(now + 2 * PRESENCE_MS));
    assert_told(a, WAIT_A);
    ck_assert(no_message(b));
    assert_ttls();
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* rule: V3 */
START_TEST(time_of_a_signalled_waiter_is_its_own_presence_twice)
{
    SAYS(
        RUN(RLK_COND_WAIT, UUID_A ":1:7:c9000", UUID_A, "9000", NEVER, "0", LIFE, "", ""),
        "waiting");
    signal_one();
    ck_assert(score(UUID_A ":1:7:c9000") > (double)(server_ms() + 9000));
}
END_TEST

/* rule: V3 */
START_TEST(absent_waiter_is_taken_out)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    make_absent(UUID_A);
    signal_one();
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
}
END_TEST

/* rule: V3 */
START_TEST(waiter_that_listens_comes_before_one_that_does_not)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    signal_one();
    ck_assert(waits(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
    assert_told(b, WAIT_B);
    signal_one(); /* nobody else is left */
    ck_assert(is_signalled(WAIT_A));
    test_redis_close(b);
}
END_TEST

/* rule: V3 */
START_TEST(callers_own_waiter_is_told_by_the_reply)
{
    struct test_redis *c = listener(UUID_C);
    SAYS(join(WAIT_C), "waiting");
    signal_one();
    ck_assert_uint_eq(woken.count, 1);
    ck_assert_str_eq(woken.own, LOCAL " ");
    ck_assert(is_signalled(WAIT_C));
    ck_assert(no_message(c));
    test_redis_close(c);
}
END_TEST

static void add_waiters(const char *uuid, int first, int count)
{
    char id[96], ticket[32];
    for (int i = 0; i < count; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:c3000", uuid, first + i);
        snprintf(ticket, sizeof(ticket), "%lld", 200000000000000LL + first + i);
        test_redis_do(redis, "ZADD", COND, ticket, id);
    }
    test_redis_do(redis, "PEXPIRE", COND, "120000");
}

/* rule: V3 */
START_TEST(signal_that_took_out_64_absent_waiters_is_to_go_on)
{
    SAYS(join(WAIT_B), "waiting");
    add_waiters(UUID_A, 1, 2 * LOOKS + 1);
    test_redis_do(redis, "ZADD", CONDPRESENT, "1000", UUID_A);
    signal_one();
    ck_assert_int_eq(woken.more, 1);
    ck_assert(waits(WAIT_B));
    signal_one();
    ck_assert_int_eq(woken.more, 1);
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", COND), 2);
    signal_one();
    ck_assert_int_eq(woken.more, 0);
    ck_assert(is_signalled(WAIT_B));
}
END_TEST

START_TEST(signal_counts_how_many_it_wakes)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_A2), "waiting");
    SAYS(join(WAIT_B), "waiting");
    wake_by(UUID_C, "2", "0");
    ck_assert(is_signalled(WAIT_A) && is_signalled(WAIT_A2) && waits(WAIT_B));
    wake_by(UUID_C, "2", "0");
    ck_assert_int_eq(woken.more, 0);
    ck_assert(is_signalled(WAIT_B));
}
END_TEST

/* rule: V8 */
START_TEST(signal_that_finds_nobody_leaves_nothing)
{
    signal_one();
    broadcast();
    ck_assert_int_eq(woken.more, 0);
    ck_assert_int_eq(test_redis_int(redis, "DBSIZE"), 0);
    SAYS(join(WAIT_A), "waiting");
    ck_assert(waits(WAIT_A));
}
END_TEST

/* rule: V3 */
START_TEST(all_count_as_present_when_the_key_of_presence_is_lost)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    test_redis_do(redis, "DEL", CONDPRESENT);
    if (_i == 1) /* another client's poll makes the key again */
        SAYS(poll(UUID_B, LOCAL " ", ""), "waiting");
    signal_one();
    ck_assert(is_signalled(WAIT_A));
    assert_ttls();
}
END_TEST

/* ---- a signal is not lost with the one who got it */

/* rule: V4 */
START_TEST(overdue_signal_goes_to_the_next_waiter)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    expire_signal(WAIT_A);
    switch (_i) {
    case 0:
        SAYS(join(WAIT_C), "waiting");
        break;
    case 1:
        SAYS(poll(UUID_C, LOCAL " ", ""), "woken");
        break;
    case 2:
        SAYS(cancel_wait(WAIT_C, "0"), "gone");
        break;
    case 3:
        SAYS(bury_client(UUID_C), "gone");
        break;
    default: /* the signal itself finds nobody else */
        signal_one();
    }
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
    assert_told(b, WAIT_B);
    test_redis_close(b);
}
END_TEST

/* rule: V4 */
START_TEST(overdue_signal_behind_many_absent_waiters_is_kept)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    add_waiters(UUID_A, 1, LOOKS + 1);
    make_absent(UUID_A);
    expire_signal(WAIT_A);
    SAYS(poll(UUID_B, LOCAL " ", ""), "waiting");
    ck_assert(is_signalled(WAIT_A));
    SAYS(poll(UUID_B, LOCAL " ", ""), "woken");
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
}
END_TEST

/* rule: V4 */
START_TEST(acknowledged_signal_is_over)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    SAYS(join_with(WAIT_A2, "0", LOCAL " ", ""), "waiting");
    ck_assert(is_absent(WAIT_A));
    ck_assert(waits(WAIT_B));
}
END_TEST

/* rule: V4 */
START_TEST(given_up_signal_goes_to_the_next_waiter)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    settle(UUID_A, "", LOCAL " ");
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
}
END_TEST

/* rule: V4 */
START_TEST(given_up_wait_is_taken_out_and_wakes_nobody)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    settle(UUID_A, "", LOCAL " ");
    ck_assert(is_absent(WAIT_A));
    ck_assert(waits(WAIT_B));
    SAYS(join(WAIT_A), "waiting"); /* no marker */
}
END_TEST

/* rule: V5 */
START_TEST(given_up_wait_with_a_mark_does_not_join_later)
{
    settle(UUID_A, "", LOCAL "! ");
    SAYS(join(WAIT_A), "gone");
    SAYS(cancel_wait(WAIT_A, "0"), "removed");
    assert_ttls();
}
END_TEST

/* rule: V4 */
START_TEST(poll_takes_out_nothing_that_it_tells)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(poll(UUID_A, LOCAL " ", ""), "woken");
    ck_assert(is_signalled(WAIT_A));
}
END_TEST

/* rule: V4 */
START_TEST(poll_keeps_the_signal_of_who_is_on_the_way_back)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    test_redis_do(redis, "ZADD", COND, "XX", "1000", WAIT_A);
    poll(UUID_A, "", LOCAL " ");
    ck_assert(score(WAIT_A) > (double)server_ms());
}
END_TEST

/* rule: V2 */
START_TEST(poll_says_of_who_is_not_in_the_queue_that_it_was_woken)
{
    SAYS(poll(UUID_A, LOCAL " ", ""), "woken");
    SAYS(join(WAIT_A), "waiting");
    broadcast();
    SAYS(poll(UUID_A, LOCAL " ", ""), "woken");
}
END_TEST

/* rule: V12 */
START_TEST(poll_proves_presence_and_says_whether_the_mailbox_listens)
{
    SAYS(join(WAIT_A), "waiting");
    make_absent(UUID_A);
    ck_assert_int_eq(poll(UUID_A, LOCAL " ", "").flags, 16);
    ck_assert_int_gt(test_redis_int(redis, "ZSCORE", CONDPRESENT, UUID_A), server_ms());
    struct test_redis *a = listener(UUID_A);
    ck_assert_int_eq(poll(UUID_A, LOCAL " ", "").flags, 0);
    test_redis_close(a);
    assert_ttls();
}
END_TEST

/* ---- cancel */

/* rule: V5 */
START_TEST(cancel_removes_a_waiter_and_repeats_that)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(cancel_wait(WAIT_A, "0"), "removed");
    ck_assert(is_absent(WAIT_A));
    SAYS(cancel_wait(WAIT_A, "0"), "removed");
    assert_ttls();
}
END_TEST

/* rule: V5 */
START_TEST(cancel_does_not_eat_a_signal)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(cancel_wait(WAIT_A, "0"), "woken");
    ck_assert(is_signalled(WAIT_A));
    SAYS(cancel_wait(WAIT_A, "0"), "woken");
}
END_TEST

/* rule: V5 */
START_TEST(cancel_says_gone_after_a_broadcast)
{
    SAYS(join_again(WAIT_A), "waiting");
    broadcast();
    SAYS(cancel_wait(WAIT_A, "0"), "gone");
}
END_TEST

/* rule: V13 */
START_TEST(cancel_that_passes_on_wakes_the_next_in_the_same_script)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    SAYS(cancel_wait(WAIT_A, "1"), "woken");
    ck_assert(is_absent(WAIT_A));
    ck_assert(is_signalled(WAIT_B));
    assert_told(b, WAIT_B);
    SAYS(join(WAIT_A), "gone");
    test_redis_close(b);
}
END_TEST

/* ---- broadcast */

/* rule: V7 */
START_TEST(broadcast_takes_all_out_and_tells_each_client_once)
{
    struct test_redis *a = listener(UUID_A), *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_B), "waiting");
    SAYS(join(WAIT_A2), "waiting");
    broadcast();
    ck_assert_int_eq(woken.more, 0);
    ck_assert(!test_redis_exists(redis, COND));
    const char *text = message(a);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strncmp(text, "1 woken 2 " WAIT_A " ", 10 + sizeof(WAIT_A)), 0);
    ck_assert_ptr_nonnull(strstr(text, WAIT_A2));
    ck_assert(no_message(a));
    assert_told(b, WAIT_B);
    test_redis_close(a);
    test_redis_close(b);
}
END_TEST

/* rule: V7 */
START_TEST(broadcast_does_not_wake_who_joins_after_it_began)
{
    SAYS(join(WAIT_A), "waiting");
    add_waiters(UUID_B, 1, STEP); /* before A, whose ticket is the bar */
    broadcast();
    ck_assert_int_eq(woken.more, 1);
    ck_assert(waits(WAIT_A));
    char bar[32];
    snprintf(bar, sizeof(bar), "%lld", woken.bar);
    SAYS(join(WAIT_C), "waiting");
    wake_by(UUID_C, "0", bar);
    ck_assert_int_eq(woken.more, 0);
    ck_assert(is_absent(WAIT_A));
    ck_assert(waits(WAIT_C));
    ck_assert_uint_eq(woken.count, 0);
}
END_TEST

/* rule: V7 */
START_TEST(broadcast_leaves_signalled_waiters_their_signals)
{
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_B), "waiting");
    broadcast();
    ck_assert(is_signalled(WAIT_A));
    ck_assert(is_absent(WAIT_B));
    broadcast();
    ck_assert(is_signalled(WAIT_A));
}
END_TEST

/* rule: V7 */
START_TEST(message_of_a_broadcast_names_256_waiters_at_most)
{
    struct test_redis *a = listener(UUID_A);
    add_waiters(UUID_A, 1, MESSAGE_MAX + 1);
    broadcast();
    ck_assert_int_eq(strncmp(message(a), "1 woken 256 ", 12), 0);
    ck_assert_int_eq(strncmp(message(a), "1 woken 1 ", 10), 0);
    ck_assert(no_message(a));
    test_redis_close(a);
}
END_TEST

START_TEST(broadcast_tells_the_callers_own_waiters_by_the_reply)
{
    SAYS(join(WAIT_C), "waiting");
    SAYS(join(WAIT_A), "waiting");
    broadcast();
    ck_assert_str_eq(woken.own, LOCAL " ");
}
END_TEST

/* ---- dead clients */

/* rule: V15 */
START_TEST(recovery_passes_the_signals_of_the_dead_on)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(join(WAIT_A), "waiting");
    signal_one();
    SAYS(join(WAIT_A2), "waiting");
    SAYS(join(WAIT_B), "waiting");
    SAYS(bury_client(UUID_A), "released");
    ck_assert(is_absent(WAIT_A) && is_absent(WAIT_A2));
    ck_assert(is_signalled(WAIT_B));
    assert_told(b, WAIT_B);
    ck_assert_int_eq(test_redis_int(redis, "ZSCORE", CONDPRESENT, UUID_A), 0);
    SAYS(join(WAIT_A), "gone");
    assert_ttls();
    test_redis_close(b);
}
END_TEST

/* rule: V15 */
START_TEST(recovery_leaves_the_last_presence_as_ended)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(bury_client(UUID_A), "released");
    add_waiters(UUID_A, 1, 1);
    signal_one(); /* the key of presence does not count as lost */
    ck_assert_int_eq(test_redis_int(redis, "ZCARD", COND), 0);
}
END_TEST

/* ---- memory, foreign data */

/* rule: V6 */
START_TEST(all_but_the_join_run_with_memory_full)
{
    SAYS(join(WAIT_A), "waiting");
    SAYS(join(WAIT_A2), "waiting");
    SAYS(join(WAIT_B), "waiting");
    test_redis_config(redis, "maxmemory", "1");
    signal_one();
    ck_assert(is_signalled(WAIT_A));
    SAYS(poll(UUID_B, LOCAL " ", ""), "waiting");
    SAYS(cancel_wait(WAIT_A, "1"), "woken");
    ck_assert(is_signalled(WAIT_A2));
    SAYS(bury_client(UUID_A), "released");
    ck_assert(is_signalled(WAIT_B));
    ck_assert_ptr_nonnull(strstr(join(WAIT_C).error, "OOM"));
    ck_assert(is_absent(WAIT_C));
    test_redis_config(redis, "maxmemory", "0");
}
END_TEST

START_TEST(odd_members_wake_nobody_and_go)
{
    test_redis_do(redis, "ZADD", COND, "200000000000000", "odd", "200000000000001",
                  UUID_A ":1:1:x3000");
    SAYS(join(WAIT_B), "waiting");
    if (_i == 0) {
        signal_one();
        ck_assert(is_signalled(WAIT_B));
    } else {
        broadcast();
    }
    ck_assert(is_absent("odd"));
}
END_TEST

START_TEST(condition_and_lock_of_one_name_share_no_key)
{
    SAYS(acquire(A), "held");
    SAYS(acquire(B), "queued");
    SAYS(join(WAIT_C), "waiting");
    SAYS(release(A), "released");
    ck_assert(is_held_by(B) || !test_redis_exists(redis, "n"));
    ck_assert(waits(WAIT_C));
    signal_one();
    ck_assert(is_signalled(WAIT_C));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cond_scripts");
    TCase *tc = byhand_tcase(s, "join");
    tcase_add_test(tc, join_waits_with_a_ticket_and_a_presence);
    tcase_add_test(tc, tickets_grow_and_do_not_repeat);
    tcase_add_test(tc, repeated_join_has_the_same_ticket);
    tcase_add_test(tc, join_that_comes_late_after_its_repetition_does_not_wait);
    tcase_add_test(tc, join_that_comes_late_after_its_cancel_does_not_wait);
    tcase_add_loop_test(tc, join_beyond_its_limit_does_not_wait, 0, 2);
    tcase_add_test(tc, repeated_join_of_a_signalled_id_says_so);
    tcase_add_test(tc, join_of_a_dead_client_is_refused);
    tcase_add_loop_test(tc, join_does_not_touch_a_key_of_another_type, 0, 3);
    tc = byhand_tcase(s, "release");
    tcase_add_test(tc, one_step_joins_and_releases);
    tcase_add_test(tc, one_step_hands_the_mutex_to_its_next_waiter);
    tcase_add_test(tc, repeated_step_does_not_wait_again_after_a_broadcast);
    tcase_add_test(tc, repeated_step_finds_that_it_waits);
    tcase_add_test(tc, step_without_the_mutex_joins_nothing);
    tcase_add_test(tc, step_beyond_its_limit_does_nothing);
    tcase_add_test(tc, step_that_finds_foreign_data_does_nothing);
    tc = byhand_tcase(s, "signal");
    tcase_add_test(tc, signal_wakes_the_first_by_ticket);
    tcase_add_test(tc, time_of_a_signalled_waiter_is_its_own_presence_twice);
    tcase_add_test(tc, absent_waiter_is_taken_out);
    tcase_add_test(tc, waiter_that_listens_comes_before_one_that_does_not);
    tcase_add_test(tc, callers_own_waiter_is_told_by_the_reply);
    tcase_add_test(tc, signal_that_took_out_64_absent_waiters_is_to_go_on);
    tcase_add_test(tc, signal_counts_how_many_it_wakes);
    tcase_add_test(tc, signal_that_finds_nobody_leaves_nothing);
    tcase_add_loop_test(tc, all_count_as_present_when_the_key_of_presence_is_lost, 0, 2);
    tc = byhand_tcase(s, "settle");
    tcase_add_loop_test(tc, overdue_signal_goes_to_the_next_waiter, 0, 5);
    tcase_add_test(tc, overdue_signal_behind_many_absent_waiters_is_kept);
    tcase_add_test(tc, acknowledged_signal_is_over);
    tcase_add_test(tc, given_up_signal_goes_to_the_next_waiter);
    tcase_add_test(tc, given_up_wait_is_taken_out_and_wakes_nobody);
    tcase_add_test(tc, given_up_wait_with_a_mark_does_not_join_later);
    tcase_add_test(tc, poll_takes_out_nothing_that_it_tells);
    tcase_add_test(tc, poll_keeps_the_signal_of_who_is_on_the_way_back);
    tcase_add_test(tc, poll_says_of_who_is_not_in_the_queue_that_it_was_woken);
    tcase_add_test(tc, poll_proves_presence_and_says_whether_the_mailbox_listens);
    tc = byhand_tcase(s, "cancel");
    tcase_add_test(tc, cancel_removes_a_waiter_and_repeats_that);
    tcase_add_test(tc, cancel_does_not_eat_a_signal);
    tcase_add_test(tc, cancel_says_gone_after_a_broadcast);
    tcase_add_test(tc, cancel_that_passes_on_wakes_the_next_in_the_same_script);
    tc = byhand_tcase(s, "broadcast");
    tcase_add_test(tc, broadcast_takes_all_out_and_tells_each_client_once);
    tcase_add_test(tc, broadcast_does_not_wake_who_joins_after_it_began);
    tcase_add_test(tc, broadcast_leaves_signalled_waiters_their_signals);
    tcase_add_test(tc, message_of_a_broadcast_names_256_waiters_at_most);
    tcase_add_test(tc, broadcast_tells_the_callers_own_waiters_by_the_reply);
    tc = byhand_tcase(s, "dead");
    tcase_add_test(tc, recovery_passes_the_signals_of_the_dead_on);
    tcase_add_test(tc, recovery_leaves_the_last_presence_as_ended);
    tc = byhand_tcase(s, "data");
    tcase_add_test(tc, all_but_the_join_run_with_memory_full);
    tcase_add_loop_test(tc, odd_members_wake_nobody_and_go, 0, 2);
    tcase_add_test(tc, condition_and_lock_of_one_name_share_no_key);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
