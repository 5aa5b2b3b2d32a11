/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the connections of a client share: OpenSSL's context, made from the files, and the
 * sessions that the server has sent. A TLS 1.3 ticket should be used only once: the store
 * has a stack of tickets and takes the newest first; each connection brings new tickets.
 * With TLS 1.2, all connections use the newest session. If files have changed (after a
 * certificate was renewed), the next connection of a caller reads them again.
 *
 * Thread: any.
 */
#include "net/tls_impl.h"

#include "base/error.h"
#include "base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS_MAX = 64 };

/* A session, and whose it is: the server was checked to be this one when the session
 * began, and is not checked again when it is resumed. */
struct kept_session {
    SSL_SESSION *session;
    char *host; /* NULL: that of the store's endpoint */
    uint16_t port;
};

struct rlk_tls_store {
    /* immutable after create */
    const struct rlk_endpoint *endpoint;
    char authorities[RLK_LOG_NAME_SIZE + 16];

    /* Protects what follows. No other mutex is taken while it is held. */
    struct rlk_mutex mu;
    SSL_CTX *ctx;
    struct rlk_tls_stamp stamps[RLK_TLS_STAMP_COUNT];
    struct kept_session sessions[SESSIONS_MAX]; /* the newest is the last */
    int session_count;
    bool in_doubt; /* a connection was refused since the files were last looked at */

    struct rlk_tls_store *older; /* the next one of `left_behind` */
};

/* Stores that cannot be freed, so that a leak checker finds them: in a forked child the
 * parent's, and while the process exits those that the program closes. */
static struct rlk_tls_store *_Atomic left_behind __attribute__((used));

bool rlk_tls_is_built(void)
{
    return true;
}

const char *rlk_tls_store_authorities(const struct rlk_tls_store *store)
{
    return store->authorities;
}

/* ---- sessions */

/* Locks: holds mu. */
static void forget_session_locked(struct rlk_tls_store *store, int i)
{
    free(store->sessions[i].host);
    store->session_count--;
    memmove(&store->sessions[i], &store->sessions[i + 1],
            (size_t)(store->session_count - i) * sizeof(store->sessions[0]));
}

/* Locks: holds mu. */
static void drop_session_locked(struct rlk_tls_store *store, int i)
{
    SSL_SESSION_free(store->sessions[i].session);
    forget_session_locked(store, i);
}

/* Locks: holds mu. */
static void drop_sessions_locked(struct rlk_tls_store *store)
{
    while (store->session_count > 0)
        drop_session_locked(store, store->session_count - 1);
}

static bool is_for_once(const SSL_SESSION *session)
{
    return SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
}

static const char *host_of(const struct rlk_tls_store *store,
                           const struct kept_session *kept)
{
    return kept->host ? kept->host : store->endpoint->host;
}

/* rule: P2 */
/* The newest session with this server. -1: there is none. Locks: holds mu. */
static int find_session_locked(const struct rlk_tls_store *store,
                               const struct rlk_endpoint *endpoint)
{
    int i = store->session_count - 1;

    while (i >= 0 && (store->sessions[i].port != endpoint->port ||
                      strcmp(host_of(store, &store->sessions[i]), endpoint->host) != 0))
        i--;
    return i;
}

/* Returns 1 if the store keeps it. Locks: holds mu. */
static int add_session_locked(struct rlk_tls_store *store, SSL_SESSION *session,
                              const struct rlk_endpoint *endpoint)
{
    bool own = endpoint->host == store->endpoint->host;
    char *host = own ? NULL : strdup(endpoint->host);
    int same = is_for_once(session) ? -1 : find_session_locked(store, endpoint);

    if (!own && !host)
        return 0;
    if (same >= 0)
        drop_session_locked(store, same);
    if (store->session_count == SESSIONS_MAX)
        drop_session_locked(store, 0);
    store->sessions[store->session_count++] =
        (struct kept_session){ session, host, endpoint->port };
    return 1;
}

/* rule: P4 */
/* OpenSSL's callback: the server sent a session. Returns 1 if the store keeps it. */
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    struct rlk_tls *tls = SSL_get_app_data(ssl);
    struct rlk_tls_store *store = tls->endpoint->tls_store;
    int kept = 0;

    if (!store || SSL_SESSION_is_resumable(session) != 1)
        return 0;
    rlk_sync_mutex_lock(&store->mu);
    if (SSL_get_SSL_CTX(ssl) == store->ctx) /* else of files that have been replaced */
        kept = add_session_locked(store, session, tls->endpoint);
    rlk_sync_mutex_unlock(&store->mu);
    return kept;
}

/* Returns a session, which the caller frees; NULL: there is none. Locks: holds mu. */
static SSL_SESSION *take_session_locked(struct rlk_tls_store *store,
                                        const struct rlk_endpoint *endpoint)
{
    int i = find_session_locked(store, endpoint);

    if (i < 0)
        return NULL;
    SSL_SESSION *session = store->sessions[i].session;
    if (is_for_once(session))
        forget_session_locked(store, i);
    else
        SSL_SESSION_up_ref(session);
    return session;
}

/* ---- the context */

/* OpenSSL's callback: the server requests a certificate. Returns 1: the handshake goes
 * on. */
static int note_request(SSL *ssl, void *arg)
{
    struct rlk_tls *tls = SSL_get_app_data(ssl);

    (void)arg;
    tls->is_asked = true;
    return 1;
}

/* rule: P2 */
void rlk_tls_store_floor(SSL_CTX *ctx)
{
    if (SSL_CTX_get_min_proto_version(ctx) < TLS1_2_VERSION)
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
}

static int make_context(const struct rlk_tls_settings *settings, SSL_CTX **ret_ctx,
                        char text[RLK_TLS_TEXT_SIZE])
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx) {
        strcpy(text, "out of memory");
        return ENOMEM;
    }
    rlk_tls_store_floor(ctx);
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, rlk_tls_text_of_check);
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx,
                                   SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, keep_session);
    SSL_CTX_set_cert_cb(ctx, note_request, NULL);
    int rc = rlk_tls_file_load(ctx, settings, text);
    if (rc != 0) {
        SSL_CTX_free(ctx);
        return rc;
    }
    *ret_ctx = ctx;
    return 0;
}

/* Whether to look at the files now. */
static bool begin_look(struct rlk_tls_store *store, bool may_read)
{
    rlk_sync_mutex_lock(&store->mu);
    bool look = may_read || store->in_doubt;
    store->in_doubt = false;
    rlk_sync_mutex_unlock(&store->mu);
    return look;
}

static bool have_changed(struct rlk_tls_store *store, const struct rlk_tls_stamp *stamps)
{
    rlk_sync_mutex_lock(&store->mu);
    bool changed = memcmp(stamps, store->stamps, sizeof(store->stamps)) != 0;
    rlk_sync_mutex_unlock(&store->mu);
    return changed;
}

/* If the files cannot be used, the client continues with the old ones, because another
 * program may be writing the files now. If they stay wrong, the server or the next client
 * reports it. */
void rlk_tls_store_look(struct rlk_tls_store *store, bool may_read)
{
    struct rlk_tls_stamp stamps[RLK_TLS_STAMP_COUNT];
    char text[RLK_TLS_TEXT_SIZE];
    SSL_CTX *ctx = NULL, *old = NULL;

    if (!begin_look(store, may_read))
        return;
    rlk_tls_file_stamps(&store->endpoint->tls, stamps);
    if (!have_changed(store, stamps) || !rlk_tls_gate_enter())
        return;
    if (make_context(&store->endpoint->tls, &ctx, text) == 0) {
        rlk_sync_mutex_lock(&store->mu);
        old = store->ctx;
        store->ctx = ctx;
        memcpy(store->stamps, stamps, sizeof(stamps));
        drop_sessions_locked(store);
        rlk_sync_mutex_unlock(&store->mu);
    }
    SSL_CTX_free(old);
    rlk_tls_gate_leave();
}

void rlk_tls_store_doubt(struct rlk_tls_store *store)
{
    rlk_sync_mutex_lock(&store->mu);
    store->in_doubt = true;
    rlk_sync_mutex_unlock(&store->mu);
}

SSL *rlk_tls_store_make(const struct rlk_endpoint *endpoint)
{
    struct rlk_tls_store *store = endpoint->tls_store;

    rlk_sync_mutex_lock(&store->mu);
    SSL *ssl = SSL_new(store->ctx);
    SSL_SESSION *session = ssl ? take_session_locked(store, endpoint) : NULL;
    rlk_sync_mutex_unlock(&store->mu);
    if (session) {
        SSL_set_session(ssl, session); /* if it does not fit, it is not resumed */
        SSL_SESSION_free(session);
    }
    return ssl;
}

/* ---- life */

static void name_authorities(struct rlk_tls_store *store)
{
    const struct rlk_tls_settings *settings = &store->endpoint->tls;
    const char *path = settings->cafile ? settings->cafile : settings->cadir;

    if (path)
        rlk_log_name(store->authorities, sizeof(store->authorities), path, strlen(path));
    else
        strcpy(store->authorities, "the system (cafile= names others)");
}

/* Uses the context of the parent's store; nobody changes that store any more. */
static int inherit(struct rlk_tls_store *store, const struct rlk_tls_store *parent)
{
    if (!rlk_tls_gate_enter())
        return rlk_error_set(EAGAIN, "the process is exiting");
    SSL_CTX_up_ref(parent->ctx);
    rlk_tls_gate_leave();
    store->ctx = parent->ctx;
    memcpy(store->stamps, parent->stamps, sizeof(store->stamps));
    return 0;
}

static int load_store(struct rlk_tls_store *store)
{
    char text[RLK_TLS_TEXT_SIZE] = "the process is exiting";

    rlk_tls_file_stamps(&store->endpoint->tls, store->stamps);
    if (!rlk_tls_gate_enter())
        return rlk_error_set(EAGAIN, "%s", text);
    int rc = make_context(&store->endpoint->tls, &store->ctx, text);
    rlk_tls_gate_leave();
    return rc != 0 ? rlk_error_set(rc, "TLS: %s", text) : 0;
}

int rlk_tls_store_create(struct rlk_tls_store **ret_store,
                         const struct rlk_endpoint *endpoint,
                         struct rlk_tls_store *parent)
{
    struct rlk_tls_store *store = calloc(1, sizeof(*store));

    if (!store)
        return rlk_error_set(ENOMEM, "out of memory");
    int rc = rlk_sync_mutex_init(&store->mu);
    if (rc != 0) {
        free(store);
        return rlk_error_set(rc, "out of memory");
    }
    store->endpoint = endpoint;
    name_authorities(store);
    rc = rlk_tls_gate_open();
    if (rc != 0)
        rlk_error_set(rc, "OpenSSL cannot be used");
    else
        rc = parent ? inherit(store, parent) : load_store(store);
    if (rc != 0) {
        rlk_tls_store_free(store);
        return rc;
    }
    *ret_store = store;
    return 0;
}

void rlk_tls_store_free(struct rlk_tls_store *store)
{
    if (!store)
        return;
    if (!rlk_tls_gate_enter()) {
        rlk_tls_store_disown(store);
        return;
    }
    drop_sessions_locked(store);
    SSL_CTX_free(store->ctx);
    rlk_tls_gate_leave();
    rlk_sync_mutex_destroy(&store->mu);
    free(store);
}

/* rule: P5 */
void rlk_tls_store_disown(struct rlk_tls_store *store)
{
    if (!store)
        return;
    store->older = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &store->older, store))
        continue;
}
