/* SPDX-License-Identifier: Apache-2.0 */
/* See cluster_map.h. A map of a thousand masters has thousands of ranges, in which each
 * master comes again and again: a hash table by address finds it. */
#include "net/cluster_map.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_LEN_MIN = 3, NODE_LEN_MIN = 2 };

struct parse {
    struct rlk_cluster_map *map;
    const char *asked_host;
    size_t master_max;
    uint16_t *index; /* of masters, plus 1; by the hash of their addresses */
    size_t index_size;
};

static int bad(const char *what)
{
    return rlk_error_set(EPROTO, "unexpected reply to CLUSTER SLOTS (%s)", what);
}

/* ---- masters */

static size_t place_of(const struct parse *p, const char *host, uint16_t port)
{
    return (size_t)((rlk_key_hash(host, strlen(host)) ^ port * UINT64_C(0x9e3779b9)) %
                    p->index_size);
}

/* The place in the index of this address, or where it belongs. */
static size_t find(const struct parse *p, const char *host, uint16_t port)
{
    size_t at = place_of(p, host, port);

    for (; p->index[at] != 0; at = (at + 1) % p->index_size) {
        const struct rlk_cluster_master *master = &p->map->masters[p->index[at] - 1];
        if (master->port == port && strcmp(master->host, host) == 0)
            break;
    }
    return at;
}

static bool need_room(struct parse *p)
{
    struct rlk_cluster_map *map = p->map;

    if (map->master_count < p->master_max)
        return true;
    size_t max = p->master_max ? 2 * p->master_max : 8;
    struct rlk_cluster_master *more = realloc(map->masters, max * sizeof(*more));
    if (!more)
        return false;
    map->masters = more;
    p->master_max = max;
    return true;
}

/* The index of a master, plus 1; 0: out of memory. */
static uint16_t get_master(struct parse *p, const char *host, uint16_t port,
                           const char *id, size_t id_len)
{
    struct rlk_cluster_map *map = p->map;
    size_t at = find(p, host, port);

    if (p->index[at] != 0)
        return p->index[at];
    if (!need_room(p))
        return 0;
    struct rlk_cluster_master *master = &map->masters[map->master_count];
    memset(master, 0, sizeof(*master));
    master->host = strdup(host);
    if (!master->host)
        return 0;
    master->port = port;
    if (id_len < sizeof(master->id))
        memcpy(master->id, id, id_len);
    p->index[at] = (uint16_t)++map->master_count;
    return p->index[at];
}

/* ---- ranges */

/* rule: P18 */
/* The host of a node. NULL: unknown, or nothing that can be a host. */
static const char *host_of(const struct parse *p, const struct rlk_reply *node)
{
    const struct rlk_reply *field = rlk_reply_at(node, 0);
    size_t len = 0;

    if (field && rlk_reply_type(field) == RLK_REPLY_NIL)
        return p->asked_host;
    const char *host = rlk_reply_text_at(node, 0, &len);
    if (host && len == 0)
        return p->asked_host;
    return host && strlen(host) == len && strcmp(host, "?") != 0 && rlk_url_is_host(host)
               ? host
               : NULL;
}

/* rule: P25 */
static void take_ids(struct parse *p, const struct rlk_reply *range)
{
    for (size_t i = 2; i < rlk_reply_count(range); i++) {
        size_t len = 0;
        const char *id = rlk_reply_text_at(rlk_reply_at(range, i), 2, &len);
        if (id)
            rlk_cluster_ids_add(&p->map->ids, id, len);
    }
}

static int take_range(struct parse *p, const struct rlk_reply *range)
{
    const struct rlk_reply *node = rlk_reply_at(range, 2);
    int64_t first, last, port;
    size_t id_len = 0;

    if (rlk_reply_count(range) < RANGE_LEN_MIN ||
        !rlk_reply_integer_at(range, 0, &first) ||
        !rlk_reply_integer_at(range, 1, &last) || first < 0 || last < first ||
        last >= RLK_HASH_SLOTS)
        return bad("range");
    if (rlk_reply_count(node) < NODE_LEN_MIN || !rlk_reply_integer_at(node, 1, &port) ||
        port < 0 || port > UINT16_MAX)
        return bad("node");
    take_ids(p, range);
    const char *host = host_of(p, node);
    const char *id = rlk_reply_text_at(node, 2, &id_len);
    if (!host || port == 0) /* a node without a port for this kind of connection */
        return 0;
    uint16_t master = get_master(p, host, (uint16_t)port, id ? id : "", id ? id_len : 0);
    if (master == 0)
        return rlk_error_set(ENOMEM, "out of memory");
    for (int64_t i = first; i <= last; i++)
        p->map->owner[i] = master;
    return 0;
}

int rlk_cluster_map_parse(struct rlk_cluster_map **ret_map, const struct rlk_reply *reply,
                          const char *asked_host)
{
    struct parse p = { .asked_host = asked_host };
    size_t ranges = rlk_reply_count(reply);
    int rc = 0;

    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY || ranges > RLK_HASH_SLOTS)
        return bad("form");
    p.index_size = 2 * ranges + 1;
    p.index = calloc(p.index_size, sizeof(*p.index));
    p.map = calloc(1, sizeof(*p.map));
    if (!p.map || !p.index)
        rc = rlk_error_set(ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < ranges; i++)
        rc = take_range(&p, rlk_reply_at(reply, i));
    free(p.index);
    if (rc != 0) {
        rlk_cluster_map_free(p.map);
        return rc;
    }
    *ret_map = p.map;
    return 0;
}

void rlk_cluster_map_free(struct rlk_cluster_map *map)
{
    if (!map)
        return;
    for (size_t i = 0; i < map->master_count; i++)
        free(map->masters[i].host);
    free(map->masters);
    free(map);
}
