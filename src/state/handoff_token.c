/* SPDX-License-Identifier: Apache-2.0 */
/* Fencing tokens of a hold that threads pass on: each section has a token of its own
 * (H11). The first one is that of the grant; for others the server gives blocks when it
 * is asked. See handoff.h. Thread: any. Locks: hold the registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "state/registry.h"

#include <assert.h>

bool rlk_handoff_has_token(const struct rlk_hold *hold)
{
    return !rlk_hold_is_fenced(hold) || hold->token < rlk_hold_token_end(hold) ||
           hold->pass->token_more != 0;
}

/* rule: H11 */
/* Nobody is inside, and has_token. The next section's token is the one after hold->token.
 * A block that is not full says that they are used as fast as the server's clock goes on:
 * then two who ask share what there is, and who unlocks is the one who needs it.
 */
void rlk_handoff_ready_token(struct rlk_hold *hold)
{
    if (!rlk_hold_is_fenced(hold) || hold->token < hold->pass->token_end)
        return;
    assert(hold->pass->token_more != 0);
    hold->token = hold->pass->token_more - 1;
    hold->pass->token_end = hold->token + hold->pass->token_more_count;
    hold->pass->token_more = 0;
    hold->pass->token_spare =
        hold->pass->token_more_count == RLK_TOKEN_BLOCK ? RLK_TOKEN_BLOCK / 4 : 0;
}

/* rule: H11 */
/* More are fetched in time, if the block is nearly used. */
void rlk_handoff_fetch_tokens(struct rlk_hold *hold)
{
    if (!rlk_hold_is_fenced(hold) ||
        hold->token + hold->pass->token_spare < hold->pass->token_end)
        return;
    hold->pass->token_spare = 0;
    if (hold->pass->token_more != 0)
        return;
    hold->asks_tokens = hold->asks_others = true;
    rlk_hold_schedule_locked(hold);
}

void rlk_handoff_tokens_locked(struct rlk_hold *hold, const struct rlk_fate *fate,
                               bool asked)
{
    bool heard = hold->token_heard;
    uint64_t first = fate->token;
    unsigned count = fate->token_count;

    /* rule: T12, H11 */
    if (asked)
        hold->asks_tokens = false;
    /* a writer who reads now keeps the token of his section, which the server was told;
     * an answer may be from before that */
    if (first == 0 || (hold->reading && hold->id.letter == 'W'))
        return;
    hold->token_heard = false;
    if (!rlk_hold_has_block(hold) || (heard && count == 0)) {
        /* over that of a message (T12), which no section but this one can have used: none
         * follows before an answer has given more */
        hold->token = first;
        if (hold->pass != &rlk_hold_no_pass)
            hold->pass->token_end = first;
    } else if (count > 0 && first > rlk_hold_token_end(hold) &&
               first > hold->pass->token_more && rlk_hold_pass_locked(hold)) {
        hold->pass->token_more = first; /* else it is late */
        hold->pass->token_more_count = (uint16_t)count;
    }
}
