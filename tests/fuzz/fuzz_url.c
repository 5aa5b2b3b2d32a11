/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of URLs. An accepted URL is in range, and written out again it means the
 * same. A refusal is explained in one printable line. */
#include "base/error.h"
#include "fuzz.h"
#include "net/url.h"

#include <errno.h>
#include <limits.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_MS = 3000, CONNECTIONS = 16 };

static struct rlk_config fresh(void)
{
    return (struct rlk_config){ .lease_ms = DEFAULT_MS,
                                .presence_ms = DEFAULT_MS,
                                .command_timeout_ms = DEFAULT_MS,
                                .connect_timeout_ms = DEFAULT_MS,
                                .max_connections = CONNECTIONS,
                                .mutex_type = RLOCK_MUTEX_RECURSIVE };
}

static bool between(long value, long min, long max)
{
    return value >= min && value <= max;
}

static void check_ranges(const struct rlk_config *c)
{
    const struct rlk_target *t = &c->target;
    fuzz_must(!t->host != !t->path);
    fuzz_must(t->host ? t->port > 0 : t->port == 0);
    fuzz_must(!t->host || between((long)strlen(t->host), 1, 255));
    fuzz_must(!t->path || (t->path[0] == '/' && strlen(t->path) <= 107));
    fuzz_must(t->db >= 0);
    fuzz_must(!t->user || t->password);
    fuzz_must(memchr(t->label, '\0', sizeof(t->label)) && t->label[0]);
    fuzz_must(fuzz_printable(t->label));
    fuzz_must(between(c->lease_ms, RLK_LEASE_MIN_MS, RLK_LEASE_MAX_MS));
    fuzz_must(between(c->presence_ms, RLK_PRESENCE_MIN_MS, RLK_PRESENCE_MAX_MS));
    fuzz_must(between(c->command_timeout_ms, RLK_TIMEOUT_MIN_MS, RLK_TIMEOUT_MAX_MS));
    fuzz_must(between(c->connect_timeout_ms, RLK_TIMEOUT_MIN_MS, RLK_TIMEOUT_MAX_MS));
    fuzz_must(c->max_connections == CONNECTIONS);
    fuzz_must(c->mutex_type == RLOCK_MUTEX_RECURSIVE ||
              c->mutex_type == RLOCK_MUTEX_ERRORCHECK ||
              c->mutex_type == RLOCK_MUTEX_NORMAL);
}

static size_t escape(char *to, const char *text)
{
    size_t len = 0;
    for (; *text; text++)
        len += (size_t)sprintf(to + len, "%%%02x", (unsigned char)*text);
    to[len] = '\0';
    return len;
}

/* Writes a URL with the same meaning as the configuration. */
static char *write_url(const struct rlk_config *c)
{
    const struct rlk_target *t = &c->target;
    size_t size = 512 + 3 * ((t->host ? strlen(t->host) : strlen(t->path)) +
                             (t->user ? strlen(t->user) : 0) +
                             (t->password ? strlen(t->password) : 0));
    char *url = malloc(size), *at = url;
    if (!url)
        abort();
    at += sprintf(at, t->host ? "redis://" : "unix:///");
    if (t->host && t->password) {
        at += t->user ? escape(at, t->user) : 0;
        at += sprintf(at, ":");
        at += escape(at, t->password);
        at += sprintf(at, "@");
    }
    if (t->host) {
        at += sprintf(at, strchr(t->host, ':') ? "[" : "");
        at += escape(at, t->host);
        at += sprintf(at, strchr(t->host, ':') ? "]:%d" : ":%d", t->port);
    } else {
        at += escape(at, t->path + 1);
    }
    sprintf(at,
            "?db=%d&lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld&"
            "mutextype=%s",
            t->db, c->lease_ms, c->presence_ms, c->command_timeout_ms,
            c->connect_timeout_ms,
            c->mutex_type == RLOCK_MUTEX_RECURSIVE    ? "recursive"
            : c->mutex_type == RLOCK_MUTEX_ERRORCHECK ? "errorcheck"
                                                      : "normal");
    return url;
}

static bool same_text(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

static void check_same(const struct rlk_config *a, const struct rlk_config *b)
{
    fuzz_must(same_text(a->target.host, b->target.host));
    fuzz_must(same_text(a->target.path, b->target.path));
    fuzz_must(same_text(a->target.user, b->target.user));
    fuzz_must(same_text(a->target.password, b->target.password));
    fuzz_must(strcmp(a->target.label, b->target.label) == 0);
    fuzz_must(a->target.port == b->target.port && a->target.db == b->target.db);
    fuzz_must(a->lease_ms == b->lease_ms && a->presence_ms == b->presence_ms);
    fuzz_must(a->command_timeout_ms == b->command_timeout_ms);
    fuzz_must(a->connect_timeout_ms == b->connect_timeout_ms);
    fuzz_must(a->mutex_type == b->mutex_type);
}

/* Checks that the reason does not contain the password of a refused URL. */
static void check_secret(const char *text)
{
    /* around the secret: the text before it, and the text between it and the input */
    static const char secret[] = "qzcanaryzq"; /* looks like a parameter's name, too */
    static const char *const forms[][3] = {
        { "redis://u:", "@", "" },    { "redis://:", "", "@h" },
        { "redis://u:", "@h/", "" },  { "redis://u:", "@h?", "" },
        { "redis://u:1?", "", "@h" }, { "redis://u:1/", "", "@h" },
        { "redis://u:a@", "", "@h" }, { "unix:///u:", "@", "" }
    };
    size_t size = strlen(text) + 64;
    char *url = malloc(size);
    if (!url)
        abort();
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct rlk_config config = fresh();
        snprintf(url, size, "%s%s%s%s%s", forms[i][0], secret, forms[i][1], text,
                 forms[i][2]);
        rlk_error_clear();
        if (rlk_url_parse(&config, url) != 0)
            fuzz_must(!strstr(rlk_error_message(), secret));
        rlk_url_config_clear(&config);
    }
    free(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rlk_config config = fresh(), again = fresh();
    char *url = fuzz_copy(data, size, true);

    rlk_error_clear();
    int rc = rlk_url_parse(&config, url);
    fuzz_must(rc == 0 || rc == EINVAL || rc == ENOTSUP);
    if (rc == 0) {
        check_ranges(&config);
        char *written = write_url(&config);
        fuzz_must(rlk_url_parse(&again, written) == 0);
        check_same(&config, &again);
        free(written);
    } else {
        fuzz_must(rlk_error_message()[0] && fuzz_printable(rlk_error_message()));
    }
    check_secret(url);
    rlk_url_config_clear(&config);
    rlk_url_config_clear(&again);
    free(url);
    return 0;
}
