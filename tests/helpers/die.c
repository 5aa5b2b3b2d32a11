/* SPDX-License-Identifier: Apache-2.0 */
/* No state. Thread: any. */
#include "die.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void test_die(const char *format, ...)
{
    char line[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof(line), format, ap);
    va_end(ap);
    fprintf(stderr, "test helper, pid %d: %s\n", (int)getpid(), line);
    abort();
}
