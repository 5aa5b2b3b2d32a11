/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* How the registry wakes watchdog and subscriber, and stops waking them: afterwards the
 * descriptors are closed, and the program may reuse their numbers. No server. */
#include "base/deadline.h"
#include "base/fd.h"
#include "state/registry.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 20000 };

static struct rlk_registry reg;
static struct rlk_counters counters;
static int pipe_fds[2]; /* in place of an eventfd: a write to a full pipe blocks */
static struct rlk_bell bell = RLK_BELL_CLOSED;
static atomic_bool parted;

static void set_up(void)
{
    memset(&reg, 0, sizeof(reg));
    reg.counters = &counters;
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK), 0);
    char some[4096] = { 0 };
    while (write(pipe_fds[1], some, sizeof(some)) > 0)
        continue;
    ck_assert_int_eq(fcntl(pipe_fds[1], F_SETFL, 0), 0);
    ck_assert_int_eq(rlk_registry_init(&reg), 0);
    /* the library takes the pipe's end for its own event */
    int event_fd = rlk_fd_event();
    ck_assert_int_eq(fcntl(pipe_fds[1], F_SETSIG, fcntl(event_fd, F_GETSIG)), 0);
    rlk_fd_close(event_fd);
    bell.fd = pipe_fds[1];
    parted = false;
}

static void tear_down(void)
{
    rlk_registry_destroy(&reg);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void *wake(void *watchdog)
{
    rlk_registry_lock(&reg);
    *(watchdog ? &reg.watchdog_dirty : &reg.subscriber_dirty) = true;
    rlk_registry_unlock(&reg);
    return NULL;
}

static void *part(void *arg)
{
    (void)arg;
    rlk_registry_part_from_threads(&reg);
    parted = true;
    return NULL;
}

/* A thread has released the registry's mutex and is about to write. */
static bool is_waking(void *arg)
{
    (void)arg;
    return atomic_load(&reg.wakers) == 1;
}

static bool has_parted(void *arg)
{
    (void)arg;
    return atomic_load(&parted);
}

START_TEST(descriptor_is_not_written_after_it_is_closed)
{
    pthread_t waker, closer;
    char some[4096];

    *(_i ? &reg.watchdog : &reg.subscriber) = &bell;
    ck_assert_int_eq(pthread_create(&waker, NULL, wake, _i ? &reg : NULL), 0);
    ck_assert(test_wait_until(is_waking, NULL, SOON_MS));
    ck_assert_int_eq(pthread_create(&closer, NULL, part, NULL), 0);
    test_pause_ms(50); /* a wrong implementation would be done by now */
    ck_assert(!parted);
    ck_assert_int_gt(read(pipe_fds[0], some, sizeof(some)), 0);
    ck_assert(test_wait_until(has_parted, NULL, SOON_MS));
    pthread_join(closer, NULL);
    pthread_join(waker, NULL);

    /* and later wakes write nothing */
    ck_assert_int_eq(fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK), 0);
    while (read(pipe_fds[0], some, sizeof(some)) > 0)
        continue;
    wake(NULL);
    wake(&reg);
    ck_assert_int_eq(read(pipe_fds[0], some, sizeof(some)), -1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wakes");
    TCase *tc = tcase_create("parting");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, descriptor_is_not_written_after_it_is_closed, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
