/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failovers: the sentinels elect another master, because the present one is killed or
 * stopped, or because the driver asks for it. As soon as one sentinel names the new
 * master, the old one is back, and believes for a while that it still is the master. The
 * fault is over when all follow the new one.
 */
#include "faults_impl.h"

#include "wait.h"

enum { TILT_LOOK_MS = 5000, RING_MS = 20000 };
enum { LOOK_MS = 50, AGAIN_MS = 2000, BY_ITSELF_MS = 25000, NS_PER_US = 1000 };
enum { ELECTING, STALE, JOINING };

static int64_t in_ms(int64_t ms)
{
    return nem_now() + ms * NEM_NS_PER_MS;
}

static void begin(struct nem_faults *f, struct nem_active *a)
{
    struct nem_topology *t = &f->topology;
    a->master = t->master;
    if (a->step->kind == NEM_FAILOVER) {
        nem_topology_fail_over(t, a->record.index % NEM_SERVERS);
    } else {
        nem_topology_expect(t, true);
        if (a->step->kind == NEM_MASTER_KILL)
            test_server_kill(&t->data[a->master]);
        else
            test_server_pause(&t->data[a->master]);
    }
    a->until = in_ms(AGAIN_MS);
}

/* All is done in `end`, however long the step is. */
static bool at_once(struct nem_faults *f, struct nem_active *a)
{
    (void)f;
    (void)a;
    return true;
}

/* The server that a sentinel names in place of the old master; NEM_NONE: none does. */
static unsigned elected(const struct nem_topology *t, unsigned old)
{
    for (unsigned i = 0; i < NEM_SERVERS; i++) {
        unsigned named = nem_topology_named(t, i);
        if (named != NEM_NONE && named != old)
            return named;
    }
    return NEM_NONE;
}

static void await_election(struct nem_faults *f, struct nem_active *a)
{
    struct nem_topology *t = &f->topology;
    unsigned old = a->master, master = elected(t, old);
    if (master == NEM_NONE) {
        if (a->step->kind == NEM_FAILOVER && nem_now() > a->until) {
            nem_topology_fail_over(t, a->record.index % NEM_SERVERS);
            a->until = in_ms(AGAIN_MS);
        }
        return;
    }
    a->record.took_us = (uint32_t)((nem_now() - a->record.begin) / NS_PER_US) + 1;
    a->record.hits = 1;
    if (a->step->kind == NEM_MASTER_KILL)
        test_server_launch(&t->data[old]);
    else if (a->step->kind == NEM_MASTER_STOP)
        test_server_resume(&t->data[old]);
    nem_topology_expect(t, false);
    t->master = master;
    a->stage = STALE;
    a->until = in_ms(a->step->length_ms);
}

static void leave_alone(struct nem_faults *f, struct nem_active *a)
{
    if (!test_server_is_up(&f->topology.data[a->master]) || nem_now() < a->until)
        return;
    a->stage = JOINING;
    if (a->step->amount == 1)
        a->until = in_ms(test_ms(BY_ITSELF_MS));
}

/* The server that all sentinels name; NEM_NONE: they do not agree. */
static unsigned agreed(const struct nem_topology *t)
{
    unsigned master = nem_topology_named(t, 0);
    for (unsigned i = 1; i < NEM_SERVERS; i++)
        if (nem_topology_named(t, i) != master)
            return NEM_NONE;
    return master;
}

/* The sentinel that was asked first may have named a master that the others have replaced
 * since. A failover that was asked for twice may follow the first one: an order during it
 * can leave two servers that replicate each other, which no sentinel ends. */
static bool join(struct nem_faults *f, struct nem_active *a)
{
    unsigned master = agreed(&f->topology);
    if (master == NEM_NONE)
        return false;
    f->topology.master = master;
    if (nem_now() >= a->until && !nem_topology_fails_over(&f->topology)) {
        nem_topology_join(&f->topology, f->topology.master);
        if (nem_now() >= a->until + RING_MS * (int64_t)NEM_NS_PER_MS)
            nem_topology_end_ring(&f->topology, f->topology.master);
    }
    return nem_topology_is_whole(&f->topology, f->topology.master);
}

/* A sentinel that finds that it did not run for 2 s does nothing for the next 30 s
 * (TILT). The time that the step has begins behind that. */
static void allow_tilt(const struct nem_faults *f, struct nem_active *a)
{
    if (nem_now() > a->end_at + TILT_LOOK_MS * (int64_t)NEM_NS_PER_MS &&
        nem_topology_tilts(&f->topology))
        a->end_at = nem_now();
}

static bool follow(struct nem_faults *f, struct nem_active *a)
{
    if (nem_now() < a->look_at)
        return false;
    a->look_at = in_ms(LOOK_MS);
    allow_tilt(f, a);
    if (a->stage == ELECTING)
        await_election(f, a);
    else if (a->stage == STALE)
        leave_alone(f, a);
    else
        return join(f, a);
    return false;
}

const struct nem_action nem_failover_actions[NEM_KINDS] = {
    [NEM_FAILOVER] = { .begin = begin, .during = at_once, .end = follow },
    [NEM_MASTER_KILL] = { .begin = begin, .during = at_once, .end = follow },
    [NEM_MASTER_STOP] = { .begin = begin, .during = at_once, .end = follow },
};
