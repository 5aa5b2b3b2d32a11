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
    IN_FLIGHT_MAX = 64, /* in all: so many scripts may run before a renewal */
    WAITED_MAX = 1024,  /* names that this client waits for */
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 1000,
    ID_TEXT_SIZE = RLK_ID_SIZE + 2,
    LINES_MAX = 10 /* per second */
};

/* The request to the server about one name. */
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

struct dead_process {
    struct rlk_list link; /* in the peer watch's dead_processes */
    int fd;               /* it holds the lock of the live file */
    char uuid[RLK_UUID_LEN + 1];
    struct rlk_livefile_head head;
    struct job *jobs;
    size_t count, size;
    size_t in_flight, next; /* next: no job before it is OPEN */
    bool asked_for_more;    /* the names that this client waits for are among the jobs */
    int64_t retry_at, until;
    int backoff_ms;
    unsigned released, refused;
};

struct request {
    struct rlk_op op;
    struct dead_process *dead;
    size_t job;
};

/* ---- the jobs */

static struct job *add_job(struct dead_process *dead, const char *name, size_t name_len)
{
    if (dead->count == dead->size) {
        size_t size = dead->size ? 2 * dead->size : 8;
        struct job *bigger = realloc(dead->jobs, size * sizeof(*bigger));
        if (!bigger)
            return NULL;
        dead->jobs = bigger;
        dead->size = size;
    }
    struct job *job = &dead->jobs[dead->count++];
    memset(job, 0, sizeof(*job));
    memcpy(job->name, name, name_len);
    job->name_len = (uint8_t)name_len;
    job->prefer = RLOCK_RWLOCK_PHASE_FAIR_NP;
    return job;
}

static bool add_id(struct job *job, const struct rlk_intent *intent)
{
    struct rlk_id id = { .thread = intent->thread,
                         .acquisition = intent->acquisition,
                         .grant_ms = intent->grant_ms,
                         .letter = (char)intent->letter };
    char *bigger = realloc(job->ids, job->ids_len + ID_TEXT_SIZE + 1);

    if (!bigger)
        return false;
    job->ids = bigger;
    memcpy(id.flags, intent->flags, sizeof(id.flags));
    char *at = job->ids + job->ids_len;
    size_t len = rlk_id_write_local(at, &id);
    len += (size_t)snprintf(at + len, 4, " %u ", intent->inside % 10);
    job->ids_len += len;
    job->kind = intent->kind;
    job->prefer = intent->prefer;
    job->reading = intent->letter == 'r' || intent->letter == 'R';
    return true;
}

/* Whether an intent of another process makes sense. */
static bool is_sound(const struct rlk_intent *intent)
{
    if (intent->state != RLK_SLOT_VALID || intent->name_len == 0 ||
        intent->name_len > RLOCK_NAME_MAX || intent->kind >= RLK_KIND_LIMIT ||
        rlk_key_check(intent->name, intent->name_len) != 0 ||
        !strchr("mfrwMFRW", intent->letter) || intent->letter == 0)
        return false;
    for (size_t i = 0; i < sizeof(intent->flags); i++) {
        if (intent->flags[i] == '\0')
            return true;
        if (intent->flags[i] < 'a' || intent->flags[i] > 'z')
            return false;
    }
    return false;
}

/* How much of the file was ever used by intents: the rest is a hole. */
static size_t intents_len(int fd)
{
    const size_t most = RLK_SLOTS_MAX * sizeof(struct rlk_intent);
    off_t end = lseek(fd, RLK_LIVEFILE_HEADER, SEEK_HOLE);

    if (end <= RLK_LIVEFILE_HEADER || (size_t)end - RLK_LIVEFILE_HEADER > most)
        return most;
    return (size_t)end - RLK_LIVEFILE_HEADER;
}

/* Reads the sound intents of the file into allocated memory. */
static struct rlk_intent *read_intents(int fd, size_t *ret_count)
{
    size_t len = 0, want = intents_len(fd), count = 0;
    struct rlk_intent *intents = malloc(want);

    while (intents && len < want) {
        ssize_t n = pread(fd, (char *)intents + len, want - len,
                          (off_t)(RLK_LIVEFILE_HEADER + len));
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    for (size_t i = 0; intents && i < len / sizeof(*intents); i++)
        if (is_sound(&intents[i]))
            memmove(&intents[count++], &intents[i], sizeof(*intents));
    *ret_count = count;
    return intents;
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
static bool read_table(struct dead_process *dead)
{
    size_t count;
    struct rlk_intent *intents = read_intents(dead->fd, &count);
    struct job *job = NULL;
    bool done = intents != NULL;

    if (intents)
        qsort(intents, count, sizeof(*intents), by_name);
    for (size_t i = 0; done && i < count; i++) {
        if (i == 0 || by_name(&intents[i - 1], &intents[i]) != 0)
            job = add_job(dead, intents[i].name, intents[i].name_len);
        done = job && add_id(job, &intents[i]);
    }
    free(intents);
    return done;
}

static bool has_job(const struct dead_process *dead, const struct rlk_lock *lock)
{
    for (size_t i = 0; i < dead->count; i++)
        if (dead->jobs[i].name_len == lock->name_len &&
            memcmp(dead->jobs[i].name, lock->name, lock->name_len) == 0)
            return true;
    return false;
}

/* rule: G10 */
/* Adds the names that this client waits for: the dead process may hold them although
 * its intent table had no room for them. */
static void add_waited_for(struct rlock_client *client, struct dead_process *dead)
{
    struct rlk_registry *reg = &client->registry;
    size_t count = 0;

    rlk_registry_lock(reg);
    for (size_t i = 0; reg->asks_now > 0 && i < reg->table_size; i++)
        for (struct rlk_lock *lock = reg->table[i]; lock; lock = lock->chain)
            if (count < WAITED_MAX && rlk_awaited_lock_locked(lock) &&
                !has_job(dead, lock) && add_job(dead, lock->name, lock->name_len))
                count++;
    rlk_registry_unlock(reg);
}

/* ---- begin and end of one recovery */

static void free_dead_process(struct dead_process *dead)
{
    rlk_list_remove(&dead->link);
    rlk_fd_close(dead->fd);
    for (size_t i = 0; i < dead->count; i++)
        free(dead->jobs[i].ids);
    free(dead->jobs);
    free(dead);
}

bool rlk_recovery_begin(struct rlock_client *client, int fd, const char *uuid,
                        const struct rlk_livefile_head *head, int64_t now)
{
    struct dead_process *dead = calloc(1, sizeof(*dead));

    if (!dead) {
        rlk_fd_close(fd);
        return false;
    }
    rlk_list_init(&dead->link);
    dead->fd = fd;
    dead->head = *head;
    snprintf(dead->uuid, sizeof(dead->uuid), "%s", uuid);
    dead->backoff_ms = BACKOFF_FIRST_MS;
    dead->until = now + 2 * rlk_client_command_timeout(client);
    if (!read_table(dead)) {
        free_dead_process(dead);
        return false;
    }
    rlk_list_append(&client->peer_watch.dead_processes, &dead->link);
    return true;
}

size_t rlk_recovery_count(const struct rlock_client *client)
{
    const struct rlk_list *dead_processes = &client->peer_watch.dead_processes;
    size_t count = 0;

    for (const struct rlk_list *l = dead_processes->next; l != dead_processes;
         l = l->next)
        count++;
    return count;
}

/* Removes the live file, but only the locked one: another file under that name was put
 * there by somebody else. Returns whether it is gone. */
static bool remove_file(struct rlock_client *client, const struct dead_process *dead)
{
    struct rlk_rundir dir;
    struct stat locked, named;

    if (!rlk_fd_is_ours(dead->fd)) /* the program closed it, and the lock with it: another
                                      process recovers */
        return false;
    if (rlk_rundir_open(&dir, client->livefile.dir) != 0)
        return false;
    bool there = fstat(dead->fd, &locked) == 0 &&
                 fstatat(dir.fd, dead->uuid, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                 locked.st_ino == named.st_ino && locked.st_dev == named.st_dev;
    bool gone = !there || rlk_livefile_gc_remove(&dir, dead->uuid, dead->fd);
    rlk_fd_close(dir.fd);
    return gone;
}

static void finish(struct rlock_client *client, struct dead_process *dead, int64_t now)
{
    char more[RLK_LOG_MORE_SIZE];

    /* rule: G10 */
    RLK_COUNT(client->counters.burials); /* before other processes see the end */
    if (!remove_file(client, dead)) /* the close is reported to all processes that look,
                                       this one included */
        rlk_peer_watch_left(client, dead->uuid, now);
    if (rlk_log_now(&client->peer_watch.pace, now, LINES_MAX, more))
        rlk_log(dead->released > 0 ? RLK_LOG_WARNING : RLK_LOG_DEBUG,
                "rlock: process %ld (%s) of this host died; locks released at %s: %u%s",
                dead->head.pid, dead->head.program, client->config.endpoint.label,
                dead->released, more);
    free_dead_process(dead);
}

/* Leaves the dead process to other processes, which may have more luck or more rights. */
static void leave(struct rlock_client *client, struct dead_process *dead, int64_t now)
{
    if (dead->refused > 0)
        rlk_livefile_gc_mark(dead->fd);
    rlk_peer_watch_left(client, dead->uuid, now);
    free_dead_process(dead);
}

/* ---- requests */

static bool send_job(struct rlock_client *client, struct dead_process *dead, size_t i,
                     int64_t now)
{
    struct job *job = &dead->jobs[i];
    struct rlk_request req RLK_UNINITIALIZED;
    struct request *request = calloc(1, sizeof(*request));

    if (!request)
        return false;
    rlk_request_init(&req, RLK_LOCK_BURY, rlk_client_is_sharded(client), job->name,
                     job->name_len);
    rlk_request_add(&req, dead->uuid, RLK_UUID_LEN);
    rlk_request_add_int(&req, dead->head.life_ms);
    rlk_request_add_channel(&req, job->name, job->name_len);
    rlk_request_add_int(&req, job->prefer);
    rlk_request_add_borrowed(&req, job->ids ? job->ids : "", job->ids_len);
    if (!client->peer_watch.link->send(client, &request->op, &req, job->with_text, now)) {
        free(request);
        return false;
    }
    request->dead = dead;
    request->job = i;
    job->state = SENT;
    dead->in_flight++;
    client->peer_watch.in_flight++;
    return true;
}

static void back_off(struct dead_process *dead, int64_t now)
{
    if (now < dead->retry_at) /* a request in flight at the same time has set it */
        return;
    dead->retry_at = now + dead->backoff_ms * RLK_NS_PER_MS;
    dead->backoff_ms *= 2;
    if (dead->backoff_ms > BACKOFF_MAX_MS)
        dead->backoff_ms = BACKOFF_MAX_MS;
}

/* Sends as many requests as there is room for. Returns whether some are left. */
static bool send_some(struct rlock_client *client, struct dead_process *dead, int64_t now)
{
    bool left = false;

    for (size_t i = dead->next; i < dead->count; i++) {
        if (dead->jobs[i].state != OPEN) {
            dead->next += dead->next == i;
            continue;
        }
        if (client->peer_watch.in_flight >= IN_FLIGHT_MAX ||
            !client->peer_watch.link->ready(client))
            return true;
        /* in a cluster, the nodes of other names may be there */
        left |= !send_job(client, dead, i, now);
    }
    if (left)
        back_off(dead, now);
    return left;
}

/* Does the due work of one recovery, and may free it. waiting: a thread of this client
 * waits for a lock. Returns when to call again. */
static int64_t step_dead_process(struct rlock_client *client, struct dead_process *dead,
                                 int64_t now, bool waiting, bool *ret_need_conn)
{
    if (waiting)
        dead->until = now + 2 * rlk_client_command_timeout(client);
    if (now >= dead->until) { /* another process may have more luck */
        if (dead->in_flight == 0)
            leave(client, dead, now);
        return RLK_NEVER;
    }
    if (now >= dead->retry_at && send_some(client, dead, now)) {
        *ret_need_conn = true;
        return now < dead->retry_at ? dead->retry_at : dead->until;
    }
    if (now < dead->retry_at)
        return dead->retry_at;
    if (dead->in_flight > 0)
        return dead->until;
    if (dead->head.full && !dead->asked_for_more) {
        dead->asked_for_more = true;
        add_waited_for(client, dead);
        return now;
    }
    if (dead->refused > 0) /* the file stays for a process with more rights */
        leave(client, dead, now);
    else
        finish(client, dead, now);
    return RLK_NEVER;
}

int64_t rlk_recovery_step(struct rlock_client *client, int64_t now, bool *ret_need_conn)
{
    struct rlk_list *dead_processes = &client->peer_watch.dead_processes;
    int64_t due = RLK_NEVER;

    if (rlk_list_empty(dead_processes))
        return RLK_NEVER;
    rlk_registry_lock(&client->registry);
    bool waiting = client->registry.asks_now > 0;
    rlk_registry_unlock(&client->registry);
    for (struct rlk_list *l = dead_processes->next, *next; l != dead_processes;
         l = next) {
        next = l->next;
        int64_t at =
            step_dead_process(client, RLK_CONTAINER_OF(l, struct dead_process, link), now,
                              waiting, ret_need_conn);
        if (at < due)
            due = at;
    }
    return due;
}

/* ---- answers */

static void queue_death_locked(struct rlk_registry *reg, const struct dead_process *dead,
                               const struct job *job)
{
    struct rlk_death_event *death = calloc(1, sizeof(*death) + (size_t)job->name_len + 1);

    if (!death)
        return;
    death->type = rlk_kinds[job->kind].type;
    death->mode = job->reading ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE;
    death->pid = dead->head.pid;
    snprintf(death->program, sizeof(death->program), "%s", dead->head.program);
    memcpy(death->name, job->name, (size_t)job->name_len + 1);
    rlk_awaited_death_locked(reg, death);
}

/* The hand-over looked at as many waiters as it may: this client's polls continue it. */
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

static void take(struct rlock_client *client, struct dead_process *dead, struct job *job,
                 const struct rlk_answer *answer, int64_t now)
{
    struct rlk_registry *reg = &client->registry;

    switch (answer->outcome) {
    case RLK_DONE:
        job->state = DONE;
        dead->backoff_ms = BACKOFF_FIRST_MS;
        rlk_registry_lock(reg);
        if (answer->fate.what == RLK_RELEASED) {
            dead->released++;
            queue_death_locked(reg, dead, job);
        }
        if (rlk_cursor_set(answer->more))
            go_on_locked(reg, job, answer->more);
        rlk_registry_unlock(reg);
        return;
    case RLK_REFUSED:
        job->state = REFUSED;
        dead->refused++;
        RLK_COUNT(client->counters.refusals);
        return;
    case RLK_NOSCRIPT:
        RLK_COUNT(client->counters.script_loads);
        job->with_text = true;
        break;
    default:
        back_off(dead, now);
    }
    job->state = OPEN;
    dead->next = 0;
}

bool rlk_recovery_answered(struct rlock_client *client, struct rlk_op *op,
                           struct rlk_conn *conn, const struct rlk_reply *reply)
{
    struct request *request = RLK_CONTAINER_OF(op, struct request, op);
    struct dead_process *dead = request->dead;
    struct job *job = &dead->jobs[request->job];
    struct rlk_answer answer = { .outcome = RLK_UNKNOWN, .code = ENOTCONN };
    char text[RLK_SERVER_ERROR_SIZE] = "", shown[RLK_LOG_NAME_SIZE],
         more[RLK_LOG_MORE_SIZE];
    int64_t now = rlk_clock_boot();
    struct rlk_fate fate;

    if (reply) {
        RLK_COUNT(client->counters.round_trips);
        rlk_client_answered(client, op->sent, now);
        rlk_script_decode(conn, &rlk_scripts[RLK_LOCK_BURY], reply, op->sent, &answer,
                          &fate, 1, text, sizeof(text));
    } else {
        RLK_COUNT(client->counters.unknown_outcomes);
    }
    if (answer.outcome == RLK_NOSCRIPT && job->with_text)
        answer.outcome = RLK_REFUSED; /* it contained the script's text */
    assert(dead->in_flight > 0);
    dead->in_flight--;
    client->peer_watch.in_flight--;
    free(request);
    take(client, dead, job, &answer, now);
    if (answer.outcome != RLK_REFUSED ||
        !rlk_log_now(&client->peer_watch.pace, now, LINES_MAX, more))
        return answer.redirected;
    rlk_log_name(shown, sizeof(shown), job->name, job->name_len);
    rlk_log(RLK_LOG_WARNING, "rlock: cannot release \"%s\" of a dead process at %s: %s%s",
            shown, client->config.endpoint.label, text, more);
    return false;
}

void rlk_recovery_stop(struct rlock_client *client)
{
    struct rlk_list *l;
    while ((l = rlk_list_first(&client->peer_watch.dead_processes)) != NULL)
        free_dead_process(RLK_CONTAINER_OF(l, struct dead_process, link));
}
