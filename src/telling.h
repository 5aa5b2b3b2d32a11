/* SPDX-License-Identifier: Apache-2.0 */
/* Events told to the user of a client. Thread: the subscriber's. Both return false when
 * the callback closed the client, or came back in a child of its own: the client is not
 * to be touched then. */
#ifndef RLK_TELLING_H
#define RLK_TELLING_H

#include <stdbool.h>

struct rlock_client;

/* The connection is up again, or down, which has a reason. */
bool rlk_tell_connection(struct rlock_client *client, bool up, const char *reason);
/* All that is new about the client's holds. */
bool rlk_tell_news(struct rlock_client *client);

#endif
