/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow */
/*
 * An address that now leads to another server, a server that is full, and peers that are
 * not Redis servers. The client's URL names a symbolic link to a server's socket; the
 * tests turn it to another server.
 */
#include "fixture.h"

#include "port.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    SOON_MS = 10000,
    COMMAND_MS = 300,
    SLACK_MS = 700, /* tolerance for a busy machine */
    LEASE_MS = 900,
    PRESENCE_MS = 600,
    OUTAGE_MS = 600
};

static rlock_mutex_t m;

/* Times in ms, scaled. */
static const char *times(long lease_ms, long presence_ms)
{
    static char parameters[128];
    snprintf(parameters, sizeof(parameters),
             "?lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld",
             test_ms(lease_ms), test_ms(presence_ms), test_ms(COMMAND_MS),
             test_ms(COMMAND_MS));
    return parameters;
}

/* ---- 47: the address leads to another server */

static struct test_server second;
static struct test_redis *at_second;
static char turned[TEST_PATH_MAX]; /* the symbolic link */

static void turn_to(const char *path)
{
    unlink(turned);
    ck_assert_int_eq(symlink(path, turned), 0);
}

static void set_up_two(void)
{
    char url[TEST_URL_MAX];
    fixture_open();
    close_client(client);
    test_server_start(&second, NULL);
    at_second = test_redis_connect(second.path);
    ck_assert_int_lt(snprintf(turned, sizeof(turned), "%s/turned", server.dir),
                     (int)sizeof(turned));
    turn_to(server.path);
    snprintf(url, sizeof(url), "unix://%s", turned);
    client = open_at(url, times(LEASE_MS, PRESENCE_MS));
    m = fenced_mutex(client, "n");
}

static void tear_down_two(void)
{
    test_redis_do(redis, "REPLICAOF", "NO", "ONE");
    fixture_close();
    unlink(turned);
    test_redis_close(at_second);
    test_server_stop(&second);
}

/* Like a moved address: the connections to the old server end. */
static void move_to_second(void)
{
    turn_to(second.path);
    test_redis_kill_clients(redis);
}

START_TEST(hold_that_another_server_does_not_know_is_LOST_soon)
{
    OK(rlock_mutex_lock(&m));
    uint64_t token = token_of(&m);
    move_to_second();
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(lost);
    ck_assert_ptr_nonnull(strstr(lost->reason, "no longer records"));
    ck_assert_uint_eq(lost->token, token);
    EXPECT(rlock_mutex_lock(&m), ESTALE); /* the library never takes it again */
    ck_assert(!test_redis_exists(at_second, "n"));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    OK(rlock_mutex_lock(&m));
    ck_assert_uint_gt(token_of(&m), token);
    ck_assert(test_redis_exists(at_second, "n"));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(unlock_at_another_server_is_ESTALE)
{
    OK(rlock_mutex_lock(&m));
    move_to_second();
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    OK(rlock_mutex_trylock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

static bool is_queued_at_second(void *arg)
{
    (void)arg;
    return test_redis_int(at_second, "ZCARD", "rlock:{n}:queue") == 1;
}

START_TEST(waiter_queues_again_at_another_server)
{
    struct task task;
    rlock_mutex_t here = fenced_mutex(fixture_other(), "n");
    OK(rlock_mutex_lock(&here));
    task_start(&task, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    /* at the second server another client holds it, too */
    test_redis_do(at_second, "HSET", "n", "someone", "1");
    move_to_second();
    ck_assert(test_wait_until(is_queued_at_second, NULL, SOON_MS));
    test_redis_do(at_second, "DEL", "n");
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert(!test_redis_exists(at_second, "n"));
    OK(rlock_mutex_unlock(&here)); /* its connections were closed, its lock stayed */
}
END_TEST

START_TEST(replica_is_no_server_until_it_is_promoted)
{
    char port[16];
    rlock_mutex_t other_one = mutex_of(client, "o");
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    OK(rlock_mutex_lock(&m));
    uint64_t token = token_of(&m);
    test_redis_do(at_second, "REPLICAOF", "127.0.0.1", port);
    turn_to(second.path);
    test_redis_kill_clients(redis);
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, COMMAND_MS / 2);
    int rc = rlock_mutex_clocklock(&other_one, CLOCK_MONOTONIC, &at);
    ck_assert_msg(rc == ENOTCONN, "%s: %s", rlock_strerror(rc), rlock_errmsg());
    test_redis_do(at_second, "REPLICAOF", "NO", "ONE");
    struct timespec later = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    OK(rlock_mutex_clocklock(&other_one, CLOCK_MONOTONIC, &later));
    OK(rlock_mutex_unlock(&other_one));
    /* the replica may or may not have the hold: the code says which */
    rc = rlock_mutex_unlock(&m);
    ck_assert(rc == 0 || rc == ESTALE);
    OK(rlock_mutex_lock(&m));
    ck_assert_uint_gt(token_of(&m), token);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(server_that_became_a_replica_is_left_for_its_successor)
{
    char port[16];
    snprintf(port, sizeof(port), "%u", (unsigned)second.port);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m)); /* opens a connection, which stays */
    turn_to(second.path);
    test_redis_do(redis, "REPLICAOF", "127.0.0.1", port);
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, test_ms(SOON_MS));
    OK(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at));
    ck_assert(test_redis_exists(at_second, "n"));
    OK(rlock_mutex_unlock(&m));
    ck_assert(!test_redis_exists(at_second, "n"));
}
END_TEST

/* The fixture's server follows the second one. */
static void follow_second(void)
{
    char port[16];
    snprintf(port, sizeof(port), "%u", (unsigned)second.port);
    test_redis_do(redis, "REPLICAOF", "127.0.0.1", port);
}

static bool is_following(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "replication"),
                  "master_link_status:up") != NULL;
}

/* A script's messages reach the replicas at once, whatever the script does next. A client
 * that listens at a replica must not hear of a grant that the script takes back because
 * there is no listener at the master. */
START_TEST(a_replica_hears_of_no_grant_that_is_not_one)
{
    static const char uuid[] = "bbbbbbbb-0000-4000-8000-00000000000b";
    char channel[64], id[64];
    rlock_client_t *there;
    OK(rlock_client_open(&there, second.url, NULL));
    rlock_mutex_t n = mutex_of(there, "n");
    follow_second();
    ck_assert(test_wait_until(is_following, NULL, SOON_MS));
    struct test_redis *at_replica = test_redis_connect(server.path);
    snprintf(channel, sizeof(channel), "rlock:client:%s", uuid);
    test_redis_do(at_replica, "SUBSCRIBE", channel);

    OK(rlock_mutex_lock(&n));
    snprintf(id, sizeof(id), "%s:1:1:m3000", uuid);
    test_redis_do(at_second, "ZADD", "rlock:{n}:queue", "1", id);
    test_redis_do(at_second, "ZADD", "rlock:{n}:present", "9000000000000", uuid);
    OK(rlock_mutex_unlock(&n));
    ck_assert(!test_redis_exists(at_second, "n"));
    ck_assert_int_eq((int)test_redis_int(at_second, "ZCARD", "rlock:{n}:queue"), 1);
    test_redis_do(at_second, "PUBLISH", channel, "the end");
    const redisReply *first = test_redis_recv(at_replica, test_ms(SOON_MS));
    ck_assert_ptr_nonnull(first);
    ck_assert_str_eq(first->element[2]->str, "the end");
    test_redis_close(at_replica);
    close_client(there);
}
END_TEST

static bool both_listen_at_second(void *arg)
{
    (void)arg;
    return test_redis_do(at_second, "PUBSUB", "CHANNELS", "rlock:client:*")->elements ==
           2;
}

/* A replica accepts the subscription and answers pings, but no message for the client
 * arrives there. In one case the client learns this from READONLY; in the other one its
 * connections for requests have ended, and no reply says so. */
START_TEST(subscriber_at_a_replica_moves_to_its_master_soon)
{
    struct task task;
    rlock_client_t *there;
    OK(rlock_client_open(&there, second.url, NULL));
    rlock_mutex_t n = mutex_of(there, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    turn_to(second.path);
    follow_second();
    if (_i == 1)
        test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal");
    OK(rlock_mutex_lock(&n));
    task_start(&task, run_pair, &m);
    ck_assert(test_wait_until(both_listen_at_second, NULL, SOON_MS));
    ck_assert(!task_ends(&task, 0));
    OK(rlock_mutex_unlock(&n));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert(!event_seen(RLOCK_EVENT_DISCONNECTED)); /* the subscriber moved by itself */
    close_client(there);
}
END_TEST

/* ---- 49: no room for clients */

static void set_up_one(void)
{
    fixture_open();
    close_client(client);
    client = open_with(times(LEASE_MS, PRESENCE_MS));
    m = fenced_mutex(client, "n");
}

static void tear_down_one(void)
{
    test_redis_config(redis, "maxclients", "1000");
    fixture_close();
}

static void limit_clients(int n)
{
    char count[16];
    snprintf(count, sizeof(count), "%d", n);
    test_redis_config(redis, "maxclients", count);
}

START_TEST(full_server_says_so_and_is_not_stormed)
{
    limit_clients(2); /* `redis` and the subscriber */
    int64_t begin = test_now_ms();
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    ck_assert_msg(strstr(rlock_errmsg(), "max number of clients") != NULL, "%s",
                  rlock_errmsg());
    long long before = test_redis_info(redis, "rejected_connections");
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, OUTAGE_MS);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), ENOTCONN);
    long long made = test_redis_info(redis, "rejected_connections") - before;
    ck_assert_int_gt(made, 1);
    ck_assert_int_lt(made, 25);
    limit_clients(1000);
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(hold_at_a_full_server_is_LOST_in_time_or_renewed_when_there_is_room)
{
    OK(rlock_mutex_lock(&m));
    limit_clients(2); /* `redis` and the subscriber */
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    int64_t begin = test_now_ms();
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_AT_RISK, SOON_MS));
    if (_i == 0) {
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
        ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
        EXPECT(rlock_mutex_unlock(&m), ESTALE);
    } else {
        limit_clients(1000);
        ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_SAFE_AGAIN, SOON_MS));
        OK(rlock_mutex_unlock(&m));
    }
}
END_TEST

/* The queue's one entry: id and ticket. */
static void read_queue(char text[256])
{
    const redisReply *r =
        test_redis_do(redis, "ZRANGE", "rlock:{n}:queue", "0", "-1", "WITHSCORES");
    ck_assert_uint_eq(r->elements, 2);
    snprintf(text, 256, "%s %s", r->element[0]->str, r->element[1]->str);
}

static bool has_asked_again(void *arg)
{
    return stats_of(client).round_trips > *(const uint64_t *)arg;
}

/* The server is full for one of the waiter's connections: the watchdog's. */
START_TEST(waiter_at_a_full_server_is_not_dropped_and_gets_the_lock_at_once)
{
    struct task task;
    char before[256], after[256];
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    limit_clients(5); /* `redis`, two subscribers, two for callers */
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    read_queue(before);
    test_pause_ms(test_ms(2 * PRESENCE_MS));
    ck_assert_uint_gt(stats_of(client).connect_failures, 0);
    ck_assert(!task_ends(&task, 0));
    read_queue(after);
    ck_assert_str_eq(after, before); /* the waiter keeps its place, though it asks */
    /* not while a request is under way, because its reply would grant the lock as well */
    uint64_t asked = stats_of(client).round_trips;
    ck_assert(test_wait_until(has_asked_again, &asked, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&task, SLACK_MS));
    OK(task_join(&task));
    ck_assert_uint_eq(stats_of(client).grants, 1);
}
END_TEST

/* The server is full for callers, too: the attempts are few, for any number of locks that
 * are waited for. */
START_TEST(waiter_without_a_connection_at_a_full_server_makes_no_storm)
{
    enum { LOCKS = 8, ROUNDS = 2, EACH = 6 + 2, GROWING = 10 };
    struct task tasks[LOCKS];
    rlock_mutex_t theirs[LOCKS];
    char names[LOCKS][16], key[48];
    for (int i = 0; i < LOCKS; i++) { /* their holder is no connected client */
        snprintf(names[i], sizeof(names[i]), "n%d", i);
        snprintf(key, sizeof(key), "rlock:{n%d}:queue", i);
        test_redis_do(redis, "HSET", names[i], "somebody", "1");
        test_redis_do(redis, "PEXPIRE", names[i], "600000");
        theirs[i] = mutex_of(client, names[i]);
        task_start(&tasks[i], run_pair, &theirs[i]);
        ck_assert(wait_size(key, 1));
    }
    limit_clients(2); /* `redis` and the subscriber */
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    long long before = test_redis_info(redis, "rejected_connections");
    test_pause_ms(test_ms(ROUNDS * PRESENCE_MS));
    long long made = test_redis_info(redis, "rejected_connections") - before;
    ck_assert_int_gt(made, ROUNDS);
    ck_assert_int_le(made, 2 * (LOCKS + ROUNDS * EACH * test_ms(1)) + GROWING);
    limit_clients(1000);
    for (int i = 0; i < LOCKS; i++) {
        test_redis_do(redis, "DEL", names[i]);
        ck_assert(task_ends(&tasks[i], SOON_MS));
        OK(task_join(&tasks[i]));
    }
}
END_TEST

START_TEST(three_places_are_enough)
{
    long long before = test_redis_info(redis, "rejected_connections");
    limit_clients(4); /* `redis`; subscriber, watchdog, callers */
    OK(rlock_mutex_lock(&m));
    uint64_t wanted = stats_of(client).renewals + 2;
    while (stats_of(client).renewals < wanted) {
        ck_assert(!event_seen(RLOCK_EVENT_LOST));
        test_pause_ms(5);
    }
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(test_redis_info(redis, "rejected_connections"), before);
}
END_TEST

/* ---- 50: peers that are not Redis servers */

static const struct stranger {
    const char *text;
    size_t len;
    bool greets; /* sends first */
    int code;
    const char *said;
} strangers[] = {
#define SAYS(text) text, sizeof(text) - 1
    { SAYS("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), false, EPROTO,
      "does not speak the Redis protocol" },
    { SAYS("\x15\x03\x03\x00\x02\x02\x46"), false, EPROTO, /* an alert of TLS */
      "speaks TLS: its URL begins with rediss://" },
    { SAYS("SSH-2.0-OpenSSH_9.2\r\n"), true, EPROTO,
      "does not speak the Redis protocol" },
    { SAYS("220 mail ESMTP\r\n"), true, EPROTO, "does not speak the Redis protocol" },
    { SAYS("-DENIED Redis is running in protected mode because protected mode is "
           "enabled and no password is set for the default user.\r\n"),
      true, ENOTCONN, "DENIED" },
    { SAYS("-ERR max number of clients reached\r\n"), true, ENOTCONN, "max number" },
    { SAYS("-ERR unknown command\r\n-ERR unknown command\r\n"), false, EPROTO, "TIME" },
    { SAYS(""), true, ENOTCONN, "closed" },
};
enum { STRANGERS = sizeof(strangers) / sizeof(strangers[0]) };

static struct {
    const struct stranger *is;
    int reserved, listener; /* reserved: -1 on a Unix socket */
    uint16_t port;
    pthread_t thread;
    atomic_bool stop;
    atomic_int accepted;
} peer;

static void answer(int fd)
{
    char bytes[1024];
    struct pollfd p = { .fd = fd, .events = POLLIN };
    if (!peer.is->greets && poll(&p, 1, 1000) > 0)
        (void)!recv(fd, bytes, sizeof(bytes), 0);
    (void)!send(fd, peer.is->text, peer.is->len, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (poll(&p, 1, 1000) > 0 && recv(fd, bytes, sizeof(bytes), 0) > 0)
        continue;
    close(fd);
}

static void *run_peer(void *arg)
{
    struct pollfd p = { .fd = peer.listener, .events = POLLIN };
    (void)arg;
    while (!atomic_load(&peer.stop)) {
        if (poll(&p, 1, 5) <= 0)
            continue;
        int fd = accept(peer.listener, NULL, NULL);
        if (fd < 0)
            continue;
        atomic_fetch_add(&peer.accepted, 1);
        answer(fd);
    }
    return NULL;
}

/* Starts the peer on a port of its own, or on a socket with this path. */
static void peer_start(const struct stranger *is, const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    memset(&peer, 0, sizeof(peer));
    peer.is = is;
    if (path) {
        snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
        peer.reserved = -1;
        peer.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        ck_assert_int_eq(bind(peer.listener, (struct sockaddr *)&un, sizeof(un)), 0);
        ck_assert_int_eq(listen(peer.listener, 32), 0);
    } else {
        peer.reserved = test_port_reserve("127.0.0.1", &peer.port);
        peer.listener = test_port_listen("127.0.0.1", peer.port);
    }
    ck_assert_int_eq(pthread_create(&peer.thread, NULL, run_peer, NULL), 0);
}

static void peer_stop(void)
{
    atomic_store(&peer.stop, true);
    pthread_join(peer.thread, NULL);
    close(peer.listener);
    if (peer.reserved >= 0)
        close(peer.reserved);
}

static int run_clocklock(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, OUTAGE_MS);
    return rlock_mutex_clocklock(mutex, CLOCK_MONOTONIC, &at);
}

START_TEST(foreign_server_is_identified_and_not_stormed)
{
    char url[TEST_URL_MAX];
    const struct stranger *s = &strangers[_i];
    rlock_client_t *c;
    peer_start(s, NULL);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u?commandtimeout=%ld",
             (unsigned)peer.port, test_ms(COMMAND_MS));
    OK(rlock_client_open(&c, url, NULL));
    rlock_mutex_t mutex = mutex_of(c, "n");
    int64_t begin = test_now_ms();
    EXPECT(rlock_client_ping(c), s->code);
    ck_assert_msg(strstr(rlock_errmsg(), s->said) != NULL, "%s", rlock_errmsg());
    EXPECT(rlock_mutex_trylock(&mutex), s->code);
    ck_assert_msg(strstr(rlock_errmsg(), s->said) != NULL, "%s", rlock_errmsg());
    ck_assert_int_lt(test_now_ms() - begin, test_ms(2 * (COMMAND_MS + SLACK_MS)));
    int before = atomic_load(&peer.accepted);
    EXPECT(in_thread(run_clocklock, &mutex), s->code);
    int made = atomic_load(&peer.accepted) - before;
    ck_assert_int_ge(made, 1);
    ck_assert_int_lt(made, 30);
    OK(rlock_client_close(c));
    peer_stop();
}
END_TEST

START_TEST(hold_whose_server_became_a_stranger_is_LOST_by_D_and_all_works_again_after)
{
    char path[TEST_PATH_MAX];
    OK(rlock_mutex_lock(&m));
    snprintf(path, sizeof(path), "%s/stranger", server.dir);
    peer_start(&strangers[0], path);
    int64_t begin = test_now_ms();
    turn_to(path);
    test_redis_kill_clients(redis);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
    EXPECT(rlock_mutex_trylock(&m), EPROTO);
    turn_to(server.path);
    peer_stop();
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("servers");
    TCase *tc = tcase_create("another");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up_two, tear_down_two);
    tcase_add_test(tc, hold_that_another_server_does_not_know_is_LOST_soon);
    tcase_add_test(tc, unlock_at_another_server_is_ESTALE);
    tcase_add_test(tc, waiter_queues_again_at_another_server);
    tcase_add_test(tc, replica_is_no_server_until_it_is_promoted);
    tcase_add_test(tc, server_that_became_a_replica_is_left_for_its_successor);
    tcase_add_test(tc, a_replica_hears_of_no_grant_that_is_not_one);
    tcase_add_loop_test(tc, subscriber_at_a_replica_moves_to_its_master_soon, 0, 2);
    tcase_add_test(
        tc, hold_whose_server_became_a_stranger_is_LOST_by_D_and_all_works_again_after);
    suite_add_tcase(suite, tc);
    tc = tcase_create("full");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up_one, tear_down_one);
    tcase_add_test(tc, full_server_says_so_and_is_not_stormed);
    tcase_add_loop_test(
        tc, hold_at_a_full_server_is_LOST_in_time_or_renewed_when_there_is_room, 0, 2);
    tcase_add_test(tc, waiter_at_a_full_server_is_not_dropped_and_gets_the_lock_at_once);
    tcase_add_test(tc, waiter_without_a_connection_at_a_full_server_makes_no_storm);
    tcase_add_test(tc, three_places_are_enough);
    tcase_add_loop_test(tc, foreign_server_is_identified_and_not_stormed, 0, STRANGERS);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
