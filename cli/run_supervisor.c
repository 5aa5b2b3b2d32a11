/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between rlock and the command. It is the parent of the command and adopts
 * the processes that the command leaves behind (PR_SET_CHILD_SUBREAPER), so that none of
 * them gets out of sight. It reports to rlock when the command stops and ends, and when
 * no process is left. rlock sends it the signals for adopted processes.
 *
 * If rlock is killed, the end of their socket shows that at any time from the start on.
 * Then the supervisor kills the command's process group and the adopted processes. Until
 * these have ended it keeps the crash guard's lock, of which it has a copy (the mapping
 * of run_guard_map): no process of this host finds rlock dead before.
 *
 * The command stays a zombie as long as this process lives: its pid, which is the number
 * of its process group, cannot be reused. The other children are found by /proc where
 * that is possible, because waitid would always report the zombie first.
 *
 * It is the child of a process with threads: async-signal-safe functions only. It blocks
 * all signals and has its own process group: signals for rlock's group do not reach it.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STAT_SIZE = 512,
    ENTRIES_SIZE = 8192,
    NUMBER_SIZE = 32,
    FDS_MAX = 65536,
    LEAVES_S = 5 /* a command that ends later than this after a signal has survived it */
};

struct supervisor {
    pid_t command;
    int link, signals;
    bool ended;      /* the command itself */
    bool killing;    /* all later adopted processes, too */
    int told_to_end; /* the signal that asked the command to end; 0: none. Processes that
                        the command leaves soon after get it, too: they may just have left
                        its group, as by setsid(1) */
    time_t told_at;
    int company; /* as reported to rlock */
};

/* One of this process's children. */
struct child {
    pid_t pid, group;
    char state;
};

static void tell(const struct supervisor *s, enum run_word_kind kind, int number,
                 int status)
{
    struct run_word word = { kind, number, status };
    ssize_t n = send(s->link, &word, sizeof(word), MSG_NOSIGNAL);
    (void)n; /* rlock is dead: its end is read next */
}

/* ---- children, by /proc */

static long number_at(const char **at)
{
    long number = 0;

    while (**at == ' ')
        ++*at;
    while (**at >= '0' && **at <= '9')
        number = number * 10 + (*(*at)++ - '0');
    return number;
}

/* Reads "pid (name) state ppid pgrp ..." of proc(5); the name may contain any byte.
 * False: not a child of this process, or not there any more. */
static bool read_child(int proc, const char *name, struct child *ret_child)
{
    char path[NUMBER_SIZE + sizeof("/stat")], text[STAT_SIZE];
    size_t len = strlen(name);

    if (name[0] < '1' || name[0] > '9' || len >= NUMBER_SIZE)
        return false;
    memcpy(path, name, len);
    memcpy(path + len, "/stat", sizeof("/stat"));
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < sizeof(") S "))
        return false;
    ret_child->state = at[2];
    at += sizeof(") S") - 1;
    pid_t parent = (pid_t)number_at(&at);
    ret_child->group = (pid_t)number_at(&at);
    ret_child->pid = (pid_t)number_at(&name);
    return parent == getpid();
}

/* False: /proc is missing, or belongs to another pid namespace with other numbers. */
static bool proc_is_ours(void)
{
    char self[NUMBER_SIZE];
    const char *at = self;
    ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

    if (n <= 0)
        return false;
    self[n] = '\0';
    return number_at(&at) == getpid();
}

struct entry { /* of getdents64(2) */
    uint64_t inode;
    int64_t offset;
    unsigned short len;
    unsigned char type;
    char name[];
};

/* One pass over /proc. */
struct view {
    int number;   /* the signal to send; 0: none */
    bool command; /* was seen */
    bool others;  /* live ones */
    bool reaped;
};

static void visit(const struct supervisor *s, const struct child *child,
                  struct view *view)
{
    siginfo_t info;

    if (child->pid == s->command) {
        view->command = true;
    } else if (child->state == 'Z' || child->state == 'X') {
        view->reaped |= waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG) == 0;
    } else {
        view->others = true;
        /* the others get it by the signal to their group */
        if (view->number != 0 && child->group != s->command)
            kill(child->pid, view->number);
    }
}

static void view_children(const struct supervisor *s, int proc, struct view *view)
{
    union {
        struct entry first;
        char bytes[ENTRIES_SIZE];
    } entries;
    struct child child;
    long len;

    while ((len = syscall(SYS_getdents64, proc, entries.bytes, sizeof(entries))) > 0) {
        for (long at = 0; at < len;) {
            const struct entry *entry = (const void *)(entries.bytes + at);
            at += entry->len;
            if (read_child(proc, entry->name, &child))
                visit(s, &child, view);
        }
    }
}

/* Visits all children but the command: reaps those that have ended, and sends the
 * others the signal (0: none). Returns what there is beside the command, as far as it
 * is visible. */
static int visit_all(const struct supervisor *s, int number)
{
    struct view view = { .number = number };

    int proc = proc_is_ours() ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (proc < 0)
        return RUN_COMPANY_UNKNOWN;
    view_children(s, proc, &view);
    /* A process that has ended may have left its children after they were passed. */
    while (view.reaped && !view.others && lseek(proc, 0, SEEK_SET) == 0) {
        view.reaped = false;
        view_children(s, proc, &view);
    }
    close(proc);
    if (view.others)
        return RUN_COMPANY_THERE;
    /* The command is not reaped, so it must be seen, unless other processes are hidden
     * (hidepid). */
    return view.command ? RUN_COMPANY_NONE : RUN_COMPANY_UNKNOWN;
}

/* ---- events */

static bool command_has(int options, const struct supervisor *s, siginfo_t *ret_info)
{
    ret_info->si_pid = 0;
    return waitid(P_PID, (id_t)s->command, ret_info, options | WNOHANG) == 0 &&
           ret_info->si_pid != 0;
}

/* Reaps while the command lives; the command is not affected. */
static void reap_orphans(const struct supervisor *s)
{
    siginfo_t info = { 0 };

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0 && info.si_pid != s->command) {
        waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        info.si_pid = 0;
    }
}

static time_t seconds(void)
{
    struct timespec now = { 0, 0 };
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void look(struct supervisor *s)
{
    siginfo_t info;
    int number = 0;

    if (!s->ended) {
        reap_orphans(s);
        while (command_has(WSTOPPED, s, &info))
            tell(s, RUN_WORD_STOPPED, info.si_code, info.si_status);
        s->ended = command_has(WEXITED | WNOWAIT, s, &info);
        if (!s->ended)
            return;
        tell(s, RUN_WORD_ENDED, info.si_code, info.si_status);
        if (seconds() - s->told_at < LEAVES_S)
            number = s->told_to_end;
    }
    int company = visit_all(s, s->killing ? SIGKILL : number);
    if (company != s->company)
        tell(s, RUN_WORD_COMPANY, company, 0);
    s->company = company;
}

/* SIGHUP may ask to read a file again. */
static bool asks_to_end(int number)
{
    return number == SIGTERM || number == SIGINT || number == SIGQUIT;
}

/* False: rlock is dead. */
static bool take_words(struct supervisor *s)
{
    struct run_word word;
    siginfo_t info;
    ssize_t n;

    while ((n = recv(s->link, &word, sizeof(word), MSG_DONTWAIT)) ==
           (ssize_t)sizeof(word)) {
        bool all = word.status != 0;
        s->killing |= all && word.number == SIGKILL;
        /* rlock may not know yet that the command has ended. It may have ended by this
         * signal, too: what is no request to end is not repeated to what it left. */
        bool ends = asks_to_end(word.number);
        if (all || (ends && (s->ended || command_has(WEXITED | WNOWAIT, s, &info)))) {
            visit_all(s, word.number);
        } else if (ends) {
            s->told_to_end = word.number;
            s->told_at = seconds();
        }
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void sleep_until_a_child_changes(const struct supervisor *s, bool hears)
{
    struct pollfd fds[] = { { .fd = s->signals, .events = POLLIN },
                            { .fd = s->link, .events = POLLIN } };
    struct signalfd_siginfo got;

    poll(fds, hears ? 2 : 1, -1);
    while (read(s->signals, &got, sizeof(got)) == (ssize_t)sizeof(got))
        continue;
}

/* A dying process leaves its children to this process, and SIGCHLD reports that. */
__attribute__((noreturn)) static void end_all(const struct supervisor *s)
{
    siginfo_t info;

    for (;;) {
        kill(-s->command, SIGKILL);
        /* First, because the processes that it leaves are visible then. */
        bool ended = command_has(WEXITED | WNOWAIT, s, &info);
        if (visit_all(s, SIGKILL) != RUN_COMPANY_THERE && ended)
            _exit(CLI_OK);
        sleep_until_a_child_changes(s, false);
    }
}

/* ---- the start */

static void close_from(int first)
{
    struct rlimit limit = { 0, 0 };
    long left = -1;

#ifdef SYS_close_range
    left = syscall(SYS_close_range, (unsigned)first, ~0U, 0);
#endif
    if (left == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = first; fd < FDS_MAX && (rlim_t)fd < limit.rlim_cur; fd++)
        close(fd);
}

/* Closes all other descriptors: rlock's end of the command's descriptor, and those
 * that rlock inherited. The standard ones stay, for messages of a sanitizer. */
static void keep_two(struct supervisor *s)
{
    enum { LINK = STDERR_FILENO + 1, SIGNALS, FIRST_FREE };

    if (s->signals == LINK)
        s->signals = dup(s->signals);
    if (s->link != LINK)
        dup2(s->link, LINK);
    if (s->signals != SIGNALS)
        dup2(s->signals, SIGNALS);
    fcntl(LINK, F_SETFD, FD_CLOEXEC);
    fcntl(SIGNALS, F_SETFD, FD_CLOEXEC);
    s->link = LINK;
    s->signals = SIGNALS;
    close_from(FIRST_FREE);
}

void run_supervise(int link, void (*become)(void *arg), void *arg)
{
    struct supervisor s = { .link = link, .company = -1 };
    sigset_t all, child;

    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    s.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    s.command = s.signals < 0 ? -1 : fork();
    int code = errno;
    if (s.command == 0)
        become(arg);
    if (s.command < 0) {
        tell(&s, RUN_WORD_STARTED, 0, code);
        _exit(CLI_INTERNAL);
    }
    setpgid(s.command, s.command); /* as the child does: the first one counts */
    tell(&s, RUN_WORD_STARTED, s.command, 0);
    keep_two(&s);
    for (;;) {
        look(&s);
        sleep_until_a_child_changes(&s, true);
        if (!take_words(&s))
            end_all(&s);
    }
}
