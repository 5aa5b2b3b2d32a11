/* SPDX-License-Identifier: Apache-2.0 */
/* A sentinel that lies delays a client for seconds, and no longer: its doubt of 5 s is
 * most of the time of this program. The sentinels say what the test wants. */
/* program: */
#include "client/client.h"

#include "base/clock.h"
#include "sentinelscene.h"

#include <string.h>

enum { SOON_MS = 20000, QUICK_MS = 1000, TRIES = 5 };

/* Pings by a connection of its own. */
static bool connects(void *arg)
{
    rlock_client_t *c = arg;

    rlk_pool_drain(c->route.target.pool);
    return rlock_client_ping(c) == 0;
}

/* How long that takes, at best. */
static int64_t quickest(rlock_client_t *c)
{
    int64_t best = INT64_MAX;

    for (int i = 0; i < TRIES && best > test_ms(QUICK_MS); i++) {
        int64_t start = test_now_ms();
        if (connects(c))
            best = test_now_ms() - start;
    }
    return best;
}

static bool meets_the_liar(void *c)
{
    return !connects(c) && strstr(rlock_errmsg(), "cannot connect to master");
}

/* It connects when the liar's answer comes late. */
static bool fails(void *c)
{
    return !connects(c);
}

/* If the liar's answer comes late, which this machine may cause, it is not in doubt. */
static bool connects_in_doubt(void *arg)
{
    rlock_client_t *c = arg;

    return connects(c) &&
           rlk_sentinel_book_doubts(c->config.endpoint.book, rlk_clock_boot());
}

static bool is_in_doubt(void *arg)
{
    rlock_client_t *c = arg;

    return rlk_sentinel_book_doubts(c->config.endpoint.book, rlk_clock_boot()) ||
           connects(c);
}

/* rule: P7 */
START_TEST(lying_sentinel_does_not_lock_the_client_out)
{
    fake_sentinel_says(fakes[1], fakes_dead_port(), 99, "master");
    other =
        sentinel_open(fakes_url(SENTINELS, "?commandtimeout=2000&connecttimeout=2000"));
    ck_assert(test_wait_until(meets_the_liar, other, SOON_MS));
    /* another client, whose deadlines pass while the liar's server accepts and is silent
     */
    proxy = test_proxy_start(&server);
    test_proxy_set_mode(proxy, TEST_PROXY_SILENT);
    fake_sentinel_says(fakes[1], test_proxy_port(proxy), 99, "master");
    rlock_client_t *hasty =
        sentinel_open(fakes_url(SENTINELS, "?commandtimeout=100&connecttimeout=100"));
    ck_assert(test_wait_until(fails, hasty, SOON_MS));
    ck_assert(test_wait_until(connects_in_doubt, other, SOON_MS));
    ck_assert(test_wait_until(is_in_doubt, hasty, SOON_MS));
    close_client(hasty);
    /* and does not delay the next connections as long */
    ck_assert_int_le(quickest(other), test_ms(QUICK_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sentinel_liar");
    TCase *tc = tcase_create("liar");

    tcase_add_unchecked_fixture(tc, fakes_start, fakes_stop);
    tcase_add_checked_fixture(tc, fakes_open, fakes_close);
    tcase_add_test(tc, lying_sentinel_does_not_lock_the_client_out);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
