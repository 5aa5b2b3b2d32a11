/* SPDX-License-Identifier: Apache-2.0 */
/* See go_mutex.h. The state is one word that is only changed by compare-and-swap; whoever
 * sleeps does so in a line of its own futexes. */
#include "go_mutex.h"

#include "bench.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOCKED = 1,
    WOKEN = 2,    /* one is awake and will try: unlock wakes nobody */
    STARVING = 4, /* the lock goes to the first of the line, nobody takes it */
    ONE = 8       /* sleeper */
};
enum { SPINS = 4, PAUSES = 30 };

#define STARVED_NS (NS_PER_S / 1000)

struct go_sleeper {
    struct go_sleeper *next;
    _Atomic uint32_t awake;
};

static void pause_briefly(void)
{
    for (int i = 0; i < PAUSES; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#else
        atomic_signal_fence(memory_order_seq_cst);
#endif
    }
}

static long futex(_Atomic uint32_t *word, int what, uint32_t value)
{
    return syscall(SYS_futex, word, what | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* ---- the line of sleepers */

static void guard(struct go_mutex *m)
{
    while (atomic_exchange_explicit(&m->guard, 1, memory_order_acquire) != 0)
        pause_briefly();
}

static void unguard(struct go_mutex *m)
{
    atomic_store_explicit(&m->guard, 0, memory_order_release);
}

/* Who has slept before goes to the front again. */
static void sleep_in_line(struct go_mutex *m, bool again)
{
    struct go_sleeper self = { 0 };

    guard(m);
    if (m->permits > 0) {
        m->permits--;
        unguard(m);
        return;
    }
    if (!m->first) {
        m->first = m->last = &self;
    } else if (again) {
        self.next = m->first;
        m->first = &self;
    } else {
        m->last->next = &self;
        m->last = &self;
    }
    unguard(m);
    while (atomic_load_explicit(&self.awake, memory_order_acquire) == 0)
        futex(&self.awake, FUTEX_WAIT, 0);
}

static void wake_first(struct go_mutex *m)
{
    guard(m);
    struct go_sleeper *first = m->first;
    if (first)
        m->first = first->next;
    else
        m->permits++;
    unguard(m);
    if (!first)
        return;
    _Atomic uint32_t *word = &first->awake;
    atomic_store_explicit(word, 1, memory_order_release);
    futex(word, FUTEX_WAKE, 1); /* its stack may be gone: a wake-up of nobody */
}

/* ---- the mutex */

static bool swap(struct go_mutex *m, uint32_t *old, uint32_t new)
{
    return atomic_compare_exchange_strong(&m->state, old, new);
}

static void lock_slowly(struct go_mutex *m)
{
    int64_t since = 0;
    bool starving = false, woken = false;
    int spins = 0;
    uint32_t old = atomic_load(&m->state);

    for (;;) {
        if ((old & (LOCKED | STARVING)) == LOCKED && spins < SPINS) {
            uint32_t seen = old;
            if (!woken && !(old & WOKEN) && old >= ONE && swap(m, &seen, old | WOKEN))
                woken = true;
            pause_briefly();
            spins++;
            old = atomic_load(&m->state);
            continue;
        }
        uint32_t new = old;
        if (!(old & STARVING))
            new |= LOCKED;
        if (old & (LOCKED | STARVING))
            new += ONE;
        if (starving && (old & LOCKED))
            new |= STARVING;
        if (woken)
            new &= ~(uint32_t)WOKEN;
        if (!swap(m, &old, new))
            continue;
        if (!(old & (LOCKED | STARVING)))
            return;
        bool again = since != 0;
        if (!again)
            since = now_ns();
        sleep_in_line(m, again);
        starving = starving || now_ns() - since > STARVED_NS;
        old = atomic_load(&m->state);
        if (old & STARVING) { /* it was handed over to this thread */
            uint32_t change = (uint32_t)LOCKED - ONE;
            if (!starving || old / ONE == 1)
                change -= STARVING;
            atomic_fetch_add(&m->state, change);
            return;
        }
        woken = true;
        spins = 0;
    }
}

void go_mutex_lock(struct go_mutex *m)
{
    uint32_t free_one = 0;
    if (!swap(m, &free_one, LOCKED))
        lock_slowly(m);
}

void go_mutex_unlock(struct go_mutex *m)
{
    uint32_t old = atomic_fetch_sub(&m->state, LOCKED) - LOCKED;

    if (old == 0)
        return;
    if (old & STARVING) {
        wake_first(m);
        return;
    }
    while (old >= ONE && !(old & (LOCKED | WOKEN | STARVING))) {
        if (swap(m, &old, (old - ONE) | WOKEN)) {
            wake_first(m);
            return;
        }
    }
}
