/* SPDX-License-Identifier: Apache-2.0 */
/* See forked.h. Parent and child share the page with the report. */
#include "forked.h"

#include "die.h"
#include "wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 30000 };

static bool is_child;

#ifdef __SANITIZE_ADDRESS__
/* LeakSanitizer would report memory that the parent's threads were using as lost. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return is_child;
}
#endif

bool forked_can_exit(const char *test)
{
    const char *preloaded = getenv("LD_PRELOAD");
    if (!preloaded || !strstr(preloaded, "vgpreload"))
        return true;
    printf("skipped: %s: Valgrind would look for leaks in the copy of a memory\n", test);
    fflush(stdout);
    return false;
}

void forked_is_child(void)
{
    is_child = true;
}

static void end_as(enum forked_end end)
{
    switch (end) {
    case FORKED_EXIT:
        exit(0);
    case FORKED_EXIT_NOW:
        _exit(0);
    case FORKED_KILL:
        /* from another process: Valgrind looks for leaks in a process that raises the
         * signal itself */
        (void)!system("kill -KILL $PPID");
        break;
    case FORKED_THREAD:
        pthread_exit(NULL);
    case FORKED_VANISH:
        execl("/bin/true", "true", (char *)NULL);
        break;
    }
    abort();
}

void forked_start_by(struct forked *f, pid_t (*how)(void),
                     int (*body)(struct forked_report *report, void *arg), void *arg,
                     enum forked_end end)
{
    pid_t parent = getpid();

    f->report = mmap(NULL, sizeof(*f->report), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (f->report == MAP_FAILED)
        test_die("no memory to share");
    if (how != fork) /* other functions run no atfork handlers */
        test_before_fork();
    atomic_store(&f->report->line, -1);
    f->status = -1;
    f->pid = how();
    if (f->pid < 0)
        test_die("no child");
    if (f->pid > 0)
        return;
    forked_is_child();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent && getppid() != 0) /* 0: in a namespace of its own */
        _exit(1);
    atomic_store(&f->report->line, body(f->report, arg));
    end_as(end);
}

void forked_start(struct forked *f, int (*body)(struct forked_report *report, void *arg),
                  void *arg, enum forked_end end)
{
    forked_start_by(f, fork, body, arg, end);
}

static bool has_line(void *arg)
{
    return atomic_load(&((struct forked_report *)arg)->line) >= 0;
}

int forked_line(struct forked *f, long ms)
{
    test_wait_until(has_line, f->report, ms);
    return atomic_load(&f->report->line);
}

struct step {
    struct forked_report *report;
    int step;
};

static bool is_at(void *arg)
{
    const struct step *s = arg;
    return atomic_load(&s->report->step) >= s->step || has_line(s->report);
}

bool forked_reaches(struct forked *f, int step, long ms)
{
    struct step s = { f->report, step };
    test_wait_until(is_at, &s, ms);
    return atomic_load(&f->report->step) >= step;
}

void forked_step(struct forked_report *report, int step)
{
    atomic_store(&report->step, step);
}

bool forked_wait_step(struct forked_report *report, int step)
{
    struct step s = { report, step };
    return test_wait_until(is_at, &s, LONG_MS);
}

static bool has_ended(void *arg)
{
    struct forked *f = arg;
    return f->pid == 0 || waitpid(f->pid, &f->status, WNOHANG) == f->pid;
}

bool forked_ends(struct forked *f, long ms)
{
    bool ended = test_wait_until(has_ended, f, ms);
    if (ended)
        f->pid = 0;
    else
        forked_kill(f);
    return ended;
}

void forked_kill(struct forked *f)
{
    if (f->pid == 0)
        return;
    kill(f->pid, SIGKILL);
    while (waitpid(f->pid, &f->status, 0) < 0 && errno == EINTR)
        continue;
    f->pid = 0;
}

int forked(int (*body)(struct forked_report *report, void *arg), void *arg)
{
    struct forked f;

    forked_start(&f, body, arg, FORKED_VANISH);
    int line = forked_line(&f, LONG_MS);
    if (!forked_ends(&f, LONG_MS))
        line = -1;
    munmap(f.report, sizeof(*f.report));
    return line;
}
