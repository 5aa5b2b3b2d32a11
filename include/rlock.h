/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock: distributed locks in Redis or Valkey with the interface of pthreads.
 *
 * Every function returns 0 or a positive errno value unless its declaration
 * shows another type, leaves errno alone, never returns EINTR, and is not a
 * cancellation point. NULL, zeroed or destroyed handles give EINVAL. The
 * letters S1-S5 and L1-L7 name the guarantees of doc/design/guarantees.md.
 *
 * Every function that sends a request to the server may also return:
 *   ENOTCONN  no server could be reached before the deadline; with replicas=: or too few
 *             replicas confirmed the lock, which was given back
 *   EACCES    the server refused the credentials or an ACL rule; with TLS also: the
 *             client or the server did not accept the other's certificate
 *   EPROTO    the reply was unexpected, or a key of this name holds foreign data
 *             (the data stays untouched; a hash counts as a held lock, whatever
 *             program wrote it)
 *   ENOMEM    out of memory; nothing changed (unless the memory was lacking for the
 *             reply: then the server may have executed the request)
 *   EAGAIN    a library thread could not be started, or the system refuses a step
 *             that it needs (a sandbox; then rlock_errmsg() names the step)
 *   EMFILE, ENFILE  no descriptor is left for a thread or a connection
 * rlock_errmsg() describes the calling thread's last failure in detail.
 *
 * Threads: any thread may call any function. A signal handler may only call
 * rlock_client_interrupt, and must not leave a function of the library by longjmp.
 * The library gives up the locks of a thread that ends, see RLOCK_EVENT_OWNER_DIED.
 * exit() gives up the locks of the calling thread within a second; but if a signal
 * handler that interrupted the library calls exit(), their leases end them.
 * Cancellation is off inside every function and in the callbacks that it calls: a
 * request takes effect after the function returns. A thread needs 32 KiB of stack,
 * which is more than PTHREAD_STACK_MIN; with rediss:// 64 KiB.
 *
 * Fork: the child owns no lock of its parent; the parent's locks stay the parent's.
 * Handles and clients continue to work in the child: at its first use of the library
 * the child becomes a party of its own, with its own threads and connections. In a
 * child forked by a callback only exec and _exit are safe. A signal handler may call
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

/* Where time_t may have 32 or 64 bits (glibc on 32-bit systems, by _TIME_BITS), the
 * library has two functions for each name that takes a struct timespec, and the
 * program calls the one for its choice, as with pthread's. (For a lookup by name:
 * there the plain name is for 32 bits, NAME_time64 for 64.) */
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

/* As on 64-bit systems. */
#if defined(__GNUC__)
#define RLK_ALIGNED_8 __attribute__((aligned(8)))
#else
#define RLK_ALIGNED_8
#endif

/* ------------------------------------------------------------------ names */

/* The longest name of a lock, in bytes, without the NUL. A name is any non-empty
 * NUL-terminated string of bytes, with two exceptions that give EINVAL: it may contain
 * '{' and '}' only as one valid cluster hash tag ("{user1}:orders"), and it may not
 * begin with "rlock:" or "redisson_". */
#define RLOCK_NAME_MAX 200

/* ------------------------------------------------------ constants as pthread's */

/* Numbers, because strict C11 hides pthread's names; the library's build asserts that
 * they are equal. */
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
#define RLOCK_RWLOCK_PHASE_FAIR_NP 16 /* has no twin in pthread; the default kind */

/* What a call without a deadline does while no server can be reached. */
#define RLOCK_OUTAGE_WAIT 0 /* waits until the server is back */
#define RLOCK_OUTAGE_FAIL 1 /* returns ENOTCONN after the command timeout */
#define RLOCK_OUTAGE_ABORT                                                               \
    2 /* waits; abort() instead of a code that the pthread                               \
         function could never have returned */

/* ----------------------------------------------------------------- objects */

/* A connected party to the locks: connections, identity, defaults. Opaque. */
typedef struct rlock_client rlock_client_t;

/* The contents of a handle: plain data without pointers, 256 bytes, aligned at 8, the
 * same for programs of 32 and 64 bits. A handle may be static, copied, inherited over
 * fork, or in shared memory. The process holds all live state and finds it by client,
 * kind and name: two handles with one name are one lock (S5). The fields belong to the
 * library. */
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

/* A mutex. When it becomes free, any requester may get it; no order is promised. */
typedef struct rlock_mutex {
    struct rlk_handle rlk;
} rlock_mutex_t;

/* A fair lock: its waiters get it in the order of their requests (L5). */
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

/* A read-write lock. Phase-fair by default (L6). */
typedef struct rlock_rwlock {
    struct rlk_handle rlk;
} rlock_rwlock_t;

/* The contents of an attributes object: 128 bytes. The fields belong to the library. */
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
    RLOCK_EVENT_AT_RISK,    /* the lease was not renewed for most of its length */
    RLOCK_EVENT_SAFE_AGAIN, /* the lease was renewed in time after all */
    RLOCK_EVENT_LOST, /* the lease ended before unlock; not sent for a loss that unlock
                         itself finds and reports by ESTALE */
    RLOCK_EVENT_OWNER_DIED, /* a thread ended while it held the lock; or a process of this
                               host died with the lock, and this client released it */
    RLOCK_EVENT_DISCONNECTED, /* the server is unreachable; name is "" */
    RLOCK_EVENT_CONNECTED     /* the server is reachable again; name is "" */
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
    const char *reason; /* one line, valid during the call; the text of the log line with
                           its duration: "server unreachable for 30.1 s" */
} rlock_event_t;

/* Called on a library thread with no library mutex held; may call any function of the
 * library. While it runs, further events wait, and wake-ups may wait, too (waiters
 * then find their grants within presence/3): keep it short. It has 256 KiB of stack,
 * and all signals are blocked. After exit() has run the program's own handlers it is
 * not called any more. */
typedef void (*rlock_event_fn)(const rlock_event_t *event, void *arg);

/* ------------------------------------------------------------------ client */

/* Attributes of a client: 4,096 bytes. The fields belong to the library. */
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
    int32_t rlk_replicas;
    int32_t rlk_waitaof;
    int64_t rlk_maxskew_ms;
    uint8_t rlk_reserved[152 + 2 * (8 - sizeof(void *))];
} rlock_clientattr_t;

/* Durations by powers of two of a microsecond: buckets[0] counts those below 1 us,
 * buckets[i] those from 2^(i-1) us to below 2^i us, the last bucket all longer ones.
 * So a quantile is known within a factor of two (doc/OBSERVABILITY.md). The mean is
 * sum_us / count. */
#define RLOCK_HISTOGRAM_BUCKETS 40
typedef struct rlock_histogram {
    uint64_t count;  /* of all buckets */
    uint64_t sum_us; /* of the durations, before rounding to microseconds */
    uint64_t max_us;
    uint64_t buckets[RLOCK_HISTOGRAM_BUCKETS];
} rlock_histogram_t;

/* Counters of a client since it was opened, and gauges ("now"): 4,096 bytes. */
typedef struct rlock_stats {
    uint64_t holds_now; /* acquisitions held now; threads that share a read hold count as
                           one */
    uint64_t waiters_now;      /* threads that wait for a lock now */
    uint64_t acquisitions;     /* locks taken, without re-entries */
    uint64_t reentries;        /* locks taken again by their holder */
    uint64_t releases;         /* unlocks of the outermost level */
    uint64_t waits;            /* calls that were queued, or waited for another thread */
    uint64_t grants;           /* locks received from another holder's release */
    uint64_t grants_orphaned;  /* grants for a call that had ended; released at once */
    uint64_t local_handovers;  /* hand-offs between threads without the server */
    uint64_t timeouts;         /* calls that ended with ETIMEDOUT */
    uint64_t cancels;          /* waiters withdrawn at the server */
    uint64_t round_trips;      /* requests with a reply, of all threads */
    uint64_t renewals;         /* renewals confirmed */
    uint64_t renewal_failures; /* renewals refused, without a reply, or not sent */
    uint64_t refreshes;        /* presence refreshes confirmed */
    uint64_t losses;           /* leases lost */
    uint64_t owners_died;      /* threads that ended while they held a lock */
    uint64_t connects;         /* connections made */
    uint64_t connect_failures; /* failed attempts to connect */
    uint64_t reconnects; /* connections of the library threads that replaced another */
    uint64_t unknown_outcomes;    /* requests whose reply was lost */
    uint64_t background_releases; /* releases and cancels that the watchdog finished */
    uint64_t messages;            /* mailbox messages that were understood */
    uint64_t messages_ignored;    /* mailbox messages of an unknown form, or about a lock
                                     that the client neither holds nor waits for */
    uint64_t risks;               /* times that a hold became at risk */
    uint64_t refusals; /* requests that the server refused for good: ACL, a key of another
                          type, ... */
    uint64_t script_loads; /* requests repeated with their script, because the server did
                              not know it */
    uint64_t events;       /* calls of the event callback */
    uint64_t outages;      /* times that the server became unreachable */
    uint64_t outage_us;    /* total duration of outages, including the present one */
    rlock_histogram_t wait_time; /* of calls that waited (see waits) and got the lock:
                                    from the begin of the call until it had the lock */
    rlock_histogram_t failed_wait_time; /* of calls that waited and failed: ETIMEDOUT,
                                           ECANCELED, ENOTCONN, ... */
    rlock_histogram_t
        hold_time; /* of sections, one for each thread: from the moment when its call has
                      the lock to the unlock of its outermost level, to the loss, or to
                      the end of the thread. Does not include the time in which a process
                      retains a lock; readers that share a hold have one section each */
    rlock_histogram_t
        round_trip_time; /* of requests with a reply: from sending to the reply */
    uint64_t burials;    /* clients of other processes of this host that this client found
                            dead and recovered: it released their holds, if any */
    uint64_t rlk_reserved[309];
} rlock_stats_t;

/*
 * Opens a client: another party to the locks, with its own connections and identity.
 * Succeeds while the server is unreachable (locks wait for it; rlock_client_ping
 * checks it).
 *
 * url   redis://[user[:password]@]host[:port][/db][?parameters], rediss:// the same over
 *       TLS (valkey:// and valkeys:// mean the same),
 *       redis-sentinel://[user[:password]@]sentinel[:port][,sentinel...]/master[/db]
 *       (rediss-sentinel:// over TLS; doc/SENTINEL.md),
 *       redis-cluster://[user[:password]@]node[:port][,node...]
 *       (rediss-cluster:// over TLS; doc/CLUSTER.md), or
 *       unix:///path/to/socket[?parameters]; parameters: db, lease, presence,
 *       commandtimeout, connecttimeout (ms), mutextype=recursive|errorcheck|normal,
 *       handoffms, handoffcount, retain (ms), guard=0|1, replicas, waitaof=0|1,
 *       maxskew (ms); with TLS: cafile, cadir, certfile, keyfile, tlsname,
 *       verify=full|ca (rlock_clientattr_setcafile); with Sentinel: sentineluser,
 *       sentinelpassword; of a cluster: addressmap.
 *       NULL or empty: $RLOCK_URL; if that is unset or empty, the URL in the system's
 *       file /etc/rlock.conf (below configure's sysconfdir; RLOCK_CONF names another
 *       file, see rlock.conf(5)); without such a file, redis://127.0.0.1:6379. The URL
 *       overrides the attributes. The file's user and passwordfile apply only if
 *       neither the URL nor the attributes have credentials. A program with more
 *       rights than its caller (setuid) ignores the environment.
 * attr  NULL: defaults.
 *
 *   EINVAL   malformed URL, unknown scheme or parameter, value out of range; or the
 *            file, or the password file that it names, is wrong or unreadable (such a
 *            file is never passed over). The message names the file and its line; or
 *            a file for TLS cannot be read or used: the message names its path
 *   ENOTSUP  rediss://, and the library was built without TLS; waitaof=1, and the server
 *            can be reached and has no WAITAOF, or no append-only file
 *   EACCES   waitaof=1, and the server refuses WAITAOF or the credentials
 *   ENOMEM, EAGAIN (see the top of this file), EMFILE, ENFILE
 * On failure *ret_client is untouched. Blocks: no network, except that with waitaof=1 it
 * asks the server, for the command timeout at most; reads those files.
 * Since: 0.1
 */
int rlock_client_open(rlock_client_t **ret_client, const char *url,
                      const rlock_clientattr_t *attr) RLOCK_MUST_CHECK;

/*
 * Closes a client and frees it; NULL: the default client, which its next use opens
 * again. Unfinished background releases get one command timeout, except those of lost
 * holds while the server is unreachable. Pending events are delivered before it
 * returns: the caller must not hold a mutex that the callback waits for.
 *   EBUSY    one of its locks is held or waited for, or another thread is inside one
 *            of its functions; nothing changed
 *   EINVAL   no such client
 * Blocks: up to one command timeout. Since: 0.1
 */
int rlock_client_close(rlock_client_t *client);

/* Sets how the default client will be opened. EBUSY once it is open (in a child, too,
 * if it was open in the parent: close it first). EINVAL, ENOTSUP as rlock_client_open.
 * Since: 0.1 */
int rlock_client_setdefault(const char *url, const rlock_clientattr_t *attr);

/*
 * The server of a client and the source of its URL, for messages and logs. NULL: the
 * default client; if it is not open, the server with which it would be opened now.
 *
 * url     receives the URL as given, without user and password
 * source  receives "program" (an argument of rlock_client_open or _setdefault),
 *         "RLOCK_URL", the path of the file (rlock.conf(5)), or "built-in default"
 *
 *   EINVAL        a buffer is NULL; no such client is open
 *   ENAMETOOLONG  a text does not fit its buffer; both are untouched
 *   EINVAL, ENOTSUP, ENOMEM, EMFILE, ENFILE    for a default client that is not open:
 *                 as rlock_client_open
 * Blocks: no network; may read files as rlock_client_open does. Since: 0.1
 */
int rlock_client_getserver(const rlock_client_t *client, char *url, size_t url_size,
                           char *source, size_t source_size);

/* Makes one round trip. NULL: the default client, which is opened if necessary.
 * ENOTCONN, EACCES, EPROTO, EINVAL. Blocks: up to the command timeout. Since: 0.1 */
int rlock_client_ping(rlock_client_t *client);

/* From now on the client's waits return ECANCELED, including those that begin later;
 * holds stay and can be unlocked. A call that is in a round trip at this moment
 * returns when the round trip ends. NULL: the default client, EINVAL when it is not
 * open. Async-signal-safe. Since: 0.1 */
int rlock_client_interrupt(rlock_client_t *client);

/* Copies the counters; NULL: the default client (all 0 when it is not open). EINVAL.
 * Blocks: no network. Since: 0.1 */
int rlock_client_getstats(const rlock_client_t *client, rlock_stats_t *ret_stats);

/* Attributes of a client. init: EINVAL (NULL). destroy wipes the credentials. Setters:
 * EINVAL for a value out of range, and the object is unchanged; getters: EINVAL. If
 * unset, the default shown applies. Since: 0.1 */
int rlock_clientattr_init(rlock_clientattr_t *attr);
int rlock_clientattr_destroy(rlock_clientattr_t *attr);
/* default lease in ms, 50 to 86,400,000: 30,000 */
int rlock_clientattr_setlease(rlock_clientattr_t *attr, long lease_ms);
int rlock_clientattr_getlease(const rlock_clientattr_t *attr, long *ret_lease_ms);
/* for how long a silent waiter counts as alive, ms, 100 to 30,000: 3,000 */
int rlock_clientattr_setpresence(rlock_clientattr_t *attr, long presence_ms);
int rlock_clientattr_getpresence(const rlock_clientattr_t *attr, long *ret_presence_ms);
/* limit of a call that does not wait for a lock, ms, 10 to 3,600,000: 3,000 */
int rlock_clientattr_setcommandtimeout(rlock_clientattr_t *attr, long timeout_ms);
int rlock_clientattr_getcommandtimeout(const rlock_clientattr_t *attr,
                                       long *ret_timeout_ms);
/* limit of connecting, ms, 10 to 3,600,000: 3,000 */
int rlock_clientattr_setconnecttimeout(rlock_clientattr_t *attr, long timeout_ms);
int rlock_clientattr_getconnecttimeout(const rlock_clientattr_t *attr,
                                       long *ret_timeout_ms);
/* the most connections of callers at a time, 1 to 10,000: 16 (each of the two library
 * threads has one more) */
int rlock_clientattr_setmaxconnections(rlock_clientattr_t *attr, int count);
int rlock_clientattr_getmaxconnections(const rlock_clientattr_t *attr, int *ret_count);
/* the type of mutexes without a type of their own: RLOCK_MUTEX_RECURSIVE */
int rlock_clientattr_setmutextype(rlock_clientattr_t *attr, int type);
int rlock_clientattr_getmutextype(const rlock_clientattr_t *attr, int *ret_type);
/* limits of local hand-off for locks whose attributes do not set them, as
 * rlock_mutexattr_sethandoffms and ..count: 10 and 1,000 */
int rlock_clientattr_sethandoffms(rlock_clientattr_t *attr, long handoff_ms);
int rlock_clientattr_gethandoffms(const rlock_clientattr_t *attr, long *ret_handoff_ms);
int rlock_clientattr_sethandoffcount(rlock_clientattr_t *attr, int count);
int rlock_clientattr_gethandoffcount(const rlock_clientattr_t *attr, int *ret_count);
/* for how long mutexes and read-write locks are retained whose attributes do not set
 * it, as rlock_mutexattr_setretain: 0 */
int rlock_clientattr_setretain(rlock_clientattr_t *attr, long retain_ms);
int rlock_clientattr_getretain(const rlock_clientattr_t *attr, long *ret_retain_ms);
/* The crash guard. When this process dies, other processes of its host that use the
 * same server, or rlock-guard(8), release its locks at once; and this client does so
 * for others. RLOCK_GUARD_ON (default): while it waits for a lock. RLOCK_GUARD_ALWAYS:
 * permanently. RLOCK_GUARD_OFF: neither. The crash guard needs a directory, see
 * rlock_getrundir; without one leases end the locks, as with RLOCK_GUARD_OFF, and
 * rlock_client_diagnose says why. */
#define RLOCK_GUARD_OFF 0
#define RLOCK_GUARD_ON 1
#define RLOCK_GUARD_ALWAYS 2
int rlock_clientattr_setguard(rlock_clientattr_t *attr, int guard);
int rlock_clientattr_getguard(const rlock_clientattr_t *attr, int *ret_guard);
/* how many replicas of the server have to confirm a lock and each renewal of it, before
 * this client believes in them, 0 to 1,000: 0. Too few: ENOTCONN at the deadline, and
 * rlock_errmsg() says how many confirmed. What that promises, and what not:
 * rlock_clientattr_init(3) */
int rlock_clientattr_setreplicas(rlock_clientattr_t *attr, int replicas);
int rlock_clientattr_getreplicas(const rlock_clientattr_t *attr, int *ret_replicas);
/* 1: confirmed means on disk, at the server and at these replicas (WAITAOF): 0 */
int rlock_clientattr_setwaitaof(rlock_clientattr_t *attr, int waitaof);
int rlock_clientattr_getwaitaof(const rlock_clientattr_t *attr, int *ret_waitaof);
/* how far the clocks of the server and of its replicas may be apart, ms, 0 to 10,000. A
 * hold counts as lost so much earlier. Less than a sixth of lease and presence; a lock
 * whose own lease is not longer than six times this is EINVAL. Initially -1: 0; with
 * Sentinel and in a cluster 50, or a twelfth of a lock's lease or of presence if that is
 * less */
int rlock_clientattr_setmaxskew(rlock_clientattr_t *attr, long maxskew_ms);
int rlock_clientattr_getmaxskew(const rlock_clientattr_t *attr, long *ret_maxskew_ms);
/* Copies user (NULL or "": the server's default user) and password (NULL: none).
 * ENAMETOOLONG: over 255 or 2,047 bytes. Credentials in the URL override these. */
int rlock_clientattr_setcredentials(rlock_clientattr_t *attr, const char *user,
                                    const char *password);
/* The same for the sentinels of a redis-sentinel:// URL, which have users of their own;
 * without them they get no credentials. No effect with other URLs. Together with the
 * texts below they have at most 1,500 bytes, else ENAMETOOLONG. The URL's sentineluser
 * and sentinelpassword override them. Since: 0.1 */
int rlock_clientattr_setsentinelcredentials(rlock_clientattr_t *attr, const char *user,
                                            const char *password);
/* Where the nodes of a redis-cluster:// URL are, if it is not where they say (NAT):
 * "announced[:port]>real[:port][,...]"; without ports, each port of the host; IPv6 in
 * brackets. Copied; NULL or "": as they say. Together with the texts below it has at most
 * 1,500 bytes, else ENAMETOOLONG. rlock_client_open checks its form. No effect with other
 * URLs. The URL's addressmap overrides it. Since: 0.1 */
int rlock_clientattr_setaddressmap(rlock_clientattr_t *attr, const char *map);
/* NULL: none */
int rlock_clientattr_seteventcallback(rlock_clientattr_t *attr, rlock_event_fn fn,
                                      void *arg);
/* For URLs with rediss:// and valkeys://; no effect with other URLs. The URL's parameters
 * of the same names override these attributes. Texts are copied; "" unsets one; together
 * they have at most 1,500 bytes.
 *
 * cafile    file of the authorities that may have issued the server's certificate (PEM,
 *           one or more)
 * cadir     the same, a directory as openssl-rehash(1) makes it; if neither is set, those
 *           of the system
 * certfile  the client's own certificate, for servers that require one (PEM; the
 *           certificates between it and its authority may follow)
 * keyfile   its key (PEM, without a passphrase); if unset, it is in certfile
 * tlsname   the name or the address that the server's certificate must be for; if unset,
 *           the URL's host
 * verify    RLOCK_VERIFY_FULL (the initial value): the certificate must be issued by such
 *           an authority, and be for that name. RLOCK_VERIFY_CA: the authority alone is
 *           checked; this requires cafile or cadir. No value switches both checks off.
 *
 * cafile and cadir are a pair, certfile and keyfile another: where the URL sets one of a
 * pair, both attributes of the pair have no effect.
 *
 * rlock_client_open reads the files. If a file has changed, the next connection of a call
 * reads it again. A child of fork() uses what its parent has read. EINVAL: not
 * initialized, NULL, another value of verify; ENAMETOOLONG; ENOTSUP:
 * built without TLS. Blocks: no. Threads: one at a time for each object. */
int rlock_clientattr_setcafile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setcadir(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setcertfile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_setkeyfile(rlock_clientattr_t *attr, const char *path);
int rlock_clientattr_settlsname(rlock_clientattr_t *attr, const char *name);
#define RLOCK_VERIFY_FULL 0
#define RLOCK_VERIFY_CA 1
int rlock_clientattr_setverify(rlock_clientattr_t *attr, int verify);
int rlock_clientattr_getverify(const rlock_clientattr_t *attr, int *ret_verify);

/* The directory of the crash guard that a client opened now would use: $RLOCK_RUNDIR
 * if it is set (empty: no crash guard), else /run/rlock if that exists and the caller may
 * write there, else $XDG_RUNTIME_DIR/rlock, else /dev/shm/rlock-<uid>. The directory
 * must be on a tmpfs, owned by root or the caller's user, and writable by no other user
 * except its group. The last two are created if necessary, with mode 0700.
 *   ENOENT        no usable directory; rlock_errmsg() says why
 *   ENAMETOOLONG  buf, of `size` bytes, is too small
 *   EINVAL        buf is NULL
 * Blocks: no network. Since: 0.1 */
int rlock_getrundir(char *buf, size_t size);

/* ------------------------------------------------------- mutex attributes */

/* As pthread_mutexattr_*: EINVAL for a bad object or value; on failure the object is
 * unchanged. Blocks: no. Since: 0.1 */
int rlock_mutexattr_init(rlock_mutexattr_t *attr);
int rlock_mutexattr_destroy(rlock_mutexattr_t *attr);
int rlock_mutexattr_settype(rlock_mutexattr_t *attr, int type);
/* If unset, the mutextype of the attribute's client, which a mutex made with it has;
 * for a default client that is not open yet, the one with which it would be opened. */
int rlock_mutexattr_gettype(const rlock_mutexattr_t *attr, int *ret_type);
/* RLOCK_MUTEX_STALLED (default): the thread that takes the lock after its holder's
 * death gets 0. RLOCK_MUTEX_ROBUST: one of these threads gets EOWNERDEAD; see
 * rlock_mutex_consistent. */
int rlock_mutexattr_setrobust(rlock_mutexattr_t *attr, int robust);
int rlock_mutexattr_getrobust(const rlock_mutexattr_t *attr, int *ret_robust);
int rlock_mutexattr_setrobust_np(rlock_mutexattr_t *attr, int robust);
int rlock_mutexattr_getrobust_np(const rlock_mutexattr_t *attr, int *ret_robust);
/* RLOCK_PROCESS_PRIVATE (default). RLOCK_PROCESS_SHARED: the handle is in memory that
 * processes share, and may not name a client */
int rlock_mutexattr_setpshared(rlock_mutexattr_t *attr, int pshared);
int rlock_mutexattr_getpshared(const rlock_mutexattr_t *attr, int *ret_pshared);
/* RLOCK_PRIO_INHERIT has no effect; RLOCK_PRIO_PROTECT: ENOTSUP */
int rlock_mutexattr_setprotocol(rlock_mutexattr_t *attr, int protocol);
int rlock_mutexattr_getprotocol(const rlock_mutexattr_t *attr, int *ret_protocol);
/* ENOTSUP */
int rlock_mutexattr_setprioceiling(rlock_mutexattr_t *attr, int ceiling);
int rlock_mutexattr_getprioceiling(const rlock_mutexattr_t *attr, int *ret_ceiling);
/* lease in ms of the forms without lease_ms: 0 (the client's default) or 50 to
 * 86,400,000; always renewed by the watchdog */
int rlock_mutexattr_setlease(rlock_mutexattr_t *attr, long lease_ms);
int rlock_mutexattr_getlease(const rlock_mutexattr_t *attr, long *ret_lease_ms);
/* 1: each hold has a token (S3); 0 (default): none. Each locking of the mutex except a
 * re-entry gets a new and greater token. A token is a growing number with gaps, not a
 * time. With a new name it stays below 2^53, and so exact in a double, until the year
 * 2255; if the name's counter was above, it continues from there. Threads of one
 * process that hand the mutex on get at most a million tokens in a second. */
int rlock_mutexattr_setfencing(rlock_mutexattr_t *attr, int fencing);
int rlock_mutexattr_getfencing(const rlock_mutexattr_t *attr, int *ret_fencing);
/* Hand-off: threads of a process that wait for one mutex hand it on among themselves
 * without the server. While another process waits, too, this ends after so many ms, 0
 * to 86,400,000, or so many sections, 0 to 1,000,000,000, whichever comes first. 0 in
 * either: each unlock releases the mutex at the server. If unset, the client's value
 * applies (10 and 1,000). No effect on a fair lock, whose threads queue at the server. */
int rlock_mutexattr_sethandoffms(rlock_mutexattr_t *attr, long handoff_ms);
int rlock_mutexattr_gethandoffms(const rlock_mutexattr_t *attr, long *ret_handoff_ms);
int rlock_mutexattr_sethandoffcount(rlock_mutexattr_t *attr, int count);
int rlock_mutexattr_gethandoffcount(const rlock_mutexattr_t *attr, int *ret_count);
/* Retention: after an unlock the process retains the mutex for so many ms, 0 to
 * 86,400,000, if no thread takes it: taking it again then needs no server. Another
 * process that wants it gets it at once, or after a third of the presence if a message
 * is lost. 0: off. If unset, the client's value applies (default 0). Use it for a
 * mutex that one process takes much more often than all others together: each time
 * that another process takes it costs one message more, and a process that is killed
 * or stopped while it retains the mutex delays the others by a presence, or by its
 * lease if a thread was inside at its last request to the server. Each retained mutex
 * costs a request in every third of a presence, at least one in a second; a client
 * retains at most 1,024. A waiting client of Redisson gets the mutex; one that only
 * tries again and again is not noticed. Never retained: fixed leases, fair locks, and
 * anything while the client's mailbox is not subscribed. Taking a robust mutex that
 * was retained for a third of a presence costs a round trip, by which the server
 * learns that a thread is inside; a process that dies before that is not a dead owner. */
int rlock_mutexattr_setretain(rlock_mutexattr_t *attr, long retain_ms);
int rlock_mutexattr_getretain(const rlock_mutexattr_t *attr, long *ret_retain_ms);
/* RLOCK_OUTAGE_WAIT (default), _FAIL, _ABORT */
int rlock_mutexattr_setoutage(rlock_mutexattr_t *attr, int outage);
int rlock_mutexattr_getoutage(const rlock_mutexattr_t *attr, int *ret_outage);
/* NULL (default): the default client. A process-shared handle cannot name a client:
 * ENOTSUP at init. */
int rlock_mutexattr_setclient(rlock_mutexattr_t *attr, rlock_client_t *client);
int rlock_mutexattr_getclient(const rlock_mutexattr_t *attr, rlock_client_t **ret_client);

/* ------------------------------------------------------------------- mutex */

/*
 * Initialises a handle. Sends nothing to the server.
 * attr  NULL: defaults.   name  NULL: makes a unique name, stored in the handle.
 *   EINVAL        NULL mutex, bad attribute or name, its client is closed
 *   ENAMETOOLONG  over RLOCK_NAME_MAX bytes
 *   ENOTSUP       RLOCK_PROCESS_SHARED with a client
 * On a handle in use: with the same name it stays the same lock with its holder; with
 * another name, the old lock stays held until its thread unlocks it by another handle of
 * its name (a copy) or ends. Concurrent calls with this handle may return EINVAL. A
 * process that dies inside leaves a handle that gives EINVAL and may be initialised
 * again. Blocks: no. Threads: not while other threads use this handle. Since: 0.1
 */
int rlock_mutex_init(rlock_mutex_t *mutex, const rlock_mutexattr_t *attr,
                     const char *name);

/* Destroys a handle; the lock in Redis is not touched. EBUSY, with nothing changed,
 * while this process holds the lock or waits for it (a lost hold does not count); 0
 * when only other processes do; EINVAL. The memory may then be reused, even if the
 * unlock of an earlier holder has not returned yet. Blocks: no network. Since: 0.1 */
int rlock_mutex_destroy(rlock_mutex_t *mutex);

/*
 * Takes the lock (S1). After 0 the calling thread holds it for a lease that the
 * watchdog renews until unlock.
 *
 * A second lock by the holder: RECURSIVE 0 with one level more and without a round
 * trip; ERRORCHECK and NORMAL EDEADLK.
 *   EDEADLK     the calling thread holds the lock, and the type is not RECURSIVE
 *   EAGAIN      RECURSIVE: too many levels
 *   ESTALE      the calling thread's hold was lost and is not drained by unlock
 *   ECANCELED   rlock_client_interrupt
 *   EINVAL, ENAMETOOLONG   bad handle
 *   ENOTCONN    only with RLOCK_OUTAGE_FAIL
 *   EACCES, EPROTO, ENOMEM, EAGAIN   see the top of this file
 *   EOWNERDEAD  robust: the caller HOLDS the lock, as with 0, but the previous holder
 *               died or lost its lease inside its section: rlock_mutex_consistent
 *   ENOTRECOVERABLE   a robust lock of this name was unlocked without that call
 * On every code but 0 and EOWNERDEAD the lock is unchanged for the caller.
 * Blocks: until it has the lock, also through outages. Threads: any. Fork: the child
 * owns no lock of its parent. Since: 0.1
 */
int rlock_mutex_lock(rlock_mutex_t *mutex);

/* Makes one attempt; never queues.
 *   EBUSY  another thread, process or client holds it (or the caller, when not
 *          RECURSIVE)
 * Other codes as rlock_mutex_lock; ENOTCONN when the server did not answer.
 * Blocks: up to the command timeout (L7). Since: 0.1 */
int rlock_mutex_trylock(rlock_mutex_t *mutex) RLOCK_MUST_CHECK;

/* As lock, until `abstime` of CLOCK_REALTIME. ETIMEDOUT: it was busy until then;
 * ENOTCONN: no server could be reached. Makes one attempt even after the deadline.
 * EINVAL: tv_nsec is out of range and the call would wait. NORMAL: the holder itself
 * gets ETIMEDOUT at the deadline, as in glibc. Blocks: until the deadline plus at most
 * 100 ms (L7). Since: 0.1 */
int rlock_mutex_timedlock(rlock_mutex_t *mutex,
                          const struct timespec *abstime) RLOCK_MUST_CHECK;

/* As timedlock, with CLOCK_REALTIME or CLOCK_MONOTONIC; other clocks: EINVAL. */
int rlock_mutex_clocklock(rlock_mutex_t *mutex, clockid_t clock,
                          const struct timespec *abstime) RLOCK_MUST_CHECK;

/*
 * Gives up one level; the last one releases the lock and hands it to a waiter.
 *   0        exclusion was unbroken (the release itself may be finished in the
 *            background when the server is unreachable at this moment)
 *   ESTALE   the lease was lost before; one level was drained
 *   EPERM    the calling thread does not hold the lock
 *   EINVAL   bad handle
 * Blocks: up to the command timeout (L7). Since: 0.1
 */
int rlock_mutex_unlock(rlock_mutex_t *mutex);

/*
 * After EOWNERDEAD: says that the caller has repaired the state that the lock protects.
 * Without this call the last unlock makes the lock ENOTRECOVERABLE for every thread that
 * wants it, also through other handles of its name, until rlock_force_unlock; waiters
 * get that code, too. One locker at a time gets EOWNERDEAD; if it dies in turn, the next
 * one does; the mark lasts for at most 7 days. A robust lock counts as a death that the
 * process ends, its thread ends, or the lease ends, before the last unlock. Redisson and
 * handles that are not robust take the lock with 0; the next robust one gets EOWNERDEAD.
 *   EINVAL  the calling thread holds no robust lock in that state
 *   ESTALE  its hold is lost
 * Blocks: no network. Since: 0.1
 */
int rlock_mutex_consistent(rlock_mutex_t *mutex);
int rlock_mutex_consistent_np(rlock_mutex_t *mutex);

/* ENOTSUP (EINVAL for a bad handle). Since: 0.1 */
int rlock_mutex_getprioceiling(const rlock_mutex_t *mutex, int *ret_ceiling);
int rlock_mutex_setprioceiling(rlock_mutex_t *mutex, int ceiling, int *ret_old);

/* As the functions above, with a lease. lease_ms 0: as above. 50 to 86,400,000: a
 * fixed lease in ms, which is never renewed and ends by itself; other values: EINVAL.
 * A re-entry keeps the lease of its hold. Since: 0.1 */
int rlock_mutex_lock_lease(rlock_mutex_t *mutex, long lease_ms);
int rlock_mutex_trylock_lease(rlock_mutex_t *mutex, long lease_ms) RLOCK_MUST_CHECK;
int rlock_mutex_timedlock_lease(rlock_mutex_t *mutex, const struct timespec *abstime,
                                long lease_ms) RLOCK_MUST_CHECK;
int rlock_mutex_clocklock_lease(rlock_mutex_t *mutex, clockid_t clock,
                                const struct timespec *abstime,
                                long lease_ms) RLOCK_MUST_CHECK;

/* Restarts the calling thread's lease with this length in ms, fixed; 0: the watchdog
 * renews it from now on. EPERM: the thread does not hold the lock; ESTALE: lost;
 * EINVAL: length; ENOTCONN: unconfirmed, the lease is unchanged. Blocks: up to the
 * command timeout. Since: 0.1 */
int rlock_mutex_extend(rlock_mutex_t *mutex, long lease_ms);

typedef enum {
    RLOCK_UNHELD,  /* the calling thread does not hold it */
    RLOCK_SAFE,    /* held, and renewals are confirmed */
    RLOCK_AT_RISK, /* held, but a third of the lease or less is left */
    RLOCK_LOST     /* the lease ended */
} rlock_state_t;

/* Queries of the calling thread's hold, without a round trip. EINVAL: bad handle or
 * NULL. Blocks: no. Since: 0.1
 *   gettoken      EPERM when the thread holds nothing; ENOTSUP when the lock was taken
 *                 without fencing
 *   getremaining  ms until this hold is no longer proven, 0 when lost; EPERM
 *   getstate      see rlock_state_t
 *   getholdcount  levels; 0 when the thread does not hold the lock (a lost hold has its
 *                 levels until they are unlocked) */
int rlock_mutex_gettoken(const rlock_mutex_t *mutex, uint64_t *ret_token);
int rlock_mutex_getremaining(const rlock_mutex_t *mutex, long *ret_ms);
int rlock_mutex_getstate(const rlock_mutex_t *mutex, rlock_state_t *ret_state);
int rlock_mutex_getholdcount(const rlock_mutex_t *mutex, unsigned *ret_count);

/* --------------------------------------------------------------- fair lock */

/*
 * A lock that its waiters get in the order in which their requests reached the server,
 * over all threads of all processes of all hosts (L5). Everything else is as with the
 * mutex: attributes, leases, re-entry, tokens, queries and codes; each function works as
 * rlock_mutex_* with the same name. The differences:
 * - A requester cannot overtake a waiter. While a live waiter is queued, trylock gives
 *   EBUSY and a deadline in the past gives ETIMEDOUT, also when the lock is free at this
 *   moment.
 * - Each waiting thread queues at the server on its own. A waiter that times out leaves
 *   the queue at once, and those behind it move up.
 * - A waiter keeps its place while its process is alive and reachable. If it was stopped
 *   or cut off for longer than the client's presence (3 s by default), it queues again at
 *   the end. If its subscription is down at the moment of its turn, it is passed over and
 *   keeps its place. When the queue itself is lost (evicted or deleted), waiters queue
 *   again by themselves in a new order.
 * - A mutex or a read-write lock of the same name, or a Redisson lock, is another holder
 *   of this one (S5); their users are in no order with its waiters. Since: 0.1
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
 * The order when readers and writers wait:
 *   RLOCK_RWLOCK_PHASE_FAIR_NP    (default). Reading and writing alternate: later readers
 *       queue behind a waiting writer; a writer's unlock lets in all readers that wait at
 *       that moment; the last reader's unlock lets in the next writer. So the first
 *       writer waits for at most the readers that were in or queued when the reading
 *       began, and a reader waits for at most one writer (L6).
 *   RLOCK_RWLOCK_PREFER_READER_NP (and _DEFAULT_NP when set)   readers join a reading
 *       past waiting writers: a stream of readers can keep them out for ever.
 *   RLOCK_RWLOCK_PREFER_WRITER_NP, _PREFER_WRITER_NONRECURSIVE_NP   a writer hands over
 *       to the next writer: a stream of writers can keep readers out for ever. The second
 *       one is the same; reading again is never refused here.
 * The server serves each request by the kind of its handle, so give all handles of a name
 * one kind.
 */
int rlock_rwlockattr_setkind_np(rlock_rwlockattr_t *attr, int kind);
int rlock_rwlockattr_getkind_np(const rlock_rwlockattr_t *attr, int *ret_kind);
int rlock_rwlockattr_setpshared(rlock_rwlockattr_t *attr, int pshared);
int rlock_rwlockattr_getpshared(const rlock_rwlockattr_t *attr, int *ret_pshared);
int rlock_rwlockattr_setlease(rlock_rwlockattr_t *attr, long lease_ms);
int rlock_rwlockattr_getlease(const rlock_rwlockattr_t *attr, long *ret_lease_ms);
/* As rlock_mutexattr_setretain, for both modes. A retained read hold lets threads of
 * the process read again without the server, several at a time, and also while others
 * of the process read; until a writer wants the lock: from then on new readers queue
 * behind the writer, which gets the lock when those inside have left. So a writer
 * waits for the readers inside when it came and those let in until the message
 * arrived; if the message is lost, for a third of the presence more. A mutex or a fair
 * lock of the same name that waits for readers is noticed no sooner. A retained write
 * hold is released when any other thread, also of this process, wants to read. */
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
 * A lock that many threads may hold to read, or one to write (S1). Handles, leases,
 * losses, tokens and codes are as with the mutex: where this file says nothing, a
 * function works as rlock_mutex_* with the same name.
 * - Both modes are reentrant for each thread, without a round trip. A thread that reads
 *   may read again also while a writer waits. A writer may read and write again.
 * - A reader that asks to write gets EDEADLK at once from every form; EBUSY from the try
 *   forms.
 * - EAGAIN: too many levels, or no memory to note one.
 * - Each reader has its own lease, and a loss concerns that reader alone; threads of one
 *   process that read at the same time without a fixed lease share one at the server.
 * - Fencing: a writer's token is greater than that of every earlier writer and reader;
 *   readers that read together may have the same one.
 * - A mutex or fair lock of the same name, or a Redisson lock, is another holder of this
 *   one (S5). Readers that wait for one find it free up to presence/3 (1 s) late.
 * - ENOTRECOVERABLE: a robust lock of this name is not recoverable, see
 *   rlock_mutex_consistent. Since: 0.1
 */
int rlock_rwlock_init(rlock_rwlock_t *rwlock, const rlock_rwlockattr_t *attr,
                      const char *name);
int rlock_rwlock_destroy(rlock_rwlock_t *rwlock);

/* To read. As rlock_mutex_lock, trylock, timedlock, clocklock and their forms with a
 * lease, with the differences above. A try gives EBUSY while a writer holds the lock
 * or a live writer waits for it (not with PREFER_READER). */
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

/* To write. EDEADLK: the calling thread reads. A try gives EBUSY while another thread
 * holds the lock, or a live waiter waits for it. */
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
 * Gives up one level: unlock the innermost level, rdunlock and wrunlock the innermost
 * of that mode. The last level releases the lock. A writer that gives up its last write
 * level while it still has read levels is downgraded. Codes as rlock_mutex_unlock; also
 *   EPERM          the calling thread has no level (of that mode)
 *   EACCES, EPROTO the server refused: after a downgrade the thread reads, but other
 *                  readers wait until its lease ends or the server lets them in
 * Blocks: up to the command timeout (L7). Since: 0.1
 */
int rlock_rwlock_unlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_rdunlock(rlock_rwlock_t *rwlock);
int rlock_rwlock_wrunlock(rlock_rwlock_t *rwlock);

/* A writer becomes a reader with all its levels, and no other writer gets in between;
 * waiting readers may join it. While the server is unreachable, the library repeats
 * the request in the background. EPERM: the calling thread does not write; ESTALE:
 * lost before. Blocks: up to the command timeout (L7). Since: 0.1 */
int rlock_rwlock_downgrade(rlock_rwlock_t *rwlock);

/* As rlock_mutex_extend. A reader that shares its hold gets its own with a fixed
 * lease. */
int rlock_rwlock_extend(rlock_rwlock_t *rwlock, long lease_ms);
/* As rlock_mutex_get*. getholdcount: the write levels, or the read levels of a thread
 * that does not write. */
int rlock_rwlock_gettoken(const rlock_rwlock_t *rwlock, uint64_t *ret_token);
int rlock_rwlock_getremaining(const rlock_rwlock_t *rwlock, long *ret_ms);
int rlock_rwlock_getstate(const rlock_rwlock_t *rwlock, rlock_state_t *ret_state);
int rlock_rwlock_getholdcount(const rlock_rwlock_t *rwlock, unsigned *ret_count);

/* ---------------------------------------------------------- administration */

typedef struct rlock_party {
    const char
        *owner; /* the id at the server; "": of readers whose ids the server has lost */
    const char *client; /* "host:pid:program" where known, else "" */
    rlock_mode_t mode;
    long since_ms;      /* for how long it has held or waited; -1: unknown */
    long lease_left_ms; /* of a holder; -1: never ends (a key without a TTL, set by
                           another program); of a waiter: until it counts as gone */
} rlock_party_t;

typedef struct rlock_info {
    const char *name;
    rlock_type_t type; /* of the holder; of the first waiter when the lock is free */
    uint64_t token;    /* of the holder; 0 without fencing; while a process hands the lock
                          on, at most that of the present thread */
    size_t holder_count;
    const rlock_party_t *holders;
    size_t waiter_count;
    const rlock_party_t *waiters; /* in the order of their requests */
} rlock_info_t;

/* The holders and waiters of a lock. The caller owns the result and frees it with
 * rlock_info_free (NULL is fine). client NULL: the default client. ENOENT: neither
 * held nor waited for. EINVAL, ENAMETOOLONG. Blocks: up to the command timeout. Since:
 * 0.1 */
int rlock_inspect(rlock_client_t *client, const char *name, rlock_info_t **ret_info);
void rlock_info_free(rlock_info_t *info);

/* Takes the lock from its holder (the one that this call sees, never a later one),
 * clears the marks of robust locks (owner died, not recoverable) and hands the lock
 * over. On a free lock it clears the marks. The holder learns of the loss at once, or
 * at its next renewal if its mailbox is disconnected at this moment. ENOENT: the lock
 * is free and has no mark. EINVAL, ENAMETOOLONG. Blocks: up to the command timeout.
 * Since: 0.1 */
int rlock_force_unlock(rlock_client_t *client, const char *name);

/* Calls `each` for every held lock whose name matches the glob `pattern` (NULL: all);
 * a non-zero result of `each` ends the walk and is returned. A pattern without *, ?
 * and [ is a name, and only this lock is looked up (a backslash makes the next byte
 * literal). Other patterns walk all keys of the database by SCAN, 200 in a request: a
 * lock that is held throughout is reported, others may be. A walk takes 50 ms of the
 * server's time at once, and then pauses so that it takes at most a twentieth of it: a
 * million keys last for about half a minute. A walk leaves out a lock that the ACL hides;
 * looked up by its name it gives EACCES. In a cluster it goes to all masters, and again
 * where hash slots have moved meanwhile, so that a lock may be reported more than once;
 * hash slots that cannot be reached for a command timeout are ENOTCONN, after the locks
 * of the other masters. Needs a server >= 6.0. `each` runs on the
 * calling thread, with no library mutex held, and is not cancelled. ECANCELED: `each`
 * forked and returned, and this is the child; or rlock_client_interrupt was called before
 * the last key was looked at. Blocks: up to the command timeout for each request, and for
 * the pauses. Since: 0.1 */
int rlock_list(rlock_client_t *client, const char *pattern,
               int (*each)(const rlock_info_t *info, void *arg), void *arg);

/* Waits until the lock is free, without taking it; abstime in CLOCK_REALTIME, NULL: no
 * deadline. ETIMEDOUT, ENOTCONN, ECANCELED, EINVAL. Since: 0.1 */
int rlock_waitfree(rlock_client_t *client, const char *name,
                   const struct timespec *abstime);

typedef struct rlock_finding {
    int severity;      /* as in syslog(3): LOG_INFO: good; LOG_NOTICE: worth knowing;
                          LOG_WARNING: locks work, but with the named trouble; LOG_ERR,
                          LOG_CRIT: locks do not work here, or are not safe */
    const char *topic; /* a word or two that programs may compare */
    const char *text;  /* the fact, what it means for locks, and what to do; no secrets */
} rlock_finding_t;     /* fields are only added at the end; valid during the call */

/*
 * Checks whether the client's server is fit for locks; NULL: the default client. Calls
 * `each` for every finding, at least one of each topic: "version", "cluster", "replicas",
 * "persistence", "eviction", "memory", "connections", "buffers", "clock", "round trip",
 * "acl", "access", "scripts", "leases", "messages", "guard"; later versions may add some.
 * A non-zero result of `each` ends the call and is returned. In a cluster it checks each
 * master: what all have in common is one finding, and the text of a finding about some of
 * them begins with their addresses.
 *
 * It requests INFO, HELLO if INFO has no version, CONFIG GET (of a dozen settings, none
 * of them secret) and its own user's rights (ACL GETUSER); a refusal is a finding, not a
 * failure. It tries rights by commands that change nothing; refused ones appear in the
 * server's ACL LOG. It sets one key, rlock:{...}:probe:..., for 50 ms to see whether
 * leases end. The client's mailbox gets a message, which counts in messages_ignored.
 *
 * `each` runs on the calling thread, with no library mutex held, and is not cancelled; it
 * may call any function of the library except rlock_client_close of this client (EBUSY).
 * An event callback runs on the thread that reads messages: called from there, it cannot
 * check whether messages arrive, and the finding says so.
 *
 *   EINVAL     no such client, or `each` is NULL
 *   ENOTCONN   the server is unreachable, or does not answer in time; `each` may have
 * been called before EACCES     the server refuses the credentials, or TIME, which every
 * lock needs EPROTO     the server is not Redis or Valkey, or a proxy drops commands that
 * locks need ECANCELED  `each` forked and returned, and this is the child Blocks: up to
 * the command timeout for each of about eighty requests; a second more where leases never
 * end. Threads: any. Fork: the child may not continue the call. Since: 0.1
 */
int rlock_client_diagnose(rlock_client_t *client,
                          int (*each)(const rlock_finding_t *finding, void *arg),
                          void *arg);

/* ---------------------------------------------------------- errors and log */

/* One sentence for a code of this library, static. */
const char *rlock_strerror(int code);

/* Details of the calling thread's last call; "" after success; never a secret. Valid
 * until the thread's next call. */
const char *rlock_errmsg(void);

/* RLOCK_VERSION of the library in use. */
const char *rlock_version(void);

/* Sets the function for log lines; NULL: none (default). Levels as in syslog(3); lines
 * above max_level are dropped:
 *   3  losses, threads that ended while they held a lock, a refused subscription
 *   4  leases at risk, outages, refused requests of the library's threads, processes of
 *      this host that died while they held locks, a crash guard that stopped
 *   6  recoveries from these, no crash guard
 *   7  replaced connections, processes that died without locks
 * One line each, without a newline, as
 *   rlock: lost "orders" after 31.2 s: server unreachable for 30.1 s
 * doc/OBSERVABILITY.md lists them. The code of a call is not logged. Too many lines of a
 * kind in one second are dropped, and the next line says how many were. `log` may run on
 * any thread, with no library mutex held, and must not call the library. Since: 0.1 */
void rlock_setlogger(void (*log)(int level, const char *line, void *arg), void *arg,
                     int max_level);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
