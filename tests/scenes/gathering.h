/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of order share: a server whose clock can be moved, processes of
 * tests/programs/crowd.c that ask for the lock "N" when they are told, the lock held by
 * the test itself, and looks at the queue. Thread: a test's main thread.
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

/* Fewer where sanitizers make each process slow and big, and says so. */
long gather_scaled(long count, long few, const char *of_what);

/* ---- processes */

struct party {
    struct test_program program;
    pid_t pid; /* stays when it is dead */
    char uuid[GATHER_UUID_SIZE];
    bool dead;
};

/* Starts it; returns when its mailbox is listened to. `parameters`: of its URL, as
 * "?lease=1000". */
void party_start(struct party *p, const char *parameters);
/* SIGKILL; returns when the server has seen it. */
void party_kill(struct party *p);
/* Kills it if need be. */
void party_end(struct party *p);
/* Sends a command; the number behind "ok", or 0. Aborts when it fails. */
__attribute__((format(printf, 2, 3))) long party_tell(struct party *p, const char *format,
                                                      ...);
/* Whether the id at the server is one of this process. */
bool party_has(const struct party *p, const char *id);

/* ---- asking one after the other */

struct place {
    char id[GATHER_ID_SIZE];
    long long ticket;
};

/* Has a thread ask for the lock, and waits until its request is seen behind all others.
 * False: it gave up before anybody saw it. */
bool party_asks(struct party *p, long thread, long wait_ms, long hold_us,
                struct place *ret_place);

/* ---- what the processes say */

struct event {
    long long ns; /* CLOCK_BOOTTIME */
    long pid, thread;
    char what[8]; /* "asks", "got", "gives", "gave", "fails" */
    uint64_t number;
};

/* The next one, in the order of writing over all processes; false: none yet. */
bool gather_event(struct event *ret_event);

/* ---- what the server holds */

long gather_queued(void);
bool gather_wait_queued(long n, long ms);
/* The whole queue in its order; freed with free(). */
struct place *gather_queue(size_t *ret_count);
/* The holder's id and token; false: there is none. */
bool gather_holder(char id[GATHER_ID_SIZE], uint64_t *ret_token);
/* The newest token of the lock. */
uint64_t gather_last_token(void);
/* Aborts unless nothing is queued and every key but tokens has a TTL. */
void gather_expect_tidy(void);
/* EVALSHA and EVAL that the server has executed. */
long long gather_scripts_run(void);

#endif
