/* SPDX-License-Identifier: Apache-2.0 */
/* See options.h. State: none. */
#include "options.h"

#include "judge.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64 };

static const struct nem_options defaults = { .rounds = 1,
                                             .seconds = 15,
                                             .gap_ms = 400,
                                             .crew = { .processes = 4,
                                                       .threads = 3,
                                                       .locks = 9,
                                                       .lease_ms = 1000,
                                                       .long_percent = 1,
                                                       .presence_ms = 600,
                                                       .commandtimeout_ms = 500 } };

static const char help[] =
    "nemesis: breaks what it can around locks of rlock, and judges what they did\n"
    "  --servers WHICH plain (one server; the default), tls (the same, encrypted),\n"
    "                  sentinel (a master, two replicas, three sentinels), replicas "
    "(the\n"
    "                  same, and both replicas confirm each lock), cluster (three "
    "masters\n"
    "                  with a replica each), cluster-replicas (the same, and the "
    "replica\n"
    "                  confirms each lock). With several servers records alone are\n"
    "                  judged; with sentinels there are no faults of links\n"
    "  --unconfirmed   with replicas, cluster-replicas: no replica confirms a lock, but "
    "the\n"
    "                  judge believes it: shows that it finds what is lost\n"
    "  --seed S        of the schedule and the workers (one of its own)\n"
    "  --rounds N      1\n"
    "  --minutes M     as many rounds as begin within M minutes\n"
    "  --seconds S     of faults in a round: 15\n"
    "  --gap MS        mean time between faults: 400\n"
    "  --processes W   4     --threads T  3     --locks K  9\n"
    "  --lease MS      1000; 3000 with several servers\n"
    "  --long P        of 100 sections last about a lease: 1\n"
    "  --think MS      between two sections of a thread, at most: as many as processes, "
    "so\n"
    "                  that more of them are no more work for the machine\n"
    "  --guard WHO     has the crash guard: off (nobody), on (all), some (half of the\n"
    "                  lives); off, and some with --in-turn\n"
    "  --only KINDS    faults of these kinds, with commas between\n"
    "  --must RULES    that are to have been tried in the end, with commas between\n"
    "  --strict        only faults that S1 does not exclude: nothing is excused\n"
    "  --in-turn       so in every third round, and another third with a gap of 2000\n"
    "  --plan          prints the first round's schedule, and does nothing\n"
    "  --keep          keeps the directories of all rounds, not of bad ones only\n"
    "  --explain DIR   judges a round that was kept once more\n";

static long number_of(const char *text, long low, long high, const char *what)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || value < low || value > high) {
        fprintf(stderr, "nemesis: %s: %s is not a number from %ld to %ld\n", what, text,
                low, high);
        exit(EXIT_FAILURE);
    }
    return value;
}

static uint64_t seed_from(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (errno != 0 || *end != '\0' || end == text || strchr(text, '-')) {
        fprintf(stderr, "nemesis: --seed: %s is no number from 0 to 2^64 - 1\n", text);
        exit(EXIT_FAILURE);
    }
    return value;
}

/* The bits of the names in a list. */
static uint64_t set_of(const char *list, int count, const char *(*name_of)(int))
{
    uint64_t set = 0;
    char copy[LINE_MAX];
    char *rest = NULL;

    snprintf(copy, sizeof(copy), "%s", list);
    for (char *name = strtok_r(copy, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        int i = 0;
        while (i < count && strcmp(name_of(i), name) != 0)
            i++;
        if (i == count) {
            fprintf(stderr, "nemesis: no \"%s\"; there are:", name);
            for (i = 0; i < count; i++)
                fprintf(stderr, " %s", name_of(i));
            fputc('\n', stderr);
            exit(EXIT_FAILURE);
        }
        set |= UINT64_C(1) << i;
    }
    return set;
}

static const char *kind_name(int kind)
{
    return nem_kind_name((enum nem_kind)kind);
}

static const char *rule_name(int rule)
{
    return nem_rule_name((enum nem_rule)rule);
}

enum {
    OPT_SERVERS = 256,
    OPT_UNCONFIRMED,
    OPT_SEED,
    OPT_ROUNDS,
    OPT_MINUTES,
    OPT_SECONDS,
    OPT_GAP,
    OPT_PROCESSES,
    OPT_THREADS,
    OPT_LOCKS,
    OPT_LEASE,
    OPT_LONG,
    OPT_THINK,
    OPT_GUARD,
    OPT_ONLY,
    OPT_MUST,
    OPT_STRICT,
    OPT_IN_TURN,
    OPT_PLAN,
    OPT_KEEP,
    OPT_EXPLAIN,
    OPT_HELP
};

static const struct option long_options[] = {
    { "servers", required_argument, NULL, OPT_SERVERS },
    { "unconfirmed", no_argument, NULL, OPT_UNCONFIRMED },
    { "seed", required_argument, NULL, OPT_SEED },
    { "rounds", required_argument, NULL, OPT_ROUNDS },
    { "minutes", required_argument, NULL, OPT_MINUTES },
    { "seconds", required_argument, NULL, OPT_SECONDS },
    { "gap", required_argument, NULL, OPT_GAP },
    { "processes", required_argument, NULL, OPT_PROCESSES },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "locks", required_argument, NULL, OPT_LOCKS },
    { "lease", required_argument, NULL, OPT_LEASE },
    { "long", required_argument, NULL, OPT_LONG },
    { "think", required_argument, NULL, OPT_THINK },
    { "guard", required_argument, NULL, OPT_GUARD },
    { "only", required_argument, NULL, OPT_ONLY },
    { "must", required_argument, NULL, OPT_MUST },
    { "strict", no_argument, NULL, OPT_STRICT },
    { "in-turn", no_argument, NULL, OPT_IN_TURN },
    { "plan", no_argument, NULL, OPT_PLAN },
    { "keep", no_argument, NULL, OPT_KEEP },
    { "explain", required_argument, NULL, OPT_EXPLAIN },
    { "help", no_argument, NULL, OPT_HELP },
    { NULL, 0, NULL, 0 }
};

const char *nem_guard_name(enum nem_guard guard)
{
    return guard == NEM_GUARD_ON ? "on" : guard == NEM_GUARD_SOME ? "some" : "off";
}

static enum nem_guard guard_of(const char *arg)
{
    for (int i = NEM_GUARD_OFF; i <= NEM_GUARD_SOME; i++)
        if (strcmp(arg, nem_guard_name((enum nem_guard)i)) == 0)
            return (enum nem_guard)i;
    fprintf(stderr, "nemesis: --guard: off, on or some, not %s\n", arg);
    exit(EXIT_FAILURE);
}

/* The kills that test recoveries come only with the guard, so that a seed keeps its
 * meaning without it. */
static void fit_guard(struct nem_options *opt)
{
    if (opt->in_turn && !opt->guard_given)
        opt->crew.guard = NEM_GUARD_SOME;
    for (int i = NEM_KILL_INSIDE; i <= NEM_KILL_BURIER; i++)
        if (opt->crew.guard == NEM_GUARD_OFF && !opt->only)
            opt->kinds &= ~(UINT64_C(1) << i);
}

const char *nem_servers_name(enum nem_servers servers)
{
    static const char *const names[] = {
        [NEM_PLAIN] = "plain",       [NEM_TLS] = "tls",
        [NEM_SENTINEL] = "sentinel", [NEM_REPLICAS] = "replicas",
        [NEM_CLUSTER] = "cluster",   [NEM_CLUSTER_REPLICAS] = "cluster-replicas"
    };
    return names[servers];
}

static enum nem_servers servers_of(const char *arg)
{
    for (int i = NEM_PLAIN; i < NEM_SERVERS_KINDS; i++)
        if (strcmp(arg, nem_servers_name((enum nem_servers)i)) == 0)
            return (enum nem_servers)i;
    fprintf(stderr,
            "nemesis: --servers: plain, tls, sentinel, replicas, cluster or "
            "cluster-replicas, not %s\n",
            arg);
    exit(EXIT_FAILURE);
}

/* Kinds of failovers are drawn only with servers that fail over, so that a seed keeps its
 * meaning with one server. With several servers most kinds do not fit: they are not
 * drawn, or the others would be rare. Elections take longer than the usual lease. */
static void fit_servers(struct nem_options *opt)
{
    enum { LEASE_MS = 3000 };
    bool one = nem_has_ledger(opt->servers);
    for (int i = 0; i < NEM_KINDS; i++) {
        bool fits = nem_kind_fits((enum nem_kind)i, opt->servers);
        if (!fits && opt->only && opt->kinds >> i & 1) {
            fprintf(stderr, "nemesis: --only: there is no %s with --servers %s\n",
                    kind_name(i), nem_servers_name(opt->servers));
            exit(EXIT_FAILURE);
        }
        if (!fits && (!one || i >= NEM_FAILOVER))
            opt->kinds &= ~(UINT64_C(1) << i);
    }
    if (opt->unconfirmed && opt->servers != NEM_REPLICAS &&
        opt->servers != NEM_CLUSTER_REPLICAS) {
        fputs("nemesis: --unconfirmed goes with --servers replicas or cluster-replicas\n",
              stderr);
        exit(EXIT_FAILURE);
    }
    if (!one && !opt->lease_given)
        opt->crew.lease_ms = LEASE_MS;
}

static void take_option(struct nem_options *opt, int option, const char *arg)
{
    switch (option) {
    case OPT_SERVERS:
        opt->servers = servers_of(arg);
        break;
    case OPT_UNCONFIRMED:
        opt->unconfirmed = true;
        break;
    case OPT_SEED:
        opt->seed = seed_from(arg);
        break;
    case OPT_ROUNDS:
        opt->rounds = (unsigned long)number_of(arg, 1, 1000000, "--rounds");
        break;
    case OPT_MINUTES:
        opt->minutes = number_of(arg, 1, 100000, "--minutes");
        break;
    case OPT_SECONDS:
        opt->seconds = number_of(arg, 1, 3600, "--seconds");
        break;
    case OPT_GAP:
        opt->gap_ms = number_of(arg, 1, 3600000, "--gap");
        break;
    case OPT_PROCESSES:
        opt->crew.processes = (unsigned)number_of(arg, 2, PROCESSES_MAX, "--processes");
        break;
    case OPT_THREADS:
        opt->crew.threads = (unsigned)number_of(arg, 1, 64, "--threads");
        break;
    case OPT_LOCKS:
        opt->crew.locks = (unsigned)number_of(arg, 1, NEM_LOCKS_MAX, "--locks");
        break;
    case OPT_LEASE:
        opt->crew.lease_ms = number_of(arg, 300, 60000, "--lease");
        opt->lease_given = true;
        break;
    case OPT_LONG:
        opt->crew.long_percent = (unsigned)number_of(arg, 0, 100, "--long");
        break;
    case OPT_THINK:
        opt->crew.think_ms = (unsigned)number_of(arg, 1, 60000, "--think");
        break;
    case OPT_GUARD:
        opt->crew.guard = guard_of(arg);
        opt->guard_given = true;
        break;
    case OPT_ONLY:
        opt->kinds = set_of(arg, NEM_KINDS, kind_name);
        opt->only = true;
        break;
    case OPT_MUST:
        opt->must = set_of(arg, NEM_RULES, rule_name);
        break;
    case OPT_STRICT:
        opt->strict = true;
        break;
    case OPT_IN_TURN:
        opt->in_turn = true;
        break;
    case OPT_PLAN:
        opt->plan_only = true;
        break;
    case OPT_KEEP:
        opt->keep = true;
        break;
    case OPT_EXPLAIN:
        opt->explain = arg;
        break;
    default:
        fputs(help, option == OPT_HELP ? stdout : stderr);
        exit(option == OPT_HELP ? EXIT_SUCCESS : EXIT_FAILURE);
    }
}

void nem_options_take(struct nem_options *opt, int argc, char **argv)
{
    int option;

    *opt = defaults;

    opt->kinds = (UINT64_C(1) << NEM_KINDS) - 1;
    opt->seed = (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid();
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        take_option(opt, option, optarg);
    if (optind < argc)
        take_option(opt, '?', NULL);
    opt->crew.seed = opt->seed;
    if (opt->crew.think_ms == 0)
        opt->crew.think_ms = opt->crew.processes;
    fit_guard(opt);
    fit_servers(opt);
}
