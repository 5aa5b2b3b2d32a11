/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder of replies of lock scripts. The input's first byte, a digit, says how many
 * ids the expected answer has; the rest is what the server sent, reply after reply. A
 * second decoder in this file says which replies are valid: any other reply is EPROTO and
 * ends the connection.
 */
#include "fuzz.h"
#include "net/script.h"
#include "net/server_error.h"
#include "state/hold.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_LIMIT = 1 << 16 };

#define TIME_MAX_US (INT64_C(1) << 53)
#define TTL_MAX_MS (INT64_C(1) << 40)

/* ---- replies that are valid */

static const redisReply *element(const redisReply *reply, size_t i)
{
    return reply->element[i];
}

static bool integer_in(const redisReply *r, long long min, long long max)
{
    return r->type == REDIS_REPLY_INTEGER && r->integer >= min && r->integer <= max;
}

static bool is_word(const redisReply *r)
{
    static const char words[] = " held queued busy gone late refused shared released "
                                "notmine removed yours unrecoverable ";
    char spaced[24] = " ";
    if (r->type != REDIS_REPLY_STRING || r->len == 0 || r->len > 20 ||
        memchr(r->str, ' ', r->len) || memchr(r->str, '\0', r->len))
        return false;
    memcpy(spaced + 1, r->str, r->len);
    spaced[1 + r->len] = ' ';
    return strstr(words, spaced);
}

static bool is_token(const redisReply *r)
{
    static const char max[] = "18446744073709551615";
    if (r->type != REDIS_REPLY_STRING)
        return false;
    const char *digits = r->str;
    size_t len = r->len;
    for (size_t i = 0; i < len; i++)
        if (digits[i] < '0' || digits[i] > '9')
            return false;
    for (; len > 0 && *digits == '0'; digits++)
        len--;
    return len < 20 || (len == 20 && memcmp(digits, max, 20) <= 0);
}

static bool is_fate(const redisReply *reply, size_t at)
{
    return is_word(element(reply, at)) &&
           integer_in(element(reply, at + 1), -2, INT64_MAX) &&
           integer_in(element(reply, at + 2), 0, TIME_MAX_US) &&
           is_token(element(reply, at + 3));
}

static bool is_answer(const redisReply *reply, size_t fates)
{
    size_t end = 4 + 4 * fates;
    if (reply->type != REDIS_REPLY_ARRAY ||
        (reply->elements != end && reply->elements != end + 1))
        return false;
    bool ok = integer_in(element(reply, 0), 1, TIME_MAX_US) &&
              integer_in(element(reply, 1), -2, INT64_MAX) &&
              integer_in(element(reply, 2), 0, INT32_MAX) &&
              integer_in(element(reply, 3), 0, TIME_MAX_US);
    for (size_t i = 0; ok && i < fates; i++)
        ok = is_fate(reply, 4 + 4 * i);
    return ok &&
           (reply->elements == end || integer_in(element(reply, end), 0, TIME_MAX_US));
}

/* ---- the decoder's results */

static void check_fate(const struct rlk_fate *fate)
{
    bool ours =
        fate->what == RLK_HELD || fate->what == RLK_SHARED || fate->what == RLK_YOURS;
    fuzz_must((int)fate->what >= RLK_HELD && fate->what <= RLK_UNRECOVERABLE);
    fuzz_must(fate->remaining_ms >= (ours ? 0 : -2) && fate->remaining_ms <= TTL_MAX_MS);
    fuzz_must(fate->ticket >= 0 && fate->ticket <= TIME_MAX_US);
    /* a lease's end that is computed from it is no earlier than the request, except for
     * the granularity */
    fuzz_must(!ours || rlk_hold_lease_end(INT64_C(1) << 60, fate->remaining_ms) >=
                           (INT64_C(1) << 60) - 2000000);
}

static void check_done(const struct rlk_answer *answer, const struct rlk_fate *fates,
                       size_t count)
{
    fuzz_must(answer->code == 0);
    fuzz_must(answer->server_us >= 1 && answer->server_us <= TIME_MAX_US);
    fuzz_must(answer->pttl_ms >= -2 && answer->pttl_ms <= TTL_MAX_MS);
    fuzz_must(answer->flags <= INT32_MAX);
    fuzz_must(answer->more.queue >= 0 && answer->more.queue <= TIME_MAX_US);
    fuzz_must(answer->more.rqueue >= 0 && answer->more.rqueue <= TIME_MAX_US);
    fuzz_must(answer->fate_count == count);
    for (size_t i = 0; i < count; i++)
        check_fate(&fates[i]);
    if (count > 0)
        fuzz_must(memcmp(&answer->fate, &fates[0], sizeof(fates[0])) == 0);
}

static bool begins(const redisReply *reply, const char *prefix)
{
    return reply->len >= strlen(prefix) &&
           memcmp(reply->str, prefix, strlen(prefix)) == 0;
}

static void check_error(const struct rlk_conn *conn, const redisReply *reply,
                        const struct rlk_answer *answer)
{
    bool no_master = rlk_server_error_begins(reply->str, reply->len, "READONLY") ||
                     rlk_server_error_begins(reply->str, reply->len, "MASTERDOWN");
    if (begins(reply, "NOSCRIPT")) {
        fuzz_must(answer->outcome == RLK_NOSCRIPT && conn->state == RLK_CONN_READY);
        return;
    }
    fuzz_must((conn->state == RLK_CONN_DEAD) == no_master);
    fuzz_must(answer->outcome == RLK_RETRY || answer->outcome == RLK_REFUSED);
    if (answer->outcome == RLK_RETRY)
        fuzz_must(answer->code == ENOTCONN);
    else
        fuzz_must(answer->code == EACCES || answer->code == EPROTO);
}

/* The caller may want `text_size` bytes of text, or none. */
static void decode(struct rlk_conn *conn, const redisReply *reply, size_t count,
                   size_t text_size)
{
    struct rlk_fate *fates = calloc(count + 1, sizeof(*fates));
    char *text = text_size > 0 ? malloc(text_size) : NULL;
    struct rlk_answer answer;

    if (!fates || (text_size > 0 && !text))
        abort();
    memset(&answer, 0xa5, sizeof(answer));
    memset(&fates[count], 0xa5, sizeof(*fates));
    rlk_script_decode(conn, &rlk_scripts[RLK_MUTEX_ACQUIRE],
                      (const struct rlk_reply *)(const void *)reply, 1, &answer, fates,
                      count, text, text_size);
    if (reply->type == REDIS_REPLY_ERROR) {
        check_error(conn, reply, &answer);
    } else if (is_answer(reply, count)) {
        fuzz_must(answer.outcome == RLK_DONE && conn->state == RLK_CONN_READY);
        check_done(&answer, fates, count);
    } else {
        fuzz_must(answer.outcome == RLK_REFUSED && answer.code == EPROTO);
        fuzz_must(answer.unreadable && conn->state == RLK_CONN_READY);
    }
    if (text) {
        fuzz_must(memchr(text, '\0', text_size) && fuzz_printable(text));
        fuzz_must((answer.outcome == RLK_DONE || answer.outcome == RLK_NOSCRIPT) ==
                  (text[0] == '\0'));
    }
    const struct rlk_fate *beyond = &fates[count];
    for (size_t i = 0; i < sizeof(*beyond); i++)
        fuzz_must(((const uint8_t *)beyond)[i] == 0xa5);
    free(text);
    free(fates);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = { data, size };
    uint8_t first = fuzz_byte(&in);
    size_t count = (first + 2u) % 10; /* for '0' it is 0 */
    struct rlk_conn *conn = fuzz_conn_open(REPLY_LIMIT);
    size_t half = first >= 128 ? in.left / 2 : in.left;

    for (size_t fed = 0; conn->state == RLK_CONN_READY && conn->reader;) {
        struct rlk_reply *reply = NULL;
        enum rlk_parsed parsed = rlk_conn_parse(conn, &reply);
        if (parsed == RLK_PARSED_REPLY) {
            decode(conn, (const redisReply *)(const void *)reply, count,
                   size % 2 ? 200 : 0);
            rlk_reply_free(reply);
        } else if (parsed != RLK_PARSED_PARTIAL || in.left == 0) {
            fuzz_must(parsed == RLK_PARSED_PARTIAL || conn->text[0]);
            break;
        } else {
            size_t len;
            const uint8_t *bytes = fuzz_bytes(&in, fed == 0 ? half : in.left, &len);
            fuzz_conn_feed(conn, bytes, len);
            fed += len + 1;
        }
    }
    fuzz_conn_close(conn);
    return 0;
}
