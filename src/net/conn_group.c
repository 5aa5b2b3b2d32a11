/* SPDX-License-Identifier: Apache-2.0 */
/* See conn_group.h. */
#include "net/conn_group.h"

#include "base/fd.h"
#include "base/fork.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>

static int make_set(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

int rlk_conn_group_open(void)
{
    return rlk_fd_made_by(make_set);
}

void rlk_conn_group_leave(int group_fd, int *seat)
{
    /* A child has nothing to do with its parent's set, nor the library with what the
     * program opened at these numbers. */
    if (*seat >= 0 && !rlk_fork_in_child() && rlk_fd_is_ours(group_fd) &&
        rlk_fd_is_ours(*seat))
        epoll_ctl(group_fd, EPOLL_CTL_DEL, *seat, &(struct epoll_event){ 0 });
    *seat = -1;
}

bool rlk_conn_group_join(int group_fd, struct rlk_conn *conn, int *seat)
{
    int fd = rlk_conn_fd(conn);
    short events = rlk_conn_events(conn);
    struct epoll_event event = { .events = (events & POLLIN ? EPOLLIN : 0u) |
                                           (events & POLLOUT ? EPOLLOUT : 0u) };

    if (!rlk_fd_is_ours(group_fd))
        return false;
    *seat = fd;
    /* Two connections may wait for the same look-up of a name: it wakes both. */
    return fd < 0 || epoll_ctl(group_fd, EPOLL_CTL_ADD, fd, &event) == 0 ||
           errno == EEXIST;
}
