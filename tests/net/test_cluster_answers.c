/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node of a cluster answers to our scripts, of which some name one key and some
 * name several: while the hash slot stays, or is being moved, and all keys are at the
 * node, or some, or none. And what a client makes of each of these answers. The answers
 * are the server's own.
 */
#include "clusterscene.h"

#include "lua_scripts.h"
#include "net/request.h"

#include <stdio.h>
#include <string.h>

enum {
    SOON_MS = 30000,
    SHORT_MS = 200, /* for a lock that nobody can have now */
    EARLIER = 70000 /* servers before this version ask for the other node in one more
                       case */
};

#define HOLDER "aaaaaaaa-0000-4000-8000-00000000000a:1:1:m3000"

enum place { STABLE, ELSEWHERE, MIGRATING, IMPORTING, ASKED };
enum amount { NONE, SOME, ALL };

static const char *name;
static unsigned hash_slot;

static void set_up(void)
{
    cluster_open();
    name = cluster_name(0, 0);
    hash_slot = cluster_hash_slot(name);
}

/* ---- keys */

static char *key_of(const struct rlk_script *script, int i)
{
    static char keys[RLK_KEY_COUNT][RLK_KEY_SIZE];

    keys[i][rlk_key_write(keys[i], script->keys[i], name, strlen(name))] = '\0';
    return keys[i];
}

/* Runs a command, at a node that is getting the hash slot behind ASKING. */
static void put(int node, bool asking, const char *const argv[])
{
    if (asking)
        test_redis_do(at_node[node], "ASKING");
    test_redis_do_argv(at_node[node], argv);
}

/* Puts keys of the script at a node: SOME is the lock's own, which comes first. */
static void put_keys(int node, bool asking, enum amount amount,
                     const struct rlk_script *script)
{
    int count = amount == NONE ? 0 : amount == SOME ? 1 : script->key_count;

    for (int i = 0; i < count; i++) {
        const char *key = key_of(script, i);
        switch (script->keys[i]) {
        case RLK_KEY_N:
            put(node, asking, TEST_ARGV("HSET", key, HOLDER, "1", "mode", "rlock:mutex"));
            break;
        case RLK_KEY_TOKEN:
        case RLK_KEY_DIRTY:
            put(node, asking, TEST_ARGV("SET", key, "7"));
            break;
        default:
            put(node, asking, TEST_ARGV("ZADD", key, "1", "somebody"));
        }
    }
}

/* ---- answers */

/* EVAL or EVALSHA, with the keys of the lock; the script finds no hold of this id. */
static const redisReply *run(int node, const struct rlk_script *script, bool by_sha)
{
    const char *argv[24] = { by_sha ? "EVALSHA" : "EVAL",
                             by_sha ? script->sha : script->text };
    char count[4];
    int n = 2;

    snprintf(count, sizeof(count), "%d", script->key_count);
    argv[n++] = count;
    for (int i = 0; i < script->key_count; i++)
        argv[n++] = key_of(script, i);
    const char *const args[] = { RLK_LAYOUT, "nobody:1:1:m3000", "3000", "channel", "0" };
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
        argv[n++] = args[i];
    return test_redis_try_argv(at_node[node], argv);
}

/* The first word of an error; "ok" for another reply. */
static const char *word_of(const redisReply *reply)
{
    static char word[32];

    ck_assert_ptr_nonnull(reply);
    if (reply->type != REDIS_REPLY_ERROR)
        return "ok";
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(reply->str, " "), reply->str);
    return word;
}

struct row {
    enum place place;
    enum amount amount;
    const char *one, *several; /* what scripts are answered that name so many keys */
};
static const struct row rows[] = {
    { STABLE, NONE, "ok", "ok" },
    { STABLE, SOME, "ok", "ok" },
    { STABLE, ALL, "ok", "ok" },
    { ELSEWHERE, NONE, "MOVED", "MOVED" },
    { MIGRATING, NONE, "ASK", "ASK" },
    { MIGRATING, SOME, "ok", "TRYAGAIN" },
    { MIGRATING, ALL, "ok", "ok" },
    { IMPORTING, NONE, "MOVED", "MOVED" },
    { IMPORTING, SOME, "MOVED", "MOVED" },
    { IMPORTING, ALL, "MOVED", "MOVED" },
    { ASKED, NONE, "ok", "TRYAGAIN" },
    { ASKED, SOME, "ok", "TRYAGAIN" },
    { ASKED, ALL, "ok", "ok" },
};

static void expect_answer(const struct row *row, enum rlk_script_id id, bool by_sha,
                          const char *expected)
{
    int node = row->place == STABLE || row->place == MIGRATING ? 0 : 1;

    if (row->place == ASKED)
        test_redis_do(at_node[node], "ASKING");
    const char *word = word_of(run(node, &rlk_scripts[id], by_sha));
    ck_assert_msg(strcmp(word, expected) == 0, "row %d, %s, %s: %s in place of %s",
                  (int)(row - rows), rlk_scripts[id].name, by_sha ? "EVALSHA" : "EVAL",
                  word, expected);
}

/* rule: P19, P20 */
START_TEST(server_answers_our_scripts_as_the_table_says)
{
    const struct row *row = &rows[_i];
    const char *several = row->several;
    bool moves = row->place > ELSEWHERE, arrived = row->place > MIGRATING;

    for (int node = 0; node < 2; node++)
        for (int i = 0; i < RLK_SCRIPT_COUNT; i++)
            test_redis_do(at_node[node], "SCRIPT", "LOAD", rlk_scripts[i].text);
    if (row->place == STABLE || row->place == MIGRATING)
        put_keys(0, false, row->amount, &rlk_scripts[RLK_MUTEX_RENEW]);
    if (moves)
        cluster_begin_move(hash_slot, 0, 1);
    if (arrived)
        put_keys(1, true, row->amount, &rlk_scripts[RLK_MUTEX_RENEW]);
    if (row->place == MIGRATING && row->amount == SOME && test_server_version() < EARLIER)
        several = "ASK";
    for (int by_sha = 0; by_sha < 2; by_sha++) {
        expect_answer(row, RLK_LOCK_RAISE, by_sha, row->one);
        expect_answer(row, RLK_MUTEX_RENEW, by_sha, several);
    }
    if (moves)
        cluster_call_off_move(hash_slot, 0, 1);
}
END_TEST

/* rule: P19 */
START_TEST(script_that_is_not_known_uses_up_the_ASKING)
{
    const struct rlk_script *script = &rlk_scripts[RLK_LOCK_RAISE];

    test_redis_do(at_node[1], "SCRIPT", "FLUSH");
    cluster_begin_move(hash_slot, 0, 1);
    test_redis_do(at_node[1], "ASKING");
    ck_assert_str_eq(word_of(run(1, script, true)), "NOSCRIPT");
    ck_assert_str_eq(word_of(run(1, script, false)), "MOVED");
    test_redis_do(at_node[1], "ASKING");
    ck_assert_str_eq(word_of(run(1, script, false)), "ok");
    cluster_call_off_move(hash_slot, 0, 1);
}
END_TEST

/* rule: P19 */
START_TEST(keys_of_two_hash_slots_are_refused)
{
    const redisReply *reply =
        test_redis_try(at_node[0], "EVAL", "return 1", "2", name, cluster_name(0, 1));

    ck_assert_str_eq(word_of(reply), "CROSSSLOT");
}
END_TEST

/* ---- what a client does */

/* The lock of another client, in one of the states of the table. */
struct state {
    bool held;   /* by the client, from before the move */
    bool others; /* the other keys of a renewal are there, too */
    bool gone;   /* what is there has been moved */
};
static const struct state states[] = {
    { .held = false },
    { .held = true },
    { .held = true, .gone = true },
    { .held = true, .others = true },
    { .held = true, .others = true, .gone = true },
};

/* rule: P19, P20 */
START_TEST(client_renews_and_unlocks_and_waits_to_lock)
{
    const struct state *state = &states[_i];

    client = cluster_client("");
    rlock_mutex_t m = mutex_of(client, name);
    if (state->held)
        OK(rlock_mutex_lock(&m));
    if (state->others) {
        const struct rlk_script *script = &rlk_scripts[RLK_MUTEX_RENEW];
        for (int i = 1; i < script->key_count; i++)
            if (script->keys[i] == RLK_KEY_TOKEN || script->keys[i] == RLK_KEY_DIRTY)
                test_redis_do(at_node[0], "SET", key_of(script, i), "7");
            else
                test_redis_do(at_node[0], "ZADD", key_of(script, i), "1", "somebody");
    }
    cluster_begin_move(hash_slot, 0, 1);
    if (state->gone)
        cluster_move_keys(hash_slot, 0, 1, NULL);
    if (state->held) {
        OK(rlock_mutex_extend(&m, 60000));
        ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
        OK(rlock_mutex_unlock(&m));
    }
    struct timespec soon = test_in_ms(CLOCK_MONOTONIC, SHORT_MS);
    int rc = rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &soon);
    EXPECT(rc, ENOTCONN);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "TRYAGAIN"));
    cluster_move_keys(hash_slot, 0, 1, NULL);
    cluster_end_move(hash_slot, 0, 1);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    cluster_move_back(hash_slot, 0, 1);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster answers");
    TCase *tc = tcase_create("answers");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, cluster_close);
    tcase_add_loop_test(tc, server_answers_our_scripts_as_the_table_says, 0,
                        (int)(sizeof(rows) / sizeof(rows[0])));
    tcase_add_test(tc, script_that_is_not_known_uses_up_the_ASKING);
    tcase_add_test(tc, keys_of_two_hash_slots_are_refused);
    tcase_add_loop_test(tc, client_renews_and_unlocks_and_waits_to_lock, 0,
                        (int)(sizeof(states) / sizeof(states[0])));
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
