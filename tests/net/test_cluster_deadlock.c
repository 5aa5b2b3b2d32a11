/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlocks in a cluster: two clients, and locks of the same node or of two nodes. */
#include "clusterscene.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { SOON_MS = 30000 };

/* A thread that takes one lock and wants another one. */
struct party {
    rlock_mutex_t first, second;
    struct task task;
    atomic_int *inside; /* parties that have their first lock */
    char message[128];  /* after EDEADLK */
};

static rlock_mutex_t failing(rlock_client_t *owner, const char *name)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, owner));
    OK(rlock_mutexattr_setdeadlock(&attr, RLOCK_DEADLOCK_FAIL));
    OK(rlock_mutex_init(&mutex, &attr, name));
    OK(rlock_mutexattr_destroy(&attr));
    return mutex;
}

static int take_both(void *arg)
{
    struct party *party = arg;
    int rc = rlock_mutex_lock(&party->first);

    atomic_fetch_add(party->inside, 1);
    while (atomic_load(party->inside) < 2)
        test_pause_ms(1);
    if (rc == 0 && (rc = rlock_mutex_lock(&party->second)) == 0)
        rlock_mutex_unlock(&party->second);
    else if (rc == EDEADLK)
        snprintf(party->message, sizeof(party->message), "%s", rlock_errmsg());
    rlock_mutex_unlock(&party->first);
    return rc;
}

static void set_up(void)
{
    client = cluster_client("?deadlockms=200");
    other = cluster_client("?deadlockms=200");
}

/* rule: E13 */
START_TEST(deadlock_over_nodes_has_one_victim)
{
    const char *a = cluster_name(0, 1), *b = cluster_name(_i, 2);
    atomic_int inside = 0;
    struct party parties[2] = {
        { .first = failing(client, a), .second = failing(client, b), .inside = &inside },
        { .first = failing(other, b), .second = failing(other, a), .inside = &inside },
    };
    int victims = 0;

    for (int i = 0; i < 2; i++)
        task_start(&parties[i].task, take_both, &parties[i]);
    for (int i = 0; i < 2; i++) {
        ck_assert(task_ends(&parties[i].task, SOON_MS));
        int rc = task_join(&parties[i].task);
        ck_assert_msg(rc == 0 || rc == EDEADLK, "%s", rlock_strerror(rc));
        victims += rc == EDEADLK;
        if (rc == EDEADLK)
            ck_assert_ptr_nonnull(strstr(parties[i].message, "is held by"));
    }
    ck_assert_int_eq(victims, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_deadlock");
    TCase *tc = cluster_tcase(suite, "deadlocks");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_loop_test(tc, deadlock_over_nodes_has_one_victim, 0, CLUSTER_MASTERS);
    return test_run_suite(suite);
}
