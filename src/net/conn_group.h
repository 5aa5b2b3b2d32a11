/* SPDX-License-Identifier: Apache-2.0 */
/* One descriptor for several connections: an epoll set that is readable when one of them
 * has something to do. A step may close a connection's descriptor, whose number another
 * thread then gets. So the connection leaves the set before each step, and joins it after
 * that. Thread: the connections' owner. Blocks: no. */
#ifndef RLK_CONN_GROUP_H
#define RLK_CONN_GROUP_H

#include "net/conn.h"

/* The set's descriptor, to be closed by rlk_fd_close; -1 with errno. */
int rlk_conn_group_open(void);
/* Puts the connection's present descriptor into the set, and into *seat, which is -1.
 * False: there is no memory, or the program has closed the set. */
bool rlk_conn_group_join(int group_fd, struct rlk_conn *conn, int *seat);
/* Takes *seat out of the set; -1: it is in none. Call it also before the connection is
 * freed. */
void rlk_conn_group_leave(int group_fd, int *seat);

#endif
