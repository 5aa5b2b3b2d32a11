/* SPDX-License-Identifier: Apache-2.0 */
/* About the calling thread's hold; each function is the public one of its name, see
 * rlock.h. */
#ifndef RLK_QUERY_H
#define RLK_QUERY_H

#include "lock/handle.h"

int rlk_query_extend(struct rlk_handle *handle, int kind, long lease_ms);
int rlk_query_gettoken(const struct rlk_handle *handle, int kind, uint64_t *ret_token);
int rlk_query_getremaining(const struct rlk_handle *handle, int kind, long *ret_ms);
int rlk_query_getstate(const struct rlk_handle *handle, int kind,
                       rlock_state_t *ret_state);
int rlk_query_getholdcount(const struct rlk_handle *handle, int kind,
                           unsigned *ret_count);

/* The base of a public object: its first member, so that NULL stays NULL. */
#define BASE(handle) ((struct rlk_handle *)(handle))
#define CONST_BASE(handle) ((const struct rlk_handle *)(handle))

#endif
