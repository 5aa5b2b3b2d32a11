/* SPDX-License-Identifier: Apache-2.0 */
/* program: with=programs/worker_commands.c,programs/worker_exit.c */
/*
 * A user of the library that obeys commands: one a line on stdin, one answer a line on
 * stdout, "= ok ...", "= <name of the code>" or "= ? <why>". It uses <rlock.h> only.
 * News comes in between: "event KIND name token remaining_ms type mode reason",
 * "done TAG answer".
 *
 *   open URL [lease=MS] [presence=MS] [commandtimeout=MS] [connecttimeout=MS]
 *        [maxconnections=N] [mutextype=N]
 *                     opens a client; "ok N"; it is then the current one
 *   use N             makes client N the current one; 0: the default client
 *   close [N]
 *   default URL [as open]   configures the default client; it is then the current one
 *   ping, interrupt, stats  of the current client
 *
 *   init H NAME [type=recursive|errorcheck|normal] [lease=MS] [fencing=1] [pshared=1]
 *        [robust=1]
 *        [outage=wait|fail|abort] [fair=1] [rwlock=1 [kind=N]]
 *                     makes a handle H of the current client: of a mutex, a fair lock, or
 *                     a read-write lock, for which lock, trylock ... are to write
 *   destroy H
 *   lock H [LEASE]
 *   trylock H [LEASE]
 *   timedlock H MS [LEASE]   until MS ms from now, CLOCK_REALTIME
 *   clocklock H MS [LEASE]   the same on CLOCK_MONOTONIC
 *   rdlock, tryrdlock, timedrdlock, clockrdlock    likewise, to read
 *   consistent H
 *   unlock H, rdunlock H, wrunlock H, downgrade H
 *   extend H LEASE
 *   state H, remaining H, token H, count H
 *   hoard NAME N      locks N mutexes NAME0, NAME1 ... by as many handles
 *   hammer H N FILE   N times: lock, add 1 to the 64-bit number in FILE in two steps,
 *                     unlock
 *
 *   inspect NAME, force NAME, waitfree NAME MS, list [PATTERN]   by the current client
 *   errmsg, version
 *
 *   on T COMMAND      in thread T, which its first command starts; waits for the answer
 *   async T COMMAND   the same, but answered at once; later: "done T <answer>"
 *   end T             ends thread T, whatever it holds
 *   fork COMMAND      in a child of fork(): "done fork <answer>"; the child ends by _exit
 *   quit              exit(0) in whatever state
 *   return            the same by a return from main
 *   leave HOW         ends the process: exit, quick_exit, _exit; cancelled (exit while a
 *                     cancellation is pending); pthread_exit ends the thread alone
 *   leave-at KIND     exit(0) in the callback of the next event of that kind
 *   leave-on-term     exit(0) in the handler of SIGTERM
 *   spin              "done spin begins", then reads the counters for ever
 *   atexit COMMAND    a handler that runs COMMAND at exit: "done atexit <answer>"
 *   linger MS         after all else at exit: "done linger", a pause, "end linger"
 *   openssl           loads OpenSSL and initialises it, as a program that uses it
 *   logger            log lines become news: "log LEVEL LINE"
 *
 * Names may have %XX escapes. Commands that begin with neither "on" nor "async" run in
 * the main thread.
 */
#include "worker_commands.h"
#include "worker_exit.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

/* A thread that takes one command after the other. */
struct thread {
    char tag[TAG_MAX];
    pthread_t id;
    bool busy, ends, waited_for;
    char command[LINE_MAX_LEN], answer[LINE_MAX_LEN];
};

/* Guards the threads and their fields; never held while a command runs. */
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct thread *threads[THREADS_MAX];

/* ---- lines */

__attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    char line[LINE_MAX_LEN + TAG_MAX];
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(line, sizeof(line) - 1, format, ap);
    va_end(ap);
    if (n < 0)
        return;
    size_t len = (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[len++] = '\n';
    /* one write below PIPE_BUF: lines of several threads do not mix */
    if (write(STDOUT_FILENO, line, len) != (ssize_t)len)
        _exit(EXIT_FAILURE);
}

__attribute__((format(printf, 2, 3))) void put(char *answer, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(answer, LINE_MAX_LEN, format, ap);
    va_end(ap);
}

void split(struct words *w, const char *line)
{
    snprintf(w->text, sizeof(w->text), "%s", line);
    w->count = 0;
    char *rest = w->text;
    for (char *word; (word = strsep(&rest, " \t"));) {
        if (*word && w->count < WORDS_MAX)
            w->word[w->count++] = word;
    }
}

const char *word(const struct words *w, int i)
{
    return i < w->count ? w->word[i] : "";
}

/* The rest of a line after its first `n` words. */
static const char *after(const char *line, int n)
{
    for (; n > 0; n--) {
        line += strspn(line, " \t");
        line += strcspn(line, " \t");
    }
    return line + strspn(line, " \t");
}

/* ---- commands */

static void run(const char *line, char *answer);

static void do_fork(const char *command, char *answer)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(command, answer);
        say("done fork %s", answer);
        _exit(0);
    }
    put(answer, pid > 0 ? "ok %d" : "? fork: %d", (int)pid);
}

/* Runs a command in the calling thread. */
static void run(const char *line, char *answer)
{
    struct words w;
    split(&w, line);
    if (strcmp(word(&w, 0), "fork") == 0)
        do_fork(after(line, 1), answer);
    else if (!run_command(line, answer) && !run_exit_command(line, answer))
        put(answer, "? unknown command");
}

/* ---- threads */

static void *thread_main(void *arg)
{
    struct thread *t = arg;
    char answer[LINE_MAX_LEN];
    pthread_mutex_lock(&mu);
    for (;;) {
        while (!t->busy && !t->ends)
            pthread_cond_wait(&changed, &mu);
        if (t->ends)
            break;
        pthread_mutex_unlock(&mu);
        run(t->command, answer);
        pthread_mutex_lock(&mu);
        memcpy(t->answer, answer, sizeof(answer));
        t->busy = false;
        if (!t->waited_for)
            say("done %s %s", t->tag, answer);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mu);
    return NULL;
}

/* The entry of thread `tag`; NULL: there is none (with `make`: the table is full). Locks:
 * holds mu. */
static struct thread **find_thread_locked(const char *tag, bool make)
{
    struct thread **spare = NULL;
    for (int i = 0; i < THREADS_MAX; i++) {
        if (threads[i] && strcmp(threads[i]->tag, tag) == 0)
            return &threads[i];
        if (!threads[i] && !spare)
            spare = &threads[i];
    }
    struct thread *t = make && spare ? calloc(1, sizeof(*t)) : NULL;
    if (!t)
        return NULL;
    snprintf(t->tag, sizeof(t->tag), "%s", tag);
    if (pthread_create(&t->id, NULL, thread_main, t) != 0) {
        free(t);
        return NULL;
    }
    *spare = t;
    return spare;
}

static void in_thread(const char *tag, const char *command, bool wait, char *answer)
{
    pthread_mutex_lock(&mu);
    struct thread **slot = find_thread_locked(tag, true);
    struct thread *t = slot ? *slot : NULL;
    if (!t || t->busy) {
        put(answer, t ? "? the thread is busy" : "? no thread");
        pthread_mutex_unlock(&mu);
        return;
    }
    snprintf(t->command, sizeof(t->command), "%s", command);
    t->waited_for = wait;
    t->busy = true;
    pthread_cond_broadcast(&changed);
    while (wait && t->busy)
        pthread_cond_wait(&changed, &mu);
    put(answer, "%s", wait ? t->answer : "ok");
    pthread_mutex_unlock(&mu);
}

static void end_thread(const char *tag, char *answer)
{
    pthread_mutex_lock(&mu);
    struct thread **slot = find_thread_locked(tag, false);
    struct thread *t = slot ? *slot : NULL;
    if (!t || t->busy) {
        put(answer, t ? "? the thread is busy" : "? no thread");
        pthread_mutex_unlock(&mu);
        return;
    }
    *slot = NULL;
    t->ends = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    pthread_join(t->id, NULL);
    free(t);
    put(answer, "ok");
}

static void obey(const char *line, char *answer)
{
    struct words w;
    split(&w, line);
    bool wait = strcmp(word(&w, 0), "on") == 0;
    if (wait || strcmp(word(&w, 0), "async") == 0)
        in_thread(word(&w, 1), after(line, 2), wait, answer);
    else if (strcmp(word(&w, 0), "end") == 0)
        end_thread(word(&w, 1), answer);
    else
        run(line, answer);
}

int main(void)
{
    char line[LINE_MAX_LEN], answer[LINE_MAX_LEN];
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps the children of "fork" */
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "quit") == 0)
            break;
        if (strcmp(line, "return") == 0)
            return EXIT_SUCCESS;
        answer[0] = '\0';
        obey(line, answer);
        /* the "done" of an "async" may come before its "ok": the mark "= " tells them
         * apart */
        say("= %s", answer);
    }
    exit(EXIT_SUCCESS);
}
