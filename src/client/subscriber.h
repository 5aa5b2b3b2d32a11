/* SPDX-License-Identifier: Apache-2.0 */
/* The subscriber thread: listens to the mailboxes of all clients, and calls event
 * callbacks. */
#ifndef RLK_SUBSCRIBER_H
#define RLK_SUBSCRIBER_H

#include "base/log.h"
#include "client/events.h"
#include "client/loop.h"
#include "net/conn.h"

/* A target's part; used by the thread only, except `member` and the atomic fields. */
struct rlk_subscription {
    /* atomic: read by all threads, also when the target is not used any more */
    atomic_bool subscribed; /* to the mailbox, confirmed by the server */
    atomic_bool hears;      /* and no reply of the server is due */
    /* A request that was sent at this time found no subscriber of the mailbox; 0:
     * none. Set by the watchdog. */
    _Atomic int64_t unheard_at;
    _Atomic int64_t away_since; /* told_down: when the server last answered; else 0 */

    struct rlk_loop_member member;
    struct rlk_conn *conn;
    enum { RLK_SUB_DOWN, RLK_SUB_OPENING, RLK_SUB_JOINING, RLK_SUB_UP } state;
    bool told_down, been_up;
    bool leaving; /* the thread left a server by its own choice: an event follows only if
                     no other server takes its place */
    int64_t retry_at;
    int backoff_ms;
    int64_t answer_due; /* of SUBSCRIBE or PING; RLK_NEVER: no reply is due */
    int64_t asked_at;   /* when that request, or the attempt to connect, began */
    int64_t ping_at;
    struct sockaddr_storage address;
    socklen_t address_len;
    unsigned address_moves; /* the count of moves at that time */
    int64_t up_at;          /* when SUBSCRIBE was last confirmed */
    int64_t leave_at;       /* the earliest time to leave a server that is another one */
    int64_t rested; /* how long the last connection was silent before it was closed */
    struct rlk_log_pace pace;      /* of refusals */
    struct rlk_log_pace link_pace; /* of lines */
    /* The connection's epoll set: the thread polls it, so that a leader (leader.h) can
     * stop the connection's input from waking the thread; -1: none. */
    int watch_fd, leader_fd; /* leader_fd: the registry's, closed here */
    /* The owner of the connection and of the state: the thread; a leader, if there is
     * one; or the leader until it leaves, which it was asked to. */
    enum { RLK_SUB_OWN, RLK_SUB_LENT, RLK_SUB_RECALLED } mode;
    struct rlk_reply *left_over; /* from a leader, for the thread; or NULL */
    int64_t due; /* when the thread needs the connection, as of its last step */
};

struct rlock_client;
struct rlk_target;

/* Begins to listen at a target. Returns 0, EAGAIN, ENOMEM, EMFILE or ENFILE. */
int rlk_subscriber_join(struct rlk_target *target);
/* Returns when the thread does not use the target any more. May be called on the
 * thread itself. */
void rlk_subscriber_leave(struct rlk_target *target);
/* The same in two steps, for the watchdog thread, which cannot wait for the other one. */
void rlk_subscriber_send_off(struct rlk_target *target);
bool rlk_subscriber_has_left(struct rlk_target *target);
/* After that: as it was at first. */
void rlk_subscriber_reset(struct rlk_subscription *sub);
/* Makes the thread check that it listens where the locks are. Locks: takes the
 * registry's mu. */
void rlk_subscriber_look(struct rlock_client *client);
/* Reads the mailbox in place of the thread, which has lent it (leader.h). False: the
 * thread must look itself. Locks: takes the registry's mu. */
bool rlk_subscriber_read(struct rlk_target *target);
/* Whether the calling thread is the subscriber, which hears nothing meanwhile. */
bool rlk_subscriber_is_self(void);
/* In a child: the thread is the parent's. */
void rlk_subscriber_forget(void);

/* ---- subscriber_channel.c, for the thread: Redisson's channels of locks. Locks: take
 * the registry's mu. */

/* Subscribes on a new connection to the channels that waiters need. Returns 0 or ENOMEM.
 */
int rlk_subscriber_channel_rejoin(struct rlk_target *target);
/* Subscribes and unsubscribes as the waiters' needs have changed. Returns 0 or ENOMEM. */
int rlk_subscriber_channel_follow(struct rlk_target *target);
/* The server has ended the subscription of a sharded channel. If a waiter needs it, it is
 * subscribed again: the answer shows that the hash slot has moved. Thread: also the
 * leader. */
void rlk_subscriber_channel_left(struct rlock_client *client, const char *channel,
                                 size_t len);

/* ---- subscriber_mail.c, for the thread and the leader. Locks: takes the registry's mu.
 */

/* A message in the mailbox. */
void rlk_subscriber_take_mail(struct rlock_client *client, const char *text, size_t len);
/* A message on a lock's channel: the lock may be free. */
void rlk_subscriber_take_channel(struct rlock_client *client, const char *channel,
                                 size_t len);

#endif
