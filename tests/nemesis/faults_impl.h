/* SPDX-License-Identifier: Apache-2.0 */
/* What faults.c and the files of its kinds share. Everything is of the thread that calls
 * nem_faults_run, which never blocks for longer than a request takes. */
#ifndef NEM_FAULTS_IMPL_H
#define NEM_FAULTS_IMPL_H

#include "faults.h"

#include "program.h"
#include "redis.h"

#include <limits.h>

enum { NEM_RULES_EACH = 2 };
#define NEM_NS_PER_MS INT64_C(1000000)

/* Two network namespaces with a veth pair for each process between them: `near` is the
 * driver's, its server's and its workers', in `far` the proxies listen. */
struct nem_net {
    bool on;
    int home, near, far;           /* the namespaces; `home` is whence we came */
    int near_control, far_control; /* sockets for ioctl */
};

struct nem_faults {
    char dir[PATH_MAX];
    unsigned processes;
    struct test_server server;
    struct test_clock clock;
    struct nem_net net;
    struct test_proxy **proxies; /* of each process */
    const struct nem_workers *workers;
    struct nem_active *active; /* due, by begin_ms */
    unsigned epoch;
    char password[NEM_PASSWORD_LEN + 1];
    long gone_ms;      /* within which a process ends that was told to */
    long stuck_ms;     /* within which a step ends when its time is over */
    int64_t offset_ms; /* of the server's clock */
    int64_t peak_ms;   /* the latest time that it has shown */
    int log;           /* the file `faults` */
};

/* A step that is due, until it has ended. */
struct nem_active {
    struct nem_active *next;
    const struct nem_step *step;
    struct nem_fault record;
    bool begun, ending;
    int64_t end_at; /* when it is to end */
    /* the kind's own */
    unsigned stage;
    int64_t until;
    uint16_t also; /* another process that it has met; NEM_ALL: none */
    struct nem_fault also_record;
    int *rules;            /* NEM_RULES_EACH of each process, 0: none */
    unsigned *connections; /* of each process, 0: all of its link */
    struct test_redis *redis, *messages;
    struct test_program stranger;
};

/* How a kind is done. Only `begin` must be there. */
struct nem_action {
    /* whether it may begin */
    bool (*ready)(struct nem_faults *f);
    void (*begin)(struct nem_faults *f, struct nem_active *a);
    /* again and again while it lasts; true: it has done what it was to do */
    bool (*during)(struct nem_faults *f, struct nem_active *a);
    /* from its end on, until nothing is left of it: true */
    bool (*end)(struct nem_faults *f, struct nem_active *a);
};

/* By kind; zero where a kind is another file's. */
extern const struct nem_action nem_process_actions[NEM_KINDS];
extern const struct nem_action nem_link_actions[NEM_KINDS];
extern const struct nem_action nem_stranger_actions[NEM_KINDS];
extern const struct nem_action nem_server_actions[NEM_KINDS];
extern const struct nem_action nem_data_actions[NEM_KINDS];

/* CLOCK_BOOTTIME, ns. */
int64_t nem_now(void);
/* Appends to <dir>/faults. */
void nem_record(struct nem_faults *f, const struct nem_fault *record);
/* Runs argv[0], which is looked up in PATH and /sbin, with `input` (NULL: nothing) as its
 * stdin. False: it failed. */
bool nem_run_program(const char *const argv[], const char *input);

/* Whether the server's clock shows more than it ever has, and is past all tokens: these,
 * which begin at its time, then grow also when all data is lost. */
bool nem_clock_has_caught_up(struct nem_faults *f);

/* Takes the rules of its `rules` away, and counts how often they were applied. True. */
bool nem_lift(struct nem_faults *f, struct nem_active *a);

/* Moves the append-only files of the server, which does not run, to <dir>/aof.<epoch>. */
void nem_archive(struct nem_faults *f);

/* Leaves the calling thread in `near`; `on` tells whether it was permitted. */
void nem_net_open(struct nem_net *net, unsigned processes);
void nem_net_close(struct nem_net *net);
/* The calling thread's namespace. */
void nem_net_enter(const struct nem_net *net, int ns);
/* The address in `far` of a process's pair. */
void nem_net_address(char *text, size_t size, unsigned process);
/* Either end of a process's pair. */
void nem_net_set(const struct nem_net *net, unsigned process, bool near_end, bool up);

#endif
