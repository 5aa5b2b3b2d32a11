/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `rlock run`: lock, signals, terminal, command. Thread: main only,
 * except the event callback. */
#ifndef CLI_RUN_H
#define CLI_RUN_H

#include "cli.h"

#include <rlock.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>
#include <time.h>

enum run_kind { RUN_MUTEX, RUN_FAIR, RUN_READ, RUN_WRITE };

/* The values of the command line. */
struct run_options {
    enum run_kind kind;
    bool no_wait, quiet, verbose;
    bool warn;       /* --on-lost warn */
    bool no_token;   /* no token in the environment, and no key for it at the server */
    bool leave;      /* the hold ends with the command, whatever processes it left */
    int64_t wait_ns; /* -1: as long as it takes */
    long lease_ms;   /* 0: the client's */
    long grace_ms;
    int64_t max_hold_ns, min_hold_ns; /* 0: no limit */
    int conflict_code;
    int fd; /* -1: none */
    const char *name;
    char **command;
};

/* ---- the lock (run_lock.c): one interface for all types. Codes of the library. */

struct run_lock {
    enum run_kind kind;
    union {
        rlock_mutex_t mutex;
        rlock_fair_t fair;
        rlock_rwlock_t rwlock;
    } of;
};

int run_lock_init(struct run_lock *lock, const struct run_options *options,
                  rlock_client_t *client);
/* deadline: of CLOCK_MONOTONIC; NULL: none. `try`: one attempt. */
int run_lock_take(struct run_lock *lock, bool try, const struct timespec *deadline);
int run_lock_release(struct run_lock *lock);
rlock_state_t run_lock_state(const struct run_lock *lock);
uint64_t run_lock_token(const struct run_lock *lock);

/* ---- signals (run_signals.c). State: of the process. */

/* Notes the signal actions with which rlock began: the command gets the same. */
void run_signals_note(void);
/* From now on a signal that would end rlock ends the client's waits; a second one of
 * the same kind ends rlock at once. */
void run_signals_interrupt(rlock_client_t *client);
/* Blocks the signals that run_signals_open reads; returns the signal that came before,
 * or 0. */
int run_signals_block(void);
/* A descriptor that delivers the blocked signals: those to be forwarded, and SIGCHLD.
 * -1 on failure. */
int run_signals_open(void);
/* For the child of fork: async-signal-safe. */
void run_signals_as_found(void);
/* Whether a forwarded signal ends a process by default. */
bool run_signals_ends(int number);
/* Ends rlock by that signal, so that its parent sees the signal. */
__attribute__((noreturn)) void run_signals_die(int number);
/* Stops rlock, or its process group; returns when it continues. False: it did not
 * stop, as in a process group that no shell would continue. */
bool run_signals_stop(int number, bool group);

/* ---- the terminal (run_terminal.c) */

struct run_terminal {
    int fd;      /* the controlling terminal; -1: none */
    bool wanted; /* the command gets it whenever rlock is in the foreground */
    bool given;
    bool known; /* the modes at the time when the command first got it */
    struct termios modes;
};

void run_terminal_open(struct run_terminal *terminal);
/* Whether rlock's process group is in the foreground. */
bool run_terminal_is_here(const struct run_terminal *terminal);
/* SIGTTOU must be blocked. Async-signal-safe. */
void run_terminal_give(struct run_terminal *terminal, pid_t group);
void run_terminal_take(struct run_terminal *terminal);
/* Restores the modes from before the command had it. Only while rlock has it. */
void run_terminal_restore(const struct run_terminal *terminal);

/* ---- the supervisor (run_supervisor.c) */

enum run_word_kind {
    RUN_WORD_STARTED, /* number: the command's pid; 0: status is the errno value */
    RUN_WORD_STOPPED, /* number, status: si_code and si_status, as for the next word */
    RUN_WORD_ENDED,
    RUN_WORD_COMPANY, /* number: which processes of an ended command are left, as below */
    RUN_WORD_SIGNAL   /* from rlock; number: the signal for all adopted processes */
};
enum { RUN_COMPANY_NONE, RUN_COMPANY_THERE, RUN_COMPANY_UNKNOWN };

/* A packet between rlock and the supervisor. */
struct run_word {
    enum run_word_kind kind;
    int number, status;
};

/* In the child of fork: becomes the supervisor, whose child `become` turns into the
 * command. Ends when rlock does. */
__attribute__((noreturn)) void run_supervise(int link, void (*become)(void *arg),
                                             void *arg);

/* ---- the command (run_command.c) */

struct run_command {
    pid_t pid;        /* and its process group; a zombie until the supervisor ends */
    pid_t supervisor; /* its parent */
    int link;         /* to the supervisor; -1: it is dead */
    int report;       /* delivers the errno value of a failed exec */
};

/* Starts the command in its own process group; lines: the descriptor that it gets as
 * options->fd. Returns an errno value. */
int run_command_start(struct run_command *command, const struct run_options *options,
                      uint64_t token, struct run_terminal *terminal, int lines);
/* After the command's end: if it could not be started, the exit code, with a message;
 * else -1. */
int run_command_failure(const struct run_command *command,
                        const struct run_options *options);
/* Signals its process group and, with `all` or after the command's end, the processes
 * that the supervisor adopted. Returns an errno value. */
int run_command_signal(const struct run_command *command, int number, bool all);
/* The next word from the supervisor. False: none now. */
bool run_command_word(struct run_command *command, struct run_word *ret_word);
/* Ends the supervisor; reaps it and the command. */
void run_command_close(struct run_command *command);

/* ---- messages (run_tell.c) */

/* From now on a thread writes complaints, and rlock does not wait for stderr. Returns
 * an errno value. */
int run_tell_open(void);
/* As cli_complain("%s", text) after a second, unless run_tell_in_time or
 * run_tell_close comes first. */
void run_tell_if_late(const char *text);
/* Cancels the late complaint. */
void run_tell_in_time(void);
/* Gives unwritten lines a little time. */
void run_tell_close(void);

/* ---- the time while the command runs (run_watch.c) */

struct run_watch {
    const struct run_options *options;
    const char *shown; /* the lock's name */
    struct run_lock lock;
    struct run_terminal terminal;
    struct run_command command;
    int signals;
    int news, teller; /* a pipe: what the event callback reports */
    int lines;        /* writing end of the command's descriptor; -1 */
    bool lost;        /* and the user was informed */
    bool ending;      /* the command was asked to end, and is killed at kill_at_ns */
    bool killed;
    bool stop_asked;   /* rlock itself was asked to stop */
    bool told_to_end;  /* rlock forwarded a signal that asks the command to end */
    bool had_terminal; /* at its end */
    bool ended;        /* the command itself has ended, as in `end` */
    siginfo_t end;
    int company;   /* after that: which of its processes are left */
    bool over;     /* no process is left to end */
    bool too_long; /* it was asked to end because of --max-hold */
    int64_t held_since_ns;
    int64_t kill_at_ns;
};

/* The event callback; arg: the struct run_watch. Thread: a library thread. */
void run_watch_event(const rlock_event_t *event, void *arg);
/* Runs until the command has ended; returns how, as siginfo_t's si_code and si_status. */
siginfo_t run_watch_command(struct run_watch *watch);
/* Runs until the lock was held for long enough or is lost, or a signal comes that
 * would end rlock. */
void run_watch_hold_on(struct run_watch *watch);
/* Complains once. */
void run_watch_tell_lost(struct run_watch *watch, const char *reason);

int64_t run_now_ns(void);

#endif
