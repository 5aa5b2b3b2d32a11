/* SPDX-License-Identifier: Apache-2.0 */
/* Fencing tokens of a hold that threads pass on: each section has a token of its own
 * (H11). The first section has the grant's token; for later sections the server gives
 * blocks of tokens when it is asked. See handoff.h. Thread: any. Locks: hold the
 * registry's mu. Blocks: no. */
#include "state/handoff.h"

#include "state/registry.h"

#include <assert.h>

bool rlk_handoff_has_token(const struct rlk_hold *hold)
{
    return !rlk_hold_is_fenced(hold) || hold->token < rlk_hold_token_end(hold) ||
           hold->pass->token_more != 0;
}

/* rule: H11 */
/* A block that is not full shows that tokens are used as fast as the server's clock
 * advances. Then no tokens are asked for ahead of time: the watchdog and an unlocking
 * thread would both ask and share the few tokens, and the thread needs them all. */
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
void rlk_handoff_fetch_tokens(struct rlk_hold *hold)
{
    if (!rlk_hold_is_fenced(hold) ||
        hold->token + hold->pass->token_spare < hold->pass->token_end)
        return;
    hold->pass->token_spare = 0;
    if (hold->pass->token_more != 0)
        return;
    hold->tokens.ask = hold->contention.ask = true;
    rlk_hold_schedule_locked(hold);
}

void rlk_handoff_tokens_locked(struct rlk_hold *hold, const struct rlk_fate *fate,
                               bool asked)
{
    bool heard = hold->tokens.by_message;
    uint64_t first = fate->token;
    unsigned count = fate->token_count;

    /* rule: T12, H11 */
    if (asked)
        hold->tokens.ask = false;
    /* a writer that reads now keeps the token of its section, which the server knows; the
     * answer may be from before the downgrade */
    if (first == 0 || (hold->reading && hold->id.letter == 'W'))
        return;
    hold->tokens.by_message = false;
    if (!rlk_hold_has_block(hold) || (heard && count == 0)) {
        /* replaces a message's token (T12). Only this section can have used that token:
         * no other section begins before an answer has given more tokens */
        hold->token = first;
        if (hold->pass != &rlk_hold_no_pass)
            hold->pass->token_end = first;
    } else if (count > 0 && first > rlk_hold_token_end(hold) &&
               first > hold->pass->token_more && rlk_hold_pass_locked(hold)) {
        hold->pass->token_more = first; /* else the answer is late */
        hold->pass->token_more_count = (uint16_t)count;
    }
}
