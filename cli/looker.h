/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that reads the server's locks again and again, for a view that must not
 * block while the server does not answer. State: in the caller's struct, zeroed at
 * first. Thread: main, except the code that the thread itself runs. */
#ifndef CLI_LOOKER_H
#define CLI_LOOKER_H

#include "watch.h"

#include <pthread.h>

struct looker {
    const struct watch *watch; /* immutable */
    int wake[2];               /* immutable; [0] becomes readable when there is news */
    pthread_t thread;
    pthread_mutex_t mu; /* protects the fields below; nests in nothing */
    pthread_cond_t cond;
    bool stop, looking;
    int64_t since_ms;       /* look_now_ms() when the current look began */
    long pause_ms;          /* between the last look and the next; 0: no look yet */
    struct look_list *news; /* not taken yet; owned */
};

/* The caller has blocked the signals that the thread must not take. False: it could
 * not be started. */
bool looker_start(struct looker *looker, const struct watch *watch);
/* The newest look since the last call; the caller drops it with looker_drop; NULL:
 * none. */
struct look_list *looker_take(struct looker *looker);
void looker_drop(struct look_list *list);
/* The duration of the current look so far; 0: no look is under way. */
int64_t looker_waits_ms(struct looker *looker);
/* The pause between two looks, which may be longer than the interval; 0: unknown. */
long looker_pause_ms(struct looker *looker);
/* False: a look is under way, which may take long; the thread continues. */
bool looker_stop(struct looker *looker);

#endif
