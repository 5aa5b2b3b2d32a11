/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit with=shims/alloc_shim.c */
/* Replies are put together in few blocks of memory. Whatever a server sends, in whatever
 * pieces, the accessors return it; and if memory runs out, nothing leaks. */
#include "net/conn_impl.h"

#include "alloc.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 1 << 20, DEPTH_MAX = 5, REPLY_LIMIT = 1 << 20 };

#define ANSWER                                                                           \
    "*8\r\n:1700000000123456\r\n:30000\r\n:0\r\n:0\r\n$4\r\nheld\r\n:30000\r\n:0\r\n"    \
    "$19\r\n1700000000123456000\r\n"

static struct rlk_conn *conn;
static unsigned seed;
static char bytes[BYTES_MAX];
static size_t used;

static void set_up(void)
{
    conn = calloc(1, sizeof(*conn));
    ck_assert_ptr_nonnull(conn);
    conn->label = "test";
    conn->reply_limit = REPLY_LIMIT;
    conn->fd = -1;
    conn->state = RLK_CONN_READY;
    ck_assert_int_eq(rlk_conn_reset_reader(conn), 0);
    seed = 1;
    used = 0;
}

static void tear_down(void)
{
    rlk_conn_free(conn);
    conn = NULL;
}

static unsigned random_below(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

static void feed(const char *text, size_t len)
{
    redisReaderFeed(conn->reader, text, len);
    conn->partial_len += len;
}

/* ---- random replies: made from numbers, and compared with what the same numbers make
 * again */

static void put(const char *text, size_t len)
{
    ck_assert_uint_le(used + len, sizeof(bytes));
    memcpy(bytes + used, text, len);
    used += len;
}

static void put_line(char type, long long value)
{
    char line[32];
    put(line, (size_t)snprintf(line, sizeof(line), "%c%lld\r\n", type, value));
}

static const size_t lengths[] = { 0, 1, 4, 19, 36, 200, 255, 256, 257, 950, 3000, 20000 };
static const unsigned counts[] = { 0, 1, 2, 8, 9, 12, 13, 40, 300 };

static char byte_of(size_t len, size_t i)
{
    return "\r\n$*:0a"[(len + i) % 7];
}

static void make(unsigned depth)
{
    switch (random_below(depth < DEPTH_MAX ? 5 : 3)) {
    case 0:
        put_line(':', random_below(1000000));
        break;
    case 1:
        put("$-1\r\n", 5);
        break;
    case 2: {
        size_t len = lengths[random_below(depth < 2 ? 12 : 5)];
        put_line('$', (long long)len);
        for (size_t i = 0; i < len; i++)
            put((char[]){ byte_of(len, i) }, 1);
        put("\r\n", 2);
        break;
    }
    default: {
        unsigned count = counts[random_below(depth == 0 ? 9 : 4)];
        put_line('*', count);
        for (unsigned i = 0; i < count; i++)
            make(depth + 1);
    }
    }
}

static void compare(const struct rlk_reply *reply, unsigned depth)
{
    ck_assert_ptr_nonnull(reply);
    switch (random_below(depth < DEPTH_MAX ? 5 : 3)) {
    case 0:
        ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_INTEGER);
        ck_assert_int_eq(rlk_reply_integer(reply), random_below(1000000));
        break;
    case 1:
        ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_NIL);
        break;
    case 2: {
        size_t len, want = lengths[random_below(depth < 2 ? 12 : 5)];
        ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_STRING);
        const char *text = rlk_reply_string(reply, &len);
        ck_assert_uint_eq(len, want);
        for (size_t i = 0; i < len; i++)
            if (text[i] != byte_of(len, i))
                ck_abort_msg("byte %zu of %zu", i, len);
        ck_assert_int_eq(text[len], '\0');
        break;
    }
    default: {
        unsigned count = counts[random_below(depth == 0 ? 9 : 4)];
        ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_ARRAY);
        ck_assert_uint_eq(rlk_reply_count(reply), count);
        for (unsigned i = 0; i < count; i++)
            compare(rlk_reply_at(reply, i), depth + 1);
    }
    }
}

/* ---- tests */

START_TEST(any_reply_in_any_pieces_is_what_was_sent)
{
    for (long n = test_count(1000, 100); n > 0; n--) {
        unsigned made_from = seed;
        struct rlk_reply *reply = NULL;
        used = 0;
        make(0);
        for (size_t at = 0; at < used;) {
            size_t len = 1 + random_below(random_below(2) ? 7 : 5000);
            if (len > used - at)
                len = used - at;
            ck_assert_ptr_null(reply);
            feed(bytes + at, len);
            at += len;
            enum rlk_parsed parsed = rlk_conn_parse(conn, &reply);
            ck_assert_int_eq(parsed, at == used ? RLK_PARSED_REPLY : RLK_PARSED_PARTIAL);
        }
        unsigned go_on_from = seed;
        seed = made_from;
        compare(reply, 0);
        seed = go_on_from;
        if (seed % 2)
            rlk_reply_free(reply);
        else
            rlk_reply_give_back(conn, reply);
    }
}
END_TEST

START_TEST(replies_outlive_the_next_ones_and_the_connection)
{
    struct rlk_reply *first = NULL, *second = NULL;
    size_t len;

    feed("$5\r\nfirst\r\n*1\r\n$6\r\nsecond\r\n*2\r\n:1\r\n", 35);
    ck_assert_int_eq(rlk_conn_parse(conn, &first), RLK_PARSED_REPLY);
    ck_assert_int_eq(rlk_conn_parse(conn, &second), RLK_PARSED_REPLY);
    ck_assert_int_eq(rlk_conn_parse(conn, &(struct rlk_reply *){ NULL }),
                     RLK_PARSED_PARTIAL); /* the connection frees the partial reply */
    rlk_conn_free(conn);
    conn = NULL;
    ck_assert_str_eq(rlk_reply_string(first, &len), "first");
    ck_assert_str_eq(rlk_reply_text_at(second, 0, &len), "second");
    rlk_reply_free(first);
    rlk_reply_free(second);
}
END_TEST

static long allocations_of(const char *text)
{
    struct rlk_reply *reply = NULL;

    feed(text, strlen(text));
    test_alloc_this_thread(true);
    test_alloc_fail_at(0);
    enum rlk_parsed parsed = rlk_conn_parse(conn, &reply);
    long count = test_alloc_count();
    test_alloc_this_thread(false);
    ck_assert_int_eq(parsed, RLK_PARSED_REPLY);
    rlk_reply_free(reply);
    return count;
}

START_TEST(answer_costs_one_allocation)
{
    if (!test_alloc_available())
        return;
    ck_assert_int_eq(allocations_of(ANSWER), 1);
    ck_assert_int_eq(allocations_of("-NOSCRIPT No matching script.\r\n"), 1);
}
END_TEST

/* So that no wait depends on a thread's cache in malloc. */
START_TEST(given_back_it_costs_the_next_one_none)
{
    struct rlk_reply *reply = NULL, *kept = NULL;
    size_t len;

    if (!test_alloc_available())
        return;
    feed(ANSWER, sizeof(ANSWER) - 1);
    ck_assert_int_eq(rlk_conn_parse(conn, &reply), RLK_PARSED_REPLY);
    rlk_reply_give_back(conn, reply);
    rlk_reply_give_back(conn, NULL);
    ck_assert_int_eq(allocations_of(ANSWER), 0);
    ck_assert_int_eq(allocations_of(ANSWER), 1); /* that one was freed, not given back */
    /* one block is kept, the larger of two; a very large one is not */
    for (int i = 0; i < 3; i++) {
        feed(i < 2 ? ANSWER : "$1\r\nx\r\n", i < 2 ? sizeof(ANSWER) - 1 : 7);
        ck_assert_int_eq(rlk_conn_parse(conn, i ? &kept : &reply), RLK_PARSED_REPLY);
        rlk_reply_give_back(conn, i ? kept : reply);
    }
    ck_assert_int_eq(allocations_of(ANSWER), 0);
    put_line('$', 30000);
    memset(bytes + used, 'x', 30000);
    used += 30000;
    put("\r\n", 2);
    feed(bytes, used);
    ck_assert_int_eq(rlk_conn_parse(conn, &reply), RLK_PARSED_REPLY);
    rlk_reply_string(reply, &len);
    ck_assert_uint_eq(len, 30000);
    rlk_reply_give_back(conn, reply);
    ck_assert_int_eq(allocations_of(ANSWER), 1);
}
END_TEST

START_TEST(nth_allocation_failing_ends_the_reply_and_leaks_nothing)
{
    bool failed = true;

    if (!test_alloc_available())
        return;
    for (int n = 1; failed; n++) {
        struct rlk_reply *reply = NULL;
        ck_assert_int_lt(n, 200);
        tear_down();
        long live = test_alloc_live();
        set_up();
        put_line('*', 300); /* its elements do not fit into the first block */
        put(ANSWER, sizeof(ANSWER) - 1);
        put_line('$', 30000);
        memset(bytes + used, 'x', 30000);
        used += 30000;
        put("\r\n", 2);
        put_line('*', 0);
        for (int i = 3; i < 300; i++)
            put_line(':', i);
        feed(bytes, used);
        test_alloc_this_thread(true);
        test_alloc_fail_at(n);
        enum rlk_parsed parsed = rlk_conn_parse(conn, &reply);
        failed = test_alloc_failed() > 0;
        test_alloc_fail_at(0);
        test_alloc_this_thread(false);
        ck_assert_int_eq(parsed, failed ? RLK_PARSED_NO_MEMORY : RLK_PARSED_REPLY);
        ck_assert(failed == (reply == NULL));
        if (reply)
            rlk_reply_free(reply);
        tear_down();
        ck_assert_int_eq(test_alloc_live(), live);
    }
}
END_TEST

START_TEST(announced_elements_are_bounded_over_the_whole_reply)
{
    struct rlk_reply *reply = NULL;

    conn->reply_limit = 100;
    feed("*50\r\n*50\r\n", 10);
    ck_assert_int_eq(rlk_conn_parse(conn, &reply), RLK_PARSED_PARTIAL);
    feed("*1\r\n", 4);
    ck_assert_int_eq(rlk_conn_parse(conn, &reply), RLK_PARSED_BAD);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conn_reply");
    TCase *tc = tcase_create("replies");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, any_reply_in_any_pieces_is_what_was_sent);
    tcase_add_test(tc, replies_outlive_the_next_ones_and_the_connection);
    tcase_add_test(tc, answer_costs_one_allocation);
    tcase_add_test(tc, given_back_it_costs_the_next_one_none);
    tcase_add_test(tc, nth_allocation_failing_ends_the_reply_and_leaks_nothing);
    tcase_add_test(tc, announced_elements_are_bounded_over_the_whole_reply);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
