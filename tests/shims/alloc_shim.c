/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An allocator that fails when a test wants it; preloaded, or linked into a test program.
 * It passes all other calls to the next allocator. It also gets the calls of glibc's
 * strdup, asprintf and the like. Sanitizers and Valgrind have their own allocator: there
 * nothing is counted, and tests skip (helpers/alloc.h).
 *
 * $RLOCK_ALLOC_FAIL at the start of the program: "n" fails the n-th allocation, "n+" also
 * all after it.
 */
#include "alloc_shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||               \
    __has_feature(memory_sanitizer)
#define HAS_OWN_ALLOCATOR 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_ALLOCATOR 1
#endif

static long count, fail_from, fail_to, failed; /* atomic; the bounds are inclusive */
static long live;                              /* atomic */
static bool one_thread;                        /* atomic; set after `thread` */
static pthread_t thread;

void rlock_alloc_fail_at(long n)
{
    __atomic_store_n(&fail_from, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&count, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&failed, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_to, n, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_from, n, __ATOMIC_SEQ_CST);
}

void rlock_alloc_fail_from(long n)
{
    rlock_alloc_fail_at(0);
    __atomic_store_n(&fail_to, n > 0 ? LONG_MAX : 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fail_from, n, __ATOMIC_SEQ_CST);
}

void rlock_alloc_this_thread(int only)
{
    __atomic_store_n(&one_thread, false, __ATOMIC_SEQ_CST);
    thread = pthread_self();
    __atomic_store_n(&one_thread, only != 0, __ATOMIC_SEQ_CST);
}

long rlock_alloc_count(void)
{
    return __atomic_load_n(&count, __ATOMIC_SEQ_CST);
}

long rlock_alloc_failed(void)
{
    return __atomic_load_n(&failed, __ATOMIC_SEQ_CST);
}

long rlock_alloc_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_SEQ_CST);
}

#ifndef HAS_OWN_ALLOCATOR

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
} next;

/* For allocations of dlsym itself, before `next` is known. Never reused. */
enum { EARLY_SIZE = 4096, ALIGNMENT = 16 };
static _Alignas(ALIGNMENT) char early[EARLY_SIZE];
static size_t early_used;
static bool looking_up;

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + EARLY_SIZE;
}

static void *early_malloc(size_t size)
{
    size_t need = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (need < size || need > EARLY_SIZE - early_used)
        return NULL;
    void *p = early + early_used;
    early_used += need;
    return p; /* static memory: zeroed for calloc, too */
}

static void find(void *slot, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(slot, &symbol, sizeof(symbol)); /* C has no cast from object to function */
}

/* The dynamic linker runs it first, so there is one thread. */
__attribute__((constructor)) static void look_up(void)
{
    if (next.free || looking_up)
        return;
    looking_up = true;
    find(&next.malloc, "malloc");
    find(&next.calloc, "calloc");
    find(&next.realloc, "realloc");
    find(&next.posix_memalign, "posix_memalign");
    find(&next.aligned_alloc, "aligned_alloc");
    find(&next.free, "free");
    looking_up = false;
    const char *spec = getenv("RLOCK_ALLOC_FAIL");
    char *rest = NULL;
    long n = spec ? strtol(spec, &rest, 10) : 0;
    if (n > 0 && *rest == '+')
        rlock_alloc_fail_from(n);
    else if (n > 0)
        rlock_alloc_fail_at(n);
}

/* Counts an allocation. True: it must fail. */
static bool fails(void)
{
    if (__atomic_load_n(&one_thread, __ATOMIC_SEQ_CST) &&
        !pthread_equal(thread, pthread_self()))
        return false;
    long n = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    long from = __atomic_load_n(&fail_from, __ATOMIC_SEQ_CST);
    if (from <= 0 || n < from || n > __atomic_load_n(&fail_to, __ATOMIC_SEQ_CST))
        return false;
    __atomic_add_fetch(&failed, 1, __ATOMIC_SEQ_CST);
    errno = ENOMEM;
    return true;
}

static bool ready(void)
{
    if (!next.free)
        look_up();
    return next.free != NULL;
}

static void *counted(void *p)
{
    if (p)
        __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
    return p;
}

void *malloc(size_t size)
{
    if (!ready())
        return early_malloc(size);
    return fails() ? NULL : counted(next.malloc(size));
}

void *calloc(size_t n, size_t size)
{
    if (!ready())
        return early_malloc(n * size);
    return fails() ? NULL : counted(next.calloc(n, size));
}

void *realloc(void *old, size_t size)
{
    if (!ready() || is_early(old)) {
        void *p = malloc(size);
        size_t most = old ? (size_t)(early + EARLY_SIZE - (char *)old) : 0;
        if (p && old) /* the size of `old` is unknown, but it ends inside of `early` */
            memcpy(p, old, size < most ? size : most);
        return p;
    }
    if (fails())
        return NULL;
    void *p = next.realloc(old, size);
    if (!old)
        counted(p);
    else if (size == 0 && !p) /* `old` was freed */
        __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
    return p;
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (!ready() || fails())
        return ENOMEM;
    int rc = next.posix_memalign(ret, alignment, size);
    if (rc == 0)
        counted(*ret);
    return rc;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (!ready() || fails())
        return NULL;
    return counted(next.aligned_alloc(alignment, size));
}

void free(void *p)
{
    if (!p || is_early(p) || !ready())
        return;
    __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
    next.free(p);
}

#endif
