/* SPDX-License-Identifier: Apache-2.0 */
/* rlock watch: the held locks, live. Thread: main only. */
#include "watch.h"

#include <getopt.h>
#include <unistd.h>

enum { OPT_INTERVAL = CLI_OPT_OWN };

enum { INTERVAL_MS = 1000, INTERVAL_MIN_MS = 100, INTERVAL_MAX_MS = 24 * 3600 * 1000 };

static const char usage[] =
    "Usage: rlock watch [OPTION...] [PATTERN]\n"
    "The locks that are held, live: their holders, and who waits, in order; those\n"
    "whose name matches the glob PATTERN.\n"
    "\n"
    "  --interval DURATION  between two looks: 500ms, 2s (or 2); 1s, at least 100ms;\n"
    "                       longer where looks would take the server more than 5 %\n"
    "                       of its time, as with very many keys and no full name\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "Keys: q or Ctrl-C end it; arrows or j and k, page keys or space and b, Home and\n"
    "End scroll; Ctrl-L redraws.\n"
    "\n"
    "Where stdin or stdout is no terminal, one line for each change, with tabs\n"
    "between time, event, name, type, client. Events: held (at the first look),\n"
    "taken, released, passed (to another process), retaken (by the same one), joined\n"
    "and left (of readers), unreachable (the reason instead of a client), reachable.\n"
    "Changes that end between two looks are not seen.\n"
    "\n"
    "While the server is away, rlock keeps trying; on a terminal it shows for how\n"
    "long the server has not answered. Exit code: 0 after q; 77 when the server "
    "refuses.\n";

static const struct option options[] = {
    { "interval", required_argument, NULL, OPT_INTERVAL }, CLI_COMMON_OPTIONS
};

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    struct watch watch = { .interval_ms = INTERVAL_MS };
    int option, code;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_watch, &server, option))
            watch.interval_ms = (long)cli_duration(
                &cli_watch, "--interval", optarg,
                (struct cli_bounds){ INTERVAL_MIN_MS, INTERVAL_MAX_MS, false });
    watch.pattern = look_word(&cli_watch, argc, argv, NULL);
    cli_have_no_children();
    watch.client = cli_open(&cli_watch, &server, NULL);
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !watch_screen(&watch, &code))
        code = watch_plain(&watch);
    cli_close(watch.client);
    return code;
}

const struct cli_command cli_watch = { "watch", usage, run };
