/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/*
 * How the library explains refusals by an ACL: the texts of Redis 6.0 to 8 and of Valkey,
 * word for word, about its scripts. Needs no server.
 */
#include "suite.h"

#include "net/script.h"
#include "net/server_error.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct rlk_script *script_of(enum rlk_script_id id)
{
    return &rlk_scripts[id];
}

/* The number of the first line of a script that contains `what`, from 1. */
static int line_of(const struct rlk_script *script, const char *what)
{
    const char *at = strstr(script->text, what);
    int line = 1;
    ck_assert_ptr_nonnull(at);
    for (const char *p = script->text; p < at; p++)
        line += *p == '\n';
    return line;
}

/* %s: the hash, %d: the line. */
static const struct sample {
    const char *text, *call, *wanted;
} inner[] = {
    /* 6.0, 6.2 */
    { "ERR Error running script (call to f_%s): @user_script:%d: @user_script: %d: The "
      "user executing the script can't run this command or subcommand",
      "call('HSET', N, id, '1', 'mode', 'rlock:mutex', 'since',",
      "the ACL refuses HSET in acquire: ERR" },
    { "ERR Error running script (call to f_%s): @user_script:%d: @user_script: %d: The "
      "user executing the script can't access at least one of the keys mentioned in the "
      "command arguments",
      "call('EXISTS', N",
      "the ACL refuses a key of EXISTS(N, queue, rqueue, cancelled, dirty) in" },
    { "ERR Error running script (call to f_%s): @user_script:%d: @user_script: %d: The "
      "user executing the script can't publish to the channel mentioned in the command",
      "= call('PTTL', N", "the ACL refuses a channel of PTTL(N) in acquire" },
    /* 7.0 */
    { "ERR The user executing the script can't run this command or subcommand script: "
      "%s, on @user_script:%d.",
      "call('TIME'", "the ACL refuses TIME in acquire: ERR" },
    { "ERR The user executing the script can't access at least one of the keys mentioned "
      "in the command arguments script: %s, on @user_script:%d.",
      "= call('PTTL', N", "the ACL refuses a key of PTTL(N) in acquire" },
    /* 7.2 and later, Valkey */
    { "ERR ACL failure in script: User worker has no permissions to run the 'pexpire' "
      "command script: %s, on @user_script:%d.",
      "call('PEXPIRE', N", "the ACL refuses PEXPIRE in acquire: ERR" },
    { "ERR ACL failure in script: No permissions to access a key script: %s, on "
      "@user_script:%d.",
      "= call('PTTL', N", "the ACL refuses a key of PTTL(N) in acquire" },
    { "ERR ACL failure in script: User worker has no permissions to access the 'x' "
      "key script: %s, on @user_script:%d.",
      "= call('PTTL', N", "the ACL refuses a key of PTTL(N) in acquire" },
    /* Valkey 9.1: without the hash, which this sample does not need */
    { "ERR ACL failure in script: User worker has no permissions to run the 'pexpire' "
      "command%.0s script: on @user_script:%d.",
      "call('PEXPIRE', N", "the ACL refuses PEXPIRE in acquire: ERR" },
    { "ERR ACL failure in script: No permissions to access a key%.0s script: on "
      "@user_script:%d.",
      "= call('PTTL', N", "the ACL refuses a key of PTTL(N) in acquire" },
};

START_TEST(a_refusal_inside_a_script_names_the_command_and_the_lock)
{
    const struct sample *s = &inner[_i];
    const struct rlk_script *script = script_of(RLK_MUTEX_ACQUIRE);
    char text[400], said[RLK_SERVER_ERROR_SIZE];
    int line = line_of(script, s->call), code = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), s->text, script->sha, line, line);
#pragma GCC diagnostic pop
    rlk_server_error_describe(said, sizeof(said), "EVALSHA", script, "jobs\n", 5, text,
                              strlen(text));
    ck_assert_msg(strstr(said, s->wanted), "%s", said);
    ck_assert_msg(strstr(said, "lock \"jobs\\x0a\": "), "%s", said);
    ck_assert_int_eq(rlk_script_sort_error(text, strlen(text), &code), RLK_REFUSED);
    ck_assert_int_eq(code, EACCES);
}
END_TEST

static const struct {
    const char *text, *wanted;
} outer[] = {
    /* 6.0, 6.2 */
    { "NOPERM this user has no permissions to run the 'evalsha' command or its "
      "subcommand",
      "the ACL refuses EVALSHA: NOPERM" },
    { "NOPERM this user has no permissions to access one of the keys used as arguments",
      "the ACL refuses a key of SENT: NOPERM" },
    { "NOPERM this user has no permissions to access one of the channels used as "
      "arguments",
      "the ACL refuses a channel of SENT: NOPERM" },
    /* 7.0 */
    { "NOPERM this user has no permissions to run the 'client|list' command",
      "the ACL refuses CLIENT|LIST: NOPERM" },
    /* 7.2 and later, Valkey */
    { "NOPERM User worker has no permissions to run the 'scan' command",
      "the ACL refuses SCAN: NOPERM" },
    { "NOPERM No permissions to access a key", "the ACL refuses a key of SENT: NOPERM" },
    { "NOPERM No permissions to access a channel",
      "the ACL refuses a channel of SENT: NOPERM" },
};

START_TEST(a_refusal_of_a_command_names_it)
{
    char said[RLK_SERVER_ERROR_SIZE];
    int code = 0;
    const char *text = outer[_i].text;
    rlk_server_error_describe(said, sizeof(said), "SENT", NULL, NULL, 0, text,
                              strlen(text));
    ck_assert_msg(strstr(said, outer[_i].wanted) == said, "%s", said);
    ck_assert_int_eq(rlk_script_sort_error(text, strlen(text), &code), RLK_REFUSED);
    ck_assert_int_eq(code, EACCES);
}
END_TEST

/* The error of a command that a script called, by versions (src/net/server_error.c names
 * the sources). Code and words are those of the command alone. */
static const struct {
    const char *form; /* its parts: the command's text, hash and line; or hash, line and
                         the command's text */
    bool said_last;
} forms[] = {
    { "ERR Error running script (call to f_%s): @user_script:%d: %s", true },
    { "ERR Error running script (call to f_%s): @user_script:%d: @user_script: 1: %s",
      true },
    { "ERR Error running script (call to f_%s): @user_script:%d: @user_script: 1: -%s",
      true },
    { "%s script: %s, on @user_script:%d.", false },
    { "%s%.0s script: on @user_script:%d.", false },
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static const struct {
    const char *text;
    enum rlk_outcome outcome;
    int code;
    const char *wanted;
} said_inside[] = {
    { "WRONGTYPE Operation against a key holding the wrong kind of value", RLK_REFUSED,
      EPROTO, "lock \"N\": a key of the lock holds foreign data: EVALSHA: " },
    { "OOM command not allowed when used memory > 'maxmemory'.", RLK_RETRY, ENOTCONN,
      "lock \"N\": EVALSHA: " },
    { "READONLY You can't write against a read only replica.", RLK_RETRY, ENOTCONN,
      "lock \"N\": EVALSHA: " },
    { "NOREPLICAS Not enough good replicas to write.", RLK_RETRY, ENOTCONN,
      "lock \"N\": EVALSHA: " },
    { "MISCONF Errors writing to the AOF file: No space left on device", RLK_RETRY,
      ENOTCONN, "lock \"N\": EVALSHA: " },
    { "ERR value is not an integer or out of range", RLK_REFUSED, EPROTO,
      "lock \"N\": EVALSHA: " },
    { "Write commands not allowed after non deterministic commands. Call "
      "redis.replicate_commands() at the start of your script in order to switch to "
      "single commands replication mode.",
      RLK_REFUSED, EPROTO,
      "lock \"N\": the server lets no script write after TIME (set "
      "lua-replicate-commands to yes): EVALSHA: " },
};
enum { SAID = sizeof(said_inside) / sizeof(said_inside[0]) };

START_TEST(what_a_command_inside_a_script_said_is_understood_as_by_itself)
{
    const struct rlk_script *script = script_of(RLK_FAIR_RELEASE);
    for (int f = -1; f < FORMS; f++) {
        char text[600], said[RLK_SERVER_ERROR_SIZE];
        int code = 0;
        const char *inside = said_inside[_i].text;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (f < 0)
            snprintf(text, sizeof(text), "%s", inside);
        else if (forms[f].said_last)
            snprintf(text, sizeof(text), forms[f].form, script->sha, 3, inside);
        else
            snprintf(text, sizeof(text), forms[f].form, inside, script->sha, 3);
#pragma GCC diagnostic pop
        ck_assert_int_eq(rlk_script_sort_error(text, strlen(text), &code),
                         said_inside[_i].outcome);
        ck_assert_int_eq(code, said_inside[_i].code);
        rlk_server_error_describe(said, sizeof(said), "EVALSHA", script, "N", 1, text,
                                  strlen(text));
        ck_assert_msg(strstr(said, said_inside[_i].wanted) == said, "%s", said);
    }
}
END_TEST

/* A value that quotes such a word is no such code. */
START_TEST(word_inside_a_text_is_no_code)
{
    static const char text[] =
        "ERR Error running script (call to f_%s): no WRONGTYPE Operation";
    char said[RLK_SERVER_ERROR_SIZE];
    rlk_server_error_describe(said, sizeof(said), "EVALSHA", NULL, "N", 1, text,
                              sizeof(text) - 1);
    ck_assert_ptr_null(strstr(said, "no lock"));
}
END_TEST

START_TEST(every_line_of_every_script_is_found)
{
    /* also the last one, and one that does not exist */
    for (int i = 0; i < RLK_SCRIPT_COUNT; i++) {
        int lines = 1;
        for (const char *p = rlk_scripts[i].text; *p; p++)
            lines += *p == '\n';
        for (int line = 0; line <= lines + 1; line++) {
            char text[200], said[RLK_SERVER_ERROR_SIZE];
            snprintf(text, sizeof(text),
                     "ERR ACL failure in script: No permissions to access a key "
                     "script: %s, on @user_script:%d.",
                     rlk_scripts[i].sha, line);
            rlk_server_error_describe(said, sizeof(said), "EVALSHA", NULL, "N", 1, text,
                                      strlen(text));
            const char *verb = strchr(rlk_scripts[i].name, '_') + 1;
            ck_assert_msg(strstr(said, verb), "%s", said);
            ck_assert_msg(strstr(said, "a key of "), "%s", said);
        }
    }
}
END_TEST

START_TEST(no_text_overruns_or_shows_what_is_not_printable)
{
    static const char *const pieces[] = {
        "NOPERM ",
        "to run the '",
        "' command",
        "@user_script:",
        "99999999999999999999",
        "access a key",
        "script: ",
        "\x1b[2J",
        "\r\n",
        "%s%n",
        "call('",
    };
    unsigned seed = 1;
    for (long round = test_count(20000, 1000); round > 0; round--) {
        char text[600] = "", said[RLK_SERVER_ERROR_SIZE];
        size_t len = 0, size = 1 + (size_t)round % RLK_SERVER_ERROR_SIZE;
        for (int i = 0; i < 12; i++) {
            seed = seed * 1103515245u + 12345u;
            unsigned pick = seed >> 16;
            const char *piece = pick % 12 == 11 ? rlk_scripts[pick % RLK_SCRIPT_COUNT].sha
                                                : pieces[pick % 11];
            if (len + strlen(piece) < sizeof(text))
                len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", piece);
        }
        memset(said, 0x7f, sizeof(said));
        rlk_server_error_describe(said, size, "EVALSHA", NULL, "N\x80", 2, text, len);
        ck_assert_uint_lt(strlen(said), size);
        for (const char *p = said; *p; p++)
            ck_assert_msg(*p >= ' ' && *p <= '~', "%s", said);
        if (size < sizeof(said))
            ck_assert_int_eq(said[size], 0x7f);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("server error texts");
    TCase *texts = tcase_create("texts");
    tcase_add_loop_test(texts, a_refusal_inside_a_script_names_the_command_and_the_lock,
                        0, sizeof(inner) / sizeof(inner[0]));
    tcase_add_loop_test(texts, a_refusal_of_a_command_names_it, 0,
                        sizeof(outer) / sizeof(outer[0]));
    tcase_add_loop_test(
        texts, what_a_command_inside_a_script_said_is_understood_as_by_itself, 0, SAID);
    tcase_add_test(texts, word_inside_a_text_is_no_code);
    tcase_add_test(texts, every_line_of_every_script_is_found);
    tcase_add_test(texts, no_text_overruns_or_shows_what_is_not_printable);
    suite_add_tcase(s, texts);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
