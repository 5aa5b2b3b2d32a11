/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a client's mailbox. They are hints, in text, with the lock's name last
 * because it may contain any byte:
 * - <version> grant <flags> <first token> <token count> <n> (<id> <ticket>)*n <name>;
 *   token count: how many tokens each id gets; 0: all ids share the first one
 * - <version> lost <id> <name>
 * - <version> wanted <id> <name>
 * The parser ignores unknown versions and kinds, so that versions of the library can mix.
 */
#ifndef RLK_MAILBOX_H
#define RLK_MAILBOX_H

#include "net/script.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RLK_MAIL_GRANTS_MAX = 256 };

/* The longest message of the library: a grant to so many ids, with the longest ids,
 * tickets and names. */
enum {
    RLK_MAIL_SIZE_MAX =
        128 + RLK_MAIL_GRANTS_MAX * (RLK_ID_SIZE + sizeof(" 9223372036854775807 ")) +
        RLOCK_NAME_MAX
};

struct rlk_mail_grant {
    const char *id;
    size_t id_len;
    int64_t ticket;
};

struct rlk_mail {
    enum { RLK_MAIL_GRANT, RLK_MAIL_LOST, RLK_MAIL_RECALL } kind;
    const char *name;
    size_t name_len;
    /* GRANT */
    unsigned flags;
    uint64_t token, token_count;
    size_t grant_count;
    struct rlk_mail_grant grants[RLK_MAIL_GRANTS_MAX];
    /* LOST, RECALL */
    const char *id;
    size_t id_len;
};

/* Points into `text`. False: not a message of this version. */
bool rlk_mailbox_parse(struct rlk_mail *ret_mail, const char *text, size_t len);

#endif
