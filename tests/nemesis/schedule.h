/* SPDX-License-Identifier: Apache-2.0 */
/* A seeded schedule of faults: the same options give the same schedule. */
#ifndef NEM_SCHEDULE_H
#define NEM_SCHEDULE_H

#include "oplog.h"

#include <stddef.h>

struct nem_plan_options {
    uint64_t seed;
    long faults_ms;     /* faults begin for this long; all have ended soon after */
    unsigned processes; /* targets */
    unsigned locks;
    long lease_ms;
    long gap_ms;    /* the mean time between two faults */
    uint64_t kinds; /* bit i: enum nem_kind i is wanted */
    uint64_t
        impossible; /* kinds that are left out of a plan that is otherwise the same */
};

/*
 * The meaning of `amount`, by kind:
 *   KILL_INSIDE      the type of the lock
 *   KILL_KEPT
 *   KILL_ASKING
 *   `KILL_BURIER`    the requests of the recovering process are executed 0: when it is
 *                    dead, 1: at the end of the step
 *   DELAY            ms in each direction
 *   CUT_REPLIES      how many bytes of the reply still pass
 *   DRIP             ms for each byte
 *   HALF_CLOSE       0: the server sees the end of the stream, 1: the client sees it
 *   REFUSE           0: no socket listens, 1: connections are accepted and closed at once
 *   LINK_DOWN        0: the other end (a cable pulled), 1: the process's own end (which
 *                    takes its route away, too)
 *   DESCRIPTORS      bit 0: a pipe is opened, else /dev/null; bit 1: those from 3 on are
 *                    closed as well, except for the program's own
 *   FORGE            ms by which all replies are late meanwhile: a message then comes
 *   FORCE            before the reply to which it belongs
 *   ACL              which right (nem_right)
 *   CLIENT_PAUSE     0: all commands, 1: writes only
 *   CLOCK_BACK       ms, negative: by how much the server's clock is stepped. The step is
 *   CLOCK_FORWARD    ms, positive  never undone at its end, only by a later step in the
 *                    other direction. The window is the planned one: in it all affected
 *                    clients notice the step. A plan's steps never sum up to more than
 *                    NEM_OFFSET_MAX_MS in either direction
 *   DELETE_COMPANION which of the companions (nem_companion)
 *   FAILOVER         1: the old master is left to the sentinels, which take some 10 s to
 *   MASTER_KILL      make it a replica; 0: the driver does so at the end of the step's
 *   MASTER_STOP      length, which counts from the election. In a cluster it has no
 *                    meaning: masters that were replaced follow by themselves
 *   TAKEOVER         1: replication stops, and the takeover comes at the end of the
 * length BUS_CUT          0: the master of a shard, 1: all nodes NODE_RESTART     0: the
 * master of a shard, 1: its replica `RESHARD_HALFWAY` for its length the hash slot's keys
 * are 0: all at the old node, 1: all but the lock's own, 2: all at the new one
 */
struct nem_step {
    int64_t begin_ms, length_ms; /* since the start of the round; length 0: no duration */
    enum nem_kind kind;
    uint16_t target, lock;
    int64_t amount; /* ms of delay, of a clock's step...; see above */
    /* 0: the whole link; n: one connection of it: the n-th of the open ones, counted
     * round from the newest. If none is open it is the whole link. */
    uint16_t connection;
};

struct nem_plan {
    struct nem_step *steps; /* by begin_ms */
    size_t count;
};

enum { NEM_OFFSET_MAX_MS = 24 * 60 * 60 * 1000, NEM_LINK_RETRY_MS = 1000 };
/* The library notices within this time that its descriptors were closed. */
enum { NEM_NOTICED_MS = 1000 };

/* Steps that would spoil each other (two of the server at a time, a process that is
 * stopped and killed) do not overlap. */
void nem_plan_make(struct nem_plan *plan, const struct nem_plan_options *options);
void nem_plan_free(struct nem_plan *plan);

const char *nem_kind_name(enum nem_kind kind); /* "kill", "stop-short"... */
/* Whether S1 excludes the kind with these servers: exclusion may be broken inside of its
 * window. */
bool nem_kind_excluded(enum nem_kind kind, enum nem_servers servers);
/* Whether the kind can happen with these servers. A link that is encrypted shows no
 * messages; to several servers there is none of a process's own. */
bool nem_kind_fits(enum nem_kind kind, enum nem_servers servers);

/* The target of a kind. Two steps of one lane clash when it is the server's, or when they
 * have the same target, or one has all targets. Strangers do not know of each other: only
 * two steps of the same kind clash. */
enum nem_lane { NEM_LANE_PROCESS, NEM_LANE_LINK, NEM_LANE_STRANGER, NEM_LANE_SERVER };
enum nem_lane nem_kind_lane(enum nem_kind kind);
/* Whether the kind can affect one connection of a link. */
bool nem_kind_of_one(enum nem_kind kind);
bool nem_steps_clash(const struct nem_step *a, const struct nem_step *b);

/* The suffixes of a lock's companion keys; NULL after the last one. */
const char *nem_companion(unsigned number);

/* What the workers' user loses and gets back: words of ACL SETUSER, NULL after the last
 * one; NULL: there are no more rights. */
struct nem_right {
    const char *taken[4], *given;
};
const struct nem_right *nem_right(unsigned number);

#endif
