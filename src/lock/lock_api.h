/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public functions that every lock type has, each a line over handle.c and query.c.
 * Not a header: included once by the file of the type, which defines
 *     API(verb)    the name of a function, rlock_mutex_##verb
 *     HANDLE       the type of its handles
 *     KIND         the RLK_KIND_* in them
 *     ATTR         the type of its attributes
 *     ATTR_MAGIC   the RLK_MAGIC_* in them
 */
#include "lock/query.h"

/* NULL stays NULL: the base is the first member. */
#define BASE(handle) ((struct rlk_handle *)(handle))
#define CONST_BASE(handle) ((const struct rlk_handle *)(handle))

_Static_assert(sizeof(HANDLE) == 256 && offsetof(HANDLE, rlk) == 0, "part of the ABI");
_Static_assert(sizeof(ATTR) == 128 && offsetof(ATTR, rlk) == 0, "part of the ABI");

int API(init)(HANDLE *handle, const ATTR *attr, const char *name)
{
    return rlk_handle_init(BASE(handle), KIND, (const struct rlk_attr *)attr, ATTR_MAGIC,
                           name);
}

int API(destroy)(HANDLE *handle)
{
    return rlk_handle_destroy(BASE(handle), KIND);
}

int API(extend)(HANDLE *handle, long lease_ms)
{
    return rlk_query_extend(BASE(handle), KIND, lease_ms);
}

int API(gettoken)(const HANDLE *handle, uint64_t *ret_token)
{
    return rlk_query_gettoken(CONST_BASE(handle), KIND, ret_token);
}

int API(getremaining)(const HANDLE *handle, long *ret_ms)
{
    return rlk_query_getremaining(CONST_BASE(handle), KIND, ret_ms);
}

int API(getstate)(const HANDLE *handle, rlock_state_t *ret_state)
{
    return rlk_query_getstate(CONST_BASE(handle), KIND, ret_state);
}

int API(getholdcount)(const HANDLE *handle, unsigned *ret_count)
{
    return rlk_query_getholdcount(CONST_BASE(handle), KIND, ret_count);
}
