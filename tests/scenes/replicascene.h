/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture with replicas: a master, which is the fixture's server, and two replicas of
 * it. A replica that is cut off follows no server any more: what the master writes from
 * then on never reaches it, not even from a socket's buffer. A replica that stands still
 * gets all of it later. For a program of one file. Thread: a test's main thread.
 */
#ifndef TEST_REPLICASCENE_H
#define TEST_REPLICASCENE_H

#include "fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REPLICAS = 2, REPLICAS_SOON_MS = 10000, REPLICAS_PORT_SIZE = 8 };

static struct test_server replicas[REPLICAS];
static struct test_redis *at_replica[REPLICAS];

/* Unchecked fixture. */
static inline void start_replicas(void)
{
    char port[REPLICAS_PORT_SIZE];

    test_server_start(&server, NULL);
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    for (int i = 0; i < REPLICAS; i++)
        test_server_start(&replicas[i], TEST_ARGV("--replicaof", "127.0.0.1", port,
                                                  "--appendfsync", "always"));
}

static inline void stop_replicas(void)
{
    for (int i = 0; i < REPLICAS; i++)
        test_server_stop(&replicas[i]);
    test_server_stop(&server);
}

/* Whether so many replicas are online, as the master sees it. */
static inline bool has_replicas(void *count)
{
    const char *at = test_redis_str(redis, "INFO", "replication");
    int online = 0;

    while ((at = strstr(at, "state=online"))) {
        online++;
        at++;
    }
    return online == *(int *)count;
}

static inline void wait_replicas(int count)
{
    ck_assert(test_wait_until(has_replicas, &count, 3 * REPLICAS_SOON_MS));
}

/* The replica never gets what is written from now on. */
static inline void cut_off(int i)
{
    test_redis_do(at_replica[i], "REPLICAOF", "NO", "ONE");
}

static inline void follow(int i)
{
    char port[REPLICAS_PORT_SIZE];

    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_redis_do(at_replica[i], "REPLICAOF", "127.0.0.1", port);
}

/* Checked fixture: all replicas follow, and have what the master has. */
static inline void open_replicas(void)
{
    char bound[16];

    for (int i = 0; i < REPLICAS; i++) {
        test_server_resume(&replicas[i]);
        at_replica[i] = test_redis_connect(replicas[i].path);
    }
    fixture_open();
    test_redis_config(redis, "min-replicas-to-write", "0");
    for (int i = 0; i < REPLICAS; i++)
        follow(i);
    wait_replicas(REPLICAS);
    test_redis_do(redis, "SET", "begin", "1");
    snprintf(bound, sizeof(bound), "%ld", test_ms(REPLICAS_SOON_MS));
    ck_assert_int_eq(test_redis_int(redis, "WAIT", "2", bound), REPLICAS);
    test_redis_do(redis, "DEL", "begin");
}

static inline void close_replicas(void)
{
    for (int i = 0; i < REPLICAS; i++)
        test_server_resume(&replicas[i]);
    fixture_close();
    for (int i = 0; i < REPLICAS; i++)
        test_redis_close(at_replica[i]);
}

static inline TCase *replicas_tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_unchecked_fixture(tc, start_replicas, stop_replicas);
    tcase_add_checked_fixture(tc, open_replicas, close_replicas);
    suite_add_tcase(suite, tc);
    return tc;
}

/* Opens `other` at this URL, with parameters as printf writes them. */
__attribute__((format(printf, 2, 3))) static inline void
open_other_at(const char *url, const char *format, ...)
{
    char parameters[128];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(parameters, sizeof(parameters), format, args);
    va_end(args);
    ck_assert_int_lt(len, (int)sizeof(parameters));
    other = open_at(url, parameters);
}

#define open_other(...) open_other_at(server.url, __VA_ARGS__)

/* How many times clients have waited for replicas. */
static inline long long waits(void)
{
    return test_redis_calls(redis, "wait");
}

static inline bool exists_at(void *i)
{
    return test_redis_exists(at_replica[*(int *)i], "n");
}

/* Waits until the replica has the lock "n". */
static inline bool wait_copied(int i)
{
    return test_wait_until(exists_at, &i, REPLICAS_SOON_MS);
}

static inline bool has_waited(void *times)
{
    return waits() >= *(long long *)times;
}

/* Waits until so many of these waits have ended. */
static inline bool wait_waits(long long times)
{
    return test_wait_until(has_waited, &times, REPLICAS_SOON_MS);
}

struct renewed {
    rlock_client_t *client;
    unsigned long count;
};

static inline bool has_renewed(void *arg)
{
    const struct renewed *r = arg;
    return stats_of(r->client).renewals >= r->count;
}

/* Waits until the client has had so many more renewals confirmed. */
static inline bool wait_renewals(rlock_client_t *c, unsigned long more)
{
    struct renewed r = { c, stats_of(c).renewals + more };
    return test_wait_until(has_renewed, &r, REPLICAS_SOON_MS);
}

/* A timed lock that ends `ms` from now, unscaled. */
static inline int lock_for(rlock_mutex_t *m, long ms)
{
    struct timespec end = test_in_ms(CLOCK_MONOTONIC, ms);
    return rlock_mutex_clocklock(m, CLOCK_MONOTONIC, &end);
}

/* Asserts that the message of the last failure contains this text. */
static inline void says(const char *text)
{
    ck_assert_msg(strstr(rlock_errmsg(), text), "\"%s\" lacks \"%s\"", rlock_errmsg(),
                  text);
}

#endif
