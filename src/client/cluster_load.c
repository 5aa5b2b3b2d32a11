/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the map of a cluster: one node after the other is asked for CLUSTER SLOTS, until
 * one answers. Known nodes are asked before the seeds, and nodes that did not answer
 * lately after all others. A round, in which each was asked once, ends with a map or with
 * the failure that says most. Thread: the watchdog.
 */
#include "client/cluster_impl.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "client/client.h"
#include "net/script.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP_MS = 500, /* at least between two maps */
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MAX_MS = 1000,
    SHARE_MIN_MS = 500, /* no node gets less time to answer */
    REPLY_MAX = 64 << 20
};

struct rlk_cluster_load {
    struct rlk_url_host *places; /* to ask in this round; the strings are the nodes', or
                                    those of the configuration */
    size_t count, at;
    unsigned turn;                /* another node comes first in each round */
    struct rlk_endpoint endpoint; /* of the place that is asked now */
    struct rlk_conn *conn;        /* NULL: no round is under way */
    bool asked, judged;           /* judged: the first of the two replies is there */
    int64_t due;                  /* the place is given up then */
    int64_t next_at;
    int backoff_ms;
    int code; /* of the failure that says most */
    char text[RLK_CLUSTER_TEXT_SIZE];
};

int rlk_cluster_load_create(struct rlk_cluster_load **ret_load,
                            struct rlk_cluster *cluster)
{
    struct rlk_cluster_load *load = calloc(1, sizeof(*load));

    if (!load)
        return ENOMEM;
    load->endpoint = cluster->client->config.endpoint;
    load->backoff_ms = BACKOFF_FIRST_MS;
    *ret_load = load;
    return 0;
}

void rlk_cluster_load_free(struct rlk_cluster_load *load)
{
    if (!load)
        return;
    free(load->places);
    free(load);
}

void rlk_cluster_load_stop(struct rlk_cluster *cluster)
{
    rlk_conn_free(cluster->load->conn);
    cluster->load->conn = NULL;
}

bool rlk_cluster_load_is_busy(const struct rlk_cluster *cluster)
{
    return cluster->load->conn != NULL;
}

int rlk_cluster_load_fd(struct rlk_cluster *cluster, short *ret_events)
{
    struct rlk_conn *conn = cluster->load->conn;

    if (!conn)
        return -1;
    *ret_events = rlk_conn_events(conn);
    return rlk_conn_fd(conn);
}

/* ---- whom to ask */

static void add(struct rlk_cluster_load *load, const char *host, uint16_t port)
{
    for (size_t i = 0; i < load->count; i++)
        if (load->places[i].port == port && strcmp(load->places[i].host, host) == 0)
            return;
    load->places[load->count++] = (struct rlk_url_host){ (char *)(uintptr_t)host, port };
}

/* Of the first `count` nodes. */
static void add_nodes(struct rlk_cluster *cluster, size_t count, bool away, int64_t now)
{
    struct rlk_cluster_load *load = cluster->load;

    for (size_t i = 0; i < count; i++) {
        const struct rlk_node *node = rlk_cluster_node(cluster, (i + load->turn) % count);
        if (atomic_load(&node->hash_slots) > 0 && rlk_cluster_is_away(node, now) == away)
            add(load, node->endpoint.host, node->endpoint.port);
    }
}

/* False: out of memory. */
static bool choose_places(struct rlk_cluster *cluster, int64_t now)
{
    const struct rlk_url_cluster *url = &cluster->client->config.endpoint.cluster;
    struct rlk_cluster_load *load = cluster->load;
    size_t count = atomic_load(&cluster->count); /* callers may add nodes meanwhile */
    struct rlk_url_host *places =
        realloc(load->places, (count + url->count) * sizeof(*places));

    if (!places)
        return false;
    load->places = places;
    load->count = load->at = 0;
    load->turn++;
    /* rule: P18 */
    add_nodes(cluster, count, false, now);
    for (size_t i = 0; i < url->count; i++)
        add(load, url->seeds[i].host, url->seeds[i].port);
    add_nodes(cluster, count, true, now);
    return true;
}

/* ---- one round */

/* rule: P18 */
static void end_round(struct rlk_cluster *cluster, int64_t now)
{
    struct rlk_cluster_load *load = cluster->load;
    int ms = load->code == 0 ? GAP_MS : load->backoff_ms;

    rlk_conn_free(load->conn);
    load->conn = NULL;
    load->backoff_ms = load->code == 0                         ? BACKOFF_FIRST_MS
                       : 2 * load->backoff_ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS
                                                               : 2 * load->backoff_ms;
    /* jitter from the clock's low bits: up to a fifth */
    load->next_at = now + (ms + now / 1000 % (ms / 5 + 1)) * RLK_NS_PER_MS;
    rlk_cluster_end_round(cluster, load->code, load->text);
}

/* A refusal tells more than silence. */
static void note_failure(struct rlk_cluster_load *load, int code, const char *text)
{
    if (load->code != 0 && (load->code == code || code == ENOTCONN))
        return;
    load->code = code;
    snprintf(load->text, sizeof(load->text), "%s", text);
}

/* Begins with the next place that can be asked. False: there is none, the round is over.
 */
static bool ask_next(struct rlk_cluster *cluster, int64_t now)
{
    struct rlock_client *client = cluster->client;
    struct rlk_cluster_load *load = cluster->load;
    int64_t share = client->config.connect_timeout_ms / (int64_t)load->count;

    rlk_conn_free(load->conn);
    load->conn = NULL;
    if (share < SHARE_MIN_MS)
        share = SHARE_MIN_MS;
    if (share > client->config.connect_timeout_ms)
        share = client->config.connect_timeout_ms;
    while (load->at < load->count) {
        const struct rlk_url_host *place = &load->places[load->at++];
        load->endpoint.host = place->host;
        load->endpoint.port = place->port;
        rlk_url_label(load->endpoint.label, sizeof(load->endpoint.label), place->host,
                      place->port);
        struct rlk_conn_options options = {
            .endpoint = &load->endpoint,
            .name = client->conn_name,
            .in_loop = true,
            .keepalive_ms = client->config.presence_ms,
            .reply_limit = REPLY_MAX,
        };
        load->due = now + share * RLK_NS_PER_MS;
        load->asked = false;
        if (rlk_conn_start(&load->conn, &options, load->due) == 0)
            return true;
        load->conn = NULL;
        note_failure(load, ENOMEM, "out of memory");
    }
    end_round(cluster, now);
    return false;
}

static void begin_round(struct rlk_cluster *cluster, int64_t now)
{
    struct rlk_cluster_load *load = cluster->load;

    atomic_store(&cluster->wanted, false);
    load->code = 0;
    load->text[0] = '\0';
    if (choose_places(cluster, now)) {
        ask_next(cluster, now);
    } else {
        note_failure(load, ENOMEM, "out of memory");
        end_round(cluster, now);
    }
}

/* ---- the answer */

/* The place's answer is an error. */
static void take_error(struct rlk_cluster_load *load, const struct rlk_reply *reply)
{
    static const char none[] = "cluster support disabled";
    const char *label = load->endpoint.label;
    char text[RLK_SERVER_ERROR_SIZE];
    size_t len;
    const char *error = rlk_reply_string(reply, &len);
    int code;

    rlk_script_sort_error(error, len, &code);
    rlk_server_error_describe(text, sizeof(text), "CLUSTER SLOTS", NULL, NULL, 0, error,
                              len);
    if (memmem(error, len, none, sizeof(none) - 1))
        rlk_error_set(code, "%s is no node of a cluster (use redis://)", label);
    else
        rlk_error_set(code, "%s: %s", label, text);
    note_failure(load, code, rlk_error_message());
    rlk_error_clear();
}

/* Returns whether it is a map. */
static bool take_map(struct rlk_cluster *cluster, const struct rlk_reply *reply)
{
    struct rlk_cluster_load *load = cluster->load;
    struct rlk_cluster_map *map = NULL;

    if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        take_error(load, reply);
        return false;
    }
    int rc = rlk_cluster_map_parse(&map, reply, load->endpoint.host);
    if (rc == 0 && map->master_count == 0) /* a node that has left the cluster */
        rc = rlk_error_set(ENOTCONN, "%s knows no node with hash slots",
                           load->endpoint.label);
    /* first the file: with the map, requests begin (P25) */
    if (rc == 0 && rlk_livefile_know_nodes(cluster->client, &map->ids))
        rlk_peer_watch_located(cluster->client);
    if (rc == 0)
        rc = rlk_cluster_apply(cluster, map);
    rlk_cluster_map_free(map);
    if (rc != 0)
        note_failure(load, rc, rc == ENOMEM ? "out of memory" : rlk_error_message());
    rlk_error_clear();
    load->code = rc == 0 ? 0 : load->code;
    return rc == 0;
}

static int append(struct rlk_cluster_load *load, const char *const argv[2])
{
    const size_t len[] = { strlen(argv[0]), strlen(argv[1]) };

    return rlk_conn_append(load->conn, 2, argv, len);
}

/* rule: P21 */
/* The first reply says whether the server knows sharded channels. */
static int ask(struct rlk_cluster_load *load)
{
    static const char *const channels[] = { "PUBSUB", "SHARDNUMSUB" };
    static const char *const map[] = { "CLUSTER", "SLOTS" };

    load->asked = true;
    load->judged = false;
    int rc = append(load, channels);
    return rc == 0 ? append(load, map) : rc;
}

static void judge_channels(struct rlk_cluster *cluster, const struct rlk_reply *reply)
{
    cluster->load->judged = true;
    atomic_store(&cluster->client->route.sharded,
                 rlk_reply_type(reply) == RLK_REPLY_ARRAY &&
                     !atomic_load(&cluster->client->route.shard_refused));
}

/* Goes on with the place that is asked. Returns whether it needs more input. */
static bool step_place(struct rlk_cluster *cluster, int64_t now)
{
    struct rlk_cluster_load *load = cluster->load;
    struct rlk_reply *reply;

    rlk_conn_step(load->conn);
    if (!load->asked && rlk_conn_state(load->conn) == RLK_CONN_READY) {
        if (ask(load) != 0)
            rlk_conn_kill(load->conn, RLK_FAIL_LOCAL, "out of memory");
        else
            rlk_conn_step(load->conn);
    }
    if (load->asked && !load->judged &&
        (reply = rlk_conn_take_reply(load->conn)) != NULL) {
        judge_channels(cluster, reply);
        rlk_reply_free(reply);
    }
    if (load->asked && load->judged &&
        (reply = rlk_conn_take_reply(load->conn)) != NULL) {
        bool is_map = take_map(cluster, reply);
        rlk_reply_free(reply);
        if (is_map)
            end_round(cluster, now);
        else
            ask_next(cluster, now);
        return false;
    }
    if (now >= load->due && rlk_conn_state(load->conn) != RLK_CONN_DEAD)
        rlk_conn_kill(load->conn, RLK_FAIL_UNKNOWN, "no reply from a node in time");
    if (rlk_conn_state(load->conn) != RLK_CONN_DEAD)
        return true;
    note_failure(load, rlk_conn_error_code(load->conn), rlk_conn_error_text(load->conn));
    ask_next(cluster, now);
    return false;
}

int64_t rlk_cluster_load_step(struct rlk_cluster *cluster, int64_t now)
{
    struct rlk_cluster_load *load = cluster->load;

    if (!load->conn && atomic_load(&cluster->wanted) && now >= load->next_at)
        begin_round(cluster, now);
    while (load->conn && !step_place(cluster, now))
        ;
    if (!load->conn)
        return atomic_load(&cluster->wanted) ? load->next_at : RLK_NEVER;
    int64_t due = rlk_conn_due(load->conn);
    return due < load->due ? due : load->due;
}
