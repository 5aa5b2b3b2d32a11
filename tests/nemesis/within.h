/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a wait for a condition from within: a wait gives its lock up and takes it
 * again, and the judge is to know when the thread was awake, and by which id it waited.
 * So calls from the library's wait to two of its other functions come by here.
 */
#ifndef NEM_WITHIN_H
#define NEM_WITHIN_H

struct rlk_condition;
struct rlk_handle;
struct rlk_wait;

typedef int (*nem_retake_fn)(struct rlk_handle *handle, int kind, unsigned levels,
                             long lease_ms);

/* These two are the worker's: */

/* A wait has begun, and nothing of it was sent. wait NULL: it could not begin. Locks:
 * holds the registry's mu. */
void nem_within_begins(struct rlk_condition *condition, const struct rlk_wait *wait);
/* The thread is awake. Calls `retake`, which takes the lock, and returns its code. */
int nem_within_retakes(nem_retake_fn retake, struct rlk_handle *handle, int kind,
                       unsigned levels, long lease_ms);

#endif
