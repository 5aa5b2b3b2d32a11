/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene for many readers and writers, on top of scene.h: processes of
 * tests/programs/rwcrowd.c around one read-write lock, their log, and functions that
 * inspect the queues of the lock. Thread: a test's main thread.
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
    long first, count; /* the numbers of its threads */
    bool dead;
};

/* The sums of what the processes print when they end. */
struct rw_totals {
    long sections, writes, torn, lost, failed;
};

struct rw_options {
    int kind;        /* RLOCK_RWLOCK_* */
    long lease;      /* of holds without a fixed one; 0: the default */
    long presence;   /* 0: so long that no slow process counts as gone */
    long section_ms; /* fixed leases; 0: 10 s */
};

extern struct rwlog *rw_log;
extern struct rw_party rw_parties[RW_PARTIES_MAX];
extern long rw_count;

/* Checked fixtures, in place of scene.h's. */
void rw_open(void);
void rw_close(void);

/* Starts a process with a thread for each job; returns when its mailbox is subscribed. */
struct rw_party *rw_start_argv(const struct rw_options *options,
                               const char *const jobs[]);
#define rw_start(options, ...) rw_start_argv((options), TEST_ARGV(__VA_ARGS__))
/* The same in the place of a killed process. */
void rw_restart_argv(struct rw_party *p, const struct rw_options *options,
                     const char *const jobs[]);
/* Sends SIGKILL; the death is in the log when this returns. */
void rw_kill(struct rw_party *p);

/* A handle of the test's own. */
void rw_init(rlock_rwlock_t *lock, rlock_client_t *client, int kind);

void rw_go(void);
/* Ends the threads without a number of rounds, then waits for all. False: a thread did
 * not end, and nothing happened for `ms`. */
bool rw_stop(struct rw_totals *ret_totals, long ms);
/* Waits for the end of all live processes. False: as there. */
bool rw_join(struct rw_totals *ret_totals, long ms);

/* Records the waiters of this instant. */
void rw_look(struct rwhistory *h);

/* Waits until so many writers (one for each process) and readers (one for each process or
 * fixed lease) wait. */
bool rw_wait_queued(long writers, long readers, long ms);
/* Waits until so many readers of the counted kinds are inside. */
bool rw_wait_inside(long n, long ms);
/* The lock has neither holder nor waiter, and each key that is left has a TTL. */
bool rw_wait_clean(long ms);

#endif
