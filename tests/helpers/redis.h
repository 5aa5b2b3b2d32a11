/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain connection to the server, for looking at keys, sending hand-written commands
 * and reading the server's counters. A command is a NULL-terminated list of strings,
 * never a format. One thread at a time uses an object.
 */
#ifndef TEST_REDIS_H
#define TEST_REDIS_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC diagnostic push /* its inline functions convert without a cast */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

struct test_redis;

/* Connect to a Unix socket's path, or to a port of 127.0.0.1. Abort on failure. */
struct test_redis *test_redis_connect(const char *path);
struct test_redis *test_redis_connect_port(unsigned port);
/* Connects to redis://<IPv4 address>:<port>. NULL: refused, or no answer within
 * test_ms(ms). */
struct test_redis *test_redis_connect_url(const char *url, long ms);
/* Does nothing with NULL. */
void test_redis_close(struct test_redis *r);

/* Sends a command and returns its reply, which may be an error. ACL SETUSER omits the
 * rules that a server before 6.2 does not know. The reply is valid until
 * the next call with `r`. NULL: the connection broke, or no reply came within
 * test_ms(10000). */
const redisReply *test_redis_try_argv(struct test_redis *r, const char *const argv[]);
/* The same with the length of each argument, for arguments that contain NUL bytes. */
const redisReply *test_redis_try_bytes(struct test_redis *r, int argc,
                                       const char *const argv[], const size_t len[]);
/* Aborts unless the reply comes and is no error. */
const redisReply *test_redis_do_argv(struct test_redis *r, const char *const argv[]);
/* The integer, or the number in a string. Aborts on other replies. */
long long test_redis_int_argv(struct test_redis *r, const char *const argv[]);
/* A string or status, valid until the next call; NULL: nil. Aborts on other replies. */
const char *test_redis_str_argv(struct test_redis *r, const char *const argv[]);

#define TEST_ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define test_redis_try(r, ...) test_redis_try_argv((r), TEST_ARGV(__VA_ARGS__))
#define test_redis_do(r, ...) test_redis_do_argv((r), TEST_ARGV(__VA_ARGS__))
#define test_redis_int(r, ...) test_redis_int_argv((r), TEST_ARGV(__VA_ARGS__))
#define test_redis_str(r, ...) test_redis_str_argv((r), TEST_ARGV(__VA_ARGS__))

/* The two halves of a command, for replies that come late or never, and for messages of
 * subscribed channels. send aborts when the connection is gone. recv returns NULL when
 * nothing came within test_ms(ms) or the connection is closed; test_redis_closed tells
 * which. */
void test_redis_send_argv(struct test_redis *r, const char *const argv[]);
#define test_redis_send(r, ...) test_redis_send_argv((r), TEST_ARGV(__VA_ARGS__))
const redisReply *test_redis_recv(struct test_redis *r, long ms);
bool test_redis_closed(const struct test_redis *r);
/* The socket, for shutdown() and the like. */
int test_redis_fd(const struct test_redis *r);

/* ---- shorthands */

bool test_redis_exists(struct test_redis *r, const char *key);
/* "OK" from CONFIG SET. */
void test_redis_config(struct test_redis *r, const char *name, const char *value);
/* Whether TIME and PTTL advance during a script, as in servers up to Redis 7.0, or stand
 * still (see test_server_facts). */
bool test_redis_time_runs_in_scripts(struct test_redis *r);
/* Whether a user's channels can be restricted; if not, prints that the test is skipped.
 */
bool test_redis_has_channel_rules(const char *test);
/* Closes all other connections at the server, including subscribers. */
void test_redis_kill_clients(struct test_redis *r);
/* How many times the server has executed a command ("evalsha", "config|set"), by INFO. A
 * server before 7.0 counts all subcommands together. */
long long test_redis_calls(struct test_redis *r, const char *command);
/* A number from INFO, for instance of "connected_clients"; -1: no such field. */
long long test_redis_info(struct test_redis *r, const char *field);

#endif
