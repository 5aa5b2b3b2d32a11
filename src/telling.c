/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what the registry and the subscriber have to tell, as log lines and to the
 * callback of the client's user. Thread: the subscriber's. Locks: takes the registry's
 * mu; none is held while the callback runs. */
#include "telling.h"

#include "client.h"
#include "deadline.h"
#include "fork.h"
#include "log.h"

#include <string.h>

/* Calls the event callback. False: the client was closed by it, or is the parent's. */
static bool tell(struct rlock_client *client, const rlock_event_t *event)
{
    unsigned generation = rlk_fork_generation();

    if (!client->event_fn || rlk_log_ended())
        return true;
    rlk_client_retain(client);
    client->event_fn(event, client->event_arg);
    if (rlk_fork_since(generation))
        return false; /* it forked, and came back in the child */
    bool open = client->subscription.member.attached;
    rlk_client_release(client);
    return open;
}

bool rlk_tell_connection(struct rlock_client *client, bool up, const char *reason)
{
    rlock_event_t event = {
        .kind = up ? RLOCK_EVENT_CONNECTED : RLOCK_EVENT_DISCONNECTED,
        .name = "",
        .reason = reason,
    };
    rlk_log(up ? RLK_LOG_INFO : RLK_LOG_WARNING, "rlock: %s %s%s%s",
            up ? "connected to" : "disconnected from", client->config.target.label,
            reason[0] ? ": " : "", reason);
    return tell(client, &event);
}

static const char *const reasons[] = {
    [RLK_LOSS_NONE] = "",
    [RLK_LOSS_ENDED] = "the lease ended",
    [RLK_LOSS_FIXED_ENDED] = "its fixed lease ended",
    [RLK_LOSS_UNCONFIRMED] = "the lease ended before a renewal was confirmed",
    [RLK_LOSS_NOT_OURS] =
        "the server says that it is not ours any more (forced, deleted or expired)",
    [RLK_LOSS_ANOTHERS] = "the server gave it to another",
};

struct told {
    unsigned news;
    rlock_event_t event;
    char name[RLOCK_NAME_MAX + 1];
    int64_t lasted;
};

/* Takes the news of one thread's hold out of the registry. False: there is none. */
static bool next_news(struct rlk_registry *reg, struct told *ret_told)
{
    rlk_registry_lock(reg);
    struct rlk_part *part = rlk_registry_news_locked(reg);
    if (!part) {
        rlk_registry_unlock(reg);
        return false;
    }
    struct rlk_hold *hold = part->hold;
    struct rlk_lock *lock = hold->lock;
    ret_told->news = part->news;
    memcpy(ret_told->name, lock->name, (size_t)lock->name_len + 1);
    int64_t left_ms = (hold->end - rlk_now_boot()) / RLK_NS_PER_MS;
    ret_told->event = (rlock_event_t){
        .type = rlk_kinds[lock->kind].type,
        .mode = hold->reading ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE,
        .name = ret_told->name,
        .token = part->fencing ? hold->token : 0,
        .thread = part->owner_thread,
        .remaining_ms = left_ms > 0 && hold->state == RLK_HOLD_INSIDE ? (long)left_ms : 0,
        .reason = reasons[hold->loss],
    };
    bool ended = hold->state == RLK_HOLD_LOST || hold->owner_ended;
    ret_told->lasted = hold->state == RLK_HOLD_INSIDE ? rlk_now_boot() - hold->since
                       : ended                        ? hold->lost_after
                                                      : 0; /* unlocked meanwhile */
    rlk_part_told_locked(part);
    rlk_registry_unlock(reg);
    return true;
}

static bool tell_part(struct rlock_client *client, struct told *told)
{
    static const struct {
        unsigned news;
        rlock_event_kind_t kind;
        int level;
        const char *text, *reason;
    } table[] = {
        { RLK_NEWS_AT_RISK, RLOCK_EVENT_AT_RISK, RLK_LOG_WARNING, "at risk",
          "the lease is about to end and was not renewed" },
        { RLK_NEWS_SAFE, RLOCK_EVENT_SAFE_AGAIN, RLK_LOG_INFO, "safe again",
          "the lease was renewed" },
        { RLK_NEWS_LOST, RLOCK_EVENT_LOST, RLK_LOG_ERR, "lost", NULL },
        { RLK_NEWS_DIED, RLOCK_EVENT_OWNER_DIED, RLK_LOG_ERR, "given up",
          "its thread ended without unlocking it" },
    };
    char shown[RLK_LOG_NAME_SIZE];

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!(told->news & table[i].news))
            continue;
        rlock_event_t event = told->event;
        event.kind = table[i].kind;
        if (table[i].reason)
            event.reason = table[i].reason;
        rlk_log_name(shown, sizeof(shown), told->name, strlen(told->name));
        rlk_log(table[i].level, "rlock: %s \"%s\" after %.1f s: %s", table[i].text, shown,
                (double)told->lasted / (double)RLK_NS_PER_S, event.reason);
        if (!tell(client, &event))
            return false;
    }
    return true;
}

bool rlk_tell_news(struct rlock_client *client)
{
    struct told told RLK_UNINITIALIZED;

    while (next_news(&client->registry, &told))
        if (!tell_part(client, &told))
            return false;
    return true;
}
