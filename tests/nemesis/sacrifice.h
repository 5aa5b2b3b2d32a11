/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's use of the locks that are sacrificed (oplog.h): a thread that holds them one
 * after the other, for up to a lease, and waits for them while another process has them.
 * What comes of it is not written down: a hostile user may write to their keys. The locks
 * that are judged have the same client, and so the same connections and threads.
 */
#ifndef NEM_SACRIFICE_H
#define NEM_SACRIFICE_H

#include <rlock.h>

/* Once; aborts on failure. */
void nem_sacrifice_start(rlock_client_t *client, long lease_ms);
void nem_sacrifice_begin(void);
/* Returns when the thread has none of them, and does not want one. */
void nem_sacrifice_rest(void);
/* At rest. */
void nem_sacrifice_stop(void);

#endif
