/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of the command line: "60s", "500ms", "2m". No state. Thread: main only. */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_S = 1000, S_PER_M = 60, S_PER_H = 3600, S_PER_D = 86400 };

/* -1: unknown unit. */
static double unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {
        { "ms", 1 },
        { "s", MS_PER_S },
        { "m", S_PER_M * MS_PER_S },
        { "h", S_PER_H * MS_PER_S },
        { "d", (double)S_PER_D * MS_PER_S },
    };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return -1;
}

static const char *show(int64_t ms, char *buffer, size_t size)
{
    if (ms % MS_PER_S == 0)
        snprintf(buffer, size, "%llds", (long long)ms / MS_PER_S);
    else
        snprintf(buffer, size, "%lldms", (long long)ms);
    return buffer;
}

/* No "inf", "nan", exponents or hexadecimal: they are never intended. */
static size_t number_len(const char *text)
{
    size_t len = strspn(text, "0123456789.");
    return strspn(text, ".") == len ? 0 : len;
}

int64_t cli_duration(const struct cli_command *command, const char *what,
                     const char *text, struct cli_bounds bounds)
{
    const double half = 0.5;
    char number[32], from[32], to[32], *end = number;
    size_t len = number_len(text);
    double ms = -1;

    if (len > 0 && len < sizeof(number)) {
        memcpy(number, text, len);
        number[len] = '\0';
        if (bounds.needs_unit && text[len] == '\0')
            cli_bad_usage(command, "%s: \"%s\" has no unit: %ss or %sms?", what, text,
                          text, text);
        ms = unit_ms(text[len] == '\0' ? "s" : text + len);
        ms = ms < 0 ? ms : strtod(number, &end) * ms;
    }
    if (ms < 0 || *end != '\0' || ms + half < (double)bounds.min_ms ||
        ms > (double)bounds.max_ms)
        cli_bad_usage(command,
                      "%s: \"%s\" is not a duration from %s to %s, as 500ms, 60s or 2m",
                      what, text, show(bounds.min_ms, from, sizeof(from)),
                      show(bounds.max_ms, to, sizeof(to)));
    return (int64_t)(ms + half);
}
