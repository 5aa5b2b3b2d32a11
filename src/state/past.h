/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the last acquisitions that queued, or that were given up while they
 * might have queued. They tell a late grant, for an acquisition that is long over, from a
 * forged grant: a server that lost data may grant what the owner had or gave up. Each
 * number is used once. Owner: the registry, which guards it by its mutex.
 */
#ifndef RLK_PAST_H
#define RLK_PAST_H

#include <stdbool.h>
#include <stdint.h>

enum { RLK_PAST_MAX = 1024 };

struct rlk_past {
    uint64_t numbers[RLK_PAST_MAX]; /* 0: none */
    unsigned next;                  /* where the oldest is */
};

/* Adds the number of an acquisition that is over, in place of the oldest. */
void rlk_past_add(struct rlk_past *past, uint64_t number);
/* Whether the number is there. Then it is removed. */
bool rlk_past_take(struct rlk_past *past, uint64_t number);

#endif
