/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ACL that refuses one command inside a script; Redis does not undo what the script
 * did before. Each script runs as a user who lacks one of the commands that scripts use,
 * in the states of a lock in which the script writes. Whichever command is refused, no
 * key except tokens is left without a TTL, no client holds or reads the lock without
 * having learned so, and other clients get the lock. In these tests the client dies at
 * that moment, so that nothing withdraws the attempt. A client that lives gives back what
 * the ACL refused, as soon as the ACL is mended.
 */
#include "scene.h"

#include "net/server_error.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    WORDS_MAX = 24,
    TEXT_MAX = 600,
    KEYS_MAX = 32,
    LEASE_S_MAX = 86400,
    GRANT_MS = 3000
};

#define N "jobs:1"
#define KEY(suffix) "rlock:{" N "}:" suffix
#define A "aaaaaaaa-0000-4000-8000-00000000000a" /* the requester */
#define B "bbbbbbbb-0000-4000-8000-00000000000b" /* holds or waits, and listens */
#define FAR "9000000000000000"                   /* us: not-after */
#define END "9000000000000"                      /* ms */
#define CHANNEL "redisson_lock__channel:{" N "}"

/* States, as commands separated by ';'. Everything has a TTL. */
#define HELD(id, mode)                                                                   \
    "HSET " N " " id " 1 mode " mode " since 1700000000000000;PEXPIRE " N " 60000;"
#define WAITS(queue, ticket, id)                                                         \
    "ZADD " KEY(queue) " " ticket " " id ";PEXPIRE " KEY(                                \
        queue) " 60000;"                                                                 \
               "ZADD " KEY("present") " " END " " B ";PEXPIRE " KEY("present") " 60000;"
#define READS(id)                                                                        \
    "HSET " N " mode rlock:read since 1700000000000000;PEXPIRE " N " 60000;"             \
    "ZADD " KEY("readers") " $SOON " id ";PEXPIRE " KEY("readers") " 120000;"
#define MARKED "SET " KEY("dirty") " " B ":9:9:m3000b#1 EX 60;"

#define ACQUIRE(id, fence) "1 " id " " A " 20000 3000 " FAR " 0 " fence
#define READ(id, fence) ACQUIRE(id, fence) " 16 0 0 ''"
#define WRITE(id, fence) ACQUIRE(id, fence) " 16 0 0"
#define RELEASE(id) "1 " id " 0 " CHANNEL

static const struct state {
    enum rlk_script_id script;
    bool free; /* no client has the lock before, nor after a refusal */
    const char *before, *arguments;
} states[] = {
    /* a free lock */
    { RLK_MUTEX_ACQUIRE, true, "", ACQUIRE(A ":1:1:m3000", "0") },
    { RLK_MUTEX_ACQUIRE, true, "", ACQUIRE(A ":1:1:M3000", "1") },
    { RLK_MUTEX_ACQUIRE, true, "", ACQUIRE(A ":1:1:m3000b", "0") },
    { RLK_MUTEX_ACQUIRE, true, "", ACQUIRE(A ":1:1:M3000bk", "1") },
    { RLK_MUTEX_ACQUIRE, true, MARKED, ACQUIRE(A ":1:1:m3000b", "0") },
    { RLK_MUTEX_ACQUIRE, true, WAITS("queue", "5", A ":1:1:M3000"),
      ACQUIRE(A ":1:1:M3000", "1") },
    { RLK_FAIR_ACQUIRE, true, "", ACQUIRE(A ":1:1:f3000", "0") " 0" },
    { RLK_FAIR_ACQUIRE, true, "", ACQUIRE(A ":1:1:F3000b", "1") " 0" },
    { RLK_RWLOCK_WRITE, true, "", WRITE(A ":1:1:w3000", "0") },
    { RLK_RWLOCK_WRITE, true, "", WRITE(A ":1:1:W3000k", "1") },
    { RLK_RWLOCK_READ, true, "", READ(A ":1:1:r3000", "0") },
    { RLK_RWLOCK_READ, true, "", READ(A ":1:1:R3000", "1") },
    { RLK_RWLOCK_READ, true, "", READ(A ":1:1:R3000k", "1") },
    /* a lock that others hold */
    { RLK_MUTEX_ACQUIRE, false, HELD(B ":1:1:m3000", "rlock:mutex"),
      ACQUIRE(A ":1:1:m3000", "0") },
    { RLK_FAIR_ACQUIRE, false, HELD(B ":1:1:f3000", "rlock:fair"),
      ACQUIRE(A ":1:1:F3000", "1") " 0" },
    { RLK_RWLOCK_WRITE, false, READS(B ":1:1:r3000"), WRITE(A ":1:1:w3000", "0") },
    { RLK_RWLOCK_READ, false, READS(B ":1:1:r3000"), READ(A ":1:1:r3000", "0") },
    { RLK_RWLOCK_READ, false, READS(B ":1:1:r3000"), READ(A ":1:1:R3000k", "1") },
    { RLK_RWLOCK_READ, false, HELD(B ":1:1:w3000", "rlock:write"),
      READ(A ":1:1:r3000", "0") },
    /* a free lock that others wait for */
    { RLK_FAIR_ACQUIRE, true, WAITS("queue", "5", B ":1:1:f3000"),
      ACQUIRE(A ":1:1:f3000", "0") " 0" },
    { RLK_MUTEX_REFRESH, true, WAITS("queue", "5", B ":1:1:M3000b"),
      "1 " B " 3000 0 1:1:M3000b" },
    { RLK_RWLOCK_REFRESH, true,
      WAITS("queue", "5", B ":1:1:W3000") WAITS("rqueue", "4", B ":1:2:R3000"),
      "1 " B " 3000 16 0 0 1:1:W3000" },
    { RLK_RWLOCK_WRITE, true, WAITS("rqueue", "4", B ":1:2:r3000"),
      WRITE(A ":1:1:w3000", "0") },
    { RLK_MUTEX_CANCEL, true,
      WAITS("queue", "5", B ":1:1:m3000") WAITS("queue", "4", A ":1:1:m3000"),
      "1 " A ":1:1:m3000 5000" },
    { RLK_RWLOCK_CANCEL, true,
      WAITS("rqueue", "5", B ":1:1:r3000") WAITS("queue", "4", A ":1:1:w3000"),
      "1 " A ":1:1:w3000 5000 16" },
    /* released */
    { RLK_MUTEX_RELEASE, false,
      HELD(A ":1:1:m3000", "rlock:mutex") WAITS("queue", "5", B ":1:1:m3000"),
      RELEASE(A ":1:1:m3000") },
    { RLK_FAIR_RELEASE, false,
      HELD(A ":1:1:f3000", "rlock:fair") WAITS("queue", "5", B ":1:1:F3000b"),
      RELEASE(A ":1:1:f3000") },
    { RLK_MUTEX_RELEASE, false, HELD(A ":1:1:m3000", "rlock:mutex"),
      "1 " A ":1:1:m3000 5000 " CHANNEL },
    { RLK_RWLOCK_RELEASE, false,
      HELD(A ":1:1:w3000", "rlock:write") WAITS("rqueue", "5", B ":1:1:r3000")
          WAITS("rqueue", "6", B ":2:1:R3000"),
      RELEASE(A ":1:1:w3000") " 16" },
    { RLK_RWLOCK_RELEASE, false,
      READS(A ":1:1:r3000") WAITS("queue", "5", B ":1:1:W3000"),
      RELEASE(A ":1:1:r3000") " 16" },
    { RLK_RWLOCK_RELEASE, false, READS(A ":1:1:r3000"), RELEASE(A ":1:1:r3000") " 16" },
    { RLK_LOCK_BURY, false, READS(A ":1:1:r3000"), "1 " A " 5000 " CHANNEL " 16 ''" },
    { RLK_RWLOCK_DOWNGRADE, false,
      HELD(A ":1:1:w3000", "rlock:write") WAITS("rqueue", "5", B ":1:1:r3000"),
      "1 " A ":1:1:w3000 20000 16" },
    { RLK_LOCK_FORCE, false,
      HELD(A ":1:1:w3000", "rlock:write") WAITS("rqueue", "5", B ":1:1:r3000"),
      "1 " A ":1:1:w3000 1700000000000000 " CHANNEL },
    { RLK_LOCK_BURY, false,
      HELD(A ":1:1:m3000", "rlock:mutex") WAITS("queue", "5", B ":1:1:m3000"),
      "1 " A " 5000 " CHANNEL " 16 ''" },
    /* renewed */
    { RLK_MUTEX_RENEW, false, HELD(A ":1:1:m3000b", "rlock:mutex"),
      "1 " A ":1:1:m3000b 90000 " CHANNEL " 1" },
    { RLK_RWLOCK_RENEW, false, READS(A ":1:1:r3000k"), "1 " A " $RENEWAL" },
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

/* All commands that the scripts call. */
static const char *const commands[] = {
    "exists",    "del",     "get",     "set",       "incrby",        "pexpire",
    "pexpireat", "expire",  "pttl",    "hget",      "hset",          "hdel",
    "hlen",      "hexists", "hgetall", "zadd",      "zcard",         "zscore",
    "zmscore",   "zrem",    "zrange",  "zrevrange", "zrangebyscore", "zremrangebyscore",
    "publish",   "pubsub",  "time",
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static struct test_redis *user, *ear;

static void open_scene(void)
{
    scene_open();
    ear = test_redis_connect(scene_server.path);
    test_redis_do(ear, "SUBSCRIBE", "rlock:client:" B);
    test_redis_do(scene_redis, "ACL", "SETUSER", "worker", "reset", "on", "nopass");
    user = test_redis_connect(scene_server.path);
    test_redis_do(user, "AUTH", "worker", "any");
}

static void close_scene(void)
{
    test_redis_close(ear);
    test_redis_close(user);
    test_redis_try(scene_redis, "ACL", "DELUSER", "worker");
    scene_close();
}

static void set_user(const char *without)
{
    char minus[40];
    snprintf(minus, sizeof(minus), "-%s", without ? without : "flushall");
    test_redis_do(scene_redis, "ACL", "SETUSER", "worker", "reset", "on", "nopass", "~*",
                  "&*", "+@all", minus);
}

/* Splits the text at blanks into argv from n on. '' stands for an empty word, $SOON for
 * an instant, $RENEWAL for an argument that contains a blank. */
static int split(const char *argv[], int n, char *text)
{
    static char soon[32];
    char *save = NULL;
    snprintf(soon, sizeof(soon), "%lld", scene_now_ms() + 60000);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[n++] = strcmp(w, "''") == 0         ? ""
                    : strcmp(w, "$SOON") == 0    ? soon
                    : strcmp(w, "$RENEWAL") == 0 ? "1:1:r3000k 90000 "
                                                 : w;
    argv[n] = NULL;
    return n;
}

static void set_state(const struct state *s)
{
    char text[TEXT_MAX], *save = NULL;
    test_redis_do(scene_redis, "FLUSHALL");
    snprintf(text, sizeof(text), "%s", s->before);
    for (char *line = strtok_r(text, ";", &save); line;
         line = strtok_r(NULL, ";", &save)) {
        const char *argv[WORDS_MAX];
        split(argv, 0, line);
        test_redis_do_argv(scene_redis, argv);
    }
}

static const redisReply *run(struct test_redis *as, enum rlk_script_id id,
                             const char *arguments)
{
    static char keys[RLK_KEY_COUNT][RLK_KEY_SIZE + 1], count[4], text[TEXT_MAX];
    const struct rlk_script *script = &rlk_scripts[id];
    const char *argv[3 + RLK_KEY_COUNT + WORDS_MAX] = { "EVAL", script->text, count };
    int n = 3;
    snprintf(count, sizeof(count), "%d", script->key_count);
    for (int i = 0; i < script->key_count; i++) {
        keys[i][rlk_key_write(keys[i], script->keys[i], N, strlen(N))] = '\0';
        argv[n++] = keys[i];
    }
    snprintf(text, sizeof(text), "%s", arguments);
    split(argv, n, text);
    return test_redis_try_argv(as, argv);
}

/* The message names this command, in the words of any version of the server. */
static void check_named(const struct rlk_script *script, const redisReply *reply,
                        const char *command)
{
    char said[RLK_SERVER_ERROR_SIZE], upper[40] = "";
    for (size_t i = 0; command[i]; i++)
        upper[i] = (char)toupper((unsigned char)command[i]);
    rlk_server_error_describe(said, sizeof(said), "EVAL", script, N, strlen(N),
                              reply->str, reply->len);
    ck_assert_msg(strstr(said, "the ACL refuses ") && strstr(said, upper),
                  "%s without %s: %s", script->name, command, said);
}

static void check_ends(const char *what, const char *command)
{
    char names[KEYS_MAX][128];
    const redisReply *keys = test_redis_do(scene_redis, "KEYS", "*");
    size_t count = keys->elements < KEYS_MAX ? keys->elements : KEYS_MAX;
    for (size_t i = 0; i < count; i++)
        snprintf(names[i], sizeof(names[i]), "%s", keys->element[i]->str);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(strncmp(names[i], "redisson_lock_token:", 20) == 0 ||
                          test_redis_int(scene_redis, "PTTL", names[i]) != -1,
                      "%s without %s: %s has no end", what, command, names[i]);
}

/* Every holder that N names exists: a lock in read mode has readers. */
static void check_holders(const char *what, const char *command)
{
    const redisReply *mode = test_redis_do(scene_redis, "HGET", N, "mode");
    if (mode->type == REDIS_REPLY_NIL) {
        ck_assert_msg(!test_redis_exists(scene_redis, N), "%s without %s", what, command);
    } else if (strcmp(mode->str, "rlock:read") == 0) {
        ck_assert_msg(test_redis_int(scene_redis, "ZCARD", KEY("readers")) > 0,
                      "%s without %s: a reading of nobody", what, command);
    } else {
        ck_assert_msg(test_redis_int(scene_redis, "HLEN", N) >= 3,
                      "%s without %s: held by nobody", what, command);
    }
}

/* The client that held it before still holds it since the same instant. */
static void check_since(const char *what, const char *command)
{
    const char *mode = test_redis_str(scene_redis, "HGET", N, "mode");
    if (!mode || strcmp(mode, "rlock:write") != 0)
        return;
    const char *since = test_redis_str(scene_redis, "HGET", N, "since");
    ck_assert_msg(since && strcmp(since, "1700000000000000") == 0,
                  "%s without %s: since %s", what, command, since);
}

/* Whether B, which waited, holds the lock by a grant: B learns of it by a message or when
 * it asks again, and the hold lasts no longer than a grant. */
static bool is_granted(void)
{
    const redisReply *fields = test_redis_do(scene_redis, "HGETALL", N);
    bool theirs = false;
    for (size_t i = 0; i < fields->elements; i += 2)
        if (strncmp(fields->element[i]->str, B ":", sizeof(B)) == 0)
            theirs = true;
    theirs = theirs || scene_count(N, "readers") > 0;
    return theirs && scene_pttl(N) > 0 && scene_pttl(N) <= GRANT_MS;
}

static void check(int i, const char *command)
{
    const struct state *s = &states[i];
    const struct rlk_script *script = &rlk_scripts[s->script];
    char what[64];
    snprintf(what, sizeof(what), "%s (state %d)", script->name, i);
    set_state(s);
    set_user(command);
    const redisReply *reply = run(user, s->script, s->arguments);
    ck_assert_msg(command || reply->type == REDIS_REPLY_ARRAY, "%s: %s", what,
                  reply->str);
    bool refused = reply->type == REDIS_REPLY_ERROR;
    if (refused)
        check_named(script, reply, command);
    check_ends(what, command);
    check_holders(what, command);
    if (refused && s->script == RLK_RWLOCK_DOWNGRADE)
        check_since(what, command);
    if (!refused || !s->free || is_granted())
        return;
    ck_assert_msg(!test_redis_exists(scene_redis, N), "%s without %s", what, command);
    /* no waiter is left that could get the lock first */
    test_redis_do(scene_redis, "DEL", KEY("queue"), KEY("rqueue"));
    reply = run(scene_redis, RLK_MUTEX_ACQUIRE,
                "1 " B ":7:7:m3000 " B " 20000 3000 " FAR " 1 0");
    ck_assert_int_eq(reply->type, REDIS_REPLY_ARRAY);
    ck_assert_str_eq(reply->element[4]->str, "held");
    /* the reply reports no dead holder if the lock had no holder before */
    ck_assert(s->before[0] || reply->element[2]->integer == 0);
}

START_TEST(refusal_inside_a_script_leaves_no_endless_key_and_no_ownerless_hold)
{
    check(_i, NULL);
    for (int c = 0; c < COMMANDS; c++)
        check(_i, commands[c]);
}
END_TEST

/* ---- a lock whose TTL is missing */

static const struct {
    enum rlk_script_id script;
    const char *before, *arguments;
} endless[] = {
    { RLK_MUTEX_ACQUIRE, HELD(B ":1:1:m3000", "rlock:mutex"),
      ACQUIRE(A ":1:1:m3000", "0") },
    { RLK_FAIR_ACQUIRE, HELD(B ":1:1:m3000", "rlock:mutex"),
      ACQUIRE(A ":1:1:f3000", "0") " 0" },
    { RLK_RWLOCK_READ, HELD(B ":1:1:w3000", "rlock:write"), READ(A ":1:1:r3000", "0") },
    { RLK_RWLOCK_WRITE, HELD(B ":1:1:w3000", "rlock:write"), WRITE(A ":1:1:w3000", "0") },
    { RLK_MUTEX_REFRESH, HELD(B ":1:1:m3000", "rlock:mutex"), "1 " A " 3000 0 ''" },
    { RLK_RWLOCK_REFRESH, HELD(B ":1:1:m3000", "rlock:mutex"), "1 " A " 3000 16 0 0 ''" },
};

START_TEST(lock_found_without_an_end_is_given_the_longest_lease)
{
    struct state s = { .before = endless[_i].before };
    set_state(&s);
    test_redis_do(scene_redis, "PERSIST", N);
    const redisReply *reply = run(scene_redis, endless[_i].script, endless[_i].arguments);
    ck_assert_int_eq(reply->type, REDIS_REPLY_ARRAY);
    long long told = reply->element[1]->integer;
    ck_assert_int_eq(told, LEASE_S_MAX * 1000LL);
    ck_assert_int_gt(scene_pttl(N), LEASE_S_MAX * 1000LL - test_ms(5000));
    /* a lock that another library has made stays without a TTL */
    set_state(&s);
    test_redis_do(scene_redis, "HDEL", N, "mode");
    test_redis_do(scene_redis, "PERSIST", N);
    run(scene_redis, endless[_i].script, endless[_i].arguments);
    ck_assert_int_eq(scene_pttl(N), -1);
}
END_TEST

/* ---- a release that the ACL refuses at first */

enum { DEADLINE_MS = 1500, REFUSALS = 3, MENDED_MS = 8000, CLOSE_MS = 2000 };

static rlock_client_t *client;
static rlock_mutex_t mutex;

static void open_client(void)
{
    static char url[TEST_URL_MAX];
    open_scene();
    set_user(NULL);
    snprintf(url, sizeof(url), "redis://worker:any@127.0.0.1:%u",
             (unsigned)scene_server.port);
    client = scene_client(url, NULL);
    scene_mutex(&mutex, client, N);
}

static void close_client(void)
{
    if (client)
        rlock_client_close(client);
    client = NULL;
    close_scene();
}

static bool was_refused(void *times)
{
    rlock_stats_t stats;
    ck_assert_int_eq(rlock_client_getstats(client, &stats), 0);
    return stats.refusals >= *(unsigned *)times;
}

static bool nobody_waits(void *unused)
{
    (void)unused;
    return scene_count(N, "queue") == 0;
}

static bool nobody_holds(void *unused)
{
    (void)unused;
    return !test_redis_exists(scene_redis, N);
}

static bool one_waits(void *unused)
{
    (void)unused;
    return scene_count(N, "queue") == 1;
}

static void *run_timedlock(void *unused)
{
    struct timespec until;
    (void)unused;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ms = until.tv_nsec / 1000000 + test_ms(DEADLINE_MS);
    until.tv_sec += ms / 1000;
    until.tv_nsec = ms % 1000 * 1000000;
    return (void *)(intptr_t)rlock_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
}

START_TEST(cancel_that_is_refused_is_repeated_until_the_ACL_is_mended)
{
    char id[SCENE_ID_MAX], ticket[32];
    unsigned refusals = REFUSALS;
    pthread_t thread;
    void *code;
    scene_hold_by_hand(N, test_ms(60000));
    ck_assert_int_eq(pthread_create(&thread, NULL, run_timedlock, NULL), 0);
    ck_assert(test_wait_until(one_waits, NULL, SCENE_SOON_MS));
    ck_assert(scene_waiter(N, 0, id, ticket));
    set_user("zrem");
    pthread_join(thread, &code);
    ck_assert_int_eq((intptr_t)code, ETIMEDOUT);
    ck_assert(test_wait_until(was_refused, &refusals, MENDED_MS));
    ck_assert(one_waits(NULL));
    set_user(NULL);
    ck_assert(test_wait_until(nobody_waits, NULL, MENDED_MS));
    ck_assert_msg(test_redis_str(scene_redis, "ZSCORE", KEY("cancelled"), id),
                  "%s is not cancelled", id);
}
END_TEST

START_TEST(unlock_that_is_refused_is_repeated_until_the_ACL_is_mended)
{
    unsigned refusals = REFUSALS;
    ck_assert_int_eq(rlock_mutex_lock(&mutex), 0);
    set_user("del");
    ck_assert_int_eq(rlock_mutex_unlock(&mutex), EACCES);
    ck_assert(test_wait_until(was_refused, &refusals, MENDED_MS));
    ck_assert(!nobody_holds(NULL));
    set_user(NULL);
    ck_assert(test_wait_until(nobody_holds, NULL, MENDED_MS));
}
END_TEST

START_TEST(close_does_not_wait_for_what_is_refused)
{
    unsigned refusals = REFUSALS;
    ck_assert_int_eq(rlock_mutex_lock(&mutex), 0);
    set_user("del");
    ck_assert_int_eq(rlock_mutex_unlock(&mutex), EACCES);
    ck_assert(test_wait_until(was_refused, &refusals, MENDED_MS));
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_client_close(client), 0);
    client = NULL;
    ck_assert_int_lt(test_now_ms() - begin, test_ms(CLOSE_MS));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("acl in scripts");
    TCase *amid = scene_tcase(s, "in scripts", open_scene, close_scene);
    tcase_add_loop_test(
        amid, refusal_inside_a_script_leaves_no_endless_key_and_no_ownerless_hold, 0,
        STATES);
    TCase *ends = scene_tcase(s, "endless", open_scene, close_scene);
    tcase_add_loop_test(ends, lock_found_without_an_end_is_given_the_longest_lease, 0,
                        sizeof(endless) / sizeof(endless[0]));
    TCase *again = scene_tcase(s, "again", open_client, close_client);
    tcase_add_test(again, cancel_that_is_refused_is_repeated_until_the_ACL_is_mended);
    tcase_add_test(again, unlock_that_is_refused_is_repeated_until_the_ACL_is_mended);
    tcase_add_test(again, close_does_not_wait_for_what_is_refused);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
