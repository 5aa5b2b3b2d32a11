/* SPDX-License-Identifier: Apache-2.0 */
/* The fair-queue lock: rlock_fair_*. What it does is in exclusive.c, how it waits in
 * acquire.c, what it says to the server in lua/fair_*.lua. Thread: any. */
#include "lock/exclusive.h"

#define API(verb) rlock_fair_##verb
#define HANDLE rlock_fair_t
#define KIND RLK_KIND_FAIR
#define ATTR rlock_mutexattr_t
#define ATTR_MAGIC RLK_MAGIC_MUTEXATTR

#include "lock/exclusive_api.h"
