/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of rlock(1) share: the options that all know, the client, exit codes,
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
    CLI_NO = 1,           /* the answer is no: nobody holds it, nothing found */
    CLI_USAGE = 64,       /* bad arguments */
    CLI_UNREACHABLE = 69, /* no server could be asked */
    CLI_INTERNAL = 70,    /* no memory, no descriptor, a system call failed */
    CLI_LOST = 74,        /* the lease was lost while the command ran */
    CLI_BUSY = 75,        /* not obtained in the time given */
    CLI_PROTOCOL = 76,  /* foreign data under that name, or the server refused the step */
    CLI_REFUSED = 77,   /* the server refused the credentials, or its ACL did */
    CLI_TOO_LONG = 124, /* the command was ended after --max-hold, as by timeout(1) */
    CLI_CANNOT_RUN = 126, /* the command is no program that may be run */
    CLI_NOT_FOUND = 127,  /* the command was not found */
    CLI_SIGNAL = 128,     /* plus the signal that ended it */
};

/* Of getopt_long, beyond the letters. */
enum {
    CLI_OPT_URL = 0x100,
    CLI_OPT_USER,
    CLI_OPT_PASSWORD_FILE,
    CLI_OPT_TLS, /* the first of those of TLS, in the order of cli_tls_options */
    CLI_OPT_TLS_LAST = CLI_OPT_TLS + 5,
    CLI_OPT_OWN, /* a command's own long options begin here */
};

/* The letters of the common options, and the rows that each command's table of long ones
 * ends with. */
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

/* What the common options said. Zeroed: nothing. */
struct cli_server {
    const char *url, *user, *password_file;
    const char *tls[CLI_OPT_TLS_LAST - CLI_OPT_TLS + 1]; /* cafile and so on */
};

/* One command. `usage` is what its --help prints, a screen at most. */
struct cli_command {
    const char *name, *usage;
    int (*run)(int argc, char **argv); /* argv[0] is "rlock NAME"; an exit code */
};

extern const struct cli_command cli_run, cli_list, cli_show, cli_watch, cli_release,
    cli_wait, cli_doctor;

/* Takes note of what getopt_long returned if it is a common option; --help and wrong
 * options end the program. False: it is the command's own. */
bool cli_common_option(const struct cli_command *command, struct cli_server *server,
                       int option);

/* Says what is wrong with the arguments, and ends the program with CLI_USAGE. */
void cli_bad_usage(const struct cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* A whole number within bounds; else as cli_bad_usage. */
long cli_number(const struct cli_command *command, const char *what, const char *text,
                long min, long max);

/* What a duration may be. */
struct cli_bounds {
    int64_t min_ms, max_ms;
    bool needs_unit; /* a bare number is refused; else it is seconds */
};

/* "60s", "500ms", "2m", "0.5h", "1d"; in ms; else as cli_bad_usage. */
int64_t cli_duration(const struct cli_command *command, const char *what,
                     const char *text, struct cli_bounds bounds);

/*
 * Opens a client. attr: the command's own wishes, NULL for none; gets the credentials of
 * RLOCK_PASSWORD or the file. From then on cli_server tells of it. Ends the program with
 * a message and an exit code when the arguments are wrong, as when the URL on the command
 * line holds a password, which all users of the machine could read.
 */
rlock_client_t *cli_open(const struct cli_command *command,
                         const struct cli_server *server, rlock_clientattr_t *attr);

/* The server of cli_open's client: its URL, printable and without user and password, and
 * who named it: "--url", "RLOCK_URL", a path, "built-in default". */
struct cli_named {
    const char *url, *source;
    bool is_built_in; /* nobody did */
};
const struct cli_named *cli_server(void);

/* The kernel reaps what others leave to this process, which has no children of its own:
 * for commands that last, as the first process of a container. */
void cli_have_no_children(void);

/* Closes it, and waits for what is unfinished, at most one command timeout. */
void cli_close(rlock_client_t *client);

/* The exit code for a code of the library. */
int cli_exit_code(int code);

enum { CLI_LINE_MAX = 4096 };

/* "rlock: ...\n" to stderr, or to whom cli_tell_by named: CLI_LINE_MAX bytes at most. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Complains with rlock_errmsg() about the call that gave `code`; returns its exit code.
 * Of a server that was not to be had it says so when --url named it; when others did, the
 * library says that. */
int cli_failed(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The exit code of what printed: `code`, unless stdout took not all of it. */
int cli_printed(int code);

/* Complaints go there from now on; NULL: to stderr. */
void cli_tell_by(void (*tell)(const char *line, size_t len));

/* The name with what is not printable, quotes and backslashes as \xNN, so that no name
 * plays with a terminal; allocated, never NULL. */
char *cli_printable(const char *text);

#endif
