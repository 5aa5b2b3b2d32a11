/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clients, one for each URL. They do their work on the library's threads. Closing one
 * may take a command timeout, which the program does not wait for: a client left open is
 * like one of a killed program. Thread: main, except hear.
 */
#include "guardd.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum {
    STOP_US = 600000,
    URL_SIZE = 16384, /* a line of a file of URLs is shorter */
    SOURCE_SIZE = 4096
};

struct guarded {
    rlock_client_t *client;
    char *label;
    char *source; /* the URL's source if that is not the command line, else NULL */
};

static struct guarded guarded[URLS_MAX];
static int guarded_count;
static atomic_bool blind; /* a client has no directory to watch */

static bool begins_with(const char *line, const char *text)
{
    return strncmp(line, text, strlen(text)) == 0;
}

/* The library's logger. A client that cannot create its live file still works, and so
 * does one whose directory is not to be trusted any more; but as a guard it is
 * useless. A directory that is missing may come back. */
static void hear(int level, const char *line, void *arg)
{
    bool later = begins_with(line, "rlock: crash guard stopped: ");
    bool gone = begins_with(line, "rlock: crash guard stopped: cannot open ") &&
                strstr(line, ": No such file");

    (void)arg;
    if ((!later && !begins_with(line, "rlock: no crash guard: ")) || gone) {
        say_line(level, line);
        return;
    }
    say_line(SAY_ERROR, line);
    if (!atomic_exchange(&blind, true) && later)
        kill(getpid(), SIGTERM); /* main waits for a signal */
}

bool clients_are_blind(void)
{
    return blind;
}

/* Where it stood takes the place of the message's own prefix. */
__attribute__((noreturn)) static void cannot_open(const struct guard_url *url, int rc)
{
    static const char prefix[] = "URL: ";
    const char *detail = rlock_errmsg()[0] != '\0' ? rlock_errmsg() : rlock_strerror(rc);
    const char *from = url->from ? url->from : "no server to watch for";

    if (begins_with(detail, prefix))
        detail += strlen(prefix);
    say_and_exit(rc == EINVAL || rc == ENOTSUP ? GUARD_USAGE : GUARD_INTERNAL, "%s: %s",
                 from, detail);
}

static void open_one(const struct guard_url *url, const rlock_clientattr_t *attr)
{
    struct guarded *one = &guarded[guarded_count];
    char given[URL_SIZE], source[SOURCE_SIZE];

    int rc = rlock_client_open(&one->client, url->text, attr);
    if (rc == 0) /* reads the URL in use, and its source */
        rc = rlock_client_getserver(one->client, given, sizeof(given), source,
                                    sizeof(source));
    if (rc != 0)
        cannot_open(url, rc);
    one->label = printable(given);
    one->source = strcmp(source, "program") == 0 ? NULL : printable(source);
    guarded_count++;
    if (url_is_off(given))
        say_and_exit(GUARD_USAGE, "%s: guard=0 switches off what rlock-guard is for",
                     url->from ? url->from : source);
}

void clients_open(const struct guard_urls *urls)
{
    rlock_clientattr_t attr;

    /* rule: G16 */
    int rc = rlock_clientattr_init(&attr);
    if (rc == 0)
        rc = rlock_clientattr_setguard(&attr, RLOCK_GUARD_ALWAYS);
    if (rc != 0)
        say_and_exit(GUARD_INTERNAL, "cannot request the crash guard: %s",
                     rlock_strerror(rc));
    rlock_setlogger(hear, NULL, SAY_DEBUG);
    for (int i = 0; i < urls->count; i++)
        open_one(&urls->each[i], &attr);
    rlock_clientattr_destroy(&attr);
    if (blind)
        say_and_exit(GUARD_INTERNAL, "exits: no directory is left to watch");
}

int clients_count(void)
{
    return guarded_count;
}

/* ---- descriptions */

/* Appends to the text, as far as there is room. */
__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size,
                                                         const char *format, ...)
{
    size_t len = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + len, size - len, format, args);
    va_end(args);
}

void clients_describe(char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; i < guarded_count; i++)
        append(text, size, "%s%s%s%s%s", i > 0 ? ", " : "", guarded[i].label,
               guarded[i].source ? " (" : "", guarded[i].source ? guarded[i].source : "",
               guarded[i].source ? ")" : "");
}

void clients_count_recoveries(char *text, size_t size)
{
    uint64_t each[URLS_MAX] = { 0 }, sum = 0;
    rlock_stats_t stats;

    for (int i = 0; i < guarded_count; i++) {
        if (rlock_client_getstats(guarded[i].client, &stats) == 0)
            each[i] = stats.burials;
        sum += each[i];
    }
    snprintf(text, size, "%llu recovered process%s", (unsigned long long)sum,
             sum == 1 ? "" : "es");
    for (int i = 0; i < guarded_count; i++)
        append(text, size, "%s%llu at %s%s", i > 0 ? ", " : " (",
               (unsigned long long)each[i], guarded[i].label,
               i == guarded_count - 1 ? ")" : "");
}

/* ---- the end */

static void end_now(int number)
{
    (void)number;
    _exit(blind ? GUARD_INTERNAL : GUARD_OK);
}

void clients_bound_the_end(void)
{
    struct sigaction action = { .sa_handler = end_now };
    struct itimerval timer = { .it_value.tv_usec = STOP_US };
    sigset_t set;

    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

void clients_close(void)
{
    for (int i = 0; i < guarded_count; i++) {
        int rc = rlock_client_close(guarded[i].client);
        if (rc != 0)
            say(SAY_WARNING, "cannot close %s: %s", guarded[i].label, rlock_strerror(rc));
        free(guarded[i].label);
        free(guarded[i].source);
    }
    guarded_count = 0;
}
