/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. State: none. */
#include "link.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static struct sockaddr_in the_link;

void nem_link_open(void)
{
    char host[64];
    unsigned port;
    const char *address = getenv("NEMESIS_LINK");

    if (address && *address == '\0')
        return;
    if (!address || sscanf(address, "%63[^:]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &the_link.sin_addr) != 1) {
        fprintf(stderr, "nemesis: NEMESIS_LINK is no address\n");
        exit(EXIT_FAILURE);
    }
    the_link.sin_port = htons((uint16_t)port);
    the_link.sin_family = AF_INET;
}

/* replaces the C library's function in all of this program */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    if (address->sa_family != AF_INET || the_link.sin_family != AF_INET)
        return real(fd, address, len);
    return real(fd, (const struct sockaddr *)&the_link, sizeof(the_link));
}
