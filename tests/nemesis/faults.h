/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out a schedule of faults of the workers, of each worker's link to the server
 * (its own proxy, see helpers/proxy.h), and of the server. Thread: one at a time.
 *
 * Where the machine permits it (root, and ip(8)), nem_faults_start moves the calling
 * thread into a network namespace of its own, and the proxies listen in another, behind a
 * pair of interfaces for each process: so that thread, or one that it has started since,
 * must start the workers. Unix sockets are not affected. The namespaces vanish when these
 * processes have ended, in whatever way.
 *
 * Windows: the window of a stop, a freeze and the like ends when the fault has been
 * undone; of a delay or a drip, when the last late message has passed; of a link that was
 * down, when TCP has had time to retry; of a restart, when the server has loaded its
 * data; of TERM, when the next life has begun. A step of the clock is not undone, and is
 * done at once (took_us), however long its window is. A fault that happens at once
 * (FLUSHALL, a deletion, a cut) ends at once: the belief of a holder afterwards is not
 * part of the window.
 *
 * A deletion waits for its key, as long as its step's length allows; `what` is "" when
 * the key never appeared. EVICT writes a record for each key, with its lock; with the
 * lock NEM_ALL: nothing was evicted. FLUSHALL and SERVER_EMPTY wait until the server's
 * clock, if it was stepped back, has caught up with what it has shown before, and with
 * the tokens that were drawn meanwhile: new tokens begin at the clock's time.
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
    void (*restart)(void *arg, unsigned process); /* starts its next life */
    void (*stop)(void *arg, unsigned process);    /* SIGSTOP */
    void (*cont)(void *arg, unsigned process);
    void (*term)(void *arg, unsigned process); /* asks it to end in good order; returns at
                                                  once */
    bool (*gone)(void *arg, unsigned process); /* whether it has ended */
    /* Asks it to kill itself as soon as it is in the state that a kind of enum nem_kind
     * requires, with a lock of this type. Returns at once. NULL: it cannot. */
    void (*fall)(void *arg, unsigned process, enum nem_kind kind, enum nem_type type);
    bool (*fallen)(void *arg, unsigned process); /* whether it has killed itself */
    /* Ask it to close its descriptors 0 to 2 (`what`: as the kind's amounts), or to open
     * other files there. Return at once. NULL: it cannot. */
    void (*close_low)(void *arg, unsigned process, unsigned what);
    void (*open_low)(void *arg, unsigned process, unsigned what);
    /* A text that all requests about the process's client contain; NULL: unknown. */
    const char *(*client)(void *arg, unsigned process);
};

struct nem_faults;

/* The users of strangers at the server, without a password: one that may only publish to
 * mailboxes; one that may read the locks' keys and publish; one with all rights on the
 * keys of the sacrificed locks. */
#define NEM_FORGING_USER "nemesis-forging"
#define NEM_READING_USER "nemesis-reading"
#define NEM_HOSTILE_USER "nemesis-hostile"

/* The workers' user at the server. nem_faults_start draws its password at random, so that
 * no text contains a part of it by chance. */
#define NEM_USER "nemesis"
enum { NEM_PASSWORD_LEN = 24 };

/* How all workers name the servers; the text of NEMESIS_LINK (link.h). */
enum { NEM_URL_MAX = 512, NEM_LINK_MAX = 256 };
/* A node of a cluster that does not answer for so long (test_ms) is replaced. */
enum { NEM_NODE_TIMEOUT_MS = 2000, NEM_MASTERS_MAX = 3 };

/* Starts the server, the clock shim, and a proxy for each process. The server is
 * append-only, in its own directory, which is archived as <dir>/aof.<epoch> when
 * SERVER_EMPTY restarts it without data, and at the end. `dir` must exist. server_args
 * (NULL: none): more options of the server. Aborts on failure. */
struct nem_faults *nem_faults_start(const char *dir, unsigned processes,
                                    const char *const server_args[]);
/* The same with other servers. With TLS the links carry what the proxies cannot read.
 * Sentinel and replicas: nothing is append-only, there are no links, and the server is
 * the present master. Cluster: a process has a link to each node, and the server is the
 * master of the shard that the last fault has affected. */
struct nem_faults *nem_faults_start_servers(const char *dir, unsigned processes,
                                            enum nem_servers servers,
                                            const char *const server_args[]);
/* Also archives the last epoch. */
void nem_faults_stop(struct nem_faults *f);

/* Between two rounds, while no plan runs: archive moves the server's files to
 * <dir>/aof.<epoch>, and starts it again with no data (of several servers, it waits until
 * all follow the master, and their data stays); turn redirects all that follows to
 * another directory, from epoch 0 on. */
void nem_faults_archive(struct nem_faults *f);
void nem_faults_turn(struct nem_faults *f, const char *dir);

struct test_server *nem_faults_server(struct nem_faults *f);
/* All servers that have locks. Returns how many. */
unsigned nem_faults_masters(struct nem_faults *f,
                            struct test_server *ret_masters[NEM_MASTERS_MAX]);
/* The address for the process: "redis://<host>:<port>", over TCP. "": it has no link, or
 * several. */
const char *nem_faults_url(struct nem_faults *f, unsigned process);
/* What link.h has to know to use the process's links. */
void nem_faults_link(struct nem_faults *f, unsigned process, char text[NEM_LINK_MAX]);
/* The URL that all workers use, with the user and its password, and with "?" or "&" at
 * the end for more parameters. With links, no such host exists: each worker's connections
 * go to its own link. */
void nem_faults_workers_url(const struct nem_faults *f, char url[NEM_URL_MAX]);
/* The password of NEM_USER. A client without it may do all, too. */
const char *nem_faults_password(const struct nem_faults *f);
/* Prints the server's data to stderr, for a caller that finds no progress. */
void nem_faults_tell_keys(struct nem_faults *f);
/* Whether a kind can happen: with these servers, and on this machine (link-down needs
 * network namespaces). */
bool nem_faults_possible(struct nem_faults *f, enum nem_kind kind);

/* A process that was asked to end is killed after gone_ms (50 s), and the record of its
 * step gets the amount 1. A step that does not end within stuck_ms (60 s) aborts the
 * program, and prints the server's data. */
void nem_faults_bounds(struct nem_faults *f, long gone_ms, long stuck_ms);

/* Runs a plan from now on (workers: NULL if it has no faults of processes). Returns when
 * all its faults have ended and are in <dir>/faults, and everything runs and is connected
 * again. */
void nem_faults_run(struct nem_faults *f, const struct nem_plan *plan,
                    const struct nem_workers *workers);

#endif
