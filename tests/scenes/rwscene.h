/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of tests/programs/rwcrowd.c around one read-write lock, their log, and looks
 * at the lock's queues; on top of scene.h. Thread: a test's main thread.
 */
#ifndef TEST_RWSCENE_H
#define TEST_RWSCENE_H

#include "rwhistory.h"
#include "rwlog.h"
#include "scene.h"

enum { RW_PARTIES_MAX = 16, RW_UUID_SIZE = 37 };
#define RW_LOCK "N"

struct rw_party {
    struct test_program program;
    char uuid[RW_UUID_SIZE];
    long first, count; /* its threads' numbers */
    bool dead;
};

/* What the processes said at their end. */
struct rw_totals {
    long sections, writes, torn, lost, failed;
};

struct rw_options {
    int kind;        /* RLOCK_RWLOCK_* */
    long lease;      /* of holds without a fixed one; 0: the default */
    long presence;   /* 0: so long that nobody who is slow counts as gone */
    long section_ms; /* fixed leases; 0: 10 s */
};

extern struct rwlog *rw_log;
extern struct rw_party rw_parties[RW_PARTIES_MAX];
extern long rw_count;

/* Checked fixtures, in place of scene.h's. */
void rw_open(void);
void rw_close(void);

/* One more process, a thread for each job; it listens when this returns. */
struct rw_party *rw_start_argv(const struct rw_options *options,
                               const char *const jobs[]);
#define rw_start(options, ...) rw_start_argv((options), TEST_ARGV(__VA_ARGS__))
/* The same in the place of one that was killed. */
void rw_restart_argv(struct rw_party *p, const struct rw_options *options,
                     const char *const jobs[]);
/* SIGKILL; the log knows when this returns. */
void rw_kill(struct rw_party *p);

/* A handle of the test's own. */
void rw_init(rlock_rwlock_t *lock, rlock_client_t *client, int kind);

void rw_go(void);
/* Those without an end are done, then all; false: somebody is not, and nothing has
 * happened among them for `ms`. */
bool rw_stop(struct rw_totals *ret_totals, long ms);
/* All that live end by themselves; false: as there. */
bool rw_join(struct rw_totals *ret_totals, long ms);

/* Notes who waits now. */
void rw_look(struct rwhistory *h);

/* Until so many wait to write (one a process) and to read (one a process or fixed
 * lease). */
bool rw_wait_queued(long writers, long readers, long ms);
/* Until so many readers of the kinds that count are inside. */
bool rw_wait_inside(long n, long ms);
/* Nobody has it or waits for it, and each key of it that is left has a TTL. */
bool rw_wait_clean(long ms);

#endif
