/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Static probes of provider "rlock" (USDT): each is a nop and a note in the library until
 * a tracer attaches, and nothing at all where the library is built without <sys/sdt.h>.
 * Therefore arguments are values at hand: nothing but a duration is read or computed for
 * a probe alone. An argument has one type wherever its probe stands, because perf
 * requires that: int, int64_t or a string. doc/OBSERVABILITY.md describes each probe;
 * build-aux/check-probes compares its table with the library.
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

/* A string argument that may be an array of unknown size. */
#define RLK_PROBE_TEXT(text) ((const char *)(text))
/* The duration 0, not as an immediate operand: perf ignores immediate operands, and
 * the places of one probe must have the same arguments. */
static inline int64_t rlk_probe_zero(void)
{
    int64_t zero = 0;
    __asm__("" : "+r"(zero));
    return zero;
}
/* The argument for a duration in ns. */
#define RLK_PROBE_US(ns) ((int64_t)(ns) / 1000)

#endif
