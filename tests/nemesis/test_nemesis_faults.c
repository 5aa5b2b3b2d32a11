/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone harness */
/* The nemesis's faults of processes and of the server, and plans with many of them. */
#include "faultscene.h"

#include "suite.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BUSY_MAX_MS = 4000 }; /* the server itself waits for 5 s */

/* ---- commands to the server */

START_TEST(client_kill_spares_subscribers)
{
    struct nem_step step = fs_step(NEM_CLIENT_KILL, 0, 0);
    test_redis_do(fs_neighbour, "SUBSCRIBE", "c");
    fs_run_through(&step);
    ck_assert_ptr_null(test_redis_recv(fs_client, FS_SOON_MS));
    ck_assert(test_redis_closed(fs_client));
    fs_reconnect();
    ck_assert_int_eq(test_redis_int(fs_redis, "PUBLISH", "c", "1"), 1);
    ck_assert_ptr_nonnull(test_redis_recv(fs_neighbour, FS_SOON_MS));
}
END_TEST

START_TEST(client_kill_of_subscribers_spares_the_others)
{
    struct nem_step step = fs_step(NEM_CLIENT_KILL_PUBSUB, 0, 0);
    test_redis_do(fs_neighbour, "SUBSCRIBE", "c");
    fs_run_through(&step);
    ck_assert_ptr_null(test_redis_recv(fs_neighbour, FS_SOON_MS));
    ck_assert(test_redis_closed(fs_neighbour));
    ck_assert(fs_answers(fs_client));
    ck_assert(fs_answers(fs_redis));
}
END_TEST

START_TEST(script_flush_forgets_scripts)
{
    struct nem_step step = fs_step(NEM_SCRIPT_FLUSH, 0, 0);
    char sha[64];
    snprintf(sha, sizeof(sha), "%s",
             test_redis_str(fs_redis, "SCRIPT", "LOAD", "return 1"));
    ck_assert_int_eq(test_redis_int(fs_client, "EVALSHA", sha, "0"), 1);
    fs_run_through(&step);
    const redisReply *reply = test_redis_try(fs_client, "EVALSHA", sha, "0");
    ck_assert_int_eq(strncmp(reply->str, "NOSCRIPT", 8), 0);
}
END_TEST

START_TEST(client_pause_holds_all_commands_up)
{
    struct nem_step step = fs_step(NEM_CLIENT_PAUSE, FS_WINDOW_MS, 0);
    fs_begin(&step);
    ck_assert_int_ge(fs_longest_wait(fs_client, "GET"), step.length_ms / 2);
    fs_finish();
    fs_check_record(&step);
}
END_TEST

START_TEST(client_pause_may_hold_writes_only_up)
{
    if (test_server_version() < 60200) {
        puts("skipped: client_pause_may_hold_writes_only_up: no such pause");
        return;
    }
    struct nem_step step = fs_step(NEM_CLIENT_PAUSE, FS_WINDOW_MS, 1);
    const redisReply *reply;
    bool passed = false;
    fs_begin(&step);
    do { /* until a command is delayed */
        test_redis_send(fs_neighbour, "INCR", "k");
        reply = test_redis_recv(fs_neighbour, FS_LOOK_MS);
    } while (reply && !fs_is_over());
    while (!reply && !passed && !fs_is_over()) {
        test_redis_do(fs_client, "GET", "k");
        reply = test_redis_recv(fs_neighbour, 0);
        passed = reply == NULL; /* a read overtook the write */
    }
    fs_finish();
    fs_check_record(&step);
    ck_assert(passed);
    ck_assert_ptr_nonnull(test_redis_recv(fs_neighbour, FS_SOON_MS));
}
END_TEST

/* Repeats a command until its reply is an error with this begin. */
static bool refused_with(struct test_redis *r, const char *error,
                         const char *const argv[])
{
    while (!fs_is_over()) {
        const redisReply *reply = test_redis_try_argv(r, argv);
        ck_assert_ptr_nonnull(reply);
        if (reply->type == REDIS_REPLY_ERROR)
            return strncmp(reply->str, error, strlen(error)) == 0;
    }
    return false;
}

START_TEST(busy_server_says_so_until_the_script_is_killed)
{
    struct nem_step step = fs_step(NEM_BUSY, FS_WINDOW_MS, 0);
    fs_begin(&step);
    ck_assert(refused_with(fs_client, "BUSY", TEST_ARGV("GET", "k")));
    fs_finish();
    fs_check_record(&step);
    int64_t took_ms = (fs_records[0].end - fs_records[0].begin) / FS_NS_PER_MS;
    ck_assert_int_lt(took_ms, step.length_ms + test_ms(BUSY_MAX_MS));
    ck_assert(fs_answers(fs_client));
    const redisReply *reply = test_redis_do(fs_redis, "CONFIG", "GET", "lua-time-limit");
    ck_assert_str_eq(reply->element[1]->str, "5000");
}
END_TEST

START_TEST(full_memory_refuses_writes_and_evicts_nothing)
{
    struct nem_step step = fs_step(NEM_MAXMEMORY, FS_WINDOW_MS, 0);
    test_redis_do(fs_redis, "SET", "volatile", "1", "PX", "3600000");
    fs_begin(&step);
    ck_assert(refused_with(fs_client, "OOM", TEST_ARGV("SET", "k", "v")));
    fs_finish();
    fs_check_record(&step);
    test_redis_do(fs_client, "SET", "k", "v");
    ck_assert(test_redis_exists(fs_redis, "volatile"));
}
END_TEST

/* ---- the server's process */

static void server_stops(enum nem_kind kind)
{
    struct nem_step step = fs_step(kind, FS_WINDOW_MS, 0);
    fs_begin(&step);
    int64_t longest = fs_longest_wait(fs_client, "INCR");
    fs_finish();
    fs_check_record(&step);
    ck_assert_int_ge(longest, step.length_ms / 2);
    ck_assert(fs_answers(fs_client));
}

START_TEST(stopped_server_is_silent_until_it_goes_on)
{
    server_stops(NEM_SERVER_STOP_SHORT);
}
END_TEST

START_TEST(server_stopped_for_long_is_silent_until_it_goes_on)
{
    server_stops(NEM_SERVER_STOP_LONG);
}
END_TEST

START_TEST(restarted_server_has_its_data_and_epoch)
{
    struct nem_step step = fs_step(NEM_SERVER_RESTART, FS_WINDOW_MS, 0);
    pid_t before = test_server_pid(nem_faults_server(fs_faults));
    test_redis_do(fs_client, "SET", "kept", "v");
    fs_begin(&step);
    fs_finish();
    fs_check_record(&step);
    ck_assert_int_ne(test_server_pid(nem_faults_server(fs_faults)), before);
    fs_reconnect();
    ck_assert_str_eq(test_redis_str(fs_client, "GET", "kept"), "v");
    test_redis_do(fs_client, "SET", "later", "v");
    ck_assert(!fs_archive_has(0, "kept"));
    nem_faults_stop(fs_faults);
    fs_faults = NULL;
    ck_assert(fs_archive_has(0, "kept"));
    ck_assert(fs_archive_has(0, "later"));
}
END_TEST

START_TEST(emptied_server_begins_an_epoch)
{
    struct nem_step step = fs_step(NEM_SERVER_EMPTY, FS_WINDOW_MS, 0);
    test_redis_do(fs_client, "SET", "lost", "v");
    fs_begin(&step);
    fs_finish();
    fs_check_record(&step);
    fs_reconnect();
    ck_assert(!test_redis_exists(fs_redis, "lost"));
    ck_assert(fs_archive_has(0, "lost"));
    test_redis_do(fs_client, "SET", "new", "v");
    nem_faults_stop(fs_faults);
    fs_faults = NULL;
    ck_assert(fs_archive_has(1, "new"));
    ck_assert(!fs_archive_has(1, "lost"));
}
END_TEST

/* ---- processes */

static struct {
    char text[512]; /* the actions, a letter and a process each */
    int64_t at[64];
    unsigned count, asked;
} done;

static void did(char letter, unsigned process)
{
    done.at[done.count] = fs_now();
    snprintf(done.text + 3 * done.count, 4, "%c%u ", letter, process);
    done.count++;
}

static void do_kill(void *arg, unsigned process)
{
    (void)arg;
    did('k', process);
}

static void do_restart(void *arg, unsigned process)
{
    (void)arg;
    did('r', process);
}

static void do_stop(void *arg, unsigned process)
{
    (void)arg;
    did('s', process);
}

static void do_cont(void *arg, unsigned process)
{
    (void)arg;
    did('c', process);
}

static void do_term(void *arg, unsigned process)
{
    (void)arg;
    did('t', process);
    done.asked = 0;
}

static bool do_gone(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return ++done.asked == 3;
}

static const struct nem_workers workers = {
    .kill = do_kill,
    .restart = do_restart,
    .stop = do_stop,
    .cont = do_cont,
    .term = do_term,
    .gone = do_gone,
};

static bool never_gone(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return false;
}

static const struct nem_workers workers_that_stay = {
    .kill = do_kill,
    .restart = do_restart,
    .stop = do_stop,
    .cont = do_cont,
    .term = do_term,
    .gone = never_gone,
};

static void processes_see(enum nem_kind kind, long ms, const char *text)
{
    struct nem_step step = fs_step(kind, ms, 0);
    step.target = 1;
    fs_begin_plan(&step, 1, &workers);
    fs_finish();
    fs_check_record(&step);
    ck_assert_str_eq(done.text, text);
    ck_assert_int_ge(done.at[1] - done.at[0], step.length_ms * FS_NS_PER_MS);
    ck_assert_int_le(fs_records[0].begin, done.at[0]);
    ck_assert_int_ge(fs_records[0].end, done.at[1]);
}

START_TEST(killed_process_is_restarted_at_the_end)
{
    processes_see(NEM_KILL, FS_WINDOW_MS, "k1 r1 ");
}
END_TEST

START_TEST(stopped_process_goes_on_at_the_end)
{
    processes_see(NEM_STOP_SHORT, FS_WINDOW_MS, "s1 c1 ");
}
END_TEST

START_TEST(process_stopped_for_long_goes_on_at_the_end)
{
    processes_see(NEM_STOP_LONG, FS_WINDOW_MS, "s1 c1 ");
}
END_TEST

START_TEST(process_asked_to_end_is_restarted_afterwards)
{
    processes_see(NEM_TERM, 0, "t1 r1 ");
    ck_assert_uint_eq(done.asked, 3);
}
END_TEST

START_TEST(process_that_does_not_end_is_killed_and_recorded_so)
{
    struct nem_step step = fs_step(NEM_TERM, 0, 0);
    enum { SOON_MS = 50 };
    nem_faults_bounds(fs_faults, SOON_MS, test_ms(FS_SOON_MS));
    step.target = 1;
    fs_begin_plan(&step, 1, &workers_that_stay);
    fs_finish();
    ck_assert_str_eq(done.text, "t1 r1 ");
    ck_assert_uint_eq(fs_record_count, 1);
    ck_assert_int_eq(fs_records[0].amount, 1);
    ck_assert_int_ge(fs_records[0].end - fs_records[0].begin, SOON_MS * FS_NS_PER_MS);
}
END_TEST

/* Runs in another process, which it aborts. */
static void run_into_the_bound(const char *dir)
{
    enum { SOON_MS = 50 };
    char path[PATH_MAX];
    struct nem_step step = fs_step(NEM_TERM, 0, 0);
    struct nem_plan plan = { &step, 1 };
    snprintf(path, sizeof(path), "%s/stderr", dir);
    if (!freopen(path, "we", stderr))
        _exit(EXIT_FAILURE);
    setvbuf(stderr, NULL, _IONBF, 0); /* the process is going to abort */
    setrlimit(RLIMIT_CORE, &(const struct rlimit){ 0 });
    struct nem_faults *f = nem_faults_start(dir, 1, NULL);
    nem_faults_bounds(f, test_ms(FS_SOON_MS), SOON_MS);
    nem_faults_run(f, &plan, &workers_that_stay);
    _exit(EXIT_SUCCESS);
}

START_TEST(step_that_does_not_end_ends_the_run_with_its_name)
{
    char dir[] = "/tmp/rlknemXXXXXX", command[64], text[2000];
    int status = 0;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run_into_the_bound(dir);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    snprintf(command, sizeof(command), "%s/stderr", dir);
    FILE *file = fopen(command, "re");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ck_assert_ptr_nonnull(strstr(text, "term of process 0, lock -1 does not end"));
    ck_assert_ptr_nonnull(strstr(text, "the server at "));
}
END_TEST

/* ---- output for readers */

START_TEST(keys_of_the_server_are_reported_with_their_values)
{
    char path[PATH_MAX], text[2000];
    snprintf(path, sizeof(path), "%s/stderr", fs_dir);
    test_redis_do(fs_redis, "HSET", "h", "field", "value");
    test_redis_do(fs_redis, "ZADD", "z", "17", "member");
    test_redis_do(fs_redis, "SET", "s", "string", "PX", "1000000");
    int kept = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    nem_faults_tell_keys(fs_faults);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "\nh (hash, -1 ms) field value\ns (string, "));
    ck_assert_ptr_nonnull(strstr(text, " ms) string\nz (zset, -1 ms) member 17\n"));
}
END_TEST

/* ---- plans */

/* processes that were killed or stopped, minus those that run again; one thread uses
 * it */
static int lives;

static void count_down(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    lives--;
}

static void count_up_again(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    lives++;
}

static bool is_gone(void *arg, unsigned process)
{
    (void)arg;
    (void)process;
    return true;
}

static const struct nem_workers workers_that_count = {
    .kill = count_down,
    .restart = count_up_again,
    .stop = count_down,
    .cont = count_up_again,
    .term = count_down,
    .gone = is_gone,
};

static const struct nem_fault *record_of(uint32_t index)
{
    for (size_t i = 0; i < fs_record_count; i++) {
        if (fs_records[i].index == index)
            return &fs_records[i];
    }
    return NULL;
}

START_TEST(steps_that_clash_wait_and_others_do_not)
{
    struct nem_step steps[] = { fs_step(NEM_SERVER_STOP_SHORT, FS_WINDOW_MS, 0),
                                fs_step(NEM_FREEZE, FS_WINDOW_MS, 0),
                                fs_step(NEM_SCRIPT_FLUSH, 0, 0) };
    steps[1].begin_ms = steps[2].begin_ms = 1;
    fs_begin_plan(steps, 3, NULL);
    fs_finish();
    ck_assert_uint_eq(fs_record_count, 3);
    ck_assert_int_lt(record_of(1)->begin, record_of(0)->end);
    ck_assert_int_ge(record_of(2)->begin, record_of(0)->end);
}
END_TEST

START_TEST(plan_of_all_kinds_leaves_everything_running)
{
    struct nem_plan_options o = { .seed = 1,
                                  .faults_ms = test_count(30000, 3000),
                                  .processes = FS_PROCESSES,
                                  .locks = 3,
                                  .lease_ms = 100,
                                  .gap_ms = 20 };
    for (int kind = 0; kind < NEM_KINDS; kind++)
        o.kinds |= (uint64_t)nem_faults_possible(fs_faults, (enum nem_kind)kind) << kind;
    struct nem_plan plan;
    nem_plan_make(&plan, &o);
    ck_assert_uint_gt(plan.count, NEM_KINDS);
    nem_faults_run(fs_faults, &plan, &workers_that_count);
    ck_assert_uint_ge(fs_file_size("faults"), plan.count * sizeof(struct nem_fault));
    ck_assert_int_eq(lives, 0);
    fs_reconnect();
    ck_assert(fs_answers(fs_client) && fs_answers(fs_redis));
    /* a restarted 32-bit server sets 3 GiB itself */
    long long most = test_redis_info(fs_redis, "maxmemory");
    ck_assert(most == 0 || most == 3LL << 30);
    nem_plan_free(&plan);
}
END_TEST

static void add_server(Suite *suite)
{
    TCase *tc = tcase_create("server");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, client_kill_spares_subscribers);
    tcase_add_test(tc, client_kill_of_subscribers_spares_the_others);
    tcase_add_test(tc, script_flush_forgets_scripts);
    tcase_add_test(tc, client_pause_holds_all_commands_up);
    tcase_add_test(tc, client_pause_may_hold_writes_only_up);
    tcase_add_test(tc, busy_server_says_so_until_the_script_is_killed);
    tcase_add_test(tc, full_memory_refuses_writes_and_evicts_nothing);
    tcase_add_test(tc, stopped_server_is_silent_until_it_goes_on);
    tcase_add_test(tc, server_stopped_for_long_is_silent_until_it_goes_on);
    tcase_add_test(tc, restarted_server_has_its_data_and_epoch);
    tcase_add_test(tc, emptied_server_begins_an_epoch);
    tcase_add_test(tc, keys_of_the_server_are_reported_with_their_values);
    suite_add_tcase(suite, tc);
}

static void add_plans(Suite *suite)
{
    TCase *tc = tcase_create("plans");
    tcase_add_checked_fixture(tc, fs_start, fs_stop);
    tcase_add_test(tc, killed_process_is_restarted_at_the_end);
    tcase_add_test(tc, stopped_process_goes_on_at_the_end);
    tcase_add_test(tc, process_stopped_for_long_goes_on_at_the_end);
    tcase_add_test(tc, process_asked_to_end_is_restarted_afterwards);
    tcase_add_test(tc, process_that_does_not_end_is_killed_and_recorded_so);
    tcase_add_test(tc, steps_that_clash_wait_and_others_do_not);
    tcase_add_test(tc, plan_of_all_kinds_leaves_everything_running);
    suite_add_tcase(suite, tc);
    tc = tcase_create("bounds"); /* without the scene */
    tcase_add_test(tc, step_that_does_not_end_ends_the_run_with_its_name);
    suite_add_tcase(suite, tc);
}

int main(void)
{
    Suite *suite = suite_create("nemesis_faults");
    add_server(suite);
    add_plans(suite);
    return test_run_suite(suite);
}
