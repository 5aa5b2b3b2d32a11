/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers of a shared structure that take no mutex: epoch-based reclamation. A reader is
 * counted in the epoch in which it began. Who takes an element out of the structure waits
 * for the readers that may have found it, and frees it then. One structure for the whole
 * process.
 */
#ifndef RLK_EPOCH_H
#define RLK_EPOCH_H

struct rlk_epoch {
    unsigned number;
    unsigned generation; /* of the counter */
};

/* Begins a read, which must end within moments and take no mutex. Async-signal-safe.
 * Blocks: no. Thread: any. */
struct rlk_epoch rlk_epoch_enter(void);
/* Does nothing in the child of a signal handler that forked within the read.
 * Async-signal-safe. */
void rlk_epoch_leave(struct rlk_epoch epoch);

/* Waits until all reads that began before this call have ended. Not for two threads at a
 * time, and not within a read, which would wait for itself. Blocks: until then; spins. */
void rlk_epoch_wait(void);

/* In a child: forgets the reads of the parent's threads. */
void rlk_epoch_forget(void);

#endif
