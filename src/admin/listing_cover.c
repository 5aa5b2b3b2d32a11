/* SPDX-License-Identifier: Apache-2.0 */
/* See listing_cover.h. */
#include "admin/listing_cover.h"

#include "admin/inspect.h"
#include "client/rpc.h"
#include "net/cluster_map.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORD_BITS = 64, WHY_SIZE = 300 };

/* A set of hash slots. */
struct slots {
    uint64_t bits[RLK_HASH_SLOTS / WORD_BITS];
    bool any;
};

struct rlk_listing_cover {
    struct rlock_client *client;
    struct rlk_masters masters;
    size_t at;               /* the master that is looked at, plus 1 */
    bool again;              /* it is not the first round */
    struct slots now, later; /* to be looked at in this round, and in the next one */
    int64_t until;           /* the last round begins before; 0: not set yet */
    char why[WHY_SIZE];      /* there is something for the next round */
};

static bool has(const struct slots *slots, unsigned hash_slot)
{
    return (slots->bits[hash_slot / WORD_BITS] >> hash_slot % WORD_BITS & 1) != 0;
}

/* The first one's reason, which is the thread's message, is kept. */
static void put_off(struct rlk_listing_cover *cover, unsigned hash_slot)
{
    if (!cover->later.any)
        snprintf(cover->why, sizeof(cover->why), "%s", rlk_error_message());
    cover->later.bits[hash_slot / WORD_BITS] |= UINT64_C(1) << hash_slot % WORD_BITS;
    cover->later.any = true;
}

struct rlk_listing_cover *rlk_listing_cover_create(struct rlock_client *client)
{
    struct rlk_listing_cover *cover = calloc(1, sizeof(*cover));

    if (!cover)
        return NULL;
    cover->client = client;
    memset(cover->now.bits, UINT8_MAX, sizeof(cover->now.bits));
    return cover;
}

void rlk_listing_cover_free(struct rlk_listing_cover *cover)
{
    if (!cover)
        return;
    rlk_masters_put(&cover->masters);
    free(cover);
}

/* ---- a round */

/* Puts off hash slots that no node has. */
static void skip_uncovered(struct rlk_listing_cover *cover)
{
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++) {
        if (!has(&cover->now, i) || cover->masters.owner[i] != 0)
            continue;
        rlk_error_set(ENOTCONN, "no node of %s has hash slot %u",
                      cover->client->config.endpoint.label, i);
        put_off(cover, i);
    }
}

int rlk_listing_cover_begin(struct rlk_listing_cover *cover)
{
    rlk_masters_put(&cover->masters);
    memset(&cover->later, 0, sizeof(cover->later));
    cover->at = 0;
    int rc =
        rlk_masters_get(cover->client, rlk_inspect_until(cover->client), &cover->masters);
    if (rc == 0)
        skip_uncovered(cover);
    return rc;
}

/* Whether the i-th master has hash slots that are to be looked at. In the first round all
 * masters are: a hash slot that is being moved has keys at two of them. */
static bool is_needed(const struct rlk_listing_cover *cover, size_t i)
{
    if (!cover->again)
        return true;
    for (unsigned k = 0; k < RLK_HASH_SLOTS; k++)
        if (cover->masters.owner[k] == i + 1 && has(&cover->now, k))
            return true;
    return false;
}

struct rlk_target *rlk_listing_cover_next(struct rlk_listing_cover *cover)
{
    while (cover->at < cover->masters.count) {
        size_t i = cover->at++;
        if (is_needed(cover, i))
            return cover->masters.each[i];
    }
    return NULL;
}

bool rlk_listing_cover_wants(const struct rlk_listing_cover *cover, const char *name,
                             size_t name_len)
{
    return has(&cover->now, rlk_key_hash_slot(name, name_len));
}

/* ---- a master */

/* Puts off the hash slots of which the map says something else than was assumed. */
static void compare(struct rlk_listing_cover *cover, const struct rlk_cluster_map *map,
                    const size_t *places)
{
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++) {
        size_t place = map->owner[i] == 0 ? 0 : places[map->owner[i] - 1];
        if (!has(&cover->now, i) || cover->masters.owner[i] == 0 ||
            cover->masters.owner[i] == place)
            continue;
        rlk_error_set(ENOTCONN, "nodes of %s do not agree about hash slot %u",
                      cover->client->config.endpoint.label, i);
        put_off(cover, i);
    }
}

/* rule: P26 */
static int take_map(struct rlk_listing_cover *cover, const struct rlk_reply *reply)
{
    const struct rlk_target *from = cover->masters.each[cover->at - 1];
    struct rlk_cluster_map *map = NULL;

    int rc = rlk_cluster_map_parse(&map, reply, from->endpoint->host);
    if (rc != 0)
        return rc;
    size_t *places = calloc(map->master_count + 1, sizeof(*places));
    if (!places)
        rc = rlk_error_set(ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < map->master_count; i++)
        places[i] = rlk_masters_find(&cover->masters, cover->client, &map->masters[i]);
    if (rc == 0)
        compare(cover, map, places);
    free(places);
    rlk_cluster_map_free(map);
    return rc;
}

int rlk_listing_cover_check(struct rlk_listing_cover *cover)
{
    static const char *const argv[] = { "CLUSTER", "SLOTS" };
    struct rlk_reply *reply = NULL;
    struct rlk_answer answer;

    int rc = rlk_rpc_command_at(cover->masters.each[cover->at - 1], 2, argv,
                                rlk_inspect_until(cover->client), &answer, &reply);
    if (rc == 0)
        rc = take_map(cover, reply);
    rlk_reply_free(reply);
    return rc;
}

void rlk_listing_cover_missed(struct rlk_listing_cover *cover)
{
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++)
        if (cover->masters.owner[i] == cover->at && has(&cover->now, i))
            put_off(cover, i);
}

bool rlk_listing_cover_may_wait(struct rlk_listing_cover *cover)
{
    if (cover->until == 0)
        cover->until = rlk_inspect_until(cover->client);
    return rlk_clock_boot() < cover->until;
}

int rlk_listing_cover_end(struct rlk_listing_cover *cover, bool *ret_again)
{
    *ret_again = cover->later.any;
    if (!cover->later.any)
        return 0;
    if (!rlk_listing_cover_may_wait(cover))
        return rlk_error_set(ENOTCONN, "%s", cover->why);
    cover->now = cover->later;
    cover->again = true;
    rlk_cluster_reload(cover->client->route.cluster);
    return 0;
}
