/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster_ids.h. */
#include "net/cluster_ids.h"

#include <string.h>

enum { ID_LEN = RLK_CLUSTER_ID_SIZE - 1 };

static bool is_id(const char *id, size_t len)
{
    return len == ID_LEN && strspn(id, "0123456789abcdef") >= ID_LEN;
}

void rlk_cluster_ids_add(struct rlk_cluster_ids *ids, const char *id, size_t len)
{
    size_t at = ids->count;
    int order = 1;

    if (!is_id(id, len))
        return;
    while (at > 0 && (order = memcmp(id, ids->ids[at - 1], ID_LEN)) < 0)
        at--;
    if ((at > 0 && order == 0) || at == RLK_CLUSTER_IDS_MAX)
        return;
    if (ids->count < RLK_CLUSTER_IDS_MAX)
        ids->count++;
    memmove(ids->ids[at + 1], ids->ids[at], (ids->count - 1 - at) * sizeof(ids->ids[0]));
    memcpy(ids->ids[at], id, ID_LEN);
    ids->ids[at][ID_LEN] = '\0';
}

bool rlk_cluster_ids_meet(const struct rlk_cluster_ids *a,
                          const struct rlk_cluster_ids *b)
{
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int order = strcmp(a->ids[i], b->ids[k]);
        if (order == 0)
            return true;
        i += order < 0;
        k += order > 0;
    }
    return false;
}

bool rlk_cluster_ids_equal(const struct rlk_cluster_ids *a,
                           const struct rlk_cluster_ids *b)
{
    return a->count == b->count &&
           memcmp(a->ids, b->ids, a->count * sizeof(a->ids[0])) == 0;
}

void rlk_cluster_ids_write(const struct rlk_cluster_ids *ids,
                           char buf[RLK_CLUSTER_IDS_TEXT])
{
    char *at = buf;

    for (size_t i = 0; i < ids->count; i++) {
        if (i > 0)
            *at++ = ' ';
        memcpy(at, ids->ids[i], ID_LEN);
        at += ID_LEN;
    }
    *at = '\0';
}

void rlk_cluster_ids_read(struct rlk_cluster_ids *ids, const char *text)
{
    ids->count = 0;
    while (*text) {
        size_t len = strcspn(text, " ");
        rlk_cluster_ids_add(ids, text, len);
        text += len;
        text += strspn(text, " ");
    }
}
