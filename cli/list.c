/* SPDX-License-Identifier: Apache-2.0 */
/* rlock list: the held locks. Thread: main only. */
#include "look.h"
#include "table.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPT_JSON = CLI_OPT_OWN };

static const char usage[] =
    "Usage: rlock list [OPTION...] [PATTERN]\n"
    "The locks that are held, by name; those whose name matches the glob PATTERN.\n"
    "A full name is asked for; a glob, or none, walks all keys of the database.\n"
    "\n"
    "  --json               an array of objects as of rlock show --json, times in ms\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "Not on a terminal: no heading, a tab between fields, nothing cut. The fields:\n"
    "name, type, number of holders, client of the first one, held for, lease left,\n"
    "number of waiters. In names, what is not printable, \" and \\ are \\xNN.\n"
    "\n"
    "Exit code: 0, also when none is held (on a terminal a line says so, else\n"
    "nothing, or []); 69 when the server cannot be reached, 77 when it refuses.\n";

static const struct option options[] = { { "json", no_argument, NULL, OPT_JSON },
                                         CLI_COMMON_OPTIONS };

static void add(struct table *table, const rlock_info_t *lock)
{
    char holders[LOOK_TIME_SIZE], waiters[LOOK_TIME_SIZE], age[LOOK_TIME_SIZE],
        lease[LOOK_TIME_SIZE];
    const rlock_party_t *first = &lock->holders[0];
    char *name = cli_printable(lock->name), *who = look_who(first);

    snprintf(holders, sizeof(holders), "%zu", lock->holder_count);
    snprintf(waiters, sizeof(waiters), "%zu", lock->waiter_count);
    table_add(table,
              (const char *const[]){ name, look_type(lock->type), holders, who,
                                     look_time(first->since_ms, age),
                                     look_lease(first->lease_left_ms, lease), waiters });
    free(name);
    free(who);
}

static void print_table(const struct look_list *list)
{
    enum { COLUMNS = 7, NAME = 1 << 0, CLIENT = 1 << 3 };
    struct table table = { .columns = COLUMNS, .cut = NAME | CLIENT, .clients = CLIENT };
    size_t width = look_columns();

    if (width > 0 && list->count > 0)
        table_add(&table, (const char *const[]){ "NAME", "TYPE", "HOLDERS", "CLIENT",
                                                 "HELD FOR", "LEASE LEFT", "WAITERS" });
    for (size_t i = 0; i < list->count; i++)
        add(&table, list->locks[i]);
    if (width > 0 && list->count == 0)
        puts("none is held");
    else if (width > 0)
        table_print(&table, width, 0);
    else
        table_print_tabs(&table);
    table_free(&table);
}

static void print_json(const struct look_list *list)
{
    struct json json = { .out = stdout };

    json_begin_array(&json, NULL);
    for (size_t i = 0; i < list->count; i++)
        look_json(&json, list->locks[i]);
    json_end_array(&json);
    json_end(&json);
}

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    struct look_list list = { 0 };
    bool as_json = false;
    int option;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_list, &server, option))
            as_json = true; /* the command's only own option */
    const char *pattern = look_word(&cli_list, argc, argv, NULL);
    rlock_client_t *client = cli_open(&cli_list, &server, NULL);
    int rc = look_gather(client, pattern, &list);
    int code = rc == 0 ? CLI_OK : cli_failed(rc, "cannot list the locks");
    /* an incomplete list could be taken for a complete one */
    if (rc == 0 && as_json)
        print_json(&list);
    else if (rc == 0)
        print_table(&list);
    look_free(&list);
    cli_close(client);
    return cli_printed(code);
}

const struct cli_command cli_list = { "list", usage, run };
