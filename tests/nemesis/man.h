/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a worker: its file of records, its random numbers, and the calls that it
 * makes, each recorded. A man belongs to its thread; others read `at`, `thread` and
 * `helper`. */
#ifndef NEM_MAN_H
#define NEM_MAN_H

#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NEM_PERCENT = 100, NEM_STAY_US = 2500 };

/* What a thread is doing, with which lock. */
enum nem_at { NEM_NOTHING, NEM_ASKING, NEM_INSIDE, NEM_LEFT_IT };

struct nem_man {
    pthread_t thread;
    _Atomic pthread_t helper; /* a thread that works for it while it waits; 0: none */
    unsigned process, life, number;
    uint64_t random;
    int fd;
    atomic_uint at; /* enum nem_at << 16 | lock */
};

/* ---- chance and time */

/* From 0 to below - 1. */
uint64_t nem_man_draw(struct nem_man *man, uint64_t below);
bool nem_man_chance(struct nem_man *man, unsigned percent);
int64_t nem_man_now(void); /* CLOCK_BOOTTIME, ns */
void nem_man_pause_us(uint64_t us);

/* ---- records */

/* Aborts if the record cannot be written. */
void nem_man_write(int fd, const struct nem_op *op);
/* A record without a time; target NULL: of no lock. */
struct nem_op nem_man_op(const struct nem_man *man, enum nem_what what,
                         enum nem_call call, const struct nem_target *target);
/* Stores the time, and the thread's view of the hold at that very time: the watchdog may
 * renew the hold at any moment. */
void nem_man_stamp(struct nem_op *op, struct nem_target *target);
/* A call has returned. */
void nem_man_returned(struct nem_man *man, enum nem_call call, struct nem_target *target,
                      bool reading, int code);
void nem_man_be_at(struct nem_man *man, enum nem_at at, const struct nem_target *target);

/* ---- recorded calls */

/* NEM_LOCK to NEM_TRYRDLOCK. wait_us: of a timed call. */
int nem_man_take(struct nem_man *man, enum nem_call call, struct nem_target *target,
                 uint64_t wait_us, long lease_ms);
/* A call about an existing hold. */
int nem_man_do(struct nem_man *man, enum nem_call call, struct nem_target *target,
               long lease_ms);
/* Unlocks all levels. Returns the code of the last unlock; 0: nothing was held. */
int nem_man_leave_all(struct nem_man *man, struct nem_target *target);
/* Records the thread's belief. False: it knows that the hold is lost. */
bool nem_man_look(struct nem_man *man, struct nem_target *target);
/* Stays inside for that long, and looks meanwhile. */
void nem_man_stay(struct nem_man *man, struct nem_target *target, uint64_t us);

#endif
