/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* A connection keeps the framing of requests and puts other arguments into it: whatever
 * is framed in whatever order, hiredis reads the arguments that were given. */
#include "net/conn_impl.h"

#include "suite.h"
#include "wait.h"

#include <check.h>
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARGS_MAX = 48, PREFIX = 3, TEXT_MAX = 6000 };

static struct rlk_conn *conn; /* only its frames */
static unsigned seed;

static void set_up(void)
{
    conn = calloc(1, sizeof(*conn));
    ck_assert_ptr_nonnull(conn);
    seed = 1;
}

static void tear_down(void)
{
    rlk_conn_frame_forget(conn);
    free(conn);
}

static unsigned random_below(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

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
    char *owned;
    size_t len;
    void *read = NULL;
    const char *bytes = rlk_conn_frame(conn, r->argc, r->argv, r->len, &len, &owned);
    redisReader *reader = redisReaderCreate();

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(redisReaderFeed(reader, bytes, len), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &read), REDIS_OK);
    const redisReply *request = read;
    ck_assert_ptr_nonnull(request);
    ck_assert_int_eq(request->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_eq(request->elements, (size_t)r->argc);
    for (int i = 0; i < r->argc; i++) {
        ck_assert_int_eq(request->element[i]->type, REDIS_REPLY_STRING);
        ck_assert_uint_eq(request->element[i]->len, r->len[i]);
        ck_assert_int_eq(memcmp(request->element[i]->str, r->argv[i], r->len[i]), 0);
    }
    freeReplyObject(read);
    ck_assert_int_eq(redisReaderGetReply(reader, &read), REDIS_OK);
    ck_assert_ptr_null(read); /* and nothing behind it */
    ck_assert_uint_eq(reader->pos, reader->len);
    redisReaderFree(reader);
    redisFreeCommand(owned);
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

START_TEST(oversized_requests_are_not_cached)
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
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_same_shape_is_framed_once);
    tcase_add_test(tc, other_lengths_are_another_shape);
    tcase_add_test(tc, bytes_that_look_like_framing_are_bytes);
    tcase_add_test(tc, oversized_requests_are_not_cached);
    tcase_add_test(tc, any_sequence_of_requests_is_read_as_sent);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
