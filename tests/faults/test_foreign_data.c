/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user who may write only to the keys of one prefix ("pay:") can do to clients
 * that use locks of that prefix, and of others: a reply that makes no sense fails the
 * request for that lock, and nothing else. `mallory` is that user; `x` is a worker whose
 * client goes through the proxy and holds "jobs:1" the whole time.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEASE_MS = 1000,
    HOLD_MS = 100, /* by hand */
    LEASES = 3,    /* that "jobs:1" is watched for */
    NAME_SIZE = 16,
    LONG_LEN = 64 << 10,
    HUGE_COUNT = 500
};

#define NOT_A_NUMBER "no-number"
#define PAST_DOUBLES "9007199254740994" /* a ticket of 2^53 + 2 */
#define HUGE_TICKET "1e300"

static struct worker x;
static struct test_redis *mallory;
static char long_text[LONG_LEN + 1];
static unsigned accepted;

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    memset(long_text, '7', LONG_LEN);
    test_redis_do(scene_redis, "ACL", "SETUSER", "mallory", "reset", "on", "nopass",
                  "~pay:*", "~rlock:{pay:*", "~redisson_lock_token:{pay:*", "+@all");
    mallory = test_redis_connect(scene_server.path);
    test_redis_do(mallory, "AUTH", "mallory", "any");
    scene_worker(&x, test_proxy_url(scene_proxy), SCENE_TIMES(.lease = test_ms(LEASE_MS)),
                 "jobs:1", "fencing=1");
    scene_says(&x, "ok", "lock m");
}

static void close_scene(void)
{
    worker_end(&x);
    test_redis_close(mallory);
    test_redis_try(scene_redis, "ACL", "DELUSER", "mallory");
    scene_close();
}

static bool renewed_for(void *arg)
{
    return scene_stat(&x, "renewals") >= *(long long *)arg;
}

static void wait_renewed(long times)
{
    long long enough = scene_stat(&x, "renewals") + times;
    ck_assert(test_wait_until(renewed_for, &enough, 3 * LEASES * LEASE_MS));
}

/* All connections are open: from here on none is opened again. */
static void begin(void)
{
    wait_renewed(1);
    accepted = test_proxy_counts(scene_proxy).accepted;
}

/* "jobs:1" is still held, by renewals on the same connection. */
static void check_untouched(void)
{
    scene_says(&x, "ok SAFE", "state m");
    ck_assert_int_eq(scene_stat(&x, "reconnects"), 0);
    ck_assert_uint_eq(test_proxy_counts(scene_proxy).accepted, accepted);
    scene_says(&x, "ok", "unlock m");
}

static void refused_to_mallory(const char *const argv[])
{
    const redisReply *reply = test_redis_try_argv(mallory, argv);
    ck_assert(reply && reply->type == REDIS_REPLY_ERROR);
    ck_assert_msg(strstr(reply->str, "NOPERM"), "%s", reply->str);
}

START_TEST(user_may_write_to_one_prefix_only)
{
    test_redis_do(mallory, "HSET", "pay:1", "token", NOT_A_NUMBER);
    refused_to_mallory(TEST_ARGV("HSET", "jobs:1", "token", NOT_A_NUMBER));
    refused_to_mallory(TEST_ARGV("SET", "redisson_lock_token:{jobs:1}", NOT_A_NUMBER));
    refused_to_mallory(TEST_ARGV("ZADD", "rlock:{jobs:1}:queue", "1", "x"));
}
END_TEST

/* ---- what mallory writes to a lock that is held */

static const struct {
    const char *type, *where; /* N, or the suffix of a key beside it */
    const char *words[3];     /* the last one NULL: the long text */
    const char *part; /* of the reply that is wrong; NULL: the script itself fails */
} spoils[] = {
    { "", "N", { "HSET", "token", NOT_A_NUMBER }, "token" },
    { "", "N", { "HSET", "token", "-1" }, "token" },
    { "", "N", { "HSET", "token", "99999999999999999999" }, "token" },
    { "", "N", { "HSET", "token" }, "token" },
    { "fair=1", "N", { "HSET", "token", NOT_A_NUMBER }, "token" },
    { "fair=1", "N", { "HSET", "token" }, "token" },
    { "rwlock=1", "N", { "HSET", "token", NOT_A_NUMBER }, "token" },
    { "rwlock=1", "N", { "HSET", "token" }, "token" },
    { "read", "N", { "HSET", "token", NOT_A_NUMBER }, "token" },
    { "read", "N", { "HSET", "token" }, "token" },
    { "read", "readers", { "ZADD", HUGE_TICKET, "no id" }, NULL },
    { "read", "readers", { "ZADD", "inf", "no id" }, NULL },
    { "", "queue", { "SADD", "no", "queue" }, NULL },
};
enum { SPOILS = sizeof(spoils) / sizeof(spoils[0]) };

static void take_to_spoil(int i, char name[NAME_SIZE])
{
    bool reads = strcmp(spoils[i].type, "read") == 0;
    snprintf(name, NAME_SIZE, "pay:%d", i);
    scene_says(&x, "ok", "init p%d %s fencing=1 %s", i, name,
               reads ? "rwlock=1" : spoils[i].type);
    scene_says(&x, "ok", "%s p%d", reads ? "rdlock" : "lock", i);
}

static void spoil(int i, const char *name)
{
    char key[SCENE_KEY_MAX];
    const char *const *words = spoils[i].words;
    bool at_n = strcmp(spoils[i].where, "N") == 0;
    test_redis_do(mallory, words[0], at_n ? name : scene_key(key, name, spoils[i].where),
                  words[1], words[2] ? words[2] : long_text);
}

/* Each of the spoilt holds is lost, and the event says why. */
START_TEST(holds_of_another_prefix_are_renewed_for_leases_on_the_same_connection)
{
    char name[NAME_SIZE], line[64];
    begin();
    for (int i = 0; i < SPOILS; i++) {
        take_to_spoil(i, name);
        spoil(i, name);
    }
    for (int i = 0; i < SPOILS; i++) {
        snprintf(line, sizeof(line), "event LOST pay:%d ", i);
        const char *said = worker_news(&x, line, SCENE_SOON_MS);
        ck_assert_msg(said, "%s", line);
        ck_assert_msg(strstr(said, spoils[i].part ? "unexpected replies to its renewals"
                                                  : "refused"),
                      "%s", said);
        scene_says(&x, "ESTALE", "unlock p%d", i);
    }
    wait_renewed((LEASES - 1) * 3);
    ck_assert_int_eq(scene_stat(&x, "losses"), SPOILS);
    check_untouched();
}
END_TEST

START_TEST(the_log_names_the_lock_and_what_is_wrong)
{
    char name[NAME_SIZE];
    scene_says(&x, "ok", "logger");
    begin();
    take_to_spoil(0, name);
    spoil(0, name);
    const char *said =
        worker_news(&x, "log 4 rlock: renewal of \"pay:0\" failed at ", SCENE_SOON_MS);
    ck_assert(said);
    ck_assert_msg(strstr(said, "unexpected reply from lock script mutex_renew (token)"),
                  "%s", said);
    ck_assert(worker_news(&x, "event AT_RISK pay:0", SCENE_SOON_MS));
    /* mended in time */
    test_redis_do(mallory, "HSET", name, "token", "5");
    ck_assert(worker_news(&x, "event SAFE_AGAIN pay:0", SCENE_SOON_MS));
    scene_says(&x, "ok", "unlock p0");
    check_untouched();
}
END_TEST

/* ---- what mallory writes to a lock that is waited for */

static const struct {
    const char *what, *score, *member;
    bool told; /* the waiter gets an error; else it gets the lock */
} queued[] = {
    { "queue", PAST_DOUBLES, "no id", true },
    { "queue", HUGE_TICKET, "no id", true },
    { "queue", "inf", "no id", true },
    { "queue", "1", "no id", false },
    { "queue", "-1", "a:b:c", false },
    { "queue", "1.5", ":::::", false },
    { "queue", "1", NULL, false },
    { "present", "inf", "no id", false },
    { "cancelled", "inf", "no id", false },
};
enum { QUEUED = sizeof(queued) / sizeof(queued[0]) };

START_TEST(waiter_whose_queue_is_spoilt_gets_an_error_or_the_lock)
{
    char key[SCENE_KEY_MAX], name[NAME_SIZE];
    begin();
    for (int i = 0; i < QUEUED; i++) {
        snprintf(name, sizeof(name), "pay:%d", i);
        /* an error does not wait for the end of the hold */
        scene_hold_by_hand(name, queued[i].told ? test_ms(20 * LEASE_MS) : HOLD_MS);
        test_redis_do(mallory, "ZADD", scene_key(key, name, queued[i].what),
                      queued[i].score, queued[i].member ? queued[i].member : long_text);
        scene_says(&x, "ok", "init p%d %s", i, name);
        scene_says(&x, "ok", "async t lock p%d", i);
        scene_worker_ends(&x, "t", queued[i].told ? "EPROTO" : "ok");
        if (!queued[i].told)
            scene_says(&x, "ok", "on t unlock p%d", i);
    }
    check_untouched();
}
END_TEST

/* The watchdog refreshes tickets, too; this spoilt ticket is the waiter's own. */
START_TEST(waiter_whose_ticket_is_spoilt_asks_itself_and_gets_an_error)
{
    char id[SCENE_ID_MAX], ticket[32], key[SCENE_KEY_MAX];
    begin();
    scene_hold_by_hand("pay:1", test_ms(20 * LEASE_MS));
    scene_says(&x, "ok", "init p pay:1");
    scene_says(&x, "ok", "async t lock p");
    ck_assert(scene_wait_queued("pay:1", 1, SCENE_SOON_MS));
    ck_assert(scene_waiter("pay:1", 0, id, ticket));
    test_redis_do(mallory, "ZADD", scene_key(key, "pay:1", "queue"), "-5", id);
    /* makes the client look at once, which a holder's renewal would not */
    test_redis_do(mallory, "PEXPIRE", "pay:1", "5000");
    scene_worker_ends(&x, "t", "EPROTO");
    check_untouched();
}
END_TEST

/* ---- callers */

START_TEST(a_call_says_which_lock_and_what_of_the_answer)
{
    begin();
    scene_says(&x, "ok", "init p pay:1 fencing=1 rwlock=1");
    scene_says(&x, "ok", "rdlock p");
    test_redis_do(mallory, "HSET", "pay:1", "token", NOT_A_NUMBER);
    scene_says(&x, "EPROTO", "extend p %ld", test_ms(20 * LEASE_MS));
    scene_says(&x,
               "ok lock \"pay:1\": unexpected reply from lock script rwlock_renew "
               "(token): the lock's keys may hold foreign data",
               "errmsg");
    test_redis_do(mallory, "HSET", "pay:1", "token", "5");
    scene_says(&x, "ok", "extend p %ld", test_ms(20 * LEASE_MS));
    scene_says(&x, "ok", "unlock p");
    check_untouched();
}
END_TEST

/* An acquire may have been executed although its reply cannot be read. */
START_TEST(a_lock_whose_answer_cannot_be_read_is_given_back)
{
    char id[SCENE_ID_MAX];
    begin();
    scene_says(&x, "ok", "init p pay:1 fencing=1 rwlock=1");
    /* a read hold of another client, which x may join; its token is not a number */
    test_redis_do(mallory, "HSET", "pay:1", "mode", "rlock:read", "since", "1", "token",
                  NOT_A_NUMBER);
    char key[SCENE_KEY_MAX], end[32];
    snprintf(end, sizeof(end), "%lld", scene_now_ms() + test_ms(20 * LEASE_MS));
    test_redis_do(mallory, "ZADD", scene_key(key, "pay:1", "readers"), end,
                  "dddddddd-0000-4000-8000-00000000000d:1:1:R3000");
    test_redis_do(mallory, "PEXPIRE", "pay:1", "5000");
    scene_says(&x, "EPROTO", "tryrdlock p");
    ck_assert(scene_wait_count("pay:1", "readers", 1, SCENE_SOON_MS));
    ck_assert(scene_member("pay:1", "readers", 0, id, end));
    ck_assert(strncmp(id, "dddddddd", 8) == 0);
    check_untouched();
}
END_TEST

START_TEST(inspections_are_bounded_whatever_the_user_writes)
{
    char key[SCENE_KEY_MAX], field[32];
    begin();
    test_redis_do(mallory, "HSET", "pay:1", "mode", "rlock:mutex", long_text, "1",
                  "since", long_text, "token", long_text);
    for (int i = 0; i < HUGE_COUNT; i++) {
        snprintf(field, sizeof(field), "%d", i);
        test_redis_do(mallory, "ZADD", scene_key(key, "pay:1", "queue"), field, field);
    }
    test_redis_do(mallory, "ZADD", key, "0.5", long_text);
    scene_says(&x, "ok", "inspect pay:1");
    scene_says(&x, "ok", "list pay:*");
    scene_says(&x, "EPROTO", "force pay:1");
    check_untouched();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("foreign data");
    TCase *held = scene_tcase(s, "held", open_scene, close_scene);
    tcase_add_test(held, user_may_write_to_one_prefix_only);
    tcase_add_test(held,
                   holds_of_another_prefix_are_renewed_for_leases_on_the_same_connection);
    tcase_add_test(held, the_log_names_the_lock_and_what_is_wrong);
    TCase *wanted = scene_tcase(s, "wanted", open_scene, close_scene);
    tcase_add_test(wanted, waiter_whose_queue_is_spoilt_gets_an_error_or_the_lock);
    tcase_add_test(wanted, waiter_whose_ticket_is_spoilt_asks_itself_and_gets_an_error);
    TCase *calls = scene_tcase(s, "calls", open_scene, close_scene);
    tcase_add_test(calls, a_call_says_which_lock_and_what_of_the_answer);
    tcase_add_test(calls, a_lock_whose_answer_cannot_be_read_is_given_back);
    tcase_add_test(calls, inspections_are_bounded_whatever_the_user_writes);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
