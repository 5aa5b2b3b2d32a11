/* SPDX-License-Identifier: Apache-2.0 */
/* See shardmail.h. */
#include "client/shardmail.h"

#include "base/clock.h"
#include "client/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEEP_MS = 180000, /* after the last use */
    SHORT_MS = 30000, /* the same, when there are many; a use is noted each 10 s */
    MANY = 1024,
    AGAIN_MS = 1000 /* before a subscription that was not confirmed is asked for again */
};

struct rlk_shardmail_tag {
    struct rlk_shardmail_tag *chain;
    struct rlk_list use_link, pending_link;
    int64_t used_at;
    int64_t asked_at; /* 0: not yet */
    bool joined;
    uint8_t len;
    char text[];
};

/* The channel's name is the prefix, this, and the client's uuid. */
struct tag {
    const char *text;
    size_t len;
};

static struct tag tag_of(const char *name, size_t name_len)
{
    const char *open = memchr(name, '{', name_len);
    const char *close = open ? memchr(open, '}', name_len - (size_t)(open - name)) : NULL;

    return close ? (struct tag){ open + 1, (size_t)(close - open) - 1 }
                 : (struct tag){ name, name_len };
}

static struct rlk_shardmail_tag **find(struct rlk_shardmail *mail, struct tag tag)
{
    uint64_t hash = rlk_key_hash(tag.text, tag.len);
    struct rlk_shardmail_tag **at = &mail->buckets[hash % RLK_SHARDMAIL_BUCKETS];

    while (*at && ((*at)->len != tag.len || memcmp((*at)->text, tag.text, tag.len) != 0))
        at = &(*at)->chain;
    return at;
}

static struct rlk_shardmail_tag *make(struct rlk_shardmail *mail,
                                      struct rlk_shardmail_tag **at, struct tag tag)
{
    struct rlk_shardmail_tag *entry = calloc(1, sizeof(*entry) + tag.len);

    if (!entry)
        return NULL;
    entry->len = (uint8_t)tag.len;
    memcpy(entry->text, tag.text, tag.len);
    rlk_list_init(&entry->use_link);
    rlk_list_init(&entry->pending_link);
    *at = entry;
    mail->count++;
    return entry;
}

static void drop(struct rlk_shardmail *mail, struct rlk_shardmail_tag *entry)
{
    struct rlk_shardmail_tag **at = find(mail, (struct tag){ entry->text, entry->len });

    *at = entry->chain;
    mail->count--;
    rlk_list_remove(&entry->use_link);
    rlk_list_remove(&entry->pending_link);
    free(entry);
}

void rlk_shardmail_want_locked(struct rlk_target *target, const char *name,
                               size_t name_len, int64_t now)
{
    struct rlk_shardmail *mail = &target->shardmail;
    struct rlk_registry *reg = &target->client->registry;
    struct tag tag = tag_of(name, name_len);

    /* rule: P21 */
    if (!mail->made) {
        rlk_list_init(&mail->by_use);
        rlk_list_init(&mail->pending);
        mail->made = true;
    }
    struct rlk_shardmail_tag **at = find(mail, tag), *entry = *at;
    if (!entry)
        entry = make(mail, at, tag);
    if (!entry)
        return;
    entry->used_at = now;
    rlk_list_remove(&entry->use_link);
    rlk_list_append(&mail->by_use, &entry->use_link);
    if (entry->joined || !rlk_list_empty(&entry->pending_link) ||
        (entry->asked_at != 0 && now - entry->asked_at < AGAIN_MS * RLK_NS_PER_MS))
        return;
    rlk_list_append(&mail->pending, &entry->pending_link);
    reg->subscriber_dirty = true;
}

static int append(const struct rlock_client *client, struct rlk_conn *conn,
                  const char *verb, const struct rlk_shardmail_tag *entry)
{
    char channel[RLK_KEY_SIZE + RLK_UUID_LEN];
    const char *argv[] = { verb, channel };
    size_t len = sizeof(RLK_MAILBOX_PREFIX) - 1;

    memcpy(channel, RLK_MAILBOX_PREFIX, len);
    channel[len++] = '{';
    memcpy(channel + len, entry->text, entry->len);
    len += entry->len;
    memcpy(channel + len, "}:", 2);
    memcpy(channel + len + 2, client->uuid, RLK_UUID_LEN);
    const size_t lens[] = { strlen(verb), len + 2 + RLK_UUID_LEN };
    return rlk_conn_append(conn, 2, argv, lens);
}

/* Whether it was not used for so long that it is left. */
static bool is_old(const struct rlk_shardmail *mail,
                   const struct rlk_shardmail_tag *entry, int64_t now)
{
    int64_t ms = mail->count > MANY ? SHORT_MS : KEEP_MS;

    return now - entry->used_at >= ms * RLK_NS_PER_MS;
}

int rlk_shardmail_follow(struct rlk_target *target, struct rlk_conn *conn, int64_t now)
{
    struct rlock_client *client = target->client;
    struct rlk_shardmail *mail = &target->shardmail;
    struct rlk_list *l;
    int rc = 0;

    rlk_registry_lock(&client->registry);
    while (rc == 0 && mail->made && (l = rlk_list_first(&mail->by_use)) != NULL) {
        struct rlk_shardmail_tag *entry =
            RLK_CONTAINER_OF(l, struct rlk_shardmail_tag, use_link);
        if (!is_old(mail, entry, now))
            break;
        if (entry->asked_at != 0)
            rc = append(client, conn, "SUNSUBSCRIBE", entry);
        drop(mail, entry);
    }
    while (rc == 0 && mail->made && (l = rlk_list_pop(&mail->pending)) != NULL) {
        struct rlk_shardmail_tag *entry =
            RLK_CONTAINER_OF(l, struct rlk_shardmail_tag, pending_link);
        rc = append(client, conn, "SSUBSCRIBE", entry);
        entry->asked_at = now;
    }
    rlk_registry_unlock(&client->registry);
    return rc;
}

int64_t rlk_shardmail_due(struct rlk_target *target)
{
    struct rlk_registry *reg = &target->client->registry;
    struct rlk_shardmail *mail = &target->shardmail;
    int64_t due = RLK_NEVER;

    rlk_registry_lock(reg);
    struct rlk_list *l = mail->made ? rlk_list_first(&mail->by_use) : NULL;
    if (l)
        due = RLK_CONTAINER_OF(l, struct rlk_shardmail_tag, use_link)->used_at +
              (mail->count > MANY ? SHORT_MS : KEEP_MS) * RLK_NS_PER_MS;
    rlk_registry_unlock(reg);
    return due;
}

void rlk_shardmail_rejoin(struct rlk_target *target)
{
    struct rlk_registry *reg = &target->client->registry;
    struct rlk_shardmail *mail = &target->shardmail;

    rlk_registry_lock(reg);
    for (struct rlk_list *l = mail->made ? mail->by_use.next : &mail->by_use;
         l != &mail->by_use; l = l->next) {
        struct rlk_shardmail_tag *entry =
            RLK_CONTAINER_OF(l, struct rlk_shardmail_tag, use_link);
        entry->asked_at = 0;
        entry->joined = false;
        rlk_list_remove(&entry->pending_link);
        rlk_list_append(&mail->pending, &entry->pending_link);
    }
    rlk_registry_unlock(reg);
}

bool rlk_shardmail_said(struct rlk_target *target, const char *channel, size_t len,
                        bool joined)
{
    struct rlk_registry *reg = &target->client->registry;
    struct rlk_shardmail *mail = &target->shardmail;
    const size_t prefix = sizeof(RLK_MAILBOX_PREFIX) - 1, rest = RLK_UUID_LEN + 2;

    if (len < prefix + 1 + rest)
        return false;
    struct tag tag = { channel + prefix + 1, len - prefix - 1 - rest };
    rlk_registry_lock(reg);
    struct rlk_shardmail_tag *entry = mail->made ? *find(mail, tag) : NULL;
    bool news = entry && entry->joined != joined;
    if (news && joined)
        entry->joined = true;
    else if (news)
        drop(mail, entry);
    rlk_registry_unlock(reg);
    return news;
}

void rlk_shardmail_clear(struct rlk_shardmail *mail)
{
    struct rlk_list *l;

    while (mail->made && (l = rlk_list_first(&mail->by_use)) != NULL)
        drop(mail, RLK_CONTAINER_OF(l, struct rlk_shardmail_tag, use_link));
}
