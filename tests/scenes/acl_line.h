/* SPDX-License-Identifier: Apache-2.0 */
/* The ACL line of doc/ACL.md: its words, and what the document says about each of them.
 * Thread: a test's main thread. */
#ifndef TEST_ACL_LINE_H
#define TEST_ACL_LINE_H

#include <stdbool.h>

#define ACL_DOC TEST_SRCDIR "/doc/ACL.md"

enum { ACL_WORDS_MAX = 96, ACL_WORD_SIZE = 64, ACL_TEXT_SIZE = 256 };

struct acl_line {
    int count;
    char words[ACL_WORDS_MAX][ACL_WORD_SIZE]; /* all that follow the user's name */
};

/* Reads the n-th line "ACL SETUSER worker ..." (from 0), with the lines before it. Aborts
 * when there is no such line. */
void acl_read_line(struct acl_line *ret_line, const char *path, int n);

/* Whether the word is a permission for a command, a key or a channel. */
bool acl_is_permission(const char *word);

/* What happens without the permission, the last column of its row; NULL: no row. Valid
 * until the next call. */
const char *acl_without(const char *path, const char *word);

/* The number of rows about permissions. */
int acl_row_count(const char *path);

#endif
