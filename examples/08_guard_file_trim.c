/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second program of 08_guard_file.c, which explains both. It moves the lines of a
 * file, all but the last one, to the end of FILE.old, and puts a new file in its place.
 * It repeats this until line LINES is the last one. Fails when a number is missing or
 * doubled.
 *
 *     08_guard_file_trim FILE LINES
 */
#include <rlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAUSE_US = 500 };

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "08_guard_file_trim: %s: %s\n", what, rlock_errmsg());
    exit(2);
}

static FILE *open_or_die(const char *path, const char *suffix, const char *mode)
{
    char name[4096];
    snprintf(name, sizeof(name), "%s%s", path, suffix);
    FILE *file = fopen(name, mode);
    must(file, name);
    return file;
}

/* Moves the lines behind `moved`; returns the number of the last line, which stays. */
static long trim(const char *path, long moved)
{
    char fresh[4096];
    long number, last = moved;
    FILE *file = open_or_die(path, "", "a+"), *old = open_or_die(path, ".old", "a");
    FILE *new = open_or_die(path, ".new", "w");

    while (fscanf(file, "%ld", &number) == 1) {
        bool stayed = last == moved && number == moved; /* the last trim left it */
        if (!stayed && number != last + 1) {
            fprintf(stderr, "line %ld follows line %ld\n", number, last);
            exit(1);
        }
        if (!stayed)
            fprintf(old, "%ld\n", number);
        last = number;
    }
    if (last > 0)
        fprintf(new, "%ld\n", last);
    must(fclose(file) == 0 && fclose(old) == 0 && fclose(new) == 0, path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    must(rename(fresh, path) == 0, "rename");
    return last;
}

int main(int argc, char **argv)
{
    char name[RLOCK_NAME_MAX + 1];
    rlock_mutex_t lock;
    long moved = 0, trims = 0;

    if (argc != 3) {
        fputs("usage: 08_guard_file_trim FILE LINES\n", stderr);
        return 2;
    }
    snprintf(name, sizeof(name), "file:%s", argv[1]);
    must(rlock_mutex_init(&lock, NULL, name) == 0, "init");
    for (; moved < atol(argv[2]); trims++) {
        must(rlock_mutex_lock(&lock) == 0, "lock");
        moved = trim(argv[1], moved);
        must(rlock_mutex_unlock(&lock) == 0, "unlock");
        nanosleep(&(struct timespec){ .tv_nsec = PAUSE_US * 1000 }, NULL);
    }
    printf("%ld lines in order, trimmed %ld times\n", moved, trims);
    return 0;
}
