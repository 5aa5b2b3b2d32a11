/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See within.h. State: none. Where the library is an archive, the linker puts the
 * functions with __wrap in their names between the others (local.mk). Where it is one
 * shared library with all its internals (tests/mutants/run), functions of the program
 * come before the library's own.
 */
#include "within.h"

#include "lock/exclusive.h"
#include "state/condition.h"

#ifdef TEST_INTERNALS_SHARED
#include <dlfcn.h>
#define BEGIN rlk_condition_begin_locked
#define RETAKE rlk_exclusive_retake
#else
#define BEGIN __wrap_rlk_condition_begin_locked
#define RETAKE __wrap_rlk_exclusive_retake
#endif

typedef struct rlk_wait *(*begin_fn)(struct rlk_condition *condition,
                                     struct rlk_thread *thread, uint32_t presence_ms);

struct rlk_wait *BEGIN(struct rlk_condition *condition, struct rlk_thread *thread,
                       uint32_t presence_ms);
int RETAKE(struct rlk_handle *handle, int kind, unsigned levels, long lease_ms);

#ifdef TEST_INTERNALS_SHARED
static begin_fn real_begin(void)
{
    return (begin_fn)dlsym(RTLD_NEXT, "rlk_condition_begin_locked");
}

static nem_retake_fn real_retake(void)
{
    return (nem_retake_fn)dlsym(RTLD_NEXT, "rlk_exclusive_retake");
}
#else
struct rlk_wait *__real_rlk_condition_begin_locked(struct rlk_condition *condition,
                                                   struct rlk_thread *thread,
                                                   uint32_t presence_ms);
int __real_rlk_exclusive_retake(struct rlk_handle *handle, int kind, unsigned levels,
                                long lease_ms);

static begin_fn real_begin(void)
{
    return __real_rlk_condition_begin_locked;
}

static nem_retake_fn real_retake(void)
{
    return __real_rlk_exclusive_retake;
}
#endif

struct rlk_wait *BEGIN(struct rlk_condition *condition, struct rlk_thread *thread,
                       uint32_t presence_ms)
{
    struct rlk_wait *wait = real_begin()(condition, thread, presence_ms);
    nem_within_begins(condition, wait);
    return wait;
}

int RETAKE(struct rlk_handle *handle, int kind, unsigned levels, long lease_ms)
{
    return nem_within_retakes(real_retake(), handle, kind, levels, lease_ms);
}
