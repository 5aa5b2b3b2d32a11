/* SPDX-License-Identifier: Apache-2.0 */
/* Interference from outside: rlock_force_unlock; and rlock_waitfree, which waits for a
 * lock without taking it. Thread: any. Blocks: network. */
#include "admin/inspect.h"

#include "base/deadline.h"
#include "client/rpc.h"
#include "lock/call.h"
#include "state/awaited.h"

#include <stdlib.h>

/* ---- rlock_force_unlock */

static int force(struct rlock_client *client, const char *name)
{
    char *holder = NULL, *since = NULL;
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_answer answer;
    int64_t until = rlk_inspect_until(client);
    int rc = rlk_inspect_victim(client, name, until, &holder, &since);
    bool held = rc != ENOENT;

    /* rule: T10 */
    if (!held) /* a robust lock may have a mark without a holder */
        rc = 0;
    if (rc == 0 && held &&
        (strlen(holder) > RLOCK_NAME_MAX || strlen(since) > RLOCK_NAME_MAX))
        rc = rlk_error_set(EPROTO, "the key holds data that is not a lock");
    if (rc == 0) {
        /* Names its victim, so that a repetition cannot hit the next holder (T10). */
        rlk_request_init(&req, RLK_LOCK_FORCE, rlk_client_is_sharded(client), name,
                         strlen(name));
        rlk_request_add(&req, held ? holder : "", held ? strlen(holder) : 0);
        rlk_request_add(&req, held ? since : "", held ? strlen(since) : 0);
        rlk_request_add_channel(&req, name, strlen(name));
        rlk_rpc_request(client, &req, until, &answer, NULL);
        rc = answer.outcome == RLK_DONE ? 0 : answer.code;
        if (rc == 0 && !held && answer.fate.what != RLK_RELEASED)
            rc = ENOENT;
        else if (rc == 0)
            rlk_error_clear(); /* of the inspection that found no holder */
        if (rc == 0)
            rlk_rpc_go_on(client, RLK_KIND_WATCH, name, strlen(name),
                          RLOCK_RWLOCK_PHASE_FAIR_NP, answer.more, until);
    }
    free(holder);
    free(since);
    return rc;
}

int rlock_force_unlock(rlock_client_t *client, const char *name)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used;
    int rc = rlk_inspect_check_name(name);

    if (rc == 0)
        rc = rlk_client_get_pointer(client, &used);
    if (rc == 0) {
        rc = force(used, name);
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}

/* ---- rlock_waitfree */

enum {
    LATE_MS = 80,  /* of the 100 ms that a call may take beyond its deadline (L7) */
    SHORT_MS = 100 /* a healthy server may take longer to answer */
};

/* Asks in how many ms the lock may be free; 0: it is free. */
static int look(struct rlock_client *client, const char *name, int64_t until,
                int64_t *ret_pttl_ms)
{
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_answer answer;
    struct rlk_reply *reply = NULL;

    /* A refresh without a waiter: it hands over what became free by expiry, and
     * replies with the TTL. */
    rlk_script_args_refresh(&req, client, RLK_KIND_WATCH, name, strlen(name),
                            RLOCK_RWLOCK_PHASE_FAIR_NP, (struct rlk_cursor){ 0 }, "", 0);
    rlk_rpc_request(client, &req, until, &answer, &reply);
    if (answer.outcome != RLK_DONE)
        return answer.code;
    const struct rlk_reply *pttl = rlk_reply_at(reply, 1);
    int rc =
        pttl && rlk_reply_type(pttl) == RLK_REPLY_INTEGER && rlk_reply_integer(pttl) >= -2
            ? 0
            : rlk_script_unreadable(&req, "lease");
    if (rc == 0) {
        *ret_pttl_ms = rlk_reply_integer(pttl);
        if (*ret_pttl_ms > RLK_LEASE_MAX_MS) /* the next look comes before that */
            *ret_pttl_ms = RLK_LEASE_MAX_MS;
    }
    rlk_reply_free(reply);
    return rc;
}

/* A lock that becomes free is announced on its Redisson channel; an expiry is known
 * from the TTL. */
static int wait_free(struct rlock_client *client, struct rlk_thread *thread,
                     const char *name, const struct rlk_deadline *deadline)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_waiter waiter = { .thread = thread };
    int64_t pttl_ms = -2;
    int rc = 0;

    rlk_registry_lock(reg);
    struct rlk_lock *lock = rlk_lock_get_locked(reg, RLK_KIND_WATCH, name, strlen(name));
    if (!lock) {
        rlk_registry_unlock(reg);
        return ENOMEM;
    }
    rlk_list_append(&lock->queue->waiters, &waiter.link);
    reg->waiters_now++;
    rlk_awaited_asks_locked(reg);
    rlk_awaited_waits_locked(reg);
    rlk_lock_channel_locked(lock, true);
    for (bool asked_once = false, reached = false;; asked_once = true) {
        uint64_t messages = lock->queue->messages;
        int64_t left = rlk_deadline_left(deadline), now = rlk_clock_boot();
        int64_t bound = rlk_client_command_timeout(client);
        /* If the call begins after its deadline, the first look gets all of that time. */
        bool cut = left < bound && (asked_once || left > 0);
        if (cut)
            bound = asked_once ? left : left + LATE_MS * RLK_NS_PER_MS;
        rlk_registry_unlock(reg);
        int asked = look(client, name, now + bound, &pttl_ms);
        rlk_registry_lock(reg);
        bool short_of_time = asked == ENOTCONN && !asked_once && cut &&
                             bound <= SHORT_MS * RLK_NS_PER_MS &&
                             rlk_clock_boot() >= now + bound;
        if (asked == EACCES || asked == EPROTO || asked == ENOMEM)
            rc = asked;
        if (rc != 0 || (asked == 0 && pttl_ms == -2))
            break;
        /* A look without enough time says nothing against the previous look, and with
         * little time nothing against the server. */
        reached = asked == 0 || (reached && cut);
        left = rlk_deadline_left(deadline);
        if (left <= 0) {
            bool well = short_of_time && !rlk_registry_is_away(reg, rlk_clock_boot());
            rc = reached || well ? ETIMEDOUT : ENOTCONN;
            break;
        }
        if (atomic_load(&client->interrupted)) {
            rc = ECANCELED;
            break;
        }
        int64_t pause = reg->presence_ns / 3;
        if (asked == 0 && pttl_ms >= 0 && (pttl_ms + 1) * RLK_NS_PER_MS < pause)
            pause = (pttl_ms + 1) * RLK_NS_PER_MS;
        if (left < pause)
            pause = left;
        int64_t end = rlk_clock_add(rlk_clock_mono(), pause);
        /* The subscriber must learn of the channel before this thread sleeps. */
        rlk_registry_unlock(reg);
        rlk_registry_lock(reg);
        while (lock->queue->messages == messages && rlk_clock_mono() < end &&
               !atomic_load(&client->interrupted))
            rlk_sync_cond_wait(&thread->cond, &reg->mu, end);
    }
    rlk_lock_channel_locked(lock, false);
    reg->waiters_now--;
    rlk_awaited_asked_locked(reg);
    rlk_list_remove(&waiter.link);
    rlk_lock_put_locked(lock);
    rlk_registry_unlock(reg);
    return rc == ETIMEDOUT || rc == ECANCELED
               ? rlk_error_set(rc, "%s", rlk_error_text(rc))
               : rc;
}

int rlock_waitfree(rlock_client_t *client, const char *name,
                   const struct timespec *abstime)
{
    struct rlk_call call = rlk_call_enter();
    struct rlk_deadline deadline = RLK_NO_DEADLINE;
    struct rlk_thread *thread;
    struct rlock_client *used;
    int rc = rlk_inspect_check_name(name);

    if (rc == 0 && abstime)
        rc = rlk_deadline_valid(abstime)
                 ? rlk_deadline_set(&deadline, CLOCK_REALTIME, abstime)
                 : rlk_deadline_bad(abstime);
    if (rc == 0)
        rc = rlk_client_get_pointer(client, &used);
    if (rc == 0) {
        thread = rlk_thread_get();
        rc = thread ? wait_free(used, thread, name, &deadline) : ENOMEM;
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}
