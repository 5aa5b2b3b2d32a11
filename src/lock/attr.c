/* SPDX-License-Identifier: Apache-2.0 */
/* What the attributes of all lock types have in common: plain data of the caller. Thread:
 * any. */
#include "lock/attr.h"

#include "client/client.h"
#include "lock/call.h"

#include <string.h>

bool rlk_attr_good(const struct rlk_attr *attr, uint32_t magic)
{
    if (!rlk_error_argument_there("the attributes object", attr))
        return false;
    if (attr->rlk_magic != magic)
        rlk_error_set(EINVAL,
                      "the attributes object is not initialised, was destroyed, or is "
                      "of another type of lock");
    return attr->rlk_magic == magic;
}

int rlk_attr_init(struct rlk_attr *attr, uint32_t magic)
{
    struct rlk_call call = rlk_call_enter();
    if (attr) {
        memset(attr, 0, sizeof(*attr));
        attr->rlk_type = RLK_ATTR_UNSET;
        attr->rlk_handoff_ms = attr->rlk_handoff_count = RLK_ATTR_UNSET;
        attr->rlk_retain_ms = RLK_ATTR_UNSET;
        attr->rlk_magic = magic;
    }
    return rlk_call_leave(
        call, rlk_error_argument_there("the attributes object", attr) ? 0 : EINVAL);
}

int rlk_attr_destroy(struct rlk_attr *attr, uint32_t magic)
{
    RLK_ATTR_CALL(attr, magic, true, memset(attr, 0, sizeof(*attr)));
}

int rlk_attr_setpshared(struct rlk_attr *attr, uint32_t magic, int pshared)
{
    RLK_ATTR_CALL(attr, magic,
                  rlk_error_argument_in("pshared", pshared, RLOCK_PROCESS_PRIVATE,
                                        RLOCK_PROCESS_SHARED),
                  attr->rlk_pshared = pshared);
}

int rlk_attr_getpshared(const struct rlk_attr *attr, uint32_t magic, int *ret_pshared)
{
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_there("ret_pshared", ret_pshared),
                  *ret_pshared = attr->rlk_pshared);
}

int rlk_attr_setlease(struct rlk_attr *attr, uint32_t magic, long lease_ms)
{
    RLK_ATTR_CALL(attr, magic, rlk_handle_lease_or_0(lease_ms),
                  attr->rlk_lease_ms = (int32_t)lease_ms);
}

int rlk_attr_getlease(const struct rlk_attr *attr, uint32_t magic, long *ret_lease_ms)
{
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_there("ret_lease_ms", ret_lease_ms),
                  *ret_lease_ms = attr->rlk_lease_ms);
}

int rlk_attr_setfencing(struct rlk_attr *attr, uint32_t magic, int fencing)
{
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_in("fencing", fencing, 0, 1),
                  attr->rlk_fencing = fencing);
}

int rlk_attr_getfencing(const struct rlk_attr *attr, uint32_t magic, int *ret_fencing)
{
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_there("ret_fencing", ret_fencing),
                  *ret_fencing = attr->rlk_fencing);
}

int rlk_attr_setoutage(struct rlk_attr *attr, uint32_t magic, int outage)
{
    RLK_ATTR_CALL(
        attr, magic,
        rlk_error_argument_in("outage", outage, RLOCK_OUTAGE_WAIT, RLOCK_OUTAGE_ABORT),
        attr->rlk_outage = outage);
}

int rlk_attr_getoutage(const struct rlk_attr *attr, uint32_t magic, int *ret_outage)
{
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_there("ret_outage", ret_outage),
                  *ret_outage = attr->rlk_outage);
}

int rlk_attr_setclient(struct rlk_attr *attr, uint32_t magic, rlock_client_t *client)
{
    uint64_t number = 0;
    RLK_ATTR_CALL(attr, magic, true, rc = rlk_client_check_process();
                  if (rc == 0 && client && !rlk_client_is_open(client, &number)) rc =
                      rlk_error_set(EINVAL, "the client is not open");
                  if (rc == 0) attr->rlk_client = number);
}

int rlk_attr_getclient(const struct rlk_attr *attr, uint32_t magic,
                       rlock_client_t **ret_client)
{
    struct rlock_client *client = NULL;
    RLK_ATTR_CALL(attr, magic, rlk_error_argument_there("ret_client", ret_client),
                  if (attr->rlk_client != 0) rc =
                      rlk_client_peek(attr->rlk_client, &client);
                  if (rc == 0 && attr->rlk_client != 0 && !client) rc =
                      rlk_error_set(EINVAL, "the client in the attributes is closed");
                  if (client) rlk_client_put(client); if (rc == 0) *ret_client = client);
}
