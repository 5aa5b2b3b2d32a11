/* SPDX-License-Identifier: Apache-2.0 */
/* The process's logger. The callback is copied under mu and called without mu. Thread:
 * any. Locks: takes mu. */
#include "base/log.h"

#include "base/sync.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define PACE_NS INT64_C(1000000000)

static struct rlk_mutex mu =
    RLK_MUTEX_INIT; /* protects logger, logger_arg; nests in nothing */
static rlk_log_fn logger;
static void *logger_arg;
static atomic_int logger_level = -1; /* -1: silent */
static atomic_bool ended;

void rlk_log_set(rlk_log_fn fn, void *arg, int max_level)
{
    rlk_sync_mutex_lock(&mu);
    logger = fn;
    logger_arg = arg;
    atomic_store(&logger_level, fn && !rlk_log_ended() ? max_level : -1);
    rlk_sync_mutex_unlock(&mu);
}

void rlk_log(int level, const char *format, ...)
{
    if (level > atomic_load_explicit(&logger_level, memory_order_relaxed))
        return;
    rlk_sync_mutex_lock(&mu);
    rlk_log_fn fn = logger;
    void *arg = logger_arg;
    rlk_sync_mutex_unlock(&mu);
    if (!fn)
        return;
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fn(level, line, arg);
}

bool rlk_log_now(struct rlk_log_pace *pace, int64_t now, unsigned most,
                 char ret_more[RLK_LOG_MORE_SIZE])
{
    if (now >= pace->next) {
        pace->next = now + PACE_NS;
        pace->count = 0;
    } else if (pace->count >= most) {
        pace->left_out++;
        return false;
    }
    pace->count++;
    ret_more[0] = '\0';
    if (pace->left_out > 0)
        snprintf(ret_more, RLK_LOG_MORE_SIZE, " (%u such lines left out before)",
                 pace->left_out);
    pace->left_out = 0;
    return true;
}

void rlk_log_end(void)
{
    atomic_store(&ended, true);
    atomic_store(&logger_level, -1);
}

bool rlk_log_ended(void)
{
    return atomic_load(&ended);
}

void rlk_log_hold(void)
{
    rlk_sync_mutex_lock(&mu);
}

void rlk_log_unhold(void)
{
    rlk_sync_mutex_unlock(&mu);
}

void rlk_log_forget(void)
{
    mu = (struct rlk_mutex)RLK_MUTEX_INIT;
}

const char *rlk_log_name(char *buf, size_t size, const char *name, size_t name_len)
{
    static const char hex[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < name_len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (at + 4 + 4 > size) { /* room for one escape, "..." and NUL */
            for (int dots = 0; dots < 3; dots++)
                buf[at++] = '.';
            break;
        }
        if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
            buf[at++] = (char)c;
        } else {
            buf[at++] = '\\';
            buf[at++] = 'x';
            buf[at++] = hex[c >> 4];
            buf[at++] = hex[c & 15];
        }
    }
    buf[at] = '\0';
    return buf;
}

const char *rlk_log_number(char buf[RLK_LOG_NUMBER_SIZE], int64_t n, int64_t unit,
                           int digits)
{
    uint64_t size = n < 0 ? -(uint64_t)n : (uint64_t)n, by = (uint64_t)unit, scale = 1;

    for (int i = 0; i < digits; i++)
        scale *= 10;
    uint64_t whole = size / by, part = (size % by * scale + by / 2) / by;
    if (part == scale) {
        whole++;
        part = 0;
    }
    const char *sign = n < 0 && (whole > 0 || part > 0) ? "-" : "";
    if (digits > 0)
        snprintf(buf, RLK_LOG_NUMBER_SIZE, "%s%llu.%0*llu", sign,
                 (unsigned long long)whole, digits, (unsigned long long)part);
    else
        snprintf(buf, RLK_LOG_NUMBER_SIZE, "%s%llu", sign, (unsigned long long)whole);
    return buf;
}

const char *rlk_log_seconds(char buf[RLK_LOG_NUMBER_SIZE], int64_t ns)
{
    return rlk_log_number(buf, ns, INT64_C(1000000000), 1);
}
