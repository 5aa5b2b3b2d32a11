/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines for rlock_setlogger. Never call with a mutex held. */
#ifndef RLK_LOG_H
#define RLK_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rlk_level {
    RLK_LOG_ERR = 3,
    RLK_LOG_WARNING = 4,
    RLK_LOG_INFO = 6,
    RLK_LOG_DEBUG = 7
};

typedef void (*rlk_log_fn)(int level, const char *line, void *arg);

void rlk_log_set(rlk_log_fn fn, void *arg, int max_level);

void rlk_log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The process ends: neither log lines nor events any more. */
void rlk_log_end(void);
bool rlk_log_ended(void);

/* Around a fork, and in a child of which it was not told. */
void rlk_log_hold(void);
void rlk_log_unhold(void);
void rlk_log_forget(void);

/* Of lines that others can provoke: at most one a second of each pace, which tells how
 * many were left out before it. Zeroed at first; its owner's alone. */
struct rlk_log_pace {
    int64_t next; /* ns */
    unsigned left_out;
};
/* Whether to log now; *ret_left_out: how many were not, since the last that was. */
bool rlk_log_now(struct rlk_log_pace *pace, int64_t now, unsigned *ret_left_out);

/* Writes `name` with bytes outside printable ASCII, '"' and '\\' as \xNN, cut to fit
 * `size` with "..." ; returns buf. */
const char *rlk_log_name(char *buf, size_t size, const char *name, size_t name_len);
#define RLK_LOG_NAME_SIZE 96

#endif
