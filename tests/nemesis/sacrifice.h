/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's use of the sacrificed locks (oplog.h): a thread holds them one after the
 * other, for up to a lease, and waits for them while another process has them. The
 * results are not recorded, because a hostile user may write to the keys. The judged
 * locks have the same client, and so the same connections and threads.
 */
#ifndef NEM_SACRIFICE_H
#define NEM_SACRIFICE_H

#include <rlock.h>

/* Call it once; aborts on failure. */
void nem_sacrifice_start(rlock_client_t *client, long lease_ms);
void nem_sacrifice_begin(void);
/* Returns when the thread neither holds nor requests any of them. */
void nem_sacrifice_rest(void);
/* Only at rest. */
void nem_sacrifice_stop(void);

#endif
