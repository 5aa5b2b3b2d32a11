/* SPDX-License-Identifier: Apache-2.0 */
/* A directory on a tmpfs for the crash guard of the run ($RLOCK_RUNDIR of the workers). A
 * child process removes it when the run has ended, in whatever way. Thread: the main one,
 * before it starts others. */
#ifndef NEM_SHELF_H
#define NEM_SHELF_H

/* Aborts when the directory cannot be made. */
const char *nem_shelf_open(void);
/* Removes the directory, and waits until that is done. */
void nem_shelf_close(void);

#endif
