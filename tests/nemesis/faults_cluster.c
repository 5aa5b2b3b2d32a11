/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of a cluster's nodes. A shard gets another master, because it hands over, or is
 * killed, stopped or cut off from the bus, or because its replica takes over. A node
 * restarts, or all do, one after the other. A fault is over when all nodes agree again,
 * and each replica follows its master.
 */
#include "faults_impl.h"

#include "die.h"
#include "wait.h"

#include <stdio.h>
#include <string.h>

enum { NS_PER_US = 1000, LOOK_MS = 20, AGAIN_MS = 6000, SOON_MS = 200, STEADY_MS = 300 };
enum { WAITING, ELECTING, DOWN, JOINING };
enum { LOOKING, TURNING, RESTARTING, RETURNING }; /* of a rolling restart */

static int64_t in_ms(int64_t ms)
{
    return nem_now() + ms * NEM_NS_PER_MS;
}

static bool looks(struct nem_active *a)
{
    if (nem_now() < a->look_at)
        return false;
    a->look_at = in_ms(LOOK_MS);
    return true;
}

static struct test_server *server(struct nem_faults *f, unsigned node)
{
    return &f->nodes.node[node].server;
}

static bool at_once(struct nem_faults *f, struct nem_active *a)
{
    (void)f;
    (void)a;
    return true;
}

/* ---- another master */

static bool takes_over(const struct nem_active *a)
{
    return a->step->kind == NEM_TAKEOVER;
}

/* An order that is refused is repeated soon. One that is obeyed may fail: a node votes
 * for no second replica of a master within twice the timeout. */
static void order(struct nem_faults *f, struct nem_active *a)
{
    unsigned replica = nem_node_beside(a->master);
    bool obeys =
        nem_node_fail_over(&f->nodes, replica, takes_over(a) ? "TAKEOVER" : NULL);
    a->until = in_ms(obeys ? AGAIN_MS : SOON_MS);
}

static void fail_over(struct nem_faults *f, struct nem_active *a)
{
    nem_nodes_expect(&f->nodes, true, NEM_NONE);
    if (a->step->kind == NEM_MASTER_KILL)
        test_server_kill(server(f, a->master));
    else if (a->step->kind == NEM_MASTER_STOP)
        test_server_pause(server(f, a->master));
    else
        order(f, a);
    a->stage = ELECTING;
}

static void take_over(struct nem_faults *f, struct nem_active *a)
{
    if (a->step->amount == 0)
        fail_over(f, a);
    else
        nem_node_sever(&f->nodes, nem_node_beside(a->master), true);
}

static bool is_not_severed(struct nem_faults *f, struct nem_active *a)
{
    (void)f;
    return a->step->amount == 0;
}

static void is_elected(struct nem_faults *f, struct nem_active *a, unsigned shard)
{
    f->nodes.master[shard] = nem_node_beside(f->nodes.master[shard]);
    a->record.took_us = (uint32_t)((nem_now() - a->record.begin) / NS_PER_US) + 1;
    a->record.hits++;
}

static void await_election(struct nem_faults *f, struct nem_active *a)
{
    bool asked = a->step->kind == NEM_FAILOVER || takes_over(a);
    bool runs = a->step->kind != NEM_MASTER_KILL && a->step->kind != NEM_MASTER_STOP;
    if (!nem_node_is_master(&f->nodes, nem_node_beside(a->master))) {
        if (asked && nem_now() > a->until)
            order(f, a);
        return;
    }
    is_elected(f, a, f->nodes.aim);
    nem_nodes_expect(&f->nodes, false, runs ? NEM_NONE : a->master);
    a->until = in_ms(a->step->length_ms);
    a->stage = a->step->kind == NEM_MASTER_KILL ? DOWN : JOINING;
    if (a->step->kind == NEM_MASTER_STOP)
        test_server_resume(server(f, a->master));
}

/* ---- and all agree */

/* What no fault ordered: the machine stood still while one was expected. */
static void note(struct nem_faults *f, const struct nem_active *a, enum nem_kind kind,
                 unsigned shard, const char *what)
{
    struct nem_fault record = { .begin = a->record.begin,
                                .end = nem_now(),
                                .kind = (int32_t)kind,
                                .target = NEM_ALL,
                                .lock = NEM_ALL,
                                .index = a->record.index,
                                .hits = kind == NEM_MASTER_STOP };
    snprintf(record.what, sizeof(record.what), "not planned: %s", what);
    nem_nodes_mark(&f->nodes, &record, shard);
    nem_record(f, &record);
}

/* Learns which masters were replaced, beside or by this fault. */
static void learn(struct nem_faults *f, struct nem_active *a)
{
    struct nem_nodes *n = &f->nodes;
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++) {
        unsigned other = nem_node_beside(n->master[i]);
        if (!nem_node_is_master(n, other) || nem_node_is_master(n, n->master[i]))
            continue;
        bool meant = a->step->kind == NEM_BUS_CUT && (a->step->amount || i == n->aim);
        if (meant) {
            is_elected(f, a, i);
            continue;
        }
        n->master[i] = other;
        note(f, a, NEM_MASTER_STOP, i, "a failover");
    }
}

/* A master that was taken for failed stays so for twice the timeout, which is long while
 * no failure is expected. All must run. */
static bool is_whole(struct nem_faults *f, struct nem_active *a)
{
    if (nem_nodes_are_whole(&f->nodes)) {
        if (a->alarmed && a->step->kind != NEM_BUS_CUT) {
            nem_nodes_expect(&f->nodes, false, NEM_NONE);
            note(f, a, NEM_NODE_RESTART, NEM_NONE, "a master was taken for failed");
        }
        a->alarmed = false;
        return true;
    }
    if (!a->alarmed && nem_nodes_fear(&f->nodes)) {
        nem_nodes_expect(&f->nodes, true, NEM_NONE);
        a->alarmed = true;
    }
    learn(f, a);
    return false;
}

static bool join(struct nem_faults *f, struct nem_active *a)
{
    if (!test_server_is_up(server(f, a->master)) || !is_whole(f, a))
        return false;
    nem_nodes_expect(&f->nodes, false, NEM_NONE);
    return true;
}

static bool follow(struct nem_faults *f, struct nem_active *a)
{
    if (!looks(a))
        return false;
    if (a->stage == WAITING) { /* the takeover of a replica that was cut off */
        fail_over(f, a);
        nem_node_sever(&f->nodes, nem_node_beside(a->master), false);
    } else if (a->stage == ELECTING) {
        await_election(f, a);
    } else if (a->stage == DOWN && nem_now() >= a->until) {
        test_server_launch(server(f, a->master));
        a->stage = JOINING;
    } else if (a->stage == JOINING) {
        return join(f, a);
    }
    return false;
}

/* ---- the bus */

/* A message of the bus has its sender's name in front of the map of the sender's hash
 * slots. The same name in other places is not followed by these bytes. */
static void hold_what_it_sends(struct nem_faults *f, struct nem_active *a)
{
    enum { NAME = TEST_CLUSTER_ID_SIZE - 1 };
    unsigned char bytes[NAME + NEM_MAP];
    memcpy(bytes, f->nodes.node[a->master].id, NAME);
    nem_node_map(&f->nodes, a->master, bytes + NAME);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++)
        if (i != a->master)
            a->bus_rules[i] = test_proxy_add(
                f->nodes.bus[i],
                &(const struct test_rule){ .on = TEST_ON_REQUEST,
                                           .action = TEST_HOLD,
                                           .contains = (char *)bytes,
                                           .contains_len = sizeof(bytes) });
}

static void cut_bus(struct nem_faults *f, struct nem_active *a)
{
    bool all = a->step->amount == 1;
    nem_nodes_expect(&f->nodes, true, NEM_NONE);
    if (all)
        nem_nodes_mark(&f->nodes, &a->record, NEM_NONE);
    else
        hold_what_it_sends(f, a);
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++)
        if (all || i == a->master)
            test_proxy_freeze(f->nodes.bus[i], true);
}

static void mend_bus(struct nem_faults *f, struct nem_active *a)
{
    for (unsigned i = 0; i < TEST_CLUSTER_NODES; i++) {
        if (a->bus_rules[i])
            test_proxy_remove(f->nodes.bus[i], a->bus_rules[i]);
        a->bus_rules[i] = 0;
        test_proxy_freeze(f->nodes.bus[i], false);
    }
}

/* An election may still be under way when all hear of each other again. */
static bool bus_is_mended(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage == WAITING) {
        mend_bus(f, a);
        a->stage = JOINING;
        a->until = 0;
    }
    if (!looks(a))
        return false;
    if (!is_whole(f, a)) {
        a->until = 0;
        return false;
    }
    if (a->until == 0)
        a->until = in_ms(STEADY_MS);
    if (nem_now() < a->until)
        return false;
    nem_nodes_expect(&f->nodes, false, NEM_NONE);
    return true;
}

/* ---- restarts */

static void kill_node(struct nem_faults *f, struct nem_active *a)
{
    if (a->step->amount == 1)
        a->master = nem_node_beside(a->master);
    test_server_kill(server(f, a->master));
}

static bool node_is_back(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage == WAITING) {
        test_server_launch(server(f, a->master));
        a->stage = JOINING;
    }
    return looks(a) && join(f, a);
}

static void begin_rolling(struct nem_faults *f, struct nem_active *a)
{
    nem_nodes_mark(&f->nodes, &a->record, NEM_NONE);
    a->master = 0; /* the first node */
    a->stage = LOOKING;
}

static unsigned shard_of(unsigned node)
{
    return node % TEST_CLUSTER_MASTERS;
}

/* A node that is a master hands over first. */
static void look_at_node(struct nem_faults *f, struct nem_active *a)
{
    a->end_at = nem_now(); /* each node has the time of a step */
    if (f->nodes.master[shard_of(a->master)] != a->master) {
        a->stage = RESTARTING;
        return;
    }
    nem_nodes_expect(&f->nodes, true, NEM_NONE);
    order(f, a);
    a->stage = TURNING;
}

static void await_turn(struct nem_faults *f, struct nem_active *a)
{
    unsigned shard = shard_of(a->master);
    if (f->nodes.master[shard] == a->master) {
        if (nem_node_is_master(&f->nodes, nem_node_beside(a->master))) {
            is_elected(f, a, shard);
            nem_nodes_expect(&f->nodes, false, NEM_NONE);
        } else if (nem_now() > a->until) {
            order(f, a);
        }
    } else if (is_whole(f, a)) {
        a->stage = RESTARTING;
    }
}

static bool roll(struct nem_faults *f, struct nem_active *a)
{
    if (!looks(a))
        return false;
    if (a->stage == LOOKING) {
        look_at_node(f, a);
    } else if (a->stage == TURNING) {
        await_turn(f, a);
    } else if (a->stage == RESTARTING) {
        if (!nem_node_may_end(&f->nodes, a->master))
            return false;
        test_server_shutdown(server(f, a->master));
        test_server_launch(server(f, a->master));
        a->stage = RETURNING;
    } else if (test_server_is_up(server(f, a->master)) && is_whole(f, a)) {
        if (a->master + 1 == TEST_CLUSTER_NODES)
            return true;
        a->master++;
        a->stage = LOOKING;
    }
    return false;
}

const struct nem_action nem_cluster_actions[NEM_KINDS] = {
    [NEM_FAILOVER] = { .begin = fail_over, .during = at_once, .end = follow },
    [NEM_MASTER_KILL] = { .begin = fail_over, .during = at_once, .end = follow },
    [NEM_MASTER_STOP] = { .begin = fail_over, .during = at_once, .end = follow },
    [NEM_TAKEOVER] = { .begin = take_over, .during = is_not_severed, .end = follow },
    [NEM_BUS_CUT] = { .begin = cut_bus, .end = bus_is_mended },
    [NEM_NODE_RESTART] = { .begin = kill_node, .end = node_is_back },
    [NEM_ROLLING_RESTART] = { .begin = begin_rolling, .during = at_once, .end = roll },
};
