/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts, and one message buffer per thread. Thread: any. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

_Thread_local bool rlk_error_there;
static _Thread_local char message[320];

int rlk_error_set(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    rlk_error_there = true;
    return code;
}

bool rlk_error_present(void)
{
    return rlk_error_there;
}

int rlk_error_default(int code)
{
    if (code != 0 && !rlk_error_there)
        rlk_error_set(code, "%s", rlk_error_text(code));
    return code;
}

const char *rlk_error_message(void)
{
    return rlk_error_there ? message : "";
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
