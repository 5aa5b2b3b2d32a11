/* SPDX-License-Identifier: Apache-2.0 */
/* The scene for tests of `rlock run`: a server, two runs, and looks at both. Functions
 * whose names begin with "run_" only look. Thread: main only. */
#ifndef TEST_RUNSCENE_H
#define TEST_RUNSCENE_H

#include "cli.h"
#include "redis.h"
#include "server.h"
#include "suite.h"

#include <stdbool.h>
#include <sys/types.h>

extern struct test_server server;
extern struct test_redis *redis;
extern struct cli c, other; /* stopped at the end of each test */

/* Fixtures. Unchecked: the server; checked: all other things. */
void scene_start(void);
void scene_stop(void);
void scene_open(void);
void scene_close(void);
/* Adds a test case with both fixtures. */
TCase *scene_case(Suite *suite, const char *name);

/* An environment with RLOCK_URL of the server and the path of the built rlock in $R;
 * parameters: "?lease=500&..." or "". Valid until the next call. */
const char *const *scene_env(const char *parameters);
#define ENV scene_env("")

/* Starts `rlock run` with these arguments, which begin with the options. */
#define START(c, ...) START_WITH("", c, __VA_ARGS__)
#define START_WITH(parameters, c, ...)                                                   \
    cli_start((c), CLI_ARGV("rlock", "run", __VA_ARGS__), scene_env(parameters))
/* Runs `rlock run` with these arguments; its exit code. */
#define RUN(...) cli_does(&c, CLI_ARGV("rlock", "run", __VA_ARGS__), ENV)

/* Starts a command under the mutex "n", and waits until it runs. It ends when its input
 * ends. */
void scene_hold(struct cli *holder, const char *option);

/* Whether the lock "n" is held; wait until this many wait for it as a writer; wait until
 * it is free. */
bool run_is_held(void);
bool run_is_queued(int count);
bool run_is_free(void);

/* The number behind `what` in the output. The process with this pid is killed when the
 * test ends. */
pid_t run_pid(struct cli *cli, const char *what);
/* Waits until the process has ended, or is a zombie; until it is stopped. */
bool run_is_gone(pid_t pid);
bool run_is_stopped(pid_t pid);
char run_state(pid_t pid); /* of proc(5); 'X': no such process */

/* The path of tests/sleeper. */
const char *scene_sleeper(void);
/* Takes the lock "n" from its holder by force. The holder learns it at once. */
void scene_force(void);

#endif
