/* SPDX-License-Identifier: Apache-2.0 */
/* State: of the current test; the thread that runs the plan sets `done`. */
#include "faultscene.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

char fs_dir[] = "/tmp/rlknemXXXXXX";
struct nem_faults *fs_faults;
struct test_redis *fs_redis;
struct test_redis *fs_client, *fs_neighbour;
struct nem_fault fs_records[FS_RECORDS_MAX];
size_t fs_record_count;

struct test_redis *fs_connect_as(unsigned process)
{
    return test_redis_connect_url(nem_faults_url(fs_faults, process), FS_SOON_MS);
}

static struct test_redis *connect_direct(void)
{
    return test_redis_connect(nem_faults_server(fs_faults)->path);
}

void fs_start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(fs_dir));
    fs_faults = nem_faults_start(fs_dir, FS_PROCESSES, NULL);
    fs_redis = connect_direct();
    fs_client = fs_connect_as(0);
    fs_neighbour = fs_connect_as(1);
    test_redis_do(fs_client, "PING");
    test_redis_do(fs_neighbour, "PING");
}

void fs_stop(void)
{
    char command[64];
    test_redis_close(fs_redis);
    test_redis_close(fs_client);
    test_redis_close(fs_neighbour);
    if (fs_faults)
        nem_faults_stop(fs_faults);
    snprintf(command, sizeof(command), "rm -rf %s", fs_dir);
    ck_assert_int_eq(system(command), 0);
}

int64_t fs_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 * FS_NS_PER_MS + ts.tv_nsec;
}

/* ---- running a plan */

static struct {
    struct nem_plan plan;
    const struct nem_workers *workers;
    pthread_t thread;
    bool done; /* atomic */
} running;

static void *run(void *arg)
{
    (void)arg;
    nem_faults_run(fs_faults, &running.plan, running.workers);
    __atomic_store_n(&running.done, true, __ATOMIC_SEQ_CST);
    return NULL;
}

void fs_begin_plan(struct nem_step *steps, size_t count,
                   const struct nem_workers *workers)
{
    running.workers = workers;
    running.plan = (struct nem_plan){ steps, count };
    __atomic_store_n(&running.done, false, __ATOMIC_SEQ_CST);
    ck_assert_int_eq(pthread_create(&running.thread, NULL, run, NULL), 0);
}

void fs_begin(struct nem_step *step)
{
    fs_begin_plan(step, 1, NULL);
}

bool fs_is_over(void)
{
    return __atomic_load_n(&running.done, __ATOMIC_SEQ_CST);
}

size_t fs_file_size(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", fs_dir, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    fclose(file);
    return size;
}

void fs_finish(void)
{
    char path[64];
    ck_assert_int_eq(pthread_join(running.thread, NULL), 0);
    snprintf(path, sizeof(path), "%s/faults", fs_dir);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    fs_record_count = fread(fs_records, sizeof(fs_records[0]), FS_RECORDS_MAX, file);
    fclose(file);
}

struct nem_step fs_step(enum nem_kind kind, long length_ms, int64_t amount)
{
    return (struct nem_step){ .kind = kind,
                              .length_ms = test_ms(length_ms),
                              .target =
                                  nem_kind_lane(kind) == NEM_LANE_SERVER ? NEM_ALL : 0,
                              .lock = NEM_ALL,
                              .amount = amount };
}

void fs_check_record(const struct nem_step *step)
{
    ck_assert_uint_eq(fs_record_count, 1);
    ck_assert_int_eq(fs_records[0].kind, step->kind);
    ck_assert_uint_eq(fs_records[0].target, step->target);
    ck_assert_int_eq(fs_records[0].amount, step->amount);
    ck_assert_int_ge(fs_records[0].end - fs_records[0].begin,
                     step->length_ms * FS_NS_PER_MS);
}

void fs_run_through(struct nem_step *step)
{
    fs_begin(step);
    fs_finish();
    ck_assert_uint_eq(fs_record_count, 1);
    ck_assert_int_eq(fs_records[0].kind, step->kind);
    ck_assert_int_gt(fs_records[0].begin, 0);
    ck_assert_int_ge(fs_records[0].end, fs_records[0].begin);
}

/* ---- commands while the plan runs */

const redisReply *fs_await(struct test_redis *r)
{
    const redisReply *reply = NULL;
    while (!reply && !test_redis_closed(r) && !fs_is_over())
        reply = test_redis_recv(r, FS_LOOK_MS);
    return reply;
}

int64_t fs_longest_wait(struct test_redis *r, const char *command)
{
    int64_t longest = 0;
    do {
        int64_t before = fs_now();
        test_redis_send(r, command, "k");
        if (!test_redis_recv(r, FS_SOON_MS))
            return -1;
        int64_t took = fs_now() - before;
        longest = took > longest ? took : longest;
    } while (!fs_is_over());
    return longest / FS_NS_PER_MS;
}

bool fs_answers(struct test_redis *r)
{
    const redisReply *reply = test_redis_try(r, "PING");
    return reply && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0;
}

bool fs_archive_has(unsigned epoch, const char *text)
{
    char command[128];
    snprintf(command, sizeof(command), "grep -rqs -- '%s' %s/aof.%u", text, fs_dir,
             epoch);
    return system(command) == 0;
}

void fs_reconnect(void)
{
    test_redis_close(fs_redis);
    fs_redis = connect_direct();
    test_redis_close(fs_client);
    fs_client = fs_connect_as(0);
}
