/* SPDX-License-Identifier: Apache-2.0 */
/* Start it twice, also on two hosts with one Redis: the second one waits. */
#include <rlock.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    rlock_mutex_t m;
    int rc = rlock_mutex_init(&m, NULL, argc > 1 ? argv[1] : "hello");
    if (rc == 0)
        rc = rlock_mutex_lock(&m); /* renewed in the background until unlock */
    if (rc != 0) {
        fprintf(stderr, "lock: %s\n", rlock_errmsg());
        return 1;
    }
    puts("I hold the lock. Enter lets the next one in.");
    getchar();
    rc = rlock_mutex_unlock(&m); /* ESTALE: it was lost on the way */
    if (rc != 0)
        fprintf(stderr, "unlock: %s\n", rlock_errmsg());
    return rc != 0;
}
