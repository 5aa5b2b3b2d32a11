/* SPDX-License-Identifier: Apache-2.0 */
/* See byhand.h. */
#include "byhand.h"

#include "net/key.h"
#include "state/hold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 128, NAME_LEN = sizeof(BYHAND_LOCK) - 1, SOON_MS = 5000 };

struct test_server server;
struct test_redis *redis;
bool byhand_w13 = true;
static struct test_redis *judge; /* has all permissions, even when `redis` has not */

void byhand_start(void)
{
    test_server_start(&server, NULL);
}

void byhand_stop(void)
{
    test_server_stop(&server);
}

void byhand_connect(void)
{
    redis = test_redis_connect(server.path);
    judge = test_redis_connect(server.path);
    prefer = "16";
}

void byhand_open(void)
{
    test_server_reset(&server);
    byhand_connect();
}

void byhand_close(void)
{
    test_redis_close(redis);
    test_redis_close(judge);
}

TCase *byhand_tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, byhand_start, byhand_stop);
    tcase_add_checked_fixture(tc, byhand_open, byhand_close);
    suite_add_tcase(suite, tc);
    return tc;
}

struct test_redis *byhand_user_without(const char *command)
{
    char minus[32];
    snprintf(minus, sizeof(minus), "-%s", command);
    test_redis_do(redis, "ACL", "SETUSER", "less", "reset", "on", ">less", "~*", "&*",
                  "+@all", minus);
    struct test_redis *r = test_redis_connect(server.path);
    test_redis_do(r, "AUTH", "less", "less");
    return r;
}

const redisReply *run_raw(enum rlk_script_id id, const char *const args[])
{
    const struct rlk_script *s = &rlk_scripts[id];
    static char keys[RLK_KEY_COUNT][RLK_KEY_SIZE];
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
    char count[8];
    int argc = 0;

    snprintf(count, sizeof(count), "%d", s->key_count);
    argv[argc++] = "EVAL";
    argv[argc++] = s->text;
    argv[argc++] = count;
    for (int i = 0; i < s->key_count; i++) {
        keys[i][rlk_key_write(keys[i], s->keys[i], BYHAND_LOCK, NAME_LEN)] = '\0';
        argv[argc++] = keys[i];
    }
    argv[argc++] = RLK_LAYOUT;
    for (int i = 0; args[i]; i++)
        argv[argc++] = args[i];
    for (int i = 0; i < argc; i++)
        len[i] = strlen(argv[i]);
    const redisReply *reply = test_redis_try_bytes(redis, argc, argv, len);
    ck_assert_ptr_nonnull(reply);
    return reply;
}

/* ---- W13 */

const char *waits_for_free(long long now, long long left)
{
    static const char script[] =
        "local call, now, left = redis.call, ARGV[1] / 1000, tonumber(ARGV[2])\n"
        "local n, queue, rqueue, present, readers = unpack(KEYS)\n"
        "local function live(id)\n"
        "  local uuid, ttl = string.match(id, '^([^:]+):%d+:%d+:[mfwMFWrR](%d+)%l*$')\n"
        "  local till = uuid and (call('ZSCORE', present, uuid) or\n"
        "    call('ZCARD', present) == 0 and now or call('ZSCORE', present, '*'))\n"
        "  return till and tonumber(till) >= math.floor(now)\n"
        "    and call('PUBSUB', 'NUMSUB', 'rlock:client:' .. uuid)[2] > 0\n"
        "end\n"
        "local function first(key, upto)\n"
        "  for _, id in ipairs(call('ZRANGEBYSCORE', key, '-inf', upto)) do\n"
        "    if live(id) then return id end\n"
        "  end\n"
        "end\n"
        "local function judged()\n"
        "  local top = call('ZREVRANGE', readers, 0, 0, 'WITHSCORES')[2]\n"
        "  if call('EXISTS', n) == 0 then\n"
        "    if left ~= -2 then return '' end\n" /* its hold has expired since */
        "    return first(queue, '+inf') or first(rqueue, '+inf')\n"
        "  end\n"
        "  if call('HGET', n, 'mode') ~= 'rlock:read' or not top then return '' end\n"
        "  local upto = '+inf'\n"
        "  if first(queue, '+inf') then upto = call('ZSCORE', rqueue, '~') end\n"
        "  return upto and first(rqueue, upto)\n"
        "end\n"
        "local sane, who = pcall(judged)\n" /* fails when a key has another type */
        "return sane and who or ''\n";
    static char who[128];
    char now_text[32], left_text[32];
    snprintf(now_text, sizeof(now_text), "%lld", now);
    snprintf(left_text, sizeof(left_text), "%lld", left);
    snprintf(who, sizeof(who), "%s",
             test_redis_str(judge, "EVAL", script, "5", BYHAND_LOCK, QUEUE, RQUEUE,
                            PRESENT, READERS, now_text, left_text));
    return who;
}

static bool counts(const char *command, const char *key, const char *member)
{
    const redisReply *reply = test_redis_try(judge, command, key, member);
    return reply && (reply->type == REDIS_REPLY_STRING || reply->integer == 1);
}

/* Whether the script will run the hand-over, unless it ends before that with "refused" or
 * "late". */
static bool will_settle(enum rlk_script_id id, const char *const args[])
{
    switch (id) {
    case RLK_RWLOCK_READ:
    case RLK_RWLOCK_WRITE:
        return !counts("HEXISTS", BYHAND_LOCK, args[0]) &&
               !counts("ZSCORE", READERS, args[0]);
    case RLK_RWLOCK_DOWNGRADE:
        return counts("HEXISTS", BYHAND_LOCK, args[0]);
    case RLK_RWLOCK_RELEASE:
    case RLK_RWLOCK_CANCEL:
    case RLK_RWLOCK_REFRESH:
    case RLK_LOCK_FORCE:
    case RLK_LOCK_BURY:
        return true;
    default:
        return false;
    }
}

static void assert_settled(enum rlk_script_id id, const struct answer *a)
{
    const char *what = a->count ? a->fate[0].what : "";
    bool forced = id == RLK_LOCK_FORCE;
    if (a->more || a->rmore || strcmp(what, "refused") == 0 ||
        strcmp(what, "late") == 0 || (forced && strcmp(what, "gone") == 0))
        return;
    const char *who = waits_for_free(a->now, a->left);
    ck_assert_msg(!who[0], "W13: after %s (%s), %s waits for what is free",
                  rlk_scripts[id].name, what, who);
}

/* ---- scripts */

static struct answer run_only(enum rlk_script_id id, const char *const args[])
{
    const redisReply *reply = run_raw(id, args);
    struct answer answer;

    memset(&answer, 0, sizeof(answer));
    if (reply->type == REDIS_REPLY_ERROR) {
        snprintf(answer.error, sizeof(answer.error), "%s", reply->str);
        return answer;
    }
    ck_assert_int_eq(reply->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_le(reply->elements % 4, 1);
    if (reply->elements % 4 == 1) /* of the read-write lock: where to go on in rqueue */
        answer.rmore = reply->element[reply->elements - 1]->integer;
    long long *head[] = { &answer.now, &answer.left, &answer.flags, &answer.more };
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(reply->element[i]->type, REDIS_REPLY_INTEGER);
        *head[i] = reply->element[i]->integer;
    }
    answer.count = reply->elements / 4 - 1;
    ck_assert_uint_le(answer.count, sizeof(answer.fate) / sizeof(answer.fate[0]));
    for (size_t i = 0; i < answer.count; i++) {
        redisReply **e = &reply->element[4 + 4 * i];
        snprintf(answer.fate[i].what, sizeof(answer.fate[i].what), "%s", e[0]->str);
        answer.fate[i].remaining = e[1]->integer;
        answer.fate[i].ticket = e[2]->integer;
        ck_assert_int_eq(e[3]->type, REDIS_REPLY_STRING);
        snprintf(answer.fate[i].token, sizeof(answer.fate[i].token), "%s", e[3]->str);
    }
    return answer;
}

struct answer run(enum rlk_script_id id, const char *const args[])
{
    bool settles = byhand_w13 && will_settle(id, args);
    struct answer answer = run_only(id, args);
    if (settles && !answer.error[0])
        assert_settled(id, &answer);
    return answer;
}

const char *prefer = "16";

static char *uuid_of(const char *id)
{
    static char uuid[64];
    snprintf(uuid, sizeof(uuid), "%.36s", id);
    return uuid;
}

/* The scripts of the kind that the id's letter names. */
static const struct rlk_kind *kind_of(const char *id)
{
    const char *last = strrchr(id, ':');
    char letter = last ? last[1] : 'm';
    switch (letter | 0x20) {
    case 'f':
        return &rlk_kinds[RLK_KIND_FAIR];
    case 'r':
    case 'w':
        return &rlk_kinds[RLK_KIND_RWLOCK];
    default:
        return &rlk_kinds[RLK_KIND_MUTEX];
    }
}

/* The argument that gives scripts of the read-write lock the preferred kind; NULL for
 * other locks. */
static const char *preferred(const char *id)
{
    return kind_of(id)->read_letter ? prefer : NULL;
}

static bool reads(const char *id)
{
    return (strrchr(id, ':')[1] | 0x20) == 'r';
}

static struct answer ask_shared(const char *id, const char *not_after,
                                const char *try_once, const char *fencing,
                                const char *shared)
{
    const struct rlk_kind *kind = kind_of(id);
    return RUN(reads(id) ? kind->read : kind->acquire, id, uuid_of(id), "30000", "3000",
               not_after, try_once, fencing, prefer, "0", "0", reads(id) ? shared : NULL);
}

static struct answer ask(const char *id, const char *not_after, const char *try_once,
                         const char *fencing)
{
    const struct rlk_kind *kind = kind_of(id);
    if (kind->read_letter)
        return ask_shared(id, not_after, try_once, fencing, "");
    return RUN(kind->acquire, id, uuid_of(id), "30000", "3000", not_after, try_once,
               fencing, kind->in_order ? "0" : NULL);
}

struct answer acquire(const char *id)
{
    return ask(id, NEVER, "0", "0");
}

struct answer try_acquire(const char *id)
{
    return ask(id, NEVER, "1", "0");
}

struct answer try_acquire_after(const char *id, const char *ticket)
{
    return RUN(RLK_FAIR_ACQUIRE, id, uuid_of(id), "30000", "3000", NEVER, "1", "0",
               ticket);
}

struct answer acquire_fenced(const char *id)
{
    return ask(id, NEVER, "0", "1");
}

struct answer acquire_until(const char *id, const char *not_after, const char *fencing)
{
    return ask(id, not_after, "0", fencing);
}

struct answer release(const char *id)
{
    return release_marked(id, "0");
}

struct answer release_marked(const char *id, const char *life)
{
    return RUN(kind_of(id)->release, id, life, CHANNEL, preferred(id));
}

struct answer renew(const char *id, const char *lease)
{
    char text[200];
    if (!kind_of(id)->read_letter)
        return RUN(kind_of(id)->renew, id, lease);
    snprintf(text, sizeof(text), "%s %s ", strchr(id, ':') + 1, lease);
    return RUN(kind_of(id)->renew, uuid_of(id), text);
}

struct answer renew_marked(const char *id, const char *number)
{
    return RUN(kind_of(id)->renew, id, "30000", CHANNEL, "1", "0", number);
}

struct answer release_robust(const char *id, const char *how)
{
    return RUN(kind_of(id)->release, id, "0", CHANNEL, how, "0");
}

struct answer renew_for_more(const char *id)
{
    if (kind_of(id)->read_letter)
        return renew(id, "30000tm");
    return RUN(kind_of(id)->renew, id, "30000", CHANNEL, "1", "1");
}

struct answer cancel(const char *id)
{
    return cancel_marked(id, "7000");
}

struct answer cancel_marked(const char *id, const char *life)
{
    return RUN(kind_of(id)->cancel, id, life, preferred(id));
}

struct answer refresh(const char *id)
{
    const char *local = strchr(id, ':') + 1;
    if (kind_of(id)->read_letter)
        return RUN(kind_of(id)->refresh, uuid_of(id), "3000", prefer, "0", "0", local);
    return RUN(kind_of(id)->refresh, uuid_of(id), "3000", "0", local);
}

struct answer refresh_on(const char *id, long long more, long long rmore)
{
    char after[32], rafter[32];
    snprintf(after, sizeof(after), "%lld", more);
    snprintf(rafter, sizeof(rafter), "%lld", rmore);
    return RUN(RLK_RWLOCK_REFRESH, uuid_of(id), "3000", prefer, after, rafter,
               strchr(id, ':') + 1);
}

struct answer refresh_after(const char *ticket)
{
#ifdef AS_RWLOCK
    return RUN(RLK_RWLOCK_REFRESH, UUID_C, "3000", prefer, ticket, "0", "");
#else
    return RUN(RLK_MUTEX_REFRESH, UUID_C, "3000", ticket, "");
#endif
}

struct answer force(const char *holder, const char *since)
{
    return RUN(RLK_LOCK_FORCE, holder, since, CHANNEL);
}

struct answer bury(const char *ids)
{
    return RUN(RLK_LOCK_BURY, UUID_A, "10000", CHANNEL, prefer, ids);
}

struct answer share(const char *id, const char *shared)
{
    return ask_shared(id, NEVER, "0", "0", shared);
}

struct answer downgrade(const char *id)
{
    return RUN(kind_of(id)->downgrade, id, "30000", prefer);
}

/* ---- listeners */

struct test_redis *channel_listener(const char *channel)
{
    struct test_redis *r = test_redis_connect(server.path);
    test_redis_do(r, "SUBSCRIBE", channel);
    return r;
}

struct test_redis *listener(const char *uuid)
{
    char channel[64];
    snprintf(channel, sizeof(channel), "rlock:client:%s", uuid);
    return channel_listener(channel);
}

const char *message(struct test_redis *from)
{
    const redisReply *reply = test_redis_recv(from, SOON_MS);
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        strcmp(reply->element[0]->str, "message") != 0)
        return NULL;
    return reply->element[2]->str;
}

bool no_message(struct test_redis *from)
{
    /* the server sends messages and the reply in order */
    test_redis_send(from, "PING");
    const redisReply *reply = test_redis_recv(from, SOON_MS);
    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           strcmp(reply->element[0]->str, "pong") == 0;
}

struct test_redis *limited_user(void)
{
    test_redis_do(redis, "ACL", "SETUSER", "limited", "reset", "on", ">limited", "~*",
                  "&*", "+@all", "-pubsub");
    struct test_redis *r = test_redis_connect(server.path);
    test_redis_do(r, "AUTH", "limited", "limited");
    return r;
}

/* ---- looks */

static const char *look(const char *script)
{
    static char texts[4][4096]; /* one assertion compares at most this many */
    static unsigned next;
    char *text = texts[next++ % 4];
    const char *found = test_redis_str(redis, "EVAL", script, "0");
    snprintf(text, sizeof(texts[0]), "%s", found ? found : "");
    return text;
}

const char *digest(void)
{
    return look(
        "local keys = redis.call('KEYS', '*') table.sort(keys) local all = ''\n"
        "for _, k in ipairs(keys) do all = all .. k .. redis.call('DUMP', k) end\n"
        "return redis.sha1hex(all)");
}

const char *without_ttl(void)
{
    return look("for _, k in ipairs(redis.call('KEYS', '*')) do\n"
                "if redis.call('PTTL', k) == -1 and k ~= '" TOKEN "' then return k end\n"
                "end return ''");
}

void assert_ttls(void)
{
    ck_assert_str_eq(without_ttl(), "");
}

bool is_held_by(const char *id)
{
    return test_redis_int(redis, "HEXISTS", BYHAND_LOCK, id) == 1 &&
           test_redis_int(redis, "PTTL", BYHAND_LOCK) > 0;
}

const char *field(const char *name)
{
    static char text[128];
    const char *value = test_redis_str(redis, "HGET", BYHAND_LOCK, name);
    snprintf(text, sizeof(text), "%s", value ? value : "");
    return text;
}

const char *queue_text(void)
{
    return look("return table.concat(redis.call('ZRANGE', '" QUEUE
                "', 0, -1, 'WITHSCORES'), ' ')");
}

const char *rqueue_text(void)
{
    return look("return table.concat(redis.call('ZRANGE', '" RQUEUE
                "', 0, -1, 'WITHSCORES'), ' ')");
}

const char *readers_text(void)
{
    return look("return table.concat(redis.call('ZRANGE', '" READERS
                "', 0, -1, 'WITHSCORES'), ' ')");
}

long long end_of(const char *id)
{
    const char *text = test_redis_str(redis, "ZSCORE", READERS, id);
    return text ? atoll(text) : -1;
}

static void put(const char *key, const char *member, long long score)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", score);
    test_redis_do(redis, "ZADD", key, text, member);
}

void set_end(const char *id, long long end)
{
    put(READERS, id, end);
}

void put_waiter(const char *queue, const char *id, long long ticket)
{
    put(queue, id, ticket);
    test_redis_do(redis, "PEXPIRE", queue, "60000");
}

void put_present(const char *uuid)
{
    put(PRESENT, uuid, 9999999999999);
    test_redis_do(redis, "PEXPIRE", PRESENT, "60000");
}

long long server_ms(void)
{
    return test_redis_int(redis, "EVAL",
                          "local t = redis.call('TIME')\n"
                          "return t[1] * 1000 + math.floor(t[2] / 1000)",
                          "0");
}

bool reads_now(const char *id)
{
    return strcmp(field("mode"), "rlock:read") == 0 && end_of(id) >= server_ms();
}

void put_waiters(const char *queue, const char *uuid, char letter, int first, int count)
{
    char from[16], to[16], tail[32];
    snprintf(from, sizeof(from), "%d", first);
    snprintf(to, sizeof(to), "%d", first + count - 1);
    snprintf(tail, sizeof(tail), ":9:%c%ld", letter, test_ms(3000));
    test_redis_do(redis, "EVAL",
                  "for i = ARGV[1], ARGV[2] do\n"
                  "redis.call('ZADD', KEYS[1], i, ARGV[3] .. ':' .. i .. ARGV[4])\n"
                  "end redis.call('PEXPIRE', KEYS[1], 60000)",
                  "1", queue, from, to, uuid, tail);
    put_present(uuid);
}

const char *waiter_id(const char *uuid, int ticket, char letter)
{
    static char id[64];
    snprintf(id, sizeof(id), "%s:%d:9:%c%ld", uuid, ticket, letter, test_ms(3000));
    return id;
}

long long count_reading(void)
{
    return test_redis_int(redis, "ZCARD", READERS);
}

long long count_waiting(const char *queue)
{
    return test_redis_int(redis, "ZCOUNT", queue, "-inf", "+inf") -
           (test_redis_str(redis, "ZSCORE", queue, "~") != NULL);
}

/* By how many ms a key outlives the latest reader. */
static long long outlives(const char *key)
{
    /* within one script, so that clock and TTL are read at the same instant */
    return test_redis_int(
        redis, "EVAL",
        "local t = redis.call('TIME')\n"
        "local top = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]\n"
        "return redis.call('PTTL', KEYS[2]) + t[1] * 1000 + math.floor(t[2] / 1000) - "
        "top",
        "2", READERS, key);
}

void assert_fit(const char *id)
{
    enum { READERS_MS = 60000, NEAR_MS = 100 };
    const char *last =
        test_redis_do(redis, "ZREVRANGE", READERS, "0", "0")->element[0]->str;
    ck_assert_str_eq(last, id);
    ck_assert_int_ge(outlives(BYHAND_LOCK), -NEAR_MS);
    ck_assert_int_le(outlives(BYHAND_LOCK), NEAR_MS);
    ck_assert_int_ge(outlives(READERS), READERS_MS - NEAR_MS);
    ck_assert_int_le(outlives(READERS), READERS_MS + NEAR_MS);
    assert_ttls();
}

void expire(void)
{
    test_redis_do(redis, "DEL", BYHAND_LOCK);
}

/* ---- the test that nearly all other tests resemble (suite.h) */

START_TEST(all_that_is_common_to_the_tests)
{
    struct test_redis *mail = listener(UUID_B);
    put_present(UUID_B);
    SAYS(acquire(A), "held");
    acquire(B);
    try_acquire(C);
    renew(A, "30000");
    refresh(B);
    queue_text();
    assert_ttls();
    release(A);
    message(mail);
    cancel(B);
    cancel(C);
    ck_assert_str_ne(digest(), "");
    run_raw(RLK_RWLOCK_WRITE, TEST_ARGV("no arguments"));
    test_redis_close(mail);
}
END_TEST

Suite *test_warm_up(void)
{
    return test_warm_up_of(all_that_is_common_to_the_tests, byhand_start, byhand_stop,
                           byhand_open, byhand_close);
}
