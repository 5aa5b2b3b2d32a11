/* SPDX-License-Identifier: Apache-2.0 */
/* Mutexes of every type, and the codes that their holder and another thread get. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t m;

static void say(const char *what, int rc)
{
    printf("  %s: %s\n", what, strerror(rc));
}

static struct timespec soon(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 100000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static void *stranger(void *arg)
{
    struct timespec at = soon();
    say("trylock by another thread", pthread_mutex_trylock(&m));
    say("timedlock by another thread", pthread_mutex_timedlock(&m, &at));
    if (arg)
        say("unlock by another thread", pthread_mutex_unlock(&m));
    return NULL;
}

/* Calls that are undefined for a normal mutex are left out. */
static void show(const char *name, int type, int checked)
{
    pthread_mutexattr_t attr;
    pthread_t thread;
    struct timespec at;
    int got = -1, levels = 1;

    printf("%s\n", name);
    say("attr_init", pthread_mutexattr_init(&attr));
    say("settype", pthread_mutexattr_settype(&attr, type));
    say("gettype", pthread_mutexattr_gettype(&attr, &got));
    printf("  type %d\n", got);
    say("init", pthread_mutex_init(&m, &attr));
    say("attr_destroy", pthread_mutexattr_destroy(&attr));
    if (checked)
        say("unlock of a free one", pthread_mutex_unlock(&m));
    say("lock", pthread_mutex_lock(&m));
    if (checked) {
        int rc = pthread_mutex_lock(&m);
        say("lock again", rc);
        levels += rc == 0;
    }
    int rc = pthread_mutex_trylock(&m);
    say("trylock again", rc);
    levels += rc == 0;
    at = soon();
    rc = pthread_mutex_timedlock(&m, &at);
    say("timedlock again", rc);
    levels += rc == 0;
    if (pthread_create(&thread, NULL, stranger, checked ? &m : NULL) != 0)
        abort();
    pthread_join(thread, NULL);
    say("consistent", pthread_mutex_consistent(&m));
    say("destroy while held", pthread_mutex_destroy(&m));
    while (levels-- > 0)
        say("unlock", pthread_mutex_unlock(&m));
    if (checked)
        say("unlock once more", pthread_mutex_unlock(&m));
    say("destroy", pthread_mutex_destroy(&m));
}

int main(void)
{
    show("normal", PTHREAD_MUTEX_NORMAL, 0);
    show("default", PTHREAD_MUTEX_DEFAULT, 0);
    show("timed", PTHREAD_MUTEX_TIMED_NP, 0);
    show("fast", PTHREAD_MUTEX_FAST_NP, 0);
    show("recursive", PTHREAD_MUTEX_RECURSIVE, 1);
    show("recursive_np", PTHREAD_MUTEX_RECURSIVE_NP, 1);
    show("errorcheck", PTHREAD_MUTEX_ERRORCHECK, 1);
    show("errorcheck_np", PTHREAD_MUTEX_ERRORCHECK_NP, 1);
    show("adaptive", PTHREAD_MUTEX_ADAPTIVE_NP, 0);
    return 0;
}
