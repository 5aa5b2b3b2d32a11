/* SPDX-License-Identifier: Apache-2.0 */
/* program: slow */
/*
 * The user of doc/ACL.md; the tests read the words of its ACL from that document. The
 * user can use all locks of its prefix and nothing else, and a missing permission has the
 * effect that the document states.
 */
#include "acl_line.h"
#include "acl_tour.h"
#include "scene.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define PASSWORD "a-long-one-that-nobody-knows"

static struct acl_line line; /* both lines of the document as one */
static char url[TEST_URL_MAX];

/* Sets the user up again with all words except `without` (NULL: with all). */
static void set_user(const char *without)
{
    const char *argv[ACL_WORDS_MAX + 4] = { "ACL", "SETUSER", "worker" };
    int n = 3;
    for (int i = 0; i < line.count; i++) {
        const char *word = line.words[i];
        if (strcmp(word, ">PASSWORD") == 0)
            word = ">" PASSWORD;
        if (!without || strcmp(word, without) != 0)
            argv[n++] = word;
    }
    argv[n] = NULL;
    test_redis_do_argv(scene_redis, argv);
}

static void open_scene(void)
{
    scene_open();
    acl_read_line(&line, ACL_DOC, 1);
    set_user(NULL);
    snprintf(url, sizeof(url), "redis://worker:" PASSWORD "@127.0.0.1:%u",
             (unsigned)scene_server.port);
}

static void close_scene(void)
{
    test_redis_try(scene_redis, "ACL", "DELUSER", "worker");
    scene_close();
}

/* ---- what the user can do */

START_TEST(the_user_of_the_document_can_do_all_that_locks_need)
{
    struct tour tour;
    acl_tour(url, true, &tour);
    ck_assert_msg(tour.rc == 0 && !tour.where[0], "%s: %s: %s", tour.where,
                  rlock_strerror(tour.rc), tour.errmsg);
    const redisReply *log = test_redis_do(scene_redis, "ACL", "LOG");
    ck_assert_uint_eq(log->elements, 0); /* nothing was refused on the way */
}
END_TEST

static bool is_renewed(void *arg)
{
    rlock_stats_t stats;
    ck_assert_int_eq(rlock_client_getstats(arg, &stats), 0);
    return stats.renewals >= 3;
}

START_TEST(leases_of_the_documented_user_are_renewed)
{
    rlock_mutex_t m;
    long lease = test_ms(300);
    rlock_client_t *client = scene_client(url, SCENE_TIMES(.lease = lease));
    scene_mutex(&m, client, "jobs:1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert(test_wait_until(is_renewed, client, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* ---- what the user cannot do */

static const char *const forbidden[][8] = {
    { "FLUSHALL" },
    { "FLUSHDB" },
    { "KEYS", "jobs:*" },
    { "CONFIG", "GET", "requirepass" },
    { "CONFIG", "SET", "maxmemory", "1" },
    { "CLIENT", "KILL", "TYPE", "pubsub" },
    { "CLIENT", "NO-EVICT", "ON" },
    { "PSUBSCRIBE", "rlock:client:*" },
    { "PSUBSCRIBE", "*" },
    { "PUBSUB", "CHANNELS" },
    { "SUBSCRIBE", "redisson_lock__channel:{pay:1}" },
    { "SUBSCRIBE", "rlock:client" },
    { "PUBLISH", "redisson_lock__channel:{pay:1}", "0" },
    { "HSET", "pay:1", "a", "1" },
    { "HGET", "jobs", "a" }, /* not of the prefix */
    { "ZADD", "rlock:{pay:1}:queue", "1", "a" },
    { "DEL", "redisson_lock_token:{pay:1}" },
    { "GET", "rlock:{}jobs:1}:dirty" },
    { "EVAL", "return redis.call('HSET', 'pay:1', 'a', '1')", "0" },
    { "EVAL", "return redis.call('DEL', KEYS[1])", "1", "pay:1" },
    { "EVAL", "return redis.call('PUBLISH', 'other', 'x')", "0" },
    { "EVAL", "return redis.call('FLUSHALL')", "0" },
    { "SCRIPT", "FLUSH" },
    { "SCRIPT", "KILL" },
    { "FUNCTION", "FLUSH" },
    { "ACL", "SETUSER", "worker", "+@all" },
    { "ACL", "LIST" },
    { "MONITOR" },
    { "SLOWLOG", "GET" },
    { "INFO" },
    { "REPLICAOF", "NO", "ONE" },
    { "SAVE" },
    { "SHUTDOWN", "NOSAVE" },
    { "MIGRATE", "127.0.0.1", "1", "jobs:1", "0", "1" },
    { "RENAME", "jobs:1", "jobs:2" },
    { "DUMP", "jobs:1" },
    { "RESTORE", "jobs:1", "0", "x" },
    { "MODULE", "LIST" },
};

static struct test_redis *connect_as_user(void)
{
    struct test_redis *r = test_redis_connect(scene_server.path);
    test_redis_do(r, "AUTH", "worker", PASSWORD);
    return r;
}

static bool is_refusal(const redisReply *reply)
{
    return reply && reply->type == REDIS_REPLY_ERROR &&
           (strstr(reply->str, "NOPERM") ||
            strstr(reply->str, "unknown command") ||       /* newer servers */
            strstr(reply->str, "ACL failure in script") || /* since 7.2 */
            strstr(reply->str, "can't run this command") ||
            strstr(reply->str, "can't access at least one of the keys") ||
            strstr(reply->str, "can't publish to the channel"));
}

static bool is_about_channels(const char *const command[])
{
    return strstr(command[0], "SUBSCRIBE") || strcmp(command[0], "PUBLISH") == 0 ||
           (command[1] && strstr(command[1], "PUBLISH"));
}

START_TEST(documented_user_is_refused_all_else)
{
    bool channels = test_redis_has_channel_rules(
        "documented_user_is_refused_all_else, about channels");
    struct test_redis *r = connect_as_user();
    test_redis_do(scene_redis, "HSET", "pay:1", "theirs", "1");
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        if (!channels && is_about_channels(forbidden[i]))
            continue;
        const redisReply *reply = test_redis_try_argv(r, forbidden[i]);
        ck_assert_msg(is_refusal(reply), "%s %s", forbidden[i][0],
                      forbidden[i][1] ? forbidden[i][1] : "");
    }
    test_redis_close(r);
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), 1);
    ck_assert_int_eq(test_redis_int(scene_redis, "HLEN", "pay:1"), 1);
}
END_TEST

START_TEST(a_lock_of_another_prefix_is_EACCES_and_names_the_lock)
{
    static const char *const names[] = { "pay:1", "jobs", "Jobs:1", "{jobs:}1", "x" };
    rlock_mutex_t m;
    rlock_client_t *client = scene_client(url, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        scene_mutex(&m, client, names[i]);
        ck_assert_int_eq(rlock_mutex_trylock(&m), EACCES);
        ck_assert_msg(strstr(rlock_errmsg(), names[i]), "%s", rlock_errmsg());
        ck_assert_int_eq(rlock_mutex_lock(&m), EACCES);
    }
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), 0);
}
END_TEST

static int note_name(const rlock_info_t *info, void *arg)
{
    char *names = arg;
    strcat(strcat(names, info->name), " ");
    return 0;
}

/* SCAN returns the names of all keys, even of keys that the ACL does not let the user
 * read. */
START_TEST(listing_omits_what_the_user_may_not_see)
{
    rlock_mutex_t m;
    char names[256] = "";
    rlock_client_t *client = scene_client(url, NULL);
    for (int i = 0; i < 20; i++) {
        char key[32];
        snprintf(key, sizeof(key), "pay:%d", i);
        test_redis_do(scene_redis, "HSET", key, "someone", "1", "mode", "rlock:mutex");
    }
    scene_mutex(&m, client, "jobs:1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    int rc = rlock_list(client, NULL, note_name, names);
    ck_assert_msg(rc == 0, "%s: %s", rlock_strerror(rc), rlock_errmsg());
    ck_assert_str_eq(names, "jobs:1 ");
    ck_assert_str_eq(rlock_errmsg(), "");
    rlock_info_t *info;
    ck_assert_int_eq(rlock_inspect(client, "pay:1", &info), EACCES);
    ck_assert_int_eq(rlock_list(client, "pay:1", note_name, names), EACCES);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* A listing does not leave out a lock whose keys the user may see but not read. */
START_TEST(a_listing_without_the_keys_beside_a_lock_is_EACCES)
{
    static char names[256];
    rlock_mutex_t m;
    rlock_client_t *client = scene_client(url, NULL);
    scene_mutex(&m, client, "jobs:1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    test_redis_do(scene_redis, "ACL", "SETUSER", "worker", "resetkeys", "~jobs:*");
    ck_assert_int_eq(rlock_list(client, NULL, note_name, names), EACCES);
    ck_assert_str_eq(rlock_errmsg(), "the ACL refuses a key of the lock \"jobs:1\"");
    ck_assert_str_eq(names, "");
    /* SCAN returns names, and a name may contain any byte */
    test_redis_do(scene_redis, "ACL", "SETUSER", "worker", "allkeys");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    test_redis_do(scene_redis, "HSET", "jobs:\r\n\x1b[2J", "someone", "1", "mode",
                  "rlock:mutex");
    test_redis_do(scene_redis, "ACL", "SETUSER", "worker", "resetkeys", "~jobs:*");
    ck_assert_int_eq(rlock_list(client, NULL, note_name, names), EACCES);
    ck_assert_str_eq(rlock_errmsg(),
                     "the ACL refuses a key of the lock \"jobs:\\x0d\\x0a\\x1b[2J\"");
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* ---- what each permission is for */

/* Whether the message names the permission that was left out: the command, or a key. */
static bool names(const char *errmsg, const char *word)
{
    char upper[ACL_WORD_SIZE];
    size_t n = 0;
    if (word[0] == '~')
        return strstr(errmsg, "the ACL refuses a key of ") != NULL;
    for (const char *p = word + 1; *p; p++)
        upper[n++] = (char)toupper((unsigned char)*p);
    upper[n] = '\0';
    return strstr(errmsg, upper) != NULL && strstr(errmsg, "refuse") != NULL;
}

/* Fails if a key other than a token has no TTL: it would block its lock for ever. */
static void look_for_leaks(const char *without)
{
    const redisReply *keys = test_redis_do(scene_redis, "KEYS", "*");
    char list[64][128];
    size_t count = keys->elements < 64 ? keys->elements : 64;
    for (size_t i = 0; i < count; i++)
        snprintf(list[i], sizeof(list[i]), "%s", keys->element[i]->str);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(list[i], "redisson_lock_token:", 20) == 0)
            continue;
        ck_assert_msg(test_redis_int(scene_redis, "PTTL", list[i]) != -1,
                      "without %s, %s has no TTL", without, list[i]);
    }
}

/* The n-th permission of the line. NULL: there are fewer. */
static const char *permission(int n)
{
    for (int i = 0; i < line.count; i++)
        if (acl_is_permission(line.words[i]) && n-- == 0)
            return line.words[i];
    return NULL;
}

enum { PERMISSIONS = 43, TOUR_MS = 30000 };

START_TEST(each_permission_is_needed_as_the_document_says)
{
    const char *word = permission(_i);
    ck_assert(word);
    const char *told = acl_without(ACL_DOC, word);
    ck_assert_msg(told, "%s has no row in doc/ACL.md", word);
    bool denied = strncmp(told, "EACCES", 6) == 0;
    ck_assert_msg(denied || strncmp(told, "goes on: ", 9) == 0, "%s: %s", word, told);
    struct tour tour;
    set_user(word);
    int64_t begin = test_now_ms();
    acl_tour(url, true, &tour);
    ck_assert_msg(test_now_ms() - begin < test_ms(TOUR_MS), "without %s: %s", word,
                  tour.where);
    if (!denied) {
        ck_assert_msg(tour.rc == 0, "without %s: %s: %s: %s", word, tour.where,
                      rlock_strerror(tour.rc), tour.errmsg);
    } else {
        ck_assert_msg(tour.rc == EACCES, "without %s: %s: %s: %s", word, tour.where,
                      rlock_strerror(tour.rc), tour.errmsg);
        ck_assert_msg(names(tour.errmsg, word), "without %s: %s", word, tour.errmsg);
    }
    look_for_leaks(word);
}
END_TEST

START_TEST(each_permission_has_a_row_in_the_document)
{
    ck_assert(permission(PERMISSIONS - 1) && !permission(PERMISSIONS));
    ck_assert_int_eq(PERMISSIONS, acl_row_count(ACL_DOC));
}
END_TEST

/* ---- changes of the ACL while locks are in use */

enum { THREADS = 4 };

struct load {
    pthread_t thread;
    rlock_mutex_t m;
    rlock_client_t *client;
    long got, refused;
    int bad; /* an unexpected code */
    char errmsg[400];
};

static _Atomic bool stop;
static _Atomic int inside, overlaps;
static _Atomic long got, refused;

static void *use_locks(void *arg)
{
    struct load *l = arg;
    while (!stop) {
        struct timespec until = test_in_ms(CLOCK_REALTIME, test_ms(500));
        int rc = rlock_mutex_timedlock(&l->m, &until);
        if (rc == 0) {
            if (inside++ != 0)
                overlaps++;
            inside--;
            rc = rlock_mutex_unlock(&l->m);
            got += rc == 0;
        }
        if (rc == EACCES)
            refused++;
        else if (rc != 0 && rc != ETIMEDOUT && rc != ENOTCONN && rc != ESTALE)
            l->bad = rc;
    }
    return NULL;
}

static void start_load(struct load *loads)
{
    stop = false;
    inside = overlaps = 0;
    got = refused = 0;
    for (int i = 0; i < THREADS; i++) {
        loads[i] = (struct load){ .client = scene_open_client(
                                      url, SCENE_TIMES(.lease = test_ms(1000),
                                                       .presence = test_ms(300))) };
        scene_mutex(&loads[i].m, loads[i].client, "jobs:1");
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, use_locks, &loads[i]), 0);
}

static void end_load(struct load *loads)
{
    stop = true;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(loads[i].thread, NULL);
        ck_assert_msg(loads[i].bad == 0, "%s", rlock_strerror(loads[i].bad));
        ck_assert_int_eq(rlock_client_close(loads[i].client), 0);
    }
    ck_assert_int_eq(overlaps, 0);
    scene_nothing_is_left("jobs:1");
}

static bool more_than(void *arg)
{
    return got > *(long *)arg;
}

/* Waits until the threads have got the lock 50 more times. */
static void wait_served(void)
{
    long before = got + 50;
    ck_assert(test_wait_until(more_than, &before, SCENE_SOON_MS));
}

static bool all_refused(void *arg)
{
    return refused > *(long *)arg;
}

START_TEST(user_deleted_under_load_is_refused_and_recovers)
{
    struct load loads[THREADS];
    start_load(loads);
    for (int round = 0; round < 3; round++) {
        wait_served();
        long before = refused + THREADS;
        test_redis_do(scene_redis, "ACL", "DELUSER", "worker");
        ck_assert(test_wait_until(all_refused, &before, SCENE_SOON_MS));
        set_user(NULL);
    }
    wait_served();
    end_load(loads);
}
END_TEST

START_TEST(a_channel_that_is_revoked_under_load_only_slows_down)
{
    if (!test_redis_has_channel_rules(
            "a_channel_that_is_revoked_under_load_only_slows_down"))
        return;
    struct load loads[THREADS];
    start_load(loads);
    for (int round = 0; round < 3; round++) {
        wait_served();
        set_user("&rlock:client:*"); /* also closes the subscribers' connections */
        wait_served();
        set_user(NULL);
    }
    wait_served();
    ck_assert_int_eq(refused, 0);
    end_load(loads);
}
END_TEST

START_TEST(a_holder_whose_user_is_deleted_learns_of_the_loss_by_D)
{
    rlock_mutex_t m;
    rlock_state_t state = RLOCK_SAFE;
    long lease = test_ms(300);
    rlock_client_t *client = scene_client(url, SCENE_TIMES(.lease = lease));
    scene_mutex(&m, client, "jobs:1");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    int64_t begin = test_now_ms();
    test_redis_do(scene_redis, "ACL", "DELUSER", "worker");
    while (state != RLOCK_LOST && test_now_ms() - begin < test_ms(5000)) {
        ck_assert_int_eq(rlock_mutex_getstate(&m, &state), 0);
        if (state != RLOCK_LOST) /* the server may be ahead of D, never behind */
            ck_assert_int_le(test_now_ms() - begin, lease + test_ms(100));
        test_pause_ms(5);
    }
    ck_assert_int_eq(state, RLOCK_LOST);
    ck_assert_int_eq(rlock_mutex_unlock(&m), ESTALE);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("acl");
    TCase *user = scene_tcase(s, "user", open_scene, close_scene);
    tcase_add_test(user, the_user_of_the_document_can_do_all_that_locks_need);
    tcase_add_test(user, leases_of_the_documented_user_are_renewed);
    tcase_add_test(user, documented_user_is_refused_all_else);
    tcase_add_test(user, a_lock_of_another_prefix_is_EACCES_and_names_the_lock);
    tcase_add_test(user, listing_omits_what_the_user_may_not_see);
    tcase_add_test(user, a_listing_without_the_keys_beside_a_lock_is_EACCES);
    TCase *without = scene_tcase(s, "without", open_scene, close_scene);
    tcase_add_test(without, each_permission_has_a_row_in_the_document);
    tcase_add_loop_test(without, each_permission_is_needed_as_the_document_says, 0,
                        PERMISSIONS);
    TCase *changes = scene_tcase(s, "changes", open_scene, close_scene);
    tcase_add_test(changes, user_deleted_under_load_is_refused_and_recovers);
    tcase_add_test(changes, a_channel_that_is_revoked_under_load_only_slows_down);
    tcase_add_test(changes, a_holder_whose_user_is_deleted_learns_of_the_loss_by_D);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
