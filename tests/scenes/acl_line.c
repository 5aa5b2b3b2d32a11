/* SPDX-License-Identifier: Apache-2.0 */
/* Reads doc/ACL.md; see acl_line.h. */
#include "acl_line.h"

#include "die.h"

#include <stdio.h>
#include <string.h>

enum { LINE_SIZE = 4096 };

static FILE *open_document(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        test_die("cannot open %s", path);
    return file;
}

static void add_words(struct acl_line *line, char *text)
{
    char *save = NULL;
    for (char *w = strtok_r(text, " \n", &save); w; w = strtok_r(NULL, " \n", &save)) {
        if (line->count == ACL_WORDS_MAX || strlen(w) >= ACL_WORD_SIZE)
            test_die("too many or too long words in the ACL's line");
        snprintf(line->words[line->count++], ACL_WORD_SIZE, "%s", w);
    }
}

void acl_read_line(struct acl_line *ret_line, const char *path, int n)
{
    static const char begin[] = "ACL SETUSER worker ";
    char text[LINE_SIZE];
    FILE *file = open_document(path);
    bool in = false;
    int found = 0;

    ret_line->count = 0;
    while (fgets(text, sizeof(text), file)) {
        if (strncmp(text, "```", 3) == 0) {
            in = false;
        } else if (strncmp(text, begin, sizeof(begin) - 1) == 0) {
            in = found++ <= n;
            if (in)
                add_words(ret_line, text + sizeof(begin) - 1);
        } else if (in) {
            add_words(ret_line, text);
        }
    }
    fclose(file);
    if (found <= n)
        test_die("%s has no line %d", path, n);
}

bool acl_is_permission(const char *word)
{
    return word[0] == '~' || word[0] == '&' || word[0] == '+';
}

/* Splits a row "| `+x` | ... | ... |" into its permission and its last column, with '|'
 * in place of "\|". False: it is no such row. */
static bool parse_row(char *text, char word[ACL_WORD_SIZE], char last[ACL_TEXT_SIZE])
{
    char *column[4];
    int count = 0;
    size_t n = 0;
    if (strncmp(text, "| `", 3) != 0)
        return false;
    for (char *p = text; *p && count < 4; p++)
        if (*p == '|' && (p == text || p[-1] != '\\'))
            column[count++] = p;
    if (count != 4)
        return false;
    for (char *p = text + 3; *p != '`' && n + 1 < ACL_WORD_SIZE; p++)
        if (*p != '\\')
            word[n++] = *p;
    word[n] = '\0';
    *column[3] = '\0';
    snprintf(last, ACL_TEXT_SIZE, "%s", column[2] + 2);
    return acl_is_permission(word);
}

const char *acl_without(const char *path, const char *word)
{
    static char last[ACL_TEXT_SIZE];
    char text[LINE_SIZE], of[ACL_WORD_SIZE];
    bool found = false;
    FILE *file = open_document(path);
    while (!found && fgets(text, sizeof(text), file))
        found = parse_row(text, of, last) && strcmp(of, word) == 0;
    fclose(file);
    return found ? last : NULL;
}

int acl_row_count(const char *path)
{
    char text[LINE_SIZE], word[ACL_WORD_SIZE], last[ACL_TEXT_SIZE];
    int count = 0;
    FILE *file = open_document(path);
    while (fgets(text, sizeof(text), file))
        count += parse_row(text, word, last);
    fclose(file);
    return count;
}
