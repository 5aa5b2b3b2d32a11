/* SPDX-License-Identifier: Apache-2.0 */
/* WAIT and WAITAOF: how many replicas, and whether disks, have to confirm what a
 * connection wrote, before the client believes in it (P11). No state. Thread: any.
 * Blocks: no. */
#ifndef RLK_CONFIRM_H
#define RLK_CONFIRM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rlk_reply;

/* What has to confirm. Zeros: nothing. */
struct rlk_confirm {
    long replicas;
    long aof; /* 1: on disk (WAITAOF), at the server itself and at the replicas */
};

enum {
    RLK_CONFIRM_REPLICAS_MAX = 1000,
    /* A server ends a WAIT late: it looks at the time only when something happens, or by
     * its timer, which is due each 100 ms (hz 10). */
    RLK_CONFIRM_LATE_MS = 150,
    /* With less time left, no WAIT is repeated: its answer might come too late. */
    RLK_CONFIRM_LEAST_MS = 200,
    RLK_CONFIRM_WORDS = 4,
    RLK_CONFIRM_NUMBER_SIZE = 24
};

static inline bool rlk_confirm_is_on(const struct rlk_confirm *wait)
{
    return (wait->replicas | wait->aof) != 0;
}

/* The command as words, which point into this object. */
struct rlk_confirm_command {
    int argc;
    const char *argv[RLK_CONFIRM_WORDS];
    size_t len[RLK_CONFIRM_WORDS];
    char replicas[RLK_CONFIRM_NUMBER_SIZE], ms[RLK_CONFIRM_NUMBER_SIZE];
};

/* Writes the command. The server waits for `ns`, and RLK_CONFIRM_LATE_MS longer at most.
 */
void rlk_confirm_write(struct rlk_confirm_command *command,
                       const struct rlk_confirm *wait, int64_t ns);

enum rlk_confirm_result {
    RLK_CONFIRM_ENOUGH,
    RLK_CONFIRM_FEW,     /* so far, or the server cannot say it at the moment */
    RLK_CONFIRM_REPLICA, /* the server is a replica, or has just become one */
    RLK_CONFIRM_REFUSED  /* it will say the same next time */
};

/* What this error means, the answer to the command. *ret_code: the code for the caller.
 */
enum rlk_confirm_result rlk_confirm_sort_error(const char *said, size_t len,
                                               int *ret_code);

/* What the reply says. Unless replicas enough have confirmed, `text` gets how many, or
 * what the server said, and *ret_code the code for the caller. */
enum rlk_confirm_result rlk_confirm_read(const struct rlk_confirm *wait,
                                         const struct rlk_reply *reply, char *text,
                                         size_t text_size, int *ret_code);

#endif
