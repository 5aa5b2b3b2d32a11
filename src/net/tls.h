/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS inside a connection: the only user of OpenSSL. A `rlk_tls` belongs to one
 * connection and so to one thread at a time; a `rlk_tls_store` belongs to a client, and
 * is shared by its connections: settings, certificates, and the sessions that reconnects
 * resume.
 *
 * OpenSSL never sees a socket. It reads what was received and writes into a buffer, so
 * that sockets, deadlines and SO_LINGER stay the connection's, no SIGPIPE is raised, and
 * a round trip stays one send and one recv.
 *
 * Thread: any. Blocks: no, but for files where a store is made.
 */
#ifndef RLK_NET_TLS_H
#define RLK_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rlk_target;

/* What URL, attributes and files say of TLS; heap strings, NULL: not given. */
struct rlk_tls_settings {
    bool on;       /* rediss:// */
    bool any_name; /* verify=ca: the chain alone */
    char *cafile, *cadir, *certfile, *keyfile;
    char *name; /* that the certificate must have; NULL: the URL's host */
};

struct rlk_tls_store;
struct rlk_tls;

/* Whether TLS is built in. */
bool rlk_tls_is_built(void);

/* ---- a client's store */

/* Reads the files. 0 with *ret_store; EINVAL (a file is of no use), ENOMEM, EMFILE,
 * ENFILE, EAGAIN with the thread's message, which names the path. The target outlives the
 * store. */
int rlk_tls_store_create(struct rlk_tls_store **ret_store,
                         const struct rlk_target *target);
/* No connection has it any more. NULL is fine. */
void rlk_tls_store_free(struct rlk_tls_store *store);
/* In a child: the parent's store stays as it is, for other threads may have been in the
 * midst of it. It is not lost to a checker of leaks. */
void rlk_tls_store_disown(struct rlk_tls_store *store);

/* ---- a connection */

enum rlk_tls_result {
    RLK_TLS_WAIT,
    RLK_TLS_DONE,
    RLK_TLS_FAILED,   /* the peer went away: another address may do better */
    RLK_TLS_REFUSED,  /* one of the two does not accept the other's certificate */
    RLK_TLS_STRANGE,  /* no TLS that both speak */
    RLK_TLS_NO_MEMORY /* or the process ends */
};

/* For a connected socket. 0 or ENOMEM. */
int rlk_tls_open(struct rlk_tls **ret_tls, const struct rlk_target *target);
/* Says nothing to the peer. NULL is fine. */
void rlk_tls_free(struct rlk_tls *tls);

/* Progress of the handshake on the socket. The last message is left to go with the first
 * request. */
enum rlk_tls_result rlk_tls_shake(struct rlk_tls *tls, int fd);

/*
 * Takes some of `bytes`. Returns how many are with the kernel, as ciphertext, or 0: none
 * yet, because the socket takes no more; the same bytes, and perhaps others behind them,
 * are to be given again. -1: the connection is of no use.
 */
ssize_t rlk_tls_send(struct rlk_tls *tls, int fd, const char *bytes, size_t len);
/* Whether the kernel has a part of what rlk_tls_send has not taken yet. */
bool rlk_tls_begun(const struct rlk_tls *tls);
/* Bytes for the peer that the kernel has not taken. */
size_t rlk_tls_unsent(const struct rlk_tls *tls);
/* Sends those. False: the connection is of no use. */
bool rlk_tls_flush(struct rlk_tls *tls, int fd);

/* One recv with `flags`, and all that OpenSSL makes of it, passed on: nothing that poll
 * does not tell of stays behind. 1: something came; 0: nothing yet, also when half a
 * record or a message of TLS itself came; -1: the end, or an error. */
int rlk_tls_receive(struct rlk_tls *tls, int fd, int flags,
                    void (*pass)(void *arg, const char *bytes, size_t len), void *arg);

/* Why a function above failed, one line. Valid until free. */
const char *rlk_tls_text(const struct rlk_tls *tls);
/* What the failure is. */
enum rlk_tls_result rlk_tls_failure(const struct rlk_tls *tls);
/* Whether the peer has sent anything at all. */
bool rlk_tls_heard(const struct rlk_tls *tls);

/* For messages: what was agreed on, and the peer's certificate. */
struct rlk_tls_facts {
    char protocol[16], cipher[64];
    char names[128];   /* of the certificate */
    int64_t ends_in_s; /* of the certificate: from now on; below 0: it has ended */
    bool resumed;
    bool has_certificate; /* of our own */
};
/* False: the process ends, or there is no memory. */
bool rlk_tls_look(struct rlk_tls *tls, struct rlk_tls_facts *ret_facts);

/* ---- forks and the end of the process */

/* Around a fork: no thread is inside OpenSSL for the library. */
void rlk_tls_hold(void);
void rlk_tls_unhold(void);
/* In a child. */
void rlk_tls_forget(void);

/* Called once by exit(), before OpenSSL frees what it has. Set before the first store. */
void rlk_tls_set_exit(void (*at_exit)(void));
/* From now on no thread gets into OpenSSL for the library; waits for those that are. */
void rlk_tls_end(void);
bool rlk_tls_ended(void);

#endif
