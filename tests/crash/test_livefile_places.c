/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G3,G5 */
/*
 * Where a client's live file is (rules G3 to G5, G7): on a tmpfs that is full or becomes
 * full; under a limit for the size of files; in a directory with foreign files; in a
 * directory that users of a group, or containers, share. Leases are too long to matter,
 * unless a test says otherwise.
 */
#include "client/client.h" /* before the fixture, which has a variable of that name */

#include "fixture.h"

#include "forked.h"
#include "livefile_view.h"
#include "namespaces.h"
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 10000, LONG_MS = 120000, PAGE = 4096, LOCKS = 100 };
enum {
    FIRST =
        RLK_LIVEFILE_HEADER + RLK_SLOTS_FIRST * 256 /* bytes that a file begins with */
};
#define DECOY "00000000-0000-4000-8000-00000000dec0"

static const char *dir;
static struct livefile_view file;
static char line[512];
static rlock_mutex_t locks[LOCKS];

static void on_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level == LOG_INFO && strncmp(text, "rlock: no crash guard", 21) == 0)
        snprintf(line, sizeof(line), "%s", text);
}

static void set_up(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    fixture_load_scripts();
    dir = test_rundir_own();
    file.fd = -1;
    line[0] = '\0';
    rlock_setlogger(on_line, NULL, LOG_INFO);
}

static void tear_down(void)
{
    if (file.fd >= 0)
        livefile_view_close(&file);
    fixture_close();
    rlock_setlogger(NULL, NULL, 0);
}

static rlock_client_t *open_always(void)
{
    rlock_clientattr_t attr;
    rlock_client_t *c;
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setguard(&attr, RLOCK_GUARD_ALWAYS));
    OK(rlock_client_open(&c, server.url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    return c;
}

/* ---- memory, and a size limit */

/* Holds `count` locks at a time, and expects that `with_slot` of them have an intent. */
static void expect_slots(int count, unsigned with_slot)
{
    char name[32];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        locks[i] = mutex_of(client, name);
        OK(rlock_mutex_lock(&locks[i]));
    }
    ck_assert_uint_eq(livefile_view_used(&file), with_slot);
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(state_of(&locks[i]), RLOCK_SAFE);
        OK(rlock_mutex_unlock(&locks[i]));
    }
    ck_assert_uint_eq(livefile_view_used(&file), 0);
}

/* Uses a lock of a client without a crash guard; the log says why it has none. */
static void expect_none(const char *why)
{
    char first[4];
    client = open_with("");
    ck_assert_msg(strstr(line, why) != NULL, "\"%s\"", line);
    ck_assert_int_eq(test_rundir_count(dir), 0);
    FILE *others = popen("ls -A \"$RLOCK_RUNDIR\" | grep '^[.]'", "r");
    ck_assert(others && !fgets(first, sizeof(first), others));
    pclose(others);
    locks[0] = mutex_of(client, "n");
    OK(rlock_mutex_lock(&locks[0]));
    OK(rlock_mutex_unlock(&locks[0]));
    close_client(client);
    client = NULL;
}

/* Mounts a tmpfs of this size as the directory. */
static bool have_room(const char *test, size_t bytes)
{
    if (!namespaces_enter(test, CLONE_NEWNS))
        return false;
    namespaces_mount(dir, bytes);
    return true;
}

static void fill(const char *name, size_t bytes)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(fallocate(fd, 0, 0, (off_t)bytes), 0);
    close(fd);
}

static void remove_filler(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(unlink(path), 0);
}

/* rule: G1 */
START_TEST(full_tmpfs_disables_the_crash_guard)
{
    if (!have_room("full_tmpfs_disables_the_crash_guard", 2 * FIRST))
        return;
    for (size_t left = 0; left < FIRST; left += PAGE) { /* only `left` bytes are free */
        char name[32];
        snprintf(name, sizeof(name), "%zu", left);
        fill(name, 2 * FIRST - left);
        expect_none("cannot create a file in ");
        ck_assert_ptr_nonnull(strstr(line, "No space left on device"));
        remove_filler(name);
    }
    client = open_with("");
    ck_assert_int_eq(test_rundir_count(dir), 1);
}
END_TEST

/* A store into a page for which the file system has no memory would raise SIGBUS. */
/* rule: G1 */
START_TEST(tmpfs_that_becomes_full_allows_no_more_intents)
{
    if (!have_room("tmpfs_that_becomes_full_allows_no_more_intents", FIRST + PAGE))
        return;
    client = open_with("");
    fill("filler", PAGE);
    livefile_view_open(&file, dir, client->uuid);
    expect_slots(LOCKS, RLK_SLOTS_FIRST);
    expect_slots(LOCKS, RLK_SLOTS_FIRST);
    remove_filler("filler"); /* one page: not enough */
    expect_slots(LOCKS, RLK_SLOTS_FIRST);
    namespaces_resize(dir, 4 * FIRST);
    expect_slots(LOCKS, LOCKS);
}
END_TEST

/* Runs in a child, because Check writes files as well. A client under this limit has this
 * many intents for 80 locks; -1: it has no crash guard. */
struct limit {
    rlim_t bytes;
    int slots;
};

static int lives_with_the_limit(struct forked_report *report, void *arg)
{
    const struct limit *limit = arg;
    struct rlimit now;
    rlock_client_t *c;
    (void)report;

    MUST(getrlimit(RLIMIT_FSIZE, &now) == 0);
    now.rlim_cur = limit->bytes;
    MUST(setrlimit(RLIMIT_FSIZE, &now) == 0);
    MUST(rlock_client_open(&c, server.url, NULL) == 0);
    MUST(test_rundir_count(dir) == (limit->slots >= 0));
    MUST(limit->slots >= 0 || strstr(line, "File too large"));
    for (int i = 0; i < 80; i++) {
        rlock_mutexattr_t attr;
        char name[32];
        snprintf(name, sizeof(name), "n%d", i);
        rlock_mutexattr_init(&attr);
        MUST(rlock_mutexattr_setclient(&attr, c) == 0);
        MUST(rlock_mutex_init(&locks[i], &attr, name) == 0);
        MUST(rlock_mutex_lock(&locks[i]) == 0);
    }
    if (limit->slots >= 0) {
        livefile_view_open(&file, dir, c->uuid);
        MUST(livefile_view_used(&file) == (unsigned)limit->slots);
    }
    for (int i = 0; i < 80; i++)
        MUST(rlock_mutex_unlock(&locks[i]) == 0);
    MUST(rlock_client_close(c) == 0);
    MUST(test_rundir_count(dir) == 0);
    return 0;
}

static const struct limit limits[] = {
    { 0, -1 },
    { RLK_LIVEFILE_HEADER - 1, -1 },
    { RLK_LIVEFILE_HEADER + sizeof(struct rlk_intent) - 1, -1 },
    { RLK_LIVEFILE_HEADER + 10 * sizeof(struct rlk_intent), 10 },
    { RLK_LIVEFILE_HEADER + 70 * sizeof(struct rlk_intent) + 1, 70 },
};

/* A file beyond the limit would raise a signal. */
/* rule: G7 */
START_TEST(file_size_limit_also_limits_intents)
{
    struct limit limit = limits[_i];
    NEEDS_FORK("file_size_limit_also_limits_intents");
    CHILD_IS_FINE(lives_with_the_limit, &limit);
}
END_TEST

/* ---- foreign files */

static void write_file(const char *name, const char *text, size_t len)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
    close(fd);
}

#define UUID(n) "0000000" n "-0000-4000-8000-000000000000"
#define HEAD(layout, uuid)                                                               \
    "rlock-guard " layout " " uuid "\npid 1\nprogram p\nserver %s\nlife 1000\n"

static const struct {
    const char *name, *head;
} strange[] = {
    { UUID("0"), "" },
    { UUID("1"), "something else\n%s\n" },
    { UUID("2"), HEAD("2", UUID("2")) },
    { UUID("3"), HEAD("10", UUID("3")) },
    { UUID("4"), HEAD("1", UUID("5")) },
    { UUID("5"), HEAD("1", UUID("5") "0") },
    { UUID("6"), "rlock-guard 1 " UUID("6") "\npid 1\nprogram p\nserver %s\n" },
    { UUID("7"), "rlock-guard 1 " UUID("7") "\npid 1\nprogram p\nserver %s\nlife 0\n" },
    { UUID("8"), "rlock-guard 1 " UUID("8") "\npid 1\nserver %s\nlife 1000\n" },
    { UUID("9"), "rlock-guard 1 " UUID("9") "\npid 1\nprogram p\nlife 1000\n%s" },
    { UUID("A"), HEAD("1", UUID("A")) },
    { UUID("b") "0", HEAD("1", UUID("b")) },
    { "00000000_0000_4000_8000_000000000000", HEAD("1", UUID("0")) },
    { "readme", HEAD("1", "readme") },
};
enum { STRANGE = sizeof(strange) / sizeof(strange[0]) };

/* Makes these files, and some things that are not files; the last one is a link to a dead
 * client's file. */
static void make_strange(const char *server_line)
{
    char text[512], path[PATH_MAX], *end;
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    for (int i = 0; i < STRANGE; i++) {
        const char *head = strange[i].head, *at = strstr(head, "%s");
        int before = (int)(at ? (size_t)(at - head) : strlen(head));
        snprintf(text, sizeof(text), "%.*s%s%s", before, head, at ? server_line : "",
                 at ? at + 2 : "");
        write_file(strange[i].name, text, strlen(text));
    }
    end = path + snprintf(path, sizeof(path), "%s/", dir);
    strcpy(end, UUID("c"));
    ck_assert_int_eq(mkdir(path, 0700), 0);
    strcpy(end, UUID("d"));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    strcpy(end, UUID("e"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_lt(snprintf(address.sun_path, sizeof(address.sun_path), "%s", path),
                     sizeof(address.sun_path));
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    strcpy(end, "elsewhere");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    livefile_view_make(path, UUID("f"), server_line);
    strcpy(end, UUID("f"));
    ck_assert_int_eq(symlink("elsewhere/" UUID("f"), path), 0);
}

static int entries(const char *path)
{
    DIR *list = opendir(path);
    int count = -2;
    ck_assert_ptr_nonnull(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count;
}

/* In the second round the files appear while a client watches. */
/* rule: G3 */
START_TEST(unknown_files_are_left_alone)
{
    char server_line[RLK_LIVEFILE_SERVER_SIZE], path[PATH_MAX];

    client = open_with("");
    livefile_view_open(&file, dir, client->uuid);
    snprintf(server_line, sizeof(server_line), "%s", livefile_view_line(&file, "server"));
    close_client(client); /* it would look as well */
    client = NULL;
    if (_i == 0)
        make_strange(server_line);
    other = open_always();
    if (_i == 1) {
        livefile_view_make(dir, DECOY, server_line);
        ck_assert(livefile_view_wait_gone(dir, DECOY)); /* the client watches */
        make_strange(server_line);
    }
    livefile_view_make(dir, DECOY, server_line);
    ck_assert(livefile_view_wait_gone(dir, DECOY));
    ck_assert_int_eq(entries(dir), STRANGE + 5 + 1);
    snprintf(path, sizeof(path), "%s/elsewhere", dir);
    ck_assert_int_eq(entries(path), 1);
    ck_assert(livefile_view_wait_recoveries(other, 1 + (unsigned)_i));
}
END_TEST

static bool is_marked(void *name)
{
    char path[PATH_MAX], text[16] = "";
    snprintf(path, sizeof(path), "%s/%s", dir, (const char *)name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, text, 5, RLK_LIVEFILE_HEADER - 64);
    close(fd);
    return n == 5 && strcmp(text, "dead ") == 0;
}

static void mark_dead(const char *name, long long since)
{
    char path[PATH_MAX], text[64];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    int len = snprintf(text, sizeof(text), "dead %lld\n", since);
    ck_assert_int_eq(pwrite(fd, text, (size_t)len, RLK_LIVEFILE_HEADER - 64), len);
    close(fd);
}

/* The file stays for clients of its own server, for as long as it may matter to them. */
START_TEST(live_file_of_another_servers_dead_client_stays_for_two_days)
{
    char young[] = UUID("1"), old[] = UUID("2"), fresh[] = UUID("3"), odd[] = UUID("4");
    long long now = time(NULL);

    livefile_view_make(dir, young, "tcp elsewhere:1 0 0");
    mark_dead(young, now - 47 * 3600);
    livefile_view_make(dir, old, "tcp elsewhere:1 0 0");
    mark_dead(old, now - 49 * 3600);
    livefile_view_make(dir, fresh, "tcp elsewhere:1 0 0");
    livefile_view_make(dir, odd, "tcp elsewhere:1 0 0");
    mark_dead(odd, now + 3600); /* by a clock that has been corrected since */
    other = open_always();
    ck_assert(livefile_view_wait_gone(dir, old));
    ck_assert(test_wait_until(is_marked, fresh, SOON_MS));
    ck_assert(is_marked(young) && is_marked(odd));
    ck_assert_int_eq(test_rundir_count(dir), 4);
    ck_assert_uint_eq(stats_of(other).burials, 0);
}
END_TEST

static void age(const char *name)
{
    char path[PATH_MAX];
    struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { 0 } };
    times[1].tv_sec = time(NULL) - 70;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Its process died before the file got its final name. */
START_TEST(what_was_begun_and_never_named_is_removed)
{
    char path[PATH_MAX], decoy[] = DECOY;
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

    write_file("." UUID("1"), "", 0);
    age("." UUID("1"));
    write_file("." UUID("2"), "", 0); /* just now */
    write_file("." UUID("3"), "", 0);
    age("." UUID("3"));
    write_file(".something", "", 0);
    age(".something");
    snprintf(path, sizeof(path), "%s/.%s", dir, UUID("3"));
    int fd = open(path, O_RDWR | O_CLOEXEC); /* a process is still at work on it */
    ck_assert_int_eq(fcntl(fd, F_OFD_SETLK, &lock), 0);
    other = open_always();
    ck_assert(livefile_view_wait_gone(dir, "." UUID("1")));
    livefile_view_make(dir, DECOY, "tcp elsewhere:1 0 0");
    ck_assert(test_wait_until(is_marked, decoy, SOON_MS));
    ck_assert(livefile_view_exists(dir, "." UUID("2")));
    ck_assert(livefile_view_exists(dir, "." UUID("3")));
    ck_assert(livefile_view_exists(dir, ".something"));
    close(fd);
}
END_TEST

/* ---- a shared directory */

static struct worker v;

/* Starts tests/worker through the command `front`, which ends with NULL. False: not
 * possible here. */
static bool start_behind(const char *const front[], const char *url, long lease_ms)
{
    char path[PATH_MAX], command[TEST_URL_MAX + 64];
    const char *argv[16];
    int n = 0;

    test_build_path(path, sizeof(path), "tests/worker");
    while (front[n]) {
        argv[n] = front[n];
        n++;
    }
    argv[n] = path;
    argv[n + 1] = NULL;
    memset(&v, 0, sizeof(v));
    test_program_start(&v.program, argv, NULL);
    if (!worker_ask(&v, "version", SOON_MS))
        return false;
    snprintf(command, sizeof(command), "open %s lease=%ld", url, lease_ms);
    ck_assert(worker_says(&v, command, "ok"));
    ck_assert(worker_says(&v, "init m n", "ok"));
    return true;
}

static void skip(const char *test, const char *why)
{
    printf("skipped: %s: %s\n", test, why);
    fflush(stdout);
    worker_end(&v);
}

#define CONTAINER                                                                        \
    "unshare", "--user", "--map-root-user", "--mount", "--ipc", "--net", "--pid",        \
        "--fork", "--kill-child"
static const char *const container[] = { CONTAINER, NULL };
static const char *const container_of_its_own[] = {
    CONTAINER, "sh", "-c", "mount -t tmpfs none \"$RLOCK_RUNDIR\" && exec \"$0\"", NULL
};

static const char *lease(void)
{
    static char parameters[64];
    snprintf(parameters, sizeof(parameters), "?lease=%ld", test_ms(LONG_MS));
    return parameters;
}

/* rule: G5 */
START_TEST(containers_with_a_shared_directory_recover_each_other)
{
    const char *name = "containers_with_a_shared_directory_recover_each_other";
    rlock_mutex_t m;

    client = open_with(lease());
    m = mutex_of(client, "n");
    if (!start_behind(container, server.url, test_ms(LONG_MS))) {
        skip(name, "no user namespaces");
        return;
    }
    ck_assert_int_eq(test_rundir_count(dir), 2);
    if (_i == 0) { /* the worker dies */
        ck_assert(worker_says(&v, "lock m", "ok"));
        worker_kill(&v);
        OK(rlock_mutex_lock(&m));
        ck_assert(livefile_view_wait_recoveries(client, 1));
        ck_assert(test_rundir_wait(dir, 1, SOON_MS)); /* counted before the file goes */
        OK(rlock_mutex_unlock(&m));
    } else { /* another process dies */
        struct worker dying;
        char command[TEST_URL_MAX + 64];
        snprintf(command, sizeof(command), "%s%s", server.url, lease());
        worker_start(&dying, command);
        ck_assert(worker_says(&dying, "init m n", "ok"));
        ck_assert(worker_says(&dying, "lock m", "ok"));
        ck_assert(worker_says(&v, "async t lock m", "ok"));
        ck_assert(wait_size("rlock:{n}:queue", 1));
        worker_kill(&dying);
        worker_end(&dying);
        ck_assert_ptr_nonnull(worker_news(&v, "done t ok", SOON_MS));
        ck_assert(worker_says(&v, "on t unlock m", "ok"));
        ck_assert(test_rundir_wait(dir, 2, SOON_MS));
    }
    worker_end(&v);
}
END_TEST

/* rule: G5 */
START_TEST(containers_with_separate_directories_wait_for_the_lease)
{
    const char *name = "containers_with_separate_directories_wait_for_the_lease";
    struct task task;
    rlock_mutex_t m;

    client = open_with("");
    m = mutex_of(client, "n");
    livefile_view_open(&file, dir, client->uuid);
    if (!start_behind(container_of_its_own, server.url, test_ms(1000))) {
        skip(name, "no user namespaces");
        return;
    }
    ck_assert_int_eq(test_rundir_count(dir), 1);
    ck_assert(worker_says(&v, "lock m", "ok"));
    task_start(&task, run_lock, &m);
    ck_assert(wait_size("rlock:{n}:queue", 1));
    worker_kill(&v);
    livefile_view_make(dir, DECOY, livefile_view_line(&file, "server"));
    ck_assert(livefile_view_wait_gone(dir, DECOY)); /* the client looked */
    ck_assert(!atomic_load(&task.done));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert(livefile_view_wait_recoveries(client, 1)); /* the decoy's */
    test_redis_do(redis, "DEL", "n");                    /* the thread has ended */
    worker_end(&v);
}
END_TEST

/* In root's directory, which a group may write to. */
/* rule: G5 */
START_TEST(users_of_a_group_recover_each_other)
{
    const char *name = "users_of_a_group_recover_each_other";
    const char *const as_one[] = { "setpriv", "--reuid=12345", "--regid=12345",
                                   "--clear-groups", NULL };
    const char *const as_another[] = { "setpriv", "--reuid=12346", "--regid=12345",
                                       "--clear-groups", NULL };
    struct worker dying;
    char base[PATH_MAX];

    snprintf(base, sizeof(base), "%s/..", dir);
    if (geteuid() != 0 || chown(dir, 0, 12345) != 0 || chmod(dir, 02770) != 0 ||
        chmod(base, 0755) != 0) {
        skip(name, "not root");
        return;
    }
    if (!start_behind(as_one, server.tcp_url, test_ms(LONG_MS))) {
        skip(name, "others cannot start the program");
        return;
    }
    ck_assert(worker_says(&v, "lock m", "ok"));
    dying = v;
    ck_assert(start_behind(as_another, server.tcp_url, test_ms(LONG_MS)));
    ck_assert_int_eq(test_rundir_count(dir), 2);
    worker_kill(&dying);
    worker_end(&dying);
    ck_assert(worker_says(&v, "lock m", "ok"));
    ck_assert(worker_says(&v, "unlock m", "ok"));
    ck_assert(test_rundir_wait(dir, 1, SOON_MS));
    worker_end(&v);
}
END_TEST

/* ---- */

static TCase *tcase(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("livefile places");
    TCase *tc = tcase(suite, "room");
    tcase_add_test(tc, full_tmpfs_disables_the_crash_guard);
    tcase_add_test(tc, tmpfs_that_becomes_full_allows_no_more_intents);
    tcase_add_loop_test(tc, file_size_limit_also_limits_intents, 0,
                        sizeof(limits) / sizeof(limits[0]));
    tc = tcase(suite, "strange");
    tcase_add_loop_test(tc, unknown_files_are_left_alone, 0, 2);
    tcase_add_test(tc, live_file_of_another_servers_dead_client_stays_for_two_days);
    tcase_add_test(tc, what_was_begun_and_never_named_is_removed);
    tc = tcase(suite, "shared");
    tcase_add_loop_test(tc, containers_with_a_shared_directory_recover_each_other, 0, 2);
    tcase_add_test(tc, containers_with_separate_directories_wait_for_the_lease);
    tcase_add_test(tc, users_of_a_group_recover_each_other);
    return test_run_suite(suite);
}
