/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that contend for a mutex over TLS, by the library and by the raw control. */
#ifndef BENCH_TLS_MANY_H
#define BENCH_TLS_MANY_H

/* Runs `processes` of each for `phases` seconds each, in turns of a second, and prints
 * the rates and their ratio. Call it before the library is used. */
void tls_many(const char *url, int processes, int phases);

#endif
