/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's own link to the server that all workers name: whatever its library connects
 * to over TCP, it comes to the address in $NEMESIS_LINK. So they are clients of one
 * server for the crash guard, and each one's link can be hurt by itself. State: what the
 * environment said. Thread: any, after nem_link_open.
 */
#ifndef NEM_LINK_H
#define NEM_LINK_H

/* Ends the process with a word about it when there is none. */
void nem_link_open(void);

#endif
