/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of URLs: escapes, numbers, hosts with ports. No state. Thread: any. */
#include "net/url_impl.h"

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { HOST_LEN_MAX = 255, QUOTED_MIN = 6 };

void rlk_url_wipe(char **string)
{
    if (!*string)
        return;
    explicit_bzero(*string, strlen(*string));
    free(*string);
    *string = NULL;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int rlk_url_decode(char **string, struct rlk_url_slice s, const char *part)
{
    char *text = malloc(s.len + 1);
    size_t len = 0;
    if (!text)
        return rlk_error_set(ENOMEM, "out of memory");
    for (size_t i = 0; i < s.len; i++) {
        int c = (unsigned char)s.at[i];
        if (c == '%') {
            int high = i + 2 < s.len ? hex_value(s.at[i + 1]) : -1;
            int low = i + 2 < s.len ? hex_value(s.at[i + 2]) : -1;
            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (c == 0) {
            explicit_bzero(text, len);
            free(text);
            return rlk_error_set(EINVAL, "URL: bad %%-escape in the %s", part);
        }
        text[len++] = (char)c;
    }
    text[len] = '\0';
    rlk_url_wipe(string);
    *string = text;
    return 0;
}

int rlk_url_number(struct rlk_url_slice s, const char *part, long min, long max,
                   long *ret_value)
{
    long value = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9' ||
            __builtin_mul_overflow(value, 10L, &value) ||
            __builtin_add_overflow(value, (long)(s.at[i] - '0'), &value))
            goto bad;
    }
    if (s.len == 0 || value < min || value > max)
        goto bad;
    *ret_value = value;
    return 0;
bad:
    return rlk_error_set(EINVAL, "URL: %s is not a number from %ld to %ld", part, min,
                         max);
}

/* ---- hosts */

bool rlk_url_is_host(const char *host)
{
    for (const char *c = host; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("/@?#\"\\", *c))
            return false;
    return *host && strlen(host) <= HOST_LEN_MAX;
}

/* Host names appear in messages and logs. */
static int check_host(const char *host)
{
    if (!*host)
        return rlk_error_set(EINVAL, "URL: no host");
    if (strlen(host) > HOST_LEN_MAX)
        return rlk_error_set(EINVAL, "URL: the host is too long");
    if (!rlk_url_is_host(host))
        return rlk_error_set(EINVAL, "URL: the host has a forbidden character");
    return 0;
}

/* Cuts "host[:port]" or "[address][:port]". *ret_port: empty if there is none. */
static int cut_port(struct rlk_url_slice s, struct rlk_url_slice *ret_host,
                    struct rlk_url_slice *ret_port, bool *ret_has_port)
{
    const char *colon = rlk_url_find(s, ':');

    *ret_host = s;
    if (s.len > 0 && s.at[0] == '[') {
        const char *end = rlk_url_find(s, ']');
        if (!end)
            return rlk_error_set(EINVAL, "URL: '[' without ']'");
        *ret_host = rlk_url_cut(&s, end);
        ret_host->at++;
        ret_host->len--;
        if (s.len > 0 && s.at[0] != ':')
            return rlk_error_set(EINVAL, "URL: unexpected text after the ']'");
        *ret_has_port = s.len > 0;
        *ret_port = (struct rlk_url_slice){ s.at + 1, s.len > 0 ? s.len - 1 : 0 };
    } else if (colon) {
        *ret_has_port = true;
        *ret_host = rlk_url_cut(&s, colon);
        *ret_port = s;
        if (rlk_url_find(s, ':'))
            return rlk_error_set(EINVAL, "URL: more than one ':' after the host; an IPv6 "
                                         "address is written in brackets");
    }
    return 0;
}

int rlk_url_host(struct rlk_url_slice s, uint16_t port_default, char **ret_host,
                 uint16_t *ret_port)
{
    struct rlk_url_slice host, port = { NULL, 0 };
    long number = port_default;
    bool has_port = false;

    int rc = cut_port(s, &host, &port, &has_port);
    if (rc == 0 && has_port)
        rc = rlk_url_number(port, "port", 1, UINT16_MAX, &number);
    if (rc == 0)
        rc = rlk_url_decode(ret_host, host, "host");
    if (rc == 0)
        rc = check_host(*ret_host);
    if (rc == 0)
        *ret_port = (uint16_t)number;
    return rc;
}

void rlk_url_label(char *buf, size_t size, const char *host, uint16_t port)
{
    snprintf(buf, size, strchr(host, ':') ? "[%.100s]:%u" : "%.100s:%u", host,
             (unsigned)port);
}

bool rlk_url_quotes(const char *text, const char *secret)
{
    char beginning[QUOTED_MIN + 1] = "";

    if (secret)
        memcpy(beginning, secret, strnlen(secret, QUOTED_MIN));
    bool quoted = beginning[0] && strstr(text, beginning);
    explicit_bzero(beginning, sizeof(beginning));
    return quoted;
}
