/* SPDX-License-Identifier: Apache-2.0 */
/* See man.h. State: the caller's. */
#include "man.h"

#include "secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MEDIUM_US = 30000, CHECKS = 8 };
enum { NS_PER_US = 1000, NS_PER_S = 1000000000 };

/* ---- chance and time */

uint64_t nem_man_draw(struct nem_man *man, uint64_t below)
{
    uint64_t x = man->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    man->random = x;
    return (x >> 11) % below;
}

bool nem_man_chance(struct nem_man *man, unsigned percent)
{
    return nem_man_draw(man, NEM_PERCENT) < percent;
}

void nem_man_pause_us(uint64_t us)
{
    struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * NS_PER_US };
    nanosleep(&t, NULL);
}

int64_t nem_man_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- records */

void nem_man_write(int fd, const struct nem_op *op)
{
    if (write(fd, op, sizeof(*op)) != (ssize_t)sizeof(*op)) {
        fprintf(stderr, "crewman: cannot write: %s\n", strerror(errno));
        abort();
    }
}

struct nem_op nem_man_op(const struct nem_man *man, enum nem_what what,
                         enum nem_call call, const struct nem_target *target)
{
    return (struct nem_op){ .process = (uint16_t)man->process,
                            .life = (uint16_t)man->life,
                            .thread = (uint16_t)man->number,
                            .lock = target ? (uint16_t)target->number : NEM_ALL,
                            .what = (uint8_t)what,
                            .call = (uint8_t)call,
                            .pid = (uint32_t)getpid() };
}

void nem_man_stamp(struct nem_op *op, struct nem_target *target)
{
    struct nem_op before;
    do {
        before = *op;
        nem_target_look(target, &before);
        op->at = nem_man_now();
        nem_target_look(target, op);
    } while (op->end != before.end);
}

void nem_man_returned(struct nem_man *man, enum nem_call call, struct nem_target *target,
                      bool reading, int code)
{
    struct nem_op op = nem_man_op(man, NEM_RETURN, call, target);
    if (code != 0)
        nem_secret_hear("a message", rlock_errmsg());
    op.code = code;
    op.reading = reading;
    op.levels = (uint8_t)nem_target_levels(target);
    nem_man_stamp(&op, target);
    nem_man_write(man->fd, &op);
}

/* ---- recorded calls */

bool nem_man_look(struct nem_man *man, struct nem_target *target)
{
    rlock_state_t state = RLOCK_UNHELD;
    struct nem_op op = nem_man_op(man, NEM_CHECK, NEM_NO_CALL, target);
    nem_man_stamp(&op, target);
    bool held = nem_target_state(target, &state) == 0 &&
                (state == RLOCK_SAFE || state == RLOCK_AT_RISK);
    op.code = held;
    if (!held) /* D may have passed since */
        nem_man_stamp(&op, target);
    op.levels = (uint8_t)nem_target_levels(target);
    nem_man_write(man->fd, &op);
    return held;
}

void nem_man_stay(struct nem_man *man, struct nem_target *target, uint64_t us)
{
    for (int i = 0; i < CHECKS; i++) {
        if (us > 0)
            nem_man_pause_us(us / CHECKS);
        if (us > MEDIUM_US || i == 0 || i == CHECKS - 1)
            if (!nem_man_look(man, target))
                return;
    }
}

void nem_man_be_at(struct nem_man *man, enum nem_at at, const struct nem_target *target)
{
    atomic_store(&man->at, (unsigned)at << 16 | target->number);
}

int nem_man_do(struct nem_man *man, enum nem_call call, struct nem_target *target,
               long lease_ms)
{
    struct nem_op op = nem_man_op(man, NEM_INVOKE, call, target);
    op.lease_ms = (uint32_t)lease_ms;
    op.levels = (uint8_t)nem_target_levels(target);
    nem_man_stamp(&op, target);
    bool reading = op.reading;
    nem_man_write(man->fd, &op);
    int rc = call == NEM_UNLOCK      ? nem_target_unlock(target)
             : call == NEM_DOWNGRADE ? nem_target_downgrade(target)
             : call == NEM_EXTEND    ? nem_target_extend(target, lease_ms)
                                     : nem_target_consistent(target);
    nem_man_returned(man, call, target, reading && call != NEM_DOWNGRADE, rc);
    return rc;
}

int nem_man_take(struct nem_man *man, enum nem_call call, struct nem_target *target,
                 uint64_t wait_us, long lease_ms)
{
    bool reading = call >= NEM_RDLOCK && call <= NEM_TRYRDLOCK;
    struct timespec deadline = { 0, 0 };
    struct nem_op op = nem_man_op(man, NEM_INVOKE, call, target);
    int64_t before = nem_man_now(); /* the recorded deadline must not be later than the
                                    one that the call gets */

    op.lease_ms = (uint32_t)lease_ms;
    op.levels = (uint8_t)nem_target_levels(target);
    if (call == NEM_TIMEDLOCK || call == NEM_TIMEDRDLOCK) {
        clock_gettime(CLOCK_REALTIME, &deadline);
        int64_t ns = deadline.tv_nsec + (int64_t)wait_us * NS_PER_US;
        deadline.tv_sec += (time_t)(ns / NS_PER_S);
        deadline.tv_nsec = (long)(ns % NS_PER_S);
    }
    nem_man_stamp(&op, target);
    op.reading = reading;
    if (deadline.tv_sec != 0)
        op.deadline = before + (int64_t)wait_us * NS_PER_US;
    nem_man_write(man->fd, &op);
    if (op.levels == 0)
        nem_man_be_at(man, NEM_ASKING, target);
    int rc = nem_target_take(target, call, &deadline, lease_ms);
    nem_man_returned(man, call, target, reading, rc);
    nem_man_be_at(man, nem_target_levels(target) > 0 ? NEM_INSIDE : NEM_NOTHING, target);
    return rc;
}

int nem_man_leave_all(struct nem_man *man, struct nem_target *target)
{
    int rc = 0;
    nem_man_be_at(man, NEM_NOTHING, target);
    while (nem_target_levels(target) > 0) {
        rc = nem_man_do(man, NEM_UNLOCK, target, 0);
        if (rc == EPERM)
            return rc;
    }
    nem_man_be_at(man, NEM_LEFT_IT, target);
    return rc;
}
