/* SPDX-License-Identifier: Apache-2.0 */
/* Several texts in one area of fixed size: a tag (not 0) precedes each text, a NUL ends
 * it, and another NUL follows the last. Zeroed: empty. Thread: the area's owner. */
#ifndef RLK_TEXTS_H
#define RLK_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the text with this tag; NULL: there is none. */
const char *rlk_texts_get(const char *area, unsigned char tag);
/* Replaces the text with this tag; "": removes it. False: it does not fit, and the area
 * is unchanged. */
bool rlk_texts_set(char *area, size_t size, unsigned char tag, const char *text);

#endif
