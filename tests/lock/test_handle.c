/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_handle,rwlock_handle */
/* Handles and names of mutexes, what their functions never change (errno, the object on
 * failure), and messages. */

#include "lock/handle.h" /* before the fixture, which has a variable "client" */

#include "fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlock_mutex_t m;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
}

/* ---- every function that takes a handle */

static int timed(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 10);
    return rlock_mutex_timedlock(mutex, &at);
}

static int clocked(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 10);
    return rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at);
}

static int timed_lease(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 10);
    return rlock_mutex_timedlock_lease(mutex, &at, 60000);
}

static int clocked_lease(rlock_mutex_t *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 10);
    return rlock_mutex_clocklock_lease(mutex, CLOCK_MONOTONIC, &at, 60000);
}

static int lock_lease(rlock_mutex_t *mutex)
{
    return rlock_mutex_lock_lease(mutex, 60000);
}

static int try_lease(rlock_mutex_t *mutex)
{
    return rlock_mutex_trylock_lease(mutex, 60000);
}

static int extend(rlock_mutex_t *mutex)
{
    return rlock_mutex_extend(mutex, 60000);
}

static int get_token(rlock_mutex_t *mutex)
{
    uint64_t token;
    return rlock_mutex_gettoken(mutex, &token);
}

static int get_remaining(rlock_mutex_t *mutex)
{
    long ms;
    return rlock_mutex_getremaining(mutex, &ms);
}

static int get_state(rlock_mutex_t *mutex)
{
    rlock_state_t state;
    return rlock_mutex_getstate(mutex, &state);
}

static int get_count(rlock_mutex_t *mutex)
{
    unsigned count;
    return rlock_mutex_getholdcount(mutex, &count);
}

#ifdef AS_RWLOCK /* what each of the two has alone */
static int timed_read(rlock_mutex_t *rwlock)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 10);
    return rlock_rwlock_timedrdlock(rwlock, &at);
}

static int clocked_read(rlock_mutex_t *rwlock)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 10);
    return rlock_rwlock_clockrdlock(rwlock, CLOCK_MONOTONIC, &at);
}

static int read_lease(rlock_mutex_t *rwlock)
{
    return rlock_rwlock_rdlock_lease(rwlock, 60000);
}

static int try_read_lease(rlock_mutex_t *rwlock)
{
    return rlock_rwlock_tryrdlock_lease(rwlock, 60000);
}

static int timed_read_lease(rlock_mutex_t *rwlock)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, 10);
    return rlock_rwlock_timedrdlock_lease(rwlock, &at, 60000);
}

static int clocked_read_lease(rlock_mutex_t *rwlock)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, 10);
    return rlock_rwlock_clockrdlock_lease(rwlock, CLOCK_MONOTONIC, &at, 60000);
}
#else
static int get_ceiling(rlock_mutex_t *mutex)
{
    int ceiling;
    return rlock_mutex_getprioceiling(mutex, &ceiling);
}

static int set_ceiling(rlock_mutex_t *mutex)
{
    return rlock_mutex_setprioceiling(mutex, 1, NULL);
}
#endif

/* In an order in which they can be called one after the other. `free_rc` is the answer
 * for a good handle of a free lock; -1: the function takes the lock, -2: and waits
 * without a deadline. */
static const struct {
    const char *name;
    int (*call)(rlock_mutex_t *mutex);
    int free_rc;
} functions[] = {
    { "unlock", rlock_mutex_unlock, EPERM },
    { "extend", extend, EPERM },
    { "gettoken", get_token, EPERM },
    { "getremaining", get_remaining, EPERM },
    { "getstate", get_state, 0 },
    { "getholdcount", get_count, 0 },
#ifdef AS_RWLOCK
    { "rdunlock", rlock_rwlock_rdunlock, EPERM },
    { "wrunlock", rlock_rwlock_wrunlock, EPERM },
    { "downgrade", rlock_rwlock_downgrade, EPERM },
    { "rdlock", rlock_rwlock_rdlock, -2 },
    { "tryrdlock", rlock_rwlock_tryrdlock, -1 },
    { "timedrdlock", timed_read, -1 },
    { "clockrdlock", clocked_read, -1 },
    { "rdlock_lease", read_lease, -2 },
    { "tryrdlock_lease", try_read_lease, -1 },
    { "timedrdlock_lease", timed_read_lease, -1 },
    { "clockrdlock_lease", clocked_read_lease, -1 },
#else
    { "consistent", rlock_mutex_consistent, EINVAL },
    { "consistent_np", rlock_mutex_consistent_np, EINVAL },
    { "getprioceiling", get_ceiling, ENOTSUP },
    { "setprioceiling", set_ceiling, ENOTSUP },
#endif
    { "lock", rlock_mutex_lock, -2 },
    { "trylock", rlock_mutex_trylock, -1 },
    { "timedlock", timed, -1 },
    { "clocklock", clocked, -1 },
    { "lock_lease", lock_lease, -2 },
    { "trylock_lease", try_lease, -1 },
    { "timedlock_lease", timed_lease, -1 },
    { "clocklock_lease", clocked_lease, -1 },
    { "destroy", rlock_mutex_destroy, 0 },
};
enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void assert_all_EINVAL(const char *what, rlock_mutex_t *mutex)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        rlock_mutex_t copy;
        if (mutex)
            copy = *mutex;
        int rc = functions[i].call(mutex ? &copy : NULL);
        ck_assert_msg(rc == EINVAL, "%s, %s: %s", functions[i].name, what,
                      rlock_strerror(rc));
        ck_assert_str_ne(rlock_errmsg(), "");
        if (mutex)
            ck_assert_int_eq(memcmp(mutex, &copy, sizeof(copy)), 0);
    }
}

START_TEST(NULL_and_zeroed_handles_are_EINVAL)
{
    rlock_mutex_t zero;
    memset(&zero, 0, sizeof(zero));
    assert_all_EINVAL("NULL", NULL);
    assert_all_EINVAL("zeroed", &zero);
}
END_TEST

START_TEST(garbage_handles_are_EINVAL)
{
    rlock_mutex_t g;
    uint32_t state = 99;
    memset(&g, 0xff, sizeof(g));
    assert_all_EINVAL("0xff", &g);
    memset(&g, 'R', sizeof(g));
    assert_all_EINVAL("text", &g);
    for (int n = 0; n < 100; n++) {
        for (size_t i = 0; i < sizeof(g); i++) {
            state = state * 1664525u + 1013904223u;
            ((unsigned char *)&g)[i] = (unsigned char)(state >> 24);
        }
        assert_all_EINVAL("random", &g);
    }
}
END_TEST

START_TEST(damaged_handles_are_EINVAL)
{
    rlock_mutex_t d = m;
    d.rlk.rlk_name_len = 0;
    assert_all_EINVAL("no name", &d);
    d = m;
    d.rlk.rlk_name_len = 201;
    assert_all_EINVAL("201 bytes", &d);
    d = m;
    for (uint8_t kind = 0; kind <= RLK_KIND_RWLOCK + 1; kind++) {
        d.rlk.rlk_kind = kind;
        if (kind != m.rlk.rlk_kind)
            assert_all_EINVAL("another kind", &d);
    }
    d = m;
    d.rlk.rlk_magic ^= 1u << 24;
    assert_all_EINVAL("another layout", &d);
    d = m;
    memset(d.rlk.rlk_name, 'x', sizeof(d.rlk.rlk_name));
    assert_all_EINVAL("a name without end", &d);
    d = m;
    d.rlk.rlk_name_len = 5; /* longer than the name in the handle */
    EXPECT(rlock_mutex_lock(&d), EINVAL);
    d = mutex_of(client, "nlock:x");
    d.rlk.rlk_name[0] = 'r'; /* "rlock:x" */
    EXPECT(rlock_mutex_lock(&d), EINVAL);
    EXPECT(rlock_mutex_trylock(&d), EINVAL);
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

START_TEST(handle_of_a_closed_client_is_EINVAL)
{
    rlock_mutex_t orphan = mutex_of(fixture_other(), "n");
    close_client(other);
    other = NULL;
    EXPECT(rlock_mutex_lock(&orphan), EINVAL);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "closed"));
    EXPECT(rlock_mutex_trylock(&orphan), EINVAL);
    EXPECT(rlock_mutex_unlock(&orphan), EPERM);
    OK(rlock_mutex_destroy(&orphan));
}
END_TEST

START_TEST(NULL_results_are_EINVAL)
{
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_gettoken(&m, NULL), EINVAL);
    EXPECT(rlock_mutex_getremaining(&m, NULL), EINVAL);
    EXPECT(rlock_mutex_getstate(&m, NULL), EINVAL);
    EXPECT(rlock_mutex_getholdcount(&m, NULL), EINVAL);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(good_handle_of_a_free_lock_gives_each_functions_code)
{
    for (int i = 0; i < FUNCTIONS; i++) {
        int rc = functions[i].call(&m), wanted = functions[i].free_rc;
        ck_assert_msg(rc == (wanted < 0 ? 0 : wanted), "%s: %s", functions[i].name,
                      rlock_strerror(rc));
        if (wanted < 0)
            OK(rlock_mutex_unlock(&m));
    }
}
END_TEST

START_TEST(errno_is_left_alone)
{
    enum { MARK = 12345 };
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n"), zero;
    memset(&zero, 0, sizeof(zero));
    for (int busy = 0; busy < 2; busy++) {
        for (int i = 0; i < FUNCTIONS; i++) {
            rlock_mutex_t copy = m;
            if (busy && functions[i].free_rc < 0) {
                if (functions[i].free_rc == -2)
                    continue;
                OK(rlock_mutex_lock(&theirs));
            }
            errno = MARK;
            functions[i].call(&copy);
            ck_assert_msg(errno == MARK, "%s: %d", functions[i].name, errno);
            if (functions[i].free_rc < 0)
                rlock_mutex_unlock(busy ? &theirs : &copy);
            ck_assert_msg(errno == MARK, "unlock after %s: %d", functions[i].name, errno);
            functions[i].call(&zero);
            ck_assert_int_eq(errno, MARK);
        }
    }
    errno = MARK;
    OK(rlock_mutex_init(&theirs, NULL, NULL));
    EXPECT(rlock_mutex_init(&theirs, NULL, ""), EINVAL);
    rlock_strerror(EBUSY);
    rlock_errmsg();
    rlock_version();
    ck_assert_int_eq(errno, MARK);
}
END_TEST

START_TEST(errno_is_left_alone_without_a_server)
{
    enum { MARK = 12345 };
    rlock_client_t *lost = NULL;
    OK(rlock_client_open(&lost, "unix:///nonexistent/socket?commandtimeout=100", NULL));
    rlock_mutex_t away = mutex_of(lost, "n");
    errno = MARK;
    ck_assert_int_eq(rlock_mutex_trylock(&away), ENOTCONN);
    ck_assert_int_eq(timed(&away), ENOTCONN);
    ck_assert_int_eq(rlock_client_ping(lost), ENOTCONN);
    ck_assert_int_eq(rlock_client_close(lost), 0);
    ck_assert_int_eq(errno, MARK);
}
END_TEST

START_TEST(errmsg_tells_of_the_last_call_only)
{
    struct timespec at = { 0, 0 };
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");

    OK(rlock_mutex_lock(&m));
    ck_assert_str_eq(rlock_errmsg(), "");
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    ck_assert_str_ne(rlock_errmsg(), "");
    OK(rlock_mutex_lock(&m));
    ck_assert_str_eq(rlock_errmsg(), "");
    EXPECT(rlock_mutex_timedlock(&theirs, &at), ETIMEDOUT);
    ck_assert_str_ne(rlock_errmsg(), "");
    OK(rlock_mutex_unlock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert_str_eq(rlock_errmsg(), "");
    EXPECT(rlock_mutex_unlock(&m), EPERM);
    ck_assert_str_ne(rlock_errmsg(), "");
    /* a call that had to connect again has not failed */
    test_redis_kill_clients(redis);
    OK(rlock_mutex_lock(&m));
    ck_assert_str_eq(rlock_errmsg(), "");
    test_redis_kill_clients(redis);
    OK(rlock_mutex_unlock(&m));
    ck_assert_str_eq(rlock_errmsg(), "");
}
END_TEST

START_TEST(every_code_has_a_sentence)
{
    static const int codes[] = { EBUSY,    ETIMEDOUT,       EDEADLK,      EPERM,
                                 EAGAIN,   EINVAL,          ENAMETOOLONG, ENOMEM,
                                 ENOENT,   EOWNERDEAD,      ESTALE,       ENOTSUP,
                                 ENOTCONN, ENOTRECOVERABLE, ECANCELED,    EACCES,
                                 EPROTO,   EMFILE,          ENFILE,       0 };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        ck_assert_str_ne(rlock_strerror(codes[i]), "");
        ck_assert_str_ne(rlock_strerror(codes[i]), rlock_strerror(-1));
    }
    ck_assert_ptr_nonnull(rlock_strerror(-1));
    ck_assert_ptr_nonnull(rlock_strerror(INT_MAX));
    ck_assert_str_eq(rlock_version(), RLOCK_VERSION);
}
END_TEST

/* ---- init and destroy */

START_TEST(init_and_destroy_do_not_talk_to_the_server)
{
    rlock_mutex_t fresh;
    uint64_t trips = stats_of(client).round_trips;
    for (int i = 0; i < 100; i++) {
        fresh = mutex_of(client, "fresh");
        OK(rlock_mutex_destroy(&fresh));
    }
    ck_assert_uint_eq(stats_of(client).round_trips, trips);
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

START_TEST(init_refuses_bad_arguments_and_leaves_the_handle)
{
    rlock_mutexattr_t attr, shared;
    rlock_mutex_t before = m;

    EXPECT(rlock_mutex_init(NULL, NULL, "n"), EINVAL);
    memset(&attr, 0, sizeof(attr));
    EXPECT(rlock_mutex_init(&m, &attr, "n"), EINVAL);
    memset(&attr, 0xff, sizeof(attr));
    EXPECT(rlock_mutex_init(&m, &attr, "n"), EINVAL);
    OK(rlock_mutexattr_init(&shared));
    OK(rlock_mutexattr_setpshared(&shared, RLOCK_PROCESS_SHARED));
    OK(rlock_mutexattr_setclient(&shared, client));
    EXPECT(rlock_mutex_init(&m, &shared, "n"), ENOTSUP);
    OK(rlock_mutexattr_setclient(&shared, fixture_other()));
    OK(rlock_mutexattr_setpshared(&shared, RLOCK_PROCESS_PRIVATE));
    close_client(other);
    other = NULL;
    EXPECT(rlock_mutex_init(&m, &shared, "n"), EINVAL);
    EXPECT(rlock_mutex_init(&m, NULL, "rlock:x"), EINVAL);
    EXPECT(rlock_mutex_init(&m, NULL, ""), EINVAL);
    ck_assert_int_eq(memcmp(&m, &before, sizeof(m)), 0);
    OK(rlock_mutexattr_setclient(&shared, NULL));
    OK(rlock_mutexattr_setpshared(&shared, RLOCK_PROCESS_SHARED));
    OK(rlock_mutex_init(&m, &shared, "n"));
}
END_TEST

START_TEST(destroy_is_EBUSY_while_this_process_holds_it)
{
    struct task task;
    rlock_mutex_t handle = m, theirs = mutex_of(fixture_other(), "n");

    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    EXPECT(rlock_mutex_destroy(&handle), EBUSY); /* as for every handle of the name */
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1));
    OK(rlock_mutex_unlock(&m));
    OK(task_join(&task));
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_mutex_destroy(&m)); /* the hold of another party does not count */
    EXPECT(rlock_mutex_destroy(&m), EINVAL);
    assert_all_EINVAL("destroyed", &m);
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_mutex_init(&m, NULL, "n")); /* the handle may be made again */
    OK(rlock_mutex_destroy(&m));
}
END_TEST

static rlock_mutex_t held_by_thread;
static atomic_int step;

static int run_hold(void *arg)
{
    (void)arg;
    int rc = rlock_mutex_lock(&held_by_thread);
    atomic_store(&step, 1);
    while (atomic_load(&step) == 1)
        test_pause_ms(1);
    return rc != 0 ? rc : rlock_mutex_unlock(&held_by_thread);
}

START_TEST(destroy_is_EBUSY_while_another_thread_holds_it)
{
    struct task task;
    held_by_thread = m;
    atomic_store(&step, 0);
    task_start(&task, run_hold, NULL);
    while (atomic_load(&step) == 0)
        test_pause_ms(1);
    EXPECT(rlock_mutex_destroy(&m), EBUSY);
    atomic_store(&step, 2);
    OK(task_join(&task));
    OK(rlock_mutex_destroy(&m));
}
END_TEST

/* ---- names */

START_TEST(NULL_name_makes_a_fresh_one)
{
    rlock_mutex_t a = mutex_of(client, NULL), b = mutex_of(client, NULL), copy = a;
    ck_assert_str_ne(a.rlk.rlk_name, b.rlk.rlk_name);
    OK(rlock_mutex_lock(&a));
    OK(rlock_mutex_lock(&b));
    ck_assert_int_eq(count_of(&copy), 1);
    ck_assert(test_redis_exists(redis, a.rlk.rlk_name));
    OK(rlock_mutex_unlock(&b));
    OK(rlock_mutex_unlock(&copy));
}
END_TEST

static void assert_usable(const char *name)
{
    rlock_mutex_t mine = mutex_of(client, name), theirs = mutex_of(fixture_other(), name);
    const char *argv[] = { "EXISTS", name };
    size_t len[] = { 6, strlen(name) };

    OK(rlock_mutex_lock(&mine));
    ck_assert_int_eq((int)test_redis_try_bytes(redis, 2, argv, len)->integer, 1);
    EXPECT(rlock_mutex_trylock(&theirs), EBUSY);
    struct task task;
    task_start(&task, run_pair, &theirs);
    ck_assert(wait_waiters(other, 1));
    OK(rlock_mutex_unlock(&mine));
    OK(task_join(&task)); /* the message of the grant carries the name, too */
    ck_assert_int_eq((int)test_redis_try_bytes(redis, 2, argv, len)->integer, 0);
}

START_TEST(every_byte_may_be_in_a_name)
{
    char name[RLOCK_NAME_MAX + 1];
    for (int from = 1; from < 256; from += 85) {
        size_t len = 0;
        for (int c = from; c < from + 85; c++)
            if (c != '{' && c != '}')
                name[len++] = (char)c;
        name[len] = '\0';
        assert_usable(name);
    }
    for (int c = 1; c < 256; c++) {
        if (c == '{' || c == '}')
            continue;
        char one[] = { (char)c, '\0' };
        rlock_mutex_t single = mutex_of(client, one);
        OK(rlock_mutex_lock(&single));
        OK(rlock_mutex_unlock(&single));
    }
}
END_TEST

static const char *const usable[] = {
    "*",          "?",        "[a-z]*",   "\\",         "a b",     " ",
    "\n",         "\r\n",     "%s%n",     "'\"",        "{tag}",   "{tag}:orders",
    "orders:{t}", "a{b c}d",  "Rlock:x",  "rlock",      "rlockx:", "redisson",
    "x:rlock:y",  "\xff\xfe", "\xc3\xa9", "1 lost x y", "$-1",     "nil",
    "{rlock:x}",
};

START_TEST(odd_name_is_a_name)
{
    assert_usable(usable[_i]);
}
END_TEST

START_TEST(globs_and_near_names_are_other_locks)
{
    static const char *const names[] = {
        "a", "A", "a ", " a", "*", "?", "{a}", "a:queue"
    };
    rlock_mutex_t handles[8];
    for (int i = 0; i < 8; i++) {
        handles[i] = mutex_of(client, names[i]);
        OK(rlock_mutex_lock(&handles[i]));
        ck_assert_int_eq(count_of(&handles[i]), 1);
    }
    for (int i = 0; i < 8; i++)
        OK(rlock_mutex_unlock(&handles[i]));
}
END_TEST

static const char *const refused[] = {
    "",
    "{",
    "}",
    "{}",
    "}{",
    "a{b",
    "a}b",
    "{a",
    "a}",
    "{}a",
    "{a}{b}",
    "{{a}}",
    "{a}}",
    "{{a}",
    "{a}b{",
    "rlock:x",
    "rlock:",
    "redisson_x",
    "redisson_",
    "redisson_lock__channel:{a}",
    "rlock:{a}:queue",
};

START_TEST(forbidden_name_is_EINVAL)
{
    rlock_mutex_t before = m;
    EXPECT(rlock_mutex_init(&m, NULL, refused[_i]), EINVAL);
    ck_assert_str_ne(rlock_errmsg(), "");
    ck_assert_int_eq(memcmp(&m, &before, sizeof(m)), 0);
}
END_TEST

START_TEST(name_of_200_bytes_is_the_longest)
{
    char name[4096];
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    EXPECT(rlock_mutex_init(&m, NULL, name), ENAMETOOLONG);
    name[201] = '\0';
    EXPECT(rlock_mutex_init(&m, NULL, name), ENAMETOOLONG);
    name[200] = '\0';
    assert_usable(name);
    name[0] = '{';
    name[199] = '}';
    assert_usable(name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("handle");
    TCase *tc = tcase_create("handles");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, NULL_and_zeroed_handles_are_EINVAL);
    tcase_add_test(tc, garbage_handles_are_EINVAL);
    tcase_add_test(tc, damaged_handles_are_EINVAL);
    tcase_add_test(tc, handle_of_a_closed_client_is_EINVAL);
    tcase_add_test(tc, NULL_results_are_EINVAL);
    tcase_add_test(tc, good_handle_of_a_free_lock_gives_each_functions_code);
    tcase_add_test(tc, errno_is_left_alone);
    tcase_add_test(tc, errno_is_left_alone_without_a_server);
    tcase_add_test(tc, errmsg_tells_of_the_last_call_only);
    tcase_add_test(tc, every_code_has_a_sentence);
    suite_add_tcase(suite, tc);

    tc = tcase_create("init and destroy");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, init_and_destroy_do_not_talk_to_the_server);
    tcase_add_test(tc, init_refuses_bad_arguments_and_leaves_the_handle);
    tcase_add_test(tc, destroy_is_EBUSY_while_this_process_holds_it);
    tcase_add_test(tc, destroy_is_EBUSY_while_another_thread_holds_it);
    suite_add_tcase(suite, tc);

    tc = tcase_create("names");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, NULL_name_makes_a_fresh_one);
    tcase_add_test(tc, every_byte_may_be_in_a_name);
    tcase_add_loop_test(tc, odd_name_is_a_name, 0, sizeof(usable) / sizeof(usable[0]));
    tcase_add_test(tc, globs_and_near_names_are_other_locks);
    tcase_add_loop_test(tc, forbidden_name_is_EINVAL, 0,
                        sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tc, name_of_200_bytes_is_the_longest);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
