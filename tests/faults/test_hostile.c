/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Malicious peers: names that look like something else, messages that others forge, and a
 * subscription that is refused without end. `self` and `other` are clients of this
 * process; `other` goes through the proxy.
 */
#include "pair.h"

#include "net/mailbox.h"

#include <ctype.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

enum { STAYS_MS = 100, FORGED = 20000, GROWTH_MAX = 4 << 20 };

/* ---- the log */

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static long lines, unprintable, longest;

static void see_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    pthread_mutex_lock(&mu);
    lines++;
    if ((long)strlen(line) > longest)
        longest = (long)strlen(line);
    for (const char *p = line; *p; p++)
        unprintable += *p < ' ' || *p > '~';
    pthread_mutex_unlock(&mu);
}

static void listen_to_log(void)
{
    pthread_mutex_lock(&mu);
    lines = unprintable = longest = 0;
    pthread_mutex_unlock(&mu);
    rlock_setlogger(see_line, NULL, LOG_DEBUG);
}

static long end_log(void)
{
    rlock_setlogger(NULL, NULL, 0);
    pthread_mutex_lock(&mu); /* a thread may still be in a line of its own */
    long count = lines, bad = unprintable, most = longest;
    pthread_mutex_unlock(&mu);
    ck_assert_int_eq(bad, 0);
    ck_assert_int_lt(most, 512);
    return count;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

static unsigned long long seed = 88172645463325252ull;

static unsigned draw(unsigned limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 33) % limit;
}

/* ---- names */

static const char *const names[] = {
    "*",
    "?",
    "[a-z]*",
    "a*",
    "\\",
    "\\*",
    "a\r\n*1\r\n$8\r\nFLUSHALL\r\n",
    "\r\n",
    "%s%n%d",
    "']] redis.call('FLUSHALL') --",
    "\"; redis.call(\"FLUSHALL\")",
    "]==] .. redis.call('DEL', 'victim') --",
    "KEYS[1]",
    "%d+:%a",
    "1 grant 0 0 1 1 x 1 N",
    " N",
    "N ",
    "\xff\xfe\x80",
    "\xc3\x28",
    "\x01\x1b[2J\x7f",
    "{a}:*",
    "*{a",
    "victim:queue",
    "N:queue",
    "'",
    "--",
    "$(reboot)",
    "../../etc/passwd",
    "0",
    "-1",
};
enum { NAME_COUNT = sizeof(names) / sizeof(names[0]), LONG = NAME_COUNT };

/* The i-th name, or that name made as long as is allowed. */
static const char *name_at(int i, char buf[RLOCK_NAME_MAX + 1])
{
    const char *name = names[i % NAME_COUNT];
    size_t len = strlen(name);
    memcpy(buf, name, len + 1);
    if (i >= LONG) {
        for (size_t at = len; at < RLOCK_NAME_MAX; at++)
            buf[at] = strchr(name, '{') ? 'x' : name[at % len];
        buf[RLOCK_NAME_MAX] = '\0';
    }
    return buf;
}

struct wait {
    pthread_t thread;
    rlock_mutex_t m;
    _Atomic bool done;
    int rc;
};

static void *wait_for_it(void *arg)
{
    struct wait *w = arg;
    struct timespec until = test_in_ms(CLOCK_REALTIME, test_ms(SCENE_SOON_MS));
    w->rc = rlock_mutex_timedlock(&w->m, &until);
    w->done = true;
    if (w->rc == 0)
        w->rc = rlock_mutex_unlock(&w->m);
    return NULL;
}

static bool one_waits(void *arg)
{
    rlock_stats_t stats;
    (void)arg;
    ck_assert_int_eq(rlock_client_getstats(other, &stats), 0);
    return stats.waiters_now == 1 &&
           test_redis_int(scene_redis, "EVAL",
                          "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do "
                          "if redis.call('TYPE', k).ok == 'zset' then n = n + 1 end end "
                          "return n",
                          "0") > 0;
}

static int see_name(const rlock_info_t *info, void *arg)
{
    char *seen = arg;
    snprintf(seen, RLOCK_NAME_MAX + 1, "%s", info->name);
    return 0;
}

START_TEST(a_name_is_a_name_whatever_it_looks_like)
{
    char buf[RLOCK_NAME_MAX + 1], listed[RLOCK_NAME_MAX + 1] = "";
    const char *name = name_at(_i, buf);
    struct wait w = { .rc = -1 };
    rlock_mutex_t own;
    rlock_info_t *info = NULL;
    const char *open = strchr(name, '{');
    bool valid = !open || strchr(open + 1, '}');

    test_redis_do(scene_redis, "SET", "victim", "alive");
    if (!valid) {
        ck_assert_int_eq(rlock_mutex_init(&own, NULL, name), EINVAL);
        return;
    }
    listen_to_log();
    scene_mutex(&own, self, name);
    scene_mutex(&w.m, other, name);
    ck_assert_int_eq(rlock_mutex_lock(&own), 0);
    ck_assert_int_eq(test_redis_int(scene_redis, "EXISTS", name), 1);
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), 2);
    ck_assert_int_eq(rlock_mutex_trylock(&w.m), EBUSY);
    ck_assert_int_eq(rlock_inspect(self, name, &info), 0);
    ck_assert_str_eq(info->name, name);
    ck_assert_uint_eq(info->holder_count, 1);
    rlock_info_free(info);
    ck_assert_int_eq(rlock_list(self, NULL, see_name, listed), 0);
    ck_assert_str_eq(listed, name);
    ck_assert_int_eq(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    ck_assert(test_wait_until(one_waits, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_unlock(&own), 0);
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, 0);
    ck_assert_str_eq(test_redis_str(scene_redis, "GET", "victim"), "alive");
    ck_assert_int_eq(test_redis_int(scene_redis, "EXISTS", name), 0);
    /* errors about it are printable */
    test_redis_do(scene_redis, "SET", name, "theirs");
    ck_assert_int_eq(rlock_mutex_trylock(&own), EPROTO);
    ck_assert_msg(is_printable(rlock_errmsg()), "%s", rlock_errmsg());
    end_log();
}
END_TEST

START_TEST(a_name_with_globs_touches_no_lock_that_it_would_match)
{
    rlock_mutex_t plain, glob;
    scene_mutex(&plain, self, "abc");
    scene_mutex(&glob, other, "a*");
    ck_assert_int_eq(rlock_mutex_lock(&plain), 0);
    ck_assert_int_eq(rlock_mutex_trylock(&glob), 0);
    ck_assert_int_eq(rlock_force_unlock(other, "a*"), 0);
    ck_assert_int_eq(rlock_force_unlock(other, "*"), ENOENT);
    ck_assert_int_eq(test_redis_int(scene_redis, "EXISTS", "abc"), 1);
    ck_assert_int_eq(rlock_mutex_unlock(&plain), 0);
    rlock_mutex_unlock(&glob);
}
END_TEST

/* A key, and the name that it belongs to. */
struct owned {
    char key[RLK_KEY_SIZE + 1];
    char name[64];
    enum rlk_key kind;
};

static int by_key(const void *a, const void *b)
{
    const struct owned *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : strcmp(x->name, y->name);
}

/* "a" and "{a}" have one token key and one channel, see name.h. */
static bool may_share(const struct owned *x, const struct owned *y)
{
    char tagged[70];
    if (x->kind != y->kind || (x->kind != RLK_KEY_TOKEN && x->kind != RLK_KEY_CHANNEL))
        return false;
    snprintf(tagged, sizeof(tagged), "{%s}", x->name);
    if (strcmp(tagged, y->name) == 0)
        return true;
    snprintf(tagged, sizeof(tagged), "{%s}", y->name);
    return strcmp(tagged, x->name) == 0;
}

START_TEST(distinct_names_share_no_key)
{
    /* made of the parts of keys, so that many are nearly the same */
    static const char *const pieces[] = { "a",      "b",  ":",      "queue", "rlock",
                                          "{",      "}",  "::",     "token", ":queue",
                                          "rlock:", "{a", "}:dirty" };
    enum { NAMES = 4000, KINDS = RLK_KEY_COUNT };
    struct owned *keys = calloc((size_t)NAMES * KINDS, sizeof(*keys));
    size_t count = 0;
    ck_assert_ptr_nonnull(keys);
    for (int i = 0; i < NAMES; i++) {
        char name[64] = "";
        for (unsigned j = draw(5) + 1; j > 0; j--)
            strncat(name, pieces[draw(13)], sizeof(name) - strlen(name) - 1);
        if (rlk_key_check(name, strlen(name)) != 0)
            continue;
        for (int kind = 0; kind < KINDS; kind++) {
            struct owned *o = &keys[count++];
            o->key[rlk_key_write(o->key, (enum rlk_key)kind, name, strlen(name))] = '\0';
            snprintf(o->name, sizeof(o->name), "%s", name);
            o->kind = (enum rlk_key)kind;
        }
    }
    ck_assert_uint_gt(count, 1000);
    qsort(keys, count, sizeof(*keys), by_key);
    for (size_t i = 1; i < count; i++)
        if (strcmp(keys[i - 1].key, keys[i].key) == 0 &&
            strcmp(keys[i - 1].name, keys[i].name) != 0)
            ck_assert_msg(may_share(&keys[i - 1], &keys[i]), "%s: %s and %s", keys[i].key,
                          keys[i - 1].name, keys[i].name);
    free(keys);
}
END_TEST

static bool hears_the_channel(void *arg)
{
    const redisReply *r =
        test_redis_do(scene_redis, "PUBSUB", "NUMSUB", (const char *)arg);
    return r->element[1]->integer == 1;
}

START_TEST(a_channel_with_globs_is_one_channel)
{
    struct wait w = { .rc = -1 };
    scene_mutex(&w.m, other, "a*");
    test_redis_do(scene_redis, "HSET", "a*", "8a4f0c0e-0000-4000-8000-000000000000:1",
                  "1");
    test_redis_do(scene_redis, "PEXPIRE", "a*", "600000");
    ck_assert_int_eq(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    ck_assert(test_wait_until(hears_the_channel,
                              (char[]){ "redisson_lock__channel:{a*}" }, SCENE_SOON_MS));
    ck_assert_int_eq(test_redis_int(scene_redis, "PUBSUB", "NUMPAT"), 0);
    ck_assert_int_eq(
        test_redis_int(scene_redis, "PUBLISH", "redisson_lock__channel:{ab}", "0"), 0);
    test_redis_do(scene_redis, "DEL", "a*");
    test_redis_do(scene_redis, "PUBLISH", "redisson_lock__channel:{a*}", "0");
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, 0);
}
END_TEST

/* ---- forged messages */

static void append(char *buf, size_t *len, size_t size, const char *text)
{
    size_t add = strlen(text);
    if (*len + add < size) {
        memcpy(buf + *len, text, add);
        *len += add;
    }
}

/* A message that is nearly valid, or no message at all. `uuid` is the receiver's. */
static size_t forge(char *buf, size_t size, const char *uuid)
{
    static const char *const versions[] = { "1", "1", "1", "1", "2", "0", "", "x" };
    static const char *const kinds[] = { "grant", "lost", "wanted", "Grant", "" };
    static const char *const numbers[] = { "0", "1", "18446744073709551615",
                                           "99999999999999999999", "-1" };
    static const char *const whose[] = { "N", "N", "O", "", "\xff\x00\r\n" };
    char id[200];
    size_t len = 0;
    if (draw(4) == 0) {
        len = draw((unsigned)size);
        for (size_t i = 0; i < len; i++)
            buf[i] = (char)draw(256);
        return len;
    }
    unsigned kind = draw(5), parts = kind == 0 ? draw(300) + 1 : 1;
    char count[16];
    snprintf(count, sizeof(count), "%u", parts);
    append(buf, &len, size, versions[draw(8)]);
    append(buf, &len, size, " ");
    append(buf, &len, size, kinds[kind]);
    append(buf, &len, size, " ");
    if (kind == 0) {
        for (int i = 0; i < 3; i++) {
            append(buf, &len, size, numbers[draw(draw(2) ? 2 : 5)]);
            append(buf, &len, size, " ");
        }
        append(buf, &len, size, count);
        append(buf, &len, size, " ");
    }
    for (unsigned i = 0; i < parts; i++) {
        snprintf(id, sizeof(id), "%s:%u:%u:%c%u ",
                 draw(3) ? uuid : "8a4f0c0e-0000-4000-8000-000000000000", draw(9),
                 1000000 + draw(100000), "mfrwzM"[draw(6)],
                 draw(2) ? 3000 : draw(1 << 30));
        append(buf, &len, size, id);
        append(buf, &len, size, kind == 0 ? "1 " : "");
    }
    append(buf, &len, size, whose[draw(5)]);
    if (draw(3) == 0 && len > 0) {
        buf[draw((unsigned)len)] = (char)draw(256);
        len = draw((unsigned)len) + 1;
    }
    return len;
}

static size_t heap_now(void)
{
    return mallinfo2().uordblks;
}

static bool background_is_done(void *arg)
{
    rlock_stats_t a, b;
    (void)arg;
    ck_assert_int_eq(rlock_client_getstats(self, &a), 0);
    ck_assert_int_eq(rlock_client_getstats(other, &b), 0);
    return a.messages + a.messages_ignored + b.messages + b.messages_ignored >=
           FORGED / 10;
}

START_TEST(thousands_of_forged_messages_do_nothing)
{
    char id[SCENE_ID_MAX], waiting[SCENE_ID_MAX], ticket[32], uuids[2][RLK_UUID_LEN + 1];
    static char text[20000];
    struct wait w = { .rc = -1 };
    long count = test_count(FORGED, FORGED / 4);
    scene_mutex(&w.m, other, "N");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    ck_assert_int_eq(pthread_create(&w.thread, NULL, wait_for_it, &w), 0);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    ck_assert(scene_holder("N", id));
    ck_assert(scene_waiter("N", 0, waiting, ticket));
    scene_uuid(uuids[0], id);
    scene_uuid(uuids[1], waiting);
    listen_to_log();
    size_t before = heap_now();
    for (long i = 0; i < count; i++) {
        char channel[80];
        snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", uuids[i % 2]);
        size_t size = i % 64 == 0 ? sizeof(text) : 2000;
        size_t len = forge(text, size, uuids[i % 2]);
        const char *argv[] = { "PUBLISH", channel, text };
        size_t lens[] = { 7, strlen(channel), len };
        ck_assert_ptr_nonnull(test_redis_try_bytes(scene_redis, 3, argv, lens));
    }
    ck_assert(test_wait_until(background_is_done, NULL, SCENE_SOON_MS));
    /* no client lost it, no client got it */
    rlock_state_t state = RLOCK_LOST;
    char now[SCENE_ID_MAX];
    ck_assert(scene_holder("N", now));
    ck_assert_str_eq(now, id);
    ck_assert_int_eq(rlock_mutex_getstate(&m, &state), 0);
    ck_assert_int_ne(state, RLOCK_LOST);
    ck_assert(!w.done);
    ck_assert_int_eq(scene_queue_len("N"), 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    pthread_join(w.thread, NULL);
    ck_assert_int_eq(w.rc, 0);
    size_t after = heap_now();
    ck_assert_msg(after < before + GROWTH_MAX, "%zu -> %zu", before, after);
    ck_assert_int_lt(end_log(), 60); /* lines, not one for each message */
}
END_TEST

/* ---- the subscription */

#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$14\r\nrlock:client:x\r\n:1\r\n"

static bool has_lines(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&mu);
    bool has = lines > 0;
    pthread_mutex_unlock(&mu);
    return has;
}

START_TEST(an_endless_refusal_is_one_printable_line_a_second)
{
    static char answer[1 << 16];
    size_t at = (size_t)snprintf(answer, sizeof(answer), SUBSCRIBED);
    while (at + 100 < sizeof(answer))
        at += (size_t)snprintf(answer + at, sizeof(answer) - at,
                               "-ERR \x1b[2J\x07\xff%%s%%n unwanted\r\n");
    TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_ANSWER,
              .contains = "rlock:client:", .text = answer, .count = 1);
    int64_t begin = test_now_ms();
    listen_to_log();
    test_redis_kill_clients(scene_redis);
    ck_assert(test_wait_until(has_lines, NULL, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_mutex_lock(&n), 0); /* the client goes on */
    ck_assert_int_eq(rlock_mutex_unlock(&n), 0);
    test_pause_ms(STAYS_MS);
    ck_assert_int_lt(end_log(), 20 + 2 * (test_now_ms() - begin) / 1000);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("hostile");
    TCase *name = scene_tcase(s, "names", open_scene, close_scene);
    tcase_add_loop_test(name, a_name_is_a_name_whatever_it_looks_like, 0, 2 * NAME_COUNT);
    tcase_add_test(name, a_name_with_globs_touches_no_lock_that_it_would_match);
    tcase_add_test(name, distinct_names_share_no_key);
    tcase_add_test(name, a_channel_with_globs_is_one_channel);
    TCase *messages = scene_tcase(s, "messages", open_scene, close_scene);
    tcase_add_test(messages, thousands_of_forged_messages_do_nothing);
    tcase_add_test(messages, an_endless_refusal_is_one_printable_line_a_second);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
