/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture with TLS: an authority, the fixture's server with a TLS port, and a
 * go-between. The go-between is a thread between client and server. It passes bytes on
 * unchanged, in small pieces, or not at all. Or it speaks TLS itself and passes the
 * plaintext on, so that it can send what a server rarely sends.
 * Thread: a test's main thread.
 */
#ifndef TEST_TLSSCENE_H
#define TEST_TLSSCENE_H

#include "authority.h"
#include "fixture.h"

#include <stdint.h>

enum { TLS_URL_MAX = 512 };

extern uint16_t tls_port;

/* In main: whether the server was built with TLS. If not, prints that the program is
 * skipped. */
bool tls_is_built(void);

/* Unchecked fixture. Makes the authorities "ca" and "other", and certificates of "ca":
 * "server" for localhost and 127.0.0.1, and "client". */
void tls_start(void);
void tls_stop(void);
/* Restarts the server with these arguments beside those for TLS. NULL: none. */
void tls_restart(const char *const more[]);

/* Returns rediss://HOST:PORT?cafile=...&... in one of a few buffers used in turn. */
const char *tls_url(const char *host, uint16_t port, const char *parameters);
/* As rlock_client_open without attributes, but the initial timeouts are scaled. */
int tls_open(rlock_client_t **ret_client, const char *url);
/* Opens a client at the TLS port, and waits until its mailbox is subscribed. */
rlock_client_t *tls_client(const char *parameters);

/* ---- the go-between */

enum between_way {
    BETWEEN_PASSES, /* passes bytes on unchanged */
    BETWEEN_DRIPS,  /* sends one byte at a time to the client */
    BETWEEN_STOPS,  /* sends the server's first bytes to the client, and no more */
    BETWEEN_SILENT, /* accepts, and sends nothing */
    BETWEEN_SAYS,   /* sends "-DENIED ..." and closes */
    BETWEEN_ALERTS, /* replies with an alert of TLS */
    BETWEEN_TLS,    /* speaks TLS itself */
    BETWEEN_TLS12   /* the same, version 1.2 */
};

struct between;
struct between *between_start(enum between_way way);
void between_stop(struct between *b);
uint16_t between_port(const struct between *b);
/* With BETWEEN_TLS: sends a ticket to each connection, or a key update that requests one.
 * Returns when all are sent. */
void between_ticket(struct between *b);
void between_update(struct between *b);
/* How many connections were resumed, and how many were accepted. */
unsigned between_resumed(const struct between *b);
unsigned between_accepted(const struct between *b);
/* Closes all connections, but accepts new ones. */
void between_cut(struct between *b);

/* A server without TLS waits for more than a handshake, or replies to it as to a command:
 * Valkey 8.1.1 and 9.1.2 do. Whether the latter was said, where `expected` is the former.
 */
bool tls_is_other_answer(const char *expected, int rc, const char *said);

#endif
