/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock_client_diagnose at servers that are not Redis: servers for the tests of programs,
 * and a proxy. Rules give the answers of the real ones: miniredis 2.40.0, fakeredis
 * 2.41.0, twemproxy 0.5.0.
 */
#include "fixture.h"

#include "findings.h"

#include <string.h>
#include <syslog.h>

/* The beginning of a key of this client, whose name has 52 bytes. */
#define PROBE "$52\r\nrlock:{"
#define BARE_INFO "$32\r\n# Clients\r\nconnected_clients:1\r\n\r\n"

static struct findings f;

static int answers(const char *request, const char *text)
{
    return TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                     .contains = request, .text = text);
}

static int cuts(const char *request, unsigned count)
{
    return TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_CUT,
                     .contains = request, .count = count);
}

static void diagnose(void)
{
    if (!client)
        client = open_at(test_proxy_url(proxy), "");
    findings_of(&f, client);
}

/* ---- leases */

START_TEST(a_lease_that_ends_is_reported)
{
    int probes = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = "SET\r\n" PROBE);
    diagnose();
    FOUND(&f, LOG_INFO, "leases", "Leases end by themselves");
    ck_assert_uint_eq(test_proxy_hits(proxy, probes), 1);
    ck_assert_int_eq(test_redis_int(redis, "DBSIZE"), 0);
}
END_TEST

START_TEST(server_without_expiry_is_an_error_and_no_key_is_left)
{
    answers("PTTL\r\n" PROBE, ":50\r\n");
    int deleted = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = "DEL\r\n" PROBE);
    diagnose();
    FOUND(&f, LOG_ERR, "leases", "This is a test server: leases never end.");
    ck_assert_uint_eq(test_proxy_hits(proxy, deleted), 1);
    FOUND(&f, LOG_INFO, "messages", "Messages reach"); /* the diagnosis goes on */
}
END_TEST

START_TEST(a_key_without_an_end_is_an_error_too)
{
    answers("PTTL\r\n" PROBE, ":-1\r\n");
    diagnose();
    FOUND(&f, LOG_ERR, "leases", "leases never end");
}
END_TEST

START_TEST(a_lease_may_end_a_little_late)
{
    TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "PTTL\r\n" PROBE, .text = ":1\r\n", .count = 20);
    diagnose();
    FOUND(&f, LOG_INFO, "leases", "Leases end by themselves");
}
END_TEST

static const struct {
    const char *request, *text;
} refusals[] = {
    { "SET\r\n" PROBE, "-READONLY You can't write against a read only replica.\r\n" },
    { "SET\r\n" PROBE,
      "-NOPERM this user has no permissions to run the 'set' command\r\n" },
    { "PTTL\r\n" PROBE,
      "-NOPERM this user has no permissions to run the 'pttl' command\r\n" },
};

START_TEST(what_refuses_the_key_is_not_tried)
{
    answers(refusals[_i].request, refusals[_i].text);
    diagnose();
    FOUND(&f, LOG_NOTICE, "leases", "was not checked");
    ck_assert_int_eq(findings_worst(&f, "leases"), LOG_NOTICE);
}
END_TEST

/* ---- names */

static const struct {
    const char *hello;
    int severity;
    const char *text;
} names[] = {
    { "*14\r\n$6\r\nserver\r\n$9\r\nminiredis\r\n$7\r\nversion\r\n$5\r\n8.4.0\r\n$"
      "5\r\nproto\r\n"
      ":2\r\n$2\r\nid\r\n:42\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$"
      "6\r\nmaster\r\n"
      "$7\r\nmodules\r\n*0\r\n",
      LOG_WARNING, "calls itself miniredis 8.4.0, and is neither Redis nor Valkey" },
    { "*4\r\n$7\r\nversion\r\n$6\r\n7.2.10\r\n$6\r\nserver\r\n$5\r\nredis\r\n", LOG_INFO,
      "Redis 7.2.10 is new enough" },
    { "*4\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n8.0.1\r\n", LOG_INFO,
      "Valkey 8.0.1 is new enough" },
    { "*4\r\n$6\r\nserver\r\n$6\r\nx\x1b[2Jy\r\n$7\r\nversion\r\n:7\r\n", LOG_WARNING,
      "calls itself x?[2Jy , " },
    { "*0\r\n", LOG_NOTICE, "is unknown" },
    { "-ERR unknown command 'HELLO'\r\n", LOG_NOTICE, "is unknown" },
};

START_TEST(version_is_taken_from_HELLO_where_INFO_has_none)
{
    answers("$4\r\nINFO\r\n", BARE_INFO);
    answers("HELLO", names[_i].hello);
    diagnose();
    FOUND(&f, names[_i].severity, "version", names[_i].text);
}
END_TEST

START_TEST(HELLO_is_not_asked_where_INFO_tells)
{
    int asked = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = "HELLO");
    diagnose();
    FOUND(&f, LOG_INFO, "version", "new enough");
    ck_assert_uint_eq(test_proxy_hits(proxy, asked), 0);
}
END_TEST

/* ---- fakeredis: after CLIENT LIST TYPE, which fails, it closes at the next command */

START_TEST(connection_closed_upon_SUBSCRIBE_is_opened_again)
{
    int cut = cuts("$9\r\nsubscribe\r\n", 1);
    diagnose();
    ck_assert_msg(f.rc == 0, "%s", rlock_errmsg());
    ck_assert_uint_eq(test_proxy_hits(proxy, cut), 1);
    FOUND(&f, LOG_INFO, "acl", "may run all commands");
}
END_TEST

START_TEST(a_server_that_goes_upon_each_SUBSCRIBE_is_ENOTCONN)
{
    client = open_at(test_proxy_url(proxy), "");
    cuts("$9\r\nsubscribe\r\n", 0);
    diagnose();
    ck_assert_int_eq(f.rc, ENOTCONN);
}
END_TEST

/* ---- twemproxy: closes at unknown commands */

static const char *const handshake[] = { "$7\r\nSETNAME\r\n", "$4\r\nTIME\r\n" };

START_TEST(a_proxy_that_passes_PING_alone_is_EPROTO_and_named)
{
    client = open_at(test_proxy_url(proxy), "");
    cuts(handshake[_i], 0);
    test_proxy_cut(proxy, 0, false);
    diagnose();
    ck_assert_int_eq(f.rc, EPROTO);
    ck_assert_int_eq(f.count, 0);
    ck_assert_msg(strstr(rlock_errmsg(), "twemproxy"), "%s", rlock_errmsg());
    ck_assert_msg(strstr(rlock_errmsg(), test_proxy_path(proxy)), "%s", rlock_errmsg());
}
END_TEST

START_TEST(one_that_closes_upon_PING_too_is_no_such_proxy)
{
    client = open_at(test_proxy_url(proxy), "");
    cuts("$4\r\nTIME\r\n", 0);
    cuts("$4\r\nPING\r\n", 0);
    diagnose();
    ck_assert_int_eq(f.rc, ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), "closed the connection"), "%s", rlock_errmsg());
}
END_TEST

START_TEST(refused_connections_are_reported_for_both_kinds_of_addresses)
{
    client = open_at(_i ? test_proxy_tcp_url(proxy) : test_proxy_url(proxy), "");
    test_proxy_set_mode(proxy, TEST_PROXY_DOWN);
    test_proxy_cut(proxy, 0, false);
    diagnose();
    ck_assert_int_eq(f.rc, ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), "cannot connect to"), "%s", rlock_errmsg());
}
END_TEST

/* The first PING of all belongs to the check for a proxy. */
START_TEST(one_that_was_away_for_a_moment_is_no_such_proxy)
{
    client = open_at(test_proxy_url(proxy), "");
    int away = cuts("$4\r\nTIME\r\n", 1);
    int ping = TEST_RULE(proxy, .on = TEST_ON_REQUEST, .contains = "$4\r\nPING\r\n");
    diagnose();
    ck_assert_msg(f.rc == 0, "%s", rlock_errmsg());
    ck_assert_uint_eq(test_proxy_hits(proxy, away), 1);
    ck_assert_uint_ge(test_proxy_hits(proxy, ping), 1);
}
END_TEST

#define LOOP(tc, test, table)                                                            \
    tcase_add_loop_test(tc, test, 0, sizeof(table) / sizeof((table)[0]))

int main(void)
{
    Suite *suite = suite_create("diagnose_kind");
    TCase *tc = tcase_create("kind");

    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, fixture_open_proxied, fixture_close_proxied);
    suite_add_tcase(suite, tc);
    tcase_add_test(tc, a_lease_that_ends_is_reported);
    tcase_add_test(tc, server_without_expiry_is_an_error_and_no_key_is_left);
    tcase_add_test(tc, a_key_without_an_end_is_an_error_too);
    tcase_add_test(tc, a_lease_may_end_a_little_late);
    LOOP(tc, what_refuses_the_key_is_not_tried, refusals);
    LOOP(tc, version_is_taken_from_HELLO_where_INFO_has_none, names);
    tcase_add_test(tc, HELLO_is_not_asked_where_INFO_tells);
    tcase_add_test(tc, connection_closed_upon_SUBSCRIBE_is_opened_again);
    tcase_add_test(tc, a_server_that_goes_upon_each_SUBSCRIBE_is_ENOTCONN);
    LOOP(tc, a_proxy_that_passes_PING_alone_is_EPROTO_and_named, handshake);
    tcase_add_test(tc, one_that_closes_upon_PING_too_is_no_such_proxy);
    tcase_add_loop_test(tc, refused_connections_are_reported_for_both_kinds_of_addresses,
                        0, 2);
    tcase_add_test(tc, one_that_was_away_for_a_moment_is_no_such_proxy);
    return test_run_suite(suite);
}
