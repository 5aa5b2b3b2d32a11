/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of a fork is a party of its own: it owns nothing of what its parent holds,
 * and its first use of a handle or a client opens a new client with the same attributes
 * as the parent's. Other ways to create a child are in test_fork_ways.c.
 */
#include "base/deadline.h"
#include "client/client.h" /* before the fixture, which has a variable of that name */
#include "state/thread.h"

#include "fixture.h"
#include "forked.h"
#include "proxy.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SOON_MS = 15000, STAYS_MS = 150, WOKEN_MS = 5000 };

static rlock_mutex_t m, own, childs; /* of `client`; the parent holds "n" */

static void set_up(void)
{
    char parameters[64];
    fixture_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(600));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    own = mutex_of(client, "own");
    childs = mutex_of(client, "childs");
}

static rlock_fair_t fair_of(rlock_client_t *c, const char *name)
{
    rlock_mutexattr_t attr;
    rlock_fair_t f;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_fair_init(&f, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return f;
}

struct renewals {
    uint64_t wanted;
};

static bool renewed(void *arg)
{
    return stats_of(client).renewals >= ((struct renewals *)arg)->wanted;
}

/* Asserts that the fork changed nothing for what this process holds. */
static void assert_unharmed(const rlock_mutex_t *held)
{
    struct renewals r = { stats_of(client).renewals + 3 };
    ck_assert(test_wait_until(renewed, &r, SOON_MS));
    ck_assert_int_eq(state_of(held), RLOCK_SAFE);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    ck_assert(!event_seen(RLOCK_EVENT_OWNER_DIED));
    ck_assert_uint_eq(stats_of(client).reconnects, 0);
}

/* Returns how often `part` is in the list of connections. */
static int count_in(const char *list, const char *part)
{
    int count = 0;
    const char *at = list;
    while ((at = strstr(at, part)) != NULL) {
        count++;
        at += strlen(part);
    }
    return count;
}

/* Returns how many connections of the server have `part` in their names. */
static int connections(struct test_redis *r, const char *part)
{
    return count_in(test_redis_str(r, "CLIENT", "LIST"), part);
}

/* ---- the child holds nothing */

struct all_kinds {
    rlock_mutex_t mutex;
    rlock_fair_t fair;
    rlock_rwlock_t writing, reading;
};

static int owns_nothing(struct forked_report *report, void *arg)
{
    struct all_kinds *k = arg;
    rlock_state_t state = RLOCK_SAFE;
    unsigned count = 7;
    uint64_t token;
    long ms;

    (void)report;
    MUST(rlock_mutex_unlock(&k->mutex) == EPERM);
    MUST(rlock_mutex_extend(&k->mutex, 1000) == EPERM);
    MUST(rlock_mutex_consistent(&k->mutex) == EINVAL);
    MUST(rlock_mutex_gettoken(&k->mutex, &token) == EPERM);
    MUST(rlock_mutex_getremaining(&k->mutex, &ms) == EPERM);
    MUST(rlock_mutex_getstate(&k->mutex, &state) == 0 && state == RLOCK_UNHELD);
    MUST(rlock_mutex_getholdcount(&k->mutex, &count) == 0 && count == 0);
    MUST(rlock_fair_unlock(&k->fair) == EPERM);
    MUST(rlock_fair_getholdcount(&k->fair, &count) == 0 && count == 0);
    MUST(rlock_rwlock_unlock(&k->writing) == EPERM);
    MUST(rlock_rwlock_wrunlock(&k->writing) == EPERM);
    MUST(rlock_rwlock_downgrade(&k->writing) == EPERM);
    MUST(rlock_rwlock_unlock(&k->reading) == EPERM);
    MUST(rlock_rwlock_rdunlock(&k->reading) == EPERM);
    MUST(rlock_rwlock_getholdcount(&k->reading, &count) == 0 && count == 0);
    /* the child finds the locks held, as a stranger does */
    MUST(rlock_mutex_trylock(&k->mutex) == EBUSY);
    MUST(rlock_fair_trylock(&k->fair) == EBUSY);
    MUST(rlock_rwlock_tryrdlock(&k->writing) == EBUSY);
    MUST(rlock_rwlock_trywrlock(&k->reading) == EBUSY);
    MUST(rlock_mutex_unlock(&k->mutex) == EPERM);
    return 0;
}

/* rule: T13 */
START_TEST(child_owns_nothing_of_what_its_parent_holds)
{
    struct all_kinds k = { fenced_mutex(client, "m"), fair_of(client, "f"),
                           rwlock_of(client, "w"), rwlock_of(client, "r") };
    NEEDS_FORK("child_owns_nothing_of_what_its_parent_holds");
    OK(rlock_mutex_lock(&k.mutex));
    OK(rlock_mutex_lock(&k.mutex));
    OK(rlock_fair_lock(&k.fair));
    OK(rlock_rwlock_wrlock(&k.writing));
    OK(rlock_rwlock_rdlock(&k.reading));
    CHILD_IS_FINE(owns_nothing, &k);
    assert_unharmed(&k.mutex);
    ck_assert_int_eq(count_of(&k.mutex), 2);
    OK(rlock_mutex_unlock(&k.mutex));
    OK(rlock_mutex_unlock(&k.mutex));
    OK(rlock_fair_unlock(&k.fair));
    OK(rlock_rwlock_unlock(&k.writing));
    OK(rlock_rwlock_unlock(&k.reading));
}
END_TEST

static int locks_its_own(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    MUST(rlock_mutex_lock(&own) == 0);
    return 0;
}

static int closes_the_client(struct forked_report *report, void *arg)
{
    (void)report;
    MUST(rlock_client_close(client) == 0);
    MUST(rlock_mutex_trylock(arg) == EINVAL);
    return 0;
}

static int uses_and_closes_the_client(struct forked_report *report, void *arg)
{
    MUST(rlock_mutex_trylock(arg) == EBUSY);
    return closes_the_client(report, arg);
}

static int does_nothing(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    return 0;
}

static const struct {
    int (*body)(struct forked_report *report, void *arg);
    enum forked_end end;
} lives[] = {
    { does_nothing, FORKED_EXIT },        { does_nothing, FORKED_EXIT_NOW },
    { does_nothing, FORKED_THREAD },      { locks_its_own, FORKED_EXIT },
    { locks_its_own, FORKED_EXIT_NOW },   { locks_its_own, FORKED_KILL },
    { locks_its_own, FORKED_VANISH },     { closes_the_client, FORKED_EXIT },
    { closes_the_client, FORKED_VANISH }, { uses_and_closes_the_client, FORKED_EXIT },
};
enum { LIVES = sizeof(lives) / sizeof(lives[0]) };

START_TEST(parents_hold_goes_on_whatever_the_child_does_and_however_it_ends)
{
    struct forked f;
    NEEDS_FORK("parents_hold_goes_on_whatever_the_child_does_and_however_it_ends");
    if (lives[_i].end != FORKED_VANISH)
        NEEDS_EXIT("parents_hold_goes_on_whatever_the_child_does_and_however_it_ends");
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&m));
    forked_start(&f, lives[_i].body, &m, lives[_i].end);
    ck_assert(forked_ends(&f, SOON_MS));
    ck_assert_int_eq(atomic_load(&f.report->line), 0);
    assert_unharmed(&m);
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_trylock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* ---- what remains of the parent when it is killed */

enum { HELD = 1, FORKED = 2, KILLED = 3 };

static int lives_on(struct forked_report *report, void *arg)
{
    if (arg) /* the child uses the library, too, with a lock of its own */
        MUST(rlock_mutex_lock(&own) == 0);
    forked_step(report, FORKED);
    forked_wait_step(report, KILLED);
    return 0;
}

struct mother {
    bool child_uses_it;
};

/* Locks, forks, and waits to be killed. Its child uses the same report, and ends only at
 * the step KILLED. */
static int holds_and_forks(struct forked_report *report, void *arg)
{
    const struct mother *mother = arg;
    MUST(rlock_mutex_lock(&m) == 0);
    snprintf(report->text, sizeof(report->text), "%s", client->uuid);
    pid_t pid = fork();
    if (pid == 0) {
        lives_on(report, mother->child_uses_it ? report : NULL);
        execl("/bin/true", "true", (char *)NULL);
        abort();
    }
    atomic_store(&report->counter, pid);
    for (;;)
        pause();
}

static bool has_no_connection(void *uuid)
{
    return connections(redis, uuid) == 0;
}

START_TEST(child_neither_inherits_connections_nor_renews_holds_of_its_parent)
{
    struct mother mother = { .child_uses_it = _i != 0 };
    struct forked f;
    NEEDS_FORK("child_neither_inherits_connections_nor_renews_holds_of_its_parent");
    forked_start(&f, holds_and_forks, &mother, FORKED_VANISH);
    ck_assert(forked_reaches(&f, FORKED, SOON_MS));
    ck_assert_int_ge(connections(redis, f.report->text), 1);
    forked_kill(&f);
    ck_assert(test_wait_until(has_no_connection, f.report->text, SOON_MS));
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(5000));
    OK(rlock_mutex_timedlock(&m, &at));
    OK(rlock_mutex_unlock(&m));
    /* the child lived all that time */
    ck_assert_int_eq(kill(atomic_load(&f.report->counter), 0), 0);
    forked_step(f.report, KILLED);
}
END_TEST

/* ---- a client of its own */

static int opens_its_own(struct forked_report *report, void *arg)
{
    const char *parents_uuid = arg;
    char pid[32];
    MUST(rlock_client_ping(client) == 0);
    MUST(strcmp(client->uuid, parents_uuid) != 0);
    struct test_redis *r = test_redis_connect(server.path);
    snprintf(pid, sizeof(pid), ":%d:", (int)getpid());
    const char *list = test_redis_str(r, "CLIENT", "LIST");
    MUST(count_in(list, client->uuid) >= 1);
    MUST(count_in(list, pid) == count_in(list, client->uuid));
    test_redis_close(r);
    snprintf(report->text, sizeof(report->text), "%s", client->uuid);
    return 0;
}

/* rule: T13, S2 */
START_TEST(childs_client_has_an_identity_of_its_own)
{
    char uuid[RLK_UUID_LEN + 1];
    NEEDS_FORK("childs_client_has_an_identity_of_its_own");
    snprintf(uuid, sizeof(uuid), "%s", client->uuid);
    CHILD_IS_FINE(opens_its_own, uuid);
    ck_assert_str_eq(client->uuid, uuid);
}
END_TEST

static atomic_int lost_events;

static void count_lost(const rlock_event_t *event, void *arg)
{
    if (event->kind == RLOCK_EVENT_LOST && arg == &lost_events)
        atomic_fetch_add(&lost_events, 1);
}

static bool has_lost(void *arg)
{
    return atomic_load((atomic_int *)arg) == 1;
}

/* The lock's client was opened with a lease of 7 s, a presence of 5 s, the type
 * ERRORCHECK, and this callback. */
static int finds_the_same_attributes(struct forked_report *report, void *arg)
{
    rlock_mutex_t *lock = arg;
    struct rlock_client *used = NULL;
    long ms = 0;
    (void)report;
    MUST(atomic_load(&lost_events) == 0);
    MUST(rlock_mutex_lock(lock) == 0);
    MUST(rlock_mutex_lock(lock) == EDEADLK);
    MUST(rlock_mutex_getremaining(lock, &ms) == 0 && ms > 3500 && ms <= 7000);
    MUST(rlock_mutex_unlock(lock) == 0);
    MUST(rlk_client_get(lock->rlk.rlk_client, &used) == 0);
    MUST(used->registry.presence_ns == 5000 * RLK_NS_PER_MS);
    MUST(used->config.max_connections == 3);
    rlk_client_put(used);
    MUST(rlock_mutex_lock_lease(lock, 60) == 0);
    MUST(test_wait_until(has_lost, &lost_events, SOON_MS));
    MUST(rlock_mutex_unlock(lock) == ESTALE);
    return 0;
}

START_TEST(childs_client_has_its_parents_attributes)
{
    rlock_mutex_t lock = RLOCK_MUTEX_INITIALIZER("attributes");
    char url[TEST_URL_MAX + 64];
    rlock_clientattr_t attr;
    rlock_client_t *named = NULL;
    bool is_default = _i != 0;
    NEEDS_FORK("childs_client_has_its_parents_attributes");
    snprintf(url, sizeof(url), "%s?lease=7000&mutextype=errorcheck", server.url);
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setpresence(&attr, 5000));
    OK(rlock_clientattr_setmaxconnections(&attr, 3));
    OK(rlock_clientattr_seteventcallback(&attr, count_lost, &lost_events));
    if (is_default) {
        OK(rlock_client_setdefault(url, &attr));
    } else {
        OK(rlock_client_open(&named, url, &attr));
        lock = mutex_of(named, "attributes");
    }
    OK(rlock_clientattr_destroy(&attr));
    CHILD_IS_FINE(finds_the_same_attributes, &lock); /* the default one is not open yet */
    OK(rlock_mutex_lock(&lock));
    OK(rlock_mutex_unlock(&lock));
    CHILD_IS_FINE(finds_the_same_attributes, &lock);
    /* so does the parent */
    ck_assert_int_eq(finds_the_same_attributes(NULL, &lock), 0);
    OK(rlock_client_close(named));
}
END_TEST

static int gets_EINVAL(struct forked_report *report, void *arg)
{
    rlock_mutex_t *closed = arg;
    unsigned count;
    (void)report;
    MUST(rlock_mutex_trylock(closed) == EINVAL);
    MUST(rlock_mutex_lock(closed) == EINVAL);
    MUST(rlock_client_ping(other) == EINVAL);
    MUST(rlock_client_close(other) == EINVAL);
    MUST(rlock_mutex_getholdcount(closed, &count) == 0 && count == 0);
    return 0;
}

START_TEST(client_that_the_parent_has_closed_is_closed_in_the_child)
{
    rlock_mutex_t closed = mutex_of(fixture_other(), "n");
    NEEDS_FORK("client_that_the_parent_has_closed_is_closed_in_the_child");
    close_client(other);
    int line = forked(gets_EINVAL, &closed);
    other = NULL;
    ck_assert_int_eq(line, 0);
}
END_TEST

struct uuids {
    char parent[RLK_UUID_LEN + 1], child[RLK_UUID_LEN + 1];
};

static int is_a_child_of_a_child(struct forked_report *report, void *arg)
{
    const struct uuids *uuids = arg;
    (void)report;
    MUST(rlock_mutex_unlock(&m) == EPERM);
    MUST(rlock_mutex_unlock(&childs) == EPERM);
    MUST(rlock_mutex_trylock(&m) == EBUSY);
    MUST(rlock_mutex_trylock(&childs) == EBUSY);
    MUST(strcmp(client->uuid, uuids->parent) != 0);
    MUST(strcmp(client->uuid, uuids->child) != 0);
    MUST(rlock_mutex_lock(&own) == 0);
    MUST(rlock_mutex_unlock(&own) == 0);
    return 0;
}

static int has_a_child(struct forked_report *report, void *arg)
{
    struct uuids *uuids = arg;
    unsigned count = 0;
    (void)report;
    MUST(rlock_mutex_lock(&childs) == 0);
    snprintf(uuids->child, sizeof(uuids->child), "%s", client->uuid);
    int line = forked(is_a_child_of_a_child, uuids);
    MUST(rlock_mutex_getholdcount(&childs, &count) == 0 && count == 1);
    MUST(rlock_mutex_unlock(&childs) == 0);
    return line;
}

START_TEST(child_of_a_child_is_a_client_of_its_own)
{
    struct uuids uuids = { "", "" };
    NEEDS_FORK("child_of_a_child_is_a_client_of_its_own");
    snprintf(uuids.parent, sizeof(uuids.parent), "%s", client->uuid);
    OK(rlock_mutex_lock(&m));
    CHILD_IS_FINE(has_a_child, &uuids);
    assert_unharmed(&m);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int has_a_child_before_any_use(struct forked_report *report, void *arg)
{
    struct uuids *uuids = arg;
    (void)report;
    snprintf(uuids->child, sizeof(uuids->child), "-");
    return forked(is_a_child_of_a_child, uuids);
}

START_TEST(child_of_a_child_that_never_used_the_library_is_one_as_well)
{
    struct uuids uuids = { "", "" };
    NEEDS_FORK("child_of_a_child_that_never_used_the_library_is_one_as_well");
    snprintf(uuids.parent, sizeof(uuids.parent), "%s", client->uuid);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&childs));
    CHILD_IS_FINE(has_a_child_before_any_use, &uuids);
    OK(rlock_mutex_unlock(&childs));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static int interrupts(struct forked_report *report, void *arg)
{
    (void)report;
    MUST(rlock_client_interrupt(client) == 0);
    MUST(rlock_mutex_lock(arg) == ECANCELED);
    return 0;
}

START_TEST(interrupt_in_a_child_ends_the_childs_waits_and_no_others)
{
    struct task task;
    NEEDS_FORK("interrupt_in_a_child_ends_the_childs_waits_and_no_others");
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    CHILD_IS_FINE(interrupts, &m);
    ck_assert(!task_ends(&task, STAYS_MS));
    OK(rlock_mutex_unlock(&theirs));
    OK(task_join(&task));
}
END_TEST

/* ---- records of threads */

static int run_leaves_a_record(void *arg)
{
    int rc = run_pair(&own);
    *(struct rlk_thread **)arg = rlk_thread_record;
    return rc;
}

static int run_waits(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    int rc = rlock_mutex_timedlock(mutex, &at);
    return rc == 0 ? rlock_mutex_unlock(mutex) : rc;
}

/* The first thread that waits reads the messages. A second thread, which has the record,
 * is woken by the first. */
struct sleeper {
    struct forked_report *report;
    const struct rlk_thread *record;
    bool had_it;
};

static int run_is_woken(void *arg)
{
    struct sleeper *s = arg;
    struct task first;
    MUST(run_pair(&own) == 0);
    s->had_it = rlk_thread_record == s->record;
    if (!s->had_it)
        return 0;
    task_start(&first, run_waits, &m);
    MUST(wait_waiters(client, 1));
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(WOKEN_MS));
    MUST(rlock_mutex_timedlock(&childs, &at) == 0);
    MUST(rlock_mutex_unlock(&childs) == 0);
    atomic_store(&s->report->counter, 2);
    MUST(task_join(&first) == 0);
    return 0;
}

/* Starts threads one after the other, until one of them gets the record. */
static int is_woken(struct forked_report *report, void *record)
{
    enum { RECORDS_MAX = 64 };
    struct sleeper s = { .report = report, .record = record };
    for (int i = 0; i < RECORDS_MAX && !s.had_it; i++) {
        int line = in_thread(run_is_woken, &s);
        if (line != 0)
            return line;
    }
    MUST(s.had_it);
    return 0;
}

static bool counter_is_2(void *report)
{
    return atomic_load(&((struct forked_report *)report)->counter) == 2;
}

/* Leaves the condition variable as a signaling thread has it for a moment. */
static void lock_inside(pthread_cond_t *cond)
{
#ifdef __GLIBC__
    cond->__data.__g1_orig_size |= 1;
#else
    memset(cond, 0xff, sizeof(*cond));
#endif
}

/* A thread of the parent has ended, and another thread is still about to wake it: the
 * record's link is in a list, and its condition variable is inside a signal. */
START_TEST(child_takes_a_record_that_its_parent_was_about_to_wake)
{
    struct forked f;
    struct rlk_thread *record = NULL;
    struct rlk_list wakes;
    NEEDS_FORK("child_takes_a_record_that_its_parent_was_about_to_wake");
    /* only a message can wake a waiting thread: polls are rare */
    reopen_with("?presence=30000");
    m = mutex_of(client, "n");
    own = mutex_of(client, "own");
    childs = mutex_of(client, "childs");
    rlock_mutex_t n = mutex_of(fixture_other(), "n"), c = mutex_of(other, "childs");
    OK(rlock_mutex_lock(&n));
    OK(rlock_mutex_lock(&c));
    OK(in_thread(run_leaves_a_record, &record));
    ck_assert_ptr_nonnull(record);
    struct rlk_cond cond = record->cond;
    rlk_list_init(&wakes);
    rlk_list_append(&wakes, &record->wake_link);
    lock_inside(&record->cond.c);
    forked_start(&f, is_woken, record, FORKED_VANISH);
    record->cond = cond;
    rlk_list_remove(&record->wake_link);
    ck_assert(wait_size("rlock:{childs}:queue", 1));
    OK(rlock_mutex_unlock(&c));
    bool woken = test_wait_until(counter_is_2, f.report, SOON_MS);
    OK(rlock_mutex_unlock(&n));
    ck_assert_int_eq(forked_line(&f, SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
    ck_assert(woken);
}
END_TEST

/* ---- the wire */

static int talks(struct forked_report *report, void *arg)
{
    (void)report;
    MUST(rlock_mutex_unlock(arg) == EPERM);
    MUST(rlock_mutex_trylock(arg) == EBUSY);
    MUST(rlock_client_ping(other) == 0);
    MUST(rlock_client_close(other) == 0);
    return 0;
}

START_TEST(child_says_nothing_on_its_parents_connections)
{
    enum { PARENTS_MAX = 8 };
    int rules[PARENTS_MAX];
    NEEDS_FORK("child_says_nothing_on_its_parents_connections");
    proxy = test_proxy_start(&server);
    /* a presence for which the parent sends nothing meanwhile */
    other = open_at(test_proxy_url(proxy), "?presence=30000&lease=600000");
    rlock_mutex_t lock = mutex_of(other, "n");
    OK(rlock_mutex_lock(&lock));
    unsigned parents = test_proxy_counts(proxy).accepted;
    ck_assert_uint_ge(parents, 2);
    ck_assert_uint_le(parents, PARENTS_MAX);
    for (unsigned i = 0; i < parents; i++)
        rules[i] = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH,
                             .connection = i + 1);
    CHILD_IS_FINE(talks, &lock);
    ck_assert_uint_gt(test_proxy_counts(proxy).accepted, parents);
    for (unsigned i = 0; i < parents; i++)
        ck_assert_uint_eq(test_proxy_hits(proxy, rules[i]), 0);
    /* the child has closed none of the parent's connections */
    unsigned accepted = test_proxy_counts(proxy).accepted;
    OK(rlock_mutex_unlock(&lock));
    ck_assert_uint_eq(test_proxy_counts(proxy).accepted, accepted);
    ck_assert_uint_eq(stats_of(other).reconnects, 0);
    close_client(other);
    other = NULL;
    test_proxy_stop(proxy);
}
END_TEST

/* ---- process numbers */

static int locks_as_number_one(struct forked_report *report, void *arg)
{
    (void)arg;
    MUST(getpid() == 1);
    int rc = rlock_mutex_trylock(&childs);
    snprintf(report->text, sizeof(report->text), "%s", rlock_strerror(rc));
    forked_step(report, 1);
    MUST(forked_wait_step(report, 2));
    MUST(rc != 0 || rlock_mutex_unlock(&childs) == 0);
    return 0;
}

/* Runs as the first process of a container does. */
static int locks_in_a_namespace(struct forked_report *report, void *arg)
{
    struct forked inner;
    if (unshare(CLONE_NEWPID) != 0) {
        snprintf(report->text, sizeof(report->text), "no namespace");
        forked_step(report, 1);
        return 0;
    }
    (void)arg;
    pid_t pid = fork();
    MUST(pid >= 0);
    if (pid == 0) {
        forked_is_child();
        _exit(locks_as_number_one(report, NULL) == 0 ? 0 : 1);
    }
    inner.pid = pid;
    MUST(waitpid(inner.pid, &inner.status, 0) == pid);
    MUST(WIFEXITED(inner.status) && WEXITSTATUS(inner.status) == 0);
    return 0;
}

/* rule: T13 */
START_TEST(processes_with_the_same_pid_are_two_holders)
{
    struct forked first, second;
    NEEDS_FORK("processes_with_the_same_pid_are_two_holders");
    NEEDS_EXIT("processes_with_the_same_pid_are_two_holders");
    forked_start(&first, locks_in_a_namespace, NULL, FORKED_VANISH);
    ck_assert(forked_reaches(&first, 1, SOON_MS));
    if (strcmp(first.report->text, "no namespace") == 0) {
        puts("skipped: processes_with_the_same_pid_are_two_holders: no right to make "
             "namespaces");
        ck_assert(forked_ends(&first, SOON_MS));
        return;
    }
    ck_assert_str_eq(first.report->text, rlock_strerror(0));
    forked_start(&second, locks_in_a_namespace, NULL, FORKED_VANISH);
    ck_assert(forked_reaches(&second, 1, SOON_MS));
    ck_assert_str_eq(second.report->text, rlock_strerror(EBUSY));
    forked_step(second.report, 2);
    ck_assert_int_eq(forked_line(&second, SOON_MS), 0);
    forked_step(first.report, 2);
    ck_assert_int_eq(forked_line(&first, SOON_MS), 0);
    ck_assert(forked_ends(&first, SOON_MS) && forked_ends(&second, SOON_MS));
}
END_TEST

/* ---- a server that is silent */

static int ping(void *arg)
{
    return rlock_client_ping(arg);
}

START_TEST(fork_waits_for_no_answer_of_a_server)
{
    char parameters[64];
    struct task asking;
    NEEDS_FORK("fork_waits_for_no_answer_of_a_server");
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld",
             test_ms(3000), test_ms(3000));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    test_server_pause(&server);
    task_start(&asking, ping, client);
    test_pause_ms(test_ms(1200)); /* a renewal is due after 1000 */
    CHILD_IS_FINE(does_nothing, NULL);
    ck_assert(!task_ends(&asking, 0));
    test_server_resume(&server);
    OK(task_join(&asking));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *tc = tcase_create("fork");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, child_owns_nothing_of_what_its_parent_holds);
    tcase_add_loop_test(
        tc, parents_hold_goes_on_whatever_the_child_does_and_however_it_ends, 0, LIVES);
    tcase_add_loop_test(
        tc, child_neither_inherits_connections_nor_renews_holds_of_its_parent, 0, 2);
    tcase_add_test(tc, childs_client_has_an_identity_of_its_own);
    tcase_add_loop_test(tc, childs_client_has_its_parents_attributes, 0, 2);
    tcase_add_test(tc, client_that_the_parent_has_closed_is_closed_in_the_child);
    tcase_add_test(tc, child_of_a_child_is_a_client_of_its_own);
    tcase_add_test(tc, child_of_a_child_that_never_used_the_library_is_one_as_well);
    tcase_add_test(tc, interrupt_in_a_child_ends_the_childs_waits_and_no_others);
    tcase_add_test(tc, child_takes_a_record_that_its_parent_was_about_to_wake);
    tcase_add_test(tc, child_says_nothing_on_its_parents_connections);
    tcase_add_test(tc, processes_with_the_same_pid_are_two_holders);
    tcase_add_test(tc, fork_waits_for_no_answer_of_a_server);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
