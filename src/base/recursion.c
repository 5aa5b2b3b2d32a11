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

/* Makes room for one more run. False: out of memory. */
static bool reserve(struct rlk_recursion *recursion)
{
    struct rlk_runs *runs = recursion->runs;

    if (!runs) {
        runs = resize(NULL, SIZE_FIRST);
        if (!runs)
            return false;
        runs->count = 2;
        runs->levels[0] = recursion->writes;
        runs->levels[1] = recursion->reads;
    } else if (runs->count == runs->size) {
        if (runs->size > UINT_MAX / 2 / sizeof(unsigned))
            return false;
        runs = resize(runs, 2 * runs->size);
        if (!runs)
            return false;
    }
    recursion->runs = runs;
    return true;
}

/* Runs with an even number are of writes. */
static bool is_read(unsigned run)
{
    return run % 2 == 1;
}

bool rlk_recursion_push(struct rlk_recursion *recursion, bool read)
{
    struct rlk_runs *runs = recursion->runs;

    if (recursion->writes + recursion->reads >= INT_MAX)
        return false;
    if ((runs || (!read && recursion->reads > 0)) &&
        rlk_recursion_reads(recursion) != read) {
        if (!reserve(recursion))
            return false;
        runs = recursion->runs;
        runs->levels[runs->count++] = 0;
    }
    if (runs)
        runs->levels[runs->count - 1]++;
    if (read)
        recursion->reads++;
    else
        recursion->writes++;
    return true;
}

bool rlk_recursion_reads(const struct rlk_recursion *recursion)
{
    return recursion->runs ? is_read(recursion->runs->count - 1) : recursion->reads > 0;
}

static void drop_run(struct rlk_recursion *recursion, bool read)
{
    struct rlk_runs *runs = recursion->runs;
    unsigned i = runs->count;

    while (is_read(i - 1) != read || runs->levels[i - 1] == 0)
        i--;
    i--;
    if (--runs->levels[i] > 0 || i == 0)
        return;
    /* Joins the two runs around a run that became empty: they are of one mode. */
    if (i + 1 < runs->count) {
        runs->levels[i - 1] += runs->levels[i + 1];
        memmove(&runs->levels[i], &runs->levels[i + 2],
                (runs->count - i - 2) * sizeof(runs->levels[0]));
        runs->count--;
    }
    runs->count--;
    if (runs->count <= 2) {
        free(runs);
        recursion->runs = NULL;
    }
}

bool rlk_recursion_drop(struct rlk_recursion *recursion, bool read)
{
    if ((read ? recursion->reads : recursion->writes) == 0)
        return false;
    if (recursion->runs)
        drop_run(recursion, read);
    if (read)
        recursion->reads--;
    else
        recursion->writes--;
    return true;
}

void rlk_recursion_downgrade(struct rlk_recursion *recursion)
{
    free(recursion->runs);
    recursion->runs = NULL;
    recursion->reads += recursion->writes;
    recursion->writes = 0;
}

void rlk_recursion_clear(struct rlk_recursion *recursion)
{
    free(recursion->runs);
    memset(recursion, 0, sizeof(*recursion));
}
