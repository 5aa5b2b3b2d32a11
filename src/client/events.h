/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the user of a client. Thread: the subscriber. All functions return false
 * when the callback closed the client, or returned in a child that it forked: do not
 * touch the client then. */
#ifndef RLK_EVENTS_H
#define RLK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct rlock_client;

enum {
    RLK_HOLD_EVENT_KINDS = 4
}; /* of news about holds, each with its own pace in the log */

/* The server is unreachable and last answered at `since`. Reported once, until it is
 * back. */
bool rlk_events_down(struct rlock_client *client, const char *reason, int64_t since);
/* The server is reachable. again: it was before. */
bool rlk_events_up(struct rlock_client *client, bool again);
/* Reports all news about the client's holds and about dead processes. */
bool rlk_events_news(struct rlock_client *client);

#endif
