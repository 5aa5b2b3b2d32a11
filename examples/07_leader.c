/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leader and the store: of two candidates the holder of the lock leads, and only the
 * leader writes to the store. A leader is stopped for longer than its lease, in the worst
 * place: it has just seen that it leads, and is about to write. The other candidate leads
 * meanwhile. Then the first one wakes up and writes.
 *
 * No lock can stop that write, because the writing process believes that it leads. The
 * store can. Each hold has a token, greater than that of every hold before. The leader
 * sends its token with each write, and the store refuses a token smaller than the
 * greatest that it has seen.
 * In SQL: UPDATE state SET value = :v, token = :t WHERE token <= :t, and look at the
 * count of rows.
 *
 *     07_leader [--trusting]
 *
 * With --trusting the store does not look at tokens, and one sees the harm.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 * Fails when the old leader's write is in the store at the end.
 */
#include <rlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LEASE_MS = 1000 };

struct request {
    uint64_t token;
    char value[32];
};

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

/* ---- the store: one value, in a process of its own */

static struct request stored; /* with the greatest token so far */
static bool trusting;

/* Answers one request. */
static void serve(int leader)
{
    struct request request;

    must(read(leader, &request, sizeof(request)) == sizeof(request), "a leader left");
    bool accepted = trusting || request.token >= stored.token;
    if (accepted)
        stored = request;
    printf("store:  \"%s\" with token %llu: %s\n", request.value,
           (unsigned long long)request.token, accepted ? "written" : "refused");
    must(write(leader, &accepted, sizeof(accepted)) == sizeof(accepted), "answer");
}

/* ---- a candidate */

static bool store_write(int store, uint64_t token, const char *value)
{
    struct request request = { .token = token };
    bool accepted;

    snprintf(request.value, sizeof(request.value), "%s", value);
    must(write(store, &request, sizeof(request)) == sizeof(request), "request");
    must(read(store, &accepted, sizeof(accepted)) == sizeof(accepted), "answer");
    return accepted;
}

static void lead(int store, const char *name, bool is_stopped)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t lock;
    uint64_t token;
    long left_ms;

    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setfencing(&attr, 1);
    rlock_mutexattr_setlease(&attr, LEASE_MS);
    must(rlock_mutex_init(&lock, &attr, name) == 0, "init");
    must(rlock_mutex_lock(&lock) == 0, "lock"); /* the second waits here for the first */
    must(rlock_mutex_gettoken(&lock, &token) == 0, "token");
    must(store_write(store, token, is_stopped ? "first" : "second"), "refused a leader");
    if (!is_stopped) {
        must(rlock_mutex_unlock(&lock) == 0, "unlock");
        exit(0);
    }
    must(rlock_mutex_getremaining(&lock, &left_ms) == 0 && left_ms > 0, "not leading");
    raise(SIGSTOP); /* stands for swapping, a debugger, a virtual machine that moves */
    bool accepted = store_write(store, token, "first, late");
    must(rlock_mutex_unlock(&lock) == ESTALE, "the old leader was not told of its loss");
    printf("leader: the lease was lost meanwhile; the store has %s the write\n",
           accepted ? "taken" : "refused");
    exit(0);
}

static pid_t candidate(const char *name, bool is_stopped, int *ret_fd)
{
    int ends[2];

    must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0, "socket");
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        lead(ends[1], name, is_stopped);
    }
    close(ends[1]);
    *ret_fd = ends[0];
    return pid;
}

int main(int argc, char **argv)
{
    char name[64];
    int first_fd, second_fd, status;

    trusting = argc > 1 && strcmp(argv[1], "--trusting") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(name, sizeof(name), "leader/%d", (int)getpid());

    pid_t first = candidate(name, true, &first_fd);
    serve(first_fd);
    must(waitpid(first, &status, WUNTRACED) == first && WIFSTOPPED(status),
         "not stopped");
    pid_t second = candidate(name, false, &second_fd);
    serve(second_fd);
    must(waitpid(second, &status, 0) == second && status == 0,
         "the second leader failed");
    kill(first, SIGCONT);
    serve(first_fd);
    must(waitpid(first, &status, 0) == first && status == 0, "the first leader failed");

    printf("store:  has \"%s\"\n", stored.value);
    return strcmp(stored.value, "second") == 0 ? 0 : 1;
}
