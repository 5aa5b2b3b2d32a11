/* SPDX-License-Identifier: Apache-2.0 */
/* program: tier=unit */
/*
 * Connections to a peer that misbehaves in ways in which no real server does. The peer is
 * a thread of the test: it accepts connections one after the other and runs a serve
 * function on each. It ends at peer_stop, which also makes all its sends and receives
 * fail. This file's getaddrinfo replaces the C library's and resolves names.
 */
#include "base/deadline.h"
#include "net/conn.h"
#include "net/resolve.h"
#include "suite.h"
#include "wait.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define CANARY "canary"
#define TIME_REPLY "*2\r\n$10\r\n1700000000\r\n$6\r\n250000\r\n"
#define TIME_US INT64_C(1700000000250000)

enum { REPLY_LIMIT = 64 * 1024, SEEN_SIZE = 4096 };

/* ---- the peer */

struct peer {
    int listener;
    pthread_t thread;
    void (*serve)(int fd, struct peer *peer);
    const char *text; /* for serve */
    uint16_t port;
    char path[64];
    char dir[32];
    atomic_bool stopping;
    atomic_bool go; /* for serve */
    atomic_int requests;
    pthread_mutex_t mu; /* protects what follows */
    int fd;             /* of the served connection, else -1 */
    char seen[SEEN_SIZE];
    size_t seen_len;
};

static struct peer peer;

static bool peer_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool peer_say(int fd, const char *text)
{
    return peer_send(fd, text, strlen(text));
}

/* Reads until the bytes read so far end in `end`. */
static bool peer_expect(int fd, const char *end)
{
    size_t end_len = strlen(end);
    char tail[64] = { 0 };
    size_t len = 0;
    char c;
    while (recv(fd, &c, 1, 0) == 1) {
        if (len == sizeof(tail)) {
            memmove(tail, tail + 1, sizeof(tail) - 1);
            len--;
        }
        tail[len++] = c;
        pthread_mutex_lock(&peer.mu);
        if (peer.seen_len + 1 < SEEN_SIZE)
            peer.seen[peer.seen_len++] = c;
        pthread_mutex_unlock(&peer.mu);
        if (len >= end_len && memcmp(tail + len - end_len, end, end_len) == 0)
            return true;
    }
    return false;
}

static bool peer_greet(int fd)
{
    return peer_expect(fd, "TIME\r\n") && peer_say(fd, TIME_REPLY);
}

/* Reads one request of rlk_conn_call below. */
static bool peer_request(int fd)
{
    bool ok = peer_expect(fd, "PING\r\n");
    if (ok)
        atomic_fetch_add(&peer.requests, 1);
    return ok;
}

/* Reads until the other side closes or the test ends. */
static void peer_linger(int fd)
{
    char buf[256];
    while (recv(fd, buf, sizeof(buf), 0) > 0)
        continue;
}

static void peer_set_fd(int fd)
{
    pthread_mutex_lock(&peer.mu);
    peer.fd = fd;
    pthread_mutex_unlock(&peer.mu);
}

static void *peer_run(void *arg)
{
    struct peer *p = arg;
    while (!atomic_load(&p->stopping)) {
        int fd = accept(p->listener, NULL, NULL);
        if (fd < 0)
            break;
        peer_set_fd(fd);
        if (!atomic_load(&p->stopping))
            p->serve(fd, p);
        peer_set_fd(-1);
        close(fd);
    }
    return NULL;
}

static void peer_start_on(int listener, void (*serve)(int, struct peer *))
{
    peer.listener = listener;
    peer.serve = serve;
    peer.fd = -1;
    ck_assert_int_eq(listen(listener, 16), 0);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    ck_assert_int_eq(pthread_create(&peer.thread, NULL, peer_run, &peer), 0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* A socket that is bound to a free port. It does not listen, so that connections are
 * refused. */
static int bind_tcp(uint16_t *ret_port)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    *ret_port = ntohs(in.sin_port);
    return fd;
}

static int bind_unix(void)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    snprintf(peer.dir, sizeof(peer.dir), "/tmp/rlkXXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(peer.dir));
    snprintf(peer.path, sizeof(peer.path), "%s/s", peer.dir);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", peer.path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    return fd;
}

static void peer_start(void (*serve)(int, struct peer *))
{
    uint16_t port;
    int listener = bind_tcp(&port);
    peer.port = port;
    peer_start_on(listener, serve);
}

static void peer_start_unix(void (*serve)(int, struct peer *))
{
    peer_start_on(bind_unix(), serve);
}

static void peer_stop(void)
{
    if (peer.thread) {
        atomic_store(&peer.stopping, true);
        shutdown(peer.listener, SHUT_RDWR);
        pthread_mutex_lock(&peer.mu);
        if (peer.fd >= 0)
            shutdown(peer.fd, SHUT_RDWR);
        pthread_mutex_unlock(&peer.mu);
        pthread_join(peer.thread, NULL);
        close(peer.listener);
    }
    if (peer.path[0]) {
        unlink(peer.path);
        rmdir(peer.dir);
    }
}

/* ---- names */

static struct {
    uint16_t ports[2];   /* of the addresses of "two.test" */
    atomic_bool release; /* "slow.test" answers */
    atomic_int lookups;
    atomic_int answers;
} names;

/* An element, followed by its address. */
struct fake_info {
    struct addrinfo info;
    struct sockaddr_in in;
};

static struct addrinfo *new_info(const char *numeric, uint16_t port,
                                 struct addrinfo *next)
{
    struct fake_info *f = calloc(1, sizeof(*f));
    f->in.sin_family = AF_INET;
    f->in.sin_port = htons(port);
    inet_pton(AF_INET, numeric, &f->in.sin_addr);
    f->info.ai_family = AF_INET;
    f->info.ai_socktype = SOCK_STREAM;
    f->info.ai_addr = (struct sockaddr *)&f->in;
    f->info.ai_addrlen = sizeof(f->in);
    f->info.ai_next = next;
    return &f->info;
}

int getaddrinfo(const char *restrict host, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict ret_list)
{
    struct in_addr any;
    uint16_t port = (uint16_t)atoi(service);
    if (inet_pton(AF_INET, host, &any) == 1) {
        *ret_list = new_info(host, port, NULL);
        return 0;
    }
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    atomic_fetch_add(&names.lookups, 1);
    int rc = EAI_NONAME;
    if (strcmp(host, "slow.test") == 0) {
        for (int i = 0; i < 10000 && !atomic_load(&names.release); i++)
            test_pause_ms(1);
    } else if (strcmp(host, "two.test") == 0) {
        *ret_list = new_info("127.0.0.1", names.ports[0],
                             new_info("127.0.0.1", names.ports[1], NULL));
        rc = 0;
    }
    atomic_fetch_add(&names.answers, 1);
    return rc;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

/* ---- the connection */

static char localhost[] = "127.0.0.1";
static struct rlk_endpoint endpoint;
static struct rlk_conn_options options;
static struct rlk_conn *conn;
static struct rlk_reply *reply;
static int64_t sent;

static volatile sig_atomic_t pipe_signals, alarm_signals;

static void on_signal(int signal)
{
    if (signal == SIGPIPE)
        pipe_signals = 1;
    else
        alarm_signals++;
}

static void set_up(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    memset(&peer, 0, sizeof(peer));
    pthread_mutex_init(&peer.mu, NULL);
    endpoint = (struct rlk_endpoint){ .db = 0 };
    options = (struct rlk_conn_options){ .endpoint = &endpoint,
                                         .keepalive_ms = 10000,
                                         .reply_limit = REPLY_LIMIT };
    conn = NULL;
    reply = NULL;
    pipe_signals = alarm_signals = 0;
}

static void tear_down(void)
{
    if (reply)
        rlk_reply_free(reply);
    rlk_conn_free(conn);
    atomic_store(&names.release, true);
    peer_stop();
    ck_assert_int_eq(pipe_signals, 0);
}

static int64_t in_ms(long ms)
{
    return rlk_clock_boot() + ms * RLK_NS_PER_MS;
}

static enum rlk_conn_state open_within(long ms)
{
    if (peer.path[0]) {
        endpoint.path = peer.path;
        snprintf(endpoint.label, sizeof(endpoint.label), "%s", peer.path);
    } else {
        if (!endpoint.host)
            endpoint.host = localhost;
        if (!endpoint.port)
            endpoint.port = peer.port;
        snprintf(endpoint.label, sizeof(endpoint.label), "%s:%u", endpoint.host,
                 endpoint.port);
    }
    int64_t deadline = in_ms(ms);
    ck_assert_int_eq(rlk_conn_start(&conn, &options, deadline), 0);
    return rlk_conn_wait_ready(conn, deadline);
}

static void open_ready(void)
{
    ck_assert_msg(open_within(test_ms(5000)) == RLK_CONN_READY, "%s",
                  rlk_conn_error_text(conn));
}

static enum rlk_failure ping_until(int64_t deadline)
{
    const char *const argv[] = { "PING" };
    const size_t argv_len[] = { 4 };
    return rlk_conn_call(conn, 1, argv, argv_len, deadline, &reply, &sent);
}

static enum rlk_failure ping_within(long ms)
{
    return ping_until(in_ms(ms));
}

static void assert_dead(enum rlk_failure why, int code, const char *text)
{
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_DEAD);
    ck_assert_msg(rlk_conn_failure(conn) == why, "%d: %s", (int)rlk_conn_failure(conn),
                  rlk_conn_error_text(conn));
    ck_assert_int_eq(rlk_conn_error_code(conn), code);
    ck_assert_msg(strstr(rlk_conn_error_text(conn), text), "%s",
                  rlk_conn_error_text(conn));
    ck_assert_ptr_null(strstr(rlk_conn_error_text(conn), CANARY));
    ck_assert_int_eq(rlk_conn_fd(conn), -1);
}

/* ---- opening */

static void serve_quiet(int fd, struct peer *p)
{
    (void)p;
    if (peer_greet(fd))
        peer_linger(fd);
}

static void serve_text(int fd, struct peer *p)
{
    if (peer_expect(fd, "TIME\r\n") && peer_say(fd, p->text))
        peer_linger(fd);
}

/* Closes without reading, so that the close is a reset. */
static void serve_unasked(int fd, struct peer *p)
{
    peer_say(fd, p->text);
}

static void serve_silence(int fd, struct peer *p)
{
    (void)p;
    peer_linger(fd);
}

static void serve_end(int fd, struct peer *p)
{
    (void)p;
    peer_expect(fd, "TIME\r\n");
}

START_TEST(ready_has_the_clock_offset)
{
    peer_start(serve_quiet);
    int64_t before = rlk_clock_boot() / 1000;
    open_ready();
    int64_t after = rlk_clock_boot() / 1000;
    ck_assert_int_le(rlk_conn_clock_offset_us(conn), TIME_US - before);
    ck_assert_int_ge(rlk_conn_clock_offset_us(conn), TIME_US - after);
    ck_assert_int_eq(rlk_conn_failure(conn), RLK_FAIL_NONE);
    ck_assert_str_eq(rlk_conn_error_text(conn), "");
}
END_TEST

START_TEST(forgotten_time_leaves_the_clock_offset_before_it)
{
    peer_start(serve_quiet);
    open_ready();
    int64_t offset = rlk_conn_clock_offset_us(conn), left_at = rlk_clock_boot();
    rlk_conn_note_time(conn, TIME_US + 5000000, left_at);
    ck_assert_int_eq(rlk_conn_clock_offset_us(conn), TIME_US + 5000000 - left_at / 1000);
    rlk_conn_forget_time(conn);
    ck_assert_int_eq(rlk_conn_clock_offset_us(conn), offset);
}
END_TEST

START_TEST(socket_is_close_on_exec)
{
    peer_start(serve_quiet);
    open_ready();
    ck_assert_int_ne(fcntl(rlk_conn_fd(conn), F_GETFD) & FD_CLOEXEC, 0);
}
END_TEST

static int option_of(int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    ck_assert_int_eq(getsockopt(rlk_conn_fd(conn), level, name, &value, &len), 0);
    return value;
}

/* By these options the kernel finds a vanished peer; their times follow keepalive_ms. */
START_TEST(socket_gives_up_a_peer_that_is_silent_for_its_timeout)
{
    peer_start(serve_quiet);
    options.keepalive_ms = 7500;
    open_ready();
    ck_assert_int_ne(option_of(SOL_SOCKET, SO_KEEPALIVE), 0);
    ck_assert_int_eq(option_of(IPPROTO_TCP, TCP_KEEPIDLE), 7);
    ck_assert_int_le(
        option_of(IPPROTO_TCP, TCP_KEEPINTVL) * option_of(IPPROTO_TCP, TCP_KEEPCNT), 7);
    ck_assert_int_eq(option_of(IPPROTO_TCP, TCP_USER_TIMEOUT), 7500);
    ck_assert_int_ne(option_of(IPPROTO_TCP, TCP_NODELAY), 0);
}
END_TEST

START_TEST(handshake_is_one_pipeline)
{
    peer.text = "+OK\r\n+OK\r\n+OK\r\n" TIME_REPLY;
    peer_start(serve_text);
    endpoint.user = (char[]){ "me" };
    endpoint.password = (char[]){ "pw" };
    endpoint.db = 12;
    options.name = "rlock:x";
    open_ready();
    pthread_mutex_lock(&peer.mu);
    ck_assert_str_eq(peer.seen, "*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$2\r\npw\r\n"
                                "*2\r\n$6\r\nSELECT\r\n$2\r\n12\r\n"
                                "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$7\r\nrlock:x\r\n"
                                "*1\r\n$4\r\nTIME\r\n");
    pthread_mutex_unlock(&peer.mu);
}
END_TEST

START_TEST(password_alone_is_sent_alone)
{
    peer.text = "+OK\r\n" TIME_REPLY;
    peer_start(serve_text);
    endpoint.password = (char[]){ "pw" };
    open_ready();
    pthread_mutex_lock(&peer.mu);
    ck_assert_str_eq(peer.seen, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*1\r\n$4\r\nTIME\r\n");
    pthread_mutex_unlock(&peer.mu);
}
END_TEST

/* The replies to AUTH, SELECT, SETNAME, TIME. */
static const struct refusal {
    const char *answer;
    enum rlk_failure why;
    int code;
    const char *text;
} refusals[] = {
    { "-WRONGPASS no canary\r\n+OK\r\n+OK\r\n" TIME_REPLY, RLK_FAIL_ACCESS, EACCES,
      "AUTH" },
    { "-ERR invalid password\r\n+OK\r\n+OK\r\n" TIME_REPLY, RLK_FAIL_ACCESS, EACCES,
      "bad user or password" },
    { "-ERR AUTH <password> called without any password configured\r\n", RLK_FAIL_ACCESS,
      EACCES, "no password" },
    { "-ERR Client sent AUTH, but no password is set\r\n", RLK_FAIL_ACCESS, EACCES,
      "no password" },
    { "-ERR wrong number of arguments for 'auth' command\r\n", RLK_FAIL_ACCESS, EACCES,
      "no user names" },
    { "-ERR unknown command `AUTH`, with args beginning with: `canary`\r\n",
      RLK_FAIL_ACCESS, EACCES, "AUTH" },
    { "-LOADING Redis is loading\r\n", RLK_FAIL_NOT_SENT, ENOTCONN, "LOADING" },
    { "-ERR max number of clients reached\r\n", RLK_FAIL_NOT_SENT, ENOTCONN,
      "max number of clients" },
    { "-DENIED running in protected\x01\r\nmode\r\n", RLK_FAIL_NOT_SENT, ENOTCONN,
      "protected?" },
    { "+OK\r\n-ERR DB index is out of range\r\n", RLK_FAIL_PROTOCOL, EPROTO,
      "SELECT 1: ERR DB index is out of range" },
    { "+OK\r\n-NOPERM no select\r\n", RLK_FAIL_ACCESS, EACCES, "SELECT" },
    { "+OK\r\n+OK\r\n+OK\r\n-NOPERM no time\r\n", RLK_FAIL_ACCESS, EACCES, "TIME" },
    { "+OK\r\n+OK\r\n-NOAUTH x\r\n-NOAUTH Authentication required.\r\n", RLK_FAIL_ACCESS,
      EACCES, "TIME" },
    { "+OK\r\n+OK\r\n+OK\r\n-ERR what, canary?\r\n", RLK_FAIL_PROTOCOL, EPROTO, "TIME" },
    { "+OK\r\n+OK\r\n+OK\r\n-MASTERDOWN Link\r\n", RLK_FAIL_NOT_SENT, ENOTCONN,
      "MASTERDOWN" },
    { "+OK\r\n+OK\r\n+OK\r\n:1\r\n", RLK_FAIL_PROTOCOL, EPROTO, "TIME" },
    { "+OK\r\n+OK\r\n+OK\r\n*1\r\n$1\r\n1\r\n", RLK_FAIL_PROTOCOL, EPROTO, "TIME" },
    { "+OK\r\n+OK\r\n+OK\r\n*2\r\n$1\r\nx\r\n$1\r\n1\r\n", RLK_FAIL_PROTOCOL, EPROTO,
      "TIME" },
    { "+OK\r\n+OK\r\n+OK\r\n*2\r\n$1\r\n1\r\n$7\r\n1000000\r\n", RLK_FAIL_PROTOCOL,
      EPROTO, "TIME" },
    { "$2\r\nOK\r\n", RLK_FAIL_PROTOCOL, EPROTO, "AUTH" },
    { "HTTP/1.1 400 Bad Request\r\n\r\n", RLK_FAIL_PROTOCOL, EPROTO,
      "does not speak the Redis protocol" },
    { "SSH-2.0-OpenSSH\r\n", RLK_FAIL_PROTOCOL, EPROTO, "Redis protocol" },
    { "+OK\r\n+OK\r\n+OK\r\n" TIME_REPLY "+OK\r\n", RLK_FAIL_PROTOCOL, EPROTO,
      "without a request" },
    { "*100000000\r\n", RLK_FAIL_PROTOCOL, EPROTO, "too big" },
};

START_TEST(refusal_is_distinguished)
{
    const struct refusal *r = &refusals[_i];
    peer.text = r->answer;
    peer_start(serve_text);
    endpoint.password = (char[]){ CANARY };
    endpoint.db = 1;
    options.name = "n";
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(r->why, r->code, r->text);
    /* what follows the refusal answers no request */
    ck_assert_ptr_null(rlk_conn_take_reply(conn));
}
END_TEST

START_TEST(refused_name_is_ignored)
{
    peer.text = "-NOPERM no name\r\n" TIME_REPLY;
    peer_start(serve_text);
    options.name = "n";
    open_ready();
}
END_TEST

START_TEST(unasked_error_before_a_reset_is_read)
{
    peer.text = "-ERR max number of clients reached\r\n";
    peer_start(serve_unasked);
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "max number of clients");
}
END_TEST

START_TEST(end_in_the_handshake_is_NOT_SENT)
{
    peer_start(serve_end);
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "closed");
}
END_TEST

START_TEST(silent_peer_costs_no_more_than_the_deadline)
{
    peer_start(serve_silence);
    int64_t start = test_now_ms();
    ck_assert_int_eq(open_within(100), RLK_CONN_DEAD);
    ck_assert_int_ge(test_now_ms() - start, 99);
    ck_assert_int_le(test_now_ms() - start, 100 + test_ms(200));
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "did not reply in time");
}
END_TEST

START_TEST(refused_connect_says_so)
{
    int fd = bind_tcp(&endpoint.port);
    char expected[64];
    snprintf(expected, sizeof(expected),
             "cannot connect to 127.0.0.1:%u: Connection refused", endpoint.port);
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, expected);
    close(fd);
}
END_TEST

START_TEST(absent_unix_socket_says_so)
{
    endpoint.path = (char[]){ "/tmp/rlk-absent/s" };
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "No such file");
}
END_TEST

START_TEST(full_backlog_of_a_unix_socket_is_waited_for)
{
    int listener = bind_unix();
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    memcpy(un.sun_path, peer.path, sizeof(peer.path));
    ck_assert_int_eq(listen(listener, 0), 0);
    int fill[8];
    for (int i = 0; i < 8; i++) {
        fill[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        if (connect(fill[i], (struct sockaddr *)&un, sizeof(un)) != 0)
            ck_assert_int_eq(errno, EAGAIN);
    }
    ck_assert_int_eq(open_within(30), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "timed out");
    rlk_conn_free(conn);
    for (int i = 0; i < 8; i++)
        close(fill[i]);
    ck_assert_int_eq(rlk_conn_start(&conn, &options, in_ms(test_ms(5000))), 0);
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_OPENING);
    ck_assert_int_eq(rlk_conn_fd(conn), -1);
    peer_start_on(listener, serve_quiet);
    ck_assert_int_eq(rlk_conn_wait_ready(conn, in_ms(test_ms(5000))), RLK_CONN_READY);
}
END_TEST

START_TEST(second_address_is_tried_when_the_first_refuses)
{
    peer_start(serve_quiet);
    int fd = bind_tcp(&names.ports[0]);
    names.ports[1] = peer.port;
    endpoint.host = (char[]){ "two.test" };
    open_ready();
    close(fd);
}
END_TEST

START_TEST(second_address_is_tried_when_the_first_is_silent)
{
    peer_start(serve_quiet);
    int fd = bind_tcp(&names.ports[0]);
    ck_assert_int_eq(listen(fd, 4), 0); /* the kernel accepts, but no reply comes */
    names.ports[1] = peer.port;
    endpoint.host = (char[]){ "two.test" };
    ck_assert_int_eq(open_within(test_ms(600)), RLK_CONN_READY);
    close(fd);
}
END_TEST

START_TEST(unknown_name_says_so)
{
    endpoint.host = (char[]){ "none.test" };
    endpoint.port = 1;
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "cannot resolve");
}
END_TEST

static bool resolver_has_answered(void *arg)
{
    (void)arg;
    return atomic_load(&names.answers) > 0;
}

START_TEST(slow_resolver_is_abandoned_at_the_deadline)
{
    endpoint.host = (char[]){ "slow.test" };
    endpoint.port = 1;
    int64_t start = test_now_ms();
    ck_assert_int_eq(open_within(50), RLK_CONN_DEAD);
    ck_assert_int_le(test_now_ms() - start, 50 + test_ms(200));
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "cannot resolve");
    atomic_store(&names.release, true);
    ck_assert(test_wait_until(resolver_has_answered, NULL, 5000));
}
END_TEST

START_TEST(last_address_saves_the_resolver_until_it_fails)
{
    struct sockaddr_storage address;
    socklen_t address_len = 0;
    options.last_address = &address;
    options.last_address_len = &address_len;
    peer_start(serve_quiet);
    int fd = bind_tcp(&names.ports[0]);
    names.ports[1] = peer.port;
    endpoint.host = (char[]){ "two.test" };
    open_ready();
    ck_assert_uint_eq(address_len, sizeof(struct sockaddr_in));
    ck_assert_int_eq(atomic_load(&names.lookups), 1);
    rlk_conn_free(conn);
    open_ready();
    ck_assert_int_eq(atomic_load(&names.lookups), 1);
    ((struct sockaddr_in *)&address)->sin_port = htons(names.ports[0]);
    rlk_conn_free(conn);
    ck_assert_int_eq(open_within(test_ms(5000)), RLK_CONN_DEAD);
    ck_assert_uint_eq(address_len, 0);
    close(fd);
}
END_TEST

/* A connection that learns that its server is no master. */
static void be_told_of_a_move(struct rlk_moves *moves)
{
    options.moves = moves;
    options.moves_seen = atomic_load(&moves->count);
    open_ready();
    ck_assert(!rlk_conn_moved(conn));
    rlk_conn_leave(conn, "no master");
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_DEAD);
    rlk_conn_free(conn);
    conn = NULL;
}

START_TEST(moves_are_counted_not_too_often)
{
    enum { APART_MS = 100, MUCH_MS = 3600000 };
    struct rlk_moves moves = { .count = 0 };
    peer_start(serve_quiet);
    be_told_of_a_move(&moves);
    ck_assert_uint_eq(atomic_load(&moves.count), 1);
    ck_assert_int_le(atomic_load(&moves.counted_at), rlk_clock_boot());
    atomic_store(&moves.counted_at, in_ms(MUCH_MS)); /* however long the test takes */
    be_told_of_a_move(&moves);
    ck_assert_uint_eq(atomic_load(&moves.count), 1);
    atomic_store(&moves.counted_at, in_ms(-APART_MS));
    be_told_of_a_move(&moves);
    ck_assert_uint_eq(atomic_load(&moves.count), 2);
}
END_TEST

/* ---- one request, one reply */

static void serve_pong(int fd, struct peer *p)
{
    (void)p;
    if (!peer_greet(fd))
        return;
    while (peer_request(fd) && peer_say(fd, "+PONG\r\n"))
        continue;
}

/* Sends the reply, then nothing. */
static void serve_reply(int fd, struct peer *p)
{
    if (peer_greet(fd) && peer_request(fd) && peer_say(fd, p->text))
        peer_linger(fd);
}

static void serve_reply_in_bytes(int fd, struct peer *p)
{
    if (!peer_greet(fd) || !peer_request(fd))
        return;
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    for (const char *c = p->text; *c; c++) {
        if (!peer_send(fd, c, 1))
            return;
        test_pause_ms(1);
    }
    peer_linger(fd);
}

static void serve_drip(int fd, struct peer *p)
{
    (void)p;
    if (!peer_greet(fd) || !peer_request(fd) || !peer_say(fd, "$1000\r\n"))
        return;
    while (peer_send(fd, "x", 1))
        test_pause_ms(5);
}

/* Never reads. */
static void serve_stopped(int fd, struct peer *p)
{
    if (!peer_greet(fd))
        return;
    while (!atomic_load(&p->stopping))
        test_pause_ms(1);
}

static void serve_end_after_request(int fd, struct peer *p)
{
    (void)p;
    if (peer_greet(fd))
        peer_request(fd);
}

static void serve_end_after_greeting(int fd, struct peer *p)
{
    (void)p;
    peer_greet(fd);
}

START_TEST(call_returns_the_reply)
{
    peer_start(serve_pong);
    open_ready();
    for (int i = 0; i < 100; i++) {
        size_t len;
        int64_t before = rlk_clock_boot();
        ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_NONE);
        ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_STATUS);
        ck_assert_str_eq(rlk_reply_string(reply, &len), "PONG");
        ck_assert_uint_eq(len, 4);
        ck_assert_int_ge(sent, before);
        ck_assert_int_le(sent, rlk_clock_boot());
        rlk_reply_free(reply);
        reply = NULL;
    }
}
END_TEST

START_TEST(reply_in_single_bytes_is_put_together)
{
    size_t len;
    peer.text = "*5\r\n$3\r\na\nb\r\n:-7\r\n$-1\r\n-ERR x\r\n*1\r\n+s\r\n";
    peer_start(serve_reply_in_bytes);
    open_ready();
    ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_NONE);
    ck_assert_int_eq(rlk_reply_type(reply), RLK_REPLY_ARRAY);
    ck_assert_uint_eq(rlk_reply_count(reply), 5);
    ck_assert_str_eq(rlk_reply_string(rlk_reply_at(reply, 0), &len), "a\nb");
    ck_assert_int_eq(rlk_reply_integer(rlk_reply_at(reply, 1)), -7);
    ck_assert_int_eq(rlk_reply_type(rlk_reply_at(reply, 2)), RLK_REPLY_NIL);
    ck_assert_int_eq(rlk_reply_type(rlk_reply_at(reply, 3)), RLK_REPLY_ERROR);
    ck_assert_int_eq(rlk_reply_type(rlk_reply_at(reply, 4)), RLK_REPLY_ARRAY);
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_READY);
}
END_TEST

static void assert_times_out_in(long ms)
{
    int64_t start = rlk_clock_boot();
    ck_assert_int_eq(ping_until(start + ms * RLK_NS_PER_MS), RLK_FAIL_UNKNOWN);
    int64_t took_ms = (rlk_clock_boot() - start) / RLK_NS_PER_MS;
    ck_assert_int_ge(took_ms, ms);
    ck_assert_int_le(took_ms, ms + test_ms(100));
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "no reply");
}

START_TEST(deadline_holds_when_nothing_comes)
{
    peer_start(serve_quiet);
    open_ready();
    assert_times_out_in(150);
}
END_TEST

/* The deadline is shorter than SO_RCVTIMEO. The best of some tries counts, because the
 * bound is tight. A try whose time was over before it had begun does not count. */
START_TEST(short_deadline_is_not_overstayed)
{
    enum { TRIES = 5, BEGINNINGS_MAX = 100 };
    int64_t best_ms = INT64_MAX;
    int tries = 0;
    peer_start(serve_quiet);
    for (int i = 0; i < BEGINNINGS_MAX && tries < TRIES; i++) {
        rlk_conn_free(conn);
        open_ready();
        int64_t start = rlk_clock_boot();
        enum rlk_failure why = ping_until(start + 5 * RLK_NS_PER_MS);
        if (why == RLK_FAIL_NOT_SENT)
            continue;
        ck_assert_int_eq(why, RLK_FAIL_UNKNOWN);
        tries++;
        int64_t took_ms = (rlk_clock_boot() - start) / RLK_NS_PER_MS;
        ck_assert_int_ge(took_ms, 5);
        if (took_ms < best_ms)
            best_ms = took_ms;
    }
    ck_assert_int_eq(tries, TRIES);
    ck_assert_int_lt(best_ms, 40);
}
END_TEST

START_TEST(deadline_holds_when_single_bytes_drip)
{
    peer_start(serve_drip);
    open_ready();
    assert_times_out_in(200);
}
END_TEST

START_TEST(deadline_holds_under_signals)
{
    struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    peer_start(serve_quiet);
    open_ready();
    setitimer(ITIMER_REAL, &every, NULL);
    assert_times_out_in(200);
    setitimer(ITIMER_REAL, &never, NULL);
    ck_assert_int_gt(alarm_signals, 10);
}
END_TEST

START_TEST(deadline_holds_when_the_peer_does_not_read)
{
    static char big[2 << 20]; /* beyond any buffer of a Unix socket */
    const char *const argv[] = { "SET", "k", big };
    const size_t argv_len[] = { 3, 1, sizeof(big) };
    peer_start_unix(serve_stopped);
    open_ready();
    int64_t start = test_now_ms();
    ck_assert_int_eq(
        rlk_conn_call(conn, 3, argv, argv_len, in_ms(test_ms(100)), &reply, &sent),
        RLK_FAIL_UNKNOWN);
    ck_assert_int_ge(test_now_ms() - start, test_ms(100) - 1);
    ck_assert_int_le(test_now_ms() - start, test_ms(300));
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "did not accept a request in time");
}
END_TEST

START_TEST(end_after_the_request_is_UNKNOWN)
{
    peer_start(serve_end_after_request);
    open_ready();
    ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_UNKNOWN);
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "closed the connection");
}
END_TEST

static void serve_unasked_on_go(int fd, struct peer *p)
{
    if (!peer_greet(fd))
        return;
    while (!atomic_load(&p->go) && !atomic_load(&p->stopping))
        test_pause_ms(1);
    peer_say(fd, "+");
    peer_linger(fd);
}

static bool conn_is_not_idle_ok(void *arg)
{
    (void)arg;
    return !rlk_conn_idle_ok(conn);
}

START_TEST(send_on_a_closed_connection_is_NOT_SENT)
{
    peer_start_unix(serve_end_after_greeting);
    open_ready();
    ck_assert(test_wait_until(conn_is_not_idle_ok, NULL, 5000));
    ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_NOT_SENT);
    assert_dead(RLK_FAIL_NOT_SENT, ENOTCONN, "Broken pipe");
    ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_NOT_SENT);
}
END_TEST

START_TEST(idle_connection_is_ok_until_something_comes)
{
    peer_start(serve_unasked_on_go);
    open_ready();
    ck_assert(rlk_conn_idle_ok(conn));
    atomic_store(&peer.go, true);
    ck_assert(test_wait_until(conn_is_not_idle_ok, NULL, 5000));
}
END_TEST

START_TEST(second_reply_is_UNKNOWN)
{
    peer.text = "+PONG\r\n+PONG\r\n";
    peer_start(serve_reply);
    open_ready();
    ck_assert_int_eq(ping_within(test_ms(5000)), RLK_FAIL_UNKNOWN);
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "more than one");
    ck_assert_ptr_null(reply);
}
END_TEST

static const char *const monsters[] = {
    "*2147483647\r\n",
    "*60000\r\n*60000\r\n*60000\r\n",
    "$536870912\r\n",
    "HTTP/1.1 200 OK\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
    "$99999999999999999999\r\n",
    ":x\r\n",
};

static void serve_monster(int fd, struct peer *p)
{
    static char fill[4096];
    if (!peer_greet(fd) || !peer_request(fd) || !peer_say(fd, p->text))
        return;
    while (peer_send(fd, fill, sizeof(fill)))
        continue;
}

START_TEST(monstrous_reply_is_UNKNOWN_at_once)
{
    peer.text = monsters[_i];
    peer_start(serve_monster);
    open_ready();
    ck_assert_int_eq(ping_within(test_ms(20000)), RLK_FAIL_UNKNOWN);
    ck_assert_ptr_null(strstr(rlk_conn_error_text(conn), "in time"));
}
END_TEST

START_TEST(no_time_left_leaves_the_connection_alive)
{
    peer_start(serve_pong);
    open_ready();
    ck_assert_int_eq(ping_until(rlk_clock_boot()), RLK_FAIL_NOT_SENT);
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_READY);
    ck_assert_int_eq(atomic_load(&peer.requests), 0);
    ck_assert_int_eq(ping_until(RLK_NEVER), RLK_FAIL_NONE);
}
END_TEST

/* ---- poll loops */

static void append_pings(int count)
{
    const char *const argv[] = { "PING" };
    const size_t argv_len[] = { 4 };
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(rlk_conn_append(conn, 1, argv, argv_len), 0);
}

/* Steps until `count` replies came or the connection is dead; returns how many came. */
static int take_replies(int count)
{
    int64_t end = test_now_ms() + test_ms(10000);
    int taken = 0;
    while (test_now_ms() < end) {
        rlk_conn_step(conn);
        struct rlk_reply *r;
        while ((r = rlk_conn_take_reply(conn))) {
            rlk_reply_free(r);
            taken++;
        }
        if (taken >= count || rlk_conn_state(conn) == RLK_CONN_DEAD)
            break;
        struct pollfd p = { .fd = rlk_conn_fd(conn), .events = rlk_conn_events(conn) };
        poll(&p, 1, 100);
    }
    return taken;
}

START_TEST(pipelined_requests_all_get_replies)
{
    peer_start(serve_pong);
    endpoint.host = localhost;
    endpoint.port = peer.port;
    ck_assert_int_eq(rlk_conn_start(&conn, &options, in_ms(test_ms(5000))), 0);
    append_pings(500); /* also before it is ready */
    ck_assert_int_eq(take_replies(500), 500);
    append_pings(500);
    ck_assert_uint_gt(rlk_conn_unsent(conn), 0);
    ck_assert_int_eq(take_replies(500), 500);
    ck_assert_uint_eq(rlk_conn_unsent(conn), 0);
    ck_assert_int_eq(rlk_conn_due(conn), RLK_NEVER);
}
END_TEST

static void serve_replies_and_end(int fd, struct peer *p)
{
    if (peer_greet(fd) && peer_request(fd))
        peer_say(fd, p->text);
}

START_TEST(replies_before_the_end_are_delivered)
{
    peer.text = "+1\r\n+2\r\n+3\r\n+in pieces";
    peer_start(serve_replies_and_end);
    open_ready();
    append_pings(1);
    ck_assert_int_eq(take_replies(4), 3);
    if (rlk_conn_state(conn) != RLK_CONN_DEAD)
        take_replies(1);
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "closed the connection");
}
END_TEST

START_TEST(killed_connection_gives_no_more_replies)
{
    peer.text = "+1\r\n+2\r\n";
    peer_start(serve_reply);
    open_ready();
    append_pings(1);
    ck_assert_int_ge(take_replies(1), 1);
    rlk_conn_kill(conn, RLK_FAIL_UNKNOWN, "too late");
    ck_assert_ptr_null(rlk_conn_take_reply(conn));
    assert_dead(RLK_FAIL_UNKNOWN, ENOTCONN, "too late");
}
END_TEST

START_TEST(monstrous_reply_kills_in_a_poll_loop)
{
    peer.text = monsters[_i];
    peer_start(serve_monster);
    open_ready();
    append_pings(1);
    ck_assert_int_eq(take_replies(1), 0);
    ck_assert_int_eq(rlk_conn_state(conn), RLK_CONN_DEAD);
    ck_assert_int_eq(rlk_conn_failure(conn), RLK_FAIL_UNKNOWN);
}
END_TEST

int main(void)
{
    int monster_count = (int)(sizeof(monsters) / sizeof(monsters[0]));
    Suite *suite = suite_create("conn");
    TCase *tc = tcase_create("opening");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, ready_has_the_clock_offset);
    tcase_add_test(tc, forgotten_time_leaves_the_clock_offset_before_it);
    tcase_add_test(tc, socket_is_close_on_exec);
    tcase_add_test(tc, socket_gives_up_a_peer_that_is_silent_for_its_timeout);
    tcase_add_test(tc, handshake_is_one_pipeline);
    tcase_add_test(tc, password_alone_is_sent_alone);
    tcase_add_loop_test(tc, refusal_is_distinguished, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(tc, refused_name_is_ignored);
    tcase_add_test(tc, unasked_error_before_a_reset_is_read);
    tcase_add_test(tc, end_in_the_handshake_is_NOT_SENT);
    tcase_add_test(tc, silent_peer_costs_no_more_than_the_deadline);
    tcase_add_test(tc, refused_connect_says_so);
    tcase_add_test(tc, absent_unix_socket_says_so);
    tcase_add_test(tc, full_backlog_of_a_unix_socket_is_waited_for);
    tcase_add_test(tc, second_address_is_tried_when_the_first_refuses);
    tcase_add_test(tc, second_address_is_tried_when_the_first_is_silent);
    tcase_add_test(tc, unknown_name_says_so);
    tcase_add_test(tc, slow_resolver_is_abandoned_at_the_deadline);
    tcase_add_test(tc, last_address_saves_the_resolver_until_it_fails);
    tcase_add_test(tc, moves_are_counted_not_too_often);
    suite_add_tcase(suite, tc);

    tc = tcase_create("call");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, call_returns_the_reply);
    tcase_add_test(tc, reply_in_single_bytes_is_put_together);
    tcase_add_test(tc, deadline_holds_when_nothing_comes);
    tcase_add_test(tc, short_deadline_is_not_overstayed);
    tcase_add_test(tc, deadline_holds_when_single_bytes_drip);
    tcase_add_test(tc, deadline_holds_under_signals);
    tcase_add_test(tc, deadline_holds_when_the_peer_does_not_read);
    tcase_add_test(tc, end_after_the_request_is_UNKNOWN);
    tcase_add_test(tc, send_on_a_closed_connection_is_NOT_SENT);
    tcase_add_test(tc, idle_connection_is_ok_until_something_comes);
    tcase_add_test(tc, second_reply_is_UNKNOWN);
    tcase_add_loop_test(tc, monstrous_reply_is_UNKNOWN_at_once, 0, monster_count);
    tcase_add_test(tc, no_time_left_leaves_the_connection_alive);
    suite_add_tcase(suite, tc);

    tc = tcase_create("poll loop");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, pipelined_requests_all_get_replies);
    tcase_add_test(tc, replies_before_the_end_are_delivered);
    tcase_add_test(tc, killed_connection_gives_no_more_replies);
    tcase_add_loop_test(tc, monstrous_reply_kills_in_a_poll_loop, 0, monster_count);
    suite_add_tcase(suite, tc);

    return test_run_suite(suite);
}
