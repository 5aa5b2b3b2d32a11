/* SPDX-License-Identifier: Apache-2.0 */
/* The library without TLS (configure --without-tls). No caller gets here, because
 * rediss:// is refused before. Thread: any. */
#include "net/tls.h"

#include "base/error.h"

#include <errno.h>

bool rlk_tls_is_built(void)
{
    return false;
}

int rlk_tls_store_create(struct rlk_tls_store **ret_store,
                         const struct rlk_endpoint *endpoint,
                         struct rlk_tls_store *parent)
{
    (void)ret_store;
    (void)endpoint;
    (void)parent;
    return rlk_error_set(ENOTSUP, "this library was built without TLS");
}

void rlk_tls_store_free(struct rlk_tls_store *store)
{
    (void)store;
}

void rlk_tls_store_disown(struct rlk_tls_store *store)
{
    (void)store;
}

int rlk_tls_open(struct rlk_tls **ret_tls, const struct rlk_endpoint *endpoint,
                 bool may_read)
{
    (void)ret_tls;
    (void)endpoint;
    (void)may_read;
    return ENOMEM;
}

void rlk_tls_free(struct rlk_tls *tls)
{
    (void)tls;
}

enum rlk_tls_result rlk_tls_shake(struct rlk_tls *tls, int fd)
{
    (void)tls;
    (void)fd;
    return RLK_TLS_STRANGE;
}

ssize_t rlk_tls_send(struct rlk_tls *tls, int fd, const char *bytes, size_t len)
{
    (void)tls;
    (void)fd;
    (void)bytes;
    (void)len;
    return -1;
}

bool rlk_tls_begun(const struct rlk_tls *tls)
{
    (void)tls;
    return false;
}

size_t rlk_tls_unsent(const struct rlk_tls *tls)
{
    (void)tls;
    return 0;
}

bool rlk_tls_flush(struct rlk_tls *tls, int fd)
{
    (void)tls;
    (void)fd;
    return false;
}

void rlk_tls_hear_alert(struct rlk_tls *tls, int fd)
{
    (void)tls;
    (void)fd;
}

bool rlk_tls_has_part(struct rlk_tls *tls)
{
    (void)tls;
    return false;
}

int rlk_tls_receive(struct rlk_tls *tls, int fd, int flags,
                    void (*pass)(void *arg, const char *bytes, size_t len), void *arg)
{
    (void)tls;
    (void)fd;
    (void)flags;
    (void)pass;
    (void)arg;
    return -1;
}

const char *rlk_tls_text(const struct rlk_tls *tls)
{
    (void)tls;
    return "there is no TLS";
}

enum rlk_tls_result rlk_tls_failure(const struct rlk_tls *tls)
{
    (void)tls;
    return RLK_TLS_STRANGE;
}

bool rlk_tls_heard(const struct rlk_tls *tls)
{
    (void)tls;
    return false;
}

bool rlk_tls_look(struct rlk_tls *tls, struct rlk_tls_facts *ret_facts)
{
    (void)tls;
    (void)ret_facts;
    return false;
}

void rlk_tls_hold(void)
{
}

void rlk_tls_unhold(void)
{
}

bool rlk_tls_forget(bool late)
{
    (void)late;
    return true;
}

void rlk_tls_set_exit(void (*at_exit)(void))
{
    (void)at_exit;
}

void rlk_tls_end(void)
{
}

bool rlk_tls_ended(void)
{
    return false;
}
