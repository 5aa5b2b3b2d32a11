/* SPDX-License-Identifier: Apache-2.0 */
/* A directory on a tmpfs for the run's crash guard ($RLOCK_RUNDIR of the workers). A
 * child removes it when the run has ended, however that was. Thread: the main one, before
 * there are others. */
#ifndef NEM_SHELF_H
#define NEM_SHELF_H

/* Aborts when it cannot be made. */
const char *nem_shelf_open(void);
/* Removes it; waits until that is done. */
void nem_shelf_close(void);

#endif
