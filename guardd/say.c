/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines to stderr. In a systemd service each begins with its priority, as in
 * sd-daemon(3). The kernel gets a line in one piece and the program never waits: a reader
 * that does not read its log would otherwise block the library's threads and the end of
 * the program. State: set once, before other threads exist. Thread: any.
 */
#include "guardd.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int max_said = SAY_INFO;
static bool with_priority;

/* The variable names the journal's socket. The journal reads only if stderr still is
 * that socket, and not a file or pipe. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char here[64];

    if (!stream || fstat(STDERR_FILENO, &st) != 0)
        return false;
    snprintf(here, sizeof(here), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return strcmp(here, stream) == 0;
}

void say_open(int max_level)
{
    max_said = max_level;
    with_priority = is_journal();
}

/* A pipe or a terminal that is ready takes a line. */
static void write_if_ready(const char *line, size_t len)
{
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) &&
        write(STDERR_FILENO, line, len) < 0)
        return; /* no place to report it */
}

static void put(const char *line, size_t len)
{
    if (send(STDERR_FILENO, line, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 &&
        errno == ENOTSOCK)
        write_if_ready(line, len);
}

/* Cuts what is too long for a line. */
static void put_line(int level, const char *prefix, const char *text)
{
    char line[SAY_LINE_MAX];
    int n = with_priority ? snprintf(line, sizeof(line), "<%d>%s%s", level, prefix, text)
                          : snprintf(line, sizeof(line), "%s%s", prefix, text);
    size_t len = n > 0 ? (size_t)n : 0;

    if (len > sizeof(line) - 1)
        len = sizeof(line) - 1;
    line[len++] = '\n'; /* over the NUL */
    put(line, len);
}

__attribute__((format(printf, 2, 0))) static void say_args(int level, const char *format,
                                                           va_list args)
{
    char text[SAY_LINE_MAX];

    vsnprintf(text, sizeof(text), format, args);
    put_line(level, "rlock-guard: ", text);
}

void say(int level, const char *format, ...)
{
    va_list args;

    if (level > max_said)
        return;
    va_start(args, format);
    say_args(level, format, args);
    va_end(args);
}

void say_line(int level, const char *line)
{
    if (level <= max_said)
        put_line(level, "", line);
}

void say_and_exit(int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say_args(SAY_ERROR, format, args);
    va_end(args);
    exit(code);
}
