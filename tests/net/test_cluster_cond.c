/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions in a cluster: in the hash slot of their mutex, in that of another node, and
 * when hash slots move. */
#include "clusterscene.h"

#include <stdio.h>
#include <string.h>

enum { SOON_MS = 30000 };

/* A wait of the other client. */
struct waiting {
    rlock_mutex_t mutex;
    rlock_cond_t cond;
    struct task task;
    char key[64];
    int node;
};

static void cond_of(rlock_cond_t *cond, rlock_client_t *owner, const char *name)
{
    rlock_condattr_t attr;

    OK(rlock_condattr_init(&attr));
    OK(rlock_condattr_setclient(&attr, owner));
    OK(rlock_cond_init(cond, &attr, name));
    OK(rlock_condattr_destroy(&attr));
}

static int wait_once(void *arg)
{
    struct waiting *w = arg;
    int rc = rlock_mutex_lock(&w->mutex);

    if (rc == 0)
        rc = rlock_cond_wait(&w->cond, &w->mutex);
    int end = rlock_mutex_unlock(&w->mutex);
    return rc != 0 ? rc : end;
}

static bool is_queued(void *arg)
{
    const struct waiting *w = arg;
    return test_redis_int(at_node[w->node], "ZCARD", w->key) == 1;
}

/* Begins a wait with a mutex of one node and a condition of another, or the same. */
static void begin_wait(struct waiting *w, int mutex_node, int cond_node)
{
    const char *name = cluster_name(cond_node, 1);

    w->mutex = mutex_of(other, cluster_name(mutex_node, 1));
    cond_of(&w->cond, other, name);
    w->node = cond_node;
    snprintf(w->key, sizeof(w->key), "rlock:{%s}:cond", name);
    task_start(&w->task, wait_once, w);
    ck_assert(test_wait_until(is_queued, w, SOON_MS));
}

static void ends_well(struct waiting *w)
{
    ck_assert(task_ends(&w->task, SOON_MS));
    OK(task_join(&w->task));
}

static void set_up(void)
{
    client = cluster_client("");
    other = cluster_client("");
}

/* rule: V16 */
START_TEST(signal_wakes_a_waiter_of_another_client_wherever_mutex_and_condition_are)
{
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        struct waiting w = { .node = 0 };
        rlock_cond_t cond;
        begin_wait(&w, 0, i);
        cond_of(&cond, client, cluster_name(i, 1));
        OK(rlock_cond_signal(&cond));
        ends_well(&w);
        OK(rlock_cond_destroy(&cond));
        OK(rlock_cond_destroy(&w.cond));
    }
}
END_TEST

/* rule: V2 */
START_TEST(wait_ends_when_its_hash_slot_moves)
{
    struct waiting w = { .node = 0 };
    begin_wait(&w, 0, 1);
    unsigned hash_slot = cluster_hash_slot(cluster_name(1, 1));
    cluster_begin_move(hash_slot, 1, 2);
    cluster_move_keys(hash_slot, 1, 2, NULL);
    cluster_end_move(hash_slot, 1, 2);
    ends_well(&w);
    OK(rlock_cond_destroy(&w.cond));
}
END_TEST

/* rule: V2 */
START_TEST(wait_ends_when_its_master_hands_over)
{
    struct waiting w = { .node = 0 };
    begin_wait(&w, 0, 1);
    cluster_failover(1, NULL);
    ends_well(&w);
    OK(rlock_cond_destroy(&w.cond));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cluster_cond");
    TCase *tc = cluster_tcase(suite, "conditions");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(
        tc, signal_wakes_a_waiter_of_another_client_wherever_mutex_and_condition_are);
    tcase_add_test(tc, wait_ends_when_its_hash_slot_moves);
    tcase_add_test(tc, wait_ends_when_its_master_hands_over);
    return test_run_suite(suite);
}
