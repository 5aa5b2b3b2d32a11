/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of readers and writers (rwhistory.h), with forged histories: each rule kept,
 * and broken. */
#include "rwhistory.h"

#include "suite.h"

#include <check.h>
#include <stdbool.h>
#include <string.h>

/* A and B write, C and D read. */
enum { A, B, C, D };

static struct rwhistory *rw;

static void open_rwhistory(void)
{
    rw = rwhistory_new();
}

static void close_rwhistory(void)
{
    rwhistory_free(rw);
}

static void asks(long who)
{
    rwhistory_add(rw, RWLOG_ASKS, who, 0);
}

static void reads(long who, uint64_t token)
{
    rwhistory_add(rw, RWLOG_READS, who, token);
}

static void writes(long who, uint64_t token)
{
    rwhistory_add(rw, RWLOG_WRITES, who, token);
}

static void downgrades(long who)
{
    rwhistory_add(rw, RWLOG_DOWNGRADES, who, 0);
}

static void leaves(long who)
{
    rwhistory_add(rw, RWLOG_LEAVES, who, 0);
}

static void reads_once(long who, uint64_t token)
{
    asks(who);
    reads(who, token);
    leaves(who);
}

static void writes_once(long who, uint64_t token)
{
    asks(who);
    writes(who, token);
    leaves(who);
}

static bool begins(const char *why, const char *rule)
{
    return why && strncmp(why, rule, strlen(rule)) == 0;
}

#define RIGHT() ck_assert_ptr_null(rwhistory_fault(rw))
#define WRONG(rule) ck_assert_msg(begins(rwhistory_fault(rw), rule ": "), "not " rule)
#define PHASES_RIGHT() ck_assert_ptr_null(rwhistory_phase_fault(rw))
#define PHASES_WRONG(rule)                                                               \
    ck_assert_msg(begins(rwhistory_phase_fault(rw), rule ": "), "not " rule)

START_TEST(readers_together_and_writers_alone_are_right)
{
    asks(C);
    asks(D);
    reads(C, 10);
    reads(D, 10);
    leaves(C);
    leaves(D);
    writes_once(A, 11);
    writes_once(B, 12);
    RIGHT();
    ck_assert_int_eq(rwhistory_most_readers(rw), 2);
    ck_assert_int_eq(rwhistory_count(rw, RWLOG_WRITES, A, B + 1), 2);
    ck_assert_int_eq(rwhistory_count(rw, RWLOG_WRITES, A, B), 1);
}
END_TEST

START_TEST(two_writers_at_once_are_a_violation)
{
    asks(A);
    asks(B);
    writes(A, 10);
    writes(B, 11);
    WRONG("overlap");
}
END_TEST

START_TEST(reader_beside_a_writer_is_a_violation)
{
    asks(A);
    asks(C);
    writes(A, 10);
    reads(C, 11);
    WRONG("overlap");
}
END_TEST

START_TEST(writer_beside_the_last_of_two_readers_is_a_violation)
{
    asks(A);
    asks(C);
    asks(D);
    reads(C, 10);
    reads(D, 10);
    leaves(C);
    writes(A, 11);
    WRONG("overlap");
}
END_TEST

START_TEST(reader_that_joins_a_downgrade_with_its_token_is_right)
{
    asks(A);
    asks(C);
    writes(A, 10);
    downgrades(A);
    reads(C, 10);
    leaves(A);
    leaves(C);
    RIGHT();
    ck_assert_int_eq(rwhistory_most_readers(rw), 2);
}
END_TEST

START_TEST(writer_beside_a_downgraded_reader_is_a_violation)
{
    asks(A);
    asks(B);
    writes(A, 10);
    downgrades(A);
    writes(B, 11);
    WRONG("overlap");
}
END_TEST

START_TEST(what_a_killed_writer_had_is_over_when_that_is_known)
{
    asks(A);
    writes(A, 10);
    rwhistory_add(rw, RWLOG_DEAD, A, 0);
    reads_once(C, 11);
    rwhistory_add(rw, RWLOG_NOTHING, 0, 0); /* it had begun to write an event */
    writes_once(A, 12);
    RIGHT();
}
END_TEST

START_TEST(repeated_token_of_a_writer_is_a_violation)
{
    writes_once(A, 10);
    writes_once(B, 10);
    WRONG("tokens");
}
END_TEST

START_TEST(token_of_a_writer_that_a_reader_had_is_a_violation)
{
    writes_once(A, 10);
    reads_once(C, 11);
    writes_once(A, 11);
    WRONG("tokens");
}
END_TEST

START_TEST(token_of_a_reader_below_an_earlier_writers_is_a_violation)
{
    writes_once(A, 10);
    reads_once(C, 9);
    WRONG("tokens");
}
END_TEST

START_TEST(reader_with_the_token_of_a_writer_without_downgrade_is_a_violation)
{
    writes_once(A, 10);
    reads_once(C, 10);
    WRONG("tokens");
}
END_TEST

START_TEST(token_of_an_earlier_downgrade_is_a_violation)
{
    asks(A);
    writes(A, 10);
    downgrades(A);
    leaves(A);
    reads_once(C, 10);
    RIGHT();
    writes_once(B, 11);
    reads_once(C, 11);
    WRONG("tokens");
}
END_TEST

START_TEST(entering_without_a_request_is_a_violation)
{
    asks(C);
    rwhistory_add(rw, RWLOG_OUT, C, 0);
    reads(C, 10);
    WRONG("unasked");
}
END_TEST

START_TEST(entering_twice_is_a_violation)
{
    asks(C);
    reads(C, 10);
    reads(C, 10);
    WRONG("unasked");
}
END_TEST

START_TEST(leaving_twice_is_a_violation)
{
    asks(C);
    reads(C, 10);
    leaves(C);
    RIGHT();
    leaves(C);
    WRONG("unasked");
}
END_TEST

START_TEST(reader_that_downgrades_is_a_violation)
{
    asks(C);
    reads(C, 10);
    downgrades(C);
    WRONG("unasked");
}
END_TEST

/* ---- the bounds of W14 */

/* The test looks at the server now. */
static void look(uint64_t token, long writer, long reader)
{
    size_t at = rwhistory_events(rw);
    struct rwhistory_look look = {
        .since = at, .till = at, .token = token, .writer = writer
    };
    if (reader >= 0)
        look.readers[look.reader_count++] = reader;
    rwhistory_look(rw, &look);
}

/* C reads, D waits to read, A waits to write; D was queued when the reading began. */
static void wait_to_write(void)
{
    asks(C);
    asks(D);
    reads(C, 10);
    asks(A);
    look(10, A, -1);
}

START_TEST(reader_queued_when_the_reading_began_may_precede_the_writer)
{
    wait_to_write();
    reads(D, 10);
    leaves(C);
    leaves(D);
    writes(A, 11);
    leaves(A);
    reads_once(D, 12);
    reads_once(D, 13);
    RIGHT();
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_reads_past(rw), 1);
    ck_assert_int_eq(rwhistory_writers_seen(rw), 1);
}
END_TEST

START_TEST(second_reading_before_a_waiting_writer_is_a_violation)
{
    wait_to_write();
    reads(D, 10);
    leaves(D);
    reads_once(D, 10);
    leaves(C);
    writes(A, 11);
    PHASES_WRONG("reads");
}
END_TEST

START_TEST(reading_again_while_the_writer_still_waits_is_a_violation)
{
    wait_to_write();
    reads(D, 10);
    leaves(D);
    PHASES_RIGHT();
    reads_once(D, 10);
    PHASES_WRONG("reads");
    ck_assert_int_eq(rwhistory_reads_past(rw), 2);
}
END_TEST

START_TEST(reads_reported_late_count_by_their_tokens)
{
    wait_to_write();
    reads(D, 10);
    leaves(D);
    leaves(C);
    asks(D);
    reads(D, 12); /* the writer writes its event late */
    PHASES_WRONG("reads");
    writes(A, 11);
    PHASES_RIGHT();
}
END_TEST

START_TEST(writer_that_asked_again_during_the_look_proves_nothing)
{
    struct rwhistory_look look = { .token = 10, .writer = A };
    asks(A);
    look.since = rwhistory_events(rw);
    writes(A, 11);
    leaves(A);
    asks(A);
    look.till = rwhistory_events(rw);
    rwhistory_look(rw, &look);
    reads_once(D, 10);
    reads_once(D, 10);
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_writers_seen(rw), 0);
}
END_TEST

START_TEST(a_look_beyond_what_is_read_of_the_log_proves_nothing)
{
    struct rwhistory_look look = { .token = 10, .writer = A };
    asks(A);
    reads_once(D, 10);
    reads_once(D, 10);
    look.since = 1;
    look.till = rwhistory_events(rw) + 1;
    rwhistory_look(rw, &look);
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_writers_seen(rw), 0);
    asks(D); /* now it is that request */
    ck_assert_int_eq(rwhistory_writers_seen(rw), 1);
}
END_TEST

START_TEST(writer_that_gave_up_proves_nothing)
{
    wait_to_write();
    reads(D, 10);
    leaves(D);
    reads_once(D, 10);
    rwhistory_add(rw, RWLOG_OUT, A, 0);
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_writers_seen(rw), 0);
}
END_TEST

/* A writes, C waits to read. */
static void wait_to_read(void)
{
    asks(A);
    writes(A, 10);
    asks(C);
    look(10, -1, C);
    leaves(A);
}

START_TEST(a_reader_may_see_one_writer)
{
    wait_to_read();
    writes_once(B, 11);
    asks(B);
    reads(C, 12);
    leaves(C);
    writes(B, 13);
    leaves(B);
    writes_once(A, 14);
    RIGHT();
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_writes_past(rw), 1);
    ck_assert_int_eq(rwhistory_readers_seen(rw), 1);
}
END_TEST

START_TEST(reader_overtaken_by_two_writers_is_a_violation)
{
    wait_to_read();
    writes_once(B, 11);
    writes_once(A, 12);
    reads(C, 13);
    PHASES_WRONG("writes");
}
END_TEST

START_TEST(two_writers_while_the_reader_still_waits_are_a_violation)
{
    wait_to_read();
    writes_once(B, 11);
    PHASES_RIGHT();
    writes_once(A, 12);
    PHASES_WRONG("writes");
}
END_TEST

START_TEST(writer_whose_downgrade_a_reader_joins_counts_as_one)
{
    wait_to_read();
    writes_once(B, 11);
    asks(A);
    writes(A, 12);
    downgrades(A);
    reads(C, 12);
    PHASES_WRONG("writes");
}
END_TEST

START_TEST(reader_that_gave_up_proves_nothing)
{
    wait_to_read();
    writes_once(B, 11);
    writes_once(A, 12);
    rwhistory_add(rw, RWLOG_OUT, C, 0);
    PHASES_RIGHT();
    ck_assert_int_eq(rwhistory_readers_seen(rw), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rwhistory");
    TCase *entries = tcase_create("readers and writers");
    tcase_add_checked_fixture(entries, open_rwhistory, close_rwhistory);
    tcase_add_test(entries, readers_together_and_writers_alone_are_right);
    tcase_add_test(entries, two_writers_at_once_are_a_violation);
    tcase_add_test(entries, reader_beside_a_writer_is_a_violation);
    tcase_add_test(entries, writer_beside_the_last_of_two_readers_is_a_violation);
    tcase_add_test(entries, reader_that_joins_a_downgrade_with_its_token_is_right);
    tcase_add_test(entries, writer_beside_a_downgraded_reader_is_a_violation);
    tcase_add_test(entries, what_a_killed_writer_had_is_over_when_that_is_known);
    tcase_add_test(entries, repeated_token_of_a_writer_is_a_violation);
    tcase_add_test(entries, token_of_a_writer_that_a_reader_had_is_a_violation);
    tcase_add_test(entries, token_of_a_reader_below_an_earlier_writers_is_a_violation);
    tcase_add_test(entries,
                   reader_with_the_token_of_a_writer_without_downgrade_is_a_violation);
    tcase_add_test(entries, token_of_an_earlier_downgrade_is_a_violation);
    tcase_add_test(entries, entering_without_a_request_is_a_violation);
    tcase_add_test(entries, entering_twice_is_a_violation);
    tcase_add_test(entries, leaving_twice_is_a_violation);
    tcase_add_test(entries, reader_that_downgrades_is_a_violation);
    suite_add_tcase(s, entries);

    TCase *phases = tcase_create("phases");
    tcase_add_checked_fixture(phases, open_rwhistory, close_rwhistory);
    tcase_add_test(phases, reader_queued_when_the_reading_began_may_precede_the_writer);
    tcase_add_test(phases, second_reading_before_a_waiting_writer_is_a_violation);
    tcase_add_test(phases, reading_again_while_the_writer_still_waits_is_a_violation);
    tcase_add_test(phases, reads_reported_late_count_by_their_tokens);
    tcase_add_test(phases, writer_that_asked_again_during_the_look_proves_nothing);
    tcase_add_test(phases, a_look_beyond_what_is_read_of_the_log_proves_nothing);
    tcase_add_test(phases, writer_that_gave_up_proves_nothing);
    tcase_add_test(phases, a_reader_may_see_one_writer);
    tcase_add_test(phases, reader_overtaken_by_two_writers_is_a_violation);
    tcase_add_test(phases, two_writers_while_the_reader_still_waits_are_a_violation);
    tcase_add_test(phases, writer_whose_downgrade_a_reader_joins_counts_as_one);
    tcase_add_test(phases, reader_that_gave_up_proves_nothing);
    suite_add_tcase(s, phases);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
