/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands of rlock(1): common options, the client, exit codes,
 * messages. Uses <rlock.h> only. */
#ifndef CLI_H
#define CLI_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes, after sysexits(3) and the shell's; rlock(1) lists them. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,           /* a negative answer: no holder, nothing found */
    CLI_USAGE = 64,       /* bad arguments */
    CLI_UNREACHABLE = 69, /* no server could be reached */
    CLI_INTERNAL = 70,    /* no memory, no descriptor, a system call failed */
    CLI_LOST = 74,        /* the lease was lost while the command ran */
    CLI_BUSY = 75,        /* not obtained within the given time */
    CLI_PROTOCOL = 76,  /* foreign data under that name, or the server refused the step */
    CLI_REFUSED = 77,   /* the server refused the credentials, or its ACL the request */
    CLI_TOO_LONG = 124, /* the command was ended after --max-hold, as by timeout(1) */
    CLI_CANNOT_RUN = 126, /* the command is not an executable program */
    CLI_NOT_FOUND = 127,  /* the command was not found */
    CLI_SIGNAL = 128,     /* plus the signal that ended it */
};

/* For getopt_long, beyond the letters. */
enum {
    CLI_OPT_URL = 0x100,
    CLI_OPT_USER,
    CLI_OPT_PASSWORD_FILE,
    CLI_OPT_TLS, /* the first option for TLS; in the order of set_tls in cli.c */
    CLI_OPT_TLS_LAST = CLI_OPT_TLS + 5,
    CLI_OPT_OWN, /* a command's own long options begin here */
};

/* The letters of the common options, and the last rows of each command's table of long
 * options. */
#define CLI_COMMON_LETTERS "h"
#define CLI_COMMON_OPTIONS                                                               \
    { "url", required_argument, NULL, CLI_OPT_URL },                                     \
        { "user", required_argument, NULL, CLI_OPT_USER },                               \
        { "password-file", required_argument, NULL, CLI_OPT_PASSWORD_FILE },             \
        { "tls-cafile", required_argument, NULL, CLI_OPT_TLS },                          \
        { "tls-cadir", required_argument, NULL, CLI_OPT_TLS + 1 },                       \
        { "tls-certfile", required_argument, NULL, CLI_OPT_TLS + 2 },                    \
        { "tls-keyfile", required_argument, NULL, CLI_OPT_TLS + 3 },                     \
        { "tls-name", required_argument, NULL, CLI_OPT_TLS + 4 },                        \
        { "tls-verify", required_argument, NULL, CLI_OPT_TLS + 5 },                      \
        { "help", no_argument, NULL, 'h' },                                              \
    {                                                                                    \
        NULL, 0, NULL, 0                                                                 \
    }

/* The values of the common options. Zeroed: none. */
struct cli_server {
    const char *url, *user, *password_file;
    const char *tls[CLI_OPT_TLS_LAST - CLI_OPT_TLS + 1]; /* cafile and so on */
};

/* One command. `usage` is the text of its --help, at most one screen. */
struct cli_command {
    const char *name, *usage;
    int (*run)(int argc, char **argv); /* argv[0] is "rlock NAME"; returns an exit code */
};

extern const struct cli_command cli_run, cli_list, cli_show, cli_watch, cli_release,
    cli_wait, cli_doctor;

/* Handles a result of getopt_long if it is a common option; --help and wrong options
 * end the program. False: an option of the command's own. */
bool cli_common_option(const struct cli_command *command, struct cli_server *server,
                       int option);

/* Reports wrong arguments, and ends the program with CLI_USAGE. */
void cli_bad_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* A whole number within limits; else as cli_bad_usage. */
long cli_number(const struct cli_command *command, const char *what, const char *text,
                long min, long max);

/* The permitted values of a duration. */
struct cli_bounds {
    int64_t min_ms, max_ms;
    bool needs_unit; /* a bare number is refused; else it means seconds */
};

/* "60s", "500ms", "2m", "0.5h", "1d"; in ms; else as cli_bad_usage. */
int64_t cli_duration(const struct cli_command *command, const char *what,
                     const char *text, struct cli_bounds bounds);

/*
 * Opens a client. attr: the command's own attributes, NULL for none; gets the credentials
 * of RLOCK_PASSWORD or the file. From then on cli_server describes it. Ends the program
 * with a message and an exit code if the arguments are wrong, for instance if the URL on
 * the command line contains a password, which all users of the machine could read.
 */
rlock_client_t *cli_open(const struct cli_command *command,
                         const struct cli_server *server, rlock_clientattr_t *attr);

/* The server of cli_open's client: its URL, printable and without user and password,
 * and the URL's source: "--url", "RLOCK_URL", a path, "built-in default". */
struct cli_named {
    const char *url, *source;
    bool is_built_in; /* the URL has no other source */
};
const struct cli_named *cli_server(void);

/* Lets the kernel reap processes that others leave to this process, which has no
 * children of its own: for long-running commands, as the first process of a container. */
void cli_have_no_children(void);

/* Closes the client; waits for unfinished requests for at most one command timeout. */
void cli_close(rlock_client_t *client);

/* The exit code for a code of the library. */
int cli_exit_code(int code);

enum { CLI_LINE_MAX = 4096 };

/* Writes "rlock: ...\n" to stderr, or to the function of cli_tell_by: at most
 * CLI_LINE_MAX bytes. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains with rlock_errmsg() about the call that returned `code`; returns its exit
 * code. If the server is unreachable and --url named it, the message says so; for
 * other sources the library's text does. */
int cli_failed(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of a command that printed: `code`, unless stdout did not take
 * everything. */
int cli_printed(int code);

/* Sends complaints to this function from now on; NULL: to stderr. */
void cli_tell_by(void (*tell)(const char *line, size_t len));

/* A copy of the name with unprintable bytes, quotes and backslashes as \xNN, so that a
 * name cannot control a terminal; allocated, never NULL. */
char *cli_printable(const char *text);

#endif
