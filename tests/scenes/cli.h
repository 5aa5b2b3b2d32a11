/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock(1), or another program that runs it, as a process of its own: with pipes, or as
 * the leader of a session on a pseudo-terminal. Collects what it writes and how it ends,
 * always with a bound. It dies with the thread that started it. State: in the caller's
 * struct. Thread: one at a time, main for the start.
 */
#ifndef TEST_CLI_H
#define TEST_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum {
    CLI_TEXT_MAX = 65536,
    CLI_WAIT_MS = 20000, /* for what a working program does soon */
    CLI_STILL_RUNS = -1000
};

/* What came from one descriptor; NUL-terminated, and what does not fit is dropped. */
struct cli_text {
    int fd; /* -1: at its end */
    size_t len;
    char text[CLI_TEXT_MAX];
};

struct cli {
    pid_t pid;   /* 0: reaped */
    int status;  /* of waitpid, once reaped */
    int in;      /* its stdin, or the terminal; -1: closed */
    bool is_pty; /* then `out` has what stderr has, too */
    struct cli_text out, err;
};

/*
 * Start it. argv[0]: "rlock" is the one that was built (cli_path); others are looked up
 * in PATH. env: "NAME=value" laid over the environment, from which RLOCK_URL, _USER,
 * _PASSWORD, _NAME and _TOKEN are gone, and RLOCK_CONF is /dev/null. Abort when it cannot
 * be started.
 */
void cli_start(struct cli *c, const char *const argv[], const char *const env[]);
/* On a pseudo-terminal of that size, its controlling one, with TERM=xterm. */
void cli_start_pty(struct cli *c, const char *const argv[], const char *const env[],
                   int rows, int columns);

/* The path of the built rlock(1). */
const char *cli_path(void);

/* Writes to its stdin or types on its terminal. False: nobody reads. */
bool cli_type(struct cli *c, const char *text);
/* Its stdin ends. Not of a terminal: type "\4". */
void cli_close_in(struct cli *c);
/* The terminal gets another size, and its foreground SIGWINCH. */
void cli_resize(struct cli *c, int rows, int columns);

/* Until what it wrote since its start (or cli_forget) contains `text`. False: it did not
 * within test_ms(CLI_WAIT_MS), or it ended without. */
bool cli_says(struct cli *c, const char *text);
bool cli_complains(struct cli *c, const char *text);
/* Reads what is there now, without waiting. */
void cli_collect(struct cli *c);
/* Forgets what was read, so that cli_says looks at what comes from now on. */
void cli_forget(struct cli *c);

/* Its exit code, or minus the signal that ended it; CLI_STILL_RUNS: it did not end within
 * test_ms(ms). Its output is then complete, unless somebody else still has it open. */
int cli_ends(struct cli *c, long ms);

/* Starts it without input and waits for its end. */
int cli_does(struct cli *c, const char *const argv[], const char *const env[]);
#define CLI_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* SIGKILL if need be, and closes everything. Harmless on a zeroed struct. */
void cli_stop(struct cli *c);

#endif
