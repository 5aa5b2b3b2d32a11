/* SPDX-License-Identifier: Apache-2.0 */
/* See authority.h. */
#include "authority.h"

#include "die.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 2048, PATHS = 8, PATH_SIZE = 128 };

static char dir[64];
static pid_t maker;

/* Runs a shell command in the directory; the test program ends if that fails. */
static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
    char command[COMMAND_MAX], whole[COMMAND_MAX + 128];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    snprintf(whole, sizeof(whole), "cd %s && { %s; } >>log 2>&1", dir, command);
    if (system(whole) != 0)
        test_die("openssl (Debian, Ubuntu: openssl): see %s/log: %s", dir, command);
}

const char *test_authority_path(const char *file)
{
    static char paths[PATHS][PATH_SIZE];
    static unsigned next;
    char *path = paths[next++ % PATHS];

    snprintf(path, PATH_SIZE, "%s/%s", dir, file);
    return path;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path);
    return 0;
}

void test_authority_end(void)
{
    if (dir[0] && getpid() == maker)
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    dir[0] = '\0';
}

void test_authority_make(const char *name)
{
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-keyout %s.key -out %s.crt -days 3650 -subj '/CN=rlock test authority %s'",
        name, name, name);
}

void test_authority_issue(const char *authority, const char *name, int days,
                          const char *extensions)
{
    run("printf '%%b' '%s\\n' >%s.ext", extensions, name);
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
        "-keyout %s.key -out %s.csr -subj '/CN=%s'",
        name, name, name);
    if (days > 0)
        run("openssl x509 -req -in %s.csr -CA %s.crt -CAkey %s.key -CAcreateserial "
            "-days %d -extfile %s.ext -out %s.crt",
            name, authority, authority, days, name, name);
    else /* only this command accepts both dates */
        run(": >index.txt; echo 01 >serial; openssl ca -batch -in %s.csr -cert %s.crt "
            "-keyfile %s.key -startdate 20200101000000Z -enddate 20200201000000Z "
            "-extfile %s.ext -out %s.crt -outdir . -md sha256 -config ca.cnf",
            name, authority, authority, name, name);
}

const char *test_authority_begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/rlock-ca.XXXXXX");
    if (!mkdtemp(dir))
        test_die("no directory for certificates");
    maker = getpid();
    atexit(test_authority_end);
    run("printf '[ca]\\ndefault_ca=d\\n[d]\\ndatabase=index.txt\\nserial=serial\\n"
        "policy=p\\n[p]\\ncommonName=supplied\\n' >ca.cnf");
    test_authority_make("ca");
    return dir;
}
