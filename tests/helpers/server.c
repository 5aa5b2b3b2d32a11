/* SPDX-License-Identifier: Apache-2.0 */
/* State: in the caller's struct, and in its supervisor (supervisor.c). */
#include "server.h"

#include "die.h"
#include "port.h"
#include "rundir.h"
#include "supervisor.h"
#include "wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    START_TIMEOUT_MS = 20000,
    ANSWER_TIMEOUT_MS = 20000,
    PROBE_TIMEOUT_MS = 1000,
    TMPDIR_LEN_MAX = 40 /* so that the socket's path stays below 108 bytes */
};

/* ---- where: program and directory */

static const char *find_program(char *buf, size_t size)
{
    const char *chosen = getenv("RLOCK_TEST_SERVER");
    if (chosen && *chosen)
        return chosen;
    static const char *const names[] = { "redis-server", "valkey-server" };
    const char *path = getenv("PATH");
    char dirs[4096];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(dirs, sizeof(dirs), "%s:/usr/bin:/usr/local/bin", path ? path : "");
        char *rest = dirs;
        for (char *dir; (dir = strsep(&rest, ":"));) {
            int n = snprintf(buf, size, "%s/%s", dir, names[i]);
            if (*dir && n > 0 && (size_t)n < size && access(buf, X_OK) == 0)
                return buf;
        }
    }
    test_die("no redis-server or valkey-server; set RLOCK_TEST_SERVER");
}

int test_server_version(void)
{
    static int version;
    char program[TEST_SUPERVISOR_MESSAGE_MAX / 2], text[512];
    int major, minor, patch;

    if (version)
        return version;
    snprintf(text, sizeof(text), "'%s' --version",
             find_program(program, sizeof(program)));
    FILE *out = popen(text, "re");
    if (!out || !fgets(text, sizeof(text), out) || pclose(out) != 0)
        test_die("the server's program does not tell its version");
    const char *at = strstr(text, " v=");
    if (!at || sscanf(at, " v=%d.%d.%d", &major, &minor, &patch) != 3)
        test_die("no version: %s", text);
    version = major * 10000 + minor * 100 + patch;
    return version;
}

/* A server that has no TLS may show the settings of TLS all the same (Redis 8.2.3, Valkey
 * 9.1.2). One that has it misses its certificate; none of them starts. */
bool test_server_has_tls(void)
{
    char program[TEST_SUPERVISOR_MESSAGE_MAX / 2], text[512];
    bool has = false;

    snprintf(text, sizeof(text), "'%s' --port 0 --tls-port 1 2>&1",
             find_program(program, sizeof(program)));
    FILE *out = popen(text, "re");
    if (!out)
        test_die("cannot run the server's program");
    while (fgets(text, sizeof(text), out))
        has |= strstr(text, "No tls-cert-file") != NULL;
    pclose(out);
    return has;
}

bool test_server_bounds_scripts(const char *test)
{
    bool bounds = test_server_version() > 60205;
    if (!bounds && test)
        printf("skipped: %s: scripts get no NOREPLICAS here\n", test);
    return bounds;
}

const char *test_server_bus_option(uint16_t bus, char ret_value[8])
{
    bool has_own = test_server_version() >= 70000;

    snprintf(ret_value, 8, "%u", has_own ? bus : bus - 10000U);
    return has_own ? "--cluster-port" : "--port";
}

static void make_dir(struct test_server *s)
{
    const char *tmp = getenv("TMPDIR");
    if (!tmp || *tmp != '/' || strlen(tmp) > TMPDIR_LEN_MAX)
        tmp = "/tmp";
    snprintf(s->dir, sizeof(s->dir), "%s/rlkXXXXXX", tmp);
    if (!mkdtemp(s->dir))
        test_die("cannot make %s: %s", s->dir, strerror(errno));
}

/* ---- the supervisor */

static bool ask(const struct test_server *s, const void *message, size_t len,
                struct test_supervisor_answer *ret_answer)
{
    if (send(s->control, message, len, MSG_NOSIGNAL) != (ssize_t)len)
        return false;
    struct pollfd pfd = { .fd = s->control, .events = POLLIN };
    int ready;
    do
        ready = poll(&pfd, 1, (int)test_ms(ANSWER_TIMEOUT_MS));
    while (ready < 0 && errno == EINTR);
    return ready == 1 && recv(s->control, ret_answer, sizeof(*ret_answer), 0) ==
                             (ssize_t)sizeof(*ret_answer);
}

static pid_t command(const struct test_server *s, char letter)
{
    struct test_supervisor_answer answer;
    if (!ask(s, &letter, 1, &answer))
        test_die("the server's supervisor does not answer");
    return answer.pid;
}

struct spec {
    char text[TEST_SUPERVISOR_MESSAGE_MAX];
    size_t len;
};

static void spec_add(struct spec *spec, char kind, const char *value)
{
    size_t n = strlen(value) + 1;
    if (spec->len + 1 + n > sizeof(spec->text))
        test_die("the server's arguments are too long");
    spec->text[spec->len++] = kind;
    memcpy(spec->text + spec->len, value, n);
    spec->len += n;
}

/* A file in the server's directory that is its configuration; "": none. */
static const char *conf_of(const struct test_server *s, char *buf, size_t size)
{
    snprintf(buf, size, "%s/conf", s->dir);
    return access(buf, F_OK) == 0 ? buf : "";
}

static void spec_make(struct spec *spec, const struct test_server *s,
                      const char *const args[], const char *const env[])
{
    char conf[TEST_PATH_MAX];
    char program[TEST_SUPERVISOR_MESSAGE_MAX / 2], port[16];
    snprintf(port, sizeof(port), "%u", (unsigned)s->port);
    const char *const fixed[] = { "--port", port, "--bind", "127.0.0.1", "--unixsocket",
                                  s->path, "--daemonize", "no", "--save", "",
                                  "--appendonly", "no", "--supervised", "no", "--dir",
                                  s->dir,
                                  /* a replica need not wait 5 s for other replicas */
                                  "--repl-diskless-sync-delay", "0" };
    spec->text[0] = TEST_SUPERVISOR_START;
    spec->len = 1;
    spec_add(spec, 'a', find_program(program, sizeof(program)));
    if (conf_of(s, conf, sizeof(conf))[0])
        spec_add(spec, 'a', conf);
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        spec_add(spec, 'a', fixed[i]);
    for (size_t i = 0; args && args[i]; i++)
        spec_add(spec, 'a', args[i]);
    for (size_t i = 0; env && env[i]; i++)
        spec_add(spec, 'e', env[i]);
}

/* ---- is it up */

static bool answers_ping(void *arg)
{
    const struct test_server *s = arg;
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        test_die("socket: %s", strerror(errno));
    char reply[16] = "";
    static const char ping[] = "PING\r\n";
    struct pollfd pfd = { .fd = fd, .events = POLLIN };
    bool up = connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
              send(fd, ping, sizeof(ping) - 1, MSG_NOSIGNAL) > 0 &&
              poll(&pfd, 1, PROBE_TIMEOUT_MS) == 1 &&
              recv(fd, reply, sizeof(reply) - 1, 0) > 0;
    close(fd);
    /* -NOAUTH is an answer, too; while the server loads data it answers -LOADING */
    return up && strncmp(reply, "-LOADING", strlen("-LOADING")) != 0;
}

static bool up_or_ended(void *arg)
{
    return answers_ping(arg) || command(arg, TEST_SUPERVISOR_PID) == 0;
}

static void die_with_log(const struct test_server *s)
{
    char path[TEST_PATH_MAX], tail[400] = "";
    snprintf(path, sizeof(path), "%s/log", s->dir);
    FILE *log = fopen(path, "re");
    if (log) {
        if (fseek(log, -(long)(sizeof(tail) - 1), SEEK_END) != 0)
            rewind(log);
        tail[fread(tail, 1, sizeof(tail) - 1, log)] = '\0';
        fclose(log);
    }
    test_die("the server does not start; its log ends: %s", tail);
}

static void await_start(struct test_server *s)
{
    if (!test_wait_until(up_or_ended, s, START_TIMEOUT_MS) || !answers_ping(s))
        die_with_log(s);
}

/* ---- public */

void test_server_start(struct test_server *s, const char *const args[])
{
    test_server_start_env(s, args, NULL);
}

static void start_in_dir(struct test_server *s, const char *const args[],
                         const char *const env[])
{
    int reserved = test_port_reserve("127.0.0.1", &s->port);
    snprintf(s->path, sizeof(s->path), "%s/s", s->dir);
    snprintf(s->url, sizeof(s->url), "unix://%s", s->path);
    snprintf(s->tcp_url, sizeof(s->tcp_url), "redis://127.0.0.1:%u", (unsigned)s->port);
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        test_die("socketpair: %s", strerror(errno));
    s->starter = getpid();
    s->supervisor = fork();
    if (s->supervisor < 0)
        test_die("cannot fork: %s", strerror(errno));
    if (s->supervisor == 0) { /* the supervisor has the descriptor of the reserved port */
        close(ends[0]);
        test_supervisor_run(ends[1], s->dir, s->starter);
    }
    close(reserved);
    close(ends[1]);
    s->control = ends[0];

    struct spec spec;
    struct test_supervisor_answer answer;
    spec_make(&spec, s, args, env);
    if (!ask(s, spec.text, spec.len, &answer))
        test_die("the server's supervisor does not answer");
    await_start(s);
}

void test_server_start_env(struct test_server *s, const char *const args[],
                           const char *const env[])
{
    memset(s, 0, sizeof(*s));
    make_dir(s);
    start_in_dir(s, args, env);
}

void test_server_start_sentinel(struct test_server *s, const char *text)
{
    static const char *const args[] = { "--sentinel", NULL };
    char path[TEST_PATH_MAX];

    memset(s, 0, sizeof(*s));
    make_dir(s);
    snprintf(path, sizeof(path), "%s/conf", s->dir);
    FILE *conf = fopen(path, "we");
    if (!conf || fputs(text, conf) < 0 || fclose(conf) != 0)
        test_die("cannot write %s: %s", path, strerror(errno));
    start_in_dir(s, args, NULL);
}

void test_server_stop(struct test_server *s)
{
    if (s->supervisor <= 0)
        return;
    const char quit = TEST_SUPERVISOR_QUIT;
    ssize_t n = send(s->control, &quit, 1, MSG_NOSIGNAL);
    (void)n; /* the supervisor has ended already: fine */
    close(s->control);
    while (getpid() == s->starter && waitpid(s->supervisor, NULL, 0) < 0 &&
           errno == EINTR)
        continue;
    memset(s, 0, sizeof(*s));
}

pid_t test_server_pid(const struct test_server *s)
{
    return command(s, TEST_SUPERVISOR_PID);
}

void test_server_kill(struct test_server *s)
{
    command(s, TEST_SUPERVISOR_KILL);
}

void test_server_shutdown(struct test_server *s)
{
    command(s, TEST_SUPERVISOR_TERM);
}

void test_server_launch(struct test_server *s)
{
    command(s, TEST_SUPERVISOR_START);
}

bool test_server_is_up(struct test_server *s)
{
    bool up = answers_ping(s);
    if (!up && command(s, TEST_SUPERVISOR_PID) == 0)
        die_with_log(s);
    return up;
}

void test_server_restart(struct test_server *s)
{
    test_server_launch(s);
    await_start(s);
}

void test_server_restart_args(struct test_server *s, const char *const args[])
{
    struct spec spec;
    struct test_supervisor_answer answer;
    spec_make(&spec, s, args, NULL);
    if (!ask(s, spec.text, spec.len, &answer))
        test_die("the server's supervisor does not answer");
    await_start(s);
}

static bool is_stopped(void *arg)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)*(const pid_t *)arg);
    FILE *stat = fopen(path, "re");
    if (!stat)
        return false;
    char *line = fgets(text, sizeof(text), stat);
    fclose(stat);
    const char *state = line ? strrchr(line, ')') : NULL; /* "pid (name) T ..." */
    return state && strncmp(state, ") T", strlen(") T")) == 0;
}

void test_server_pause(struct test_server *s)
{
    pid_t pid = test_server_pid(s);
    if (pid <= 0 || kill(pid, SIGSTOP) != 0 ||
        !test_wait_until(is_stopped, &pid, ANSWER_TIMEOUT_MS))
        test_die("the server does not stop");
}

void test_server_resume(struct test_server *s)
{
    pid_t pid = test_server_pid(s);
    if (pid > 0)
        kill(pid, SIGCONT);
}

/* Sends inline commands and waits for one "+OK" to each. */
static bool wipe(const struct test_server *s)
{
    /* a test that failed half-way may have left these settings changed */
    static const char commands[] = "CONFIG SET maxmemory 0\r\n"
                                   "CONFIG SET min-replicas-to-write 0\r\n"
                                   "FLUSHALL\r\nSCRIPT FLUSH\r\n";
    static const char wanted[] = "+OK\r\n+OK\r\n+OK\r\n+OK\r\n";
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", s->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char reply[sizeof(wanted)] = "";
    size_t have = 0;
    if (fd >= 0 && connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 &&
        send(fd, commands, sizeof(commands) - 1, MSG_NOSIGNAL) > 0) {
        ssize_t n;
        while (have < sizeof(wanted) - 1 &&
               (n = recv(fd, reply + have, sizeof(wanted) - 1 - have, 0)) > 0)
            have += (size_t)n;
    }
    if (fd >= 0)
        close(fd);
    return strcmp(reply, wanted) == 0;
}

void test_server_reset(struct test_server *s)
{
    test_rundir_own_if_any();
    test_server_resume(s);
    if (test_server_pid(s) == 0)
        test_server_restart(s);
    if (!wipe(s))
        test_die("the server cannot be emptied");
}
