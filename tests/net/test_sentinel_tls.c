/* SPDX-License-Identifier: Apache-2.0 */
/* A real sentinel and its master over TLS: both certificates are checked. */
/* program: */
#if TEST_TLS

#include "client/client.h"
#include "tlsscene.h"

#include "base/clock.h"
#include "port.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct test_server sentinel;
static uint16_t sentinel_port;
static int holder = -1;

static void start(void)
{
    char conf[1024];

    tls_start();
    holder = test_port_reserve("127.0.0.1", &sentinel_port);
    snprintf(conf, sizeof(conf),
             "tls-port %u\n"
             "tls-cert-file %s\n"
             "tls-key-file %s\n"
             "tls-ca-cert-file %s\n"
             "tls-auth-clients no\n"
             "tls-replication yes\n"
             "sentinel monitor mymaster 127.0.0.1 %u 1\n",
             (unsigned)sentinel_port, test_authority_path("server.crt"),
             test_authority_path("server.key"), test_authority_path("ca.crt"),
             (unsigned)tls_port);
    test_server_start_sentinel(&sentinel, conf);
}

static void stop(void)
{
    test_server_stop(&sentinel);
    close(holder);
    tls_stop();
}

static const char *url(const char *authority, const char *parameters)
{
    static char text[TLS_URL_MAX];

    snprintf(text, sizeof(text), "rediss-sentinel://localhost:%u/mymaster?cafile=%s%s",
             (unsigned)sentinel_port, test_authority_path(authority), parameters);
    return text;
}

static rlock_client_t *opened;

static bool pings(void *arg)
{
    (void)arg;
    return rlock_client_ping(opened) == 0;
}

/* rule: P10 */
START_TEST(master_is_found_and_used_over_TLS)
{
    struct rlk_tls_facts facts;
    struct rlk_conn *conn;
    int64_t until = rlk_clock_boot() + test_ms(10000) * RLK_NS_PER_MS;

    OK(tls_open(&opened, url("ca.crt", "")));
    ck_assert(test_wait_until(pings, NULL, 20000)); /* the sentinel has just begun */
    rlock_mutex_t m = mutex_of(opened, "m");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    OK(rlk_pool_get(opened->route.target.pool, until, &conn));
    ck_assert(rlk_conn_look_at_tls(conn, &facts));
    rlk_pool_put(opened->route.target.pool, conn);
    OK(rlock_client_close(opened));
}
END_TEST

/* rule: P10 */
START_TEST(sentinel_of_another_authority_or_name_is_EACCES)
{
    OK(tls_open(&opened, url("other.crt", "")));
    EXPECT(rlock_client_ping(opened), EACCES);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "certificate of sentinel localhost:"));
    OK(rlock_client_close(opened));
    OK(tls_open(&opened, url("ca.crt", "&tlsname=elsewhere.example")));
    EXPECT(rlock_client_ping(opened), EACCES);
    OK(rlock_client_close(opened));
}
END_TEST

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("sentinel_tls");
    TCase *tc = tcase_create("tls");

    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_test(tc, master_is_found_and_used_over_TLS);
    tcase_add_test(tc, sentinel_of_another_authority_or_name_is_EACCES);
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
