/* SPDX-License-Identifier: Apache-2.0 */
/* What the subscriber does with messages: each is for the registry, which decides what to
 * believe. No state. Thread: the subscriber, or a leader (leader.h). Locks: takes the
 * registry's mu. */
#include "client/subscriber.h"

#include "client/client.h"
#include "net/mailbox.h"

#include <string.h>

/* Whether the id belongs to this process. */
static bool take_grant(struct rlock_client *client, const struct rlk_mail *mail, size_t i)
{
    struct rlk_registry *reg = &client->registry;
    const struct rlk_mail_grant *grant = &mail->grants[i];
    uint64_t token = mail->token == 0 ? 0 : mail->token + i * mail->token_count;
    struct rlk_id id;

    if (!rlk_id_parse(&id, client->uuid, grant->id, grant->id_len))
        return false;
    rlk_registry_lock(reg);
    bool known = rlk_registry_grant_locked(reg, &id, mail->name, mail->name_len,
                                           grant->ticket, token, mail->flags);
    rlk_registry_unlock(reg);
    return known;
}

/* Whether the id belongs to this process. */
static bool take_news(struct rlock_client *client, const struct rlk_mail *mail)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_id id;

    if (!rlk_id_parse(&id, client->uuid, mail->id, mail->id_len))
        return false;
    rlk_registry_lock(reg);
    bool known = mail->kind == RLK_MAIL_LOST
                     ? rlk_registry_lost_locked(reg, &id, mail->name, mail->name_len)
                     : rlk_registry_recalled_locked(reg, &id, mail->name, mail->name_len);
    rlk_registry_unlock(reg);
    return known;
}

void rlk_subscriber_take_mail(struct rlock_client *client, const char *text, size_t len)
{
    struct rlk_mail mail RLK_UNINITIALIZED;
    size_t unknown = 0;

    if (!rlk_mailbox_parse(&mail, text, len) ||
        rlk_key_check(mail.name, mail.name_len) != 0) {
        RLK_COUNT(client->counters.messages_ignored);
        return;
    }
    RLK_COUNT(client->counters.messages);
    if (mail.kind != RLK_MAIL_GRANT)
        unknown = !take_news(client, &mail);
    for (size_t i = 0; mail.kind == RLK_MAIL_GRANT && i < mail.grant_count; i++)
        unknown += !take_grant(client, &mail, i);
    if (unknown > 0)
        RLK_COUNT(client->counters.messages_ignored);
}

void rlk_subscriber_take_channel(struct rlock_client *client, const char *channel,
                                 size_t len)
{
    struct rlk_registry *reg = &client->registry;
    char tagged[RLK_KEY_SIZE];
    size_t name_len;
    const char *name = rlk_key_of_channel(channel, len, &name_len);

    if (!name || name_len > RLOCK_NAME_MAX)
        return;
    tagged[0] = '{';
    memcpy(tagged + 1, name, name_len);
    tagged[name_len + 1] = '}';
    rlk_registry_lock(reg);
    for (int kind = 1; kind < RLK_KIND_LIMIT; kind++) {
        for (int form = 0; form < 2; form++) {
            struct rlk_lock *lock =
                form == 0 ? rlk_lock_find_locked(reg, kind, name, name_len)
                          : rlk_lock_find_locked(reg, kind, tagged, name_len + 2);
            if (!lock)
                continue;
            if (rlk_lock_has_queue(lock))
                lock->queue->messages++;
            rlk_queue_poll_locked(lock);
            if (kind == RLK_KIND_WATCH)
                rlk_lock_wake_locked(lock);
        }
    }
    rlk_registry_unlock(reg);
}
