/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which threads may be inside OpenSSL. OpenSSL has mutexes of its own, and an atexit()
 * handler that frees all of its state at exit(), while the library's threads still run.
 * Therefore the library counts its threads that are inside OpenSSL. A fork waits until
 * there are none, because the child could wait forever for a mutex that a thread of the
 * parent held. After exit() has begun, no thread enters.
 *
 * OpenSSL registers its handler at its first use. Handlers run in the reverse order of
 * their registration. So the handler here, which is registered later, runs before
 * OpenSSL's. Thread: any.
 */
#include "net/tls_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { HELD = 1, ENDED = 2, END_MS = 1000 };

static atomic_uint inside;
static atomic_uint closed; /* HELD | ENDED */
static rlk_once_t once = RLK_ONCE_INIT;
static int once_rc;
static void (*_Atomic exit_fn)(void);

/* Whether the thread may enter. */
static bool try_enter(void)
{
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&closed) == 0)
        return true;
    atomic_fetch_sub(&inside, 1);
    return false;
}

bool rlk_tls_gate_enter(void)
{
    /* exit() in a signal's handler must not run the end of clients here */
    rlk_sync_sections.count++;
    while (!try_enter()) {
        if (atomic_load(&closed) & ENDED) {
            rlk_sync_sections.count--;
            return false;
        }
        rlk_sync_pause();
    }
    rlk_sync_sections.in_tls = true;
    ERR_set_mark();
    return true;
}

void rlk_tls_gate_leave(void)
{
    ERR_pop_to_mark();
    rlk_sync_sections.in_tls = false;
    atomic_fetch_sub(&inside, 1);
    rlk_sync_sections.count--;
}

/* ---- forks */

/* rule: P5 */
void rlk_tls_hold(void)
{
    /* this thread itself may be inside: a signal's handler that forks interrupted it */
    unsigned own = rlk_sync_sections.in_tls ? 1 : 0;

    atomic_fetch_or(&closed, HELD);
    while (atomic_load(&inside) > own)
        rlk_sync_pause();
}

void rlk_tls_unhold(void)
{
    atomic_fetch_and(&closed, ~(unsigned)HELD);
}

void rlk_tls_forget(void)
{
    atomic_store(&inside, rlk_sync_sections.in_tls ? 1 : 0);
    rlk_tls_unhold();
}

/* ---- the end of the process */

void rlk_tls_set_exit(void (*at_exit)(void))
{
    atomic_store(&exit_fn, at_exit);
}

/* rule: P5 */
void rlk_tls_end(void)
{
    int64_t until = rlk_clock_mono() + END_MS * RLK_NS_PER_MS;
    unsigned own = rlk_sync_sections.in_tls ? 1 : 0;

    atomic_fetch_or(&closed, ENDED);
    while (atomic_load(&inside) > own && rlk_clock_mono() < until)
        rlk_sync_pause();
}

bool rlk_tls_ended(void)
{
    return (atomic_load(&closed) & ENDED) != 0;
}

static void process_exits(void)
{
    void (*fn)(void) = atomic_load(&exit_fn);

    if (fn)
        fn();
    rlk_tls_end();
}

static void init(void)
{
    if (OPENSSL_init_ssl(0, NULL) != 1)
        once_rc = EAGAIN;
    else if (atexit(process_exits) != 0)
        once_rc = ENOMEM;
}

int rlk_tls_gate_open(void)
{
    rlk_sync_once(&once, init);
    return once_rc;
}
