/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=V10,V12,V13,V16,V17,V18,V19 */
/* Conditions under faults: lost messages and replies, servers that are away or restart,
 * threads that are cancelled, processes that fork. */
#include "condscene.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STAYS_MS = 50, COMMAND_MS = 300 };

static int two_steps;

static void wake_one(void)
{
    ck_assert_int_eq(rlock_cond_signal(&c), 0);
}

/* ---- messages */

/* rule: V12 */
START_TEST(waiter_whose_message_is_lost_finds_out_by_its_poll)
{
    start_x(SCENE_TIMES(.presence = test_ms(300)));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 woken");
    wait_in(&x, "t", "wait c m");
    if (_i == 0)
        wake_one();
    else
        ck_assert_int_eq(rlock_cond_broadcast(&c), 0);
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V12 */
START_TEST(waiter_stays_present)
{
    const long presence = test_ms(300);
    start_x(SCENE_TIMES(.presence = presence));
    wait_in(&x, "t", "wait c m");
    long long before = scene_stat(&x, "refreshes");
    while (scene_stat(&x, "refreshes") < before + 7) /* twice the presence */
        test_pause_ms(presence / 6);
    wake_one();
    wait_for_signalled(1);
    wakes(&x, "t", "ok");
}
END_TEST

static void publish(const char *head, const char *id, const char *ticket,
                    const char *digits)
{
    char channel[128], text[512], uuid[64];
    snprintf(channel, sizeof(channel), "rlock:client:%s", scene_uuid(uuid, id));
    snprintf(text, sizeof(text), "%s %s %s%s C", head, id, ticket, digits);
    ck_assert_int_eq(test_redis_int(scene_redis, "PUBLISH", channel, text), 1);
}

/* rule: V11 */
START_TEST(message_with_another_ticket_wakes_nobody)
{
    char id[SCENE_ID_MAX], ticket[32];
    start_x(NULL);
    wait_in(&x, "t", "wait c m");
    ck_assert(scene_member("C", "cond", 0, id, ticket));
    long long before = scene_stat(&x, "messages");
    publish("1 woken 1", id, ticket, "0");
    ck_assert(test_wait_until(has_read, &before, SCENE_SOON_MS));
    struct sleeper s = { &x, "t" };
    ck_assert(test_stays(sleeps, &s, STAYS_MS));
    ck_assert_int_eq(scene_stat(&x, "cond_wakeups"), 0);
    publish("1 woken 1", id, ticket, "");
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V19 */
START_TEST(messages_of_unknown_kinds_change_nothing)
{
    char id[SCENE_ID_MAX], ticket[32];
    start_x(NULL);
    wait_in(&x, "t", "wait c m");
    ck_assert(scene_member("C", "cond", 0, id, ticket));
    publish("2 woken 1", id, ticket, "");
    publish("1 waken 1", id, ticket, "");
    publish("1 grant 0 0 1 1", id, ticket, "");
    struct sleeper s = { &x, "t" };
    ck_assert(test_stays(sleeps, &s, STAYS_MS));
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

/* ---- joins. _i 0: join and release are one script; 1: two, because the condition is of
 * another client than the mutex */

static enum rlk_script_id join_script(void)
{
    return two_steps ? RLK_COND_WAIT : RLK_COND_RELEASE;
}

static void start_joiner(int two)
{
    two_steps = two;
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    if (!two)
        return;
    scene_says(&x, "ok", "destroycond c");
    scene_says(&x, "ok", "open %s commandtimeout=%ld", test_proxy_url(scene_proxy),
               test_ms(COMMAND_MS));
    scene_says(&x, "ok", "cond c C");
    ck_assert(scene_wait_mailboxes(3, SCENE_SOON_MS));
}

/* rule: V1 */
START_TEST(mutex_is_given_up_only_when_the_join_was_answered)
{
    start_joiner(_i);
    int rule =
        SCENE_RULE(join_script(), .on = TEST_ON_REQUEST, .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t wait c m");
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    ck_assert_int_gt(scene_pttl("N"), 0);
    ck_assert_int_eq(waiting(), 0);
    test_proxy_release(scene_proxy, rule);
    wait_for_waiting(1);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V6 */
START_TEST(join_whose_reply_is_lost_is_repeated)
{
    start_joiner(_i);
    SCENE_RULE(join_script(), .on = TEST_ON_REPLY, .action = TEST_DROP, .count = 1);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t wait c m");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    ck_assert_int_eq(waiting(), 1);
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V1 */
START_TEST(broadcast_before_the_repeated_join_wakes)
{
    start_joiner(_i);
    int rule =
        SCENE_RULE(join_script(), .on = TEST_ON_REPLY, .action = TEST_DROP, .count = 1);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 woken");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t wait c m");
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_cond_broadcast(&c), 0);
    if (_i == 1) { /* the repeated one waits: the mutex was held all the time */
        ck_assert(scene_wait_free("N", SCENE_SOON_MS));
        ck_assert_int_eq(rlock_cond_broadcast(&c), 0);
    }
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V1 */
START_TEST(signal_before_the_answer_to_the_join_ends_the_wait_at_once)
{
    start_joiner(_i);
    int rule =
        SCENE_RULE(join_script(), .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t wait c m");
    wait_for_waiting(1);
    wake_one();
    test_proxy_release(scene_proxy, rule);
    wakes(&x, "t", "ok");
}
END_TEST

/* rule: V1 */
START_TEST(join_that_is_refused_for_memory_is_repeated)
{
    start_joiner(_i);
    scene_says(&x, "ok", "on t lock m");
    test_redis_config(scene_redis, "maxmemory", "1");
    scene_says(&x, "ok", "async t wait c m");
    struct sleeper s = { &x, "t" };
    ck_assert(test_stays(sleeps, &s, STAYS_MS));
    ck_assert_int_gt(scene_pttl("N"), 0);
    test_redis_config(scene_redis, "maxmemory", "0");
    wait_for_waiting(1);
    wake_one();
    wakes(&x, "t", "ok");
}
END_TEST

START_TEST(join_that_finds_foreign_data_leaves_the_mutex_held)
{
    start_joiner(_i);
    test_redis_do(scene_redis, "SET", COND_KEY, "foreign");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "EPROTO", "on t wait c m");
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* rule: V5 */
START_TEST(deadline_during_a_join_leaves_the_mutex_held)
{
    char before[SCENE_ID_MAX], after[SCENE_ID_MAX];
    start_joiner(_i);
    scene_says(&x, "ok", "on t lock m");
    ck_assert(scene_holder("N", before));
    SCENE_RULE(join_script(), .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ETIMEDOUT", "on t timedwait c m 50");
    scene_says(&x, "ok SAFE", "on t state m");
    ck_assert(scene_holder("N", after));
    if (_i == 1)
        ck_assert_str_eq(before, after);
    wait_for_waiting(0);
}
END_TEST

/* rule: V1 */
START_TEST(lease_that_ends_during_a_join_is_stale)
{
    start_joiner(_i);
    scene_says(&x, "ok", "on t lock m %ld", test_ms(500));
    SCENE_RULE(join_script(), .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ESTALE", "on t wait c m");
    scene_says(&x, "ok UNHELD", "on t state m");
    wait_for_waiting(0);
}
END_TEST

/* rule: V5 */
START_TEST(cancel_without_an_answer_is_finished_by_the_watchdog)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    int rule = SCENE_RULE(RLK_COND_CANCEL, .on = TEST_ON_REQUEST, .action = TEST_DROP);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ETIMEDOUT", "on t timedwait c m 50");
    ck_assert_int_ge(test_proxy_hits(scene_proxy, rule), 1);
    wait_for_waiting(0);
    ck_assert(scene_wait_count("C", "condleft", 1, SCENE_SOON_MS));
}
END_TEST

/* rule: V5 */
START_TEST(signal_that_the_waiter_has_not_heard_at_its_deadline_counts)
{
    start_x(SCENE_TIMES(.presence = 30000)); /* no poll before the deadline */
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 woken");
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async t timedwait c m %ld", test_ms(1000));
    wait_for_waiting(1);
    wake_one();
    scene_worker_ends(&x, "t", "ok");
    wait_for_signalled(1); /* it is acknowledged later */
}
END_TEST

/* ---- outages */

/* rule: V2 */
START_TEST(waits_end_when_a_connection_to_the_server_is_replaced)
{
    start_x(NULL);
    start_y(NULL);
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    test_proxy_cut(scene_proxy, 0, false);
    wakes(&x, "t", "ok");
    ck_assert_int_eq(scene_stat(&x, "cond_needless"), 1);
    ck_assert_int_eq(scene_stat(&x, "cond_wakeups"), 0);
    wait_for_waiting(1); /* x has left */
    struct sleeper s = { &y, "t" };
    ck_assert(sleeps(&s));
    wake_one();
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V4 */
START_TEST(signal_of_a_wait_that_ended_for_another_reason_is_passed_on)
{
    start_x(NULL);
    start_y(NULL);
    wait_in(&x, "t", "wait c m");
    wait_in(&y, "t", "wait c m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 woken");
    test_proxy_freeze(scene_proxy, true);
    wake_one(); /* x, which cannot hear it */
    wait_for_signalled(1);
    test_proxy_freeze(scene_proxy, false);
    scene_says(&x, "ok", "interrupt");
    scene_worker_ends(&x, "t", "ECANCELED");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V17 */
START_TEST(signal_that_reaches_no_server_is_sent_later)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    start_y(NULL);
    wait_in(&y, "t", "wait c m");
    test_proxy_set_mode(scene_proxy, TEST_PROXY_CLOSES);
    test_proxy_cut(scene_proxy, 0, false);
    scene_says(&x, "ok", _i == 0 ? "signal c" : "broadcast c");
    ck_assert_int_eq(scene_stat(&x, "signals_deferred"), 1);
    struct sleeper s = { &y, "t" };
    ck_assert(sleeps(&s));
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V17 */
START_TEST(signal_that_is_to_fail_in_an_outage_fails)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_says(&x, "ok", "cond d C outage=fail");
    start_y(NULL);
    wait_in(&y, "t", "wait c m");
    test_proxy_set_mode(scene_proxy, TEST_PROXY_CLOSES);
    test_proxy_cut(scene_proxy, 0, false);
    scene_says(&x, "ENOTCONN", "signal d");
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    scene_says(&x, "ok", "ping");
    struct sleeper s = { &y, "t" };
    ck_assert(test_stays(sleeps, &s, STAYS_MS));
}
END_TEST

/* rule: V17 */
START_TEST(process_that_ends_sends_its_signals)
{
    start_x(SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    start_y(NULL);
    wait_in(&y, "t", "wait c m");
    /* refuses every request of a caller; the watchdog's bring the script's text */
    SCENE_RULE(RLK_COND_SIGNAL, .on = TEST_ON_REQUEST, .action = TEST_DROP, .count = 1);
    scene_says(&x, "ok", "signal c");
    worker_send(&x, _i == 0 ? "quit" : "close 1");
    wakes(&y, "t", "ok");
}
END_TEST

/* rule: V10 */
START_TEST(mutex_that_fails_in_an_outage_is_not_held_afterwards)
{
    start_worker(&x, test_proxy_url(scene_proxy),
                 SCENE_TIMES(.command = test_ms(COMMAND_MS)), "outage=fail");
    wait_in(&x, "t", "wait c m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_proxy_set_mode(scene_proxy, TEST_PROXY_CLOSES);
    test_proxy_cut(scene_proxy, 0, false);
    scene_says(&x, "ok UNHELD", "state m");
    test_pause_ms(1);
    test_proxy_set_mode(scene_proxy, TEST_PROXY_OPEN);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    const char *news = worker_news(&x, "done t", SCENE_SOON_MS);
    ck_assert_ptr_nonnull(news);
    bool failed = strcmp(news, "done t ENOTCONN") == 0;
    scene_says(&x, failed ? "ok UNHELD" : "ok SAFE", "on t state m");
}
END_TEST

/* rule: V18 */
START_TEST(servers_clock_that_jumps_ahead_wakes_needlessly_at_most)
{
    start_x(NULL);
    wait_in(&x, "t", "wait c m");
    wake_one();
    /* as if the clock had jumped past the time of the signal */
    char id[SCENE_ID_MAX], score[32];
    if (scene_member("C", "cond", 0, id, score))
        test_redis_do(scene_redis, "ZADD", COND_KEY, "XX", "1000", id);
    wakes(&x, "t", "ok");
    wake_one();
    ck_assert_int_eq(waiting(), 0);
}
END_TEST

/* ---- two clients */

/* rule: V16 */
START_TEST(condition_and_mutex_may_belong_to_two_clients)
{
    rlock_client_t *other = scene_client(test_proxy_url(scene_proxy), NULL);
    rlock_cond_t theirs;
    struct timespec at = test_in_ms(CLOCK_REALTIME, 50);
    cond_of(&theirs, other, "C");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_cond_timedwait(&theirs, &m, &at), ETIMEDOUT);
    start_y(NULL);
    scene_says(&y, "ok", "async t lock m");
    scene_wait_queued("N", 1, SCENE_SOON_MS);
    if (_i == 0) {
        ck_assert_int_eq(rlock_client_interrupt(self), 0);
    } else {
        ck_assert_int_eq(rlock_client_interrupt(other), 0);
    }
    ck_assert_int_eq(rlock_cond_wait(&theirs, &m), ECANCELED);
    scene_worker_ends(&y, "t", "ok");
    ck_assert_int_eq(rlock_client_close(other), 0);
}
END_TEST

/* rule: V16 */
START_TEST(several_mutexes_may_be_used_with_one_condition)
{
    start_x(NULL);
    start_y(NULL);
    scene_says(&x, "ok", "init k K");
    scene_says(&x, "ok", "on t lock k");
    scene_says(&x, "ok", "async t wait c k");
    wait_for_waiting(1);
    wait_in(&y, "t", "wait c m");
    wake_one();
    scene_worker_ends(&x, "t", "ok");
    wake_one();
    wakes(&y, "t", "ok");
}
END_TEST

/* ---- cancellation */

struct cancelled {
    int levels;    /* of the mutex, in the clean-up handler */
    int unlocked;  /* the code of its unlock */
    bool returned; /* the wait has returned */
    bool asleep;   /* in the subscriber's place or not */
    rlock_cond_t *cond;
    rlock_mutex_t *mutex;
};

static void clean_up(void *arg)
{
    struct cancelled *k = arg;
    unsigned levels = 0;
    rlock_mutex_getholdcount(k->mutex, &levels);
    k->levels = (int)levels;
    k->unlocked = rlock_mutex_unlock(k->mutex);
}

static void *wait_until_cancelled(void *arg)
{
    struct cancelled *k = arg;
    if (rlock_mutex_lock(k->mutex) != 0)
        return NULL;
    pthread_cleanup_push(clean_up, k);
    rlock_cond_wait(k->cond, k->mutex);
    k->returned = true;
    pthread_cleanup_pop(1);
    return NULL;
}

static pthread_t start_waiting(struct cancelled *k)
{
    pthread_t thread;
    long n = (long)waiting() + 1;
    *k = (struct cancelled){ .levels = -1, .unlocked = -1, .cond = &c, .mutex = &m };
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_until_cancelled, k), 0);
    wait_for_waiting(n);
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    return thread;
}

static void assert_cancelled(pthread_t thread, const struct cancelled *k)
{
    void *result;
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, PTHREAD_CANCELED);
    ck_assert(!k->returned);
    ck_assert_int_eq(k->levels, 1);
    ck_assert_int_eq(k->unlocked, 0);
}

/* rule: V13 */
START_TEST(cancelled_thread_has_the_mutex_in_its_cleanup_handlers)
{
    struct cancelled k[2];
    pthread_t thread[2];
    thread[0] = start_waiting(&k[0]);
    thread[1] = start_waiting(&k[1]); /* one of them reads the mailbox */
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_cancel(thread[_i ? 1 - i : i]), 0);
        assert_cancelled(thread[_i ? 1 - i : i], &k[_i ? 1 - i : i]);
    }
    wait_for_waiting(0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

/* rule: V13 */
START_TEST(signal_of_a_cancelled_thread_goes_to_the_next_waiter)
{
    struct cancelled k;
    start_y(NULL);
    pthread_t thread = start_waiting(&k);
    wait_in(&y, "t", "wait c m");
    /* signalled by hand, so that no message wakes it first */
    char id[SCENE_ID_MAX], ticket[32];
    ck_assert(scene_member("C", "cond", 0, id, ticket));
    char until[32];
    snprintf(until, sizeof(until), "%lld", scene_now_ms() + 60000);
    test_redis_do(scene_redis, "ZADD", COND_KEY, "XX", until, id);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    wakes(&y, "t", "ok"); /* whether it has the mutex first or not */
    assert_cancelled(thread, &k);
}
END_TEST

/* rule: V13 */
START_TEST(thread_that_forbids_cancellation_waits_on)
{
    rlock_cond_t mine;
    int state;
    struct timespec at = test_in_ms(CLOCK_REALTIME, 50);
    cond_of(&mine, self, "C");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cancel(pthread_self());
    ck_assert_int_eq(rlock_cond_timedwait(&mine, &m, &at), ETIMEDOUT);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

/* ---- fork */

/* rule: V14 */
START_TEST(child_of_a_fork_has_no_part_in_its_parents_waits)
{
    if (!test_can_fork("child_of_a_fork_has_no_part_in_its_parents_waits"))
        return;
    start_x(NULL);
    wait_in(&x, "t", "wait c m");
    scene_says(&x, "ok", "fork destroycond c");
    const char *news = worker_news(&x, "done fork", SCENE_SOON_MS);
    ck_assert_ptr_nonnull(news);
    ck_assert_str_eq(news, "done fork ok");
    ck_assert_int_eq(waiting(), 1);
    scene_says(&x, "ok", "fork signal c"); /* a party of its own wakes the parent */
    wakes(&x, "t", "ok");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cond_faults");
    TCase *tc = scene_tcase(s, "messages", open_scene, close_scene);
    tcase_add_loop_test(tc, waiter_whose_message_is_lost_finds_out_by_its_poll, 0, 2);
    tcase_add_test(tc, waiter_stays_present);
    tcase_add_test(tc, message_with_another_ticket_wakes_nobody);
    tcase_add_test(tc, messages_of_unknown_kinds_change_nothing);
    tc = scene_tcase(s, "join", open_scene, close_scene);
    tcase_add_loop_test(tc, mutex_is_given_up_only_when_the_join_was_answered, 0, 2);
    tcase_add_loop_test(tc, join_whose_reply_is_lost_is_repeated, 0, 2);
    tcase_add_loop_test(tc, broadcast_before_the_repeated_join_wakes, 0, 2);
    tcase_add_loop_test(tc, signal_before_the_answer_to_the_join_ends_the_wait_at_once, 0,
                        2);
    tcase_add_loop_test(tc, join_that_is_refused_for_memory_is_repeated, 0, 2);
    tcase_add_loop_test(tc, join_that_finds_foreign_data_leaves_the_mutex_held, 0, 2);
    tcase_add_loop_test(tc, deadline_during_a_join_leaves_the_mutex_held, 0, 2);
    tcase_add_loop_test(tc, lease_that_ends_during_a_join_is_stale, 0, 2);
    tcase_add_test(tc, cancel_without_an_answer_is_finished_by_the_watchdog);
    tcase_add_test(tc, signal_that_the_waiter_has_not_heard_at_its_deadline_counts);
    tc = scene_tcase(s, "outage", open_scene, close_scene);
    tcase_add_test(tc, waits_end_when_a_connection_to_the_server_is_replaced);
    tcase_add_test(tc, signal_of_a_wait_that_ended_for_another_reason_is_passed_on);
    tcase_add_loop_test(tc, signal_that_reaches_no_server_is_sent_later, 0, 2);
    tcase_add_test(tc, signal_that_is_to_fail_in_an_outage_fails);
    tcase_add_loop_test(tc, process_that_ends_sends_its_signals, 0, 2);
    tcase_add_test(tc, mutex_that_fails_in_an_outage_is_not_held_afterwards);
    tcase_add_test(tc, servers_clock_that_jumps_ahead_wakes_needlessly_at_most);
    tc = scene_tcase(s, "clients", open_scene, close_scene);
    tcase_add_loop_test(tc, condition_and_mutex_may_belong_to_two_clients, 0, 2);
    tcase_add_test(tc, several_mutexes_may_be_used_with_one_condition);
    tc = scene_tcase(s, "cancel", open_scene, close_scene);
    tcase_add_loop_test(tc, cancelled_thread_has_the_mutex_in_its_cleanup_handlers, 0, 2);
    tcase_add_test(tc, signal_of_a_cancelled_thread_goes_to_the_next_waiter);
    tcase_add_test(tc, thread_that_forbids_cancellation_waits_on);
    tc = scene_tcase(s, "fork", open_scene, close_scene);
    tcase_add_test(tc, child_of_a_fork_has_no_part_in_its_parents_waits);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
