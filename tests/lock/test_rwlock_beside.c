/* SPDX-License-Identifier: Apache-2.0 */
/* The read-write lock beside others: kinds of handles, tokens, other lock types on the
 * same name (S5), and what rlock_inspect, rlock_list and rlock_force_unlock do with
 * it. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, ACTORS = 4 };

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"
#define READERS "rlock:{n}:readers"
#define PRESENT "rlock:{n}:present"
#define UUID "dddddddd-0000-4000-8000-00000000000d"

static rlock_rwlock_t l, theirs;
static struct actor actor[ACTORS];
static rlock_info_t *info;

static void set_up(void)
{
    fixture_open();
    l = rwlock_of(client, "n");
    theirs = rwlock_of(fixture_other(), "n");
    for (int i = 0; i < ACTORS; i++)
        actor_start(&actor[i]);
    info = NULL;
}

static void tear_down(void)
{
    rlock_info_free(info);
    for (int i = 0; i < ACTORS; i++)
        actor_end(&actor[i]);
    fixture_close();
}

static uint64_t token(rlock_rwlock_t *lock)
{
    uint64_t t = 0;
    OK(rlock_rwlock_gettoken(lock, &t));
    return t;
}

/* ---- tokens */

START_TEST(tokens_of_writers_are_greater_than_all_before)
{
    rlock_rwlock_t fenced = rwlock_with(client, "n", -1, 1),
                   too = rwlock_with(other, "n", -1, 1);
    uint64_t t = 7, last = 0;
    OK(rlock_rwlock_rdlock(&theirs)); /* begins the reading without a token */
    OK(rlock_rwlock_rdlock(&fenced));
    EXPECT(rlock_rwlock_gettoken(&theirs, &t), ENOTSUP);
    ck_assert_uint_eq(t, 7);
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_gt(token(&fenced), last);
        last = token(&fenced);
        OK(rlock_rwlock_unlock(&fenced));
        if (i == 0)
            OK(rlock_rwlock_unlock(&theirs));
        OK(rlock_rwlock_wrlock(&too));
        ck_assert_uint_gt(token(&too), last);
        last = token(&too);
        OK(rlock_rwlock_downgrade(&too));
        ck_assert_uint_eq(token(&too), last); /* kept, as the reading's token */
        OK(rlock_rwlock_rdlock(&fenced));
        ck_assert_uint_eq(token(&fenced), last);
        OK(rlock_rwlock_unlock(&fenced));
        OK(rlock_rwlock_unlock(&too));
        OK(rlock_rwlock_rdlock(&fenced));
    }
    OK(rlock_rwlock_unlock(&fenced));
    OK(rlock_rwlock_wrlock(&l));
    EXPECT(rlock_rwlock_gettoken(&l, &t), ENOTSUP);
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

/* ---- kinds */

static const struct {
    int kind;
    bool joins; /* a reader joins past a waiting writer */
    bool writers_first;
} kinds[] = {
    { -1, false, false },
    { RLOCK_RWLOCK_PHASE_FAIR_NP, false, false },
    { RLOCK_RWLOCK_PREFER_READER_NP, true, false },
    { RLOCK_RWLOCK_PREFER_WRITER_NP, false, true },
    { RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, false, true },
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

START_TEST(preference_decides_whether_a_reader_joins_past_a_waiting_writer)
{
    rlock_rwlock_t mine = rwlock_with(client, "n", kinds[_i].kind, 0),
                   others = rwlock_with(other, "n", kinds[_i].kind, 0);
    OK(rlock_rwlock_rdlock(&others));
    actor_begin(&actor[0], run_wrlock, &others);
    ck_assert(wait_size(QUEUE, 1));
    EXPECT(rlock_rwlock_tryrdlock(&mine), kinds[_i].joins ? 0 : EBUSY);
    if (kinds[_i].joins) {
        /* this thread joins the shared hold */
        OK(actor_does(&actor[1], run_rdlock, &mine));
        OK(rlock_rwlock_unlock(&others));
        OK(actor_does(&actor[1], run_rwunlock, &mine));
        ck_assert(!actor_done(&actor[0], 0));
        OK(rlock_rwlock_unlock(&mine));
    } else {
        actor_begin(&actor[1], run_rdlock, &mine);
        ck_assert(wait_size(RQUEUE, 1));
        OK(rlock_rwlock_unlock(&others));
    }
    OK(actor_rc(&actor[0]));
    OK(actor_does(&actor[0], run_rwunlock, &others));
    if (!kinds[_i].joins) {
        OK(actor_rc(&actor[1]));
        OK(actor_does(&actor[1], run_rwunlock, &mine));
    }
}
END_TEST

START_TEST(writer_hands_over_to_readers_or_writers_as_the_kind_says)
{
    rlock_rwlock_t mine = rwlock_with(client, "n", kinds[_i].kind, 0),
                   others = rwlock_with(other, "n", kinds[_i].kind, 0);
    int first = kinds[_i].writers_first ? 0 : 1;
    OK(rlock_rwlock_wrlock(&mine));
    actor_begin(&actor[0], run_wrlock, &others);
    ck_assert(wait_size(QUEUE, 1));
    actor_begin(&actor[1], run_rdlock, &others);
    ck_assert(wait_size(RQUEUE, 1));
    OK(rlock_rwlock_unlock(&mine));
    for (int i = 0; i < 2; i++) {
        int now = i == 0 ? first : 1 - first;
        OK(actor_rc(&actor[now]));
        ck_assert(i == 1 || !actor_done(&actor[1 - first], 0));
        OK(actor_does(&actor[now], run_rwunlock, &others));
    }
}
END_TEST

START_TEST(waiting_readers_join_a_downgrade_unless_writers_are_preferred)
{
    rlock_rwlock_t mine = rwlock_with(client, "n", kinds[_i].kind, 0),
                   others = rwlock_with(other, "n", kinds[_i].kind, 0);
    OK(rlock_rwlock_wrlock(&mine));
    actor_begin(&actor[0], run_wrlock, &others);
    ck_assert(wait_size(QUEUE, 1));
    actor_begin(&actor[1], run_rdlock, &others);
    ck_assert(wait_size(RQUEUE, 1));
    OK(rlock_rwlock_downgrade(&mine));
    if (!kinds[_i].writers_first) {
        OK(actor_rc(&actor[1]));
        OK(actor_does(&actor[1], run_rwunlock, &others));
    }
    ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 1);
    OK(rlock_rwlock_unlock(&mine));
    OK(actor_rc(&actor[0]));
    OK(actor_does(&actor[0], run_rwunlock, &others));
    if (kinds[_i].writers_first) {
        OK(actor_rc(&actor[1]));
        OK(actor_does(&actor[1], run_rwunlock, &others));
    }
}
END_TEST

/* ---- other types on the name (S5) */

static int run_fair(void *fair)
{
    return rlock_fair_lock(fair);
}

static int run_fair_unlock(void *fair)
{
    return rlock_fair_unlock(fair);
}

static int run_fair_try(void *fair)
{
    return rlock_fair_trylock(fair);
}

static int run_tryrdlock(void *rwlock)
{
    return rlock_rwlock_tryrdlock(rwlock);
}

static int run_trywrlock(void *rwlock)
{
    return rlock_rwlock_trywrlock(rwlock);
}

static rlock_mutex_t m;
static rlock_fair_t f;

static const struct strange {
    void *handle;
    int (*lock)(void *);
    int (*try_)(void *);
    int (*unlock)(void *);
} strangers[] = {
    { &m, run_lock, run_trylock, run_unlock },
    { &f, run_fair, run_fair_try, run_fair_unlock },
};

/* Makes a mutex and a fair lock of the name, of this or the other client. */
static const struct strange *make_stranger(int i)
{
    rlock_mutexattr_t attr;
    m = mutex_of(i < 2 ? other : client, "n");
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, i < 2 ? other : client));
    OK(rlock_fair_init(&f, &attr, "n"));
    return &strangers[i % 2];
}

START_TEST(lock_of_another_type_blocks_readers_and_writers)
{
    const struct strange *s = make_stranger(_i);
    OK(actor_does(&actor[0], s->lock, s->handle));
    EXPECT(rlock_rwlock_tryrdlock(&l), EBUSY);
    EXPECT(rlock_rwlock_trywrlock(&l), EBUSY);
    actor_begin(&actor[1], run_rdlock, &l);
    ck_assert(wait_size(RQUEUE, 1));
    OK(actor_does(&actor[0], s->unlock, s->handle));
    OK(actor_rc(&actor[1])); /* found by a poll */
    EXPECT(actor_does(&actor[0], s->try_, s->handle), EBUSY);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    OK(actor_does(&actor[0], s->lock, s->handle));
    actor_begin(&actor[1], run_wrlock, &l);
    ck_assert(wait_size(QUEUE, 1));
    OK(actor_does(&actor[0], s->unlock, s->handle));
    OK(actor_rc(&actor[1]));
    OK(actor_does(&actor[1], run_rwunlock, &l));
}
END_TEST

/* Two readers hold the lock, then a writer. */
START_TEST(readers_and_writers_block_locks_of_another_type)
{
    const struct strange *s = make_stranger(_i);
    for (int writes = 0; writes < 2; writes++) {
        OK(actor_does(&actor[1], writes ? run_wrlock : run_rdlock, &l));
        if (!writes)
            OK(actor_does(&actor[2], run_rdlock, &theirs));
        EXPECT(actor_does(&actor[0], s->try_, s->handle), EBUSY);
        actor_begin(&actor[0], s->lock, s->handle);
        ck_assert(wait_size(QUEUE, 1));
        if (!writes)
            OK(actor_does(&actor[2], run_rwunlock, &theirs));
        ck_assert(!actor_done(&actor[0], 0));
        OK(actor_does(&actor[1], run_rwunlock, &l));
        OK(actor_rc(&actor[0]));
        EXPECT(actor_does(&actor[1], run_tryrdlock, &l), EBUSY);
        EXPECT(actor_does(&actor[1], run_trywrlock, &theirs), EBUSY);
        OK(actor_does(&actor[0], s->unlock, s->handle));
    }
}
END_TEST

/* ---- administration */

static void look(void)
{
    rlock_info_free(info);
    info = NULL;
    OK(rlock_inspect(client, "n", &info));
    ck_assert_ptr_nonnull(info);
    ck_assert_int_eq(info->type, RLOCK_TYPE_RWLOCK);
}

START_TEST(readers_are_reported_each_with_its_own_lease)
{
    rlock_rwlock_t fenced = rwlock_with(client, "n", -1, 1);
    OK(rlock_rwlock_rdlock_lease(&fenced, 60000));
    OK(actor_does(&actor[0], run_rdlock, &theirs));
    OK(actor_does(&actor[1], run_rdlock, &theirs)); /* shares */
    look();
    ck_assert_uint_eq(info->holder_count, 2);
    ck_assert_uint_eq(info->waiter_count, 0);
    ck_assert_uint_eq(info->token, token(&fenced));
    for (size_t i = 0; i < 2; i++) {
        const rlock_party_t *p = &info->holders[i];
        bool ours = p->lease_left_ms > 30000;
        ck_assert_int_eq(p->mode, RLOCK_MODE_READ);
        ck_assert_int_gt(p->lease_left_ms, (ours ? 60000 : 30000) - test_ms(5000));
        ck_assert_str_ne(p->client, "");
        ck_assert_ptr_nonnull(test_redis_str(redis, "ZSCORE", READERS, p->owner));
    }
    ck_assert_str_ne(info->holders[0].owner, info->holders[1].owner);
    OK(rlock_rwlock_unlock(&fenced));
    OK(actor_does(&actor[0], run_rwunlock, &theirs));
    OK(actor_does(&actor[1], run_rwunlock, &theirs));
    EXPECT(rlock_inspect(client, "n", &info), ENOENT);
}
END_TEST

/* The key of the readers was evicted, say. The lock is held by unknown readers until its
 * end, which must be reported (W6). */
START_TEST(reading_whose_readers_were_lost_is_reported_as_held)
{
    OK(rlock_rwlock_rdlock(&l));
    test_redis_do(redis, "DEL", READERS);
    EXPECT(actor_does(&actor[0], run_trywrlock, &theirs), EBUSY);
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_eq(info->holders[0].mode, RLOCK_MODE_READ);
    ck_assert_str_eq(info->holders[0].owner, "");
    ck_assert_str_eq(info->holders[0].client, "");
    ck_assert_int_gt(info->holders[0].lease_left_ms, 30000 - test_ms(5000));
    OK(rlock_force_unlock(client, "n"));
    EXPECT(rlock_inspect(client, "n", &info), ENOENT);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
}
END_TEST

START_TEST(writer_and_its_waiter_are_listed_in_order)
{
    static const rlock_mode_t modes[] = { RLOCK_MODE_READ, RLOCK_MODE_EXCLUSIVE,
                                          RLOCK_MODE_READ, RLOCK_MODE_EXCLUSIVE };
    rlock_client_t *third = open_with("");
    rlock_rwlock_t thirds = rwlock_of(third, "n");
    rlock_rwlock_t *handles[] = { &theirs, &theirs, &thirds, &thirds };
    OK(rlock_rwlock_wrlock(&l));
    for (int i = 0; i < ACTORS; i++) {
        bool reads = modes[i] == RLOCK_MODE_READ;
        actor_begin(&actor[i], reads ? run_rdlock : run_wrlock, handles[i]);
        ck_assert(wait_size(reads ? RQUEUE : QUEUE, i / 2 + 1));
    }
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_eq(info->holders[0].mode, RLOCK_MODE_EXCLUSIVE);
    ck_assert_uint_eq(info->waiter_count, ACTORS);
    for (int i = 0; i < ACTORS; i++)
        ck_assert_int_eq(info->waiters[i].mode, modes[i]);
    OK(rlock_rwlock_unlock(&l));
    static const int order[] = { 0, 2, 1, 3 }; /* both readers, then one by one */
    for (int i = 0; i < ACTORS; i++) {
        OK(actor_rc(&actor[order[i]]));
        OK(actor_does(&actor[order[i]], run_rwunlock, handles[order[i]]));
    }
    close_client(third);
}
END_TEST

/* The keys are written by hand: tickets of one millisecond, of both queues by turns, and
 * the bar. */
START_TEST(waiters_of_one_millisecond_are_reported_in_the_order_of_their_tickets)
{
    enum { CROWD = 40 };
    char id[96], ticket[32], till[32];
    const redisReply *r = test_redis_do(redis, "TIME");
    long long now = strtoll(r->element[0]->str, NULL, 10) * 1000000;
    snprintf(till, sizeof(till), "%lld", now / 1000 + 600000);
    test_redis_do(redis, "ZADD", PRESENT, till, UUID);
    for (int i = CROWD; i > 0; i--) {
        bool reads = i % 3 == 0;
        snprintf(id, sizeof(id), "%s:1:%d:%c3000", UUID, i, reads ? 'r' : 'w');
        snprintf(ticket, sizeof(ticket), "%lld", now + i);
        test_redis_do(redis, "ZADD", reads ? RQUEUE : QUEUE, ticket, id);
    }
    test_redis_do(redis, "ZADD", RQUEUE, ticket, "~");
    test_redis_do(redis, "HSET", "n", "mode", "rlock:write", UUID ":1:99:w3000", "1");
    look();
    ck_assert_uint_eq(info->waiter_count, CROWD);
    for (int i = 1; i <= CROWD; i++) {
        const rlock_party_t *p = &info->waiters[i - 1];
        bool reads = i % 3 == 0;
        snprintf(id, sizeof(id), "%s:1:%d:%c3000", UUID, i, reads ? 'r' : 'w');
        ck_assert_str_eq(p->owner, id);
        ck_assert_int_eq(p->mode, reads ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE);
    }
}
END_TEST

static int see(const rlock_info_t *each, void *arg)
{
    int *seen = arg;
    bool good = strcmp(each->name, "n") == 0 && each->type == RLOCK_TYPE_RWLOCK &&
                each->holder_count == 2 && each->holders[0].mode == RLOCK_MODE_READ &&
                each->holders[1].mode == RLOCK_MODE_READ;
    *seen += good ? 1 : 100;
    return 0;
}

START_TEST(list_shows_a_reading_once)
{
    int seen = 0;
    OK(rlock_rwlock_rdlock(&l));
    OK(actor_does(&actor[0], run_rdlock, &theirs));
    OK(rlock_list(client, NULL, see, &seen));
    ck_assert_int_eq(seen, 1);
    OK(actor_does(&actor[0], run_rwunlock, &theirs));
    OK(rlock_rwlock_unlock(&l));
    OK(rlock_list(client, NULL, see, &seen));
    ck_assert_int_eq(seen, 1);
}
END_TEST

START_TEST(forced_reading_goes_to_the_waiting_writer)
{
    OK(rlock_rwlock_rdlock(&l));
    actor_begin(&actor[0], run_wrlock, &theirs);
    ck_assert(wait_size(QUEUE, 1));
    OK(rlock_force_unlock(client, "n"));
    OK(actor_rc(&actor[0]));
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    actor_begin(&actor[1], run_rdlock, &l);
    ck_assert(wait_size(RQUEUE, 1));
    OK(rlock_force_unlock(client, "n"));
    OK(actor_rc(&actor[1]));
    EXPECT(actor_does(&actor[0], run_rwunlock, &theirs), ESTALE);
    OK(actor_does(&actor[1], run_rwunlock, &l));
    EXPECT(rlock_force_unlock(client, "n"), ENOENT);
}
END_TEST

/* ---- static initializers */

START_TEST(static_initializers_are_locks_of_the_default_client)
{
    static rlock_rwlock_t plain = RLOCK_RWLOCK_INITIALIZER("n"),
                          prefers = RLOCK_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP("n");
    rlock_rwlock_t no_attr, anonymous, twin;
    OK(rlock_client_setdefault(server.url, NULL));
    OK(rlock_rwlock_init(&no_attr, NULL, "n"));
    OK(rlock_rwlock_wrlock(_i ? &prefers : &plain));
    OK(rlock_rwlock_rdlock(_i ? &plain : &prefers));
    OK(rlock_rwlock_unlock(&no_attr));
    actor_begin(&actor[0], run_wrlock, &theirs);
    ck_assert(wait_size(QUEUE, 1));
    actor_begin(&actor[1], run_rdlock, &theirs);
    ck_assert(wait_size(RQUEUE, 1));
    OK(rlock_rwlock_unlock(&no_attr));
    OK(actor_rc(&actor[_i ? 0 : 1])); /* the waiter that the handle's kind puts first */
    OK(actor_does(&actor[_i ? 0 : 1], run_rwunlock, &theirs));
    OK(actor_rc(&actor[_i ? 1 : 0]));
    OK(actor_does(&actor[_i ? 1 : 0], run_rwunlock, &theirs));
    OK(rlock_rwlock_init(&anonymous, NULL, NULL));
    OK(rlock_rwlock_init(&twin, NULL, NULL));
    OK(rlock_rwlock_wrlock(&anonymous));
    OK(actor_does(&actor[0], run_trywrlock, &twin)); /* a name of its own */
    OK(actor_does(&actor[0], run_rwunlock, &twin));
    OK(rlock_rwlock_unlock(&anonymous));
    OK(rlock_client_close(NULL));
    OK(rlock_client_setdefault(NULL, NULL));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock: beside others");
    TCase *tc = tcase_create("parties");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, tokens_of_writers_are_greater_than_all_before);
    tcase_add_loop_test(
        tc, preference_decides_whether_a_reader_joins_past_a_waiting_writer, 0, KINDS);
    tcase_add_loop_test(tc, writer_hands_over_to_readers_or_writers_as_the_kind_says, 0,
                        KINDS);
    tcase_add_loop_test(tc, waiting_readers_join_a_downgrade_unless_writers_are_preferred,
                        0, KINDS);
    tcase_add_loop_test(tc, lock_of_another_type_blocks_readers_and_writers, 0, 4);
    tcase_add_loop_test(tc, readers_and_writers_block_locks_of_another_type, 0, 4);
    tcase_add_test(tc, readers_are_reported_each_with_its_own_lease);
    tcase_add_test(tc, reading_whose_readers_were_lost_is_reported_as_held);
    tcase_add_test(tc, writer_and_its_waiter_are_listed_in_order);
    tcase_add_test(tc,
                   waiters_of_one_millisecond_are_reported_in_the_order_of_their_tickets);
    tcase_add_test(tc, list_shows_a_reading_once);
    tcase_add_test(tc, forced_reading_goes_to_the_waiting_writer);
    tcase_add_loop_test(tc, static_initializers_are_locks_of_the_default_client, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
