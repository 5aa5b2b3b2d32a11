/* SPDX-License-Identifier: Apache-2.0 */
/* See namespaces.h. */
#include "namespaces.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return done;
}

static bool write_map(const char *path, unsigned long id)
{
    char line[64];
    snprintf(line, sizeof(line), "%lu %lu 1\n", id, id);
    return write_file(path, line);
}

static bool enter(int kinds)
{
    unsigned long user = geteuid(), group = getegid();

    if (unshare(kinds) == 0)
        return true;
    return unshare(kinds | CLONE_NEWUSER) == 0 && write_map("/proc/self/uid_map", user) &&
           write_file("/proc/self/setgroups", "deny") &&
           write_map("/proc/self/gid_map", group);
}

bool namespaces_enter(const char *test, int kinds)
{
    if (!enter(kinds) || ((kinds & CLONE_NEWNS) &&
                          mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)) {
        printf("skipped: %s: no namespaces are to be had: %s\n", test, strerror(errno));
        fflush(stdout);
        return false;
    }
    return true;
}

static void mount_tmpfs(const char *path, unsigned long flags, size_t bytes)
{
    char options[64] = "mode=700";
    if (bytes > 0)
        snprintf(options, sizeof(options), "mode=700,size=%zu", bytes);
    ck_assert_msg(mount("none", path, "tmpfs", flags, options) == 0, "%s: %s", path,
                  strerror(errno));
}

void namespaces_mount(const char *path, size_t bytes)
{
    mount_tmpfs(path, 0, bytes);
}

void namespaces_resize(const char *path, size_t bytes)
{
    mount_tmpfs(path, MS_REMOUNT, bytes);
}
