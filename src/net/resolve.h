/* SPDX-License-Identifier: Apache-2.0 */
/* Name resolution with a deadline. getaddrinfo has no time limit, so it runs on a
 * short detached thread, one for each name at a time. At the deadline the caller abandons
 * the thread, which frees the job when it ends. Numeric addresses are resolved at once,
 * without a thread. Thread: any. Blocks: no. */
#ifndef RLK_RESOLVE_H
#define RLK_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct rlk_resolve;

/* Begins. Returns 0, ENOMEM, EAGAIN, EMFILE or ENFILE. */
int rlk_resolve_start(struct rlk_resolve **ret_job, const char *host, uint16_t port);

/* Becomes readable when the answer is there; -1: the answer was there at once. */
int rlk_resolve_fd(const struct rlk_resolve *job);

/* Whether the answer is there. If so, *ret_list is the list (owned by the job), or
 * NULL with getaddrinfo's code in *ret_gai_code. */
bool rlk_resolve_done(struct rlk_resolve *job, struct addrinfo **ret_list,
                      int *ret_gai_code);

/* In a forked child: the threads of all jobs are the parent's. */
void rlk_resolve_forget(void);

/* Frees the job or leaves it to its thread. NULL is fine. */
void rlk_resolve_free(struct rlk_resolve *job);

#endif
