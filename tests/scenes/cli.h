/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs rlock(1), or another program that runs it, as a process: with pipes, or as the
 * leader of a session on a pseudo-terminal. Collects its output and its exit status,
 * always with a time limit. The process dies with the thread that started it. State: in
 * the caller's struct. Thread: one at a time; main for the start.
 */
#ifndef TEST_CLI_H
#define TEST_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    CLI_TEXT_MAX = 65536,
    CLI_WAIT_MS = 20000, /* for what a healthy program soon does */
    CLI_STILL_RUNS = -1000
};

/* The output of one descriptor; NUL-terminated. Text that does not fit is dropped. */
struct cli_text {
    int fd; /* -1: at its end */
    size_t len;
    char text[CLI_TEXT_MAX];
};

struct cli {
    pid_t pid;   /* 0: reaped */
    int status;  /* of waitpid, once reaped */
    int in;      /* its stdin, or the terminal; -1: closed */
    bool is_pty; /* then `out` has stderr's output, too */
    struct cli_text out, err;
};

/*
 * Start a process. argv[0]: "rlock" is the built program (cli_path); others are looked up
 * in PATH. env: "NAME=value" strings added to the environment, from which RLOCK_URL,
 * _USER, _PASSWORD, _NAME and _TOKEN are removed; RLOCK_CONF is /dev/null. Abort when the
 * process cannot be started.
 */
void cli_start(struct cli *c, const char *const argv[], const char *const env[]);
/* The same on a pseudo-terminal of this size, its controlling terminal, with
 * TERM=xterm. */
void cli_start_pty(struct cli *c, const char *const argv[], const char *const env[],
                   int rows, int columns);

/* The path of the built rlock(1). */
const char *cli_path(void);

/* Writes to its stdin or types on its terminal. False: no process reads it. */
bool cli_type(struct cli *c, const char *text);
/* Closes its stdin. Not for a terminal: type "\4" there. */
void cli_close_in(struct cli *c);
/* Resizes the terminal; its foreground processes get SIGWINCH. */
void cli_resize(struct cli *c, int rows, int columns);

/* Waits until the output since its start (or cli_forget) contains `text`. False: it did
 * not within test_ms(CLI_WAIT_MS), or the process ended without it. */
bool cli_says(struct cli *c, const char *text);
/* The same with the rest of the line behind `begin`. */
bool cli_says_line(struct cli *c, const char *begin);
bool cli_complains(struct cli *c, const char *text);
/* Reads the output that is there now, without waiting. */
void cli_collect(struct cli *c);
/* Forgets the output so far, so that cli_says searches only later output. */
void cli_forget(struct cli *c);

/* Waits for the end. Returns its exit code, or minus the signal that ended it;
 * CLI_STILL_RUNS: it did not end within test_ms(ms). The output is then complete, unless
 * another process still has it open. */
int cli_ends(struct cli *c, long ms);

/* Starts a process without input and waits for its end. */
int cli_does(struct cli *c, const char *const argv[], const char *const env[]);
#define CLI_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Sends SIGKILL if it runs, and closes all descriptors. Does nothing with a zeroed
 * struct. */
void cli_stop(struct cli *c);

#endif
