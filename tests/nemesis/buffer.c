/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See buffer.h. State: of the calling thread, which wait it is in: within.c tells how far
 * the library is with it.
 */
#include "buffer.h"

#include "robbery.h"
#include "secret.h"
#include "within.h"

#include "client/client.h"
#include "state/condition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_US = 1000, NS_PER_S = 1000000000, REFUSED_US = 20000 };
enum { FILE_SIZE = NEM_BUFFERS_MAX * sizeof(atomic_int) };

/* The wait that the thread is in. */
struct waiting {
    struct nem_man *man;
    struct nem_buffer *buffer;
    unsigned condition;
    bool awake;  /* the return of NEM_WAIT is recorded */
    int retaken; /* the code of NEM_RETAKE */
};
static _Thread_local struct waiting *waiting;

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "nemesis: a buffer: %s: %s\n", what, rlock_errmsg());
        abort();
    }
}

/* ---- buffers */

static void init_cond(rlock_cond_t *cond, unsigned number, rlock_client_t *client)
{
    char name[32];
    rlock_condattr_t attr;
    snprintf(name, sizeof(name), "nemesis%u", number);
    check(rlock_condattr_init(&attr), "attr");
    check(rlock_condattr_setclient(&attr, client), "client");
    check(rlock_condattr_setclock(&attr, CLOCK_MONOTONIC), "clock");
    check(rlock_cond_init(cond, &attr, name), name);
}

void nem_buffer_init(struct nem_buffer *buffer, unsigned number,
                     struct nem_target *target, rlock_client_t *client)
{
    memset(buffer, 0, sizeof(*buffer));
    buffer->number = number;
    buffer->target = target;
    for (int side = NEM_ITEMS; side <= NEM_ROOM; side++)
        init_cond(&buffer->cond[side], nem_buffer_condition(buffer, (enum nem_side)side),
                  client);
}

void nem_buffer_destroy(struct nem_buffer *buffer)
{
    for (int side = NEM_ITEMS; side <= NEM_ROOM; side++)
        check(rlock_cond_destroy(&buffer->cond[side]), "destroy");
}

void nem_buffers_map(struct nem_buffer *buffers, unsigned count, const char *dir)
{
    char path[PATH_MAX];
    if (count == 0)
        return;
    if (buffers[0].count)
        munmap(buffers[0].count, FILE_SIZE);
    snprintf(path, sizeof(path), "%s/buffers", dir);
    nem_own_begin();
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, FILE_SIZE) != 0)
        check(EIO, path);
    atomic_int *counts = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counts == MAP_FAILED)
        check(EIO, path);
    close(fd);
    nem_own_end();
    for (unsigned i = 0; i < count; i++)
        buffers[i].count = &counts[i];
}

unsigned nem_buffer_condition(const struct nem_buffer *buffer, enum nem_side side)
{
    return side == NEM_ITEMS ? nem_buffer_items(buffer->number)
                             : nem_buffer_room(buffer->number);
}

/* ---- items */

static bool has(const struct nem_buffer *buffer, enum nem_side side, int count)
{
    return side == NEM_ITEMS ? count > 0 : count < (int)nem_buffer_size(buffer->number);
}

bool nem_buffer_has(const struct nem_buffer *buffer, enum nem_side side)
{
    return has(buffer, side, atomic_load(buffer->count));
}

static void record_count(struct nem_buffer *buffer, struct nem_man *man, int count)
{
    struct nem_op op = nem_man_op(man, NEM_TRADED, NEM_NO_CALL, NULL);
    op.condition = nem_buffer_items(buffer->number);
    op.code = count;
    op.at = nem_man_now();
    nem_man_write(man->fd, &op);
}

bool nem_buffer_take(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side)
{
    int count = atomic_load(buffer->count), next;
    do {
        if (!has(buffer, side, count))
            return false;
        next = side == NEM_ITEMS ? count - 1 : count + 1;
    } while (!atomic_compare_exchange_weak(buffer->count, &count, next));
    record_count(buffer, man, next);
    return true;
}

/* ---- waits */

static void record_awake(int code)
{
    struct nem_man *man = waiting->man;
    struct nem_target *target = waiting->buffer->target;
    struct nem_op op = nem_man_op(man, NEM_RETURN, NEM_WAIT, target);
    op.condition = waiting->condition;
    op.code = code == ESTALE ? ESTALE : 0;
    op.levels = (uint8_t)nem_target_levels(target);
    nem_man_stamp(&op, target);
    nem_man_write(man->fd, &op);
    waiting->awake = true;
}

static void record_end(int code)
{
    struct nem_man *man = waiting->man;
    struct nem_op op = nem_man_op(man, NEM_WAITED, NEM_NO_CALL, NULL);
    if (!waiting->awake)
        record_awake(code);
    if (code != 0 && code != NEM_CANCELLED_WAIT)
        nem_secret_hear("a message", rlock_errmsg());
    op.condition = waiting->condition;
    op.code = code;
    op.levels = (uint8_t)nem_target_levels(waiting->buffer->target);
    op.at = nem_man_now();
    nem_man_write(man->fd, &op);
}

void nem_within_begins(struct rlk_condition *condition, const struct rlk_wait *wait)
{
    char id[RLK_ID_SIZE];
    if (!wait || !waiting)
        return;
    struct nem_op op = nem_man_op(waiting->man, NEM_JOINING, NEM_NO_CALL, NULL);
    rlk_id_write(id, RLK_CLIENT_OF(condition->registry)->uuid, &wait->id);
    snprintf(op.id, sizeof(op.id), "%.*s", NEM_ID_MAX - 1, id);
    op.condition = waiting->condition;
    op.at = nem_man_now();
    nem_man_write(waiting->man->fd, &op);
}

int nem_within_retakes(nem_retake_fn retake, struct rlk_handle *handle, int kind,
                       unsigned levels, long lease_ms)
{
    if (!waiting)
        return retake(handle, kind, levels, lease_ms);
    struct nem_man *man = waiting->man;
    struct nem_target *target = waiting->buffer->target;
    record_awake(0);
    struct nem_op op = nem_man_op(man, NEM_INVOKE, NEM_RETAKE, target);
    op.condition = waiting->condition;
    op.lease_ms = (uint32_t)lease_ms;
    nem_man_stamp(&op, target);
    nem_man_write(man->fd, &op);
    int rc = retake(handle, kind, levels, lease_ms);
    nem_man_returned(man, NEM_RETAKE, target, false, rc);
    waiting->retaken = rc;
    return rc;
}

/* The thread was cancelled, and has the lock. */
static void cancelled(void *arg)
{
    struct waiting *w = arg;
    record_end(NEM_CANCELLED_WAIT);
    waiting = NULL;
    if (w->retaken == EOWNERDEAD)
        nem_buffer_recover(w->buffer, w->man);
    nem_man_leave_all(w->man, w->buffer->target);
}

static int wait_on(struct waiting *w, rlock_cond_t *cond, const struct timespec *deadline)
{
    struct nem_target *target = w->buffer->target;
    if (target->type == NEM_FAIR)
        return deadline ? rlock_cond_fairtimedwait(cond, &target->lock.fair, deadline)
                        : rlock_cond_fairwait(cond, &target->lock.fair);
    return deadline ? rlock_cond_timedwait(cond, &target->lock.mutex, deadline)
                    : rlock_cond_wait(cond, &target->lock.mutex);
}

static int wait_cancellable(struct waiting *w, rlock_cond_t *cond)
{
    int rc, state;
    pthread_cleanup_push(cancelled, w);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    rc = wait_on(w, cond, NULL);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_cleanup_pop(0);
    return rc;
}

/* On the clock of the conditions. */
static struct timespec deadline_in(uint64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + (int64_t)us * NS_PER_US;
    t.tv_sec += (time_t)(ns / NS_PER_S);
    t.tv_nsec = (long)(ns % NS_PER_S);
    return t;
}

/* The code of the record says whether the thread may be cancelled. */
static void record_begin(struct waiting *w, uint64_t wait_us, bool may_cancel)
{
    struct nem_target *target = w->buffer->target;
    struct nem_op op = nem_man_op(w->man, NEM_INVOKE, NEM_WAIT, target);
    op.condition = w->condition;
    op.levels = (uint8_t)nem_target_levels(target);
    nem_man_stamp(&op, target);
    op.code = may_cancel;
    if (wait_us > 0)
        op.deadline = op.at + (int64_t)wait_us * NS_PER_US;
    nem_man_write(w->man->fd, &op);
}

int nem_buffer_wait(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side,
                    uint64_t wait_us, bool may_cancel)
{
    struct waiting w = { .man = man,
                         .buffer = buffer,
                         .condition = nem_buffer_condition(buffer, side) };
    rlock_cond_t *cond = &buffer->cond[side];
    record_begin(&w, wait_us, may_cancel);
    struct timespec deadline = deadline_in(wait_us);
    nem_man_be_at(man, NEM_ASKING, buffer->target);
    waiting = &w;
    int rc = may_cancel ? wait_cancellable(&w, cond)
                        : wait_on(&w, cond, wait_us > 0 ? &deadline : NULL);
    record_end(rc);
    waiting = NULL;
    nem_man_be_at(man, nem_target_levels(buffer->target) > 0 ? NEM_INSIDE : NEM_NOTHING,
                  buffer->target);
    return rc;
}

/* ---- signals */

static int wake_once(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side,
                     enum nem_call call)
{
    struct nem_op op = nem_man_op(man, NEM_INVOKE, call, NULL);
    op.condition = nem_buffer_condition(buffer, side);
    op.at = nem_man_now();
    nem_man_write(man->fd, &op);
    int rc = call == NEM_SIGNAL ? rlock_cond_signal(&buffer->cond[side])
                                : rlock_cond_broadcast(&buffer->cond[side]);
    if (rc != 0)
        nem_secret_hear("a message", rlock_errmsg());
    op.what = NEM_RETURN;
    op.code = rc;
    op.at = nem_man_now();
    nem_man_write(man->fd, &op);
    return rc;
}

void nem_buffer_wake(struct nem_buffer *buffer, struct nem_man *man, enum nem_side side,
                     enum nem_call call)
{
    while (wake_once(buffer, man, side, call) != 0)
        nem_man_pause_us(REFUSED_US);
}

void nem_buffer_wake_all(struct nem_buffer *buffer, struct nem_man *man)
{
    record_count(buffer, man, atomic_load(buffer->count));
    nem_buffer_wake(buffer, man, NEM_ITEMS, NEM_BROADCAST);
    nem_buffer_wake(buffer, man, NEM_ROOM, NEM_BROADCAST);
}

void nem_buffer_recover(struct nem_buffer *buffer, struct nem_man *man)
{
    nem_man_do(man, NEM_CONSISTENT, buffer->target, 0);
    nem_buffer_wake_all(buffer, man);
}
