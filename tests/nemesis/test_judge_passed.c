/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: holds that threads of a process passed
 * on among themselves. */
#include "forged.h"

#include "suite.h"

#define A "p1:1:1:m300"
#define FAIR_A "p1:1:1:f300"
#define FENCED_A "p1:1:1:M300"
#define B "p2:1:1:m300"
#define WRITE_A "p1:1:1:w300"
#define WRITE_B "p2:1:1:w300"
#define READ_A "p1:1:2:r300"

enum { BUDGET = 10, BOUND = PRESENCE / 3 + BUDGET + SLACK };

/* The server grants the lock to `id` at 1000, without an end of the lease, until `to`. */
static void tenure(unsigned lock, const char *id, double to)
{
    transaction(1000);
    grants(lock, id, to + LEASE);
    transaction(to);
    leaves(lock, id, true);
}

/* A section of a thread. */
static void section(int who, unsigned lock, const char *id, double from, double to)
{
    takes(who, lock, id, from - 1, from, 5000);
    unlocks(who, lock, id, to, to + 1, 5000, 0);
}

START_TEST(one_after_the_other_is_right)
{
    tenure(MUTEX, A, 1010);
    section(11, MUTEX, A, 1001, 1003);
    section(12, MUTEX, A, 1004, 1006);
    section(11, MUTEX, A, 1006, 1009); /* the section is over when unlock is called */
    KEEPS(NEM_RULE_GRANT);
    KEEPS(NEM_RULE_PASSED);
    KEEPS(NEM_RULE_EXCLUSION);
}
END_TEST

START_TEST(two_threads_at_once_are_a_violation)
{
    tenure(MUTEX, A, 1010);
    section(11, MUTEX, A, 1001, 1005);
    section(12, MUTEX, A, 1004, 1008);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

START_TEST(section_that_was_never_unlocked_cannot_be_handed_off)
{
    tenure(MUTEX, A, 1010);
    takes(11, MUTEX, A, 1000, 1001, 5000);
    section(12, MUTEX, A, 1004, 1008);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

START_TEST(hold_of_another_process_cannot_be_handed_off)
{
    tenure(MUTEX, A, 1010);
    section(11, MUTEX, A, 1001, 1003);
    section(21, MUTEX, A, 1004, 1008);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

START_TEST(hand_off_of_a_fair_lock_is_a_violation)
{
    tenure(FAIR, FAIR_A, 1010);
    section(11, FAIR, FAIR_A, 1001, 1003);
    section(12, FAIR, FAIR_A, 1004, 1008);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

/* H11. */
START_TEST(each_section_of_a_hold_has_a_token_of_its_own)
{
    static const struct {
        int who;
        double from;
        uint64_t token;
    } sections[] = { { 13, 1001, 5000 }, { 14, 1004, 5001 }, { 13, 1007, 5001 } };

    transaction(1000);
    grants(FENCED, FENCED_A, 2010)->token = 5000;
    transaction(1003);
    entry(NEM_TOKEN, FENCED, "", 5002)->token = 5000; /* a renewal draws a block */
    for (int i = 0; i < 3; i++) {
        double from = sections[i].from;
        if (i == 2)
            KEEPS(NEM_RULE_TOKENS);
        takes(sections[i].who, FENCED, FENCED_A, from - 1, from, 5000)->token =
            sections[i].token;
        unlocks(sections[i].who, FENCED, FENCED_A, from + 1, from + 2, 5000, 0);
    }
    KEEPS(NEM_RULE_GRANT);
    BREAKS(NEM_RULE_TOKENS, 1);
}
END_TEST

/* Another process waits since 1100. A thread of this process gets the lock from one that
 * unlocks `ms` later. */
static void passed_on_after(double ms)
{
    tenure(MUTEX, A, 1100 + ms + 10);
    transaction(1100);
    queues(MUTEX, B, false);
    section(11, MUTEX, A, 1001, 1100 + ms);
    section(12, MUTEX, A, 1100 + ms + 2, 1100 + ms + 4);
}

START_TEST(contended_hold_may_be_handed_off_for_a_while)
{
    passed_on_after(BOUND - EXACT);
    KEEPS(NEM_RULE_PASSED);
}
END_TEST

START_TEST(long_wait_does_not_limit_a_new_hold)
{
    transaction(400);
    queues(MUTEX, B, false);
    tenure(MUTEX, A, 1010);
    section(11, MUTEX, A, 1001, 1003);
    section(12, MUTEX, A, 1004, 1006);
    KEEPS(NEM_RULE_PASSED);
}
END_TEST

START_TEST(contended_hold_handed_off_for_longer_is_a_violation)
{
    passed_on_after(BOUND + 3 * EXACT);
    BREAKS(NEM_RULE_PASSED, 1);
}
END_TEST

START_TEST(long_hand_off_is_allowed_when_the_recall_could_not_arrive)
{
    passed_on_after(BOUND + 3 * EXACT);
    fault(NEM_DELAY, 1, NEM_ALL, 1050, 1200);
    EXCUSES(NEM_RULE_PASSED, 1);
}
END_TEST

/* ---- K14, K16 */

START_TEST(retained_write_hold_is_handed_off)
{
    tenure(KEPT_RWLOCK, WRITE_A, 1010);
    section(11, KEPT_RWLOCK, WRITE_A, 1001, 1003);
    section(12, KEPT_RWLOCK, WRITE_A, 1004, 1006);
    KEEPS(NEM_RULE_GRANT);
    KEEPS(NEM_RULE_PASSED);
}
END_TEST

START_TEST(write_hold_that_is_not_retained_must_not_be_handed_off)
{
    tenure(RWLOCK, WRITE_A, 1010);
    section(11, RWLOCK, WRITE_A, 1001, 1003);
    section(12, RWLOCK, WRITE_A, 1004, 1006);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

/* A retained read hold is no write hold. */
START_TEST(reading_handed_off_to_a_writer_is_a_violation)
{
    tenure(KEPT_RWLOCK, WRITE_A, 1010);
    takes(11, KEPT_RWLOCK, WRITE_A, 1000, 1001, 5000)->reading = true;
    unlocks(11, KEPT_RWLOCK, WRITE_A, 1003, 1004, 5000, 0);
    section(12, KEPT_RWLOCK, WRITE_A, 1005, 1006);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

START_TEST(simultaneous_reading_and_writing_of_a_hold_is_a_violation)
{
    tenure(KEPT_RWLOCK, WRITE_A, 1010);
    section(11, KEPT_RWLOCK, WRITE_A, 1001, 1005);
    section(12, KEPT_RWLOCK, WRITE_A, 1004, 1006);
    BREAKS(NEM_RULE_GRANT, 2);
}
END_TEST

/* _i: a reader waits since 1100, and the message may have been lost (W25). */
START_TEST(hand_off_past_a_waiter_is_a_violation)
{
    double to = 1100 + BOUND - BUDGET + (_i ? 3 * EXACT : -EXACT);
    tenure(KEPT_RWLOCK, WRITE_A, to + 10);
    transaction(1100);
    queues(KEPT_RWLOCK, "p2:1:2:r300", true);
    section(11, KEPT_RWLOCK, WRITE_A, 1001, to);
    section(12, KEPT_RWLOCK, WRITE_A, to + 2, to + 4);
    if (_i)
        BREAKS(NEM_RULE_PASSED, 1);
    else
        KEEPS(NEM_RULE_PASSED);
}
END_TEST

/* Process 1 reads from 1000; process 2 waits as a writer since 1100, and is alive. A
 * second thread joins at `at`. */
static void joins(unsigned lock, double at)
{
    transaction(900);
    present(lock, "p1", ENDED);
    present(lock, "p2", ENDED);
    transaction(1000);
    reads(lock, READ_A, 2000, true);
    transaction(1100);
    queues(lock, WRITE_B, false);
    takes(11, lock, READ_A, 999, 1001, 1985)->reading = true;
    takes(12, lock, READ_A, at, at + 1, 1985)->reading = true;
}

START_TEST(reading_without_a_request_is_a_violation)
{
    joins(RWLOCK, 1110);
    BREAKS(NEM_RULE_READS, 1);
}
END_TEST

/* _i: by then the process must have got the message, or have asked. */
START_TEST(reading_by_a_retained_hold_is_allowed_until_the_recall)
{
    joins(KEPT_RWLOCK, 1100 + PRESENCE / 3 + SLACK + (_i ? 3 * EXACT : -EXACT));
    if (_i)
        BREAKS(NEM_RULE_READS, 1);
    else
        KEEPS(NEM_RULE_READS);
}
END_TEST

START_TEST(reading_is_allowed_when_the_recall_could_not_arrive)
{
    joins(KEPT_RWLOCK, 1100 + PRESENCE / 3 + SLACK + 3 * EXACT);
    fault(NEM_DELAY, 1, NEM_ALL, 1150, 1400);
    EXCUSES(NEM_RULE_READS, 1);
}
END_TEST

START_TEST(waiters_of_its_own_are_no_others)
{
    tenure(MUTEX, A, 2000);
    transaction(1100);
    queues(MUTEX, "p1:2:1:m300", false);
    section(11, MUTEX, A, 1001, 1900);
    section(12, MUTEX, A, 1902, 1904);
    KEEPS(NEM_RULE_PASSED);
}
END_TEST

START_TEST(waiters_that_left_are_no_others)
{
    passed_on_after(BOUND + 3 * EXACT);
    transaction(1101);
    entry(NEM_UNQUEUED, MUTEX, B, 0);
    KEEPS(NEM_RULE_PASSED);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("judge: passed");
    TCase *t = forged_group(suite, "passed");
    tcase_add_test(t, one_after_the_other_is_right);
    tcase_add_test(t, two_threads_at_once_are_a_violation);
    tcase_add_test(t, section_that_was_never_unlocked_cannot_be_handed_off);
    tcase_add_test(t, hold_of_another_process_cannot_be_handed_off);
    tcase_add_test(t, hand_off_of_a_fair_lock_is_a_violation);
    tcase_add_test(t, each_section_of_a_hold_has_a_token_of_its_own);
    tcase_add_test(t, contended_hold_may_be_handed_off_for_a_while);
    tcase_add_test(t, long_wait_does_not_limit_a_new_hold);
    tcase_add_test(t, contended_hold_handed_off_for_longer_is_a_violation);
    tcase_add_test(t, long_hand_off_is_allowed_when_the_recall_could_not_arrive);
    tcase_add_test(t, waiters_of_its_own_are_no_others);
    tcase_add_test(t, retained_write_hold_is_handed_off);
    tcase_add_test(t, write_hold_that_is_not_retained_must_not_be_handed_off);
    tcase_add_test(t, reading_handed_off_to_a_writer_is_a_violation);
    tcase_add_test(t, simultaneous_reading_and_writing_of_a_hold_is_a_violation);
    tcase_add_loop_test(t, hand_off_past_a_waiter_is_a_violation, 0, 2);
    tcase_add_test(t, reading_without_a_request_is_a_violation);
    tcase_add_loop_test(t, reading_by_a_retained_hold_is_allowed_until_the_recall, 0, 2);
    tcase_add_test(t, reading_is_allowed_when_the_recall_could_not_arrive);
    tcase_add_test(t, waiters_that_left_are_no_others);
    return test_run_suite(suite);
}
