/* SPDX-License-Identifier: Apache-2.0 */
/* program: as=fair_robust_scripts */
/*
 * The scripts for robust locks, sent by hand: what each leaves in the mark and in the
 * field `died`, and what all scripts do with a lock that is not recoverable.
 */
#include "byhand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MARK_S = 604800, OLD_S = 1000, NEAR_S = 100, DIED = 8, UNHEARD = 16 };

#define R UUID_A ":1:7:" LETTER "3000b"
#define R2 UUID_A ":1:8:" LETTER "3000b"
#define R_B UUID_B ":1:7:" LETTER "3000b"
#define R_C UUID_C ":1:7:" LETTER "3000b"
#define R_FENCED UUID_A ":1:9:" FENCED_LETTER "3000b"
#define SPOILT "not recoverable"
#define MARK(id) id "#1"
#define TOLD(id) id "#2" /* the id learned of a death when it took the lock */

static const char *mark(void)
{
    static char text[128];
    const char *found = test_redis_str(redis, "GET", DIRTY);
    snprintf(text, sizeof(text), "%s", found ? found : "");
    return text;
}

static void put_mark(const char *text)
{
    test_redis_do(redis, "SET", DIRTY, text, "EX", "1000");
}

static void assert_new_mark(const char *text)
{
    ck_assert_str_eq(mark(), text);
    ck_assert_int_gt(test_redis_int(redis, "TTL", DIRTY), MARK_S - NEAR_S);
    ck_assert_int_le(test_redis_int(redis, "TTL", DIRTY), MARK_S);
}

static struct answer release_as(const char *id, const char *how, const char *late)
{
#ifdef AS_FAIR
    return RUN(RLK_FAIR_RELEASE, id, "0", CHANNEL, how, late);
#else
    return RUN(RLK_MUTEX_RELEASE, id, "0", CHANNEL, how, late);
#endif
}

/* With the mark's key alone (P20). */
static struct answer unmark_as(const char *id, const char *how)
{
    return RUN(RLK_LOCK_UNMARK, id, how);
}

/* Removes all keys; scripts stay loaded. */
static void clear(void)
{
    test_redis_do(redis, "FLUSHALL");
}

/* ---- taking the lock */

START_TEST(acquire_marks_the_lock_for_7_days)
{
    struct answer a = acquire(R); /* the script's shortcut */
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags, 0);
    assert_new_mark(MARK(R));
    ck_assert_str_eq(field("died"), "");
    clear();
    put_waiter(RQUEUE, READ_B, 5); /* the script's general path */
    ck_assert_int_eq(acquire(R).flags, 2);
    assert_new_mark(MARK(R));
    clear();
    ck_assert_int_eq(acquire_fenced(R_FENCED).flags, 0);
    assert_new_mark(MARK(R_FENCED));
    assert_ttls();
}
END_TEST

START_TEST(flags_around_it_do_not_matter)
{
    static const struct {
        const char *id;
        bool robust;
    } ids[] = { { UUID_A ":1:1:" LETTER "3000kb", true },
                { UUID_A ":1:1:" LETTER "3000bk", true },
                { UUID_A ":1:1:" LETTER "3000k", false },
                { UUID_A ":1:1:" LETTER "3000", false } };
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        clear();
        SAYS(acquire(ids[i].id), "held");
        ck_assert_int_eq(test_redis_exists(redis, DIRTY), ids[i].robust);
        SAYS(renew(ids[i].id, "60000"), "held");
        ck_assert_int_eq(test_redis_exists(redis, DIRTY), ids[i].robust);
    }
}
END_TEST

START_TEST(acquire_over_a_mark_reports_the_death_and_repeats_the_report)
{
    char before[64];
    for (int fenced = 0; fenced < 2; fenced++) {
        const char *id = fenced ? R_FENCED : R;
        clear();
        put_mark(MARK(R_B));
        struct answer a = fenced ? acquire_fenced(id) : acquire(id);
        ck_assert_str_eq(WHAT(a), "held");
        ck_assert_int_eq(a.flags, DIED);
        ck_assert_str_eq(field("died"), "1");
        assert_new_mark(fenced ? TOLD(R_FENCED) : TOLD(R));
        snprintf(before, sizeof(before), "%s", digest());
        a = fenced ? acquire_fenced(id) : acquire(id);
        ck_assert_str_eq(WHAT(a), "held");
        ck_assert_int_eq(a.flags, DIED);
        /* the death is not reported to R_C */
        ck_assert_int_eq(try_acquire(R_C).flags, 0);
        ck_assert_str_eq(digest(), before);
    }
}
END_TEST

START_TEST(waiter_that_acquires_out_of_turn_learns_of_the_death)
{
    SAYS(acquire(R_B), "held");
    SAYS(acquire(R), "queued");
    expire();
    struct answer a = acquire(R); /* a fair lock is taken by the hand-over */
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags, DIED);
    ck_assert_str_eq(queue_text(), "");
    assert_new_mark(TOLD(R));
}
END_TEST

/* rule: P20 */
START_TEST(mark_ends_with_its_own_key_alone)
{
    SAYS(unmark_as(R, "clean"), "notmine");
    ck_assert_str_eq(mark(), "");
    SAYS(acquire(R), "held");
    SAYS(unmark_as(R2, "clean"), "notmine");
    SAYS(unmark_as(R_B, "spoilt"), "notmine");
    assert_new_mark(MARK(R));
    SAYS(unmark_as(R, "clean"), "released");
    ck_assert_str_eq(mark(), "");
    ck_assert(is_held_by(R));
    put_mark(TOLD(R));
    SAYS(unmark_as(R, "spoilt"), "released");
    assert_new_mark(SPOILT);
    SAYS(unmark_as(R, "clean"), "notmine");
    assert_new_mark(SPOILT);
}
END_TEST

/* The mark of a grant that has lapsed, or of a hold that has: nobody was inside. */
START_TEST(own_mark_is_no_death)
{
    for (int died = 0; died < 2; died++) {
        clear();
        SAYS(acquire(R_B), "held");
        SAYS(acquire(R), "queued");
        if (died)
            expire();
        else
            SAYS(release_as(R_B, "clean", "0"), "released");
        SAYS(refresh(R), "held");
        for (int again = 0; again < 2; again++) {
            expire();
            struct answer a = acquire(R);
            ck_assert_str_eq(WHAT(a), "held");
            ck_assert_int_eq(a.flags, died ? DIED : 0);
            assert_new_mark(died ? TOLD(R) : MARK(R));
        }
    }
}
END_TEST

START_TEST(holder_that_is_not_robust_does_not_change_the_mark)
{
    put_mark(MARK(R_B));
    ck_assert_int_eq(acquire(A).flags, 0);
    ck_assert_str_eq(field("died"), "");
    SAYS(renew(A, "60000"), "held");
    SAYS(release(A), "released");
    SAYS(acquire_fenced(FENCED_A), "held");
    SAYS(release(FENCED_A), "released");
    ck_assert_str_eq(mark(), MARK(R_B));
    ck_assert_int_le(test_redis_int(redis, "TTL", DIRTY), OLD_S);
    ck_assert_int_eq(acquire(R).flags, DIED);
}
END_TEST

START_TEST(grant_reports_the_death_by_message_and_marks_the_lock_again)
{
    struct test_redis *b = listener(UUID_B);
    char told[256];
    SAYS(acquire(R), "held");
    struct answer queued = acquire(R_B);
    SAYS(release_as(R, "died", "0"), "released");
    snprintf(told, sizeof(told), "1 grant 8 0 1 1 %s %lld n", R_B, queued.fate[0].ticket);
    ck_assert_str_eq(message(b), told);
    ck_assert_str_eq(field("died"), "1");
    assert_new_mark(TOLD(R_B));
    struct answer a = refresh(R_B); /* the message was lost */
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags, DIED);
    SAYS(acquire(R_C), "queued");
    a = cancel(R_B);
    ck_assert_str_eq(WHAT(a), "yours");
    ck_assert_int_eq(a.flags, DIED + 1);
    test_redis_close(b);
}
END_TEST

START_TEST(grant_after_a_clean_release_tells_nothing)
{
    struct test_redis *b = listener(UUID_B);
    char told[256];
    SAYS(acquire(R), "held");
    struct answer queued = acquire(R_B);
    SAYS(release_as(R, "clean", "0"), "released");
    snprintf(told, sizeof(told), "1 grant 0 0 1 1 %s %lld n", R_B, queued.fate[0].ticket);
    ck_assert_str_eq(message(b), told);
    ck_assert_str_eq(field("died"), "");
    assert_new_mark(MARK(R_B));
    test_redis_close(b);
}
END_TEST

START_TEST(refresh_that_picks_its_own_waiter_tells_it)
{
    SAYS(acquire(R_B), "held");
    SAYS(acquire(R), "queued");
    expire();
    struct answer a = refresh(R);
    ck_assert_str_eq(WHAT(a), "held");
    ck_assert_int_eq(a.flags, DIED + UNHEARD);
    assert_new_mark(TOLD(R));
}
END_TEST

START_TEST(grant_by_the_read_write_locks_scripts_tells_it_too)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(R), "held");
    SAYS(acquire(R_B), "queued");
    expire();
    RUN(RLK_RWLOCK_REFRESH, UUID_C, "3000", prefer, "0", "0", "");
    ck_assert_str_eq(field(R_B), "1");
    ck_assert_str_eq(field("died"), "1");
    ck_assert_int_eq(strncmp(message(b), "1 grant 8 ", 10), 0);
    assert_new_mark(TOLD(R_B));
    test_redis_close(b);
}
END_TEST

/* Nobody hears the grant, which only the PUBLISH shows. */
START_TEST(grant_that_is_undone_leaves_the_mark_that_there_was)
{
    static const char *const how[] = { "died", "clean", "unused" };
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        clear();
        SAYS(acquire(R), "held");
        put_waiter(QUEUE, R_B, 5);
        put_waiter(QUEUE, A2, 6);
        put_present(UUID_B);
        put_present(UUID_A);
        SAYS(release_as(R, how[i], "0"), "released");
        ck_assert(!test_redis_exists(redis, "n"));
        ck_assert_str_eq(queue_text(), R_B " 5 " A2 " 6");
        ck_assert_str_eq(mark(), i == 0 ? MARK(R) : "");
        if (i == 0)
            assert_new_mark(MARK(R));
        assert_ttls();
    }
}
END_TEST

/* ---- releasing the lock */

/* What becomes of the mark of R. R may have learned of a death when it took the lock
 * (told), its hold may have run out (not mine), and it may say so late. */
static const struct release_case {
    const char *how;
    bool told, mine, late;
    const char *after;
} releases[] = {
    { "clean", false, true, false, "" },
    { "clean", true, true, false, "" },
    { "clean", false, true, true, "" },
    { "clean", false, false, false, MARK(R) }, /* its caller gets ESTALE */
    { "clean", false, false, true, "" },       /* its caller got 0 */
    { "spoilt", true, true, false, SPOILT },
    { "spoilt", true, true, true, SPOILT },
    { "spoilt", true, false, false, TOLD(R) },
    { "spoilt", true, false, true, SPOILT },
    { "died", false, true, false, MARK(R) },
    { "died", true, true, false, TOLD(R) },
    { "died", false, false, true, MARK(R) },
    { "unused", false, true, false, "" },
    { "unused", true, true, false, TOLD(R) },
    { "unused", false, true, true, "" },
    { "unused", true, true, true, TOLD(R) },
    { "unused", false, false, false,
      MARK(R) }, /* nobody knows any more what the id learned */
    { "unused", true, false, true, TOLD(R) },
};

START_TEST(release_leaves_the_mark_that_it_is_to)
{
    const struct release_case *c = &releases[_i];
    if (c->told)
        put_mark(MARK(R_B));
    SAYS(acquire(R), "held");
    if (!c->mine)
        expire();
    SAYS(release_as(R, c->how, c->late ? "1" : "0"), c->mine ? "released" : "notmine");
    ck_assert_str_eq(mark(), c->after);
    ck_assert(!test_redis_exists(redis, "n"));
    assert_ttls();
    /* a repetition, which is late, changes nothing of what the first request did */
    if (c->mine)
        SAYS(release_as(R, c->how, "1"), "notmine");
    ck_assert_str_eq(mark(), c->after);
}
END_TEST

START_TEST(release_touches_no_mark_of_another_id)
{
    static const char *const how[] = { "clean", "spoilt", "died", "unused" };
    char before[64];
    put_mark(MARK(R_B));
    SAYS(acquire(R2), "held");
    snprintf(before, sizeof(before), "%s", digest());
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        SAYS(release_as(R, how[i], "0"), "notmine");
        SAYS(release_as(R, how[i], "1"), "notmine");
        ck_assert_str_eq(digest(), before);
    }
    clear();
    put_mark(SPOILT);
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        SAYS(release_as(R, how[i], "1"), "notmine");
        ck_assert_str_eq(mark(), SPOILT);
    }
}
END_TEST

START_TEST(release_that_says_nothing_leaves_the_mark)
{
    SAYS(acquire(R), "held");
    SAYS(release(R), "released");
    ck_assert_str_eq(mark(), MARK(R));
}
END_TEST

START_TEST(renewal_prolongs_the_mark_and_restores_a_lost_one)
{
    SAYS(acquire(R), "held");
    put_mark(MARK(R));
    SAYS(renew(R, "60000"), "held");
    assert_new_mark(MARK(R));
    test_redis_do(redis, "DEL", DIRTY);
    SAYS(renew(R, "10"), "held");
    assert_new_mark(MARK(R));
    test_redis_do(redis, "DEL", DIRTY);
    SAYS(renew(R_B, "60000"), "gone");
    expire();
    SAYS(renew(R, "60000"), "gone");
    ck_assert_str_eq(mark(), "");
}
END_TEST

/* ---- not recoverable */

static void assert_unrecoverable(const char *id)
{
    SAYS(acquire(id), "unrecoverable");
    SAYS(try_acquire(id), "unrecoverable");
    SAYS(acquire_fenced(id), "unrecoverable");
    SAYS(refresh(id), "unrecoverable");
}

START_TEST(not_recoverable_lock_is_neither_taken_queued_for_nor_granted)
{
    static const char *const ids[] = { R,
                                       A,
                                       FENCED_A,
                                       R_FENCED,
                                       WRITE_A,
                                       READ_A,
                                       UUID_A ":1:1:m3000",
                                       FAIR_A,
                                       UUID_A ":1:7:f3000b" };
    struct answer a;
    char before[64];
    put_mark(SPOILT);
    snprintf(before, sizeof(before), "%s", digest());
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        assert_unrecoverable(ids[i]);
    ck_assert_str_eq(digest(), before);
    /* held by a program that does not know the marks */
    test_redis_do(redis, "HSET", "n", "7c9a:52", "1");
    test_redis_do(redis, "PEXPIRE", "n", "20000");
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
        assert_unrecoverable(ids[i]);
    expire();
    ck_assert_str_eq(digest(), before);
    a = acquire_until(R, "1", "0");
    ck_assert_str_eq(WHAT(a), "late");
    SAYS(cancel(R), "removed");
    SAYS(acquire(R), "refused");
    assert_new_mark(SPOILT); /* each request prolongs it */
}
END_TEST

/* Waiters may be queued when the lock becomes not recoverable. */
START_TEST(no_script_hands_over_what_is_not_recoverable)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(acquire(R), "held");
    SAYS(acquire(R_B), "queued");
    long long ticket = refresh(R_B).fate[0].ticket;
    put_mark(SPOILT);
    SAYS(refresh(R_B), "unrecoverable");
    SAYS(refresh(R), "held");
    expire();
    ck_assert_int_eq(refresh_after("0").left, -2);
    SAYS(release_as(R2, "died", "0"), "notmine");
    SAYS(cancel(R_C), "removed");
    SAYS(refresh(R_B), "unrecoverable");
    ck_assert_int_eq(test_redis_int(redis, "ZSCORE", QUEUE, R_B), ticket);
    ck_assert(!test_redis_exists(redis, "n"));
    ck_assert(no_message(b));
    test_redis_close(b);
    /* W13 counts only waiters that listen */
    RUN(RLK_RWLOCK_REFRESH, UUID_C, "3000", prefer, "0", "0", "");
    SAYS(cancel(READ_C), "removed");
    SAYS(release(READ_C), "notmine");
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(poll_of_the_read_write_lock_names_all_waiters)
{
    SAYS(acquire(R), "held");
    SAYS(acquire(WRITE_A), "queued");
    SAYS(acquire(READ_A), "queued");
    SAYS(release_as(R, "died", "0"), "released");
    put_mark(SPOILT);
    struct answer a = RUN(RLK_RWLOCK_REFRESH, UUID_A, "3000", prefer, "0", "0",
                          "1:4:w3000 1:1:r3000 1:9:w3000 ");
    ck_assert_uint_eq(a.count, 3);
    for (size_t i = 0; i < a.count; i++)
        ck_assert_str_eq(a.fate[i].what, "unrecoverable");
}
END_TEST

START_TEST(waiters_are_notified_once_for_each_client_and_type)
{
    struct test_redis *b = listener(UUID_B), *c = listener(UUID_C);
    put_mark(MARK(R_C));
    SAYS(acquire(R), "held");
    put_waiter(QUEUE, R_B, 5);
    put_waiter(QUEUE, B, 6);
    put_waiter(QUEUE, WRITE_B, 7);
    put_waiter(QUEUE, C, 8);
    put_waiter(QUEUE, "garbage", 9);
    put_waiter(RQUEUE, READ_B, 5);
    put_waiter(RQUEUE, "~", 5);
    SAYS(release_as(R, "spoilt", "0"), "released");
    ck_assert_str_eq(message(b), "1 lost " R_B " n");
    ck_assert_str_eq(message(b), "1 lost " WRITE_B " n");
    ck_assert_str_eq(message(b), "1 lost " READ_B " n");
    ck_assert_str_eq(message(c), "1 lost " C " n");
    SAYS(release_as(R, "spoilt", "1"), "notmine");
    ck_assert(no_message(b));
    ck_assert(no_message(c));
    assert_new_mark(SPOILT);
    test_redis_close(b);
    test_redis_close(c);
}
END_TEST

/* ---- force */

START_TEST(force_clears_the_mark_of_a_free_lock_and_hands_it_over)
{
    struct test_redis *b = listener(UUID_B);
    SAYS(force("", ""), "gone");
    put_waiter(QUEUE, R_B, 5);
    put_present(UUID_B);
    put_mark(_i ? SPOILT : MARK(R));
    SAYS(force("", ""), "released");
    ck_assert_str_eq(field(R_B), "1");
    ck_assert_str_eq(field("died"), "");
    ck_assert_str_eq(mark(), MARK(R_B));
    ck_assert_int_eq(strncmp(message(b), "1 grant 0 ", 10), 0);
    SAYS(force("", ""), "gone"); /* the next holder keeps its mark */
    ck_assert_str_eq(mark(), MARK(R_B));
    test_redis_close(b);
}
END_TEST

START_TEST(force_of_a_holder_clears_its_mark_and_no_later_one)
{
    char since[32];
    SAYS(acquire(R), "held");
    snprintf(since, sizeof(since), "%s", field("since"));
    SAYS(force(R, since), "released");
    ck_assert_str_eq(mark(), "");
    ck_assert_int_eq(acquire(R_B).flags, 0);
    SAYS(force(R, since), "gone");
    ck_assert_str_eq(mark(), MARK(R_B));
}
END_TEST

START_TEST(force_of_an_ended_holder_clears_its_remains)
{
    char since[32];
    SAYS(acquire(R), "held");
    snprintf(since, sizeof(since), "%s", field("since"));
    expire();
    if (_i)
        put_mark(SPOILT);
    SAYS(force(R_B, since), _i ? "released" : "gone");
    ck_assert_str_eq(mark(), _i ? "" : MARK(R));
    SAYS(force(R, since), _i ? "gone" : "released");
    ck_assert_str_eq(mark(), "");
}
END_TEST

/* ---- full memory, foreign data, missing keys */

START_TEST(full_memory_allows_releases_and_refuses_acquires)
{
    static const char *const how[] = { "clean", "spoilt", "died", "unused" };
    static const char *const after[] = { "", SPOILT, MARK(R), MARK(R) };
    test_redis_config(redis, "maxmemory-policy", "noeviction");
    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        clear();
        put_mark(MARK(R_B));
        test_redis_config(redis, "maxmemory", "1");
        struct answer a = acquire(R);
        /* before 7.0, behind "ERR Error running script (...): -" */
        bool refused = strstr(a.error, "OOM command not allowed") != NULL;
        test_redis_config(redis, "maxmemory", "0");
        ck_assert_msg(refused, "%s", a.error);
        ck_assert_str_eq(mark(), MARK(R_B));
        SAYS(acquire(R), "held");
        test_redis_do(redis, "DEL", DIRTY);
        test_redis_config(redis, "maxmemory", "1");
        SAYS(renew(R, "10"), "held"); /* the lease is not raised */
        SAYS(release_as(R, how[i], "0"), "released");
        test_redis_config(redis, "maxmemory", "0");
        ck_assert_str_eq(mark(), after[i]);
    }
}
END_TEST

/* The scripts that read the mark, with arguments for R, which holds the lock or wants
 * it. */
static const struct {
    enum rlk_script_id script;
    const char *args[12];
} all[] = {
    { RLK_MUTEX_ACQUIRE, { R, UUID_A, "30000", "3000", NEVER, "0", "0", "0" } },
    { RLK_MUTEX_RELEASE, { R, "0", CHANNEL, "clean", "0" } },
    { RLK_MUTEX_RELEASE, { R, "7000", CHANNEL, "spoilt", "1" } },
    { RLK_MUTEX_RELEASE, { R, "0", CHANNEL, "unused", "0" } },
    { RLK_MUTEX_CANCEL, { R, "7000" } },
    { RLK_MUTEX_REFRESH, { UUID_A, "3000", "0", "1:7:" LETTER "3000b " } },
    { RLK_RWLOCK_WRITE,
      { WRITE_A, UUID_A, "30000", "3000", NEVER, "0", "0", "16", "0", "0" } },
    { RLK_RWLOCK_READ,
      { READ_A, UUID_A, "30000", "3000", NEVER, "0", "0", "16", "0", "0", "" } },
    { RLK_RWLOCK_REFRESH, { UUID_A, "3000", "16", "0", "0", "1:4:w3000 " } },
    { RLK_LOCK_FORCE, { "", "", CHANNEL } },
    { RLK_LOCK_BURY, { UUID_A, "7000", CHANNEL, "16", "1:7:" LETTER "3000b 1 " } },
};

START_TEST(mark_of_another_type_is_refused_before_anything_is_written)
{
    char before[64];
    for (int held = 0; held < 2; held++) {
        clear();
        test_redis_do(redis, "LPUSH", DIRTY, "x");
        test_redis_do(redis, "EXPIRE", DIRTY, "1000");
        put_waiter(QUEUE, R_B, 5);
        put_present(UUID_B);
        if (held) {
            test_redis_do(redis, "HSET", "n", R, "1", "mode", MODE, "since", "1");
            test_redis_do(redis, "PEXPIRE", "n", "30000");
        }
        snprintf(before, sizeof(before), "%s", digest());
        struct answer a = run(all[_i].script, all[_i].args);
        /* a script need not read the mark of a lock that another type holds */
        if (!held || a.error[0])
            ck_assert_msg(strstr(a.error, "WRONGTYPE"), "%s", WHAT(a));
        if (a.error[0])
            ck_assert_str_eq(digest(), before);
    }
}
END_TEST

/* Tries every combination of keys that exist or not. */
START_TEST(any_key_may_be_missing)
{
    enum { N, QUEUED, PRESENCE, MARKED, TOLD, LOST_N, COMBINATIONS = 1 << LOST_N };
    for (int set = 0; set < COMBINATIONS; set++) {
        clear();
        if (set & 1 << N) {
            test_redis_do(redis, "HSET", "n", R, "1", "mode", MODE, "since", "1");
            if (set & 1 << TOLD)
                test_redis_do(redis, "HSET", "n", "died", "1");
            test_redis_do(redis, "PEXPIRE", "n", "30000");
        } else if (set & 1 << TOLD) {
            continue;
        }
        if (set & 1 << QUEUED)
            put_waiter(QUEUE, R_B, 5);
        if (set & 1 << PRESENCE)
            put_present(UUID_B);
        if (set & 1 << MARKED)
            put_mark(MARK(R));
        struct answer a = run(all[_i].script, all[_i].args);
        ck_assert_msg(!a.error[0], "%d: %s", set, a.error);
        assert_ttls();
        if (field(R_B)[0]) /* the lock was handed over */
            ck_assert_str_eq(mark(), MARK(R_B));
    }
}
END_TEST

static Suite *suite(void)
{
    enum {
        RELEASES = sizeof(releases) / sizeof(releases[0]),
        SCRIPTS = sizeof(all) / sizeof(all[0])
    };
    Suite *s = suite_create("robust_scripts");
    TCase *tc = byhand_tcase(s, "taking");
    tcase_add_test(tc, acquire_marks_the_lock_for_7_days);
    tcase_add_test(tc, flags_around_it_do_not_matter);
    tcase_add_test(tc, acquire_over_a_mark_reports_the_death_and_repeats_the_report);
    tcase_add_test(tc, waiter_that_acquires_out_of_turn_learns_of_the_death);
    tcase_add_test(tc, own_mark_is_no_death);
    tcase_add_test(tc, mark_ends_with_its_own_key_alone);
    tcase_add_test(tc, holder_that_is_not_robust_does_not_change_the_mark);
    tcase_add_test(tc, grant_reports_the_death_by_message_and_marks_the_lock_again);
    tcase_add_test(tc, grant_after_a_clean_release_tells_nothing);
    tcase_add_test(tc, refresh_that_picks_its_own_waiter_tells_it);
    tcase_add_test(tc, grant_by_the_read_write_locks_scripts_tells_it_too);
    tcase_add_test(tc, grant_that_is_undone_leaves_the_mark_that_there_was);
    tc = byhand_tcase(s, "giving_back");
    tcase_add_loop_test(tc, release_leaves_the_mark_that_it_is_to, 0, RELEASES);
    tcase_add_test(tc, release_touches_no_mark_of_another_id);
    tcase_add_test(tc, release_that_says_nothing_leaves_the_mark);
    tcase_add_test(tc, renewal_prolongs_the_mark_and_restores_a_lost_one);
    tc = byhand_tcase(s, "not_recoverable");
    tcase_add_test(tc, not_recoverable_lock_is_neither_taken_queued_for_nor_granted);
    tcase_add_test(tc, no_script_hands_over_what_is_not_recoverable);
    tcase_add_test(tc, poll_of_the_read_write_lock_names_all_waiters);
    tcase_add_test(tc, waiters_are_notified_once_for_each_client_and_type);
    tc = byhand_tcase(s, "force");
    tcase_add_loop_test(tc, force_clears_the_mark_of_a_free_lock_and_hands_it_over, 0, 2);
    tcase_add_test(tc, force_of_a_holder_clears_its_mark_and_no_later_one);
    tcase_add_loop_test(tc, force_of_an_ended_holder_clears_its_remains, 0, 2);
    tc = byhand_tcase(s, "keys");
    tcase_add_test(tc, full_memory_allows_releases_and_refuses_acquires);
    tcase_add_loop_test(tc, mark_of_another_type_is_refused_before_anything_is_written, 0,
                        SCRIPTS);
    tcase_add_loop_test(tc, any_key_may_be_missing, 0, SCRIPTS);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
