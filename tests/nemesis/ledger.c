/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the files of the server: epochs, their manifests, commands, marks. A file that
 * was rewritten has lost the order of events, so it is an error; the driver prevents
 * rewrites.
 */
#include "ledger_impl.h"

#include "die.h"
#include "marks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ARGS_MAX = 1024 * 1024 };

struct passed { /* a mark found in the files */
    uint64_t transaction;
    int64_t answered;
};

struct reading {
    struct nem_book book;
    struct nem_mark *marks; /* by n */
    size_t mark_count;
    struct passed *passed;
    size_t passed_count, passed_size;
    struct nem_command *pending; /* of a transaction whose end was not found yet */
    size_t pending_count, pending_size;
    bool in_multi;
    const char *file;
};

static bool fail(const char *file, const char *why)
{
    fprintf(stderr, "ledger: %s: %s\n", file, why);
    return false;
}

/* ---- files */

static void join(char path[PATH_MAX], const char *dir, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        test_die("a path is too long");
}

/* Reads a whole file; NULL: there is none. */
static char *whole(const char *path, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    if (fseek(file, 0, SEEK_END) != 0)
        test_die("cannot seek in %s", path);
    long len = ftell(file);
    rewind(file);
    char *data = malloc((size_t)len + 1);
    if (!data)
        test_die("out of memory");
    *ret_len = fread(data, 1, (size_t)len, file);
    data[*ret_len] = '\0';
    fclose(file);
    return data;
}

/* ---- marks */

static int by_n(const void *a, const void *b)
{
    const struct nem_mark *x = a, *y = b;
    return (x->n > y->n) - (x->n < y->n);
}

static void read_marks(struct reading *r, const char *dir)
{
    char path[PATH_MAX];
    size_t len = 0;
    snprintf(path, sizeof(path), "%s/marks", dir);
    r->marks = (void *)whole(path, &len);
    r->mark_count = len / sizeof(*r->marks);
    if (r->mark_count)
        qsort(r->marks, r->mark_count, sizeof(*r->marks), by_n);
}

static void pass_mark(struct reading *r, uint64_t n)
{
    struct nem_mark key = { .n = n };
    const struct nem_mark *mark =
        r->mark_count ? bsearch(&key, r->marks, r->mark_count, sizeof(key), by_n) : NULL;
    if (!mark)
        return;
    if (mark->sent > r->book.after)
        r->book.after = mark->sent;
    if (r->passed_count == r->passed_size) {
        r->passed_size = r->passed_size ? 2 * r->passed_size : 256;
        r->passed = realloc(r->passed, r->passed_size * sizeof(*r->passed));
        if (!r->passed)
            test_die("out of memory");
    }
    r->passed[r->passed_count++] =
        (struct passed){ r->book.ledger->transactions, mark->answered };
}

/* Entries before a mark were executed before its answer. */
static void bound_from_behind(const struct reading *r, struct nem_ledger *ledger)
{
    int64_t before = INT64_MAX;
    size_t next = r->passed_count;
    for (size_t i = ledger->count; i-- > 0;) {
        struct nem_entry *entry = &ledger->entries[i];
        while (next > 0 && r->passed[next - 1].transaction > entry->transaction) {
            next--;
            if (r->passed[next].answered < before)
                before = r->passed[next].answered;
        }
        entry->before = before;
    }
}

/* ---- commands */

/* Reads a number behind `type` and up to CRLF; -1: incomplete, -2: none. */
static long length_at(const char *data, size_t len, size_t *at, char type)
{
    char *end;
    const char *line = memchr(data + *at, '\n', len - *at);
    if (!line)
        return -1;
    if (data[*at] != type)
        return -2;
    long number = strtol(data + *at + 1, &end, 10);
    if (end == data + *at + 1 || *end != '\r' || number < 0 || number > INT_MAX)
        return -2;
    *at = (size_t)(line - data) + 1;
    return number;
}

/* Reads the command at `at`, and moves `at` behind it. -1: incomplete, -2: none. */
static int next_command(const char *data, size_t len, size_t *at, struct nem_command *c)
{
    size_t from = *at;
    long count = length_at(data, len, &from, '*');
    if (count < 0 || count > ARGS_MAX)
        return count == -1 ? -1 : -2;
    c->count = (size_t)count;
    c->args = malloc((c->count + 1) * sizeof(*c->args));
    if (!c->args)
        test_die("out of memory");
    for (size_t i = 0; i < c->count; i++) {
        long size = from < len ? length_at(data, len, &from, '$') : -1;
        if (size >= 0 && (size_t)size + 2 > len - from)
            size = -1;
        if (size < 0) {
            free(c->args);
            return (int)size;
        }
        c->args[i] = (struct nem_arg){ data + from, (size_t)size };
        from += (size_t)size + 2;
    }
    *at = from;
    return 0;
}

static bool word_is(const struct nem_command *c, const char *word)
{
    return c->count == 1 && c->args[0].len == strlen(word) &&
           strncasecmp(c->args[0].data, word, c->args[0].len) == 0;
}

static void forget_pending(struct reading *r)
{
    for (size_t i = 0; i < r->pending_count; i++)
        free(r->pending[i].args);
    r->pending_count = 0;
    r->in_multi = false;
}

static void keep_pending(struct reading *r, const struct nem_command *c)
{
    if (r->pending_count == r->pending_size) {
        r->pending_size = r->pending_size ? 2 * r->pending_size : 64;
        r->pending = realloc(r->pending, r->pending_size * sizeof(*r->pending));
        if (!r->pending)
            test_die("out of memory");
    }
    r->pending[r->pending_count++] = *c;
}

/* Executes the pending commands as one transaction. */
static bool execute(struct reading *r)
{
    char why[160];
    uint64_t n;
    for (size_t i = 0; i < r->pending_count; i++) {
        const struct nem_command *c = &r->pending[i];
        r->book.ledger->commands++;
        if (nem_book_mark(c, &n))
            pass_mark(r, n);
        else if (!nem_book_command(&r->book, c)) {
            snprintf(why, sizeof(why), "cannot account for %.*s %.*s",
                     c->count ? (int)c->args[0].len : 0, c->count ? c->args[0].data : "",
                     c->count > 1 ? (int)c->args[1].len : 0,
                     c->count > 1 ? c->args[1].data : "");
            return fail(r->file, why);
        }
    }
    nem_book_end(&r->book);
    forget_pending(r);
    return true;
}

static bool take_command(struct reading *r, struct nem_command *c)
{
    if (word_is(c, "multi")) {
        forget_pending(r); /* an earlier transaction never ended */
        r->in_multi = true;
    } else if (word_is(c, "exec")) {
        free(c->args);
        return execute(r);
    } else {
        keep_pending(r, c);
        return r->in_multi || execute(r);
    }
    free(c->args);
    return true;
}

static bool read_commands(struct reading *r, const char *data, size_t len)
{
    struct nem_command c;
    size_t at = 0;
    while (at < len) {
        if (data[at] == '#') { /* a time stamp */
            const char *end = memchr(data + at, '\n', len - at);
            at = end ? (size_t)(end - data) + 1 : len;
            continue;
        }
        int rc = next_command(data, len, &at, &c);
        if (rc == -1)
            break; /* the file is cut off */
        if (rc == -2)
            return fail(r->file, "is no append-only file");
        if (!take_command(r, &c))
            return false;
    }
    forget_pending(r); /* no EXEC: the server does not execute them either when it reads
                          the file */
    return true;
}

static bool read_aof(struct reading *r, const char *path)
{
    size_t len = 0;
    char *data = whole(path, &len);
    if (!data)
        return fail(path, strerror(errno));
    r->file = path;
    bool done = read_commands(r, data, len);
    forget_pending(r);
    free(data);
    return done;
}

/* ---- the begin of an epoch */

/* The place behind a string at `at` of an RDB file; SIZE_MAX: not understood. */
static size_t behind_string(const unsigned char *data, size_t len, size_t at)
{
    static const size_t integers[] = { 1, 2, 4 };
    if (at >= len)
        return SIZE_MAX;
    unsigned kind = data[at] >> 6, low = data[at] & 63;
    if (kind == 0)
        return at + 1 + low;
    if (kind == 1 && at + 1 < len)
        return at + 2 + (low << 8) + data[at + 1];
    return kind == 3 && low < 3 ? at + 1 + integers[low] : SIZE_MAX;
}

/* Whether a base file has no data: there is none, or it is empty, or it is an RDB file
 * that ends after its auxiliary fields. */
static bool base_is_empty(const char *path)
{
    enum { HEAD = 9, REMARK = 0xfa, END = 0xff };
    size_t len = 0, at = HEAD;
    unsigned char *data = (void *)whole(path, &len);
    /* "REDIS0010", or since Valkey 9 "VALKEY080" */
    if (!data || len < HEAD ||
        (memcmp(data, "REDIS", 5) != 0 && memcmp(data, "VALKEY", 6) != 0)) {
        free(data);
        return len == 0;
    }
    while (at < len && data[at] == REMARK) {
        at = behind_string(data, len, at + 1);
        if (at != SIZE_MAX)
            at = behind_string(data, len, at);
    }
    bool empty = at < len && data[at] == END;
    free(data);
    return empty;
}

/* ---- epochs */

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), tail = strlen(end);
    return len >= tail && strcmp(name + len - tail, end) == 0;
}

/* Finds the first file in a directory whose name has this end. */
static bool find_file(const char *dir, const char *end, char path[PATH_MAX])
{
    struct dirent *entry;
    bool found = false;
    DIR *d = opendir(dir);
    while (d && !found && (entry = readdir(d)) != NULL)
        if (ends_with(entry->d_name, end)) {
            found = true;
            join(path, dir, entry->d_name);
        }
    if (d)
        closedir(d);
    return found;
}

static bool read_manifest(struct reading *r, const char *dir, const char *manifest)
{
    char name[256], kind, path[PATH_MAX], line[512];
    bool done = true;
    FILE *file = fopen(manifest, "r");
    if (!file)
        return fail(manifest, strerror(errno));
    while (done && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "file %255s seq %*u type %c", name, &kind) != 2)
            continue;
        join(path, dir, name);
        if (kind == 'b')
            done = base_is_empty(path) || fail(path, "an epoch does not begin empty");
        else if (kind == 'i')
            done = read_aof(r, path);
        else
            done = fail(path, "the server has rewritten its file");
    }
    fclose(file);
    return done;
}

/* Redis 7 has a manifest, in a directory of its own; older versions have one file. */
static bool read_epoch(struct reading *r, const char *dir)
{
    char inner[PATH_MAX + 16], path[PATH_MAX];
    snprintf(inner, sizeof(inner), "%s/appendonlydir", dir);
    if (find_file(inner, ".manifest", path))
        return read_manifest(r, inner, path);
    if (find_file(dir, ".manifest", path))
        return read_manifest(r, dir, path);
    if (find_file(dir, ".aof", path))
        return read_aof(r, path);
    return fail(dir, "has no append-only file");
}

bool nem_ledger_read(struct nem_ledger *ledger, const char *dir)
{
    struct reading *r = calloc(1, sizeof(*r));
    char path[PATH_MAX];
    bool done = true;
    if (!r)
        test_die("out of memory");
    memset(ledger, 0, sizeof(*ledger));
    r->book.ledger = ledger;
    read_marks(r, dir);
    unsigned epoch = 0;
    for (; done; epoch++) {
        snprintf(path, sizeof(path), "%s/aof.%u", dir, epoch);
        if (access(path, F_OK) != 0)
            break;
        if (epoch > 0) {
            nem_book_lose(&r->book);
            nem_book_end(&r->book);
        }
        done = read_epoch(r, path);
    }
    if (epoch == 0)
        done = fail(dir, "no aof.0");
    bound_from_behind(r, ledger);
    nem_book_free(&r->book);
    free(r->pending);
    free(r->passed);
    free(r->marks);
    free(r);
    if (!done)
        nem_ledger_free(ledger);
    return done;
}

void nem_ledger_free(struct nem_ledger *ledger)
{
    free(ledger->entries);
    memset(ledger, 0, sizeof(*ledger));
}
