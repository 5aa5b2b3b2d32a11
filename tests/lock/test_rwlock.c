/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the read-write lock: every form and its codes, levels, modes. */
#include "lock/handle.h" /* before the fixture, which has a variable `client` */

#include "fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 10000, LEASE_MS = 60000 };

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"
#define READERS "rlock:{n}:readers"

static rlock_rwlock_t l, theirs;

/* The scripts are loaded before, so that each request is one command. */
static void set_up(void)
{
    fixture_open();
    l = rwlock_of(client, "n");
    theirs = rwlock_of(fixture_other(), "n");
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_downgrade(&l));
    EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
    OK(rlock_rwlock_tryrdlock(&theirs));
    OK(rlock_rwlock_unlock(&theirs));
    OK(rlock_rwlock_unlock(&l));
}

static int levels(void)
{
    unsigned count = 99;
    OK(rlock_rwlock_getholdcount(&l, &count));
    return (int)count;
}

static rlock_state_t state(rlock_rwlock_t *lock)
{
    rlock_state_t s = RLOCK_UNHELD;
    OK(rlock_rwlock_getstate(lock, &s));
    return s;
}

/* The requests of all parties. */
static long long requests(void)
{
    return test_redis_calls(redis, "evalsha") + test_redis_calls(redis, "eval");
}

static int run_tryrdlock(void *lock)
{
    return rlock_rwlock_tryrdlock(lock);
}

/* ---- the sixteen forms */

enum verb { PLAIN, TRY, TIMED, CLOCK };
static const struct form {
    bool reads, leased;
    enum verb verb;
} forms[] = {
    { true, false, PLAIN }, { true, false, TRY },    { true, false, TIMED },
    { true, false, CLOCK }, { true, true, PLAIN },   { true, true, TRY },
    { true, true, TIMED },  { true, true, CLOCK },   { false, false, PLAIN },
    { false, false, TRY },  { false, false, TIMED }, { false, false, CLOCK },
    { false, true, PLAIN }, { false, true, TRY },    { false, true, TIMED },
    { false, true, CLOCK },
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_REALTIME, CLOCK_REALTIME,
                                    CLOCK_MONOTONIC };

static int take_by(const struct form *f, rlock_rwlock_t *lock, clockid_t clock,
                   const struct timespec *at, long lease)
{
    switch (f->verb * 4 + f->leased * 2 + f->reads) {
    case PLAIN * 4:
        return rlock_rwlock_wrlock(lock);
    case PLAIN * 4 + 1:
        return rlock_rwlock_rdlock(lock);
    case PLAIN * 4 + 2:
        return rlock_rwlock_wrlock_lease(lock, lease);
    case PLAIN * 4 + 3:
        return rlock_rwlock_rdlock_lease(lock, lease);
    case TRY * 4:
        return rlock_rwlock_trywrlock(lock);
    case TRY * 4 + 1:
        return rlock_rwlock_tryrdlock(lock);
    case TRY * 4 + 2:
        return rlock_rwlock_trywrlock_lease(lock, lease);
    case TRY * 4 + 3:
        return rlock_rwlock_tryrdlock_lease(lock, lease);
    case TIMED * 4:
        return rlock_rwlock_timedwrlock(lock, at);
    case TIMED * 4 + 1:
        return rlock_rwlock_timedrdlock(lock, at);
    case TIMED * 4 + 2:
        return rlock_rwlock_timedwrlock_lease(lock, at, lease);
    case TIMED * 4 + 3:
        return rlock_rwlock_timedrdlock_lease(lock, at, lease);
    case CLOCK * 4:
        return rlock_rwlock_clockwrlock(lock, clock, at);
    case CLOCK * 4 + 1:
        return rlock_rwlock_clockrdlock(lock, clock, at);
    case CLOCK * 4 + 2:
        return rlock_rwlock_clockwrlock_lease(lock, clock, at, lease);
    default:
        return rlock_rwlock_clockrdlock_lease(lock, clock, at, lease);
    }
}

/* Takes the lock by form `f`, with a deadline `ms` from now. */
static int take_in(const struct form *f, long ms)
{
    struct timespec at = test_in_ms(clocks[f->verb], ms);
    return take_by(f, &l, clocks[f->verb], &at, LEASE_MS);
}

static int run_form(void *form)
{
    return take_in(form, test_ms(60000));
}

START_TEST(free_lock_is_taken_also_when_the_deadline_has_passed)
{
    const struct form *f = &forms[_i];
    long ms = 0, lease = f->leased ? LEASE_MS : 30000;
    OK(take_in(f, -5000));
    ck_assert_str_eq(test_redis_str(redis, "HGET", "n", "mode"),
                     f->reads ? "rlock:read" : "rlock:write");
    ck_assert_int_eq(levels(), 1);
    ck_assert_int_eq(state(&l), RLOCK_SAFE);
    OK(rlock_rwlock_getremaining(&l, &ms));
    ck_assert(ms > lease - test_ms(5000) && ms <= lease);
    EXPECT(in_thread(run_rwunlock, &l), EPERM);
    OK(f->reads ? rlock_rwlock_rdunlock(&l) : rlock_rwlock_wrunlock(&l));
    ck_assert(!test_redis_exists(redis, "n") && !test_redis_exists(redis, READERS));
    ck_assert_int_eq(levels(), 0);
    ck_assert_int_eq(state(&l), RLOCK_UNHELD);
}
END_TEST

/* Asserts what form `f` returns while `theirs` keeps it out, and afterwards. */
static void assert_kept_out(const struct form *f)
{
    struct actor waiter;
    int64_t start = test_now_ms();

    if (f->verb == TRY) {
        EXPECT(take_in(f, 0), EBUSY);
    } else if (f->verb != PLAIN) {
        long long before = requests();
        EXPECT(take_in(f, -5000), ETIMEDOUT);
        EXPECT(take_in(f, -1), ETIMEDOUT);
        ck_assert_int_eq((int)(requests() - before), 2); /* one attempt each */
        ck_assert_int_le(test_now_ms() - start, test_ms(2000));
        start = test_now_ms();
        EXPECT(take_in(f, 40), ETIMEDOUT);
        ck_assert_int_ge(test_now_ms() - start, 39);
        ck_assert_int_le(test_now_ms() - start, test_ms(2000));
    }
    ck_assert(wait_key(QUEUE, false, SOON_MS) && wait_key(RQUEUE, false, SOON_MS));
    ck_assert_int_eq(state(&l), RLOCK_UNHELD);
    if (f->verb == TRY)
        return;
    actor_start(&waiter);
    actor_begin(&waiter, run_form, (void *)f);
    ck_assert(wait_key(f->reads ? RQUEUE : QUEUE, true, SOON_MS));
    OK(rlock_rwlock_unlock(&theirs));
    OK(actor_rc(&waiter));
    OK(actor_does(&waiter, run_rwunlock, &l));
    actor_end(&waiter);
    OK(rlock_rwlock_wrlock(&theirs));
}

START_TEST(writer_blocks_every_form_of_lock)
{
    OK(rlock_rwlock_wrlock(&theirs));
    assert_kept_out(&forms[_i]);
    OK(rlock_rwlock_unlock(&theirs));
}
END_TEST

START_TEST(reader_blocks_a_writer)
{
    OK(rlock_rwlock_rdlock(&theirs));
    if (!forms[_i].reads) {
        assert_kept_out(&forms[_i]);
    } else {
        OK(take_in(&forms[_i], -5000));
        ck_assert_int_eq((int)test_redis_int(redis, "ZCARD", READERS), 2);
        OK(rlock_rwlock_unlock(&l));
    }
    OK(rlock_rwlock_unlock(&theirs));
}
END_TEST

START_TEST(bad_arguments_are_EINVAL)
{
    const struct form *f = &forms[_i];
    static const long leases[] = { 1, 49, 86400001, -1, LONG_MAX, LONG_MIN };
    rlock_mutex_t m = mutex_of(client, "n");
    rlock_rwlock_t zero, gone = l, as_mutex, as_fair = l;
    struct timespec at = test_in_ms(clocks[f->verb], 0), bad = at;

    memset(&zero, 0, sizeof(zero));
    OK(rlock_rwlock_destroy(&gone));
    memcpy(&as_mutex, &m, sizeof(as_mutex));
    as_fair.rlk.rlk_kind = RLK_KIND_FAIR;
    rlock_rwlock_t *handles[] = { NULL, &zero, &gone, &as_mutex, &as_fair };
    long long before = requests();
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
        EXPECT(take_by(f, handles[i], clocks[f->verb], &at, LEASE_MS), EINVAL);
    for (size_t i = 0; f->leased && i < sizeof(leases) / sizeof(leases[0]); i++)
        EXPECT(take_by(f, &l, clocks[f->verb], &at, leases[i]), EINVAL);
    if (f->verb == CLOCK) {
        EXPECT(take_by(f, &l, CLOCK_PROCESS_CPUTIME_ID, &at, LEASE_MS), EINVAL);
        EXPECT(take_by(f, &l, (clockid_t)4711, &at, LEASE_MS), EINVAL);
    }
    if (f->verb >= TIMED)
        EXPECT(take_by(f, &l, clocks[f->verb], NULL, LEASE_MS), EINVAL);
    ck_assert_int_eq((int)(requests() - before), 0);
    if (f->verb >= TIMED) { /* a caller that would have to wait gets EINVAL */
        OK(rlock_rwlock_wrlock(&theirs));
        for (int i = 0; i < 2; i++) {
            bad.tv_nsec = i == 0 ? 1000000000 : -1;
            EXPECT(take_by(f, &l, clocks[f->verb], &bad, LEASE_MS), EINVAL);
        }
        OK(rlock_rwlock_unlock(&theirs));
        OK(take_by(f, &l, clocks[f->verb], &bad, LEASE_MS));
        OK(rlock_rwlock_unlock(&l));
    }
}
END_TEST

/* rule: W24 */
START_TEST(writing_while_reading_is_refused_without_a_request)
{
    const struct form *f = &forms[_i];
    struct timespec bad = { 0, -1 };
    if (f->reads)
        return;
    int code = f->verb == TRY ? EBUSY : EDEADLK;
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    long long before = requests();
    int64_t start = test_now_ms();
    EXPECT(take_in(f, test_ms(20000)), code);
    EXPECT(take_in(f, -5000), code);
    EXPECT(take_by(f, &l, clocks[f->verb], &bad, LEASE_MS), code);
    ck_assert_int_le(test_now_ms() - start, test_ms(5000));
    ck_assert_int_eq((int)(requests() - before), 0);
    ck_assert_int_eq(levels(), 2);
    OK(rlock_rwlock_unlock(&l));
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

START_TEST(holder_takes_a_level_more_without_a_request)
{
    const struct form *f = &forms[_i];
    for (int writes = f->reads ? 0 : 1; writes < 2; writes++) {
        OK(writes ? rlock_rwlock_wrlock(&l) : rlock_rwlock_rdlock(&l));
        long long before = requests();
        long ms = 0;
        OK(take_in(f, -5000));
        OK(take_in(f, -5000));
        OK(rlock_rwlock_getremaining(&l, &ms));
        ck_assert_int_le(ms, 30000); /* of the hold, whatever lease is requested */
        ck_assert_int_eq(levels(), writes && f->reads ? 1 : 3);
        OK(rlock_rwlock_unlock(&l));
        OK(rlock_rwlock_unlock(&l));
        ck_assert_int_eq((int)(requests() - before), 0);
        OK(rlock_rwlock_unlock(&l));
        EXPECT(rlock_rwlock_unlock(&l), EPERM);
    }
}
END_TEST

START_TEST(level_above_INT_MAX_is_EAGAIN)
{
    const struct form *f = &forms[_i];
    OK(f->reads ? rlock_rwlock_rdlock(&l) : rlock_rwlock_wrlock(&l));
    struct rlk_recursion *all = &rlk_handle_part(&l.rlk)->levels;
    unsigned *count = f->reads ? &all->reads : &all->writes;
    *count = INT_MAX - 1;
    OK(take_in(f, 0));
    EXPECT(take_in(f, 0), EAGAIN);
    EXPECT(take_in(f, -5000), EAGAIN);
    ck_assert_int_eq(levels(), INT_MAX);
    *count = 1;
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

/* ---- levels and modes */

START_TEST(unlock_gives_up_the_innermost_level)
{
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    long long before = requests();
    ck_assert_int_eq(levels(), 2);
    OK(rlock_rwlock_unlock(&l)); /* a read */
    ck_assert_int_eq(levels(), 2);
    OK(rlock_rwlock_unlock(&l)); /* a write */
    ck_assert_int_eq(levels(), 1);
    OK(rlock_rwlock_unlock(&l)); /* a read */
    ck_assert_int_eq(levels(), 1);
    EXPECT(rlock_rwlock_rdunlock(&l), EPERM);
    ck_assert_int_eq((int)(requests() - before), 0);
    OK(rlock_rwlock_unlock(&l));
    ck_assert_int_eq((int)(requests() - before), 1);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(rdunlock_and_wrunlock_give_up_a_level_of_their_mode)
{
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdunlock(&l)); /* from between the writes */
    EXPECT(rlock_rwlock_rdunlock(&l), EPERM);
    ck_assert_int_eq(levels(), 2);
    OK(rlock_rwlock_wrunlock(&l));
    OK(rlock_rwlock_wrunlock(&l));
    EXPECT(rlock_rwlock_wrunlock(&l), EPERM);
    OK(rlock_rwlock_rdlock(&l));
    EXPECT(rlock_rwlock_wrunlock(&l), EPERM);
    ck_assert_int_eq(levels(), 1);
    OK(rlock_rwlock_rdunlock(&l));
}
END_TEST

/* rule: W24 */
START_TEST(last_write_level_given_up_before_reads_is_a_downgrade)
{
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    EXPECT(rlock_rwlock_tryrdlock(&theirs), EBUSY);
    long long before = requests();
    OK(rlock_rwlock_wrunlock(&l));
    ck_assert_int_eq((int)(requests() - before), 1);
    ck_assert_int_eq(levels(), 2); /* now a reading */
    ck_assert_str_eq(test_redis_str(redis, "HGET", "n", "mode"), "rlock:read");
    EXPECT(rlock_rwlock_wrlock(&l), EDEADLK);
    EXPECT(rlock_rwlock_trywrlock(&theirs), EBUSY);
    OK(rlock_rwlock_tryrdlock(&theirs));
    OK(rlock_rwlock_unlock(&theirs));
    OK(rlock_rwlock_unlock(&l));
    OK(rlock_rwlock_unlock(&l));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(downgrade_makes_reads_of_all_levels)
{
    EXPECT(rlock_rwlock_downgrade(&l), EPERM);
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_downgrade(&l));
    EXPECT(rlock_rwlock_downgrade(&l), EPERM); /* a reader */
    ck_assert_int_eq(levels(), 3);
    ck_assert_int_eq(state(&l), RLOCK_SAFE);
    EXPECT(rlock_rwlock_wrunlock(&l), EPERM);
    OK(rlock_rwlock_tryrdlock(&theirs));
    OK(rlock_rwlock_unlock(&theirs));
    for (int i = 0; i < 3; i++)
        OK(rlock_rwlock_rdunlock(&l));
    EXPECT(rlock_rwlock_rdunlock(&l), EPERM);
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

/* rule: W24 */
START_TEST(reader_reads_again_past_a_waiting_writer_without_a_round_trip)
{
    struct actor writer;
    OK(rlock_rwlock_rdlock(&l));
    actor_start(&writer);
    actor_begin(&writer, run_wrlock, &theirs);
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    EXPECT(in_thread(run_tryrdlock, &l), EBUSY); /* this thread does not read yet */
    uint64_t before = stats_of(client).round_trips;
    for (int i = 0; i < FORMS; i++)
        if (forms[i].reads)
            OK(take_in(&forms[i], -5000));
    ck_assert_uint_eq(stats_of(client).round_trips, before);
    for (int i = levels(); i > 0; i--)
        OK(rlock_rwlock_rdunlock(&l));
    OK(actor_rc(&writer));
    EXPECT(rlock_rwlock_tryrdlock(&l), EBUSY);
    OK(actor_does(&writer, run_rwunlock, &theirs));
    actor_end(&writer);
}
END_TEST

/* ---- codes */

START_TEST(thread_without_a_hold_gets_EPERM)
{
    uint64_t t = 7;
    long ms = 7;
    OK(in_thread(_i ? run_wrlock : run_rdlock, &l)); /* by a thread that has ended */
    ck_assert(wait_key("n", false, SOON_MS));
    struct actor holder;
    actor_start(&holder);
    OK(actor_does(&holder, _i ? run_wrlock : run_rdlock, &l));
    EXPECT(rlock_rwlock_unlock(&l), EPERM);
    EXPECT(rlock_rwlock_rdunlock(&l), EPERM);
    EXPECT(rlock_rwlock_wrunlock(&l), EPERM);
    EXPECT(rlock_rwlock_downgrade(&l), EPERM);
    EXPECT(rlock_rwlock_extend(&l, 1000), EPERM);
    EXPECT(rlock_rwlock_extend(&l, 0), EPERM);
    EXPECT(rlock_rwlock_gettoken(&l, &t), EPERM);
    EXPECT(rlock_rwlock_getremaining(&l, &ms), EPERM);
    ck_assert(t == 7 && ms == 7);
    ck_assert_int_eq(state(&l), RLOCK_UNHELD);
    ck_assert_int_eq(levels(), 0);
    OK(actor_does(&holder, run_rwunlock, &l));
    actor_end(&holder);
}
END_TEST

START_TEST(bad_handles_and_pointers_are_EINVAL)
{
    rlock_mutex_t m = mutex_of(client, "n");
    rlock_rwlock_t zero, gone = l, as_mutex;
    rlock_state_t s;
    unsigned count;
    uint64_t t;
    long ms;

    memset(&zero, 0, sizeof(zero));
    OK(rlock_rwlock_destroy(&gone));
    memcpy(&as_mutex, &m, sizeof(as_mutex));
    rlock_rwlock_t *handles[] = { NULL, &zero, &gone, &as_mutex };
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        rlock_rwlock_t *h = handles[i];
        int (*const calls[])(rlock_rwlock_t *) = {
            rlock_rwlock_unlock,    rlock_rwlock_rdunlock, rlock_rwlock_wrunlock,
            rlock_rwlock_downgrade, rlock_rwlock_destroy,
        };
        for (size_t c = 0; c < sizeof(calls) / sizeof(calls[0]); c++)
            EXPECT(calls[c](h), EINVAL);
        EXPECT(rlock_rwlock_extend(h, 1000), EINVAL);
        EXPECT(rlock_rwlock_gettoken(h, &t), EINVAL);
        EXPECT(rlock_rwlock_getremaining(h, &ms), EINVAL);
        EXPECT(rlock_rwlock_getstate(h, &s), EINVAL);
        EXPECT(rlock_rwlock_getholdcount(h, &count), EINVAL);
    }
    EXPECT(rlock_mutex_lock((rlock_mutex_t *)(void *)&l), EINVAL);
    EXPECT(rlock_fair_lock((rlock_fair_t *)(void *)&l), EINVAL);
    EXPECT(rlock_rwlock_init(NULL, NULL, "n"), EINVAL);
    EXPECT(rlock_rwlock_init(&gone, NULL, ""), EINVAL);
    OK(rlock_rwlock_rdlock(&l));
    EXPECT(rlock_rwlock_gettoken(&l, NULL), EINVAL);
    EXPECT(rlock_rwlock_getremaining(&l, NULL), EINVAL);
    EXPECT(rlock_rwlock_getstate(&l, NULL), EINVAL);
    EXPECT(rlock_rwlock_getholdcount(&l, NULL), EINVAL);
    EXPECT(rlock_rwlock_extend(&l, 49), EINVAL);
    EXPECT(rlock_rwlock_extend(&l, 86400001), EINVAL);
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

static bool is_lost(void *lock)
{
    return state(lock) == RLOCK_LOST;
}

START_TEST(lost_hold_is_ESTALE_until_its_levels_are_drained)
{
    long ms = 7;
    OK(_i ? rlock_rwlock_wrlock(&l) : rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_force_unlock(other, "n"));
    ck_assert(test_wait_until(is_lost, &l, SOON_MS));
    for (int i = 0; i < FORMS; i++)
        EXPECT(take_in(&forms[i], -5000), ESTALE);
    EXPECT(rlock_rwlock_downgrade(&l), _i ? ESTALE : EPERM);
    EXPECT(rlock_rwlock_extend(&l, 1000), ESTALE);
    OK(rlock_rwlock_getremaining(&l, &ms));
    ck_assert_int_eq(ms, 0);
    rlock_rwlock_t copy = l;
    OK(rlock_rwlock_destroy(&copy)); /* a lost hold does not count */
    EXPECT(_i ? rlock_rwlock_wrunlock(&l) : rlock_rwlock_rdunlock(&l), ESTALE);
    EXPECT(rlock_rwlock_wrunlock(&l), EPERM);
    ck_assert_int_eq(levels(), 1);
    EXPECT(rlock_rwlock_unlock(&l), ESTALE);
    EXPECT(rlock_rwlock_unlock(&l), EPERM);
    OK(rlock_rwlock_wrlock(&l));
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

START_TEST(destroy_is_EBUSY_while_any_thread_holds_it)
{
    struct actor holder;
    actor_start(&holder);
    OK(actor_does(&holder, _i ? run_wrlock : run_rdlock, &l));
    EXPECT(rlock_rwlock_destroy(&l), EBUSY);
    EXPECT(actor_does(&holder, (int (*)(void *))rlock_rwlock_destroy, &l), EBUSY);
    EXPECT(rlock_client_close(client), EBUSY);
    OK(actor_does(&holder, run_rwunlock, &l));
    OK(rlock_rwlock_destroy(&l));
    EXPECT(rlock_rwlock_destroy(&l), EINVAL);
    actor_end(&holder);
}
END_TEST

START_TEST(interrupted_wait_is_ECANCELED)
{
    const struct form *f = &forms[_i];
    struct actor waiter;
    OK(rlock_rwlock_wrlock(&theirs));
    actor_start(&waiter);
    if (f->verb != TRY) {
        actor_begin(&waiter, run_form, (void *)f);
        ck_assert(wait_key(f->reads ? RQUEUE : QUEUE, true, SOON_MS));
    }
    OK(rlock_client_interrupt(client));
    if (f->verb != TRY)
        EXPECT(actor_rc(&waiter), ECANCELED);
    ck_assert(wait_key(f->reads ? RQUEUE : QUEUE, false, SOON_MS));
    EXPECT(take_in(f, test_ms(20000)), f->verb == TRY ? EBUSY : ECANCELED);
    OK(rlock_rwlock_unlock(&theirs));
    actor_end(&waiter);
}
END_TEST

START_TEST(outage_returns_ENOTCONN_to_callers_that_do_not_wait)
{
    const struct form *f = &forms[_i];
    char parameters[64];
    rlock_rwlockattr_t attr;
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld", test_ms(60));
    reopen_with(parameters);
    OK(rlock_rwlockattr_init(&attr));
    OK(rlock_rwlockattr_setclient(&attr, client));
    OK(rlock_rwlockattr_setoutage(&attr, RLOCK_OUTAGE_FAIL));
    OK(rlock_rwlock_init(&l, &attr, "n"));
    test_server_pause(&server);
    int64_t start = test_now_ms();
    /* the others wait until the command timeout */
    bool has_deadline = f->verb == CLOCK || f->verb == TIMED;
    int rc = take_in(f, has_deadline ? 40 : test_ms(20000));
    int64_t took = test_now_ms() - start;
    test_server_resume(&server);
    EXPECT(rc, ENOTCONN);
    ck_assert_int_le(took, test_ms(5000));
    /* even if a request reached the server after all */
    ck_assert(wait_key("n", false, SOON_MS));
}
END_TEST

static const char *const keys[] = { "n", QUEUE, RQUEUE, READERS };

START_TEST(foreign_data_is_EPROTO_and_untouched)
{
    test_redis_do(redis, "SET", keys[_i], "foreign");
    EXPECT(rlock_rwlock_tryrdlock(&l), EPROTO);
    EXPECT(rlock_rwlock_rdlock(&l), EPROTO);
    EXPECT(rlock_rwlock_trywrlock(&l), EPROTO);
    EXPECT(rlock_rwlock_wrlock(&l), EPROTO);
    ck_assert_str_eq(test_redis_str(redis, "GET", keys[_i]), "foreign");
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 1);
    test_redis_do(redis, "DEL", keys[_i]);
    OK(rlock_rwlock_rdlock(&l));
    OK(rlock_rwlock_unlock(&l));
}
END_TEST

static TCase *new_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("rwlock");
    TCase *loops = new_case(suite, "forms");
    tcase_add_loop_test(loops, free_lock_is_taken_also_when_the_deadline_has_passed, 0,
                        FORMS);
    tcase_add_loop_test(loops, writer_blocks_every_form_of_lock, 0, FORMS);
    tcase_add_loop_test(loops, reader_blocks_a_writer, 0, FORMS);
    tcase_add_loop_test(loops, bad_arguments_are_EINVAL, 0, FORMS);
    tcase_add_loop_test(loops, writing_while_reading_is_refused_without_a_request, 0,
                        FORMS);
    tcase_add_loop_test(loops, holder_takes_a_level_more_without_a_request, 0, FORMS);
    tcase_add_loop_test(loops, level_above_INT_MAX_is_EAGAIN, 0, FORMS);
    tcase_add_loop_test(loops, interrupted_wait_is_ECANCELED, 0, FORMS);
    tcase_add_loop_test(loops, outage_returns_ENOTCONN_to_callers_that_do_not_wait, 0,
                        FORMS);

    TCase *tc = new_case(suite, "levels");
    tcase_add_test(tc, unlock_gives_up_the_innermost_level);
    tcase_add_test(tc, rdunlock_and_wrunlock_give_up_a_level_of_their_mode);
    tcase_add_test(tc, last_write_level_given_up_before_reads_is_a_downgrade);
    tcase_add_test(tc, downgrade_makes_reads_of_all_levels);
    tcase_add_test(tc, reader_reads_again_past_a_waiting_writer_without_a_round_trip);

    TCase *codes = new_case(suite, "codes");
    tcase_add_loop_test(codes, thread_without_a_hold_gets_EPERM, 0, 2);
    tcase_add_test(codes, bad_handles_and_pointers_are_EINVAL);
    tcase_add_loop_test(codes, lost_hold_is_ESTALE_until_its_levels_are_drained, 0, 2);
    tcase_add_loop_test(codes, destroy_is_EBUSY_while_any_thread_holds_it, 0, 2);
    tcase_add_loop_test(codes, foreign_data_is_EPROTO_and_untouched, 0,
                        sizeof(keys) / sizeof(keys[0]));

    return test_run_suite(suite);
}
