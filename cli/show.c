/* SPDX-License-Identifier: Apache-2.0 */
/* rlock show: who holds a lock and who waits for it. Thread: main only. */
#include "look.h"
#include "table.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { OPT_JSON = CLI_OPT_OWN, INDENT = 2 };

static const char usage[] =
    "Usage: rlock show [OPTION...] NAME\n"
    "Who holds the lock NAME, and who waits for it, in the order of asking.\n"
    "\n"
    "  --json               one object, times in ms: name, type, token (a string;\n"
    "                       null without fencing), holders and waiters, each with\n"
    "                       owner, client, mode, age_ms, lease_left_ms\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "What is not known is -, in JSON null; so is a lease_left_ms that is \"never\".\n"
    "A waiter's lease is the time until it counts as gone. Bytes that are not UTF-8\n"
    "are \\u00XX in JSON, and name_hex (client_hex, owner_hex) has all bytes then.\n"
    "\n"
    "Exit code: 0; 1 when nobody holds it or waits for it, and nothing is printed;\n"
    "69 when the server cannot be reached, 76 when foreign data lies there, 77 when\n"
    "it refuses.\n";

static const struct option options[] = { { "json", no_argument, NULL, OPT_JSON },
                                         CLI_COMMON_OPTIONS };

static void print_parties(const char *heading, const char *since, const char *lease,
                          const rlock_party_t *parties, size_t count)
{
    enum { COLUMNS = 6, CLIENT = 1 << 1, OWNER = 1 << 5 };
    struct table table = { .columns = COLUMNS, .cut = CLIENT | OWNER, .clients = CLIENT };

    printf("%s %zu\n", heading, count);
    if (count == 0)
        return;
    table_add(&table,
              (const char *const[]){ "#", "CLIENT", "MODE", since, lease, "OWNER" });
    for (size_t i = 0; i < count; i++) {
        char number[LOOK_TIME_SIZE], age[LOOK_TIME_SIZE], left[LOOK_TIME_SIZE];
        const rlock_party_t *party = &parties[i];
        char *client = cli_printable(party->client[0] ? party->client : "-");
        char *owner = cli_printable(party->owner[0] ? party->owner : "-");
        snprintf(number, sizeof(number), "%zu", i + 1);
        table_add(&table,
                  (const char *const[]){ number, client, look_mode(party->mode),
                                         look_time(party->since_ms, age),
                                         look_lease(party->lease_left_ms, left), owner });
        free(client);
        free(owner);
    }
    table_print(&table, look_columns(), INDENT);
    table_free(&table);
}

static void print(const rlock_info_t *lock)
{
    char *name = cli_printable(lock->name);

    printf("name:    %s\ntype:    %s\n", name, look_type(lock->type));
    if (lock->token != 0)
        printf("token:   %llu\n", (unsigned long long)lock->token);
    else
        printf("token:   -\n");
    print_parties("holders:", "HELD FOR", "LEASE LEFT", lock->holders,
                  lock->holder_count);
    print_parties("waiters:", "WAITS FOR", "GONE IN", lock->waiters, lock->waiter_count);
    free(name);
}

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    struct json json = { .out = stdout };
    rlock_info_t *lock = NULL;
    bool as_json = false;
    int option, code = CLI_OK;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_show, &server, option))
            as_json = true; /* the command's only own option */
    const char *name = look_word(&cli_show, argc, argv, "NAME");
    char *shown = cli_printable(name);
    rlock_client_t *client = cli_open(&cli_show, &server, NULL);
    int rc = rlock_inspect(client, name, &lock);
    if (rc == ENOENT) {
        cli_complain("nobody holds \"%s\" or waits for it", shown);
        code = CLI_NO;
    } else if (rc != 0) {
        code = cli_failed(rc, "cannot look at \"%s\"", shown);
    } else if (as_json) {
        look_json(&json, lock);
        json_end(&json);
    } else {
        print(lock);
    }
    rlock_info_free(lock);
    free(shown);
    cli_close(client);
    return cli_printed(code);
}

const struct cli_command cli_show = { "show", usage, run };
