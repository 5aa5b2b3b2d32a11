/* SPDX-License-Identifier: Apache-2.0 */
/* The command of `rlock run`: its start, and its process group. Thread: main. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TOKEN_SIZE = sizeof("RLOCK_TOKEN=") + 20, MAPS_MAX = 4, PATH_SIZE = 4096 };

/* The mappings that keep the crash guard's lock on this process's live file. */
struct guard {
    size_t count;
    struct {
        void *at;
        size_t len;
    } maps[MAPS_MAX];
};

/* What the child needs; all of it is prepared before the fork. */
struct start {
    const struct run_options *options;
    struct run_terminal *terminal;
    char **env;
    int report, lines;
    struct guard guard;
    pid_t supervisor;
};

static bool is_of(const char *variable, const char *name)
{
    size_t len = strlen(name);
    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

/* The environment with RLOCK_NAME and RLOCK_TOKEN (0: without, whatever an outer run
 * has set); NULL: no memory. One allocation. */
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
    if (token != 0)
        env[kept++] = token_text;
    env[kept] = NULL;
    return env;
}

/* ---- in the child of fork: async-signal-safe functions only */

/* The report's descriptor must not have the number of the command's descriptor. */
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

static void advise(const struct guard *guard, int advice)
{
    for (size_t i = 0; i < guard->count; i++)
        madvise(guard->maps[i].at, guard->maps[i].len, advice);
}

static void become_command(void *arg)
{
    struct start *start = arg;

    /* First: the supervisor may be killed at any time. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start->supervisor)
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
    (void)n; /* no process is left to report it to */
    _exit(code == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

__attribute__((noreturn)) static void become_supervisor(struct start *start, int link)
{
    start->supervisor = getpid();
    advise(&start->guard, MADV_DONTFORK); /* the command must not inherit the copy */
    run_supervise(link, become_command, start);
}

/* ---- in rlock */

/* The kernel's lock lasts as long as one of the mappings. The library hides its
 * mapping from children. The supervisor's child must have one, so that other processes
 * find this process dead only after the supervisor has ended the command. */
static void find_guard(struct guard *ret_guard)
{
    char dir[PATH_SIZE], real[PATH_SIZE], line[2 * PATH_SIZE];
    unsigned long from, to;
    int at;

    ret_guard->count = 0;
    FILE *maps = rlock_getrundir(dir, sizeof(dir)) == 0 && realpath(dir, real)
                     ? fopen("/proc/self/maps", "re")
                     : NULL;
    if (!maps)
        return;
    size_t len = strlen(real);
    while (ret_guard->count < MAPS_MAX && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &at) == 2 &&
            strncmp(line + at, real, len) == 0 && line[at + (int)len] == '/') {
            ret_guard->maps[ret_guard->count].at = (void *)from;
            ret_guard->maps[ret_guard->count++].len = to - from;
        }
    fclose(maps);
}

/* The supervisor's first word. Returns an errno value. */
static int hear_of_start(struct run_command *command)
{
    struct run_word word;
    ssize_t n;

    do
        n = recv(command->link, &word, sizeof(word), 0);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(word))
        return ESRCH; /* it was killed */
    command->pid = word.number;
    return word.number > 0 ? 0 : word.status;
}

static int start_supervisor(struct run_command *command, struct start *start)
{
    int link[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        return errno;
    /* If the supervisor is killed, rlock adopts its children. */
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    find_guard(&start->guard);
    advise(&start->guard, MADV_DOFORK);
    command->supervisor = fork();
    int code = errno;
    if (command->supervisor == 0) {
        close(link[0]);
        become_supervisor(start, link[1]);
    }
    advise(&start->guard, MADV_DONTFORK);
    close(link[1]);
    command->link = link[0];
    if (command->supervisor > 0) {
        code = hear_of_start(command);
        if (code == 0)
            return 0;
        waitpid(command->supervisor, NULL, 0);
    }
    close(link[0]);
    return code;
}

int run_command_start(struct run_command *command, const struct run_options *options,
                      uint64_t token, struct run_terminal *terminal, int lines)
{
    int report[2];
    struct start start = { .options = options,
                           .terminal = terminal,
                           .env = make_environ(options->name, token),
                           .lines = lines };

    if (!start.env)
        return ENOMEM;
    if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
        int code = errno;
        free(start.env);
        return code;
    }
    start.report = report[1];
    command->report = report[0];
    int code = start_supervisor(command, &start);
    close(report[1]);
    free(start.env);
    if (code != 0)
        close(report[0]);
    else
        terminal->given = terminal->wanted;
    return code;
}

int run_command_signal(const struct run_command *command, int number, bool all)
{
    struct run_word word = { .kind = RUN_WORD_SIGNAL, .number = number, .status = all };
    int code = kill(-command->pid, number) == 0 ? 0 : errno;

    if (command->link >= 0) {
        ssize_t n = send(command->link, &word, sizeof(word), MSG_NOSIGNAL);
        (void)n; /* it is dead; its end is read next */
    }
    return code;
}

bool run_command_word(struct run_command *command, struct run_word *ret_word)
{
    ssize_t n = command->link < 0
                    ? -1
                    : recv(command->link, ret_word, sizeof(*ret_word), MSG_DONTWAIT);

    if (n == 0) { /* the command has died with it, unless another process adopted it */
        close(command->link);
        command->link = -1;
        kill(-command->pid, SIGKILL);
    }
    return n == (ssize_t)sizeof(*ret_word);
}

void run_command_close(struct run_command *command)
{
    if (command->link >= 0) {
        kill(command->supervisor, SIGKILL); /* it may be stopped */
        close(command->link);
    }
    command->link = -1;
    waitpid(command->supervisor, NULL, 0);
    waitpid(command->pid, NULL, 0); /* rlock has adopted it */
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
