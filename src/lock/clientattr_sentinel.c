/* SPDX-License-Identifier: Apache-2.0 */
/* A client's attributes for Sentinel: texts in the attribute object. Thread: any. */
#include "lock/attr.h"
#include "lock/call.h"

#include "base/texts.h"
#include "net/url.h"

#include <errno.h>
#include <string.h>

static bool set(rlock_clientattr_t *attr, enum rlk_url_text tag, const char *text)
{
    return rlk_texts_set(attr->rlk_texts, sizeof(attr->rlk_texts), (unsigned char)tag,
                         text ? text : "");
}

/* On failure the object stays as it was. */
static int set_credentials(rlock_clientattr_t *attr, const char *user,
                           const char *password)
{
    char before[sizeof(attr->rlk_texts)];

    if (user && user[0] && (!password || !password[0]))
        return rlk_error_set(EINVAL, "user without password");
    memcpy(before, attr->rlk_texts, sizeof(before));
    bool fits = set(attr, RLK_URL_SENTINELUSER, NULL) &&
                set(attr, RLK_URL_SENTINELPASSWORD, NULL) &&
                set(attr, RLK_URL_SENTINELUSER, user) &&
                set(attr, RLK_URL_SENTINELPASSWORD, password);
    if (!fits)
        memcpy(attr->rlk_texts, before, sizeof(before));
    explicit_bzero(before, sizeof(before));
    return fits ? 0 : rlk_error_set(ENAMETOOLONG, "user or password is too long");
}

int rlock_clientattr_setsentinelcredentials(rlock_clientattr_t *attr, const char *user,
                                            const char *password)
{
    struct rlk_call call = rlk_call_enter();
    int rc =
        rlk_client_api_attr_good(attr) ? set_credentials(attr, user, password) : EINVAL;

    return rlk_call_leave(call, rc);
}
