/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that two programs change: this program adds numbered lines to it, and
 * 08_guard_file_trim moves the old lines away and puts a new file in its place. The two
 * agree on the name of a lock. flock(2) on the file itself would not do: after the rename
 * each program would lock another file. Nor does flock(2) reach other hosts on every
 * network file system.
 *
 *     08_guard_file FILE LINES &
 *     08_guard_file FILE LINES &
 *     08_guard_file_trim FILE LINES
 *
 * The last command waits until LINES lines have been moved, and fails if a line is
 * missing or doubled. A shell script joins in by the same name:
 * rlock run "file:FILE" -- COMMAND.
 *
 * The server is $RLOCK_URL, else that of rlock.conf(5), else redis://127.0.0.1:6379.
 */
#include <rlock.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "08_guard_file: %s: %s\n", what, rlock_errmsg());
    exit(2);
}

/* Adds a line whose number is one more than that of the last line. */
static void add_line(const char *path)
{
    long number = 0;
    FILE *file = fopen(path, "a+");

    must(file, path);
    while (fscanf(file, "%ld", &number) == 1)
        continue;
    must(fprintf(file, "%ld\n", number + 1) > 0 && fclose(file) == 0, path);
}

int main(int argc, char **argv)
{
    char name[RLOCK_NAME_MAX + 1];
    rlock_mutex_t lock;

    if (argc != 3) {
        fputs("usage: 08_guard_file FILE LINES\n", stderr);
        return 2;
    }
    snprintf(name, sizeof(name), "file:%s", argv[1]);
    must(rlock_mutex_init(&lock, NULL, name) == 0, "init");
    for (long left = atol(argv[2]); left > 0; left--) {
        must(rlock_mutex_lock(&lock) == 0, "lock");
        add_line(argv[1]);
        must(rlock_mutex_unlock(&lock) == 0, "unlock");
    }
    return 0;
}
