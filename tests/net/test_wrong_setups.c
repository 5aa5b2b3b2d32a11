/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong set-ups of all kinds, in one table: each has its code, and its message, or a
 * finding of the diagnosis, names the cause and what to do instead. One set of servers
 * serves them all, and one process tries them one after the other. (More about TLS:
 * test_tls_errors.c. HAProxy: test_proxies.c. Files: test_conf.c. URLs: test_url.c.)
 */
/* program: */
#if TEST_TLS

#include "fakesentinel.h"
#include "findings.h"
#include "tlsscene.h"

#include "port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum {
    ARGS = 5,
    WORDS = 3,
    SHORT_MS = 150,
    LONGER_MS = 600,
    FAKES = 3,
    SOON_MS = 20000,
    TOLD_MAX = 8192
};

static struct test_server replica, node, sentinel;
static struct fake_sentinel *fakes[FAKES];
static uint16_t dead_port;
static int dead_holder = -1, bus_holder = -1;

enum action { PINGS, LOCKS, DIAGNOSES };

/* The TLS server's arguments beside the usual ones, the client's URL, what the client
 * does, its result, and words of the message, or of the findings if it diagnoses.
 * "@FILE": a file of the authority. In the URL:
 *   %p the TLS port    %q the same server's port without TLS    %r its replica
 *   %c a node of a cluster that serves no key    %s a sentinel of mymaster
 *   %f sentinels of which one lies    %g one that names the replica
 *   %d no listener    %x something that closes at once    %h something that greets
 *   %t times that are over soon    %w and not so soon */
struct setup {
    const char *args[ARGS];
    const char *url;
    enum action action;
    int code;
    const char *words[WORDS];
};

static const struct setup setups[] = {
    /* the URL */
    { { NULL },
      "http://localhost:%q",
      PINGS,
      EINVAL,
      { "URL: must begin with redis://" } },
    { { NULL },
      "redis://localhost:%q?leese=100",
      PINGS,
      EINVAL,
      { "URL: unknown parameter \"leese\"" } },
    { { NULL },
      "redis://localhost:%q?lease=soon",
      PINGS,
      EINVAL,
      { "lease", "is not a number from" } },
    { { NULL },
      "redis-sentinel://localhost:%s",
      PINGS,
      EINVAL,
      { "no name of the master, as in redis-sentinel://host:port/NAME" } },
    { { NULL },
      "redis://localhost:%q?sentineluser=me",
      PINGS,
      EINVAL,
      { "sentineluser requires redis-sentinel://" } },
    { { NULL },
      "redis://localhost:%q?cafile=@ca.crt",
      PINGS,
      EINVAL,
      { "cafile requires rediss://" } },
    /* the address */
    { { NULL },
      "redis://localhost:%d?%t",
      PINGS,
      ENOTCONN,
      { "cannot connect to localhost:", "Connection refused" } },
    { { NULL },
      "redis://localhost:%x?%t",
      PINGS,
      ENOTCONN,
      { "before it sent anything (if it speaks TLS, its URL begins with rediss://)",
        "a proxy that has no server" } },
    { { NULL },
      "redis://localhost:%h?%t",
      PINGS,
      ENOTCONN,
      { "is not ready: DENIED this is somebody else" } },
    { { NULL },
      "redis://localhost:%q/99",
      PINGS,
      EPROTO,
      { "refused SELECT 99: ERR DB index is out of range" } },
    /* credentials */
    { { NULL },
      "redis://worker:wrong@localhost:%q",
      PINGS,
      EACCES,
      { "refused AUTH: bad user or password" } },
    { { NULL },
      "redis://nobody:secret@localhost:%q",
      PINGS,
      EACCES,
      { "refused AUTH: bad user or password" } },
    { { NULL },
      "redis://:secret@localhost:%q",
      PINGS,
      EACCES,
      { "refused AUTH: the server has no password, but one was given" } },
    { { "--requirepass", "hush" },
      "redis://localhost:%q",
      PINGS,
      EACCES,
      { "refused ", "NOAUTH" } },
    { { NULL },
      "redis://reader:secret@localhost:%q",
      LOCKS,
      EACCES,
      { "the ACL refuses EVALSHA" } },
    { { NULL },
      "redis://reader:secret@localhost:%q",
      DIAGNOSES,
      0,
      { "The user \"reader\" lacks +evalsha +eval", "locks fail with EACCES",
        "doc/ACL.md" } },
    /* the kind of server */
    { { NULL },
      "redis://localhost:%r?%t",
      LOCKS,
      ENOTCONN,
      { "READONLY You can't write against a read only replica" } },
    { { NULL },
      "redis://localhost:%r",
      DIAGNOSES,
      0,
      { "The server is a replica", "Use its master's address." } },
    { { NULL }, "redis://localhost:%c?%t", LOCKS, ENOTCONN, { "CLUSTERDOWN" } },
    { { NULL },
      "redis://localhost:%c",
      DIAGNOSES,
      0,
      { "The server is a node of a cluster" } },
    { { NULL },
      "redis://localhost:%q?replicas=2&%w",
      LOCKS,
      ENOTCONN,
      { "1 of 2 replicas confirmed in time" } },
    { { NULL },
      "redis://localhost:%q?replicas=2",
      DIAGNOSES,
      0,
      { "Connected replicas: 1, and this client wants 2", "or lower replicas=" } },
    { { NULL },
      "redis://localhost:%q?waitaof=1",
      PINGS,
      ENOTSUP,
      { "waitaof=1 requires WAITAOF (Redis 7.2 or later) and an append-only file" } },
    { { "--maxmemory", "1" }, "redis://localhost:%q?%t", LOCKS, ENOTCONN, { "OOM" } },
    { { "--maxmemory", "1" },
      "redis://localhost:%q",
      DIAGNOSES,
      0,
      { "the server refuses new locks (OOM)", "Make room, or raise maxmemory." } },
    /* Sentinel */
    { { NULL },
      "redis://localhost:%s",
      PINGS,
      EPROTO,
      { "is a sentinel: its URL is redis-sentinel://localhost:", "/mymaster" } },
    { { NULL },
      "redis-sentinel://localhost:%d/mymaster?%t",
      PINGS,
      ENOTCONN,
      { "no sentinel of master mymaster answers", "Connection refused" } },
    { { NULL },
      "redis-sentinel://localhost:%q/mymaster",
      PINGS,
      EPROTO,
      { "sentinel localhost:", "it is no sentinel" } },
    { { NULL },
      "redis-sentinel://localhost:%s/yours",
      PINGS,
      EPROTO,
      { "no master of the name \"yours\": 1 of 1 sentinels do not know it" } },
    { { NULL },
      "redis-sentinel://localhost:%s/mymaster?sentineluser=locks&sentinelpassword=wrong",
      PINGS,
      EACCES,
      { "refuse this client (sentineluser, sentinelpassword)", "bad user or password" } },
    { { NULL },
      "redis-sentinel://localhost:%s/mymaster?sentineluser=locks&sentinelpassword=secret",
      PINGS,
      EACCES,
      { "refuse this client (sentineluser, sentinelpassword)",
        "has no permissions to run the 'sentinel" } },
    { { NULL },
      "redis-sentinel://worker:wrong@localhost:%s/mymaster",
      PINGS,
      EACCES,
      { "master mymaster (", "refused AUTH: bad user or password" } },
    { { NULL },
      "redis-sentinel://localhost:%g/mymaster?%t",
      PINGS,
      ENOTCONN,
      { "master mymaster (127.0.0.1:", "is not a master at the moment" } },
    { { NULL },
      "redis-sentinel://%f/mymaster",
      DIAGNOSES,
      0,
      { "by 2 of 3 sentinels that answered", "the others name another one",
        "look at SENTINEL MASTER of each" } },
    /* TLS */
    { { NULL },
      "redis://localhost:%p?%t",
      PINGS,
      ENOTCONN,
      { "before it sent anything (if it speaks TLS, its URL begins with rediss://)" } },
    { { NULL },
      "rediss://localhost:%q?cafile=@ca.crt&%t",
      PINGS,
      ENOTCONN,
      { "did not reply to the TLS handshake in time",
        "a server without TLS begins with redis://" } },
    { { NULL },
      "rediss-sentinel://localhost:%s/mymaster?cafile=@ca.crt&%t",
      PINGS,
      ENOTCONN,
      { "did not reply to the TLS handshake in time" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@nowhere.crt",
      PINGS,
      EINVAL,
      { "TLS: cafile /tmp/", "nowhere.crt: No such file" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@ca.key",
      PINGS,
      EINVAL,
      { "ca.key: no certificate in it" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@.",
      PINGS,
      EINVAL,
      { "TLS: cafile /tmp/", "not a regular file" } },
    { { NULL },
      "rediss://localhost:%p?cafile=@other.crt",
      PINGS,
      EACCES,
      { "\"rlock test authority ca\"", "not an authority of /tmp/" } },
    { { NULL },
      "rediss://127.0.0.1:%p?cafile=@ca.crt",
      PINGS,
      EACCES,
      { "is not for \"127.0.0.1\", but for localhost" } },
    { { "--tls-cert-file", "@expired.crt", "--tls-key-file", "@expired.key" },
      "rediss://localhost:%p?cafile=@ca.crt",
      PINGS,
      EACCES,
      { "the certificate of localhost:", "expired at 2020-02-01 00:00:00 UTC" } },
    { { "--tls-auth-clients", "yes" },
      "rediss://localhost:%p?cafile=@ca.crt",
      PINGS,
      EACCES,
      { "it requires a client certificate", "certfile=" } },
    { { "--tls-auth-clients", "yes" },
      "rediss://localhost:%p?cafile=@ca.crt&certfile=@stranger.crt&keyfile=@stranger.key",
      PINGS,
      EACCES,
      { "refused the certificate of /tmp/", "does not know the authority" } },
};
enum { SETUPS = sizeof(setups) / sizeof(setups[0]) };

/* ---- the servers */

static bool follows(void *arg)
{
    (void)arg;
    return strstr(test_redis_str(redis, "INFO", "replication"), "state=online") != NULL;
}

/* The data of users, which a restart forgets. */
static void make_users(const struct setup *setup)
{
    redis = test_redis_connect(server.path);
    if (setup && setup->args[0] && strcmp(setup->args[0], "--requirepass") == 0)
        return;
    test_redis_do(redis, "ACL", "SETUSER", "worker", "on", ">secret", "~*", "&*",
                  "+@all");
    test_redis_do(redis, "ACL", "SETUSER", "reader", "on", ">secret", "~*", "&*", "+@all",
                  "-evalsha", "-eval");
    ck_assert(test_wait_until(follows, NULL, SOON_MS));
}

static void make_certificates(void)
{
    test_authority_issue("ca", "server", 30, "subjectAltName=DNS:localhost");
    test_authority_issue("ca", "expired", -1, "subjectAltName=DNS:localhost");
    test_authority_issue("other", "stranger", 30, "");
}

static void start(void)
{
    char port[8], text[8], conf[128];
    uint16_t bus;

    tls_start();
    make_certificates();
    snprintf(port, sizeof(port), "%u", (unsigned)server.port);
    test_server_start(&replica, TEST_ARGV("--replicaof", "127.0.0.1", port));
    bus_holder = test_port_reserve("127.0.0.1", &bus);
    snprintf(text, sizeof(text), "%u", (unsigned)bus);
    test_server_start(&node,
                      TEST_ARGV("--cluster-enabled", "yes", "--cluster-port", text));
    snprintf(conf, sizeof(conf), "sentinel monitor mymaster 127.0.0.1 %s 1\n", port);
    test_server_start_sentinel(&sentinel, conf);
    dead_holder = test_port_reserve("127.0.0.1", &dead_port);
}

static void stop(void)
{
    close(dead_holder);
    close(bus_holder);
    test_server_stop(&sentinel);
    test_server_stop(&node);
    test_server_stop(&replica);
    tls_stop();
}

static void set_up(void)
{
    struct test_redis *r = test_redis_connect(sentinel.path);

    test_rundir_own_if_any();
    tls_restart((const char *const[]){ NULL }); /* with these certificates */
    make_users(NULL);
    test_redis_do(r, "ACL", "SETUSER", "locks", "on", ">secret", "&*", "+@all",
                  "-sentinel");
    test_redis_close(r);
    for (int i = 0; i < FAKES; i++) {
        fakes[i] = fake_sentinel_start();
        fake_sentinel_says(fakes[i], server.port, 1, "master");
    }
    proxy = test_proxy_start(&server);
    test_proxy_set_mode(proxy, TEST_PROXY_CLOSES);
}

static void tear_down(void)
{
    test_proxy_stop(proxy);
    for (int i = 0; i < FAKES; i++)
        fake_sentinel_stop(fakes[i]);
    test_redis_close(redis);
}

/* ---- a set-up */

static size_t append_number(char *out, size_t size, char letter, struct between *greets)
{
    unsigned number = letter == 'p'   ? tls_port
                      : letter == 'q' ? server.port
                      : letter == 'r' ? replica.port
                      : letter == 'c' ? node.port
                      : letter == 's' ? sentinel.port
                      : letter == 'g' ? fake_sentinel_port(fakes[0])
                      : letter == 'x' ? test_proxy_port(proxy)
                      : letter == 'h' ? between_port(greets)
                                      : dead_port;

    return (size_t)snprintf(out, size, "%u", number);
}

static size_t append_letter(char *out, size_t size, char letter, struct between *greets)
{
    long ms = test_ms(letter == 't' ? SHORT_MS : LONGER_MS);

    if (letter == 't' || letter == 'w')
        return (size_t)snprintf(out, size, "commandtimeout=%ld&connecttimeout=%ld", ms,
                                ms);
    if (letter == 'f')
        return (size_t)snprintf(out, size, "127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u",
                                (unsigned)fake_sentinel_port(fakes[0]),
                                (unsigned)fake_sentinel_port(fakes[1]),
                                (unsigned)fake_sentinel_port(fakes[2]));
    return append_number(out, size, letter, greets);
}

/* Replaces the %-letters, and "@" before the name of a file: behind '=', or alone. */
static void fill_in(char *out, size_t size, const char *text, struct between *greets)
{
    size_t len = 0;

    for (const char *at = text; *at && len + 1 < size; at++) {
        if (*at == '%')
            len += append_letter(out + len, size - len, *++at, greets);
        else if (*at == '@' && (at == text || at[-1] == '='))
            len += (size_t)snprintf(out + len, size - len, "%s", test_authority_path(""));
        else
            out[len++] = *at;
    }
    out[len < size ? len : size - 1] = '\0';
}

static bool has_other_args(const struct setup *setup, const struct setup *before)
{
    for (int i = 0; i < ARGS; i++) {
        const char *one = setup->args[i], *two = before ? before->args[i] : NULL;
        if (!one != !two || (one && strcmp(one, two) != 0))
            return true;
    }
    return false;
}

/* The replica has what the server has; one that is online may still load it. */
static void catch_up(void)
{
    char bound[16];

    snprintf(bound, sizeof(bound), "%ld", test_ms(SOON_MS));
    test_redis_do(redis, "SET", "begin", "1");
    ck_assert_int_eq(test_redis_int(redis, "WAIT", "1", bound), 1);
    test_redis_do(redis, "DEL", "begin");
}

static void prepare_server(const struct setup *setup, const struct setup *before)
{
    static char texts[ARGS][128];
    const char *args[ARGS + 1] = { NULL };

    if (!has_other_args(setup, before))
        return;
    for (int i = 0; i < ARGS && setup->args[i]; i++) {
        fill_in(texts[i], sizeof(texts[i]), setup->args[i], NULL);
        args[i] = texts[i];
    }
    test_redis_close(redis);
    tls_restart(args);
    make_users(setup);
}

static int lock(rlock_client_t *c)
{
    rlock_mutex_t m = mutex_of(c, "n");
    int rc = rlock_mutex_trylock(&m);

    if (rc == 0)
        OK(rlock_mutex_unlock(&m));
    return rc;
}

/* Returns the code; *ret_said: the message, or the findings. */
static int try(const struct setup *setup, const char *url, const char **ret_said)
{
    static struct findings f;
    static char said[sizeof(f.each)];
    rlock_client_t *c = NULL;

    int rc = tls_open(&c, url);
    if (rc == 0 && setup->action == DIAGNOSES) {
        findings_of(&f, c);
        rc = f.rc;
    } else if (rc == 0) {
        rc = setup->action == LOCKS ? lock(c) : rlock_client_ping(c);
    }
    snprintf(said, sizeof(said), "%s",
             setup->action == DIAGNOSES && rc == 0 ? findings_text(&f) : rlock_errmsg());
    if (c)
        OK(rlock_client_close(c));
    *ret_said = said;
    return rc;
}

static bool has_words(const struct setup *setup, const char *said)
{
    for (int i = 0; i < WORDS && setup->words[i]; i++)
        if (!strstr(said, setup->words[i]))
            return false;
    return true;
}

/* rule: P6, P7 */
START_TEST(wrong_setup_has_its_code_and_names_cause_and_remedy)
{
    static char told[TOLD_MAX];
    struct between *greets = between_start(BETWEEN_SAYS);
    char url[TLS_URL_MAX];
    const char *said;
    size_t len = 0;
    int wrong = 0;

    fake_sentinel_says(fakes[0], replica.port, 1, "master");
    for (int i = 0; i < SETUPS; i++) {
        prepare_server(&setups[i], i > 0 ? &setups[i - 1] : NULL);
        if (strstr(setups[i].url, "replicas="))
            catch_up();
        fill_in(url, sizeof(url), setups[i].url, greets);
        int rc = try(&setups[i], url, &said);
        if ((rc == setups[i].code && has_words(&setups[i], said)) ||
            tls_is_other_answer(setups[i].words[0], rc, said))
            continue;
        wrong++;
        if (len < sizeof(told))
            len += (size_t)snprintf(told + len, sizeof(told) - len,
                                    "%s: %d, expected %d, \"%s\"; but: %s\n", url, rc,
                                    setups[i].code, setups[i].words[0], said);
    }
    between_stop(greets);
    ck_assert_msg(wrong == 0, "%d of %d:\n%s", wrong, (int)SETUPS, told);
}
END_TEST

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("wrong setups");
    TCase *tc = tcase_create("setups");

    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, wrong_setup_has_its_code_and_names_cause_and_remedy);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}

#else /* configure --without-tls: test_url.c has what rediss:// says then */

#include <stdio.h>

int main(void)
{
    puts("skipped: the library was built without TLS");
    return 77;
}

#endif
