/* SPDX-License-Identifier: Apache-2.0 */
/* See chase.h. Thread: the watchdog; rlk_chase_receive_locked: the subscriber or a
 * leader. Locks: hold the registry's mu. Blocks: no. */
#include "state/chase.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/probe.h"
#include "state/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUT "..."

/* ---- digests and keys */

/* FNV-1a, 64 bits. */
static uint64_t mix(uint64_t hash, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* rule: E6 */
uint64_t rlk_chase_digest(uint64_t so_far, const char *uuid, uint64_t thread,
                          uint64_t wait)
{
    char text[RLK_UUID_LEN + 80];
    int len =
        snprintf(text, sizeof(text), "%llu %s:%llu:%llu;", (unsigned long long)so_far,
                 uuid, (unsigned long long)thread, (unsigned long long)wait);

    return mix(UINT64_C(0xcbf29ce484222325), text, (size_t)len);
}

void rlk_chase_key(char buf[RLK_CHASE_KEY_SIZE], const char *uuid, uint64_t thread)
{
    snprintf(buf, RLK_CHASE_KEY_SIZE, "%s:%llu", uuid, (unsigned long long)thread);
}

/* rule: E7 */
void rlk_chase_claim(struct rlk_chase_mark *mark, const char *uuid,
                     const struct rlk_nested *nested)
{
    char key[RLK_CHASE_KEY_SIZE];

    if (nested->mode != RLOCK_DEADLOCK_FAIL)
        return;
    rlk_chase_key(key, uuid, nested->thread_number);
    if (strcmp(key, mark->victim) > 0)
        memcpy(mark->victim, key, sizeof(key));
}

/* ---- paths */

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~/@:+", c));
}

static bool is_cut(const struct rlk_chase_mark *mark)
{
    size_t n = sizeof(CUT) - 1;
    return mark->path_len >= n + 1 && mark->path[mark->path_len - n - 1] == ',' &&
           memcmp(mark->path + mark->path_len - n, CUT, n) == 0;
}

/* Writes the text; returns how many bytes it takes, also if they are more than there is
 * room for. */
static size_t encode(char *buf, size_t room, const char *text, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t at = 0;

    for (size_t i = 0; i < len; i++) {
        size_t n = is_plain(text[i]) ? 1 : 3;
        if (at + n <= room && n == 1)
            buf[at] = text[i];
        if (at + n <= room && n == 3) {
            buf[at] = '%';
            buf[at + 1] = hex[(unsigned char)text[i] >> 4];
            buf[at + 2] = hex[(unsigned char)text[i] & 15];
        }
        at += n;
    }
    return at;
}

void rlk_chase_path_add(struct rlk_chase_mark *mark, char separator, const char *text,
                        size_t len)
{
    const size_t most = RLK_CHASE_PATH_MAX - sizeof(CUT);
    size_t at = mark->path_len;

    if (is_cut(mark))
        return;
    if (at > 0 && at < most)
        mark->path[at++] = separator;
    size_t room = most > at ? most - at : 0;
    size_t need = encode(mark->path + at, room, text, len);
    if (need <= room) {
        mark->path_len = at + need;
    } else {
        at = mark->path_len;
        mark->path[at] = ',';
        memcpy(mark->path + at + 1, CUT, sizeof(CUT) - 1);
        mark->path_len = at + sizeof(CUT);
    }
    mark->path[mark->path_len] = '\0';
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* Reads the part of the path up to a separator; returns where the next one begins, or
 * NULL. */
static const char *next_part(const char *at, const char *end, char separator,
                             char *ret_text, size_t size, size_t *ret_len)
{
    const char *stop = at;
    size_t len = 0;

    while (stop < end && *stop != separator)
        stop++;
    for (; at < stop && len < size; at++) {
        char c = *at;
        if (c == '%' && stop - at > 2 && digit_of(at[1]) >= 0 && digit_of(at[2]) >= 0) {
            c = (char)(digit_of(at[1]) * 16 + digit_of(at[2]));
            at += 2;
        }
        ret_text[len++] = c;
    }
    *ret_len = len;
    return stop < end ? stop + 1 : NULL;
}

struct text {
    char *at;
    size_t len, size;
};

static void add(struct text *text, const char *more)
{
    size_t len = strlen(more);

    if (text->len + len >= text->size)
        return;
    memcpy(text->at + text->len, more, len + 1);
    text->len += len;
}

/* Other users may have made the path: it is shown with care. */
static void add_shown(struct text *text, const char *raw, size_t len)
{
    char shown[4 * RLOCK_NAME_MAX + 8];

    add(text, rlk_log_name(shown, sizeof(shown), raw, len));
}

static void add_party(struct text *text, const char *raw, size_t len, const char *party)
{
    add_shown(text, raw, len);
    if (len == strlen(party) && memcmp(raw, party, len) == 0)
        add(text, " (this process)");
}

char *rlk_chase_sentence(const struct rlk_chase_mark *mark, const char *party)
{
    /* a hop of a few bytes has some 40 bytes of words around it */
    struct text text = { NULL, 0, 20 * (mark->path_len + 8) };
    const char *at = mark->path, *end = mark->path + mark->path_len;
    char part[RLOCK_NAME_MAX + 256];
    size_t len;
    bool first = true;

    text.at = malloc(text.size);
    if (!text.at)
        return NULL;
    text.at[0] = '\0';
    while (at) {
        const char *hop = at;
        at = next_part(hop, end, ';', part, 0, &len);
        const char *hop_end = at ? at - 1 : end;
        const char *holder = next_part(hop, hop_end, ',', part, sizeof(part), &len);
        add(&text, first ? "\"" : ", which waits for \"");
        add_shown(&text, part, len);
        add(&text, first ? "\" is held by " : "\", held by ");
        first = false;
        if (holder) {
            next_part(holder, hop_end, ',', part, sizeof(part), &len);
            add_party(&text, part, len, party);
        } else {
            add(&text, "this thread");
        }
    }
    char *fit = realloc(text.at, text.len + 1);
    return fit ? fit : text.at;
}

/* ---- rounds */

static bool has(const struct rlk_chase_digests *digests, uint64_t digest)
{
    for (unsigned i = 0; i < digests->count; i++)
        if (digests->all[i] == digest)
            return true;
    return false;
}

static bool note(struct rlk_chase_digests *digests, unsigned max, uint64_t digest)
{
    if (digests->count == max)
        return false;
    digests->all[digests->count++] = digest;
    return true;
}

/* rule: E6 */
bool rlk_chase_begin_locked(struct rlk_lock *lock, const char *uuid, bool again,
                            struct rlk_chase_mark *ret_mark)
{
    struct rlk_queue *queue = lock->queue;

    if (!queue->chase)
        queue->chase = calloc(1, sizeof(*queue->chase));
    struct rlk_chase *chase = queue->chase;
    if (!chase)
        return false;
    chase->nonce = rlk_random_next(&lock->registry->random);
    chase->second = again;
    if (!again)
        chase->skip = chase->skip_next;
    chase->before = chase->now;
    chase->now.count = 0;
    memset(ret_mark, 0, offsetof(struct rlk_chase_mark, path));
    memcpy(ret_mark->initiator, uuid, RLK_UUID_LEN);
    ret_mark->nonce = chase->nonce;
    memcpy(ret_mark->victim, "-", 2);
    ret_mark->path[0] = '\0';
    rlk_chase_path_add(ret_mark, ';', lock->name, lock->name_len);
    return true;
}

/* rule: E5, E6 */
enum rlk_chase_verdict rlk_chase_returned_locked(struct rlk_nested *nested,
                                                 const char *uuid, int64_t now,
                                                 struct rlk_chase_mark *mark)
{
    struct rlk_chase *chase = nested->lock->queue->chase;

    if (!chase || chase->nonce != mark->nonce ||
        memcmp(mark->initiator, uuid, RLK_UUID_LEN) != 0)
        return RLK_CHASE_OTHERS;
    uint64_t digest =
        rlk_chase_digest(mark->digest, uuid, nested->thread_number, nested->number);
    bool before = has(&chase->before, digest), fresh = !has(&chase->now, digest);
    if (fresh && !note(&chase->now, RLK_CHASE_DIGESTS_MAX, digest))
        return RLK_CHASE_NOTED;
    if (!before)
        return chase->second || !fresh ? RLK_CHASE_NOTED : RLK_CHASE_SUSPECTED;
    if (nested->mode == RLOCK_DEADLOCK_OFF || nested->victim ||
        now - nested->since < nested->lock->registry->deadlock_ns ||
        has(&chase->told, digest) || !note(&chase->told, RLK_CHASE_TOLD_MAX, digest))
        return RLK_CHASE_NOTED;
    mark->digest = digest;
    rlk_chase_claim(mark, uuid, nested);
    return RLK_CHASE_FOUND;
}

static void queue_event(struct rlk_registry *reg, const struct rlk_nested *nested,
                        int64_t now)
{
    const struct rlk_lock *lock = nested->lock;
    size_t size = strlen(nested->cycle) + 1;
    struct rlk_deadlock_event *event = malloc(sizeof(*event) + size);

    if (!event)
        return;
    event->next = NULL;
    event->type = rlk_kinds[lock->kind].type;
    event->mode = nested->reading ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE;
    event->thread = nested->self;
    event->waited = now - nested->since;
    event->fails = nested->victim;
    memcpy(event->name, lock->name, (size_t)lock->name_len + 1);
    memcpy(event->cycle, nested->cycle, size);
    if (reg->chases.first_event)
        reg->chases.last_event->next = event;
    else
        reg->chases.first_event = event;
    reg->chases.last_event = event;
    reg->subscriber_dirty = true;
}

/* rule: E7, E8 */
void rlk_chase_tell_locked(struct rlk_nested *nested, const char *uuid,
                           const struct rlk_chase_mark *mark, int64_t now, char *cycle)
{
    struct rlk_registry *reg = nested->lock->registry;
    char key[RLK_CHASE_KEY_SIZE];

    rlk_chase_key(key, uuid, nested->thread_number);
    nested->victim = strcmp(key, mark->victim) == 0;
    free(nested->cycle);
    nested->cycle = cycle;
    RLK_COUNT(reg->counters->deadlocks);
    RLK_PROBE3(deadlock_found, RLK_PROBE_TEXT(nested->lock->name),
               (int)nested->lock->kind, (int)nested->victim);
    queue_event(reg, nested, now);
    if (nested->victim)
        rlk_registry_wake_locked(reg, nested->thread);
}

/* rule: E4 */
bool rlk_chase_forwards_locked(struct rlk_registry *reg,
                               const struct rlk_chase_mark *mark, const char *name,
                               size_t name_len, int64_t now)
{
    struct rlk_chases *all = &reg->chases;
    uint64_t hash = mix(
        mix(rlk_key_hash(name, name_len) ^ mark->nonce, mark->initiator, RLK_UUID_LEN),
        name, name_len);

    if (hash == 0)
        hash = 1; /* an unused place has 0 */
    if (!all->seen)
        all->seen = calloc(RLK_CHASE_SEEN_MAX, sizeof(*all->seen));
    if (!all->seen)
        return false;
    for (unsigned i = 0; i < RLK_CHASE_SEEN_MAX; i++)
        if (all->seen[i] == hash)
            return false;
    if (now - all->second >= RLK_NS_PER_S) {
        all->second = now;
        all->second_count = 0;
    }
    if (all->second_count >= RLK_CHASE_PER_SECOND)
        return false;
    all->second_count++;
    all->seen[all->seen_at] = hash;
    all->seen_at = (all->seen_at + 1) % RLK_CHASE_SEEN_MAX;
    return true;
}

/* ---- what waits */

void rlk_chase_receive_locked(struct rlk_registry *reg, const char *text, size_t len)
{
    struct rlk_letter *letter = reg->chases.letter_count < RLK_CHASE_LETTERS_MAX
                                    ? malloc(sizeof(*letter) + len)
                                    : NULL;

    if (!letter)
        return;
    letter->len = len;
    memcpy(letter->text, text, len);
    rlk_list_append(&reg->chases.letters, &letter->link);
    reg->chases.letter_count++;
    atomic_store(&reg->chases.waits, true);
    reg->watchdog_dirty = true;
}

struct rlk_letter *rlk_chase_next_letter_locked(struct rlk_registry *reg)
{
    struct rlk_list *l = rlk_list_pop(&reg->chases.letters);

    if (!l)
        return NULL;
    reg->chases.letter_count--;
    return RLK_CONTAINER_OF(l, struct rlk_letter, link);
}

void rlk_chase_send_locked(struct rlk_registry *reg, struct rlk_probe *probe)
{
    if (reg->chases.outgoing_count >= RLK_CHASE_OUTGOING_MAX) {
        free(probe);
        return;
    }
    rlk_list_append(&reg->chases.outgoing, &probe->link);
    reg->chases.outgoing_count++;
    atomic_store(&reg->chases.waits, true);
}

struct rlk_probe *rlk_chase_next_probe_locked(struct rlk_registry *reg)
{
    struct rlk_list *l = rlk_list_pop(&reg->chases.outgoing);

    if (!l)
        return NULL;
    reg->chases.outgoing_count--;
    return RLK_CONTAINER_OF(l, struct rlk_probe, link);
}

struct rlk_deadlock_event *rlk_chase_next_event_locked(struct rlk_registry *reg)
{
    struct rlk_deadlock_event *event = reg->chases.first_event;

    if (event)
        reg->chases.first_event = event->next;
    return event;
}

void rlk_chase_shut_locked(struct rlk_registry *reg)
{
    struct rlk_letter *letter;
    struct rlk_probe *probe;
    struct rlk_deadlock_event *event;

    while ((letter = rlk_chase_next_letter_locked(reg)) != NULL)
        free(letter);
    while ((probe = rlk_chase_next_probe_locked(reg)) != NULL)
        free(probe);
    while ((event = rlk_chase_next_event_locked(reg)) != NULL)
        free(event);
    free(reg->chases.seen);
    reg->chases.seen = NULL;
}
