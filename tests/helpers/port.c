/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel never assigns a port that a socket is bound to when a program asks for any
 * free port. But a second socket can bind that port by its number when both have
 * SO_REUSEADDR and the first does not listen. So a bound socket that never listens is a
 * reservation. No state. Thread: any.
 */
#include "port.h"

#include "die.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

enum { BACKLOG = 128 };

static struct sockaddr_in at(const char *address, uint16_t port)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
    if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
        test_die("%s is no IPv4 address", address);
    return in;
}

static void allow_reuse(int fd)
{
    const int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
        test_die("SO_REUSEADDR: %s", strerror(errno));
}

int test_port_reserve(const char *address, uint16_t *ret_port)
{
    struct sockaddr_in in = at(address, 0);
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0 ||
        getsockname(fd, (struct sockaddr *)&in, &len) != 0)
        test_die("cannot reserve a port: %s", strerror(errno));
    allow_reuse(fd); /* only after bind(), which must fail if another socket has the
                        port */
    *ret_port = ntohs(in.sin_port);
    return fd;
}

int test_port_listen(const char *address, uint16_t port)
{
    struct sockaddr_in in = at(address, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        test_die("socket: %s", strerror(errno));
    allow_reuse(fd);
    if (bind(fd, (struct sockaddr *)&in, sizeof(in)) != 0 || listen(fd, BACKLOG) != 0)
        test_die("cannot listen on port %u: %s", (unsigned)port, strerror(errno));
    return fd;
}
