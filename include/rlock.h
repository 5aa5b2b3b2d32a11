/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock: distributed locks in Redis or Valkey with the interface of pthreads.
 *
 * Every function returns 0 or a positive errno value unless its declaration
 * shows another type, leaves errno alone, never returns EINTR, and is not a
 * cancellation point. NULL, zeroed or destroyed handles give EINVAL. The
 * letters S1-S5 and L1-L7 name the guarantees of doc/design/guarantees.md.
 *
 * Codes that any function which asks the server may return, beside its own:
 *   ENOTCONN  no server could be asked before the deadline
 *   EACCES    the server refused the credentials or an ACL rule; with TLS also: one of
 *             the two does not accept the other's certificate
 *   EPROTO    the server answered what no lock script answers, or a key of this
 *             name holds foreign data (it is left untouched; a hash counts as held,
 *             whosever it is)
 *   ENOMEM    out of memory; nothing changed (what a request had asked for may have been
 *             done when there was no memory for its reply)
 *   EAGAIN    a library thread could not be started, or the system refuses what one
 *             needs (a sandbox; then rlock_errmsg() names it)
 *   EMFILE, ENFILE  no descriptor is left for a thread or a connection
 * rlock_errmsg() tells more about the last failed call of the calling thread.
 *
 * Threads: any function may be called by any thread, but from a signal handler
 * only rlock_client_interrupt. A handler that leaves a function by longjmp leaves
 * the library in the midst of it: do not. A thread that ends with a lock held
 * gives it up, see RLOCK_EVENT_OWNER_DIED; so does exit(), for the thread that
 * calls it, within a second (but nothing, if a signal's handler calls it that came
 * amid the library's work). Cancellation is off inside every function, and so in
 * the callbacks that a function calls: a request takes effect after its return.
 * A thread needs 32 KiB of stack for them: more than PTHREAD_STACK_MIN.
 *
 * Fork: the child owns nothing of its parent's; what the parent holds stays the
 * parent's. Handles and clients go on working in the child: with the first use it
 * becomes a party of its own, with threads and connections of its own. In the
 * child of a callback only exec and _exit are safe; a signal handler may call
 * _Fork, but not fork.
 */
#ifndef RLOCK_H
#define RLOCK_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define RLOCK_VERSION "0.1.0"
#define RLOCK_VERSION_NUMBER 0x000100 /* 0xMMmmpp */

#if defined(__GNUC__)
#define RLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RLOCK_MUST_CHECK
#endif

/* Where time_t may have 32 or 64 bits (glibc on systems of 32 bits, by _TIME_BITS), the
 * library has two functions of each name that takes a struct timespec, and the program's
 * own choice is called, as of pthread's. (Who looks symbols up by name: the plain one is
 * for 32 bits there, NAME_time64 for 64.) */
#if defined(__TIMESIZE) && __TIMESIZE == 32 && defined(__USE_TIME_BITS64)
#pragma redefine_extname rlock_mutex_timedlock rlock_mutex_timedlock_time64
#pragma redefine_extname rlock_mutex_clocklock rlock_mutex_clocklock_time64
#pragma redefine_extname rlock_mutex_timedlock_lease rlock_mutex_timedlock_lease_time64
#pragma redefine_extname rlock_mutex_clocklock_lease rlock_mutex_clocklock_lease_time64
#pragma redefine_extname rlock_fair_timedlock rlock_fair_timedlock_time64
#pragma redefine_extname rlock_fair_clocklock rlock_fair_clocklock_time64
#pragma redefine_extname rlock_fair_timedlock_lease rlock_fair_timedlock_lease_time64
#pragma redefine_extname rlock_fair_clocklock_lease rlock_fair_clocklock_lease_time64
#pragma redefine_extname rlock_rwlock_timedrdlock rlock_rwlock_timedrdlock_time64
#pragma redefine_extname rlock_rwlock_clockrdlock rlock_rwlock_clockrdlock_time64
#pragma redefine_extname rlock_rwlock_timedrdlock_lease                                  \
    rlock_rwlock_timedrdlock_lease_time64
#pragma redefine_extname rlock_rwlock_clockrdlock_lease                                  \
    rlock_rwlock_clockrdlock_lease_time64
#pragma redefine_extname rlock_rwlock_timedwrlock rlock_rwlock_timedwrlock_time64
#pragma redefine_extname rlock_rwlock_clockwrlock rlock_rwlock_clockwrlock_time64
#pragma redefine_extname rlock_rwlock_timedwrlock_lease                                  \
    rlock_rwlock_timedwrlock_lease_time64
#pragma redefine_extname rlock_rwlock_clockwrlock_lease                                  \
    rlock_rwlock_clockwrlock_lease_time64
#pragma redefine_extname rlock_waitfree rlock_waitfree_time64
#endif

/* Aligned as on systems of 64 bits. */
#if defined(__GNUC__)
#define RLK_ALIGNED_8 __attribute__((aligned(8)))
#else
#define RLK_ALIGNED_8
#endif

/* ------------------------------------------------------------------ names */

/* Longest name of a lock, in bytes, without the NUL. A name is any non-empty
 * NUL-terminated string of bytes, with two exceptions that give EINVAL: it may
 * hold '{' and '}' only as one valid cluster hash tag ("{user1}:orders"), and it
 * may not begin with "rlock:" or "redisson_". */
#define RLOCK_NAME_MAX 200

/* ------------------------------------------------------ constants as pthread's */

/* Written as numbers because strict C11 hides pthread's names; the library's build
 * asserts that they are equal. */
#define RLOCK_MUTEX_NORMAL 0
#define RLOCK_MUTEX_RECURSIVE 1
#define RLOCK_MUTEX_ERRORCHECK 2
#define RLOCK_MUTEX_DEFAULT 0
#define RLOCK_MUTEX_TIMED_NP 0
#define RLOCK_MUTEX_FAST_NP 0
#define RLOCK_MUTEX_RECURSIVE_NP 1
#define RLOCK_MUTEX_ERRORCHECK_NP 2
#define RLOCK_MUTEX_ADAPTIVE_NP 3
#define RLOCK_MUTEX_STALLED 0
#define RLOCK_MUTEX_ROBUST 1
#define RLOCK_MUTEX_STALLED_NP 0
#define RLOCK_MUTEX_ROBUST_NP 1
#define RLOCK_PROCESS_PRIVATE 0
#define RLOCK_PROCESS_SHARED 1
#define RLOCK_PRIO_NONE 0
#define RLOCK_PRIO_INHERIT 1
#define RLOCK_PRIO_PROTECT 2
#define RLOCK_RWLOCK_PREFER_READER_NP 0
#define RLOCK_RWLOCK_PREFER_WRITER_NP 1
#define RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP 2
#define RLOCK_RWLOCK_DEFAULT_NP 0
#define RLOCK_RWLOCK_PHASE_FAIR_NP 16 /* no twin in pthread; the initial kind */

/* What a call without a deadline does while no server can be asked. */
#define RLOCK_OUTAGE_WAIT 0 /* waits for the server to come back */
#define RLOCK_OUTAGE_FAIL 1 /* gives ENOTCONN after the command timeout */
#define RLOCK_OUTAGE_ABORT                                                               \
    2 /* waits; abort() instead of a code that the pthread                               \
         function could never have returned */

/* ----------------------------------------------------------------- objects */

/* A connected party to the locks: connections, identity, defaults. Opaque. */
typedef struct rlock_client rlock_client_t;

/* What a handle holds: plain data without pointers, 256 bytes, aligned at 8, alike for
 * programs of 32 and of 64 bits. May be static, copied, inherited, or placed in shared
 * memory. All live state is kept in the process, found by
 * client, kind and name: two handles with one name are one lock (S5). The fields are the
 * library's. */
struct rlk_handle {
    uint32_t rlk_magic;
    uint8_t rlk_kind;
    uint8_t rlk_type;
    uint8_t rlk_flags;
    uint8_t rlk_name_len;
    uint64_t rlk_client RLK_ALIGNED_8;
    int32_t rlk_lease_ms;
    int32_t rlk_retain_ms;
    int32_t rlk_handoff_ms;
    int32_t rlk_handoff_count;
    char rlk_name[RLOCK_NAME_MAX + 1];
    uint8_t rlk_reserved[23];
};

/* A mutex: taken by whoever comes when it is free; no order is promised. */
typedef struct rlock_mutex {
    struct rlk_handle rlk;
} rlock_mutex_t;

/* A fair lock: taken in the order in which the threads asked for it (L5). */
typedef struct rlock_fair {
    struct rlk_handle rlk;
} rlock_fair_t;

#define RLK_MAGIC_HANDLE 0x014b4c52u /* layout version in the top byte, then "RLK" */
#define RLK_KIND_MUTEX 1
#define RLK_KIND_FAIR 2
#define RLK_KIND_RWLOCK 3
#ifdef __cplusplus
#define RLK_U8(value) static_cast<uint8_t>(value)
#else
#define RLK_U8(value) ((uint8_t)(value))
#endif
/* The length of a literal; an empty or too long one does not compile. */
#define RLK_NAME_LEN(name)                                                               \
    RLK_U8(                                                                              \
        (sizeof("" name "") - 1) *                                                       \
        sizeof(char[(sizeof("" name "") > 1 && sizeof("" name "") <= RLOCK_NAME_MAX + 1) \
                        ? 1                                                              \
                        : -1]))
#define RLK_HANDLE_INITIALIZER(kind, name, type)                                         \
    {                                                                                    \
        {                                                                                \
            RLK_MAGIC_HANDLE, (kind), RLK_U8(type), 0, RLK_NAME_LEN(name), 0, 0, 0, 0,   \
                0, "" name "",                                                           \
            {                                                                            \
                0                                                                        \
            }                                                                            \
        }                                                                                \
    }

/* Static initializers. `name` is a string literal of 1 to RLOCK_NAME_MAX bytes. */
#define RLOCK_MUTEX_INITIALIZER(name) RLK_HANDLE_INITIALIZER(RLK_KIND_MUTEX, name, 0)
#define RLOCK_RECURSIVE_MUTEX_INITIALIZER_NP(name)                                       \
    RLK_HANDLE_INITIALIZER(RLK_KIND_MUTEX, name, RLOCK_MUTEX_RECURSIVE_NP + 1)
#define RLOCK_ERRORCHECK_MUTEX_INITIALIZER_NP(name)                                      \
    RLK_HANDLE_INITIALIZER(RLK_KIND_MUTEX, name, RLOCK_MUTEX_ERRORCHECK_NP + 1)
#define RLOCK_ADAPTIVE_MUTEX_INITIALIZER_NP(name)                                        \
    RLK_HANDLE_INITIALIZER(RLK_KIND_MUTEX, name, RLOCK_MUTEX_ADAPTIVE_NP + 1)
#define RLOCK_FAIR_INITIALIZER(name) RLK_HANDLE_INITIALIZER(RLK_KIND_FAIR, name, 0)
#define RLOCK_RWLOCK_INITIALIZER(name) RLK_HANDLE_INITIALIZER(RLK_KIND_RWLOCK, name, 0)
#define RLOCK_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP(name)                            \
    RLK_HANDLE_INITIALIZER(RLK_KIND_RWLOCK, name,                                        \
                           RLOCK_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP + 1)

/* A read-write lock: phase-fair, unless told otherwise (L6). */
typedef struct rlock_rwlock {
    struct rlk_handle rlk;
} rlock_rwlock_t;

/* What an attribute object holds: 128 bytes. The fields are the library's. */
struct rlk_attr {
    uint32_t rlk_magic;
    int32_t rlk_type;
    int32_t rlk_robust;
    int32_t rlk_pshared;
    int32_t rlk_protocol;
    int32_t rlk_fencing;
    int32_t rlk_outage;
    int32_t rlk_lease_ms;
    uint64_t rlk_client;
    int32_t rlk_handoff_ms;
    int32_t rlk_handoff_count;
    int32_t rlk_retain_ms;
    int32_t rlk_unused;
    uint64_t rlk_reserved[9];
};

/* Attributes of a mutex or a fair lock. */
typedef struct rlock_mutexattr {
    struct rlk_attr rlk;
} rlock_mutexattr_t;

/* Attributes of a read-write lock. */
typedef struct rlock_rwlockattr {
    struct rlk_attr rlk;
} rlock_rwlockattr_t;

/* ------------------------------------------------------------------ events */

typedef enum {
    RLOCK_TYPE_UNKNOWN,
    RLOCK_TYPE_MUTEX,
    RLOCK_TYPE_FAIR,
    RLOCK_TYPE_RWLOCK,
    RLOCK_TYPE_REDISSON
} rlock_type_t;

typedef enum { RLOCK_MODE_EXCLUSIVE, RLOCK_MODE_READ } rlock_mode_t;

typedef enum {
    RLOCK_EVENT_AT_RISK,      /* the lease could not be renewed for most of its length */
    RLOCK_EVENT_SAFE_AGAIN,   /* it was renewed after all */
    RLOCK_EVENT_LOST,         /* the lease ended before unlock; not of a loss that unlock
                                 itself finds: its ESTALE tells */
    RLOCK_EVENT_OWNER_DIED,   /* a thread ended while it held the lock; or a process of
                                 this host died with it, and this client gave it back */
    RLOCK_EVENT_DISCONNECTED, /* the server cannot be reached; name is "" */
    RLOCK_EVENT_CONNECTED     /* it can again; name is "" */
} rlock_event_kind_t;

typedef struct rlock_event {
    rlock_event_kind_t kind;
    rlock_type_t type;
    rlock_mode_t mode;
    const char *name;   /* valid during the call */
    uint64_t token;     /* 0 without fencing */
    pthread_t thread;   /* the holder; undefined for (DIS)CONNECTED, and for OWNER_DIED of
                           another process */
    long remaining_ms;  /* until the hold is no longer proven; 0 when lost */
    const char *reason; /* one line, valid during the call; as in the log, with for
                           how long: "server unreachable for 30.1 s" */
} rlock_event_t;

/* Called on a library thread with no library mutex held; may call any function
 * of the library. While it runs, further events wait, and so may wake-ups (they
 * are then found within presence/3): keep it short. It has 256 KiB of stack, and all
 * signals are blocked. None is called any more when exit() has run the program's own
 * handlers. */
typedef void (*rlock_event_fn)(const rlock_event_t *event, void *arg);

/* ------------------------------------------------------------------ client */

/* Attributes of a client: 4,096 bytes. The fields are the library's. */
typedef struct rlock_clientattr {
    uint32_t rlk_magic;
    uint32_t rlk_set;
    int64_t rlk_lease_ms;
    int64_t rlk_presence_ms;
    int64_t rlk_commandtimeout_ms;
    int64_t rlk_connecttimeout_ms;
    int32_t rlk_maxconnections;
    int32_t rlk_mutextype;
    rlock_event_fn rlk_event_fn;
    void *rlk_event_arg;
    char rlk_user[256];
    char rlk_password[2048];
    int64_t rlk_handoff_ms;
    int32_t rlk_handoff_count;
    int32_t rlk_guard;
    int64_t rlk_retain_ms;
    char rlk_texts[1536]; /* cafile and so on */
    uint8_t rlk_reserved[168 + 2 * (8 - sizeof(void *))];
} rlock_clientattr_t;

/* Durations by powers of two of a microsecond: buckets[0] counts those below 1 us,
 * buckets[i] those below 2^i us and not below 2^(i-1); the last one all that are longer.
 * A quantile is so known within a factor of two (doc/OBSERVABILITY.md). sum_us by count
 * is the mean. */
#define RLOCK_HISTOGRAM_BUCKETS 40
typedef struct rlock_histogram {
    uint64_t count;  /* of all buckets */
    uint64_t sum_us; /* of the durations, before they were cut to microseconds */
    uint64_t max_us;
    uint64_t buckets[RLOCK_HISTOGRAM_BUCKETS];
} rlock_histogram_t;

/* Counters of a client since it was opened, and gauges ("now"): 4,096 bytes. */
typedef struct rlock_stats {
    uint64_t holds_now;           /* acquisitions held now; threads that share a read
                                     hold count as one */
    uint64_t waiters_now;         /* threads that wait for a lock now */
    uint64_t acquisitions;        /* locks taken, re-entries not counted */
    uint64_t reentries;           /* locks taken again by their holder */
    uint64_t releases;            /* unlocks of the outermost level */
    uint64_t waits;               /* calls that were queued, or waited for a thread */
    uint64_t grants;              /* locks received from another holder's release */
    uint64_t grants_orphaned;     /* grants for what had been given up or is over, which
                                     is released at once */
    uint64_t local_handovers;     /* passed between threads without the server */
    uint64_t timeouts;            /* calls that ended with ETIMEDOUT */
    uint64_t cancels;             /* waiters withdrawn at the server */
    uint64_t round_trips;         /* requests answered, all threads */
    uint64_t renewals;            /* renewals confirmed */
    uint64_t renewal_failures;    /* renewals refused, unanswered or not sent */
    uint64_t refreshes;           /* presence refreshes confirmed */
    uint64_t losses;              /* leases lost */
    uint64_t owners_died;         /* threads that ended holding a lock */
    uint64_t connects;            /* connections made */
    uint64_t connect_failures;    /* attempts that failed */
    uint64_t reconnects;          /* connections of the library threads made anew */
    uint64_t unknown_outcomes;    /* requests whose reply was lost */
    uint64_t background_releases; /* releases and cancels finished by the watchdog */
    uint64_t messages;            /* mailbox messages understood */
    uint64_t messages_ignored;    /* mailbox messages of no known form, or about no lock
                                     that the client holds or waits for */
    uint64_t risks;               /* times that a hold came to be at risk */
    uint64_t refusals;            /* requests that the server refused for good: ACL,
                                     a key of another type, ... */
    uint64_t script_loads; /* requests sent again with their script, which the server
                              did not know (any more) */
    uint64_t events;       /* told to the event callback */
    uint64_t outages;      /* times that the server could not be reached any more, as
                              RLOCK_EVENT_DISCONNECTED tells */
    uint64_t outage_us;    /* how long that has lasted in all, the present one
                              included */
    rlock_histogram_t wait_time; /* of calls that waited (see waits) and got the lock:
                                    from their begin until they had it */
    rlock_histogram_t failed_wait_time; /* of calls that waited, and came back without it:
                                           ETIMEDOUT, ECANCELED, ENOTCONN, ... */
    rlock_histogram_t hold_time; /* of sections, each thread's: from when the call had the
                                    lock to the unlock of its outermost level, to its
                                    loss, or to the end of the thread. What a process
                                    keeps between two sections is in none; readers that
                                    share a hold are in one each */
    rlock_histogram_t round_trip_time; /* of requests that were answered: from when they
                                          were sent until the answer was read */
    uint64_t burials; /* clients of other processes of this host that this one has found
                         dead and seen to: what they held, if anything, was
                         given back */
    uint64_t rlk_reserved[309];
} rlock_stats_t;

/*
 * Opens a client: another party to the locks, with connections and an identity
 * of its own. Succeeds while the server is away (locks wait for it;
 * rlock_client_ping tells).
 *
 * url   redis://[user[:password]@]host[:port][/db][?parameters], rediss:// the same over
 *       TLS (valkey:// and valkeys:// mean the same), or
 *       unix:///path/to/socket[?parameters]; parameters: db, lease, presence,
 *       commandtimeout, connecttimeout (ms), mutextype=recursive|errorcheck|normal,
 *       handoffms, handoffcount, retain (ms), guard=0|1; with TLS: cafile, cadir,
 *       certfile, keyfile, tlsname, verify=full|ca (rlock_clientattr_setcafile).
 *       NULL or empty: $RLOCK_URL; if that is unset or empty, what the system's file
 *       /etc/rlock.conf says (below configure's sysconfdir; RLOCK_CONF names another,
 *       see rlock.conf(5)); if there is none, redis://127.0.0.1:6379. What the URL says
 *       wins over the attribute; the file's user and passwordfile do not, they are for
 *       who has no credentials of his own. A program with more rights than its caller
 *       (setuid) does not look at the environment.
 * attr  NULL: defaults.
 *
 * EINVAL   malformed URL, unknown scheme or parameter, value out of range; the file, or
 *          the one with the password that it names, is wrong or cannot be read: it is
 *          never passed over. The message names the file and its line
 *          A file of TLS cannot be read or used: the message names its path
 * ENOTSUP  rediss://, where the library was built without TLS
 * ENOMEM, EAGAIN (see the top of this file), EMFILE, ENFILE
 * *ret_client is untouched on failure. Blocks: no network; reads those files. Since: 0.1
 */
int rlock_client_open(rlock_client_t **ret_client, const char *url,
                      const rlock_clientattr_t *attr) RLOCK_MUST_CHECK;

/*
 * Closes a client and frees it; NULL: the default client, which its next use
 * opens anew. Unfinished background releases get one command timeout, but for that
 * of a lost lock while the server is away: its lease is over. Events that are
 * still to be told are told before it returns: do not hold what the callback waits for.
 * EBUSY    one of its locks is held or waited for, or another thread is inside
 *          one of its functions; nothing changed
 * EINVAL   no such client
 * Blocks: up to one command timeout. Since: 0.1
 */
int rlock_client_close(rlock_client_t *client);

/* Says how the default client is to be opened. EBUSY once it is open (in a child,
 * too, if it was open in the parent: close it first); EINVAL, ENOTSUP as
 * rlock_client_open. Since: 0.1 */
int rlock_client_setdefault(const char *url, const rlock_clientattr_t *attr);

/*
 * Which server a client has, and who has named it, for messages and logs. NULL: the
 * default client; if it is not open, what it would be opened with now.
 *
 * url     gets the URL as it was given, without user and password
 * source  gets "program" (an argument of rlock_client_open or _setdefault), "RLOCK_URL",
 *         the path of the file (rlock.conf(5)), or "built-in default"
 *
 * EINVAL        a buffer is NULL; no such client is open
 * ENAMETOOLONG  a text does not fit its buffer; both are untouched
 * EINVAL, ENOTSUP, ENOMEM, EMFILE, ENFILE    of a default client that is not open: as
 *               rlock_client_open
 * Blocks: no network; may read files as rlock_client_open does. Since: 0.1
 */
int rlock_client_getserver(const rlock_client_t *client, char *url, size_t url_size,
                           char *source, size_t source_size);

/* One round trip; NULL: the default client, opened if need be. ENOTCONN, EACCES,
 * EPROTO, EINVAL. Blocks: up to the command timeout. Since: 0.1 */
int rlock_client_ping(rlock_client_t *client);

/* From now on the client's waits return ECANCELED, also those that begin later;
 * holds stay and can be unlocked. A call that is in a round trip at this moment
 * ends when that does. NULL: the default client, EINVAL when it is not open.
 * Async-signal-safe. Since: 0.1 */
int rlock_client_interrupt(rlock_client_t *client);

/* Copies the counters; NULL: the default client (all 0 when it is not open).
 * EINVAL. Blocks: no network. Since: 0.1 */
int rlock_client_getstats(const rlock_client_t *client, rlock_stats_t *ret_stats);

/* Attributes of a client. init: EINVAL (NULL). destroy wipes the credentials.
 * Setters: EINVAL when out of range, and the object stays as it was; getters:
 * EINVAL. What is never set has the default shown. Since: 0.1 */
int rlock_clientattr_init(rlock_clientattr_t *attr);
int rlock_clientattr_destroy(rlock_clientattr_t *attr);
/* default lease in ms, 50 to 86,400,000: 30,000 */
int rlock_clientattr_setlease(rlock_clientattr_t *attr, long lease_ms);
int rlock_clientattr_getlease(const rlock_clientattr_t *attr, long *ret_lease_ms);
/* how long a silent waiter counts as alive, ms, 100 to 30,000: 3,000 */
int rlock_clientattr_setpresence(rlock_clientattr_t *attr, long presence_ms);
int rlock_clientattr_getpresence(const rlock_clientattr_t *attr, long *ret_presence_ms);
/* bound of a call that does not wait for a lock, ms, 10 to 3,600,000: 3,000 */
int rlock_clientattr_setcommandtimeout(rlock_clientattr_t *attr, long timeout_ms);
int rlock_clientattr_getcommandtimeout(const rlock_clientattr_t *attr,
                                       long *ret_timeout_ms);
/* bound of making a connection, ms, 10 to 3,600,000: 3,000 */
int rlock_clientattr_setconnecttimeout(rlock_clientattr_t *attr, long timeout_ms);
int rlock_clientattr_getconnecttimeout(const rlock_clientattr_t *attr,
                                       long *ret_timeout_ms);
/* most connections used by callers at once, 1 to 10,000: 16 (the two library
 * threads use one more each) */
int rlock_clientattr_setmaxconnections(rlock_clientattr_t *attr, int count);
int rlock_clientattr_getmaxconnections(const rlock_clientattr_t *attr, int *ret_count);
/* what an untouched mutex type means: RLOCK_MUTEX_RECURSIVE */
int rlock_clientattr_setmutextype(rlock_clientattr_t *attr, int type);
int rlock_clientattr_getmutextype(const rlock_clientattr_t *attr, int *ret_type);
/* the bounds of local hand-over of locks whose attributes say nothing of it, as
 * rlock_mutexattr_sethandoffms, ..count: 10 and 1,000 */
int rlock_clientattr_sethandoffms(rlock_clientattr_t *attr, long handoff_ms);
int rlock_clientattr_gethandoffms(const rlock_clientattr_t *attr, long *ret_handoff_ms);
int rlock_clientattr_sethandoffcount(rlock_clientattr_t *attr, int count);
int rlock_clientattr_gethandoffcount(const rlock_clientattr_t *attr, int *ret_count);
/* how long mutexes and read-write locks whose attributes say nothing of it are kept, as
 * rlock_mutexattr_setretain: 0 */
int rlock_clientattr_setretain(rlock_clientattr_t *attr, long retain_ms);
int rlock_clientattr_getretain(const rlock_clientattr_t *attr, long *ret_retain_ms);
/* The crash guard: whether a death of this process is seen by others of its host that use
 * the same server, or by rlock-guard(8), which then give its locks back at once; and
 * whether this client does so for others. RLOCK_GUARD_ON (the initial one): while it
 * waits for a lock; RLOCK_GUARD_ALWAYS: all the time; RLOCK_GUARD_OFF: neither. It needs
 * a directory, see rlock_getrundir; where there is none, leases end things as with
 * RLOCK_GUARD_OFF, and rlock_client_diagnose says why. */
#define RLOCK_GUARD_OFF 0
#define RLOCK_GUARD_ON 1
#define RLOCK_GUARD_ALWAYS 2
int rlock_clientattr_setguard(rlock_clientattr_t *attr, int guard);
int rlock_clientattr_getguard(const rlock_clientattr_t *attr, int *ret_guard);
/* user (NULL or "": the server's default user) and password, copied; NULL password:
 * none. ENAMETOOLONG: over 255 or 2,047 bytes. Credentials in the URL win. */
int rlock_clientattr_setcredentials(rlock_clientattr_t *attr, const char *user,
                                    const char *password);
/* NULL: none */
int rlock_clientattr_seteventcallback(rlock_clientattr_t *attr, rlock_event_fn fn,
                                      void *arg);
/* For rediss:// and valkeys://, of no effect for other URLs, whose parameters of the same
 * names win. Texts are copied, "" takes one away; all of them have 1,500 bytes together.
 *
 * cafile    authorities whose certificates a server may have (PEM, one or more)
 * cadir     the same, a directory as openssl-rehash(1) makes it
 *           neither: those of the system
 * certfile  the client's own certificate, for servers that want one (PEM; the
 *           certificates between it and its authority may follow)
 * keyfile   its key (PEM, without a passphrase); unset: it is in certfile
 * tlsname   the name or the address that the server's certificate has to be for; unset:
 *           the URL's host
 * verify    RLOCK_VERIFY_FULL (the initial one): the certificate comes from an authority
 *           and is for that name. RLOCK_VERIFY_CA: the first alone. There is no way to
 *           look at neither.
 *
 * Files are read by rlock_client_open; where one has changed, again before the next
 * connection. EINVAL: not initialized, NULL, another value of verify; ENAMETOOLONG;
 * ENOTSUP: built without TLS. Blocks: no. Threads: one at a time for each object. */
int rlock_clientattr_setcafile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setcadir(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setcertfile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setkeyfile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_settlsname(rlock_clientattr_t *attr, const char *name);
#define RLOCK_VERIFY_FULL 0
#define RLOCK_VERIFY_CA 1
int rlock_clientattr_setverify(rlock_clientattr_t *attr, int verify);
int rlock_clientattr_getverify(const rlock_clientattr_t *attr, int *ret_verify);

/* The directory of the crash guard, as a client that is opened now would use it:
 * $RLOCK_RUNDIR if it is set (to nothing: no guard), else /run/rlock if that exists and
 * the caller may write there, else $XDG_RUNTIME_DIR/rlock, else /dev/shm/rlock-<uid>. It
 * has to be on a tmpfs, owned by root or the caller's user, and writable by nobody else,
 * but by its group. The two last are made if need be, with mode 0700. ENOENT: there is
 * none to be used, and rlock_errmsg says why. ENAMETOOLONG: buf, of `size` bytes, is too
 * small. EINVAL. Blocks: no network. Since: 0.1 */
int rlock_getrundir(char *buf, size_t size);

/* ------------------------------------------------------- mutex attributes */

/* As pthread_mutexattr_*: EINVAL for a bad object or value; the object stays as it
 * was on failure. Blocks: no. Since: 0.1 */
int rlock_mutexattr_init(rlock_mutexattr_t *attr);
int rlock_mutexattr_destroy(rlock_mutexattr_t *attr);
int rlock_mutexattr_settype(rlock_mutexattr_t *attr, int type);
/* When never set: the mutextype of the attribute's client, which is what a mutex made
 * with it has; of a default client that is not open yet, what it would be opened with. */
int rlock_mutexattr_gettype(const rlock_mutexattr_t *attr, int *ret_type);
/* RLOCK_MUTEX_STALLED (default): who takes the lock after its holder's death gets 0.
 * RLOCK_MUTEX_ROBUST: one of them is told by EOWNERDEAD; see rlock_mutex_consistent. */
int rlock_mutexattr_setrobust(rlock_mutexattr_t *attr, int robust);
int rlock_mutexattr_getrobust(const rlock_mutexattr_t *attr, int *ret_robust);
int rlock_mutexattr_setrobust_np(rlock_mutexattr_t *attr, int robust);
int rlock_mutexattr_getrobust_np(const rlock_mutexattr_t *attr, int *ret_robust);
/* RLOCK_PROCESS_PRIVATE (default). RLOCK_PROCESS_SHARED: the handle lies in memory that
 * processes share, and may name no explicit client */
int rlock_mutexattr_setpshared(rlock_mutexattr_t *attr, int pshared);
int rlock_mutexattr_getpshared(const rlock_mutexattr_t *attr, int *ret_pshared);
/* RLOCK_PRIO_INHERIT has no effect; RLOCK_PRIO_PROTECT: ENOTSUP */
int rlock_mutexattr_setprotocol(rlock_mutexattr_t *attr, int protocol);
int rlock_mutexattr_getprotocol(const rlock_mutexattr_t *attr, int *ret_protocol);
/* ENOTSUP */
int rlock_mutexattr_setprioceiling(rlock_mutexattr_t *attr, int ceiling);
int rlock_mutexattr_getprioceiling(const rlock_mutexattr_t *attr, int *ret_ceiling);
/* lease in ms of the forms without lease_ms: 0 (the client's default) or 50 to
 * 86,400,000; renewed by the watchdog in any case */
int rlock_mutexattr_setlease(rlock_mutexattr_t *attr, long lease_ms);
int rlock_mutexattr_getlease(const rlock_mutexattr_t *attr, long *ret_lease_ms);
/* 1: each hold has a token (S3); 0, the default: none. The token is another, and greater,
 * each time that the mutex is locked, but for a re-entry. It is a number that grows, with
 * gaps, and no time. Of a new name it stays below 2^53 until the year 2255, and so exact
 * in a double; where the name's counter was above, it goes on from there. Threads of a
 * process that pass the mutex on are given a million in a second at most.
 */
int rlock_mutexattr_setfencing(rlock_mutexattr_t *attr, int fencing);
int rlock_mutexattr_getfencing(const rlock_mutexattr_t *attr, int *ret_fencing);
/* Threads of a process that wait for the same mutex pass it on among themselves without
 * the server. While another process waits for it, too, for so many ms at most, 0 to
 * 86,400,000, and so many sections, 0 to 1,000,000,000, whichever ends first. 0 in
 * either: never, each unlock gives it back to the server. Never set: the client's, 10 and
 * 1,000. No effect on a fair lock, which each thread queues for at the server. */
int rlock_mutexattr_sethandoffms(rlock_mutexattr_t *attr, long handoff_ms);
int rlock_mutexattr_gethandoffms(const rlock_mutexattr_t *attr, long *ret_handoff_ms);
int rlock_mutexattr_sethandoffcount(rlock_mutexattr_t *attr, int count);
int rlock_mutexattr_gethandoffcount(const rlock_mutexattr_t *attr, int *ret_count);
/* After an unlock the process keeps the mutex for so many ms, 0 to 86,400,000, while
 * nobody takes it: taking it again needs no server. Whoever else wants it is given it at
 * once, or after a third of the presence if a message is lost. 0: not. Never set: the
 * client's, 0. For a mutex that one process takes much more often than all others
 * together: each time that another one takes it costs a message more, and a process that
 * is killed or stopped while it keeps it holds up the others for a presence, or for its
 * lease if a thread was inside when it asked the server last. Each costs a request for
 * every third of a presence, one a second at least; of a client 1,024 are kept, no more.
 * A client of Redisson's that waits is given it, one that only tries again and again is
 * not seen. Not kept: fixed leases, fair locks; and nothing, while the client's mailbox
 * is not subscribed. A robust mutex that was kept for a third of a presence costs a round
 * trip when it is taken again: the server is told that somebody is inside; who dies
 * before that is no dead owner. */
int rlock_mutexattr_setretain(rlock_mutexattr_t *attr, long retain_ms);
int rlock_mutexattr_getretain(const rlock_mutexattr_t *attr, long *ret_retain_ms);
/* RLOCK_OUTAGE_WAIT (default), _FAIL, _ABORT */
int rlock_mutexattr_setoutage(rlock_mutexattr_t *attr, int outage);
int rlock_mutexattr_getoutage(const rlock_mutexattr_t *attr, int *ret_outage);
/* NULL, the default: the default client. An explicit client cannot be named by a
 * handle that processes share: ENOTSUP at init. */
int rlock_mutexattr_setclient(rlock_mutexattr_t *attr, rlock_client_t *client);
int rlock_mutexattr_getclient(const rlock_mutexattr_t *attr, rlock_client_t **ret_client);

/* ------------------------------------------------------------------- mutex */

/*
 * Makes a handle. Never talks to the server.
 * attr  NULL: defaults.   name  NULL: a fresh unique name is made up and kept in
 * the handle.
 * EINVAL        NULL mutex, bad attribute or name, its client is closed
 * ENAMETOOLONG  over RLOCK_NAME_MAX bytes
 * ENOTSUP       RLOCK_PROCESS_SHARED with an explicit client
 * Over a handle in use: with the same name it stays the same lock, with its holder; with
 * another or a fresh one, the old lock stays held until its thread unlocks it by another
 * handle of its name (a copy) or ends. Calls that others make meanwhile may say
 * EINVAL. A process that dies inside leaves a handle that gives EINVAL; it may be made
 * again. Blocks: no. Threads: not while others use this handle. Since: 0.1
 */
int rlock_mutex_init(rlock_mutex_t *mutex, const rlock_mutexattr_t *attr,
                     const char *name);

/* Ends a handle; the lock in Redis is not touched. EBUSY, and nothing changed, while this
 * process holds it or waits for it (a lost hold is none); 0 when only others do; EINVAL.
 * The memory may then be used for something else, even if the unlock of an earlier holder
 * has not returned yet. Blocks: no network. Since: 0.1 */
int rlock_mutex_destroy(rlock_mutex_t *mutex);

/*
 * Takes the lock (S1). On 0 the calling thread holds it for a lease that the
 * watchdog renews until unlock.
 *
 * The holder itself: RECURSIVE 0 and one level more, without a round trip;
 * ERRORCHECK and NORMAL EDEADLK. In detail:
 *   EDEADLK     the calling thread holds it, and the type is not RECURSIVE
 *   EAGAIN      RECURSIVE, too many levels
 *   ESTALE      the calling thread's hold was lost and is not drained by unlock
 *   ECANCELED   rlock_client_interrupt
 *   EINVAL, ENAMETOOLONG   bad handle
 *   ENOTCONN    only with RLOCK_OUTAGE_FAIL
 *   EACCES, EPROTO, ENOMEM, EAGAIN   see the top of this file
 *   EOWNERDEAD  robust: the caller HOLDS the lock, as with 0, but the holder before
 *               died, or lost its lease, in its section: rlock_mutex_consistent
 *   ENOTRECOVERABLE   a robust lock of this name was unlocked without that
 * On any code but 0 and EOWNERDEAD the lock is as it was for the caller.
 * Blocks: until it has the lock, through outages too. Threads: any.
 * Fork: the child owns nothing of its parent's. Since: 0.1
 */
int rlock_mutex_lock(rlock_mutex_t *mutex);

/* One attempt; never queues. EBUSY: held by another thread, process or client (or
 * by the caller, when not RECURSIVE). Else as rlock_mutex_lock; ENOTCONN when the
 * server did not answer. Blocks: up to the command timeout (L7). Since: 0.1 */
int rlock_mutex_trylock(rlock_mutex_t *mutex) RLOCK_MUST_CHECK;

/* As lock, until `abstime` of CLOCK_REALTIME: ETIMEDOUT when it was busy until
 * then, ENOTCONN when no server could be asked. One attempt is made even when the
 * deadline has passed. EINVAL: tv_nsec out of range and the call would wait.
 * NORMAL: ETIMEDOUT at the deadline for the holder itself, as in glibc.
 * Blocks: until the deadline plus at most 100 ms (L7). Since: 0.1 */
int rlock_mutex_timedlock(rlock_mutex_t *mutex,
                          const struct timespec *abstime) RLOCK_MUST_CHECK;

/* As timedlock on CLOCK_REALTIME or CLOCK_MONOTONIC; others: EINVAL. */
int rlock_mutex_clocklock(rlock_mutex_t *mutex, clockid_t clock,
                          const struct timespec *abstime) RLOCK_MUST_CHECK;

/*
 * Gives up one level; the last one releases the lock and hands it to a waiter.
 * 0        exclusion was unbroken (the release itself may be finished in the
 *          background when the server cannot be reached at this moment)
 * ESTALE   the lease was lost before; one level was drained
 * EPERM    the calling thread does not hold it
 * EINVAL   bad handle
 * Blocks: up to the command timeout (L7). Since: 0.1
 */
int rlock_mutex_unlock(rlock_mutex_t *mutex);

/*
 * After EOWNERDEAD: the caller has put in order what the lock protects. Without it the
 * last unlock makes the lock ENOTRECOVERABLE for all who want it, also through other
 * handles of its name, until rlock_force_unlock; waiters are told. EOWNERDEAD is told to
 * one locker at a time, to the next one if he dies in turn, and for 7 days at the
 * longest. What a robust lock counts as a death: the process ends, its thread ends, or
 * the lease ends, before the last unlock. Redisson and handles that are not robust take
 * the lock with 0; the next robust one is told then.
 * EINVAL  the calling thread holds no robust lock in that state;  ESTALE  it is lost
 * Blocks: no network. Since: 0.1
 */
int rlock_mutex_consistent(rlock_mutex_t *mutex);
int rlock_mutex_consistent_np(rlock_mutex_t *mutex);

/* ENOTSUP (EINVAL for a bad handle). Since: 0.1 */
int rlock_mutex_getprioceiling(const rlock_mutex_t *mutex, int *ret_ceiling);
int rlock_mutex_setprioceiling(rlock_mutex_t *mutex, int ceiling, int *ret_old);

/* The same with a lease. lease_ms 0: as the forms above. 50 to 86,400,000: a fixed
 * lease that is never renewed and ends by itself; other values: EINVAL. A re-entry
 * keeps the lease of its hold. Since: 0.1 */
int rlock_mutex_lock_lease(rlock_mutex_t *mutex, long lease_ms);
int rlock_mutex_trylock_lease(rlock_mutex_t *mutex, long lease_ms) RLOCK_MUST_CHECK;
int rlock_mutex_timedlock_lease(rlock_mutex_t *mutex, const struct timespec *abstime,
                                long lease_ms) RLOCK_MUST_CHECK;
int rlock_mutex_clocklock_lease(rlock_mutex_t *mutex, clockid_t clock,
                                const struct timespec *abstime,
                                long lease_ms) RLOCK_MUST_CHECK;

/* The calling thread's lease starts anew with this length, fixed; 0: renewed by
 * the watchdog from now on. EPERM: not the holder; ESTALE: lost; EINVAL: length;
 * ENOTCONN: unconfirmed, the lease is as it was. Blocks: up to the command
 * timeout. Since: 0.1 */
int rlock_mutex_extend(rlock_mutex_t *mutex, long lease_ms);

typedef enum {
    RLOCK_UNHELD,  /* the calling thread does not hold it */
    RLOCK_SAFE,    /* held, and renewals are confirmed */
    RLOCK_AT_RISK, /* held, but a third of the lease or less is left */
    RLOCK_LOST     /* the lease ended */
} rlock_state_t;

/* Queries of the calling thread's hold, without a round trip. EINVAL: bad handle or
 * NULL. Blocks: no. Since: 0.1
 * gettoken      EPERM when it holds nothing; ENOTSUP when taken without fencing
 * getremaining  ms until this hold is no longer proven, 0 when lost; EPERM
 * getstate      see rlock_state_t
 * getholdcount  levels, 0 when it does not hold it (a lost hold keeps its levels
 *               until they are unlocked) */
int rlock_mutex_gettoken(const rlock_mutex_t *mutex, uint64_t *ret_token);
int rlock_mutex_getremaining(const rlock_mutex_t *mutex, long *ret_ms);
int rlock_mutex_getstate(const rlock_mutex_t *mutex, rlock_state_t *ret_state);
int rlock_mutex_getholdcount(const rlock_mutex_t *mutex, unsigned *ret_count);

/* --------------------------------------------------------------- fair lock */

/*
 * A lock that goes to its waiters in the order in which their requests reached the
 * server, over all threads of all processes of all hosts (L5). Everything else is as with
 * the mutex: attributes, leases, re-entry, tokens, queries, codes, and each function is
 * that of rlock_mutex_* with the same name. What is different:
 *   - Nobody comes first but in turn. A free lock is not taken past a waiter: trylock
 *     and a deadline that has passed give EBUSY and ETIMEDOUT while somebody waits who
 *     is alive, also when nobody holds the lock at this moment.
 *   - Each waiting thread queues at the server on its own. One that times out leaves the
 *     queue at once, and those behind it move up.
 *   - A waiter keeps its place while its process is alive and can be reached. One that
 *     was stopped or cut off for longer than the client's presence (3 s by default)
 *     queues again, at the end. One whose subscription is down at the moment of its turn
 *     is passed over and keeps its place. When the queue itself is lost (evicted or
 *     deleted), waiters queue again by themselves, and their order begins anew.
 *   - A mutex or a read-write lock of the same name, or a Redisson lock, is another
 *     holder of this one (S5); their users are in no order with its waiters.
 * Since: 0.1
 */
int rlock_fair_init(rlock_fair_t *fair, const rlock_mutexattr_t *attr, const char *name);
int rlock_fair_destroy(rlock_fair_t *fair);
int rlock_fair_lock(rlock_fair_t *fair);
int rlock_fair_trylock(rlock_fair_t *fair) RLOCK_MUST_CHECK;
int rlock_fair_timedlock(rlock_fair_t *fair,
                         const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_fair_clocklock(rlock_fair_t *fair, clockid_t clock,
                         const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_fair_unlock(rlock_fair_t *fair);
int rlock_fair_consistent(rlock_fair_t *fair);
int rlock_fair_consistent_np(rlock_fair_t *fair);
int rlock_fair_getprioceiling(const rlock_fair_t *fair, int *ret_ceiling);
int rlock_fair_setprioceiling(rlock_fair_t *fair, int ceiling, int *ret_old);
int rlock_fair_lock_lease(rlock_fair_t *fair, long lease_ms);
int rlock_fair_trylock_lease(rlock_fair_t *fair, long lease_ms) RLOCK_MUST_CHECK;
int rlock_fair_timedlock_lease(rlock_fair_t *fair, const struct timespec *abstime,
                               long lease_ms) RLOCK_MUST_CHECK;
int rlock_fair_clocklock_lease(rlock_fair_t *fair, clockid_t clock,
                               const struct timespec *abstime,
                               long lease_ms) RLOCK_MUST_CHECK;
int rlock_fair_extend(rlock_fair_t *fair, long lease_ms);
int rlock_fair_gettoken(const rlock_fair_t *fair, uint64_t *ret_token);
int rlock_fair_getremaining(const rlock_fair_t *fair, long *ret_ms);
int rlock_fair_getstate(const rlock_fair_t *fair, rlock_state_t *ret_state);
int rlock_fair_getholdcount(const rlock_fair_t *fair, unsigned *ret_count);

/* --------------------------------------------------------- read-write lock */

/* As rlock_mutexattr_*. Since: 0.1 */
int rlock_rwlockattr_init(rlock_rwlockattr_t *attr);
int rlock_rwlockattr_destroy(rlock_rwlockattr_t *attr);
/*
 * Who comes first when readers and writers wait:
 *   RLOCK_RWLOCK_PHASE_FAIR_NP    the initial one. Reading and writing alternate: readers
 *       that come queue behind a writer who waits; a writer's unlock lets in all readers
 *       that wait at that moment; the last reader's unlock lets in the next writer. So a
 *       writer who is first waits for at most the readers that were in or queued when the
 *       reading began, and a reader for at most one writer (L6).
 *   RLOCK_RWLOCK_PREFER_READER_NP (and _DEFAULT_NP when set)   readers join a reading
 * past writers who wait: a stream of readers can keep them out for ever.
 *   RLOCK_RWLOCK_PREFER_WRITER_NP, _PREFER_WRITER_NONRECURSIVE_NP   a writer hands over
 * to the next writer: a stream of writers can keep readers out for ever. The second one
 *       is the same; reading again is never refused here.
 * Each request is served as its own handle says, so give all handles of a name one kind.
 */
int rlock_rwlockattr_setkind_np(rlock_rwlockattr_t *attr, int kind);
int rlock_rwlockattr_getkind_np(const rlock_rwlockattr_t *attr, int *ret_kind);
int rlock_rwlockattr_setpshared(rlock_rwlockattr_t *attr, int pshared);
int rlock_rwlockattr_getpshared(const rlock_rwlockattr_t *attr, int *ret_pshared);
int rlock_rwlockattr_setlease(rlock_rwlockattr_t *attr, long lease_ms);
int rlock_rwlockattr_getlease(const rlock_rwlockattr_t *attr, long *ret_lease_ms);
/* As rlock_mutexattr_setretain, for both modes. What is kept after an unlock of a reader
 * lets threads of the process read again without the server, also several, and also while
 * others of it read; until a writer wants the lock: from then on those who come queue
 * behind him, and he gets it when those inside have left. So he waits for those who read
 * when he came, and those let in until the message arrived; a third of the presence if it
 * is lost. A mutex or a fair lock of the same name that waits for readers is seen no
 * sooner. What is kept after an unlock of a writer is given back when anybody else, also
 * of this process, wants to read. */
int rlock_rwlockattr_setretain(rlock_rwlockattr_t *attr, long retain_ms);
int rlock_rwlockattr_getretain(const rlock_rwlockattr_t *attr, long *ret_retain_ms);
int rlock_rwlockattr_setfencing(rlock_rwlockattr_t *attr, int fencing);
int rlock_rwlockattr_getfencing(const rlock_rwlockattr_t *attr, int *ret_fencing);
int rlock_rwlockattr_setoutage(rlock_rwlockattr_t *attr, int outage);
int rlock_rwlockattr_getoutage(const rlock_rwlockattr_t *attr, int *ret_outage);
int rlock_rwlockattr_setclient(rlock_rwlockattr_t *attr, rlock_client_t *client);
int rlock_rwlockattr_getclient(const rlock_rwlockattr_t *attr,
                               rlock_client_t **ret_client);

/*
 * A lock that many may hold to read, or one to write (S1). Handles, leases, losses,
 * tokens and codes are as with the mutex: where nothing is said here, a function is that
 * of rlock_mutex_* with the same name.
 *   - Both modes are reentrant for each thread, without a round trip. A thread that reads
 *     may read again also while a writer waits. A writer may read and write again.
 *   - A reader that asks to write gets EDEADLK at once, of whatever form; the try forms
 *     EBUSY.
 *   - EAGAIN: too many levels, or no memory to note one.
 *   - Each reader has a lease of its own, and a loss is told to him alone; threads of one
 *     process that read at the same time, without a fixed lease, share one at the server.
 *   - Fencing: a writer's token is greater than that of every earlier writer and reader;
 *     readers who read together may have the same one.
 *   - A mutex or fair lock of the same name, or a Redisson lock, is another holder of
 * this one (S5). Readers that wait for one find it free up to presence/3 (1 s) late.
 * ENOTRECOVERABLE: a robust one of this name was spoilt, see rlock_mutex_consistent.
 * Since: 0.1
 */
int rlock_rwlock_init(rlock_rwlock_t *rwlock, const rlock_rwlockattr_t *attr,
                      const char *name);
int rlock_rwlock_destroy(rlock_rwlock_t *rwlock);

/* To read. As rlock_mutex_lock, trylock, timedlock, clocklock and their forms with a
 * lease, but for the above. A try is EBUSY while a writer holds the lock, or one who is
 * alive waits for it (not with PREFER_READER). */
int rlock_rwlock_rdlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_tryrdlock(rlock_rwlock_t *rwlock) RLOCK_MUST_CHECK;
int rlock_rwlock_timedrdlock(rlock_rwlock_t *rwlock,
                             const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_rwlock_clockrdlock(rlock_rwlock_t *rwlock, clockid_t clock,
                             const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_rwlock_rdlock_lease(rlock_rwlock_t *rwlock, long lease_ms);
int rlock_rwlock_tryrdlock_lease(rlock_rwlock_t *rwlock, long lease_ms) RLOCK_MUST_CHECK;
int rlock_rwlock_timedrdlock_lease(rlock_rwlock_t *rwlock, const struct timespec *abstime,
                                   long lease_ms) RLOCK_MUST_CHECK;
int rlock_rwlock_clockrdlock_lease(rlock_rwlock_t *rwlock, clockid_t clock,
                                   const struct timespec *abstime,
                                   long lease_ms) RLOCK_MUST_CHECK;

/* To write. EDEADLK: the calling thread reads. A try is EBUSY while anybody else holds
 * the lock, or waits for a free one and is alive. */
int rlock_rwlock_wrlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_trywrlock(rlock_rwlock_t *rwlock) RLOCK_MUST_CHECK;
int rlock_rwlock_timedwrlock(rlock_rwlock_t *rwlock,
                             const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_rwlock_clockwrlock(rlock_rwlock_t *rwlock, clockid_t clock,
                             const struct timespec *abstime) RLOCK_MUST_CHECK;
int rlock_rwlock_wrlock_lease(rlock_rwlock_t *rwlock, long lease_ms);
int rlock_rwlock_trywrlock_lease(rlock_rwlock_t *rwlock, long lease_ms) RLOCK_MUST_CHECK;
int rlock_rwlock_timedwrlock_lease(rlock_rwlock_t *rwlock, const struct timespec *abstime,
                                   long lease_ms) RLOCK_MUST_CHECK;
int rlock_rwlock_clockwrlock_lease(rlock_rwlock_t *rwlock, clockid_t clock,
                                   const struct timespec *abstime,
                                   long lease_ms) RLOCK_MUST_CHECK;

/*
 * Gives up one level: unlock the innermost one taken, rdunlock and wrunlock the innermost
 * of that mode. The last level releases the lock. A writer who gives up his last write
 * level while he still has read levels is downgraded. Codes as rlock_mutex_unlock; also
 *   EPERM          the calling thread has no level (of that mode)
 *   EACCES, EPROTO the server refused: when downgraded, the thread reads, but others are
 *                  kept out until its lease ends or the server lets them in
 * Blocks: up to the command timeout (L7). Since: 0.1
 */
int rlock_rwlock_unlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_rdunlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_wrunlock(rlock_rwlock_t *rwlock);

/* A writer becomes a reader, with all its levels, and nobody writes in between; readers
 * who wait may join it. While the server cannot be reached, the library goes on telling
 * it. EPERM: the calling thread does not write; ESTALE: lost before. Blocks: up to the
 * command timeout (L7). Since: 0.1 */
int rlock_rwlock_downgrade(rlock_rwlock_t *rwlock);

/* Of a reader that shares its hold, a fixed lease makes it one of its own. */
int rlock_rwlock_extend(rlock_rwlock_t *rwlock, long lease_ms);
/* getholdcount: the write levels, or the read levels of who does not write */
int rlock_rwlock_gettoken(const rlock_rwlock_t *rwlock, uint64_t *ret_token);
int rlock_rwlock_getremaining(const rlock_rwlock_t *rwlock, long *ret_ms);
int rlock_rwlock_getstate(const rlock_rwlock_t *rwlock, rlock_state_t *ret_state);
int rlock_rwlock_getholdcount(const rlock_rwlock_t *rwlock, unsigned *ret_count);

/* ---------------------------------------------------------- administration */

typedef struct rlock_party {
    const char *owner;  /* the id at the server; "": of readers that it has lost */
    const char *client; /* "host:pid:program" where known, else "" */
    rlock_mode_t mode;
    long since_ms;      /* held, or waited for, this long; -1 when unknown */
    long lease_left_ms; /* of a holder, -1 when it never ends: a key without a TTL, by
                           others; of a waiter, until it counts as gone */
} rlock_party_t;

typedef struct rlock_info {
    const char *name;
    rlock_type_t type; /* of the holder; of the first waiter when nobody holds it */
    uint64_t token;    /* of the holder, 0 without fencing; of what is passed on, at most
                          his */
    size_t holder_count;
    const rlock_party_t *holders;
    size_t waiter_count;
    const rlock_party_t *waiters; /* in the order in which they asked */
} rlock_info_t;

/* Who holds a lock and who waits for it. The result belongs to the caller, who
 * frees it with rlock_info_free (NULL is fine). client NULL: the default client.
 * ENOENT: neither held nor waited for. EINVAL, ENAMETOOLONG. Blocks: up to the
 * command timeout. Since: 0.1 */
int rlock_inspect(rlock_client_t *client, const char *name, rlock_info_t **ret_info);
void rlock_info_free(rlock_info_t *info);

/* Takes the lock from whoever holds it (as seen by this call: never from a later
 * holder), clears the marks of robust locks (owner died, not recoverable) and hands it
 * over. Of a lock that nobody holds it clears the marks. The holder is told a loss at
 * once; if its mailbox is cut off at this moment, at its next renewal. ENOENT: nobody
 * holds it, and it has no mark. EINVAL, ENAMETOOLONG. Blocks: up to the command timeout.
 * Since: 0.1 */
int rlock_force_unlock(rlock_client_t *client, const char *name);

/* Calls `each` for every held lock whose name matches the glob `pattern` (NULL: all);
 * a non-zero result of `each` ends the walk and is returned. A pattern without *, ? and [
 * is a name, of which alone is asked (a backslash stands before a byte that means
 * nothing). Others walk all keys of the database, 200 a request, by SCAN, which takes the
 * server about a second for a million of them: a lock that is held throughout is
 * seen, others may be. A lock that the ACL hides is left out of a walk, and EACCES when
 * asked for by its name. Needs a server >= 6.0. `each` runs on the calling thread,
 * with no library mutex held, and is not cancelled. ECANCELED: it forked and returned,
 * and this is the child. Blocks: up to the command timeout for each request. Since: 0.1
 */
int rlock_list(rlock_client_t *client, const char *pattern,
               int (*each)(const rlock_info_t *info, void *arg), void *arg);

/* Waits until nobody holds the lock, without taking it; abstime in CLOCK_REALTIME,
 * NULL: no deadline. ETIMEDOUT, ENOTCONN, ECANCELED, EINVAL. Since: 0.1 */
int rlock_waitfree(rlock_client_t *client, const char *name,
                   const struct timespec *abstime);

typedef struct rlock_finding {
    int severity;      /* as in syslog(3): LOG_INFO, LOG_NOTICE: well, or to be known;
                          LOG_WARNING: locks work, but; LOG_ERR, LOG_CRIT: they do not
                          work here, or are not safe */
    const char *topic; /* what it is about, a word or two that programs may compare */
    const char *text;  /* what is, what it means for locks, what to do; no secrets */
} rlock_finding_t;     /* fields are only added at the end; valid during the call */

/*
 * Looks whether the client's server is fit for locks; NULL: the default client. Calls
 * `each` for every finding, at least one of each topic: "version", "cluster", "replicas",
 * "persistence", "eviction", "memory", "connections", "buffers", "clock", "round trip",
 * "acl", "access", "scripts", "leases", "messages", "guard"; others may come. A non-zero
 * result of `each` ends the call and is returned.
 *
 * Asks for INFO, HELLO where that tells no version, CONFIG GET (of a dozen settings, none
 * of them secret) and what its own user may do (ACL GETUSER); what the server refuses is
 * a finding, not a failure. Rights are found out by commands that change nothing; those
 * that are refused are in its ACL LOG. One key, rlock:{...}:probe:..., is set for 50 ms
 * to see whether leases end. The client's mailbox gets a message, which counts in
 * messages_ignored.
 *
 * `each` runs on the calling thread, with no library mutex held, and is not cancelled; it
 * may call any function of the library but rlock_client_close of this client (EBUSY).
 * From an event callback, whose thread is the one that reads messages, whether they
 * arrive cannot be looked at: the finding says so.
 *
 * EINVAL     no such client, or `each` is NULL
 * ENOTCONN   the server cannot be reached, or does not answer in time; findings may have
 *            been told before
 * EACCES     it refuses the credentials, or TIME, without which nothing works
 * EPROTO     what answers is no such server, or a proxy that does not pass on what locks
 *            need
 * ECANCELED  `each` forked and returned, and this is the child
 * Blocks: up to the command timeout for each request, of which there are about eighty;
 * for a second where leases never end.
 * Threads: any. Fork: the child may not go on with it. Since: 0.1
 */
int rlock_client_diagnose(rlock_client_t *client,
                          int (*each)(const rlock_finding_t *finding, void *arg),
                          void *arg);

/* ---------------------------------------------------------- errors and log */

/* One sentence for a code of this library, static. */
const char *rlock_strerror(int code);

/* What happened in the calling thread's last call, in detail; "" after success;
 * never a secret. Valid until the thread's next call. */
const char *rlock_errmsg(void);

/* RLOCK_VERSION of the library that runs. */
const char *rlock_version(void);

/* Where log lines go; NULL: nowhere, the default. Levels as in syslog(3), lines above
 * max_level are dropped: 3 losses, threads that ended holding, a refused subscription; 4
 * leases at risk, outages, requests of the library's threads that are refused, processes
 * of this host that died holding, no crash guard any more; 6 what is well again, no crash
 * guard; 7 connections that are replaced, processes that died holding nothing. One line
 * each, without a newline, as
 *   rlock: lost "orders" after 31.2 s: server unreachable for 30.1 s
 * doc/OBSERVABILITY.md lists them. What a call returns is not logged. Many of a kind in
 * one second are cut, and the next line says how many were. `log` may run on any thread,
 * with no library mutex held, and must not call the library. Since: 0.1 */
void rlock_setlogger(void (*log)(int level, const char *line, void *arg), void *arg,
                     int max_level);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
