/* SPDX-License-Identifier: Apache-2.0 */
/* A tour through all that the library does at a server, with two clients of one user. It
 * ends at the first unexpected code. Names of locks begin with "jobs:". Thread: a test's
 * main thread. */
#ifndef TEST_ACL_TOUR_H
#define TEST_ACL_TOUR_H

#include <stdbool.h>

struct tour {
    int rc;           /* 0: all was well */
    char where[80];   /* the call with the unexpected code */
    char errmsg[400]; /* the text of rlock_errmsg after it */
};

/* whole: also in rare states of the server: it does not know a script, and a token is
 * ahead of its clock. */
void acl_tour(const char *url, bool whole, struct tour *ret_tour);

#endif
