/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes of the kernel's, and a store of them for numbers that are needed often:
 * one system call fills it for the next RLK_RANDOM_WORDS numbers. A store belongs to
 * whoever has it; nothing here is shared.
 */
#ifndef RLK_RANDOM_H
#define RLK_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: the kernel gives none (it has no such call, or a sandbox refuses it). */
bool rlk_random_bytes(void *buf, size_t len);

enum {
    RLK_RANDOM_WORDS = 32 /* of 256 bytes: the most that no signal cuts short */
};

/* The child of a fork must not use its parent's: it fills its own (T13). */
struct rlk_random {
    uint64_t words[RLK_RANDOM_WORDS];
    unsigned left; /* of words, the first ones */
    uint64_t last;
};

/* Fills it for the first time. False: as above. */
bool rlk_random_init(struct rlk_random *random);

/* The next number. If the kernel gives no bytes any more (a sandbox that was entered
 * since), it is the last one and 1: who has not seen an earlier one cannot guess it. */
uint64_t rlk_random_next(struct rlk_random *random);

#endif
