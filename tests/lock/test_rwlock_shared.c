/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=W23,W24 */
/*
 * Threads of one process that read at the same time: they share one hold at the server
 * (W21-W24), which is made, renewed and released with them. How it is lost is in
 * test_rwlock_leases.c.
 */
#include "net/script.h"

#include "proxy.h"
#include "rwactors.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, CROWD = 50, MANY = 260 };

#define CANCELLED "rlock:{n}:cancelled"

static void tear_down_proxy(void)
{
    tear_down();
    test_proxy_stop(proxy);
    proxy = NULL;
}

/* Puts a client with these parameters behind the proxy, as `client`. */
static void go_behind_proxy(const char *parameters)
{
    close_client(client);
    proxy = test_proxy_start(&server);
    client = open_at(test_proxy_url(proxy), parameters);
    l = rwlock_of(client, "n");
}

#define RULE(script, ...)                                                                \
    TEST_RULE(proxy, .contains = rlk_scripts[script].sha, __VA_ARGS__)

static long long requests(void)
{
    return test_redis_calls(redis, "evalsha") + test_redis_calls(redis, "eval");
}

static int readers(void)
{
    return (int)test_redis_int(redis, "ZCARD", READERS);
}

/* The i-th member of a sorted set; valid until the next call. */
static const char *member(const char *key, const char *i)
{
    static char id[128];
    const redisReply *r = test_redis_do(redis, "ZRANGE", key, i, i);
    snprintf(id, sizeof(id), "%s", r->elements == 1 ? r->element[0]->str : "");
    return id;
}

/* ---- what actors do */

static int run_tryrdlock(void *lock)
{
    return rlock_rwlock_tryrdlock(lock);
}

static int run_rdlock_fixed(void *lock)
{
    return rlock_rwlock_rdlock_lease(lock, 60000);
}

static int run_rdlock_soon(void *lock) /* gives up too soon */
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 500);
    return rlock_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &at);
}

static int run_has_token(void *lock)
{
    uint64_t token = 0;
    return rlock_rwlock_gettoken(lock, &token);
}

/* Asserts by another client that nobody may write now. */
#define CLOSED() EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY)
/* Asserts that nobody reads any more. */
#define ENDED()                                                                          \
    ck_assert(!test_redis_exists(redis, "n") && !test_redis_exists(redis, READERS))

/* ---- one hold for all */

/* rule: W21 */
START_TEST(threads_that_read_are_one_reader_at_the_server)
{
    long long before = requests();
    OK(rlock_rwlock_rdlock(&l));
    ck_assert_int_eq((int)(requests() - before), 1);
    OK(actor_does(&actor[0], run_rdlock, &l));
    ck_assert_int_eq((int)(requests() - before), 2); /* a newcomer costs one round trip */
    OK(actor_does(&actor[1], run_tryrdlock, &l));
    OK(actor_does(&actor[1], run_rdlock, &l));
    ck_assert_int_eq((int)(requests() - before), 3);
    ck_assert_int_eq(readers(), 1);
    ck_assert_uint_eq(stats_of(client).holds_now, 1);
    ck_assert_int_eq(run_rwholdcount(&l), 1);
    ck_assert_int_eq(actor_does(&actor[1], run_rwholdcount, &l), 2);
    ck_assert_int_eq(actor_does(&actor[2], run_rwholdcount, &l), 0);
    EXPECT(actor_does(&actor[2], run_rwunlock, &l), EPERM);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

START_TEST(the_last_one_out_releases)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock, &l));
    long long before = requests();
    OK(rlock_rwlock_unlock(&l));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ck_assert_int_eq((int)(requests() - before), 0);
    ck_assert_int_eq(readers(), 1);
    EXPECT(rlock_rwlock_unlock(&l), EPERM);
    CLOSED();
    before = requests();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ck_assert_int_eq((int)(requests() - before), 1);
    ENDED();
}
END_TEST

START_TEST(longest_lease_is_that_of_all_and_only_fencing_gives_tokens)
{
    rlock_rwlock_t fenced = rwlock_with(client, "n", -1, 1), longer = l;
    longer.rlk.rlk_lease_ms = 60000;
    OK(rlock_rwlock_rdlock(&l));
    ck_assert_int_le(run_rwremaining(&l), 30000);
    OK(actor_does(&actor[0], run_rdlock, &longer));
    ck_assert_int_gt(run_rwremaining(&l), 60000 - test_ms(5000));
    OK(actor_does(&actor[1], run_rdlock, &fenced));
    ck_assert_int_eq(readers(), 1);
    OK(actor_does(&actor[1], run_has_token, &fenced));
    OK(actor_does(&actor[1], run_has_token, &l)); /* another handle of the same lock */
    EXPECT(run_has_token(&fenced), ENOTSUP);
    OK(actor_does(&actor[2], run_rdlock_fixed, &l));
    ck_assert_int_eq(readers(), 2); /* a fixed lease has an id of its own */
    for (int i = 0; i < ACTORS; i++)
        OK(actor_does(&actor[i], run_rwunlock, &l));
    OK(rlock_rwlock_unlock(&l));
    ENDED();
}
END_TEST

/* The reading is gone, by force, say, and no message came. A later reading is no
 * continuation of it. */
START_TEST(extend_by_a_sharing_reader_returns_ESTALE_when_the_reading_was_forced)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    test_redis_do(redis, "DEL", "n", READERS);
    if (_i == 1)
        OK(rlock_rwlock_rdlock(&theirs));
    if (_i == 2)
        OK(rlock_rwlock_wrlock(&theirs));
    EXPECT(rlock_rwlock_extend(&l, 60000), ESTALE);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    EXPECT(actor_does(&actor[0], run_rwunlock, &l), ESTALE);
    if (_i > 0)
        OK(rlock_rwlock_unlock(&theirs));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* The server's clock has stepped since it was last read. The refusal carries the new
 * time. */
START_TEST(extend_by_a_sharing_reader_is_repeated_when_refused_as_late)
{
    struct timespec now;
    char late[128];
    go_behind_proxy("");
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(late, sizeof(late),
             "*9\r\n:%lld\r\n:30000\r\n:0\r\n:0\r\n$4\r\nlate\r\n:-1\r\n:0\r\n$0\r\n\r\n"
             ":0\r\n",
             now.tv_sec * 1000000LL + now.tv_nsec / 1000);
    int rule = RULE(RLK_RWLOCK_READ, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                    .text = late, .count = 2);
    OK(rlock_rwlock_extend(&l, 60000));
    ck_assert_uint_eq(test_proxy_hits(proxy, rule), 2);
    ck_assert_int_eq(readers(), 2);
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(rlock_rwlock_unlock(&l));
    ENDED();
}
END_TEST

START_TEST(downgraded_hold_is_left_to_its_thread)
{
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_downgrade(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock, &l));
    ck_assert_int_eq(readers(), 2);
    OK(rlock_rwlock_unlock(&l));
    ck_assert_int_eq(readers(), 1);
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ENDED();
}
END_TEST

/* ---- a join in flight counts (W22) */

/* rule: W22 */
START_TEST(join_in_flight_prolongs_the_hold)
{
    go_behind_proxy("");
    OK(rlock_rwlock_rdlock(&l));
    int rule = RULE(RLK_RWLOCK_READ, .on = _i ? TEST_ON_REPLY : TEST_ON_REQUEST,
                    .action = TEST_HOLD, .count = 1);
    actor_begin(&actor[0], run_rdlock, &l);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    OK(rlock_rwlock_unlock(&l)); /* the last one inside */
    ck_assert_int_eq(run_rwstate(&l), RLOCK_UNHELD);
    CLOSED();
    ck_assert_int_eq(readers(), 1);
    test_proxy_release(proxy, rule);
    OK(actor_rc(&actor[0]));
    ck_assert_int_eq(actor_does(&actor[0], run_rwstate, &l), RLOCK_SAFE);
    ck_assert_int_eq(readers(), 1);
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ck_assert(wait_key("n", false, SOON_MS));
    OK(rlock_rwlock_trywrlock(&theirs));
    OK(rlock_rwlock_unlock(&theirs));
}
END_TEST

/* rule: W22 */
START_TEST(join_that_comes_to_queue_behind_a_writer_gives_the_unused_hold_back)
{
    go_behind_proxy("");
    OK(rlock_rwlock_rdlock(&l));
    int rule = RULE(RLK_RWLOCK_READ, .action = TEST_HOLD, .count = 1);
    actor_begin(&actor[0], run_rdlock, &l);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    actor_begin(&actor[1], run_wrlock, &theirs);
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    OK(rlock_rwlock_unlock(&l));
    ck_assert(!actor_done(&actor[1], 0));
    test_proxy_release(proxy, rule);
    OK(actor_rc(&actor[1])); /* the unused hold was released by itself */
    ck_assert(!actor_done(&actor[0], 0));
    ck_assert_str_eq(test_redis_str(redis, "HGET", "n", "mode"), "rlock:write");
    OK(actor_does(&actor[1], run_rwunlock, &theirs));
    OK(actor_rc(&actor[0]));
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

/* ---- unknown outcomes of a join (W21) */

/* The first request or its reply is lost with the connection. The request is repeated. */
/* rule: W21 */
START_TEST(join_of_unknown_outcome_is_cancelled_and_leaves_no_ghost)
{
    go_behind_proxy("");
    OK(rlock_rwlock_rdlock(&l));
    int rule = RULE(RLK_RWLOCK_READ, .on = _i % 2 ? TEST_ON_REPLY : TEST_ON_REQUEST,
                    .action = TEST_CUT, .count = 1);
    OK(actor_does(&actor[0], _i < 2 ? run_rdlock : run_tryrdlock, &l));
    ck_assert_uint_eq(test_proxy_hits(proxy, rule), 1);
    /* the first request can take nothing any more */
    ck_assert(wait_key(CANCELLED, true, SOON_MS));
    ck_assert_int_eq(readers(), 1);
    OK(rlock_rwlock_unlock(&l));
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ENDED();
}
END_TEST

/* rule: W21 */
START_TEST(join_that_comes_late_takes_nothing)
{
    char parameters[32];
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld", test_ms(200));
    go_behind_proxy(parameters);
    OK(rlock_rwlock_rdlock(&l));
    int rule = RULE(RLK_RWLOCK_READ, .action = TEST_HOLD, .count = 1);
    OK(actor_does(&actor[0], run_rdlock, &l)); /* by the second request */
    OK(rlock_rwlock_unlock(&l));
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ck_assert(wait_key("n", false, SOON_MS));
    test_proxy_release(proxy, rule);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    ENDED();
}
END_TEST

/* ---- waiting together (W23) */

/* rule: W23 */
START_TEST(threads_that_wait_to_read_enter_together)
{
    OK(rlock_rwlock_wrlock(&theirs));
    for (int i = 0; i < ACTORS; i++)
        actor_begin(&actor[i], run_rdlock, &l);
    ck_assert(wait_waiters(client, ACTORS));
    ck_assert(wait_size(RQUEUE, 1));
    OK(rlock_rwlock_unlock(&theirs));
    for (int i = 0; i < ACTORS; i++)
        OK(actor_rc(&actor[i]));
    ck_assert_uint_eq(stats_of(client).grants, 1); /* for all threads */
    ck_assert_int_eq(readers(), 1);
    ck_assert_uint_eq(stats_of(client).acquisitions, ACTORS);
    for (int i = 0; i < ACTORS; i++) {
        CLOSED();
        OK(actor_does(&actor[i], run_rwunlock, &l));
    }
    ENDED();
}
END_TEST

static atomic_int stalled; /* 1: a thread must stall, 2: it stalls */

static void stall(int number)
{
    (void)number;
    atomic_store(&stalled, 2);
    while (atomic_load(&stalled) != 0)
        sched_yield();
}

static bool is_stalled(void *arg)
{
    (void)arg;
    return atomic_load(&stalled) == 2;
}

/* The thread did not run in between, so that it never had the lost hold. It asks
 * again. */
START_TEST(reader_admitted_to_a_lost_hold_gets_no_success)
{
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = stall;
    sigaction(SIGUSR1, &action, &old);
    OK(rlock_rwlock_wrlock(&theirs));
    actor_begin(&actor[0], run_rdlock, &l);
    ck_assert(wait_size(RQUEUE, 1)); /* this thread asks */
    actor_begin(&actor[1], run_rdlock, &l);
    ck_assert(wait_waiters(client, 2));
    atomic_store(&stalled, 1);
    pthread_kill(actor[1].thread, SIGUSR1);
    ck_assert(test_wait_until(is_stalled, NULL, SOON_MS));
    OK(rlock_rwlock_unlock(&theirs));
    OK(actor_rc(&actor[0]));
    OK(rlock_force_unlock(other, "n"));
    const struct told *told = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert(pthread_equal(told->thread, actor[0].thread));
    ck_assert_ptr_null(event_of(RLOCK_EVENT_LOST, 200));
    atomic_store(&stalled, 0);
    OK(actor_rc(&actor[1]));
    EXPECT(actor_does(&actor[0], run_rwunlock, &l), ESTALE);
    CLOSED();
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ENDED();
    sigaction(SIGUSR1, &old, NULL);
}
END_TEST

/* _i 0: the thread that asked gives up; 1: the thread that joined it. */
/* rule: T7 */
START_TEST(reader_that_gives_up_leaves_its_place_to_the_others)
{
    OK(rlock_rwlock_wrlock(&theirs));
    actor_begin(&actor[0], _i ? run_rdlock : run_rdlock_soon, &l);
    ck_assert(wait_size(RQUEUE, 1));
    char id[128];
    snprintf(id, sizeof(id), "%s", member(RQUEUE, "0"));
    actor_begin(&actor[1], _i ? run_rdlock_soon : run_rdlock, &l);
    EXPECT(actor_rc(&actor[_i]), ETIMEDOUT);
    ck_assert(wait_waiters(client, 1));
    ck_assert_str_eq(member(RQUEUE, "0"), id);
    ck_assert(!actor_done(&actor[1 - _i], 0));
    OK(rlock_rwlock_unlock(&theirs));
    OK(actor_rc(&actor[1 - _i]));
    ck_assert_str_eq(member(READERS, "0"), id);
    OK(actor_does(&actor[1 - _i], run_rwunlock, &l));
    ENDED();
    ck_assert_uint_eq(stats_of(client).cancels, 0);
}
END_TEST

START_TEST(last_thread_that_gives_up_leaves_the_queue)
{
    OK(rlock_rwlock_wrlock(&theirs));
    actor_begin(&actor[0], run_rdlock_soon, &l);
    actor_begin(&actor[1], run_rdlock_soon, &l);
    EXPECT(actor_rc(&actor[0]), ETIMEDOUT);
    EXPECT(actor_rc(&actor[1]), ETIMEDOUT);
    ck_assert(wait_key(RQUEUE, false, SOON_MS));
    OK(rlock_rwlock_unlock(&theirs));
    ENDED();
}
END_TEST

/* The request is on its way when its thread times out. The other thread has to ask
 * again. */
START_TEST(requester_that_gives_up_leaves_the_request_to_another)
{
    go_behind_proxy("");
    OK(rlock_rwlock_wrlock(&theirs));
    int rule = RULE(RLK_RWLOCK_READ, .action = TEST_HOLD, .count = 1);
    actor_begin(&actor[0], run_rdlock_soon, &l);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    actor_begin(&actor[1], run_rdlock, &l);
    int rc = actor_rc(&actor[0]);
    ck_assert_msg(rc == ETIMEDOUT || rc == ENOTCONN, "%s", rlock_strerror(rc));
    ck_assert(wait_size(RQUEUE, 1));
    if (_i)
        test_proxy_release(proxy, rule);
    OK(rlock_rwlock_unlock(&theirs));
    OK(actor_rc(&actor[1]));
    ck_assert_int_eq(readers(), 1);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ck_assert(wait_key("n", false, SOON_MS));
    test_proxy_release(proxy, rule);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

/* ---- readers that come while a request is on its way (W21) */

/* Holds back the reply to actor[0], which is inside for the server. */
static int hold_first_reply(void)
{
    go_behind_proxy("");
    int rule =
        RULE(RLK_RWLOCK_READ, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1);
    actor_begin(&actor[0], run_rdlock, &l);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert_int_eq(readers(), 1);
    return rule;
}

/* The reply says what was true before the writer queued: it does not count for a
 * newcomer. */
/* rule: W23 */
START_TEST(reader_that_came_after_the_request_overtakes_no_writer)
{
    int rule = hold_first_reply();
    actor_begin(&actor[2], run_wrlock, &theirs);
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    actor_begin(&actor[1], run_rdlock, &l);
    ck_assert(wait_waiters(client, 2)); /* both for the one hold */
    test_proxy_release(proxy, rule);
    OK(actor_rc(&actor[0]));
    ck_assert(wait_size(RQUEUE, 1)); /* this reader asked, and is queued */
    ck_assert(!actor_done(&actor[1], 0));
    ck_assert(!actor_done(&actor[2], 0));
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_rc(&actor[2]));
    ck_assert(!actor_done(&actor[1], 0));
    OK(actor_does(&actor[2], run_rwunlock, &theirs));
    OK(actor_rc(&actor[1]));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ENDED();
}
END_TEST

/* They ask again, but together. */
/* rule: W23 */
START_TEST(readers_that_came_after_the_request_share_the_next)
{
    static struct actor crowd[CROWD];
    int rule = hold_first_reply();
    long long before = requests();
    for (int i = 0; i < CROWD; i++) {
        actor_start(&crowd[i]);
        actor_begin(&crowd[i], run_rdlock, &l);
    }
    ck_assert(wait_waiters(client, CROWD + 1));
    ck_assert_int_eq((int)(requests() - before), 0);
    test_proxy_release(proxy, rule);
    OK(actor_rc(&actor[0]));
    for (int i = 0; i < CROWD; i++)
        OK(actor_rc(&crowd[i]));
    long long sent = requests() - before;
    ck_assert_msg(sent >= 1 && sent <= CROWD / 5, "%lld requests", sent);
    ck_assert_int_eq(readers(), 1);
    for (int i = 0; i < CROWD; i++) {
        OK(actor_does(&crowd[i], run_rwunlock, &l));
        actor_end(&crowd[i]);
    }
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ENDED();
}
END_TEST

/* ---- renewals */

static long crowd_lease;

static int run_rdlock_apart(void *lock)
{
    int rc = rlock_rwlock_rdlock_lease(lock, crowd_lease);
    return rc != 0 ? rc : rlock_rwlock_extend(lock, 0);
}

static bool is_past(void *ms)
{
    return test_now_ms() > *(const int64_t *)ms;
}

/* Each reader has an id of its own: it takes a fixed lease, which it then makes a renewed
 * one. */
START_TEST(many_readers_are_renewed_by_one_command)
{
    static struct actor crowd[CROWD];
    char parameters[32];
    crowd_lease = test_ms(1200);
    snprintf(parameters, sizeof(parameters), "?lease=%ld", crowd_lease);
    go_behind_proxy(parameters);
    for (int i = 0; i < CROWD; i++) {
        actor_start(&crowd[i]);
        OK(actor_does(&crowd[i], run_rdlock_apart, &l));
    }
    ck_assert_int_eq(readers(), CROWD);
    int rule = RULE(RLK_RWLOCK_RENEW, .action = TEST_WATCH);
    int64_t until =
        test_now_ms() + crowd_lease; /* without renewals all are lost by then */
    ck_assert(test_wait_until(is_past, &until, SOON_MS));
    unsigned sent = test_proxy_hits(proxy, rule);
    ck_assert_msg(sent >= 2 && sent <= CROWD / 2, "%u renewals", sent); /* of 150 */
    for (int i = 0; i < CROWD; i++) {
        ck_assert_int_eq(actor_does(&crowd[i], run_rwstate, &l), RLOCK_SAFE);
        OK(actor_does(&crowd[i], run_rwunlock, &l));
        actor_end(&crowd[i]);
    }
    ENDED();
    ck_assert_uint_eq(stats_of(client).losses, 0);
}
END_TEST

/* More readers than one command may name. */
START_TEST(more_readers_than_a_command_may_name_are_all_renewed)
{
    static struct actor many[MANY];
    char parameters[32];
    crowd_lease = test_ms(1200);
    snprintf(parameters, sizeof(parameters), "?lease=%ld", crowd_lease);
    go_behind_proxy(parameters);
    int rule = RULE(RLK_RWLOCK_RENEW, .action = TEST_WATCH);
    for (int i = 0; i < MANY; i++) {
        actor_start(&many[i]);
        OK(actor_does(&many[i], run_rdlock_apart, &l));
    }
    unsigned extended = test_proxy_hits(proxy, rule);
    ck_assert_uint_ge(extended, MANY); /* for each reader alone */
    int64_t until = test_now_ms() + crowd_lease;
    ck_assert(test_wait_until(is_past, &until, SOON_MS));
    unsigned sent = test_proxy_hits(proxy, rule) - extended;
    ck_assert_msg(sent >= 4 && sent <= MANY / 5, "%u renewals", sent);
    ck_assert_uint_eq(stats_of(client).losses, 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(actor_does(&many[i], run_rwstate, &l), RLOCK_SAFE);
        OK(actor_does(&many[i], run_rwunlock, &l));
        actor_end(&many[i]);
    }
    ENDED();
}
END_TEST

/* The reader is renewed at its own time, though another renewal was in flight when it
 * came. */
START_TEST(reader_that_enters_during_a_renewal_is_renewed_in_time)
{
    char parameters[32];
    crowd_lease = test_ms(2400);
    snprintf(parameters, sizeof(parameters), "?lease=%ld", crowd_lease);
    go_behind_proxy(parameters);
    OK(actor_does(&actor[0], run_rdlock_apart, &l));
    int rule = RULE(RLK_RWLOCK_RENEW, .action = TEST_HOLD, .count = 1);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    OK(actor_does(&actor[1], run_rdlock_apart, &l));
    test_proxy_release(proxy, rule);
    ck_assert(test_proxy_wait_answered(proxy, rule, 1, SOON_MS));
    OK(actor_does(&actor[0], run_rwunlock, &l)); /* no other renewal takes it along */
    rule = RULE(RLK_RWLOCK_RENEW, .action = TEST_WATCH);
    ck_assert(test_proxy_wait_hits(proxy, rule, 1, SOON_MS));
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK));
    ck_assert_int_eq(actor_does(&actor[1], run_rwstate, &l), RLOCK_SAFE);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    ENDED();
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down_proxy);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("rwlock_shared");
    TCase *tc = new_case(suite, "shared");
    tcase_add_test(tc, threads_that_read_are_one_reader_at_the_server);
    tcase_add_test(tc, the_last_one_out_releases);
    tcase_add_test(tc, longest_lease_is_that_of_all_and_only_fencing_gives_tokens);
    tcase_add_test(tc, extend_by_a_sharing_reader_is_repeated_when_refused_as_late);
    tcase_add_loop_test(
        tc, extend_by_a_sharing_reader_returns_ESTALE_when_the_reading_was_forced, 0, 3);
    tcase_add_test(tc, downgraded_hold_is_left_to_its_thread);

    tc = new_case(suite, "joins");
    tcase_add_loop_test(tc, join_in_flight_prolongs_the_hold, 0, 2);
    tcase_add_test(tc,
                   join_that_comes_to_queue_behind_a_writer_gives_the_unused_hold_back);
    tcase_add_loop_test(tc, join_of_unknown_outcome_is_cancelled_and_leaves_no_ghost, 0,
                        4);
    tcase_add_test(tc, join_that_comes_late_takes_nothing);

    tc = new_case(suite, "waiting");
    tcase_add_test(tc, threads_that_wait_to_read_enter_together);
    tcase_add_test(tc, reader_admitted_to_a_lost_hold_gets_no_success);
    tcase_add_loop_test(tc, reader_that_gives_up_leaves_its_place_to_the_others, 0, 2);
    tcase_add_test(tc, last_thread_that_gives_up_leaves_the_queue);
    tcase_add_loop_test(tc, requester_that_gives_up_leaves_the_request_to_another, 0, 2);

    tc = new_case(suite, "latecomers");
    tcase_add_test(tc, reader_that_came_after_the_request_overtakes_no_writer);
    tcase_add_test(tc, readers_that_came_after_the_request_share_the_next);

    tc = new_case(suite, "renewals");
    tcase_set_timeout(tc,
                      300); /* DRD's every step costs more, the more threads there are */
    tcase_add_test(tc, many_readers_are_renewed_by_one_command);
    tcase_add_test(tc, more_readers_than_a_command_may_name_are_all_renewed);
    tcase_add_test(tc, reader_that_enters_during_a_renewal_is_renewed_in_time);

    return test_run_suite(suite);
}
