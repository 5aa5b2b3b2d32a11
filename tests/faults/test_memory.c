/* SPDX-License-Identifier: Apache-2.0 */
/* program: with=shims/alloc_shim.c */
/*
 * Memory runs out: each function with its n-th allocation failing, alone or with all
 * after it, for every n until the function needs no more. The function returns ENOMEM or
 * succeeds, leaves nothing behind, and all goes on afterwards. Work whose failure no
 * caller can learn of (unlock, renewal, cancel, what the library's threads do) is done
 * later.
 */
#include "fixture.h"

#include "alloc.h"
#include "conffile.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 10000, WAIT_MS = 40, NS_MAX = 1000, ODD_ERRNO = 4711 };

/* Handles of `client`; `theirs` is one of `other`. All mutexes and the read-write lock
 * have one name. */
static rlock_mutex_t m, fenced, robust, theirs;
static rlock_fair_t f;
static rlock_rwlock_t w;
static rlock_client_t *mine;

static rlock_mutex_t robust_mutex(void)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t made;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&made, &attr, "n"));
    return made;
}

static rlock_fair_t fair_lock(void)
{
    rlock_mutexattr_t attr;
    rlock_fair_t made;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_fair_init(&made, &attr, "n"));
    return made;
}

static void open_all(void)
{
    client = open_with("");
    other = open_with("");
    m = mutex_of(client, "n");
    fenced = fenced_mutex(client, "n");
    robust = robust_mutex();
    f = fair_lock();
    w = rwlock_of(client, "n");
    theirs = mutex_of(other, "n");
}

static void close_all(void)
{
    close_client(client);
    close_client(other);
    client = other = NULL;
}

/* ---- the calls; each is judged by its rc */

static int open_and_close(void)
{
    int rc = rlock_client_open(&mine, server.url, NULL);
    if (rc == 0) {
        int closed = rlock_client_close(mine);
        return closed != 0 ? -closed : 0;
    }
    return rc;
}

static int open_with_everything(void)
{
    static char url[TEST_URL_MAX + 64];
    rlock_clientattr_t attr;
    snprintf(url, sizeof(url), "redis://u%%41:p%%41@127.0.0.1:%u/0?lease=1000&db=0",
             (unsigned)server.port);
    int rc = rlock_clientattr_init(&attr);
    if (rc == 0)
        rc = rlock_clientattr_setcredentials(&attr, "user", "password");
    if (rc == 0)
        rc = rlock_client_open(&mine, url, &attr);
    if (rc == 0) {
        int closed = rlock_client_close(mine);
        return closed != 0 ? -closed : 0;
    }
    return rc;
}

static void name_by_a_file(void)
{
    conffile_begin();
    conffile_write("password", "p", 0600);
    conffile_use("url=redis://127.0.0.1:1\nuser=u\npasswordfile=^/password\n");
}

static int open_by_the_file(void)
{
    int rc = rlock_client_open(&mine, NULL, NULL);
    if (rc == 0) {
        int closed = rlock_client_close(mine);
        return closed != 0 ? -closed : 0;
    }
    return rc;
}

static int ask_of_the_file(void)
{
    char url[64], source[64];
    return rlock_client_getserver(NULL, url, sizeof(url), source, sizeof(source));
}

static void drop_the_file(int rc)
{
    (void)rc;
    conffile_end();
}

static int set_default_and_use_it(void)
{
    rlock_clientattr_t attr;
    rlock_clientattr_init(&attr);
    int rc = rlock_client_setdefault(server.url, &attr);
    return rc != 0 ? rc : rlock_client_ping(NULL);
}

static void close_default(int rc)
{
    (void)rc;
    OK(rlock_client_close(NULL));
    OK(rlock_client_setdefault(NULL, NULL)); /* frees the copies */
}

static int ping(void)
{
    return rlock_client_ping(client);
}

static int first_ping(void)
{
    return rlock_client_ping(mine);
}

static void open_mine(void)
{
    mine = NULL;
    OK(rlock_client_open(&mine, server.url, NULL));
}

static void close_mine(int rc)
{
    (void)rc;
    OK(rlock_client_ping(mine));
    OK(rlock_client_close(mine));
}

static void open_mine_with_a_mutex(void)
{
    open_mine();
    m = mutex_of(mine, "n");
}

static void close_mine_and_mutex(int rc)
{
    if (rc != 0)
        OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlock_client_close(mine));
}

static int lock(void)
{
    return rlock_mutex_lock(&m);
}

static void pair_of_m(int rc)
{
    if (rc != 0)
        OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}

static bool fails_from; /* false: only the one */
static long fails_at, failed_then;

static void let_fail(long n)
{
    if (fails_from)
        test_alloc_fail_from(n);
    else
        test_alloc_fail_at(n);
}

/* The first call of a thread. */
static int run_first_lock(void *unused)
{
    (void)unused;
    test_alloc_this_thread(true);
    let_fail(fails_at);
    int rc = rlock_mutex_lock(&m);
    failed_then = test_alloc_failed();
    test_alloc_fail_at(0);
    if (rc != 0)
        return rc;
    rc = rlock_mutex_unlock(&m);
    return rc != 0 ? -rc : 0;
}

static int trylock(void)
{
    return rlock_mutex_trylock(&m);
}

static void lock_theirs(void)
{
    OK(rlock_mutex_lock(&theirs));
}

/* A waiter that gave up is out of the way at once, not when it counts as gone (3 s). */
static void unlock_theirs(int rc)
{
    (void)rc;
    OK(rlock_mutex_unlock(&theirs));
    struct timespec end = test_in_ms(CLOCK_REALTIME, test_ms(2000));
    OK(rlock_mutex_timedlock(&theirs, &end));
    OK(rlock_mutex_unlock(&theirs));
}

static int timedlock(void)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, WAIT_MS);
    return rlock_mutex_timedlock(&m, &end);
}

static int fair_timedlock(void)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, WAIT_MS);
    return rlock_fair_clocklock(&f, CLOCK_MONOTONIC, &end);
}

static int timedrdlock(void)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, WAIT_MS);
    return rlock_rwlock_timedrdlock(&w, &end);
}

static int lock_lease(void)
{
    return rlock_mutex_lock_lease(&m, 20000);
}

static int fair_lock_once(void)
{
    return rlock_fair_lock(&f);
}

static void pair_of_f(int rc)
{
    if (rc != 0)
        OK(rlock_fair_lock(&f));
    OK(rlock_fair_unlock(&f));
}

static int unlock(void)
{
    return rlock_mutex_unlock(&m);
}

static void lock_m(void)
{
    OK(rlock_mutex_lock(&m));
}

/* A waiter gets the lock at once, not when the lease ends. */
static void theirs_soon(int rc)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, test_ms(5000));
    (void)rc;
    OK(rlock_mutex_timedlock(&theirs, &end));
    OK(rlock_mutex_unlock(&theirs));
}

static int again(void)
{
    return rlock_mutex_lock(&m);
}

static void unlock_m(int rc)
{
    if (rc == 0)
        OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_unlock(&m));
}

static int extend(void)
{
    return rlock_mutex_extend(&m, 20000);
}

static void unlock_m_once(int rc)
{
    (void)rc;
    OK(rlock_mutex_unlock(&m));
}

static int fenced_with_token(void)
{
    uint64_t token = 0;
    int rc = rlock_mutex_lock(&fenced);
    if (rc != 0)
        return rc;
    rc = rlock_mutex_gettoken(&fenced, &token);
    return rc != 0 ? -rc : token == 0 ? -1 : 0;
}

static void pair_of_fenced(int rc)
{
    if (rc != 0)
        OK(rlock_mutex_lock(&fenced));
    OK(rlock_mutex_unlock(&fenced));
}

static int run_robust_and_end(void *unused)
{
    (void)unused;
    return rlock_mutex_lock(&robust);
}

static bool mark_is_there(void *unused)
{
    (void)unused;
    return test_redis_exists(redis, "rlock:{n}:dirty") && !test_redis_exists(redis, "n");
}

static void die_with_robust(void)
{
    OK(in_thread(run_robust_and_end, NULL));
    ck_assert(test_wait_until(mark_is_there, NULL, SOON_MS));
}

static int lock_robust(void)
{
    int rc = rlock_mutex_lock(&robust);
    if (rc != EOWNERDEAD)
        return rc;
    rc = rlock_mutex_consistent(&robust);
    return rc != 0 ? -rc : EOWNERDEAD;
}

static void pair_of_robust(int rc)
{
    if (rc == ENOMEM) { /* the next holder learns of the death */
        EXPECT(rlock_mutex_lock(&robust), EOWNERDEAD);
        OK(rlock_mutex_consistent(&robust));
    }
    OK(rlock_mutex_unlock(&robust));
}

static int rdlock(void)
{
    return rlock_rwlock_rdlock(&w);
}

static void pair_of_w(int rc)
{
    if (rc != 0)
        OK(rlock_rwlock_wrlock(&w));
    OK(rlock_rwlock_unlock(&w));
}

static int wrlock(void)
{
    return rlock_rwlock_wrlock(&w);
}

static struct actor reader;

static void let_another_read(void)
{
    actor_start(&reader);
    OK(actor_does(&reader, run_rdlock, &w));
}

static void all_have_read(int rc)
{
    if (rc == 0)
        OK(rlock_rwlock_unlock(&w));
    OK(actor_does(&reader, run_rwunlock, &w));
    actor_end(&reader);
}

static void read_with_another(void)
{
    let_another_read();
    OK(rlock_rwlock_rdlock(&w));
}

static int leave_the_other(void)
{
    return rlock_rwlock_extend(&w, 20000);
}

static void both_unlock(int rc)
{
    (void)rc;
    all_have_read(0);
}

static int rdunlock(void)
{
    return rlock_rwlock_rdunlock(&w);
}

static void other_unlocks(int rc)
{
    (void)rc;
    all_have_read(1);
}

static void write_w(void)
{
    OK(rlock_rwlock_wrlock(&w));
}

static int downgrade(void)
{
    return rlock_rwlock_downgrade(&w);
}

static int run_read_pair(void *rwlock)
{
    int rc = rlock_rwlock_rdlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_unlock(rwlock);
}

static void readers_may_come(int rc)
{
    (void)rc;
    struct task task;
    task_start(&task, run_read_pair, &w);
    ck_assert(task_ends(&task, 5000));
    OK(task_join(&task));
    OK(rlock_rwlock_unlock(&w));
}

static int wrunlock(void)
{
    return rlock_rwlock_wrunlock(&w);
}

static int by_turns(void)
{
    int rc = 0, depth = 0;
    for (; rc == 0 && depth < 20; depth++)
        rc = depth % 4 < 2 ? rlock_rwlock_rdlock(&w) : rlock_rwlock_wrlock(&w);
    if (rc != 0)
        depth--;
    for (; depth > 0; depth--)
        if (rlock_rwlock_unlock(&w) != 0)
            return -1;
    return rc;
}

static void unlock_w(int rc)
{
    (void)rc;
    OK(rlock_rwlock_unlock(&w));
}

/* A waiter whose id is beyond 16 KiB: the connection gets a bigger buffer, which it has
 * to free again. */
static void queue_much(void)
{
    static char id[40000];
    snprintf(id, sizeof(id), "%030000d:1:1:m3000", 0);
    test_redis_do(redis, "ZADD", "rlock:{much}:queue", "1", id);
    OK(rlock_client_ping(client)); /* later its request needs no memory */
}

static int inspect_much(void)
{
    rlock_info_t *info = NULL;
    int rc = rlock_inspect(client, "much", &info);
    rlock_info_free(info);
    int pinged = rlock_client_ping(client); /* by the same connection, in any case */
    return rc != 0 ? rc : pinged;
}

static int inspect(void)
{
    rlock_info_t *info = NULL;
    int rc = rlock_inspect(client, "n", &info);
    bool good = rc != 0 || (info->holder_count == 1 && strcmp(info->name, "n") == 0);
    rlock_info_free(info);
    return good ? rc : -1;
}

static int count_lock(const rlock_info_t *info, void *arg)
{
    ++*(int *)arg;
    return info->holder_count == 1 ? 0 : -1;
}

static int list(void)
{
    int seen = 0;
    int rc = rlock_list(client, "n", count_lock, &seen);
    return rc == 0 && seen != 1 ? -1 : rc;
}

static int count_finding(const rlock_finding_t *finding, void *arg)
{
    ++*(int *)arg;
    return finding->text[0] != '\0' ? 0 : -1;
}

static int diagnose(void)
{
    int seen = 0;
    int rc = rlock_client_diagnose(client, count_finding, &seen);
    return rc == 0 && seen == 0 ? -1 : rc;
}

static int force(void)
{
    return rlock_force_unlock(client, "n");
}

static void is_lost_if_forced(int rc)
{
    if (rc != 0)
        OK(rlock_mutex_unlock(&theirs));
    else
        EXPECT(rlock_mutex_unlock(&theirs), ESTALE);
}

static int waitfree(void)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, WAIT_MS);
    return rlock_waitfree(client, "n", &end);
}

static int init_and_destroy(void)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t made;
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutex_init(&made, &attr, NULL);
    if (rc == 0)
        rc = rlock_mutex_destroy(&made);
    return rc;
}

static void nothing(void)
{
}

static void no_matter(int rc)
{
    (void)rc;
}

/* ---- for every n */

static const struct scene {
    const char *name;
    void (*prepare)(void);
    int (*call)(void);
    void (*settle)(int rc);
    int wanted;  /* what it returns when nothing fails */
    int refused; /* for want of memory; 0: it may not fail */
    int late;    /* also allowed: a reply was lost, and there was no time to ask again */
} scenes[] = {
    { "open", nothing, open_and_close, no_matter, 0, ENOMEM, 0 },
    { "open with all", nothing, open_with_everything, no_matter, 0, ENOMEM, 0 },
    { "open by the file", name_by_a_file, open_by_the_file, drop_the_file, 0, ENOMEM, 0 },
    { "ask of the file", name_by_a_file, ask_of_the_file, drop_the_file, 0, ENOMEM, 0 },
    { "default", nothing, set_default_and_use_it, close_default, 0, ENOMEM, 0 },
    { "first ping", open_mine, first_ping, close_mine, 0, ENOMEM, 0 },
    { "ping", nothing, ping, no_matter, 0, ENOMEM, 0 },
    { "inspect, much", queue_much, inspect_much, no_matter, 0, ENOMEM, 0 },
    { "first lock", open_mine_with_a_mutex, lock, close_mine_and_mutex, 0, ENOMEM, 0 },
    { "lock", nothing, lock, pair_of_m, 0, ENOMEM, 0 },
    { "lock_lease", nothing, lock_lease, pair_of_m, 0, ENOMEM, 0 },
    { "trylock", nothing, trylock, pair_of_m, 0, ENOMEM, 0 },
    { "trylock, busy", lock_theirs, trylock, unlock_theirs, EBUSY, ENOMEM, 0 },
    { "timedlock", lock_theirs, timedlock, unlock_theirs, ETIMEDOUT, ENOMEM, ENOTCONN },
    { "timedlock, fair", lock_theirs, fair_timedlock, unlock_theirs, ETIMEDOUT, ENOMEM,
      ENOTCONN },
    { "timedrdlock", lock_theirs, timedrdlock, unlock_theirs, ETIMEDOUT, ENOMEM,
      ENOTCONN },
    { "fair lock", nothing, fair_lock_once, pair_of_f, 0, ENOMEM, 0 },
    { "unlock", lock_m, unlock, theirs_soon, 0, 0, 0 },
    { "lock again", lock_m, again, unlock_m, 0, 0, 0 },
    { "extend", lock_m, extend, unlock_m_once, 0, ENOMEM, 0 },
    { "fenced", nothing, fenced_with_token, pair_of_fenced, 0, ENOMEM, 0 },
    { "robust", die_with_robust, lock_robust, pair_of_robust, EOWNERDEAD, ENOMEM, 0 },
    { "rdlock", nothing, rdlock, pair_of_w, 0, ENOMEM, 0 },
    { "wrlock", nothing, wrlock, pair_of_w, 0, ENOMEM, 0 },
    { "rdlock, shared", let_another_read, rdlock, all_have_read, 0, ENOMEM, 0 },
    { "extend, shared", read_with_another, leave_the_other, both_unlock, 0, ENOMEM, 0 },
    { "rdunlock", read_with_another, rdunlock, other_unlocks, 0, 0, 0 },
    { "downgrade", write_w, downgrade, readers_may_come, 0, 0, 0 },
    { "wrunlock", write_w, wrunlock, theirs_soon, 0, 0, 0 },
    { "levels", write_w, by_turns, unlock_w, 0, EAGAIN, 0 },
    { "inspect", lock_m, inspect, unlock_m_once, 0, ENOMEM, 0 },
    { "list", lock_m, list, unlock_m_once, 0, ENOMEM, 0 },
    { "diagnose", nothing, diagnose, no_matter, 0, ENOMEM, 0 },
    { "force_unlock", lock_theirs, force, is_lost_if_forced, 0, ENOMEM, 0 },
    { "waitfree", nothing, waitfree, no_matter, 0, ENOMEM, 0 },
    { "waitfree, held", lock_theirs, waitfree, unlock_theirs, ETIMEDOUT, ENOMEM,
      ENOTCONN },
    { "init", nothing, init_and_destroy, no_matter, 0, ENOMEM, 0 },
};
enum { SCENE_COUNT = sizeof(scenes) / sizeof(scenes[0]) };

static void check_code(const struct scene *s, long n, int rc, long failed)
{
    bool good =
        rc == s->wanted || (failed > 0 && ((s->refused != 0 && rc == s->refused) ||
                                           (s->late != 0 && rc == s->late)));
    ck_assert_msg(good, "%s: allocation %ld%s: %d %s \"%s\"", s->name, n,
                  fails_from ? " and later" : "", rc, rlock_strerror(rc), rlock_errmsg());
}

/* Repeats until the call needs no more than n allocations. */
static void run_scene(const struct scene *s)
{
    long failed = 1;
    for (long n = 1; failed > 0; n++) {
        s->prepare();
        test_alloc_this_thread(true);
        let_fail(n);
        errno = ODD_ERRNO;
        int rc = s->call(), error = errno;
        failed = test_alloc_failed();
        test_alloc_fail_at(0);
        check_code(s, n, rc, failed);
        ck_assert_msg(error == ODD_ERRNO, "%s: allocation %ld: errno", s->name, n);
        s->settle(rc);
        ck_assert_int_lt(n, NS_MAX);
    }
}

/* The replies that the test itself keeps always take the same memory. */
static long live(void)
{
    test_redis_do(redis, "PING");
    return test_alloc_live();
}

static bool can_fail(const char *test)
{
    if (test_alloc_available())
        return true;
    printf("skipped: %s: another allocator is in its place\n", test);
    return false;
}

static void set_up(void)
{
    fixture_open();
    close_client(client); /* the tests open their own, and count */
    client = NULL;
}

static void run_leaking_nothing(const struct scene *s)
{
    open_all(); /* makes what is made once in a process, */
    EXPECT(rlock_client_open(&mine, "no URL", NULL), EINVAL); /* and once in a thread */
    test_alloc_fail_at(0);
    for (int i = 0; i < 2; i++) {
        s->prepare();
        s->settle(s->call());
    }
    close_all();
    long before = live();
    open_all();
    run_scene(s);
    close_all();
    long after = live();
    ck_assert_msg(after == before, "%s: %ld blocks leaked", s->name, after - before);
}

START_TEST(nth_allocation_failing_is_ENOMEM_or_success_and_leaks_nothing)
{
    fails_from = false;
    if (can_fail(scenes[_i].name))
        run_leaking_nothing(&scenes[_i]);
}
END_TEST

START_TEST(all_allocations_from_the_nth_on_failing_are_ENOMEM_or_success)
{
    fails_from = true;
    if (can_fail(scenes[_i].name))
        run_leaking_nothing(&scenes[_i]);
}
END_TEST

START_TEST(first_lock_of_a_thread_is_ENOMEM_or_success)
{
    if (!can_fail("first_lock_of_a_thread_is_ENOMEM_or_success"))
        return;
    fails_from = _i == 1;
    open_all();
    failed_then = 1;
    for (fails_at = 1; failed_then > 0; fails_at++) {
        int rc = in_thread(run_first_lock, NULL);
        ck_assert_msg(rc == 0 || (rc == ENOMEM && failed_then > 0), "%ld: %d", fails_at,
                      rc);
    }
    close_all();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memory");
    TCase *tc = tcase_create("calls");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, nth_allocation_failing_is_ENOMEM_or_success_and_leaks_nothing,
                        0, SCENE_COUNT);
    tcase_add_loop_test(tc, all_allocations_from_the_nth_on_failing_are_ENOMEM_or_success,
                        0, SCENE_COUNT);
    tcase_add_loop_test(tc, first_lock_of_a_thread_is_ENOMEM_or_success, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
