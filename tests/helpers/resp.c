/* SPDX-License-Identifier: Apache-2.0 */
#include "resp.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CRLF_LEN = 2 };

struct reader {
    const unsigned char *data;
    size_t len, at;
};

/* Reads a type byte and its line. Returns their length, or PARTIAL; *ret_number is the
 * number in the line, -1 when there is none. */
static long read_line(struct reader *r, long *ret_number)
{
    const unsigned char *from = r->data + r->at;
    const unsigned char *end = memchr(from, '\n', r->len - r->at);
    if (!end)
        return TEST_RESP_PARTIAL;
    char text[32] = "";
    size_t n = (size_t)(end - from);
    if (n > 1)
        memcpy(text, from + 1, n - 1 < sizeof(text) - 1 ? n - 1 : sizeof(text) - 1);
    char *rest;
    *ret_number = strtol(text, &rest, 10);
    if (rest == text || *ret_number < -1)
        *ret_number = -1;
    r->at += n + 1;
    return (long)n + 1;
}

/* Reads one element without its children; *ret_children is their number. */
static long read_element(struct reader *r, long *ret_children)
{
    *ret_children = 0;
    if (r->at >= r->len)
        return TEST_RESP_PARTIAL;
    char type = (char)r->data[r->at];
    if (!strchr("+-:$*_,#!=(%~>|", type) || type == '\0')
        return TEST_RESP_INVALID;
    long number;
    if (read_line(r, &number) == TEST_RESP_PARTIAL)
        return TEST_RESP_PARTIAL;
    if (strchr("$!=", type) && number >= 0) {
        if (r->len - r->at < (size_t)number + CRLF_LEN)
            return TEST_RESP_PARTIAL;
        r->at += (size_t)number + CRLF_LEN;
    } else if (strchr("*~>", type) && number > 0) {
        *ret_children = number;
    } else if (type == '%' && number > 0) {
        *ret_children = 2 * number;
    } else if (type == '|') { /* attributes: they stand in front of their element */
        *ret_children = (number > 0 ? 2 * number : 0) + 1;
    }
    return 1;
}

long test_resp_length(const unsigned char *data, size_t len, bool is_request)
{
    struct reader r = { data, len, 0 };
    if (len == 0)
        return TEST_RESP_PARTIAL;
    if (is_request && data[0] != '*') {
        long ignored;
        return read_line(&r, &ignored);
    }
    /* elements still to come, at any depth: how they nest does not matter */
    for (long left = 1; left > 0; left--) {
        long children;
        long rc = read_element(&r, &children);
        if (rc <= 0)
            return rc;
        left += children;
    }
    return (long)r.at;
}

/* The i-th bulk string of an array; NULL: there is none. */
static const char *element(const unsigned char *data, size_t len, long i, size_t *ret_len)
{
    struct reader r = { data, len, 0 };
    long children, number;
    if (read_element(&r, &children) <= 0)
        return NULL;
    for (long k = 0; k <= i && k < children; k++) {
        struct reader line = r;
        long nested;
        if (r.at >= len || data[r.at] != '$' || read_line(&line, &number) <= 0 ||
            read_element(&r, &nested) <= 0 || number < 0)
            return NULL;
        *ret_len = (size_t)number;
        if (k == i)
            return (const char *)data + line.at;
    }
    return NULL;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return text && len == strlen(word) && strncasecmp(text, word, len) == 0;
}

unsigned test_resp_replies(const unsigned char *request, size_t len)
{
    static const char *const per_channel[] = { "subscribe", "unsubscribe", "psubscribe",
                                               "punsubscribe" };
    struct reader r = { request, len, 0 };
    long children;
    size_t word_len = 0;
    if (len == 0 || request[0] != '*' || read_element(&r, &children) <= 0)
        return 1;
    const char *word = element(request, len, 0, &word_len);
    for (size_t i = 0; i < sizeof(per_channel) / sizeof(per_channel[0]); i++) {
        if (is_word(word, word_len, per_channel[i]))
            return children > 2 ? (unsigned)children - 1 : 1;
    }
    return 1;
}

bool test_resp_is_push(const unsigned char *reply, size_t len)
{
    if (len == 0 || (reply[0] != '*' && reply[0] != '>'))
        return false;
    size_t word_len = 0;
    const char *word = element(reply, len, 0, &word_len);
    return is_word(word, word_len, "message") || is_word(word, word_len, "pmessage");
}
