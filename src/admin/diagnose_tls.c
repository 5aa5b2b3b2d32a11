/* SPDX-License-Identifier: Apache-2.0 */
/* What TLS is worth: which protocol, whose certificate, how long it lasts. Thread: any.
 */
#include "admin/diagnose.h"

#include "admin/inspect.h"
#include "client/rpc.h"

enum { DAY_S = 86400, SOON_DAYS = 14 };

/* Of a connection of the pool's. False: there is none, and why is told elsewhere. */
static bool look(struct rlk_diagnosis *d, struct rlk_tls_facts *ret_facts)
{
    struct rlk_conn *conn;

    rlk_error_keep(true);
    bool good = rlk_pool_get(d->client->pool, rlk_inspect_until(d->client), &conn) == 0;
    if (good) {
        good = rlk_conn_look_at_tls(conn, ret_facts);
        rlk_rpc_put(d->client, conn);
    }
    rlk_error_keep(false);
    return good;
}

int rlk_diagnose_tls(struct rlk_diagnosis *d)
{
    const struct rlk_tls_settings *settings = &d->client->config.target.tls;
    const char *name = settings->name ? settings->name : d->client->config.target.host;
    struct rlk_tls_facts facts;

    if (!settings->on || !look(d, &facts))
        return 0;
    long days = (long)(facts.ends_in_s / DAY_S);
    if (days < SOON_DAYS)
        return rlk_diagnose_tell(
            d, LOG_WARNING, "tls",
            "The certificate of the server (for %s) ends in %ld days: from then on no "
            "client connects, and locks are not renewed. Renew it.",
            facts.names, days);
    if (settings->any_name)
        return rlk_diagnose_tell(
            d, LOG_NOTICE, "tls",
            "%s with %s; the certificate (for %s) ends in %ld days. Its name is not "
            "compared (verify=ca): each server with a certificate of the same authority "
            "may pass for this one. Set tlsname to one of its names.",
            facts.protocol, facts.cipher, facts.names, days);
    return rlk_diagnose_tell(
        d, LOG_INFO, "tls",
        "%s with %s; the certificate is for \"%s\", and ends in %ld days.%s",
        facts.protocol, facts.cipher, name, days,
        facts.has_certificate ? " This client shows one of its own." : "");
}
