/* SPDX-License-Identifier: Apache-2.0 */
/* One descriptor for several connections: an epoll set that is readable when one of them
 * has something to do. A connection that opens changes its descriptor, so its owner calls
 * rlk_conn_group_follow after each step. Thread: the connections' owner. Blocks: no. */
#ifndef RLK_CONN_GROUP_H
#define RLK_CONN_GROUP_H

#include "net/conn.h"

/* The set's descriptor, to be closed by rlk_fd_close; -1 with errno. */
int rlk_conn_group_open(void);
/* Puts the connection's present descriptor into the set, in place of *seat, which was its
 * last one; -1: none. False: there is no memory, or the program has closed the set. */
bool rlk_conn_group_follow(int group_fd, struct rlk_conn *conn, int *seat);
/* Takes *seat out of the set. Call it before the connection is freed. */
void rlk_conn_group_leave(int group_fd, int *seat);

#endif
