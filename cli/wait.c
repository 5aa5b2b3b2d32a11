/* SPDX-License-Identifier: Apache-2.0 */
/* rlock wait: until nobody holds a lock, without taking it. Holds nothing, so signals end
 * it as they end any program. Thread: main only. */
#include "look.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

enum { OPT_WAIT = CLI_OPT_OWN };

enum {
    MS_PER_S = 1000,
    NS_PER_MS = 1000000,
    SLICE_MS = 5000,   /* after which it asks itself whether the server is there */
    OUTAGE_MS = 10000, /* a longer one it does not wait through */
    WAIT_MAX_S = 365 * 24 * 3600
};

static const char usage[] =
    "Usage: rlock wait [OPTION...] NAME\n"
    "Waits until nobody holds the lock NAME, without taking it: somebody else may\n"
    "hold it at the next moment. To hold it yourself: rlock run.\n"
    "\n"
    "  --wait SECONDS       at most so long; a fraction is fine, 0 only looks\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "When the server goes away while it waits, it goes on if the server is back\n"
    "within 10 s or so, and gives up if not, with --wait and without.\n"
    "\n"
    "Exit code: 0 when nobody holds it; 75 when the time was over; 69 when the\n"
    "server cannot be reached, 77 when it refuses.\n";

static const struct option options[] = { { "wait", required_argument, NULL, OPT_WAIT },
                                         CLI_COMMON_OPTIONS };

static struct timespec realtime_in(int64_t ms)
{
    struct timespec when;

    clock_gettime(CLOCK_REALTIME, &when);
    when.tv_sec += (time_t)(ms / MS_PER_S);
    when.tv_nsec += (long)(ms % MS_PER_S) * NS_PER_MS;
    if (when.tv_nsec >= MS_PER_S * (long)NS_PER_MS) {
        when.tv_sec++;
        when.tv_nsec -= MS_PER_S * (long)NS_PER_MS;
    }
    return when;
}

/* Waits in slices: rlock_waitfree waits through outages of any length. end_ms: of
 * look_now_ms, INT64_MAX: none. */
static int wait_for(rlock_client_t *client, const char *name, int64_t end_ms)
{
    int rc = rlock_client_ping(client);
    int64_t answered_ms = look_now_ms();

    while (rc == 0) {
        int64_t left = end_ms - look_now_ms();
        left = left < 0 ? 0 : left;
        struct timespec until = realtime_in(left < SLICE_MS ? left : SLICE_MS);
        rc = rlock_waitfree(client, name, &until);
        if (rc != ETIMEDOUT && rc != ENOTCONN)
            return rc;
        bool is_over = look_now_ms() >= end_ms;
        if (rc == ETIMEDOUT || (!is_over && rlock_client_ping(client) == 0))
            answered_ms = look_now_ms();
        if (!is_over && look_now_ms() - answered_ms < OUTAGE_MS)
            rc = 0;
    }
    return rc;
}

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    int64_t wait_ms = -1;
    int option, code = CLI_OK;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (!cli_common_option(&cli_wait, &server, option))
            wait_ms =
                look_seconds(&cli_wait, "--wait", optarg, 0, (long)WAIT_MAX_S * MS_PER_S);
    const char *name = look_word(&cli_wait, argc, argv, "NAME");
    char *shown = cli_printable(name);
    int64_t end_ms = wait_ms < 0 ? INT64_MAX : look_now_ms() + wait_ms;
    rlock_client_t *client = cli_open(&cli_wait, &server, NULL);
    int rc = wait_for(client, name, end_ms);
    if (rc == ETIMEDOUT) {
        cli_complain("\"%s\" is still held", shown);
        code = CLI_BUSY;
    } else if (rc != 0) {
        code = cli_failed(rc, "cannot wait for \"%s\"", shown);
    }
    free(shown);
    cli_close(client);
    return code;
}

const struct cli_command cli_wait = { "wait", usage, run };
