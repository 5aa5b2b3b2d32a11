/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See prober.h. A probe visits holds: those that a message names, or those of the asking
 * client itself, which are in the reply of the server. Each thread that is inside such a
 * hold and waits for another lock, perhaps with another client of the process, sends the
 * probe on to the holders of that lock; unless it waits for the very lock where the probe
 * began: then it has come back. "Inside" and "waits" are looked up one after the other,
 * each under the mutex of its client. The second round makes this good (E6, E13).
 *
 * Thread: the watchdog. All clients of the process have the same watchdog, so a client
 * that it finds is not closed meanwhile.
 */
#include "client/prober.h"

#include "base/clock.h"
#include "client/client.h"
#include "client/renewer_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    VISITED_MAX = 256,  /* threads that one probe visits in a process */
    SEND_AGAIN_MS = 20, /* before a probe is tried again that could not be sent */
    GIVE_UP_MS = 2000,  /* a probe that could not be sent for so long is dropped */
    REPLY_HEAD = 3,     /* in front of the ids */
    READERS_MAX = 256   /* that the script looks at */
};

/* A thread that a probe visits. */
struct visited {
    struct rlk_nested_holder holder;
    struct rlock_client *client; /* with which it waits; NULL: it waits for no lock */
    char key[RLK_CHASE_KEY_SIZE];
};

/* ---- sending */

/* The part of a connection's name that people know: host:pid:program. */
static const char *party_of(const struct rlock_client *client)
{
    return client->conn_name + strlen("rlock:") + RLK_UUID_LEN + 1;
}

static void write_head(struct rlk_probe *probe)
{
    const struct rlk_chase_mark *mark = &probe->mark;
    char *at = probe->head;

    memcpy(at, mark->initiator, RLK_UUID_LEN);
    at += RLK_UUID_LEN;
    *at++ = ' ';
    at += rlk_id_write_number(at, mark->nonce);
    *at++ = ' ';
    at += rlk_id_write_number(at, mark->hops);
    *at++ = ' ';
    at = stpcpy(at, mark->victim);
    *at++ = ' ';
    at += rlk_id_write_number(at, mark->digest);
    *at++ = ' ';
    stpcpy(at, mark->path);
}

/* Sends the probe. False: it cannot be sent now, or never. */
static bool send_now(struct rlock_client *client, struct rlk_probe *probe, int64_t now)
{
    struct rlk_target *target =
        rlk_renewer_target_of(client, probe->name, probe->name_len);
    struct rlk_request req RLK_UNINITIALIZED;

    if (!rlk_renewer_ready(&target->watch))
        return false;
    rlk_request_init(&req, RLK_LOCK_PROBE, rlk_client_is_sharded(client), probe->name,
                     probe->name_len);
    rlk_request_add(&req, client->uuid, RLK_UUID_LEN);
    rlk_request_add_int(&req, probe->skip);
    rlk_request_add_borrowed(&req, probe->head, strlen(probe->head));
    if (rlk_script_append(target->watch.conn, &req, probe->with_text) != 0)
        return false;
    RLK_COUNT(client->counters.deadlock_probes);
    probe->op.hold = NULL;
    rlk_renewer_put_in_flight(&target->watch, &probe->op, RLK_OP_PROBE, now,
                              rlk_client_command_timeout(client));
    return true;
}

/* Makes a probe that asks the holders of a lock. NULL: out of memory. */
static struct rlk_probe *make_probe(const struct rlk_lock *lock,
                                    const struct rlk_chase_mark *mark, int64_t now)
{
    struct rlk_probe *probe = malloc(sizeof(*probe));

    if (!probe)
        return NULL;
    probe->with_text = false;
    probe->skip = lock->queue->chase ? lock->queue->chase->skip : 0;
    probe->made = now;
    probe->name_len = lock->name_len;
    memcpy(probe->name, lock->name, (size_t)lock->name_len + 1);
    probe->mark = *mark;
    rlk_list_init(&probe->link);
    write_head(probe);
    return probe;
}

/* Begins a round of the lock. Locks: holds the registry's mu. */
static void begin_round(struct rlock_client *client, struct rlk_lock *lock, bool again,
                        int64_t now)
{
    struct rlk_chase_mark mark RLK_UNINITIALIZED;
    struct rlk_probe *probe = rlk_chase_begin_locked(lock, client->uuid, again, &mark)
                                  ? make_probe(lock, &mark, now)
                                  : NULL;

    if (probe)
        rlk_chase_send_locked(&client->registry, probe);
}

/* rule: E2, E12 */
void rlk_prober_due(struct rlock_client *client, struct rlk_lock *lock, int64_t now)
{
    struct rlk_registry *reg = &client->registry;
    int64_t due = rlk_nested_due(lock);

    if (due <= now) {
        begin_round(client, lock, false, now);
        due = now + reg->deadlock_ns;
    }
    if (due != RLK_NEVER)
        rlk_timer_arm(&reg->timers, &lock->queue->chase_timer, due);
}

/* ---- visits */

/* The client with which the thread waits; NULL: it does not wait for a lock, or is inside
 * no other one. */
static struct rlock_client *client_of(struct rlk_thread *thread)
{
    uint64_t in = atomic_load_explicit(&thread->nested_in, memory_order_relaxed);
    return in == 0 ? NULL : rlk_watchdog_client(in - 1);
}

/* Descending. */
static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct visited *)b)->key, ((const struct visited *)a)->key);
}

/* rule: E13 */
/* A thread is inside a hold that the probe asks about, and waits for a lock of this
 * client. Locks: takes the registry's mu. */
static void visit(struct rlock_client *client, const struct visited *visited,
                  const struct rlk_chase_mark *mark, int64_t now)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_chase_mark on RLK_UNINITIALIZED;
    const char *party = party_of(client);

    rlk_registry_lock(reg);
    struct rlk_nested *nested =
        rlk_nested_of_locked(reg, visited->holder.thread, visited->holder.number);
    if (!nested) {
        rlk_registry_unlock(reg);
        return;
    }
    struct rlk_lock *lock = nested->lock;
    on = *mark;
    switch (rlk_chase_returned_locked(nested, client->uuid, now, &on)) {
    case RLK_CHASE_NOTED:
        break;
    case RLK_CHASE_SUSPECTED:
        begin_round(client, lock, true, now);
        break;
    case RLK_CHASE_FOUND: {
        char *cycle = rlk_chase_sentence(&on, party);
        if (cycle)
            rlk_chase_tell_locked(nested, client->uuid, &on, now, cycle);
        break;
    }
    case RLK_CHASE_OTHERS:
    default:
        /* rule: E4, E5 */
        if (mark->hops >= RLK_CHASE_HOPS_MAX ||
            !rlk_chase_forwards_locked(reg, mark, lock->name, lock->name_len, now))
            break;
        on.hops++;
        on.digest = rlk_chase_digest(on.digest, client->uuid, nested->thread_number,
                                     nested->number);
        rlk_chase_claim(&on, client->uuid, nested);
        rlk_chase_path_add(&on, ',', party, strlen(party));
        rlk_chase_path_add(&on, ';', lock->name, lock->name_len);
        struct rlk_probe *probe = make_probe(lock, &on, now);
        if (probe)
            rlk_chase_send_locked(reg, probe);
        break;
    }
    reg->watchdog_dirty |= atomic_load(&reg->chases.waits);
    rlk_registry_unlock(reg);
}

/* The ids of holds that a probe asks about. */
struct asked {
    const char *name; /* of the lock */
    size_t name_len;
    size_t count;
    struct rlk_mail_grant ids[RLK_MAIL_GRANTS_MAX];
};

/* Finds the threads inside these holds; returns how many. */
static size_t find_inside(struct rlock_client *client, const struct asked *asked,
                          int64_t now, struct visited *ret_visited)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_nested_holder holders[VISITED_MAX];
    size_t count = 0;
    struct rlk_id id;

    rlk_registry_lock(reg);
    for (size_t i = 0; i < asked->count; i++)
        if (rlk_id_parse(&id, client->uuid, asked->ids[i].id, asked->ids[i].id_len))
            count += rlk_nested_holders_locked(reg, &id, asked->name, asked->name_len,
                                               now, holders + count, VISITED_MAX - count);
    /* the next messages need not go to all nodes of a cluster */
    if (count > 0)
        rlk_route_use_mail_of_locked(&client->route, asked->name, asked->name_len, now);
    rlk_registry_unlock(reg);
    for (size_t i = 0; i < count; i++)
        ret_visited[i].holder = holders[i];
    return count;
}

/* rule: E3, E4 */
/* A probe asks about holds of this client. Of several threads that wait for one lock, the
 * one with the greatest key sends it on. */
static void visit_all(struct rlock_client *client, const struct asked *asked,
                      const struct rlk_chase_mark *mark, int64_t now)
{
    static struct visited all[VISITED_MAX]; /* the watchdog's */
    size_t count = find_inside(client, asked, now, all);

    for (size_t i = 0; i < count; i++) {
        struct visited *visited = &all[i];
        visited->client = client_of(visited->holder.thread);
        visited->key[0] = '\0';
        if (visited->client)
            rlk_chase_key(visited->key, visited->client->uuid, visited->holder.number);
    }
    qsort(all, count, sizeof(*all), by_key);
    for (size_t i = 0; i < count && all[i].client; i++)
        visit(all[i].client, &all[i], mark, now);
}

/* ---- messages */

static bool take_mark(const struct rlk_mail_probe *mail, struct rlk_chase_mark *ret_mark)
{
    if (memchr(mail->victim, '\0', mail->victim_len) ||
        memchr(mail->path, '\0', mail->path_len))
        return false;
    memcpy(ret_mark->initiator, mail->initiator, RLK_UUID_LEN);
    ret_mark->initiator[RLK_UUID_LEN] = '\0';
    ret_mark->nonce = mail->nonce;
    ret_mark->hops = mail->hops;
    memset(ret_mark->victim, 0, sizeof(ret_mark->victim));
    memcpy(ret_mark->victim, mail->victim, mail->victim_len);
    ret_mark->digest = mail->digest;
    ret_mark->path_len = mail->path_len;
    memcpy(ret_mark->path, mail->path, mail->path_len);
    ret_mark->path[mail->path_len] = '\0';
    return true;
}

static void read_letter(struct rlock_client *client, const struct rlk_letter *letter,
                        int64_t now)
{
    struct rlk_mail mail RLK_UNINITIALIZED;
    struct rlk_chase_mark mark RLK_UNINITIALIZED;
    struct asked asked RLK_UNINITIALIZED;

    if (!rlk_mailbox_parse(&mail, letter->text, letter->len) ||
        mail.kind != RLK_MAIL_PROBE || !take_mark(&mail.probe, &mark))
        return;
    asked.name = mail.name;
    asked.name_len = mail.name_len;
    asked.count = mail.grant_count;
    memcpy(asked.ids, mail.grants, mail.grant_count * sizeof(asked.ids[0]));
    visit_all(client, &asked, &mark, now);
}

static void read_letters(struct rlock_client *client, int64_t now)
{
    for (;;) {
        rlk_registry_lock(&client->registry);
        struct rlk_letter *letter = rlk_chase_next_letter_locked(&client->registry);
        rlk_registry_unlock(&client->registry);
        if (!letter)
            return;
        read_letter(client, letter, now);
        free(letter);
    }
}

/* Sends what waits, until one cannot be sent: it and the others are tried again soon. */
static void send_all(struct rlock_client *client, int64_t now)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_probe *probe;

    rlk_registry_lock(reg);
    while ((probe = rlk_chase_next_probe_locked(reg)) != NULL) {
        if (send_now(client, probe, now))
            continue;
        if (now - probe->made > GIVE_UP_MS * RLK_NS_PER_MS) {
            free(probe);
            continue;
        }
        rlk_chase_send_locked(reg, probe);
        atomic_store(&reg->chases.waits, false); /* until the timer */
        rlk_timer_arm(&reg->timers, &reg->chases.timer,
                      now + SEND_AGAIN_MS * RLK_NS_PER_MS);
        break;
    }
    rlk_registry_unlock(reg);
}

/* rule: E14 */
void rlk_prober_run(struct rlock_client *client, int64_t now)
{
    if (!atomic_exchange(&client->registry.chases.waits, false))
        return;
    read_letters(client, now);
    send_all(client, now);
}

/* ---- replies */

/* Reads the reply: the ids of this client's holds. False: it is none of the script. */
static bool read_reply(const struct rlk_reply *reply, const struct rlk_probe *probe,
                       struct asked *ret_asked, size_t *ret_looked)
{
    size_t count = rlk_reply_count(reply);
    int64_t looked;

    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY || count < REPLY_HEAD ||
        count > REPLY_HEAD + RLK_MAIL_GRANTS_MAX ||
        !rlk_reply_integer_at(reply, 2, &looked) || looked < 0)
        return false;
    *ret_looked = (size_t)looked;
    ret_asked->name = probe->name;
    ret_asked->name_len = probe->name_len;
    ret_asked->count = 0;
    for (size_t i = REPLY_HEAD; i < count; i++) {
        struct rlk_mail_grant *id = &ret_asked->ids[ret_asked->count];
        id->id = rlk_reply_text_at(reply, i, &id->id_len);
        ret_asked->count += id->id != NULL;
    }
    return true;
}

/* Further readers are asked in the next period. Locks: takes the registry's mu. */
static void go_on(struct rlock_client *client, const struct rlk_probe *probe,
                  size_t looked)
{
    struct rlk_registry *reg = &client->registry;

    if (probe->mark.hops > 0 || (looked < READERS_MAX && probe->skip == 0))
        return;
    rlk_registry_lock(reg);
    struct rlk_lock *lock =
        rlk_lock_find_locked(reg, RLK_KIND_RWLOCK, probe->name, probe->name_len);
    if (lock && rlk_lock_has_queue(lock) && lock->queue->chase &&
        lock->queue->chase->nonce == probe->mark.nonce)
        lock->queue->chase->skip_next =
            looked < READERS_MAX ? 0 : probe->skip + (unsigned)looked;
    rlk_registry_unlock(reg);
}

void rlk_prober_done(struct rlk_target *target, struct rlk_op *op,
                     const struct rlk_reply *reply)
{
    struct rlock_client *client = target->client;
    struct rlk_probe *probe = RLK_CONTAINER_OF(op, struct rlk_probe, op);
    struct rlk_answer answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    struct asked asked RLK_UNINITIALIZED;
    struct rlk_fate fate;
    int64_t now = rlk_clock_boot();
    size_t looked;

    /* rule: E9 */
    if (!reply) { /* a lost probe costs a round */
        free(probe);
        return;
    }
    RLK_COUNT(client->counters.round_trips);
    rlk_client_answered(client, op->sent, now);
    if (read_reply(reply, probe, &asked, &looked)) {
        visit_all(client, &asked, &probe->mark, now);
        go_on(client, probe, looked);
    } else {
        rlk_script_decode(target->watch.conn, &rlk_scripts[RLK_LOCK_PROBE], reply,
                          op->sent, &answer, &fate, 0, NULL, 0);
        if (answer.outcome == RLK_NOSCRIPT && !probe->with_text) {
            RLK_COUNT(client->counters.script_loads);
            probe->with_text = true;
            rlk_registry_lock(&client->registry);
            rlk_chase_send_locked(&client->registry, probe);
            client->registry.watchdog_dirty = true;
            rlk_registry_unlock(&client->registry);
            return;
        }
        rlk_renewer_follow(target, &answer);
    }
    free(probe);
}
