/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the files of workers and driver: see oplog.h. */
#include "judge.h"

#include "die.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct pile {
    char *data;
    size_t len, size;
};

/* Appends the complete records of a file. */
static bool pile_file(struct pile *pile, const char *path, size_t width)
{
    FILE *file = fopen(path, "rb");
    size_t from = pile->len, got;
    if (!file)
        return false;
    do {
        if (pile->size - pile->len < width) {
            pile->size = 2 * pile->size + 64 * width;
            pile->data = realloc(pile->data, pile->size);
            if (!pile->data)
                test_die("out of memory");
        }
        got = fread(pile->data + pile->len, 1, pile->size - pile->len, file);
        pile->len += got;
    } while (got > 0);
    pile->len -= (pile->len - from) % width; /* the writer was killed */
    bool read = !ferror(file);
    fclose(file);
    return read;
}

bool nem_read_ops(const char *dir, struct nem_op **ret_ops, size_t *ret_count)
{
    char path[PATH_MAX];
    struct pile pile = { 0 };
    struct dirent *entry;
    bool read = true;
    DIR *d = opendir(dir);
    if (!d)
        return false;
    while (read && (entry = readdir(d)) != NULL) {
        if (strncmp(entry->d_name, "ops.", 4) != 0)
            continue;
        read = snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) < PATH_MAX &&
               pile_file(&pile, path, sizeof(struct nem_op));
    }
    closedir(d);
    if (!read) {
        free(pile.data);
        return false;
    }
    *ret_ops = (void *)pile.data;
    *ret_count = pile.len / sizeof(struct nem_op);
    return true;
}

bool nem_read_faults(const char *dir, struct nem_fault **ret_faults, size_t *ret_count)
{
    char path[PATH_MAX];
    struct pile pile = { 0 };
    if (snprintf(path, sizeof(path), "%s/faults", dir) >= PATH_MAX ||
        !pile_file(&pile, path, sizeof(struct nem_fault))) {
        free(pile.data);
        return false;
    }
    *ret_faults = (void *)pile.data;
    *ret_count = pile.len / sizeof(struct nem_fault);
    return true;
}
