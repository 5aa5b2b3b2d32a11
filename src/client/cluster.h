/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nodes of a client's cluster, and which of them has which hash slots. A node is a
 * target (target.h) of its own, which the two threads know from its first use on. A node
 * that has had no hash slots for seconds, and that no call uses, is let go:
 * cluster_sweep.c. Calls say that they use one by rlk_cluster_take and others, and
 * rlk_cluster_put. The watchdog's thread, which lets go, needs not. The memory stays, for
 * another node, so that others may look at it without a mutex.
 *
 * The watchdog's thread loads the map of the hash slots, when somebody asks for it:
 * cluster_load.c. A server that says MOVED changes one hash slot at once.
 *
 * The client's own target, route.target, is no node. It stands for "not known yet": no
 * request is sent to it, and what the two threads do once for a client is done there.
 *
 * Thread: any. Locks: functions take the cluster's mutexes; where they say so, the
 * registry's mu.
 */
#ifndef RLK_CLUSTER_H
#define RLK_CLUSTER_H

#include "client/target.h"
#include "net/key.h"

#include <stdatomic.h>

struct rlk_cluster;
struct rlk_cluster_load;
struct rlk_redirect;

/* For a client whose URL is of a cluster. Returns 0, ENOMEM or EAGAIN. Blocks: no. */
int rlk_cluster_create(struct rlk_cluster **ret_cluster, struct rlock_client *client);
/* The two threads do not use the nodes any more when it returns; no other call uses them.
 * NULL is fine. */
void rlk_cluster_leave(struct rlk_cluster *cluster);
/* After that. NULL is fine. */
void rlk_cluster_free(struct rlk_cluster *cluster);

/* The node that has the hash slot of this name; the client's own target, if none is
 * known. For the watchdog's thread, for those who hold the registry's mu, and to compare.
 * Locks: none. */
struct rlk_target *rlk_cluster_to(struct rlk_cluster *cluster, const char *name,
                                  size_t name_len);
/* A node that has hash slots; the client's own target, if none is known. Locks: none. */
struct rlk_target *rlk_cluster_to_any(struct rlk_cluster *cluster);
/* The i-th node that has hash slots; NULL: there are no more. Locks: none. */
struct rlk_target *rlk_cluster_at(struct rlk_cluster *cluster, size_t i);
/* The same nodes for other calls, which put them; the client's own target need not be.
 * name NULL: any node. Locks: none. */
struct rlk_target *rlk_cluster_take(struct rlk_cluster *cluster, const char *name,
                                    size_t name_len);
/* One more user of a node that the caller uses. */
void rlk_cluster_take_again(struct rlk_target *target);
void rlk_cluster_put(struct rlk_target *target);
/* Whether the node has been let go. */
bool rlk_cluster_is_let_go(const struct rlk_target *target);
/* Whether the node has hash slots now. Locks: none. */
bool rlk_cluster_serves(const struct rlk_target *target);

/* Counts the changes of the map: another count means that other nodes may have some
 * locks. Locks: none. */
unsigned rlk_cluster_changes(const struct rlk_cluster *cluster);

/* Makes the two threads know the node, before a request is sent to it. Locks: none may be
 * held. */
void rlk_cluster_use(struct rlk_target *target);
/* The same, later, for a caller that holds the registry's mu. Thread: the watchdog. */
void rlk_cluster_want(struct rlk_target *target);
/* Carries that out. Locks: none may be held. Thread: the watchdog. */
void rlk_cluster_use_wanted(struct rlk_cluster *cluster);

/* Waits until a node for this name is known (name NULL: any node). Returns 0, or the code
 * for the caller, with the thread's message. Blocks: until `until` (CLOCK_BOOTTIME).
 * Locks: takes the registry's mu, too. */
int rlk_cluster_await(struct rlk_cluster *cluster, const char *name, size_t name_len,
                      int64_t until);
/* Something shows that the map is out of date: it is loaded again soon. */
void rlk_cluster_reload(struct rlk_cluster *cluster);
/* The node did not answer: others are asked for the map first. Locks: none. */
void rlk_cluster_failed(struct rlk_target *target);

/* `from` said MOVED: changes the map. Locks: takes the registry's mu, too. */
void rlk_cluster_moved(struct rlk_target *from, const struct rlk_redirect *redirect);

/* `from` said ASK: that is remembered until the hash slot has another node. */
void rlk_cluster_asked(struct rlk_target *from, const struct rlk_redirect *redirect);
/* The node that is getting the hash slot of this name; NULL: none, as far as is known. */
struct rlk_target *rlk_cluster_importer(struct rlk_cluster *cluster, const char *name,
                                        size_t name_len);
/* The same for other calls than the watchdog's, which put it. */
struct rlk_target *rlk_cluster_take_importer(struct rlk_cluster *cluster,
                                             const char *name, size_t name_len);

/* ---- cluster_sweep.c. Thread: the watchdog. Locks: takes the cluster's mutexes, and the
 * registry's mu. Blocks: no. */

/* Lets go of nodes that are not used any more. Returns when to call again. */
int64_t rlk_cluster_sweep(struct rlk_cluster *cluster, int64_t now);
/* How many nodes there are. Thread: any. */
size_t rlk_cluster_count(struct rlk_cluster *cluster);

/* ---- cluster_load.c. Thread: the watchdog. Locks: take the cluster's and the registry's
 * mu. Blocks: no. */

/* Returns 0 or ENOMEM. */
int rlk_cluster_load_create(struct rlk_cluster_load **ret_load,
                            struct rlk_cluster *cluster);
void rlk_cluster_load_free(struct rlk_cluster_load *load);
/* The two of the loop (loop.h). */
int64_t rlk_cluster_load_step(struct rlk_cluster *cluster, int64_t now);
int rlk_cluster_load_fd(struct rlk_cluster *cluster, short *ret_events);
/* Whether nodes are asked now. */
bool rlk_cluster_load_is_busy(const struct rlk_cluster *cluster);
/* The client leaves the watchdog. */
void rlk_cluster_load_stop(struct rlk_cluster *cluster);

#endif
