/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The till guarded by rlock. This is the whole migration from a lock between threads
 * to a lock between hosts; with pthread it would read
 *
 *     pthread_mutex_init(&till, &attr);
 *     pthread_mutex_lock(&till);
 *     pthread_mutex_unlock(&till);
 *
 * New are the name, which makes it one lock for all processes, and the lease: how long
 * the lock outlives a holder that died. A living holder's lease is renewed.
 */
#include "sale.h"

#include <rlock.h>
#include <stdio.h>
#include <unistd.h>

static rlock_mutex_t till;

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: %s (%s)\n", what, rlock_strerror(rc), rlock_errmsg());
    _exit(2);
}

static void till_open(void)
{
    rlock_mutexattr_t attr;
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setlease(&attr, SALE_LEASE_MS);
    must(rlock_mutex_init(&till, &attr, "flash-sale"), "init");
    rlock_mutexattr_destroy(&attr);
}

static void till_lock(void)
{
    must(rlock_mutex_lock(&till), "lock");
}

static void till_unlock(void)
{
    must(rlock_mutex_unlock(&till), "unlock");
}

const struct till till_with_rlock = {
    .word = "rlock",
    .title = "rlock, lease of 2 s",
    .lesson = "renewed while its holder lives, handed on when the dead one's lease ends",
    .patience_ms = 30000,
    .open = till_open,
    .lock = till_lock,
    .unlock = till_unlock,
};
