/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read-write lock when processes that hold it or wait for it are killed or stopped,
 * and when the server forgets: L2-L4, L6, W2, W7, W8, W10, W12, W15. `w` are workers
 * with a handle "m" of the lock "N", each with one thread "t" that waits or holds.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 8,
    READERS = 50,
    CLIENTS = 7,    /* in each process of the fifty readers but one */
    LEASE_MS = 600, /* of a client to be killed; others have the default or the next */
    OTHERS_LEASE_MS = 1800,
    PRESENCE_MS = 600,
    SOON_MS = 800, /* the default poll comes 1 s later */
    STAYS_MS = 80
};

static struct worker w[WORKERS];

static void open_scene(void)
{
    scene_open();
    memset(w, 0, sizeof(w));
}

static void close_scene(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_end(&w[i]);
    scene_close();
}

/* Starts the workers from `from` up to `to`, which is not included. */
static void start(int from, int to, const struct scene_times *times)
{
    for (int i = from; i < to; i++)
        scene_worker(&w[i], scene_server.url, times, "N", "rwlock=1");
}

static void has(int i, const char *verb)
{
    scene_says(&w[i], "ok", "on t %s m", verb);
}

static void waits(int i, const char *verb)
{
    scene_worker_queues(&w[i], "N", verb);
}

static void got(int i, long ms)
{
    ck_assert_msg(scene_worker_got(&w[i], ms), "worker %d is not in", i);
    ck_assert_int_gt(worker_number(&w[i], "on t remaining m"), 0);
}

static bool is_not_told(void *arg)
{
    return !worker_news(arg, "done t", 0);
}

static bool stays_out(int i)
{
    return test_stays(is_not_told, &w[i], STAYS_MS);
}

static void leaves(int i)
{
    scene_says(&w[i], "ok", "on t unlock m");
}

/* Returns the end of the only reader, and its id. */
static long long only_reader(char id[SCENE_ID_MAX])
{
    char end[32];
    ck_assert_int_eq(scene_count("N", "readers"), 1);
    ck_assert(scene_member("N", "readers", 0, id, end));
    return atoll(end);
}

/* ---- fifty readers, each with an id of its own at the server: w[0] has one, w[1] to
 * w[7] have seven each; another process waits to write */

static struct worker writer;

static void open_fifty(void)
{
    open_scene();
    memset(&writer, 0, sizeof(writer));
}

static void close_fifty(void)
{
    worker_end(&writer);
    close_scene();
}

/* Makes all clients of w[i] do it, each in a thread: "on t3 <verb> m3" ... */
static void each_of(int i, const char *verb, const char *wanted)
{
    for (int c = 1; c <= CLIENTS; c++)
        scene_says(&w[i], wanted, "on t%d %s m%d", c, verb, c);
}

/* w[0] is killed while the writer waits. Returns when w[0]'s own lease ends. */
static long long one_of_fifty_is_killed(char id[SCENE_ID_MAX])
{
    start(0, 1, SCENE_TIMES(.lease = test_ms(OTHERS_LEASE_MS / 3)));
    has(0, "rdlock");
    only_reader(id);
    for (int i = 1; i < WORKERS; i++) {
        worker_start(&w[i], NULL);
        for (int c = 1; c <= CLIENTS; c++) {
            scene_says(&w[i], "ok", "open %s lease=%ld", scene_server.url,
                       test_ms(OTHERS_LEASE_MS));
            scene_says(&w[i], "ok", "init m%d N rwlock=1", c);
        }
        each_of(i, "rdlock", "ok");
    }
    ck_assert_int_eq(scene_count("N", "readers"), READERS);
    scene_worker(&writer, scene_server.url, NULL, "N", "rwlock=1");
    scene_says(&writer, "ok", "async t lock m");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    worker_kill(&w[0]);
    return scene_reader_end("N", id);
}

static bool it_is_dead_and_the_others_are_not(void *arg)
{
    const char *dead = arg;
    return scene_reader_left("N", dead) < 0 && is_not_told(&writer);
}

/* rule: W2, W8 */
START_TEST(killed_reader_ends_no_other_reading_and_is_prolonged_by_no_other_reader)
{
    char id[SCENE_ID_MAX], key[SCENE_KEY_MAX];
    long long end = one_of_fifty_is_killed(id);
    scene_wait_past(end);
    ck_assert(test_stays(it_is_dead_and_the_others_are_not, id, test_ms(LEASE_MS / 3)));
    /* the others' renewals remove its entry */
    ck_assert(scene_wait_count("N", "readers", READERS - 1, SCENE_SOON_MS));
    ck_assert_ptr_null(
        test_redis_str(scene_redis, "ZSCORE", scene_key(key, "N", "readers"), id));
    for (int i = 1; i < WORKERS; i++) {
        ck_assert(is_not_told(&writer));
        each_of(i, "unlock", "ok");
    }
    ck_assert(scene_worker_got(&writer, SOON_MS));
    scene_says(&writer, "ok", "on t unlock m");
}
END_TEST

/* rule: L4 */
START_TEST(writer_waits_for_the_lease_of_a_killed_reader_and_not_longer)
{
    test_rundir_off();
    char id[SCENE_ID_MAX];
    long long end = one_of_fifty_is_killed(id);
    for (int i = 1; i < WORKERS; i++)
        each_of(i, "unlock", "ok");
    bool early = scene_now_ms() < end;
    ck_assert(scene_worker_got(&writer, SCENE_SOON_MS));
    long long now = scene_now_ms();
    ck_assert_int_ge(now, end);
    if (early) /* otherwise the others took longer to leave */
        ck_assert_int_le(now, end + test_ms(SOON_MS));
    scene_says(&writer, "ok", "on t unlock m");
}
END_TEST

/* ---- killed */

/* rule: W7 */
START_TEST(waiting_readers_are_next_after_a_killed_writer)
{
    test_rundir_off();
    start(0, 1, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start(1, 5, NULL);
    has(0, "lock");
    waits(1, "lock");
    waits(2, "rdlock");
    waits(3, "rdlock");
    waits(4, "lock");
    worker_kill(&w[0]);
    long long end = scene_now_ms() + scene_pttl("N");
    /* on a machine that stood still, it may be the readers' lease already */
    const redisReply *mode = test_redis_do(scene_redis, "HGET", "N", "mode");
    bool early =
        mode->type == REDIS_REPLY_STRING && strcmp(mode->str, "rlock:write") == 0;
    got(2, SCENE_SOON_MS);
    got(3, SOON_MS);
    long long now = scene_now_ms();
    if (early) {
        ck_assert_int_ge(now, end);
        ck_assert_int_le(now, end + test_ms(SOON_MS));
    }
    ck_assert(stays_out(1));
    leaves(2);
    ck_assert(is_not_told(&w[1]));
    leaves(3);
    got(1, SOON_MS);
    ck_assert(stays_out(4));
    leaves(1);
    got(4, SOON_MS);
    leaves(4);
}
END_TEST

/* rule: W7 */
START_TEST(writer_is_next_after_a_killed_reader)
{
    test_rundir_off();
    start(0, 1, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start(1, 4, NULL);
    has(0, "rdlock");
    waits(1, "lock");
    waits(2, "rdlock");
    waits(3, "lock");
    worker_kill(&w[0]);
    long long end = scene_now_ms() + scene_pttl("N");
    /* on a machine that stood still, it may be the writer's lease already */
    const redisReply *mode = test_redis_do(scene_redis, "HGET", "N", "mode");
    bool early =
        mode->type == REDIS_REPLY_STRING && strcmp(mode->str, "rlock:write") != 0;
    got(1, SCENE_SOON_MS);
    long long now = scene_now_ms();
    if (early) {
        ck_assert_int_ge(now, end);
        ck_assert_int_le(now, end + test_ms(SOON_MS));
    }
    ck_assert(stays_out(2));
    leaves(1);
    got(2, SOON_MS);
    leaves(2);
    got(3, SOON_MS);
    leaves(3);
}
END_TEST

/* rule: L2 */
START_TEST(hand_over_skips_killed_readers_and_writers)
{
    start(0, 7, NULL);
    has(0, "lock");
    waits(1, "rdlock");
    waits(2, "lock");
    waits(3, "rdlock");
    waits(4, "lock");
    worker_kill(&w[1]);
    worker_kill(&w[2]);
    leaves(0);
    got(3, SOON_MS); /* earlier than a grant to the dead reader would lapse */
    leaves(3);
    got(4, SOON_MS);
    waits(5, "rdlock");
    waits(6, "lock");
    worker_kill(&w[5]);
    leaves(4);
    got(6, SOON_MS);
    leaves(6);
}
END_TEST

/* The readers enter at the next poll, though the presence of the killed writer lasts for
 * two polls at least. */
/* rule: W12 */
START_TEST(readers_enter_when_the_last_waiting_writer_is_killed)
{
    const long poll = 600;
    start(0, 4, SCENE_TIMES(.presence = test_ms(3 * poll)));
    has(0, "rdlock");
    waits(1, "lock");
    waits(2, "rdlock");
    ck_assert(stays_out(2));
    worker_kill(&w[1]);
    got(2, poll + SOON_MS);
    has(3, "rdlock"); /* a newcomer need not wait at all */
    leaves(0);
    leaves(2);
    leaves(3);
}
END_TEST

/* ---- stopped */

/* rule: W10 */
START_TEST(stopped_writer_blocks_readers_no_longer_than_its_presence)
{
    start(0, 4, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    has(0, "rdlock");
    waits(1, "lock");
    waits(2, "rdlock");
    ck_assert(stays_out(2));
    worker_stop(&w[1]);
    /* its presence ends, and a poll sees that */
    got(2, PRESENCE_MS + PRESENCE_MS / 3 + SOON_MS);
    has(3, "rdlock");
    worker_cont(&w[1]);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS)); /* w[1] asks again */
    leaves(0);
    leaves(3);
    ck_assert(stays_out(1));
    leaves(2);
    got(1, SOON_MS);
    leaves(1);
}
END_TEST

/* Two threads of w[0] share the hold. _i 1: a thread unlocks before it learns of the
 * loss. */
/* rule: S4 */
START_TEST(reader_stopped_past_its_lease_learns_the_loss_and_harms_no_writer)
{
    char id[SCENE_ID_MAX], writer_id[SCENE_ID_MAX], now_id[SCENE_ID_MAX];
    start(0, 1, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start(1, 3, NULL);
    has(0, "rdlock");
    scene_says(&w[0], "ok", "on u rdlock m");
    long long end = only_reader(id);
    waits(1, "lock");
    worker_stop(&w[0]);
    got(1, SCENE_SOON_MS);
    ck_assert_int_ge(scene_now_ms(), end);
    ck_assert(scene_holder("N", writer_id));
    worker_cont(&w[0]);
    if (_i == 0)
        scene_worker_lost(&w[0], "N");
    else
        scene_says(&w[0], "ESTALE", "on t unlock m");
    /* one for each thread */
    ck_assert(worker_news(&w[0], "event LOST N", SCENE_SOON_MS));
    scene_says(&w[0], "ESTALE", "on u unlock m");
    waits(2, "rdlock");
    scene_says(&w[0], "EBUSY", "on t tryrdlock m");
    ck_assert(stays_out(2));
    scene_says(&w[1], "ok SAFE", "on t state m");
    ck_assert(scene_holder("N", now_id));
    ck_assert_str_eq(now_id, writer_id);
    leaves(1);
    got(2, SOON_MS);
    has(0, "rdlock");
    leaves(0);
    leaves(2);
}
END_TEST

/* rule: W4 */
START_TEST(reader_stopped_past_its_lease_is_lost_while_others_read_on)
{
    char id[SCENE_ID_MAX];
    start(0, 1, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start(1, 3, NULL);
    has(0, "rdlock");
    long long end = only_reader(id);
    has(1, "rdlock");
    has(2, "rdlock");
    worker_stop(&w[0]);
    worker_kill(&w[2]); /* its lease of 30 s keeps the reading, but no other reader */
    scene_wait_past(end + STAYS_MS);
    worker_cont(&w[0]);
    scene_worker_lost(&w[0], "N");
    ck_assert_int_lt(scene_reader_left("N", id), 0);
    scene_says(&w[1], "ok SAFE", "on t state m");
    leaves(1);
}
END_TEST

static const struct {
    const char *before, *verb, *after;
} grants[] = { { "lock", "rdlock", "lock" }, { "rdlock", "lock", "rdlock" } };

/* w[0] lets w[1] in, which is stopped for longer than the grant; w[2] comes after
 * w[1]. */
/* rule: T1 */
START_TEST(waiter_stopped_past_its_grant_does_not_believe_it)
{
    const char *verb = grants[_i].verb;
    start(0, 3, SCENE_TIMES(.presence = test_ms(PRESENCE_MS)));
    has(0, grants[_i].before);
    waits(1, verb);
    worker_stop(&w[1]);
    leaves(0);
    /* granted to w[1], which does not know it */
    ck_assert(test_redis_exists(scene_redis, "N"));
    waits(2, grants[_i].after);
    got(2, SCENE_SOON_MS);
    worker_cont(&w[1]);
    const char *queue = strcmp(verb, "rdlock") == 0 ? "rqueue" : "queue";
    ck_assert(scene_wait_count("N", queue, 1, SCENE_SOON_MS)); /* w[1] asks again */
    ck_assert(stays_out(1));
    scene_says(&w[2], "ok SAFE", "on t state m");
    leaves(2);
    got(1, SOON_MS);
    leaves(1);
}
END_TEST

/* rule: S4 */
START_TEST(writer_stopped_past_its_lease_learns_the_loss_and_harms_no_reader)
{
    start(0, 1, SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    start(1, 4, NULL);
    has(0, "lock");
    waits(1, "rdlock");
    waits(2, "rdlock");
    waits(3, "lock");
    worker_stop(&w[0]);
    got(1, SCENE_SOON_MS);
    got(2, SOON_MS);
    worker_cont(&w[0]);
    scene_worker_lost(&w[0], "N");
    ck_assert(stays_out(3));
    scene_says(&w[1], "ok SAFE", "on t state m");
    scene_says(&w[2], "ok SAFE", "on t state m");
    ck_assert_int_eq(scene_count("N", "readers"), 2);
    leaves(1);
    leaves(2);
    got(3, SOON_MS);
    leaves(3);
}
END_TEST

/* A presence whose polls are 3 s apart, or as rare as possible. */
static long rare_polls(void)
{
    const long longest = 30000;
    return test_ms(9000) < longest ? test_ms(9000) : longest;
}

/* ---- W15 */

/* When the writer begins to wait and poll, another reader has a long lease. The writer
 * must enter when the dead reader's lease ends, half-way between two polls. */
/* rule: W15 */
START_TEST(writer_is_not_late_when_the_reader_with_the_longest_lease_leaves)
{
    test_rundir_off();
    char id[SCENE_ID_MAX], end[32];
    const long poll = rare_polls() * 2 / 9;
    start(0, 1, SCENE_TIMES(.lease = 20 * poll));
    start(1, 3, SCENE_TIMES(.presence = 3 * poll));
    scene_says(&w[1], "ok", "on t rdlock m %ld", poll + poll / 2);
    ck_assert(scene_member("N", "readers", 0, id, end));
    has(0, "rdlock");
    worker_kill(&w[1]);
    waits(2, "lock");
    leaves(0);
    ck_assert(scene_worker_got(&w[2], SCENE_SOON_MS));
    long long now = scene_now_ms();
    ck_assert_int_ge(now, atoll(end));
    ck_assert_int_lt(now, atoll(end) + poll * 2 / 5);
    leaves(2);
}
END_TEST

/* ---- the server forgets */

static bool in[WORKERS];

static bool somebody_is_told(void *arg)
{
    const bool *waiting = arg;
    for (int i = 0; i < WORKERS; i++) {
        const char *news = waiting[i] ? worker_news(&w[i], "done t", 0) : NULL;
        if (!news)
            continue;
        ck_assert_str_eq(news, "done t ok");
        in[i] = true;
        return true;
    }
    return false;
}

enum { SHARE = 4 }; /* w[1], w[2] write; behind them w[3], w[4] read */

static void wait_in_line(void)
{
    for (int i = 1; i <= SHARE; i++)
        waits(i, i <= SHARE / 2 ? "lock" : "rdlock");
}

/* Asserts that all waiters get in, in any order, and leave at once, and that a writer is
 * alone. */
static void everybody_gets_in(long ms)
{
    bool waiting[WORKERS] = { false };
    int left = SHARE;
    int64_t begin = test_now_ms();
    for (int i = 1; i <= SHARE; i++)
        waiting[i] = true;
    while (left > 0) {
        int count = 0, writers = 0;
        memset(in, 0, sizeof(in));
        ck_assert_msg(test_wait_until(somebody_is_told, waiting, ms),
                      "%d of those who wait do not get in", left);
        while (somebody_is_told(waiting))
            ;
        for (int i = 1; i <= SHARE; i++) {
            count += in[i];
            writers += in[i] && i <= SHARE / 2;
        }
        ck_assert_msg(writers == 0 || count == 1, "a writer is not alone");
        for (int i = 1; i <= SHARE; i++) {
            if (!in[i])
                continue;
            leaves(i);
            waiting[i] = false;
            left--;
        }
    }
    ck_assert_int_le(test_now_ms() - begin, test_ms(ms));
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
}

/* Starts w[0], which will hold the lock in either mode, and the waiters. */
static void start_line(long lease, long presence)
{
    start(0, 1, SCENE_TIMES(.lease = lease, .presence = presence));
    start(1, SHARE + 1, SCENE_TIMES(.presence = presence));
}

/* w[0] may know, or not, what happened to its hold. */
static void leaves_or_has_lost_it(void)
{
    const char *answer = worker_ask(&w[0], "on t unlock m", SCENE_SOON_MS);
    ck_assert(answer && (strcmp(answer, "ok") == 0 || strcmp(answer, "ESTALE") == 0));
}

static const char *const modes[] = { "lock", "rdlock" };

/* rule: L3 */
START_TEST(all_waiters_enter_after_a_restart_that_lost_all_data)
{
    start_line(test_ms(2 * LEASE_MS), test_ms(PRESENCE_MS));
    has(0, modes[_i]);
    wait_in_line();
    test_server_restart(&scene_server);
    test_redis_close(scene_redis);
    scene_redis = test_redis_connect(scene_server.path);
    everybody_gets_in(SCENE_SOON_MS);
    scene_worker_lost(&w[0], "N");
}
END_TEST

/* rule: L3 */
START_TEST(all_waiters_enter_when_the_scripts_are_flushed)
{
    start_line(test_ms(2 * LEASE_MS), test_ms(PRESENCE_MS));
    has(0, modes[_i]);
    wait_in_line();
    test_redis_do(scene_redis, "SCRIPT", "FLUSH");
    leaves(0);
    everybody_gets_in(PRESENCE_MS + SOON_MS);
}
END_TEST

/* Polls are 3 s apart: waiters that were not heard when the lock came free look again as
 * soon as they are heard. */
/* rule: L3 */
START_TEST(no_wakeup_is_lost_when_subscribers_are_killed)
{
    start_line(0, rare_polls());
    for (long n = test_count(30, 4); n > 0; n--) {
        has(0, modes[_i]);
        wait_in_line();
        test_redis_do(scene_redis, "CLIENT", "KILL", "TYPE", "pubsub");
        leaves(0);
        everybody_gets_in(2000);
        ck_assert(scene_wait_mailboxes(SHARE + 1, SCENE_SOON_MS));
        /* drops the events of the lost connection and the new one */
        for (int i = 0; i <= SHARE; i++)
            while (worker_news(&w[i], "event", 0))
                ;
    }
}
END_TEST

/* rule: L3 */
START_TEST(all_waiters_enter_whichever_key_is_deleted)
{
    static const char *const keys[] = { "N", "rlock:{N}:queue", "rlock:{N}:rqueue",
                                        "rlock:{N}:present", "rlock:{N}:readers" };
    start_line(test_ms(2 * LEASE_MS), test_ms(PRESENCE_MS));
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
        has(0, modes[_i]);
        wait_in_line();
        test_redis_do(scene_redis, "DEL", keys[k]);
        leaves_or_has_lost_it();
        everybody_gets_in(SCENE_SOON_MS);
    }
}
END_TEST

/* The holders are stopped, so that the force hands over, and not their release. */
/* rule: T10 */
START_TEST(all_waiters_enter_after_a_force_and_each_holder_learns_the_loss)
{
    start_line(0, rare_polls());
    start(SHARE + 1, SHARE + 3, NULL);
    has(0, modes[_i]);
    if (_i == 1)
        has(SHARE + 1, "rdlock");
    wait_in_line();
    worker_stop(&w[0]);
    worker_stop(&w[SHARE + 1]);
    scene_says(&w[SHARE + 2], "ok", "force N");
    everybody_gets_in(2000);
    worker_cont(&w[0]);
    worker_cont(&w[SHARE + 1]);
    scene_worker_lost(&w[0], "N");
    if (_i == 1)
        scene_worker_lost(&w[SHARE + 1], "N");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("rwlock, gone");

    TCase *fifty = scene_tcase(s, "fifty", open_fifty, close_fifty);
    tcase_add_test(
        fifty, killed_reader_ends_no_other_reading_and_is_prolonged_by_no_other_reader);
    tcase_add_test(fifty, writer_waits_for_the_lease_of_a_killed_reader_and_not_longer);

    TCase *killed = scene_tcase(s, "killed", open_scene, close_scene);
    tcase_add_test(killed, waiting_readers_are_next_after_a_killed_writer);
    tcase_add_test(killed, writer_is_next_after_a_killed_reader);
    tcase_add_test(killed, hand_over_skips_killed_readers_and_writers);
    tcase_add_test(killed, readers_enter_when_the_last_waiting_writer_is_killed);
    tcase_add_test(killed,
                   writer_is_not_late_when_the_reader_with_the_longest_lease_leaves);

    TCase *stopped = scene_tcase(s, "stopped", open_scene, close_scene);
    tcase_add_test(stopped, stopped_writer_blocks_readers_no_longer_than_its_presence);
    tcase_add_loop_test(
        stopped, reader_stopped_past_its_lease_learns_the_loss_and_harms_no_writer, 0, 2);
    tcase_add_test(stopped, reader_stopped_past_its_lease_is_lost_while_others_read_on);
    tcase_add_loop_test(stopped, waiter_stopped_past_its_grant_does_not_believe_it, 0, 2);
    tcase_add_test(stopped,
                   writer_stopped_past_its_lease_learns_the_loss_and_harms_no_reader);

    TCase *forgets = scene_tcase(s, "the server forgets", open_scene, close_scene);
    tcase_add_loop_test(forgets, all_waiters_enter_after_a_restart_that_lost_all_data, 0,
                        2);
    tcase_add_loop_test(forgets, all_waiters_enter_when_the_scripts_are_flushed, 0, 2);
    tcase_add_loop_test(forgets, no_wakeup_is_lost_when_subscribers_are_killed, 0, 2);
    tcase_add_loop_test(forgets, all_waiters_enter_whichever_key_is_deleted, 0, 2);
    tcase_add_loop_test(
        forgets, all_waiters_enter_after_a_force_and_each_holder_learns_the_loss, 0, 2);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
