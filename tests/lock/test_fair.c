/* SPDX-License-Identifier: Apache-2.0 */
/* program: lock=fair claims=L5 */
/*
 * What is special about the fair lock: who comes first, places in the queue, and what
 * others see of them. Dead and stopped processes are in test_fair_gone.c; polls and lost
 * keys are in test_fair_polls.c. What the fair lock shares with the mutex is tested by
 * the mutex's programs, built once more (as_fair.h, which is included before this file,
 * too: scene_mutex makes a fair handle, and a worker's "m" is one).
 *
 * `f` is a handle of `self`, a client of this process; `w` are workers. With
 * LONG_PRESENCE_MS, a waiter that gets no message finds out only after 10 s.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 6,
    LONG_PRESENCE_MS = 30000,
    AT_ONCE_MS = 1500,
    STAYS_MS = 100,
    MANY = 130
};

static rlock_client_t *self;
static rlock_fair_t f;
static struct worker w[WORKERS];

static void open_scene(void)
{
    scene_open();
    memset(w, 0, sizeof(w));
    self = scene_client(scene_server.url, SCENE_TIMES(.presence = LONG_PRESENCE_MS));
    scene_mutex(&f, self, "N");
}

static void close_scene(void)
{
    for (int i = 0; i < WORKERS; i++)
        worker_end(&w[i]);
    rlock_fair_unlock(&f);
    rlock_client_close(self);
    scene_close();
}

static void start_worker(int i, long presence, const char *options)
{
    scene_worker(&w[i], scene_server.url, SCENE_TIMES(.presence = presence), "N",
                 options);
}

/* Makes `n` workers wait, in the order of w. */
static void start_waiters(int n, long presence)
{
    for (int i = 0; i < n; i++) {
        start_worker(i, presence, "");
        scene_worker_waits(&w[i], "N", i + 1);
    }
}

static bool holder_is(const char *id)
{
    char holder[SCENE_ID_MAX];
    return scene_holder("N", holder) && strcmp(holder, id) == 0;
}

static bool no_news(void *worker)
{
    return !worker_news(worker, "done t", 0);
}

static int take_by_past_deadline(void)
{
    static const struct timespec epoch = { 0, 0 };
    return rlock_fair_timedlock(&f, &epoch);
}

/* ---- no waiter is passed */

/* The lock is free, and a live waiter does not know it: it is stopped, with its
 * connections open. */
static void free_it_before_a_live_waiter(char id[SCENE_ID_MAX])
{
    char ticket[32];
    scene_hold_by_hand("N", 600000);
    start_waiters(1, LONG_PRESENCE_MS);
    ck_assert(scene_waiter("N", 0, id, ticket));
    worker_stop(&w[0]);
    test_redis_do(scene_redis, "DEL", "N");
}

/* rule: L5 */
START_TEST(trylock_returns_EBUSY_on_a_free_lock_with_a_waiter)
{
    char id[SCENE_ID_MAX];
    free_it_before_a_live_waiter(id);
    ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
    ck_assert(holder_is(id));
    ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
    ck_assert_int_eq(scene_queue_len("N"), 0); /* a try does not queue */
    worker_cont(&w[0]);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
}
END_TEST

/* rule: L5 */
START_TEST(past_deadline_returns_ETIMEDOUT_on_a_free_lock_with_a_waiter)
{
    char id[SCENE_ID_MAX];
    free_it_before_a_live_waiter(id);
    ck_assert_int_eq(take_by_past_deadline(), ETIMEDOUT);
    ck_assert(holder_is(id));
    worker_cont(&w[0]);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
}
END_TEST

/* rule: L5 */
START_TEST(lock_queues_behind_the_waiters_of_a_free_lock)
{
    char id[SCENE_ID_MAX];
    free_it_before_a_live_waiter(id);
    start_worker(1, LONG_PRESENCE_MS, "");
    scene_says(&w[1], "ok", "async t lock m");
    ck_assert(scene_wait_held("N", SCENE_SOON_MS));
    ck_assert(holder_is(id));
    ck_assert_int_eq(scene_queue_len("N"), 1);
    worker_cont(&w[0]);
    ck_assert(scene_worker_got(&w[0], SCENE_SOON_MS));
    ck_assert(test_stays(no_news, &w[1], STAYS_MS));
    scene_says(&w[0], "ok", "on t unlock m");
    ck_assert(scene_worker_got(&w[1], AT_ONCE_MS));
}
END_TEST

/* rule: L5 */
START_TEST(thread_does_not_overtake_another_of_its_process)
{
    scene_hold_by_hand("N", 600000);
    start_waiters(1, LONG_PRESENCE_MS);
    test_redis_do(scene_redis, "DEL", "N");
    scene_says(&w[0], "EBUSY", "on u trylock m");
    ck_assert(scene_worker_got(&w[0], AT_ONCE_MS));
}
END_TEST

static bool only_self_listens(void *arg)
{
    (void)arg;
    return test_redis_info(scene_redis, "pubsub_channels") == 1;
}

/* rule: L2 */
START_TEST(trylock_takes_a_free_lock_whose_waiters_are_dead)
{
    scene_hold_by_hand("N", 600000);
    start_waiters(3, LONG_PRESENCE_MS);
    for (int i = 0; i < 3; i++)
        worker_kill(&w[i]);
    ck_assert(test_wait_until(only_self_listens, NULL, SCENE_SOON_MS));
    test_redis_do(scene_redis, "DEL", "N");
    ck_assert_int_eq(_i ? take_by_past_deadline() : rlock_fair_trylock(&f), 0);
}
END_TEST

/* Queues waiters without a mailbox, more than one script looks at; present or not. */
static void queue_many(bool present)
{
    char queue[SCENE_KEY_MAX], key[SCENE_KEY_MAX], id[SCENE_ID_MAX], ticket[32];
    static const char uuid[] = "00000000-0000-4000-8000-00000000000d";
    scene_key(queue, "N", "queue");
    for (int i = 1; i <= MANY; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:f3000", uuid, i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(scene_redis, "ZADD", queue, ticket, id);
    }
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "present"),
                  present ? "99999999999999" : "1", uuid);
}

/* rule: L2 */
START_TEST(all_forms_take_a_free_lock_with_more_dead_waiters_than_a_script_skips)
{
    bool present = _i & 1;
    queue_many(present);
    int64_t begin = test_now_ms();
    ck_assert_int_eq(_i / 2 == 0   ? rlock_fair_trylock(&f)
                     : _i / 2 == 1 ? take_by_past_deadline()
                                   : rlock_fair_lock(&f),
                     0);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(AT_ONCE_MS));
    ck_assert_int_eq(scene_queue_len("N"), present ? MANY : 0);
    ck_assert_int_eq(rlock_fair_unlock(&f), 0);
}
END_TEST

/* ---- places */

/* rule: L5 */
START_TEST(each_waiting_thread_has_a_ticket_and_is_served_in_its_order)
{
    enum { THREADS = 20 };
    char tag[32], id[SCENE_ID_MAX], ticket[32], last[SCENE_ID_MAX] = "";
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_worker(0, LONG_PRESENCE_MS, "");
    long long before = test_redis_info(scene_redis, "connected_clients");
    for (int i = 0; i < THREADS; i++) {
        scene_says(&w[0], "ok", "async t%d lock m", i);
        ck_assert(scene_wait_queued("N", i + 1, SCENE_SOON_MS));
        ck_assert(scene_waiter("N", i, id, ticket));
        ck_assert_str_ne(id, last);
        strcpy(last, id);
    }
    /* the watchdog's connection, and those of threads that asked at the same time: a
     * waiting thread keeps none */
    ck_assert_int_le(test_redis_info(scene_redis, "connected_clients"),
                     before + 1 + THREADS / 4);
    ck_assert_int_eq(rlock_fair_unlock(&f), 0);
    for (int i = 0; i < THREADS; i++) {
        snprintf(tag, sizeof(tag), "done t%d ok", i);
        ck_assert(worker_news(&w[0], tag, AT_ONCE_MS));
        ck_assert_int_eq(scene_queue_len("N"), THREADS - 1 - i);
        ck_assert(!worker_news(&w[0], "done", 0)); /* only that thread */
        scene_says(&w[0], "ok", "on t%d unlock m", i);
    }
}
END_TEST

/* rule: L5 */
START_TEST(timed_out_waiter_leaves_the_queue_and_the_others_move_up)
{
    char head[SCENE_ID_MAX], next[SCENE_ID_MAX], id[SCENE_ID_MAX], ticket[32], later[32];
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_worker(0, LONG_PRESENCE_MS, "");
    scene_worker_waits(&w[0], "N", 1);
    ck_assert(scene_waiter("N", 0, head, ticket));
    scene_says(&w[0], "ok", "async u timedlock m %ld", test_ms(1000));
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    start_worker(1, LONG_PRESENCE_MS, "");
    scene_worker_waits(&w[1], "N", 3);
    ck_assert(scene_waiter("N", 2, next, ticket));
    ck_assert(worker_news(&w[0], "done u ETIMEDOUT", SCENE_SOON_MS));
    ck_assert(scene_wait_queued("N", 2, SCENE_SOON_MS));
    ck_assert(scene_waiter("N", 1, id, later));
    ck_assert_str_eq(id, next); /* one place ahead, with the same ticket */
    ck_assert_str_eq(later, ticket);
    ck_assert_int_eq(rlock_fair_unlock(&f), 0);
    ck_assert(scene_worker_got(&w[0], AT_ONCE_MS));
    ck_assert(holder_is(head));
    scene_says(&w[0], "ok", "on t unlock m");
    ck_assert(scene_worker_got(&w[1], AT_ONCE_MS));
    ck_assert(holder_is(next));
}
END_TEST

/* rule: L5 */
START_TEST(second_waiter_is_first_after_the_first_timed_out)
{
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_worker(0, LONG_PRESENCE_MS, "");
    start_worker(1, LONG_PRESENCE_MS, "");
    scene_says(&w[0], "ok", "async t timedlock m %ld", test_ms(600));
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    scene_worker_waits(&w[1], "N", 2);
    ck_assert(worker_news(&w[0], "done t ETIMEDOUT", SCENE_SOON_MS));
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_fair_unlock(&f), 0);
    ck_assert(scene_worker_got(&w[1], AT_ONCE_MS));
    scene_says(&w[1], "ok", "on t unlock m");
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

START_TEST(an_interrupt_ends_the_wait_of_every_thread_and_empties_the_queue)
{
    enum { THREADS = 5 };
    char tag[32];
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    start_worker(0, LONG_PRESENCE_MS, "");
    for (int i = 0; i < THREADS; i++)
        scene_says(&w[0], "ok", "async t%d lock m", i);
    ck_assert(scene_wait_queued("N", THREADS, SCENE_SOON_MS));
    scene_says(&w[0], "ok", "interrupt");
    for (int i = 0; i < THREADS; i++) {
        snprintf(tag, sizeof(tag), "done t%d ECANCELED", i);
        ck_assert(worker_news(&w[0], tag, SCENE_SOON_MS));
    }
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
}
END_TEST

/* ---- S5 */

/* rule: S5 */
START_TEST(mutex_and_fair_lock_exclude_each_other_and_hand_over)
{
    start_worker(0, LONG_PRESENCE_MS, "");
    scene_says(&w[0], "ok", "init mutex N");
    scene_says(&w[0], "ok", "on t lock mutex");
    ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
    start_worker(1, LONG_PRESENCE_MS, "");
    scene_worker_waits(&w[1], "N", 1);
    scene_says(&w[0], "ok", "on t unlock mutex");
    ck_assert(scene_worker_got(&w[1], AT_ONCE_MS)); /* the fair lock */
    scene_says(&w[0], "EBUSY", "on t trylock mutex");
    scene_says(&w[0], "ok", "async t lock mutex");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    scene_says(&w[1], "ok", "on t unlock m");
    ck_assert(scene_worker_got(&w[0], AT_ONCE_MS)); /* the mutex */
    ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
    scene_says(&w[0], "ok", "on t unlock mutex");
    ck_assert_int_eq(rlock_fair_trylock(&f), 0);
}
END_TEST

/* rule: S5 */
START_TEST(mutex_and_fair_lock_of_one_process_are_two_holders_of_a_name)
{
    start_worker(0, LONG_PRESENCE_MS, "");
    scene_says(&w[0], "ok", "init mutex N");
    for (int i = 0; i < 2; i++) {
        const char *first = i ? "m" : "mutex", *second = i ? "mutex" : "m";
        scene_says(&w[0], "ok", "on t lock %s", first);
        scene_says(&w[0], "EBUSY", "on t trylock %s", second);
        scene_says(&w[0], "ETIMEDOUT", "on t timedlock %s 50", second);
        scene_says(&w[0], "EPERM", "on t unlock %s", second);
        scene_says(&w[0], "ok", "on t unlock %s", first);
    }
}
END_TEST

/* rule: S5 */
START_TEST(redisson_lock_excludes_the_fair_lock_which_comes_after_it)
{
    static const char field[] = "8743c9c0-0795-4907-87fd-6c719a6b4586:52";
    char ttl[32];
    snprintf(ttl, sizeof(ttl), "%ld", test_ms(400));
    start_worker(0, LONG_PRESENCE_MS, "");
    for (int released = 0; released < 2; released++) {
        test_redis_do(scene_redis, "HINCRBY", "N", field, "1");
        test_redis_do(scene_redis, "PEXPIRE", "N", released ? "600000" : ttl);
        ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
        ck_assert_int_eq(take_by_past_deadline(), ETIMEDOUT);
        scene_worker_waits(&w[0], "N", 1);
        if (released) {
            /* as Redisson's unlock does, once the waiter listens to that channel */
            static const char channel[] = "redisson_lock__channel:{N}";
            while (test_redis_do(scene_redis, "PUBSUB", "NUMSUB", channel)
                       ->element[1]
                       ->integer == 0)
                test_pause_ms(1);
            test_redis_do(scene_redis, "DEL", "N");
            test_redis_do(scene_redis, "PUBLISH", channel, "0");
        }
        ck_assert(scene_worker_got(&w[0], AT_ONCE_MS));
        ck_assert_int_eq(rlock_fair_trylock(&f), EBUSY);
        scene_says(&w[0], "ok", "on t unlock m");
    }
}
END_TEST

/* ---- what others see, and may do */

static void assert_inspected(size_t holders, long waiters)
{
    char id[SCENE_ID_MAX], ticket[32];
    rlock_info_t *info = NULL;
    ck_assert_int_eq(rlock_inspect(self, "N", &info), 0);
    ck_assert_int_eq(info->type, RLOCK_TYPE_FAIR);
    ck_assert_uint_eq(info->holder_count, holders);
    ck_assert_uint_eq(info->waiter_count, (size_t)waiters);
    for (long i = 0; i < waiters; i++) {
        ck_assert(scene_waiter("N", i, id, ticket));
        ck_assert_str_eq(info->waiters[i].owner, id);
    }
    rlock_info_free(info);
}

START_TEST(inspection_shows_the_type_and_the_waiters_in_the_order_of_their_tickets)
{
    enum { WAITERS = 4 };
    ck_assert_int_eq(rlock_fair_lock(&f), 0);
    assert_inspected(1, 0);
    for (int i = 0; i < 2; i++)
        start_worker(i, LONG_PRESENCE_MS, "");
    for (int i = 0; i < WAITERS; i++) {
        scene_says(&w[i % 2], "ok", "async t%d lock m", i);
        ck_assert(scene_wait_queued("N", i + 1, SCENE_SOON_MS));
    }
    assert_inspected(1, WAITERS);
    test_redis_do(scene_redis, "DEL", "N"); /* the type is that of the first waiter */
    assert_inspected(0, WAITERS);
    ck_assert_int_eq(rlock_fair_unlock(&f), ESTALE);
}
END_TEST

START_TEST(force_unlock_hands_over_to_the_first_and_the_victim_sees_ESTALE)
{
    char id[SCENE_ID_MAX], ticket[32];
    start_worker(2, LONG_PRESENCE_MS, "");
    scene_says(&w[2], "ok", "on t lock m");
    start_waiters(2, LONG_PRESENCE_MS);
    ck_assert(scene_waiter("N", 0, id, ticket));
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    ck_assert(scene_worker_got(&w[0], AT_ONCE_MS));
    ck_assert(holder_is(id));
    ck_assert(worker_news(&w[2], "event LOST N", AT_ONCE_MS));
    scene_says(&w[2], "ok LOST", "on t state m");
    scene_says(&w[2], "ESTALE", "on t unlock m");
    ck_assert(holder_is(id)); /* the victim's unlock did not touch it */
    ck_assert(test_stays(no_news, &w[1], STAYS_MS));
    scene_says(&w[0], "ok", "on t unlock m");
    ck_assert(scene_worker_got(&w[1], AT_ONCE_MS));
}
END_TEST

/* rule: S3 */
START_TEST(tokens_grow_from_grant_to_grant)
{
    long long last = 0;
    start_worker(WORKERS - 1, LONG_PRESENCE_MS, "fencing=1");
    scene_says(&w[WORKERS - 1], "ok", "on t lock m");
    last = worker_number(&w[WORKERS - 1], "on t token m");
    for (int i = 0; i < WORKERS - 1; i++) {
        start_worker(i, LONG_PRESENCE_MS, "fencing=1");
        scene_worker_waits(&w[i], "N", i + 1);
    }
    scene_says(&w[WORKERS - 1], "ok", "on t unlock m");
    for (int i = 0; i < WORKERS - 1; i++) {
        ck_assert(scene_worker_got(&w[i], AT_ONCE_MS));
        long long token = worker_number(&w[i], "on t token m");
        ck_assert_int_gt(token, last);
        last = token;
        scene_says(&w[i], "ok", "on t unlock m");
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("fair");

    TCase *first = scene_tcase(s, "first", open_scene, close_scene);
    tcase_add_test(first, trylock_returns_EBUSY_on_a_free_lock_with_a_waiter);
    tcase_add_test(first, past_deadline_returns_ETIMEDOUT_on_a_free_lock_with_a_waiter);
    tcase_add_test(first, lock_queues_behind_the_waiters_of_a_free_lock);
    tcase_add_test(first, thread_does_not_overtake_another_of_its_process);
    tcase_add_loop_test(first, trylock_takes_a_free_lock_whose_waiters_are_dead, 0, 2);
    tcase_add_loop_test(
        first, all_forms_take_a_free_lock_with_more_dead_waiters_than_a_script_skips, 0,
        6);

    TCase *places = scene_tcase(s, "places", open_scene, close_scene);
    tcase_add_test(places, each_waiting_thread_has_a_ticket_and_is_served_in_its_order);
    tcase_add_test(places, timed_out_waiter_leaves_the_queue_and_the_others_move_up);
    tcase_add_test(places, second_waiter_is_first_after_the_first_timed_out);
    tcase_add_test(places,
                   an_interrupt_ends_the_wait_of_every_thread_and_empties_the_queue);

    TCase *s5 = scene_tcase(s, "S5", open_scene, close_scene);
    tcase_add_test(s5, mutex_and_fair_lock_exclude_each_other_and_hand_over);
    tcase_add_test(s5, mutex_and_fair_lock_of_one_process_are_two_holders_of_a_name);
    tcase_add_test(s5, redisson_lock_excludes_the_fair_lock_which_comes_after_it);

    TCase *others = scene_tcase(s, "others", open_scene, close_scene);
    tcase_add_test(
        others, inspection_shows_the_type_and_the_waiters_in_the_order_of_their_tickets);
    tcase_add_test(others,
                   force_unlock_hands_over_to_the_first_and_the_victim_sees_ESTALE);
    tcase_add_test(others, tokens_grow_from_grant_to_grant);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
