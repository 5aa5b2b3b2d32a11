/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the shim by weak references if it is linked in, by dlsym if it is preloaded. No
 * state. Thread: any. */
#include "alloc.h"

#include "../shims/alloc_shim.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#pragma weak rlock_alloc_fail_at
#pragma weak rlock_alloc_fail_from
#pragma weak rlock_alloc_this_thread
#pragma weak rlock_alloc_count
#pragma weak rlock_alloc_failed
#pragma weak rlock_alloc_live

typedef void (*setter)(long);
typedef void (*chooser)(int);
typedef long (*getter)(void);

static void *find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static void set(setter linked, const char *name, long n)
{
    void *symbol = linked ? NULL : find(name);
    if (symbol)
        memcpy(&linked, &symbol, sizeof(linked));
    if (linked)
        linked(n);
}

static long get(getter linked, const char *name)
{
    void *symbol = linked ? NULL : find(name);
    if (symbol)
        memcpy(&linked, &symbol, sizeof(linked));
    return linked ? linked() : 0;
}

bool test_alloc_available(void)
{
    test_alloc_fail_at(0);
    void *volatile p = malloc(1); /* otherwise the compiler removes both calls */
    free(p);
    return test_alloc_count() > 0;
}

void test_alloc_fail_at(long n)
{
    set(rlock_alloc_fail_at, "rlock_alloc_fail_at", n);
}

void test_alloc_fail_from(long n)
{
    set(rlock_alloc_fail_from, "rlock_alloc_fail_from", n);
}

void test_alloc_this_thread(bool only)
{
    chooser linked = rlock_alloc_this_thread;
    void *symbol = linked ? NULL : find("rlock_alloc_this_thread");
    if (symbol)
        memcpy(&linked, &symbol, sizeof(linked));
    if (linked)
        linked(only);
}

long test_alloc_count(void)
{
    return get(rlock_alloc_count, "rlock_alloc_count");
}

long test_alloc_failed(void)
{
    return get(rlock_alloc_failed, "rlock_alloc_failed");
}

long test_alloc_live(void)
{
    return get(rlock_alloc_live, "rlock_alloc_live");
}
