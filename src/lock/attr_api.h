/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public attribute functions that every lock type has, each a line over attr.c. Not a
 * header: included once by the file of the type, which defines
 *     API(verb)   the name of a function, rlock_mutexattr_##verb
 *     ATTR        the type of the object
 *     MAGIC       the RLK_MAGIC_* in it
 */
#include "lock/attr.h"

/* NULL stays NULL: the base is the first member. */
#define BASE(attr) ((struct rlk_attr *)(attr))
#define CONST_BASE(attr) ((const struct rlk_attr *)(attr))

int API(init)(ATTR *attr)
{
    return rlk_attr_init(BASE(attr), MAGIC);
}

int API(destroy)(ATTR *attr)
{
    return rlk_attr_destroy(BASE(attr), MAGIC);
}

int API(setpshared)(ATTR *attr, int pshared)
{
    return rlk_attr_setpshared(BASE(attr), MAGIC, pshared);
}

int API(getpshared)(const ATTR *attr, int *ret_pshared)
{
    return rlk_attr_getpshared(CONST_BASE(attr), MAGIC, ret_pshared);
}

int API(setlease)(ATTR *attr, long lease_ms)
{
    return rlk_attr_setlease(BASE(attr), MAGIC, lease_ms);
}

int API(getlease)(const ATTR *attr, long *ret_lease_ms)
{
    return rlk_attr_getlease(CONST_BASE(attr), MAGIC, ret_lease_ms);
}

int API(setfencing)(ATTR *attr, int fencing)
{
    return rlk_attr_setfencing(BASE(attr), MAGIC, fencing);
}

int API(getfencing)(const ATTR *attr, int *ret_fencing)
{
    return rlk_attr_getfencing(CONST_BASE(attr), MAGIC, ret_fencing);
}

int API(setoutage)(ATTR *attr, int outage)
{
    return rlk_attr_setoutage(BASE(attr), MAGIC, outage);
}

int API(getoutage)(const ATTR *attr, int *ret_outage)
{
    return rlk_attr_getoutage(CONST_BASE(attr), MAGIC, ret_outage);
}

int API(setclient)(ATTR *attr, rlock_client_t *client)
{
    return rlk_attr_setclient(BASE(attr), MAGIC, client);
}

int API(getclient)(const ATTR *attr, rlock_client_t **ret_client)
{
    return rlk_attr_getclient(CONST_BASE(attr), MAGIC, ret_client);
}
