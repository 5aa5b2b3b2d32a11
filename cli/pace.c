/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pace.h. A client cannot see for how long the server worked on a request, only how
 * long the reply took. A PING takes the time of the network, apart from the server's
 * fixed work for each request. The rest counts as the server's work, even if the server
 * was busy with other clients or the network was slow: then looks are rarer than
 * necessary. A server that stood still for a moment would cause a long pause; therefore
 * the time of one request counts only up to a limit.
 */
#include "pace.h"

#include <limits.h>
#include <time.h>

enum {
    SHARE = 20, /* a look takes at most this part of the server's time */
    REQUEST_US =
        20, /* the server's fixed work for a request, also for a PING: reading, writing */
    REQUEST_MAX_US = 100000,
    FIRST_PINGS = 4,
    US_PER_S = 1000000,
    US_PER_MS = 1000,
    NS_PER_US = 1000,
    TELL_AGAIN = 2 /* report again when the pause has grown by this factor */
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / NS_PER_US;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static rlock_histogram_t round_trips(const rlock_client_t *client)
{
    rlock_stats_t stats;

    if (rlock_client_getstats(client, &stats) != 0)
        return (rlock_histogram_t){ 0 };
    return stats.round_trip_time;
}

void pace_begin(struct pace *pace, const rlock_client_t *client)
{
    pace->began_us = now_us();
    pace->before = round_trips(client);
}

void pace_end(struct pace *pace, const rlock_client_t *client)
{
    pace->lasted_us = now_us() - pace->began_us;
    pace->took = round_trips(client);
    pace->took.count -= pace->before.count;
    pace->took.sum_us -= pace->before.sum_us;
    for (int i = 0; i < RLOCK_HISTOGRAM_BUCKETS; i++)
        pace->took.buckets[i] -= pace->before.buckets[i];
}

void pace_measure(struct pace *pace, rlock_client_t *client)
{
    for (int i = pace->trip_us > 0 ? FIRST_PINGS - 1 : 0; i < FIRST_PINGS; i++) {
        int64_t begin = now_us();
        if (rlock_client_ping(client) != 0)
            return;
        int64_t took = now_us() - begin;
        if (pace->trip_us == 0 || took < pace->trip_us)
            pace->trip_us = took > 0 ? took : 1;
    }
}

int64_t pace_cost_us(const struct pace *pace)
{
    int64_t way = pace->trip_us > REQUEST_US ? pace->trip_us - REQUEST_US : 0;
    int64_t count = (int64_t)pace->took.count, bounded = 0;

    for (int i = 0; i < RLOCK_HISTOGRAM_BUCKETS; i++)
        bounded += (int64_t)pace->took.buckets[i] *
                   lesser(INT64_C(1) << i, way + REQUEST_MAX_US);
    int64_t cost = lesser((int64_t)pace->took.sum_us, bounded) - count * way;
    int64_t least = count * REQUEST_US;
    return cost > least ? cost : least;
}

long pace_pause_ms(const struct pace *pace)
{
    int64_t pause = pace_cost_us(pace) * (SHARE - 1) / US_PER_MS;

    return pause > pace->interval_ms ? (long)lesser(pause, INT_MAX) : pace->interval_ms;
}

long pace_rest_ms(const struct pace *pace)
{
    int64_t paused = (pace->lasted_us - pace_cost_us(pace)) / US_PER_MS;
    int64_t rest = pace_pause_ms(pace) - (paused > 0 ? paused : 0);

    return rest > pace->interval_ms ? (long)rest : pace->interval_ms;
}

bool pace_is_news(struct pace *pace)
{
    long pause = pace_pause_ms(pace);
    bool is_long = pause > pace->interval_ms;
    bool is_news = is_long && pace->was_long && pause / TELL_AGAIN >= pace->told_ms;

    pace->was_long = is_long;
    if (is_news)
        pace->told_ms = pause;
    return is_news;
}
