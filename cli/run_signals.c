/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of `rlock run`. While rlock waits for the lock, signals that would end it
 * end the wait. While the command runs, all forwarded signals are blocked and read from a
 * descriptor: none can come between two checks. A signal that was ignored at the start
 * stays ignored, also for the command. Thread: main only; the library's threads block all
 * signals.
 */
#include "run.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

static const struct {
    int number;
    bool ends; /* by default; other signals stop, continue or do nothing */
} forwarded[] = {
    { SIGTERM, true },  { SIGINT, true },   { SIGHUP, true },
    { SIGQUIT, true },  { SIGUSR1, true },  { SIGUSR2, true },
    { SIGTSTP, false }, { SIGCONT, false }, { SIGWINCH, false },
};
enum { FORWARDED = sizeof(forwarded) / sizeof(forwarded[0]) };

static struct {
    sigset_t mask;
    struct sigaction child, pipe;
    bool ignored[FORWARDED];
} found;

static rlock_client_t *interrupted;
static volatile sig_atomic_t caught;

void run_signals_note(void)
{
    struct sigaction action;

    sigprocmask(SIG_SETMASK, NULL, &found.mask);
    for (int i = 0; i < FORWARDED; i++) {
        sigaction(forwarded[i].number, NULL, &action);
        found.ignored[i] = action.sa_handler == SIG_IGN;
    }
    /* If SIGCHLD were ignored, the kernel would not report the command's end. */
    action = (struct sigaction){ .sa_handler = SIG_DFL };
    sigaction(SIGCHLD, &action, &found.child);
    /* stderr and the command's descriptor may be closed at the other end. */
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &found.pipe);
}

static void interrupt_wait(int number)
{
    caught = number;
    rlock_client_interrupt(interrupted);
}

void run_signals_interrupt(rlock_client_t *client)
{
    struct sigaction action = { .sa_handler = interrupt_wait,
                                .sa_flags = (int)SA_RESETHAND };

    cli_have_no_children(); /* while rlock waits */
    interrupted = client;
    for (int i = 0; i < FORWARDED; i++)
        if (forwarded[i].ends && !found.ignored[i])
            sigaction(forwarded[i].number, &action, NULL);
}

/* The kernel stores signals that are blocked and ignored, so ignored signals are left
 * alone. Exceptions: SIGCONT, which run_signals_stop checks; and SIGTTOU, because
 * rlock writes to the terminal and hands it over while in the background. */
static void set_of_blocked(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (int i = 0; i < FORWARDED; i++)
        if (!found.ignored[i])
            sigaddset(ret_set, forwarded[i].number);
    sigaddset(ret_set, SIGCONT);
    sigaddset(ret_set, SIGCHLD);
    sigaddset(ret_set, SIGTTOU);
}

int run_signals_block(void)
{
    struct sigaction plain = { .sa_handler = SIG_DFL };
    sigset_t set;

    set_of_blocked(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigaction(SIGCHLD, &plain,
              NULL); /* if ignored, the command's end would not be reported */
    for (int i = 0; i < FORWARDED; i++)
        if (forwarded[i].ends && !found.ignored[i])
            sigaction(forwarded[i].number, &plain, NULL);
    return caught;
}

int run_signals_open(void)
{
    sigset_t set;

    set_of_blocked(&set);
    sigdelset(&set, SIGTTOU);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

bool run_signals_ends(int number)
{
    for (int i = 0; i < FORWARDED; i++)
        if (forwarded[i].number == number)
            return forwarded[i].ends;
    return false;
}

void run_signals_as_found(void)
{
    sigaction(SIGCHLD, &found.child, NULL);
    sigaction(SIGPIPE, &found.pipe, NULL);
    sigprocmask(SIG_SETMASK, &found.mask, NULL);
}

static void unblock(int number, sigset_t *ret_old)
{
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, ret_old);
}

void run_signals_die(int number)
{
    struct rlimit none = { 0, 0 }; /* the command may have dumped a core of its own */

    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    raise(number);
    unblock(number, NULL);
    exit(CLI_SIGNAL + number);
}

bool run_signals_stop(int number, bool group)
{
    struct timespec now = { 0, 0 };
    sigset_t old, cont;

    /* A stop signal discards a pending SIGCONT, so one that is pending afterwards has
     * ended this stop. */
    kill(group ? 0 : getpid(), number);
    unblock(number, &old);
    sigprocmask(SIG_SETMASK, &old, NULL);
    sigemptyset(&cont);
    sigaddset(&cont, SIGCONT);
    return sigtimedwait(&cont, NULL, &now) == SIGCONT;
}
