/* SPDX-License-Identifier: Apache-2.0 */
/* See conffile.h. */
#include "conffile.h"

#include "die.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATHS = 4, TEXT_MAX = 16384 };

static char dir[32];

static void unset(void)
{
    unsetenv("RLOCK_URL");
    unsetenv("RLOCK_CONF");
}

void conffile_begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/rlkconfXXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0755) != 0)
        test_die("%s: %s", dir, strerror(errno));
    unset();
}

void conffile_end(void)
{
    DIR *entries = opendir(dir);
    struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (unlinkat(dirfd(entries), entry->d_name, 0) != 0)
            unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
    if (entries)
        closedir(entries);
    rmdir(dir);
    unset();
}

const char *conffile_path(const char *name)
{
    static char paths[PATHS][PATH_MAX];
    static int next;
    char *path = paths[next++ % PATHS];

    snprintf(path, PATH_MAX, "%s/%s", dir, name);
    return path;
}

const char *conffile_write_bytes(const char *name, const char *bytes, size_t len,
                                 mode_t mode)
{
    const char *path = conffile_path(name);

    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || fchmod(fd, mode) != 0)
        test_die("%s: %s", path, strerror(errno));
    close(fd);
    return path;
}

const char *conffile_write(const char *name, const char *text, mode_t mode)
{
    return conffile_write_bytes(name, text, strlen(text), mode);
}

const char *conffile_use(const char *text)
{
    static char variable[PATH_MAX + 16];
    char full[TEXT_MAX];
    size_t len = 0;

    for (; *text; text++) {
        int n = *text == '^' ? snprintf(full + len, sizeof(full) - len, "%s", dir)
                             : snprintf(full + len, sizeof(full) - len, "%c", *text);
        len += (size_t)n;
        if (len >= sizeof(full))
            test_die("a file that is too long");
    }
    const char *path = conffile_write_bytes("conf", full, len, 0644);
    snprintf(variable, sizeof(variable), "RLOCK_CONF=%s", path);
    putenv(variable); /* setenv() would keep every value that the variable ever had */
    return variable;
}

void conffile_obey_rights(void)
{
    static const int over[] = { CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH };
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (geteuid() != 0)
        return;
    if (syscall(SYS_capget, &head, sets) != 0)
        test_die("capget: %s", strerror(errno));
    for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
        prctl(PR_CAPBSET_DROP, over[i]); /* otherwise the programs that it starts would
                                            get it back */
        sets[CAP_TO_INDEX(over[i])].effective &= ~CAP_TO_MASK(over[i]);
        sets[CAP_TO_INDEX(over[i])].permitted &= ~CAP_TO_MASK(over[i]);
    }
    if (syscall(SYS_capset, &head, sets) != 0)
        test_die("capset: %s", strerror(errno));
}
