/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_inspect: shows a lock from outside. Thread: any. Blocks: network, up to the
 * command timeout for each request. */
#include "admin/inspect.h"

#include "admin/client_list.h"
#include "client/rpc.h"
#include "lock/call.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE = 500,           /* waiters in one reply */
    PARTIES_MAX = 1 << 18 /* a limit against a server whose replies never end */
};

#define NUMBER_MAX (INT64_C(1) << 60)
#define NEVER INT64_C(-1) /* PTTL of a key that does not expire; reported as it is */

/* ---- building an rlock_info_t */

struct parties {
    rlock_party_t *list;
    int64_t *tickets; /* of waiters, by the same index */
    size_t count, size;
};

struct box {
    rlock_info_t info; /* first, because rlock_info_free gets its address */
    struct parties holders, waiters;
};

static void free_parties(struct parties *p)
{
    for (size_t i = 0; i < p->count; i++) {
        free((char *)(uintptr_t)p->list[i].owner);
        free((char *)(uintptr_t)p->list[i].client);
    }
    free(p->list);
    free(p->tickets);
}

static void free_box(struct box *box)
{
    if (!box)
        return;
    free_parties(&box->holders);
    free_parties(&box->waiters);
    free((char *)(uintptr_t)box->info.name);
    free(box);
}

/* A time of years in ms may exceed a long of 32 bits. */
static long as_long(int64_t ms)
{
    return ms > LONG_MAX ? LONG_MAX : (long)ms;
}

static int add_party(struct parties *p, const struct rlk_client_list *peers,
                     const char *owner, size_t owner_len, rlock_mode_t mode,
                     int64_t since_ms, int64_t left_ms)
{
    if (p->count == PARTIES_MAX)
        return rlk_error_set(EPROTO, "unexpected reply from lock script lock_inspect: "
                                     "more parties than a lock can have");
    if (p->count == p->size) {
        size_t size = p->size ? 2 * p->size : 8;
        rlock_party_t *bigger = realloc(p->list, size * sizeof(*bigger));
        if (!bigger)
            return ENOMEM;
        p->list = bigger;
        int64_t *tickets = realloc(p->tickets, size * sizeof(*tickets));
        if (!tickets)
            return ENOMEM;
        p->tickets = tickets;
        p->size = size;
    }
    const char *colon = memchr(owner, ':', owner_len);
    size_t client_len = 0;
    const char *client =
        colon ? rlk_client_list_find(peers, owner, (size_t)(colon - owner), &client_len)
              : NULL;
    rlock_party_t *party = &p->list[p->count];
    party->owner = strndup(owner, owner_len);
    party->client = client ? strndup(client, client_len) : strdup("");
    party->mode = mode;
    party->since_ms = as_long(since_ms);
    party->lease_left_ms = as_long(left_ms > 0 || left_ms == NEVER ? left_ms : 0);
    p->tickets[p->count] = 0;
    p->count++; /* free_parties frees what was allocated */
    return party->owner && party->client ? 0 : ENOMEM;
}

/* Limits a value from the server, so that sums and differences do not overflow. */
static int64_t bounded(int64_t value)
{
    return value > NUMBER_MAX ? NUMBER_MAX : value < -NUMBER_MAX ? -NUMBER_MAX : value;
}

/* The ms since an instant, both in us; -1: not an instant. Any value may stand in the
 * keys: no difference overflows or is negative. */
static int64_t ms_since(int64_t now_us, int64_t then_us)
{
    if (then_us <= 0)
        return -1;
    return then_us < now_us ? (now_us - then_us) / 1000 : 0;
}

static int64_t ms_until(int64_t now_us, int64_t until_ms)
{
    return until_ms > now_us / 1000 ? until_ms - now_us / 1000 : 0;
}

static int64_t to_int(const char *text)
{
    return bounded(strtoll(text, NULL, 10));
}

static bool is(const char *text, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* The fields of N that are not holders. */
struct head {
    bool mode_seen;
    rlock_type_t type;
    rlock_mode_t mode;
    int64_t since_us;
    uint64_t token;
};

static void read_head(const struct rlk_reply *fields, struct head *head)
{
    size_t field_len, value_len;

    *head = (struct head){ .type = RLOCK_TYPE_REDISSON };
    for (size_t i = 0; i + 1 < rlk_reply_count(fields); i += 2) {
        const char *field = rlk_reply_text_at(fields, i, &field_len);
        const char *value = rlk_reply_text_at(fields, i + 1, &value_len);
        if (!field || !value)
            continue;
        if (is(field, field_len, "since")) {
            head->since_us = to_int(value);
        } else if (is(field, field_len, "token")) {
            head->token = strtoull(value, NULL, 10);
        } else if (is(field, field_len, "mode")) {
            head->mode_seen = true;
            head->type = is(value, value_len, "rlock:mutex")  ? RLOCK_TYPE_MUTEX
                         : is(value, value_len, "rlock:fair") ? RLOCK_TYPE_FAIR
                         : is(value, value_len, "rlock:write") ||
                                 is(value, value_len, "rlock:read")
                             ? RLOCK_TYPE_RWLOCK
                             : RLOCK_TYPE_REDISSON;
            if (is(value, value_len, "rlock:read") || is(value, value_len, "read"))
                head->mode = RLOCK_MODE_READ;
        }
    }
}

/* Whether a field of N is a holder: an id with an integer count. */
static bool is_holder(const char *field, size_t len, const char *value, size_t value_len)
{
    return memchr(field, ':', len) && value_len > 0 &&
           strspn(value, "0123456789") == value_len;
}

static int read_holders(struct box *box, const struct rlk_reply *reply,
                        const struct rlk_client_list *peers)
{
    const struct rlk_reply *fields = rlk_reply_at(reply, 2),
                           *readers = rlk_reply_at(reply, 3);
    int64_t now_us = bounded(rlk_reply_integer(rlk_reply_at(reply, 0)));
    int64_t pttl = bounded(rlk_reply_integer(rlk_reply_at(reply, 1)));
    struct head head;
    size_t len, value_len;
    int rc = 0;

    read_head(fields, &head);
    int64_t since_ms = ms_since(now_us, head.since_us);
    for (size_t i = 0; rc == 0 && i + 1 < rlk_reply_count(fields); i += 2) {
        const char *field = rlk_reply_text_at(fields, i, &len);
        const char *value = rlk_reply_text_at(fields, i + 1, &value_len);
        if (field && value && is_holder(field, len, value, value_len))
            rc = add_party(&box->holders, peers, field, len, head.mode, since_ms, pttl);
    }
    for (size_t i = 0; rc == 0 && i + 1 < rlk_reply_count(readers); i += 2) {
        const char *id = rlk_reply_text_at(readers, i, &len);
        const char *end = rlk_reply_text_at(readers, i + 1, &value_len);
        if (id && end && to_int(end) >= now_us / 1000)
            rc = add_party(&box->holders, peers, id, len, RLOCK_MODE_READ, since_ms,
                           ms_until(now_us, to_int(end)));
    }
    /* The readers' ends were lost: the lock is held until N ends, and its holders are
     * unknown (W6). */
    if (rc == 0 && head.type == RLOCK_TYPE_RWLOCK && head.mode == RLOCK_MODE_READ &&
        rlk_reply_count(readers) == 0)
        rc = add_party(&box->holders, peers, "", 0, RLOCK_MODE_READ, since_ms, pttl);
    if (rc == 0 && rlk_reply_count(fields) > 0 && box->holders.count == 0 &&
        !head.mode_seen)
        return rlk_error_set(EPROTO, "the key holds a hash that is not a lock");
    if (box->holders.count > 0) {
        box->info.type = head.type;
        box->info.token = head.token;
    }
    return rc;
}

/* One page of waiters: writers and exclusive waiters (which 4) or readers (5), with
 * their "alive until". */
static int read_waiters(struct box *box, const struct rlk_reply *reply,
                        const struct rlk_client_list *peers, int64_t cursors[2],
                        bool *ret_more)
{
    int64_t now_us = bounded(rlk_reply_integer(rlk_reply_at(reply, 0)));
    const struct rlk_reply *alive = rlk_reply_at(reply, 6);
    size_t n = 0, len, unused;
    int rc = 0;

    *ret_more = false;
    for (size_t which = 4; which <= 5; which++) {
        const struct rlk_reply *queue = rlk_reply_at(reply, which);
        size_t count = rlk_reply_count(queue);
        int64_t after = cursors[which - 4];
        for (size_t i = 0; rc == 0 && i + 1 < count; i += 2, n++) {
            const char *id = rlk_reply_text_at(queue, i, &len);
            const char *ticket = rlk_reply_text_at(queue, i + 1, &unused);
            const char *until = rlk_reply_text_at(alive, n, &unused);
            if (!id || !ticket || !until)
                return EPROTO;
            cursors[which - 4] = to_int(ticket);
            if (id[0] == '~') /* the bar of a reading, not a waiter */
                continue;
            rc = add_party(&box->waiters, peers, id, len,
                           which == 5 ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE,
                           ms_since(now_us, to_int(ticket)),
                           ms_until(now_us, to_int(until)));
            if (rc == 0)
                box->waiters.tickets[box->waiters.count - 1] = to_int(ticket);
        }
        if (count < 2 * (size_t)PAGE)
            continue;
        if (rc != 0)
            return rc;
        *ret_more = true;
        if (cursors[which - 4] <= after) /* the same page would come over and over */
            return rlk_error_set(EPROTO,
                                 "unexpected reply from lock script lock_inspect: the "
                                 "tickets in the queue do not increase");
    }
    return rc;
}

/* The order of tickets; with equal tickets writers come before readers. */
struct place {
    int64_t ticket;
    size_t index;
    const rlock_party_t *party;
};

static int by_ticket(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->ticket != y->ticket)
        return x->ticket < y->ticket ? -1 : 1;
    if (x->party->mode != y->party->mode)
        return x->party->mode == RLOCK_MODE_EXCLUSIVE ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Merges readers and writers, which each came in order, page by page. */
static int sort_waiters(struct parties *waiters)
{
    size_t count = waiters->count;
    struct place *places = malloc((count + 1) * sizeof(*places));
    rlock_party_t *sorted = malloc((count + 1) * sizeof(*sorted));

    if (!places || !sorted) {
        free(places);
        free(sorted);
        return ENOMEM;
    }
    for (size_t i = 0; i < count; i++)
        places[i] = (struct place){ waiters->tickets[i], i, &waiters->list[i] };
    qsort(places, count, sizeof(*places), by_ticket);
    for (size_t i = 0; i < count; i++)
        sorted[i] = *places[i].party;
    free(places);
    free(waiters->list);
    waiters->list = sorted;
    return 0;
}

static rlock_type_t type_of_waiter(const rlock_party_t *waiter)
{
    const char *last = strrchr(waiter->owner, ':');
    switch (last ? last[1] | 0x20 : 0) {
    case 'm':
        return RLOCK_TYPE_MUTEX;
    case 'f':
        return RLOCK_TYPE_FAIR;
    case 'r':
    case 'w':
        return RLOCK_TYPE_RWLOCK;
    default:
        return RLOCK_TYPE_UNKNOWN;
    }
}

static bool shape_ok(const struct rlk_reply *reply)
{
    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY || rlk_reply_count(reply) != 7)
        return false;
    for (size_t i = 0; i < 7; i++)
        if (rlk_reply_type(rlk_reply_at(reply, i)) !=
            (i < 2 ? RLK_REPLY_INTEGER : RLK_REPLY_ARRAY))
            return false;
    return rlk_reply_integer(rlk_reply_at(reply, 0)) > 0 &&
           rlk_reply_integer(rlk_reply_at(reply, 1)) >= -2;
}

/* *ret_hidden: EACCES, and the ACL hides this key or one beside it. */
static int ask_page(struct rlock_client *client, const char *name, size_t name_len,
                    const int64_t cursors[2], int64_t until, bool *ret_hidden,
                    struct rlk_reply **ret_reply)
{
    struct rlk_request req RLK_UNINITIALIZED;
    struct rlk_answer answer;

    rlk_request_init(&req, RLK_LOCK_INSPECT, false, name, name_len);
    rlk_request_add_int(&req, PAGE);
    rlk_request_add_int(&req, cursors[0]);
    rlk_request_add_int(&req, cursors[1]);
    *ret_reply = NULL;
    rlk_rpc_request(client, &req, until, &answer, ret_reply);
    *ret_hidden = answer.outcome == RLK_REFUSED && answer.key_refused;
    if (answer.outcome != RLK_DONE)
        return answer.code;
    if (shape_ok(*ret_reply))
        return 0;
    rlk_reply_free(*ret_reply);
    return rlk_script_unreadable(&req, "form");
}

/* Holders and the first page of waiters are of one moment, further pages are later. */
int rlk_inspect(struct rlock_client *client, const char *name,
                const struct rlk_client_list *peers, int64_t until, bool *ret_hidden,
                rlock_info_t **ret_info)
{
    size_t name_len = strlen(name);
    int64_t cursors[2] = { 0, 0 };
    struct box *box = calloc(1, sizeof(*box));
    bool more = true;
    int rc = 0;

    if (!box)
        return ENOMEM;
    box->info.name = strdup(name);
    if (!box->info.name)
        rc = ENOMEM;
    for (bool first = true; rc == 0 && more; first = false) {
        struct rlk_reply *reply;
        rc = ask_page(client, name, name_len, cursors, until, ret_hidden, &reply);
        if (rc != 0)
            break;
        if (first)
            rc = read_holders(box, reply, peers);
        if (rc == 0)
            rc = read_waiters(box, reply, peers, cursors, &more);
        rlk_reply_free(reply);
    }
    if (rc == 0 && box->holders.count == 0 && box->waiters.count == 0)
        rc = ENOENT;
    if (rc == 0 && cursors[1] != 0)
        rc = sort_waiters(&box->waiters);
    if (rc != 0) {
        free_box(box);
        return rc;
    }
    if (box->holders.count == 0)
        box->info.type = type_of_waiter(&box->waiters.list[0]);
    box->info.holder_count = box->holders.count;
    box->info.holders = box->holders.list;
    box->info.waiter_count = box->waiters.count;
    box->info.waiters = box->waiters.list;
    *ret_info = &box->info;
    return 0;
}

void rlk_inspect_free(rlock_info_t *info)
{
    free_box(RLK_CONTAINER_OF(info, struct box, info));
}

/* ---- rlock_inspect */

int rlk_inspect_named(struct rlock_client *client, const char *name, bool *ret_hidden,
                      rlock_info_t **ret_info)
{
    int64_t until = rlk_inspect_until(client);
    rlock_info_t *named;
    bool hidden;
    /* First without names, because most locks are free. */
    int rc = rlk_inspect(client, name, NULL, until, ret_hidden, ret_info);

    if (rc != 0)
        return rc;
    struct rlk_client_list peers = rlk_client_list_list(client, until);
    if (peers.count > 0 &&
        rlk_inspect(client, name, &peers, until, &hidden, &named) == 0) {
        rlk_inspect_free(*ret_info);
        *ret_info = named;
    }
    rlk_client_list_free(&peers);
    rlk_error_clear();
    return 0;
}

int rlock_inspect(rlock_client_t *client, const char *name, rlock_info_t **ret_info)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used;
    rlock_info_t *info;
    bool hidden;
    int rc = rlk_error_argument_there("ret_info", ret_info) ? rlk_inspect_check_name(name)
                                                            : EINVAL;

    if (rc == 0)
        rc = rlk_client_get_pointer(client, &used);
    if (rc == 0) {
        rc = rlk_inspect_named(used, name, &hidden, &info);
        if (rc == 0)
            *ret_info = info;
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}

void rlock_info_free(rlock_info_t *info)
{
    struct rlk_call call = rlk_call_enter();
    if (info)
        rlk_inspect_free(info);
    rlk_call_leave(call, 0);
}

/* ---- for rlock_force_unlock */

int rlk_inspect_victim(struct rlock_client *client, const char *name, int64_t until,
                       char **ret_holder, char **ret_since)
{
    static const int64_t cursors[2] = { 0, 0 };
    struct rlk_reply *reply;
    size_t len, value_len;
    bool hidden;
    int rc = ask_page(client, name, strlen(name), cursors, until, &hidden, &reply);

    if (rc != 0)
        return rc;
    const struct rlk_reply *fields = rlk_reply_at(reply, 2);
    const char *holder = NULL, *since = "";
    size_t holder_len = 0, since_len = 0;
    struct head head;
    read_head(fields, &head);
    if (head.type == RLOCK_TYPE_RWLOCK && head.mode == RLOCK_MODE_READ)
        holder = ""; /* the readers are not named, only their reading */
    for (size_t i = 0; i + 1 < rlk_reply_count(fields); i += 2) {
        const char *field = rlk_reply_text_at(fields, i, &len);
        const char *value = rlk_reply_text_at(fields, i + 1, &value_len);
        if (!field || !value)
            continue;
        if (is(field, len, "since")) {
            since = value;
            since_len = value_len;
        } else if (is_holder(field, len, value, value_len) && !holder) {
            holder = field;
            holder_len = len;
        }
    }
    if (holder) {
        *ret_holder = strndup(holder, holder_len);
        *ret_since = strndup(since, since_len);
        rc = *ret_holder && *ret_since ? 0 : ENOMEM;
    } else {
        rc = rlk_reply_count(fields) > 0
                 ? rlk_error_set(EPROTO, "the key holds data that is not a lock")
                 : ENOENT;
    }
    rlk_reply_free(reply);
    return rc;
}
