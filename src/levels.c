/* SPDX-License-Identifier: Apache-2.0 */
/* See levels.h. No state of its own. */
#include "levels.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static unsigned *runs_of(struct rlk_levels *levels)
{
    return levels->far_runs ? levels->far_runs : levels->near_runs;
}

/* Room for `count` runs. */
static bool reserve(struct rlk_levels *levels, unsigned count)
{
    unsigned size = levels->far_runs ? levels->far_size : RLK_LEVELS_NEAR;
    if (count <= size)
        return true;
    if (size > UINT_MAX / 2 / sizeof(unsigned))
        return false;
    unsigned *bigger = realloc(levels->far_runs, 2 * (size_t)size * sizeof(*bigger));
    if (!bigger)
        return false;
    if (!levels->far_runs)
        memcpy(bigger, levels->near_runs, sizeof(levels->near_runs));
    levels->far_runs = bigger;
    levels->far_size = 2 * size;
    return true;
}

/* Runs of even number are of writes. */
static bool is_read(unsigned run)
{
    return run % 2 == 1;
}

bool rlk_levels_push(struct rlk_levels *levels, bool read)
{
    unsigned count = levels->run_count;
    if (count == 0)
        count = read ? 2 : 1;
    else if (is_read(count - 1) != read)
        count++;
    if (levels->writes + levels->reads >= INT_MAX || !reserve(levels, count))
        return false;
    unsigned *runs = runs_of(levels);
    while (levels->run_count < count)
        runs[levels->run_count++] = 0;
    runs[levels->run_count - 1]++;
    if (read)
        levels->reads++;
    else
        levels->writes++;
    return true;
}

bool rlk_levels_reads(const struct rlk_levels *levels)
{
    return levels->run_count > 0 && is_read(levels->run_count - 1);
}

bool rlk_levels_drop(struct rlk_levels *levels, bool read)
{
    unsigned *runs = runs_of(levels), i = levels->run_count;

    if ((read ? levels->reads : levels->writes) == 0)
        return false;
    while (is_read(i - 1) != read || runs[i - 1] == 0)
        i--;
    i--;
    if (read)
        levels->reads--;
    else
        levels->writes--;
    if (--runs[i] > 0 || i == 0)
        return true;
    /* the runs around it are of one mode */
    if (i + 1 < levels->run_count) {
        runs[i - 1] += runs[i + 1];
        memmove(&runs[i], &runs[i + 2], (levels->run_count - i - 2) * sizeof(*runs));
        levels->run_count--;
    }
    levels->run_count--;
    return true;
}

void rlk_levels_downgrade(struct rlk_levels *levels)
{
    unsigned *runs = runs_of(levels);

    levels->reads += levels->writes;
    levels->writes = 0;
    levels->run_count = 2; /* near_runs has room */
    runs[0] = 0;
    runs[1] = levels->reads;
}

void rlk_levels_clear(struct rlk_levels *levels)
{
    free(levels->far_runs);
    memset(levels, 0, sizeof(*levels));
}
