/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes, condition variables, threads and thread-specific data. Only this file and
 * the public header use pthread.h. A failing mutex operation is a bug of the library
 * or a corrupted process: it aborts. */
#ifndef RLK_SYNC_H
#define RLK_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/select.h> /* for sigset_t; signal.h would bring names of unistd.h along */

/* For thread-local variables: places them in the block that a program starts with,
 * which is two instructions away. glibc reserves part of that block for libraries that
 * are loaded later, so all such variables together must be small
 * (build-aux/check-exports). musl reserves none, and loads no library with such a
 * variable. */
#ifdef __GLIBC__
#define RLK_TLS __attribute__((tls_model("initial-exec")))
#else
#define RLK_TLS
#endif

struct rlk_mutex {
    pthread_mutex_t m;
};
#define RLK_MUTEX_INIT                                                                   \
    {                                                                                    \
        PTHREAD_MUTEX_INITIALIZER                                                        \
    }

/* Waits with CLOCK_MONOTONIC. */
struct rlk_cond {
    pthread_cond_t c;
};

typedef pthread_t rlk_thread_t;

/* The number of mutexes that the calling thread holds or is about to take, and the
 * mutex of the condition variable that it sleeps on: exit() in a signal handler needs
 * to know whether it interrupted a section. Other modules keep small per-thread values
 * here, to save room. */
struct rlk_sync_sections {
    volatile int count;
    bool forking;         /* fork.c: this thread holds what prepare() took */
    volatile bool in_tls; /* tls_gate.c: the thread is inside OpenSSL */
    unsigned char ends;   /* thread.c: how many times its destructor has run */
    struct rlk_mutex *volatile asleep; /* included in the count, whether held or not */
};
extern _Thread_local struct rlk_sync_sections rlk_sync_sections RLK_TLS
    __attribute__((visibility("hidden")));

/* Whether a signal handler has interrupted a section of the calling thread, so that
 * taking a mutex could block for ever. Takes a moment when the thread sleeps on a
 * condition variable whose mutex is busy; after 100 ms such a mutex counts as the
 * thread's own. */
bool rlk_sync_sections_interrupted(void);

static inline void rlk_sync_mutex_lock(struct rlk_mutex *mu)
{
    rlk_sync_sections.count++;
    if (pthread_mutex_lock(&mu->m) != 0)
        abort();
}

static inline bool rlk_sync_mutex_trylock(struct rlk_mutex *mu)
{
    rlk_sync_sections.count++;
    if (pthread_mutex_trylock(&mu->m) == 0)
        return true;
    rlk_sync_sections.count--;
    return false;
}

static inline void rlk_sync_mutex_unlock(struct rlk_mutex *mu)
{
    if (pthread_mutex_unlock(&mu->m) != 0)
        abort();
    rlk_sync_sections.count--;
}

/* Returns 0, ENOMEM or EAGAIN. */
int rlk_sync_mutex_init(struct rlk_mutex *mu);
void rlk_sync_mutex_destroy(struct rlk_mutex *mu);

int rlk_sync_cond_init(struct rlk_cond *cv);
void rlk_sync_cond_destroy(struct rlk_cond *cv);

static inline void rlk_sync_cond_signal(struct rlk_cond *cv)
{
    if (pthread_cond_signal(&cv->c) != 0)
        abort();
}

static inline void rlk_sync_cond_broadcast(struct rlk_cond *cv)
{
    if (pthread_cond_broadcast(&cv->c) != 0)
        abort();
}

/* Waits until signalled, or until `mono_ns` of CLOCK_MONOTONIC (INT64_MAX: no limit);
 * may return early. Locks: holds mu. */
void rlk_sync_cond_wait(struct rlk_cond *cv, struct rlk_mutex *mu, int64_t mono_ns);

enum { RLK_THREAD_STACK_SIZE = 256 << 10 };

/* Starts a thread with all signals blocked and the name `name` (at most 15 bytes).
 * Returns 0, EAGAIN or ENOMEM. */
int rlk_sync_thread_start(rlk_thread_t *ret_thread, const char *name,
                          void *(*run)(void *), void *arg);
void rlk_sync_thread_join(rlk_thread_t thread);
/* Starts a thread that is never joined. */
int rlk_sync_thread_start_detached(const char *name, void *(*run)(void *), void *arg);

static inline rlk_thread_t rlk_sync_thread_self(void)
{
    return pthread_self();
}

static inline bool rlk_sync_thread_is_self(rlk_thread_t thread)
{
    return pthread_equal(thread, pthread_self()) != 0;
}

/* Blocks all signals of the calling thread; restores the old mask. */
void rlk_sync_signals_block(sigset_t *ret_old);
void rlk_sync_signals_restore(const sigset_t *old);

/* Runs `init` once in the life of the process. */
typedef pthread_once_t rlk_once_t;
#define RLK_ONCE_INIT PTHREAD_ONCE_INIT
void rlk_sync_once(rlk_once_t *once, void (*init)(void));

/* Sleeps for a moment: for conditions that a signal handler cannot be woken for. */
void rlk_sync_pause(void);

/* A thread-specific value. A non-NULL value is passed to `destroy` when its thread
 * ends. */
typedef pthread_key_t rlk_tsd_t;
int rlk_sync_tsd_create(rlk_tsd_t *ret_slot, void (*destroy)(void *));
int rlk_sync_tsd_set(rlk_tsd_t slot, const void *value);

/* Encloses every public call and every other entry into the library: nothing inside is
 * a cancellation point. With asynchronous cancellation, glibc's signal may already be
 * on its way: on arrival it checks the cancellation type, which every system call that
 * is a cancellation point sets meanwhile, but not the state. Therefore the entry waits
 * for the signal before it does anything. The type is restored last; there a request
 * acts, with the result PTHREAD_CANCELED. */
struct rlk_cancel {
    int state, type;
};

/* Returns when no signal of an earlier request is on its way; that request may act in
 * here. */
void rlk_sync_cancel_await_signal(void);

static inline struct rlk_cancel rlk_sync_cancel_disable(void)
{
    struct rlk_cancel old = { PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DEFERRED };
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old.state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old.type);
    if (__builtin_expect(old.type == PTHREAD_CANCEL_ASYNCHRONOUS, 0))
        rlk_sync_cancel_await_signal();
    return old;
}

static inline void rlk_sync_cancel_restore(struct rlk_cancel old)
{
    int ignored;
    pthread_setcancelstate(old.state, &ignored);
    pthread_setcanceltype(old.type, &ignored);
}

int rlk_sync_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

#endif
