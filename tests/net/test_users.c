/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each user of Redis can do to locks, and to the clients that use them. Each user in
 * the table of SECURITY.md does the worst that it can, and the result must be what the
 * table says. userscene.h describes the users and workers.
 */
#include "userscene.h"

#include <stdio.h>
#include <string.h>

enum { GUESSES = 20, TOLD_MS = 1000 };

static const char *const deed_names[USER_DEEDS] = { "who holds", "names",      "is read",
                                                    "is asked",  "second",     "ends it",
                                                    "memory",    "one command" };

/* What the table says about the i-th lock. */
static bool may(enum user_deed deed, int i)
{
    return user_row.reach[deed] == USER_YES ||
           (user_row.reach[deed] == USER_OWN && i == 1);
}

/* ---- deeds: each tries the i-th lock, and returns whether it succeeded */

static bool learns_holder(int i)
{
    user_look(i);
    if (!user_learnt[i].holder[0])
        return false;
    ck_assert_str_eq(user_learnt[i].holder, user_truth[i].holder);
    return true;
}

static bool learns_names(int i)
{
    (void)i;
    return USER_HE("SCAN", "0") || USER_HE("KEYS", "*") || USER_HE("RANDOMKEY");
}

static long long ignored_before;

static bool has_ignored_more(void *arg)
{
    return scene_stat(arg, "messages_ignored") > ignored_before;
}

static bool has_it_read(int i)
{
    char channel[64];
    user_mailbox(channel, user_truth[i].waiter);
    ignored_before = scene_stat(&user_w, "messages_ignored");
    if (!USER_HE("PUBLISH", channel, "something"))
        return false;
    ck_assert(test_wait_until(has_ignored_more, &user_w, SCENE_SOON_MS));
    return true;
}

/* Publishes messages about the id that the user has learned, or about guessed ids. The
 * ticket of a guess is right. */
static void say_all(int i, bool waiter, bool grants)
{
    char guessed[SCENE_ID_MAX];
    const char *id = waiter ? user_learnt[i].waiter : user_learnt[i].holder;
    for (int n = 0; n < (id[0] ? 1 : GUESSES); n++) {
        user_guess(guessed, i, waiter, n);
        const char *which = id[0] ? id : guessed;
        user_says(which, "lost", NULL, user_names[i]);
        user_says(which, "wanted", NULL, user_names[i]);
        if (grants || !id[0])
            user_says(which, "grant", user_truth[i].ticket, user_names[i]);
    }
}

/* Whether one of the two clients sends a request. By themselves they send at most one in
 * a third of a presence. */
static bool has_it_asked(int i)
{
    char channel[64];
    user_count_requests();
    say_all(i, false, true);
    say_all(i, true, false);
    snprintf(channel, sizeof(channel), "redisson_lock__channel:{%s}", user_names[i]);
    test_redis_try(user_he, "PUBLISH", channel, "0");
    user_is_read_by(&user_h, user_truth[i].holder);
    user_is_read_by(&user_w, user_truth[i].waiter);
    return may(USER_ASKS, i) ? test_wait_until(user_requests, NULL, SCENE_SOON_MS)
                             : !test_stays(user_no_requests, NULL, USER_STAYS_MS);
}

static bool takes_memory(int i)
{
    char key[32];
    const char *set = "return redis.call('SET', KEYS[1], ARGV[1])";
    snprintf(key, sizeof(key), "%s:more", user_names[i]);
    bool done = USER_HE("SET", key, "any") || USER_HE("EVAL", set, "1", key, "any");
    test_redis_do(scene_redis, "DEL", key);
    return done;
}

/* By a script's loop, by DEBUG, or by a command on a long value that the user has
 * written. */
static bool keeps_it_busy(int i)
{
    (void)i;
    bool done = USER_HE("EVAL", "for i = 1, 10 do end return 1", "0") ||
                USER_HE("DEBUG", "SLEEP", "0") ||
                (USER_HE("SETRANGE", "pay:more", "1000000", "x") &&
                 USER_HE("BITCOUNT", "pay:more"));
    test_redis_do(scene_redis, "DEL", "pay:more");
    return done;
}

/* w believes that it has the lock that h holds. */
static bool forges_a_grant(int i)
{
    say_all(i, true, true);
    user_is_read_by(&user_w, user_truth[i].waiter);
    bool can = user_learnt[i].waiter[0] && may(USER_READS, i);
    return worker_news(&user_w, i == 0 ? "done t ok" : "done u ok", can ? TOLD_MS : 0);
}

static bool ends_it(int i)
{
    const char *del = "return redis.call('DEL', KEYS[1])";
    test_redis_try(user_he, "PEXPIRE", user_names[i], "1");
    test_redis_try(user_he, "HDEL", user_names[i], user_truth[i].holder);
    test_redis_try(user_he, "EVAL", del, "1", user_names[i]);
    test_redis_try(user_he, "DEL", user_names[i]);
    return !user_is_held(i);
}

static rlock_client_t *other;

/* Another client takes the lock while h believes that it holds it. */
static bool is_taken_besides(int i)
{
    rlock_mutex_t m;
    scene_mutex(&m, other, user_names[i]);
    bool taken = rlock_mutex_trylock(&m) == 0;
    if (taken)
        rlock_mutex_unlock(&m);
    return taken && user_believes(i);
}

/* ---- all users */

static void compare(const char *user, enum user_deed deed, const bool done[USER_NAMES])
{
    enum user_reach reach = done[0] ? USER_YES : done[1] ? USER_OWN : USER_NO;
    ck_assert_msg(done[1] || !done[0], "%s: %s: not of his own lock", user,
                  deed_names[deed]);
    ck_assert_msg(reach == user_row.reach[deed], "%s: %s: %s; SECURITY.md says %s", user,
                  deed_names[deed], user_reaches[reach],
                  user_reaches[user_row.reach[deed]]);
}

static void do_it(const char *user, enum user_deed deed, bool (*does)(int i))
{
    bool done[USER_NAMES];
    for (int i = 0; i < USER_NAMES; i++)
        done[i] = does(i);
    compare(user, deed, done);
}

START_TEST(users_can_do_what_the_table_says)
{
    if (!test_redis_has_channel_rules("users_can_do_what_the_table_says"))
        return;
    const char *user = user_all[_i];
    bool second[USER_NAMES], ended[USER_NAMES];
    user_enter(user);
    other = scene_client(user_url, NULL);
    user_hear();
    do_it(user, USER_HOLDER, learns_holder);
    do_it(user, USER_LISTS, learns_names);
    do_it(user, USER_READS, has_it_read);
    do_it(user, USER_ASKS, has_it_asked);
    do_it(user, USER_MEMORY, takes_memory);
    do_it(user, USER_BUSY, keeps_it_busy);
    for (int i = 0; i < USER_NAMES; i++)
        ck_assert(user_is_held(i) && user_believes(i));
    for (int i = 0; i < USER_NAMES; i++) {
        second[i] = forges_a_grant(i);
        ended[i] = ends_it(i);
        second[i] |= is_taken_besides(i);
        ck_assert(ended[i] || user_believes(i));
    }
    compare(user, USER_SECOND, second);
    compare(user, USER_ENDS, ended);
    if (!ended[1])
        ck_assert_int_eq(scene_stat(&user_h, "losses"), 0);
    ck_assert_int_eq(rlock_client_close(other), 0);
}
END_TEST

START_TEST(each_row_is_a_user)
{
    ck_assert_int_eq(user_row_count(), USERS);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("users");
    TCase *nobody = scene_tcase(s, "nobody", user_open, user_close);
    tcase_add_loop_test(nobody, users_can_do_what_the_table_says, 0, 1);
    TCase *table = scene_tcase(s, "table", user_open, user_close);
    tcase_add_test(table, each_row_is_a_user);
    tcase_add_loop_test(table, users_can_do_what_the_table_says, 1, USERS);
    return test_run_suite(s);
}
