/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the commands of append-only files on a model of the locks' keys. */
#include "ledger_impl.h"

#include "die.h"
#include "marks.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- sets */

static void members_room(struct nem_members *members, size_t count)
{
    if (count <= members->size)
        return;
    members->size = count + count / 2 + 8;
    members->items = realloc(members->items, members->size * sizeof(*members->items));
    if (!members->items)
        test_die("out of memory");
}

static void set_touch(struct nem_set *set)
{
    if (set->touched)
        return;
    set->touched = true;
    members_room(&set->old, set->now.count);
    if (set->now.count)
        memcpy(set->old.items, set->now.items, set->now.count * sizeof(*set->now.items));
    set->old.count = set->now.count;
}

/* The place of an id, or the one where it would be. */
static size_t place_of(const struct nem_members *members, const char *id)
{
    size_t low = 0, high = members->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(members->items[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct nem_member *nem_members_find(const struct nem_members *members,
                                          const char *id)
{
    size_t at = place_of(members, id);
    return at < members->count && strcmp(members->items[at].id, id) == 0
               ? &members->items[at]
               : NULL;
}

const struct nem_members *nem_set_before(const struct nem_set *set)
{
    return set->touched ? &set->old : &set->now;
}

void nem_set_put(struct nem_set *set, const char *id, uint64_t score)
{
    set_touch(set);
    struct nem_members *members = &set->now;
    size_t at = place_of(members, id);
    if (at == members->count || strcmp(members->items[at].id, id) != 0) {
        if (members->count == 0)
            set->persistent = true; /* a new key, without TTL */
        members_room(members, members->count + 1);
        memmove(&members->items[at + 1], &members->items[at],
                (members->count - at) * sizeof(*members->items));
        members->count++;
        memset(&members->items[at], 0, sizeof(members->items[at]));
        strncpy(members->items[at].id, id, NEM_ID_MAX - 1);
    }
    members->items[at].score = score;
}

static void drop_at(struct nem_set *set, size_t at)
{
    struct nem_members *members = &set->now;
    members->count--;
    memmove(&members->items[at], &members->items[at + 1],
            (members->count - at) * sizeof(*members->items));
    if (members->count == 0)
        set->persistent = false;
}

bool nem_set_drop(struct nem_set *set, const char *id)
{
    size_t at = place_of(&set->now, id);
    if (at == set->now.count || strcmp(set->now.items[at].id, id) != 0)
        return false;
    set_touch(set);
    drop_at(set, at);
    return true;
}

void nem_set_clear(struct nem_set *set)
{
    set_touch(set);
    set->now.count = 0;
    set->persistent = false;
}

/* ---- arguments */

static bool is(const struct nem_arg *arg, const char *word)
{
    return arg->len == strlen(word) && strncasecmp(arg->data, word, arg->len) == 0;
}

static void text_of(const struct nem_arg *arg, char text[NEM_ID_MAX])
{
    size_t len = arg->len < NEM_ID_MAX - 1 ? arg->len : NEM_ID_MAX - 1;
    memcpy(text, arg->data, len);
    text[len] = '\0';
}

/* A number, also in the form 1.79e+15 that the server may write; 0 for negative ones. */
static uint64_t number_of(const struct nem_arg *arg)
{
    char text[NEM_ID_MAX], *end;
    text_of(arg, text);
    if (text[0] == '-')
        return 0;
    uint64_t number = strtoull(text, &end, 10);
    return *end == '\0' ? number : (uint64_t)strtod(text, NULL);
}

/* ---- keys */

enum { PART_N = NEM_PARTS, PART_DIRTY, PART_TOKEN, PART_OTHER };

/* The lock's number in "nemesis<i>", if that is all of the `len` bytes; -1: it is not. */
static int lock_of(const char *name, size_t len)
{
    static const char prefix[] = "nemesis";
    size_t at = sizeof(prefix) - 1;
    int lock = 0;
    if (len <= at || len > at + 3 || memcmp(name, prefix, at) != 0)
        return -1;
    for (; at < len; at++) {
        if (!isdigit((unsigned char)name[at]))
            return -1;
        lock = lock * 10 + (name[at] - '0');
    }
    return lock < NEM_LOCKS_MAX ? lock : -1;
}

/* The lock of a key, and which of its keys it is; -1: no lock's. */
static int key_of(const struct nem_arg *key, int *ret_part)
{
    static const struct {
        const char *suffix;
        int part;
    } parts[] = { { "queue", NEM_QUEUE },         { "rqueue", NEM_RQUEUE },
                  { "readers", NEM_READERS },     { "present", NEM_PRESENCE },
                  { "cancelled", NEM_CANCELLED }, { "dirty", PART_DIRTY } };
    static const char companion[] = "rlock:{", token[] = "redisson_lock_token:{";
    const char *brace;

    *ret_part = PART_N;
    if (key->len > sizeof(token) - 1 &&
        memcmp(key->data, token, sizeof(token) - 1) == 0) {
        *ret_part = PART_TOKEN;
        return lock_of(key->data + sizeof(token) - 1, key->len - sizeof(token));
    }
    if (key->len <= sizeof(companion) ||
        memcmp(key->data, companion, sizeof(companion) - 1) != 0)
        return lock_of(key->data, key->len);
    const char *name = key->data + sizeof(companion) - 1, *end = key->data + key->len;
    brace = memchr(name, '}', (size_t)(end - name));
    if (!brace || end - brace < 3)
        return -1;
    struct nem_arg suffix = { brace + 2, (size_t)(end - brace) - 2 };
    *ret_part = PART_OTHER;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (is(&suffix, parts[i].suffix))
            *ret_part = parts[i].part;
    return lock_of(name, (size_t)(brace - name));
}

static struct nem_keys *keys_of(struct nem_book *book, const struct nem_arg *key,
                                int *ret_part)
{
    int lock = key_of(key, ret_part);
    if (lock < 0)
        return NULL;
    struct nem_keys *keys = &book->locks[lock];
    if (!keys->touched) {
        keys->touched = true;
        keys->old = keys->now;
        keys->old_last_token = keys->last_token;
        keys->old_spoilt = keys->spoilt;
    }
    return keys;
}

static void drop_key(struct nem_keys *keys, int part)
{
    if (part < NEM_PARTS)
        nem_set_clear(&keys->sets[part]);
    if (part == PART_N) {
        memset(&keys->now, 0, sizeof(keys->now));
        nem_set_clear(&keys->sets[NEM_OWNERS]);
    }
    if (part == PART_DIRTY)
        keys->dirty_persistent = keys->spoilt = false;
    if (part == PART_TOKEN)
        keys->last_token = 0;
}

/* ---- commands; false: not understood */

static bool do_del(struct nem_book *book, const struct nem_command *c)
{
    int part;
    for (size_t i = 1; i < c->count; i++) {
        struct nem_keys *keys = keys_of(book, &c->args[i], &part);
        if (keys)
            drop_key(keys, part);
    }
    return true;
}

static bool do_hset(struct nem_keys *keys, int part, const struct nem_command *c)
{
    char text[NEM_ID_MAX];
    if (part != PART_N || c->count % 2 != 0)
        return false;
    if (!keys->now.exists)
        keys->now = (struct nem_state){ .exists = true, .persistent = true };
    for (size_t i = 2; i + 1 < c->count; i += 2) {
        const struct nem_arg *field = &c->args[i], *value = &c->args[i + 1];
        if (is(field, "mode"))
            keys->now.reads = is(value, "rlock:read");
        else if (is(field, "since"))
            keys->now.since = number_of(value);
        else if (is(field, "token"))
            keys->now.token = number_of(value);
        else if (!is(field, "died")) {
            text_of(field, text);
            nem_set_put(&keys->sets[NEM_OWNERS], text, 0);
        }
    }
    return true;
}

static bool do_hdel(struct nem_keys *keys, int part, const struct nem_command *c)
{
    char text[NEM_ID_MAX];
    for (size_t i = 2; i < c->count && part == PART_N; i++) {
        text_of(&c->args[i], text);
        nem_set_drop(&keys->sets[NEM_OWNERS], text);
    }
    return part == PART_N;
}

static bool do_zadd(struct nem_keys *keys, int part, const struct nem_command *c)
{
    char text[NEM_ID_MAX];
    if (part >= NEM_PARTS || c->count % 2 != 0)
        return false;
    for (size_t i = 2; i + 1 < c->count; i += 2) {
        text_of(&c->args[i + 1], text);
        nem_set_put(&keys->sets[part], text, number_of(&c->args[i]));
    }
    return true;
}

static bool do_zrem(struct nem_keys *keys, int part, const struct nem_command *c)
{
    char text[NEM_ID_MAX];
    for (size_t i = 2; i < c->count && part < NEM_PARTS; i++) {
        text_of(&c->args[i], text);
        nem_set_drop(&keys->sets[part], text);
    }
    return part < NEM_PARTS;
}

/* From -inf, as the scripts use it, to a bound that may be exclusive. */
static bool do_zremrangebyscore(struct nem_keys *keys, int part,
                                const struct nem_command *c)
{
    if (part >= NEM_PARTS || c->count != 4 || !is(&c->args[2], "-inf"))
        return false;
    struct nem_arg bound = c->args[3];
    bool open = bound.len > 0 && bound.data[0] == '(';
    if (open) {
        bound.data++;
        bound.len--;
    }
    uint64_t limit = number_of(&bound);
    struct nem_set *set = &keys->sets[part];
    for (size_t i = set->now.count; i-- > 0;) {
        uint64_t score = set->now.items[i].score;
        if (open ? score < limit : score <= limit) {
            set_touch(set);
            drop_at(set, i);
        }
    }
    return true;
}

static void set_persistent(struct nem_keys *keys, int part, bool persistent)
{
    if (part < NEM_PARTS && keys->sets[part].now.count > 0)
        keys->sets[part].persistent = persistent;
    if (part == PART_N)
        keys->now.persistent = keys->now.exists && persistent;
    if (part == PART_DIRTY)
        keys->dirty_persistent = persistent;
}

static bool do_pexpireat(struct nem_keys *keys, int part, const struct nem_command *c)
{
    if (c->count != 3)
        return false;
    if (part == PART_N && keys->now.exists)
        keys->now.end = number_of(&c->args[2]);
    set_persistent(keys, part, false);
    return true;
}

static bool do_persist(struct nem_keys *keys, int part, const struct nem_command *c)
{
    (void)c;
    if (part == PART_N)
        keys->now.end = 0;
    set_persistent(keys, part, true);
    return true;
}

static bool do_set(struct nem_keys *keys, int part, const struct nem_command *c)
{
    if (part == PART_TOKEN) {
        keys->last_token = number_of(&c->args[2]);
        return c->count == 3;
    }
    if (part != PART_DIRTY)
        return false;
    keys->spoilt = is(&c->args[2], "not recoverable");
    keys->dirty_persistent = c->count < 5;
    return true;
}

static bool do_incrby(struct nem_keys *keys, int part, const struct nem_command *c)
{
    if (part != PART_TOKEN || c->count != 3)
        return false;
    keys->last_token += number_of(&c->args[2]);
    return true;
}

bool nem_book_mark(const struct nem_command *c, uint64_t *ret_n)
{
    if (c->count < 3 || !is(&c->args[0], "set") || !is(&c->args[1], NEM_MARK_KEY))
        return false;
    *ret_n = number_of(&c->args[2]);
    return true;
}

bool nem_book_command(struct nem_book *book, const struct nem_command *c)
{
    static const struct {
        const char *name;
        size_t args; /* at least this many */
        bool (*run)(struct nem_keys *, int, const struct nem_command *);
    } commands[] = {
        { "hset", 4, do_hset },
        { "hmset", 4, do_hset },
        { "hdel", 3, do_hdel },
        { "zadd", 4, do_zadd },
        { "zrem", 3, do_zrem },
        { "zremrangebyscore", 4, do_zremrangebyscore },
        { "pexpireat", 3, do_pexpireat },
        { "persist", 2, do_persist },
        { "set", 3, do_set },
        { "incrby", 3, do_incrby },
    };
    int part;

    if (c->count == 0)
        return false;
    if (is(&c->args[0], "del") || is(&c->args[0], "unlink"))
        return do_del(book, c);
    if (is(&c->args[0], "flushall") || is(&c->args[0], "flushdb")) {
        nem_book_lose(book);
        return true;
    }
    if (c->count < 2 || is(&c->args[0], "select") || is(&c->args[0], "script"))
        return true;
    struct nem_keys *keys = keys_of(book, &c->args[1], &part);
    if (!keys || part == PART_OTHER)
        return true;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (is(&c->args[0], commands[i].name))
            return c->count >= commands[i].args && commands[i].run(keys, part, c);
    return false;
}
