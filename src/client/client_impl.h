/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c, client_table.c and client_exit.c have between them. */
#ifndef RLK_CLIENT_IMPL_H
#define RLK_CLIENT_IMPL_H

#include "client/client.h"

/* ---- client.c */

/* What URL and attributes (NULL: defaults) say, into a zeroed config; no URL: what
 * rlk_conf_parse finds. 0, EINVAL, ENOTSUP, ENOMEM, EMFILE, ENFILE. Blocks: may read
 * files, so that no mutex is held. */
int rlk_client_configure(struct rlk_config *config, const char *url,
                         const rlock_clientattr_t *attr);
/* Gives a client its identity, and what it does with it. On failure it is as before. */
int rlk_client_start(struct rlock_client *client, bool is_default);
/* Waits until what the watchdog has to release is released, or until then. */
void rlk_client_drain(struct rlock_client *client, int64_t mono_end);
/* The end of a client that is in no table any more, and that nobody uses. */
void rlk_client_shut(struct rlock_client *client);
/* A client in a child: its configuration, and nothing else. The parent's memory is left
 * as it is: other threads may have been in the midst of anything. */
void rlk_client_disown(struct rlock_client *client);

/* ---- client_table.c */

/* The running client that comes after this number, kept open until rlk_client_put; NULL:
 * there is none. Locks: takes the table's mutex. */
struct rlock_client *rlk_client_keep_after(uint64_t number);

/* ---- client_exit.c */

/* A thread ends with these holds: they are given up (rlk_thread_set_exit). */
void rlk_client_thread_ended(struct rlk_thread *thread);
/* exit(), before OpenSSL frees what it has: the end of the clients that use it
 * (rlk_tls_set_exit). */
void rlk_client_exit_tls(void);

#endif
