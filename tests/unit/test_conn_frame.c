/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* A connection keeps the heads of requests to run scripts, and appends other arguments to
 * them. Whatever is framed in whatever order, hiredis reads the words that were given. */
#include "net/conn_impl.h"

#include "suite.h"
#include "wait.h"

#include <check.h>
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_SIZE = 1 << 16 };

static struct rlk_conn *conn; /* only its frames are used */
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

static void assert_read_as_sent(const struct rlk_request *r, bool with_text)
{
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t argv_len[RLK_REQUEST_ARGS_MAX];
    char keys[RLK_REQUEST_KEYS_SIZE], *owned;
    size_t len;
    void *read = NULL;
    const char *bytes = rlk_conn_frame(conn, r, with_text, &len, &owned);
    redisReader *reader = redisReaderCreate();

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(redisReaderFeed(reader, bytes, len), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &read), REDIS_OK);
    const redisReply *request = read;
    ck_assert_ptr_nonnull(request);
    ck_assert_int_eq(request->type, REDIS_REPLY_ARRAY);
    ck_assert_uint_eq(request->elements, (size_t)r->argc);
    rlk_request_words(r, with_text, argv, argv_len, keys);
    for (int i = 0; i < r->argc; i++) {
        ck_assert_int_eq(request->element[i]->type, REDIS_REPLY_STRING);
        ck_assert_uint_eq(request->element[i]->len, argv_len[i]);
        ck_assert_int_eq(memcmp(request->element[i]->str, argv[i], argv_len[i]), 0);
    }
    freeReplyObject(read);
    ck_assert_int_eq(redisReaderGetReply(reader, &read), REDIS_OK);
    ck_assert_ptr_null(read); /* no bytes follow */
    ck_assert_uint_eq(reader->pos, reader->len);
    redisReaderFree(reader);
    redisFreeCommand(owned);
}

static int heads_kept(void)
{
    int n = 0;
    for (int i = 0; i < RLK_FRAME_COUNT; i++)
        n += conn->frames[i].head_len > 0;
    return n;
}

static void begin(struct rlk_request *r, enum rlk_script_id script, const char *name)
{
    rlk_request_init(r, script, false, name, strlen(name));
}

START_TEST(words_of_a_request_are_command_hash_keys_and_arguments)
{
    const char *argv[RLK_REQUEST_ARGS_MAX];
    size_t len[RLK_REQUEST_ARGS_MAX];
    char keys[RLK_REQUEST_KEYS_SIZE];
    struct rlk_request r;

    begin(&r, RLK_FAIR_RELEASE, "orders");
    rlk_request_add_int(&r, -17);
    rlk_request_add(&r, "", 0);
    rlk_request_words(&r, false, argv, len, keys);
    const struct rlk_script *script = &rlk_scripts[RLK_FAIR_RELEASE];
    ck_assert_int_eq(r.argc, RLK_REQUEST_FIRST_KEY + script->key_count + 3);
    ck_assert_mem_eq(argv[0], "EVALSHA", len[0]);
    ck_assert_uint_eq(len[1], 40);
    ck_assert_mem_eq(argv[1], script->sha, 40);
    ck_assert_int_eq(argv[2][0], '0' + script->key_count);
    ck_assert_uint_eq(len[RLK_REQUEST_FIRST_KEY], strlen("orders"));
    ck_assert_mem_eq(argv[RLK_REQUEST_FIRST_KEY], "orders", strlen("orders"));
    ck_assert_mem_eq(argv[r.argc - 3], RLK_LAYOUT, len[r.argc - 3]);
    ck_assert_uint_eq(len[r.argc - 2], 3);
    ck_assert_mem_eq(argv[r.argc - 2], "-17", 3);
    ck_assert_uint_eq(len[r.argc - 1], 0);
    rlk_request_words(&r, true, argv, len, keys);
    ck_assert_mem_eq(argv[0], "EVAL", len[0]);
    ck_assert_str_eq(argv[1], script->text);
    assert_read_as_sent(&r, false);
    assert_read_as_sent(&r, true);
}
END_TEST

START_TEST(requests_about_one_lock_share_a_head)
{
    for (int i = 0; i < 50; i++) {
        char text[16];
        struct rlk_request r;
        begin(&r, RLK_FAIR_RELEASE, "orders");
        rlk_request_add(&r, text, (size_t)snprintf(text, sizeof(text), "%d", i * i * i));
        rlk_request_add(&r, "", 0);
        assert_read_as_sent(&r, false);
    }
    ck_assert_int_eq(heads_kept(), 1);
}
END_TEST

START_TEST(another_lock_has_another_head)
{
    static const char *const names[] = { "a",  "b", "a",   "{a}", "ab",
                                         "ba", "a", "abc", "abd", "ab" };
    for (size_t i = 0; i < 4 * sizeof(names) / sizeof(names[0]); i++) {
        struct rlk_request r;
        begin(&r, RLK_FAIR_RELEASE, names[i % (sizeof(names) / sizeof(names[0]))]);
        rlk_request_add(&r, "-", 1);
        assert_read_as_sent(&r, false);
    }
    ck_assert_int_eq(heads_kept(), RLK_FRAME_COUNT);
}
END_TEST

START_TEST(another_number_of_arguments_has_another_head)
{
    for (int i = 0; i < 12; i++) {
        struct rlk_request r;
        begin(&r, RLK_FAIR_RELEASE, "orders");
        for (int n = i % 3; n >= 0; n--)
            rlk_request_add_int(&r, n);
        assert_read_as_sent(&r, false);
    }
    ck_assert_int_eq(heads_kept(), 3);
}
END_TEST

START_TEST(bytes_that_look_like_framing_are_bytes)
{
    static const char *const texts[] = { "\r\n$3\r\nxyz\r\n", "*2\r\n$1\r\na\r\n",
                                         "0123456789ab", "\n\n\n\n\n\n\n\n\n\n\n\n" };
    for (size_t i = 0; i < 3 * sizeof(texts) / sizeof(texts[0]); i++) {
        struct rlk_request r;
        begin(&r, RLK_FAIR_RELEASE, texts[i % 4]);
        for (int n = 0; n < 3; n++) {
            const char *text = texts[(i + (size_t)n) % 4];
            rlk_request_add(&r, text, strlen(text));
        }
        assert_read_as_sent(&r, false);
    }
}
END_TEST

START_TEST(a_request_with_a_borrowed_argument_is_not_kept)
{
    static char text[BYTES_SIZE];
    struct rlk_request r;

    memset(text, 'x', sizeof(text));
    begin(&r, RLK_FAIR_REFRESH, "orders");
    rlk_request_add_int(&r, 5);
    rlk_request_add_borrowed(&r, text, sizeof(text));
    assert_read_as_sent(&r, false);
    assert_read_as_sent(&r, true);
    ck_assert_int_eq(heads_kept(), 0);
}
END_TEST

START_TEST(any_sequence_of_requests_is_read_as_sent)
{
    static const size_t lengths[] = { 0, 1, 9, 10, 36, 99, 100, 101, 255 };
    static char bytes[BYTES_SIZE];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = "\r\n$*0123456789abc"[random_below(17)];
    for (long n = test_count(3000, 300); n > 0; n--) {
        struct rlk_request r;
        size_t name_len = 1 + random_below(RLOCK_NAME_MAX);
        rlk_request_init(&r, (enum rlk_script_id)random_below(RLK_SCRIPT_COUNT), false,
                         bytes + random_below(3), random_below(2) ? name_len : 40);
        for (unsigned args = 1 + random_below(5); args > 0; args--) {
            if (random_below(2))
                rlk_request_add_int(&r, (int64_t)random_below(1u << 15) - 999);
            else
                rlk_request_add(&r, bytes + random_below(1u << 15),
                                lengths[random_below(9)]);
        }
        assert_read_as_sent(&r, random_below(9) == 0);
    }
}
END_TEST

START_TEST(numbers_are_written_with_all_their_digits)
{
    char buf[24], expected[24];
    uint64_t power = 1;

    for (int digits = 1; digits <= 20; digits++) {
        const uint64_t near[] = { power - 1, power, power + 1, 3 * power + 7 };
        for (size_t i = 0; i < 4; i++) {
            size_t len = rlk_id_write_number(buf, near[i]);
            snprintf(expected, sizeof(expected), "%llu", (unsigned long long)near[i]);
            ck_assert_uint_eq(len, strlen(expected));
            ck_assert_mem_eq(buf, expected, len);
        }
        power *= 10;
    }
    ck_assert_uint_eq(rlk_id_write_number(buf, UINT64_MAX), 20);
    ck_assert_mem_eq(buf, "18446744073709551615", 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_frame");
    TCase *tc = tcase_create("frames");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, words_of_a_request_are_command_hash_keys_and_arguments);
    tcase_add_test(tc, requests_about_one_lock_share_a_head);
    tcase_add_test(tc, another_lock_has_another_head);
    tcase_add_test(tc, another_number_of_arguments_has_another_head);
    tcase_add_test(tc, bytes_that_look_like_framing_are_bytes);
    tcase_add_test(tc, a_request_with_a_borrowed_argument_is_not_kept);
    tcase_add_test(tc, any_sequence_of_requests_is_read_as_sent);
    tcase_add_test(tc, numbers_are_written_with_all_their_digits);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
