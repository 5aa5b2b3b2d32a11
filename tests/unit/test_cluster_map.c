/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/* Hash slots of names, redirects, and the map of a cluster, whatever a server replies. */
#include "net/cluster_map.h"
#include "net/conn_impl.h"
#include "net/redirect.h"

#include "base/error.h"
#include "suite.h"

#include <check.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MAX = 4 << 20, REPLY_LIMIT = 64 << 20 };

static struct rlk_conn *conn;
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
    used = 0;
    rlk_error_clear();
}

static void tear_down(void)
{
    rlk_conn_free(conn);
}

/* ---- hash slots */

static const struct {
    const char *name;
    unsigned hash_slot;
} known[] = {
    /* the first is the check value of the CRC; the others are what CLUSTER KEYSLOT of
     * Redis 7.0.15 says */
    { "123456789", 12739 },  { "foo", 12182 }, { "{user1000}.following", 3443 },
    { "foo{bar}zap", 5061 }, { "bar", 5061 },
};

/* rule: P18 */
START_TEST(hash_slot_is_that_of_the_tag_or_of_the_name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        ck_assert_uint_eq(rlk_key_hash_slot(known[i].name, strlen(known[i].name)),
                          known[i].hash_slot);
    for (int key = 0; key < RLK_KEY_COUNT; key++) {
        char buf[RLK_KEY_SIZE];
        size_t len = rlk_key_write(buf, (enum rlk_key)key, "a name", 6);
        ck_assert_uint_eq(rlk_key_hash_slot(buf, len), rlk_key_hash_slot("a name", 6));
        len = rlk_key_write(buf, (enum rlk_key)key, "x{t}y", 5);
        ck_assert_uint_eq(rlk_key_hash_slot(buf, len), rlk_key_hash_slot("t", 1));
    }
}
END_TEST

/* ---- redirects */

static const struct {
    const char *text;
    int kind;
    unsigned hash_slot, port;
    const char *host;
} redirects[] = {
    { "MOVED 3999 127.0.0.1:6381", RLK_REDIRECT_MOVED, 3999, 6381, "127.0.0.1" },
    { "ASK 0 h.example:1", RLK_REDIRECT_ASK, 0, 1, "h.example" },
    { "MOVED 16383 2001:db8::1:65535", RLK_REDIRECT_MOVED, 16383, 65535, "2001:db8::1" },
    { "MOVED 5 :7000", RLK_REDIRECT_MOVED, 5, 7000, "" },
    { "MOVED 5 ?:7000", RLK_REDIRECT_MOVED, 5, 7000, "?" },
    { "MOVED 16384 h:1", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED -1 h:1", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1 h:0", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1 h:65536", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1 h:", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1 h", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED", RLK_REDIRECT_NONE, 0, 0, "" },
    { "MOVED 1 a b:1", RLK_REDIRECT_NONE, 0, 0, "" },
    { "ASKING 1 h:1", RLK_REDIRECT_NONE, 0, 0, "" },
    { "ERR MOVED 1 h:1", RLK_REDIRECT_NONE, 0, 0, "" },
};

/* rule: P18 */
START_TEST(redirect_names_hash_slot_and_address)
{
    struct rlk_redirect r;
    bool is = rlk_redirect_parse(&r, redirects[_i].text, strlen(redirects[_i].text));
    ck_assert_int_eq((int)r.kind, redirects[_i].kind);
    ck_assert_int_eq(is, redirects[_i].kind != RLK_REDIRECT_NONE);
    if (!is)
        return;
    ck_assert_uint_eq(r.hash_slot, redirects[_i].hash_slot);
    ck_assert_uint_eq(r.port, redirects[_i].port);
    ck_assert_str_eq(r.host, redirects[_i].host);
}
END_TEST

START_TEST(host_that_is_too_long_is_no_redirect)
{
    char text[400];
    struct rlk_redirect r;
    memset(text, 'a', sizeof(text));
    memcpy(text, "MOVED 1 ", 8);
    memcpy(text + sizeof(text) - 2, ":1", 2);
    ck_assert(!rlk_redirect_parse(&r, text, sizeof(text)));
}
END_TEST

/* ---- maps */

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(bytes + used, sizeof(bytes) - used, format, args);
    va_end(args);
    ck_assert(len >= 0 && (size_t)len < sizeof(bytes) - used);
    used += (size_t)len;
}

static void put_string(const char *text)
{
    put("$%zu\r\n%s\r\n", strlen(text), text);
}

/* A range with one node. host NULL: nil. */
static void put_range(unsigned first, unsigned last, const char *host, unsigned port,
                      const char *id)
{
    put("*3\r\n:%u\r\n:%u\r\n*3\r\n", first, last);
    if (host)
        put_string(host);
    else
        put("$-1\r\n");
    put(":%u\r\n", port);
    put_string(id);
}

static int parse(struct rlk_cluster_map **ret_map)
{
    struct rlk_reply *reply = NULL;
    redisReaderFeed(conn->reader, bytes, used);
    conn->partial_len += used;
    ck_assert_int_eq(rlk_conn_parse(conn, &reply), RLK_PARSED_REPLY);
    int rc = rlk_cluster_map_parse(ret_map, reply, "asked.example");
    rlk_reply_free(reply);
    return rc;
}

static const struct rlk_cluster_master *owner(const struct rlk_cluster_map *map,
                                              unsigned hash_slot)
{
    return map->owner[hash_slot] == 0 ? NULL : &map->masters[map->owner[hash_slot] - 1];
}

/* rule: P18 */
START_TEST(map_says_which_master_has_which_hash_slots)
{
    struct rlk_cluster_map *map = NULL;
    put("*4\r\n");
    put_range(0, 99, "a.example", 1, "id-a");
    put_range(100, 100, "b.example", 1, "id-b");
    put_range(200, 16383, "a.example", 1, "id-a");
    put_range(150, 160, "a.example", 2, "id-c");
    ck_assert_int_eq(parse(&map), 0);
    ck_assert_uint_eq(map->master_count, 3);
    ck_assert_str_eq(owner(map, 0)->host, "a.example");
    ck_assert_str_eq(owner(map, 0)->id, "id-a");
    ck_assert_ptr_eq(owner(map, 0), owner(map, 99));
    ck_assert_ptr_eq(owner(map, 0), owner(map, 16383));
    ck_assert_str_eq(owner(map, 100)->host, "b.example");
    ck_assert_ptr_null(owner(map, 101));
    ck_assert_uint_eq(owner(map, 155)->port, 2);
    ck_assert_str_eq(owner(map, 155)->host, "a.example");
    rlk_cluster_map_free(map);
}
END_TEST

/* rule: P18 */
START_TEST(host_that_is_left_out_is_that_which_was_asked_and_an_unknown_one_is_not_used)
{
    struct rlk_cluster_map *map = NULL;
    put("*5\r\n");
    put_range(0, 0, "", 7, "i");
    put_range(1, 1, NULL, 7, "i");
    put_range(2, 2, "?", 7, "i");
    put_range(3, 3, "a\"b", 7, "i");
    put_range(4, 4, "a.example", 0, "i");
    ck_assert_int_eq(parse(&map), 0);
    ck_assert_str_eq(owner(map, 0)->host, "asked.example");
    ck_assert_ptr_eq(owner(map, 0), owner(map, 1));
    for (unsigned i = 2; i < 5; i++)
        ck_assert_ptr_null(owner(map, i));
    rlk_cluster_map_free(map);
}
END_TEST

static const char *const bad[] = {
    "+OK\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n*2\r\n:0\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
    "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
    "*1\r\n*3\r\n:-1\r\n:4\r\n*2\r\n$1\r\na\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:4\r\n*1\r\n$1\r\na\r\n",
    "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\na\r\n:65536\r\n",
    "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n",
    "*1\r\n*3\r\n:0\r\n:4\r\n:1\r\n",
};

START_TEST(other_reply_is_EPROTO_and_says_what_is_wrong)
{
    struct rlk_cluster_map *map = NULL;
    put("%s", bad[_i]);
    ck_assert_int_eq(parse(&map), EPROTO);
    ck_assert_ptr_null(map);
    ck_assert_ptr_nonnull(strstr(rlk_error_message(), "CLUSTER SLOTS"));
}
END_TEST

START_TEST(thousand_masters_with_scattered_ranges_are_told_apart)
{
    enum { MASTERS = 1000 };
    struct rlk_cluster_map *map = NULL;
    char host[32];
    put("*%d\r\n", RLK_HASH_SLOTS);
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++) {
        snprintf(host, sizeof(host), "10.0.%u.%u", i % MASTERS / 250, i % MASTERS % 250);
        put_range(i, i, host, 6379, "0123456789012345678901234567890123456789");
    }
    ck_assert_int_eq(parse(&map), 0);
    ck_assert_uint_eq(map->master_count, MASTERS);
    for (unsigned i = 0; i < RLK_HASH_SLOTS; i++)
        ck_assert_uint_eq(map->owner[i], i % MASTERS + 1);
    rlk_cluster_map_free(map);
}
END_TEST

/* ---- which cluster it is */

static void add_number(struct rlk_cluster_ids *ids, unsigned number)
{
    char id[RLK_CLUSTER_ID_SIZE];

    snprintf(id, sizeof(id), "%040x", number);
    rlk_cluster_ids_add(ids, id, strlen(id));
}

/* A view of the nodes from `first` on. */
static struct rlk_cluster_ids view(unsigned first, unsigned count)
{
    struct rlk_cluster_ids ids = { .count = 0 };

    for (unsigned i = 0; i < count; i++) /* in no order */
        add_number(&ids, first + (i * 7 + 3) % count);
    return ids;
}

/* rule: P25 */
START_TEST(views_of_one_cluster_meet_although_nodes_come_and_go)
{
    struct rlk_cluster_ids a = view(0, 100), b = view(10, 100), c = view(100, 6),
                           none = { .count = 0 };

    ck_assert_uint_eq(a.count, RLK_CLUSTER_IDS_MAX);
    ck_assert(rlk_cluster_ids_meet(&a, &b) && rlk_cluster_ids_meet(&b, &a));
    ck_assert(!rlk_cluster_ids_meet(&a, &c) && !rlk_cluster_ids_meet(&c, &a));
    ck_assert(!rlk_cluster_ids_meet(&a, &none) && !rlk_cluster_ids_meet(&none, &none));
    ck_assert(!rlk_cluster_ids_equal(&a, &b));
    b = view(0, 90);
    ck_assert(rlk_cluster_ids_equal(&a, &b)); /* the least ones are the same */
}
END_TEST

/* rule: P25 */
START_TEST(what_is_no_id_names_no_cluster)
{
    static const char *const wrong[] = {
        "",
        "000000000000000000000000000000000000000",   /* 39 digits */
        "00000000000000000000000000000000000000001", /* 41 */
        "000000000000000000000000000000000000000G",
        "00000000000000000000000000000000000 0000",
    };
    struct rlk_cluster_ids ids = { .count = 0 }, again;
    char text[RLK_CLUSTER_IDS_TEXT];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        rlk_cluster_ids_add(&ids, wrong[i], strlen(wrong[i]));
    ck_assert_uint_eq(ids.count, 0);
    ids = view(5, RLK_CLUSTER_IDS_MAX);
    add_number(&ids, 5); /* once */
    rlk_cluster_ids_write(&ids, text);
    ck_assert_uint_eq(strlen(text), sizeof(text) - 2);
    rlk_cluster_ids_read(&again, text);
    ck_assert(rlk_cluster_ids_equal(&ids, &again));
}
END_TEST

/* rule: P25 */
START_TEST(map_has_the_ids_of_masters_and_replicas)
{
    struct rlk_cluster_map *map = NULL;
    char id[RLK_CLUSTER_ID_SIZE];

    put("*1\r\n*5\r\n:0\r\n:5\r\n");
    for (unsigned i = 3; i > 0; i--) {
        snprintf(id, sizeof(id), "%040x", i);
        put("*4\r\n");
        put_string("h.example");
        put(":%u\r\n", i);
        put_string(id);
        put("*0\r\n");
    }
    ck_assert_int_eq(parse(&map), 0);
    ck_assert_uint_eq(map->ids.count, 3);
    ck_assert_uint_eq(map->master_count, 1);
    ck_assert_str_eq(map->ids.ids[2], map->masters[0].id);
    rlk_cluster_map_free(map);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cluster map");
    TCase *tc = tcase_create("names");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, hash_slot_is_that_of_the_tag_or_of_the_name);
    tcase_add_loop_test(tc, redirect_names_hash_slot_and_address, 0,
                        sizeof(redirects) / sizeof(redirects[0]));
    tcase_add_test(tc, host_that_is_too_long_is_no_redirect);
    suite_add_tcase(s, tc);
    tc = tcase_create("maps");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, map_says_which_master_has_which_hash_slots);
    tcase_add_test(
        tc, host_that_is_left_out_is_that_which_was_asked_and_an_unknown_one_is_not_used);
    tcase_add_loop_test(tc, other_reply_is_EPROTO_and_says_what_is_wrong, 0,
                        sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tc, thousand_masters_with_scattered_ranges_are_told_apart);
    tcase_add_test(tc, views_of_one_cluster_meet_although_nodes_come_and_go);
    tcase_add_test(tc, what_is_no_id_names_no_cluster);
    tcase_add_test(tc, map_has_the_ids_of_masters_and_replicas);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
