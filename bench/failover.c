/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How soon locks can be taken after a failover of Sentinel, and which locks it loses, of
 * several contenders in the same failovers: failover COUNT CONTENDER...
 * (bench/failover_run names them). A contender is "name: command"; the command gets a
 * number and the ports of the sentinels as further arguments, and speaks as
 * failover_rlock.c says.
 *
 * By turns the master is killed, is stopped until a switch is announced, or the sentinels
 * are asked to fail over. Counted from the first +switch-master of any sentinel, and from
 * the fault: the first lock() of the contender that returned after that message and whose
 * key the new master has had. A lock that the old master still gives does not count,
 * since others cannot see it. Lost: locks that were given, and not given back before the
 * fault, whose keys the new master never had; and long holds that are gone, or another's.
 */
#include "failover.h"
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    COUNT_MAX = 1000,
    LIMIT_MS = 60000, /* who has no lock then had none */
    SWITCH_MS = 30000,
    DEAD_MS = 5000, /* so long a killed server is away */
    SETTLE_MS = 500,
    LOOK_MS = 200,
    CONVERT_MS = 25000, /* Sentinel makes an old master a replica within some 10 s */
    HUNDRED = 100,
    NAME_WIDTH = 24
};
#define NS_PER_MS (NS_PER_S / 1000)

static const char *const fault_names[FAULTS] = { "SIGKILL", "SIGSTOP",
                                                 "SENTINEL FAILOVER" };

/* What one failover was for one contender. */
struct figures {
    int64_t from_switch, from_fault;
    bool never; /* no lock within LIMIT_MS; both times are that */
    long lost, lost_after, lock_errors, unlock_errors;
    bool hold_lost, hold_known;
};

static struct figures figures[CONTENDERS_MAX][COUNT_MAX];
static int64_t switch_times[COUNT_MAX];
static int count;

/* ---- conditions */

struct since {
    int64_t at;
    int server;
};

static bool all_lock(void *arg)
{
    const struct since *since = arg;

    for (int i = 0; i < contender_count; i++)
        if (locks_first(&contenders[i], since->at, since->server) == 0)
            return false;
    return true;
}

static bool has_switched(void *arg)
{
    (void)arg;
    return watch_switch.at != 0;
}

static int server_at(unsigned port)
{
    for (int i = 0; i < DATA; i++)
        if (data[i].port == port)
            return i;
    die("the new master has port %u", port);
}

/* Waits until the servers are what the sentinels say. An old master is made a replica by
 * the sentinels, or by us when they take too long. */
static int await_calm(void)
{
    int64_t begun = now_ns();
    bool helped = false;

    for (;;) {
        int master = servers_master();
        int64_t waited = (now_ns() - begun) / NS_PER_MS;
        if (master >= 0 && servers_follow(master))
            return master;
        if (waited > 2 * CONVERT_MS)
            die("the servers do not agree on a master");
        if (waited > CONVERT_MS && !helped && master >= 0) {
            servers_lead(master);
            helped = true;
        }
        watch_for(LOOK_MS);
    }
}

/* ---- the long holds */

static void take_hold(struct contender *c, int master)
{
    char key[WORD_MAX];

    c->hold = (unsigned)atoi(watch_ask(c, "hold"));
    snprintf(key, sizeof(key), "fo-%d-hold-%u", (int)(c - contenders), c->hold);
    if (!servers_field(master, key, c->hold_field, sizeof(c->hold_field)))
        die("%s has no key of its long hold", c->name);
}

/* Looks whether the hold is there, and takes the next one if it is not. */
static void check_hold(struct contender *c, struct figures *f, int master)
{
    char key[WORD_MAX], field[WORD_MAX];

    snprintf(key, sizeof(key), "fo-%d-hold-%u", (int)(c - contenders), c->hold);
    if (servers_field(master, key, field, sizeof(field)) &&
        strcmp(field, c->hold_field) == 0)
        return;
    f->hold_lost = true;
    f->hold_known = strcmp(watch_ask(c, "check"), "lost") == 0;
    take_hold(c, master);
}

/* ---- one failover */

static void judge(struct contender *c, struct figures *f, int64_t fault, int master)
{
    int64_t first = locks_first(c, watch_switch.at, master);

    f->never = first == 0;
    f->from_switch = f->never ? LIMIT_MS * NS_PER_MS : first - watch_switch.at;
    f->from_fault = f->never ? LIMIT_MS * NS_PER_MS : first - fault;
    f->lost = locks_lost(c, fault, watch_switch.at, master, &f->lost_after);
    f->lock_errors = c->lock_errors;
    f->unlock_errors = c->unlock_errors;
}

static void say_one(enum fault fault)
{
    printf("%3d %-17s switched after %6.0f ms:", count + 1, fault_names[fault],
           (double)switch_times[count] / NS_PER_MS);
    for (int i = 0; i < contender_count; i++) {
        const struct figures *f = &figures[i][count];
        printf("  %s %.1f ms%s, lost %ld, errors %ld%s;", contenders[i].name,
               (double)f->from_switch / NS_PER_MS, f->never ? " (none)" : "", f->lost,
               f->lock_errors + f->unlock_errors, f->hold_lost ? ", its hold" : "");
    }
    putchar('\n');
    fflush(stdout);
}

/* false: none took place, as when Sentinel aborts it, or another one followed. It does
 * not count. */
static bool fail_over(enum fault fault)
{
    int old = await_calm();
    struct since since = { now_ns(), old };

    watch_connect();
    if (!watch_until(all_lock, &since, LIMIT_MS))
        die("not all contenders take locks");
    servers_copied(old);
    watch_forget();
    watch_for(SETTLE_MS);
    int64_t at = servers_fail(fault, old, count % SENTINELS);
    if (!watch_until(has_switched, NULL, SWITCH_MS)) {
        servers_mend(fault, old, old);
        return false;
    }
    int master = server_at(watch_switch.port);
    since = (struct since){ watch_switch.at, master };
    switch_times[count] = watch_switch.at - at;
    if (fault == FAULT_STOP)
        servers_mend(fault, old, master);
    watch_until(all_lock, &since, LIMIT_MS);
    if (fault == FAULT_KILL)
        watch_for(DEAD_MS);
    if (fault != FAULT_STOP)
        servers_mend(fault, old, master);
    bool same = await_calm() == master;
    watch_for(SETTLE_MS);
    for (int i = 0; i < contender_count; i++) {
        struct figures *f = &figures[i][count];
        memset(f, 0, sizeof(*f));
        judge(&contenders[i], f, at, master);
        if (contenders[i].error[0])
            printf("      %s: %s\n", contenders[i].name, contenders[i].error);
        check_hold(&contenders[i], f, servers_master());
    }
    return same;
}

/* ---- the table */

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct spread {
    double median, ninety, worst; /* ms */
};

static struct spread spread_of(int64_t *values, int n)
{
    if (n == 0)
        return (struct spread){ 0, 0, 0 };
    qsort(values, (size_t)n, sizeof(*values), by_size);
    return (struct spread){
        .median = (double)(values[(n - 1) / 2] + values[n / 2]) / 2 / NS_PER_MS,
        .ninety = (double)values[(n * 90 + HUNDRED - 1) / HUNDRED - 1] / NS_PER_MS,
        .worst = (double)values[n - 1] / NS_PER_MS,
    };
}

/* fault < 0: of all kinds. */
static struct spread spread_from(int contender, bool switched, int fault)
{
    int64_t values[COUNT_MAX];
    int n = 0;

    for (int i = 0; i < count; i++)
        if (fault < 0 || i % FAULTS == fault)
            values[n++] = switched ? figures[contender][i].from_switch
                                   : figures[contender][i].from_fault;
    return spread_of(values, n);
}

static struct figures sum_of(int contender, int *ret_holds, int *ret_known,
                             int *ret_never)
{
    struct figures sum = { 0 };

    for (int i = 0; i < count; i++) {
        const struct figures *f = &figures[contender][i];
        sum.lost += f->lost;
        sum.lost_after += f->lost_after;
        sum.lock_errors += f->lock_errors;
        sum.unlock_errors += f->unlock_errors;
        *ret_holds += f->hold_lost;
        *ret_known += f->hold_known;
        *ret_never += f->never;
    }
    return sum;
}

static void say_times(void)
{
    printf("\n%-*s %-35s %-25s\n", NAME_WIDTH, "next lock, ms", "after +switch-master",
           "after the fault");
    printf("%-*s %8s %8s %8s %8s %12s %12s\n", NAME_WIDTH, "", "median", "90 %", "worst",
           "none", "median", "worst");
    for (int i = 0; i < contender_count; i++) {
        struct spread s = spread_from(i, true, -1), f = spread_from(i, false, -1);
        int holds = 0, known = 0, never = 0;
        sum_of(i, &holds, &known, &never);
        printf("%-*s %8.1f %8.1f %8.1f %8d %12.1f %12.1f\n", NAME_WIDTH,
               contenders[i].name, s.median, s.ninety, s.worst, never, f.median, f.worst);
    }
}

static void say_kinds(void)
{
    printf("\n%-*s", NAME_WIDTH, "by fault: median, worst");
    for (int k = 0; k < FAULTS; k++)
        printf(" %20s", fault_names[k]);
    putchar('\n');
    for (int i = 0; i < contender_count; i++) {
        printf("%-*s", NAME_WIDTH, contenders[i].name);
        for (int k = 0; k < FAULTS; k++) {
            struct spread s = spread_from(i, true, k);
            printf(" %11.1f %8.1f", s.median, s.worst);
        }
        putchar('\n');
    }
    int64_t values[COUNT_MAX];
    memcpy(values, switch_times, sizeof(values));
    struct spread s = spread_of(values, count);
    printf("from the fault to +switch-master: %.0f ms, %.0f\n", s.median, s.worst);
}

static void say_losses(void)
{
    printf("\n%-*s %12s %18s %14s %14s %16s\n", NAME_WIDTH, "of all failovers",
           "locks lost", "of them after it", "lock() failed", "unlock() failed",
           "holds, known");
    for (int i = 0; i < contender_count; i++) {
        int holds = 0, known = 0, never = 0;
        struct figures sum = sum_of(i, &holds, &known, &never);
        printf("%-*s %12ld %18ld %14ld %14ld %12d, %d\n", NAME_WIDTH, contenders[i].name,
               sum.lost, sum.lost_after, sum.lock_errors, sum.unlock_errors, holds,
               known);
    }
}

static void say_ratios(void)
{
    double ours = spread_from(0, true, -1).median;

    putchar('\n');
    for (int i = 1; i < contender_count; i++)
        printf("%s by %s: %.1f of its median\n", contenders[i].name, contenders[0].name,
               spread_from(i, true, -1).median / ours);
}

/* ---- begin and end */

static void end(void)
{
    watch_end();
    servers_stop();
}

static void check_clock(struct contender *c)
{
    int64_t before = now_ns(), at = strtoll(watch_ask(c, "clock"), NULL, 10);

    if (at < before || at > now_ns())
        die("the clock of %s is not CLOCK_MONOTONIC", c->name);
}

int main(int argc, char **argv)
{
    int wanted = argc > 2 ? atoi(argv[1]) : 0;

    if (wanted < 1 || wanted > COUNT_MAX)
        die("usage: failover COUNT CONTENDER...");
    servers_start();
    atexit(end);
    at_quick_exit(end);
    watch_signals();
    watch_connect();
    int master = await_calm();
    for (int i = 2; i < argc; i++)
        watch_contender(argv[i]);
    for (int i = 0; i < contender_count; i++) {
        watch_ask(&contenders[i], "clock"); /* it has started */
        check_clock(&contenders[i]);
        take_hold(&contenders[i], master);
    }
    for (int tries = 0; count < wanted && tries < 2 * wanted; tries++) {
        enum fault fault = (enum fault)(count % FAULTS);
        if (fail_over(fault)) {
            say_one(fault);
            count++;
        } else {
            puts("    not counted: the sentinels aborted it, or another one followed");
        }
    }
    if (count < wanted)
        die("too many failovers that do not count");
    say_times();
    say_kinds();
    say_losses();
    say_ratios();
    return EXIT_SUCCESS;
}
