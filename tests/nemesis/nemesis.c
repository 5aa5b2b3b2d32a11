/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The nemesis: processes with threads that use locks of all three types, a seeded
 * schedule of faults, and a judge of their records. `nemesis --help` names the options.
 * Ends with `violations: N, seed S` and a status that says the same; 75, when this
 * machine stood still in more than half of the rounds, which then say nothing. A rule
 * that was not tried counts as a violation, and so does a fault that was often planned
 * and never happened; with a single round the result is then 75.
 *
 * A round: the workers work while faults happen; the faults end; the workers go on for a
 * while, then rest; the driver looks at what is left; the judge reads all of it. The
 * processes and the server live through all rounds, unless a fault kills them.
 */
#include "crew.h"
#include "judge.h"
#include "marks.h"
#include "options.h"
#include "pulse.h"
#include "round.h"
#include "shelf.h"
#include "times.h"

#include "die.h"
#include "redis.h"
#include "wait.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { RUN_DIR_MAX = 256 };
enum { SHOWN = 8, MARK_MS = 5, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };
enum { INCONCLUSIVE = 75 /* EX_TEMPFAIL of sysexits.h */, SKIPPED = 77 };
enum { SPARE_MEMORY = 512 * 1024 };
enum { MS_PER_MINUTE = 60000, END_MS = 30000 };

static struct nem_options opt;

static struct {
    char dir[RUN_DIR_MAX];
    struct nem_faults *faults;
    struct nem_crew *crew;
    struct nem_looks looks;
    struct nem_end first[2], last[2]; /* process 0, the server */
    int64_t began;
    struct nem_verdict sum;
    unsigned long faults_by_kind[NEM_KINDS], of_one, rounds, inconclusive, stalls;
    uint64_t last_token[NEM_LOCKS_MAX];
    uint64_t possible; /* kinds */
    unsigned long planned[NEM_KINDS];
} run;

/* ---- a round */

static int64_t now_boot(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static uint64_t seed_of(unsigned long round)
{
    return opt.seed + round * UINT64_C(0x9e3779b97f4a7c15);
}

static bool is_strict(unsigned long round)
{
    return opt.strict || (opt.in_turn && round % 3 == 2);
}

/* Recoveries are judged only while nothing hampers them. */
static bool is_of_deaths(unsigned long round)
{
    return opt.in_turn && !opt.only && opt.crew.guard != NEM_GUARD_OFF && round % 6 == 3;
}

/* The order of waiters is judged only while nothing disturbs them. */
static long gap_of(unsigned long round)
{
    enum { WIDE_MS = 2000, OF_DEATHS_MS = 1000 };
    bool wide = opt.in_turn && round % 3 == 1 && opt.gap_ms < WIDE_MS;
    return wide ? WIDE_MS : is_of_deaths(round) ? OF_DEATHS_MS : opt.gap_ms;
}

static bool is_wanted(unsigned long round, enum nem_kind kind)
{
    if (is_strict(round) && nem_kind_excluded(kind, opt.servers))
        return false;
    return !is_of_deaths(round) || nem_kind_lane(kind) == NEM_LANE_PROCESS;
}

static struct nem_plan plan_of(unsigned long round)
{
    struct nem_plan plan;
    uint64_t kinds = opt.kinds;

    for (int i = 0; i < NEM_KINDS; i++)
        if (!is_wanted(round, (enum nem_kind)i))
            kinds &= ~(UINT64_C(1) << i);
    nem_plan_make(&plan, &(const struct nem_plan_options){
                             .seed = seed_of(round),
                             .faults_ms = opt.seconds * 1000,
                             .processes = opt.crew.processes,
                             .locks = opt.crew.locks,
                             .lease_ms = opt.crew.lease_ms,
                             .gap_ms = gap_of(round),
                             .kinds = kinds,
                             .impossible = run.faults ? ~run.possible : 0 });
    return plan;
}

static void print_plan(const struct nem_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct nem_step *s = &plan->steps[i];
        printf("%8.3f s  %-22s for %6" PRId64 " ms  process %d lock %d amount %" PRId64
               " connection %u\n",
               (double)s->begin_ms / 1000, nem_kind_name(s->kind), s->length_ms,
               s->target == NEM_ALL ? -1 : s->target, s->lock == NEM_ALL ? -1 : s->lock,
               s->amount, s->connection);
    }
}

/* 0: under a tool, whose CPU time would count as the workers'. */
static unsigned cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return test_ms(1) > 1 || count < 1 ? 0 : (unsigned)count;
}

/* Whether a cluster serves no hash slot while one has no master: servers begin so; of two
 * seeds one wants it otherwise. */
static bool has_full_coverage(void)
{
    return opt.seed % 2 == 0;
}

/* How many more descriptors a process may have: it has connections to each server. */
static unsigned spare_descriptors(void)
{
    enum { MORE = 6, NODES = 6 };
    return (opt.crew.threads + MORE) * (nem_is_cluster(opt.servers) ? NODES : 1);
}

/* What the judge must know about a round: see judge.h. */
static struct nem_round round_of(unsigned long number, const struct nem_times *times)
{
    return (struct nem_round){ .processes = opt.crew.processes,
                               .threads = opt.crew.threads,
                               .locks = opt.crew.locks,
                               .lease_ms = opt.crew.lease_ms,
                               .presence_ms = opt.crew.presence_ms,
                               .commandtimeout_ms = opt.crew.commandtimeout_ms,
                               .strict = is_strict(number),
                               .servers = opt.servers,
                               .no_ledger = !nem_has_ledger(opt.servers),
                               .full_coverage = has_full_coverage(),
                               .node_timeout_ms = nem_is_cluster(opt.servers)
                                                      ? test_ms(NEM_NODE_TIMEOUT_MS)
                                                      : 0,
                               .patience_ms = times->patience_ms,
                               .slack_ms = test_ms(400),
                               .spare_descriptors = spare_descriptors(),
                               .spare_memory = test_ms(1) > 1 ? 0 : SPARE_MEMORY,
                               .cores = cores(),
                               .started = now_boot() };
}

/* Whether the fault had an effect: a key to delete or evict may never have appeared, nor
 * a message on the link. */
static bool happened(const struct nem_fault *fault)
{
    switch (fault->kind) {
    case NEM_FORCE: /* one record for each */
        return fault->lock != NEM_ALL;
    case NEM_DELETE_LOCK:
    case NEM_DELETE_COMPANION:
    case NEM_EVICT:
        return fault->what[0] != '\0';
    case NEM_KILL_INSIDE: /* else it was a kill in any state */
    case NEM_KILL_KEPT:
    case NEM_KILL_ASKING:
    case NEM_KILL_BURIER:
    case NEM_CUT_ONE:
    case NEM_CUT:
    case NEM_RESET:
    case NEM_DELAY:
    case NEM_LOSE_REQUESTS:
    case NEM_LOSE_REPLIES:
    case NEM_CUT_REPLIES:
    case NEM_DRIP:
    case NEM_HALF_CLOSE:
    case NEM_LOSE_MESSAGES:
    case NEM_FORGE:
    case NEM_LONG_MESSAGES:
    case NEM_HOSTILE:
    case NEM_FAILOVER: /* or the sentinels elected nobody */
    case NEM_MASTER_KILL:
    case NEM_MASTER_STOP:
    case NEM_TAKEOVER:
    case NEM_ROLLING_RESTART:
        return fault->hits > 0;
    default:
        return true;
    }
}

static void count_faults(const struct nem_round *round)
{
    for (size_t i = 0; i < round->fault_count; i++) {
        const struct nem_fault *fault = &round->faults[i];
        if (fault->kind == NEM_STALL)
            run.stalls++;
        else if (happened(fault))
            run.faults_by_kind[fault->kind]++;
        run.of_one += fault->connection > 0 && happened(fault);
    }
}

static void add_verdict(const struct nem_verdict *v)
{
    for (int i = 0; i < NEM_RULES; i++) {
        run.sum.violations[i] += v->violations[i];
        run.sum.excused[i] += v->excused[i];
        run.sum.judged[i] += v->judged[i];
    }
    run.sum.operations += v->operations;
    run.sum.successes += v->successes;
    run.sum.handovers += v->handovers;
    run.sum.losses += v->losses;
    run.sum.burials += v->burials;
    run.sum.failovers += v->failovers;
    run.sum.wait_bound_ms = v->wait_bound_ms;
    if (v->wait_ms > run.sum.wait_ms)
        run.sum.wait_ms = v->wait_ms;
    run.rounds++;
    run.inconclusive += v->inconclusive;
}

static unsigned long total(const unsigned long counts[NEM_RULES])
{
    unsigned long sum = 0;
    for (int i = 0; i < NEM_RULES; i++)
        sum += counts[i];
    return sum;
}

/* Keeps the looks at what lives through all rounds, process 0 and the server: after the
 * first minute, and now. */
static void keep_looks(const struct nem_round *round)
{
    size_t now = opt.crew.processes + 1;
    for (size_t i = round->end_count - now; i < round->end_count; i++) {
        const struct nem_end *end = &round->ends[i];
        if (end->process != 0 && end->process != NEM_ALL)
            continue;
        int who = end->process == 0 ? 0 : 1;
        if (run.first[who].at == 0 ||
            run.first[who].at - run.began < INT64_C(60) * NS_PER_S)
            run.first[who] = *end;
        run.last[who] = *end;
    }
}

static void print_growth(void)
{
    const struct nem_end *a = run.first, *b = run.last;
    printf("process 0: %lld KiB, %u descriptors, %u threads; at the end %lld KiB, %u, "
           "%u\n",
           (long long)a[0].memory / 1024, a[0].descriptors, a[0].threads,
           (long long)b[0].memory / 1024, b[0].descriptors, b[0].threads);
    printf("server: %lld KiB, %u keys; at the end %lld KiB, %u\n",
           (long long)a[1].memory / 1024, a[1].threads, (long long)b[1].memory / 1024,
           b[1].threads);
}

/* Reads the files of the round's directory and judges them. */
static unsigned long judge(const char *dir, struct nem_round *round, unsigned long number)
{
    struct nem_verdict verdict = { 0 };
    struct nem_files files;

    if (!nem_files_read(&files, dir, round))
        test_die("%s is not readable", dir);
    memcpy(round->last_token, run.last_token, sizeof(run.last_token));
    nem_judge(round, &verdict, stdout, SHOWN);
    memcpy(run.last_token, round->last_token, sizeof(run.last_token));
    count_faults(round);
    add_verdict(&verdict);
    unsigned long bad = total(verdict.violations);
    printf("round %lu: %lu operations, %lu successes, %lu hand-overs, %lu losses, %lu "
           "recoveries, %lu failovers, %zu faults, %lu excused, %lu violations; cpu %.2f "
           "s, stalled %u %%%s\n",
           number, verdict.operations, verdict.successes, verdict.handovers,
           verdict.losses, verdict.burials, verdict.failovers, round->fault_count,
           total(verdict.excused), bad, (double)round->cpu_ns / NS_PER_S,
           verdict.stalled_percent,
           verdict.inconclusive ? ": INCONCLUSIVE, this machine stood still" : "");
    keep_looks(round);
    fflush(stdout);
    nem_files_free(&files);
    return bad;
}

static void one_round(unsigned long number)
{
    char dir[PATH_MAX];
    struct nem_plan plan = plan_of(number);

    snprintf(dir, sizeof(dir), "%s/round.%lu", run.dir, number);
    if (mkdir(dir, 0755) != 0)
        test_die("%s: %s", dir, strerror(errno));
    nem_faults_turn(run.faults, dir);
    nem_pulse_into(dir);
    struct nem_marks *marks =
        nem_has_ledger(opt.servers)
            ? nem_marks_start(nem_faults_server(run.faults), dir, MARK_MS)
            : NULL;
    struct nem_workers workers = nem_crew_workers(run.crew);
    struct nem_times times = nem_times_of(opt.crew.lease_ms, opt.crew.presence_ms);
    struct nem_round round = round_of(number, &times);

    int64_t cpu_ns = nem_crew_cpu_ns(run.crew);
    for (size_t i = 0; i < plan.count; i++)
        run.planned[plan.steps[i].kind]++;
    nem_crew_work(run.crew, dir);
    nem_faults_run(run.faults, &plan, &workers);
    round.calm = now_boot();
    test_pause_ms(times.tail_ms);
    round.ended = now_boot();
    round.cpu_ns = nem_crew_cpu_ns(run.crew) - cpu_ns;
    round.given_up = nem_crew_rest(run.crew, times.rest_ms);
    nem_round_look(run.faults, run.crew, &round, &run.looks, dir);
    if (marks)
        nem_marks_stop(marks);
    nem_pulse_into(NULL);
    nem_faults_archive(run.faults);
    nem_round_save(&round, dir);
    unsigned long bad = judge(dir, &round, number);
    if (bad > 0 || opt.keep)
        printf("round %lu is kept in %s; nemesis --explain %s\n", number, dir, dir);
    else
        nem_remove_tree(dir);
    nem_plan_free(&plan);
}

/* ---- all */

static void print_sum(void)
{
    printf(
        "operations %lu, successes %lu, hand-overs %lu, losses told %lu, recoveries %lu, "
        "failovers %lu\n"
        "faults:",
        run.sum.operations, run.sum.successes, run.sum.handovers, run.sum.losses,
        run.sum.burials, run.sum.failovers);
    for (int i = 0; i < NEM_KINDS; i++)
        if (run.faults_by_kind[i] > 0)
            printf(" %s %lu", nem_kind_name((enum nem_kind)i), run.faults_by_kind[i]);
    printf(
        " (of one connection %lu; stalls of this machine %lu; rounds %lu, inconclusive "
        "%lu)",
        run.of_one, run.stalls, run.rounds, run.inconclusive);
    if (run.sum.wait_bound_ms > 0)
        printf("\nlongest wait for a lock that nobody had: %ld ms, of %ld that it may be",
               run.sum.wait_ms, run.sum.wait_bound_ms);
    printf("\n%-10s %10s %10s %10s\n", "rule", "judged", "excused", "violations");
    for (int i = 0; i < NEM_RULES; i++)
        printf("%-10s %10lu %10lu %10lu\n", nem_rule_name((enum nem_rule)i),
               run.sum.judged[i], run.sum.excused[i], run.sum.violations[i]);
}

/* The rules that a run must have tried: in a short run only those that are always
 * tried. */
static bool must_be_tried(enum nem_rule rule)
{
    enum { ROUNDS = 3, ROUNDS_OF_DEATHS = 12, LOCKS = 6 };
    static const enum nem_rule always[] = { NEM_RULE_EXCLUSION, NEM_RULE_GRANT,
                                            NEM_RULE_BELIEF,    NEM_RULE_UNLOCK,
                                            NEM_RULE_CODE,      NEM_RULE_BOUND,
                                            NEM_RULE_STARVED,   NEM_RULE_HUNG,
                                            NEM_RULE_LEAK };
    if (opt.must >> rule & 1)
        return true;
    if (!nem_has_ledger(opt.servers) && nem_rule_needs_ledger(rule))
        return false;
    unsigned long rounds = run.rounds - run.inconclusive;
    if (rule == NEM_RULE_BURIED || rule == NEM_RULE_DEAD || rule == NEM_RULE_SOON)
        return opt.in_turn && opt.crew.guard != NEM_GUARD_OFF &&
               rounds >= ROUNDS_OF_DEATHS && opt.crew.locks > LOCKS;
    if (rounds >= ROUNDS && opt.crew.locks >= LOCKS)
        return rule != NEM_RULE_SPINS || cores() > 0;
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        if (always[i] == rule)
            return true;
    return false;
}

static unsigned long untried(void)
{
    unsigned long count = 0;
    for (int i = 0; i < NEM_RULES; i++)
        if (run.sum.judged[i] == 0 && must_be_tried((enum nem_rule)i)) {
            printf("rule %s was not tried\n", nem_rule_name((enum nem_rule)i));
            count++;
        }
    return count;
}

/* Counts the faults that were planned often and never happened. */
static unsigned long never_happened(void)
{
    enum { OFTEN = 5 };
    unsigned long count = 0;
    for (int i = 0; i < NEM_KINDS; i++)
        if (run.planned[i] >= OFTEN && run.faults_by_kind[i] == 0) {
            printf("fault %s never happened\n", nem_kind_name((enum nem_kind)i));
            count++;
        }
    return count;
}

static int finish(unsigned long others)
{
    print_growth();
    print_sum();
    unsigned long bad = total(run.sum.violations) + others;
    if (bad == 0 && 2 * run.inconclusive > run.rounds) {
        printf("%lu of %lu rounds say nothing: this machine stood still\n",
               run.inconclusive, run.rounds);
        return INCONCLUSIVE;
    }
    unsigned long gaps = untried() + never_happened();
    if (bad == 0 && gaps > 0 && run.rounds == 1) {
        puts("one round has not tried all that it must");
        return INCONCLUSIVE;
    }
    bad += gaps;
    if (bad == 0 && !opt.keep && run.dir[0] != '\0')
        nem_remove_tree(run.dir);
    printf("violations: %lu, seed %" PRIu64 "\n", bad, opt.seed);
    return bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int explain(void)
{
    struct nem_round round;
    if (!nem_round_load(&round, opt.explain)) {
        fprintf(stderr, "nemesis: %s is no round that was kept\n", opt.explain);
        return EXIT_FAILURE;
    }
    return judge(opt.explain, &round, 0) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void start_servers(void)
{
    const char *coverage[] = { "--cluster-require-full-coverage",
                               has_full_coverage() ? "yes" : "no", NULL };
    bool is_cluster = nem_is_cluster(opt.servers);
    enum nem_servers servers = opt.servers;
    if (opt.unconfirmed)
        servers = is_cluster ? NEM_CLUSTER : NEM_SENTINEL;
    run.faults = nem_faults_start_servers(run.dir, opt.crew.processes, servers,
                                          is_cluster ? coverage : NULL);
}

static void make_directory(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(run.dir, sizeof(run.dir), "%s/nemesis.XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(run.dir))
        test_die("%s: %s", run.dir, strerror(errno));
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that no output is lost if the program
                                         aborts */
    nem_options_take(&opt, argc, argv);
    if (opt.explain)
        return explain();
    if (opt.plan_only) {
        struct nem_plan plan = plan_of(0);
        print_plan(&plan);
        nem_plan_free(&plan);
        return EXIT_SUCCESS;
    }
    if (opt.servers == NEM_TLS && !TEST_TLS) {
        puts("skipped: nemesis --servers tls: the library was built without TLS");
        return SKIPPED;
    }
    if (opt.servers == NEM_TLS && !test_server_has_tls()) {
        puts("skipped: nemesis --servers tls: the server was built without TLS");
        return SKIPPED;
    }
    printf("nemesis: seed %" PRIu64 ", %u processes, %u threads each, %u locks, lease "
           "%ld ms, guard %s, servers %s\n",
           opt.seed, opt.crew.processes, opt.crew.threads, opt.crew.locks,
           opt.crew.lease_ms, nem_guard_name(opt.crew.guard),
           nem_servers_name(opt.servers));
    fflush(stdout);
    make_directory();
    if (opt.crew.guard != NEM_GUARD_OFF)
        opt.crew.rundir = nem_shelf_open();
    run.began = now_boot();
    nem_pulse_start(NEM_ALL);
    start_servers();
    for (int i = 0; i < NEM_KINDS; i++)
        run.possible |= (uint64_t)nem_faults_possible(run.faults, (enum nem_kind)i) << i;
    run.crew = nem_crew_start(&opt.crew, run.faults);
    int64_t end = test_now_ms() + opt.minutes * MS_PER_MINUTE;
    for (unsigned long i = 0;
         opt.minutes > 0 ? i == 0 || test_now_ms() < end : i < opt.rounds; i++)
        one_round(i);
    unsigned long bad_ends = nem_crew_end(run.crew, END_MS);
    nem_pulse_stop();
    nem_faults_turn(run.faults, run.dir);
    nem_faults_stop(run.faults);
    nem_shelf_close();
    return finish(bad_ends);
}
