/* SPDX-License-Identifier: Apache-2.0 */
/* A server that stands still inside a script, for shorter or longer than the leases: for
 * the script, the clock leaps between two commands. Wherever that happens, no key is left
 * without a TTL, and the next client gets the lock when the leases are over. The same is
 * true of a script one of whose commands an ACL refuses: Redis undoes nothing. */
#include "byhand.h"
#include "clock.h"

#include <stdio.h>

enum { READS_MAX = 2000, LATER_MS = 400000, ROOM_MS = 1000 };
#define FENCED_READ_A UUID_A ":1:7:R3000"
#define FENCED_READ_B UUID_B ":1:7:R3000"
#define FENCED_WRITE_A UUID_A ":1:8:W3000"
#define FENCED_WRITE_B UUID_B ":1:8:W3000"
#define ROBUST_A UUID_A ":1:9:m3000b"
#define ROBUST_B UUID_B ":1:9:m3000b"
#define C2 UUID_C ":1:2:" LETTER "3000"
#define WRITE_C2 UUID_C ":1:5:w3000"
#define ROBUST_FAIR_A UUID_A ":1:9:f3000b"
#define ROBUST_FAIR_B UUID_B ":1:9:f3000b"

static struct test_clock server_clock;
static struct test_redis *mailbox[2], *everybody;

static void start(void)
{
    test_clock_open(&server_clock);
    test_server_start_env(&server, NULL, server_clock.env);
}

static void stop(void)
{
    byhand_stop();
    test_clock_close(&server_clock);
}

static void open_scene(void)
{
    test_clock_leap(&server_clock, 0, 0);
    test_clock_set_real(&server_clock, 0);
    byhand_open();
    test_clock_step(&server_clock, redis, 0);
    everybody = redis;
    byhand_w13 = false; /* waiters are gone at once as well */
    mailbox[0] = listener(UUID_A);
    mailbox[1] = listener(UUID_B);
}

static void close_scene(void)
{
    test_redis_close(mailbox[0]);
    test_redis_close(mailbox[1]);
    byhand_close();
}

static struct answer renewal(const char *id)
{
    return renew(id, "30000");
}

static struct answer joining(const char *id)
{
    return share(id, READ_A);
}

static struct answer forcing(const char *id)
{
    struct test_redis *user = redis;
    redis = everybody; /* a forced release has looked before */
    char since[64];
    snprintf(since, sizeof(since), "%s", field("since"));
    redis = user;
    return force(id, since);
}

/* The state before, and the script during which the server stands still. */
static const struct scenario {
    const char *name;
    const char *holder, *waiter, *waiter2; /* by acquire; NULL: none */
    struct answer (*call)(const char *id);
    const char *id;
    bool ended; /* the holder's lease was over before */
} scenarios[] = {
    { "take", NULL, NULL, NULL, acquire, A, false },
    { "take, fenced", NULL, NULL, NULL, acquire_fenced, FENCED_A, false },
    { "take, robust", NULL, NULL, NULL, acquire, ROBUST_A, false },
    { "take, after a dead owner", ROBUST_B, NULL, NULL, acquire, ROBUST_A, true },
    { "take, fair", NULL, NULL, NULL, acquire, FAIR_A, false },
    { "write", NULL, NULL, NULL, acquire, WRITE_A, false },
    { "write, fenced", NULL, NULL, NULL, acquire_fenced, FENCED_WRITE_A, false },
    { "read", NULL, NULL, NULL, acquire, READ_A, false },
    { "read, fenced", NULL, NULL, NULL, acquire_fenced, FENCED_READ_A, false },
    { "join a reading", READ_B, NULL, NULL, acquire, READ_A, false },
    { "join a reading, fenced", READ_B, NULL, NULL, acquire_fenced, FENCED_READ_A,
      false },
    { "again", READ_A, NULL, NULL, acquire, READ_A, false },
    { "again, fenced", FENCED_READ_A, NULL, NULL, acquire_fenced, FENCED_READ_A, false },
    { "queue", B, NULL, NULL, acquire, A, false },
    { "queue, fair", FAIR_B, NULL, NULL, acquire, FAIR_A, false },
    { "queue to write", READ_B, NULL, NULL, acquire, WRITE_A, false },
    { "queue to read", WRITE_B, NULL, NULL, acquire, READ_A, false },
    { "release to a waiter", A, B, NULL, release, A, false },
    { "release to a waiter, fenced", A, FENCED_B, NULL, release, A, false },
    { "release to a waiter, robust", ROBUST_A, ROBUST_B, NULL, release, ROBUST_A, false },
    { "release to readers", WRITE_A, READ_B, READ_A, release, WRITE_A, false },
    { "release to readers, fenced", WRITE_A, FENCED_READ_B, READ_A, release, WRITE_A,
      false },
    { "release to a writer", READ_A, WRITE_B, READ_B, release, READ_A, false },
    { "release to a writer, fenced", READ_A, FENCED_WRITE_B, FENCED_READ_B, release,
      READ_A, false },
    { "release of one reader", READ_A, READ_B, NULL, release, READ_A, false },
    { "refresh of who is next", A, B, NULL, refresh, B, true },
    { "refresh of who is next, robust", ROBUST_A, ROBUST_B, NULL, refresh, ROBUST_B,
      true },
    { "refresh of who is next, fenced", A, FENCED_B, NULL, refresh, FENCED_B, true },
    { "refresh of readers", WRITE_A, READ_B, READ_A, refresh, READ_B, true },
    { "refresh of readers, fenced", WRITE_A, FENCED_READ_B, FENCED_READ_A, refresh,
      FENCED_READ_B, true },
    { "refresh of a writer", READ_A, FENCED_WRITE_B, NULL, refresh, FENCED_WRITE_B,
      true },
    { "ask again of who is next", A, B, NULL, acquire, B, true },
    { "ask again of who reads next", WRITE_A, FENCED_READ_B, READ_A, acquire_fenced,
      FENCED_READ_B, true },
    { "cancel of the first", READ_A, WRITE_B, FENCED_READ_B, cancel, WRITE_B, false },
    { "cancel of a holder", A, B, NULL, cancel, A, false },
    { "ask again, fair", FAIR_A, FAIR_B, NULL, acquire, FAIR_B, true },
    { "ask again, fair and robust", ROBUST_FAIR_A, ROBUST_FAIR_B, NULL, acquire,
      ROBUST_FAIR_B, true },
    { "renewal", A, B, NULL, renewal, A, false },
    { "renewal, robust", ROBUST_A, NULL, NULL, renewal, ROBUST_A, false },
    { "renewal of a reading", READ_A, READ_B, NULL, renewal, READ_A, false },
    { "renewal of a writing", WRITE_A, READ_B, NULL, renewal, WRITE_A, false },
    { "join a hold of the same client", READ_A, NULL, NULL, joining, READ_A2, false },
    { "forced release", WRITE_A, READ_B, NULL, forcing, WRITE_A, false },
    { "to who does not hear", A, C, B, release, A, false },
    { "to readers who do not hear", WRITE_A, READ_C, READ_B, release, WRITE_A, false },
    { "downgrade", WRITE_A, FENCED_READ_B, NULL, downgrade, WRITE_A, false },
    { "downgrade, fenced", FENCED_WRITE_A, READ_B, NULL, downgrade, FENCED_WRITE_A,
      false },
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static void ask(const char *id)
{
    if (id && strchr("MFWR", strrchr(id, ':')[1]))
        acquire_fenced(id);
    else if (id)
        acquire(id);
}

/* Whether the clock leapt during the call. */
static bool stand_still(const struct scenario *s, long reads, long ms)
{
    test_clock_leap(&server_clock, 0, 0);
    test_clock_step(&server_clock, redis, 0);
    test_redis_do(redis, "FLUSHALL");
    ask(s->holder);
    ask(s->waiter);
    ask(s->waiter2);
    if (s->ended)
        expire();
    test_clock_leap(&server_clock, reads, ms);
    struct answer answer = s->call(s->id);
    bool leapt = test_clock_has_leapt(&server_clock);
    test_clock_leap(&server_clock, 0, 0);
    ck_assert_msg(!answer.error[0], "%s: %s", s->name, answer.error);
    const char *left = without_ttl();
    ck_assert_msg(!left[0],
                  "%s, still for %ld ms at reading %ld of the clock: %s has no TTL",
                  s->name, ms, reads, left);
    /* a client that gets "held", with more time left than the call took, does hold the
     * lock */
    if (strcmp(WHAT(answer), "held") == 0 && answer.fate[0].remaining > ms)
        ck_assert_msg(test_redis_int(redis, "PTTL", BYHAND_LOCK) >=
                          answer.fate[0].remaining - ms - ROOM_MS,
                      "%s, still for %ld ms at reading %ld of the clock: what he has, "
                      "%lld ms, is not at the server",
                      s->name, ms, reads, answer.fate[0].remaining);
    test_clock_step(&server_clock, redis, LATER_MS);
    answer = acquire(C);
    ck_assert_msg(strcmp(WHAT(answer), "held") == 0,
                  "%s, still for %ld ms at reading %ld of the clock: then %s", s->name,
                  ms, reads, WHAT(answer));
    return leapt;
}

/* A grant lasts 3 s, a lease 30 s. Some values are repeated, because the server also
 * reads its clock by itself, and so not each run sees each reading of a script. */
static const long stops_ms[] = { 4000, 200000, 4000, 4000, 4000, 40000 };
enum { STOPS = sizeof(stops_ms) / sizeof(stops_ms[0]), STOPS_QUICK = 3 };

/* rule: T5 */
START_TEST(server_that_stands_still_inside_a_script_leaves_no_endless_key)
{
    /* a tool makes this process slow: then it tries only some of the readings */
    long stride = test_ms(1) >= 10 ? 7 : 1;
    for (long i = 0; i < test_count(STOPS, STOPS_QUICK); i++) {
        long reads = 1;
        while (stand_still(&scenarios[_i], reads, stops_ms[i]))
            reads += stride;
        /* the standstill was seen inside the script, where it can be seen */
        ck_assert_int_gt(reads, test_redis_time_runs_in_scripts(redis) ? 2 : 0);
        ck_assert_int_lt(reads, READS_MAX);
    }
}
END_TEST

/* ---- a command refused inside a script */

/* The commands that scripts call, except PEXPIRE: without it no client can have locks. */
static const char *const commands[] = {
    "del",
    "exists",
    "expire",
    "get",
    "hdel",
    "hexists",
    "hget",
    "hlen",
    "hset",
    "incr",
    "pexpireat",
    "pttl",
    "publish",
    "pubsub",
    "set",
    "zadd",
    "zcard",
    "zrange",
    "zrangebyscore",
    "zrem",
    "zscore",
    "zrevrange",
    "zremrangebyscore",
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* ahead: the tokens are ahead of the clock, so that the next one is counted. */
static void refuse(const struct scenario *s, const char *command, bool ahead)
{
    test_clock_step(&server_clock, redis, 0);
    test_redis_do(redis, "FLUSHALL");
    if (ahead)
        test_redis_do(redis, "SET", TOKEN, "9000000000000000000");
    ask(s->holder);
    ask(s->waiter);
    ask(s->waiter2);
    if (s->ended)
        expire();
    redis = byhand_user_without(command);
    struct answer answer = s->call(s->id);
    if (answer.error[0]) /* the library does this then */
        release_marked(s->id, "7000");
    test_redis_close(redis);
    redis = everybody;
    /* a client that comes when all leases are over gives a TTL to what has none, and then
     * gets the lock */
    bool rwlock = strchr("rRwW", strrchr(s->id, ':')[1]) != NULL;
    test_clock_step(&server_clock, redis, LATER_MS);
    acquire(rwlock ? WRITE_C : C);
    test_clock_step(&server_clock, redis, 2 * LATER_MS);
    answer = acquire(rwlock ? WRITE_C2 : C2);
    ck_assert_msg(strcmp(WHAT(answer), "held") == 0, "%s, without %s: later %s", s->name,
                  command, WHAT(answer));
}

/* rule: T5 */
START_TEST(script_that_is_refused_in_its_midst_blocks_nobody_for_ever)
{
    int stride = test_ms(1) >= 10 ? 3 : 1;
    for (int i = _i % stride; i < COMMANDS; i += stride) {
        refuse(&scenarios[_i], commands[i], false);
        refuse(&scenarios[_i], commands[i], true);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("standstill");
    TCase *tc = tcase_create("standstill");
    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_checked_fixture(tc, open_scene, close_scene);
    tcase_add_loop_test(
        tc, server_that_stands_still_inside_a_script_leaves_no_endless_key, 0, SCENARIOS);
    tcase_add_loop_test(tc, script_that_is_refused_in_its_midst_blocks_nobody_for_ever, 0,
                        SCENARIOS);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
