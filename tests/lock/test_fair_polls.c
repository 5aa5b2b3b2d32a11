/* SPDX-License-Identifier: Apache-2.0 */
/* program: lock=fair */
/*
 * How a client of the fair lock polls for all its waiting threads, and what happens when
 * the polled keys are lost. test_fair.c says how this file is built: `f` is a handle of
 * `self`, a client of this process; `w` are workers.
 */
#include "fairworkers.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PRESENCE_MS = 600,
    LONG_PRESENCE_MS = 30000,
    AT_ONCE_MS = 1500,
    MANY = 130,
    CROWD = 600, /* one request names 512 */
    STACK_SIZE = 256 * 1024
};

static void start_worker(int i, long presence)
{
    scene_worker(&w[i], scene_server.url, SCENE_TIMES(.presence = presence), "N", "");
}

/* Makes `n` workers wait, in the order of w. */
static void start_waiters(int n, long presence)
{
    for (int i = 0; i < n; i++) {
        start_worker(i, presence);
        scene_worker_waits(&w[i], "N", i + 1);
    }
}

/* ---- a crowd in one process, more than one request names */

static struct {
    rlock_client_t *client;
    rlock_fair_t lock;
    pthread_t threads[CROWD];
    atomic_int failed, got;
} crowd;

static void *run_crowd(void *arg)
{
    (void)arg;
    if (rlock_fair_lock(&crowd.lock) != 0)
        atomic_fetch_add(&crowd.failed, 1);
    else
        atomic_fetch_add(&crowd.got, 1);
    if (rlock_fair_unlock(&crowd.lock) != 0)
        atomic_fetch_add(&crowd.failed, 1);
    return NULL;
}

/* False: such a crowd is not possible here. */
static bool start_crowd(const char *test, long presence)
{
    pthread_attr_t attr;
    if (test_ms(1) >= 10) {
        printf("skipped: %s: Valgrind has a limit of 500 threads\n", test);
        return false;
    }
    memset(&crowd, 0, sizeof(crowd));
    crowd.client = scene_client(scene_server.url, SCENE_TIMES(.presence = presence));
    scene_mutex(&crowd.lock, crowd.client, "N");
    scene_hold_by_hand("N", 600000);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(pthread_create(&crowd.threads[i], &attr, run_crowd, NULL), 0);
    pthread_attr_destroy(&attr);
    ck_assert(scene_wait_queued("N", CROWD, SCENE_SOON_MS));
    return true;
}

static void end_crowd(void)
{
    scene_release_by_hand("N");
    for (int i = 0; i < CROWD; i++)
        pthread_join(crowd.threads[i], NULL);
    ck_assert_int_eq(rlock_client_close(crowd.client), 0);
    ck_assert_int_eq(atomic_load(&crowd.failed), 0);
    ck_assert_int_eq(atomic_load(&crowd.got), CROWD);
}

/* Removes the ticket of the waiter that the second request of a round names. */
static void take_last_ticket_away(void)
{
    char queue[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    ck_assert(scene_waiter("N", CROWD - 1, id, ticket));
    test_redis_do(scene_redis, "ZREM", scene_key(queue, "N", "queue"), id);
}

START_TEST(a_crowd_polls_by_two_requests_each_third_of_its_presence)
{
    if (!start_crowd("a_crowd_polls_by_two_requests_each_third_of_its_presence",
                     test_ms(PRESENCE_MS)))
        return;
    test_redis_do(scene_redis, "CONFIG", "RESETSTAT");
    int64_t begin = test_now_ms();
    test_pause_ms(2 * test_ms(PRESENCE_MS));
    long long polls = test_redis_calls(scene_redis, "evalsha");
    ck_assert_int_gt(polls, 0);
    ck_assert_int_le(polls,
                     2 * (2 + (test_now_ms() - begin) / (test_ms(PRESENCE_MS) / 3)));
    end_crowd();
}
END_TEST

START_TEST(each_of_a_crowd_learns_that_its_ticket_was_deleted)
{
    char queue[SCENE_KEY_MAX];
    if (!start_crowd("each_of_a_crowd_learns_that_its_ticket_was_deleted",
                     test_ms(PRESENCE_MS)))
        return;
    take_last_ticket_away();
    ck_assert(scene_wait_queued("N", CROWD, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", scene_key(queue, "N", "queue"));
    ck_assert(scene_wait_queued("N", CROWD, SCENE_SOON_MS));
    end_crowd();
}
END_TEST

START_TEST(the_second_request_of_a_round_follows_the_first_at_once)
{
    if (!start_crowd("the_second_request_of_a_round_follows_the_first_at_once",
                     LONG_PRESENCE_MS))
        return;
    take_last_ticket_away();
    /* this begins a round */
    test_redis_do(scene_redis, "CLIENT", "KILL", "TYPE", "pubsub");
    ck_assert(scene_wait_queued("N", CROWD, 2 * AT_ONCE_MS));
    end_crowd();
}
END_TEST

/* ---- threads of a client that hears no messages */

/* More waiters than one script looks at. */
enum { DEAF = 70, GIVE_UP_MS = 3000 };

static struct {
    rlock_fair_t lock;
    atomic_int first, failed; /* first: which thread got the lock first, from 1 */
} deaf;

static void *run_deaf(void *arg)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, test_ms(GIVE_UP_MS));
    int none = 0, me = *(int *)arg;
    int rc = rlock_fair_clocklock(&deaf.lock, CLOCK_MONOTONIC, &end);
    if (rc == 0) {
        atomic_compare_exchange_strong(&deaf.first, &none, me);
        rc = rlock_fair_unlock(&deaf.lock);
    } else if (rc == ETIMEDOUT) {
        rc = 0;
    }
    if (rc != 0)
        atomic_fetch_add(&deaf.failed, 1);
    return NULL;
}

static bool has_polled(void *client)
{
    rlock_stats_t stats;
    return rlock_client_getstats(client, &stats) == 0 && stats.refreshes > 0;
}

/* The last thread's acquire looks at 64 waiters whose mailbox is not heard. The poll that
 * continues behind them comes from their own client, and needs no mailbox. */
/* rule: L5 */
START_TEST(continuation_by_poll_begins_with_the_first_ticket_of_its_client)
{
    if (!test_redis_has_channel_rules(
            "continuation_by_poll_begins_with_the_first_ticket_of_its_client"))
        return;
    pthread_t threads[DEAF];
    int names[DEAF];
    char url[128];
    memset(&deaf, 0, sizeof(deaf));
    test_redis_do(scene_redis, "ACL", "SETUSER", "deaf", "on", ">deaf", "~*", "+@all",
                  "resetchannels");
    snprintf(url, sizeof(url), "redis://deaf:deaf@127.0.0.1:%u?presence=%ld",
             (unsigned)scene_server.port, test_ms(GIVE_UP_MS));
    rlock_client_t *client = scene_open_client(url, NULL);
    scene_mutex(&deaf.lock, client, "N");
    scene_hold_by_hand("N", 600000);
    for (int i = 0; i < DEAF; i++) {
        names[i] = i + 1;
        if (i == DEAF - 1) {
            ck_assert(test_wait_until(has_polled, client, SCENE_SOON_MS)); /* connected */
            test_redis_do(scene_redis, "DEL", "N"); /* no message is sent */
        }
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_deaf, &names[i]), 0);
        if (i < DEAF - 1)
            ck_assert(scene_wait_queued("N", i + 1, SCENE_SOON_MS));
    }
    for (int i = 0; i < DEAF; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&deaf.failed), 0);
    ck_assert_int_eq(atomic_load(&deaf.first), 1);
    ck_assert_int_eq(rlock_client_close(client), 0);
    test_redis_do(scene_redis, "ACL", "DELUSER", "deaf");
}
END_TEST

static bool is_gone(void *unused)
{
    (void)unused;
    return !test_redis_exists(scene_redis, "N");
}

/* The late release of a lost hold finds more deaf waiters than it may look at, and the
 * poll that is to continue is refused. No thread of this client waits. */
START_TEST(a_continuation_that_is_refused_is_not_repeated_for_ever)
{
    char url[128], id[SCENE_ID_MAX], ticket[16], key[SCENE_KEY_MAX];
    static const char uuid[] = "00000000-0000-4000-8000-00000000000d";
    rlock_fair_t lock;
    test_redis_do(scene_redis, "ACL", "SETUSER", "weak", "on", ">weak", "~*", "&*",
                  "+@all");
    snprintf(url, sizeof(url), "redis://weak:weak@127.0.0.1:%u",
             (unsigned)scene_server.port);
    rlock_client_t *client = scene_client(url, NULL);
    scene_mutex(&lock, client, "N");
    ck_assert_int_eq(rlock_fair_lock_lease(&lock, test_ms(200)), 0);
    for (int i = 1; i <= DEAF; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:f3000", uuid, i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "queue"), ticket, id);
    }
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "present"), "99999999999999",
                  uuid);
    test_redis_do(scene_redis, "ACL", "SETUSER", "weak", "-hlen");
    ck_assert(test_wait_until(is_gone, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_fair_unlock(&lock), ESTALE);
    test_pause_ms(100); /* requests under way end */
    long long before = test_redis_calls(scene_redis, "evalsha");
    test_pause_ms(500);
    ck_assert_int_le(test_redis_calls(scene_redis, "evalsha") - before, 2);
    ck_assert_int_eq(rlock_client_close(client), 0);
    test_redis_do(scene_redis, "ACL", "DELUSER", "weak");
}
END_TEST

/* ---- polls and newcomers */

static bool is_queued(void *id)
{
    char queue[SCENE_KEY_MAX];
    scene_key(queue, "N", "queue");
    return test_redis_str(scene_redis, "ZSCORE", queue, (const char *)id) != NULL;
}

START_TEST(newcomers_do_not_delay_the_poll_of_waiters)
{
    char queue[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_waiters(1, test_ms(PRESENCE_MS));
    ck_assert(scene_waiter("N", 0, id, ticket));
    test_redis_do(scene_redis, "ZREM", scene_key(queue, "N", "queue"), id);
    int64_t begin = test_now_ms();
    while (!is_queued(id)) {
        scene_says(&w[0], "ETIMEDOUT", "on u timedlock m 100");
        ck_assert_int_lt(test_now_ms() - begin, test_ms(5 * PRESENCE_MS));
    }
}
END_TEST

/* ---- lost keys */

static void delete_keys(int which)
{
    char key[SCENE_KEY_MAX];
    if (which & 1)
        test_redis_do(scene_redis, "DEL", scene_key(key, "N", "queue"));
    if (which & 2)
        test_redis_do(scene_redis, "DEL", scene_key(key, "N", "present"));
}

/* rule: L3 */
START_TEST(waiters_whose_keys_are_deleted_all_get_the_lock)
{
    enum { WAITERS = 4 };
    int got = 0;
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_waiters(WAITERS, test_ms(PRESENCE_MS));
    int64_t begin = test_now_ms();
    delete_keys(_i);
    ck_assert_int_eq(rlock_fair_unlock(&f), 0);
    while (got < WAITERS && test_now_ms() - begin < test_ms(5000)) {
        for (int i = 0; i < WAITERS; i++) {
            if (!scene_worker_got(&w[i], 0))
                continue;
            scene_says(&w[i], "ok", "on t unlock m");
            got++;
        }
        test_pause_ms(1);
    }
    ck_assert_int_eq(got, WAITERS); /* in any order */
}
END_TEST

/* rule: S1 */
START_TEST(deleting_keys_under_load_breaks_no_exclusion_and_stops_no_waiter)
{
    enum { PROCESSES = 3, THREADS = 4 };
    char file[TEST_PATH_MAX];
    long rounds = test_count(400, 60);
    int64_t sum = 0;
    snprintf(file, sizeof(file), "%s/sum", scene_server.dir);
    int fd = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof(sum)), 0);
    for (int i = 0; i < PROCESSES; i++)
        start_worker(i, test_ms(PRESENCE_MS));
    for (int i = 0; i < PROCESSES; i++)
        for (int t = 0; t < THREADS; t++)
            scene_says(&w[i], "ok", "async t%d hammer m %ld %s", t, rounds, file);
    for (int done = 0; done < PROCESSES * THREADS;) {
        delete_keys(_i);
        for (int i = 0; i < PROCESSES; i++) {
            const char *news = worker_news(&w[i], "done", 5);
            if (!news)
                continue;
            ck_assert_msg(strstr(news, " ok"), "%s", news);
            done++;
        }
    }
    ck_assert_int_eq(pread(fd, &sum, sizeof(sum), 0), (int)sizeof(sum));
    close(fd);
    unlink(file);
    ck_assert_int_eq(sum, PROCESSES * THREADS * rounds);
}
END_TEST

/* rule: L1 */
START_TEST(release_without_the_presence_key_still_hands_over_by_message)
{
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_waiters(2, LONG_PRESENCE_MS);
    for (int i = 0; i < 2; i++) {
        delete_keys(2);
        if (i == 0)
            ck_assert_int_eq(rlock_fair_unlock(&f), 0);
        else
            scene_says(&w[0], "ok", "on t unlock m");
        ck_assert(scene_worker_got(&w[i], AT_ONCE_MS));
    }
}
END_TEST

static bool is_alone_in_presence(void *arg)
{
    char key[SCENE_KEY_MAX];
    (void)arg;
    return test_redis_int(scene_redis, "ZCARD", scene_key(key, "N", "present")) == 1;
}

START_TEST(waiters_forget_clients_that_are_gone)
{
    char key[SCENE_KEY_MAX], uuid[64], until[32];
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_waiters(1, test_ms(PRESENCE_MS));
    scene_key(key, "N", "present");
    for (int i = 0; i < MANY; i++) {
        snprintf(uuid, sizeof(uuid), "00000000-0000-4000-8000-%012d", i);
        snprintf(until, sizeof(until), "%d", 1000 + i);
        test_redis_do(scene_redis, "ZADD", key, until, uuid);
    }
    ck_assert(test_wait_until(is_alone_in_presence, NULL, 2 * PRESENCE_MS));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("fair, polls");

    TCase *polls = scene_tcase(s, "polls", open_scene, close_scene);
    tcase_add_test(polls, a_crowd_polls_by_two_requests_each_third_of_its_presence);
    tcase_add_test(polls, each_of_a_crowd_learns_that_its_ticket_was_deleted);
    tcase_add_test(polls, the_second_request_of_a_round_follows_the_first_at_once);
    tcase_add_test(polls,
                   continuation_by_poll_begins_with_the_first_ticket_of_its_client);
    tcase_add_test(polls, a_continuation_that_is_refused_is_not_repeated_for_ever);
    tcase_add_test(polls, newcomers_do_not_delay_the_poll_of_waiters);

    TCase *keys = scene_tcase(s, "lost keys", open_scene, close_scene);
    tcase_add_loop_test(keys, waiters_whose_keys_are_deleted_all_get_the_lock, 1, 4);
    tcase_add_loop_test(
        keys, deleting_keys_under_load_breaks_no_exclusion_and_stops_no_waiter, 1, 4);
    tcase_add_test(keys, release_without_the_presence_key_still_hands_over_by_message);
    tcase_add_test(keys, waiters_forget_clients_that_are_gone);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
