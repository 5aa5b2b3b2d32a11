/* SPDX-License-Identifier: Apache-2.0 */
/* See crew.h. State: in the crew, which one thread uses. */
#include "crew.h"

#include "die.h"
#include "program.h"
#include "wait.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MS = 20000, DYING_MS = 1000, LOOK_MS = 2, TEXT = 512 };
enum { NS_PER_S = 1000000000 };

struct member {
    struct nem_crew *crew;
    struct test_program program;
    unsigned life; /* from 1 */
    bool ending;   /* the crew asked it to end */
    bool falling;  /* the crew asked it to kill itself */
    bool resting;
    int status;      /* the wait status of its end */
    char client[64]; /* its client's uuid; "": unknown */
};

struct nem_crew {
    struct nem_crew_options options;
    struct nem_faults *faults;
    struct member *members;
    int64_t ended_cpu_ns; /* of lives that have ended */
    char dir[PATH_MAX];   /* "": the processes rest */
};

/* ---- ends of processes */

static void print_bad_end(const struct nem_crew *crew, unsigned process)
{
    const struct member *m = &crew->members[process];
    printf("violation of crash: process %u (life %u) ended with status 0x%x\n", process,
           m->life, (unsigned)m->status);
}

__attribute__((noreturn)) static void ended_by_itself(const struct nem_crew *crew,
                                                      unsigned process)
{
    print_bad_end(crew, process);
    test_die("process %u of the nemesis has ended by itself; its round: %s", process,
             crew->dir[0] ? crew->dir : "none");
}

static int64_t cpu_of(const struct member *m)
{
    clockid_t clock;
    struct timespec t;
    if (m->program.pid <= 0 || clock_getcpuclockid(m->program.pid, &clock) != 0 ||
        clock_gettime(clock, &t) != 0)
        return 0;
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static bool has_ended(struct member *m)
{
    enum { NS_PER_US = 1000 };
    struct rusage used;
    if (m->program.pid == 0)
        return true;
    if (wait4(m->program.pid, &m->status, WNOHANG, &used) != m->program.pid)
        return false;
    m->crew->ended_cpu_ns +=
        (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * NS_PER_S +
        (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * NS_PER_US;
    m->program.pid = 0;
    return true;
}

static void must_run(struct nem_crew *crew, unsigned process)
{
    struct member *m = &crew->members[process];
    if (!m->ending && !m->falling && has_ended(m))
        ended_by_itself(crew, process);
}

static bool member_has_ended(void *arg)
{
    return has_ended(arg);
}

/* The process does not obey: it has ended, or is about to end, or hangs. Ends the run. */
__attribute__((noreturn)) static void is_amiss(struct nem_crew *crew, unsigned process,
                                               const char *what)
{
    struct member *m = &crew->members[process];
    test_wait_until(member_has_ended, m, DYING_MS);
    must_run(crew, process);
    test_die("process %u of the nemesis %s", process, what);
}

/* Kills the process. If it was already dead, its status is another than SIGKILL's. */
static void end_life(struct nem_crew *crew, unsigned process)
{
    struct member *m = &crew->members[process];
    if (m->program.pid != 0) {
        crew->ended_cpu_ns += cpu_of(m);
        test_program_kill(&m->program);
        m->status = m->program.status;
        bool killed = WIFSIGNALED(m->status) && WTERMSIG(m->status) == SIGKILL;
        if (!killed && !(m->ending && m->status == 0))
            ended_by_itself(crew, process);
    }
    test_program_end(&m->program);
}

/* ---- commands to processes */

static void expect_work(struct nem_crew *crew, unsigned process)
{
    char line[TEXT];
    struct member *m = &crew->members[process];
    if (!test_program_read(&m->program, line, sizeof(line), ANSWER_MS) ||
        sscanf(line, "working %63s", m->client) != 1)
        is_amiss(crew, process, "does not work");
}

static void tell(struct nem_crew *crew, unsigned process, const char *line)
{
    if (!test_program_write(&crew->members[process].program, line))
        is_amiss(crew, process, "does not listen");
}

static void send_to_work(struct nem_crew *crew, unsigned process)
{
    char line[PATH_MAX + 16];
    if (crew->dir[0] == '\0')
        return;
    snprintf(line, sizeof(line), "round %s", crew->dir);
    tell(crew, process, line);
    expect_work(crew, process);
}

/* Makes the measured memory that which the process uses: otherwise glibc keeps freed
 * blocks, for each thread and size, and these stores grow for an hour. */
#define PLAIN_HEAP "GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1"

static bool is_guarded(const struct nem_crew_options *o, unsigned process, unsigned life)
{
    uint64_t z =
        (o->seed ^ ((uint64_t)process << 32 | life)) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    return o->rundir && (o->guard == NEM_GUARD_ON || z >> 63);
}

static void begin_life(struct nem_crew *crew, unsigned process)
{
    const struct nem_crew_options *o = &crew->options;
    struct member *m = &crew->members[process];
    char path[PATH_MAX], url[NEM_URL_MAX + TEXT], link[TEXT], rundir[PATH_MAX];
    char number[8][24], workers_url[NEM_URL_MAX], addresses[NEM_LINK_MAX];

    m->life++;
    m->ending = m->falling = false;
    m->client[0] = '\0';
    m->status = 0;
    test_build_path(path, sizeof(path), "tests/nemesis/crewman");
    nem_faults_link(crew->faults, process, addresses);
    snprintf(link, sizeof(link), "NEMESIS_LINK=%s", addresses);
    snprintf(rundir, sizeof(rundir), "RLOCK_RUNDIR=%s",
             is_guarded(o, process, m->life) ? o->rundir : "");
    nem_faults_workers_url(crew->faults, workers_url);
    snprintf(url, sizeof(url),
             "RLOCK_URL=%slease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld",
             workers_url, o->lease_ms, o->presence_ms, o->commandtimeout_ms,
             o->commandtimeout_ms);
    snprintf(number[0], sizeof(number[0]), "%u", process);
    snprintf(number[1], sizeof(number[1]), "%u", m->life);
    snprintf(number[2], sizeof(number[2]), "%u", o->threads);
    snprintf(number[3], sizeof(number[3]), "%u", o->locks);
    snprintf(number[4], sizeof(number[4]), "%ld", o->lease_ms);
    snprintf(number[5], sizeof(number[5]), "%llu", (unsigned long long)o->seed);
    snprintf(number[6], sizeof(number[6]), "%u", o->long_percent);
    snprintf(number[7], sizeof(number[7]), "%u", o->think_ms);
    const char *argv[] = { path,      number[0], number[1], number[2], number[3],
                           number[4], number[5], number[6], number[7], NULL };
    test_program_start(&m->program, argv,
                       (const char *const[]){ PLAIN_HEAP, url, link, rundir, NULL });
    send_to_work(crew, process);
}

struct nem_crew *nem_crew_start(const struct nem_crew_options *options,
                                struct nem_faults *faults)
{
    struct nem_crew *crew = calloc(1, sizeof(*crew));
    if (!crew || !(crew->members = calloc(options->processes, sizeof(*crew->members))))
        test_die("out of memory");
    crew->options = *options;
    crew->faults = faults;
    for (unsigned i = 0; i < options->processes; i++) {
        crew->members[i].crew = crew;
        begin_life(crew, i);
    }
    return crew;
}

/* ---- faults of processes */

int64_t nem_crew_cpu_ns(const struct nem_crew *crew)
{
    int64_t sum = crew->ended_cpu_ns;
    for (unsigned i = 0; i < crew->options.processes; i++)
        sum += cpu_of(&crew->members[i]);
    return sum;
}

static void kill_one(void *arg, unsigned process)
{
    end_life(arg, process);
}

static void restart_one(void *arg, unsigned process)
{
    end_life(arg, process);
    begin_life(arg, process);
}

static void stop_one(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    must_run(crew, process);
    test_program_stop(&crew->members[process].program);
}

static void cont_one(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    test_program_cont(&crew->members[process].program);
}

/* The process ends when its stdin ends. */
static void close_input(struct member *m)
{
    if (m->program.in >= 0)
        close(m->program.in);
    m->program.in = -1;
    m->ending = true;
}

static void term_one(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    must_run(crew, process);
    close_input(&crew->members[process]);
}

static bool gone_one(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    struct member *m = &crew->members[process];
    if (!has_ended(m))
        return false;
    if (m->status != 0)
        ended_by_itself(crew, process);
    return true;
}

static void fall_one(void *arg, unsigned process, enum nem_kind kind, enum nem_type type)
{
    char line[TEXT];
    struct nem_crew *crew = arg;
    must_run(crew, process);
    crew->members[process].falling = true;
    snprintf(line, sizeof(line), "fall %d %d", (int)kind, (int)type);
    tell(crew, process, line);
}

static bool fallen_one(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    struct member *m = &crew->members[process];
    if (!has_ended(m))
        return false;
    if (!WIFSIGNALED(m->status) || WTERMSIG(m->status) != SIGKILL)
        ended_by_itself(crew, process);
    return true;
}

static void close_low_one(void *arg, unsigned process, unsigned what)
{
    char line[TEXT];
    struct nem_crew *crew = arg;
    must_run(crew, process);
    snprintf(line, sizeof(line), "close %u", what);
    tell(crew, process, line);
}

static void open_low_one(void *arg, unsigned process, unsigned what)
{
    char line[TEXT];
    struct nem_crew *crew = arg;
    must_run(crew, process);
    snprintf(line, sizeof(line), "open %u", what);
    tell(crew, process, line);
}

static const char *client_of(void *arg, unsigned process)
{
    struct nem_crew *crew = arg;
    const char *client = crew->members[process].client;
    return client[0] ? client : NULL;
}

struct nem_workers nem_crew_workers(struct nem_crew *crew)
{
    return (struct nem_workers){ .arg = crew,
                                 .kill = kill_one,
                                 .restart = restart_one,
                                 .stop = stop_one,
                                 .cont = cont_one,
                                 .term = term_one,
                                 .gone = gone_one,
                                 .fall = fall_one,
                                 .fallen = fallen_one,
                                 .close_low = close_low_one,
                                 .open_low = open_low_one,
                                 .client = client_of };
}

/* ---- rounds */

void nem_crew_work(struct nem_crew *crew, const char *dir)
{
    snprintf(crew->dir, sizeof(crew->dir), "%s", dir);
    for (unsigned i = 0; i < crew->options.processes; i++)
        send_to_work(crew, i);
}

static bool says_that_it_rests(struct nem_crew *crew, unsigned process)
{
    char line[TEXT];
    struct member *m = &crew->members[process];
    if (!test_program_read(&m->program, line, sizeof(line), 0)) {
        must_run(crew, process);
        return false;
    }
    if (strcmp(line, "resting") != 0)
        test_die("process %u of the nemesis is not resting, but %s", process, line);
    return true;
}

static bool all_rest(struct nem_crew *crew)
{
    bool all = true;
    for (unsigned i = 0; i < crew->options.processes; i++) {
        struct member *m = &crew->members[i];
        m->resting = m->resting || says_that_it_rests(crew, i);
        all = all && m->resting;
    }
    return all;
}

static int64_t now_boot(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

int64_t nem_crew_rest(struct nem_crew *crew, long ms)
{
    for (unsigned i = 0; i < crew->options.processes; i++) {
        crew->members[i].resting = false;
        tell(crew, i, "rest");
    }
    int64_t end = test_now_ms() + ms;
    bool last = false, all;
    while (!(all = all_rest(crew)) && !last) {
        test_pause_ms(LOOK_MS);
        last = test_now_ms() >= end;
    }
    int64_t given_up = all ? 0 : now_boot();
    if (!all)
        nem_faults_tell_keys(crew->faults);
    crew->dir[0] = '\0'; /* a life that begins now rests as well */
    for (unsigned i = 0; i < crew->options.processes; i++)
        if (!crew->members[i].resting)
            restart_one(crew, i);
    return given_up;
}

void nem_crew_look(struct nem_crew *crew, struct nem_end *ends)
{
    for (unsigned i = 0; i < crew->options.processes; i++) {
        char line[TEXT];
        long long memory = 0;
        struct member *m = &crew->members[i];
        ends[i] = (struct nem_end){ .at = now_boot(),
                                    .process = (uint16_t)i,
                                    .life = (uint16_t)m->life };
        tell(crew, i, "look");
        if (!test_program_read(&m->program, line, sizeof(line), ANSWER_MS) ||
            sscanf(line, "%u %u %lld", &ends[i].descriptors, &ends[i].threads, &memory) !=
                3)
            is_amiss(crew, i, "does not say what it uses");
        ends[i].memory = memory;
    }
}

static bool all_have_ended(void *arg)
{
    struct nem_crew *crew = arg;
    bool all = true;
    for (unsigned i = 0; i < crew->options.processes; i++)
        all = has_ended(&crew->members[i]) && all;
    return all;
}

unsigned long nem_crew_end(struct nem_crew *crew, long ms)
{
    unsigned long bad = 0;

    for (unsigned i = 0; i < crew->options.processes; i++) {
        must_run(crew, i);
        close_input(&crew->members[i]);
    }
    test_wait_until(all_have_ended, crew, ms);
    for (unsigned i = 0; i < crew->options.processes; i++) {
        struct member *m = &crew->members[i];
        if (m->program.pid == 0 && m->status != 0)
            print_bad_end(crew, i);
        else if (m->program.pid != 0)
            printf("violation of hung: process %u (life %u) does not end\n", i, m->life);
        bad += m->program.pid != 0 || m->status != 0;
        test_program_end(&m->program);
    }
    free(crew->members);
    free(crew);
    return bad;
}
