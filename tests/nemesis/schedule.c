/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a plan: kinds out of a bag that holds each wanted kind once and is filled again
 * when it is empty, so that short plans have many kinds. The first kind in the bag that
 * fits at a moment is taken. All calculations are in integers, so that a seed means the
 * same everywhere. The only state is in memory that the caller frees.
 */
#include "schedule.h"

#include "die.h"

#include <stdlib.h>
#include <string.h>

/* One link fault in ALL_IN is that of all processes; of those that can affect one
 * connection, one in ONE_IN does. */
enum { ALL_IN = 4, ONE_IN = 2, CONNECTIONS = 8, PERCENT = 100, LONGEST = 250 };
enum { LATE_MS = 30, LEFT_ALONE_IN = 8, ALL_NODES_IN = 4, STAGES = 3 };

/* Lengths are in percent of a lease. */
static const struct {
    const char *name;
    enum nem_lane lane;
    int shortest, longest;
    bool excluded;
} kinds[NEM_KINDS] = {
    [NEM_KILL] = { "kill", NEM_LANE_PROCESS, 5, 150, false },
    [NEM_KILL_INSIDE] = { "kill-inside", NEM_LANE_PROCESS, 60, 150, false },
    [NEM_KILL_KEPT] = { "kill-kept", NEM_LANE_PROCESS, 60, 150, false },
    [NEM_KILL_ASKING] = { "kill-asking", NEM_LANE_PROCESS, 60, 150, false },
    [NEM_KILL_BURIER] = { "kill-burier", NEM_LANE_PROCESS, 50, 150, false },
    [NEM_STOP_SHORT] = { "stop-short", NEM_LANE_PROCESS, 10, 60, false },
    [NEM_STOP_LONG] = { "stop-long", NEM_LANE_PROCESS, 120, LONGEST, false },
    [NEM_DESCRIPTORS] = { "descriptors", NEM_LANE_PROCESS, 10, 100, false },
    [NEM_TERM] = { "term", NEM_LANE_PROCESS, 0, 0, false },
    [NEM_CUT_ONE] = { "cut-one", NEM_LANE_LINK, 0, 0, false },
    [NEM_CUT] = { "cut", NEM_LANE_LINK, 0, 0, false },
    [NEM_RESET] = { "reset", NEM_LANE_LINK, 0, 0, false },
    [NEM_FREEZE] = { "freeze", NEM_LANE_LINK, 5, 150, false },
    [NEM_DELAY] = { "delay", NEM_LANE_LINK, 5, 150, false },
    [NEM_LOSE_REQUESTS] = { "lose-requests", NEM_LANE_LINK, 5, 150, false },
    [NEM_LOSE_REPLIES] = { "lose-replies", NEM_LANE_LINK, 5, 150, false },
    [NEM_CUT_REPLIES] = { "cut-replies", NEM_LANE_LINK, 5, 100, false },
    [NEM_DRIP] = { "drip", NEM_LANE_LINK, 5, 150, false },
    [NEM_HALF_CLOSE] = { "half-close", NEM_LANE_LINK, 5, 100, false },
    [NEM_REFUSE] = { "refuse", NEM_LANE_LINK, 5, 150, false },
    [NEM_SILENT] = { "silent", NEM_LANE_LINK, 5, 150, false },
    [NEM_LOSE_MESSAGES] = { "lose-messages", NEM_LANE_LINK, 5, 150, false },
    [NEM_LINK_DOWN] = { "link-down", NEM_LANE_LINK, 5, 150, false },
    [NEM_FORGE] = { "forge", NEM_LANE_STRANGER, 50, 150, false },
    [NEM_LONG_MESSAGES] = { "long-messages", NEM_LANE_STRANGER, 50, 150, false },
    [NEM_HOSTILE] = { "hostile", NEM_LANE_STRANGER, 50, 200, false },
    [NEM_FORCE] = { "force", NEM_LANE_STRANGER, 25, 100, false },
    [NEM_CLIENT_KILL] = { "client-kill", NEM_LANE_SERVER, 0, 0, false },
    [NEM_CLIENT_KILL_PUBSUB] = { "client-kill-pubsub", NEM_LANE_SERVER, 0, 0, false },
    [NEM_SCRIPT_FLUSH] = { "script-flush", NEM_LANE_SERVER, 0, 0, false },
    [NEM_CLIENT_PAUSE] = { "client-pause", NEM_LANE_SERVER, 5, 80, false },
    [NEM_BUSY] = { "busy", NEM_LANE_SERVER, 5, 80, false },
    [NEM_MAXMEMORY] = { "maxmemory", NEM_LANE_SERVER, 5, 150, false },
    [NEM_ACL] = { "acl", NEM_LANE_SERVER, 5, 80, false },
    [NEM_SERVER_STOP_SHORT] = { "server-stop-short", NEM_LANE_SERVER, 10, 60, false },
    [NEM_SERVER_STOP_LONG] = { "server-stop-long", NEM_LANE_SERVER, 120, LONGEST, false },
    [NEM_SERVER_RESTART] = { "server-restart", NEM_LANE_SERVER, 0, 50, false },
    [NEM_CLOCK_BACK] = { "clock-back", NEM_LANE_SERVER, 50, 100, false },
    [NEM_CLOCK_FORWARD] = { "clock-forward", NEM_LANE_SERVER, 120, 200, true },
    [NEM_SERVER_EMPTY] = { "server-empty", NEM_LANE_SERVER, 0, 50, true },
    [NEM_FLUSHALL] = { "flushall", NEM_LANE_SERVER, 0, 0, true },
    [NEM_DELETE_LOCK] = { "delete-lock", NEM_LANE_SERVER, 25, 50, true },
    [NEM_DELETE_COMPANION] = { "delete-companion", NEM_LANE_SERVER, 25, 50, true },
    [NEM_EVICT] = { "evict", NEM_LANE_SERVER, 25, 50, true },
    [NEM_FAILOVER] = { "failover", NEM_LANE_SERVER, 5, 80, false },
    [NEM_MASTER_KILL] = { "master-kill", NEM_LANE_SERVER, 5, 80, false },
    [NEM_MASTER_STOP] = { "master-stop", NEM_LANE_SERVER, 5, 80, false },
    [NEM_TAKEOVER] = { "takeover", NEM_LANE_SERVER, 5, 80, false },
    [NEM_BUS_CUT] = { "bus-cut", NEM_LANE_SERVER, 30, 200, false },
    [NEM_NODE_RESTART] = { "node-restart", NEM_LANE_SERVER, 0, 30, false },
    [NEM_ROLLING_RESTART] = { "rolling-restart", NEM_LANE_SERVER, 0, 0, false },
    [NEM_RESHARD] = { "reshard", NEM_LANE_SERVER, 0, 0, false },
    [NEM_RESHARD_HALFWAY] = { "reshard-halfway", NEM_LANE_SERVER, 120, 200, false },
};

static const char *const companions[] = { "queue",     "rqueue", "present", "readers",
                                          "cancelled", "dirty",  "keepers", NULL };
enum { COMPANIONS = sizeof(companions) / sizeof(companions[0]) - 1 };

static const struct nem_right rights[] = {
    { { "-zadd" }, "+zadd" },
    { { "-pexpire" }, "+pexpire" },
    { { "-hset" }, "+hset" },
    { { "resetkeys", "~nemesis*", "~redisson*" }, "~*" }, /* without the companions */
    { { "resetkeys", "~nemesis*", "~rlock:*" }, "~*" },   /* without the tokens */
};
enum { RIGHTS = sizeof(rights) / sizeof(rights[0]) };

const char *nem_kind_name(enum nem_kind kind)
{
    return kinds[kind].name;
}

bool nem_kind_excluded(enum nem_kind kind, enum nem_servers servers)
{
    return kinds[kind].excluded || nem_loses((int32_t)kind, servers);
}

/* Of the kinds that one server can have, those that no ledger is needed for. */
static bool fits_many(enum nem_kind kind)
{
    return kind >= NEM_CLIENT_KILL && kind <= NEM_SERVER_STOP_LONG;
}

bool nem_kind_fits(enum nem_kind kind, enum nem_servers servers)
{
    enum nem_lane lane = kinds[kind].lane;
    if (nem_has_ledger(servers)) {
        bool reads = kind == NEM_KILL_BURIER || kind == NEM_LOSE_MESSAGES;
        return kind < NEM_FAILOVER && !(reads && servers == NEM_TLS);
    }
    if (lane == NEM_LANE_PROCESS)
        return kind != NEM_KILL_BURIER;
    if (nem_is_cluster(servers))
        return fits_many(kind) || kind >= NEM_FAILOVER ||
               (lane == NEM_LANE_LINK && kind != NEM_LINK_DOWN);
    return fits_many(kind) || (kind >= NEM_FAILOVER && !nem_is_clusters((int32_t)kind));
}

enum nem_lane nem_kind_lane(enum nem_kind kind)
{
    return kinds[kind].lane;
}

bool nem_kind_of_one(enum nem_kind kind)
{
    switch (kind) {
    case NEM_CUT_ONE:
    case NEM_RESET:
    case NEM_FREEZE:
    case NEM_DELAY:
    case NEM_LOSE_REQUESTS:
    case NEM_LOSE_REPLIES:
    case NEM_CUT_REPLIES:
    case NEM_DRIP:
    case NEM_HALF_CLOSE:
        return true;
    default:
        return false;
    }
}

bool nem_steps_clash(const struct nem_step *a, const struct nem_step *b)
{
    enum nem_lane lane = nem_kind_lane(a->kind);
    if (lane != nem_kind_lane(b->kind))
        return false;
    if (lane == NEM_LANE_STRANGER)
        return a->kind == b->kind;
    return lane == NEM_LANE_SERVER || a->target == b->target || a->target == NEM_ALL ||
           b->target == NEM_ALL;
}

const char *nem_companion(unsigned number)
{
    return number < COMPANIONS ? companions[number] : NULL;
}

const struct nem_right *nem_right(unsigned number)
{
    return number < RIGHTS ? &rights[number] : NULL;
}

/* ---- drawing */

struct draw {
    const struct nem_plan_options *options;
    struct nem_plan *plan;
    size_t size;
    uint64_t state;
    enum nem_kind bag[NEM_KINDS];
    unsigned left; /* in the bag */
    int64_t offset_ms;
};

/* splitmix64 */
static uint64_t next(struct draw *d)
{
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* From `least` to `most`, both included. */
static int64_t between(struct draw *d, int64_t least, int64_t most)
{
    if (most <= least)
        return least;
    return least + (int64_t)(next(d) % (uint64_t)(most - least + 1));
}

/* Exponentially distributed around gap_ms: one of sixteen equally probable values of
 * -ln(u), in percent. */
static int64_t gap(struct draw *d)
{
    static const int percents[] = { 3,  10, 17,  25,  33,  42,  52,  63,
                                    76, 91, 107, 127, 152, 186, 238, 378 };
    size_t i = next(d) % (sizeof(percents) / sizeof(percents[0]));
    int64_t ms = d->options->gap_ms * percents[i] / PERCENT;
    return ms > 0 ? ms : 1;
}

static void fill_bag(struct draw *d)
{
    d->left = 0;
    for (int kind = 0; kind < NEM_KINDS; kind++) {
        if (d->options->kinds >> kind & 1)
            d->bag[d->left++] = (enum nem_kind)kind;
    }
    for (unsigned i = d->left; i > 1; i--) {
        unsigned j = (unsigned)(next(d) % i);
        enum nem_kind kind = d->bag[i - 1];
        d->bag[i - 1] = d->bag[j];
        d->bag[j] = kind;
    }
}

static int64_t draw_amount(struct draw *d, enum nem_kind kind)
{
    long lease = d->options->lease_ms;
    switch (kind) {
    case NEM_KILL_INSIDE:
    case NEM_KILL_ASKING:
        return between(d, 0, 2);
    case NEM_KILL_KEPT: /* no fair lock is retained */
        return 2 * between(d, 0, 1);
    case NEM_DELAY:
        return between(d, 1, lease / 4 > 1 ? lease / 4 : 1);
    case NEM_CUT_REPLIES:
        return between(d, 1, 8);
    case NEM_DRIP:
        return between(d, 1, 3);
    case NEM_DESCRIPTORS:
        return between(d, 0, 3);
    case NEM_FORGE:
    case NEM_FORCE:
        return between(d, 0, 1) * between(d, 1, LATE_MS);
    case NEM_ACL:
        return between(d, 0, RIGHTS - 1);
    case NEM_KILL_BURIER:
    case NEM_HALF_CLOSE:
    case NEM_REFUSE:
    case NEM_LINK_DOWN:
    case NEM_CLIENT_PAUSE:
        return between(d, 0, 1);
    case NEM_CLOCK_BACK:
        return -between(d, lease / 2, 3 * lease);
    case NEM_CLOCK_FORWARD:
        return between(d, lease / 2, 3 * lease);
    case NEM_DELETE_COMPANION:
        return between(d, 0, COMPANIONS - 1);
    case NEM_FAILOVER:
    case NEM_MASTER_KILL:
    case NEM_MASTER_STOP:
        return between(d, 0, LEFT_ALONE_IN - 1) == 0;
    case NEM_TAKEOVER:
    case NEM_NODE_RESTART:
        return between(d, 0, 1);
    case NEM_BUS_CUT:
        return between(d, 0, ALL_NODES_IN - 1) == 0;
    case NEM_RESHARD_HALFWAY:
        return between(d, 0, STAGES - 1);
    default:
        return 0;
    }
}

static struct nem_step draw_step(struct draw *d, enum nem_kind kind, int64_t begin_ms)
{
    const struct nem_plan_options *o = d->options;
    struct nem_step step = {
        .begin_ms = begin_ms, .kind = kind, .target = NEM_ALL, .lock = NEM_ALL
    };
    step.length_ms = between(d, kinds[kind].shortest * o->lease_ms / PERCENT,
                             kinds[kind].longest * o->lease_ms / PERCENT);
    step.amount = draw_amount(d, kind);
    uint16_t process = (uint16_t)(next(d) % o->processes);
    /* process 0 lives through all faults, for the looks at its resources */
    if ((nem_kills((int32_t)kind) || kind == NEM_TERM) && o->processes > 1)
        process = (uint16_t)(1 + next(d) % (o->processes - 1));
    bool all = next(d) % ALL_IN == 0;
    if (kinds[kind].lane == NEM_LANE_PROCESS ||
        (kinds[kind].lane == NEM_LANE_LINK && !all))
        step.target = process;
    if (kind == NEM_CUT_ONE || (nem_kind_of_one(kind) && next(d) % ONE_IN == 0))
        step.connection = (uint16_t)between(d, 1, CONNECTIONS);
    if (kind == NEM_DELETE_LOCK || kind == NEM_DELETE_COMPANION || kind == NEM_RESHARD ||
        kind == NEM_RESHARD_HALFWAY)
        step.lock = (uint16_t)(next(d) % o->locks);
    return step;
}

/* When nothing of the step is left. After a link was down, TCP may wait for as long again
 * before it retries, and a new connection for a second. */
static int64_t over_at(const struct nem_step *step)
{
    int64_t end = step->begin_ms + step->length_ms;
    if (step->kind == NEM_LINK_DOWN)
        end += step->length_ms + NEM_LINK_RETRY_MS;
    if (step->kind == NEM_DESCRIPTORS)
        end += NEM_NOTICED_MS;
    return end;
}

/* When the last step that it clashes with is over; 0: none. The earlier steps are sorted
 * by their begin, and none takes longer than twice LONGEST and a retry. */
static int64_t free_from(const struct nem_plan *plan, const struct nem_step *step,
                         long lease_ms)
{
    int64_t from = 0, oldest = step->begin_ms - 2 * lease_ms * LONGEST / PERCENT -
                               NEM_LINK_RETRY_MS - 1;
    for (size_t i = plan->count; i > 0 && plan->steps[i - 1].begin_ms >= oldest; i--) {
        const struct nem_step *other = &plan->steps[i - 1];
        int64_t end = over_at(other);
        if (nem_steps_clash(step, other) && end >= from)
            from = end + 1;
    }
    return from;
}

static void append(struct draw *d, const struct nem_step *step)
{
    if (d->plan->count == d->size) {
        d->size = d->size ? 2 * d->size : 64;
        d->plan->steps = realloc(d->plan->steps, d->size * sizeof(*step));
        if (!d->plan->steps)
            test_die("out of memory");
    }
    d->plan->steps[d->plan->count++] = *step;
    if (step->kind == NEM_CLOCK_BACK || step->kind == NEM_CLOCK_FORWARD)
        d->offset_ms += step->amount;
}

/* Whether the step would shift the clock too far; then this bag omits it. */
static bool too_far(const struct draw *d, const struct nem_step *step)
{
    if (step->kind != NEM_CLOCK_BACK && step->kind != NEM_CLOCK_FORWARD)
        return false;
    int64_t offset = d->offset_ms + step->amount;
    return offset > NEM_OFFSET_MAX_MS || offset < -NEM_OFFSET_MAX_MS;
}

/* Takes the first kind out of the bag that fits at `now`. Returns 0 if it took one; else
 * the moment at which a kind will fit. */
static int64_t take(struct draw *d, int64_t now)
{
    int64_t soonest = INT64_MAX;
    for (unsigned i = 0; i < d->left; i++) {
        struct nem_step step = draw_step(d, d->bag[i], now);
        int64_t from = free_from(d->plan, &step, d->options->lease_ms);
        if (from > now) {
            soonest = from < soonest ? from : soonest;
            continue;
        }
        if (!too_far(d, &step) && !(d->options->impossible >> step.kind & 1))
            append(d, &step);
        d->left--;
        memmove(&d->bag[i], &d->bag[i + 1], (d->left - i) * sizeof(d->bag[0]));
        return 0;
    }
    return soonest;
}

void nem_plan_make(struct nem_plan *plan, const struct nem_plan_options *options)
{
    struct draw d = { .options = options, .plan = plan, .state = options->seed };
    memset(plan, 0, sizeof(*plan));
    if (options->processes == 0 || options->locks == 0)
        test_die("a plan needs processes and locks");
    if ((options->kinds & ((UINT64_C(1) << NEM_KINDS) - 1)) == 0)
        return;
    int64_t now = gap(&d);
    while (now < options->faults_ms) {
        if (d.left == 0)
            fill_bag(&d);
        int64_t later = take(&d, now);
        now = later ? later : now + gap(&d);
    }
}

void nem_plan_free(struct nem_plan *plan)
{
    free(plan->steps);
    memset(plan, 0, sizeof(*plan));
}
