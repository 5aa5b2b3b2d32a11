/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a test of the mutex a test of the fair lock. A program's second target in
 * local.mk includes this file (-include) before every file of the program. Then each
 * statement about rlock_mutex_* is one about rlock_fair_*. Both types use pthread's
 * attributes and constants. Where the two types differ, a test checks AS_FAIR.
 */
#ifndef TEST_AS_FAIR_H
#define TEST_AS_FAIR_H

#include "lua_scripts.h" /* before the names in it get a new meaning */

#include <rlock.h>

#define AS_FAIR 1

#define rlock_mutex_t rlock_fair_t
#undef RLOCK_MUTEX_INITIALIZER
#define RLOCK_MUTEX_INITIALIZER RLOCK_FAIR_INITIALIZER
#define RLOCK_TYPE_MUTEX RLOCK_TYPE_FAIR

#define rlock_mutex_init rlock_fair_init
#define rlock_mutex_destroy rlock_fair_destroy
#define rlock_mutex_lock rlock_fair_lock
#define rlock_mutex_trylock rlock_fair_trylock
#define rlock_mutex_timedlock rlock_fair_timedlock
#define rlock_mutex_clocklock rlock_fair_clocklock
#define rlock_mutex_unlock rlock_fair_unlock
#define rlock_mutex_consistent rlock_fair_consistent
#define rlock_mutex_consistent_np rlock_fair_consistent_np
#define rlock_mutex_getprioceiling rlock_fair_getprioceiling
#define rlock_mutex_setprioceiling rlock_fair_setprioceiling
#define rlock_mutex_lock_lease rlock_fair_lock_lease
#define rlock_mutex_trylock_lease rlock_fair_trylock_lease
#define rlock_mutex_timedlock_lease rlock_fair_timedlock_lease
#define rlock_mutex_clocklock_lease rlock_fair_clocklock_lease
#define rlock_mutex_extend rlock_fair_extend
#define rlock_mutex_gettoken rlock_fair_gettoken
#define rlock_mutex_getremaining rlock_fair_getremaining
#define rlock_mutex_getstate rlock_fair_getstate
#define rlock_mutex_getholdcount rlock_fair_getholdcount

#define RLK_MUTEX_ACQUIRE RLK_FAIR_ACQUIRE
#define RLK_MUTEX_RELEASE RLK_FAIR_RELEASE
#define RLK_MUTEX_RENEW RLK_FAIR_RENEW
#define RLK_MUTEX_CANCEL RLK_FAIR_CANCEL
#define RLK_MUTEX_REFRESH RLK_FAIR_REFRESH

#endif
