/* SPDX-License-Identifier: Apache-2.0 */
/* See guarded.h. No state. */
#include "guarded.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum { PATH_SIZE = 4096, URL_SIZE = 1024 };

void check(int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s", what, rlock_errmsg()[0] ? rlock_errmsg() : rlock_strerror(rc));
}

bool guard_is_possible(FILE *table, const char *word)
{
    char dir[PATH_SIZE];
    if (rlock_getrundir(dir, sizeof(dir)) == 0)
        return true;
    fprintf(table, "skipped: %s: %s\n", word, rlock_errmsg());
    return false;
}

/* The library works without a live file; a measurement of the guard does not. */
static void hear(int level, const char *line, void *arg)
{
    static const char no_guard[] = "rlock: no crash guard: ";
    (void)level;
    (void)arg;
    if (strncmp(line, no_guard, sizeof(no_guard) - 1) == 0)
        die("%s", line);
}

rlock_client_t *client_open(bool guard)
{
    const char *base = getenv("RLOCK_URL");
    char url[URL_SIZE];
    rlock_client_t *client;

    if (!base)
        die("RLOCK_URL is not set");
    int len = snprintf(url, sizeof(url), "%s%cguard=%d", base,
                       strchr(base, '?') ? '&' : '?', guard ? 1 : 0);
    if (len < 0 || (size_t)len >= sizeof(url))
        die("RLOCK_URL is too long");
    rlock_setlogger(hear, NULL, LOG_DEBUG);
    check(rlock_client_open(&client, url, NULL), "rlock_client_open");
    check(rlock_client_ping(client), "rlock_client_ping");
    return client;
}
