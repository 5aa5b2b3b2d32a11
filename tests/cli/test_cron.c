/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=user */
/*
 * The crontab and the unit of examples/, as cron and systemd run them on two hosts: with
 * their own small environment, so that the server comes from the file of rlock.conf(5). A
 * host is a network of its own with a server at 127.0.0.1:6379. Both hosts should use
 * another server, which they reach by its socket. Programs and the file are where they
 * are installed, in mounts of the test's own.
 */
#include "runscene.h"

#include "namespaces.h"
#include "program.h"
#include "wait.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONF TEST_SYSCONFDIR "/rlock.conf"
#define BIN "/usr/local/bin"
#define FALLS_BACK                                                                       \
    "rlock: neither --url nor RLOCK_URL nor rlock.conf(5) names a server: it is "        \
    "redis://127.0.0.1:6379, of this host alone\n"

enum { HOSTS = 2, TEXT_SIZE = 8192, WORDS_MAX = 32 };

static struct host {
    int network;
    struct test_server own; /* at 127.0.0.1:6379 */
} hosts[HOSTS];
static char ran[TEST_PATH_MAX + 16]; /* has a line for each time that the job ran */
static bool built;

/* ---- hosts */

static void write_file(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_msg(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
                      fchmod(fd, mode) == 0,
                  "%s: %s", path, strerror(errno));
    close(fd);
}

static void read_text(const char *path, char text[TEXT_SIZE])
{
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    text[fread(text, 1, TEXT_SIZE - 1, file)] = '\0';
    fclose(file);
}

static void enter(const struct host *host)
{
    ck_assert_int_eq(setns(host->network, CLONE_NEWNET), 0);
}

static void bring_up_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(ioctl(fd, SIOCSIFFLAGS, &request), 0);
    close(fd);
}

static void build_host(struct host *host)
{
    static const char *const args[] = { "--port", "6379", NULL };
    ck_assert_int_eq(unshare(CLONE_NEWNET), 0);
    host->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(host->network, 0);
    bring_up_loopback();
    test_server_start(&host->own, args);
}

/* Installs rlock, which finds the library of this build by itself. */
static void install(void)
{
    char text[2 * PATH_MAX + 256], libs[PATH_MAX];
    namespaces_mount(BIN, 0);
    namespaces_mount(TEST_SYSCONFDIR, 0);
    namespaces_mount("/dev/shm", 0);
    ck_assert_int_eq(chmod(BIN, 0755), 0);
    ck_assert_int_eq(chmod(TEST_SYSCONFDIR, 0755), 0);
    test_build_path(libs, sizeof(libs), ".libs");
    snprintf(text, sizeof(text), "#!/bin/sh\nLD_LIBRARY_PATH='%s' exec '%s' \"$@\"\n",
             libs, cli_path());
    write_file(BIN "/rlock", text, 0755);
    snprintf(text, sizeof(text), "#!/bin/sh\necho \"$RLOCK_NAME\" >>'%s'\n", ran);
    write_file(BIN "/nightly", text, 0755);
}

/* Installs the file of examples/, with the test's server in place of the example's. */
static void install_conf(void)
{
    static const char example[] = "redis://locks.example.com\n";
    char text[TEXT_SIZE], filled[TEXT_SIZE + TEST_URL_MAX];
    read_text(TEST_SRCDIR "/examples/rlock.conf", text);
    char *at = strstr(text, example);
    ck_assert_ptr_nonnull(at);
    *at = '\0';
    snprintf(filled, sizeof(filled), "%s%s\n%s", text, server.url, at + strlen(example));
    write_file(CONF, filled, 0644);
}

/* False: it has printed why not. */
static bool build(const char *test)
{
    static const char *const places[] = { BIN, TEST_SYSCONFDIR, "/dev/shm" };
    struct stat st;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (stat(places[i], &st) != 0 || strcmp(places[i], "/etc") == 0) {
            printf("skipped: %s: nothing can be mounted on %s\n", test, places[i]);
            return false;
        }
    if (!namespaces_enter(test, CLONE_NEWNS))
        return false;
    for (int i = 0; i < HOSTS; i++)
        build_host(&hosts[i]);
    snprintf(ran, sizeof(ran), "%s/ran", server.dir);
    install();
    built = true;
    return true;
}

/* Ends it and all that it started: each has a session, like those of cron and of a
 * service. */
static void stop(struct cli *started, int number)
{
    if (started->pid > 0)
        kill(-started->pid, number);
}

static void tear_down(void)
{
    stop(&c, SIGKILL);
    stop(&other, SIGKILL);
    cli_stop(&c);
    cli_stop(&other);
    for (int i = 0; built && i < HOSTS; i++)
        test_server_stop(&hosts[i].own);
    if (built)
        unlink(ran);
    scene_close();
}

/* ---- what is run */

/* The exact words with which the service manager or cron would start it. */
struct job {
    const char *words[WORDS_MAX];
    int count;
    char text[TEXT_SIZE]; /* the memory of the words */
};

static void add(struct job *job, const char *word)
{
    ck_assert_int_lt(job->count, WORDS_MAX - 1);
    job->words[job->count++] = word;
}

/* The command behind the five fields of the time, and the user. */
static const char *command_of(char *line)
{
    for (int field = 0; field < 6; field++) {
        line += strcspn(line, " \t");
        line += strspn(line, " \t");
    }
    return line;
}

/* cron's environment, then that of the crontab, then its one command by the shell. */
static void read_crontab(struct job *job)
{
    static const char *const environment[] = {
        "setsid",     "env",         "-i", "SHELL=/bin/sh", "PATH=/usr/bin:/bin",
        "HOME=/root", "LOGNAME=root"
    };
    const char *command = NULL;
    char *rest = NULL;
    for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i++)
        add(job, environment[i]);
    read_text(TEST_SRCDIR "/examples/cron.d/nightly", job->text);
    for (char *line = strtok_r(job->text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (*line == '#')
            continue;
        if (*line >= 'A' && *line <= 'Z') {
            add(job, line);
            continue;
        }
        ck_assert_ptr_null(command);
        command = command_of(line);
    }
    ck_assert_ptr_nonnull(command);
    add(job, "/bin/sh");
    add(job, "-c");
    add(job, command);
}

/* systemd's environment, then the words of ExecStart, none of which is quoted. */
static void read_unit(struct job *job)
{
    static const char *const environment[] = {
        "setsid", "env", "-i", "LANG=C.UTF-8",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"
    };
    static const char key[] = "\nExecStart=";
    char *rest = NULL;
    for (size_t i = 0; i < sizeof(environment) / sizeof(environment[0]); i++)
        add(job, environment[i]);
    read_text(TEST_SRCDIR "/examples/systemd/nightly.service", job->text);
    char *line = strstr(job->text, key);
    ck_assert_ptr_nonnull(line);
    line += strlen(key);
    line[strcspn(line, "\n")] = '\0';
    ck_assert_ptr_null(strpbrk(line, "\"'\\$%"));
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        add(job, word);
}

static void (*const read_job[])(struct job *job) = { read_crontab, read_unit };
enum { CRONTAB, UNIT, KINDS };

static int times_run(void)
{
    char text[TEXT_SIZE] = "";
    int lines = 0;
    if (access(ran, F_OK) == 0)
        read_text(ran, text);
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

static bool has_run(void *arg)
{
    return times_run() == *(const int *)arg;
}

static bool is_free_now(void *arg)
{
    (void)arg;
    return !test_redis_exists(redis, "nightly");
}

static void waits_for_runs(int count)
{
    ck_assert_msg(test_wait_until(has_run, &count, CLI_WAIT_MS), "%d, not %d: %s",
                  times_run(), count, c.err.text);
}

/* ---- the claims */

START_TEST(job_that_two_hosts_have_runs_on_one_of_them)
{
    static struct job job;
    char told[TEST_URL_MAX + PATH_MAX];
    if (!build("job_that_two_hosts_have_runs_on_one_of_them"))
        return;
    install_conf();
    read_job[_i](&job);
    snprintf(told, sizeof(told), "rlock: the server is %s (%s)\n", server.url, CONF);

    enter(&hosts[0]);
    cli_start(&c, job.words, NULL);
    waits_for_runs(1);
    enter(&hosts[1]);
    ck_assert_int_eq(cli_does(&other, job.words, NULL), 0);
    ck_assert_str_eq(other.out.text, "");
    ck_assert_str_eq(other.err.text, _i == UNIT ? told : "");
    ck_assert_int_eq(times_run(), 1);
    ck_assert_int_eq(cli_ends(&c, 0), CLI_STILL_RUNS); /* --min-hold */
    ck_assert(test_redis_exists(redis, "nightly"));
    stop(&c, SIGTERM);
    ck_assert_int_ne(cli_ends(&c, CLI_WAIT_MS), CLI_STILL_RUNS);
    ck_assert(test_wait_until(is_free_now, NULL, CLI_WAIT_MS));
    cli_collect(&c);
    ck_assert_str_eq(c.err.text, _i == UNIT ? told : "");

    /* the next night it is the other host's turn */
    cli_stop(&c);
    cli_start(&c, job.words, NULL);
    waits_for_runs(2);
}
END_TEST

/* What the file is for; and that these tests really have two hosts. */
START_TEST(without_the_file_it_runs_on_each_and_says_so)
{
    static struct job job;
    if (!build("without_the_file_it_runs_on_each_and_says_so"))
        return;
    read_job[_i](&job);
    enter(&hosts[0]);
    cli_start(&c, job.words, NULL);
    waits_for_runs(1);
    enter(&hosts[1]);
    cli_start(&other, job.words, NULL);
    waits_for_runs(2);
    cli_collect(&c);
    cli_collect(&other);
    ck_assert_str_eq(c.err.text, FALLS_BACK);
    ck_assert_str_eq(other.err.text, FALLS_BACK);
}
END_TEST

/* The documents have it word for word. */
START_TEST(documents_show_the_line_that_is_run_here)
{
    static const char *const documents[] = { "README.md", "doc/man/rlock.1" };
    static struct job job;
    char path[PATH_MAX], line[TEXT_SIZE];
    read_crontab(&job);
    const char *command = job.words[job.count - 1];
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        bool found = false;
        snprintf(path, sizeof(path), "%s/%s", TEST_SRCDIR, documents[i]);
        FILE *file = fopen(path, "re");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof(line), file)) {
            line[strcspn(line, "\n")] = '\0';
            found = found || (line[0] == '0' && strcmp(command_of(line), command) == 0);
        }
        fclose(file);
        ck_assert_msg(found, "%s: no %s", documents[i], command);
    }
}
END_TEST

START_TEST(systemd_finds_nothing_wrong_with_the_units)
{
    static const char *const verify[] = { "systemd-analyze",
                                          "verify",
                                          "--man=no",
                                          TEST_SRCDIR "/examples/systemd/nightly.service",
                                          TEST_SRCDIR "/examples/systemd/nightly.timer",
                                          NULL };
    if (system("command -v systemd-analyze >/dev/null") != 0) {
        printf("skipped: systemd_finds_nothing_wrong_with_the_units: no "
               "systemd-analyze\n");
        return;
    }
    if (!build("systemd_finds_nothing_wrong_with_the_units"))
        return;
    int code = cli_does(&c, verify, NULL);
    ck_assert_msg(code == 0 && !strstr(c.err.text, "nightly"), "%d: %s", code,
                  c.err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cron");
    TCase *tc = tcase_create("cron");
    tcase_add_unchecked_fixture(tc, scene_start, scene_stop);
    tcase_add_checked_fixture(tc, scene_open, tear_down);
    tcase_add_loop_test(tc, job_that_two_hosts_have_runs_on_one_of_them, 0, KINDS);
    tcase_add_loop_test(tc, without_the_file_it_runs_on_each_and_says_so, 0, KINDS);
    tcase_add_test(tc, documents_show_the_line_that_is_run_here);
    tcase_add_test(tc, systemd_finds_nothing_wrong_with_the_units);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
