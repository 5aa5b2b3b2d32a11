/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by client.c, client_table.c, client_default.c and client_exit.c. */
#ifndef RLK_CLIENT_IMPL_H
#define RLK_CLIENT_IMPL_H

#include "client/client.h"

/* ---- client.c */

/* Fills a zeroed config from URL and attributes (NULL: defaults); without URL, from
 * what rlk_conf_parse finds. Returns 0, EINVAL, ENOTSUP, ENOMEM, EMFILE or ENFILE.
 * Blocks: may read files, so call without a mutex. */
int rlk_client_configure(struct rlk_config *config, const char *url,
                         const rlock_clientattr_t *attr);
/* Gives a client its identity and starts its parts. On failure it is as before. */
int rlk_client_start(struct rlock_client *client, bool is_default);
/* Waits until the watchdog has finished its releases, or until mono_until. */
void rlk_client_drain(struct rlock_client *client, int64_t mono_end);
/* Ends a client that is in no table and that no call uses. */
void rlk_client_shut(struct rlock_client *client);
/* A client in a child retains its configuration and nothing else. The parent's memory
 * is left alone: other threads may have been changing it. */
void rlk_client_disown(struct rlock_client *client, bool tls_is_whole);

/* ---- client_table.c */

/* The running client with the next number, which cannot be closed until
 * rlk_client_put; NULL: none. Locks: takes the table's mutex. */
struct rlock_client *rlk_client_keep_after(uint64_t number);

/* ---- client_default.c */

/* What a program set for the default client; NULL: nothing. It may hold passwords. */
struct rlk_client_default {
    char *url;
    rlock_clientattr_t *attr;
};

/* Copies URL and attributes. Returns 0, or ENOMEM with nothing to clear. */
int rlk_client_default_copy(struct rlk_client_default *copy, const char *url,
                            const rlock_clientattr_t *attr);
/* Wipes and frees; harmless when cleared. */
void rlk_client_default_clear(struct rlk_client_default *settings);

/* ---- client_exit.c */

/* Gives up the holds of a thread that ends (rlk_thread_set_exit). */
void rlk_client_thread_ended(struct rlk_thread *thread);
/* Called by exit() before OpenSSL frees its state (rlk_tls_set_exit): ends the clients
 * that use OpenSSL. */
void rlk_client_exit_tls(void);

#endif
