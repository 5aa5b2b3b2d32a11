/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Teams of processes that contend; see cluster.h. Each side has a team and locks of its
 * own. A process takes and gives back locks chosen at random, for which it has one client
 * at each URL of its side. The teams take turns; the processes of the others sleep.
 */
#include "cluster.h"

#include "bench.h"
#include "process.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY = -1, SETTLE_MS = 20, REST_S = 120, EXTRAS = 2, WARM_UP = 20 };

struct member {
    _Atomic long pairs;
    _Atomic long waited; /* of them; up to date while the team rests */
};

struct teams {
    const struct side *sides;
    int count, locks;
    void (*read_extra)(double counts[EXTRAS]);
    _Atomic int turn;           /* of a side */
    sem_t go[SIDES_MAX], rests; /* posted once for each member */
    pid_t pids[SIDES_MAX][TEAM_SIZE];
    struct member members[SIDES_MAX][TEAM_SIZE];
};

/* ---- a member */

struct contender_state {
    rlock_client_t *clients[MASTERS];
    rlock_mutex_t locks[LOCKS_MAX];
    int count;
    uint32_t random;
};

static void open_locks(struct contender_state *state, const struct side *side, int locks)
{
    char name[LOCK_NAME_SIZE];

    for (int i = 0; i < side->url_count; i++)
        state->clients[i] = client_at(side->urls[i]);
    state->count = locks;
    for (int k = 0; k < locks; k++) {
        servers_name(name, k % MASTERS, k / MASTERS);
        mutex_at(&state->locks[k], state->clients[k % side->url_count], name);
    }
}

static long count_grants(const struct contender_state *state)
{
    rlock_stats_t stats;
    long grants = 0;

    for (int i = 0; i < MASTERS && state->clients[i]; i++) {
        check(rlock_client_getstats(state->clients[i], &stats), "rlock_client_getstats");
        grants += (long)stats.grants;
    }
    return grants;
}

/* Xorshift: the same locks in the same order on each side. */
static rlock_mutex_t *next_lock(struct contender_state *state)
{
    state->random ^= state->random << 13;
    state->random ^= state->random >> 17;
    state->random ^= state->random << 5;
    return &state->locks[state->random % (unsigned)state->count];
}

static void be_member(struct teams *teams, int side, int i)
{
    static struct contender_state state;
    struct member *member = &teams->members[side][i];

    state.random = 2463534242U + (uint32_t)i * 7919;
    open_locks(&state, &teams->sides[side], teams->locks);
    for (;;) {
        atomic_store(&member->waited, count_grants(&state));
        sem_post(&teams->rests);
        semaphore_wait(&teams->go[side]);
        while (atomic_load_explicit(&teams->turn, memory_order_relaxed) == side) {
            rlock_mutex_t *lock = next_lock(&state);
            check(rlock_mutex_lock(lock), "rlock_mutex_lock");
            atomic_fetch_add_explicit(&member->pairs, 1, memory_order_relaxed);
            check(rlock_mutex_unlock(lock), "rlock_mutex_unlock");
        }
    }
}

/* ---- a slice */

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* What a side has done, and used, so far. */
static struct work work_of(const struct teams *teams, int side)
{
    const struct side *s = &teams->sides[side];
    struct work work = { .seconds = (double)now_ns() / (double)NS_PER_S };

    for (int i = 0; i < TEAM_SIZE; i++) {
        work.pairs += (double)atomic_load(&teams->members[side][i].pairs);
        work.waited += (double)atomic_load(&teams->members[side][i].waited);
        work.client_us += process_cpu_us(teams->pids[side][i]);
    }
    for (int i = 0; i < s->server_count; i++)
        work.server_us += process_cpu_us(test_server_pid(s->servers[i]));
    if (teams->read_extra)
        teams->read_extra(work.extra);
    return work;
}

static void add_difference(struct work *sum, const struct work *begin,
                           const struct work *end)
{
    sum->seconds += end->seconds - begin->seconds;
    sum->pairs += end->pairs - begin->pairs;
    sum->waited += end->waited - begin->waited;
    sum->client_us += end->client_us - begin->client_us;
    sum->server_us += end->server_us - begin->server_us;
    for (int i = 0; i < EXTRAS; i++)
        sum->extra[i] += end->extra[i] - begin->extra[i];
}

static void await_rest(struct teams *teams)
{
    for (int i = 0; i < TEAM_SIZE; i++)
        if (!semaphore_wait_for(&teams->rests, REST_S))
            die("a process does not come to rest");
}

/* From rest to rest, so that all that belongs to the pairs is counted. */
static void run_slice(struct teams *teams, int side, long ms, struct work *sum)
{
    struct work begin = work_of(teams, side);

    atomic_store(&teams->turn, side);
    for (int i = 0; i < TEAM_SIZE; i++)
        sem_post(&teams->go[side]);
    pause_ms(ms);
    atomic_store(&teams->turn, NOBODY);
    await_rest(teams);
    struct work end = work_of(teams, side);
    add_difference(sum, &begin, &end);
    pause_ms(SETTLE_MS);
}

void teams_round(struct teams *teams, size_t round, long ms,
                 struct work ret_works[SIDES_MAX])
{
    int count = teams->count;

    memset(ret_works, 0, sizeof(*ret_works) * SIDES_MAX);
    for (int turn = 0; turn < 2 * count; turn++) { /* a palindrome */
        int step = turn < count ? turn : 2 * count - 1 - turn;
        int side = (int)((round + (size_t)step) % (size_t)count);
        run_slice(teams, side, ms, &ret_works[side]);
    }
}

void teams_warm_up(struct teams *teams, long ms)
{
    struct work works[SIDES_MAX];

    for (size_t i = 0; i < WARM_UP; i++)
        teams_round(teams, i, ms, works);
}

/* ---- begin and end */

struct teams *teams_start(const struct side *sides, int count, int locks,
                          void (*read_extra)(double counts[EXTRAS]))
{
    struct teams *teams = memory_shared(sizeof(*teams));

    teams->sides = sides;
    teams->count = count;
    teams->locks = locks;
    teams->read_extra = read_extra;
    atomic_store(&teams->turn, NOBODY);
    if (sem_init(&teams->rests, 1, 0) != 0)
        die("no semaphore");
    for (int side = 0; side < count; side++) {
        if (sem_init(&teams->go[side], 1, 0) != 0)
            die("no semaphore");
        for (int i = 0; i < TEAM_SIZE; i++) {
            pid_t pid = process_fork(); /* the child shares the teams */
            if (pid == 0)
                be_member(teams, side, i);
            teams->pids[side][i] = pid;
        }
        await_rest(teams);
    }
    return teams;
}

void teams_stop(struct teams *teams)
{
    for (int side = 0; side < teams->count; side++)
        for (int i = 0; i < TEAM_SIZE; i++) {
            kill(teams->pids[side][i], SIGKILL);
            process_reap(teams->pids[side][i]);
        }
    memory_free(teams, sizeof(*teams));
}
