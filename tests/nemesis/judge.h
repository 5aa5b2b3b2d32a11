/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a round of the nemesis: what the workers wrote down, against what the server did
 * and which faults happened.
 */
#ifndef NEM_JUDGE_H
#define NEM_JUDGE_H

#include "ledger.h"
#include "oplog.h"

#include <stddef.h>
#include <stdio.h>

/* One for each rule; the names are what the driver prints and tests/mutants names. */
enum nem_rule {
    NEM_RULE_EXCLUSION, /* S1: two validated exclusive intervals, or a reader's and a
                         * writer's, overlap */
    NEM_RULE_TOKENS,    /* S3 */
    NEM_RULE_GRANT,     /* success without a grant at the server */
    NEM_RULE_PASSED,    /* H1, H6: passed on within a process as it may not be, or for too
                         * long while others waited */
    NEM_RULE_BELIEF,    /* D is later than the server's end of the lease */
    NEM_RULE_OWNER,     /* S2: the server changed a hold for somebody else's request */
    NEM_RULE_HOLDS,     /* ETIMEDOUT, EBUSY, ... while holding: a hold nobody knows of */
    NEM_RULE_UNLOCK,    /* 0 though it was broken; ESTALE though it was not */
    NEM_RULE_TOLD,      /* S4: a loss not told by D, not at all, or undone */
    NEM_RULE_LOSS,      /* a loss was told that is none */
    NEM_RULE_KEPT,      /* a lease ran out that was to be renewed, and could have been */
    NEM_RULE_CODE,      /* a code that the call may not return, or no reason for it */
    NEM_RULE_CUT,       /* a connection ended that nothing had cut: by what somebody wrote
                         * to keys or published */
    NEM_RULE_BOUND,     /* L7: a call took longer than it may */
    NEM_RULE_ORDER,     /* L5 */
    NEM_RULE_READS,     /* L6, of a waiting writer */
    NEM_RULE_WRITES,    /* L6, of a waiting reader */
    NEM_RULE_PROMPT,  /* L1, L2, L4: a free lock with live waiters was not handed over */
    NEM_RULE_STARVED, /* L3: a patient waiter did not get it after the faults */
    NEM_RULE_BURIED,  /* G9, G10: what a killed process held stayed, though another of its
                       * host waited, and both had the guard */
    NEM_RULE_DEAD,    /* G3, G11: who lived was buried, or lost something by a burial */
    NEM_RULE_SOON,    /* G13: EOWNERDEAD after a burial, but not for a death inside */
    NEM_RULE_HUNG,    /* L3, L7: a process did not come to rest, or did not end */
    NEM_RULE_LEAK,    /* a key without TTL, or left though nobody holds or waits */
    NEM_RULE_RESIDUE, /* a queue is not empty at the end */
    NEM_RULE_GROWS,   /* memory, descriptors, threads */
    NEM_RULE_SPINS,   /* the workers keep the machine's processors busy */
    NEM_RULES
};
const char *nem_rule_name(enum nem_rule rule); /* "exclusion", "tokens"... */

struct nem_round {
    unsigned processes, threads, locks;
    long lease_ms, presence_ms, commandtimeout_ms;
    bool strict; /* no fault that S1 excludes was scheduled: nothing is excused */
    int64_t started, calm, ended; /* the faults begin; have ended; the workers are told to
                                   * end */
    int64_t given_up; /* not all came to rest, and those were killed; 0: all did */
    long patience_ms; /* by when after `calm` each waiter must have got its lock */
    long slack_ms;    /* what a busy machine may add to bounds */
    /* what a process may have more at the last look than at the first:
     * connections of a pool that had not been needed by then */
    unsigned spare_descriptors;
    /* bytes; 0: under a tool, whose memory may grow by half and 8 MiB */
    int64_t spare_memory;
    /* what the workers ran from `started` to `ended`, together; cores 0: not to be judged
     */
    int64_t cpu_ns;
    unsigned cores;

    const struct nem_op *ops; /* of all threads; any order */
    size_t op_count;
    const struct nem_fault *faults;
    size_t fault_count;
    const struct nem_ledger *ledger;
    const struct nem_end *ends;
    size_t end_count;
    /* what is left at the server when all have ended: "key ttl length" lines */
    const char *const *left;
    size_t left_count;
    uint64_t last_token[64]; /* per lock, of the rounds before; kept up to date */
};

struct nem_verdict {
    unsigned long violations[NEM_RULES];
    unsigned long excused[NEM_RULES];
    unsigned long judged[NEM_RULES]; /* decisions: what was looked at and could have
                                      * failed; 0 tells that the rule was not tried */
    unsigned long operations, successes, handovers, losses, burials; /* of a name */
    /* for how much of the round the machine kept a process from running, on average over
     * the processes; when that was too much, the round says nothing but its violations */
    unsigned stalled_percent;
    bool inconclusive;
};

/* Prints each violation, at most `limit` for each rule, to `out`. */
void nem_judge(struct nem_round *round, struct nem_verdict *verdict, FILE *out,
               unsigned limit);

/* Reads the files that are named in oplog.h. False: not readable. */
bool nem_read_ops(const char *dir, struct nem_op **ret_ops, size_t *ret_count);
bool nem_read_faults(const char *dir, struct nem_fault **ret_faults, size_t *ret_count);

#endif
