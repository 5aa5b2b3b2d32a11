/* SPDX-License-Identifier: Apache-2.0 */
/* The library's codes, and one message for each thread (rlock_errmsg). Thread: any; a
 * message is used by its thread only. Blocks: no. */
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

/* Sets the calling thread's message and returns `code`. The first message of a thread
 * allocates memory; without memory the message is the text of the code. */
int rlk_error_set(int code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The calling thread's message. */
extern _Thread_local struct rlk_error {
    const char *message; /* a text of rlk_error_text, or the buffer */
    char *buffer;        /* NULL: not allocated yet, or already freed */
    unsigned char ended; /* how many times the thread's destructor has run: later
                            destructors may call the library */
    bool there;          /* the message is not "" */
    bool kept;           /* the message is frozen */
} rlk_error RLK_TLS __attribute__((visibility("hidden")));

/* Sets the message to "". */
static inline void rlk_error_clear(void)
{
    rlk_error.there &= rlk_error.kept;
}

/* Freezes the message (true) until the next call with false: the result of an attempt
 * in between is not why the call fails. */
static inline void rlk_error_keep(bool kept)
{
    rlk_error.kept = kept;
}

bool rlk_error_present(void);

/* The code that a call returns when the system refuses a step. A shortage that callers
 * know stays as it is; every other code becomes EAGAIN, because a sandbox may refuse
 * with any code, and EPERM has another meaning here. The message names the step. */
int rlk_error_of_step(int code, const char *step);

/* Sets the message of `code` unless there is a message. Returns `code`. */
int rlk_error_default(int code);

/* Check an argument of the caller. False: the message names the argument, its value
 * and the permitted values; the code is EINVAL. */
bool rlk_error_argument_in(const char *what, int64_t value, int64_t least, int64_t most);
bool rlk_error_argument_there(const char *what, const void *pointer);

/* The calling thread's message. */
const char *rlk_error_message(void);

const char *rlk_error_text(int code);

#endif
