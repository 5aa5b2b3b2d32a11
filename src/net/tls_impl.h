/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of TLS share: tls.c (a connection), tls_bio.c (its bytes), tls_store.c
 * and tls_file.c (what its client has), tls_text.c (error texts), tls_gate.c (which
 * threads may be inside OpenSSL). Nobody else includes this. */
#ifndef RLK_TLS_IMPL_H
#define RLK_TLS_IMPL_H

#include "base/sync.h"
#include "net/tls.h"
#include "net/url.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <time.h>

enum { RLK_TLS_TEXT_SIZE = 256 };

/* ---- tls_gate.c */

/* Around all calls of OpenSSL; they do not nest, and nothing in between blocks. False:
 * the process ends, and OpenSSL with it. Also keeps the errors of the program in
 * OpenSSL's queue of the calling thread, and takes those away that came in between. */
bool rlk_tls_gate_enter(void);
void rlk_tls_gate_leave(void);
/* Before the first use. 0, ENOMEM or EAGAIN. */
int rlk_tls_gate_open(void);

/* ---- tls_store.c. Locks: rlk_tls_gate is entered. */

/* A new connection's object, with a session to resume if there is one. NULL: no memory.
 * Locks: takes the store's mutex. Blocks: may read files. */
SSL *rlk_tls_store_make(struct rlk_tls_store *store);
/* Where its authorities come from, for messages. */
const char *rlk_tls_store_authorities(const struct rlk_tls_store *store);

/* ---- tls_file.c. Locks: rlk_tls_gate is entered. */

/* Loads what the settings name. 0, or a code with `text` set. */
int rlk_tls_file_load(SSL_CTX *ctx, const struct rlk_tls_settings *settings,
                      char text[RLK_TLS_TEXT_SIZE]);

/* When a file was changed; 0 where there is none. */
struct rlk_tls_stamp {
    struct timespec changed;
    int64_t size;
    uint64_t inode;
};
enum { RLK_TLS_STAMP_COUNT = 3 };
void rlk_tls_file_stamps(const struct rlk_tls_settings *settings,
                         struct rlk_tls_stamp ret_stamps[RLK_TLS_STAMP_COUNT]);

/* ---- tls.c */

struct rlk_tls {
    SSL *ssl;
    const struct rlk_target *target;

    /* what was received and OpenSSL has not read yet; within a call only */
    const char *in;
    size_t in_len;
    bool heard;
    char *behind; /* what came behind the handshake, until the next call; else NULL */
    size_t behind_len;

    /* what OpenSSL has written: out[out_at..out_len) is not with the kernel yet */
    char *out;
    size_t out_at, out_len, out_size;
    size_t taken; /* bytes of the caller's that are in there */
    bool no_memory;

    /* why it is of no use */
    bool broken;
    enum rlk_tls_result failure;
    char text[RLK_TLS_TEXT_SIZE];

    /* what the check of the peer's certificate found; X509_V_OK: nothing yet */
    int verify_code;
    char verify_text[RLK_TLS_TEXT_SIZE + 64]; /* behind "the certificate of host:port " */
};

/* ---- tls_bio.c. Locks: rlk_tls_gate is entered. */

/* Puts the connection's two buffers below its SSL. False: no memory. */
bool rlk_tls_bio_join(struct rlk_tls *tls);

/* ---- tls_text.c. Locks: rlk_tls_gate is entered. */

/* Sets text and failure, once. */
void rlk_tls_text_set(struct rlk_tls *tls, enum rlk_tls_result failure,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for what OpenSSL has refused in its last call. */
void rlk_tls_text_of_error(struct rlk_tls *tls);
/* Keeps what is wrong with a certificate; OpenSSL's callback. */
int rlk_tls_text_of_check(int good, X509_STORE_CTX *check);
/* Writes the names that a certificate is for, separated by ", ". */
void rlk_tls_text_names(char *ret_names, size_t size, X509 *certificate);

#endif
