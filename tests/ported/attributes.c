/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: a value that is set is read back; an invalid value is refused and changes
 * nothing. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* the old names are tested as well as the new ones */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void say(const char *what, int value, int rc)
{
    printf("%s %d: %s\n", what, value, strerror(rc));
}

/* Sets every value from 0 to `last`, and prints the value that is read back. */
static void mutex_values(const char *what, pthread_mutexattr_t *attr, int last,
                         int (*set)(pthread_mutexattr_t *, int),
                         int (*get)(const pthread_mutexattr_t *, int *))
{
    for (int value = 0; value <= last; value++) {
        int got = -1;
        say(what, value, set(attr, value));
        int rc = get(attr, &got);
        say("  got", got, rc);
    }
}

static void rwlock_values(const char *what, pthread_rwlockattr_t *attr, int last,
                          int (*set)(pthread_rwlockattr_t *, int),
                          int (*get)(const pthread_rwlockattr_t *, int *))
{
    for (int value = 0; value <= last; value++) {
        int got = -1;
        say(what, value, set(attr, value));
        int rc = get(attr, &got);
        say("  got", got, rc);
    }
}

static int get_robust_np(const pthread_mutexattr_t *attr, int *robust)
{
    return pthread_mutexattr_getrobust_np((pthread_mutexattr_t *)attr, robust);
}

/* Whether the system has priority ceilings is its choice. */
static void ceilings(pthread_mutexattr_t *attr)
{
    pthread_mutex_t m;
    int ceiling = -1, old = -1, protocol = -1;

    say("setprotocol", 0, pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_INHERIT));
    say("getprotocol", 0, pthread_mutexattr_getprotocol(attr, &protocol));
    say("protocol", protocol, 0);
    say("setprotocol", 0, pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_NONE));
    say("setprotocol", -1, pthread_mutexattr_setprotocol(attr, PTHREAD_PRIO_PROTECT + 1));
    say("getprotocol", 0, pthread_mutexattr_getprotocol(attr, &protocol));
    say("protocol", protocol, 0);
    if (pthread_mutexattr_setprioceiling(attr, -1) != 0)
        puts("no ceiling of -1");
    if (pthread_mutexattr_getprioceiling(attr, &ceiling) != 0 ||
        protocol == PTHREAD_PRIO_NONE)
        puts("no ceiling in use");
    say("mutex init", 0, pthread_mutex_init(&m, attr));
    if (pthread_mutex_getprioceiling(&m, &ceiling) != 0)
        puts("a mutex without ceiling");
    if (pthread_mutex_setprioceiling(&m, 1, &old) != 0)
        puts("it gets none");
    say("mutex lock", 0, pthread_mutex_lock(&m));
    say("mutex unlock", 0, pthread_mutex_unlock(&m));
    say("mutex destroy", 0, pthread_mutex_destroy(&m));
}

int main(void)
{
    pthread_mutexattr_t attr;
    pthread_rwlockattr_t rwattr;
    pthread_rwlock_t l;

    say("init", 0, pthread_mutexattr_init(&attr));
    mutex_values("type", &attr, PTHREAD_MUTEX_ADAPTIVE_NP + 1, pthread_mutexattr_settype,
                 pthread_mutexattr_gettype);
    say("type", 0, pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL));
    mutex_values("pshared", &attr, 2, pthread_mutexattr_setpshared,
                 pthread_mutexattr_getpshared);
    mutex_values("robust", &attr, 2, pthread_mutexattr_setrobust,
                 pthread_mutexattr_getrobust);
    mutex_values("robust_np", &attr, 2, pthread_mutexattr_setrobust_np, get_robust_np);
    say("stalled", 0, pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED));
    say("stalled", 0, pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED_NP));
    ceilings(&attr);
    say("destroy", 0, pthread_mutexattr_destroy(&attr));

    say("init", 0, pthread_rwlockattr_init(&rwattr));
    rwlock_values("kind", &rwattr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP + 1,
                  pthread_rwlockattr_setkind_np, pthread_rwlockattr_getkind_np);
    rwlock_values("pshared", &rwattr, 2, pthread_rwlockattr_setpshared,
                  pthread_rwlockattr_getpshared);
    say("rwlock init", 0, pthread_rwlock_init(&l, &rwattr));
    say("destroy", 0, pthread_rwlockattr_destroy(&rwattr));
    say("rdlock", 0, pthread_rwlock_rdlock(&l));
    say("unlock", 0, pthread_rwlock_unlock(&l));
    say("rwlock destroy", 0, pthread_rwlock_destroy(&l));
    return 0;
}
