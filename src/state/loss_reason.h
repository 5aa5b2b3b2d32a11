/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a lease ended, or may end: found where the hold is, when it happens, and put into
 * words where it is told. What is said is what this process knows: that the server could
 * not be reached, that it refused, that this process itself did not run, or no more than
 * that there was no renewal.
 */
#ifndef RLK_LOSS_REASON_H
#define RLK_LOSS_REASON_H

#include "state/hold.h"

#define RLK_CAUSE_SIZE 160

/* More than the caller knows, who sees that the lease ended, or is at risk. `loss` if
 * there is no more to say. *ret_ms: for how long that is so. Locks: hold the registry's
 * mu. */
enum rlk_loss rlk_loss_reason_of_locked(const struct rlk_hold *hold, enum rlk_loss loss,
                                        int64_t now, int64_t *ret_ms);

/* One line about it; returns buf. */
const char *rlk_loss_reason_write(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                  int64_t ms);
/* The same about a risk, of which so much is left; NONE: the section has ended. */
const char *rlk_loss_reason_write_risk(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                       int64_t ms, int64_t left_ms);

#endif
