/* SPDX-License-Identifier: Apache-2.0 */
/* See descriptor.h. */
#include "descriptor.h"

#include "sync.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    TABLE_FIRST = 64,
    NUMBER_MIN = 3 /* a program takes those below for itself, at any time, by dup2() */
};

/* What a table's place says beside a socket's inode number. */
enum { NOT_OURS = 0, NO_SOCKET = 1 };

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* protects all below; nests in nothing */
static uint64_t *table;                      /* by descriptor */
static size_t table_size;

/* Locks: holds mu. */
static bool make_room(size_t fd)
{
    size_t size = table_size ? table_size : TABLE_FIRST;

    while (size <= fd)
        size *= 2;
    if (size > table_size) {
        uint64_t *bigger = realloc(table, size * sizeof(*table));
        if (!bigger)
            return false;
        memset(bigger + table_size, 0, (size - table_size) * sizeof(*table));
        table = bigger;
        table_size = size;
    }
    return true;
}

static uint64_t inode_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? (uint64_t)st.st_ino : NO_SOCKET;
}

int rlk_fd_raise(int fd)
{
    if (fd < 0 || fd >= NUMBER_MIN)
        return fd;
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, NUMBER_MIN), code = errno;
    close(fd);
    errno = code;
    return higher;
}

/* Locks: holds mu. */
static int written_down(int fd)
{
    fd = rlk_fd_raise(fd);
    if (fd < 0)
        return fd;
    if (!make_room((size_t)fd)) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    table[fd] = inode_of(fd);
    return fd;
}

int rlk_fd_socket(int family)
{
    rlk_mutex_lock(&mu);
    int fd = written_down(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    rlk_mutex_unlock(&mu);
    return fd;
}

int rlk_fd_event(void)
{
    rlk_mutex_lock(&mu);
    int fd = written_down(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    rlk_mutex_unlock(&mu);
    return fd;
}

int rlk_fd_made_by(int (*make)(void))
{
    rlk_mutex_lock(&mu);
    int fd = written_down(make());
    rlk_mutex_unlock(&mu);
    return fd;
}

int rlk_fd_openat(int dir, const char *path, int flags, mode_t mode)
{
    rlk_mutex_lock(&mu);
    int fd = written_down(openat(dir, path, flags | O_CLOEXEC | O_NONBLOCK, mode));
    rlk_mutex_unlock(&mu);
    return fd;
}

void rlk_fd_close(int fd)
{
    rlk_mutex_lock(&mu);
    if ((size_t)fd < table_size)
        table[fd] = NOT_OURS;
    close(fd);
    rlk_mutex_unlock(&mu);
}

/* The place in the table first: as soon as the close begins the number may be another
 * one's. A child that is forked between the two has a copy of it, which ends with it, or
 * as it becomes another program. */
void rlk_fd_close_slow(int fd)
{
    rlk_mutex_lock(&mu);
    if ((size_t)fd < table_size)
        table[fd] = NOT_OURS;
    rlk_mutex_unlock(&mu);
    close(fd);
}

static void *run_close(void *arg)
{
    prctl(PR_SET_NAME, "rlock-close");
    rlk_fd_close_slow((int)(intptr_t)arg);
    return NULL;
}

void rlk_fd_close_aside(int fd)
{
    if (rlk_thread_start_detached("rlock-close", run_close, (void *)(intptr_t)fd) != 0)
        rlk_fd_close_slow(fd);
}

/* ---- around a fork */

void rlk_fd_hold(void)
{
    rlk_mutex_lock(&mu);
}

void rlk_fd_unhold(void)
{
    rlk_mutex_unlock(&mu);
}

void rlk_fd_forget(bool late)
{
    if (late) {
        /* held at the moment of the fork: then the table was being changed */
        bool whole = rlk_mutex_trylock(&mu);
        mu = (struct rlk_mutex)RLK_MUTEX_INIT;
        if (!whole)
            table_size = 0;
    }
    for (size_t i = 0; i < table_size; i++) {
        int fd = (int)i;
        if (table[i] != NOT_OURS &&
            (!late || (table[i] != NO_SOCKET && inode_of(fd) == table[i])))
            close(fd);
        table[i] = NOT_OURS;
    }
    if (late && table_size == 0)
        table = NULL;
}
