/* SPDX-License-Identifier: Apache-2.0 */
/* See tlsscene.h. */
#if TEST_TLS

#include "tlsscene.h"

#include "die.h"
#include "port.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ARGS_MAX = 40, URLS = 6, CHUNK = 4096, STOP_AFTER = 20, LOOK_MS = 5, CROWD = 64 };

uint16_t tls_port;
static int port_holder = -1;

/* ---- the server */

bool tls_is_built(void)
{
    bool built = test_server_has_tls();
    if (!built)
        puts("skipped: the server was built without TLS");
    return built;
}

static const char **arguments(const char *const more[])
{
    static const char *args[ARGS_MAX];
    static char port[8];
    size_t n = 0;

    snprintf(port, sizeof(port), "%u", (unsigned)tls_port);
    const char *const first[] = { "--tls-port",         port,
                                  "--tls-cert-file",    test_authority_path("server.crt"),
                                  "--tls-key-file",     test_authority_path("server.key"),
                                  "--tls-ca-cert-file", test_authority_path("ca.crt"),
                                  "--tls-auth-clients", "no" };
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
        args[n++] = first[i];
    for (size_t i = 0; more && more[i]; i++)
        args[n++] = more[i];
    args[n] = NULL;
    return args;
}

/* As test_warm_up, for OpenSSL's code, too. */
static void warm_up(void)
{
    rlock_client_t *c;
    OK(tls_open(&c, tls_url("localhost", tls_port, "")));
    OK(rlock_client_ping(c));
    OK(rlock_client_close(c));
}

void tls_start(void)
{
    test_authority_begin();
    test_authority_make("other");
    test_authority_issue("ca", "server", 30, "subjectAltName=DNS:localhost,IP:127.0.0.1");
    test_authority_issue("ca", "client", 30, "extendedKeyUsage=clientAuth");
    port_holder = test_port_reserve("127.0.0.1", &tls_port);
    test_server_start(&server, arguments(NULL));
    if (getenv("RLOCK_TEST_WARM"))
        warm_up();
}

void tls_stop(void)
{
    fixture_stop();
    close(port_holder);
    test_authority_end();
}

void tls_restart(const char *const more[])
{
    test_server_restart_args(&server, arguments(more));
}

const char *tls_url(const char *host, uint16_t port, const char *parameters)
{
    static char urls[URLS][TLS_URL_MAX];
    static unsigned next;
    char *url = urls[next++ % URLS];

    snprintf(url, TLS_URL_MAX, "rediss://%s:%u?cafile=%s%s%s", host, (unsigned)port,
             test_authority_path("ca.crt"), parameters[0] ? "&" : "", parameters);
    return url;
}

int tls_open(rlock_client_t **ret_client, const char *url)
{
    rlock_clientattr_t attr;
    long command_ms, connect_ms;

    OK(rlock_clientattr_init(&attr));
    OK(rlock_clientattr_getcommandtimeout(&attr, &command_ms));
    OK(rlock_clientattr_getconnecttimeout(&attr, &connect_ms));
    OK(rlock_clientattr_setcommandtimeout(&attr, test_ms(command_ms)));
    OK(rlock_clientattr_setconnecttimeout(&attr, test_ms(connect_ms)));
    /* the attributes are not destroyed: that call would replace the message */
    return rlock_client_open(ret_client, url, &attr);
}

rlock_client_t *tls_client(const char *parameters)
{
    return open_at(tls_url("localhost", tls_port, parameters), "");
}

/* ---- the go-between */

struct pair {
    struct between *owner;
    int client, server;
    SSL *ssl;
    bool stopped;
    size_t passed; /* bytes to the client */
    unsigned tickets, updates;
    atomic_bool over;
};

struct between {
    enum between_way way;
    uint16_t port;
    int listener, holder;
    pthread_t thread;
    atomic_bool ends;
    SSL_CTX *ctx;
    atomic_uint tickets, updates; /* how many each connection should have sent */
    atomic_uint sent;             /* how many all connections have sent of the last one */
    atomic_uint open, accepted, resumed, cuts;
    atomic_uint cuts_done;
    struct pair pairs[CROWD];
};

static void no_delay(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static int connect_server(const struct between *b)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(tls_port) };
    bool plain = b->way >= BETWEEN_TLS;
    int fd = socket(plain ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    snprintf(un.sun_path, sizeof(un.sun_path), "%s", server.path);
    int rc = plain ? connect(fd, (struct sockaddr *)&un, sizeof(un))
                   : connect(fd, (struct sockaddr *)&in, sizeof(in));
    if (rc == 0 && !plain)
        no_delay(fd);
    return fd;
}

static void close_pair(struct pair *p)
{
    if (p->over)
        return;
    p->over = true;
    if (p->ssl)
        SSL_free(p->ssl);
    p->ssl = NULL;
    close(p->client);
    if (p->server >= 0)
        close(p->server);
    atomic_fetch_sub(&p->owner->open, 1);
}

static bool accept_tls(struct pair *p)
{
    p->ssl = SSL_new(p->owner->ctx);
    SSL_set_fd(p->ssl, p->client);
    if (SSL_accept(p->ssl) != 1)
        return false;
    if (SSL_session_reused(p->ssl))
        atomic_fetch_add(&p->owner->resumed, 1);
    return true;
}

static void begin_pair(struct between *b, int fd)
{
    static const char denied[] = "-DENIED this is somebody else\r\n";
    static const char alert[] = { 21, 3, 1, 0, 2, 2, 70 };
    struct pair *p = b->pairs;

    while (p < b->pairs + CROWD && !p->over)
        p++;
    if (p == b->pairs + CROWD)
        test_die("too many connections");
    *p = (struct pair){ .owner = b, .client = fd, .server = -1 };
    atomic_fetch_add(&b->open, 1);
    atomic_fetch_add(&b->accepted, 1);
    no_delay(fd);
    p->tickets = atomic_load(&b->tickets);
    p->updates = atomic_load(&b->updates);
    if (b->way == BETWEEN_SAYS && send(fd, denied, sizeof(denied) - 1, MSG_NOSIGNAL) > 0)
        shutdown(fd, SHUT_WR);
    if (b->way == BETWEEN_ALERTS && send(fd, alert, sizeof(alert), MSG_NOSIGNAL) > 0)
        shutdown(fd, SHUT_WR);
    if (b->way >= BETWEEN_SILENT && b->way <= BETWEEN_ALERTS)
        return;
    if (b->way >= BETWEEN_TLS && !accept_tls(p))
        close_pair(p);
    else
        p->server = connect_server(b);
}

static void to_client(struct pair *p, const char *bytes, size_t len)
{
    size_t step = p->owner->way == BETWEEN_DRIPS ? 1 : len;

    if (p->ssl) {
        if (SSL_write(p->ssl, bytes, (int)len) <= 0)
            close_pair(p);
        return;
    }
    for (size_t at = 0; at < len; at += step) {
        if (p->owner->way == BETWEEN_STOPS && p->passed + at >= STOP_AFTER)
            return;
        size_t n = p->owner->way == BETWEEN_STOPS ? STOP_AFTER : step;
        if (send(p->client, bytes + at, n < len - at ? n : len - at, MSG_NOSIGNAL) < 0) {
            close_pair(p);
            return;
        }
        if (p->owner->way == BETWEEN_STOPS)
            break;
    }
    p->passed += len;
}

static void from_server(struct pair *p)
{
    char bytes[CHUNK];
    ssize_t n = recv(p->server, bytes, sizeof(bytes), 0);

    if (n <= 0)
        close_pair(p);
    else
        to_client(p, bytes, (size_t)n);
}

/* False: the connection is over. */
static bool pass_on(struct pair *p)
{
    char bytes[CHUNK];
    ssize_t n = p->ssl ? SSL_read(p->ssl, bytes, sizeof(bytes))
                       : recv(p->client, bytes, sizeof(bytes), 0);

    if (n <= 0) /* perhaps a message of TLS itself, such as a key update */
        return p->ssl && SSL_get_error(p->ssl, (int)n) == SSL_ERROR_WANT_READ;
    return p->server < 0 || send(p->server, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void from_client(struct pair *p)
{
    do {
        if (!pass_on(p)) {
            close_pair(p);
            return;
        }
    } while (p->ssl && SSL_pending(p->ssl) > 0);
}

static void say_more(struct pair *p)
{
    struct between *b = p->owner;

    if (!p->ssl)
        return;
    if (p->tickets != atomic_load(&b->tickets)) {
        p->tickets = atomic_load(&b->tickets);
        SSL_new_session_ticket(p->ssl);
        SSL_do_handshake(p->ssl);
        atomic_fetch_add(&b->sent, 1);
    }
    if (p->updates != atomic_load(&b->updates)) {
        p->updates = atomic_load(&b->updates);
        SSL_key_update(p->ssl, SSL_KEY_UPDATE_REQUESTED);
        SSL_do_handshake(p->ssl);
        atomic_fetch_add(&b->sent, 1);
    }
}

static void cut_all(struct between *b)
{
    for (struct pair *p = b->pairs; p < b->pairs + CROWD; p++)
        close_pair(p);
}

static void serve(struct between *b)
{
    struct pollfd fds[2 * CROWD + 1] = { { .fd = b->listener, .events = POLLIN } };

    for (int i = 0; i < CROWD; i++) {
        struct pair *p = &b->pairs[i];
        fds[1 + 2 * i] = (struct pollfd){ p->over ? -1 : p->client, POLLIN, 0 };
        fds[2 + 2 * i] = (struct pollfd){ p->over ? -1 : p->server, POLLIN, 0 };
    }
    poll(fds, 2 * CROWD + 1, LOOK_MS);
    for (int i = 0; i < CROWD; i++) {
        struct pair *p = &b->pairs[i];
        if (!p->over)
            say_more(p);
        if (!p->over && fds[1 + 2 * i].revents)
            from_client(p);
        if (!p->over && fds[2 + 2 * i].revents)
            from_server(p);
    }
    if (fds[0].revents) {
        int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            begin_pair(b, fd);
    }
    if (b->cuts_done != atomic_load(&b->cuts)) {
        cut_all(b);
        b->cuts_done++;
    }
}

static void *run(void *arg)
{
    struct between *b = arg;

    while (!atomic_load(&b->ends))
        serve(b);
    cut_all(b);
    return NULL;
}

static SSL_CTX *make_context(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    static const unsigned char id[] = "tests";

    if (!ctx ||
        SSL_CTX_use_certificate_chain_file(ctx, test_authority_path("server.crt")) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx, test_authority_path("server.key"),
                                    SSL_FILETYPE_PEM) != 1)
        test_die("no server of TLS");
    SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY); /* or SSL_read blocks for more input */
    SSL_CTX_set_session_id_context(ctx, id, sizeof(id));
    return ctx;
}

struct between *between_start(enum between_way way)
{
    struct between *b = calloc(1, sizeof(*b));

    b->way = way;
    b->holder = test_port_reserve("127.0.0.1", &b->port);
    b->listener = test_port_listen("127.0.0.1", b->port);
    for (int i = 0; i < CROWD; i++)
        b->pairs[i].over = true;
    if (way >= BETWEEN_TLS)
        b->ctx = make_context();
    if (way == BETWEEN_TLS12)
        SSL_CTX_set_max_proto_version(b->ctx, TLS1_2_VERSION);
    pthread_create(&b->thread, NULL, run, b);
    return b;
}

void between_stop(struct between *b)
{
    atomic_store(&b->ends, true);
    pthread_join(b->thread, NULL);
    SSL_CTX_free(b->ctx);
    close(b->listener);
    close(b->holder);
    free(b);
}

uint16_t between_port(const struct between *b)
{
    return b->port;
}

static bool all_sent(void *arg)
{
    struct between *b = arg;
    return atomic_load(&b->sent) >= atomic_load(&b->open);
}

void between_ticket(struct between *b)
{
    atomic_store(&b->sent, 0);
    atomic_fetch_add(&b->tickets, 1);
    ck_assert(test_wait_until(all_sent, b, 10000));
}

void between_update(struct between *b)
{
    atomic_store(&b->sent, 0);
    atomic_fetch_add(&b->updates, 1);
    ck_assert(test_wait_until(all_sent, b, 10000));
}

unsigned between_resumed(const struct between *b)
{
    return atomic_load(&b->resumed);
}

unsigned between_accepted(const struct between *b)
{
    return atomic_load(&b->accepted);
}

static bool none_open(void *arg)
{
    const struct between *b = arg;
    return b->cuts_done == atomic_load(&b->cuts);
}

void between_cut(struct between *b)
{
    atomic_fetch_add(&b->cuts, 1);
    ck_assert(test_wait_until(none_open, b, 10000));
}

bool tls_is_other_answer(const char *expected, int rc, const char *said)
{
    return strstr(expected, "did not reply to the TLS handshake") && rc == EPROTO &&
           strstr(said, "does not speak TLS (\"-") &&
           strstr(said, "a server without TLS begins with redis://");
}

#else
typedef int no_TLS; /* ISO C forbids an empty file */
#endif
