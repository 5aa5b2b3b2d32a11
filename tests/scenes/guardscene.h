/* SPDX-License-Identifier: Apache-2.0 */
/* The scene for tests of rlock-guard(8): a server, a directory on a tmpfs, the daemon as
 * a process, and the socket of a service manager. Thread: main only. */
#ifndef TEST_GUARDSCENE_H
#define TEST_GUARDSCENE_H

#include "cli.h"
#include "redis.h"
#include "rundir.h"
#include "server.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdbool.h>
#include <sys/types.h>

enum {
    GUARD_OK = 0,
    GUARD_USAGE = 64,
    GUARD_INTERNAL = 70,
    GUARD_CONFIG = 78,
    GUARD_STOP_MS = 2000 /* from a signal to its end: 1 s, plus 1 s for a slow machine */
};

extern struct test_server server;
extern struct test_redis *redis;
extern struct cli guard, other; /* stopped at the end of each test */
extern const char *guard_dir;   /* each test's own */
extern int manager;             /* the socket of guard_manager, or -1 */

/* Adds a test case with the fixtures of this scene. */
TCase *guard_case(Suite *suite, const char *name);

/* The path of the built daemon. */
const char *guard_path(void);
/* An environment with $RLOCK_RUNDIR, $RLOCK_URL of the server, and one more variable
 * unless it is NULL. Valid until the next call. */
const char *const *guard_env(const char *more);

/* Starts the daemon with these arguments in this environment. */
#define GUARD(...) GUARD_WITH(NULL, __VA_ARGS__)
#define GUARD_WITH(more, ...)                                                            \
    cli_start(&guard, CLI_ARGV(guard_path(), __VA_ARGS__), guard_env(more))
/* The same, and waits until the daemon says that it is ready. */
#define GUARD_READY(...) GUARD_READY_WITH(NULL, __VA_ARGS__)
#define GUARD_READY_WITH(more, ...)                                                      \
    do {                                                                                 \
        GUARD_WITH(more, __VA_ARGS__);                                                   \
        guard_is_ready();                                                                \
    } while (0)
void guard_is_ready(void);
/* Waits for the daemon to end by itself; its exit code. */
#define GUARD_ENDS(...)                                                                  \
    cli_does(&guard, CLI_ARGV(guard_path(), __VA_ARGS__), guard_env(NULL))

/* Makes the socket of a service manager; `abstract`: not in the file system. Returns the
 * variable for guard_env, valid until the next call. */
const char *guard_manager(bool abstract);
/* Whether the manager gets this message within test_ms(CLI_WAIT_MS). Drops all other
 * messages. */
bool guard_tells(const char *text);

/* Writes a file with this text into the server's directory. Its path, valid until the
 * next call. */
const char *livefile_view(const char *text);

#endif
