/* SPDX-License-Identifier: Apache-2.0 */
/* See rundir.h. */
#include "crash/rundir.h"

#include "base/error.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define OF_ADMINISTRATOR "/run/rlock"

enum {
    TMPFS = 0x01021994 /* statfs(2); only a Linux header defines it, not the C library */
};

/* ---- trust */

static bool read_line(const char *path, char *buf, size_t size)
{
    int fd = rlk_fd_openat(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, size - 1);
    rlk_fd_close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* In a user namespace all unmapped users have one uid: a file of that uid may belong
 * to any user, also where the caller has that uid. */
static bool is_nobody(uid_t uid)
{
    char line[64];
    unsigned long inside, outside, count, unmapped = 65534;

    if (read_line("/proc/sys/kernel/overflowuid", line, sizeof(line)))
        unmapped = strtoul(line, NULL, 10);
    if (uid != unmapped)
        return false;
    return !(read_line("/proc/self/uid_map", line, sizeof(line)) &&
             sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 &&
             outside == 0 && count >= UINT32_MAX);
}

/* rule: G4, G5 */
/* Why the directory is not to be used; NULL: it may be used. */
static const char *refuse(int fd, const struct stat *st)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) != 0)
        return strerror(errno);
    if (fs.f_type != TMPFS)
        return "it is not on a tmpfs";
    if ((st->st_uid != 0 && st->st_uid != geteuid()) || is_nobody(st->st_uid))
        return "it belongs to another user";
    if (st->st_mode & S_IWOTH)
        return "it is world-writable";
    if (faccessat(fd, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0)
        return strerror(errno);
    return NULL;
}

int rlk_rundir_open(struct rlk_rundir *ret_dir, const char *path)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    struct stat st;
    int fd = rlk_fd_openat(AT_FDCWD, path, flags, 0);

    if (fd < 0) {
        int code = errno;
        if (code == ENOTDIR && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
            return rlk_error_set(EPERM, "cannot use %s: it is a symbolic link", path);
        return rlk_error_set(code, "cannot open %s: %s", path, strerror(code));
    }
    errno = 0;
    const char *why = fstat(fd, &st) == 0 ? refuse(fd, &st) : strerror(errno);
    if (why) {
        int code = errno == EACCES ? EACCES : EPERM;
        rlk_fd_close(fd);
        return rlk_error_set(code, "cannot use %s: %s", path, why);
    }
    *ret_dir = (struct rlk_rundir){ fd, (st.st_mode & S_IWGRP) != 0, st.st_gid };
    return 0;
}

/* ---- the choice */

static int try_dir(const char *path)
{
    struct rlk_rundir dir;
    int rc = rlk_rundir_open(&dir, path);
    if (rc == 0)
        rlk_fd_close(dir.fd);
    return rc;
}

/* Tries a directory of the user's own, and creates it if needed. */
static int try_own(const char *path)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return rlk_error_set(errno, "cannot create %s: %s", path, strerror(errno));
    return try_dir(path);
}

/* $XDG_RUNTIME_DIR may be left from another user, who then controls everything in it. */
static const char *of_session(void)
{
    const char *dir = secure_getenv("XDG_RUNTIME_DIR");
    struct stat st;
    bool own = dir && dir[0] == '/' && stat(dir, &st) == 0 && st.st_uid == geteuid();
    return own ? dir : NULL;
}

static int find(char path[RLK_RUNDIR_SIZE], bool *ret_off)
{
    /* rule: G5 */
    const char *given = secure_getenv("RLOCK_RUNDIR"), *session;
    int len, rc;

    if (ret_off)
        *ret_off = given && !given[0];
    if (given && !given[0])
        return rlk_error_set(ENOENT, "$RLOCK_RUNDIR is empty");
    if (given) {
        len = snprintf(path, RLK_RUNDIR_SIZE, "%s", given);
        if (len >= RLK_RUNDIR_SIZE || given[0] != '/')
            return rlk_error_set(ENOENT, "$RLOCK_RUNDIR is %s",
                                 given[0] == '/' ? "too long" : "not an absolute path");
        return try_dir(path) == 0 ? 0 : ENOENT;
    }
    snprintf(path, RLK_RUNDIR_SIZE, OF_ADMINISTRATOR);
    rc = try_dir(path);
    if (rc == 0)
        return 0;
    if (rc != ENOENT &&
        rc != EACCES) /* a user without access has a directory of the user's own */
        return ENOENT;
    session = of_session();
    if (session) {
        len = snprintf(path, RLK_RUNDIR_SIZE, "%s/rlock", session);
        if (len < RLK_RUNDIR_SIZE && try_own(path) == 0)
            return 0;
    }
    snprintf(path, RLK_RUNDIR_SIZE, "/dev/shm/rlock-%lu", (unsigned long)geteuid());
    return try_own(path) == 0 ? 0 : ENOENT;
}

int rlk_rundir_find(char path[RLK_RUNDIR_SIZE], bool *ret_off)
{
    int rc = find(path, ret_off);
    if (rc == 0)
        rlk_error_clear(); /* of the directories that were passed over */
    return rc;
}
