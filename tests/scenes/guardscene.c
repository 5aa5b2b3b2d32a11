/* SPDX-License-Identifier: Apache-2.0 */
/* See guardscene.h. */
#include "guardscene.h"

#include "die.h"
#include "program.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct test_server server;
struct test_redis *redis;
struct cli guard, other;
const char *guard_dir;
int manager = -1;

static void start(void)
{
    test_server_start(&server, NULL);
}

static void stop(void)
{
    test_server_stop(&server);
}

static void set_up(void)
{
    unsetenv("NOTIFY_SOCKET");
    unsetenv("JOURNAL_STREAM");
    test_server_reset(&server);
    redis = test_redis_connect(server.path);
    memset(&guard, 0, sizeof(guard));
    memset(&other, 0, sizeof(other));
    guard_dir = test_rundir_own();
}

static void tear_down(void)
{
    cli_stop(&guard);
    cli_stop(&other);
    if (manager >= 0)
        close(manager);
    manager = -1;
    test_redis_close(redis);
}

TCase *guard_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, start, stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

const char *guard_path(void)
{
    static char path[PATH_MAX];
    test_build_path(path, sizeof(path), "guardd/rlock-guard");
    return path;
}

const char *const *guard_env(const char *more)
{
    static char directory[PATH_MAX], url[TEST_URL_MAX + 16];
    static const char *env[] = { directory, url, NULL, NULL };
    bool has_url = more && strncmp(more, "RLOCK_URL=", strlen("RLOCK_URL=")) == 0;

    snprintf(directory, sizeof(directory), "RLOCK_RUNDIR=%s", guard_dir);
    snprintf(url, sizeof(url), "RLOCK_URL=%s", server.url);
    env[1] = has_url ? more : url; /* if a variable is there twice, the first one
                                      applies */
    env[2] = has_url ? NULL : more;
    return env;
}

void guard_is_ready(void)
{
    char text[128];
    snprintf(text, sizeof(text), "rlock-guard: watching %s for ", guard_dir);
    ck_assert_msg(cli_complains(&guard, text), "%s", guard.err.text);
}

/* ---- the service manager */

const char *guard_manager(bool abstract)
{
    static char variable[TEST_PATH_MAX + 32];
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char *name = address.sun_path;

    snprintf(name, sizeof(address.sun_path), "%s/notify", server.dir);
    unlink(name);
    name[0] = abstract ? '@' : '/';
    snprintf(variable, sizeof(variable), "NOTIFY_SOCKET=%s", name);
    size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(name);
    if (abstract)
        name[0] = '\0';
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (manager < 0 || bind(manager, (struct sockaddr *)&address, (socklen_t)len) != 0)
        test_die("cannot listen: %s", strerror(errno));
    return variable;
}

bool guard_tells(const char *text)
{
    struct pollfd fd = { .fd = manager, .events = POLLIN };
    int64_t end = test_now_ms() + test_ms(CLI_WAIT_MS);
    char told[4096];

    for (;;) {
        int64_t left = end - test_now_ms();
        if (left <= 0 || poll(&fd, 1, (int)left) != 1)
            return false;
        ssize_t n = recv(manager, told, sizeof(told) - 1, 0);
        told[n > 0 ? n : 0] = '\0';
        if (strstr(told, text))
            return true;
    }
}

const char *livefile_view(const char *text)
{
    static char path[TEST_PATH_MAX];
    snprintf(path, sizeof(path), "%s/urls", server.dir);
    FILE *file = fopen(path, "we");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0)
        test_die("cannot write %s", path);
    return path;
}
