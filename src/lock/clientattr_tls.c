/* SPDX-License-Identifier: Apache-2.0 */
/* A client's attributes for TLS: texts in the attribute object. Thread: any. */
#include "lock/attr.h"
#include "lock/call.h"

#include "base/texts.h"
#include "net/url.h"

#include <errno.h>
#include <string.h>

static int set(rlock_clientattr_t *attr, enum rlk_url_text tag, const char *text)
{
    if (!rlk_tls_is_built())
        return rlk_error_set(ENOTSUP, "this library was built without TLS");
    if (!rlk_texts_set(attr->rlk_texts, sizeof(attr->rlk_texts), (unsigned char)tag,
                       text))
        return rlk_error_set(ENAMETOOLONG,
                             "the attributes for TLS have more than %zu bytes in total",
                             sizeof(attr->rlk_texts) - RLK_URL_TEXT_LIMIT * 2);
    return 0;
}

static int call_set(rlock_clientattr_t *attr, enum rlk_url_text tag, const char *what,
                    const char *text)
{
    struct rlk_call call = rlk_call_enter();
    int rc = EINVAL;

    if (rlk_client_api_attr_good(attr) && rlk_error_argument_there(what, text))
        rc = set(attr, tag, text);
    return rlk_call_leave(call, rc);
}

int rlock_clientattr_setcafile(rlock_clientattr_t *attr, const char *path)
{
    return call_set(attr, RLK_URL_CAFILE, "path", path);
}

int rlock_clientattr_setcadir(rlock_clientattr_t *attr, const char *path)
{
    return call_set(attr, RLK_URL_CADIR, "path", path);
}

int rlock_clientattr_setcertfile(rlock_clientattr_t *attr, const char *path)
{
    return call_set(attr, RLK_URL_CERTFILE, "path", path);
}

int rlock_clientattr_setkeyfile(rlock_clientattr_t *attr, const char *path)
{
    return call_set(attr, RLK_URL_KEYFILE, "path", path);
}

int rlock_clientattr_settlsname(rlock_clientattr_t *attr, const char *name)
{
    return call_set(attr, RLK_URL_TLSNAME, "name", name);
}

int rlock_clientattr_setverify(rlock_clientattr_t *attr, int verify)
{
    struct rlk_call call = rlk_call_enter();
    int rc = EINVAL;

    if (rlk_client_api_attr_good(attr) &&
        rlk_error_argument_in("verify", verify, RLOCK_VERIFY_FULL, RLOCK_VERIFY_CA))
        rc = set(attr, RLK_URL_VERIFY, verify == RLOCK_VERIFY_CA ? "ca" : "full");
    return rlk_call_leave(call, rc);
}

int rlock_clientattr_getverify(const rlock_clientattr_t *attr, int *ret_verify)
{
    struct rlk_call call = rlk_call_enter();
    int rc = EINVAL;

    if (rlk_client_api_attr_good(attr) &&
        rlk_error_argument_there("ret_verify", ret_verify)) {
        const char *text = rlk_texts_get(attr->rlk_texts, RLK_URL_VERIFY);
        *ret_verify =
            text && strcmp(text, "ca") == 0 ? RLOCK_VERIFY_CA : RLOCK_VERIFY_FULL;
        rc = 0;
    }
    return rlk_call_leave(call, rc);
}
