/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places where a tracer may look on: static probes of provider "rlock" (USDT), each a nop
 * and a note in the library until somebody traces it, and nothing at all where the
 * library was built without <sys/sdt.h>. So arguments are what is at hand: nothing is
 * read or computed for a probe alone, but for durations. An argument has one
 * type wherever its probe stands, as perf wants it: int, int64_t, or a string. What each
 * tells: doc/OBSERVABILITY.md, whose table build-aux/check-probes holds against the
 * library.
 */
#ifndef RLK_PROBE_H
#define RLK_PROBE_H

#include "config.h"

#include <stdint.h>

#ifdef RLK_PROBES
#include <sys/sdt.h>
#define RLK_PROBE1(name, a) DTRACE_PROBE1(rlock, name, a)
#define RLK_PROBE2(name, a, b) DTRACE_PROBE2(rlock, name, a, b)
#define RLK_PROBE3(name, a, b, c) DTRACE_PROBE3(rlock, name, a, b, c)
#define RLK_PROBE4(name, a, b, c, d) DTRACE_PROBE4(rlock, name, a, b, c, d)
#else
#define RLK_PROBE1(name, a) ((void)(a))
#define RLK_PROBE2(name, a, b) ((void)(a), (void)(b))
#define RLK_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define RLK_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))
#endif

/* A string that may be an array of unknown size. */
#define RLK_PROBE_TEXT(text) ((const char *)(text))
/* Of a duration that is none: not an immediate operand, which perf leaves out, so that
 * two places of one probe have not the same arguments. */
static inline int64_t rlk_probe_zero(void)
{
    int64_t zero = 0;
    __asm__("" : "+r"(zero));
    return zero;
}
/* Of a duration in ns, what is told. */
#define RLK_PROBE_US(ns) ((int64_t)(ns) / 1000)

#endif
