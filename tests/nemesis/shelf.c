/* SPDX-License-Identifier: Apache-2.0 */
/* See shelf.h. State: one for the process. */
#include "shelf.h"

#include "die.h"
#include "round.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char shelf[] = "/dev/shm/nemesis.XXXXXX";
static pid_t child;
static int end_fd = -1; /* a pipe whose end tells the child that the run has ended */

/* The terminal's signals to the whole group do not end the child. */
__attribute__((noreturn)) static void wait_and_remove(int fd)
{
    char c;
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        close(i); /* a reader of these waits for the end of the run */
    while (read(fd, &c, 1) < 0 && errno == EINTR)
        continue;
    nem_remove_tree(shelf);
    _exit(EXIT_SUCCESS);
}

const char *nem_shelf_open(void)
{
    int fds[2];
    if (!mkdtemp(shelf) || pipe2(fds, O_CLOEXEC) != 0)
        test_die("%s: %s", shelf, strerror(errno));
    child = fork();
    if (child < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (child == 0) {
        close(fds[1]);
        wait_and_remove(fds[0]);
    }
    close(fds[0]);
    end_fd = fds[1];
    return shelf;
}

void nem_shelf_close(void)
{
    if (end_fd < 0)
        return;
    close(end_fd);
    end_fd = -1;
    waitpid(child, NULL, 0);
}
