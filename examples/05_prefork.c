/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefork server: a master forks four workers, which serve requests to deposit a coin
 * and keep the account in a file that an rlock mutex guards. The master made the mutex
 * before the fork, used it, and even holds it during the fork. In each worker the same
 * handle works by itself, with connections of its own, and waits until the master is
 * done. One worker is killed inside the section. When its lease is over the others go on,
 * and the master starts another worker in its place.
 *
 *     05_prefork
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when a coin is missing.
 */
#include <rlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 4, REQUESTS = 200, FATAL = 80, LEASE_MS = 1000, WORK_US = 500 };

struct request {
    int coins;
    bool fatal; /* its worker is killed while it serves this request */
};

static rlock_mutex_t lock;
static int account;     /* the file */
static int requests[2]; /* a pipe: an idle worker takes the next request */

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

static void make_lock(void)
{
    rlock_mutexattr_t attr;
    char name[64];

    snprintf(name, sizeof(name), "prefork/%d", (int)getpid());
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setlease(&attr, LEASE_MS); /* how long it outlives its holder */
    must(rlock_mutex_init(&lock, &attr, name) == 0, "init");
    rlock_mutexattr_destroy(&attr);
}

static long read_balance(void)
{
    long balance = -1;
    must(pread(account, &balance, sizeof(balance), 0) == sizeof(balance), "account");
    return balance;
}

static void write_balance(long balance)
{
    must(pwrite(account, &balance, sizeof(balance), 0) == sizeof(balance), "account");
}

/* ---- a worker */

static void serve(const struct request *request)
{
    must(rlock_mutex_lock(&lock) == 0, "lock");
    long balance = read_balance();
    if (request->fatal)
        raise(SIGKILL);
    nanosleep(&(struct timespec){ .tv_nsec = WORK_US * 1000 }, NULL);
    write_balance(balance + request->coins);
    must(rlock_mutex_unlock(&lock) == 0, "unlock");
}

static void start_worker(void)
{
    struct request request;
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid > 0)
        return;
    close(requests[1]); /* so that the worker sees the end when the master closes it */
    while (read(requests[0], &request, sizeof(request)) == sizeof(request))
        serve(&request);
    _exit(0);
}

/* ---- the master */

static void ask(bool fatal)
{
    struct request request = { .coins = 1, .fatal = fatal };
    must(write(requests[1], &request, sizeof(request)) == sizeof(request), "request");
}

int main(void)
{
    FILE *file = tmpfile(); /* the workers inherit it; it has no name that could stay */
    int status, killed = 0;

    must(file && pipe(requests) == 0, "files");
    account = fileno(file);
    make_lock();

    must(rlock_mutex_lock(&lock) == 0, "lock");
    for (int i = 0; i < WORKERS; i++)
        start_worker();
    write_balance(
        0); /* no worker looks at it before the unlock: only the master has this hold */
    must(rlock_mutex_unlock(&lock) == 0, "unlock");

    for (int number = 1; number <= REQUESTS; number++)
        ask(number == FATAL);
    /* the pipe is open, so only a worker that was killed can end */
    must(wait(&status) > 0 && WIFSIGNALED(status), "a worker left");
    killed++;
    start_worker();
    ask(false); /* the client of the killed worker asks again */
    close(requests[1]);
    for (int i = 0; i < WORKERS; i++)
        must(wait(&status) > 0 && status == 0, "a worker failed");

    must(rlock_mutex_lock(&lock) == 0, "lock");
    long balance = read_balance();
    must(rlock_mutex_unlock(&lock) == 0, "unlock");
    must(rlock_mutex_destroy(&lock) == 0, "destroy");
    printf("%d workers, %d killed and replaced: %d requests, balance %ld\n", (int)WORKERS,
           killed, (int)REQUESTS, balance);
    return balance == REQUESTS ? 0 : 1;
}
