/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between rlock and the command. It is the parent of the command, and adopts
 * what the command's processes leave behind (PR_SET_CHILD_SUBREAPER), so that nothing of
 * it is out of sight. It tells rlock when the command stops and ends, and when nothing of
 * it is left; it is told which signals go to what it adopted.
 *
 * When rlock is killed, which it learns from the end of their socket and so at any time
 * from the start on, it kills the command's process group and what it adopted. Until
 * these have ended it keeps the crash guard's lock, of which it has a copy (the mapping
 * of run_guard_map): nobody of this host takes rlock for dead before.
 *
 * The command stays a zombie as long as this process lives: its number, which is its
 * process group's, cannot become somebody else's. The others are found by /proc, where it
 * tells, for waitid would always name the zombie first.
 *
 * A child of a process with threads: async-signal-safe functions only. It blocks all
 * signals, and is in a process group of its own: what hits rlock's leaves it alone.
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
    LEAVES_S = 5 /* a command that ends so long after a signal has lived with it */
};

struct supervisor {
    pid_t command;
    int link, signals;
    bool ended;      /* the command itself */
    bool killing;    /* whatever is adopted from now on, too */
    int told_to_end; /* the command, by this signal; 0: it was not. What it leaves soon
                        after is told the same: it may have been about to leave it, as
                        setsid(1) */
    time_t told_at;
    int company; /* as rlock was told */
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

/* Reads "pid (name) state ppid pgrp ..." of proc(5); the name may hold anything. False:
 * it is no child of ours, or not there any more. */
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

/* False: /proc is nothing, or of another namespace of processes, with other numbers. */
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

/* One look at /proc. */
struct view {
    int number;   /* of the signal to be sent; 0: none */
    bool command; /* is seen */
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
        /* the others get it by that of their group */
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

/* All children but the command: those that ended are reaped, the others get the signal
 * (0: none). What there is beside the command, as far as can be seen. */
static int visit_all(const struct supervisor *s, int number)
{
    struct view view = { .number = number };

    int proc = proc_is_ours() ? open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (proc < 0)
        return RUN_COMPANY_UNKNOWN;
    view_children(s, proc, &view);
    /* one that has ended left its children after they were passed, perhaps */
    while (view.reaped && !view.others && lseek(proc, 0, SEEK_SET) == 0) {
        view.reaped = false;
        view_children(s, proc, &view);
    }
    close(proc);
    if (view.others)
        return RUN_COMPANY_THERE;
    /* it is not reaped, so it is there, unless others are hidden (hidepid) */
    return view.command ? RUN_COMPANY_NONE : RUN_COMPANY_UNKNOWN;
}

/* ---- what happens */

static bool command_has(int options, const struct supervisor *s, siginfo_t *ret_info)
{
    ret_info->si_pid = 0;
    return waitid(P_PID, (id_t)s->command, ret_info, options | WNOHANG) == 0 &&
           ret_info->si_pid != 0;
}

/* While the command lives; it does not stand in the way. */
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
        /* what was for a command that has just ended is for what it left: rlock could not
         * know */
        if (all || s->ended || command_has(WEXITED | WNOWAIT, s, &info))
            visit_all(s, word.number);
        else if (word.number == SIGTERM || word.number == SIGINT ||
                 word.number == SIGQUIT) { /* SIGHUP may be to read a file anew */
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

/* What dies leaves its children to this process, which is told of it. */
__attribute__((noreturn)) static void end_all(const struct supervisor *s)
{
    siginfo_t info;

    for (;;) {
        kill(-s->command, SIGKILL);
        /* first: what it leaves is seen then */
        bool ended = command_has(WEXITED | WNOWAIT, s, &info);
        if (visit_all(s, SIGKILL) != RUN_COMPANY_THERE && ended)
            _exit(CLI_OK);
        sleep_until_a_child_changes(s, false);
    }
}

/* ---- its start */

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

/* Nothing else is to be kept open by this process: rlock's end of the command's
 * descriptor, what rlock inherited. The standard ones stay, as messages of a sanitizer
 * should not go elsewhere. */
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
    setpgid(s.command, s.command); /* whoever of the two comes first */
    tell(&s, RUN_WORD_STARTED, s.command, 0);
    keep_two(&s);
    for (;;) {
        look(&s);
        sleep_until_a_child_changes(&s, true);
        if (!take_words(&s))
            end_all(&s);
    }
}
