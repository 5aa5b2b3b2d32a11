/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads handle signals: the library's threads handle none, and the library never
 * raises SIGPIPE. */
#include "client/client.h"
#include "fixture.h"
#include "proxy.h"

#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { SOON_MS = 10000, STATUS_MAX = 4096 };

/* The signals that the test sends to its own process. */
static const int numbers[] = { SIGPROF, SIGALRM, SIGUSR1, SIGTERM };
enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };

static rlock_mutex_t m;

static void set_up(void)
{
    fixture_open();
    m = mutex_of(client, "n");
}

/* ---- masks */

static const char *text_of(const char *status, const char *field)
{
    const char *at = strstr(status, field);
    ck_assert_ptr_nonnull(at);
    return at + strlen(field);
}

static unsigned long long field_of(const char *status, const char *field)
{
    return strtoull(text_of(status, field), NULL, 16);
}

/* Reads the kernel's status of a thread of this process. False: the thread has ended. */
static bool read_task(const char *task, char status[STATUS_MAX])
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(status, 1, STATUS_MAX - 1, file);
    fclose(file);
    status[n] = '\0';
    return n > 0;
}

/* Calls `look` with the status of each thread named rlock-*. Returns their number. */
static int library_threads(void (*look)(const char *status))
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *entry;
    char status[STATUS_MAX];
    int count = 0;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || !read_task(entry->d_name, status) ||
            !strstr(status, "Name:\trlock-"))
            continue;
        look(status);
        count++;
    }
    closedir(dir);
    return count;
}

static unsigned long long own_mask(void)
{
    char status[STATUS_MAX], task[16];
    snprintf(task, sizeof(task), "%d", (int)syscall(SYS_gettid));
    ck_assert(read_task(task, status));
    return field_of(status, "SigBlk:");
}

/* Returns the mask of all signals that a program can block. */
static unsigned long long whole_mask(void)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    unsigned long long mask = own_mask();
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return mask;
}

static void expect_all_blocked(const char *status)
{
    unsigned long long all = whole_mask();
    ck_assert(all >> (SIGTERM - 1) & 1);
    /* Valgrind manages the masks of threads itself, and changes them for moments */
    char again[STATUS_MAX], task[32];
    snprintf(task, sizeof(task), "%ld", strtol(text_of(status, "\nPid:"), NULL, 10));
    for (int tries = 0; test_ms(1) >= 10 && tries < 100; tries++) {
        if ((field_of(status, "SigBlk:") & all) == all)
            break;
        test_pause_ms(1);
        ck_assert(read_task(task, again));
        status = again;
    }
    ck_assert_msg((field_of(status, "SigBlk:") & all) == all, "%s", status);
}

START_TEST(threads_of_the_library_block_every_signal)
{
    ck_assert_int_eq(library_threads(expect_all_blocked), 2);
    fixture_other();
    ck_assert_int_eq(library_threads(expect_all_blocked), 2);
}
END_TEST

/* Stands in for the C library's function: notes the signal masks of its callers. */
static atomic_int resolved;
static atomic_ullong mask_of_resolvers = ~0ull;

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "a.name") != 0 || (hints->ai_flags & AI_NUMERICHOST))
        return real(host, service, hints, list);
    atomic_fetch_and(&mask_of_resolvers, own_mask());
    atomic_fetch_add(&resolved, 1);
    return real("127.0.0.1", service, hints, list);
}

START_TEST(thread_that_resolves_a_name_blocks_every_signal)
{
    char url[64];
    rlock_client_t *c = NULL;

    snprintf(url, sizeof(url), "redis://a.name:%d", server.port);
    OK(rlock_client_open(&c, url, NULL));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    ck_assert_int_gt(atomic_load(&resolved), 0);
    ck_assert_uint_eq(atomic_load(&mask_of_resolvers) & whole_mask(), whole_mask());
}
END_TEST

START_TEST(mask_of_the_caller_is_what_it_was)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
    for (int async = 0; async < 2; async++) {
        unsigned long long before = own_mask();
        if (async)
            pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
        close_client(
            client); /* its threads end with it; the next client starts them again */
        client = open_with("");
        m = mutex_of(client, "n");
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
        ck_assert_uint_eq(own_mask(), before);
    }
}
END_TEST

/* ---- signals to the process */

static pid_t _Atomic taker; /* 0: it has not begun */
static atomic_bool over;
static atomic_int taken, stray;

static void on_signal(int number)
{
    (void)number;
    if ((pid_t)syscall(SYS_gettid) != atomic_load(&taker))
        atomic_fetch_add(&stray, 1);
    atomic_fetch_add(&taken, 1);
}

static void block_numbers(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < NUMBERS; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(how, &set, NULL);
}

static int run_taker(void *arg)
{
    (void)arg;
    atomic_store(&taker, (pid_t)syscall(SYS_gettid));
    block_numbers(SIG_UNBLOCK);
    while (!atomic_load(&over))
        test_pause_ms(1);
    return 0;
}

/* Makes threads of the library begin and end all the time. */
static int run_churn(void *arg)
{
    int rc = 0;
    (void)arg;
    while (rc == 0 && !atomic_load(&over)) {
        rlock_client_t *c = NULL;
        rc = rlock_client_open(&c, server.url, NULL);
        if (rc == 0)
            rc = rlock_client_ping(c);
        if (rc == 0)
            rc = rlock_client_close(c);
    }
    return rc;
}

static bool is_taken(void *arg)
{
    return atomic_load(&taken) >= *(int *)arg;
}

START_TEST(signals_to_the_process_are_handled_on_threads_of_the_program)
{
    struct sigaction action;
    struct task of_taker, churn;
    long rounds = test_count(1000, 20);
    int sent = 0;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    for (int i = 0; i < NUMBERS; i++)
        sigaction(numbers[i], &action, NULL);
    /* so that the library's threads end with each client of run_churn */
    close_client(client);
    client = NULL;
    block_numbers(SIG_BLOCK);
    task_start(&of_taker, run_taker, NULL);
    task_start(&churn, run_churn, NULL);
    for (long i = 0; i < rounds; i++) {
        for (int n = 0; n < NUMBERS; n++) {
            sent++;
            ck_assert_int_eq(kill(getpid(), numbers[n]), 0);
            ck_assert(test_wait_until(is_taken, &sent, SOON_MS));
        }
    }
    atomic_store(&over, true);
    OK(task_join(&of_taker));
    OK(task_join(&churn));
    ck_assert_int_eq(atomic_load(&taken), sent);
    ck_assert_int_eq(atomic_load(&stray), 0);
}
END_TEST

START_TEST(signal_that_the_program_waits_for_is_not_eaten)
{
    struct timespec bound = { test_ms(SOON_MS) / 1000, 0 };
    long rounds = test_count(1000, 20);
    sigset_t set;

    reopen_with("?lease=100"); /* keeps the watchdog busy */
    m = mutex_of(client, "n");
    OK(rlock_mutex_lock(&m));
    block_numbers(SIG_BLOCK); /* the library's threads exist already */
    for (int i = 0; i < NUMBERS; i++)
        ck_assert(signal(numbers[i], SIG_DFL) != SIG_ERR);
    for (long i = 0; i < rounds; i++) {
        int number = numbers[i % NUMBERS];
        sigemptyset(&set);
        sigaddset(&set, number);
        ck_assert_int_eq(kill(getpid(), number), 0);
        ck_assert_int_eq(sigtimedwait(&set, NULL, &bound), number);
    }
    int rc = rlock_mutex_unlock(&m);
    ck_assert(rc == 0 || rc == ESTALE);
}
END_TEST

/* ---- SIGPIPE */

static atomic_int pipes;

static void on_pipe(int number)
{
    (void)number;
    atomic_fetch_add(&pipes, 1);
}

static void expect_no_pipe_pending(const char *status)
{
    unsigned long long pending =
        field_of(status, "SigPnd:") | field_of(status, "ShdPnd:");
    ck_assert_msg(!(pending >> (SIGPIPE - 1) & 1), "%s", status);
}

static int run_calls_without_end(void *arg)
{
    rlock_client_t *c = arg;
    rlock_mutex_t mutex = mutex_of(c, "often");

    while (!atomic_load(&over)) {
        int rc = rlock_client_ping(c);
        if (rc == 0)
            rc = rlock_mutex_trylock(&mutex);
        if (rc == 0)
            rc = rlock_mutex_unlock(&mutex);
        if (rc == EINTR || rc == EPIPE)
            return rc;
    }
    return 0;
}

struct renewals {
    rlock_client_t *client;
    uint64_t count;
};

static bool has_renewed(void *arg)
{
    struct renewals *r = arg;
    return stats_of(r->client).renewals > r->count;
}

/* SIG_DFL, a handler, SIG_IGN; over a Unix socket and over TCP. */
START_TEST(broken_connections_raise_no_SIGPIPE)
{
    static void (*const ways[])(int) = { SIG_DFL, on_pipe, SIG_IGN };
    char parameters[96];
    struct sigaction action, after;
    struct task caller;
    long kills = test_count(300, 20);

    memset(&action, 0, sizeof(action));
    action.sa_handler = ways[_i / 2];
    sigaction(SIGPIPE, &action, NULL);
    snprintf(parameters, sizeof(parameters), "?lease=%ld&commandtimeout=%ld",
             test_ms(3000), test_ms(300));
    proxy = test_proxy_start(&server);
    rlock_client_t *c =
        open_at(_i % 2 ? test_proxy_tcp_url(proxy) : test_proxy_url(proxy), parameters);
    rlock_mutex_t held = mutex_of(c, "held");
    OK(rlock_mutex_lock(&held));
    /* the proxy closes the connection after the reply; the client uses it again before it
     * notices */
    int cut = TEST_RULE(proxy, .on = TEST_ON_REPLY, .action = TEST_CUT_AFTER,
                        .contains = "PING", .reset = true);
    for (long i = 0; i < kills; i++) {
        int rc = rlock_client_ping(c);
        ck_assert(rc == 0 || rc == ENOTCONN);
    }
    test_proxy_remove(proxy, cut);
    task_start(&caller, run_calls_without_end, c);
    for (long i = 0; i < kills; i++)
        test_redis_kill_clients(redis);
    struct renewals r = { c, stats_of(c).renewals };
    ck_assert(test_wait_until(has_renewed, &r, SOON_MS));
    OK(rlock_mutex_unlock(&held));
    test_server_kill(&server);
    test_pause_ms(50); /* some calls and attempts to connect again */
    atomic_store(&over, true);
    OK(task_join(&caller));
    EXPECT(rlock_client_ping(c), ENOTCONN);
    library_threads(expect_no_pipe_pending);
    sigaction(SIGPIPE, NULL, &after);
    ck_assert(after.sa_handler == ways[_i / 2]);
    ck_assert_int_eq(atomic_load(&pipes), 0);
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
    close_client(c);
    test_proxy_stop(proxy);
}
END_TEST

/* ---- clients that come and go */

enum { CLIENTS = 60, INTERRUPTERS = 8 }; /* more than cores: some are inside a call */
static atomic_bool over;

static void *interrupt_for_ever(void *arg)
{
    (void)arg;
    while (!atomic_load(&over)) {
        int rc = rlock_client_interrupt(NULL);
        if (rc != 0 && rc != EINVAL)
            abort();
    }
    return NULL;
}

/* AddressSanitizer and ThreadSanitizer check the accesses to the client's memory. */
START_TEST(default_client_is_interrupted_while_it_is_opened_and_closed)
{
    pthread_t thread[INTERRUPTERS];
    /* Valgrind runs one thread at a time, each for long */
    bool slow = test_ms(1) >= 10;
    int threads = slow ? 2 : INTERRUPTERS;
    setenv("RLOCK_URL", server.url, 1);
    atomic_store(&over, false);
    for (int i = 0; i < threads; i++)
        OK(pthread_create(&thread[i], NULL, interrupt_for_ever, NULL));
    for (long i = slow ? CLIENTS / 4 : test_count(10 * CLIENTS, CLIENTS); i > 0; i--) {
        OK(rlock_client_ping(NULL));
        OK(rlock_client_close(NULL));
    }
    atomic_store(&over, true);
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
}
END_TEST

/* Each interrupt begins before the previous one has ended: there is always one. */
static void *interrupt_without_a_pause(void *arg)
{
    struct rlk_client_signal_call call, next;
    (void)arg;
    rlk_client_signal_begin(NULL, &call);
    while (!atomic_load(&over)) {
        rlk_client_signal_begin(NULL, &next);
        rlk_client_signal_end(&call);
        call = next;
    }
    rlk_client_signal_end(&call);
    return NULL;
}

START_TEST(closing_waits_for_the_interrupts_that_are_and_for_none_that_come)
{
    pthread_t thread;
    setenv("RLOCK_URL", server.url, 1);
    atomic_store(&over, false);
    OK(pthread_create(&thread, NULL, interrupt_without_a_pause, NULL));
    for (int i = 0; i < 5; i++) {
        OK(rlock_client_ping(NULL));
        OK(rlock_client_close(NULL));
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
}
END_TEST

static void *close_default(void *arg)
{
    int rc = rlock_client_close(NULL);
    atomic_store((atomic_bool *)arg, true);
    return (void *)(intptr_t)rc;
}

START_TEST(client_is_not_closed_while_it_is_being_interrupted)
{
    atomic_bool closed = false;
    pthread_t thread;
    struct rlk_client_signal_call call;
    void *rc;
    setenv("RLOCK_URL", server.url, 1);
    for (int i = 0; i < 4; i++) { /* in each phase */
        atomic_store(&closed, false);
        OK(rlock_client_ping(NULL));
        ck_assert_ptr_nonnull(rlk_client_signal_begin(NULL, &call));
        OK(pthread_create(&thread, NULL, close_default, &closed));
        test_pause_ms(30);
        ck_assert(!atomic_load(&closed));
        rlk_client_signal_end(&call);
        OK(pthread_join(thread, &rc));
        ck_assert_ptr_null(rc);
    }
}
END_TEST

static atomic_int handled;

static void handle(int signal)
{
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

/* A handler might fork, and the child's count of interrupts would be wrong. */
START_TEST(no_handler_runs_during_an_interrupt)
{
    struct sigaction action;
    struct rlk_client_signal_call call;
    unsigned long long before = own_mask();
    memset(&action, 0, sizeof(action));
    action.sa_handler = handle;
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_ptr_eq(rlk_client_signal_begin(client, &call), client);
    raise(SIGUSR1);
    ck_assert_int_eq(atomic_load(&handled), 0);
    rlk_client_signal_end(&call);
    ck_assert_int_eq(atomic_load(&handled), 1);
    ck_assert_uint_eq(own_mask(), before);
    signal(SIGUSR1, SIG_DFL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signals and threads");
    TCase *tc = tcase_create("threads");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_test(tc, threads_of_the_library_block_every_signal);
    tcase_add_test(tc, thread_that_resolves_a_name_blocks_every_signal);
    tcase_add_test(tc, mask_of_the_caller_is_what_it_was);
    tcase_add_test(tc, signals_to_the_process_are_handled_on_threads_of_the_program);
    tcase_add_test(tc, signal_that_the_program_waits_for_is_not_eaten);
    tcase_add_test(tc, default_client_is_interrupted_while_it_is_opened_and_closed);
    tcase_add_test(tc, closing_waits_for_the_interrupts_that_are_and_for_none_that_come);
    tcase_add_test(tc, client_is_not_closed_while_it_is_being_interrupted);
    tcase_add_test(tc, no_handler_runs_during_an_interrupt);
    suite_add_tcase(suite, tc);
    tc = tcase_create("pipe");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close);
    tcase_add_loop_test(tc, broken_connections_raise_no_SIGPIPE, 0, 6);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
