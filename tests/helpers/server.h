/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private redis-server (or valkey-server) on a Unix socket in a short temporary
 * directory, and on a TCP port of 127.0.0.1 that no other test run can have.
 *
 * A small supervisor process starts it. So a test that Check has forked can kill and
 * restart the server that a fixture started in the runner. When the process that called
 * test_server_start ends in whatever way, or calls test_server_stop, the supervisor stops
 * the server, removes the directory and ends.
 *
 * Thread: any, but only one at a time over all processes of a test program; start it from
 * a main thread.
 */
#ifndef TEST_SERVER_H
#define TEST_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { TEST_DIR_MAX = 64, TEST_PATH_MAX = 96, TEST_URL_MAX = 128 };

struct test_server {
    char dir[TEST_DIR_MAX];   /* the server's working directory; removed at stop */
    char path[TEST_PATH_MAX]; /* of its socket */
    char url[TEST_URL_MAX];   /* unix:///... */
    char tcp_url[TEST_URL_MAX];
    uint16_t port;
    int control; /* commands to the supervisor */
    pid_t supervisor;
    pid_t starter;
};

/* Starts an empty server without persistence and waits until it answers PING. `args`
 * (NULL: none) are further options of its command line; they override the defaults.
 * Program: $RLOCK_TEST_SERVER, else redis-server or valkey-server in PATH, /usr/bin or
 * /usr/local/bin. Aborts on failure, and prints the end of the server's log. */
void test_server_start(struct test_server *s, const char *const args[]);
/* The version of that program, for instance 60214 for Redis 6.2.14. */
int test_server_version(void);
/* Whether it was built with TLS. */
bool test_server_has_tls(void);
/* Whether it applies min-replicas-to-write to scripts: Redis 6.0.0 to 6.2.5 do not. If
 * not, prints that the test is skipped; NULL: prints nothing. */
bool test_server_bounds_scripts(const char *test);
/* The option that determines the port of a cluster node's bus, and its value. Before 7.0
 * this is the node's own port. */
const char *test_server_bus_option(uint16_t bus, char ret_value[8]);
/* The same with variables ("NAME=value") added to the server's environment. */
void test_server_start_env(struct test_server *s, const char *const args[],
                           const char *const env[]);
/* The same with a configuration file in the server's directory, which holds `text`. It
 * runs as a sentinel, and writes to its file. */
void test_server_start_sentinel(struct test_server *s, const char *text);
/* Does nothing with a zeroed struct. */
void test_server_stop(struct test_server *s);

/* 0: the server does not run. */
pid_t test_server_pid(const struct test_server *s);

/* Sends SIGKILL. Returns when the server is gone. */
void test_server_kill(struct test_server *s);
/* Sends SIGTERM. Returns when the server is gone. */
void test_server_shutdown(struct test_server *s);
/* Kills the server if it runs, and starts it again at the same path and port. It is empty
 * unless its args keep data ("--appendonly", "yes"). With other args if `args` is not
 * NULL. */
void test_server_restart(struct test_server *s);
void test_server_restart_args(struct test_server *s, const char *const args[]);

/* The two halves of a restart, for a caller that has other work meanwhile. is_up: whether
 * the server answers and has loaded its data; aborts when it has ended. */
void test_server_launch(struct test_server *s);
bool test_server_is_up(struct test_server *s);

/* Send SIGSTOP or SIGCONT. pause returns when the server has stopped. */
void test_server_pause(struct test_server *s);
void test_server_resume(struct test_server *s);

/* For checked fixtures: after any test before, the server runs, is not paused, and has no
 * keys and no scripts. (What CONFIG SET changed stays.) It does not remove live files of
 * dead clients: see rundir.h. */
void test_server_reset(struct test_server *s);

#endif
