/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of locks: what all types have in common. Each function is the public one of
 * its name; `magic` says of which type the object must be. */
#ifndef RLK_ATTR_H
#define RLK_ATTR_H

#include "lock/handle.h"

#define RLK_ATTR_UNSET (-1) /* rlk_type, rlk_handoff_*, rlk_retain_ms: not set */

/* Whether `attr` is an object of that type; if not, the message says what is wrong. */
bool rlk_client_api_attr_good(const rlock_clientattr_t *attr); /* of a client */
bool rlk_attr_good(const struct rlk_attr *attr, uint32_t magic);

/* The frame of every getter and setter. A condition that fails has set the message. */
#define RLK_ATTR_CALL(attr, magic, condition, ...)                                       \
    do {                                                                                 \
        struct rlk_call call = rlk_call_enter();                                         \
        int rc = 0;                                                                      \
        if (!rlk_attr_good(attr, magic) || !(condition))                                 \
            rc = EINVAL;                                                                 \
        else                                                                             \
            __VA_ARGS__;                                                                 \
        return rlk_call_leave(call, rc);                                                 \
    } while (0)

int rlk_attr_init(struct rlk_attr *attr, uint32_t magic);
int rlk_attr_destroy(struct rlk_attr *attr, uint32_t magic);
int rlk_attr_setpshared(struct rlk_attr *attr, uint32_t magic, int pshared);
int rlk_attr_getpshared(const struct rlk_attr *attr, uint32_t magic, int *ret_pshared);
int rlk_attr_setlease(struct rlk_attr *attr, uint32_t magic, long lease_ms);
int rlk_attr_getlease(const struct rlk_attr *attr, uint32_t magic, long *ret_lease_ms);
int rlk_attr_setfencing(struct rlk_attr *attr, uint32_t magic, int fencing);
int rlk_attr_getfencing(const struct rlk_attr *attr, uint32_t magic, int *ret_fencing);
int rlk_attr_setoutage(struct rlk_attr *attr, uint32_t magic, int outage);
int rlk_attr_getoutage(const struct rlk_attr *attr, uint32_t magic, int *ret_outage);
int rlk_attr_setclient(struct rlk_attr *attr, uint32_t magic, rlock_client_t *client);
int rlk_attr_getclient(const struct rlk_attr *attr, uint32_t magic,
                       rlock_client_t **ret_client);

/* The base of a public object: its first member, so that NULL stays NULL. */
#define BASE(attr) ((struct rlk_attr *)(attr))
#define CONST_BASE(attr) ((const struct rlk_attr *)(attr))

#endif
