/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The marks by which the library knows its descriptors (base/fd.h), while another thread
 * of the program closes numbers and reuses them. This program's fcntl does that at the
 * chosen moment. No server. */
#include "base/fd.h"
#include "suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

enum what {
    NOTHING,
    CLOSED_BEFORE,  /* the number is closed just before it is marked */
    REPLACED_AFTER, /* the program has the number when the mark is read */
    NEVER_KEPT,     /* a kernel that accepts marks and forgets them */
    REFUSED,        /* a sandbox refuses the marks */
    WITHOUT_MEMORY,
};

static enum what happens;
static int times; /* how many more times it happens */
static int programs = -1;

static int at_mark(int fd, int op, long value)
{
    if (happens == REFUSED || happens == WITHOUT_MEMORY) {
        errno = happens == REFUSED ? EPERM : ENOMEM;
        return -1;
    }
    if (happens == CLOSED_BEFORE && times-- > 0)
        close(fd);
    return happens == NEVER_KEPT ? 0 : (int)syscall(SYS_fcntl, fd, op, value);
}

static int at_look(int fd, int op)
{
    if (happens == REPLACED_AFTER && times-- > 0) {
        int mine = open("/dev/null", O_RDONLY | O_CLOEXEC);
        programs = dup2(mine, fd);
        close(mine);
    }
    return (int)syscall(SYS_fcntl, fd, op, 0L);
}

int fcntl(int fd, int op, ...)
{
    va_list args;
    va_start(args, op);
    long value = va_arg(args, long);
    va_end(args);
    if (op == F_SETSIG)
        return at_mark(fd, op, value);
    if (op == F_GETSIG)
        return at_look(fd, op);
    return (int)syscall(SYS_fcntl, fd, op, value);
}

static bool takes_any_for_ours(void)
{
    int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(other, 0);
    bool does = rlk_fd_is_ours(other);
    close(other);
    return does;
}

static void knows_its_own(void)
{
    int fd = rlk_fd_event();
    ck_assert_int_ge(fd, 0);
    ck_assert(rlk_fd_is_ours(fd));
    ck_assert(rlk_fd_ring(fd));
    ck_assert(!takes_any_for_ours());
    rlk_fd_close(fd);
}

/* _i: also with the first descriptor that it makes. */
START_TEST(connection_closed_at_once_is_opened_again_and_marks_are_believed)
{
    if (_i)
        knows_its_own();
    happens = CLOSED_BEFORE;
    times = 2;
    knows_its_own();
    ck_assert_int_lt(times, 1);
    happens = NOTHING;
    knows_its_own();
}
END_TEST

START_TEST(number_that_the_program_takes_at_once_is_left_to_it)
{
    if (_i)
        knows_its_own();
    happens = REPLACED_AFTER;
    times = 1;
    int fd = rlk_fd_event();
    ck_assert_int_ge(fd, 0);
    ck_assert_int_ne(fd, programs);
    ck_assert(rlk_fd_is_ours(fd));
    ck_assert_int_ge((int)syscall(SYS_fcntl, programs, F_GETFD, 0L), 0);
    ck_assert(!takes_any_for_ours());
    rlk_fd_close(fd);
    ck_assert_int_eq(close(programs), 0);
}
END_TEST

START_TEST(one_that_is_always_closed_is_none)
{
    happens = CLOSED_BEFORE;
    times = 1000;
    ck_assert_int_eq(rlk_fd_event(), -1);
    ck_assert_int_eq(errno, EBADF);
    happens = NOTHING;
    knows_its_own();
}
END_TEST

START_TEST(without_memory_for_a_mark_there_is_none)
{
    happens = WITHOUT_MEMORY;
    ck_assert_int_eq(rlk_fd_event(), -1);
    ck_assert_int_eq(errno, ENOMEM);
    happens = NOTHING;
    knows_its_own();
}
END_TEST

START_TEST(where_there_are_no_marks_numbers_are_believed)
{
    happens = _i ? NEVER_KEPT : REFUSED;
    int fd = rlk_fd_event();
    ck_assert_int_ge(fd, 0);
    ck_assert(rlk_fd_is_ours(fd));
    ck_assert(rlk_fd_ring(fd));
    rlk_fd_close(fd);
    ck_assert(takes_any_for_ours());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fd marks");
    TCase *tc = tcase_create("marks");
    tcase_add_loop_test(
        tc, connection_closed_at_once_is_opened_again_and_marks_are_believed, 0, 2);
    tcase_add_loop_test(tc, number_that_the_program_takes_at_once_is_left_to_it, 0, 2);
    tcase_add_test(tc, one_that_is_always_closed_is_none);
    tcase_add_test(tc, without_memory_for_a_mark_there_is_none);
    tcase_add_loop_test(tc, where_there_are_no_marks_numbers_are_believed, 0, 2);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
