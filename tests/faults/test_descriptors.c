/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors run out: at open, when a call needs a connection, when working connections
 * break. What a call returns and when, what happens to holds, and that all goes on when
 * there are descriptors again.
 */
#include "fixture.h"

#include "base/fd.h"
#include "port.h"
#include "process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOON_MS = 10000, COMMAND_MS = 200, NS_MAX = 40 };

/* All numbers below this one are taken: nothing can be opened, even when others are
 * closed. */
enum { NO_MORE = 3 };

static rlock_mutex_t m, theirs;
static rlock_rwlock_t w;

static void set_up(void)
{
    fixture_open();
    close_client(client); /* the tests open their own, and count */
    client = NULL;
}

static void tear_down(void)
{
    test_fd_allow(-1);
    fixture_close();
}

static const char *quick(const char *more)
{
    static char parameters[128];
    snprintf(parameters, sizeof(parameters), "?commandtimeout=%ld%s", test_ms(COMMAND_MS),
             more);
    return parameters;
}

static void name_locks(void)
{
    m = mutex_of(client, "n");
    w = rwlock_of(client, "n");
}

/* ---- open */

START_TEST(open_is_EMFILE_and_leaves_nothing_or_succeeds)
{
    char url[TEST_URL_MAX + 128];
    snprintf(url, sizeof(url), "%s%s", _i == 0 ? server.url : server.tcp_url, quick(""));
    int before = test_fd_count(), rc = EMFILE;
    for (int n = 0; rc != 0; n++) {
        test_fd_allow(n);
        rc = rlock_client_open(&client, url, NULL);
        test_fd_allow(-1);
        ck_assert_msg(rc == 0 || rc == EMFILE, "%d: %s", n, rlock_strerror(rc));
        if (rc == 0)
            break;
        ck_assert_ptr_null(client);
        ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
        ck_assert_int_eq(test_fd_count(), before);
        OK(rlock_client_open(&client, url, NULL));
        OK(rlock_client_ping(client));
        close_client(client);
        client = NULL;
        ck_assert_int_lt(n, NS_MAX);
    }
    OK(rlock_client_ping(client));
    close_client(client);
    client = NULL;
    ck_assert_int_eq(test_fd_count(), before);
}
END_TEST

START_TEST(first_use_of_the_default_client_is_EMFILE_or_succeeds)
{
    static rlock_mutex_t by_default = RLOCK_MUTEX_INITIALIZER("n");
    char url[TEST_URL_MAX + 128];
    snprintf(url, sizeof(url), "%s%s", server.url, quick(""));
    OK(rlock_client_setdefault(url, NULL));
    int rc = EMFILE;
    for (int n = 0; rc != 0; n++) {
        test_fd_allow(n);
        rc = rlock_mutex_trylock(&by_default);
        test_fd_allow(-1);
        ck_assert_msg(rc == 0 || rc == EMFILE || rc == ENOTCONN, "%d: %s", n,
                      rlock_strerror(rc));
        OK(rc == 0 ? 0 : rlock_mutex_lock(&by_default));
        OK(rlock_mutex_unlock(&by_default));
        close_client(NULL);
        ck_assert_int_lt(n, NS_MAX);
    }
}
END_TEST

/* ---- calls that need a connection */

static int call_trylock(void)
{
    return rlock_mutex_trylock(&m);
}

static int call_timedlock(void)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, test_ms(COMMAND_MS));
    return rlock_mutex_timedlock(&m, &end);
}

static int call_tryrdlock(void)
{
    return rlock_rwlock_tryrdlock(&w);
}

static int call_ping(void)
{
    return rlock_client_ping(client);
}

static int call_inspect(void)
{
    rlock_info_t *info = NULL;
    int rc = rlock_inspect(client, "theirs", &info);
    rlock_info_free(info);
    return rc;
}

static int count(const rlock_info_t *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

static int call_list(void)
{
    int seen = 0;
    return rlock_list(client, NULL, count, &seen);
}

static int call_force_unlock(void)
{
    return rlock_force_unlock(client, "theirs");
}

static int call_waitfree(void)
{
    struct timespec end = test_in_ms(CLOCK_REALTIME, test_ms(COMMAND_MS));
    return rlock_waitfree(client, "theirs", &end);
}

static int call_lock_that_fails(void)
{
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;
    int rc = rlock_mutexattr_init(&attr);
    if (rc == 0)
        rc = rlock_mutexattr_setclient(&attr, client);
    if (rc == 0)
        rc = rlock_mutexattr_setoutage(&attr, RLOCK_OUTAGE_FAIL);
    if (rc == 0)
        rc = rlock_mutex_init(&mutex, &attr, "n");
    return rc != 0 ? -rc : rlock_mutex_lock(&mutex);
}

static const struct call {
    const char *name;
    int (*call)(void);
    int wanted; /* with enough descriptors */
    int level;  /* what to unlock then: 1 m, 2 w */
} calls[] = {
    { "trylock", call_trylock, 0, 1 },
    { "timedlock", call_timedlock, 0, 1 },
    { "tryrdlock", call_tryrdlock, 0, 2 },
    { "lock, RLOCK_OUTAGE_FAIL", call_lock_that_fails, 0, 1 },
    { "ping", call_ping, 0, 0 },
    { "inspect", call_inspect, 0, 0 },
    { "list", call_list, 0, 0 },
    { "waitfree", call_waitfree, ETIMEDOUT, 0 },
    { "force_unlock", call_force_unlock, 0, 0 },
};
enum { CALL_COUNT = sizeof(calls) / sizeof(calls[0]) };

static void unlock_after(const struct call *c)
{
    if (c->level == 1)
        OK(rlock_mutex_unlock(&m));
    else if (c->level == 2)
        OK(rlock_rwlock_unlock(&w));
}

START_TEST(call_without_a_descriptor_says_so_by_its_bound)
{
    const struct call *c = &calls[_i];
    theirs = mutex_of(fixture_other(), "theirs");
    OK(rlock_mutex_lock(&theirs));
    client = open_with(quick(""));
    name_locks();
    test_fd_limit(NO_MORE);
    int64_t begin = test_now_ms();
    int rc = c->call();
    int64_t took = test_now_ms() - begin;
    test_fd_allow(-1);
    ck_assert_msg(rc == EMFILE || rc == ENOTCONN, "%s: %s", c->name, rlock_strerror(rc));
    ck_assert_int_lt(took, test_ms(COMMAND_MS + 500));
    EXPECT(c->call(), c->wanted);
    unlock_after(c);
    EXPECT(rlock_mutex_unlock(&theirs), c->call == call_force_unlock ? ESTALE : 0);
}
END_TEST

START_TEST(call_with_n_descriptors_by_host_name_says_so_or_succeeds)
{
    char url[TEST_URL_MAX];
    snprintf(url, sizeof(url), "redis://localhost:%u", (unsigned)server.port);
    for (int n = 0; n <= 8; n++) {
        ck_assert(test_thread_wait("rlock-", 0, SOON_MS));
        int before = test_fd_count(), threads = test_thread_count("");
        client = open_at(url, quick(""));
        name_locks();
        test_fd_allow(n);
        int rc = rlock_mutex_trylock(&m);
        test_fd_allow(-1);
        ck_assert_msg(rc == 0 || rc == EMFILE || rc == ENOTCONN, "%d: %s", n,
                      rlock_strerror(rc));
        OK(rc == 0 ? 0 : rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        close_client(client);
        client = NULL;
        ck_assert(test_thread_wait("", threads, SOON_MS)); /* resolvers, too */
        ck_assert_int_eq(test_fd_count(), before);
    }
}
END_TEST

START_TEST(lock_waits_for_descriptors_as_for_an_outage)
{
    struct task task;
    client = open_with(quick(""));
    name_locks();
    test_fd_limit(NO_MORE);
    task_start(&task, run_pair, &m);
    bool waits = wait_waiters(client, 1) && !task_ends(&task, 3 * COMMAND_MS);
    test_fd_allow(-1);
    ck_assert(waits);
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}
END_TEST

START_TEST(waiter_without_descriptors_gets_the_lock_when_there_are_some)
{
    struct task task;
    client = open_with(quick(""));
    name_locks();
    theirs = mutex_of(fixture_other(), "n");
    OK(rlock_mutex_lock(&theirs));
    task_start(&task, run_pair, &m);
    ck_assert(wait_waiters(client, 1) && wait_size("rlock:{n}:queue", 1));
    test_fd_limit(NO_MORE);
    test_redis_kill_clients(redis);
    bool waits = !task_ends(&task, COMMAND_MS);
    test_fd_allow(-1);
    ck_assert(waits);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}
END_TEST

/* ---- holds */

static bool is_renewed(void *arg)
{
    rlock_stats_t stats;
    return rlock_client_getstats(client, &stats) == 0 &&
           stats.renewals >= *(uint64_t *)arg;
}

static void hold_with_lease(long lease_ms)
{
    char lease[32];
    snprintf(lease, sizeof(lease), "&lease=%ld", test_ms(lease_ms));
    client = open_with(quick(lease));
    name_locks();
    OK(rlock_mutex_lock(&m));
    uint64_t one = 1;
    ck_assert_msg(test_wait_until(is_renewed, &one, SOON_MS), "lost: %d",
                  event_seen(RLOCK_EVENT_LOST));
}

START_TEST(hold_with_a_working_connection_is_renewed_and_released)
{
    hold_with_lease(900);
    uint64_t more = stats_of(client).renewals + 4; /* beyond the first lease */
    test_fd_limit(NO_MORE);
    bool renewed = test_wait_until(is_renewed, &more, SOON_MS);
    rlock_state_t state = state_of(&m);
    int unlocked = rlock_mutex_unlock(&m), again = rlock_mutex_lock(&m);
    test_fd_allow(-1);
    ck_assert(renewed);
    ck_assert_int_eq(state, RLOCK_SAFE);
    OK(unlocked);
    OK(again);
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_AT_RISK) && !event_seen(RLOCK_EVENT_DISCONNECTED));
}
END_TEST

START_TEST(hold_whose_connections_break_is_reported_AT_RISK_and_LOST_by_D)
{
    const long lease = test_ms(600);
    hold_with_lease(600);
    test_fd_limit(NO_MORE);
    test_redis_kill_clients(redis);
    int64_t begin = test_now_ms();
    const struct told *down = event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS);
    const struct told *risk = event_of(RLOCK_EVENT_AT_RISK, SOON_MS);
    const struct told *lost = event_of(RLOCK_EVENT_LOST, SOON_MS);
    int64_t took = test_now_ms() - begin;
    int rc = rlock_mutex_unlock(&m);
    test_fd_allow(-1);
    ck_assert(down && risk && lost);
    ck_assert_int_le(took, lease + test_ms(300));
    EXPECT(rc, ESTALE);
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(hold_is_SAFE_AGAIN_when_descriptors_come_before_D)
{
    hold_with_lease(1500);
    test_fd_limit(NO_MORE);
    test_redis_kill_clients(redis);
    const struct told *risk = event_of(RLOCK_EVENT_AT_RISK, SOON_MS);
    test_fd_allow(-1);
    ck_assert_msg(risk != NULL, "lost: %d", event_seen(RLOCK_EVENT_LOST));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_SAFE_AGAIN, SOON_MS));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(unlock_without_a_descriptor_is_0_and_done_when_there_is_one)
{
    client = open_with(quick("")); /* its lease would last 30 s */
    name_locks();
    OK(rlock_mutex_lock(&m));
    theirs = mutex_of(fixture_other(), "n");
    test_fd_limit(NO_MORE);
    test_redis_kill_clients(redis);
    int rc = rlock_mutex_unlock(&m);
    test_fd_allow(-1);
    OK(rc);
    struct timespec end = test_in_ms(CLOCK_REALTIME, test_ms(5000));
    OK(rlock_mutex_timedlock(&theirs, &end));
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* A program that forbids itself all descriptors: poll() then refuses to wait for as many
 * as the library's threads need. */
START_TEST(limit_below_the_open_descriptors_loses_no_hold_and_costs_no_processor)
{
    struct timespec cpu;
    hold_with_lease(900);
    uint64_t more = stats_of(client).renewals + 4; /* beyond the first lease */
    test_fd_limit(0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    int64_t cpu_ms = -(int64_t)cpu.tv_sec * 1000 - cpu.tv_nsec / 1000000;
    int64_t begin = test_now_ms();
    bool renewed = test_wait_until(is_renewed, &more, SOON_MS);
    int64_t took = test_now_ms() - begin;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    cpu_ms += (int64_t)cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000;
    int rc = rlock_mutex_unlock(&m);
    test_fd_allow(-1);
    ck_assert(renewed);
    OK(rc);
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    ck_assert_int_lt(cpu_ms, took / 2 + 20);
}
END_TEST

/* ---- what stays open, and what other programs inherit */

START_TEST(many_clients_one_after_the_other_leave_no_descriptor)
{
    int before = test_fd_count();
    for (long i = 0; i < test_count(1000, test_ms(1) > 1 ? 30 : 200); i++) {
        OK(rlock_client_open(&client, i % 2 ? server.url : server.tcp_url, NULL));
        name_locks();
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        close_client(client);
        client = NULL;
    }
    ck_assert_int_eq(test_fd_count(), before);
}
END_TEST

static bool closes_on_exec(int fd)
{
    char path[64], line[128];
    unsigned flags = 0;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f) && sscanf(line, "flags: %o", &flags) != 1)
        continue;
    fclose(f);
    return (flags & O_CLOEXEC) != 0;
}

START_TEST(every_descriptor_is_closed_on_exec)
{
    bool open_before[TEST_FDS_MAX];
    int seen = 0;
    for (int fd = 0; fd < TEST_FDS_MAX; fd++)
        open_before[fd] = test_fd_is_open(fd);
    hold_with_lease(600);
    other = open_at(server.tcp_url, "");
    OK(rlock_client_ping(other));
    for (int fd = 0; fd < TEST_FDS_MAX; fd++) {
        if (open_before[fd] || !test_fd_is_open(fd))
            continue;
        seen++;
        ck_assert_msg(closes_on_exec(fd), "descriptor %d", fd);
    }
    /* Each thread has an event and a timer. There are two subscribers, a watchdog and two
     * callers. Each client has an epoll set and an event for the leader. */
    ck_assert_int_eq(seen, 4 + 5 + 4);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* The descriptors below 3 are the program's, which may point them elsewhere. */
START_TEST(every_kind_of_descriptor_is_at_3_or_above)
{
    int saved[3], made[3], dir;
    for (int low = 0; low < 3; low++) {
        saved[low] = fcntl(low, F_DUPFD_CLOEXEC, 100);
        close(low);
    }
    made[0] = rlk_fd_socket(AF_UNIX);
    made[1] = rlk_fd_event();
    made[2] = rlk_fd_openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0);
    rlk_fd_hold();
    dir = rlk_fd_raise(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    rlk_fd_unhold();
    bool low_is_open = test_fd_is_open(0) || test_fd_is_open(1) || test_fd_is_open(2);
    for (int low = 0; low < 3; low++)
        if (saved[low] >= 0)
            dup2(saved[low], low);
    ck_assert(!low_is_open);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_ge(made[i], 3);
        ck_assert(fcntl(made[i], F_GETFD) & FD_CLOEXEC);
        rlk_fd_close(made[i]);
        ck_assert(!test_fd_is_open(made[i]));
    }
    ck_assert_int_ge(dir, 3);
    ck_assert(fcntl(dir, F_GETFD) & FD_CLOEXEC);
    close(dir);
}
END_TEST

/* ---- a descriptor that the kernel is slow to close */

enum { LINGER_S = 30 };

static int task_count(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count;
}

static bool has_tasks(void *count)
{
    return task_count() == *(int *)count;
}

static bool has_gone(void *fd)
{
    return fcntl(*(int *)fd, F_GETFD) < 0;
}

/* A connection whose close lasts until its peer has read all. */
static int slow_to_close(int *ret_peer)
{
    static const char bytes[65536];
    struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
    struct sockaddr_in address = { .sin_family = AF_INET };
    uint16_t port;
    int reserved = test_port_reserve("127.0.0.1", &port);
    int listener = test_port_listen("127.0.0.1", port), fd = rlk_fd_socket(AF_INET);

    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
              errno == EINPROGRESS);
    struct pollfd p = { .fd = listener, .events = POLLIN };
    ck_assert_int_eq(poll(&p, 1, SOON_MS), 1);
    *ret_peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(*ret_peer, 0);
    close(listener);
    close(reserved);
    while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        continue;
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    return fd;
}

START_TEST(slow_close_delays_no_call)
{
    int peer;
    if (test_ms(1) >= 10) {
        printf("skipped: slow_close_delays_no_call: "
               "Valgrind lets no other thread run meanwhile\n");
        return;
    }
    ck_assert(test_thread_wait("rlock-", 0, SOON_MS)); /* those of set_up's client */
    int before = task_count(), with_one = before + 1, slow = slow_to_close(&peer);

    rlk_fd_close_aside(slow);
    ck_assert(test_wait_until(has_gone, &slow, SOON_MS));
    int fd = rlk_fd_event();
    ck_assert_int_ge(fd, 0);
    rlk_fd_close(fd);
    ck_assert_int_eq(task_count(), with_one); /* the close still lasts */
    close(peer);
    ck_assert(test_wait_until(has_tasks, &before, SOON_MS));
}
END_TEST

static TCase *tcase(Suite *s, const char *name)
{
    TCase *tc = tcase_create(name);
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(s, tc);
    return tc;
}

static Suite *suite(void)
{
    Suite *s = suite_create("descriptors");
    TCase *tc = tcase(s, "open");
    tcase_add_loop_test(tc, open_is_EMFILE_and_leaves_nothing_or_succeeds, 0, 2);
    tcase_add_test(tc, first_use_of_the_default_client_is_EMFILE_or_succeeds);
    tc = tcase(s, "calls");
    tcase_add_loop_test(tc, call_without_a_descriptor_says_so_by_its_bound, 0,
                        CALL_COUNT);
    tcase_add_test(tc, call_with_n_descriptors_by_host_name_says_so_or_succeeds);
    tcase_add_test(tc, lock_waits_for_descriptors_as_for_an_outage);
    tcase_add_test(tc, waiter_without_descriptors_gets_the_lock_when_there_are_some);
    tc = tcase(s, "holds");
    tcase_add_test(tc, hold_with_a_working_connection_is_renewed_and_released);
    tcase_add_test(tc, hold_whose_connections_break_is_reported_AT_RISK_and_LOST_by_D);
    tcase_add_test(tc, hold_is_SAFE_AGAIN_when_descriptors_come_before_D);
    tcase_add_test(tc, unlock_without_a_descriptor_is_0_and_done_when_there_is_one);
    tcase_add_test(tc,
                   limit_below_the_open_descriptors_loses_no_hold_and_costs_no_processor);
    tc = tcase(s, "process");
    tcase_add_test(tc, many_clients_one_after_the_other_leave_no_descriptor);
    tcase_add_test(tc, every_descriptor_is_closed_on_exec);
    tcase_add_test(tc, every_kind_of_descriptor_is_at_3_or_above);
    tc = tcase(s, "closed");
    tcase_add_test(tc, slow_close_delays_no_call);
    return s;
}

int main(void)
{
    return test_run_suite(suite());
}
