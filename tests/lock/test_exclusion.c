/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_exclusion,rwlock_exclusion claims=S1,S2,S3,S4,S5 */
/*
 * S1 to S5: never two holders, whatever happens to processes. `x` and `y` are workers.
 * They connect straight to the server unless a test says otherwise.
 */
#include "scene.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PROCESSES = 16,
    THREADS = 4,
    VICTIMS = 3,
    LEASE_MS = 500,
    TAKEOVER_MS = 250,
    STAYS_MS = 150,
    PAGE_SIZE = 4096,
    AT_SECOND = 3072
};

#if defined(AS_RWLOCK)
#define HAMMER_KIND "rwlock"
#elif defined(AS_FAIR)
#define HAMMER_KIND "fair"
#else
#define HAMMER_KIND NULL
#endif

static struct worker x, y;

static void open_scene(void)
{
    scene_open();
    memset(&x, 0, sizeof(x));
    memset(&y, 0, sizeof(y));
}

static void close_scene(void)
{
    worker_end(&x);
    worker_end(&y);
    scene_close();
}

/* ---- S1, S3: many processes */

struct team {
    struct test_program program[PROCESSES];
    char file[TEST_PATH_MAX];
};

static void start_team(struct team *team, long rounds, long lease)
{
    char path[512], threads[16], times[16], lease_ms[16];
    test_build_path(path, sizeof(path), "tests/hammer");
    snprintf(team->file, sizeof(team->file), "%s/counters", scene_server.dir);
    snprintf(threads, sizeof(threads), "%d", THREADS);
    snprintf(times, sizeof(times), "%ld", rounds);
    snprintf(lease_ms, sizeof(lease_ms), "%ld", lease);
    int fd = open(team->file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, PAGE_SIZE), 0);
    close(fd);
    const char *const argv[] = { path,  scene_server.url, "N",      threads,
                                 times, team->file,       lease_ms, HAMMER_KIND,
                                 NULL };
    for (int i = 0; i < PROCESSES; i++)
        test_program_start(&team->program[i], argv, NULL);
}

/* The file grows by one token for each section. */
static int64_t team_progress(void *arg)
{
    const struct team *team = arg;
    struct stat st;
    return stat(team->file, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* Reads what the members saw, and adds up their sections. However many sections remain,
 * the next one begins soon. */
static void join_team(struct team *team, int from, long *ret_sections)
{
    *ret_sections = 0;
    for (int i = from; i < PROCESSES; i++) {
        char line[256] = "";
        long n[5] = { 0 };
        ck_assert(test_program_read_amid(&team->program[i], line, sizeof(line),
                                         team_progress, team, SCENE_SOON_MS));
        ck_assert_int_eq(sscanf(line,
                                "sections %ld overlaps %ld torn %ld lost %ld failed %ld",
                                &n[0], &n[1], &n[2], &n[3], &n[4]),
                         5);
        *ret_sections += n[0];
        ck_assert_msg(n[1] == 0 && n[2] == 0 && n[3] == 0 && n[4] == 0, "%s", line);
    }
}

/* Asserts that the file counts `sections`, or up to `unsure` more, and that the tokens
 * grow in the order of the sections. */
static void check_file(const struct team *team, uint64_t sections, uint64_t unsure)
{
    int fd = open(team->file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    const char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    ck_assert(bytes != MAP_FAILED);
    const uint64_t *tokens = (const uint64_t *)(const void *)(bytes + PAGE_SIZE);
    uint64_t count, second;
    memcpy(&count, bytes, sizeof(count));
    memcpy(&second, bytes + AT_SECOND, sizeof(second));
    ck_assert_uint_ge(count, sections);
    ck_assert_uint_le(count, sections + unsure);
    ck_assert_uint_eq(count, second);
    for (uint64_t i = 1; i < count; i++)
        ck_assert_uint_gt(tokens[i], tokens[i - 1]);
    munmap((void *)(uintptr_t)bytes, (size_t)st.st_size);
}

static void end_team(struct team *team)
{
    for (int i = 0; i < PROCESSES; i++)
        test_program_end(&team->program[i]);
    unlink(team->file);
}

/* rule: S1 */
START_TEST(no_two_of_64_threads_in_16_processes_are_ever_inside_and_tokens_grow)
{
    static struct team team;
    long rounds = test_count(800, 63), sections;
    start_team(&team, rounds, test_ms(10000));
    join_team(&team, 0, &sections);
    ck_assert_int_eq(sections, PROCESSES * THREADS * rounds);
    check_file(&team, (uint64_t)sections, 0);
    end_team(&team);
}
END_TEST

static bool file_has_grown(void *arg)
{
    return team_progress(arg) > PAGE_SIZE + 100 * (int64_t)sizeof(uint64_t);
}

/* rule: S1 */
START_TEST(no_two_threads_are_inside_when_processes_are_killed_at_any_moment)
{
    static struct team team;
    long rounds = test_count(200, 20), sections;
    start_team(&team, rounds, test_ms(3000));
    ck_assert(test_wait_until(file_has_grown, &team, SCENE_SOON_MS));
    for (int i = 0; i < VICTIMS; i++) {
        test_pause_ms(17);
        test_program_kill(&team.program[i]);
    }
    join_team(&team, VICTIMS, &sections);
    ck_assert_int_eq(sections, (PROCESSES - VICTIMS) * THREADS * rounds);
    check_file(&team, (uint64_t)sections, VICTIMS * THREADS * (uint64_t)rounds);
    end_team(&team);
}
END_TEST

/* ---- S1, S4: a holder that is killed or stopped */

static void start_both(const struct scene_times *times)
{
    scene_worker(&x, scene_server.url, times, "N", "fencing=1");
    scene_worker(&y, scene_server.url, times, "N", "fencing=1");
}

/* *arg: whether y has it. */
static bool y_waits_or_has_it(void *arg)
{
    bool *has = arg;
    *has = worker_news(&y, "done t ok", 1) != NULL;
    return *has || scene_count("N", "queue") > 0;
}

/* rule: S1 */
START_TEST(lock_of_a_killed_holder_is_granted_when_its_lease_ends_and_not_before)
{
    test_rundir_off();
    int64_t begin = 0;
    long long left = 0;
    for (long lease = test_ms(LEASE_MS);; lease *= 2) {
        start_both(SCENE_TIMES(.lease = lease));
        int64_t locked = test_now_ms();
        scene_says(&x, "ok", "on t lock m");
        scene_says(&y, "ok", "async t lock m");
        bool has_it;
        ck_assert(test_wait_until(y_waits_or_has_it, &has_it, SCENE_SOON_MS));
        worker_kill(&x);
        begin = test_now_ms();
        left = scene_pttl("N");
        if (test_now_ms() - locked < lease) {
            ck_assert(!has_it);
            break;
        }
        scene_anew(&x, &y); /* x was not renewed in time: y may have it by now */
    }
    ck_assert_int_gt(left, 0);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    int64_t took = test_now_ms() - begin;
    ck_assert_int_ge(took, left - 1);
    ck_assert_int_le(took, left + test_ms(TAKEOVER_MS));
}
END_TEST

/* rule: S4 */
START_TEST(holder_stopped_past_its_lease_learns_the_loss_before_anything_else)
{
    start_both(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&x, "ok", "on t lock m");
    long long token = worker_number(&x, "on t token m");
    scene_worker_waits(&y, "N", 1);
    worker_stop(&x);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    worker_send(&x, "on t state m"); /* x reads this command when it goes on */
    worker_cont(&x);
    /* x answers the command above first: each line here is answered by the previous
     * command */
    scene_says(&x, "ok LOST", "on t remaining m");
    scene_says(&x, "ok 0", "on t lock m");
    scene_says(&x, "ESTALE", "on t unlock m");
    scene_says(&x, "ESTALE", "version");
    ck_assert(worker_news(&x, "event LOST N", 1000));
    scene_says(&y, "ok SAFE", "on t state m"); /* x's release did not hit y's hold */
    ck_assert_int_gt(worker_number(&y, "on t token m"), token);
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

/* rule: S4 */
START_TEST(unlock_by_a_holder_stopped_past_its_lease_returns_ESTALE_and_frees_nothing)
{
    char id[SCENE_ID_MAX];
    start_both(SCENE_TIMES(.lease = test_ms(LEASE_MS)));
    scene_says(&x, "ok", "on t lock m");
    scene_worker_waits(&y, "N", 1);
    worker_stop(&x);
    ck_assert(scene_worker_got(&y, SCENE_SOON_MS));
    ck_assert(scene_holder("N", id));
    worker_cont(&x);
    scene_says(&x, "ESTALE", "on t unlock m");
    ck_assert(!scene_wait_holder_gone("N", id, 0));
    scene_says(&y, "ok", "on t unlock m");
}
END_TEST

static bool x_is_not_told(void *arg)
{
    (void)arg;
    return !worker_news(&x, "done t", 0);
}

/* rule: S1 */
START_TEST(waiter_stopped_during_its_grant_believes_no_lapsed_grant)
{
    start_both(SCENE_TIMES(.presence = test_ms(300)));
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    worker_stop(&x);
    scene_says(&y, "ok", "on t unlock m"); /* to x, by a message that x does not read */
    ck_assert(test_redis_exists(scene_redis, "N"));
    scene_says(&y, "ok", "on t lock m"); /* when the grant has lapsed */
    worker_cont(&x);
    ck_assert(test_stays(x_is_not_told, NULL, test_ms(STAYS_MS)));
    scene_says(&y, "ok", "on t unlock m");
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok SAFE", "on t state m");
}
END_TEST

/* rule: S1 */
START_TEST(waiter_stopped_for_less_than_its_grant_has_the_lock)
{
    start_both(SCENE_TIMES(.presence = test_ms(2000)));
    scene_says(&y, "ok", "on t lock m");
    scene_worker_waits(&x, "N", 1);
    worker_stop(&x);
    scene_says(&y, "ok", "on t unlock m");
    worker_cont(&x);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&y, "EBUSY", "on t trylock m");
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* ---- S2, S5 */

/* rule: S2 */
START_TEST(only_the_thread_that_acquired_a_lock_can_release_it)
{
    start_both(NULL);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "EPERM", "on other unlock m");
    scene_says(&y, "EPERM", "on t unlock m");
    scene_says(&x, "ok SAFE", "on t state m");
    ck_assert(test_redis_exists(scene_redis, "N"));
}
END_TEST

/* The number in the id of x's next hold. */
static unsigned long long next_number(void)
{
    char id[SCENE_ID_MAX], digits[32];
    scene_says(&x, "ok", "on t lock m");
    ck_assert(scene_holder("N", id));
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(sscanf(id, "%*36[^:]:%*u:%31[0-9]:", digits), 1);
    ck_assert_uint_eq(strlen(digits), 16);
    return strtoull(digits, NULL, 10);
}

/* Ids cannot be guessed from earlier ones: no number is near another. */
/* rule: S2 */
START_TEST(each_acquisition_has_an_id_of_its_own)
{
    enum { IDS = 50 };
    const unsigned long long near = 1000000; /* the chance is 1 in 3 * 10^6 */
    unsigned long long numbers[IDS];
    scene_worker(&x, scene_server.url, NULL, "N", "");
    for (int i = 0; i < IDS; i++) {
        numbers[i] = next_number();
        for (int j = 0; j < i; j++) {
            unsigned long long a = numbers[i], b = numbers[j];
            ck_assert_uint_gt(a > b ? a - b : b - a, near);
        }
    }
}
END_TEST

/* rule: S3 */
START_TEST(token_is_greater_after_the_server_lost_the_previous_one)
{
    scene_worker(&x, scene_server.url, NULL, "N", "fencing=1");
    scene_says(&x, "ok", "on t lock m");
    long long token = worker_number(&x, "on t token m");
    scene_says(&x, "ok", "on t unlock m");
    test_redis_do(scene_redis, "FLUSHALL");
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_gt(worker_number(&x, "on t token m"), token);
}
END_TEST

/* rule: S3 */
START_TEST(reentry_has_the_same_token)
{
    scene_worker(&x, scene_server.url, NULL, "N", "fencing=1 type=recursive");
    scene_says(&x, "ok", "on t lock m");
    long long token = worker_number(&x, "on t token m");
    scene_says(&x, "ok", "on t lock m");
    ck_assert_int_eq(worker_number(&x, "on t token m"), token);
}
END_TEST

/* rule: S5 */
START_TEST(two_handles_and_two_clients_with_the_same_name_are_one_lock)
{
    scene_worker(&x, scene_server.url, NULL, "N", "");
    scene_says(&x, "ok", "init twin N" SCENE_KIND);
    scene_says(&x, "ok", "open %s", scene_server.url);
    scene_says(&x, "ok", "init other N" SCENE_KIND);
    scene_says(&x, "ok", "on t lock m");
    scene_says(&x, "EBUSY", "on u trylock twin");
    scene_says(&x, "EBUSY", "on u trylock other");
    scene_says(&x, "EBUSY", "on t trylock other");
    scene_says(&x, "ok", "on t unlock twin");
    scene_says(&x, "ok", "on t trylock other");
}
END_TEST

/* rule: S5 */
START_TEST(name_in_use_by_another_lock_type_counts_as_held)
{
    static const char *const modes[] = { "rlock:mutex", "rlock:fair", "rlock:write",
                                         "rlock:read", "read" };
    scene_worker(&x, scene_server.url, NULL, "N", "");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        test_redis_do(scene_redis, "HSET", "N",
                      "00000000-0000-4000-8000-00000000000e:1:1:f3000", "1", "mode",
                      modes[i]);
        test_redis_do(scene_redis, "PEXPIRE", "N", "60000");
        scene_says(&x, "EBUSY", "on t trylock m");
        test_redis_do(scene_redis, "DEL", "N");
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("exclusion");

    TCase *s1 = scene_tcase(s, "S1", open_scene, close_scene);
    tcase_add_test(s1,
                   no_two_of_64_threads_in_16_processes_are_ever_inside_and_tokens_grow);
    tcase_add_test(s1, no_two_threads_are_inside_when_processes_are_killed_at_any_moment);
    tcase_add_test(s1,
                   lock_of_a_killed_holder_is_granted_when_its_lease_ends_and_not_before);
    tcase_add_test(s1, waiter_stopped_during_its_grant_believes_no_lapsed_grant);
    tcase_add_test(s1, waiter_stopped_for_less_than_its_grant_has_the_lock);
    test_long_tcase(s1);

    TCase *s2 = scene_tcase(s, "S2", open_scene, close_scene);
    tcase_add_test(s2, only_the_thread_that_acquired_a_lock_can_release_it);
    tcase_add_test(s2, each_acquisition_has_an_id_of_its_own);

    TCase *s3 = scene_tcase(s, "S3", open_scene, close_scene);
    tcase_add_test(s3, token_is_greater_after_the_server_lost_the_previous_one);
    tcase_add_test(s3, reentry_has_the_same_token);

    TCase *s4 = scene_tcase(s, "S4", open_scene, close_scene);
    tcase_add_test(s4,
                   holder_stopped_past_its_lease_learns_the_loss_before_anything_else);
    tcase_add_test(
        s4, unlock_by_a_holder_stopped_past_its_lease_returns_ESTALE_and_frees_nothing);

    TCase *s5 = scene_tcase(s, "S5", open_scene, close_scene);
    tcase_add_test(s5, two_handles_and_two_clients_with_the_same_name_are_one_lock);
    tcase_add_test(s5, name_in_use_by_another_lock_type_counts_as_held);
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
