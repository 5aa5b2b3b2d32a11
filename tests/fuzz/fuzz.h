/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that the fuzz targets share. A target is a file that defines
 * LLVMFuzzerTestOneInput. It is linked either with libFuzzer (tests/fuzz/run) or with
 * replay.c, which is a program of `make check`. An input that breaks a property ends the
 * process by fuzz_must.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Prints the condition that does not hold, and aborts: libFuzzer and replay.c keep the
 * input. */
#define fuzz_must(condition)                                                             \
    ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
void fuzz_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* An input that is consumed front to back; it reads as 0 when it is used up. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};
uint8_t fuzz_byte(struct fuzz_input *in);
/* Up to `max` bytes; *ret_len says how many. Points into the input. */
const uint8_t *fuzz_bytes(struct fuzz_input *in, size_t max, size_t *ret_len);
/* A line: up to the next '\n', which is consumed too, or up to the end. */
const uint8_t *fuzz_line(struct fuzz_input *in, size_t *ret_len);

/* A heap copy that ends where its block ends, so that a sanitizer notices a read beyond;
 * if `terminated`, with a NUL behind it. */
char *fuzz_copy(const void *bytes, size_t len, bool terminated);

/* Whether all of it is printable ASCII. */
bool fuzz_printable(const char *text);

#endif
