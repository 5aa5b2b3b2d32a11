/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's failovers: the sentinels elect another master, and the old one comes back
 * and follows it. */
#include "nemesis/faults.h"

#include "redis.h"
#include "suite.h"
#include "wait.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_MS = 200, KINDS = 3, PORT_SIZE = 16 };

static char dir[] = "/tmp/rlknemXXXXXX";
static struct nem_faults *faults;

static void start(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    faults = nem_faults_start_servers(dir, 1, NEM_REPLICAS, NULL);
}

static void stop(void)
{
    char command[64];
    nem_faults_stop(faults);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static struct test_server master(void)
{
    return *nem_faults_server(faults);
}

/* The last record that was written. */
static struct nem_fault last_record(void)
{
    char path[64];
    struct nem_fault record = { 0 };
    snprintf(path, sizeof(path), "%s/faults", dir);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fseek(file, -(long)sizeof(record), SEEK_END), 0);
    ck_assert_uint_eq(fread(&record, sizeof(record), 1, file), 1);
    fclose(file);
    return record;
}

/* All replicas have it when this returns. */
static void write_key(const char *key)
{
    struct test_server s = master();
    struct test_redis *r = test_redis_connect(s.path);
    test_redis_do(r, "SET", key, "1");
    ck_assert_int_eq(test_redis_int(r, "WAIT", "2", "10000"), 2);
    test_redis_close(r);
}

static void check_follows(const struct test_server *server)
{
    char field[2 * PORT_SIZE];
    struct test_redis *r = test_redis_connect(server->path);
    const char *info = test_redis_str(r, "INFO", "replication");
    snprintf(field, sizeof(field), "master_port:%u\r", (unsigned)master().port);
    ck_assert_ptr_nonnull(strstr(info, "role:slave"));
    ck_assert_ptr_nonnull(strstr(info, field));
    ck_assert_ptr_nonnull(strstr(info, "master_link_status:up"));
    ck_assert(test_redis_exists(r, "before"));
    test_redis_close(r);
}

static void fail_over_by(enum nem_kind kind)
{
    struct test_server old = master();
    struct nem_step step = {
        .kind = kind, .length_ms = test_ms(LENGTH_MS), .target = NEM_ALL, .lock = NEM_ALL
    };
    struct nem_plan plan = { &step, 1 };
    write_key("before");
    nem_faults_run(faults, &plan, NULL);
    struct nem_fault record = last_record();
    ck_assert_int_eq(record.kind, (int32_t)kind);
    ck_assert_uint_eq(record.hits, 1);
    ck_assert_int_gt(record.took_us, 0);
    ck_assert_int_gt(record.end - record.begin,
                     INT64_C(1000) * record.took_us + INT64_C(1000000) * step.length_ms);
    ck_assert_int_ne(master().port, old.port);
    check_follows(&old);
    write_key("behind");
}

START_TEST(another_server_is_the_master_and_the_old_one_follows_it)
{
    static const enum nem_kind kinds[KINDS] = { NEM_MASTER_KILL, NEM_MASTER_STOP,
                                                NEM_FAILOVER };
    for (long i = 0; i < test_count(KINDS, 1); i++)
        fail_over_by(kinds[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nemesis: failovers");
    TCase *tc = tcase_create("failovers");
    tcase_add_checked_fixture(tc, start, stop);
    tcase_add_test(tc, another_server_is_the_master_and_the_old_one_follows_it);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
