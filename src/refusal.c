/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of refusals; see refusal.h.
 *
 * Who may not run a script's inner command is told so in words that differ:
 *   6.x    ERR Error running script (call to f_SHA): @user_script:7: @user_script: 7: The
 *          user executing the script can't run this command or subcommand
 *   7.0    ERR The user executing the script can't run this command or subcommand script:
 *          SHA, on @user_script:7.
 *   7.2    NOPERM ACL failure in script: User u has no permissions to run the 'hset'
 *          command script: SHA, on @user_script:7.
 * Only the last names the command, and none the key or the channel. But all tell script
 * and line, and the scripts are ours: what is called there is read from their text.
 */
#include "refusal.h"

#include "log.h"
#include "script.h"

#include <stdio.h>
#include <string.h>

static const char wrong_type[] = "WRONGTYPE ";

enum { WHAT_SIZE = 100, LINE_MAX_DIGITS = 5 };

struct words {
    const char *at, *end;
};

static const char *find(struct words in, const char *what)
{
    return memmem(in.at, (size_t)(in.end - in.at), what, strlen(what));
}

/* What is behind `mark`; false: it is not there. */
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

/* ---- where */

/* The script whose hash is in the text. */
static const struct rlk_script *find_script(struct words text)
{
    for (int i = 0; i < RLK_SCRIPT_COUNT; i++)
        if (find(text, rlk_scripts[i].sha))
            return &rlk_scripts[i];
    return NULL;
}

/* The line of the script that the text tells of. False: of none, or none that is there.
 */
static bool find_line(struct words text, const struct rlk_script *script,
                      struct words *ret_line)
{
    struct words rest;
    size_t number = 0;
    if (!behind(text, "@user_script:", &rest))
        return false;
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

/* ---- what */

/* The commands that a line of a script calls, "HSET or PEXPIRE", each with the names of
 * what follows it, "EXISTS(queue, rqueue)", if `with_keys`. */
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
        const char *keys = end + 3; /* behind "', " */
        size_t len = strcspn(keys, "()'\n");
        append(buf, size, "(", 1);
        append(buf, size, keys, len);
        append(buf, size, ")", 1);
    }
}

/* A command that the text names between quotes: "the 'client|kill' command". */
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

bool rlk_refusal_by_acl(const char *text, size_t len)
{
    struct words t = { text, text + len };
    return find(t, "NOPERM") || find(t, "ACL failure in script") ||
           find(t, "can't run this command") ||
           find(t, "can't access at least one of the keys") ||
           find(t, "can't publish to the channel") || find(t, "No permissions to access");
}

bool rlk_refusal_of_key(const char *text, size_t len)
{
    return rlk_refusal_by_acl(text, len) &&
           is_about_key((struct words){ text, text + len });
}

bool rlk_refusal_of_channel(const char *text, size_t len)
{
    struct words t = { text, text + len };
    return rlk_refusal_by_acl(text, len) && !is_about_key(t) && is_about_channel(t);
}

/* What a script does, "acquire". Those of two types may be the same text. */
static const char *verb(const struct rlk_script *script)
{
    const char *at = strchr(script->name, '_');
    return at ? at + 1 : script->name;
}

/* "HSET in acquire", "a key of EVALSHA". */
static void append_what(char *buf, size_t size, const char *command, struct words text)
{
    const struct rlk_script *script = find_script(text);
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

void rlk_refusal_describe(char *buf, size_t size, const char *command, const char *name,
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
    if (rlk_refusal_by_acl(text, len)) {
        append_what(what, sizeof(what), command, (struct words){ text, text + len });
        append(buf, size, "the ACL refuses ", 16);
        append(buf, size, what, strlen(what));
    } else {
        static const char odd[] = "a key of it holds something that is no lock: ";
        if (name && len >= sizeof(wrong_type) - 1 &&
            memcmp(text, wrong_type, sizeof(wrong_type) - 1) == 0)
            append(buf, size, odd, sizeof(odd) - 1);
        append(buf, size, command, strlen(command));
    }
    append(buf, size, ": ", 2);
    for (size_t i = 0; i < len && i < 200; i++) {
        char c = text[i] >= ' ' && text[i] <= '~' ? text[i] : '_';
        append(buf, size, &c, 1);
    }
}
