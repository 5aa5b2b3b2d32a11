/* SPDX-License-Identifier: Apache-2.0 */
/* Locks over TLS: they do what they do over any connection. Also what is special to TLS:
 * half records, tickets, sessions, forks, the end of the process. (Wrong set-ups:
 * test_tls_errors.) */
/* program: claims=P1,P3,P4,P5 */
#if TEST_TLS

#include "client/client.h"
#include "tlsscene.h"

#include "base/clock.h"
#include "findings.h"
#include "forked.h"
#include "net/conn_impl.h"
#include "worker.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum { SOON_MS = 10000, MANY = 300, STORM = 12 };
/* Refreshes and pings are far away: only messages bring news. */
#define PATIENT "presence=30000&commandtimeout=30000&connecttimeout=30000"

static struct between *between;

static void set_up(void)
{
    fixture_open();
}

static void tear_down(void)
{
    fixture_close();
    if (between)
        between_stop(between);
    between = NULL;
}

/* ---- locks */

/* rule: P1 */
START_TEST(lock_is_taken_and_given_back)
{
    other = tls_client("");
    rlock_mutex_t m = fenced_mutex(other, "n");

    for (int i = 0; i < 50; i++) {
        OK(rlock_mutex_lock(&m));
        ck_assert_uint_ne(token_of(&m), 0);
        ck_assert(test_redis_exists(redis, "n"));
        OK(rlock_mutex_unlock(&m));
    }
    ck_assert(!test_redis_exists(redis, "n"));
    /* one connection each for the caller and the library's two threads */
    ck_assert_uint_eq(stats_of(other).unknown_outcomes, 0);
    ck_assert_uint_le(stats_of(other).connects, 3);
}
END_TEST

static void hand_over(rlock_client_t *holder, rlock_client_t *waiter)
{
    rlock_mutex_t held = mutex_of(holder, "n"), wanted = mutex_of(waiter, "n");
    struct task task;
    unsigned long grants = stats_of(waiter).grants;

    OK(rlock_mutex_lock(&held));
    task_start(&task, run_pair, &wanted);
    ck_assert(wait_waiters(waiter, 1));
    ck_assert(wait_size("rlock:{n}:queue", 1));
    OK(rlock_mutex_unlock(&held));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
    ck_assert_uint_eq(stats_of(waiter).grants, grants + 1);
}

static bool is_led(void *c)
{
    struct rlk_registry *reg = &((rlock_client_t *)c)->registry;
    rlk_sync_mutex_lock(&reg->mu);
    bool led = reg->leader != NULL;
    rlk_sync_mutex_unlock(&reg->mu);
    return led;
}

/* rule: P3 */
START_TEST(waiter_reads_its_grant_from_the_connection_that_it_leads)
{
    other = tls_client(PATIENT);
    rlock_mutex_t held = mutex_of(client, "n"), wanted = mutex_of(other, "n");
    struct task task;

    for (int i = 0; i < 20; i++)
        hand_over(client, other);
    OK(rlock_mutex_lock(&held));
    task_start(&task, run_pair, &wanted);
    ck_assert(test_wait_until(is_led, other, SOON_MS));
    OK(rlock_mutex_unlock(&held));
    ck_assert(task_ends(&task, SOON_MS));
    OK(task_join(&task));
}
END_TEST

/* rule: P3 */
START_TEST(bytes_that_come_one_at_a_time_are_half_records_until_the_last)
{
    between = between_start(BETWEEN_DRIPS);
    other = open_at(tls_url("localhost", between_port(between), PATIENT), "");
    rlock_mutex_t m = mutex_of(other, "m");

    for (int i = 0; i < 10; i++) {
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        hand_over(client, other);
    }
    ck_assert_uint_eq(stats_of(other).unknown_outcomes, 0);
    ck_assert_uint_eq(stats_of(other).reconnects, 0);
}
END_TEST

static int count_one(const rlock_info_t *info, void *arg)
{
    (void)info;
    ++*(int *)arg;
    return 0;
}

struct renewed {
    rlock_client_t *client;
    unsigned long count;
};

static bool has_renewed(void *arg)
{
    const struct renewed *r = arg;
    return stats_of(r->client).renewals >= r->count;
}

/* rule: P3 */
START_TEST(hundreds_of_renewals_in_one_batch_are_many_records)
{
    static rlock_mutex_t m[MANY];
    char name[16], parameters[32];
    int listed = 0;

    snprintf(parameters, sizeof(parameters), "lease=%ld", test_ms(3000));
    other = tls_client(parameters);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many%d", i);
        m[i] = mutex_of(other, name);
        OK(rlock_mutex_lock(&m[i]));
    }
    struct renewed r = { other, 2 * MANY };
    ck_assert(test_wait_until(has_renewed, &r, 20000));
    OK(rlock_list(other, "many*", count_one, &listed));
    ck_assert_int_eq(listed, MANY);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(state_of(&m[i]), RLOCK_SAFE);
        OK(rlock_mutex_unlock(&m[i]));
    }
    ck_assert_uint_eq(stats_of(other).losses, 0);
    ck_assert_uint_eq(stats_of(other).reconnects, 0);
}
END_TEST

static int run_resume(void *arg)
{
    (void)arg;
    test_pause_ms(test_ms(100));
    test_server_resume(&server);
    return 0;
}

/* A request of more bytes than the socket takes at a time. */
/* rule: P3 */
START_TEST(request_of_a_megabyte_is_given_again_with_the_same_bytes)
{
    enum { SIZE = 1 << 20 };
    other = tls_client(PATIENT);
    char *big = malloc(SIZE + 1);
    struct rlk_conn *conn;
    struct rlk_reply *reply = NULL;
    int64_t until = rlk_clock_boot() + test_ms(SOON_MS) * RLK_NS_PER_MS, sent;
    size_t len;

    for (int i = 0; i < SIZE; i++)
        big[i] = (char)('a' + i % 23);
    big[SIZE] = '\0';
    const char *const argv[] = { "ECHO", big };
    const size_t lens[] = { 4, SIZE };
    OK(rlk_pool_get(other->route.target.pool, until, &conn));
    /* the paused server reads nothing, so the socket's buffers fill */
    test_server_pause(&server);
    struct task wakes;
    task_start(&wakes, run_resume, NULL);
    ck_assert_int_eq(rlk_conn_call(conn, 2, argv, lens, until, &reply, &sent),
                     RLK_FAIL_NONE);
    task_join(&wakes);
    const char *text = rlk_reply_string(reply, &len);
    ck_assert_uint_eq(len, SIZE);
    ck_assert(memcmp(text, big, SIZE) == 0);
    rlk_reply_free(reply);
    rlk_pool_put(other->route.target.pool, conn);
    free(big);
}
END_TEST

enum { STACK_SIZE = 64 << 10 };

static void *open_and_lock(void *url)
{
    rlock_client_t *c = NULL;

    OK(tls_open(&c, url));
    rlock_mutex_t m = mutex_of(c, "small");
    OK(run_pair(&m));
    OK(rlock_client_close(c));
    return NULL;
}

START_TEST(calls_work_on_64_KiB_of_stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    char url[TLS_URL_MAX];

    if (test_ms(1) > 1) {
        puts("skipped: calls_work_on_64_KiB_of_stack: this tool needs more");
        return;
    }
    snprintf(url, sizeof(url), "%s", tls_url("localhost", tls_port, ""));
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, STACK_SIZE), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, open_and_lock, url), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
}
END_TEST

/* rule: P1 */
START_TEST(handshake_that_stops_ends_at_the_deadline)
{
    static const enum between_way ways[] = { BETWEEN_STOPS, BETWEEN_SILENT };
    rlock_client_t *c = NULL;
    char parameters[32];

    snprintf(parameters, sizeof(parameters), "commandtimeout=%ld", test_ms(300));
    between = between_start(ways[_i]);
    OK(tls_open(&c, tls_url("localhost", between_port(between), parameters)));
    int64_t start = test_now_ms();
    EXPECT(rlock_client_ping(c), ENOTCONN);
    ck_assert_ptr_nonnull(strstr(rlock_errmsg(), "the TLS handshake in time"));
    ck_assert_int_ge(test_now_ms() - start, test_ms(250));
    ck_assert_int_le(test_now_ms() - start, test_ms(2000));
    OK(rlock_client_close(c));
}
END_TEST

/* ---- tickets and sessions */

/* rule: P3 */
START_TEST(ticket_or_key_update_does_not_drop_an_idle_connection)
{
    between = between_start(BETWEEN_TLS);
    other = open_at(tls_url("localhost", between_port(between), PATIENT), "");
    rlock_mutex_t m = mutex_of(other, "m");

    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    unsigned long connects = stats_of(other).connects;
    for (int i = 0; i < 5; i++) {
        between_ticket(between);
        between_update(between);
        test_pause_ms(10); /* long enough that the pool checks the idle connection */
        OK(rlock_mutex_lock(&m));
        OK(rlock_mutex_unlock(&m));
        hand_over(client, other);
    }
    ck_assert_uint_eq(stats_of(other).connects, connects);
    ck_assert_uint_eq(stats_of(other).reconnects, 0);
}
END_TEST

static bool is_up_again(void *c)
{
    return stats_of(c).reconnects > 0 &&
           atomic_load(&((rlock_client_t *)c)->route.target.subscription.subscribed);
}

/* Opens STORM connections at a time, and puts them back. */
static void open_many(rlock_client_t *c, unsigned *ret_resumed)
{
    struct rlk_conn *conns[STORM];
    struct rlk_tls_facts facts;
    int64_t until = rlk_clock_boot() + test_ms(SOON_MS) * RLK_NS_PER_MS;

    *ret_resumed = 0;
    for (int i = 0; i < STORM; i++)
        OK(rlk_pool_get(c->route.target.pool, until, &conns[i]));
    for (int i = 0; i < STORM; i++) {
        ck_assert(rlk_tls_look(conns[i]->tls, &facts));
        *ret_resumed += facts.resumed;
        rlk_pool_put(c->route.target.pool, conns[i]);
    }
}

/* rule: P4 */
START_TEST(reconnects_after_a_storm_are_resumed)
{
    static const char *const versions[] = { "TLSv1.2", "TLSv1.3" };
    const char *const args[] = { "--tls-protocols", versions[_i], NULL };
    unsigned resumed;

    close_client(client);
    client = NULL;
    test_redis_close(redis);
    tls_restart(args);
    redis = test_redis_connect(server.path);
    other = tls_client("");
    open_many(other, &resumed);
    for (int i = 0; i < 3; i++) {
        test_redis_kill_clients(redis);
        test_redis_do(redis, "CLIENT", "KILL", "TYPE", "pubsub");
        ck_assert(test_wait_until(is_up_again, other, SOON_MS));
        rlk_pool_drain(other->route.target.pool);
        open_many(other, &resumed);
        ck_assert_uint_eq(resumed, STORM);
    }
    tls_restart((const char *const[]){ NULL });
}
END_TEST

/* rule: P4 */
START_TEST(session_of_a_connection_that_was_closed_is_resumed)
{
    static const enum between_way ways[] = { BETWEEN_TLS, BETWEEN_TLS12 };
    between = between_start(ways[_i]);
    other = open_at(tls_url("localhost", between_port(between), PATIENT), "");

    OK(rlock_client_ping(other));
    for (int i = 0; i < 5; i++) {
        unsigned resumed = between_resumed(between);
        rlk_pool_drain(other->route.target.pool);
        OK(rlock_client_ping(other));
        ck_assert_uint_eq(between_resumed(between), resumed + 1);
    }
}
END_TEST

/* Whether a connection of this client to the server of that name resumed a session. */
static bool resumes_at(rlock_client_t *c, const char *host)
{
    struct rlk_endpoint endpoint = c->config.endpoint;
    struct rlk_conn_options options = { .endpoint = &endpoint, .reply_limit = 1 << 16 };
    struct rlk_tls_facts facts = { .resumed = false };
    int64_t until = rlk_clock_boot() + test_ms(SOON_MS) * RLK_NS_PER_MS;
    char name[32];
    struct rlk_conn *conn;

    snprintf(name, sizeof(name), "%s", host);
    endpoint.host = name;
    OK(rlk_conn_start(&conn, &options, until));
    ck_assert_int_eq(rlk_conn_wait_ready(conn, until), RLK_CONN_READY);
    ck_assert(rlk_tls_look(conn->tls, &facts));
    rlk_conn_free(conn);
    return facts.resumed;
}

/* rule: P2 */
START_TEST(session_is_not_resumed_with_another_server)
{
    other = tls_client("");
    OK(rlock_client_ping(other));
    ck_assert(!resumes_at(other, "127.0.0.1"));
    ck_assert(resumes_at(other, "127.0.0.1"));
    ck_assert(resumes_at(other, "localhost"));
}
END_TEST

/* rule: P4 */
START_TEST(server_that_has_forgotten_its_sessions_gets_a_whole_handshake)
{
    unsigned resumed;

    other = tls_client("");
    open_many(other, &resumed);
    close_client(client);
    client = NULL;
    test_redis_close(redis);
    test_server_restart(&server);
    redis = test_redis_connect(server.path);
    rlk_pool_drain(other->route.target.pool);
    open_many(other, &resumed);
    /* the first whole handshake brings tickets for the other connections */
    ck_assert_uint_ge(resumed, STORM - 1);
}
END_TEST

/* rule: P4 */
START_TEST(certificates_that_were_renewed_are_used_by_the_next_connection)
{
    char parameters[TLS_URL_MAX];
    rlock_client_t *c = NULL;

    test_authority_issue("other", "mine", 30, "");
    const char *const args[] = { "--tls-auth-clients", "yes", NULL };
    close_client(client);
    client = NULL;
    test_redis_close(redis);
    tls_restart(args);
    redis = test_redis_connect(server.path);
    snprintf(parameters, sizeof(parameters), "certfile=%s&keyfile=%s",
             test_authority_path("mine.crt"), test_authority_path("mine.key"));
    OK(tls_open(&c, tls_url("localhost", tls_port, parameters)));
    EXPECT(rlock_client_ping(c), EACCES);
    test_authority_issue("ca", "mine", 30, "");
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
    tls_restart((const char *const[]){ NULL });
}
END_TEST

/* Whether the server takes the user from the certificate (Valkey 9, Redis 8.6). */
static bool has_certificate_users(void)
{
    const redisReply *reply =
        test_redis_try(redis, "CONFIG", "GET", "tls-auth-clients-user");

    return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2;
}

/* rule: P2 */
START_TEST(certificate_may_be_the_user)
{
    char parameters[TLS_URL_MAX];
    struct findings f;
    rlock_client_t *c = NULL;
    bool has = has_certificate_users();

    if (!has)
        puts("skipped: certificate_may_be_the_user: the server has no such users");
    close_client(client);
    client = NULL;
    test_redis_close(redis);
    tls_restart(has ? TEST_ARGV("--tls-auth-clients", "yes", "--tls-auth-clients-user",
                                "CN", "--user", "client", "on", "nopass", "~*", "&*",
                                "+@all", "-flushall")
                    : TEST_ARGV("--tls-auth-clients", "yes"));
    redis = test_redis_connect(server.path);
    test_redis_do(redis, "ACL", "SETUSER", "default", has ? "-evalsha" : "+evalsha");
    snprintf(parameters, sizeof(parameters), "certfile=%s&keyfile=%s",
             test_authority_path("client.crt"), test_authority_path("client.key"));
    OK(tls_open(&c, tls_url("localhost", tls_port, parameters)));
    rlock_mutex_t m = mutex_of(c, "n");
    OK(rlock_mutex_lock(&m));
    OK(rlock_mutex_unlock(&m));
    findings_of(&f, c);
    FOUND(&f, LOG_INFO, "acl",
          has ? "The user \"client\" may run all" : "The user \"default\" may run all");
    OK(rlock_client_close(c));
    tls_restart((const char *const[]){ NULL });
}
END_TEST

/* ---- forks */

static rlock_mutex_t held;

static int take_another(struct forked_report *report, void *arg)
{
    rlock_mutex_t m;
    rlock_mutexattr_t attr;

    (void)report;
    MUST(rlock_mutex_unlock(&held) == EPERM);
    MUST(rlock_mutex_trylock(&held) == EBUSY);
    MUST(rlock_mutexattr_init(&attr) == 0);
    MUST(rlock_mutexattr_setclient(&attr, arg) == 0);
    MUST(rlock_mutex_init(&m, &attr, "child's") == 0);
    MUST(rlock_mutex_lock(&m) == 0);
    MUST(rlock_mutex_unlock(&m) == 0);
    return 0;
}

static int use_nothing(struct forked_report *report, void *arg)
{
    (void)report;
    (void)arg;
    return 0;
}

static atomic_bool over;

static int run_pairs(void *mutex)
{
    int rc = 0;
    while (rc == 0 && !atomic_load(&over))
        rc = run_pair(mutex);
    return rc;
}

/* rule: P5 */
START_TEST(child_of_a_fork_sends_nothing_on_its_parents_connections)
{
    NEEDS_FORK("child_of_a_fork_sends_nothing_on_its_parents_connections");
    struct task task;

    other = tls_client("");
    held = mutex_of(other, "held");
    rlock_mutex_t m = mutex_of(other, "m");
    OK(rlock_mutex_lock(&held));
    atomic_store(&over, false);
    task_start(&task, run_pairs, &m);
    for (int i = 0; i < 10; i++) {
        CHILD_IS_FINE(take_another, other);
        if (!forked_can_exit("a child that exits"))
            continue;
        struct forked f;
        forked_start(&f, use_nothing, NULL, FORKED_EXIT);
        ck_assert(forked_ends(&f, SOON_MS));
    }
    atomic_store(&over, true);
    OK(task_join(&task));
    ck_assert_int_eq(state_of(&held), RLOCK_SAFE);
    OK(rlock_mutex_unlock(&held));
    ck_assert_uint_eq(stats_of(other).unknown_outcomes, 0);
    ck_assert_uint_eq(stats_of(other).reconnects, 0);
}
END_TEST

/* ---- the end of the process */

static const char *const ends[][4] = {
    { "ok", "ok", "lock n", "quit" },
    { "ok", "ok", "lock n", "return" },
    { "openssl", "ok", "lock n", "quit" },
    { "ok", "openssl", "lock n", "quit" },
    { "ok", "atexit unlock n", "lock n", "quit" },
    { "atexit unlock n", "ok", "lock n", "quit" },
    { "atexit lock more", "ok", "lock n", "quit" }, /* no server answers any more */
    { "ok", "linger 50", "lock n", "quit" },
    { "ok", "ok", "on t lock n", "on t leave exit" },
};
enum { ENDS = sizeof(ends) / sizeof(ends[0]) };

/* rule: P5 */
START_TEST(exit_releases_before_OpenSSL_ends)
{
    struct worker w;
    char command[TLS_URL_MAX + 64];

    worker_start(&w, NULL);
    if (strncmp(ends[_i][0], "atexit", 6) != 0 && strcmp(ends[_i][0], "ok") != 0)
        ck_assert(worker_says(&w, ends[_i][0], "ok"));
    if (strncmp(ends[_i][0], "atexit", 6) == 0)
        ck_assert(worker_says(&w, ends[_i][0], "ok"));
    snprintf(command, sizeof(command), "open %s lease=600000",
             tls_url("localhost", tls_port, ""));
    ck_assert(worker_says(&w, command, "ok"));
    ck_assert(worker_says(&w, "init n n", "ok"));
    ck_assert(worker_says(&w, "init more more", "ok"));
    if (strcmp(ends[_i][1], "ok") != 0)
        ck_assert(worker_says(&w, ends[_i][1], "ok"));
    ck_assert(worker_says(&w, ends[_i][2], "ok"));
    /* another thread takes locks until the process ends */
    ck_assert(worker_says(&w, "async other hammer more 1000000000 /dev/null", "ok"));
    int64_t start = test_now_ms();
    worker_send(&w, ends[_i][3]);
    worker_news(&w, "nothing that it says", SOON_MS);
    int status = test_program_wait(&w.program, SOON_MS);
    ck_assert_msg(status == 0, "wait status %d", status);
    ck_assert_int_le(test_now_ms() - start, test_ms(3000));
    ck_assert(!test_redis_exists(redis, "n"));
    worker_end(&w);
}
END_TEST

static const char *const loads[] = { "nothing", "open", "held", "threads" };

/* rule: P5 */
START_TEST(library_may_be_loaded_and_unloaded)
{
    char library[PATH_MAX], loader[PATH_MAX], line[256];
    struct test_program p;

    test_build_path(library, sizeof(library), ".libs/librlock.so");
    test_build_path(loader, sizeof(loader), "tests/loader");
    if (access(library, R_OK) != 0)
        return;
    const char *const argv[] = { loader, library,   tls_url("localhost", tls_port, ""),
                                 "20",   loads[_i], NULL };
    test_program_start(&p, argv, NULL);
    ck_assert(test_program_read(&p, line, sizeof(line), 60000));
    ck_assert_str_eq(line, "ok");
    int status = test_program_wait(&p, SOON_MS);
    ck_assert_msg(status == 0, "wait status %d", status);
    ck_assert(!test_redis_exists(redis, "held0"));
    test_program_end(&p);
}
END_TEST

static TCase *add_case(Suite *suite, const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_unchecked_fixture(tc, tls_start, tls_stop);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    suite_add_tcase(suite, tc);
    return tc;
}

int main(void)
{
    if (!tls_is_built())
        return 77;
    Suite *suite = suite_create("tls");
    TCase *locks = add_case(suite, "locks");
    tcase_add_test(locks, lock_is_taken_and_given_back);
    tcase_add_test(locks, waiter_reads_its_grant_from_the_connection_that_it_leads);
    tcase_add_test(locks, bytes_that_come_one_at_a_time_are_half_records_until_the_last);
    tcase_add_test(locks, hundreds_of_renewals_in_one_batch_are_many_records);
    tcase_add_test(locks, request_of_a_megabyte_is_given_again_with_the_same_bytes);
    tcase_add_test(locks, calls_work_on_64_KiB_of_stack);
    tcase_add_loop_test(locks, handshake_that_stops_ends_at_the_deadline, 0, 2);
    TCase *sessions = add_case(suite, "sessions");
    tcase_add_test(sessions, ticket_or_key_update_does_not_drop_an_idle_connection);
    tcase_add_loop_test(sessions, reconnects_after_a_storm_are_resumed, 0, 2);
    tcase_add_loop_test(sessions, session_of_a_connection_that_was_closed_is_resumed, 0,
                        2);
    tcase_add_test(sessions, session_is_not_resumed_with_another_server);
    tcase_add_test(sessions,
                   server_that_has_forgotten_its_sessions_gets_a_whole_handshake);
    tcase_add_test(sessions,
                   certificates_that_were_renewed_are_used_by_the_next_connection);
    tcase_add_test(sessions, certificate_may_be_the_user);
    TCase *forks = add_case(suite, "forks");
    tcase_add_test(forks, child_of_a_fork_sends_nothing_on_its_parents_connections);
    TCase *end = add_case(suite, "end");
    tcase_add_loop_test(end, exit_releases_before_OpenSSL_ends, 0, ENDS);
    TCase *loaded = add_case(suite, "dlopen");
    tcase_add_loop_test(loaded, library_may_be_loaded_and_unloaded, 0, 4);
    return test_run_suite(suite);
}

#else /* configure --without-tls */

#include <stdio.h>

int main(void)
{
    puts("skipped: the library was built without TLS");
    return 77;
}

#endif
