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

struct rlk_target {
    char *host; /* NULL for a Unix socket; IPv6 without brackets */
    char *path; /* of the Unix socket, else NULL */
    uint16_t port;
    int db;
    char *user;     /* NULL: the server's default user */
    char *password; /* NULL: no AUTH */
    struct rlk_tls_settings tls;
    struct rlk_tls_store *tls_store; /* of the client; NULL: no TLS, or not started */
    char label[128]; /* for messages and logs: "host:port" or the path, never a secret */
    /* follows the label when the server is unreachable: " (RLOCK_URL)", " (the file's
     * path)", " (built-in default)"; "" when the program named the URL */
    char whence[64];
};

struct rlk_config {
    struct rlk_target target;
    char *url;          /* as given, without user and password */
    const char *source; /* where it comes from: RLK_SOURCE_*, or source_path */
    char *source_path;
    long lease_ms, presence_ms, command_timeout_ms, connect_timeout_ms;
    int max_connections;
    int mutex_type;
    long handoff_ms, handoff_count; /* 0: off */
    long retain_ms;
    int guard; /* RLOCK_GUARD_* */
    struct rlk_confirm wait;
    long max_skew_ms; /* how far the clocks of servers may be apart */
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
    RLK_URL_VERIFY,
    RLK_URL_TEXT_LIMIT
};
/* Copies all texts that are set. 0, EINVAL or ENOMEM. */
int rlk_url_tls_take(struct rlk_tls_settings *settings, const char *texts);

/* Sets one setting for TLS by its name in URLs, such as "cafile". Returns what
 * rlk_url_parse does; `where`, for the message: "URL", or another source. */
int rlk_url_tls_set(struct rlk_tls_settings *settings, const char *name,
                    const char *value, const char *where);
/* The same, only if it is not set yet. */
int rlk_url_tls_default(struct rlk_tls_settings *settings, const char *name,
                        const char *value, const char *where);
/* Whether the settings fit together. 0 or EINVAL. */
int rlk_url_tls_check(const struct rlk_tls_settings *settings);
void rlk_url_tls_clear(struct rlk_tls_settings *settings);

/* Frees the strings and wipes the secrets. Harmless on a zeroed config. */
void rlk_url_config_clear(struct rlk_config *config);

#endif
