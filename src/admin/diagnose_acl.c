/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the user's rights by commands on keys that no lock uses, in ways that change
 * nothing: with refused arguments, or without anything to act on. Servers check the ACL
 * first. No other way works for a user who is not an administrator, because ACL DRYRUN
 * needs that. Refused commands appear in the server's ACL LOG. Thread: any. Blocks:
 * network.
 */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "base/error.h"
#include "client/rpc.h"
#include "net/server_error.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

/* What fails without a right, as in doc/ACL.md. */
enum need {
    ALL_LOCKS,
    SOME_LOCKS,
    SLOWER,   /* locks work */
    COSTLIER, /* locks work */
    LOOKING,  /* locks work; something else fails */
    REDISSON, /* locks work; the channels of Redisson */
    ROLES,    /* locks work; clients of Sentinel alone */
    MOVES,    /* locks work; in a cluster alone, as the next one */
    SHARDS,
    NEED_COUNT
};

enum { ARGS_MAX = 8, LIST_SIZE = 700 };

#define KEY "\1"     /* stands for a key of the user's locks */
#define MAILBOX "\2" /* stands for a channel like those of mailboxes */
#define NAME "\3"    /* stands for the connection's name */

struct probe {
    const char *word;
    enum need need;
    const char *argv[ARGS_MAX];
};

static const struct probe probes[] = {
    { "evalsha",
      ALL_LOCKS,
      { "EVALSHA", "0000000000000000000000000000000000000000", "0" } },
    { "eval", ALL_LOCKS, { "EVAL", "return 1", "0" } },
    { "ping", ALL_LOCKS, { "PING" } },
    { "time", ALL_LOCKS, { "TIME" } },
    { "publish", SLOWER, { "PUBLISH", MAILBOX, "" } },
    { "pubsub|numsub", SLOWER, { "PUBSUB", "NUMSUB" } },
    { "client|setname", LOOKING, { "CLIENT", "SETNAME", NAME } },
    { "exists", ALL_LOCKS, { "EXISTS", KEY } },
    { "del", ALL_LOCKS, { "DEL", KEY } },
    { "get", ALL_LOCKS, { "GET", KEY } },
    { "set", SOME_LOCKS, { "SET", KEY, "0", "XX" } },
    { "incrby", SOME_LOCKS, { "INCRBY", KEY, "none" } },
    { "pexpire", ALL_LOCKS, { "PEXPIRE", KEY, "1" } },
    { "pexpireat", SOME_LOCKS, { "PEXPIREAT", KEY, "1" } },
    { "expire", SOME_LOCKS, { "EXPIRE", KEY, "1" } },
    { "pttl", ALL_LOCKS, { "PTTL", KEY } },
    { "hget", ALL_LOCKS, { "HGET", KEY, "f" } },
    { "hset", ALL_LOCKS, { "HSET", KEY, "f", "0", "odd" } },
    { "hdel", SOME_LOCKS, { "HDEL", KEY, "f" } },
    { "hlen", ALL_LOCKS, { "HLEN", KEY } },
    { "hexists", ALL_LOCKS, { "HEXISTS", KEY, "f" } },
    { "hgetall", LOOKING, { "HGETALL", KEY } },
    { "zadd", ALL_LOCKS, { "ZADD", KEY, "none", "m" } },
    { "zcard", ALL_LOCKS, { "ZCARD", KEY } },
    { "zscore", ALL_LOCKS, { "ZSCORE", KEY, "m" } },
    { "zmscore", COSTLIER, { "ZMSCORE", KEY, "m" } },
    { "zrem", ALL_LOCKS, { "ZREM", KEY, "m" } },
    { "zrange", SOME_LOCKS, { "ZRANGE", KEY, "0", "0" } },
    { "zrevrange", ALL_LOCKS, { "ZREVRANGE", KEY, "0", "0" } },
    { "zrangebyscore", ALL_LOCKS, { "ZRANGEBYSCORE", KEY, "0", "0" } },
    { "zremrangebyscore", COSTLIER, { "ZREMRANGEBYSCORE", KEY, "0", "0" } },
    { "scan", LOOKING, { "SCAN", "0", "COUNT", "1" } },
    { "client|list", LOOKING, { "CLIENT", "LIST", "TYPE", "master" } },
};

/* For clients that wait for replicas, or for disks. */
static const struct probe wait_probe = { "wait", ALL_LOCKS, { "WAIT", "0", "1" } };
static const struct probe waitaof_probe = { "waitaof",
                                            ALL_LOCKS,
                                            { "WAITAOF", "0", "0", "1" } };

/* rule: P27 */
/* For clients of Sentinel: whether the server is a master. */
static const struct probe role_probe = { "role", ROLES, { "ROLE" } };

/* For nodes of a cluster. */
static const struct probe cluster_probes[] = {
    { "cluster|slots", ALL_LOCKS, { "CLUSTER", "SLOTS" } },
    { "pubsub|shardnumsub", SHARDS, { "PUBSUB", "SHARDNUMSUB" } },
    { "spublish", SHARDS, { "SPUBLISH", MAILBOX, "" } },
};
enum { SHARDED_SINCE = 70000 };

static const struct {
    int severity;
    const char *means;
} needs[NEED_COUNT] = {
    [ALL_LOCKS] = { LOG_ERR,
                    "locks fail with EACCES, or with EPROTO if the server has no "
                    "such command" },
    [SOME_LOCKS] = { LOG_WARNING, "read-write locks, robust locks or fencing tokens fail "
                                  "with EACCES" },
    [SLOWER] = { LOG_WARNING,
                 "locks work, but waiters may find their grants by polling only" },
    [COSTLIER] = { LOG_NOTICE, "locks work, at a greater cost" },
    [LOOKING] = { LOG_NOTICE, "locks work, but rlock_inspect, rlock_list and "
                              "rlock_force_unlock fail or show less" },
    [REDISSON] = { LOG_NOTICE, "locks work, but rlock_waitfree and waiters of Redisson's "
                               "find a lock by polling" },
    [MOVES] = { LOG_WARNING,
                "locks work, but a holder cannot renew while his hash slot is "
                "being moved" },
    [SHARDS] = { LOG_NOTICE,
                 "locks work, but each message to a waiter goes to all nodes" },
    [ROLES] = { LOG_NOTICE,
                "locks work, but a connection learns by INFO whether the server is a "
                "master, and without INFO only when the server refuses to write" },
};

struct search {
    struct rlk_diagnosis *d;
    char name[RLK_UUID_LEN + 1]; /* of a lock that no client uses */
    char missing[NEED_COUNT][LIST_SIZE];
    bool own_keys; /* the user may not use locks of all names */
    bool exists;   /* the user may run EXISTS */
};

enum verdict { ALLOWED, NO_COMMAND, NO_KEY, NO_CHANNEL };

static void add_missing(struct search *s, enum need need, const char *sign,
                        const char *word)
{
    char *list = s->missing[need];
    size_t at = strlen(list);
    snprintf(list + at, LIST_SIZE - at, "%s%s%s", at ? " " : "", sign, word);
}

static enum verdict judge(const struct rlk_reply *reply)
{
    size_t len;
    const char *text = rlk_reply_string(reply, &len);

    if (rlk_reply_type(reply) != RLK_REPLY_ERROR)
        return ALLOWED;
    if (rlk_server_error_of_key(text, len))
        return NO_KEY;
    if (rlk_server_error_of_channel(text, len))
        return NO_CHANNEL;
    /* A server without the command, or whose administrator has renamed it. */
    bool unknown = strncasecmp(text, "ERR unknown ", strlen("ERR unknown ")) == 0;
    return unknown || rlk_server_error_by_acl(text, len) ? NO_COMMAND : ALLOWED;
}

static int try(struct search *s, const char *const *argv, enum verdict *ret_verdict)
{
    struct rlk_reply *reply;

    int rc = rlk_diagnose_ask(s->d, argv, &reply, NULL);
    if (rc != 0)
        return rc;
    *ret_verdict = judge(reply);
    rlk_reply_free(reply);
    return 0;
}

static int try_probe(struct search *s, const struct probe *probe)
{
    char mailbox[sizeof(RLK_MAILBOX_PREFIX "probe:") + RLK_UUID_LEN];
    const char *argv[ARGS_MAX + 1] = { NULL };
    enum verdict verdict;

    snprintf(mailbox, sizeof(mailbox), RLK_MAILBOX_PREFIX "probe:%s", s->name);
    for (int i = 0; i < ARGS_MAX && probe->argv[i]; i++) {
        argv[i] = probe->argv[i];
        if (strcmp(argv[i], KEY) == 0)
            argv[i] = s->name;
        else if (strcmp(argv[i], MAILBOX) == 0)
            argv[i] = mailbox;
        else if (strcmp(argv[i], NAME) == 0)
            argv[i] = s->d->client->conn_name;
    }
    int rc = try(s, argv, &verdict);
    if (rc != 0)
        return rc;
    if (verdict == NO_COMMAND)
        add_missing(s, probe->need, "+", probe->word);
    else if (verdict == NO_CHANNEL)
        add_missing(s, SLOWER, "&", RLK_MAILBOX_PREFIX "*");
    else if (verdict == NO_KEY)
        s->own_keys = true;
    if (strcmp(probe->word, "exists") == 0)
        s->exists = verdict == ALLOWED;
    return 0;
}

/* What needs a connection of its own, in this order. */
static const struct {
    const char *word;
    enum need need;
    bool of_channels, of_cluster;
    long since; /* the version */
} own_words[] = {
    { "asking", MOVES, false, true, 0 },
    { "subscribe", SLOWER, true, false, 0 },
    { "unsubscribe", COSTLIER, true, false, 0 },
    { "ssubscribe", SHARDS, true, true, SHARDED_SINCE },
    { "sunsubscribe", SHARDS, true, true, SHARDED_SINCE },
};
enum { OWN_WORDS = sizeof(own_words) / sizeof(own_words[0]), SUBSCRIBE_TRIES = 3 };

/* After a subscription the next reply may be a message. */
static bool is_reply_to(const struct rlk_reply *reply, const char *word)
{
    size_t len;

    if (rlk_reply_type(reply) == RLK_REPLY_ERROR ||
        rlk_reply_type(reply) == RLK_REPLY_STATUS)
        return true;
    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY)
        return false;
    const char *kind = rlk_reply_text_at(reply, 0, &len);
    return kind && strcasecmp(kind, word) == 0;
}

/* Whether the reply leaves the connection subscribed to a channel, so that a message may
 * follow. An error changes nothing, and neither does the status that ASKING gets. */
static bool is_subscribed(const struct rlk_reply *reply, bool before)
{
    int64_t channels;

    if (rlk_reply_type(reply) == RLK_REPLY_ERROR ||
        rlk_reply_type(reply) == RLK_REPLY_STATUS)
        return before;
    return !rlk_reply_integer_at(reply, 2, &channels) || channels != 0;
}

/* Whether the server has this command, and locks need it there. */
static bool is_meant(const struct search *s, int i)
{
    long version = rlk_diagnose_version(s->d);

    return (!own_words[i].of_cluster || s->d->at) &&
           (version == 0 || version >= own_words[i].since);
}

/* All of them need one connection. It is not used again if it may still be subscribed or
 * a message may be on its way; else it is kept, because a server that is full might
 * refuse the next one. (ASKING is about the next command alone.) ret_refused: which of
 * them were refused. Returns 0; EPROTO: another reply came; or why it could not ask. */
static int subscribe_once(struct search *s, bool ret_refused[OWN_WORDS])
{
    static atomic_uint count; /* gives concurrent calls different channels */
    char channel[sizeof(RLK_MAILBOX_PREFIX "probe:") + RLK_UUID_LEN + 12];
    const char *argv[] = { NULL, channel };
    int64_t until = rlk_inspect_until(s->d->client), sent;
    struct rlk_target *target;
    struct rlk_conn *conn;
    bool subscribed[] = { false, false }; /* to a channel; to a sharded one */

    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "probe:%s:%u", s->name,
             atomic_fetch_add(&count, 1));
    int rc = rlk_diagnose_borrow(s->d, until, &target, &conn);
    if (rc != 0)
        return rc;
    for (int i = 0; rc == 0 && i < OWN_WORDS; i++) {
        struct rlk_reply *reply;
        if (!is_meant(s, i))
            continue;
        argv[0] = own_words[i].word;
        const size_t len[] = { strlen(argv[0]), strlen(channel) };
        if (rlk_conn_call(conn, own_words[i].of_channels ? 2 : 1, argv, len, until,
                          &reply, &sent) != RLK_FAIL_NONE) {
            rc = rlk_conn_error_code(conn);
            rc = rlk_error_set(rc ? rc : ENOTCONN, "%s", rlk_conn_error_text(conn));
            break;
        }
        if (!is_reply_to(reply, argv[0]))
            rc = rlk_error_set(EPROTO, "unexpected reply to %s", argv[0]);
        ret_refused[i] = judge(reply) == NO_COMMAND;
        bool *is = &subscribed[own_words[i].of_cluster];
        *is = is_subscribed(reply, *is);
        rlk_reply_free(reply);
    }
    if (rc != 0 || subscribed[0] || subscribed[1])
        rlk_conn_kill(conn, RLK_FAIL_NOT_SENT,
                      "the connection was subscribed to a channel");
    rlk_rpc_put(target, conn);
    return rc;
}

static int try_subscribe(struct search *s)
{
    bool refused[OWN_WORDS] = { false };
    int64_t until = rlk_inspect_until(s->d->client);
    int rc = EPROTO;

    for (int tries = 0; tries < SUBSCRIBE_TRIES && (rc == EPROTO || rc == ENOTCONN);
         tries++) {
        if (rc == ENOTCONN && rlk_clock_boot() >= until)
            break; /* the connection works, but no reply came */
        rc = subscribe_once(s, refused);
    }
    for (int i = 0; rc == 0 && i < OWN_WORDS; i++)
        if (refused[i])
            add_missing(s, own_words[i].need, "+", own_words[i].word);
    return rc;
}

/* A user who may use a lock's key needs the keys beside it, too. */
static int try_companions(struct search *s)
{
    enum verdict verdict;
    int rc = 0;

    for (int key = RLK_KEY_N + 1; rc == 0 && key <= RLK_KEY_CHANNEL; key++) {
        char text[RLK_KEY_SIZE + 1];
        bool channel = key == RLK_KEY_CHANNEL;
        const char *const argv[] = { channel ? "PUBLISH" : "EXISTS", text,
                                     channel ? "" : NULL, NULL };
        size_t len = rlk_key_write(text, (enum rlk_key)key, s->name, strlen(s->name));
        text[len] = '\0';
        rc = try(s, argv, &verdict);
        if (rc != 0 || (verdict != NO_KEY && verdict != NO_CHANNEL))
            continue;
        text[rlk_key_write(text, (enum rlk_key)key, "*", 1)] = '\0';
        add_missing(s, channel ? REDISSON : ALL_LOCKS, channel ? "&" : "~", text);
    }
    return rc;
}

/* The user of the connections. Without credentials it may be that of the client's
 * certificate, as only the server knows (tls-auth-clients-user). */
static int find_user(struct rlk_diagnosis *d)
{
    const struct rlk_endpoint *endpoint = &d->client->config.endpoint;
    const char *const argv[] = { "ACL", "WHOAMI", NULL };
    struct rlk_reply *reply;
    const char *name;
    size_t len;

    if (d->user[0])
        return 0;
    d->knows_user = true;
    snprintf(d->user, sizeof(d->user), "%s", endpoint->user ? endpoint->user : "default");
    if (endpoint->user || endpoint->password || !endpoint->tls.certfile)
        return 0;
    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_STRING, &reply);
    if (rc != 0)
        return rc;
    name = reply ? rlk_reply_string(reply, &len) : "of the client's certificate";
    rlk_diagnose_copy(d->user, name);
    d->knows_user = reply && strcmp(d->user, name) == 0;
    rlk_reply_free(reply);
    return 0;
}

static int tell(struct search *s)
{
    const char *given = s->d->client->config.endpoint.user;
    const char *user = given ? given : s->d->user;
    char shown[RLK_LOG_NAME_SIZE];
    bool any = false;
    int rc = 0;

    rlk_log_name(shown, sizeof(shown), user, strlen(user));
    for (int i = 0; rc == 0 && i < NEED_COUNT; i++) {
        if (s->missing[i][0] == '\0')
            continue;
        any = true;
        rc = rlk_diagnose_tell(s->d, needs[i].severity, "acl",
                               "The user \"%s\" lacks %s: %s. doc/ACL.md has the least "
                               "that a user needs.",
                               shown, s->missing[i], needs[i].means);
    }
    if (rc == 0 && !any)
        rc = rlk_diagnose_tell(s->d, LOG_INFO, "acl",
                               "The user \"%s\" may run all commands that locks need.",
                               shown);
    if (rc == 0 && s->own_keys)
        rc = rlk_diagnose_tell(
            s->d, LOG_NOTICE, "acl",
            "The user \"%s\" may use locks of some names only; only the use of a lock "
            "shows whether the keys beside them are allowed (doc/ACL.md).",
            shown);
    return rc;
}

/* A missing right does not matter for a command that a server of that version does not
 * have; scripts do without it. */
static bool is_too_new(const struct probe *probe, long version)
{
    return version != 0 && ((version < 60200 && strcmp(probe->word, "zmscore") == 0) ||
                            (version < SHARDED_SINCE && probe->need == SHARDS));
}

static int try_probes(struct search *s, const struct probe *list, size_t count)
{
    long version = rlk_diagnose_version(s->d);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++)
        if (!is_too_new(&list[i], version))
            rc = try_probe(s, &list[i]);
    return rc;
}

int rlk_diagnose_acl(struct rlk_diagnosis *d)
{
    const struct rlk_confirm *wait = &d->client->config.wait;
    struct search s = { .d = d };
    int rc = find_user(d);

    memcpy(s.name, d->client->uuid, sizeof(s.name));
    if (rc == 0)
        rc = try_probes(&s, probes, sizeof(probes) / sizeof(probes[0]));
    if (rc == 0 && d->at)
        rc = try_probes(&s, cluster_probes,
                        sizeof(cluster_probes) / sizeof(cluster_probes[0]));
    if (rc == 0 && rlk_confirm_is_on(wait))
        rc = try_probe(&s, wait->aof ? &waitaof_probe : &wait_probe);
    if (rc == 0 && d->client->config.endpoint.sentinels.count > 0)
        rc = try_probe(&s, &role_probe);
    if (rc == 0)
        rc = try_subscribe(&s);
    if (rc == 0 && s.exists && !s.own_keys)
        rc = try_companions(&s);
    return rc == 0 ? tell(&s) : rc;
}

/* ---- who else can act as this user */

/* Judged by the URL: only the resolver knows where a name leads. */
static bool is_this_host(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

enum rights { UNKNOWN, SOME, ALL };

/* Whether the user may do everything, as far as the server shows it to this user. */
static int look_for_all(struct rlk_diagnosis *d, const char *user,
                        enum rights *ret_rights)
{
    const char *const argv[] = { "ACL", "GETUSER", user, NULL };
    struct rlk_reply *reply;
    bool commands = false, keys = false;

    *ret_rights = UNKNOWN;
    int rc = rlk_diagnose_command(d, argv, RLK_REPLY_ARRAY, &reply);
    if (rc != 0 || !reply)
        return rc;
    for (size_t i = 0; i + 1 < rlk_reply_count(reply); i += 2) {
        size_t len;
        const char *name = rlk_reply_text_at(reply, i, &len);
        const char *text = rlk_reply_text_at(reply, i + 1, &len);
        const struct rlk_reply *list = rlk_reply_at(reply, i + 1);
        if (name && strcmp(name, "commands") == 0)
            commands = text && strcmp(text, "+@all") == 0;
        if (name && strcmp(name, "keys") == 0) {
            if (!text && rlk_reply_type(list) == RLK_REPLY_ARRAY) /* before 7.0 */
                text = rlk_reply_text_at(list, 0, &len);
            keys = text && (strcmp(text, "~*") == 0 || strcmp(text, "*") == 0);
        }
    }
    rlk_reply_free(reply);
    *ret_rights = commands && keys ? ALL : SOME;
    return 0;
}

int rlk_diagnose_access(struct rlk_diagnosis *d)
{
    const struct rlk_endpoint *endpoint = &d->client->config.endpoint;
    const char *user = endpoint->user ? endpoint->user : d->user;
    char shown[RLK_LOG_NAME_SIZE];
    enum rights rights = UNKNOWN;
    struct rlk_sentinel_master master;
    const char *host = rlk_diagnose_sentinel_host(d, &master);
    bool near = !host || is_this_host(host);
    bool has_key = d->has_certificate; /* rlk_diagnose_tls has looked before */

    int rc = find_user(d);
    if (rc == 0 && d->knows_user)
        rc = look_for_all(d, user, &rights);
    if (rc != 0)
        return rc;
    rlk_log_name(shown, sizeof(shown), user, strlen(user));
    if (host && !endpoint->password && !has_key)
        return rlk_diagnose_tell(
            d, near ? LOG_NOTICE : LOG_WARNING, "access",
            "The server asks for no password: everybody who reaches its port can take, "
            "end and forge every lock. Give locks a user of their own, with a password "
            "(doc/ACL.md).");
    if (!near && !endpoint->tls_store)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "access",
            "The password of \"%s\" and all lock traffic go to another host in clear "
            "text: everybody who reads them on the way can act as this user. Use TLS "
            "(rediss://, doc/TLS.md) or a tunnel.",
            shown);
    if (rights == ALL)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "access",
            "The user \"%s\" may do everything at this server, and locks need little of "
            "it: %s can do it, too, and so can a faulty program. Give locks a user of "
            "their own (doc/ACL.md).",
            shown,
            endpoint->password ? "everybody who reads the password"
            : has_key          ? "everybody who reads the key"
                               : "everybody who opens the socket");
    return rlk_diagnose_tell(
        d, LOG_INFO, "access",
        rights == SOME
            ? "The user \"%s\" may not do everything, and comes %s."
            : "The user \"%s\" comes %s; the server does not show this user's rights.",
        shown, near ? "from this host" : "by TLS");
}
