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

/* `waiters`: how many other threads of `other` wait. */
static void hand_over_beside(rlock_mutex_t *from, rlock_mutex_t *to, unsigned waiters)
{
    struct task task;

    OK(rlock_mutex_lock(from));
    task_start(&task, run_pair, to);
    ck_assert(wait_waiters(other, waiters + 1));
    ck_assert(!task_ends(&task, 50));
    OK(rlock_mutex_unlock(from));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}

static void hand_over(rlock_mutex_t *from, rlock_mutex_t *to)
{
    hand_over_beside(from, to, 0);
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

/* ---- waiting for Redisson */

enum { LONG_PRESENCE_MS = 30000, BEFORE_POLL_MS = 8000, FOREVER_MS = 600000 };

/* Its poll, 10 s after it listened, would show. */
static void open_patient(const char *user)
{
    char url[256];

    snprintf(url, sizeof(url), "redis-cluster://%s127.0.0.1:%u?presence=%d", user,
             (unsigned)nodes[0].port, LONG_PRESENCE_MS);
    close_client(other);
    other = cluster_open_at(url);
}

/* As RLock.lock does. */
static void redisson_locks(int node, const char *name)
{
    char ms[16];

    snprintf(ms, sizeof(ms), "%d", FOREVER_MS);
    test_redis_do(at_node[node], "HINCRBY", name,
                  "8743c9c0-0795-4907-87fd-6c719a6b4586:52", "1");
    test_redis_do(at_node[node], "PEXPIRE", name, ms);
}

static const char *redisson_channel(const char *name)
{
    static char channel[128];

    snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", name);
    return channel;
}

/* Both subscriptions are confirmed, and the looks that follow them are over. */
static bool listens_by_both(void *arg)
{
    const struct place *place = arg;
    const redisReply *r =
        test_redis_do(at_node[place->node], "PUBSUB", "NUMSUB", place->channel);

    return r->elements == 2 && r->element[1]->integer == 1 && is_subscribed(arg);
}

static bool listens_no_more(void *arg)
{
    const struct place *place = arg;
    return shard_subscribers(place->node, place->channel) == 0;
}

static void redisson_unlocks(int node, const char *name, const char *verb)
{
    test_redis_do(at_node[node], "DEL", name);
    test_redis_do(at_node[node], verb, redisson_channel(name), "0");
}

static const char *const verbs[] = { "PUBLISH", "SPUBLISH" };

/* rule: P22 */
START_TEST(unlock_of_Redissons_wakes_a_waiter_by_either_channel)
{
    const char *name = cluster_name(1, 3);
    struct place place = { 1, redisson_channel(name) };
    struct task task;

    if (!has_sharded_channels(__func__))
        return;
    open_patient("");
    rlock_mutex_t m = mutex_of(other, name);
    redisson_locks(1, name);
    task_start(&task, run_pair, &m);
    ck_assert(test_wait_until(listens_by_both, &place, SOON_MS));
    ck_assert(!task_ends(&task, 50));
    int64_t begin = test_now_ms();
    redisson_unlocks(1, name, verbs[_i]);
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert_int_lt(test_now_ms() - begin, BEFORE_POLL_MS);
    ck_assert(test_wait_until(listens_no_more, &place, SOON_MS));
}
END_TEST

static int wait_free(void *arg)
{
    return rlock_waitfree(other, arg, NULL);
}

/* rule: P22, P23 */
START_TEST(channel_of_Redissons_follows_the_hash_slot)
{
    const char *name = cluster_name(0, 3);
    unsigned hash_slot = cluster_hash_slot(name);
    struct place before = { 0, redisson_channel(name) }, after = { 2, before.channel };
    struct task task;

    if (!has_sharded_channels(__func__))
        return;
    open_patient("");
    redisson_locks(0, name);
    /* it has no mailbox there, whose end would show the move, too */
    task_start(&task, wait_free, (void *)(uintptr_t)name);
    ck_assert(test_wait_until(listens_by_both, &before, SOON_MS));
    cluster_begin_move(hash_slot, 0, 2);
    cluster_move_keys(hash_slot, 0, 2, NULL);
    int64_t begin = test_now_ms();
    cluster_end_move(hash_slot, 0, 2);
    ck_assert(test_wait_until(listens_by_both, &after, SOON_MS));
    redisson_unlocks(2, name, "SPUBLISH");
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert_int_lt(test_now_ms() - begin, BEFORE_POLL_MS);
}
END_TEST

static bool was_refused_twice(void *arg)
{
    (void)arg;
    return atomic_load(&other->counters.refusals) >= 2;
}

/* rule: P21 */
START_TEST(user_without_Redissons_channels_has_sharded_mailboxes)
{
    const char *name = cluster_name(1, 4), *theirs = cluster_name(1, 5);
    struct place place;
    struct task task;

    if (!has_sharded_channels(__func__))
        return;
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "ACL", "SETUSER", "narrow", "reset", "on", ">word",
                      "~*", "&rlock:client:*", "+@all");
    open_patient("narrow:word@");
    rlock_mutex_t m = mutex_of(client, name), n = mutex_of(other, name),
                  t = mutex_of(other, theirs);
    redisson_locks(1, theirs);
    task_start(&task, run_pair, &t);
    ck_assert(test_wait_until(was_refused_twice, NULL, SOON_MS));
    place = (struct place){ 1, mailbox(name) };
    hand_over_beside(&m, &n, 1);
    ck_assert(test_wait_until(is_subscribed, &place, SOON_MS));
    test_redis_do(at_node[1], "DEL", theirs); /* found by a poll */
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    close_client(other);
    other = NULL;
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "ACL", "DELUSER", "narrow");
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
    tcase_add_loop_test(tc, unlock_of_Redissons_wakes_a_waiter_by_either_channel, 0,
                        sizeof(verbs) / sizeof(verbs[0]));
    tcase_add_test(tc, channel_of_Redissons_follows_the_hash_slot);
    tcase_add_test(tc, user_without_Redissons_channels_has_sharded_mailboxes);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
