/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone tier=unit harness */
/* The judge of the nemesis, with forged histories: the codes and times of calls, the data
 * left at the end, and the files with the records. */
#include "forged.h"

#include "suite.h"
#include "times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- code, bound, starved */

enum {
    HURRY = 80,
    DRIVERS_SLACK = 400
}; /* ms: with less time a call needs no reason for ENOTCONN */

static void called(unsigned call, int code, double from, double to)
{
    invoke(11, from, call, MUTEX);
    returns(11, to, call, MUTEX, code);
}

START_TEST(codes_that_a_call_may_return)
{
    called(NEM_TRYLOCK, EBUSY, 1000, 1001);
    invoke(12, 1000, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(1300);
    returns(12, 1300, NEM_TIMEDLOCK, MUTEX, ETIMEDOUT);
    invoke(21, 1000, NEM_LOCK, ROBUST);
    returns(21, 1300, NEM_LOCK, ROBUST, EOWNERDEAD);
    invoke(22, 1000, NEM_LOCK, ROBUST);
    returns(22, 1300, NEM_LOCK, ROBUST, ENOTRECOVERABLE);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(codes_that_it_may_not)
{
    static const struct {
        unsigned call;
        int code;
    } wrong[] = { { NEM_LOCK, EBUSY },           { NEM_LOCK, ETIMEDOUT },
                  { NEM_LOCK, ENOTCONN },        { NEM_LOCK, EOWNERDEAD },
                  { NEM_LOCK, ENOTRECOVERABLE }, { NEM_LOCK, EDEADLK },
                  { NEM_TRYLOCK, ETIMEDOUT },    { NEM_TRYLOCK, EPROTO },
                  { NEM_TRYLOCK, EACCES },       { NEM_TRYLOCK, EINVAL },
                  { NEM_TIMEDLOCK, EBUSY },      { NEM_TIMEDLOCK, ENOMEM },
                  { NEM_TIMEDLOCK, ECANCELED },  { NEM_UNLOCK, EPERM },
                  { NEM_UNLOCK, ENOTCONN },      { NEM_EXTEND, EPERM },
                  { NEM_LOCK, EAGAIN },          { NEM_CONSISTENT, EINVAL } };
    enum { COUNT = sizeof(wrong) / sizeof(wrong[0]) };
    fault(NEM_CUT, 1, NEM_ALL, 900, 2000);
    for (int i = 0; i < COUNT; i++)
        called(wrong[i].call, wrong[i].code, 1000 + 10 * i, 1001 + 10 * i);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_CODE], COUNT);
}
END_TEST

START_TEST(ETIMEDOUT_comes_at_the_deadline)
{
    invoke(11, 1000, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(1500);
    returns(11, 1498, NEM_TIMEDLOCK, MUTEX, ETIMEDOUT); /* rounded */
    KEEPS(NEM_RULE_CODE);
    invoke(12, 1000, NEM_TIMEDRDLOCK, RWLOCK)->deadline = at_ms(1500);
    returns(12, 1497, NEM_TIMEDRDLOCK, RWLOCK, ETIMEDOUT);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(ENOTCONN_has_a_reason)
{
    called(NEM_TRYLOCK, ENOTCONN, 1000, 1200);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_CUT, 2, NEM_ALL, 900, 1300);      /* another process's */
    fault(NEM_FLUSHALL, 0, NEM_ALL, 900, 1300); /* keeps no process away from the
                                                   server */
    fault(NEM_CLOCK_BACK, 0, NEM_ALL, 900, 1300);
    fault(NEM_CLOCK_FORWARD, 0, NEM_ALL, 900, 1300);
    fault(NEM_CUT, 1, NEM_ALL, 1201, 1300);
    fault(NEM_CUT, 1, NEM_ALL, 700, 999 - SLACK);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_CUT, 1, NEM_ALL, 1200, 1300);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(ENOTCONN_may_come_a_little_later)
{
    called(NEM_TRYLOCK, ENOTCONN, 1000, 1200);
    fault(NEM_CUT, 1, NEM_ALL, 700, 1000 - SLACK);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(ENOTCONN_of_one_in_a_hurry_needs_none)
{
    forged.slack_ms = DRIVERS_SLACK;
    invoke(11, 1000, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(1000 + HURRY - 1);
    returns(11, 1100, NEM_TIMEDLOCK, MUTEX, ENOTCONN);
    KEEPS(NEM_RULE_CODE);
    invoke(21, 1000, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(1000 + HURRY);
    returns(21, 1100, NEM_TIMEDLOCK, MUTEX, ENOTCONN);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(ESTALE_is_returned_to_the_former_holder_only)
{
    takes(11, MUTEX, "p1:1:1:m300", 1000, 1002, 1985);
    called(NEM_LOCK, ESTALE, 1100, 1101);
    KEEPS(NEM_RULE_CODE);
    invoke(12, 1100, NEM_LOCK, MUTEX);
    returns(12, 1101, NEM_LOCK, MUTEX, ESTALE);
    BREAKS(NEM_RULE_CODE, 1);
}
END_TEST

START_TEST(ECANCELED_is_of_a_process_that_ends)
{
    fault(NEM_TERM, 1, NEM_ALL, 1050, 1300);
    called(NEM_LOCK, ECANCELED, 1000, 1100);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(try_and_unlock_end_within_the_command_timeout)
{
    called(NEM_TRYLOCK, EBUSY, 1000, 1000 + TIMEOUT + SLACK);
    called(NEM_UNLOCK, 0, 2000, 2000 + TIMEOUT + SLACK);
    KEEPS(NEM_RULE_BOUND);
    called(NEM_TRYLOCK, EBUSY, 3000, 3001 + TIMEOUT + SLACK);
    called(NEM_UNLOCK, 0, 4000, 4001 + TIMEOUT + SLACK);
    BREAKS(NEM_RULE_BOUND, 2);
}
END_TEST

static void timed(double from, double deadline, double to)
{
    invoke(11, from, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(deadline);
    returns(11, to, NEM_TIMEDLOCK, MUTEX, ETIMEDOUT);
}

START_TEST(a_timed_form_ends_100_ms_after_its_deadline)
{
    timed(1000, 1500, 1600 + SLACK);
    timed(2000, 1999, 2000 + TIMEOUT + SLACK); /* already past */
    timed(3000, 3002, 3000 + TIMEOUT + SLACK); /* perhaps already past */
    KEEPS(NEM_RULE_BOUND);
    timed(4000, 4500, 4601 + SLACK);
    timed(5000, 4999, 5001 + TIMEOUT + SLACK);
    timed(6000, 6003, 6104 + SLACK);
    BREAKS(NEM_RULE_BOUND, 3);
}
END_TEST

START_TEST(the_time_in_which_it_was_stopped_does_not_count)
{
    called(NEM_TRYLOCK, EBUSY, 1000, 1500 + TIMEOUT + SLACK);
    fault(NEM_STOP_SHORT, 2, NEM_ALL, 1050, 1550);
    BREAKS(NEM_RULE_BOUND, 1);
    fault(NEM_STOP_SHORT, 1, NEM_ALL, 1050, 1550);
    KEEPS(NEM_RULE_BOUND);
    last_fault()->end -= 1000000;
    BREAKS(NEM_RULE_BOUND, 1);
}
END_TEST

START_TEST(process_that_the_machine_did_not_run_counts_as_stopped)
{
    called(NEM_TRYLOCK, EBUSY, 1000, 1500 + TIMEOUT + SLACK);
    called(NEM_TRYLOCK, ENOTCONN, 2600, 2800);
    fault(NEM_KINDS, 2, NEM_ALL, 1050, 1550); /* not a planned kind */
    fault(NEM_KINDS, 2, NEM_ALL, 2600, 2610);
    BREAKS(NEM_RULE_BOUND, 1);
    BREAKS(NEM_RULE_CODE, 1);
    fault(NEM_KINDS, 1, NEM_ALL, 1050, 1550);
    fault(NEM_KINDS, 1, NEM_ALL, 2600, 2610);
    KEEPS(NEM_RULE_BOUND);
    KEEPS(NEM_RULE_CODE);
}
END_TEST

START_TEST(a_try_that_never_returns_is_late_unless_it_was_killed)
{
    invoke(11, 1000, NEM_TRYLOCK, MUTEX);
    BREAKS(NEM_RULE_BOUND, 1);
    fault(NEM_KILL, 1, NEM_ALL, 1100, 5000);
    restarts(1, 5000);
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_BOUND], 0);
}
END_TEST

START_TEST(waiter_gets_the_lock_within_patience_after_the_faults)
{
    invoke(11, 1000, NEM_LOCK, MUTEX);
    returns(11, CALM + PATIENCE, NEM_LOCK, MUTEX, 0);
    invoke(12, CALM + 100, NEM_LOCK, FAIR);
    returns(12, CALM + 100 + PATIENCE, NEM_LOCK, FAIR, 0);
    KEEPS(NEM_RULE_STARVED);
}
END_TEST

START_TEST(waiter_with_a_later_grant_is_starved)
{
    invoke(11, 1000, NEM_LOCK, MUTEX);
    returns(11, CALM + PATIENCE + 1, NEM_LOCK, MUTEX, 0);
    BREAKS(NEM_RULE_STARVED, 1);
}
END_TEST

START_TEST(waiter_without_any_grant_is_starved)
{
    invoke(11, 1000, NEM_LOCK, MUTEX);
    BREAKS(NEM_RULE_STARVED, 1);
    forged.ended = at_ms(CALM + PATIENCE - 1); /* no call has had the time to see it */
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_STARVED], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_STARVED], 0);
}
END_TEST

START_TEST(waiter_may_get_the_lock_later_when_the_machine_halts)
{
    invoke(11, 1000, NEM_LOCK, MUTEX);
    returns(11, CALM + PATIENCE + 300, NEM_LOCK, MUTEX, 0);
    fault(NEM_STALL, 2, NEM_ALL, CALM - 500, CALM + 100); /* others may hold it */
    fault(NEM_STALL, 3, NEM_ALL, CALM - 10, CALM + 99);
    fault(NEM_STALL, NEM_ALL, NEM_ALL, CALM + 500, CALM + 699);
    BREAKS(NEM_RULE_STARVED, 1);
    last_fault()->end += 1000000;
    KEEPS(NEM_RULE_STARVED);
}
END_TEST

START_TEST(waiter_may_get_the_lock_later_behind_long_sections)
{
    double unlock = CALM + 11 + LEASE / 2.0 - (_i == 0); /* 0: it is a little shorter */
    invoke(11, 1000, NEM_LOCK, MUTEX);
    takes(21, MUTEX, "p2:1:1:m300", CALM + 10, CALM + 11, CALM + 9000);
    unlocks(21, MUTEX, "p2:1:1:m300", unlock, unlock + 90, CALM + 9000, 0);
    returns(11, CALM + PATIENCE + LEASE / 2.0, NEM_LOCK, MUTEX, 0);
    if (_i == 0)
        BREAKS(NEM_RULE_STARVED, 1);
    else
        KEEPS(NEM_RULE_STARVED);
}
END_TEST

/* As the driver records it when it gives up waiting for all processes to rest. */
static double driver_ended, driver_given_up;

static void driver_gives_up(void)
{
    struct nem_times times = nem_times_of(LEASE, PRESENCE);
    driver_ended = (double)(CALM + times.tail_ms);
    driver_given_up = driver_ended + (double)times.rest_ms;
    forged.patience_ms = times.patience_ms;
    forged.ended = at_ms(driver_ended);
    forged.given_up = at_ms(driver_given_up);
}

START_TEST(thread_waiting_since_the_faults_is_starved_by_the_time_of_the_driver)
{
    driver_gives_up();
    invoke(11, 1000, NEM_LOCK, MUTEX);
    BREAKS(NEM_RULE_STARVED, 1);
    forged.given_up = 0; /* it is noticed even so */
    BREAKS(NEM_RULE_STARVED, 1);
}
END_TEST

START_TEST(thread_waiting_since_the_last_moment_is_starved_by_the_time_of_the_driver)
{
    driver_gives_up();
    invoke(11, driver_ended, NEM_LOCK, MUTEX);
    BREAKS(NEM_RULE_STARVED, 1);
    forged.given_up = 0;
    judge();
    ck_assert_uint_eq(verdict.judged[NEM_RULE_STARVED], 0);
}
END_TEST

START_TEST(in_the_drivers_time_calls_of_the_last_moment_that_hang_are_late)
{
    driver_gives_up();
    invoke(11, driver_ended, NEM_TRYLOCK, MUTEX);
    invoke(12, driver_ended, NEM_UNLOCK, MUTEX);
    invoke(21, driver_ended, NEM_TIMEDLOCK, MUTEX)->deadline = at_ms(driver_ended + 1500);
    BREAKS(NEM_RULE_BOUND, 3);
    fault(NEM_KILL, 1, NEM_ALL, driver_ended, driver_ended + 1000);
    restarts(1, driver_ended + 1000);
    BREAKS(NEM_RULE_BOUND, 1);
}
END_TEST

/* ---- hung */

static struct nem_op *rests(int who, double at)
{
    return record(who, at, NEM_DONE, NEM_NO_CALL, 0);
}

static void all_rest_but_1_1(void)
{
    for (int p = 2; p <= FORGED_PROCESSES; p++)
        rests(p * 10 + 1, ENDED);
}

START_TEST(all_came_to_rest)
{
    all_rest_but_1_1();
    takes(11, MUTEX, "p1:1:1:m300", 1000, 1002, 1985);
    unlocks(11, MUTEX, "p1:1:1:m300", 1010, 1011, 1985, 0);
    rests(11, ENDED);
    event_lost(11, MUTEX, ENDED + 1);
    KEEPS(NEM_RULE_HUNG);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_HUNG], FORGED_PROCESSES);
}
END_TEST

START_TEST(a_call_that_was_given_up_is_hung)
{
    all_rest_but_1_1();
    rests(12, ENDED);
    event_lost(21, MUTEX, 1000); /* the thread of the events does not rest */
    invoke(11, 1000, NEM_UNLOCK, FAIR);
    forged.given_up = at_ms(ENDED + 1000);
    BREAKS(NEM_RULE_HUNG, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(),
                                 "violation of hung: nemesis1: 1.1 (life 1): unlock of "
                                 "1000.000 ms had not returned at 11000.000 ms"));
}
END_TEST

START_TEST(a_thread_that_is_in_no_call_may_hang_too)
{
    all_rest_but_1_1();
    called(NEM_TRYLOCK, EBUSY, 1000, 1001);
    forged.given_up = at_ms(ENDED + 1000);
    BREAKS(NEM_RULE_HUNG, 1);
    rests(11, ENDED); /* and so may a process with no such thread */
    BREAKS(NEM_RULE_HUNG, 1);
    forged.given_up = 0;
    KEEPS(NEM_RULE_HUNG);
}
END_TEST

START_TEST(one_that_was_killed_on_purpose_need_not_come_to_rest)
{
    all_rest_but_1_1();
    invoke(11, 1000, NEM_LOCK, MUTEX);
    fault(NEM_KILL, 1, NEM_ALL, 1100, 1200);
    restarts(1, 1200);
    rests(11, ENDED);
    KEEPS(NEM_RULE_HUNG);
    invoke(12, 2000, NEM_LOCK, MUTEX); /* of the next life */
    forged.given_up = at_ms(ENDED + 1000);
    BREAKS(NEM_RULE_HUNG, 1);
}
END_TEST

START_TEST(process_asked_to_end_must_end)
{
    all_rest_but_1_1();
    invoke(11, 1000, NEM_LOCK, MUTEX);
    fault(NEM_TERM, 1, NEM_ALL, 1100, 1200);
    restarts(1, 1200);
    rests(11, ENDED);
    KEEPS(NEM_RULE_HUNG);
    last_fault()->amount = 1; /* the process was also killed */
    BREAKS(NEM_RULE_HUNG, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "nemesis9: 1.1 (life 1): lock of"));
}
END_TEST

START_TEST(process_asked_to_end_must_end_when_its_threads_rest)
{
    all_rest_but_1_1();
    rests(11, 1150);
    fault(NEM_TERM, 1, NEM_ALL, 1100, 1200);
    restarts(1, 1200);
    rests(11, ENDED);
    KEEPS(NEM_RULE_HUNG);
    last_fault()->amount = 1;
    BREAKS(NEM_RULE_HUNG, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "hung: process 1 (life 1) was to end"));
}
END_TEST

/* ---- leak, residue, grows */

static void leaves_keys(const char *const left[], size_t count)
{
    forged.left = left;
    forged.left_count = count;
}

START_TEST(keys_that_end_by_themselves_may_be_left)
{
    static const char *const left[] = { "redisson_lock_token:{nemesis12} -1 19",
                                        "rlock:{nemesis9}:present 59000 2",
                                        "rlock:{nemesis9}:queue 59000 0",
                                        "nemesis:mark -1 5", "other -1 1" };
    leaves_keys(left, 5);
    KEEPS(NEM_RULE_LEAK);
    KEEPS(NEM_RULE_RESIDUE);
}
END_TEST

START_TEST(a_key_without_ttl_is_a_leak)
{
    static const char *const left[] = { "rlock:{nemesis1}:present -1 2" };
    leaves_keys(left, 1);
    BREAKS(NEM_RULE_LEAK, 1);
}
END_TEST

START_TEST(a_ttl_that_is_too_long_is_a_leak)
{
    static const char *const left[] = { "rlock:{nemesis1}:readers 99000 2",
                                        "rlock:{nemesis1}:dirty 604801000 20" };
    leaves_keys(left, 2);
    BREAKS(NEM_RULE_LEAK, 2);
    fault(NEM_CLOCK_BACK, NEM_ALL, NEM_ALL, 5100, 5200);
    last_fault()->amount = -40000;
    KEEPS(NEM_RULE_LEAK);
}
END_TEST

START_TEST(a_client_that_stays_in_presence_is_a_leak)
{
    static const char *const left[] = { "rlock:{nemesis1}:present 59000 99" };
    leaves_keys(left, 1);
    BREAKS(NEM_RULE_LEAK, 1);
    ck_assert_ptr_nonnull(strstr(forged_text(), "has 99 members"));
}
END_TEST

START_TEST(a_lock_that_is_held_at_the_end_is_a_leak)
{
    static const char *const left[] = { "nemesis4 800 3" };
    leaves_keys(left, 1);
    BREAKS(NEM_RULE_LEAK, 1);
}
END_TEST

START_TEST(a_key_that_had_no_ttl_for_a_while_is_a_leak)
{
    transaction(1000);
    entry(NEM_FORCED_TTL, MUTEX, "queue", 0);
    BREAKS(NEM_RULE_LEAK, 1);
}
END_TEST

START_TEST(a_queue_that_is_not_empty_is_a_residue)
{
    static const char *const left[] = { "rlock:{nemesis1}:queue 100 1",
                                        "rlock:{nemesis2}:rqueue 100 2" };
    leaves_keys(left, 2);
    BREAKS(NEM_RULE_RESIDUE, 2);
}
END_TEST

START_TEST(a_waiter_that_died_may_be_left_in_the_queue)
{
    static const char *const left[] = { "rlock:{nemesis1}:queue 100 1",
                                        "rlock:{nemesis2}:rqueue 100 1" };
    leaves_keys(left, 2);
    transaction(5000);
    queues(FAIR, "p1:1:1:f300", false);
    queues(RWLOCK, "p1:1:2:r300", true);
    BREAKS(NEM_RULE_RESIDUE, 2); /* that process lives */
    fault(NEM_KILL, 1, NEM_ALL, 5100, 5200);
    restarts(1, 5200);
    KEEPS(NEM_RULE_RESIDUE);
}
END_TEST

START_TEST(one_that_is_left_beside_the_dead_is_a_residue)
{
    static const char *const left[] = { "rlock:{nemesis1}:queue 100 2" };
    leaves_keys(left, 1);
    transaction(5000);
    queues(FAIR, "p1:1:1:f300", false);
    queues(FAIR, "p2:1:1:f300", false);
    queues(RWLOCK, "p1:1:2:w300", false); /* of another lock */
    fault(NEM_KILL, 1, NEM_ALL, 5100, 5200);
    restarts(1, 5200);
    BREAKS(NEM_RULE_RESIDUE, 1);
}
END_TEST

START_TEST(a_dead_waiter_that_left_is_not_what_is_left)
{
    static const char *const left[] = { "rlock:{nemesis1}:queue 100 1" };
    leaves_keys(left, 1);
    transaction(5000);
    queues(FAIR, "p1:1:1:f300", false);
    queues(FAIR, "p2:1:1:f300", false);
    transaction(6000);
    entry(NEM_UNQUEUED, FAIR, "p1:1:1:f300", 0);
    fault(NEM_KILL, 1, NEM_ALL, 5100, 5200);
    restarts(1, 5200);
    BREAKS(NEM_RULE_RESIDUE, 1);
}
END_TEST

static struct nem_end looks[] = { { 0, 1, 1, 20, 6, 10000000 },
                                  { 0, 1, 1, 20, 6, 10000000 } };

static struct nem_end *look_twice(void)
{
    enum { FIRST = 1000, LAST = 9000 };
    looks[0].at = at_ms(FIRST);
    looks[1].at = at_ms(LAST);
    forged.ends = looks;
    forged.end_count = 2;
    return &looks[1];
}

START_TEST(memory_of_a_process_may_grow_by_what_it_has_spare)
{
    forged.spare_memory = 1000;
    look_twice()->memory = 10001000;
    KEEPS(NEM_RULE_GROWS);
    looks[1].memory++;
    BREAKS(NEM_RULE_GROWS, 1);
}
END_TEST

START_TEST(memory_of_the_server_and_under_a_tool_may_grow_by_half_and_8_MiB)
{
    look_twice()->memory = 15000000 + 8 * 1024 * 1024;
    KEEPS(NEM_RULE_GROWS);
    looks[1].memory++;
    BREAKS(NEM_RULE_GROWS, 1);
    forged.spare_memory = 1000;
    looks[0].process = looks[1].process = NEM_ALL;
    BREAKS(NEM_RULE_GROWS, 1);
    looks[1].memory--;
    KEEPS(NEM_RULE_GROWS);
}
END_TEST

START_TEST(descriptors_and_threads_may_not)
{
    look_twice()->descriptors = 21;
    looks[1].threads = 7;
    BREAKS(NEM_RULE_GROWS, 2);
    forged.spare_descriptors = 1;
    BREAKS(NEM_RULE_GROWS, 1);
}
END_TEST

START_TEST(descriptors_of_the_server_are_not_looked_at)
{
    look_twice()->descriptors = 1000;
    looks[0].process = looks[1].process = NEM_ALL;
    KEEPS(NEM_RULE_GROWS);
    looks[1].threads = 9 * (9 + NEM_SACRIFICES) + 2; /* keys */
    BREAKS(NEM_RULE_GROWS, 1);
}
END_TEST

START_TEST(another_life_is_judged_afresh)
{
    look_twice()->life = 2;
    looks[1].memory = 100000000;
    judge();
    ck_assert_uint_eq(verdict.violations[NEM_RULE_GROWS], 0);
    ck_assert_uint_eq(verdict.judged[NEM_RULE_GROWS], 0);
}
END_TEST

/* ---- files */

START_TEST(records_are_read_from_the_files_of_all_threads)
{
    char dir[] = "/tmp/judge.XXXXXX", path[64];
    struct nem_op op = { .at = 1 }, *read;
    struct nem_fault one = { .begin = 5 }, *read_faults;
    size_t count;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    static const char *const names[] = { "ops.1.1.1", "ops.1.1.events", "faults" };
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        fwrite(i < 2 ? (void *)&op : &one, i < 2 ? sizeof(op) : sizeof(one), 1, file);
        fputs("half", file); /* the writer was killed */
        fclose(file);
    }
    ck_assert(nem_read_ops(dir, &read, &count));
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(read[1].at, 1);
    ck_assert(nem_read_faults(dir, &read_faults, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_int_eq(read_faults[0].begin, 5);
    free(read);
    free(read_faults);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    ck_assert(!nem_read_faults(dir, &read_faults, &count));
    rmdir(dir);
    ck_assert(!nem_read_ops(dir, &read, &count));
}
END_TEST

static void add_calls(Suite *suite)
{
    TCase *t = forged_group(suite, "files");
    tcase_add_test(t, records_are_read_from_the_files_of_all_threads);
    t = forged_group(suite, "calls");
    tcase_add_test(t, codes_that_a_call_may_return);
    tcase_add_test(t, codes_that_it_may_not);
    tcase_add_test(t, ETIMEDOUT_comes_at_the_deadline);
    tcase_add_test(t, ENOTCONN_has_a_reason);
    tcase_add_test(t, ENOTCONN_may_come_a_little_later);
    tcase_add_test(t, ENOTCONN_of_one_in_a_hurry_needs_none);
    tcase_add_test(t, ESTALE_is_returned_to_the_former_holder_only);
    tcase_add_test(t, ECANCELED_is_of_a_process_that_ends);
    tcase_add_test(t, try_and_unlock_end_within_the_command_timeout);
    tcase_add_test(t, a_timed_form_ends_100_ms_after_its_deadline);
    tcase_add_test(t, the_time_in_which_it_was_stopped_does_not_count);
    tcase_add_test(t, process_that_the_machine_did_not_run_counts_as_stopped);
    tcase_add_test(t, a_try_that_never_returns_is_late_unless_it_was_killed);
    tcase_add_test(t, waiter_gets_the_lock_within_patience_after_the_faults);
    tcase_add_test(t, waiter_with_a_later_grant_is_starved);
    tcase_add_loop_test(t, waiter_may_get_the_lock_later_behind_long_sections, 0, 2);
    tcase_add_test(t, waiter_without_any_grant_is_starved);
    tcase_add_test(t, waiter_may_get_the_lock_later_when_the_machine_halts);
    tcase_add_test(t,
                   thread_waiting_since_the_faults_is_starved_by_the_time_of_the_driver);
    tcase_add_test(
        t, thread_waiting_since_the_last_moment_is_starved_by_the_time_of_the_driver);
    tcase_add_test(t, in_the_drivers_time_calls_of_the_last_moment_that_hang_are_late);
    t = forged_group(suite, "rest");
    tcase_add_test(t, all_came_to_rest);
    tcase_add_test(t, a_call_that_was_given_up_is_hung);
    tcase_add_test(t, a_thread_that_is_in_no_call_may_hang_too);
    tcase_add_test(t, one_that_was_killed_on_purpose_need_not_come_to_rest);
    tcase_add_test(t, process_asked_to_end_must_end);
    tcase_add_test(t, process_asked_to_end_must_end_when_its_threads_rest);
    t = forged_group(suite, "ends");
    tcase_add_test(t, keys_that_end_by_themselves_may_be_left);
    tcase_add_test(t, a_key_without_ttl_is_a_leak);
    tcase_add_test(t, a_ttl_that_is_too_long_is_a_leak);
    tcase_add_test(t, a_client_that_stays_in_presence_is_a_leak);
    tcase_add_test(t, a_lock_that_is_held_at_the_end_is_a_leak);
    tcase_add_test(t, a_key_that_had_no_ttl_for_a_while_is_a_leak);
    tcase_add_test(t, a_queue_that_is_not_empty_is_a_residue);
    tcase_add_test(t, a_waiter_that_died_may_be_left_in_the_queue);
    tcase_add_test(t, one_that_is_left_beside_the_dead_is_a_residue);
    tcase_add_test(t, a_dead_waiter_that_left_is_not_what_is_left);
    tcase_add_test(t, memory_of_a_process_may_grow_by_what_it_has_spare);
    tcase_add_test(t, memory_of_the_server_and_under_a_tool_may_grow_by_half_and_8_MiB);
    tcase_add_test(t, descriptors_and_threads_may_not);
    tcase_add_test(t, descriptors_of_the_server_are_not_looked_at);
    tcase_add_test(t, another_life_is_judged_afresh);
}

int main(void)
{
    Suite *suite = suite_create("judge: calls");
    add_calls(suite);
    return test_run_suite(suite);
}
