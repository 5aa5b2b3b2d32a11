/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that speaks TLS, beside the fixture's socket: an authority, the fixture's
 * server with a TLS port, and a go-between, a thread that stands between client and
 * server: it passes bytes on as they are, in small pieces, or not; or it speaks TLS
 * itself and passes on what it reads, so that it can send what a server rarely does.
 * Thread: a test's main thread.
 */
#ifndef TEST_TLSSCENE_H
#define TEST_TLSSCENE_H

#include "authority.h"
#include "fixture.h"

#include <stdint.h>

/* Certificates of every program: "ca" and "other", authorities; "server" for localhost
 * and 127.0.0.1; "client". */
enum { TLS_URL_MAX = 512 };

extern uint16_t tls_port;

/* Unchecked fixture. `more`: further arguments of the server's, NULL: none. */
void tls_start(void);
void tls_stop(void);
/* Starts the server anew with these arguments beside the port. */
void tls_restart(const char *const more[]);

/* rediss://HOST:PORT?cafile=...&... ; one of a few buffers in turn. */
const char *tls_url(const char *host, uint16_t port, const char *parameters);
/* As rlock_client_open without attributes, but the initial timeouts are scaled. */
int tls_open(rlock_client_t **ret_client, const char *url);
/* A client there, with its mailbox subscribed. */
rlock_client_t *tls_client(const char *parameters);

/* ---- the go-between */

enum between_way {
    BETWEEN_PASSES, /* bytes as they are */
    BETWEEN_DRIPS,  /* one byte at a time to the client */
    BETWEEN_STOPS,  /* the client gets the server's first bytes, and no more */
    BETWEEN_SILENT, /* accepts, and says nothing */
    BETWEEN_SAYS,   /* says "-DENIED ..." and closes */
    BETWEEN_ALERTS, /* answers with an alert of TLS */
    BETWEEN_TLS,    /* speaks TLS itself */
    BETWEEN_TLS12   /* the same, version 1.2 */
};

struct between;
struct between *between_start(enum between_way way);
void between_stop(struct between *b);
uint16_t between_port(const struct between *b);
/* Of BETWEEN_TLS: each connection gets a ticket, or an update of keys that asks for one.
 * Returns when they have been sent. */
void between_ticket(struct between *b);
void between_update(struct between *b);
/* How many connections were resumed, and how many were made. */
unsigned between_resumed(const struct between *b);
unsigned between_accepted(const struct between *b);
/* Closes all connections; later ones are passed on. */
void between_cut(struct between *b);

#endif
