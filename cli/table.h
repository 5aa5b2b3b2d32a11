/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of text in aligned columns. The cells are printable ASCII, one column for each
 * byte. State: in the caller's struct. Thread: any. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 8 };

/* Begin with { .columns = N, .cut = ... }. */
struct table {
    size_t columns;
    unsigned cut;     /* bit i: column i may be cut when lines are too long */
    unsigned clients; /* bit i: column i has "host:pid:program", whose pid is cut last */
    size_t rows, size;
    char **cells; /* rows * columns; owned */
};

/* Adds a row with copies of the cells; NULL means "". */
void table_add(struct table *table, const char *const cells[]);
/* The lines, one for each row, cut to `width` (0: never cut). The caller frees each
 * line and the array. */
char **table_lines(const struct table *table, size_t width);
/* Prints the lines to stdout, each after `indent` blanks. */
void table_print(const struct table *table, size_t width, int indent);
/* Prints the cells to stdout with tabs between them. */
void table_print_tabs(const struct table *table);
void table_free(struct table *table);

#endif
