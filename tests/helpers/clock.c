/* SPDX-License-Identifier: Apache-2.0 */
/* State: in the mapped file. Thread: any. */
#include "clock.h"

#include "../shims/clock_file.h"
#include "die.h"
#include "program.h"
#include "redis.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { IN_FORCE_MS = 10000, ROUNDED_MS = 10 };
static const int64_t ns_per_ms = 1000000;

void test_clock_open(struct test_clock *c)
{
    memset(c, 0, sizeof(*c));
    snprintf(c->path, sizeof(c->path), "/tmp/rlkclockXXXXXX");
    int fd = mkostemp(c->path, O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, sizeof(*c->file)) != 0)
        test_die("cannot make %s: %s", c->path, strerror(errno));
    c->file = mmap(NULL, sizeof(*c->file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (c->file == MAP_FAILED)
        test_die("mmap: %s", strerror(errno));
    char shim[PATH_MAX];
    test_build_path(shim, sizeof(shim), "tests/shims/clock_shim.so");
    if (access(shim, R_OK) != 0)
        test_die("the clock shim is not built: %s", shim);
    snprintf(c->preload, sizeof(c->preload), "LD_PRELOAD=%s", shim);
    snprintf(c->variable, sizeof(c->variable), "%s=%s", TEST_CLOCK_VARIABLE, c->path);
    c->env[0] = c->preload;
    c->env[1] = c->variable;
}

void test_clock_close(struct test_clock *c)
{
    if (!c->file)
        return;
    munmap(c->file, sizeof(*c->file));
    unlink(c->path);
    memset(c, 0, sizeof(*c));
}

void test_clock_set_real(struct test_clock *c, long ms)
{
    __atomic_store_n(&c->file->real_ns, ms * ns_per_ms, __ATOMIC_RELAXED);
}

struct step {
    struct test_redis *server;
    int64_t ns;
};

static int64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 * ns_per_ms + ts.tv_nsec;
}

static bool is_in_force(void *arg)
{
    const struct step *step = arg;
    int64_t before = wall_ns() + step->ns - ROUNDED_MS * ns_per_ms;
    const redisReply *r = test_redis_do(step->server, "TIME");
    int64_t after = wall_ns() + step->ns + ROUNDED_MS * ns_per_ms;
    int64_t its = strtoll(r->element[0]->str, NULL, 10) * 1000 * ns_per_ms +
                  strtoll(r->element[1]->str, NULL, 10) * 1000;
    return its >= before && its <= after;
}

void test_clock_step(struct test_clock *c, struct test_redis *server, long ms)
{
    struct step step = { server, ms * ns_per_ms };
    test_clock_set_real(c, ms);
    if (!test_wait_until(is_in_force, &step, IN_FORCE_MS))
        test_die("the server's clock is not %ld ms away from this host's", ms);
}

void test_clock_leap(struct test_clock *c, long reads, long ms)
{
    __atomic_store_n(&c->file->leap_reads, 0, __ATOMIC_RELAXED);
    c->file->leap_ns = ms * ns_per_ms;
    __atomic_store_n(&c->file->leap_reads, reads, __ATOMIC_RELEASE);
}

bool test_clock_has_leapt(const struct test_clock *c)
{
    return __atomic_load_n(&c->file->leap_reads, __ATOMIC_ACQUIRE) <= 0;
}

void test_clock_set_boot(struct test_clock *c, long ms)
{
    __atomic_store_n(&c->file->boot_ns, ms * ns_per_ms, __ATOMIC_RELAXED);
}
