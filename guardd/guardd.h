/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of rlock-guard(8): exit codes, log, URLs, clients, messages to
 * the service manager. Uses <rlock.h> only. */
#ifndef GUARDD_H
#define GUARDD_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/* Exit codes, after sysexits(3); rlock-guard(8) lists them. */
enum {
    GUARD_OK = 0,
    GUARD_USAGE = 64,    /* bad arguments, or a useless URL */
    GUARD_INTERNAL = 70, /* no memory, no descriptor, or a system call failed */
    GUARD_CONFIG = 78    /* no directory, or none that this user may use */
};

/* ---- the log: say.c. Threads: any, after say_open has returned. */

/* As in syslog(3). */
enum { SAY_ERROR = 3, SAY_WARNING = 4, SAY_NOTICE = 5, SAY_INFO = 6, SAY_DEBUG = 7 };
enum { SAY_LINE_MAX = 4096 };

/* Finds out where stderr leads. Lines above max_level are dropped. */
void say_open(int max_level);
/* Writes "rlock-guard: ...\n" to stderr in one piece. Never waits: what stderr does
 * not take at once is lost. */
void say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes a line without a prefix. */
void say_line(int level, const char *line);
/* As say, then ends the program. */
void say_and_exit(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* ---- the URLs: urls.c. Thread: main. */

enum { URLS_MAX = 64 };

struct guard_url {
    char *text; /* NULL: the library's default, see rlock.conf(5) */
    char *from; /* its place, for messages; NULL: the library names it */
};

struct guard_urls {
    struct guard_url each[URLS_MAX];
    int count, of_command_line;
};

/* Adds a URL of the command line. Ends the program if the URL contains a password,
 * which all users of the host could read. */
void urls_add(struct guard_urls *urls, const char *url);
/* Adds the URLs of a file, one in a line. Ends the program if the file has none. */
void urls_read(struct guard_urls *urls, const char *path);
/* Adds the library's default URL. */
void urls_add_default(struct guard_urls *urls);
/* Wipes and frees the URLs. */
void urls_clear(struct guard_urls *urls);

/* Whether a URL that rlock_client_open accepted contains guard=0. */
bool url_is_off(const char *url);
/* A copy with unprintable bytes as \xNN; allocated, never NULL. */
char *printable(const char *text);

/* ---- the clients: clients.c. Thread: main. */

/* Opens a client for each URL, and from then on writes the library's log lines. Ends
 * the program if a URL is useless or a client has no directory to watch. */
void clients_open(const struct guard_urls *urls);
int clients_count(void);
/* "redis://a:6379, unix:///s"; a URL that is not of the command line is followed by
 * its source */
void clients_describe(char *text, size_t size);
/* "3 recovered processes (2 at redis://a:6379, 1 at unix:///s)" */
void clients_count_recoveries(char *text, size_t size);
/* Whether a client has no directory to watch, or lost it: then this process has sent
 * itself SIGTERM. */
bool clients_are_blind(void);
/* From here on the program exits by itself if its end takes too long: with GUARD_OK,
 * or with GUARD_INTERNAL if clients_are_blind(). */
void clients_bound_the_end(void);
void clients_close(void);

/* ---- the service manager: notify.c. Thread: main. */

/* Sends these lines to the service manager, if there is one ($NOTIFY_SOCKET), as
 * sd_notify(3) does. A failure is logged and ignored. */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
