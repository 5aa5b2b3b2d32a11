/* SPDX-License-Identifier: Apache-2.0 */
/* rlock release: takes a lock from its holder, after the user has agreed to the holder
 * shown. Thread: main only. */
#include "look.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { OPT_FORCE = CLI_OPT_OWN, OPT_YES };

static const char usage[] =
    "Usage: rlock release --force [OPTION...] NAME\n"
    "Takes the lock NAME from its holder, and hands it to the next waiter.\n"
    "The holder works on until it learns of the loss, at the same time as the next\n"
    "holder: end the holder first if you can.\n"
    "\n"
    "  --force              required: this breaks what the lock guards\n"
    "  --yes                do not ask\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "Shows who holds it and asks on the terminal; again if the lock was taken\n"
    "again before the answer came. Without a terminal, --yes is required. With --yes, "
    "the mark\n"
    "that a dead holder left on a robust lock is cleared, too.\n"
    "\n"
    "Exit code: 0 when it was taken; 1 when nobody holds it, or the answer was no;\n"
    "64 without --force, or without a terminal and --yes; 69 when the server cannot\n"
    "be reached, 76 when foreign data lies there, 77 when it refuses.\n";

static const struct option options[] = { { "force", no_argument, NULL, OPT_FORCE },
                                         { "yes", no_argument, NULL, OPT_YES },
                                         CLI_COMMON_OPTIONS };

/* The lock to release, as it was last seen. */
struct target {
    rlock_client_t *client;
    const char *name, *shown; /* as given, and printable */
    rlock_info_t *lock;       /* NULL: no holder */
    FILE *answers, *terminal; /* NULL: do not ask */
};

/* Returns 0 also when the lock has no holder. */
static int look(struct target *target)
{
    rlock_info_free(target->lock);
    target->lock = NULL;
    int rc = rlock_inspect(target->client, target->name, &target->lock);
    if (rc == 0 && target->lock->holder_count == 0) {
        rlock_info_free(target->lock);
        target->lock = NULL;
    }
    return rc == ENOENT ? 0 : rc;
}

static void tell_holders(const struct target *target, FILE *out)
{
    const rlock_info_t *lock = target->lock;

    fprintf(out, "\"%s\" (%s) is held by\n", target->shown, look_type(lock->type));
    for (size_t i = 0; i < lock->holder_count; i++) {
        char age[LOOK_TIME_SIZE], lease[LOOK_TIME_SIZE];
        const rlock_party_t *holder = &lock->holders[i];
        char *who = look_who(holder);
        fprintf(out, "  %s, %s, for %s, ", who, look_mode(holder->mode),
                look_time(holder->since_ms, age));
        if (holder->lease_left_ms < 0)
            fprintf(out, "its lease never ends\n");
        else
            fprintf(out, "%s of its lease left\n",
                    look_time(holder->lease_left_ms, lease));
        free(who);
    }
    if (lock->waiter_count > 0)
        fprintf(out, "%zu wait%s for it\n", lock->waiter_count,
                lock->waiter_count == 1 ? "s" : "");
}

static bool says_yes(const struct target *target)
{
    char *answer = NULL;
    size_t size = 0;

    /* An answer typed before the question does not count. */
    fflush(target->terminal);
    tcflush(fileno(target->answers), TCIFLUSH);
    fprintf(target->terminal, "Take it from %s? [y/N] ",
            target->lock->holder_count > 1 ? "these holders" : "this holder");
    fflush(target->terminal);
    ssize_t len = getline(&answer, &size, target->answers);
    if (len <= 0)
        fputc('\n',
              target->terminal); /* at end of input the cursor is still in the line */
    else
        answer[strcspn(answer, "\r\n")] = '\0';
    bool yes =
        len > 0 && (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0);
    free(answer);
    return yes;
}

/* Whether each present holder is one of those shown. */
static bool were_shown(const rlock_info_t *shown, const rlock_info_t *now)
{
    for (size_t i = 0; i < now->holder_count; i++)
        if (!look_find(shown, &now->holders[i]))
            return false;
    return true;
}

/* Asks until the holders that the user agreed to are the present holders. *ret_yes:
 * the user agreed. */
static int ask(struct target *target, bool *ret_yes)
{
    for (;;) {
        tell_holders(target, target->terminal);
        *ret_yes = says_yes(target);
        if (!*ret_yes)
            return 0;
        rlock_info_t *shown = target->lock;
        target->lock = NULL;
        int rc = look(target);
        bool is_same = rc == 0 && target->lock && were_shown(shown, target->lock);
        rlock_info_free(shown);
        if (rc != 0 || !target->lock || is_same)
            return rc;
        fputs("Meanwhile the holder has changed.\n", target->terminal);
    }
}

static int nobody(const struct target *target)
{
    cli_complain("nobody holds \"%s\"", target->shown);
    return CLI_NO;
}

static int release(struct target *target)
{
    bool yes = true;
    int rc = look(target);

    if (rc == 0 && target->lock && target->terminal)
        rc = ask(target, &yes);
    if (rc != 0)
        return cli_failed(rc, "cannot look at \"%s\"", target->shown);
    if (!yes) {
        cli_complain("\"%s\" is unchanged", target->shown);
        return CLI_NO;
    }
    if (!target->lock && target->terminal)
        return nobody(target); /* the present holder has not been shown */
    rc = rlock_force_unlock(target->client, target->name);
    if (rc == ENOENT)
        return nobody(target);
    if (rc != 0)
        return cli_failed(rc, "cannot release \"%s\"", target->shown);
    if (target->lock && !target->terminal)
        tell_holders(target, stdout);
    if (target->lock)
        printf("\"%s\" was taken from its holder%s\n", target->shown,
               target->lock->holder_count > 1 ? "s" : "");
    else
        printf("\"%s\" was not held; its mark was cleared\n", target->shown);
    return cli_printed(CLI_OK);
}

/* Opens the controlling terminal, whatever stdin is. False: there is no user to ask. */
static bool open_terminal(struct target *target)
{
    target->answers = fopen("/dev/tty", "re");
    target->terminal = target->answers ? fopen("/dev/tty", "we") : NULL;
    if (!target->terminal && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
        target->answers = stdin;
        target->terminal = stderr;
    }
    return target->terminal != NULL;
}

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    struct target target = { 0 };
    bool force = false, yes = false;
    int option;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_release, &server, option))
            *(option == OPT_FORCE ? &force : &yes) = true;
    target.name = look_word(&cli_release, argc, argv, "NAME");
    if (!force)
        cli_bad_usage(&cli_release, "--force is missing: the holder gets no warning, and "
                                    "works on for a while as if it still held the lock");
    if (!yes && !open_terminal(&target))
        cli_bad_usage(&cli_release, "no terminal for the question: --yes is required");
    char *shown = cli_printable(target.name);
    target.shown = shown;
    target.client = cli_open(&cli_release, &server, NULL);
    int code = release(&target);
    rlock_info_free(target.lock);
    free(shown);
    cli_close(target.client);
    return code;
}

const struct cli_command cli_release = { "release", usage, run };
