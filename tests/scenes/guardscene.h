/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of rlock-guard(8) share: a server, a directory on a tmpfs, the daemon as
 * a process, and a service manager that listens to it. Thread: main only. */
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
    GUARD_STOP_MS = 2000 /* from a signal to its end: a second, and one for the machine */
};

extern struct test_server server;
extern struct test_redis *redis;
extern struct cli guard, other; /* stopped at each test's end */
extern const char *guard_dir;   /* each test's own */
extern int manager;             /* -1; the socket that guard_manager has made */

/* A case with its fixtures. */
TCase *guard_case(Suite *suite, const char *name);

/* The path of the built daemon. */
const char *guard_path(void);
/* $RLOCK_RUNDIR, $RLOCK_URL of the server, and, if it is not NULL, one more. Valid until
 * the next call. */
const char *const *guard_env(const char *more);

/* Starts it with these arguments in that environment. */
#define GUARD(...) GUARD_WITH(NULL, __VA_ARGS__)
#define GUARD_WITH(more, ...)                                                            \
    cli_start(&guard, CLI_ARGV(guard_path(), __VA_ARGS__), guard_env(more))
/* And waits until it says that it is ready. */
#define GUARD_READY(...) GUARD_READY_WITH(NULL, __VA_ARGS__)
#define GUARD_READY_WITH(more, ...)                                                      \
    do {                                                                                 \
        GUARD_WITH(more, __VA_ARGS__);                                                   \
        guard_is_ready();                                                                \
    } while (0)
void guard_is_ready(void);
/* The exit code of one that ends by itself. */
#define GUARD_ENDS(...)                                                                  \
    cli_does(&guard, CLI_ARGV(guard_path(), __VA_ARGS__), guard_env(NULL))

/* A service manager's socket; `abstract`: not in the file system. Returns the variable
 * for guard_env, valid until the next call. */
const char *guard_manager(bool abstract);
/* Whether it is told this within test_ms(CLI_WAIT_MS); what else it is told is dropped.
 */
bool guard_tells(const char *text);

/* A file with this text in the server's directory; its path, valid until the next call.
 */
const char *guard_file(const char *text);

#endif
