/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of bench/failover share. One thread runs all of it:
 *   failover.c          the failovers, one after the other, and the table
 *   failover_servers.c  a master, two replicas and three sentinels, and what befalls them
 *   failover_watch.c    what the sentinels, the servers and the contenders say meanwhile
 *   failover_locks.c    the locks of a contender, and the figures of a failover
 */
#ifndef BENCH_FAILOVER_H
#define BENCH_FAILOVER_H

#include "program.h"
#include "server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DATA = 3, SENTINELS = 3, WORKERS = 4, CONTENDERS_MAX = 8, WORD_MAX = 160 };

/* ---- the servers */

enum fault { FAULT_KILL, FAULT_STOP, FAULT_COMMAND, FAULTS };

extern struct test_server data[DATA], sentinels[SENTINELS];

void servers_start(void);
void servers_stop(void);
/* The master by the first sentinel's word; -1: none of them. */
int servers_master(void);
/* Whether that server is the master by all sentinels, and the others follow it. */
bool servers_follow(int master);
/* Makes them follow it, which the sentinels have not done by themselves. */
void servers_lead(int master);
/* Waits until both replicas have all that the master has written so far. */
void servers_copied(int master);
/* Returns when it happened. The sentinel of that number gets the command. */
int64_t servers_fail(enum fault fault, int master, int sentinel);
/* The fault is over: the stopped master continues, the killed one starts as a replica of
 * the new one. */
void servers_mend(enum fault fault, int old, int master);
/* The name of the one field of a key, in `ret_field`. False: there is no such key. */
bool servers_field(int server, const char *key, char *ret_field, size_t size);

/* ---- the locks of a contender */

struct taken {
    int64_t sent, granted, ended; /* ended: unlock() returned, or failed */
    uint32_t worker, number;
};

struct contender {
    const char *name;
    struct test_program program;
    char buf[16384];
    size_t len;
    /* of this failover */
    struct taken *taken;
    size_t taken_count, taken_room;
    long lock_errors, unlock_errors;
    char error[WORD_MAX]; /* the first of them */
    bool answered;
    char answer[WORD_MAX];
    /* For each worker and number of a lock the servers that had its key, as bits. */
    uint8_t *seen[WORKERS];
    size_t seen_room[WORKERS];
    /* the long hold */
    unsigned hold;
    char hold_field[WORD_MAX];
};

/* Takes a line that a contender wrote. */
void locks_line(struct contender *c, const char *line);
/* That server has the key of a lock. */
void locks_seen(struct contender *c, unsigned worker, unsigned number, int server);
void locks_forget(struct contender *c);
/* The first lock() that returned at `since` or later, of those whose key that server had.
 * 0: none did. */
int64_t locks_first(const struct contender *c, int64_t since, int server);
/* How many locks were given, and not given back before `fault`, whose keys that server
 * never had. In *ret_after those of them that were given after `switched`. */
long locks_lost(const struct contender *c, int64_t fault, int64_t switched, int server,
                long *ret_after);

/* ---- what is watched */

extern struct contender contenders[CONTENDERS_MAX];
extern int contender_count;

struct watch_switch {
    int64_t at; /* 0: none yet */
    unsigned port;
};
/* The first +switch-master since watch_forget. */
extern struct watch_switch watch_switch;

/* Starts a contender: "name: command", a command of the shell without the arguments that
 * all of them get (failover.c). */
void watch_contender(const char *spec);
/* Connects to the sentinels, and to the servers that it is not connected to. */
void watch_connect(void);
/* Forgets what was before this failover. */
void watch_forget(void);
/* Takes what comes until the condition is true. False: it is not, after that time. */
bool watch_until(bool (*condition)(void *arg), void *arg, long ms);
void watch_for(long ms);
/* Sends a command to a contender and returns its answer. */
const char *watch_ask(struct contender *c, const char *command);
void watch_end(void);
/* From now on SIGTERM and SIGINT end the program in an orderly way. */
void watch_signals(void);

#endif
