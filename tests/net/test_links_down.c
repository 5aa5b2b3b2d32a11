/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that cannot be reached: its name does not resolve, its SYNs get no answer,
 * every connection is refused, or the link to it is down. For the link, server and client
 * have a network namespace each, with a pair of veth between them; both namespaces vanish
 * with their processes. This file's getaddrinfo resolves the names.
 */
#include "fixture.h"

#include "net/script.h"
#include "proxy.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOON_MS = 10000, COMMAND_MS = 300, SLACK_MS = 200, LONG_LEASE_MS = 600000 };

static rlock_mutex_t m;

/* ---- names: "here.test" is 127.0.0.1, or 127.0.0.2 once it has moved, except that while
 * `silent` no name is resolved */

static struct {
    atomic_bool silent, moved;
    atomic_int stuck, asked;
} names;

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict ret_list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "here.test") != 0)
        return real(host, service, hints, ret_list);
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    atomic_fetch_add(&names.asked, 1);
    atomic_fetch_add(&names.stuck, 1);
    while (atomic_load(&names.silent))
        test_pause_ms(1);
    atomic_fetch_sub(&names.stuck, 1);
    return real(atomic_load(&names.moved) ? "127.0.0.2" : "127.0.0.1", service, hints,
                ret_list);
}

/* ---- fixtures */

static void set_up(void)
{
    atomic_store(&names.silent, false);
    atomic_store(&names.moved, false);
    fixture_open();
    close_client(client);
    client = NULL;
    proxy = test_proxy_start(&server);
}

static void tear_down(void)
{
    atomic_store(&names.silent, false);
    test_proxy_set_mode(proxy, TEST_PROXY_OPEN);
    fixture_close();
    test_proxy_stop(proxy);
}

/* Times in ms, scaled. */
static const char *times(long lease_ms, long presence_ms)
{
    static char parameters[128];
    snprintf(parameters, sizeof(parameters),
             "?lease=%ld&presence=%ld&commandtimeout=%ld&connecttimeout=%ld",
             test_ms(lease_ms), test_ms(presence_ms), test_ms(COMMAND_MS),
             test_ms(COMMAND_MS));
    return parameters;
}

static void open_by_name(long lease_ms)
{
    char url[64];
    snprintf(url, sizeof(url), "redis://here.test:%u", (unsigned)test_proxy_port(proxy));
    client = open_at(url, times(lease_ms, 1000));
    m = mutex_of(client, "n");
}

static void expect_trylock_in_time(void)
{
    int64_t begin = test_now_ms();
    EXPECT(rlock_mutex_trylock(&m), ENOTCONN);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
}

static void expect_timedlock_in_time(long ms)
{
    int64_t begin = test_now_ms(); /* first: a pause after this line shortens no wait */
    struct timespec at = test_in_ms(CLOCK_MONOTONIC, ms);
    EXPECT(rlock_mutex_clocklock(&m, CLOCK_MONOTONIC, &at), ENOTCONN);
    ck_assert_int_ge(test_now_ms() - begin, ms - 1);
    ck_assert_int_lt(test_now_ms() - begin, ms + 100 + test_ms(SLACK_MS));
}

static bool gets_it(void *arg)
{
    return rlock_mutex_trylock(arg) == 0;
}

/* ---- 39, 87: names */

START_TEST(calls_end_in_time_while_no_name_is_resolved_and_work_when_one_is)
{
    open_by_name(LONG_LEASE_MS);
    atomic_store(&names.silent, true);
    test_proxy_set_mode(proxy, TEST_PROXY_DOWN); /* the last known address is of no use */
    test_proxy_cut(proxy, 0, true);
    expect_trylock_in_time();
    ck_assert_int_gt(atomic_load(&names.stuck), 0);
    expect_timedlock_in_time(2 * COMMAND_MS);
    expect_timedlock_in_time(COMMAND_MS / 3);
    test_proxy_set_mode(proxy, TEST_PROXY_OPEN);
    atomic_store(&names.silent, false);
    ck_assert(test_wait_until(gets_it, &m, SOON_MS));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

START_TEST(hold_is_LOST_by_D_while_no_name_is_resolved)
{
    enum { LEASE_MS = 600 };
    open_by_name(LEASE_MS);
    rlock_mutex_t elsewhere = mutex_of(fixture_other(), "elsewhere");
    OK(rlock_mutex_lock(&m));
    atomic_store(&names.silent, true);
    test_proxy_set_mode(proxy, TEST_PROXY_DOWN);
    test_proxy_cut(proxy, 0, true);
    int64_t begin = test_now_ms();
    OK(rlock_mutex_lock(&elsewhere)); /* another client has its own server */
    OK(rlock_mutex_unlock(&elsewhere));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

static bool has_renewals(void *arg)
{
    return stats_of(client).renewals >= *(const uint64_t *)arg;
}

START_TEST(hold_outlives_its_connections_while_no_name_is_resolved)
{
    open_by_name(600);
    OK(rlock_mutex_lock(&m));
    uint64_t wanted = 1;
    ck_assert(test_wait_until(has_renewals, &wanted, SOON_MS));
    wanted += 3;
    atomic_store(&names.silent, true);
    test_proxy_cut(proxy, 0, true);
    ck_assert(test_wait_until(has_renewals, &wanted, SOON_MS));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* How many sockets of this process are connected to the proxy at this address. */
static int count_connected(const char *address)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in in = { .sin_family = AF_UNSPEC };
        socklen_t len = sizeof(in);
        if (getpeername(fd, (struct sockaddr *)&in, &len) == 0 &&
            in.sin_family == AF_INET && ntohs(in.sin_port) == test_proxy_port(proxy) &&
            in.sin_addr.s_addr == inet_addr(address))
            count++;
    }
    return count;
}

/* One of the callers, the subscriber's, the watchdog's. */
static bool all_are_at(void *arg)
{
    return count_connected(arg) == 3 &&
           count_connected("127.0.0.1") + count_connected("127.0.0.2") == 3;
}

/* After a failover the name leads to the new master, while the old one still runs, as a
 * replica. The first request gets one of these refusals, and succeeds at the new master's
 * address. Redis 6 refuses inside a script. */
START_TEST(name_is_resolved_again_when_its_server_is_no_master)
{
    static const char *const refusals[] = {
        "-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
        "'no'.\r\n",
        "-ERR Error running script (call to f_0): @user_script:30: @user_script: 30: "
        "-READONLY You can't write against a read only replica.\r\n",
    };
    static char before[] = "127.0.0.1", after[] = "127.0.0.2";
    test_proxy_stop(proxy);
    proxy = test_proxy_start_at(&server, "0.0.0.0");
    open_by_name(1200);
    OK(rlock_mutex_lock(&m));
    uint64_t renewals = 1;
    ck_assert(test_wait_until(has_renewals, &renewals, SOON_MS));
    ck_assert(test_wait_until(all_are_at, before, SOON_MS));
    OK(rlock_mutex_unlock(&m));
    atomic_store(&names.moved, true);
    TEST_RULE(proxy, .contains = rlk_scripts[RLK_MUTEX_ACQUIRE].sha, .count = 1,
              .action = TEST_ANSWER, .text = refusals[_i]);
    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(all_are_at, after, SOON_MS));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
    OK(rlock_mutex_unlock(&m));
    test_proxy_remove_all(proxy);
    /* later connections use the same address, because it answers */
    int asked = atomic_load(&names.asked);
    test_proxy_cut(proxy, 0, true);
    OK(rlock_mutex_lock(&m));
    ck_assert_int_eq(atomic_load(&names.asked), asked);
    OK(rlock_mutex_unlock(&m));
}
END_TEST

/* ---- 39: a SYN gets no answer */

/* A port whose queue of connections is full, so that the kernel drops new ones. */
struct full {
    int listener, fds[32], count;
    uint16_t port;
};

static bool connects(int fd, const struct sockaddr_in *in)
{
    struct pollfd p = { .fd = fd, .events = POLLOUT };
    return connect(fd, (const struct sockaddr *)in, sizeof(*in)) == 0 ||
           poll(&p, 1, 100) > 0;
}

static void full_open(struct full *f)
{
    struct sockaddr_in in = { .sin_family = AF_INET };
    socklen_t len = sizeof(in);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(f->listener, (struct sockaddr *)&in, sizeof(in)), 0);
    ck_assert_int_eq(listen(f->listener, 0), 0);
    ck_assert_int_eq(getsockname(f->listener, (struct sockaddr *)&in, &len), 0);
    f->port = ntohs(in.sin_port);
    for (f->count = 0; f->count < 32;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        f->fds[f->count++] = fd;
        if (!connects(fd, &in))
            return;
    }
    ck_abort_msg("the queue never fills");
}

static void full_close(struct full *f)
{
    while (f->count > 0)
        close(f->fds[--f->count]);
    close(f->listener);
}

START_TEST(calls_end_in_time_where_nobody_answers_a_SYN)
{
    struct full full;
    char url[TEST_URL_MAX + 128];
    full_open(&full);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%u%s", (unsigned)full.port,
             times(LONG_LEASE_MS, 1000));
    OK(rlock_client_open(&client, url, NULL));
    m = mutex_of(client, "n");
    expect_trylock_in_time();
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "cannot connect"));
    expect_timedlock_in_time(2 * COMMAND_MS);
    expect_timedlock_in_time(COMMAND_MS / 3);
    int64_t begin = test_now_ms();
    close_client(client);
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    client = NULL;
    full_close(&full);
}
END_TEST

/* ---- 52: an outage costs few connections, for any number of waiters and short leases */

enum { WAITERS = 8, STORM_MS = 1200, STORM_MAX = 200 };

START_TEST(outage_costs_few_connections)
{
    struct task task[WAITERS];
    rlock_mutex_t each[WAITERS];
    char name[16];
    client = open_at(test_proxy_tcp_url(proxy), "?lease=50&presence=100");
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    test_proxy_set_mode(proxy, TEST_PROXY_CLOSES);
    test_proxy_cut(proxy, 0, true);
    unsigned before = test_proxy_counts(proxy).accepted;
    for (int i = 0; i < WAITERS; i++) {
        snprintf(name, sizeof(name), "w%d", i);
        each[i] = mutex_of(client, name);
        task_start(&task[i], run_pair, &each[i]);
    }
    test_pause_ms(STORM_MS); /* the length of the outage */
    unsigned made = test_proxy_counts(proxy).accepted - before;
    ck_assert_uint_gt(made, 2);
    ck_assert_uint_lt(made, STORM_MAX);
    test_proxy_set_mode(proxy, TEST_PROXY_OPEN);
    for (int i = 0; i < WAITERS; i++) {
        ck_assert(task_ends(&task[i], SOON_MS));
        int rc = task_join(&task[i]);
        ck_assert(rc == 0 || rc == ESTALE); /* the lease is 50 ms */
    }
    EXPECT(rlock_mutex_unlock(&m), ESTALE);
}
END_TEST

/* ---- 44, 13, 2: a link that is down */

#define SERVER_ADDRESS "10.77.0.1"
#define CLIENT_ADDRESS "10.77.0.2"
#define NOBODYS_ADDRESS "10.77.0.9"

static struct {
    bool there;
    int outside; /* the namespace that the test started in */
} net;

__attribute__((format(printf, 1, 2))) static bool run(const char *format, ...)
{
    char command[256];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    return system(command) == 0;
}

/* Moves this thread, and processes that it starts later, to a new network namespace. */
static bool enter_new_net(void)
{
    return unshare(CLONE_NEWNET) == 0 && run("ip link set lo up 2>/dev/null");
}

static bool make_link(void)
{
    int pid = (int)test_server_pid(&server);
    return run("ip link add rlk0 type veth peer name rlk1 netns %d 2>/dev/null", pid) &&
           run("ip addr add " CLIENT_ADDRESS "/24 dev rlk0 && ip link set rlk0 up") &&
           run("nsenter -t %d -n ip addr add " SERVER_ADDRESS "/24 dev rlk1", pid) &&
           run("nsenter -t %d -n ip link set rlk1 up", pid);
}

/* On failure there is no link, and the tests are skipped. */
static void set_up_net(void)
{
    memset(&net, 0, sizeof(net));
    net.outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (net.outside < 0 || !enter_new_net())
        return;
    test_server_start(&server, (const char *const[]){ "--bind", "0.0.0.0",
                                                      "--protected-mode", "no", NULL });
    net.there = enter_new_net() && make_link();
    if (!net.there)
        return;
    fixture_open();
    close_client(client);
    client = NULL;
}

static void tear_down_net(void)
{
    if (net.there)
        fixture_close();
    test_server_stop(&server);
    if (net.outside >= 0) {
        (void)!setns(net.outside, CLONE_NEWNET);
        close(net.outside);
    }
}

static bool has_net(const char *test)
{
    if (!net.there) {
        printf("skipped: %s: no network namespace with veth can be made here\n", test);
        fflush(stdout);
    }
    return net.there;
}

static void link_is(const char *state)
{
    ck_assert(run("ip link set rlk0 %s", state));
}

static void open_over_net(long lease_ms, long presence_ms)
{
    char url[64];
    snprintf(url, sizeof(url), "redis://" SERVER_ADDRESS ":%u", (unsigned)server.port);
    client = open_at(url, times(lease_ms, presence_ms));
    m = mutex_of(client, "n");
}

START_TEST(link_that_is_down_bounds_every_call_and_is_reported)
{
    enum { LEASE_MS = 900, PRESENCE_MS = 600 };
    if (!has_net(__func__))
        return;
    open_over_net(LEASE_MS, PRESENCE_MS);
    rlock_mutex_t held = mutex_of(client, "held"), idle = mutex_of(client, "idle");
    OK(rlock_mutex_lock(&held));
    OK(rlock_mutex_lock(&idle));
    link_is("down");
    int64_t begin = test_now_ms();
    OK(rlock_mutex_unlock(&idle)); /* the hold is proven until its lease ends */
    ck_assert_int_lt(test_now_ms() - begin, test_ms(COMMAND_MS + SLACK_MS));
    expect_trylock_in_time();
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_LOST, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(LEASE_MS + SLACK_MS));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_DISCONNECTED, SOON_MS));
    ck_assert_int_lt(test_now_ms() - begin, test_ms(PRESENCE_MS + COMMAND_MS + SLACK_MS));
    expect_timedlock_in_time(COMMAND_MS / 2);
    EXPECT(rlock_mutex_unlock(&held), ESTALE);
    link_is("up");
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
    ck_assert(test_wait_until(gets_it, &m, SOON_MS));
    OK(rlock_mutex_unlock(&m));
    ck_assert(wait_key("held", false, SOON_MS) && wait_key("idle", false, SOON_MS));
}
END_TEST

START_TEST(link_that_is_down_for_less_than_the_lease_costs_no_hold)
{
    /* A link that is up again may lose the first packets. The kernel asks for the
     * neighbour's address again after 1 s, a time that does not scale. */
    enum { LEASE_MS = 5400, SLOW_FACTOR = 2 };
    if (!has_net(__func__))
        return;
    long scale = test_ms(1);
    const long lease_ms = LEASE_MS * (scale < SLOW_FACTOR ? scale : SLOW_FACTOR);
    open_over_net(lease_ms / scale, 600);
    uint64_t wanted = 1;
    OK(rlock_mutex_lock(&m));
    ck_assert(test_wait_until(has_renewals, &wanted, SOON_MS));
    link_is("down");
    /* until the next renewal has timed out */
    test_pause_ms(lease_ms * 55 / 100);
    link_is("up");
    wanted++;
    ck_assert(test_wait_until(has_renewals, &wanted, lease_ms * 2 / 5 / scale));
    ck_assert_int_eq(state_of(&m), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&m));
    ck_assert(!event_seen(RLOCK_EVENT_LOST));
}
END_TEST

struct asked {
    struct test_redis *redis;
    long long before;
};

static bool is_not_asked(void *arg)
{
    const struct asked *a = arg;
    return test_redis_calls(a->redis, "evalsha") + test_redis_calls(a->redis, "eval") ==
           a->before;
}

START_TEST(request_that_was_given_up_while_the_link_was_down_never_arrives)
{
    if (!has_net(__func__))
        return;
    open_over_net(LONG_LEASE_MS, 30000 / test_ms(1));
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m)); /* opens a connection, and loads the script */
    struct asked asked = { redis, 0 };
    asked.before = test_redis_calls(redis, "evalsha") + test_redis_calls(redis, "eval");
    link_is("down");
    expect_trylock_in_time();
    OK(rlock_client_close(client)); /* nor may that call's cancel arrive */
    client = NULL;
    link_is("up");
    ck_assert(test_stays(is_not_asked, &asked, 1000));
    ck_assert(!test_redis_exists(redis, "n"));
}
END_TEST

START_TEST(calls_to_a_host_that_is_not_there_end_in_time)
{
    char url[TEST_URL_MAX + 128];
    if (!has_net(__func__))
        return;
    snprintf(url, sizeof(url), "redis://" NOBODYS_ADDRESS ":%u%s", (unsigned)server.port,
             times(LONG_LEASE_MS, 1000));
    OK(rlock_client_open(&client, url, NULL));
    m = mutex_of(client, "n");
    expect_trylock_in_time();
    expect_timedlock_in_time(2 * COMMAND_MS);
}
END_TEST

/* ---- 50: a server in protected mode, reached from another host */

START_TEST(protected_server_is_not_ready_and_is_not_stormed)
{
    if (!has_net(__func__))
        return;
    if (test_server_version() < 70000) {
        printf("skipped: %s: not protected where it is bound to an address\n", __func__);
        fflush(stdout);
        return;
    }
    open_over_net(LONG_LEASE_MS, 1000);
    test_redis_config(redis, "protected-mode", "yes");
    test_redis_kill_clients(redis);
    uint64_t before = stats_of(client).connect_failures;
    expect_trylock_in_time();
    ck_assert_msg(strstr(rlock_errmsg(), "DENIED") != NULL, "%s", rlock_errmsg());
    expect_timedlock_in_time(700);
    uint64_t made = stats_of(client).connect_failures - before;
    ck_assert_uint_gt(made, 2);
    ck_assert_uint_lt(made, 40);
    test_redis_config(redis, "protected-mode", "no");
    ck_assert(test_wait_until(gets_it, &m, SOON_MS));
    OK(rlock_mutex_unlock(&m));
    ck_assert_ptr_nonnull(event_of(RLOCK_EVENT_CONNECTED, SOON_MS));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("links that are down");
    TCase *tc = tcase_create("unreachable");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, calls_end_in_time_while_no_name_is_resolved_and_work_when_one_is);
    tcase_add_test(tc, hold_is_LOST_by_D_while_no_name_is_resolved);
    tcase_add_test(tc, hold_outlives_its_connections_while_no_name_is_resolved);
    tcase_add_loop_test(tc, name_is_resolved_again_when_its_server_is_no_master, 0, 3);
    tcase_add_test(tc, calls_end_in_time_where_nobody_answers_a_SYN);
    tcase_add_test(tc, outage_costs_few_connections);
    suite_add_tcase(suite, tc);
    tc = tcase_create("link");
    tcase_add_checked_fixture(tc, set_up_net, tear_down_net);
    tcase_add_test(tc, link_that_is_down_bounds_every_call_and_is_reported);
    tcase_add_test(tc, link_that_is_down_for_less_than_the_lease_costs_no_hold);
    tcase_add_test(tc, request_that_was_given_up_while_the_link_was_down_never_arrives);
    tcase_add_test(tc, calls_to_a_host_that_is_not_there_end_in_time);
    tcase_add_test(tc, protected_server_is_not_ready_and_is_not_stormed);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
