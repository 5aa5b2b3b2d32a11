/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of the nemesis's worker threads, and of the driver of its faults. All times
 * are CLOCK_BOOTTIME in ns. A record is one write(2) at the end of a file that one thread
 * owns, so a SIGKILL loses none that was written.
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
enum { NEM_TOKEN_BLOCK = 1000 }; /* the maximum that a renewal draws (H11) */
/* About every other lock that can be retained (K1, K14, K16) is. */
enum { NEM_RETAIN_MS = 250 };
static inline bool nem_retains(unsigned lock)
{
    return lock % 18 == 0 || lock % 18 == 3 || lock % 18 == 6 || lock % 18 == 8 ||
           lock % 18 == 14;
}
/* Whether threads of a process pass the lock on among themselves: H4, K16. */
static inline bool nem_passes(unsigned lock)
{
    return nem_type_of(lock) == NEM_MUTEX ||
           (nem_type_of(lock) == NEM_RWLOCK && nem_retains(lock));
}
/* Only mutexes and fair locks can be robust. */
static inline bool nem_robust(unsigned lock)
{
    return lock / 3 % 3 == 2 && nem_type_of(lock) != NEM_RWLOCK;
}

/* Locks that each process uses as well, and that the judge does not judge:
 * "sacrifice<i>", of the types in turn. The user NEM_HOSTILE_USER may write to their
 * keys. */
enum { NEM_SACRIFICES = 3 };
#define NEM_SACRIFICE "sacrifice"

/* The marks of strangers' forgeries: the thread in made-up ids, and the begin of made-up
 * names of locks. */
#define NEM_FORGED_THREAD "424242"
#define NEM_FORGED_NAME "forged"

/* The servers behind the locks. */
enum nem_servers {
    NEM_PLAIN,    /* one */
    NEM_TLS,      /* one, encrypted */
    NEM_SENTINEL, /* a master and two replicas, watched by three sentinels; replication is
                   * asynchronous */
    NEM_REPLICAS, /* the same; all replicas that may be promoted confirm each lock */
    NEM_CLUSTER,  /* three masters, each with a third of the hash slots and a replica */
    NEM_CLUSTER_REPLICAS, /* the same; the replica confirms each lock */
    NEM_SERVERS_KINDS
};
/* What several servers did is in no ledger: an append-only file is one server's. */
static inline bool nem_has_ledger(enum nem_servers servers)
{
    return servers == NEM_PLAIN || servers == NEM_TLS;
}
static inline bool nem_is_cluster(enum nem_servers servers)
{
    return servers == NEM_CLUSTER || servers == NEM_CLUSTER_REPLICAS;
}

/* The locks whose numbers are less than this are judged. */
enum { NEM_LOCKS_MAX = 256 };

enum nem_what {
    NEM_INVOKE = 1, /* a call begins */
    NEM_RETURN,     /* the call has returned `code` */
    NEM_CHECK,      /* a holder checked: code 1: it may believe that it holds (state SAFE
                     * or AT_RISK), 0: lost */
    NEM_EVENT,      /* a callback: code is rlock_event_kind_t; of the thread `levels`
                     * (UINT8_MAX: of an unknown one) */
    NEM_STARTED,    /* the thread's first record; `id` is the client's uuid, code 1: the
                     * client has the crash guard */
    NEM_CUT_OFF,    /* of the events' thread: a connection of the library's threads has
                     * ended, but not because an answer was missing; code 0: the
                     * subscriber's, 1: the watchdog's */
    NEM_DONE        /* the thread ends upon a command: it holds nothing and waits for
                       nothing */
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
    int64_t at;  /* INVOKE, CHECK: before the call; RETURN, CHECK that says lost: after
                    it */
    int64_t end; /* D of the thread's hold at that very time; 0: no hold */
    int64_t deadline; /* INVOKE of a timed call: its deadline; else 0 */
    uint64_t token;   /* 0: none */
    int32_t code;
    uint32_t lease_ms; /* INVOKE of a lock or extend: a fixed lease; 0: renewed */
    uint16_t process, life, thread, lock;
    uint8_t what, call;
    bool reading;   /* the mode of the hold, or of the request */
    uint8_t levels; /* of the thread's hold after the call */
    uint32_t pid;
    /* the hold's owner id at the server, "" without one; of STARTED the client's uuid */
    char id[NEM_ID_MAX];
};

/* The kinds of faults. The window of a fault: from just before it began until nothing of
 * it is left (the link is open again, the process runs again...). */
enum nem_kind {
    /* processes */
    NEM_KILL,        /* SIGKILL, then the next life */
    NEM_KILL_INSIDE, /* the same while a thread is inside of a lock of type `amount`, */
    NEM_KILL_KEPT,   /* while a process retains one, */
    NEM_KILL_ASKING, /* while a thread requests one; in any state, if that does not
                        come */
    NEM_KILL_BURIER, /* the same, and of the process that is about to recover the dead
                      * one; hits: whether there was one. Its requests are executed late,
                      * amount 1: very late */
    NEM_STOP_SHORT,  /* SIGSTOP for less than a lease */
    NEM_STOP_LONG,   /* for longer than a lease */
    NEM_DESCRIPTORS, /* closes 0 to 2, and opens other files there later */
    NEM_TERM,        /* ends in good order while others wait, then the next life; amount
                      * 1: it did not end, and was killed */
    /* the link of one process, or of all (target NEM_ALL) */
    /* of the whole link, or of one connection (field connection) */
    NEM_CUT_ONE, /* always of one connection */
    NEM_CUT,     /* always of the whole link */
    NEM_RESET,   /* RST */
    NEM_FREEZE,  /* nothing passes, then everything does */
    NEM_DELAY,
    NEM_LOSE_REQUESTS, /* one way */
    NEM_LOSE_REPLIES,  /* the other way */
    NEM_CUT_REPLIES,   /* in the middle of a reply */
    NEM_DRIP,
    NEM_HALF_CLOSE,
    /* of the whole link */
    NEM_REFUSE,        /* connections are closed and refused */
    NEM_SILENT,        /* accepted, never answered */
    NEM_LOSE_MESSAGES, /* of pub/sub */
    NEM_LINK_DOWN,     /* of a network namespace */
    /* strangers who use the same server; of all processes */
    NEM_FORGE,         /* forged messages to the clients' mailboxes */
    NEM_LONG_MESSAGES, /* the same with more than a MiB */
    NEM_HOSTILE,       /* a user of other locks writes invalid values to their keys */
    NEM_FORCE,         /* an operator's rlock_force_unlock. One record for each that took
                        * a lock away (field lock), and that of the step (NEM_ALL) */
    /* by commands to the server */
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
    /* faults that S1 excludes */
    NEM_CLOCK_FORWARD,
    NEM_SERVER_EMPTY, /* restart without data */
    NEM_FLUSHALL,
    NEM_DELETE_LOCK,      /* the key N of a lock (field lock) */
    NEM_DELETE_COMPANION, /* queue, present, readers, cancelled... of a lock */
    NEM_EVICT,            /* maxmemory with volatile-random */
    /* failovers: a replica becomes the master. The window ends when all servers follow
     * the new one. In a cluster it is the master of one shard */
    NEM_FAILOVER,    /* by SENTINEL FAILOVER: the old master lives; by CLUSTER FAILOVER:
                      * it hands over, and nothing is lost */
    NEM_MASTER_KILL, /* SIGKILL; it is started again when another is master: empty, and
                      * in a cluster with its old data */
    NEM_MASTER_STOP, /* SIGSTOP; it runs again, with its old data, when another is
                      * master */
    /* of a cluster */
    NEM_TAKEOVER, /* by CLUSTER FAILOVER TAKEOVER: the old master lives, and does not
                   * agree */
    NEM_BUS_CUT, /* nodes do not hear of each other: a master from the others, or all. The
                  * replica of that master may be promoted */
    NEM_NODE_RESTART,    /* SIGKILL, and at once the same node again */
    NEM_ROLLING_RESTART, /* each node in turn; masters hand over first. hits: how many did
                          */
    NEM_RESHARD,         /* a lock's hash slot goes to another master */
    NEM_RESHARD_HALFWAY, /* the same, and for a while it is at both */
    NEM_KINDS,
    /* not planned: a process was kept from running (pulse.h) */
    NEM_STALL = NEM_KINDS
};

static inline bool nem_kills(int32_t kind)
{
    return kind >= NEM_KILL && kind <= NEM_KILL_BURIER;
}

static inline bool nem_fails_over(int32_t kind)
{
    return kind >= NEM_FAILOVER && kind <= NEM_BUS_CUT;
}

/* Whether a replica may be promoted that does not have all, and none confirms. */
static inline bool nem_loses(int32_t kind, enum nem_servers servers)
{
    return nem_fails_over(kind) &&
           (servers == NEM_SENTINEL || (servers == NEM_CLUSTER && kind != NEM_FAILOVER));
}

/* Whether only a cluster has it. */
static inline bool nem_is_clusters(int32_t kind)
{
    return kind >= NEM_TAKEOVER && kind <= NEM_RESHARD_HALFWAY;
}

static inline bool nem_is_strangers(int32_t kind)
{
    return kind >= NEM_FORGE && kind <= NEM_FORCE;
}

struct nem_fault {
    int64_t begin, end;
    int32_t kind;        /* enum nem_kind */
    uint16_t target;     /* a process; NEM_ALL: all */
    uint16_t lock;       /* NEM_ALL: all */
    int64_t amount;      /* ms of delay, of a clock's step... */
    uint32_t index;      /* in the schedule */
    uint32_t took_us;    /* a step of the clock, a kill, the election of another master,
                          * the repair of a move: its time after `begin`; 0: none */
    uint32_t connection; /* of the link, by number; 0: all of it, or another kind;
                          * NEM_EACH: one of each link */
    uint32_t hits;       /* of a link: affected connections or messages */
    char what[64];       /* the key deleted or evicted; the nodes; "": none */
    /* a server of a cluster: bit i % 8 of byte i / 8: lock i was there, or came there */
    uint8_t locks[NEM_LOCKS_MAX / 8];
};

/* A look at the resources, when no thread holds or waits and each process is in its last
 * started life. */
struct nem_end {
    int64_t at;
    uint16_t process; /* NEM_ALL: the server */
    uint16_t life;
    uint32_t descriptors, threads; /* of the server: none, keys */
    int64_t memory;                /* RSS in bytes; of the server: used_memory */
};

#endif
