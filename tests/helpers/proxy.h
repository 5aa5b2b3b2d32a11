/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proxy in front of a test's server. It does what networks do: it delays, loses, holds
 * and cuts, message by message, as its rules say. It runs as a thread of the test
 * process: start it in a checked fixture. Any thread may call these functions.
 */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include "server.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_proxy;

/* Which messages a rule sees, and in which bytes it searches. */
enum test_point {
    TEST_ON_REQUEST, /* requests, by their own bytes: the rule acts before the server
                        executes them */
    TEST_ON_REPLY,   /* replies, by the bytes of their request: the server has executed
                        it */
    TEST_ON_MESSAGE  /* all messages to the client, by their own bytes, pub/sub too */
};

enum test_action {
    TEST_WATCH,      /* only counts; later rules see the message too */
    TEST_DELAY,      /* by delay_ms, and all that follows on the connection */
    TEST_DROP,       /* lost; the connection stays */
    TEST_CUT,        /* forwards the first keep_len bytes, then closes both sides */
    TEST_CUT_AFTER,  /* forwards all of it, then closes both sides */
    TEST_HOLD,       /* until test_proxy_release, and all that follows */
    TEST_HALF_CLOSE, /* forwards it, then its receiver sees the end of the stream */
    TEST_DRIP,       /* byte by byte, one each delay_ms */
    TEST_ANSWER      /* a request is not forwarded, but answered with `text`; other
                      * messages are replaced by `text`. It is raw bytes of the
                      * protocol. */
};

/* A member that is left out (0, NULL) means: any, every, at once. */
struct test_rule {
    enum test_point on;
    enum test_action action;
    const char *contains; /* bytes to look for: a script's SHA, a key, an id; copied */
    size_t contains_len;  /* 0: strlen(contains) */
    unsigned connection;  /* only this one; the first to be accepted is 1 */
    unsigned skip;        /* leaves the first `skip` matches alone */
    unsigned count;       /* applies to this many matches; 0: to all from then on */
    long delay_ms;
    size_t keep_len;
    bool reset;       /* a cut is an RST instead of a FIN, on TCP */
    const char *text; /* for TEST_ANSWER; copied */
};

/* The maximum number of rules at a time. */
enum { TEST_RULES_MAX = 64 };

/* Listens on a Unix socket in the server's directory and on a port of 127.0.0.1. */
struct test_proxy *test_proxy_start(const struct test_server *server);
/* The same on a port of another address. The thread stays in the network namespace of the
 * caller, which must have the address. */
struct test_proxy *test_proxy_start_at(const struct test_server *server,
                                       const char *address);
/* The same for connections that are encrypted. The proxy does not read them: the bytes
 * that arrive at a time are a message, and in the direction of the client also a reply.
 * `dial` opens a non-blocking socket to the server, on the proxy's thread; -1: it
 * cannot. */
struct test_proxy *test_proxy_start_raw(const struct test_server *server,
                                        const char *address, int (*dial)(void *arg),
                                        void *arg);
/* Closes all connections. Does nothing with NULL. */
void test_proxy_stop(struct test_proxy *p);

const char *test_proxy_path(const struct test_proxy *p);
uint16_t test_proxy_port(const struct test_proxy *p);
const char *test_proxy_url(const struct test_proxy *p);     /* unix:///... */
const char *test_proxy_tcp_url(const struct test_proxy *p); /* redis://<address>:... */

/* Adds a rule; the first that matches a message decides. Returns its id. */
int test_proxy_add(struct test_proxy *p, const struct test_rule *rule);
#define TEST_RULE(p, ...) test_proxy_add((p), &(const struct test_rule){ __VA_ARGS__ })
/* Removes a rule and forwards the messages that it holds. */
void test_proxy_remove(struct test_proxy *p, int id);
void test_proxy_remove_all(struct test_proxy *p);
/* Forwards the messages that the rule holds now. Later matches are held again, as its
 * count says. A held request is delivered even if its client has closed the connection
 * since. */
void test_proxy_release(struct test_proxy *p, int id);

/* hits: how many times the rule was applied. answered: to how many of the requests that
 * it was applied to the server has replied, whether or not the reply reached the client:
 * these requests were executed. */
unsigned test_proxy_hits(struct test_proxy *p, int id);
unsigned test_proxy_answered(struct test_proxy *p, int id);
/* Wait until there are `n`; false after test_ms(ms). */
bool test_proxy_wait_hits(struct test_proxy *p, int id, unsigned n, long ms);
bool test_proxy_wait_answered(struct test_proxy *p, int id, unsigned n, long ms);

/* What happens to new connections. Existing connections stay. */
enum test_proxy_mode {
    TEST_PROXY_OPEN,
    TEST_PROXY_CLOSES, /* accepts and closes at once */
    TEST_PROXY_SILENT, /* the kernel accepts; no reply ever comes */
    TEST_PROXY_DOWN    /* no socket listens: connections are refused */
};
void test_proxy_set_mode(struct test_proxy *p, enum test_proxy_mode mode);

/* A partition: nothing passes in either direction, not even the end of a stream, until
 * the proxy is thawed. Then everything passes. */
void test_proxy_freeze(struct test_proxy *p, bool frozen);

/* Closes one connection (0: all) on both sides. Returns when that is done. */
void test_proxy_cut(struct test_proxy *p, unsigned connection, bool reset);

struct test_proxy_counts {
    unsigned accepted;  /* connections since the start */
    unsigned open;      /* connections now, including those whose client has gone */
    unsigned to_server; /* messages forwarded */
    unsigned to_client;
};
struct test_proxy_counts test_proxy_counts(struct test_proxy *p);
/* The numbers of the connections that still have their client, newest first. Returns how
 * many there are. */
size_t test_proxy_connections(struct test_proxy *p, unsigned *ret_numbers, size_t most);
/* Whether a message is held, delayed or dripping, even if the rule that caused it has
 * been removed. */
bool test_proxy_is_late(struct test_proxy *p);
/* Wait until this many connections have been accepted, or are open. */
bool test_proxy_wait_accepted(struct test_proxy *p, unsigned n, long ms);
bool test_proxy_wait_open(struct test_proxy *p, unsigned n, long ms);

#endif
