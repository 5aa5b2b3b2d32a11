/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process of the nemesis: threads that use the nemesis's locks all the time, with all
 * calls, and record each call, its result, and their belief about the hold.
 *
 *   RLOCK_URL=... crewman PROCESS LIFE THREADS LOCKS LEASE_MS SEED LONG_PERCENT THINK_MS
 *       BUFFERS
 *
 * Two threads more for each of the BUFFERS wait for conditions (trade.h). One more thread
 * uses locks that the judge does not judge (sacrifice.h). The lines are
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
#include "man.h"
#include "pulse.h"
#include "robbery.h"
#include "sacrifice.h"
#include "secret.h"
#include "target.h"
#include "trade.h"
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
    ARGUMENTS = 10,
    LOCKS_MAX = NEM_LOCKS_MAX,
    THREADS_MAX = 64,
    MEN_MAX = THREADS_MAX + 2 * NEM_BUFFERS_MAX,
    LINE = 4096
};
enum { US_PER_MS = 1000, NS_PER_S = 1000000000 };
/* of 100 calls */
enum { READS = 65, PATIENT = 45, TIMED = 30, FIXED = 12, TWICE = 12 };
enum { HOT = 75, HOT_LOCKS = 3 };
enum { DOWNGRADES = 25, EXTENDS = 6, MEDIUM = 10, BURSTS = 10, BURST = 12 };
enum { MEDIUM_US = 30000 };
enum { CHILDREN = 250, CHILD_S = 2 }; /* one in this many units of work leaves a child */

#define HOT_NS (UINT64_C(3) * NS_PER_S)

static struct {
    rlock_client_t *client;
    unsigned process, life, threads, locks, long_percent, think_us, buffers;
    unsigned man_count; /* threads, then traders */
    long lease_ms;
    uint64_t seed;
    bool guarded;
    struct nem_target targets[LOCKS_MAX];
    struct nem_man men[MEN_MAX];
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

/* ---- records */

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

/* The record has the client's uuid: so the judge also knows a process that never gets a
 * lock. */
static void log_simple(struct nem_man *man, enum nem_what what)
{
    struct nem_op op = nem_man_op(man, what, NEM_NO_CALL, NULL);
    nem_target_client(crew.client, &op);
    if (what == NEM_STARTED)
        op.code = crew.guarded;
    op.at = nem_man_now();
    nem_man_write(man->fd, &op);
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
    struct nem_op op = { .at = nem_man_now(),
                         .process = (uint16_t)crew.process,
                         .life = (uint16_t)crew.life,
                         .thread = NEM_EVENTS_THREAD,
                         .lock = NEM_ALL,
                         .what = NEM_CUT_OFF,
                         .code = code,
                         .pid = (uint32_t)getpid() };
    nem_man_write(fd, &op);
}

/* No event reports that the watchdog's connection has ended: only the log does. */
static void hear_line(int level, const char *line, void *arg)
{
    static const char watchdog[] = "rlock: watchdog connection replaced: ";
    (void)level;
    (void)arg;
    nem_secret_hear("the log", line);
    if (strncmp(line, watchdog, sizeof(watchdog) - 1) == 0)
        log_cut_off(1, line);
}

static bool is_of(struct nem_man *man, pthread_t thread)
{
    return pthread_equal(man->thread, thread) ||
           pthread_equal(atomic_load(&man->helper), thread);
}

/* The library calls it on one thread of its own. */
static void on_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    unsigned lock = 0;
    nem_secret_hear("an event", event->reason);
    int fd = atomic_load(&crew.events_fd);
    if (event->kind == RLOCK_EVENT_DISCONNECTED)
        log_cut_off(0, event->reason);
    if (fd < 0 || sscanf(event->name, "nemesis%u", &lock) != 1)
        return;
    struct nem_op op = { .at = nem_man_now(),
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
    for (unsigned i = 0; event->kind == RLOCK_EVENT_LOST && i < crew.man_count; i++)
        if (is_of(&crew.men[i], event->thread))
            op.levels = (uint8_t)i;
    nem_man_write(fd, &op);
}

/* ---- the work of a thread */

static void inside(struct nem_man *man, struct nem_target *target, bool reading,
                   long lease_ms)
{
    uint64_t lease_us = (uint64_t)crew.lease_ms * 1000;
    uint64_t us = nem_man_chance(man, crew.long_percent)
                      ? lease_us / 4 + nem_man_draw(man, lease_us * 5 / 4)
                  : nem_man_chance(man, MEDIUM) ? nem_man_draw(man, MEDIUM_US)
                                                : nem_man_draw(man, NEM_STAY_US);

    nem_man_stay(man, target, us);
    if (nem_man_chance(man, TWICE))
        nem_man_take(man, reading ? NEM_RDLOCK : NEM_LOCK, target, 0, 0);
    if (target->type == NEM_RWLOCK && !reading && nem_man_chance(man, DOWNGRADES)) {
        nem_man_do(man, NEM_DOWNGRADE, target, 0);
        nem_man_stay(man, target, nem_man_draw(man, NEM_STAY_US));
    } else if (nem_man_chance(man, EXTENDS)) {
        nem_man_do(man, NEM_EXTEND, target, lease_ms ? 0 : crew.lease_ms);
        nem_man_stay(man, target, nem_man_draw(man, NEM_STAY_US));
    }
    nem_man_leave_all(man, target);
}

/* For a few seconds most threads of all processes want the same three locks, then three
 * others, so that there are queues. */
static struct nem_target *choose(struct nem_man *man)
{
    if (crew.locks < 2 * HOT_LOCKS || !nem_man_chance(man, HOT))
        return &crew.targets[nem_man_draw(man, crew.locks)];
    uint64_t trio = (uint64_t)nem_man_now() / HOT_NS % (crew.locks / HOT_LOCKS);
    return &crew.targets[trio * HOT_LOCKS + nem_man_draw(man, HOT_LOCKS)];
}

/* Short sections one after the other: if other threads of the process do the same, they
 * pass the lock on among themselves. */
static void burst(struct nem_man *man, struct nem_target *target)
{
    for (int i = 0; i < BURST; i++) {
        int rc = nem_man_take(man, i % 4 == 3 ? NEM_TRYLOCK : NEM_LOCK, target, 0, 0);
        if (rc == EOWNERDEAD)
            nem_man_do(man, NEM_CONSISTENT, target, 0);
        if (rc == 0 || rc == EOWNERDEAD)
            nem_man_look(man, target);
        nem_man_leave_all(man, target);
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

static void work_once(struct nem_man *man)
{
    if (crew.guarded && nem_man_draw(man, CHILDREN) == 0)
        leave_child();
    struct nem_target *target = choose(man);
    if (target->type == NEM_MUTEX && nem_man_chance(man, BURSTS)) {
        burst(man, target);
        return;
    }
    bool reading = target->type == NEM_RWLOCK && nem_man_chance(man, READS);
    uint64_t form = nem_man_draw(man, NEM_PERCENT);
    enum nem_call call = form < PATIENT           ? NEM_LOCK
                         : form < PATIENT + TIMED ? NEM_TIMEDLOCK
                                                  : NEM_TRYLOCK;
    /* deadlines about as long as a wait, so that some of them come first */
    uint64_t wait_us = nem_man_chance(man, NEM_PERCENT / 2)
                           ? nem_man_draw(man, 20000)
                           : nem_man_draw(man, (uint64_t)crew.lease_ms * 1500);
    long lease_ms =
        nem_man_chance(man, FIXED)
            ? crew.lease_ms / 2 + (long)nem_man_draw(man, (uint64_t)crew.lease_ms)
            : 0;
    if (reading)
        call = (enum nem_call)(call + NEM_RDLOCK - NEM_LOCK);
    int rc = nem_man_take(man, call, target, wait_us, lease_ms);
    if (rc == EOWNERDEAD)
        nem_man_do(man, NEM_CONSISTENT, target, 0);
    if (rc == 0 || rc == EOWNERDEAD)
        inside(man, target, reading, lease_ms);
    nem_man_pause_us(nem_man_draw(man, crew.think_us));
}

/* ---- rounds */

/* Until the process is to rest. The first thread wakes the traders then. */
static void work(struct nem_man *man)
{
    unsigned trader = man->number - crew.threads;
    bool trades = man->number >= crew.threads;
    if (trades)
        nem_trade_open(man, trader);
    while (!atomic_load(&crew.rest))
        if (trades)
            nem_trade_once(man, trader, &crew.rest);
        else
            work_once(man);
    if (man->number == 0)
        nem_trade_end(man);
}

static void *run(void *arg)
{
    struct nem_man *man = arg;
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
        work(man);
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
    nem_trade_begin(crew.dir);
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
    while (crew.round > 0 && crew.resting < crew.man_count)
        pthread_cond_wait(&crew.changed, &crew.mutex);
    pthread_mutex_unlock(&crew.mutex);
}

/* ---- killing itself */

static bool wants(unsigned at, enum nem_kind kind, unsigned type)
{
    unsigned lock = at & 0xffff;
    enum nem_at state = (enum nem_at)(at >> 16);
    return nem_type_of(lock) == type &&
           (kind == NEM_KILL_INSIDE ? state == NEM_INSIDE
            : kind == NEM_KILL_KEPT ? state == NEM_LEFT_IT && nem_retains(lock)
                                    : state == NEM_ASKING);
}

/* A retained lock that the kill waits for is one that a thread has left, and that no
 * other thread of this process uses or requests. */
static bool is_as_wanted(unsigned man, enum nem_kind kind, unsigned type)
{
    unsigned at = atomic_load(&crew.men[man].at);
    if (!wants(at, kind, type))
        return false;
    for (unsigned i = 0; kind == NEM_KILL_KEPT && i < crew.man_count; i++) {
        unsigned other = atomic_load(&crew.men[i].at);
        if (i != man && (other & 0xffff) == (at & 0xffff) && other >> 16 != NEM_LEFT_IT)
            return false;
    }
    return true;
}

/* If it takes too long, the driver kills this process. */
__attribute__((noreturn)) static void fall(enum nem_kind kind, unsigned type)
{
    enum { LOOK_US = 50 };
    for (;; nem_man_pause_us(LOOK_US))
        for (unsigned i = 0; i < crew.man_count; i++)
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
    nem_secret_find(getenv("RLOCK_URL"));
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
    nem_trade_start(crew.targets, crew.buffers, crew.think_us, crew.client);
    /* before the event callback may look through them */
    pthread_mutex_lock(&crew.mutex);
    for (unsigned i = 0; i < crew.man_count; i++) {
        struct nem_man *man = &crew.men[i];
        man->process = crew.process;
        man->life = crew.life;
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
    for (unsigned i = 0; i < crew.man_count; i++)
        pthread_join(crew.men[i].thread, NULL);
    nem_sacrifice_stop();
    nem_trade_stop();
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
    crew.buffers = (unsigned)strtoul(argv[9], NULL, 10);
    if (crew.buffers > NEM_BUFFERS_MAX ||
        (crew.buffers > 0 && nem_buffer_room(crew.buffers - 1) >= crew.locks))
        return EXIT_FAILURE;
    crew.man_count = crew.threads + nem_traders(crew.buffers);
    if (crew.think_us == 0 || crew.threads > THREADS_MAX || crew.locks > LOCKS_MAX ||
        crew.locks == 0)
        return EXIT_FAILURE;
    start();
    obey();
    return finish();
}
