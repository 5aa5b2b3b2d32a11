/* SPDX-License-Identifier: Apache-2.0 */
/* Which client is which process. Thread: any. Blocks: network, until `until`. */
#include "admin/client_list.h"

#include "base/error.h"
#include "client/client.h"
#include "client/masters.h"
#include "client/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_uuid(const void *a, const void *b)
{
    return strncmp(*(const char *const *)a, *(const char *const *)b, RLK_UUID_LEN);
}

const char *rlk_client_list_find(const struct rlk_client_list *peers, const char *uuid,
                                 size_t uuid_len, size_t *ret_len)
{
    if (!peers || peers->count == 0 || uuid_len != RLK_UUID_LEN)
        return NULL;
    const char *const *found =
        bsearch(&uuid, peers->names, peers->count, sizeof(*peers->names), by_uuid);
    if (!found)
        return NULL;
    const char *at = *found + RLK_UUID_LEN + 1;
    *ret_len = strcspn(at, " \n");
    return at;
}

/* The next name in the text; NULL: none. */
static const char *next_name(const char *text)
{
    static const char key[] = " name=rlock:";

    while ((text = strstr(text, key)) != NULL) {
        text += sizeof(key) - 1;
        if (strcspn(text, ": \n") == RLK_UUID_LEN && text[RLK_UUID_LEN] == ':')
            return text;
    }
    return NULL;
}

/* Leaves out all names when memory is lacking. */
static void index_peers(struct rlk_client_list *peers)
{
    size_t count = 0;

    for (const char *at = peers->text; at && (at = next_name(at)) != NULL;)
        count++;
    if (count == 0)
        return;
    peers->names = malloc(count * sizeof(*peers->names));
    if (!peers->names)
        return;
    for (const char *at = peers->text; (at = next_name(at)) != NULL;)
        peers->names[peers->count++] = at;
    qsort(peers->names, count, sizeof(*peers->names), by_uuid);
}

void rlk_client_list_free(struct rlk_client_list *peers)
{
    free(peers->names);
    free(peers->text);
}

/* Adds what another server says. Without memory it is left out. */
static void add_text(struct rlk_client_list *peers, const char *text)
{
    char *all = NULL;

    if (asprintf(&all, "%s%s", peers->text ? peers->text : "", text) < 0)
        return;
    free(peers->text);
    peers->text = all;
}

struct rlk_client_list rlk_client_list_list(struct rlock_client *client, int64_t until)
{
    struct rlk_client_list peers = { 0 };
    static const char *const argv[] = { "CLIENT", "LIST" };
    struct rlk_masters masters = { .count = 0 };

    (void)rlk_masters_get(client, until, &masters);
    for (size_t i = 0; i < masters.count; i++) {
        struct rlk_reply *reply = NULL;
        struct rlk_answer answer;
        size_t size;
        (void)rlk_rpc_command_at(masters.each[i], 2, argv, until, &answer, &reply);
        if (reply && rlk_reply_type(reply) == RLK_REPLY_STRING)
            add_text(&peers, rlk_reply_string(reply, &size));
        rlk_reply_free(reply);
    }
    rlk_masters_put(&masters);
    rlk_error_clear();
    index_peers(&peers);
    return peers;
}
