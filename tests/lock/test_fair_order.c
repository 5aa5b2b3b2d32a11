/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/*
 * L5 between real processes: the fair lock is granted in the order in which the requests
 * reached the server. The processes of tests/programs/crowd.c record what happens, the
 * test watches the server, and history.h judges both. RLOCK_TEST_SEED repeats the random
 * choices of a run that failed.
 */
#include "gathering.h"
#include "history.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PROCESSES = 32,
    THREADS = 4,
    WAITERS = PROCESSES * THREADS,
    LEASE_MS = 2000, /* how long a killed holder blocks the lock */
    FIRST_TIMEOUT_MS = 500,
    TIMEOUTS_MS = 1000,
    HOLD_MAX_US = 3000,
    SERVED_MS = 30000,
    STEP_BACK_MS = 60000
};

static struct member members[PROCESSES];
static long member_count;
static unsigned seed;

static long choose(long below)
{
    return rand_r(&seed) % below;
}

static void open_scene(void)
{
    gather_open();
    memset(members, 0, sizeof(members));
    member_count = 0;
}

static void close_scene(void)
{
    for (long i = 0; i < member_count; i++)
        member_end(&members[i]);
    gather_close();
}

/* Starts members; starts dead ones again. */
static void start_members(long count, const char *parameters)
{
    for (long i = 0; i < count; i++) {
        if (i < member_count && !members[i].dead)
            continue;
        member_end(&members[i]);
        member_start(&members[i], parameters);
        if (member_count <= i)
            member_count = i + 1;
    }
}

static void take_lock(void)
{
    ck_assert_int_eq(rlock_fair_lock(&gather_lock), 0);
}

static void give_lock(void)
{
    ck_assert_int_eq(rlock_fair_unlock(&gather_lock), 0);
}

static long member_of_pid(long pid)
{
    for (long i = 0; i < member_count; i++)
        if (members[i].pid == pid)
            return i;
    return -1;
}

static long member_of_id(const char *id)
{
    for (long i = 0; i < member_count; i++)
        if (member_has(&members[i], id))
            return i;
    return -1;
}

/* ---- one round: many ask in a chosen order, and the lock goes through all of them */

struct round {
    struct history *history;
    struct place places[WAITERS]; /* by who = member * THREADS + thread */
    bool timed[WAITERS], done[WAITERS];
    long timed_count, grants, timeouts, dead, killed_holders;
};

static void ask_in_order(struct round *r)
{
    long order[WAITERS], count = member_count * THREADS;
    for (long i = 0; i < count; i++) {
        long j = choose(i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (long i = 0; i < count; i++) {
        long who = order[i];
        long wait = FIRST_TIMEOUT_MS + choose(TIMEOUTS_MS);
        r->timed[who] = choose(3) == 0;
        r->timed_count += r->timed[who];
        /* a request that gave up before it was seen has no place: it must not be
         * granted */
        if (member_asks(&members[who / THREADS], who % THREADS,
                        r->timed[who] ? test_ms(wait) : 0, choose(HOLD_MAX_US),
                        &r->places[who]))
            history_ask(r->history, who, r->places[who].ticket);
    }
}

/* Kills a tenth of the processes; with `holder`, the one that has the lock among them. */
static void kill_some(struct round *r, bool holder)
{
    char id[GATHER_ID_SIZE];
    uint64_t token;
    long victims = member_count / 10 > 0 ? member_count / 10 : 1;
    for (long n = 0; n < victims; n++) {
        long i = choose(member_count);
        if (n == 0 && holder && gather_holder(id, &token) && member_of_id(id) >= 0)
            i = member_of_id(id);
        while (members[i].dead)
            i = (i + 1) % member_count;
        member_kill(&members[i]);
        if (gather_holder(id, &token) && member_has(&members[i], id))
            r->killed_holders++;
        uint64_t last = gather_last_token();
        for (long who = i * THREADS; who < (i + 1) * THREADS; who++) {
            history_dead(r->history, who, last);
            r->dead++;
        }
    }
}

static void read_events(struct round *r)
{
    struct event e;
    while (gather_event(&e)) {
        long member = member_of_pid(e.pid);
        if (member < 0)
            continue; /* of a member killed in an earlier round */
        long who = member * THREADS + e.thread;
        if (strcmp(e.what, "got") == 0) {
            history_grant(r->history, who, e.number);
            r->grants++;
        } else if (strcmp(e.what, "fails") == 0) {
            ck_assert_msg(r->timed[who] && e.number == ETIMEDOUT, "%ld failed with %d",
                          who, (int)e.number);
            history_out(r->history, who);
            r->timeouts++;
        } else if (strcmp(e.what, "gave") == 0) {
            ck_assert_msg(e.number == 0, "%ld gave it back with %d", who, (int)e.number);
        } else {
            continue;
        }
        r->done[who] = strcmp(e.what, "got") != 0;
    }
}

static void look_at_holder(struct round *r)
{
    char id[GATHER_ID_SIZE];
    uint64_t token;
    if (!gather_holder(id, &token))
        return;
    for (long who = 0; who < member_count * THREADS; who++)
        if (strcmp(r->places[who].id, id) == 0)
            history_seen(r->history, who, token);
}

static bool all_served(void *arg)
{
    struct round *r = arg;
    look_at_holder(r);
    read_events(r);
    for (long who = 0; who < member_count * THREADS; who++)
        if (!members[who / THREADS].dead && !r->done[who])
            return false;
    return true;
}

static bool enough_served(void *arg)
{
    struct round *r = arg;
    all_served(r);
    return r->grants >= member_count * THREADS / 4;
}

static bool half_timed_out(void *arg)
{
    struct round *r = arg;
    read_events(r);
    return 2 * r->timeouts >= r->timed_count;
}

/* Kills some members while all wait, or while the lock goes round. */
static void play_round(struct round *r, bool early, bool holder)
{
    take_lock();
    ask_in_order(r);
    /* the other half of the deadlines passes while the lock goes round */
    ck_assert(test_wait_until(half_timed_out, r, SERVED_MS));
    if (early)
        kill_some(r, false);
    give_lock();
    if (!early) {
        ck_assert(test_wait_until(enough_served, r, SERVED_MS));
        kill_some(r, holder);
    }
    bool served = test_wait_until(all_served, r, SERVED_MS);
    const char *why = history_fault(r->history);
    ck_assert_msg(!why, "%s", why);
    ck_assert_msg(served, "not all are served");
    /* dead waiters may remain behind the last live one: the next round begins with
     * them */
}

/* rule: L5 */
START_TEST(grants_follow_the_order_of_requests_through_timeouts_and_kills)
{
    char parameters[64];
    long rounds = test_count(20, 2), grants = 0, timeouts = 0, dead = 0, holders = 0;
    const char *given = getenv("RLOCK_TEST_SEED");
    unsigned first = given ? (unsigned)strtoul(given, NULL, 10)
                           : (unsigned)test_now_ms() ^ (unsigned)getpid();

    long processes = gather_scaled(PROCESSES, 8, "processes");
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(LEASE_MS));
    /* before the rounds: a failure ends the process */
    printf("RLOCK_TEST_SEED=%u\n", first);
    fflush(stdout);
    for (long i = 0; i < rounds; i++) {
        static struct round round;
        seed = first + (unsigned)i;
        memset(&round, 0, sizeof(round));
        round.history = history_new();
        start_members(processes, parameters);
        play_round(&round, i % 2 == 0, i % 4 == 1);
        history_free(round.history);
        grants += round.grants;
        timeouts += round.timeouts;
        dead += round.dead;
        holders += round.killed_holders;
    }
    printf("%ld rounds: %ld grants, %ld timeouts, %ld killed, %ld of them holders\n",
           rounds, grants, timeouts, dead, holders);
    ck_assert_int_gt(timeouts, 0);
}
END_TEST

/* rule: L5 */
START_TEST(order_survives_a_clock_that_steps_back)
{
    enum { EARLY = 3, LATE = 3 };
    static struct round r;
    memset(&r, 0, sizeof(r));
    r.history = history_new();
    start_members(EARLY + LATE, "");
    take_lock();
    for (long i = 0; i < EARLY + LATE; i++) {
        if (i == EARLY)
            test_clock_step(&gather_clock, gather_redis, -STEP_BACK_MS);
        ck_assert(member_asks(&members[i], 0, 0, 0, &r.places[i * THREADS]));
        history_ask(r.history, i * THREADS, r.places[i * THREADS].ticket);
        for (long t = 1; t < THREADS; t++)
            r.done[i * THREADS + t] = true;
    }
    give_lock();
    ck_assert(test_wait_until(all_served, &r, SERVED_MS));
    const char *why = history_fault(r.history);
    ck_assert_msg(!why, "%s", why);
    history_free(r.history);
}
END_TEST

/* ---- free contention */

enum { CONTENDERS = 16, CONTEND_MS = 10000, CONTEND_QUICK_MS = 2000, HOLD_MS = 2 };

/* Checks the holder and the queue of one moment. */
static void look_at_queue(struct history *h)
{
    static const char script[] =
        "return {redis.call('HGETALL', KEYS[1]), redis.call('ZRANGE', KEYS[2], 0, -1)}";
    const redisReply *r =
        test_redis_do(gather_redis, "EVAL", script, "2", GATHER_LOCK, GATHER_QUEUE);
    const redisReply *holder = r->element[0], *queue = r->element[1];
    uint64_t token = 0;
    long who[CONTENDERS];
    for (size_t i = 0; i + 1 < holder->elements; i += 2)
        if (strcmp(holder->element[i]->str, "token") == 0)
            token = strtoull(holder->element[i + 1]->str, NULL, 10);
    ck_assert(queue->elements <= CONTENDERS);
    for (size_t i = 0; i < queue->elements; i++) {
        who[i] = member_of_id(queue->element[i]->str);
        ck_assert_int_ge(who[i], 0);
    }
    if (token != 0)
        history_queue(h, token, who, queue->elements);
}

struct share {
    uint64_t first, last; /* tokens */
    long grants;          /* while all members took part */
};

/* The grants that the processes recorded. */
struct tally {
    struct event *grants;
    size_t count, size;
};

static void read_grants(struct tally *t)
{
    struct event e;
    while (gather_event(&e)) {
        ck_assert_msg(strcmp(e.what, "fails") != 0, "lock: %d", (int)e.number);
        ck_assert(strcmp(e.what, "gave") != 0 || e.number == 0);
        if (strcmp(e.what, "got") != 0)
            continue;
        if (t->count == t->size) {
            t->size = 2 * t->size + 1024;
            t->grants = realloc(t->grants, t->size * sizeof(*t->grants));
            ck_assert_ptr_nonnull(t->grants);
        }
        t->grants[t->count++] = e;
    }
}

static void share_out(const struct tally *t, struct share shares[], long holders)
{
    uint64_t begin = 0, end = UINT64_MAX;
    for (size_t i = 0; i < t->count; i++) {
        struct share *s = &shares[member_of_pid(t->grants[i].pid)];
        s->first = s->first ? s->first : t->grants[i].number;
        s->last = t->grants[i].number;
    }
    for (long i = 0; i < holders; i++) {
        begin = shares[i].first > begin ? shares[i].first : begin;
        end = shares[i].last < end ? shares[i].last : end;
    }
    for (size_t i = 0; i < t->count; i++)
        if (t->grants[i].number > begin && t->grants[i].number <= end)
            shares[member_of_pid(t->grants[i].pid)].grants++;
}

/* rule: L5 */
START_TEST(contenders_get_equal_shares_and_none_is_overtaken)
{
    struct share shares[CONTENDERS] = { { 0, 0, 0 } };
    struct tally tally = { NULL, 0, 0 };
    struct history *h = history_new();
    long count = gather_scaled(CONTENDERS, 6, "contenders"), most = 0, least = LONG_MAX;
    long looks = 0;
    char loop[32];

    start_members(count, "");
    take_lock();
    /* longer than a busy machine keeps a member from queueing again */
    snprintf(loop, sizeof(loop), "loop 0 1 %ld", test_ms(HOLD_MS) * 1000);
    for (long i = 0; i < count; i++)
        member_tell(&members[i], "%s", loop);
    ck_assert(gather_wait_queued(count, GATHER_SOON_MS));
    give_lock();
    int64_t end = test_now_ms() + test_count(CONTEND_MS, CONTEND_QUICK_MS);
    for (; test_now_ms() < end; looks++) {
        look_at_queue(h);
        test_pause_ms(1);
    }
    for (long i = 0; i < count; i++)
        member_tell(&members[i], "stop");
    for (long i = 0; i < count; i++)
        member_tell(&members[i], "idle");

    read_grants(&tally);
    for (size_t i = 0; i < tally.count; i++)
        history_grant(h, member_of_pid(tally.grants[i].pid), tally.grants[i].number);
    const char *why = history_queue_fault(h);
    ck_assert_msg(!why, "%s", why);
    share_out(&tally, shares, count);
    for (long i = 0; i < count; i++) {
        most = shares[i].grants > most ? shares[i].grants : most;
        least = shares[i].grants < least ? shares[i].grants : least;
    }
    printf("%zu grants, %ld to %ld each; %ld looks\n", tally.count, least, most, looks);
    ck_assert_int_gt(least, 0);
    ck_assert_int_le(10 * most, 11 * least + (test_is_full() ? 0 : 20));
    free(tally.grants);
    history_free(h);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("fair order");
    TCase *tc = tcase_create("L5");
    tcase_add_unchecked_fixture(tc, gather_start, gather_stop);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    tcase_add_test(tc, grants_follow_the_order_of_requests_through_timeouts_and_kills);
    tcase_add_test(tc, order_survives_a_clock_that_steps_back);
    tcase_add_test(tc, contenders_get_equal_shares_and_none_is_overtaken);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
