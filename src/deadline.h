/* SPDX-License-Identifier: Apache-2.0 */
/* Time: the only reader of clocks. Instants are int64_t nanoseconds. Leases and
 * everything that a request is bounded by count on CLOCK_BOOTTIME, which goes on in
 * suspend ("boot"); waits on condition variables on CLOCK_MONOTONIC ("mono"); a
 * caller's deadline is kept in the clock that the caller named. */
#ifndef RLK_DEADLINE_H
#define RLK_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define RLK_NS_PER_MS INT64_C(1000000)
#define RLK_NS_PER_S INT64_C(1000000000)
#define RLK_NEVER INT64_MAX

int64_t rlk_now_boot(void);
int64_t rlk_now_mono(void);
int64_t rlk_now_real(void);

/* When a wait ends. */
struct rlk_deadline {
    enum { RLK_DEADLINE_NONE, RLK_DEADLINE_MONO, RLK_DEADLINE_REAL } clock;
    int64_t at; /* ns on that clock */
};

#define RLK_NO_DEADLINE ((struct rlk_deadline){ RLK_DEADLINE_NONE, RLK_NEVER })

/* 0, or EINVAL: abstime is NULL, or clock is neither REALTIME nor MONOTONIC. Bad tv_nsec
 * is accepted here and found by rlk_deadline_valid. Far values saturate. */
int rlk_deadline_set(struct rlk_deadline *ret_deadline, clockid_t clock,
                     const struct timespec *abstime);

/* Whether tv_nsec is in range: tested only when a call would have to wait. */
bool rlk_timespec_valid(const struct timespec *abstime);
/* EINVAL of one that is not, with a message that says so. */
int rlk_timespec_bad(const struct timespec *abstime);

/* ns left now, negative when past, RLK_NEVER without deadline. Reads the clock anew,
 * so that steps of CLOCK_REALTIME count. */
int64_t rlk_deadline_left(const struct rlk_deadline *deadline);

/* now + add without overflow. */
int64_t rlk_time_add(int64_t now, int64_t add);

/* A descriptor (close-on-exec) that becomes readable at an instant of CLOCK_BOOTTIME,
 * also one that passed in suspend; rlk_fd_hush takes that away. Negative errno value on
 * failure. */
int rlk_alarm_open(void);
/* RLK_NEVER: off. An instant that has passed fires at once. */
void rlk_alarm_set(int fd, int64_t boot_ns);

#endif
