/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URL of a server. No state. Works on slices of the caller's string, so that the
 * decoded password in the config is the only copy. Messages name the wrong part and never
 * show its text: a password whose '@', '/' or '?' was not percent-encoded may appear in
 * any part. Thread: any.
 */
#include "net/url_impl.h"

#include "base/error.h"
#include "base/log.h"

#include <rlock.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/un.h>

enum { PORT_DEFAULT = 6379, PARAMETER_NAME_MAX = 20 };

/* Blanks as a file or a shell's command leaves them, independent of the locale. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
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
    PARAMETER_SENTINELUSER, /* this to PARAMETER_MASTER: url_sentinel.c */
    PARAMETER_SENTINELPASSWORD,
    PARAMETER_SENTINELMASTERID, /* this and the following: the master's name */
    PARAMETER_MASTER_NAME,
    PARAMETER_MASTER,
    PARAMETER_ADDRESSMAP, /* url_cluster.c */
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
    [PARAMETER_SENTINELUSER] = { "sentineluser", 0, 0 },
    [PARAMETER_SENTINELPASSWORD] = { "sentinelpassword", 0, 0 },
    [PARAMETER_SENTINELMASTERID] = { "sentinelMasterId", 0, 0 },
    [PARAMETER_MASTER_NAME] = { "master_name", 0, 0 },
    [PARAMETER_MASTER] = { "master", 0, 0 },
    [PARAMETER_ADDRESSMAP] = { "addressmap", 0, 0 },
};

struct parse {
    struct rlk_config *config;
    bool seen[PARAMETER_COUNT];
    bool db_in_path;
};

static int set_db(struct parse *p, struct rlk_url_slice value)
{
    long db;
    int rc = rlk_url_number(value, "db", 0, INT_MAX, &db);
    if (rc != 0)
        return rc;
    if (p->db_in_path && p->config->endpoint.db != (int)db)
        return rlk_error_set(EINVAL, "URL: db is given twice, with different numbers");
    p->config->endpoint.db = (int)db;
    return 0;
}

static int set_mutex_type(struct parse *p, struct rlk_url_slice value)
{
    if (rlk_url_equals(value, "recursive"))
        p->config->mutex_type = RLOCK_MUTEX_RECURSIVE;
    else if (rlk_url_equals(value, "errorcheck"))
        p->config->mutex_type = RLOCK_MUTEX_ERRORCHECK;
    else if (rlk_url_equals(value, "normal"))
        p->config->mutex_type = RLOCK_MUTEX_NORMAL;
    else
        return rlk_error_set(EINVAL,
                             "URL: mutextype is not recursive, errorcheck or normal");
    return 0;
}

static int set_number(struct parse *p, enum parameter which, struct rlk_url_slice value)
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
    return rlk_url_number(value, parameters[which].name, parameters[which].min,
                          parameters[which].max, fields[which]);
}

/* A client that looks after others permanently continues to do so. */
static int set_guard(struct parse *p, struct rlk_url_slice value)
{
    long on;
    int rc = rlk_url_number(value, "guard", RLOCK_GUARD_OFF, RLOCK_GUARD_ON, &on);
    if (rc == 0 && (on == RLOCK_GUARD_OFF || p->config->guard == RLOCK_GUARD_OFF))
        p->config->guard = (int)on;
    return rc;
}

/* Whether the URL has set the partner of this setting. */
static bool seen_partner(const struct parse *p, const char *name)
{
    const char *partner = rlk_url_tls_partner(name);

    for (int i = PARAMETER_CAFILE; i < PARAMETER_COUNT; i++)
        if (p->seen[i] && strcmp(parameters[i].name, name) != 0 &&
            strcmp(parameters[i].name, partner) == 0)
            return true;
    return false;
}

static int set_tls(struct parse *p, enum parameter which, const char *text)
{
    struct rlk_tls_settings *settings = &p->config->endpoint.tls;
    const char *name = parameters[which].name;

    if (!settings->on)
        return rlk_error_set(EINVAL, "URL: parameter %s requires rediss://", name);
    if (!seen_partner(p, name))
        rlk_url_tls_drop(settings, name);
    return rlk_url_tls_set(settings, name, text, "URL");
}

/* Credentials of the URL replace both of the attributes. */
static int set_sentinel(struct parse *p, enum parameter which, const char *text)
{
    struct rlk_endpoint *endpoint = &p->config->endpoint;
    const char *name = parameters[which].name;

    if (endpoint->sentinels.count == 0)
        return rlk_error_set(EINVAL, "URL: parameter %s requires redis-sentinel://",
                             name);
    if (which <= PARAMETER_SENTINELPASSWORD &&
        !(p->seen[PARAMETER_SENTINELUSER] && p->seen[PARAMETER_SENTINELPASSWORD])) {
        rlk_url_wipe(&endpoint->sentinels.user);
        rlk_url_wipe(&endpoint->sentinels.password);
    }
    return rlk_url_sentinel_set(endpoint, name, text);
}

static int set_address_map(struct parse *p, const char *text)
{
    struct rlk_url_cluster *cluster = &p->config->endpoint.cluster;

    if (cluster->count == 0)
        return rlk_error_set(EINVAL, "URL: parameter %s requires redis-cluster://",
                             parameters[PARAMETER_ADDRESSMAP].name);
    return rlk_url_cluster_map(cluster, text);
}

static int set_parameter(struct parse *p, enum parameter which, struct rlk_url_slice raw)
{
    char *text = NULL;
    if (p->seen[which])
        return rlk_error_set(EINVAL, "URL: parameter %s is given twice",
                             parameters[which].name);
    p->seen[which] = true;
    int rc = rlk_url_decode(&text, raw, "parameters");
    if (rc != 0)
        return rc;
    struct rlk_url_slice value = { text, strlen(text) };
    if (which == PARAMETER_DB)
        rc = set_db(p, value);
    else if (which == PARAMETER_MUTEXTYPE)
        rc = set_mutex_type(p, value);
    else if (which == PARAMETER_GUARD)
        rc = set_guard(p, value);
    else if (which == PARAMETER_ADDRESSMAP)
        rc = set_address_map(p, text);
    else if (which >= PARAMETER_SENTINELUSER)
        rc = set_sentinel(p, which, text);
    else if (which >= PARAMETER_CAFILE)
        rc = set_tls(p, which, text);
    else
        rc = set_number(p, which, value);
    rlk_url_wipe(&text);
    return rc;
}

/* Shows the name of an unknown parameter only if it looks like a name, and if no '@'
 * suggests the middle of a password. */
static int refuse_parameter(struct rlk_url_slice name, const char *url)
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

static int parse_query(struct parse *p, struct rlk_url_slice query, const char *url)
{
    while (query.len > 0) {
        const char *amp = rlk_url_find(query, '&');
        struct rlk_url_slice value = amp ? rlk_url_cut(&query, amp) : query;
        if (!amp)
            query.len = 0;
        const char *equal = rlk_url_find(value, '=');
        struct rlk_url_slice name = equal ? rlk_url_cut(&value, equal) : value;
        int which = 0;
        while (which < PARAMETER_COUNT && !rlk_url_equals(name, parameters[which].name))
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

/* ---- the endpoint */

static int parse_userinfo(struct rlk_endpoint *endpoint, struct rlk_url_slice info)
{
    const char *colon = rlk_url_find(info, ':');
    if (!colon)
        return rlk_error_set(EINVAL, "URL: user without password");
    struct rlk_url_slice user = rlk_url_cut(&info, colon);
    if (user.len == 0 && info.len == 0)
        return rlk_error_set(EINVAL, "URL: neither user nor password before the '@'");
    rlk_url_wipe(&endpoint->user);
    rlk_url_wipe(&endpoint->password);
    int rc = user.len > 0 ? rlk_url_decode(&endpoint->user, user, "user") : 0;
    if (rc == 0)
        rc = rlk_url_decode(&endpoint->password, info, "password");
    return rc;
}

static int parse_db_path(struct parse *p, struct rlk_url_slice path)
{
    char *text = NULL;
    if (path.len == 0)
        return 0;
    int rc = rlk_url_decode(&text, path, "db");
    if (rc != 0)
        return rc;
    rc = set_db(p, (struct rlk_url_slice){ text, strlen(text) });
    p->db_in_path = true;
    rlk_url_wipe(&text);
    return rc;
}

/* Cuts the path, and takes user and password. Leaves the host or hosts in *rest. */
static int parse_authority(struct rlk_endpoint *endpoint, struct rlk_url_slice *rest,
                           struct rlk_url_slice *ret_path)
{
    const char *slash = rlk_url_find(*rest, '/');

    *ret_path = *rest;
    ret_path->len = 0;
    if (slash) {
        *ret_path = *rest;
        *rest = rlk_url_cut(ret_path, slash);
    }
    rlk_url_wipe(&endpoint->path);
    const char *at = rest->len ? memrchr(rest->at, '@', rest->len) : NULL;
    return at ? parse_userinfo(endpoint, rlk_url_cut(rest, at)) : 0;
}

static int parse_redis(struct parse *p, struct rlk_url_slice rest)
{
    struct rlk_endpoint *endpoint = &p->config->endpoint;
    struct rlk_url_slice path;

    int rc = parse_authority(endpoint, &rest, &path);
    if (rc == 0)
        rc = rlk_url_host(rest, PORT_DEFAULT, &endpoint->host, &endpoint->port);
    if (rc != 0)
        return rc;
    rlk_url_label(endpoint->label, sizeof(endpoint->label), endpoint->host,
                  endpoint->port);
    return parse_db_path(p, path);
}

/* The URL's '#' that is in front of the master's name; NULL: there is none. */
static const char *find_fragment(struct rlk_url_slice rest)
{
    size_t len = strcspn(rest.at, "/?");
    const char *at = memrchr(rest.at, '@', len < rest.len ? len : rest.len);

    return strchr(at ? at : rest.at, '#');
}

static int set_name(struct parse *p, struct rlk_url_slice name)
{
    char *text = NULL;
    int rc = rlk_url_decode(&text, name, "name of the master");

    if (rc == 0)
        rc = rlk_url_sentinel_set(&p->config->endpoint, parameters[PARAMETER_MASTER].name,
                                  text);
    rlk_url_wipe(&text);
    return rc;
}

static int parse_sentinel(struct parse *p, struct rlk_url_slice rest)
{
    struct rlk_endpoint *endpoint = &p->config->endpoint;
    struct rlk_url_slice path, master, db;

    rlk_url_wipe(&endpoint->host);
    rlk_url_wipe(&endpoint->sentinels.master);
    endpoint->port = 0;
    int rc = parse_authority(endpoint, &rest, &path);
    if (rc == 0)
        rc = rlk_url_sentinel_hosts(endpoint, rest);
    if (rc == 0)
        rc = rlk_url_sentinel_path(path, &master, &db);
    if (rc == 0)
        rc = parse_db_path(p, db);
    return rc == 0 && master.len > 0 ? set_name(p, master) : rc;
}

static int parse_cluster(struct parse *p, struct rlk_url_slice rest)
{
    struct rlk_endpoint *endpoint = &p->config->endpoint;
    struct rlk_url_slice path;

    int rc = parse_authority(endpoint, &rest, &path);
    if (rc == 0)
        rc = rlk_url_cluster_seeds(endpoint, rest);
    if (rc == 0)
        rc = rlk_url_cluster_check(endpoint);
    return rc == 0 ? parse_db_path(p, path) : rc;
}

static int parse_unix(struct parse *p, struct rlk_url_slice rest)
{
    struct rlk_endpoint *endpoint = &p->config->endpoint;
    rlk_url_wipe(&endpoint->host);
    endpoint->port = 0;
    if (rest.len < 2 || rest.at[0] != '/')
        return rlk_error_set(EINVAL, "URL: unix:// is not followed by an absolute path");
    int rc = rlk_url_decode(&endpoint->path, rest, "path");
    if (rc != 0)
        return rc;
    size_t len = strlen(endpoint->path);
    if (len >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return rlk_error_set(EINVAL,
                             "URL: the path of a Unix socket has at most %zu bytes",
                             sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    rlk_log_name(endpoint->label, sizeof(endpoint->label), endpoint->path, len);
    return 0;
}

static bool is_secret(const char *parameter)
{
    for (int which = PARAMETER_SENTINELUSER; which <= PARAMETER_SENTINELPASSWORD;
         which++) {
        size_t len = strlen(parameters[which].name);
        if (strncmp(parameter, parameters[which].name, len) == 0 && parameter[len] == '=')
            return true;
    }
    return false;
}

/* Takes the credentials of the sentinels out of a URL. */
static void drop_secrets(char *url)
{
    char *to = strchr(url, '?'), *from = to ? to + 1 : url, lead = '?';
    bool more = to != NULL;

    while (more) {
        size_t len = strcspn(from, "&#");
        if (!is_secret(from)) {
            *to++ = lead;
            memmove(to, from, len);
            to += len;
            lead = '&';
        }
        from += len;
        more = *from == '&';
        from += more;
    }
    if (to)
        memmove(to, from, strlen(from) + 1);
}

/* Stores the URL without the part before an '@' that precedes path and parameters: the
 * same '@' as parse_authority's. */
static int keep_url(struct rlk_config *config, const char *url, size_t scheme_len)
{
    const char *rest = url + scheme_len;
    const char *at =
        config->endpoint.path ? NULL : memrchr(rest, '@', strcspn(rest, "/?"));
    char *kept = NULL;

    if (asprintf(&kept, "%.*s%s", (int)scheme_len, url, at ? at + 1 : rest) < 0)
        return rlk_error_set(ENOMEM, "out of memory");
    drop_secrets(kept);
    rlk_url_wipe(&config->url);
    config->url = kept;
    return 0;
}

static const struct scheme {
    const char *text;
    int (*parse)(struct parse *, struct rlk_url_slice);
    bool tls;
} schemes[] = {
    { "redis://", parse_redis, false },
    { "rediss://", parse_redis, true },
    { "valkey://", parse_redis, false },
    { "valkeys://", parse_redis, true },
    { "unix://", parse_unix, false },
    { "redis-sentinel://", parse_sentinel, false },
    { "rediss-sentinel://", parse_sentinel, true },
    { "redis+sentinel://", parse_sentinel, false },
    { "rediss+sentinel://", parse_sentinel, true },
    { "valkey-sentinel://", parse_sentinel, false },
    { "valkeys-sentinel://", parse_sentinel, true },
    { "valkey+sentinel://", parse_sentinel, false },
    { "valkeys+sentinel://", parse_sentinel, true },
    { "redis-cluster://", parse_cluster, false },
    { "rediss-cluster://", parse_cluster, true },
    { "redis+cluster://", parse_cluster, false },
    { "rediss+cluster://", parse_cluster, true },
    { "valkey-cluster://", parse_cluster, false },
    { "valkeys-cluster://", parse_cluster, true },
    { "valkey+cluster://", parse_cluster, false },
    { "valkeys+cluster://", parse_cluster, true },
};

static const struct scheme *find_scheme(const char *url)
{
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        if (strncasecmp(url, schemes[i].text, strlen(schemes[i].text)) == 0)
            return &schemes[i];
    return NULL;
}

/* Parses what follows the scheme. */
static int parse_rest(struct parse *p, const struct scheme *scheme,
                      struct rlk_url_slice rest, const char *url)
{
    struct rlk_url_slice query = { rest.at, 0 }, fragment = query;
    bool sentinel = scheme->parse == parse_sentinel;
    const char *hash = sentinel ? find_fragment(rest) : NULL;

    if (hash) {
        fragment = rest;
        rest = rlk_url_cut(&fragment, hash);
    }
    const char *question = rlk_url_find(rest, '?');
    if (question) {
        query = rest;
        rest = rlk_url_cut(&query, question);
    }
    rlk_url_sentinel_hosts_drop(&p->config->endpoint.sentinels);
    rlk_url_cluster_seeds_drop(&p->config->endpoint.cluster);
    int rc = scheme->parse(p, rest);
    if (rc == 0)
        rc = parse_query(p, query, url);
    if (rc == 0 && hash)
        rc = set_name(p, fragment);
    if (rc == 0 && sentinel)
        rc = rlk_url_sentinel_check(&p->config->endpoint);
    return rc != 0 ? rc : rlk_url_tls_check(&p->config->endpoint.tls);
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
        return rlk_error_set(EINVAL, "URL: must begin with redis://, rediss://, "
                                     "redis-sentinel://, redis-cluster:// or unix://");
    /* rule: P1 */
    if (scheme->tls && !rlk_tls_is_built())
        return rlk_error_set(ENOTSUP, "URL: %s: this library was built without TLS",
                             scheme->text);
    config->endpoint.tls.on = scheme->tls;
    size_t scheme_len = strlen(scheme->text);
    struct rlk_url_slice rest = { url + scheme_len, len - scheme_len };
    int rc = parse_rest(&p, scheme, rest, url);
    return rc != 0 ? rc : keep_url(config, url, scheme_len);
}

void rlk_url_config_clear(struct rlk_config *config)
{
    rlk_url_wipe(&config->endpoint.host);
    rlk_url_wipe(&config->endpoint.path);
    rlk_url_wipe(&config->endpoint.user);
    rlk_url_wipe(&config->endpoint.password);
    rlk_url_tls_clear(&config->endpoint.tls);
    rlk_url_sentinel_clear(&config->endpoint.sentinels);
    rlk_url_cluster_clear(&config->endpoint.cluster);
    rlk_url_wipe(&config->url);
    rlk_url_wipe(&config->source_path);
    explicit_bzero(config, sizeof(*config));
}
