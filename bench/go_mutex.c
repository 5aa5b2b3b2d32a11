/* SPDX-License-Identifier: Apache-2.0 */
/* See go_mutex.h. The state is one word, which running threads change by
 * compare-and-swap. Who has to wait keeps a place in a line, under the guard, until the
 * lock is his. */
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
    AWAKE = 4,    /* the first of it is awake and will look: nobody else is woken */
    STARVED = 8   /* the first of it has waited too long: he is next */
};
enum { SPINS = 4, PAUSES = 30 };
enum { ASLEEP, WOKEN, OWNER };

#define STARVED_NS (NS_PER_S / 1000)

struct go_sleeper {
    struct go_sleeper *next;
    int64_t since;
    _Atomic uint32_t news; /* his futex */
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

/* False: somebody of the line is to be looked after. */
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
    /* the owner may be gone by now, and his stack: then this wakes nobody */
    syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

/* The first of the line leaves it: the lock is his. */
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
        /* only the first looks, whom the others' unlock wakes; from when he is not awake
         * for them, before he looks */
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
