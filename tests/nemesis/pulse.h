/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out when a process was kept from running though nobody had planned it: a busy or
 * a halted machine. A thread sleeps for a few ms again and again; when it wakes much too
 * late, that time is appended to <dir>/faults as NEM_STALL. (A process that is stopped on
 * purpose finds that, too, within the window of the fault that it was.) The driver has
 * such a thread on each processor: one of them may be kept from running alone, and with
 * it the server, or whose timer is on it, while all others go on.
 */
#ifndef NEM_PULSE_H
#define NEM_PULSE_H

#include <stdint.h>

/* `target`: the process that it is; NEM_ALL: the driver, whose stalls count for all. One
 * in each process. Aborts on failure. */
void nem_pulse_start(uint16_t target);
/* Where to write from now on; NULL: nowhere. */
void nem_pulse_into(const char *dir);
void nem_pulse_stop(void);
/* The descriptor that it writes to; -1: none. */
int nem_pulse_fd(void);

#endif
