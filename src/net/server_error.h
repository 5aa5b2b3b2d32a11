/* SPDX-License-Identifier: Apache-2.0 */
/* What an error text of a server is about, in words for a person: above all, what of an
 * ACL is missing. Texts of Redis 6 and 7 and of Valkey. No state. Thread: any. */
#ifndef RLK_SERVER_ERROR_H
#define RLK_SERVER_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum { RLK_SERVER_ERROR_SIZE = 312 };

/* Whether the ACL refused something: the command itself, or one inside of a script. */
bool rlk_server_error_by_acl(const char *text, size_t len);

/* Whether it is about a key that a request named, be it by itself or within a script. */
bool rlk_server_error_of_key(const char *text, size_t len);
/* The same about a channel. */
bool rlk_server_error_of_channel(const char *text, size_t len);

/* Whether the server lets no script write that has asked for the time: 6.x with
 * lua-replicate-commands no. No lock can be taken there. */
bool rlk_server_error_of_writes(const char *text, size_t len);
/* Whether it begins with this word, or what a command inside of a script said does. */
bool rlk_server_error_begins(const char *text, size_t len, const char *code);

struct rlk_script;
/* Writes one line, printable and cut to `size`: the lock (name may be NULL), what was
 * refused if it was the ACL that did, and the server's own words. `command` is what was
 * sent, and `sent` the script, if it was one. */
void rlk_server_error_describe(char *buf, size_t size, const char *command,
                               const struct rlk_script *sent, const char *name,
                               size_t name_len, const char *text, size_t len);

#endif
