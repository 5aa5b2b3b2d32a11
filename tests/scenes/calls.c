/* SPDX-License-Identifier: Apache-2.0 */
/* See calls.h. No state of its own. */
#include "calls.h"

#include "wait.h"

#include <stddef.h>
#include <stdlib.h>

enum { LEASE_MS = 60000 };

static void told(struct calls *c, int rc, int code)
{
    if (rc != code && !c->wrong) {
        c->wrong = c->now;
        c->rc = rc;
    }
    if (c->after)
        c->after(c);
    c->count++;
}

#define CALL(code, ...)                                                                  \
    do {                                                                                 \
        c->now = #__VA_ARGS__;                                                           \
        told(c, (__VA_ARGS__), (code));                                                  \
    } while (0)
#define GOOD(...) CALL(0, __VA_ARGS__)

static struct timespec soon(const struct calls *c)
{
    return test_in_ms(CLOCK_REALTIME, c->wait_ms);
}

static struct timespec soon_mono(const struct calls *c)
{
    return test_in_ms(CLOCK_MONOTONIC, c->wait_ms);
}

/* ---- attributes */

static void calls_of_clientattr(struct calls *c)
{
    rlock_clientattr_t attr;
    long ms;
    int n;

    GOOD(rlock_clientattr_init(&attr));
    GOOD(rlock_clientattr_setlease(&attr, LEASE_MS));
    GOOD(rlock_clientattr_getlease(&attr, &ms));
    GOOD(rlock_clientattr_setpresence(&attr, 3000));
    GOOD(rlock_clientattr_getpresence(&attr, &ms));
    GOOD(rlock_clientattr_setcommandtimeout(&attr, 3000));
    GOOD(rlock_clientattr_getcommandtimeout(&attr, &ms));
    GOOD(rlock_clientattr_setconnecttimeout(&attr, 3000));
    GOOD(rlock_clientattr_getconnecttimeout(&attr, &ms));
    GOOD(rlock_clientattr_setmaxconnections(&attr, 4));
    GOOD(rlock_clientattr_getmaxconnections(&attr, &n));
    GOOD(rlock_clientattr_setmutextype(&attr, RLOCK_MUTEX_ERRORCHECK));
    GOOD(rlock_clientattr_getmutextype(&attr, &n));
    GOOD(rlock_clientattr_sethandoffms(&attr, 10));
    GOOD(rlock_clientattr_gethandoffms(&attr, &ms));
    GOOD(rlock_clientattr_sethandoffcount(&attr, 1000));
    GOOD(rlock_clientattr_gethandoffcount(&attr, &n));
    GOOD(rlock_clientattr_setretain(&attr, 0));
    GOOD(rlock_clientattr_getretain(&attr, &ms));
    GOOD(rlock_clientattr_setguard(&attr, RLOCK_GUARD_ON));
    GOOD(rlock_clientattr_getguard(&attr, &n));
    GOOD(rlock_clientattr_setreplicas(&attr, 0));
    GOOD(rlock_clientattr_getreplicas(&attr, &n));
    GOOD(rlock_clientattr_setwaitaof(&attr, 0));
    GOOD(rlock_clientattr_getwaitaof(&attr, &n));
    GOOD(rlock_clientattr_setmaxskew(&attr, 0));
    GOOD(rlock_clientattr_getmaxskew(&attr, &ms));
    GOOD(rlock_clientattr_setcredentials(&attr, NULL, NULL));
    GOOD(rlock_clientattr_seteventcallback(&attr, NULL, NULL));
    GOOD(rlock_clientattr_setsentinelcredentials(&attr, NULL, NULL));
    GOOD(rlock_clientattr_setaddressmap(&attr, NULL));
    CALL(TEST_TLS_CODE, rlock_clientattr_setcafile(&attr, "ca"));
    CALL(TEST_TLS_CODE, rlock_clientattr_setcadir(&attr, "cas"));
    CALL(TEST_TLS_CODE, rlock_clientattr_setcertfile(&attr, "cert"));
    CALL(TEST_TLS_CODE, rlock_clientattr_setkeyfile(&attr, "key"));
    CALL(TEST_TLS_CODE, rlock_clientattr_settlsname(&attr, "name"));
    CALL(TEST_TLS_CODE, rlock_clientattr_setverify(&attr, RLOCK_VERIFY_FULL));
    GOOD(rlock_clientattr_getverify(&attr, &n));
    GOOD(rlock_clientattr_destroy(&attr));
    CALL(EINVAL, rlock_clientattr_destroy(&attr));
}

static void calls_of_mutexattr(struct calls *c)
{
    rlock_mutexattr_t attr;
    rlock_client_t *client;
    long ms;
    int n;

    GOOD(rlock_mutexattr_init(&attr));
    GOOD(rlock_mutexattr_setpshared(&attr, RLOCK_PROCESS_PRIVATE));
    GOOD(rlock_mutexattr_getpshared(&attr, &n));
    GOOD(rlock_mutexattr_setlease(&attr, LEASE_MS));
    GOOD(rlock_mutexattr_getlease(&attr, &ms));
    GOOD(rlock_mutexattr_setfencing(&attr, 1));
    GOOD(rlock_mutexattr_getfencing(&attr, &n));
    GOOD(rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL));
    GOOD(rlock_mutexattr_getoutage(&attr, &n));
    GOOD(rlock_mutexattr_setclient(&attr, c->client));
    GOOD(rlock_mutexattr_getclient(&attr, &client));
#ifndef AS_RWLOCK
    GOOD(rlock_mutexattr_settype(&attr, RLOCK_MUTEX_RECURSIVE));
    GOOD(rlock_mutexattr_gettype(&attr, &n));
    GOOD(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    GOOD(rlock_mutexattr_getrobust(&attr, &n));
    GOOD(rlock_mutexattr_setrobust_np(&attr, RLOCK_MUTEX_STALLED));
    GOOD(rlock_mutexattr_getrobust_np(&attr, &n));
    GOOD(rlock_mutexattr_setprotocol(&attr, RLOCK_PRIO_INHERIT));
    GOOD(rlock_mutexattr_getprotocol(&attr, &n));
    CALL(ENOTSUP, rlock_mutexattr_setprioceiling(&attr, 1));
    CALL(ENOTSUP, rlock_mutexattr_getprioceiling(&attr, &n));
    GOOD(rlock_mutexattr_sethandoffms(&attr, 10));
    GOOD(rlock_mutexattr_gethandoffms(&attr, &ms));
    GOOD(rlock_mutexattr_sethandoffcount(&attr, 1000));
    GOOD(rlock_mutexattr_gethandoffcount(&attr, &n));
    GOOD(rlock_mutexattr_setretain(&attr, 0));
    GOOD(rlock_mutexattr_getretain(&attr, &ms));
#endif
    GOOD(rlock_mutexattr_destroy(&attr));
}

static void calls_of_rwlockattr(struct calls *c)
{
    rlock_rwlockattr_t attr;
    rlock_client_t *client;
    long ms;
    int n;

    GOOD(rlock_rwlockattr_init(&attr));
    GOOD(rlock_rwlockattr_setkind_np(&attr, RLOCK_RWLOCK_PREFER_READER_NP));
    GOOD(rlock_rwlockattr_getkind_np(&attr, &n));
    GOOD(rlock_rwlockattr_setpshared(&attr, RLOCK_PROCESS_PRIVATE));
    GOOD(rlock_rwlockattr_getpshared(&attr, &n));
    GOOD(rlock_rwlockattr_setlease(&attr, LEASE_MS));
    GOOD(rlock_rwlockattr_getlease(&attr, &ms));
    GOOD(rlock_rwlockattr_setretain(&attr, 0));
    GOOD(rlock_rwlockattr_getretain(&attr, &ms));
    GOOD(rlock_rwlockattr_setfencing(&attr, 1));
    GOOD(rlock_rwlockattr_getfencing(&attr, &n));
    GOOD(rlock_rwlockattr_setoutage(&attr, RLOCK_OUTAGE_WAIT));
    GOOD(rlock_rwlockattr_getoutage(&attr, &n));
    GOOD(rlock_rwlockattr_setclient(&attr, c->client));
    GOOD(rlock_rwlockattr_getclient(&attr, &client));
    GOOD(rlock_rwlockattr_destroy(&attr));
}

/* ---- locks */

static void make_mutex(struct calls *c, rlock_mutex_t *m, const char *name, int fencing)
{
    rlock_mutexattr_t attr;

    GOOD(rlock_mutexattr_init(&attr));
    GOOD(rlock_mutexattr_setclient(&attr, c->client));
    GOOD(rlock_mutexattr_setfencing(&attr, fencing));
    GOOD(rlock_mutex_init(m, &attr, name));
    GOOD(rlock_mutexattr_destroy(&attr));
}

static void calls_of_mutex(struct calls *c)
{
    rlock_mutex_t m;
    rlock_state_t state;
    uint64_t token;
    unsigned count;
    long ms;
    struct timespec at;

    make_mutex(c, &m, c->free_one, 1);
    GOOD(rlock_mutex_lock(&m));
    CALL(EBUSY, rlock_mutex_destroy(&m));
    GOOD(rlock_mutex_gettoken(&m, &token));
    GOOD(rlock_mutex_getremaining(&m, &ms));
    GOOD(rlock_mutex_getstate(&m, &state));
    GOOD(rlock_mutex_getholdcount(&m, &count));
    GOOD(rlock_mutex_extend(&m, LEASE_MS));
    GOOD(rlock_mutex_lock(&m));
    GOOD(rlock_mutex_unlock(&m));
    GOOD(rlock_mutex_unlock(&m));
    CALL(EPERM, rlock_mutex_unlock(&m));
    GOOD(rlock_mutex_lock_lease(&m, LEASE_MS));
    GOOD(rlock_mutex_unlock(&m));
    GOOD(rlock_mutex_trylock(&m));
    GOOD(rlock_mutex_trylock_lease(&m, LEASE_MS));
    GOOD(rlock_mutex_unlock(&m));
    GOOD(rlock_mutex_unlock(&m));
#ifndef AS_RWLOCK
    CALL(EINVAL, rlock_mutex_consistent(&m));
    CALL(EINVAL, rlock_mutex_consistent_np(&m));
    CALL(ENOTSUP, rlock_mutex_getprioceiling(&m, &(int){ 0 }));
    CALL(ENOTSUP, rlock_mutex_setprioceiling(&m, 1, &(int){ 0 }));
#endif
    GOOD(rlock_mutex_destroy(&m));
    make_mutex(c, &m, c->theirs, 0);
    CALL(EBUSY, rlock_mutex_trylock(&m));
    at = soon(c);
    CALL(ETIMEDOUT, rlock_mutex_timedlock(&m, &at));
    at = soon(c);
    CALL(ETIMEDOUT, rlock_mutex_timedlock_lease(&m, &at, LEASE_MS));
    at = soon_mono(c);
    CALL(ETIMEDOUT, rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at));
    at = soon_mono(c);
    CALL(ETIMEDOUT, rlock_mutex_clocklock_lease(&m, CLOCK_MONOTONIC, &at, LEASE_MS));
    GOOD(rlock_mutex_destroy(&m));
}

/* Calls for a mutex that the calling thread already holds. */
static void calls_in_vain(struct calls *c)
{
#ifndef AS_RWLOCK
    rlock_mutexattr_t attr;
    rlock_mutex_t m;
    struct timespec at;

    GOOD(rlock_mutexattr_init(&attr));
    GOOD(rlock_mutexattr_setclient(&attr, c->client));
    GOOD(rlock_mutexattr_settype(&attr, RLOCK_MUTEX_NORMAL));
    GOOD(rlock_mutex_init(&m, &attr, c->free_one));
    GOOD(rlock_mutexattr_destroy(&attr));
    GOOD(rlock_mutex_lock(&m));
    at = soon(c);
    CALL(ETIMEDOUT, rlock_mutex_timedlock(&m, &at));
    GOOD(rlock_mutex_unlock(&m));
    GOOD(rlock_mutex_destroy(&m));
#else
    (void)c;
#endif
}

static void calls_of_reader(struct calls *c, rlock_rwlock_t *l)
{
    struct timespec at = soon(c), mono = soon_mono(c);

    GOOD(rlock_rwlock_rdlock(l));
    GOOD(rlock_rwlock_tryrdlock(l));
    GOOD(rlock_rwlock_timedrdlock(l, &at));
    GOOD(rlock_rwlock_clockrdlock(l, CLOCK_MONOTONIC, &mono));
    CALL(EDEADLK, rlock_rwlock_wrlock(l));
    for (int i = 0; i < 3; i++)
        GOOD(rlock_rwlock_unlock(l));
    GOOD(rlock_rwlock_rdunlock(l));
    GOOD(rlock_rwlock_rdlock_lease(l, LEASE_MS));
    GOOD(rlock_rwlock_rdunlock(l));
    GOOD(rlock_rwlock_tryrdlock_lease(l, LEASE_MS));
    GOOD(rlock_rwlock_unlock(l));
    GOOD(rlock_rwlock_timedrdlock_lease(l, &at, LEASE_MS));
    GOOD(rlock_rwlock_unlock(l));
    GOOD(rlock_rwlock_clockrdlock_lease(l, CLOCK_MONOTONIC, &mono, LEASE_MS));
    GOOD(rlock_rwlock_unlock(l));
}

static void calls_of_writer(struct calls *c, rlock_rwlock_t *l)
{
    rlock_state_t state;
    uint64_t token;
    unsigned count;
    long ms;
    struct timespec at = soon(c), mono = soon_mono(c);

    GOOD(rlock_rwlock_wrlock(l));
    GOOD(rlock_rwlock_trywrlock(l));
    GOOD(rlock_rwlock_timedwrlock(l, &at));
    GOOD(rlock_rwlock_clockwrlock(l, CLOCK_MONOTONIC, &mono));
    GOOD(rlock_rwlock_gettoken(l, &token));
    GOOD(rlock_rwlock_getremaining(l, &ms));
    GOOD(rlock_rwlock_getstate(l, &state));
    GOOD(rlock_rwlock_getholdcount(l, &count));
    GOOD(rlock_rwlock_extend(l, LEASE_MS));
    for (int i = 0; i < 3; i++)
        GOOD(rlock_rwlock_wrunlock(l));
    GOOD(rlock_rwlock_downgrade(l));
    GOOD(rlock_rwlock_rdunlock(l));
    GOOD(rlock_rwlock_wrlock_lease(l, LEASE_MS));
    GOOD(rlock_rwlock_wrunlock(l));
    GOOD(rlock_rwlock_trywrlock_lease(l, LEASE_MS));
    GOOD(rlock_rwlock_wrunlock(l));
    GOOD(rlock_rwlock_timedwrlock_lease(l, &at, LEASE_MS));
    GOOD(rlock_rwlock_wrunlock(l));
    GOOD(rlock_rwlock_clockwrlock_lease(l, CLOCK_MONOTONIC, &mono, LEASE_MS));
    GOOD(rlock_rwlock_unlock(l));
}

static void calls_of_rwlock(struct calls *c)
{
    rlock_rwlockattr_t attr;
    rlock_rwlock_t l;

    GOOD(rlock_rwlockattr_init(&attr));
    GOOD(rlock_rwlockattr_setclient(&attr, c->client));
    GOOD(rlock_rwlockattr_setfencing(&attr, 1));
    GOOD(rlock_rwlock_init(&l, &attr, c->free_one));
    GOOD(rlock_rwlockattr_destroy(&attr));
    calls_of_reader(c, &l);
    calls_of_writer(c, &l);
    GOOD(rlock_rwlock_destroy(&l));
}

/* ---- the rest */

static int each(const rlock_info_t *info, void *arg)
{
    (void)info;
    (void)arg;
    pthread_testcancel();
    return 0;
}

static void no_line(int level, const char *line, void *arg)
{
    (void)level;
    (void)line;
    (void)arg;
}

static void calls_of_client(struct calls *c)
{
    rlock_client_t *client = NULL;
    rlock_stats_t stats;
    char dir[1];

    CALL(getenv("RLOCK_RUNDIR")[0] ? ENAMETOOLONG : ENOENT,
         rlock_getrundir(dir, sizeof(dir)));
    GOOD(rlock_client_getstats(c->client, &stats));
    CALL(ENAMETOOLONG,
         rlock_client_getserver(c->client, dir, sizeof(dir), dir, sizeof(dir)));
    GOOD(rlock_client_ping(c->client));
    GOOD(rlock_client_open(&client, c->url, NULL));
    GOOD(rlock_client_ping(client));
    GOOD(rlock_client_interrupt(client));
    GOOD(rlock_client_close(client));
    CALL(EINVAL, rlock_client_interrupt(NULL));
    GOOD(rlock_client_setdefault(c->url, NULL));
    GOOD(rlock_client_ping(NULL));
    GOOD(rlock_client_interrupt(NULL));
    GOOD(rlock_client_close(NULL));
}

static int each_finding(const rlock_finding_t *finding, void *arg)
{
    (void)finding;
    (void)arg;
    pthread_testcancel();
    return 0;
}

static void calls_of_administration(struct calls *c)
{
    rlock_info_t *info = NULL;
    struct timespec at;

    CALL(ENOENT, rlock_inspect(c->client, c->free_one, &info));
    GOOD(rlock_inspect(c->client, c->theirs, &info));
    GOOD((rlock_info_free(info), 0));
    CALL(ENOENT, rlock_force_unlock(c->client, c->free_one));
    GOOD(rlock_list(c->client, NULL, each, NULL));
    GOOD(rlock_client_diagnose(c->client, each_finding, NULL));
    GOOD(rlock_waitfree(c->client, c->free_one, NULL));
    at = soon(c);
    CALL(ETIMEDOUT, rlock_waitfree(c->client, c->theirs, &at));
    GOOD(rlock_strerror(ESTALE) == NULL);
    GOOD(rlock_errmsg() == NULL);
    GOOD(rlock_version() == NULL);
    GOOD((rlock_setlogger(no_line, NULL, 7), 0));
    GOOD(rlock_client_ping(c->client));
    GOOD((rlock_setlogger(NULL, NULL, 0), 0));
}

void calls_of_all(struct calls *c)
{
    calls_of_clientattr(c);
    calls_of_mutexattr(c);
    calls_of_rwlockattr(c);
    calls_of_mutex(c);
    calls_in_vain(c);
    calls_of_rwlock(c);
    calls_of_client(c);
    calls_of_administration(c);
}
