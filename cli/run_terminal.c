/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal's foreground. The command has its own process group. Therefore it must
 * become the terminal's foreground group, or reading would stop it. It gets the
 * foreground at the start if rlock is in the foreground, reads from the terminal and does
 * not write into a pipeline, where another program may want the terminal (a pager).
 * Otherwise it gets it on request: a request stops it with SIGTTIN or SIGTTOU. Thread:
 * main only.
 */
#include "run.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_pipe(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Once, and not while rlock is in the background: then the terminal has the modes of
 * the shell's own line. */
static void note_modes(struct run_terminal *terminal)
{
    if (!terminal->known)
        terminal->known = tcgetattr(terminal->fd, &terminal->modes) == 0;
}

void run_terminal_open(struct run_terminal *terminal)
{
    terminal->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    terminal->given = terminal->known = false;
    terminal->wanted = run_terminal_is_here(terminal) &&
                       tcgetpgrp(STDIN_FILENO) == getpgrp() && !is_pipe(STDOUT_FILENO);
    if (terminal->wanted)
        note_modes(terminal);
}

bool run_terminal_is_here(const struct run_terminal *terminal)
{
    return terminal->fd >= 0 && tcgetpgrp(terminal->fd) == getpgrp();
}

void run_terminal_give(struct run_terminal *terminal, pid_t group)
{
    terminal->wanted = true;
    note_modes(terminal);
    terminal->given = tcsetpgrp(terminal->fd, group) == 0;
}

void run_terminal_take(struct run_terminal *terminal)
{
    if (terminal->given)
        tcsetpgrp(terminal->fd, getpgrp());
    terminal->given = false;
}

/* Without draining: a terminal that Ctrl-S has stopped would never be drained. */
void run_terminal_restore(const struct run_terminal *terminal)
{
    if (terminal->known)
        tcsetattr(terminal->fd, TCSANOW, &terminal->modes);
}
