/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of TLS share: tls.c (a connection), tls_bio.c (its bytes), tls_store.c
 * and tls_file.c (what the client's connections share), tls_text.c (error texts),
 * tls_gate.c (which threads may be inside OpenSSL). No other file includes this. */
#ifndef RLK_TLS_IMPL_H
#define RLK_TLS_IMPL_H

#include "base/sync.h"
#include "net/tls.h"
#include "net/url.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

enum { RLK_TLS_TEXT_SIZE = 256, RLK_TLS_WIRE_SIZE = 8 << 10 };

/* ---- tls_gate.c */

/* Called before and after every use of OpenSSL. The pairs do not nest, and nothing
 * between them waits for the network. False: the process is exiting, and OpenSSL with it.
 * Clears OpenSSL's queue of errors of the calling thread, as OpenSSL's own functions
 * do. */
bool rlk_tls_gate_enter(void);
void rlk_tls_gate_leave(void);
/* Before the first use. 0, ENOMEM or EAGAIN. */
int rlk_tls_gate_open(void);

/* ---- tls_store.c. Locks: rlk_tls_gate is entered. */

/* Creates the SSL of a new connection, with a session to resume if the endpoint's store
 * has one with this server. NULL: out of memory. Locks: takes the store's mutex. */
SSL *rlk_tls_store_make(const struct rlk_endpoint *endpoint);
/* Reads the files again if they have changed, and if the thread may read files or the
 * present ones are in doubt. Locks: rlk_tls_gate is not entered; takes the store's mutex.
 * Blocks: files. */
void rlk_tls_store_look(struct rlk_tls_store *store, bool may_read);
/* A connection was refused: the files in use may be outdated. */
void rlk_tls_store_doubt(struct rlk_tls_store *store);
/* Sets the lowest version of TLS, unless the system's openssl.cnf requires a later one.
 */
void rlk_tls_store_floor(SSL_CTX *ctx);
/* Where the store's authorities come from, for messages. */
const char *rlk_tls_store_authorities(const struct rlk_tls_store *store);

/* ---- tls_file.c. Locks: rlk_tls_gate is entered. */

/* Loads the files that the settings name. 0, or a code with `text` set. */
int rlk_tls_file_load(SSL_CTX *ctx, const struct rlk_tls_settings *settings,
                      char text[RLK_TLS_TEXT_SIZE]);

/* What shows that a file has changed. Zeroed: no such file. */
struct rlk_tls_stamp {
    struct timespec changed;
    int64_t size;
    uint64_t inode;
};
enum { RLK_TLS_STAMP_COUNT = 4 };
void rlk_tls_file_stamps(const struct rlk_tls_settings *settings,
                         struct rlk_tls_stamp ret_stamps[RLK_TLS_STAMP_COUNT]);

/* ---- tls.c */

struct rlk_tls {
    SSL *ssl;
    struct rlk_tls *older; /* while the process exits: those that were not freed */
    const struct rlk_endpoint *endpoint;

    /* Received bytes that OpenSSL has not read yet. Between two calls there are none, but
     * those that followed the handshake. */
    const char *in;
    size_t in_len;
    char wire[RLK_TLS_WIRE_SIZE];
    bool heard;
    bool is_asked; /* the server requested a certificate */

    /* ciphertext from OpenSSL; the kernel does not have out[out_at..out_len) yet */
    char *out;
    size_t out_at, out_len, out_size;
    size_t taken; /* how many bytes of the caller's that ciphertext contains */
    bool no_memory;

    /* why the connection is unusable */
    bool broken;
    enum rlk_tls_result failure;
    char text[RLK_TLS_TEXT_SIZE];
    bool text_of_send; /* a later text says more */

    /* the first fault of the peer's certificate; X509_V_OK: none yet */
    int verify_code;
    /* follows "the certificate of host:port " */
    char verify_text[RLK_TLS_TEXT_SIZE + 64];
};

/* ---- tls_bio.c. Locks: rlk_tls_gate is entered. */

/* Makes the SSL read from and write to the connection's two buffers. False: out of
 * memory. */
bool rlk_tls_bio_join(struct rlk_tls *tls);

/* ---- tls_text.c. Locks: rlk_tls_gate is entered. */

/* Sets text and failure. Later calls change nothing, unless the first text was about a
 * send. */
void rlk_tls_text_set(struct rlk_tls *tls, enum rlk_tls_result failure,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same, from the error of OpenSSL's last call. */
void rlk_tls_text_of_error(struct rlk_tls *tls);
/* OpenSSL's callback for each certificate that it checks: keeps the first fault. */
int rlk_tls_text_of_check(int good, X509_STORE_CTX *check);
/* Writes the names that the certificate is for, separated by ", ". */
void rlk_tls_text_names(char *ret_names, size_t size, X509 *certificate);

#endif
