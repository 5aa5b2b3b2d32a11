/* SPDX-License-Identifier: Apache-2.0 */
/* TLS without the library: OpenSSL, hiredis's codec and blocking sockets. Each function
 * ends the process on failure. Thread: one. */
#ifndef BENCH_TLS_RAW_H
#define BENCH_TLS_RAW_H

#include "scripts.h"

#include <openssl/ssl.h>
#include <stdbool.h>

/* Before all others. `cafile`: whom to trust; `host`: the name in the server's
 * certificate. The server listens on 127.0.0.1. */
void tls_raw_begin(const char *host, int port, const char *cafile);

SSL *tls_raw_connect(SSL_SESSION *session);
/* Sends no close_notify, and keeps the session. */
void tls_raw_close(SSL *ssl);
/* The newest session; NULL: none. It is lent. */
SSL_SESSION *tls_raw_session(void);

/* A connection with a parser of replies. */
struct tls_raw {
    SSL *ssl;
    redisReader *reader;
};
struct tls_raw tls_raw_open(void);
void tls_raw_end(struct tls_raw *raw);
void tls_raw_send(struct tls_raw *raw, int argc, const char *const *argv,
                  const size_t *len);
/* The next reply, no error; the caller frees it. NULL: none within the socket's
 * SO_RCVTIMEO. */
redisReply *tls_raw_receive(struct tls_raw *raw);

/* The mutex of the library, by its scripts alone. */
struct tls_raw_mutex {
    struct tls_raw conn,
        mailbox; /* mailbox: where grants arrive, once it is listened to */
    bool listens;
    char uuid[RLK_UUID_LEN + 1];
    lock_keys_t keys;
    struct command acquire, release, refresh;
    unsigned long number;
};
/* listens: others want the lock, too. */
void tls_raw_mutex_open(struct tls_raw_mutex *mutex, const char *name, bool listens);
void tls_raw_mutex_pair(struct tls_raw_mutex *mutex);
void tls_raw_mutex_close(struct tls_raw_mutex *mutex);

#endif
