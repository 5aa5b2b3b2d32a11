/* SPDX-License-Identifier: Apache-2.0 */
/* What the diagnosis says of the client's rights at the sentinels: a real sentinel whose
 * user lacks one right of doc/ACL.md, and sentinels of which one refuses. */
/* program: */
#include "findings.h"
#include "sentinelscene.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { SOON_MS = 20000, WORDS_MAX = 16 };

static struct test_server sentinel;
static struct test_redis *at_sentinel;
static struct findings f;

/* The words of the document's user, and what the diagnosis says without each. */
static const struct {
    const char *word;
    int severity, code;
    const char *text;
} rights[] = {
    { "+ping", LOG_ERR, EACCES, "they name no master to this client" },
    { "+sentinel|master", LOG_ERR, EACCES, "they name no master to this client" },
    { "+sentinel|get-master-addr-by-name", LOG_WARNING, 0,
      "a failover that is under way is noticed some seconds later" },
    { "+sentinel|sentinels", LOG_NOTICE, 0,
      "the client knows only the sentinels of the URL" },
    { "+subscribe", LOG_WARNING, 0,
      "each connection finds out by itself that its master was replaced" },
    { "&+switch-master", LOG_WARNING, 0,
      "each connection finds out by itself that its master was replaced" },
};
enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

static void start(void)
{
    char conf[256];

    fixture_start();
    snprintf(conf, sizeof(conf), "sentinel monitor mymaster 127.0.0.1 %u 1\n",
             (unsigned)server.port);
    test_server_start_sentinel(&sentinel, conf);
}

static void stop(void)
{
    test_server_stop(&sentinel);
    fixture_stop();
}

static void set_up(void)
{
    at_sentinel = test_redis_connect(sentinel.path);
    test_rundir_own_if_any();
}

static void tear_down(void)
{
    if (client)
        close_client(client);
    client = NULL;
    test_redis_close(at_sentinel);
}

/* Makes the user of the document, without this word of it; RIGHTS: with all. */
static void make_user(int without)
{
    const char *argv[WORDS_MAX] = { "ACL", "SETUSER",   "locks",        "reset",
                                    "on",  ">PASSWORD", "resetchannels" };
    int n = 7;

    for (int i = 0; i < RIGHTS; i++)
        if (i != without)
            argv[n++] = rights[i].word;
    test_redis_do_argv(at_sentinel, argv);
}

static bool is_known_to_be_up(void *arg)
{
    const redisReply *r = test_redis_do(at_sentinel, "SENTINEL", "MASTER", "mymaster");

    (void)arg;
    for (size_t i = 0; i + 1 < r->elements; i += 2)
        if (strcmp(r->element[i]->str, "flags") == 0)
            return strcmp(r->element[i + 1]->str, "master") == 0;
    return false;
}

static void diagnose(const char *parameters)
{
    char url[SENTINEL_URL_MAX];

    ck_assert(test_wait_until(is_known_to_be_up, NULL, SOON_MS));
    snprintf(url, sizeof(url), "redis-sentinel://127.0.0.1:%u/mymaster%s",
             (unsigned)sentinel.port, parameters);
    client = sentinel_open(url);
    findings_of(&f, client);
}

/* rule: P10 */
START_TEST(each_right_that_is_missing_at_a_sentinel_is_named)
{
    char text[128];

    make_user(_i);
    diagnose("?sentineluser=locks&sentinelpassword=PASSWORD");
    snprintf(text, sizeof(text),
             "The user \"locks\" of the sentinels (sentineluser) lacks %s at 1 of 1 that "
             "answered (127.0.0.1:%u): ",
             rights[_i].word, (unsigned)sentinel.port);
    ck_assert_int_eq(f.rc, rights[_i].code);
    ck_assert_msg(findings_have(&f, rights[_i].severity, "sentinel", text),
                  "not found: %s\n%s", text, findings_text(&f));
    ck_assert_msg(findings_have(&f, rights[_i].severity, "sentinel", rights[_i].text),
                  "not found: %s\n%s", rights[_i].text, findings_text(&f));
    for (int i = 0; i < f.count; i++) /* no other one */
        ck_assert_msg(!strstr(f.each[i].text, " lacks ") ||
                          strcmp(f.each[i].topic, "sentinel") != 0 ||
                          strstr(f.each[i].text, text),
                      "%s", f.each[i].text);
}
END_TEST

/* rule: P10 */
START_TEST(user_with_all_rights_at_the_sentinels_is_good)
{
    make_user(RIGHTS);
    diagnose(_i == 0 ? "?sentineluser=locks&sentinelpassword=PASSWORD" : "");
    FOUND(&f, LOG_INFO, "sentinel",
          _i == 0 ? "The user \"locks\" of the sentinels may run all commands that the "
                    "client needs there."
                  : "The user \"default\" of the sentinels may run all");
}
END_TEST

/* rule: P10 */
START_TEST(right_that_is_missing_at_one_of_three_is_named_with_its_address)
{
    char text[64];

    fake_sentinel_refuses(
        fakes[1],
        "NOPERM this user has no permissions to run the 'sentinel|master' command");
    other = open_at(fakes_url(SENTINELS, ""), "");
    findings_of(&f, other);
    snprintf(text, sizeof(text), "at 1 of 3 that answered (127.0.0.1:%u): ",
             (unsigned)fake_sentinel_port(fakes[1]));
    FOUND(&f, LOG_ERR, "sentinel", text);
    FOUND(&f, LOG_ERR, "sentinel", "lacks +sentinel|master at ");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sentinel_rights");
    TCase *real = tcase_create("real"), *fake = tcase_create("fake");

    tcase_add_unchecked_fixture(real, start, stop);
    tcase_add_checked_fixture(real, set_up, tear_down);
    tcase_add_loop_test(real, each_right_that_is_missing_at_a_sentinel_is_named, 0,
                        RIGHTS);
    tcase_add_loop_test(real, user_with_all_rights_at_the_sentinels_is_good, 0, 2);
    suite_add_tcase(suite, real);
    tcase_add_unchecked_fixture(fake, fakes_start, fakes_stop);
    tcase_add_checked_fixture(fake, fakes_open, fakes_close);
    tcase_add_test(fake, right_that_is_missing_at_one_of_three_is_named_with_its_address);
    suite_add_tcase(suite, fake);
    return test_run_suite(suite);
}
