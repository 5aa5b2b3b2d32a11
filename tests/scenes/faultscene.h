/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene for tests of the nemesis's faults: a server with its proxies, plain
 * connections that act as two processes, and a plan that runs in its own thread while the
 * test looks. Thread: a test's main thread.
 */
#ifndef TEST_FAULTSCENE_H
#define TEST_FAULTSCENE_H

#include "nemesis/faults.h"

#include "redis.h"
#include "wait.h"

enum {
    FS_PROCESSES = 2,
    FS_SOON_MS = 10000,
    FS_LOOK_MS = 20,
    FS_WINDOW_MS = 300, /* how long a fault lasts, scaled */
    FS_RECORDS_MAX = 256
};
#define FS_NS_PER_MS INT64_C(1000000)

extern char fs_dir[];
extern struct nem_faults *fs_faults;
extern struct test_redis *fs_redis;                 /* straight to the server */
extern struct test_redis *fs_client, *fs_neighbour; /* of processes 0 and 1 */
extern struct nem_fault fs_records[FS_RECORDS_MAX]; /* filled by fs_finish */
extern size_t fs_record_count;

/* Checked fixtures. */
void fs_start(void);
void fs_stop(void);

/* Connects as this process, through its proxy. NULL: refused. */
struct test_redis *fs_connect_as(unsigned process);
/* Replaces the connections of fs_redis and fs_client. */
void fs_reconnect(void);
int64_t fs_now(void);
size_t fs_file_size(const char *name);
/* Whether the append-only files of an epoch contain the text. */
bool fs_archive_has(unsigned epoch, const char *text);

/* A step of process 0 or of the server; the length is scaled. */
struct nem_step fs_step(enum nem_kind kind, long length_ms, int64_t amount);
/* Runs a plan in a thread. `workers`: NULL when there are no processes. */
void fs_begin_plan(struct nem_step *steps, size_t count,
                   const struct nem_workers *workers);
void fs_begin(struct nem_step *step);
bool fs_is_over(void);
/* Waits for the end of the plan and reads the records. */
void fs_finish(void);
/* Both, for a step without a duration. */
void fs_run_through(struct nem_step *step);
/* Asserts that the only record so far is that of this step. */
void fs_check_record(const struct nem_step *step);

/* Waits until a reply comes, the connection is closed, or the plan is over. */
const redisReply *fs_await(struct test_redis *r);
/* Repeats a command while the plan runs. Returns the longest time until a reply, in
 * ms. */
int64_t fs_longest_wait(struct test_redis *r, const char *command);
bool fs_answers(struct test_redis *r);

#endif
