/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rlock-guard(8) share: exit codes, lines of its log, the URLs, the
 * clients, the messages to the service manager. Uses <rlock.h> only. */
#ifndef GUARDD_H
#define GUARDD_H

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>

/* Exit codes, after sysexits(3); rlock-guard(8) lists them. */
enum {
    GUARD_OK = 0,
    GUARD_USAGE = 64,    /* bad arguments, or a URL that is of no use */
    GUARD_INTERNAL = 70, /* no memory, no descriptor, a system call failed */
    GUARD_CONFIG = 78    /* no directory, or none that it may use as this user */
};

/* ---- the log: say.c. Threads: any, once say_open has returned. */

/* As in syslog(3). */
enum { SAY_ERROR = 3, SAY_WARNING = 4, SAY_NOTICE = 5, SAY_INFO = 6, SAY_DEBUG = 7 };
enum { SAY_LINE_MAX = 4096 };

/* Looks where stderr goes. max_level: what is above it is dropped. */
void say_open(int max_level);
/* "rlock-guard: ...\n" to stderr, in one piece. Never waits: what stderr does not take at
 * once is lost. */
void say(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line as it is. */
void say_line(int level, const char *line);
/* Says it, and ends the program. */
void say_and_exit(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* ---- the URLs: urls.c. Thread: main. */

enum { URLS_MAX = 64 };

struct guard_url {
    char *text; /* NULL: the library's default, see rlock.conf(5) */
    char *from; /* where it stood, for messages; NULL: the library says that */
};

struct guard_urls {
    struct guard_url each[URLS_MAX];
    int count, of_command_line;
};

/* One of the command line. Ends the program with a message when it holds a password,
 * which all users of the host could read. */
void urls_add(struct guard_urls *urls, const char *url);
/* Those of a file, one in a line. Ends the program when there is none. */
void urls_read(struct guard_urls *urls, const char *path);
/* The one that is used when there is no other. */
void urls_add_default(struct guard_urls *urls);
/* Wipes and frees them. */
void urls_clear(struct guard_urls *urls);

/* Whether a URL that rlock_client_open has taken says guard=0. */
bool url_is_off(const char *url);
/* A text with what is not printable as \xNN; allocated, never NULL. */
char *printable(const char *text);

/* ---- the clients: clients.c. Thread: main. */

/* Opens one for each, and from then on says what the library logs. Ends the program with
 * a message when a URL is of no use, or one would look at nothing. */
void clients_open(const struct guard_urls *urls);
int clients_count(void);
/* "redis://a:6379, unix:///s"; behind one that the command line did not name: who did */
void clients_describe(char *text, size_t size);
/* "3 burials (2 at redis://a:6379, 1 at unix:///s)" */
void clients_count_recoveries(char *text, size_t size);
/* Whether one of them looks at nothing, or not any more: then SIGTERM was sent to this
 * process by itself. */
bool clients_are_blind(void);
/* From here on the program ends by itself when its end takes too long: with GUARD_OK, or,
 * if they are blind, with GUARD_INTERNAL. */
void clients_bound_the_end(void);
void clients_close(void);

/* ---- the service manager: notify.c. Thread: main. */

/* Sends it these lines, if there is one ($NOTIFY_SOCKET), as sd_notify(3) does. What
 * fails is said, and no more. */
void notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
