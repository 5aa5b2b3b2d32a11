/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the library against what the server allows; see bench/README.md.
 *
 *     bench [-q] [-r rounds] [-d seconds] [-o directory] [scenario...]
 *
 * The server is $RLOCK_URL, else redis://127.0.0.1:6379; bench/run starts one, and makes
 * the peers of $RLOCK_BENCH_PEERS. This process itself never uses the library: its
 * workers do (team.h).
 */
#include "bench.h"
#include "burden.h"
#include "peer.h"
#include "redis.h"
#include "report.h"

#include <rlock.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double quick_seconds = 0.3, full_seconds = 1.5, warm_up_seconds = 0.1;
enum { QUICK_ROUNDS = 5, FULL_ROUNDS = 7, SLICES = 5, SCENARIOS_MAX = 64 };

struct options {
    size_t rounds;
    double seconds;
    const char *dir;
    bool quick;
    bool chosen[SCENARIOS_MAX]; /* scenarios, then burdens */
};

/* ---- options */

/* Of all that may be chosen. */
static const char *word_of(size_t i)
{
    return i < scenario_count ? scenarios[i].word : burdens[i - scenario_count].word;
}

static void usage(void)
{
    fputs("bench [-q] [-r rounds] [-d seconds] [-o directory] [scenario...]\n"
          "-q  quick: fewer and shorter rounds\n"
          "scenarios (the beginning of a word is enough):",
          stderr);
    for (size_t i = 0; i < scenario_count + burden_count; i++)
        fprintf(stderr, " %s", word_of(i));
    fputc('\n', stderr);
    exit(2);
}

static void choose(struct options *options, const char *word)
{
    bool found = false, whole = false;
    size_t all = scenario_count + burden_count;
    for (size_t i = 0; i < all; i++)
        whole = whole || strcmp(word_of(i), word) == 0;
    for (size_t i = 0; i < all; i++) {
        if (strncmp(word_of(i), word, strlen(word)) == 0 &&
            (!whole || strcmp(word_of(i), word) == 0))
            options->chosen[i] = found = true;
    }
    if (!found)
        usage();
}

static void parse(struct options *options, int argc, char **argv)
{
    int c;
    while ((c = getopt(argc, argv, "qr:d:o:")) != -1) {
        if (c == 'q') {
            options->quick = true;
            options->rounds = QUICK_ROUNDS;
            options->seconds = quick_seconds;
        } else if (c == 'r') {
            options->rounds = strtoul(optarg, NULL, 10);
        } else if (c == 'd') {
            options->seconds = strtod(optarg, NULL);
        } else if (c == 'o') {
            options->dir = optarg;
        } else {
            usage();
        }
    }
    if (options->rounds < 1 || options->rounds > ROUNDS_MAX || !(options->seconds > 0) ||
        options->seconds > 60)
        usage();
    if (scenario_count + burden_count > SCENARIOS_MAX)
        die("more scenarios than one can choose");
    if (optind == argc)
        memset(options->chosen, true, sizeof(options->chosen));
    for (int i = optind; i < argc; i++)
        choose(options, argv[i]);
}

/* ---- what was measured on */

static void cpu_model(char *buf, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(buf, size, "unknown");
    while (f && fgets(line, sizeof(line), f)) {
        const char *at = strchr(line, ':');
        if (strncmp(line, "model name", strlen("model name")) == 0 && at) {
            snprintf(buf, size, "%.*s", (int)strcspn(at + 2, "\n"), at + 2);
            break;
        }
    }
    if (f)
        fclose(f);
}

static void print_setting(const struct options *options)
{
    char version[32], cpu[128];
    double load = 0;
    redisContext *conn = redis_open();

    redis_info(conn, "server", "valkey_version", version, sizeof(version));
    const char *server = version[0] ? "Valkey" : "Redis";
    if (!version[0])
        redis_info(conn, "server", "redis_version", version, sizeof(version));
    cpu_model(cpu, sizeof(cpu));
    getloadavg(&load, 1);
    printf("rlock %s, %s %s, hiredis %d.%d.%d\n%ld CPUs (%s), load %.1f before\n"
           "%zu rounds of %.2f s for each, in alternating slices of %.2f s\n\n",
           RLOCK_VERSION, server, version, HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH,
           sysconf(_SC_NPROCESSORS_ONLN), cpu, load, options->rounds, options->seconds,
           options->seconds / SLICES);
    fflush(stdout);
    redisFree(conn);
}

/* ---- measuring */

/* One round: the contenders take turns in slices, so that the machine's other work hits
 * all of them alike. Each contender is first, in the middle and last as often as the
 * others, and every other round has the reverse order: no contender always follows the
 * same other one. */
static void run_round(struct team **teams, size_t count, size_t round, size_t slices,
                      double seconds)
{
    for (size_t slice = 0; slice < slices; slice++) {
        for (size_t i = 0; i < count; i++) {
            size_t who = (round + slice + i) % count;
            team_run(teams[round % 2 ? count - 1 - who : who], seconds / (double)slices);
        }
    }
}

/* Leaves out the contenders that are not there; the first one always is. */
static struct scenario with_whom(const struct scenario *all)
{
    struct scenario s = *all;
    size_t count = 0;

    memset(s.entries, 0, sizeof(s.entries));
    for (size_t i = 0; i < CONTENDERS_MAX && all->entries[i].contender; i++) {
        const struct peer *peer = all->entries[i].contender->peer;
        if (!peer || peer_is_there(peer))
            s.entries[count++] = all->entries[i];
    }
    return s;
}

static void measure(const struct scenario *s, const struct options *options,
                    results_t results)
{
    struct team *teams[CONTENDERS_MAX];
    size_t count = 0, slices = s->slices > 0 ? s->slices : SLICES;
    double seconds = options->seconds > s->seconds ? options->seconds : s->seconds;

    for (; count < CONTENDERS_MAX && s->entries[count].contender; count++) {
        const struct entry *entry = &s->entries[count];
        teams[count] =
            team_start(entry->contender,
                       entry->shape.processes > 0 ? entry->shape : s->shape, "bench");
        team_run(teams[count], warm_up_seconds);
        team_take(teams[count], &results[count][0]);
    }
    for (size_t round = 0; round < options->rounds; round++) {
        run_round(teams, count, round, slices, seconds);
        for (size_t i = 0; i < count; i++)
            team_take(teams[i], &results[i][round]);
    }
    /* the newest first: a process that was forked later has copies of the pipes to older
     * peers */
    while (count > 0)
        team_stop(teams[--count]);
}

static FILE *open_file(const struct options *options, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", options->dir, name);
    FILE *f = fopen(options->dir ? path : "/dev/null", "we");
    if (!f)
        die("cannot write %s", path);
    return f;
}

/* All parts of the benchmark have to use one server. A file of the host must not name
 * another server for the parts that use the library. */
static void fix_server(void)
{
    const char *url = getenv("RLOCK_URL");

    if ((!url || !url[0]) && setenv("RLOCK_URL", "redis://127.0.0.1:6379", 1) != 0)
        die("out of memory");
}

int main(int argc, char **argv)
{
    struct options options = { .rounds = FULL_ROUNDS, .seconds = full_seconds };
    static results_t results;

    parse(&options, argc, argv);
    fix_server();
    struct report report = { .table = stdout,
                             .csv = open_file(&options, "bench.csv"),
                             .histogram = open_file(&options, "bench-latency.csv") };
    print_setting(&options);
    report_head(&report);
    for (size_t i = 0; i < scenario_count; i++) {
        if (!options.chosen[i])
            continue;
        struct scenario s = with_whom(&scenarios[i]);
        measure(&s, &options, results);
        report_scenario(&report, &s, results, options.rounds);
    }
    for (size_t i = 0; i < burden_count; i++)
        if (options.chosen[scenario_count + i])
            burden_run(&burdens[i], stdout, options.quick);
    if (fclose(report.csv) != 0 || fclose(report.histogram) != 0)
        die("cannot write to %s", options.dir);
    return 0;
}
