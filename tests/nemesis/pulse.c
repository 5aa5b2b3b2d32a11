/* SPDX-License-Identifier: Apache-2.0 */
/* State: one for the process, guarded by its mutex. */
#include "pulse.h"

#include "oplog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BEAT_MS = 5, LATE_MS = 60, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static struct {
    pthread_t *threads; /* in the driver one for each processor, else one */
    size_t thread_count;
    uint16_t target;
    pthread_mutex_t mutex; /* guards all members below */
    int fd;
    bool end;
} pulse = { .mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static int64_t now_boot(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void write_stall(int64_t begin, int64_t end)
{
    struct nem_fault stall = { .begin = begin,
                               .end = end,
                               .kind = NEM_STALL,
                               .target = pulse.target,
                               .lock = NEM_ALL,
                               .amount = (end - begin) / NS_PER_MS };
    if (pulse.fd >= 0 &&
        write(pulse.fd, &stall, sizeof(stall)) != (ssize_t)sizeof(stall)) {
        fprintf(stderr, "nemesis: cannot write a stall: %s\n", strerror(errno));
        abort();
    }
}

/* arg: the processor to stay on, or NULL. */
static void *beat(void *arg)
{
    const struct timespec sleep = { 0, (long)BEAT_MS * NS_PER_MS };
    int64_t last = now_boot();
    bool end = false;

    if (arg)
        pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), arg);
    free(arg);
    while (!end) {
        nanosleep(&sleep, NULL);
        int64_t now = now_boot();
        pthread_mutex_lock(&pulse.mutex);
        if (now - last > (int64_t)LATE_MS * NS_PER_MS)
            write_stall(last, now);
        end = pulse.end;
        pthread_mutex_unlock(&pulse.mutex);
        last = now;
    }
    return NULL;
}

static void start_beat(int cpu)
{
    cpu_set_t *only = cpu >= 0 ? calloc(1, sizeof(*only)) : NULL;
    if (only)
        CPU_SET((size_t)cpu, only);
    if (!pulse.threads || (cpu >= 0 && !only) ||
        pthread_create(&pulse.threads[pulse.thread_count], NULL, beat, only) != 0)
        abort();
    pulse.thread_count++;
}

void nem_pulse_start(uint16_t target)
{
    sigset_t all, before;
    cpu_set_t cpus;
    bool each = target == NEM_ALL && sched_getaffinity(0, sizeof(cpus), &cpus) == 0;

    pulse.target = target;
    pulse.threads = calloc(CPU_SETSIZE, sizeof(*pulse.threads));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int cpu = 0; cpu < (each ? CPU_SETSIZE : 1); cpu++)
        if (!each || CPU_ISSET((size_t)cpu, &cpus))
            start_beat(each ? cpu : -1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void nem_pulse_into(const char *dir)
{
    char path[PATH_MAX];
    int fd = -1;

    if (dir) {
        snprintf(path, sizeof(path), "%s/faults", dir);
        fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0) {
            fprintf(stderr, "nemesis: %s: %s\n", path, strerror(errno));
            abort();
        }
    }
    pthread_mutex_lock(&pulse.mutex);
    int old = pulse.fd;
    pulse.fd = fd;
    pthread_mutex_unlock(&pulse.mutex);
    if (old >= 0)
        close(old);
}

int nem_pulse_fd(void)
{
    pthread_mutex_lock(&pulse.mutex);
    int fd = pulse.fd;
    pthread_mutex_unlock(&pulse.mutex);
    return fd;
}

void nem_pulse_stop(void)
{
    pthread_mutex_lock(&pulse.mutex);
    pulse.end = true;
    pthread_mutex_unlock(&pulse.mutex);
    for (size_t i = 0; i < pulse.thread_count; i++)
        pthread_join(pulse.threads[i], NULL);
    free(pulse.threads);
    nem_pulse_into(NULL);
}
