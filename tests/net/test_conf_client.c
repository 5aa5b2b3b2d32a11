/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients whose server is named by the environment or by the system's file (test_conf.c):
 * they connect to that server with these credentials, rlock_client_getserver reports it,
 * and messages about a server name the source of its URL.
 */
#include "fixture.h"

#include "conffile.h"
#include "port.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char url[TEST_URL_MAX + 64], source[PATH_MAX];

static void set_up(void)
{
    fixture_open();
    conffile_begin();
}

static void tear_down(void)
{
    OK(rlock_client_close(NULL));
    OK(rlock_client_setdefault(NULL, NULL));
    conffile_end();
    fixture_close();
}

/* The file names the server by its TCP address, and a user with a password. */
static void use_as(const char *user)
{
    char text[512];
    conffile_write("password", "s3cret\n", 0600);
    snprintf(text, sizeof(text),
             "url=redis://127.0.0.1:%u\nuser=%s\npasswordfile=^/password\n",
             (unsigned)server.port, user);
    conffile_use(text);
}

static void asks(rlock_client_t *c)
{
    url[0] = source[0] = '\0';
    OK(rlock_client_getserver(c, url, sizeof(url), source, sizeof(source)));
}

#define SAYS(code, part, call)                                                           \
    do {                                                                                 \
        EXPECT(call, code);                                                              \
        ck_assert_msg(strstr(rlock_errmsg(), part), "%s: %s", #call, rlock_errmsg());    \
    } while (0)

/* ---- rlock_client_getserver */

START_TEST(server_of_a_client_is_reported_without_user_and_password)
{
    rlock_client_t *c;
    OK(rlock_client_open(&c, "redis://u:a%40b@127.0.0.1:1/2?lease=500", NULL));
    asks(c);
    ck_assert_str_eq(url, "redis://127.0.0.1:1/2?lease=500");
    ck_assert_str_eq(source, "program");
    OK(rlock_client_close(c));
    OK(rlock_client_open(&c, "unix:///a@b:c?db=1", NULL));
    asks(c);
    ck_assert_str_eq(url, "unix:///a@b:c?db=1");
    OK(rlock_client_close(c));
    OK(rlock_client_open(&c, "REDIS://h?db=1", NULL));
    asks(c);
    ck_assert_str_eq(url, "REDIS://h?db=1");
    OK(rlock_client_close(c));
}
END_TEST

START_TEST(buffers_that_are_too_small_are_ENAMETOOLONG_and_untouched)
{
    char five[5] = "abcd", eight[8] = "1234567";
    OK(rlock_client_setdefault("unix:///s", NULL)); /* 9 bytes, and "program" has 7 */
    SAYS(ENAMETOOLONG, "the URL needs 10 bytes",
         rlock_client_getserver(NULL, url, 9, source, sizeof(source)));
    SAYS(ENAMETOOLONG, "the source of the URL needs 8 bytes",
         rlock_client_getserver(NULL, eight, sizeof(eight) + 2, five, 7));
    ck_assert_str_eq(five, "abcd");
    ck_assert_str_eq(eight, "1234567");
    OK(rlock_client_getserver(NULL, url, 10, eight, 8));
    ck_assert_str_eq(eight, "program");
    SAYS(EINVAL, "url is NULL", rlock_client_getserver(NULL, NULL, 9, eight, 8));
    SAYS(EINVAL, "source is NULL", rlock_client_getserver(NULL, url, 10, NULL, 0));
}
END_TEST

START_TEST(default_client_is_asked_without_being_opened)
{
    conffile_use("url=redis://127.0.0.1:1\n");
    asks(NULL);
    ck_assert_str_eq(url, "redis://127.0.0.1:1");
    ck_assert_str_eq(source, conffile_path("conf"));
    EXPECT(rlock_client_interrupt(NULL), EINVAL); /* the default client is not open */
    setenv("RLOCK_URL", server.url, 1);
    asks(NULL);
    ck_assert_str_eq(url, server.url);
    ck_assert_str_eq(source, "RLOCK_URL");
    OK(rlock_client_ping(NULL));
    unsetenv("RLOCK_URL");
    asks(NULL); /* still the source at the time of opening */
    ck_assert_str_eq(source, "RLOCK_URL");
    OK(rlock_client_close(NULL));
    conffile_use("nonsense");
    SAYS(EINVAL, "/conf, line 1: no '=' in the line",
         rlock_client_getserver(NULL, url, sizeof(url), source, sizeof(source)));
    conffile_use("");
}
END_TEST

/* ---- the file's server */

START_TEST(client_without_a_url_goes_to_the_files_server)
{
    static rlock_mutex_t plain = RLOCK_MUTEX_INITIALIZER("of-the-file");
    char text[TEST_URL_MAX + 16];
    snprintf(text, sizeof(text), "url = %s\n", server.url);
    conffile_use(text);
    if (_i == 1)
        setenv("RLOCK_URL", "", 1);
    if (_i == 2)
        OK(rlock_client_setdefault("", NULL));
    OK(rlock_mutex_lock(&plain));
    ck_assert(test_redis_exists(redis, "of-the-file"));
    OK(rlock_mutex_unlock(&plain));
}
END_TEST

START_TEST(file_that_is_wrong_fails_the_first_lock_which_says_why)
{
    static rlock_mutex_t plain = RLOCK_MUTEX_INITIALIZER("of-the-file");
    rlock_client_t *c = NULL;
    conffile_use("\nnonsense");
    SAYS(EINVAL, "/conf, line 2: no '=' in the line", rlock_mutex_lock(&plain));
    SAYS(EINVAL, "/conf, line 2: ", rlock_client_open(&c, NULL, NULL));
    SAYS(EINVAL, "/conf, line 2: ", rlock_client_setdefault(NULL, NULL));
    ck_assert_ptr_null(c);
    conffile_use("");
}
END_TEST

/* Also before a client is open. */
START_TEST(type_of_a_mutex_is_what_the_files_url_says)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t m;
    int type;
    conffile_use("url=redis://127.0.0.1:1?mutextype=errorcheck\n");
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_gettype(&attr, &type));
    ck_assert_int_eq(type, RLOCK_MUTEX_ERRORCHECK);
    OK(rlock_mutex_init(&m, NULL, "n")); /* a wrong file makes no difference here */
    conffile_use("nonsense");
    OK(rlock_mutex_init(&m, NULL, "n"));
    ck_assert_str_eq(rlock_errmsg(), "");
    conffile_use("");
}
END_TEST

START_TEST(user_and_passwordfile_decide_the_user_at_the_server)
{
    rlock_client_t *c;
    test_redis_do(redis, "ACL", "SETUSER", "worker", "reset", "on", ">s3cret", "~*", "&*",
                  "+@all");
    use_as("worker");
    OK(rlock_client_open(&c, NULL, NULL));
    OK(rlock_client_ping(c));
    const char *list = test_redis_do(redis, "CLIENT", "LIST")->str;
    ck_assert_ptr_nonnull(strstr(list, " user=worker"));
    OK(rlock_client_close(c));
    test_redis_do(redis, "ACL", "DELUSER", "worker");
}
END_TEST

/* ---- messages */

START_TEST(unreachable_server_is_reported_with_the_source_of_its_name)
{
    char text[256], want[PATH_MAX + 256];
    uint16_t port;
    rlock_client_t *c;
    int reserved = test_port_reserve("127.0.0.1", &port);
    snprintf(text, sizeof(text), "url=redis://127.0.0.1:%u\n", (unsigned)port);
    conffile_use(text);
    OK(rlock_client_open(&c, NULL, NULL));
    snprintf(want, sizeof(want),
             "cannot connect to 127.0.0.1:%u (%s): Connection refused", (unsigned)port,
             conffile_path("conf"));
    SAYS(ENOTCONN, want, rlock_client_ping(c));
    OK(rlock_client_close(c));
    text[strlen(text) - 1] = '\0';
    setenv("RLOCK_URL", text + strlen("url="), 1);
    OK(rlock_client_open(&c, NULL, NULL));
    snprintf(want, sizeof(want),
             "cannot connect to 127.0.0.1:%u (RLOCK_URL): Connection refused",
             (unsigned)port);
    SAYS(ENOTCONN, want, rlock_client_ping(c));
    OK(rlock_client_close(c));
    OK(rlock_client_open(&c, text + strlen("url="), NULL));
    snprintf(want, sizeof(want), "cannot connect to 127.0.0.1:%u: Connection refused",
             (unsigned)port);
    SAYS(ENOTCONN, want, rlock_client_ping(c));
    OK(rlock_client_close(c));
    close(reserved);
}
END_TEST

START_TEST(wrong_password_is_reported_with_its_source_and_not_shown)
{
    rlock_client_t *c;
    char want[PATH_MAX + 64];
    use_as("stranger");
    OK(rlock_client_open(&c, NULL, NULL));
    snprintf(want, sizeof(want), "127.0.0.1:%u (%s) refused AUTH: bad user or password",
             (unsigned)server.port, conffile_path("conf"));
    SAYS(EACCES, want, rlock_client_ping(c));
    ck_assert_ptr_null(strstr(rlock_errmsg(), "s3cret"));
    OK(rlock_client_close(c));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conf client");
    TCase *tc = tcase_create("conf client");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, server_of_a_client_is_reported_without_user_and_password);
    tcase_add_test(tc, buffers_that_are_too_small_are_ENAMETOOLONG_and_untouched);
    tcase_add_test(tc, default_client_is_asked_without_being_opened);
    tcase_add_loop_test(tc, client_without_a_url_goes_to_the_files_server, 0, 3);
    tcase_add_test(tc, file_that_is_wrong_fails_the_first_lock_which_says_why);
    tcase_add_test(tc, type_of_a_mutex_is_what_the_files_url_says);
    tcase_add_test(tc, user_and_passwordfile_decide_the_user_at_the_server);
    tcase_add_test(tc, unreachable_server_is_reported_with_the_source_of_its_name);
    tcase_add_test(tc, wrong_password_is_reported_with_its_source_and_not_shown);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
