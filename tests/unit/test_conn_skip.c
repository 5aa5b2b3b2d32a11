/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The filter lets through all of a stream, however it is cut into pieces, except for
 * strings that are too long: a nil stands in place of each. */
#include "net/conn_skip.h"

#include "suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OVER = 10, STREAM_MAX = 1 << 16, ROUNDS = 2000 };

static struct rlk_conn_skip skip;
static char got[STREAM_MAX];
static size_t got_len, most;

static void collect(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    ck_assert_uint_le(got_len + len, sizeof(got));
    memcpy(got + got_len, bytes, len);
    got_len += len;
}

static void set_up(void)
{
    skip = (struct rlk_conn_skip){ .over = OVER };
    got_len = 0;
}

static void feed(const char *bytes, size_t len)
{
    size_t before = got_len;
    size_t passed = rlk_conn_skip_filter(&skip, bytes, len, collect, NULL);
    ck_assert_uint_eq(got_len - before, passed);
}

static bool is(const char *wanted, size_t len)
{
    return got_len == len && memcmp(got, wanted, len) == 0;
}

static const struct {
    const char *stream, *wanted; /* NULL: the same */
} streams[] = {
    { "*3\r\n$7\r\nmessage\r\n$4\r\nname\r\n$10\r\n0123456789\r\n", NULL },
    { "*3\r\n$7\r\nmessage\r\n$4\r\nname\r\n$11\r\n0123456789x\r\n:1\r\n",
      "*3\r\n$7\r\nmessage\r\n$4\r\nname\r\n$-1\r\n:1\r\n" },
    { "$13\r\n$3\r\nabc\r\n$9\r\n\r\n$3\r\nabc\r\n", "$-1\r\n$3\r\nabc\r\n" },
    { "$10\r\n$99\r\n\r\n*9\r\n\r\n$2\r\n\r\n\r\n", NULL },
    { "$12\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n$12\r\n0123456789ab\r\n", "$-1\r\n$-1\r\n" },
    { "$-1\r\n$0\r\n\r\n+a line of any length $99\r\n-ERR $1\r\n:-5\r\n*-1\r\n*0\r\n",
      NULL },
    { "$000000000000000000012\r\n0123456789ab\r\n+x\r\n", "$-1\r\n+x\r\n" },
    /* no RESP: the reader must see it */
    { "hello\r\n$5x\r\n$99\r\nwhatever comes behind it", NULL },
    { "$\r\n$99\r\n", NULL },
    { "$-2\r\n$99\r\n", NULL },
    { "$12\n0123456789ab\r\n", NULL },
    { "$99999999999999999999\r\n$99\r\n", NULL },
    { "$18446744073709551615\r\n$99\r\n", NULL },
    { "$0000000000000000000000012\r\n0123456789ab\r\n", NULL }, /* the line is too long */
    { "$1234567890123456789012345678901234567890", NULL },
};
enum { STREAMS = sizeof(streams) / sizeof(streams[0]) };

START_TEST(strings_that_are_too_long_become_nils_wherever_the_stream_is_cut)
{
    const char *stream = streams[_i].stream;
    const char *wanted = streams[_i].wanted ? streams[_i].wanted : stream;
    size_t len = strlen(stream);
    for (size_t cut = 0; cut <= len; cut++)
        for (size_t step = 1; step <= len; step++) {
            set_up();
            feed(stream, cut);
            for (size_t at = cut; at < len; at += step)
                feed(stream + at, len - at < step ? len - at : step);
            if (!is(wanted, strlen(wanted)) && skip.head_len > 0) {
                /* an incomplete line decides nothing yet */
                ck_assert_uint_eq(got_len + skip.head_len, strlen(wanted));
                continue;
            }
            ck_assert_msg(is(wanted, strlen(wanted)), "\"%s\" by %zu, %zu", stream, cut,
                          step);
        }
}
END_TEST

static unsigned seed;

static unsigned draw(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* Appends one more element of any kind, and the expected result. */
static void append(char *stream, size_t *len, char *wanted, size_t *wanted_len)
{
    char element[64];
    int n;
    switch (draw(4)) {
    case 0:
        n = sprintf(element, "*%u\r\n", draw(5));
        break;
    case 1:
        n = sprintf(element, "%c%u\r\n", "+-:"[draw(3)], draw(100000));
        break;
    default: {
        unsigned size = draw(2 * OVER);
        n = sprintf(element, "$%u\r\n", size);
        for (unsigned i = 0; i < size; i++)
            element[n++] = "$*\r\n019x"[draw(8)];
        n += sprintf(element + n, "\r\n");
        if (size > OVER) {
            memcpy(stream + *len, element, (size_t)n);
            *len += (size_t)n;
            memcpy(wanted + *wanted_len, "$-1\r\n", 5);
            *wanted_len += 5;
            return;
        }
    }
    }
    memcpy(stream + *len, element, (size_t)n);
    memcpy(wanted + *wanted_len, element, (size_t)n);
    *len += (size_t)n;
    *wanted_len += (size_t)n;
}

START_TEST(long_strings_of_random_streams_become_nils)
{
    static char stream[STREAM_MAX], wanted[STREAM_MAX];
    seed = 1;
    for (int round = 0; round < ROUNDS; round++) {
        size_t len = 0, wanted_len = 0;
        for (unsigned n = 1 + draw(20); n > 0; n--)
            append(stream, &len, wanted, &wanted_len);
        set_up();
        for (size_t at = 0, step; at < len; at += step) {
            step = 1 + draw(30);
            step = step < len - at ? step : len - at;
            feed(stream + at, step);
        }
        ck_assert_msg(is(wanted, wanted_len), "round %d", round);
        ck_assert(!skip.off);
    }
}
END_TEST

static void count(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    most = len > most ? len : most;
    got_len += len;
}

START_TEST(skipped_bytes_are_not_stored)
{
    enum { CHUNK = 16384, CHUNKS = 65536 };
    static const char head[] = "$1073741824\r\n", end[] = "\r\n+next\r\n";
    static char chunk[CHUNK];
    memset(chunk, '$', sizeof(chunk));
    rlk_conn_skip_filter(&skip, head, sizeof(head) - 1, count, NULL);
    for (int i = 0; i < CHUNKS; i++)
        rlk_conn_skip_filter(&skip, chunk, sizeof(chunk), count, NULL);
    rlk_conn_skip_filter(&skip, end, sizeof(end) - 1, count, NULL);
    ck_assert_uint_eq(got_len, strlen("$-1\r\n+next\r\n"));
    ck_assert_uint_le(most, strlen("+next\r\n"));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("connection: skipping");
    TCase *tc = tcase_create("skipping");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(
        tc, strings_that_are_too_long_become_nils_wherever_the_stream_is_cut, 0, STREAMS);
    tcase_add_test(tc, long_strings_of_random_streams_become_nils);
    tcase_add_test(tc, skipped_bytes_are_not_stored);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
