/* SPDX-License-Identifier: Apache-2.0 */
/* See script_args.h. */
#include "client/script_args.h"

#include <stdio.h>
#include <string.h>

static const struct rlk_kind *begin(struct rlk_request *req,
                                    const struct rlock_client *client,
                                    const struct rlk_lock *lock,
                                    enum rlk_script_id script)
{
    rlk_request_init(req, script, rlk_client_is_sharded(client), lock->name,
                     lock->name_len);
    return &rlk_kinds[lock->kind];
}

static bool has_readers(const struct rlk_kind *kind)
{
    return kind->refresh == RLK_RWLOCK_REFRESH;
}

void rlk_script_args_acquire(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_script_args_acquire *ask)
{
    const struct rlk_hold *hold = ask->hold;
    const struct rlk_lock *lock = hold->lock;
    const struct rlk_kind *kind =
        begin(req, client, lock,
              hold->reading ? rlk_kinds[lock->kind].read : rlk_kinds[lock->kind].acquire);

    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(req, ask->lease_ms);
    rlk_request_add_int(req, client->config.presence_ms);
    rlk_request_add_int(req, ask->not_after_us);
    rlk_request_add_int(req, ask->beside ? 2 : ask->try_once);
    rlk_request_add_int(req, hold->id.letter >= 'A' && hold->id.letter <= 'Z');
    if (has_readers(kind))
        rlk_request_add_int(req, hold->prefer);
    if (kind->in_order || has_readers(kind))
        rlk_request_add_int(req, ask->after.queue);
    if (has_readers(kind))
        rlk_request_add_int(req, ask->after.rqueue);
    if (hold->reading && ask->share)
        rlk_request_add_id(req, client->uuid, &ask->share->id);
    else if (hold->reading)
        rlk_request_add(req, "", 0);
    /* rule: P11 */
    if (rlk_confirm_is_on(&client->config.wait) && !hold->reading)
        rlk_request_add_int(req, 1);
}

/* What is to become of the owner-died mark of a robust lock (lua/lib/robust.lua). */
static const char *mark_of(const struct rlk_hold *hold)
{
    return hold->since == 0 ? "unused"
           : hold->robust.owner_ended ||
                   (hold->state == RLK_HOLD_LOST && !hold->ending.whole)
               ? "died"
           : hold->robust.owner_died ? "spoilt"
                                     : "clean";
}

static void add_mark(struct rlk_request *req, const struct rlk_hold *hold)
{
    const char *how = mark_of(hold);

    rlk_request_add(req, how, strlen(how));
    rlk_request_add_int(req,
                        rlk_hold_is_background(hold) || hold->ending.release_unknown);
}

void rlk_script_args_release(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_hold *hold, int64_t marker_ms)
{
    const struct rlk_lock *lock = hold->lock;
    const struct rlk_kind *kind = begin(req, client, lock, rlk_kinds[lock->kind].release);

    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_int(req, marker_ms);
    rlk_request_add_channel(req, lock->name, lock->name_len);
    if (has_readers(kind))
        rlk_request_add_int(req, hold->prefer);
    else if (rlk_id_robust(&hold->id))
        add_mark(req, hold);
}

void rlk_script_args_cancel(struct rlk_request *req, const struct rlock_client *client,
                            const struct rlk_hold *hold, int64_t marker_ms)
{
    const struct rlk_kind *kind =
        begin(req, client, hold->lock, rlk_kinds[hold->lock->kind].cancel);

    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_int(req, marker_ms);
    if (has_readers(kind))
        rlk_request_add_int(req, hold->prefer);
}

void rlk_script_args_renew(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_hold *hold, int64_t lease_ms,
                           struct rlk_script_args_renew with)
{
    const struct rlk_lock *lock = hold->lock;

    if (has_readers(&rlk_kinds[lock->kind])) {
        char buf[RLK_SCRIPT_ARGS_RENEWAL_SIZE];
        size_t len = rlk_script_args_renewal_write(buf, client, hold, lease_ms, with);
        begin(req, client, lock, rlk_kinds[lock->kind].renew);
        rlk_request_add(req, client->uuid, RLK_UUID_LEN);
        rlk_request_add(req, buf, len);
        return;
    }
    begin(req, client, lock, rlk_kinds[lock->kind].renew);
    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_int(req, lease_ms);
    rlk_request_add_channel(req, lock->name, lock->name_len);
    rlk_request_add_int(req, with.tell);
    bool confirm = rlk_confirm_is_on(&client->config.wait);
    bool all = confirm && !rlk_kinds[lock->kind].in_order;
    if (with.tokens || with.mark != 0 || all)
        rlk_request_add_int(req, with.tokens);
    if (with.mark != 0 || all)
        rlk_request_add_int(req, with.mark);
    if (confirm)
        rlk_request_add_int(req, 1);
}

void rlk_script_args_raise(struct rlk_request *req, const struct rlock_client *client,
                           const struct rlk_hold *hold, int64_t lease_ms)
{
    begin(req, client, hold->lock, RLK_LOCK_RAISE);
    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_int(req, lease_ms);
    rlk_request_add_int(req, rlk_confirm_is_on(&client->config.wait));
}

void rlk_script_args_drop(struct rlk_request *req, const struct rlock_client *client,
                          const struct rlk_hold *hold)
{
    begin(req, client, hold->lock, RLK_LOCK_DROP);
    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_channel(req, hold->lock->name, hold->lock->name_len);
}

bool rlk_script_args_unmark(struct rlk_request *req, const struct rlock_client *client,
                            const struct rlk_hold *hold)
{
    const char *how = mark_of(hold);

    begin(req, client, hold->lock, RLK_LOCK_UNMARK);
    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add(req, how, strlen(how));
    return strcmp(how, "clean") == 0 || strcmp(how, "spoilt") == 0;
}

void rlk_script_args_reading(struct rlk_request *req, const struct rlock_client *client,
                             const struct rlk_lock *lock, int64_t since_us,
                             int64_t lease_ms)
{
    begin(req, client, lock, RLK_READING_RAISE);
    rlk_request_add_int(req, since_us);
    rlk_request_add_int(req, lease_ms);
    rlk_request_add_int(req, rlk_confirm_is_on(&client->config.wait));
}

void rlk_script_args_drop_reader(struct rlk_request *req,
                                 const struct rlock_client *client,
                                 const struct rlk_hold *hold)
{
    begin(req, client, hold->lock, RLK_READER_DROP);
    rlk_request_add_id(req, client->uuid, &hold->id);
}

void rlk_script_args_downgrade(struct rlk_request *req, const struct rlock_client *client,
                               const struct rlk_hold *hold, int64_t lease_ms)
{
    begin(req, client, hold->lock, rlk_kinds[hold->lock->kind].downgrade);
    rlk_request_add_id(req, client->uuid, &hold->id);
    rlk_request_add_int(req, lease_ms);
    rlk_request_add_int(req, hold->prefer);
    if (hold->id.letter == 'W') /* the section's token, which may not be the first of the
                                   block */
        rlk_request_add_int(req, (int64_t)hold->token);
}

void rlk_script_args_refresh(struct rlk_request *req, const struct rlock_client *client,
                             int kind, const char *name, size_t name_len, int prefer,
                             struct rlk_cursor after, const char *names, size_t names_len)
{
    rlk_request_init(req, rlk_kinds[kind].refresh, rlk_client_is_sharded(client), name,
                     name_len);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(req, client->config.presence_ms);
    if (has_readers(&rlk_kinds[kind]))
        rlk_request_add_int(req, prefer);
    rlk_request_add_int(req, after.queue);
    if (has_readers(&rlk_kinds[kind]))
        rlk_request_add_int(req, after.rqueue);
    rlk_request_add_borrowed(req, names, names_len);
}

size_t rlk_script_args_renewal_write(char *buf, const struct rlock_client *client,
                                     const struct rlk_hold *hold, int64_t lease_ms,
                                     struct rlk_script_args_renew with)
{
    bool confirm = rlk_confirm_is_on(&client->config.wait);
    size_t len = rlk_id_write_local(buf, &hold->id);
    return len + (size_t)snprintf(buf + len, 26, " %lld%s%s%s ", (long long)lease_ms,
                                  with.tell ? "t" : "", with.tokens ? "m" : "",
                                  confirm ? "c" : "");
}

void rlk_script_args_renewals(struct rlk_request *req, const struct rlock_client *client,
                              const struct rlk_lock *lock, bool alone, const char *names,
                              size_t names_len)
{
    begin(req, client, lock, alone ? RLK_READER_RAISE : rlk_kinds[lock->kind].renew);
    rlk_request_add(req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_borrowed(req, names, names_len);
}
