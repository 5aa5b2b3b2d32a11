/* SPDX-License-Identifier: Apache-2.0 */
/* ppoll with a correct timeout. With _FORTIFY_SOURCE glibc 2.36 calls the function for
 * a time_t of 32 bits also where the program's time_t has 64 bits: it then waits for
 * whole seconds only. Thread: any. */
#ifndef RLK_PPOLL_H
#define RLK_PPOLL_H

#include <poll.h>

#if defined(__TIMESIZE) && __TIMESIZE == 32 && defined(__USE_TIME_BITS64)
int rlk_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
              const sigset_t *signals) __asm__("__ppoll64");
#else
#define rlk_ppoll ppoll
#endif

#endif
