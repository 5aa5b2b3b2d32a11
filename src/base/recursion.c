/* SPDX-License-Identifier: Apache-2.0 */
/* See recursion.h. No state of its own. */
#include "base/recursion.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_FIRST = 8 };

static struct rlk_runs *resize(struct rlk_runs *runs, unsigned size)
{
    struct rlk_runs *bigger =
        realloc(runs, sizeof(*runs) + (size_t)size * sizeof(runs->levels[0]));
    if (bigger)
        bigger->size = size;
    return bigger;
}

/* The runs, with room for one more. False: out of memory. */
static bool reserve(struct rlk_recursion *levels)
{
    struct rlk_runs *runs = levels->runs;

    if (!runs) {
        runs = resize(NULL, SIZE_FIRST);
        if (!runs)
            return false;
        runs->count = 2;
        runs->levels[0] = levels->writes;
        runs->levels[1] = levels->reads;
    } else if (runs->count == runs->size) {
        if (runs->size > UINT_MAX / 2 / sizeof(unsigned))
            return false;
        runs = resize(runs, 2 * runs->size);
        if (!runs)
            return false;
    }
    levels->runs = runs;
    return true;
}

/* Runs of even number are of writes. */
static bool is_read(unsigned run)
{
    return run % 2 == 1;
}

bool rlk_recursion_push(struct rlk_recursion *levels, bool read)
{
    struct rlk_runs *runs = levels->runs;

    if (levels->writes + levels->reads >= INT_MAX)
        return false;
    if ((runs || (!read && levels->reads > 0)) && rlk_recursion_reads(levels) != read) {
        if (!reserve(levels))
            return false;
        runs = levels->runs;
        runs->levels[runs->count++] = 0;
    }
    if (runs)
        runs->levels[runs->count - 1]++;
    if (read)
        levels->reads++;
    else
        levels->writes++;
    return true;
}

bool rlk_recursion_reads(const struct rlk_recursion *levels)
{
    return levels->runs ? is_read(levels->runs->count - 1) : levels->reads > 0;
}

static void drop_run(struct rlk_recursion *levels, bool read)
{
    struct rlk_runs *runs = levels->runs;
    unsigned i = runs->count;

    while (is_read(i - 1) != read || runs->levels[i - 1] == 0)
        i--;
    i--;
    if (--runs->levels[i] > 0 || i == 0)
        return;
    /* the runs around it are of one mode */
    if (i + 1 < runs->count) {
        runs->levels[i - 1] += runs->levels[i + 1];
        memmove(&runs->levels[i], &runs->levels[i + 2],
                (runs->count - i - 2) * sizeof(runs->levels[0]));
        runs->count--;
    }
    runs->count--;
    if (runs->count <= 2) {
        free(runs);
        levels->runs = NULL;
    }
}

bool rlk_recursion_drop(struct rlk_recursion *levels, bool read)
{
    if ((read ? levels->reads : levels->writes) == 0)
        return false;
    if (levels->runs)
        drop_run(levels, read);
    if (read)
        levels->reads--;
    else
        levels->writes--;
    return true;
}

void rlk_recursion_downgrade(struct rlk_recursion *levels)
{
    free(levels->runs);
    levels->runs = NULL;
    levels->reads += levels->writes;
    levels->writes = 0;
}

void rlk_recursion_clear(struct rlk_recursion *levels)
{
    free(levels->runs);
    memset(levels, 0, sizeof(*levels));
}
