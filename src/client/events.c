/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what the registry and the subscriber report, as log lines and to the event
 * callback. Thread: the subscriber. Locks: takes the registry's mu; none is held while
 * the callback runs. */
#include "client/events.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/probe.h"
#include "client/client.h"
#include "state/awaited.h"
#include "state/loss_reason.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls the event callback. False: the callback closed the client, or this is a child
 * that it forked. */
static bool tell(struct rlock_client *client, const rlock_event_t *event)
{
    unsigned generation = rlk_fork_generation();

    if (!client->event_fn || rlk_log_ended())
        return true;
    rlk_client_retain(client);
    RLK_COUNT(client->counters.events);
    client->event_fn(event, client->event_arg);
    if (rlk_fork_since(generation))
        return false; /* it forked and returned in the child */
    bool open = client->route.target.subscription.member.attached;
    rlk_client_release(client);
    return open;
}

static bool tell_connection(struct rlock_client *client, bool up, const char *reason)
{
    rlock_event_t event = {
        .kind = up ? RLOCK_EVENT_CONNECTED : RLOCK_EVENT_DISCONNECTED,
        .name = "",
        .reason = reason,
    };
    return tell(client, &event);
}

enum { LINK_LINES_MAX = 5 }; /* per second, for a server that comes and goes */

bool rlk_events_down(struct rlk_target *target, const char *reason, int64_t since)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    const char *label = target->endpoint->label;
    char more[RLK_LOG_MORE_SIZE], up[RLK_LOG_NUMBER_SIZE];
    int64_t now = rlk_clock_boot();

    if (sub->told_down)
        return true;
    sub->told_down = true;
    rlk_sync_mutex_lock(&client->registry.mu); /* both change together */
    atomic_store(&sub->away_since, since);
    RLK_COUNT(client->counters.outages);
    rlk_sync_mutex_unlock(&client->registry.mu);
    RLK_PROBE2(disconnected, label, reason);
    bool logs = rlk_log_now(&sub->link_pace, now, LINK_LINES_MAX, more);
    if (logs && sub->been_up)
        rlk_log(RLK_LOG_WARNING, "rlock: disconnected from %s after %s s: %s%s", label,
                rlk_log_seconds(up, now - sub->up_at), reason, more);
    else if (logs)
        rlk_log(RLK_LOG_WARNING, "rlock: cannot connect to %s: %s%s", label, reason,
                more);
    return tell_connection(client, false, reason);
}

/* The outage is over; returns how long it was, in ns. */
static int64_t end_outage(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;

    rlk_sync_mutex_lock(&client->registry.mu);
    int64_t away = rlk_clock_boot() - atomic_exchange(&sub->away_since, 0);
    atomic_fetch_add(&client->counters.outage_ns, (uint64_t)away);
    rlk_sync_mutex_unlock(&client->registry.mu);
    sub->told_down = false;
    RLK_PROBE2(connected, target->endpoint->label, RLK_PROBE_US(away));
    return away;
}

bool rlk_events_left(struct rlk_target *target)
{
    struct rlk_subscription *sub = &target->subscription;
    const char *label = target->endpoint->label;
    char more[RLK_LOG_MORE_SIZE], lasted[RLK_LOG_NUMBER_SIZE];

    if (!sub->told_down)
        return true;
    rlk_log_seconds(lasted, end_outage(target));
    if (rlk_log_now(&sub->link_pace, rlk_clock_boot(), LINK_LINES_MAX, more))
        rlk_log(RLK_LOG_INFO, "rlock: other nodes have the hash slots of %s after %s s%s",
                label, lasted, more);
    return tell_connection(target->client, true, "other nodes have its hash slots");
}

bool rlk_events_up(struct rlk_target *target, bool again)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    const char *label = target->endpoint->label;
    char more[RLK_LOG_MORE_SIZE], lasted[RLK_LOG_NUMBER_SIZE], reason[64];
    int64_t now = rlk_clock_boot();

    if (!sub->told_down) {
        if (!again)
            rlk_log(RLK_LOG_INFO, "rlock: connected to %s", label);
        RLK_PROBE2(connected, label, rlk_probe_zero());
        return true;
    }
    snprintf(reason, sizeof(reason), "%safter %s s", again ? "again " : "",
             rlk_log_seconds(lasted, end_outage(target)));
    if (rlk_log_now(&sub->link_pace, now, LINK_LINES_MAX, more))
        rlk_log(RLK_LOG_INFO, "rlock: connected to %s %s%s", label, reason, more);
    return tell_connection(client, true, reason);
}

enum {
    RESTED_MIN_MS = 20, /* an end sooner than that is no idle timeout */
    RESTED_PARTS = 5    /* two times that differ by less than this part are alike */
};

void rlk_events_explain_rest(struct rlk_target *target, int64_t rested, char *reason,
                             size_t size)
{
    int64_t before = target->subscription.rested;
    int64_t more = rested > before ? rested - before : before - rested;
    char lasted[RLK_LOG_NUMBER_SIZE];
    size_t len = strlen(reason);

    target->subscription.rested = rested;
    if (rested >= RESTED_MIN_MS * RLK_NS_PER_MS && more < rested / RESTED_PARTS)
        snprintf(reason + len, size - len,
                 " after %s s without a message, as the one before: an idle timeout, "
                 "perhaps of a proxy",
                 rlk_log_seconds(lasted, rested));
}

/* The most lines of a kind in one second: an outage in which a thousand locks are lost
 * has as many lines. */
enum { LINES_MAX = 100 };

struct told {
    unsigned news;
    rlock_event_t event;
    char name[RLOCK_NAME_MAX + 1];
    int64_t lasted;
    enum rlk_loss cause; /* of the loss or of the risk */
    int64_t cause_ms;
};

/* The length of the holder's section so far, ns; 0: it was unlocked meanwhile, and its
 * thread may be in another section. */
static int64_t lasted(const struct rlk_holder *holder, int64_t now)
{
    if (holder->ended)
        return holder->lasted;
    if (holder->resident || !holder->owner)
        return 0;
    return now > holder->since ? now - holder->since : 0;
}

/* Takes the news of one holder from the registry. False: no news. */
static bool next_news(struct rlk_registry *reg, struct told *ret_told)
{
    rlk_registry_lock(reg);
    struct rlk_holder *holder = rlk_holder_next_news_locked(reg);
    if (!holder) {
        rlk_registry_unlock(reg);
        return false;
    }
    struct rlk_hold *hold = holder->hold;
    struct rlk_lock *lock = hold->lock;
    int64_t now = rlk_clock_boot();
    bool inside = rlk_hold_is_live(hold) && holder->owner && !holder->resident;
    ret_told->news = holder->news;
    memcpy(ret_told->name, lock->name, (size_t)lock->name_len + 1);
    int64_t left_ms = (hold->end - now) / RLK_NS_PER_MS;
    ret_told->event = (rlock_event_t){
        .type = rlk_kinds[lock->kind].type,
        .mode = hold->reading ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE,
        .name = ret_told->name,
        .token = holder->fencing ? hold->token : 0,
        .thread = holder->owner_thread,
        .remaining_ms = left_ms > 0 && inside ? (long)left_ms : 0,
    };
    ret_told->lasted = lasted(holder, now);
    ret_told->cause = RLK_LOSS_NONE;
    ret_told->cause_ms = 0;
    if (holder->news & RLK_NEWS_LOST) {
        ret_told->cause = hold->ending.loss;
        ret_told->cause_ms = hold->ending.cause_ms;
    } else if (inside) {
        ret_told->cause =
            rlk_loss_reason_of_locked(hold, RLK_LOSS_ENDED, now, &ret_told->cause_ms);
    }
    rlk_holder_told_locked(holder);
    rlk_registry_unlock(reg);
    return true;
}

static const struct {
    unsigned news;
    rlock_event_kind_t kind;
    int level;
    const char *text, *reason; /* NULL: the cause of the loss or the risk */
} table[] = {
    { RLK_NEWS_AT_RISK, RLOCK_EVENT_AT_RISK, RLK_LOG_WARNING, "at risk", NULL },
    { RLK_NEWS_SAFE, RLOCK_EVENT_SAFE_AGAIN, RLK_LOG_INFO, "safe again",
      "the lease was renewed" },
    { RLK_NEWS_LOST, RLOCK_EVENT_LOST, RLK_LOG_ERR, "lost", NULL },
    { RLK_NEWS_DIED, RLOCK_EVENT_OWNER_DIED, RLK_LOG_ERR, "abandoned",
      "its thread ended without unlocking it" },
};
_Static_assert(sizeof(table) / sizeof(table[0]) == RLK_HOLD_EVENT_KINDS, "one pace each");

static void write_reason(char buf[RLK_CAUSE_SIZE], size_t i, const struct told *told)
{
    if (table[i].reason) {
        snprintf(buf, RLK_CAUSE_SIZE, "%s", table[i].reason);
        return;
    }
    if (table[i].news == RLK_NEWS_AT_RISK)
        rlk_loss_reason_write_risk(buf, told->cause, told->cause_ms,
                                   told->event.remaining_ms);
    else
        rlk_loss_reason_write(buf, told->cause, told->cause_ms);
}

static bool tell_holder(struct rlock_client *client, struct told *told)
{
    char shown[RLK_LOG_NAME_SIZE], more[RLK_LOG_MORE_SIZE], reason[RLK_CAUSE_SIZE];
    char lasted[RLK_LOG_NUMBER_SIZE];

    for (size_t i = 0; i < RLK_HOLD_EVENT_KINDS; i++) {
        if (!(told->news & table[i].news))
            continue;
        rlock_event_t event = told->event;
        event.kind = table[i].kind;
        event.reason = reason;
        write_reason(reason, i, told);
        if (rlk_log_now(&client->news_paces[i], rlk_clock_boot(), LINES_MAX, more)) {
            rlk_log_name(shown, sizeof(shown), told->name, strlen(told->name));
            rlk_log(table[i].level, "rlock: %s \"%s\" after %s s: %s%s", table[i].text,
                    shown, rlk_log_seconds(lasted, told->lasted), reason, more);
        }
        if (!tell(client, &event))
            return false;
    }
    return true;
}

/* Reports a dead process of this host. recovery.c logs its locks. */
static bool tell_death(struct rlock_client *client, const struct rlk_death_event *death)
{
    char reason[RLK_CAUSE_SIZE + sizeof(death->program)];
    rlock_event_t event = { .kind = RLOCK_EVENT_OWNER_DIED,
                            .type = death->type,
                            .mode = death->mode,
                            .name = death->name,
                            .reason = reason };

    snprintf(reason, sizeof(reason),
             "process %ld (%s) of this host died while holding it", death->pid,
             death->program);
    return tell(client, &event);
}

static bool tell_deaths(struct rlock_client *client)
{
    bool go_on = true;

    while (go_on) {
        rlk_registry_lock(&client->registry);
        struct rlk_death_event *death = rlk_awaited_next_death_locked(&client->registry);
        rlk_registry_unlock(&client->registry);
        if (!death)
            break;
        go_on = tell_death(client, death);
        free(death);
    }
    return go_on;
}

bool rlk_events_news(struct rlock_client *client)
{
    struct told told RLK_UNINITIALIZED;

    while (next_news(&client->registry, &told))
        if (!tell_holder(client, &told))
            return false;
    return tell_deaths(client);
}
