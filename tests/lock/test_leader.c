/* SPDX-License-Identifier: Apache-2.0 */
/* The leader, a waiting thread that reads the mailbox (leader.h), and the subscriber that
 * lets it do so. */
#include "client/client.h"
#include "fixture.h"

#include "base/deadline.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 10000, SPELL_MS = 500, LONG_MS = 30000, LOOK_MS = 1000 };
/* Times so long that no timer helps a test along: refreshes (which would find what no
 * message said), pings, timeouts of answers, and the threads' regular looks at their
 * descriptors (poll, below). */
#define PATIENT "?presence=30000&commandtimeout=30000&connecttimeout=30000"

static rlock_mutex_t n, theirs;
static struct task waiting;

/* ---- no thread looks at its descriptors by itself */

#ifndef SYS_ppoll_time64
#define SYS_ppoll_time64 SYS_ppoll /* its time has 64 bits there */
#endif

static _Thread_local int64_t ends_at; /* the thread's deadline, or 0; test_now_ms */

static int poll_patiently(struct pollfd *fds, nfds_t count, int ms)
{
    struct {
        int64_t sec, nsec;
    } left;

    if (ms == LOOK_MS)
        ms = ends_at == 0 ? LONG_MS : (int)(ends_at - test_now_ms());
    if (ends_at != 0 && ms < 0)
        ms = 0;
    left.sec = ms / 1000;
    left.nsec = (int64_t)(ms % 1000) * 1000000;
    return (int)syscall(SYS_ppoll_time64, fds, count, ms < 0 ? NULL : &left, NULL, 0);
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
    return poll_patiently(fds, count, ms);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *left,
          const sigset_t *mask)
{
    if (mask) { /* the library passes none */
        errno = ENOTSUP;
        return -1;
    }
    return poll_patiently(
        fds, count,
        left ? (int)(left->tv_sec * 1000 + (left->tv_nsec + 999999) / 1000000) : -1);
}

/* ---- looks */

static bool looks(rlock_client_t *c, bool (*is)(const struct rlk_registry *))
{
    rlk_sync_mutex_lock(&c->registry.mu);
    bool yes = is(&c->registry);
    rlk_sync_mutex_unlock(&c->registry.mu);
    return yes;
}

static bool has_leader(const struct rlk_registry *reg)
{
    return reg->leader != NULL;
}

static bool has_open_mail(const struct rlk_registry *reg)
{
    return reg->mail_open;
}

static bool is_led(void *c)
{
    return looks(c, has_leader);
}

/* A thread that waits from now on may lead. */
static bool is_lent(void *c)
{
    return looks(c, has_open_mail) && !is_led(c);
}

static bool is_up_again(void *c)
{
    return stats_of(c).reconnects > 0 && is_lent(c);
}

static bool is_heard(void *c)
{
    return atomic_load(&((rlock_client_t *)c)->route.target.subscription.hears);
}

/* ---- a client whose messages go through the proxy, and another that holds n */

static rlock_client_t *open_patient(rlock_event_fn fn, long presence_ms)
{
    rlock_clientattr_t attr;
    rlock_client_t *c = NULL;
    OK(rlock_clientattr_init(&attr));
    if (fn)
        OK(rlock_clientattr_seteventcallback(&attr, fn, NULL));
    OK(rlock_clientattr_setpresence(&attr, presence_ms));
    OK(rlock_clientattr_setcommandtimeout(&attr, LONG_MS));
    OK(rlock_clientattr_setconnecttimeout(&attr, LONG_MS));
    OK(rlock_client_open(&c, test_proxy_tcp_url(proxy), &attr));
    OK(rlock_clientattr_destroy(&attr));
    ck_assert(test_wait_until(is_lent, c, SOON_MS));
    return c;
}

static void set_up(void)
{
    fixture_open_proxied();
    client = open_patient(NULL, LONG_MS);
    n = mutex_of(client, "n");
    other = open_with(PATIENT);
    theirs = mutex_of(other, "n");
    OK(rlock_mutex_lock(&theirs));
}

static bool is_led_or_over(void *c)
{
    return is_led(c) || atomic_load(&waiting.done);
}

/* Makes a thread run `run` with n, and waits until it leads. If the machine stands still,
 * a thread with a deadline may be over by then: another one begins. */
static void begins_to(int (*run)(void *))
{
    enum { TRIES = 5 };
    for (int i = 0; i < TRIES; i++) {
        task_start(&waiting, run, &n);
        ck_assert(test_wait_until(is_led_or_over, client, SOON_MS));
        if (is_led(client))
            return;
        task_join(&waiting);
    }
    ck_abort_msg("no thread leads");
}

/* Unlocks n, so that the waiting thread ends. Asserts how many grants came by
 * messages. */
static void gets_n(uint64_t grants)
{
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    ck_assert(!is_led(client));
    ck_assert_uint_eq(stats_of(client).grants, grants);
}

/* ---- which thread reads */

START_TEST(waiting_thread_reads_its_own_grant)
{
    for (uint64_t i = 1; i <= 3; i++) {
        begins_to(run_pair);
        gets_n(i);
        OK(rlock_mutex_lock(&theirs));
    }
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

static int reads(void *rwlock)
{
    int rc = rlock_rwlock_rdlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_unlock(rwlock);
}

static int writes(void *rwlock)
{
    int rc = rlock_rwlock_wrlock(rwlock);
    return rc != 0 ? rc : rlock_rwlock_unlock(rwlock);
}

START_TEST(waiting_readers_and_writers_read_their_own_grants)
{
    rlock_rwlock_t ours = rwlock_of(client, "rw"), held = rwlock_of(other, "rw");
    OK(rlock_rwlock_wrlock(&held));
    task_start(&waiting, _i ? reads : writes, &ours);
    ck_assert(test_wait_until(is_led, client, SOON_MS));
    OK(rlock_rwlock_unlock(&held));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    ck_assert_uint_eq(stats_of(client).grants, 1);
    OK(rlock_mutex_unlock(&theirs));
}
END_TEST

static atomic_int in_callback; /* 1: it has begun, 2: it may go on, 3: it is over */

static bool callback_is_at(void *at)
{
    return atomic_load(&in_callback) >= *(int *)at;
}

static void blocks(const rlock_event_t *event, void *arg)
{
    int may_go_on = 2;
    (void)arg;
    if (event->kind != RLOCK_EVENT_OWNER_DIED)
        return;
    atomic_store(&in_callback, 1);
    test_wait_until(callback_is_at, &may_go_on, 3 * SOON_MS);
    atomic_store(&in_callback, 3);
}

static rlock_mutex_t for_callback;
static int callback_rc;

static void locks(const rlock_event_t *event, void *arg)
{
    (void)arg;
    if (event->kind != RLOCK_EVENT_OWNER_DIED)
        return;
    callback_rc = run_pair(&for_callback);
    atomic_store(&in_callback, 3);
}

/* Makes a thread that holds "own" end, which the client reports to its callback. */
static void calls_back(rlock_client_t *c, int until)
{
    rlock_mutex_t own = mutex_of(c, "own");
    atomic_store(&in_callback, 0);
    OK(in_thread(run_lock, &own));
    if (until)
        ck_assert(test_wait_until(callback_is_at, &until, SOON_MS));
}

static bool is_over(void)
{
    int over = 3;
    return test_wait_until(callback_is_at, &over, SOON_MS);
}

/* The leader reads messages for other threads, too. */
START_TEST(waiting_thread_reads_while_a_callback_blocks_the_subscriber)
{
    struct task leading;
    rlock_client_t *c = open_patient(blocks, LONG_MS);
    rlock_mutex_t ours[2] = { mutex_of(c, "n"), mutex_of(c, "n2") },
                  n2 = mutex_of(other, "n2");
    OK(rlock_mutex_lock(&n2));
    calls_back(c, 1);
    task_start(&leading, run_pair, &ours[0]);
    ck_assert(test_wait_until(is_led, c, SOON_MS));
    task_start(&waiting, run_pair, &ours[1]);
    ck_assert(wait_waiters(c, 2));
    ck_assert(wait_size("rlock:{n2}:queue", 1));
    OK(rlock_mutex_unlock(&n2));
    ck_assert(task_ends(&waiting, SOON_MS));
    ck_assert(is_led(c));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&leading, SOON_MS));
    OK(task_join(&waiting));
    OK(task_join(&leading));
    ck_assert_uint_eq(stats_of(c).grants, 2);
    atomic_store(&in_callback, 2);
    ck_assert(is_over());
    close_client(c);
}
END_TEST

/* The subscriber's own thread leads then. */
START_TEST(callback_that_waits_reads_what_it_waits_for)
{
    rlock_client_t *c = open_patient(locks, LONG_MS);
    for_callback = mutex_of(c, "n");
    calls_back(c, 0);
    ck_assert(test_wait_until(is_led, c, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(is_over());
    OK(callback_rc);
    ck_assert_uint_eq(stats_of(c).grants, 1);
    ck_assert(test_wait_until(is_lent, c, SOON_MS));
    close_client(c);
}
END_TEST

/* ---- how it ends */

static int times_out(void *mutex)
{
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SPELL_MS));
    ends_at = test_now_ms() + test_ms(SPELL_MS) + 1;
    int rc = rlock_mutex_timedlock(mutex, &at);
    ends_at = 0;
    return rc == ETIMEDOUT ? 0 : rc != 0 ? rc : EPROTO;
}

static int is_interrupted(void *mutex)
{
    int rc = rlock_mutex_lock(mutex);
    return rc == ECANCELED ? 0 : rc != 0 ? rc : EPROTO;
}

static bool has_more_messages(void *than)
{
    return stats_of(client).messages > *(uint64_t *)than;
}

/* Only the mailbox can report the forced unlock: the lease is long. */
static void subscriber_reads(void)
{
    rlock_mutex_t forced = mutex_of(client, "forced");
    uint64_t messages = stats_of(client).messages;
    OK(rlock_mutex_lock(&forced));
    ck_assert(!is_led(client));
    OK(rlock_force_unlock(other, "forced"));
    ck_assert(test_wait_until(has_more_messages, &messages, SOON_MS));
    ck_assert_int_ne(rlock_mutex_unlock(&forced), 0);
    /* the message was counted before the subscriber had lent the connection again */
    ck_assert(test_wait_until(is_lent, client, SOON_MS));
}

enum { BY_GRANT, BY_DEADLINE, BY_INTERRUPT, ENDS };

START_TEST(subscriber_reads_on_when_nobody_leads)
{
    subscriber_reads();
    begins_to(_i == BY_GRANT ? run_pair : _i == BY_DEADLINE ? times_out : is_interrupted);
    if (_i == BY_GRANT)
        OK(rlock_mutex_unlock(&theirs));
    if (_i == BY_INTERRUPT)
        rlock_client_interrupt(client);
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    if (_i == BY_INTERRUPT) { /* the client takes no lock any more */
        ck_assert(test_wait_until(is_lent, client, SOON_MS));
    } else {
        subscriber_reads();
    }
    if (_i != BY_GRANT)
        OK(rlock_mutex_unlock(&theirs));
}
END_TEST

/* ---- what the subscriber has to do meanwhile */

START_TEST(led_connection_is_pinged)
{
    long presence = test_ms(300);
    int ping =
        TEST_RULE(proxy, .on = TEST_ON_REQUEST, .action = TEST_WATCH, .contains = "PING");
    rlock_client_t *c = open_patient(NULL, presence);
    rlock_mutex_t ours = mutex_of(c, "n");
    task_start(&waiting, run_pair, &ours);
    ck_assert(test_wait_until(is_led, c, SOON_MS));
    unsigned before = test_proxy_hits(proxy, ping);
    ck_assert(test_proxy_wait_hits(proxy, ping, before + 2, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    close_client(c);
}
END_TEST

static bool listens(void *arg)
{
    (void)arg;
    const redisReply *reply =
        test_redis_do(redis, "PUBSUB", "NUMSUB", "redisson_lock__channel:{j}");
    return reply->elements == 2 && reply->element[1]->integer == 1;
}

START_TEST(channels_are_joined_while_somebody_leads)
{
    struct task second;
    rlock_mutex_t j = mutex_of(client, "j");
    test_redis_do(redis, "HSET", "j", "8743c9c0-0795-4907-87fd-6c719a6b4586:52", "1");
    test_redis_do(redis, "PEXPIRE", "j", "600000");
    begins_to(run_pair);
    task_start(&second, run_pair, &j);
    ck_assert(test_wait_until(listens, NULL, SOON_MS));
    test_redis_do(redis, "DEL", "j");
    test_redis_do(redis, "PUBLISH", "redisson_lock__channel:{j}", "0");
    ck_assert(task_ends(&second, SOON_MS));
    OK(task_join(&second));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
}
END_TEST

START_TEST(subscription_that_is_not_where_the_locks_are_is_left_while_led)
{
    begins_to(run_pair);
    atomic_store(&client->route.target.subscription.unheard_at, rlk_clock_boot());
    rlk_subscriber_look(client);
    ck_assert(test_wait_until(is_up_again, client, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
}
END_TEST

enum { BY_FIN, BY_RST, BY_NO_RESP, BY_REFUSAL, BREAKS };

/* The message is lost with the connection. The grant is found by another request after
 * the next subscription. */
START_TEST(broken_connection_of_the_leader_is_opened_again)
{
    static const char *const said[BREAKS] = {
        [BY_NO_RESP] = "rubbish\r\n", [BY_REFUSAL] = ":1\r\n"
    };
    const struct test_rule rule = { .on = TEST_ON_MESSAGE,
                                    .action = said[_i] ? TEST_ANSWER : TEST_CUT,
                                    .contains = "message",
                                    .count = 1,
                                    .reset = _i == BY_RST,
                                    .text = said[_i] };
    begins_to(run_pair);
    int lost = test_proxy_add(proxy, &rule);
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    ck_assert(test_wait_until(is_up_again, client, SOON_MS));
    ck_assert_uint_eq(test_proxy_hits(proxy, lost), 1);
}
END_TEST

static pthread_t logged_by;
static atomic_int logged;

static void logs(int level, const char *line, void *arg)
{
    (void)level;
    (void)arg;
    if (!strstr(line, "SUBSCRIBE"))
        return;
    logged_by = pthread_self();
    atomic_fetch_add(&logged, 1);
}

static bool has_logged(void *arg)
{
    (void)arg;
    return atomic_load(&logged) > 0;
}

/* The program's logger may take a mutex that the program holds while it locks: the
 * waiting thread must not log. */
START_TEST(what_is_refused_while_somebody_leads_is_logged_by_the_subscriber)
{
    char mailbox[64];
    snprintf(mailbox, sizeof(mailbox), "rlock:client:%s", client->uuid);
    rlock_setlogger(logs, NULL, LOG_ERR);
    atomic_store(&logged, 0);
    TEST_RULE(proxy, .on = TEST_ON_MESSAGE, .action = TEST_ANSWER, .contains = "rubbish",
              .text = "-NOPERM this user has no permissions\r\n");
    begins_to(run_pair);
    test_redis_do(redis, "PUBLISH", mailbox, "rubbish");
    ck_assert(test_wait_until(has_logged, NULL, SOON_MS));
    ck_assert(!pthread_equal(logged_by, waiting.thread));
    gets_n(1);
    ck_assert_uint_eq(stats_of(client).reconnects, 0);
    rlock_setlogger(NULL, NULL, 0);
}
END_TEST

/* ---- a leader that cannot go on */

static atomic_int in_handler; /* 1: the handler runs, 2: it may end */

static void stays(int signal)
{
    (void)signal;
    atomic_store(&in_handler, 1);
    while (atomic_load(&in_handler) != 2)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static bool handler_runs(void *arg)
{
    (void)arg;
    return atomic_load(&in_handler) == 1;
}

static int64_t used_ms(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* An epoll set reports a reset even for a socket that is switched off there. */
START_TEST(unseen_reset_causes_no_busy_loop)
{
    atomic_store(&in_handler, 0);
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = stays }, NULL);
    begins_to(run_pair);
    pthread_kill(waiting.thread, SIGUSR1);
    ck_assert(test_wait_until(handler_runs, NULL, SOON_MS));
    test_proxy_cut(proxy, 0, true);
    int64_t before = used_ms();
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    ck_assert_int_lt(used_ms() - before, 700);
    ck_assert(is_led(client));
    atomic_store(&in_handler, 2);
    ck_assert(test_wait_until(is_up_again, client, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
}
END_TEST

/* Stops a stoppable thread at one of two moments: when it already counts as the leader
 * and has not switched the socket off yet, or when it has switched the socket on and
 * still counts as the leader. */
enum { NOWHERE, ON_THE_WAY_IN, ON_THE_WAY_OUT };
static atomic_int to_stop, has_stopped;
static _Thread_local bool is_stoppable;

static void stop_at(int way)
{
    if (!is_stoppable || atomic_load(&to_stop) != way)
        return;
    atomic_store(&has_stopped, 1);
    while (atomic_load(&to_stop) == way)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
    if (op == EPOLL_CTL_MOD && event->events == 0)
        stop_at(ON_THE_WAY_IN);
    int rc = (int)syscall(SYS_epoll_ctl, set, op, fd, event);
    if (op == EPOLL_CTL_MOD && event->events != 0)
        stop_at(ON_THE_WAY_OUT);
    return rc;
}

static int run_stoppable(void *mutex)
{
    is_stoppable = true;
    return run_pair(mutex);
}

static bool is_stopped(void *arg)
{
    (void)arg;
    return atomic_load(&has_stopped) == 1;
}

START_TEST(message_during_the_handover_of_the_lead_causes_no_busy_loop)
{
    char mailbox[64];
    int way = _i ? ON_THE_WAY_OUT : ON_THE_WAY_IN;
    snprintf(mailbox, sizeof(mailbox), "rlock:client:%s", client->uuid);
    atomic_store(&has_stopped, 0);
    atomic_store(&to_stop, way);
    task_start(&waiting, run_stoppable, &n);
    if (way == ON_THE_WAY_OUT) {
        ck_assert(test_wait_until(is_led, client, SOON_MS));
        OK(rlock_mutex_unlock(&theirs));
    }
    ck_assert(test_wait_until(is_stopped, NULL, SOON_MS));
    test_redis_do(redis, "PUBLISH", mailbox, "rubbish");
    int64_t before = used_ms();
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    ck_assert_int_lt(used_ms() - before, 700);
    atomic_store(&to_stop, NOWHERE);
    if (way == ON_THE_WAY_IN)
        OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    ck_assert_uint_eq(stats_of(client).grants, 1);
    ck_assert(test_wait_until(is_lent, client, SOON_MS));
    subscriber_reads();
}
END_TEST

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
#define HAVE_BARE_FORK
/* _Fork() runs no handlers, so that the child keeps copies of the descriptors. An epoll
 * set reports a file for as long as any process has it open. */
START_TEST(connection_left_open_in_a_child_causes_no_busy_loop)
{
    OK(rlock_mutex_unlock(&theirs));
    if (!test_can_fork("connection_left_open_in_a_child_causes_no_busy_loop"))
        return;
    rlock_client_t *c =
        open_with(""); /* not by the proxy, of which the child has copies */
    ck_assert(test_wait_until(is_lent, c, SOON_MS));
    pid_t child = _Fork();
    if (child == 0) {
        alarm(60);
        for (;;)
            pause();
    }
    ck_assert_int_gt(child, 0);
    test_redis_do(redis, "CLIENT", "KILL", "TYPE", "pubsub");
    ck_assert(test_wait_until(is_up_again, c, SOON_MS));
    int64_t before = used_ms();
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    ck_assert_int_lt(used_ms() - before, 700);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    close_client(c);
}
END_TEST
#endif

/* The descriptors that remain are needed for connections: two events and two timers of
 * the threads, three sockets, and two more. */
START_TEST(descriptors_that_connections_need_are_not_taken_for_it)
{
    enum { NEEDED = 9, FDS_MAX = 256 };
    struct rlimit limit;
    struct timespec at = test_in_ms(CLOCK_REALTIME, test_ms(SOON_MS));
    int taken[FDS_MAX], count = 0;
    OK(rlock_mutex_unlock(&theirs));
    close_client(client);
    close_client(other);
    client = other = NULL;
    /* the proxy has descriptors for their connections, too, and would close them later */
    ck_assert(test_proxy_wait_open(proxy, 0, SOON_MS));
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = FDS_MAX;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    while (count < FDS_MAX && (taken[count] = dup(0)) >= 0)
        count++;
    ck_assert_int_gt(count, NEEDED);
    for (int i = 0; i < NEEDED; i++)
        close(taken[--count]);
    OK(rlock_client_open(&client, server.url, NULL));
    n = mutex_of(client, "n");
    OK(rlock_mutex_timedlock(&n, &at));
    ck_assert(test_wait_until(is_heard, client, SOON_MS));
    OK(rlock_mutex_unlock(&n));
    ck_assert(!is_lent(client));
    test_redis_do(redis, "HSET", "n", "8743c9c0-0795-4907-87fd-6c719a6b4586:52", "1");
    task_start(&waiting, times_out, &n);
    OK(task_join(&waiting));
    ck_assert_uint_eq(stats_of(client).connect_failures, 0);
    test_redis_do(redis, "DEL", "n");
    while (count > 0)
        close(taken[--count]);
}
END_TEST

static void returns(int signal)
{
    (void)signal;
    atomic_store(&in_handler, 1);
}

/* poll() refuses more descriptors than the limit allows. */
START_TEST(thread_that_cannot_poll_waits_to_be_woken)
{
    struct rlimit before, lower;
    atomic_store(&in_handler, 0);
    sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = returns }, NULL);
    close_client(client);
    client = open_with(PATIENT); /* not through the proxy, which could not poll either */
    n = mutex_of(client, "n");
    begins_to(run_pair);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    lower = before;
    lower.rlim_cur = 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &lower), 0);
    pthread_kill(waiting.thread, SIGUSR1); /* so that the thread polls again */
    ck_assert(test_wait_until(handler_runs, NULL, SOON_MS));
    OK(rlock_mutex_unlock(&theirs));
    ck_assert(task_ends(&waiting, SOON_MS));
    OK(task_join(&waiting));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_eq(stats_of(client).grants, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("leader");
    TCase *tc = tcase_create("leads");
    tcase_add_unchecked_fixture(tc, fixture_start, fixture_stop);
    tcase_add_checked_fixture(tc, set_up, fixture_close_proxied);
    tcase_add_test(tc, waiting_thread_reads_its_own_grant);
    tcase_add_loop_test(tc, waiting_readers_and_writers_read_their_own_grants, 0, 2);
    tcase_add_test(tc, waiting_thread_reads_while_a_callback_blocks_the_subscriber);
    tcase_add_test(tc, callback_that_waits_reads_what_it_waits_for);
    tcase_add_loop_test(tc, subscriber_reads_on_when_nobody_leads, 0, ENDS);
    tcase_add_test(tc, led_connection_is_pinged);
    tcase_add_test(tc, channels_are_joined_while_somebody_leads);
    tcase_add_test(tc, subscription_that_is_not_where_the_locks_are_is_left_while_led);
    tcase_add_loop_test(tc, broken_connection_of_the_leader_is_opened_again, 0, BREAKS);
    tcase_add_test(tc, what_is_refused_while_somebody_leads_is_logged_by_the_subscriber);
    tcase_add_test(tc, unseen_reset_causes_no_busy_loop);
    tcase_add_loop_test(tc, message_during_the_handover_of_the_lead_causes_no_busy_loop,
                        0, 2);
#ifdef HAVE_BARE_FORK
    tcase_add_test(tc, connection_left_open_in_a_child_causes_no_busy_loop);
#endif
    tcase_add_test(tc, descriptors_that_connections_need_are_not_taken_for_it);
    tcase_add_test(tc, thread_that_cannot_poll_waits_to_be_woken);
    suite_add_tcase(suite, tc);
    return test_run_suite(suite);
}
