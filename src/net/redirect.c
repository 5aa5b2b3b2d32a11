/* SPDX-License-Identifier: Apache-2.0 */
/* See redirect.h. "MOVED 3999 127.0.0.1:6381": an IPv6 address has no brackets, so the
 * last colon is the one before the port. */
#include "net/redirect.h"

#include "net/key.h"
#include "net/url.h"

#include <string.h>

enum { NUMBER_MAX = 65535 };

/* Reads a decimal number that ends at `end`. -1: it is none. */
static long number(const char *text, const char *end)
{
    long value = 0;

    if (text == end)
        return -1;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        value = value * 10 + (*text - '0');
        if (value > NUMBER_MAX)
            return -1;
    }
    return value;
}

static bool begins(const char *text, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* rule: P18 */
bool rlk_redirect_parse(struct rlk_redirect *ret, const char *text, size_t len)
{
    static const char moved[] = "MOVED ", ask[] = "ASK ";
    const char *end = text + len;

    ret->kind = RLK_REDIRECT_NONE;
    bool is_moved = begins(text, len, moved);
    if (!is_moved && !begins(text, len, ask))
        return false;
    text += is_moved ? sizeof(moved) - 1 : sizeof(ask) - 1;
    const char *blank = memchr(text, ' ', (size_t)(end - text));
    long hash_slot = blank ? number(text, blank) : -1;
    if (hash_slot < 0 || hash_slot >= RLK_HASH_SLOTS)
        return false;
    const char *host = blank + 1, *colon = memrchr(host, ':', (size_t)(end - host));
    long port = colon ? number(colon + 1, end) : -1;
    size_t host_len = colon ? (size_t)(colon - host) : 0;
    if (port < 1 || host_len >= sizeof(ret->host))
        return false;
    memcpy(ret->host, host, host_len);
    ret->host[host_len] = '\0';
    if (host_len > 0 && (strlen(ret->host) != host_len ||
                         (strcmp(ret->host, "?") != 0 && !rlk_url_is_host(ret->host))))
        return false;
    ret->kind = is_moved ? RLK_REDIRECT_MOVED : RLK_REDIRECT_ASK;
    ret->hash_slot = (unsigned)hash_slot;
    ret->port = (uint16_t)port;
    return true;
}
