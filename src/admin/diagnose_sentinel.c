/* SPDX-License-Identifier: Apache-2.0 */
/* The sentinels of the URL: whether they answer, agree, and can replace a master that
 * fails. Thread: any. Blocks: network, up to the command timeout. */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "base/clock.h"
#include "net/sentinel.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
    GOOD_COUNT = 3, /* sentinels: two of them outvote one that fails */
    ASK_MS = 1000,
    WHO_SIZE = 400
};

/* What all answers say together. */
struct votes {
    size_t asked, answered, agreed;
    int64_t quorum, sentinels, replicas; /* as the answers count them: the least */
    char silent[WHO_SIZE];               /* those without an answer, and why */
};

static struct rlk_sentinel_ask *ask_all(struct rlk_diagnosis *d)
{
    const struct rlk_endpoint *endpoint = &d->client->config.endpoint;
    int64_t until = rlk_inspect_until(d->client);
    int64_t most = rlk_clock_boot() + ASK_MS * RLK_NS_PER_MS;
    struct rlk_sentinel_ask *ask = NULL;

    if (rlk_sentinel_ask_start(&ask, endpoint, most < until ? most : until,
                               RLK_SENTINEL_ALL) != 0)
        return NULL;
    while (!rlk_sentinel_ask_step(ask)) {
        struct pollfd p = { .fd = rlk_sentinel_ask_fd(ask), .events = POLLIN };
        int64_t left = rlk_sentinel_ask_due(ask) - rlk_clock_boot();
        poll(&p, 1, left > 0 ? (int)(left / RLK_NS_PER_MS) + 1 : 0);
    }
    return ask;
}

static void least(int64_t *number, int64_t other)
{
    if (*number < 0 || other < *number)
        *number = other;
}

static void count(const struct rlk_sentinel_ask *ask,
                  const struct rlk_sentinel_address *master, struct votes *votes)
{
    *votes = (struct votes){ .asked = rlk_sentinel_ask_count(ask),
                             .quorum = -1,
                             .sentinels = -1,
                             .replicas = -1 };
    for (size_t i = 0; i < votes->asked; i++) {
        const struct rlk_sentinel_answer *a = rlk_sentinel_ask_answer(ask, i);
        size_t len = strlen(votes->silent);
        char label[RLK_SENTINEL_LABEL_SIZE];
        if (a->said < RLK_SENTINEL_DOWN) {
            rlk_url_label(label, sizeof(label), a->sentinel.host, a->sentinel.port);
            snprintf(votes->silent + len, sizeof(votes->silent) - len, "%s%s (%s)",
                     len > 0 ? ", " : "", label, a->text);
            continue;
        }
        votes->answered++;
        votes->agreed += a->said == RLK_SENTINEL_FOUND &&
                         rlk_sentinel_same(&a->master.address, master);
        least(&votes->quorum, a->quorum);
        least(&votes->sentinels, a->sentinels);
        least(&votes->replicas, a->replicas);
    }
}

static int tell_master(struct rlk_diagnosis *d, const struct rlk_sentinel_master *master,
                       const struct votes *votes)
{
    const char *name = d->client->config.endpoint.sentinels.master;
    char label[RLK_SENTINEL_LABEL_SIZE];

    rlk_url_label(label, sizeof(label), master->address.host, master->address.port);
    if (votes->agreed < votes->answered)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "sentinel",
            "The master \"%s\" is %s by %zu of %zu sentinels that answered; the others "
            "name another one, or cannot reach it. During a failover this passes within "
            "seconds; if it stays, look at SENTINEL MASTER of each.",
            name, label, votes->agreed, votes->answered);
    return rlk_diagnose_tell(
        d, LOG_INFO, "sentinel",
        "The master \"%s\" is %s: %zu of %zu sentinels answered, and they agree (config "
        "epoch %lld).",
        name, label, votes->answered, votes->asked, (long long)master->epoch);
}

static int tell_silent(struct rlk_diagnosis *d, const struct votes *votes)
{
    return votes->answered == votes->asked
               ? 0
               : rlk_diagnose_tell(d, LOG_WARNING, "sentinel",
                                   "%zu of %zu sentinels gave no answer: %s. Locks work, "
                                   "but a further failure may leave no majority for a "
                                   "failover.",
                                   votes->asked - votes->answered, votes->asked,
                                   votes->silent);
}

static int tell_count(struct rlk_diagnosis *d, const struct votes *votes)
{
    long long sentinels = (long long)votes->sentinels, quorum = (long long)votes->quorum;

    if (sentinels < GOOD_COUNT)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "sentinel",
            "The master has %lld sentinels: when one of them fails together with the "
            "master's host, the rest is no majority, and no replica is promoted. Run %d "
            "or more, on different hosts.",
            sentinels, GOOD_COUNT);
    if (quorum < 2)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "sentinel",
            "The quorum is %lld of %lld sentinels: one that is cut off from the master "
            "begins a failover. Set it to a majority (SENTINEL SET, quorum).",
            quorum, sentinels);
    return 0;
}

static int tell_replicas(struct rlk_diagnosis *d, const struct votes *votes)
{
    if (votes->replicas == 0)
        return rlk_diagnose_tell(d, LOG_WARNING, "sentinel",
                                 "The master has no replica: nothing can take its place. "
                                 "Start one with replicaof.");
    return rlk_diagnose_tell(
        d, LOG_NOTICE, "sentinel",
        "Replication is asynchronous: a failover may lose the last writes, and a lock "
        "that was just taken may be given to somebody else (doc/SENTINEL.md). Fencing "
        "tokens protect the data.");
}

int rlk_diagnose_sentinel(struct rlk_diagnosis *d)
{
    const struct rlk_endpoint *endpoint = &d->client->config.endpoint;
    struct rlk_sentinel_chosen chosen;
    struct votes votes;
    int rc = 0;

    if (endpoint->sentinels.count == 0)
        return 0;
    rlk_error_keep(true);
    struct rlk_sentinel_ask *ask = ask_all(d);
    rlk_error_keep(false);
    /* Without an answer, the next check reports why. */
    if (ask && rlk_sentinel_choice(ask, endpoint, &chosen)) {
        count(ask, &chosen.master.address, &votes);
        rc = tell_master(d, &chosen.master, &votes);
        if (rc == 0)
            rc = tell_silent(d, &votes);
        if (rc == 0)
            rc = tell_count(d, &votes);
        if (rc == 0)
            rc = tell_replicas(d, &votes);
    }
    if (rc == 0 && ask)
        rc = rlk_diagnose_sentinel_acl(d, ask);
    rlk_sentinel_ask_free(ask);
    return rc;
}

const char *rlk_diagnose_sentinel_host(const struct rlk_diagnosis *d,
                                       struct rlk_sentinel_master *master)
{
    const struct rlk_endpoint *endpoint = &d->client->config.endpoint;

    if (endpoint->sentinels.count == 0 ||
        !rlk_sentinel_book_present(endpoint->book, master))
        return d->at ? d->at->endpoint->host : endpoint->host;
    return master->address.host;
}
