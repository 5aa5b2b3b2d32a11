/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=own harness */
/* The ledger, read from a server's append-only files: the effects of the scripts, in
 * order and in time, and files that a killed server leaves. */
#include "ledger.h"
#include "marks.h"

#include "byhand.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LOCK = 2 };

static const char *const appending[] = { "--appendonly",
                                         "yes",
                                         "--appendfsync",
                                         "no",
                                         "--auto-aof-rewrite-percentage",
                                         "0",
                                         NULL };
static char base[] = "/tmp/ledger.XXXXXX", dir[64];
static struct nem_ledger ledger;
static struct test_redis *mailbox_b;

static void run_shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run_shell(const char *format, ...)
{
    char command[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    ck_assert_int_eq(system(command), 0);
}

/* Unchecked: so that nothing is left after a failed test. */
static void open_base(void)
{
    memcpy(base + sizeof(base) - sizeof("XXXXXX"), "XXXXXX", sizeof("XXXXXX"));
    ck_assert_ptr_nonnull(mkdtemp(base));
}

static void close_base(void)
{
    run_shell("rm -rf %s", base);
}

static void open_files(void)
{
    snprintf(dir, sizeof(dir), "%s/%d", base, (int)getpid());
    ck_assert_int_eq(mkdir(dir, S_IRWXU), 0);
}

static void open_server(void)
{
    open_files();
    test_server_start(&server, appending);
    byhand_connect();
    mailbox_b = listener(UUID_B);
}

static void close_files(void)
{
    nem_ledger_free(&ledger);
    run_shell("rm -rf %s", dir);
}

static void close_server(void)
{
    test_redis_close(mailbox_b);
    byhand_close();
    test_server_stop(&server);
    close_files();
}

/* ---- epochs, marks */

/* Ends the server as a SIGKILL does, and keeps its files. */
static void archive(int epoch)
{
    test_server_kill(&server);
    if (test_server_version() >= 70000) {
        run_shell("mv %s/appendonlydir %s/aof.%d", server.dir, dir, epoch);
    } else {
        run_shell("mkdir %s/aof.%d", dir, epoch);
        run_shell("mv %s/appendonly.aof %s/aof.%d", server.dir, dir, epoch);
    }
}

static void again(void)
{
    test_server_restart(&server);
    byhand_close();
    byhand_connect();
}

static int64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void write_mark(uint64_t n, int64_t sent, int64_t answered)
{
    char path[128];
    struct nem_mark m = { n, sent, answered };
    snprintf(path, sizeof(path), "%s/marks", dir);
    FILE *file = fopen(path, "ab");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(&m, sizeof(m), 1, file), 1);
    fclose(file);
}

static struct nem_mark mark(uint64_t n)
{
    char text[24];
    struct nem_mark m = { .n = n, .sent = now() };
    snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
    test_redis_do(redis, "SET", NEM_MARK_KEY, text);
    m.answered = now();
    write_mark(n, m.sent, m.answered);
    return m;
}

static void read_ledger(void)
{
    ck_assert(nem_ledger_read(&ledger, dir));
}

/* ---- searches */

/* The n-th entry of a kind about an id, or NULL. */
static const struct nem_entry *find(enum nem_change change, const char *id, int nth)
{
    for (size_t i = 0; i < ledger.count; i++) {
        const struct nem_entry *e = &ledger.entries[i];
        if (e->change == change && strcmp(e->id, id) == 0 && nth-- == 0)
            return e;
    }
    return NULL;
}

static const struct nem_entry *one(enum nem_change change, const char *id)
{
    const struct nem_entry *e = find(change, id, 0);
    ck_assert_msg(e != NULL, "no entry %d of %s", change, id);
    ck_assert_msg(find(change, id, 1) == NULL, "two entries %d of %s", change, id);
    return e;
}

#define NONE(change, id) ck_assert_ptr_null(find((change), (id), 0))

/* ---- the effects of the scripts */

START_TEST(a_grant_has_its_lease_and_when_it_was)
{
    long long before = server_ms();
    SAYS(acquire(WRITE_A), "held");
    long long after = server_ms();
    archive(0);
    read_ledger();
    const struct nem_entry *e = one(NEM_GRANTED, WRITE_A);
    ck_assert_uint_eq(e->lock, LOCK);
    ck_assert_uint_ge(e->value / 1000, (uint64_t)before);
    ck_assert_uint_le(e->value / 1000, (uint64_t)after);
    const struct nem_entry *lease = one(NEM_LEASE, WRITE_A);
    ck_assert_uint_eq(lease->transaction, e->transaction);
    ck_assert_uint_ge(lease->value, (uint64_t)before + 30000);
    ck_assert_uint_le(lease->value, (uint64_t)after + 30000);
}
END_TEST

START_TEST(a_release_without_waiters_frees_the_lock)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(release(WRITE_A), "released");
    SAYS(cancel(WRITE_B), "removed"); /* the lock is free already */
    archive(0);
    read_ledger();
    ck_assert_uint_eq(one(NEM_LEFT, WRITE_A)->transaction,
                      one(NEM_FREED, "")->transaction);
}
END_TEST

START_TEST(a_hand_over_is_one_transaction_and_names_the_ticket)
{
    SAYS(acquire(WRITE_A), "held");
    struct answer queued = acquire(WRITE_B);
    ck_assert_str_eq(WHAT(queued), "queued");
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    uint64_t transaction = one(NEM_LEFT, WRITE_A)->transaction;
    ck_assert_uint_eq(one(NEM_QUEUED, WRITE_B)->value, (uint64_t)queued.fate[0].ticket);
    ck_assert_uint_eq(one(NEM_UNQUEUED, WRITE_B)->transaction, transaction);
    ck_assert_uint_eq(one(NEM_GRANTED, WRITE_B)->transaction, transaction);
    ck_assert_uint_eq(one(NEM_GRANTED, WRITE_B)->ticket, (uint64_t)queued.fate[0].ticket);
    NONE(NEM_FREED, "");
    ck_assert_uint_gt(find(NEM_PRESENT, UUID_B, 0)->value, 0);
}
END_TEST

START_TEST(a_grant_that_nobody_heard_is_none)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(WRITE_C), "queued"); /* has no mailbox */
    struct test_redis *before = redis;
    redis = limited_user(); /* and the script cannot ask for it */
    test_redis_close(before);
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    NONE(NEM_GRANTED, WRITE_C);
    NONE(NEM_UNQUEUED, WRITE_C);
    one(NEM_FREED, "");
}
END_TEST

START_TEST(a_grant_has_its_token)
{
    struct answer a = acquire_fenced(UUID_A ":1:4:W3000");
    archive(0);
    read_ledger();
    uint64_t token = strtoull(a.fate[0].token, NULL, 10);
    ck_assert_uint_eq(one(NEM_GRANTED, UUID_A ":1:4:W3000")->token, token);
    ck_assert_uint_eq(one(NEM_TOKEN, "")->value, token);
}
END_TEST

START_TEST(readers_have_leases_of_their_own)
{
    SAYS(acquire(READ_A), "held");
    SAYS(acquire(READ_B), "held");
    SAYS(renew(READ_A, "40000"), "held");
    SAYS(release(READ_A), "released");
    SAYS(release(READ_B), "released");
    archive(0);
    read_ledger();
    ck_assert_uint_gt(one(NEM_READ, READ_A)->value, 0);
    ck_assert_uint_eq(one(NEM_READ, READ_B)->value, 0); /* it joins */
    ck_assert_ptr_nonnull(find(NEM_LEASE, READ_A, 1));
    one(NEM_LEASE, READ_B);
    ck_assert_uint_lt(one(NEM_LEFT, READ_A)->transaction,
                      one(NEM_FREED, "")->transaction);
    ck_assert_uint_eq(one(NEM_LEFT, READ_B)->transaction,
                      one(NEM_FREED, "")->transaction);
}
END_TEST

START_TEST(a_downgrade_is_no_grant_and_lets_readers_in)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(downgrade(WRITE_A), "held");
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    const struct nem_entry *down = one(NEM_DOWNGRADED, WRITE_A);
    ck_assert_uint_eq(one(NEM_READ, READ_B)->transaction, down->transaction);
    ck_assert_uint_lt(down->number, one(NEM_READ, READ_B)->number);
    ck_assert_uint_gt(one(NEM_READ, READ_B)->ticket, 0);
    NONE(NEM_READ, WRITE_A);
    ck_assert_uint_gt(one(NEM_LEFT, WRITE_A)->transaction, down->transaction);
}
END_TEST

START_TEST(a_cancel_marks_and_leaves_the_queue)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(cancel(WRITE_B), "removed");
    archive(0);
    read_ledger();
    ck_assert_uint_eq(one(NEM_MARKED, WRITE_B)->transaction,
                      one(NEM_UNQUEUED, WRITE_B)->transaction);
}
END_TEST

/* G11, G12: all effects are in one transaction. */
START_TEST(recovery_is_recognized_by_the_marker_of_a_client)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    SAYS(acquire(WRITE_A2), "queued");
    SAYS(bury("1:4:w3000 1 "), "released");
    SAYS(bury("1:4:w3000 1 "), "gone");
    archive(0);
    read_ledger();
    uint64_t transaction = one(NEM_MARKED, UUID_A)->transaction;
    ck_assert_uint_eq(one(NEM_LEFT, WRITE_A)->transaction, transaction);
    ck_assert_uint_eq(one(NEM_UNQUEUED, WRITE_A2)->transaction, transaction);
    ck_assert_uint_eq(one(NEM_GRANTED, WRITE_B)->transaction, transaction);
    ck_assert_uint_eq(find(NEM_PRESENT, UUID_A, 1)->transaction, transaction);
    ck_assert_uint_eq(find(NEM_PRESENT, UUID_A, 1)->value, 0);
    NONE(NEM_FREED, "");
}
END_TEST

static bool is_gone(void *arg)
{
    (void)arg;
    return !test_redis_exists(redis, BYHAND_LOCK);
}

START_TEST(an_expiry_is_seen)
{
    SAYS(acquire(WRITE_A), "held");
    test_redis_do(redis, "PEXPIRE", BYHAND_LOCK, "20");
    ck_assert(test_wait_until(is_gone, NULL, 10000));
    archive(0);
    read_ledger();
    ck_assert_uint_eq(one(NEM_LEFT, WRITE_A)->transaction,
                      one(NEM_FREED, "")->transaction);
}
END_TEST

START_TEST(keys_without_TTL_are_reported_once)
{
    SAYS(acquire(WRITE_A), "held");
    test_redis_do(redis, "PERSIST", BYHAND_LOCK);
    SAYS(acquire(WRITE_B), "queued");
    test_redis_do(redis, "PERSIST", QUEUE);
    test_redis_do(redis, "ZADD", CANCELLED, "1", "x"); /* the key never had a TTL */
    archive(0);
    read_ledger();
    one(NEM_FORCED_TTL, "cancelled");
    one(NEM_FORCED_TTL, "N");
    one(NEM_FORCED_TTL, "queue");
}
END_TEST

START_TEST(the_scripts_leave_no_key_without_ttl)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(READ_B), "queued");
    SAYS(acquire_fenced(UUID_C ":1:4:W3000"), "queued");
    SAYS(downgrade(WRITE_A), "held");
    SAYS(release(WRITE_A), "released");
    SAYS(cancel(UUID_C ":1:4:W3000"), "removed");
    SAYS(release(READ_B), "released");
    archive(0);
    read_ledger();
    for (size_t i = 0; i < ledger.count; i++)
        ck_assert_int_ne(ledger.entries[i].change, NEM_FORCED_TTL);
}
END_TEST

START_TEST(a_flush_takes_all)
{
    SAYS(acquire(WRITE_A), "held");
    SAYS(acquire(WRITE_B), "queued");
    test_redis_do(redis, "FLUSHALL");
    archive(0);
    read_ledger();
    uint64_t transaction = one(NEM_LEFT, WRITE_A)->transaction;
    ck_assert_uint_eq(one(NEM_UNQUEUED, WRITE_B)->transaction, transaction);
    ck_assert_uint_eq(one(NEM_LOST_DATA, "")->transaction, transaction);
}
END_TEST

START_TEST(each_lock_has_its_own_entries)
{
    SAYS(acquire(WRITE_A), "held");
    test_redis_do(redis, "HSET", "nemesis17", "a:1:1:m3000", "1", "mode", "rlock:mutex");
    archive(0);
    read_ledger();
    ck_assert_uint_eq(one(NEM_GRANTED, WRITE_A)->lock, LOCK);
    ck_assert_uint_eq(one(NEM_GRANTED, "a:1:1:m3000")->lock, 17);
}
END_TEST

START_TEST(other_keys_belong_to_no_lock)
{
    test_redis_do(redis, "SET", "nemesis1.", "1");
    test_redis_do(redis, "SET", "nemesis256", "1");
    test_redis_do(redis, "ZADD", "rlock:{other}:queue", "1", "x");
    test_redis_do(redis, "RPUSH", "list", "1");
    archive(0);
    read_ledger();
    ck_assert_uint_eq(ledger.count, 0);
}
END_TEST

/* ---- order, time, epochs */

START_TEST(marks_bound_the_time_from_both_sides)
{
    struct nem_mark first = mark(1);
    SAYS(acquire(WRITE_A), "held");
    struct nem_mark second = mark(2);
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    const struct nem_entry *granted = one(NEM_GRANTED, WRITE_A);
    ck_assert_int_eq(granted->after, first.sent);
    ck_assert_int_eq(granted->before, second.answered);
    ck_assert_int_eq(one(NEM_LEFT, WRITE_A)->after, second.sent);
    ck_assert_int_eq(one(NEM_LEFT, WRITE_A)->before, INT64_MAX);
}
END_TEST

START_TEST(a_mark_whose_answer_was_lost_bounds_from_one_side)
{
    SAYS(acquire(WRITE_A), "held");
    test_redis_do(redis, "SET", NEM_MARK_KEY, "7");
    write_mark(7, 700, INT64_MAX);
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    ck_assert_int_eq(one(NEM_GRANTED, WRITE_A)->before, INT64_MAX);
    ck_assert_int_eq(one(NEM_LEFT, WRITE_A)->after, 700);
}
END_TEST

START_TEST(ledger_continues_over_a_restart_with_data)
{
    SAYS(acquire(WRITE_A), "held");
    test_server_kill(&server);
    again();
    SAYS(acquire(WRITE_A), "held");
    SAYS(release(WRITE_A), "released");
    archive(0);
    read_ledger();
    one(NEM_GRANTED, WRITE_A);
    one(NEM_LEFT, WRITE_A);
}
END_TEST

START_TEST(a_new_epoch_has_lost_the_data)
{
    struct nem_mark first = mark(1);
    SAYS(acquire(WRITE_A), "held");
    archive(0);
    again();
    SAYS(acquire(WRITE_B), "held");
    struct nem_mark second = mark(2);
    archive(1);
    read_ledger();
    const struct nem_entry *left = one(NEM_LEFT, WRITE_A);
    ck_assert_uint_lt(left->transaction, one(NEM_GRANTED, WRITE_B)->transaction);
    one(NEM_LOST_DATA, "");
    ck_assert_int_eq(left->after, first.sent);
    ck_assert_int_eq(left->before, second.answered);
}
END_TEST

/* ---- files by hand */

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, strlen(text), file), strlen(text));
    fclose(file);
}

/* An epoch of one file, as Redis 6 writes it. */
static void write_epoch(const char *text)
{
    run_shell("mkdir -p %s/aof.0", dir);
    write_file("aof.0/appendonly.aof", text);
}

#define SELECT "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"
#define MULTI "*1\r\n$5\r\nMULTI\r\n"
#define EXEC "*1\r\n$4\r\nEXEC\r\n"
#define HSET_SINCE(id, since)                                                            \
    "*8\r\n$4\r\nHSET\r\n$8\r\nnemesis2\r\n$1\r\n" id "\r\n$1\r\n1\r\n"                  \
    "$4\r\nmode\r\n$11\r\nrlock:mutex\r\n$5\r\nsince\r\n$1\r\n" since "\r\n"
#define HSET(id) HSET_SINCE(id, "5")
#define READ(id, since)                                                                  \
    "*2\r\n$3\r\nDEL\r\n$24\r\nrlock:{nemesis2}:readers\r\n"                             \
    "*6\r\n$4\r\nHSET\r\n$8\r\nnemesis2\r\n$4\r\nmode\r\n$10\r\nrlock:read\r\n"          \
    "$5\r\nsince\r\n$1\r\n" since "\r\n"                                                 \
    "*4\r\n$4\r\nZADD\r\n$24\r\nrlock:{nemesis2}:readers\r\n$3\r\n900\r\n$1\r\n" id      \
    "\r\n"
#define EXPIRE "*3\r\n$9\r\nPEXPIREAT\r\n$8\r\nnemesis2\r\n$3\r\n900\r\n"
#define DELETE "*2\r\n$6\r\nUNLINK\r\n$8\r\nnemesis2\r\n"
#define TAKE(id)                                                                         \
    MULTI HSET(id)                                                                       \
    EXPIRE EXEC

START_TEST(one_file_is_an_epoch_too)
{
    write_epoch(SELECT TAKE("a") DELETE TAKE("b"));
    read_ledger();
    ck_assert_uint_eq(one(NEM_LEASE, "a")->value, 900);
    one(NEM_LEFT, "a");
    one(NEM_GRANTED, "b");
}
END_TEST

/* The reply to its first grant was lost, and the grant ended before the request was
 * repeated. */
START_TEST(holder_that_is_granted_again_had_left)
{
    write_epoch(SELECT TAKE("a") MULTI DELETE HSET_SINCE("a", "6") EXPIRE EXEC);
    read_ledger();
    ck_assert_uint_eq(find(NEM_GRANTED, "a", 0)->value, 5);
    ck_assert_ptr_nonnull(find(NEM_GRANTED, "a", 1));
    ck_assert_uint_eq(find(NEM_GRANTED, "a", 1)->value, 6);
    ck_assert_uint_eq(one(NEM_LEFT, "a")->transaction,
                      find(NEM_GRANTED, "a", 1)->transaction);
}
END_TEST

START_TEST(reader_that_is_granted_again_had_left)
{
    write_epoch(SELECT MULTI READ("a", "5") EXPIRE EXEC MULTI DELETE READ("a", "6")
                    EXPIRE EXEC);
    read_ledger();
    ck_assert_uint_eq(find(NEM_READ, "a", 0)->value, 5);
    ck_assert_ptr_nonnull(find(NEM_READ, "a", 1));
    ck_assert_uint_eq(find(NEM_READ, "a", 1)->value, 6);
    ck_assert_uint_eq(one(NEM_LEFT, "a")->transaction,
                      find(NEM_READ, "a", 1)->transaction);
}
END_TEST

START_TEST(a_command_that_was_cut_off_is_left_out)
{
    write_epoch(SELECT TAKE("a") "*2\r\n$6\r\nUNLINK\r\n$8\r\nneme");
    read_ledger();
    one(NEM_GRANTED, "a");
    NONE(NEM_LEFT, "a");
}
END_TEST

START_TEST(a_transaction_without_its_end_is_left_out)
{
    write_epoch(SELECT TAKE("a") DELETE MULTI HSET("b") EXPIRE);
    read_ledger();
    one(NEM_LEFT, "a");
    NONE(NEM_GRANTED, "b");
}
END_TEST

START_TEST(a_transaction_that_another_follows_never_ended)
{
    write_epoch(SELECT MULTI HSET("a") TAKE("b"));
    read_ledger();
    NONE(NEM_GRANTED, "a");
    one(NEM_GRANTED, "b");
}
END_TEST

START_TEST(what_is_no_file_of_commands_is_an_error)
{
    write_epoch(SELECT "HELLO\r\n" TAKE("a"));
    ck_assert(!nem_ledger_read(&ledger, dir));
}
END_TEST

START_TEST(a_command_that_cannot_be_accounted_for_is_an_error)
{
    write_epoch(SELECT "*3\r\n$5\r\nRPUSH\r\n$8\r\nnemesis2\r\n$1\r\nx\r\n");
    ck_assert(!nem_ledger_read(&ledger, dir));
}
END_TEST

static bool is_rewritten(void *arg)
{
    (void)arg;
    return test_redis_info(redis, "aof_rewrite_in_progress") == 0 &&
           test_redis_info(redis, "aof_rewrite_scheduled") == 0;
}

START_TEST(an_epoch_that_begins_with_data_is_an_error)
{
    SAYS(acquire(WRITE_A), "held");
    test_redis_do(redis, "BGREWRITEAOF");
    ck_assert(test_wait_until(is_rewritten, NULL, 10000));
    archive(0);
    ck_assert(!nem_ledger_read(&ledger, dir));
}
END_TEST

START_TEST(files_of_a_manifest_are_read_in_its_order)
{
    run_shell("mkdir -p %s/aof.0/appendonlydir", dir);
    write_file("aof.0/appendonlydir/a.manifest",
               "file a.1.base.aof seq 1 type b\nfile a.2.incr.aof seq 2 type i\n"
               "file a.1.incr.aof seq 3 type i\n");
    write_file("aof.0/appendonlydir/a.1.base.aof", "");
    write_file("aof.0/appendonlydir/a.2.incr.aof", SELECT TAKE("a"));
    write_file("aof.0/appendonlydir/a.1.incr.aof", SELECT DELETE TAKE("b"));
    read_ledger();
    ck_assert_uint_lt(one(NEM_LEFT, "a")->transaction,
                      one(NEM_GRANTED, "b")->transaction);
}
END_TEST

START_TEST(a_file_that_is_missing_is_an_error)
{
    run_shell("mkdir -p %s/aof.0", dir);
    write_file("aof.0/a.manifest", "file a.1.incr.aof seq 1 type i\n");
    ck_assert(!nem_ledger_read(&ledger, dir));
    run_shell("rm -r %s/aof.0", dir);
    ck_assert(!nem_ledger_read(&ledger, dir));
}
END_TEST

static Suite *ledger_suite(void)
{
    Suite *suite = suite_create("ledger");
    TCase *scripts = tcase_create("scripts");
    tcase_add_unchecked_fixture(scripts, open_base, close_base);
    tcase_add_checked_fixture(scripts, open_server, close_server);
    tcase_add_test(scripts, a_grant_has_its_lease_and_when_it_was);
    tcase_add_test(scripts, a_release_without_waiters_frees_the_lock);
    tcase_add_test(scripts, a_hand_over_is_one_transaction_and_names_the_ticket);
    tcase_add_test(scripts, a_grant_that_nobody_heard_is_none);
    tcase_add_test(scripts, a_grant_has_its_token);
    tcase_add_test(scripts, readers_have_leases_of_their_own);
    tcase_add_test(scripts, a_downgrade_is_no_grant_and_lets_readers_in);
    tcase_add_test(scripts, a_cancel_marks_and_leaves_the_queue);
    tcase_add_test(scripts, recovery_is_recognized_by_the_marker_of_a_client);
    tcase_add_test(scripts, an_expiry_is_seen);
    tcase_add_test(scripts, keys_without_TTL_are_reported_once);
    tcase_add_test(scripts, the_scripts_leave_no_key_without_ttl);
    tcase_add_test(scripts, a_flush_takes_all);
    tcase_add_test(scripts, each_lock_has_its_own_entries);
    tcase_add_test(scripts, other_keys_belong_to_no_lock);
    suite_add_tcase(suite, scripts);

    TCase *time = tcase_create("time");
    tcase_add_unchecked_fixture(time, open_base, close_base);
    tcase_add_checked_fixture(time, open_server, close_server);
    tcase_add_test(time, marks_bound_the_time_from_both_sides);
    tcase_add_test(time, a_mark_whose_answer_was_lost_bounds_from_one_side);
    tcase_add_test(time, ledger_continues_over_a_restart_with_data);
    tcase_add_test(time, a_new_epoch_has_lost_the_data);
    tcase_add_test(time, an_epoch_that_begins_with_data_is_an_error);
    suite_add_tcase(suite, time);

    TCase *files = tcase_create("files");
    tcase_add_unchecked_fixture(files, open_base, close_base);
    tcase_add_checked_fixture(files, open_files, close_files);
    tcase_add_test(files, one_file_is_an_epoch_too);
    tcase_add_test(files, holder_that_is_granted_again_had_left);
    tcase_add_test(files, reader_that_is_granted_again_had_left);
    tcase_add_test(files, a_command_that_was_cut_off_is_left_out);
    tcase_add_test(files, a_transaction_without_its_end_is_left_out);
    tcase_add_test(files, a_transaction_that_another_follows_never_ended);
    tcase_add_test(files, what_is_no_file_of_commands_is_an_error);
    tcase_add_test(files, a_command_that_cannot_be_accounted_for_is_an_error);
    tcase_add_test(files, files_of_a_manifest_are_read_in_its_order);
    tcase_add_test(files, a_file_that_is_missing_is_an_error);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    return test_run_suite(ledger_suite());
}
