/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time while the command of `rlock run` runs. The main thread sleeps until there is a
 * signal or an event of the lease. Events come from the event callback through a pipe, so
 * that rlock acts on a loss at once, and everything happens on one thread in one order.
 *
 * The command is a child of the supervisor, which reports its state. It stays a zombie
 * until everything is over: its pid, which is the number of its process group, cannot be
 * reused while rlock sends signals to it.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, REASON_SIZE = 200 };
enum { POLL_MAX_MS = 86400000 };
enum { LAST_NS = NS_PER_S }; /* after SIGKILL, for processes that rlock may not signal */

/* The messages in the pipe, one write each. */
struct news {
    rlock_event_kind_t kind;
    long remaining_ms;
    char reason[REASON_SIZE];
};
_Static_assert(sizeof(struct news) <= PIPE_BUF, "written in one piece");

int64_t run_now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void run_watch_event(const rlock_event_t *event, void *arg)
{
    const struct run_watch *watch = arg;
    struct news news = { .kind = event->kind, .remaining_ms = event->remaining_ms };

    if (event->kind != RLOCK_EVENT_AT_RISK && event->kind != RLOCK_EVENT_SAFE_AGAIN &&
        event->kind != RLOCK_EVENT_LOST)
        return;
    snprintf(news.reason, sizeof(news.reason), "%s", event->reason);
    ssize_t n;
    do
        n = write(watch->teller, &news, sizeof(news));
    while (n < 0 && errno == EINTR);
}

static void signal_group(struct run_watch *watch, int number)
{
    bool all = watch->ending || watch->ended;

    if (run_command_signal(&watch->command, number, all) == EPERM)
        cli_complain("may not send signal %d (%s) to the command", number,
                     strsignal(number));
}

/* ---- events of the lease */

/* Writes to the command's descriptor. A reader that does not read loses lines: rlock
 * never waits for it. */
static void tell_command(struct run_watch *watch, const char *line)
{
    if (watch->lines < 0)
        return;
    ssize_t n = write(watch->lines, line, strlen(line));
    (void)n;
}

/* A stopped process does not act on SIGTERM before it continues. */
static void end_command(struct run_watch *watch)
{
    if (watch->ending || watch->over)
        return;
    watch->ending = true;
    watch->kill_at_ns = run_now_ns() + (int64_t)watch->options->grace_ms * NS_PER_MS;
    signal_group(watch, SIGTERM);
    signal_group(watch, SIGCONT);
}

void run_watch_tell_lost(struct run_watch *watch, const char *reason)
{
    if (!watch->lost)
        cli_complain("lost \"%s\": %s", watch->shown, reason);
    watch->lost = true;
}

/* Informs the command and ends it before anything else. */
static void lose(struct run_watch *watch, const char *reason)
{
    char line[REASON_SIZE + sizeof("lost \n")];

    snprintf(line, sizeof(line), "lost %s\n", reason);
    if (!watch->lost)
        tell_command(watch, line);
    if (!watch->options->warn)
        end_command(watch);
    run_watch_tell_lost(watch, reason);
}

static void take_news(struct run_watch *watch)
{
    char line[64];
    struct news news;

    while (read(watch->news, &news, sizeof(news)) == (ssize_t)sizeof(news)) {
        if (news.kind == RLOCK_EVENT_LOST) {
            lose(watch, news.reason);
        } else if (news.kind == RLOCK_EVENT_AT_RISK) {
            snprintf(line, sizeof(line), "at-risk %ld\n", news.remaining_ms);
            tell_command(watch, line);
            cli_complain("\"%s\" is at risk, lost in %ld ms if its lease is not renewed",
                         watch->shown, news.remaining_ms);
        } else {
            tell_command(watch, "safe\n");
            cli_complain("\"%s\" is safe again", watch->shown);
        }
    }
}

/* ---- stop and continue */

/* The lease ran on while rlock was stopped: a loss must be found before the command
 * continues. */
static void continue_command(struct run_watch *watch)
{
    if (run_lock_state(&watch->lock) == RLOCK_LOST)
        lose(watch, "the lease ended while rlock was stopped");
    if (!watch->ended && watch->terminal.wanted && run_terminal_is_here(&watch->terminal))
        run_terminal_give(&watch->terminal, watch->command.pid);
    if (!watch->ending)
        signal_group(watch, SIGCONT);
}

/* The command was stopped. A process that waits for rlock, as a shell does, should see
 * rlock stop, too; but not if the command alone was stopped: then rlock still holds
 * the lock. */
static void stopped(struct run_watch *watch, int number)
{
    bool wants_terminal = number == SIGTTIN || number == SIGTTOU;
    bool had_terminal = watch->terminal.given, asked = watch->stop_asked;

    watch->stop_asked = false;
    if (wants_terminal && run_terminal_is_here(&watch->terminal)) {
        run_terminal_give(&watch->terminal, watch->command.pid);
        signal_group(watch, SIGCONT);
        return;
    }
    if (watch->ending)
        return;
    run_terminal_take(&watch->terminal);
    if (!had_terminal && !asked && !(wants_terminal && watch->terminal.fd >= 0))
        return;
    /* The terminal would have stopped all of rlock's group, for instance a script. */
    bool did = run_signals_stop(number, had_terminal && number == SIGTSTP);
    if (!did && wants_terminal) {
        cli_complain("the command wants the terminal, and no shell can pass it on");
        end_command(watch);
    } else {
        continue_command(watch);
    }
}

/* ---- signals */

static void forward(struct run_watch *watch, int number)
{
    if (number == SIGCONT) {
        continue_command(watch);
    } else if (number != SIGTSTP || !watch->ending) {
        watch->told_to_end |= number == SIGTERM || number == SIGINT || number == SIGQUIT;
        watch->stop_asked = watch->stop_asked || number == SIGTSTP;
        signal_group(watch, number);
    }
}

/* Any child: of the first process of a container, or of a program that executed rlock. */
static void reap_others(const struct run_watch *watch)
{
    siginfo_t info = { 0 };

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != watch->command.supervisor &&
           info.si_pid != watch->command.pid) {
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        info.si_pid = 0;
    }
}

static void take_signals(struct run_watch *watch)
{
    struct signalfd_siginfo got;

    while (read(watch->signals, &got, sizeof(got)) == (ssize_t)sizeof(got))
        if (got.ssi_signo != SIGCHLD)
            forward(watch, (int)got.ssi_signo);
    /* Always: one SIGCHLD may stand for several changes. */
    reap_others(watch);
}

/* ---- words of the supervisor */

static void ended(struct run_watch *watch, int code, int status)
{
    watch->ended = true;
    watch->end.si_code = code;
    watch->end.si_status = status;
    watch->had_terminal = watch->terminal.given;
    run_terminal_take(&watch->terminal);
    /* it had no chance to restore the modes */
    if (watch->had_terminal && (watch->ending || code != CLD_EXITED))
        run_terminal_restore(&watch->terminal);
    char late[CLI_LINE_MAX];
    snprintf(
        late, sizeof(late),
        "the command has ended, but some of its processes run on: still holding \"%s\"",
        watch->shown);
    if (!watch->ending && !watch->options->leave)
        run_tell_if_late(late);
}

/* The supervisor was killed: now the command is a child of rlock. */
static void look_after_orphan(struct run_watch *watch)
{
    siginfo_t info = { 0 };

    watch->company = RUN_COMPANY_UNKNOWN;
    if (!watch->ended &&
        waitid(P_PID, (id_t)watch->command.pid, &info, WEXITED | WNOHANG | WNOWAIT) ==
            0 &&
        info.si_pid != 0)
        ended(watch, info.si_code, info.si_status);
}

static void take_words(struct run_watch *watch)
{
    struct run_word word;

    while (run_command_word(&watch->command, &word)) {
        if (word.kind == RUN_WORD_STOPPED)
            stopped(watch, word.status);
        else if (word.kind == RUN_WORD_ENDED)
            ended(watch, word.number, word.status);
        else
            watch->company = word.number;
    }
    if (watch->command.link < 0)
        look_after_orphan(watch);
}

/* ---- the loop */

/* Whether everything is over. After a kill rlock waits for the end of all processes,
 * except those that it may not signal. */
static bool is_over(const struct run_watch *watch)
{
    bool alone = watch->company == RUN_COMPANY_NONE;

    if (!watch->ended || watch->company < 0)
        return false;
    if (!watch->ending)
        return alone || watch->company == RUN_COMPANY_UNKNOWN || watch->options->leave;
    return alone || (watch->killed && (watch->company == RUN_COMPANY_UNKNOWN ||
                                       run_now_ns() >= watch->kill_at_ns + LAST_NS));
}

/* For poll. -1: no such time; at most a day, because poll takes an int. */
static int ms_until(int64_t at_ns)
{
    int64_t left = (at_ns - run_now_ns()) / NS_PER_MS + 1;

    if (left > POLL_MAX_MS)
        left = POLL_MAX_MS;
    return left < 0 ? 0 : (int)left;
}

static int time_left_ms(const struct run_watch *watch)
{
    int64_t max_ns = watch->options->max_hold_ns;

    if (!watch->ending)
        return max_ns > 0 ? ms_until(watch->held_since_ns + max_ns) : -1;
    if (!watch->killed)
        return ms_until(watch->kill_at_ns);
    int64_t last = watch->kill_at_ns + LAST_NS;
    return run_now_ns() < last ? ms_until(last) : -1; /* for the command itself */
}

static void kill_in_time(struct run_watch *watch)
{
    int64_t max_ns = watch->options->max_hold_ns;

    if (!watch->ending && max_ns > 0 && run_now_ns() >= watch->held_since_ns + max_ns) {
        watch->too_long = true;
        end_command(watch);
        cli_complain("\"%s\" was held for %.3g s: ending the command", watch->shown,
                     (double)max_ns / NS_PER_S);
    }
    if (watch->ending && !watch->killed && run_now_ns() >= watch->kill_at_ns) {
        watch->killed = true;
        signal_group(watch, SIGKILL);
    }
}

siginfo_t run_watch_command(struct run_watch *watch)
{
    watch->company = -1;
    while (!is_over(watch)) {
        struct pollfd fds[] = { { .fd = watch->signals, .events = POLLIN },
                                { .fd = watch->news, .events = POLLIN },
                                { .fd = watch->command.link, .events = POLLIN } };
        poll(fds, sizeof(fds) / sizeof(fds[0]), time_left_ms(watch));
        take_news(watch);
        take_signals(watch);
        take_words(watch);
        kill_in_time(watch);
    }
    watch->over = true;
    run_command_close(&watch->command);
    return watch->end;
}

/* False: a signal came that would end rlock. */
static bool take_signals_alone(struct run_watch *watch)
{
    struct signalfd_siginfo got;
    bool go_on = true;

    while (read(watch->signals, &got, sizeof(got)) == (ssize_t)sizeof(got)) {
        go_on = go_on && !run_signals_ends((int)got.ssi_signo);
        if (got.ssi_signo == SIGTSTP)
            run_signals_stop(SIGTSTP, false);
    }
    reap_others(watch);
    return go_on;
}

void run_watch_hold_on(struct run_watch *watch)
{
    int64_t end_ns = watch->held_since_ns + watch->options->min_hold_ns;
    struct pollfd fds[] = { { .fd = watch->signals, .events = POLLIN },
                            { .fd = watch->news, .events = POLLIN } };

    run_tell_in_time(); /* no process of the command is left */
    /* The command itself gets the terminal's signals. */
    if (watch->options->min_hold_ns == 0 || watch->told_to_end ||
        (watch->had_terminal && watch->end.si_code != CLD_EXITED))
        return;
    do {
        take_news(watch);
        if (watch->lost || run_now_ns() >= end_ns)
            return;
        poll(fds, sizeof(fds) / sizeof(fds[0]), ms_until(end_ns));
    } while (take_signals_alone(watch));
}
