/* SPDX-License-Identifier: Apache-2.0 */
/* rlock_inspect, rlock_force_unlock, rlock_list, rlock_waitfree. */
#include "fixture.h"
#include "proxy.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 5000, CROWD = 1200, SEEN_MAX = 64 };

#define QUEUE "rlock:{n}:queue"
#define RQUEUE "rlock:{n}:rqueue"
#define PRESENT "rlock:{n}:present"
#define CHANNEL "redisson_lock__channel:{n}"
#define UUID "dddddddd-0000-4000-8000-00000000000d"

static rlock_mutex_t m, theirs;
static rlock_info_t *info;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
    theirs = mutex_of(fixture_other(), "n");
    info = NULL;
}

static void tear_down(void)
{
    rlock_info_free(info);
    fixture_close();
}

static void look(void)
{
    rlock_info_free(info);
    info = NULL;
    OK(rlock_inspect(client, "n", &info));
    ck_assert_ptr_nonnull(info);
    ck_assert_str_eq(info->name, "n");
}

static void hold_as_redisson(const char *mode)
{
    test_redis_do(redis, "HSET", "n", "7c9ad6a5-7c1f-4ee0-a6cd-fd3d1f1cd1d3:52", "2");
    if (mode)
        test_redis_do(redis, "HSET", "n", "mode", mode);
    test_redis_do(redis, "PEXPIRE", "n", "20000");
}

/* ---- inspect */

START_TEST(lock_without_a_holder_is_ENOENT)
{
    rlock_info_t *untouched = (rlock_info_t *)(void *)&m;
    EXPECT(rlock_inspect(client, "n", &untouched), ENOENT);
    ck_assert_ptr_eq(untouched, (rlock_info_t *)(void *)&m);
    EXPECT(rlock_force_unlock(client, "n"), ENOENT);
    rlock_info_free(NULL);
}
END_TEST

static const struct {
    const char *name;
    int code;
} bad_names[] = {
    { NULL, EINVAL },         { "", EINVAL },   { "rlock:x", EINVAL },
    { "redisson_x", EINVAL }, { "a{", EINVAL },
};

static int none(const rlock_info_t *each, void *arg)
{
    (void)each;
    (void)arg;
    return 0;
}

START_TEST(bad_argument_is_EINVAL)
{
    char long_name[RLOCK_NAME_MAX + 2];
    struct timespec bad = { 0, 1000000000 };
    for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
        EXPECT(rlock_inspect(client, bad_names[i].name, &info), bad_names[i].code);
        EXPECT(rlock_force_unlock(client, bad_names[i].name), bad_names[i].code);
        EXPECT(rlock_waitfree(client, bad_names[i].name, NULL), bad_names[i].code);
    }
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    EXPECT(rlock_inspect(client, long_name, &info), ENAMETOOLONG);
    EXPECT(rlock_force_unlock(client, long_name), ENAMETOOLONG);
    EXPECT(rlock_waitfree(client, long_name, NULL), ENAMETOOLONG);
    EXPECT(rlock_inspect(client, "n", NULL), EINVAL);
    EXPECT(rlock_list(client, NULL, NULL, NULL), EINVAL);
    EXPECT(rlock_waitfree(client, "n", &bad), EINVAL);
    rlock_client_t *closed = other;
    close_client(other);
    other = NULL;
    EXPECT(rlock_inspect(closed, "n", &info), EINVAL);
    EXPECT(rlock_force_unlock(closed, "n"), EINVAL);
    EXPECT(rlock_list(closed, NULL, none, NULL), EINVAL);
    EXPECT(rlock_waitfree(closed, "n", NULL), EINVAL);
    ck_assert_ptr_null(info);
}
END_TEST

START_TEST(silent_server_is_ENOTCONN)
{
    rlock_client_t *hasty = open_with("?commandtimeout=60");
    struct timespec at = test_in_ms(CLOCK_REALTIME, 60);
    test_server_pause(&server);
    EXPECT(rlock_inspect(hasty, "n", &info), ENOTCONN);
    EXPECT(rlock_force_unlock(hasty, "n"), ENOTCONN);
    EXPECT(rlock_list(hasty, NULL, none, NULL), ENOTCONN);
    EXPECT(rlock_waitfree(hasty, "n", &at), ENOTCONN);
    test_server_resume(&server);
    close_client(hasty);
}
END_TEST

START_TEST(holder_is_reported_with_its_program_start_and_lease)
{
    char program[64];
    snprintf(program, sizeof(program), ":%ld:", (long)getpid());
    OK(rlock_mutex_lock_lease(&theirs, 60000));
    OK(rlock_mutex_lock(&theirs));
    test_pause_ms(30);
    look();
    ck_assert_int_eq(info->type, RLOCK_TYPE_MUTEX);
    ck_assert_uint_eq(info->token, 0);
    ck_assert_uint_eq(info->waiter_count, 0);
    ck_assert_uint_eq(info->holder_count, 1);
    const rlock_party_t *p = &info->holders[0];
    ck_assert_int_eq((int)test_redis_int(redis, "HEXISTS", "n", p->owner), 1);
    ck_assert_msg(strstr(p->client, program), "%s", p->client);
    ck_assert_int_eq(p->mode, RLOCK_MODE_EXCLUSIVE);
    ck_assert_int_ge(p->since_ms, 29);
    ck_assert_int_le(p->since_ms, test_ms(5000));
    ck_assert_int_gt(p->lease_left_ms, 60000 - test_ms(5000));
    ck_assert_int_le(p->lease_left_ms, 60000);
    OK(rlock_mutex_unlock(&theirs));
    OK(rlock_mutex_unlock(&theirs));
    EXPECT(rlock_inspect(client, "n", &info), ENOENT);
}
END_TEST

START_TEST(token_of_the_holder_is_reported)
{
    rlock_mutex_t fenced = fenced_mutex(client, "n");
    OK(rlock_mutex_lock(&fenced));
    look();
    ck_assert_uint_eq(info->token, token_of(&fenced));
    OK(rlock_mutex_unlock(&fenced));
}
END_TEST

START_TEST(waiters_are_reported_in_their_order)
{
    struct task a, b;
    OK(rlock_mutex_lock(&m));
    task_start(&a, run_pair, &theirs);
    ck_assert(wait_waiters(other, 1));
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    rlock_client_t *third = open_with("");
    rlock_mutex_t thirds = mutex_of(third, "n");
    task_start(&b, run_pair, &thirds);
    for (int tries = 0; test_redis_int(redis, "ZCARD", QUEUE) < 2 && tries < 10000;
         tries++)
        test_pause_ms(1);
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_uint_eq(info->waiter_count, 2);
    const redisReply *queue = test_redis_do(redis, "ZRANGE", QUEUE, "0", "-1");
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(info->waiters[i].owner, queue->element[i]->str);
        ck_assert_ptr_nonnull(strchr(info->waiters[i].client, ':'));
        ck_assert_int_gt(info->waiters[i].lease_left_ms, 0);
        ck_assert_int_le(info->waiters[i].lease_left_ms, 3000);
        ck_assert_int_ge(info->waiters[i].since_ms, 0);
    }
    ck_assert_int_ge(info->waiters[0].since_ms, info->waiters[1].since_ms);
    OK(rlock_mutex_unlock(&m));
    OK(task_join(&a));
    OK(task_join(&b));
    close_client(third);
}
END_TEST

START_TEST(redisson_holder_is_reported_as_such)
{
    static const char *const modes[] = { NULL, "write", "read" };
    hold_as_redisson(modes[_i]);
    look();
    ck_assert_int_eq(info->type, RLOCK_TYPE_REDISSON);
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_str_eq(info->holders[0].owner, "7c9ad6a5-7c1f-4ee0-a6cd-fd3d1f1cd1d3:52");
    ck_assert_str_eq(info->holders[0].client, "");
    ck_assert_int_eq(info->holders[0].since_ms, -1);
    ck_assert_int_le(info->holders[0].lease_left_ms, 20000);
    ck_assert_int_eq(info->holders[0].mode,
                     _i == 2 ? RLOCK_MODE_READ : RLOCK_MODE_EXCLUSIVE);
}
END_TEST

/* Other programs may make such locks: without a TTL, a lock is held until somebody
 * deletes it. */
START_TEST(lease_that_never_ends_is_reported_as_such)
{
    hold_as_redisson(NULL);
    test_redis_do(redis, "PERSIST", "n");
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_eq(info->holders[0].lease_left_ms, -1);
    test_redis_do(redis, "DEL", "n");
    /* readers whose ends were lost end with the key */
    test_redis_do(redis, "HSET", "n", "mode", "rlock:read");
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_eq(info->holders[0].lease_left_ms, -1);
}
END_TEST

/* 90 days in ms do not fit into a long of 32 bits: LONG_MAX is reported there. */
START_TEST(lease_of_months_is_reported_as_long)
{
    hold_as_redisson(NULL);
    test_redis_do(redis, "PEXPIRE", "n", "7776000000");
    look();
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_ge(info->holders[0].lease_left_ms,
                     LONG_MAX > INT32_MAX ? (long)(INT64_C(7776000000) - test_ms(10000))
                                          : LONG_MAX);
}
END_TEST

START_TEST(other_families_are_reported_by_their_mode)
{
    static const struct {
        const char *mode;
        rlock_type_t type;
    } rows[] = {
        { "rlock:mutex", RLOCK_TYPE_MUTEX },
        { "rlock:fair", RLOCK_TYPE_FAIR },
        { "rlock:write", RLOCK_TYPE_RWLOCK },
    };
    test_redis_do(redis, "HSET", "n", UUID ":1:1:f3000", "1", "mode", rows[_i].mode,
                  "since", "1700000000000000");
    test_redis_do(redis, "PEXPIRE", "n", "20000");
    look();
    ck_assert_int_eq(info->type, rows[_i].type);
    ck_assert_uint_eq(info->holder_count, 1);
    ck_assert_int_gt(info->holders[0].since_ms, 1000000);
}
END_TEST

START_TEST(waiters_of_a_free_lock_tell_the_type)
{
    test_redis_do(redis, "ZADD", QUEUE, "1700000000000000", UUID ":1:1:f3000");
    test_redis_do(redis, "ZADD", RQUEUE, "1600000000000000", UUID ":1:2:r3000");
    /* the bar of a reading, which is no waiter */
    test_redis_do(redis, "ZADD", RQUEUE, "1", "~bar");
    look();
    ck_assert_uint_eq(info->holder_count, 0);
    ck_assert_uint_eq(info->waiter_count, 2);
    ck_assert_str_eq(info->waiters[0].owner,
                     UUID ":1:2:r3000"); /* it has waited longer */
    ck_assert_int_eq(info->waiters[0].mode, RLOCK_MODE_READ);
    ck_assert_int_eq(info->waiters[1].mode, RLOCK_MODE_EXCLUSIVE);
    ck_assert_int_eq(info->type, RLOCK_TYPE_RWLOCK);
    ck_assert_int_eq(info->waiters[0].lease_left_ms, 0); /* not present */
}
END_TEST

START_TEST(crowd_of_waiters_is_paged)
{
    char id[80], ticket[32];
    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < CROWD; i++) {
        snprintf(id, sizeof(id), UUID ":%d:1:m3000", i);
        snprintf(ticket, sizeof(ticket), "%lld", 1700000000000000ll + i);
        test_redis_send(redis, "ZADD", QUEUE, ticket, id);
    }
    for (int i = 0; i < CROWD; i++)
        ck_assert_ptr_nonnull(test_redis_recv(redis, SOON_MS));
    look();
    ck_assert_uint_eq(info->waiter_count, CROWD);
    for (int i = 0; i < CROWD; i++) {
        snprintf(id, sizeof(id), UUID ":%d:1:m3000", i);
        ck_assert_str_eq(info->waiters[i].owner, id);
    }
    ck_assert_uint_eq(info->holder_count, 1);
    test_redis_do(redis, "DEL", QUEUE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- foreign data */

static void put_foreign(int which)
{
    switch (which) {
    case 0:
        test_redis_do(redis, "SET", "n", "x");
        break;
    case 1:
        test_redis_do(redis, "RPUSH", "n", "x");
        break;
    case 2:
        test_redis_do(redis, "HSET", "n", "field", "value");
        break;
    case 3:
        test_redis_do(redis, "HSET", "n", "a:b", "not a number");
        break;
    default:
        test_redis_do(redis, "SET", QUEUE, "x");
    }
}

START_TEST(foreign_data_is_EPROTO_and_untouched)
{
    char before[256];
    struct timespec past = { 0, 0 };
    put_foreign(_i);
    snprintf(before, sizeof(before), "%s",
             test_redis_str(redis, "EVAL",
                            "return redis.sha1hex(redis.call('DUMP', KEYS[1]))", "1",
                            _i < 4 ? "n" : QUEUE));
    EXPECT(rlock_inspect(client, "n", &info), EPROTO);
    ck_assert_str_ne(rlock_errmsg(), "");
    EXPECT(rlock_force_unlock(client, "n"), EPROTO);
    if (_i < 2 || _i == 4) { /* a foreign hash counts as held (S5) */
        EXPECT(rlock_mutex_trylock(&m), EPROTO);
        EXPECT(rlock_mutex_lock(&m), EPROTO);
        EXPECT(rlock_waitfree(client, "n", &past), EPROTO);
    } else {
        EXPECT(rlock_mutex_trylock(&m), EBUSY);
        EXPECT(rlock_waitfree(client, "n", &past), ETIMEDOUT);
    }
    ck_assert_str_eq(test_redis_str(redis, "EVAL",
                                    "return redis.sha1hex(redis.call('DUMP', KEYS[1]))",
                                    "1", _i < 4 ? "n" : QUEUE),
                     before);
    OK(rlock_list(client, NULL, none, NULL)); /* list only reports locks */
    test_redis_do(redis, "DEL", "n", QUEUE);
    OK(rlock_mutex_lock(&m)); /* the connection still works */
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- force */

START_TEST(forced_holder_learns_the_loss_at_once)
{
    int64_t start = test_now_ms();
    OK(rlock_mutex_lock(&theirs));
    OK(rlock_force_unlock(client, "n"));
    ck_assert(!test_redis_exists(redis, "n"));
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    ck_assert_ptr_nonnull(lost);
    ck_assert_int_le(test_now_ms() - start, test_ms(1000)); /* not at the next renewal */
    ck_assert_int_eq(state_of(&theirs), RLOCK_LOST);
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_mutex_unlock(&theirs), ESTALE);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(force_hands_over)
{
    struct task task;
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    OK(rlock_force_unlock(client, "n"));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    EXPECT(rlock_mutex_unlock(&theirs), ESTALE);
}
END_TEST

static bool so_many_queued(void *n)
{
    return test_redis_int(redis, "ZCARD", QUEUE) == *(const int *)n;
}

START_TEST(force_goes_on_behind_waiters_that_do_not_listen)
{
    enum { DEAF = 70, PRESENCE_MS = 30000 };
    static const char uuid[] = "00000000-0000-4000-8000-00000000000d";
    char id[64], ticket[16];
    struct task task;
    rlock_client_t *patient = open_with("?presence=30000"); /* its polls are 10 s apart */
    rlock_mutex_t waiter = mutex_of(patient, "n");

    /* the holder's process is gone: a live holder that learned of the loss would continue
     * the hand-over itself */
    snprintf(id, sizeof(id), "%s:1:9:m3000", uuid);
    test_redis_do(redis, "HSET", "n", id, "1", "mode", "rlock:mutex", "since", "1");
    test_redis_do(redis, "PEXPIRE", "n", "60000");
    for (int i = 1; i <= DEAF; i++) {
        snprintf(id, sizeof(id), "%s:%d:1:m3000", uuid, i);
        snprintf(ticket, sizeof(ticket), "%d", i);
        test_redis_do(redis, "ZADD", "rlock:{n}:queue", ticket, id);
    }
    test_redis_do(redis, "ZADD", "rlock:{n}:present", "99999999999999", uuid);
    task_start(&task, run_pair, &waiter);
    ck_assert(test_wait_until(so_many_queued, &(int){ DEAF + 1 }, SOON_MS));
    OK(rlock_force_unlock(client, "n"));
    ck_assert(task_ends(&task, PRESENCE_MS / 6));
    EXPECT(task_join(&task), 0);
    test_redis_do(redis, "DEL", "rlock:{n}:queue");
    close_client(patient);
}
END_TEST

START_TEST(own_hold_may_be_forced)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_force_unlock(client, "n"));
    EXPECT(rlock_force_unlock(client, "n"), ENOENT);
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

START_TEST(hold_of_redisson_may_be_forced_and_its_waiters_are_notified)
{
    struct test_redis *channel = test_redis_connect(server.path);
    test_redis_do(channel, "SUBSCRIBE", CHANNEL);
    hold_as_redisson(NULL);
    OK(rlock_force_unlock(client, "n"));
    ck_assert(!test_redis_exists(redis, "n"));
    const redisReply *told = test_redis_recv(channel, SOON_MS);
    ck_assert_ptr_nonnull(told);
    ck_assert_str_eq(told->element[2]->str, "0");
    test_redis_close(channel);
}
END_TEST

START_TEST(force_clears_the_owner_died_mark)
{
    OK(rlock_mutex_lock(&m));
    test_redis_do(redis, "SET", "rlock:{n}:dirty", "x#1", "PX", "60000");
    OK(rlock_force_unlock(client, "n"));
    ck_assert(!test_redis_exists(redis, "rlock:{n}:dirty"));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* ---- list */

static char seen[SEEN_MAX][RLOCK_NAME_MAX + 1];
static int seen_count, stop_at;

static size_t waiters_seen; /* of the lock that was listed last */
static bool named;          /* whether its holder was named */

static int see(const rlock_info_t *each, void *arg)
{
    ck_assert_ptr_eq(arg, seen);
    ck_assert_uint_ge(each->holder_count, 1);
    waiters_seen = each->waiter_count;
    named = each->holders[0].client[0] != '\0';
    if (seen_count < SEEN_MAX)
        strcpy(seen[seen_count], each->name);
    return ++seen_count == stop_at ? 4711 : 0;
}

static bool was_seen(const char *name)
{
    for (int i = 0; i < seen_count && i < SEEN_MAX; i++)
        if (strcmp(seen[i], name) == 0)
            return true;
    return false;
}

static void list(const char *pattern, int stop, int code)
{
    seen_count = 0;
    stop_at = stop;
    EXPECT(rlock_list(client, pattern, see, seen), code);
}

START_TEST(list_tells_of_each_held_lock_once)
{
    enum { LOCKS = 40 };
    static rlock_mutex_t locks[LOCKS];
    char name[32];
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof(name), i % 2 ? "orders:%d" : "{users}:%d", i);
        locks[i] = mutex_of(client, name);
        OK(rlock_mutex_lock(&locks[i]));
    }
    /* keys that are no locks */
    test_redis_do(redis, "HSET", "a hash", "x", "y");
    test_redis_do(redis, "SET", "a string", "x");
    test_redis_do(redis, "HSET", "rlock:x", "a:1", "1");
    test_redis_do(redis, "ZADD", "rlock:{w}:queue", "5", UUID ":1:1:m3000");
    hold_as_redisson(NULL);
    list(NULL, 0, 0);
    ck_assert_int_eq(seen_count, LOCKS + 1);
    ck_assert(was_seen("n"));
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof(name), i % 2 ? "orders:%d" : "{users}:%d", i);
        ck_assert(was_seen(name));
    }
    list("orders:*", 0, 0);
    ck_assert_int_eq(seen_count, LOCKS / 2);
    list("orders:1", 0, 0);
    ck_assert_int_eq(seen_count, 1);
    list("[no]*", 0, 0);
    ck_assert_int_eq(seen_count, LOCKS / 2 + 1);
    list("nothing*", 0, 0);
    ck_assert_int_eq(seen_count, 0);
    list(NULL, 3, 4711); /* each ends the walk */
    ck_assert_int_eq(seen_count, 3);
    for (int i = 0; i < LOCKS; i++)
        OK(rlock_mutex_unlock(&locks[i]));
    test_redis_do(redis, "DEL", "n");
    list(NULL, 0, 0);
    ck_assert_int_eq(seen_count, 0);
}
END_TEST

static bool has_walked(void)
{
    return strstr(test_redis_str(redis, "INFO", "commandstats"), "cmdstat_scan:") != NULL;
}

START_TEST(list_of_a_name_asks_for_that_lock_alone)
{
    static const char *const names[] = { "a*b", "a\\", "[a]" }, *const patterns[] = {
        "a\\*b", "a\\", "\\[a\\]"
    };
    char long_name[RLOCK_NAME_MAX + 2];
    rlock_mutex_t near = mutex_of(client, "axb");

    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_lock(&near));
    test_redis_do(redis, "SET", "a string", "x");
    test_redis_do(redis, "CONFIG", "RESETSTAT");
    list("n", 0, 0);
    ck_assert_int_eq(seen_count, 1);
    ck_assert(was_seen("n"));
    list("n", 1, 4711);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        rlock_mutex_t odd = mutex_of(client, names[i]);
        list(patterns[i], 0, 0);
        ck_assert_int_eq(seen_count, 0);
        OK(rlock_mutex_lock(&odd));
        list(patterns[i], 0, 0);
        ck_assert_int_eq(seen_count, 1);
        ck_assert(was_seen(names[i]));
        OK(rlock_mutex_unlock(&odd));
    }
    memset(long_name, 'n', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    const char *const of_none[] = { "", "a string", "rlock:x", long_name };
    for (size_t i = 0; i < sizeof(of_none) / sizeof(of_none[0]); i++) {
        list(of_none[i], 0, 0);
        ck_assert_int_eq(seen_count, 0);
        ck_assert_str_eq(rlock_errmsg(), "");
    }
    ck_assert(!has_walked());
    list("a?b", 0, 0);
    ck_assert_int_eq(seen_count, 1);
    ck_assert(has_walked());
    OK(rlock_mutex_unlock(&near));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(list_of_a_name_shows_waiters_and_their_hosts)
{
    struct task waits;
    OK(rlock_mutex_lock(&m));
    task_start(&waits, run_pair, &theirs);
    ck_assert(wait_size(QUEUE, 1));
    list("n", 0, 0);
    ck_assert_int_eq(seen_count, 1);
    ck_assert_uint_eq(waiters_seen, 1);
    ck_assert(named);
    OK(rlock_mutex_unlock(&m));
    ck_assert_int_eq(task_join(&waits), 0);
    test_redis_do(redis, "ZADD", QUEUE, "5", UUID ":1:1:m3000");
    list("n", 0, 0); /* a lock that is waited for, but not held, is not listed */
    ck_assert_int_eq(seen_count, 0);
}
END_TEST

static int unlock_it(const rlock_info_t *each, void *arg)
{
    (void)arg;
    return rlock_force_unlock(client, each->name);
}

START_TEST(each_may_call_the_library)
{
    OK(rlock_mutex_lock(&m));
    OK(rlock_list(client, NULL, unlock_it, NULL));
    ck_assert(!test_redis_exists(redis, "n"));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* ---- waitfree */

static int run_waitfree(void *arg)
{
    (void)arg;
    return rlock_waitfree(other, "n", NULL);
}

START_TEST(waitfree_of_a_free_lock_is_0_at_once)
{
    struct timespec past = { 0, 0 };
    OK(rlock_waitfree(client, "n", NULL));
    OK(rlock_waitfree(client, "n", &past));
    ck_assert_int_eq((int)test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

START_TEST(waitfree_ends_at_the_release_without_taking_it)
{
    struct task task;
    OK(rlock_mutex_lock(&m));
    task_start(&task, run_waitfree, NULL);
    ck_assert(wait_waiters(other, 1));
    for (int tries = 0; tries < 10000; tries++) {
        const redisReply *r = test_redis_do(redis, "PUBSUB", "NUMSUB", CHANNEL);
        if (r->element[1]->integer == 1)
            break;
        test_pause_ms(1);
    }
    ck_assert(!test_redis_exists(redis, QUEUE));
    OK(rlock_mutex_unlock(&m));
    int64_t start = test_now_ms();
    ck_assert(task_ends(&task, SOON_MS));
    ck_assert_int_le(test_now_ms() - start,
                     test_ms(500)); /* by the message, not by a poll */
    OK(task_join(&task));
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert_uint_eq(stats_of(other).waiters_now, 0);
}
END_TEST

START_TEST(waitfree_ends_at_the_expiry)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    int64_t start = test_now_ms();
    test_redis_do(redis, "HSET", "n", "7c9a:52", "1");
    test_redis_do(redis, "PEXPIRE", "n", "150");
    OK(rlock_waitfree(client, "n", &at));
    ck_assert_int_ge(test_now_ms() - start, 149);
    ck_assert_int_le(test_now_ms() - start, 150 + test_ms(250));
}
END_TEST

/* The one request past the deadline has less than 100 ms, which a busy machine may
 * exceed. */
static int look_past_deadline(rlock_client_t *c, const struct timespec *past)
{
    enum { TRIES = 5 };
    int rc = ENOTCONN;
    for (int i = 0; rc == ENOTCONN && i < TRIES; i++)
        rc = rlock_waitfree(c, "n", past);
    return rc;
}

START_TEST(waitfree_is_ETIMEDOUT_at_the_deadline)
{
    /* first: a pause between the two lines shortens no wait */
    int64_t start = test_now_ms();
    struct timespec at = test_in_ms(CLOCK_REALTIME, 200), past = { 0, 0 };
    OK(rlock_mutex_lock(&m));
    EXPECT(rlock_waitfree(other, "n", &at), ETIMEDOUT);
    ck_assert_int_ge(test_now_ms() - start, 199);
    ck_assert_int_le(test_now_ms() - start, 200 + 100 + test_ms(200));
    EXPECT(look_past_deadline(other, &past), ETIMEDOUT);
    EXPECT(look_past_deadline(client, &past), ETIMEDOUT); /* its own hold counts, too */
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(waitfree_at_a_silent_server_ends_by_its_deadline)
{
    const long deadline_ms = test_ms(200); /* begun past it, a call has longer */
    rlock_client_t *patient = open_with("?commandtimeout=20000");
    OK(rlock_waitfree(patient, "n", NULL));
    test_server_pause(&server);
    int64_t start = test_now_ms();
    struct timespec at = test_in_ms(CLOCK_REALTIME, deadline_ms);
    EXPECT(rlock_waitfree(patient, "n", &at), ENOTCONN);
    test_server_resume(&server);
    ck_assert_int_ge(test_now_ms() - start, deadline_ms - 1);
    ck_assert_int_le(test_now_ms() - start, deadline_ms + 100 + test_ms(200));
    close_client(patient);
}
END_TEST

/* The server answers as slowly as one on another continent. */
START_TEST(waitfree_that_begins_past_its_deadline_has_the_time_of_a_look)
{
    struct timespec past = { 0, 0 };
    struct test_proxy *far = test_proxy_start(&server);
    rlock_client_t *c;
    OK(rlock_client_open(&c, test_proxy_url(far), NULL));
    TEST_RULE(far, .on = TEST_ON_REPLY, .action = TEST_DELAY, .delay_ms = 150);
    OK(rlock_waitfree(c, "n", &past));
    OK(rlock_waitfree(c, "n", &past));
    close_client(c);
    test_proxy_stop(far);
}
END_TEST

START_TEST(waitfree_hands_over_what_came_free_by_expiry)
{
    /* the lock is free, and its waiter does not know: the first look hands it over and
     * finds it held */
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    struct task task;
    OK(rlock_mutex_lock(&m));
    task_start(&task, run_pair, &theirs);
    ck_assert(wait_key(QUEUE, true, SOON_MS));
    test_redis_do(redis, "DEL", "n");
    OK(rlock_waitfree(client, "n", &at));
    OK(task_join(&task));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

#define CASE(name, ...)                                                                  \
    TEST_ADD(fixture_tcase(suite, name, set_up, tear_down), __VA_ARGS__)

int main(void)
{
    Suite *suite = suite_create("admin");
    CASE("arguments", lock_without_a_holder_is_ENOENT, bad_argument_is_EINVAL,
         silent_server_is_ENOTCONN);
    CASE("inspect", holder_is_reported_with_its_program_start_and_lease,
         token_of_the_holder_is_reported, waiters_are_reported_in_their_order,
         waiters_of_a_free_lock_tell_the_type, crowd_of_waiters_is_paged);
    CASE("force", forced_holder_learns_the_loss_at_once, force_hands_over,
         force_goes_on_behind_waiters_that_do_not_listen, own_hold_may_be_forced,
         hold_of_redisson_may_be_forced_and_its_waiters_are_notified,
         force_clears_the_owner_died_mark);
    CASE("list", list_tells_of_each_held_lock_once,
         list_of_a_name_asks_for_that_lock_alone,
         list_of_a_name_shows_waiters_and_their_hosts, each_may_call_the_library);
    CASE("waitfree", waitfree_of_a_free_lock_is_0_at_once,
         waitfree_ends_at_the_release_without_taking_it, waitfree_ends_at_the_expiry,
         waitfree_is_ETIMEDOUT_at_the_deadline,
         waitfree_at_a_silent_server_ends_by_its_deadline,
         waitfree_that_begins_past_its_deadline_has_the_time_of_a_look,
         waitfree_hands_over_what_came_free_by_expiry);
    TCase *loops = fixture_tcase(suite, "each", set_up, tear_down);
    tcase_add_loop_test(loops, redisson_holder_is_reported_as_such, 0, 3);
    tcase_add_test(loops, lease_that_never_ends_is_reported_as_such);
    tcase_add_test(loops, lease_of_months_is_reported_as_long);
    tcase_add_loop_test(loops, other_families_are_reported_by_their_mode, 0, 3);
    tcase_add_loop_test(loops, foreign_data_is_EPROTO_and_untouched, 0, 5);
    return test_run_suite(suite);
}
