/* SPDX-License-Identifier: Apache-2.0 */
/* See fd.h. */
#include "base/fd.h"

#include "base/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
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
    TRIES_MAX = 4, /* tries to open a descriptor that other threads close, and to see a
                      mark retained by the kernel */
    NUMBER_MIN = 3 /* programs redirect lower numbers at any time, by dup2() */
};

/* The values of F_SETSIG that mark the library's descriptors. No such signal is ever
 * sent, because O_ASYNC is not set. The kernel stores the value with the open file. So
 * it distinguishes the library's file from another file that has its number now, also
 * where both have one inode, as all files of eventfd, timerfd, epoll and inotify have. */
enum {
    MARK = SIGCONT,
    MARK_OF_EVENT = SIGCHLD /* what is written to a number that was an event's reaches no
                               other kind of library descriptor */
};
static atomic_bool unmarked; /* the kernel has no such marks, or a sandbox refuses them:
                                numbers are trusted */

/* Entries of the table that are not a socket's inode number. */
enum { NOT_OURS = 0, NO_SOCKET = 1 };

static struct rlk_mutex mu = RLK_MUTEX_INIT; /* of all data below; nests in nothing */
static uint64_t *table;                      /* indexed by descriptor */
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

/* Locks: holds mu. */
static bool is_free_number(int fd)
{
    return fd >= NUMBER_MIN && ((size_t)fd >= table_size || table[fd] == NOT_OURS);
}

/* Moves the descriptor to a number that is no library descriptor's, not even one's
 * that the program closed: such a number belongs to its module until that module
 * notices. Returns -1 with errno, and then closes fd. Locks: holds mu. */
static int move(int fd)
{
    while (fd >= 0 && !is_free_number(fd)) {
        int next = fcntl(fd, F_DUPFD_CLOEXEC, fd < NUMBER_MIN ? NUMBER_MIN : fd + 1);
        int code = errno;
        close(fd);
        errno = code;
        fd = next;
    }
    return fd;
}

/* Whether to believe the kernel when a mark that it accepted is not there: a kernel
 * that has stored one mark stores all. Locks: holds mu. */
static bool keeps_marks(bool kept)
{
    static bool has_kept;
    static int forgotten;

    has_kept |= kept;
    forgotten += !kept;
    return has_kept || forgotten < TRIES_MAX;
}

/* Returns 0; ENOMEM; or EBADF: another thread of the program has closed it meanwhile.
 * Locks: holds mu. */
static int put_mark(int fd, int mark)
{
    if (atomic_load(&unmarked))
        return 0;
    bool refused = fcntl(fd, F_SETSIG, mark) != 0;
    if (refused && (errno == ENOMEM || errno == EBADF))
        return errno;
    bool kept = !refused && fcntl(fd, F_GETSIG) == mark;
    if (kept && keeps_marks(true))
        return 0;
    if (!refused && keeps_marks(false))
        return EBADF; /* the number belongs to another file by now */
    atomic_store(&unmarked, true);
    return 0;
}

/* Locks: holds mu. */
static int written_down(int fd, int mark)
{
    fd = move(fd);
    if (fd < 0)
        return fd;
    int code = make_room((size_t)fd) ? put_mark(fd, mark) : ENOMEM;
    if (code == 0) {
        table[fd] = inode_of(fd);
        return fd;
    }
    if (code != EBADF)
        close(fd);
    errno = code;
    return -1;
}

/* Opens a descriptor and lists it; if another thread closes it in between, opens
 * another one. */
static int made(int (*make)(const void *arg), const void *arg, int mark)
{
    int fd = -1;

    errno = EBADF;
    rlk_sync_mutex_lock(&mu);
    for (int i = 0; i < TRIES_MAX && fd < 0 && errno == EBADF; i++)
        fd = written_down(make(arg), mark);
    rlk_sync_mutex_unlock(&mu);
    return fd;
}

static int make_socket(const void *family)
{
    return socket(*(const int *)family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int rlk_fd_socket(int family)
{
    return made(make_socket, &family, MARK);
}

static int make_event(const void *arg)
{
    (void)arg;
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int rlk_fd_event(void)
{
    return made(make_event, NULL, MARK_OF_EVENT);
}

struct maker {
    int (*make)(void);
};

static int make_other(const void *maker)
{
    return ((const struct maker *)maker)->make();
}

int rlk_fd_made_by(int (*make)(void))
{
    return made(make_other, &(struct maker){ make }, MARK);
}

struct file {
    int dir, flags;
    const char *path;
    mode_t mode;
};

static int make_file(const void *arg)
{
    const struct file *file = arg;
    return openat(file->dir, file->path, file->flags | O_CLOEXEC | O_NONBLOCK,
                  file->mode);
}

int rlk_fd_openat(int dir, const char *path, int flags, mode_t mode)
{
    return made(make_file, &(struct file){ dir, flags, path, mode }, MARK);
}

int rlk_fd_raise(int fd)
{
    return fd >= NUMBER_MIN ? fd : move(fd);
}

/* Removes a descriptor from the table. Returns whether to close it. Locks: holds mu. */
static bool strike_out(int fd)
{
    bool ours = rlk_fd_is_ours(fd);
    if ((size_t)fd < table_size)
        table[fd] = NOT_OURS;
    return ours;
}

void rlk_fd_close(int fd)
{
    rlk_sync_mutex_lock(&mu);
    if (strike_out(fd))
        close(fd);
    rlk_sync_mutex_unlock(&mu);
}

/* The table entry goes first: as soon as the close begins, the number may belong to
 * another file. A child that is forked between the two keeps a copy of the descriptor
 * until it ends or calls exec. */
void rlk_fd_close_slow(int fd)
{
    rlk_sync_mutex_lock(&mu);
    bool ours = strike_out(fd);
    rlk_sync_mutex_unlock(&mu);
    if (ours)
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
    if (rlk_sync_thread_start_detached("rlock-close", run_close, (void *)(intptr_t)fd) !=
        0)
        rlk_fd_close_slow(fd);
}

/* ---- what the program may have closed */

bool rlk_fd_is_ours(int fd)
{
    int mark = fcntl(fd, F_GETSIG);
    return mark == MARK || mark == MARK_OF_EVENT || (mark >= 0 && atomic_load(&unmarked));
}

bool rlk_fd_ring(int fd)
{
    static const uint64_t one = 1;
    int mark = fcntl(fd, F_GETSIG);

    if (mark != MARK_OF_EVENT && !(mark >= 0 && atomic_load(&unmarked)))
        return false;
    /* A full counter wakes the poll as well. */
    return write(fd, &one, sizeof(one)) == sizeof(one) || errno == EAGAIN;
}

bool rlk_fd_hush(int fd)
{
    uint64_t count;

    if (!rlk_fd_is_ours(fd))
        return false;
    ssize_t n = read(fd, &count, sizeof(count));
    return n == sizeof(count) || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* ---- around a fork */

void rlk_fd_hold(void)
{
    rlk_sync_mutex_lock(&mu);
}

void rlk_fd_unhold(void)
{
    rlk_sync_mutex_unlock(&mu);
}

/* Whether the number still is the parent's descriptor. Locks: holds mu, or no other
 * thread runs. */
static bool is_inherited(int fd, bool late)
{
    if (!rlk_fd_is_ours(fd))
        return false;
    return table[fd] == NO_SOCKET ? !late || !atomic_load(&unmarked)
                                  : inode_of(fd) == table[fd];
}

void rlk_fd_forget(bool late)
{
    /* rule: T13 */
    if (late) {
        /* If the mutex was held at the moment of the fork, the table was being
         * changed. */
        bool whole = rlk_sync_mutex_trylock(&mu);
        mu = (struct rlk_mutex)RLK_MUTEX_INIT;
        if (!whole)
            table_size = 0;
    }
    for (size_t i = 0; i < table_size; i++) {
        int fd = (int)i;
        if (table[i] != NOT_OURS && is_inherited(fd, late))
            close(fd);
        table[i] = NOT_OURS;
    }
    if (late && table_size == 0)
        table = NULL;
}
