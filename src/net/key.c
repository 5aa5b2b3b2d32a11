/* SPDX-License-Identifier: Apache-2.0 */
/* Checks names and maps them to keys (doc/DESIGN.md, "What is in Redis"). No state.
 * Thread: any. */
#include "net/key.h"

#include "base/error.h"

#include <string.h>

static const char *const suffixes[RLK_KEY_COUNT] = {
    [RLK_KEY_QUEUE] = ":queue",         [RLK_KEY_RQUEUE] = ":rqueue",
    [RLK_KEY_PRESENT] = ":present",     [RLK_KEY_READERS] = ":readers",
    [RLK_KEY_CANCELLED] = ":cancelled", [RLK_KEY_KEEPERS] = ":keepers",
    [RLK_KEY_DIRTY] = ":dirty",
};

static const char token_prefix[] = "redisson_lock_token:";
static const char channel_prefix[] = "redisson_lock__channel:";

static int begins(const char *name, size_t name_len, const char *prefix)
{
    return name_len >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

int rlk_key_check(const char *name, size_t name_len)
{
    if (name_len == 0)
        return rlk_error_set(EINVAL, "the lock's name is empty");
    if (name_len > RLOCK_NAME_MAX)
        return rlk_error_set(ENAMETOOLONG, "the lock's name is longer than %d bytes",
                             RLOCK_NAME_MAX);
    if (begins(name, name_len, "rlock:") || begins(name, name_len, "redisson_"))
        return rlk_error_set(EINVAL,
                             "a name may not begin with \"rlock:\" or \"redisson_\"");
    const char *open = memchr(name, '{', name_len);
    const char *close = memchr(name, '}', name_len);
    if (!open && !close)
        return 0;
    const char *end = name + name_len;
    if (!open || !close || close <= open + 1 ||
        memchr(open + 1, '{', (size_t)(end - open - 1)) ||
        memchr(close + 1, '}', (size_t)(end - close - 1)))
        return rlk_error_set(EINVAL, "braces in a name must form one {hash tag}");
    return 0;
}

static size_t put(char *buf, size_t at, const char *text, size_t len)
{
    memcpy(buf + at, text, len);
    return at + len;
}

size_t rlk_key_write(char *buf, enum rlk_key key, const char *name, size_t name_len)
{
    const int tagged = memchr(name, '{', name_len) != NULL;
    size_t at = 0;

    if (key == RLK_KEY_N)
        return put(buf, 0, name, name_len);
    if (key == RLK_KEY_TOKEN)
        at = put(buf, 0, token_prefix, sizeof(token_prefix) - 1);
    else if (key == RLK_KEY_CHANNEL)
        at = put(buf, 0, channel_prefix, sizeof(channel_prefix) - 1);
    else
        at = tagged ? put(buf, 0, "rlock::", 7) : put(buf, 0, "rlock:", 6);
    if (!tagged)
        buf[at++] = '{';
    at = put(buf, at, name, name_len);
    if (!tagged)
        buf[at++] = '}';
    if (suffixes[key])
        at = put(buf, at, suffixes[key], strlen(suffixes[key]));
    return at;
}

const char *rlk_key_of_channel(const char *channel, size_t len, size_t *ret_name_len)
{
    const size_t prefix = sizeof(channel_prefix) - 1;
    if (len <= prefix || memcmp(channel, channel_prefix, prefix) != 0)
        return NULL;
    const char *name = channel + prefix;
    size_t name_len = len - prefix;
    /* A whole "{name}" means a name without a tag of its own. */
    if (name_len > 2 && name[0] == '{' && name[name_len - 1] == '}') {
        name++;
        name_len -= 2;
    }
    *ret_name_len = name_len;
    return name;
}

uint64_t rlk_key_hash(const char *name, size_t name_len)
{
    /* FNV-1a over 8 bytes at a time, with a final mix; the program chooses the names,
     * so no seed is needed. */
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ name_len;
    while (name_len >= 8) {
        uint64_t word;
        memcpy(&word, name, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
        name += 8;
        name_len -= 8;
    }
    while (name_len-- > 0)
        h = (h ^ (unsigned char)*name++) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    return h;
}

/* What rlk_key_check allows between braces is the hash tag. */
unsigned rlk_key_hash_slot(const char *name, size_t name_len)
{
    /* CRC-16/XMODEM (polynomial 0x1021, from 0), half a byte at a time */
    static const uint16_t table[16] = {
        0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
        0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
    };
    const char *open = memchr(name, '{', name_len), *end = name + name_len;
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    unsigned crc = 0;

    /* rule: P18 */
    if (close && close > open + 1) {
        name = open + 1;
        end = close;
    }
    for (; name < end; name++) {
        unsigned byte = (unsigned char)*name;
        crc = (crc << 4 & 0xffff) ^ table[crc >> 12 ^ byte >> 4];
        crc = (crc << 4 & 0xffff) ^ table[crc >> 12 ^ (byte & 15)];
    }
    return crc % RLK_HASH_SLOTS;
}
