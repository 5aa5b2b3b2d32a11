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

/* Of lines that others can provoke, or that many locks have at once: so many a second of
 * each pace at most, and the next one tells how many were left out. Zeroed at first; its
 * owner's alone. */
struct rlk_log_pace {
    int64_t next; /* ns */
    unsigned count, left_out;
};
#define RLK_LOG_MORE_SIZE 48
/* Whether to log now. ret_more: the end of the line: " (7 such lines left out before)",
 * or nothing. */
bool rlk_log_now(struct rlk_log_pace *pace, int64_t now, unsigned most,
                 char ret_more[RLK_LOG_MORE_SIZE]);

/* Writes n / unit with so many digits behind the point, rounded, whatever the program's
 * locale is; returns buf. unit: 1 to 10^12, digits: 0 to 6. */
#define RLK_LOG_NUMBER_SIZE 32
const char *rlk_log_number(char buf[RLK_LOG_NUMBER_SIZE], int64_t n, int64_t unit,
                           int digits);
/* Seconds with one digit, of ns. */
const char *rlk_log_seconds(char buf[RLK_LOG_NUMBER_SIZE], int64_t ns);

/* Writes `name` with bytes outside printable ASCII, '"' and '\\' as \xNN, cut to fit
 * `size` with "..." ; returns buf. */
const char *rlk_log_name(char *buf, size_t size, const char *name, size_t name_len);
#define RLK_LOG_NAME_SIZE 96

#endif
