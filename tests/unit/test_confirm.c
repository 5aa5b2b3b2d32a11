/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/*
 * What the library makes of errors in place of an answer to WAIT or WAITAOF: the texts of
 * Redis 6.0 to 8 and of Valkey, word for word; and the commands that it writes. Needs no
 * server.
 */
#include "suite.h"

#include "base/clock.h"
#include "net/confirm.h"

#include <check.h>
#include <errno.h>
#include <string.h>

static const struct {
    const char *said;
    enum rlk_confirm_result result;
    int code;
} rows[] = {
    { "UNBLOCKED force unblock from blocking operation, instance state changed (master "
      "-> replica?)",
      RLK_CONFIRM_REPLICA, ENOTCONN },
    { "ERR WAIT cannot be used with replica instances. Please also note that since Redis "
      "4.0 if a replica is configured to be writable (which is not the default) writes "
      "to replicas are just local and are not propagated.",
      RLK_CONFIRM_REPLICA, ENOTCONN },
    { "ERR WAITAOF cannot be used with replica instances. Please also note that writes "
      "to replicas are just local and are not propagated.",
      RLK_CONFIRM_REPLICA, ENOTCONN },
    { "READONLY You can't write against a read only replica.", RLK_CONFIRM_REPLICA,
      ENOTCONN },
    { "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
      RLK_CONFIRM_REPLICA, ENOTCONN },
    /* for a moment: the server may be a good master */
    { "UNBLOCKED client unblocked via CLIENT UNBLOCK", RLK_CONFIRM_FEW, ENOTCONN },
    { "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN "
      "NOSAVE.",
      RLK_CONFIRM_FEW, ENOTCONN },
    { "LOADING Redis is loading the dataset in memory", RLK_CONFIRM_FEW, ENOTCONN },
    { "OOM command not allowed when used memory > 'maxmemory'.", RLK_CONFIRM_FEW,
      ENOTCONN },
    /* for good */
    { "NOPERM this user has no permissions to run the 'wait' command or its subcommand",
      RLK_CONFIRM_REFUSED, EACCES },
    { "ERR unknown command `WAITAOF`, with args beginning with: `1`, `1`, `200`, ",
      RLK_CONFIRM_REFUSED, EPROTO },
    { "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
      RLK_CONFIRM_REFUSED, EPROTO },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* rule: P12 */
START_TEST(error_says_whether_the_server_is_a_replica_or_cannot_say_or_refuses)
{
    int code = -1;

    ck_assert_int_eq(rlk_confirm_sort_error(rows[_i].said, strlen(rows[_i].said), &code),
                     rows[_i].result);
    ck_assert_int_eq(code, rows[_i].code);
}
END_TEST

static void assert_words(const struct rlk_confirm *wait, int64_t ns, int argc,
                         const char *const *words)
{
    struct rlk_confirm_command command;

    rlk_confirm_write(&command, wait, ns);
    ck_assert_int_eq(command.argc, argc);
    for (int i = 0; i < argc; i++) {
        ck_assert_str_eq(command.argv[i], words[i]);
        ck_assert_uint_eq(command.len[i], strlen(words[i]));
    }
}

/* rule: P11 */
START_TEST(no_command_waits_for_ever)
{
    const struct rlk_confirm two = { .replicas = 2 }, disks = { 2, 1 };

    assert_words(&two, 200 * RLK_NS_PER_MS, 3, (const char *[]){ "WAIT", "2", "200" });
    assert_words(&two, RLK_NS_PER_MS - 1, 3, (const char *[]){ "WAIT", "2", "1" });
    assert_words(&two, -1, 3, (const char *[]){ "WAIT", "2", "1" }); /* 0: for ever */
    assert_words(&disks, 7 * RLK_NS_PER_MS, 4,
                 (const char *[]){ "WAITAOF", "1", "2", "7" });
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("confirmations");
    TCase *tc = tcase_create("confirmations");

    tcase_add_loop_test(
        tc, error_says_whether_the_server_is_a_replica_or_cannot_say_or_refuses, 0, ROWS);
    tcase_add_test(tc, no_command_waits_for_ever);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
