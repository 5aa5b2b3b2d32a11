/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* The parser of mailbox messages, on good, cut and hostile input. */
#include "net/mailbox.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "11111111-1111-4111-8111-111111111111:3:17:m3000"
#define ID2 "11111111-1111-4111-8111-111111111111:4:9:R250b"

static struct rlk_mail mail;

/* Parses a copy that ends where its heap block ends, so that Valgrind and
 * AddressSanitizer notice a read beyond. */
static bool parse(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    bool ok = rlk_mailbox_parse(&mail, copy, len);
    if (ok) {
        ck_assert_int_ge((int)mail.name_len, 1);
        ck_assert_int_le((int)mail.name_len, RLOCK_NAME_MAX);
        ck_assert(mail.name >= copy && mail.name + mail.name_len == copy + len);
    }
    if (ok && mail.kind == RLK_MAIL_GRANT) {
        ck_assert_uint_ge(mail.grant_count, 1);
        ck_assert_uint_le(mail.grant_count, RLK_MAIL_GRANTS_MAX);
        for (size_t i = 0; i < mail.grant_count; i++) {
            ck_assert_int_gt((int)mail.grants[i].id_len, 0);
            ck_assert(mail.grants[i].id > copy &&
                      mail.grants[i].id + mail.grants[i].id_len < mail.name);
            ck_assert_int_gt(mail.grants[i].ticket, 0);
        }
    }
    free(copy);
    return ok;
}

static bool parse_text(const char *text)
{
    return parse(text, strlen(text));
}

/* ---- good messages */

START_TEST(grant_is_read)
{
    const char text[] =
        "1 grant 3 1700000000000000000 1 1 " ID " 1700000000000001 orders";
    ck_assert(rlk_mailbox_parse(&mail, text, strlen(text)));
    ck_assert_int_eq(mail.kind, RLK_MAIL_GRANT);
    ck_assert_uint_eq(mail.flags, 3);
    ck_assert_uint_eq(mail.token, UINT64_C(1700000000000000000));
    ck_assert_uint_eq(mail.token_count, 1);
    ck_assert_uint_eq(mail.grant_count, 1);
    ck_assert_uint_eq(mail.grants[0].id_len, strlen(ID));
    ck_assert_int_eq(memcmp(mail.grants[0].id, ID, strlen(ID)), 0);
    ck_assert_int_eq(mail.grants[0].ticket, INT64_C(1700000000000001));
    ck_assert_uint_eq(mail.name_len, 6);
    ck_assert_int_eq(memcmp(mail.name, "orders", 6), 0);
}
END_TEST

START_TEST(grant_of_several_is_read)
{
    const char text[] = "1 grant 0 5 2 2 " ID " 7 " ID2 " 8 n";
    ck_assert(rlk_mailbox_parse(&mail, text, strlen(text)));
    ck_assert_uint_eq(mail.grant_count, 2);
    ck_assert_int_eq(mail.grants[1].ticket, 8);
    ck_assert_int_eq(memcmp(mail.grants[1].id, ID2, mail.grants[1].id_len), 0);
    ck_assert_uint_eq(mail.token_count, 2);
}
END_TEST

START_TEST(messages_lost_and_wanted_are_parsed)
{
    const char lost[] = "1 lost " ID " a", wanted[] = "1 wanted " ID " a";
    ck_assert(rlk_mailbox_parse(&mail, lost, strlen(lost)));
    ck_assert_int_eq(mail.kind, RLK_MAIL_LOST);
    ck_assert_uint_eq(mail.id_len, strlen(ID));
    ck_assert(rlk_mailbox_parse(&mail, wanted, strlen(wanted)));
    ck_assert_int_eq(mail.kind, RLK_MAIL_RECALL);
    ck_assert_uint_eq(mail.name_len, 1);
}
END_TEST

START_TEST(name_may_hold_any_byte)
{
    char text[RLOCK_NAME_MAX + 128], name[RLOCK_NAME_MAX];
    for (int start = 0; start < 256; start += 50) {
        size_t at = (size_t)sprintf(text, "1 lost " ID " ");
        for (int i = 0; i < RLOCK_NAME_MAX; i++)
            name[i] = (char)(start + i);
        memcpy(text + at, name, sizeof(name));
        ck_assert(rlk_mailbox_parse(&mail, text, at + sizeof(name)));
        ck_assert_uint_eq(mail.name_len, sizeof(name));
        ck_assert_int_eq(memcmp(mail.name, name, sizeof(name)), 0);
    }
    ck_assert(parse_text("1 lost " ID " a b  c "));
    ck_assert_uint_eq(mail.name_len, 7);
}
END_TEST

/* ---- bad messages */

static const char *const bad[] = {
    "",
    " ",
    "1",
    "1 ",
    "grant",
    "2 grant 0 0 1 1 " ID " 7 n", /* another version */
    "0 grant 0 0 1 1 " ID " 7 n",
    "11 lost " ID " n",
    "18446744073709551617 lost " ID " n", /* 2^64 + 1 */
    "-1 lost " ID " n",
    "1  lost " ID " n",
    "1 Lost " ID " n",
    "1 los " ID " n",
    "1 lostx " ID " n",
    "1 release " ID " n",
    "1 lost " ID,
    "1 lost " ID " ",
    "1 lost  n",
    "1 grant",
    "1 grant 0 0 1 0 n", /* no id */
    "1 grant 0 0 1 257 " ID " 7 n",
    "1 grant 0 0 1 2 " ID " 7 n", /* one fewer than the count says */
    "1 grant 0 0 1 18446744073709551615 " ID " 7 n",
    "1 grant 4294967296 0 1 1 " ID " 7 n",
    "1 grant 0 9223372036854775808 1 1 " ID " 7 n",
    "1 grant 0 99999999999999999999999 1 1 " ID " 7 n",
    "1 grant 0 0 -1 1 " ID " 7 n",
    "1 grant 0 0x0 1 1 " ID " 7 n",
    "1 grant 0 0 1 1 " ID " 0 n", /* no ticket */
    "1 grant 0 0 1 1 " ID " 1.7e15 n",
    "1 grant 0 0 1 1 " ID " 9223372036854775808 n",
    "1 grant 0 0 1 1 " ID " 7",
    "1 grant 0 0 1 1 " ID " 7 ",
    "1 grant 0 0 1 1  7 n",
};

START_TEST(malformed_message_is_refused)
{
    ck_assert_msg(!parse_text(bad[_i]), "%s", bad[_i]);
}
END_TEST

START_TEST(name_over_200_bytes_is_refused)
{
    char text[RLOCK_NAME_MAX + 128];
    size_t at = (size_t)sprintf(text, "1 lost " ID " ");
    memset(text + at, 'n', RLOCK_NAME_MAX + 1);
    ck_assert(parse(text, at + RLOCK_NAME_MAX));
    ck_assert(!parse(text, at + RLOCK_NAME_MAX + 1));
}
END_TEST

START_TEST(no_prefix_is_read_beyond_its_end)
{
    static const char *const good[] = {
        "1 grant 3 1700000000000000000 1 1 " ID " 1700000000000001 orders",
        "1 grant 0 5 2 2 " ID " 7 " ID2 " 8 orders",
        "1 lost " ID " orders",
        "1 wanted " ID " orders",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        size_t len = strlen(good[i]), name = len - strlen("orders");
        /* a text that ends before the name is no message */
        for (size_t cut = 0; cut <= len; cut++)
            ck_assert_int_eq(parse(good[i], cut), cut > name);
    }
}
END_TEST

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

START_TEST(random_bytes_do_no_harm)
{
    uint32_t state = 12345;
    char text[300];
    for (long n = test_count(300000, 50000) / test_ms(1); n > 0; n--) {
        size_t len = next_random(&state) % sizeof(text);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)next_random(&state);
        parse(text, len);
    }
}
END_TEST

START_TEST(damaged_messages_do_no_harm)
{
    static const char alphabet[] = "0123456789 :agrntlosw-\n";
    const char good[] = "1 grant 3 1700000000000000000 1 2 " ID " 17 " ID2 " 18 orders";
    uint32_t state = 1;
    char text[sizeof(good) + 8];
    for (long n = test_count(300000, 50000) / test_ms(1); n > 0; n--) {
        size_t len = sizeof(good) - 1;
        memcpy(text, good, len);
        for (uint32_t changes = next_random(&state) % 4; changes > 0; changes--) {
            size_t at = next_random(&state) % len;
            char c = alphabet[next_random(&state) % (sizeof(alphabet) - 1)];
            if (next_random(&state) % 3 == 0) {
                memmove(text + at, text + at + 1, len - at - 1);
                len--;
            } else {
                text[at] = c;
            }
        }
        parse(text, len);
    }
}
END_TEST

START_TEST(most_grants_that_fit_are_read)
{
    char *text = malloc((RLK_MAIL_GRANTS_MAX + 1) * 80);
    int at = sprintf(text, "1 grant 0 0 1 %d ", RLK_MAIL_GRANTS_MAX);
    for (int i = 0; i < RLK_MAIL_GRANTS_MAX; i++)
        at += sprintf(text + at, ID " %d ", i + 1);
    text[at++] = 'n';
    ck_assert(parse(text, (size_t)at));
    ck_assert_uint_eq(mail.grant_count, RLK_MAIL_GRANTS_MAX);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("mailbox");
    TCase *tc = tcase_create("good");
    tcase_add_test(tc, grant_is_read);
    tcase_add_test(tc, grant_of_several_is_read);
    tcase_add_test(tc, most_grants_that_fit_are_read);
    tcase_add_test(tc, messages_lost_and_wanted_are_parsed);
    tcase_add_test(tc, name_may_hold_any_byte);
    suite_add_tcase(suite, tc);

    tc = tcase_create("bad");
    tcase_add_loop_test(tc, malformed_message_is_refused, 0,
                        sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tc, name_over_200_bytes_is_refused);
    tcase_add_test(tc, no_prefix_is_read_beyond_its_end);
    tcase_add_test(tc, random_bytes_do_no_harm);
    tcase_add_test(tc, damaged_messages_do_no_harm);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
