/* SPDX-License-Identifier: Apache-2.0 */
/* Several texts in one area of fixed size: each has a tag (not 0) before and a NUL behind
 * it, the last one is followed by a NUL. Zeroed: empty. Thread: the area's owner. */
#ifndef RLK_TEXTS_H
#define RLK_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

/* The text with this tag; NULL: there is none. */
const char *rlk_texts_get(const char *area, unsigned char tag);
/* Replaces it; "": takes it away. False: it does not fit, and the area is as before. */
bool rlk_texts_set(char *area, size_t size, unsigned char tag, const char *text);

#endif
