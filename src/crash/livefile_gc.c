/* SPDX-License-Identifier: Apache-2.0 */
/* See livefile_gc.h. */
#include "crash/livefile_gc.h"

#include "base/clock.h"
#include "base/fd.h"
#include "crash/livefile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BEGUN_S = 60,         /* a file without a final name for longer was abandoned */
    MARKED_S = 2 * 86400, /* from the mark on: twice the longest lease */
    MARK_SIZE = 64,
    MARK_AT = RLK_LIVEFILE_HEADER - MARK_SIZE
};

int rlk_livefile_gc_take(const struct rlk_rundir *dir, const char *name,
                         const struct stat *seen)
{
    /* rule: G3 */
    struct stat st;
    int fd = rlk_fd_openat(dir->fd, name, O_RDWR | O_NOFOLLOW, 0);

    if (fd < 0)
        return -1;
    /* Locked before the check: the last owner of the lock may have removed the file
     * just now. */
    if (!rlk_livefile_take(fd) || fstat(fd, &st) != 0 || st.st_ino != seen->st_ino ||
        st.st_nlink == 0) {
        rlk_fd_close(fd);
        errno = EAGAIN;
        return -1;
    }
    return fd;
}

/* ---- the mark */

enum age { UNMARKED, MARKED, OLD };

static enum age age_of(int fd)
{
    int64_t now = rlk_clock_real() / RLK_NS_PER_S, since = 0;
    char mark[MARK_SIZE];

    if (pread(fd, mark, sizeof(mark), MARK_AT) != sizeof(mark))
        return MARKED; /* unknown: treated as marked */
    mark[sizeof(mark) - 1] = '\0';
    if (strncmp(mark, "dead ", 5) == 0)
        since = strtoll(mark + 5, NULL, 10);
    if (since <= 0 || since > now)
        return UNMARKED;
    return now - since < MARKED_S ? MARKED : OLD;
}

void rlk_livefile_gc_mark(int fd)
{
    char mark[MARK_SIZE] = "";

    if (!rlk_fd_is_ours(fd) || age_of(fd) != UNMARKED)
        return;
    snprintf(mark, sizeof(mark), "dead %lld\n",
             (long long)(rlk_clock_real() / RLK_NS_PER_S));
    if (pwrite(fd, mark, sizeof(mark), MARK_AT) != sizeof(mark))
        (void)0; /* another process marks it later */
}

bool rlk_livefile_gc_is_old(int fd)
{
    return age_of(fd) == OLD;
}

/* ---- removal */

bool rlk_livefile_gc_remove(const struct rlk_rundir *dir, const char *name, int fd)
{
    return unlinkat(dir->fd, name, 0) == 0 || errno == ENOENT ||
           (rlk_fd_is_ours(fd) && ftruncate(fd, 0) == 0);
}

bool rlk_livefile_gc_mark_or_remove(const struct rlk_rundir *dir, const char *name,
                                    int fd, const struct stat *seen)
{
    /* rule: G10 */
    enum age age = age_of(fd);
    bool done = true;

    if (age == MARKED)
        return true;
    int own = rlk_livefile_gc_take(dir, name, seen);
    if (own < 0)
        return true;
    if (age == OLD)
        done = rlk_livefile_gc_remove(dir, name, own);
    else
        rlk_livefile_gc_mark(own);
    rlk_fd_close(own);
    return done;
}

void rlk_livefile_gc_of_making(const struct rlk_rundir *dir, const char *name)
{
    struct stat st;

    if (fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
        st.st_mtime > rlk_clock_real() / RLK_NS_PER_S - BEGUN_S)
        return;
    int fd = rlk_livefile_gc_take(dir, name, &st);
    if (fd < 0)
        return;
    rlk_livefile_gc_remove(dir, name, fd);
    rlk_fd_close(fd);
}
