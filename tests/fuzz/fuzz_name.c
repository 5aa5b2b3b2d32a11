/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of locks and their keys. The input's first byte says how the second name is
 * derived from the first, or that the rest contains both. Properties: distinct names
 * share no key, except that "a" and "{a}" share the token key and the channel; all keys
 * of a name are in its hash slot; invalid names are refused.
 */
#include "base/error.h"
#include "fuzz.h"
#include "net/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *at;
    size_t len;
};

static bool equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && (a_len == 0 || memcmp(a, b, a_len) == 0);
}

static bool begins(struct text t, const char *prefix)
{
    return t.len >= strlen(prefix) && memcmp(t.at, prefix, strlen(prefix)) == 0;
}

/* The expected result of rlk_key_check, by a second implementation. */
static int expected(struct text t)
{
    int depth = 0, tags = 0;
    size_t inside = 0;

    if (t.len == 0)
        return EINVAL;
    if (t.len > RLOCK_NAME_MAX)
        return ENAMETOOLONG;
    if (begins(t, "rlock:") || begins(t, "redisson_"))
        return EINVAL;
    for (size_t i = 0; i < t.len; i++) {
        if (t.at[i] == '{') {
            if (depth++ > 0 || tags > 0)
                return EINVAL;
            inside = 0;
        } else if (t.at[i] == '}') {
            if (depth-- != 1 || inside == 0)
                return EINVAL;
            tags++;
        } else {
            inside++;
        }
    }
    return depth == 0 ? 0 : EINVAL;
}

/* The part of a key that determines its hash slot. */
static struct text hash_tag(char *key, size_t len)
{
    char *open = memchr(key, '{', len);
    if (open) {
        size_t left = len - (size_t)(open + 1 - key);
        char *close = memchr(open + 1, '}', left);
        if (close && close > open + 1)
            return (struct text){ open + 1, (size_t)(close - open - 1) };
    }
    return (struct text){ key, len };
}

static size_t write_key(char *buf, enum rlk_key key, struct text name)
{
    memset(buf, 0, RLK_KEY_SIZE);
    size_t len = rlk_key_write(buf, key, name.at, name.len);
    fuzz_must(len > 0 && len <= RLK_KEY_SIZE);
    return len;
}

/* Whether the two are "a" and "{a}". */
static bool braced(struct text a, struct text b)
{
    return b.len == a.len + 2 && b.at[0] == '{' && b.at[b.len - 1] == '}' &&
           memcmp(b.at + 1, a.at, a.len) == 0;
}

static void check_one(struct text name)
{
    struct text tag = hash_tag(name.at, name.len);
    for (int k = 0; k < RLK_KEY_CHANNEL; k++) {
        char *key = malloc(RLK_KEY_SIZE), other[RLK_KEY_SIZE];
        size_t len = write_key(key, (enum rlk_key)k, name);
        struct text has = hash_tag(key, len);
        fuzz_must(equal(has.at, has.len, tag.at, tag.len));
        if (k != RLK_KEY_N) /* no name of a lock is one of the library's keys */
            fuzz_must(rlk_key_check(key, len) != 0);
        for (int i = 0; i < k; i++) {
            size_t other_len = write_key(other, (enum rlk_key)i, name);
            fuzz_must(!equal(key, len, other, other_len));
        }
        free(key);
    }
    char channel[RLK_KEY_SIZE];
    size_t len = write_key(channel, RLK_KEY_CHANNEL, name), back_len;
    const char *back = rlk_key_of_channel(channel, len, &back_len);
    fuzz_must(back);
    struct text found = { (char *)(uintptr_t)back, back_len };
    fuzz_must(equal(back, back_len, name.at, name.len) || braced(found, name));
}

static void check_two(struct text a, struct text b)
{
    char x[RLK_KEY_SIZE], y[RLK_KEY_SIZE];
    bool pair = braced(a, b) || braced(b, a);

    if (equal(a.at, a.len, b.at, b.len)) {
        fuzz_must(rlk_key_hash(a.at, a.len) == rlk_key_hash(b.at, b.len));
        return;
    }
    for (int i = 0; i < RLK_KEY_COUNT; i++) {
        size_t x_len = write_key(x, (enum rlk_key)i, a);
        for (int j = 0; j < RLK_KEY_COUNT; j++) {
            size_t y_len = write_key(y, (enum rlk_key)j, b);
            if (equal(x, x_len, y, y_len))
                fuzz_must(pair && i == j && (i == RLK_KEY_TOKEN || i == RLK_KEY_CHANNEL));
        }
    }
}

static bool check_refusal(struct text name)
{
    rlk_error_clear();
    int rc = rlk_key_check(name.at, name.len);
    fuzz_must(rc == expected(name));
    fuzz_must((rc == 0) == (rlk_error_message()[0] == '\0'));
    return rc == 0;
}

/* Derives a similar second name from the first. */
static struct text derive(struct text a, uint8_t how)
{
    char buf[RLK_KEY_SIZE + 2];
    size_t len = 0, from = 0;

    if (a.len > RLOCK_NAME_MAX)
        return (struct text){ fuzz_copy("b", 1, false), 1 };
    switch (how % 4) {
    case 0: /* {a} */
        buf[len++] = '{';
        memcpy(buf + len, a.at, a.len);
        len += a.len;
        buf[len++] = '}';
        break;
    case 1: /* one of its keys */
        len = rlk_key_write(buf, (enum rlk_key)(how / 4 % RLK_KEY_COUNT), a.at, a.len);
        break;
    case 2: /* one of its keys, without its first bytes */
        len = rlk_key_write(buf, (enum rlk_key)(how / 4 % RLK_KEY_COUNT), a.at, a.len);
        from = len > 6 ? 6 : 0;
        break;
    default: /* without its last byte */
        len = a.len > 0 ? a.len - 1 : 0;
        memcpy(buf, a.at, len);
    }
    return (struct text){ fuzz_copy(buf + from, len - from, false), len - from };
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    struct text a, b;
    uint8_t how = fuzz_byte(&in);
    const uint8_t *line = how < 128 ? fuzz_line(&in, &a.len) : in.at;

    if (how >= 128)
        a.len = in.left;
    a.at = fuzz_copy(line, a.len, false);
    if (how < 128)
        b = (struct text){ fuzz_copy(in.at, in.left, false), in.left };
    else
        b = derive(a, how);
    bool a_good = check_refusal(a), b_good = check_refusal(b);
    if (a_good)
        check_one(a);
    if (b_good)
        check_one(b);
    if (a_good && b_good)
        check_two(a, b);
    free(a.at);
    free(b.at);
    return 0;
}
