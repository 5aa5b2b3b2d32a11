/* SPDX-License-Identifier: Apache-2.0 */
/* Calls every public function with a server that answers. A test checks what must be true
 * before and after each call. Uses <rlock.h> only. Thread: any. */
#ifndef TEST_CALLS_H
#define TEST_CALLS_H

#include <rlock.h>

struct calls {
    /* set by the caller */
    rlock_client_t *client;
    const char *url;      /* of its server */
    const char *theirs;   /* a lock of the program's kind that another client holds */
    const char *free_one; /* a name that no client uses */
    long wait_ms;         /* from now to the deadlines of timed calls */
    void (*after)(struct calls *calls); /* called after each call; NULL: nothing */
    void *arg;
    /* what was found */
    const char *now;   /* the call that runs, or ran last */
    int count;         /* calls that returned */
    const char *wrong; /* the first call with an unexpected code, and that code; NULL:
                          none */
    int rc;
    const char *odd; /* for `after` */
};

/* Leaves no lock or key behind, at the server or in this process. */
void calls_of_all(struct calls *calls);

#endif
