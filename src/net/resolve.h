/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution that can be given up: getaddrinfo has no time bound, so it runs on a
 * short-lived detached thread of its own, which is abandoned at the deadline and frees
 * what is left when it ends. Numeric addresses are resolved at once, without a thread. */
#ifndef RLK_RESOLVE_H
#define RLK_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct rlk_resolve;

/* Begins. 0, or ENOMEM, EAGAIN, EMFILE, ENFILE. */
int rlk_resolve_start(struct rlk_resolve **ret_job, const char *host, uint16_t port);

/* Readable when the answer is there; -1 when it was there at once. */
int rlk_resolve_fd(const struct rlk_resolve *job);

/* Whether the answer is there. If so, *ret_list is the list (owned by the job), or
 * NULL with *ret_gai_code the getaddrinfo code. */
bool rlk_resolve_done(struct rlk_resolve *job, struct addrinfo **ret_list,
                      int *ret_gai_code);

/* Frees the job, or leaves it to its thread. NULL is fine. */
void rlk_resolve_free(struct rlk_resolve *job);

#endif
