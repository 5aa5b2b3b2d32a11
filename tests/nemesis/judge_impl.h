/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the judge: records in order (judge_index.c), knowledge about time and
 * disturbances (judge_time.c), and the rules by theme.
 */
#ifndef NEM_JUDGE_IMPL_H
#define NEM_JUDGE_IMPL_H

#include "judge.h"

#include <errno.h>

#define NEM_NS_PER_MS INT64_C(1000000)
/* The error of a rounded time. */
#define NEM_ROUNDED (2 * NEM_NS_PER_MS)

enum { NEM_UUID_LEN = 36, NEM_PROCESSES_MAX = 256 };

/* A life of a process. */
struct nem_life {
    uint16_t process, life;
    int64_t begun, last; /* its first and last record */
    int64_t over;        /* it had ended by then; INT64_MAX: it has not ended */
    int64_t dying;       /* from then on it may have been ending; INT64_MAX: never */
    int64_t killed;      /* it was dead by then, after a SIGKILL; INT64_MAX: no SIGKILL */
    bool guarded;        /* it had the crash guard */
};

/* A time for which an id was at the server, from its grant until it left. */
struct nem_tenure {
    const struct nem_entry *granted, *downgraded, *left; /* NULL: not seen */
    const struct nem_entry **leases;
    size_t lease_count, lease_size;
    struct nem_tenure *next; /* of the same id */
    struct nem_name *name;
};

/* An id, or the uuid of a client. */
struct nem_name {
    const char *text;
    struct nem_life *life;                    /* NULL: of an unknown process */
    struct nem_tenure *tenures, *last_tenure; /* by their grants */
    struct nem_hold *holds;
    struct nem_hold *renamed; /* holds that have it as their second name */
    struct nem_name *chain;
};

/* A thread's hold, from the return of the lock call on. */
struct nem_hold {
    struct nem_life *life;
    struct nem_name *name, *second; /* of ids; second: after an extend; NULL: none */
    struct nem_hold *next;          /* with the same id */
    struct nem_hold *next_renamed;  /* with the same second */
    const struct nem_op *asked;     /* INVOKE; NULL: missing */
    const struct nem_op *returned;
    const struct nem_op *unlocking; /* INVOKE of the last unlock; NULL: none */
    const struct nem_op *unlocked;  /* its RETURN; NULL: none */
    size_t first, last;             /* among these records of the judge are its own */
    int64_t until;                  /* last validated; 0: never */
    int64_t end;                    /* D as last seen; 0: never */
    int64_t downgraded;             /* INVOKE of the downgrade; 0: none */
    int64_t lost;                   /* when the thread first saw that it is lost; 0:
                                       never */
    const struct nem_op *lost_by;   /* the record that says so */
    int64_t end_at_loss;            /* D as last seen by then; 0: never */
    bool fixed;                     /* its lease is not renewed */
    bool reading;
    bool turned; /* a downgrade was tried: it counts as a read since then */
    bool told;   /* an event reported the loss */
};

/* A call of a thread. */
struct nem_made {
    const struct nem_op *invoke, *ret; /* ret NULL: none */
    struct nem_hold *hold;             /* the thread's hold at INVOKE, or the one that the
                                          call made; NULL */
    struct nem_life *life;
    bool first; /* the call made the hold */
};

/* Between two steps of the server's clock: its time minus CLOCK_BOOTTIME, ns. */
struct nem_stretch {
    int64_t from, to;
    int64_t low, high;
    bool known;
};

struct nem_window {
    int64_t from, to;
};
struct nem_windows {
    struct nem_window *items;
    size_t count, size;
};

struct nem_judge {
    struct nem_round *round;
    struct nem_verdict *verdict;
    FILE *out;
    unsigned limit;

    const struct nem_op **ops; /* by process, life, thread and time */
    size_t op_count;
    struct nem_life *lives; /* by process and life */
    size_t life_count;
    struct nem_hold **holds;
    size_t hold_count, hold_size;
    struct nem_made *made;
    size_t made_count, made_size;
    struct nem_tenure **tenures; /* by their grants */
    size_t tenure_count, tenure_size;
    struct nem_name **names; /* a hash table */
    size_t name_buckets;

    /* in queue and rqueue of each lock at the end, of lives that have ended */
    unsigned dead_waiters[NEM_LOCKS_MAX][2];

    struct nem_stretch *stretches;
    size_t stretch_count;
    struct nem_windows disturbed[NEM_PROCESSES_MAX]; /* of each process, merged */
    struct nem_windows deaf[NEM_PROCESSES_MAX];
    struct nem_windows hampered[NEM_PROCESSES_MAX];
    struct nem_windows stopped[NEM_PROCESSES_MAX];    /* or kept from running */
    struct nem_windows on_purpose[NEM_PROCESSES_MAX]; /* stopped by a fault */
    struct nem_windows
        stood; /* some process was kept from running that was not stopped */
    struct nem_windows stalled; /* any process was kept from running, unplanned */
};

/* ---- judge.c */

/* nem_alloc: zeroed memory. nem_grow: items[count] has room. */
void *nem_alloc(size_t size);
void *nem_grow(void *items, size_t count, size_t *size, size_t width);

__attribute__((format(printf, 4, 5))) void nem_violation(struct nem_judge *j,
                                                         enum nem_rule rule,
                                                         unsigned lock,
                                                         const char *format, ...);
/* A violation, unless the reason excuses it. */
#define NEM_BREAKS(j, rule, lock, reason, ...)                                           \
    ((reason) ? (void)(j)->verdict->excused[rule]++                                      \
              : nem_violation((j), (rule), (lock), __VA_ARGS__))
static inline void nem_judged(struct nem_judge *j, enum nem_rule rule)
{
    j->verdict->judged[rule]++;
}
/* ms since the start of the round. */
double nem_ms(const struct nem_judge *j, int64_t at);
/* "process.thread (life n)"; valid for a few more calls. */
const char *nem_who(const struct nem_op *op);

/* ---- judge_calls.c */

const char *nem_call_name(unsigned call);

/* ---- judge_index.c */

void nem_index_make(struct nem_judge *j);
void nem_index_free(struct nem_judge *j);
/* NULL: unknown. */
struct nem_name *nem_name_find(const struct nem_judge *j, const char *text);
/* The life of an id's client. */
struct nem_life *nem_life_of(const struct nem_judge *j, const char *id);
/* The earliest time at which events at the server can have affected a hold: the earliest
 * time of its grant; without a grant, its return. */
int64_t nem_granted_after(const struct nem_hold *hold);
bool nem_is_acquire(unsigned call);
bool nem_is_try(unsigned call);
bool nem_is_timed(unsigned call);
static inline bool nem_taken(int32_t code)
{
    return code == 0 || code == EOWNERDEAD;
}

/* ---- judge_time.c */

void nem_time_make(struct nem_judge *j);
void nem_time_free(struct nem_judge *j);
/* When the server's clock, as it went at an entry, reaches `ms`: the latest time
 * (INT64_MAX: unknown), and the earliest (INT64_MIN: unknown). For a lease without end
 * (0) both are INT64_MAX. */
int64_t nem_boot_latest(const struct nem_judge *j, const struct nem_entry *entry,
                        uint64_t ms);
int64_t nem_boot_earliest(const struct nem_judge *j, const struct nem_entry *entry,
                          uint64_t ms);
/* The latest such time whatever the clock did until `until`: if it was set back
 * meanwhile, it gets there later. */
int64_t nem_boot_latest_until(const struct nem_judge *j, const struct nem_entry *entry,
                              uint64_t ms, int64_t until);
/* The latest time of the server's clock at an entry; UINT64_MAX: unknown. */
uint64_t nem_server_latest(const struct nem_judge *j, const struct nem_entry *entry);
/* The earliest such time; 0: unknown. */
uint64_t nem_server_earliest(const struct nem_judge *j, const struct nem_entry *entry);
/* Whether the server's clock may have been stepped in [from, to]. */
bool nem_clock_stepped(const struct nem_judge *j, int64_t from, int64_t to);
/* Whether it may have been stepped forward: only that makes leases end earlier, and never
 * in a strict round. */
bool nem_clock_forward(const struct nem_judge *j, int64_t from, int64_t to);
/* Whether the server may have been stopped. */
bool nem_server_stopped(const struct nem_judge *j, int64_t from, int64_t to);
/* Whether a fault may have kept a process from waiting as it should in [from, to]: its
 * own, one of its link or of the server, or its start. The effect of each lasts for a
 * presence more. */
bool nem_disturbed(const struct nem_judge *j, unsigned process, int64_t from, int64_t to);
/* Whether a fault may have kept a process from recovering others in [from, to]: its own
 * stop or end, one of its link or of the server, each for a presence more. Neither stalls
 * nor deaths of others count. */
bool nem_hampered(const struct nem_judge *j, unsigned process, int64_t from, int64_t to);
/* Whether the server may have found no listener at a process's mailbox in [from, to]. */
bool nem_deaf(const struct nem_judge *j, unsigned process, int64_t from, int64_t to);
/* For how long of [from, to] a process was disturbed. */
int64_t nem_disturbed_ns(const struct nem_judge *j, unsigned process, int64_t from,
                         int64_t to);
/* For how long of [from, to] a process was stopped, at most. */
int64_t nem_stopped_ns(const struct nem_judge *j, unsigned process, int64_t from,
                       int64_t to);
/* The end of the stop that a process was in at a moment; that moment itself if it was in
 * none. */
int64_t nem_stopped_until(const struct nem_judge *j, unsigned process, int64_t at);
/* For how long of [from, to] the machine kept any process from running. */
int64_t nem_stalled_ns(const struct nem_judge *j, int64_t from, int64_t to);
/* The same without those that were stopped by a fault then. */
int64_t nem_stood_ns(const struct nem_judge *j, int64_t from, int64_t to);
/* For how much of the round a process was kept from running that was not stopped by a
 * fault: on average over the processes. */
unsigned nem_stalled_percent(const struct nem_judge *j);
/* Whether any keys of the lock may have been lost in [from, to]: deleted, evicted, or
 * with all data. */
bool nem_keys_lost(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to);
/* Whether a fault that S1 excludes affected the lock's holder in [from, to]: its key was
 * lost, or the clock was stepped forward. Never in a strict round. */
bool nem_excluded(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to);
/* Whether the server may have refused requests of the workers' user in [from, to]. */
bool nem_refused(const struct nem_judge *j, int64_t from, int64_t to);
/* Whether there is a reason in [from, to] why a process got no answer, of any server; of
 * that which has the lock. */
bool nem_unreachable(const struct nem_judge *j, unsigned process, int64_t from,
                     int64_t to);
bool nem_unreachable_for(const struct nem_judge *j, unsigned process, unsigned lock,
                         int64_t from, int64_t to);
/* The same for its link and the server only: requests may be executed late. */
bool nem_delayed(const struct nem_judge *j, unsigned process, int64_t from, int64_t to);
int64_t nem_slack(const struct nem_judge *j);
/* For how long the effects of a fault last after it. */
int64_t nem_room(const struct nem_judge *j);

/* ---- judge_server.c */

/* The earliest end of a tenure's lease; INT64_MIN: unknown. */
int64_t nem_lease_earliest(const struct nem_judge *j, const struct nem_tenure *t);

/* For how long of [from, to] the lock was held by waiters that had given up, because
 * their cancels had been refused. */
int64_t nem_nobodys_ns(const struct nem_judge *j, unsigned lock, int64_t from,
                       int64_t to);

/* ---- judge_waits.c */

/* For how long of [from, to] threads had the lock in sections that last for half a lease
 * or longer, as the workers want it now and then. */
int64_t nem_long_sections_ns(const struct nem_judge *j, unsigned lock, int64_t from,
                             int64_t to);

/* ---- judge_passed.c */

/* Whether one of two exclusive holds of an id may have been passed to the other's thread
 * by their process. */
bool nem_passed_on(const struct nem_hold *a, const struct nem_hold *b);

/* ---- judge_forces.c */

/* Whether rlock_force_unlock may have taken the lock from a holder in [from, to]. */
bool nem_forced(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to);
/* The tenure by which a hold was taken away by force; NULL: none. */
const struct nem_tenure *nem_force_took(const struct nem_judge *j,
                                        const struct nem_hold *hold);
/* Whether a hold had been taken by force before the other one was granted. */
bool nem_force_took_before(const struct nem_judge *j, const struct nem_hold *hold,
                           const struct nem_hold *other);
/* The time by which the process learns it, if it is reached: until then it may believe in
 * the hold. */
int64_t nem_told_of_force_by(const struct nem_judge *j, const struct nem_tenure *t);
/* Whether the unlock that gave 0 need not know that the hold was taken by force before
 * the `other` was granted: the force came just before the unlock; or the process did not
 * hear of it, and its request to release had no answer. Where a thread of the process may
 * be next, or may still read, unlock may ask nobody. */
bool nem_unlock_unaware_of_force(const struct nem_judge *j, const struct nem_hold *hold,
                                 const struct nem_tenure *other);

/* ---- judge_failovers.c */

/* Whether a failover with asynchronous replication may have lost the hold at the server,
 * so that its thread learned of the loss, or the `other` hold was granted too (NULL:
 * none), which was not granted before it. `from`: when the loss was known, or both were
 * believed in. */
bool nem_lost_by_failover(const struct nem_judge *j, const struct nem_hold *hold,
                          const struct nem_hold *other, int64_t from);

/* ---- judge_cluster.c */

/* Whether it is a fault of the nodes of a cluster: it affects locks, not processes. */
bool nem_is_of_nodes(const struct nem_judge *j, const struct nem_fault *fault);
/* Whether such a fault affects the lock. */
bool nem_hits_lock(const struct nem_judge *j, const struct nem_fault *fault,
                   unsigned lock);
/* Whether faults of the nodes may have kept the lock's holder from a renewal in [from,
 * to]. A node that hands over, and a hash slot that moves, keep nobody. */
bool nem_nodes_disturbed(const struct nem_judge *j, unsigned lock, int64_t from,
                         int64_t to);
/* Whether the lock's node may not have answered in [from, to]. */
bool nem_nodes_unreachable(const struct nem_judge *j, unsigned lock, int64_t from,
                           int64_t to);
/* For how long of [from, to] nobody could take the lock, by faults that are no
 * failovers. */
int64_t nem_nodes_closed_ns(const struct nem_judge *j, unsigned lock, int64_t from,
                            int64_t to);

/* ---- judge_holds.c */

/* `at` and the slack, plus the part of that time for which the process was stopped. */
int64_t nem_running_by(const struct nem_judge *j, unsigned process, int64_t at);

/* ---- the rules */

void nem_judge_exclusion(struct nem_judge *j); /* judge_exclusion.c */
void nem_judge_holds(struct nem_judge *j);     /* judge_holds.c: unlock, told */
void nem_judge_forces(struct nem_judge *j);    /* judge_forces.c: told */
void nem_judge_losses(struct nem_judge *j);    /* judge_losses.c: unlock, told, loss,
                                                * kept */
void nem_judge_calls(struct nem_judge *j);     /* judge_calls.c: code, bound, starved,
                                                * hung */
void nem_judge_cuts(struct nem_judge *j);      /* judge_calls.c: cut */
void nem_judge_waits(struct nem_judge *j);     /* judge_waits.c: stuck */
void nem_judge_tokens(struct nem_judge *j);    /* judge_tokens.c */
void nem_judge_server(struct nem_judge *j);    /* judge_server.c: grant, belief, owner,
                                                * holds */
void nem_judge_records(struct nem_judge *j);   /* judge_records.c: tokens */
void nem_judge_passed(struct nem_judge *j);    /* judge_passed.c */
void nem_judge_order(struct nem_judge *j);     /* judge_order.c: order, reads, writes,
                                                * prompt */
void nem_judge_deaths(struct nem_judge *j);    /* judge_deaths.c: `buried`, dead, soon */
void nem_judge_ends(struct nem_judge *j);      /* judge_ends.c: leak, residue, grows,
                                                * spins */

#endif
