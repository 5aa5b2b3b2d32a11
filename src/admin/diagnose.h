/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of rlock_client_diagnose: diagnose.c (the call, and what is
 * measured), diagnose_sentinel.c (the sentinels), diagnose_sentinel_acl.c (the rights
 * there), diagnose_server.c (what the server reports about itself), diagnose_kind.c
 * (whether it is Redis or Valkey at all), diagnose_acl.c (what the user may do) and
 * diagnose_cluster.c (all masters of a cluster). No other file includes this. Thread: the
 * caller's. */
#ifndef RLK_DIAGNOSE_H
#define RLK_DIAGNOSE_H

#include "client/client.h"
#include "client/masters.h"
#include "net/sentinel.h"

#include <syslog.h>

enum { RLK_CONFIG_COUNT = 15, RLK_FACT_SIZE = 160, RLK_FINDING_SIZE = 1200 };

enum { RLK_RENEWALS_PER_LEASE = 3 };

struct rlk_diagnose_notes;

struct rlk_diagnosis {
    struct rlock_client *client;
    struct rlk_target *at;            /* the master that is asked; NULL: any server */
    struct rlk_diagnose_notes *notes; /* collects the findings; NULL: they are reported */
    /* in a cluster: how many nodes' clocks were read, and how far they are from this
     * host's, us; how many masters do not answer */
    unsigned clocks;
    int64_t clock_least, clock_most;
    size_t silent;
    long uncovered; /* hash slots that no node serves, as the masters say */
    bool knows_uncovered;
    int (*each)(const rlock_finding_t *finding, void *arg);
    void *arg;
    char *info;           /* the reply to INFO; NULL: the server refused it */
    bool config_there;    /* the server did not refuse CONFIG GET */
    bool has_certificate; /* the server requested this client's certificate, and got it */
    char user[RLK_FACT_SIZE]; /* of the connections, to be shown; "": not asked yet */
    bool knows_user;          /* it is the user's name as it is */
    /* from HELLO, if INFO has no version; "": unknown */
    char hello_name[RLK_FACT_SIZE], hello_version[RLK_FACT_SIZE];
    struct {
        bool known;
        char value[RLK_FACT_SIZE];
    } config[RLK_CONFIG_COUNT];
};

/* When a request was sent, and how long it took; ns. */
struct rlk_timing {
    int64_t sent_real, took;
};

/* Reports a finding. Returns 0, or what ends the call: the callback's result, or
 * ECANCELED in a child. */
int rlk_diagnose_tell(struct rlk_diagnosis *d, int severity, const char *topic,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Runs one command; argv ends with NULL. Returns 0 with *ret_reply, which may be an
 * ERROR; else the code for the caller, with the thread's message set. ret_timing may
 * be NULL. Blocks: network, up to the command timeout. */
int rlk_diagnose_ask(struct rlk_diagnosis *d, const char *const *argv,
                     struct rlk_reply **ret_reply, struct rlk_timing *ret_timing);
/* As rlk_diagnose_ask, for a reply of that type. 0 and NULL: the server refused the
 * command or does not know it. */
int rlk_diagnose_command(struct rlk_diagnosis *d, const char *const *argv,
                         enum rlk_reply_type type, struct rlk_reply **ret_reply);

/* Loads what the server reports about itself; rlk_diagnose_forget frees it. */
int rlk_diagnose_load(struct rlk_diagnosis *d);
void rlk_diagnose_forget(struct rlk_diagnosis *d);
/* In a cluster: looks at each master by `look`, and at the cluster. */
int rlk_diagnose_cluster(struct rlk_diagnosis *d, int (*look)(struct rlk_diagnosis *));
/* What a master says of the cluster. */
int rlk_diagnose_cluster_node(struct rlk_diagnosis *d);
/* Collects a finding of a master. Returns 0 or ENOMEM. */
int rlk_diagnose_note(struct rlk_diagnosis *d, int severity, const char *topic,
                      const char *format, const char *text);
/* Notes how far a node's clock is ahead of this host's, in us. */
void rlk_diagnose_clock(struct rlk_diagnosis *d, int64_t offset_us);
/* Borrows a connection to the server that is asked, for rlk_rpc_put. */
int rlk_diagnose_borrow(struct rlk_diagnosis *d, int64_t until,
                        struct rlk_target **ret_target, struct rlk_conn **ret_conn);
/* A name of no lock, whose hash slot is at the server that is asked. */
enum { RLK_PROBE_NAME_SIZE = RLK_UUID_LEN + 13 };
void rlk_diagnose_name(const struct rlk_diagnosis *d, char buf[RLK_PROBE_NAME_SIZE]);

/* The findings from that. */
int rlk_diagnose_server(struct rlk_diagnosis *d);
/* A value of INFO. False: it has no such value, or was refused. */
bool rlk_diagnose_in_info(const struct rlk_diagnosis *d, const char *name,
                          char ret_value[RLK_FACT_SIZE]);
/* The same of another text of this form, or NULL. */
bool rlk_diagnose_find(const char *text, const char *name, char ret_value[RLK_FACT_SIZE]);
/* Whether a value of INFO is this text. */
bool rlk_diagnose_is(const struct rlk_diagnosis *d, const char *info, const char *is);
/* A number of INFO, or of CONFIG if INFO lacks it; either name may be NULL. "yes" and
 * "no" are 1 and 0. -1: unknown. */
long long rlk_diagnose_number(const struct rlk_diagnosis *d, const char *info,
                              const char *config);
/* The server's role and its replicas. */
int rlk_diagnose_replicas(struct rlk_diagnosis *d);
/* 60214 for Redis 6.2.14, 70205 for Valkey 7.2.5; 0: unknown. */
long rlk_diagnose_version(const struct rlk_diagnosis *d);
/* Whether no memory is left for data. */
bool rlk_diagnose_full(const struct rlk_diagnosis *d);

/* Copies a value of the server's, printable, up to the end of the line. */
void rlk_diagnose_copy(char ret_value[RLK_FACT_SIZE], const char *from);

/* The first step: whether a server answers. EPROTO: a proxy that drops commands that
 * locks need. */
int rlk_diagnose_reach(struct rlk_diagnosis *d);
/* Loads name and version from HELLO, which every user may run. */
int rlk_diagnose_hello(struct rlk_diagnosis *d);
/* Whether a lease ends, tried with a key of 50 ms. Blocks: network; a second if it
 * does not end. */
int rlk_diagnose_leases(struct rlk_diagnosis *d);

/* The user's rights, found by trying; changes nothing. */
int rlk_diagnose_acl(struct rlk_diagnosis *d);
/* Whether the connection uses TLS, and whether it is configured well. */
int rlk_diagnose_tls(struct rlk_diagnosis *d);
/* The sentinels of the URL. */
int rlk_diagnose_sentinel(struct rlk_diagnosis *d);
/* The user's rights at those that were asked. */
int rlk_diagnose_sentinel_acl(struct rlk_diagnosis *d,
                              const struct rlk_sentinel_ask *ask);
/* The host of the server that is asked: the URL's, a node's, or that of the master of
 * Sentinel, which is copied to *master. NULL: a Unix socket. */
const char *rlk_diagnose_sentinel_host(const struct rlk_diagnosis *d,
                                       struct rlk_sentinel_master *master);
/* Who else can act as this user, or read the traffic. */
int rlk_diagnose_access(struct rlk_diagnosis *d);

#endif
