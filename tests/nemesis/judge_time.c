/* SPDX-License-Identifier: Apache-2.0 */
/* The judge's knowledge of time: the server's clock against this machine's, and when a
 * fault may have kept which process from its obligations. */
#include "judge_impl.h"

#include <stdlib.h>
#include <string.h>

int64_t nem_slack(const struct nem_judge *j)
{
    return j->round->slack_ms * NEM_NS_PER_MS;
}

static bool overlaps(int64_t from, int64_t to, int64_t begin, int64_t end)
{
    return from <= end && begin <= to;
}

static int64_t later(int64_t at, int64_t ns)
{
    return at > INT64_MAX - ns ? INT64_MAX : at + ns;
}

/* ---- the server's clock */

static bool steps_clock(const struct nem_fault *fault)
{
    return fault->kind == NEM_CLOCK_BACK || fault->kind == NEM_CLOCK_FORWARD;
}

/* The time by which a fault had its effect. A step of the clock is done at once; its
 * window lasts until all affected clients have noticed it. */
static int64_t done_by(const struct nem_fault *fault)
{
    enum { NS_PER_US = 1000 };
    return steps_clock(fault) ? later(fault->begin, (int64_t)fault->took_us * NS_PER_US)
                              : fault->end;
}

bool nem_clock_stepped(const struct nem_judge *j, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (steps_clock(fault) && overlaps(from, to, fault->begin, done_by(fault)))
            return true;
    }
    return false;
}

bool nem_clock_forward(const struct nem_judge *j, int64_t from, int64_t to)
{
    if (j->round->strict)
        return false;
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (fault->kind == NEM_CLOCK_FORWARD &&
            overlaps(from, to, fault->begin, done_by(fault)))
            return true;
    }
    return false;
}

bool nem_server_stopped(const struct nem_judge *j, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if ((fault->kind == NEM_SERVER_STOP_SHORT ||
             fault->kind == NEM_SERVER_STOP_LONG) &&
            overlaps(from, to, fault->begin, fault->end))
            return true;
    }
    return false;
}

static int by_begin(const void *a, const void *b)
{
    const struct nem_window *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static void windows_add(struct nem_windows *windows, int64_t from, int64_t to)
{
    windows->items =
        nem_grow(windows->items, windows->count, &windows->size, sizeof(*windows->items));
    windows->items[windows->count++] = (struct nem_window){ from, to };
}

/* Sorts them, and joins those that touch each other. */
static void windows_merge(struct nem_windows *windows)
{
    size_t count = 0;
    if (windows->count == 0)
        return;
    qsort(windows->items, windows->count, sizeof(*windows->items), by_begin);
    for (size_t i = 1; i < windows->count; i++) {
        struct nem_window *last = &windows->items[count], *next = &windows->items[i];
        if (next->from > last->to)
            windows->items[++count] = *next;
        else if (next->to > last->to)
            last->to = next->to;
    }
    windows->count = count + 1;
}

/* The index of the first window that ends at `from` or later. */
static size_t windows_find(const struct nem_windows *windows, int64_t from)
{
    size_t low = 0, high = windows->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (windows->items[middle].to < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool meets(const struct nem_windows *windows, int64_t from, int64_t to)
{
    size_t at = windows_find(windows, from);
    return at < windows->count && windows->items[at].from <= to;
}

static const struct nem_stretch *stretch_of(const struct nem_judge *j,
                                            const struct nem_entry *entry)
{
    for (size_t i = 0; i < j->stretch_count; i++) {
        const struct nem_stretch *s = &j->stretches[i];
        bool last = s->to == INT64_MAX;
        if (entry->after >= s->from &&
            (entry->before < s->to || (last && entry->before == INT64_MAX)))
            return s;
    }
    return NULL;
}

/* Each `since` that the server wrote bounds its clock against this machine's. If the
 * bounds contradict each other, as after a step of the machine's clock, the widest ones
 * hold. */
static void learn_clock(struct nem_judge *j)
{
    enum { NS_PER_US = 1000 };
    const struct nem_ledger *ledger = j->round->ledger;
    struct nem_stretch *wide = nem_alloc(j->stretch_count * sizeof(*wide));
    for (size_t i = 0; i < ledger->count; i++) {
        const struct nem_entry *entry = &ledger->entries[i];
        struct nem_stretch *s = (struct nem_stretch *)stretch_of(j, entry);
        if ((entry->change != NEM_GRANTED && entry->change != NEM_READ) ||
            entry->value == 0 || !s || entry->before == INT64_MAX || entry->after == 0)
            continue;
        int64_t wall = (int64_t)entry->value * NS_PER_US;
        int64_t low = wall - entry->before, high = wall + NS_PER_US - entry->after;
        struct nem_stretch *w = &wide[s - j->stretches];
        if (!s->known || low > s->low)
            s->low = low;
        if (!s->known || high < s->high)
            s->high = high;
        if (!s->known || low < w->low)
            w->low = low;
        if (!s->known || high > w->high)
            w->high = high;
        s->known = true;
    }
    for (size_t i = 0; i < j->stretch_count; i++)
        if (j->stretches[i].known && j->stretches[i].low > j->stretches[i].high) {
            j->stretches[i].low = wide[i].low;
            j->stretches[i].high = wide[i].high;
        }
    free(wide);
}

static void find_stretches(struct nem_judge *j)
{
    struct nem_windows steps = { 0 };
    for (size_t i = 0; i < j->round->fault_count; i++)
        if (steps_clock(&j->round->faults[i]))
            windows_add(&steps, j->round->faults[i].begin, done_by(&j->round->faults[i]));
    windows_merge(&steps);
    j->stretches = nem_alloc((steps.count + 1) * sizeof(*j->stretches));
    int64_t from = 0;
    for (size_t i = 0; i < steps.count; i++) {
        j->stretches[j->stretch_count++] =
            (struct nem_stretch){ .from = from, .to = steps.items[i].from };
        from = steps.items[i].to;
    }
    j->stretches[j->stretch_count++] =
        (struct nem_stretch){ .from = from, .to = INT64_MAX };
    free(steps.items);
    learn_clock(j);
}

int64_t nem_boot_latest(const struct nem_judge *j, const struct nem_entry *entry,
                        uint64_t ms)
{
    const struct nem_stretch *s = ms != 0 ? stretch_of(j, entry) : NULL;
    return s && s->known ? (int64_t)ms * NEM_NS_PER_MS - s->low : INT64_MAX;
}

int64_t nem_boot_latest_until(const struct nem_judge *j, const struct nem_entry *entry,
                              uint64_t ms, int64_t until)
{
    int64_t latest = nem_boot_latest(j, entry, ms);
    for (size_t i = 0; i < j->stretch_count && latest != INT64_MAX; i++) {
        const struct nem_stretch *s = &j->stretches[i];
        /* while a step is under way, the clock may already be the later one */
        bool meant = s->to > entry->after && (i == 0 || s[-1].to <= until);
        if (meant && !s->known)
            latest = INT64_MAX;
        else if (meant && (int64_t)ms * NEM_NS_PER_MS - s->low > latest)
            latest = (int64_t)ms * NEM_NS_PER_MS - s->low;
    }
    return latest;
}

int64_t nem_boot_earliest(const struct nem_judge *j, const struct nem_entry *entry,
                          uint64_t ms)
{
    const struct nem_stretch *s = stretch_of(j, entry);
    if (ms == 0)
        return INT64_MAX;
    return s && s->known ? (int64_t)ms * NEM_NS_PER_MS - s->high : INT64_MIN;
}

uint64_t nem_server_latest(const struct nem_judge *j, const struct nem_entry *entry)
{
    const struct nem_stretch *s = stretch_of(j, entry);
    if (!s || !s->known || entry->before == INT64_MAX)
        return UINT64_MAX;
    return (uint64_t)((entry->before + s->high) / NEM_NS_PER_MS);
}

uint64_t nem_server_earliest(const struct nem_judge *j, const struct nem_entry *entry)
{
    const struct nem_stretch *s = stretch_of(j, entry);
    if (!s || !s->known || entry->after == 0)
        return 0;
    return (uint64_t)((entry->after + s->low) / NEM_NS_PER_MS);
}

/* ---- faults */

static bool of_a_process(int32_t kind)
{
    return kind <= NEM_LINK_DOWN || kind == NEM_CLIENT_KILL ||
           kind == NEM_CLIENT_KILL_PUBSUB || kind == NEM_STALL;
}

/* Whether it is a fault of one key of one lock. With the lock NEM_ALL, or without a key,
 * nothing was lost. */
static bool of_a_lock(int32_t kind)
{
    return kind == NEM_DELETE_LOCK || kind == NEM_DELETE_COMPANION || kind == NEM_EVICT;
}

static bool meets_process(const struct nem_fault *fault, unsigned process)
{
    return !of_a_process(fault->kind) || fault->target == process ||
           fault->target == NEM_ALL;
}

static bool meets_lock(const struct nem_fault *fault, unsigned lock)
{
    return !of_a_lock(fault->kind) || (fault->lock == lock && fault->what[0] != '\0');
}

/* Whether the fault keeps the server from finding a waiter of the process alive, or from
 * handing over. Lost keys do so through the ledger, and a clock that goes back only makes
 * presence longer. */
static bool disturbs(const struct nem_fault *fault, unsigned process)
{
    return fault->kind != NEM_SCRIPT_FLUSH && fault->kind != NEM_FLUSHALL &&
           fault->kind != NEM_CLOCK_BACK && !nem_is_strangers(fault->kind) &&
           !of_a_lock(fault->kind) && meets_process(fault, process);
}

static void find_stops(struct nem_judge *j)
{
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++) {
        for (size_t i = 0; i < j->round->fault_count; i++) {
            const struct nem_fault *f = &j->round->faults[i];
            bool stop = f->kind == NEM_STOP_SHORT || f->kind == NEM_STOP_LONG;
            if ((!stop && f->kind != NEM_STALL) || !meets_process(f, p))
                continue;
            windows_add(&j->stopped[p], f->begin, f->end);
            if (stop)
                windows_add(&j->on_purpose[p], f->begin, f->end);
        }
        windows_merge(&j->stopped[p]);
        windows_merge(&j->on_purpose[p]);
    }
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *f = &j->round->faults[i];
        if (f->kind != NEM_STALL)
            continue;
        windows_add(&j->stalled, f->begin, f->end);
        if (!meets(&j->on_purpose[f->target % NEM_PROCESSES_MAX], f->begin, f->end))
            windows_add(&j->stood, f->begin, f->end);
    }
    windows_merge(&j->stalled);
    windows_merge(&j->stood);
}

/* Whether the fault takes the process's mailbox away, or makes it subscribe again. No
 * other fault counts: the ledger shows which client was present, also while it was
 * stopped or had lost other connections. */
static bool deafens(const struct nem_fault *fault, unsigned process)
{
    return disturbs(fault, process) && fault->kind != NEM_STOP_SHORT &&
           fault->kind != NEM_STOP_LONG && fault->kind != NEM_STALL &&
           fault->kind != NEM_CLIENT_KILL && fault->kind != NEM_MAXMEMORY &&
           fault->kind != NEM_CLOCK_FORWARD;
}

int64_t nem_room(const struct nem_judge *j)
{
    return j->round->presence_ms * NEM_NS_PER_MS + nem_slack(j);
}

static void add_lives(struct nem_judge *j, struct nem_windows all[])
{
    int64_t room = nem_room(j);
    for (size_t i = 0; i < j->life_count; i++) {
        const struct nem_life *life = &j->lives[i];
        if (life->process >= NEM_PROCESSES_MAX)
            continue;
        struct nem_windows *windows = &all[life->process];
        windows_add(windows, life->begun - room, life->begun + room); /* it subscribes */
        if (life->dying != INT64_MAX)
            windows_add(windows, life->dying, life->over);
    }
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++)
        windows_merge(&all[p]);
}

/* While the process is stopped, it does not subscribe either. */
static void prolong(struct nem_windows *deaf, const struct nem_windows *stopped,
                    int64_t room)
{
    for (size_t i = 0; i < stopped->count; i++) {
        const struct nem_window *stop = &stopped->items[i];
        size_t at = windows_find(deaf, stop->from);
        if (at == deaf->count || deaf->items[at].from > stop->to)
            continue;
        windows_add(deaf, stop->from, later(stop->to, room));
        windows_merge(deaf);
    }
}

/* A machine that stands still for long makes answers late, and a waiting client takes its
 * connection for dead. After a stop by a fault the answers are already there. */
static void add_stalls(struct nem_judge *j, unsigned p)
{
    int64_t long_ns = j->round->commandtimeout_ms * NEM_NS_PER_MS / 2;
    struct nem_windows stalls = { 0 };
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *f = &j->round->faults[i];
        if (f->kind == NEM_STALL && meets_process(f, p))
            windows_add(&stalls, f->begin, f->end);
    }
    windows_merge(&stalls);
    for (size_t i = 0; i < stalls.count; i++)
        if (stalls.items[i].to - stalls.items[i].from >= long_ns)
            windows_add(&j->deaf[p], stalls.items[i].from,
                        later(stalls.items[i].to, nem_room(j)));
    free(stalls.items);
}

static void find_deaf(struct nem_judge *j)
{
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++) {
        for (size_t i = 0; i < j->round->fault_count; i++) {
            const struct nem_fault *fault = &j->round->faults[i];
            if (deafens(fault, p))
                windows_add(&j->deaf[p], fault->begin, later(fault->end, nem_room(j)));
        }
        add_stalls(j, p);
    }
    add_lives(j, j->deaf);
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++)
        prolong(&j->deaf[p], &j->stopped[p], nem_room(j));
}

static void find_disturbances(struct nem_judge *j)
{
    int64_t room = nem_room(j);
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++)
        for (size_t i = 0; i < j->round->fault_count; i++) {
            const struct nem_fault *fault = &j->round->faults[i];
            if (disturbs(fault, p) && !nem_is_of_nodes(j, fault))
                windows_add(&j->disturbed[p], fault->begin, later(done_by(fault), room));
        }
    add_lives(j, j->disturbed);
}

static bool of_its_own(const struct nem_fault *fault)
{
    return fault->kind <= NEM_TERM && fault->kind != NEM_DESCRIPTORS;
}

/* Whether it is a fault of the server or of the link, after which the process may have to
 * connect again; or one of the process itself. */
static bool hampers(const struct nem_fault *fault, unsigned process)
{
    return disturbs(fault, process) && !nem_kills(fault->kind) &&
           fault->kind != NEM_STALL && fault->kind != NEM_CLOCK_FORWARD;
}

static void find_hampered(struct nem_judge *j)
{
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++) {
        for (size_t i = 0; i < j->round->fault_count; i++) {
            const struct nem_fault *fault = &j->round->faults[i];
            int64_t room = of_its_own(fault) ? nem_slack(j) : nem_room(j);
            if (hampers(fault, p))
                windows_add(&j->hampered[p], fault->begin, later(fault->end, room));
        }
        windows_merge(&j->hampered[p]);
    }
}

bool nem_disturbed(const struct nem_judge *j, unsigned process, int64_t from, int64_t to)
{
    return meets(&j->disturbed[process % NEM_PROCESSES_MAX], from, to);
}

bool nem_hampered(const struct nem_judge *j, unsigned process, int64_t from, int64_t to)
{
    return meets(&j->hampered[process % NEM_PROCESSES_MAX], from, to);
}

bool nem_deaf(const struct nem_judge *j, unsigned process, int64_t from, int64_t to)
{
    return meets(&j->deaf[process % NEM_PROCESSES_MAX], from, to);
}

static int64_t sum_of(const struct nem_windows *windows, int64_t from, int64_t to)
{
    int64_t sum = 0;
    for (size_t at = windows_find(windows, from);
         at < windows->count && windows->items[at].from <= to; at++) {
        const struct nem_window *w = &windows->items[at];
        sum += (w->to < to ? w->to : to) - (w->from > from ? w->from : from);
    }
    return sum;
}

int64_t nem_disturbed_ns(const struct nem_judge *j, unsigned process, int64_t from,
                         int64_t to)
{
    return sum_of(&j->disturbed[process % NEM_PROCESSES_MAX], from, to);
}

int64_t nem_stopped_ns(const struct nem_judge *j, unsigned process, int64_t from,
                       int64_t to)
{
    return sum_of(&j->stopped[process % NEM_PROCESSES_MAX], from, to);
}

int64_t nem_stopped_until(const struct nem_judge *j, unsigned process, int64_t at)
{
    const struct nem_windows *stopped = &j->stopped[process % NEM_PROCESSES_MAX];
    size_t i = windows_find(stopped, at);
    return i < stopped->count && stopped->items[i].from <= at ? stopped->items[i].to : at;
}

int64_t nem_stood_ns(const struct nem_judge *j, int64_t from, int64_t to)
{
    return sum_of(&j->stood, from, to);
}

int64_t nem_stalled_ns(const struct nem_judge *j, int64_t from, int64_t to)
{
    return sum_of(&j->stalled, from, to);
}

unsigned nem_stalled_percent(const struct nem_judge *j)
{
    enum { PERCENT = 100 };
    int64_t from = j->round->started, to = j->round->ended, sum = 0;
    unsigned processes = j->round->processes;
    if (to <= from || processes == 0 || processes > NEM_PROCESSES_MAX)
        return 0;
    for (unsigned p = 0; p < processes; p++)
        sum += sum_of(&j->stopped[p], from, to) - sum_of(&j->on_purpose[p], from, to);
    return (unsigned)(sum / processes * PERCENT / (to - from));
}

static bool happened(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to,
                     bool (*counts)(const struct nem_fault *fault))
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (counts(fault) && meets_lock(fault, lock) &&
            overlaps(from, to, fault->begin, done_by(fault)))
            return true;
    }
    return false;
}

static bool loses_keys(const struct nem_fault *fault)
{
    return fault->kind >= NEM_SERVER_EMPTY && fault->kind <= NEM_EVICT;
}

bool nem_keys_lost(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to)
{
    return happened(j, lock, from, to, loses_keys);
}

/* Of a lock's keys only N and the readers name its holders. */
static bool is_excluded(const struct nem_fault *fault)
{
    if (of_a_lock(fault->kind))
        return strncmp(fault->what, "nemesis", 7) == 0 ||
               strstr(fault->what, ":readers") != NULL;
    return fault->kind >= NEM_CLOCK_FORWARD && fault->kind <= NEM_EVICT;
}

bool nem_excluded(const struct nem_judge *j, unsigned lock, int64_t from, int64_t to)
{
    return !j->round->strict && happened(j, lock, from, to, is_excluded);
}

static bool answers(const struct nem_fault *fault)
{
    return fault->kind == NEM_SCRIPT_FLUSH || fault->kind == NEM_FLUSHALL ||
           fault->kind == NEM_ACL || nem_is_strangers(fault->kind) ||
           steps_clock(fault) || of_a_lock(fault->kind);
}

/* `nodes`: also by a fault of a cluster's nodes, whichever lock it hits. */
static bool hinders(const struct nem_judge *j, int32_t from_kind, unsigned process,
                    bool nodes, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (!answers(fault) && (nodes || !nem_is_of_nodes(j, fault)) &&
            fault->kind >= from_kind && meets_process(fault, process) &&
            overlaps(from, to, fault->begin, later(fault->end, nem_slack(j))))
            return true;
    }
    return false;
}

bool nem_refused(const struct nem_judge *j, int64_t from, int64_t to)
{
    for (size_t i = 0; i < j->round->fault_count; i++) {
        const struct nem_fault *fault = &j->round->faults[i];
        if (fault->kind == NEM_ACL &&
            overlaps(from, to, fault->begin, later(fault->end, nem_slack(j))))
            return true;
    }
    return false;
}

bool nem_unreachable(const struct nem_judge *j, unsigned process, int64_t from,
                     int64_t to)
{
    return hinders(j, 0, process, true, from, to);
}

bool nem_unreachable_for(const struct nem_judge *j, unsigned process, unsigned lock,
                         int64_t from, int64_t to)
{
    return hinders(j, 0, process, false, from, to) ||
           nem_nodes_unreachable(j, lock, from, to);
}

bool nem_delayed(const struct nem_judge *j, unsigned process, int64_t from, int64_t to)
{
    return hinders(j, NEM_CUT_ONE, process, true, from, to);
}

void nem_time_make(struct nem_judge *j)
{
    find_stretches(j);
    find_stops(j);
    find_disturbances(j);
    find_deaf(j);
    find_hampered(j);
}

void nem_time_free(struct nem_judge *j)
{
    free(j->stretches);
    free(j->stalled.items);
    free(j->stood.items);
    for (unsigned p = 0; p < NEM_PROCESSES_MAX; p++) {
        free(j->disturbed[p].items);
        free(j->deaf[p].items);
        free(j->hampered[p].items);
        free(j->stopped[p].items);
        free(j->on_purpose[p].items);
    }
}
