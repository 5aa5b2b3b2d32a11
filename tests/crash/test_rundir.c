/* SPDX-License-Identifier: Apache-2.0 */
/* program: claims=G4 */
/* Which directory the crash guard uses (rules G4, G5): the order in which it looks for
 * one, and why it refuses one; what rlock_getrundir, the log and the diagnosis say about
 * it. */
#include "fixture.h"

#include "crash/livefile.h" /* RLK_RUNDIR_SIZE */
#include "findings.h"
#include "namespaces.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { STRANGER = 12345 /* a user, and a group */ };

static const char *base;
static struct findings f;
static char line[512]; /* the last log line that says why there is no crash guard */

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
    base = test_rundir_own();
    line[0] = '\0';
    rlock_setlogger(on_line, NULL, LOG_INFO);
}

static void tear_down(void)
{
    rlock_setlogger(NULL, NULL, 0);
    test_redis_close(redis);
}

static void use(const char *path)
{
    ck_assert_int_eq(setenv("RLOCK_RUNDIR", path, 1), 0);
}

static const char *under(const char *dir, const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static const char *make_dir(const char *path, mode_t mode)
{
    ck_assert_msg(mkdir(path, mode) == 0, "%s: %s", path, strerror(errno));
    ck_assert_int_eq(chmod(path, mode), 0); /* whatever the umask */
    return path;
}

static void expect_dir(const char *wanted, int at)
{
    char path[PATH_MAX] = "";
    int rc = rlock_getrundir(path, sizeof(path));
    ck_assert_msg(rc == 0 && strcmp(path, wanted) == 0, "line %d: %s (%s), not %s", at,
                  rc == 0 ? path : rlock_strerror(rc), rlock_errmsg(), wanted);
}
#define EXPECT_DIR(wanted) expect_dir((wanted), __LINE__)

static void expect_none(const char *why, int at)
{
    char path[8] = "as it is";
    int rc = rlock_getrundir(path, sizeof(path));
    ck_assert_msg(rc == ENOENT && strstr(rlock_errmsg(), why), "line %d: %s: %s", at,
                  rlock_strerror(rc), rlock_errmsg());
    ck_assert_mem_eq(path, "as it is", sizeof(path));
}
#define EXPECT_NONE(why) expect_none((why), __LINE__)

/* Opens a client: its lock works, and its diagnosis says this. */
static void open_and_diagnose(int severity, const char *text)
{
    rlock_mutex_t m;
    client = open_with("");
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    findings_of(&f, client);
    FOUND(&f, severity, "guard", text);
    close_client(client);
    client = NULL;
}

/* ---- $RLOCK_RUNDIR */

START_TEST(the_one_that_is_named_is_used)
{
    const char *dir = make_dir(under(base, "d"), 0700);
    use(dir);
    EXPECT_DIR(dir);
    client = open_with("");
    ck_assert_int_eq(test_rundir_count(dir), 1);
    close_client(client);
    client = NULL;
    open_and_diagnose(LOG_INFO, "The crash guard is on");
    FOUND(&f, LOG_INFO, "guard", dir);
    ck_assert_str_eq(line, "");
    ck_assert_int_eq(test_rundir_count(dir), 0);
}
END_TEST

START_TEST(an_empty_one_turns_it_off_without_a_word)
{
    use("");
    EXPECT_NONE("$RLOCK_RUNDIR is empty");
    open_and_diagnose(LOG_INFO, "turned off: $RLOCK_RUNDIR is empty");
    ck_assert_str_eq(line, "");
}
END_TEST

static const char *missing(void)
{
    return under(base, "d");
}

static const char *relative(void)
{
    ck_assert_int_eq(chdir(base), 0);
    make_dir("d", 0700);
    return "d";
}

/* One byte too long. A path of the greatest length is used, see below. */
static const char *too_long(void)
{
    static char path[RLK_RUNDIR_SIZE + 1];
    memset(path, 'x', RLK_RUNDIR_SIZE);
    path[0] = '/';
    return path;
}

static const char *no_directory(void)
{
    const char *path = under(base, "d");
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    return path;
}

static const char *a_link(void)
{
    const char *path = under(base, "d");
    ck_assert_int_eq(symlink(base, path), 0);
    return path;
}

static const char *everybodys(void)
{
    return make_dir(under(base, "d"), 0707);
}

static const char *sticky(void)
{
    return make_dir(under(base, "d"), 01777);
}

static const char *elsewhere(void)
{
    return "/proc";
}

static const char *kept_out(void)
{
    return geteuid() == 0 ? NULL : make_dir(under(base, "d"), 0500);
}

static const char *anothers(void)
{
    const char *path = make_dir(under(base, "d"), 0700);
    return chown(path, STRANGER, (gid_t)-1) == 0 ? path : NULL;
}

static const struct {
    const char *(*make)(void); /* NULL: this user cannot make it */
    const char *why;
} refused[] = {
    { missing, "/d: No such file or directory" },
    { relative, "$RLOCK_RUNDIR is not an absolute path" },
    { too_long, "$RLOCK_RUNDIR is too long" },
    { no_directory, "/d: Not a directory" },
    { a_link, "/d: it is a symbolic link" },
    { everybodys, "/d: it is world-writable" },
    { sticky, "/d: it is world-writable" },
    { elsewhere, "cannot use /proc: it is not on a tmpfs" },
    { kept_out, "/d: Permission denied" },
    { anothers, "/d: it belongs to another user" },
};
enum { REFUSED = sizeof(refused) / sizeof(refused[0]) };

/* rule: G4, G5 */
START_TEST(what_is_not_to_be_trusted_is_not_used_and_it_says_why)
{
    const char *path = refused[_i].make();
    if (!path) {
        printf("skipped: what_is_not_to_be_trusted_is_not_used_and_it_says_why: "
               "%d: not as this user\n",
               _i);
        return;
    }
    use(path);
    EXPECT_NONE(refused[_i].why);
    open_and_diagnose(LOG_NOTICE, refused[_i].why);
    ck_assert_ptr_nonnull(strstr(line, refused[_i].why));
}
END_TEST

START_TEST(a_path_of_the_greatest_length_is_used)
{
    char path[RLK_RUNDIR_SIZE];
    int len = snprintf(path, sizeof(path), "%s/", base);
    memset(path + len, 'x', sizeof(path) - 1 - (size_t)len);
    path[sizeof(path) - 1] = '\0';
    make_dir(path, 0700);
    use(path);
    EXPECT_DIR(path);
    open_and_diagnose(LOG_INFO, path);
}
END_TEST

/* The directory may be the administrator's, who lets a group write there. */
START_TEST(user_with_write_access_may_write_the_live_files)
{
    const char *dir = make_dir(under(base, "d"), 02770);
    rlock_client_t *c;
    struct stat of_dir, st;
    char file[PATH_MAX];
    int fd, groups = 0;

    if (chown(dir, (uid_t)-1, STRANGER) != 0) /* else it is the user's own group */
        ck_assert_int_ne(geteuid(), 0);
    ck_assert_int_eq(stat(dir, &of_dir), 0);
    use(dir);
    umask(077);
    c = open_with("");
    FILE *list = popen("ls \"$RLOCK_RUNDIR\"", "r");
    ck_assert_ptr_nonnull(list);
    while (fscanf(list, "%63s", line) == 1) {
        snprintf(file, sizeof(file), "%s/%s", dir, line);
        fd = open(file, O_RDONLY | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fstat(fd, &st), 0);
        ck_assert_uint_eq(st.st_mode & 07777, 0660);
        ck_assert_uint_eq(st.st_gid, of_dir.st_gid);
        close(fd);
        groups++;
    }
    pclose(list);
    ck_assert_int_eq(groups, 1);
    close_client(c);
}
END_TEST

/* ---- other users */

static void let_strangers_in(void)
{
    ck_assert_int_eq(chmod(base, 0755), 0);
    ck_assert_int_eq(chmod(under(base, ".."), 0755), 0);
}

/* Runs in a child, because it changes the process's user for good. */
static bool child_says(bool (*say)(void))
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        test_redis_close(redis); /* otherwise Valgrind reports this copy */
        _exit(say() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool refuses(const char *path, const char *why)
{
    char buf[PATH_MAX];
    use(path);
    return rlock_getrundir(buf, sizeof(buf)) == ENOENT && strstr(rlock_errmsg(), why);
}

static bool a_stranger_is_kept_out(void)
{
    return setegid(STRANGER) == 0 && seteuid(STRANGER) == 0 &&
           refuses(under(base, "d"), "Permission denied");
}

/* rule: G5 */
START_TEST(user_without_write_access_has_no_directory)
{
    if (geteuid() != 0) {
        printf("skipped: user_without_write_access_has_no_directory: not root\n");
        return;
    }
    let_strangers_in();
    make_dir(under(base, "d"), 0755);
    ck_assert(child_says(a_stranger_is_kept_out));
}
END_TEST

/* All users that the namespace does not map look alike, the caller as well. */
static bool nobodys_is_refused(void)
{
    if (unshare(CLONE_NEWUSER) != 0) {
        printf("skipped: in_a_user_namespace_nobody_is_trusted: %s\n", strerror(errno));
        fflush(stdout);
        return true;
    }
    return refuses(base, "it belongs to another user");
}

START_TEST(in_a_user_namespace_nobody_is_trusted)
{
    let_strangers_in();
    ck_assert(child_says(nobodys_is_refused));
}
END_TEST

/* ---- the order, in a mount namespace, because all users share these directories */

static char session[64], of_session[80], own[64];

static bool enter(const char *test)
{
    if (!namespaces_enter(test, CLONE_NEWNS))
        return false;
    namespaces_mount("/run", 0);
    namespaces_mount("/dev/shm", 0);
    unsetenv("RLOCK_RUNDIR");
    unsetenv("XDG_RUNTIME_DIR");
    snprintf(session, sizeof(session), "/run/user-%lu", (unsigned long)geteuid());
    snprintf(of_session, sizeof(of_session), "%s/rlock", session);
    snprintf(own, sizeof(own), "/dev/shm/rlock-%lu", (unsigned long)geteuid());
    return true;
}

static void begin_session(const char *path)
{
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", path, 1), 0);
}

static void assert_mode(const char *path, mode_t mode)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, mode);
}

/* rule: G5 */
START_TEST(the_administrators_comes_first_then_the_sessions_then_the_users)
{
    if (!enter("the_administrators_comes_first_then_the_sessions_then_the_users"))
        return;
    umask(0);
    EXPECT_DIR(own);
    assert_mode(own, 0700);
    make_dir(session, 0700);
    begin_session(session);
    EXPECT_DIR(of_session);
    assert_mode(of_session, 0700);
    make_dir("/run/rlock", 0755);
    EXPECT_DIR("/run/rlock");
    open_and_diagnose(LOG_INFO, "/run/rlock");
    use(own);
    EXPECT_DIR(own);
    ck_assert_str_eq(line, "");
    ck_assert_str_eq(rlock_errmsg(), ""); /* no error of a skipped directory */
}
END_TEST

START_TEST(one_of_the_administrators_that_is_not_to_be_trusted_turns_it_off)
{
    if (!enter("one_of_the_administrators_that_is_not_to_be_trusted_turns_it_off"))
        return;
    make_dir(session, 0700);
    begin_session(session);
    make_dir("/run/rlock", 0777);
    EXPECT_NONE("cannot use /run/rlock: it is world-writable");
    ck_assert_int_eq(rmdir("/run/rlock"), 0);
    ck_assert_int_eq(symlink(session, "/run/rlock"), 0);
    EXPECT_NONE("cannot use /run/rlock: it is a symbolic link");
    open_and_diagnose(LOG_NOTICE, "cannot use /run/rlock: it is a symbolic link");
    ck_assert_int_ne(access(own, F_OK), 0);
}
END_TEST

static bool a_stranger_has_his_own(void)
{
    char path[PATH_MAX] = "";
    return setegid(STRANGER) == 0 && seteuid(STRANGER) == 0 &&
           rlock_getrundir(path, sizeof(path)) == 0 &&
           strcmp(path, "/dev/shm/rlock-12345") == 0;
}

/* The session of another user, in which the process began, does not count either. */
START_TEST(user_excluded_from_the_administrators_directory_has_its_own)
{
    const char *name = "user_excluded_from_the_administrators_directory_has_its_own";
    if (geteuid() != 0) {
        printf("skipped: %s: not root\n", name);
        return;
    }
    if (!enter(name))
        return;
    ck_assert_int_eq(chmod("/dev/shm", 01777), 0);
    ck_assert_int_eq(chmod("/run", 0755), 0);
    make_dir(session, 0777);
    begin_session(session);
    make_dir("/run/rlock", _i == 0 ? 0700 : 0755);
    ck_assert(child_says(a_stranger_has_his_own));
}
END_TEST

START_TEST(a_session_that_is_none_is_passed_over)
{
    static char path[RLK_RUNDIR_SIZE];
    if (!enter("a_session_that_is_none_is_passed_over"))
        return;
    begin_session("run"); /* relative, therefore ignored */
    ck_assert_int_eq(chdir("/"), 0);
    EXPECT_DIR(own);
    begin_session("/run/not/there");
    EXPECT_DIR(own);
    memset(path, 'x', sizeof(path) - 4);
    memcpy(path, "/run/", 5);
    make_dir(path, 0700);
    begin_session(path); /* with the name behind it, it is too long */
    EXPECT_DIR(own);
    begin_session("/proc"); /* of another user, or not a tmpfs */
    EXPECT_DIR(own);
    begin_session("");
    EXPECT_DIR(own);
}
END_TEST

START_TEST(what_somebody_else_made_in_the_users_place_is_not_used)
{
    if (!enter("what_somebody_else_made_in_the_users_place_is_not_used"))
        return;
    make_dir("/dev/shm/theirs", 0700);
    ck_assert_int_eq(symlink("/dev/shm/theirs", own), 0);
    EXPECT_NONE("it is a symbolic link");
    ck_assert_int_eq(unlink(own), 0);
    make_dir(own, 0777);
    EXPECT_NONE("it is world-writable");
    if (chmod(own, 0700) == 0 && chown(own, STRANGER, STRANGER) == 0)
        EXPECT_NONE("it belongs to another user");
}
END_TEST

/* ---- rlock_getrundir */

START_TEST(getrundir_has_room_for_the_whole_path_or_is_ENAMETOOLONG)
{
    char path[PATH_MAX];
    size_t size = strlen(base) + 1;
    memset(path, '?', sizeof(path));
    EXPECT(rlock_getrundir(path, size - 1), ENAMETOOLONG);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "the directory's path needs"));
    EXPECT(rlock_getrundir(path, 0), ENAMETOOLONG);
    ck_assert_int_eq(path[0], '?');
    OK(rlock_getrundir(path, size));
    ck_assert_str_eq(path, base);
    ck_assert_int_eq(path[size], '?');
    ck_assert_str_eq(rlock_errmsg(), "");
}
END_TEST

START_TEST(getrundir_without_a_buffer_is_EINVAL)
{
    EXPECT(rlock_getrundir(NULL, 0), EINVAL);
    EXPECT(rlock_getrundir(NULL, 100), EINVAL);
}
END_TEST

/* ---- */

int main(void)
{
    Suite *suite = suite_create("rundir");
    TCase *tc = tcase_create("named");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_one_that_is_named_is_used);
    tcase_add_test(tc, an_empty_one_turns_it_off_without_a_word);
    tcase_add_loop_test(tc, what_is_not_to_be_trusted_is_not_used_and_it_says_why, 0,
                        REFUSED);
    tcase_add_test(tc, a_path_of_the_greatest_length_is_used);
    tcase_add_test(tc, user_with_write_access_may_write_the_live_files);
    tcase_add_test(tc, user_without_write_access_has_no_directory);
    tcase_add_test(tc, in_a_user_namespace_nobody_is_trusted);
    suite_add_tcase(suite, tc);
    tc = tcase_create("order");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_administrators_comes_first_then_the_sessions_then_the_users);
    tcase_add_test(tc, one_of_the_administrators_that_is_not_to_be_trusted_turns_it_off);
    tcase_add_loop_test(tc, user_excluded_from_the_administrators_directory_has_its_own,
                        0, 2);
    tcase_add_test(tc, a_session_that_is_none_is_passed_over);
    tcase_add_test(tc, what_somebody_else_made_in_the_users_place_is_not_used);
    tcase_add_test(tc, getrundir_has_room_for_the_whole_path_or_is_ENAMETOOLONG);
    tcase_add_test(tc, getrundir_without_a_buffer_is_EINVAL);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
