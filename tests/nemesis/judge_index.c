/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns records to lives, calls and holds, and to each id what the server had for
 * it. */
#include "judge_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- names */

static size_t hash(const char *text)
{
    uint64_t h = 1469598103934665603u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

struct nem_name *nem_name_find(const struct nem_judge *j, const char *text)
{
    struct nem_name *name = j->names[hash(text) % j->name_buckets];
    while (name && strcmp(name->text, text) != 0)
        name = name->chain;
    return name;
}

static struct nem_name *name_make(struct nem_judge *j, const char *text)
{
    struct nem_name *name = nem_name_find(j, text);
    if (name)
        return name;
    size_t len = strlen(text) + 1;
    name = nem_alloc(sizeof(*name) + len);
    name->text = memcpy(name + 1, text, len);
    struct nem_name **bucket = &j->names[hash(text) % j->name_buckets];
    name->chain = *bucket;
    *bucket = name;
    return name;
}

static void uuid_of(const char *id, char uuid[NEM_UUID_LEN + 1])
{
    size_t len = strcspn(id, ":");
    if (len > NEM_UUID_LEN)
        len = NEM_UUID_LEN;
    memcpy(uuid, id, len);
    uuid[len] = '\0';
}

struct nem_life *nem_life_of(const struct nem_judge *j, const char *id)
{
    char uuid[NEM_UUID_LEN + 1];
    uuid_of(id, uuid);
    struct nem_name *name = nem_name_find(j, uuid);
    return name ? name->life : NULL;
}

/* ---- records in order */

static int by_thread_and_time(const void *a, const void *b)
{
    const struct nem_op *x = *(const struct nem_op *const *)a;
    const struct nem_op *y = *(const struct nem_op *const *)b;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->life != y->life)
        return x->life < y->life ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x < y ? -1 : x > y; /* in the order of writing */
}

static void sort_ops(struct nem_judge *j)
{
    j->op_count = j->round->op_count;
    j->ops = nem_alloc(j->op_count * sizeof(struct nem_op *));
    for (size_t i = 0; i < j->op_count; i++)
        j->ops[i] = &j->round->ops[i];
    qsort(j->ops, j->op_count, sizeof(struct nem_op *), by_thread_and_time);
}

/* ---- lives */

/* When it was done, at the latest. */
static int64_t done_at(const struct nem_fault *fault)
{
    enum { NS_PER_US = 1000 };
    return fault->begin + (int64_t)fault->took_us * NS_PER_US;
}

/* A kill waits for its moment: it may have begun before the first record of the life. */
static bool ends_life(const struct nem_fault *fault, const struct nem_life *life)
{
    return (nem_kills(fault->kind) || fault->kind == NEM_TERM) &&
           (fault->target == life->process || fault->target == NEM_ALL) &&
           done_at(fault) >= life->begun && fault->begin < life->over;
}

static void end_lives(struct nem_judge *j)
{
    for (size_t i = 0; i < j->life_count; i++) {
        struct nem_life *life = &j->lives[i];
        if (i + 1 < j->life_count && life[1].process == life->process)
            life->over = life[1].begun;
        for (size_t f = 0; f < j->round->fault_count; f++) {
            const struct nem_fault *fault = &j->round->faults[f];
            if (!ends_life(fault, life) || fault->begin >= life->dying)
                continue;
            life->dying = fault->begin;
            life->killed = nem_kills(fault->kind) ? done_at(fault) : INT64_MAX;
        }
        if (life->over < life->dying)
            life->dying = life->last; /* it died by itself */
    }
}

static void find_lives(struct nem_judge *j)
{
    size_t size = 0;
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        struct nem_life *life = j->life_count ? &j->lives[j->life_count - 1] : NULL;
        if (!life || life->process != op->process || life->life != op->life) {
            j->lives = nem_grow(j->lives, j->life_count, &size, sizeof(*life));
            life = &j->lives[j->life_count++];
            *life = (struct nem_life){ .process = op->process,
                                       .life = op->life,
                                       .begun = op->at,
                                       .last = op->at,
                                       .over = INT64_MAX,
                                       .dying = INT64_MAX,
                                       .killed = INT64_MAX };
        }
        if (op->what == NEM_STARTED)
            life->guarded = op->code == 1;
        if (op->at < life->begun)
            life->begun = op->at;
        if (op->at > life->last)
            life->last = op->at;
    }
    end_lives(j);
}

/* Which client belongs to which life: each thread records it first. */
static void name_clients(struct nem_judge *j)
{
    char uuid[NEM_UUID_LEN + 1];
    size_t life = 0;
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        while (j->lives[life].process != op->process || j->lives[life].life != op->life)
            life++;
        if (op->what == NEM_STARTED && op->id[0]) {
            uuid_of(op->id, uuid);
            name_make(j, uuid)->life = &j->lives[life];
        }
    }
}

/* ---- calls and holds */

bool nem_is_acquire(unsigned call)
{
    return call >= NEM_LOCK && call <= NEM_TRYRDLOCK;
}

bool nem_is_try(unsigned call)
{
    return call == NEM_TRYLOCK || call == NEM_TRYRDLOCK;
}

bool nem_is_timed(unsigned call)
{
    return call == NEM_TIMEDLOCK || call == NEM_TIMEDRDLOCK;
}

struct walk {
    struct nem_life *life;
    size_t call; /* the open call, as an index of `made`; SIZE_MAX: none */
    struct nem_hold *held[NEM_LOCKS_MAX];
};

static struct nem_hold *hold_make(struct nem_judge *j, const struct walk *w,
                                  const struct nem_op *invoke, size_t at)
{
    const struct nem_op *op = j->ops[at];
    struct nem_hold *hold = nem_alloc(sizeof(*hold));
    hold->life = w->life;
    hold->asked = invoke;
    hold->returned = op;
    hold->first = hold->last = at;
    hold->reading = op->reading;
    hold->fixed = invoke->lease_ms != 0;
    if (op->id[0]) {
        hold->name = name_make(j, op->id);
        hold->next = hold->name->holds;
        hold->name->holds = hold;
    }
    j->holds = nem_grow(j->holds, j->hold_count, &j->hold_size, sizeof(hold));
    j->holds[j->hold_count++] = hold;
    return hold;
}

/* What a record says about its hold. */
static void hold_learn(struct nem_judge *j, struct nem_hold *hold, size_t at)
{
    const struct nem_op *op = j->ops[at];
    hold->last = at;
    if (op->end != 0)
        hold->end = op->end;
    if (op->id[0] && hold->name && !hold->second &&
        strcmp(op->id, hold->name->text) != 0) {
        hold->second = name_make(j, op->id);
        hold->next_renamed = hold->second->renamed;
        hold->second->renamed = hold;
    }
    if (op->what == NEM_CHECK && op->code == 1 && op->at < op->end)
        hold->until = op->at;
    bool lost = (op->what == NEM_CHECK && op->code == 0) ||
                (op->what == NEM_RETURN && op->code == ESTALE);
    if (lost && hold->lost == 0) {
        hold->lost = op->at;
        hold->lost_by = op;
        hold->end_at_loss = hold->end;
    }
}

static void begin_call(struct nem_judge *j, struct walk *w, size_t at)
{
    const struct nem_op *op = j->ops[at];
    struct nem_hold *hold = w->held[op->lock];
    j->made = nem_grow(j->made, j->made_count, &j->made_size, sizeof(*j->made));
    w->call = j->made_count++;
    j->made[w->call] = (struct nem_made){ op, NULL, hold, w->life, false };
    if (!hold)
        return;
    hold_learn(j, hold, at);
    if (op->call == NEM_UNLOCK)
        hold->unlocking = op;
    if (op->call == NEM_DOWNGRADE && hold->downgraded == 0) {
        hold->downgraded = op->at; /* from this call on it counts as a read */
        hold->turned = true;
    }
}

static void end_unlock(struct walk *w, struct nem_made *call)
{
    struct nem_hold *hold = call->hold;
    const struct nem_op *ret = call->ret;
    if (ret->code != ESTALE && ret->code != EPERM && call->invoke->at > hold->until)
        hold->until = call->invoke->at;
    if (ret->levels == 0) {
        hold->unlocked = ret;
        w->held[ret->lock] = NULL;
    } else {
        hold->unlocking = NULL;
    }
}

static void end_call(struct nem_judge *j, struct walk *w, size_t at)
{
    const struct nem_op *op = j->ops[at];
    struct nem_made *call = w->call == SIZE_MAX ? NULL : &j->made[w->call];
    w->call = SIZE_MAX;
    if (!call || call->invoke->lock != op->lock || call->invoke->call != op->call)
        return;
    call->ret = op;
    if (nem_is_acquire(op->call) && nem_taken(op->code) && !call->hold) {
        call->first = true;
        call->hold = w->held[op->lock] = hold_make(j, w, call->invoke, at);
        if (op->end == 0 || op->at < op->end)
            call->hold->until = op->at;
    }
    if (!call->hold)
        return;
    hold_learn(j, call->hold, at);
    if (op->call == NEM_UNLOCK)
        end_unlock(w, call);
    if (op->call == NEM_EXTEND && op->code == 0)
        call->hold->fixed = call->invoke->lease_ms != 0;
    if (op->call == NEM_DOWNGRADE && op->code != 0 && op->code != EACCES &&
        op->code != EPROTO && call->hold->downgraded == call->invoke->at)
        call->hold->downgraded = 0;
}

static bool same_thread(const struct nem_op *a, const struct nem_op *b)
{
    return a->process == b->process && a->life == b->life && a->thread == b->thread;
}

static void find_holds(struct nem_judge *j)
{
    struct walk w = { .call = SIZE_MAX };
    size_t life = 0;
    for (size_t i = 0; i < j->op_count; i++) {
        const struct nem_op *op = j->ops[i];
        while (j->lives[life].process != op->process || j->lives[life].life != op->life)
            life++;
        if (i == 0 || !same_thread(op, j->ops[i - 1]))
            w = (struct walk){ .life = &j->lives[life], .call = SIZE_MAX };
        if (op->lock >= NEM_LOCKS_MAX || op->thread == NEM_EVENTS_THREAD)
            continue;
        if (op->what == NEM_INVOKE)
            begin_call(j, &w, i);
        else if (op->what == NEM_RETURN)
            end_call(j, &w, i);
        else if (op->what == NEM_CHECK && w.held[op->lock])
            hold_learn(j, w.held[op->lock], i);
    }
}

/* ---- the server's data */

static void tenure_make(struct nem_judge *j, struct nem_name *name,
                        const struct nem_entry *entry)
{
    struct nem_tenure *tenure = nem_alloc(sizeof(*tenure));
    tenure->granted = entry;
    tenure->name = name;
    if (name->last_tenure)
        name->last_tenure->next = tenure;
    else
        name->tenures = tenure;
    name->last_tenure = tenure;
    j->tenures = nem_grow(j->tenures, j->tenure_count, &j->tenure_size, sizeof(tenure));
    j->tenures[j->tenure_count++] = tenure;
}

static void tenure_lease(struct nem_tenure *tenure, const struct nem_entry *entry)
{
    tenure->leases = nem_grow(tenure->leases, tenure->lease_count, &tenure->lease_size,
                              sizeof(struct nem_entry *));
    tenure->leases[tenure->lease_count++] = entry;
}

static void find_tenures(struct nem_judge *j)
{
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        bool granted = entry->change == NEM_GRANTED || entry->change == NEM_READ;
        if (!granted && entry->change != NEM_LEASE && entry->change != NEM_LEFT &&
            entry->change != NEM_DOWNGRADED)
            continue;
        struct nem_name *name = name_make(j, entry->id);
        struct nem_tenure *tenure = name->last_tenure;
        if (granted)
            tenure_make(j, name, entry);
        else if (!tenure || tenure->left)
            continue;
        else if (entry->change == NEM_LEASE)
            tenure_lease(tenure, entry);
        else if (entry->change == NEM_LEFT)
            tenure->left = entry;
        else
            tenure->downgraded = entry;
    }
}

int64_t nem_granted_after(const struct nem_hold *hold)
{
    int64_t asked = hold->asked ? hold->asked->at : hold->returned->at;
    const struct nem_tenure *last = NULL;
    for (const struct nem_tenure *t = hold->name ? hold->name->tenures : NULL; t;
         t = t->next) {
        if (t->granted->after > hold->returned->at)
            continue;
        if (!t->left || t->left->before >= asked)
            return t->granted->after;
        last = t;
    }
    /* a hold that the process passes on or retains is entered without the server, which
     * may have lost it by then */
    bool local = last && nem_passes(hold->returned->lock);
    return local ? last->granted->after : hold->returned->at;
}

void nem_index_make(struct nem_judge *j)
{
    j->name_buckets = j->round->op_count + j->round->ledger->count / 4 + 1024;
    j->names = nem_alloc(j->name_buckets * sizeof(struct nem_name *));
    sort_ops(j);
    find_lives(j);
    name_clients(j);
    find_holds(j);
    find_tenures(j);
    for (size_t i = 0; i < j->tenure_count; i++)
        j->tenures[i]->name->life = nem_life_of(j, j->tenures[i]->name->text);
}

void nem_index_free(struct nem_judge *j)
{
    for (size_t i = 0; i < j->tenure_count; i++) {
        free(j->tenures[i]->leases);
        free(j->tenures[i]);
    }
    for (size_t i = 0; i < j->hold_count; i++)
        free(j->holds[i]);
    for (size_t i = 0; i < j->name_buckets; i++)
        for (struct nem_name *name = j->names[i], *next; name; name = next) {
            next = name->chain;
            free(name);
        }
    free(j->names);
    free(j->tenures);
    free(j->holds);
    free(j->made);
    free(j->lives);
    free(j->ops);
}
