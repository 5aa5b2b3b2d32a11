/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went wrong with TLS, in one line that says where to look. The peer chooses what is
 * in its certificate: texts show only printable bytes of it, and only a bounded number.
 * No text contains a byte of a key. Thread: that of the connection.
 */
#include "net/tls_impl.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_SIZE = 128, DATE_SIZE = 32, ISSUER_SIZE = 96, IPV4_LEN = 4, IPV6_LEN = 16 };

void rlk_tls_text_set(struct rlk_tls *tls, enum rlk_tls_result failure,
                      const char *format, ...)
{
    va_list args;

    if (tls->text[0] && !tls->text_of_send)
        return;
    tls->text_of_send = false;
    tls->failure = failure;
    va_start(args, format);
    vsnprintf(tls->text, sizeof(tls->text), format, args);
    va_end(args);
}

/* ---- certificates */

/* Appends a name to the list. */
static void add_name(char *list, size_t size, const char *bytes, size_t len)
{
    size_t used = strlen(list);

    if (used + 3 >= size)
        return;
    if (used > 0) {
        memcpy(list + used, ", ", 3);
        used += 2;
    }
    rlk_log_name(list + used, size - used, bytes, len);
}

static void add_general_name(char *list, size_t size, const GENERAL_NAME *name)
{
    char address[INET6_ADDRSTRLEN];

    if (name->type == GEN_DNS) {
        add_name(list, size, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                 (size_t)ASN1_STRING_length(name->d.dNSName));
    } else if (name->type == GEN_IPADD) {
        int len = ASN1_STRING_length(name->d.iPAddress);
        const void *at = ASN1_STRING_get0_data(name->d.iPAddress);
        if ((len == IPV4_LEN || len == IPV6_LEN) &&
            inet_ntop(len == IPV4_LEN ? AF_INET : AF_INET6, at, address, sizeof(address)))
            add_name(list, size, address, strlen(address));
    }
}

/* Appends the common name, which counts only if the certificate has no other names. */
static void add_common_name(char *list, size_t size, const X509_NAME *subject)
{
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

    if (at < 0)
        return;
    const ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    add_name(list, size, (const char *)ASN1_STRING_get0_data(text),
             (size_t)ASN1_STRING_length(text));
}

void rlk_tls_text_names(char *ret_names, size_t size, X509 *certificate)
{
    GENERAL_NAMES *names =
        X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

    ret_names[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        add_general_name(ret_names, size, sk_GENERAL_NAME_value(names, i));
    if (!ret_names[0])
        add_common_name(ret_names, size, X509_get_subject_name(certificate));
    if (!ret_names[0])
        snprintf(ret_names, size, "no name");
    GENERAL_NAMES_free(names);
}

static void write_date(char ret_date[DATE_SIZE], const ASN1_TIME *at)
{
    struct tm tm;

    if (ASN1_TIME_to_tm(at, &tm) != 1 ||
        strftime(ret_date, DATE_SIZE, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
        snprintf(ret_date, DATE_SIZE, "(no date)");
}

static void write_issuer(char ret_issuer[ISSUER_SIZE], X509 *certificate)
{
    char list[ISSUER_SIZE] = "";

    add_common_name(list, sizeof(list), X509_get_issuer_name(certificate));
    snprintf(ret_issuer, ISSUER_SIZE, "%s", list[0] ? list : "(no common name)");
}

static void explain_name(struct rlk_tls *tls, X509 *certificate)
{
    const char *wanted =
        tls->endpoint->tls.name ? tls->endpoint->tls.name : tls->endpoint->host;
    char names[NAMES_SIZE];

    rlk_tls_text_names(names, sizeof(names), certificate);
    snprintf(tls->verify_text, sizeof(tls->verify_text),
             "is not for \"%.80s\", but for %s (tlsname= names another one)", wanted,
             names);
}

static void explain_authority(struct rlk_tls *tls, X509 *certificate)
{
    char issuer[ISSUER_SIZE];

    write_issuer(issuer, certificate);
    snprintf(tls->verify_text, sizeof(tls->verify_text),
             "comes from \"%s\", which is not an authority of %s", issuer,
             rlk_tls_store_authorities(tls->endpoint->tls_store));
}

static void explain_dates(struct rlk_tls *tls, X509 *certificate, const char *authority)
{
    bool is_over = tls->verify_code == X509_V_ERR_CERT_HAS_EXPIRED;
    char date[DATE_SIZE];

    write_date(date, is_over ? X509_get0_notAfter(certificate)
                             : X509_get0_notBefore(certificate));
    snprintf(tls->verify_text, sizeof(tls->verify_text), "%s %s%s",
             is_over ? "expired at" : "is not valid before", date, authority);
}

/* Explains verify_code of a certificate; at depth 0 it is the server's. */
static void explain_check(struct rlk_tls *tls, X509 *certificate, int depth)
{
    switch (tls->verify_code) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        explain_name(tls, certificate);
        break;
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        explain_dates(tls, certificate,
                      depth > 0 ? " (its authority's certificate)" : "");
        break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* another authority of the same name */
        explain_authority(tls, certificate);
        break;
    case X509_V_ERR_INVALID_PURPOSE:
        snprintf(tls->verify_text, sizeof(tls->verify_text),
                 "is not for servers (extendedKeyUsage)");
        break;
    default:
        snprintf(tls->verify_text, sizeof(tls->verify_text), "was refused: %s",
                 X509_verify_cert_error_string(tls->verify_code));
    }
}

int rlk_tls_text_of_check(int good, X509_STORE_CTX *check)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct rlk_tls *tls = ssl ? SSL_get_app_data(ssl) : NULL;
    X509 *certificate = X509_STORE_CTX_get_current_cert(check);

    if (!good && tls && tls->verify_code == X509_V_OK) {
        tls->verify_code = X509_STORE_CTX_get_error(check);
        if (certificate)
            explain_check(tls, certificate, X509_STORE_CTX_get_error_depth(check));
    }
    return good;
}

/* ---- errors of the handshake */

/* Explains the server's alert about the client's certificate. False: the alert is about
 * something else. */
static bool explain_refusal(struct rlk_tls *tls, int reason)
{
    const struct rlk_endpoint *endpoint = tls->endpoint;
    const char *certfile = endpoint->tls.certfile, *why;
    char shown[RLK_LOG_NAME_SIZE];

    switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
        why = "it requires a client certificate";
        break;
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
        why = "it does not know the authority";
        break;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
        why = "it has expired";
        break;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
        why = "it has been revoked";
        break;
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
        why = "the server cannot use it";
        break;
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE: /* TLS 1.2 has no alert of its own for it */
        if (SSL_get_client_CA_list(tls->ssl) == NULL || certfile)
            return false;
        why = "it requires a client certificate";
        break;
    default:
        return false;
    }
    if (certfile) {
        rlk_log_name(shown, sizeof(shown), certfile, strlen(certfile));
        rlk_tls_text_set(tls, RLK_TLS_REFUSED,
                         "%s%s refused the certificate of %.100s: %s", endpoint->label,
                         endpoint->whence, shown, why);
    } else {
        rlk_tls_text_set(tls, RLK_TLS_REFUSED,
                         "%s%s refused the connection: %s (certfile=, keyfile=)",
                         endpoint->label, endpoint->whence, why);
    }
    return true;
}

static void explain_version(struct rlk_tls *tls)
{
    rlk_tls_text_set(
        tls, RLK_TLS_STRANGE,
        "%s%s supports no version of TLS that this library supports (1.2 or later)",
        tls->endpoint->label, tls->endpoint->whence);
}

/* The kind of an error that has no text of its own. A server or proxy that is overloaded
 * or about to restart sends one of two alerts: those pass. */
static enum rlk_tls_result kind_of(unsigned long error)
{
    if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
        return RLK_TLS_NO_MEMORY;
    if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
        (ERR_GET_REASON(error) == SSL_R_TLSV1_ALERT_INTERNAL_ERROR ||
         ERR_GET_REASON(error) == SSL_R_TLSV1_ALERT_USER_CANCELLED))
        return RLK_TLS_FAILED;
    return RLK_TLS_STRANGE;
}

void rlk_tls_text_of_error(struct rlk_tls *tls)
{
    const struct rlk_endpoint *endpoint = tls->endpoint;
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    const char *said = ERR_reason_error_string(error);

    /* rule: P6 */
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED || tls->verify_code != X509_V_OK) {
        rlk_tls_text_set(tls, RLK_TLS_REFUSED, "the certificate of %s%s %s",
                         endpoint->label, endpoint->whence,
                         tls->verify_text[0] ? tls->verify_text : "was refused");
        return;
    }
    if (explain_refusal(tls, reason))
        return;
    if (reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION ||
        reason == SSL_R_UNSUPPORTED_PROTOCOL || reason == SSL_R_WRONG_VERSION_NUMBER)
        explain_version(tls);
    else
        rlk_tls_text_set(tls, kind_of(error), "TLS with %s%s failed: %s", endpoint->label,
                         endpoint->whence, said ? said : "OpenSSL gives no reason");
}

/* ---- what both sides agreed on */

static int64_t seconds_until(const ASN1_TIME *at)
{
    int days = 0, seconds = 0;
    return ASN1_TIME_diff(&days, &seconds, NULL, at) == 1
               ? days * INT64_C(86400) + seconds
               : 0;
}

bool rlk_tls_look(struct rlk_tls *tls, struct rlk_tls_facts *ret_facts)
{
    struct rlk_tls_facts facts = { .names = "" };

    if (!rlk_tls_gate_enter())
        return false;
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    snprintf(facts.protocol, sizeof(facts.protocol), "%s", SSL_get_version(tls->ssl));
    snprintf(facts.cipher, sizeof(facts.cipher), "%s", SSL_get_cipher_name(tls->ssl));
    facts.resumed = SSL_session_reused(tls->ssl) == 1;
    /* a resumed session has what its first connection agreed on */
    facts.has_certificate =
        (tls->is_asked || facts.resumed) && SSL_get_certificate(tls->ssl) != NULL;
    if (certificate) {
        rlk_tls_text_names(facts.names, sizeof(facts.names), certificate);
        facts.ends_in_s = seconds_until(X509_get0_notAfter(certificate));
    }
    rlk_tls_gate_leave();
    *ret_facts = facts;
    return certificate != NULL;
}
