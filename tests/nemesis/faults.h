/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries a schedule out: on the workers, on each worker's link to the server (a proxy of
 * its own, see helpers/proxy.h), on the server. Thread: one at a time.
 *
 * Where the machine permits it (root, and ip(8)), nem_faults_start moves the calling
 * thread into a network namespace of its own, and the proxies listen in another, behind a
 * pair of interfaces for each process: so the workers are to be started by that thread,
 * or by one that it has started since. Unix sockets are not affected, and nothing is left
 * of it when these processes have ended, however they did.
 *
 * Windows: that of a stop, of a freeze and the like ends when it has been taken back; of
 * a delay or a drip, when the last late message has passed; of a link that was down, when
 * TCP has had time to retry; of a restart, when the server has loaded what it kept; of
 * TERM, when the next life has begun. A step of the clock is not taken back, and done at
 * once (took_us), however long its window. What happens
 * at once (FLUSHALL, a deletion, a cut) ends at once: what a holder goes on believing
 * after it is not part of the window.
 *
 * A deletion waits for its key, as long as its step's length allows; `what` is "" when it
 * never came. EVICT writes a record for each key, with its lock; with the lock NEM_ALL:
 * nothing was evicted. FLUSHALL and SERVER_EMPTY wait until the server's clock, if it was
 * stepped back, has caught up with what it has shown before, and with the tokens that
 * were counted on meanwhile: tokens begin at that time.
 */
#ifndef NEM_FAULTS_H
#define NEM_FAULTS_H

#include "schedule.h"

#include "clock.h"
#include "proxy.h"
#include "server.h"

/* What the driver's workers must be able to do. */
struct nem_workers {
    void *arg;
    void (*kill)(void *arg, unsigned process);    /* SIGKILL; returns when it is gone */
    void (*restart)(void *arg, unsigned process); /* its next life */
    void (*stop)(void *arg, unsigned process);    /* SIGSTOP */
    void (*cont)(void *arg, unsigned process);
    void (*term)(void *arg, unsigned process); /* to end in good order; returns at once */
    bool (*gone)(void *arg, unsigned process); /* and whether it has */
    /* It kills itself as soon as it is as a kind of enum nem_kind wants it, with a lock
     * of a type; returns at once. NULL: it cannot. */
    void (*fall)(void *arg, unsigned process, enum nem_kind kind, enum nem_type type);
    bool (*fallen)(void *arg, unsigned process); /* and whether it has */
    /* It closes its 0 to 2 (`what`: that of the kind's amounts), or opens something
     * there; return at once. NULL: it cannot. */
    void (*close_low)(void *arg, unsigned process, unsigned what);
    void (*open_low)(void *arg, unsigned process, unsigned what);
    /* What each request that is about the process's client contains; NULL: not known. */
    const char *(*client)(void *arg, unsigned process);
};

struct nem_faults;

/* The users of strangers at the server, without a password: who may do nothing but
 * publish to mailboxes; who may read the locks' keys and publish; who may do what he
 * likes with the keys of the locks that are sacrificed. */
#define NEM_FORGING_USER "nemesis-forging"
#define NEM_READING_USER "nemesis-reading"
#define NEM_HOSTILE_USER "nemesis-hostile"

/* The workers' user at the server; its password is drawn anew by nem_faults_start, so
 * that what is found of it is found by no chance. */
#define NEM_USER "nemesis"
enum { NEM_PASSWORD_LEN = 24 };

/* Starts server (append-only, in its own directory, archived as <dir>/aof.<epoch> when
 * SERVER_EMPTY restarts it without, and at the end), clock shim, and a proxy for each
 * process. `dir` must exist. server_args (NULL: none): more options of the server. Aborts
 * on failure. */
struct nem_faults *nem_faults_start(const char *dir, unsigned processes,
                                    const char *const server_args[]);
/* Archives the last epoch as well. */
void nem_faults_stop(struct nem_faults *f);

/* Between two rounds, while no plan runs: archive moves what the server has written to
 * <dir>/aof.<epoch>, and starts it anew and empty; turn has everything that follows
 * written into another directory, from epoch 0 on. */
void nem_faults_archive(struct nem_faults *f);
void nem_faults_turn(struct nem_faults *f, const char *dir);

struct test_server *nem_faults_server(struct nem_faults *f);
/* Where the process is to connect to: "redis://<host>:<port>", over TCP. */
const char *nem_faults_url(struct nem_faults *f, unsigned process);
/* Of NEM_USER. Who connects without it may do all, too. */
const char *nem_faults_password(const struct nem_faults *f);
/* What is in the server, to stderr: for who finds that something does not go on. */
void nem_faults_tell_keys(struct nem_faults *f);
/* Whether the machine lets a kind happen (link-down wants network namespaces). */
bool nem_faults_possible(struct nem_faults *f, enum nem_kind kind);

/* After gone_ms (50 s) a process that was told to end is killed, and its step's record
 * gets the amount 1; after stuck_ms (60 s) a step that does not end aborts, with what is
 * in the server. */
void nem_faults_bounds(struct nem_faults *f, long gone_ms, long stuck_ms);

/* Runs a plan from now on (workers: NULL where it has no faults of processes); returns
 * when all its faults have ended and been written to <dir>/faults, and everything runs
 * and is connected again. */
void nem_faults_run(struct nem_faults *f, const struct nem_plan *plan,
                    const struct nem_workers *workers);

#endif
