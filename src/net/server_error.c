/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of refusals; see server_error.h.
 *
 * A server reports the error of a command inside a script in a form that depends on its
 * version (`forms`, below), and a missing right to run the command in another one:
 *   6.x, 7.0   The user executing the script can't run this command or subcommand
 *   7.2        ACL failure in script: User u has no permissions to run the 'hset' command
 * Only the last one names the command, and none names the key or the channel. But all
 * name the line, and the library knows the scripts: it reads the command from their text.
 */
#include "net/server_error.h"

#include "base/log.h"
#include "net/script.h"

#include <stdio.h>
#include <string.h>

static const char wrong_type[] = "WRONGTYPE ";
static const char whole_scripts[] = "Write commands not allowed after non deterministic";

/* The forms of errors inside a script, one for each range of versions: the beginning ("":
 * the command's text comes first, else it comes last), the text before the script's hash
 * (NULL: no hash), and the text before the line number. From the servers' sources:
 *   6.x   evalGenericCommand and luaPushError in src/scripting.c of 6.0.9 and 6.2.14; as
 * in the issues laravel/horizon#1068 (3.2), kkoomen/nestjs-throttler-storage-redis#1096
 *   7.0   luaCallFunction in src/script_lua.c of Redis 7.0.15, 7.2.5, 7.4.1, Valkey 8.0.1
 *   9.1   luaCallFunction in src/modules/lua/script_lua.c of Valkey
 */
static const struct form {
    const char *begin, *hash, *line;
} forms[] = {
    { "ERR Error running script (call to f_", "", "@user_script:" },
    { "", " script: ", ", on @user_script:" },
    { "", NULL, " script: on @user_script:" },
};
enum { FORM_COUNT = sizeof(forms) / sizeof(forms[0]), HASH_LEN = 40 };

enum { WHAT_SIZE = 100, LINE_MAX_DIGITS = 5 };

struct words {
    const char *at, *end;
};

static const char *find(struct words in, const char *what)
{
    return memmem(in.at, (size_t)(in.end - in.at), what, strlen(what));
}

/* The text after `mark`. False: no mark. */
static bool behind(struct words in, const char *mark, struct words *ret_rest)
{
    const char *at = find(in, mark);
    if (!at)
        return false;
    *ret_rest = (struct words){ at + strlen(mark), in.end };
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '|' || c == '_' || c == '-';
}

static void append(char *buf, size_t size, const char *text, size_t len)
{
    size_t at = strlen(buf);
    for (size_t i = 0; i < len && at + 1 < size; i++)
        buf[at++] = text[i];
    buf[at] = '\0';
}

static void append_upper(char *buf, size_t size, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 'a' + 'A') : text[i];
        append(buf, size, &c, 1);
    }
}

/* ---- the place of the error */

static bool starts(struct words text, const char *with)
{
    size_t len = strlen(with);
    return (size_t)(text.end - text.at) >= len && memcmp(text.at, with, len) == 0;
}

/* Whether the text has this form. ret_hash: the text from the script's hash on; empty
 * if the form has none. */
static bool is_form(const struct form *form, struct words text, struct words *ret_hash)
{
    const char *line = find(text, form->line), *hash = text.at + strlen(form->begin);

    *ret_hash = (struct words){ text.end, text.end };
    if (!line || !starts(text, form->begin))
        return false;
    if (!form->hash)
        return true;
    size_t mark = strlen(form->hash);
    if (mark > 0 && (size_t)(line - text.at) >= mark + HASH_LEN)
        hash = line - HASH_LEN;
    *ret_hash = (struct words){ hash, text.end };
    return text.end - hash >= HASH_LEN &&
           (mark == 0 || ((size_t)(hash - text.at) >= mark &&
                          memcmp(hash - mark, form->hash, mark) == 0));
}

static const struct form *form_of(struct words text, struct words *ret_hash)
{
    for (int i = 0; i < FORM_COUNT; i++)
        if (is_form(&forms[i], text, ret_hash))
            return &forms[i];
    return NULL;
}

/* The script whose hash is in the text; `sent` if the text has none. NULL: neither. */
static const struct rlk_script *find_script(struct words text,
                                            const struct rlk_script *sent)
{
    struct words hash;
    const struct form *form = form_of(text, &hash);
    if (form && !form->hash)
        return sent;
    for (int i = 0; form && i < RLK_SCRIPT_COUNT; i++)
        if (starts(hash, rlk_scripts[i].sha))
            return &rlk_scripts[i];
    return NULL;
}

/* The text of a command that a script called, as the command would reply by itself:
 * "WRONGTYPE Operation against ..."; the whole text when no script is involved. */
static struct words said(struct words text)
{
    struct words hash, rest;
    const struct form *form = form_of(text, &hash);
    if (form && form->begin[0] == '\0') {
        text.end = form->hash ? hash.at - strlen(form->hash) : find(text, form->line);
    } else if (form) {
        /* "@user_script:7: @user_script: 7: -OOM ...": the second part appears only
         * when the server refuses the command before it runs. */
        while (behind(text, form->line, &rest) && behind(rest, ": ", &rest))
            text = rest;
    }
    if (text.at < text.end && *text.at == '-')
        text.at++;
    return text;
}

/* The line of the script that the text names. False: no line, or no such line. */
static bool find_line(struct words text, const struct rlk_script *script,
                      struct words *ret_line)
{
    struct words rest = text;
    size_t number = 0;
    /* The last one: the first may be where an error was raised again. */
    if (!find(text, "@user_script:"))
        return false;
    while (behind(rest, "@user_script:", &rest))
        ;
    if (rest.at < rest.end && *rest.at == ' ')
        rest.at++;
    for (int n = 0; rest.at < rest.end && *rest.at >= '0' && *rest.at <= '9'; rest.at++)
        if (n++ < LINE_MAX_DIGITS)
            number = number * 10 + (size_t)(*rest.at - '0');
    const char *at = script->text;
    for (size_t i = 1; at && i < number; i++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (!at || number == 0)
        return false;
    *ret_line = (struct words){ at, at + strcspn(at, "\n") };
    return true;
}

/* ---- the refused operation */

/* The commands that a line of a script calls, "HSET or PEXPIRE"; if `with_keys`, each
 * with the names that follow it, "EXISTS(queue, rqueue)". */
static void append_calls(char *buf, size_t size, struct words line, bool with_keys)
{
    for (bool first = true; behind(line, "call('", &line); first = false) {
        const char *end = line.at;
        while (end < line.end && is_word(*end))
            end++;
        if (!first)
            append(buf, size, " or ", 4);
        append(buf, size, line.at, (size_t)(end - line.at));
        if (!with_keys || end + 3 >= line.end)
            continue;
        const char *keys = end + 3; /* after "', " */
        size_t len = strcspn(keys, "()'\n");
        append(buf, size, "(", 1);
        append(buf, size, keys, len);
        append(buf, size, ")", 1);
    }
}

/* A command that the text quotes: "the 'client|kill' command". */
static bool append_quoted(char *buf, size_t size, struct words text)
{
    struct words rest;
    if (!behind(text, "to run the '", &rest))
        return false;
    const char *end = rest.at;
    while (end < rest.end && is_word(*end))
        end++;
    append_upper(buf, size, rest.at, (size_t)(end - rest.at));
    return end > rest.at;
}

static bool is_about_key(struct words text)
{
    return find(text, "at least one of the keys") || find(text, "one of the keys used") ||
           find(text, "access a key") || find(text, "' key");
}

static bool is_about_channel(struct words text)
{
    return find(text, "publish to the channel") || find(text, "of the channels used") ||
           find(text, "access a channel") || find(text, "' channel");
}

bool rlk_server_error_by_acl(const char *text, size_t len)
{
    struct words t = { text, text + len };
    return find(t, "NOPERM") || find(t, "ACL failure in script") ||
           find(t, "can't run this command") ||
           find(t, "can't access at least one of the keys") ||
           find(t, "can't publish to the channel") || find(t, "No permissions to access");
}

bool rlk_server_error_of_key(const char *text, size_t len)
{
    return rlk_server_error_by_acl(text, len) &&
           is_about_key((struct words){ text, text + len });
}

bool rlk_server_error_of_channel(const char *text, size_t len)
{
    struct words t = { text, text + len };
    return rlk_server_error_by_acl(text, len) && !is_about_key(t) && is_about_channel(t);
}

/* The verb of a script, "acquire". Scripts of two types may have the same text. */
static const char *verb(const struct rlk_script *script)
{
    const char *at = strchr(script->name, '_');
    return at ? at + 1 : script->name;
}

/* "HSET in acquire", "a key of EVALSHA". */
static void append_what(char *buf, size_t size, const char *command,
                        const struct rlk_script *sent, struct words text)
{
    const struct rlk_script *script = find_script(text, sent);
    struct words line;
    bool key = is_about_key(text), channel = !key && is_about_channel(text);
    size_t before;

    if (key)
        append(buf, size, "a key of ", 9);
    if (channel)
        append(buf, size, "a channel of ", 13);
    before = strlen(buf);
    if (!key && !channel)
        append_quoted(buf, size, text);
    if (buf[before] == '\0' && script && find_line(text, script, &line))
        append_calls(buf, size, line, key || channel);
    if (buf[before] == '\0')
        append(buf, size, command, strlen(command));
    if (script) {
        append(buf, size, " in ", 4);
        append(buf, size, verb(script), strlen(verb(script)));
    }
}

bool rlk_server_error_of_writes(const char *text, size_t len)
{
    return find((struct words){ text, text + len }, whole_scripts) != NULL;
}

bool rlk_server_error_begins(const char *text, size_t len, const char *code)
{
    struct words t = { text, text + len };
    return starts(t, code) || starts(said(t), code);
}

void rlk_server_error_describe(char *buf, size_t size, const char *command,
                               const struct rlk_script *sent, const char *name,
                               size_t name_len, const char *text, size_t len)
{
    char shown[RLK_LOG_NAME_SIZE], what[WHAT_SIZE] = "";

    buf[0] = '\0';
    if (name) {
        rlk_log_name(shown, sizeof(shown), name, name_len);
        append(buf, size, "lock \"", 6);
        append(buf, size, shown, strlen(shown));
        append(buf, size, "\": ", 3);
    }
    if (rlk_server_error_by_acl(text, len)) {
        append_what(what, sizeof(what), command, sent,
                    (struct words){ text, text + len });
        append(buf, size, "the ACL refuses ", 16);
        append(buf, size, what, strlen(what));
    } else {
        static const char odd[] = "a key of the lock holds foreign data: ";
        static const char elsewhere[] = "a node of a cluster (use redis-cluster://): ";
        static const char whole[] = "the server lets no script write after TIME (set "
                                    "lua-replicate-commands to yes): ";
        if (name && rlk_server_error_begins(text, len, wrong_type))
            append(buf, size, odd, sizeof(odd) - 1);
        if (rlk_server_error_begins(text, len, "MOVED ") ||
            rlk_server_error_begins(text, len, "ASK "))
            append(buf, size, elsewhere, sizeof(elsewhere) - 1);
        if (rlk_server_error_of_writes(text, len))
            append(buf, size, whole, sizeof(whole) - 1);
        append(buf, size, command, strlen(command));
    }
    append(buf, size, ": ", 2);
    for (size_t i = 0; i < len && i < 200; i++) {
        char c = text[i] >= ' ' && text[i] <= '~' ? text[i] : '_';
        append(buf, size, &c, 1);
    }
}
