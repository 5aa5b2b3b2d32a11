/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that parse URLs: url.c, url_part.c (slices, numbers, hosts),
 * url_sentinel.c and url_cluster.c. No other file includes this. Thread: any. */
#ifndef RLK_URL_IMPL_H
#define RLK_URL_IMPL_H

#include "net/url.h"

#include <string.h>

/* A part of the caller's string. */
struct rlk_url_slice {
    const char *at;
    size_t len;
};

static inline const char *rlk_url_find(struct rlk_url_slice s, char c)
{
    return s.len > 0 ? memchr(s.at, c, s.len) : NULL;
}

/* Cuts `s` at `mark`, which is in it: returns the part before, leaves the part after. */
static inline struct rlk_url_slice rlk_url_cut(struct rlk_url_slice *s, const char *mark)
{
    struct rlk_url_slice before = { s->at, (size_t)(mark - s->at) };
    s->at = mark + 1;
    s->len -= before.len + 1;
    return before;
}

static inline bool rlk_url_equals(struct rlk_url_slice s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* ---- url_part.c. Functions return 0, or EINVAL or ENOMEM with the message set, which
 * names the wrong part and never shows its text. */

/* Wipes and frees the string, and sets it to NULL. */
void rlk_url_wipe(char **string);
/* Replaces *string by the decoded text. */
int rlk_url_decode(char **string, struct rlk_url_slice s, const char *part);
int rlk_url_number(struct rlk_url_slice s, const char *part, long min, long max,
                   long *ret_value);
/* Replaces *ret_host by the host of "host[:port]". */
int rlk_url_host(struct rlk_url_slice s, uint16_t port_default, char **ret_host,
                 uint16_t *ret_port);

/* ---- url_sentinel.c. As above. */

/* Whether the parameter names the master. */
bool rlk_url_sentinel_is_name(const char *parameter);
/* Sets a parameter for Sentinel, by its name in URLs. */
int rlk_url_sentinel_set(struct rlk_endpoint *endpoint, const char *parameter,
                         const char *value);
/* Parses host[:port][,host...]. */
int rlk_url_sentinel_hosts(struct rlk_endpoint *endpoint, struct rlk_url_slice hosts);
/* Cuts the path "master", "master/db" or "db" into its two parts, which may be empty. */
int rlk_url_sentinel_path(struct rlk_url_slice path, struct rlk_url_slice *ret_master,
                          struct rlk_url_slice *ret_db);
/* Forgets the hosts. */
void rlk_url_sentinel_hosts_drop(struct rlk_url_sentinels *sentinels);
/* Whether the URL was complete; sets the label. */
int rlk_url_sentinel_check(struct rlk_endpoint *endpoint);

/* ---- url_cluster.c. As above. */

/* Parses host[:port][,host...]. */
int rlk_url_cluster_seeds(struct rlk_endpoint *endpoint, struct rlk_url_slice hosts);
/* Replaces the address map by that of announced[:port]>real[:port][,...]. */
int rlk_url_cluster_map(struct rlk_url_cluster *cluster, const char *text);
/* Forgets the seeds. */
void rlk_url_cluster_seeds_drop(struct rlk_url_cluster *cluster);
/* Whether the URL fits together; takes the first seed for the host, and sets the label.
 */
int rlk_url_cluster_check(struct rlk_endpoint *endpoint);

#endif
