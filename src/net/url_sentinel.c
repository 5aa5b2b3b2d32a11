/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a URL of Sentinel: the sentinels, the master's name, the sentinels'
 * credentials. No state. Thread: any. */
#include "net/url_impl.h"

#include "base/error.h"
#include "base/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { PORT_DEFAULT = 26379, NAME_LEN_MAX = 100 };

static const char *const names[] = { "sentinelMasterId", "master_name", "master" };

bool rlk_url_sentinel_is_name(const char *parameter)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(parameter, names[i]) == 0)
            return true;
    return false;
}

static int copy_text(char **string, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        return rlk_error_set(ENOMEM, "out of memory");
    rlk_url_wipe(string);
    *string = copy;
    return 0;
}

/* What Sentinel allows in a name. It appears in messages, logs and file names of the
 * crash guard; where a URL is mistyped, it would show what follows, a password perhaps.
 */
static bool is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!((*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
              (*c >= '0' && *c <= '9') || strchr(".-_", *c)))
            return false;
    return *name && strlen(name) <= NAME_LEN_MAX;
}

static int set_master(struct rlk_url_sentinels *s, const char *name)
{
    if (!is_name(name))
        return rlk_error_set(EINVAL,
                             "URL: the master's name is empty, has more than %d "
                             "characters, or has a forbidden one",
                             NAME_LEN_MAX);
    if (s->master && strcmp(s->master, name) != 0)
        return rlk_error_set(EINVAL,
                             "URL: the master's name is given twice, and differs");
    return copy_text(&s->master, name);
}

int rlk_url_sentinel_set(struct rlk_endpoint *endpoint, const char *parameter,
                         const char *value)
{
    struct rlk_url_sentinels *s = &endpoint->sentinels;

    if (rlk_url_sentinel_is_name(parameter))
        return set_master(s, value);
    if (!value[0])
        return rlk_error_set(EINVAL, "URL: parameter %s is empty", parameter);
    return copy_text(strcmp(parameter, "sentineluser") == 0 ? &s->user : &s->password,
                     value);
}

void rlk_url_sentinel_hosts_drop(struct rlk_url_sentinels *s)
{
    for (size_t i = 0; i < RLK_URL_SENTINELS_MAX; i++)
        rlk_url_wipe(&s->hosts[i].host);
    s->count = 0;
}

int rlk_url_sentinel_hosts(struct rlk_endpoint *endpoint, struct rlk_url_slice hosts)
{
    struct rlk_url_sentinels *s = &endpoint->sentinels;
    const char *comma;

    rlk_url_sentinel_hosts_drop(s);
    do {
        if (s->count == RLK_URL_SENTINELS_MAX)
            return rlk_error_set(EINVAL, "URL: more than %d sentinels",
                                 RLK_URL_SENTINELS_MAX);
        comma = rlk_url_find(hosts, ',');
        struct rlk_url_host *host = &s->hosts[s->count++];
        int rc = rlk_url_host(comma ? rlk_url_cut(&hosts, comma) : hosts, PORT_DEFAULT,
                              &host->host, &host->port);
        if (rc != 0)
            return rc;
    } while (comma);
    return 0;
}

static bool is_number(struct rlk_url_slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] < '0' || s.at[i] > '9')
            return false;
    return s.len > 0;
}

int rlk_url_sentinel_path(struct rlk_url_slice path, struct rlk_url_slice *ret_master,
                          struct rlk_url_slice *ret_db)
{
    const char *slash = rlk_url_find(path, '/');

    *ret_master = *ret_db = (struct rlk_url_slice){ path.at, 0 };
    if (slash) {
        *ret_master = rlk_url_cut(&path, slash);
        *ret_db = path;
    } else if (is_number(path)) {
        *ret_db = path;
    } else {
        *ret_master = path;
    }
    return slash && ret_master->len == 0
               ? rlk_error_set(EINVAL, "URL: no name of the master before the db")
               : 0;
}

int rlk_url_sentinel_check(struct rlk_endpoint *endpoint)
{
    const struct rlk_url_sentinels *s = &endpoint->sentinels;

    if (!s->master)
        return rlk_error_set(EINVAL, "URL: no name of the master, as in "
                                     "redis-sentinel://host:port/NAME");
    if (s->user && !s->password)
        return rlk_error_set(EINVAL, "URL: sentineluser without sentinelpassword");
    snprintf(endpoint->label, sizeof(endpoint->label), "master %s", s->master);
    return 0;
}

int rlk_url_sentinel_take(struct rlk_url_sentinels *s, const char *texts)
{
    const char *user = rlk_texts_get(texts, RLK_URL_SENTINELUSER);
    const char *password = rlk_texts_get(texts, RLK_URL_SENTINELPASSWORD);
    int rc = user ? copy_text(&s->user, user) : 0;

    return rc == 0 && password ? copy_text(&s->password, password) : rc;
}

void rlk_url_sentinel_clear(struct rlk_url_sentinels *s)
{
    rlk_url_sentinel_hosts_drop(s);
    rlk_url_wipe(&s->master);
    rlk_url_wipe(&s->user);
    rlk_url_wipe(&s->password);
}
