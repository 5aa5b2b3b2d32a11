/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's threads: how many there are, what happens when one cannot be started, and
 * the sizes of stacks, the callers' and the library's.
 */
#include "fixture.h"

#include "base/sync.h"
#include "process.h"
#include "program.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* Instrumented programs need stacks of a size of their own. */
static bool is_instrumented(void)
{
    return IS_SANITIZED || test_ms(1) >= 10; /* Valgrind */
}

enum { SOON_MS = 10000, CLIENTS = 50, LOCKS = 20, KIB = 1024, PAGE_BYTES = 4096 };

static rlock_mutex_t m;
static char test_program[64]; /* this program */

static void set_up(void)
{
    fixture_open();
    close_client(client); /* the tests open their own clients, and count */
    client = NULL;
}

static bool skipped(const char *test, bool not_here, const char *why)
{
    if (not_here)
        printf("skipped: %s: %s\n", test, why);
    return not_here;
}

/* ---- a pthread_create that fails when a test asks: the program's definition precedes
 * libc's */

static atomic_int creations, failing; /* which creation fails, from 1; 0: none */
enum { SIZES_MAX = 16 };
static size_t stack_sizes[SIZES_MAX]; /* of the first threads; 0: the program's default */

typedef int (*creator)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                   void *arg)
{
    creator next;
    void *symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&next, &symbol, sizeof(next));
    int n = atomic_fetch_add(&creations, 1);
    if (n + 1 == atomic_load(&failing))
        return EAGAIN;
    if (attr && n < SIZES_MAX)
        pthread_attr_getstacksize(attr, &stack_sizes[n]);
    return next(thread, attr, run, arg);
}
#endif

static void fail_creation(int n)
{
    atomic_store(&creations, 0);
    atomic_store(&failing, n);
}

/* ---- how many */

static rlock_client_t *many[CLIENTS];
static rlock_mutex_t locks[CLIENTS][LOCKS];

static int lock_all(void *unused)
{
    int rc = 0;
    (void)unused;
    for (int c = 0; rc == 0 && c < CLIENTS; c++)
        for (int i = 0; rc == 0 && i < LOCKS; i++)
            rc = rlock_mutex_lock(&locks[c][i]);
    return rc;
}

static int unlock_all(void *unused)
{
    int rc = 0;
    (void)unused;
    for (int c = 0; rc == 0 && c < CLIENTS; c++)
        for (int i = 0; rc == 0 && i < LOCKS; i++)
            rc = rlock_mutex_unlock(&locks[c][i]);
    return rc;
}

static bool renewed_everywhere(void *unused)
{
    (void)unused;
    for (int c = 0; c < CLIENTS; c++)
        if (stats_of(many[c]).renewals < LOCKS)
            return false;
    return true;
}

START_TEST(two_threads_serve_fifty_clients_with_twenty_locks_each)
{
    char name[32];
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
    for (int c = 0; c < CLIENTS; c++) {
        char lease[32];
        snprintf(lease, sizeof(lease), "?lease=%ld", test_ms(3000));
        many[c] = open_with(lease);
        for (int i = 0; i < LOCKS; i++) {
            snprintf(name, sizeof(name), "n%d-%d", c, i);
            locks[c][i] = mutex_of(many[c], name);
        }
    }
    OK(lock_all(NULL));
    ck_assert_int_eq(test_thread_count("rlock-"), 2);
    ck_assert(test_wait_until(renewed_everywhere, NULL, SOON_MS));
    ck_assert_int_eq(test_thread_count("rlock-"), 2);
    OK(unlock_all(NULL));
    for (int c = 0; c < CLIENTS; c++) {
        ck_assert_int_eq(test_thread_count("rlock-"), 2);
        close_client(many[c]);
    }
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
}
END_TEST

START_TEST(resolvers_end_by_themselves)
{
    char url[TEST_URL_MAX];
    /* a joined thread may still be seen in /proc for a moment */
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
    int before = test_thread_count("");
    snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)server.port);
    client = open_at(url, "");
    OK(rlock_client_ping(client));
    ck_assert(test_thread_wait("", before + 2, SOON_MS));
    ck_assert_int_eq(test_thread_count("rlock-"), 2);
    close_client(client);
    client = NULL;
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
    ck_assert(test_thread_wait("", before, SOON_MS));
}
END_TEST

/* ---- threads that cannot be started */

START_TEST(open_without_its_nth_thread_is_EAGAIN_and_leaves_nothing)
{
    if (skipped("open_without_its_nth_thread_is_EAGAIN_and_leaves_nothing", IS_SANITIZED,
                "the sanitizer has pthread_create"))
        return;
    int before = test_fd_count();
    fail_creation(_i);
    int rc = rlock_client_open(&client, server.url, NULL);
    fail_creation(0);
    EXPECT(rc, EAGAIN);
    ck_assert_ptr_null(client);
    ck_assert(test_thread_wait("", 1, SOON_MS));
    ck_assert_int_eq(test_fd_count(), before);
    OK(rlock_client_open(&client, server.url, NULL));
    OK(rlock_client_ping(client));
    close_client(client);
    client = NULL;
    ck_assert_int_eq(test_fd_count(), before);
}
END_TEST

START_TEST(default_client_without_its_nth_thread_is_EAGAIN_once)
{
    static rlock_mutex_t by_default = RLOCK_MUTEX_INITIALIZER("n");
    if (skipped("default_client_without_its_nth_thread_is_EAGAIN_once", IS_SANITIZED,
                "the sanitizer has pthread_create"))
        return;
    OK(rlock_client_setdefault(server.url, NULL));
    fail_creation(_i);
    int rc = rlock_mutex_lock(&by_default);
    fail_creation(0);
    EXPECT(rc, EAGAIN);
    OK(rlock_mutex_lock(&by_default));
    OK(rlock_mutex_unlock(&by_default));
    close_client(NULL);
}
END_TEST

START_TEST(resolver_that_cannot_be_started_fails_that_attempt_alone)
{
    char url[TEST_URL_MAX];
    if (skipped("resolver_that_cannot_be_started_fails_that_attempt_alone", IS_SANITIZED,
                "the sanitizer has pthread_create"))
        return;
    snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)server.port);
    /* a joined thread may still be seen in /proc for a moment */
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
    int threads = test_thread_count("");
    client = open_at(url, "");
    m = mutex_of(client, "n");
    ck_assert(test_thread_wait("", threads + 2, SOON_MS)); /* its resolver has ended */
    int before = test_fd_count();
    fail_creation(1);
    int rc = rlock_client_ping(client);
    ck_assert_int_eq(atomic_load(&creations), 1);
    EXPECT(rc, EAGAIN);
    ck_assert_int_eq(test_fd_count(), before);
    fail_creation(1);
    OK(rlock_mutex_lock(&m)); /* the client tries again by itself */
    ck_assert_int_ge(atomic_load(&creations), 2);
    fail_creation(0);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- the callers' stacks */

enum { SMALL_KIB = 32 };

/* What a thread other than the program's first one may do. */
static int lock_and_all_that(void *arg)
{
    rlock_client_t *c = NULL;
    rlock_info_t *info = NULL;
    struct timespec end;
    const char *url = arg;
    int rc = rlock_client_open(&c, url, NULL);
    if (rc != 0)
        return rc;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, c);
    rlock_mutex_init(&mutex, &attr, "n");
    if ((rc = rlock_mutex_lock(&mutex)) != 0 || (rc = rlock_inspect(c, "n", &info)) != 0)
        return rc;
    rlock_info_free(info);
    end = test_in_ms(CLOCK_REALTIME, 100);
    if ((rc = rlock_waitfree(c, "n", &end)) != ETIMEDOUT)
        return -1;
    if ((rc = rlock_mutex_unlock(&mutex)) != 0)
        return rc;
    end = test_in_ms(CLOCK_REALTIME, 10000);
    if ((rc = rlock_mutex_timedlock(&mutex, &end)) != 0 ||
        (rc = rlock_force_unlock(c, "n")) != 0)
        return rc;
    if (rlock_mutex_unlock(&mutex) != ESTALE)
        return -2;
    return rlock_client_close(c);
}

static void *run_task(void *arg)
{
    struct task *task = arg;
    task->rc = task->run(task->arg);
    return NULL;
}

/* Runs `run` on a stack of `kib` KiB. *ret_used: how many bytes of the stack were
 * written. */
static int on_small_stack(size_t kib, int (*run)(void *), void *arg, size_t *ret_used)
{
    enum { PATTERN = 0x5a };
    struct task task = { .run = run, .arg = arg };
    pthread_attr_t attr;
    size_t size = kib * KIB, unused = 0;
    unsigned char *stack = aligned_alloc(4096, size);
    ck_assert_ptr_nonnull(stack);
    memset(stack, PATTERN, size);
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstack(&attr, stack, size), 0);
    ck_assert_int_eq(pthread_create(&task.thread, &attr, run_task, &task), 0);
    pthread_attr_destroy(&attr);
    int rc = task_join(&task);
    while (unused < size && stack[unused] == PATTERN)
        unused++;
    *ret_used = size - unused;
    free(stack);
    return rc;
}

START_TEST(all_calls_work_on_a_small_stack)
{
    size_t used = 0;
    if (skipped("all_calls_work_on_a_small_stack", is_instrumented(),
                "sanitizers and Valgrind need more"))
        return;
    char url[TEST_URL_MAX];
    snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)server.port);
    int rc = on_small_stack((size_t)_i, lock_and_all_that,
                            _i > SMALL_KIB ? url : server.url, &used);
    ck_assert_msg(rc == 0, "%s", rlock_strerror(rc));
    printf("%zu bytes of %d KiB of stack were used\n", used, _i);
    ck_assert_uint_lt(used, (size_t)_i * KIB - PAGE_BYTES);
}
END_TEST

/* ---- the library's stacks */

/* The program itself, run with other limits, prints the stack size of the thread that
 * runs callbacks, after a callback has used 100 KiB of it, and the sizes that the two
 * threads were started with. */
static atomic_size_t callback_stack;

static void use_much_stack(const rlock_event_t *event, void *arg)
{
    volatile char locals[100 * KIB];
    pthread_attr_t attr;
    void *base;
    size_t size = 0;
    (void)event;
    (void)arg;
    for (size_t i = 0; i < sizeof(locals); i++)
        locals[i] = (char)i;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &base, &size);
    pthread_attr_destroy(&attr);
    atomic_store(&callback_stack, size + (size_t)(locals[KIB] - (char)KIB));
}

static bool is_told(void *unused)
{
    (void)unused;
    return atomic_load(&callback_stack) != 0;
}

static int tell_stacks(const char *default_kib)
{
    rlock_clientattr_t attr;
    pthread_attr_t threads;
    rlock_client_t *c;
    pthread_attr_init(&threads);
    if (default_kib[0]) {
        pthread_attr_setstacksize(&threads, strtoul(default_kib, NULL, 10) * KIB);
        pthread_setattr_default_np(&threads);
    }
    rlock_clientattr_init(&attr);
    rlock_clientattr_seteventcallback(&attr, use_much_stack, NULL);
    if (rlock_client_open(&c, "unix:///nowhere", &attr) != 0 ||
        !test_wait_until(is_told, NULL, SOON_MS))
        return EXIT_FAILURE;
    printf("%zu %zu %zu\n", atomic_load(&callback_stack), stack_sizes[0], stack_sizes[1]);
    return EXIT_SUCCESS;
}

static const struct limits {
    const char *rlimit, *default_kib;
} limits[] = { { "8192", "" },
               { "unlimited", "" },
               { "256", "" },
               { "8192", "65536" },
               { "8192", "64" } };
enum { LIMITS_COUNT = sizeof(limits) / sizeof(limits[0]) };

START_TEST(library_threads_have_a_stack_of_their_own_size)
{
    const struct limits *l = &limits[_i];
    const char *const argv[] = {
        "sh",         "-c",      "ulimit -s $1; exec $0 --stacks \"$2\"",
        test_program, l->rlimit, l->default_kib,
        NULL
    };
    struct test_program p;
    char line[64];
    size_t callback = 0, first = 0, second = 0;
    if (skipped("library_threads_have_a_stack_of_their_own_size", is_instrumented(),
                "sanitizers and Valgrind need more"))
        return;
    test_program_start(&p, argv, NULL);
    ck_assert(test_program_read(&p, line, sizeof(line), SOON_MS));
    ck_assert_int_eq(sscanf(line, "%zu %zu %zu", &callback, &first, &second), 3);
    ck_assert_int_eq(test_program_wait(&p, SOON_MS), 0);
    test_program_end(&p);
    ck_assert_uint_eq(first, RLK_THREAD_STACK_SIZE);
    ck_assert_uint_eq(second, RLK_THREAD_STACK_SIZE);
    ck_assert_uint_ge(callback, RLK_THREAD_STACK_SIZE - 4 * PAGE_BYTES);
    ck_assert_uint_le(callback, RLK_THREAD_STACK_SIZE + 4 * PAGE_BYTES);
}
END_TEST

static TCase *tcase(Suite *s, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    suite_add_tcase(s, tc);
    return tc;
}

static Suite *suite(void)
{
    Suite *s = suite_create("threads");
    TCase *tc = tcase(s, "count");
    tcase_add_test(tc, two_threads_serve_fifty_clients_with_twenty_locks_each);
    tcase_add_test(tc, resolvers_end_by_themselves);
    tc = tcase(s, "EAGAIN");
    tcase_add_loop_test(tc, open_without_its_nth_thread_is_EAGAIN_and_leaves_nothing, 1,
                        3);
    tcase_add_loop_test(tc, default_client_without_its_nth_thread_is_EAGAIN_once, 1, 3);
    tcase_add_test(tc, resolver_that_cannot_be_started_fails_that_attempt_alone);
    tc = tcase(s, "stacks");
    tcase_add_loop_test(tc, all_calls_work_on_a_small_stack, SMALL_KIB, SMALL_KIB + 1);
    tcase_add_loop_test(tc, all_calls_work_on_a_small_stack, 64, 65);
    tcase_add_loop_test(tc, library_threads_have_a_stack_of_their_own_size, 0,
                        LIMITS_COUNT);
    return s;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--stacks") == 0)
        return tell_stacks(argv[2]);
    snprintf(test_program, sizeof(test_program), "/proc/%d/exe", (int)getpid());
    return test_run_suite(suite());
}
