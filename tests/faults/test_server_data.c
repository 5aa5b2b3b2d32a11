/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that is lost, or changed by others (doc/FAULTS.md, 54 to 67): by eviction, by an
 * operator, in a restart with and without persistence, when a replica takes over. The
 * holder learns of it, and the next token is greater; locks whose data survived are still
 * held. `self` is a client of this process, `m` its handle of "N", with fencing; `x` is a
 * worker whose hold of "N" has a short lease. Each test begins with a server in its first
 * state.
 */
#include "scene.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 600, SLACK_MS = 150, ROUNDS = 4, LOADERS = 4 };

static rlock_client_t *self;
static rlock_mutex_t m;
static struct worker x;
static const char *const none[] = { NULL };
static const char *const append_only[] = { "--appendonly", "yes", "--appendfsync",
                                           "everysec", NULL };

static void forget_files(void)
{
    char command[2 * TEST_DIR_MAX + 64];
    snprintf(command, sizeof(command), "rm -rf '%s/dump.rdb' '%s/appendonlydir'",
             scene_server.dir, scene_server.dir);
    ck_assert_int_eq(system(command), 0);
}

static void open_with(const char *const args[])
{
    test_server_kill(&scene_server);
    forget_files();
    test_server_restart_args(&scene_server, args);
    scene_open();
    memset(&x, 0, sizeof(x));
    self = scene_client(scene_server.url, NULL);
    scene_fenced_mutex(&m, self, "N");
}

static void open_scene(void)
{
    open_with(none);
}

static void open_append_only(void)
{
    open_with(append_only);
}

static void close_scene(void)
{
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_client_close(self);
    scene_close();
}

static void start_x(const char *url)
{
    scene_worker(&x, url, SCENE_TIMES(.lease = test_ms(LEASE_MS)), "N", "fencing=1");
}

/* Opens the plain connection again, after a restart. */
static void reconnect(void)
{
    test_redis_close(scene_redis);
    scene_redis = test_redis_connect(scene_server.path);
}

static uint64_t token(void)
{
    uint64_t value = 0;
    ck_assert_int_eq(rlock_mutex_gettoken(&m, &value), 0);
    return value;
}

static uint64_t x_locks(void)
{
    scene_says(&x, "ok", "on t lock m");
    return (uint64_t)worker_number(&x, "on t token m");
}

/* x, which had the lock with this token, learns that it is lost; the next token is
 * greater. */
static void check_lost(uint64_t before)
{
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_uint_gt(token(), before);
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&x, "EBUSY", "on t trylock m"); /* x's unlock has not released it */
    before = token();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_uint_gt(x_locks(), before);
    scene_says(&x, "ok", "on t unlock m");
}

/* ---- eviction */

static void check_evicted(const char *policy, const char *also)
{
    start_x(scene_server.url);
    test_redis_config(scene_redis, "maxmemory-policy", policy);
    test_redis_do(scene_redis, "SETRANGE", "ballast", "4000000", "x");
    uint64_t before = x_locks();
    int64_t begin = test_now_ms();
    test_redis_config(scene_redis, "maxmemory", "1");
    ck_assert(scene_wait_free("N", SCENE_SOON_MS));
    if (also)
        ck_assert(scene_wait_free(also, SCENE_SOON_MS));
    test_redis_config(scene_redis, "maxmemory", "0");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS * 2 / 3 + SLACK_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_uint_gt(token(), before);
    scene_says(&x, "ESTALE", "on t unlock m");
}

START_TEST(lock_evicted_for_its_TTL_is_reported_as_a_loss_and_the_next_token_is_greater)
{
    check_evicted("volatile-ttl", NULL);
    ck_assert(test_redis_exists(scene_redis, "ballast"));
}
END_TEST

START_TEST(lock_evicted_like_any_key_is_reported_as_a_loss_and_the_next_token_is_greater)
{
    check_evicted("allkeys-lru", "redisson_lock_token:{N}");
}
END_TEST

/* ---- scripts */

/* Renewals send a script that the server does not know in a way of their own. */
START_TEST(renewals_go_on_though_the_scripts_are_forgotten_before_each)
{
    start_x(scene_server.url);
    x_locks();
    int64_t end = test_now_ms() + test_ms(LEASE_MS * 3 / 2);
    while (test_now_ms() < end) {
        test_redis_do(scene_redis, "SCRIPT", "FLUSH");
        scene_says(&x, "ok SAFE", "on t state m");
        test_pause_ms(test_ms(LEASE_MS) / 30);
    }
    ck_assert(!worker_news(&x, "event ", 0)); /* not even at risk */
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- an operator */

static const char *const operations[][5] = {
    { "DEL", "N" },           { "UNLINK", "N" },       { "FLUSHDB" },
    { "FLUSHALL" },           { "FLUSHALL", "ASYNC" }, { "RENAME", "N", "elsewhere" },
    { "MOVE", "N", "1" },     { "SWAPDB", "0", "1" },  { "PEXPIRE", "N", "1" },
    { "EXPIREAT", "N", "1" },
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

START_TEST(any_removal_of_the_lock_is_reported_as_a_loss_and_the_next_token_is_greater)
{
    start_x(scene_server.url);
    uint64_t before = x_locks();
    int64_t begin = test_now_ms();
    test_redis_do_argv(scene_redis, operations[_i]);
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    /* by the next renewal, which is due in a third of the lease */
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS * 2 / 3 + SLACK_MS));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_uint_gt(token(), before);
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
}
END_TEST

START_TEST(a_lock_that_is_overwritten_is_reported_as_a_loss_and_the_data_stay)
{
    start_x(scene_server.url);
    x_locks();
    test_redis_do(scene_redis, "SET", "N", "theirs");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&x, "EPROTO", "on t lock m");
    ck_assert_int_eq(rlock_mutex_lock(&m), EPROTO);
    ck_assert_str_eq(test_redis_str(scene_redis, "GET", "N"), "theirs");
    test_redis_do(scene_redis, "DEL", "N");
    x_locks();
}
END_TEST

START_TEST(a_lock_whose_TTL_is_raised_or_taken_off_is_still_held_and_ends_with_its_unlock)
{
    static const char *const ways[][4] = { { "EXPIRE", "N", "3600" },
                                           { "PERSIST", "N" } };
    start_x(scene_server.url);
    for (int i = 0; i < 2; i++) {
        x_locks();
        test_redis_do_argv(scene_redis, ways[i]);
        scene_says(&x, "ok SAFE", "on t state m");
        ck_assert_int_eq(rlock_mutex_trylock(&m), EBUSY);
        scene_says(&x, "ok", "on t unlock m");
        ck_assert(!test_redis_exists(scene_redis, "N"));
    }
}
END_TEST

/* ---- flushed under load */

static struct load {
    atomic_bool stop;
    atomic_long sections, fallen, failed;
    rlock_client_t *client[LOADERS];
    rlock_mutex_t mutex[LOADERS];
} load;

static void *run_load(void *arg)
{
    rlock_mutex_t *mine = arg;
    uint64_t last = 0;
    while (!atomic_load(&load.stop)) {
        uint64_t next = 0;
        int rc = rlock_mutex_lock(mine);
        if (rc == 0)
            rc = rlock_mutex_gettoken(mine, &next);
        if (rc == 0 && next <= last)
            atomic_fetch_add(&load.fallen, 1);
        if (rc == 0)
            last = next;
        int end = rlock_mutex_unlock(mine);
        if ((rc != 0 && rc != ESTALE) || (end != 0 && end != ESTALE))
            atomic_fetch_add(&load.failed, 1);
        atomic_fetch_add(&load.sections, 1);
    }
    return NULL;
}

static bool load_has_come_to(void *arg)
{
    return atomic_load(&load.sections) >= *(const long *)arg;
}

START_TEST(no_token_falls_and_nobody_hangs_while_all_data_are_flushed_again_and_again)
{
    pthread_t thread[LOADERS];
    for (int i = 0; i < LOADERS; i++) {
        load.client[i] =
            scene_client(scene_server.url, SCENE_TIMES(.presence = test_ms(300)));
        scene_fenced_mutex(&load.mutex[i], load.client[i], "L");
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run_load, &load.mutex[i]), 0);
    }
    for (long i = test_count(100, 20); i > 0; i--) {
        long until = atomic_load(&load.sections) + 20;
        test_redis_do(scene_redis, "FLUSHALL");
        ck_assert(test_wait_until(load_has_come_to, &until, SCENE_SOON_MS));
    }
    atomic_store(&load.stop, true);
    for (int i = 0; i < LOADERS; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(atomic_load(&load.fallen), 0);
    ck_assert_int_eq(atomic_load(&load.failed), 0);
    for (int i = 0; i < LOADERS; i++)
        ck_assert_int_eq(rlock_client_close(load.client[i]), 0);
}
END_TEST

/* ---- restarts */

START_TEST(restart_without_persistence_is_a_loss_and_the_next_token_is_greater)
{
    start_x(scene_server.url);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t before = x_locks();
        test_server_restart(&scene_server);
        reconnect();
        check_lost(before);
    }
}
END_TEST

START_TEST(holds_after_the_last_save_are_lost_and_reported_and_earlier_ones_stay)
{
    rlock_mutex_t saved;
    start_x(scene_server.url);
    scene_mutex(&saved, self, "saved");
    ck_assert_int_eq(rlock_mutex_lock(&saved), 0);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0); /* its token is the last that is saved */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    test_redis_do(scene_redis, "SAVE");
    uint64_t before = x_locks();
    test_server_restart(&scene_server);
    reconnect();
    check_lost(before);
    scene_says(&x, "ok", "init s saved");
    scene_says(&x, "EBUSY", "on t trylock s");
    ck_assert_int_eq(rlock_mutex_unlock(&saved), 0);
}
END_TEST

START_TEST(a_killed_server_with_an_append_only_file_has_lost_nothing)
{
    uint64_t last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        rlock_state_t state = RLOCK_LOST;
        ck_assert_int_eq(rlock_mutex_lock(&m), 0);
        ck_assert_uint_gt(token(), last);
        last = token();
        test_server_kill(&scene_server); /* right after the reply */
        test_server_restart(&scene_server);
        reconnect();
        ck_assert(test_redis_exists(scene_redis, "N"));
        ck_assert_int_eq(rlock_mutex_getstate(&m, &state), 0);
        ck_assert_int_eq(state, RLOCK_SAFE);
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
        ck_assert(!test_redis_exists(scene_redis, "N"));
        test_server_kill(&scene_server); /* nor does a released lock come back */
        test_server_restart(&scene_server);
        reconnect();
        ck_assert(!test_redis_exists(scene_redis, "N"));
    }
}
END_TEST

/* ---- a replica takes over */

static bool link_is_up(void *arg)
{
    return strstr(test_redis_str(arg, "INFO", "replication"), "master_link_status:up");
}

static bool has_token(void *arg)
{
    char key[SCENE_KEY_MAX];
    return test_redis_exists(arg, scene_key(key, "N", "token"));
}

/* A replica of the scene's server that replicates through a proxy. */
struct pair {
    struct test_server replica;
    struct test_redis *redis; /* the replica's */
    struct test_proxy *replication;
};

static void make_replica(struct pair *p)
{
    char port[16];
    test_server_start(&p->replica, NULL);
    p->redis = test_redis_connect(p->replica.path);
    p->replication = test_proxy_start(&scene_server);
    test_redis_config(scene_redis, "repl-diskless-sync-delay", "0");
    snprintf(port, sizeof(port), "%u", (unsigned)test_proxy_port(p->replication));
    test_redis_do(p->redis, "REPLICAOF", "127.0.0.1", port);
    ck_assert(test_wait_until(link_is_up, p->redis, SCENE_SOON_MS));
    ck_assert(test_wait_until(has_token, p->redis, SCENE_SOON_MS));
}

static void end_replica(struct pair *p)
{
    test_proxy_stop(p->replication);
    test_redis_close(p->redis);
    test_server_stop(&p->replica);
}

START_TEST(writes_lost_in_a_failover_are_reported_as_a_loss_and_the_next_token_is_greater)
{
    struct pair p;
    struct test_server address = scene_server; /* what clients know: a symbolic link */
    char url[TEST_URL_MAX];
    snprintf(address.path, sizeof(address.path), "%s/link", scene_server.dir);
    snprintf(url, sizeof(url), "unix://%s", address.path);
    ck_assert_int_eq(symlink(scene_server.path, address.path), 0);
    start_x(url);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0); /* makes a token to replicate */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    make_replica(&p);
    test_proxy_freeze(p.replication, true);
    uint64_t before = x_locks(); /* the replica does not get it */

    test_server_kill(&scene_server);
    test_redis_do(p.redis, "REPLICAOF", "NO", "ONE");
    ck_assert(!test_redis_exists(p.redis, "N"));
    ck_assert_int_eq(unlink(address.path), 0);
    ck_assert_int_eq(symlink(p.replica.path, address.path), 0);
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert_uint_gt(x_locks(), before);
    ck_assert(test_redis_exists(p.redis, "N"));
    scene_says(&x, "ok", "on t unlock m");

    worker_end(&x);
    unlink(address.path);
    end_replica(&p);
    test_server_restart(&scene_server);
    reconnect();
}
END_TEST

/* Two masters: x and `self` are on the old one's side, `other` on the new one's. */
START_TEST(an_old_master_that_wants_a_replica_grants_and_renews_nothing_once_it_misses_it)
{
    if (!test_server_bounds_scripts("an_old_master_that_wants_a_replica_grants_and_"
                                    "renews_nothing_once_it_misses_it"))
        return;
    struct pair p;
    rlock_mutex_t n;
    start_x(scene_server.url);
    uint64_t before = x_locks();
    make_replica(&p);
    test_redis_config(scene_redis, "min-replicas-max-lag", "3");
    test_redis_config(scene_redis, "min-replicas-to-write", "1");
    ck_assert(!worker_news(&x, "event LOST N", LEASE_MS * 4 / 3));

    test_proxy_freeze(p.replication, true);
    test_redis_do(p.redis, "REPLICAOF", "NO", "ONE");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    scene_says(&x, "ESTALE", "on t unlock m");
    struct timespec soon = test_in_ms(CLOCK_REALTIME, test_ms(LEASE_MS / 3));
    ck_assert_int_eq(rlock_mutex_timedlock(&m, &soon), ENOTCONN);

    rlock_client_t *other = scene_open_client(p.replica.url, NULL);
    scene_fenced_mutex(&n, other, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    uint64_t after = 0;
    ck_assert_int_eq(rlock_mutex_gettoken(&n, &after), 0);
    ck_assert_uint_gt(after, before);
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert_int_eq(rlock_client_close(other), 0);
    end_replica(&p);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server data");

    TCase *eviction = scene_tcase(s, "eviction", open_scene, close_scene);
    tcase_add_test(
        eviction,
        lock_evicted_for_its_TTL_is_reported_as_a_loss_and_the_next_token_is_greater);
    tcase_add_test(
        eviction,
        lock_evicted_like_any_key_is_reported_as_a_loss_and_the_next_token_is_greater);
    tcase_add_test(eviction, renewals_go_on_though_the_scripts_are_forgotten_before_each);

    TCase *others = scene_tcase(s, "operator", open_scene, close_scene);
    tcase_add_loop_test(
        others,
        any_removal_of_the_lock_is_reported_as_a_loss_and_the_next_token_is_greater, 0,
        OPERATIONS);
    tcase_add_test(others,
                   a_lock_that_is_overwritten_is_reported_as_a_loss_and_the_data_stay);
    tcase_add_test(
        others,
        a_lock_whose_TTL_is_raised_or_taken_off_is_still_held_and_ends_with_its_unlock);
    tcase_add_test(
        others,
        no_token_falls_and_nobody_hangs_while_all_data_are_flushed_again_and_again);

    TCase *restarts = scene_tcase(s, "restarts", open_scene, close_scene);
    tcase_add_test(restarts,
                   restart_without_persistence_is_a_loss_and_the_next_token_is_greater);
    tcase_add_test(restarts,
                   holds_after_the_last_save_are_lost_and_reported_and_earlier_ones_stay);
    tcase_add_test(
        restarts,
        writes_lost_in_a_failover_are_reported_as_a_loss_and_the_next_token_is_greater);
    tcase_add_test(
        restarts,
        an_old_master_that_wants_a_replica_grants_and_renews_nothing_once_it_misses_it);

    TCase *kept = scene_tcase(s, "append only", open_append_only, close_scene);
    tcase_add_test(kept, a_killed_server_with_an_append_only_file_has_lost_nothing);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
