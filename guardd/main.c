/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rlock-guard(8): a process whose clients watch permanently for dead processes of this
 * host, and release their locks. The library does that; this file has the command line,
 * the order of steps, and the signals. Thread: main; the library's threads block all
 * signals.
 */
#include "guardd.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPT_URL = 0x100, OPT_URL_FILE };

static const char usage[] =
    "Usage: rlock-guard [OPTION...]\n"
    "Watches processes of this host, and releases the locks that dead ones held in\n"
    "Redis or Valkey at once. Runs until it gets SIGTERM.\n"
    "\n"
    "  --url URL        a server, several times for several:\n"
    "                   redis[s]://host[:port][/db] or unix:///path\n"
    "  --url-file FILE  one URL in each line, those with a password too; # comments\n"
    "  -q, --quiet      only warnings and errors\n"
    "  -v, --verbose    connections that are replaced, too\n"
    "  -h, --help       this text\n"
    "  -V, --version    the version\n"
    "\n"
    "Without a URL: $RLOCK_URL, else that of rlock.conf(5), else\n"
    "redis://127.0.0.1:6379.\n"
    "SIGUSR1: a line with the number of recovered processes. Exit code: 0 stopped,\n"
    "64 usage, 70 internal, 78 no directory to watch.\n";

static const struct option long_options[] = {
    { "url", required_argument, NULL, OPT_URL },
    { "url-file", required_argument, NULL, OPT_URL_FILE },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, 'V' },
    { NULL, 0, NULL, 0 },
};

/* If standard descriptors are closed, the library would get their numbers, and
 * messages would go to a server. */
static bool occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) != fd)
            return false;
    return true;
}

/* ---- signals */

/* The signals with a meaning here. The kernel stores a signal that is blocked and
 * ignored: signals from a terminal that were ignored at the start, as under nohup(1),
 * are left alone. */
static void set_of_signals(sigset_t *ret_set)
{
    static const int of_terminal[] = { SIGINT, SIGHUP };
    struct sigaction action;

    sigemptyset(ret_set);
    sigaddset(ret_set, SIGTERM);
    sigaddset(ret_set, SIGUSR1);
    for (size_t i = 0; i < sizeof(of_terminal) / sizeof(of_terminal[0]); i++)
        if (sigaction(of_terminal[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(ret_set, of_terminal[i]);
}

/* Called first, so that an early request for numbers does not end the program. */
static void begin_signals(void)
{
    sigset_t asking;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&asking);
    sigaddset(&asking, SIGUSR1);
    sigprocmask(SIG_BLOCK, &asking, NULL);
}

/* From here on no signal is lost: they are blocked and read from the descriptor. */
static int take_signals(void)
{
    sigset_t set;

    set_of_signals(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (fd < 0)
        say_and_exit(GUARD_INTERNAL, "cannot receive signals: %s", strerror(errno));
    return fd;
}

/* ---- the command line */

__attribute__((noreturn)) static void print_and_exit(const char *text)
{
    fputs(text, stdout);
    if (fflush(stdout) != 0 || ferror(stdout))
        say_and_exit(GUARD_INTERNAL, "cannot write to stdout: %s", strerror(errno));
    exit(GUARD_OK);
}

/* Shows nothing of a misplaced argument: it may be a password. */
__attribute__((noreturn)) static void bad_usage(const char *what, const char *why)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-";

    say(SAY_ERROR, "%.*s%s", (int)strspn(what, letters), what, why);
    fputs("Try: rlock-guard --help\n", stderr);
    exit(GUARD_USAGE);
}

__attribute__((noreturn)) static void bad_option(char **argv, const char *why)
{
    char letter[] = "-?";

    if (optopt <= 0 || optopt >= OPT_URL)
        bad_usage(argv[optind - 1], why);
    letter[1] = (char)optopt;
    bad_usage(letter, why);
}

/* Sets the level of the log; requested statistics are logged at every level. */
static int parse(int argc, char **argv, struct guard_urls *urls)
{
    int option, max_level = SAY_INFO;

    /* ':': getopt prints nothing itself. */
    while ((option = getopt_long(argc, argv, ":qvhV", long_options, NULL)) != -1)
        switch (option) {
        case OPT_URL:
            urls_add(urls, optarg);
            break;
        case OPT_URL_FILE:
            urls_read(urls, optarg);
            break;
        case 'q':
            max_level = SAY_NOTICE;
            break;
        case 'v':
            max_level = SAY_DEBUG;
            break;
        case 'h':
            print_and_exit(usage);
        case 'V':
            printf("rlock-guard %s\n", rlock_version());
            print_and_exit("");
        case ':':
            bad_option(argv, ": a value is missing");
        default:
            bad_option(argv, ": no such option, or it takes no value");
        }
    if (optind < argc)
        bad_usage("", "there are only options; a server is named by --url");
    return max_level;
}

/* ---- the steps */

/* The directory, printable. Ends the program if there is none. */
static char *find_directory(void)
{
    char dir[PATH_MAX];
    struct stat st;

    if (rlock_getrundir(dir, sizeof(dir)) != 0)
        say_and_exit(GUARD_CONFIG, "no directory to watch: %s", rlock_errmsg());
    char *shown = printable(dir);
    if (stat(dir, &st) != 0)
        say_and_exit(GUARD_CONFIG, "%s: %s", shown, strerror(errno));
    /* A user who can write there decides what root opens, locks and unlinks. */
    if (geteuid() == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)))
        say_and_exit(GUARD_CONFIG,
                     "%s is group-writable: refusing to run as root; run it as a user in "
                     "that group",
                     shown);
    return shown;
}

static void announce(char *directory)
{
    char servers[SAY_LINE_MAX / 2];

    clients_describe(servers, sizeof(servers));
    say(SAY_INFO, "watching %s for %s", directory, servers);
    notify("READY=1\nSTATUS=Watching %s for %d server%s", directory, clients_count(),
           clients_count() == 1 ? "" : "s");
    free(directory);
}

/* Runs until a signal says stop; returns the signal. */
static int serve(int signals)
{
    struct signalfd_siginfo info;
    char text[SAY_LINE_MAX / 2];

    for (;;) {
        ssize_t n = read(signals, &info, sizeof(info));
        if (n != (ssize_t)sizeof(info) && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(info))
            say_and_exit(GUARD_INTERNAL, "cannot read signals: %s", strerror(errno));
        if (info.ssi_signo != SIGUSR1)
            return (int)info.ssi_signo;
        clients_count_recoveries(text, sizeof(text));
        say(SAY_NOTICE, "%s", text);
        notify("STATUS=%s", text);
    }
}

static void stop(int number)
{
    char text[SAY_LINE_MAX / 2];

    clients_bound_the_end();
    clients_count_recoveries(text, sizeof(text));
    if (clients_are_blind())
        say(SAY_ERROR, "exits: no directory is left to watch: %s", text);
    else
        say(SAY_INFO, "stopping on signal %d: %s", number, text);
    notify("STOPPING=1\nSTATUS=Stops");
    clients_close();
}

int main(int argc, char **argv)
{
    static struct guard_urls urls;

    if (!occupy_standard_descriptors())
        return GUARD_INTERNAL;
    begin_signals();
    say_open(SAY_INFO);
    say_open(parse(argc, argv, &urls));
    if (urls.count == 0)
        urls_add_default(&urls);

    /* Not earlier: reading a file of URLs may block. */
    int signals = take_signals();
    char *directory = find_directory();
    clients_open(&urls);
    urls_clear(&urls);
    announce(directory);
    stop(serve(signals));
    return clients_are_blind() ? GUARD_INTERNAL : GUARD_OK;
}
