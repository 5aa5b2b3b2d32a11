/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process knows of one condition: its threads that wait, what it has still to tell
 * the server of waits that are over, and signals that no caller could send. A condition
 * exists while there is any of that. It has no Redis in it. Owner: the registry, whose
 * mutex guards everything here. Functions that end in _locked need it. Times are
 * CLOCK_BOOTTIME ns.
 */
#ifndef RLK_CONDITION_H
#define RLK_CONDITION_H

#include "base/list.h"
#include "base/timer.h"
#include "net/id.h"
#include "state/op.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_condition;
struct rlk_registry;
struct rlk_thread;

enum { RLK_CONDITION_LETTER = 'c' }; /* of the ids of waits */

/* A wait: JOINING, WAITING, BACK, then DONE or LEFT. */
enum rlk_wait_state {
    RLK_WAIT_JOINING, /* no answer says yet that the id waits */
    RLK_WAIT_WAITING,
    RLK_WAIT_BACK, /* woken: its thread is taking the mutex again */
    RLK_WAIT_DONE, /* over: the server is to learn that the thread returned */
    RLK_WAIT_LEFT  /* over: if the id was signalled, another waiter gets the signal */
};

struct rlk_wait {
    struct rlk_list link; /* in waits, in over, or in a caller's rlk_settlement */
    struct rlk_condition *condition;
    struct rlk_thread *thread; /* NULL when its call has returned */
    struct rlk_id id;
    unsigned refs;        /* its place in a list, and the poll in flight */
    uint8_t state;        /* enum rlk_wait_state */
    bool told;            /* the server says that it took the id out of its queue */
    bool unasked;         /* the wait is to end, and the server did not say that */
    bool taken_out;       /* told, and the server has no entry of it any more */
    bool marked;          /* LEFT: a request of the id may still be on its way */
    int64_t ticket;       /* that an answer confirmed; 0: none */
    int64_t early_ticket; /* of a message that came before that answer; 0: none */
    bool early_out;       /* that message would make it taken_out */
};

/* A poll in flight names these waits, each with a reference. */
struct rlk_condition_poll {
    struct rlk_op op;
    bool with_text; /* the next request brings the script's text */
    bool again;     /* a reason for another one came up while one was in flight */
    struct rlk_wait **waits;
    size_t count, size;
    struct rlk_list over; /* waits whose end it tells the server */
};

/* Signals that the watchdog sends, because callers could not (V17). */
struct rlk_condition_signals {
    struct rlk_op op;
    bool with_text;
    uint64_t count;     /* to be sent */
    uint64_t in_flight; /* of them, in the request; 0: it is a broadcast's */
    bool all;           /* a broadcast is to be sent, */
    int64_t bar;        /* which has come so far */
    bool all_next;      /* another one, which began while that was in flight: */
    int64_t bar_next;   /* it may have to wake waiters that joined later */
};

struct rlk_condition {
    /* immutable */
    struct rlk_registry *registry;
    uint32_t hash;
    uint8_t name_len;

    uint16_t intent; /* while threads wait, and while the server is to learn of it (V15);
                        0: none */
    struct rlk_condition *chain;
    unsigned refs;         /* of callers, and of requests in flight */
    struct rlk_list waits; /* JOINING, WAITING, BACK; oldest first */
    struct rlk_list over;  /* DONE, LEFT */
    size_t asleep;         /* waits that were not woken */
    struct rlk_timer timer;
    int64_t pause; /* ns before a failed request is repeated; 0: none failed */
    struct rlk_condition_poll poll;
    struct rlk_condition_signals signals;
    char name[]; /* immutable; NUL-terminated */
};

/* The conditions of a client: a table by name. */
struct rlk_conditions {
    struct rlk_condition **table;
    size_t size, count;  /* size: a power of two, or 0 */
    size_t signal_count; /* conditions with signals to be sent */
    size_t asleep;       /* waits that were not woken */
    struct rlk_list free_waits;
    size_t free_count;
};

void rlk_condition_init(struct rlk_conditions *all);
/* Frees what is left. No thread may be inside. */
void rlk_condition_destroy(struct rlk_conditions *all);
/* Gives up what is still to be sent: the client ends. */
void rlk_condition_shut_locked(struct rlk_registry *reg);

/* The condition of a name, made if need be, with one more reference. NULL: out of
 * memory. */
struct rlk_condition *rlk_condition_get_locked(struct rlk_registry *reg, const char *name,
                                               size_t name_len);
/* The same if it exists; no reference. */
struct rlk_condition *rlk_condition_find_locked(struct rlk_registry *reg,
                                                const char *name, size_t name_len);
/* One more reference, or one less. The condition may be gone afterwards. */
void rlk_condition_ref_locked(struct rlk_condition *condition);
void rlk_condition_put_locked(struct rlk_condition *condition);

/* ---- waits */

/* A thread begins to wait: JOINING, with a new id. NULL: out of memory. */
struct rlk_wait *rlk_condition_begin_locked(struct rlk_condition *condition,
                                            struct rlk_thread *thread,
                                            uint32_t presence_ms);
/* An answer says that the id waits with this ticket. */
void rlk_condition_joined_locked(struct rlk_wait *wait, int64_t ticket);
/* An answer says that the id was taken out of the server's queue. */
void rlk_condition_told_locked(struct rlk_wait *wait);
/* The same of an id of this process, by the reply to a signal (out: by a broadcast). */
void rlk_condition_told_own_locked(struct rlk_condition *condition,
                                   const struct rlk_id *id, int64_t ticket, bool out);
/* The thread goes back to its mutex. Until it has that, polls name the wait. */
void rlk_condition_back_locked(struct rlk_wait *wait);
/* How a wait is over. */
enum rlk_condition_end {
    RLK_CONDITION_RETURNED, /* with the mutex, or it never gave that up */
    RLK_CONDITION_LEFT,     /* not so: others may need its signal */
    RLK_CONDITION_REMOVED   /* the server has nothing of it */
};
/* The call returns. marked: a request of the id may still be on its way. */
void rlk_condition_end_locked(struct rlk_wait *wait, enum rlk_condition_end how,
                              bool marked);

/* ---- facts */

/* A message of the mailbox says that the id was woken. False: the process does not know
 * the id. */
bool rlk_condition_message_locked(struct rlk_registry *reg, const struct rlk_id *id,
                                  int64_t ticket, const char *name, size_t name_len);
/* The server may have forgotten the last signals of these conditions: each wait ends
 * (V2). is NULL: of all. */
typedef bool (*rlk_condition_is)(const struct rlk_condition *condition, void *arg);
void rlk_condition_wake_some_locked(struct rlk_registry *reg, rlk_condition_is is,
                                    void *arg);
/* Wakes all threads that wait, so that they look (interrupt). */
void rlk_condition_call_all_locked(struct rlk_registry *reg);

/* ---- what the server is still to learn */

/* Room for the ids in one request of a caller. */
enum { RLK_SETTLEMENT_MAX = 16, RLK_SETTLEMENT_ID_SIZE = RLK_ID_SIZE - RLK_UUID_LEN + 2 };
/* Waits that are over, in a request of a caller; on its stack. */
struct rlk_settlement {
    struct rlk_list waits;
    size_t done_len, left_len;
    char done[RLK_SETTLEMENT_MAX * RLK_SETTLEMENT_ID_SIZE];
    char left[RLK_SETTLEMENT_MAX * RLK_SETTLEMENT_ID_SIZE];
};
/* Takes waits that are over, and writes their ids, without the uuid and with a blank
 * after each. condition NULL: none. */
void rlk_condition_settle_locked(struct rlk_condition *condition,
                                 struct rlk_settlement *ret_settlement);
/* The request was answered (`told`), or is to be repeated. */
void rlk_condition_settled_locked(struct rlk_condition *condition,
                                  struct rlk_settlement *settlement, bool told);
/* Writes the id of a wait that is over; returns its length. */
size_t rlk_condition_write_over(char *buf, const struct rlk_wait *wait);
/* Moves a wait that is over to `over`, or frees it (`told`). */
void rlk_condition_over_locked(struct rlk_wait *wait, bool told);
/* Gives back a reference. */
void rlk_condition_put_wait_locked(struct rlk_wait *wait);

/* Arms the timer for what is due. */
void rlk_condition_schedule_locked(struct rlk_condition *condition, int64_t now);

/* Signals that a caller could not send. count 0: a broadcast, which came to `bar`. */
void rlk_condition_send_later_locked(struct rlk_condition *condition, uint64_t count,
                                     int64_t bar);
/* A request with signals is over: the next one may be sent. */
void rlk_condition_signals_over_locked(struct rlk_condition *condition);
/* Whether signals are to be sent, or on their way. */
static inline bool rlk_condition_has_signals(const struct rlk_condition *condition)
{
    const struct rlk_condition_signals *signals = &condition->signals;

    return signals->count > 0 || signals->all || signals->op.kind != RLK_OP_NONE;
}
/* Call after a change of that. */
void rlk_condition_count_signals_locked(struct rlk_condition *condition, bool had);

#endif
