/* SPDX-License-Identifier: Apache-2.0 */
/* program: with=scenes/sharing.c */
/*
 * A program that uses a lock in a file or in a shared memory object, by the default
 * client:
 *
 *   sharer WHERE KIND COMMAND [ROUNDS]
 *
 * WHERE is "shm:/name" or a path, KIND a number of sharing.h. It maps the memory, prints
 * "ready", waits for a line, does the command, and prints its code. Commands:
 *   make    init, lock, unlock
 *   rounds  runs ROUNDS sections (sharing_rounds)
 *   try     trylock, and unlock if it was free
 *   hold    lock; prints "held" and waits for a line; unlock
 *   ask     calls all functions and prints their common code; -1: they differ
 */
#include "sharing.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ARG_WHERE = 1, ARG_KIND, ARG_COMMAND, ARG_ROUNDS };

static struct sharing *map(const char *where)
{
    int fd = strncmp(where, "shm:", 4) == 0 ? shm_open(where + 4, O_RDWR, 0)
                                            : open(where, O_RDWR);
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, sizeof(struct sharing), PROT_READ | PROT_WRITE,
                             MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        perror(where);
        exit(EXIT_FAILURE);
    }
    return at;
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

static void wait_for_line(void)
{
    char line[64];
    if (!fgets(line, sizeof(line), stdin))
        exit(EXIT_FAILURE);
}

static int ask(union sharing_lock *lock, int kind)
{
    int said = sharing_trylock(lock, kind);
    for (int which = 0, rc; (rc = sharing_ask(lock, kind, which)) >= 0; which++)
        if (rc != said)
            return -1;
    return sharing_lock(lock, kind) == said && sharing_destroy(lock, kind) == said ? said
                                                                                   : -1;
}

static int run(struct sharing *s, int kind, const char *command, long rounds)
{
    union sharing_lock *lock = &s->lock;
    int rc = 0;

    if (strcmp(command, "rounds") == 0)
        return sharing_rounds(s, kind, rounds);
    if (strcmp(command, "ask") == 0)
        return ask(lock, kind);
    if (strcmp(command, "make") == 0)
        rc = sharing_init(lock, kind, NULL, NULL);
    if (rc == 0)
        rc = strcmp(command, "try") == 0 ? sharing_trylock(lock, kind)
                                         : sharing_lock(lock, kind);
    if (rc != 0)
        return rc;
    if (strcmp(command, "hold") == 0) {
        say("held");
        wait_for_line();
    }
    return sharing_unlock(lock, kind);
}

int main(int argc, char **argv)
{
    if (argc <= ARG_COMMAND)
        return EXIT_FAILURE;
    struct sharing *s = map(argv[ARG_WHERE]);
    say("ready");
    wait_for_line();
    printf("%d\n", run(s, atoi(argv[ARG_KIND]), argv[ARG_COMMAND],
                       argc > ARG_ROUNDS ? atol(argv[ARG_ROUNDS]) : 0));
    return rlock_client_close(NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
