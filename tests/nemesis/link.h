/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's own link to the server. All workers name the same server address, but their
 * TCP connections go to the address in $NEMESIS_LINK. So they are clients of one server
 * for the crash guard, and a fault can hit the link of each separately. To the nodes of a
 * cluster there are several links: "port>address,port>address...", for connections to
 * these ports of 127.0.0.1. An empty variable: they go where they are named. State: from
 * the environment. Thread: any, after nem_link_open.
 */
#ifndef NEM_LINK_H
#define NEM_LINK_H

/* Ends the process with a message when the variable is missing. */
void nem_link_open(void);

#endif
