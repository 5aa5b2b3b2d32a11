/* SPDX-License-Identifier: Apache-2.0 */
/* A robust mutex in memory that processes share: its holder dies, and the next one gets
 * EOWNERDEAD. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* the old names are tested as well as the new ones */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

struct shared {
    pthread_mutex_t mutex;
    long first, second; /* equal, outside of the section */
};

static struct shared *shared;

static void say(const char *what, int rc)
{
    printf("%s: %s\n", what, strerror(rc));
}

/* A process that takes the lock; if `dies`, it dies in the middle of its work. */
static void process(int dies)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        int rc = pthread_mutex_lock(&shared->mutex);
        if (rc == 0) {
            shared->first++;
            if (dies)
                raise(SIGKILL);
            shared->second++;
            rc = pthread_mutex_unlock(&shared->mutex);
        }
        _exit(rc);
    }
    int status;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("a process died of signal %d\n", WTERMSIG(status));
    else
        printf("a process said: %s\n", strerror(WEXITSTATUS(status)));
}

static void make(int old_names)
{
    pthread_mutexattr_t attr;
    int robust = -1, pshared = -1;

    pthread_mutexattr_init(&attr);
    say("setpshared", pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    pthread_mutexattr_getpshared(&attr, &pshared);
    if (old_names) {
        say("setrobust", pthread_mutexattr_setrobust_np(&attr, PTHREAD_MUTEX_ROBUST_NP));
        pthread_mutexattr_getrobust_np(&attr, &robust);
    } else {
        say("setrobust", pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
        pthread_mutexattr_getrobust(&attr, &robust);
    }
    printf("shared %d, robust %d\n", pshared == PTHREAD_PROCESS_SHARED,
           robust == PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    say("init", pthread_mutex_init(&shared->mutex, &attr));
    pthread_mutexattr_destroy(&attr);
    shared->first = shared->second = 0;
}

static void mend(int old_names)
{
    printf("%ld and %ld\n", shared->first, shared->second);
    shared->second = shared->first;
    if (old_names)
        say("consistent", pthread_mutex_consistent_np(&shared->mutex));
    else
        say("consistent", pthread_mutex_consistent(&shared->mutex));
}

static void show(int old_names)
{
    make(old_names);
    process(0);
    say("lock after a good one", pthread_mutex_lock(&shared->mutex));
    say("consistent of what is", pthread_mutex_consistent(&shared->mutex));
    say("unlock", pthread_mutex_unlock(&shared->mutex));
    process(1);
    say("lock after a dead one", pthread_mutex_lock(&shared->mutex));
    mend(old_names);
    say("unlock", pthread_mutex_unlock(&shared->mutex));
    process(0);
    process(1);
    say("lock after a dead one", pthread_mutex_lock(&shared->mutex));
    say("unlock without mending", pthread_mutex_unlock(&shared->mutex));
    say("lock of what nobody mended", pthread_mutex_lock(&shared->mutex));
    process(0);
    say("destroy", pthread_mutex_destroy(&shared->mutex));
}

int main(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    show(0);
    show(1);
    return 0;
}
