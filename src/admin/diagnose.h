/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rlock_client_diagnose share: diagnose.c (the call, and what is
 * measured), diagnose_server.c (what the server says of itself), diagnose_kind.c (whether
 * it is one at all) and diagnose_acl.c (what the user may do). Nobody else includes this.
 * Thread: the caller's. */
#ifndef RLK_DIAGNOSE_H
#define RLK_DIAGNOSE_H

#include "client/client.h"

#include <syslog.h>

enum { RLK_CONFIG_COUNT = 12, RLK_FACT_SIZE = 160, RLK_FINDING_SIZE = 1200 };

struct rlk_diagnosis {
    struct rlock_client *client;
    int (*each)(const rlock_finding_t *finding, void *arg);
    void *arg;
    char *info;        /* the answer to INFO; NULL: the server refused it */
    bool config_there; /* it did not refuse CONFIG GET */
    /* of HELLO, where INFO tells no version; "": not told */
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

/* Tells a finding. 0, or what ends the call: the function's result, ECANCELED in a child.
 */
int rlk_diagnose_tell(struct rlk_diagnosis *d, int severity, const char *topic,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

/* One command, NULL-terminated. 0 with *ret_reply, which may be an ERROR; else the
 * caller's code, with the thread's message set. ret_timing may be NULL. Blocks: network,
 * up to the command timeout. */
int rlk_diagnose_ask(struct rlk_diagnosis *d, const char *const *argv,
                     struct rlk_reply **ret_reply, struct rlk_timing *ret_timing);
/* The same for an answer of that type. 0 and NULL: the server refused the command, or
 * does not know it. */
int rlk_diagnose_command(struct rlk_diagnosis *d, const char *const *argv,
                         enum rlk_reply_type type, struct rlk_reply **ret_reply);

/* Asks for what the server tells of itself; rlk_diagnose_forget frees it. */
int rlk_diagnose_load(struct rlk_diagnosis *d);
void rlk_diagnose_forget(struct rlk_diagnosis *d);
/* The findings from that. */
int rlk_diagnose_server(struct rlk_diagnosis *d);
/* Of Redis 6.2.14 60214, of Valkey 7.2.5 70205; 0: not told. */
long rlk_diagnose_version(const struct rlk_diagnosis *d);
/* Whether there is no memory left for data. */
bool rlk_diagnose_full(const struct rlk_diagnosis *d);

/* Copies a value of the server's, printable, up to the line's end. */
void rlk_diagnose_copy(char ret_value[RLK_FACT_SIZE], const char *from);

/* First of all: whether there is a server to be asked. EPROTO: a proxy that does not pass
 * on what locks need. */
int rlk_diagnose_reach(struct rlk_diagnosis *d);
/* Asks for the name and the version that HELLO tells, which is refused to nobody. */
int rlk_diagnose_hello(struct rlk_diagnosis *d);
/* Whether a lease comes to its end, by a key of 50 ms. Blocks: for a second where not. */
int rlk_diagnose_leases(struct rlk_diagnosis *d);

/* What the user may do, by trying: nothing is changed by it. */
int rlk_diagnose_acl(struct rlk_diagnosis *d);
/* What the connection's TLS is worth, if it has any. */
int rlk_diagnose_tls(struct rlk_diagnosis *d);
/* Who else can come as this user, or read what is sent. */
int rlk_diagnose_access(struct rlk_diagnosis *d);

#endif
