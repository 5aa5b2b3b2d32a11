/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong set-ups of TLS: each mistake has a code, and a text that names it. */
/* program: claims=P2,P6 */
#if TEST_TLS

#include "tlsscene.h"

#include "net/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ARGS = 8, TEXT = 64 };

static void set_up(void)
{
    tls_start();
    test_authority_issue("ca", "expired", -1, "subjectAltName=DNS:localhost");
    test_authority_issue("ca", "elsewhere", 30,
                         "subjectAltName=DNS:db.example,DNS:*.example.net,IP:10.1.2.3");
    test_authority_issue("ca", "nameless", 30, "");
    test_authority_issue("ca", "user", 30,
                         "subjectAltName=DNS:localhost\\nextendedKeyUsage=clientAuth");
    test_authority_issue("other", "stranger", 30, "");
    /* "client", and behind it a certificate that has lost its middle */
    char command[512];
    snprintf(command, sizeof(command),
             "cd %s && { cat client.crt; sed 3,4d ca.crt; } >damaged.crt && "
             "mkdir ca.dir && cp ca.crt ca.dir && openssl rehash ca.dir && "
             "openssl genrsa -out rsa.key 2048 2>/dev/null",
             test_authority_path(""));
    ck_assert_int_eq(system(command), 0);
    FILE *empty = fopen(test_authority_path("empty.crt"), "w");
    ck_assert_ptr_nonnull(empty);
    fclose(empty);
}

/* The server's arguments beside the port ("@": the directory of certificates), the
 * client's URL, and the result. In the URL: %p is the TLS port, %q the plain one, %b the
 * go-between's, %u one without a listener, %t 300 ms, scaled. */
struct setup {
    const char *args[ARGS];
    const char *url;
    int code;
    const char *text[3];
};

static const struct setup setups[] = {
    { { NULL },
      "rediss://localhost:%p",
      EACCES,
      { "the certificate of localhost:", "\"rlock test authority ca\"",
        "not an authority of the system" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@other.crt",
      EACCES,
      { "\"rlock test authority ca\"", "not an authority of /tmp/", "other.crt" } },
    { { "--tls-cert-file", "@expired.crt", "--tls-key-file", "@expired.key" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "the certificate of localhost:", "expired at 2020-02-01 00:00:00 UTC" } },
    { { "--tls-cert-file", "@elsewhere.crt", "--tls-key-file", "@elsewhere.key" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "is not for \"localhost\"", "for db.example, *.example.net, 10.1.2.3" } },
    { { "--tls-cert-file", "@elsewhere.crt", "--tls-key-file", "@elsewhere.key" },
      "rediss://127.0.0.1:%p?cafile=@ca.crt",
      EACCES,
      { "is not for \"127.0.0.1\"", "for db.example, *.example.net, 10.1.2.3" } },
    { { "--tls-cert-file", "@nameless.crt", "--tls-key-file", "@nameless.key" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "is not for \"localhost\"", "for nameless" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@ca.crt&tlsname=db.example",
      EACCES,
      { "is not for \"db.example\"", "for localhost, 127.0.0.1" } },
    { { "--tls-cert-file", "@user.crt", "--tls-key-file", "@user.key" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "is not for servers (extendedKeyUsage)" } },
    { { "--tls-auth-clients", "yes" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "it requires a client certificate", "certfile=" } },
    { { "--tls-auth-clients", "yes", "--tls-protocols", "TLSv1.2" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EACCES,
      { "it requires a client certificate" } },
    { { "--tls-auth-clients", "yes" },
      "rediss://localhost:%p?cafile=@ca.crt&certfile=@stranger.crt&keyfile=@stranger.key",
      EACCES,
      { "refused the certificate of /tmp/", "does not know the authority" } },
    { { "--tls-protocols", "TLSv1.1", "--tls-ciphers", "ALL:@SECLEVEL=0" },
      "rediss://localhost:%p?cafile=@ca.crt",
      EPROTO,
      { "supports no version of TLS that this library supports (1.2 or later)" } },
    { { NULL },
      "redis://localhost:%p",
      ENOTCONN,
      { "before it sent anything (if it speaks TLS, its URL begins with rediss://)" } },
    { { NULL },
      "rediss://localhost:%q?cafile=@ca.crt&commandtimeout=%t",
      ENOTCONN,
      { "did not reply to the TLS handshake", "without TLS begins with redis://" } },
    { { NULL },
      "rediss://localhost:%b?cafile=@ca.crt",
      EPROTO,
      { "does not speak TLS (\"-DENIED this is somebody else\")" } },
    { { NULL },
      "rediss://localhost:%u?cafile=@ca.crt&commandtimeout=%t",
      ENOTCONN,
      { "cannot connect to localhost", "refused" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@nowhere.crt",
      EINVAL,
      { "TLS: cafile /tmp/", "nowhere.crt: No such file" } },
    { { NULL },
      "rediss://localhost:%p?cadir=@nowhere",
      EINVAL,
      { "TLS: cadir /tmp/", "nowhere: No such file" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@empty.crt",
      EINVAL,
      { "empty.crt: no certificate in it" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@ca.crt&certfile=@ca.key",
      EINVAL,
      { "TLS: certfile /tmp/", "ca.key: no certificate in it" } },
    { { NULL },
      "rediss://localhost:%p?certfile=@client.crt&keyfile=@server.key",
      EINVAL,
      { "server.key: it is not the key of certfile's certificate" } },
    { { NULL },
      "rediss://localhost:%p?certfile=@client.crt&keyfile=@rsa.key",
      EINVAL,
      { "rsa.key: it is not the key of certfile's certificate" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@damaged.crt",
      EINVAL,
      { "damaged.crt: one of its certificates is damaged (PEM)" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@ca.crt&certfile=@damaged.crt&keyfile=@client.key",
      EINVAL,
      { "damaged.crt: one of its certificates is damaged (PEM)" } },
    { { NULL },
      "rediss://localhost:%p?verify=ca",
      EINVAL,
      { "verify=ca requires cafile or cadir" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@ca.crt&tlsname=.example.net",
      EINVAL,
      { "tlsname is not a host name" } },
    { { NULL },
      "rediss://localhost:%p?certfile=@client.crt",
      EINVAL,
      { "client.crt: no private key in it" } },
    { { NULL },
      "rediss://localhost:%p?certfile=@client.crt&keyfile=@secret.key",
      EINVAL,
      { "secret.key: no private key in it (PEM, without a passphrase)" } },
    { { NULL },
      "rediss://localhost:%p?certfile=@client.crt&keyfile=@gone.key",
      EINVAL,
      { "TLS: keyfile /tmp/", "gone.key: No such file" } },
};
enum { SETUPS = sizeof(setups) / sizeof(setups[0]) };

/* Replaces "@" and the %-letters in `text`. */
static void fill_in(char *out, size_t size, const char *text, struct between *between)
{
    size_t len = 0;

    for (; *text && len + 1 < size; text++) {
        if (*text == '@' && strchr(text, '.')) {
            len += (size_t)snprintf(out + len, size - len, "%s", test_authority_path(""));
        } else if (*text == '@' && strncmp(text, "@nowhere", 8) == 0) {
            len += (size_t)snprintf(out + len, size - len, "%s", test_authority_path(""));
        } else if (*text == '%') {
            long number = *++text == 'p' ? tls_port
                          : *text == 'q' ? server.port
                          : *text == 'b' ? between_port(between)
                          : *text == 't' ? test_ms(300)
                                         : 1;
            len += (size_t)snprintf(out + len, size - len, "%ld", number);
        } else {
            out[len++] = *text;
        }
    }
    out[len < size ? len : size - 1] = '\0';
}

static void start_server(const struct setup *setup)
{
    static char texts[ARGS][128];
    const char *args[ARGS + 1] = { NULL };

    for (int i = 0; i < ARGS && setup->args[i]; i++) {
        bool is_file = setup->args[i][0] == '@';
        fill_in(texts[i], sizeof(texts[i]), setup->args[i], NULL);
        args[i] = is_file ? texts[i] : setup->args[i];
    }
    tls_restart(args);
}

/* rule: P6 */
START_TEST(alert_of_TLS_to_a_plain_client_is_EPROTO_and_names_the_URL)
{
    struct between *between = between_start(BETWEEN_ALERTS);
    rlock_client_t *c = NULL;
    char url[64];

    snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)between_port(between));
    OK(tls_open(&c, url));
    EXPECT(rlock_client_ping(c), EPROTO);
    ck_assert_ptr_nonnull(
        strstr(rlock_errmsg(), "speaks TLS: its URL begins with rediss://"));
    OK(rlock_client_close(c));
    between_stop(between);
}
END_TEST

/* rule: P2, P6 */
START_TEST(wrong_setup_has_its_code_and_names_its_cause)
{
    const struct setup *setup = &setups[_i];
    struct between *between = between_start(BETWEEN_SAYS);
    char url[TLS_URL_MAX];
    rlock_client_t *c = NULL;

    test_authority_issue("ca", "secret", 30, "");
    char command[256];
    snprintf(command, sizeof(command),
             "openssl ec -aes128 -passout pass:x -in %s -out %s 2>/dev/null",
             test_authority_path("client.key"), test_authority_path("secret.key"));
    ck_assert_int_eq(system(command), 0);
    start_server(setup);
    fill_in(url, sizeof(url), setup->url, between);
    int rc = tls_open(&c, url);
    if (rc == 0)
        rc = rlock_client_ping(c);
    for (int i = 0; i < 3 && setup->text[i]; i++)
        ck_assert_msg((rc == setup->code && strstr(rlock_errmsg(), setup->text[i])) ||
                          tls_is_other_answer(setup->text[0], rc, rlock_errmsg()),
                      "%s: %d, \"%s\", expected %d, \"%s\"", url, rc, rlock_errmsg(),
                      setup->code, setup->text[i]);
    if (c)
        OK(rlock_client_close(c));
    between_stop(between);
}
END_TEST

static const char *const good[] = {
    "rediss://localhost:%p?cafile=@ca.crt",
    "valkeys://127.0.0.1:%p?cafile=@ca.crt&verify=full",
    "rediss://127.0.0.1:%p?cafile=@ca.crt&tlsname=localhost",
    "rediss://localhost:%p?cadir=@ca.dir",
    "rediss://localhost:%p?cafile=@server.crt", /* the certificate itself is trusted */
    "rediss://localhost:%p?cafile=@ca.crt&certfile=@client.crt&keyfile=@client.key",
    "rediss://localhost:%p?cafile=@ca.crt&certfile=@both.pem",
};

/* rule: P2 */
START_TEST(right_setup_works)
{
    char url[TLS_URL_MAX], command[256];
    rlock_client_t *c = NULL;

    snprintf(command, sizeof(command), "cat %s %s >%s", test_authority_path("client.crt"),
             test_authority_path("client.key"), test_authority_path("both.pem"));
    ck_assert_int_eq(system(command), 0);
    start_server(&(const struct setup){ .args = { NULL } });
    fill_in(url, sizeof(url), good[_i], NULL);
    OK(tls_open(&c, url));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
}
END_TEST

static const struct {
    const char *name;
    int code;
} names[] = { { "db.example", 0 },          { "DB.Example.", 0 },
              { "a.example.net", 0 },       { "10.1.2.3", 0 },
              { "example.net", EACCES },    { "a.b.example.net", EACCES },
              { "10.1.2.4", EACCES },       { "xdb.example", EACCES },
              { "db.example.org", EACCES }, { "a.example.org", EACCES } };

/* rule: P2 */
START_TEST(name_is_one_of_the_certificates)
{
    rlock_client_t *c = NULL;
    char parameters[64];

    start_server(&(const struct setup){ .args = { "--tls-cert-file", "@elsewhere.crt",
                                                  "--tls-key-file", "@elsewhere.key" } });
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(parameters, sizeof(parameters), "tlsname=%s", names[i].name);
        OK(tls_open(&c, tls_url("localhost", tls_port, parameters)));
        int rc = rlock_client_ping(c);
        ck_assert_msg(rc == names[i].code, "%s: %d", names[i].name, rc);
        OK(rlock_client_close(c));
    }
}
END_TEST

/* rule: P2 */
START_TEST(verify_ca_takes_any_name_and_no_other_authority)
{
    rlock_client_t *c = NULL;
    char url[TLS_URL_MAX];
    start_server(&(const struct setup){ .args = { "--tls-cert-file", "@elsewhere.crt",
                                                  "--tls-key-file", "@elsewhere.key" } });
    static const char *const hosts[] = { "localhost", "127.0.0.1" };
    for (int i = 0; i < 2; i++) {
        OK(tls_open(&c, tls_url(hosts[i], tls_port, "verify=ca")));
        OK(rlock_client_ping(c));
        OK(rlock_client_close(c));
    }
    fill_in(url, sizeof(url), "rediss://localhost:%p?cafile=@other.crt&verify=ca", NULL);
    OK(tls_open(&c, url));
    EXPECT(rlock_client_ping(c), EACCES);
    OK(rlock_client_close(c));
}
END_TEST

/* rule: P2 */
START_TEST(attributes_work_and_the_URL_overrides_them)
{
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;
    char url[128];

    start_server(&(const struct setup){ .args = { "--tls-auth-clients", "yes" } });
    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(3000)));
    OK(rlock_clientattr_setcafile(&attr, test_authority_path("ca.crt")));
    OK(rlock_clientattr_setcertfile(&attr, test_authority_path("client.crt")));
    OK(rlock_clientattr_setkeyfile(&attr, test_authority_path("client.key")));
    OK(rlock_clientattr_settlsname(&attr, "localhost"));
    OK(rlock_clientattr_setverify(&attr, RLOCK_VERIFY_CA));
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%u", (unsigned)tls_port);
    OK(rlock_client_open(&c, url, &attr));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%u?tlsname=no.example&verify=full",
             (unsigned)tls_port);
    OK(rlock_client_open(&c, url, &attr));
    EXPECT(rlock_client_ping(c), EACCES);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "\"no.example\""));
    OK(rlock_client_close(c));
    /* the attributes have no effect with a URL without TLS */
    OK(rlock_client_open(&c, server.url, &attr));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    OK(rlock_clientattr_destroy(&attr));
}
END_TEST

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("tls errors");
    TCase *tc = tcase_create("setups");
    tcase_add_unchecked_fixture(tc, set_up, tls_stop);
    tcase_add_loop_test(tc, wrong_setup_has_its_code_and_names_its_cause, 0, SETUPS);
    tcase_add_test(tc, alert_of_TLS_to_a_plain_client_is_EPROTO_and_names_the_URL);
    tcase_add_loop_test(tc, right_setup_works, 0, sizeof(good) / sizeof(good[0]));
    tcase_add_test(tc, name_is_one_of_the_certificates);
    tcase_add_test(tc, verify_ca_takes_any_name_and_no_other_authority);
    tcase_add_test(tc, attributes_work_and_the_URL_overrides_them);
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
