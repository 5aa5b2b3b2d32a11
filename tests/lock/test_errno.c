/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No function changes errno. Each test sets errno to an odd value before each call and
 * checks it afterwards: after success, after each kind of failure, and for each way in
 * which a server can be away. (Too little memory is in test_memory. The calls are
 * recorded by name, so that a function of the header that this file does not call is
 * found.)
 */
#include "fixture.h"

#include "process.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ODD = 4711, ANY = -1, SHORT_MS = 30, NAMES_MAX = 300, SOON_MS = 10000 };

/* ---- the calls */

static const char *called_names[NAMES_MAX];
static int called_count;

static void note(const char *name)
{
    int i = 0;
    while (i < called_count && strcmp(called_names[i], name) != 0)
        i++;
    if (i < called_count)
        return;
    ck_assert_int_lt(called_count, NAMES_MAX);
    called_names[called_count++] = name;
}

static int called(const char *name, int rc, int code, int line)
{
    int error = errno;
    ck_assert_msg(error == ODD, "line %d: %s: errno is %d (%s) after %s", line, name,
                  error, strerror(error), rlock_strerror(rc));
    if (code != ANY)
        expect(rc, code, name, line);
    note(name);
    return rc;
}

/* `code`: what the function must return. */
#define CALL(code, name, ...)                                                            \
    (errno = ODD, called(#name, name(__VA_ARGS__), (code), __LINE__))
/* For a function that returns no code. */
#define CALL_ONLY(name, ...)                                                             \
    (errno = ODD, (void)name(__VA_ARGS__), (void)called(#name, 0, 0, __LINE__))

static struct timespec soon(clockid_t clock)
{
    return test_in_ms(clock, SHORT_MS);
}

/* ---- attributes and handles */

static void call_clientattr(void)
{
    rlock_clientattr_t attr, broken;
    long ms;
    int number;

    memset(&broken, 0, sizeof(broken));
    CALL(0, rlock_clientattr_init, &attr);
    CALL(EINVAL, rlock_clientattr_init, NULL);
#define BOTH_WAYS(what, good, bad, ret)                                                  \
    do {                                                                                 \
        CALL(0, rlock_clientattr_set##what, &attr, (good));                              \
        CALL(EINVAL, rlock_clientattr_set##what, &attr, (bad));                          \
        CALL(0, rlock_clientattr_get##what, &attr, (ret));                               \
        CALL(EINVAL, rlock_clientattr_get##what, &broken, (ret));                        \
    } while (0)
    BOTH_WAYS(lease, 1000, 1, &ms);
    BOTH_WAYS(presence, 1000, 1, &ms);
    BOTH_WAYS(commandtimeout, 1000, 1, &ms);
    BOTH_WAYS(connecttimeout, 1000, 1, &ms);
    BOTH_WAYS(maxconnections, 5, 0, &number);
    BOTH_WAYS(mutextype, RLOCK_MUTEX_NORMAL, 99, &number);
    BOTH_WAYS(handoffms, 5, -1, &ms);
    BOTH_WAYS(handoffcount, 5, -1, &number);
    BOTH_WAYS(guard, 1, 3, &number);
    BOTH_WAYS(replicas, 1, -1, &number);
    BOTH_WAYS(waitaof, 1, 2, &number);
    BOTH_WAYS(maxskew, 5, -2, &ms);
    BOTH_WAYS(retain, 5, -1, &ms);
#undef BOTH_WAYS
    CALL(0, rlock_clientattr_setcredentials, &attr, "user", "password");
    CALL(EINVAL, rlock_clientattr_setcredentials, &attr, "user", NULL);
    CALL(0, rlock_clientattr_setsentinelcredentials, &attr, "user", "password");
    CALL(EINVAL, rlock_clientattr_setsentinelcredentials, &attr, "user", NULL);
    CALL(0, rlock_clientattr_setaddressmap, &attr, "a>b");
    CALL(0, rlock_clientattr_seteventcallback, &attr, NULL, NULL);
    CALL(TEST_TLS_CODE, rlock_clientattr_setcafile, &attr, "/nowhere");
    CALL(TEST_TLS_CODE, rlock_clientattr_setcadir, &attr, "/nowhere");
    CALL(TEST_TLS_CODE, rlock_clientattr_setcertfile, &attr, "/nowhere");
    CALL(TEST_TLS_CODE, rlock_clientattr_setkeyfile, &attr, "/nowhere");
    CALL(TEST_TLS_CODE, rlock_clientattr_settlsname, &attr, "nobody");
    CALL(TEST_TLS_CODE, rlock_clientattr_setverify, &attr, RLOCK_VERIFY_CA);
    CALL(EINVAL, rlock_clientattr_setverify, &attr, 2);
    CALL(0, rlock_clientattr_getverify, &attr, &number);
    CALL(0, rlock_clientattr_destroy, &attr);
    CALL(EINVAL, rlock_clientattr_destroy, &attr);
}

/* For mutexes and read-write locks alike. */
#define ATTR_WAYS(type, what, good, bad, code, ret)                                      \
    do {                                                                                 \
        CALL(0, rlock_##type##attr_set##what, &attr, (good));                            \
        CALL((code), rlock_##type##attr_set##what, &attr, (bad));                        \
        CALL(0, rlock_##type##attr_get##what, &attr, (ret));                             \
        CALL(EINVAL, rlock_##type##attr_get##what, &broken, (ret));                      \
    } while (0)

static rlock_client_t *const no_client = (rlock_client_t *)&called_count;

static void call_mutexattr(void)
{
    rlock_mutexattr_t attr, broken;
    rlock_client_t *c;
    long ms;
    int number;

    memset(&broken, 0, sizeof(broken));
    CALL(0, rlock_mutexattr_init, &attr);
    CALL(EINVAL, rlock_mutexattr_init, NULL);
    ATTR_WAYS(mutex, type, RLOCK_MUTEX_NORMAL, 99, EINVAL, &number);
    ATTR_WAYS(mutex, robust, RLOCK_MUTEX_ROBUST, 99, EINVAL, &number);
    ATTR_WAYS(mutex, robust_np, RLOCK_MUTEX_STALLED_NP, 99, EINVAL, &number);
    ATTR_WAYS(mutex, pshared, RLOCK_PROCESS_SHARED, 99, EINVAL, &number);
    ATTR_WAYS(mutex, protocol, RLOCK_PRIO_INHERIT, RLOCK_PRIO_PROTECT, ENOTSUP, &number);
    CALL(ENOTSUP, rlock_mutexattr_setprioceiling, &attr, 1);
    CALL(ENOTSUP, rlock_mutexattr_getprioceiling, &attr, &number);
    ATTR_WAYS(mutex, lease, 1000, 1, EINVAL, &ms);
    ATTR_WAYS(mutex, fencing, 1, 2, EINVAL, &number);
    ATTR_WAYS(mutex, outage, RLOCK_OUTAGE_FAIL, 99, EINVAL, &number);
    ATTR_WAYS(mutex, handoffms, 5, -1, EINVAL, &ms);
    ATTR_WAYS(mutex, handoffcount, 5, -1, EINVAL, &number);
    ATTR_WAYS(mutex, retain, 5, -1, EINVAL, &ms);
    ATTR_WAYS(mutex, client, client, no_client, EINVAL, &c);
    CALL(0, rlock_mutexattr_destroy, &attr);
    CALL(EINVAL, rlock_mutexattr_destroy, &attr);
}

static void call_rwlockattr(void)
{
    rlock_rwlockattr_t attr, broken;
    rlock_client_t *c;
    long ms;
    int number;

    memset(&broken, 0, sizeof(broken));
    CALL(0, rlock_rwlockattr_init, &attr);
    CALL(EINVAL, rlock_rwlockattr_init, NULL);
    ATTR_WAYS(rwlock, kind_np, RLOCK_RWLOCK_PREFER_WRITER_NP, 99, EINVAL, &number);
    ATTR_WAYS(rwlock, pshared, RLOCK_PROCESS_SHARED, 99, EINVAL, &number);
    ATTR_WAYS(rwlock, lease, 1000, 1, EINVAL, &ms);
    ATTR_WAYS(rwlock, retain, 5, -1, EINVAL, &ms);
    ATTR_WAYS(rwlock, fencing, 1, 2, EINVAL, &number);
    ATTR_WAYS(rwlock, outage, RLOCK_OUTAGE_FAIL, 99, EINVAL, &number);
    ATTR_WAYS(rwlock, client, client, no_client, EINVAL, &c);
    CALL(0, rlock_rwlockattr_destroy, &attr);
    CALL(EINVAL, rlock_rwlockattr_destroy, &attr);
}

/* ---- locks: all calls for a handle. `want` is their result, which depends on the
 * server: 0, or an error */

static void call_forms(int want, int rc, bool *ret_held)
{
    ck_assert(rc == want || want == ANY);
    *ret_held = rc == 0;
}

#define UNLOCK_IF_HELD(type, lock)                                                       \
    do {                                                                                 \
        if (held)                                                                        \
            CALL(ANY, rlock_##type##_unlock, (lock));                                    \
    } while (0)

#define EXCLUSIVE_FORMS(type, handle)                                                    \
    static void lock_##type(handle *lock, int want)                                      \
    {                                                                                    \
        struct timespec real, mono;                                                      \
        bool held;                                                                       \
        call_forms(want, CALL(ANY, rlock_##type##_trylock, lock), &held);                \
        UNLOCK_IF_HELD(type, lock);                                                      \
        call_forms(want, CALL(ANY, rlock_##type##_trylock_lease, lock, 5000), &held);    \
        UNLOCK_IF_HELD(type, lock);                                                      \
        real = soon(CLOCK_REALTIME);                                                     \
        call_forms(ANY, CALL(ANY, rlock_##type##_timedlock, lock, &real), &held);        \
        UNLOCK_IF_HELD(type, lock);                                                      \
        real = soon(CLOCK_REALTIME);                                                     \
        call_forms(ANY, CALL(ANY, rlock_##type##_timedlock_lease, lock, &real, 5000),    \
                   &held);                                                               \
        UNLOCK_IF_HELD(type, lock);                                                      \
        mono = soon(CLOCK_MONOTONIC);                                                    \
        call_forms(ANY,                                                                  \
                   CALL(ANY, rlock_##type##_clocklock, lock, CLOCK_MONOTONIC, &mono),    \
                   &held);                                                               \
        UNLOCK_IF_HELD(type, lock);                                                      \
        mono = soon(CLOCK_MONOTONIC);                                                    \
        call_forms(ANY,                                                                  \
                   CALL(ANY, rlock_##type##_clocklock_lease, lock, CLOCK_MONOTONIC,      \
                        &mono, 5000),                                                    \
                   &held);                                                               \
        UNLOCK_IF_HELD(type, lock);                                                      \
    }                                                                                    \
    static void hold_##type(handle *lock)                                                \
    {                                                                                    \
        rlock_state_t state;                                                             \
        uint64_t token;                                                                  \
        unsigned count;                                                                  \
        long ms;                                                                         \
        int number;                                                                      \
        CALL(EPERM, rlock_##type##_gettoken, lock, &token);                              \
        CALL(EPERM, rlock_##type##_getremaining, lock, &ms);                             \
        CALL(EPERM, rlock_##type##_extend, lock, 5000);                                  \
        CALL(EPERM, rlock_##type##_unlock, lock);                                        \
        CALL(0, rlock_##type##_lock, lock);                                              \
        CALL(0, rlock_##type##_lock, lock);                                              \
        CALL(0, rlock_##type##_trylock, lock);                                           \
        CALL(EBUSY, rlock_##type##_destroy, lock);                                       \
        CALL(0, rlock_##type##_extend, lock, 5000);                                      \
        CALL(EINVAL, rlock_##type##_extend, lock, 1);                                    \
        CALL(ENOTSUP, rlock_##type##_gettoken, lock, &token);                            \
        CALL(0, rlock_##type##_getremaining, lock, &ms);                                 \
        CALL(0, rlock_##type##_getstate, lock, &state);                                  \
        CALL(0, rlock_##type##_getholdcount, lock, &count);                              \
        CALL(EINVAL, rlock_##type##_consistent, lock);                                   \
        CALL(EINVAL, rlock_##type##_consistent_np, lock);                                \
        CALL(ENOTSUP, rlock_##type##_getprioceiling, lock, &number);                     \
        CALL(ENOTSUP, rlock_##type##_setprioceiling, lock, 1, &number);                  \
        CALL(0, rlock_##type##_unlock, lock);                                            \
        CALL(0, rlock_##type##_unlock, lock);                                            \
        CALL(0, rlock_##type##_unlock, lock);                                            \
        CALL(0, rlock_##type##_lock_lease, lock, 5000);                                  \
        CALL(0, rlock_##type##_unlock, lock);                                            \
        CALL(EINVAL, rlock_##type##_lock_lease, lock, 1);                                \
    }                                                                                    \
    static void make_##type(handle *ret_lock, const rlock_mutexattr_t *attr)             \
    {                                                                                    \
        CALL(0, rlock_##type##_init, ret_lock, NULL, NULL);                              \
        CALL(0, rlock_##type##_destroy, ret_lock);                                       \
        CALL(EINVAL, rlock_##type##_destroy, ret_lock);                                  \
        CALL(EINVAL, rlock_##type##_lock, ret_lock);                                     \
        CALL(EINVAL, rlock_##type##_unlock, ret_lock);                                   \
        CALL(EINVAL, rlock_##type##_trylock, NULL);                                      \
        CALL(EINVAL, rlock_##type##_init, ret_lock, NULL, "");                           \
        CALL(0, rlock_##type##_init, ret_lock, attr, "n");                               \
    }

EXCLUSIVE_FORMS(mutex, rlock_mutex_t)
EXCLUSIVE_FORMS(fair, rlock_fair_t)

#define RW_FORMS(mode)                                                                   \
    static void lock_##mode(rlock_rwlock_t *lock, int want)                              \
    {                                                                                    \
        struct timespec real, mono;                                                      \
        bool held;                                                                       \
        call_forms(want, CALL(ANY, rlock_rwlock_try##mode##lock, lock), &held);          \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
        call_forms(want, CALL(ANY, rlock_rwlock_try##mode##lock_lease, lock, 5000),      \
                   &held);                                                               \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
        real = soon(CLOCK_REALTIME);                                                     \
        call_forms(ANY, CALL(ANY, rlock_rwlock_timed##mode##lock, lock, &real), &held);  \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
        real = soon(CLOCK_REALTIME);                                                     \
        call_forms(ANY,                                                                  \
                   CALL(ANY, rlock_rwlock_timed##mode##lock_lease, lock, &real, 5000),   \
                   &held);                                                               \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
        mono = soon(CLOCK_MONOTONIC);                                                    \
        call_forms(                                                                      \
            ANY,                                                                         \
            CALL(ANY, rlock_rwlock_clock##mode##lock, lock, CLOCK_MONOTONIC, &mono),     \
            &held);                                                                      \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
        mono = soon(CLOCK_MONOTONIC);                                                    \
        call_forms(ANY,                                                                  \
                   CALL(ANY, rlock_rwlock_clock##mode##lock_lease, lock,                 \
                        CLOCK_MONOTONIC, &mono, 5000),                                   \
                   &held);                                                               \
        UNLOCK_IF_HELD(rwlock, lock);                                                    \
    }

RW_FORMS(rd)
RW_FORMS(wr)

static void hold_rwlock(rlock_rwlock_t *lock)
{
    rlock_state_t state;
    uint64_t token;
    unsigned count;
    long ms;

    CALL(EPERM, rlock_rwlock_gettoken, lock, &token);
    CALL(EPERM, rlock_rwlock_getremaining, lock, &ms);
    CALL(EPERM, rlock_rwlock_extend, lock, 5000);
    CALL(EPERM, rlock_rwlock_unlock, lock);
    CALL(EPERM, rlock_rwlock_rdunlock, lock);
    CALL(EPERM, rlock_rwlock_wrunlock, lock);
    CALL(EPERM, rlock_rwlock_downgrade, lock);
    CALL(0, rlock_rwlock_wrlock, lock);
    CALL(0, rlock_rwlock_wrlock, lock);
    CALL(0, rlock_rwlock_rdlock, lock);
    CALL(0, rlock_rwlock_rdlock, lock);
    CALL(EBUSY, rlock_rwlock_destroy, lock);
    CALL(0, rlock_rwlock_rdunlock, lock);
    CALL(0, rlock_rwlock_wrunlock, lock);
    CALL(0, rlock_rwlock_extend, lock, 5000);
    CALL(ENOTSUP, rlock_rwlock_gettoken, lock, &token);
    CALL(0, rlock_rwlock_getremaining, lock, &ms);
    CALL(0, rlock_rwlock_getstate, lock, &state);
    CALL(0, rlock_rwlock_getholdcount, lock, &count);
    CALL(0, rlock_rwlock_downgrade, lock);
    CALL(EDEADLK, rlock_rwlock_wrlock, lock);
    CALL(EBUSY, rlock_rwlock_trywrlock, lock);
    CALL(0, rlock_rwlock_unlock, lock);
    CALL(0, rlock_rwlock_unlock, lock);
    CALL(0, rlock_rwlock_wrlock_lease, lock, 5000);
    CALL(0, rlock_rwlock_unlock, lock);
    CALL(0, rlock_rwlock_rdlock_lease, lock, 5000);
    CALL(0, rlock_rwlock_unlock, lock);
}

static void make_rwlock(rlock_rwlock_t *ret_lock, const rlock_rwlockattr_t *attr)
{
    CALL(0, rlock_rwlock_init, ret_lock, NULL, NULL);
    CALL(0, rlock_rwlock_destroy, ret_lock);
    CALL(EINVAL, rlock_rwlock_destroy, ret_lock);
    CALL(EINVAL, rlock_rwlock_rdlock, ret_lock);
    CALL(EINVAL, rlock_rwlock_unlock, NULL);
    CALL(EINVAL, rlock_rwlock_init, ret_lock, NULL, "");
    CALL(0, rlock_rwlock_init, ret_lock, attr, "n");
}

static rlock_mutex_t m;
static rlock_fair_t f;
static rlock_rwlock_t w;

static void make_all(rlock_client_t *c)
{
    rlock_mutexattr_t attr;
    rlock_rwlockattr_t rwattr;

    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, c));
    OK(rlock_rwlockattr_init(&rwattr));
    OK(rlock_rwlockattr_setclient(&rwattr, c));
    make_mutex(&m, &attr);
    make_fair(&f, &attr);
    make_rwlock(&w, &rwattr);
}

static void lock_in_all_ways(int want)
{
    lock_mutex(&m, want);
    lock_fair(&f, want);
    lock_rd(&w, want);
    lock_wr(&w, want);
}

/* ---- clients and administration */

static int spoil_errno(const rlock_info_t *info, void *arg)
{
    errno = EXDEV;
    ++*(int *)arg;
    return info->holder_count > 0 ? 0 : 1;
}

static int spoil_by_finding(const rlock_finding_t *finding, void *arg)
{
    (void)finding;
    (void)arg;
    errno = EXDEV;
    return 0;
}

static void look(int inspected, int listed, int diagnosed, int forced, int waited)
{
    rlock_info_t *info = NULL;
    struct timespec end;
    int seen = 0;

    CALL(inspected, rlock_inspect, client, "n", &info);
    CALL_ONLY(rlock_info_free, info);
    CALL(listed, rlock_list, client, NULL, spoil_errno, &seen);
    CALL(diagnosed, rlock_client_diagnose, client, spoil_by_finding, NULL);
    end = soon(CLOCK_REALTIME);
    CALL(waited, rlock_waitfree, client, "n", &end);
    CALL(forced, rlock_force_unlock, client, "n");
}

static void quiet(int level, const char *line, void *arg)
{
    (void)level;
    (void)line;
    (void)arg;
    errno = EXDEV;
}

static void call_clients(void)
{
    rlock_client_t *c;
    rlock_stats_t stats;
    char text[64];

    CALL(EINVAL, rlock_client_open, &c, "nonsense", NULL);
    CALL(TEST_TLS ? EINVAL : ENOTSUP, rlock_client_open, &c,
         "rediss://localhost?cafile=/none", NULL);
    CALL(EINVAL, rlock_client_open, NULL, NULL, NULL);
    CALL(0, rlock_client_open, &c, server.url, NULL);
    CALL(0, rlock_client_ping, c);
    CALL(0, rlock_client_getstats, c, &stats);
    CALL(EINVAL, rlock_client_getstats, c, NULL);
    CALL(0, rlock_client_interrupt, c);
    CALL(0, rlock_client_close, c);
    CALL(EINVAL, rlock_client_close, no_client);
    CALL(EINVAL, rlock_client_ping, no_client);
    CALL(EINVAL, rlock_client_getserver, no_client, text, sizeof(text), text,
         sizeof(text));
    CALL(EINVAL, rlock_client_getserver, NULL, NULL, 0, text, sizeof(text));
    CALL(0, rlock_client_getserver, NULL, text, sizeof(text), text, sizeof(text));
    CALL(EINVAL, rlock_client_interrupt, NULL);
    CALL(EINVAL, rlock_getrundir, NULL, 0);
    CALL(EINVAL, rlock_client_setdefault, "nonsense", NULL);
    CALL(0, rlock_client_setdefault, server.url, NULL);
    CALL(0, rlock_client_ping, NULL);
    CALL(EBUSY, rlock_client_setdefault, server.url, NULL);
    CALL(0, rlock_client_close, NULL);
    CALL_ONLY(rlock_setlogger, quiet, NULL, 7);
    CALL_ONLY(rlock_strerror, ESTALE);
    CALL_ONLY(rlock_errmsg);
    CALL_ONLY(rlock_version);
}

/* ---- tests */

static void set_up(void)
{
    fixture_open();
    rlock_setlogger(quiet, NULL, 7); /* so that lines are logged, too */
    called_count = 0;
}

/* Blanks out comments and preprocessor lines. */
static void strip(char *text)
{
    for (char *p = text; *p; p++) {
        if (p[0] == '/' && p[1] == '*') {
            char *end = strstr(p, "*/");
            memset(p, ' ', (size_t)(end + 2 - p));
        } else if (*p == '#' && (p == text || p[-1] == '\n')) {
            for (; *p && *p != '\n'; p++) {
                if (p[0] == '\\' && p[1] == '\n')
                    p[1] = ' ';
                *p = ' ';
            }
        }
    }
}

static char *read_header(void)
{
    FILE *file = fopen(TEST_SRCDIR "/include/rlock.h", "r");
    ck_assert_msg(file != NULL, "%s", TEST_SRCDIR "/include/rlock.h");
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_lt(fread(text, 1, (1 << 20) - 1, file), (1 << 20) - 1);
    fclose(file);
    strip(text);
    return text;
}

static bool was_called(const char *name, size_t len)
{
    for (int i = 0; i < called_count; i++)
        if (strlen(called_names[i]) == len && memcmp(called_names[i], name, len) == 0)
            return true;
    return false;
}

/* Counts each name that stands directly before a parenthesis. */
static int count_declared(const char *text)
{
    int count = 0;
    for (const char *p = text; (p = strstr(p, "rlock_")) != NULL;) {
        size_t len = 0;
        while (isalnum((unsigned char)p[len]) || p[len] == '_')
            len++;
        if (p[len] == '(') {
            count++;
            ck_assert_msg(was_called(p, len), "%.*s is not among the calls of this test",
                          (int)len, p);
        }
        p += len;
    }
    return count;
}

START_TEST(every_function_of_the_header_leaves_errno_alone)
{
    call_clientattr();
    call_mutexattr();
    call_rwlockattr();
    make_all(client);
    hold_mutex(&m);
    hold_fair(&f);
    hold_rwlock(&w);
    lock_in_all_ways(0);
    call_clients();
    look(ENOENT, 0, 0, ENOENT, 0);
    char *header = read_header();
    int declared = count_declared(header);
    free(header);
    ck_assert_int_gt(declared, 100);
    ck_assert_int_eq(declared, called_count);
}
END_TEST

START_TEST(lock_that_is_held_elsewhere_leaves_errno_alone)
{
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    make_all(client);
    OK(rlock_mutex_lock(&theirs));
    lock_in_all_ways(EBUSY);
    look(0, 0, 0, 0, ETIMEDOUT);
    CALL(ESTALE, rlock_mutex_unlock, &theirs);
}
END_TEST

START_TEST(lost_lock_leaves_errno_alone)
{
    long ms;
    make_all(client);
    OK(rlock_mutex_lock(&m));
    OK(rlock_force_unlock(client, "n"));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    CALL(ESTALE, rlock_mutex_lock, &m);
    CALL(ESTALE, rlock_mutex_extend, &m, 5000);
    CALL(0, rlock_mutex_getremaining, &m, &ms);
    CALL(ESTALE, rlock_mutex_unlock, &m);
}
END_TEST

static int lock_and_die(void *mutex)
{
    return rlock_mutex_lock(mutex);
}

START_TEST(robust_lock_leaves_errno_alone)
{
    rlock_mutexattr_t attr;
    OK(rlock_mutexattr_init(&attr));
    OK(rlock_mutexattr_setclient(&attr, client));
    OK(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST));
    OK(rlock_mutex_init(&m, &attr, "n"));
    OK(in_thread(lock_and_die, &m));
    CALL(EOWNERDEAD, rlock_mutex_lock, &m);
    CALL(0, rlock_mutex_consistent, &m);
    CALL(0, rlock_mutex_unlock, &m);
    OK(in_thread(lock_and_die, &m));
    CALL(EOWNERDEAD, rlock_mutex_lock, &m);
    CALL(0, rlock_mutex_unlock, &m);
    CALL(ENOTRECOVERABLE, rlock_mutex_lock, &m);
    CALL(ENOTRECOVERABLE, rlock_mutex_trylock, &m);
}
END_TEST

START_TEST(normal_mutex_locked_again_leaves_errno_alone)
{
    m = typed_mutex(client, "n", RLOCK_MUTEX_NORMAL);
    OK(rlock_mutex_lock(&m));
    struct timespec end = soon(CLOCK_REALTIME);
    CALL(EDEADLK, rlock_mutex_lock, &m);
    CALL(EBUSY, rlock_mutex_trylock, &m);
    CALL(ETIMEDOUT, rlock_mutex_timedlock, &m, &end);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(interrupted_client_leaves_errno_alone)
{
    rlock_mutex_t theirs = mutex_of(fixture_other(), "n");
    make_all(client);
    OK(rlock_mutex_lock(&theirs));
    CALL(0, rlock_client_interrupt, client);
    CALL(ECANCELED, rlock_mutex_lock, &m);
    CALL(ECANCELED, rlock_rwlock_rdlock, &w);
    CALL(ECANCELED, rlock_waitfree, client, "n", NULL);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

START_TEST(foreign_key_leaves_errno_alone)
{
    make_all(client);
    test_redis_do(redis, "SET", "n", "a string");
    lock_in_all_ways(EPROTO);
    look(EPROTO, 0, 0, EPROTO, ANY);
}
END_TEST

START_TEST(server_that_refuses_leaves_errno_alone)
{
    make_all(client);
    test_redis_do(redis, "ACL", "SETUSER", "default", "-eval", "-evalsha");
    lock_in_all_ways(EACCES);
    look(EACCES, ANY, 0, EACCES, EACCES);
    test_redis_do(redis, "ACL", "SETUSER", "default", "+@all");
}
END_TEST

/* ---- a server that is away: each way has system calls of its own that fail */

enum way { KILLED, PAUSED, REFUSED, NO_PATH, NO_HOST, BY_NAME, NO_DESCRIPTOR, WAYS };

static const char *address_of(enum way way)
{
    static char url[TEST_URL_MAX];
    if (way == BY_NAME)
        snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)server.port);
    else
        snprintf(url, sizeof(url), "%s",
                 way == REFUSED   ? "redis://127.0.0.1:1"
                 : way == NO_PATH ? "unix:///nowhere"
                 : way == NO_HOST ? "redis://nowhere.invalid"
                                  : server.tcp_url);
    return url;
}

/* Opens a client with short timeouts and takes locks: the server fails while it is in
 * use. */
static void open_short(enum way way)
{
    char url[TEST_URL_MAX + 64];
    long timeout = test_ms(way == BY_NAME ? 3000 : SHORT_MS);
    close_client(client);
    snprintf(url, sizeof(url), "%s?commandtimeout=%ld&connecttimeout=%ld",
             address_of(way), timeout, timeout);
    CALL(0, rlock_client_open, &client, url, NULL);
    make_all(client);
}

static void lose_server(enum way way)
{
    if (way == KILLED)
        test_server_kill(&server);
    else if (way == PAUSED)
        test_server_pause(&server);
    else if (way == NO_DESCRIPTOR)
        test_fd_limit(3);
}

static void find_server(enum way way)
{
    if (way == KILLED)
        test_server_restart(&server);
    else if (way == PAUSED)
        test_server_resume(&server);
    test_fd_allow(-1);
}

static void with_a_hold(enum way way)
{
    bool works = way == KILLED || way == PAUSED;
    rlock_rwlock_t written = rwlock_of(client, "another");
    if (works) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_rwlock_wrlock(&written));
    }
    lose_server(way);
    if (works) {
        CALL(ENOTCONN, rlock_mutex_extend, &m, 60000);
        CALL(0, rlock_rwlock_downgrade, &written);
        CALL(0, rlock_rwlock_unlock, &written);
        CALL(0, rlock_mutex_unlock, &m);
    }
}

START_TEST(server_that_is_away_leaves_errno_alone)
{
    enum way way = (enum way)_i;
    int want = way == BY_NAME ? 0 : way == NO_DESCRIPTOR ? EMFILE : ENOTCONN;
    open_short(way);
    with_a_hold(way);
    lock_in_all_ways(want);
    CALL(want, rlock_client_ping, client);
    if (want == 0)
        look(ENOENT, 0, 0, ENOENT, 0);
    else
        look(want, want, want, want, ENOTCONN);
    find_server(way);
    CALL(0, rlock_client_close, client);
    client = NULL;
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("errno");
    TCase *tc = tcase_create("calls");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, every_function_of_the_header_leaves_errno_alone);
    tcase_add_test(tc, lock_that_is_held_elsewhere_leaves_errno_alone);
    tcase_add_test(tc, lost_lock_leaves_errno_alone);
    tcase_add_test(tc, robust_lock_leaves_errno_alone);
    tcase_add_test(tc, normal_mutex_locked_again_leaves_errno_alone);
    tcase_add_test(tc, interrupted_client_leaves_errno_alone);
    tcase_add_test(tc, foreign_key_leaves_errno_alone);
    tcase_add_test(tc, server_that_refuses_leaves_errno_alone);
    tcase_add_loop_test(tc, server_that_is_away_leaves_errno_alone, 0, WAYS);
    suite_add_tcase(s, tc);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
