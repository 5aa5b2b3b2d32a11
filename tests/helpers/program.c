/* SPDX-License-Identifier: Apache-2.0 */
/* State: in the caller's struct, used by one thread at a time. */
#include "program.h"

#include "die.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef TEST_BUILDDIR
#define TEST_BUILDDIR "."
#endif

extern char **environ;

enum { STATE_TIMEOUT_MS = 10000, EXIT_NO_EXEC = 127 };

void test_build_path(char *path, size_t size, const char *name)
{
    const char *dir = getenv("RLOCK_TEST_BUILDDIR");
    int n = snprintf(path, size, "%s/%s", dir && *dir ? dir : TEST_BUILDDIR, name);
    if (n < 0 || (size_t)n >= size)
        test_die("path too long: %s", name);
}

static bool same_variable(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return strncmp(a, b, n) == 0 && b[n] == '=';
}

char **test_environ(const char *const env[])
{
    size_t have = 0, add = 0;
    while (environ[have])
        have++;
    while (env && env[add])
        add++;
    char **all = calloc(have + add + 1, sizeof(*all));
    if (!all)
        test_die("out of memory");
    size_t n = 0;
    for (size_t i = 0; i < have; i++) {
        bool hidden = false;
        for (size_t j = 0; j < add; j++)
            hidden = hidden || same_variable(env[j], environ[i]);
        if (!hidden)
            all[n++] = environ[i];
    }
    for (size_t j = 0; j < add; j++)
        all[n++] = (char *)(uintptr_t)env[j]; /* execve never writes to them */
    return all;
}

/* Runs in the child of fork(): uses async-signal-safe functions only. */
static void become(const char *const argv[], char **env, int in, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NO_EXEC);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(EXIT_NO_EXEC);
    execvpe(argv[0], (char *const *)(uintptr_t)argv, env);
    _exit(EXIT_NO_EXEC);
}

void test_program_start(struct test_program *p, const char *const argv[],
                        const char *const env[])
{
    memset(p, 0, sizeof(*p));
    /* a socket as its stdin: a write to a dead program must not raise SIGPIPE */
    int in[2], out[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 ||
        pipe2(out, O_CLOEXEC) != 0)
        test_die("cannot make pipes: %s", strerror(errno));
    char **all = test_environ(env);
    pid_t parent = getpid();
    p->pid = fork();
    if (p->pid < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (p->pid == 0)
        become(argv, all, in[1], out[1], parent);
    free(all);
    close(in[1]);
    close(out[1]);
    p->in = in[0];
    p->out = out[0];
}

bool test_program_write(struct test_program *p, const char *line)
{
    char text[4096];
    int n = snprintf(text, sizeof(text), "%s\n", line);
    if (n < 0 || (size_t)n >= sizeof(text))
        test_die("line too long");
    return p->in >= 0 && send(p->in, text, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool take_line(struct test_program *p, char *line, size_t size)
{
    char *end = memchr(p->buf, '\n', p->len);
    if (!end)
        return false;
    *end = '\0';
    snprintf(line, size, "%s", p->buf);
    size_t used = (size_t)(end - p->buf) + 1;
    p->len -= used;
    memmove(p->buf, p->buf + used, p->len);
    return true;
}

bool test_program_read_amid(struct test_program *p, char *line, size_t size,
                            test_progress progress, void *arg, long ms)
{
    enum { LOOK_MS = 100 };
    int64_t last = test_now_ms(), so_far = progress ? progress(arg) : 0;
    while (!take_line(p, line, size)) {
        int64_t now = test_now_ms(), far = progress ? progress(arg) : 0;
        if (far != so_far)
            last = now;
        so_far = far;
        int64_t left = last + test_ms(ms) - now;
        if (progress && left > LOOK_MS)
            left = LOOK_MS;
        struct pollfd pfd = { .fd = p->out, .events = POLLIN };
        int ready = poll(&pfd, 1, left > 0 ? (int)left : 0);
        if (ready == 0 && left <= 0)
            return false;
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        if (p->len == sizeof(p->buf))
            test_die("a helper program wrote too long a line");
        ssize_t n = read(p->out, p->buf + p->len, sizeof(p->buf) - p->len);
        if (n <= 0)
            return false;
        p->len += (size_t)n;
    }
    return true;
}

bool test_program_read(struct test_program *p, char *line, size_t size, long ms)
{
    return test_program_read_amid(p, line, size, NULL, NULL, ms);
}

static bool stopped(void *arg)
{
    struct test_program *p = arg;
    int status;
    return waitpid(p->pid, &status, WUNTRACED | WNOHANG) == p->pid && WIFSTOPPED(status);
}

static bool continued(void *arg)
{
    struct test_program *p = arg;
    int status;
    return waitpid(p->pid, &status, WCONTINUED | WNOHANG) == p->pid &&
           WIFCONTINUED(status);
}

void test_program_stop(struct test_program *p)
{
    if (kill(p->pid, SIGSTOP) != 0 || !test_wait_until(stopped, p, STATE_TIMEOUT_MS))
        test_die("program %d did not stop", (int)p->pid);
}

void test_program_cont(struct test_program *p)
{
    if (kill(p->pid, SIGCONT) != 0 || !test_wait_until(continued, p, STATE_TIMEOUT_MS))
        test_die("program %d did not go on", (int)p->pid);
}

void test_program_kill(struct test_program *p)
{
    if (p->pid <= 0)
        return;
    kill(p->pid, SIGKILL);
    while (waitpid(p->pid, &p->status, 0) < 0 && errno == EINTR)
        continue;
    p->pid = 0;
}

static bool ended(void *arg)
{
    struct test_program *p = arg;
    return waitpid(p->pid, &p->status, WNOHANG) == p->pid;
}

int test_program_wait(struct test_program *p, long ms)
{
    if (p->in >= 0)
        close(p->in);
    p->in = -1;
    if (p->pid > 0 && !test_wait_until(ended, p, ms))
        return -1;
    p->pid = 0;
    return p->status;
}

void test_program_end(struct test_program *p)
{
    if (p->pid == 0 && p->out == 0)
        return;
    test_program_kill(p);
    if (p->in >= 0)
        close(p->in);
    close(p->out);
    memset(p, 0, sizeof(*p));
}
