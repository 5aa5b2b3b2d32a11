/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of readers, and which threads learn that they end: each thread of a shared hold,
 * or the one thread with a fixed lease of its own (W23). Threads that end inside. */
#include "rwactors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 5000 }; /* before the first renewal of 30 s */

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

static int run_rdlock_fixed(void *lock)
{
    return rlock_rwlock_rdlock_lease(lock, 60000);
}

static int run_extend_short(void *lock)
{
    return rlock_rwlock_extend(lock, test_ms(800));
}

static int run_extend_long(void *lock)
{
    return rlock_rwlock_extend(lock, 60000);
}

static int run_has_token(void *lock)
{
    uint64_t token = 0;
    return rlock_rwlock_gettoken(lock, &token);
}

static bool is_lost(void *lock)
{
    return run_rwstate(lock) == RLOCK_LOST;
}

/* Asserts by another client that nobody may write now. */
#define CLOSED() EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY)
/* Asserts that nobody reads any more. */
#define ENDED()                                                                          \
    ck_assert(!test_redis_exists(redis, "n") && !test_redis_exists(redis, READERS))

/* ---- losses */

/* Asserts that exactly these threads get the event, each once, in any order. */
static void assert_told(rlock_event_kind_t kind, const pthread_t *threads, int count)
{
    bool told[8] = { false };
    for (int i = 0; i < count; i++) {
        const struct told *e = event_of(kind, SOON_MS);
        ck_assert_ptr_nonnull(e);
        ck_assert_int_eq(e->mode, RLOCK_MODE_READ);
        ck_assert_int_eq(e->type, RLOCK_TYPE_RWLOCK);
        ck_assert_str_eq(e->name, "n");
        int who = 0;
        while (who < count && !pthread_equal(e->thread, threads[who]))
            who++;
        ck_assert_msg(who < count && !told[who], "the wrong thread got the event");
        told[who] = true;
    }
    ck_assert(!event_seen(kind));
}

START_TEST(loss_of_a_shared_hold_is_reported_to_each_of_its_threads)
{
    char parameters[32];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(1500));
    reopen_with(parameters);
    l = rwlock_of(client, "n");
    OK(rlock_rwlock_rdlock(&l));
    char shared[128];
    snprintf(shared, sizeof(shared), "%s", member(READERS, "0"));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock_fixed, &l));
    test_redis_do(redis, "ZREM", READERS, shared); /* the next renewal finds this */
    ck_assert(test_wait_until(is_lost, &l, SOON_MS));
    pthread_t threads[] = { pthread_self(), actor[0].thread };
    assert_told(RLOCK_EVENT_LOST, threads, 2);
    ck_assert_int_eq(actor_does(&actor[1], run_rwstate, &l), RLOCK_SAFE);
    EXPECT(rlock_rwlock_rdlock(&l), ESTALE);
    OK(actor_does(&actor[2], run_rdlock, &l)); /* this thread lost nothing */
    EXPECT(actor_does(&actor[0], run_rwunlock, &l), ESTALE);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_does(&actor[2], run_rwunlock, &l));
    ENDED();
    ck_assert_uint_eq(stats_of(client).losses, 1);
}
END_TEST

START_TEST(loss_of_a_fixed_lease_is_reported_to_its_thread)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock_fixed, &l));
    OK(actor_does(&actor[1], run_extend_short, &l));
    assert_told(RLOCK_EVENT_LOST, &actor[1].thread, 1);
    ck_assert(
        wait_size(READERS, 1)); /* released at D, though the server's end is later */
    ck_assert_int_eq(run_rwstate(&l), RLOCK_SAFE);
    EXPECT(actor_does(&actor[1], run_rwunlock, &l), ESTALE);
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(rlock_rwlock_unlock(&l));
    ENDED();
}
END_TEST

START_TEST(forced_unlock_is_reported_to_every_reader)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(actor_does(&actor[1], run_rdlock_fixed, &l));
    OK(actor_does(&actor[2], run_rdlock, &theirs));
    OK(rlock_force_unlock(other, "n"));
    pthread_t threads[] = { pthread_self(), actor[0].thread, actor[1].thread,
                            actor[2].thread };
    assert_told(RLOCK_EVENT_LOST, threads, 4);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    EXPECT(actor_does(&actor[0], run_rwunlock, &l), ESTALE);
    EXPECT(actor_does(&actor[1], run_rwunlock, &l), ESTALE);
    EXPECT(actor_does(&actor[2], run_rwunlock, &theirs), ESTALE);
    ENDED();
}
END_TEST

/* ---- threads that end */

static void end_actor(int i)
{
    actor_end(&actor[i]);
    actor[i].thread = 0;
}

START_TEST(thread_that_ends_reading_leaves_the_others_inside)
{
    OK(actor_does(&actor[0], run_rdlock, &l)); /* the first thread inside */
    OK(actor_does(&actor[1], run_rdlock, &l));
    OK(rlock_rwlock_rdlock(&l));
    for (int i = 0; i < 2; i++) {
        pthread_t thread = actor[i].thread;
        end_actor(i);
        assert_told(RLOCK_EVENT_OWNER_DIED, &thread, 1);
        ck_assert_int_eq(run_rwstate(&l), RLOCK_SAFE);
        ck_assert_int_eq(readers(), 1);
        CLOSED();
        if (_i == 0)
            continue;
        OK(rlock_rwlock_unlock(&l)); /* the other thread is the last one */
        thread = actor[1].thread;
        end_actor(1);
        assert_told(RLOCK_EVENT_OWNER_DIED, &thread, 1);
        ck_assert(wait_key("n", false, SOON_MS));
        return;
    }
    OK(rlock_rwlock_unlock(&l));
    ENDED();
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    ck_assert_uint_eq(stats_of(client).owners_died, 2);
}
END_TEST

START_TEST(thread_that_ends_writing_lets_the_readers_in)
{
    OK(actor_does(&actor[0], run_wrlock, &l));
    actor_begin(&actor[1], run_rdlock, &l);
    actor_begin(&actor[2], run_rdlock, &theirs);
    ck_assert(wait_size(RQUEUE, 2));
    end_actor(0);
    const struct told *died = event_of(RLOCK_EVENT_OWNER_DIED, SOON_MS);
    ck_assert_ptr_nonnull(died);
    ck_assert_int_eq(died->mode, RLOCK_MODE_EXCLUSIVE);
    OK(actor_rc(&actor[1]));
    OK(actor_rc(&actor[2]));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_does(&actor[2], run_rwunlock, &theirs));
}
END_TEST

/* ---- leases */

/* The time until the reader's end, as the server sees it. */
static long end_in_ms(const char *id)
{
    const redisReply *r = test_redis_do(redis, "TIME");
    long long now = strtoll(r->element[0]->str, NULL, 10) * 1000 +
                    strtoll(r->element[1]->str, NULL, 10) / 1000;
    return (long)(test_redis_int(redis, "ZSCORE", READERS, id) - now);
}

START_TEST(extend_by_a_sharing_reader_makes_a_lease_of_its_own)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &l));
    OK(run_extend_short(&l));
    ck_assert_int_eq(readers(), 2);
    /* this thread's own lease */
    ck_assert_int_le(end_in_ms(member(READERS, "0")), test_ms(800));
    ck_assert_int_gt(end_in_ms(member(READERS, "1")), 30000 - test_ms(5000));
    ck_assert_int_le(run_rwremaining(&l), test_ms(800));
    ck_assert_int_gt(actor_does(&actor[0], run_rwremaining, &l), 30000 - test_ms(5000));
    pthread_t self = pthread_self();
    assert_told(RLOCK_EVENT_LOST, &self, 1);
    ck_assert_int_eq(run_rwholdcount(&l), 2); /* its levels moved along */
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    ck_assert(wait_size(READERS, 1));
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ENDED();
}
END_TEST

START_TEST(extend_by_a_single_reader_does_not_replace_its_hold)
{
    OK(rlock_rwlock_rdlock(&l));
    OK(run_extend_long(&l));
    ck_assert_int_eq(readers(), 1);
    ck_assert_int_gt(end_in_ms(member(READERS, "0")), 60000 - test_ms(5000));
    OK(actor_does(&actor[0], run_rdlock, &l)); /* joins the reading, not the lease */
    ck_assert_int_eq(readers(), 2);
    ck_assert_int_le(actor_does(&actor[0], run_rwremaining, &l), 30000);
    OK(run_extend_short(&l));
    ck_assert_int_le(run_rwremaining(&l), test_ms(800));
    pthread_t self = pthread_self();
    assert_told(RLOCK_EVENT_LOST, &self, 1); /* at D; the server's end comes with it */
    ck_assert(wait_size(READERS, 1));
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    CLOSED();
    OK(actor_does(&actor[0], run_rwunlock, &l));
    ENDED();
}
END_TEST

/* _i 0: the reading began without a token; 1: with one. */
START_TEST(extend_does_not_change_the_token)
{
    rlock_rwlock_t fenced = rwlock_with(client, "n", -1, 1);
    uint64_t token = 0, before = 0;
    /* this thread shares the hold all the time */
    OK(actor_does(&actor[0], run_rdlock, _i ? &fenced : &l));
    OK(actor_does(&actor[1], run_rdlock, &l));
    OK(rlock_rwlock_rdlock(&fenced));
    ck_assert_int_eq(readers(), 1);
    OK(rlock_rwlock_gettoken(&l, &before));
    OK(actor_does(&actor[1], run_extend_long, &l));
    EXPECT(actor_does(&actor[1], run_has_token, &l), ENOTSUP);
    OK(run_extend_long(&l));
    ck_assert_int_eq(readers(), 3);
    OK(rlock_rwlock_gettoken(&l, &token));
    ck_assert_uint_eq(token, before);
    OK(actor_does(&actor[0], run_rwunlock, &l));
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock_leases");
    TCase *tc = tcase_create("leases");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, loss_of_a_shared_hold_is_reported_to_each_of_its_threads);
    tcase_add_test(tc, loss_of_a_fixed_lease_is_reported_to_its_thread);
    tcase_add_test(tc, forced_unlock_is_reported_to_every_reader);
    tcase_add_loop_test(tc, thread_that_ends_reading_leaves_the_others_inside, 0, 2);
    tcase_add_test(tc, thread_that_ends_writing_lets_the_readers_in);
    tcase_add_test(tc, extend_by_a_sharing_reader_makes_a_lease_of_its_own);
    tcase_add_test(tc, extend_by_a_single_reader_does_not_replace_its_hold);
    tcase_add_loop_test(tc, extend_does_not_change_the_token, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
