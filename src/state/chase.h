/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for deadlocks (E1-E14): rounds of probes, and what comes back. A chase is
 * about one lock for which threads of this process wait that are inside other locks. A
 * probe goes from the lock's holders to the locks that they wait for, and so on. If it
 * comes back, its path is a cycle of edges, each of which was there at some moment. A
 * second round, with a new nonce, finds the same path only if all edges of it were there
 * at one moment: then it is a deadlock (E6).
 *
 * Probes are made and read by the watchdog (client/prober.c). Owner: the lock's queue has
 * its chase; the registry has the probes that wait to be sent and to be read. All guarded
 * by the registry's mu.
 */
#ifndef RLK_CHASE_H
#define RLK_CHASE_H

#include "net/mailbox.h"
#include "state/nested.h"
#include "state/op.h"

#include <rlock.h>

enum {
    RLK_CHASE_DIGESTS_MAX = 16,
    RLK_CHASE_TOLD_MAX = 64,
    RLK_CHASE_PATH_MAX = RLK_MAIL_PATH_MAX,
    RLK_CHASE_KEY_SIZE = RLK_MAIL_VICTIM_MAX + 1, /* of a thread: "<uuid>:<number>" */
    RLK_CHASE_HOPS_MAX = RLK_MAIL_HOPS_MAX,
    RLK_CHASE_SEEN_MAX = 1024,    /* how many forwarded probes are remembered */
    RLK_CHASE_PER_SECOND = 1000,  /* how many are forwarded in a second at most */
    RLK_CHASE_LETTERS_MAX = 256,  /* messages that wait to be read; more are dropped */
    RLK_CHASE_OUTGOING_MAX = 4096 /* probes that wait to be sent; likewise */
};

/* What a probe says, as it goes over the wire. */
struct rlk_chase_mark {
    char initiator[RLK_UUID_LEN + 1];
    uint64_t nonce;
    unsigned hops;
    char victim[RLK_CHASE_KEY_SIZE]; /* the greatest key so far; "-": nobody may fail */
    uint64_t digest;                 /* of the threads and waits so far, in order */
    size_t path_len;
    char path[RLK_CHASE_PATH_MAX + 4]; /* for people; "..." at its end: cut off */
};

/* A probe on its way to the server: it asks the holders of a lock. On the heap. */
struct rlk_probe {
    struct rlk_op op;
    struct rlk_list link; /* in the registry's `outgoing` */
    bool with_text;       /* brings the script's text */
    unsigned skip;        /* how many readers to pass over */
    int64_t made;
    uint8_t name_len;
    char name[RLOCK_NAME_MAX + 1];
    struct rlk_chase_mark mark;
    char head[RLK_CHASE_PATH_MAX + 256]; /* the mark as text */
};

/* A message of the mailbox that the watchdog is to read. On the heap. */
struct rlk_letter {
    struct rlk_list link;
    size_t len;
    char text[];
};

struct rlk_chase_digests {
    unsigned count;
    uint64_t all[RLK_CHASE_TOLD_MAX];
};

struct rlk_chase {
    uint64_t nonce;                       /* of the present round */
    bool second;                          /* the period has had its second round */
    unsigned skip, skip_next;             /* readers that this period passes over, and
                                             the next one */
    struct rlk_chase_digests now, before; /* that came back in this round, and in the
                                             round before it, until this one left */
    struct rlk_chase_digests told;
};

/* A deadlock, for the event callback. On the heap. */
struct rlk_deadlock_event {
    struct rlk_deadlock_event *next;
    rlock_type_t type;
    rlock_mode_t mode;
    rlk_thread_t thread;
    int64_t waited; /* ns */
    bool fails;     /* the thread gets EDEADLK */
    char name[RLOCK_NAME_MAX + 1];
    char cycle[];
};

/* What a registry has of all this. */
struct rlk_chases {
    atomic_bool waits; /* something may be in the next two; read without mu */
    struct rlk_list letters, outgoing;
    size_t letter_count, outgoing_count;
    uint64_t *seen; /* RLK_CHASE_SEEN_MAX of them; NULL: none was forwarded yet */
    unsigned seen_at;
    int64_t second;         /* in which probes are counted */
    unsigned second_count;  /* probes forwarded in it */
    struct rlk_timer timer; /* when probes that could not be sent are tried again */
    struct rlk_deadlock_event *first_event, *last_event;
};

static inline void rlk_chase_init(struct rlk_chases *all)
{
    rlk_list_init(&all->letters);
    rlk_list_init(&all->outgoing);
    all->timer.tag = RLK_TIMER_PROBES;
}
/* Frees what waits. */
void rlk_chase_shut_locked(struct rlk_registry *reg);

/* ---- digests and keys */

/* The digest of a path that goes on with this wait. */
uint64_t rlk_chase_digest(uint64_t so_far, const char *uuid, uint64_t thread,
                          uint64_t wait);
/* Writes the key of a thread. */
void rlk_chase_key(char buf[RLK_CHASE_KEY_SIZE], const char *uuid, uint64_t thread);
/* Makes the thread the victim so far, if it may fail and its key is greater. */
void rlk_chase_claim(struct rlk_chase_mark *mark, const char *uuid,
                     const struct rlk_nested *nested);

/* ---- paths */

/* Appends a separator and the text, percent-encoded; or "...", if there is no room. */
void rlk_chase_path_add(struct rlk_chase_mark *mark, char separator, const char *text,
                        size_t len);
/* The path as a sentence, for a thread of the process `party`. On the heap; NULL: out of
 * memory. */
char *rlk_chase_sentence(const struct rlk_chase_mark *mark, const char *party);

/* ---- rounds */

/* A round begins: `*ret_mark` is the mark of its probe. again: it is the second one of
 * its period. False: out of memory. */
bool rlk_chase_begin_locked(struct rlk_lock *lock, const char *uuid, bool again,
                            struct rlk_chase_mark *ret_mark);

enum rlk_chase_verdict {
    RLK_CHASE_OTHERS,    /* not a probe of the present round of this lock */
    RLK_CHASE_NOTED,     /* known already, or no room */
    RLK_CHASE_SUSPECTED, /* the second round is to begin */
    RLK_CHASE_FOUND      /* a deadlock of the wait that was not reported yet */
};
/* A probe has come back, for a hold that the thread of this wait is inside. Adds the
 * wait to the mark. */
enum rlk_chase_verdict rlk_chase_returned_locked(struct rlk_nested *nested,
                                                 const char *uuid, int64_t now,
                                                 struct rlk_chase_mark *mark);
/* Reports the deadlock of the wait: an event, and the victim is to fail. Takes over the
 * text. */
void rlk_chase_tell_locked(struct rlk_nested *nested, const char *uuid,
                           const struct rlk_chase_mark *mark, int64_t now, char *cycle);

/* Whether a probe may be forwarded to this lock: for the first time, and not too many. */
bool rlk_chase_forwards_locked(struct rlk_registry *reg,
                               const struct rlk_chase_mark *mark, const char *name,
                               size_t name_len, int64_t now);

/* ---- what waits */

/* A message of the mailbox; dropped if too many wait. */
void rlk_chase_receive_locked(struct rlk_registry *reg, const char *text, size_t len);
struct rlk_letter *rlk_chase_next_letter_locked(struct rlk_registry *reg);
/* The probe is to be sent; dropped, and freed, if too many wait. */
void rlk_chase_send_locked(struct rlk_registry *reg, struct rlk_probe *probe);
struct rlk_probe *rlk_chase_next_probe_locked(struct rlk_registry *reg);
struct rlk_deadlock_event *rlk_chase_next_event_locked(struct rlk_registry *reg);

#endif
