/* SPDX-License-Identifier: Apache-2.0 */
/* The settings for TLS, by their names in URLs. No state. Thread: any. */
#include "net/url.h"

#include "base/error.h"
#include "base/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[RLK_URL_VERIFY + 1] = {
    [RLK_URL_CAFILE] = "cafile",     [RLK_URL_CADIR] = "cadir",
    [RLK_URL_CERTFILE] = "certfile", [RLK_URL_KEYFILE] = "keyfile",
    [RLK_URL_TLSNAME] = "tlsname",   [RLK_URL_VERIFY] = "verify",
};

static enum rlk_url_text find(const char *name)
{
    enum rlk_url_text which = RLK_URL_CAFILE;

    while (which < RLK_URL_VERIFY && strcmp(name, names[which]) != 0)
        which++;
    return which;
}

static char **text_of(struct rlk_tls_settings *settings, enum rlk_url_text which)
{
    switch (which) {
    case RLK_URL_CAFILE:
        return &settings->cafile;
    case RLK_URL_CADIR:
        return &settings->cadir;
    case RLK_URL_CERTFILE:
        return &settings->certfile;
    case RLK_URL_KEYFILE:
        return &settings->keyfile;
    case RLK_URL_TLSNAME:
        return &settings->name;
    case RLK_URL_VERIFY:
    case RLK_URL_SENTINELUSER:
    case RLK_URL_SENTINELPASSWORD:
    case RLK_URL_TEXT_LIMIT:
    default:
        return NULL;
    }
}

/* rule: P2 */
/* No value switches the check off. */
static int set_verify(struct rlk_tls_settings *settings, const char *value,
                      const char *where)
{
    bool any_name = strcmp(value, "ca") == 0;

    if (!any_name && strcmp(value, "full") != 0)
        return rlk_error_set(EINVAL, "%s: verify is not full or ca", where);
    settings->any_name = any_name;
    settings->verify_set = true;
    return 0;
}

/* Only names without special characters, because messages show the name, and the server
 * gets it. */
static bool is_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("/@?#\"\\", *c))
            return false;
    return name[0] != '.' && strlen(name) <= 255; /* .a.b: OpenSSL takes x.a.b for it */
}

int rlk_url_tls_set(struct rlk_tls_settings *settings, const char *name,
                    const char *value, const char *where)
{
    enum rlk_url_text which = find(name);

    if (which == RLK_URL_VERIFY)
        return set_verify(settings, value, where);
    char **text = text_of(settings, which);
    if (!value[0])
        return rlk_error_set(EINVAL, "%s: %s is empty", where, name);
    if (which == RLK_URL_TLSNAME && !is_name(value))
        return rlk_error_set(EINVAL, "%s: tlsname is not a host name", where);
    char *copy = strdup(value);
    if (!copy)
        return rlk_error_set(ENOMEM, "out of memory");
    free(*text);
    *text = copy;
    return 0;
}

/* The setting that makes sense only together with this one: authorities, or a certificate
 * and its key. Else the same. */
static enum rlk_url_text partner_of(enum rlk_url_text which)
{
    switch (which) {
    case RLK_URL_CAFILE:
        return RLK_URL_CADIR;
    case RLK_URL_CADIR:
        return RLK_URL_CAFILE;
    case RLK_URL_CERTFILE:
        return RLK_URL_KEYFILE;
    case RLK_URL_KEYFILE:
        return RLK_URL_CERTFILE;
    case RLK_URL_TLSNAME:
    case RLK_URL_VERIFY:
    case RLK_URL_TEXT_LIMIT:
    default:
        return which;
    }
}

bool rlk_url_tls_has(struct rlk_tls_settings *settings, const char *name)
{
    enum rlk_url_text which = find(name);

    if (which == RLK_URL_VERIFY)
        return settings->verify_set;
    char **text = text_of(settings, which),
         **partner = text_of(settings, partner_of(which));
    return *text || *partner;
}

static void drop(struct rlk_tls_settings *settings, enum rlk_url_text which)
{
    char **text = text_of(settings, which);

    if (!text)
        return;
    free(*text);
    *text = NULL;
}

void rlk_url_tls_drop(struct rlk_tls_settings *settings, const char *name)
{
    drop(settings, find(name));
    drop(settings, partner_of(find(name)));
}

const char *rlk_url_tls_partner(const char *name)
{
    return names[partner_of(find(name))];
}

int rlk_url_tls_take(struct rlk_tls_settings *settings, const char *texts)
{
    int rc = 0;

    for (enum rlk_url_text tag = RLK_URL_CAFILE; rc == 0 && tag <= RLK_URL_VERIFY;
         tag++) {
        const char *text = rlk_texts_get(texts, (unsigned char)tag);
        if (text)
            rc = rlk_url_tls_set(settings, names[tag], text, "the client's attributes");
    }
    return rc;
}

int rlk_url_tls_check(const struct rlk_tls_settings *settings)
{
    if (settings->on && settings->keyfile && !settings->certfile)
        return rlk_error_set(EINVAL, "TLS: keyfile without certfile");
    /* rule: P2 */
    if (settings->on && settings->any_name && !settings->cafile && !settings->cadir)
        return rlk_error_set(EINVAL,
                             "TLS: verify=ca requires cafile or cadir: with the system's "
                             "authorities, any public certificate would do");
    return 0;
}

void rlk_url_tls_clear(struct rlk_tls_settings *settings)
{
    for (enum rlk_url_text which = RLK_URL_CAFILE; which <= RLK_URL_VERIFY; which++) {
        char **text = text_of(settings, which);
        if (text)
            free(*text);
    }
    *settings = (struct rlk_tls_settings){ .on = false };
}
