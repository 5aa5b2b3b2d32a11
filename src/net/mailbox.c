/* SPDX-License-Identifier: Apache-2.0 */
/* Parses mailbox messages, which may be forged. No state. Thread: any. */
#include "net/mailbox.h"

#include "net/key.h"

#include <string.h>

struct cursor {
    const char *at, *end;
};

/* The next word, which ends at a space. */
static bool word(struct cursor *c, const char **ret_text, size_t *ret_len)
{
    const char *space = memchr(c->at, ' ', (size_t)(c->end - c->at));
    if (!space || space == c->at)
        return false;
    *ret_text = c->at;
    *ret_len = (size_t)(space - c->at);
    c->at = space + 1;
    return true;
}

static bool number(struct cursor *c, uint64_t max, uint64_t *ret_value)
{
    const char *text;
    size_t len;
    uint64_t value = 0;

    if (!word(c, &text, &len))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' ||
            __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return value <= max;
}

static bool is(const char *text, size_t len, const char *literal)
{
    return len == strlen(literal) && memcmp(text, literal, len) == 0;
}

static bool parse_grant(struct cursor *c, struct rlk_mail *mail)
{
    uint64_t flags, count;

    if (!number(c, UINT32_MAX, &flags) || !number(c, INT64_MAX, &mail->token) ||
        !number(c, INT64_MAX, &mail->token_count) ||
        !number(c, RLK_MAIL_GRANTS_MAX, &count) || count == 0)
        return false;
    mail->flags = (unsigned)flags;
    mail->grant_count = (size_t)count;
    for (size_t i = 0; i < mail->grant_count; i++) {
        struct rlk_mail_grant *grant = &mail->grants[i];
        uint64_t ticket;
        if (!word(c, &grant->id, &grant->id_len) || !number(c, INT64_MAX, &ticket) ||
            ticket == 0)
            return false;
        grant->ticket = (int64_t)ticket;
    }
    return true;
}

bool rlk_mailbox_parse(struct rlk_mail *ret_mail, const char *text, size_t len)
{
    struct cursor c = { text, text + len };
    const char *kind;
    size_t kind_len;
    uint64_t version;

    if (!number(&c, UINT64_MAX, &version) || version != 1 || !word(&c, &kind, &kind_len))
        return false;
    if (is(kind, kind_len, "grant")) {
        ret_mail->kind = RLK_MAIL_GRANT;
        if (!parse_grant(&c, ret_mail))
            return false;
    } else if (is(kind, kind_len, "lost") || is(kind, kind_len, "wanted")) {
        ret_mail->kind = kind[0] == 'l' ? RLK_MAIL_LOST : RLK_MAIL_RECALL;
        if (!word(&c, &ret_mail->id, &ret_mail->id_len))
            return false;
    } else {
        return false;
    }
    ret_mail->name = c.at;
    ret_mail->name_len = (size_t)(c.end - c.at);
    return ret_mail->name_len > 0 && ret_mail->name_len <= RLOCK_NAME_MAX;
}
