/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log of what the threads of many processes do with one read-write lock, and the data
 * that the lock protects, in a file that all of them map. The place of an event in the
 * log is taken after the call that acquires has returned, and before the call that
 * releases. So two sections that overlap in the log did overlap. Used by
 * tests/programs/rwcrowd.c and the tests. Threads: any.
 */
#ifndef TEST_RWLOG_H
#define TEST_RWLOG_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RWLOG_MAX = 1 << 19, RWLOG_APART = 4096 };

enum rwlog_kind {
    RWLOG_NOTHING,    /* its thread was killed while it wrote the event */
    RWLOG_ASKS,       /* before the call */
    RWLOG_READS,      /* acquired to read, with this token */
    RWLOG_WRITES,     /* acquired to write */
    RWLOG_DOWNGRADES, /* before the call: reads from now on, with the same token */
    RWLOG_LEAVES,     /* before the call */
    RWLOG_OUT,        /* the call ended without the lock */
    RWLOG_DEAD        /* the process was killed; written after its death */
};

struct rwlog_event {
    _Atomic uint32_t kind;
    uint32_t who;
    uint64_t token;
};

struct rwlog {
    _Atomic uint64_t next;   /* event */
    atomic_bool go;          /* threads may begin */
    atomic_bool stop;        /* threads without a number of rounds shall end */
    atomic_bool open;        /* readers that stay inside may leave */
    atomic_long inside;      /* the readers inside of the jobs r and s (rwcrowd.c) */
    atomic_long late_ms;     /* the longest time from a deadline to the late return */
    _Atomic uint64_t writer; /* pid of the process that changes the data, or 0 */
    char apart[RWLOG_APART];
    _Atomic uint64_t first; /* the data: both numbers are always equal */
    char far_apart[RWLOG_APART];
    _Atomic uint64_t second;
    struct rwlog_event events[RWLOG_MAX];
};

/* NULL: the file cannot be opened. */
static inline struct rwlog *rwlog_map(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return NULL;
    void *log = MAP_FAILED;
    if (ftruncate(fd, sizeof(struct rwlog)) == 0)
        log = mmap(NULL, sizeof(struct rwlog), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return log == MAP_FAILED ? NULL : log;
}

static inline void rwlog_unmap(struct rwlog *log)
{
    if (log)
        munmap(log, sizeof(*log));
}

/* A full log still counts its events, so that the tests notice. */
static inline void rwlog_add(struct rwlog *log, enum rwlog_kind kind, long who,
                             uint64_t token)
{
    uint64_t at = atomic_fetch_add(&log->next, 1);
    if (at >= RWLOG_MAX)
        return;
    log->events[at].who = (uint32_t)who;
    log->events[at].token = token;
    atomic_store(&log->events[at].kind, kind);
}

#endif
