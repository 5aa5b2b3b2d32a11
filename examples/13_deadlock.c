/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tellers move money between two accounts, one from A to B, the other from B to A.
 * Each account has a lock. The first teller locks A, then B; the second one B, then A:
 * each has one lock, and would wait for the other one for ever.
 *
 *     13_deadlock             the library finds that out; one teller gives way
 *     13_deadlock --ordered   the mended program: both lock A first
 *
 * The first form shows what the library says, and how a program goes on after EDEADLK: it
 * unlocks what it holds, and begins again. Without RLOCK_DEADLOCK_FAIL the deadlock would
 * be reported, and both would wait on.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379. The
 * processes are forked before the program uses the library. Fails when a transfer is not
 * done.
 */
#include <errno.h>
#include <rlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TELLERS = 2, LOOK_AFTER_MS = 200 };

static const char *const accounts[TELLERS] = { "account A", "account B" };

static struct bank {
    atomic_int inside; /* tellers that have their first lock */
    atomic_int transfers, gave_way;
} * bank;

static void fail(const char *what)
{
    fprintf(stderr, "13_deadlock: %s: %s\n", what, rlock_errmsg());
    _exit(EXIT_FAILURE);
}

/* The library's log line has the whole cycle; so has the event. */
static void on_event(const rlock_event_t *event, void *arg)
{
    const int *teller = arg;

    if (event->kind == RLOCK_EVENT_DEADLOCK)
        printf("teller %d: deadlock: %s\n", *teller + 1, event->reason);
    fflush(stdout);
}

static void open_accounts(rlock_mutex_t locks[TELLERS], int *teller)
{
    rlock_clientattr_t client;
    rlock_mutexattr_t attr;

    rlock_clientattr_init(&client);
    rlock_clientattr_setdeadlockms(&client, LOOK_AFTER_MS);
    rlock_clientattr_seteventcallback(&client, on_event, teller);
    if (rlock_client_setdefault(NULL, &client) != 0)
        fail("rlock_client_setdefault");
    rlock_clientattr_destroy(&client);
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setdeadlock(&attr, RLOCK_DEADLOCK_FAIL);
    for (int i = 0; i < TELLERS; i++)
        if (rlock_mutex_init(&locks[i], &attr, accounts[i]) != 0)
            fail("rlock_mutex_init");
    rlock_mutexattr_destroy(&attr);
}

/* For the demonstration: each teller has its first lock before one wants its second. */
static void wait_for_the_other(void)
{
    const struct timespec pause = { .tv_nsec = 1000000 };

    atomic_fetch_add(&bank->inside, 1);
    while (atomic_load(&bank->inside) < TELLERS)
        nanosleep(&pause, NULL);
}

static int transfer(rlock_mutex_t *first, rlock_mutex_t *second, bool meets)
{
    int rc = rlock_mutex_lock(first);

    if (rc != 0)
        return rc;
    if (meets)
        wait_for_the_other();
    rc = rlock_mutex_lock(second);
    if (rc == 0) {
        atomic_fetch_add(&bank->transfers, 1); /* the money moves */
        rlock_mutex_unlock(second);
    }
    rlock_mutex_unlock(first);
    return rc;
}

static void work(int teller, bool ordered)
{
    rlock_mutex_t locks[TELLERS];
    int first = ordered ? 0 : teller, rc;
    bool meets = !ordered;

    open_accounts(locks, &teller);
    while ((rc = transfer(&locks[first], &locks[!first], meets)) == EDEADLK) {
        printf("teller %d gives way, and begins again\n", teller + 1);
        fflush(stdout);
        atomic_fetch_add(&bank->gave_way, 1);
        meets = false;
    }
    if (rc != 0)
        fail("rlock_mutex_lock");
}

int main(int argc, char **argv)
{
    bool ordered = argc > 1 && strcmp(argv[1], "--ordered") == 0, good = true;
    int status;

    bank = mmap(NULL, sizeof(*bank), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                -1, 0);
    if (bank == MAP_FAILED)
        return EXIT_FAILURE;
    for (int i = 0; i < TELLERS; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            work(i, ordered);
            exit(EXIT_SUCCESS);
        }
        if (pid < 0)
            return EXIT_FAILURE;
    }
    while (wait(&status) > 0)
        good = good && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
    printf("%d of %d transfers done, %d gave way\n", atomic_load(&bank->transfers),
           TELLERS, atomic_load(&bank->gave_way));
    return good && atomic_load(&bank->transfers) == TELLERS ? EXIT_SUCCESS : EXIT_FAILURE;
}
