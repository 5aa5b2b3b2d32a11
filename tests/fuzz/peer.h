/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that does what an input says: a thread that listens on a Unix socket and on a
 * port of the loopback. The lines of its text are steps, one for each request:
 *
 *     <class><action><argument>
 *
 * The class is that of the request: h handshake, s SUBSCRIBE and the like, a acquire,
 * r release, c cancel, n renew and downgrade, f refresh, i inspect and force, o others.
 * Each request takes the next line of its class. The actions:
 *
 *     =<what> <remaining ms> <ticket> <token> <flags> <more>   an answer of a script;
 *                 omitted parts are as in a friendly server's answer
 *     <<bytes>    these bytes (\r, \n, \\, \xNN)
 *     !<text>     an error
 *     ~<ms>       the friendly answer, late
 *     ?           no answer
 *     #           closes the connection;  %  the same, with a reset
 *     2           the answer twice;  /<n>  n bytes of it
 *     @<text>     the answer "queued", and a message to the mailbox: %i the id, %t its
 *                 ticket, %n the name
 *
 * A request without a line gets a friendly answer.
 */
#ifndef FUZZ_PEER_H
#define FUZZ_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the server at the first call. */
void fuzz_peer_start(void);
/* "unix:///..." or "redis://127.0.0.1:..." */
const char *fuzz_peer_url(bool tcp);

/* Sets the text for the requests that follow. The caller keeps the memory valid until
 * fuzz_peer_end. */
void fuzz_peer_play(const uint8_t *text, size_t len);
/* Closes all connections, and waits until that is done. */
void fuzz_peer_end(void);

/* Whether, since fuzz_peer_forget, anything was sent that may be taken for a grant. */
bool fuzz_peer_gave(void);
void fuzz_peer_forget(void);

#endif
