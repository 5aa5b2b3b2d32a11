/* SPDX-License-Identifier: Apache-2.0 */
/* What CLIENT LIST says about who is who. */
#ifndef RLK_PEERS_H
#define RLK_PEERS_H

#include <stddef.h>
#include <stdint.h>

struct rlock_client;

/* The names of connections that are ours, "<uuid>:host:pid:program", by uuid. */
struct rlk_peers {
    char *text; /* the whole list */
    const char **names;
    size_t count;
};

/* Empty where the ACL refuses it, and where there is no memory for it. */
struct rlk_peers rlk_peers_list(struct rlock_client *client, int64_t until);
void rlk_peers_free(struct rlk_peers *peers);

/* Points at "host:pid:program" of the client `uuid`; NULL when it is not there. */
const char *rlk_peers_find(const struct rlk_peers *peers, const char *uuid,
                           size_t uuid_len, size_t *ret_len);

#endif
