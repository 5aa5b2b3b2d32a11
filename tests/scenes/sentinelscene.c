/* SPDX-License-Identifier: Apache-2.0 */
/* See sentinelscene.h. */
#include "sentinelscene.h"

#include "die.h"
#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { URLS = 8, CONF_MAX = 1024, SOON_MS = 30000, DOWN_AFTER_MS = 700, CALM_MS = 60000 };
/* An election that failed is repeated after twice this time. */
enum { FAILOVER_MS = 2000 };

struct fake_sentinel *fakes[SENTINELS];
struct test_server second;
struct test_redis *second_redis;
struct topology topology;

static int dead_holder = -1;
static uint16_t dead_port;

static const char *as_text(char buf[16], long number)
{
    snprintf(buf, 16, "%ld", number);
    return buf;
}

static char *next_url(void)
{
    static char urls[URLS][SENTINEL_URL_MAX];
    static unsigned next;

    return urls[next++ % URLS];
}

/* ---- sentinels that say what a test wants */

void fakes_start(void)
{
    fixture_start();
    test_server_start(&second, NULL);
}

void fakes_stop(void)
{
    test_server_stop(&second);
    fixture_stop();
}

void fakes_say(uint16_t port, int epoch, const char *flags)
{
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_says(fakes[i], port, epoch, flags);
}

void fakes_know_each_other(void)
{
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_lists(fakes[i], fakes, SENTINELS);
}

void fakes_open(void)
{
    fixture_open();
    second_redis = test_redis_connect(second.path);
    test_redis_do(second_redis, "REPLICAOF", "NO", "ONE"); /* else it cannot be emptied */
    test_server_reset(&second);
    dead_holder = test_port_reserve("127.0.0.1", &dead_port);
    for (int i = 0; i < SENTINELS; i++)
        fakes[i] = fake_sentinel_start();
    fakes_say(server.port, 1, "master");
}

void fakes_close(void)
{
    fixture_close();
    for (int i = 0; i < SENTINELS; i++) {
        fake_sentinel_stop(fakes[i]);
        fakes[i] = NULL;
    }
    test_redis_close(second_redis);
    close(dead_holder);
}

uint16_t fakes_dead_port(void)
{
    return dead_port;
}

const char *fakes_url(int count, const char *parameters)
{
    char *url = next_url();
    int len = snprintf(url, SENTINEL_URL_MAX, "redis-sentinel://");

    for (int i = 0; i < count; i++)
        len += snprintf(url + len, SENTINEL_URL_MAX - (size_t)len, "%s127.0.0.1:%u",
                        i > 0 ? "," : "", (unsigned)fake_sentinel_port(fakes[i]));
    snprintf(url + len, SENTINEL_URL_MAX - (size_t)len, "/mymaster%s", parameters);
    return url;
}

unsigned fakes_subscribers(void)
{
    unsigned count = 0;

    for (int i = 0; i < SENTINELS; i++)
        count += fake_sentinel_subscribers(fakes[i]);
    return count;
}

bool fakes_two_listen(void *unused)
{
    (void)unused;
    return fakes_subscribers() >= 2;
}

void fakes_announce(uint16_t from, uint16_t to)
{
    char text[128];

    snprintf(text, sizeof(text), "mymaster 127.0.0.1 %u 127.0.0.1 %u", (unsigned)from,
             (unsigned)to);
    for (int i = 0; i < SENTINELS; i++)
        fake_sentinel_publish(fakes[i], text);
}

rlock_client_t *sentinel_open(const char *url)
{
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;

    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(3000)));
    OK(rlock_client_open(&c, url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    return c;
}

void cut_clients(struct test_redis *r)
{
    test_redis_do(r, "CLIENT", "KILL", "TYPE", "pubsub");
    test_redis_do(r, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
}

void await_replicas(struct test_redis *r, int count)
{
    char replicas[16], ms[16];

    /* WAIT waits for the last command of its connection, and what precedes it */
    test_redis_do(r, "PUBLISH", "nobody", "");
    ck_assert_int_ge((int)test_redis_int(r, "WAIT", as_text(replicas, count),
                                         as_text(ms, test_ms(SOON_MS))),
                     count);
}

/* ---- real ones */

static bool has_two_replicas(void *arg)
{
    struct test_redis *r = arg;
    const char *info = test_redis_str(r, "INFO", "replication");
    return strstr(info, "connected_slaves:2") != NULL;
}

static void start_sentinel(struct test_server *s, const char *more)
{
    char conf[CONF_MAX];

    snprintf(conf, sizeof(conf),
             "sentinel monitor mymaster 127.0.0.1 %u 2\n"
             "sentinel down-after-milliseconds mymaster %d\n"
             "sentinel failover-timeout mymaster %d\n"
             "sentinel parallel-syncs mymaster 2\n%s",
             (unsigned)topology.data[0].port, CALM_MS, FAILOVER_MS, more ? more : "");
    test_server_start_sentinel(s, conf);
}

void topology_start(const char *more)
{
    char port[16];

    test_server_start(&topology.data[0], NULL);
    as_text(port, topology.data[0].port);
    for (int i = 1; i < DATA_SERVERS; i++)
        test_server_start(&topology.data[i], TEST_ARGV("--replicaof", "127.0.0.1", port));
    struct test_redis *r = test_redis_connect(topology.data[0].path);
    /* Sentinels that begin later would look for replicas again only after 10 s. */
    if (!test_wait_until(has_two_replicas, r, SOON_MS))
        test_die("the master has no replicas");
    test_redis_close(r);
    for (int i = 0; i < SENTINELS; i++)
        start_sentinel(&topology.sentinels[i], more);
    topology.scheme = "redis-sentinel";
}

void topology_stop(void)
{
    for (int i = 0; i < SENTINELS; i++)
        test_server_stop(&topology.sentinels[i]);
    for (int i = 0; i < DATA_SERVERS; i++)
        test_server_stop(&topology.data[i]);
}

/* A number in the reply to SENTINEL MASTER; -1: there is none. */
static long master_field(struct test_redis *r, const char *field)
{
    const redisReply *reply = test_redis_try(r, "SENTINEL", "MASTER", "mymaster");

    for (size_t i = 0;
         reply && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2)
        if (strcmp(reply->element[i]->str, field) == 0)
            return atol(reply->element[i + 1]->str);
    return -1;
}

int topology_master(int sentinel)
{
    struct test_redis *r = test_redis_connect(topology.sentinels[sentinel].path);
    long port = master_field(r, "port");
    int found = -1;

    for (int i = 0; i < DATA_SERVERS; i++)
        if (topology.data[i].port == port)
            found = i;
    test_redis_close(r);
    return found;
}

struct switched {
    int sentinel, from;
};

static bool has_switched(void *arg)
{
    const struct switched *s = arg;
    return topology_master(s->sentinel) != s->from;
}

/* Sets after how long without an answer these sentinels, the first `count`, say of a
 * server that it is down. */
static void set_down_after(int count, long ms)
{
    char text[16];

    for (int i = 0; i < count; i++) {
        struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
        test_redis_do(r, "SENTINEL", "SET", "mymaster", "down-after-milliseconds",
                      as_text(text, ms));
        test_redis_close(r);
    }
}

void topology_expect_failure(void)
{
    set_down_after(SENTINELS, DOWN_AFTER_MS);
}

bool topology_switched(int sentinel, int from, long ms)
{
    struct switched s = { sentinel, from };
    bool switched = test_wait_until(has_switched, &s, ms);

    /* without two of them there is no failover; the third may stand still */
    set_down_after(SENTINELS - 1, CALM_MS);
    return switched;
}

static bool sentinel_is_ready(int i)
{
    struct test_redis *r = test_redis_connect(topology.sentinels[i].path);
    bool ready = master_field(r, "num-other-sentinels") == SENTINELS - 1 &&
                 master_field(r, "num-slaves") >= DATA_SERVERS - 1;

    test_redis_close(r);
    return ready && topology_master(i) == topology_master(0);
}

/* Makes a server a replica of the master that the sentinels name. Sentinels take seconds
 * to do so themselves. Returns whether the server is what it has to be. */
static bool follows(int i, int master)
{
    struct test_redis *r = test_redis_connect(topology.data[i].path);
    const char *info = test_redis_str(r, "INFO", "replication");
    bool is_master = strstr(info, "role:master") != NULL, ready = true;
    char port[16], field[32];

    snprintf(field, sizeof(field), "master_port:%u\r",
             (unsigned)topology.data[master].port);
    if (i == master)
        ready = is_master && strstr(info, "connected_slaves:2");
    else if (is_master || !strstr(info, field))
        test_redis_do(r, "REPLICAOF", "127.0.0.1",
                      as_text(port, topology.data[master].port));
    test_redis_close(r);
    return ready;
}

static bool all_agree(void *arg)
{
    int master = topology_master(0), count = 0;
    bool ready = master >= 0;

    (void)arg;
    for (int i = 0; ready && i < SENTINELS; i++)
        ready = sentinel_is_ready(i);
    for (int i = 0; ready && i < DATA_SERVERS; i++)
        count += follows(i, master);
    return count == DATA_SERVERS;
}

void topology_open(void)
{
    for (int i = 0; i < SENTINELS; i++) {
        test_server_resume(&topology.sentinels[i]);
        if (test_server_pid(&topology.sentinels[i]) == 0)
            test_server_restart(&topology.sentinels[i]);
    }
    for (int i = 0; i < DATA_SERVERS; i++) {
        test_server_resume(&topology.data[i]);
        if (test_server_pid(&topology.data[i]) == 0)
            test_server_restart(&topology.data[i]);
    }
    set_down_after(SENTINELS, CALM_MS);
    ck_assert(test_wait_until(all_agree, NULL, SOON_MS));
    redis = test_redis_connect(topology.data[topology_master(0)].path);
    test_redis_do(redis, "FLUSHALL");
    await_replicas(redis, DATA_SERVERS - 1); /* the master may be killed at once */
}

const char *topology_url(const char *parameters)
{
    char *url = next_url();

    snprintf(url, SENTINEL_URL_MAX,
             "%s://127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u/mymaster%s", topology.scheme,
             (unsigned)topology.sentinels[0].port, (unsigned)topology.sentinels[1].port,
             (unsigned)topology.sentinels[2].port, parameters);
    return url;
}

rlock_client_t *topology_client(const char *parameters)
{
    rlock_client_t *c = open_at(topology_url(""), parameters);

    OK(rlock_client_ping(c));
    return c;
}
