/* SPDX-License-Identifier: Apache-2.0 */
/* See cli.h. */
#include "cli.h"

#include "die.h"
#include "program.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NO_EXEC = 127, GLANCE_MS = 5, ENV_MAX = 32 };

/* libtool's directory for the real program and the library */
#define LIBTOOL_DIR ".libs"

/* The program itself instead of libtool's shell script that runs it, which takes ten
 * times as long. A static program has no such script. */
const char *cli_path(void)
{
    static char path[PATH_MAX];
    static const char *const names[] = { "cli/" LIBTOOL_DIR "/lt-rlock",
                                         "cli/" LIBTOOL_DIR "/rlock", "cli/rlock" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        test_build_path(path, sizeof(path), names[i]);
        if (access(path, X_OK) == 0)
            break;
    }
    return path;
}

/* The environment variable that lets the program find the library. */
static const char *library_path(void)
{
    static char variable[2 * PATH_MAX];
    char dir[PATH_MAX];
    const char *others = getenv("LD_LIBRARY_PATH");
    test_build_path(dir, sizeof(dir), LIBTOOL_DIR);
    snprintf(variable, sizeof(variable), "LD_LIBRARY_PATH=%s%s%s", dir,
             others && *others ? ":" : "", others ? others : "");
    return variable;
}

/* ---- the start */

static const char *const of_rlock[] = { "RLOCK_URL=", "RLOCK_USER=", "RLOCK_PASSWORD=",
                                        "RLOCK_NAME=", "RLOCK_TOKEN=" };

static bool is_among(const char *variable, const char *const env[])
{
    for (size_t i = 0; env && env[i]; i++)
        if (strcmp(env[i], variable) == 0)
            return true;
    return false;
}

static bool is_of_rlock(const char *variable)
{
    for (size_t i = 0; i < sizeof(of_rlock) / sizeof(of_rlock[0]); i++)
        if (strncmp(variable, of_rlock[i], strlen(of_rlock[i])) == 0)
            return true;
    return false;
}

static char **make_environ(const char *const env[])
{
    static const char conf[] = "RLOCK_CONF=";
    const char *with[ENV_MAX] = { library_path() };
    size_t n = 1;
    bool has_conf = false;
    for (size_t i = 0; env && env[i]; i++) {
        if (n + 2 >= ENV_MAX)
            test_die("too many variables");
        has_conf = has_conf || strncmp(env[i], conf, strlen(conf)) == 0;
        with[n++] = env[i];
    }
    if (!has_conf)
        with[n] = "RLOCK_CONF=/dev/null"; /* not the host's file */
    char **all = test_environ(with);
    size_t kept = 0;
    for (size_t i = 0; all[i]; i++)
        if (!is_of_rlock(all[i]) || is_among(all[i], env))
            all[kept++] = all[i];
    all[kept] = NULL;
    return all;
}

/* Runs in the child of fork(): uses async-signal-safe functions only. */
__attribute__((noreturn)) static void become(const char *const argv[], char **env,
                                             pid_t parent)
{
    sigset_t none;
    /* a program in the background, or under nohup, starts with some signals ignored */
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_NO_EXEC);
    const char *path = strcmp(argv[0], "rlock") == 0 ? cli_path() : argv[0];
    execvpe(path, (char *const *)(uintptr_t)argv, env);
    _exit(EXIT_NO_EXEC);
}

static void begin(struct cli *c)
{
    memset(c, 0, sizeof(*c));
    c->in = c->out.fd = c->err.fd = -1;
    cli_path(); /* found here, because the child must not */
}

void cli_start(struct cli *c, const char *const argv[], const char *const env[])
{
    int in[2], out[2], err[2];

    begin(c);
    /* a socket, so that a write to a dead program raises no SIGPIPE */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 ||
        pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        test_die("cannot make pipes: %s", strerror(errno));
    char **all = make_environ(env);
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (c->pid == 0) {
        if (dup2(in[1], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0 ||
            dup2(err[1], STDERR_FILENO) < 0)
            _exit(EXIT_NO_EXEC);
        become(argv, all, parent);
    }
    free(all);
    close(in[1]);
    close(out[1]);
    close(err[1]);
    c->in = in[0];
    c->out.fd = out[0];
    c->err.fd = err[0];
}

/* Not by forkpty: Valgrind does not know one of its ioctl requests. */
static int open_terminal(int rows, int columns, char *ret_path, size_t size)
{
    struct winsize window = { .ws_row = (unsigned short)rows,
                              .ws_col = (unsigned short)columns };
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || grantpt(fd) != 0 || unlockpt(fd) != 0 ||
        ptsname_r(fd, ret_path, size) != 0 || ioctl(fd, TIOCSWINSZ, &window) != 0)
        test_die("cannot make a terminal: %s", strerror(errno));
    return fd;
}

/* Runs in the child: starts a session and makes the terminal its controlling one by
 * opening it. */
static void take_terminal(const char *path)
{
    setsid();
    int fd = open(path, O_RDWR);
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        if (dup2(fd, i) < 0)
            _exit(EXIT_NO_EXEC);
    if (fd > STDERR_FILENO)
        close(fd);
}

void cli_start_pty(struct cli *c, const char *const argv[], const char *const env[],
                   int rows, int columns)
{
    const char *with[ENV_MAX] = { "TERM=xterm" };
    char path[64];

    begin(c);
    c->is_pty = true;
    for (size_t i = 0; env && env[i]; i++) {
        if (i + 2 >= ENV_MAX)
            test_die("too many variables");
        with[i + 1] = env[i];
    }
    char **all = make_environ(with);
    pid_t parent = getpid();
    c->in = c->out.fd = open_terminal(rows, columns, path, sizeof(path));
    c->pid = fork();
    if (c->pid < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (c->pid == 0) {
        take_terminal(path);
        become(argv, all, parent);
    }
    free(all);
}

/* ---- input */

bool cli_type(struct cli *c, const char *text)
{
    size_t len = strlen(text);
    if (c->in < 0)
        return false;
    ssize_t n =
        c->is_pty ? write(c->in, text, len) : send(c->in, text, len, MSG_NOSIGNAL);
    return n == (ssize_t)len;
}

void cli_close_in(struct cli *c)
{
    if (c->in >= 0 && !c->is_pty) {
        close(c->in);
        c->in = -1;
    }
}

void cli_resize(struct cli *c, int rows, int columns)
{
    struct winsize size = { .ws_row = (unsigned short)rows,
                            .ws_col = (unsigned short)columns };
    if (ioctl(c->in, TIOCSWINSZ, &size) != 0)
        test_die("TIOCSWINSZ: %s", strerror(errno));
}

/* ---- output */

static void at_end(struct cli *c, struct cli_text *t)
{
    if (c->is_pty)
        c->in = -1;
    close(t->fd);
    t->fd = -1;
}

static void take(struct cli *c, struct cli_text *t)
{
    char lost[4096];
    size_t room = sizeof(t->text) - 1 - t->len;
    ssize_t n =
        room > 0 ? read(t->fd, t->text + t->len, room) : read(t->fd, lost, sizeof(lost));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) { /* EIO: no process has the terminal open any more */
        at_end(c, t);
    } else if (room > 0) {
        t->len += (size_t)n;
        t->text[t->len] = '\0';
    }
}

/* False: nothing came within `ms`, or both outputs have ended. */
static bool look(struct cli *c, int ms)
{
    struct pollfd fds[] = { { .fd = c->out.fd, .events = POLLIN },
                            { .fd = c->err.fd, .events = POLLIN } };
    if ((c->out.fd < 0 && c->err.fd < 0) || poll(fds, 2, ms) <= 0)
        return false;
    if (fds[0].revents != 0)
        take(c, &c->out);
    if (fds[1].revents != 0)
        take(c, &c->err);
    return true;
}

/* Whether `what` is there, with the rest of its line if `whole`. */
static bool has(const struct cli_text *t, const char *what, bool whole)
{
    const char *at = memmem(t->text, t->len, what, strlen(what));
    return at && (!whole || memchr(at, '\n', (size_t)(t->text + t->len - at)));
}

static bool hears(struct cli *c, struct cli_text *t, const char *what, bool whole)
{
    int64_t end = test_now_ms() + test_ms(CLI_WAIT_MS);
    for (;;) {
        bool last = test_now_ms() >= end || t->fd < 0;
        if (has(t, what, whole))
            return true;
        if (last)
            return false;
        look(c, GLANCE_MS);
    }
}

bool cli_says(struct cli *c, const char *text)
{
    return hears(c, &c->out, text, false);
}

bool cli_says_line(struct cli *c, const char *begin)
{
    return hears(c, &c->out, begin, true);
}

bool cli_complains(struct cli *c, const char *text)
{
    return hears(c, c->is_pty ? &c->out : &c->err, text, false);
}

void cli_collect(struct cli *c)
{
    while (look(c, 0))
        continue;
}

static void forget(struct cli_text *t)
{
    t->len = 0;
    t->text[0] = '\0';
}

void cli_forget(struct cli *c)
{
    forget(&c->out);
    forget(&c->err);
}

/* ---- the end */

int cli_ends(struct cli *c, long ms)
{
    int64_t end = test_now_ms() + test_ms(ms);
    while (c->pid > 0) {
        bool last = test_now_ms() >= end;
        if (waitpid(c->pid, &c->status, WNOHANG) == c->pid)
            c->pid = 0;
        else if (last)
            return CLI_STILL_RUNS;
        else if (!look(c, GLANCE_MS))
            test_pause_ms(1);
    }
    cli_collect(c);
    return WIFSIGNALED(c->status) ? -WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

int cli_does(struct cli *c, const char *const argv[], const char *const env[])
{
    cli_start(c, argv, env);
    cli_close_in(c);
    return cli_ends(c, CLI_WAIT_MS);
}

void cli_stop(struct cli *c)
{
    if (c->pid == 0 && c->in == 0 && c->out.fd == 0)
        return;
    if (c->pid > 0) {
        kill(c->pid, SIGKILL);
        while (waitpid(c->pid, &c->status, 0) < 0 && errno == EINTR)
            continue;
        c->pid = 0;
    }
    if (c->out.fd >= 0)
        at_end(c, &c->out);
    if (c->err.fd >= 0)
        at_end(c, &c->err);
    if (c->in >= 0)
        close(c->in);
    memset(c, 0, sizeof(*c));
}
