/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes from the kernel, and a store of them for frequent numbers: one system call
 * fills it for the next RLK_RANDOM_WORDS numbers. Thread: any; the owner of a store
 * guards it.
 */
#ifndef RLK_RANDOM_H
#define RLK_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False: the kernel gives none, because it has no such call or a sandbox refuses it. */
bool rlk_random_bytes(void *buf, size_t len);

enum {
    RLK_RANDOM_WORDS = 32 /* 256 bytes: no signal interrupts a request of this size */
};

/* A store of random numbers. The child of a fork must fill its own (T13). */
struct rlk_random {
    uint64_t words[RLK_RANDOM_WORDS];
    unsigned left; /* how many of the words, from the first on, are unused */
    uint64_t last;
};

/* Fills the store for the first time. False: as rlk_random_bytes. */
bool rlk_random_init(struct rlk_random *random);

/* Fills a store again. False: as rlk_random_bytes. */
bool rlk_random_fill(struct rlk_random *random);
/* The next number. If the kernel gives no bytes any more, because the process entered
 * a sandbox, it is the last number plus 1: a process that has seen no earlier number
 * cannot guess it. */
static inline uint64_t rlk_random_next(struct rlk_random *random)
{
    /* rule: S2 */
    if (random->left == 0 && !rlk_random_fill(random))
        return ++random->last;
    random->last = random->words[--random->left];
    return random->last;
}

#endif
