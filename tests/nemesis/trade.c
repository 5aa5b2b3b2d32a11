/* SPDX-License-Identifier: Apache-2.0 */
/* See trade.h. State: the buffers; their counts are shared by all processes. */
#include "trade.h"

#include "buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* of 100 */
enum { TIMED = 45, TIMED_LOCK = 15, BROADCASTS = 15, LATE = 30, CANCELS = 20, FIXED = 8 };
enum { DEEP = 15 };                 /* two levels */
enum { SOON = 60, SOON_US = 4000 }; /* deadlines about as long as a wait */
enum { STACK_SIZE = 256 * 1024 };
enum { FIXED_MS = 1500, WAIT_US = 40000, SLEEP_US = 15000, STAY_US = 300 };
enum { PATIENT_PACE = 4 }; /* producers of patient buffers are slower: consumers sleep */

static struct {
    struct nem_buffer buffers[NEM_BUFFERS_MAX];
    unsigned count, think_us;
    void *stacks[2 * NEM_BUFFERS_MAX]; /* of the traders' helpers */
} trade;

static void *stack_make(void)
{
    void *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        abort();
    return stack;
}

void nem_trade_start(struct nem_target *targets, unsigned buffers, unsigned think_us,
                     rlock_client_t *client)
{
    trade.count = buffers;
    trade.think_us = think_us;
    for (unsigned i = 0; i < buffers; i++)
        nem_buffer_init(&trade.buffers[i], i, &targets[nem_buffer_lock(i)], client);
    for (unsigned i = 0; i < nem_traders(buffers); i++)
        trade.stacks[i] = stack_make();
}

void nem_trade_stop(void)
{
    for (unsigned i = 0; i < trade.count; i++)
        nem_buffer_destroy(&trade.buffers[i]);
    for (unsigned i = 0; i < nem_traders(trade.count); i++)
        munmap(trade.stacks[i], STACK_SIZE);
}

void nem_trade_begin(const char *dir)
{
    nem_buffers_map(trade.buffers, trade.count, dir);
}

/* ---- what was left undone */

static bool holds(const struct nem_buffer *buffer)
{
    return nem_target_levels(buffer->target) > 0;
}

/* Locks, also after a refusal, and wakes all; again if the lock was lost meanwhile. A
 * lock that is not recoverable does not keep anybody either. */
static void repair(struct nem_buffer *buffer, struct nem_man *man)
{
    int rc;
    do {
        rc = nem_man_take(man, NEM_LOCK, buffer->target, 0, 0);
        if (rc == EOWNERDEAD)
            nem_man_do(man, NEM_CONSISTENT, buffer->target, 0);
        if (holds(buffer) || rc == ENOTRECOVERABLE)
            nem_buffer_wake_all(buffer, man);
        else
            nem_man_pause_us(WAIT_US);
        if (holds(buffer))
            rc = nem_man_leave_all(man, buffer->target);
    } while (rc != 0 && rc != ENOTRECOVERABLE);
}

void nem_trade_end(struct nem_man *man)
{
    for (unsigned i = 0; i < trade.count; i++)
        repair(&trade.buffers[i], man);
}

/* ---- a trade */

struct trade_op {
    struct nem_buffer *buffer;
    struct nem_man *man;
    enum nem_side side; /* what it waits for, and takes */
    const atomic_bool *rest;
    bool may_cancel, patient;
};

static enum nem_side other_side(const struct trade_op *op)
{
    return op->side == NEM_ITEMS ? NEM_ROOM : NEM_ITEMS;
}

static int take_lock(struct trade_op *op)
{
    struct nem_man *man = op->man;
    struct nem_target *target = op->buffer->target;
    bool timed = !op->patient && nem_man_chance(man, TIMED_LOCK);
    long lease_ms = nem_man_chance(man, FIXED) ? FIXED_MS : 0;
    int rc = nem_man_take(man, timed ? NEM_TIMEDLOCK : NEM_LOCK, target,
                          nem_man_draw(man, WAIT_US), lease_ms);
    if (rc == EOWNERDEAD)
        nem_buffer_recover(op->buffer, man);
    if (holds(op->buffer) && nem_man_chance(man, DEEP))
        nem_man_take(man, NEM_LOCK, target, 0, 0);
    return rc;
}

/* Waits until there is what it wants, or it has no reason to go on. */
static void wait_for_turn(struct trade_op *op)
{
    struct nem_buffer *buffer = op->buffer;
    while (holds(buffer) && !nem_buffer_has(buffer, op->side) && !atomic_load(op->rest)) {
        bool timed = !op->patient && !op->may_cancel && nem_man_chance(op->man, TIMED);
        uint64_t most = nem_man_chance(op->man, SOON) ? SOON_US : WAIT_US;
        uint64_t us = timed ? 1 + nem_man_draw(op->man, most) : 0;
        int rc = nem_buffer_wait(buffer, op->man, op->side, us, op->may_cancel);
        if (rc == EOWNERDEAD)
            nem_buffer_recover(buffer, op->man);
        if (rc != 0 && rc != EOWNERDEAD)
            return;
    }
}

static void wake_other(struct trade_op *op)
{
    bool all = !op->patient && nem_man_chance(op->man, BROADCASTS);
    nem_buffer_wake(op->buffer, op->man, other_side(op),
                    all ? NEM_BROADCAST : NEM_SIGNAL);
}

/* Under the lock. Returns whether the signal is still to come. */
static bool move(struct trade_op *op)
{
    if (!nem_buffer_take(op->buffer, op->man, op->side))
        return false;
    if (nem_man_chance(op->man, LATE))
        return true;
    wake_other(op);
    return false;
}

/* A trader that has lost its lock may have traded while others looked. */
static void trade_with(struct trade_op *op)
{
    bool signals = false;
    if (take_lock(op) == ESTALE || !holds(op->buffer))
        return;
    wait_for_turn(op);
    if (holds(op->buffer) && !atomic_load(op->rest)) {
        nem_man_look(op->man, op->buffer->target);
        signals = move(op);
        nem_man_pause_us(nem_man_draw(op->man, STAY_US));
    }
    int rc = nem_man_leave_all(op->man, op->buffer->target);
    if (signals)
        wake_other(op);
    if (rc != 0)
        repair(op->buffer, op->man);
}

/* ---- a trade by another thread, which is cancelled */

static void *trade_as_helper(void *arg)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    trade_with(arg);
    return NULL;
}

/* A thread on a given stack has the same pthread_t each time. So an event about a helper
 * that has ended is not taken for one about another man's. */
static void start_helper(struct trade_op *op, void *stack, pthread_t *ret_helper)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0 ||
        pthread_attr_setstack(&attr, stack, STACK_SIZE) != 0 ||
        pthread_create(ret_helper, &attr, trade_as_helper, op) != 0)
        abort();
    pthread_attr_destroy(&attr);
    atomic_store(&op->man->helper, *ret_helper);
}

static void trade_and_cancel(struct trade_op *op, void *stack)
{
    pthread_t helper;
    uint64_t us = nem_man_draw(op->man, SLEEP_US);
    start_helper(op, stack, &helper);
    nem_man_pause_us(us);
    pthread_cancel(helper);
    pthread_join(helper, NULL);
}

/* ---- traders */

static struct nem_buffer *buffer_of(unsigned trader, enum nem_side *ret_side)
{
    *ret_side = trader % 2 == 0 ? NEM_ROOM : NEM_ITEMS;
    return &trade.buffers[trader / 2];
}

void nem_trade_open(struct nem_man *man, unsigned trader)
{
    enum nem_side side;
    struct nem_buffer *buffer = buffer_of(trader, &side);
    if (side == NEM_ROOM)
        repair(buffer, man);
}

void nem_trade_once(struct nem_man *man, unsigned trader, const atomic_bool *rest)
{
    struct trade_op op = { .man = man, .rest = rest };
    op.buffer = buffer_of(trader, &op.side);
    op.patient = nem_buffer_patient(op.buffer->number);
    op.may_cancel = !op.patient && nem_man_chance(man, CANCELS);
    if (op.may_cancel)
        trade_and_cancel(&op, trade.stacks[trader]);
    else
        trade_with(&op);
    uint64_t pace = op.patient && op.side == NEM_ROOM ? PATIENT_PACE : 1;
    nem_man_pause_us(nem_man_draw(man, pace * trade.think_us));
}
