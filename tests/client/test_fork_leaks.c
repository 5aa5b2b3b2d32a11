/* SPDX-License-Identifier: Apache-2.0 */
/* The child of a fork does not change its parent's memory and leaks none of it. The test
 * needs Valgrind, and is skipped without it. */
#include "fixture.h"

#include "program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOON_MS = 60000, LINE_MAX_LEN = 512 };

static struct test_program p;
static char dir[] = "/tmp/rlock-leaks-XXXXXX";

static void says(const char *command, const char *wanted)
{
    char line[LINE_MAX_LEN] = "";
    ck_assert(test_program_write(&p, command));
    while (test_program_read(&p, line, sizeof(line), SOON_MS))
        if (strncmp(line, wanted, strlen(wanted)) == 0)
            return;
    ck_abort_msg("%s: no answer %s, but %s", command, wanted, line);
}

/* Valgrind cannot run a program with a sanitizer. Version 3.19 gives up on what clang
 * writes for debuggers (DWARF 5, from clang 14 on). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
enum { CANNOT_RUN = true };
#else
enum { CANNOT_RUN = false };
#endif

static bool can_run(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (CANNOT_RUN || (preloaded && strstr(preloaded, "vgpreload")))
        return false;
    return system("valgrind --version >/dev/null 2>&1") == 0;
}

/* Returns how many logs there are. Prints each log that reports a leak, and fails the
 * test. */
static int read_logs(void)
{
    DIR *logs = opendir(dir);
    struct dirent *entry;
    int count = 0;

    ck_assert_ptr_nonnull(logs);
    while ((entry = readdir(logs)) != NULL) {
        char path[300], text[8192] = "";
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        FILE *f = fopen(path, "r");
        ck_assert_ptr_nonnull(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
        fclose(f);
        unlink(path);
        ck_assert_msg(!strstr(text, "definitely lost"), "%s", text);
    }
    closedir(logs);
    return count;
}

START_TEST(child_of_a_fork_loses_no_memory_of_its_parent)
{
    char worker[256], log[64], open[TEST_URL_MAX + 16];
    const char *argv[] = {
        "valgrind", "-q", "--leak-check=full", "--show-leak-kinds=definite", log,
        worker,     NULL
    };
    if (!can_run()) {
        printf(
            "skipped: child_of_a_fork_loses_no_memory_of_its_parent: no Valgrind here\n");
        return;
    }
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(log, sizeof(log), "--log-file=%s/%%p", dir);
    test_build_path(worker, sizeof(worker), "tests/worker");
    snprintf(open, sizeof(open), "open %s", server.url);
    test_program_start(&p, argv, NULL);
    says(open, "= ok");
    says("init m n", "= ok");
    says("init k k", "= ok");
    says("on t lock k", "= ok"); /* with another thread's record, and an unused one */
    says("on t unlock k", "= ok");
    says("end t", "= ok");
    says("lock m", "= ok");
    says("lock k", "= ok");
    says("unlock k", "= ok");
    says("fork state m", "done fork ok");
    says("fork lock k", "done fork ok");
    /* in a child of a child */
    says("fork fork trylock m", "done fork");
    says("unlock m", "= ok");
    ck_assert_int_eq(test_program_wait(&p, SOON_MS), 0);
    ck_assert_int_ge(read_logs(), 4);
    rmdir(dir);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fork_leaks");
    TCase *tc = tcase_create("leaks");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_set_timeout(tc, 120); /* Valgrind is slow to start */
    tcase_add_test(tc, child_of_a_fork_loses_no_memory_of_its_parent);
    suite_add_tcase(s, tc);
    return test_run_suite(s);
}
