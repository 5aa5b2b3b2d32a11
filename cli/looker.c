/* SPDX-License-Identifier: Apache-2.0 */
/* See looker.h. */
#include "looker.h"

#include "pace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { MS_PER_S = 1000, NS_PER_MS = 1000000 };

void looker_drop(struct look_list *list)
{
    if (!list)
        return;
    look_free(list);
    free(list);
}

static struct timespec monotonic_in(long ms)
{
    struct timespec when;

    clock_gettime(CLOCK_MONOTONIC, &when);
    when.tv_sec += ms / MS_PER_S;
    when.tv_nsec += ms % MS_PER_S * NS_PER_MS;
    if (when.tv_nsec >= MS_PER_S * (long)NS_PER_MS) {
        when.tv_sec++;
        when.tv_nsec -= MS_PER_S * (long)NS_PER_MS;
    }
    return when;
}

/* Makes one look; hands the list over. */
static void look_once(struct looker *looker, struct pace *pace)
{
    struct look_list *list = calloc(1, sizeof(*list));
    bool is_well = false;

    pace_begin(pace, looker->watch->client);
    if (list)
        is_well = look_gather(looker->watch->client, looker->watch->pattern, list) == 0;
    pace_end(pace, looker->watch->client);
    pthread_mutex_lock(&looker->mu);
    looker_drop(looker->news);
    looker->news = list;
    if (write(looker->wake[1], "", 1) < 0)
        looker->stop = errno != EAGAIN; /* full: the reader wakes anyway */
    pthread_mutex_unlock(&looker->mu);
    if (is_well)
        pace_measure(pace, looker->watch->client);
}

static void *look_on(void *arg)
{
    struct looker *looker = arg;
    struct pace pace = { .interval_ms = looker->watch->interval_ms };

    pthread_mutex_lock(&looker->mu);
    while (!looker->stop) {
        looker->looking = true;
        looker->since_ms = look_now_ms();
        pthread_mutex_unlock(&looker->mu);
        look_once(looker, &pace);
        pthread_mutex_lock(&looker->mu);
        looker->looking = false;
        looker->pause_ms = pace_pause_ms(&pace);
        struct timespec until = monotonic_in(pace_rest_ms(&pace));
        while (!looker->stop &&
               pthread_cond_timedwait(&looker->cond, &looker->mu, &until) == 0)
            continue;
    }
    pthread_mutex_unlock(&looker->mu);
    return NULL;
}

bool looker_start(struct looker *looker, const struct watch *watch)
{
    pthread_condattr_t attr;

    looker->watch = watch;
    if (pipe2(looker->wake, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    pthread_mutex_init(&looker->mu, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&looker->cond, &attr);
    pthread_condattr_destroy(&attr);
    return pthread_create(&looker->thread, NULL, look_on, looker) == 0;
}

struct look_list *looker_take(struct looker *looker)
{
    enum { WAKES_MAX = 64 };
    char wakes[WAKES_MAX];

    while (read(looker->wake[0], wakes, sizeof(wakes)) > 0)
        continue;
    pthread_mutex_lock(&looker->mu);
    struct look_list *list = looker->news;
    looker->news = NULL;
    pthread_mutex_unlock(&looker->mu);
    return list;
}

int64_t looker_waits_ms(struct looker *looker)
{
    pthread_mutex_lock(&looker->mu);
    int64_t waits_ms = looker->looking ? look_now_ms() - looker->since_ms : 0;
    pthread_mutex_unlock(&looker->mu);
    return waits_ms;
}

long looker_pause_ms(struct looker *looker)
{
    pthread_mutex_lock(&looker->mu);
    long pause_ms = looker->pause_ms;
    pthread_mutex_unlock(&looker->mu);
    return pause_ms;
}

bool looker_stop(struct looker *looker)
{
    pthread_mutex_lock(&looker->mu);
    bool idle = !looker->looking;
    looker->stop = true;
    pthread_cond_signal(&looker->cond);
    pthread_mutex_unlock(&looker->mu);
    if (!idle) {
        pthread_detach(looker->thread); /* the process may end first */
        return false;
    }
    pthread_join(looker->thread, NULL);
    looker_drop(looker->news);
    close(looker->wake[0]);
    close(looker->wake[1]);
    return true;
}
