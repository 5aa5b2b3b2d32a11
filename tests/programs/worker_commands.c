/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's commands that call the library, as listed at the top of worker.c. Any
 * thread runs them; only one command at a time creates or ends a given handle or
 * client. */
#include "worker_commands.h"
#include "worker_exit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <rlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { HANDLES_MAX = 64, CLIENTS_MAX = 16, NUMBER_BASE = 10, HEX_BASE = 16 };

struct handle {
    char tag[TAG_MAX];
    enum { MUTEX, FAIR, RWLOCK } kind;
    union {
        rlock_mutex_t mutex;
        rlock_fair_t fair;
        rlock_rwlock_t rwlock;
    } lock;
};

/* rlock_mutex_<verb> or rlock_fair_<verb> of a handle; CALL_WITH: with more arguments. */
#define CALL(verb, h)                                                                    \
    ((h)->kind == RWLOCK ? rwlock_##verb(&(h)->lock.rwlock)                              \
     : (h)->kind == FAIR ? rlock_fair_##verb(&(h)->lock.fair)                            \
                         : rlock_mutex_##verb(&(h)->lock.mutex))
#define CALL_WITH(verb, h, ...)                                                          \
    ((h)->kind == RWLOCK ? rwlock_##verb(&(h)->lock.rwlock, __VA_ARGS__)                 \
     : (h)->kind == FAIR ? rlock_fair_##verb(&(h)->lock.fair, __VA_ARGS__)               \
                         : rlock_mutex_##verb(&(h)->lock.mutex, __VA_ARGS__))
/* For a read-write lock, lock means wrlock. */
#define rwlock_lock rlock_rwlock_wrlock
#define rwlock_lock_lease rlock_rwlock_wrlock_lease
#define rwlock_trylock rlock_rwlock_trywrlock
#define rwlock_trylock_lease rlock_rwlock_trywrlock_lease
#define rwlock_timedlock rlock_rwlock_timedwrlock
#define rwlock_timedlock_lease rlock_rwlock_timedwrlock_lease
#define rwlock_clocklock rlock_rwlock_clockwrlock
#define rwlock_clocklock_lease rlock_rwlock_clockwrlock_lease
#define rwlock_unlock rlock_rwlock_unlock
#define rwlock_destroy rlock_rwlock_destroy
#define rwlock_extend rlock_rwlock_extend
#define rwlock_getstate rlock_rwlock_getstate
#define rwlock_getremaining rlock_rwlock_getremaining
#define rwlock_gettoken rlock_rwlock_gettoken
#define rwlock_getholdcount rlock_rwlock_getholdcount

/* Guards the handles' tags; not held while the library is called. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct handle handles[HANDLES_MAX];
static rlock_client_t *clients[CLIENTS_MAX]; /* 0 stays NULL: the default client */
static int current;

static const char *code_name(int code)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {
        { 0, "ok" },
        { EACCES, "EACCES" },
        { EAGAIN, "EAGAIN" },
        { EBUSY, "EBUSY" },
        { ECANCELED, "ECANCELED" },
        { EDEADLK, "EDEADLK" },
        { EINVAL, "EINVAL" },
        { EMFILE, "EMFILE" },
        { ENAMETOOLONG, "ENAMETOOLONG" },
        { ENFILE, "ENFILE" },
        { ENOENT, "ENOENT" },
        { ENOMEM, "ENOMEM" },
        { ENOTCONN, "ENOTCONN" },
        { ENOTRECOVERABLE, "ENOTRECOVERABLE" },
        { ENOTSUP, "ENOTSUP" },
        { EOWNERDEAD, "EOWNERDEAD" },
        { EPERM, "EPERM" },
        { EPROTO, "EPROTO" },
        { ESTALE, "ESTALE" },
        { ETIMEDOUT, "ETIMEDOUT" },
    };
    static _Thread_local char other[TAG_MAX];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].code == code)
            return names[i].name;
    }
    snprintf(other, sizeof(other), "code%d", code);
    return other;
}

static void put_code(char *answer, int rc)
{
    put(answer, "%s", code_name(rc));
}

/* ---- arguments */

/* Decodes %XX in place. */
static char *decode(char *text)
{
    char *to = text;
    for (char *from = text; *from; from++) {
        char hex[3] = { 0 };
        if (*from == '%' && from[1] && from[2]) {
            memcpy(hex, from + 1, 2);
            *to++ = (char)strtoul(hex, NULL, HEX_BASE);
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
    return text;
}

static long number(const struct words *w, int i)
{
    return strtol(word(w, i), NULL, NUMBER_BASE);
}

/* The value of "key=value" among the words; NULL: not given. */
static const char *option(const struct words *w, const char *key)
{
    size_t n = strlen(key);
    for (int i = 0; i < w->count; i++) {
        if (strncmp(w->word[i], key, n) == 0 && w->word[i][n] == '=')
            return w->word[i] + n + 1;
    }
    return NULL;
}

/* The handle with this tag; with `make`, a new one. NULL: none. */
static struct handle *find_handle(const char *tag, bool make)
{
    struct handle *found = NULL, *spare = NULL;
    pthread_mutex_lock(&mu);
    for (int i = 0; i < HANDLES_MAX && !found; i++) {
        if (strcmp(handles[i].tag, tag) == 0)
            found = &handles[i];
        else if (!spare && !handles[i].tag[0])
            spare = &handles[i];
    }
    if (!found && make && spare) {
        snprintf(spare->tag, sizeof(spare->tag), "%s", tag);
        found = spare;
    }
    pthread_mutex_unlock(&mu);
    return found;
}

static rlock_client_t *client(void)
{
    return clients[__atomic_load_n(&current, __ATOMIC_SEQ_CST)];
}

/* ---- clients */

static void on_event(const rlock_event_t *event, void *arg)
{
    static const char *const kinds[] = { "AT_RISK",    "SAFE_AGAIN",   "LOST",
                                         "OWNER_DIED", "DISCONNECTED", "CONNECTED" };
    static const char *const types[] = { "-", "mutex", "fair", "rwlock", "redisson" };
    (void)arg;
    say("event %s %s %" PRIu64 " %ld %s %s %s", kinds[event->kind],
        event->name && event->name[0] ? event->name : "-", event->token,
        event->remaining_ms, types[event->type],
        event->mode == RLOCK_MODE_READ ? "read" : "exclusive",
        event->reason ? event->reason : "");
    exit_at_event(kinds[event->kind]);
}

static int set_client_options(rlock_clientattr_t *attr, const struct words *w)
{
    static const struct {
        const char *key;
        int (*set)(rlock_clientattr_t *, long);
    } longs[] = {
        { "lease", rlock_clientattr_setlease },
        { "presence", rlock_clientattr_setpresence },
        { "commandtimeout", rlock_clientattr_setcommandtimeout },
        { "connecttimeout", rlock_clientattr_setconnecttimeout },
        { "handoffms", rlock_clientattr_sethandoffms },
        { "retain", rlock_clientattr_setretain },
    };
    int rc = rlock_clientattr_seteventcallback(attr, on_event, NULL);
    for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]) && rc == 0; i++) {
        const char *value = option(w, longs[i].key);
        if (value)
            rc = longs[i].set(attr, strtol(value, NULL, NUMBER_BASE));
    }
    const char *connections = option(w, "maxconnections");
    if (rc == 0 && connections)
        rc = rlock_clientattr_setmaxconnections(attr, atoi(connections));
    const char *type = option(w, "mutextype");
    if (rc == 0 && type)
        rc = rlock_clientattr_setmutextype(attr, atoi(type));
    return rc;
}

static void do_open(const struct words *w, char *answer)
{
    rlock_clientattr_t attr;
    rlock_client_t *opened = NULL;
    int free_slot = 1;
    while (free_slot < CLIENTS_MAX && clients[free_slot])
        free_slot++;
    if (free_slot == CLIENTS_MAX) {
        put(answer, "? too many clients");
        return;
    }
    rlock_clientattr_init(&attr);
    int rc = set_client_options(&attr, w);
    if (rc == 0)
        rc = rlock_client_open(&opened, word(w, 1), &attr);
    rlock_clientattr_destroy(&attr);
    if (rc != 0) {
        put_code(answer, rc);
        return;
    }
    clients[free_slot] = opened;
    __atomic_store_n(&current, free_slot, __ATOMIC_SEQ_CST);
    put(answer, "ok %d", free_slot);
}

static void do_default(const struct words *w, char *answer)
{
    rlock_clientattr_t attr;
    rlock_clientattr_init(&attr);
    int rc = set_client_options(&attr, w);
    if (rc == 0)
        rc = rlock_client_setdefault(word(w, 1), &attr);
    rlock_clientattr_destroy(&attr);
    __atomic_store_n(&current, 0, __ATOMIC_SEQ_CST);
    put_code(answer, rc);
}

static void do_use(const struct words *w, char *answer)
{
    long n = number(w, 1);
    bool known = n == 0 || (n > 0 && n < CLIENTS_MAX && clients[n]);
    if (known)
        __atomic_store_n(&current, (int)n, __ATOMIC_SEQ_CST);
    put(answer, "%s", known ? "ok" : "? no such client");
}

static void do_close(const struct words *w, char *answer)
{
    long n = w->count > 1 ? number(w, 1) : __atomic_load_n(&current, __ATOMIC_SEQ_CST);
    if (n < 0 || n >= CLIENTS_MAX || (n > 0 && !clients[n])) {
        put(answer, "? no such client");
        return;
    }
    int rc = rlock_client_close(clients[n]);
    if (rc == 0) {
        clients[n] = NULL;
        __atomic_store_n(&current, 0, __ATOMIC_SEQ_CST);
    }
    put_code(answer, rc);
}

static void do_ping(const struct words *w, char *answer)
{
    (void)w;
    put_code(answer, rlock_client_ping(client()));
}

static void do_interrupt(const struct words *w, char *answer)
{
    (void)w;
    put_code(answer, rlock_client_interrupt(client()));
}

static void do_stats(const struct words *w, char *answer)
{
    rlock_stats_t s;
    (void)w;
    int rc = rlock_client_getstats(client(), &s);
    if (rc != 0) {
        put_code(answer, rc);
        return;
    }
#define FIELD(name) " " #name "=%" PRIu64
    put(answer,
        "ok" FIELD(holds_now) FIELD(waiters_now) FIELD(acquisitions) FIELD(reentries)
            FIELD(releases) FIELD(waits) FIELD(grants) FIELD(grants_orphaned)
                FIELD(local_handovers) FIELD(timeouts) FIELD(cancels) FIELD(round_trips)
                    FIELD(renewals) FIELD(renewal_failures) FIELD(refreshes) FIELD(losses)
                        FIELD(owners_died) FIELD(connects) FIELD(connect_failures)
                            FIELD(reconnects) FIELD(unknown_outcomes)
                                FIELD(background_releases) FIELD(messages)
                                    FIELD(messages_ignored) FIELD(refusals)
                                        FIELD(burials),
        s.holds_now, s.waiters_now, s.acquisitions, s.reentries, s.releases, s.waits,
        s.grants, s.grants_orphaned, s.local_handovers, s.timeouts, s.cancels,
        s.round_trips, s.renewals, s.renewal_failures, s.refreshes, s.losses,
        s.owners_died, s.connects, s.connect_failures, s.reconnects, s.unknown_outcomes,
        s.background_releases, s.messages, s.messages_ignored, s.refusals, s.burials);
#undef FIELD
}

/* ---- handles */

static int set_type(rlock_mutexattr_t *attr, const char *type)
{
    if (strcmp(type, "recursive") == 0)
        return rlock_mutexattr_settype(attr, RLOCK_MUTEX_RECURSIVE);
    if (strcmp(type, "errorcheck") == 0)
        return rlock_mutexattr_settype(attr, RLOCK_MUTEX_ERRORCHECK);
    return rlock_mutexattr_settype(attr, RLOCK_MUTEX_NORMAL);
}

static int outage_of(const char *outage)
{
    return strcmp(outage, "fail") == 0    ? RLOCK_OUTAGE_FAIL
           : strcmp(outage, "abort") == 0 ? RLOCK_OUTAGE_ABORT
                                          : RLOCK_OUTAGE_WAIT;
}

/* Sets the attributes that all types have. */
#define SET_OPTIONS(type, attr, w)                                                       \
    do {                                                                                 \
        rc = client() ? rlock_##type##attr_setclient(attr, client()) : 0;                \
        if (rc == 0 && (value = option(w, "lease")))                                     \
            rc = rlock_##type##attr_setlease(attr, strtol(value, NULL, NUMBER_BASE));    \
        if (rc == 0 && (value = option(w, "fencing")))                                   \
            rc = rlock_##type##attr_setfencing(attr, atoi(value));                       \
        if (rc == 0 && (value = option(w, "pshared")))                                   \
            rc = rlock_##type##attr_setpshared(attr, atoi(value));                       \
        if (rc == 0 && (value = option(w, "outage")))                                    \
            rc = rlock_##type##attr_setoutage(attr, outage_of(value));                   \
    } while (0)

static int init_exclusive(struct handle *h, const struct words *w)
{
    rlock_mutexattr_t attr;
    const char *value;
    int rc;

    rlock_mutexattr_init(&attr);
    SET_OPTIONS(mutex, &attr, w);
    if (rc == 0 && (value = option(w, "type")))
        rc = set_type(&attr, value);
    if (rc == 0 && (value = option(w, "handoffms")))
        rc = rlock_mutexattr_sethandoffms(&attr, strtol(value, NULL, NUMBER_BASE));
    if (rc == 0 && (value = option(w, "retain")))
        rc = rlock_mutexattr_setretain(&attr, strtol(value, NULL, NUMBER_BASE));
    if (rc == 0 && (value = option(w, "handoffcount")))
        rc = rlock_mutexattr_sethandoffcount(&attr, atoi(value));
    if (rc == 0 && (value = option(w, "robust")) && atoi(value))
        rc = rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST);
    if (rc == 0)
        rc = h->kind == FAIR
                 ? rlock_fair_init(&h->lock.fair, &attr, decode(w->word[2]))
                 : rlock_mutex_init(&h->lock.mutex, &attr, decode(w->word[2]));
    rlock_mutexattr_destroy(&attr);
    return rc;
}

static int init_rwlock(struct handle *h, const struct words *w)
{
    rlock_rwlockattr_t attr;
    const char *value;
    int rc;

    rlock_rwlockattr_init(&attr);
    SET_OPTIONS(rwlock, &attr, w);
    if (rc == 0 && (value = option(w, "kind")))
        rc = rlock_rwlockattr_setkind_np(&attr, atoi(value));
    if (rc == 0)
        rc = rlock_rwlock_init(&h->lock.rwlock, &attr, decode(w->word[2]));
    rlock_rwlockattr_destroy(&attr);
    return rc;
}

static bool is_set(const struct words *w, const char *key)
{
    const char *value = option(w, key);
    return value && atoi(value);
}

static void do_init(const struct words *w, char *answer)
{
    struct handle *h = w->count > 2 ? find_handle(w->word[1], true) : NULL;
    if (!h) {
        put(answer, "? init HANDLE NAME, or too many handles");
        return;
    }
    h->kind = is_set(w, "rwlock") ? RWLOCK : is_set(w, "fair") ? FAIR : MUTEX;
    int rc = h->kind == RWLOCK ? init_rwlock(h, w) : init_exclusive(h, w);
    if (rc != 0)
        h->tag[0] = '\0';
    put_code(answer, rc);
}

/* The handle that the command's first argument names; NULL: there is none, and `answer`
 * says so. */
static struct handle *handle_of(const struct words *w, char *answer)
{
    struct handle *h = w->count > 1 ? find_handle(w->word[1], false) : NULL;
    if (!h)
        put(answer, "? no such handle");
    return h;
}

static void do_destroy(const struct words *w, char *answer)
{
    struct handle *h = w->count > 1 ? find_handle(w->word[1], false) : NULL;
    int rc = h ? CALL(destroy, h) : EINVAL;
    if (rc == 0)
        h->tag[0] = '\0';
    put_code(answer, rc);
}

static void do_lock(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h)
        put_code(answer,
                 w->count > 2 ? CALL_WITH(lock_lease, h, number(w, 2)) : CALL(lock, h));
}

static void do_trylock(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h)
        put_code(answer, w->count > 2 ? CALL_WITH(trylock_lease, h, number(w, 2))
                                      : CALL(trylock, h));
}

static struct timespec in_ms(clockid_t clock, long ms)
{
    const long ns_per_ms = 1000000, ms_per_s = 1000;
    struct timespec ts;
    clock_gettime(clock, &ts);
    ts.tv_sec += ms / ms_per_s;
    ts.tv_nsec += ms % ms_per_s * ns_per_ms;
    if (ts.tv_nsec >= ns_per_ms * ms_per_s) {
        ts.tv_nsec -= ns_per_ms * ms_per_s;
        ts.tv_sec++;
    } else if (ts.tv_nsec < 0) {
        ts.tv_nsec += ns_per_ms * ms_per_s;
        ts.tv_sec--;
    }
    return ts;
}

static void do_timedlock(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    struct timespec at = in_ms(CLOCK_REALTIME, number(w, 2));
    if (h)
        put_code(answer, w->count > 3 ? CALL_WITH(timedlock_lease, h, &at, number(w, 3))
                                      : CALL_WITH(timedlock, h, &at));
}

static void do_clocklock(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    struct timespec at = in_ms(CLOCK_MONOTONIC, number(w, 2));
    if (h)
        put_code(answer, w->count > 3 ? CALL_WITH(clocklock_lease, h, CLOCK_MONOTONIC,
                                                  &at, number(w, 3))
                                      : CALL_WITH(clocklock, h, CLOCK_MONOTONIC, &at));
}

/* ---- read-write locks */

/* The same for commands of read-write locks only. */
static rlock_rwlock_t *rwlock_of(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h && h->kind != RWLOCK)
        put(answer, "? no read-write lock");
    return h && h->kind == RWLOCK ? &h->lock.rwlock : NULL;
}

static void do_rdlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    if (l)
        put_code(answer, w->count > 2 ? rlock_rwlock_rdlock_lease(l, number(w, 2))
                                      : rlock_rwlock_rdlock(l));
}

static void do_tryrdlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    if (l)
        put_code(answer, w->count > 2 ? rlock_rwlock_tryrdlock_lease(l, number(w, 2))
                                      : rlock_rwlock_tryrdlock(l));
}

static void do_timedrdlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    struct timespec at = in_ms(CLOCK_REALTIME, number(w, 2));
    if (l)
        put_code(answer, w->count > 3
                             ? rlock_rwlock_timedrdlock_lease(l, &at, number(w, 3))
                             : rlock_rwlock_timedrdlock(l, &at));
}

static void do_clockrdlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    struct timespec at = in_ms(CLOCK_MONOTONIC, number(w, 2));
    if (l)
        put_code(answer, w->count > 3
                             ? rlock_rwlock_clockrdlock_lease(l, CLOCK_MONOTONIC, &at,
                                                              number(w, 3))
                             : rlock_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &at));
}

static void do_rdunlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    if (l)
        put_code(answer, rlock_rwlock_rdunlock(l));
}

static void do_wrunlock(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    if (l)
        put_code(answer, rlock_rwlock_wrunlock(l));
}

static void do_downgrade(const struct words *w, char *answer)
{
    rlock_rwlock_t *l = rwlock_of(w, answer);
    if (l)
        put_code(answer, rlock_rwlock_downgrade(l));
}

static void do_unlock(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h)
        put_code(answer, CALL(unlock, h));
}

static void do_consistent(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h)
        put_code(answer, h->kind == FAIR    ? rlock_fair_consistent(&h->lock.fair)
                         : h->kind == MUTEX ? rlock_mutex_consistent(&h->lock.mutex)
                                            : EINVAL);
}

static void do_extend(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (h)
        put_code(answer, CALL_WITH(extend, h, number(w, 2)));
}

static void do_state(const struct words *w, char *answer)
{
    static const char *const names[] = { "UNHELD", "SAFE", "AT_RISK", "LOST" };
    struct handle *h = handle_of(w, answer);
    rlock_state_t state = RLOCK_UNHELD;
    if (!h)
        return;
    int rc = CALL_WITH(getstate, h, &state);
    if (rc == 0)
        put(answer, "ok %s", names[state]);
    else
        put_code(answer, rc);
}

static void do_remaining(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    long ms = 0;
    if (!h)
        return;
    int rc = CALL_WITH(getremaining, h, &ms);
    if (rc == 0)
        put(answer, "ok %ld", ms);
    else
        put_code(answer, rc);
}

static void do_token(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    uint64_t token = 0;
    if (!h)
        return;
    int rc = CALL_WITH(gettoken, h, &token);
    if (rc == 0)
        put(answer, "ok %" PRIu64, token);
    else
        put_code(answer, rc);
}

static void do_count(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    unsigned count = 0;
    if (!h)
        return;
    int rc = CALL_WITH(getholdcount, h, &count);
    if (rc == 0)
        put(answer, "ok %u", count);
    else
        put_code(answer, rc);
}

/* ---- administration */

static void do_inspect(const struct words *w, char *answer)
{
    rlock_info_t *info = NULL;
    int rc = w->count > 1 ? rlock_inspect(client(), decode(w->word[1]), &info) : EINVAL;
    if (rc == 0)
        put(answer, "ok type=%d token=%" PRIu64 " holders=%zu waiters=%zu",
            (int)info->type, info->token, info->holder_count, info->waiter_count);
    else
        put_code(answer, rc);
    rlock_info_free(info);
}

static void do_force(const struct words *w, char *answer)
{
    put_code(answer,
             w->count > 1 ? rlock_force_unlock(client(), decode(w->word[1])) : EINVAL);
}

static void do_waitfree(const struct words *w, char *answer)
{
    struct timespec at = in_ms(CLOCK_REALTIME, number(w, 2));
    put_code(answer,
             w->count > 1 ? rlock_waitfree(client(), decode(w->word[1]), &at) : EINVAL);
}

static int append_name(const rlock_info_t *info, void *arg)
{
    char *answer = arg;
    size_t used = strlen(answer);
    snprintf(answer + used, LINE_MAX_LEN - used, " %s", info->name);
    return 0;
}

static void do_list(const struct words *w, char *answer)
{
    put(answer, "ok");
    int rc = rlock_list(client(), w->count > 1 ? decode(w->word[1]) : NULL, append_name,
                        answer);
    if (rc != 0)
        put_code(answer, rc);
}

/* ---- others */

static void do_hammer(const struct words *w, char *answer)
{
    struct handle *h = handle_of(w, answer);
    if (!h)
        return;
    int fd = open(word(w, 3), O_RDWR | O_CLOEXEC);
    volatile int64_t *sum = MAP_FAILED;
    if (fd >= 0) {
        sum = mmap(NULL, sizeof(*sum), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (sum == MAP_FAILED) {
        put(answer, "? cannot map the file");
        return;
    }
    int rc = 0;
    for (long i = number(w, 2); i > 0 && rc == 0; i--) {
        rc = CALL(lock, h);
        if (rc != 0)
            break;
        int64_t seen = *sum;
        sched_yield(); /* a second holder would make an addition disappear */
        *sum = seen + 1;
        rc = CALL(unlock, h);
    }
    munmap((void *)(uintptr_t)sum, sizeof(*sum));
    put_code(answer, rc);
}

/* Spends most of its time in sections of the library. */
static void do_spin(const struct words *w, char *answer)
{
    rlock_stats_t stats;
    (void)w;
    say("done spin begins");
    while (rlock_client_getstats(client(), &stats) == 0)
        ;
    put(answer, "? no client");
}

/* Locks many mutexes, each by its own handle, which lives as long as the process. */
static void do_hoard(const struct words *w, char *answer)
{
    static rlock_mutex_t *mutexes;
    rlock_mutexattr_t attr;
    long count = number(w, 2);
    int rc = !mutexes && count > 0 ? 0 : EINVAL; /* only once */

    if (rc == 0 && !(mutexes = calloc((size_t)count, sizeof(*mutexes))))
        rc = ENOMEM;

    rlock_mutexattr_init(&attr);
    if (rc == 0 && client())
        rc = rlock_mutexattr_setclient(&attr, client());
    for (long i = 0; i < count && rc == 0; i++) {
        char name[LINE_MAX_LEN + TAG_MAX];
        snprintf(name, sizeof(name), "%s%ld", word(w, 1), i);
        rc = rlock_mutex_init(&mutexes[i], &attr, name);
        if (rc == 0)
            rc = rlock_mutex_lock(&mutexes[i]);
    }
    rlock_mutexattr_destroy(&attr);
    put_code(answer, rc);
}

static void do_errmsg(const struct words *w, char *answer)
{
    (void)w;
    put(answer, "ok %s", rlock_errmsg());
}

static void do_version(const struct words *w, char *answer)
{
    (void)w;
    put(answer, "ok %s", rlock_version());
}

static const struct {
    const char *name;
    void (*run)(const struct words *w, char *answer);
} commands[] = {
    { "open", do_open },
    { "use", do_use },
    { "close", do_close },
    { "default", do_default },
    { "ping", do_ping },
    { "interrupt", do_interrupt },
    { "stats", do_stats },
    { "init", do_init },
    { "destroy", do_destroy },
    { "lock", do_lock },
    { "trylock", do_trylock },
    { "timedlock", do_timedlock },
    { "clocklock", do_clocklock },
    { "unlock", do_unlock },
    { "consistent", do_consistent },
    { "extend", do_extend },
    { "state", do_state },
    { "remaining", do_remaining },
    { "token", do_token },
    { "count", do_count },
    { "inspect", do_inspect },
    { "force", do_force },
    { "waitfree", do_waitfree },
    { "list", do_list },
    { "hammer", do_hammer },
    { "hoard", do_hoard },
    { "spin", do_spin },
    { "rdlock", do_rdlock },
    { "tryrdlock", do_tryrdlock },
    { "timedrdlock", do_timedrdlock },
    { "clockrdlock", do_clockrdlock },
    { "rdunlock", do_rdunlock },
    { "wrunlock", do_wrunlock },
    { "downgrade", do_downgrade },
    { "errmsg", do_errmsg },
    { "version", do_version },
};

bool run_command(const char *line, char *answer)
{
    struct words w;
    split(&w, line);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(word(&w, 0), commands[i].name) == 0) {
            commands[i].run(&w, answer);
            return true;
        }
    }
    return false;
}
