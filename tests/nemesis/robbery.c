/* SPDX-License-Identifier: Apache-2.0 */
/* See robbery.h. State: one for the process; `mutex` guards `own`, all other members
 * belong to the thread that robs. */
#include "robbery.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NUMBERS = 1024, FIRST = STDERR_FILENO + 1, GUESTS = 64 };
/* A descriptor that is made at a low number and moved at once is not seen there in
 * repeated looks. */
enum { LOOKS = 40, LOOK_US = 500 };

#if defined(__SANITIZE_THREAD__)
#define SANITIZED_FOR_THREADS
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED_FOR_THREADS
#endif
#endif

/* A robbery closes descriptors that another thread may be writing to, without a lock:
 * that race is the fault. ThreadSanitizer counts a close as a write to the descriptor.
 * Races of the library itself have no frame of a robbery. */
#ifdef SANITIZED_FOR_THREADS
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
    return "race:nem_rob\n";
}
#endif

static const char input[] = "the program's input\n";

static struct {
    pthread_mutex_t mutex;
    bool own[NUMBERS];
    FILE *in, *out;
    int err;          /* the former stderr */
    int into, out_of; /* the other ends of the pipes at 0 and 1; -1: none */
    int guests[GUESTS];
    int guest_count;
    unsigned robberies;
} robbery = { .mutex = PTHREAD_MUTEX_INITIALIZER, .err = -1, .into = -1, .out_of = -1 };

__attribute__((noreturn)) static void give_up(const char *what)
{
    dprintf(robbery.err >= 0 ? robbery.err : STDERR_FILENO, "crewman: %s: %s\n", what,
            strerror(errno));
    abort();
}

/* ---- the program's own descriptors */

void nem_own_begin(void)
{
    pthread_mutex_lock(&robbery.mutex);
}

void nem_own_end(void)
{
    pthread_mutex_unlock(&robbery.mutex);
}

void nem_own(int fd)
{
    if (fd < FIRST || fd >= NUMBERS)
        give_up("a descriptor has no number of the program's");
    robbery.own[fd] = true;
}

int nem_own_raised(int fd)
{
    while (fd >= 0 && fd < FIRST) {
        int next = fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
        close(fd);
        fd = next;
    }
    nem_own(fd);
    return fd;
}

void nem_disown(int fd)
{
    robbery.own[fd] = false;
}

void nem_own_close(int fd)
{
    nem_own_begin();
    nem_disown(fd);
    close(fd);
    nem_own_end();
}

static int own_copy(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST);
    if (copy < 0)
        give_up("dup");
    nem_own(copy);
    return copy;
}

static void null_at(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || (null != fd && dup2(null, fd) != fd))
        give_up("/dev/null");
    if (null != fd)
        close(null);
}

void nem_lines_open(void)
{
    robbery.in = fdopen(own_copy(STDIN_FILENO), "re");
    robbery.out = fdopen(own_copy(STDOUT_FILENO), "we");
    robbery.err = own_copy(STDERR_FILENO);
    if (!robbery.in || !robbery.out)
        give_up("fdopen");
    null_at(STDIN_FILENO);
    null_at(STDOUT_FILENO);
}

FILE *nem_lines_in(void)
{
    return robbery.in;
}

FILE *nem_lines_out(void)
{
    return robbery.out;
}

void nem_lines_leave(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    close(fileno(robbery.in));
    close(fileno(robbery.out));
    close(robbery.err);
}

/* ---- pipes at 0 and 1 */

static void must_be_untouched(void)
{
    int len = -1;
    if (robbery.into < 0)
        return;
    if (ioctl(STDIN_FILENO, FIONREAD, &len) != 0 || len != (int)sizeof(input) - 1)
        give_up("somebody has read the program's input");
    if (ioctl(robbery.out_of, FIONREAD, &len) != 0 || len != 0)
        give_up("somebody has written to the program's output");
}

static void end_pipes(void)
{
    if (robbery.into < 0)
        return;
    nem_own_close(robbery.into);
    nem_own_close(robbery.out_of);
    robbery.into = robbery.out_of = -1;
}

static void pipe_ends(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0)
        give_up("pipe");
}

/* Replaces whatever file has the number. */
static void put_at(int fd, int number)
{
    if (fd == number)
        return;
    if (dup2(fd, number) != number)
        give_up("dup2");
    close(fd);
}

/* Numbers below FIRST are free: if the library kept a low number, it would get one of
 * these. */
static void pipes_at_low(void)
{
    int in[2], out[2];
    pipe_ends(in);
    pipe_ends(out);
    robbery.into = own_copy(in[1]);
    robbery.out_of = own_copy(out[0]);
    int reads = own_copy(in[0]), writes = own_copy(out[1]);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
    }
    nem_disown(reads);
    nem_disown(writes);
    put_at(reads, STDIN_FILENO);
    put_at(writes, STDOUT_FILENO);
    if (write(robbery.into, input, sizeof(input) - 1) != (ssize_t)sizeof(input) - 1)
        give_up("write");
}

/* ---- from 3 on */

/* Every other time an eventfd replaces the closed file at once, so that the library never
 * finds a closed number. The library must neither read nor write that eventfd. */
static void take_number(int fd, int guest)
{
    if (robbery.robberies % 2 == 0 || robbery.guest_count == GUESTS) {
        close(fd);
        return;
    }
    if (dup3(guest, fd, O_CLOEXEC) != fd)
        give_up("dup3");
    nem_own(fd);
    robbery.guests[robbery.guest_count++] = fd;
}

static void rob_unknown(void)
{
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    nem_own_begin();
    int guest = event >= 0 ? own_copy(event) : -1;
    if (guest < 0)
        give_up("eventfd");
    close(event);
    for (int fd = FIRST; fd < NUMBERS; fd++)
        if (!robbery.own[fd] && fcntl(fd, F_GETFD) >= 0)
            take_number(fd, guest);
    nem_disown(guest);
    close(guest);
    robbery.robberies++;
    nem_own_end();
}

void nem_rob_rest(void)
{
    while (robbery.guest_count > 0)
        nem_own_close(robbery.guests[--robbery.guest_count]);
}

void nem_rob(unsigned what)
{
    must_be_untouched();
    nem_rob_rest();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        close(fd);
    end_pipes();
    if (what & 2)
        rob_unknown();
}

/* The program closed these numbers to use them: the library must have left them alone. */
static void must_be_closed(int fd)
{
    for (int i = 0; fcntl(fd, F_GETFD) >= 0; i++) {
        if (i == LOOKS) {
            errno = 0;
            give_up("somebody has taken a number below 3");
        }
        usleep(LOOK_US);
    }
}

void nem_rob_end(unsigned what)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        must_be_closed(fd);
    nem_own_begin();
    if (dup2(robbery.err, STDERR_FILENO) < 0)
        give_up("dup2");
    if (what & 1) {
        pipes_at_low();
    } else {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        int copy = null >= 0 ? own_copy(null) : -1;
        if (copy < 0 || dup2(copy, STDIN_FILENO) < 0 || dup2(copy, STDOUT_FILENO) < 0)
            give_up("/dev/null");
        nem_disown(copy);
        close(copy);
        if (null >= FIRST)
            close(null);
    }
    nem_own_end();
}
