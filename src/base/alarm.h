/* SPDX-License-Identifier: Apache-2.0 */
/* An alarm that also rings when its instant passed in suspend. */
#ifndef RLK_ALARM_H
#define RLK_ALARM_H

#include <stdint.h>

/* A descriptor (close-on-exec) that becomes readable at an instant of CLOCK_BOOTTIME.
 * rlk_fd_hush takes that away. Negative errno value on failure. */
int rlk_alarm_open(void);
/* RLK_NEVER: off. An instant that has passed fires at once. */
void rlk_alarm_set(int fd, int64_t boot_ns);

#endif
