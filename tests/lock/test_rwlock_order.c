/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=L6,W14,W20 */
/*
 * L6 between real processes: reading and writing alternate (W11, W14) against a flood of
 * readers or writers, and the other kinds prefer readers or writers as they say. The
 * readers of the flood overlap: without the rule their reading would never end. The
 * processes of tests/programs/rwcrowd.c record what happens, the test watches the server,
 * and rwhistory.h judges both.
 */
#include "rwscene.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum {
    FLOOD_PROCESSES = 4,
    WRITES = 80,
    WRITES_QUICK = 25,
    READS = 300,
    READS_QUICK = 50,
    ENTERS_MS = 5000,  /* for a waiter whose turn it is, against a flood */
    SERVED_MS = 60000, /* for all waiters */
    PASSES = 10,
    WRITERS = 8,
    ROUNDS = 40,
    ROUNDS_QUICK = 10
};

static struct rwhistory *history;

static void open_scene(void)
{
    rw_open();
    history = rwhistory_new();
}

static void close_scene(void)
{
    rwhistory_free(history);
    rw_close();
}

static const struct rw_options *of_kind(int kind)
{
    static struct rw_options options;
    options = (struct rw_options){ .kind = kind };
    return &options;
}

static void flood_to_read(int kind)
{
    for (long i = 0; i < FLOOD_PROCESSES; i++)
        rw_start(of_kind(kind), "r", "r", "r", "r");
}

static void flood_to_write(int kind)
{
    for (long i = 0; i < FLOOD_PROCESSES; i++)
        rw_start(of_kind(kind), "w", "w", "w", "w");
}

static void no_fault(const char *why)
{
    ck_assert_msg(!why, "%s", why);
}

static void check_totals(const struct rw_totals *t)
{
    ck_assert_int_eq(t->torn, 0);
    ck_assert_int_eq(t->lost, 0);
    ck_assert_int_eq(t->failed, 0);
    ck_assert_uint_eq(atomic_load(&rw_log->first), (uint64_t)t->writes);
    ck_assert_uint_eq(atomic_load(&rw_log->second), (uint64_t)t->writes);
}

struct progress {
    long from, to; /* parties */
    long sections;
};

/* Whether the threads of these parties have left `sections` times altogether. */
static bool have_left(void *arg)
{
    const struct progress *p = arg;
    rw_look(history);
    rwhistory_read(history, rw_log);
    long first = rw_parties[p->from].first;
    const struct rw_party *last = &rw_parties[p->to - 1];
    return rwhistory_count(history, RWLOG_LEAVES, first, last->first + last->count) >=
           p->sections;
}

/* A few threads go through all their sections against the flood, which never pauses. Each
 * of their waits has its own bound. */
static void few_against_flood(long few, long sections)
{
    for (long done = 1; done <= sections * few; done++)
        ck_assert_msg(
            test_wait_until(have_left,
                            &(struct progress){ FLOOD_PROCESSES, rw_count, done },
                            ENTERS_MS),
            "nobody of those against the flood came in for long, after %ld", done - 1);
}

static void end_phase_fair(void)
{
    struct rw_totals totals;
    ck_assert(rw_stop(&totals, SERVED_MS));
    rwhistory_read_all(history, rw_log);
    printf("%ld sections, %ld written; looks at %ld writers, %ld readers; %ld past a "
           "writer, %ld past a reader; %ld at once\n",
           totals.sections, totals.writes, rwhistory_writers_seen(history),
           rwhistory_readers_seen(history), rwhistory_reads_past(history),
           rwhistory_writes_past(history), rwhistory_most_readers(history));
    no_fault(rwhistory_fault(history));
    no_fault(rwhistory_phase_fault(history));
    check_totals(&totals);
}

/* rule: W14, L6 */
START_TEST(writers_enter_a_flood_of_readers_after_earlier_readers)
{
    enum { FEW = 2 };
    char job[16];
    long writes = test_count(WRITES, WRITES_QUICK);
    snprintf(job, sizeof(job), "w%ld", writes);
    flood_to_read(RLOCK_RWLOCK_PHASE_FAIR_NP);
    for (long i = 0; i < FEW; i++)
        rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), job);
    rw_go();
    few_against_flood(FEW, writes);
    end_phase_fair();
    ck_assert_int_gt(rwhistory_writers_seen(history), writes / 4);
    ck_assert_int_gt(rwhistory_most_readers(history), FLOOD_PROCESSES);
}
END_TEST

/* rule: W14, L6 */
START_TEST(readers_enter_a_flood_of_writers_after_one_writer)
{
    enum { FEW = 3 };
    char job[16];
    long reads = test_count(READS, READS_QUICK);
    snprintf(job, sizeof(job), "q%ld", reads);
    flood_to_write(RLOCK_RWLOCK_PHASE_FAIR_NP);
    for (long i = 0; i < FEW; i++)
        rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), job);
    rw_go();
    few_against_flood(FEW, reads);
    end_phase_fair();
    ck_assert_int_gt(rwhistory_readers_seen(history), reads / 4);
}
END_TEST

/* rule: W14, L6 */
START_TEST(simultaneous_floods_obey_both_bounds)
{
    long sections = test_count(2000, 400);
    for (long i = 0; i < FLOOD_PROCESSES; i++)
        rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "w", "r", "r", "w");
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "w");
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "w");
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "r");
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "r");
    rw_go();
    ck_assert(test_wait_until(have_left, &(struct progress){ 0, rw_count, sections },
                              SERVED_MS));
    end_phase_fair();
    ck_assert_int_gt(rwhistory_writers_seen(history), 0);
    ck_assert_int_gt(rwhistory_readers_seen(history), 0);
}
END_TEST

/* ---- the other kinds */

static bool reads_have_passed(void *arg)
{
    (void)arg;
    rw_look(history);
    rwhistory_read(history, rw_log);
    return rwhistory_reads_past(history) >= PASSES;
}

static bool writes_have_passed(void *arg)
{
    (void)arg;
    rw_look(history);
    rwhistory_read(history, rw_log);
    return rwhistory_writes_past(history) >= PASSES;
}

/* The waiters that were passed come in when the flood ends. */
static void end_preferred(long writes)
{
    struct rw_totals totals;
    ck_assert(rw_stop(&totals, SERVED_MS));
    rwhistory_read_all(history, rw_log);
    no_fault(rwhistory_fault(history));
    check_totals(&totals);
    ck_assert_int_ge(totals.writes, writes);
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}

START_TEST(with_PREFER_READER_readers_pass_a_waiting_writer)
{
    flood_to_read(RLOCK_RWLOCK_PREFER_READER_NP);
    rw_start(of_kind(RLOCK_RWLOCK_PREFER_READER_NP), "w");
    rw_go();
    ck_assert(test_wait_until(reads_have_passed, NULL, SERVED_MS));
    end_preferred(1);
}
END_TEST

static const int writers_first[] = { RLOCK_RWLOCK_PREFER_WRITER_NP,
                                     RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP };

START_TEST(with_PREFER_WRITER_writers_pass_a_waiting_reader)
{
    flood_to_write(writers_first[_i]);
    rw_start(of_kind(writers_first[_i]), "q");
    rw_go();
    ck_assert(test_wait_until(writes_have_passed, NULL, SERVED_MS));
    end_preferred(PASSES);
    ck_assert_int_ge(rwhistory_count(history, RWLOG_READS, 0, RWHISTORY_WHO_MAX), 1);
}
END_TEST

START_TEST(with_PREFER_WRITER_no_reader_joins_past_a_waiting_writer)
{
    char job[16];
    long writes = test_count(WRITES, WRITES_QUICK);
    snprintf(job, sizeof(job), "w%ld", writes);
    flood_to_read(writers_first[_i]);
    rw_start(of_kind(writers_first[_i]), job);
    rw_go();
    few_against_flood(1, writes);
    end_phase_fair();
}
END_TEST

/* ---- downgrade */

/* For a test that holds the lock while `WRITERS` processes wait to write, and two
 * processes with three threads each wait to read. */
enum { READING = 2, EACH = 3, SELF = RWHISTORY_WHO_MAX - 1 };

static bool all_have_asked(void *arg)
{
    (void)arg;
    return atomic_load(&rw_log->next) == 2 + WRITERS + (uint64_t)READING * EACH;
}

/* Threads that read share one entry in the queue. A thread that has not asked when the
 * readers are let in waits behind the writers. The log is written just before a thread
 * asks. */
static rlock_client_t *hold_against_many(rlock_rwlock_t *lock, int kind)
{
    uint64_t token;
    rlock_client_t *client = scene_client(scene_server.url, NULL);
    rw_init(lock, client, kind);
    for (long i = 0; i < WRITERS; i++)
        rw_start(of_kind(kind), "w1");
    for (long i = 0; i < READING; i++)
        rw_start(of_kind(kind), "s1", "s1", "s1");
    rwlog_add(rw_log, RWLOG_ASKS, SELF, 0);
    ck_assert_int_eq(rlock_rwlock_wrlock(lock), 0);
    ck_assert_int_eq(rlock_rwlock_gettoken(lock, &token), 0);
    rwlog_add(rw_log, RWLOG_WRITES, SELF, token);
    rw_go();
    ck_assert(rw_wait_queued(WRITERS, READING, SCENE_SOON_MS));
    ck_assert(test_wait_until(all_have_asked, NULL, SCENE_SOON_MS));
    test_pause_ms(test_ms(20));
    rwlog_add(rw_log, RWLOG_DOWNGRADES, SELF, 0);
    ck_assert_int_eq(rlock_rwlock_downgrade(lock), 0);
    return client;
}

static void let_all(rlock_rwlock_t *lock, rlock_client_t *client)
{
    struct rw_totals totals;
    rwlog_add(rw_log, RWLOG_LEAVES, SELF, 0);
    ck_assert_int_eq(rlock_rwlock_unlock(lock), 0);
    atomic_store(&rw_log->open, true);
    ck_assert(rw_join(&totals, SERVED_MS));
    rwhistory_read_all(history, rw_log);
    no_fault(rwhistory_fault(history));
    check_totals(&totals);
    ck_assert_int_eq(totals.sections, WRITERS + READING * EACH);
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}

/* rule: W20 */
START_TEST(waiting_readers_join_a_downgrade_past_many_writers)
{
    rlock_rwlock_t lock;
    rlock_client_t *client = hold_against_many(&lock, RLOCK_RWLOCK_PHASE_FAIR_NP);
    ck_assert(rw_wait_inside((long)READING * EACH, SCENE_SOON_MS));
    ck_assert(rw_wait_queued(WRITERS, 0, SCENE_SOON_MS));
    ck_assert_uint_eq(atomic_load(&rw_log->first), 0);
    let_all(&lock, client);
    ck_assert_int_eq(rwhistory_most_readers(history), READING * EACH + 1);
}
END_TEST

static bool nobody_has_come(void *arg)
{
    (void)arg;
    return atomic_load(&rw_log->inside) == 0 && atomic_load(&rw_log->first) == 0;
}

/* rule: W20 */
START_TEST(with_PREFER_WRITER_no_reader_joins_a_downgrade_while_a_writer_waits)
{
    rlock_rwlock_t lock;
    rlock_client_t *client = hold_against_many(&lock, writers_first[_i]);
    ck_assert(test_stays(nobody_has_come, NULL, test_ms(100)));
    ck_assert(rw_wait_queued(WRITERS, READING, 0));
    let_all(&lock, client);
}
END_TEST

/* rule: W18 */
START_TEST(no_writer_enters_between_a_writing_and_its_downgrade)
{
    uint64_t token, later;
    rlock_rwlock_t lock;
    rlock_client_t *client = scene_client(scene_server.url, NULL);
    rw_init(&lock, client, RLOCK_RWLOCK_PHASE_FAIR_NP);
    for (long i = 0; i < WRITERS / 2; i++)
        rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "w", "w");
    for (long i = 0; i < READING; i++)
        rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "r", "r", "r");
    rw_go();
    for (long i = test_count(ROUNDS, ROUNDS_QUICK); i > 0; i--) {
        rwlog_add(rw_log, RWLOG_ASKS, SELF, 0);
        ck_assert_int_eq(rlock_rwlock_wrlock(&lock), 0);
        ck_assert_int_eq(rlock_rwlock_gettoken(&lock, &token), 0);
        rwlog_add(rw_log, RWLOG_WRITES, SELF, token);
        uint64_t number = atomic_load(&rw_log->first);
        rwlog_add(rw_log, RWLOG_DOWNGRADES, SELF, 0);
        ck_assert_int_eq(rlock_rwlock_downgrade(&lock), 0);
        ck_assert_int_eq(rlock_rwlock_gettoken(&lock, &later), 0);
        ck_assert_uint_eq(later, token);
        ck_assert_uint_eq(atomic_load(&rw_log->first), number);
        ck_assert_uint_eq(atomic_load(&rw_log->second), number);
        rwlog_add(rw_log, RWLOG_LEAVES, SELF, 0);
        ck_assert_int_eq(rlock_rwlock_unlock(&lock), 0);
    }
    end_phase_fair();
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* ---- waiters that leave the queue */

struct waiter {
    rlock_rwlock_t lock;
    pthread_t thread;
    int rc;
};

static void *wait_to_write(void *arg)
{
    struct waiter *w = arg;
    w->rc = rlock_rwlock_wrlock(&w->lock);
    return NULL;
}

static bool no_script_has_run(void *arg)
{
    const long long *calls = arg;
    return test_redis_calls(scene_redis, "evalsha") == *calls;
}

/* A client polls once when it has subscribed. Its next polls are due after 10 s. */
static void wait_for_first_polls(void)
{
    enum { QUIET_MS = 200 };
    long long calls;
    do
        calls = test_redis_calls(scene_redis, "evalsha");
    while (!test_stays(no_script_has_run, &calls, QUIET_MS));
}

/* rule: W12 */
START_TEST(writer_that_gives_up_lets_in_the_reader_behind_it)
{
    enum { BEFORE_A_POLL_MS = 3000 };
    struct waiter w = { .rc = -1 };
    struct rw_totals totals;
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "s1");
    rlock_client_t *client = scene_client(scene_server.url, NULL);
    rw_init(&w.lock, client, RLOCK_RWLOCK_PHASE_FAIR_NP);
    rw_go();
    ck_assert(rw_wait_inside(1, SCENE_SOON_MS));
    ck_assert_int_eq(pthread_create(&w.thread, NULL, wait_to_write, &w), 0);
    ck_assert(rw_wait_queued(1, 0, SCENE_SOON_MS));
    rw_start(of_kind(RLOCK_RWLOCK_PHASE_FAIR_NP), "s1");
    ck_assert(rw_wait_queued(1, 1, SCENE_SOON_MS));
    wait_for_first_polls();
    ck_assert_int_eq(rlock_client_interrupt(client), 0);
    ck_assert(rw_wait_inside(2, BEFORE_A_POLL_MS));
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, ECANCELED);
    atomic_store(&rw_log->open, true);
    ck_assert(rw_join(&totals, SERVED_MS));
    check_totals(&totals);
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert(rw_wait_clean(SCENE_SOON_MS));
}
END_TEST

static Suite *make_suite(void)
{
    enum { WRITERS_FIRST = sizeof(writers_first) / sizeof(writers_first[0]) };
    Suite *s = suite_create("rwlock order");
    TCase *tc = scene_tcase(s, "W14", open_scene, close_scene);
    tcase_add_test(tc, writers_enter_a_flood_of_readers_after_earlier_readers);
    tcase_add_test(tc, readers_enter_a_flood_of_writers_after_one_writer);
    tcase_add_test(tc, simultaneous_floods_obey_both_bounds);

    TCase *kinds = scene_tcase(s, "kinds", open_scene, close_scene);
    tcase_add_test(kinds, with_PREFER_READER_readers_pass_a_waiting_writer);
    tcase_add_loop_test(kinds, with_PREFER_WRITER_writers_pass_a_waiting_reader, 0,
                        WRITERS_FIRST);
    tcase_add_loop_test(kinds, with_PREFER_WRITER_no_reader_joins_past_a_waiting_writer,
                        0, WRITERS_FIRST);

    TCase *down = scene_tcase(s, "downgrade", open_scene, close_scene);
    tcase_add_test(down, waiting_readers_join_a_downgrade_past_many_writers);
    tcase_add_loop_test(
        down, with_PREFER_WRITER_no_reader_joins_a_downgrade_while_a_writer_waits, 0,
        WRITERS_FIRST);
    tcase_add_test(down, no_writer_enters_between_a_writing_and_its_downgrade);

    TCase *leaving = scene_tcase(s, "W12", open_scene, close_scene);
    tcase_add_test(leaving, writer_that_gives_up_lets_in_the_reader_behind_it);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
