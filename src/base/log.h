/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines for rlock_setlogger. Thread: any. Locks: takes a mutex; never call with a
 * mutex held. doc/OBSERVABILITY.md lists every line. */
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

/* The process ends: from now on there are no log lines and no events. */
void rlk_log_end(void);
bool rlk_log_ended(void);

/* Before and after a fork in the parent; and in a child. */
void rlk_log_hold(void);
void rlk_log_unhold(void);
void rlk_log_forget(void);

/* Limits lines that other users can provoke or that many locks have at once: each pace
 * permits a number of lines in a second, and the next line says how many were left
 * out. Zero it first. Its owner guards it. */
struct rlk_log_pace {
    int64_t next; /* ns */
    unsigned count, left_out;
};
#define RLK_LOG_MORE_SIZE 48
/* Whether to log now. ret_more: the end of the line, as " (7 such lines left out
 * before)", or "". */
bool rlk_log_now(struct rlk_log_pace *pace, int64_t now, unsigned most,
                 char ret_more[RLK_LOG_MORE_SIZE]);

/* Writes n / unit, rounded to `digits` digits after the point, independent of the
 * program's locale. Returns buf. unit: 1 to 10^12; digits: 0 to 6. */
#define RLK_LOG_NUMBER_SIZE 32
const char *rlk_log_number(char buf[RLK_LOG_NUMBER_SIZE], int64_t n, int64_t unit,
                           int digits);
/* Writes ns as seconds with one digit after the point. */
const char *rlk_log_seconds(char buf[RLK_LOG_NUMBER_SIZE], int64_t ns);

/* Writes `name` with bytes outside printable ASCII, '"' and '\\' as \xNN, and cuts it
 * to `size` with "...". Returns buf. */
const char *rlk_log_name(char *buf, size_t size, const char *name, size_t name_len);
#define RLK_LOG_NAME_SIZE 96

#endif
