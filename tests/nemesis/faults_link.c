/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the link of one process, or of all, by its proxies or its network interface:
 * of all connections, or of one of each proxy. */
#include "faults_impl.h"

#include <stdio.h>

/* How many replies are cut, and how many streams half closed: new connections then get
 * through. */
enum { CUTS = 3, HALF_CLOSES = 2, CONNECTIONS_MAX = 256 };
static unsigned first(const struct nem_faults *f, const struct nem_active *a)
{
    return a->step->target == NEM_ALL ? 0 : a->step->target * f->links;
}

static unsigned behind_last(const struct nem_faults *f, const struct nem_active *a)
{
    return (a->step->target == NEM_ALL ? f->processes : a->step->target + 1U) * f->links;
}

/* The links of the targets. */
#define EACH_TARGET(i)                                                                   \
    unsigned i = first(f, a);                                                            \
    i < behind_last(f, a);                                                               \
    i++

/* Chooses the connection of each link at the begin; 0: all connections. */
static void choose(struct nem_faults *f, struct nem_active *a)
{
    unsigned numbers[CONNECTIONS_MAX];
    for (EACH_TARGET(i)) {
        size_t open = test_proxy_connections(f->proxies[i], numbers, CONNECTIONS_MAX);
        open = open < CONNECTIONS_MAX ? open : CONNECTIONS_MAX;
        if (a->step->connection > 0 && open > 0)
            a->connections[i] = numbers[(a->step->connection - 1U) % open];
    }
    if (a->step->target != NEM_ALL && f->links == 1)
        a->record.connection = a->connections[a->step->target];
    else if (a->step->connection > 0)
        a->record.connection = NEM_EACH;
}

/* ---- rules */

static void lay_on(struct nem_faults *f, struct nem_active *a, unsigned i,
                   const struct test_rule *rule)
{
    struct test_rule its = *rule;
    int *slot = &a->rules[i * NEM_RULES_EACH];
    while (*slot)
        slot++;
    its.connection = a->connections[i];
    *slot = test_proxy_add(f->proxies[i], &its);
}

static void lay(struct nem_faults *f, struct nem_active *a, const struct test_rule *rule)
{
    for (EACH_TARGET(i))
        lay_on(f, a, i, rule);
}
#define RULE(...) (&(const struct test_rule){ __VA_ARGS__ })

bool nem_lift(struct nem_faults *f, struct nem_active *a)
{
    for (unsigned i = 0; i < f->processes * f->links * NEM_RULES_EACH; i++) {
        struct test_proxy *proxy = f->proxies[i / NEM_RULES_EACH];
        if (a->rules[i]) {
            a->record.hits += test_proxy_hits(proxy, a->rules[i]);
            test_proxy_remove(proxy, a->rules[i]);
        }
        a->rules[i] = 0;
    }
    return true;
}

/* ---- cuts */

static void cut_by(struct nem_faults *f, struct nem_active *a, bool reset)
{
    unsigned numbers[1];
    choose(f, a);
    for (EACH_TARGET(i)) {
        size_t open = test_proxy_connections(f->proxies[i], numbers, 1);
        a->record.hits += (unsigned)(a->connections[i] > 0 ? 1 : open);
        test_proxy_cut(f->proxies[i], a->connections[i], reset);
    }
}

static void cut(struct nem_faults *f, struct nem_active *a)
{
    cut_by(f, a, false);
}

static void reset(struct nem_faults *f, struct nem_active *a)
{
    cut_by(f, a, true);
}

/* ---- freeze, and no new connections */

/* Of a single connection the messages are held; they pass at the end, as those of a
 * frozen link do. */
static void freeze(struct nem_faults *f, struct nem_active *a)
{
    choose(f, a);
    for (EACH_TARGET(i)) {
        if (a->connections[i] == 0) {
            test_proxy_freeze(f->proxies[i], true);
            continue;
        }
        lay_on(f, a, i, RULE(.on = TEST_ON_REQUEST, .action = TEST_HOLD));
        lay_on(f, a, i, RULE(.on = TEST_ON_MESSAGE, .action = TEST_HOLD));
    }
}

static bool thaw(struct nem_faults *f, struct nem_active *a)
{
    nem_lift(f, a);
    for (EACH_TARGET(i))
        test_proxy_freeze(f->proxies[i], false);
    return true;
}

static void turn_away(struct nem_faults *f, struct nem_active *a,
                      enum test_proxy_mode mode)
{
    for (EACH_TARGET(i)) {
        test_proxy_set_mode(f->proxies[i], mode);
        test_proxy_cut(f->proxies[i], 0, false);
    }
}

static void refuse(struct nem_faults *f, struct nem_active *a)
{
    turn_away(f, a, a->step->amount == 0 ? TEST_PROXY_DOWN : TEST_PROXY_CLOSES);
}

static void silence(struct nem_faults *f, struct nem_active *a)
{
    turn_away(f, a, TEST_PROXY_SILENT);
}

static bool admit(struct nem_faults *f, struct nem_active *a)
{
    for (EACH_TARGET(i))
        test_proxy_set_mode(f->proxies[i], TEST_PROXY_OPEN);
    return true;
}

/* ---- slow, and lost */

/* Messages that the rule delayed are still delayed after its removal: waits for them. */
static bool lift_and_drain(struct nem_faults *f, struct nem_active *a)
{
    bool late = false;
    nem_lift(f, a);
    for (EACH_TARGET(i))
        late = late || test_proxy_is_late(f->proxies[i]);
    return !late;
}

static void delay(struct nem_faults *f, struct nem_active *a)
{
    long ms = (long)a->step->amount;
    choose(f, a);
    lay(f, a, RULE(.on = TEST_ON_REQUEST, .action = TEST_DELAY, .delay_ms = ms));
    lay(f, a, RULE(.on = TEST_ON_MESSAGE, .action = TEST_DELAY, .delay_ms = ms));
}

static void drip(struct nem_faults *f, struct nem_active *a)
{
    long ms = (long)a->step->amount;
    choose(f, a);
    lay(f, a, RULE(.on = TEST_ON_REQUEST, .action = TEST_DRIP, .delay_ms = ms));
    lay(f, a, RULE(.on = TEST_ON_MESSAGE, .action = TEST_DRIP, .delay_ms = ms));
}

static void lose_requests(struct nem_faults *f, struct nem_active *a)
{
    choose(f, a);
    lay(f, a, RULE(.on = TEST_ON_REQUEST, .action = TEST_DROP));
}

static void lose_replies(struct nem_faults *f, struct nem_active *a)
{
    choose(f, a);
    lay(f, a, RULE(.on = TEST_ON_REPLY, .action = TEST_DROP));
}

/* No TCP connection loses some bytes and delivers later ones: a reply would be taken for
 * that of another request. So the affected connections are closed when the fault ends. */
static bool lift_and_cut(struct nem_faults *f, struct nem_active *a)
{
    for (EACH_TARGET(i)) {
        if (a->connections[i] == 0)
            test_proxy_set_mode(f->proxies[i], TEST_PROXY_DOWN);
        test_proxy_cut(f->proxies[i], a->connections[i], false);
    }
    nem_lift(f, a);
    return admit(f, a);
}

static void lose_messages(struct nem_faults *f, struct nem_active *a)
{
    lay(f, a,
        RULE(.on = TEST_ON_MESSAGE, .action = TEST_DROP,
             .contains = "message\r\n$")); /* or smessage */
}

static void cut_replies(struct nem_faults *f, struct nem_active *a)
{
    choose(f, a);
    lay(f, a,
        RULE(.on = TEST_ON_REPLY, .action = TEST_CUT, .keep_len = (size_t)a->step->amount,
             .count = CUTS));
}

static void half_close(struct nem_faults *f, struct nem_active *a)
{
    enum test_point on = a->step->amount == 0 ? TEST_ON_REQUEST : TEST_ON_MESSAGE;
    choose(f, a);
    lay(f, a, RULE(.on = on, .action = TEST_HALF_CLOSE, .count = HALF_CLOSES));
}

/* ---- the interface */

static void link_down(struct nem_faults *f, struct nem_active *a)
{
    for (EACH_TARGET(i))
        nem_net_set(&f->net, i, a->step->amount != 0, false);
}

static bool link_up(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage++ == 0) {
        for (EACH_TARGET(i))
            nem_net_set(&f->net, i, a->step->amount != 0, true);
        int64_t now = nem_now();
        a->until =
            now + (now - a->record.begin) + NEM_LINK_RETRY_MS * (int64_t)NEM_NS_PER_MS;
    }
    return nem_now() >= a->until;
}

const struct nem_action nem_link_actions[NEM_KINDS] = {
    [NEM_CUT_ONE] = { .begin = cut },
    [NEM_CUT] = { .begin = cut },
    [NEM_RESET] = { .begin = reset },
    [NEM_FREEZE] = { .begin = freeze, .end = thaw },
    [NEM_DELAY] = { .begin = delay, .end = lift_and_drain },
    [NEM_LOSE_REQUESTS] = { .begin = lose_requests, .end = lift_and_cut },
    [NEM_LOSE_REPLIES] = { .begin = lose_replies, .end = lift_and_cut },
    [NEM_CUT_REPLIES] = { .begin = cut_replies, .end = nem_lift },
    [NEM_DRIP] = { .begin = drip, .end = lift_and_drain },
    [NEM_HALF_CLOSE] = { .begin = half_close, .end = nem_lift },
    [NEM_REFUSE] = { .begin = refuse, .end = admit },
    [NEM_SILENT] = { .begin = silence, .end = admit },
    [NEM_LOSE_MESSAGES] = { .begin = lose_messages, .end = nem_lift },
    [NEM_LINK_DOWN] = { .begin = link_down, .end = link_up },
};
