/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_refusals,rwlock_refusals */
/*
 * A server that refuses (ACL, memory), and others who change keys and channels.
 * selfscene.h says what `self`, `m` and `x` are.
 */
#include "selfscene.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum { STAYS_MS = 100, COMMAND_MS = 200 };

/* ---- refusals */

/* The URL of a user "u" with these rules instead of earlier ones. */
static const char *user_url(char *url, size_t size, const char *const rules[])
{
    const char *argv[24] = { "ACL", "SETUSER", "u", "reset", "on", ">secret" };
    int n = 6;
    for (int i = 0; rules[i] && n < 23; i++)
        argv[n++] = rules[i];
    test_redis_do_argv(scene_redis, argv);
    snprintf(url, size, "redis://u:secret@127.0.0.1:%u", (unsigned)scene_server.port);
    return url;
}

START_TEST(a_refused_publish_loses_no_lock)
{
    if (!test_redis_has_channel_rules("a_refused_publish_loses_no_lock"))
        return;
    char url[128];
    rlock_mutex_t n;
    start_x(SCENE_TIMES(.presence = test_ms(600)));
    rlock_client_t *mute = scene_open_client(
        user_url(url, sizeof(url), TEST_ARGV("~*", "+@all", "resetchannels")), NULL);
    scene_mutex(&n, mute, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert(scene_worker_got(&x, 1000)); /* by its own poll, each 200 ms */
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_client_close(mute), 0);
}
END_TEST

START_TEST(a_waiter_that_may_not_subscribe_gets_the_lock_by_polling)
{
    if (!test_redis_has_channel_rules(
            "a_waiter_that_may_not_subscribe_gets_the_lock_by_polling"))
        return;
    char url[128], command[256];
    user_url(url, sizeof(url), TEST_ARGV("~*", "+@all", "resetchannels"));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    worker_start(&x, NULL);
    snprintf(command, sizeof(command), "open %s presence=%ld", url, test_ms(600));
    ck_assert(worker_says(&x, command, "ok"));
    scene_says(&x, "ok", "init m N" SCENE_KIND);
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, 1000));
}
END_TEST

/* Each call whose request is refused gives EACCES and a message that names `command`. */
static void check_refused(const char *const rules[], const char *command)
{
    int64_t begin = test_now_ms();
    char url[128];
    rlock_mutex_t n;
    rlock_client_t *client = scene_open_client(user_url(url, sizeof(url), rules), NULL);
    scene_mutex(&n, client, "N");
    ck_assert_int_eq(rlock_mutex_trylock(&n), EACCES);
    ck_assert_msg(strcasestr(rlock_errmsg(), command), "%s", rlock_errmsg());
    ck_assert_int_eq(rlock_mutex_lock(&n), EACCES);
    ck_assert_int_eq(rlock_client_close(client), 0);
    ck_assert_int_lt(test_now_ms() - begin,
                     test_ms(1000)); /* nothing waits for a timeout */
}

START_TEST(a_missing_permission_gives_EACCES_and_names_the_command)
{
    check_refused(TEST_ARGV("~*", "&*", "+@all", "-evalsha"), "evalsha");
    check_refused(TEST_ARGV("~*", "&*", "+@all", "-hset"), "hset");
    check_refused(TEST_ARGV("~other*", "&*", "+@all"), "evalsha");
    check_refused(TEST_ARGV("~*", "&*", "+@all", "resetpass", ">other"), "auth");
}
END_TEST

START_TEST(closing_a_client_that_was_refused_waits_for_no_timeout)
{
    /* at times the watchdog's replies come while it still sends */
    for (long i = test_count(200, 40); i > 0; i--)
        check_refused(TEST_ARGV("~*", "&*", "+@all", "-evalsha"), "evalsha");
}
END_TEST

static pthread_mutex_t seen_mu = PTHREAD_MUTEX_INITIALIZER;
static char seen[1 << 16]; /* log lines, and reasons of events */

static void see(const char *text)
{
    pthread_mutex_lock(&seen_mu);
    size_t used = strlen(seen);
    snprintf(seen + used, sizeof(seen) - used, "%s\n", text);
    pthread_mutex_unlock(&seen_mu);
}

static void see_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    see(line);
}

static void see_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    see(event->reason ? event->reason : "");
}

/* Opens a client, locks with it, and collects its texts. */
static void see_client(const char *url, const char *password)
{
    rlock_clientattr_t attr;
    rlock_client_t *client = NULL;
    rlock_mutex_t n;
    ck_assert_int_eq(rlock_clientattr_init(&attr), 0);
    ck_assert_int_eq(rlock_clientattr_seteventcallback(&attr, see_event, NULL), 0);
    ck_assert_int_eq(rlock_clientattr_setcommandtimeout(&attr, COMMAND_MS), 0);
    if (password)
        ck_assert_int_eq(rlock_clientattr_setcredentials(&attr, "u", password), 0);
    if (rlock_client_open(&client, url, &attr) == 0) {
        scene_mutex(&n, client, "N");
        if (rlock_mutex_trylock(&n) != 0)
            see(rlock_errmsg());
        if (rlock_client_ping(client) != 0)
            see(rlock_errmsg());
        test_pause_ms(50); /* the threads have tried to connect, too */
        rlock_mutex_unlock(&n);
        see(rlock_errmsg());
        ck_assert_int_eq(rlock_client_close(client), 0);
    } else {
        see(rlock_errmsg());
    }
    rlock_clientattr_destroy(&attr);
}

#define CANARY "kAnArI5"

START_TEST(a_password_is_in_no_message_and_no_line_of_the_log)
{
    char url[128];
    rlock_setlogger(see_line, NULL, LOG_DEBUG);
    user_url(url, sizeof(url), TEST_ARGV("~*", "&*", "+@all", "-hset"));
    see_client(scene_server.url, CANARY); /* a wrong password */
    test_redis_do(scene_redis, "ACL", "SETUSER", "u", ">" CANARY);
    see_client(scene_server.url, CANARY); /* the right one, and a command is refused */
    snprintf(url, sizeof(url), "redis://u:" CANARY "@127.0.0.1:%u/77",
             (unsigned)scene_server.port);
    see_client(url, NULL); /* no such database */
    see_client("redis://u:" CANARY "@127.0.0.1:x", NULL);
    see_client("redis://u:" CANARY "@127.0.0.1?nonsense=1", NULL);
    see_client("redis://u:" CANARY "%@127.0.0.1", NULL);
    see_client("rediss://u:" CANARY "@127.0.0.1", NULL);
    test_server_kill(&scene_server);
    snprintf(url, sizeof(url), "redis://u:" CANARY "@127.0.0.1:%u",
             (unsigned)scene_server.port);
    see_client(url, NULL);
    rlock_setlogger(NULL, NULL, 0);
    pthread_mutex_lock(&seen_mu);
    ck_assert_uint_gt(strlen(seen), 100);
    ck_assert_msg(!strstr(seen, CANARY), "%s", seen);
    pthread_mutex_unlock(&seen_mu);
    test_server_restart(&scene_server);
}
END_TEST

START_TEST(with_memory_full_a_lock_is_renewed_cancelled_and_released)
{
    long lease = test_ms(300);
    start_x(NULL);
    rlock_client_t *holder = scene_client(scene_server.url, SCENE_TIMES(.lease = lease));
    rlock_mutex_t n;
    scene_mutex(&n, holder, "N");
    ck_assert_int_eq(rlock_mutex_lock(&n), 0);
    scene_says(&x, "ok", "async t timedlock m %ld", 2 * lease);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    test_redis_config(scene_redis, "maxmemory", "1");
    ck_assert_str_eq(worker_news(&x, "done t", SCENE_SOON_MS), "done t ETIMEDOUT");
    ck_assert(scene_wait_queued("N", 0, SCENE_SOON_MS));
    rlock_state_t state = RLOCK_LOST;
    ck_assert_int_eq(rlock_mutex_getstate(&n, &state), 0);
    ck_assert_int_ne(state, RLOCK_LOST); /* two leases later */
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    ck_assert(!test_redis_exists(scene_redis, "N"));
    test_redis_config(scene_redis, "maxmemory", "0");
    ck_assert_int_eq(rlock_client_close(holder), 0);
}
END_TEST

START_TEST(with_memory_full_a_lock_is_handed_over)
{
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    test_redis_config(scene_redis, "maxmemory", "1");
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    test_redis_config(scene_redis, "maxmemory", "0");
}
END_TEST

/* ---- others change keys and channels */

START_TEST(a_key_of_another_type_gives_EPROTO_and_stays_as_it_is)
{
    static const char *const suffixes[] = {
        "",        "queue", "rqueue", "cancelled",
#ifdef AS_RWLOCK
        "readers",
#endif
    };
    char key[SCENE_KEY_MAX], name[SCENE_KEY_MAX / 2];
    rlock_mutex_t n;
    for (int i = 0; i < (int)(sizeof(suffixes) / sizeof(suffixes[0])); i++) {
        snprintf(name, sizeof(name), "N%d", i);
        if (suffixes[i][0])
            scene_key(key, name, suffixes[i]);
        else
            snprintf(key, sizeof(key), "%s", name);
        scene_mutex(&n, self, name);
        test_redis_do(scene_redis, "SET", key, "theirs");
        ck_assert_int_eq(rlock_mutex_trylock(&n), EPROTO);
        ck_assert_int_eq(rlock_mutex_lock(&n), EPROTO);
        ck_assert_str_eq(test_redis_str(scene_redis, "GET", key), "theirs");
        ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), i + 1);
    }
}
END_TEST

START_TEST(a_token_key_with_foreign_data_gives_EPROTO_and_stays_as_it_is)
{
    char key[SCENE_KEY_MAX];
    rlock_mutex_t fenced;
    scene_fenced_mutex(&fenced, self, "N");
    test_redis_do(scene_redis, "SET", scene_key(key, "N", "token"), "abc");
    ck_assert_int_eq(rlock_mutex_trylock(&fenced), EPROTO);
    ck_assert_str_eq(test_redis_str(scene_redis, "GET", key), "abc");
    ck_assert(!test_redis_exists(scene_redis, "N"));
}
END_TEST

/* Publishes to the mailbox of the client of `id`; %I stands for the id, %T for the
 * ticket, %U for the uuid. */
static void mail(const char *id, const char *ticket, const char *message)
{
    char uuid[RLK_UUID_LEN + 1], channel[64], text[1024];
    size_t n = 0;
    scene_uuid(uuid, id);
    for (const char *p = message; *p && n + SCENE_ID_MAX < sizeof(text); p++) {
        if (p[0] != '%') {
            text[n++] = *p;
            continue;
        }
        p++;
        const char *word = *p == 'I' ? id : *p == 'T' ? ticket : uuid;
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", word);
    }
    text[n] = '\0';
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", uuid);
    ck_assert_int_eq(test_redis_int(scene_redis, "PUBLISH", channel, text), 1);
}

static const char *const garbage[] = {
    "",
    " ",
    "1",
    "1 ",
    "1 grant",
    "1 grant 0 0 1 1 %I %T",
    "1 grant 0 0 1 1 %I 1 N", /* a wrong ticket */
    "1 grant 0 0 1 1 %I 99999999999999999999 N",
    "1 grant 0 0 1 -1 %I %T N",
    "1 grant 0 0 1 99999 %I %T N",
    "1 grant 0 0 1 1 %U:9:9:" SCENE_LETTER "3000 1 N", /* an unknown id */
    "1 grant 0 0 1 1 %U:9:9:z3000 1 N",                /* of an unknown type */
    "1 grant 0 0 1 1 %U:9:9:" SCENE_LETTER "3000 1 O", /* of another lock */
    "1 grant 0 0 1 1 someone:9:9:" SCENE_LETTER "3000 1 N",
    "1 lost %U:9:9:" SCENE_LETTER "3000 N",
    "1 lost %I N", /* the right one, but the server knows better */
    "1 wanted %I N",
    "2 grant 0 0 1 1 %I %T N", /* of a later version */
    "1 dance 0 0 1 1 %I %T N", /* of a later kind */
    "\xff\xfe\x01\r\n*3\r\n",
};

START_TEST(garbage_in_the_mailbox_does_nothing_to_a_waiter)
{
    char id[SCENE_ID_MAX], ticket[32];
    start_x(NULL);
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        mail(id, ticket, garbage[i]);
    ck_assert(test_stays(x_is_not_told, NULL, STAYS_MS));
    ck_assert_int_eq(scene_queue_len("N"), 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

START_TEST(garbage_in_the_mailbox_does_nothing_to_a_holder)
{
    char id[SCENE_ID_MAX];
    start_x(NULL);
    scene_says(&x, "ok", "on t lock m");
    ck_assert(scene_holder("N", id));
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        mail(id, "1", garbage[i]);
    test_pause_ms(STAYS_MS);
    ck_assert(scene_holder("N", id));
    scene_says(&x, "ok SAFE", "on t state m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("refusals");

    TCase *refusals = scene_tcase(s, "refusals", open_scene, close_scene);
    tcase_add_test(refusals, a_refused_publish_loses_no_lock);
    tcase_add_test(refusals, a_waiter_that_may_not_subscribe_gets_the_lock_by_polling);
    tcase_add_test(refusals, a_missing_permission_gives_EACCES_and_names_the_command);
    tcase_add_test(refusals, closing_a_client_that_was_refused_waits_for_no_timeout);
    tcase_add_test(refusals, a_password_is_in_no_message_and_no_line_of_the_log);
    tcase_add_test(refusals, with_memory_full_a_lock_is_renewed_cancelled_and_released);
    tcase_add_test(refusals, with_memory_full_a_lock_is_handed_over);

    TCase *others = scene_tcase(s, "others", open_scene, close_scene);
    tcase_add_test(others, a_key_of_another_type_gives_EPROTO_and_stays_as_it_is);
    tcase_add_test(others, a_token_key_with_foreign_data_gives_EPROTO_and_stays_as_it_is);
    tcase_add_test(others, garbage_in_the_mailbox_does_nothing_to_a_waiter);
    tcase_add_test(others, garbage_in_the_mailbox_does_nothing_to_a_holder);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
