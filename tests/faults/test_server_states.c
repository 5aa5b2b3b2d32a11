/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real server in states in which it refuses (doc/FAULTS.md, 1e). In such a state
 * trylock and unlock end within the command timeout with a message that names it, and a
 * lock that cannot be renewed is counted down to its loss; a waiter gets the lock when
 * the state is over. `self` is a client of this process straight to the server, `x` a
 * worker whose client has a short lease. Each test begins with a server in its first
 * state.
 */
#include "scene.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COMMAND_MS = 500,
    LEASE_MS = 500,
    SLACK_MS =
        1000, /* of a busy machine: a script that does not end has one of its cores */
    LOAD_MS = 500,
    STAYS_MS = 150,
    CONNECTS_MAX = 60, /* of two clients while both are refused for LEASE_MS */
    THREADS = 6
};

static rlock_client_t *self;
static rlock_mutex_t m, o;
static struct worker x;
static char dump[TEST_PATH_MAX + 16];

static void open_scene(void)
{
    static const char *const none[] = { NULL };

    snprintf(dump, sizeof(dump), "%s/dump.rdb", scene_server.dir);
    rmdir(dump);
    unlink(dump);
    test_server_restart_args(&scene_server, none);
    scene_open();
    memset(&x, 0, sizeof(x));
    self = scene_client(scene_server.url, SCENE_TIMES(.command = test_ms(COMMAND_MS)));
    scene_mutex(&m, self, "M");
    scene_mutex(&o, self, "O");
}

static void close_scene(void)
{
    worker_end(&x);
    rlock_mutex_unlock(&m);
    rlock_mutex_unlock(&o);
    rlock_client_close(self);
    scene_close();
}

static void start_x(const char *url)
{
    scene_worker(&x, url,
                 SCENE_TIMES(.lease = test_ms(LEASE_MS), .presence = test_ms(300)), "N",
                 "");
    scene_says(&x, "ok", "init o O");
}

/* ---- states that pass */

struct state {
    const char *word; /* of the server's error; "": it does not answer */
    void (*enter)(void);
    void (*leave)(void);
    bool renews; /* holds can still be renewed and released */
};

static bool x_is_not_told(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done u", 0);
}

static void check_callers(const struct state *state)
{
    int64_t begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_trylock(&o), ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), state->word), "%s", rlock_errmsg());
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    begin = test_now_ms();
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
}

/* self holds M, x holds N, and later a thread of x waits for O. */
static void check(const struct state *state)
{
    start_x(scene_server.url);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_says(&x, "ok", "on t lock m");
    state->enter();
    int64_t begin = test_now_ms();
    scene_says(&x, "ok", "async u lock o");
    check_callers(state);
    if (!state->renews) {
        ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
        ck_assert_int_lt(test_now_ms() - begin,
                         test_ms(LEASE_MS + 2 * COMMAND_MS + SLACK_MS));
    }
    ck_assert(test_stays(x_is_not_told, NULL, STAYS_MS));
    state->leave();
    scene_worker_ends(&x, "u", "ok");
    ck_assert(scene_wait_free("M", 5000)); /* its lease is 30 s */
    scene_says(&x, state->renews ? "ok" : "ESTALE", "on t unlock m");
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_eq(rlock_mutex_trylock(&o), EBUSY);
}

static void become_replica(void)
{
    test_redis_do(scene_redis, "REPLICAOF", "127.0.0.1", "1"); /* no server is there */
}

static void become_stale_replica(void)
{
    test_redis_config(scene_redis, "replica-serve-stale-data", "no");
    become_replica();
}

static void become_master(void)
{
    test_redis_do(scene_redis, "REPLICAOF", "NO", "ONE");
}

START_TEST(READONLY_is_waited_out)
{
    check(&(const struct state){ "READONLY", become_replica, become_master, false });
}
END_TEST

START_TEST(MASTERDOWN_is_waited_out)
{
    check(&(const struct state){ "MASTERDOWN", become_stale_replica, become_master,
                                 false });
}
END_TEST

static void want_replicas(void)
{
    test_redis_config(scene_redis, "min-replicas-to-write", "1");
}

static void want_no_replicas(void)
{
    test_redis_config(scene_redis, "min-replicas-to-write", "0");
}

START_TEST(NOREPLICAS_is_waited_out)
{
    if (!test_server_bounds_scripts("NOREPLICAS_is_waited_out"))
        return;
    check(&(const struct state){ "NOREPLICAS", want_replicas, want_no_replicas, false });
}
END_TEST

static bool save_failed(void *arg)
{
    (void)arg;
    const char *info = test_redis_str(scene_redis, "INFO", "persistence");
    return strstr(info, "rdb_last_bgsave_status:err") != NULL;
}

/* A directory in place of the file makes the saving fail, for root as well. */
static void fail_to_save(void)
{
    ck_assert_int_eq(mkdir(dump, 0700), 0);
    test_redis_config(scene_redis, "save", "3600 1");
    test_redis_do(scene_redis, "BGSAVE");
    ck_assert(test_wait_until(save_failed, NULL, SCENE_SOON_MS));
}

static void save_well(void)
{
    rmdir(dump);
    test_redis_do(scene_redis, "SAVE");
}

START_TEST(MISCONF_is_waited_out)
{
    check(&(const struct state){ "MISCONF", fail_to_save, save_well, false });
}
END_TEST

static void fill_memory(void)
{
    test_redis_config(scene_redis, "maxmemory", "1");
}

static void free_memory(void)
{
    test_redis_config(scene_redis, "maxmemory", "0");
}

START_TEST(OOM_is_waited_out_and_what_is_held_is_renewed_and_given_back)
{
    check(&(const struct state){ "OOM", fill_memory, free_memory, true });
}
END_TEST

static struct test_redis *runner;

static bool is_busy(void *arg)
{
    (void)arg;
    const redisReply *r = test_redis_try(scene_redis, "PING");
    return r && r->type == REDIS_REPLY_ERROR && strncmp(r->str, "BUSY", 4) == 0;
}

static void run_endless_script(void)
{
    test_redis_config(scene_redis, "lua-time-limit", "10"); /* its name before 7.0 */
    runner = test_redis_connect(scene_server.path);
    test_redis_send(runner, "EVAL", "while true do end", "0");
    ck_assert(test_wait_until(is_busy, NULL, SCENE_SOON_MS));
}

static bool is_not_busy(void *arg)
{
    return !is_busy(arg);
}

static void end_script(void)
{
    ck_assert_ptr_null(test_redis_recv(runner, 0)); /* it still runs */
    test_redis_do(scene_redis, "SCRIPT", "KILL");
    ck_assert(test_wait_until(is_not_busy, NULL, SCENE_SOON_MS));
    if (test_server_version() >= 70000) /* else SCRIPT LOAD counts, too */
        ck_assert_int_eq(test_redis_calls(scene_redis, "script|kill"), 1);
    test_redis_close(runner);
}

START_TEST(BUSY_is_waited_out_and_the_script_is_not_killed)
{
    check(&(const struct state){ "BUSY", run_endless_script, end_script, false });
}
END_TEST

/* ---- LOADING */

/* The server needs a millisecond for each key, of a KiB; between keys it looks for
 * requests. */
static void *restart_slowly(void *arg)
{
    (void)arg;
    test_server_restart_args(
        &scene_server, TEST_ARGV("--key-load-delay", "1000",
                                 "--loading-process-events-interval-bytes", "1024"));
    return NULL;
}

static bool tells_that_it_loads(void *arg)
{
    int64_t *took = arg, begin = test_now_ms();
    int rc = rlock_mutex_trylock(&o);
    *took = test_now_ms() - begin;
    if (rc == 0)
        rlock_mutex_unlock(&o);
    return rc == ENOTCONN && strstr(rlock_errmsg(), "LOADING");
}

START_TEST(LOADING_is_waited_out_and_what_was_saved_is_still_held)
{
    if (test_server_version() < 70000) {
        puts("skipped: LOADING_is_waited_out_and_what_was_saved_is_still_held: the "
             "server looks for requests only after 2 MiB");
        return;
    }
    static const char fill[] = "for i = 1, tonumber(ARGV[1]) do"
                               " redis.call('SET', 'k' .. i, string.rep('x', 1024)) end";
    char keys[16];
    pthread_t thread;
    int64_t took = 0;
    scene_worker(&x, scene_server.url, NULL, "N", "");
    scene_says(&x, "ok", "init o O");
    scene_says(&x, "ok", "on t lock m");
    snprintf(keys, sizeof(keys), "%ld", test_ms(LOAD_MS));
    test_redis_config(scene_redis, "rdbcompression", "no");
    test_redis_do(scene_redis, "EVAL", fill, "0", keys);
    test_redis_do(scene_redis, "SAVE");
    test_server_kill(&scene_server);
    ck_assert_int_eq(pthread_create(&thread, NULL, restart_slowly, NULL), 0);
    ck_assert(test_wait_until(tells_that_it_loads, &took, SCENE_SOON_MS));
    ck_assert_int_lt(took, test_ms(COMMAND_MS + SLACK_MS));
    scene_says(&x, "ok", "async u lock o");
    pthread_join(thread, NULL); /* it has loaded */
    scene_worker_ends(&x, "u", "ok");
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- silence: CLIENT PAUSE */

/* NULL: of everything. */
static void check_pause(const char *what)
{
    char ms[16];
    start_x(scene_server.url);
    scene_says(&x, "ok", "on t lock m");
    snprintf(ms, sizeof(ms), "%ld", 3 * test_ms(LEASE_MS));
    int64_t begin = test_now_ms();
    test_redis_do(scene_redis, "CLIENT", "PAUSE", ms, what);
    ck_assert_int_eq(rlock_mutex_trylock(&o), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    scene_says(&x, "ok", "async u lock o");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    scene_worker_ends(&x, "u", "ok");
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert(
        scene_wait_free("N", SCENE_SOON_MS)); /* renewals that came late made no hold */
    scene_says(&x, "ok", "on t lock m");
}

START_TEST(a_pause_of_writes_for_three_leases_is_reported_as_a_loss_and_waited_out)
{
    if (test_server_version() < 60200) {
        puts("skipped: "
             "a_pause_of_writes_for_three_leases_is_reported_as_a_loss_and_waited_out: "
             "no pause of writes alone");
        return;
    }
    check_pause("WRITE");
}
END_TEST

START_TEST(a_pause_of_everything_for_three_leases_is_reported_as_a_loss_and_waited_out)
{
    check_pause(NULL);
}
END_TEST

/* ---- access */

START_TEST(a_password_that_is_set_later_is_asked_of_new_connections_only)
{
    rlock_mutex_t n;
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_redis_config(scene_redis, "requirepass", "secret");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    rlock_client_t *newcomer = scene_open_client(scene_server.url, NULL);
    scene_mutex(&n, newcomer, "O");
    ck_assert_int_eq(rlock_mutex_trylock(&n), EACCES);
    ck_assert_msg(strstr(rlock_errmsg(), "NOAUTH"), "%s", rlock_errmsg());
    test_redis_config(scene_redis, "requirepass", "");
    ck_assert_int_eq(rlock_mutex_trylock(&n), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert_int_eq(rlock_client_close(newcomer), 0);
}
END_TEST

START_TEST(client_that_is_shut_out_gets_an_error_whether_it_waits_or_holds)
{
    start_x(test_proxy_url(scene_proxy));
    scene_hold_by_hand("O", 30000);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async u lock o");
    ck_assert(scene_wait_queued("O", 1, SCENE_SOON_MS));
    test_redis_config(scene_redis, "requirepass", "secret");
    unsigned before = test_proxy_counts(scene_proxy).accepted;
    test_redis_kill_clients(scene_redis);
    scene_worker_ends(&x, "u", "EACCES");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    ck_assert_uint_lt(test_proxy_counts(scene_proxy).accepted - before, CONNECTS_MAX);
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&x, "EACCES", "on t lock m");
    test_redis_config(scene_redis, "requirepass", "");
    scene_says(&x, "ok", "on t lock m");
}
END_TEST

/* The URL of the user "u", who may do everything. */
static void make_user(char *url, size_t size)
{
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "reset", "on", ">secret", "~*",
                  "&*", "+@all");
    snprintf(url, size, "redis://u:secret@127.0.0.1:%u", (unsigned)scene_server.port);
}

START_TEST(revoked_permission_is_an_error_to_waiters_and_holders)
{
    char url[128];
    make_user(url, sizeof(url));
    start_x(url);
    scene_hold_by_hand("O", 30000);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "ok", "async u lock o");
    ck_assert(scene_wait_queued("O", 1, SCENE_SOON_MS));
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "-evalsha");
    scene_worker_ends(&x, "u", "EACCES");
    scene_says(&x, "EACCES", "on u trylock o");
    ck_assert(worker_news(&x, "event LOST N", SCENE_SOON_MS));
    scene_says(&x, "ESTALE", "on t unlock m");
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", "+evalsha");
    scene_says(&x, "ok", "on t lock m");
}
END_TEST

static void *lock_until_refused(void *arg)
{
    static int codes[THREADS];
    static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
    static int next;
    pthread_mutex_lock(&mu);
    int *rc = &codes[next++];
    pthread_mutex_unlock(&mu);
    while ((*rc = rlock_mutex_lock(arg)) == 0)
        rlock_mutex_unlock(arg);
    return rc;
}

static bool load_runs(void *arg)
{
    rlock_stats_t stats;
    return rlock_client_getstats(arg, &stats) == 0 && stats.acquisitions > 100;
}

START_TEST(all_threads_of_a_user_deleted_under_load_get_an_error)
{
    char url[128];
    rlock_client_t *client[2];
    rlock_mutex_t n[2];
    pthread_t thread[THREADS];
    make_user(url, sizeof(url));
    for (int i = 0; i < 2; i++) {
        client[i] = scene_client(url, NULL);
        scene_mutex(&n[i], client[i], "L");
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, lock_until_refused, &n[i % 2]),
                         0);
    for (int i = 0; i < 2; i++)
        ck_assert(test_wait_until(load_runs, client[i], SCENE_SOON_MS));
    test_redis_do(scene_redis, "ACL", "DELUSER", "u");
    for (int i = 0; i < THREADS; i++) {
        void *rc;
        pthread_join(thread[i], &rc);
        ck_assert_int_eq(*(int *)rc, EACCES);
    }
    test_redis_do(scene_redis, "FLUSHALL"); /* holds that could not be released */
    make_user(url, sizeof(url));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(rlock_mutex_lock(&n[i]), 0);
        ck_assert_int_eq(rlock_mutex_unlock(&n[i]), 0);
        ck_assert_int_eq(rlock_client_close(client[i]), 0);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server states");

    TCase *passing = scene_tcase(s, "passing", open_scene, close_scene);
    tcase_add_test(passing, READONLY_is_waited_out);
    tcase_add_test(passing, MASTERDOWN_is_waited_out);
    tcase_add_test(passing, NOREPLICAS_is_waited_out);
    tcase_add_test(passing, MISCONF_is_waited_out);
    tcase_add_test(passing, OOM_is_waited_out_and_what_is_held_is_renewed_and_given_back);
    tcase_add_test(passing, BUSY_is_waited_out_and_the_script_is_not_killed);
    tcase_add_test(passing, LOADING_is_waited_out_and_what_was_saved_is_still_held);
    tcase_add_test(
        passing, a_pause_of_writes_for_three_leases_is_reported_as_a_loss_and_waited_out);
    tcase_add_test(
        passing,
        a_pause_of_everything_for_three_leases_is_reported_as_a_loss_and_waited_out);

    TCase *access = scene_tcase(s, "access", open_scene, close_scene);
    tcase_add_test(access, a_password_that_is_set_later_is_asked_of_new_connections_only);
    tcase_add_test(access,
                   client_that_is_shut_out_gets_an_error_whether_it_waits_or_holds);
    tcase_add_test(access, revoked_permission_is_an_error_to_waiters_and_holders);
    tcase_add_test(access, all_threads_of_a_user_deleted_under_load_get_an_error);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
