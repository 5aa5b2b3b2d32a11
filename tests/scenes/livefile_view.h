/* SPDX-License-Identifier: Apache-2.0 */
/* A view of the live file of a client, as other processes see it. The file is read and
 * not mapped: a mapping would allocate memory for its holes. Thread: one at a time. */
#ifndef TEST_LIVEFILE_VIEW_H
#define TEST_LIVEFILE_VIEW_H

#include "crash/livefile.h"
#include "state/intent.h"

#include <rlock.h>

enum { GUARD_UUID_LEN = 36 };

struct livefile_view {
    int fd; /* to read */
    char uuid[GUARD_UUID_LEN + 1];
    char head[RLK_LIVEFILE_HEADER + 1];
};

/* Opens the live file of that uuid; NULL: the only live file. Asserts that it is there.
 */
void livefile_view_open(struct livefile_view *file, const char *dir, const char *uuid);
void livefile_view_close(struct livefile_view *file);
/* Whether its process holds the file lock. */
bool livefile_view_is_locked(const struct livefile_view *file);
/* The rest of the line of the head that begins with `key`. Asserts that there is one. */
const char *livefile_view_line(const struct livefile_view *file, const char *key);

/* The i-th intent, from 0; state 0: unused, or beyond the end. */
struct rlk_intent livefile_view_intent(const struct livefile_view *file, unsigned i);
/* How many intents are in use. */
unsigned livefile_view_used(const struct livefile_view *file);
/* The intent for a lock; state 0: none. Asserts that there is at most one. */
struct rlk_intent livefile_view_intent_of(const struct livefile_view *file,
                                          const char *name);
/* `inside` of that intent; -1: there is none. */
int livefile_view_inside(const struct livefile_view *file, const char *name);
/* Waits until livefile_view_inside is `inside`. */
bool livefile_view_wait(const struct livefile_view *file, const char *name, int inside);

/* Makes the live file of a dead client of that server, without intents. Any process that
 * looks for dead ones recovers it. */
void livefile_view_make(const char *dir, const char *uuid, const char *server);
/* Waits until it was recovered, which removes the file. */
bool livefile_view_wait_gone(const char *dir, const char *uuid);
bool livefile_view_exists(const char *dir, const char *uuid);
/* Waits until the client has counted so many recoveries. A recovery is counted shortly
 * before its file is removed. */
bool livefile_view_wait_recoveries(rlock_client_t *client, unsigned long count);

#endif
