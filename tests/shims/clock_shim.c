/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a server or a client, this shifts its wall clock and its CLOCK_BOOTTIME
 * (which then jumps ahead of CLOCK_MONOTONIC, as after a suspend). The file named by
 * $RLOCK_CLOCK_FILE has the current shifts.
 *
 * The shim calls the kernel by plain system calls and never allocates or looks up
 * symbols: allocators read the clock while they start, and would wait for themselves.
 * CLOCK_MONOTONIC is not shifted, so relative waits are not affected. The absolute time
 * of a timerfd is translated when the timer is set; a running timer does not notice a
 * later shift.
 */
#include "clock_file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_US = 1000, FDS_MAX = 4096 };
static const int64_t ns_per_s = INT64_C(1000000000);

static struct test_clock_file *shared;     /* NULL: nothing is shifted */
static unsigned char timer_clock[FDS_MAX]; /* clock + 1 of a timerfd, 0: unknown */

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv(TEST_CLOCK_VARIABLE);
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        __atomic_store_n(&shared, map, __ATOMIC_RELEASE);
}

/* Set in programs that wait for events by epoll_wait, as the server does: the shift that
 * was valid at the last epoll_wait stays in force until the next one, so that the clock
 * steps between two events. A step during a script is a leap, which a test requests
 * separately. */
static bool has_events;
static int64_t in_force_ns;

static void leap_if_due(struct test_clock_file *file)
{
    if (__atomic_load_n(&file->leap_reads, __ATOMIC_RELAXED) > 0 &&
        __atomic_sub_fetch(&file->leap_reads, 1, __ATOMIC_ACQ_REL) == 0)
        __atomic_store_n(
            &in_force_ns,
            __atomic_add_fetch(&file->real_ns, file->leap_ns, __ATOMIC_RELAXED),
            __ATOMIC_RELAXED);
}

static int64_t shift(clockid_t clock)
{
    struct test_clock_file *file = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
    if (!file)
        return 0;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
        leap_if_due(file);
        return __atomic_load_n(__atomic_load_n(&has_events, __ATOMIC_ACQUIRE)
                                   ? &in_force_ns
                                   : &file->real_ns,
                               __ATOMIC_RELAXED);
    case CLOCK_BOOTTIME:
    case CLOCK_BOOTTIME_ALARM:
        return __atomic_load_n(&file->boot_ns, __ATOMIC_RELAXED);
    default:
        return 0;
    }
}

static void add(struct timespec *ts, int64_t ns)
{
    int64_t sum = ts->tv_nsec + ns % ns_per_s;
    ts->tv_sec += (time_t)(ns / ns_per_s);
    if (sum < 0) {
        sum += ns_per_s;
        ts->tv_sec--;
    } else if (sum >= ns_per_s) {
        sum -= ns_per_s;
        ts->tv_sec++;
    }
    ts->tv_nsec = (long)sum;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);
    if (rc == 0)
        add(ts, shift(clock));
    return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts;
    (void)zone;
    int rc = clock_gettime(CLOCK_REALTIME, &ts);
    if (rc == 0) {
        tv->tv_sec = ts.tv_sec;
        tv->tv_usec = (suseconds_t)(ts.tv_nsec / NS_PER_US);
    }
    return rc;
}

time_t time(time_t *ret)
{
    struct timespec ts = { 0, 0 };
    clock_gettime(CLOCK_REALTIME, &ts);
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}

int timespec_get(struct timespec *ts, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, ts) == 0 ? base : 0;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    int n = (int)syscall(SYS_epoll_pwait, fd, events, max, timeout, NULL, 0);
    const struct test_clock_file *file = __atomic_load_n(&shared, __ATOMIC_ACQUIRE);
    if (file) {
        __atomic_store_n(&in_force_ns, __atomic_load_n(&file->real_ns, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
        __atomic_store_n(&has_events, true, __ATOMIC_RELEASE);
    }
    return n;
}

int timerfd_create(clockid_t clock, int flags)
{
    int fd = (int)syscall(SYS_timerfd_create, clock, flags);
    if (fd >= 0 && fd < FDS_MAX)
        __atomic_store_n(&timer_clock[fd], (unsigned char)(clock + 1), __ATOMIC_RELAXED);
    return fd;
}

/* By how much a descriptor's timer is shifted when it is set to an absolute time. */
static int64_t moved(int fd, int flags, bool armed)
{
    int known =
        fd >= 0 && fd < FDS_MAX ? __atomic_load_n(&timer_clock[fd], __ATOMIC_RELAXED) : 0;
    return (flags & TFD_TIMER_ABSTIME) && armed && known > 0 ? -shift(known - 1) : 0;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *value,
                    struct itimerspec *old)
{
    struct itimerspec real = *value;
    add(&real.it_value,
        moved(fd, flags, value->it_value.tv_sec != 0 || value->it_value.tv_nsec != 0));
    if (real.it_value.tv_sec < 0) /* long past: fires at once */
        real.it_value = (struct timespec){ 0, 1 };
    return (int)syscall(SYS_timerfd_settime, fd, flags, &real, old);
}

/* ---- programs whose time_t has 64 bits, where the system's own has 32

 * This file is compiled for the latter; the C library has the former's functions under
 * other names. */
#if defined(__TIMESIZE) && __TIMESIZE == 32

struct timespec64 {
    int64_t tv_sec, tv_nsec; /* half of the second is padding, with garbage when it is
                                read */
};
struct timeval64 {
    int64_t tv_sec, tv_usec;
};
struct itimerspec64 {
    struct timespec64 it_interval, it_value;
};

int __clock_gettime64(clockid_t clock, struct timespec64 *ts);
int __clock_gettime64(clockid_t clock, struct timespec64 *ts)
{
    int rc = (int)syscall(SYS_clock_gettime64, clock, ts);
    if (rc == 0) {
        int64_t ns = ts->tv_sec * ns_per_s + ts->tv_nsec + shift(clock);
        *ts = (struct timespec64){ ns / ns_per_s, ns % ns_per_s };
    }
    return rc;
}

int __gettimeofday64(struct timeval64 *restrict tv, void *restrict zone);
int __gettimeofday64(struct timeval64 *restrict tv, void *restrict zone)
{
    struct timespec64 ts;
    (void)zone;
    int rc = __clock_gettime64(CLOCK_REALTIME, &ts);
    if (rc == 0)
        *tv = (struct timeval64){ ts.tv_sec, ts.tv_nsec / NS_PER_US };
    return rc;
}

int64_t __time64(int64_t *ret);
int64_t __time64(int64_t *ret)
{
    struct timespec64 ts = { 0, 0 };
    __clock_gettime64(CLOCK_REALTIME, &ts);
    if (ret)
        *ret = ts.tv_sec;
    return ts.tv_sec;
}

int __timespec_get64(struct timespec64 *ts, int base);
int __timespec_get64(struct timespec64 *ts, int base)
{
    return base == TIME_UTC && __clock_gettime64(CLOCK_REALTIME, ts) == 0 ? base : 0;
}

int __timerfd_settime64(int fd, int flags, const struct itimerspec64 *value,
                        struct itimerspec64 *old);
int __timerfd_settime64(int fd, int flags, const struct itimerspec64 *value,
                        struct itimerspec64 *old)
{
    struct itimerspec64 real = *value;
    real.it_interval.tv_nsec = (int32_t)value->it_interval.tv_nsec;
    real.it_value.tv_nsec = (int32_t)value->it_value.tv_nsec;
    bool armed = real.it_value.tv_sec != 0 || real.it_value.tv_nsec != 0;
    int64_t by = moved(fd, flags, armed);
    if (by != 0) {
        int64_t ns = real.it_value.tv_sec * ns_per_s + real.it_value.tv_nsec + by;
        if (ns < 1) /* long past: fires at once */
            ns = 1;
        real.it_value = (struct timespec64){ ns / ns_per_s, ns % ns_per_s };
    }
    return (int)syscall(SYS_timerfd_settime64, fd, flags, &real, old);
}

#endif
