/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts, and one message buffer per thread. Thread: any. */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* The flag is apart so that a success touches one byte of the static TLS block, of
 * which a library that is loaded with dlopen may take little. */
static _Thread_local bool present __attribute__((tls_model("initial-exec")));
static _Thread_local char message[320];

int rlk_error_set(int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    present = true;
    return code;
}

void rlk_error_clear(void)
{
    present = false;
}

bool rlk_error_present(void)
{
    return present;
}

int rlk_error_default(int code)
{
    if (code != 0 && !present)
        rlk_error_set(code, "%s", rlk_error_text(code));
    return code;
}

const char *rlk_error_message(void)
{
    return present ? message : "";
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
