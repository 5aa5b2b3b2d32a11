/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out when a process was kept from running without a fault: on a busy or a halted
 * machine. A thread sleeps for a few ms again and again. When it wakes much too late,
 * that time is appended to <dir>/faults as NEM_STALL. (A process that a fault stops finds
 * that, too, within the window of that fault.) The driver has such a thread on each
 * processor: a single processor may stand still, and with it the server, or a process
 * whose timer is on it, while all others go on.
 */
#ifndef NEM_PULSE_H
#define NEM_PULSE_H

#include <stdint.h>

/* `target`: this process's number; NEM_ALL: the driver, whose stalls count for all
 * processes. Once in each process. Aborts on failure. */
void nem_pulse_start(uint16_t target);
/* The directory to write to from now on; NULL: none. */
void nem_pulse_into(const char *dir);
void nem_pulse_stop(void);
/* The descriptor that the thread writes to; -1: none. */
int nem_pulse_fd(void);

#endif
