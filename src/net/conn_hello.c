/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake: AUTH, SELECT, CLIENT SETNAME and TIME, sent in one piece, and ROLE
 * behind them if a sentinel named the server; or AUTH and PING, which only tests whether
 * a server is there. A server that does not know TIME is asked for its ROLE, too: a
 * sentinel tells that it is one. Entered by the thread that owns the connection; never
 * blocks.
 *
 * The bytes contain the password: the buffer is wiped. Servers quote arguments in error
 * texts. Therefore no text of a reply to AUTH is shown, unless the server serves no
 * client at the moment, and no other text that contains the beginning of the password.
 */
#include "net/conn_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SERVER_TEXT_SIZE = 100 };

#define US_PER_S INT64_C(1000000)
#define TIME_MAX_S INT64_C(1000000000000) /* the conversion to us cannot overflow */

static const char *const command_names[] = {
    [RLK_HELLO_AUTH] = "AUTH",
    [RLK_HELLO_SELECT] = "SELECT",
    [RLK_HELLO_SETNAME] = "CLIENT SETNAME",
    [RLK_HELLO_TIME] = "TIME",
    [RLK_HELLO_ROLE] = "ROLE",
    [RLK_HELLO_INFO] = "INFO replication",
    [RLK_HELLO_PING] = "PING",
};

/* ---- the bytes */

static int add(struct rlk_conn_hello *h, enum rlk_conn_hello_command command, int argc,
               const char *const *argv)
{
    size_t argv_len[3];
    size_t len;
    for (int i = 0; i < argc; i++)
        argv_len[i] = strlen(argv[i]);
    char *bytes = rlk_conn_frame_format(argc, argv, argv_len, &len);
    if (!bytes)
        return ENOMEM;
    char *joined = malloc(h->len + len);
    if (joined) {
        if (h->bytes) {
            memcpy(joined, h->bytes, h->len);
            explicit_bzero(h->bytes, h->len);
            free(h->bytes);
        }
        memcpy(joined + h->len, bytes, len);
        h->bytes = joined;
        h->len += len;
        h->commands[h->count++] = command;
    }
    explicit_bzero(bytes, len);
    redisFreeCommand(bytes);
    return joined ? 0 : ENOMEM;
}

static int add_role(struct rlk_conn_hello *h)
{
    return add(h, RLK_HELLO_ROLE, 1, (const char *[]){ "ROLE" });
}

static int add_info(struct rlk_conn_hello *h)
{
    return add(h, RLK_HELLO_INFO, 2, (const char *[]){ "INFO", "replication" });
}

int rlk_conn_hello_init(struct rlk_conn_hello *h, const struct rlk_conn_options *options)
{
    const struct rlk_endpoint *endpoint = options->endpoint;
    int rc = 0;
    if (endpoint->password && endpoint->user)
        rc = add(h, RLK_HELLO_AUTH, 3,
                 (const char *[]){ "AUTH", endpoint->user, endpoint->password });
    else if (endpoint->password)
        rc = add(h, RLK_HELLO_AUTH, 2, (const char *[]){ "AUTH", endpoint->password });
    if (rc == 0 && options->only_ping)
        return add(h, RLK_HELLO_PING, 1, (const char *[]){ "PING" });
    if (rc == 0 && endpoint->db != 0) {
        char db[16];
        snprintf(db, sizeof(db), "%d", endpoint->db);
        rc = add(h, RLK_HELLO_SELECT, 2, (const char *[]){ "SELECT", db });
    }
    if (rc == 0 && options->name)
        rc = add(h, RLK_HELLO_SETNAME, 3,
                 (const char *[]){ "CLIENT", "SETNAME", options->name });
    if (rc == 0)
        rc = add(h, RLK_HELLO_TIME, 1, (const char *[]){ "TIME" });
    /* rule: P7 */
    h->needs_master = endpoint->sentinels.count > 0;
    return rc == 0 && h->needs_master ? add_role(h) : rc;
}

void rlk_conn_hello_rewind(struct rlk_conn_hello *h)
{
    h->at = h->answered = 0;
    h->is_master = false;
    h->refusal[0] = '\0';
}

void rlk_conn_hello_clear(struct rlk_conn_hello *h)
{
    if (!h->bytes)
        return;
    explicit_bzero(h->bytes, h->len);
    free(h->bytes);
    h->bytes = NULL;
}

/* ---- the replies */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Copies one line of a server's text, printable. Withholds it when it quotes the
 * password, or as much of its beginning as a server may have cut it to. */
static void copy_server_text(char *ret_line, const char *text, const char *password)
{
    size_t i;
    if (rlk_url_quotes(text, password)) {
        snprintf(ret_line, SERVER_TEXT_SIZE, "(text withheld)");
        return;
    }
    for (i = 0; i + 1 < SERVER_TEXT_SIZE && text[i] && text[i] != '\r' && text[i] != '\n';
         i++)
        ret_line[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    ret_line[i] = '\0';
}

/* Whether the server serves no client now, or not this one; such an error may also
 * come unrequested before the server closes the connection. */
static bool is_passing(const char *text)
{
    return begins(text, "LOADING") || begins(text, "MASTERDOWN") ||
           begins(text, "BUSY") || begins(text, "DENIED") || begins(text, "TRYAGAIN") ||
           begins(text, "CLUSTERDOWN") || begins(text, "ERR max number of clients");
}

static bool is_denied(const char *text)
{
    return begins(text, "NOAUTH") || begins(text, "WRONGPASS") || begins(text, "NOPERM");
}

static void explain_auth(struct rlk_conn *conn, const char *text)
{
    const char *why = "bad user or password";
    if (begins(text, "ERR AUTH") || begins(text, "ERR Client sent AUTH"))
        why = "the server has no password, but one was given";
    else if (begins(text, "ERR wrong number of arguments"))
        why = "the server supports a password, but no user names";
    else if (!is_denied(text) && !begins(text, "ERR invalid"))
        why = "unexpected error";
    rlk_conn_explain(conn, "%s%s refused AUTH: %s", conn->label, conn->whence, why);
}

/* rule: P27 */
/* What an error reply to `command` means; WAIT: nothing, or ROLE tells. */
static enum rlk_conn_hello_result take_error(struct rlk_conn *conn,
                                             struct rlk_conn_hello *h,
                                             enum rlk_conn_hello_command command,
                                             const char *text,
                                             const struct rlk_endpoint *endpoint)
{
    char line[SERVER_TEXT_SIZE], db[16] = "";
    copy_server_text(line, text, endpoint->password);
    if (is_passing(text)) {
        rlk_conn_explain(conn, "%s is not ready: %s", conn->label, line);
        return RLK_HELLO_FAILED;
    }
    /* The name is a courtesy; TIME gets a NOAUTH, too. Without ROLE, INFO tells; without
     * both, READONLY. */
    if (command == RLK_HELLO_SETNAME || command == RLK_HELLO_ROLE ||
        command == RLK_HELLO_INFO)
        return RLK_HELLO_WAIT;
    if (command == RLK_HELLO_AUTH) {
        explain_auth(conn, text);
        return RLK_HELLO_DENIED;
    }
    if (command == RLK_HELLO_SELECT) /* the user knows it by this number */
        snprintf(db, sizeof(db), " %d", endpoint->db);
    rlk_conn_explain(conn, "%s%s refused %s%s: %s", conn->label, conn->whence,
                     command_names[command], db, line);
    if ((command == RLK_HELLO_SELECT || command == RLK_HELLO_TIME) &&
        begins(text, "ERR unknown command")) {
        if (!h->refusal[0])
            memcpy(h->refusal, conn->text, sizeof(h->refusal));
        return RLK_HELLO_WAIT;
    }
    return is_denied(text) ? RLK_HELLO_DENIED : RLK_HELLO_STRANGE;
}

static bool parse_number(const struct rlk_reply *reply, int64_t *ret_number)
{
    size_t len;
    int64_t number = 0;
    if (rlk_reply_type(reply) != RLK_REPLY_STRING)
        return false;
    const char *text = rlk_reply_string(reply, &len);
    if (len < 1 || len > 15)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        number = number * 10 + (text[i] - '0');
    }
    *ret_number = number;
    return true;
}

static bool take_time(struct rlk_conn *conn, const struct rlk_reply *reply, int64_t sent)
{
    int64_t s, us;
    if (rlk_reply_type(reply) != RLK_REPLY_ARRAY || rlk_reply_count(reply) != 2 ||
        !parse_number(rlk_reply_at(reply, 0), &s) || s > TIME_MAX_S ||
        !parse_number(rlk_reply_at(reply, 1), &us) || us >= US_PER_S)
        return false;
    rlk_conn_note_time(conn, s * US_PER_S + us, sent);
    return true;
}

/* A sentinel replies with the names of its masters. */
static void explain_sentinel(struct rlk_conn *conn, const struct rlk_reply *reply,
                             const struct rlk_endpoint *endpoint)
{
    size_t len;
    const char *name = rlk_reply_text_at(rlk_reply_at(reply, 1), 0, &len);
    char shown[SERVER_TEXT_SIZE];

    copy_server_text(shown, name ? name : "NAME", endpoint->password);
    rlk_conn_explain(conn, "%s%s is a sentinel: its URL is redis%s-sentinel://%s/%s",
                     conn->label, conn->whence, conn->tls ? "s" : "", conn->label, shown);
}

static enum rlk_conn_hello_result elsewhere(struct rlk_conn *conn)
{
    rlk_conn_explain(conn, "%s%s is not a master at the moment", conn->label,
                     conn->whence);
    return RLK_HELLO_ELSEWHERE;
}

static enum rlk_conn_hello_result unexpected(struct rlk_conn *conn,
                                             enum rlk_conn_hello_command command)
{
    rlk_conn_explain(conn, "unexpected reply from %s%s to %s", conn->label, conn->whence,
                     command_names[command]);
    return RLK_HELLO_STRANGE;
}

/* rule: P7 */
static enum rlk_conn_hello_result take_role(struct rlk_conn *conn,
                                            struct rlk_conn_hello *h,
                                            const struct rlk_reply *reply,
                                            const struct rlk_endpoint *endpoint)
{
    size_t len;
    const char *role = rlk_reply_text_at(reply, 0, &len);

    if (role && strcmp(role, "sentinel") == 0 && !h->needs_master) {
        explain_sentinel(conn, reply, endpoint);
        return RLK_HELLO_STRANGE;
    }
    if (!h->needs_master)
        return RLK_HELLO_WAIT;
    if (!role)
        return unexpected(conn, RLK_HELLO_ROLE);
    h->is_master = strcmp(role, "master") == 0;
    return h->is_master ? RLK_HELLO_WAIT : elsewhere(conn);
}

/* rule: P7 */
/* The server refused ROLE. A text that was skipped for its length tells nothing. */
static enum rlk_conn_hello_result
take_info(struct rlk_conn *conn, struct rlk_conn_hello *h, const struct rlk_reply *reply)
{
    size_t len;
    const char *text = rlk_reply_string(reply, &len);

    h->is_master = strstr(text, "\nrole:master\r") != NULL;
    return strstr(text, "\nrole:slave\r") ? elsewhere(conn) : RLK_HELLO_WAIT;
}

static enum rlk_conn_hello_result take_answer(struct rlk_conn *conn,
                                              struct rlk_conn_hello *h,
                                              const struct rlk_reply *reply,
                                              const struct rlk_endpoint *endpoint)
{
    enum rlk_conn_hello_command command = h->commands[h->answered++];
    enum rlk_reply_type type = rlk_reply_type(reply);
    size_t len;
    if (type == RLK_REPLY_ERROR)
        return take_error(conn, h, command, rlk_reply_string(reply, &len), endpoint);
    if (command == RLK_HELLO_ROLE)
        return take_role(conn, h, reply, endpoint);
    if (command == RLK_HELLO_INFO)
        return take_info(conn, h, reply);
    if (command == RLK_HELLO_TIME ? take_time(conn, reply, h->sent)
                                  : type == RLK_REPLY_STATUS)
        return RLK_HELLO_WAIT;
    return unexpected(conn, command);
}

/* rule: P6 */
/* Whether the first bytes of a server to which plain text was sent are an alert of TLS
 * (RFC 8446, 5.1). */
static bool speaks_tls(const struct rlk_conn *conn)
{
    static const char alert[] = { 21, 3 };
    const redisReader *reader = conn->reader;

    return !conn->tls && reader->err == 0 && rlk_conn_unparsed(conn) > sizeof(alert) &&
           memcmp(reader->buf + reader->pos, alert, sizeof(alert)) == 0;
}

/* All is answered, but the server does not know a command of the handshake. */
static enum rlk_conn_hello_result ask_role(struct rlk_conn *conn,
                                           struct rlk_conn_hello *h)
{
    if (!h->needs_master && h->commands[h->count - 1] != RLK_HELLO_ROLE)
        return add_role(h) == 0 ? RLK_HELLO_WAIT : RLK_HELLO_NO_MEMORY;
    rlk_conn_explain(conn, "%s", h->refusal);
    return RLK_HELLO_STRANGE;
}

/* Takes the replies that have arrived. */
static enum rlk_conn_hello_result take_answers(struct rlk_conn *conn,
                                               struct rlk_conn_hello *h,
                                               const struct rlk_endpoint *endpoint)
{
    struct rlk_reply *reply = NULL;
    if (h->answered == 0 && speaks_tls(conn)) {
        rlk_conn_explain(conn, "%s%s speaks TLS: its URL begins with rediss://",
                         conn->label, conn->whence);
        return RLK_HELLO_STRANGE;
    }
    while (h->answered < h->count) {
        enum rlk_parsed parsed = rlk_conn_parse(conn, &reply);
        if (parsed == RLK_PARSED_PARTIAL)
            return RLK_HELLO_WAIT;
        if (parsed == RLK_PARSED_BAD)
            return RLK_HELLO_STRANGE;
        if (parsed == RLK_PARSED_NO_MEMORY)
            return RLK_HELLO_NO_MEMORY;
        enum rlk_conn_hello_result result = take_answer(conn, h, reply, endpoint);
        rlk_reply_free(reply);
        if (result != RLK_HELLO_WAIT)
            return result;
    }
    if (rlk_conn_unparsed(conn) > 0 || h->at < h->len) {
        rlk_conn_explain(conn, "%s sent data without a request", conn->label);
        return RLK_HELLO_STRANGE;
    }
    if (h->refusal[0])
        return ask_role(conn, h);
    if (h->needs_master && !h->is_master && h->commands[h->count - 1] == RLK_HELLO_ROLE)
        return add_info(h) == 0 ? RLK_HELLO_WAIT : RLK_HELLO_NO_MEMORY;
    return RLK_HELLO_DONE;
}

/* ---- driving */

/* False: the socket is broken. */
static bool send_bytes(struct rlk_conn *conn, struct rlk_conn_hello *h)
{
    if (h->at == 0)
        h->sent = rlk_clock_boot();
    while (h->at < h->len) {
        ssize_t n = rlk_conn_send(conn, h->bytes + h->at, h->len - h->at);
        if (n <= 0)
            return n == 0;
        h->at += (size_t)n;
    }
    return true;
}

/* rule: P6, P28 */
/* What the end of the connection means. With TLS 1.3 the server checks the client's
 * certificate only after the client has ended its part of the handshake. A server that
 * expects TLS closes the connection of a client without TLS, and sends nothing; so does a
 * proxy whose servers are down. */
static enum rlk_conn_hello_result ended(struct rlk_conn *conn,
                                        const struct rlk_conn_hello *h,
                                        const struct rlk_endpoint *endpoint)
{
    if (conn->tls && rlk_tls_failure(conn->tls) == RLK_TLS_REFUSED)
        return RLK_HELLO_DENIED;
    if (h->refusal[0]) {
        rlk_conn_explain(conn, "%s", h->refusal);
        return RLK_HELLO_STRANGE;
    }
    if (!conn->tls && endpoint->host && h->answered == 0 && conn->partial_len == 0) {
        size_t len = strlen(conn->text);
        snprintf(conn->text + len, sizeof(conn->text) - len,
                 " before it sent anything (if it speaks TLS, its URL begins with "
                 "rediss://); a proxy that has no server does so, too");
    }
    return RLK_HELLO_FAILED;
}

enum rlk_conn_hello_result rlk_conn_hello_step(struct rlk_conn *conn,
                                               struct rlk_conn_hello *h,
                                               const struct rlk_endpoint *endpoint)
{
    bool open = send_bytes(conn, h);
    /* Also when the server has closed it: the reason may have been sent before. */
    for (;;) {
        enum rlk_input input = rlk_conn_input(conn, MSG_DONTWAIT);
        if (input == RLK_INPUT_END)
            return ended(conn, h, endpoint);
        if (input == RLK_INPUT_NONE)
            break;
        enum rlk_conn_hello_result result = take_answers(conn, h, endpoint);
        if (result != RLK_HELLO_WAIT)
            return result;
    }
    if (open)
        return RLK_HELLO_WAIT;
    rlk_conn_explain(conn, "%s closed the connection", conn->label);
    return RLK_HELLO_FAILED;
}
