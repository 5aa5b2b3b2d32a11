/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection's TLS. OpenSSL reads and writes through a BIO whose two ends are memory:
 * the bytes of one recv, and a buffer for one send. Each call that receives goes on until
 * OpenSSL wants more bytes than came. So between two calls OpenSSL holds no input that
 * poll does not see. A write never waits for a read, nor a read for a write, because both
 * ends are memory and renegotiation is refused.
 */
#include "net/conn.h" /* RLK_UNINITIALIZED */
#include "net/tls_impl.h"

#include <errno.h>
#include <netinet/in.h> /* INET6_ADDRSTRLEN */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    PLAIN_SIZE = 4 << 10,
    BATCH_MAX = 64 << 10, /* plaintext that is encrypted at a time */
    RECORD_RECVS = 4,     /* a record has up to 16 KB and 261 bytes */
    SHAKE_RECVS = 16,     /* before the caller looks at its deadline */
    RECORD_ALERT = 21,    /* RFC 8446, 5.1: the first byte of a record */
    RECORD_HANDSHAKE = 22,
    SHOWN_LEN = 40 /* of a reply that is not TLS */
};

/* ---- life */

/* False: the name is no address. A zone (fe80::1%eth0) tells the interface, not the
 * server. */
static bool set_address(X509_VERIFY_PARAM *check, const char *name)
{
    char address[INET6_ADDRSTRLEN];
    size_t len = strcspn(name, "%");

    if (len >= sizeof(address))
        return false;
    memcpy(address, name, len);
    address[len] = '\0';
    return X509_VERIFY_PARAM_set1_ip_asc(check, address) == 1;
}

/* rule: P2 */
/* Sets the name that the certificate must have. OpenSSL compares an address with the
 * certificate's addresses; an address is not sent to the server as a name (RFC 6066, 3).
 * Nor is the dot at the end of an absolute name. */
static bool set_name(struct rlk_tls *tls)
{
    const struct rlk_tls_settings *settings = &tls->endpoint->tls;
    const char *name = settings->name ? settings->name : tls->endpoint->host;
    size_t len = strlen(name);
    X509_VERIFY_PARAM *check = SSL_get0_param(tls->ssl);

    if (set_address(check, name)) {
        if (settings->any_name)
            X509_VERIFY_PARAM_set1_ip(check, NULL, 0);
        return true;
    }
    char *host = strndup(name, len > 1 && name[len - 1] == '.' ? len - 1 : len);
    SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    bool good = host && SSL_set_tlsext_host_name(tls->ssl, host) == 1 &&
                (settings->any_name || SSL_set1_host(tls->ssl, host) == 1);
    free(host);
    return good;
}

static bool prepare(struct rlk_tls *tls, bool may_read)
{
    struct rlk_tls_store *store = tls->endpoint->tls_store;

    rlk_tls_store_look(store, may_read);
    if (!rlk_tls_gate_enter())
        return false;
    tls->ssl = rlk_tls_store_make(tls->endpoint);
    bool good = tls->ssl && SSL_set_app_data(tls->ssl, tls) == 1 &&
                rlk_tls_bio_join(tls) && set_name(tls);
    if (good)
        SSL_set_connect_state(tls->ssl);
    rlk_tls_gate_leave();
    return good;
}

int rlk_tls_open(struct rlk_tls **ret_tls, const struct rlk_endpoint *endpoint,
                 bool may_read)
{
    struct rlk_tls *tls = calloc(1, sizeof(*tls));

    if (!tls)
        return ENOMEM;
    tls->endpoint = endpoint;
    tls->verify_code = X509_V_OK;
    if (!prepare(tls, may_read)) {
        rlk_tls_free(tls);
        return ENOMEM;
    }
    *ret_tls = tls;
    return 0;
}

/* While the process exits, an SSL cannot be freed. A leak checker finds it here. */
static void leave_behind(struct rlk_tls *tls)
{
    static struct rlk_tls *_Atomic newest __attribute__((used));

    tls->older = atomic_load(&newest);
    while (!atomic_compare_exchange_weak(&newest, &tls->older, tls))
        continue;
}

/* rule: P5 */
/* Sends nothing to the peer. OpenSSL would not resume the session of a connection that
 * ends without a close_notify, so the SSL is marked as if both sides had sent one. */
void rlk_tls_free(struct rlk_tls *tls)
{
    if (!tls)
        return;
    if (tls->ssl && !rlk_tls_gate_enter()) {
        leave_behind(tls);
        return;
    }
    if (tls->ssl) {
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(tls->ssl);
        rlk_tls_gate_leave();
    }
    free(tls->out);
    free(tls);
}

/* ---- output */

bool rlk_tls_begun(const struct rlk_tls *tls)
{
    return tls->taken > 0 && (tls->out_at > 0 || tls->out_len == 0);
}

size_t rlk_tls_unsent(const struct rlk_tls *tls)
{
    return tls->out_len - tls->out_at;
}

bool rlk_tls_flush(struct rlk_tls *tls, int fd)
{
    while (tls->out_at < tls->out_len) {
        ssize_t n = send(fd, tls->out + tls->out_at, tls->out_len - tls->out_at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) {
            tls->out_at += (size_t)n;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return true;
        } else if (errno != EINTR) {
            rlk_tls_text_set(tls, RLK_TLS_FAILED, "connection to %s: %s",
                             tls->endpoint->label, strerror(errno));
            tls->text_of_send = true;
            return false;
        }
    }
    tls->out_at = tls->out_len = 0;
    return true;
}

/* OpenSSL cannot continue this connection. What OpenSSL has written, most often an alert,
 * may still be sent. With TLS 1.3 the server refuses a client's certificate only after
 * the handshake. */
static void break_off(struct rlk_tls *tls)
{
    tls->broken = true;
    if (tls->no_memory)
        rlk_tls_text_set(tls, RLK_TLS_NO_MEMORY, "out of memory");
    else
        rlk_tls_text_of_error(tls);
    rlk_tls_store_doubt(tls->endpoint->tls_store);
}

static void note_end(struct rlk_tls *tls)
{
    tls->broken = true;
    rlk_tls_text_set(tls, RLK_TLS_NO_MEMORY, "the process is exiting");
}

static bool enter(struct rlk_tls *tls)
{
    if (rlk_tls_gate_enter())
        return true;
    note_end(tls);
    return false;
}

static bool encrypt(struct rlk_tls *tls, const char *bytes, size_t len)
{
    size_t taken = 0;

    if (!enter(tls))
        return false;
    bool good = SSL_write_ex(tls->ssl, bytes, len < BATCH_MAX ? len : BATCH_MAX, &taken);
    if (good)
        tls->taken = taken;
    else
        break_off(tls);
    rlk_tls_gate_leave();
    return good;
}

/* rule: P1, P3 */
ssize_t rlk_tls_send(struct rlk_tls *tls, int fd, const char *bytes, size_t len)
{
    if (tls->broken || (tls->taken == 0 && !encrypt(tls, bytes, len)))
        return -1;
    if (!rlk_tls_flush(tls, fd))
        return -1;
    if (tls->out_len > 0)
        return 0;
    ssize_t taken = (ssize_t)tls->taken;
    tls->taken = 0;
    return taken;
}

/* ---- input */

/* Makes a message with the beginning of a reply that is not TLS. */
static void note_no_tls(struct rlk_tls *tls)
{
    char shown[SHOWN_LEN + 1];
    size_t len = 0;

    while (len < SHOWN_LEN && len < tls->in_len && tls->in[len] >= ' ' &&
           tls->in[len] <= '~') {
        shown[len] = tls->in[len];
        len++;
    }
    shown[len] = '\0';
    tls->broken = true;
    rlk_tls_text_set(tls, RLK_TLS_STRANGE,
                     "%s%s does not speak TLS%s%s%s: the URL of a server without TLS "
                     "begins with redis://",
                     tls->endpoint->label, tls->endpoint->whence, len > 0 ? " (\"" : "",
                     shown, len > 0 ? "\")" : "");
}

/* One recv into the buffer. 1: there are bytes for OpenSSL, maybe such as followed the
 * handshake; 0: none yet; -1: the connection has ended. */
static int receive(struct rlk_tls *tls, int fd, int flags)
{
    if (tls->broken)
        return -1;
    if (tls->in_len > 0)
        return 1;
    ssize_t n = recv(fd, tls->wire, sizeof(tls->wire), flags);
    if (n == 0) {
        rlk_tls_text_set(tls, RLK_TLS_FAILED, "%s closed the connection",
                         tls->endpoint->label);
        return -1;
    }
    if (n < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
            return 0;
        rlk_tls_text_set(tls, RLK_TLS_FAILED, "connection to %s: %s",
                         tls->endpoint->label, strerror(errno));
        return -1;
    }
    tls->in = tls->wire;
    tls->in_len = (size_t)n;
    if (!tls->heard && tls->wire[0] != RECORD_HANDSHAKE && tls->wire[0] != RECORD_ALERT) {
        note_no_tls(tls);
        return -1;
    }
    tls->heard = true;
    return 1;
}

/* Whether the call that failed can continue when more bytes come. SSL_want_read alone is
 * not enough: it is also true after the peer's alert has ended a handshake. */
static bool wants_more(const struct rlk_tls *tls)
{
    return !tls->no_memory && SSL_want_read(tls->ssl) &&
           BIO_should_read(SSL_get_rbio(tls->ssl));
}

/* rule: P3 */
/* Whether there was plaintext. When this returns, OpenSSL has read all received bytes,
 * because it asks for more only when it has no whole record left. */
static bool decrypt(struct rlk_tls *tls,
                    void (*pass)(void *arg, const char *bytes, size_t len), void *arg)
{
    char plain[PLAIN_SIZE] RLK_UNINITIALIZED;
    bool some = false;
    size_t len;

    while (tls->in_len > 0 || SSL_pending(tls->ssl) > 0) {
        if (SSL_read_ex(tls->ssl, plain, sizeof(plain), &len) == 1) {
            pass(arg, plain, len);
            some = true;
        } else if ((SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN) &&
                   ERR_peek_error() == 0) { /* otherwise an alert */
            tls->broken = true;
            rlk_tls_text_set(tls, RLK_TLS_FAILED, "%s closed the connection",
                             tls->endpoint->label);
            break;
        } else if (!wants_more(tls)) {
            break_off(tls);
            break;
        }
    }
    return some;
}

/* One recv. *ret_got: bytes came. Returns as rlk_tls_receive does. */
static int receive_once(struct rlk_tls *tls, int fd, int flags,
                        void (*pass)(void *arg, const char *bytes, size_t len), void *arg,
                        bool *ret_got)
{
    int got = receive(tls, fd, flags);

    *ret_got = got > 0;
    if (got <= 0)
        return got;
    if (!enter(tls))
        return -1;
    bool some = decrypt(tls, pass, arg);
    rlk_tls_gate_leave();
    return some ? 1 : tls->broken ? -1 : 0;
}

int rlk_tls_receive(struct rlk_tls *tls, int fd, int flags,
                    void (*pass)(void *arg, const char *bytes, size_t len), void *arg)
{
    bool got;
    int result = receive_once(tls, fd, flags, pass, arg, &got);

    for (int i = 1; result == 0 && got && i < RECORD_RECVS; i++)
        result = receive_once(tls, fd, MSG_DONTWAIT, pass, arg, &got);
    /* If that fails, the next recv gets the rest of what the server sent, and then the
     * end. */
    rlk_tls_flush(tls, fd);
    return result;
}

static void drop(void *arg, const char *bytes, size_t len)
{
    (void)arg;
    (void)bytes;
    (void)len;
}

void rlk_tls_hear_alert(struct rlk_tls *tls, int fd)
{
    bool got = true;

    for (int i = 0; got && i < SHAKE_RECVS; i++)
        receive_once(tls, fd, MSG_DONTWAIT, drop, NULL, &got);
}

bool rlk_tls_has_part(struct rlk_tls *tls)
{
    if (tls->in_len > 0)
        return true;
    if (!rlk_tls_gate_enter())
        return false;
    bool has = SSL_has_pending(tls->ssl) == 1;
    rlk_tls_gate_leave();
    return has;
}

/* ---- the handshake */

static enum rlk_tls_result advance(struct rlk_tls *tls)
{
    if (!enter(tls))
        return RLK_TLS_NO_MEMORY;
    enum rlk_tls_result result = RLK_TLS_DONE;
    if (SSL_do_handshake(tls->ssl) != 1) {
        result = RLK_TLS_WAIT;
        if (!wants_more(tls)) {
            break_off(tls);
            result = tls->failure;
        }
    }
    rlk_tls_gate_leave();
    return result;
}

enum rlk_tls_result rlk_tls_shake(struct rlk_tls *tls, int fd)
{
    enum rlk_tls_result result = RLK_TLS_WAIT;

    if (!tls->heard && tls->out_len == 0)
        result = advance(tls);
    for (int i = 0; result == RLK_TLS_WAIT; i++) {
        if (!rlk_tls_flush(tls, fd))
            return tls->failure;
        int got = i < SHAKE_RECVS ? receive(tls, fd, MSG_DONTWAIT) : 0;
        if (got == 0)
            return RLK_TLS_WAIT;
        result = got < 0 ? tls->failure : advance(tls);
    }
    if (result != RLK_TLS_DONE)
        rlk_tls_flush(tls, fd); /* an alert */
    return result;
}

/* ---- getters */

const char *rlk_tls_text(const struct rlk_tls *tls)
{
    return tls->text;
}

enum rlk_tls_result rlk_tls_failure(const struct rlk_tls *tls)
{
    return tls->failure;
}

bool rlk_tls_heard(const struct rlk_tls *tls)
{
    return tls->heard;
}
