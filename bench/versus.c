/* SPDX-License-Identifier: Apache-2.0 */
/* See versus.h and bench/before: versus [-q] LIBRARY-BEFORE LIBRARY-NOW [scenario...] */
#include "versus.h"

#include "bench.h"
#include "process.h"
#include "redis.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *versus_paths[VERSIONS];
const char *const versus_labels[VERSIONS] = { "before", "now" };

/* ---- a build of the library */

void library_load(struct library *ret_lib, const char *label, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        die("%s", dlerror());
    ret_lib->label = label;
#define LOAD(name)                                                                       \
    *(void **)&ret_lib->name = dlsym(handle, "rlock_" #name);                            \
    if (!ret_lib->name)                                                                  \
        die("%s has no rlock_" #name, path);
    VERSUS_FUNCTIONS(LOAD)
#undef LOAD
}

void library_check(const struct library *lib, int rc, const char *what)
{
    if (rc != 0)
        die("%s: %s: %s", lib->label, what, lib->strerror(rc));
}

static redisReply *mailboxes(redisContext *conn)
{
    return redis_words(
        conn, (const char *const[]){ "PUBSUB", "CHANNELS", "rlock:client:*", NULL });
}

static bool has(const redisReply *names, const char *name)
{
    for (size_t i = 0; i < names->elements; i++)
        if (strcmp(names->element[i]->str, name) == 0)
            return true;
    return false;
}

/* Not by their number: those of processes that have just ended may still go. */
static bool has_new(redisContext *conn, const redisReply *before)
{
    redisReply *now = mailboxes(conn);
    bool is_new = false;
    for (size_t i = 0; i < now->elements; i++)
        is_new |= !has(before, now->element[i]->str);
    freeReplyObject(now);
    return is_new;
}

rlock_client_t *library_client(const struct library *lib, const rlock_clientattr_t *attr)
{
    redisContext *conn = redis_open();
    redisReply *before = mailboxes(conn);
    rlock_client_t *client;
    library_check(lib, lib->client_open(&client, NULL, attr), "rlock_client_open");
    library_check(lib, lib->client_ping(client), "rlock_client_ping");
    while (!has_new(conn, before))
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    freeReplyObject(before);
    redisFree(conn);
    return client;
}

void library_mutex(const struct library *lib, rlock_mutex_t *m, rlock_client_t *client,
                   const char *name, bool robust)
{
    rlock_mutexattr_t attr;
    library_check(lib, lib->mutexattr_init(&attr), "rlock_mutexattr_init");
    library_check(lib, lib->mutexattr_setclient(&attr, client), "setclient");
    if (robust)
        library_check(lib, lib->mutexattr_setrobust(&attr, RLOCK_MUTEX_ROBUST),
                      "setrobust");
    library_check(lib, lib->mutex_init(m, &attr, name), "rlock_mutex_init");
    library_check(lib, lib->mutexattr_destroy(&attr), "rlock_mutexattr_destroy");
}

/* ---- the program */

static const struct {
    const char *word;
    void (*run)(bool quick);
} scenarios[] = {
    { "pair", versus_pair },     { "try_robust", versus_try },
    { "forced", versus_forced }, { "forged16", versus_forged },
    { "deaths", versus_deaths }, { "handoff", versus_handoff },
    { "memory", versus_memory },
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static void print_load(const char *when)
{
    double load[3] = { 0 };
    if (getloadavg(load, 3) < 1)
        load[0] = -1;
    printf("load %s: %.1f\n", when, load[0]);
}

static bool is_chosen(const char *word, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return argc == 0;
}

int main(int argc, char **argv)
{
    bool quick = argc > 1 && strcmp(argv[1], "-q") == 0;
    argc -= 1 + quick;
    argv += 1 + quick;
    if (argc < VERSIONS)
        die("usage: versus [-q] LIBRARY-BEFORE LIBRARY-NOW [scenario...]");
    for (int i = 0; i < VERSIONS; i++)
        versus_paths[i] = argv[i];
    print_load("before");
    for (int i = 0; i < SCENARIOS; i++) {
        if (!is_chosen(scenarios[i].word, argc - VERSIONS, argv + VERSIONS))
            continue;
        fflush(stdout);
        pid_t pid = process_fork();
        if (pid == 0) {
            scenarios[i].run(quick);
            fflush(stdout);
            _exit(0);
        }
        if (process_reap(pid) != 0)
            die("%s failed", scenarios[i].word);
    }
    print_load("after");
    return 0;
}
