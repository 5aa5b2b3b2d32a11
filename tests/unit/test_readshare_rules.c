/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The rules by which threads of a process read without a request and retain their read
 * hold (K14), and pass on a write hold (K16, W25), decision by decision: the registry
 * alone, without a server. */
#include "handscene.h"
#include "state/readshare.h"

static const struct rlk_handoff keeping = {
    .ns = 10 * MS, .count = 1000, .retain_ns = 5000 * MS, .hears = true
};

static void open_rwlock(void)
{
    open_kind(RLK_KIND_RWLOCK);
}

static bool leaves(int i, struct rlk_handoff how)
{
    struct rlk_holder *holder = part_of(i);
    bool stays = hold->reading ? rlk_readshare_unlock_locked(holder, how, now)
                               : rlk_handoff_unlock_locked(holder, how, now);
    if (!stays)
        rlk_holder_leave_locked(holder);
    return stays;
}

static bool joins(int i)
{
    return rlk_readshare_enter_locked(lock, &waiters[i], now);
}

static void keep(void)
{
    enter_mode('r', "k", 0);
    ck_assert(leaves(0, keeping));
    ck_assert(rlk_hold_is_retained(hold) && lock->queue->shared == hold);
}

/* ---- K14: joining */

/* rule: K14 */
START_TEST(threads_share_the_hold_of_a_reader)
{
    enter_mode('r', "k", 0);
    ck_assert(joins(1) && joins(2));
    ck_assert_uint_eq(counters.acquisitions, 2);
    ck_assert_uint_eq(counters.local_handovers, 2);
    ck_assert_uint_eq(reg.holds_now, 1);
    ck_assert(!leaves(0, keeping) && !leaves(1, keeping)); /* other threads still read */
    ck_assert(!rlk_hold_is_retained(hold));
    ck_assert(leaves(2, keeping));
    ck_assert(rlk_hold_is_retained(hold));
}
END_TEST

enum {
    OTHERS,
    NOT_TOLD,
    DOUBTED,
    AT_RISK,
    LOCAL_WRITER,
    LOCAL_ASK,
    ENDING,
    NOT_SHARED,
    FIXED,
    CLOSED_REASONS,
    LETTER_OTHER = CLOSED_REASONS,
    GRANT_OTHER,
    LEASE_OTHER,
    NOT_RETAKES,
    REASONS
};

static struct rlk_hold *ask;

static void close_for(int why)
{
    hold->contention.contended = why == OTHERS;
    if (why == NOT_TOLD)
        hold->contention.recall = false;
    hold->lease.doubted = why == DOUBTED;
    if (why == AT_RISK)
        now = hold->risk;
    if (why == LOCAL_WRITER)
        waits(2, 1);
    if (why == LOCAL_ASK) {
        ask = rlk_hold_new_locked(lock, &threads[2], 'w', GRANT);
        rlk_hold_ask_locked(ask, &threads[2]);
    }
    lock->ending = why == ENDING ? &threads[2] : NULL;
    if (why == NOT_SHARED)
        lock->queue->shared = NULL;
    hold->fixed = why == FIXED;
}

static void reopen(int why)
{
    lock->ending = NULL;
    if (why == LOCAL_ASK) {
        rlk_hold_ask_end_locked(ask);
        rlk_hold_put_locked(ask);
    }
}

/* rule: K14 */
START_TEST(thread_with_other_needs_does_not_share_a_hold)
{
    enter_mode('r', "k", 0);
    close_for(_i);
    if (_i == LETTER_OTHER)
        waiters[1].letter = 'R';
    if (_i == GRANT_OTHER)
        waiters[1].grant_ms = GRANT / 2;
    if (_i == LEASE_OTHER)
        waiters[1].lease_ms = LEASE * 2;
    if (_i == NOT_RETAKES)
        waiters[1].retakes = false;
    ck_assert(!joins(1));
    ck_assert_ptr_null(part_of(1));
    reopen(_i);
}
END_TEST

/* rule: K14 */
START_TEST(hold_that_may_not_be_retained_is_released)
{
    struct rlk_handoff how = keeping;
    enter_mode('r', "k", 0);
    close_for(_i);
    if (_i == CLOSED_REASONS)
        how.retain_ns = 0;
    if (_i == CLOSED_REASONS + 1)
        how.hears = false;
    if (_i == CLOSED_REASONS + 2)
        hold->read.joins = 1;
    ck_assert(!leaves(0, how));
    ck_assert(!rlk_hold_is_retained(hold));
    hold->read.joins = 0;
    reopen(_i);
}
END_TEST

/* rule: K14 */
START_TEST(retained_read_hold_belongs_to_no_thread)
{
    keep();
    ck_assert_uint_eq(reg.holds_now, 0);
    ck_assert(!rlk_registry_busy_locked(&reg));
    ck_assert_uint_eq(reg.retained_count, 1);
    ck_assert_ptr_eq(rlk_readshare_retained_locked(lock), hold);
    ck_assert(joins(1));
    ck_assert_uint_eq(reg.holds_now, 1);
    ck_assert_uint_eq(reg.retained_count, 0);
    ck_assert_ptr_null(rlk_readshare_retained_locked(lock));
}
END_TEST

/* rule: K14 */
START_TEST(limited_number_of_read_holds_is_retained)
{
    enter_mode('r', "k", 0);
    reg.retained_count = 1024;
    ck_assert(!leaves(0, keeping));
    reg.retained_count = 0;
}
END_TEST

/* A hold counts as used when the server is asked whether it may be shared (W22). */
/* rule: K14 */
START_TEST(requester_reuses_the_retained_read_hold)
{
    keep();
    rlk_readshare_use_locked(hold);
    ck_assert(!rlk_hold_is_retained(hold));
    ck_assert_int_eq(hold->pass->retain_ns, 0);
    ck_assert(!is_gone() || !rlk_list_empty(&lock->queue->reads));
}
END_TEST

/* rule: K14 */
START_TEST(unused_retained_read_hold_ends_after_its_time)
{
    keep();
    now += keeping.retain_ns;
    ck_assert(rlk_handoff_retained_due_locked(hold, now));
    ck_assert(rlk_list_empty(&lock->queue->reads));
}
END_TEST

/* rule: K14 */
START_TEST(retained_read_hold_is_refreshed_every_third_of_a_presence)
{
    keep();
    ck_assert_int_eq(hold->timer.when, hold->proof_sent + GRANT * MS / 3);
    rlk_hold_confirm_locked(hold, now, LEASE);
    now += GRANT * MS;
    ck_assert(joins(1)); /* it is refreshed also when threads have joined it */
    ck_assert(is_asked());
}
END_TEST

/* rule: K14 */
START_TEST(retained_read_hold_is_refreshed_at_once_when_the_mailbox_is_lost)
{
    enter_mode('r', "k", 0);
    if (_i)
        ck_assert(leaves(0, keeping));
    rlk_handoff_ask_all_locked(&reg);
    ck_assert(is_asked());
}
END_TEST

/* ---- a writer comes */

/* rule: K15 */
START_TEST(recall_ends_a_retained_read_hold_at_once)
{
    keep();
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
    ck_assert(rlk_list_empty(&lock->queue->reads));
    ck_assert(!joins(1));
}
END_TEST

/* rule: K15 */
START_TEST(no_thread_joins_a_recalled_read_hold)
{
    enter_mode('r', "k", 0);
    ck_assert(joins(1));
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert_int_eq(hold->state, RLK_HOLD_HELD);
    ck_assert(!joins(2));
    ck_assert(!leaves(0, keeping));
    ck_assert(!leaves(1, keeping));
}
END_TEST

/* rule: K15 */
START_TEST(recall_of_another_id_has_no_effect)
{
    keep();
    struct rlk_id id = hold->id;
    id.acquisition++;
    rlk_registry_recalled_locked(&reg, &id, "n", 1);
    ck_assert(rlk_hold_is_retained(hold) && joins(1));
}
END_TEST

/* The server sends one message, which names one of the holds. */
/* rule: K15 */
START_TEST(recall_applies_to_all_read_holds_of_the_process)
{
    enter_mode('r', "k", 0);
    struct rlk_hold *first = hold;
    ck_assert(leaves(0, keeping));
    enter_mode('R', "k", 0);
    ck_assert_int_eq(first->state, RLK_HOLD_RELEASING); /* only one read hold is
                                                           retained */
    ask = rlk_hold_new_locked(lock, &threads[2], 'r', GRANT);
    ask->reading = true;
    rlk_hold_ask_locked(ask, &threads[2]);
    /* the message may name any of them, even one that is being released */
    rlk_registry_recalled_locked(&reg, _i ? &hold->id : &first->id, "n", 1);
    ck_assert(hold->contention.contended && ask->contention.contended);
    rlk_hold_ask_end_locked(ask);
    rlk_hold_put_locked(ask);
}
END_TEST

/* _i: flags of a reply: a writer waits, or tries. Readers do not count. */
/* rule: K14 */
START_TEST(reply_may_carry_the_recall)
{
    static const unsigned flags[] = { RLK_WRITERS_WAIT, RLK_WANTED,
                                      RLK_READERS_WAIT | RLK_WILL_TELL };
    keep();
    rlk_handoff_answered_locked(hold, now, flags[_i]);
    ck_assert_int_eq(hold->contention.contended, _i < 2);
    ck_assert_int_eq(rlk_handoff_retained_due_locked(hold, now), _i < 2);
}
END_TEST

/* rule: K14 */
START_TEST(grant_may_carry_the_recall)
{
    enter_mode('r', "k", _i ? RLK_READERS_WAIT | RLK_WILL_TELL : RLK_WRITERS_WAIT);
    ck_assert_int_eq(joins(1), _i);
}
END_TEST

/* The hold was answered together with one that has it requested. */
/* rule: K14 */
START_TEST(hold_without_recall_requested_is_not_retained)
{
    enter_mode('r', "", RLK_WILL_TELL);
    ck_assert(!hold->contention.recall);
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(!joins(1));
}
END_TEST

/* rule: K14 */
START_TEST(granted_hold_is_retained_once_a_reply_promises_the_recall)
{
    enter_mode('r', "k", RLK_READERS_WAIT);
    ck_assert(!joins(1));
    rlk_handoff_answered_locked(hold, now, RLK_WILL_TELL);
    ck_assert(joins(1));
}
END_TEST

/* rule: K9 */
START_TEST(retained_read_hold_ends_with_the_process)
{
    keep();
    rlk_handoff_end_all_locked(&reg, now);
    ck_assert_int_eq(hold->state, RLK_HOLD_RELEASING);
}
END_TEST

/* ---- K16, W25: write holds */

static bool takes(int i, struct rlk_hold **ret_spent)
{
    rlk_lock_held_locked(lock, now);
    if (lock->queue->woken == &waiters[i])
        lock->queue->woken = NULL;
    bool in = rlk_handoff_enter_locked(lock, &waiters[i], keeping, now, ret_spent);
    if (*ret_spent)
        rlk_hold_background_locked(*ret_spent, now, now + LEASE * MS);
    return in;
}

/* rule: K16 */
START_TEST(write_hold_is_handed_off_without_other_waiters)
{
    enter_mode('w', "k", 0);
    waits(1, 5);
    ck_assert(leaves(0, keeping));
    ck_assert_ptr_nonnull(waiters[1].holder);
    ck_assert_uint_eq(hold->pass->fastpath, 0);
}
END_TEST

enum { W_OTHERS, W_NOT_TOLD, W_READER, W_NO_RETAIN, W_DEAF, W_REASONS };

/* rule: W25 */
START_TEST(write_hold_is_not_handed_off_past_waiters_at_the_server)
{
    struct rlk_handoff how = keeping;
    enter_mode('w', _i == W_NOT_TOLD ? "" : "k", _i == W_OTHERS ? RLK_READERS_WAIT : 0);
    waits(1, 5);
    if (_i == W_READER)
        rlk_list_append(&lock->queue->readers, &waiters[2].link);
    if (_i == W_NO_RETAIN)
        how.retain_ns = 0;
    how.hears = _i != W_DEAF;
    ck_assert(!leaves(0, how));
}
END_TEST

/* rule: W25 */
START_TEST(woken_thread_does_not_enter_past_waiters_at_the_server)
{
    struct rlk_hold *spent;
    enter_mode('w', "k", 0);
    waits(1, 0);
    ck_assert(leaves(0, keeping) && rlk_hold_is_retained(hold)); /* thread 1 is woken */
    rlk_registry_recalled_locked(&reg, &hold->id, "n", 1);
    ck_assert(!takes(1, &spent));
    ck_assert_ptr_eq(spent, hold);
}
END_TEST

/* rule: K16 */
START_TEST(write_hold_is_retained_and_taken_again)
{
    struct rlk_hold *spent;
    enter_mode('w', "k", 0);
    ck_assert(leaves(0, keeping));
    ck_assert(rlk_hold_is_retained(hold));
    ck_assert_uint_eq(hold->pass->fastpath, 0);
    ck_assert(takes(1, &spent));
}
END_TEST

/* rule: K16 */
START_TEST(reader_of_the_process_recalls_the_retained_write_hold)
{
    struct rlk_hold *spent;
    enter_mode('w', "k", 0);
    ck_assert(leaves(0, keeping));
    waiters[1].letter = 'r';
    ck_assert(!takes(1, &spent));
    ck_assert_ptr_eq(spent, hold);
}
END_TEST

/* rule: H11 */
START_TEST(each_section_of_a_writer_has_a_token)
{
    struct rlk_hold *spent;
    enter_mode('W', "k", 0);
    answered(1001, 999, true);
    for (uint64_t token = 1000; token < 1999; token++) {
        ck_assert_uint_eq(hold->token, token);
        ck_assert(leaves(0, keeping));
        ck_assert(takes(0, &spent));
    }
    ck_assert_uint_eq(hold->token, 1999);
    ck_assert(!leaves(0, keeping)); /* it was the last token of the block */
}
END_TEST

/* rule: H11 */
START_TEST(downgraded_hold_has_the_token_of_its_section)
{
    struct rlk_hold *spent;
    enter_mode('W', "k", 0);
    answered(1001, 999, true);
    ck_assert(leaves(0, keeping) && takes(0, &spent));
    ck_assert_uint_eq(hold->token, 1001);
    hold->tokens.ask = true;
    rlk_hold_downgrade_locked(hold);
    ck_assert(!hold->tokens.ask); /* no reply would bring tokens any more */
    answered(1000, 0, false);     /* from before the server knew of the downgrade */
    ck_assert_uint_eq(hold->token, 1001);
    hold->server.downgrade = false;
    answered(1001, 0, false);
    ck_assert_uint_eq(hold->token, 1001);
    answered(1000, 0, false); /* and a late one */
    answered(3000, 500, true);
    ck_assert_uint_eq(hold->token, 1001);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("readshare: rules");
    TCase *tc = tcase_create("read");
    tcase_add_checked_fixture(tc, open_rwlock, tear_down);
    tcase_add_test(tc, threads_share_the_hold_of_a_reader);
    tcase_add_loop_test(tc, thread_with_other_needs_does_not_share_a_hold, 0, REASONS);
    tcase_add_loop_test(tc, hold_that_may_not_be_retained_is_released, 0,
                        CLOSED_REASONS + 3);
    tcase_add_test(tc, retained_read_hold_belongs_to_no_thread);
    tcase_add_test(tc, limited_number_of_read_holds_is_retained);
    tcase_add_test(tc, requester_reuses_the_retained_read_hold);
    tcase_add_test(tc, unused_retained_read_hold_ends_after_its_time);
    tcase_add_test(tc, retained_read_hold_is_refreshed_every_third_of_a_presence);
    tcase_add_loop_test(
        tc, retained_read_hold_is_refreshed_at_once_when_the_mailbox_is_lost, 0, 2);
    tcase_add_test(tc, recall_ends_a_retained_read_hold_at_once);
    tcase_add_test(tc, no_thread_joins_a_recalled_read_hold);
    tcase_add_test(tc, recall_of_another_id_has_no_effect);
    tcase_add_loop_test(tc, recall_applies_to_all_read_holds_of_the_process, 0, 2);
    tcase_add_loop_test(tc, reply_may_carry_the_recall, 0, 3);
    tcase_add_loop_test(tc, grant_may_carry_the_recall, 0, 2);
    tcase_add_test(tc, hold_without_recall_requested_is_not_retained);
    tcase_add_test(tc, granted_hold_is_retained_once_a_reply_promises_the_recall);
    tcase_add_test(tc, retained_read_hold_ends_with_the_process);
    suite_add_tcase(suite, tc);
    tc = tcase_create("write");
    tcase_add_checked_fixture(tc, open_rwlock, tear_down);
    tcase_add_test(tc, write_hold_is_handed_off_without_other_waiters);
    tcase_add_loop_test(tc, write_hold_is_not_handed_off_past_waiters_at_the_server, 0,
                        W_REASONS);
    tcase_add_test(tc, woken_thread_does_not_enter_past_waiters_at_the_server);
    tcase_add_test(tc, write_hold_is_retained_and_taken_again);
    tcase_add_test(tc, reader_of_the_process_recalls_the_retained_write_hold);
    tcase_add_test(tc, each_section_of_a_writer_has_a_token);
    tcase_add_test(tc, downgraded_hold_has_the_token_of_its_section);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
