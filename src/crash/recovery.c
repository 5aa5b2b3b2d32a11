/* SPDX-License-Identifier: Apache-2.0 */
/* See recovery.h. */
#include "crash/recovery.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "client/client.h"
#include "crash/livefile_gc.h"
#include "net/server_error.h"
#include "state/awaited.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IN_FLIGHT_MAX = 64, /* of all: so many scripts in a row at the server, in front of
                           renewals */
    WAITED_MAX = 1024,  /* names that this client waits for */
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 1000,
    ID_TEXT_SIZE = RLK_ID_SIZE + 2,
    LINES_MAX = 10 /* a second */
};

/* What is asked of the server about one name. */
struct job {
    enum { OPEN, SENT, DONE, REFUSED } state;
    bool with_text;
    uint8_t kind, name_len;
    bool reading;
    int prefer;
    char name[RLOCK_NAME_MAX + 1];
    char *ids; /* see lua/lock_bury.lua */
    size_t ids_len;
};

struct corpse {
    struct rlk_list link; /* in the client's deaths */
    int fd;               /* by which its lock is held */
    char uuid[RLK_UUID_LEN + 1];
    struct rlk_livefile_head head;
    struct job *jobs;
    size_t count, size;
    size_t in_flight, next; /* next: none before it is OPEN */
    bool asked_for_more;    /* the names waited for are among the jobs */
    int64_t retry_at, until;
    int backoff_ms;
    unsigned given_back, refused;
};

struct request {
    struct rlk_op op;
    struct corpse *corpse;
    size_t job;
};

/* ---- what there is to do */

static struct job *add_job(struct corpse *corpse, const char *name, size_t name_len)
{
    if (corpse->count == corpse->size) {
        size_t size = corpse->size ? 2 * corpse->size : 8;
        struct job *bigger = realloc(corpse->jobs, size * sizeof(*bigger));
        if (!bigger)
            return NULL;
        corpse->jobs = bigger;
        corpse->size = size;
    }
    struct job *job = &corpse->jobs[corpse->count++];
    memset(job, 0, sizeof(*job));
    memcpy(job->name, name, name_len);
    job->name_len = (uint8_t)name_len;
    job->prefer = RLOCK_RWLOCK_PHASE_FAIR_NP;
    return job;
}

static bool add_id(struct job *job, const struct rlk_intent *slot)
{
    struct rlk_id id = { .thread = slot->thread,
                         .acquisition = slot->acquisition,
                         .grant_ms = slot->grant_ms,
                         .letter = (char)slot->letter };
    char *bigger = realloc(job->ids, job->ids_len + ID_TEXT_SIZE + 1);

    if (!bigger)
        return false;
    job->ids = bigger;
    memcpy(id.flags, slot->flags, sizeof(id.flags));
    char *at = job->ids + job->ids_len;
    size_t len = rlk_id_write_local(at, &id);
    len += (size_t)snprintf(at + len, 4, " %u ", slot->inside % 10);
    job->ids_len += len;
    job->kind = slot->kind;
    job->prefer = slot->prefer;
    job->reading = slot->letter == 'r' || slot->letter == 'R';
    return true;
}

/* Whether a slot of another process says something that makes sense. */
static bool is_sound(const struct rlk_intent *slot)
{
    if (slot->state != RLK_SLOT_VALID || slot->name_len == 0 ||
        slot->name_len > RLOCK_NAME_MAX || slot->kind >= RLK_KIND_LIMIT ||
        rlk_key_check(slot->name, slot->name_len) != 0 ||
        !strchr("mfrwMFRW", slot->letter) || slot->letter == 0)
        return false;
    for (size_t i = 0; i < sizeof(slot->flags); i++) {
        if (slot->flags[i] == '\0')
            return true;
        if (slot->flags[i] < 'a' || slot->flags[i] > 'z')
            return false;
    }
    return false;
}

/* How much of the file is slots that were ever used: behind them it is a hole. */
static size_t slots_len(int fd)
{
    const size_t most = RLK_SLOTS_MAX * sizeof(struct rlk_intent);
    off_t end = lseek(fd, RLK_LIVEFILE_HEADER, SEEK_HOLE);

    if (end <= RLK_LIVEFILE_HEADER || (size_t)end - RLK_LIVEFILE_HEADER > most)
        return most;
    return (size_t)end - RLK_LIVEFILE_HEADER;
}

/* The sound slots of the file, on the heap. */
static struct rlk_intent *read_slots(int fd, size_t *ret_count)
{
    size_t len = 0, want = slots_len(fd), count = 0;
    struct rlk_intent *slots = malloc(want);

    while (slots && len < want) {
        ssize_t n = pread(fd, (char *)slots + len, want - len,
                          (off_t)(RLK_LIVEFILE_HEADER + len));
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    for (size_t i = 0; slots && i < len / sizeof(*slots); i++)
        if (is_sound(&slots[i]))
            memmove(&slots[count++], &slots[i], sizeof(*slots));
    *ret_count = count;
    return slots;
}

static int by_name(const void *a, const void *b)
{
    const struct rlk_intent *x = a, *y = b;
    if (x->name_len != y->name_len)
        return x->name_len < y->name_len ? -1 : 1;
    return memcmp(x->name, y->name, x->name_len);
}

/* rule: G10 */
/* False: out of memory. */
static bool read_table(struct corpse *corpse)
{
    size_t count;
    struct rlk_intent *slots = read_slots(corpse->fd, &count);
    struct job *job = NULL;
    bool done = slots != NULL;

    if (slots)
        qsort(slots, count, sizeof(*slots), by_name);
    for (size_t i = 0; done && i < count; i++) {
        if (i == 0 || by_name(&slots[i - 1], &slots[i]) != 0)
            job = add_job(corpse, slots[i].name, slots[i].name_len);
        done = job && add_id(job, &slots[i]);
    }
    free(slots);
    return done;
}

static bool has_job(const struct corpse *corpse, const struct rlk_lock *lock)
{
    for (size_t i = 0; i < corpse->count; i++)
        if (corpse->jobs[i].name_len == lock->name_len &&
            memcmp(corpse->jobs[i].name, lock->name, lock->name_len) == 0)
            return true;
    return false;
}

/* rule: G10 */
/* The names that this client waits for, which may be held though the table had no room
 * for them. */
static void add_waited_for(struct rlock_client *client, struct corpse *corpse)
{
    struct rlk_registry *reg = &client->registry;
    size_t count = 0;

    rlk_registry_lock(reg);
    for (size_t i = 0; reg->asks_now > 0 && i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (count < WAITED_MAX && rlk_awaited_lock_locked(lock) &&
                !has_job(corpse, lock) && add_job(corpse, lock->name, lock->name_len))
                count++;
    rlk_registry_unlock(reg);
}

/* ---- its begin and end */

static void free_corpse(struct corpse *corpse)
{
    rlk_list_remove(&corpse->link);
    rlk_fd_close(corpse->fd);
    for (size_t i = 0; i < corpse->count; i++)
        free(corpse->jobs[i].ids);
    free(corpse->jobs);
    free(corpse);
}

bool rlk_recovery_begin(struct rlock_client *client, int fd, const char *uuid,
                        const struct rlk_livefile_head *head, int64_t now)
{
    struct corpse *corpse = calloc(1, sizeof(*corpse));

    if (!corpse) {
        rlk_fd_close(fd);
        return false;
    }
    rlk_list_init(&corpse->link);
    corpse->fd = fd;
    corpse->head = *head;
    snprintf(corpse->uuid, sizeof(corpse->uuid), "%s", uuid);
    corpse->backoff_ms = BACKOFF_FIRST_MS;
    corpse->until = now + 2 * rlk_client_command_timeout(client);
    if (!read_table(corpse)) {
        free_corpse(corpse);
        return false;
    }
    rlk_list_append(&client->deaths.corpses, &corpse->link);
    return true;
}

size_t rlk_recovery_count(const struct rlock_client *client)
{
    const struct rlk_list *corpses = &client->deaths.corpses;
    size_t count = 0;

    for (const struct rlk_list *l = corpses->next; l != corpses; l = l->next)
        count++;
    return count;
}

/* Only the file that is locked: another one under that name would be somebody's who made
 * it so. Whether it is gone. */
static bool remove_file(struct rlock_client *client, const struct corpse *corpse)
{
    struct rlk_rundir dir;
    struct stat locked, named;

    if (!rlk_fd_is_ours(corpse->fd)) /* the lock went with it: it is another's to do */
        return false;
    if (rlk_rundir_open(&dir, client->guard.dir) != 0)
        return false;
    bool there = fstat(corpse->fd, &locked) == 0 &&
                 fstatat(dir.fd, corpse->uuid, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                 locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
    bool gone = !there || rlk_livefile_gc_remove(&dir, corpse->uuid, corpse->fd);
    rlk_fd_close(dir.fd);
    return gone;
}

static void finish(struct rlock_client *client, struct corpse *corpse, int64_t now)
{
    char more[RLK_LOG_MORE_SIZE];

    /* rule: G10 */
    RLK_COUNT(client->counters.burials); /* before others see that it is over */
    if (!remove_file(client, corpse)) /* to close it is told to all who look, this too */
        rlk_peer_watch_left(client, corpse->uuid, now);
    if (rlk_log_now(&client->deaths.pace, now, LINES_MAX, more))
        rlk_log(corpse->given_back > 0 ? RLK_LOG_WARNING : RLK_LOG_DEBUG,
                "rlock: process %ld (%s) of this host died; locks given back at %s: %u%s",
                corpse->head.pid, corpse->head.program, client->config.target.label,
                corpse->given_back, more);
    free_corpse(corpse);
}

/* Others may have more luck, or more rights. */
static void leave(struct rlock_client *client, struct corpse *corpse, int64_t now)
{
    if (corpse->refused > 0)
        rlk_livefile_gc_mark(corpse->fd);
    rlk_peer_watch_left(client, corpse->uuid, now);
    free_corpse(corpse);
}

/* ---- requests */

static bool send_job(struct rlock_client *client, struct corpse *corpse, size_t i,
                     int64_t now)
{
    struct job *job = &corpse->jobs[i];
    struct rlk_request req RLK_UNINITIALIZED;
    struct request *request = calloc(1, sizeof(*request));

    if (!request)
        return false;
    rlk_request_init(&req, RLK_LOCK_BURY, job->name, job->name_len);
    rlk_request_add(&req, corpse->uuid, RLK_UUID_LEN);
    rlk_request_add_int(&req, corpse->head.life_ms);
    rlk_request_add_channel(&req, job->name, job->name_len);
    rlk_request_add_int(&req, job->prefer);
    rlk_request_add_borrowed(&req, job->ids ? job->ids : "", job->ids_len);
    if (!client->deaths.link->send(client, &request->op, &req, job->with_text, now)) {
        free(request);
        return false;
    }
    request->corpse = corpse;
    request->job = i;
    job->state = SENT;
    corpse->in_flight++;
    client->deaths.in_flight++;
    return true;
}

static void back_off(struct corpse *corpse, int64_t now)
{
    if (now < corpse->retry_at) /* by what was in flight with it */
        return;
    corpse->retry_at = now + corpse->backoff_ms * RLK_NS_PER_MS;
    corpse->backoff_ms *= 2;
    if (corpse->backoff_ms > BACKOFF_MAX_MS)
        corpse->backoff_ms = BACKOFF_MAX_MS;
}

/* Sends what there is room for. Returns whether some is left. */
static bool send_some(struct rlock_client *client, struct corpse *corpse, int64_t now)
{
    while (corpse->next < corpse->count) {
        if (corpse->jobs[corpse->next].state != OPEN) {
            corpse->next++;
            continue;
        }
        if (client->deaths.in_flight >= IN_FLIGHT_MAX ||
            !client->deaths.link->ready(client))
            return true;
        if (!send_job(client, corpse, corpse->next, now)) {
            back_off(corpse, now);
            return true;
        }
    }
    return false;
}

/* Returns when to be called again; the corpse may be gone. waiting: somebody here waits
 * for a lock. */
static int64_t step_corpse(struct rlock_client *client, struct corpse *corpse,
                           int64_t now, bool waiting, bool *ret_wanted)
{
    if (waiting)
        corpse->until = now + 2 * rlk_client_command_timeout(client);
    if (now >= corpse->until) { /* for whoever has more luck */
        if (corpse->in_flight == 0)
            leave(client, corpse, now);
        return RLK_NEVER;
    }
    if (now >= corpse->retry_at && send_some(client, corpse, now)) {
        *ret_wanted = true;
        return now < corpse->retry_at ? corpse->retry_at : corpse->until;
    }
    if (now < corpse->retry_at)
        return corpse->retry_at;
    if (corpse->in_flight > 0)
        return corpse->until;
    if (corpse->head.full && !corpse->asked_for_more) {
        corpse->asked_for_more = true;
        add_waited_for(client, corpse);
        return now;
    }
    if (corpse->refused > 0) /* it stays, for who may do more */
        leave(client, corpse, now);
    else
        finish(client, corpse, now);
    return RLK_NEVER;
}

int64_t rlk_recovery_step(struct rlock_client *client, int64_t now, bool *ret_wanted)
{
    struct rlk_list *corpses = &client->deaths.corpses;
    int64_t due = RLK_NEVER;

    if (rlk_list_empty(corpses))
        return RLK_NEVER;
    rlk_registry_lock(&client->registry);
    bool waiting = client->registry.asks_now > 0;
    rlk_registry_unlock(&client->registry);
    for (struct rlk_list *l = corpses->next, *next; l != corpses; l = next) {
        next = l->next;
        int64_t at = step_corpse(client, RLK_CONTAINER_OF(l, struct corpse, link), now,
                                 waiting, ret_wanted);
        if (at < due)
            due = at;
    }
    return due;
}

/* ---- answers */

static void mourn_locked(struct rlk_registry *reg, const struct corpse *corpse,
                         const struct job *job)
{
    struct rlk_death_event *death = calloc(1, sizeof(*death) + (size_t)job->name_len + 1);

    if (!death)
        return;
    death->type = rlk_kinds[job->kind].type;
    death->mode = job->reading ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE;
    death->pid = corpse->head.pid;
    snprintf(death->program, sizeof(death->program), "%s", corpse->head.program);
    memcpy(death->name, job->name, (size_t)job->name_len + 1);
    rlk_awaited_death_locked(reg, death);
}

/* The hand-over looked at as many waiters as it may: this client's polls go on. */
static void go_on_locked(struct rlk_registry *reg, const struct job *job,
                         struct rlk_cursor more)
{
    struct rlk_lock *lock =
        rlk_lock_get_locked(reg, RLK_KIND_WATCH, job->name, job->name_len);
    if (!lock)
        return;
    lock->prefer = (uint8_t)job->prefer;
    rlk_queue_go_on_locked(lock, more);
    rlk_lock_put_locked(lock);
}

static void take(struct rlock_client *client, struct corpse *corpse, struct job *job,
                 const struct rlk_answer *answer, int64_t now)
{
    struct rlk_registry *reg = &client->registry;

    switch (answer->outcome) {
    case RLK_DONE:
        job->state = DONE;
        corpse->backoff_ms = BACKOFF_FIRST_MS;
        rlk_registry_lock(reg);
        if (answer->fate.what == RLK_RELEASED) {
            corpse->given_back++;
            mourn_locked(reg, corpse, job);
        }
        if (rlk_cursor_set(answer->more))
            go_on_locked(reg, job, answer->more);
        rlk_registry_unlock(reg);
        return;
    case RLK_REFUSED:
        job->state = REFUSED;
        corpse->refused++;
        RLK_COUNT(client->counters.refusals);
        return;
    case RLK_NOSCRIPT:
        RLK_COUNT(client->counters.script_loads);
        job->with_text = true;
        break;
    default:
        back_off(corpse, now);
    }
    job->state = OPEN;
    corpse->next = 0;
}

void rlk_recovery_answered(struct rlock_client *client, struct rlk_op *op,
                           const struct rlk_reply *reply)
{
    struct request *request = RLK_CONTAINER_OF(op, struct request, op);
    struct corpse *corpse = request->corpse;
    struct job *job = &corpse->jobs[request->job];
    struct rlk_answer answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    char text[RLK_SERVER_ERROR_SIZE] = "", shown[RLK_LOG_NAME_SIZE],
         more[RLK_LOG_MORE_SIZE];
    int64_t now = rlk_clock_boot();
    struct rlk_fate fate;

    if (reply) {
        RLK_COUNT(client->counters.round_trips);
        rlk_client_answered(client, op->sent, now);
        rlk_script_decode(client->watch.conn, &rlk_scripts[RLK_LOCK_BURY], reply,
                          op->sent, &answer, &fate, 1, text, sizeof(text));
    } else {
        RLK_COUNT(client->counters.unknown_outcomes);
    }
    if (answer.outcome == RLK_NOSCRIPT && job->with_text)
        answer.outcome = RLK_REFUSED; /* it had the text */
    assert(corpse->in_flight > 0);
    corpse->in_flight--;
    client->deaths.in_flight--;
    free(request);
    take(client, corpse, job, &answer, now);
    if (answer.outcome != RLK_REFUSED ||
        !rlk_log_now(&client->deaths.pace, now, LINES_MAX, more))
        return;
    rlk_log_name(shown, sizeof(shown), job->name, job->name_len);
    rlk_log(RLK_LOG_WARNING,
            "rlock: \"%s\" of a dead process cannot be given back at %s: "
            "%s%s",
            shown, client->config.target.label, text, more);
}

void rlk_recovery_stop(struct rlock_client *client)
{
    struct rlk_list *l;
    while ((l = rlk_list_first(&client->deaths.corpses)) != NULL)
        free_corpse(RLK_CONTAINER_OF(l, struct corpse, link));
}
