/* SPDX-License-Identifier: Apache-2.0 */
/* rlock run: a command under a lock. This file has the command line and the order of
 * steps. Thread: main only. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    OPT_FAIR = CLI_OPT_OWN,
    OPT_READ,
    OPT_WRITE,
    OPT_WAIT,
    OPT_NO_WAIT,
    OPT_LEASE,
    OPT_ON_LOST,
    OPT_GRACE,
    OPT_LEAVE,
    OPT_NO_TOKEN,
    OPT_MAX_HOLD,
    OPT_MIN_HOLD,
    OPT_FD
};
enum {
    GRACE_MS = 5000,
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
    LEASE_MIN_MS = 50,
    LEASE_MAX_MS = 86400000,
    GRACE_MAX_MS = 86400000, /* a day; poll takes at most an int of ms */
    CODE_MAX = 255,
    FD_MIN = 3,
    FD_MAX = 1048575
};

static const int64_t WAIT_MAX_MS = 315360000000; /* ten years */

static const char usage[] =
    "Usage: rlock run [OPTION...] NAME [--] COMMAND [ARGUMENT...]\n"
    "Runs COMMAND while holding the lock NAME. Gives its exit code; 128+n: signal n.\n"
    "\n"
    "  --fair               in the order of arrival; default: no order\n"
    "  --read, --write      of a read-write lock: beside other readers, or alone\n"
    "  --wait DURATION      for at most DURATION, also without a server\n"
    "  --no-wait            not at all\n"
    "  -E, --conflict-exit-code CODE    when not obtained in time; default 75\n"
    "  -q, --quiet; -v, --verbose    no such message; the server and its source\n"
    "  --no-token           no RLOCK_TOKEN, and no lasting key for it\n"
    "  --lease DURATION     how long others wait when rlock dies\n"
    "  --on-lost term|warn  when the lease is lost: end COMMAND (default), or warn\n"
    "  --grace DURATION     from its SIGTERM to its SIGKILL then; default 5s\n"
    "  --max-hold, --min-hold DURATION    ends COMMAND then; holds at least so long\n"
    "  --leave              hold for COMMAND alone, not for its descendants\n"
    "  --fd N               COMMAND reads there: at-risk MS, safe, lost REASON\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "Durations: 500ms, 60s, 2m, 1h, 1d; a bare number is seconds (not of --lease).\n"
    "Without --wait: the lock as long as it takes, a server for 3 s.\n"
    "COMMAND finds RLOCK_NAME and RLOCK_TOKEN in its environment.\n"
    "Exit code, beside COMMAND's: 64 usage, 69 no server, 74 lease lost, 75 not\n"
    "obtained, 76 not a lock of rlock, 77 refused by the server, 124 held too long,\n"
    "126 cannot be run, 127 not found.\n";

static const struct option long_options[] = {
    { "fair", no_argument, NULL, OPT_FAIR },
    { "read", no_argument, NULL, OPT_READ },
    { "write", no_argument, NULL, OPT_WRITE },
    { "wait", required_argument, NULL, OPT_WAIT },
    { "no-wait", no_argument, NULL, OPT_NO_WAIT },
    { "conflict-exit-code", required_argument, NULL, 'E' },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "on-lost", required_argument, NULL, OPT_ON_LOST },
    { "grace", required_argument, NULL, OPT_GRACE },
    { "leave", no_argument, NULL, OPT_LEAVE },
    { "no-token", no_argument, NULL, OPT_NO_TOKEN },
    { "max-hold", required_argument, NULL, OPT_MAX_HOLD },
    { "min-hold", required_argument, NULL, OPT_MIN_HOLD },
    { "fd", required_argument, NULL, OPT_FD },
    CLI_COMMON_OPTIONS
};

/* ---- the command line */

static int64_t up_to(const char *what, int64_t max_ms)
{
    return cli_duration(&cli_run, what, optarg, (struct cli_bounds){ .max_ms = max_ms });
}

static int64_t hold_bound(const char *what)
{
    return cli_duration(&cli_run, what, optarg,
                        (struct cli_bounds){ 1, WAIT_MAX_MS, false }) *
           NS_PER_MS;
}

static void set_kind(struct run_options *options, enum run_kind kind)
{
    if (options->kind != RUN_MUTEX && options->kind != kind)
        cli_bad_usage(&cli_run, "--fair, --read and --write exclude each other");
    options->kind = kind;
}

static void set_on_lost(struct run_options *options, const char *text)
{
    if (strcmp(text, "term") != 0 && strcmp(text, "warn") != 0)
        cli_bad_usage(&cli_run, "--on-lost: \"%s\" is neither term nor warn", text);
    options->warn = strcmp(text, "warn") == 0;
}

static void set_fd(struct run_options *options, const char *text)
{
    struct rlimit limit;

    options->fd = (int)cli_number(&cli_run, "--fd", text, FD_MIN, FD_MAX);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)options->fd >= limit.rlim_cur)
        cli_bad_usage(&cli_run, "--fd: %s is above the limit of open files (%lu)", text,
                      (unsigned long)limit.rlim_cur);
}

static void set_option(struct run_options *options, int option)
{
    switch (option) {
    case OPT_FAIR:
        set_kind(options, RUN_FAIR);
        break;
    case OPT_READ:
        set_kind(options, RUN_READ);
        break;
    case OPT_WRITE:
        set_kind(options, RUN_WRITE);
        break;
    case OPT_WAIT:
        options->wait_ns = up_to("--wait", WAIT_MAX_MS) * NS_PER_MS;
        break;
    case OPT_NO_WAIT:
        options->no_wait = true;
        break;
    case 'E':
        options->conflict_code =
            (int)cli_number(&cli_run, "--conflict-exit-code", optarg, 0, CODE_MAX);
        break;
    case 'q':
        options->quiet = true;
        break;
    case 'v':
        options->verbose = true;
        break;
    case OPT_LEASE:
        /* with a unit: without it 60 was taken for ms beside a --wait in seconds */
        options->lease_ms =
            (long)cli_duration(&cli_run, "--lease", optarg,
                               (struct cli_bounds){ LEASE_MIN_MS, LEASE_MAX_MS, true });
        break;
    case OPT_ON_LOST:
        set_on_lost(options, optarg);
        break;
    case OPT_GRACE:
        options->grace_ms = (long)up_to("--grace", GRACE_MAX_MS);
        break;
    case OPT_NO_TOKEN:
        options->no_token = true;
        break;
    case OPT_MAX_HOLD:
        options->max_hold_ns = hold_bound("--max-hold");
        break;
    case OPT_MIN_HOLD:
        options->min_hold_ns = hold_bound("--min-hold");
        break;
    case OPT_LEAVE:
        options->leave = true;
        break;
    default:
        set_fd(options, optarg);
        break;
    }
}

static void parse(int argc, char **argv, struct run_options *ret_options,
                  struct cli_server *ret_server)
{
    struct run_options options = {
        .wait_ns = -1, .grace_ms = GRACE_MS, .conflict_code = CLI_BUSY, .fd = -1
    };
    int option;

    /* '+': options after NAME belong to the command */
    while ((option = getopt_long(argc, argv, "+" CLI_COMMON_LETTERS "E:qv", long_options,
                                 NULL)) != -1)
        if (!cli_common_option(&cli_run, ret_server, option))
            set_option(&options, option);
    if (options.no_wait && options.wait_ns >= 0)
        cli_bad_usage(&cli_run, "--wait and --no-wait exclude each other");
    if (options.max_hold_ns > 0 && options.min_hold_ns > options.max_hold_ns)
        cli_bad_usage(&cli_run, "--min-hold is longer than --max-hold");
    if (optind == argc)
        cli_bad_usage(&cli_run, "NAME is missing");
    options.name = argv[optind++];
    if (optind < argc && strcmp(argv[optind], "--") == 0)
        optind++;
    else if (optind < argc && argv[optind][0] == '-') /* not a command: a mistake */
        cli_bad_usage(&cli_run,
                      "\"%s\": options go before NAME; use -- before a command that"
                      " begins with -",
                      argv[optind]);
    if (optind == argc)
        cli_bad_usage(&cli_run, "COMMAND is missing");
    options.command = argv + optind;
    *ret_options = options;
}

/* ---- the steps */

/* Warns if no source names a server, which may be an unnoticed mistake: cron passes no
 * environment, and then each host uses its own server, or none. */
static void tell_server(const struct run_options *options)
{
    const struct cli_named *server = cli_server();

    if (server->is_built_in)
        cli_complain("neither --url nor RLOCK_URL nor rlock.conf(5) names a server: it is"
                     " %s, of this host alone",
                     server->url);
    else if (options->verbose)
        cli_complain("the server is %s (%s)", server->url, server->source);
}

static rlock_client_t *open_client(struct run_watch *watch,
                                   const struct cli_server *server)
{
    rlock_clientattr_t attr;
    int news[2];

    if (pipe2(news, O_CLOEXEC | O_NONBLOCK) != 0) {
        cli_complain("cannot make a pipe: %s", strerror(errno));
        exit(CLI_INTERNAL);
    }
    watch->news = news[0];
    watch->teller = news[1];
    rlock_clientattr_init(&attr);
    rlock_clientattr_seteventcallback(&attr, run_watch_event, watch);
    rlock_client_t *client = cli_open(&cli_run, server, &attr);
    rlock_clientattr_destroy(&attr);
    tell_server(watch->options);
    return client;
}

static int not_obtained(const struct run_watch *watch, int rc)
{
    const struct run_options *options = watch->options;

    if (rc != EBUSY && rc != ETIMEDOUT)
        return cli_failed(rc, "cannot lock \"%s\"", watch->shown);
    if (!options->quiet && rc == EBUSY)
        cli_complain("\"%s\" is held by another holder", watch->shown);
    else if (!options->quiet)
        cli_complain("could not obtain \"%s\" within %.3g s", watch->shown,
                     (double)options->wait_ns / NS_PER_S);
    return options->conflict_code;
}

static int no_name(const struct run_watch *watch, int rc)
{
    if (rc != EINVAL && rc != ENAMETOOLONG)
        return cli_failed(rc, "cannot make a handle for \"%s\"", watch->shown);
    cli_complain("\"%s\" cannot be the name of a lock: it is empty or over %d bytes "
                 "long, begins with rlock: or redisson_, or has misplaced braces",
                 watch->shown, RLOCK_NAME_MAX);
    return CLI_USAGE;
}

/* Nested runs of one name wait for each other; nested readers do when a writer is
 * between them. */
static void warn_of_nesting(const struct run_watch *watch)
{
    const char *around = getenv("RLOCK_NAME");

    if (!watch->options->no_wait && around && strcmp(around, watch->options->name) == 0)
        cli_complain("\"%s\" is the lock of the command around this one (RLOCK_NAME):"
                     " waiting for it may never end, if it is at the same server",
                     watch->shown);
}

/* True: the lock is held, and signals can be read. */
static bool obtain(struct run_watch *watch, rlock_client_t *client, int64_t begin_ns,
                   int *ret_code)
{
    const struct run_options *options = watch->options;
    int64_t end_ns = begin_ns + options->wait_ns;
    struct timespec deadline = { (time_t)(end_ns / NS_PER_S), (long)(end_ns % NS_PER_S) };

    int rc = run_lock_init(&watch->lock, options, client);
    if (rc != 0) {
        *ret_code = no_name(watch, rc);
        return false;
    }
    warn_of_nesting(watch);
    run_signals_interrupt(client);
    rc = run_lock_take(&watch->lock, options->no_wait,
                       options->wait_ns >= 0 ? &deadline : NULL);
    int number = run_signals_block();
    if (number != 0) {
        if (rc == 0)
            run_lock_release(&watch->lock);
        cli_close(client);
        run_signals_die(number);
    }
    if (rc != 0)
        *ret_code = not_obtained(watch, rc);
    return rc == 0;
}

static bool cannot_start(const char *what, int code)
{
    cli_complain("%s: %s", what, strerror(code));
    return false;
}

static int make_lines(struct run_watch *watch, int *ret_reader)
{
    int lines[2];

    *ret_reader = watch->lines = -1;
    if (watch->options->fd < 0)
        return 0;
    if (pipe2(lines, O_CLOEXEC) != 0)
        return errno;
    *ret_reader = lines[0];
    watch->lines = lines[1];
    return fcntl(lines[1], F_SETFL, O_NONBLOCK) != 0 ? errno : 0;
}

/* False: the command does not run, and the reason was printed. */
static bool start_command(struct run_watch *watch)
{
    int reader, rc = run_tell_open();

    if (rc != 0)
        return cannot_start("cannot start the thread for messages", rc);
    if (run_lock_state(&watch->lock) == RLOCK_LOST) {
        run_watch_tell_lost(watch, "the lease ended before the command was started");
        return false;
    }
    run_terminal_open(&watch->terminal);
    watch->signals = run_signals_open();
    if (watch->signals < 0)
        return cannot_start("cannot open a descriptor for signals", errno);
    rc = make_lines(watch, &reader);
    if (rc != 0)
        return cannot_start("cannot make a pipe for --fd", rc);
    rc = run_command_start(&watch->command, watch->options, run_lock_token(&watch->lock),
                           &watch->terminal, reader);
    if (reader >= 0)
        close(reader);
    return rc == 0 || cannot_start("cannot fork", rc);
}

/* Releases the lock, and finds out whether it was held to the end. */
static void give_back(struct run_watch *watch)
{
    char late[CLI_LINE_MAX];

    snprintf(late, sizeof(late), "the server does not answer the unlock of \"%s\"",
             watch->shown);
    if (!watch->lost)
        run_tell_if_late(late);
    int rc = run_lock_release(&watch->lock);
    if (rc == ESTALE)
        run_watch_tell_lost(watch, "the lease ended before the command did");
    else if (rc != 0)
        cli_failed(rc, "cannot unlock \"%s\"", watch->shown);
}

/* Whether the terminal ended the command, as by Ctrl-C: then it would have ended all
 * of rlock's process group, too, and a script that runs rlock in a loop must end as
 * well. */
static bool is_terminals(const struct run_watch *watch, const siginfo_t *info)
{
    return watch->had_terminal && !watch->ending && info->si_code != CLD_EXITED &&
           (info->si_status == SIGINT || info->si_status == SIGQUIT);
}

/* Runs the command; returns its exit code. ret_number: the terminal's signal that
 * ended it. */
static int run_command(struct run_watch *watch, int *ret_number)
{
    if (!start_command(watch))
        return watch->lost ? CLI_LOST : CLI_INTERNAL;
    siginfo_t info = run_watch_command(watch);
    int failure = run_command_failure(&watch->command, watch->options);
    if (is_terminals(watch, &info))
        *ret_number = info.si_status;
    if (failure >= 0)
        return failure;
    run_watch_hold_on(watch);
    if (watch->too_long)
        return CLI_TOO_LONG;
    return info.si_status + (info.si_code == CLD_EXITED ? 0 : CLI_SIGNAL);
}

static int run(int argc, char **argv)
{
    int64_t begin_ns = run_now_ns();
    struct run_options options;
    struct run_watch watch = { .options = &options };
    struct cli_server server = { 0 };
    int code, number = 0;

    parse(argc, argv, &options, &server);
    run_signals_note();
    rlock_client_t *client = open_client(&watch, &server);
    char *shown = cli_printable(options.name);
    watch.shown = shown;
    if (obtain(&watch, client, begin_ns, &code)) {
        watch.held_since_ns = run_now_ns();
        code = run_command(&watch, &number);
        give_back(&watch);
    }
    cli_close(client);
    run_tell_close();
    free(shown);
    if (watch.lost && !options.warn)
        return CLI_LOST;
    if (number != 0) {
        kill(0, number);
        run_signals_die(number);
    }
    return code;
}

const struct cli_command cli_run = { "run", usage, run };
