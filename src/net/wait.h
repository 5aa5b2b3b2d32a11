/* SPDX-License-Identifier: Apache-2.0 */
/* WAIT and WAITAOF: how many replicas, and whether disks, have to confirm what a
 * connection wrote, before the client believes in it (P11). No state. Thread: any.
 * Blocks: no. */
#ifndef RLK_WAIT_H
#define RLK_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_reply;

/* What has to confirm. Zeros: nothing. */
struct rlk_wait {
    long replicas;
    long aof; /* 1: on disk (WAITAOF), at the server itself and at the replicas */
};

enum { RLK_WAIT_REPLICAS_MAX = 1000, RLK_WAIT_WORDS = 4, RLK_WAIT_NUMBER_SIZE = 24 };

static inline bool rlk_wait_is_on(const struct rlk_wait *wait)
{
    return (wait->replicas | wait->aof) != 0;
}

/* The command as words, which point into this object. */
struct rlk_wait_command {
    int argc;
    const char *argv[RLK_WAIT_WORDS];
    size_t len[RLK_WAIT_WORDS];
    char replicas[RLK_WAIT_NUMBER_SIZE], ms[RLK_WAIT_NUMBER_SIZE];
};

/* Writes the command. The server answers after `ns` at the latest. */
void rlk_wait_write(struct rlk_wait_command *command, const struct rlk_wait *wait,
                    int64_t ns);

enum rlk_wait_result { RLK_WAIT_ENOUGH, RLK_WAIT_FEW, RLK_WAIT_ERROR };

/* What the reply says. `text` gets how many confirmed, unless they are enough; or for an
 * ERROR what the server said, and *ret_code the code for the caller. */
enum rlk_wait_result rlk_wait_read(const struct rlk_wait *wait,
                                   const struct rlk_reply *reply, char *text,
                                   size_t text_size, int *ret_code);

#endif
