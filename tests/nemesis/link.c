/* SPDX-License-Identifier: Apache-2.0 */
/* See link.h. State: none. */
#include "link.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LINKS_MAX = 16 };

/* From a port of 127.0.0.1, in its order of bytes; 0: from any address. */
static struct {
    uint16_t from;
    struct sockaddr_in to;
} links[LINKS_MAX];
static unsigned count;

static bool add_link(const char *text)
{
    char host[64];
    unsigned from = 0, port;
    const char *arrow = strchr(text, '>');

    if (count == LINKS_MAX || (arrow && sscanf(text, "%u>", &from) != 1) ||
        sscanf(arrow ? arrow + 1 : text, "%63[^:]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &links[count].to.sin_addr) != 1)
        return false;
    links[count].from = htons((uint16_t)from);
    links[count].to.sin_family = AF_INET;
    links[count++].to.sin_port = htons((uint16_t)port);
    return true;
}

void nem_link_open(void)
{
    char text[1024] = "";
    char *rest = NULL;
    const char *addresses = getenv("NEMESIS_LINK");
    bool good = addresses && strlen(addresses) < sizeof(text);

    if (good)
        strcpy(text, addresses);
    for (char *one = strtok_r(text, ",", &rest); good && one;
         one = strtok_r(NULL, ",", &rest))
        good = add_link(one);
    if (good)
        return;
    fprintf(stderr, "nemesis: NEMESIS_LINK is no address\n");
    exit(EXIT_FAILURE);
}

static const struct sockaddr *way_of(const struct sockaddr *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
    bool here = in->sin_addr.s_addr == htonl(INADDR_LOOPBACK);

    for (unsigned i = 0; i < count; i++)
        if (links[i].from == 0 || (here && links[i].from == in->sin_port))
            return (const struct sockaddr *)&links[i].to;
    return address;
}

/* replaces the C library's function in all of this program */
int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    *(void **)&real = dlsym(RTLD_NEXT, "connect");
    if (address->sa_family != AF_INET)
        return real(fd, address, len);
    return real(fd, way_of(address), sizeof(struct sockaddr_in));
}
