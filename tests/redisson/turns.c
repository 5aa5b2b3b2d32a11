/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turns URL NAME PROCESSES MS: the library's side in scripts/redisson where many want one
 * lock, beside Turns.java. So many processes lock and unlock for so long. Prints the
 * sections of all of them, and the longest wait for one, in us.
 */
#include <inttypes.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct result {
    int64_t count, worst_ns;
};

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void check(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "turns: %s: %s\n", what, rlock_errmsg());
    _exit(1);
}

static struct result contend(const char *url, const char *name, int64_t until)
{
    struct result r = { 0, 0 };
    rlock_client_t *client;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    check(rlock_client_open(&client, url, NULL), "open");
    check(rlock_mutexattr_init(&attr), "attr");
    check(rlock_mutexattr_setclient(&attr, client), "client");
    check(rlock_mutex_init(&mutex, &attr, name), "init");
    for (int64_t begin = now_ns(); begin < until; begin = now_ns()) {
        check(rlock_mutex_lock(&mutex), "lock");
        int64_t got = now_ns();
        if (got - begin > r.worst_ns)
            r.worst_ns = got - begin;
        r.count += got < until;
        check(rlock_mutex_unlock(&mutex), "unlock");
    }
    check(rlock_mutex_destroy(&mutex), "destroy");
    check(rlock_client_close(client), "close");
    return r;
}

/* Starts a process that writes its result to the descriptor. */
static void start(const char *url, const char *name, int64_t until, int to)
{
    pid_t pid = fork();

    if (pid < 0) {
        perror("turns: fork");
        exit(1);
    }
    if (pid > 0)
        return;
    struct result r = contend(url, name, until);
    _exit(write(to, &r, sizeof(r)) != (ssize_t)sizeof(r));
}

int main(int argc, char **argv)
{
    struct result all = { 0, 0 }, r;
    int ends[2], status, failed = 0;

    if (argc != 5 || pipe(ends) != 0)
        return 2;
    int64_t until = now_ns() + atoll(argv[4]) * 1000000;
    int processes = atoi(argv[3]);
    for (int i = 0; i < processes; i++)
        start(argv[1], argv[2], until, ends[1]);
    close(ends[1]);
    while (read(ends[0], &r, sizeof(r)) == (ssize_t)sizeof(r)) {
        all.count += r.count;
        if (r.worst_ns > all.worst_ns)
            all.worst_ns = r.worst_ns;
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    printf("shared %" PRId64 " %" PRId64 "\n", all.count, all.worst_ns / 1000);
    return failed;
}
