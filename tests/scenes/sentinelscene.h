/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture with sentinels: three that say what a test wants (fakesentinel.h) beside
 * the fixture's server and a second one; or real ones: a master, two replicas and three
 * sentinels, of which each may be killed or stopped. Thread: a test's main thread.
 */
#ifndef TEST_SENTINELSCENE_H
#define TEST_SENTINELSCENE_H

#include "fakesentinel.h"
#include "fixture.h"

enum { SENTINELS = 3, DATA_SERVERS = 3, SENTINEL_URL_MAX = 512 };

/* ---- sentinels that say what a test wants */

extern struct fake_sentinel *fakes[SENTINELS];
/* Another master, and a connection to it. */
extern struct test_server second;
extern struct test_redis *second_redis;

/* Unchecked fixture: both servers. */
void fakes_start(void);
void fakes_stop(void);
/* Checked fixture: the three name the fixture's server, with epoch 1. */
void fakes_open(void);
void fakes_close(void);

/* redis-sentinel://, with the first `count` of them, and parameters: "" or "?...", in one
 * of a few buffers used in turn. */
const char *fakes_url(int count, const char *parameters);
/* All three say this. */
void fakes_say(uint16_t port, int epoch, const char *flags);
/* They know each other. */
void fakes_know_each_other(void);
/* How many connections have subscribed to all three. */
unsigned fakes_subscribers(void);
/* Whether a client listens to two of them. */
bool fakes_two_listen(void *unused);
/* All three publish that the master moves. */
void fakes_announce(uint16_t from, uint16_t to);
/* Opens a client without waiting for it, with scaled timeouts. */
rlock_client_t *sentinel_open(const char *url);
/* Cuts all connections to the server but that of `r`. */
void cut_clients(struct test_redis *r);
/* Waits until that many replicas have what the server has now. */
void await_replicas(struct test_redis *r, int count);
/* A port at which no server listens, reserved until fakes_close. */
uint16_t fakes_dead_port(void);

/* ---- real ones */

struct topology {
    struct test_server data[DATA_SERVERS], sentinels[SENTINELS];
    const char *scheme, *parameters; /* of its URL */
};
extern struct topology topology;

/* Unchecked fixture. `more`: lines for the sentinels' files; NULL: none. */
void topology_start(const char *more);
void topology_stop(void);
/* Checked fixture: all run, one is the master, and the sentinels agree. */
void topology_open(void);
/* The URL of all three sentinels, with parameters as above. */
const char *topology_url(const char *parameters);
/* Which of the servers is the master by the sentinel's word; -1: none of them. */
int topology_master(int sentinel);
/* From now on the sentinels notice within a second that the master does not answer, and
 * begin a failover. Before, and after topology_switched, they would not: on a machine
 * that stands still for a moment they would begin one that no test expects. */
void topology_expect_failure(void);
/* Waits until a sentinel names another master than this one. */
bool topology_switched(int sentinel, int from, long ms);
/* A client of the topology that records its events, and has answered a ping. */
rlock_client_t *topology_client(const char *parameters);

#endif
