/* SPDX-License-Identifier: Apache-2.0 */
/* See clusterscene.h. */
#include "clusterscene.h"

#include "die.h"
#include "net/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGREE_MS = 5000,
    CALM_MS = 60000,
    BUFFERS = 16,
    NAME_SIZE = 24,
    URL_SIZE = 512,
    KEYS_MAX = 64
};

struct test_node nodes[CLUSTER_NODES];
struct test_redis *at_node[CLUSTER_NODES];

/* ---- start and stop */

static void launch(void)
{
    char timeout[16];

    snprintf(timeout, sizeof(timeout), "%ld", test_ms(CLUSTER_TIMEOUT_MS));
    test_cluster_launch(nodes, TEST_ARGV("--cluster-node-timeout", timeout,
                                         "--cluster-replica-validity-factor", "0",
                                         "--appendonly", "yes", "--appendfsync",
                                         "everysec", "--repl-diskless-sync-delay", "0"));
}

void cluster_start(void)
{
    test_cluster_reserve(nodes);
    launch();
}

void cluster_stop(void)
{
    test_cluster_stop(nodes);
}

/* ---- the state */

static bool says(struct test_redis *r, const char *what, const char *text)
{
    return strstr(test_redis_str(r, "CLUSTER", what), text) != NULL;
}

bool cluster_is_master(int node)
{
    return strstr(test_redis_str(at_node[node], "CLUSTER", "NODES"), "myself,master") !=
           NULL;
}

static bool is_ok(void *arg)
{
    (void)arg;
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (!says(at_node[i], "INFO", "cluster_state:ok") ||
            says(at_node[i], "NODES", "fail"))
            return false;
    return true;
}

void cluster_await_ok(void)
{
    ck_assert(test_wait_until(is_ok, NULL, CLUSTER_SOON_MS));
}

/* The line about a node in CLUSTER NODES; NULL: none. */
static const char *line_of(const char *text, int node)
{
    while (text && strncmp(text, nodes[node].id, TEST_CLUSTER_ID_SIZE - 1) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* Whether the node sees each master with its third of the hash slots, and nothing else.
 */
static bool is_first_layout(int node)
{
    const char *text = test_redis_str(at_node[node], "CLUSTER", "NODES");
    char end[32];

    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        const char *line = line_of(text, i);
        int len = snprintf(end, sizeof(end), " connected %u-%u\n", test_cluster_first[i],
                           test_cluster_first[i + 1] - 1);
        const char *found = line ? strstr(line, end) : NULL;
        if (!found || found + len - 1 != strchr(line, '\n'))
            return false;
    }
    return true;
}

static bool replica_is_there(int i)
{
    return strstr(test_redis_str(at_node[i], "INFO", "replication"),
                  "master_link_status:up") != NULL;
}

static bool is_as_at_first(void *arg)
{
    (void)arg;
    for (int i = 0; i < CLUSTER_NODES; i++)
        if (!is_first_layout(i) || (i >= CLUSTER_MASTERS && !replica_is_there(i)))
            return false;
    return is_ok(NULL);
}

/* ---- fixtures */

void cluster_reconnect(int node)
{
    test_redis_close(at_node[node]);
    at_node[node] = test_redis_connect(nodes[node].server.path);
}

/* Begins again, with empty nodes and the first files. */
static void rebuild(void)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        /* a node with keys of another one's hash slots would take these */
        test_redis_try(at_node[i], "FLUSHALL"); /* a replica refuses */
        test_redis_close(at_node[i]);
        at_node[i] = NULL;
    }
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_server_kill(&nodes[i].server);
    launch();
    for (int i = 0; i < CLUSTER_NODES; i++)
        cluster_reconnect(i);
}

static void set_timeout(long ms)
{
    char text[16];

    snprintf(text, sizeof(text), "%ld", test_ms(ms));
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_config(at_node[i], "cluster-node-timeout", text);
}

void cluster_expect_failure(void)
{
    set_timeout(CLUSTER_TIMEOUT_MS);
}

void cluster_open(void)
{
    test_rundir_own_if_any(); /* no other test's dead process matters here */
    for (int i = 0; i < CLUSTER_NODES; i++) {
        test_server_resume(&nodes[i].server);
        if (test_server_pid(&nodes[i].server) == 0)
            test_server_restart(&nodes[i].server);
        at_node[i] = test_redis_connect(nodes[i].server.path);
    }
    bool good = true;
    for (int i = 0; i < CLUSTER_NODES; i++)
        good = good && is_first_layout(i);
    if (!good)
        rebuild();
    ck_assert(test_wait_until(is_as_at_first, NULL, CLUSTER_SOON_MS));
    set_timeout(CALM_MS);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        test_redis_do(at_node[i], "FLUSHALL");
    redis = at_node[0];
    client = other = NULL;
}

void cluster_close(void)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_server_resume(&nodes[i].server);
    if (client)
        close_client(client);
    if (other)
        close_client(other);
    client = other = NULL;
    for (int i = 0; i < CLUSTER_NODES; i++) {
        test_redis_close(at_node[i]);
        at_node[i] = NULL;
    }
}

TCase *cluster_tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, cluster_open, cluster_close);
    suite_add_tcase(suite, tc);
    return tc;
}

/* ---- clients and names */

const char *cluster_url(int count, const char *parameters)
{
    static char urls[BUFFERS][URL_SIZE];
    static unsigned next;
    char *url = urls[next++ % BUFFERS];
    size_t len = (size_t)snprintf(url, URL_SIZE, "redis-cluster://");

    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(url + len, URL_SIZE - len, "%s127.0.0.1:%u",
                                i > 0 ? "," : "", (unsigned)nodes[i].port);
    snprintf(url + len, URL_SIZE - len, "%s", parameters);
    return url;
}

rlock_client_t *cluster_open_at(const char *url)
{
    rlock_client_t *c = open_unseen(url, "");
    OK(rlock_client_ping(c));
    return c;
}

rlock_client_t *cluster_client(const char *parameters)
{
    return cluster_open_at(cluster_url(CLUSTER_MASTERS, parameters));
}

unsigned cluster_hash_slot(const char *name)
{
    return rlk_key_hash_slot(name, strlen(name));
}

int cluster_master_of(unsigned hash_slot)
{
    int master = 0;

    while (hash_slot >= test_cluster_first[master + 1])
        master++;
    return master;
}

const char *cluster_name(int master, int k)
{
    static char names[BUFFERS][NAME_SIZE];
    static unsigned next;
    char *name = names[next++ % BUFFERS];

    for (int n = 0;; n++) {
        snprintf(name, NAME_SIZE, "L%d", n);
        unsigned hash_slot = cluster_hash_slot(name);
        if (hash_slot >= test_cluster_first[master] &&
            hash_slot < test_cluster_first[master + 1] && k-- == 0)
            return name;
    }
}

/* ---- failovers */

struct turn {
    int replica;
};

static bool has_turned(void *arg)
{
    const struct turn *turn = arg;
    return cluster_is_master(turn->replica);
}

void cluster_failover(int master, const char *how)
{
    struct turn turn = { master + CLUSTER_MASTERS };

    if (how)
        test_redis_do(at_node[turn.replica], "CLUSTER", "FAILOVER", how);
    else
        test_redis_do(at_node[turn.replica], "CLUSTER", "FAILOVER");
    ck_assert(test_wait_until(has_turned, &turn, CLUSTER_SOON_MS));
}

/* ---- moves of hash slots */

static const char *as_text(char buf[16], long number)
{
    snprintf(buf, 16, "%ld", number);
    return buf;
}

void cluster_begin_move(unsigned hash_slot, int from, int to)
{
    char text[16];

    as_text(text, (long)hash_slot);
    test_redis_do(at_node[to], "CLUSTER", "SETSLOT", text, "IMPORTING", nodes[from].id);
    test_redis_do(at_node[from], "CLUSTER", "SETSLOT", text, "MIGRATING", nodes[to].id);
}

static void move_key(int from, int to, const char *key)
{
    char port[16];

    test_redis_do(at_node[from], "MIGRATE", "127.0.0.1", as_text(port, nodes[to].port),
                  key, "0", "10000");
}

void cluster_move_keys(unsigned hash_slot, int from, int to, const char *const keys[])
{
    char text[16], count[16];

    for (size_t i = 0; keys && keys[i]; i++)
        move_key(from, to, keys[i]);
    for (bool more = !keys; more;) {
        char found[KEYS_MAX][RLOCK_NAME_MAX + 64];
        const redisReply *r =
            test_redis_do(at_node[from], "CLUSTER", "GETKEYSINSLOT",
                          as_text(text, (long)hash_slot), as_text(count, KEYS_MAX));
        size_t n = r->elements;
        for (size_t i = 0; i < n; i++)
            snprintf(found[i], sizeof(found[i]), "%s", r->element[i]->str);
        for (size_t i = 0; i < n; i++)
            move_key(from, to, found[i]);
        more = n > 0;
    }
}

long cluster_move_batch(unsigned hash_slot, int from, int to, int most)
{
    char text[16], count[16], port[16];
    const redisReply *r =
        test_redis_do(at_node[from], "CLUSTER", "GETKEYSINSLOT",
                      as_text(text, (long)hash_slot), as_text(count, most));
    size_t n = r->elements, head = 7;
    const char **argv = calloc(head + n + 1, sizeof(*argv));

    if (!argv)
        test_die("out of memory");
    for (size_t i = 0; i < n; i++)
        argv[head + i] = strdup(r->element[i]->str);
    const char *const words[] = { "MIGRATE", "127.0.0.1", as_text(port, nodes[to].port),
                                  "",        "0",         "10000",
                                  "KEYS" };
    memcpy(argv, words, sizeof(words));
    if (n > 0)
        test_redis_do_argv(at_node[from], argv);
    for (size_t i = 0; i < n; i++)
        free((char *)(uintptr_t)argv[head + i]);
    free(argv);
    return (long)n;
}

void cluster_end_move(unsigned hash_slot, int from, int to)
{
    char text[16];

    as_text(text, (long)hash_slot);
    test_redis_do(at_node[to], "CLUSTER", "SETSLOT", text, "NODE", nodes[to].id);
    test_redis_do(at_node[from], "CLUSTER", "SETSLOT", text, "NODE", nodes[to].id);
}

void cluster_call_off_move(unsigned hash_slot, int from, int to)
{
    char text[16];

    as_text(text, (long)hash_slot);
    test_redis_do(at_node[to], "FLUSHALL");
    test_redis_do(at_node[from], "FLUSHALL");
    test_redis_do(at_node[to], "CLUSTER", "SETSLOT", text, "STABLE");
    test_redis_do(at_node[from], "CLUSTER", "SETSLOT", text, "STABLE");
}

void cluster_move_back(unsigned hash_slot, int from, int to)
{
    cluster_begin_move(hash_slot, to, from);
    cluster_move_keys(hash_slot, to, from, NULL);
    cluster_end_move(hash_slot, to, from);
    /* else the next test begins with a new cluster */
    (void)test_wait_until(is_as_at_first, NULL, AGREE_MS);
}
