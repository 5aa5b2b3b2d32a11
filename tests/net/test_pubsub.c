/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Redis does with channels: it closes the connection of a client that reads too
 * slowly, channels are shared by all databases, and a cluster carries them to every node.
 * `m` is a handle of `self`, a client of this process. x is a worker whose polls are too
 * far apart to matter here.
 */
#include "port.h"
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LONG_PRESENCE_MS = 30000,
    JUNK_LEN = 1000,
    SLOTS = 16384,
    JUNK_MAX = 20000, /* far more than sockets can buffer */
    SOON_MS = 1000,
    STAYS_MS = 200
};

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x;

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    self = scene_client(scene_server.url, NULL);
    scene_mutex(&m, self, "N");
}

static void close_scene(void)
{
    test_redis_do(scene_redis, "CONFIG", "SET", "client-output-buffer-limit",
                  "pubsub 32mb 8mb 60");
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

/* ---- a subscriber that reads too slowly */

/* Fills the worker's mailbox until the server closes the connection. */
static bool flood(const char *mailbox)
{
    static char junk[JUNK_LEN + 1];
    memset(junk, 'x', JUNK_LEN);
    for (int i = 0; i < JUNK_MAX; i++)
        if (test_redis_int(scene_redis, "PUBLISH", mailbox, junk) == 0)
            return true;
    return false;
}

/* The subscriber reads the messages that were under way, subscribes again, and then asks
 * the server for the grant that it has missed. */
/* rule: L3 */
START_TEST(subscriber_cut_off_for_its_backlog_misses_no_grant)
{
    char id[SCENE_ID_MAX], ticket[32], uuid[RLK_UUID_LEN + 1];
    char mailbox[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];
    scene_worker(&x, scene_server.url, SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N",
                 "");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    snprintf(mailbox, sizeof(mailbox), RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
    test_redis_do(scene_redis, "CONFIG", "SET", "client-output-buffer-limit",
                  "pubsub 256kb 64kb 2");
    worker_stop(&x);
    ck_assert(flood(mailbox));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0); /* no message of it arrives */
    ck_assert_int_eq(scene_queue_len("N"), 1);
    int64_t begin = test_now_ms();
    worker_cont(&x);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- messages too long to be the library's */

/* x waits for N. Returns its mailbox. */
static void wait_behind_proxy(char mailbox[static 64])
{
    char id[SCENE_ID_MAX], ticket[32], uuid[RLK_UUID_LEN + 1];
    /* a PING is answered after all data under way, hence the long timeout */
    scene_worker(
        &x, test_proxy_url(scene_proxy),
        SCENE_TIMES(.presence = LONG_PRESENCE_MS, .command = 10 * test_ms(SOON_MS)), "N",
        "");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    snprintf(mailbox, 64, RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
}

static bool is_ignored(void *count)
{
    return scene_stat(&x, "messages_ignored") >= *(long long *)count;
}

START_TEST(a_message_that_is_too_long_is_read_past)
{
    static const size_t sizes[] = { 40000, 1 << 20, 20 << 20 };
    char mailbox[64];
    wait_behind_proxy(mailbox);
    long long ignored = scene_stat(&x, "messages_ignored");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *junk = malloc(sizes[i]);
        ck_assert_ptr_nonnull(junk);
        memset(junk, '$', sizes[i]);
        const char *argv[] = { "PUBLISH", mailbox, junk };
        size_t lens[] = { 7, strlen(mailbox), sizes[i] };
        ck_assert_ptr_nonnull(test_redis_try_bytes(scene_redis, 3, argv, lens));
        free(junk);
        ignored++;
        ck_assert(test_wait_until(is_ignored, &ignored, 10 * SOON_MS));
    }
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS)); /* by a message: its polls are rare */
    ck_assert_int_eq(scene_stat(&x, "reconnects"), 0);
    ck_assert_ptr_null(worker_news(&x, "event DISCONNECTED", 0));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

START_TEST(what_is_no_message_at_all_ends_the_connection)
{
    static const char *const what[] = { "hello\r\n", "*3\r\n$7\r\nmessage\r\n$99x\r\n" };
    char mailbox[64];
    wait_behind_proxy(mailbox);
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_ANSWER,
              .contains = "nothing", .text = what[_i], .count = 1);
    test_redis_do(scene_redis, "PUBLISH", mailbox, "0 nothing");
    ck_assert(worker_news(&x, "event DISCONNECTED", SCENE_SOON_MS));
    ck_assert(worker_news(&x, "event CONNECTED", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- a subscriber whose peer has vanished */

/* The stream does not end, and the server still counts the subscriber as a listener. */
START_TEST(subscriber_without_messages_connects_again)
{
    long presence = test_ms(500);
    scene_worker(&x, test_proxy_url(scene_proxy),
                 SCENE_TIMES(.presence = presence, .command = presence), "N", "");
    ck_assert_int_eq(test_proxy_counts(scene_proxy).accepted, 1); /* the subscriber's */
    int rule = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
                         .connection = 1);
    ck_assert(worker_news(&x, "event DISCONNECTED", SCENE_SOON_MS));
    ck_assert(worker_news(&x, "event CONNECTED", SCENE_SOON_MS));
    ck_assert_int_gt(test_proxy_hits(scene_proxy, rule), 0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- databases */

static bool still_waits(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done t", 0);
}

/* Channels are the same in all databases: a message about one lock wakes no waiter of the
 * other one. */
/* rule: S5 */
START_TEST(one_name_in_two_databases_is_two_locks)
{
    char url[TEST_URL_MAX + 8];
    rlock_mutex_t there;
    snprintf(url, sizeof(url), "%s?db=1", scene_server.url);
    rlock_client_t *in_1 = scene_client(url, NULL);
    scene_mutex(&there, in_1, "N");
    scene_worker(&x, url, SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N", "");
    ck_assert_int_eq(rlock_mutex_lock(&there), 0);
    scene_says(&x, "ok", "async t lock m");
    test_redis_do(scene_redis, "SELECT", "1");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_trylock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_stays(still_waits, NULL, STAYS_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&there), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
    test_redis_do(scene_redis, "SELECT", "0");
    ck_assert_int_eq(rlock_client_close(in_1), 0);
}
END_TEST

/* Clients of both databases hear Redisson's channel; grants reach one waiter each. */
/* rule: S5 */
START_TEST(grant_in_one_database_is_no_grant_in_another)
{
    char url[TEST_URL_MAX + 8];
    struct worker y;
    snprintf(url, sizeof(url), "%s?db=1", scene_server.url);
    scene_worker(&x, url, SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N", "");
    scene_worker(&y, scene_server.url, SCENE_TIMES(.presence = LONG_PRESENCE_MS), "N",
                 "");
    test_redis_do(scene_redis, "SELECT", "1");
    test_redis_do(scene_redis, "HSET", "N", "c0ffee00-0000-4000-8000-000000000000:1",
                  "1");
    scene_says(&x, "ok", "async t lock m");
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "SELECT", "0");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&y, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    test_redis_do(scene_redis, "PUBLISH", "redisson_lock__channel:{N}", "0");
    ck_assert(test_stays(still_waits, NULL, STAYS_MS));
    scene_says(&y, "ok", "on t unlock m");
    ck_assert(test_stays(still_waits, NULL, STAYS_MS));
    test_redis_do(scene_redis, "SELECT", "1");
    test_redis_do(scene_redis, "DEL", "N");
    test_redis_do(scene_redis, "PUBLISH", "redisson_lock__channel:{N}", "0");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    test_redis_do(scene_redis, "SELECT", "0");
    worker_end(&y);
}
END_TEST

/* ---- a cluster */

static struct test_server node;
static struct test_redis *of_node;

static bool is_cluster_up(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(of_node, "CLUSTER", "INFO"), "cluster_state:ok");
}

static int bus = -1; /* the port that the cluster's nodes use among themselves */

/* One by one: before 7.0 there is no ADDSLOTSRANGE. */
static void add_all_slots(void)
{
    static char numbers[SLOTS][16];
    static const char *argv[SLOTS + 3] = { "CLUSTER", "ADDSLOTS" };
    for (int i = 0; i < SLOTS; i++) {
        snprintf(numbers[i], sizeof(numbers[i]), "%d", i);
        argv[i + 2] = numbers[i];
    }
    test_redis_do_argv(of_node, argv);
}

static void start_cluster(void)
{
    char number[8];
    uint16_t port;
    bus = test_port_reserve("127.0.0.1", &port);
    const char *option = test_server_bus_option(port, number);
    const char *const args[] = { "--cluster-enabled", "yes", option, number, NULL };
    test_server_start(&node, args);
    of_node = test_redis_connect(node.path);
    add_all_slots();
    ck_assert(test_wait_until(is_cluster_up, NULL, SCENE_SOON_MS));
}

static void stop_cluster(void)
{
    test_redis_close(of_node);
    test_server_stop(&node);
    close(bus);
}

static bool waits(void *arg)
{
    const char *stats = worker_ask(arg, "stats", SCENE_SOON_MS);
    return stats && strstr(stats, " waiters_now=1 ") && !strstr(stats, " waits=0 ");
}

/* All keys of a lock are in one hash slot, else the server would refuse scripts. */
START_TEST(a_cluster_of_one_node_has_all_of_a_lock_in_one_slot)
{
    static const char *const names[] = { "N", "a{b}c", "{a}", "a%20b" };
    static const char *const kinds[] = { "", "fair=1", "rwlock=1" };
    start_cluster();
    struct worker holder;
    worker_start(&holder, node.url);
    worker_start(&x, node.url);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) * 3; i++) {
        const char *name = names[i / 3];
        const char *more = i % 3 == 2 ? "" : "robust=1";
        scene_says(&holder, "ok", "init m %s fencing=1 %s %s", name, kinds[i % 3], more);
        scene_says(&x, "ok", "init m %s fencing=1 %s %s", name, kinds[i % 3], more);
        scene_says(&holder, "ok", "on t lock m");
        scene_says(&x, "ok", "async t lock m");
        ck_assert(test_wait_until(waits, &x, SCENE_SOON_MS));
        scene_says(&holder, "ok", "on t unlock m");
        ck_assert_msg(scene_worker_got(&x, SCENE_SOON_MS), "%s", name);
        scene_says(&x, "ok", "on t unlock m");
        scene_says(&holder, "ok", "destroy m");
        scene_says(&x, "ok", "destroy m");
    }
    worker_end(&holder);
    stop_cluster();
}
END_TEST

START_TEST(a_node_that_has_not_got_the_slot_is_EPROTO_and_named)
{
    static const char moved[] = "-MOVED 3999 127.0.0.1:6381\r\n";
    rlock_mutex_t n;
    rlock_client_t *client = scene_client(test_proxy_url(scene_proxy), NULL);
    scene_mutex(&n, client, "N");
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
               .text = moved);
    ck_assert_int_eq(rlock_mutex_lock(&n), EPROTO);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "MOVED"));
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pubsub");
    TCase *tc = scene_tcase(suite, "channels", open_scene, close_scene);
    tcase_add_test(tc, subscriber_cut_off_for_its_backlog_misses_no_grant);
    tcase_add_test(tc, a_message_that_is_too_long_is_read_past);
    tcase_add_loop_test(tc, what_is_no_message_at_all_ends_the_connection, 0, 2);
    tcase_add_test(tc, subscriber_without_messages_connects_again);
    tcase_add_test(tc, one_name_in_two_databases_is_two_locks);
    tcase_add_test(tc, grant_in_one_database_is_no_grant_in_another);
    tcase_add_test(tc, a_cluster_of_one_node_has_all_of_a_lock_in_one_slot);
    tcase_add_test(tc, a_node_that_has_not_got_the_slot_is_EPROTO_and_named);
    return test_run_suite(suite);
}
