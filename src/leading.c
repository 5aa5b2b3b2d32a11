/* SPDX-License-Identifier: Apache-2.0 */
/* See leading.h. The subscriber sleeps on an epoll set, in which the leader switches the
 * connection off while it polls it. What wakes the leader sets leader_called, under the
 * registry's mutex, and writes to leader_fd, unless it is the leader itself. */
#include "leading.h"

#include "client.h"
#include "deadline.h"
#include "fork.h"

#include <errno.h>
#include <poll.h>

/* Until one of them has events, a signal, or `mono_end`. False: it cannot wait so. */
static bool await(struct pollfd fds[2], int64_t mono_end)
{
    struct timespec left = { 0 };

    if (mono_end != RLK_NEVER) {
        int64_t ns = mono_end - rlk_now_mono();
        if (ns > 0) {
            left.tv_sec = (time_t)(ns / RLK_NS_PER_S);
            left.tv_nsec = (long)(ns % RLK_NS_PER_S);
        }
    }
    if (ppoll(fds, 2, mono_end == RLK_NEVER ? NULL : &left, NULL) >= 0)
        return true;
    fds[0].revents = fds[1].revents = 0;
    return errno == EINTR; /* EINVAL: RLIMIT_NOFILE was lowered to less than these */
}

bool rlk_lead_locked(struct rlock_client *client, struct rlk_thread *thread,
                     int64_t mono_end)
{
    struct rlk_registry *reg = &client->registry;
    struct rlk_subscription *sub = &client->subscription;
    unsigned generation = rlk_fork_generation();

    if (!reg->mail_open || reg->leader)
        return false;
    reg->leader = thread;
    reg->leader_told = false;
    atomic_store(&reg->leader_called, false);
    struct pollfd fds[2] = { { rlk_conn_fd(sub->conn), POLLIN, 0 },
                             { reg->leader_fd, POLLIN, 0 } };
    rlk_mutex_unlock(&reg->mu);

    bool good = rlk_conn_watch(sub->conn, sub->watch_fd, false) == 0;
    while (good && !atomic_load(&reg->leader_called) &&
           (mono_end == RLK_NEVER || rlk_now_mono() < mono_end)) {
        good = await(fds, mono_end);
        if (rlk_fork_since(generation))
            break; /* a signal's handler forked, and this is the child */
        if (fds[1].revents)
            rlk_alarm_clear(fds[1].fd); /* an eventfd is emptied in the same way */
        if (fds[0].revents)
            good = rlk_subscriber_read(client);
    }
    bool inherited = rlk_fork_since(generation);
    /* while we are seen to lead, the subscriber lets what it is told of alone */
    if (!inherited && good)
        good = rlk_conn_watch(sub->conn, sub->watch_fd, true) == 0;
    rlk_mutex_lock(&reg->mu);
    if (inherited)
        return true;
    reg->leader = NULL;
    reg->mail_open &= good;
    reg->subscriber_dirty |= !reg->mail_open;
    return true;
}
