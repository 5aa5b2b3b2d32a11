/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/* Handles in memory that processes share: they are the same lock for all of them, and a
 * process that dies inside init leaves a handle that is whole or EINVAL. A test process
 * that forks opens no client itself, so that it may fork wherever the tests run. */
#include "program.h"
#include "redis.h"
#include "server.h"
#include "sharing.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 4, DIED_OF_SIGBUS = 77, SOON_MS = 20000 };

static struct test_server server;
static struct test_redis *redis;
static struct sharing *shared;

static void start(void)
{
    test_server_start(&server, NULL);
}

static void stop(void)
{
    test_server_stop(&server);
}

static struct sharing *map(int fd, size_t len)
{
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE,
                    fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

static void open_scene(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    char url[TEST_URL_MAX + 64];
    /* so long that no call fails on a machine that stands still */
    snprintf(url, sizeof(url), "%s?connecttimeout=%d&commandtimeout=%d", server.url,
             SOON_MS, SOON_MS);
    setenv("RLOCK_URL", url, 1);
    shared = map(-1, sizeof(*shared));
}

static void close_scene(void)
{
    munmap(shared, sizeof(*shared));
    test_redis_close(redis);
}

#define OK(call) ck_assert_int_eq((call), 0)

/* ---- children of fork(): they return codes, the test asserts */

/* Runs `body` in a child, which dies with the test; its result is the exit status. */
static pid_t child(int (*body)(int arg), int arg)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        test_redis_close(redis);
        int rc = body(arg);
        _exit(rlock_client_close(NULL) == 0 ? rc : EXIT_FAILURE);
    }
    return pid;
}

struct ending {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct ending *e = arg;
    return waitpid(e->pid, &e->status, WNOHANG) == e->pid;
}

/* Returns the child's exit status; asserts that there is one. */
static int result_of(pid_t pid)
{
    struct ending e = { pid, 0 };
    ck_assert_msg(test_wait_until(has_ended, &e, 60000), "a child does not end");
    ck_assert_msg(WIFEXITED(e.status), "a child ended with status %#x", e.status);
    return WEXITSTATUS(e.status);
}

/* ---- one lock */

static long rounds(void)
{
    return test_count(400, 30);
}

static int do_rounds(int kind)
{
    return sharing_rounds(shared, kind, rounds());
}

START_TEST(handle_in_anonymous_memory_is_one_lock_for_all_children)
{
    pid_t pid[CHILDREN];

    OK(sharing_init(&shared->lock, _i, NULL, NULL));
    for (int i = 0; i < CHILDREN; i++)
        pid[i] = child(do_rounds, _i);
    for (int i = 0; i < CHILDREN; i++)
        OK(result_of(pid[i]));
    OK(atomic_load(&shared->torn));
    ck_assert_int_eq(shared->first, CHILDREN * rounds());
    ck_assert_int_eq(shared->second, CHILDREN * rounds());
}
END_TEST

/* Starts a sharer, which maps the memory and waits for a line. */
static void start_sharer(struct test_program *p, const char *where, int kind,
                         const char *command)
{
    char path[512], kind_text[16], rounds_text[32], line[64];
    test_build_path(path, sizeof(path), "tests/sharer");
    snprintf(kind_text, sizeof(kind_text), "%d", kind);
    snprintf(rounds_text, sizeof(rounds_text), "%ld", rounds());
    const char *const argv[] = { path, where, kind_text, command, rounds_text, NULL };
    test_program_start(p, argv, NULL);
    ck_assert(test_program_read(p, line, sizeof(line), SOON_MS));
    ck_assert_str_eq(line, "ready");
}

static void go_on(struct test_program *p)
{
    ck_assert(test_program_write(p, "go"));
}

/* Returns the code that the sharer prints at the end. */
static int code_of(struct test_program *p)
{
    char line[64];
    ck_assert(test_program_read(p, line, sizeof(line), 60000));
    OK(test_program_wait(p, SOON_MS));
    test_program_end(p);
    return atoi(line);
}

static int sharer_says(const char *where, int kind, const char *command)
{
    struct test_program p;
    start_sharer(&p, where, kind, command);
    go_on(&p);
    return code_of(&p);
}

START_TEST(handle_in_a_shared_memory_object_is_one_lock_for_other_programs)
{
    char where[64];
    struct test_program user[CHILDREN];

    snprintf(where, sizeof(where), "shm:/rlock-test-%d-%d", (int)getpid(), _i);
    int fd = shm_open(where + 4, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(fd, 0);
    OK(ftruncate(fd, sizeof(struct sharing)));
    struct sharing *memory = map(fd, sizeof(*memory));
    OK(sharing_init(&memory->lock, _i, NULL, NULL));
    for (int i = 0; i < CHILDREN; i++)
        start_sharer(&user[i], where, _i, "rounds");
    shm_unlink(where + 4);
    for (int i = 0; i < CHILDREN; i++)
        go_on(&user[i]);
    for (int i = 0; i < CHILDREN; i++)
        OK(code_of(&user[i]));
    OK(atomic_load(&memory->torn));
    ck_assert_int_eq(memory->first, CHILDREN * rounds());
    ck_assert_int_eq(memory->second, CHILDREN * rounds());
    munmap(memory, sizeof(*memory));
    close(fd);
}
END_TEST

/* A file of `len` bytes in the server's directory. */
static int make_file(char path[TEST_PATH_MAX], size_t len)
{
    snprintf(path, TEST_PATH_MAX, "%s/f", server.dir);
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    OK(ftruncate(fd, (off_t)len));
    return fd;
}

START_TEST(handle_in_a_file_is_the_same_lock_for_later_programs)
{
    char path[TEST_PATH_MAX], line[64];
    struct test_program holder;
    int fd = make_file(path, sizeof(struct sharing));

    OK(sharer_says(path, _i, "make")); /* that program has ended */
    start_sharer(&holder, path, _i, "hold");
    go_on(&holder);
    ck_assert(test_program_read(&holder, line, sizeof(line), SOON_MS));
    ck_assert_str_eq(line, "held");
    struct sharing *memory = map(fd, sizeof(*memory));
    ck_assert(test_redis_exists(redis, memory->lock.any.rlk_name));
    ck_assert_int_eq(sharer_says(path, _i, "try"), EBUSY);
    go_on(&holder);
    OK(code_of(&holder));
    OK(sharer_says(path, _i, "try"));
    munmap(memory, sizeof(*memory));
    close(fd);
}
END_TEST

START_TEST(handle_of_another_layout_is_EINVAL_for_a_later_program)
{
    char path[TEST_PATH_MAX];
    int fd = make_file(path, sizeof(struct sharing));

    OK(sharer_says(path, _i, "make"));
    struct sharing *memory = map(fd, sizeof(*memory));
    uint32_t magic = memory->lock.any.rlk_magic;
    memory->lock.any.rlk_magic = magic + (1u << 24);
    ck_assert_int_eq(sharer_says(path, _i, "ask"), EINVAL);
    memory->lock.any.rlk_magic = magic;
    OK(sharer_says(path, _i, "try"));
    munmap(memory, sizeof(*memory));
    close(fd);
}
END_TEST

static int init_with_a_client(int kind)
{
    rlock_client_t *client = NULL;
    union sharing_lock before = shared->lock;

    if (rlock_client_open(&client, NULL, NULL) != 0)
        return EXIT_FAILURE;
    int rc = sharing_init(&shared->lock, kind, NULL, client);
    if (memcmp(&before, &shared->lock, sizeof(before)) != 0)
        return EXIT_FAILURE;
    return rlock_client_close(client) == 0 ? rc : EXIT_FAILURE;
}

START_TEST(shared_handle_of_an_explicit_client_is_ENOTSUP)
{
    OK(sharing_init(&shared->lock, _i, "n", NULL));
    ck_assert_int_eq(result_of(child(init_with_a_client, _i)), ENOTSUP);
}
END_TEST

/* ---- death inside init */

/* Whether all functions treat the handle as a good one of a free lock. Otherwise all must
 * return EINVAL. */
static bool is_whole(union sharing_lock *lock, int kind)
{
    union sharing_lock copy = *lock;
    bool whole = sharing_destroy(&copy, kind) == 0;
    for (int which = 0, rc; (rc = sharing_ask(lock, kind, which)) >= 0; which++)
        ck_assert_int_eq(rc, whole ? sharing_free_code(which) : EINVAL);
    return whole;
}

/* Takes and releases a handle that is whole. */
static int use(int kind)
{
    int rc = sharing_trylock(&shared->lock, kind);
    if (rc == EINVAL)
        return sharing_lock(&shared->lock, kind) == EINVAL ? 0 : EXIT_FAILURE;
    return rc == 0 ? sharing_unlock(&shared->lock, kind) : rc;
}

static const char *long_name(void)
{
    static char name[RLOCK_NAME_MAX + 1];
    memset(name, 'x', RLOCK_NAME_MAX);
    return name;
}

static int init_for_ever(int kind)
{
    const char *name = long_name();
    for (;;) {
        if (sharing_init(&shared->lock, kind, name, NULL) != 0)
            return EXIT_FAILURE;
        atomic_fetch_add(&shared->torn, 1);
        name = name ? NULL : long_name();
    }
}

static bool has_begun(void *arg)
{
    (void)arg;
    return atomic_load(&shared->torn) > 0;
}

START_TEST(process_killed_in_init_leaves_a_handle_that_is_whole_or_EINVAL)
{
    long kills = test_count(2000, 100), uses = 0;
    unsigned seed = (unsigned)_i;

    for (long i = 0; i < kills; i++) {
        struct ending e = { 0, 0 };
        atomic_store(&shared->torn, 0);
        e.pid = child(init_for_ever, _i);
        ck_assert(test_wait_until(has_begun, NULL, SOON_MS));
        for (int spin = rand_r(&seed) % 2000; spin > 0; spin--)
            atomic_load(&shared->torn);
        kill(e.pid, SIGKILL);
        ck_assert(test_wait_until(has_ended, &e, SOON_MS));
        ck_assert(WIFSIGNALED(e.status));
        if (is_whole(&shared->lock, _i)) {
            const struct rlk_handle *handle = &shared->lock.any;
            ck_assert_uint_eq(strlen(handle->rlk_name), handle->rlk_name_len);
            ck_assert(strcmp(handle->rlk_name, long_name()) == 0 ||
                      strncmp(handle->rlk_name, "anonymous-", 10) == 0);
        }
        if (i * 10 / kills >= uses) { /* for ten of the kills */
            OK(result_of(child(use, _i)));
            uses++;
        }
    }
    OK(sharing_init(&shared->lock, _i, NULL, NULL));
    ck_assert(is_whole(&shared->lock, _i));
    OK(result_of(child(do_rounds, _i)));
}
END_TEST

static void die_of_sigbus(int sig)
{
    (void)sig;
    _exit(DIED_OF_SIGBUS);
}

static union sharing_lock *cut;

static int init_cut(int kind)
{
    signal(SIGBUS, die_of_sigbus);
    return sharing_init(cut, kind, long_name(), NULL);
}

/* The handle lies across the end of the file's only page, so that init dies at this byte
 * of it. */
START_TEST(process_that_dies_at_any_byte_of_init_leaves_a_handle_that_is_EINVAL)
{
    char path[TEST_PATH_MAX];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = make_file(path, 2 * page), kind = _i;
    char *memory = (char *)map(fd, 2 * page);

    for (size_t there = 8; there < sizeof(struct rlk_handle); there += 8) {
        cut = (union sharing_lock *)(memory + page - there);
        for (int good_before = 0; good_before < 2; good_before++) {
            memset(cut, 0, sizeof(struct rlk_handle));
            if (good_before)
                OK(sharing_init(cut, kind, "before", NULL));
            /* the rest of the handle is zeros from now on */
            OK(ftruncate(fd, (off_t)page));
            ck_assert_int_eq(result_of(child(init_cut, kind)), DIED_OF_SIGBUS);
            OK(ftruncate(fd, (off_t)(2 * page)));
            ck_assert(!is_whole(cut, kind));
            OK(sharing_init(cut, kind, NULL, NULL));
            ck_assert(is_whole(cut, kind));
        }
    }
    munmap(memory, 2 * page);
    close(fd);
}
END_TEST

/* ---- init of a handle in use */

static int hold_and_init_anew(int kind)
{
    union sharing_lock old;
    unsigned count = 0;

    OK(sharing_init(&shared->lock, kind, "n", NULL));
    OK(sharing_lock(&shared->lock, kind));
    /* the same name is the same lock, and so the same hold */
    OK(sharing_init(&shared->lock, kind, "n", NULL));
    OK(kind == SHARING_RWLOCK ? rlock_rwlock_getholdcount(&shared->lock.rwlock, &count)
       : kind == SHARING_FAIR ? rlock_fair_getholdcount(&shared->lock.fair, &count)
                              : rlock_mutex_getholdcount(&shared->lock.mutex, &count));
    ck_assert_uint_eq(count, 1);
    /* another name is another lock; the hold belongs to the old one */
    old = shared->lock;
    OK(sharing_init(&shared->lock, kind, NULL, NULL));
    ck_assert_int_eq(sharing_unlock(&shared->lock, kind), EPERM);
    OK(sharing_lock(&shared->lock, kind));
    OK(sharing_unlock(&shared->lock, kind));
    ck_assert_int_eq(sharing_destroy(&old, kind), EBUSY);
    OK(sharing_unlock(&old, kind));
    return 0;
}

START_TEST(init_of_a_held_handle_leaves_the_hold_with_its_name)
{
    OK(hold_and_init_anew(_i));
    OK(rlock_client_close(NULL));
}
END_TEST

/* Takes and releases the lock, whatever the other process does to the handle
 * meanwhile. */
static int use_anyway(int kind)
{
    for (long i = 0; i < rounds(); i++) {
        int rc;
        while ((rc = sharing_lock(&shared->lock, kind)) == EINVAL)
            continue;
        if (rc != 0)
            return rc;
        while ((rc = sharing_unlock(&shared->lock, kind)) == EINVAL)
            continue;
        if (rc != 0)
            return rc;
    }
    return 0;
}

START_TEST(init_with_the_same_name_while_another_process_uses_it_is_harmless)
{
    OK(sharing_init(&shared->lock, _i, "n", NULL));
    struct ending e = { child(use_anyway, _i), 0 };
    while (!has_ended(&e)) {
        for (int i = 0; i < 100; i++)
            OK(sharing_init(&shared->lock, _i, "n", NULL));
        test_pause_ms(1);
    }
    ck_assert(WIFEXITED(e.status));
    OK(WEXITSTATUS(e.status));
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    suite_add_tcase(suite, tc);
    return tc;
}

/* Runs a test for the mutex, the fair lock and the read-write lock. */
#define ADD(test) tcase_add_loop_test(tc, test, 0, SHARING_KINDS)

int main(void)
{
    Suite *suite = suite_create("shared");
    TCase *tc = add_case(suite, "one lock");
    ADD(handle_in_anonymous_memory_is_one_lock_for_all_children);
    ADD(handle_in_a_shared_memory_object_is_one_lock_for_other_programs);
    ADD(handle_in_a_file_is_the_same_lock_for_later_programs);
    ADD(handle_of_another_layout_is_EINVAL_for_a_later_program);
    ADD(shared_handle_of_an_explicit_client_is_ENOTSUP);

    tc = add_case(suite, "death inside init");
    ADD(process_killed_in_init_leaves_a_handle_that_is_whole_or_EINVAL);
    ADD(process_that_dies_at_any_byte_of_init_leaves_a_handle_that_is_EINVAL);

    tc = add_case(suite, "init of a handle in use");
    ADD(init_of_a_held_handle_leaves_the_hold_with_its_name);
    ADD(init_with_the_same_name_while_another_process_uses_it_is_harmless);
    return test_run_suite(suite);
}
