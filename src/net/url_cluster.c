/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a URL of a cluster: the seeds, and the map of addresses, for clients that
 * reach the nodes elsewhere than they say. No state. Thread: any. */
#include "net/url_impl.h"

#include "base/error.h"
#include "base/texts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { PORT_DEFAULT = 6379 };

/* One more element of a grown array: makes room at 0, 1, 2, 4, 8 ... elements. */
static void *grow(void *array, size_t count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    return realloc(array, (count > 0 ? 2 * count : 1) * size);
}

/* ---- seeds */

void rlk_url_cluster_seeds_drop(struct rlk_url_cluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++)
        rlk_url_wipe(&cluster->seeds[i].host);
    free(cluster->seeds);
    cluster->seeds = NULL;
    cluster->count = 0;
}

static int add_seed(struct rlk_url_cluster *cluster, struct rlk_url_slice text)
{
    struct rlk_url_host *seeds = grow(cluster->seeds, cluster->count, sizeof(*seeds));

    if (!seeds)
        return rlk_error_set(ENOMEM, "out of memory");
    cluster->seeds = seeds;
    struct rlk_url_host *seed = &seeds[cluster->count++];
    *seed = (struct rlk_url_host){ NULL, 0 };
    return rlk_url_host(text, PORT_DEFAULT, &seed->host, &seed->port);
}

int rlk_url_cluster_seeds(struct rlk_endpoint *endpoint, struct rlk_url_slice hosts)
{
    const char *comma;
    int rc;

    rlk_url_cluster_seeds_drop(&endpoint->cluster);
    do {
        comma = rlk_url_find(hosts, ',');
        rc = add_seed(&endpoint->cluster, comma ? rlk_url_cut(&hosts, comma) : hosts);
    } while (rc == 0 && comma);
    return rc;
}

int rlk_url_cluster_check(struct rlk_endpoint *endpoint)
{
    const struct rlk_url_host *first = endpoint->cluster.seeds;
    char where[sizeof(endpoint->label)];

    rlk_url_wipe(&endpoint->host);
    endpoint->host = strdup(first->host);
    if (!endpoint->host)
        return rlk_error_set(ENOMEM, "out of memory");
    endpoint->port = first->port;
    rlk_url_label(where, sizeof(where), first->host, first->port);
    snprintf(endpoint->label, sizeof(endpoint->label), "the cluster at %.100s", where);
    return 0;
}

/* ---- the map */

static void drop_pairs(struct rlk_url_cluster *cluster)
{
    for (size_t i = 0; i < cluster->pair_count; i++) {
        rlk_url_wipe(&cluster->pairs[i].announced.host);
        rlk_url_wipe(&cluster->pairs[i].real.host);
    }
    free(cluster->pairs);
    cluster->pairs = NULL;
    cluster->pair_count = 0;
}

static int add_pair(struct rlk_url_cluster *cluster, struct rlk_url_slice text)
{
    const char *mark = rlk_url_find(text, '>');
    struct rlk_url_pair *pairs =
        grow(cluster->pairs, cluster->pair_count, sizeof(*pairs));

    if (!pairs)
        return rlk_error_set(ENOMEM, "out of memory");
    cluster->pairs = pairs;
    if (!mark)
        return rlk_error_set(EINVAL, "URL: addressmap is not of the form "
                                     "announced>real,announced>real");
    struct rlk_url_pair *pair = &pairs[cluster->pair_count++];
    memset(pair, 0, sizeof(*pair));
    int rc = rlk_url_host(rlk_url_cut(&text, mark), 0, &pair->announced.host,
                          &pair->announced.port);
    if (rc == 0)
        rc = rlk_url_host(text, 0, &pair->real.host, &pair->real.port);
    if (rc == 0 && pair->announced.port == 0 && pair->real.port != 0)
        rc =
            rlk_error_set(EINVAL, "URL: addressmap maps each port of a host to one port");
    return rc;
}

int rlk_url_cluster_map(struct rlk_url_cluster *cluster, const char *text)
{
    struct rlk_url_slice rest = { text, strlen(text) };
    const char *comma;
    int rc;

    drop_pairs(cluster);
    do {
        comma = rlk_url_find(rest, ',');
        rc = add_pair(cluster, comma ? rlk_url_cut(&rest, comma) : rest);
    } while (rc == 0 && comma);
    return rc;
}

int rlk_url_cluster_take(struct rlk_url_cluster *cluster, const char *texts)
{
    const char *text = rlk_texts_get(texts, RLK_URL_ADDRESSMAP);

    return text ? rlk_url_cluster_map(cluster, text) : 0;
}

/* rule: P18 */
void rlk_url_cluster_real(const struct rlk_url_cluster *cluster, const char **host,
                          uint16_t *port)
{
    for (size_t i = 0; i < cluster->pair_count; i++) {
        const struct rlk_url_pair *pair = &cluster->pairs[i];
        if (strcasecmp(pair->announced.host, *host) != 0 ||
            (pair->announced.port != 0 && pair->announced.port != *port))
            continue;
        *host = pair->real.host;
        if (pair->real.port != 0)
            *port = pair->real.port;
        return;
    }
}

void rlk_url_cluster_clear(struct rlk_url_cluster *cluster)
{
    rlk_url_cluster_seeds_drop(cluster);
    drop_pairs(cluster);
}
