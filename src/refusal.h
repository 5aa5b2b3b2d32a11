/* SPDX-License-Identifier: Apache-2.0 */
/* What an error text of a server is about, in words for a person: above all, what of an
 * ACL is missing. Texts of Redis 6 and 7 and of Valkey. No state. Thread: any. */
#ifndef RLK_REFUSAL_H
#define RLK_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>

enum { RLK_REFUSAL_SIZE = 312 };

/* Whether the ACL refused something: the command itself, or one inside of a script. */
bool rlk_refusal_by_acl(const char *text, size_t len);

/* Whether it is about a key that a request named, be it by itself or within a script. */
bool rlk_refusal_of_key(const char *text, size_t len);
/* The same about a channel. */
bool rlk_refusal_of_channel(const char *text, size_t len);

/* Writes one line, printable and cut to `size`: the lock (name may be NULL), what was
 * refused if it was the ACL that did, and the server's own words. `command` is what was
 * sent. */
void rlk_refusal_describe(char *buf, size_t size, const char *command, const char *name,
                          size_t name_len, const char *text, size_t len);

#endif
