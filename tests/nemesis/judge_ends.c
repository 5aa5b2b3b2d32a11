/* SPDX-License-Identifier: Apache-2.0 */
/* The data left when all have ended, and the resources that a long run uses. */
#include "judge_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys */

/* A line "key ttl length". */
struct left {
    char key[256];
    long long ttl, length;
};

static bool is_locks(const char *key, unsigned *ret_lock)
{
    return sscanf(key, "nemesis%u", ret_lock) == 1 ||
           sscanf(key, "rlock:{nemesis%u}", ret_lock) == 1 ||
           sscanf(key, "redisson_lock_token:{nemesis%u}", ret_lock) == 1;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), tail = strlen(end);
    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* The longest TTL of a lock's key, as doc/DESIGN.md says. The server's clock sets the
 * ends, and may have gone back since. */
static long long longest_ttl(const struct nem_judge *j, const char *key)
{
    enum { COMPANION_MS = 60000, SETTLED_MS = 1000 };
    long long ms = COMPANION_MS + SETTLED_MS + 2 * j->round->lease_ms;
    if (ends_with(key, ":dirty"))
        ms = 7LL * 24 * 60 * COMPANION_MS;
    for (size_t i = 0; i < j->round->fault_count; i++)
        if (j->round->faults[i].kind == NEM_CLOCK_BACK)
            ms -= j->round->faults[i].amount;
    return ms;
}

/* The number of all clients that ever existed, including those of earlier rounds. */
static long long clients_of(const struct nem_judge *j)
{
    long long count = 0;
    for (size_t i = 0; i < j->life_count; i++) /* by process and life */
        if (i + 1 == j->life_count || j->lives[i + 1].process != j->lives[i].process)
            count += j->lives[i].life;
    return count;
}

/* The zset `present` has one member for each client, and one for all others. */
static void judge_size(struct nem_judge *j, unsigned lock, const struct left *left)
{
    if (!ends_with(left->key, ":present"))
        return;
    nem_judged(j, NEM_RULE_LEAK);
    if (left->length > clients_of(j) + 1)
        nem_violation(j, NEM_RULE_LEAK, lock, "%s has %lld members, of %lld clients",
                      left->key, left->length, clients_of(j));
}

static void judge_key(struct nem_judge *j, const struct left *left)
{
    unsigned lock;
    bool token = strncmp(left->key, "redisson_lock_token:", 20) == 0;
    if (strncmp(left->key, NEM_FORGED_NAME, strlen(NEM_FORGED_NAME)) == 0 ||
        strstr(left->key, "{" NEM_FORGED_NAME))
        nem_violation(j, NEM_RULE_OWNER, NEM_ALL,
                      "%s is at the server; only forged messages name that lock",
                      left->key);
    if (!is_locks(left->key, &lock))
        return;
    nem_judged(j, NEM_RULE_LEAK);
    if (left->ttl == -1 && !token)
        nem_violation(j, NEM_RULE_LEAK, lock, "%s has no TTL", left->key);
    if (left->ttl > longest_ttl(j, left->key))
        nem_violation(j, NEM_RULE_LEAK, lock, "%s has a TTL of %lld ms", left->key,
                      left->ttl);
    judge_size(j, lock, left);
    if (strncmp(left->key, "nemesis", 7) == 0 && left->length > 0)
        nem_violation(j, NEM_RULE_LEAK, lock, "is held at the end, for %lld ms more",
                      left->ttl);
    /* dead waiters are known from the ledger */
    if (j->round->no_ledger ||
        (!ends_with(left->key, ":queue") && !ends_with(left->key, ":rqueue")))
        return;
    nem_judged(j, NEM_RULE_RESIDUE);
    /* dead waiters stay until a script looks at the queue */
    if (left->length >
        j->dead_waiters[lock % NEM_LOCKS_MAX][ends_with(left->key, ":rqueue")])
        nem_violation(j, NEM_RULE_RESIDUE, lock, "%s has %lld members at the end",
                      left->key, left->length);
}

static void judge_left_keys(struct nem_judge *j)
{
    struct left left;
    for (size_t i = 0; i < j->round->left_count; i++) {
        left = (struct left){ 0 };
        if (sscanf(j->round->left[i], "%255s %lld %lld", left.key, &left.ttl,
                   &left.length) == 3)
            judge_key(j, &left);
        else
            nem_violation(j, NEM_RULE_LEAK, NEM_ALL, "cannot read \"%s\"",
                          j->round->left[i]);
    }
}

/* Counts each lock's queues as judged, also those that do not exist. */
static void judge_without_ttl(struct nem_judge *j)
{
    for (unsigned lock = 0; lock < j->round->locks; lock++) {
        nem_judged(j, NEM_RULE_LEAK);
        if (!j->round->no_ledger)
            nem_judged(j, NEM_RULE_RESIDUE);
    }
    for (size_t i = 0; i < j->round->ledger->count; i++) {
        const struct nem_entry *entry = &j->round->ledger->entries[i];
        if (entry->change == NEM_FORCED_TTL)
            nem_violation(j, NEM_RULE_LEAK, entry->lock,
                          "%s has no TTL between %.3f and %.3f ms", entry->id,
                          nem_ms(j, entry->after), nem_ms(j, entry->before));
    }
}

/* ---- resources */

static const struct nem_end *first_look(const struct nem_round *round,
                                        const struct nem_end *at)
{
    const struct nem_end *first = at;
    for (size_t i = 0; i < round->end_count; i++) {
        const struct nem_end *end = &round->ends[i];
        if (end->process == at->process && end->life == at->life && end->at < first->at)
            first = end;
    }
    return first;
}

/* Of the server, and under a tool: half more, plus a typical growth step of a heap. */
static int64_t memory_bound(const struct nem_judge *j, const struct nem_end *first)
{
    enum { ROOM = 8 * 1024 * 1024 };
    int64_t spare = j->round->spare_memory;
    return first->memory +
           (first->process == NEM_ALL || spare == 0 ? first->memory / 2 + ROOM : spare);
}

/* A lock's keys come and go. Each lock has nine at most, and the marks have one. */
static uint32_t thread_bound(const struct nem_judge *j, const struct nem_end *first)
{
    enum { KEYS = 9 };
    uint32_t keys = (j->round->locks + NEM_SACRIFICES) * KEYS + 1;
    return first->process == NEM_ALL && keys > first->threads ? keys : first->threads;
}

static void judge_growth(struct nem_judge *j, const struct nem_end *first,
                         const struct nem_end *last)
{
    char who[32] = "the server";
    bool server = last->process == NEM_ALL;
    if (!server)
        snprintf(who, sizeof(who), "process %u", last->process);
    nem_judged(j, NEM_RULE_GROWS);
    if (last->memory > memory_bound(j, first))
        nem_violation(j, NEM_RULE_GROWS, NEM_ALL,
                      "%s: %lld bytes at %.3f ms, %lld at %.3f ms", who,
                      (long long)first->memory, nem_ms(j, first->at),
                      (long long)last->memory, nem_ms(j, last->at));
    /* not of the server: connections that are reset while a link is down stay open
     * there */
    if (!server && last->descriptors > first->descriptors + j->round->spare_descriptors)
        nem_violation(j, NEM_RULE_GROWS, NEM_ALL,
                      "%s: %u descriptors at %.3f ms, %u at %.3f ms", who,
                      first->descriptors, nem_ms(j, first->at), last->descriptors,
                      nem_ms(j, last->at));
    if (last->threads > thread_bound(j, first))
        nem_violation(j, NEM_RULE_GROWS, NEM_ALL, "%s: %u %s at %.3f ms, %u at %.3f ms",
                      who, first->threads, server ? "keys" : "threads",
                      nem_ms(j, first->at), last->threads, nem_ms(j, last->at));
}

/* Workers sleep nearly all the time, and use a tenth of this bound. If a thread of each
 * process spun, the machine would stall them, and each stall would excuse late calls. The
 * bound is a share of the processors, or of the processes if these are fewer. */
static void judge_cpu(struct nem_judge *j)
{
    enum { PERCENT = 100, MOST = 40 };
    const struct nem_round *round = j->round;
    unsigned cores = round->cores < round->processes ? round->cores : round->processes;
    int64_t whole = (round->ended - round->started) * (int64_t)cores;
    if (whole <= 0)
        return;
    nem_judged(j, NEM_RULE_SPINS);
    if (round->cpu_ns > whole / PERCENT * MOST)
        nem_violation(j, NEM_RULE_SPINS, NEM_ALL,
                      "%u workers ran for %.0f ms in %.0f ms on %u cores",
                      round->processes, (double)round->cpu_ns / (double)NEM_NS_PER_MS,
                      nem_ms(j, round->ended), round->cores);
}

void nem_judge_ends(struct nem_judge *j)
{
    judge_cpu(j);
    judge_left_keys(j);
    judge_without_ttl(j);
    for (size_t i = 0; i < j->round->end_count; i++) {
        const struct nem_end *first = first_look(j->round, &j->round->ends[i]);
        if (first != &j->round->ends[i])
            judge_growth(j, first, &j->round->ends[i]);
    }
}
