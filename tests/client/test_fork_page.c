/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that accepts MADV_WIPEONFORK and does not wipe the page in children, as
 * qemu-user did before 8.0. The child of a fork must still count as a party of its own.
 */
#include "base/fork.h"

#include "fixture.h"
#include "forked.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define HAVE_BARE_FORK
#else
#define _Fork fork
#endif

enum { SOON_MS = 15000 };

/* Stands in for libc's function in the library's calls, from the moment it is loaded. */
static unsigned asked;

int madvise(void *at, size_t len, int advice)
{
    if (advice != MADV_WIPEONFORK)
        return (int)syscall(SYS_madvise, at, len, advice);
    asked++;
    return 0;
}

static bool believed_in; /* in main, before any fork */
static rlock_mutex_t m, own;

static void set_up(void)
{
    char parameters[64];
    fixture_open();
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(SOON_MS));
    reopen_with(parameters);
    m = mutex_of(client, "n");
    own = mutex_of(client, "own");
    ck_assert_uint_gt(asked, 0);
}

/* The parent holds m. */
static int is_a_party(struct forked_report *report, void *arg)
{
    unsigned count = 7;
    (void)report;
    (void)arg;
    MUST(rlock_mutex_unlock(&m) == EPERM);
    MUST(rlock_mutex_getholdcount(&m, &count) == 0 && count == 0);
    MUST(rlock_mutex_trylock(&m) == EBUSY);
    MUST(rlock_mutex_lock(&own) == 0);
    MUST(rlock_mutex_unlock(&own) == 0);
    return 0;
}

static int owns_nothing(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    MUST(rlock_mutex_unlock(&m) == EPERM);
    MUST(rlock_mutex_unlock(&own) == EPERM);
    MUST(rlock_mutex_trylock(&own) == EBUSY);
    return 0;
}

static int has_a_child_that_is_one(struct forked_report *report, void *arg)
{
    struct forked f;
    int line = is_a_party(report, arg);
    if (line != 0)
        return line;
    MUST(rlock_mutex_lock(&own) == 0);
    forked_start_by(&f, _Fork, owns_nothing, NULL, FORKED_VANISH);
    MUST(forked_line(&f, SOON_MS) == 0);
    MUST(forked_ends(&f, SOON_MS));
    return rlock_mutex_unlock(&own) == 0 ? 0 : __LINE__;
}

static void assert_alone(int (*body)(struct forked_report *report, void *arg),
                         pid_t (*how)(void))
{
    struct forked f;
    OK(rlock_mutex_lock(&m));
    forked_start_by(&f, how, body, NULL, FORKED_VANISH);
    ck_assert_int_eq(forked_line(&f, 2 * SOON_MS), 0);
    ck_assert(forked_ends(&f, SOON_MS));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}

/* rule: T13 */
START_TEST(page_that_is_not_wiped_is_not_believed_in)
{
    ck_assert(!believed_in);
}
END_TEST

START_TEST(child_of_a_fork_is_a_client_of_its_own)
{
    NEEDS_FORK("child_of_a_fork_is_a_client_of_its_own");
    assert_alone(is_a_party, fork);
}
END_TEST

#ifdef HAVE_BARE_FORK
START_TEST(child_without_handlers_is_a_client_of_its_own)
{
    NEEDS_FORK("child_without_handlers_is_a_client_of_its_own");
    assert_alone(is_a_party, _Fork);
}
END_TEST
#endif

/* The page counts as trusted: the handler of fork() does not look at it. */
START_TEST(handler_of_fork_needs_no_page)
{
    static volatile unsigned char never_wiped = 1;
    NEEDS_FORK("handler_of_fork_needs_no_page");
    rlk_fork_page = &never_wiped;
    assert_alone(_i ? has_a_child_that_is_one : is_a_party, fork);
}
END_TEST

int main(void)
{
    believed_in = rlk_fork_page != NULL;
    Suite *s = suite_create("fork_page");
    TCase *tc = tcase_create("page");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, page_that_is_not_wiped_is_not_believed_in);
    tcase_add_test(tc, child_of_a_fork_is_a_client_of_its_own);
#ifdef HAVE_BARE_FORK
    tcase_add_test(tc, child_without_handlers_is_a_client_of_its_own);
#endif
    tcase_add_loop_test(tc, handler_of_fork_needs_no_page, 0, 2);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
