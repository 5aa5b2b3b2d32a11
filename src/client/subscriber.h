/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriber thread: listens to the mailboxes of all clients, and tells event
 * callbacks. */
#ifndef RLK_SUBSCRIBER_H
#define RLK_SUBSCRIBER_H

#include "base/log.h"
#include "client/events.h"
#include "client/loop.h"
#include "net/conn.h"

/* A client's part; the thread's own, but for `member`. */
struct rlk_subscription {
    struct rlk_loop_member member;
    struct rlk_conn *conn;
    enum { RLK_SUB_DOWN, RLK_SUB_OPENING, RLK_SUB_JOINING, RLK_SUB_UP } state;
    bool told_down, been_up;
    bool leaving; /* by our own wish: it is told if no other takes its place */
    int64_t retry_at;
    int backoff_ms;
    int64_t answer_due; /* of SUBSCRIBE or PING; RLK_NEVER: none is awaited */
    int64_t asked_at;   /* when that one, or the attempt to connect, began */
    int64_t ping_at;
    atomic_bool subscribed; /* to the mailbox, as the server has confirmed */
    atomic_bool hears;      /* and no answer of the server is awaited */
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned address_moves; /* the count of moves then */
    /* A request that was sent then found nobody listening; 0: none. Set by the watchdog.
     */
    _Atomic int64_t unheard_at;
    int64_t up_at;            /* when it was last heard that SUBSCRIBE was done */
    int64_t leave_at;         /* not before, where the server is another one */
    struct rlk_log_pace pace; /* of what the server refuses */
    struct rlk_log_pace link_pace, paces[RLK_HOLD_EVENT_KINDS]; /* of what is told */
    _Atomic int64_t away_since; /* told_down: when the server was last there; else 0 */
    /* Has the connection in the midst of other things, so that whoever leads (leader.h)
     * can keep what it reads from waking the thread; -1: there is none. */
    int watch_fd, leader_fd; /* leader_fd: as the registry's, to be closed */
    /* Whose connection and state are: the thread's; whoever's leads, if somebody does;
     * the leader's until it leaves, which it was told to. */
    enum { RLK_SUB_OWN, RLK_SUB_LENT, RLK_SUB_RECALLED } mode;
    struct rlk_reply *left_over; /* of a leader, for the thread; or NULL */
    int64_t due; /* when the thread needs the connection, by its last look at it */
};

struct rlock_client;

/* Starts to listen for a client. 0, EAGAIN, ENOMEM, EMFILE, ENFILE. */
int rlk_subscriber_join(struct rlock_client *client);
/* Returns when the thread touches the client no more. Callable on the thread itself. */
void rlk_subscriber_leave(struct rlock_client *client);
/* To look whether it listens where the locks are. Locks: takes the registry's mu. */
void rlk_subscriber_look(struct rlock_client *client);
/* Reads the mailbox in place of the thread, which lets it (leader.h). False: it is to
 * look itself. Locks: takes the registry's mu. */
bool rlk_subscriber_read(struct rlock_client *client);
/* Whether the calling thread is the one that listens, and so hears nothing meanwhile. */
bool rlk_subscriber_is_self(void);
/* In a child: the thread was the parent's. */
void rlk_subscriber_forget(void);

#endif
