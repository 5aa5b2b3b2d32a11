/* SPDX-License-Identifier: Apache-2.0 */
/* rlock doctor: whether this server is fit for locks. Thread: main only. */
#include "cli.h"
#include "look.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    OPT_JSON = CLI_OPT_OWN,
    WIDTH_MIN = 40,
    WIDTH_MAX = 100,
    INDENT = 10, /* of a finding's text */
    EXIT_WARNINGS = 1,
    EXIT_ERRORS = 2
};

static const char usage[] =
    "Usage: rlock doctor [OPTION...]\n"
    "Is this server fit for locks? Its persistence, eviction, replicas, clock, the\n"
    "user's rights and more: what is, what it means, what to do. Changes nothing but\n"
    "one probe key, for 50 ms.\n"
    "\n"
    "  --json               an object, also on failure: server, source of the\n"
    "                       URL, findings (each with grade, topic, text), errors,\n"
    "                       warnings, complete, failure (text or null), exit_code\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "The gravest findings come first:\n"
    "  error    locks do not work here, or are not safe\n"
    "  warning  locks work, but the named trouble may happen\n"
    "  note     to be known\n"
    "  ok       well\n"
    "What the server refuses to tell is a note: as a user with +info and +config|get\n"
    "one sees all. The user's rights are tried out, which its ACL LOG shows.\n"
    "\n"
    "Exit code: 0 ok and notes, 1 warnings, 2 errors; 69 when the server cannot be\n"
    "reached, 76 when it is not Redis (or a proxy that passes on too little), 77 when "
    "it\n"
    "refuses the credentials.\n";

static const struct option options[] = { { "json", no_argument, NULL, OPT_JSON },
                                         CLI_COMMON_OPTIONS };

/* ---- the findings */

enum grade { GRADE_ERROR, GRADE_WARNING, GRADE_NOTE, GRADE_OK, GRADE_COUNT };

static const struct {
    const char *word, *plural, *colour; /* SGR */
    int exit_code;
} grades[GRADE_COUNT] = {
    [GRADE_ERROR] = { "error", "errors", "1;31", EXIT_ERRORS },
    [GRADE_WARNING] = { "warning", "warnings", "1;33", EXIT_WARNINGS },
    [GRADE_NOTE] = { "note", "notes", "36", CLI_OK },
    [GRADE_OK] = { "ok", "ok", "32", CLI_OK },
};

struct finding {
    enum grade grade;
    char *topic, *text;
};

struct findings {
    size_t count;
    struct finding *each;
    size_t graded[GRADE_COUNT];
};

static enum grade grade_of(int severity)
{
    return severity <= LOG_ERR       ? GRADE_ERROR
           : severity == LOG_WARNING ? GRADE_WARNING
           : severity == LOG_NOTICE  ? GRADE_NOTE
                                     : GRADE_OK;
}

/* -1: out of memory. */
static int keep(const rlock_finding_t *finding, void *arg)
{
    struct findings *found = arg;
    struct finding *grown =
        realloc(found->each, (found->count + 1) * sizeof(*found->each));

    if (!grown)
        return -1;
    found->each = grown;
    struct finding *new = &grown[found->count];
    new->grade = grade_of(finding->severity);
    new->topic = strdup(finding->topic);
    new->text = strdup(finding->text);
    found->count++;
    found->graded[new->grade]++;
    return new->topic &&new->text ? 0 : -1;
}

static void forget(struct findings *found)
{
    for (size_t i = 0; i < found->count; i++) {
        free(found->each[i].topic);
        free(found->each[i].text);
    }
    free(found->each);
}

/* Determined by the gravest finding. */
static int exit_code(const struct findings *found)
{
    for (int g = 0; g < GRADE_COUNT; g++)
        if (found->graded[g] > 0)
            return grades[g].exit_code;
    return CLI_OK;
}

/* ---- for people */

/* 0: stdout is not a terminal, and lines are not broken. */
static size_t columns(void)
{
    size_t width = look_columns();
    return width == 0          ? 0
           : width < WIDTH_MIN ? WIDTH_MIN
           : width > WIDTH_MAX ? WIDTH_MAX
                               : width;
}

static bool has_colours(void)
{
    const char *none = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(none && *none) && term && strcmp(term, "dumb") != 0;
}

/* Prints words from column `at` on; further lines are indented. width 0: one line. */
static void print_words(const char *text, size_t at, size_t width)
{
    while (*text) {
        size_t len = strcspn(text, " ");
        if (width > 0 && at > INDENT && at + 1 + len > width) {
            printf("\n%*s", INDENT, "");
            at = INDENT;
        } else if (at > INDENT) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)len, text);
        at += len;
        text += len;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_finding(const struct finding *finding, size_t width, bool colours)
{
    const char *word = grades[finding->grade].word;

    if (colours)
        printf("\033[%sm%-*s\033[0m", grades[finding->grade].colour, INDENT, word);
    else
        printf("%-*s", INDENT, word);
    printf("%s:", finding->topic);
    print_words(finding->text, INDENT + strlen(finding->topic) + 1, width);
}

static void print_sum(const struct findings *found)
{
    const char *between = "";

    for (int g = 0; g < GRADE_COUNT; g++) {
        size_t n = found->graded[g];
        if (n == 0)
            continue;
        printf("%s%zu %s", between, n, n == 1 ? grades[g].word : grades[g].plural);
        between = ", ";
    }
    putchar('\n');
}

static void print(const struct findings *found)
{
    size_t width = columns();
    bool colours = has_colours();

    for (int g = 0; g < GRADE_COUNT; g++)
        for (size_t i = 0; i < found->count; i++)
            if (found->each[i].grade == (enum grade)g)
                print_finding(&found->each[i], width, colours);
    printf("%-*s%s (%s)\n", INDENT, "server", cli_server()->url, cli_server()->source);
    if (width > 0)
        putchar('\n');
    print_sum(found);
}

/* ---- for programs */

static void print_json(const struct findings *found, int rc, int code, const char *error)
{
    struct json json = { .out = stdout };

    json_begin_object(&json, NULL);
    json_string(&json, "server", cli_server()->url);
    json_string(&json, "source", cli_server()->source);
    json_begin_array(&json, "findings");
    for (int g = 0; g < GRADE_COUNT; g++)
        for (size_t i = 0; i < found->count; i++) {
            if (found->each[i].grade != (enum grade)g)
                continue;
            json_begin_object(&json, NULL);
            json_string(&json, "grade", grades[g].word);
            json_string(&json, "topic", found->each[i].topic);
            json_string(&json, "text", found->each[i].text);
            json_end_object(&json);
        }
    json_end_array(&json);
    json_number(&json, "errors", (long long)found->graded[GRADE_ERROR]);
    json_number(&json, "warnings", (long long)found->graded[GRADE_WARNING]);
    json_bool(&json, "complete", rc == 0);
    json_string(&json, "failure", rc == 0 ? NULL : error);
    json_number(&json, "exit_code", code);
    json_end_object(&json);
    json_end(&json);
}

/* ---- the command */

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    struct findings found = { 0 };
    char failure[512] = "";
    bool as_json = false;
    int option;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_doctor, &server, option))
            as_json = true; /* the command's only own option */
    if (optind < argc)
        cli_bad_usage(&cli_doctor, "what is \"%s\"?", argv[optind]);
    rlock_client_t *client = cli_open(&cli_doctor, &server, NULL);
    int rc = rlock_client_diagnose(client, keep, &found);
    if (rc < 0) {
        cli_complain("out of memory");
        exit(CLI_INTERNAL);
    }
    if (rc != 0)
        snprintf(failure, sizeof(failure), "%s", rlock_errmsg());
    int code = rc == 0 ? exit_code(&found) : cli_exit_code(rc);
    if (as_json)
        print_json(&found, rc, code, failure);
    else if (found.count > 0)
        print(&found);
    if (rc != 0)
        cli_complain("cannot check the server: %s", failure);
    forget(&found);
    cli_close(client);
    return cli_printed(code);
}

const struct cli_command cli_doctor = { "doctor", usage, run };
