/* SPDX-License-Identifier: Apache-2.0 */
/* The library's codes and the calling thread's message (rlock_errmsg). */
#ifndef RLK_ERROR_H
#define RLK_ERROR_H

#include "base/sync.h"

#include <stdbool.h>
#include <stdint.h>

#define RLK_CODES(X)                                                                     \
    X(0, "success")                                                                      \
    X(EBUSY, "another thread or process holds the lock")                                 \
    X(ETIMEDOUT, "the lock was busy until the deadline")                                 \
    X(EDEADLK, "the calling thread already holds the lock")                              \
    X(EPERM, "the calling thread does not hold the lock")                                \
    X(EAGAIN, "too many recursion levels of the lock, or a thread could not be started") \
    X(EINVAL, "invalid argument or handle")                                              \
    X(ENAMETOOLONG, "the name is too long")                                              \
    X(ENOMEM, "out of memory")                                                           \
    X(EMFILE, "too many open files in this process")                                     \
    X(ENFILE, "too many open files in this system")                                      \
    X(ENOENT, "the lock is neither held nor waited for")                                 \
    X(EOWNERDEAD, "the lock is held, but its previous holder died")                      \
    X(ENOTRECOVERABLE, "the state that the lock protects is not recoverable")            \
    X(ENOTSUP, "not supported")                                                          \
    X(ECANCELED, "the client was interrupted")                                           \
    X(ESTALE, "the lease was lost before this call")                                     \
    X(ENOTCONN, "no server could be reached before the deadline")                        \
    X(EACCES, "the server refused the credentials or an ACL rule")                       \
    X(EPROTO, "unexpected reply from the server, or the key holds foreign data")

/* Sets the calling thread's message and returns `code`. The first time in a thread it
 * needs memory; without any, the message is the text of the code. */
int rlk_error_set(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Of the calling thread. */
extern _Thread_local struct rlk_error {
    const char *message; /* a text of rlk_error_text, or the buffer */
    char *buffer;        /* NULL: none yet, or no more */
    unsigned char ended; /* how often the thread has: its destructors go on */
    bool there;          /* the message is not "" */
    bool kept;           /* nothing changes it for now */
} rlk_error RLK_TLS __attribute__((visibility("hidden")));

/* Sets the message to "". */
static inline void rlk_error_clear(void)
{
    rlk_error.there &= rlk_error.kept;
}

/* From true to false, the message stays as it is, or "": what is tried meanwhile is not
 * why the call fails. */
static inline void rlk_error_keep(bool kept)
{
    rlk_error.kept = kept;
}

bool rlk_error_present(void);

/* What the code of a step that the system refused is to a call: itself if it is a
 * shortage that callers know, else EAGAIN (a sandbox refuses with whatever code it likes,
 * and EPERM means something else here). The message names the step. */
int rlk_error_of_step(int code, const char *step);

/* If there is no message yet, sets that of `code`. Returns `code`. */
int rlk_error_default(int code);

/* Checks of a caller's arguments: whether it is fit, else the message says what it is and
 * what it has to be, and the code is EINVAL. */
bool rlk_error_argument_in(const char *what, int64_t value, int64_t least, int64_t most);
bool rlk_error_argument_there(const char *what, const void *pointer);

/* The calling thread's message. */
const char *rlk_error_message(void);

const char *rlk_error_text(int code);

#endif
