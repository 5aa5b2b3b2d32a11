/* SPDX-License-Identifier: Apache-2.0 */
/* See fuzz.h. No state. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fuzz_fail(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

uint8_t fuzz_byte(struct fuzz_input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t max, size_t *ret_len)
{
    const uint8_t *bytes = in->at;
    *ret_len = max < in->left ? max : in->left;
    in->at += *ret_len;
    in->left -= *ret_len;
    return bytes;
}

const uint8_t *fuzz_line(struct fuzz_input *in, size_t *ret_len)
{
    const uint8_t *end = in->left > 0 ? memchr(in->at, '\n', in->left) : NULL;
    const uint8_t *line =
        fuzz_bytes(in, end ? (size_t)(end - in->at) : in->left, ret_len);
    fuzz_byte(in);
    return line;
}

char *fuzz_copy(const void *bytes, size_t len, bool terminated)
{
    char *copy = malloc(len + terminated > 0 ? len + terminated : 1);
    if (!copy)
        abort();
    if (len > 0)
        memcpy(copy, bytes, len);
    if (terminated)
        copy[len] = '\0';
    return copy;
}

bool fuzz_printable(const char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}
