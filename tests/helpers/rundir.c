/* SPDX-License-Identifier: Apache-2.0 */
/* See rundir.h. */
#include "rundir.h"

#include "die.h"
#include "wait.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UUID_LEN = 36 };

static char base[64]; /* "": none exists yet */
static pid_t maker;
static bool wanted;

static void use(const char *dir)
{
    if (setenv("RLOCK_RUNDIR", dir, 1) != 0)
        test_die("setenv: %s", strerror(errno));
}

static void need_base(void)
{
    if (base[0])
        return;
    strcpy(base, "/dev/shm/rlock-test-XXXXXX");
    if (!mkdtemp(base))
        test_die("%s: %s", base, strerror(errno));
    maker = getpid();
}

void test_rundir_begin(void)
{
    const char *guard = getenv("RLOCK_TEST_GUARD");

    wanted = guard && strcmp(guard, "1") == 0;
    need_base(); /* made here: tests run in children, which leave what they create to this
                    process */
    use(wanted ? base : "");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void test_rundir_end(void)
{
    if (base[0] && maker == getpid())
        nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    base[0] = '\0';
}

const char *test_rundir_own(void)
{
    static char dir[sizeof(base) + 16];

    need_base();
    snprintf(dir, sizeof(dir), "%s/XXXXXX", base);
    if (!mkdtemp(dir))
        test_die("%s: %s", dir, strerror(errno));
    use(dir);
    return dir;
}

void test_rundir_own_if_any(void)
{
    if (wanted)
        test_rundir_own();
}

void test_rundir_off(void)
{
    use("");
}

int test_rundir_count(const char *dir)
{
    DIR *list = opendir(dir);
    const struct dirent *entry;
    int count = 0;

    if (!list)
        return -1;
    while ((entry = readdir(list)) != NULL)
        count += strlen(entry->d_name) == UUID_LEN;
    closedir(list);
    return count;
}

struct wish {
    const char *dir;
    int count;
};

static bool has_count(void *arg)
{
    const struct wish *wish = arg;
    return test_rundir_count(wish->dir) == wish->count;
}

bool test_rundir_wait(const char *dir, int count, long ms)
{
    struct wish wish = { dir, count };
    return test_wait_until(has_count, &wish, ms);
}
