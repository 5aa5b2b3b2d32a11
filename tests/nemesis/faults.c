/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the server and the links, and carries plans out: it goes through the list of
 * steps that are due again and again. No step waits for another, except for one that it
 * clashes with. Faults of processes, of links, of the server and of its data have their
 * own files.
 */
#include "faults_impl.h"

#include "authority.h"
#include "die.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAUGHT_UP_MS = 120000, UP_MS = 20000, STUCK_MS = 60000 };
enum { GONE_MS = 50000, LOG_MODE = 0644, DIR_MODE = 0755, TICK_MS = 1 };

int64_t nem_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 * NEM_NS_PER_MS + ts.tv_nsec;
}

void nem_record(struct nem_faults *f, const struct nem_fault *record)
{
    if (write(f->log, record, sizeof(*record)) != (ssize_t)sizeof(*record))
        test_die("cannot write the faults: %s", strerror(errno));
}

/* ---- programs */

static bool spawn(const char *path, const char *const argv[], int in)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int status = -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc =
        posix_spawnp(&pid, path, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (rc != 0)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool nem_run_program(const char *const argv[], const char *input)
{
    char sbin[128];
    FILE *file = tmpfile();
    if (!file || (input && fputs(input, file) < 0) || fflush(file) != 0)
        test_die("cannot write a temporary file: %s", strerror(errno));
    snprintf(sbin, sizeof(sbin), "/sbin/%s", argv[0]); /* not in every user's PATH */
    const char *path = access(sbin, X_OK) == 0 ? sbin : argv[0];
    rewind(file);
    bool done = spawn(path, argv, fileno(file));
    fclose(file);
    return done;
}

/* ---- start and stop */

void nem_faults_turn(struct nem_faults *f, const char *dir)
{
    char path[PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/faults", dir);
    if (len < 0 || (size_t)len >= sizeof(path))
        test_die("path too long");
    snprintf(f->dir, sizeof(f->dir), "%s", dir);
    f->epoch = 0;
    if (f->log >= 0)
        close(f->log);
    f->log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE);
    if (f->log < 0)
        test_die("cannot write %s: %s", path, strerror(errno));
}

void nem_faults_bounds(struct nem_faults *f, long gone_ms, long stuck_ms)
{
    f->gone_ms = gone_ms;
    f->stuck_ms = stuck_ms;
}

struct nem_faults *nem_faults_start(const char *dir, unsigned processes,
                                    const char *const server_args[])
{
    return nem_faults_start_servers(dir, processes, NEM_PLAIN, server_args);
}

struct nem_faults *nem_faults_start_servers(const char *dir, unsigned processes,
                                            enum nem_servers servers,
                                            const char *const server_args[])
{
    struct nem_faults *f = calloc(1, sizeof(*f));
    unsigned links = nem_is_cluster(servers)   ? TEST_CLUSTER_NODES
                     : nem_has_ledger(servers) ? 1
                                               : 0;
    if (!f || !(f->proxies = calloc(processes * links + 1, sizeof(*f->proxies))))
        test_die("out of memory");
    f->processes = processes;
    f->links = links;
    /* all nodes of a cluster have to be asked, again and again */
    nem_faults_bounds(f, test_ms(GONE_MS),
                      test_ms(nem_is_cluster(servers) ? 3 * STUCK_MS : STUCK_MS));
    f->servers = servers;
    f->log = f->tls_holder = -1;
    nem_faults_turn(f, dir);
    if (!nem_has_ledger(servers)) {
        f->net = (struct nem_net){ false, -1, -1, -1, -1, -1 };
        nem_servers_start(f, server_args);
        return f;
    }
    nem_net_open(&f->net, processes);
    nem_server_start(f, server_args);
    return f;
}

void nem_archive(struct nem_faults *f)
{
    char from[PATH_MAX], to[PATH_MAX + 32];
    snprintf(to, sizeof(to), "%s/aof.%u", f->dir, f->epoch++);
    snprintf(from, sizeof(from), "%s/appendonlydir", f->server.dir);
    if (access(from, F_OK) != 0) { /* before Redis 7 it is one file */
        snprintf(from, sizeof(from), "%s/appendonly.aof", f->server.dir);
        if (mkdir(to, DIR_MODE) != 0)
            test_die("cannot make %s: %s", to, strerror(errno));
    }
    /* not by rename(2): it may be another file system */
    if (!nem_run_program((const char *const[]){ "mv", "--", from, to, NULL }, NULL))
        test_die("cannot move %s to %s", from, to);
}

static bool caught_up(void *arg)
{
    return nem_clock_has_caught_up(arg);
}

static bool is_up(void *arg)
{
    struct nem_faults *f = arg;
    return test_server_is_up(&f->server);
}

/* Several servers: until they agree. */
static void await_servers(struct nem_faults *f)
{
    if (nem_is_cluster(f->servers))
        nem_nodes_await(&f->nodes);
    else
        nem_topology_await(&f->topology);
}

void nem_faults_archive(struct nem_faults *f)
{
    if (!nem_has_ledger(f->servers)) {
        await_servers(f);
        return;
    }
    if (!test_wait_until(caught_up, f, CAUGHT_UP_MS))
        test_die("the server's clock is too far behind");
    test_server_kill(&f->server);
    nem_archive(f);
    test_server_launch(&f->server);
    if (!test_wait_until(is_up, f, UP_MS))
        test_die("the server does not come up");
}

static void stop_server(struct nem_faults *f)
{
    test_server_shutdown(&f->server);
    nem_archive(f);
    test_server_stop(&f->server);
    test_clock_close(&f->clock);
    nem_net_close(&f->net);
    if (f->tls_holder >= 0) {
        close(f->tls_holder);
        test_authority_end();
    }
}

void nem_faults_stop(struct nem_faults *f)
{
    for (unsigned i = 0; i < f->processes * f->links; i++)
        test_proxy_stop(f->proxies[i]);
    if (nem_has_ledger(f->servers))
        stop_server(f);
    else if (nem_is_cluster(f->servers))
        nem_nodes_stop(&f->nodes);
    else
        nem_topology_stop(&f->topology);
    close(f->log);
    free(f->proxies);
    free(f);
}

struct test_server *nem_faults_server(struct nem_faults *f)
{
    struct nem_nodes *n = &f->nodes;
    return nem_has_ledger(f->servers)   ? &f->server
           : nem_is_cluster(f->servers) ? &n->node[n->master[n->aim]].server
                                        : &f->topology.data[f->topology.master];
}

unsigned nem_faults_masters(struct nem_faults *f,
                            struct test_server *ret_masters[NEM_MASTERS_MAX])
{
    if (!nem_is_cluster(f->servers)) {
        ret_masters[0] = nem_faults_server(f);
        return 1;
    }
    for (unsigned i = 0; i < TEST_CLUSTER_MASTERS; i++)
        ret_masters[i] = &f->nodes.node[f->nodes.master[i]].server;
    return TEST_CLUSTER_MASTERS;
}

const char *nem_faults_url(struct nem_faults *f, unsigned process)
{
    return f->links == 1 ? test_proxy_tcp_url(f->proxies[process]) : "";
}

void nem_faults_link(struct nem_faults *f, unsigned process, char text[NEM_LINK_MAX])
{
    const char *url = nem_faults_url(f, process);
    const char *host = strstr(url, "//");
    size_t len = (size_t)snprintf(text, NEM_LINK_MAX, "%s", host ? host + 2 : "");
    for (unsigned i = 0; f->links > 1 && i < f->links && len < NEM_LINK_MAX; i++)
        len += (size_t)snprintf(
            text + len, NEM_LINK_MAX - len, "%s%u>127.0.0.1:%u", i > 0 ? "," : "",
            (unsigned)f->nodes.node[i].port,
            (unsigned)test_proxy_port(f->proxies[process * f->links + i]));
}

void nem_faults_workers_url(const struct nem_faults *f, char url[NEM_URL_MAX])
{
    const struct test_server *s = f->topology.sentinels;
    const struct test_node *n = f->nodes.node;
    if (nem_is_cluster(f->servers))
        snprintf(url, NEM_URL_MAX,
                 "redis-cluster://" NEM_USER ":%s@127.0.0.1:%u,127.0.0.1:%u,"
                 "127.0.0.1:%u?%s",
                 f->password, (unsigned)n[0].port, (unsigned)n[1].port,
                 (unsigned)n[2].port,
                 f->servers == NEM_CLUSTER_REPLICAS ? "replicas=1&" : "");
    else if (f->servers == NEM_PLAIN)
        snprintf(url, NEM_URL_MAX, "redis://" NEM_USER ":%s@" NEM_NO_HOST ":6379?",
                 f->password);
    else if (f->servers == NEM_TLS)
        snprintf(url, NEM_URL_MAX,
                 "rediss://" NEM_USER ":%s@" NEM_NO_HOST ":6379?cafile=%s&", f->password,
                 test_authority_path("ca.crt"));
    else
        snprintf(url, NEM_URL_MAX,
                 "redis-sentinel://" NEM_USER ":%s@127.0.0.1:%u,127.0.0.1:%u,"
                 "127.0.0.1:%u/" NEM_MASTER "?%s",
                 f->password, (unsigned)s[0].port, (unsigned)s[1].port,
                 (unsigned)s[2].port,
                 f->servers == NEM_REPLICAS ? "replicas=" NEM_REPLICAS_TEXT "&" : "");
}

const char *nem_faults_password(const struct nem_faults *f)
{
    return f->password;
}

bool nem_faults_possible(struct nem_faults *f, enum nem_kind kind)
{
    return nem_kind_fits(kind, f->servers) && (kind != NEM_LINK_DOWN || f->net.on);
}

/* ---- carrying out plans */

struct run {
    struct nem_faults *f;
    const struct nem_plan *plan;
    int64_t start;
    int64_t moved; /* the last time a step became due, began or ended */
    size_t next;   /* the next step of the plan that is not due yet */
};

static const struct nem_action *action_of(const struct nem_faults *f, enum nem_kind kind)
{
    const struct nem_action *const tables[] = { nem_process_actions,
                                                nem_link_actions,
                                                nem_stranger_actions,
                                                nem_server_actions,
                                                nem_data_actions,
                                                nem_is_cluster(f->servers)
                                                    ? nem_cluster_actions
                                                    : nem_failover_actions,
                                                nem_reshard_actions };
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        if (tables[i][kind].begin)
            return &tables[i][kind];
    }
    test_die("nobody does %s", nem_kind_name(kind));
}

static struct nem_active *add(struct run *run, size_t index)
{
    const struct nem_step *step = &run->plan->steps[index];
    struct nem_active *a = calloc(1, sizeof(*a));
    struct nem_active **at = &run->f->active;
    size_t links = run->f->processes * run->f->links + 1;
    if (!a || !(a->rules = calloc(links * NEM_RULES_EACH, sizeof(*a->rules))) ||
        !(a->connections = calloc(links, sizeof(*a->connections))))
        test_die("out of memory");
    a->step = step;
    a->also = NEM_ALL;
    a->stranger.in = a->stranger.out = -1;
    a->record = (struct nem_fault){ .kind = (int32_t)step->kind,
                                    .target = step->target,
                                    .lock = step->lock,
                                    .amount = step->amount,
                                    .index = (uint32_t)index };
    while (*at)
        at = &(*at)->next;
    *at = a;
    run->moved = nem_now();
    return a;
}

static void drop(struct nem_active **at)
{
    struct nem_active *a = *at;
    *at = a->next;
    test_redis_close(a->redis);
    test_redis_close(a->messages);
    test_program_end(&a->stranger);
    free(a->rules);
    free(a->connections);
    free(a);
}

/* Whether the other step also affects this process, which the plan does not know of. */
static bool hits_too(const struct nem_active *other, const struct nem_active *a)
{
    return other->also != NEM_ALL && nem_kind_lane(a->step->kind) == NEM_LANE_PROCESS &&
           a->step->target == other->also;
}

/* Steps that the plan keeps apart may meet when one takes longer than planned. */
static bool may_begin(const struct run *run, const struct nem_active *a)
{
    const struct nem_action *action = action_of(run->f, a->step->kind);
    for (const struct nem_active *other = run->f->active; other; other = other->next) {
        if (other->begun && (nem_steps_clash(a->step, other->step) || hits_too(other, a)))
            return false;
    }
    return !action->ready || action->ready(run->f);
}

/* Advances a step. True: it has ended. */
static bool advance(struct run *run, struct nem_active *a)
{
    struct nem_faults *f = run->f;
    const struct nem_action *action = action_of(f, a->step->kind);
    if (!a->begun && may_begin(run, a)) {
        a->begun = true;
        run->moved = nem_now();
        if (nem_is_cluster(f->servers) && nem_kind_lane(a->step->kind) == NEM_LANE_SERVER)
            nem_nodes_aim(&f->nodes, a);
        a->record.begin = nem_now();
        action->begin(f, a);
        a->end_at = nem_now() + a->step->length_ms * NEM_NS_PER_MS;
    }
    if (!a->begun)
        return false;
    if (!a->ending) {
        bool done = action->during && action->during(f, a);
        a->ending = done || nem_now() >= a->end_at;
    }
    if (!a->ending || (action->end && !action->end(f, a)))
        return false;
    run->moved = a->record.end = nem_now();
    nem_record(f, &a->record);
    return true;
}

/* The time by which a step must have advanced, unless another one is in its way. */
static int64_t bound_of(const struct run *run, const struct nem_active *a)
{
    int64_t room = run->f->stuck_ms * (int64_t)NEM_NS_PER_MS;
    if (a->begun)
        return a->end_at + room;
    for (const struct nem_active *other = run->f->active; other; other = other->next)
        if (other->begun)
            return INT64_MAX; /* the other step's bound applies */
    /* the step may wait until the server's clock has caught up */
    return run->moved + test_ms(CAUGHT_UP_MS) * (int64_t)NEM_NS_PER_MS;
}

static void must_go_on(const struct run *run, const struct nem_active *a)
{
    if (nem_now() <= bound_of(run, a))
        return;
    fprintf(stderr, "%s of process %d, lock %d does not %s\n",
            nem_kind_name(a->step->kind),
            a->step->target == NEM_ALL ? -1 : a->step->target,
            a->step->lock == NEM_ALL ? -1 : a->step->lock, a->begun ? "end" : "begin");
    nem_faults_tell_keys(run->f);
    test_die("%s does not %s", nem_kind_name(a->step->kind), a->begun ? "end" : "begin");
}

/* Until the next step begins or ends; only briefly if a step must be polled. */
static void pause_between(const struct run *run)
{
    int64_t now = nem_now(), until = INT64_MAX;
    if (run->next < run->plan->count)
        until = run->start + run->plan->steps[run->next].begin_ms * NEM_NS_PER_MS;
    for (const struct nem_active *a = run->f->active; a; a = a->next) {
        bool asks = !a->begun || a->ending || action_of(run->f, a->step->kind)->during;
        int64_t at = asks ? now + TICK_MS * NEM_NS_PER_MS : a->end_at;
        until = at < until ? at : until;
    }
    if (until > now && until != INT64_MAX)
        test_pause_ms((long)((until - now + NEM_NS_PER_MS - 1) / NEM_NS_PER_MS));
}

/* Checks that the server answers through each proxy that can read answers. */
static void check_all_run(struct nem_faults *f)
{
    if (!nem_has_ledger(f->servers))
        await_servers(f);
    if (f->servers != NEM_PLAIN)
        return;
    for (unsigned i = 0; i < f->processes; i++) {
        struct test_redis *r = test_redis_connect(test_proxy_path(f->proxies[i]));
        test_redis_do(r, "PING");
        test_redis_close(r);
    }
}

void nem_faults_run(struct nem_faults *f, const struct nem_plan *plan,
                    const struct nem_workers *workers)
{
    struct run run = { .f = f, .plan = plan, .start = nem_now() };
    f->workers = workers;
    while (run.next < plan->count || f->active) {
        int64_t now_ms = (nem_now() - run.start) / NEM_NS_PER_MS;
        while (run.next < plan->count && plan->steps[run.next].begin_ms <= now_ms)
            add(&run, run.next++);
        for (struct nem_active **at = &f->active; *at;) {
            if (advance(&run, *at)) {
                drop(at);
                continue;
            }
            must_go_on(&run, *at);
            at = &(*at)->next;
        }
        pause_between(&run);
    }
    f->workers = NULL;
    check_all_run(f);
}
