/* SPDX-License-Identifier: Apache-2.0 */
/* A small writer of JSON, for --json: indents by two, writes commas and escapes. Its
 * output is UTF-8, whatever the strings contain. Thread: main only. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How deep objects and arrays may nest. */
enum { JSON_DEPTH_MAX = 16 };

/* A document under construction. Begin with { .out = stdout }. */
struct json {
    FILE *out;
    unsigned depth;
    bool filled[JSON_DEPTH_MAX + 1]; /* a value has been written at this depth */
};

/* `key` is NULL in an array and at the top, else the member's name. */
void json_begin_object(struct json *json, const char *key);
void json_end_object(struct json *json);
void json_begin_array(struct json *json, const char *key);
void json_end_array(struct json *json);

/* A byte that is not part of valid UTF-8 becomes \u00XX, as if it were Latin-1. NULL:
 * null. */
void json_string(struct json *json, const char *key, const char *text);

/* As json_string; if `text` is not valid UTF-8, a second member "<key>_hex" has all of
 * its bytes in hexadecimal: without it \u00ff and the byte ff would look the same. */
void json_bytes(struct json *json, const char *key, const char *text);

void json_number(struct json *json, const char *key, long long number);
/* With three decimals and a point, in every locale; null if it is not finite, or
 * beyond 1e12. */
void json_decimal(struct json *json, const char *key, double number);
void json_bool(struct json *json, const char *key, bool yes);
void json_null(struct json *json, const char *key);

/* Ends the document's last line. */
void json_end(struct json *json);

#endif
