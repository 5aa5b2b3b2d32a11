/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of the nemesis's workers write down, and the driver of its faults. All
 * times are CLOCK_BOOTTIME in ns. A record is one write(2) at the end of a file that one
 * thread owns, so a SIGKILL loses none that was written.
 *
 *   ops.<process>.<life>.<thread>   struct nem_op of a thread; the thread "events" is
 *                                   the event callback's
 *   faults                          struct nem_fault, when each has ended
 *   marks                           struct nem_mark, see marks.h
 *   aof.<epoch>/                    the server's append-only files, see ledger.h
 *   end                             struct nem_end, one for each look at the resources
 */
#ifndef NEM_OPLOG_H
#define NEM_OPLOG_H

#include <stdbool.h>
#include <stdint.h>

enum { NEM_ID_MAX = 96, NEM_EVENTS_THREAD = 0xffff, NEM_ALL = 0xffff };
#define NEM_EACH UINT32_MAX

/* The lock number i: its name is "nemesis<i>", its type and attributes follow from i. */
enum nem_type { NEM_MUTEX, NEM_FAIR, NEM_RWLOCK };
static inline enum nem_type nem_type_of(unsigned lock)
{
    return (enum nem_type)(lock % 3);
}
static inline bool nem_fencing(unsigned lock)
{
    return lock / 3 % 3 == 1;
}
enum { NEM_TOKEN_BLOCK = 1000 }; /* the most that a renewal draws (H11) */
/* Every other one of the locks that can be kept (K1, K14, K16), about. */
enum { NEM_RETAIN_MS = 250 };
static inline bool nem_retains(unsigned lock)
{
    return lock % 18 == 0 || lock % 18 == 3 || lock % 18 == 6 || lock % 18 == 8 ||
           lock % 18 == 14;
}
/* What threads of a process pass on among themselves: H4, K16. */
static inline bool nem_passes(unsigned lock)
{
    return nem_type_of(lock) == NEM_MUTEX ||
           (nem_type_of(lock) == NEM_RWLOCK && nem_retains(lock));
}
/* Only mutexes and fair locks can be. */
static inline bool nem_robust(unsigned lock)
{
    return lock / 3 % 3 == 2 && nem_type_of(lock) != NEM_RWLOCK;
}

/* Locks that each process uses, too, and the judge does not judge: "sacrifice<i>", of
 * the types in turn. Whoever has the user NEM_HOSTILE_USER may write to their keys. */
enum { NEM_SACRIFICES = 3 };
#define NEM_SACRIFICE "sacrifice"

/* By these what strangers forge is known: the thread in the ids of nobody's acquisitions,
 * and the beginning of the names of locks that nobody uses. */
#define NEM_FORGED_THREAD "424242"
#define NEM_FORGED_NAME "forged"

enum nem_what {
    NEM_INVOKE = 1, /* a call begins */
    NEM_RETURN,     /* it has returned `code` */
    NEM_CHECK,      /* a holder looked: code 1: it may believe that it holds (state SAFE
                     * or AT_RISK), 0: lost */
    NEM_EVENT,      /* a callback: code is rlock_event_kind_t; of the thread `levels`
                     * (UINT8_MAX: of none of ours) */
    NEM_STARTED, /* the thread begins: its first record; `id` is the client's uuid, code
                  * 1: the client has the crash guard */
    NEM_CUT_OFF, /* of the events' thread: a connection of the library's threads has
                  * ended, but not for want of an answer; code 0: the subscriber's, 1: the
                  * watchdog's */
    NEM_DONE     /* it ends as it was told to: holds nothing, waits for nothing */
};

enum nem_call {
    NEM_NO_CALL,
    NEM_LOCK, /* to write, for a read-write lock */
    NEM_TIMEDLOCK,
    NEM_TRYLOCK,
    NEM_RDLOCK,
    NEM_TIMEDRDLOCK,
    NEM_TRYRDLOCK,
    NEM_UNLOCK,
    NEM_DOWNGRADE,
    NEM_EXTEND,
    NEM_CONSISTENT
};

struct nem_op {
    int64_t at;  /* INVOKE, CHECK: before, RETURN, CHECK that says lost: after the call */
    int64_t end; /* D of the thread's hold at that very time; 0: it has none */
    int64_t deadline; /* INVOKE of a timed form: when it is to end; else 0 */
    uint64_t token;   /* 0: none */
    int32_t code;
    uint32_t lease_ms; /* INVOKE of a lock or extend: a fixed lease; 0: renewed */
    uint16_t process, life, thread, lock;
    uint8_t what, call;
    bool reading;   /* the mode of the hold, or of what is asked for */
    uint8_t levels; /* of the thread's hold after the call */
    uint32_t pid;
    /* the hold's owner id at the server, "" without one; of STARTED the client's uuid */
    char id[NEM_ID_MAX];
};

/* What the schedule did. Its window: from just before it began until the moment from
 * which nothing of it is left (a link open again, a process running again...). */
enum nem_kind {
    /* processes */
    NEM_KILL,        /* SIGKILL, and another life */
    NEM_KILL_INSIDE, /* the same while a thread is inside of a lock of type `amount`, */
    NEM_KILL_KEPT,   /* while one is kept and idle, */
    NEM_KILL_ASKING, /* while one is asked for; or whenever, if that does not come */
    NEM_KILL_BURIER, /* and then whoever is about to bury it; hits: whether one was. What
                      * that one had asked for is done late, amount 1: very late */
    NEM_STOP_SHORT,  /* SIGSTOP for less than a lease */
    NEM_STOP_LONG,   /* for more than one */
    NEM_DESCRIPTORS, /* closes 0 to 2, and opens something there later */
    NEM_TERM,        /* ends in good order while others wait, and another life; amount 1:
                      * it did not end, and was killed */
    /* the link of one process, or of all (target NEM_ALL) */
    /* of all of the link, or of one connection (field connection) */
    NEM_CUT_ONE, /* always of one */
    NEM_CUT,     /* never */
    NEM_RESET,   /* RST */
    NEM_FREEZE,  /* nothing passes, then everything does */
    NEM_DELAY,
    NEM_LOSE_REQUESTS, /* one way */
    NEM_LOSE_REPLIES,  /* the other way */
    NEM_CUT_REPLIES,   /* in the midst of a reply */
    NEM_DRIP,
    NEM_HALF_CLOSE,
    /* of all of it */
    NEM_REFUSE,        /* connections are closed and refused */
    NEM_SILENT,        /* accepted, never answered */
    NEM_LOSE_MESSAGES, /* of pub/sub */
    NEM_LINK_DOWN,     /* of a network namespace */
    /* what strangers do who use the same server; of all processes */
    NEM_FORGE,         /* messages to the clients' mailboxes that nobody has sent */
    NEM_LONG_MESSAGES, /* of more than a MiB, likewise */
    NEM_HOSTILE, /* a user of other locks writes to their keys what is none of ours */
    NEM_FORCE,   /* an operator's rlock_force_unlock. One record for each that took
                  * a lock away (field lock), and that of the step (NEM_ALL) */
    /* what the server is told */
    NEM_CLIENT_KILL,
    NEM_CLIENT_KILL_PUBSUB,
    NEM_SCRIPT_FLUSH,
    NEM_CLIENT_PAUSE,
    NEM_BUSY,
    NEM_MAXMEMORY, /* reached, noeviction */
    NEM_ACL,       /* the workers' user loses a command or a pattern of keys */
    /* the server */
    NEM_SERVER_STOP_SHORT,
    NEM_SERVER_STOP_LONG,
    NEM_SERVER_RESTART, /* SIGKILL; keeps its data */
    NEM_CLOCK_BACK,
    /* what S1 excludes */
    NEM_CLOCK_FORWARD,
    NEM_SERVER_EMPTY, /* restart without data */
    NEM_FLUSHALL,
    NEM_DELETE_LOCK,      /* the key N of a lock (field lock) */
    NEM_DELETE_COMPANION, /* queue, present, readers, cancelled... of a lock */
    NEM_EVICT,            /* maxmemory with volatile-random */
    NEM_KINDS,
    /* not planned: a process was kept from running (pulse.h) */
    NEM_STALL = NEM_KINDS
};

static inline bool nem_kills(int32_t kind)
{
    return kind >= NEM_KILL && kind <= NEM_KILL_BURIER;
}

static inline bool nem_is_strangers(int32_t kind)
{
    return kind >= NEM_FORGE && kind <= NEM_FORCE;
}

struct nem_fault {
    int64_t begin, end;
    int32_t kind;     /* enum nem_kind */
    uint16_t target;  /* a process; NEM_ALL: all */
    uint16_t lock;    /* NEM_ALL: all */
    int64_t amount;   /* ms of delay, of a clock's step... */
    uint32_t index;   /* in the schedule */
    uint32_t took_us; /* a step of the clock, a kill: how long after `begin` it was done
                       */
    uint32_t connection; /* of the link, by number; 0: all of it, or another kind;
                          * NEM_EACH: one of each link */
    uint32_t hits;       /* of a link: connections that it met, or messages */
    char what[64];       /* the key deleted or evicted; "": none */
};

/* A look at what is used, when nobody holds or waits and all lives are those that were
 * started last. */
struct nem_end {
    int64_t at;
    uint16_t process; /* NEM_ALL: the server */
    uint16_t life;
    uint32_t descriptors, threads; /* of the server: none, keys */
    int64_t memory;                /* RSS in bytes; of the server: used_memory */
};

#endif
