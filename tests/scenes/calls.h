/* SPDX-License-Identifier: Apache-2.0 */
/* Every public function, called with a server that answers, for what is to be true before
 * and after each of them. It uses <rlock.h> only. Thread: any. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <rlock.h>

struct calls {
    /* set by the caller */
    rlock_client_t *client;
    const char *url;      /* of its server */
    const char *theirs;   /* a lock of the program's kind that another client holds */
    const char *free_one; /* a name that nobody uses */
    long wait_ms;         /* what a deadline is set to */
    void (*after)(struct calls *calls); /* NULL: nothing; else after each call */
    void *arg;
    /* what was found */
    const char *now;   /* the call that is, or was, under way */
    int count;         /* calls that returned */
    const char *wrong; /* the first call with an unexpected code, and that; or NULL */
    int rc;
    const char *odd; /* for `after` */
};

/* Leaves nothing behind, at the server or here. */
void calls_of_all(struct calls *calls);

#endif
