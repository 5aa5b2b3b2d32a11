/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that looks at the server's locks again and again, for a view that must not
 * block as long as the server does not answer. State: in the caller's struct, zeroed at
 * first. Thread: main, but for what the thread itself runs. */
#ifndef CLI_LOOKER_H
#define CLI_LOOKER_H

#include "watch.h"

#include <pthread.h>

struct looker {
    const struct watch *watch; /* immutable */
    int wake[2];               /* immutable; [0] can be read when there is news */
    pthread_t thread;
    pthread_mutex_t mu; /* of what follows; nests in nothing */
    pthread_cond_t cond;
    bool stop, looking;
    int64_t since_ms;       /* look_now_ms() when it began to look */
    long pause_ms;          /* between the last look and the next; 0: there was none */
    struct look_list *news; /* not taken yet; owned */
};

/* The caller has blocked the signals that the thread is not to take. False: it could not
 * be started. */
bool looker_start(struct looker *looker, const struct watch *watch);
/* The last look since the one before, the caller's to looker_drop; NULL: none. */
struct look_list *looker_take(struct looker *looker);
void looker_drop(struct look_list *list);
/* How long the look that is under way has lasted; 0: none is. */
int64_t looker_waits_ms(struct looker *looker);
/* The pause between two looks, which may be longer than the interval; 0: not known yet.
 */
long looker_pause_ms(struct looker *looker);
/* False: it is amid a look, which may last, and goes on. */
bool looker_stop(struct looker *looker);

#endif
