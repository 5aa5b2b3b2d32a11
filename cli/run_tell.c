/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages while the lock is held. stderr may be blocked: a full pipe, or a terminal that
 * Ctrl-S has stopped. rlock must not wait there, because it has a command to end or
 * signals to forward. Only a separate thread guarantees that: O_NONBLOCK would affect all
 * processes that share stderr, and poll reports room, but not how much. The thread gets
 * its lines as packets; when the socket takes no more they are dropped, and rlock never
 * waits. The thread can also hold one line back for as long as the main thread may still
 * finish in time. Threads: main, and the writing thread.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LINGER_MS = 2000, /* at the end, after the lock is released */
    LATE_MS = 1000,   /* for a line that is held back */
    NS_PER_MS = 1000000,
    KEPT_BACK = '\0', /* the first byte of the packet of such a line */
    PACKET_MAX = CLI_LINE_MAX + 1
};

static struct {
    int lines; /* -1: closed */
    pthread_t writer;
} teller = { .lines = -1 };

static void write_line(const char *line, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, line, len);
        if (n < 0 && errno != EINTR)
            return;
        line += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
}

/* False: the time is over, and neither a packet nor the end came. */
static bool comes_in_time(int lines, int64_t late_ns)
{
    struct pollfd packet = { .fd = lines, .events = POLLIN };
    int64_t left_ms = (late_ns - run_now_ns()) / NS_PER_MS + 1;

    return poll(&packet, 1, left_ms > 0 ? (int)left_ms : 0) != 0;
}

static void *write_lines(void *arg)
{
    int lines = (int)(intptr_t)arg;
    char line[PACKET_MAX], kept[PACKET_MAX];
    size_t kept_len = 0;
    int64_t late_ns = 0;

    for (;;) {
        if (kept_len > 0 && !comes_in_time(lines, late_ns)) {
            write_line(kept, kept_len);
            kept_len = 0;
        }
        ssize_t n = recv(lines, line, sizeof(line), 0);
        if (n > 0 && line[0] == KEPT_BACK) { /* alone: the line is withdrawn */
            kept_len = (size_t)n - 1;
            memcpy(kept, line + 1, kept_len);
            late_ns = run_now_ns() + (int64_t)LATE_MS * NS_PER_MS;
        } else if (n > 0) {
            write_line(line, (size_t)n);
        } else if (n == 0 || errno != EINTR) {
            break;
        }
    }
    shutdown(lines, SHUT_RDWR); /* shows the other end that all is written */
    close(lines);
    return NULL;
}

static void tell(const char *line, size_t len)
{
    ssize_t n = send(teller.lines, line, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)n;
}

static void keep_back(const char *line, size_t len)
{
    char packet[PACKET_MAX] = { KEPT_BACK };

    memcpy(packet + 1, line, len);
    tell(packet, len + 1);
}

void run_tell_if_late(const char *text)
{
    if (teller.lines < 0)
        return;
    cli_tell_by(keep_back);
    cli_complain("%s", text);
    cli_tell_by(tell);
}

void run_tell_in_time(void)
{
    if (teller.lines >= 0)
        keep_back("", 0);
}

int run_tell_open(void)
{
    sigset_t all, old;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&teller.writer, NULL, write_lines, (void *)(intptr_t)ends[1]);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    teller.lines = ends[0];
    cli_tell_by(tell);
    return 0;
}

void run_tell_close(void)
{
    struct pollfd end = { .fd = teller.lines }; /* POLLHUP is always reported */

    if (teller.lines < 0)
        return;
    cli_tell_by(NULL);
    shutdown(teller.lines, SHUT_WR);
    if (poll(&end, 1, LINGER_MS) == 1)
        pthread_join(teller.writer, NULL);
    else
        pthread_detach(teller.writer);
    close(teller.lines);
    teller.lines = -1;
}
