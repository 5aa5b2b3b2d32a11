/* SPDX-License-Identifier: Apache-2.0 */
/* The sides that are compared, and a table of their figures; see versus.h. No state. */
#include "versus.h"

#include "bench.h"
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void side_load(struct library *ret_lib, int side)
{
    int version = side == AGAIN ? BEFORE : side;
    library_load(ret_lib, versus_labels[version], versus_paths[version]);
}

static double field_of(const char *info, const char *field)
{
    const char *at = strstr(info, field);
    return at ? strtod(at + strlen(field), NULL) : 0;
}

double server_cpu_us(redisContext *conn)
{
    redisReply *reply = redis_words(conn, (const char *const[]){ "INFO", "cpu", NULL });
    double seconds =
        field_of(reply->str, "used_cpu_sys:") + field_of(reply->str, "used_cpu_user:");
    freeReplyObject(reply);
    return seconds * 1e6;
}

static double *copy_of(const double *values, size_t count)
{
    double *copy = malloc(count * sizeof(*copy));
    if (!copy)
        die("out of memory");
    memcpy(copy, values, count * sizeof(*copy));
    return copy;
}

static double median(const double *values, size_t rounds)
{
    double *copy = copy_of(values, rounds);
    sample_sort(copy, rounds);
    double middle = sample_quantile(copy, rounds, 0.5);
    free(copy);
    return middle;
}

static void print_ratio(const double *values, const double *base, size_t rounds)
{
    double *ratio = copy_of(values, rounds), low, high;
    size_t count = 0;
    for (size_t i = 0; i < rounds; i++)
        if (base[i] > 0)
            ratio[count++] = values[i] / base[i];
    if (count > 0) {
        sample_sort(ratio, count);
        sample_median_bounds(ratio, count, &low, &high);
        printf("  %.3f (%.3f to %.3f)", sample_quantile(ratio, count, 0.5), low, high);
    }
    free(ratio);
}

void table_head(const char *title, size_t rounds)
{
    printf("\n%s, %zu rounds; medians and those of the ratios, in brackets where it is "
           "with 95 %%\n%-25s %10s %10s  %-26s%-26s %s\n",
           title, rounds, "", "before", "now", "  now by before", "  before, again",
           "target");
}

void table_row(const char *figure, double *const values[SIDES], size_t rounds,
               const char *target)
{
    printf("%-25s %10.2f %10.2f", figure, median(values[BEFORE], rounds),
           median(values[NOW], rounds));
    print_ratio(values[NOW], values[BEFORE], rounds);
    print_ratio(values[AGAIN], values[BEFORE], rounds);
    printf("  %s\n", target);
    fflush(stdout);
}
