/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of processes: killed, stopped, asked to end, robbed of descriptors. */
#include "faults_impl.h"

enum { FALL_MS = 500, BURIAL_MS = 200, NS_PER_US = 1000 };

/* ---- kills */

/* `record` began just before the kill. */
static void is_dead(struct nem_fault *record)
{
    record->took_us = (uint32_t)((nem_now() - record->begin) / NS_PER_US) + 1;
}

static void kill_process(struct nem_faults *f, struct nem_active *a)
{
    f->workers->kill(f->workers->arg, a->step->target);
    is_dead(&a->record);
}

static bool restart_process(struct nem_faults *f, struct nem_active *a)
{
    f->workers->restart(f->workers->arg, a->step->target);
    return true;
}

static void tell_to_fall(struct nem_faults *f, struct nem_active *a)
{
    if (!f->workers->fall) {
        kill_process(f, a);
        return;
    }
    f->workers->fall(f->workers->arg, a->step->target, a->step->kind,
                     (enum nem_type)a->step->amount);
    a->until = nem_now() + FALL_MS * (int64_t)NEM_NS_PER_MS;
}

/* Does not wait for ever: after a while it kills the process in whatever state. */
static bool see_it_fall(struct nem_faults *f, struct nem_active *a)
{
    if (a->record.took_us != 0)
        return false;
    if (f->workers->fallen(f->workers->arg, a->step->target)) {
        a->record.hits = 1;
        is_dead(&a->record);
    } else if (nem_now() > a->until) {
        kill_process(f, a);
    }
    return false;
}

static bool restart_fallen(struct nem_faults *f, struct nem_active *a)
{
    if (a->record.took_us == 0)
        kill_process(f, a);
    return restart_process(f, a);
}

/* ---- a kill, and a kill of the process about to recover the dead one */

/* Holds all requests of other processes about the dead client. */
static void kill_and_hold(struct nem_faults *f, struct nem_active *a)
{
    const char *client =
        f->workers->client ? f->workers->client(f->workers->arg, a->step->target) : NULL;
    const struct test_rule rule = { .on = TEST_ON_REQUEST,
                                    .action = TEST_HOLD,
                                    .contains = client };
    for (unsigned i = 0; client && i < f->processes; i++)
        if (i != a->step->target)
            a->rules[i * NEM_RULES_EACH] = test_proxy_add(f->proxies[i], &rule);
    kill_process(f, a);
    a->until = nem_now() + BURIAL_MS * (int64_t)NEM_NS_PER_MS;
}

static void let_go(struct nem_faults *f, struct nem_active *a, unsigned process)
{
    int *rule = &a->rules[process * NEM_RULES_EACH];
    if (*rule != 0)
        test_proxy_remove(f->proxies[process], *rule);
    *rule = 0;
}

static bool is_met(const struct nem_faults *f, unsigned process)
{
    for (const struct nem_active *a = f->active; a; a = a->next)
        if (a->begun && nem_kind_lane(a->step->kind) == NEM_LANE_PROCESS &&
            (a->step->target == process || a->also == process))
            return true;
    return false;
}

static void kill_burier(struct nem_faults *f, struct nem_active *a, unsigned process)
{
    a->also = (uint16_t)process;
    a->also_record = (struct nem_fault){ .begin = nem_now(),
                                         .kind = NEM_KILL,
                                         .target = a->also,
                                         .lock = NEM_ALL,
                                         .index = a->record.index };
    f->workers->kill(f->workers->arg, process);
    is_dead(&a->also_record);
    a->record.hits = 1;
}

/* The process whose request is held owns the dead one's live file, and is in the middle
 * of its recovery. Process 0 is never killed. */
static bool look_for_burier(struct nem_faults *f, struct nem_active *a)
{
    unsigned burier = NEM_ALL;
    bool over = a->stage > 0;
    for (unsigned i = 0; !over && i < f->processes; i++) {
        int rule = a->rules[i * NEM_RULES_EACH];
        if (rule != 0 && test_proxy_hits(f->proxies[i], rule) > 0)
            burier = i;
    }
    if (over || (burier == NEM_ALL && nem_now() < a->until))
        return false;
    if (burier != NEM_ALL && burier != 0 && !is_met(f, burier))
        kill_burier(f, a, burier);
    a->stage = 1;
    for (unsigned i = 0; i < f->processes; i++)
        if (i != a->also || a->step->amount == 0)
            let_go(f, a, i);
    return false;
}

static bool restart_both(struct nem_faults *f, struct nem_active *a)
{
    for (unsigned i = 0; i < f->processes; i++)
        let_go(f, a, i);
    restart_process(f, a);
    if (a->also == NEM_ALL)
        return true;
    f->workers->restart(f->workers->arg, a->also);
    a->also_record.end = nem_now();
    nem_record(f, &a->also_record);
    return true;
}

/* ---- stops, and orderly ends */

static void stop_process(struct nem_faults *f, struct nem_active *a)
{
    f->workers->stop(f->workers->arg, a->step->target);
}

static bool continue_process(struct nem_faults *f, struct nem_active *a)
{
    f->workers->cont(f->workers->arg, a->step->target);
    return true;
}

static void tell_to_end(struct nem_faults *f, struct nem_active *a)
{
    f->workers->term(f->workers->arg, a->step->target);
    a->until = nem_now() + f->gone_ms * (int64_t)NEM_NS_PER_MS;
}

static bool restart_when_gone(struct nem_faults *f, struct nem_active *a)
{
    if (f->workers->gone(f->workers->arg, a->step->target))
        return restart_process(f, a);
    if (nem_now() <= a->until)
        return false;
    nem_faults_tell_keys(f);
    a->record.amount = 1; /* the judge names the call that hangs */
    return restart_process(f, a);
}

/* ---- descriptors */

static void close_low(struct nem_faults *f, struct nem_active *a)
{
    if (f->workers->close_low)
        f->workers->close_low(f->workers->arg, a->step->target,
                              (unsigned)a->step->amount);
}

/* The library notices closed descriptors within a second, and opens new ones. */
static bool open_low(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage++ == 0) {
        if (f->workers->open_low)
            f->workers->open_low(f->workers->arg, a->step->target,
                                 (unsigned)a->step->amount);
        a->until = nem_now() + NEM_NOTICED_MS * (int64_t)NEM_NS_PER_MS;
    }
    return nem_now() >= a->until;
}

const struct nem_action nem_process_actions[NEM_KINDS] = {
    [NEM_KILL] = { .begin = kill_process, .end = restart_process },
    [NEM_KILL_INSIDE] = { .begin = tell_to_fall,
                          .during = see_it_fall,
                          .end = restart_fallen },
    [NEM_KILL_KEPT] = { .begin = tell_to_fall,
                        .during = see_it_fall,
                        .end = restart_fallen },
    [NEM_KILL_ASKING] = { .begin = tell_to_fall,
                          .during = see_it_fall,
                          .end = restart_fallen },
    [NEM_KILL_BURIER] = { .begin = kill_and_hold,
                          .during = look_for_burier,
                          .end = restart_both },
    [NEM_STOP_SHORT] = { .begin = stop_process, .end = continue_process },
    [NEM_STOP_LONG] = { .begin = stop_process, .end = continue_process },
    [NEM_DESCRIPTORS] = { .begin = close_low, .end = open_low },
    [NEM_TERM] = { .begin = tell_to_end, .end = restart_when_gone },
};
