/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of mailbox messages, which any user may publish. The fields that it takes
 * lie within the message and are in range; written out again and parsed, they are the
 * same. */
#include "fuzz.h"
#include "net/mailbox.h"
#include "net/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rlk_mail mail, again;

static bool within(const char *at, size_t at_len, const char *text, size_t len)
{
    return at >= text && at_len <= len && (size_t)(at - text) <= len - at_len;
}

static bool equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool digit(const char *text, size_t len, size_t at)
{
    return at < len && text[at] >= '0' && text[at] <= '9';
}

/* Where a number continues after leading zeros. */
static size_t skip_zeros(const char *text, size_t len, size_t at)
{
    bool inside = at > 0 && digit(text, len, at - 1);
    while (!inside && at < len && text[at] == '0' && digit(text, len, at + 1))
        at++;
    return at;
}

/* Whether two texts have the same numbers, and otherwise the same bytes. */
static bool same_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t i = 0, j = 0;
    for (;; i++, j++) {
        i = skip_zeros(a, a_len, i);
        j = skip_zeros(b, b_len, j);
        if (i == a_len || j == b_len)
            return i == a_len && j == b_len;
        if (a[i] != b[j])
            return false;
    }
}

/* An id that is accepted as this client's is in range, and is the same when it is written
 * out. */
static void check_id(const char *text, size_t len)
{
    struct rlk_id id, other;
    char uuid[RLK_UUID_LEN + 1] = "", buf[RLK_ID_SIZE];

    if (len < RLK_UUID_LEN)
        return;
    memcpy(uuid, text, RLK_UUID_LEN);
    if (!rlk_id_parse(&id, uuid, text, len))
        return;
    fuzz_must(((id.letter | 0x20) >= 'a') && (id.letter | 0x20) <= 'z');
    fuzz_must(memchr(id.flags, '\0', sizeof(id.flags)));
    size_t written = rlk_id_write(buf, uuid, &id);
    fuzz_must(written < RLK_ID_SIZE && written == strlen(buf + RLK_UUID_LEN) + 36);
    fuzz_must(same_text(buf, written, text, len));
    fuzz_must(rlk_id_parse(&other, uuid, buf, written) && rlk_id_equal(&id, &other));
}

static char *write_mail(const struct rlk_mail *m, size_t *ret_len)
{
    size_t size = 200 + m->name_len + m->id_len;
    for (size_t i = 0; i < m->grant_count; i++)
        size += m->grants[i].id_len + 24;
    char *text = malloc(size), *at = text;
    if (!text)
        abort();
    if (m->kind == RLK_MAIL_GRANT) {
        at += sprintf(at, "1 grant %u %" PRIu64 " %" PRIu64 " %zu ", m->flags, m->token,
                      m->token_count, m->grant_count);
        for (size_t i = 0; i < m->grant_count; i++) {
            memcpy(at, m->grants[i].id, m->grants[i].id_len);
            at += m->grants[i].id_len;
            at += sprintf(at, " %" PRId64 " ", m->grants[i].ticket);
        }
    } else {
        at += sprintf(at, "1 %s ", m->kind == RLK_MAIL_LOST ? "lost" : "wanted");
        memcpy(at, m->id, m->id_len);
        at += m->id_len;
        *at++ = ' ';
    }
    memcpy(at, m->name, m->name_len);
    *ret_len = (size_t)(at - text) + m->name_len;
    return text;
}

static void check_grants(const char *text, size_t len)
{
    fuzz_must(mail.grant_count >= 1 && mail.grant_count <= RLK_MAIL_GRANTS_MAX);
    fuzz_must(mail.token <= INT64_MAX && mail.token_count <= INT64_MAX);
    for (size_t i = 0; i < mail.grant_count; i++) {
        const struct rlk_mail_grant *grant = &mail.grants[i];
        fuzz_must(grant->id_len > 0 && within(grant->id, grant->id_len, text, len));
        fuzz_must(!memchr(grant->id, ' ', grant->id_len));
        fuzz_must(grant->ticket > 0);
        check_id(grant->id, grant->id_len);
    }
}

static void check_same(void)
{
    fuzz_must(again.kind == mail.kind);
    fuzz_must(equal(again.name, again.name_len, mail.name, mail.name_len));
    if (mail.kind != RLK_MAIL_GRANT) {
        fuzz_must(equal(again.id, again.id_len, mail.id, mail.id_len));
        return;
    }
    fuzz_must(again.flags == mail.flags && again.token == mail.token);
    fuzz_must(again.token_count == mail.token_count);
    fuzz_must(again.grant_count == mail.grant_count);
    for (size_t i = 0; i < mail.grant_count; i++) {
        fuzz_must(equal(again.grants[i].id, again.grants[i].id_len, mail.grants[i].id,
                        mail.grants[i].id_len));
        fuzz_must(again.grants[i].ticket == mail.grants[i].ticket);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size, false);

    check_id(text, size);
    memset(&mail, 0xa5, sizeof(mail)); /* as uninitialised memory on a stack */
    mail.grant_count = mail.id_len = 0;
    if (rlk_mailbox_parse(&mail, text, size)) {
        fuzz_must(mail.name_len >= 1 && mail.name_len <= RLOCK_NAME_MAX);
        fuzz_must(mail.name + mail.name_len == text + size && mail.name > text);
        if (mail.kind == RLK_MAIL_GRANT) {
            check_grants(text, size);
        } else {
            fuzz_must(mail.id_len > 0 && within(mail.id, mail.id_len, text, size));
            check_id(mail.id, mail.id_len);
        }
        size_t len;
        char *written = write_mail(&mail, &len);
        fuzz_must(same_text(written, len, text, size));
        fuzz_must(rlk_mailbox_parse(&again, written, len));
        check_same();
        free(written);
    }
    free(text);
    return 0;
}
