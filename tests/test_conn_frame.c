/* SPDX-License-Identifier: Apache-2.0 */
/* A connection keeps the framing of requests and puts other arguments into it: whatever
 * is sent in whatever order, the server reads the arguments that were given. */
#include "conn_impl.h"

#include "deadline.h"
#include "server.h"
#include "suite.h"
#include "url.h"
#include "wait.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 48, PREFIX = 3, TEXT_MAX = 6000 };

static struct test_server server;
static struct rlk_config config;
static struct rlk_conn *conn;
static unsigned seed;

static void start_server(void)
{
    test_server_start(&server, NULL);
}

static void stop_server(void)
{
    test_server_stop(&server);
}

static void set_up(void)
{
    ck_assert_int_eq(rlk_url_parse(&config, server.url), 0);
    struct rlk_conn_options options = { .target = &config.target,
                                        .name = "rlock:test",
                                        .keepalive_ms = 10000,
                                        .reply_limit = 1 << 20 };
    int64_t deadline = rlk_now_boot() + test_ms(5000) * RLK_NS_PER_MS;
    ck_assert_int_eq(rlk_conn_start(&conn, &options, deadline), 0);
    ck_assert_int_eq(rlk_conn_wait_ready(conn, deadline), RLK_CONN_READY);
    seed = 1;
}

static void tear_down(void)
{
    rlk_conn_free(conn);
    rlk_config_clear(&config);
}

static unsigned random_below(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* A script that answers its arguments. */
struct request {
    int argc;
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
};

static void begin(struct request *r)
{
    static const char *const words[PREFIX] = { "EVAL", "return ARGV", "0" };
    r->argc = PREFIX;
    for (int i = 0; i < PREFIX; i++) {
        r->argv[i] = words[i];
        r->len[i] = strlen(words[i]);
    }
}

static void add(struct request *r, const char *bytes, size_t len)
{
    r->argv[r->argc] = bytes;
    r->len[r->argc++] = len;
}

static void assert_read_as_sent(const struct request *r)
{
    struct rlk_reply *reply = NULL;
    int64_t sent;
    size_t len;
    enum rlk_failure why =
        rlk_conn_call(conn, r->argc, r->argv, r->len,
                      rlk_now_boot() + test_ms(5000) * RLK_NS_PER_MS, &reply, &sent);

    ck_assert_msg(why == RLK_FAIL_NONE, "%s", rlk_conn_error_text(conn));
    ck_assert_uint_eq(rlk_reply_count(reply), (size_t)(r->argc - PREFIX));
    for (int i = PREFIX; i < r->argc; i++) {
        const char *text =
            rlk_reply_string(rlk_reply_at(reply, (size_t)(i - PREFIX)), &len);
        ck_assert_uint_eq(len, r->len[i]);
        ck_assert_int_eq(memcmp(text, r->argv[i], len), 0);
    }
    rlk_reply_free(reply);
}

static int frames_kept(void)
{
    int n = 0;
    for (int i = 0; i < RLK_FRAME_COUNT; i++)
        n += conn->frames[i].bytes != NULL;
    return n;
}

START_TEST(the_same_shape_is_framed_once)
{
    for (int i = 0; i < 50; i++) {
        char text[16];
        struct request r;
        begin(&r);
        snprintf(text, sizeof(text), "%05d", i);
        add(&r, text, 5);
        add(&r, "", 0);
        assert_read_as_sent(&r);
    }
    ck_assert_int_eq(frames_kept(), 1);
}
END_TEST

START_TEST(other_lengths_are_another_shape)
{
    static const char *const texts[] = { "a", "bc", "d", "ef", "", "ghi", "jk", "l" };
    for (size_t i = 0; i < 4 * sizeof(texts) / sizeof(texts[0]); i++) {
        const char *text = texts[i % (sizeof(texts) / sizeof(texts[0]))];
        struct request r;
        begin(&r);
        add(&r, text, strlen(text));
        add(&r, "-", 1);
        assert_read_as_sent(&r);
    }
    ck_assert_int_eq(frames_kept(), RLK_FRAME_COUNT);
}
END_TEST

START_TEST(bytes_that_look_like_framing_are_bytes)
{
    static const char *const texts[] = { "\r\n$3\r\nxyz\r\n", "*2\r\n$1\r\na\r\n",
                                         "0123456789ab", "\n\n\n\n\n\n\n\n\n\n\n\n" };
    for (size_t i = 0; i < 3 * sizeof(texts) / sizeof(texts[0]); i++) {
        struct request r;
        begin(&r);
        for (int n = 0; n < 3; n++) {
            const char *text = texts[(i + (size_t)n) % 4];
            add(&r, text, strlen(text));
        }
        assert_read_as_sent(&r);
    }
}
END_TEST

START_TEST(what_is_too_long_or_too_much_is_not_kept)
{
    static char text[TEXT_MAX];
    struct request r;

    memset(text, 'x', sizeof(text));
    begin(&r);
    add(&r, text, sizeof(text));
    assert_read_as_sent(&r);
    begin(&r);
    while (r.argc <= RLK_FRAME_ARGS_MAX)
        add(&r, "y", 1);
    assert_read_as_sent(&r);
    ck_assert_int_eq(frames_kept(), 0);
}
END_TEST

START_TEST(any_sequence_of_requests_is_read_as_sent)
{
    static const size_t lengths[] = { 0, 1, 9, 10, 36, 99, 100, 101, 999, 1000, 1500 };
    static char bytes[1 << 16];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = "\r\n$*0123456789abc"[random_below(17)];
    for (long n = test_count(3000, 300); n > 0; n--) {
        struct request r;
        begin(&r);
        for (unsigned args = 1 + random_below(3); args > 0; args--)
            add(&r, bytes + random_below(1u << 15), lengths[random_below(11)]);
        assert_read_as_sent(&r);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_frame");
    TCase *tc = tcase_create("frames");
    tcase_add_unchecked_fixture(tc, start_server, stop_server);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_same_shape_is_framed_once);
    tcase_add_test(tc, other_lengths_are_another_shape);
    tcase_add_test(tc, bytes_that_look_like_framing_are_bytes);
    tcase_add_test(tc, what_is_too_long_or_too_much_is_not_kept);
    tcase_add_test(tc, any_sequence_of_requests_is_read_as_sent);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
