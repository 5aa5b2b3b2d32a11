/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sentinel: which server is the master. An *ask* asks all sentinels at once, each on a
 * connection of its own, and takes the newest answer. It belongs to one thread, never
 * blocks, and has one descriptor to poll. The *book* is what all connections of a client
 * know: further sentinels, and the master that was proven last.
 *
 * Sentinels vote on each failover, and number it by the config epoch: of two answers the
 * one with the greater epoch is newer. What an answer says is not a proof; ROLE is
 * (conn_hello.c).
 */
#ifndef RLK_SENTINEL_H
#define RLK_SENTINEL_H

#include "net/conn.h"

enum {
    RLK_SENTINEL_HOST_SIZE = 256,
    RLK_SENTINEL_LABEL_SIZE = 128,
    RLK_SENTINEL_TEXT_SIZE = 200,
    RLK_SENTINEL_LEARNED_MAX = 16,
    RLK_SENTINEL_ASKED_MAX = RLK_URL_SENTINELS_MAX + RLK_SENTINEL_LEARNED_MAX
};

struct rlk_sentinel_address {
    char host[RLK_SENTINEL_HOST_SIZE];
    uint16_t port;
};

/* What a name led to. */
struct rlk_sentinel_socket {
    struct sockaddr_storage storage;
    socklen_t len; /* 0: unknown */
};

struct rlk_sentinel_master {
    struct rlk_sentinel_address address;
    int64_t epoch;
};

bool rlk_sentinel_same(const struct rlk_sentinel_address *a,
                       const struct rlk_sentinel_address *b);

/* ---- the book. Thread: any. Locks: takes a mutex of its own, which nests in nothing. */

struct rlk_sentinel_book;
/* NULL: out of memory. */
struct rlk_sentinel_book *rlk_sentinel_book_create(void);
void rlk_sentinel_book_free(struct rlk_sentinel_book *book);
/* In a forked child: it is empty again. NULL: does nothing. */
void rlk_sentinel_book_forget(struct rlk_sentinel_book *book);

/* The sentinels to ask: those of the URL, then those learned. Returns how many. */
size_t rlk_sentinel_book_list(const struct rlk_endpoint *endpoint,
                              struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX]);
/* Where sentinel i of the URL answered last, if it has a name: while the resolver is
 * down, it can be asked all the same. */
struct rlk_sentinel_socket rlk_sentinel_book_socket(struct rlk_sentinel_book *book,
                                                    size_t i);
void rlk_sentinel_book_connected(struct rlk_sentinel_book *book, size_t i,
                                 const struct rlk_sentinel_socket *socket);
/* Replaces the sentinels learned. */
void rlk_sentinel_book_learn(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *learned, size_t count);
/* Whether this one, which was learned, has ever answered. */
bool rlk_sentinel_book_is_useful(struct rlk_sentinel_book *book,
                                 const struct rlk_sentinel_address *learned);
/* It was asked. Forgets it after some asks without an answer. */
void rlk_sentinel_book_asked(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_address *learned, bool answered);
/* The master that was proven last. False: none was. */
bool rlk_sentinel_book_present(struct rlk_sentinel_book *book,
                               struct rlk_sentinel_master *ret_master);

/* Whether this is the address of that master, or one that led to it, too. */
bool rlk_sentinel_book_is(struct rlk_sentinel_book *book,
                          const struct rlk_sentinel_address *address);
/* A sentinel announced a switch, and the client has left the master: until the next proof
 * the answers of all sentinels of the URL are wanted. */
void rlk_sentinel_book_told(struct rlk_sentinel_book *book);
/* Whether they are: also before the first proof. */
bool rlk_sentinel_book_expects(struct rlk_sentinel_book *book);
/* Whether a sentinel that says of another, newer master that it is down may keep the
 * client from an older one: for some seconds. False in `vetoed`: none does. */
bool rlk_sentinel_book_veto(struct rlk_sentinel_book *book, bool vetoed, int64_t now);

/* The client's mailbox connection to that master was heard, and counts as alive until
 * `until`; 0: it does not. */
void rlk_sentinel_book_heard(struct rlk_sentinel_book *book, int64_t until);
/* The master that was proven last, if that connection is alive. Else false. */
bool rlk_sentinel_book_alive(struct rlk_sentinel_book *book, int64_t now,
                             struct rlk_sentinel_master *ret_master);

/* What an ask came to. */
struct rlk_sentinel_chosen {
    struct rlk_sentinel_master master;
    bool agreed;                     /* all answers name this address */
    bool newest;                     /* it is the newest of them */
    unsigned edition;                /* the book's, from before the choice */
    struct rlk_sentinel_socket peer; /* of a connection to that address */
};

/* Counts the changes of the master that was proven. */
unsigned rlk_sentinel_book_edition(struct rlk_sentinel_book *book);
/* A connection proved that this is the master. `moves` counts a move if it is another one
 * than the last. *seen: the count when the connection began; then the count that it has
 * seen. False: another connection has proved another master since the choice, and its
 * proof is the newer one. */
bool rlk_sentinel_book_proved(struct rlk_sentinel_book *book,
                              const struct rlk_sentinel_chosen *chosen,
                              struct rlk_moves *moves, unsigned *seen);
/* There is no master at the address that was chosen. */
void rlk_sentinel_book_wrong(struct rlk_sentinel_book *book,
                             const struct rlk_sentinel_chosen *chosen, int64_t now);
/* Whether to try an address that most sentinels agree on: the newest answers were wrong,
 * and others contradicted them, for so long that they cannot be news any more; and it is
 * not their turn. */
bool rlk_sentinel_book_doubts(struct rlk_sentinel_book *book, int64_t now);

/* ---- replies */

enum rlk_sentinel_said {
    RLK_SENTINEL_SILENT,  /* no answer, or no connection */
    RLK_SENTINEL_DENIED,  /* it requires other credentials, or rights */
    RLK_SENTINEL_STRANGE, /* it is no sentinel */
    RLK_SENTINEL_UNKNOWN, /* it does not know a master of this name */
    RLK_SENTINEL_DOWN,    /* it cannot reach the master */
    RLK_SENTINEL_FOUND
};

/* What one sentinel answered. */
struct rlk_sentinel_answer {
    struct rlk_sentinel_address sentinel;
    bool listed; /* in the URL */
    enum rlk_sentinel_said said;
    struct rlk_sentinel_master master;   /* DOWN, FOUND */
    bool settles;                        /* DOWN: it only has no connection yet */
    bool in_failover;                    /* the same: it leads one */
    int64_t quorum, sentinels, replicas; /* the same: as this sentinel counts them */
    char text[RLK_SENTINEL_TEXT_SIZE];   /* else: why not */
};

/* Takes the reply to SENTINEL MASTER. */
void rlk_sentinel_reply_master(struct rlk_sentinel_answer *answer,
                               const struct rlk_reply *reply);
/* Takes the reply to SENTINEL GET-MASTER-ADDR-BY-NAME, after that to SENTINEL MASTER. */
void rlk_sentinel_reply_address(struct rlk_sentinel_answer *answer,
                                const struct rlk_reply *reply);
/* Takes the reply to SENTINEL SENTINELS. Returns how many were taken. */
size_t
rlk_sentinel_reply_others(const struct rlk_reply *reply,
                          struct rlk_sentinel_address list[RLK_SENTINEL_LEARNED_MAX]);
/* Takes a message of +switch-master: the new address of that master. False: it is about
 * another master, or no such message. */
bool rlk_sentinel_reply_switch(const char *text, size_t len, const char *master,
                               struct rlk_sentinel_address *ret_address);

/* ---- connections to sentinels */

/* The endpoint of a connection to that sentinel. It refers to both arguments, and to its
 * own label. */
void rlk_sentinel_endpoint(struct rlk_endpoint *ret_endpoint,
                           const struct rlk_endpoint *of,
                           struct rlk_sentinel_address *sentinel);
/* Options for such a connection; in_loop: see conn.h. */
struct rlk_conn_options rlk_sentinel_options(const struct rlk_endpoint *sentinel,
                                             bool in_loop);
/* Appends SENTINEL <verb> <master>. 0 or ENOMEM. */
int rlk_sentinel_append(struct rlk_conn *conn, const char *verb, const char *master);
/* Appends both questions for the master: SENTINEL MASTER, and SENTINEL
 * GET-MASTER-ADDR-BY-NAME. The sentinel that leads a failover names the old master in
 * the first one until all replicas follow the new master, though with the new epoch. 0 or
 * ENOMEM. */
int rlk_sentinel_append_ask(struct rlk_conn *conn, const char *master);

/* ---- an ask */

struct rlk_sentinel_ask;
enum rlk_sentinel_how {
    RLK_SENTINEL_FOR_CALLER, /* whose connection waits: most answers suffice */
    RLK_SENTINEL_IN_LOOP,    /* the same, by a thread that serves all clients (conn.h) */
    RLK_SENTINEL_ALL         /* every answer is wanted */
};

/* Begins to ask the sentinels of the endpoint; at `until` those that are silent have no
 * say in it. 0 or a code with the thread's message. */
int rlk_sentinel_ask_start(struct rlk_sentinel_ask **ret_ask,
                           const struct rlk_endpoint *endpoint, int64_t until,
                           enum rlk_sentinel_how how);
void rlk_sentinel_ask_free(struct rlk_sentinel_ask *ask);
int rlk_sentinel_ask_fd(const struct rlk_sentinel_ask *ask);
int64_t rlk_sentinel_ask_due(const struct rlk_sentinel_ask *ask);
/* True: it is over. */
bool rlk_sentinel_ask_step(struct rlk_sentinel_ask *ask);
size_t rlk_sentinel_ask_count(const struct rlk_sentinel_ask *ask);
const struct rlk_sentinel_answer *
rlk_sentinel_ask_answer(const struct rlk_sentinel_ask *ask, size_t i);
/* Whether all sentinels have failed, none of them by silence. */
bool rlk_sentinel_ask_failed(const struct rlk_sentinel_ask *ask);

/* The master by the answers. False: none names a usable one. */
bool rlk_sentinel_choice(const struct rlk_sentinel_ask *ask,
                         const struct rlk_endpoint *endpoint,
                         struct rlk_sentinel_chosen *ret_chosen);
/* Whether no sentinel answered, and none refused. */
bool rlk_sentinel_choice_silent(const struct rlk_sentinel_ask *ask);
/* Whether one of them says that the master is down. */
bool rlk_sentinel_choice_down(const struct rlk_sentinel_ask *ask);
/* Why there is none: the text, and as what a connection fails for it. */
enum rlk_failure rlk_sentinel_choice_none(const struct rlk_sentinel_ask *ask,
                                          const struct rlk_endpoint *endpoint, char *buf,
                                          size_t size);

#endif
