/* SPDX-License-Identifier: Apache-2.0 */
/* See leader.h. The subscriber sleeps on an epoll set; while the leader polls the
 * connection, it removes the connection's input from the set. A thread that wakes the
 * leader sets leader_called under the registry's mutex, and writes to leader_fd,
 * unless it is the leader itself. Thread: see leader.h. */
#include "client/leader.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/fork.h"
#include "base/ppoll.h"
#include "client/client.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>

enum {
    FDS_LEFT = 16,
    /* Between two checks that the polled descriptors still are the library's: if the
     * program closed one during the sleep, it cannot wake the leader. */
    LOOK_MS = 1000
};

/* ---- called by the leader */

/* Sleeps until a descriptor has events, a signal comes, `mono_end`, or LOOK_MS. False:
 * the thread cannot wait in this way. */
static bool await(struct pollfd fds[2], int64_t mono_end)
{
    int64_t ns = LOOK_MS * RLK_NS_PER_MS;

    if (mono_end != RLK_NEVER && mono_end - rlk_clock_mono() < ns)
        ns = mono_end - rlk_clock_mono();
    if (ns < 0)
        ns = 0;
    struct timespec left = { (time_t)(ns / RLK_NS_PER_S), (long)(ns % RLK_NS_PER_S) };
    int count = rlk_ppoll(fds, 2, &left, NULL);
    if (count > 0)
        return true;
    fds[0].revents = fds[1].revents = 0;
    if (count == 0)
        return rlk_fd_is_ours(fds[0].fd) && rlk_fd_is_ours(fds[1].fd);
    return errno == EINTR; /* EINVAL: RLIMIT_NOFILE is below their number */
}

bool rlk_leader_begin_locked(struct rlk_target *target, struct rlk_thread *thread,
                             int64_t mono_end)
{
    struct rlock_client *client = target->client;
    struct rlk_registry *reg = &client->registry;
    struct rlk_subscription *sub = &target->subscription;
    unsigned generation = rlk_fork_generation();

    if (!reg->mail_open || reg->leader)
        return false;
    reg->leader = thread;
    reg->leader_told = false;
    atomic_store(&reg->leader_called, false);
    struct pollfd fds[2] = { { rlk_conn_fd(sub->conn), POLLIN, 0 },
                             { reg->leader_fd, POLLIN, 0 } };
    rlk_sync_mutex_unlock(&reg->mu);

    /* In a child, where a signal handler forked and returned, the descriptors are the
     * parent's. */
    bool good = !rlk_fork_since(generation) &&
                rlk_conn_watch(sub->conn, sub->watch_fd, false) == 0;
    while (good && !atomic_load(&reg->leader_called) &&
           (mono_end == RLK_NEVER || rlk_clock_mono() < mono_end)) {
        good = await(fds, mono_end);
        if (rlk_fork_since(generation))
            break;
        if (fds[1].revents)
            good = rlk_fd_hush(fds[1].fd);
        if (good && fds[0].revents)
            good = rlk_subscriber_read(target);
    }
    bool inherited = rlk_fork_since(generation);
    /* If the subscriber is woken before the leader has left, it waits for the leader. */
    if (!inherited && good)
        good = rlk_conn_watch(sub->conn, sub->watch_fd, true) == 0;
    rlk_sync_mutex_lock(&reg->mu);
    if (inherited)
        return true;
    reg->leader = NULL;
    reg->mail_open &= good;
    reg->subscriber_dirty |= !reg->mail_open;
    return true;
}

/* ---- called by the subscriber */

/* Whether there is input, or the peer has reset the connection (which an epoll set
 * reports even without interest), or the program has closed the set. Until the leader
 * handles it, it would wake the subscriber over and over, which could keep the leader
 * from running. */
static bool has_events(const struct rlk_subscription *sub)
{
    struct epoll_event event;
    return !rlk_fd_is_ours(sub->watch_fd) || epoll_wait(sub->watch_fd, &event, 1, 0) > 0;
}

bool rlk_leader_take_over(struct rlk_target *target, bool work_due)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    struct rlk_registry *reg = &client->registry;

    rlk_registry_lock(reg);
    bool led = reg->leader != NULL;
    if (!led) {
        sub->mode = RLK_SUB_OWN;
    } else if (sub->mode == RLK_SUB_LENT &&
               (work_due || !rlk_list_empty(&reg->channels) || has_events(sub))) {
        sub->mode = RLK_SUB_RECALLED;
        rlk_registry_wake_locked(reg, reg->leader);
    }
    reg->mail_open = sub->mode == RLK_SUB_LENT;
    rlk_registry_unlock(reg);
    return !led;
}

static int make_watch(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

/* fd was the lowest free number: the numbers above it are left for connections. */
static bool leaves_enough(int fd)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
           (rlim_t)fd + FDS_LEFT < limit.rlim_cur;
}

void rlk_leader_end(struct rlk_target *target)
{
    struct rlk_subscription *sub = &target->subscription;
    if (sub->watch_fd < 0)
        return;
    rlk_fd_close(sub->watch_fd);
    rlk_fd_close(sub->leader_fd);
    sub->watch_fd = -1;
}

/* Opens the two descriptors. Without them the subscriber does all the reading. */
static bool need_watch(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    struct rlk_registry *reg = &client->registry;

    if (sub->watch_fd >= 0 && rlk_fd_is_ours(sub->watch_fd) &&
        rlk_fd_is_ours(sub->leader_fd))
        return true;
    rlk_leader_end(target); /* the program has closed them, if they existed */
    int leader_fd = rlk_fd_event();
    if (leader_fd >= 0 && leaves_enough(leader_fd))
        sub->watch_fd = rlk_fd_made_by(make_watch);
    if (sub->watch_fd >= 0) {
        sub->leader_fd = leader_fd;
        atomic_store(&reg->leader_fd, leader_fd);
    } else if (leader_fd >= 0) {
        rlk_fd_close(leader_fd);
    }
    return sub->watch_fd >= 0;
}

void rlk_leader_lend(struct rlk_target *target)
{
    struct rlock_client *client = target->client;
    struct rlk_subscription *sub = &target->subscription;
    struct rlk_registry *reg = &client->registry;

    if (rlk_route_is_cluster(&client->route) || sub->state != RLK_SUB_UP ||
        sub->answer_due != RLK_NEVER || rlk_conn_unsent(sub->conn) > 0 ||
        !need_watch(target) || rlk_conn_watch(sub->conn, sub->watch_fd, true) != 0)
        return;
    rlk_registry_lock(reg);
    reg->mail_open = true;
    sub->mode = RLK_SUB_LENT;
    rlk_registry_unlock(reg);
}
