/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client's user may do at the sentinels of the URL, found by trying, on a
 * connection to each sentinel that answers. It changes nothing; refused commands appear
 * in the sentinel's ACL LOG. Thread: any. Blocks: network, for each sentinel up to the
 * time of one ask.
 */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "base/clock.h"
#include "base/error.h"
#include "net/server_error.h"

#include <stdio.h>
#include <string.h>

enum right { PING, MASTER, ADDRESS, OTHERS, SUBSCRIBE, CHANNEL, RIGHT_COUNT };
enum { LABELS_SIZE = 400, WORDS_MAX = 3 };

#define NAME "\1" /* stands for the master's name */

/* What is missing without a right, as in doc/ACL.md. */
static const struct {
    const char *word;
    int severity;
    const char *means;
} rights[RIGHT_COUNT] = {
    [PING] = { "+ping", LOG_ERR,
               "they name no master to this client, and locks fail with EACCES where "
               "most "
               "sentinels do so" },
    [MASTER] = { "+sentinel|master", LOG_ERR,
                 "they name no master to this client, and locks fail with EACCES where "
                 "most sentinels do so" },
    [ADDRESS] = { "+sentinel|get-master-addr-by-name", LOG_WARNING,
                  "locks work, but a failover that is under way is noticed some seconds "
                  "later" },
    [OTHERS] = { "+sentinel|sentinels", LOG_NOTICE,
                 "locks work, but the client knows only the sentinels of the URL" },
    [SUBSCRIBE] = { "+subscribe", LOG_WARNING,
                    "locks work, but each connection finds out by itself that its master "
                    "was replaced" },
    [CHANNEL] = { "&+switch-master", LOG_WARNING,
                  "locks work, but each connection finds out by itself that its master "
                  "was replaced" },
};

/* The handshake tries PING, and SUBSCRIBE tries the channel. */
static const struct {
    enum right right;
    const char *argv[WORDS_MAX];
} probes[] = {
    { MASTER, { "SENTINEL", "MASTER", NAME } },
    { ADDRESS, { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME } },
    { OTHERS, { "SENTINEL", "SENTINELS", NAME } },
    { SUBSCRIBE, { "SUBSCRIBE", "+switch-master" } },
};

struct search {
    struct rlk_diagnosis *d;
    size_t tried;
    struct {
        size_t count;
        char labels[LABELS_SIZE]; /* of the sentinels where it is missing */
    } missing[RIGHT_COUNT];
};

static void add_missing(struct search *s, enum right right,
                        const struct rlk_sentinel_address *sentinel)
{
    char *labels = s->missing[right].labels, label[RLK_SENTINEL_LABEL_SIZE];
    size_t at = strlen(labels);

    rlk_url_label(label, sizeof(label), sentinel->host, sentinel->port);
    snprintf(labels + at, LABELS_SIZE - at, "%s%s", at ? ", " : "", label);
    s->missing[right].count++;
}

/* The right that the reply says is missing; RIGHT_COUNT: none. */
static enum right judge(enum right right, const struct rlk_reply *reply)
{
    size_t len;
    const char *text = rlk_reply_string(reply, &len);

    if (rlk_reply_type(reply) != RLK_REPLY_ERROR)
        return RIGHT_COUNT;
    if (rlk_server_error_of_channel(text, len))
        return CHANNEL;
    /* A command that was renamed is refused, too. */
    return rlk_server_error_by_acl(text, len) ||
                   strncmp(text, "ERR unknown ", strlen("ERR unknown ")) == 0
               ? right
               : RIGHT_COUNT;
}

static void try_probes(struct search *s, struct rlk_conn *conn, int64_t until,
                       const struct rlk_sentinel_address *sentinel)
{
    for (size_t i = 0; i < sizeof(probes) / sizeof(probes[0]); i++) {
        const char *argv[WORDS_MAX];
        size_t len[WORDS_MAX];
        int argc = 0;
        for (; argc < WORDS_MAX && probes[i].argv[argc]; argc++) {
            argv[argc] = probes[i].argv[argc];
            if (strcmp(argv[argc], NAME) == 0)
                argv[argc] = s->d->client->config.endpoint.sentinels.master;
            len[argc] = strlen(argv[argc]);
        }
        struct rlk_reply *reply;
        int64_t sent;
        if (rlk_conn_call(conn, argc, argv, len, until, &reply, &sent) != RLK_FAIL_NONE)
            return;
        enum right missing = judge(probes[i].right, reply);
        rlk_reply_free(reply);
        if (missing != RIGHT_COUNT)
            add_missing(s, missing, sentinel);
    }
}

/* A sentinel that is away, or refuses the credentials, is reported by another check. */
static void try_sentinel(struct search *s, const struct rlk_sentinel_answer *answer)
{
    struct rlk_sentinel_address sentinel = answer->sentinel;
    struct rlk_endpoint endpoint;
    struct rlk_conn *conn;
    int64_t until = rlk_inspect_until(s->d->client);

    rlk_sentinel_endpoint(&endpoint, &s->d->client->config.endpoint, &sentinel);
    struct rlk_conn_options options = rlk_sentinel_options(&endpoint, false);
    if (rlk_conn_start(&conn, &options, until) != 0)
        return;
    if (rlk_conn_wait_ready(conn, until) == RLK_CONN_READY) {
        s->tried++;
        try_probes(s, conn, until, &sentinel);
    } else if (rlk_conn_failure(conn) == RLK_FAIL_ACCESS &&
               strstr(rlk_conn_error_text(conn), "refused PING: NOPERM")) {
        s->tried++;
        add_missing(s, PING, &sentinel);
    }
    rlk_conn_free(conn);
}

static int tell(const struct search *s)
{
    const char *user = s->d->client->config.endpoint.sentinels.user;
    char shown[RLK_LOG_NAME_SIZE];
    bool any = false;
    int rc = 0;

    if (!user)
        user = "default";
    rlk_log_name(shown, sizeof(shown), user, strlen(user));
    for (int i = 0; rc == 0 && i < RIGHT_COUNT; i++) {
        if (s->missing[i].count == 0)
            continue;
        any = true;
        rc = rlk_diagnose_tell(
            s->d, rights[i].severity, "sentinel",
            "The user \"%s\" of the sentinels (sentineluser) lacks %s at %zu of %zu that "
            "answered (%s): %s. doc/ACL.md has the least that a user needs.",
            shown, rights[i].word, s->missing[i].count, s->tried, s->missing[i].labels,
            rights[i].means);
    }
    if (rc == 0 && !any)
        rc = rlk_diagnose_tell(s->d, LOG_INFO, "sentinel",
                               "The user \"%s\" of the sentinels may run all commands "
                               "that the client needs there.",
                               shown);
    return rc;
}

int rlk_diagnose_sentinel_acl(struct rlk_diagnosis *d, const struct rlk_sentinel_ask *ask)
{
    struct search s = { .d = d };

    rlk_error_keep(true);
    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++) {
        const struct rlk_sentinel_answer *answer = rlk_sentinel_ask_answer(ask, i);
        if (answer->listed && answer->said != RLK_SENTINEL_SILENT &&
            answer->said != RLK_SENTINEL_STRANGE)
            try_sentinel(&s, answer);
    }
    rlk_error_keep(false);
    return s.tried > 0 ? tell(&s) : 0;
}
