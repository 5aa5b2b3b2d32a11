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

static void check_cluster(const struct rlk_endpoint *t)
{
    const struct rlk_url_cluster *cluster = &t->cluster;

    fuzz_must(cluster->count == 0 || strcmp(t->host, cluster->seeds[0].host) == 0);
    for (size_t i = 0; i < cluster->count; i++)
        fuzz_must(rlk_url_is_host(cluster->seeds[i].host) && cluster->seeds[i].port > 0);
    for (size_t i = 0; i < cluster->pair_count; i++) {
        const struct rlk_url_pair *pair = &cluster->pairs[i];
        fuzz_must(rlk_url_is_host(pair->announced.host) &&
                  rlk_url_is_host(pair->real.host));
        fuzz_must(pair->announced.port > 0 || pair->real.port == 0);
    }
}

static void check_ranges(const struct rlk_config *c)
{
    const struct rlk_endpoint *t = &c->endpoint;
    const struct rlk_url_sentinels *s = &t->sentinels;
    fuzz_must(!t->host + !t->path == (s->count > 0 ? 2 : 1));
    fuzz_must(s->count <= RLK_URL_SENTINELS_MAX && (s->count == 0 || s->master[0]));
    fuzz_must(!s->user || s->password);
    for (size_t i = 0; i < s->count; i++)
        fuzz_must(rlk_url_is_host(s->hosts[i].host) && s->hosts[i].port > 0);
    check_cluster(t);
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

static void escape(FILE *to, const char *text)
{
    for (; *text; text++)
        fprintf(to, "%%%02x", (unsigned char)*text);
}

static void write_host(FILE *to, const char *host, unsigned port)
{
    fputs(strchr(host, ':') ? "[" : "", to);
    escape(to, host);
    fputs(strchr(host, ':') ? "]" : "", to);
    if (port > 0)
        fprintf(to, ":%u", port);
}

static void write_hosts(FILE *to, const struct rlk_url_host *hosts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fputs(i > 0 ? "," : "", to);
        write_host(to, hosts[i].host, hosts[i].port);
    }
}

/* A parameter is decoded before its hosts are, so these are encoded twice. */
static void write_map(FILE *to, const struct rlk_url_cluster *cluster)
{
    char *map = NULL;
    size_t len = 0;
    FILE *inner = open_memstream(&map, &len);

    if (!inner)
        abort();
    for (size_t i = 0; i < cluster->pair_count; i++) {
        fputs(i > 0 ? "," : "", inner);
        write_hosts(inner, &cluster->pairs[i].announced, 1);
        fputc('>', inner);
        write_hosts(inner, &cluster->pairs[i].real, 1);
    }
    if (fclose(inner) != 0)
        abort();
    fputs("&addressmap=", to);
    escape(to, map);
    free(map);
}

static void write_credentials(FILE *to, const struct rlk_endpoint *t)
{
    if (!t->password)
        return;
    if (t->user)
        escape(to, t->user);
    fputc(':', to);
    escape(to, t->password);
    fputc('@', to);
}

/* The part before the parameters. */
static void write_place(FILE *to, const struct rlk_endpoint *t)
{
    const struct rlk_url_sentinels *s = &t->sentinels;

    fputs(s->count > 0           ? "redis-sentinel://"
          : t->cluster.count > 0 ? "redis-cluster://"
          : t->host              ? "redis://"
                                 : "unix:///",
          to);
    if (!t->path)
        write_credentials(to, t);
    if (t->cluster.count > 0)
        write_hosts(to, t->cluster.seeds, t->cluster.count);
    else if (t->host)
        write_host(to, t->host, t->port);
    if (t->path)
        escape(to, t->path + 1);
    write_hosts(to, s->hosts, s->count);
}

/* Writes a URL with the same meaning as the configuration. */
static char *write_url(const struct rlk_config *c)
{
    const struct rlk_url_sentinels *s = &c->endpoint.sentinels;
    char *url = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&url, &len);

    if (!to)
        abort();
    write_place(to, &c->endpoint);
    fprintf(to,
            "?db=%d&lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld&"
            "mutextype=%s",
            c->endpoint.db, c->lease_ms, c->presence_ms, c->command_timeout_ms,
            c->connect_timeout_ms,
            c->mutex_type == RLOCK_MUTEX_RECURSIVE    ? "recursive"
            : c->mutex_type == RLOCK_MUTEX_ERRORCHECK ? "errorcheck"
                                                      : "normal");
    if (c->endpoint.cluster.pair_count > 0)
        write_map(to, &c->endpoint.cluster);
    if (s->count > 0)
        fprintf(to, "&master=%s", s->master);
    if (s->user) {
        fputs("&sentineluser=", to);
        escape(to, s->user);
    }
    if (s->password) {
        fputs("&sentinelpassword=", to);
        escape(to, s->password);
    }
    if (fclose(to) != 0)
        abort();
    return url;
}

static bool same_text(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

static void check_same_host(const struct rlk_url_host *a, const struct rlk_url_host *b)
{
    fuzz_must(same_text(a->host, b->host) && a->port == b->port);
}

static void check_same_cluster(const struct rlk_url_cluster *a,
                               const struct rlk_url_cluster *b)
{
    fuzz_must(a->count == b->count && a->pair_count == b->pair_count);
    for (size_t i = 0; i < a->count; i++)
        check_same_host(&a->seeds[i], &b->seeds[i]);
    for (size_t i = 0; i < a->pair_count; i++) {
        check_same_host(&a->pairs[i].announced, &b->pairs[i].announced);
        check_same_host(&a->pairs[i].real, &b->pairs[i].real);
    }
}

static void check_same_sentinels(const struct rlk_url_sentinels *a,
                                 const struct rlk_url_sentinels *b)
{
    fuzz_must(a->count == b->count && same_text(a->master, b->master));
    fuzz_must(same_text(a->user, b->user) && same_text(a->password, b->password));
    for (size_t i = 0; i < a->count; i++)
        check_same_host(&a->hosts[i], &b->hosts[i]);
}

static void check_same(const struct rlk_config *a, const struct rlk_config *b)
{
    check_same_sentinels(&a->endpoint.sentinels, &b->endpoint.sentinels);
    check_same_cluster(&a->endpoint.cluster, &b->endpoint.cluster);
    fuzz_must(same_text(a->endpoint.host, b->endpoint.host));
    fuzz_must(same_text(a->endpoint.path, b->endpoint.path));
    fuzz_must(same_text(a->endpoint.user, b->endpoint.user));
    fuzz_must(same_text(a->endpoint.password, b->endpoint.password));
    fuzz_must(strcmp(a->endpoint.label, b->endpoint.label) == 0);
    fuzz_must(a->endpoint.port == b->endpoint.port && a->endpoint.db == b->endpoint.db);
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
