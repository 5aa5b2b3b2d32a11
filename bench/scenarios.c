/* SPDX-License-Identifier: Apache-2.0 */
/* See scenarios.h. No state. */
#include "scenarios.h"

/* For a free lock. */
static const char control_pairs[] = "<= 1.05", set_nx_pairs[] = "<= 1.20";
static const char redisson_pairs[] = "<= 0.71";
/* For processes that contend. */
static const char control_rate[] = ">= 0.9", redisson_rate[] = ">= 20";
static const char redisson_fair_rate[] = ">= 4";
/* Compares a long queue with a queue of ten. */
static const char flat[] = "<= 1.5";

#define SINGLE                                                                           \
    {                                                                                    \
        1, 1                                                                             \
    }
#define PROCESSES(n)                                                                     \
    {                                                                                    \
        (n), 1                                                                           \
    }
#define NO_TARGET NULL
#define OF(contender, target)                                                            \
    {                                                                                    \
        &(contender), (target),                                                          \
        {                                                                                \
            0, 0                                                                         \
        }                                                                                \
    }
#define OF_SHAPE(contender, target, processes, threads)                                  \
    {                                                                                    \
        &(contender), (target),                                                          \
        {                                                                                \
            (processes), (threads)                                                       \
        }                                                                                \
    }

/* n processes that lock and unlock one name. */
#define HANDOFF(n, ...)                                                                  \
    {                                                                                    \
        .word = "handoff" #n, .label = "hand-offs/s, " #n " proc.", .unit = UNIT_PER_S,  \
        .shape = PROCESSES(n), .entries = {                                              \
            OF(rlock_pair, "luck <= 2"),                                                 \
            OF(control_pair, control_rate),                                              \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define FAIR_HANDOFF(n, ...)                                                             \
    {                                                                                    \
        .word = "fair_handoff" #n, .label = "fair h.o./s, " #n " proc.",                 \
        .unit = UNIT_PER_S, .shape = PROCESSES(n), .entries = {                          \
            OF(fair_pair, "luck <= 1.1"),                                                \
            OF(control_fair_pair, control_rate),                                         \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }
#define WRITE_HANDOFF(n, ...)                                                            \
    {                                                                                    \
        .word = "rw_handoff" #n, .label = "write h.o./s, " #n " proc.",                  \
        .unit = UNIT_PER_S, .shape = PROCESSES(n), .entries = {                          \
            OF(rw_write_pair, NO_TARGET),                                                \
            OF(control_write_pair, control_rate),                                        \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

const struct scenario scenarios[] = {
    { .word = "pair",
      .label = "uncontended, us/pair",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(rlock_pair, NO_TARGET), OF(control_pair, control_pairs),
                   OF(set_nx_pair, set_nx_pairs), OF(redisson_pair, redisson_pairs),
                   OF(redis_py_pair, NO_TARGET), OF(redsync_pair, NO_TARGET) } },
    { .word = "fair_pair",
      .label = "fair, us/pair",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(fair_pair, NO_TARGET), OF(control_fair_pair, control_pairs),
                   OF(set_nx_pair, set_nx_pairs), OF(redisson_fair, redisson_pairs) } },
    { .word = "rw_read_pair",
      .label = "read, us/pair",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(rw_read_pair, NO_TARGET), OF(control_read_pair, control_pairs),
                   OF(set_nx_pair, set_nx_pairs), OF(redisson_read, redisson_pairs) } },
    { .word = "rw_write_pair",
      .label = "write, us/pair",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(rw_write_pair, NO_TARGET), OF(control_write_pair, control_pairs),
                   OF(set_nx_pair, set_nx_pairs), OF(redisson_write, redisson_pairs) } },
    { .word = "reentry",
      .label = "re-entry, ns",
      .unit = UNIT_NS,
      .shape = SINGLE,
      .entries = { OF(rlock_again, "<= 100 ns"), OF(pthread_again, NO_TARGET),
                   OF(pthread_robust_batch, NO_TARGET) } },
    { .word = "kept",
      .label = "kept mutex, ns",
      .unit = UNIT_NS,
      .shape = SINGLE,
      .entries = { OF(rlock_kept, "<= 400 ns"), OF(pthread_robust_batch, NO_TARGET) } },
    { .word = "kept_rw",
      .label = "kept rwlock, ns",
      .unit = UNIT_NS,
      .shape = SINGLE,
      .entries = { OF(read_kept, NO_TARGET), OF(write_kept, NO_TARGET),
                   OF(pthread_robust_batch, NO_TARGET) } },
    HANDOFF(2, OF(pthread_robust, NO_TARGET), OF(redisson_pair, NO_TARGET),
            OF(redis_py_pair, NO_TARGET), OF(redsync_pair, NO_TARGET)),
    HANDOFF(16, OF(pthread_robust, NO_TARGET), OF(redisson_pair, NO_TARGET),
            OF(redis_py_pair, NO_TARGET), OF(redsync_pair, NO_TARGET)),
    HANDOFF(64, OF(pthread_robust, NO_TARGET), OF(redisson_pair, redisson_rate),
            OF(redis_py_pair, NO_TARGET), OF(redsync_pair, NO_TARGET)),
    HANDOFF(256, OF(pthread_robust, NO_TARGET)),
    FAIR_HANDOFF(2, OF(redisson_fair, NO_TARGET)),
    FAIR_HANDOFF(16, OF(redisson_fair, NO_TARGET)),
    FAIR_HANDOFF(64, OF(redisson_fair, redisson_fair_rate)),
    FAIR_HANDOFF(256, OF(control_pair, NO_TARGET)),
    WRITE_HANDOFF(2, OF(control_pair, NO_TARGET), OF(redisson_write, NO_TARGET)),
    WRITE_HANDOFF(16, OF(control_pair, NO_TARGET), OF(redisson_write, NO_TARGET)),
    WRITE_HANDOFF(64, OF(control_pair, NO_TARGET), OF(redisson_write, NO_TARGET)),
    WRITE_HANDOFF(256, OF(control_pair, NO_TARGET)),
    { .word = "threads16",
      .label = "sections/s, 16 threads",
      .unit = UNIT_PER_S,
      .shape = { 1, 16 },
      .entries = { OF(rlock_pair, NO_TARGET),
                   OF_SHAPE(rlock_pair_processes, ">= 50", 16, 1), OF(go_pair, ">= 0.5"),
                   OF(pthread_robust, NO_TARGET) } },
    { .word = "mixed16",
      .label = "90 % reads/s, 16 proc.",
      .unit = UNIT_PER_S,
      .shape = PROCESSES(16),
      .entries = { OF(rw_mixed, NO_TARGET), OF(control_mixed, NO_TARGET),
                   OF(rlock_pair, NO_TARGET), OF(redisson_mixed, NO_TARGET) } },
    { .word = "rw_overlap16",
      .label = "2 ms sect./s, 16 proc.",
      .unit = UNIT_PER_S,
      .shape = PROCESSES(16),
      .entries = { OF(read_section, NO_TARGET), OF(mutex_section, ">= 8") } },
    { .word = "latency16",
      .label = "lock() p99/p50, 16 pr.",
      .unit = UNIT_TAIL,
      .shape = PROCESSES(16),
      .entries = { OF(rlock_latency, NO_TARGET), OF(control_pair, "<= 1.3") } },
    { .word = "fair_latency16",
      .label = "fair p99/p50, 16 pr.",
      .unit = UNIT_TAIL,
      .shape = PROCESSES(16),
      .entries = { OF(fair_latency, NO_TARGET), OF(control_fair_pair, "<= 1.3") } },
    { .word = "fair_waiters10000",
      .label = "fair h.o./s, 10,000",
      .unit = UNIT_PER_S,
      .shape = { 10, 1000 },
      .entries = { OF(fair_pair, NO_TARGET), OF_SHAPE(fair_pair_few, NO_TARGET, 10, 2) },
      .seconds = 4,
      .slices = 1 },
    { .word = "fair_queue",
      .label = "fair, us/grant",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(grant_10, NO_TARGET), OF(grant_1000, flat), OF(grant_10000, flat) },
      .ratio_to_first = true },
    { .word = "fair_join",
      .label = "fair, us/new waiter",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(join_10, NO_TARGET), OF(join_1000, flat), OF(join_10000, flat) },
      .ratio_to_first = true },
    { .word = "fair_dead16",
      .label = "fair, ms to next grant",
      .unit = UNIT_MS,
      .shape = SINGLE,
      .entries = { OF(after_none_died, NO_TARGET), OF(after_16_died, "<= 50 ms") },
      .ratio_to_first = true },
    { .word = "holder_died",
      .label = "lease 600, ms to grant",
      .unit = UNIT_MS,
      .shape = SINGLE,
      .entries = { OF(holder_died, NO_TARGET), OF(holder_died_expiry, "<= 50 ms") },
      .ratio_to_first = true },
    { .word = "rw_readers_enter",
      .label = "read, us/new reader",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(enter_10, NO_TARGET), OF(enter_1000, flat), OF(enter_5000, flat) },
      .ratio_to_first = true },
    { .word = "rw_readers_renew",
      .label = "read, us/renewal",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(renew_10, NO_TARGET), OF(renew_1000, flat), OF(renew_5000, flat) },
      .ratio_to_first = true },
    { .word = "rw_readers_leave",
      .label = "read, us/reader out",
      .unit = UNIT_US,
      .shape = SINGLE,
      .entries = { OF(leave_10, NO_TARGET), OF(leave_1000, flat), OF(leave_5000, flat) },
      .ratio_to_first = true },
};
const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
