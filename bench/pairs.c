/* SPDX-License-Identifier: Apache-2.0 */
/* A loop of lock and unlock that reads no clock, for tools that count instructions:
 *     pairs mutex|robust|kept|kept-robust COUNT */
#include <rlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_MS = 600000, EXIT_USAGE = 64 };

static void check(int rc, const char *what)
{
    if (rc != 0) {
        fprintf(stderr, "pairs: %s: %s\n", what, rlock_errmsg());
        exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    const char *kind = argc == 3 ? argv[1] : "";
    bool kept = strncmp(kind, "kept", strlen("kept")) == 0;
    bool robust = strstr(kind, "robust") != NULL;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;

    if (!kept && !robust && strcmp(kind, "mutex") != 0) {
        fputs("pairs mutex|robust|kept|kept-robust COUNT\n", stderr);
        return EXIT_USAGE;
    }
    check(rlock_mutexattr_init(&attr), "attributes");
    check(rlock_mutexattr_setretain(&attr, kept ? KEEP_MS : 0), "retain");
    if (robust)
        check(rlock_mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST), "robust");
    check(rlock_mutex_init(&mutex, &attr, "bench-pairs"), "mutex");
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; i--) {
        check(rlock_mutex_lock(&mutex), "lock");
        check(rlock_mutex_unlock(&mutex), "unlock");
    }
    check(rlock_client_close(NULL), "close");
    return EXIT_SUCCESS;
}
