/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hash slots of a cluster a walk has looked at, so that no listing is incomplete
 * without saying so. A walk goes to all masters. After each one it asks this master who
 * has the hash slots: where the answer is not what the walk has assumed, because a
 * replica was promoted or a hash slot has moved meanwhile, the next round looks at these
 * hash slots again, where they are then. So does it at those of a master that does not
 * answer, until the command timeout has passed. Thread: the caller's. Blocks: network,
 * for the requests.
 */
#ifndef RLK_LISTING_COVER_H
#define RLK_LISTING_COVER_H

#include "client/masters.h"

struct rlk_listing_cover;

/* NULL: out of memory. */
struct rlk_listing_cover *rlk_listing_cover_create(struct rlock_client *client);
void rlk_listing_cover_free(struct rlk_listing_cover *cover);

/* Begins a round. Returns 0, or the code for the caller, with the thread's message. */
int rlk_listing_cover_begin(struct rlk_listing_cover *cover);
/* The next master to look at; NULL: the round is over. */
struct rlk_target *rlk_listing_cover_next(struct rlk_listing_cover *cover);
/* Whether a lock that was found there is to be reported: its hash slot was not looked at
 * in an earlier round. */
bool rlk_listing_cover_wants(const struct rlk_listing_cover *cover, const char *name,
                             size_t name_len);
/* All keys of that master were looked at: asks it who has the hash slots. Returns 0, or
 * the code for the caller, with the thread's message. */
int rlk_listing_cover_check(struct rlk_listing_cover *cover);
/* That master did not answer; the thread's message says why. */
void rlk_listing_cover_missed(struct rlk_listing_cover *cover);
/* Something could not be reached. Returns whether there is time for another try. */
bool rlk_listing_cover_may_wait(struct rlk_listing_cover *cover);
/* Ends the round. *ret_again: another one is needed, after a pause. Returns 0, or
 * ENOTCONN with the thread's message: some hash slots cannot be looked at. */
int rlk_listing_cover_end(struct rlk_listing_cover *cover, bool *ret_again);

#endif
