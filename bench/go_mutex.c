/* SPDX-License-Identifier: Apache-2.0 */
/* See go_mutex.h. The state is one word, which running threads change by
 * compare-and-swap. A thread that has to wait stands in a line, which the guard protects,
 * until it gets the lock. */
#include "go_mutex.h"

#include "bench.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The state; the last three change under the guard only. */
enum {
    LOCKED = 1,
    SLEEPERS = 2, /* the line is not empty */
    AWAKE = 4,    /* the first sleeper is awake and will look: no other one is woken */
    STARVED = 8   /* the first sleeper has waited too long: it is next */
};
enum { SPINS = 4, PAUSES = 30 };
enum { ASLEEP, WOKEN, OWNER };

#define STARVED_NS (NS_PER_S / 1000)

struct go_sleeper {
    struct go_sleeper *next;
    int64_t since;
    _Atomic uint32_t news; /* the sleeper's futex */
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

static void guard(struct go_mutex *m)
{
    while (atomic_exchange_explicit(&m->guard, 1, memory_order_acquire) != 0)
        pause_briefly();
}

static void unguard(struct go_mutex *m)
{
    atomic_store_explicit(&m->guard, 0, memory_order_release);
}

/* ---- running threads */

static bool take(struct go_mutex *m)
{
    uint32_t seen = atomic_load(&m->state);
    while (!(seen & (LOCKED | STARVED)))
        if (atomic_compare_exchange_weak(&m->state, &seen, seen | LOCKED))
            return true;
    return false;
}

/* False: the caller has to wake the first sleeper, or to hand the mutex to it. */
static bool leave(struct go_mutex *m)
{
    uint32_t seen = atomic_load(&m->state);
    while (!(seen & STARVED) && (seen & (SLEEPERS | AWAKE)) != SLEEPERS)
        if (atomic_compare_exchange_weak(&m->state, &seen, seen & ~(uint32_t)LOCKED))
            return true;
    return false;
}

/* ---- the line. Under the guard. */

static void tell(struct go_sleeper *sleeper, uint32_t news)
{
    _Atomic uint32_t *word = &sleeper->news;
    atomic_store_explicit(word, news, memory_order_release);
    /* the new owner and its stack may be gone by now: then this wakes no thread */
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/* The first sleeper leaves the line: it has the lock. */
static void pop(struct go_mutex *m)
{
    m->first = m->first->next;
    uint32_t over = AWAKE | STARVED | (m->first ? 0 : SLEEPERS);
    atomic_fetch_and(&m->state, ~over);
    if (m->first && now_ns() - m->first->since > STARVED_NS)
        atomic_fetch_or(&m->state, STARVED);
}

static void lock_in_line(struct go_mutex *m)
{
    struct go_sleeper self = { .since = now_ns() };

    guard(m);
    *(m->first ? &m->last->next : &m->first) = &self;
    m->last = &self;
    atomic_fetch_or(&m->state, SLEEPERS);
    for (bool first = m->first == &self;; first = true) {
        /* Only the first sleeper looks at the lock; an unlock of another thread wakes it.
         * It clears AWAKE before it looks, so that an unlock after its look wakes it. */
        if (first) {
            atomic_fetch_and(&m->state, ~(uint32_t)AWAKE);
            if (!(atomic_fetch_or(&m->state, LOCKED) & LOCKED)) {
                pop(m);
                unguard(m);
                return;
            }
            if (now_ns() - self.since > STARVED_NS)
                atomic_fetch_or(&m->state, STARVED);
        }
        atomic_store(&self.news, ASLEEP);
        unguard(m);
        while (atomic_load_explicit(&self.news, memory_order_acquire) == ASLEEP)
            syscall(SYS_futex, &self.news, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, ASLEEP, NULL,
                    NULL, 0);
        if (atomic_load(&self.news) == OWNER)
            return;
        guard(m);
    }
}

/* ---- the mutex */

void go_mutex_lock(struct go_mutex *m)
{
    for (int i = 0; i < SPINS; i++) {
        if (take(m))
            return;
        pause_briefly();
    }
    lock_in_line(m);
}

void go_mutex_unlock(struct go_mutex *m)
{
    if (leave(m))
        return;
    guard(m);
    struct go_sleeper *first = m->first;
    uint32_t news = ASLEEP;
    if (atomic_load(&m->state) & STARVED) {
        news = OWNER;
        pop(m);
    } else {
        if (!(atomic_fetch_or(&m->state, AWAKE) & AWAKE))
            news = WOKEN;
        atomic_fetch_and(&m->state, ~(uint32_t)LOCKED);
    }
    unguard(m);
    if (news != ASLEEP)
        tell(first, news);
}
