/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the cost of TLS: tls ROUNDS PAIRS HOST PORT CAFILE, with the same server's
 * plain port in $RLOCK_URL (bench/tls_run starts a server). In each round, one after the
 * other: pairs of the library over TLS, the same commands with only hiredis's codec and
 * OpenSSL, and pairs of the library over plain TCP. Then the server's CPU time for a
 * connection with a full and with a resumed handshake. Prints medians and ratios.
 */
#include "bench.h"
#include "scripts.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <rlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 99, HANDSHAKES = 400, CHUNK = 16384, ID_SIZE = 128, WAYS = 3 };

static const char *host, *cafile;
static int port;
static SSL_CTX *ctx;
static SSL_SESSION *newest;

void die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("tls: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    _exit(2);
}

int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int keep(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(newest);
    newest = session;
    return 1;
}

static SSL *connect_raw(SSL_SESSION *session)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    SSL *ssl = SSL_new(ctx);

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || !ssl || connect(fd, (struct sockaddr *)&in, sizeof(in)) != 0)
        die("no connection to port %d", port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    SSL_set_fd(ssl, fd);
    SSL_set1_host(ssl, host);
    if (session)
        SSL_set_session(ssl, session);
    if (SSL_connect(ssl) != 1)
        die("no handshake with %s:%d", host, port);
    return ssl;
}

static void close_raw(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    close(fd);
}

/* One command, one reply. */
static void call_raw(SSL *ssl, redisReader *reader, const struct command *cmd)
{
    char bytes[CHUNK], *frame;
    void *reply = NULL;
    long long len = redisFormatCommandArgv(&frame, cmd->argc,
                                           (const char **)(uintptr_t)cmd->argv, cmd->len);

    if (SSL_write(ssl, frame, (int)len) <= 0)
        die("SSL_write");
    redisFreeCommand(frame);
    while (!reply) {
        int n = SSL_read(ssl, bytes, sizeof(bytes));
        if (n <= 0)
            die("SSL_read");
        redisReaderFeed(reader, bytes, (size_t)n);
        if (redisReaderGetReply(reader, &reply) != REDIS_OK)
            die("no reply");
    }
    if (((redisReply *)reply)->type == REDIS_REPLY_ERROR)
        die("%s", ((redisReply *)reply)->str);
    freeReplyObject(reply);
}

/* ---- pairs; us each */

static double raw_pairs(long pairs)
{
    static lock_keys_t keys;
    static char uuid[RLK_UUID_LEN + 1];
    redisContext *plain = redis_open();
    redisReader *reader = redisReaderCreate();
    struct command acquire, release;
    SSL *ssl = connect_raw(newest);

    make_uuid(uuid);
    make_keys(keys, "bench-tls-raw");
    command_load(&acquire, plain, RLK_MUTEX_ACQUIRE, keys);
    command_load(&release, plain, RLK_MUTEX_RELEASE, keys);
    int64_t begin = now_ns();
    for (long i = 0; i < pairs; i++) {
        struct command a = acquire, r = release;
        char id[ID_SIZE];
        snprintf(id, sizeof(id), "%s:1:%ld:m3000", uuid, i + 1);
        const char *const args[] = {
            id, uuid, "30000", "3000", NEVER_TOO_LATE, "0", "0"
        };
        for (size_t j = 0; j < sizeof(args) / sizeof(args[0]); j++)
            command_add(&a, args[j]);
        call_raw(ssl, reader, &a);
        command_add(&r, id);
        command_add(&r, "0");
        command_add(&r, keys[RLK_KEY_CHANNEL]);
        call_raw(ssl, reader, &r);
    }
    double us = (double)(now_ns() - begin) / 1000 / (double)pairs;
    close_raw(ssl);
    redisReaderFree(reader);
    redisFree(plain);
    return us;
}

static double library_pairs(const char *url, long pairs)
{
    rlock_client_t *client = NULL;
    rlock_mutexattr_t attr;
    rlock_mutex_t mutex;
    int64_t begin = 0;

    if (rlock_client_open(&client, url, NULL) != 0 || rlock_client_ping(client) != 0)
        die("%s", rlock_errmsg());
    rlock_mutexattr_init(&attr);
    rlock_mutexattr_setclient(&attr, client);
    rlock_mutex_init(&mutex, &attr, "bench-tls");
    for (long i = -10; i < pairs; i++) {
        if (i == 0)
            begin = now_ns();
        if (rlock_mutex_lock(&mutex) != 0 || rlock_mutex_unlock(&mutex) != 0)
            die("%s", rlock_errmsg());
    }
    double us = (double)(now_ns() - begin) / 1000 / (double)pairs;
    (void)rlock_client_close(client);
    return us;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return values[count / 2];
}

/* ---- connections */

static double server_cpu_s(redisContext *plain)
{
    char user[32], system[32];
    redis_info(plain, "cpu", "used_cpu_user", user, sizeof(user));
    redis_info(plain, "cpu", "used_cpu_sys", system, sizeof(system));
    return strtod(user, NULL) + strtod(system, NULL);
}

/* The server's CPU time in us for each connection with one PING. */
static double handshakes(redisContext *plain, bool resumed)
{
    static const char ping[] = "PING\r\n";
    char answer[CHUNK];
    int reused = 0;
    double before = server_cpu_s(plain);

    for (int i = 0; i < HANDSHAKES; i++) {
        SSL *ssl = connect_raw(resumed ? newest : NULL);
        if (SSL_write(ssl, ping, sizeof(ping) - 1) <= 0 ||
            SSL_read(ssl, answer, sizeof(answer)) <= 0)
            die("no PONG");
        reused += SSL_session_reused(ssl);
        close_raw(ssl);
    }
    if (reused != (resumed ? HANDSHAKES : 0))
        die("%d of %d connections were resumed", reused, HANDSHAKES);
    return (server_cpu_s(plain) - before) * 1e6 / HANDSHAKES;
}

int main(int argc, char **argv)
{
    double us[WAYS][ROUNDS_MAX];
    char url[512];

    if (argc != 6)
        die("usage: tls ROUNDS PAIRS HOST PORT CAFILE, with $RLOCK_URL");
    int rounds = atoi(argv[1]);
    long pairs = atol(argv[2]);
    host = argv[3];
    port = atoi(argv[4]);
    cafile = argv[5];
    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("1 to %d rounds", ROUNDS_MAX);
    snprintf(url, sizeof(url), "rediss://%s:%d?cafile=%s", host, port, cafile);
    ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_load_verify_file(ctx, cafile);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, keep);
    for (int i = 0; i < rounds; i++) {
        us[0][i] = library_pairs(url, pairs);
        us[1][i] = raw_pairs(pairs);
        us[2][i] = library_pairs(NULL, pairs);
        printf("round %d: TLS %.1f, raw TLS %.1f, plain TCP %.1f us/pair\n", i + 1,
               us[0][i], us[1][i], us[2][i]);
    }
    double tls = median(us[0], rounds), raw = median(us[1], rounds),
           plain = median(us[2], rounds);
    printf(
        "TLS %.1f us/pair; %.2f of raw hiredis and OpenSSL (<= 1.10), %.2f of plain TCP "
        "(<= 1.35)\n",
        tls, tls / raw, tls / plain);
    redisContext *conn = redis_open();
    double full = handshakes(conn, false), again = handshakes(conn, true);
    printf(
        "server's CPU for a connection: full %.0f us, resumed %.0f us: %.2f (<= 0.50)\n",
        full, again, again / full);
    redisFree(conn);
    return 0;
}
