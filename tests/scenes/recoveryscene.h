/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of deaths (rules G9 to G13): a directory of their own, and workers, of
 * which `v` is killed, while `w` and `x` are those who find it so. Leases are so long
 * that nothing but a burial can end them within a test. On top of scene.h. Thread: a
 * test's main thread.
 */
#ifndef TEST_DEATHSCENE_H
#define TEST_DEATHSCENE_H

#include "scene.h"

enum { DEATH_LEASE_MS = 120000, DEATH_PRESENCE_MS = 30000 /* the most */ };

extern struct worker v, w, x;
extern const char *death_dir;

/* Checked fixtures. */
void death_open(void);
void death_close(void);

/* A worker with the handle "m" of `name`, through the proxy: who is elsewhere is at
 * another server. It waits for answers as long as for its lease. */
void death_start(struct worker *who, const char *name, const char *options);
void death_start_at(struct worker *who, const char *url, const char *name,
                    const char *options);
/* v's client, once v was started. */
extern char death_uuid[RLK_UUID_LEN + 1];
/* A rule about v's requests that name it, or the messages to it. */
#define DEATH_RULE(...) TEST_RULE(scene_proxy, .contains = death_uuid, __VA_ARGS__)
/* v is killed. */
void death_strike(void);
/* Until there are so many files, of which each is a client that is not buried. */
void death_wait_files(int count);
/* The thread t of the worker has got it, or is still at it. */
void death_has_it(struct worker *who);
void death_waits_still(struct worker *who);
/* Its thread t has the lock. */
void death_is_safe(struct worker *who);
/* A client comes and goes; when it has, only so many files are left: it has buried. */
void death_look(int files);
/* The next event OWNER_DIED of the worker; NULL: none has come so far. */
const char *death_event(struct worker *who);

#endif
