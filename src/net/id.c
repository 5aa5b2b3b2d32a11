/* SPDX-License-Identifier: Apache-2.0 */
/* See id.h. No state. Thread: any. Blocks: no. */
#include "net/id.h"

#include <string.h>

/* How many digits it has: by the number of its bits, and a look at the power of ten that
 * is near. */
static size_t count_digits(uint64_t value)
{
    static const uint64_t powers[] = { 0,
                                       10,
                                       100,
                                       1000,
                                       10000,
                                       100000,
                                       1000000,
                                       10000000,
                                       100000000,
                                       1000000000,
                                       10000000000,
                                       100000000000,
                                       1000000000000,
                                       10000000000000,
                                       100000000000000,
                                       1000000000000000,
                                       10000000000000000,
                                       100000000000000000,
                                       1000000000000000000,
                                       UINT64_C(10000000000000000000) };
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned least = bits * 1233 >> 12; /* log10(2), a bit less */
    return least + (value >= powers[least]);
}

size_t rlk_id_write_number(char *buf, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    size_t n = count_digits(value), at = n;

    for (; value >= 100; value /= 100) {
        at -= 2;
        memcpy(buf + at, pairs + 2 * (value % 100), 2);
    }
    if (value >= 10)
        memcpy(buf, pairs + 2 * value, 2);
    else
        buf[0] = (char)('0' + value);
    return n;
}

static inline size_t write_local(char *buf, const struct rlk_id *id)
{
    size_t at = 0;
    at += rlk_id_write_number(buf + at, id->thread);
    buf[at++] = ':';
    at += rlk_id_write_number(buf + at, id->acquisition);
    buf[at++] = ':';
    buf[at++] = id->letter;
    at += rlk_id_write_number(buf + at, id->grant_ms);
    for (const char *flag = id->flags; *flag; flag++)
        buf[at++] = *flag;
    buf[at] = '\0';
    return at;
}

size_t rlk_id_write_local(char *buf, const struct rlk_id *id)
{
    return write_local(buf, id);
}

size_t rlk_id_write(char buf[RLK_ID_SIZE], const char *uuid, const struct rlk_id *id)
{
    memcpy(buf, uuid, RLK_UUID_LEN);
    buf[RLK_UUID_LEN] = ':';
    return RLK_UUID_LEN + 1 + write_local(buf + RLK_UUID_LEN + 1, id);
}

bool rlk_id_read_number(const char **p, const char *end, uint64_t *ret_value)
{
    const char *start = *p;
    uint64_t value = 0;
    while (*p < end && **p >= '0' && **p <= '9') {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(**p - '0'), &value))
            return false;
        ++*p;
    }
    *ret_value = value;
    return *p > start;
}

bool rlk_id_parse(struct rlk_id *ret_id, const char *uuid, const char *text, size_t len)
{
    const char *p = text, *end = text + len;
    struct rlk_id id;
    uint64_t grant_ms;

    if (len < RLK_UUID_LEN + 1 || memcmp(text, uuid, RLK_UUID_LEN) != 0)
        return false;
    p += RLK_UUID_LEN;
    if (*p++ != ':' || !rlk_id_read_number(&p, end, &id.thread) || p >= end ||
        *p++ != ':' || !rlk_id_read_number(&p, end, &id.acquisition) || p >= end ||
        *p++ != ':' || p >= end)
        return false;
    id.letter = *p++;
    if (!((id.letter >= 'a' && id.letter <= 'z') ||
          (id.letter >= 'A' && id.letter <= 'Z')))
        return false;
    if (!rlk_id_read_number(&p, end, &grant_ms) || grant_ms > UINT32_MAX)
        return false;
    id.grant_ms = (uint32_t)grant_ms;
    memset(id.flags, 0, sizeof(id.flags));
    id.slot = 0;
    for (size_t i = 0; p < end; p++, i++) {
        if (*p < 'a' || *p > 'z' || i + 1 >= sizeof(id.flags))
            return false;
        id.flags[i] = *p;
    }
    *ret_id = id;
    return true;
}

bool rlk_id_equal(const struct rlk_id *a, const struct rlk_id *b)
{
    return a->acquisition == b->acquisition && a->thread == b->thread &&
           a->grant_ms == b->grant_ms && a->letter == b->letter &&
           memcmp(a->flags, b->flags, sizeof(a->flags)) == 0;
}

bool rlk_id_robust(const struct rlk_id *id)
{
    return strchr(id->flags, RLK_ID_ROBUST) != NULL;
}

bool rlk_id_tells(const struct rlk_id *id)
{
    return strchr(id->flags, RLK_ID_TELL) != NULL;
}
