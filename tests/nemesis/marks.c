/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread, which owns all except `stop`. It sends inline commands and waits for the
 * answer to each, as long as that takes: a late answer is good as well. A refused command
 * (memory full, busy, loading) was not executed and leaves no mark.
 */
#include "marks.h"

#include "die.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, RETRY_MS = 5, LINE_MAX_LEN = 256, LOG_MODE = 0644 };

struct nem_marks {
    pthread_t thread;
    struct sockaddr_un address;
    long every_ms;
    int log;
    int stop; /* an eventfd, readable when the thread must end */
    int fd;   /* -1: not connected */
    uint64_t n;
};

static int64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 * NS_PER_MS + ts.tv_nsec;
}

/* Waits for bytes on `fd` (-1: only waits), for `ms` at most (-1: for ever). False: the
 * thread must end. */
static bool wait_for(const struct nem_marks *m, int fd, int ms)
{
    struct pollfd fds[] = { { .fd = m->stop, .events = POLLIN },
                            { .fd = fd, .events = POLLIN } };
    while (poll(fds, 2, ms) < 0 && errno == EINTR)
        continue;
    return !(fds[0].revents & POLLIN);
}

static void hang_up(struct nem_marks *m)
{
    if (m->fd >= 0)
        close(m->fd);
    m->fd = -1;
}

static bool dial(struct nem_marks *m)
{
    if (m->fd >= 0)
        return true;
    m->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (m->fd >= 0 &&
        connect(m->fd, (struct sockaddr *)&m->address, sizeof(m->address)) == 0)
        return true;
    hang_up(m);
    return false;
}

/* The answer's first byte; 0: none came. */
static char answer(struct nem_marks *m)
{
    char line[LINE_MAX_LEN];
    size_t len = 0;
    while (len < sizeof(line) && (len == 0 || line[len - 1] != '\n')) {
        if (!wait_for(m, m->fd, -1))
            return 0;
        ssize_t got = recv(m->fd, line + len, sizeof(line) - len, 0);
        if (got <= 0)
            return 0;
        len += (size_t)got;
    }
    return line[0];
}

static void mark(struct nem_marks *m)
{
    char text[64];
    struct nem_mark record = { .n = ++m->n, .answered = INT64_MAX };
    int len = snprintf(text, sizeof(text), "SET " NEM_MARK_KEY " %llu\r\n",
                       (unsigned long long)record.n);
    record.sent = now();
    char first = 0;
    if (send(m->fd, text, (size_t)len, MSG_NOSIGNAL) == len)
        first = answer(m);
    if (first == '+')
        record.answered = now();
    else
        hang_up(m);
    if (first == '-') /* refused */
        return;
    if (write(m->log, &record, sizeof(record)) != (ssize_t)sizeof(record))
        test_die("cannot write the marks: %s", strerror(errno));
}

static void *run(void *arg)
{
    struct nem_marks *m = arg;
    bool connected;
    do {
        connected = dial(m);
        if (connected)
            mark(m);
    } while (wait_for(m, -1, connected ? (int)m->every_ms : RETRY_MS));
    return NULL;
}

struct nem_marks *nem_marks_start(const struct test_server *server, const char *dir,
                                  long every_ms)
{
    char path[PATH_MAX];
    struct nem_marks *m = calloc(1, sizeof(*m));
    if (!m)
        test_die("out of memory");
    snprintf(path, sizeof(path), "%s/marks", dir);
    m->address.sun_family = AF_UNIX;
    snprintf(m->address.sun_path, sizeof(m->address.sun_path), "%s", server->path);
    m->every_ms = every_ms;
    m->fd = -1;
    m->stop = eventfd(0, EFD_CLOEXEC);
    m->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE);
    if (m->log < 0 || m->stop < 0)
        test_die("cannot write %s: %s", path, strerror(errno));
    int rc = pthread_create(&m->thread, NULL, run, m);
    if (rc != 0)
        test_die("cannot start a thread: %s", strerror(rc));
    return m;
}

void nem_marks_stop(struct nem_marks *m)
{
    const uint64_t one = 1;
    if (write(m->stop, &one, sizeof(one)) != (ssize_t)sizeof(one))
        test_die("cannot end the marks: %s", strerror(errno));
    pthread_join(m->thread, NULL);
    hang_up(m);
    close(m->stop);
    close(m->log);
    free(m);
}
