/* SPDX-License-Identifier: Apache-2.0 */
/* See conn_group.h. A descriptor that is closed leaves the set by itself, and another
 * file may get its number: so each call asks the set. */
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
    /* A child has nothing to do with its parent's set. */
    if (*seat >= 0 && !rlk_fork_in_child())
        epoll_ctl(group_fd, EPOLL_CTL_DEL, *seat, &(struct epoll_event){ 0 });
    *seat = -1;
}

bool rlk_conn_group_follow(int group_fd, struct rlk_conn *conn, int *seat)
{
    int fd = rlk_conn_fd(conn);
    short events = rlk_conn_events(conn);
    struct epoll_event event = { .events = (events & POLLIN ? EPOLLIN : 0u) |
                                           (events & POLLOUT ? EPOLLOUT : 0u) };

    if (!rlk_fd_is_ours(group_fd))
        return false;
    if (*seat != fd)
        rlk_conn_group_leave(group_fd, seat);
    *seat = fd;
    return fd < 0 || epoll_ctl(group_fd, EPOLL_CTL_MOD, fd, &event) == 0 ||
           (errno == ENOENT && epoll_ctl(group_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}
