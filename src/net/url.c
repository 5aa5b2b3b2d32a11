/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of a server. No state. Works on slices of the caller's string, so that the
 * decoded password in the config is the only copy. Messages name the wrong part and never
 * show its text: a password whose '@', '/' or '?' was not percent-encoded may appear in
 * any part. Thread: any.
 */
#include "net/url.h"

#include "base/error.h"
#include "base/log.h"

#include <rlock.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

enum { PORT_DEFAULT = 6379, HOST_LEN_MAX = 255, PARAMETER_NAME_MAX = 20 };

struct slice {
    const char *at;
    size_t len;
};

static const char *find(struct slice s, char c)
{
    return s.len > 0 ? memchr(s.at, c, s.len) : NULL;
}

/* Cuts `s` at `mark`, which is in it: returns the part before, leaves the part after. */
static struct slice cut(struct slice *s, const char *mark)
{
    struct slice before = { s->at, (size_t)(mark - s->at) };
    s->at = mark + 1;
    s->len -= before.len + 1;
    return before;
}

static bool equals(struct slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* ---- strings */

static void wipe(char **string)
{
    if (!*string)
        return;
    explicit_bzero(*string, strlen(*string));
    free(*string);
    *string = NULL;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Replaces *string by the decoded text. */
static int decode(char **string, struct slice s, const char *part)
{
    char *text = malloc(s.len + 1);
    size_t len = 0;
    if (!text)
        return rlk_error_set(ENOMEM, "out of memory");
    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.at[i];
        if (c == '%') {
            int high = i + 2 < s.len ? hex_value(s.at[i + 1]) : -1;
            int low = i + 2 < s.len ? hex_value(s.at[i + 2]) : -1;
            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (c == 0) {
            explicit_bzero(text, len);
            free(text);
            return rlk_error_set(EINVAL, "URL: bad %%-escape in the %s", part);
        }
        text[len++] = (char)c;
    }
    text[len] = '\0';
    wipe(string);
    *string = text;
    return 0;
}

/* Blanks as a file or a shell's command leaves them, independent of the locale. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int parse_number(struct slice s, const char *part, long min, long max,
                        long *ret_value)
{
    long value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' ||
            __builtin_mul_overflow(value, 10L, &value) ||
            __builtin_add_overflow(value, (long)(s.at[i] - '0'), &value))
            goto bad;
    }
    if (s.len == 0 || value < min || value > max)
        goto bad;
    *ret_value = value;
    return 0;
bad:
    return rlk_error_set(EINVAL, "URL: %s is not a number from %ld to %ld", part, min,
                         max);
}

/* ---- parameters */

enum parameter {
    PARAMETER_DB,
    PARAMETER_LEASE,
    PARAMETER_PRESENCE,
    PARAMETER_COMMANDTIMEOUT,
    PARAMETER_CONNECTTIMEOUT,
    PARAMETER_MUTEXTYPE,
    PARAMETER_HANDOFFMS,
    PARAMETER_HANDOFFCOUNT,
    PARAMETER_RETAIN,
    PARAMETER_GUARD,
    PARAMETER_REPLICAS,
    PARAMETER_WAITAOF,
    PARAMETER_MAXSKEW,
    PARAMETER_CAFILE, /* this and the following: url_tls.c */
    PARAMETER_CADIR,
    PARAMETER_CERTFILE,
    PARAMETER_KEYFILE,
    PARAMETER_TLSNAME,
    PARAMETER_VERIFY,
    PARAMETER_COUNT
};

static const struct {
    const char *name;
    long min, max;
} parameters[PARAMETER_COUNT] = {
    [PARAMETER_DB] = { "db", 0, INT_MAX },
    [PARAMETER_LEASE] = { "lease", RLK_LEASE_MIN_MS, RLK_LEASE_MAX_MS },
    [PARAMETER_PRESENCE] = { "presence", RLK_PRESENCE_MIN_MS, RLK_PRESENCE_MAX_MS },
    [PARAMETER_COMMANDTIMEOUT] = { "commandtimeout", RLK_TIMEOUT_MIN_MS,
                                   RLK_TIMEOUT_MAX_MS },
    [PARAMETER_CONNECTTIMEOUT] = { "connecttimeout", RLK_TIMEOUT_MIN_MS,
                                   RLK_TIMEOUT_MAX_MS },
    [PARAMETER_MUTEXTYPE] = { "mutextype", 0, 0 },
    [PARAMETER_HANDOFFMS] = { "handoffms", 0, RLK_HANDOFF_MAX_MS },
    [PARAMETER_HANDOFFCOUNT] = { "handoffcount", 0, RLK_HANDOFF_MAX_COUNT },
    [PARAMETER_RETAIN] = { "retain", 0, RLK_RETAIN_MAX_MS },
    [PARAMETER_GUARD] = { "guard", 0, 1 },
    [PARAMETER_REPLICAS] = { "replicas", 0, RLK_CONFIRM_REPLICAS_MAX },
    [PARAMETER_WAITAOF] = { "waitaof", 0, 1 },
    [PARAMETER_MAXSKEW] = { "maxskew", 0, RLK_SKEW_MAX_MS },
    [PARAMETER_CAFILE] = { "cafile", 0, 0 },
    [PARAMETER_CADIR] = { "cadir", 0, 0 },
    [PARAMETER_CERTFILE] = { "certfile", 0, 0 },
    [PARAMETER_KEYFILE] = { "keyfile", 0, 0 },
    [PARAMETER_TLSNAME] = { "tlsname", 0, 0 },
    [PARAMETER_VERIFY] = { "verify", 0, 0 },
};

struct parse {
    struct rlk_config *config;
    bool seen[PARAMETER_COUNT];
    bool db_in_path;
};

static int set_db(struct parse *p, struct slice value)
{
    long db;
    int rc = parse_number(value, "db", 0, INT_MAX, &db);
    if (rc != 0)
        return rc;
    if (p->db_in_path && p->config->target.db != (int)db)
        return rlk_error_set(EINVAL, "URL: db is given twice, with different numbers");
    p->config->target.db = (int)db;
    return 0;
}

static int set_mutex_type(struct parse *p, struct slice value)
{
    if (equals(value, "recursive"))
        p->config->mutex_type = RLOCK_MUTEX_RECURSIVE;
    else if (equals(value, "errorcheck"))
        p->config->mutex_type = RLOCK_MUTEX_ERRORCHECK;
    else if (equals(value, "normal"))
        p->config->mutex_type = RLOCK_MUTEX_NORMAL;
    else
        return rlk_error_set(EINVAL,
                             "URL: mutextype is not recursive, errorcheck or normal");
    return 0;
}

static int set_number(struct parse *p, enum parameter which, struct slice value)
{
    struct rlk_config *config = p->config;
    long *const fields[PARAMETER_COUNT] = {
        [PARAMETER_LEASE] = &config->lease_ms,
        [PARAMETER_PRESENCE] = &config->presence_ms,
        [PARAMETER_COMMANDTIMEOUT] = &config->command_timeout_ms,
        [PARAMETER_CONNECTTIMEOUT] = &config->connect_timeout_ms,
        [PARAMETER_HANDOFFMS] = &config->handoff_ms,
        [PARAMETER_HANDOFFCOUNT] = &config->handoff_count,
        [PARAMETER_RETAIN] = &config->retain_ms,
        [PARAMETER_REPLICAS] = &config->wait.replicas,
        [PARAMETER_WAITAOF] = &config->wait.aof,
        [PARAMETER_MAXSKEW] = &config->max_skew_ms,
    };
    return parse_number(value, parameters[which].name, parameters[which].min,
                        parameters[which].max, fields[which]);
}

/* A client that looks after others permanently continues to do so. */
static int set_guard(struct parse *p, struct slice value)
{
    long on;
    int rc = parse_number(value, "guard", RLOCK_GUARD_OFF, RLOCK_GUARD_ON, &on);
    if (rc == 0 && (on == RLOCK_GUARD_OFF || p->config->guard == RLOCK_GUARD_OFF))
        p->config->guard = (int)on;
    return rc;
}

static int set_tls(struct parse *p, enum parameter which, const char *text)
{
    struct rlk_tls_settings *settings = &p->config->target.tls;
    const char *name = parameters[which].name;

    if (!settings->on)
        return rlk_error_set(EINVAL, "URL: parameter %s requires rediss://", name);
    return rlk_url_tls_set(settings, name, text, "URL");
}

static int set_parameter(struct parse *p, enum parameter which, struct slice raw)
{
    char *text = NULL;
    if (p->seen[which])
        return rlk_error_set(EINVAL, "URL: parameter %s is given twice",
                             parameters[which].name);
    p->seen[which] = true;
    int rc = decode(&text, raw, "parameters");
    if (rc != 0)
        return rc;
    struct slice value = { text, strlen(text) };
    if (which == PARAMETER_DB)
        rc = set_db(p, value);
    else if (which == PARAMETER_MUTEXTYPE)
        rc = set_mutex_type(p, value);
    else if (which == PARAMETER_GUARD)
        rc = set_guard(p, value);
    else if (which >= PARAMETER_CAFILE)
        rc = set_tls(p, which, text);
    else
        rc = set_number(p, which, value);
    wipe(&text);
    return rc;
}

/* Shows the name of an unknown parameter only if it looks like a name, and if no '@'
 * suggests the middle of a password. */
static int refuse_parameter(struct slice name, const char *url)
{
    bool plain = name.len > 0 && name.len <= PARAMETER_NAME_MAX && !strchr(url, '@');
    for (size_t i = 0; plain && i < name.len; i++)
        plain = (name.at[i] >= 'a' && name.at[i] <= 'z') || name.at[i] == '_';
    if (plain)
        return rlk_error_set(EINVAL, "URL: unknown parameter \"%.*s\"", (int)name.len,
                             name.at);
    return rlk_error_set(EINVAL,
                         "URL: unknown parameter (is a '?' not percent-encoded?)");
}

static int parse_query(struct parse *p, struct slice query, const char *url)
{
    while (query.len > 0) {
        const char *amp = find(query, '&');
        struct slice value = amp ? cut(&query, amp) : query;
        if (!amp)
            query.len = 0;
        const char *equal = find(value, '=');
        struct slice name = equal ? cut(&value, equal) : value;
        int which = 0;
        while (which < PARAMETER_COUNT && !equals(name, parameters[which].name))
            which++;
        if (which == PARAMETER_COUNT)
            return refuse_parameter(name, url);
        if (!equal)
            return rlk_error_set(EINVAL, "URL: parameter %s has no value",
                                 parameters[which].name);
        int rc = set_parameter(p, (enum parameter)which, value);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* ---- the target */

static int parse_userinfo(struct rlk_target *target, struct slice info)
{
    const char *colon = find(info, ':');
    if (!colon)
        return rlk_error_set(EINVAL, "URL: user without password");
    struct slice user = cut(&info, colon);
    if (user.len == 0 && info.len == 0)
        return rlk_error_set(EINVAL, "URL: neither user nor password before the '@'");
    wipe(&target->user);
    wipe(&target->password);
    int rc = user.len > 0 ? decode(&target->user, user, "user") : 0;
    if (rc == 0)
        rc = decode(&target->password, info, "password");
    return rc;
}

/* Host names appear in messages and logs. */
static int check_host(const char *host)
{
    size_t len = strlen(host);
    if (len == 0)
        return rlk_error_set(EINVAL, "URL: no host");
    if (len > HOST_LEN_MAX)
        return rlk_error_set(EINVAL, "URL: the host is too long");
    for (const char *c = host; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("/@?#\"\\", *c))
            return rlk_error_set(EINVAL, "URL: the host has a forbidden character");
    return 0;
}

static int parse_host_port(struct rlk_target *target, struct slice s)
{
    struct slice host = s, port = { NULL, 0 };
    const char *colon;
    long number = PORT_DEFAULT;
    bool has_port = false;
    if (s.len > 0 && s.at[0] == '[') {
        const char *end = find(s, ']');
        if (!end)
            return rlk_error_set(EINVAL, "URL: '[' without ']'");
        host = cut(&s, end);
        host.at++;
        host.len--;
        if (s.len > 0 && s.at[0] != ':')
            return rlk_error_set(EINVAL, "URL: unexpected text after the ']'");
        has_port = s.len > 0;
        port = (struct slice){ s.at + 1, has_port ? s.len - 1 : 0 };
    } else if ((colon = find(s, ':'))) {
        has_port = true;
        host = cut(&s, colon);
        port = s;
        if (find(port, ':'))
            return rlk_error_set(EINVAL, "URL: more than one ':' after the host; an IPv6 "
                                         "address is written in brackets");
    }
    int rc = has_port ? parse_number(port, "port", 1, UINT16_MAX, &number) : 0;
    if (rc == 0)
        rc = decode(&target->host, host, "host");
    if (rc == 0)
        rc = check_host(target->host);
    if (rc != 0)
        return rc;
    target->port = (uint16_t)number;
    snprintf(target->label, sizeof(target->label),
             strchr(target->host, ':') ? "[%.100s]:%u" : "%.100s:%u", target->host,
             (unsigned)target->port);
    return 0;
}

static int parse_db_path(struct parse *p, struct slice path)
{
    char *text = NULL;
    if (path.len == 0)
        return 0;
    int rc = decode(&text, path, "db");
    if (rc != 0)
        return rc;
    rc = set_db(p, (struct slice){ text, strlen(text) });
    p->db_in_path = true;
    wipe(&text);
    return rc;
}

static int parse_redis(struct parse *p, struct slice rest)
{
    struct rlk_target *target = &p->config->target;
    const char *slash = find(rest, '/');
    struct slice path = rest;
    struct slice authority = slash ? cut(&path, slash) : rest;
    if (!slash)
        path.len = 0;
    wipe(&target->path);
    const char *at = authority.len ? memrchr(authority.at, '@', authority.len) : NULL;
    if (at) {
        int rc = parse_userinfo(target, cut(&authority, at));
        if (rc != 0)
            return rc;
    }
    int rc = parse_host_port(target, authority);
    return rc != 0 ? rc : parse_db_path(p, path);
}

static int parse_unix(struct parse *p, struct slice rest)
{
    struct rlk_target *target = &p->config->target;
    wipe(&target->host);
    target->port = 0;
    if (rest.len < 2 || rest.at[0] != '/')
        return rlk_error_set(EINVAL, "URL: unix:// is not followed by an absolute path");
    int rc = decode(&target->path, rest, "path");
    if (rc != 0)
        return rc;
    size_t len = strlen(target->path);
    if (len >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return rlk_error_set(EINVAL,
                             "URL: the path of a Unix socket has at most %zu bytes",
                             sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    rlk_log_name(target->label, sizeof(target->label), target->path, len);
    return 0;
}

/* Stores the URL without the part before an '@' that precedes path and parameters: the
 * same '@' as parse_redis's. */
static int keep_url(struct rlk_config *config, const char *url, size_t scheme_len)
{
    const char *rest = url + scheme_len;
    const char *at = config->target.host ? memrchr(rest, '@', strcspn(rest, "/?")) : NULL;
    char *kept = NULL;

    if (asprintf(&kept, "%.*s%s", (int)scheme_len, url, at ? at + 1 : rest) < 0)
        return rlk_error_set(ENOMEM, "out of memory");
    wipe(&config->url);
    config->url = kept;
    return 0;
}

static const struct scheme {
    const char *text;
    int (*parse)(struct parse *, struct slice);
    bool tls;
} schemes[] = {
    { "redis://", parse_redis, false },  { "rediss://", parse_redis, true },
    { "valkey://", parse_redis, false }, { "valkeys://", parse_redis, true },
    { "unix://", parse_unix, false },
};

static const struct scheme *find_scheme(const char *url)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(url, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

int rlk_url_parse(struct rlk_config *config, const char *url)
{
    struct parse p = { .config = config };
    size_t len = strlen(url);
    if (len > 0 && (is_blank(url[0]) || is_blank(url[len - 1])))
        return rlk_error_set(EINVAL, "URL: blank or line break %s the URL",
                             is_blank(url[0]) ? "before" : "after");
    const struct scheme *scheme = find_scheme(url);
    if (!scheme)
        return rlk_error_set(EINVAL,
                             "URL: must begin with redis://, rediss:// or unix://");
    /* rule: P1 */
    if (scheme->tls && !rlk_tls_is_built())
        return rlk_error_set(ENOTSUP, "URL: %s: this library was built without TLS",
                             scheme->text);
    config->target.tls.on = scheme->tls;
    size_t scheme_len = strlen(scheme->text);
    struct slice rest = { url + scheme_len, strlen(url + scheme_len) };
    struct slice query = rest;
    const char *question = find(rest, '?');
    if (question)
        rest = cut(&query, question);
    else
        query.len = 0;
    int rc = scheme->parse(&p, rest);
    if (rc == 0)
        rc = parse_query(&p, query, url);
    if (rc == 0)
        rc = rlk_url_tls_check(&config->target.tls);
    return rc != 0 ? rc : keep_url(config, url, scheme_len);
}

void rlk_url_config_clear(struct rlk_config *config)
{
    wipe(&config->target.host);
    wipe(&config->target.path);
    wipe(&config->target.user);
    wipe(&config->target.password);
    rlk_url_tls_clear(&config->target.tls);
    wipe(&config->url);
    wipe(&config->source_path);
    explicit_bzero(config, sizeof(*config));
}
