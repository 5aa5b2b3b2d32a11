/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=H9 */
/* Hand-offs between the threads of a process, with a server and the clients of other
 * processes. The single decisions are tested in test_handoff_rules.c. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 6,
    SECTIONS = 300,
    SOON_MS = 10000,
    PRESENCE_MS = 600,
    LINE = 64 /* the most threads whose order is recorded */
};

static rlock_mutex_t m, theirs;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
}

static rlock_mutex_t mutex_with(rlock_client_t *c, long ms, int count)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_sethandoffms(&attr, ms));
    OK(rlock_mutexattr_sethandoffcount(&attr, count));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    return mutex;
}

/* ---- threads that take it again and again */

static struct crowd {
    rlock_mutex_t *mutex;
    struct task tasks[THREADS];
    atomic_bool over;
    int sections; /* of each thread; 0: until over */
    bool robbed;  /* the lock is taken away: no check */
    long inside;  /* guarded by the lock */
    long done;
    atomic_bool broken;
} crowd;

static int run_sections(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; c->sections ? i < c->sections : !atomic_load(&c->over); i++) {
        int rc = rlock_mutex_lock(c->mutex);
        if (rc != 0)
            return rc;
        if (!c->robbed) {
            if (c->inside++ != 0)
                atomic_store(&c->broken, true);
            c->done++;
            c->inside--;
        }
        rc = rlock_mutex_unlock(c->mutex);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void crowd_start(rlock_mutex_t *mutex, int sections, bool robbed)
{
    memset(&crowd, 0, sizeof(crowd));
    crowd.mutex = mutex;
    crowd.sections = sections;
    crowd.robbed = robbed;
    for (int i = 0; i < THREADS; i++)
        task_start(&crowd.tasks[i], run_sections, &crowd);
}

static void crowd_ends(void)
{
    atomic_store(&crowd.over, true);
    for (int i = 0; i < THREADS; i++)
        OK(task_join(&crowd.tasks[i]));
    ck_assert(!atomic_load(&crowd.broken));
}

/* ---- H11: each section has a token of its own, greater than all before it */

static struct {
    uint64_t last; /* guarded by the lock */
    long sections; /* guarded by the lock, too */
    atomic_bool over;
} numbered;

static int run_numbered(void *mutex)
{
    for (int i = 0; i < 4000 && !atomic_load(&numbered.over); i++) {
        uint64_t token = 0, again = 0;
        int rc = rlock_mutex_lock(mutex);
        if (rc == 0)
            rc = rlock_mutex_gettoken(mutex, &token);
        if (rc == 0)
            rc = rlock_mutex_lock(mutex); /* a re-entry keeps the token */
        if (rc == 0)
            rc = rlock_mutex_gettoken(mutex, &again);
        if (rc == 0)
            rc = rlock_mutex_unlock(mutex);
        if (rc != 0)
            return rc;
        if (token <= numbered.last || again != token)
            atomic_store(&numbered.over, true);
        numbered.last = token;
        numbered.sections++;
        rc = rlock_mutex_unlock(mutex);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static rlock_mutex_t numbered_mutex(rlock_client_t *c, bool kept)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_mutexattr_settype(&attr, RLOCK_MUTEX_RECURSIVE));
    OK(rlock_mutexattr_setfencing(&attr, 1));
    OK(rlock_mutexattr_setretain(&attr, kept ? 1000 : 0));
    OK(rlock_mutex_init(&mutex, &attr, "n"));
    OK(rlock_mutexattr_destroy(&attr));
    return mutex;
}

/* One thread takes the lock alone; several threads pass it on; another client comes in
 * between. In each case there are more sections than a block has tokens. */
/* rule: H11 */
START_TEST(tokens_grow_from_section_to_section)
{
    rlock_mutex_t mine = numbered_mutex(client, _i != 1);
    rlock_mutex_t others = numbered_mutex(fixture_other(), true);
    struct task tasks[4], stranger;
    int count = _i == 0 ? 1 : 4;

    memset(&numbered, 0, sizeof(numbered));
    for (int i = 0; i < count; i++)
        task_start(&tasks[i], run_numbered, &mine);
    if (_i == 2)
        task_start(&stranger, run_numbered, &others);
    for (int i = 0; i < count; i++)
        OK(task_join(&tasks[i]));
    if (_i == 2)
        OK(task_join(&stranger));
    ck_assert(!atomic_load(&numbered.over));
    ck_assert_int_eq(numbered.sections, 4000 * (count + (_i == 2)));
    /* the server did not see these sections */
    ck_assert_uint_gt(stats_of(client).local_handovers, 3000);
    ck_assert_uint_lt(stats_of(client).renewals, 1000);
}
END_TEST

static bool is_asked_again(void *before)
{
    return stats_of(client).renewals > *(uint64_t *)before;
}

/* The lock is retained for a while at the end of each block, until a renewal has asked
 * for another block. */
/* rule: H11 */
START_TEST(tokens_grow_across_ends_of_blocks)
{
    enum { BLOCKS = 4, BLOCK = 1000 };
    uint64_t token, last = 0;
    char presence[32];

    snprintf(presence, sizeof(presence), "?presence=%ld", test_ms(600));
    reopen_with(presence);
    rlock_mutex_t mutex = numbered_mutex(client, true);
    uint64_t before = stats_of(client).renewals;
    for (int i = 1; i <= BLOCKS * BLOCK; i++) {
        OK(rlock_mutex_lock(&mutex));
        OK(rlock_mutex_gettoken(&mutex, &token));
        ck_assert_msg(token > last, "section %d", i);
        last = token;
        OK(rlock_mutex_unlock(&mutex));
        if (i % BLOCK != 0)
            continue;
        ck_assert(test_wait_until(is_asked_again, &before, SOON_MS));
        before = stats_of(client).renewals;
    }
}
END_TEST

/* A block has as many tokens as the answer says: tokens behind it belong to the next
 * holder. */
/* rule: H11 */
START_TEST(every_token_of_a_section_was_drawn_at_the_server)
{
    rlock_mutex_t mutex = numbered_mutex(client, true);
    for (int i = 0; i < 1500; i++) {
        OK(rlock_mutex_lock(&mutex));
        long long drawn = test_redis_int(redis, "GET", "redisson_lock_token:{n}");
        ck_assert_uint_le(token_of(&mutex), (uint64_t)drawn);
        OK(rlock_mutex_unlock(&mutex));
    }
    ck_assert_uint_gt(stats_of(client).local_handovers, 1000);
}
END_TEST

static bool is_passed_on(void *c)
{
    return stats_of(c).local_handovers > 100;
}

/* rule: H4 */
START_TEST(threads_pass_it_on_without_the_server)
{
    crowd_start(&m, SECTIONS, false);
    crowd_ends();
    ck_assert_int_eq(crowd.done, THREADS * SECTIONS);
    rlock_stats_t stats = stats_of(client);
    ck_assert_uint_eq(stats.acquisitions, THREADS * SECTIONS);
    ck_assert_uint_eq(stats.releases, THREADS * SECTIONS);
    ck_assert_uint_gt(stats.local_handovers, 0);
    ck_assert_uint_eq(stats.holds_now, 0);
    ck_assert_uint_eq(stats.waiters_now, 0);
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

/* rule: H4 */
START_TEST(switched_off_each_unlock_gives_it_back)
{
    rlock_mutex_t off = _i == 0 ? mutex_with(client, 0, 1000) : mutex_with(client, 10, 0);
    crowd_start(&off, SECTIONS / 10, false);
    crowd_ends();
    ck_assert_uint_eq(stats_of(client).local_handovers, 0);
}
END_TEST

/* The URL of the client switches hand-offs off for all of its mutexes. */
START_TEST(a_client_may_switch_it_off)
{
    reopen_with("?handoffms=0");
    m = mutex_of(client, "n");
    crowd_start(&m, SECTIONS / 10, false);
    crowd_ends();
    ck_assert_uint_eq(stats_of(client).local_handovers, 0);
}
END_TEST

/* ---- order */

static bool gets_it(void *mutex)
{
    return rlock_mutex_trylock(mutex) == 0;
}

static struct {
    char who[LINE]; /* guarded by the lock */
    atomic_int count;
} line;

struct comer {
    rlock_mutex_t *mutex;
    char who;
    int rc;
};

static int run_comer(void *arg)
{
    struct comer *comer = arg;
    int rc = rlock_mutex_lock(comer->mutex);
    if (rc != 0)
        return rc;
    line.who[atomic_fetch_add(&line.count, 1)] = comer->who;
    return rlock_mutex_unlock(comer->mutex);
}

struct waits {
    rlock_mutex_t *mutex;
    long ms;
};

static int run_timed(void *arg)
{
    struct waits *waits = arg;
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, waits->ms);
    int rc = rlock_mutex_clocklock(waits->mutex, CLOCK_MONOTONIC, &at);
    return rc == 0 ? rlock_mutex_unlock(waits->mutex) : rc;
}

/* rule: H9 */
START_TEST(sleeping_threads_get_the_lock_in_order_without_the_server)
{
    struct comer comers[] = { { &m, 'a', 0 }, { &m, 'b', 0 }, { &m, 'c', 0 } };
    struct task tasks[3];

    memset(&line, 0, sizeof(line));
    reopen_with("?handoffms=60000"); /* as if no other process were known to wait */
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    for (unsigned i = 0; i < 3; i++) {
        task_start(&tasks[i], run_comer, &comers[i]);
        ck_assert(wait_waiters(client, i + 1));
    }
    nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL); /* all have waited 1 ms */
    rlock_stats_t before = stats_of(client);
    OK(rlock_mutex_unlock(&m));
    for (int i = 0; i < 3; i++)
        OK(task_join(&tasks[i]));
    rlock_stats_t after = stats_of(client);
    ck_assert_str_eq(line.who, "abc");
    ck_assert_uint_eq(after.local_handovers, 3);
    ck_assert_uint_eq(after.round_trips - after.renewals - before.round_trips +
                          before.renewals,
                      1); /* the release */
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* A request that a thread left in the queue must be granted to nobody later (H9, T7). */
/* rule: H9 */
START_TEST(no_thread_leaves_a_request_behind)
{
    rlock_mutex_t long_one = mutex_with(client, 60000, 1000);
    struct task w, x;
    struct comer last = { &long_one, 'x', 0 };

    memset(&line, 0, sizeof(line));
    OK(rlock_mutex_lock(&theirs));
    struct waits waits = { &long_one, test_ms(300) };
    task_start(&w, run_timed, &waits);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    task_start(&x, run_comer, &last);
    ck_assert(wait_waiters(client, 2));
    /* the lock goes to the next request, past the queue */
    test_redis_do(redis, "DEL", "n");
    ck_assert(test_wait_until(gets_it, &long_one, SOON_MS));
    EXPECT(rlock_mutex_unlock(&theirs), ESTALE);
    int rc = task_join(&w);
    ck_assert_msg(rc == ETIMEDOUT || rc == 0, "%s", rlock_strerror(rc));
    OK(rlock_mutex_unlock(&long_one));
    OK(task_join(&x));
    struct timespec soon = test_in_ms(CLOCK_MONOTONIC, test_ms(1000));
    OK(rlock_mutex_clocklock(&theirs, CLOCK_MONOTONIC, &soon));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(wait_key("n", false, SOON_MS));
    ck_assert(wait_key("rlock:{n}:queue", false, SOON_MS));
}
END_TEST

static int run_slow_comer(void *arg)
{
    struct comer *comer = arg;
    int rc = rlock_mutex_lock(comer->mutex);
    if (rc != 0)
        return rc;
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    line.who[atomic_fetch_add(&line.count, 1)] = comer->who;
    return rlock_mutex_unlock(comer->mutex);
}

/* Sections that are longer than the budget are handed off all the same (H7). */
/* rule: H7 */
START_TEST(long_sections_are_handed_off_without_other_waiters)
{
    struct comer comers[] = { { &m, 'a', 0 }, { &m, 'b', 0 }, { &m, 'c', 0 } };
    struct task tasks[3];

    memset(&line, 0, sizeof(line));
    OK(rlock_mutex_lock(&m));
    for (unsigned i = 0; i < 3; i++) {
        task_start(&tasks[i], run_slow_comer, &comers[i]);
        ck_assert(wait_waiters(client, i + 1));
    }
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    OK(rlock_mutex_unlock(&m));
    for (int i = 0; i < 3; i++)
        OK(task_join(&tasks[i]));
    ck_assert_str_eq(line.who, "abc");
    ck_assert_uint_eq(stats_of(client).local_handovers, 3);
}
END_TEST

/* While others wait, the process hands off for COUNT sections in a row and no more. */
/* rule: H6 */
START_TEST(process_hands_off_for_a_limited_number_of_sections)
{
    enum { COUNT = 3, LOCAL = 5 };
    rlock_mutex_t few = mutex_with(client, 60000, COUNT);
    rlock_client_t *third = open_with("");
    rlock_mutex_t last = mutex_of(third, "n");
    struct comer comers[LOCAL], others = { &last, 'x', 0 };
    struct task tasks[LOCAL], other_task;

    memset(&line, 0, sizeof(line));
    OK(rlock_mutex_lock(&theirs));
    for (unsigned i = 0; i < LOCAL; i++) {
        comers[i] = (struct comer){ &few, 'a', 0 };
        task_start(&tasks[i], run_comer, &comers[i]);
        ck_assert(wait_waiters(client, i + 1));
    }
    ck_assert(wait_size("rlock:{n}:queue", 1));
    task_start(&other_task, run_comer, &others);
    ck_assert(wait_size("rlock:{n}:queue", 2));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&other_task));
    for (int i = 0; i < LOCAL; i++)
        OK(task_join(&tasks[i]));
    ck_assert_str_eq(line.who, "aaaxaa");
    close_client(third);
}
END_TEST

/* ---- others get it */

/* rule: H6 */
START_TEST(other_processes_get_a_lock_that_threads_always_want)
{
    crowd_start(&m, 0, false);
    ck_assert(test_wait_until(is_passed_on, client, SOON_MS));
    for (long i = 0; i < test_count(100, 10); i++) {
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
        ck_assert_uint_le(stats_of(client).holds_now, 1);
        OK(rlock_mutex_clocklock(&theirs, CLOCK_MONOTONIC, &at));
        ck_assert_int_eq(crowd.inside, 0);
        OK(rlock_mutex_unlock(&theirs));
    }
    crowd_ends();
    rlock_stats_t stats = stats_of(client);
    ck_assert_int_eq((long)stats.acquisitions, crowd.done);
    ck_assert_int_eq((long)stats.releases, crowd.done);
}
END_TEST

static bool is_told_of(void *value)
{
    struct test_redis *r = redis;
    /* {since, mode, and the owner's field} */
    char script[200];
    snprintf(script, sizeof(script),
             "local f = redis.call('HGETALL', 'n') for i = 1, #f, 2 do "
             "if string.find(f[i], ':') and f[i + 1] == '%s' then return 1 end end "
             "return 0",
             (const char *)value);
    return test_redis_int(r, "EVAL", script, "0") == 1;
}

static struct {
    atomic_bool in, out;
} stay;

static int run_stay(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    if (rc != 0)
        return rc;
    atomic_store(&stay.in, true);
    while (!atomic_load(&stay.out))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    return rlock_mutex_unlock(mutex);
}

static bool is_in(void *unused)
{
    (void)unused;
    return atomic_load(&stay.in);
}

static bool has_messages(void *more_than)
{
    return stats_of(client).messages > *(uint64_t *)more_than;
}

/* A thread stays inside: it got the lock by a hand-off from a thread that had asked the
 * server (H7). Another thread waits behind it. */
static void begin_stay(struct task *inside, struct task *behind, struct comer *comer)
{
    memset(&stay, 0, sizeof(stay));
    memset(&line, 0, sizeof(line));
    OK(rlock_mutex_lock(&m));
    task_start(inside, run_stay, &m);
    ck_assert(wait_waiters(client, 1));
    task_start(behind, run_comer, comer);
    ck_assert(wait_waiters(client, 2));
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    OK(rlock_mutex_unlock(&m));
    ck_assert(test_wait_until(is_in, NULL, SOON_MS));
}

/* Looks once, and again where the server did not answer in time. */
static int look_whether_free(void)
{
    struct timespec past = { 0 };
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    int rc = ENOTCONN;
    while (rc == ENOTCONN && test_now_ms() < end)
        rc = rlock_waitfree(fixture_other(), "n", &past);
    return rc;
}

/* A holder that asked for a recall gets one, from the first newcomer: by a try, by an
 * acquire, or by a call that waits for the lock to be free. */
/* rule: K3 */
START_TEST(holder_is_recalled_by_the_first_waiter)
{
    struct comer comer = { &m, 'a', 0 }, others = { &theirs, 'x', 0 };
    struct task inside, behind, other_task;
    char two[] = "2", three[] = "3";

    begin_stay(&inside, &behind, &comer);
    ck_assert(is_told_of(two));
    uint64_t before = stats_of(client).messages;
    if (_i == 0) {
        EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
        EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    } else if (_i == 2) {
        EXPECT(look_whether_free(), ETIMEDOUT);
        EXPECT(look_whether_free(), ETIMEDOUT);
    } else {
        task_start(&other_task, run_comer, &others);
        ck_assert(wait_size("rlock:{n}:queue", 1));
    }
    ck_assert(is_told_of(three));
    ck_assert(test_wait_until(has_messages, &before, SOON_MS));
    ck_assert_uint_eq(stats_of(client).messages, before + 1);
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL); /* the budget is over */
    atomic_store(&stay.out, true);
    OK(task_join(&inside));
    OK(task_join(&behind));
    if (_i == 1) {
        OK(task_join(&other_task));
        ck_assert_str_eq(line.who, "xa");
    }
}
END_TEST

/* A waiter that sends no request is seen when the holder asks the server (K10). */
/* rule: K10 */
START_TEST(redisson_waiter_is_not_overtaken)
{
    enum { LOCAL = 5 };
    struct test_redis *waiter = test_redis_connect(server.path);
    struct comer comer = { &m, 'a', 0 };
    struct task tasks[LOCAL];

    memset(&line, 0, sizeof(line));
    OK(rlock_mutex_lock(&m));
    for (unsigned i = 0; i < LOCAL; i++) {
        task_start(&tasks[i], run_slow_comer, &comer);
        ck_assert(wait_waiters(client, i + 1));
    }
    test_redis_send(waiter, "SUBSCRIBE", "redisson_lock__channel:{n}");
    ck_assert(test_redis_recv(waiter, test_ms(SOON_MS))); /* subscribed */
    nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    OK(rlock_mutex_unlock(&m));
    ck_assert(test_redis_recv(waiter, test_ms(SOON_MS))); /* the lock is free */
    ck_assert_int_lt(atomic_load(&line.count), LOCAL);
    for (int i = 0; i < LOCAL; i++)
        OK(task_join(&tasks[i]));
    test_redis_close(waiter);
}
END_TEST

START_TEST(waitfree_comes_to_an_end)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    crowd_start(&m, 0, false);
    ck_assert(test_wait_until(is_passed_on, client, SOON_MS));
    OK(rlock_waitfree(other, "n", &at));
    crowd_ends();
}
END_TEST

/* ---- loss */

/* rule: H10 */
START_TEST(loss_is_reported_to_the_thread_that_holds_the_lock_now)
{
    struct task task;

    memset(&stay, 0, sizeof(stay));
    reopen_with("?handoffms=60000&lease=1000&presence=300");
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    task_start(&task, run_stay, &m);
    ck_assert(wait_waiters(client, 1));
    OK(rlock_mutex_unlock(&m));
    ck_assert(test_wait_until(is_in, NULL, SOON_MS));
    ck_assert_uint_eq(stats_of(client).local_handovers, 1);
    test_redis_do(redis, "DEL", "n");
    const struct told *told = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert(pthread_equal(told->thread, task.thread));
    atomic_store(&stay.out, true);
    EXPECT(task_join(&task), ESTALE);
    EXPECT(rlock_mutex_unlock(&m), EPERM);
}
END_TEST

/* The lease ends while threads pass the lock on. No thread is inside after the end. */
/* rule: H3 */
START_TEST(lease_that_cannot_be_renewed_ends_for_all_threads)
{
    reopen_with("?lease=500&presence=300&commandtimeout=300");
    m = mutex_of(client, "n");
    crowd_start(&m, 0, true);
    ck_assert(test_wait_until(is_passed_on, client, SOON_MS));
    for (int i = 0; i < 10; i++) {
        test_redis_do(redis, "DEL", "n");
        OK(rlock_mutex_lock(&theirs));
        OK(rlock_mutex_unlock(&theirs));
    }
    atomic_store(&crowd.over, true);
    for (int i = 0; i < THREADS; i++) {
        int rc = task_join(&crowd.tasks[i]);
        ck_assert_msg(rc == 0 || rc == ESTALE, "%s", rlock_strerror(rc));
    }
    ck_assert_uint_eq(stats_of(client).holds_now, 0);
    ck_assert_uint_eq(stats_of(client).waiters_now, 0);
}
END_TEST

/* The section ended within the lease. The server, which should give the next section its
 * token, is silent until the lease is over. */
START_TEST(an_unlock_that_asks_for_a_token_in_vain_is_no_loss)
{
    struct task task;
    char lease[32];

    snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(1500));
    reopen_with(lease);
    rlock_mutex_t mutex = numbered_mutex(client, false);
    OK(rlock_mutex_lock(&mutex));
    task_start(&task, run_pair, &mutex);
    ck_assert(wait_waiters(client, 1));
    test_server_pause(&server);
    int rc = rlock_mutex_unlock(&mutex);
    test_server_resume(&server);
    OK(rc);
    OK(task_join(&task));
}
END_TEST

/* ---- threads that give up */

static int run_short(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < c->sections; i++) {
        struct timespec at = test_in_ms(CLOCK_MONOTONIC, i % 3);
        int rc = rlock_mutex_clocklock(c->mutex, CLOCK_MONOTONIC, &at);
        /* so short a time may end on a busy machine before any answer: the thread gives
         * up, too */
        if (rc == ETIMEDOUT || rc == ENOTCONN)
            continue;
        if (rc != 0)
            return rc;
        if (c->inside++ != 0)
            atomic_store(&c->broken, true);
        c->done++;
        if (i % 5 == 0)
            nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
        c->inside--;
        rc = rlock_mutex_unlock(c->mutex);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* No wake-up is lost where each thread may give up at any moment (H5). */
/* rule: H5 */
START_TEST(threads_that_give_up_leave_the_hold_to_others)
{
    memset(&crowd, 0, sizeof(crowd));
    crowd.mutex = &m;
    crowd.sections = (int)test_count(300, 60);
    for (int i = 0; i < THREADS; i++)
        task_start(&crowd.tasks[i], i < 2 ? run_sections : run_short, &crowd);
    crowd_ends();
    ck_assert_uint_gt(stats_of(client).local_handovers, 0);
    ck_assert_uint_eq(stats_of(client).waiters_now, 0);
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

START_TEST(a_try_takes_what_is_passed_on)
{
    reopen_with("?handoffms=60000");
    m = mutex_of(client, "n");
    crowd_start(&m, 0, false);
    ck_assert(test_wait_until(is_passed_on, client, SOON_MS));
    for (int i = 0; i < 3; i++) {
        ck_assert(test_wait_until(gets_it, &m, SOON_MS));
        ck_assert_int_eq(crowd.inside, 0);
        OK(rlock_mutex_unlock(&m));
    }
    crowd_ends();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handoff");
    TCase *tc = tcase_create("handoff");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, threads_pass_it_on_without_the_server);
    tcase_add_loop_test(tc, tokens_grow_from_section_to_section, 0, 3);
    tcase_add_test(tc, tokens_grow_across_ends_of_blocks);
    tcase_add_test(tc, every_token_of_a_section_was_drawn_at_the_server);
    tcase_add_loop_test(tc, switched_off_each_unlock_gives_it_back, 0, 2);
    tcase_add_test(tc, a_client_may_switch_it_off);
    tcase_add_test(tc, sleeping_threads_get_the_lock_in_order_without_the_server);
    tcase_add_test(tc, no_thread_leaves_a_request_behind);
    tcase_add_test(tc, long_sections_are_handed_off_without_other_waiters);
    tcase_add_test(tc, process_hands_off_for_a_limited_number_of_sections);
    tcase_add_test(tc, other_processes_get_a_lock_that_threads_always_want);
    tcase_add_loop_test(tc, holder_is_recalled_by_the_first_waiter, 0, 3);
    tcase_add_test(tc, redisson_waiter_is_not_overtaken);
    tcase_add_test(tc, waitfree_comes_to_an_end);
    tcase_add_test(tc, loss_is_reported_to_the_thread_that_holds_the_lock_now);
    tcase_add_test(tc, lease_that_cannot_be_renewed_ends_for_all_threads);
    tcase_add_test(tc, an_unlock_that_asks_for_a_token_in_vain_is_no_loss);
    tcase_add_test(tc, threads_that_give_up_leave_the_hold_to_others);
    tcase_add_test(tc, a_try_takes_what_is_passed_on);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
