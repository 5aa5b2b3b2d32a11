/* SPDX-License-Identifier: Apache-2.0 */
/* The connection's TLS: its protocol, the server's certificate and when that expires.
 * Thread: any. */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "client/rpc.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

/* Gets the facts from a connection of the pool. False: there is none; another check
 * reports why. */
static bool look(struct rlk_diagnosis *d, struct rlk_tls_facts *ret_facts)
{
    struct rlk_target *target;
    struct rlk_conn *conn;

    rlk_error_keep(true);
    bool good = rlk_diagnose_borrow(d, rlk_inspect_until(d->client), &target, &conn) == 0;
    if (good) {
        good = rlk_conn_look_at_tls(conn, ret_facts);
        rlk_rpc_put(target, conn);
    }
    rlk_error_keep(false);
    return good;
}

int rlk_diagnose_tls(struct rlk_diagnosis *d)
{
    const struct rlk_tls_settings *settings = &d->client->config.endpoint.tls;
    struct rlk_sentinel_master master;
    const char *host = rlk_diagnose_sentinel_host(d, &master);
    const char *name = settings->name ? settings->name : host ? host : "";
    struct rlk_tls_facts facts;

    if (!settings->on || !look(d, &facts))
        return 0;
    d->has_certificate = facts.has_certificate;
    long days = (long)(facts.ends_in_s / DAY_S);
    if (days < SOON_DAYS)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "tls",
            "The certificate of the server (for %s) expires in %ld days: from then on no "
            "client can connect, and locks are not renewed. Renew it.",
            facts.names, days);
    if (settings->any_name)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "tls",
            "%s with %s; the certificate (for %s) expires in %ld days. Its name is not "
            "checked (verify=ca): every server with a certificate of the same authority "
            "can act as this one. Set tlsname to one of its names.",
            facts.protocol, facts.cipher, facts.names, days);
    return rlk_diagnose_tell(
        d, LOG_INFO, "tls",
        "%s with %s; the certificate is for \"%s\", and expires in %ld days.%s",
        facts.protocol, facts.cipher, name, days,
        facts.has_certificate ? " This client has a certificate of its own." : "");
}
