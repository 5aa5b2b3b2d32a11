/* SPDX-License-Identifier: Apache-2.0 */
/* One page with MADV_WIPEONFORK (Linux 4.14 or later). It holds OURS in the process
 * that owns the state, and 0 in its children until they have made the state their own.
 * Thread: any. */
#include "base/fork.h"

#include "base/sync.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WIPED = 0, OURS = 1, SETTLING = 2 };

volatile unsigned char *rlk_fork_page;
atomic_uint rlk_fork_count;

static rlk_once_t once = RLK_ONCE_INIT;
static struct rlk_fork_hooks hooks;
/* Used where there is no such page. */
static atomic_int owner_pid;
static atomic_int settling_pid; /* a value inherited from the parent does not count */

static void *map(size_t size, int how)
{
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, how | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? NULL : page;
}

/* Whether the kernel really wipes the page. An emulator that takes all advice for
 * hints (qemu-user before 8.0) accepts the advice and does nothing; it also accepts it
 * for shared memory, where Linux refuses it. */
static bool means_what_it_says(size_t size)
{
    void *shared = map(size, MAP_SHARED);
    bool refused = shared && madvise(shared, size, MADV_WIPEONFORK) != 0;
    if (shared)
        munmap(shared, size);
    return refused;
}

static void init(void)
{
    atomic_store(&owner_pid, (int)getpid());
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    if (!means_what_it_says(size))
        return;
    void *page = map(size, MAP_PRIVATE);
    if (!page)
        return;
    if (madvise(page, size, MADV_WIPEONFORK) != 0) {
        munmap(page, size);
        return;
    }
    *(unsigned char *)page = OURS;
    __atomic_store_n(&rlk_fork_page, (volatile unsigned char *)page, __ATOMIC_RELEASE);
}

bool rlk_fork_check_slow(void)
{
    rlk_sync_once(&once, init);
    volatile unsigned char *page = __atomic_load_n(&rlk_fork_page, __ATOMIC_ACQUIRE);
    if (page)
        return *page != OURS;
    return (int)getpid() != atomic_load(&owner_pid);
}

static void now_ours(bool late)
{
    volatile unsigned char *page = rlk_fork_page;
    struct rlk_cancel cancel = rlk_sync_cancel_disable(); /* a request is inherited */

    if (hooks.child)
        hooks.child(late);
    rlk_sync_sections.count = 0; /* in a late child: no mutex is locked any more */
    atomic_fetch_add(&rlk_fork_count, 1);
    atomic_store(&owner_pid, (int)getpid());
    if (page)
        __atomic_store_n(page, OURS, __ATOMIC_RELEASE);
    rlk_sync_cancel_restore(cancel);
}

/* Whether this thread makes the state the child's own; other threads wait until that
 * is done. */
static bool begin(void)
{
    volatile unsigned char *page = rlk_fork_page;
    unsigned char wiped = WIPED;
    int self = (int)getpid(), settler = atomic_load(&settling_pid);

    return page ? __atomic_compare_exchange_n(page, &wiped, SETTLING, false,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
                : settler != self &&
                      atomic_compare_exchange_strong(&settling_pid, &settler, self);
}

/* Signals are blocked, because a handler may call rlock_client_interrupt. sure: this
 * is a child, whatever page or process id say. */
static void settle_child(bool sure)
{
    sigset_t old;

    rlk_sync_signals_block(&old);
    if (begin()) {
        bool late = !rlk_sync_sections.forking;
        rlk_sync_sections.forking = false;
        if (sure || rlk_fork_in_child()) /* another thread may have done it just now */
            now_ours(late);
        atomic_store(&settling_pid, 0);
    } else {
        sched_yield(); /* only for a moment: nothing blocks there */
    }
    rlk_sync_signals_restore(&old);
}

/* ---- the handlers of fork() */

/* A child of _Fork() that forks before it uses the library leaves all state as it is:
 * any thread of the parent may have held a mutex. */
static void prepare(void)
{
    if (rlk_sync_sections.forking || rlk_fork_in_child())
        return;
    hooks.prepare();
    rlk_sync_sections.forking = true;
}

static void parent(void)
{
    if (!rlk_sync_sections.forking)
        return;
    rlk_sync_sections.forking = false;
    hooks.parent();
}

/* Only a child runs this, so neither page nor process id is checked. */
static void child(void)
{
    volatile unsigned char *page = rlk_fork_page;

    if (!rlk_sync_sections.forking)
        return;
    if (page && *page == OURS) /* not wiped here, so not in children of this process */
        __atomic_store_n(&rlk_fork_page, NULL, __ATOMIC_RELEASE);
    settle_child(true);
}

void rlk_fork_settle_now(void)
{
    if (rlk_sync_sections.forking && !rlk_fork_in_child())
        parent(); /* a handler of the program that runs between the library's: then the
                     child is a late one */
    while (rlk_fork_in_child())
        settle_child(false);
}

int rlk_fork_init(const struct rlk_fork_hooks *wanted)
{
    rlk_sync_once(&once, init);
    hooks = *wanted;
    return rlk_sync_atfork(prepare, parent, child);
}
