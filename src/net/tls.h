/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS inside a connection: the only user of OpenSSL. A `rlk_tls` belongs to one
 * connection, and so to one thread at a time. A `rlk_tls_store` belongs to a client,
 * whose connections share it: settings, certificates, and the sessions that reconnects
 * resume.
 *
 * OpenSSL never sees a socket. It reads what was received, and writes into a buffer.
 * Therefore sockets, deadlines and SO_LINGER stay the connection's, nothing raises
 * SIGPIPE, and a round trip stays one send and one recv.
 *
 * Thread: any. Blocks: no network; rlk_tls_store_create and rlk_tls_open read files.
 */
#ifndef RLK_NET_TLS_H
#define RLK_NET_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rlk_endpoint;

/* The settings for TLS from URL, attributes and file. Heap strings; NULL: not set. */
struct rlk_tls_settings {
    bool on;       /* rediss:// */
    bool any_name; /* verify=ca: checks the authority, not the name */
    bool verify_set;
    char *cafile, *cadir, *certfile, *keyfile;
    char *name; /* the name that the certificate must have; NULL: the URL's host */
};

struct rlk_tls_store;
struct rlk_tls;

/* Whether TLS is built in. */
bool rlk_tls_is_built(void);

/* ---- a client's store */

/* Reads the files; or, in a forked child that has `parent`, uses what the parent has
 * read, because the child may not be permitted to read them. 0 with *ret_store; else
 * EINVAL (a file cannot be used), ENOMEM, EMFILE, ENFILE or EAGAIN, and the thread's
 * message names the path. The endpoint outlives the store. */
int rlk_tls_store_create(struct rlk_tls_store **ret_store,
                         const struct rlk_endpoint *endpoint,
                         struct rlk_tls_store *parent);
/* Only when no connection uses the store any more. NULL: does nothing. */
void rlk_tls_store_free(struct rlk_tls_store *store);
/* In a forked child: leaves the parent's store as it is, because other threads of the
 * parent may have been changing it at the fork. A leak checker still finds the store. */
void rlk_tls_store_disown(struct rlk_tls_store *store);

/* ---- a connection */

enum rlk_tls_result {
    RLK_TLS_WAIT,
    RLK_TLS_DONE,
    RLK_TLS_FAILED,   /* the connection broke: another address may work */
    RLK_TLS_REFUSED,  /* one side does not accept the other's certificate */
    RLK_TLS_STRANGE,  /* the peer speaks no TLS, or none that both sides support */
    RLK_TLS_NO_MEMORY /* or the process is exiting */
};

/* For a connected socket. may_read: looks whether the store's files have changed. (The
 * library's threads, which serve all clients, should not wait for a disk; they look only
 * after the present files were of no use.) 0 or ENOMEM. */
int rlk_tls_open(struct rlk_tls **ret_tls, const struct rlk_endpoint *endpoint,
                 bool may_read);
/* Sends nothing to the peer. NULL: does nothing. */
void rlk_tls_free(struct rlk_tls *tls);

/* Continues the handshake on the socket, by a bounded number of recvs. Its last message
 * stays unsent until the first request, and goes with it. */
enum rlk_tls_result rlk_tls_shake(struct rlk_tls *tls, int fd);

/*
 * Encrypts some of `bytes`, and sends the ciphertext. Returns how many of `bytes` the
 * kernel has now. 0: the socket takes no more, and the kernel does not have all of that
 * ciphertext; the caller gives the same bytes again, and may append others. -1: the
 * connection is unusable.
 */
ssize_t rlk_tls_send(struct rlk_tls *tls, int fd, const char *bytes, size_t len);
/* Whether the kernel has a part of the bytes that rlk_tls_send did not return as sent. */
bool rlk_tls_begun(const struct rlk_tls *tls);
/* How many bytes of ciphertext the kernel has not taken yet. */
size_t rlk_tls_unsent(const struct rlk_tls *tls);
/* Sends them. False: the connection is unusable. */
bool rlk_tls_flush(struct rlk_tls *tls, int fd);
/* After a failed send, for a caller that does not read on: reads what there is, and drops
 * all of it but an alert, which says more than the send's error. */
void rlk_tls_hear_alert(struct rlk_tls *tls, int fd);
/* Whether a part of a record has come. */
bool rlk_tls_has_part(struct rlk_tls *tls);

/* Calls recv with `flags`, and passes all plaintext on that OpenSSL can make of it: no
 * input stays where poll does not see it. While only a part of a record or a message of
 * TLS itself came, it calls recv again, but does not block: a few times, so that a whole
 * record that the socket has is read. 1: plaintext came; 0: none yet; -1: end of the
 * connection, or an error. */
int rlk_tls_receive(struct rlk_tls *tls, int fd, int flags,
                    void (*pass)(void *arg, const char *bytes, size_t len), void *arg);

/* Why a function above failed, in one line. Valid until rlk_tls_free. */
const char *rlk_tls_text(const struct rlk_tls *tls);
/* Its kind. */
enum rlk_tls_result rlk_tls_failure(const struct rlk_tls *tls);
/* Whether the peer has sent anything that looks like TLS. */
bool rlk_tls_heard(const struct rlk_tls *tls);

/* For messages: what both sides agreed on, and the peer's certificate. */
struct rlk_tls_facts {
    char protocol[16], cipher[64];
    char names[128];   /* of the peer's certificate */
    int64_t ends_in_s; /* when that certificate expires, from now; < 0: it has expired */
    bool resumed;
    bool has_certificate; /* the server requested this client's, and got it */
};
/* False: the process is exiting, or there is no certificate. */
bool rlk_tls_look(struct rlk_tls *tls, struct rlk_tls_facts *ret_facts);

/* ---- forks and the end of the process */

/* Before and after a fork: in between no thread of the library is inside OpenSSL, unless
 * one stays there for a second. Locks: holds one mutex. */
void rlk_tls_hold(void);
void rlk_tls_unhold(void);
/* In the child instead of rlk_tls_unhold. late: no rlk_tls_hold preceded the fork.
 * Returns whether no thread was inside OpenSSL at the fork, so that the child can use
 * what the parent's stores contain. */
bool rlk_tls_forget(bool late);

/* Sets what exit() calls once before OpenSSL frees its state. Call it before the first
 * store is created. */
void rlk_tls_set_exit(void (*at_exit)(void));
/* From now on no thread enters OpenSSL for the library. Waits a bounded time for those
 * that are inside. */
void rlk_tls_end(void);
bool rlk_tls_ended(void);

#endif
