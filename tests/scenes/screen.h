/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal with TERM=xterm would show. Takes the bytes that a program wrote and
 * keeps the characters, the cursor, and which of the two screens is shown. Ignores
 * colours and the like. Notes the first sequence that it does not know. State: in the
 * caller's struct. */
#ifndef TEST_SCREEN_H
#define TEST_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum { SCREEN_ROWS_MAX = 100, SCREEN_COLUMNS_MAX = 300, SCREEN_SEQUENCE_MAX = 64 };

struct screen {
    int rows, columns, row, column;
    int top, bottom; /* the rows of the region that scrolls */
    bool wraps;      /* the next character goes to the next line */
    bool alternate, hidden_cursor;
    char last; /* for the sequence that repeats a character */
    char cells[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX + 1];
    char sequence[SCREEN_SEQUENCE_MAX]; /* an incomplete escape sequence */
    size_t sequence_len;
    char unknown[SCREEN_SEQUENCE_MAX]; /* the first unknown sequence; "": none */
};

void screen_init(struct screen *s, int rows, int columns);
/* Resizes the screen; the characters that fit stay. */
void screen_resize(struct screen *s, int rows, int columns);
void screen_feed(struct screen *s, const char *bytes, size_t len);
/* The first row that contains `text`; -1: none. */
int screen_find(const struct screen *s, const char *text);

#endif
