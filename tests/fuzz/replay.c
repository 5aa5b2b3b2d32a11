/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main of a fuzz target in `make check`: runs every file of the target's corpus, then
 * mutations of them, the same in every run. An input that fails is kept in the current
 * directory as <target>.failed, for a debugger.
 *
 *     replay_<target> [file...]     only these files
 */
#include "fuzz.h"
#include "wait.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef FUZZ_ROUNDS
#define FUZZ_ROUNDS 50000
#endif

enum { FILES_MAX = 512, INPUT_MAX = 1 << 16, EDITS_MAX = 6, HANG_S = 30 };

struct file {
    char *name;
    uint8_t *bytes;
    size_t len;
};

static struct file files[FILES_MAX];
static int file_count;
static uint8_t input[INPUT_MAX];
static size_t input_len;
static uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

/* ---- the failing input */

static void keep_input(int signal_number)
{
    static const char name[] = FUZZ_TARGET ".failed";
    static const char says[] = "the input is in " FUZZ_TARGET ".failed\n"
                               "0%: Checks: 1, Failures: 1, Errors: 0\n";
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ssize_t n = fd < 0 ? 0 : write(fd, input, input_len);
    n += write(STDOUT_FILENO, says, sizeof(says) - 1);
    (void)n;
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void run(const uint8_t *bytes, size_t len)
{
    if (bytes != input)
        memcpy(input, bytes, len);
    input_len = len;
    /* its own block, so that a sanitizer notices a read beyond */
    uint8_t *copy = (uint8_t *)fuzz_copy(input, len, false);
    alarm((unsigned)test_ms(HANG_S));
    LLVMFuzzerTestOneInput(copy, len);
    alarm(0);
    free(copy);
}

/* ---- the corpus */

static void load(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct file *file = &files[file_count];
    if (!f || file_count == FILES_MAX) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    file->len = fread(input, 1, sizeof(input), f);
    file->bytes = (uint8_t *)fuzz_copy(input, file->len, false);
    file->name = fuzz_copy(path, strlen(path), true);
    file_count++;
    fclose(f);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct file *)a)->name, ((const struct file *)b)->name);
}

static void load_corpus(const char *directory)
{
    char path[4096];
    DIR *d = opendir(directory);
    struct dirent *entry;
    if (!d) {
        fprintf(stderr, "%s: %s\n", directory, strerror(errno));
        exit(1);
    }
    while ((entry = readdir(d)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        load(path);
    }
    closedir(d);
    qsort(files, (size_t)file_count, sizeof(files[0]), by_name);
}

/* ---- mutations */

static uint32_t draw(uint32_t limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return limit == 0 ? 0 : (uint32_t)(seed >> 24) % limit;
}

static void insert(size_t at, const void *bytes, size_t len)
{
    if (input_len + len > sizeof(input))
        return;
    memmove(input + at + len, input + at, input_len - at);
    memcpy(input + at, bytes, len);
    input_len += len;
}

static void edit(void)
{
    static const char *const words[] = { "-1",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551616",
                                         "9007199254740993",
                                         "4294967296",
                                         "0",
                                         "\r\n",
                                         "{",
                                         "}",
                                         ":",
                                         " ",
                                         "%00",
                                         "$-1\r\n",
                                         "*1000000000\r\n",
                                         "\xff" };
    const struct file *other = &files[draw((uint32_t)file_count)];
    size_t at = draw((uint32_t)input_len + 1), left = input_len - at;
    size_t len = draw(left < 16 ? (uint32_t)left + 1 : 17);
    const char *word = words[draw(sizeof(words) / sizeof(words[0]))];

    switch (draw(7)) {
    case 0: /* flips a bit */
        if (left > 0)
            input[at] ^= (uint8_t)(1u << draw(8));
        break;
    case 1: /* changes a byte */
        if (left > 0)
            input[at] = (uint8_t)draw(256);
        break;
    case 2: /* removes some bytes */
        memmove(input + at, input + at + len, left - len);
        input_len -= len;
        break;
    case 3: /* cuts the end */
        input_len = at;
        break;
    case 4: /* repeats some bytes */
    {
        uint8_t copy[16];
        len = len > sizeof(copy) ? sizeof(copy) : len;
        memcpy(copy, input + at, len);
        insert(at, copy, len);
        break;
    }
    case 5:
        insert(at, word, strlen(word));
        break;
    default: /* inserts bytes of another file */
        if (other->len > 0) {
            size_t from = draw((uint32_t)other->len);
            insert(at, other->bytes + from,
                   draw(other->len - from < 64 ? (uint32_t)(other->len - from) + 1 : 65));
        }
    }
}

static void mutate(const struct file *from)
{
    memcpy(input, from->bytes, from->len);
    input_len = from->len;
    for (uint32_t edits = 1 + draw(EDITS_MAX); edits > 0; edits--)
        edit();
    run(input, input_len);
}

int main(int argc, char **argv)
{
    signal(SIGABRT, keep_input);
    signal(SIGALRM, keep_input);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    signal(SIGSEGV, keep_input);
    signal(SIGBUS, keep_input);
    signal(SIGFPE, keep_input);
#endif
    for (int i = 1; i < argc; i++)
        load(argv[i]);
    if (argc == 1)
        load_corpus(FUZZ_CORPUS "/" FUZZ_TARGET);
    for (int i = 0; i < file_count; i++)
        run(files[i].bytes, files[i].len);
    fuzz_must(file_count > 0);
    long checks = file_count;
    checks++; /* counted: the mutations */
    long rounds = argc > 1 ? 0 : test_count(4 * FUZZ_ROUNDS, FUZZ_ROUNDS) / test_ms(1);
    for (long i = 0; i < rounds; i++)
        mutate(&files[draw((uint32_t)file_count)]);
    printf("%d files, %ld mutations\n", file_count, rounds);
    printf("100%%: Checks: %ld, Failures: 0, Errors: 0\n", checks);
    for (int i = 0; i < file_count; i++) {
        free(files[i].name);
        free(files[i].bytes);
    }
    return 0;
}
