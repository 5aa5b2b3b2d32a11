/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the server that lose nothing: by commands to it, and by signals to its
 * process. Each uses its own connection, which no earlier fault has broken. */
#include "faults_impl.h"

#include "die.h"

#include <stdio.h>
#include <time.h>

/* the server reports a running script after this time; default 5 s */
#define BUSY_AFTER_MS "5"
#define BUSY_AFTER_DEFAULT_MS "5000"

enum { KILLED_MS = 10000, NS_PER_US = 1000 };

static void tell_argv(struct nem_faults *f, const char *const argv[])
{
    struct test_redis *r = test_redis_connect(nem_faults_server(f)->path);
    test_redis_do_argv(r, argv);
    test_redis_close(r);
}
#define tell(f, ...) tell_argv((f), TEST_ARGV(__VA_ARGS__))

void nem_faults_tell_keys(struct nem_faults *f)
{
    static const char script[] =
        "local call, lines = redis.call, {}\n"
        "local t = call('TIME')\n"
        "lines[1] = 'the server at ' .. math.floor(t[1] * 1000 + t[2] / 1000) .. ' ms:'\n"
        "local keys = call('KEYS', '*')\n"
        "table.sort(keys)\n"
        "for _, key in ipairs(keys) do\n"
        "  local type, what = call('TYPE', key).ok, nil\n"
        "  if type == 'hash' then what = call('HGETALL', key)\n"
        "  elseif type == 'zset' then what = call('ZRANGE', key, 0, -1, 'WITHSCORES')\n"
        "  elseif type == 'string' then what = { call('GET', key) } end\n"
        "  lines[#lines + 1] = key .. ' (' .. type .. ', ' .. call('PTTL', key) .. ' ms) "
        "'\n"
        "    .. table.concat(what or {}, ' ')\n"
        "end\n"
        "return table.concat(lines, '\\n')\n";
    struct test_server *masters[NEM_MASTERS_MAX];
    if (nem_is_cluster(f->servers))
        nem_nodes_tell(&f->nodes);
    else if (!nem_has_ledger(f->servers))
        nem_topology_tell(&f->topology);
    for (unsigned i = 0, n = nem_faults_masters(f, masters); i < n; i++) {
        if (test_server_pid(masters[i]) <= 0)
            continue;
        struct test_redis *r = test_redis_connect(masters[i]->path);
        const redisReply *reply = test_redis_try(r, "EVAL", script, "0");
        fprintf(stderr, "%s\n",
                reply && reply->str ? reply->str : "the server does not answer");
        test_redis_close(r);
    }
}

/* ---- commands to the server */

static void kill_clients(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

static void kill_subscribers(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes");
}

static void flush_scripts(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "SCRIPT", "FLUSH");
}

static void pause_clients(struct nem_faults *f, struct nem_active *a)
{
    char ms[32];
    snprintf(ms, sizeof(ms), "%lld", (long long)a->step->length_ms + 1);
    bool all = a->step->amount == 0 || test_server_version() < 60200;
    tell(f, "CLIENT", "PAUSE", ms, all ? NULL : "WRITE");
}

/* The pause ends by itself: CLIENT UNPAUSE would have to wait as well. */
static bool clients_go_on(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    /* waits as a write does, and each node of a cluster takes it */
    tell(f, "PUBLISH", "nemesis:nothing", "");
    return true;
}

static void keep_busy(struct nem_faults *f, struct nem_active *a)
{
    a->redis = test_redis_connect(nem_faults_server(f)->path);
    test_redis_config(a->redis, "lua-time-limit", BUSY_AFTER_MS);
    test_redis_send(a->redis, "EVAL", "while true do end", "0");
}

static bool end_busy(struct nem_faults *f, struct nem_active *a)
{
    struct test_redis *r = test_redis_connect(nem_faults_server(f)->path);
    const redisReply *reply = test_redis_try(r, "SCRIPT", "KILL");
    /* NOTBUSY: the script has not even begun */
    bool killed = reply && reply->type == REDIS_REPLY_STATUS;
    if (killed && !test_redis_recv(a->redis, KILLED_MS))
        test_die("a script does not end by SCRIPT KILL");
    if (killed)
        test_redis_config(r, "lua-time-limit", BUSY_AFTER_DEFAULT_MS);
    test_redis_close(r);
    return killed;
}

static void fill_memory(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "CONFIG", "SET", "maxmemory", "1");
}

static bool free_memory(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "CONFIG", "SET", "maxmemory", "0");
    return true;
}

/* `back`: gives the right back. */
static void set_right(struct nem_faults *f, const struct nem_active *a, bool back)
{
    const char *argv[8] = { "ACL", "SETUSER", NEM_USER };
    const struct nem_right *right = nem_right((unsigned)a->step->amount);
    size_t count = 3;
    for (size_t i = 0; !back && right->taken[i]; i++)
        argv[count++] = right->taken[i];
    if (back)
        argv[count++] = right->given;
    argv[count] = NULL;
    tell_argv(f, argv);
}

static void take_right(struct nem_faults *f, struct nem_active *a)
{
    set_right(f, a, false);
}

static bool give_right(struct nem_faults *f, struct nem_active *a)
{
    set_right(f, a, true);
    return true;
}

/* ---- the server's process */

static void stop_server(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    test_server_pause(nem_faults_server(f));
}

static bool continue_server(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    test_server_resume(nem_faults_server(f));
    return true;
}

static void kill_server(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    test_server_kill(nem_faults_server(f));
}

static bool revive_server(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage++ == 0)
        test_server_launch(nem_faults_server(f));
    return test_server_is_up(nem_faults_server(f));
}

static bool revive_empty(struct nem_faults *f, struct nem_active *a)
{
    if (a->stage == 0)
        nem_archive(f);
    return revive_server(f, a);
}

/* ---- the server's clock */

static int64_t server_now_ms(const struct nem_faults *f)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / NEM_NS_PER_MS + f->offset_ms;
}

static void step_clock(struct nem_faults *f, struct nem_active *a)
{
    int64_t now = server_now_ms(f), offset = f->offset_ms + a->step->amount;
    if (offset > NEM_OFFSET_MAX_MS || offset < -(int64_t)NEM_OFFSET_MAX_MS) {
        a->record.amount = 0; /* plans of several rounds add up */
        return;
    }
    f->peak_ms = now > f->peak_ms ? now : f->peak_ms;
    f->offset_ms = offset;
    struct test_redis *r = test_redis_connect(nem_faults_server(f)->path);
    test_clock_step(&f->clock, r, (long)offset);
    test_redis_close(r);
    a->record.took_us = (uint32_t)((nem_now() - a->record.begin) / NS_PER_US + 1);
}

/* While the clock is behind a token, each draw increments the token. */
static bool is_past_tokens(struct nem_faults *f)
{
    static const char script[] =
        "local t = redis.call('TIME')\n"
        "for _, key in ipairs(redis.call('KEYS', 'redisson_lock_token:*')) do\n"
        "  if redis.call('GET', key) + 0 >= t[1] * 1000000 + t[2] then return 0 end\n"
        "end\n"
        "return 1\n";
    struct test_redis *r = test_redis_connect(nem_faults_server(f)->path);
    const redisReply *reply = test_redis_try(r, "EVAL", script, "0");
    bool past = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    test_redis_close(r);
    return past;
}

bool nem_clock_has_caught_up(struct nem_faults *f)
{
    return server_now_ms(f) > f->peak_ms && is_past_tokens(f);
}

static void flush_all(struct nem_faults *f, struct nem_active *a)
{
    (void)a;
    tell(f, "FLUSHALL");
}

const struct nem_action nem_server_actions[NEM_KINDS] = {
    [NEM_CLIENT_KILL] = { .begin = kill_clients },
    [NEM_CLIENT_KILL_PUBSUB] = { .begin = kill_subscribers },
    [NEM_SCRIPT_FLUSH] = { .begin = flush_scripts },
    [NEM_CLIENT_PAUSE] = { .begin = pause_clients, .end = clients_go_on },
    [NEM_BUSY] = { .begin = keep_busy, .end = end_busy },
    [NEM_MAXMEMORY] = { .begin = fill_memory, .end = free_memory },
    [NEM_ACL] = { .begin = take_right, .end = give_right },
    [NEM_SERVER_STOP_SHORT] = { .begin = stop_server, .end = continue_server },
    [NEM_SERVER_STOP_LONG] = { .begin = stop_server, .end = continue_server },
    [NEM_SERVER_RESTART] = { .begin = kill_server, .end = revive_server },
    [NEM_CLOCK_BACK] = { .begin = step_clock },
    [NEM_CLOCK_FORWARD] = { .begin = step_clock },
    [NEM_SERVER_EMPTY] = { .ready = nem_clock_has_caught_up,
                           .begin = kill_server,
                           .end = revive_empty },
    [NEM_FLUSHALL] = { .ready = nem_clock_has_caught_up, .begin = flush_all },
};
