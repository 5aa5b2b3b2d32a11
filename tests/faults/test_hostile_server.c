/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server, played by the proxy, that replies what no lock script replies. The library
 * asks what became of the request, drops the connection when the reply breaks the
 * protocol, and neither believes nor allocates what cannot be. `self` is a client
 * straight to the server, `other` goes through the proxy.
 */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { BRIEF_MS = 60, TRIES = 5 };

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* ---- answers */

#define HEAD ":1700000000000000\r\n:5000\r\n:0\r\n:0\r\n"
#define DEEP "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"

static const char *const answers[] = {
    /* valid in the protocol, but no script's reply */
    ":1\r\n", "+OK\r\n", "$4\r\nheld\r\n", "$-1\r\n", "*0\r\n", "*-1\r\n",
    "*8\r\n" HEAD "$4\r\nheld\r\n:-3\r\n:0\r\n$0\r\n\r\n",      /* a negative TTL */
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:-1\r\n$0\r\n\r\n",   /* ticket */
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n$3\r\nabc\r\n", /* token */
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n$2\r\n-1\r\n",
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n$21\r\n184467440737095516160\r\n",
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n:1\r\n",
    "*8\r\n" HEAD "$4\r\nHELD\r\n:5000\r\n:0\r\n$0\r\n\r\n", /* a word */
    "*8\r\n" HEAD ":1\r\n:5000\r\n:0\r\n$0\r\n\r\n",
    "*8\r\n:-1\r\n:5000\r\n:0\r\n:0\r\n$4\r\nheld\r\n:1\r\n:0\r\n$0\r\n\r\n", /* time */
    "*8\r\n:1\r\n:-3\r\n:0\r\n:0\r\n$4\r\nheld\r\n:1\r\n:0\r\n$0\r\n\r\n",
    "*7\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n",
    "*10\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n$0\r\n\r\n:0\r\n:0\r\n",
    "*8\r\n" HEAD "*1\r\n:1\r\n:5000\r\n:0\r\n$0\r\n\r\n",
    /* RESP3: in the protocol of later versions of hiredis */
    "%1\r\n+a\r\n:1\r\n", "_\r\n", "#t\r\n", ",1.5\r\n",
    "(3492890328409238509324850943850943825024385\r\n", "=15\r\ntxt:Some string\r\n",
    "~1\r\n:1\r\n", ">1\r\n:1\r\n", "!3\r\nERR\r\n",
    /* not valid in any protocol */
    "*-2\r\n", DEEP DEEP ":1\r\n", "*2147483647\r\n", "*4294967297\r\n",
    "*100000000\r\n:1\r\n", "$536870912\r\n", "$99999999999999999999\r\nx\r\n", "$-2\r\n",
    ":99999999999999999999999\r\n", ":x\r\n", "garbage\r\n", "HTTP/1.1 200 OK\r\n\r\n",
    "\r\n",
    "*8\r\n" HEAD "$4\r\nheld\r\n:5000\r\n:0\r\n$0\r\n\r\n:1\r\n", /* two replies */
};

/* What happens to the connection: it stays, or either, or it is dropped. */
#define FIRST_OF_RESP3 "%1\r\n+a\r\n:1\r\n"
#define FIRST_OF_NONE "*-2\r\n"
enum fate { STAYS, EITHER, DROPPED };
static enum fate fate_of(int answer)
{
    enum fate fate = STAYS;
    for (int i = 0; i <= answer; i++) {
        if (strcmp(answers[i], FIRST_OF_RESP3) == 0)
            fate = EITHER;
        if (strcmp(answers[i], FIRST_OF_NONE) == 0)
            fate = DROPPED;
    }
    return fate;
}

static void check_free_and_usable(void)
{
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    scene_nothing_is_left("N");
}

/* Connections through the proxy. Their number alone says nothing, because the watchdog of
 * a client may open its own at any time. */
struct connections {
    unsigned numbers[16];
    size_t n;
};

static struct connections connections(void)
{
    struct connections c;
    c.n = test_proxy_connections(scene_proxy, c.numbers, 16);
    ck_assert_uint_le(c.n, 16);
    return c;
}

static bool one_has_gone(void *of)
{
    const struct connections *before = of;
    struct connections now = connections();
    for (size_t i = 0; i < before->n; i++) {
        bool there = false;
        for (size_t j = 0; j < now.n; j++)
            there |= now.numbers[j] == before->numbers[i];
        if (!there)
            return true;
    }
    return false;
}

START_TEST(an_answer_of_no_script_is_resolved_and_one_of_no_protocol_drops_the_connection)
{
    /*
     * The request was executed, and its reply is replaced; the cancel finds the hold.
     * Where the connection must stay, its timeout is longer than any scheduler's delay.
     */
    enum fate fate = fate_of(_i);
    rlock_mutex_t mutex;
    rlock_client_t *client =
        scene_client(test_proxy_url(scene_proxy),
                     SCENE_TIMES(.command = test_ms(fate == STAYS ? 10000 : COMMAND_MS)));
    scene_mutex(&mutex, client, "N");
    ck_assert_int_eq(rlock_client_ping(client), 0);
    struct connections before;
    int rc = EPROTO, most = test_ms(1) >= 10 ? TRIES : 1;
    /* The call waits for 100 ms for its cancel. If no reply comes by then, it cannot know
     * that it has the lock, and the watchdog gives it back: under Valgrind that happens.
     */
    for (int tries = 0; rc == EPROTO && tries < most; tries++) {
        before = connections();
        int rule = TEST_RULE(scene_proxy, .on = TEST_ON_REPLY, .action = TEST_ANSWER,
                             .contains = "EVAL", .text = answers[_i], .count = 1);
        rc = rlock_mutex_lock(&mutex);
        ck_assert_uint_eq(test_proxy_hits(scene_proxy, rule), 1);
        test_proxy_remove(scene_proxy, rule);
        ck_assert(rc == 0 || rc == EPROTO);
        ck_assert(rc == 0 || scene_wait_free("N", SCENE_SOON_MS));
    }
    ck_assert_int_eq(rc, 0);
    ck_assert(fate != STAYS || !one_has_gone(&before));
    ck_assert(fate != DROPPED || test_wait_until(one_has_gone, &before, SCENE_SOON_MS));
    ck_assert_int_eq(test_redis_int(scene_redis, "HLEN", "N"), 3); /* executed once */
    ck_assert_int_eq(rlock_mutex_unlock(&mutex), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
    check_free_and_usable();
}
END_TEST

START_TEST(a_server_that_always_answers_so_is_given_up_in_time)
{
    rlock_mutex_t brief;
    rlock_client_t *client = scene_open_client(test_proxy_url(scene_proxy),
                                               SCENE_TIMES(.command = test_ms(BRIEF_MS)));
    scene_mutex(&brief, client, "N");
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "EVAL", .text = answers[_i]);
    int64_t begin = test_now_ms();
    int rc = rlock_mutex_trylock(&brief);
    ck_assert_msg(rc == EPROTO || rc == ENOTCONN, "%s", rlock_strerror(rc));
    ck_assert_msg(is_printable(rlock_errmsg()) && rlock_errmsg()[0], "%s",
                  rlock_errmsg());
    ck_assert_int_lt(test_now_ms() - begin, test_ms(BRIEF_MS + 700));
    ck_assert(!test_redis_exists(scene_redis, "N"));
    test_proxy_remove_all(scene_proxy);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

START_TEST(a_renewal_answered_so_is_not_believed)
{
    long lease = test_ms(400);
    rlock_client_t *client =
        scene_client(test_proxy_url(scene_proxy), SCENE_TIMES(.lease = lease));
    rlock_mutex_t held;
    rlock_state_t state = RLOCK_SAFE;
    long left = 0;
    scene_mutex(&held, client, "N");
    ck_assert_int_eq(rlock_mutex_lock(&held), 0);
    /* the reply says that it is held, for as long as a number can say */
    TEST_RULE(scene_proxy, .on = TEST_ON_REPLY, .action = TEST_ANSWER, .contains = "EVAL",
              .text = "*8\r\n" HEAD "$4\r\nheld\r\n:-9223372036854775808\r\n:0\r\n"
                      "$0\r\n\r\n");
    test_pause_ms(lease);
    ck_assert_int_eq(rlock_mutex_getstate(&held, &state), 0);
    ck_assert_int_eq(state, RLOCK_LOST);
    ck_assert_int_eq(rlock_mutex_getremaining(&held, &left), 0);
    ck_assert_int_eq(left, 0);
    test_proxy_remove_all(scene_proxy);
    ck_assert_int_eq(rlock_mutex_unlock(&held), ESTALE);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

/* ---- inspection */

#define MAX "9223372036854775807"
#define MIN "-9223372036854775808"
#define NONE "*0\r\n*0\r\n*0\r\n*0\r\n"

static const struct {
    const char *answer;
    int code;
} looks[] = {
    { "*7\r\n:1\r\n:1\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*0\r\n*0\r\n*0\r\n*0\r\n", EPROTO },
    { "*7\r\n:1\r\n:1\r\n:1\r\n" NONE, EPROTO },
    { "*6\r\n:1\r\n:1\r\n" NONE, EPROTO },
    { "*7\r\n$1\r\n1\r\n:1\r\n*0\r\n" NONE, EPROTO },
    { ":1\r\n", EPROTO },
    { "*7\r\n:1\r\n:1\r\n*2147483646\r\n", EPROTO },
    /* odd lists, wrong types inside, extremes */
    { "*7\r\n:1\r\n:1\r\n*1\r\n$1\r\na\r\n" NONE, EPROTO },
    { "*7\r\n:1\r\n:1\r\n*2\r\n:1\r\n*0\r\n" NONE, EPROTO },
    { "*7\r\n:" MIN "\r\n:" MIN
      "\r\n*4\r\n$3\r\na:1\r\n$1\r\n1\r\n$5\r\nsince\r\n$19\r\n" MAX
      "\r\n*0\r\n*2\r\n$3\r\na:1\r\n$20\r\n" MIN "\r\n*0\r\n*1\r\n$19\r\n" MAX "\r\n",
      EPROTO },
    { "*7\r\n:" MAX "\r\n:" MAX
      "\r\n*6\r\n$3\r\na:1\r\n$1\r\n1\r\n$5\r\nsince\r\n$20\r\n" MIN
      "\r\n$5\r\ntoken\r\n$3\r\n-99\r\n*2\r\n$1\r\nx\r\n$19\r\n" MAX
      "\r\n*2\r\n$3\r\na:1\r\n$19\r\n" MAX "\r\n*0\r\n*1\r\n$20\r\n" MIN "\r\n",
      0 },
    /* fewer ends than waiters; a ticket that is not one */
    { "*7\r\n:1\r\n:1\r\n*0\r\n*0\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n*0\r\n*0\r\n", EPROTO },
    { "*7\r\n:1\r\n:1\r\n*0\r\n*0\r\n*2\r\n$1\r\na\r\n:1\r\n*0\r\n*1\r\n$1\r\n1\r\n",
      EPROTO },
};

START_TEST(a_strange_look_is_bounded)
{
    rlock_info_t *info = NULL;
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "EVAL", .text = looks[_i].answer);
    int rc = rlock_inspect(other, "N", &info);
    if (looks[_i].code == EPROTO) /* where hiredis refuses, the connection ends */
        ck_assert_msg(rc == EPROTO || rc == ENOTCONN, "%s", rlock_strerror(rc));
    else
        ck_assert_msg(rc == looks[_i].code, "%s", rlock_strerror(rc));
    if (rc == 0)
        rlock_info_free(info);
}
END_TEST

START_TEST(a_queue_without_end_is_given_up)
{
    /* always the same full page, so that there would always be a next one */
    static char answer[1 << 17];
    rlock_info_t *info = NULL;
    size_t at = (size_t)snprintf(answer, sizeof(answer),
                                 "*7\r\n:1\r\n:1\r\n*0\r\n*0\r\n*1000\r\n");
    for (int i = 1; i <= 500; i++)
        at += (size_t)snprintf(answer + at, sizeof(answer) - at,
                               "$3\r\na:1\r\n$3\r\n%03d\r\n", i);
    at += (size_t)snprintf(answer + at, sizeof(answer) - at, "*0\r\n*500\r\n");
    for (int i = 1; i <= 500; i++)
        at += (size_t)snprintf(answer + at, sizeof(answer) - at, "$1\r\n9\r\n");
    int rule = TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
                         .contains = "EVAL", .text = answer);
    ck_assert_int_eq(rlock_inspect(other, "N", &info), EPROTO);
    ck_assert_uint_le(test_proxy_hits(scene_proxy, rule), 2);
}
END_TEST

START_TEST(an_endless_TTL_ends_no_wait_early)
{
    struct timespec soon = test_in_ms(CLOCK_REALTIME, test_ms(100));
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "EVAL", .text = "*5\r\n:1\r\n:" MAX "\r\n:0\r\n:0\r\n:0\r\n");
    ck_assert_int_eq(rlock_waitfree(other, "N", &soon), ETIMEDOUT);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("hostile server");
    TCase *server = scene_tcase(s, "server", open_scene, close_scene);
    tcase_add_loop_test(
        server,
        an_answer_of_no_script_is_resolved_and_one_of_no_protocol_drops_the_connection, 0,
        sizeof(answers) / sizeof(answers[0]));
    tcase_add_loop_test(server, a_server_that_always_answers_so_is_given_up_in_time, 0,
                        sizeof(answers) / sizeof(answers[0]));
    tcase_add_test(server, a_renewal_answered_so_is_not_believed);
    TCase *look = scene_tcase(s, "look", open_scene, close_scene);
    tcase_add_loop_test(look, a_strange_look_is_bounded, 0,
                        sizeof(looks) / sizeof(looks[0]));
    tcase_add_test(look, a_queue_without_end_is_given_up);
    tcase_add_test(look, an_endless_TTL_ends_no_wait_early);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
