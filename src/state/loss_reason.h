/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a lease ended, or may end. The reason is found when the lease ends, under the
 * registry's mutex, and put into words when it is reported. It is what this process
 * knows: the server could not be reached, or it refused, or this process did not run; or
 * no more than that no renewal was confirmed.
 */
#ifndef RLK_LOSS_REASON_H
#define RLK_LOSS_REASON_H

#include "state/hold.h"

#define RLK_CAUSE_SIZE 160

/* The reason, for a caller that sees only that the lease ended or is at risk. `loss` if
 * no more is known. *ret_ms: for how long the reason has applied. Locks: hold the
 * registry's mu. */
enum rlk_loss rlk_loss_reason_of_locked(const struct rlk_hold *hold, enum rlk_loss loss,
                                        int64_t now, int64_t *ret_ms);

/* Writes the reason in one line; returns buf. */
const char *rlk_loss_reason_write(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                  int64_t ms);
/* The same for a lease at risk, of which left_ms are left; NONE: the section has ended.
 */
const char *rlk_loss_reason_write_risk(char buf[RLK_CAUSE_SIZE], enum rlk_loss loss,
                                       int64_t ms, int64_t left_ms);

#endif
