/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the lock scripts by hand for one lock of an empty server, and looks at the keys
 * that they leave. The lock is "n" unless BYHAND_LOCK names another. */
#ifndef TEST_BYHAND_H
#define TEST_BYHAND_H

#include "net/script.h"
#include "redis.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>

/* The kind of lock that clients A, B and C request: see as_fair.h, as_rwlock.h. */
#if defined(AS_RWLOCK)
#define LETTER "w"
#define FENCED_LETTER "W"
#define MODE "rlock:write"
#elif defined(AS_FAIR)
#define LETTER "f"
#define FENCED_LETTER "F"
#define MODE "rlock:fair"
#else
#define LETTER "m"
#define FENCED_LETTER "M"
#define MODE "rlock:mutex"
#endif

/* Clients, and the ids of their acquisitions. */
#define UUID_A "aaaaaaaa-0000-4000-8000-00000000000a"
#define UUID_B "bbbbbbbb-0000-4000-8000-00000000000b"
#define UUID_C "cccccccc-0000-4000-8000-00000000000c"
#define A UUID_A ":1:1:" LETTER "3000"
#define A2 UUID_A ":1:2:" LETTER "3000"
#define B UUID_B ":1:1:" LETTER "3000"
#define C UUID_C ":1:1:" LETTER "3000"
#define FAIR_A UUID_A ":1:1:f3000"
#define FAIR_A2 UUID_A ":1:2:f3000"
#define FAIR_B UUID_B ":1:1:f3000"
#define FAIR_C UUID_C ":1:1:f3000"
#define READ_A UUID_A ":1:1:r3000"
#define READ_A2 UUID_A ":1:2:r3000"
#define READ_B UUID_B ":1:1:r3000"
#define READ_C UUID_C ":1:1:r3000"
#define WRITE_A UUID_A ":1:4:w3000"
#define WRITE_A2 UUID_A ":1:5:w3000"
#define WRITE_B UUID_B ":1:4:w3000"
#define WRITE_C UUID_C ":1:4:w3000"
#define FENCED_A UUID_A ":1:3:" FENCED_LETTER "3000"
#define FENCED_B UUID_B ":1:3:" FENCED_LETTER "3000"

#ifndef BYHAND_LOCK
#define BYHAND_LOCK "n"
#endif
#define QUEUE "rlock:{" BYHAND_LOCK "}:queue"
#define RQUEUE "rlock:{" BYHAND_LOCK "}:rqueue"
#define PRESENT "rlock:{" BYHAND_LOCK "}:present"
#define READERS "rlock:{" BYHAND_LOCK "}:readers"
#define CANCELLED "rlock:{" BYHAND_LOCK "}:cancelled"
#define KEEPERS "rlock:{" BYHAND_LOCK "}:keepers"
#define DIRTY "rlock:{" BYHAND_LOCK "}:dirty"
#define TOKEN "redisson_lock_token:{" BYHAND_LOCK "}"
#define CHANNEL "redisson_lock__channel:{" BYHAND_LOCK "}"
#define NEVER "9000000000000000" /* a not-after that never comes */

extern struct test_server server;
extern struct test_redis *redis;

/* Fixtures: unchecked; checked. */
void byhand_start(void);
void byhand_stop(void);
void byhand_open(void);
void byhand_close(void);
/* Adds a test case with these fixtures. */
TCase *byhand_tcase(Suite *suite, const char *name);
/* Connects as a user with all permissions except this command. The caller closes the
 * connection. */
struct test_redis *byhand_user_without(const char *command);
/* Connects to a server that the test itself has started. */
void byhand_connect(void);

struct answer {
    char error[256]; /* "": none */
    long long now, left, flags, more, rmore;
    size_t count; /* of fates */
    struct {
        char what[16];
        long long remaining, ticket;
        char token[32];
    } fate[8];
};

/* EVAL with the keys of the lock, the layout number and these arguments
 * (NULL-terminated). */
const redisReply *run_raw(enum rlk_script_id id, const char *const args[]);
struct answer run(enum rlk_script_id id, const char *const args[]);
#define RUN(id, ...) run(id, TEST_ARGV(__VA_ARGS__))

/* Acquire with the usual arguments for the kind of lock that the id's letter names: lease
 * 30 s, presence 3 s. */
struct answer acquire(const char *id);
struct answer try_acquire(const char *id);
/* The same for a fair lock. */
struct answer try_acquire_after(const char *id, const char *ticket);
struct answer acquire_fenced(const char *id);
struct answer acquire_until(const char *id, const char *not_after, const char *fencing);
struct answer release(const char *id);
struct answer release_marked(const char *id, const char *life);
struct answer renew(const char *id, const char *lease);
/* For robust locks: with the new value of the mark; with what became of the section. */
struct answer renew_marked(const char *id, const char *number);
struct answer release_robust(const char *id, const char *how);
/* With another block of fencing tokens; for exclusive locks. */
struct answer renew_for_more(const char *id);
struct answer cancel(const char *id); /* its marker lives for 7 s */
struct answer cancel_marked(const char *id, const char *life);
struct answer refresh(const char *id);
struct answer refresh_after(const char *ticket);
struct answer force(const char *holder, const char *since);
/* Recovers client A, which is dead; ids: as in the script's last argument. A's marker
 * lives for 10 s. */
struct answer bury(const char *ids);
/* For the read-write lock. */
extern const char *prefer; /* the preferred kind that the scripts get: "16" */
extern bool byhand_w13;    /* whether W13 is asserted: true */
struct answer share(const char *id, const char *shared);
struct answer downgrade(const char *id);
struct answer refresh_on(const char *id, long long more, long long rmore); /* goes on
                                                                              there */

#define WHAT(a) ((a).error[0] ? (a).error : (a).fate[0].what)
#define SAYS(call, word)                                                                 \
    do {                                                                                 \
        struct answer answer_ = call;                                                    \
        ck_assert_str_eq(WHAT(answer_), word);                                           \
    } while (0)

/* Listens to a client's mailbox, or to a channel. */
struct test_redis *listener(const char *uuid);
struct test_redis *channel_listener(const char *channel);
/* The next message, or NULL when none comes soon. */
const char *message(struct test_redis *listener);
/* Asserts by a later message that none has come: it would see all that was published
 * before this call. */
bool no_message(struct test_redis *listener);

/* One digest of every key's contents, TTLs left out. */
const char *digest(void);
/* A key, other than the token, without a TTL; "" when there is none. */
const char *without_ttl(void);
void assert_ttls(void);
bool is_held_by(const char *id);
const char *field(const char *name); /* of N; "" when absent */
/* The queue as "id ticket id ticket"; the queue of readers; the readers and their ends.
 * Each text is valid until the same function is called again. */
const char *queue_text(void);
const char *rqueue_text(void);
const char *readers_text(void);
/* Puts `count` waiters of a client into a queue, with tickets from `first` on. Each id
 * contains the ticket (waiter_id). A grant to them lasts for test_ms(3000), because there
 * may be many of them. */
void put_waiters(const char *queue, const char *uuid, char letter, int first, int count);
const char *waiter_id(const char *uuid, int ticket, char letter);
/* The number of readers; the number of waiters in a queue, without the bar. */
long long count_reading(void);
long long count_waiting(const char *queue);
/* A reader's end in `readers` as the server's time in ms (-1: none); sets another end;
 * whether it reads. */
long long end_of(const char *id);
void set_end(const char *id, long long end);
bool reads_now(const char *id);
long long server_ms(void);
/* Put a waiter into QUEUE or RQUEUE; make a client present that has no listener. */
void put_waiter(const char *queue, const char *id, long long ticket);
void put_present(const char *uuid);
/* A connection without the permission to ask for listeners: only PUBLISH tells it that
 * there are none. */
struct test_redis *limited_user(void);
/* Asserts W3: N ends together with the latest reader, whose id is `id`. */
void assert_fit(const char *id);
/* The waiter with a listener that waits although the lock is free for it, in the keys
 * that a script left at server time `now` with this PTTL of N; "": none. Rule W13 says
 * that there is none. Asserted after each script of the read-write lock that ran the
 * hand-over to its end. */
const char *waits_for_free(long long now, long long left);
/* Frees the lock without a release, as an expiry does. */
void expire(void);

#endif
