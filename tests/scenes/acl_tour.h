/* SPDX-License-Identifier: Apache-2.0 */
/* A tour through all that the library does at a server, with two clients of one user, up
 * to the first code that is not as it should be. Names begin with "jobs:". Thread: a
 * test's main thread. */
#ifndef TEST_ACL_TOUR_H
#define TEST_ACL_TOUR_H

#include <stdbool.h>

struct tour {
    int rc;           /* 0: all was well */
    char where[80];   /* the call that was not */
    char errmsg[400]; /* rlock_errmsg then */
};

/* whole: also what a server asks for only at times: a script that it does not know, a
 * token that its clock is behind. */
void acl_tour(const char *url, bool whole, struct tour *ret_tour);

#endif
