/* SPDX-License-Identifier: Apache-2.0 */
/* A listing of a cluster, and rlock(1) there: all masters, masters only, and never a part
 * without saying so, whatever moves meanwhile. */
/* program: slow claims=P26 */
#include "cli.h"
#include "clusterscene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    MANY = 600, /* locks at the first master: several pages of SCAN */
    NAME_SIZE = 24,
    FIRST_END = 5461, /* of the first master's hash slots */
    LEASE_MS = 600000
};

static char names[MANY][NAME_SIZE];
static rlock_mutex_t many[MANY];
static int count; /* of `many` */
static rlock_mutex_t one[CLUSTER_MASTERS];
static struct cli c;

static void set_up(void)
{
    cluster_open();
    memset(&c, 0, sizeof(c));
    count = 0;
    client = cluster_client("?lease=600000");
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        one[i] = mutex_of(client, cluster_name(i, 3));
        OK(rlock_mutex_lock(&one[i]));
    }
}

/* What a test has broken may have taken locks with it. */
static void tear_down(void)
{
    cli_stop(&c);
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_server_resume(&nodes[i].server);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        (void)rlock_mutex_unlock(&one[i]);
    for (int i = 0; i < count; i++)
        (void)rlock_mutex_unlock(&many[i]);
    cluster_close();
}

/* Takes many locks of the first master. */
static void take_many(void)
{
    for (int n = 0; count < MANY; n++) {
        snprintf(names[count], NAME_SIZE, "M%d", n);
        if (cluster_hash_slot(names[count]) >= FIRST_END)
            continue;
        many[count] = mutex_of(client, names[count]);
        OK(rlock_mutex_lock(&many[count]));
        count++;
    }
}

/* ---- a listing */

struct listing {
    bool has_one[CLUSTER_MASTERS];
    bool has_many[MANY];
    int reported;
    /* called once, in the middle: after so many reports, or at this lock */
    void (*then)(void);
    int then_after;
    const char *then_at;
    int result;
};

static int note(const rlock_info_t *info, void *arg)
{
    struct listing *l = arg;

    for (int i = 0; i < CLUSTER_MASTERS; i++)
        l->has_one[i] |= strcmp(info->name, cluster_name(i, 3)) == 0;
    for (int i = 0; i < count; i++)
        l->has_many[i] |= strcmp(info->name, names[i]) == 0;
    l->reported++;
    if (l->then && (l->then_at ? strcmp(info->name, l->then_at) == 0
                               : l->reported == l->then_after)) {
        l->then();
        l->then = NULL;
    }
    return l->result;
}

static void assert_complete(const struct listing *l)
{
    int missing = 0;

    ck_assert_ptr_null((void *)(uintptr_t)l->then); /* it happened */
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        missing += !l->has_one[i];
    for (int i = 0; i < count; i++)
        missing += !l->has_many[i];
    ck_assert_int_eq(missing, 0);
}

/* rule: P25 */
START_TEST(listing_has_the_locks_of_all_masters_once)
{
    struct listing l = { .reported = 0 };

    take_many();
    other = cluster_client("");
    OK(rlock_list(other, "*", note, &l));
    assert_complete(&l);
    ck_assert_int_eq(l.reported, MANY + CLUSTER_MASTERS);
}
END_TEST

static bool is_replica(void *arg)
{
    (void)arg;
    return !cluster_is_master(0);
}

/* The first master hands over to its replica, and forgets all: it has left the cluster.
 */
static void promote_replica(void)
{
    cluster_failover(0, NULL);
    ck_assert(test_wait_until(is_replica, NULL, CLUSTER_SOON_MS));
    test_redis_do(at_node[0], "CLUSTER", "RESET", "SOFT");
}

/* rule: P26 */
START_TEST(replica_that_is_promoted_meanwhile_is_asked_in_place_of_the_old_master)
{
    struct listing l = { .then = promote_replica, .then_after = MANY / 10 };

    take_many();
    other = cluster_client("");
    OK(rlock_list(other, "*", note, &l));
    assert_complete(&l);
    ck_assert_str_eq(rlock_errmsg(), "");
}
END_TEST

static void move_to_the_first(void)
{
    unsigned hash_slot = cluster_hash_slot(cluster_name(2, 3));

    cluster_begin_move(hash_slot, 2, 0);
    cluster_move_keys(hash_slot, 2, 0, NULL);
    cluster_end_move(hash_slot, 2, 0);
}

/* rule: P25 */
START_TEST(lock_that_moves_to_a_master_that_was_looked_at_is_found)
{
    struct listing l = { .then = move_to_the_first, .then_at = cluster_name(1, 3) };

    other = cluster_client("");
    OK(rlock_list(other, "*", note, &l));
    assert_complete(&l);
}
END_TEST

/* Whether the message names the node. */
static bool message_names(int node)
{
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)nodes[node].port);
    return strstr(rlock_errmsg(), address) != NULL;
}

/* rule: P25 */
START_TEST(master_that_is_down_is_ENOTCONN_and_its_name_after_the_locks_of_the_others)
{
    struct listing l = { .reported = 0 };

    other = cluster_client("?commandtimeout=1000&connecttimeout=1000");
    test_server_kill(&nodes[1].server);
    EXPECT(rlock_list(other, "*", note, &l), ENOTCONN);
    ck_assert_msg(message_names(1), "%s", rlock_errmsg());
    ck_assert(l.has_one[0] && !l.has_one[1] && l.has_one[2]);
}
END_TEST

/* rule: P25 */
START_TEST(hash_slot_that_no_node_has_is_ENOTCONN_and_its_number)
{
    struct listing l = { .reported = 0 };
    char text[16];

    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_config(at_node[i], "cluster-require-full-coverage", "no");
    snprintf(text, sizeof(text), "%u", cluster_hash_slot(cluster_name(1, 4)));
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_do(at_node[i], "CLUSTER", "DELSLOTS", text);
    other = cluster_client("?commandtimeout=500");
    EXPECT(rlock_list(other, "*", note, &l), ENOTCONN);
    ck_assert_msg(strstr(rlock_errmsg(), text), "%s", rlock_errmsg());
    assert_complete(&l); /* the others' locks are reported */
    test_redis_do(at_node[1], "CLUSTER", "ADDSLOTS", text);
    for (int i = 0; i < CLUSTER_NODES; i++)
        test_redis_config(at_node[i], "cluster-require-full-coverage", "yes");
    cluster_await_ok();
}
END_TEST

/* rule: P25 */
START_TEST(lock_with_keys_at_two_nodes_is_ENOTCONN_until_it_has_moved)
{
    const char *name = cluster_name(2, 3), *const keys[] = { name, NULL };
    unsigned hash_slot = cluster_hash_slot(name);
    struct listing l = { .reported = 0 };
    rlock_info_t *info = NULL;

    other = cluster_client("?commandtimeout=500");
    cluster_begin_move(hash_slot, 2, 0);
    for (int i = 0; i < 2; i++) {
        EXPECT(rlock_inspect(other, name, &info), ENOTCONN);
        EXPECT(rlock_list(other, "*", note, &l), ENOTCONN);
        ck_assert_msg(strstr(rlock_errmsg(), name), "%s", rlock_errmsg());
        ck_assert(l.has_one[0] && l.has_one[1] && !l.has_one[2]);
        if (i == 0)
            cluster_move_keys(hash_slot, 2, 0, keys);
    }
    cluster_end_move(hash_slot, 2, 0);
    OK(rlock_list(other, "*", note, &l));
    assert_complete(&l);
}
END_TEST

START_TEST(result_of_the_callback_ends_the_listing)
{
    struct listing l = { .result = ENOTCONN };

    other = cluster_client("");
    ck_assert_int_eq(rlock_list(other, "*", note, &l), ENOTCONN);
    ck_assert_int_eq(l.reported, 1);
}
END_TEST

/* rule: P25 */
START_TEST(listing_waits_for_a_failover_that_is_under_way)
{
    struct listing l = { .reported = 0 };
    char ms[16], parameters[64];

    snprintf(ms, sizeof(ms), "%ld", test_ms(CLUSTER_SOON_MS));
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld&connecttimeout=1000",
             test_ms(CLUSTER_SOON_MS));
    test_redis_do(at_node[1], "SET", cluster_name(1, 9), "1");
    ck_assert_int_ge((int)test_redis_int(at_node[1], "WAIT", "1", ms), 1);
    other = cluster_client(parameters);
    cluster_expect_failure();
    test_server_kill(&nodes[1].server);
    OK(rlock_list(other, "*", note, &l));
    ck_assert(cluster_is_master(1 + CLUSTER_MASTERS));
    assert_complete(&l);
}
END_TEST

/* ---- rlock(1) */

static const char *const *environment(void)
{
    static char url[512];
    static const char *const env[] = { url, NULL };

    snprintf(url, sizeof(url), "RLOCK_URL=%s",
             cluster_url(1, "?commandtimeout=1000&connecttimeout=1000"));
    return env;
}

/* rule: P25 */
START_TEST(commands_see_all_masters)
{
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "list"), environment()), 0);
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        ck_assert_msg(strstr(c.out.text, cluster_name(i, 3)), "%s", c.out.text);
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        const char *name = cluster_name(i, 3);
        cli_stop(&c);
        ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "show", name), environment()), 0);
        ck_assert_msg(strstr(c.out.text, name), "%s", c.out.text);
        cli_stop(&c);
        ck_assert_int_eq(cli_does(&c,
                                  CLI_ARGV("rlock", "release", "--force", "--yes", name),
                                  environment()),
                         0);
        EXPECT(rlock_mutex_unlock(&one[i]), ESTALE);
    }
    cli_stop(&c);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "list"), environment()), 0);
    ck_assert_str_eq(c.out.text, "");
}
END_TEST

enum { EXIT_AWAY = 69 };

/* rule: P25 */
START_TEST(list_prints_nothing_when_a_master_is_down)
{
    test_server_kill(&nodes[1].server);
    ck_assert_int_eq(cli_does(&c, CLI_ARGV("rlock", "list"), environment()), EXIT_AWAY);
    ck_assert_str_eq(c.out.text, "");
    ck_assert_msg(strstr(c.err.text, "cannot list the locks"), "%s", c.err.text);
}
END_TEST

/* rule: P25 */
START_TEST(watch_takes_no_lock_of_a_master_that_is_down_for_released)
{
    cli_start(&c, CLI_ARGV("rlock", "watch", "--interval", "0.1"), environment());
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        ck_assert(cli_says(&c, cluster_name(i, 3)));
    test_server_kill(&nodes[1].server);
    ck_assert(cli_says(&c, "\tunreachable\t"));
    test_server_restart(&nodes[1].server);
    ck_assert(cli_says(&c, "\treachable\t"));
    OK(rlock_mutex_unlock(&one[0]));
    ck_assert(cli_says_line(&c, "\treleased\t"));
    const char *released = strstr(c.out.text, "\treleased\t") + strlen("\treleased\t");
    ck_assert_msg(strncmp(released, cluster_name(0, 3), strlen(cluster_name(0, 3))) == 0,
                  "%s", c.out.text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cluster listing");
    TCase *tc = tcase_create("listing");
    tcase_add_unchecked_fixture(tc, cluster_start, cluster_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, listing_has_the_locks_of_all_masters_once);
    tcase_add_test(tc, lock_that_moves_to_a_master_that_was_looked_at_is_found);
    tcase_add_test(tc, hash_slot_that_no_node_has_is_ENOTCONN_and_its_number);
    tcase_add_test(tc, lock_with_keys_at_two_nodes_is_ENOTCONN_until_it_has_moved);
    tcase_add_test(tc, result_of_the_callback_ends_the_listing);
    tcase_add_test(tc, commands_see_all_masters);
    tcase_add_test(
        tc, replica_that_is_promoted_meanwhile_is_asked_in_place_of_the_old_master);
    tcase_add_test(
        tc, master_that_is_down_is_ENOTCONN_and_its_name_after_the_locks_of_the_others);
    tcase_add_test(tc, list_prints_nothing_when_a_master_is_down);
    tcase_add_test(tc, watch_takes_no_lock_of_a_master_that_is_down_for_released);
    if (test_is_full())
        tcase_add_test(tc, listing_waits_for_a_failover_that_is_under_way);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
