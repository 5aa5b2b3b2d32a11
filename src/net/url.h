/* SPDX-License-Identifier: Apache-2.0 */
/* The location of a client's server and how to talk to it: the parsed URL and
 * attributes. Owned and guarded by the client. */
#ifndef RLK_URL_H
#define RLK_URL_H

#include "net/confirm.h"
#include "net/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_url_host {
    char *host; /* IPv6 without brackets */
    uint16_t port;
};

enum { RLK_URL_SENTINELS_MAX = 16 };

/* What a URL says of Sentinel. Heap strings. */
struct rlk_url_sentinels {
    size_t count; /* 0: the server is asked directly */
    struct rlk_url_host hosts[RLK_URL_SENTINELS_MAX];
    char *master;          /* its name */
    char *user, *password; /* for the sentinels; NULL: no AUTH */
};

/* The address that nodes of a cluster announce, and where a client reaches it. */
struct rlk_url_pair {
    struct rlk_url_host announced, real; /* port 0: each port, and the same one */
};

/* What a URL says of a cluster. Heap. */
struct rlk_url_cluster {
    size_t count; /* 0: no cluster */
    struct rlk_url_host *seeds;
    size_t pair_count;
    struct rlk_url_pair *pairs;
};

struct rlk_sentinel_book; /* sentinel.h */

struct rlk_endpoint {
    char *host; /* NULL for a Unix socket, and for Sentinel, whose answer gives it; IPv6
                   without brackets */
    char *path; /* of the Unix socket, else NULL */
    uint16_t port;
    int db;
    char *user;                     /* NULL: the server's default user */
    char *password;                 /* NULL: no AUTH */
    struct rlk_url_cluster cluster; /* its first seed is `host` */
    struct rlk_url_sentinels sentinels;
    struct rlk_sentinel_book *book; /* of the client; NULL: none, or not started */
    struct rlk_tls_settings tls;
    struct rlk_tls_store *tls_store; /* of the client; NULL: no TLS, or not started */
    /* for messages and logs: "host:port", the path, "master NAME", or "the cluster at
     * host:port"; never a secret */
    char label[128];
    /* follows the label when the server is unreachable: " (RLOCK_URL)", " (the file's
     * path)", " (built-in default)"; "" when the program named the URL */
    char whence[64];
};

struct rlk_config {
    struct rlk_endpoint endpoint;
    char *url;          /* as given, without users and passwords */
    const char *source; /* where it comes from: RLK_SOURCE_*, or source_path */
    char *source_path;
    long lease_ms, presence_ms, command_timeout_ms, connect_timeout_ms;
    int max_connections;
    int mutex_type;
    long handoff_ms, handoff_count; /* 0: off */
    long retain_ms;
    int guard; /* RLOCK_GUARD_* */
    struct rlk_confirm wait;
    long max_skew_ms;     /* how far the clocks of servers may be apart, */
    bool skew_is_initial; /* as far as nobody has set it */
};

#define RLK_SOURCE_PROGRAM "program"
#define RLK_SOURCE_ENVIRONMENT "RLOCK_URL"
#define RLK_SOURCE_BUILT_IN "built-in default"

enum {
    RLK_LEASE_MIN_MS = 50,
    RLK_LEASE_MAX_MS = 86400000,
    RLK_PRESENCE_MIN_MS = 100,
    RLK_PRESENCE_MAX_MS = 30000,
    RLK_TIMEOUT_MIN_MS = 10,
    RLK_TIMEOUT_MAX_MS = 3600000,
    RLK_CONNECTIONS_MAX = 10000,
    RLK_HANDOFF_MAX_MS = 86400000,
    RLK_RETAIN_MAX_MS = 86400000,
    RLK_HANDOFF_MAX_COUNT = 1000000000,
    RLK_SKEW_MAX_MS = 10000,
    RLK_SKEW_UNSET = -1, /* by the kind of the URL */
    RLK_HANDOFF_MS = 10, /* the defaults */
    RLK_HANDOFF_COUNT = 1000
};

/* Applies `url` over the values that *config has (defaults or attributes; its strings,
 * if any, are allocated, and may be replaced). No network. Returns 0, EINVAL, ENOTSUP
 * (rediss:// without TLS) or ENOMEM, with the reason in the thread's message, which never
 * shows the user, the password or values of unknown parameters. On failure *config may
 * hold some of the new values; clear it as usual. */
int rlk_url_parse(struct rlk_config *config, const char *url);

/* The tags (texts.h) of the texts in a client's attributes: a part of the ABI. */
enum rlk_url_text {
    RLK_URL_CAFILE = 1,
    RLK_URL_CADIR,
    RLK_URL_CERTFILE,
    RLK_URL_KEYFILE,
    RLK_URL_TLSNAME,
    RLK_URL_VERIFY, /* the last one for TLS */
    RLK_URL_SENTINELUSER,
    RLK_URL_SENTINELPASSWORD,
    RLK_URL_ADDRESSMAP,
    RLK_URL_TEXT_LIMIT
};
/* Copies all texts that are set. 0, EINVAL or ENOMEM. */
int rlk_url_tls_take(struct rlk_tls_settings *settings, const char *texts);

/* Sets one setting for TLS by its name in URLs, such as "cafile". Returns what
 * rlk_url_parse does; `where`, for the message: "URL", or another source. */
int rlk_url_tls_set(struct rlk_tls_settings *settings, const char *name,
                    const char *value, const char *where);
/* Some settings are pairs: cafile and cadir, certfile and keyfile. A source replaces, or
 * leaves, both of a pair. Whether this setting or its partner is set. */
bool rlk_url_tls_has(struct rlk_tls_settings *settings, const char *name);
/* Unsets both. */
void rlk_url_tls_drop(struct rlk_tls_settings *settings, const char *name);
/* The partner's name; the name itself, if it has none. */
const char *rlk_url_tls_partner(const char *name);
/* Whether the settings fit together. 0 or EINVAL. */
int rlk_url_tls_check(const struct rlk_tls_settings *settings);
void rlk_url_tls_clear(struct rlk_tls_settings *settings);

/* Whether the text contains the secret, or as much of its beginning as a server may have
 * cut it to. NULL: there is none. */
bool rlk_url_quotes(const char *text, const char *secret);
/* Whether the text may be a host name or an address. */
bool rlk_url_is_host(const char *host);
/* Writes "host:port" for messages. */
void rlk_url_label(char *buf, size_t size, const char *host, uint16_t port);

/* Copies the credentials for sentinels that are set. 0 or ENOMEM. */
int rlk_url_sentinel_take(struct rlk_url_sentinels *sentinels, const char *texts);
void rlk_url_sentinel_clear(struct rlk_url_sentinels *sentinels);

/* Copies the attribute's address map, if it is set. 0, EINVAL or ENOMEM. */
int rlk_url_cluster_take(struct rlk_url_cluster *cluster, const char *texts);
void rlk_url_cluster_clear(struct rlk_url_cluster *cluster);
/* Where a client reaches what is announced as *host and *port, which it replaces. */
void rlk_url_cluster_real(const struct rlk_url_cluster *cluster, const char **host,
                          uint16_t *port);

/* Frees the strings and wipes the secrets. Harmless on a zeroed config. */
void rlk_url_config_clear(struct rlk_config *config);

#endif
