/* SPDX-License-Identifier: Apache-2.0 */
/* A program of another project, built against the installed library; the same text for
 * C11, C17 and C++17. Takes each kind of lock once, and checks that the header is the
 * installed library's. */
#include <rlock.h>

#include <stdio.h>
#include <string.h>

static rlock_mutex_t mutex = RLOCK_MUTEX_INITIALIZER("consumer:mutex");
static rlock_fair_t fair = RLOCK_FAIR_INITIALIZER("consumer:fair");
static rlock_rwlock_t rwlock = RLOCK_RWLOCK_INITIALIZER("consumer:rwlock");
/* The other initialisers must compile. */
rlock_mutex_t consumer_mutexes[] = {
    RLOCK_RECURSIVE_MUTEX_INITIALIZER_NP("consumer:recursive"),
    RLOCK_ERRORCHECK_MUTEX_INITIALIZER_NP("consumer:errorcheck"),
    RLOCK_ADAPTIVE_MUTEX_INITIALIZER_NP("consumer:adaptive"),
};
rlock_rwlock_t consumer_rwlock =
    RLOCK_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP("consumer:writers");

static int failed(const char *what)
{
    fprintf(stderr, "consumer: %s: %s\n", what, rlock_errmsg());
    return 1;
}

int main(void)
{
    if (strcmp(rlock_version(), RLOCK_VERSION) != 0) {
        fprintf(stderr, "consumer: header %s, library %s\n", RLOCK_VERSION,
                rlock_version());
        return 1;
    }
    if (rlock_mutex_lock(&mutex) != 0)
        return failed("mutex");
    if (rlock_fair_lock(&fair) != 0)
        return failed("fair");
    if (rlock_rwlock_rdlock(&rwlock) != 0)
        return failed("rwlock");
    if (rlock_rwlock_unlock(&rwlock) != 0 || rlock_fair_unlock(&fair) != 0 ||
        rlock_mutex_unlock(&mutex) != 0)
        return failed("unlock");
    puts("consumer: " RLOCK_VERSION);
    return 0;
}
