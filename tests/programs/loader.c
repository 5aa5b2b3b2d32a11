/* SPDX-License-Identifier: Apache-2.0 */
/* program: kind=alone */
/*
 * Loads and unloads the shared library, as a host of plugins may: loader LIBRARY URL N
 * WHAT. WHAT says what remains at each unloading: "nothing", and the library was not
 * used; an "open" client; a lock "held" by the main thread; "threads": one that holds a
 * lock, and one that waits for it. Prints "ok" and ends by exit(0).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <rlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEASE_MS = 600000, NUMBER_BASE = 10, STACK_SIZE = 256 << 10 };

static __typeof__(rlock_client_open) *client_open;
static __typeof__(rlock_mutexattr_init) *attr_init;
static __typeof__(rlock_mutexattr_setclient) *attr_setclient;
static __typeof__(rlock_mutexattr_setlease) *attr_setlease;
static __typeof__(rlock_mutex_init) *mutex_init;
static __typeof__(rlock_mutex_lock) *mutex_lock;

static const struct {
    const char *name;
    void *to;
} symbols[] = {
    { "rlock_client_open", &client_open },
    { "rlock_mutexattr_init", &attr_init },
    { "rlock_mutexattr_setclient", &attr_setclient },
    { "rlock_mutexattr_setlease", &attr_setlease },
    { "rlock_mutex_init", &mutex_init },
    { "rlock_mutex_lock", &mutex_lock },
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stdout, format, ap);
    va_end(ap);
    puts("");
    fflush(stdout);
    _exit(EXIT_FAILURE);
}

static void *load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die("dlopen: %s", dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (!symbol)
            die("no %s", symbols[i].name);
        /* the addresses are the same after each loading, and threads read them */
        if (memcmp(symbols[i].to, &symbol, sizeof(symbol)) != 0)
            memcpy(symbols[i].to, &symbol, sizeof(symbol));
    }
    return library;
}

static void make(rlock_mutex_t *mutex, rlock_client_t *client, const char *name)
{
    rlock_mutexattr_t attr;
    int rc = attr_init(&attr);
    if (rc == 0)
        rc = attr_setclient(&attr, client);
    if (rc == 0)
        rc = attr_setlease(&attr, LEASE_MS);
    if (rc == 0)
        rc = mutex_init(mutex, &attr, name);
    if (rc != 0)
        die("a mutex: %d", rc);
}

static void lock(rlock_mutex_t *mutex)
{
    int rc = mutex_lock(mutex);
    if (rc != 0)
        die("lock: %d", rc);
}

static pthread_barrier_t held;

/* Holds the lock until the process ends. */
static void *run_holder(void *mutex)
{
    lock(mutex);
    pthread_barrier_wait(&held);
    for (;;)
        pause();
    return NULL;
}

static void *run_waiter(void *mutex)
{
    pthread_barrier_wait(&held);
    mutex_lock(mutex); /* never returns */
    return NULL;
}

static void start(void *(*run)(void *), rlock_mutex_t *mutex)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    if (pthread_create(&thread, &attr, run, mutex) != 0)
        die("a thread");
    pthread_attr_destroy(&attr);
}

static void use(const char *url, int round, const char *what)
{
    char name[32];
    rlock_client_t *client = NULL;
    rlock_mutex_t *mutex = malloc(sizeof(*mutex));
    if (!mutex || client_open(&client, url, NULL) != 0)
        die("a client");
    snprintf(name, sizeof(name), "%s%d", what, round);
    make(mutex, client, name);
    if (strcmp(what, "held") == 0)
        lock(mutex);
    if (strcmp(what, "threads") == 0) {
        start(run_holder, mutex);
        start(run_waiter, mutex);
        pthread_barrier_wait(&held);
    } else {
        free(mutex); /* a handle is only a name */
    }
}

int main(int argc, char *argv[])
{
    if (argc != 5 || pthread_barrier_init(&held, NULL, 3) != 0)
        return EXIT_FAILURE;
    long n = strtol(argv[3], NULL, NUMBER_BASE);
    for (int i = 0; i < n; i++) {
        void *library = load(argv[1]);
        if (strcmp(argv[4], "nothing") != 0)
            use(argv[2], i, argv[4]);
        if (dlclose(library) != 0)
            die("dlclose: %s", dlerror());
    }
    puts("ok");
    fflush(stdout);
    exit(EXIT_SUCCESS);
}
