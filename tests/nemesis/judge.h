/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a round of the nemesis: the workers' records, against what the server did and
 * which faults happened.
 */
#ifndef NEM_JUDGE_H
#define NEM_JUDGE_H

#include "ledger.h"
#include "oplog.h"

#include <stddef.h>
#include <stdio.h>

/* One for each rule. The driver prints these names, and tests/mutants uses them. */
enum nem_rule {
    NEM_RULE_EXCLUSION, /* S1: two validated exclusive intervals, or a reader's and a
                         * writer's, overlap */
    NEM_RULE_TOKENS,    /* S3 */
    NEM_RULE_GRANT,     /* success without a grant at the server */
    NEM_RULE_PASSED,    /* H1, H6: passed on within a process against the rules, or for
                         * too long while others waited */
    NEM_RULE_BELIEF,    /* D is later than the server's end of the lease */
    NEM_RULE_OWNER,     /* S2: the server changed a hold upon another client's request */
    NEM_RULE_HOLDS,     /* ETIMEDOUT, EBUSY, ... while holding: a hold that no thread
                           knows of */
    NEM_RULE_UNLOCK,    /* 0 although the hold was broken; ESTALE although it was not */
    NEM_RULE_TOLD,      /* S4: a loss was reported after D or not at all, or was undone */
    NEM_RULE_LOSS,      /* a loss was reported that is none */
    NEM_RULE_KEPT,      /* a lease ran out although it should and could have been
                           renewed */
    NEM_RULE_CODE,      /* a code that the call may not return, or not without a reason */
    NEM_RULE_CUT,       /* a connection ended that no fault had cut: by data that
                         * strangers wrote or published */
    NEM_RULE_BOUND,     /* L7: a call took longer than it may */
    NEM_RULE_ORDER,     /* L5 */
    NEM_RULE_READS,     /* L6, of a waiting writer */
    NEM_RULE_WRITES,    /* L6, of a waiting reader */
    NEM_RULE_PROMPT,  /* L1, L2, L4: a free lock with live waiters was not handed over */
    NEM_RULE_STARVED, /* L3: a patient waiter did not get it after the faults */
    NEM_RULE_STUCK,   /* L3: nobody had a lock of a cluster, and nobody got it for longer
                       * than a lease, the time to replace a node, and 2 s, although a
                       * thread waited */
    NEM_RULE_BURIED,  /* G9, G10: what a killed process held stayed, although another
                       * process of its host waited, and both had the guard */
    NEM_RULE_DEAD,    /* G3, G11: a living process was recovered, or lost something by a
                         recovery */
    NEM_RULE_SOON,    /* G13: EOWNERDEAD after a recovery, but not for a death inside */
    NEM_RULE_HUNG,    /* L3, L7: a process did not come to rest, or did not end */
    NEM_RULE_LEAK,    /* a key without TTL, or one left although no thread holds or
                         waits */
    NEM_RULE_RESIDUE, /* a queue is not empty at the end */
    NEM_RULE_GROWS,   /* memory, descriptors, threads */
    NEM_RULE_SPINS,   /* the workers keep the processors of the machine busy */
    NEM_RULES
};
const char *nem_rule_name(enum nem_rule rule); /* "exclusion", "tokens"... */
/* Whether the rule compares the records with what the server did. Of other rules only a
 * part does. */
bool nem_rule_needs_ledger(enum nem_rule rule);

struct nem_round {
    unsigned processes, threads, locks;
    long lease_ms, presence_ms, commandtimeout_ms;
    bool strict; /* no fault that S1 excludes was scheduled: no break is excused */
    enum nem_servers servers;
    /* there is no ledger: only records are judged, see nem_rule_needs_ledger */
    bool no_ledger;
    /* a cluster: without a master for a hash slot none is served, or all others are; a
     * node that does not answer for so long is replaced */
    bool full_coverage;
    long node_timeout_ms;
    int64_t started, calm, ended; /* the faults begin; have ended; the workers get the
                                   * command to end */
    int64_t given_up; /* when workers that did not come to rest were killed; 0: all came
                         to rest */
    long patience_ms; /* after `calm` each waiter must get its lock within this time */
    long slack_ms;    /* what a busy machine may add to bounds */
    /* how many more a process may have at the last look than at the first: connections of
     * a pool that were not needed before */
    unsigned spare_descriptors;
    /* the same in bytes; 0: under a tool, whose memory may grow by half and 8 MiB */
    int64_t spare_memory;
    /* the CPU time of all workers from `started` to `ended`; cores 0: it is not judged */
    int64_t cpu_ns;
    unsigned cores;

    const struct nem_op *ops; /* of all threads; any order */
    size_t op_count;
    const struct nem_fault *faults;
    size_t fault_count;
    const struct nem_ledger *ledger; /* empty when there is none */
    const struct nem_end *ends;
    size_t end_count;
    /* the data at the server when all workers have ended: lines "key ttl length" */
    const char *const *left;
    size_t left_count;
    uint64_t last_token[NEM_LOCKS_MAX]; /* per lock, from the rounds before; the judge
                                           updates it */
};

struct nem_verdict {
    unsigned long violations[NEM_RULES];
    unsigned long excused[NEM_RULES];
    unsigned long judged[NEM_RULES]; /* decisions that could have failed; 0: the rule was
                                      * not tried */
    /* handovers: grants to waiters; without a ledger: how often a lock went from one
     * process to another. The last one: recoveries, of a name */
    unsigned long operations, successes, handovers, losses, burials;
    unsigned long failovers; /* in which another server became the master */
    /* the longest time for which a thread waited and nobody had the lock, without the
     * time that faults explain, and what it may be; 0: it is not judged */
    long wait_ms, wait_bound_ms;
    /* how much of the round the machine kept a process from running, on average over the
     * processes; if it was too much, only the violations of the round count */
    unsigned stalled_percent;
    bool inconclusive;
};

/* Prints each violation, at most `limit` for each rule, to `out`. */
void nem_judge(struct nem_round *round, struct nem_verdict *verdict, FILE *out,
               unsigned limit);

/* Reads the files that oplog.h lists. False: not readable. */
bool nem_read_ops(const char *dir, struct nem_op **ret_ops, size_t *ret_count);
bool nem_read_faults(const char *dir, struct nem_fault **ret_faults, size_t *ret_count);

#endif
