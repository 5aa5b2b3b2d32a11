/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole client against a server that does what the input says. The input's first line
 * is what the client does, one letter each (see `calls`); the other lines are the
 * server's steps (peer.h). Properties: every call returns in time with a documented code;
 * no lock is taken without a reply or a message that may be a grant; log lines and
 * reasons are printable; nothing is left open at the end.
 */
#include "fuzz.h"
#include "peer.h"
#include "wait.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <rlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CALLS_MAX = 10,
    LEVELS_MAX = 2 * CALLS_MAX,
    TIMEOUT_MS = 15,
    WAIT_MS = 15,
    LEASE_MS = 60,
    LONG_LEASE_MS = 100,
    NAP_MS = 25,
    /* how much longer than its timeouts a call may take on a busy machine: less than any
     * timeout that it could have used by mistake */
    ROOM_MS = 2000,
    /* close waits for the client's threads; an overloaded machine may not have started
     * them yet */
    CLOSE_ROOM_MS = 10000
};

static rlock_client_t *client;
static rlock_mutex_t mutex, robust;
static rlock_fair_t fair;
static rlock_rwlock_t rwlock;
static bool with_companion;
static pthread_t companion;

/* ---- what holds for every call */

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    fuzz_must(fuzz_printable(line));
}

static void on_event(const rlock_event_t *event, void *arg)
{
    (void)arg;
    fuzz_must(event->reason && fuzz_printable(event->reason));
    fuzz_must(event->name && event->remaining_ms >= 0);
}

static bool is_code(int rc)
{
    static const int codes[] = { 0,         EBUSY,  ETIMEDOUT,  EDEADLK,         EPERM,
                                 EAGAIN,    ENOENT, EOWNERDEAD, ENOTRECOVERABLE, EINVAL,
                                 ECANCELED, ESTALE, ENOTCONN,   EACCES,          EPROTO,
                                 ENOTSUP };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (rc == codes[i])
            return true;
    return false;
}

static struct timespec soon(clockid_t clock)
{
    return test_in_ms(clock, WAIT_MS);
}

static unsigned level_count(void)
{
    unsigned sum = 0, n = 0;
    fuzz_must(rlock_mutex_getholdcount(&mutex, &n) == 0);
    sum += n;
    fuzz_must(rlock_mutex_getholdcount(&robust, &n) == 0);
    sum += n;
    fuzz_must(rlock_fair_getholdcount(&fair, &n) == 0);
    sum += n;
    fuzz_must(rlock_rwlock_getholdcount(&rwlock, &n) == 0);
    return sum + n;
}

/* ---- the calls */

static int told(const rlock_info_t *info, void *arg)
{
    (void)arg;
    fuzz_must(info->holder_count > 0);
    return 0;
}

static int inspect(void)
{
    rlock_info_t *info = NULL;
    int rc = rlock_inspect(client, "m", &info);
    if (rc == 0)
        rlock_info_free(info);
    return rc;
}

static int wait_free(void)
{
    struct timespec until = soon(CLOCK_REALTIME);
    return rlock_waitfree(client, "m", &until);
}

static int look(void)
{
    uint64_t token = 0;
    long left = 0;
    rlock_state_t state = RLOCK_UNHELD;
    int rc = rlock_mutex_gettoken(&mutex, &token);
    fuzz_must(rc != 0 || token != 0);
    fuzz_must(rlock_mutex_getremaining(&mutex, &left) != 0 || left >= 0);
    fuzz_must(rlock_mutex_getstate(&mutex, &state) == 0);
    return rc;
}

/* Reads at the same time, as another thread of the process. */
static void *read_beside(void *arg)
{
    struct timespec until = soon(CLOCK_MONOTONIC);
    int rc = rlock_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &until);
    fuzz_must(is_code(rc));
    if (rc == 0)
        rc = rlock_rwlock_rdunlock(&rwlock);
    fuzz_must(is_code(rc));
    return arg;
}

static int start_companion(void)
{
    if (!with_companion && pthread_create(&companion, NULL, read_beside, NULL) == 0)
        with_companion = true;
    return 0;
}

/* *ret_locks: whether the call may take a lock. */
static int call(char what, bool *ret_locks)
{
    struct timespec until = soon(CLOCK_MONOTONIC);
    *ret_locks = what != 0 && strchr("mfwrbMFWRBl", what) != NULL;
    switch (what) {
    case 'm':
        return rlock_mutex_trylock(&mutex);
    case 'M':
        return rlock_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
    case 'b':
        return rlock_mutex_trylock(&robust);
    case 'B':
        return rlock_mutex_clocklock(&robust, CLOCK_MONOTONIC, &until);
    case 'f':
        return rlock_fair_trylock(&fair);
    case 'F':
        return rlock_fair_clocklock(&fair, CLOCK_MONOTONIC, &until);
    case 'w':
        return rlock_rwlock_trywrlock(&rwlock);
    case 'W':
        return rlock_rwlock_clockwrlock(&rwlock, CLOCK_MONOTONIC, &until);
    case 'r':
        return rlock_rwlock_tryrdlock(&rwlock);
    case 'R':
        return rlock_rwlock_clockrdlock(&rwlock, CLOCK_MONOTONIC, &until);
    case 'l':
        return rlock_mutex_clocklock_lease(&mutex, CLOCK_MONOTONIC, &until, LEASE_MS);
    case 'u':
        return rlock_mutex_unlock(&mutex);
    case 'c':
        return rlock_mutex_consistent(&robust);
    case 'U':
        return rlock_rwlock_unlock(&rwlock);
    case 'd':
        return rlock_rwlock_downgrade(&rwlock);
    case 'x':
        return rlock_mutex_extend(&mutex, LONG_LEASE_MS);
    case 'X':
        return rlock_rwlock_extend(&rwlock, LONG_LEASE_MS);
    case 'g':
        return look();
    case 'p':
        return rlock_client_ping(client);
    case 'i':
        return inspect();
    case 'L':
        return rlock_list(client, NULL, told, NULL);
    case 'k':
        return rlock_force_unlock(client, "m");
    case 'v':
        return wait_free();
    case 'T':
        return start_companion();
    case 'I':
        return rlock_client_interrupt(client);
    case 'z':
        test_pause_ms(NAP_MS);
        return 0;
    default:
        return 0;
    }
}

static void checked_call(char what)
{
    bool locks;
    unsigned before = level_count();
    int64_t start = test_now_ms();

    if (before == 0 && !with_companion)
        fuzz_peer_forget();
    int rc = call(what, &locks);
    fuzz_must(is_code(rc));
    fuzz_must(test_now_ms() - start <= test_ms(ROOM_MS));
    if (locks && (rc == 0 || rc == EOWNERDEAD)) {
        /* to a writer that also reads, count gives its levels as a writer */
        fuzz_must(level_count() == before + 1 || (strchr("rR", what) && before > 0));
        fuzz_must(before > 0 || fuzz_peer_gave());
    } else if (locks) {
        fuzz_must(level_count() == before);
    }
}

/* ---- a client's life */

static void open_all(bool tcp)
{
    char url[256];
    rlock_clientattr_t attr;
    rlock_mutexattr_t mattr;
    rlock_rwlockattr_t rattr;

    snprintf(url, sizeof(url),
             "%s?lease=%d&presence=100&commandtimeout=%d&connecttimeout=%d",
             fuzz_peer_url(tcp), LEASE_MS, TIMEOUT_MS, TIMEOUT_MS);
    fuzz_must(rlock_clientattr_init(&attr) == 0);
    fuzz_must(rlock_clientattr_seteventcallback(&attr, on_event, NULL) == 0);
    fuzz_must(rlock_clientattr_setcredentials(&attr, "u", "p") == 0);
    fuzz_must(rlock_client_open(&client, url, &attr) == 0);
    rlock_clientattr_destroy(&attr);
    fuzz_must(rlock_mutexattr_init(&mattr) == 0);
    fuzz_must(rlock_mutexattr_setclient(&mattr, client) == 0);
    fuzz_must(rlock_mutexattr_setfencing(&mattr, 1) == 0);
    fuzz_must(rlock_mutex_init(&mutex, &mattr, "m") == 0);
    fuzz_must(rlock_mutexattr_setfencing(&mattr, 0) == 0);
    fuzz_must(rlock_fair_init(&fair, &mattr, "f") == 0);
    fuzz_must(rlock_mutexattr_setrobust(&mattr, RLOCK_MUTEX_ROBUST) == 0);
    fuzz_must(rlock_mutex_init(&robust, &mattr, "b") == 0);
    fuzz_must(rlock_rwlockattr_init(&rattr) == 0);
    fuzz_must(rlock_rwlockattr_setclient(&rattr, client) == 0);
    fuzz_must(rlock_rwlock_init(&rwlock, &rattr, "w") == 0);
}

/* Unlocking ends all levels, whatever the server says. */
static void unlock_all(void)
{
    for (int i = 0; level_count() > 0; i++) {
        fuzz_must(i < LEVELS_MAX);
        int64_t start = test_now_ms();
        fuzz_must(is_code(rlock_mutex_unlock(&mutex)));
        fuzz_must(is_code(rlock_mutex_unlock(&robust)));
        fuzz_must(is_code(rlock_fair_unlock(&fair)));
        fuzz_must(is_code(rlock_rwlock_unlock(&rwlock)));
        fuzz_must(test_now_ms() - start <= test_ms(ROOM_MS));
    }
}

static void close_all(void)
{
    unlock_all();
    if (with_companion)
        pthread_join(companion, NULL);
    with_companion = false;
    int64_t start = test_now_ms();
    fuzz_must(rlock_client_close(client) == 0);
    fuzz_must(test_now_ms() - start <= test_ms(CLOSE_ROOM_MS));
    fuzz_peer_end();
}

/* The number of descriptors that a client may have: sockets, events and alarms. The pipes
 * of libFuzzer's symbolizer do not count. */
static int count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;
    if (!d)
        return 0;
    while ((entry = readdir(d)) != NULL) {
        char to[256] = "";
        count += readlinkat(dirfd(d), entry->d_name, to, sizeof(to) - 1) > 0 &&
                 (strncmp(to, "socket:", 7) == 0 || strncmp(to, "anon_inode:", 11) == 0);
    }
    closedir(d);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptors;
    struct fuzz_input in = { data, size };
    size_t count;
    const uint8_t *calls = fuzz_line(&in, &count);

    fuzz_peer_start();
    if (descriptors == 0) {
        rlock_setlogger(on_log, NULL, 7);
        descriptors = count_descriptors();
    }
    bool tcp = count > 0 && calls[0] == 't';
    fuzz_peer_play(in.at, in.left);
    open_all(tcp);
    for (size_t i = tcp; i < count && i < CALLS_MAX; i++)
        checked_call((char)calls[i]);
    close_all();
    fuzz_must(count_descriptors() == descriptors);
    return 0;
}
