/* SPDX-License-Identifier: Apache-2.0 */
/* doc/TLS.md: its ten lines make an authority that works, the options of rlock(1) are
 * those of its table, and its stunnel.conf works in front of a server without TLS. */
#if TEST_TLS

#include "cli.h"
#include "tlsscene.h"

#include "port.h"
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DOC_SIZE = 64 << 10, SOON_MS = 10000 };

/* Returns the block of code that follows a comment of the document. Fails if there is
 * none. */
static char *block_behind(const char *comment)
{
    static char text[DOC_SIZE];
    FILE *file = fopen(TEST_SRCDIR "/doc/TLS.md", "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    char *at = strstr(text, comment);
    ck_assert_ptr_nonnull(at);
    at = strstr(at, "```");
    char *begin = at ? strchr(at, '\n') : NULL,
         *end = begin ? strstr(begin, "\n```") : NULL;
    ck_assert_ptr_nonnull(end);
    end[1] = '\0';
    return begin + 1;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(test_authority_path(name), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void run_lines(void)
{
    char command[256];

    write_file("ten", block_behind("<!-- run: ten lines -->"));
    snprintf(command, sizeof(command), "cd %s && sh -eu ten >/dev/null 2>&1",
             test_authority_path(""));
    ck_assert_int_eq(system(command), 0);
}

/* rule: P2 */
START_TEST(ten_lines_make_an_authority_a_server_and_a_client)
{
    const char *const args[] = { "--tls-auth-clients", "yes", NULL };
    char parameters[TLS_URL_MAX];
    rlock_client_t *c = NULL;

    run_lines(); /* these files replace those of the fixture */
    tls_restart(args);
    snprintf(parameters, sizeof(parameters), "certfile=%s&keyfile=%s",
             test_authority_path("client.crt"), test_authority_path("client.key"));
    OK(tls_open(&c, tls_url("localhost", tls_port, parameters)));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    OK(tls_open(&c, tls_url("127.0.0.1", tls_port, "")));
    EXPECT(rlock_client_ping(c), EACCES);
    OK(rlock_client_close(c));
}
END_TEST

/* ---- rlock(1) */

static struct cli cli;

static int rlock(const char *word, const char *url, const char *option, const char *value)
{
    const char *const argv[] = { "rlock", word, "--url", url, option, value, NULL };
    cli_stop(&cli);
    memset(&cli, 0, sizeof(cli));
    return cli_does(&cli, argv, NULL);
}

static bool prints(const char *text)
{
    return strstr(cli.out.text, text) || strstr(cli.err.text, text);
}

/* rule: P2, P6 */
START_TEST(options_of_the_command_line_are_those_of_TLS)
{
    char url[64];

    snprintf(url, sizeof(url), "rediss://localhost:%u", (unsigned)tls_port);
    const char *ca = test_authority_path("ca.crt");
    ck_assert_int_eq(rlock("list", url, "--tls-cafile", ca), 0);
    ck_assert_int_eq(rlock("list", url, NULL, NULL), 77);
    ck_assert(prints("which is not an authority of the system"));
    ck_assert_int_eq(rlock("list", url, "--tls-verify", "none"), 64);
    ck_assert(prints("--tls-verify: it is full or ca"));
    ck_assert_int_eq(rlock("list", server.url, "--tls-cafile", ca), 64);
    ck_assert(prints("options for TLS need a URL with rediss://"));
    ck_assert_int_eq(rlock("list", url, "--tls-cafile", "/nowhere"), 64);
    ck_assert(prints("TLS: cafile /nowhere: No such file"));
}
END_TEST

/* rule: P6 */
START_TEST(doctor_tells_protocol_name_and_end_of_the_certificate)
{
    rlock("doctor", tls_url("localhost", tls_port, ""), NULL, NULL);
    ck_assert(prints("tls: TLSv1.3 with TLS_"));
    ck_assert(prints("the certificate is for \"localhost\", and expires in 29 days.") ||
              prints("the certificate is for \"localhost\", and expires in 30 days."));
    rlock("doctor", tls_url("localhost", tls_port, "verify=ca"), NULL, NULL);
    ck_assert(prints("note      tls: "));
    ck_assert(prints("Set tlsname to one of its names."));
    test_authority_issue("ca", "server", 3, "subjectAltName=DNS:localhost,IP:127.0.0.1");
    tls_restart((const char *const[]){ NULL });
    rlock("doctor", tls_url("localhost", tls_port, ""), NULL, NULL);
    ck_assert(
        prints("warning   tls: The certificate of the server (for localhost, 127.0.0.1) "
               "expires in "));
}
END_TEST

static bool answers(void *c)
{
    return rlock_client_ping(c) == 0;
}

static void replace(char *out, size_t size, const char *text, const char *from,
                    const char *to)
{
    const char *at = strstr(text, from);
    ck_assert_ptr_nonnull(at);
    snprintf(out, size, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* rule: P1, P3 */
START_TEST(stunnel_in_front_of_a_server_without_TLS_is_a_server_with_TLS)
{
    char conf[1024], more[1024], port[16], target[32], command[256];
    struct test_program tunnel;
    rlock_client_t *c = NULL;
    uint16_t front;

    if (access("/usr/bin/stunnel4", X_OK) != 0) {
        printf("skipped: stunnel: there is no stunnel4\n");
        return;
    }
    run_lines();
    int holder = test_port_reserve("127.0.0.1", &front);
    snprintf(port, sizeof(port), "accept = %u", (unsigned)front);
    snprintf(target, sizeof(target), "127.0.0.1:%u", (unsigned)server.port);
    replace(conf, sizeof(conf), block_behind("<!-- stunnel.conf -->"), "accept = 6380",
            port);
    replace(more, sizeof(more), conf, "127.0.0.1:6379", target);
    write_file("stunnel.conf", more);
    snprintf(command, sizeof(command), "cd %s && exec stunnel4 stunnel.conf 2>/dev/null",
             test_authority_path(""));
    test_program_start(&tunnel, (const char *const[]){ "/bin/sh", "-c", command, NULL },
                       NULL);
    OK(tls_open(&c, tls_url("localhost", front, "")));
    ck_assert(test_wait_until(answers, c, SOON_MS));
    rlock_mutex_t m = mutex_of(c, "n"), theirs = mutex_of(client, "n");
    struct task waiting;
    for (int i = 0; i < 20; i++) {
        OK(rlock_mutex_lock(&theirs));
        task_start(&waiting, run_pair, &m);
        ck_assert(wait_waiters(c, 1));
        OK(rlock_mutex_unlock(&theirs));
        ck_assert(task_ends(&waiting, SOON_MS));
        OK(task_join(&waiting));
    }
    ck_assert_uint_eq(stats_of(c).reconnects, 0);
    OK(rlock_client_close(c));
    test_program_end(&tunnel);
    close(holder);
}
END_TEST

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("tls doc");
    TCase *tc = tcase_create("doc");
    tcase_add_unchecked_fixture(tc, tls_start, tls_stop);
    tcase_add_checked_fixture(tc, fixture_open, fixture_close);
    tcase_add_test(tc, options_of_the_command_line_are_those_of_TLS);
    tcase_add_test(tc, doctor_tells_protocol_name_and_end_of_the_certificate);
    /* last, because these replace the fixture's files */
    tcase_add_test(tc, stunnel_in_front_of_a_server_without_TLS_is_a_server_with_TLS);
    tcase_add_test(tc, ten_lines_make_an_authority_a_server_and_a_client);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

#else /* configure --without-tls */

#include <stdio.h>

int main(void)
{
    puts("skipped: the library was built without TLS");
    return 77;
}

#endif
