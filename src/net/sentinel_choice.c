/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the answers to believe. The newest one, that with the greatest epoch; but
 * never one that is older than the master that was proven last, unless most of all
 * sentinels give it (their numbers begin again at 0 after SENTINEL RESET).
 *
 * A sentinel that lies can claim any epoch. It cannot lock the client out: when the
 * newest answers have been wrong for 5 s, and others contradict them, an address that
 * most sentinels of the URL agree on is tried by turns with the newest one. By then real
 * news has reached all sentinels.
 *
 * No state. Thread: any. Blocks: no.
 */
#include "net/sentinel.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

struct votes {
    size_t all, listed;
};

static bool is_found(const struct rlk_sentinel_answer *answer)
{
    return answer->said == RLK_SENTINEL_FOUND;
}

static struct votes count_votes(const struct rlk_sentinel_ask *ask,
                                const struct rlk_sentinel_address *address)
{
    struct votes votes = { 0, 0 };

    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++) {
        const struct rlk_sentinel_answer *a = rlk_sentinel_ask_answer(ask, i);
        if (!is_found(a) || !rlk_sentinel_same(&a->master.address, address))
            continue;
        votes.all++;
        votes.listed += a->listed;
    }
    return votes;
}

static size_t count_listed(const struct rlk_sentinel_ask *ask)
{
    size_t count = 0;

    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++)
        count += rlk_sentinel_ask_answer(ask, i)->listed;
    return count;
}

/* rule: P8 */
/* Whether the answer is from before the last switch of the master. One sentinel may have
 * made up all that were learned: they have no vote. */
static bool is_stale(const struct rlk_sentinel_ask *ask,
                     const struct rlk_sentinel_answer *answer,
                     const struct rlk_sentinel_master *proven)
{
    return answer->master.epoch < proven->epoch &&
           count_votes(ask, &answer->master.address).listed * 2 <= count_listed(ask);
}

/* rule: P7 */
/* Whether `a` is the better answer. */
static bool is_better(const struct rlk_sentinel_ask *ask,
                      const struct rlk_sentinel_answer *a,
                      const struct rlk_sentinel_answer *b)
{
    if (a->master.epoch != b->master.epoch)
        return a->master.epoch > b->master.epoch;
    struct votes for_a = count_votes(ask, &a->master.address);
    struct votes for_b = count_votes(ask, &b->master.address);
    if (for_a.listed != for_b.listed)
        return for_a.listed > for_b.listed;
    return for_a.all > for_b.all;
}

/* The newest answer that is not stale, of those with more than `least` votes of the
 * URL's sentinels. NULL: there is none. */
static const struct rlk_sentinel_answer *
find_newest(const struct rlk_sentinel_ask *ask, const struct rlk_sentinel_master *proven,
            size_t least)
{
    const struct rlk_sentinel_answer *best = NULL;

    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++) {
        const struct rlk_sentinel_answer *a = rlk_sentinel_ask_answer(ask, i);
        if (is_found(a) && !is_stale(ask, a, proven) &&
            (least == 0 || count_votes(ask, &a->master.address).listed > least) &&
            (!best || is_better(ask, a, best)))
            best = a;
    }
    return best;
}

/* Whether a sentinel knows a newer master than this one, at another address, and cannot
 * reach it yet: after a switch it says so for a moment. */
static bool is_vetoed(const struct rlk_sentinel_ask *ask,
                      const struct rlk_sentinel_answer *best)
{
    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++) {
        const struct rlk_sentinel_answer *a = rlk_sentinel_ask_answer(ask, i);
        if (a->said == RLK_SENTINEL_DOWN && a->settles &&
            a->master.epoch > best->master.epoch &&
            !rlk_sentinel_same(&a->master.address, &best->master.address))
            return true;
    }
    return false;
}

bool rlk_sentinel_choice(const struct rlk_sentinel_ask *ask,
                         const struct rlk_endpoint *endpoint,
                         struct rlk_sentinel_chosen *ret_chosen)
{
    struct rlk_sentinel_master proven = { .epoch = -1 };
    size_t found = 0;

    unsigned edition = rlk_sentinel_book_edition(endpoint->book);
    rlk_sentinel_book_present(endpoint->book, &proven);
    const struct rlk_sentinel_answer *newest = find_newest(ask, &proven, 0);
    const struct rlk_sentinel_answer *best = newest;
    if (!newest)
        return false;
    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++)
        found += is_found(rlk_sentinel_ask_answer(ask, i));
    bool agreed = count_votes(ask, &newest->master.address).all == found;
    if (!agreed && rlk_sentinel_book_doubts(endpoint->book, rlk_clock_boot())) {
        const struct rlk_sentinel_answer *most =
            find_newest(ask, &proven, endpoint->sentinels.count / 2);
        if (most)
            best = most;
    }
    if (rlk_sentinel_book_veto(endpoint->book, is_vetoed(ask, best), rlk_clock_boot()))
        return false;
    *ret_chosen = (struct rlk_sentinel_chosen){ .master = best->master,
                                                .agreed = agreed,
                                                .newest = best == newest,
                                                .edition = edition };
    return true;
}

/* ---- why there is none */

static size_t count_said(const struct rlk_sentinel_ask *ask, enum rlk_sentinel_said said)
{
    size_t count = 0;

    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++)
        count += rlk_sentinel_ask_answer(ask, i)->said == said;
    return count;
}

static const struct rlk_sentinel_answer *first(const struct rlk_sentinel_ask *ask,
                                               enum rlk_sentinel_said said)
{
    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++)
        if (rlk_sentinel_ask_answer(ask, i)->said == said)
            return rlk_sentinel_ask_answer(ask, i);
    return NULL;
}

bool rlk_sentinel_choice_silent(const struct rlk_sentinel_ask *ask)
{
    return count_said(ask, RLK_SENTINEL_SILENT) == rlk_sentinel_ask_count(ask);
}

bool rlk_sentinel_choice_down(const struct rlk_sentinel_ask *ask)
{
    return count_said(ask, RLK_SENTINEL_DOWN) > 0;
}

/* Whether more than half of the URL's sentinels said this. */
static bool is_majority(const struct rlk_sentinel_ask *ask, enum rlk_sentinel_said said)
{
    size_t count = 0;

    for (size_t i = 0; i < rlk_sentinel_ask_count(ask); i++)
        count += rlk_sentinel_ask_answer(ask, i)->listed &&
                 rlk_sentinel_ask_answer(ask, i)->said == said;
    return count * 2 > count_listed(ask);
}

/* Of what most sentinels said, what the user can mend most likely. */
static enum rlk_sentinel_said find_cause(const struct rlk_sentinel_ask *ask)
{
    static const enum rlk_sentinel_said causes[] = {
        RLK_SENTINEL_FOUND, RLK_SENTINEL_DOWN, RLK_SENTINEL_UNKNOWN, RLK_SENTINEL_DENIED,
        RLK_SENTINEL_STRANGE
    };

    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
        if (count_said(ask, causes[i]) > 0)
            return causes[i];
    return RLK_SENTINEL_SILENT;
}

enum rlk_failure rlk_sentinel_choice_none(const struct rlk_sentinel_ask *ask,
                                          const struct rlk_endpoint *endpoint, char *buf,
                                          size_t size)
{
    enum rlk_sentinel_said cause = find_cause(ask);
    const struct rlk_sentinel_answer *a = first(ask, cause);
    const char *master = endpoint->sentinels.master, *whence = endpoint->whence;
    size_t count = count_said(ask, cause), all = rlk_sentinel_ask_count(ask);
    char label[RLK_SENTINEL_LABEL_SIZE];
    bool most = is_majority(ask, cause);

    rlk_url_label(label, sizeof(label), a->sentinel.host, a->sentinel.port);
    switch (cause) {
    case RLK_SENTINEL_FOUND:
        snprintf(buf, size,
                 "sentinel %s names an old master %s, and the others do not answer",
                 label, master);
        return RLK_FAIL_NOT_SENT;
    case RLK_SENTINEL_DOWN:
        snprintf(buf, size, "%zu of %zu sentinels say that master %s%s is down (%s)",
                 count, all, master, whence, a->text);
        return RLK_FAIL_NOT_SENT;
    case RLK_SENTINEL_UNKNOWN:
        snprintf(buf, size,
                 "no master of the name \"%s\"%s: %zu of %zu sentinels do not know it",
                 master, whence, count, all);
        return most ? RLK_FAIL_PROTOCOL : RLK_FAIL_NOT_SENT;
    case RLK_SENTINEL_DENIED:
        snprintf(buf, size,
                 "%zu of %zu sentinels of master %s%s refuse this client (sentineluser, "
                 "sentinelpassword): %s",
                 count, all, master, whence, a->text);
        return most ? RLK_FAIL_ACCESS : RLK_FAIL_NOT_SENT;
    case RLK_SENTINEL_STRANGE:
        snprintf(buf, size, "sentinel %s of master %s%s: %s", label, master, whence,
                 a->text);
        return most ? RLK_FAIL_PROTOCOL : RLK_FAIL_NOT_SENT;
    case RLK_SENTINEL_SILENT:
    default:
        snprintf(buf, size, "no sentinel of master %s%s answers: %s", master, whence,
                 a ? a->text : "");
        return RLK_FAIL_NOT_SENT;
    }
}
