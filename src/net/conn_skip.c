/* SPDX-License-Identifier: Apache-2.0 */
/* See conn_skip.h. Each element of a reply is a line, and after a line that begins
 * with '$' so many bytes: nothing else of RESP matters here. Thread: that of the
 * connection. */
#include "net/conn_skip.h"

#include <string.h>

/* The bytes that pass. */
struct out {
    void (*pass)(void *arg, const char *bytes, size_t len);
    void *arg;
    size_t len;
};

static void let_through(struct out *out, const char *from, const char *to)
{
    if (to == from)
        return;
    out->pass(out->arg, from, (size_t)(to - from));
    out->len += (size_t)(to - from);
}

/* Reads the length in "$<digits>\r\n"; that of a nil is 0, without a line end. False:
 * not a length. */
static bool read_length(const char *line, const char *end, uint64_t *ret_length,
                        bool *ret_nil)
{
    uint64_t length = 0;

    *ret_nil = end - line == 5 && memcmp(line, "$-1\r\n", 5) == 0;
    if (*ret_nil)
        return true;
    if (end - line < 4 || end[-2] != '\r')
        return false;
    for (const char *p = line + 1; p < end - 2; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(length, 10u, &length) ||
            __builtin_add_overflow(length, (uint64_t)(*p - '0'), &length))
            return false;
    *ret_length = length;
    return length < UINT64_MAX - 2;
}

/* Takes a whole line that announces a bulk string; `out` has the bytes before it.
 * Returns from where on the rest passes. */
static const char *announced(struct rlk_conn_skip *skip, struct out *out,
                             const char *line, const char *end)
{
    static const char nil[] = "$-1\r\n";
    uint64_t length = 0;
    bool is_nil;

    if (!read_length(line, end, &length, &is_nil)) {
        skip->off = true;
        return line;
    }
    skip->left = is_nil ? 0 : length + 2;
    skip->drops = length > skip->over;
    if (!skip->drops)
        return line;
    let_through(out, nil, nil + sizeof(nil) - 1);
    return end;
}

static void scan(struct rlk_conn_skip *skip, struct out *out, const char *p,
                 const char *end)
{
    const char *from = p; /* not passed yet */

    while (p < end && !skip->off) {
        if (skip->left > 0) {
            size_t n =
                skip->left < (size_t)(end - p) ? (size_t)skip->left : (size_t)(end - p);
            p += n;
            skip->left -= n;
            if (skip->drops)
                from = p;
            continue;
        }
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (*p != '$' || skip->amid_line) {
            skip->amid_line = !newline;
            p = newline ? newline + 1 : end;
            continue;
        }
        let_through(out, from, p);
        from = p;
        if ((newline ? newline + 1 : end) - p > RLK_SKIP_HEAD_MAX) {
            skip->off = true;
        } else if (newline) {
            from = announced(skip, out, p, newline + 1);
            p = newline + 1;
        } else { /* wait for the rest of the line */
            skip->head_len = (unsigned)(end - p);
            memcpy(skip->head, p, skip->head_len);
            return;
        }
    }
    let_through(out, from, end);
}

size_t rlk_conn_skip_filter(struct rlk_conn_skip *skip, const char *bytes, size_t len,
                            void (*pass)(void *arg, const char *bytes, size_t len),
                            void *arg)
{
    struct out out = { .pass = pass, .arg = arg };
    const char *p = bytes, *end = bytes + len;

    while (skip->head_len > 0 && p < end) {
        char head[RLK_SKIP_HEAD_MAX + 1];
        size_t head_len = skip->head_len;
        memcpy(head, skip->head, head_len);
        head[head_len++] = *p++;
        skip->head_len = 0;
        scan(skip, &out, head, head + head_len);
    }
    scan(skip, &out, p, end);
    return out.len;
}
