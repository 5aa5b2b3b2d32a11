/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit claims=E4,E5,E6,E7,E14 */
/* The rules of the search for deadlocks, decision by decision: the registry alone,
 * without a server or threads. */
#include "handscene.h"

#include "state/chase.h"

#include <stdio.h>
#include <stdlib.h>

#define UUID "aaaaaaaa-0000-4000-8000-00000000000a"
#define OTHER "bbbbbbbb-0000-4000-8000-00000000000b"

enum { AFTER_MS = 1000 };

static struct rlk_nested nested[THREADS];
static struct rlk_chase_mark mark;

static void open_chase(void)
{
    set_up();
    reg.deadlock_ns = AFTER_MS * MS;
    memset(nested, 0, sizeof(nested));
}

static void close_chase(void)
{
    for (int i = 0; i < THREADS; i++) {
        rlk_nested_end_locked(&nested[i]);
        free(nested[i].cycle);
        threads[i].fast_in = false;
    }
    tear_down();
}

/* Thread i is inside a lock of another client, and has waited for "n" for AFTER_MS. */
static void nests(int i, int mode)
{
    threads[i].fast_in = true;
    nested[i] = (struct rlk_nested){ .thread = &threads[i],
                                     .self = rlk_sync_thread_self(),
                                     .since = now - AFTER_MS * MS,
                                     .mode = mode };
    rlk_nested_begin_locked(lock, &nested[i]);
    threads[i].fast_in = false;
    ck_assert(nested[i].begun);
}

/* A round leaves. */
static void begin(bool again)
{
    ck_assert(rlk_chase_begin_locked(lock, UUID, again, &mark));
}

/* The present round's probe returns, for a hold that thread i is inside, by a path with
 * this digest. */
static enum rlk_chase_verdict comes_back(int i, uint64_t digest)
{
    struct rlk_chase_mark back = mark;

    back.digest = digest;
    enum rlk_chase_verdict v = rlk_chase_returned_locked(&nested[i], UUID, now, &back);
    if (v == RLK_CHASE_FOUND)
        rlk_chase_tell_locked(&nested[i], UUID, &back, now, strdup("cycle"));
    return v;
}

/* ---- rounds */

/* rule: E6 */
START_TEST(first_return_only_suspects_and_the_second_round_reports)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_NOTED);
    begin(true);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_FOUND);
    ck_assert_uint_eq(counters.deadlocks, 1);
    struct rlk_deadlock_event *event = rlk_chase_next_event_locked(&reg);
    ck_assert_ptr_nonnull(event);
    ck_assert_str_eq(event->name, "n");
    ck_assert_str_eq(event->cycle, "cycle");
    free(event);
}
END_TEST

/* rule: E6 */
START_TEST(late_probe_of_the_first_round_counts_for_nothing)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    struct rlk_chase_mark first = mark;
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    begin(true);
    ck_assert(mark.nonce != first.nonce);
    first.digest = 7;
    ck_assert_int_eq(rlk_chase_returned_locked(&nested[0], UUID, now, &first),
                     RLK_CHASE_OTHERS);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_FOUND);
}
END_TEST

/* rule: E6 */
START_TEST(wait_that_began_again_is_another_one)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    rlk_nested_end_locked(&nested[0]);
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(true);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_NOTED);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_FOUND);
}
END_TEST

/* rule: E6 */
START_TEST(digest_is_of_threads_and_waits_in_their_order)
{
    uint64_t ab = rlk_chase_digest(rlk_chase_digest(0, UUID, 1, 1), OTHER, 1, 1);
    ck_assert(ab == rlk_chase_digest(rlk_chase_digest(0, UUID, 1, 1), OTHER, 1, 1));
    ck_assert(ab != rlk_chase_digest(rlk_chase_digest(0, OTHER, 1, 1), UUID, 1, 1));
    ck_assert(ab != rlk_chase_digest(rlk_chase_digest(0, UUID, 1, 2), OTHER, 1, 1));
    ck_assert(ab != rlk_chase_digest(rlk_chase_digest(0, UUID, 2, 1), OTHER, 1, 1));
    ck_assert(ab != rlk_chase_digest(rlk_chase_digest(0, UUID, 1, 1), OTHER, 1, 2));
    /* it is the same in every version of the library */
    ck_assert_uint_eq(rlk_chase_digest(0, UUID, 1, 2), UINT64_C(0x9397e04fe4bfa5a8));
}
END_TEST

/* rule: E6 */
START_TEST(path_that_changed_between_the_rounds_is_not_reported)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    begin(true);
    ck_assert_int_eq(comes_back(0, 8), RLK_CHASE_NOTED);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    ck_assert_uint_eq(counters.deadlocks, 0);
}
END_TEST

/* rule: E6 */
START_TEST(one_cycle_does_not_hide_another)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_SUSPECTED);
    begin(true);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_FOUND);
    ck_assert_int_eq(comes_back(0, 8), RLK_CHASE_NOTED);
    begin(false); /* it goes on although this was reported */
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_NOTED);
    ck_assert_int_eq(comes_back(0, 8), RLK_CHASE_FOUND);
    begin(false);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_NOTED);
    ck_assert_int_eq(comes_back(0, 8), RLK_CHASE_NOTED);
    ck_assert_uint_eq(counters.deadlocks, 2);
}
END_TEST

/* rule: E6, E14 */
START_TEST(more_digests_than_there_is_room_for_are_dropped)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    for (uint64_t i = 0; i < 100; i++)
        comes_back(0, i);
    begin(true);
    for (uint64_t i = 0; i < RLK_CHASE_DIGESTS_MAX; i++)
        ck_assert_int_eq(comes_back(0, i), RLK_CHASE_FOUND);
    ck_assert_int_eq(comes_back(0, RLK_CHASE_DIGESTS_MAX), RLK_CHASE_NOTED);
}
END_TEST

/* rule: E5 */
START_TEST(probe_of_another_initiator_or_nonce_has_not_come_back)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_OTHERS); /* no round has left */
    begin(false);
    struct rlk_chase_mark back = mark;
    memcpy(back.initiator, OTHER, RLK_UUID_LEN);
    ck_assert_int_eq(rlk_chase_returned_locked(&nested[0], UUID, now, &back),
                     RLK_CHASE_OTHERS);
    back = mark;
    back.nonce++;
    ck_assert_int_eq(rlk_chase_returned_locked(&nested[0], UUID, now, &back),
                     RLK_CHASE_OTHERS);
}
END_TEST

/* Rounds for a wait without a report: it is new, or does not want one. */
START_TEST(nothing_is_reported_before_the_time_or_for_a_wait_that_is_off)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    nests(1, RLOCK_DEADLOCK_OFF);
    nested[0].since++;
    for (int i = 0; i < 3; i++) {
        begin(i % 2);
        ck_assert_int_ne(comes_back(0, 7), RLK_CHASE_FOUND);
        ck_assert_int_ne(comes_back(1, 7), RLK_CHASE_FOUND);
    }
    nested[0].since--;
    begin(true);
    ck_assert_int_eq(comes_back(0, 7), RLK_CHASE_FOUND);
}
END_TEST

/* rule: E2 */
START_TEST(next_round_is_due_when_the_oldest_wait_that_asks_has_lasted)
{
    ck_assert_int_eq(rlk_nested_due(lock), RLK_NEVER);
    nests(0, RLOCK_DEADLOCK_OFF);
    ck_assert_int_eq(rlk_nested_due(lock), RLK_NEVER);
    ck_assert(!lock->queue->chase_timer.armed);
    nests(1, RLOCK_DEADLOCK_TELL);
    nests(2, RLOCK_DEADLOCK_FAIL);
    ck_assert_int_eq(rlk_nested_due(lock), now);
    ck_assert(lock->queue->chase_timer.armed);
    rlk_nested_end_locked(&nested[1]);
    rlk_nested_end_locked(&nested[2]);
    rlk_nested_end_locked(&nested[0]);
    ck_assert(!lock->queue->chase_timer.armed);
    reg.deadlock_ns = 0;
    nests(0, RLOCK_DEADLOCK_TELL);
    ck_assert(!lock->queue->chase_timer.armed);
    ck_assert_int_eq(rlk_nested_due(lock), RLK_NEVER);
}
END_TEST

/* rule: E2 */
START_TEST(wait_of_a_thread_that_is_inside_nothing_is_not_recorded)
{
    nested[0] = (struct rlk_nested){ .thread = &threads[0], .since = now };
    rlk_nested_begin_locked(lock, &nested[0]);
    ck_assert(!nested[0].begun && !lock->queue->chase_timer.armed);
    ck_assert_ptr_null(rlk_nested_of_locked(&reg, &threads[0], threads[0].number));
    rlk_nested_end_locked(&nested[0]);
}
END_TEST

/* rule: E13 */
START_TEST(wait_is_found_by_its_thread_and_client)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    ck_assert_ptr_eq(rlk_nested_of_locked(&reg, &threads[0], 1), &nested[0]);
    ck_assert_ptr_null(rlk_nested_of_locked(&reg, &threads[0], 2)); /* reused record */
    ck_assert_ptr_null(rlk_nested_of_locked(&reg, &threads[1], 2));
    reg.client_number++;
    ck_assert_ptr_null(rlk_nested_of_locked(&reg, &threads[0], 1));
    reg.client_number--;
}
END_TEST

/* ---- victims */

static void claims(const char *uuid, uint64_t number, int mode)
{
    struct rlk_nested wait = { .thread_number = number, .mode = mode };
    rlk_chase_claim(&mark, uuid, &wait);
}

/* rule: E7 */
START_TEST(greatest_key_of_those_that_may_fail_is_the_victim)
{
    nests(0, RLOCK_DEADLOCK_TELL);
    begin(false);
    ck_assert_str_eq(mark.victim, "-");
    claims(OTHER, 9, RLOCK_DEADLOCK_TELL);
    claims(OTHER, 9, RLOCK_DEADLOCK_OFF);
    ck_assert_str_eq(mark.victim, "-");
    claims(UUID, 7, RLOCK_DEADLOCK_FAIL);
    ck_assert_str_eq(mark.victim, UUID ":7");
    claims(OTHER, 1, RLOCK_DEADLOCK_FAIL);
    ck_assert_str_eq(mark.victim, OTHER ":1");
    claims(UUID, 9, RLOCK_DEADLOCK_FAIL);
    ck_assert_str_eq(mark.victim, OTHER ":1");
}
END_TEST

/* rule: E7, E8 */
START_TEST(only_the_thread_whose_key_it_is_gives_up)
{
    const char *other = _i == 0 ? OTHER ":1" : "00000000-0000-4000-8000-000000000000:1";
    nests(0, RLOCK_DEADLOCK_FAIL);
    for (int i = 0; i < 2; i++) {
        begin(i == 1);
        memcpy(mark.victim, other, strlen(other) + 1);
        comes_back(0, 7);
    }
    ck_assert_uint_eq(counters.deadlocks, 1);
    ck_assert_int_eq(nested[0].victim, _i == 1);
    ck_assert_int_eq(is_woken(0), _i == 1);
    struct rlk_deadlock_event *event = rlk_chase_next_event_locked(&reg);
    ck_assert_int_eq(event->fails, _i == 1);
    free(event);
}
END_TEST

/* ---- inside */

static size_t inside(struct rlk_nested_holder holders[THREADS])
{
    return rlk_nested_holders_locked(&reg, &hold->id, "n", 1, now, holders, THREADS);
}

/* rule: E1, E3 */
START_TEST(threads_inside_a_hold_are_those_that_know_it)
{
    struct rlk_nested_holder holders[THREADS];
    enter("", 0);
    ck_assert_uint_eq(inside(holders), 1);
    ck_assert_ptr_eq(holders[0].thread, &threads[0]);
    ck_assert_uint_eq(holders[0].number, 1);
    waits(1, 1);
    ck_assert(unlocks(0)); /* handed to thread 1, which does not know it yet */
    ck_assert_uint_eq(inside(holders), 0);
    rlk_holder_own_locked(waiters[1].holder, &threads[1], now);
    waiters[1].holder = NULL;
    ck_assert_uint_eq(inside(holders), 1);
    ck_assert_ptr_eq(holders[0].thread, &threads[1]);
    now = hold->end;
    ck_assert_uint_eq(inside(holders), 0);
}
END_TEST

/* rule: E3 */
START_TEST(nobody_is_inside_a_hold_that_is_granted_retained_or_unknown)
{
    struct rlk_nested_holder holders[THREADS];
    struct rlk_id id;
    enter("", 0);
    id = hold->id;
    waits(1, 0);
    ck_assert(unlocks(0) && rlk_hold_is_retained(hold));
    ck_assert_uint_eq(inside(holders), 0);
    id.acquisition++;
    ck_assert_uint_eq(rlk_nested_holders_locked(&reg, &id, "n", 1, now, holders, THREADS),
                      0);
    ck_assert_uint_eq(
        rlk_nested_holders_locked(&reg, &hold->id, "m", 1, now, holders, THREADS), 0);
    struct rlk_hold *asks = rlk_hold_new_locked(lock, &threads[2], 'm', GRANT);
    rlk_hold_ask_locked(asks, &threads[2]);
    rlk_hold_held_locked(asks, now, LEASE, 0);
    ck_assert_uint_eq(
        rlk_nested_holders_locked(&reg, &asks->id, "n", 1, now, holders, THREADS), 0);
    rlk_hold_give_up_locked(asks, now, now);
    rlk_hold_background_end_locked(asks);
}
END_TEST

/* ---- forwarding */

static bool forwards(uint64_t nonce, const char *name)
{
    mark.nonce = nonce;
    memcpy(mark.initiator, OTHER, RLK_UUID_LEN + 1);
    return rlk_chase_forwards_locked(&reg, &mark, name, strlen(name), now);
}

/* rule: E4 */
START_TEST(probe_is_forwarded_once_for_each_lock)
{
    ck_assert(forwards(1, "a"));
    ck_assert(!forwards(1, "a"));
    ck_assert(forwards(1, "b"));
    ck_assert(forwards(2, "a"));
    ck_assert(!forwards(1, "b"));
    memcpy(mark.initiator, UUID, RLK_UUID_LEN + 1);
    mark.nonce = 1;
    ck_assert(rlk_chase_forwards_locked(&reg, &mark, "a", 1, now));
}
END_TEST

/* rule: E4 */
START_TEST(at_most_1000_probes_are_forwarded_in_a_second)
{
    uint64_t n = 0;
    while (forwards(++n, "a"))
        ck_assert_uint_le(n, RLK_CHASE_PER_SECOND);
    ck_assert_uint_eq(n, RLK_CHASE_PER_SECOND + 1);
    now += RLK_NS_PER_S;
    ck_assert(forwards(n, "a"));
    ck_assert(!forwards(n, "a"));
    ck_assert(!forwards(2, "a")); /* still remembered */
}
END_TEST

/* rule: E14 */
START_TEST(messages_beyond_256_are_dropped)
{
    for (int i = 0; i < 2 * RLK_CHASE_LETTERS_MAX; i++)
        rlk_chase_receive_locked(&reg, "text", 4);
    ck_assert_uint_eq(reg.chases.letter_count, RLK_CHASE_LETTERS_MAX);
    ck_assert(reg.watchdog_dirty);
}
END_TEST

/* ---- texts */

static void path_is(const char *path)
{
    memset(&mark, 0, sizeof(mark));
    mark.path_len = strlen(path);
    memcpy(mark.path, path, mark.path_len + 1);
}

static void sentence_is(const char *wanted)
{
    char *text = rlk_chase_sentence(&mark, "h:1:p");
    ck_assert_str_eq(text, wanted);
    free(text);
}

START_TEST(path_becomes_a_sentence)
{
    memset(&mark, 0, sizeof(mark));
    rlk_chase_path_add(&mark, ';', "a b", 3);
    rlk_chase_path_add(&mark, ',', "h:2:q", 5);
    rlk_chase_path_add(&mark, ';', "c,;%\n", 5);
    ck_assert_str_eq(mark.path, "a%20b,h:2:q;c%2C%3B%25%0A");
    sentence_is("\"a b\" is held by h:2:q, which waits for \"c,;%\\x0a\", held by this "
                "thread");
    path_is("a,h:1:p;b,h:2:q;c");
    sentence_is("\"a\" is held by h:1:p (this process), which waits for \"b\", held by "
                "h:2:q, which waits for \"c\", held by this thread");
    path_is("a,x%;%4,%G0;,"); /* forged */
    sentence_is("\"a\" is held by x%, which waits for \"%4\", held by %G0, which waits "
                "for \"\", held by ");
}
END_TEST

START_TEST(path_of_more_than_4096_bytes_is_cut)
{
    memset(&mark, 0, sizeof(mark));
    for (int i = 0; i < 400; i++) {
        rlk_chase_path_add(&mark, ';', "twelve bytes", 12);
        rlk_chase_path_add(&mark, ',', "h:2:q", 5);
    }
    ck_assert_uint_le(mark.path_len, RLK_CHASE_PATH_MAX);
    ck_assert_uint_ge(mark.path_len, RLK_CHASE_PATH_MAX - 30);
    ck_assert_str_eq(mark.path + mark.path_len - 4, ",...");
    char *text = rlk_chase_sentence(&mark, "h:1:p");
    ck_assert_ptr_nonnull(strstr(text, "..."));
    free(text);
    memset(mark.path, ';', RLK_CHASE_PATH_MAX); /* forged */
    mark.path_len = RLK_CHASE_PATH_MAX;
    free(rlk_chase_sentence(&mark, "h:1:p"));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("chase");
    TCase *tc = tcase_create("rounds");
    tcase_add_checked_fixture(tc, open_chase, close_chase);
    tcase_add_test(tc, first_return_only_suspects_and_the_second_round_reports);
    tcase_add_test(tc, late_probe_of_the_first_round_counts_for_nothing);
    tcase_add_test(tc, wait_that_began_again_is_another_one);
    tcase_add_test(tc, digest_is_of_threads_and_waits_in_their_order);
    tcase_add_test(tc, path_that_changed_between_the_rounds_is_not_reported);
    tcase_add_test(tc, one_cycle_does_not_hide_another);
    tcase_add_test(tc, more_digests_than_there_is_room_for_are_dropped);
    tcase_add_test(tc, probe_of_another_initiator_or_nonce_has_not_come_back);
    tcase_add_test(tc, nothing_is_reported_before_the_time_or_for_a_wait_that_is_off);
    tcase_add_test(tc, next_round_is_due_when_the_oldest_wait_that_asks_has_lasted);
    tcase_add_test(tc, wait_of_a_thread_that_is_inside_nothing_is_not_recorded);
    tcase_add_test(tc, wait_is_found_by_its_thread_and_client);
    tcase_add_test(tc, greatest_key_of_those_that_may_fail_is_the_victim);
    tcase_add_loop_test(tc, only_the_thread_whose_key_it_is_gives_up, 0, 2);
    tcase_add_test(tc, threads_inside_a_hold_are_those_that_know_it);
    tcase_add_test(tc, nobody_is_inside_a_hold_that_is_granted_retained_or_unknown);
    tcase_add_test(tc, probe_is_forwarded_once_for_each_lock);
    tcase_add_test(tc, at_most_1000_probes_are_forwarded_in_a_second);
    tcase_add_test(tc, messages_beyond_256_are_dropped);
    suite_add_tcase(s, tc);

    tc = tcase_create("texts");
    tcase_add_test(tc, path_becomes_a_sentence);
    tcase_add_test(tc, path_of_more_than_4096_bytes_is_cut);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
