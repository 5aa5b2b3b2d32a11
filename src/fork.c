/* SPDX-License-Identifier: Apache-2.0 */
/* One page with MADV_WIPEONFORK (Linux >= 4.14) that holds 1 in the process that
 * first used the library and 0 in its children. Thread: any. */
#include "fork.h"

#include "sync.h"

#include <sys/mman.h>
#include <unistd.h>

volatile unsigned char *rlk_fork_page;

static rlk_once_t once = RLK_ONCE_INIT;
static pid_t owner_pid;

static void init(void)
{
    owner_pid = getpid();
    long size = sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, (size_t)size, MADV_WIPEONFORK) != 0) {
        munmap(page, (size_t)size);
        return;
    }
    *(unsigned char *)page = 1;
    __atomic_store_n(&rlk_fork_page, (volatile unsigned char *)page, __ATOMIC_RELEASE);
}

bool rlk_fork_check_slow(void)
{
    rlk_once(&once, init);
    volatile unsigned char *page = __atomic_load_n(&rlk_fork_page, __ATOMIC_ACQUIRE);
    if (page)
        return *page != 1;
    return getpid() != owner_pid;
}
