/* SPDX-License-Identifier: Apache-2.0 */
/* State: the environment, read at each call. Thread: any. */
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NS_PER_MS = 1000000, MS_PER_S = 1000 };

int64_t test_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * MS_PER_S + ts.tv_nsec / NS_PER_MS;
}

long test_ms(long ms)
{
    const char *text = getenv("RLOCK_TEST_SCALE");
    long scale = text ? strtol(text, NULL, 10) : 1;
    return ms * (scale > 1 ? scale : 1);
}

bool test_is_full(void)
{
    const char *level = getenv("RLOCK_TEST_LEVEL");
    return level && strcmp(level, "full") == 0;
}

long test_count(long full, long quick)
{
    return test_is_full() ? full : quick;
}

struct timespec test_in_ms(clockid_t clock, long ms)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    int64_t ns = ts.tv_nsec + (int64_t)ms * NS_PER_MS;
    const int64_t ns_per_s = (int64_t)NS_PER_MS * MS_PER_S;
    ts.tv_sec += (time_t)(ns / ns_per_s);
    ts.tv_nsec = (long)(ns % ns_per_s);
    if (ts.tv_nsec < 0) { /* C rounds towards zero; a past instant needs the floor */
        ts.tv_nsec += (long)ns_per_s;
        ts.tv_sec--;
    }
    return ts;
}

void test_pause_ms(long ms)
{
    struct timespec left = { ms / MS_PER_S, (ms % MS_PER_S) * NS_PER_MS };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

/* The time between two looks: a small part of the time waited so far. So looks cost
 * little where they are dear (under a tool, or on a busy machine) and the result is only
 * a little late. */
static long look_again_ms(int64_t waited_ms)
{
    enum { PART = 32, MOST_MS = 4 };
    int64_t ms = waited_ms / PART;
    if (ms > test_ms(MOST_MS))
        ms = test_ms(MOST_MS);
    return ms < 1 ? 1 : (long)ms;
}

bool test_wait_until(test_condition condition, void *arg, long ms)
{
    int64_t begin = test_now_ms(), end = begin + test_ms(ms);
    for (;;) {
        /* read before the condition: a slow condition still gets its last chance */
        int64_t now = test_now_ms();
        if (condition(arg))
            return true;
        if (now >= end)
            return false;
        test_pause_ms(look_again_ms(now - begin));
    }
}

bool test_stays(test_condition condition, void *arg, long ms)
{
    int64_t end = test_now_ms() + ms;
    do {
        if (!condition(arg))
            return false;
        test_pause_ms(1);
    } while (test_now_ms() < end);
    return true;
}
