/* SPDX-License-Identifier: Apache-2.0 */
/* rlock watch into a file or a pipe: one line for each difference between two looks.
 * The output grows with events, not with time. Signals end it as they end any program.
 * Thread: main only. */
#include "pace.h"
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { US_PER_MS = 1000 };

static void tell(const char *event, const char *name, const char *type, const char *who)
{
    enum { STAMP_MAX = 64 };
    char stamp[STAMP_MAX];
    time_t now = time(NULL);
    struct tm parts;

    localtime_r(&now, &parts);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S%z", &parts);
    printf("%s\t%s\t%s\t%s\t%s\n", stamp, event, name, type, who);
}

static void tell_of(const char *event, const rlock_info_t *lock,
                    const rlock_party_t *party)
{
    char *name = cli_printable(lock->name), *who = look_who(party);

    tell(event, name, look_type(lock->type), who);
    free(name);
    free(who);
}

static void tell_all(const char *event, const rlock_info_t *lock)
{
    for (size_t i = 0; i < lock->holder_count; i++)
        tell_of(event, lock, &lock->holders[i]);
}

static const char *how_come(const rlock_info_t *was, const rlock_party_t *now)
{
    for (size_t i = 0; i < was->holder_count; i++)
        if (now->client[0] != '\0' && strcmp(was->holders[i].client, now->client) == 0)
            return "retaken";
    return "passed";
}

/* For a lock that was held at both looks. */
static void tell_change(const rlock_info_t *was, const rlock_info_t *is)
{
    bool stayed = false;

    for (size_t i = 0; i < is->holder_count; i++)
        stayed = stayed || look_find(was, &is->holders[i]);
    for (size_t i = 0; stayed && i < was->holder_count; i++)
        if (!look_find(is, &was->holders[i]))
            tell_of("left", was, &was->holders[i]);
    for (size_t i = 0; i < is->holder_count; i++)
        if (!look_find(was, &is->holders[i]))
            tell_of(stayed ? "joined" : how_come(was, &is->holders[i]), is,
                    &is->holders[i]);
}

/* Both sorted by name. */
static void tell_changes(const struct look_list *was, const struct look_list *is)
{
    size_t i = 0, k = 0;

    while (i < was->count || k < is->count) {
        int order = i == was->count  ? 1
                    : k == is->count ? -1
                                     : strcmp(was->locks[i]->name, is->locks[k]->name);
        if (order == 0)
            tell_change(was->locks[i], is->locks[k]);
        else if (order < 0)
            tell_all("released", was->locks[i]);
        else
            tell_all("taken", is->locks[k]);
        i += order <= 0;
        k += order >= 0;
    }
}

static void tell_reachable(const struct look_list *is, bool *away)
{
    bool now_away = is->code != 0;
    if (now_away != *away)
        tell(now_away ? "unreachable" : "reachable", "", "", is->reason);
    *away = now_away;
}

/* False: no process reads stdout any more. */
static bool pause_for(long ms)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = 0 };
    return poll(&out, 1, (int)ms) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

/* To stderr: it is not an event of a lock. */
static void tell_pause(struct pace *pace)
{
    char cost[LOOK_TIME_SIZE], pause[LOOK_TIME_SIZE], asked[LOOK_TIME_SIZE];

    if (pace_is_news(pace))
        cli_complain(
            "a look takes up to %s of the server's time: one every %s from now on, "
            "not every %s",
            look_time((long)(pace_cost_us(pace) / US_PER_MS), cost),
            look_time(pace_pause_ms(pace), pause), look_time(pace->interval_ms, asked));
}

int watch_plain(const struct watch *watch)
{
    struct pace pace = { .interval_ms = watch->interval_ms };
    struct look_list was = { 0 };
    bool away = false;
    int code = CLI_OK;

    for (bool first = true; code == CLI_OK;) {
        struct look_list is = { 0 };
        pace_begin(&pace, watch->client);
        int rc = look_gather(watch->client, watch->pattern, &is);
        pace_end(&pace, watch->client);
        if (rc != 0 && rc != ENOTCONN) {
            code = cli_failed(rc, "cannot list the locks");
            look_free(&is);
            break;
        }
        tell_reachable(&is, &away);
        if (rc != 0) {
            look_free(&is);
        } else if (first) {
            for (size_t i = 0; i < is.count; i++)
                tell_all("held", is.locks[i]);
        } else {
            tell_changes(&was, &is);
        }
        if (rc == 0) {
            look_free(&was);
            was = is;
            first = false;
        }
        code = cli_printed(CLI_OK);
        if (rc == 0)
            pace_measure(&pace, watch->client);
        tell_pause(&pace);
        if (code == CLI_OK && !pause_for(pace_rest_ms(&pace)))
            break;
    }
    look_free(&was);
    return code;
}
