/* SPDX-License-Identifier: Apache-2.0 */
/* Polls of the read-write lock: how many a wait costs when no connection hears the
 * grants. */
#include "scene.h"

#include <pthread.h>
#include <stdio.h>

enum { PRESENCE_MS = 1500, WAIT_MS = 3000, OTHERS = 70 };

#define UUID_D "dddddddd-0000-4000-8000-00000000000d"

/* A thread that waits to write, of a client whose mailbox the server refuses. */
static struct {
    rlock_rwlock_t lock;
    int rc;
} deaf;

static void *run_deaf(void *arg)
{
    struct timespec end;
    (void)arg;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += test_ms(WAIT_MS) / 1000;
    deaf.rc = rlock_rwlock_clockwrlock(&deaf.lock, CLOCK_MONOTONIC, &end);
    return NULL;
}

/* Queues more writers than one script looks at behind the waiting writer, and a reader.
 * No connection listens to their mailbox. */
static void put_others(void)
{
    char queue[SCENE_KEY_MAX], rqueue[SCENE_KEY_MAX], present[SCENE_KEY_MAX];
    char count[16];
    snprintf(count, sizeof(count), "%d", OTHERS);
    test_redis_do(scene_redis, "EVAL",
                  "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2]\n"
                  "for i = 1, ARGV[2] do redis.call('ZADD', KEYS[1], "
                  "string.format('%.0f', now + i),"
                  " ARGV[1] .. ':1:' .. i .. ':w3000') end\n"
                  "redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[1] .. "
                  "':2:1:r3000')\n"
                  "redis.call('ZADD', KEYS[3], string.format('%.0f', now / 1000 + "
                  "600000), ARGV[1])",
                  "3", scene_key(queue, "N", "queue"), scene_key(rqueue, "N", "rqueue"),
                  scene_key(present, "N", "present"), UUID_D, count);
}

/* rule: T11 */
START_TEST(unheard_writer_does_not_poll_without_end)
{
    if (!test_redis_has_channel_rules("unheard_writer_does_not_poll_without_end"))
        return;
    char url[128];
    rlock_stats_t stats;
    rlock_rwlock_t reader;
    pthread_t thread;

    test_redis_do(scene_redis, "ACL", "SETUSER", "deaf", "on", ">deaf", "~*", "+@all",
                  "resetchannels", "&redisson*");
    snprintf(url, sizeof(url), "redis://deaf:deaf@127.0.0.1:%u?presence=%ld",
             scene_server.port, test_ms(PRESENCE_MS));
    rlock_client_t *client = scene_open_client(url, SCENE_TIMES(0));
    rlock_client_t *readers = scene_client(scene_server.url, SCENE_TIMES(0));
    scene_rwlock(&reader, readers, "N");
    scene_rwlock(&deaf.lock, client, "N");
    ck_assert_int_eq(rlock_rwlock_rdlock(&reader), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, run_deaf, NULL), 0);
    ck_assert(scene_wait_queued("N", 1, SCENE_SOON_MS));
    put_others();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(deaf.rc, ETIMEDOUT);
    ck_assert_int_eq(rlock_client_getstats(client, &stats), 0);
    /* one for each third of a presence, and some more for a hand-over that continues */
    ck_assert_uint_ge(stats.refreshes, 3);
    ck_assert_uint_le(stats.refreshes, 5 * WAIT_MS / (PRESENCE_MS / 3));
    ck_assert_int_eq(rlock_rwlock_unlock(&reader), 0);
    ck_assert_int_eq(rlock_client_close(readers), 0);
    ck_assert_int_eq(rlock_client_close(client), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rwlock, polls");
    TCase *tc = scene_tcase(suite, "T11", scene_open, scene_close);
    tcase_add_test(tc, unheard_writer_does_not_poll_without_end);
    return test_run_suite(suite);
}
