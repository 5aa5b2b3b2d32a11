/* SPDX-License-Identifier: Apache-2.0 */
/* The example of the warehouse in a cluster that changes meanwhile. The URL is all that
 * tells it of the cluster. */
#include "clusterscene.h"

#include "program.h"

#include <stdio.h>
#include <string.h>

enum { ORDERS = 10000, LINE_SIZE = 200 };

static struct test_program warehouse;

static void start(void)
{
    static char path[256], url[512], orders[16];

    test_build_path(path, sizeof(path), "examples/10_cluster");
    snprintf(orders, sizeof(orders), "%d", ORDERS);
    snprintf(url, sizeof(url), "RLOCK_URL=%s", cluster_url(2, ""));
    test_program_start(&warehouse, TEST_ARGV(path, orders),
                       (const char *const[]){ url, NULL });
}

static void end(void)
{
    test_program_end(&warehouse);
}

static bool has_locks_at_all_masters(void *arg)
{
    (void)arg;
    for (int i = 0; i < CLUSTER_MASTERS; i++)
        if (test_redis_int(at_node[i], "DBSIZE") == 0)
            return false;
    return true;
}

START_TEST(warehouse_sells_each_item_once_while_the_cluster_changes)
{
    char line[LINE_SIZE], expected[LINE_SIZE];

    ck_assert(test_wait_until(has_locks_at_all_masters, NULL, CLUSTER_SOON_MS));
    ck_assert_int_eq(test_program_wait(&warehouse, 0), -1); /* it is at work */
    cluster_failover(0, NULL);
    ck_assert(test_program_read(&warehouse, line, sizeof(line), CLUSTER_SOON_MS));
    snprintf(expected, sizeof(expected),
             "%d orders, %d items sold; 0 locks lost, 0 late orders refused.", ORDERS,
             ORDERS);
    ck_assert_str_eq(line, expected);
    ck_assert_int_eq(test_program_wait(&warehouse, CLUSTER_SOON_MS), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_example");
    TCase *tc = cluster_tcase(suite, "warehouse");

    tcase_add_checked_fixture(tc, start, end);
    tcase_add_test(tc, warehouse_sells_each_item_once_while_the_cluster_changes);
    return test_run_suite(suite);
}
