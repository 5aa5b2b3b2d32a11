/* SPDX-License-Identifier: Apache-2.0 */
/* What script.c (one script, one reply) and script_wait.c (a script with a WAIT behind
 * it) share. Thread: any. */
#ifndef RLK_SCRIPT_IMPL_H
#define RLK_SCRIPT_IMPL_H

#include "net/script.h"

/* An answer that says nothing yet. */
void rlk_script_clear_answer(struct rlk_answer *answer, int64_t sent);
/* Sorts what came of a round trip. True: the reply holds the answer. False: the answer
 * and the thread's message say why there is none; an error reply is given back. `req`: of
 * a script, else NULL. */
bool rlk_script_sort_reply(struct rlk_conn *conn, const struct rlk_request *req,
                           const char *command, enum rlk_failure failure,
                           struct rlk_reply *reply, struct rlk_answer *answer);
/* Decodes the reply into the answer, which knows when the request was sent, and gives the
 * reply back. Sets the thread's message when the outcome is not DONE. */
void rlk_script_take(struct rlk_conn *conn, const struct rlk_request *req,
                     struct rlk_reply *reply, struct rlk_answer *answer);

/* rlk_script_call with replicas that confirm. */
void rlk_script_call_confirmed(struct rlk_conn *conn, const struct rlk_request *req,
                               const struct rlk_script_confirm *by, int64_t deadline,
                               struct rlk_answer *ret_answer);

#endif
