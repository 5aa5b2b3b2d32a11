/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock_list: finds locks. A name is looked up; a glob walks all keys of the database by
 * SCAN, which costs the server time for each key. A long walk pauses, so that the server
 * can serve others: the time of its requests, without that of a PING, counts as the
 * server's, also where the server was busy with others or the network was slow. Thread:
 * any. Blocks: network, up to the command timeout for each request; pauses.
 */
#include "admin/client_list.h"
#include "admin/inspect.h"
#include "admin/listing_cover.h"
#include "base/clock.h"
#include "base/fork.h"
#include "client/rpc.h"
#include "lock/acquire.h"
#include "lock/call.h"

#include <stdio.h>
#include <string.h>

enum {
    SCAN_COUNT = 200,
    SHARE = 20,         /* a long walk takes this part of the server's time at most */
    AT_ONCE_MS = 50,    /* this much of the server's time is used without a pause */
    BURST_MS = 2,       /* the server's work between two pauses */
    REQUEST_US = 70,    /* the server's work for any request, a PING included */
    REQUEST_MAX_MS = 2, /* more does not count: the network was slow, or the server
                           busy with others */
    PINGS = 4,
    ROUND_PAUSE_MS = 100, /* before another try in a cluster */
    NS_PER_US = 1000
};

struct walk {
    struct rlock_client *client;
    struct rlk_target *at;           /* the server */
    struct rlk_listing_cover *cover; /* in a cluster; else NULL */
    struct rlk_client_list peers;
    bool ended;   /* by the callback */
    int64_t owed; /* the server's time that is not paused for yet, ns; at first negative:
                     what may be taken at once */
    int64_t way;  /* a round trip without the server's work, ns; 0: not measured yet */
    int requests; /* until it was measured */
};

/* ---- pauses */

static void note_request(struct walk *walk, int64_t begun)
{
    int64_t took = rlk_clock_boot() - begun - walk->way;

    if (took < REQUEST_US * NS_PER_US)
        took = REQUEST_US * NS_PER_US;
    if (took > REQUEST_MAX_MS * RLK_NS_PER_MS)
        took = REQUEST_MAX_MS * RLK_NS_PER_MS;
    walk->owed += took;
    walk->requests++;
}

/* Measures the way, and takes it out of what is owed so far. Where PING is refused, the
 * way counts as work. */
static void measure_way(struct walk *walk)
{
    static const char *const argv[] = { "PING" };
    int64_t least = RLK_NEVER;

    for (int i = 0; i < PINGS; i++) {
        struct rlk_answer answer;
        struct rlk_reply *reply = NULL;
        int64_t begun = rlk_clock_boot();
        int rc = rlk_rpc_command_at(walk->at, 1, argv, rlk_inspect_until(walk->client),
                                    &answer, &reply);
        int64_t took = rlk_clock_boot() - begun;
        rlk_reply_free(reply);
        if (rc != 0)
            least = 0;
        if (took < least)
            least = took;
    }
    rlk_error_clear();
    walk->way = least - REQUEST_US * NS_PER_US;
    if (walk->way < 1)
        walk->way = 1;
    if (walk->way < REQUEST_MAX_MS * RLK_NS_PER_MS)
        walk->owed -= walk->requests * walk->way;
    else
        walk->owed = -AT_ONCE_MS * RLK_NS_PER_MS;
}

static int pause_for(struct walk *walk, int64_t ns)
{
    struct rlk_thread *thread = rlk_thread_get();

    if (!thread)
        return rlk_error_set(ENOMEM, "out of memory");
    struct rlk_deadline end = { RLK_DEADLINE_MONO, rlk_clock_add(rlk_clock_mono(), ns) };
    int rc = rlk_acquire_wait_in_vain(walk->client, thread, &end);
    return rc == ETIMEDOUT ? 0 : rlk_error_set(rc, "%s", rlk_error_text(rc));
}

/* Between two pages. 0, ECANCELED, ENOMEM. */
static int rest(struct walk *walk)
{
    const int64_t burst = BURST_MS * RLK_NS_PER_MS;

    if (atomic_load(&walk->client->interrupted))
        return rlk_error_set(ECANCELED, "%s", rlk_error_text(ECANCELED));
    if (walk->owed >= burst && walk->way == 0)
        measure_way(walk);
    if (walk->owed < burst)
        return 0;
    int64_t pause = walk->owed * (SHARE - 1);
    walk->owed = 0;
    return pause_for(walk, pause);
}

/* ---- the walk */

/* Whether the ACL hides the lock itself. If it hides a key beside it, leaving the lock
 * out would say that it is free. */
static bool is_hidden(struct rlock_client *client, const char *name)
{
    const char *argv[] = { "HGETALL", name };
    struct rlk_answer answer = { .key_refused = false };
    struct rlk_reply *reply = NULL;

    int rc = rlk_rpc_command(client, name, 2, argv, rlk_inspect_until(client), &answer,
                             &reply);
    rlk_reply_free(reply);
    if (rc != 0 && answer.key_refused)
        return true;
    char shown[RLK_LOG_NAME_SIZE];
    rlk_log_name(shown, sizeof(shown), name, strlen(name));
    rlk_error_set(EACCES, "the ACL refuses a key of the lock \"%s\"", shown);
    return false;
}

static int scan(struct walk *walk, char cursor[32], const char *pattern,
                struct rlk_reply **ret_reply)
{
    char count[16];
    const char *argv[] = { "SCAN",  cursor, "MATCH", pattern,
                           "COUNT", count,  "TYPE",  "hash" };
    struct rlk_answer answer;
    int64_t begun = rlk_clock_boot();

    snprintf(count, sizeof(count), "%d", SCAN_COUNT);
    int rc = rlk_rpc_command_at(walk->at, sizeof(argv) / sizeof(argv[0]), argv,
                                rlk_inspect_until(walk->client), &answer, ret_reply);
    note_request(walk, begun);
    if (rc != 0)
        return rc;
    size_t cursor_len = 0;
    const char *next =
        rlk_reply_type(*ret_reply) == RLK_REPLY_ARRAY && rlk_reply_count(*ret_reply) == 2
            ? rlk_reply_text_at(*ret_reply, 0, &cursor_len)
            : NULL;
    if (!next || cursor_len >= 32) {
        rlk_reply_free(*ret_reply);
        return rlk_error_set(EPROTO, "unexpected reply to SCAN");
    }
    memcpy(cursor, next, cursor_len + 1);
    return 0;
}

/* Frees the lock. */
static int tell(rlock_info_t *info, int (*each)(const rlock_info_t *info, void *arg),
                void *arg)
{
    unsigned generation = rlk_fork_generation();
    int rc = 0;

    if (info->holder_count > 0)
        rc = each(info, arg);
    rlk_inspect_free(info);
    if (rlk_fork_since(generation) && rc == 0)
        rc = rlk_error_set(ECANCELED,
                           "the callback forked; the listing ends in the child");
    return rc;
}

/* In a cluster, a lock may be out of reach for a while: its master is being replaced, or
 * its keys are at two nodes. Then no later round would find it by its hash slot. */
static int inspect_key(struct walk *walk, const char *name, bool *ret_hidden,
                       rlock_info_t **ret_info)
{
    for (;;) {
        int64_t begun = rlk_clock_boot();
        int rc = rlk_inspect(walk->client, name, &walk->peers,
                             rlk_inspect_until(walk->client), ret_hidden, ret_info);
        note_request(walk, begun);
        if (rc != ENOTCONN || !walk->cover || !rlk_listing_cover_may_wait(walk->cover))
            return rc;
        rc = pause_for(walk, ROUND_PAUSE_MS * RLK_NS_PER_MS);
        if (rc != 0)
            return rc;
    }
}

/* Reports the lock of a key, if the key is a lock. */
static int walk_key(struct walk *walk, const char *name,
                    int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    rlock_info_t *info;
    bool hidden = false;
    int rc = inspect_key(walk, name, &hidden, &info);

    if (rc == 0) {
        rc = tell(info, each, arg);
        walk->ended = rc != 0;
        return rc;
    }
    if (rc == ENOENT || rc == EPROTO || (hidden && is_hidden(walk->client, name)))
        return 0; /* gone since then, or not a lock, or SCAN shows more than the ACL
                     allows */
    return rc;
}

/* Reports the locks of one server. */
static int walk_server(struct walk *walk, const char *pattern,
                       int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    char cursor[32] = "0";
    int rc = 0;

    do {
        struct rlk_reply *reply;
        rc = scan(walk, cursor, pattern, &reply);
        if (rc != 0)
            break;
        const struct rlk_reply *keys = rlk_reply_at(reply, 1);
        for (size_t i = 0; rc == 0 && i < rlk_reply_count(keys); i++) {
            size_t len;
            const char *name = rlk_reply_text_at(keys, i, &len);
            if (name && strlen(name) == len && rlk_key_check(name, len) == 0 &&
                (!walk->cover || rlk_listing_cover_wants(walk->cover, name, len)))
                rc = walk_key(walk, name, each, arg);
        }
        rlk_reply_free(reply);
    } while (rc == 0 && strcmp(cursor, "0") != 0 && (rc = rest(walk)) == 0);
    return rc;
}

/* rule: P25, P26 */
/* Goes to all masters, and again to those that have hash slots which were elsewhere
 * meanwhile. */
static int walk_cluster(struct walk *walk, const char *pattern,
                        int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    bool again;
    int rc;

    do {
        again = false;
        rc = rlk_listing_cover_begin(walk->cover);
        while (rc == 0 && (walk->at = rlk_listing_cover_next(walk->cover)) != NULL) {
            rc = walk_server(walk, pattern, each, arg);
            if (rc == 0)
                rc = rlk_listing_cover_check(walk->cover);
            if (rc != ENOTCONN || walk->ended)
                continue;
            rlk_listing_cover_missed(walk->cover);
            rc = 0;
        }
        if (rc == 0)
            rc = rlk_listing_cover_end(walk->cover, &again);
        if (rc == 0 && again)
            rc = pause_for(walk, ROUND_PAUSE_MS * RLK_NS_PER_MS);
    } while (rc == 0 && again);
    return rc;
}

static int walk_all(struct rlock_client *client, const char *pattern,
                    int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    struct walk walk = { .client = client, .owed = -AT_ONCE_MS * RLK_NS_PER_MS };
    int64_t begun = rlk_clock_boot();
    int rc;

    walk.peers = rlk_client_list_list(client, rlk_inspect_until(client));
    note_request(&walk, begun);
    if (client->route.cluster) {
        walk.cover = rlk_listing_cover_create(client);
        rc = walk.cover ? walk_cluster(&walk, pattern, each, arg)
                        : rlk_error_set(ENOMEM, "out of memory");
        rlk_listing_cover_free(walk.cover);
    } else {
        walk.at = &client->route.target;
        rc = walk_server(&walk, pattern, each, arg);
    }
    rlk_client_list_free(&walk.peers);
    return rc;
}

enum { NAME_ROOM = RLOCK_NAME_MAX + 2 }; /* one byte more than a name has */

/* The only name that the pattern matches, as the server reads it: a backslash makes
 * the next byte literal. A name that is too long is cut one byte after the limit.
 * False: the pattern is a glob. */
static bool is_name(const char *pattern, char ret_name[NAME_ROOM])
{
    size_t len = 0;

    for (const char *at = pattern; *at && len < NAME_ROOM - 1; at++) {
        if (strchr("*?[", *at))
            return false;
        if (*at == '\\' && at[1])
            at++;
        ret_name[len++] = *at;
    }
    ret_name[len] = '\0';
    return true;
}

/* As the walk would report this lock, except that a lock which the ACL hides is no
 * secret to a user who knows its name: then EACCES. */
static int look_at(struct rlock_client *client, const char *name,
                   int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    rlock_info_t *info;
    bool hidden;

    if (rlk_key_check(name, strlen(name)) != 0)
        return 0; /* no lock can have this name */
    int rc = rlk_inspect_named(client, name, &hidden, &info);
    if (rc == ENOENT || rc == EPROTO)
        return 0;
    return rc == 0 ? tell(info, each, arg) : rc;
}

static int list(struct rlock_client *client, const char *pattern,
                int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    char name[NAME_ROOM];
    int rc = is_name(pattern, name) ? look_at(client, name, each, arg)
                                    : walk_all(client, pattern, each, arg);

    if (rc == 0)
        rlk_error_clear();
    return rc;
}

int rlock_list(rlock_client_t *client, const char *pattern,
               int (*each)(const rlock_info_t *info, void *arg), void *arg)
{
    struct rlk_call call = rlk_call_enter();
    struct rlock_client *used;
    int rc = rlk_error_argument_there("each", each)
                 ? rlk_client_get_pointer(client, &used)
                 : EINVAL;

    if (rc == 0) {
        rc = list(used, pattern ? pattern : "*", each, arg);
        rlk_client_put(used);
    }
    return rlk_call_leave(call, rc);
}
