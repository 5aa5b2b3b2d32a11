/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/*
 * Where the server's address comes from if the program names none: the environment, the
 * system's file, the built-in address. What may stand in that file; and that an error
 * message names file and line, but does not show the text of the file.
 */
#include "base/error.h"
#include "base/texts.h"
#include "conffile.h"
#include "net/conf.h"
#include "suite.h"

#include <rlock.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET "canary"

enum { LINE_MAX_BYTES = 8192, FILE_MAX_BYTES = 65536 };

static struct rlk_config config;

static void set_up(void)
{
    config = (struct rlk_config){ .lease_ms = 30000, .max_connections = 16 };
    conffile_begin();
    rlk_error_clear();
}

static void tear_down(void)
{
    rlk_url_config_clear(&config);
    conffile_end();
}

static void set_url(const char *url)
{
    ck_assert_int_eq(setenv("RLOCK_URL", url, 1), 0);
}

static void set_conf(const char *path)
{
    ck_assert_int_eq(setenv("RLOCK_CONF", path, 1), 0);
}

static void parses(void)
{
    int rc = rlk_conf_parse(&config);
    ck_assert_msg(rc == 0, "%d: %s", rc, rlk_error_message());
}

/* Asserts that the file is refused with this code, and with exactly this message behind
 * the file's path; no message contains the password. */
static void refused(int code, const char *message)
{
    char full[PATH_MAX + 512];
    ck_assert_int_eq(rlk_conf_parse(&config), code);
    snprintf(full, sizeof(full), "%s%s", conffile_path("conf"), message);
    ck_assert_str_eq(rlk_error_message(), full);
    ck_assert_ptr_null(strstr(rlk_error_message(), SECRET));
}

/* ---- the order of the sources */

START_TEST(variable_wins_over_the_file)
{
    conffile_use("url=redis://of-file\n");
    set_url("redis://of-variable:1/2");
    parses();
    ck_assert_str_eq(config.endpoint.host, "of-variable");
    ck_assert_int_eq(config.endpoint.db, 2);
    ck_assert_str_eq(config.source, "RLOCK_URL");
    ck_assert_str_eq(config.endpoint.whence, " (RLOCK_URL)");
}
END_TEST

START_TEST(file_is_not_looked_at_beside_the_variable)
{
    conffile_use("nonsense\n");
    set_url("redis://of-variable");
    parses();
}
END_TEST

START_TEST(empty_variable_is_none)
{
    conffile_use("url=redis://of-file:7\n");
    set_url("");
    parses();
    ck_assert_str_eq(config.endpoint.host, "of-file");
    ck_assert_int_eq(config.endpoint.port, 7);
    ck_assert_str_eq(config.source, conffile_path("conf"));
    char whence[PATH_MAX];
    snprintf(whence, sizeof(whence), " (%s)", conffile_path("conf"));
    ck_assert_str_eq(config.endpoint.whence, whence);
}
END_TEST

START_TEST(without_both_it_is_the_built_in_one)
{
    set_conf("/dev/null");
    parses();
    ck_assert_str_eq(config.endpoint.label, "127.0.0.1:6379");
    ck_assert_str_eq(config.url, "redis://127.0.0.1:6379");
    ck_assert_str_eq(config.source, "built-in default");
    ck_assert_str_eq(config.endpoint.whence, " (built-in default)");
}
END_TEST

START_TEST(file_without_a_url_is_as_none)
{
    conffile_use("# url=redis://of-comment\n\n \t\n");
    parses();
    ck_assert_str_eq(config.source, "built-in default");
}
END_TEST

/* ---- the contents of the file */

START_TEST(blanks_comments_and_line_breaks_of_other_systems_do_not_matter)
{
    conffile_write("password", SECRET "\r\nmore\n", 0600);
    conffile_use("\r\n# a comment = here\r\n  \turl =\t redis://h:5?lease=500 \r\n"
                 "\tuser= worker\r\n"
                 "passwordfile = ^/password");
    parses();
    ck_assert_str_eq(config.endpoint.host, "h");
    ck_assert_int_eq(config.endpoint.port, 5);
    ck_assert_int_eq(config.lease_ms, 500);
    ck_assert_str_eq(config.endpoint.user, "worker");
    ck_assert_str_eq(config.endpoint.password, SECRET);
    ck_assert_str_eq(config.url, "redis://h:5?lease=500");
}
END_TEST

START_TEST(password_may_go_without_a_user_and_hold_blanks_and_equal_signs)
{
    conffile_write("password", " a = b ", 0400);
    conffile_use("passwordfile=^/password\nurl=unix:///a=b?db=3\n");
    parses();
    ck_assert_ptr_null(config.endpoint.user);
    ck_assert_str_eq(config.endpoint.password, " a = b ");
    ck_assert_str_eq(config.endpoint.path, "/a=b");
    ck_assert_int_eq(config.endpoint.db, 3);
}
END_TEST

START_TEST(longest_line_and_file_are_taken)
{
    static char text[FILE_MAX_BYTES + 2];
    memset(text, '#', FILE_MAX_BYTES);
    for (size_t at = LINE_MAX_BYTES; at < FILE_MAX_BYTES; at += LINE_MAX_BYTES + 1)
        text[at] = '\n';
    set_conf(conffile_write("conf", text, 0644));
    parses();
    set_conf(conffile_write_bytes("conf", text, FILE_MAX_BYTES, 0644));
    text[FILE_MAX_BYTES] = '\n';
    set_conf(conffile_write("conf", text, 0644));
    refused(EINVAL, ": longer than 65536 bytes");
}
END_TEST

#if TEST_TLS
#define TEST_REDISS ", line 1: URL: unknown parameter (is a '?' not percent-encoded?)"
#define TEST_REDISS_CODE EINVAL
#else
#define TEST_REDISS ", line 1: URL: rediss://: this library was built without TLS"
#define TEST_REDISS_CODE ENOTSUP
#endif

static const struct bad {
    const char *text, *message;
    int code;
} bads[] = {
    { "nonsense\n", ", line 1: no '=' in the line", EINVAL },
    { "\n" SECRET "\n", ", line 2: no '=' in the line", EINVAL },
    { "# one\n\nuri=redis://:" SECRET "@h\n",
      ", line 3: unknown key; the keys are url, user, passwordfile, and for TLS "
      "cafile, cadir, certfile, keyfile, tlsname and verify",
      EINVAL },
    { "redis://:" SECRET "@h?db=1",
      ", line 1: unknown key; the keys are url, user, passwordfile, and for TLS "
      "cafile, cadir, certfile, keyfile, tlsname and verify",
      EINVAL },
    { "=redis://h",
      ", line 1: unknown key; the keys are url, user, passwordfile, and for TLS "
      "cafile, cadir, certfile, keyfile, tlsname and verify",
      EINVAL },
    { "URL=redis://h",
      ", line 1: unknown key; the keys are url, user, passwordfile, and for TLS "
      "cafile, cadir, certfile, keyfile, tlsname and verify",
      EINVAL },
    { "url=redis://h\n#\nurl=redis://h\n",
      ", line 3: url is given twice, first in line 1", EINVAL },
    { "user=a\nuser=b\n", ", line 2: user is given twice, first in line 1", EINVAL },
    { "url=\n", ", line 1: url has no value", EINVAL },
    { "url=redis://h\npasswordfile= \r\n", ", line 2: passwordfile has no value",
      EINVAL },
    { "\nurl=h:6379\n",
      ", line 2: URL: must begin with redis://, rediss://, redis-sentinel://, "
      "redis-cluster:// or unix://",
      EINVAL },
    { "url=\"redis://h\"\n",
      ", line 1: URL: must begin with redis://, rediss://, redis-sentinel://, "
      "redis-cluster:// or unix://",
      EINVAL },
    { "url=redis://h:x # main\n", ", line 1: URL: port is not a number from 1 to 65535",
      EINVAL },
    { "url=redis://u:" SECRET "%@h\n", ", line 1: URL: bad %-escape in the password",
      EINVAL },
    { "url=redis://h\ncafile=c\n", ", line 2: cafile is not an absolute path", EINVAL },
    { "keyfile=/k\n", ", line 1: keyfile without url", EINVAL },
    { "url=redis://h\n\ncafile=/c\n",
      ", line 3: cafile requires a URL that begins with rediss://", EINVAL },
    { "verify=full\nurl=unix:///s\n",
      ", line 1: verify requires a URL that begins with rediss://", EINVAL },
    { "url=rediss://u:" SECRET "@h?color=x\n", TEST_REDISS, TEST_REDISS_CODE },
    { "url=redis://h\nuser=u\n", ", line 2: user without passwordfile", EINVAL },
    { "passwordfile=/p\n", ", line 1: passwordfile without url", EINVAL },
    { "url=redis://h\npasswordfile=p\n", ", line 2: passwordfile is not an absolute path",
      EINVAL },
    { "url=redis://h\npasswordfile=/nonexistent/p\n",
      ", line 2: passwordfile /nonexistent/p: No such file or directory", EINVAL },
    { "url=redis://h\npasswordfile=/tmp\n", ", line 2: passwordfile /tmp: is a directory",
      EINVAL },
    { "url=redis://h\npasswordfile=/dev/null\n",
      ", line 2: passwordfile /dev/null: no password in the first line", EINVAL },
};

/* rule: P2 */
START_TEST(lines_of_TLS_do_not_override_attributes_or_the_URL)
{
    if (!rlk_tls_is_built())
        return;
    config.endpoint.tls.certfile = strdup("/mine");
    conffile_use("url=rediss://h?cafile=/urls\ncafile=/files\ncertfile=/c\nkeyfile=/k\n"
                 "tlsname=n\nverify=ca\n");
    ck_assert_int_eq(rlk_conf_parse(&config), 0);
    ck_assert_str_eq(config.endpoint.tls.cafile, "/urls");
    ck_assert_str_eq(config.endpoint.tls.certfile, "/mine");
    ck_assert_ptr_null(config.endpoint.tls.keyfile); /* it is not the key of /mine */
    ck_assert_str_eq(config.endpoint.tls.name, "n");
    ck_assert(config.endpoint.tls.any_name);
}
END_TEST

/* rule: P2 */
START_TEST(pair_of_settings_comes_from_one_source)
{
    if (!rlk_tls_is_built())
        return;
    config.endpoint.tls.cadir = strdup("/mine");
    config.endpoint.tls.certfile = strdup("/c");
    config.endpoint.tls.keyfile = strdup("/k");
    conffile_use("url=rediss://h?certfile=/both\ncafile=/files\n");
    ck_assert_int_eq(rlk_conf_parse(&config), 0);
    ck_assert_str_eq(config.endpoint.tls.cadir, "/mine");
    ck_assert_ptr_null(config.endpoint.tls.cafile);
    ck_assert_str_eq(config.endpoint.tls.certfile, "/both");
    ck_assert_ptr_null(config.endpoint.tls.keyfile);
}
END_TEST

START_TEST(file_does_not_loosen_what_the_program_has_set)
{
    char texts[16] = "";

    if (!rlk_tls_is_built())
        return;
    ck_assert(rlk_texts_set(texts, sizeof(texts), RLK_URL_VERIFY, "full"));
    ck_assert_int_eq(rlk_url_tls_take(&config.endpoint.tls, texts), 0);
    conffile_use("url=rediss://h\nverify=ca\n");
    ck_assert_int_eq(rlk_conf_parse(&config), 0);
    ck_assert(!config.endpoint.tls.any_name);
}
END_TEST

START_TEST(error_is_reported_by_file_and_line_without_the_text)
{
    conffile_use(bads[_i].text);
    refused(bads[_i].code, bads[_i].message);
}
END_TEST

START_TEST(line_that_is_too_long_is_refused)
{
    static char text[LINE_MAX_BYTES + 64] = "\nurl=redis://h?lease=500\n";
    memset(text + strlen(text), '#', LINE_MAX_BYTES + 1);
    set_conf(conffile_write("conf", text, 0644));
    refused(EINVAL, ", line 3: longer than 8192 bytes");
}
END_TEST

START_TEST(byte_0_is_refused)
{
    static const char text[] = "url=redis://a\0b\n";
    set_conf(conffile_write_bytes("conf", text, sizeof(text) - 1, 0644));
    refused(EINVAL, ", line 1: contains a NUL byte");
}
END_TEST

/* ---- files that cannot be used */

/* As refused(), for a file that RLOCK_CONF names and that is not read. */
static void cannot_be_read(const char *why)
{
    char full[PATH_MAX + 512];
    ck_assert_int_eq(rlk_conf_parse(&config), EINVAL);
    snprintf(full, sizeof(full), "RLOCK_CONF: %s: %s", conffile_path("conf"), why);
    ck_assert_str_eq(rlk_error_message(), full);
}

START_TEST(file_that_is_named_has_to_be_there)
{
    set_conf(conffile_path("conf"));
    cannot_be_read("No such file or directory");
}
END_TEST

START_TEST(link_to_nothing_is_reported)
{
    ck_assert_int_eq(symlink("/nonexistent/x", conffile_path("conf")), 0);
    set_conf(conffile_path("conf"));
    cannot_be_read("dangling symbolic link");
}
END_TEST

START_TEST(link_is_followed)
{
    conffile_write("other", "url=redis://behind", 0644);
    ck_assert_int_eq(symlink("other", conffile_path("conf")), 0);
    set_conf(conffile_path("conf"));
    parses();
    ck_assert_str_eq(config.endpoint.host, "behind");
}
END_TEST

START_TEST(directory_is_reported)
{
    ck_assert_int_eq(mkdir(conffile_path("conf"), 0755), 0);
    set_conf(conffile_path("conf"));
    cannot_be_read("is a directory");
}
END_TEST

START_TEST(pipe_is_reported_and_not_waited_for)
{
    ck_assert_int_eq(mkfifo(conffile_path("conf"), 0644), 0);
    set_conf(conffile_path("conf"));
    cannot_be_read("not a regular file");
}
END_TEST

START_TEST(unreadable_file_is_reported_and_not_skipped)
{
    set_conf(conffile_write("conf", "url=redis://h", 0));
    conffile_obey_rights();
    cannot_be_read("Permission denied");
}
END_TEST

START_TEST(path_that_is_not_absolute_is_refused)
{
    set_conf("rlock.conf");
    ck_assert_int_eq(rlk_conf_parse(&config), EINVAL);
    ck_assert_str_eq(rlk_error_message(), "RLOCK_CONF: not an absolute path");
}
END_TEST

START_TEST(file_that_everybody_can_write_is_refused)
{
    set_conf(conffile_write("conf", "url=redis://h", 0646));
    refused(EINVAL, ": the file is world-writable");
}
END_TEST

START_TEST(want_of_descriptors_is_reported_as_such)
{
    struct rlimit limit;
    conffile_use("url=redis://h");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int rc = rlk_conf_parse(&config);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    ck_assert_int_eq(rc, EMFILE);
}
END_TEST

START_TEST(no_descriptor_is_left_open)
{
    conffile_write("password", SECRET, 0600);
    conffile_use("url=redis://h\npasswordfile=^/password\n");
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    parses();
    conffile_use("url=redis://h\npasswordfile=^\n");
    rlk_url_config_clear(&config);
    ck_assert_int_eq(rlk_conf_parse(&config), EINVAL);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    ck_assert_int_eq(before, after);
}
END_TEST

/* ---- passwords */

static const struct {
    mode_t mode;
    const char *why; /* NULL: accepted */
} modes[] = {
    { 0400, NULL },
    { 0600, NULL },
    { 0640, NULL },
    { 0644, "other users have access to the file (chmod o=)" },
    { 0604, "other users have access to the file (chmod o=)" },
    { 0602, "other users have access to the file (chmod o=)" },
    { 0601, "other users have access to the file (chmod o=)" },
    { 0660, "the file is group-writable (chmod g-w)" },
};

START_TEST(password_that_others_can_read_is_refused)
{
    char message[PATH_MAX];
    conffile_write("password", SECRET "\n", modes[_i].mode);
    conffile_use("url=redis://h\nuser=u\npasswordfile=^/password\n");
    if (!modes[_i].why) {
        parses();
        ck_assert_str_eq(config.endpoint.password, SECRET);
        return;
    }
    snprintf(message, sizeof(message), ", line 3: passwordfile %s: %s",
             conffile_path("password"), modes[_i].why);
    refused(EINVAL, message);
    ck_assert_ptr_null(config.endpoint.password);
}
END_TEST

START_TEST(url_with_a_password_in_a_readable_file_is_refused)
{
    static const char text[] = "# one\nurl=redis://u:" SECRET "@h\n";
    char message[PATH_MAX];
    set_conf(conffile_write("conf", text, modes[_i].mode & 0775));
    if (!modes[_i].why) {
        parses();
        ck_assert_str_eq(config.endpoint.user, "u");
        ck_assert_str_eq(config.endpoint.password, SECRET);
        ck_assert_str_eq(config.url, "redis://h");
        return;
    }
    if (modes[_i].mode & S_IWOTH)
        return; /* refused because of its mode alone */
    snprintf(
        message, sizeof(message),
        ", line 2: the URL contains a password, and %s; alternatively use passwordfile",
        modes[_i].why);
    refused(EINVAL, message);
}
END_TEST

/* rule: P10 */
START_TEST(url_with_a_password_of_sentinels_in_a_readable_file_is_refused)
{
    static const char text[] = "url=redis-sentinel://h/m?sentinelpassword=" SECRET "\n";
    char message[PATH_MAX];
    set_conf(conffile_write("conf", text, modes[_i].mode & 0775));
    if (!modes[_i].why) {
        parses();
        ck_assert_str_eq(config.endpoint.sentinels.password, SECRET);
        ck_assert_str_eq(config.url, "redis-sentinel://h/m");
        return;
    }
    if (modes[_i].mode & S_IWOTH)
        return; /* refused because of its mode alone */
    snprintf(message, sizeof(message),
             ", line 1: the URL contains a password of sentinels, and %s", modes[_i].why);
    refused(EINVAL, message);
}
END_TEST

START_TEST(password_that_may_not_be_read_is_reported)
{
    char message[PATH_MAX];
    conffile_write("password", SECRET, 0);
    conffile_use("url=redis://h\npasswordfile=^/password\n");
    conffile_obey_rights();
    snprintf(message, sizeof(message), ", line 2: passwordfile %s: Permission denied",
             conffile_path("password"));
    refused(EINVAL, message);
}
END_TEST

START_TEST(password_is_a_line_of_bytes_that_fits)
{
    static char long_one[2049];
    char message[PATH_MAX];
    memset(long_one, 'p', 2047);
    conffile_write("password", long_one, 0600);
    conffile_use("url=redis://h\npasswordfile=^/password\n");
    parses();
    ck_assert_str_eq(config.endpoint.password, long_one);
    rlk_url_config_clear(&config);

    memset(long_one, 'p', 2048);
    conffile_write("password", long_one, 0600);
    snprintf(message, sizeof(message),
             ", line 2: passwordfile %s: the first line is too long",
             conffile_path("password"));
    refused(EINVAL, message);

    conffile_write_bytes("password", SECRET "\0x\n", sizeof(SECRET "\0x\n") - 1, 0600);
    snprintf(message, sizeof(message), ", line 2: passwordfile %s: contains a NUL byte",
             conffile_path("password"));
    refused(EINVAL, message);

    conffile_write("password", "\n" SECRET "\n", 0600);
    snprintf(message, sizeof(message),
             ", line 2: passwordfile %s: no password in the first line",
             conffile_path("password"));
    refused(EINVAL, message);
}
END_TEST

START_TEST(two_passwords_for_one_url_are_refused)
{
    conffile_write("password", SECRET, 0600);
    set_conf(conffile_write(
        "conf", "url=redis://u:" SECRET "@h\npasswordfile=/nonexistent\n", 0600));
    refused(EINVAL,
            ", line 2: passwordfile together with a URL that contains a password");
}
END_TEST

/* ---- the program's own credentials */

static void have_own(void)
{
    config.endpoint.user = strdup("own");
    config.endpoint.password = strdup("of-program");
}

START_TEST(programs_credentials_win_over_passwordfile_which_is_not_read)
{
    have_own();
    conffile_use("url=redis://h\nuser=u\npasswordfile=/nonexistent\n");
    parses();
    ck_assert_str_eq(config.endpoint.host, "h");
    ck_assert_str_eq(config.endpoint.user, "own");
    ck_assert_str_eq(config.endpoint.password, "of-program");
}
END_TEST

START_TEST(urls_credentials_win_over_the_programs)
{
    have_own();
    set_conf(conffile_write("conf", "url=redis://:" SECRET "@h\n", 0600));
    parses();
    ck_assert_ptr_null(config.endpoint.user);
    ck_assert_str_eq(config.endpoint.password, SECRET);
}
END_TEST

START_TEST(files_credentials_go_to_no_other_server)
{
    conffile_write("password", SECRET, 0600);
    conffile_use("url=redis://h\nuser=u\npasswordfile=^/password\n");
    set_url("redis://elsewhere");
    parses();
    ck_assert_ptr_null(config.endpoint.user);
    ck_assert_ptr_null(config.endpoint.password);
}
END_TEST

/* ---- a program with more rights than its caller */

static bool privileged;

/* replaces the C library's, which asks the kernel: the program may be setuid */
char *secure_getenv(const char *name)
{
    return privileged ? NULL : getenv(name);
}

START_TEST(environment_of_a_caller_with_fewer_rights_is_not_looked_at)
{
    conffile_use("url=redis://h\n");
    privileged = true;
    int rc = rlk_conf_parse(&config);
    if (rc == 0)
        ck_assert_str_ne(config.source, conffile_path("conf"));
    rlk_url_config_clear(&config);
    set_url("redis://of-variable");
    rc = rlk_conf_parse(&config);
    if (rc == 0)
        ck_assert_str_ne(config.source, "RLOCK_URL");
    rlk_url_config_clear(&config);
    privileged = false;
    parses();
    ck_assert_str_eq(config.source, "RLOCK_URL");
}
END_TEST

#define EACH(tc, test, array)                                                            \
    tcase_add_loop_test(tc, test, 0, (int)(sizeof(array) / sizeof((array)[0])))

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("conf");
    TCase *tc = add_case(suite, "order");
    tcase_add_test(tc, variable_wins_over_the_file);
    tcase_add_test(tc, file_is_not_looked_at_beside_the_variable);
    tcase_add_test(tc, empty_variable_is_none);
    tcase_add_test(tc, without_both_it_is_the_built_in_one);
    tcase_add_test(tc, file_without_a_url_is_as_none);
    tc = add_case(suite, "form");
    tcase_add_test(tc, blanks_comments_and_line_breaks_of_other_systems_do_not_matter);
    tcase_add_test(tc, password_may_go_without_a_user_and_hold_blanks_and_equal_signs);
    tcase_add_test(tc, longest_line_and_file_are_taken);
    tcase_add_test(tc, lines_of_TLS_do_not_override_attributes_or_the_URL);
    tcase_add_test(tc, pair_of_settings_comes_from_one_source);
    tcase_add_test(tc, file_does_not_loosen_what_the_program_has_set);
    EACH(tc, error_is_reported_by_file_and_line_without_the_text, bads);
    tcase_add_test(tc, line_that_is_too_long_is_refused);
    tcase_add_test(tc, byte_0_is_refused);
    tc = add_case(suite, "files");
    tcase_add_test(tc, file_that_is_named_has_to_be_there);
    tcase_add_test(tc, link_to_nothing_is_reported);
    tcase_add_test(tc, link_is_followed);
    tcase_add_test(tc, directory_is_reported);
    tcase_add_test(tc, pipe_is_reported_and_not_waited_for);
    tcase_add_test(tc, unreadable_file_is_reported_and_not_skipped);
    tcase_add_test(tc, path_that_is_not_absolute_is_refused);
    tcase_add_test(tc, file_that_everybody_can_write_is_refused);
    tcase_add_test(tc, want_of_descriptors_is_reported_as_such);
    tcase_add_test(tc, no_descriptor_is_left_open);
    tc = add_case(suite, "passwords");
    EACH(tc, password_that_others_can_read_is_refused, modes);
    EACH(tc, url_with_a_password_in_a_readable_file_is_refused, modes);
    EACH(tc, url_with_a_password_of_sentinels_in_a_readable_file_is_refused, modes);
    tcase_add_test(tc, password_that_may_not_be_read_is_reported);
    tcase_add_test(tc, password_is_a_line_of_bytes_that_fits);
    tcase_add_test(tc, two_passwords_for_one_url_are_refused);
    tc = add_case(suite, "credentials");
    tcase_add_test(tc, programs_credentials_win_over_passwordfile_which_is_not_read);
    tcase_add_test(tc, urls_credentials_win_over_the_programs);
    tcase_add_test(tc, files_credentials_go_to_no_other_server);
    tc = add_case(suite, "rights");
    tcase_add_test(tc, environment_of_a_caller_with_fewer_rights_is_not_looked_at);
    return test_run_suite(suite);
}
