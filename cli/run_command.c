/* SPDX-License-Identifier: Apache-2.0 */
/* The command of `rlock run`: its start, and its process group. Thread: main, for the
 * command dies with the thread that forked it. */
#include "run.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern char **environ;

enum { TOKEN_SIZE = sizeof("RLOCK_TOKEN=") + 20, STAT_SIZE = 512 };

/* What the child needs; all of it is made before the fork. */
struct start {
    const struct run_options *options;
    struct run_terminal *terminal;
    char **env;
    pid_t parent;
    int report, lines;
};

static bool is_of(const char *variable, const char *name)
{
    size_t len = strlen(name);
    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

/* The environment with RLOCK_NAME and RLOCK_TOKEN; NULL: no memory. One allocation. */
static char **make_environ(const char *name, uint64_t token)
{
    size_t count = 0, kept = 0, name_size = sizeof("RLOCK_NAME=") + strlen(name);

    while (environ[count])
        count++;
    char **env = malloc((count + 3) * sizeof(*env) + name_size + TOKEN_SIZE);
    if (!env)
        return NULL;
    char *name_text = (char *)(env + count + 3), *token_text = name_text + name_size;
    for (size_t i = 0; i < count; i++)
        if (!is_of(environ[i], "RLOCK_NAME") && !is_of(environ[i], "RLOCK_TOKEN"))
            env[kept++] = environ[i];
    snprintf(name_text, name_size, "RLOCK_NAME=%s", name);
    snprintf(token_text, TOKEN_SIZE, "RLOCK_TOKEN=%" PRIu64, token);
    env[kept++] = name_text;
    env[kept++] = token_text;
    env[kept] = NULL;
    return env;
}

/* ---- in the child of fork: only what is async-signal-safe */

/* The report must not lie where the command's descriptor is to be. */
static int put_in_place(struct start *start)
{
    int fd = start->options->fd;

    if (fd < 0)
        return 0;
    if (start->report == fd)
        start->report = fcntl(start->report, F_DUPFD_CLOEXEC, fd + 1);
    if (start->lines == fd)
        return fcntl(fd, F_SETFD, 0);
    return dup2(start->lines, fd);
}

__attribute__((noreturn)) static void become_command(struct start *start)
{
    /* first: rlock may be killed at any time */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->parent)
        _exit(CLI_INTERNAL);
    setpgid(0, 0);
    if (start->terminal->wanted)
        run_terminal_give(start->terminal, getpid());
    if (put_in_place(start) >= 0) {
        run_signals_as_found();
        environ = start->env;
        execvp(start->options->command[0], start->options->command);
    }
    int code = errno;
    ssize_t n = write(start->report, &code, sizeof(code));
    (void)n; /* nobody is left to be told */
    _exit(code == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

/* ---- in rlock */

int run_command_start(struct run_command *command, const struct run_options *options,
                      uint64_t token, struct run_terminal *terminal, int lines)
{
    int report[2];
    struct start start = { options,  terminal, make_environ(options->name, token),
                           getpid(), -1,       lines };

    if (!start.env)
        return ENOMEM;
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
        int code = errno;
        free(start.env);
        return code;
    }
    start.report = report[1];
    command->report = report[0];
    command->pid = fork();
    int code = errno;
    if (command->pid == 0)
        become_command(&start);
    close(report[1]);
    free(start.env);
    if (command->pid < 0) {
        close(report[0]);
        return code;
    }
    /* whoever of the two comes first: signals may be forwarded from now on */
    setpgid(command->pid, command->pid);
    terminal->given = terminal->wanted;
    return 0;
}

int run_command_failure(const struct run_command *command,
                        const struct run_options *options)
{
    int code;

    if (read(command->report, &code, sizeof(code)) != (ssize_t)sizeof(code))
        return -1;
    cli_complain("cannot run %s: %s", options->command[0], strerror(code));
    return code == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

/* Reads "pid (name) state ppid pgrp ..." of proc(5); the name may hold anything. */
static bool is_alive_in_group(const char *pid, pid_t group)
{
    char path[sizeof("/proc//stat") + 32], text[STAT_SIZE], state;
    int pgrp;

    snprintf(path, sizeof(path), "/proc/%.31s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *after = strrchr(text, ')');
    return after && sscanf(after, ") %c %*d %d", &state, &pgrp) == 2 && pgrp == group &&
           state != 'Z' && state != 'X';
}

/* False: it is nothing, or of another namespace of processes, with other numbers. */
static bool proc_is_ours(void)
{
    char self[32];
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    if (n <= 0)
        return false;
    self[n] = '\0';
    return strtol(self, NULL, 10) == getpid();
}

bool run_command_may_have_company(const struct run_command *command)
{
    DIR *proc = proc_is_ours() ? opendir("/proc") : NULL;
    bool found = false, tells = false;

    if (!proc)
        return true;
    for (const struct dirent *e; !found && (e = readdir(proc)) != NULL;) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        /* not reaped yet, so it is there, unless others are hidden (hidepid) */
        if (strtol(e->d_name, NULL, 10) == command->pid)
            tells = true;
        else
            found = is_alive_in_group(e->d_name, command->pid);
    }
    closedir(proc);
    return found || !tells;
}
