/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone */
/*
 * A command for the tests of `rlock run`: sleeper SIGNAL... prints "pid N", then "got N"
 * for each of these signals that it gets. Other signals have their default effect. Exits
 * with 7 at the end of its input. Thread: main only.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { ENDED = 7 };

int main(int argc, char **argv)
{
    char bytes[256];
    struct signalfd_siginfo got;
    sigset_t set;

    sigemptyset(&set);
    for (int i = 1; i < argc; i++)
        sigaddset(&set, atoi(argv[i]));
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                            { .fd = signalfd(-1, &set, 0), .events = POLLIN } };
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("pid %d\n", (int)getpid());
    for (;;) {
        poll(fds, 2, -1);
        if ((fds[1].revents & POLLIN) &&
            read(fds[1].fd, &got, sizeof(got)) == (ssize_t)sizeof(got))
            printf("got %d\n", (int)got.ssi_signo);
        if (fds[0].revents != 0 && read(STDIN_FILENO, bytes, sizeof(bytes)) <= 0)
            return ENDED;
    }
}
