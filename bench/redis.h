/* SPDX-License-Identifier: Apache-2.0 */
/* Plain hiredis: connections to the server of $RLOCK_URL, and calls that end the process
 * when they fail. */
#ifndef BENCH_REDIS_H
#define BENCH_REDIS_H

/* The header's inline functions give warnings of conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#include <hiredis.h>
#pragma GCC diagnostic pop

#include <stddef.h>

redisContext *redis_open(void);

/* Returns a reply that is no error; the caller frees it. */
redisReply *redis_call(redisContext *conn, int argc, const char *const *argv,
                       const size_t *len);

/* The same for words that end with NUL, the last one followed by NULL. */
redisReply *redis_words(redisContext *conn, const char *const *words);

/* Copies the value of `field` in a section of the answer to INFO. */
void redis_info(redisContext *conn, const char *section, const char *field, char *buf,
                size_t size);

#endif
