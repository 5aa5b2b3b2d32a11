/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL reads from and writes to instead of a socket: bytes that were received,
 * and a buffer of bytes to send. Thread: that of the connection. Locks: rlk_tls_gate is
 * entered. */
#include "net/tls_impl.h"

#include <openssl/bio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_SIZE_FIRST = 2048 };

static BIO_METHOD *method;
static rlk_once_t once = RLK_ONCE_INIT;

static int take(BIO *bio, char *buf, int size)
{
    struct rlk_tls *tls = BIO_get_data(bio);
    size_t len = tls->in_len < (size_t)size ? tls->in_len : (size_t)size;

    BIO_clear_retry_flags(bio);
    if (len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(buf, tls->in, len);
    tls->in += len;
    tls->in_len -= len;
    return (int)len;
}

static bool make_room(struct rlk_tls *tls, size_t len)
{
    size_t size = tls->out_size ? tls->out_size : OUT_SIZE_FIRST;

    while (size - tls->out_len < len)
        size *= 2;
    if (size == tls->out_size)
        return true;
    char *bigger = realloc(tls->out, size);
    if (!bigger)
        return false;
    tls->out = bigger;
    tls->out_size = size;
    return true;
}

static int put(BIO *bio, const char *bytes, int len)
{
    struct rlk_tls *tls = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (!make_room(tls, (size_t)len)) {
        tls->no_memory = true;
        return -1;
    }
    memcpy(tls->out + tls->out_len, bytes, (size_t)len);
    tls->out_len += (size_t)len;
    return len;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static void make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rlock");
    if (method &&
        (BIO_meth_set_read(method, take) != 1 || BIO_meth_set_write(method, put) != 1 ||
         BIO_meth_set_ctrl(method, control) != 1)) {
        BIO_meth_free(method);
        method = NULL;
    }
}

bool rlk_tls_bio_join(struct rlk_tls *tls)
{
    rlk_sync_once(&once, make_method);
    BIO *bio = method ? BIO_new(method) : NULL;
    if (!bio)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}
