/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts, and one message for each thread. The bytes of a message are not
 * thread-local: programs that load the library with dlopen have little room for such
 * data. Thread: any. */
#include "base/error.h"

#include "base/sync.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGE_SIZE = 320,
    ENDS_MAX = 3 /* fewer than glibc's PTHREAD_DESTRUCTOR_ITERATIONS */
};

_Thread_local struct rlk_error rlk_error;

static rlk_once_t once = RLK_ONCE_INIT;
static rlk_tsd_t slot;
static int slot_rc = -1;

/* Another destructor of the thread may still call the library, which then allocates
 * another buffer. */
static void thread_ends(void *value)
{
    if (rlk_error.message == rlk_error.buffer)
        rlk_error.there = false;
    rlk_error.buffer = NULL;
    rlk_error.ended++;
    free(value);
}

static void init(void)
{
    slot_rc = rlk_sync_tsd_create(&slot, thread_ends);
}

static char *need_buffer(void)
{
    if (rlk_error.buffer || rlk_error.ended == ENDS_MAX)
        return rlk_error.buffer;
    rlk_sync_once(&once, init);
    char *memory = slot_rc == 0 ? malloc(MESSAGE_SIZE) : NULL;
    if (memory && rlk_sync_tsd_set(slot, memory) != 0) {
        free(memory);
        memory = NULL;
    }
    rlk_error.buffer = memory;
    return memory;
}

int rlk_error_set(int code, const char *format, ...)
{
    if (rlk_error.kept)
        return code;
    char *text = need_buffer();
    if (text) {
        va_list args;
        va_start(args, format);
        vsnprintf(text, MESSAGE_SIZE, format, args);
        va_end(args);
    }
    rlk_error.message = text ? text : rlk_error_text(code);
    rlk_error.there = true;
    return code;
}

int rlk_error_of_step(int code, const char *step)
{
    bool known = code == ENOMEM || code == EMFILE || code == ENFILE || code == EAGAIN;
    return rlk_error_set(known ? code : EAGAIN, "%s: %s", step, strerror(code));
}

bool rlk_error_present(void)
{
    return rlk_error.there;
}

int rlk_error_default(int code)
{
    if (code != 0 && !rlk_error.there && !rlk_error.kept) {
        rlk_error.message = rlk_error_text(code);
        rlk_error.there = true;
    }
    return code;
}

bool rlk_error_argument_in(const char *what, int64_t value, int64_t least, int64_t most)
{
    if (value >= least && value <= most)
        return true;
    rlk_error_set(EINVAL, "%s is %lld: must be from %lld to %lld", what, (long long)value,
                  (long long)least, (long long)most);
    return false;
}

bool rlk_error_argument_there(const char *what, const void *pointer)
{
    if (!pointer)
        rlk_error_set(EINVAL, "%s is NULL", what);
    return pointer != NULL;
}

const char *rlk_error_message(void)
{
    return rlk_error.there ? rlk_error.message : "";
}

const char *rlk_error_text(int code)
{
    switch (code) {
#define X(code, text)                                                                    \
    case code:                                                                           \
        return text;
        RLK_CODES(X)
#undef X
    default:
        return "unknown code";
    }
}
