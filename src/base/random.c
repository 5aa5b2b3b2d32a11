/* SPDX-License-Identifier: Apache-2.0 */
/* See random.h. No state of its own. Thread: any, each with its own store. */
#include "base/random.h"

#include <errno.h>
#include <sys/random.h>

bool rlk_random_bytes(void *buf, size_t len)
{
    unsigned char *at = buf;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

bool rlk_random_fill(struct rlk_random *random)
{
    if (!rlk_random_bytes(random->words, sizeof(random->words)))
        return false;
    random->left = RLK_RANDOM_WORDS;
    return true;
}

bool rlk_random_init(struct rlk_random *random)
{
    if (!rlk_random_fill(random))
        return false;
    rlk_random_next(random);
    return true;
}
