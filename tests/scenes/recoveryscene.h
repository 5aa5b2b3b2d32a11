/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scene for the recovery of dead processes (rules G9 to G13), on top of scene.h: a
 * directory of its own for the live files, and three workers. `v` is killed; `w` and `x`
 * find it dead. Leases are so long that only a recovery ends them within a test. Thread:
 * a test's main thread.
 */
#ifndef TEST_RECOVERYSCENE_H
#define TEST_RECOVERYSCENE_H

#include "scene.h"

enum { RECOVERY_LEASE_MS = 120000, RECOVERY_PRESENCE_MS = 30000 /* the maximum */ };

extern struct worker v, w, x;
extern const char *recovery_dir;

/* Checked fixtures. */
void recovery_open(void);
void recovery_close(void);

/* Starts a worker with the handle "m" of the lock `name`, through the proxy or at the
 * URL. A worker at another URL counts as a client of another server. Its command timeout
 * is as long as its lease. */
void recovery_start(struct worker *who, const char *name, const char *options);
void recovery_start_at(struct worker *who, const char *url, const char *name,
                       const char *options);
/* The uuid of v's client, set when v has started. */
extern char recovery_uuid[RLK_UUID_LEN + 1];
/* A rule of the proxy about requests and messages that contain this uuid. */
#define RECOVERY_RULE(...) TEST_RULE(scene_proxy, .contains = recovery_uuid, __VA_ARGS__)
/* Kills v. */
void recovery_kill_v(void);
/* Waits until there are so many live files, one for each client not yet recovered. */
void recovery_wait_files(int count);
/* Assert that the call of the worker's thread t succeeds; that it still waits. */
void recovery_has_it(struct worker *who);
void recovery_still_waits(struct worker *who);
/* Asserts that the worker's thread t holds the lock, and that it is SAFE. */
void recovery_is_safe(struct worker *who);
/* Opens and closes a client, which recovers dead ones at once. Then exactly `files` live
 * files are left. */
void recovery_look(int files);
/* The next event OWNER_DIED of the worker; NULL: none so far. */
const char *recovery_event(struct worker *who);

#endif
