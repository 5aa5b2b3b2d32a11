/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the master: which answers of the sentinels are believed, what each failure is
 * called, and how long a sentinel that is silent or wrong can delay a client. The
 * sentinels say what the test wants. (Real ones: test_sentinel_failover.) */
/* program: claims=P7,P8,P10 */
#include "client/client.h"

#include "base/clock.h"
#include "findings.h"
#include "forked.h"
#include "net/conn_impl.h"
#include "net/conn_open.h"
#include "sentinelscene.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 20000, QUICK_MS = 250, TRIES = 5, IMPATIENT_MS = 600 };
enum { IMPATIENT_MAX_MS = 2000 };

/* For calls that fail at their deadline. Not scaled any further: an ask is not, either.
 */
static long impatient_ms(void)
{
    long ms = test_ms(IMPATIENT_MS);

    return ms < IMPATIENT_MAX_MS ? ms : IMPATIENT_MAX_MS;
}

static const char *impatient(void)
{
    static char parameters[96];
    long ms = impatient_ms();

    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld&connecttimeout=%ld", ms,
             ms);
    return parameters;
}

static bool pings(void *c)
{
    return rlock_client_ping(c) == 0;
}

static int run_ping(void *c)
{
    return rlock_client_ping(c);
}

/* How long a connection takes, at best: a machine that stands still is no sentinel that
 * delays. */
static int64_t quickest_connection(rlock_client_t *c)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < TRIES && best > test_ms(QUICK_MS); i++) {
        rlk_pool_drain(c->route.target.pool);
        int64_t start = test_now_ms();
        bool good = pings(c);
        int64_t took = test_now_ms() - start;
        best = good && took < best ? took : best;
    }
    return best;
}

/* The message of a ping that fails with this code. */
static const char *ping_fails(rlock_client_t *c, int code)
{
    EXPECT(rlock_client_ping(c), code);
    return rlock_errmsg();
}

static void said(const char *text, const char *part)
{
    ck_assert_msg(strstr(text, part) != NULL, "\"%s\", not \"%s\"", text, part);
}

/* ---- which answer is believed */

/* rule: P7 */
START_TEST(newest_answer_is_believed)
{
    fake_sentinel_says(fakes[0], fakes_dead_port(), 1, "master");
    fake_sentinel_says(fakes[1], fakes_dead_port(), 1, "master");
    fake_sentinel_says(fakes[_i], server.port, 2, "master");
    fake_sentinel_says(fakes[(_i + 1) % SENTINELS], fakes_dead_port(), 1, "master");
    other = open_at(fakes_url(SENTINELS, ""), "");
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    ck_assert(test_redis_exists(redis, "m"));
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(other).connect_failures, 0);
}
END_TEST

static const char *const useless[] = { "master,s_down", "master,o_down,s_down",
                                       "master,disconnected", "slave", "" };
enum { USELESS = sizeof(useless) / sizeof(useless[0]) };

/* rule: P7 */
START_TEST(answer_of_a_sentinel_that_cannot_reach_the_master_does_not_count)
{
    fake_sentinel_says(fakes[0], fakes_dead_port(), 9, useless[_i]);
    fake_sentinel_says(fakes[1], fakes_dead_port(), 9, useless[_i]);
    other = sentinel_open(fakes_url(SENTINELS, ""));
    ck_assert_int_le(quickest_connection(other), test_ms(QUICK_MS));
}
END_TEST

/* rule: P7 */
START_TEST(sentinels_are_asked_again_until_one_names_a_master)
{
    char port[16];
    struct task task;

    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_redis_do(second_redis, "REPLICAOF", "127.0.0.1", port);
    fakes_say(second.port, 2, "master");
    other = sentinel_open(fakes_url(SENTINELS, impatient()));
    EXPECT(rlock_client_ping(other), ENOTCONN);
    said(rlock_errmsg(), "is not a master at the moment");
    ck_assert_uint_ge(fake_sentinel_asked(fakes[0]), 3);
    OK(rlock_client_close(other));
    other = sentinel_open(fakes_url(SENTINELS, ""));
    task_start(&task, run_ping, other);
    unsigned asked = fake_sentinel_asked(fakes[0]);
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    while (fake_sentinel_asked(fakes[0]) == asked && test_now_ms() < end)
        test_pause_ms(5);
    fakes_say(server.port, 3, "master");
    OK(task_join(&task));
}
END_TEST

/* rule: P7 */
START_TEST(silent_sentinel_does_not_delay_a_connection)
{
    fake_sentinel_sleeps(fakes[_i], true);
    other = sentinel_open(fakes_url(SENTINELS, ""));
    ck_assert_int_le(quickest_connection(other), test_ms(QUICK_MS));
}
END_TEST

static long long connections_of(struct test_redis *r)
{
    return test_redis_info(r, "total_connections_received");
}

static bool is_cut_off(void *arg)
{
    const struct rlock_client *c = arg;
    return !atomic_load(&c->route.target.subscription.subscribed);
}

/* rule: P8 */
START_TEST(answer_from_before_the_last_switch_is_not_believed)
{
    long long before = connections_of(second_redis);

    fakes_say(server.port, 5, "master");
    other = open_at(fakes_url(SENTINELS, ""), impatient());
    ck_assert(test_wait_until(pings, other, SOON_MS));
    /* the only one that answers names the old master, which says that it is one */
    fake_sentinel_sleeps(fakes[1], true);
    fake_sentinel_sleeps(fakes[2], true);
    fake_sentinel_says(fakes[0], second.port, 4, "master");
    cut_clients(redis);
    ck_assert(test_wait_until(is_cut_off, other, SOON_MS));
    said(ping_fails(other, ENOTCONN), "names an old master mymaster");
    ck_assert_int_eq(connections_of(second_redis), before);
    fake_sentinel_sleeps(fakes[1], false);
    ck_assert(test_wait_until(pings, other, SOON_MS));
    ck_assert_int_eq(connections_of(second_redis), before);
}
END_TEST

/* rule: P8 */
START_TEST(old_master_is_not_tried_before_the_sentinels_are_asked)
{
    close_client(client); /* or it would connect again, too */
    client = NULL;
    fakes_say(server.port, 5, "master");
    other = open_at(fakes_url(SENTINELS, ""), "");
    OK(rlock_client_ping(other));
    long long before = connections_of(redis);
    fakes_say(second.port, 6, "master");
    cut_clients(redis);
    OK(rlock_client_ping(other));
    ck_assert_int_eq(connections_of(redis), before);
}
END_TEST

START_TEST(epochs_that_begin_again_are_believed_when_most_sentinels_agree)
{
    fakes_say(server.port, 5, "master");
    other = open_at(fakes_url(SENTINELS, ""), "");
    fake_sentinel_says(fakes[0], server.port, 0, "master");
    fake_sentinel_says(fakes[1], server.port, 0, "master");
    fake_sentinel_sleeps(fakes[2], true);
    cut_clients(redis);
    OK(rlock_client_ping(other));
}
END_TEST

/* ---- sentinels that were learned, and do not work */

enum { GHOSTS = 8 };

static size_t known_sentinels(void)
{
    struct rlk_sentinel_address list[RLK_SENTINEL_ASKED_MAX];

    return rlk_sentinel_book_list(&other->config.endpoint, list);
}

static bool ghosts_are_known(void *arg)
{
    (void)arg;
    return known_sentinels() >= SENTINELS + GHOSTS;
}

/* All three name them to the client, which knows them when this returns. */
static void open_with_ghosts(struct fake_sentinel *ghosts[GHOSTS])
{
    for (int i = 0; i < GHOSTS; i++) {
        ghosts[i] = fake_sentinel_start();
        fake_sentinel_sleeps(ghosts[i], true);
    }
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_lists(fakes[i], ghosts, GHOSTS);
    fakes_say(server.port, 5, "master");
    other = open_at(fakes_url(SENTINELS, ""), "");
    OK(rlock_client_ping(other));
    ck_assert(test_wait_until(ghosts_are_known, NULL, SOON_MS));
}

static void stop_ghosts(struct fake_sentinel *ghosts[GHOSTS])
{
    close_client(other);
    other = NULL;
    for (int i = 0; i < GHOSTS; i++)
        fake_sentinel_stop(ghosts[i]);
}

static void learn_again(struct fake_sentinel *ghosts[GHOSTS])
{
    struct rlk_sentinel_address list[GHOSTS];

    for (int i = 0; i < GHOSTS; i++) {
        strcpy(list[i].host, "127.0.0.1");
        list[i].port = fake_sentinel_port(ghosts[i]);
    }
    rlk_sentinel_book_learn(other->config.endpoint.book, list, GHOSTS);
}

/* rule: P8 */
START_TEST(sentinels_that_were_learned_have_no_vote)
{
    struct fake_sentinel *ghosts[GHOSTS];

    open_with_ghosts(ghosts);
    for (int i = 0; i < GHOSTS; i++) { /* those that are silent would be forgotten */
        fake_sentinel_refuses(ghosts[i], "ERR No such master with that name");
        fake_sentinel_sleeps(ghosts[i], false);
    }
    learn_again(ghosts);
    fakes_say(server.port, 0, "master");
    cut_clients(redis);
    ck_assert(test_wait_until(is_cut_off, other, SOON_MS));
    OK(rlock_client_ping(other));
    ck_assert_uint_ge(known_sentinels(), 2 * SENTINELS); /* half of them, or more */
    stop_ghosts(ghosts);
}
END_TEST

static bool ghosts_are_forgotten(void *arg)
{
    return pings(arg) && known_sentinels() == SENTINELS;
}

START_TEST(sentinels_that_were_learned_and_are_silent_delay_nothing_and_are_forgotten)
{
    struct fake_sentinel *ghosts[GHOSTS];

    open_with_ghosts(ghosts);
    int64_t best = INT64_MAX;
    for (int i = 0; i < TRIES && best > test_ms(QUICK_MS); i++) {
        learn_again(ghosts);
        rlk_pool_drain(other->route.target.pool);
        int64_t start = test_now_ms();
        OK(rlock_client_ping(other));
        best = test_now_ms() - start < best ? test_now_ms() - start : best;
    }
    ck_assert_int_le(best, test_ms(QUICK_MS));
    int64_t end = test_now_ms() + test_ms(SOON_MS);
    while (!ghosts_are_forgotten(other) && test_now_ms() < end)
        rlk_pool_drain(other->route.target.pool);
    ck_assert(ghosts_are_forgotten(other));
    stop_ghosts(ghosts);
}
END_TEST

/* ---- what each failure is called */

static void nobody_answers(void)
{
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_sleeps(fakes[i], true);
}

static void all_want_a_password(void)
{
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_wants(fakes[i], "", "secret");
}

static void all_say_down(void)
{
    fakes_say(server.port, 1, "master,s_down,o_down");
}

static void master_is_dead(void)
{
    fakes_say(fakes_dead_port(), 1, "master");
}

static const struct {
    void (*set_up)(void);
    int code;
    bool at_once; /* else at the deadline, because it may pass */
    const char *text;
} failures[] = {
    { nobody_answers, ENOTCONN, false, "no sentinel of master mymaster answers" },
    { all_want_a_password, EACCES, true,
      "of 3 sentinels of master mymaster refuse this client (sentineluser, "
      "sentinelpassword)" },
    { all_say_down, ENOTCONN, false, "of 3 sentinels say that master mymaster is down" },
    { master_is_dead, ENOTCONN, false, "cannot connect to master mymaster (127.0.0.1:" },
};
enum { FAILURES = sizeof(failures) / sizeof(failures[0]) };

/* rule: P7 */
START_TEST(failure_names_its_cause)
{
    failures[_i].set_up();
    other = sentinel_open(fakes_url(SENTINELS, impatient()));
    int64_t took = INT64_MAX;
    for (int i = 0; i < TRIES && took > test_ms(QUICK_MS); i++) {
        int64_t start = test_now_ms();
        said(ping_fails(other, failures[_i].code), failures[_i].text);
        took = test_now_ms() - start;
        if (!failures[_i].at_once)
            break;
    }
    if (failures[_i].at_once)
        ck_assert_int_le(took, test_ms(QUICK_MS));
    else
        ck_assert_int_ge(took, impatient_ms() - 10);
}
END_TEST

/* rule: P7 */
START_TEST(silence_at_the_deadline_does_not_hide_the_cause)
{
    struct rlk_conn *conn;

    all_say_down();
    other = sentinel_open(fakes_url(SENTINELS, ""));
    struct rlk_conn_options options = { .endpoint = &other->config.endpoint,
                                        .reply_limit = 1 << 16 };
    int64_t until = rlk_clock_boot() + impatient_ms() * RLK_NS_PER_MS;
    OK(rlk_conn_start(&conn, &options, until));
    /* a first ask may have been too short for a slow tool */
    while (!strstr(rlk_conn_error_text(conn), "is down") && rlk_clock_boot() < until) {
        test_pause_ms(1);
        rlk_conn_step(conn);
    }
    nobody_answers();
    ck_assert_int_eq(rlk_conn_wait_ready(conn, until), RLK_CONN_DEAD);
    said(rlk_conn_error_text(conn), "sentinels say that master mymaster is down");
    rlk_conn_free(conn);
}
END_TEST

/* The master that the sentinels name says that it is none, and then nothing any more:
 * with so little time left that it says less than the answer did. */
START_TEST(silent_master_at_the_deadline_does_not_hide_the_cause)
{
    /* more than from one attempt to the next, and less than a quarter */
    enum { LEFT_PART = 5 };
    struct rlk_conn *conn;
    char port[16];

    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_redis_do(second_redis, "REPLICAOF", "127.0.0.1", port);
    fakes_say(second.port, 2, "master");
    other = sentinel_open(fakes_url(SENTINELS, ""));
    struct rlk_conn_options options = { .endpoint = &other->config.endpoint,
                                        .reply_limit = 1 << 16 };
    int64_t all = 2 * impatient_ms() * RLK_NS_PER_MS, until = rlk_clock_boot() + all;
    OK(rlk_conn_start(&conn, &options, until));
    /* between two attempts: the last one begins later, however slow the machine is */
    while (rlk_conn_state(conn) == RLK_CONN_OPENING &&
           (rlk_clock_boot() < until - all / LEFT_PART ||
            conn->opening->phase != RLK_PHASE_PAUSE)) {
        test_pause_ms(1);
        rlk_conn_step(conn);
    }
    test_server_pause(&second);
    ck_assert_int_eq(rlk_conn_wait_ready(conn, until), RLK_CONN_DEAD);
    test_server_resume(&second);
    said(rlk_conn_error_text(conn), "is not a master at the moment");
    rlk_conn_free(conn);
}
END_TEST

static const char *url_with_another_name(void)
{
    static char url[SENTINEL_URL_MAX];

    snprintf(url, sizeof(url), "%s", fakes_url(SENTINELS, ""));
    strcpy(strstr(url, "/mymaster"), "/yours");
    return url;
}

/* rule: P7 */
START_TEST(unknown_name_and_no_sentinel_are_two_errors)
{
    char url[SENTINEL_URL_MAX];

    other = sentinel_open(url_with_another_name());
    said(ping_fails(other, EPROTO), "no master of the name \"yours\": ");
    said(rlock_errmsg(), "of 3 sentinels do not know it");
    OK(rlock_client_close(other));
    snprintf(url, sizeof(url), "redis-sentinel://127.0.0.1:%u/mymaster",
             (unsigned)fakes_dead_port());
    other = sentinel_open(url);
    int64_t took = INT64_MAX;
    for (int i = 0; i < TRIES && took > test_ms(QUICK_MS); i++) {
        int64_t start = test_now_ms();
        said(ping_fails(other, ENOTCONN), "no sentinel of master mymaster answers");
        said(rlock_errmsg(), "Connection refused");
        took = test_now_ms() - start;
    }
    ck_assert_int_le(took, test_ms(QUICK_MS)); /* nothing to wait for */
}
END_TEST

/* rule: P7 */
START_TEST(server_in_place_of_a_sentinel_is_EPROTO)
{
    char url[SENTINEL_URL_MAX];

    snprintf(url, sizeof(url), "redis-sentinel://127.0.0.1:%u/mymaster",
             (unsigned)server.port);
    other = sentinel_open(url);
    said(ping_fails(other, EPROTO), "it is no sentinel");
}
END_TEST

START_TEST(sentinel_in_place_of_a_server_is_EPROTO_and_its_url_is_named)
{
    char url[SENTINEL_URL_MAX], right[SENTINEL_URL_MAX];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%u%s",
             (unsigned)fake_sentinel_port(fakes[0]), _i == 1 ? "/3" : "");
    snprintf(right, sizeof(right), "its URL is redis-sentinel://127.0.0.1:%u/mymaster",
             (unsigned)fake_sentinel_port(fakes[0]));
    other = sentinel_open(url);
    said(ping_fails(other, EPROTO), right);
}
END_TEST

/* ---- credentials */

/* rule: P10 */
START_TEST(sentinels_get_their_own_credentials_and_no_others)
{
    char url[SENTINEL_URL_MAX], shown[SENTINEL_URL_MAX], source[64];

    test_redis_do(redis, "ACL", "SETUSER", "worker", "on", ">datasecret", "~*", "&*",
                  "+@all");
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_wants(fakes[i], "watcher", "s3ntinel");
    snprintf(url, sizeof(url), "redis-sentinel://worker:datasecret@%s%s",
             fakes_url(SENTINELS, "") + strlen("redis-sentinel://"),
             "?sentineluser=watcher&sentinelpassword=s3ntinel");
    other = open_at(url, "");
    OK(rlock_client_ping(other));
    OK(rlock_client_getserver(other, shown, sizeof(shown), source, sizeof(source)));
    ck_assert_str_eq(shown, fakes_url(SENTINELS, ""));
    for (int i = 0; i < SENTINELS; i++) {
        ck_assert(fake_sentinel_heard(fakes[i], "s3ntinel"));
        ck_assert(!fake_sentinel_heard(fakes[i], "datasecret"));
    }
    test_redis_do(redis, "ACL", "DELUSER", "worker");
}
END_TEST

/* rule: P10 */
START_TEST(sentinels_get_no_credentials_unless_some_are_given)
{
    char url[SENTINEL_URL_MAX];

    test_redis_do(redis, "ACL", "SETUSER", "worker", "on", ">datasecret", "~*", "&*",
                  "+@all");
    snprintf(url, sizeof(url), "redis-sentinel://worker:datasecret@%s",
             fakes_url(SENTINELS, "") + strlen("redis-sentinel://"));
    other = open_at(url, "");
    OK(rlock_client_ping(other));
    for (int i = 0; i < SENTINELS; i++)
        ck_assert(!fake_sentinel_heard(fakes[i], "AUTH"));
    test_redis_do(redis, "ACL", "DELUSER", "worker");
}
END_TEST

/* rule: P10 */
START_TEST(attribute_has_the_credentials_of_sentinels)
{
    rlock_clientattr_t attr;

    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_wants(fakes[i], "", "s3ntinel");
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setsentinelcredentials(&attr, NULL, "wrong"));
    OK(rlock_client_open(&other, fakes_url(SENTINELS, ""), &attr));
    ck_assert(!strstr(ping_fails(other, EACCES), "wrong"));
    OK(rlock_client_close(other));
    other = NULL;
    OK(rlock_clientattr_setsentinelcredentials(&attr, NULL, "s3ntinel"));
    OK(rlock_client_open(&other, fakes_url(SENTINELS, ""), &attr));
    OK(rlock_client_ping(other));
    OK(rlock_clientattr_destroy(&attr));
}
END_TEST

/* rule: P10 */
START_TEST(text_of_a_sentinel_does_not_show_the_password)
{
    for (int i = 0; i < SENTINELS; i++) {
        fake_sentinel_wants(fakes[i], "", "s3ntinel");
        fake_sentinel_refuses(fakes[i], "ERR no such thing as s3ntinel");
    }
    other = sentinel_open(fakes_url(SENTINELS, "?sentinelpassword=s3ntinel"
                                               "&commandtimeout=300&connecttimeout=300"));
    const char *text = ping_fails(other, ENOTCONN);
    ck_assert_msg(!strstr(text, "s3nti"), "%s", text);
}
END_TEST

/* ---- forks and the diagnosis */

static int take_a_lock(struct forked_report *report, void *arg)
{
    rlock_mutex_t m;
    rlock_mutexattr_t attr;

    (void)report;
    MUST(rlock_mutexattr_init(&attr) == 0);
    MUST(rlock_mutexattr_setclient(&attr, arg) == 0);
    MUST(rlock_mutex_init(&m, &attr, "child's") == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    MUST(rlock_mutex_unlock(&m) == 0);
    return 0;
}

START_TEST(child_of_a_fork_finds_the_master_by_itself)
{
    NEEDS_FORK("child_of_a_fork_finds_the_master_by_itself");
    fakes_know_each_other();
    other = open_at(fakes_url(SENTINELS, ""), "");
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    for (int i = 0; i < 3; i++)
        CHILD_IS_FINE(take_a_lock, other);
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert_uint_eq(stats_of(other).unknown_outcomes, 0);
}
END_TEST

/* rule: P17 */
START_TEST(clocks_may_be_50_ms_apart_unless_maxskew_is_set)
{
    static const struct {
        const char *parameters;
        long skew_ms;
    } rows[] = { { "?lease=20000", 50 },
                 { "?lease=20000&maxskew=0", 0 },
                 { "?lease=120", 50 } }; /* less is taken off such a lease */

    fake_sentinel_says(fakes[0], server.port, 1, "master");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rlock_client_t *c = open_at(fakes_url(1, ""), rows[i].parameters);
        ck_assert_int_eq(c->config.max_skew_ms, rows[i].skew_ms);
        close_client(c);
    }
    ck_assert_int_eq(client->config.max_skew_ms, 0); /* of a server without sentinels */
    other = open_at(fakes_url(1, ""), "?lease=20000");
    rlock_mutex_t m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&m));
    ck_assert_int_le(remaining_of(&m), 20000 * 99 / 100 - 2 - 50);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(diagnosis_tells_the_master_and_what_the_sentinels_say)
{
    static struct findings f;
    char address[32];

    fakes_know_each_other();
    other = open_at(fakes_url(SENTINELS, ""), "");
    findings_of(&f, other);
    snprintf(address, sizeof(address), "\"mymaster\" is 127.0.0.1:%u",
             (unsigned)server.port);
    FOUND(&f, -1, "sentinel", address);
    FOUND(&f, -1, "sentinel", "3 of 3 sentinels answered, and they agree");
    fake_sentinel_sleeps(fakes[1], true);
    findings_of(&f, other);
    FOUND(&f, 4, "sentinel", "1 of 3 sentinels gave no answer");
    fake_sentinel_sleeps(fakes[1], false);
    fake_sentinel_says(fakes[1], fakes_dead_port(), 0, "master");
    findings_of(&f, other);
    FOUND(&f, 4, "sentinel", "by 2 of 3 sentinels that answered");
    fake_sentinel_lists(fakes[0], fakes, 2);
    findings_of(&f, other);
    FOUND(&f, 4, "sentinel", "The master has 2 sentinels");
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_unchecked_fixture(tc, fakes_start, fakes_stop);
    tcase_add_checked_fixture(tc, fakes_open, fakes_close);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("sentinel");
    TCase *answers = add_case(suite, "answers");
    tcase_add_loop_test(answers, newest_answer_is_believed, 0, SENTINELS);
    tcase_add_loop_test(answers,
                        answer_of_a_sentinel_that_cannot_reach_the_master_does_not_count,
                        0, USELESS);
    tcase_add_test(answers, sentinels_are_asked_again_until_one_names_a_master);
    tcase_add_loop_test(answers, silent_sentinel_does_not_delay_a_connection, 0,
                        SENTINELS);
    tcase_add_test(answers, answer_from_before_the_last_switch_is_not_believed);
    tcase_add_test(answers, old_master_is_not_tried_before_the_sentinels_are_asked);
    tcase_add_test(answers,
                   epochs_that_begin_again_are_believed_when_most_sentinels_agree);
    tcase_add_test(answers, sentinels_that_were_learned_have_no_vote);
    tcase_add_test(
        answers,
        sentinels_that_were_learned_and_are_silent_delay_nothing_and_are_forgotten);
    TCase *errors = add_case(suite, "errors");
    tcase_add_loop_test(errors, failure_names_its_cause, 0, FAILURES);
    tcase_add_test(errors, silence_at_the_deadline_does_not_hide_the_cause);
    tcase_add_test(errors, silent_master_at_the_deadline_does_not_hide_the_cause);
    tcase_add_test(errors, unknown_name_and_no_sentinel_are_two_errors);
    tcase_add_test(errors, server_in_place_of_a_sentinel_is_EPROTO);
    tcase_add_loop_test(
        errors, sentinel_in_place_of_a_server_is_EPROTO_and_its_url_is_named, 0, 2);
    TCase *credentials = add_case(suite, "credentials");
    tcase_add_test(credentials, sentinels_get_their_own_credentials_and_no_others);
    tcase_add_test(credentials, sentinels_get_no_credentials_unless_some_are_given);
    tcase_add_test(credentials, text_of_a_sentinel_does_not_show_the_password);
    tcase_add_test(credentials, attribute_has_the_credentials_of_sentinels);
    TCase *rest = add_case(suite, "rest");
    tcase_add_test(rest, child_of_a_fork_finds_the_master_by_itself);
    tcase_add_test(rest, clocks_may_be_50_ms_apart_unless_maxskew_is_set);
    tcase_add_test(rest, diagnosis_tells_the_master_and_what_the_sentinels_say);
    return test_run_suite(suite);
}
