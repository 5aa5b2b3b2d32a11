/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behaviour that differs between versions of the servers, and that the design uses or
 * must not use: doc/DESIGN.md, "What servers do". Each test checks it at the server in
 * use, so that a server with a new behaviour is noticed. Old: Redis up to 7.0. New: Redis
 * 7.4 and later, Valkey. For the versions between (7.2) the behaviour is not known: there
 * these tests are skipped.
 *
 * Run on Redis 6.2.14, 7.0.15, 8.2.3, and Valkey 9.0.0, 9.1.2.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 15000, WAIT_MS = 300, SCRIPTS_KEPT = 500 };

/* ---- which one */

static struct {
    int major, minor, patch;
    bool is_valkey;
} version;

static void look_at_version(void)
{
    char info[8192];
    const char *at;
    snprintf(info, sizeof(info), "%s", test_redis_str(redis, "INFO", "server"));
    at = strstr(info, "valkey_version:");
    version.is_valkey = at != NULL;
    if (!at)
        at = strstr(info, "redis_version:");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(strchr(at, ':') + 1, "%d.%d.%d", &version.major,
                            &version.minor, &version.patch),
                     3);
}

/* Whether the version is one of the new ones. */
static bool is_new(void)
{
    return version.is_valkey || version.major > 7 ||
           (version.major == 7 && version.minor >= 4);
}

static bool is_known(const char *test)
{
    if (version.is_valkey || version.major != 7 || version.minor == 0 ||
        version.minor >= 4)
        return true;
    printf("skipped: %s: nobody has looked at %d.%d\n", test, version.major,
           version.minor);
    return false;
}
#define KNOWN(test)                                                                      \
    do {                                                                                 \
        if (!is_known(test))                                                             \
            return;                                                                      \
    } while (0)

static void set_up(void)
{
    fixture_open();
    look_at_version();
}

static const redisReply *eval(struct test_redis *r, const char *script)
{
    return test_redis_try(r, "EVAL", script, "0");
}

/* ---- time inside a script
 *
 * Every script uses this: it calls TIME once, and then compares it with PTTL and with the
 * ends in sorted sets. If the clock runs, later values are read later; if it stands, keys
 * that have expired since then still exist. T5, in doc/design/protocol.md, is about the
 * first, test_standstill is about both. */

START_TEST(time_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on)
{
    KNOWN("time_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on");
    ck_assert(test_redis_time_runs_in_scripts(redis) == !is_new());
}
END_TEST

START_TEST(PTTL_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on)
{
    KNOWN("PTTL_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on");
    const redisReply *r = eval(redis, "redis.call('SET', 'k', 'v', 'PX', 100000)\n"
                                      "local left = redis.call('PTTL', 'k')\n"
                                      "for i = 1, 200000 do\n"
                                      "  if redis.call('PTTL', 'k') ~= left then\n"
                                      "    return 1\n"
                                      "  end\n"
                                      "end\n"
                                      "return 0");
    ck_assert_int_eq(r->type, REDIS_REPLY_INTEGER);
    ck_assert_int_eq(r->integer, is_new() ? 0 : 1);
    test_redis_do(redis, "DEL", "k");
}
END_TEST

/* ---- messages that were published before a write is refused
 *
 * T5 uses this: no script publishes before its first write (test_rules,
 * no_grant_is_sent_when_the_server_refuses_the_write). */

static const char publish_and_write[] = "redis.call('PUBLISH', 'news', '1')\n"
                                        "return redis.call('HSET', 'h', 'a', 'b')";

static void publish_goes_out(const char *name, const char *value, const char *refusal)
{
    struct test_redis *listener = test_redis_connect(server.path);
    test_redis_do(listener, "SUBSCRIBE", "news");
    test_redis_config(redis, name, value);
    const redisReply *r = eval(redis, publish_and_write);
    ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
    ck_assert_msg(strstr(r->str, refusal) != NULL, "%s", r->str);
    test_redis_config(redis, name, "0");
    r = test_redis_recv(listener, SOON_MS);
    ck_assert_ptr_nonnull(r);
    ck_assert_str_eq(r->element[0]->str, "message");
    ck_assert(!test_redis_exists(redis, "h"));
    test_redis_close(listener);
}

START_TEST(a_message_before_a_write_that_memory_refuses_has_gone_out)
{
    publish_goes_out("maxmemory", "1", "OOM");
}
END_TEST

START_TEST(a_message_before_a_write_that_replicas_refuse_has_gone_out)
{
    KNOWN("a_message_before_a_write_that_replicas_refuse_has_gone_out");
    if (!version.is_valkey && version.major == 6 &&
        (version.minor < 2 || version.patch < 6)) {
        /* these apply it to no script */
        test_redis_config(redis, "min-replicas-to-write", "1");
        ck_assert_int_eq(eval(redis, publish_and_write)->type, REDIS_REPLY_INTEGER);
        test_redis_config(redis, "min-replicas-to-write", "0");
        return;
    }
    publish_goes_out("min-replicas-to-write", "1", "NOREPLICAS");
}
END_TEST

/* ---- memory inside a script
 *
 * Scripts use this: one that must work when memory is full (renewal, downgrade, recovery)
 * begins with a write that frees memory or needs none (lua/rwlock_renew.lua,
 * lock_bury.lua); one that must be refused as a whole begins with a write that is refused
 * when memory is full. */

START_TEST(what_comes_first_in_a_script_is_refused_when_memory_is_full)
{
    test_redis_config(redis, "maxmemory", "1");
    const redisReply *r = eval(redis, "return redis.call('HSET', 'h', 'a', 'b')");
    ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
    ck_assert_msg(strstr(r->str, "OOM") != NULL, "%s", r->str);
    test_redis_config(redis, "maxmemory", "0");
}
END_TEST

START_TEST(behind_a_DEL_even_of_nothing_memory_refuses_no_write)
{
    test_redis_config(redis, "maxmemory", "1");
    const redisReply *r = eval(redis, "redis.call('DEL', 'nothing')\n"
                                      "return redis.call('HSET', 'h', 'a', 'b')");
    ck_assert_int_eq(r->type, REDIS_REPLY_INTEGER);
    test_redis_config(redis, "maxmemory", "0");
    test_redis_do(redis, "DEL", "h");
}
END_TEST

/* ---- which scripts a server remembers
 *
 * The library does not use this: it never LOADs scripts, and the server may forget them
 * at any time. The answer to NOSCRIPT is the script's text. */

static void eval_many(void)
{
    char script[32];
    for (int i = 0; i <= SCRIPTS_KEPT; i++) {
        snprintf(script, sizeof(script), "return %d", i);
        ck_assert_int_eq(eval(redis, script)->integer, i);
    }
}

START_TEST(from_7_4_on_500_scripts_are_cached_and_loaded_ones_for_ever)
{
    char loaded[64], first[64];
    KNOWN("from_7_4_on_500_scripts_are_cached_and_loaded_ones_for_ever");
    snprintf(loaded, sizeof(loaded), "%s",
             test_redis_str(redis, "SCRIPT", "LOAD", "return 'loaded'"));
    /* the first of many */
    snprintf(first, sizeof(first), "%s",
             test_redis_str(redis, "EVAL", "return redis.sha1hex('return 0')", "0"));
    eval_many();
    const redisReply *r = test_redis_do(redis, "SCRIPT", "EXISTS", loaded, first);
    ck_assert_int_eq(r->element[0]->integer, 1);
    ck_assert_int_eq(r->element[1]->integer, is_new() ? 0 : 1);
    test_redis_do(redis, "SCRIPT", "FLUSH");
}
END_TEST

START_TEST(a_lock_whose_scripts_others_have_pushed_out_goes_on)
{
    rlock_mutex_t m = mutex_of(client, "N");
    OK(rlock_mutex_lock(&m));
    eval_many();
    OK(rlock_mutex_unlock(&m));
    uint64_t loads = stats_of(client).script_loads;
    eval_many();
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    if (is_known("which were pushed out") && is_new())
        ck_assert_uint_gt(stats_of(client).script_loads, loads);
    test_redis_do(redis, "SCRIPT", "FLUSH");
}
END_TEST

/* ---- WAIT
 *
 * A request that waits for replicas writes in any case, because of both behaviours (P11).
 */

static struct test_server follower;

static bool is_followed(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "replication"), "state=online") != NULL;
}

static void set_up_followed(void)
{
    char port[16];
    set_up();
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    const char *const args[] = { "--replicaof", "127.0.0.1", port, NULL };
    test_server_start(&follower, args);
    ck_assert(test_wait_until(is_followed, NULL, 2 * SOON_MS));
    test_redis_do(redis, "SET", "w", "0");
    char bound[16];
    snprintf(bound, sizeof(bound), "%ld", test_ms(SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "WAIT", "1", bound), 1);
    /* the follower confirms no later write */
    test_server_pause(&follower);
}

static void tear_down_followed(void)
{
    test_server_resume(&follower);
    test_server_stop(&follower);
    test_redis_do(redis, "DEL", "w");
    fixture_close();
}

/* WAIT for WAIT_MS: returns how many replicas confirmed, and whether the call waited. */
static long long wait_for_one(struct test_redis *r, bool *ret_waited)
{
    int64_t begin = test_now_ms();
    char bound[16];
    snprintf(bound, sizeof(bound), "%d", WAIT_MS);
    long long count = test_redis_int(r, "WAIT", "1", bound);
    *ret_waited = test_now_ms() - begin >= WAIT_MS - 1;
    return count;
}

/* `command` and a WAIT behind it, after another connection's write that no replica has:
 * whether WAIT counts the others' write. */
static void waits_behind(const char *const command[], bool others_count)
{
    struct test_redis *writer = test_redis_connect(server.path);
    bool waited;
    test_redis_do(writer, "SET", "w", "1");
    test_redis_do_argv(redis, command);
    ck_assert_int_eq(wait_for_one(redis, &waited), others_count ? 0 : 1);
    ck_assert(waited == others_count);
    test_redis_close(writer);
}

START_TEST(WAIT_after_what_wrote_nothing_is_for_others_up_to_7_0_and_at_once_from_7_4_on)
{
    static const char *const commands[][8] = {
        { "GET", "w" },
        { "DEL", "nothing" },
        { "EVAL", "return redis.call('GET', 'w')", "0" },
        { "EVAL", "return redis.call('DEL', 'nothing')", "0" },
    };
    KNOWN(
        "WAIT_after_what_wrote_nothing_is_for_others_up_to_7_0_and_at_once_from_7_4_on");
    waits_behind(commands[_i], !is_new());
}
END_TEST

START_TEST(WAIT_after_ones_own_write_waits_for_it)
{
    bool waited;
    test_redis_do(redis, "SET", "w", "2");
    ck_assert_int_eq(wait_for_one(redis, &waited), 0);
    ck_assert(waited);
    test_redis_do(redis, "EVAL", "return redis.call('SET', 'w', '3')", "0");
    ck_assert_int_eq(wait_for_one(redis, &waited), 0);
    ck_assert(waited);
}
END_TEST

START_TEST(WAIT_within_a_script_is_refused_up_to_7_0_and_means_nothing_from_7_4_on)
{
    KNOWN("WAIT_within_a_script_is_refused_up_to_7_0_and_means_nothing_from_7_4_on");
    const redisReply *r = eval(redis, "redis.call('SET', 'w', '4')\n"
                                      "return redis.call('WAIT', '1', '300')");
    if (!is_new()) {
        ck_assert_int_eq(r->type, REDIS_REPLY_ERROR);
        return;
    }
    ck_assert_int_eq(r->type, REDIS_REPLY_INTEGER);
    ck_assert_int_eq(r->integer, 1); /* counted, though no replica has it */
    bool waited;
    ck_assert_int_eq(wait_for_one(redis, &waited), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("what servers do");
    TCase *tc = tcase_create("scripts");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, time_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on);
    tcase_add_test(tc, PTTL_runs_on_within_a_script_up_to_7_0_and_stands_from_7_4_on);
    tcase_add_test(tc, a_message_before_a_write_that_memory_refuses_has_gone_out);
    tcase_add_test(tc, a_message_before_a_write_that_replicas_refuse_has_gone_out);
    tcase_add_test(tc, what_comes_first_in_a_script_is_refused_when_memory_is_full);
    tcase_add_test(tc, behind_a_DEL_even_of_nothing_memory_refuses_no_write);
    tcase_add_test(tc, from_7_4_on_500_scripts_are_cached_and_loaded_ones_for_ever);
    tcase_add_test(tc, a_lock_whose_scripts_others_have_pushed_out_goes_on);
    suite_add_tcase(s, tc);
    tc = tcase_create("WAIT");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up_followed, tear_down_followed);
    tcase_add_loop_test(
        tc, WAIT_after_what_wrote_nothing_is_for_others_up_to_7_0_and_at_once_from_7_4_on,
        0, 4);
    tcase_add_test(tc, WAIT_after_ones_own_write_waits_for_it);
    tcase_add_test(
        tc, WAIT_within_a_script_is_refused_up_to_7_0_and_means_nothing_from_7_4_on);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
