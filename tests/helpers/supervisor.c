/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State: only the supervisor process has it, and that has one thread. It is a fork of a
 * program that may have threads and sanitizers, so it allocates nothing before it execs.
 */
#include "supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTER_CHECK_MS = 200, ARGS_MAX = 128, EXIT_NO_EXEC = 127, LOG_MODE = 0600 };

/* The signals that a terminal, Check's time limit or a runner sends to a whole process
 * group. */
static const int group_signals[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGALRM, SIGPIPE,
                                     SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2 };

static struct {
    pid_t server;
    size_t spec_len; /* of the last START that had strings */
    char spec[TEST_SUPERVISOR_MESSAGE_MAX];
} sv;

static void on_group_signals(void (*action)(int))
{
    for (size_t i = 0; i < sizeof(group_signals) / sizeof(group_signals[0]); i++)
        signal(group_signals[i], action);
}

/* In the child of fork(). */
__attribute__((noreturn)) static void become_server(pid_t parent)
{
    const char *argv[ARGS_MAX];
    size_t argc = 0;
    for (size_t at = 0; at < sv.spec_len; at += strlen(sv.spec + at) + 1) {
        char *text = sv.spec + at + 1;
        if (sv.spec[at] == 'a' && argc + 1 < ARGS_MAX)
            argv[argc++] = text;
        else if (sv.spec[at] == 'e')
            putenv(text);
    }
    argv[argc] = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc == 0 || getppid() != parent)
        _exit(EXIT_NO_EXEC);
    on_group_signals(SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    int log = open("log", O_WRONLY | O_CREAT | O_APPEND, LOG_MODE);
    if (null < 0 || log < 0)
        _exit(EXIT_NO_EXEC);
    dup2(null, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(EXIT_NO_EXEC);
}

static void start(void)
{
    pid_t self = getpid();
    sv.server = fork();
    if (sv.server == 0)
        become_server(self);
    if (sv.server < 0)
        sv.server = 0;
}

static void end(int sig)
{
    if (sv.server <= 0)
        return;
    kill(sv.server, sig);
    kill(sv.server, SIGCONT); /* a stopped process does not act on SIGTERM */
    while (waitpid(sv.server, NULL, 0) < 0 && errno == EINTR)
        continue;
    sv.server = 0;
}

static void obey(int control, const char *message, size_t len)
{
    if (message[0] == TEST_SUPERVISOR_START) {
        end(SIGKILL);
        if (len > 1) {
            sv.spec_len = len - 1;
            memcpy(sv.spec, message + 1, sv.spec_len);
        }
        start();
    } else if (message[0] == TEST_SUPERVISOR_TERM) {
        end(SIGTERM);
    } else if (message[0] != TEST_SUPERVISOR_PID) {
        end(SIGKILL);
    }
    if (sv.server > 0 && waitpid(sv.server, NULL, WNOHANG) == sv.server)
        sv.server = 0;
    struct test_supervisor_answer answer = { .pid = sv.server };
    ssize_t n = send(control, &answer, sizeof(answer), MSG_NOSIGNAL);
    (void)n; /* the receiver is gone: the next recv notices */
}

/* By exec rather than a child and an exit: Valgrind would report the test's memory at the
 * fork as lost. */
__attribute__((noreturn)) static void become_rm(const char *dir)
{
    if (chdir("/") == 0)
        execlp("rm", "rm", "-rf", "--", dir, (char *)NULL);
    _exit(EXIT_NO_EXEC);
}

static void serve(int control, pid_t starter)
{
    char message[TEST_SUPERVISOR_MESSAGE_MAX];
    /* Not by PR_SET_PDEATHSIG: the directory must be removed, too. */
    while (getppid() == starter) {
        struct pollfd pfd = { .fd = control, .events = POLLIN };
        if (poll(&pfd, 1, STARTER_CHECK_MS) <= 0)
            continue;
        ssize_t n = recv(control, message, sizeof(message), 0);
        if (n <= 0)
            return;
        if (message[0] == TEST_SUPERVISOR_QUIT)
            return;
        obey(control, message, (size_t)n);
    }
}

void test_supervisor_run(int control, const char *dir, pid_t starter)
{
    /* its own process group: a signal to the test's group must not stop the cleaning
     * up */
    setpgid(0, 0);
    on_group_signals(SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(dir) == 0)
        serve(control, starter);
    end(SIGKILL);
    become_rm(dir);
}
