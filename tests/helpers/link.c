/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes come in (test_link_read) and are cut into messages. Each message is shown to the
 * rules once; they say whether and how it is queued. Messages go out (test_link_write)
 * from the head of their queue only, because a byte stream cannot overtake itself: a head
 * that is held, or not yet due, delays all messages behind it. Replies are matched with
 * their requests by order.
 *
 * A client that closes is still served: the link forwards what the client sent when its
 * time comes, then shows the server the end of the stream, and reads and counts the
 * server's replies.
 */
#include "link.h"

#include "die.h"
#include "resp.h"
#include "wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 16384 };

/* What happens when a message has been forwarded. */
enum then { THEN_NOTHING, THEN_CLOSE, THEN_RESET, THEN_END };

struct test_message {
    struct test_message *next;
    unsigned char *data;
    size_t len, sent;
    int64_t due_ms;
    int held_by; /* rule id, 0: no rule */
    long drip_ms;
    bool drips;
    enum then then;
};

struct test_pending {
    struct test_pending *next;
    unsigned char *request;
    size_t len;
    unsigned replies; /* still to come */
    uint64_t counted; /* bit i: the rule of id i + 1 counted the request */
    char *canned;     /* the proxy answers this itself */
};

static void *must(void *memory)
{
    if (!memory)
        test_die("out of memory");
    return memory;
}

/* malloc(0) may be NULL */
static unsigned char *copy(const unsigned char *data, size_t len)
{
    unsigned char *c = must(malloc(len + 1));
    memcpy(c, data, len);
    c[len] = 0;
    return c;
}

/* ---- life */

struct test_link *test_link_new(unsigned number, int client, int server,
                                struct test_rules *rules, unsigned *to_server,
                                unsigned *to_client)
{
    struct test_link *link = must(calloc(1, sizeof(*link)));
    link->number = number;
    link->client = client;
    link->server = server;
    link->rules = rules;
    link->up.tail = &link->up.head;
    link->up.forwarded = to_server;
    link->down.tail = &link->down.head;
    link->down.forwarded = to_client;
    link->pending_tail = &link->pending;
    return link;
}

static void message_free(struct test_message *m)
{
    free(m->data);
    free(m);
}

static void stream_clear(struct test_stream *s)
{
    while (s->head) {
        struct test_message *m = s->head;
        s->head = m->next;
        message_free(m);
    }
    s->tail = &s->head;
    free(s->in);
    s->in = NULL;
    s->in_len = s->in_size = 0;
}

static void pending_pop(struct test_link *link)
{
    struct test_pending *first = link->pending;
    link->pending = first->next;
    if (!link->pending)
        link->pending_tail = &link->pending;
    free(first->request);
    free(first->canned);
    free(first);
}

static void close_fd(int *fd, bool reset)
{
    if (*fd < 0)
        return;
    const struct linger now = { .l_onoff = 1, .l_linger = 0 };
    if (reset) /* fails on a Unix socket, which has no RST */
        (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(*fd);
    *fd = -1;
}

void test_link_cut(struct test_link *link, bool reset)
{
    close_fd(&link->client, reset);
    close_fd(&link->server, reset);
}

void test_link_free(struct test_link *link)
{
    test_link_cut(link, false);
    stream_clear(&link->up);
    stream_clear(&link->down);
    while (link->pending)
        pending_pop(link);
    free(link);
}

/* ---- messages in */

static struct test_message *enqueue(struct test_stream *s, const unsigned char *data,
                                    size_t len)
{
    struct test_message *m = must(calloc(1, sizeof(*m)));
    m->data = copy(data, len);
    m->len = len;
    *s->tail = m;
    s->tail = &m->next;
    return m;
}

/* Queues a message as the verdict says. False: the message is not forwarded whole. */
static bool enqueue_by(struct test_stream *s, const struct test_verdict *verdict,
                       const unsigned char *data, size_t len)
{
    const struct test_rule *rule = verdict->rule;
    if (rule && (rule->action == TEST_DROP || rule->action == TEST_ANSWER))
        return false;
    struct test_message *m = enqueue(s, data, len);
    if (!rule)
        return true;
    switch (rule->action) {
    case TEST_DELAY:
        m->due_ms = test_now_ms() + rule->delay_ms;
        break;
    case TEST_CUT:
        m->len = rule->keep_len < len ? rule->keep_len : len;
        m->then = rule->reset ? THEN_RESET : THEN_CLOSE;
        return m->len == len;
    case TEST_CUT_AFTER:
        m->then = rule->reset ? THEN_RESET : THEN_CLOSE;
        break;
    case TEST_HOLD:
        m->held_by = verdict->id;
        break;
    case TEST_HALF_CLOSE:
        m->then = THEN_END;
        break;
    case TEST_DRIP:
        m->drips = true;
        m->drip_ms = rule->delay_ms;
        break;
    case TEST_WATCH:
    case TEST_DROP:
    case TEST_ANSWER:
        break;
    }
    return true;
}

/* Sends the proxy's own replies whose turn it is. */
static void answer_canned(struct test_link *link)
{
    while (link->pending && link->pending->canned) {
        const char *text = link->pending->canned;
        enqueue(&link->down, (const unsigned char *)text, strlen(text));
        pending_pop(link);
    }
}

static void on_request(struct test_link *link, const unsigned char *data, size_t len)
{
    struct test_view view = {
        .connection = link->number, .to_server = true, .data = data, .len = len
    };
    struct test_verdict verdict = test_rules_judge(link->rules, &view);
    bool forwarded = enqueue_by(&link->up, &verdict, data, len);
    bool canned = verdict.rule && verdict.rule->action == TEST_ANSWER;
    if (!forwarded && !canned)
        return;
    struct test_pending *pending = must(calloc(1, sizeof(*pending)));
    pending->request = copy(data, len);
    pending->len = len;
    pending->replies = test_resp_replies(data, len);
    pending->counted = verdict.counted;
    if (canned)
        pending->canned = must(strdup(verdict.rule->text ? verdict.rule->text : ""));
    *link->pending_tail = pending;
    link->pending_tail = &pending->next;
    answer_canned(link);
}

static void on_reply(struct test_link *link, const unsigned char *data, size_t len)
{
    struct test_pending *pending = test_resp_is_push(data, len) ? NULL : link->pending;
    struct test_view view = { .connection = link->number, .data = data, .len = len };
    if (pending) {
        view.request = pending->request;
        view.request_len = pending->len;
    }
    struct test_verdict verdict = test_rules_judge(link->rules, &view);
    enqueue_by(&link->down, &verdict, data, len);
    if (verdict.rule && verdict.rule->action == TEST_ANSWER && verdict.rule->text)
        enqueue(&link->down, (const unsigned char *)verdict.rule->text,
                strlen(verdict.rule->text));
    test_rules_answered(link->rules, verdict.counted);
    if (!pending || --pending->replies > 0)
        return;
    test_rules_answered(link->rules, pending->counted);
    pending_pop(link);
    answer_canned(link);
}

/* Bytes that cannot be read. To the client they are replies as well, without a request:
 * the rules see the bytes themselves. */
static void on_bytes(struct test_link *link, struct test_stream *s)
{
    struct test_view view = { .connection = link->number,
                              .to_server = s == &link->up,
                              .data = s->in,
                              .len = s->in_len,
                              .request = s->in,
                              .request_len = s->in_len };
    struct test_verdict verdict = test_rules_judge(link->rules, &view);
    enqueue_by(s, &verdict, s->in, s->in_len);
    s->in_len = 0;
}

static void split(struct test_link *link, struct test_stream *s)
{
    bool up = s == &link->up;
    size_t at = 0;
    if (link->raw) {
        if (s->in_len > 0)
            on_bytes(link, s);
        return;
    }
    while (at < s->in_len) {
        long len = test_resp_length(s->in + at, s->in_len - at, up);
        /* bytes that are no message, or a message that never ended, pass unchanged */
        if (len == TEST_RESP_INVALID || (len == TEST_RESP_PARTIAL && s->ended)) {
            enqueue(s, s->in + at, s->in_len - at);
            at = s->in_len;
        } else if (len == TEST_RESP_PARTIAL) {
            break;
        } else {
            (up ? on_request : on_reply)(link, s->in + at, (size_t)len);
            at += (size_t)len;
        }
    }
    s->in_len -= at;
    if (s->in_len > 0 && at > 0)
        memmove(s->in, s->in + at, s->in_len);
}

static void read_from(struct test_link *link, struct test_stream *s, int *fd)
{
    for (;;) {
        if (s->in_size - s->in_len < READ_SIZE) {
            s->in_size = s->in_len + 2 * (size_t)READ_SIZE;
            s->in = must(realloc(s->in, s->in_size));
        }
        ssize_t n = recv(*fd, s->in + s->in_len, s->in_size - s->in_len, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0) {
            s->ended = true;
            if (n < 0)
                close_fd(fd, false); /* reset: the server does not read any more either */
            break;
        }
        s->in_len += (size_t)n;
    }
    split(link, s);
}

void test_link_read(struct test_link *link, short client_events, short server_events)
{
    const short any = POLLIN | POLLHUP | POLLERR;
    if ((client_events & any) && link->client >= 0 && !link->up.ended)
        read_from(link, &link->up, &link->client);
    else if ((client_events & POLLHUP) && link->client >= 0)
        close_fd(&link->client, false); /* the client does not even read any more */
    if ((server_events & any) && link->server >= 0 && !link->down.ended)
        read_from(link, &link->down, &link->server);
}

/* ---- messages out */

static bool is_due(const struct test_message *m)
{
    return m && m->held_by == 0 && m->due_ms <= test_now_ms();
}

/* Sends as much of the head as the kernel takes. 1: all; 0: the rest later; -1: the
 * receiver is gone. */
static int send_head(struct test_message *m, int fd)
{
    while (m->sent < m->len) {
        size_t want = m->drips ? 1 : m->len - m->sent;
        ssize_t n = send(fd, m->data + m->sent, want, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        m->sent += (size_t)n;
        if (m->drips && m->sent < m->len) {
            m->due_ms = test_now_ms() + m->drip_ms;
            return 0;
        }
    }
    return 1;
}

static void forwarded(struct test_link *link, struct test_stream *s, int *fd)
{
    struct test_message *m = s->head;
    s->head = m->next;
    if (!s->head)
        s->tail = &s->head;
    ++*s->forwarded;
    if (m->then == THEN_CLOSE || m->then == THEN_RESET)
        test_link_cut(link, m->then == THEN_RESET);
    else if (m->then == THEN_END && *fd >= 0)
        shutdown(*fd, SHUT_WR);
    message_free(m);
}

/* A client that does not read any more does not write any more either. Without the end of
 * its stream the server would believe that it is alive. */
static void receiver_gone(struct test_link *link, struct test_stream *s, int *fd)
{
    if (s == &link->down && !link->up.ended) {
        read_from(link, &link->up, fd);
        link->up.ended = true;
        split(link, &link->up);
    }
    close_fd(fd, false);
}

static void write_to(struct test_link *link, struct test_stream *s, int *fd)
{
    while (is_due(s->head)) {
        int rc = *fd < 0 ? 1 : send_head(s->head, *fd);
        if (rc == 0)
            return;
        if (rc < 0) /* the receiver is gone: the remaining messages are dropped one by
                       one */
            receiver_gone(link, s, fd);
        forwarded(link, s, fd);
    }
    if (s->head || !s->ended || s->passed_end)
        return;
    if (*fd >= 0)
        shutdown(*fd, SHUT_WR);
    s->passed_end = true;
}

bool test_link_write(struct test_link *link)
{
    /* this direction first: the write may find that the client has gone */
    write_to(link, &link->down, &link->client);
    write_to(link, &link->up, &link->server);
    return link->server >= 0 && !link->down.passed_end;
}

/* ---- for the proxy's loop */

static short wanted(const struct test_stream *in, const struct test_stream *out)
{
    bool blocked = is_due(out->head) && out->head->sent < out->head->len;
    return (short)((in->ended ? 0 : POLLIN) | (blocked ? POLLOUT : 0));
}

void test_link_poll(const struct test_link *link, struct pollfd *client,
                    struct pollfd *server)
{
    client->events = wanted(&link->up, &link->down);
    server->events = wanted(&link->down, &link->up);
    /* without events poll leaves it out: otherwise POLLHUP would come again and again */
    client->fd = client->events ? link->client : -1;
    server->fd = server->events ? link->server : -1;
}

static int64_t head_due(const struct test_stream *s)
{
    if (!s->head || s->head->held_by != 0 || s->head->due_ms == 0)
        return INT64_MAX;
    return s->head->due_ms;
}

int64_t test_link_due(const struct test_link *link)
{
    int64_t up = head_due(&link->up), down = head_due(&link->down);
    return up < down ? up : down;
}

static bool is_late(const struct test_stream *s)
{
    for (const struct test_message *m = s->head; m; m = m->next) {
        if (m->drips || !is_due(m))
            return true;
    }
    return false;
}

bool test_link_is_late(const struct test_link *link)
{
    return is_late(&link->up) || is_late(&link->down);
}

static void release(struct test_stream *s, int id)
{
    for (struct test_message *m = s->head; m; m = m->next) {
        if (m->held_by == id)
            m->held_by = 0;
    }
}

void test_link_release(struct test_link *link, int id)
{
    release(&link->up, id);
    release(&link->down, id);
}

void test_link_forget_rule(struct test_link *link, int id)
{
    test_link_release(link, id);
    for (struct test_pending *pending = link->pending; pending; pending = pending->next)
        pending->counted &= ~(UINT64_C(1) << (id - 1));
}
