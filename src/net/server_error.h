/* SPDX-License-Identifier: Apache-2.0 */
/* Explains a server's error text to a person, above all which right an ACL lacks.
 * Knows the texts of Redis 6 to 8 and of Valkey. No state. Thread: any. */
#ifndef RLK_SERVER_ERROR_H
#define RLK_SERVER_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum { RLK_SERVER_ERROR_SIZE = 312 };

/* Whether the ACL refused the command itself, or a command inside a script. */
bool rlk_server_error_by_acl(const char *text, size_t len);

/* Whether the text is about a key of the request, named by itself or within a script. */
bool rlk_server_error_of_key(const char *text, size_t len);
/* As rlk_server_error_of_key, about a channel. */
bool rlk_server_error_of_channel(const char *text, size_t len);

/* Whether the server lets no script write after TIME: 6.x with lua-replicate-commands
 * no. No lock can be taken there. */
bool rlk_server_error_of_writes(const char *text, size_t len);
/* Whether the text, or that of a command inside a script, begins with `code`. */
bool rlk_server_error_begins(const char *text, size_t len, const char *code);

struct rlk_script;
/* Writes one printable line, cut to `size`: the lock (name may be NULL), what the ACL
 * refused, and the server's own text. `command` was sent; `sent` is the script, if it
 * was one. */
void rlk_server_error_describe(char *buf, size_t size, const char *command,
                               const struct rlk_script *sent, const char *name,
                               size_t name_len, const char *text, size_t len);

#endif
