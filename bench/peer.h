/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of another language: programs of bench/peers, which learn over a pipe when to
 * begin. Each function ends the process on failure. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "team.h"

/* Whether bench/run has found what the peer needs. */
bool peer_is_there(const struct peer *peer);

struct crew;
struct crew *crew_start(const struct peer *peer, size_t clients, const char *name);
/* Lets the crew work for a while; adds its CPU time. */
void crew_run(struct crew *crew, double seconds, double *cpu_ns);
/* Adds to the result what each client did since the last call. */
void crew_take(struct crew *crew, struct result *result);
void crew_stop(struct crew *crew);

#endif
