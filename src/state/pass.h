/* SPDX-License-Identifier: Apache-2.0 */
/* The additional state of a hold that threads pass on, or that the process retains. Most
 * holds are simply held, so this state is made when it is first needed. See hold.h. */
#ifndef RLK_PASS_H
#define RLK_PASS_H

#include "base/list.h"

#include <stdatomic.h>
#include <stdint.h>

struct rlk_hold;

/* The state of hand-off, tokens and retention of a hold. Made when the hold is first
 * passed on or retained. Guarded by the registry's mu, but for what is atomic. */
struct rlk_pass {
    struct rlk_hold *hold;
    uint64_t token_end;        /* the last token of the block */
    uint64_t token_more;       /* the first token of the next block; 0: there is none */
    uint16_t token_more_count; /* how many tokens the next block has */
    uint16_t token_spare;      /* with this many left, the server is asked for more */
    int64_t entered_at; /* when the newest section began that the server does not know */
    int64_t retain_ns;  /* RETAINED: for how long after used_at the process retains the
                           hold; 0: a woken thread is on its way to it */
    struct rlk_list residents; /* holders of threads that may enter by the fast path */
    struct rlk_list fastpath_link; /* in the registry's fastpaths while the fast path is
                                      open; or in its free_passes */
    _Atomic uint64_t fastpath;     /* the word of fastpath.h */
    _Atomic uint32_t *_Atomic inside; /* robust: the word of the intent table (intent.h);
                                         or NULL */
    _Atomic int64_t used_at;          /* RETAINED: when the last thread left */
};

/* Shared empty hand-off state: `hold->pass` points here until the hold is first passed
 * on. Read-only. */
extern const struct rlk_pass rlk_hold_no_pass;

#endif
