/* SPDX-License-Identifier: Apache-2.0 */
/* See texts.h. */
#include "base/texts.h"

#include <string.h>

static const char *behind(const char *entry)
{
    return entry + strlen(entry) + 1;
}

/* Returns the entry with the tag, or the end of the area's texts. */
static const char *find(const char *area, unsigned char tag)
{
    const char *entry = area;

    while (*entry != '\0' && (unsigned char)*entry != tag)
        entry = behind(entry);
    return entry;
}

static const char *find_end(const char *area)
{
    return find(area, '\0');
}

const char *rlk_texts_get(const char *area, unsigned char tag)
{
    const char *entry = find(area, tag);
    return *entry != '\0' ? entry + 1 : NULL;
}

bool rlk_texts_set(char *area, size_t size, unsigned char tag, const char *text)
{
    const char *old = find(area, tag), *end = find_end(area);
    const char *next = *old != '\0' ? behind(old) : old;
    size_t used = (size_t)(end - area) - (size_t)(next - old), len = strlen(text);

    if (len > 0 && (len >= size || used + len + 3 > size))
        return false;
    memmove(area + (old - area), next, (size_t)(end - next));
    memset(area + used, 0, size - used);
    if (len > 0) {
        area[used] = (char)tag;
        memcpy(area + used + 1, text, len);
    }
    return true;
}
