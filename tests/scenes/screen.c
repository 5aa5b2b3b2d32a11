/* SPDX-License-Identifier: Apache-2.0 */
/* See screen.h. After ECMA-48 and the entry "xterm" of terminfo. */
#include "screen.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ESC = 0x1b,
    TAB_WIDTH = 8,
    PARAMETERS_MAX = 8,
    ALTERNATE = 1049, /* private modes */
    CURSOR = 25
};

static void blank(struct screen *s, int row, int from, int to)
{
    if (from < to)
        memset(s->cells[row] + from, ' ', (size_t)(to - from));
}

static void clear(struct screen *s)
{
    for (int i = 0; i < SCREEN_ROWS_MAX; i++) {
        blank(s, i, 0, SCREEN_COLUMNS_MAX);
        s->cells[i][SCREEN_COLUMNS_MAX] = '\0';
    }
}

static int within(int value, int max)
{
    return value < 0 ? 0 : value > max ? max : value;
}

static void move_to(struct screen *s, int row, int column)
{
    s->row = within(row, s->rows - 1);
    s->column = within(column, s->columns - 1);
    s->wraps = false;
}

void screen_init(struct screen *s, int rows, int columns)
{
    memset(s, 0, sizeof(*s));
    clear(s);
    screen_resize(s, rows, columns);
}

void screen_resize(struct screen *s, int rows, int columns)
{
    s->rows = within(rows, SCREEN_ROWS_MAX);
    s->columns = within(columns, SCREEN_COLUMNS_MAX);
    s->top = 0;
    s->bottom = s->rows - 1;
    for (int i = 0; i < SCREEN_ROWS_MAX; i++)
        blank(s, i, i < s->rows ? s->columns : 0, SCREEN_COLUMNS_MAX);
    move_to(s, s->row, s->column);
}

/* Moves the rows from `first` to the end of the region by n, downwards if positive. */
static void shift_rows(struct screen *s, int first, int n)
{
    int count = s->bottom - first + 1;
    n = n > count ? count : n < -count ? -count : n;
    int moved = count - abs(n);
    memmove(s->cells[first + (n > 0 ? n : 0)], s->cells[first - (n < 0 ? n : 0)],
            (size_t)moved * sizeof(s->cells[0]));
    for (int i = 0; i < abs(n); i++)
        blank(s, n > 0 ? first + i : s->bottom - i, 0, SCREEN_COLUMNS_MAX);
}

static void line_feed(struct screen *s)
{
    if (s->row == s->bottom)
        shift_rows(s, s->top, -1);
    else
        move_to(s, s->row + 1, s->column);
}

/* Moves the characters from the cursor on by n, to the right if positive. */
static void shift_cells(struct screen *s, int n)
{
    char *at = s->cells[s->row] + s->column;
    int count = s->columns - s->column;
    n = n > count ? count : n < -count ? -count : n;
    memmove(at + (n > 0 ? n : 0), at - (n < 0 ? n : 0), (size_t)(count - abs(n)));
    if (n > 0)
        blank(s, s->row, s->column, s->column + n);
    else
        blank(s, s->row, s->columns + n, s->columns);
}

static void put(struct screen *s, char ch)
{
    if (s->wraps) {
        s->column = 0;
        line_feed(s);
    }
    s->wraps = s->column == s->columns - 1;
    s->cells[s->row][s->column] = ch;
    if (!s->wraps)
        s->column++;
    s->last = ch;
}

static void erase(struct screen *s, int from_row, int from, int to_row, int to)
{
    for (int i = from_row; i <= to_row; i++)
        blank(s, i, i == from_row ? from : 0, i == to_row ? to : s->columns);
}

static void erase_in(struct screen *s, char final, int how)
{
    bool line = final == 'K';
    int first = line ? s->row : 0, last = line ? s->row : s->rows - 1;
    if (how == 0)
        erase(s, s->row, s->column, last, s->columns);
    else if (how == 1)
        erase(s, first, 0, s->row, s->column + 1);
    else
        erase(s, first, 0, last, s->columns);
}

static void unknown(struct screen *s)
{
    if (s->unknown[0] == '\0')
        snprintf(s->unknown, sizeof(s->unknown), "%s", s->sequence + 1);
}

static void set_mode(struct screen *s, bool on, int mode)
{
    if (mode == ALTERNATE)
        s->alternate = on;
    else if (mode == CURSOR)
        s->hidden_cursor = !on;
}

/* Executes ESC [ parameters final. n is the first parameter, or 1 without one: the
 * default of most sequences. */
static void control(struct screen *s, const int p[PARAMETERS_MAX], char final)
{
    int n = p[0] > 0 ? p[0] : 1;

    switch (final) {
    case 'A':
        move_to(s, s->row - n, s->column);
        break;
    case 'B':
        move_to(s, s->row + n, s->column);
        break;
    case 'C':
        move_to(s, s->row, s->column + n);
        break;
    case 'D':
        move_to(s, s->row, s->column - n);
        break;
    case 'G':
        move_to(s, s->row, n - 1);
        break;
    case 'd':
        move_to(s, n - 1, s->column);
        break;
    case 'H':
        move_to(s, n - 1, (p[1] > 0 ? p[1] : 1) - 1);
        break;
    case 'J':
    case 'K':
        erase_in(s, final, p[0]);
        break;
    case 'L':
        shift_rows(s, s->row, n);
        break;
    case 'M':
        shift_rows(s, s->row, -n);
        break;
    case 'S':
        shift_rows(s, s->top, -n);
        break;
    case 'T':
        shift_rows(s, s->top, n);
        break;
    case '@':
        shift_cells(s, n);
        break;
    case 'P':
        shift_cells(s, -n);
        break;
    case 'X':
        blank(s, s->row, s->column, within(s->column + n, s->columns));
        break;
    case 'Z':
        move_to(s, s->row, (s->column - 1) / TAB_WIDTH * TAB_WIDTH);
        break;
    case 'b':
        for (int i = 0; i < n; i++)
            put(s, s->last);
        break;
    case 'r':
        s->top = within(n - 1, s->rows - 1);
        s->bottom = within((p[1] > 0 ? p[1] : s->rows) - 1, s->rows - 1);
        move_to(s, 0, 0);
        break;
    case 'm':
    case 'l':
    case 'h':
    case 't':
        break; /* colours, modes without effect here, the window's title */
    default:
        unknown(s);
    }
}

/* Executes a complete sequence: without ESC, NUL-terminated. */
static void obey(struct screen *s)
{
    const char *at = s->sequence + 1;
    int p[PARAMETERS_MAX] = { 0 };
    char final = s->sequence[s->sequence_len - 1];

    if (at[0] == 'M') { /* reverse line feed */
        if (s->row == s->top)
            shift_rows(s, s->top, 1);
        else
            move_to(s, s->row - 1, s->column);
    } else if (at[0] == '[' && at[1] == '?') {
        for (at += 2; isdigit((unsigned char)*at); at += *at == ';')
            set_mode(s, final == 'h', (int)strtol(at, (char **)(void *)&at, 10));
    } else if (at[0] == '[') {
        at++;
        for (int i = 0; i < PARAMETERS_MAX && (isdigit((unsigned char)*at) || *at == ';');
             i++) {
            p[i] = (int)strtol(at, (char **)(void *)&at, 10);
            at += *at == ';';
        }
        control(s, p, final);
    } else if (!strchr("()=>78", at[0])) { /* character sets, keypad, saved cursor */
        unknown(s);
    }
}

static bool is_complete(const struct screen *s)
{
    const char *at = s->sequence;
    if (s->sequence_len < 2)
        return false;
    if (at[1] == '[')
        return s->sequence_len > 2 && at[s->sequence_len - 1] >= '@';
    return s->sequence_len == (at[1] == '(' || at[1] == ')' ? 3 : 2);
}

static void feed(struct screen *s, char ch)
{
    if (s->sequence_len > 0) {
        s->sequence[s->sequence_len++] = ch;
        s->sequence[s->sequence_len] = '\0';
        if (is_complete(s))
            obey(s);
        else if (s->sequence_len < SCREEN_SEQUENCE_MAX - 1)
            return;
        s->sequence_len = 0;
        return;
    }
    switch (ch) {
    case ESC:
        s->sequence[s->sequence_len++] = ch;
        break;
    case '\r':
        move_to(s, s->row, 0);
        break;
    case '\n':
        line_feed(s);
        break;
    case '\b':
        move_to(s, s->row, s->column - 1);
        break;
    case '\t':
        move_to(s, s->row, (s->column / TAB_WIDTH + 1) * TAB_WIDTH);
        break;
    default:
        if (ch >= ' ' && ch <= '~') {
            put(s, ch);
        } else if (ch != '\a' && s->unknown[0] == '\0') {
            snprintf(s->unknown, sizeof(s->unknown), "byte %02x", (unsigned char)ch);
        }
    }
}

void screen_feed(struct screen *s, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        feed(s, bytes[i]);
}

int screen_find(const struct screen *s, const char *text)
{
    for (int i = 0; i < s->rows; i++)
        if (strstr(s->cells[i], text))
            return i;
    return -1;
}
