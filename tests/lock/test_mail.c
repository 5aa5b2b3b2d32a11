/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_mail,rwlock_mail */
/*
 * Unexpected messages in the mailbox: read before the reply that they are about, or sent
 * by a stranger that may publish (S1, S2, T7, T10, K6). rulescene.h says what `self`, `m`
 * and `x` are. Each test runs for every form in which a lock is requested.
 */
#include "rulescene.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    STAYS_MS = 150,
    TOLD_MS = 1000, /* much sooner than by a renewal */
    TRIES = 20000,
    TRIES_QUICK = 1500
};

/* ---- forms */

struct form {
    const char *does;
    enum rlk_script_id script;
    bool confirms; /* it confirms a lease that is shorter than requested: the server may
                      give it the lock again then */
};

#ifdef AS_RWLOCK
enum { CONFIRMS = false }; /* its answer is the whole lease again */
#else
enum { CONFIRMS = true };
#endif

#define WRITES(does_)                                                                    \
    {                                                                                    \
        .does = (does_), .script = RLK_MUTEX_ACQUIRE                                     \
    }
#define READS(does_)                                                                     \
    {                                                                                    \
        .does = (does_), .script = RLK_RWLOCK_READ                                       \
    }

static const struct form forms[] = {
    WRITES("trylock m"),
    WRITES("lock m"),
    WRITES("timedlock m 10000"),
#ifdef AS_RWLOCK
    READS("tryrdlock m"),
    READS("rdlock m"),
    READS("timedrdlock m 10000"),
#endif
    /* with leases that are not renewed, so that the lock is not retained */
    WRITES("trylock m 20000"),
    { .does = "lock m 20000", .script = RLK_MUTEX_ACQUIRE, .confirms = CONFIRMS },
#ifdef AS_RWLOCK
    READS("tryrdlock m 20000"),
    READS("rdlock m 20000"),
#endif
};
enum { FORMS = sizeof(forms) / sizeof(forms[0]) };
#ifdef AS_RWLOCK
enum { RENEWED_FORMS = 6 };
#else
enum { RENEWED_FORMS = 3 };
#endif

/* Frees the lock. x takes it in this form, and the proxy holds the answer back. Returns
 * the rule. */
static int takes_it_unanswered(const struct form *form, char id[SCENE_ID_MAX])
{
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    int rule =
        SCENE_RULE(form->script, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ok", "async t %s", form->does);
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    scene_only_holder("N", id);
    return rule;
}

static void is_answered(int rule)
{
    test_proxy_remove(scene_proxy, rule);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}

/* ---- what anybody may send */

__attribute__((format(printf, 2, 3))) static void forge(const char *id,
                                                        const char *format, ...)
{
    char text[1024], uuid[RLK_UUID_LEN + 1], channel[64];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", scene_uuid(uuid, id));
    ck_assert_int_eq(test_redis_int(scene_redis, "PUBLISH", channel, text), 1);
}

static void x_gets_to_ignore(long long count)
{
    long long before = count - 1;
    ck_assert(test_wait_until(x_has_heard_more, &before, SCENE_SOON_MS));
    ck_assert_int_eq(scene_stat(&x, "messages_ignored"), count);
}

static bool is_still_held_by(void *id)
{
    char now[SCENE_ID_MAX];
    scene_only_holder("N", now);
    return strcmp(now, id) == 0;
}

static bool was_not_hit(void *rule)
{
    return test_proxy_hits(scene_proxy, *(int *)rule) == 0;
}

/* ---- S1, S2 */

/* rule: T7 */
START_TEST(grant_for_an_id_in_flight_releases_nothing)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(5000)));
    int rule = takes_it_unanswered(&forms[_i], id);
    int releases =
        SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    forge(id, "1 grant 0 0 1 1 %s 5 N", id);
    x_reads_its_mail();
    ck_assert(test_stays(is_still_held_by, id, test_ms(STAYS_MS)));
    is_answered(rule);
    forge(id, "1 grant 0 0 1 1 %s 5 N", id); /* and once more after the answer */
    x_reads_its_mail();
    ck_assert(test_stays(is_still_held_by, id, test_ms(STAYS_MS)));
    ck_assert_uint_eq(test_proxy_hits(scene_proxy, releases), 0);
    scene_says(&x, "ok", "on t unlock m");
}
END_TEST

/* A party of the test forged_messages_give_no_thread_the_lock_of_another. */
struct trier {
    pthread_t thread;
    rlock_mutex_t m;
    long count, got, lost;
};

static atomic_int inside;
static atomic_long overlaps;
static atomic_bool over;

static void *try_again_and_again(void *arg)
{
    struct trier *t = arg;
    for (long i = 0; i < t->count; i++) {
        if (rlock_mutex_trylock(&t->m) != 0)
            continue;
        t->got++;
        if (atomic_fetch_add(&inside, 1) != 0)
            atomic_fetch_add(&overlaps, 1);
        test_pause_ms(0);
        atomic_fetch_sub(&inside, 1);
        if (rlock_mutex_unlock(&t->m) != 0)
            t->lost++;
    }
    return NULL;
}

/* Sends a grant for the present holder's id, and for the id that would be next if ids
 * were counted. */
static void *forge_again_and_again(void *arg)
{
    struct test_redis *redis = arg;
    char id[SCENE_ID_MAX], text[3 * SCENE_ID_MAX], channel[64], uuid[RLK_UUID_LEN + 1];
    while (!atomic_load(&over)) {
        const redisReply *fields = test_redis_do(redis, "HKEYS", "N");
        id[0] = '\0';
        for (size_t i = 0; i < fields->elements; i++)
            if (strchr(fields->element[i]->str, ':'))
                snprintf(id, sizeof(id), "%s", fields->element[i]->str);
        unsigned long long thread, number;
        char rest[32];
        if (sscanf(id, "%36[^:]:%llu:%llu:%31s", uuid, &thread, &number, rest) != 4)
            continue;
        snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", uuid);
        snprintf(text, sizeof(text), "1 grant 0 0 1 2 %s 5 %s:%llu:%llu:%s 5 N", id, uuid,
                 thread, number + 1, rest);
        test_redis_do(redis, "PUBLISH", channel, text);
    }
    return NULL;
}

/* rule: S1 */
START_TEST(forged_messages_give_no_thread_the_lock_of_another)
{
    struct trier triers[2];
    rlock_client_t *clients[2];
    pthread_t forger;
    struct test_redis *redis = test_redis_connect(scene_server.path);
    long count = test_count(TRIES, TRIES_QUICK);

    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    /* so that messages are read before the answer */
    SCENE_RULE(RLK_MUTEX_ACQUIRE, .on = TEST_ON_REPLY, .action = TEST_DELAY,
               .delay_ms = 1);
    atomic_store(&over, false);
    ck_assert_int_eq(pthread_create(&forger, NULL, forge_again_and_again, redis), 0);
    for (int i = 0; i < 2; i++) {
        clients[i] = scene_client(test_proxy_url(scene_proxy), NULL);
        triers[i] = (struct trier){ .count = count };
        scene_mutex(&triers[i].m, clients[i], "N");
        ck_assert_int_eq(
            pthread_create(&triers[i].thread, NULL, try_again_and_again, &triers[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(triers[i].thread, NULL);
    atomic_store(&over, true);
    pthread_join(forger, NULL);
    ck_assert_int_gt(triers[0].got + triers[1].got, count / 4);
    ck_assert_int_eq(atomic_load(&overlaps), 0);
    ck_assert_int_eq(triers[0].lost + triers[1].lost, 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(rlock_client_close(clients[i]), 0);
    test_redis_close(redis);
}
END_TEST

/* ---- unknown ids */

/* Ids that x might have, but has not: with the next number and others, another thread,
 * type, TTL or flags. */
enum { STRANGERS = 7 };

static void make_strangers(char ids[STRANGERS][SCENE_ID_MAX], const char *id)
{
    char uuid[RLK_UUID_LEN + 1], letter;
    unsigned long long thread, number, ttl;
    int n = 0;
    ck_assert_int_eq(
        sscanf(id, "%36[^:]:%llu:%llu:%c%llu", uuid, &thread, &number, &letter, &ttl), 5);
#define STRANGER(...) snprintf(ids[n++], SCENE_ID_MAX, __VA_ARGS__)
    STRANGER("%s:%llu:%llu:%c%llu", uuid, thread, number + 1, letter, ttl);
    STRANGER("%s:%llu:0:%c%llu", uuid, thread, letter, ttl);
    STRANGER("%s:%llu:18446744073709551615:%c%llu", uuid, thread, letter, ttl);
    STRANGER("%s:%llu:%llu:%c%llu", uuid, thread + 1, number, letter, ttl);
    STRANGER("%s:%llu:%llu:%c%llu", uuid, thread, number, letter - 'a' + 'A', ttl);
    STRANGER("%s:%llu:%llu:%c%llu", uuid, thread, number, letter, ttl + 1);
    STRANGER("%s:%llu:%llu:%c%llubz", uuid, thread, number, letter, ttl);
#undef STRANGER
    ck_assert_int_eq(n, STRANGERS);
}

/* Sends messages about the id. Returns how many. */
static int forge_about(const char *stranger, const char *ticket)
{
    static const char *const names[] = { "N", "O" };
    for (int i = 0; i < 2; i++) {
        forge(stranger, "1 grant 0 0 1 1 %s %s %s", stranger, ticket, names[i]);
        forge(stranger, "1 lost %s %s", stranger, names[i]);
        forge(stranger, "1 wanted %s %s", stranger, names[i]);
    }
    return 6;
}

/* _i: x is idle, waits or holds. Its own times are so long that it sends nothing by
 * itself. */
/* rule: T7 */
START_TEST(messages_about_unknown_ids_have_no_effect)
{
    char id[SCENE_ID_MAX], ticket[32] = "5", ids[STRANGERS][SCENE_ID_MAX];
    start_x(SCENE_TIMES(.presence = 30000, .lease = 300000));
    if (_i == 1) {
        scene_worker_waits(&x, "N", 1);
        ck_assert(scene_waiter("N", 0, id, ticket));
    } else {
        ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
        scene_says(&x, "ok", "on t lock m");
        scene_only_holder("N", id);
    }
    for (int pairs = 0; _i == 0 && pairs < 3; pairs++) {
        if (pairs > 0) /* x still knows the id that it left last */
            scene_says(&x, "ok", "on t lock m");
        scene_says(&x, "ok", "on t unlock m");
    }
    make_strangers(ids, id);
    x_reads_its_mail();
    long long keys = test_redis_int(scene_redis, "DBSIZE");
    long long ignored = scene_stat(&x, "messages_ignored");
    int any = TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    for (int i = 0; i < STRANGERS; i++)
        ignored += forge_about(ids[i], ticket);
    x_gets_to_ignore(ignored);
    ck_assert(test_stays(was_not_hit, &any, test_ms(STAYS_MS)));
    ck_assert_int_eq(test_redis_int(scene_redis, "DBSIZE"), keys);
    ck_assert_int_eq(scene_stat(&x, "grants_orphaned"), 0);
    if (_i == 2) {
        ck_assert(is_still_held_by(id));
        scene_says(&x, "ok", "on t unlock m");
    }
    if (_i != 1)
        return;
    ck_assert(x_is_not_told(NULL)); /* though the ticket was right */
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
}
END_TEST

/* ---- L2: what a server that lost data grants again */

static void x_has_it_and_leaves(void)
{
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
}

/* x's times are so long that the other waiters would wait for 30 s. */
/* rule: L2 */
START_TEST(ticket_of_a_past_turn_delays_no_waiter)
{
    char id[SCENE_ID_MAX], ticket[32], uuid[RLK_UUID_LEN + 1], key[SCENE_KEY_MAX],
        end[32];
    start_x(SCENE_TIMES(.presence = 30000, .lease = 300000));
    scene_worker_waits(&x, "N", 1);
    ck_assert(scene_waiter("N", 0, id, ticket));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_worker_got(&x, SCENE_SOON_MS));
    scene_says(&x, "ok", "on t unlock m");
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    x_has_it_and_leaves(); /* so that another id is the last one that x left */
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
    snprintf(end, sizeof(end), "%lld", scene_now_ms() + 30000);
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "queue"), ticket, id);
    test_redis_do(scene_redis, "ZADD", scene_key(key, "N", "present"), end,
                  scene_uuid(uuid, id));
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(scene_wait_free("N", TOLD_MS));
    ck_assert_int_eq(scene_stat(&x, "grants_orphaned"), 1);
    ck_assert(!test_redis_exists(scene_redis, scene_key(key, "N", "cancelled")));
    /* x has read the id: a message about it makes x send nothing */
    x_reads_its_mail();
    int any = TEST_RULE(scene_proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    long long ignored = scene_stat(&x, "messages_ignored");
    forge(id, "1 grant 0 0 1 1 %s %s N", id, ticket);
    x_gets_to_ignore(ignored + 1);
    ck_assert(test_stays(was_not_hit, &any, test_ms(STAYS_MS)));
    ck_assert_int_eq(rlock_mutex_lock(&m), 0);
}
END_TEST

/* ---- T10: a loss that is read before the answer */

static void x_is_told_of_its_loss(void)
{
    ck_assert(worker_news(&x, "event LOST N", TOLD_MS));
    scene_says(&x, "ok LOST", "on t state m");
    scene_says(&x, "ESTALE", "on t unlock m");
}

/* rule: T10 */
START_TEST(loss_read_before_the_reply_is_reported_at_once)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(5000)));
    int rule = takes_it_unanswered(&forms[_i], id);
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    x_reads_its_mail();
    is_answered(rule);
    x_is_told_of_its_loss();
}
END_TEST

/* rule: T10 */
START_TEST(loss_is_reported_at_once_when_the_first_reply_was_lost)
{
    char id[SCENE_ID_MAX], again[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(5000)));
    SCENE_RULE(forms[_i].script, .on = TEST_ON_REPLY, .action = TEST_CUT, .count = 1);
    int rule = takes_it_unanswered(&forms[_i], id);
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    x_reads_its_mail();
    is_answered(rule);
    if (forms[_i].confirms) {
        scene_only_holder("N", again);
        ck_assert_str_eq(again, id);
        scene_says(&x, "ok", "on t unlock m");
        return;
    }
    x_is_told_of_its_loss();
}
END_TEST

/* rule: T10 */
START_TEST(loss_is_reported_at_once_when_a_poll_finds_the_grant)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.presence = test_ms(3000), .command = test_ms(5000)));
    TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_DROP,
              .contains = "1 grant");
    scene_worker_waits(&x, "N", 1);
    int poll = SCENE_RULE(RLK_MUTEX_REFRESH, .on = TEST_ON_REPLY, .action = TEST_HOLD,
                          .count = 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, poll, 1, SCENE_SOON_MS));
    scene_only_holder("N", id);
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    x_reads_its_mail();
    is_answered(poll);
    x_is_told_of_its_loss();
}
END_TEST

/* The grant and the loss arrive one directly behind the other. */
/* rule: T10 */
START_TEST(loss_is_reported_at_once_when_it_comes_with_the_grant)
{
    start_x(NULL);
    int mail = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_HOLD,
                         .contains = "1 grant", .count = 1);
    scene_worker_waits(&x, "N", 1);
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    ck_assert(test_proxy_wait_hits(scene_proxy, mail, 1, SCENE_SOON_MS));
    ck_assert_int_eq(rlock_force_unlock(self, "N"), 0);
    is_answered(mail);
    x_is_told_of_its_loss();
}
END_TEST

#ifdef AS_RWLOCK
/* x's threads t and b read by one hold. t asks for a lease of its own, and the proxy
 * holds the answer back. */
static int asks_for_its_own(char id[SCENE_ID_MAX])
{
    char first[SCENE_ID_MAX], end[32];
    ck_assert_int_eq(rlock_mutex_unlock(&m), 0);
    scene_says(&x, "ok", "on b rdlock m");
    scene_only_holder("N", first);
    scene_says(&x, "ok", "on t rdlock m");
    int rule =
        SCENE_RULE(RLK_RWLOCK_READ, .on = TEST_ON_REPLY, .action = TEST_HOLD, .count = 1);
    scene_says(&x, "ok", "async t extend m 20000");
    ck_assert(test_proxy_wait_hits(scene_proxy, rule, 1, SCENE_SOON_MS));
    ck_assert_int_eq(scene_count("N", "readers"), 2);
    ck_assert(scene_member("N", "readers", 0, id, end));
    if (strcmp(id, first) == 0)
        ck_assert(scene_member("N", "readers", 1, id, end));
    return rule;
}

/* rule: T7 */
START_TEST(grant_for_a_reader_with_its_own_lease_releases_nothing)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(5000)));
    int rule = asks_for_its_own(id);
    int releases =
        SCENE_RULE(RLK_MUTEX_RELEASE, .on = TEST_ON_REQUEST, .action = TEST_WATCH);
    forge(id, "1 grant 0 0 1 1 %s 5 N", id);
    x_reads_its_mail();
    ck_assert(test_stays(was_not_hit, &releases, test_ms(STAYS_MS)));
    is_answered(rule);
    ck_assert_int_gt(scene_reader_left("N", id), 0);
    scene_says(&x, "ok", "on t unlock m");
    scene_says(&x, "ok", "on b unlock m");
}
END_TEST

/* The message about the shared hold may have arrived, or not. */
/* rule: T10 */
START_TEST(loss_is_reported_at_once_to_a_reader_with_its_own_lease)
{
    char id[SCENE_ID_MAX];
    start_x(SCENE_TIMES(.command = test_ms(5000)));
    int rule = asks_for_its_own(id);
    test_redis_do(scene_redis, "ZREM", "rlock:{N}:readers", id);
    forge(id, "1 lost %s N", id);
    x_reads_its_mail();
    is_answered(rule);
    x_is_told_of_its_loss();
    scene_says(&x, "ok", "on b unlock m");
}
END_TEST
#endif

/* ---- K6: a recall that is read before the answer */

#ifndef AS_FAIR /* which is not retained */
/* rule: K6 */
START_TEST(hold_recalled_before_the_reply_is_not_retained)
{
    char id[SCENE_ID_MAX], url[256], ids[STRANGERS][SCENE_ID_MAX];
    snprintf(url, sizeof(url), "%s?retain=60000&presence=30000",
             test_proxy_url(scene_proxy));
    scene_worker(&x, url, SCENE_TIMES(.command = test_ms(5000)), "N", "");
    int rule = takes_it_unanswered(&forms[_i], id);
    int wanted = TEST_RULE(scene_proxy, .on = TEST_ON_MESSAGE, .action = TEST_WATCH,
                           .contains = "1 wanted");
    ck_assert_int_eq(rlock_mutex_trylock(&m), EBUSY);
    ck_assert(test_proxy_wait_hits(scene_proxy, wanted, 1, SCENE_SOON_MS));
    make_strangers(ids, id);
    for (int i = 0; i < STRANGERS; i++)
        forge(ids[i], "1 wanted %s N", ids[i]); /* these must not displace the recall */
    x_reads_its_mail();
    is_answered(rule);
    scene_says(&x, "ok", "on t unlock m");
    ck_assert(scene_wait_free("N", TOLD_MS));
}
END_TEST
#endif

static Suite *make_suite(void)
{
    Suite *s = suite_create("mail");

    TCase *forged = scene_tcase(s, "forged", open_scene_and_hold, close_scene);
    tcase_add_loop_test(forged, grant_for_an_id_in_flight_releases_nothing, 0, FORMS);
    tcase_add_loop_test(forged, messages_about_unknown_ids_have_no_effect, 0, 3);
    tcase_add_test(forged, forged_messages_give_no_thread_the_lock_of_another);
    tcase_add_test(forged, ticket_of_a_past_turn_delays_no_waiter);
    TCase *early = scene_tcase(s, "early", open_scene_and_hold, close_scene);
    tcase_add_loop_test(early, loss_read_before_the_reply_is_reported_at_once, 0, FORMS);
    tcase_add_loop_test(early, loss_is_reported_at_once_when_the_first_reply_was_lost, 0,
                        FORMS);
    tcase_add_test(early, loss_is_reported_at_once_when_a_poll_finds_the_grant);
    tcase_add_test(early, loss_is_reported_at_once_when_it_comes_with_the_grant);
#ifdef AS_RWLOCK
    tcase_add_test(forged, grant_for_a_reader_with_its_own_lease_releases_nothing);
    tcase_add_test(early, loss_is_reported_at_once_to_a_reader_with_its_own_lease);
#endif
#ifndef AS_FAIR
    tcase_add_loop_test(early, hold_recalled_before_the_reply_is_not_retained, 0,
                        RENEWED_FORMS);
#endif
    return s;
}

int main(void)
{
    return test_run_suite(make_suite());
}
