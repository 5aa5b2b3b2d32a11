/* SPDX-License-Identifier: Apache-2.0 */
/* The contenders of other libraries; their programs are in bench/peers. All clients of
 * Redisson are in one process: sixty-four virtual machines would measure the machine. */
#include "contender.h"

#include <stddef.h>

static const struct peer redisson[] = { { "redisson", "mutex", true },
                                        { "redisson", "fair", true },
                                        { "redisson", "read", true },
                                        { "redisson", "write", true },
                                        { "redisson", "mixed", true } };
static const struct peer redis_py = { "redis-py", "mutex", false };
static const struct peer redsync = { "redsync", "mutex", false };

const struct contender redisson_pair = { .label = "Redisson", .peer = &redisson[0] };
const struct contender redisson_fair = { .label = "Redisson fair", .peer = &redisson[1] };
const struct contender redisson_read = { .label = "Redisson read", .peer = &redisson[2] };
const struct contender redisson_write = { .label = "Redisson write",
                                          .peer = &redisson[3] };
const struct contender redisson_mixed = { .label = "Redisson", .peer = &redisson[4] };
const struct contender redis_py_pair = { .label = "redis-py", .peer = &redis_py };
const struct contender redsync_pair = { .label = "redsync", .peer = &redsync };
