/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=E9,E10 */
/* The search for deadlocks under faults: lost, late, repeated and forged probes,
 * processes that stop or die, servers that forget the script. None makes a false alarm,
 * and once probes get through each deadlock is found. */
#include "deadscene.h"

static void cross(const char *options)
{
    for (int i = 0; i < 2; i++)
        make_locks(start_party(""), "ab", options);
    scene_says(&p[0], "ok", "on t lock a");
    scene_says(&p[1], "ok", "on t lock b");
}

static void close_ring(void)
{
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock a");
}

static void both_tell(void)
{
    tells(&p[0], "b");
    tells(&p[1], "a");
    nobody_tells();
}

/* The mailbox of the worker's client, by a lock that it holds. */
static const char *mailbox_of(const char *lock, char channel[128])
{
    char id[SCENE_ID_MAX], uuid[64];

    ck_assert(scene_holder(lock, id));
    snprintf(channel, 128, "rlock:client:%s", scene_uuid(uuid, id));
    return channel;
}

/* rule: E9 */
START_TEST(lost_probes_cost_rounds_only)
{
    enum { LOST = 5 };
    cross("");
    int rule = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
                         .contains = "1 probe", .count = LOST);
    close_ring();
    both_tell();
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, rule), LOST);
}
END_TEST

/* rule: E9 */
START_TEST(probe_whose_reply_is_lost_costs_a_round_only)
{
    cross("");
    int rule = SCENE_RULE(RLK_LOCK_PROBE, .on = TEST_ON_REPLY, .action = TEST_CUT,
                          .keep_len = 3, .count = 1);
    close_ring();
    both_tell();
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, rule), 1);
}
END_TEST

/* rule: E9 */
START_TEST(server_that_forgets_the_script_gets_its_text)
{
    cross("");
    test_redis_do(scene_redis, "SCRIPT", "FLUSH");
    close_ring();
    both_tell();
}
END_TEST

/* A waiting chain without a cycle: p[0] has a and waits for b of p[1], which waits for c
 * of the test's own client. */
static void chain(void)
{
    cross("deadlock=fail");
    for (int i = 0; i < 2; i++)
        scene_says(&p[i], "ok", "init c c");
    scene_hold_by_hand("c", 600000);
    begins(&p[0], "t", "lock b");
    begins(&p[1], "t", "lock c");
}

/* rule: E9 */
START_TEST(forged_probes_make_no_alarm)
{
    char channel[128], id[SCENE_ID_MAX], uuid[64], text[512];
    chain();
    ck_assert(scene_holder("a", id));
    mailbox_of("a", channel);
    for (int i = 0; i < 200; i++) {
        /* as if a probe of that very client came back, with any nonce */
        snprintf(text, sizeof(text), "1 probe %s %d 1 - 7 b,x:1:y;a 1 %s a",
                 scene_uuid(uuid, id), i, id);
        test_redis_do(scene_redis, "PUBLISH", channel, text);
        snprintf(text, sizeof(text),
                 "1 probe 00000000-0000-4000-8000-000000000000 %d 63 "
                 "ffffffff-0000-4000-8000-000000000000:1 7 b,x:1:y;a 1 %s a",
                 i, id);
        test_redis_do(scene_redis, "PUBLISH", channel, text);
    }
    nobody_tells();
    ck_assert_ptr_null(worker_news(&p[0], "done t", 0));
    ck_assert_ptr_null(worker_news(&p[1], "done t", 0));
}
END_TEST

/* rule: E9 */
START_TEST(repeated_probes_make_no_second_report)
{
    char channel[128], text[1024] = "";
    cross("");
    mailbox_of("a", channel);
    struct test_redis *other = test_redis_connect(scene_server.path);
    test_redis_do(other, "SUBSCRIBE", channel);
    close_ring();
    while (!strstr(text, "1 probe")) {
        const redisReply *reply = test_redis_recv(other, SCENE_SOON_MS);
        ck_assert(reply && reply->elements == 3);
        snprintf(text, sizeof(text), "%s", reply->element[2]->str);
    }
    both_tell();
    for (int i = 0; i < 50; i++)
        test_redis_do(scene_redis, "PUBLISH", channel, strstr(text, "1 probe"));
    nobody_tells();
    test_redis_close(other);
}
END_TEST

/* rule: E10 */
START_TEST(messages_of_other_versions_are_ignored)
{
    static const char *const texts[] = { "2 probe", "1 probes", "1 probe2" };
    char channel[128], id[SCENE_ID_MAX], uuid[64], text[512];
    chain();
    ck_assert(scene_holder("a", id));
    mailbox_of("a", channel);
    long long before = scene_stat(&p[0], "messages_ignored");
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "%s %s 1 1 - 7 b 1 %s a", texts[i],
                 scene_uuid(uuid, id), id);
        test_redis_do(scene_redis, "PUBLISH", channel, text);
    }
    while (scene_stat(&p[0], "messages_ignored") < before + 3)
        test_pause_ms(1);
    nobody_tells();
}
END_TEST

/* rule: E10 */
START_TEST(cycle_through_a_stopped_process_is_found_when_it_goes_on)
{
    cross("");
    worker_stop(&p[1]);
    begins(&p[0], "t", "lock b");
    ck_assert(test_stays(tells_nothing, &p[0], DEAD_STAYS_MS));
    worker_cont(&p[1]);
    begins(&p[1], "t", "lock a");
    both_tell();
}
END_TEST

/* rule: E3 */
START_TEST(grant_that_was_not_read_makes_no_edge_to_oneself)
{
    cross("deadlock=fail");
    begins(&p[0], "t", "lock b");
    ck_assert(scene_wait_queued("b", 1, SCENE_SOON_MS));
    int rule = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
                         .contains = "1 grant", .count = 1);
    scene_says(&p[1], "ok", "on t unlock b");
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    ends(&p[0], "t", "ok"); /* by a poll, a third of the presence later */
    ck_assert(tells_nothing(&p[0]));
    ck_assert_int_gt(scene_stat(&p[0], "deadlock_probes"), 0);
}
END_TEST

START_TEST(process_that_dies_ends_the_cycle)
{
    cross("lease=3000");
    close_ring();
    tells(&p[0], "b");
    worker_kill(&p[1]);
    ends(&p[0], "t", "ok");
    ck_assert(tells_nothing(&p[0]));
}
END_TEST

START_TEST(forced_unlock_ends_the_cycle)
{
    cross("");
    close_ring();
    both_tell();
    scene_says(&p[0], "ok", "force b");
    ends(&p[0], "t", "ok");
    nobody_tells();
}
END_TEST

/* A thread that takes two of the locks in the order of their names, with deadlines that
 * often pass, and gives them back. */
struct climber {
    struct worker *worker;
    char tag[16];
    int step; /* 0: it has none; 1, 2: it wants its first, its second */
    char first, second;
};

/* Whether the thread has begun a call. */
static bool climb(struct climber *c, unsigned *seed)
{
    char prefix[16];

    snprintf(prefix, sizeof(prefix), "done %s ", c->tag);
    const char *news = c->step == 0 ? "" : worker_news(c->worker, prefix, 0);
    if (!news)
        return false;
    bool got = c->step != 0 && strcmp(news + strlen(prefix), "ok") == 0;
    if (c->step == 2 && got)
        scene_says(c->worker, "ok", "on %s unlock %c", c->tag, c->second);
    if (c->step == 2)
        scene_says(c->worker, "ok", "on %s unlock %c", c->tag, c->first);
    if (c->step == 1 && got) {
        c->step = 2;
    } else {
        c->step = 1;
        c->first = (char)('a' + rand_r(seed) % 2);
        c->second = (char)(c->first + 1);
    }
    scene_says(c->worker, "ok", "async %s timedlock %c %d", c->tag,
               c->step == 1 ? c->first : c->second, 5 + rand_r(seed) % 60);
    return true;
}

/* rule: E6, E9 */
START_TEST(waits_in_one_order_make_no_alarm)
{
    enum { WORKERS = 3, EACH = 3 };
    struct climber climbers[WORKERS * EACH];
    unsigned seed = 1;

    for (int i = 0; i < WORKERS; i++) {
        start_party("");
        scene_says(&p[i], "ok", "open %s deadlockms=10", scene_server.url);
        make_locks(&p[i], "ac", "");
        make_locks(&p[i], "b", "rwlock=1");
        for (int t = 0; t < EACH; t++) {
            climbers[i * EACH + t] = (struct climber){ .worker = &p[i] };
            snprintf(climbers[i * EACH + t].tag, sizeof(climbers->tag), "t%d", t);
        }
    }
    for (long i = 0, begun = 0; begun < test_count(20000, 1000); i++) {
        begun += climb(&climbers[i % (WORKERS * EACH)], &seed);
        if (i % (WORKERS * EACH) == 0)
            test_pause_ms(1);
    }
    long long asked = 0;
    for (int i = 0; i < WORKERS; i++) {
        ck_assert(tells_nothing(&p[i]));
        asked += scene_stat(&p[i], "deadlock_probes");
    }
    ck_assert_int_gt(asked, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("deadlock_faults");
    TCase *tc = scene_tcase(s, "faults", open_dead, close_dead);
    tcase_add_test(tc, lost_probes_cost_rounds_only);
    tcase_add_test(tc, probe_whose_reply_is_lost_costs_a_round_only);
    tcase_add_test(tc, server_that_forgets_the_script_gets_its_text);
    tcase_add_test(tc, forged_probes_make_no_alarm);
    tcase_add_test(tc, repeated_probes_make_no_second_report);
    tcase_add_test(tc, messages_of_other_versions_are_ignored);
    tcase_add_test(tc, cycle_through_a_stopped_process_is_found_when_it_goes_on);
    tcase_add_test(tc, grant_that_was_not_read_makes_no_edge_to_oneself);
    tcase_add_test(tc, process_that_dies_ends_the_cycle);
    tcase_add_test(tc, forced_unlock_ends_the_cycle);
    tcase_add_test(tc, waits_in_one_order_make_no_alarm);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
