/* SPDX-License-Identifier: Apache-2.0 */
/* The mutex: rlock_mutex_*. What it does is in exclusive.c, how it waits in acquire.c,
 * what it says to the server in lua/mutex_*.lua. Thread: any. */
#include "lock/exclusive.h"

#define API(verb) rlock_mutex_##verb
#define HANDLE rlock_mutex_t
#define KIND RLK_KIND_MUTEX
#define ATTR rlock_mutexattr_t
#define ATTR_MAGIC RLK_MAGIC_MUTEXATTR

#include "lock/exclusive_api.h"
