/* SPDX-License-Identifier: Apache-2.0 */
/* Thin wrappers of pthreads. The only state is each thread's count of held mutexes.
 * Thread: any. */
#include "base/sync.h"

#include "base/error.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { NS_PER_S = 1000000000, TRIES = 100, TRY_MS = 1 };

_Thread_local struct rlk_sync_sections rlk_sync_sections;

int rlk_sync_mutex_init(struct rlk_mutex *mu)
{
    return pthread_mutex_init(&mu->m, NULL);
}

void rlk_sync_mutex_destroy(struct rlk_mutex *mu)
{
    if (pthread_mutex_destroy(&mu->m) != 0)
        abort();
}

int rlk_sync_cond_init(struct rlk_cond *cv)
{
    pthread_condattr_t attr;
    int rc = pthread_condattr_init(&attr);
    if (rc != 0)
        return rc;
    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (rc == 0)
        rc = pthread_cond_init(&cv->c, &attr);
    pthread_condattr_destroy(&attr);
    return rc;
}

void rlk_sync_cond_destroy(struct rlk_cond *cv)
{
    if (pthread_cond_destroy(&cv->c) != 0)
        abort();
}

void rlk_sync_cond_wait(struct rlk_cond *cv, struct rlk_mutex *mu, int64_t mono_ns)
{
    int rc;
    rlk_sync_sections.asleep = mu;
    if (mono_ns == INT64_MAX) {
        rc = pthread_cond_wait(&cv->c, &mu->m);
    } else {
        if (mono_ns < 0)
            mono_ns = 0;
        struct timespec ts = { .tv_sec = (time_t)(mono_ns / NS_PER_S),
                               .tv_nsec = (long)(mono_ns % NS_PER_S) };
        rc = pthread_cond_timedwait(&cv->c, &mu->m, &ts);
    }
    rlk_sync_sections.asleep = NULL;
    if (rc != 0 && rc != ETIMEDOUT)
        abort();
}

bool rlk_sync_sections_interrupted(void)
{
    struct rlk_mutex *asleep = rlk_sync_sections.asleep;

    if (rlk_sync_sections.count != (asleep ? 1 : 0))
        return true;
    /* The wait may be about to return. Then this thread holds the mutex again, which
     * only the mutex knows, and the mutex is never free. Other threads hold it for
     * moments only. */
    for (int tries = TRIES; asleep; tries--) {
        if (pthread_mutex_trylock(&asleep->m) == 0) {
            if (pthread_mutex_unlock(&asleep->m) != 0)
                abort();
            return false;
        }
        if (tries == 0)
            return true;
        poll(NULL, 0, TRY_MS);
    }
    return false;
}

/* The stack of the library's threads, which also run callbacks: a fixed size, whatever
 * the program or its limits set for other threads. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STACK_SIZE = 1 << 20 };
#else
enum { STACK_SIZE = RLK_THREAD_STACK_SIZE };
#endif

static int start(rlk_thread_t *thread, const char *name, void *(*run)(void *), void *arg,
                 bool detached)
{
    pthread_attr_t attr;
    sigset_t old;
    int rc = pthread_attr_init(&attr);
    if (rc != 0)
        return rc;
    if (detached)
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    rlk_sync_signals_block(&old);
    rc = pthread_create(thread, &attr, run, arg);
    if (rc == EINVAL) { /* the program has more thread-local data than that */
        pthread_attr_destroy(&attr);
        rc = pthread_attr_init(&attr);
        if (rc == 0 && detached)
            pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        if (rc == 0)
            rc = pthread_create(thread, &attr, run, arg);
    }
    rlk_sync_signals_restore(&old);
    pthread_attr_destroy(&attr);
    if (rc != 0) {
        char step[64];
        snprintf(step, sizeof(step), "cannot start the thread %s", name);
        return rlk_error_of_step(rc, step);
    }
    if (!detached)
        pthread_setname_np(*thread, name);
    return 0;
}

int rlk_sync_thread_start(rlk_thread_t *ret_thread, const char *name,
                          void *(*run)(void *), void *arg)
{
    return start(ret_thread, name, run, arg, false);
}

int rlk_sync_thread_start_detached(const char *name, void *(*run)(void *), void *arg)
{
    rlk_thread_t thread;
    return start(&thread, name, run, arg, true);
}

void rlk_sync_thread_join(rlk_thread_t thread)
{
    if (pthread_join(thread, NULL) != 0)
        abort();
}

void rlk_sync_signals_block(sigset_t *ret_old)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

void rlk_sync_signals_restore(const sigset_t *old)
{
    pthread_sigmask(SIG_SETMASK, old, NULL);
}

void rlk_sync_once(rlk_once_t *once, void (*init)(void))
{
    if (pthread_once(once, init) != 0)
        abort();
}

int rlk_sync_tsd_create(rlk_tsd_t *ret_slot, void (*destroy)(void *))
{
    return pthread_key_create(ret_slot, destroy);
}

int rlk_sync_tsd_set(rlk_tsd_t slot, const void *value)
{
    return pthread_setspecific(slot, value);
}

void rlk_sync_pause(void)
{
    poll(NULL, 0, TRY_MS);
}

/* Makes a system call without effect: glibc does not return from a cancellation point
 * while the signal of a request is on its way. */
void rlk_sync_cancel_await_signal(void)
{
    int saved_errno = errno; /* EINTR, when another signal arrives */
    poll(NULL, 0, 0);
    errno = saved_errno;
}

int rlk_sync_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return pthread_atfork(prepare, parent, child);
}
