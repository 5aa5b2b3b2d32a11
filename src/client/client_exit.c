/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and processes that end while they hold locks. Thread: the ending one. */
#include "client/client_impl.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "state/fastpath.h"
#include "state/handoff.h"

/* ---- threads that end */

static void give_up_holder(struct rlk_holder *holder, bool at_exit)
{
    struct rlk_hold *hold = holder->hold;
    struct rlk_registry *reg = hold->lock->registry;
    struct rlock_client *client = RLK_CLIENT_OF(reg);
    bool open = rlk_client_keep(client) == 0;

    rlk_sync_mutex_lock(&reg->mu);
    rlk_fastpath_close_locked(hold);
    if (rlk_hold_is_live(hold)) { /* so the client is open */
        int64_t now = rlk_clock_boot();
        RLK_COUNT(client->counters.owners_died);
        hold->robust.owner_ended = true;
        rlk_holder_end_section_locked(holder, now);
        if (at_exit)
            hold->lock->ending = rlk_thread_mine();
        else
            rlk_holder_news_locked(holder, RLK_NEWS_DIED);
        rlk_holder_leave_locked(holder);
        rlk_hold_end_unused_locked(hold, now);
        rlk_registry_unlock(reg);
    } else {
        rlk_holder_leave_locked(holder);
        rlk_sync_mutex_unlock(&reg->mu);
        rlk_client_release(client); /* the reference of a lost hold */
    }
    if (open)
        rlk_client_put(client);
}

/* The thread may hold this lock by the fast path without a record of it yet or any
 * more: it was cancelled on its way. */
static void give_up_fast(struct rlk_thread *thread, bool at_exit)
{
    struct rlk_holder *holder = thread->fast;
    struct rlk_registry *reg = holder->hold->lock->registry;

    rlk_sync_mutex_lock(&reg->mu);
    rlk_fastpath_close_locked(holder->hold);
    bool outside = holder->resident;
    rlk_sync_mutex_unlock(&reg->mu);
    if (outside)
        rlk_fastpath_drop(thread);
    else
        give_up_holder(holder, at_exit);
}

static void give_up_holders(struct rlk_thread *thread, bool at_exit)
{
    struct rlk_list *l;

    if (thread->fast)
        give_up_fast(thread, at_exit);
    while ((l = rlk_list_first(&thread->holds)) != NULL)
        give_up_holder(RLK_CONTAINER_OF(l, struct rlk_holder, thread_link), at_exit);
}

static bool is_over_tls(const struct rlk_holder *holder)
{
    return RLK_CLIENT_OF(holder->hold->lock->registry)->config.endpoint.tls_store != NULL;
}

/* Gives up the thread's holds at servers that are reached by TLS. */
static void give_up_tls_holders(struct rlk_thread *thread)
{
    struct rlk_list *l, *next;

    if (thread->fast && is_over_tls(thread->fast))
        give_up_fast(thread, true);
    for (l = rlk_list_first(&thread->holds); l; l = next) {
        struct rlk_holder *holder = RLK_CONTAINER_OF(l, struct rlk_holder, thread_link);
        next = l->next != &thread->holds ? l->next : NULL;
        if (is_over_tls(holder))
            give_up_holder(holder, true);
    }
}

void rlk_client_thread_ended(struct rlk_thread *thread)
{
    give_up_holders(thread, false);
}

/* ---- processes that end */

enum { EXIT_MS = 1000 };

/* Ends the calls of other threads that wait, and makes later ones end after one attempt:
 * no server will answer them. */
static void end_calls(struct rlock_client *client)
{
    struct rlk_registry *reg = &client->registry;

    atomic_store(&client->interrupted, true);
    rlk_registry_lock(reg);
    reg->interrupted = true;
    rlk_registry_wake_all_locked(reg);
    rlk_registry_unlock(reg);
}

static void end_client(struct rlock_client *client, int64_t end)
{
    rlk_registry_lock(&client->registry);
    rlk_handoff_end_all_locked(&client->registry, rlk_clock_boot());
    rlk_registry_unlock(&client->registry);
    rlk_client_drain(client, end);
    rlk_registry_lock(&client->registry);
    bool settled = !rlk_intent_used_locked(&client->registry.slots);
    rlk_registry_unlock(&client->registry);
    rlk_livefile_leave(client, settled);
    if (client->config.endpoint.tls_store)
        end_calls(client);
}

/* Ends the clients with TLS, or those without. (The destructor below ends only those
 * without: rlk_client_exit_tls has ended the others before.) */
static void end_clients(bool with_tls)
{
    struct rlock_client *client;
    int64_t end = rlk_clock_mono() + EXIT_MS * RLK_NS_PER_MS;

    for (uint64_t number = 0; (client = rlk_client_keep_after(number)) != NULL;
         rlk_client_put(client)) {
        number = client->number;
        if ((client->config.endpoint.tls_store != NULL) == with_tls)
            end_client(client, end);
    }
}

/* rule: G15 */
/* Runs at exit() and at the return from main, after the program's own handlers, which
 * may have unlocked the locks. Releases the holds of the exiting thread, so that other
 * processes need not wait for their leases; the watchdog sends all releases at once.
 * It also finishes the pending releases of threads that ended. Other threads may use
 * their locks until the very end, so these end by their leases. If exit() was called
 * in a signal handler that interrupted a section of the library, nothing is released
 * and leases end everything. */
__attribute__((destructor)) static void process_ends(void)
{
    struct rlk_thread *thread = rlk_thread_mine();

    rlk_log_end();
    if (rlk_fork_in_child() || rlk_sync_sections_interrupted())
        return;
    struct rlk_cancel cancel = rlk_sync_cancel_disable();
    if (thread)
        give_up_holders(thread, true);
    end_clients(false);
    rlk_sync_cancel_restore(cancel);
}

/* rule: P5 */
/* The same for clients that use OpenSSL, because OpenSSL has ended before the destructor
 * above runs. The program's own handlers that run after this one find the thread's locks
 * of these clients released. */
void rlk_client_exit_tls(void)
{
    struct rlk_thread *thread = rlk_thread_mine();

    if (rlk_fork_in_child() || rlk_sync_sections_interrupted())
        return;
    struct rlk_cancel cancel = rlk_sync_cancel_disable();
    if (thread)
        give_up_tls_holders(thread);
    end_clients(true);
    rlk_sync_cancel_restore(cancel);
}
