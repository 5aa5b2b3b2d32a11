/* SPDX-License-Identifier: Apache-2.0 */
/* See tls_raw.h. State: what all connections share, the newest session. */
#include "tls_raw.h"

#include "bench.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { CHUNK = 16384, ID_SIZE = 128, BACKSTOP_S = 1 };

#define LEASE_MS "30000"
#define PRESENCE_MS "3000"

static const char *host;
static int port;
static SSL_CTX *ctx;
static SSL_SESSION *newest;

static int keep(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(newest);
    newest = session;
    return 1;
}

void tls_raw_begin(const char *name, int number, const char *cafile)
{
    host = name;
    port = number;
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || SSL_CTX_load_verify_file(ctx, cafile) != 1)
        die("no authority in %s", cafile);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(ctx,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, keep);
}

SSL_SESSION *tls_raw_session(void)
{
    return newest;
}

SSL *tls_raw_connect(SSL_SESSION *session)
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

void tls_raw_close(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(ssl);
    close(fd);
}

/* ---- commands and replies */

struct tls_raw tls_raw_open(void)
{
    return (struct tls_raw){ tls_raw_connect(newest), redisReaderCreate() };
}

void tls_raw_end(struct tls_raw *raw)
{
    tls_raw_close(raw->ssl);
    redisReaderFree(raw->reader);
}

void tls_raw_send(struct tls_raw *raw, int argc, const char *const *argv,
                  const size_t *len)
{
    char *frame;
    long long size =
        redisFormatCommandArgv(&frame, argc, (const char **)(uintptr_t)argv, len);

    if (size < 0 || SSL_write(raw->ssl, frame, (int)size) <= 0)
        die("nothing can be sent over TLS");
    redisFreeCommand(frame);
}

redisReply *tls_raw_receive(struct tls_raw *raw)
{
    char bytes[CHUNK];
    void *got = NULL;

    for (;;) {
        if (redisReaderGetReply(raw->reader, &got) != REDIS_OK)
            die("no reply");
        if (got)
            break;
        int n = SSL_read(raw->ssl, bytes, sizeof(bytes));
        if (n <= 0 && SSL_get_error(raw->ssl, n) == SSL_ERROR_WANT_READ)
            return NULL;
        if (n <= 0)
            die("the connection over TLS has ended");
        redisReaderFeed(raw->reader, bytes, (size_t)n);
    }
    redisReply *reply = got;
    if (reply->type == REDIS_REPLY_ERROR)
        die("%s", reply->str);
    return reply;
}

/* ---- the mutex */

/* Whether the script answers `what` about the id. */
static bool answers(struct tls_raw *conn, const struct command *cmd, const char *what)
{
    enum { WHAT = 4 };

    tls_raw_send(conn, cmd->argc, cmd->argv, cmd->len);
    redisReply *reply = tls_raw_receive(conn);
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements <= WHAT ||
        reply->element[WHAT]->type != REDIS_REPLY_STRING)
        die("the answer is none of a lock script");
    bool same = strcmp(reply->element[WHAT]->str, what) == 0;
    freeReplyObject(reply);
    return same;
}

static void listen_to(struct tls_raw_mutex *m)
{
    char channel[sizeof(RLK_MAILBOX_PREFIX) + RLK_UUID_LEN];
    const char *const words[] = { "SUBSCRIBE", channel };
    struct timeval backstop = { .tv_sec = BACKSTOP_S };

    m->mailbox = tls_raw_open();
    snprintf(channel, sizeof(channel), RLK_MAILBOX_PREFIX "%s", m->uuid);
    const size_t len[] = { strlen(words[0]), strlen(channel) };
    tls_raw_send(&m->mailbox, 2, words, len);
    freeReplyObject(tls_raw_receive(&m->mailbox));
    setsockopt(SSL_get_fd(m->mailbox.ssl), SOL_SOCKET, SO_RCVTIMEO, &backstop,
               sizeof(backstop));
}

void tls_raw_mutex_open(struct tls_raw_mutex *m, const char *name, bool listens)
{
    redisContext *plain = redis_open();

    memset(m, 0, sizeof(*m));
    make_uuid(m->uuid);
    make_keys(m->keys, name);
    command_load(&m->acquire, plain, RLK_MUTEX_ACQUIRE, m->keys);
    command_load(&m->release, plain, RLK_MUTEX_RELEASE, m->keys);
    command_load(&m->refresh, plain, RLK_MUTEX_REFRESH, m->keys);
    redisFree(plain);
    m->conn = tls_raw_open();
    m->listens = listens;
    if (listens)
        listen_to(m);
}

static void wait_for_grant(struct tls_raw_mutex *m, const char *id)
{
    for (;;) {
        redisReply *message = tls_raw_receive(&m->mailbox);
        if (!message) {
            struct command refresh = m->refresh;
            command_add(&refresh, m->uuid);
            command_add(&refresh, PRESENCE_MS);
            command_add(&refresh, "0");
            command_add(&refresh, id + RLK_UUID_LEN + 1); /* without the uuid */
            if (answers(&m->conn, &refresh, "held"))
                return;
            continue;
        }
        bool granted = message->type == REDIS_REPLY_ARRAY && message->elements == 3 &&
                       message->element[2]->type == REDIS_REPLY_STRING &&
                       strstr(message->element[2]->str, id) != NULL;
        freeReplyObject(message);
        if (granted)
            return;
    }
}

void tls_raw_mutex_pair(struct tls_raw_mutex *m)
{
    struct command acquire = m->acquire, release = m->release;
    char id[ID_SIZE];

    snprintf(id, sizeof(id), "%s:1:%lu:m" PRESENCE_MS, m->uuid, ++m->number);
    const char *const args[] = { id,  m->uuid, LEASE_MS, PRESENCE_MS, NEVER_TOO_LATE,
                                 "0", "0" };
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
        command_add(&acquire, args[i]);
    if (!answers(&m->conn, &acquire, "held")) {
        if (!m->listens)
            die("a free lock is not taken");
        wait_for_grant(m, id);
    }
    command_add(&release, id);
    command_add(&release, "0");
    command_add(&release, m->keys[RLK_KEY_CHANNEL]);
    if (!answers(&m->conn, &release, "released"))
        die("the raw loop lost its lock");
}

void tls_raw_mutex_close(struct tls_raw_mutex *m)
{
    tls_raw_end(&m->conn);
    if (m->listens)
        tls_raw_end(&m->mailbox);
}
