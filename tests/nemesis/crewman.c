/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of the nemesis: threads that use the nemesis's locks all the time, with all
 * calls, and record each call, its result, and their belief about the hold.
 *
 *   RLOCK_URL=... crewman PROCESS LIFE THREADS LOCKS LEASE_MS SEED LONG_PERCENT THINK_MS
 *
 * One more thread uses locks that the judge does not judge (sacrifice.h). The lines are
 * read and answered at descriptor numbers given by robbery.h.
 *
 * The process aborts when a part of the URL's password is in a message, an event, or a
 * line of the library's log (at its most verbose level).
 *
 * Lines on stdin, each answered by one line:
 *   round DIR   the threads work, and write into DIR      working UUID
 *   rest        they finish what they have begun, until
 *               none holds or waits any more              resting
 *   fall K T    SIGKILL to itself as soon as a thread is in the state that enum nem_kind
 *               K requires, with a lock of type T; no answer
 *   close W     closes 0 to 2, see robbery.h; no answer
 *   open W      opens other files at 0 to 2; no answer
 *   look        the resources of the process, "descriptors threads bytes"; bytes of its
 *               own memory, without files
 * At the end of stdin the process rests, closes its client and ends.
 */
#include "link.h"
#include "pulse.h"
#include "robbery.h"
#include "sacrifice.h"
#include "target.h"
#include "usage.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    ARGUMENTS = 9,
    LOCKS_MAX = NEM_LOCKS_MAX,
    THREADS_MAX = 64,
    LINE = 4096,
    PERCENT = 100
};
enum { US_PER_MS = 1000, NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };
/* of 100 calls */
enum { READS = 65, PATIENT = 45, TIMED = 30, FIXED = 12, TWICE = 12 };
enum { HOT = 75, HOT_LOCKS = 3 };
enum { DOWNGRADES = 25, EXTENDS = 6, MEDIUM = 10, BURSTS = 10, BURST = 12 };
enum { STAY_US = 2500, MEDIUM_US = 30000, CHECKS = 8 };
enum { CHILDREN = 250, CHILD_S = 2 }; /* one in this many units of work leaves a child */
enum { SECRET_MIN = 6 };

#define HOT_NS (UINT64_C(3) * NS_PER_S)

/* What a thread is doing, with which lock. */
enum at { NOTHING, ASKING, INSIDE, LEFT };

struct man {
    pthread_t thread;
    unsigned number;
    uint64_t random;
    int fd;
    atomic_uint at; /* enum at << 16 | lock */
};

static struct {
    rlock_client_t *client;
    unsigned process, life, threads, locks, long_percent, think_us;
    long lease_ms;
    uint64_t seed;
    bool guarded;
    char secret[LINE]; /* the password; "": there is none */
    struct nem_target targets[LOCKS_MAX];
    struct man men[THREADS_MAX];
    atomic_int events_fd;
    char dir[LINE];
    atomic_bool rest;
    /* guards what follows */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned resting;
    unsigned long round; /* counts rounds */
    bool end;
} crew = { .mutex = PTHREAD_MUTEX_INITIALIZER,
           .changed = PTHREAD_COND_INITIALIZER,
           .events_fd = -1 };

/* ---- output */

static void find_secret(const char *url)
{
    const char *user = url ? strstr(url, "//") : NULL;
    const char *password = user ? strchr(user, ':') : NULL;
    const char *at = user ? strchr(user, '@') : NULL;
    if (password && at && at - password > SECRET_MIN && at - password < LINE)
        memcpy(crew.secret, password + 1, (size_t)(at - password - 1));
}

static void hear(const char *what, const char *text)
{
    char part[SECRET_MIN + 1] = "";
    size_t len = strlen(crew.secret);
    for (size_t i = 0; i + SECRET_MIN <= len; i++) {
        memcpy(part, crew.secret + i, SECRET_MIN);
        if (!strstr(text, part))
            continue;
        fprintf(stderr, "crewman: the password is in %s: %s\n", what, text);
        abort();
    }
}

/* ---- records */

static int64_t now_boot(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void write_op(int fd, const struct nem_op *op)
{
    if (write(fd, op, sizeof(*op)) != (ssize_t)sizeof(*op)) {
        fprintf(stderr, "crewman: cannot write: %s\n", strerror(errno));
        abort();
    }
}

static int open_log(const char *thread)
{
    char path[LINE + 64];
    snprintf(path, sizeof(path), "%s/ops.%u.%u.%s", crew.dir, crew.process, crew.life,
             thread);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        fprintf(stderr, "crewman: %s: %s\n", path, strerror(errno));
        abort();
    }
    return fd;
}

static struct nem_op op_of(const struct man *man, enum nem_what what, enum nem_call call,
                           const struct nem_target *target)
{
    return (struct nem_op){ .process = (uint16_t)crew.process,
                            .life = (uint16_t)crew.life,
                            .thread = (uint16_t)man->number,
                            .lock = target ? (uint16_t)target->number : NEM_ALL,
                            .what = (uint8_t)what,
                            .call = (uint8_t)call,
                            .pid = (uint32_t)getpid() };
}

/* The record has the client's uuid: so the judge also knows a process that never gets a
 * lock. */
static void log_simple(struct man *man, enum nem_what what)
{
    struct nem_op op = op_of(man, what, NEM_NO_CALL, NULL);
    nem_target_client(crew.client, &op);
    if (what == NEM_STARTED)
        op.code = crew.guarded;
    op.at = now_boot();
    write_op(man->fd, &op);
}

/* Stores the time, and the thread's view of the hold at that very time: the watchdog may
 * renew the hold at any moment. */
static void stamp(struct nem_op *op, struct nem_target *target)
{
    struct nem_op before;
    do {
        before = *op;
        nem_target_look(target, &before);
        op->at = now_boot();
        nem_target_look(target, op);
    } while (op->end != before.end);
}

static void log_return(struct man *man, enum nem_call call, struct nem_target *target,
                       bool reading, int code)
{
    struct nem_op op = op_of(man, NEM_RETURN, call, target);
    if (code != 0)
        hear("a message", rlock_errmsg());
    op.code = code;
    op.reading = reading;
    op.levels = (uint8_t)nem_target_levels(target);
    stamp(&op, target);
    write_op(man->fd, &op);
}

/* The client itself ends a connection when an answer does not come, for instance on a
 * busy machine. */
static bool is_for_want_of_an_answer(const char *reason)
{
    return strstr(reason, "no answer") || strstr(reason, "in time") ||
           strstr(reason, "timed out");
}

static void log_cut_off(int code, const char *reason)
{
    int fd = atomic_load(&crew.events_fd);
    if (fd < 0 || is_for_want_of_an_answer(reason))
        return;
    struct nem_op op = { .at = now_boot(),
                         .process = (uint16_t)crew.process,
                         .life = (uint16_t)crew.life,
                         .thread = NEM_EVENTS_THREAD,
                         .lock = NEM_ALL,
                         .what = NEM_CUT_OFF,
                         .code = code,
                         .pid = (uint32_t)getpid() };
    write_op(fd, &op);
}

/* No event reports that the watchdog's connection has ended: only the log does. */
static void hear_line(int level, const char *line, void *arg)
{
    static const char watchdog[] = "rlock: watchdog connection replaced: ";
    (void)level;
    (void)arg;
    hear("the log", line);
    if (strncmp(line, watchdog, sizeof(watchdog) - 1) == 0)
        log_cut_off(1, line);
}

/* The library calls it on one thread of its own. */
static void on_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    unsigned lock = 0;
    hear("an event", event->reason);
    int fd = atomic_load(&crew.events_fd);
    if (event->kind == RLOCK_EVENT_DISCONNECTED)
        log_cut_off(0, event->reason);
    if (fd < 0 || sscanf(event->name, "nemesis%u", &lock) != 1)
        return;
    struct nem_op op = { .at = now_boot(),
                         .process = (uint16_t)crew.process,
                         .life = (uint16_t)crew.life,
                         .thread = NEM_EVENTS_THREAD,
                         .lock = (uint16_t)lock,
                         .what = NEM_EVENT,
                         .code = (int32_t)event->kind,
                         .token = event->token,
                         .reading = event->mode == RLOCK_MODE_READ,
                         .levels = UINT8_MAX, /* no known thread's */
                         .pid = (uint32_t)getpid() };
    for (unsigned i = 0; event->kind == RLOCK_EVENT_LOST && i < crew.threads; i++)
        if (pthread_equal(crew.men[i].thread, event->thread))
            op.levels = (uint8_t)i;
    write_op(fd, &op);
}

/* ---- the work of a thread */

static uint64_t draw(struct man *man, uint64_t below)
{
    uint64_t x = man->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    man->random = x;
    return (x >> 11) % below;
}

static bool chance(struct man *man, unsigned percent)
{
    return draw(man, PERCENT) < percent;
}

static void pause_us(uint64_t us)
{
    struct timespec t = { (time_t)(us / 1000000), (long)(us % 1000000) * NS_PER_US };
    nanosleep(&t, NULL);
}

/* Records the thread's belief. False: it knows that the hold is lost. */
static bool look(struct man *man, struct nem_target *target)
{
    rlock_state_t state = RLOCK_UNHELD;
    struct nem_op op = op_of(man, NEM_CHECK, NEM_NO_CALL, target);
    stamp(&op, target);
    bool held = nem_target_state(target, &state) == 0 &&
                (state == RLOCK_SAFE || state == RLOCK_AT_RISK);
    op.code = held;
    if (!held) /* D may have passed since */
        stamp(&op, target);
    op.levels = (uint8_t)nem_target_levels(target);
    write_op(man->fd, &op);
    return held;
}

static void stay(struct man *man, struct nem_target *target, uint64_t us)
{
    for (int i = 0; i < CHECKS; i++) {
        if (us > 0)
            pause_us(us / CHECKS);
        if (us > MEDIUM_US || i == 0 || i == CHECKS - 1)
            if (!look(man, target))
                return;
    }
}

static void be_at(struct man *man, enum at at, const struct nem_target *target)
{
    atomic_store(&man->at, (unsigned)at << 16 | target->number);
}

/* A call about an existing hold. */
static int call_held(struct man *man, enum nem_call call, struct nem_target *target,
                     long lease_ms)
{
    struct nem_op op = op_of(man, NEM_INVOKE, call, target);
    op.lease_ms = (uint32_t)lease_ms;
    op.levels = (uint8_t)nem_target_levels(target);
    stamp(&op, target);
    bool reading = op.reading;
    write_op(man->fd, &op);
    int rc = call == NEM_UNLOCK      ? nem_target_unlock(target)
             : call == NEM_DOWNGRADE ? nem_target_downgrade(target)
             : call == NEM_EXTEND    ? nem_target_extend(target, lease_ms)
                                     : nem_target_consistent(target);
    log_return(man, call, target, reading && call != NEM_DOWNGRADE, rc);
    return rc;
}

static int take(struct man *man, enum nem_call call, struct nem_target *target,
                uint64_t wait_us, long lease_ms)
{
    bool reading = call >= NEM_RDLOCK && call <= NEM_TRYRDLOCK;
    struct timespec deadline = { 0, 0 };
    struct nem_op op = op_of(man, NEM_INVOKE, call, target);
    int64_t before = now_boot(); /* the recorded deadline must not be later than the one
                                    that the call gets */

    op.lease_ms = (uint32_t)lease_ms;
    op.levels = (uint8_t)nem_target_levels(target);
    if (call == NEM_TIMEDLOCK || call == NEM_TIMEDRDLOCK) {
        clock_gettime(CLOCK_REALTIME, &deadline);
        int64_t ns = deadline.tv_nsec + (int64_t)wait_us * NS_PER_US;
        deadline.tv_sec += (time_t)(ns / NS_PER_S);
        deadline.tv_nsec = (long)(ns % NS_PER_S);
    }
    stamp(&op, target);
    op.reading = reading;
    if (deadline.tv_sec != 0)
        op.deadline = before + (int64_t)wait_us * NS_PER_US;
    write_op(man->fd, &op);
    if (op.levels == 0)
        be_at(man, ASKING, target);
    int rc = nem_target_take(target, call, &deadline, lease_ms);
    log_return(man, call, target, reading, rc);
    be_at(man, nem_target_levels(target) > 0 ? INSIDE : NOTHING, target);
    return rc;
}

static void leave_all(struct man *man, struct nem_target *target)
{
    be_at(man, NOTHING, target);
    while (nem_target_levels(target) > 0)
        if (call_held(man, NEM_UNLOCK, target, 0) == EPERM)
            return;
    be_at(man, LEFT, target);
}

static void inside(struct man *man, struct nem_target *target, bool reading,
                   long lease_ms)
{
    uint64_t lease_us = (uint64_t)crew.lease_ms * 1000;
    uint64_t us = chance(man, crew.long_percent)
                      ? lease_us / 4 + draw(man, lease_us * 5 / 4)
                  : chance(man, MEDIUM) ? draw(man, MEDIUM_US)
                                        : draw(man, STAY_US);

    stay(man, target, us);
    if (chance(man, TWICE))
        take(man, reading ? NEM_RDLOCK : NEM_LOCK, target, 0, 0);
    if (target->type == NEM_RWLOCK && !reading && chance(man, DOWNGRADES)) {
        call_held(man, NEM_DOWNGRADE, target, 0);
        stay(man, target, draw(man, STAY_US));
    } else if (chance(man, EXTENDS)) {
        call_held(man, NEM_EXTEND, target, lease_ms ? 0 : crew.lease_ms);
        stay(man, target, draw(man, STAY_US));
    }
    leave_all(man, target);
}

/* For a few seconds most threads of all processes want the same three locks, then three
 * others, so that there are queues. */
static struct nem_target *choose(struct man *man)
{
    if (crew.locks < 2 * HOT_LOCKS || !chance(man, HOT))
        return &crew.targets[draw(man, crew.locks)];
    uint64_t trio = (uint64_t)now_boot() / HOT_NS % (crew.locks / HOT_LOCKS);
    return &crew.targets[trio * HOT_LOCKS + draw(man, HOT_LOCKS)];
}

/* Short sections one after the other: if other threads of the process do the same, they
 * pass the lock on among themselves. */
static void burst(struct man *man, struct nem_target *target)
{
    for (int i = 0; i < BURST; i++) {
        int rc = take(man, i % 4 == 3 ? NEM_TRYLOCK : NEM_LOCK, target, 0, 0);
        if (rc == EOWNERDEAD)
            call_held(man, NEM_CONSISTENT, target, 0);
        if (rc == 0 || rc == EOWNERDEAD)
            look(man, target);
        leave_all(man, target);
    }
}

/* Leaves a child that outlives this process, with all that it inherits. The locks do not
 * belong to it. */
static void leave_child(void)
{
    if (fork() != 0)
        return;
    nem_lines_leave(); /* a reader of these pipes waits for this process's end */
    alarm(CHILD_S);
    for (;;)
        pause();
}

static void work_once(struct man *man)
{
    if (crew.guarded && draw(man, CHILDREN) == 0)
        leave_child();
    struct nem_target *target = choose(man);
    if (target->type == NEM_MUTEX && chance(man, BURSTS)) {
        burst(man, target);
        return;
    }
    bool reading = target->type == NEM_RWLOCK && chance(man, READS);
    uint64_t form = draw(man, PERCENT);
    enum nem_call call = form < PATIENT           ? NEM_LOCK
                         : form < PATIENT + TIMED ? NEM_TIMEDLOCK
                                                  : NEM_TRYLOCK;
    /* deadlines about as long as a wait, so that some of them come first */
    uint64_t wait_us = chance(man, PERCENT / 2)
                           ? draw(man, 20000)
                           : draw(man, (uint64_t)crew.lease_ms * 1500);
    long lease_ms = chance(man, FIXED)
                        ? crew.lease_ms / 2 + (long)draw(man, (uint64_t)crew.lease_ms)
                        : 0;
    if (reading)
        call = (enum nem_call)(call + NEM_RDLOCK - NEM_LOCK);
    int rc = take(man, call, target, wait_us, lease_ms);
    if (rc == EOWNERDEAD)
        call_held(man, NEM_CONSISTENT, target, 0);
    if (rc == 0 || rc == EOWNERDEAD)
        inside(man, target, reading, lease_ms);
    pause_us(draw(man, crew.think_us));
}

/* ---- rounds */

static void *run(void *arg)
{
    struct man *man = arg;
    unsigned long round = 0;

    for (;;) {
        pthread_mutex_lock(&crew.mutex);
        while (crew.round == round && !crew.end)
            pthread_cond_wait(&crew.changed, &crew.mutex);
        bool end = crew.round == round;
        round = crew.round;
        pthread_mutex_unlock(&crew.mutex);
        if (end)
            return NULL;
        char number[16];
        snprintf(number, sizeof(number), "%u", man->number);
        nem_own_begin();
        man->fd = nem_own_raised(open_log(number));
        nem_own_end();
        log_simple(man, NEM_STARTED);
        while (!atomic_load(&crew.rest))
            work_once(man);
        log_simple(man, NEM_DONE);
        nem_own_close(man->fd);
        pthread_mutex_lock(&crew.mutex);
        crew.resting++;
        pthread_cond_broadcast(&crew.changed);
        pthread_mutex_unlock(&crew.mutex);
    }
}

static void begin_round(const char *dir)
{
    pthread_mutex_lock(&crew.mutex);
    snprintf(crew.dir, sizeof(crew.dir), "%s", dir);
    int fd = open_log("events");
    int events_fd = atomic_load(&crew.events_fd);
    if (events_fd < 0) {
        atomic_store(&crew.events_fd, fd);
        nem_own(fd);
    } else { /* otherwise keep the number, to which a callback may be writing */
        if (dup3(fd, events_fd, O_CLOEXEC) < 0)
            abort();
        close(fd);
    }
    if (nem_pulse_fd() >= 0)
        nem_disown(nem_pulse_fd());
    nem_pulse_into(crew.dir);
    nem_own(nem_pulse_fd());
    nem_sacrifice_begin();
    atomic_store(&crew.rest, false);
    crew.resting = 0;
    crew.round++;
    pthread_cond_broadcast(&crew.changed);
    pthread_mutex_unlock(&crew.mutex);
}

static void wait_for_rest(void)
{
    atomic_store(&crew.rest, true);
    nem_sacrifice_rest();
    pthread_mutex_lock(&crew.mutex);
    while (crew.round > 0 && crew.resting < crew.threads)
        pthread_cond_wait(&crew.changed, &crew.mutex);
    pthread_mutex_unlock(&crew.mutex);
}

/* ---- killing itself */

static bool wants(unsigned at, enum nem_kind kind, unsigned type)
{
    unsigned lock = at & 0xffff;
    enum at state = (enum at)(at >> 16);
    return nem_type_of(lock) == type &&
           (kind == NEM_KILL_INSIDE ? state == INSIDE
            : kind == NEM_KILL_KEPT ? state == LEFT && nem_retains(lock)
                                    : state == ASKING);
}

/* A retained lock that the kill waits for is one that a thread has left, and that no
 * other thread of this process uses or requests. */
static bool is_as_wanted(unsigned man, enum nem_kind kind, unsigned type)
{
    unsigned at = atomic_load(&crew.men[man].at);
    if (!wants(at, kind, type))
        return false;
    for (unsigned i = 0; kind == NEM_KILL_KEPT && i < crew.threads; i++) {
        unsigned other = atomic_load(&crew.men[i].at);
        if (i != man && (other & 0xffff) == (at & 0xffff) && other >> 16 != LEFT)
            return false;
    }
    return true;
}

/* If it takes too long, the driver kills this process. */
__attribute__((noreturn)) static void fall(enum nem_kind kind, unsigned type)
{
    enum { LOOK_US = 50 };
    for (;; pause_us(LOOK_US))
        for (unsigned i = 0; i < crew.threads; i++)
            if (is_as_wanted(i, kind, type))
                kill(getpid(), SIGKILL);
}

static void tell_that_it_works(void)
{
    struct nem_op op = { 0 };
    nem_target_client(crew.client, &op);
    fprintf(nem_lines_out(), "working %s\n", op.id);
}

static void obey(void)
{
    char line[LINE];
    unsigned kind, type;

    while (fgets(line, sizeof(line), nem_lines_in())) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "round ", 6) == 0) {
            begin_round(line + 6);
            tell_that_it_works();
        } else if (sscanf(line, "fall %u %u", &kind, &type) == 2) {
            fall((enum nem_kind)kind, type);
        } else if (sscanf(line, "close %u", &kind) == 1) {
            nem_rob(kind);
        } else if (sscanf(line, "open %u", &kind) == 1) {
            nem_rob_end(kind);
        } else if (strcmp(line, "rest") == 0) {
            wait_for_rest();
            nem_rob_rest();
            fputs("resting\n", nem_lines_out());
        } else if (strcmp(line, "look") == 0) {
            nem_usage_tell(nem_lines_out());
        } else {
            fprintf(stderr, "crewman: what is \"%s\"?\n", line);
            abort();
        }
        fflush(nem_lines_out());
    }
}

static void start(void)
{
    rlock_clientattr_t attr;
    nem_lines_open();
    nem_link_open();
    signal(SIGCHLD, SIG_IGN); /* children are not waited for */
    find_secret(getenv("RLOCK_URL"));
    rlock_setlogger(hear_line, NULL, LOG_DEBUG);
    if (rlock_clientattr_init(&attr) != 0 ||
        rlock_clientattr_seteventcallback(&attr, on_event, NULL) != 0 ||
        rlock_client_open(&crew.client, NULL, &attr) != 0) {
        fprintf(stderr, "crewman: %s\n", rlock_errmsg());
        exit(EXIT_FAILURE);
    }
    crew.guarded = nem_target_guarded(crew.client);
    nem_pulse_start((uint16_t)crew.process);
    for (unsigned i = 0; i < crew.locks; i++)
        nem_target_init(&crew.targets[i], i, crew.client);
    nem_sacrifice_start(crew.client, crew.lease_ms);
    /* before the event callback may look through them */
    pthread_mutex_lock(&crew.mutex);
    for (unsigned i = 0; i < crew.threads; i++) {
        struct man *man = &crew.men[i];
        man->number = i;
        man->random =
            (crew.seed * 1000003 + crew.process * 7919 + crew.life * 104729 + i) *
                UINT64_C(0x9e3779b97f4a7c15) |
            1;
        if (pthread_create(&man->thread, NULL, run, man) != 0)
            abort();
    }
    pthread_mutex_unlock(&crew.mutex);
}

static int finish(void)
{
    wait_for_rest();
    pthread_mutex_lock(&crew.mutex);
    crew.end = true;
    pthread_cond_broadcast(&crew.changed);
    pthread_mutex_unlock(&crew.mutex);
    for (unsigned i = 0; i < crew.threads; i++)
        pthread_join(crew.men[i].thread, NULL);
    nem_sacrifice_stop();
    for (unsigned i = 0; i < crew.locks; i++)
        nem_target_destroy(&crew.targets[i]);
    nem_pulse_stop();
    int rc = rlock_client_close(crew.client);
    if (rc != 0)
        fprintf(stderr, "crewman: close: %s\n", rlock_errmsg());
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    if (argc != ARGUMENTS)
        return EXIT_FAILURE;
    crew.process = (unsigned)strtoul(argv[1], NULL, 10);
    crew.life = (unsigned)strtoul(argv[2], NULL, 10);
    crew.threads = (unsigned)strtoul(argv[3], NULL, 10);
    crew.locks = (unsigned)strtoul(argv[4], NULL, 10);
    crew.lease_ms = strtol(argv[5], NULL, 10);
    crew.seed = strtoull(argv[6], NULL, 10);
    crew.long_percent = (unsigned)strtoul(argv[7], NULL, 10);
    crew.think_us = (unsigned)strtoul(argv[8], NULL, 10) * US_PER_MS;
    if (crew.think_us == 0 || crew.threads > THREADS_MAX || crew.locks > LOCKS_MAX ||
        crew.locks == 0)
        return EXIT_FAILURE;
    start();
    obey();
    return finish();
}
