/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On 32-bit systems time_t has 32 bits, or 64 with glibc's _TIME_BITS=64. The program
 * chooses, and its struct timespec differs accordingly. The library is built with 64
 * bits; there the header gives the functions that take a timespec their second name,
 * NAME_time64. This file has the functions of the plain names, for programs with 32 bits.
 * On other systems it is empty. Thread: any.
 */
#include <rlock.h>

#if defined(__TIMESIZE) && __TIMESIZE == 32 && defined(__USE_TIME_BITS64)

/* The struct timespec of such a program. */
struct timespec32 {
    int32_t tv_sec;
    int32_t tv_nsec;
};

/* NULL stays NULL. */
static const struct timespec *widen(const struct timespec32 *narrow,
                                    struct timespec *wide)
{
    if (!narrow)
        return NULL;
    *wide = (struct timespec){ .tv_sec = narrow->tv_sec, .tv_nsec = narrow->tv_nsec };
    return wide;
}

/* Defines the function that the linker knows as `name`. In C, the header gave that name
 * to another function. */
#define PLAIN_NAME(name, ...)                                                            \
    int name##_time32(__VA_ARGS__) __asm__(#name)                                        \
        __attribute__((visibility("default")));                                          \
    int name##_time32(__VA_ARGS__)

#define TIMED(type, verb)                                                                \
    PLAIN_NAME(rlock_##type##_timed##verb, rlock_##type##_t *handle,                     \
               const struct timespec32 *abstime)                                         \
    {                                                                                    \
        struct timespec ts;                                                              \
        return rlock_##type##_timed##verb(handle, widen(abstime, &ts));                  \
    }                                                                                    \
    PLAIN_NAME(rlock_##type##_timed##verb##_lease, rlock_##type##_t *handle,             \
               const struct timespec32 *abstime, long lease_ms)                          \
    {                                                                                    \
        struct timespec ts;                                                              \
        return rlock_##type##_timed##verb##_lease(handle, widen(abstime, &ts),           \
                                                  lease_ms);                             \
    }                                                                                    \
    PLAIN_NAME(rlock_##type##_clock##verb, rlock_##type##_t *handle, clockid_t clock,    \
               const struct timespec32 *abstime)                                         \
    {                                                                                    \
        struct timespec ts;                                                              \
        return rlock_##type##_clock##verb(handle, clock, widen(abstime, &ts));           \
    }                                                                                    \
    PLAIN_NAME(rlock_##type##_clock##verb##_lease, rlock_##type##_t *handle,             \
               clockid_t clock, const struct timespec32 *abstime, long lease_ms)         \
    {                                                                                    \
        struct timespec ts;                                                              \
        return rlock_##type##_clock##verb##_lease(handle, clock, widen(abstime, &ts),    \
                                                  lease_ms);                             \
    }

TIMED(mutex, lock)
TIMED(fair, lock)
TIMED(rwlock, rdlock)
TIMED(rwlock, wrlock)

PLAIN_NAME(rlock_waitfree, rlock_client_t *client, const char *name,
           const struct timespec32 *abstime)
{
    struct timespec ts;
    return rlock_waitfree(client, name, widen(abstime, &ts));
}

#endif
