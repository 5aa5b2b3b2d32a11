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
    SLICE_MS = 5000,      /* after which it asks itself whether the server is there */
    OUTAGE_MS = 10000,    /* a longer one it does not wait through */
    ANSWER_MIN_MS = 1000, /* the server has so long, however short the wait is */
    WAIT_MAX_S = 365 * 24 * 3600
};

static const char usage[] =
    "Usage: rlock wait [OPTION...] NAME\n"
    "Waits until nobody holds the lock NAME, without taking it: somebody else may\n"
    "hold it at the next moment. To hold it yourself: rlock run.\n"
    "\n"
    "  --wait DURATION      at most so long: 500ms, 60s (or 60), 2m; 0 only looks\n"
    "  --url URL, --user NAME, --password-file FILE, --help: see rlock --help\n"
    "\n"
    "When no server answers at first, it gives up at once, or after 3 s of one that\n"
    "hangs. When it goes away later, it goes on if it is back within 10 s, and gives\n"
    "up if not, with --wait and without. The last answer may be up to 3 s late.\n"
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

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits in slices: rlock_waitfree waits through outages of any length, so the server is
 * asked behind each. end_ms: of look_now_ms, INT64_MAX: none. */
static int wait_for(rlock_client_t *client, const char *name, int64_t end_ms)
{
    int rc = rlock_client_ping(client);
    int64_t now_ms = look_now_ms(), answered_ms = now_ms;

    while (rc == 0) {
        int64_t left = lesser(end_ms, answered_ms + OUTAGE_MS) - now_ms;
        struct timespec until = realtime_in(left < 0 ? 0 : lesser(left, SLICE_MS));
        rc = rlock_waitfree(client, name, &until);
        if (rc != ETIMEDOUT && rc != ENOTCONN)
            return rc;
        now_ms = look_now_ms();
        if (now_ms >= end_ms || (rc == ENOTCONN && now_ms - answered_ms >= OUTAGE_MS))
            return rc;
        rc = rlock_client_ping(client);
        now_ms = look_now_ms();
        if (rc == 0)
            answered_ms = now_ms;
        else if (rc == ENOTCONN && now_ms < end_ms && now_ms - answered_ms < OUTAGE_MS)
            rc = 0;
    }
    return rc;
}

/* With a deadline no call waits longer than until then for an answer, unless the URL
 * says how long. */
static void set_timeout(rlock_clientattr_t *attr, int64_t wait_ms)
{
    long timeout_ms;

    rlock_clientattr_init(attr);
    rlock_clientattr_getcommandtimeout(attr, &timeout_ms);
    if (wait_ms >= 0 && wait_ms < timeout_ms)
        rlock_clientattr_setcommandtimeout(attr, wait_ms > ANSWER_MIN_MS ? (long)wait_ms
                                                                         : ANSWER_MIN_MS);
}

static int run(int argc, char **argv)
{
    struct cli_server server = { 0 };
    rlock_clientattr_t attr;
    int64_t wait_ms = -1;
    int option, code = CLI_OK;

    while ((option = getopt_long(argc, argv, CLI_COMMON_LETTERS, options, NULL)) != -1)
        if (!cli_common_option(&cli_wait, &server, option))
            wait_ms = cli_duration(
                &cli_wait, "--wait", optarg,
                (struct cli_bounds){ .max_ms = (int64_t)WAIT_MAX_S * MS_PER_S });
    const char *name = look_word(&cli_wait, argc, argv, "NAME");
    cli_have_no_children();
    char *shown = cli_printable(name);
    int64_t end_ms = wait_ms < 0 ? INT64_MAX : look_now_ms() + wait_ms;
    set_timeout(&attr, wait_ms);
    rlock_client_t *client = cli_open(&cli_wait, &server, &attr);
    rlock_clientattr_destroy(&attr);
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
