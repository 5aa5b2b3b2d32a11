/* SPDX-License-Identifier: Apache-2.0 */
/* See confirm.h. No state. Thread: any. */
#include "net/confirm.h"

#include "base/clock.h"
#include "net/conn.h"
#include "net/script.h"
#include "net/server_error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void add(struct rlk_confirm_command *command, const char *word)
{
    command->argv[command->argc] = word;
    command->len[command->argc++] = strlen(word);
}

/* rule: P11 */
void rlk_confirm_write(struct rlk_confirm_command *command,
                       const struct rlk_confirm *wait, int64_t ns)
{
    int64_t ms = ns / RLK_NS_PER_MS;

    if (ms < 1) /* 0 would mean for ever */
        ms = 1;
    snprintf(command->replicas, sizeof(command->replicas), "%ld", wait->replicas);
    snprintf(command->ms, sizeof(command->ms), "%lld", (long long)ms);
    command->argc = 0;
    add(command, wait->aof ? "WAITAOF" : "WAIT");
    if (wait->aof)
        add(command, "1");
    add(command, command->replicas);
    add(command, command->ms);
}

/* How many replicas confirmed, and for WAITAOF whether the server's own disk did. False:
 * the reply has another form. */
static bool read_counts(const struct rlk_confirm *wait, const struct rlk_reply *reply,
                        int64_t *ret_own, int64_t *ret_replicas)
{
    *ret_own = 1;
    if (wait->aof)
        return rlk_reply_integer_at(reply, 0, ret_own) &&
               rlk_reply_integer_at(reply, 1, ret_replicas);
    *ret_replicas = rlk_reply_integer(reply);
    return rlk_reply_type(reply) == RLK_REPLY_INTEGER;
}

static bool contains(const char *said, size_t len, const char *part)
{
    return memmem(said, len, part, strlen(part)) != NULL;
}

/* Redis 6.0 to 8 and Valkey say "UNBLOCKED ..., instance state changed ..." to a WAIT
 * under way when they become a replica. An UNBLOCKED by CLIENT UNBLOCK is none of this.
 */
static bool is_by_replica(const char *said, size_t len)
{
    return contains(said, len, "instance state changed") ||
           contains(said, len, "cannot be used with replica") ||
           rlk_server_error_begins(said, len, "READONLY") ||
           rlk_server_error_begins(said, len, "MASTERDOWN");
}

enum rlk_confirm_result rlk_confirm_sort_error(const char *said, size_t len,
                                               int *ret_code)
{
    enum rlk_outcome outcome = rlk_script_sort_error(said, len, ret_code);
    bool replica = is_by_replica(said, len);

    if (!replica && outcome == RLK_REFUSED && *ret_code != ENOTCONN &&
        !rlk_server_error_begins(said, len, "UNBLOCKED"))
        return RLK_CONFIRM_REFUSED;
    *ret_code = ENOTCONN;
    return replica ? RLK_CONFIRM_REPLICA : RLK_CONFIRM_FEW;
}

/* rule: P12 */
enum rlk_confirm_result rlk_confirm_read(const struct rlk_confirm *wait,
                                         const struct rlk_reply *reply, char *text,
                                         size_t text_size, int *ret_code)
{
    const char *command = wait->aof ? "WAITAOF" : "WAIT";
    int64_t own = 0, replicas = 0;
    size_t len;

    if (rlk_reply_type(reply) == RLK_REPLY_ERROR) {
        const char *said = rlk_reply_string(reply, &len);
        rlk_server_error_describe(text, text_size, command, NULL, NULL, 0, said, len);
        return rlk_confirm_sort_error(said, len, ret_code);
    }
    if (!read_counts(wait, reply, &own, &replicas)) {
        *ret_code = EPROTO;
        snprintf(text, text_size, "unexpected reply to %s", command);
        return RLK_CONFIRM_REFUSED;
    }
    if (own >= 1 && replicas >= wait->replicas)
        return RLK_CONFIRM_ENOUGH;
    *ret_code = ENOTCONN;
    if (own < 1)
        snprintf(text, text_size, "the server did not write to its disk in time");
    else
        snprintf(text, text_size, "%lld of %ld replicas confirmed%s in time",
                 (long long)replicas, wait->replicas, wait->aof ? " on disk" : "");
    return RLK_CONFIRM_FEW;
}
