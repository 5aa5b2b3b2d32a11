/* SPDX-License-Identifier: Apache-2.0 */
/* A client's attribute for clusters: a text in the attribute object. Thread: any. */
#include "lock/attr.h"
#include "lock/call.h"

#include "base/texts.h"
#include "net/url.h"

#include <errno.h>

static int set_map(rlock_clientattr_t *attr, const char *map)
{
    return rlk_texts_set(attr->rlk_texts, sizeof(attr->rlk_texts), RLK_URL_ADDRESSMAP,
                         map ? map : "")
               ? 0
               : rlk_error_set(ENAMETOOLONG, "the address map is too long");
}

int rlock_clientattr_setaddressmap(rlock_clientattr_t *attr, const char *map)
{
    struct rlk_call call = rlk_call_enter();
    int rc = rlk_client_api_attr_good(attr) ? set_map(attr, map) : EINVAL;

    return rlk_call_leave(call, rc);
}
