/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G1,G2,G7 */
/* A client's live file in the directory of the crash guard (rules G1, G2, G7): how it is
 * created, and what its head says. test_intents.c is about its intents,
 * test_livefile_ends.c about its removal. */
#include "client/client.h" /* before the fixture, which has a variable of that name */

#include "fixture.h"

#include "findings.h"
#include "forked.h"
#include "livefile_view.h"
#include "namespaces.h"
#include "process.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 10000, OPENERS = 4, OPENS = 50 };

static const char *dir;
static struct livefile_view file;
static struct findings f;

/* No client yet. */
static void set_up(void)
{
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    dir = test_rundir_own();
    file.fd = -1;
}

static void tear_down(void)
{
    fixture_close();
    if (file.fd >= 0)
        livefile_view_close(&file);
}

/* ---- creation: the lock comes before the name */

/* Whether the name exists and its file is not locked. (A file that is being removed loses
 * its name first.) */
static bool is_unlocked(int dir_fd, const char *name)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    struct stat st;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    bool unlocked = fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK &&
                    fstat(fd, &st) == 0 && st.st_nlink > 0;
    close(fd);
    return unlocked;
}

/* Whether a file was created under its final name. */
static bool is_made_so(int inotify)
{
    char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = read(inotify, buf, sizeof(buf));
    bool so = false;

    for (char *at = buf; n > 0 && at < buf + n;) {
        const struct inotify_event *event = (const struct inotify_event *)at;
        at += sizeof(*event) + event->len;
        so = so || (event->len > 0 && strlen(event->name) == GUARD_UUID_LEN);
    }
    return so;
}

/* Runs in a process of its own. Writes a byte when it begins, then looks at all files
 * again and again, until `stop` is closed. 0: it saw some, and all were locked. */
static int look_on(int stop, int looking)
{
    int inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), looks = 0;
    DIR *list = opendir(dir);
    const struct dirent *entry;
    char c;

    fcntl(stop, F_SETFL, O_NONBLOCK);
    if (!list || inotify_add_watch(inotify, dir, IN_CREATE) < 0 ||
        write(looking, "", 1) != 1)
        return 2;
    int found = 0;
    while (found == 0 && read(stop, &c, 1) < 0) {
        rewinddir(list);
        while (found == 0 && (entry = readdir(list)) != NULL) {
            if (strlen(entry->d_name) != GUARD_UUID_LEN)
                continue;
            looks++;
            if (is_unlocked(dirfd(list), entry->d_name))
                found = 3;
        }
        if (found == 0 && is_made_so(inotify))
            found = 4;
    }
    closedir(list); /* otherwise it counts as a leak */
    close(inotify);
    return found == 0 && looks < OPENERS ? 5 : found;
}

static int run_opens(void *arg)
{
    rlock_client_t *c;
    (void)arg;
    for (int i = 0; i < OPENS; i++) {
        int rc = rlock_client_open(&c, server.url, NULL);
        if (rc == 0)
            rc = rlock_client_close(c);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* rule: G2 */
START_TEST(every_live_file_that_appears_is_locked)
{
    struct task tasks[OPENERS];
    int stop[2], looking[2], status;
    char c;

    ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(looking, O_CLOEXEC), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(stop[1]);
        test_redis_close(redis); /* otherwise it counts as a leak */
        _exit(look_on(stop[0], looking[1]));
    }
    close(looking[1]);
    ck_assert_int_eq(read(looking[0], &c, 1), 1);
    close(looking[0]);
    for (int i = 0; i < OPENERS; i++)
        task_start(&tasks[i], run_opens, NULL);
    for (int i = 0; i < OPENERS; i++)
        OK(task_join(&tasks[i]));
    close(stop[0]);
    close(stop[1]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "status %x", (unsigned)status);
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert_int_eq(test_rundir_count(dir), 0);
}
END_TEST

static bool is_mapped(const char *uuid)
{
    char line[PATH_MAX + 128];
    bool found = false;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        found = found || strstr(line, uuid);
    if (maps)
        fclose(maps);
    return found;
}

static bool has_descriptor_of(const char *uuid)
{
    char path[64], target[PATH_MAX];
    for (int fd = 0; fd < TEST_FDS_MAX; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strstr(target, uuid))
            return true;
    }
    return false;
}

static int has_nothing_of_it(struct forked_report *report, void *arg)
{
    (void)report;
    MUST(!is_mapped(arg));
    MUST(!has_descriptor_of(arg));
    return 0;
}

/* rule: G1 */
START_TEST(mapping_without_a_descriptor_retains_the_file_lock)
{
    client = open_with("");
    ck_assert(is_mapped(client->uuid));
    ck_assert(!has_descriptor_of(client->uuid));
    ck_assert_int_eq(forked(has_nothing_of_it, client->uuid), 0);
    livefile_view_open(&file, dir, NULL);
    ck_assert(livefile_view_is_locked(&file));
}
END_TEST

/* Whether an open succeeds or fails with this many descriptors: no file is left. */
START_TEST(a_client_that_could_not_be_opened_leaves_no_file)
{
    rlock_client_t *c;
    int opened = 0;
    const struct dirent *entry;

    for (int more = 0; more < 12; more++) {
        test_fd_allow(more);
        int rc = rlock_client_open(&c, server.url, NULL);
        test_fd_allow(-1);
        if (rc == 0)
            close_client(c);
        opened += rc == 0;
        DIR *list = opendir(dir);
        while ((entry = readdir(list)) != NULL)
            ck_assert_msg(strlen(entry->d_name) < GUARD_UUID_LEN, "%d more: %s", more,
                          entry->d_name);
        closedir(list);
    }
    ck_assert_int_gt(opened, 0);
    ck_assert_int_lt(opened, 12);
}
END_TEST

/* ---- its head */

/* rule: G7 */
START_TEST(head_of_the_live_file_names_its_process)
{
    static char program[] = "a b\nserver \xc3";
    char wanted[1024];
    struct stat st;

    program_invocation_short_name = program;
    client = open_with("?connecttimeout=2345&commandtimeout=1234");
    livefile_view_open(&file, dir, NULL);
    snprintf(wanted, sizeof(wanted), "rlock-guard 1 %s\npid %ld\nprogram a_b_server__\n",
             client->uuid, (long)getpid());
    ck_assert_int_eq(strncmp(file.head, wanted, strlen(wanted)), 0);
    ck_assert_str_eq(livefile_view_line(&file, "life"), "5813");
    for (size_t i = strlen(file.head); i < RLK_LIVEFILE_HEADER; i++)
        ck_assert_int_eq(file.head[i], 0);
    ck_assert_int_eq(fstat(file.fd, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_uint_eq(st.st_uid, geteuid());
}
END_TEST

/* rule: G7 */
START_TEST(live_file_contains_no_password)
{
    char url[TEST_URL_MAX + 64], byte;
    size_t at = 0, matched = 0;
    static const char secret[] = "canary";
    rlock_client_t *c;

    snprintf(url, sizeof(url), "redis://user:%s@127.0.0.1:%u", secret, server.port);
    OK(rlock_client_open(&c, url, NULL));
    livefile_view_open(&file, dir, NULL);
    ck_assert_int_eq(livefile_view_is_locked(&file), 1);
    for (; pread(file.fd, &byte, 1, (off_t)at) == 1 && at < 2 * RLK_LIVEFILE_HEADER;
         at++) {
        matched = byte == secret[matched] ? matched + 1 : byte == secret[0];
        ck_assert_uint_lt(matched, sizeof(secret) - 1);
    }
    ck_assert_uint_gt(at, RLK_LIVEFILE_HEADER);
    ck_assert_ptr_null(strstr(file.head, "user"));
    close_client(c);
}
END_TEST

static const char *server_of(const char *url)
{
    static char line[512];
    rlock_client_t *c;
    struct livefile_view of_it;

    OK(rlock_client_open(&c, url, NULL));
    livefile_view_open(&of_it, dir, NULL);
    snprintf(line, sizeof(line), "%s", livefile_view_line(&of_it, "server"));
    livefile_view_close(&of_it);
    close_client(c);
    return line;
}

static unsigned long long own_net(void)
{
    struct stat st;
    ck_assert_int_eq(stat("/proc/self/ns/net", &st), 0);
    return st.st_ino;
}

static void expect_server(const char *url, const char *wanted, int at)
{
    const char *is = server_of(url);
    ck_assert_msg(strcmp(is, wanted) == 0, "line %d: %s: %s, not %s", at, url, is,
                  wanted);
}
#define EXPECT_SERVER(url, wanted) expect_server((url), (wanted), __LINE__)

/* rule: G7 */
START_TEST(server_at_a_loopback_address_belongs_to_its_network_namespace)
{
    char url[TEST_URL_MAX], before[512], wanted[512];
    static const char *const hosts[] = { "127.0.0.1", "127.1.2.3", "[::1]", "LocalHost" };
    static const char *const names[] = { "127.0.0.1", "127.1.2.3", "::1", "localhost" };

    for (int i = 0; i < 4; i++) {
        snprintf(url, sizeof(url), "redis://:p@%s:%u/3", hosts[i], server.port);
        snprintf(wanted, sizeof(wanted), "tcp %s:%u 3 %llu", names[i], server.port,
                 own_net());
        EXPECT_SERVER(url, wanted);
    }
    snprintf(before, sizeof(before), "%s", server_of(server.tcp_url));
    unsigned long long net = own_net();
    if (!namespaces_enter("server_at_a_loopback_address_belongs_to_its_network_namespace",
                          CLONE_NEWNET))
        return;
    ck_assert_uint_ne(own_net(), net);
    ck_assert_str_ne(server_of(server.tcp_url), before);
    EXPECT_SERVER("redis://192.0.2.1:7/2?db=2", "tcp 192.0.2.1:7 2 0");
    EXPECT_SERVER("redis://[2001:DB8::1]", "tcp 2001:db8::1:6379 0 0");
}
END_TEST

/* rule: G7 */
START_TEST(server_at_a_socket_is_identified_by_its_directory)
{
    char url[TEST_URL_MAX + 64], wanted[512], first[512], link[TEST_PATH_MAX];
    struct stat st;
    const char *base = strrchr(server.path, '/') + 1;

    ck_assert_int_eq(stat(server.dir, &st), 0);
    snprintf(wanted, sizeof(wanted), "unix %llu:%llu/%s 0", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino, base);
    EXPECT_SERVER(server.url, wanted);
    snprintf(url, sizeof(url), "%s?db=7", server.url);
    snprintf(first, sizeof(first), "%s", server_of(url));
    ck_assert_str_ne(first, wanted);
    ck_assert_str_eq(first + strlen(first) - 2, " 7");
    /* by another path to the same directory, and in another directory */
    snprintf(link, sizeof(link), "%s/l", server.dir);
    ck_assert_int_eq(symlink(server.dir, link), 0);
    snprintf(url, sizeof(url), "unix://%s/%s", link, base);
    EXPECT_SERVER(url, wanted);
    ck_assert_int_eq(unlink(link), 0);
    snprintf(url, sizeof(url), "unix://%s/%s", dir, base);
    ck_assert_str_ne(server_of(url), wanted);
    snprintf(url, sizeof(url), "unix:///%s", base);
    ck_assert_str_ne(server_of(url), wanted);
}
END_TEST

static char line[512];

static void on_line(int level, const char *text, void *arg)
{
    (void)arg;
    if (level == LOG_INFO)
        snprintf(line, sizeof(line), "%s", text);
}

START_TEST(server_that_has_no_name_is_not_guarded)
{
    rlock_client_t *c;
    line[0] = '\0';
    rlock_setlogger(on_line, NULL, LOG_INFO);
    OK(rlock_client_open(&c, "unix:///a%0Ab", NULL));
    rlock_setlogger(NULL, NULL, 0);
    ck_assert_str_eq(line, "rlock: no crash guard: the server's address is too long");
    ck_assert_int_eq(test_rundir_count(dir), 0);
    close_client(c);
}
END_TEST

/* ---- whether a client has one */

static const struct {
    int attr; /* -1: not set */
    const char *url;
    bool on;
} wishes[] = {
    { -1, "", true },
    { -1, "?guard=1", true },
    { -1, "?guard=0", false },
    { RLOCK_GUARD_OFF, "", false },
    { RLOCK_GUARD_OFF, "?guard=1", true },
    { RLOCK_GUARD_ON, "?guard=0", false },
    { RLOCK_GUARD_ALWAYS, "", true },
    { RLOCK_GUARD_ALWAYS, "?guard=0", false },
};

START_TEST(guard_is_as_the_url_says_or_else_the_attribute)
{
    char url[TEST_URL_MAX + 32];
    rlock_clientattr_t attr;
    rlock_client_t *c;

    line[0] = '\0';
    rlock_setlogger(on_line, NULL, LOG_INFO);
    OK(rlock_clientattr_init(&attr));
    if (wishes[_i].attr >= 0)
        OK(rlock_clientattr_setguard(&attr, wishes[_i].attr));
    snprintf(url, sizeof(url), "%s%s", server.url, wishes[_i].url);
    OK(rlock_client_open(&c, url, &attr));
    OK(rlock_clientattr_destroy(&attr));
    ck_assert_int_eq(test_rundir_count(dir), wishes[_i].on);
    findings_of(&f, c);
    FOUND(&f, LOG_INFO, "guard",
          wishes[_i].on ? dir : "turned off: the client's attributes or URL say so");
    rlock_setlogger(NULL, NULL, 0);
    ck_assert_ptr_null(strstr(line, "guard"));
    close_client(c);
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
    Suite *suite = suite_create("livefile");
    TCase *tc = tcase(suite, "made");
    tcase_add_test(tc, every_live_file_that_appears_is_locked);
    tcase_add_test(tc, mapping_without_a_descriptor_retains_the_file_lock);
    tcase_add_test(tc, a_client_that_could_not_be_opened_leaves_no_file);
    tcase_add_loop_test(tc, guard_is_as_the_url_says_or_else_the_attribute, 0,
                        sizeof(wishes) / sizeof(wishes[0]));
    tc = tcase(suite, "head");
    tcase_add_test(tc, head_of_the_live_file_names_its_process);
    tcase_add_test(tc, live_file_contains_no_password);
    tcase_add_test(tc, server_at_a_loopback_address_belongs_to_its_network_namespace);
    tcase_add_test(tc, server_at_a_socket_is_identified_by_its_directory);
    tcase_add_test(tc, server_that_has_no_name_is_not_guarded);
    return test_run_suite(suite);
}
