/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `rlock run`: the lock, signals, the terminal, the command. Thread: main
 * only, but for the callback of events. */
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

/* What the command line said. */
struct run_options {
    enum run_kind kind;
    bool no_wait, quiet, verbose;
    bool warn;       /* --on-lost warn */
    bool no_token;   /* nor a key for it at the server */
    bool leave;      /* the lock ends with the command, whatever that left */
    int64_t wait_ns; /* -1: as long as it takes */
    long lease_ms;   /* 0: the client's */
    long grace_ms;
    int64_t max_hold_ns, min_hold_ns; /* 0: no bound */
    int conflict_code;
    int fd; /* -1: none */
    const char *name;
    char **command;
};

/* ---- the lock (run_lock.c): one interface over the types. Codes of the library. */

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

/* Takes note of how signals were when rlock began: the command gets them so. */
void run_signals_note(void);
/* From now on a signal that would end rlock ends the client's waits; a second one of its
 * kind ends rlock at once. */
void run_signals_interrupt(rlock_client_t *client);
/* Blocks what run_signals_open reads; the signal that came before, or 0. */
int run_signals_block(void);
/* A descriptor that gives what is blocked: signals to be forwarded, and SIGCHLD. -1. */
int run_signals_open(void);
/* In the child of fork: async-signal-safe. */
void run_signals_as_found(void);
/* Whether it is forwarded, and by default ends a process. */
bool run_signals_ends(int number);
/* Ends rlock by that signal, so that its parent sees it. */
__attribute__((noreturn)) void run_signals_die(int number);
/* Stops rlock, or its process group, and returns when it goes on. False: it did not stop,
 * as in a process group whom no shell would continue. */
bool run_signals_stop(int number, bool group);

/* ---- the terminal (run_terminal.c) */

struct run_terminal {
    int fd;      /* the controlling terminal; -1: there is none */
    bool wanted; /* the command is to have it whenever rlock is in the foreground */
    bool given;
    bool known; /* how it was set when the command first had it */
    struct termios modes;
};

void run_terminal_open(struct run_terminal *terminal);
/* Whether rlock's process group is in the foreground. */
bool run_terminal_is_here(const struct run_terminal *terminal);
/* SIGTTOU must be blocked. Async-signal-safe. */
void run_terminal_give(struct run_terminal *terminal, pid_t group);
void run_terminal_take(struct run_terminal *terminal);
/* As it was before the command had it. Only while rlock has it. */
void run_terminal_restore(const struct run_terminal *terminal);

/* ---- the supervisor (run_supervisor.c) */

enum run_word_kind {
    RUN_WORD_STARTED, /* number: the command's pid; 0: status is the errno */
    RUN_WORD_STOPPED, /* number, status: si_code and si_status, as in the next */
    RUN_WORD_ENDED,
    RUN_WORD_COMPANY, /* number: what is left of an ended command, as below */
    RUN_WORD_SIGNAL   /* from rlock; number: what it adopted is to get that signal */
};
enum { RUN_COMPANY_NONE, RUN_COMPANY_THERE, RUN_COMPANY_UNKNOWN };

/* A packet between rlock and the supervisor. */
struct run_word {
    enum run_word_kind kind;
    int number, status;
};

/* In the child of fork: becomes the supervisor of a child that `become` makes the command
 * of, and ends when rlock does. */
__attribute__((noreturn)) void run_supervise(int link, void (*become)(void *arg),
                                             void *arg);

/* ---- the command (run_command.c) */

struct run_command {
    pid_t pid;        /* and its process group; a zombie until the supervisor ends */
    pid_t supervisor; /* its parent */
    int link;         /* to it; -1: it is dead */
    int report;       /* the errno of an exec that failed comes here */
};

/* Starts it in a process group of its own; lines: what it is to find at options->fd. An
 * errno code. */
int run_command_start(struct run_command *command, const struct run_options *options,
                      uint64_t token, struct run_terminal *terminal, int lines);
/* After its end: the exit code, with a message, if it could not be started; else -1. */
int run_command_failure(const struct run_command *command,
                        const struct run_options *options);
/* Signals its process group and, `all` or when the command has ended, what the supervisor
 * adopted. An errno code. */
int run_command_signal(const struct run_command *command, int number, bool all);
/* The next word of the supervisor's. False: there is none now. */
bool run_command_word(struct run_command *command, struct run_word *ret_word);
/* Ends the supervisor, and reaps it and the command. */
void run_command_close(struct run_command *command);

/* ---- messages (run_tell.c) */

/* From now on complaints are written by a thread, and rlock does not wait for stderr. An
 * errno code. */
int run_tell_open(void);
/* As cli_complain("%s", text) in a second, unless run_tell_close comes first. */
void run_tell_if_late(const char *text);
/* It will not: what came in time is not said. */
void run_tell_in_time(void);
/* Gives what is unwritten a little time. */
void run_tell_close(void);

/* ---- what happens while it runs (run_watch.c) */

struct run_watch {
    const struct run_options *options;
    const char *shown; /* the lock's name */
    struct run_lock lock;
    struct run_terminal terminal;
    struct run_command command;
    int signals;
    int news, teller; /* a pipe: what the callback of events tells */
    int lines;        /* writing end of the command's descriptor; -1 */
    bool lost;        /* and the user knows */
    bool ending;      /* the command was told to end, and is killed at kill_at_ns */
    bool killed;
    bool stop_asked;   /* rlock itself was told to stop */
    bool told_to_end;  /* it forwarded a signal that means that */
    bool had_terminal; /* at its end */
    bool ended;        /* the command itself, by `end` */
    siginfo_t end;
    int company;   /* then: what is left of it */
    bool over;     /* nothing of it is left to be ended */
    bool too_long; /* it was told to end because of --max-hold */
    int64_t held_since_ns;
    int64_t kill_at_ns;
};

/* The event callback; arg: the struct run_watch. Thread: a library thread. */
void run_watch_event(const rlock_event_t *event, void *arg);
/* Until the command has ended; what it ended by, as siginfo_t's si_code and si_status. */
siginfo_t run_watch_command(struct run_watch *watch);
/* Until it was held for long enough, is lost, or a signal that would end rlock comes. */
void run_watch_hold_on(struct run_watch *watch);
/* Complains once. */
void run_watch_tell_lost(struct run_watch *watch, const char *reason);

int64_t run_now_ns(void);

#endif
