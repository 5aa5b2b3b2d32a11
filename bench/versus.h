/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two builds of the library side by side in one process (bench/before). Each build is
 * loaded separately, and is called through its table.
 */
#ifndef BENCH_VERSUS_H
#define BENCH_VERSUS_H

#include "redis.h"

#include <rlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { BEFORE, NOW, VERSIONS };

#define VERSUS_FUNCTIONS(X)                                                              \
    X(client_open)                                                                       \
    X(client_close)                                                                      \
    X(client_ping)                                                                       \
    X(clientattr_init)                                                                   \
    X(clientattr_destroy)                                                                \
    X(clientattr_setpresence)                                                            \
    X(clientattr_setlease)                                                               \
    X(clientattr_setguard)                                                               \
    X(clientattr_seteventcallback)                                                       \
    X(mutexattr_init)                                                                    \
    X(mutexattr_destroy)                                                                 \
    X(mutexattr_setclient)                                                               \
    X(mutexattr_setrobust)                                                               \
    X(mutex_init)                                                                        \
    X(mutex_destroy)                                                                     \
    X(mutex_lock)                                                                        \
    X(mutex_trylock)                                                                     \
    X(mutex_unlock)                                                                      \
    X(mutex_consistent)                                                                  \
    X(force_unlock)                                                                      \
    X(strerror)

struct library {
    const char *label;
#define VERSUS_FIELD(name) __typeof__(rlock_##name) *name;
    VERSUS_FUNCTIONS(VERSUS_FIELD)
#undef VERSUS_FIELD
};

/* The calling process must not have used a build before. Ends the process on failure. */
void library_load(struct library *ret_lib, const char *label, const char *path);

/* A code other than 0 ends the process. */
void library_check(const struct library *lib, int rc, const char *what);
/* A connected client with a subscribed mailbox; attr may be NULL. */
rlock_client_t *library_client(const struct library *lib, const rlock_clientattr_t *attr);
void library_mutex(const struct library *lib, rlock_mutex_t *m, rlock_client_t *client,
                   const char *name, bool robust);

/* The libraries' paths; "before" first. */
extern const char *versus_paths[VERSIONS];
extern const char *const versus_labels[VERSIONS];

/* ---- versus_table.c: figures of the builds
 *
 * Beside the two builds there is a second one of the earlier, whose ratio to the first
 * is the noise. */

enum { AGAIN = VERSIONS, SIDES };

/* As library_load. */
void side_load(struct library *ret_lib, int side);

/* CPU of the server, all told. */
double server_cpu_us(redisContext *conn);

void table_head(const char *title, size_t rounds);
/* The medians of a figure, and of its ratios within the rounds. */
void table_row(const char *figure, double *const values[SIDES], size_t rounds,
               const char *target);

/* The scenarios, each in a process of its own. `quick`: a tenth of the rounds. */
void versus_pair(bool quick);
void versus_try(bool quick);
void versus_forced(bool quick);
void versus_forged(bool quick);
void versus_deaths(bool quick);
void versus_handoff(bool quick);
void versus_memory(bool quick);

#endif
