/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. */
#include "table.h"

#include "look.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,
    CUT_MIN = 8, /* a column is not cut below this width */
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

/* Cuts the widest column first: short ones stay whole. */
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

/* Copies the first `width` bytes of a longer cell, with a mark for the rest. */
static void cut_end(char *at, const char *cell, size_t width)
{
    memcpy(at, cell, width - strlen(cut_mark));
    memcpy(at + width - strlen(cut_mark), cut_mark, strlen(cut_mark));
}

/* "host:pid:program": points at the colon before the pid; *ret_len includes it. NULL:
 * not a client, but an owner's id. */
static const char *pid_of(const char *cell, size_t *ret_len)
{
    const char *pid = strchr(cell, ':');

    if (!pid)
        return NULL;
    *ret_len = 1 + strspn(pid + 1, "0123456789");
    if (*ret_len == 1 || pid[*ret_len] != ':' || strchr(pid + *ret_len + 1, ':'))
        return NULL;
    return pid;
}

/* Cuts a cell that is too long. The pid identifies a client, so the program is cut
 * first, then the host. Returns the length. */
static size_t cut_client(char *at, const char *cell, size_t width)
{
    size_t pid_len = 0;
    const char *pid = pid_of(cell, &pid_len);
    size_t whole = pid ? (size_t)(pid - cell) + pid_len : 0;

    if (!pid || pid_len > width || whole + strlen(cut_mark) < width) {
        cut_end(at, cell, width);
        return width;
    }
    if (whole <= width) {
        memcpy(at, cell, whole);
        return whole;
    }
    size_t host = width - pid_len;
    if (host > strlen(cut_mark))
        cut_end(at, cell, host);
    else
        memset(at, cut_mark[0], host);
    memcpy(at + host, pid, pid_len);
    return width;
}

static char *make_line(const struct table *table, size_t row, const size_t widths[],
                       size_t line_size)
{
    char *const *cells = table->cells + row * table->columns;
    char *line = look_alloc(line_size + 1), *at = line, *end = line;

    for (size_t i = 0; i < table->columns; i++) {
        size_t len = strlen(cells[i]), gap = i + 1 < table->columns ? GAP : 0;
        size_t shown = len <= widths[i] ? len : widths[i];
        memset(at, ' ', widths[i] + gap);
        if (shown == len)
            memcpy(at, cells[i], len);
        else if (table->clients >> i & 1u)
            shown = cut_client(at, cells[i], shown);
        else
            cut_end(at, cells[i], shown);
        if (shown > 0)
            end = at + shown;
        at += widths[i] + gap;
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
        lines[i] = make_line(table, i, widths, line_len(table, widths));
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
