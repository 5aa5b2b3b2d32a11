/* SPDX-License-Identifier: Apache-2.0 */
/* See usage.h. State: none. */
#include "usage.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 300, LOOKS = 200, LOOK_NS = 5000000 };

static unsigned count_entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static bool has_name(const char *task, const char *name)
{
    char path[PATH_SIZE], its[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
    FILE *f = fopen(path, "re");
    bool has = f && fgets(its, sizeof(its), f) && strncmp(its, name, strlen(name)) == 0;
    if (f)
        fclose(f);
    return has;
}

static bool closes_aside(void)
{
    bool found = false;
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/task");
    while (dir && (entry = readdir(dir)))
        found |= has_name(entry->d_name, "rlock-close");
    if (dir)
        closedir(dir);
    return found;
}

/* A thread of the library that closes a slow descriptor lives for a moment. */
static unsigned count_threads(void)
{
    const struct timespec look = { 0, LOOK_NS };
    for (int i = 0; i < LOOKS && closes_aside(); i++)
        nanosleep(&look, NULL);
    return count_entries("/proc/self/task");
}

void nem_usage_tell(FILE *out)
{
    long pages = 0, resident = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%ld %ld %ld", &pages, &resident, &shared) != 3)
        resident = shared = 0;
    if (f)
        fclose(f);
    unsigned threads = count_threads();
    fprintf(out, "%u %u %ld\n", count_entries("/proc/self/fd"), threads,
            (resident - shared) * sysconf(_SC_PAGESIZE));
}
