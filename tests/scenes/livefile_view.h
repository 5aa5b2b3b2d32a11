/* SPDX-License-Identifier: Apache-2.0 */
/* A client's file in the directory of the crash guard, as others see it. It is read, not
 * mapped: that would give memory to what has none. Thread: one at a time. */
#ifndef TEST_GUARDFILE_H
#define TEST_GUARDFILE_H

#include "crash/livefile.h"
#include "state/intent.h"

#include <rlock.h>

enum { GUARD_UUID_LEN = 36 };

struct guard_file {
    int fd; /* to read */
    char uuid[GUARD_UUID_LEN + 1];
    char head[RLK_LIVEFILE_HEADER + 1];
};

/* The one whose uuid it is; NULL: the only one that there is. Asserts. */
void guard_file_open(struct guard_file *file, const char *dir, const char *uuid);
void guard_file_close(struct guard_file *file);
/* Whether somebody keeps it locked. */
bool guard_file_is_locked(const struct guard_file *file);
/* The rest of the head's line that begins so. Asserts. */
const char *guard_file_line(const struct guard_file *file, const char *key);

/* The i-th slot, from 0; state 0: behind the end, too. */
struct rlk_intent guard_file_slot(const struct guard_file *file, unsigned i);
/* How many slots are in use. */
unsigned guard_file_used(const struct guard_file *file);
/* That of a name. Asserts that there is not more than one; state 0: none. */
struct rlk_intent guard_file_slot_of(const struct guard_file *file, const char *name);
/* `inside` of that; -1: there is none. */
int guard_file_inside(const struct guard_file *file, const char *name);
/* Waits until it is that. */
bool guard_file_wait(const struct guard_file *file, const char *name, int inside);

/* A dead client's, of that server, which never had anything: whoever looks at it buries
 * it. */
void guard_file_make(const char *dir, const char *uuid, const char *server);
/* Waits until it was buried: until there is no such file. */
bool guard_file_wait_gone(const char *dir, const char *uuid);
bool guard_file_exists(const char *dir, const char *uuid);
/* Waits until the client has counted so many burials, each a moment before its file goes.
 */
bool guard_wait_burials(rlock_client_t *client, unsigned long count);

#endif
