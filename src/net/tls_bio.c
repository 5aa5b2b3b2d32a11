/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL reads from and writes to instead of a socket: bytes that were received,
 * and a buffer of bytes to send. Thread: that of the connection. Locks: rlk_tls_gate is
 * entered. */
#include "net/tls_impl.h"

#include <openssl/bio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_SIZE_FIRST = 2048 };

static BIO_METHOD *_Atomic method;

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

/* NULL: out of memory. */
static BIO_METHOD *get_method(void)
{
    BIO_METHOD *made = atomic_load(&method), *none = NULL;

    if (made)
        return made;
    made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rlock");
    if (!made || BIO_meth_set_read(made, take) != 1 ||
        BIO_meth_set_write(made, put) != 1 || BIO_meth_set_ctrl(made, control) != 1) {
        BIO_meth_free(made);
        return NULL;
    }
    if (atomic_compare_exchange_strong(&method, &none, made))
        return made;
    BIO_meth_free(made); /* another thread was faster */
    return none;
}

bool rlk_tls_bio_join(struct rlk_tls *tls)
{
    BIO_METHOD *chosen = get_method();
    BIO *bio = chosen ? BIO_new(chosen) : NULL;
    if (!bio)
        return false;
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    return true;
}
