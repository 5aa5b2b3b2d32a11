/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, callers' deadlines and the suspend-proof alarm. No state. Thread: any. */
#include "deadline.h"

#include "descriptor.h"
#include "error.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * RLK_NS_PER_S + ts.tv_nsec;
}

int64_t rlk_now_boot(void)
{
    return now(CLOCK_BOOTTIME);
}

int64_t rlk_now_mono(void)
{
    return now(CLOCK_MONOTONIC);
}

int64_t rlk_now_real(void)
{
    return now(CLOCK_REALTIME);
}

int64_t rlk_time_add(int64_t now, int64_t add)
{
    int64_t sum;
    if (__builtin_add_overflow(now, add, &sum))
        return add > 0 ? RLK_NEVER : INT64_MIN;
    return sum;
}

bool rlk_timespec_valid(const struct timespec *abstime)
{
    return abstime->tv_nsec >= 0 && abstime->tv_nsec < RLK_NS_PER_S;
}

int rlk_timespec_bad(const struct timespec *abstime)
{
    rlk_argument_in("tv_nsec of the deadline", abstime->tv_nsec, 0, RLK_NS_PER_S - 1);
    return EINVAL;
}

int rlk_deadline_set(struct rlk_deadline *ret_deadline, clockid_t clock,
                     const struct timespec *abstime)
{
    if (!abstime || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return EINVAL;
    int64_t at;
    if (__builtin_mul_overflow((int64_t)abstime->tv_sec, RLK_NS_PER_S, &at))
        at = abstime->tv_sec < 0 ? INT64_MIN : RLK_NEVER;
    else
        at = rlk_time_add(at, rlk_timespec_valid(abstime) ? abstime->tv_nsec : 0);
    ret_deadline->clock = clock == CLOCK_REALTIME ? RLK_DEADLINE_REAL : RLK_DEADLINE_MONO;
    ret_deadline->at = at;
    return 0;
}

int64_t rlk_deadline_left(const struct rlk_deadline *deadline)
{
    if (deadline->clock == RLK_DEADLINE_NONE || deadline->at == RLK_NEVER)
        return RLK_NEVER;
    int64_t n = deadline->clock == RLK_DEADLINE_REAL ? rlk_now_real() : rlk_now_mono();
    int64_t left;
    if (__builtin_sub_overflow(deadline->at, n, &left))
        left = INT64_MIN;
    return left;
}

static int make_timer(void)
{
    return timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
}

int rlk_alarm_open(void)
{
    int fd = rlk_fd_made_by(make_timer);
    return fd < 0 ? -errno : fd;
}

void rlk_alarm_set(int fd, int64_t boot_ns)
{
    struct itimerspec its = { { 0, 0 }, { 0, 0 } };
    if (boot_ns != RLK_NEVER) {
        if (boot_ns < 1) /* an all-zero value would disarm */
            boot_ns = 1;
        its.it_value.tv_sec = (time_t)(boot_ns / RLK_NS_PER_S);
        its.it_value.tv_nsec = (long)(boot_ns % RLK_NS_PER_S);
    }
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &its, NULL);
}
