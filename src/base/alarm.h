/* SPDX-License-Identifier: Apache-2.0 */
/* A timer that also fires when its instant passed while the host was suspended. No
 * state. Thread: any. Blocks: no. */
#ifndef RLK_ALARM_H
#define RLK_ALARM_H

#include <stdint.h>

/* Opens a descriptor (close-on-exec) that becomes readable at an instant of
 * CLOCK_BOOTTIME. rlk_fd_hush makes it unreadable again. Returns a negative errno
 * value on failure. */
int rlk_alarm_open(void);
/* Sets the instant; RLK_NEVER turns the alarm off. An instant in the past fires at
 * once. */
void rlk_alarm_set(int fd, int64_t boot_ns);

#endif
