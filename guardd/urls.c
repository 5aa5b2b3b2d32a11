/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The URLs of the servers: where they come from, and what may be shown of them. The
 * library judges them. This file only looks for a password where all users can read it,
 * and for guard=0, with which the guard does nothing. Thread: main.
 */
#include "guardd.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_LEN = 4, URL_LINE_MAX = 8192, HEX = 16 };

static void *checked(void *memory)
{
    if (!memory)
        say_and_exit(GUARD_INTERNAL, "out of memory");
    return memory;
}

static void add(struct guard_urls *urls, const char *text, char *from)
{
    if (urls->count == URLS_MAX)
        say_and_exit(GUARD_USAGE, "%s: more than %d URLs", from, URLS_MAX);
    urls->each[urls->count++] = (struct guard_url){
        .text = checked(strdup(text)),
        .from = from,
    };
}

/* redis://user:password@host. Users and passwords may contain each of these
 * characters, so the whole URL is checked. */
static bool holds_password(const char *url)
{
    const char *from = strstr(url, "://");
    from = from ? from + strlen("://") : url;
    const char *sign = strrchr(from, '@'), *colon = strchr(from, ':');
    return sign && colon && colon < sign;
}

void urls_add(struct guard_urls *urls, const char *url)
{
    char *from;

    if (holds_password(url))
        say_and_exit(GUARD_USAGE,
                     "--url: all users of this host can read a password there; use "
                     "--url-file or RLOCK_URL");
    if (asprintf(&from, "--url, number %d", ++urls->of_command_line) < 0)
        from = checked(NULL);
    add(urls, url, from);
}

/* The next line, without blanks around it. False: none. */
static bool next_line(FILE *file, const char *path, int number, char *line, size_t size,
                      char **ret_begin)
{
    static const char blanks[] = " \t\r\n";

    if (!fgets(line, (int)size, file)) {
        if (ferror(file))
            say_and_exit(GUARD_USAGE, "--url-file: %s: %s", path, strerror(errno));
        return false;
    }
    size_t len = strlen(line);
    if (len == size - 1 && line[len - 1] != '\n')
        say_and_exit(GUARD_USAGE, "--url-file: %s, line %d is too long", path, number);
    while (len > 0 && strchr(blanks, line[len - 1]))
        line[--len] = '\0';
    *ret_begin = line + strspn(line, blanks);
    return true;
}

void urls_read(struct guard_urls *urls, const char *path)
{
    char line[URL_LINE_MAX], *begin, *from, *shown = printable(path);
    int before = urls->count, number = 1;
    FILE *file = fopen(path, "re");

    if (!file)
        say_and_exit(GUARD_USAGE, "--url-file: %s: %s", shown, strerror(errno));
    setvbuf(file, NULL, _IONBF, 0); /* leaves no copy of a password behind */
    for (; next_line(file, shown, number, line, sizeof(line), &begin); number++) {
        if (*begin == '\0' || *begin == '#')
            continue;
        if (asprintf(&from, "%s, line %d", shown, number) < 0)
            from = checked(NULL);
        add(urls, begin, from);
    }
    explicit_bzero(line, sizeof(line));
    fclose(file);
    if (urls->count == before)
        say_and_exit(GUARD_USAGE, "--url-file: %s: no URL in it", shown);
    free(shown);
}

void urls_add_default(struct guard_urls *urls)
{
    urls->each[urls->count++] = (struct guard_url){ .text = NULL, .from = NULL };
}

void urls_clear(struct guard_urls *urls)
{
    for (int i = 0; i < urls->count; i++) {
        if (urls->each[i].text)
            explicit_bzero(urls->each[i].text, strlen(urls->each[i].text));
        free(urls->each[i].text);
        free(urls->each[i].from);
    }
    urls->count = 0;
}

/* ---- the parameters */

static int hex_value(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The byte at *at, which may be written as %NN; advances past it. */
static int next_byte(const char **at)
{
    int c = (unsigned char)*(*at)++;
    if (c != '%' || hex_value((*at)[0]) < 0 || hex_value((*at)[1]) < 0)
        return c;
    c = hex_value((*at)[0]) * HEX + hex_value((*at)[1]);
    *at += 2;
    return c;
}

/* Whether a parameter, from `at` up to `end`, is the guard's switch with value 0. The
 * library has checked that the number is 0 or 1, in whatever form. */
static bool switches_off(const char *at, const char *end)
{
    for (const char *name = "guard="; *name; name++)
        if (at >= end || next_byte(&at) != *name)
            return false;
    while (at < end)
        if (next_byte(&at) != '0')
            return false;
    return true;
}

bool url_is_off(const char *url)
{
    const char *at = strchr(url, '?');
    while (at) {
        const char *end = strchrnul(++at, '&');
        if (switches_off(at, end))
            return true;
        at = *end != '\0' ? end : NULL;
    }
    return false;
}

char *printable(const char *text)
{
    char *shown = checked(malloc(strlen(text) * ESCAPE_LEN + 1)), *at = shown;

    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c <= '~' && c != '\\')
            *at++ = (char)c;
        else
            at += sprintf(at, "\\x%02x", c);
    }
    *at = '\0';
    return shown;
}
