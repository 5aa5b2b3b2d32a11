/* SPDX-License-Identifier: Apache-2.0 */
/* Events told to the user of a client. Thread: the subscriber's. All return false when
 * the callback closed the client, or came back in a child of its own: the client is not
 * to be touched then. */
#ifndef RLK_EVENTS_H
#define RLK_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct rlock_client;

enum { RLK_HOLD_EVENT_KINDS = 4 }; /* of news, each with a pace of its own in the log */

/* The server is not there, and was last at `since`: told once, until it is up again. */
bool rlk_events_down(struct rlock_client *client, const char *reason, int64_t since);
/* It is up, and was before, or not. */
bool rlk_events_up(struct rlock_client *client, bool again);
/* All that is new about the client's holds. */
bool rlk_events_news(struct rlock_client *client);

#endif
