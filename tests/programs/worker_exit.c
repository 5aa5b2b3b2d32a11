/* SPDX-License-Identifier: Apache-2.0 */
/* How the worker's process ends, and what it does and prints while it ends. */
#include "worker_exit.h"

#include "worker_commands.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rlock.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HANDLERS_MAX = 4, NUMBER_BASE = 10, NS_PER_MS = 1000000, MS_PER_S = 1000 };

static char handlers[HANDLERS_MAX][LINE_MAX_LEN]; /* run in reverse order, as atexit
                                                     does */
static int handler_count;
static char leave_at[TAG_MAX];
static long linger_ms;

/* The rest of a line after its first `n` words. */
static const char *rest_of(const char *line, int n)
{
    for (; n > 0; n--) {
        line += strspn(line, " \t");
        line += strcspn(line, " \t");
    }
    return line + strspn(line, " \t");
}

static void at_exit(void)
{
    char answer[LINE_MAX_LEN] = "? unknown command";
    run_command(handlers[--handler_count], answer);
    say("done atexit %s", answer);
}

static void add_handler(const char *command, char *answer)
{
    if (handler_count == HANDLERS_MAX || atexit(at_exit) != 0) {
        put(answer, "? no room");
        return;
    }
    snprintf(handlers[handler_count++], LINE_MAX_LEN, "%s", command);
    put(answer, "ok");
}

/* With the lowest priority: it runs after all other destructors of the process. */
__attribute__((destructor(101))) static void linger(void)
{
    struct timespec pause = { linger_ms / MS_PER_S, linger_ms % MS_PER_S * NS_PER_MS };
    if (linger_ms == 0)
        return;
    say("done linger");
    nanosleep(&pause, NULL);
    say("end linger");
}

static void on_signal(int number)
{
    (void)number;
    exit(EXIT_SUCCESS);
}

static void leave(const char *how, char *answer)
{
    if (strcmp(how, "cancelled") == 0) /* exit() with a cancellation pending */
        pthread_cancel(pthread_self());
    if (strcmp(how, "exit") == 0 || strcmp(how, "cancelled") == 0)
        exit(EXIT_SUCCESS);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(EXIT_SUCCESS);
    if (strcmp(how, "_exit") == 0)
        _exit(EXIT_SUCCESS);
    if (strcmp(how, "pthread_exit") == 0)
        pthread_exit(NULL);
    put(answer, "? no such way");
}

void exit_at_event(const char *kind)
{
    if (strcmp(kind, leave_at) == 0)
        exit(EXIT_SUCCESS);
}

static void log_line(int level, const char *line, void *arg)
{
    (void)arg;
    say("log %d %s", level, line);
}

/* Acts as a program that loads OpenSSL and uses it itself. */
static void use_openssl(char *answer)
{
    void *library = dlopen("libssl.so.3", RTLD_NOW);
    void *symbol = library ? dlsym(library, "OPENSSL_init_ssl") : NULL;
    int (*begin)(uint64_t options, const void *settings);

    memcpy(&begin, &symbol, sizeof(begin));
    if (!symbol || begin(0, NULL) != 1)
        put(answer, "? no OpenSSL");
}

bool run_exit_command(const char *line, char *answer)
{
    struct words w;
    split(&w, line);
    const char *verb = word(&w, 0);

    put(answer, "ok");
    if (strcmp(verb, "leave") == 0)
        leave(word(&w, 1), answer);
    else if (strcmp(verb, "leave-at") == 0)
        snprintf(leave_at, sizeof(leave_at), "%s", word(&w, 1));
    else if (strcmp(verb, "leave-on-term") == 0)
        signal(SIGTERM, on_signal);
    else if (strcmp(verb, "atexit") == 0)
        add_handler(rest_of(line, 1), answer);
    else if (strcmp(verb, "linger") == 0)
        linger_ms = strtol(word(&w, 1), NULL, NUMBER_BASE);
    else if (strcmp(verb, "openssl") == 0)
        use_openssl(answer);
    else if (strcmp(verb, "logger") == 0)
        rlock_setlogger(log_line, NULL, 7);
    else
        return false;
    return true;
}
