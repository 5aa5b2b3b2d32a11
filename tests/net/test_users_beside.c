/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What SECURITY.md says below its table about single users of Redis. And locks of other
 * prefixes are handed over and stay held, whatever these users do.
 */
#include "userscene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a user who may publish */

static void pipeline(struct test_redis *r, const char *channel, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        test_redis_send_argv(r, TEST_ARGV("PUBLISH", channel, text));
    for (int i = 0; i < n; i++)
        ck_assert(user_is_done(test_redis_recv(r, SCENE_SOON_MS)));
}

enum { FLOOD = 100000, FLOOD_QUICK = 4000, BATCH = 100, KINDS = 3 };

/* Publishes messages about possible acquisitions: only the number in their ids is
 * guessed. */
static void flood(long count)
{
    char text[2 * SCENE_ID_MAX + 64], channel[64], id[SCENE_ID_MAX];
    for (int n = 0; n < count / BATCH; n++) {
        int kind = n % KINDS, i = n / KINDS % 2;
        bool waiter = n / KINDS / 2 % 2;
        user_guess(id, i, waiter, n / KINDS / 4);
        if (kind == 0)
            snprintf(text, sizeof(text), "1 lost %s %s", id, user_names[i]);
        else if (kind == 1)
            snprintf(text, sizeof(text), "1 wanted %s %s", id, user_names[i]);
        else
            snprintf(text, sizeof(text), "1 grant 0 0 1 1 %s %s %s", id,
                     user_truth[i].ticket, user_names[i]);
        user_mailbox(channel, id);
        pipeline(user_he, channel, text, BATCH);
    }
}

static bool are_all_ignored(void *arg)
{
    return scene_stat(&user_h, "messages_ignored") +
               scene_stat(&user_w, "messages_ignored") ==
           *(long long *)arg;
}

START_TEST(a_flood_of_guesses_causes_no_request_and_is_counted)
{
    long count = test_count(FLOOD, FLOOD_QUICK);
    user_enter("publisher");
    long long keys = test_redis_int(scene_redis, "DBSIZE");
    long long all = scene_stat(&user_h, "messages_ignored") + count +
                    scene_stat(&user_w, "messages_ignored");
    user_count_requests();
    flood(count);
    ck_assert(test_wait_until(are_all_ignored, &all, SCENE_SOON_MS));
    ck_assert(test_stays(user_no_requests, NULL, USER_STAYS_MS));
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), keys);
    ck_assert(user_is_held(0) && user_is_held(1) && user_believes(0) && user_believes(1));
    ck_assert(!worker_news(&user_w, "done", 0));
    ck_assert_int_eq(
        scene_stat(&user_h, "reconnects") + scene_stat(&user_w, "reconnects"), 0);
    /* the true message still arrives behind them */
    scene_says(&user_h, "ok", "on t unlock m");
    scene_worker_ends(&user_w, "t", "ok");
}
END_TEST

static bool has_come_back(void *arg)
{
    return scene_stat(arg, "reconnects") > 0;
}

/* Valkey 9.1 looks at the limit after it has sent what the socket takes. */
enum { LIMIT = 1 << 20, OVER_LIMIT = 16 * LIMIT };

START_TEST(a_message_beyond_the_servers_limit_cuts_the_mailbox_off_for_a_moment)
{
    char channel[64], *text = malloc(OVER_LIMIT + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', OVER_LIMIT);
    text[OVER_LIMIT] = '\0';
    user_enter("publisher");
    test_redis_config(scene_redis, "client-output-buffer-limit", "pubsub 1mb 0 0");
    user_mailbox(channel, user_truth[0].waiter);
    ck_assert(USER_HE("PUBLISH", channel, text));
    ck_assert(test_wait_until(has_come_back, &user_w, SCENE_SOON_MS));
    scene_says(&user_h, "ok", "on t unlock m");
    scene_worker_ends(&user_w, "t", "ok");
    ck_assert(user_is_held(1) && user_believes(1));
    ck_assert_int_eq(scene_stat(&user_h, "losses") + scene_stat(&user_w, "losses"), 0);
    test_redis_config(scene_redis, "client-output-buffer-limit", "pubsub 32mb 8mb 60");
    free(text);
}
END_TEST

/* ---- a user who may listen */

enum { SHORT_MS = 300, LONG_MS = 3000, RENEWED_MS = 2000 };

/* w died while it waited, and no other process learns of it. */
START_TEST(a_listener_has_a_dead_waiter_pass_for_a_stopped_one)
{
    struct worker third;
    char id[SCENE_ID_MAX], now[SCENE_ID_MAX], ticket[32], channel[64];
    const struct scene_times *times = SCENE_TIMES(.presence = test_ms(SHORT_MS));
    memset(&third, 0, sizeof(third));
    user_make("listener");
    scene_worker(&user_h, user_url, times, user_names[0], "");
    scene_worker(&user_w, user_url, times, user_names[0], "");
    scene_worker(&third, user_url, times, user_names[0], "");
    scene_says(&user_h, "ok", "on t lock m");
    scene_worker_waits(&user_w, user_names[0], 1);
    ck_assert(scene_waiter(user_names[0], 0, id, ticket));
    scene_worker_waits(&third, user_names[0], 2);
    struct test_redis *ears = user_log_in("listener");
    user_mailbox(channel, id);
    test_redis_do(ears, "SUBSCRIBE", channel);
    worker_stop(&user_w); /* it stays present until it dies */
    worker_kill(&user_w);
    scene_says(&user_h, "ok", "on t unlock m");
    int64_t begin = test_now_ms();
    if (scene_holder(user_names[0], now) && strcmp(now, id) == 0)
        ck_assert_int_le(scene_pttl(user_names[0]), test_ms(SHORT_MS));
    scene_worker_ends(&third, "t", "ok");
    ck_assert_int_lt(test_now_ms() - begin, 2 * test_ms(SHORT_MS) + test_ms(1000));
    worker_end(&third);
    test_redis_close(ears);
}
END_TEST

/* ---- a user who reads and publishes */

START_TEST(a_forged_grant_is_believed_until_the_first_renewal)
{
    char ticket[32], id[SCENE_ID_MAX];
    user_make("spy");
    scene_worker(&user_h, user_url, NULL, user_names[1], "");
    scene_worker(&user_w, user_url, SCENE_TIMES(.presence = test_ms(LONG_MS)),
                 user_names[1], "");
    scene_says(&user_h, "ok", "on t lock m");
    scene_only_holder(user_names[1], id);
    scene_worker_waits(&user_w, user_names[1], 1);
    user_he = user_log_in("spy");
    user_look(1);
    snprintf(ticket, sizeof(ticket), "%s", user_learnt[1].ticket);
    user_says(user_learnt[1].waiter, "grant", ticket, user_names[1]);
    scene_worker_ends(&user_w, "t", "ok");
    ck_assert(worker_news(&user_w, "event LOST pay:1", RENEWED_MS));
    scene_says(&user_w, "ESTALE", "on t unlock m");
    scene_says(&user_h, "ok SAFE", "on t state m");
    scene_says(&user_h, "ok", "on t unlock m");
}
END_TEST

/* ---- locks of others, while the user does all this */

static atomic_bool over;
static atomic_long done_by_him;

static void publish_at_random(unsigned n)
{
    char channel[64], id[SCENE_ID_MAX], text[2 * SCENE_ID_MAX + 64];
    user_guess(id, (int)(n % 2), false, (int)(n % 1000));
    user_mailbox(channel, id);
    snprintf(text, sizeof(text), n % 3 == 0 ? "1 lost %s %s" : "1 wanted %s %s", id,
             user_names[0]);
    if (n % 3 == 2)
        snprintf(text, sizeof(text), "1 grant 0 0 1 1 %s %u %s", id, n, user_names[0]);
    USER_HE("PUBLISH", channel, text);
    USER_HE("PUBLISH", "redisson_lock__channel:{pay:1}", "0");
}

static void read_at_random(unsigned n)
{
    (void)n;
    USER_HE("HGETALL", user_names[1]);
    USER_HE("ZRANGE", "rlock:{pay:1}:queue", "0", "-1", "WITHSCORES");
    USER_HE("HGETALL", user_names[0]); /* refused */
}

static void write_at_random(unsigned n)
{
    static const char *const keys[] = { "pay:1", "rlock:{pay:1}:queue",
                                        "rlock:{pay:1}:present",
                                        "redisson_lock_token:{pay:1}" };
    const char *key = keys[n % 4];
    char number[32];
    snprintf(number, sizeof(number), "%u", n);
    USER_HE("HSET", key, n % 3 ? "token" : "mode", "no-number");
    USER_HE("ZADD", key, n % 5 ? number : "inf", "a:b:c");
    if (n % 7 == 0)
        USER_HE("DEL", key);
    if (n % 11 == 0)
        USER_HE("SET", key, "no-number");
    USER_HE("DEL", user_names[0]); /* refused */
}

static const struct {
    const char *user;
    void (*does)(unsigned n);
} malefactors[] = {
    { "publisher", publish_at_random },
    { "waker", publish_at_random },
    { "reader", read_at_random },
    { "writer", write_at_random },
};
enum { MALEFACTORS = sizeof(malefactors) / sizeof(malefactors[0]) };

static void *go_on(void *arg)
{
    void (*does)(unsigned n) = malefactors[*(int *)arg].does;
    for (unsigned n = 0; !atomic_load(&over); n++) {
        does(n);
        atomic_fetch_add(&done_by_him, 1);
    }
    return NULL;
}

enum { HANDOVERS = 5000, HANDOVERS_QUICK = 100, HELD_LEASE_MS = 1000 };
/* One takes no longer than this, also where much else runs. */
enum { HANDOVER_MS = 10 };

static bool is_renewed_often(void *arg)
{
    return scene_stat(&user_w, "renewals") >= *(long long *)arg;
}

/* Two workers count under "jobs:1"; one holds "jobs:2" the whole time. */
START_TEST(locks_of_another_prefix_work_beside_such_a_user)
{
    char path[TEST_URL_MAX];
    int64_t sum = 0;
    long n = test_count(HANDOVERS, HANDOVERS_QUICK);
    int who = _i;
    pthread_t thread;
    user_make(malefactors[_i].user);
    snprintf(path, sizeof(path), "%s.sum", scene_server.path);
    FILE *file = fopen(path, "w+");
    ck_assert_ptr_nonnull(file);
    ck_assert(fwrite(&sum, sizeof(sum), 1, file) == 1 && fflush(file) == 0);
    const struct scene_times *times = SCENE_TIMES(.lease = test_ms(HELD_LEASE_MS));
    scene_worker(&user_h, user_url, times, user_names[0], "");
    scene_worker(&user_w, user_url, times, user_names[0], "");
    scene_says(&user_w, "ok", "init k jobs:2");
    scene_says(&user_w, "ok", "init p pay:1");
    scene_says(&user_w, "ok", "lock k");
    scene_says(&user_h, "ok", "on t lock m");
    scene_only_holder(user_names[0], user_truth[0].holder);
    scene_says(&user_h, "ok", "on t unlock m");
    scene_says(&user_w, "ok", "on t lock m");
    scene_only_holder(user_names[0], user_truth[1].holder);
    scene_says(&user_w, "ok", "on t unlock m");
    user_he = user_log_in(malefactors[_i].user);
    atomic_store(&over, false);
    atomic_store(&done_by_him, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, go_on, &who), 0);
    scene_says(&user_h, "ok", "async t hammer m %ld %s", n, path);
    scene_says(&user_w, "ok", "async t hammer m %ld %s", n, path);
    scene_worker_ends_in(&user_h, "t", "ok", SCENE_SOON_MS + n * HANDOVER_MS);
    scene_worker_ends_in(&user_w, "t", "ok", SCENE_SOON_MS + n * HANDOVER_MS);
    long long enough = scene_stat(&user_w, "renewals") + 3;
    ck_assert(test_wait_until(is_renewed_often, &enough, SCENE_SOON_MS));
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    ck_assert_int_gt(atomic_load(&done_by_him), 10);
    rewind(file);
    ck_assert(fread(&sum, sizeof(sum), 1, file) == 1);
    ck_assert_int_eq(sum, 2 * n);
    scene_says(&user_w, "ok SAFE", "state k");
    scene_says(&user_w, "ok", "unlock k");
    ck_assert_int_eq(scene_stat(&user_h, "losses") + scene_stat(&user_w, "losses"), 0);
    ck_assert_int_eq(
        scene_stat(&user_h, "reconnects") + scene_stat(&user_w, "reconnects"), 0);
    fclose(file);
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("users");
    TCase *one = scene_tcase(s, "one", user_open, user_close);
    tcase_add_test(one, a_flood_of_guesses_causes_no_request_and_is_counted);
    tcase_add_test(one,
                   a_message_beyond_the_servers_limit_cuts_the_mailbox_off_for_a_moment);
    tcase_add_test(one, a_listener_has_a_dead_waiter_pass_for_a_stopped_one);
    tcase_add_test(one, a_forged_grant_is_believed_until_the_first_renewal);
    TCase *beside = scene_tcase(s, "beside", user_open, user_close);
    tcase_add_loop_test(beside, locks_of_another_prefix_work_beside_such_a_user, 0,
                        MALEFACTORS);
    return test_run_suite(s);
}
