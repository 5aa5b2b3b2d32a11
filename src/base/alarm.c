/* SPDX-License-Identifier: Apache-2.0 */
/* See alarm.h. No state. Thread: any. Blocks: no. */
#include "base/alarm.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <sys/timerfd.h>

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
