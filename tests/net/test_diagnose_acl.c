/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rlock_client_diagnose reports about a user's rights: the rights of doc/ACL.md,
 * whose words are read from there, each left out once; commands that a server lacks;
 * credentials. And no text contains a secret.
 */
#include "fixture.h"

#include "acl_line.h"
#include "findings.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

#define PASSWORD "a-long-one-that-nobody-knows"

static struct findings f;
static struct acl_line line;
static char url[TEST_URL_MAX + 32];

/* Sets the user up again with all words of the line except `without` (NULL: with all),
 * and with `more`. */
static void set_user(const char *without, const char *const more[])
{
    const char *argv[ACL_WORDS_MAX + 8] = { "ACL", "SETUSER", "worker" };
    int n = 3;
    for (int i = 0; i < line.count; i++) {
        const char *word = line.words[i];
        if (strcmp(word, ">PASSWORD") == 0)
            word = ">" PASSWORD;
        if (!without || strcmp(word, without) != 0)
            argv[n++] = word;
    }
    for (int i = 0; more && more[i]; i++)
        argv[n++] = more[i];
    argv[n] = NULL;
    test_redis_do_argv(redis, argv);
}

/* Rights to all names, not only to those that begin with "jobs:". */
static const char *const all_keys[] = { "allkeys", "allchannels", NULL };

static void set_up(void)
{
    fixture_open();
    acl_read_line(&line, ACL_DOC, 2);
    set_user(NULL, NULL);
    snprintf(url, sizeof(url), "%s?commandtimeout=%ld", server.tcp_url, test_ms(300));
}

static void tear_down(void)
{
    test_redis_try(redis, "ACL", "DELUSER", "worker");
    fixture_close();
}

static void diagnose(void)
{
    findings_at(&f, url, "worker", PASSWORD);
}

/* ---- the user of the document */

START_TEST(the_user_of_the_document_has_all_that_a_diagnosis_needs)
{
    diagnose();
    FOUND(&f, LOG_INFO, "acl", "\"worker\" may run all commands");
    FOUND(&f, LOG_NOTICE, "acl", "locks of some names only");
    for (int i = 0; i < f.count; i++)
        ck_assert_msg(!strstr(f.each[i].text, "is unknown"), "%s", f.each[i].text);
    FOUND(&f, LOG_NOTICE, "leases", "was not checked"); /* no right to its key */
    ck_assert_int_eq(findings_worst(&f, "messages"), LOG_INFO);
    set_user(NULL, all_keys);
    diagnose();
    FOUND(&f, LOG_INFO, "leases", "end by themselves");
    ck_assert_int_eq(findings_worst(&f, "acl"), LOG_INFO);
}
END_TEST

/* The n-th command of the document's first two lines. NULL: there are fewer. */
static const char *command(int n)
{
    acl_read_line(&line, ACL_DOC, 1);
    for (int i = 0; i < line.count; i++)
        if (line.words[i][0] == '+' && n-- == 0)
            return line.words[i];
    return NULL;
}

enum { COMMANDS = 35 };

static bool names_word(const char *word)
{
    char list[FINDING_TEXT_MAX], *save = NULL;
    for (int i = 0; i < f.count; i++) {
        snprintf(list, sizeof(list), "%s", f.each[i].text);
        if (strcmp(f.each[i].topic, "acl") == 0)
            for (char *w = strtok_r(list, " :", &save); w;
                 w = strtok_r(NULL, " :", &save))
                if (strcmp(w, word) == 0)
                    return true;
    }
    return false;
}

START_TEST(each_command_that_is_missing_is_named)
{
    const char *word = command(_i);
    ck_assert(word);
    if (strcmp(word, "+zmscore") == 0 && test_server_version() < 60200) {
        puts("skipped: each_command_that_is_missing_is_named: no ZMSCORE");
        return;
    }
    bool denied = strncmp(acl_without(ACL_DOC, word), "EACCES", 6) == 0;
    acl_read_line(&line, ACL_DOC, 2);
    set_user(word, _i % 2 ? all_keys : NULL);
    diagnose();
    if (strcmp(word, "+time") == 0) {
        ck_assert_int_eq(f.rc, EACCES);
        return;
    }
    ck_assert_int_eq(f.rc, 0);
    ck_assert_msg(names_word(word), "without %s:\n%s", word, findings_text(&f));
    ck_assert(!findings_have(&f, LOG_INFO, "acl", "may run all"));
    /* for a permission that locks need, at least a warning */
    bool looks = strcmp(word, "+hgetall") == 0 || strcmp(word, "+scan") == 0;
    if (denied && !looks)
        ck_assert_int_le(findings_worst(&f, "acl"), LOG_WARNING);
    if (!denied)
        ck_assert_int_ge(findings_worst(&f, "acl"), LOG_WARNING);
}
END_TEST

START_TEST(each_command_of_the_document_is_tried)
{
    ck_assert(command(COMMANDS - 1) && !command(COMMANDS));
}
END_TEST

/* The diagnosis tries a lock whose name is the client's uuid. */
START_TEST(a_key_beside_the_lock_that_is_refused_is_an_error)
{
    static const char *const no_token[] = { "allchannels", "resetkeys", "~[0-9a-f]*",
                                            "~rlock:*", NULL };
    static const char *const no_queue[] = { "allchannels",
                                            "resetkeys",
                                            "~[0-9a-f]*",
                                            "~rlock:*:[^q]*",
                                            "~redisson_lock_token:*",
                                            NULL };
    set_user(NULL, no_token);
    diagnose();
    FOUND(&f, LOG_ERR, "acl", "lacks ~redisson_lock_token:{*}: ");
    set_user(NULL, no_queue);
    diagnose();
    FOUND(&f, LOG_ERR, "acl", "lacks ~rlock:{*}:queue: ");
}
END_TEST

START_TEST(channels_that_are_refused_are_reported)
{
    if (!test_redis_has_channel_rules("channels_that_are_refused_are_reported"))
        return;
    static const char *const no_mail[] = { "allkeys", "resetchannels",
                                           "&redisson_lock__channel:*", NULL };
    static const char *const mail_only[] = { "allkeys", "resetchannels",
                                             "&rlock:client:*", NULL };
    set_user(NULL, no_mail);
    diagnose();
    FOUND(&f, LOG_WARNING, "acl", "&rlock:client:*");
    FOUND(&f, LOG_WARNING, "messages", "not subscribed");
    set_user(NULL, mail_only);
    diagnose();
    FOUND(&f, LOG_NOTICE, "acl", "&redisson_lock__channel:{*}");
    FOUND(&f, LOG_INFO, "messages", "Messages reach");
}
END_TEST

START_TEST(a_mailbox_that_nobody_may_write_to_is_a_warning)
{
    set_user("+publish", NULL);
    diagnose();
    FOUND(&f, LOG_WARNING, "messages", "refuses PUBLISH");
}
END_TEST

START_TEST(a_connection_is_not_left_subscribed)
{
    rlock_client_t *c = NULL;
    rlock_clientattr_t attr;
    set_user("+unsubscribe", NULL);
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcredentials(&attr, "worker", PASSWORD));
    OK(rlock_client_open(&c, url, &attr));
    for (int i = 0; i < 3; i++) {
        rlock_mutex_t m = mutex_of(c, "jobs:1");
        findings_of(&f, c);
        ck_assert_int_eq(f.rc, 0);
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
    }
    /* this client's mailbox, the fixture's, and nothing else */
    const redisReply *channels = test_redis_do(redis, "PUBSUB", "CHANNELS");
    ck_assert_uint_eq(channels->elements, 2);
    close_client(c);
}
END_TEST

/* ---- what the diagnosis may not look at */

START_TEST(without_CONFIG_it_goes_by_INFO_and_says_what_it_could_not_see)
{
    test_redis_config(redis, "maxmemory", "100mb");
    test_redis_config(redis, "maxmemory-policy", "volatile-lru");
    set_user("+config|get", NULL);
    diagnose();
    FOUND(&f, LOG_ERR, "eviction", "volatile-lru");
    FOUND(&f, LOG_INFO, "cluster", "not a node of a cluster");
    FOUND(&f, LOG_WARNING, "persistence", "CONFIG GET is refused");
    FOUND(&f, LOG_NOTICE, "buffers", "is unknown");
    test_redis_config(redis, "maxmemory", "0");
    test_redis_config(redis, "maxmemory-policy", "noeviction");
}
END_TEST

START_TEST(without_INFO_it_goes_by_CONFIG_and_says_what_it_could_not_see)
{
    test_redis_config(redis, "maxmemory", "100mb");
    test_redis_config(redis, "maxmemory-policy", "volatile-lru");
    set_user("+info", NULL);
    diagnose();
    FOUND(&f, LOG_ERR, "eviction", "volatile-lru");
    FOUND(&f, LOG_WARNING, "persistence", "saves nothing");
    FOUND(&f, LOG_INFO, "cluster", "not a node of a cluster");
    if (test_server_version() >= 60200) /* since then no user is refused HELLO */
        FOUND(&f, LOG_INFO, "version", "new enough");
    FOUND(&f, LOG_NOTICE, "replicas", "is unknown");
    test_redis_config(redis, "maxmemory", "0");
    test_redis_config(redis, "maxmemory-policy", "noeviction");
}
END_TEST

START_TEST(with_neither_each_topic_says_so)
{
    static const char *const unseen[] = { "cluster",  "replicas", "persistence",
                                          "eviction", "memory",   "connections",
                                          "buffers" };
    acl_read_line(&line, ACL_DOC, 1);
    test_redis_do(redis, "ACL", "DELUSER", "worker");
    set_user(NULL, NULL);
    diagnose();
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++) {
        FOUND(&f, LOG_NOTICE, unseen[i], "is unknown");
        ck_assert_int_eq(findings_worst(&f, unseen[i]), LOG_NOTICE);
    }
    if (test_server_version() >= 60200) /* else ZMSCORE may be missed */
        FOUND(&f, LOG_INFO, "acl", "may run all");
    FOUND(&f, LOG_INFO, "scripts", "runs scripts");
}
END_TEST

/* A server that has no more connections to give would refuse another one. */
START_TEST(a_diagnosis_goes_on_with_the_connections_that_there_are)
{
    findings_of(&f, client);
    long long before = test_redis_info(redis, "total_connections_received");
    findings_of(&f, client);
    FOUND(&f, LOG_INFO, "acl", "may run all");
    ck_assert_int_eq(test_redis_info(redis, "total_connections_received"), before);
}
END_TEST

/* ---- texts of refusals */

static const struct {
    const char *error;
    int severity;
    const char *text;
} refusals[] = {
    /* 6 */
    { "NOPERM this user has no permissions to run the 'hset' command or its subcommand",
      LOG_ERR, "lacks +hset:" },
    { "NOPERM this user has no permissions to access one of the keys used as arguments",
      LOG_NOTICE, "some names only" },
    /* 7.0, 7.2 and later */
    { "NOPERM this user has no permissions to run the 'hset' command", LOG_ERR,
      "lacks +hset:" },
    { "NOPERM User u has no permissions to run the 'hset' command", LOG_ERR,
      "lacks +hset:" },
    { "NOPERM No permissions to access a key", LOG_NOTICE, "some names only" },
    /* a command that is missing or renamed */
    { "ERR unknown command 'HSET', with args beginning with: 'k' 'f' ", LOG_ERR,
      "lacks +hset:" },
    { "ERR unknown command `HSET`, with args beginning with: `k`, `f`, ", LOG_ERR,
      "lacks +hset:" },
    /* errors that are not refusals */
    { "ERR wrong number of arguments for 'hset' command", LOG_INFO, "may run all" },
    { "OOM command not allowed when used memory > 'maxmemory'.", LOG_INFO,
      "may run all" },
    { "READONLY You can't write against a read only replica.", LOG_INFO, "may run all" },
    { "CLUSTERDOWN Hash slot not served", LOG_INFO, "may run all" },
    { "MOVED 3999 127.0.0.1:6381", LOG_INFO, "may run all" },
    { "MISCONF Errors writing to the AOF file: No space left", LOG_INFO, "may run all" },
};

START_TEST(refusals_of_all_versions_are_understood)
{
    char text[160];
    snprintf(text, sizeof(text), "-%s\r\n", refusals[_i].error);
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "$4\r\nHSET\r\n", .text = text);
    client = open_at(test_proxy_url(proxy), "");
    findings_of(&f, client);
    FOUND(&f, refusals[_i].severity, "acl", refusals[_i].text);
    ck_assert_int_eq(findings_worst(&f, "acl"), refusals[_i].severity);
}
END_TEST

/* Such a message could be taken for the answer to UNSUBSCRIBE, and leave the connection
 * one reply behind, or still subscribed. */
START_TEST(a_message_to_the_channel_that_is_tried_does_no_harm)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER, .count = 1,
              .contains = "$11\r\nunsubscribe\r\n",
              .text = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$0\r\n\r\n");
    client = open_at(test_proxy_url(proxy), "");
    rlock_mutex_t m = mutex_of(client, "n");
    findings_of(&f, client);
    FOUND(&f, LOG_INFO, "acl", "may run all");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    const redisReply *channels = test_redis_do(redis, "PUBSUB", "CHANNELS");
    ck_assert_uint_eq(channels->elements, 1); /* the mailbox */
}
END_TEST

START_TEST(something_else_than_an_answer_to_SUBSCRIBE_is_EPROTO)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "$9\r\nsubscribe\r\n$5", .text = ":1\r\n");
    client = open_at(test_proxy_url(proxy), "");
    findings_of(&f, client);
    ck_assert_int_eq(f.rc, EPROTO);
}
END_TEST

enum { DIAGNOSES = 12 };

static int diagnose_often(void *arg)
{
    struct findings *its = arg;
    int rc = 0;
    for (int i = 0; rc == 0 && i < DIAGNOSES; i++) {
        findings_of(its, client);
        rc = its->rc;
        if (rc == 0 && !findings_have(its, LOG_INFO, "acl", "may run all"))
            rc = -1;
    }
    return rc;
}

START_TEST(threads_may_diagnose_one_client_while_another_locks)
{
    static struct findings its[2];
    struct task tasks[2];
    rlock_mutex_t m = mutex_of(client, "n");
    for (int i = 0; i < 2; i++)
        task_start(&tasks[i], diagnose_often, &its[i]);
    for (int i = 0; i < DIAGNOSES * 20; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(task_join(&tasks[i]), 0);
}
END_TEST

/* ---- servers without a command */

static void without(const char *name)
{
    const char *const args[] = { "--rename-command", name, "", NULL };
    close_client(client);
    client = NULL;
    test_redis_close(redis);
    test_server_restart_args(&server, args);
    redis = test_redis_connect(server.path);
    findings_at(&f, server.url, NULL, NULL);
}

static void set_up_renamed(void)
{
    static const char *const plain[] = { NULL };
    test_server_restart_args(&server, plain);
    fixture_open();
}

START_TEST(a_CONFIG_that_was_renamed_away_is_as_one_refused)
{
    without("CONFIG");
    FOUND(&f, LOG_INFO, "eviction", "noeviction");
    FOUND(&f, LOG_WARNING, "persistence", "CONFIG GET is refused");
    FOUND(&f, LOG_INFO, "acl", "may run all");
}
END_TEST

START_TEST(an_EVAL_that_was_renamed_away_is_an_error)
{
    without("EVAL");
    FOUND(&f, LOG_ERR, "scripts", "refuses EVAL");
    FOUND(&f, LOG_ERR, "acl", "+eval:");
}
END_TEST

/* ---- credentials and secrets */

START_TEST(wrong_password_is_EACCES_and_not_shown)
{
    findings_at(&f, url, "worker", "wrong-" PASSWORD);
    ck_assert_int_eq(f.rc, EACCES);
    ck_assert_int_eq(f.count, 0);
    OK(rlock_client_ping(client));
    rlock_client_t *c = NULL;
    rlock_clientattr_t attr;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcredentials(&attr, "worker", "wrong-" PASSWORD));
    OK(rlock_client_open(&c, url, &attr));
    findings_of(&f, c);
    ck_assert_int_eq(f.rc, EACCES);
    ck_assert_msg(strstr(rlock_errmsg(), "AUTH") && !strstr(rlock_errmsg(), PASSWORD),
                  "%s", rlock_errmsg());
    close_client(c);
}
END_TEST

START_TEST(no_text_holds_a_secret)
{
    test_redis_config(redis, "masterauth", PASSWORD);
    test_redis_do(redis, "ACL", "SETUSER", "root", "on", ">" PASSWORD, "+@all", "~*",
                  "&*");
    findings_at(&f, url, "root", PASSWORD);
    test_redis_config(redis, "masterauth", "");
    test_redis_do(redis, "ACL", "DELUSER", "root");
    FOUND(&f, LOG_INFO, "acl", "\"root\"");
    ck_assert(!strstr(findings_text(&f), PASSWORD));
}
END_TEST

static TCase *tcase(Suite *suite, const char *name, void (*open)(void),
                    void (*close)(void))
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, open, close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("diagnose_acl");

    TCase *tc = tcase(suite, "user", set_up, tear_down);
    tcase_add_test(tc, the_user_of_the_document_has_all_that_a_diagnosis_needs);
    tcase_add_test(tc, each_command_of_the_document_is_tried);
    tcase_add_loop_test(tc, each_command_that_is_missing_is_named, 0, COMMANDS);
    tcase_add_test(tc, a_key_beside_the_lock_that_is_refused_is_an_error);
    tcase_add_test(tc, channels_that_are_refused_are_reported);
    tcase_add_test(tc, a_mailbox_that_nobody_may_write_to_is_a_warning);
    tcase_add_test(tc, a_connection_is_not_left_subscribed);
    tcase_add_test(tc, a_diagnosis_goes_on_with_the_connections_that_there_are);

    tc = tcase(suite, "unseen", set_up, tear_down);
    tcase_add_test(tc, without_CONFIG_it_goes_by_INFO_and_says_what_it_could_not_see);
    tcase_add_test(tc, without_INFO_it_goes_by_CONFIG_and_says_what_it_could_not_see);
    tcase_add_test(tc, with_neither_each_topic_says_so);
    tcase_add_test(tc, wrong_password_is_EACCES_and_not_shown);
    tcase_add_test(tc, no_text_holds_a_secret);

    tc = tcase(suite, "answers", fixture_open_proxied, fixture_close_proxied);
    tcase_add_loop_test(tc, refusals_of_all_versions_are_understood, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(tc, a_message_to_the_channel_that_is_tried_does_no_harm);
    tcase_add_test(tc, something_else_than_an_answer_to_SUBSCRIBE_is_EPROTO);

    tc = tcase(suite, "threads", fixture_open, fixture_close);
    tcase_add_test(tc, threads_may_diagnose_one_client_while_another_locks);

    tc = tcase(suite, "renamed", set_up_renamed, fixture_close);
    tcase_add_test(tc, a_CONFIG_that_was_renamed_away_is_as_one_refused);
    tcase_add_test(tc, an_EVAL_that_was_renamed_away_is_an_error);
    return test_run_suite(suite);
}
