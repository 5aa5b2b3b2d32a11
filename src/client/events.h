/* SPDX-License-Identifier: Apache-2.0 */
/* Events for the user of a client. Thread: the subscriber. Where a function returns
 * false, the callback closed the client, or returned in a child that it forked: do not
 * touch the client then. */
#ifndef RLK_EVENTS_H
#define RLK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlock_client;
struct rlk_target;

enum {
    RLK_HOLD_EVENT_KINDS = 4
}; /* of news about holds, each with its own pace in the log */

/* The server is unreachable and last answered at `since`. Reported once, until it is
 * back. */
bool rlk_events_down(struct rlk_target *target, const char *reason, int64_t since);
/* The server is reachable. again: it was before. */
bool rlk_events_up(struct rlk_target *target, bool again);
/* The node of a cluster has no locks any more. If it was reported unreachable, that is
 * over. */
bool rlk_events_left(struct rlk_target *target);
/* Completes the reason for the end of a mailbox connection that was silent for `rested`
 * ns when its peer closed it (0: it was in use). One may be closed by chance, but not two
 * after the same time. */
void rlk_events_explain_rest(struct rlk_target *target, int64_t rested, char *reason,
                             size_t size);
/* Reports all news about the client's holds and about dead processes. */
bool rlk_events_news(struct rlock_client *client);

#endif
