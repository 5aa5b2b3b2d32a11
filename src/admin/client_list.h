/* SPDX-License-Identifier: Apache-2.0 */
/* The output of CLIENT LIST: which client is which process. Owned by the caller. */
#ifndef RLK_CLIENT_LIST_H
#define RLK_CLIENT_LIST_H

#include <stddef.h>
#include <stdint.h>

struct rlock_client;

/* The names of the library's connections, "<uuid>:host:pid:program", by uuid. */
struct rlk_client_list {
    char *text; /* the whole list */
    const char **names;
    size_t count;
};

/* Empty if the ACL refuses the command or memory is lacking. Blocks: network. */
struct rlk_client_list rlk_client_list_list(struct rlock_client *client, int64_t until);
void rlk_client_list_free(struct rlk_client_list *peers);

/* Points at "host:pid:program" of the client `uuid`; NULL if it is not in the list. */
const char *rlk_client_list_find(const struct rlk_client_list *peers, const char *uuid,
                                 size_t uuid_len, size_t *ret_len);

#endif
