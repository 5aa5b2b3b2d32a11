/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cron job of one host only: four hosts have the same line in their crontab, and each
 * minute the job is to run once. Their clocks differ, so they come at different moments,
 * some while the job runs and one when it is long done. Two things together do this:
 *
 *   - the lock: only one host at a time looks at the mark and runs the job;
 *   - a mark, "the run of minute 7 is done", where the job keeps its results. It names
 *     the minute that the crontab means, not the moment at which a clock said so. A host
 *     that finds the mark, or a later one, has nothing to do.
 *
 * A lease alone cannot replace the mark: it would have to outlast the difference of any
 * two clocks, and a process that ends gives its lock up. A host that dies during a run
 * leaves no mark: when its lease is over, the next host runs the job again. Where half a
 * run is worse than none, set the mark before the run.
 *
 *     06_cron_once
 *
 * Hosts are processes, a minute is 200 ms, and one host is killed during minute 3. The
 * server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379. Fails
 * when a minute's job was not done exactly once.
 */
#include <rlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { HOSTS = 4, MINUTES = 6, FATAL = 3 };
enum { MINUTE_MS = 200, JOB_MS = 30, LEASE_MS = 2000, MS_NS = 1000000 };

/* By how much each host's clock is fast: the host comes that much earlier. */
static const long fast_ms[HOSTS] = { 90, 84, 78, 0 };

/* What the hosts share. In a real service the mark is a row of the job's database. */
static struct board {
    int done; /* the mark: the minute whose run is done */
    struct timespec midnight;
    atomic_int begun[MINUTES + 1], finished[MINUTES + 1];
} * board;

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: %s\n", what, rlock_errmsg());
    _exit(2);
}

static void job(int host, int minute)
{
    bool first = board->begun[minute]++ == 0;
    nanosleep(&(struct timespec){ .tv_nsec = JOB_MS * MS_NS }, NULL);
    if (minute == FATAL && first) {
        printf("minute %d: host %d dies during the run\n", minute, host);
        raise(SIGKILL);
    }
    board->finished[minute]++;
    printf("minute %d: host %d has run the job\n", minute, host);
}

/* What a host's cron starts. It waits for the lock, because the host that has the lock
 * may die during the run. */
static void cron_line(rlock_mutex_t *lock, int host, int minute)
{
    must(rlock_mutex_lock(lock) == 0, "lock");
    if (board->done < minute) {
        job(host, minute);
        board->done = minute;
    }
    /* ESTALE: the lease was lost, so another host may have run it meanwhile */
    must(rlock_mutex_unlock(lock) == 0, "unlock");
}

static void sleep_until_minute(int host, int minute)
{
    long ms = MINUTE_MS * (long)minute - fast_ms[host];
    struct timespec at = board->midnight;
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * MS_NS;
    if (at.tv_nsec >= 1000L * MS_NS) {
        at.tv_sec++;
        at.tv_nsec -= 1000L * MS_NS;
    }
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void host_main(int host, const char *name)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t lock;

    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setlease(&attr, LEASE_MS); /* how long it outlives its host */
    must(rlock_mutex_init(&lock, &attr, name) == 0, "init");
    for (int minute = 1; minute <= MINUTES; minute++) {
        sleep_until_minute(host, minute);
        cron_line(&lock, host, minute);
    }
    exit(0);
}

int main(void)
{
    char name[64];
    int status, killed = 0, once = 0;

    setvbuf(stdout, NULL, _IOLBF, 0);
    snprintf(name, sizeof(name), "cron-once/%d", (int)getpid());
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    must(board != MAP_FAILED, "memory");
    clock_gettime(CLOCK_MONOTONIC, &board->midnight);
    for (int host = 0; host < HOSTS; host++) {
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            host_main(host, name);
        }
    }
    for (int host = 0; host < HOSTS; host++) {
        must(wait(&status) > 0 && (status == 0 || WIFSIGNALED(status)), "a host failed");
        killed += WIFSIGNALED(status);
    }
    for (int minute = 1; minute <= MINUTES; minute++)
        once += board->finished[minute] == 1 &&
                board->begun[minute] == (minute == FATAL ? 2 : 1);
    printf("%d hosts, %d killed: %d of %d minutes ran once\n", (int)HOSTS, killed, once,
           (int)MINUTES);
    return killed == 1 && once == MINUTES ? 0 : 1;
}
