/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of JSON (RFC 8259). Strings are checked for UTF-8 here, byte by byte,
 * independent of the locale: the output for programs must not depend on the user.
 * Thread: main only. */
#include "json.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

enum { INDENT = 2, DECIMALS = 1000 };

/* ---- layout */

static void newline(const struct json *json)
{
    fprintf(json->out, "\n%*s", (int)json->depth * INDENT, "");
}

static void quoted(FILE *out, const char *text);

/* Writes what precedes a value: comma, line break, key. */
static void begin_value(struct json *json, const char *key)
{
    if (json->filled[json->depth])
        fputc(',', json->out);
    if (json->depth > 0)
        newline(json);
    json->filled[json->depth] = true;
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
}

static void begin_group(struct json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->out);
    assert(json->depth < JSON_DEPTH_MAX);
    json->filled[++json->depth] = false;
}

static void end_group(struct json *json, char bracket)
{
    assert(json->depth > 0);
    if (json->filled[json->depth--])
        newline(json);
    fputc(bracket, json->out);
}

void json_begin_object(struct json *json, const char *key)
{
    begin_group(json, key, '{');
}

void json_end_object(struct json *json)
{
    end_group(json, '}');
}

void json_begin_array(struct json *json, const char *key)
{
    begin_group(json, key, '[');
}

void json_end_array(struct json *json)
{
    end_group(json, ']');
}

void json_end(struct json *json)
{
    assert(json->depth == 0);
    fputc('\n', json->out);
}

/* ---- strings */

/* The bytes that may follow a first byte of UTF-8: the limits of the second byte
 * exclude overlong forms, surrogates, and code points beyond U+10FFFF (RFC 3629,
 * section 4). */
static const struct {
    unsigned char first, last; /* of the first byte */
    unsigned char min, max;    /* of the second one */
    unsigned char more;        /* bytes after the first one */
} forms[] = {
    { 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 },
    { 0xe1, 0xec, 0x80, 0xbf, 2 }, { 0xed, 0xed, 0x80, 0x9f, 2 },
    { 0xee, 0xef, 0x80, 0xbf, 2 }, { 0xf0, 0xf0, 0x90, 0xbf, 3 },
    { 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
};

/* The length in bytes of the character at `at`; 0: not a character. */
static size_t character_len(const unsigned char *at)
{
    const unsigned char trail_min = 0x80, trail_max = 0xbf;

    if (*at < trail_min)
        return 1;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (*at < forms[i].first || *at > forms[i].last)
            continue;
        if (at[1] < forms[i].min || at[1] > forms[i].max)
            return 0;
        for (size_t k = 2; k <= forms[i].more; k++)
            if (at[k] < trail_min || at[k] > trail_max)
                return 0; /* also at the end of the string */
        return (size_t)forms[i].more + 1;
    }
    return 0;
}

static bool is_utf8(const char *text)
{
    size_t len;

    for (; *text != '\0'; text += len) {
        len = character_len((const unsigned char *)text);
        if (len == 0)
            return false;
    }
    return true;
}

/* The code point of a UTF-8 character that must be escaped, because terminals or
 * JavaScript treat it as a control: U+0080 to U+009F, U+2028, U+2029; else 0. */
static unsigned int control(const unsigned char *at)
{
    const unsigned char control_first = 0xc2, control_last = 0x9f;
    static const unsigned char separator[] = { 0xe2, 0x80, 0xa8 };
    const unsigned int line_separator = 0x2028;

    if (at[0] == control_first && at[1] <= control_last)
        return at[1];
    if (memcmp(at, separator, 2) == 0 && (at[2] & ~1U) == separator[2])
        return line_separator + (at[2] & 1U);
    return 0;
}

static void quoted(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char delete = 0x7f;

    fputc('"', out);
    while (*at != '\0') {
        size_t len = character_len(at);
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (len == 0 || *at < ' ' || *at == delete)
            fprintf(out, "\\u%04x", *at);
        else if (len > 1 && control(at) != 0)
            fprintf(out, "\\u%04x", control(at));
        else
            fwrite(at, 1, len, out);
        at += len > 0 ? len : 1;
    }
    fputc('"', out);
}

/* ---- values */

void json_string(struct json *json, const char *key, const char *text)
{
    if (!text) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    quoted(json->out, text);
}

void json_bytes(struct json *json, const char *key, const char *text)
{
    json_string(json, key, text);
    if (!text || is_utf8(text))
        return;
    fputc(',', json->out);
    newline(json);
    fprintf(json->out, "\"%s_hex\": \"", key);
    for (; *text != '\0'; text++)
        fprintf(json->out, "%02x", (unsigned char)*text);
    fputc('"', json->out);
}

void json_number(struct json *json, const char *key, long long number)
{
    begin_value(json, key);
    fprintf(json->out, "%lld", number);
}

void json_decimal(struct json *json, const char *key, double number)
{
    const double most = 1e12; /* all of its thousandths are exact */

    if (!(number >= -most && number <= most)) {
        json_null(json, key);
        return;
    }
    begin_value(json, key);
    bool negative = number < 0;
    long long thousandths = (long long)((negative ? -number : number) * DECIMALS + 0.5);
    fprintf(json->out, "%s%lld.%03lld", negative ? "-" : "", thousandths / DECIMALS,
            thousandths % DECIMALS);
}

void json_bool(struct json *json, const char *key, bool yes)
{
    begin_value(json, key);
    fputs(yes ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key)
{
    begin_value(json, key);
    fputs("null", json->out);
}
