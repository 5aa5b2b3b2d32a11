/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "table.h"

#include "look.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,
    CUT_MIN = 8, /* a column is not cut to less */
    ROWS_MIN = 16
};

static const char cut_mark[] = "...";

void table_add(struct table *table, const char *const cells[])
{
    if (table->rows == table->size) {
        size_t size = table->size ? 2 * table->size : ROWS_MIN;
        char **bigger = look_alloc(size * table->columns * sizeof(char *));
        if (table->rows > 0)
            memcpy(bigger, table->cells, table->rows * table->columns * sizeof(char *));
        free(table->cells);
        table->cells = bigger;
        table->size = size;
    }
    for (size_t i = 0; i < table->columns; i++) {
        const char *cell = cells[i] ? cells[i] : "";
        char *copy = look_alloc(strlen(cell) + 1);
        table->cells[table->rows * table->columns + i] = strcpy(copy, cell);
    }
    table->rows++;
}

static size_t line_len(const struct table *table, const size_t widths[])
{
    size_t len = GAP * (table->columns - 1);
    for (size_t i = 0; i < table->columns; i++)
        len += widths[i];
    return len;
}

/* Takes from the widest column first: what is short stays whole. */
static void narrow(const struct table *table, size_t width, size_t widths[])
{
    while (line_len(table, widths) > width) {
        size_t widest = table->columns;
        for (size_t i = 0; i < table->columns; i++)
            if ((table->cut >> i & 1u) && widths[i] > CUT_MIN &&
                (widest == table->columns || widths[i] > widths[widest]))
                widest = i;
        if (widest == table->columns)
            return;
        widths[widest]--;
    }
}

static void measure(const struct table *table, size_t width, size_t widths[])
{
    memset(widths, 0, table->columns * sizeof(*widths));
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        size_t len = strlen(table->cells[i]);
        if (len > widths[i % table->columns])
            widths[i % table->columns] = len;
    }
    if (width > 0)
        narrow(table, width, widths);
}

static char *make_line(char *const cells[], size_t columns, const size_t widths[],
                       size_t line_size)
{
    char *line = look_alloc(line_size + 1), *at = line, *end = line;

    for (size_t i = 0; i < columns; i++) {
        size_t len = strlen(cells[i]);
        size_t shown = len <= widths[i] ? len : widths[i];
        memset(at, ' ', widths[i] + (i + 1 < columns ? GAP : 0));
        memcpy(at, cells[i], shown);
        if (shown < len)
            memcpy(at + shown - strlen(cut_mark), cut_mark, strlen(cut_mark));
        if (shown > 0)
            end = at + shown;
        at += widths[i] + (i + 1 < columns ? GAP : 0);
    }
    *end = '\0'; /* no blanks at the end */
    return line;
}

char **table_lines(const struct table *table, size_t width)
{
    size_t widths[TABLE_COLUMNS_MAX];
    char **lines = look_alloc(table->rows * sizeof(char *));

    measure(table, width, widths);
    for (size_t i = 0; i < table->rows; i++) {
        lines[i] = make_line(table->cells + i * table->columns, table->columns, widths,
                             line_len(table, widths));
        if (width > 0 && strlen(lines[i]) > width)
            lines[i][width] = '\0';
    }
    return lines;
}

void table_print(const struct table *table, size_t width, int indent)
{
    size_t left = width > (size_t)indent ? width - (size_t)indent : width;
    char **lines = table_lines(table, left);

    for (size_t i = 0; i < table->rows; i++) {
        printf("%*s%s\n", indent, "", lines[i]);
        free(lines[i]);
    }
    free(lines);
}

void table_print_tabs(const struct table *table)
{
    for (size_t i = 0; i < table->rows * table->columns; i++) {
        fputs(table->cells[i], stdout);
        fputc((i + 1) % table->columns == 0 ? '\n' : '\t', stdout);
    }
}

void table_free(struct table *table)
{
    for (size_t i = 0; i < table->rows * table->columns; i++)
        free(table->cells[i]);
    free(table->cells);
    table->cells = NULL;
    table->rows = table->size = 0;
}
