/* SPDX-License-Identifier: Apache-2.0 */
/* What sentinels reply and publish. Any program may be at their port, and any user of
 * theirs may publish: every field is checked before it is believed or shown. No state.
 * Thread: any. */
#include "net/sentinel.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NUMBER_DIGITS_MAX = 18, SWITCH_WORDS = 5 };

struct word {
    const char *at;
    size_t len;
};

static bool is(struct word word, const char *text)
{
    return word.len == strlen(text) && memcmp(word.at, text, word.len) == 0;
}

static struct word word_at(const struct rlk_reply *reply, size_t i)
{
    struct word word = { "", 0 };
    const char *text = rlk_reply_text_at(reply, i, &word.len);

    word.at = text ? text : "";
    return word;
}

/* -1: not a number. */
static int64_t number(struct word word)
{
    int64_t n = 0;

    if (word.len == 0 || word.len > NUMBER_DIGITS_MAX)
        return -1;
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return -1;
        n = n * 10 + (word.at[i] - '0');
    }
    return n;
}

/* False: not an address. */
static bool take_address(struct word host, struct word port,
                         struct rlk_sentinel_address *ret_address)
{
    int64_t n = number(port);

    if (host.len >= sizeof(ret_address->host) || n < 1 || n > UINT16_MAX)
        return false;
    memcpy(ret_address->host, host.at, host.len);
    ret_address->host[host.len] = '\0';
    ret_address->port = (uint16_t)n;
    return strlen(ret_address->host) == host.len && rlk_url_is_host(ret_address->host);
}

/* Whether the comma-separated flags have this one. */
static bool has_flag(struct word flags, const char *flag)
{
    while (flags.len > 0) {
        const char *comma = memchr(flags.at, ',', flags.len);
        struct word first = { flags.at, comma ? (size_t)(comma - flags.at) : flags.len };
        if (is(first, flag))
            return true;
        flags.at += first.len + (comma != NULL);
        flags.len -= first.len + (comma != NULL);
    }
    return false;
}

/* ---- errors */

static bool begins(const char *text, const char *with)
{
    return strncasecmp(text, with, strlen(with)) == 0;
}

static void show(char ret_text[RLK_SENTINEL_TEXT_SIZE], const char *text, size_t len)
{
    size_t i;

    for (i = 0; i < len && i + 1 < RLK_SENTINEL_TEXT_SIZE; i++)
        ret_text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    ret_text[i] = '\0';
}

static void take_error(struct rlk_sentinel_answer *answer, const struct rlk_reply *reply)
{
    size_t len;
    const char *text = rlk_reply_string(reply, &len);

    show(answer->text, text, len);
    if (begins(text, "ERR No such master"))
        answer->said = RLK_SENTINEL_UNKNOWN;
    else if (begins(text, "NOAUTH") || begins(text, "NOPERM"))
        answer->said = RLK_SENTINEL_DENIED;
    else if (begins(text, "ERR unknown command"))
        answer->said = RLK_SENTINEL_STRANGE;
    else
        answer->said = RLK_SENTINEL_SILENT;
    if (answer->said == RLK_SENTINEL_STRANGE)
        snprintf(answer->text, sizeof(answer->text), "it is no sentinel");
}

/* ---- SENTINEL MASTER */

/* The fields that count; an array of names and values. */
struct fields {
    struct word host, port, flags, epoch, replicas, others, quorum;
};

static void find_fields(const struct rlk_reply *reply, struct fields *f)
{
    const struct {
        const char *name;
        struct word *word;
    } known[] = {
        { "ip", &f->host },
        { "port", &f->port },
        { "flags", &f->flags },
        { "config-epoch", &f->epoch },
        { "num-slaves", &f->replicas },
        { "num-other-sentinels", &f->others },
        { "quorum", &f->quorum },
    };

    for (size_t i = 0; i + 1 < rlk_reply_count(reply); i += 2)
        for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
            if (is(word_at(reply, i), known[j].name))
                *known[j].word = word_at(reply, i + 1);
}

void rlk_sentinel_reply_master(struct rlk_sentinel_answer *answer,
                               const struct rlk_reply *reply)
{
    struct fields f = { .host = { "", 0 } };

    if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        take_error(answer, reply);
        return;
    }
    find_fields(reply, &f);
    answer->said = RLK_SENTINEL_STRANGE;
    answer->master.epoch = number(f.epoch);
    answer->quorum = number(f.quorum);
    answer->replicas = number(f.replicas);
    answer->sentinels = number(f.others) + 1;
    if (answer->master.epoch < 0 ||
        !take_address(f.host, f.port, &answer->master.address)) {
        snprintf(answer->text, sizeof(answer->text),
                 "unexpected reply to SENTINEL MASTER");
        return;
    }
    /* rule: P7 */
    answer->settles = has_flag(f.flags, "master") && has_flag(f.flags, "disconnected") &&
                      !has_flag(f.flags, "s_down") && !has_flag(f.flags, "o_down");
    answer->in_failover = has_flag(f.flags, "failover_in_progress");
    bool good = has_flag(f.flags, "master") && !has_flag(f.flags, "s_down") &&
                !has_flag(f.flags, "o_down") && !has_flag(f.flags, "disconnected");
    answer->said = good ? RLK_SENTINEL_FOUND : RLK_SENTINEL_DOWN;
    show(answer->text, f.flags.at ? f.flags.at : "", f.flags.len);
}

/* rule: P7 */
/* Where the addresses differ, the flags are those of the old master. */
void rlk_sentinel_reply_address(struct rlk_sentinel_answer *answer,
                                const struct rlk_reply *reply)
{
    struct rlk_sentinel_address address;

    if (answer->said != RLK_SENTINEL_FOUND && answer->said != RLK_SENTINEL_DOWN)
        return;
    if (take_address(word_at(reply, 0), word_at(reply, 1), &address)) {
        if (!rlk_sentinel_same(&address, &answer->master.address))
            answer->said = RLK_SENTINEL_FOUND;
        answer->master.address = address;
    } else if (answer->in_failover) { /* it refuses to say how far it is */
        answer->said = RLK_SENTINEL_DOWN;
    }
}

/* ---- SENTINEL SENTINELS */

size_t
rlk_sentinel_reply_others(const struct rlk_reply *reply,
                          struct rlk_sentinel_address list[RLK_SENTINEL_LEARNED_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < rlk_reply_count(reply); i++) {
        struct fields f = { .host = { "", 0 } };
        if (count == RLK_SENTINEL_LEARNED_MAX)
            break;
        find_fields(rlk_reply_at(reply, i), &f);
        if (has_flag(f.flags, "sentinel") && take_address(f.host, f.port, &list[count]))
            count++;
    }
    return count;
}

/* ---- +switch-master: <master> <old ip> <old port> <new ip> <new port> */

bool rlk_sentinel_reply_switch(const char *text, size_t len, const char *master,
                               struct rlk_sentinel_address *ret_address)
{
    struct word words[SWITCH_WORDS];
    size_t count = 0, at = 0;

    while (count < SWITCH_WORDS && at < len) {
        const char *blank = memchr(text + at, ' ', len - at);
        size_t end = blank ? (size_t)(blank - text) : len;
        words[count++] = (struct word){ text + at, end - at };
        at = end + 1;
    }
    return count == SWITCH_WORDS && at == len + 1 && is(words[0], master) &&
           take_address(words[3], words[4], ret_address);
}
