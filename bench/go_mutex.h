/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex of one process with the rules of Go's sync.Mutex, to measure against: a running
 * thread may take it past the sleepers, until a sleeper has waited for 1 ms; then it is
 * handed over in order. (The rules: the comment in Go's src/internal/sync/mutex.go.)
 */
#ifndef BENCH_GO_MUTEX_H
#define BENCH_GO_MUTEX_H

#include <stdint.h>

struct go_sleeper;

struct go_mutex {
    _Atomic uint32_t state; /* flags, and the number of sleepers */
    _Atomic uint32_t guard; /* spins; of the rest */
    uint32_t permits;       /* to wake up, of sleepers that are not in the line yet */
    struct go_sleeper *first, *last;
};

/* All zero is a free one. */
void go_mutex_lock(struct go_mutex *mutex);
void go_mutex_unlock(struct go_mutex *mutex);

#endif
