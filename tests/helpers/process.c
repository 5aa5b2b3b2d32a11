/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. State: the limit before test_fd_allow changed it. */
#include "process.h"

#include "die.h"
#include "wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREAD_NAME_SIZE = 17 };

static rlim_t limit_before; /* 0: not changed yet */

bool test_fd_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

int test_fd_count(void)
{
    int count = 0;
    for (int fd = 0; fd < TEST_FDS_MAX; fd++)
        count += test_fd_is_open(fd);
    return count;
}

void test_fd_limit(int first)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        test_die("getrlimit");
    if (limit_before == 0)
        limit_before = limit.rlim_cur;
    limit.rlim_cur = first < 0 ? limit_before : (rlim_t)first;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        test_die("setrlimit");
}

void test_fd_allow(int more)
{
    int fd = 0;
    if (more < 0) {
        test_fd_limit(-1);
        return;
    }
    while (fd < TEST_FDS_MAX && (test_fd_is_open(fd) || more-- > 0))
        fd++;
    test_fd_limit(fd);
}

int test_thread_count(const char *prefix)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    if (!dir)
        test_die("/proc/self/task");
    while ((entry = readdir(dir)) != NULL) {
        char path[300], name[THREAD_NAME_SIZE] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *f = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!f)
            continue; /* it has ended meanwhile */
        if (fgets(name, sizeof(name), f) && strncmp(name, prefix, strlen(prefix)) == 0)
            count++;
        fclose(f);
    }
    closedir(dir);
    return count;
}

struct wanted {
    const char *prefix;
    int count;
};

static bool are_so_many(void *arg)
{
    const struct wanted *w = arg;
    return test_thread_count(w->prefix) == w->count;
}

bool test_thread_wait(const char *prefix, int count, long ms)
{
    struct wanted w = { prefix, count };
    return test_wait_until(are_so_many, &w, ms);
}

/* How many times the thread has gone to sleep; -1: it is running or ready to run; 0: it
 * has ended. */
static long thread_sleeps(const char *tid)
{
    char path[300], line[200], state = '\0';
    long sleeps = 0;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", tid);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    while (fgets(line, sizeof(line), f)) {
        char *colon = strchr(line, ':');
        if (colon && strncmp(line, "State:", 6) == 0)
            state = colon[1 + strspn(colon + 1, " \t")];
        if (colon && strstr(line, "ctxt_switches:"))
            sleeps += strtol(colon + 1, NULL, 10);
    }
    fclose(f);
    return state == 'S' ? sleeps : -1;
}

/* The sum of thread_sleeps over all other threads; -1 while one of them runs. */
static long others_sleeps(void)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    long sum = 0;

    if (!dir)
        test_die("/proc/self/task");
    while (sum >= 0 && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == gettid())
            continue;
        long sleeps = thread_sleeps(entry->d_name);
        sum = sleeps < 0 ? -1 : sum + sleeps + 1; /* 1: so that a new thread changes the
                                                     sum */
    }
    closedir(dir);
    return sum;
}

bool test_thread_quiet(long quiet_ms, long ms)
{
    int64_t now = test_now_ms(), since = now, end = now + ms;
    long seen = others_sleeps();

    while (seen != 0 && (seen < 0 || now - since < quiet_ms) && now < end) {
        test_pause_ms(1);
        long sleeps = others_sleeps();
        now = test_now_ms();
        if (sleeps != seen)
            since = now;
        seen = sleeps;
    }
    return seen == 0 || (seen > 0 && now - since >= quiet_ms);
}
