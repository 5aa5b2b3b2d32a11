/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to the service manager by the protocol of sd_notify(3): one datagram to a Unix
 * socket. No state. Thread: main.
 */
#include "guardd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The longest wait for a manager that does not read. */
enum { SEND_US = 200000, TEXT_MAX = 4096 };

/* Returns 0, or why not. */
static int send_to(const char *name, const char *text)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct timeval bound = { .tv_usec = SEND_US };
    size_t len = strlen(name);

    if (name[0] != '/' && name[0] != '@')
        return EAFNOSUPPORT;
    if (len > sizeof(address.sun_path))
        return ENAMETOOLONG;
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') /* an abstract socket */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
    ssize_t n = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    int rc = n < 0 ? errno : 0;
    close(fd);
    return rc;
}

void notify(const char *format, ...)
{
    const char *name = getenv("NOTIFY_SOCKET");
    char text[TEXT_MAX];
    va_list args;

    if (!name || name[0] == '\0')
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    int rc = send_to(name, text);
    if (rc != 0)
        say(SAY_WARNING, "cannot notify the service manager (NOTIFY_SOCKET): %s",
            strerror(rc));
}
