/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex of one process to measure against, with the rules of Go's sync.Mutex (as its
 * documentation states them): a running thread may take the mutex past the sleepers, of
 * which at most one is awake; when a sleeper has waited for 1 ms, the mutex is handed
 * over in the order of arrival.
 */
#ifndef BENCH_GO_MUTEX_H
#define BENCH_GO_MUTEX_H

#include <stdint.h>

struct go_sleeper;

struct go_mutex {
    _Atomic uint32_t state;
    _Atomic uint32_t guard; /* a spin lock that protects the line */
    struct go_sleeper *first, *last;
};

/* All zero is a free mutex. */
void go_mutex_lock(struct go_mutex *mutex);
void go_mutex_unlock(struct go_mutex *mutex);

#endif
