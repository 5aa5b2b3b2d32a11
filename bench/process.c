/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. No state. */
#include "process.h"

#include "bench.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

pid_t process_fork(void)
{
    pid_t parent = getpid();
    pid_t pid = fork();

    if (pid < 0)
        die("cannot fork");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(2);
    }
    return pid;
}

int process_reap(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

double process_cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec ts;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
        die("no clock of a process");
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

void *memory_shared(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("out of memory");
    return memory;
}

void memory_free(void *memory, size_t size)
{
    munmap(memory, size);
}

void semaphore_wait(sem_t *sem)
{
    while (sem_wait(sem) != 0)
        if (errno != EINTR)
            die("sem_wait failed");
}

bool semaphore_wait_for(sem_t *sem, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds + 1;
    while (sem_timedwait(sem, &until) != 0)
        if (errno != EINTR)
            return false;
    return true;
}
