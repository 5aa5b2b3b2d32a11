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

enum { HELD = 1, ENDED = 2, INSIDE = 4, END_MS = 1000, OWN_MS = 100 };

static atomic_uint gate; /* HELD, ENDED, and INSIDE for each thread inside */
static rlk_once_t once = RLK_ONCE_INIT;
static int once_rc;
static void (*_Atomic exit_fn)(void);
static bool is_held; /* the newest rlk_tls_hold has found nobody inside */

/* Whether the thread has entered. */
static bool try_enter(void)
{
    unsigned seen = atomic_load(&gate);

    while ((seen & (HELD | ENDED)) == 0)
        if (atomic_compare_exchange_weak(&gate, &seen, seen + INSIDE))
            return true;
    return false;
}

/* Whether nobody but the calling thread is inside. The thread itself may be: this may be
 * a signal's handler. If the signal came as the thread entered or left, `in_tls` does not
 * tell; then the last thread inside counts as this one after OWN_MS. own_sections: the
 * mutexes that the caller holds. */
static bool is_empty(int own_sections, int64_t began)
{
    unsigned inside = atomic_load(&gate) / INSIDE;

    if (inside == 0)
        return true;
    return inside == 1 && rlk_sync_sections.count > own_sections &&
           (rlk_sync_sections.in_tls ||
            rlk_clock_mono() - began >= OWN_MS * RLK_NS_PER_MS);
}

bool rlk_tls_gate_enter(void)
{
    /* exit() in a signal's handler must not run the end of clients here */
    rlk_sync_sections.count++;
    while (!try_enter()) {
        if (rlk_tls_ended()) {
            rlk_sync_sections.count--;
            return false;
        }
        rlk_sync_pause();
    }
    rlk_sync_sections.in_tls = true;
    ERR_clear_error();
    return true;
}

void rlk_tls_gate_leave(void)
{
    ERR_clear_error();
    rlk_sync_sections.in_tls = false;
    unsigned seen = atomic_load(&gate);
    /* in a child that a signal's handler forked, the thread may not be counted */
    while (seen >= INSIDE && !atomic_compare_exchange_weak(&gate, &seen, seen - INSIDE))
        continue;
    rlk_sync_sections.count--;
}

/* ---- forks */

/* rule: P5 */
void rlk_tls_hold(void)
{
    int64_t began = rlk_clock_mono();

    atomic_fetch_or(&gate, HELD);
    /* Bounded, because a thread inside may wait for a mutex of OpenSSL that the code
     * holds which this handler has interrupted. */
    while (!is_empty(1, began) && rlk_clock_mono() - began < END_MS * RLK_NS_PER_MS)
        rlk_sync_pause();
    is_held = is_empty(1, began);
}

void rlk_tls_unhold(void)
{
    atomic_fetch_and(&gate, ~(unsigned)HELD);
}

bool rlk_tls_forget(bool late)
{
    unsigned own = rlk_sync_sections.in_tls ? INSIDE : 0;

    atomic_store(&gate, (atomic_load(&gate) & ENDED) | own);
    return !late && is_held;
}

/* ---- the end of the process */

void rlk_tls_set_exit(void (*at_exit)(void))
{
    atomic_store(&exit_fn, at_exit);
}

/* rule: P5 */
void rlk_tls_end(void)
{
    int64_t began = rlk_clock_mono();

    atomic_fetch_or(&gate, ENDED);
    while (!is_empty(0, began) && rlk_clock_mono() - began < END_MS * RLK_NS_PER_MS)
        rlk_sync_pause();
}

bool rlk_tls_ended(void)
{
    return (atomic_load(&gate) & ENDED) != 0;
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
