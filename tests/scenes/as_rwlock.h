/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a test of the mutex a test of the read-write lock's writers, as as_fair.h does
 * for the fair lock: each statement about rlock_mutex_* is then one about
 * rlock_rwlock_wr*. Where the two differ, a test checks AS_RWLOCK.
 */
#ifndef TEST_AS_RWLOCK_H
#define TEST_AS_RWLOCK_H

#include "lua_scripts.h" /* before the names in it get a new meaning */

#include <rlock.h>

#define AS_RWLOCK 1

#define rlock_mutex_t rlock_rwlock_t
#undef RLOCK_MUTEX_INITIALIZER
#define RLOCK_MUTEX_INITIALIZER RLOCK_RWLOCK_INITIALIZER
#define RLOCK_TYPE_MUTEX RLOCK_TYPE_RWLOCK

#define rlock_mutexattr_t rlock_rwlockattr_t
#define rlock_mutexattr_init rlock_rwlockattr_init
#define rlock_mutexattr_destroy rlock_rwlockattr_destroy
#define rlock_mutexattr_settype rlock_rwlockattr_setkind_np /* its kind is its type */
#define rlock_mutexattr_setpshared rlock_rwlockattr_setpshared
#define rlock_mutexattr_getpshared rlock_rwlockattr_getpshared
#define rlock_mutexattr_setlease rlock_rwlockattr_setlease
#define rlock_mutexattr_getlease rlock_rwlockattr_getlease
#define rlock_mutexattr_setretain rlock_rwlockattr_setretain
#define rlock_mutexattr_setfencing rlock_rwlockattr_setfencing
#define rlock_mutexattr_getfencing rlock_rwlockattr_getfencing
#define rlock_mutexattr_setoutage rlock_rwlockattr_setoutage
#define rlock_mutexattr_getoutage rlock_rwlockattr_getoutage
#define rlock_mutexattr_setclient rlock_rwlockattr_setclient
#define rlock_mutexattr_getclient rlock_rwlockattr_getclient

#define rlock_mutex_init rlock_rwlock_init
#define rlock_mutex_destroy rlock_rwlock_destroy
#define rlock_mutex_lock rlock_rwlock_wrlock
#define rlock_mutex_trylock rlock_rwlock_trywrlock
#define rlock_mutex_timedlock rlock_rwlock_timedwrlock
#define rlock_mutex_clocklock rlock_rwlock_clockwrlock
#define rlock_mutex_unlock rlock_rwlock_unlock
#define rlock_mutex_lock_lease rlock_rwlock_wrlock_lease
#define rlock_mutex_trylock_lease rlock_rwlock_trywrlock_lease
#define rlock_mutex_timedlock_lease rlock_rwlock_timedwrlock_lease
#define rlock_mutex_clocklock_lease rlock_rwlock_clockwrlock_lease
#define rlock_mutex_extend rlock_rwlock_extend
#define rlock_mutex_gettoken rlock_rwlock_gettoken
#define rlock_mutex_getremaining rlock_rwlock_getremaining
#define rlock_mutex_getstate rlock_rwlock_getstate
#define rlock_mutex_getholdcount rlock_rwlock_getholdcount

#define RLK_MUTEX_ACQUIRE RLK_RWLOCK_WRITE
#define RLK_MUTEX_RELEASE RLK_RWLOCK_RELEASE
#define RLK_MUTEX_RENEW RLK_RWLOCK_RENEW
#define RLK_MUTEX_CANCEL RLK_RWLOCK_CANCEL
#define RLK_MUTEX_REFRESH RLK_RWLOCK_REFRESH

#endif
