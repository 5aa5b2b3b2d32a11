/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene for tests of the fair lock's order: a server with a clock that can be moved,
 * processes of tests/programs/crowd.c that request the lock "N" upon a command, a handle
 * of the test itself, and functions that inspect the queue. Thread: a test's main thread.
 */
#ifndef TEST_GATHERING_H
#define TEST_GATHERING_H

#include "clock.h"
#include "program.h"
#include "redis.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATHER_UUID_SIZE = 37, GATHER_ID_SIZE = 128, GATHER_SOON_MS = 20000 };

#define GATHER_LOCK "N"
#define GATHER_QUEUE "rlock:{N}:queue"
#define GATHER_TOKEN "redisson_lock_token:{N}"

extern struct test_redis *gather_redis;
extern struct test_clock gather_clock; /* the server's */
extern rlock_fair_t gather_lock;       /* the test's own handle, with fencing */

/* Fixtures: unchecked; checked. */
void gather_start(void);
void gather_stop(void);
void gather_open(void);
void gather_close(void);

/* `count`, or `few` (which it prints) where sanitizers make each process slow and big. */
long gather_scaled(long count, long few, const char *of_what);

/* ---- processes */

struct member {
    struct test_program program;
    pid_t pid; /* also after its end */
    char uuid[GATHER_UUID_SIZE];
    bool dead;
};

/* Starts a process; returns when its mailbox is subscribed. `parameters` are those of its
 * URL, for instance "?lease=1000". */
void member_start(struct member *p, const char *parameters);
/* Sends SIGKILL; returns when the server has noticed the end. */
void member_kill(struct member *p);
/* Ends the process. */
void member_end(struct member *p);
/* Sends a command. The number after "ok", or 0; aborts when the command fails. */
__attribute__((format(printf, 2, 3))) long member_tell(struct member *p,
                                                       const char *format, ...);
/* Whether an id at the server belongs to this process. */
bool member_has(const struct member *p, const char *id);

/* ---- requests one after the other */

struct place {
    char id[GATHER_ID_SIZE];
    long long ticket;
};

/* Makes a thread request the lock, and waits until its ticket is the last in the queue.
 * False: the thread gave up before its ticket was seen. */
bool member_asks(struct member *p, long thread, long wait_ms, long hold_us,
                 struct place *ret_place);

/* ---- the log of the processes */

struct event {
    long long ns; /* CLOCK_BOOTTIME */
    long pid, thread;
    char what[8]; /* "asks", "got", "gives", "gave", "fails" */
    uint64_t number;
};

/* The next entry, in the order in which all processes wrote; false: none yet. */
bool gather_event(struct event *ret_event);

/* ---- the data at the server */

long gather_queued(void);
bool gather_wait_queued(long n, long ms);
/* The whole queue in its order; free it with free(). */
struct place *gather_queue(size_t *ret_count);
/* The id and the token of the holder; false: the lock is free. */
bool gather_holder(char id[GATHER_ID_SIZE], uint64_t *ret_token);
/* The newest token of the lock. */
uint64_t gather_last_token(void);
/* Aborts unless the queue is empty and every key except tokens has a TTL. */
void gather_expect_tidy(void);
/* The number of EVALSHA and EVAL that the server has executed. */
long long gather_scripts_run(void);

#endif
