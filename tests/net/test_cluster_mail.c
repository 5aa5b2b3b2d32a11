/* SPDX-License-Identifier: Apache-2.0 */
/* Mailboxes in a cluster: what waiters hear by which channel, and what the other nodes
 * hear of it. */
/* program: claims=P21,P22 */
#include "client/client.h"

#include "clusterscene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SOON_MS = 20000, SHARDED_SINCE = 70000 };

static bool has_sharded_channels(const char *test)
{
    bool has = test_server_version() >= SHARDED_SINCE;

    if (!has)
        printf("skipped: %s: this server has no sharded channels\n", test);
    return has;
}

/* How often a server has run a command, scripts included. */
static long calls(int node, const char *command)
{
    char field[32];
    const char *text = test_redis_str(at_node[node], "INFO", "commandstats");

    snprintf(field, sizeof(field), "cmdstat_%s:calls=", command);
    const char *at = strstr(text, field);
    return at ? strtol(at + strlen(field), NULL, 10) : 0;
}

static long shard_subscribers(int node, const char *channel)
{
    const redisReply *r = test_redis_do(at_node[node], "PUBSUB", "SHARDNUMSUB", channel);

    return r->elements == 2 ? (long)r->element[1]->integer : -1;
}

/* The sharded mailbox of `other` for this lock. */
static const char *mailbox(const char *name)
{
    static char channel[128];

    snprintf(channel, sizeof(channel), "rlock:client:{%s}:%s", name, other->uuid);
    return channel;
}

struct place {
    int node;
    const char *channel;
};

static bool is_subscribed(void *arg)
{
    const struct place *place = arg;
    return shard_subscribers(place->node, place->channel) == 1;
}

static void hand_over(rlock_mutex_t *from, rlock_mutex_t *to)
{
    struct task task;

    OK(rlock_mutex_lock(from));
    task_start(&task, run_pair, to);
    ck_assert(wait_waiters(other, 1));
    ck_assert(!task_ends(&task, 50));
    OK(rlock_mutex_unlock(from));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}

static void open_two(void)
{
    char parameters[64];

    cluster_open();
    /* so long that a hand-over by a poll would show */
    snprintf(parameters, sizeof(parameters), "?presence=%ld", test_ms(3000));
    client = cluster_client(parameters);
    other = cluster_client(parameters);
}

/* rule: P21 */
START_TEST(message_stays_at_the_node_of_the_lock)
{
    const char *name = cluster_name(1, 0);
    rlock_mutex_t m = mutex_of(client, name), n = mutex_of(other, name);

    if (!has_sharded_channels(__func__))
        return;
    hand_over(&m, &n); /* its waiter subscribes */
    struct place place = { 1, mailbox(name) };
    ck_assert(test_wait_until(is_subscribed, &place, SOON_MS));
    long before = calls(1, "publish"), sharded = calls(1, "spublish");
    for (int i = 0; i < 10; i++)
        hand_over(&m, &n);
    ck_assert_int_eq(calls(1, "publish"), before);
    ck_assert_int_ge(calls(1, "spublish"), sharded + 10);
}
END_TEST

START_TEST(waiter_without_the_sharded_mailbox_gets_a_message_all_the_same)
{
    const char *name = cluster_name(2, 0);
    rlock_mutex_t m = mutex_of(client, name), n = mutex_of(other, name);
    int64_t begin = test_now_ms();

    atomic_store(&other->route.sharded, false);
    for (int i = 0; i < 5; i++)
        hand_over(&m, &n);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(3000));
    if (test_server_version() >= SHARDED_SINCE)
        ck_assert_int_eq((int)shard_subscribers(2, mailbox(name)), 0);
}
END_TEST

/* rule: P21, P23 */
START_TEST(mailbox_follows_the_hash_slot)
{
    const char *name = cluster_name(0, 0);
    unsigned hash_slot = cluster_hash_slot(name);
    rlock_mutex_t m = mutex_of(client, name), n = mutex_of(other, name);
    struct place before = { 0, mailbox(name) }, after = { 2, mailbox(name) };

    if (!has_sharded_channels(__func__))
        return;
    hand_over(&m, &n);
    ck_assert(test_wait_until(is_subscribed, &before, SOON_MS));
    cluster_begin_move(hash_slot, 0, 2);
    cluster_move_keys(hash_slot, 0, 2, NULL);
    cluster_end_move(hash_slot, 0, 2);
    hand_over(&m, &n);
    ck_assert(test_wait_until(is_subscribed, &after, SOON_MS));
    hand_over(&m, &n);
    ck_assert_int_eq((int)shard_subscribers(0, mailbox(name)), 0);
}
END_TEST

/* rule: P21 */
START_TEST(uncontended_lock_needs_no_sharded_mailbox)
{
    const char *name = cluster_name(1, 1);
    rlock_mutex_t n = mutex_of(other, name);

    if (!has_sharded_channels(__func__))
        return;
    for (int i = 0; i < 10; i++) {
        OK(rlock_mutex_lock(&n));
        OK(rlock_mutex_unlock(&n));
    }
    ck_assert_int_eq((int)shard_subscribers(1, mailbox(name)), 0);
}
END_TEST

/* Subscribes a connection to the channel of Redisson's waiters. */
static struct test_redis *listener(int node, const char *verb, const char *name)
{
    char channel[128];
    struct test_redis *r = test_redis_connect(nodes[node].server.path);

    snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", name);
    test_redis_do(r, verb, channel);
    return r;
}

static void lock_and_unlock(rlock_mutex_t *m)
{
    OK(rlock_mutex_lock(m));
    OK(rlock_mutex_unlock(m));
}

/* rule: P22 */
START_TEST(release_publishes_on_Redissons_channel_where_something_listens)
{
    const char *name = cluster_name(1, 2);
    rlock_mutex_t m = mutex_of(client, name);

    if (!has_sharded_channels(__func__))
        return;
    lock_and_unlock(&m);
    long before = calls(1, "publish"), sharded = calls(1, "spublish");
    lock_and_unlock(&m);
    ck_assert_int_eq(calls(1, "publish"), before);
    ck_assert_int_eq(calls(1, "spublish"), sharded);
    struct test_redis *r = listener(1, "SUBSCRIBE", name);
    lock_and_unlock(&m);
    ck_assert_int_eq(calls(1, "publish"), before + 1);
    ck_assert_int_eq(calls(1, "spublish"), sharded);
    test_redis_close(r);
    r = listener(1, "SSUBSCRIBE", name);
    lock_and_unlock(&m);
    ck_assert_int_eq(calls(1, "spublish"), sharded + 1);
    test_redis_close(r);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cluster mail");
    TCase *tc = tcase_create("mail");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, open_two, cluster_close);
    tcase_add_test(tc, message_stays_at_the_node_of_the_lock);
    tcase_add_test(tc, waiter_without_the_sharded_mailbox_gets_a_message_all_the_same);
    tcase_add_test(tc, mailbox_follows_the_hash_slot);
    tcase_add_test(tc, uncontended_lock_needs_no_sharded_mailbox);
    tcase_add_test(tc, release_publishes_on_Redissons_channel_where_something_listens);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
